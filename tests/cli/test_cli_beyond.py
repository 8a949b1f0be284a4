"""`confide infer --predict --effects --ratios --without`: the numbers of the result's own methods, as text and as JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import good, run

import confide as cf
from confide.noise import SimulatedNoise

SCHEMA = cf.Schema(
    {"a": cf.Numeric(-1, 1), "g": cf.Categorical(["1", "2"]), "y": cf.Integer(0, 9), "z": cf.Categorical(["no", "yes"])}
)


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> Path:
    g = np.random.default_rng(1)
    frame = pd.DataFrame({"a": g.uniform(-1, 1, 4_000), "g": g.choice(["1", "2"], 4_000)})
    frame["y"] = g.poisson(np.exp(0.5 + 0.3 * frame.a)).clip(0, 9)
    frame["z"] = np.where(g.random(4_000) < 0.4 + 0.2 * frame.a, "yes", "no")
    folder = tmp_path_factory.mktemp("beyond")
    source = cf.read(frame, SCHEMA)
    asked = {
        "counts": cf.regression.Poisson("y ~ a + g"),
        "shares": cf.regression.Logistic("z ~ a + g"),
        "line": cf.regression.SSP("y ~ a"),
    }
    for name, method in asked.items():
        cf.release(method, source, cf.GDP(2.0), ledger=None, noise=SimulatedNoise(1)).save(folder / f"{name}.json")
    # labels that look like numbers stay labels; a missing value has no prediction
    (folder / "rows.csv").write_text("g,a\n1,0.5\n2,-0.5\n2,\n")
    return folder


@pytest.mark.parametrize(("name", "ratios"), [("counts", "rate_ratios"), ("shares", "odds_ratios")])
def test_what_is_printed_is_what_the_methods_give(releases: Path, name: str, ratios: str) -> None:
    path = str(releases / f"{name}.json")
    call = ("infer", path, "--predict", str(releases / "rows.csv"), "--effects", "--ratios", "--alpha", "0.1")
    facts = good(*call, "--json").json
    result = cf.infer(cf.Release.load(path))
    rows = pd.DataFrame({"g": ["1", "2", "2"], "a": [0.5, -0.5, np.nan]})
    own = result.get_prediction(rows, alpha=0.1)
    assert facts["predictions"][1] == own.iloc[1].to_dict()
    assert set(facts["predictions"][2].values()) == {None}
    assert facts[ratios][0] == {"name": "a", **getattr(result, ratios)(alpha=0.1).loc["a"].to_dict()}
    assert (
        facts["average_marginal_effects"][0]["effect"] == result.average_marginal_effects(alpha=0.1)["effect"].iloc[0]
    )
    out = good(*call).out
    assert f"{own['mean'].iloc[0]:.4g}" in out and "Average marginal effects" in out
    assert ("the probability of yes" in out) == (name == "shares")
    note = result.average_marginal_effects(alpha=0.1).attrs["note"]
    said = " ".join(out.split())
    assert (f"Note: {note}" in said) == bool(note) and ("Note: effects may be" in said) == bool(note)


def test_smaller_models_are_those_of_compare_models(tmp_path: Path) -> None:
    g = np.random.default_rng(2)
    schema = cf.Schema({name: cf.Numeric(-3, 3) for name in ("a", "b", "y")})
    records = {"a": g.uniform(-1, 1, 4_000), "b": g.uniform(-1, 1, 4_000)}
    records["y"] = np.clip(records["a"] + 0.5 * g.normal(size=4_000), -3, 3)
    method = cf.regression.LeastSquares("y ~ a + b")
    release = cf.release(method, cf.read(records, schema), cf.GDP(2.0), ledger=None, noise=SimulatedNoise(1))
    path = str(tmp_path / "line.json")
    release.save(path)
    own = cf.regression.compare_models(release, ["b", ["a", "b"]]).to_frame()
    call = ("infer", path, "--without", "b", "--without", "a,b")
    facts = good(*call, "--json").json["smaller_models"]
    assert [row["name"] for row in facts] == ["b", "a, b"]
    for row in facts:
        assert {key: row[key] for key in ("p_value", "f", "aic", "bic")} == own.loc[
            row["name"], ["p_value", "f", "aic", "bic"]
        ].to_dict()
    out = good(*call).out
    assert "Smaller models" in out and f"{own['aic'].iloc[1]:.4g}" in out
    done = run("infer", path, "--without", "c")
    assert done.code == 3 and "'c', which is no term; there are: a, b" in " ".join(done.err.split())


def test_what_a_release_has_not_is_refused(releases: Path) -> None:
    line = str(releases / "line.json")
    assert len(good("infer", line, "--predict", str(releases / "rows.csv"), "--json").json["predictions"]) == 3
    for option in ("--effects", "--ratios"):
        done = run("infer", line, option)
        assert done.code == 3 and "leave it out" in done.err
    done = run("infer", str(releases / "counts.json"), "--without", "a")
    assert done.code == 3 and "--without is about linear regressions" in done.err
    assert run("infer", line, "--predict", "nothing.csv").code == 2
    lacking = releases / "lacking.csv"
    lacking.write_text("b\n1\n")
    assert run("infer", line, "--predict", str(lacking)).code == 3


def test_effects_that_are_not_there_take_nothing_else_with_them(tmp_path: Path) -> None:
    data = cf.read(SCHEMA.sample(300, seed=1), SCHEMA)
    few = cf.release(cf.regression.Logistic("z ~ a + g"), data, cf.GDP(0.05), ledger=None, noise=SimulatedNoise(1))
    assert cf.infer(few).status in ("imprecise", "not_identified")
    few.save(tmp_path / "few.json")
    done = good("infer", str(tmp_path / "few.json"), "--effects", "--ratios")
    assert "Odds ratios" in done.out and "Note: there are no average marginal effects" in done.out
    assert good("infer", str(tmp_path / "few.json"), "--effects", "--json").json["average_marginal_effects"] == []


def test_explore_lists_what_the_schema_does_not_refuse(tmp_path: Path) -> None:
    columns = {"year": cf.Categorical(["1", "2"]), "g": cf.Categorical(["1", "2"]), "y": cf.Integer(0, 9)}
    for more in ({"unit": cf.Unit("id", per="year")}, {"cluster": cf.Clusters("id", size=5)}):
        (tmp_path / "s.toml").write_text(cf.Schema(columns, **more).to_toml())
        facts = good("explore", str(tmp_path / "s.toml"), "--json").json
        commands = " ".join(one["command"] for one in facts["questions"])
        assert (
            "confide table" in commands and "confide test" not in commands and "A median by group" in facts["refused"]
        )
    (tmp_path / "s.toml").write_text(cf.Schema(columns).to_toml())
    assert good("explore", str(tmp_path / "s.toml"), "--json").json["refused"] == []
