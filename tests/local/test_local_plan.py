"""Standard errors that a plan expects: against fits of protected tables, the raw sample, and what is refused."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.errors import PlanError
from tests.cli.cli_runner import good, run
from tests.messages import refuses

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 10, on_missing=5),
        "z": cf.Numeric(-1, 1, on_missing=0),
        "y": cf.Numeric(0, 60),
        "won": cf.Integer(0, 1),
    },
    dataset="survey",
)


def _records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    x, z = g.uniform(0, 10, n), g.uniform(-1, 1, n)
    won = (g.random(n) < 1 / (1 + np.exp(-(0.3 * (x - 5) + z)))).astype(int)
    return pd.DataFrame({"x": x, "z": z, "y": 30 + x + 2 * z + 3 * g.standard_normal(n), "won": won})


@pytest.mark.parametrize(
    ("formula", "loss", "zeta", "way"),
    [
        ("y ~ x + z", "squared", 0.0, "SL"),
        ("won ~ x + z", "logistic", 0.0, "SL"),
        ("won ~ x + z", "logistic", 0.2, "RB, 0.2 of the rows verbatim"),
    ],
)
def test_what_is_expected_is_what_fits_have(tmp_path: Path, formula: str, loss: str, zeta: float, way: str) -> None:
    asked: dict[str, Any] = {"noise": 0.4, "zeta": zeta, "accept_verbatim_rows": True, "public": ["y", "won"]}
    practice = _records(20_000, 1)
    plan = cf.local.plan(SCHEMA, ["x", "z"], formula=formula, loss=loss, n=4_000, practice=practice, **asked)
    seen = []
    for k in range(8):
        place = tmp_path / f"{k}.parquet"
        cf.local.protect(_records(4_000, k + 2), SCHEMA, place, columns=["x", "z"], ledger=None, seed=k, **asked)
        seen.append(cf.local.fit(place, formula, loss=loss).bse)
    expected = plan.outlook.frame.loc[way, list(seen[0].index)].astype(float)
    assert np.median(np.array(seen), axis=0) == pytest.approx(expected.to_numpy(), rel=0.12)


LEVELLED = cf.Schema(
    {
        "x": cf.Numeric(0, 10, on_missing=5),
        "region": cf.Categorical(["n", "s", "w"], on_missing="n"),
        "won": cf.Categorical(["no", "yes"], on_missing="no"),
        "y": cf.Numeric(0, 60),
    },
    dataset="survey",
)


def _levelled(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    x, region = g.uniform(0, 10, n), g.choice(["n", "s", "w"], n, p=[0.5, 0.3, 0.2])
    won = np.where(g.random(n) < 1 / (1 + np.exp(-0.3 * (x - 5))), "yes", "no")
    y = 30 + x + 2 * (region == "s") + 3 * g.standard_normal(n)
    return pd.DataFrame({"x": x, "region": region, "won": won, "y": y})


@pytest.mark.parametrize(
    ("formula", "loss", "columns", "levels", "zeta", "way"),
    [
        ("y ~ x + region", "squared", ["x"], {"region": 1.5}, 0.0, "SL"),
        ("y ~ region", "squared", [], {"region": 1.5}, 0.0, "SL"),
        ("won ~ x", "logistic", ["x"], {"won": 2.0}, 0.2, "RB, 0.2 of the rows verbatim"),
        ("won ~ x + region", "squared", ["x"], {"won": 2.5, "region": 2.5}, 0.0, "SL"),
    ],
)
def test_protected_levels_are_expected_as_fits_have_them(
    tmp_path: Path, formula: str, loss: str, columns: list[str], levels: dict[str, float], zeta: float, way: str
) -> None:
    public = ["y"] if formula.startswith("y") else []
    asked: dict[str, Any] = {"columns": columns, "levels": levels, "public": public}
    if columns:
        asked |= {"noise": 0.3, "zeta": zeta, "accept_verbatim_rows": True}
    plan = cf.local.plan(LEVELLED, formula=formula, loss=loss, n=6_000, practice=_levelled(12_000, 1), **asked)
    seen = []
    for k in range(6):
        place = tmp_path / f"{k}.parquet"
        cf.local.protect(_levelled(6_000, k + 2), LEVELLED, place, ledger=None, seed=k, **asked)
        seen.append(cf.local.fit(place, formula, loss=loss).bse)
    frame = plan.outlook.frame
    expected = frame.loc[way, list(seen[0].index)].astype(float)
    assert np.median(np.array(seen), axis=0) == pytest.approx(expected.to_numpy(), rel=0.12)
    assert (expected > 1.2 * frame.loc["without protection", expected.index].astype(float)).all()


@pytest.mark.parametrize("level", ["record", "attribute"])
def test_levels_take_their_epsilon_from_the_request(level: str) -> None:
    asked: dict[str, Any] = {"level": level, "public": ["y"], "privacy": cf.ApproxDP(4.0, 0.01)}
    plan = cf.local.plan(LEVELLED, ["x"], levels={"region": 1.0, "won": 1.5}, **asked)
    assert 0.005 < float(plan.statement.curve.delta(4.0)) <= 0.01
    alone = cf.local.plan(LEVELLED, ["x"], **asked)
    assert plan.protection.columns["x"].sd > alone.protection.columns["x"].sd
    with refuses(cf.errors.PlanError):
        cf.local.plan(LEVELLED, ["x"], levels={"region": 4.5}, **asked)
    with refuses(cf.errors.PlanError):
        cf.local.plan(LEVELLED, [], levels={"region": 1.0}, privacy=cf.GDP(1.0))


def test_levels_stand_beside_the_raw_sample_and_a_keeper() -> None:
    frame = cf.local.plan(
        LEVELLED,
        ["x"],
        levels={"won": 2.0},
        privacy=cf.ApproxDP(6.0, 0.01),
        formula="won ~ x",
        loss="logistic",
        n=20_000,
    ).outlook.frame
    for name in (
        "SL",
        "RB, 0.005 of the rows verbatim",
        "SDR, 0.005 of the rows verbatim",
        "DR, 0.005 of the rows verbatim",
    ):
        assert frame.loc[name, "x"] > frame.loc["a steward who sees the records", "x"]
    raw, bare = frame.loc["raw sample of 0.01 of the rows"], frame.loc["without protection"]
    assert raw["x"] / bare["x"] == pytest.approx(10)
    # every record of the keeper's levels is true
    assert frame.loc["SL", "x"] > 1.5 * bare["x"]


def test_the_raw_sample_stands_beside_every_request() -> None:
    plan = cf.local.plan(
        SCHEMA,
        ["x", "z"],
        public=["won"],
        privacy=cf.ApproxDP(2.0, 0.01),
        formula="won ~ x + z",
        loss="logistic",
        n=20_000,
    )
    frame = plan.outlook.frame
    raw, bare = frame.loc["raw sample of 0.01 of the rows"], frame.loc["without protection"]
    assert (raw["x"] / bare["x"], raw["z"] / bare["z"]) == pytest.approx((10, 10))
    assert frame.loc["a steward who sees the records", "x"] < frame.loc["SL", "x"] / 3
    assert "dominated" in "\n".join(plan.lines()) and frame.loc["SL", "x"] > raw["x"]
    # a wider guarantee needs less noise, and the raw sample has the same rows
    wide = cf.local.plan(SCHEMA, ["x"], public=["y"], privacy=cf.ApproxDP(6.0, 0.01), formula="y ~ x", n=20_000)
    said = "\n".join(wide.lines())
    assert "dominated" not in said and "promises as much: SL has" in said


def test_methods_stand_side_by_side() -> None:
    plan = cf.local.plan(
        SCHEMA,
        ["x", "z"],
        public=["y"],
        privacy=cf.ApproxDP(3.0, 1e-3),
        level="attribute",
        formula="y ~ x + z",
        n=9_000,
    )
    frame = plan.outlook.frame
    names = [name.partition(",")[0] for name in frame.index]
    for name in ("SL", "RB", "SDR", "DR", "Laplace noise", "Gaussian noise"):
        assert name in names
    rb, sdr = (frame.loc[f"{name}, 0.0005 of the rows verbatim"] for name in ("RB", "SDR"))
    assert rb["x"] == pytest.approx(sdr["x"], rel=1e-3), "of the squared loss they are one"
    assert "a steward who sees the records" not in frame.index, "whose unit is a record, and not an attribute"
    assert (frame["x"].drop("without protection") > frame.loc["without protection", "x"]).all()
    pure = cf.local.plan(SCHEMA, ["x"], public=["y"], privacy=cf.PureDP(2.0), formula="y ~ x", n=9_000).outlook.frame
    assert list(pure.index) == ["without protection", "SL"], (
        "no delta: neither rows without noise nor a central method of this loss"
    )
    kinked = cf.local.plan(
        SCHEMA, ["x"], public=["y"], noise=0.3, formula="y ~ x", loss="absolute", n=9_000
    ).outlook.frame
    assert np.isnan(kinked.loc["SL", "Intercept"]) and kinked.loc["SL", "x"] > kinked.loc["without protection", "x"]


@pytest.mark.parametrize(
    "asked",
    [
        {"formula": "y ~ x"},
        {"n": 100},
        {"formula": "y ~ x", "n": 1},
        {"formula": "w ~ x", "n": 100},
        {"formula": "y ~ x", "n": 100, "loss": "cubic"},
        {"formula": "y ~ x", "n": 100, "practice": pd.DataFrame({"x": [1.0]})},
    ],
)
def test_what_a_plan_refuses(asked: dict[str, Any]) -> None:
    with refuses(cf.errors.PlanError):
        cf.local.plan(SCHEMA, ["x"], public=["y"], noise=0.5, **asked)


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_a_response_that_is_published_as_levels_is_refused_before_anything_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    schema = cf.Schema(
        {"age": cf.Numeric(18, 90, on_missing=50), "ill": cf.Categorical(["no", "yes"], on_missing="no")},
        dataset="survey",
    )
    asked: dict[str, Any] = {"public": ("ill",), "privacy": cf.ApproxDP(2.0, 1e-3), "formula": "ill ~ age", "n": 5_000}
    with refuses(PlanError):
        cf.local.plan(schema, ("age",), loss=loss, **asked)
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(schema.to_toml())
    call = ("local", "plan", "ill ~ age", "--schema", "s.toml", "--columns", "age", "--public", "ill", "--epsilon", "2")
    done = run(*call, "--delta", ".001", "--n", "5000", "--loss", loss)
    assert done.code == 3 and "--levels ill=1.0" in " ".join(done.err.split()) and "charge" not in done.err


def test_the_command_shows_the_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(
        'dataset = "survey"\n[columns.x]\nkind = "numeric"\nlow = 0\nhigh = 10\non_missing = 5\n'
        '[columns.y]\nkind = "numeric"\nlow = 0\nhigh = 60\n'
    )
    asked = ("local", "plan", "y ~ x", "--schema", "schema.toml", "--columns", "x", "--public", "y", "--n", "5000")
    shown = good(*asked, "--epsilon", "3", "--delta", ".01")
    assert "raw sample of 0.01 of the rows" in shown.out and "a steward who sees" in shown.out
    told = json.loads(good(*asked, "--noise", ".5", "--zeta", ".1", "--json").out)
    ways = {way["way"]: way["errors"]["x"] for way in told["ways"]}
    assert ways["raw sample of 0.1 of the rows"] == pytest.approx(ways["without protection"] * sqrt(10))
    assert run(*asked).code == 3, "neither a guarantee nor noise"
    text = Path("schema.toml").read_text()
    Path("schema.toml").write_text(text + '[columns.g]\nkind = "categorical"\nlevels = ["a", "b"]\non_missing = "a"\n')
    levels = (*asked[:2], "y ~ g", *asked[3:5], "--levels", "g=1.5", *asked[7:])
    told = json.loads(good(*levels, "--epsilon", "3", "--delta", ".01", "--json").out)
    assert [way["way"] for way in told["ways"]][:3] == ["without protection", "SL", "raw sample of 0.01 of the rows"]
    assert told["randomised"]["g"]["epsilon"] == pytest.approx(1.5)
    assert list(tmp_path.iterdir()) == [tmp_path / "schema.toml"]
