"""Treatment effects of a synthetic trial table: what they are of, their size and coverage, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.cli.cli_runner import good, run
from tests.messages import refuses

import confide as cf
from confide.ask.synthesis import refit, synthesize, treatment_effects
from confide.core import seal
from confide.errors import PlanError, ReleaseError
from confide.methods.synthesis.effects import treatment_effects_of
from confide.synthesis import SyntheticTable

ARMS = ["placebo", "low", "high"]
SCHEMA = cf.Schema(
    {
        "arm": cf.Categorical(ARMS),
        "treated": cf.Integer(0, 1),
        "age": cf.Integer(20, 80),
        "y": cf.Numeric(0, 100),
        "died": cf.Integer(0, 1),
    },
    dataset="trial",
)
DRUG = 5.0


def trial(seed: int, n: int = 3_000, effect: float = DRUG) -> pd.DataFrame:
    """Arms at random; only the third has an effect. The outcome bends with age, and varies more in the treated arms."""
    g = np.random.default_rng(seed)
    arm, age = g.integers(0, 3, n), g.integers(20, 81, n)
    bend = ((age - 50) / 30) ** 2
    return pd.DataFrame(
        {
            "arm": np.array(ARMS)[arm],
            "treated": (arm == 2).astype(int),
            "age": age,
            "y": np.clip(40 + 6 * bend + effect * (arm == 2) + (8 + 3 * arm) * g.normal(size=n), 0, 100),
            "died": (g.random(n) < 0.3 + 0.1 * bend - 0.1 * (arm == 2)).astype(int),
        }
    )


def made(folder: Path, formula: str = "y ~ arm + age", mu: float = 1.0, **more: Any) -> Path:
    path = folder / "trial.parquet"
    synthesize(
        trial(1),
        formula,
        schema=SCHEMA,
        privacy=cf.GDP(mu),
        ledger=None,
        path=path,
        noise=cf.noise.SimulatedNoise(3),
        **more,
    )
    return path


def test_effects_are_the_coefficients_of_the_release(tmp_path: Path) -> None:
    path = made(tmp_path)
    fit, found = refit(path), treatment_effects(path, "arm")
    own = ["arm[T.low]", "arm[T.high]"]
    assert found.names == ("low - placebo", "high - placebo") and found.control == "placebo"
    assert found.adjusted == ("age",) and found.status == "valid"
    for verb in ("params", "bse", "pvalues", "privacy_share"):
        assert getattr(found, verb).tolist() == getattr(fit, verb)[own].tolist()
    assert (found.conf_int().to_numpy() == fit.conf_int().loc[own].to_numpy()).all()
    joint, terms = found.wald_test(np.eye(2)), fit.wald_test_terms().loc["arm"]
    assert (joint.statistic, joint.pvalue) == pytest.approx((terms["statistic"], terms["pvalue"]), rel=1e-9)
    text = found.summary()
    assert "Effects of arm on y, adjusted for age" in text and "no arm differs from placebo: F(2, " in text
    assert found.to_dict()["control"] == "placebo"


def test_another_control_turns_the_comparison(tmp_path: Path) -> None:
    path = made(tmp_path)
    first, found = treatment_effects(path, "arm"), treatment_effects(path, "arm", control="high")
    assert found.names == ("placebo - high", "low - high")
    assert found.params["placebo - high"] == -first.params["high - placebo"]
    assert found.privacy_share["placebo - high"] == first.privacy_share["high - placebo"]
    own = refit(path).t_test({"gap": {"arm[T.low]": 1, "arm[T.high]": -1}})
    assert found.params["low - high"] == pytest.approx(own.effect[0])
    assert found.bse["low - high"] == pytest.approx(own.sd[0])
    assert found.conf_int().loc["low - high"].tolist() == pytest.approx(own.conf_int().iloc[0].tolist())
    # all arms are alike whichever they are compared with
    pvalues = [one.wald_test(np.eye(2)).pvalue for one in (first, found)]
    assert pvalues[0] == pytest.approx(pvalues[1], rel=0.3, abs=1e-6)
    assert 0 < found.privacy_share["low - high"] < 1


@pytest.mark.parametrize(
    ("formula", "treatment", "names"),
    [
        ("y ~ treated + age", "treated", ("1 - 0",)),
        ("died ~ arm + age", "arm", ("low - placebo", "high - placebo")),
        ("y ~ 0 + arm", "arm", ("low - placebo", "high - placebo")),
        ("y ~ arm", "arm", ("low - placebo", "high - placebo")),
    ],
)
def test_other_formulas(tmp_path: Path, formula: str, treatment: str, names: tuple[str, ...]) -> None:
    found = treatment_effects(made(tmp_path, formula, mu=8.0), treatment)
    records = trial(1)
    records["arm"] = pd.Categorical(records["arm"], ARMS)
    plain = smf.ols(formula.replace("0 + ", ""), records).fit(cov_type="HC1")
    last = plain.params.filter(like=treatment).iloc[-1]
    error = plain.bse.filter(like=treatment).iloc[-1]
    assert found.names == names and found.status == "valid"
    # at mu = 8 the noise is small beside sampling error
    assert abs(found.params.iloc[-1] - last) < error
    assert 0.8 < found.bse.iloc[-1] / error < 1.7


def test_an_arm_that_noise_hides_is_left_out_alone(tmp_path: Path) -> None:
    schema = cf.Schema(
        {"arm": cf.Categorical(["control", "drug", "rare"]), "x": cf.Numeric(0, 1), "y": cf.Numeric(0, 100)}
    )
    g, n = np.random.default_rng(1), 4_000
    arm = np.where(np.arange(n) < 2, "rare", g.choice(["control", "drug"], n))
    records = {"arm": arm, "x": g.random(n), "y": 50 + 5 * (arm == "drug") + 10 * g.normal(size=n)}
    path = tmp_path / "t.parquet"
    synthesize(
        records,
        "y ~ arm + x",
        schema=schema,
        privacy=cf.GDP(1.0),
        ledger=None,
        path=path,
        noise=cf.noise.SimulatedNoise(1),
    )
    found = treatment_effects(path, "arm")
    assert found.status == refit(path).status == "partial"
    assert np.isfinite(found.bse["drug - control"]) and np.isnan(found.params["rare - control"])
    assert found.reason and "rare" in found.reason
    assert "no arm differs" not in found.summary()
    # with the hidden arm as the control nothing is told
    none = treatment_effects(path, "arm", control="rare")
    assert none.status == "imprecise" and np.isnan(none.bse).all()


def test_arms_are_answered_though_another_term_is_not(tmp_path: Path) -> None:
    columns = {
        "arm": cf.Categorical(["control", "drug"]),
        "site": cf.Categorical(["a", "b", "c"]),
        "x": cf.Numeric(0, 1),
    }
    g, n = np.random.default_rng(2), 4_000
    records: dict[str, Any] = {"arm": g.choice(["control", "drug"], n), "x": g.random(n)}
    records["site"] = np.where(np.arange(n) < 2, "c", g.choice(["a", "b"], n))
    records["y"] = 50 + 5 * (records["arm"] == "drug") + 10 * g.normal(size=n)
    path = tmp_path / "t.parquet"
    synthesize(
        records,
        "y ~ arm + x + site",
        schema=cf.Schema({**columns, "y": cf.Numeric(0, 100)}),
        privacy=cf.GDP(1.0),
        ledger=None,
        path=path,
        noise=cf.noise.SimulatedNoise(1),
    )
    fit, found = refit(path), treatment_effects(path, "arm")
    assert fit.status == "partial" and found.status == "valid" and found.reason == ""
    assert found.bse["drug - control"] == fit.bse["arm[T.drug]"]


# size and coverage --------------------------------------------------------------------------------------------------------

RUNS, MU = 60, 0.25


@pytest.fixture(scope="module")
def at_the_null() -> tuple[list[float], list[float], int]:
    """p-values of "no arm differs" where none does, by the release and by least squares on the rows; and how many intervals hold 0."""
    method = SyntheticTable("y ~ arm + age", cells=16)
    plan = method.plan(SCHEMA, cf.GDP(MU))
    released, naive, held = [], [], 0
    for seed in range(RUNS):
        done = seal(method, cf.read(trial(100 + seed, 1_500, 0.0), SCHEMA), plan, cf.noise.SimulatedNoise(seed))
        found = treatment_effects_of(method.regression.infer(done), "arm", None)
        assert found.status == "valid"
        released.append(float(found.wald_test(np.eye(2)).pvalue))
        ends = found.conf_int().to_numpy()
        held += int(((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).sum())
        rows = method.build(done).frame
        naive.append(float(smf.ols("y ~ arm + age", rows).fit().f_test("arm[T.low] = 0, arm[T.high] = 0").pvalue))
    return released, naive, held


def test_the_test_keeps_its_size_and_that_of_the_rows_does_not(at_the_null) -> None:
    released, naive, _ = at_the_null
    # of 60 tests with a size of .05 more than 11 reject with a probability of 6e-5
    assert sum(p < 0.05 for p in released) <= 11
    assert sum(p < 0.05 for p in naive) > 11


def test_intervals_hold_the_effect(at_the_null) -> None:
    # of 60 pairs of intervals that each hold it with .95, independent from pair to pair: fewer than 100 of 120 with less than 1e-4
    assert at_the_null[2] >= 100


# what is refused ----------------------------------------------------------------------------------------------------------


def test_what_the_release_does_not_hold_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path, "y ~ arm + age + treated:age")
    for treatment, more in (
        ("ram", {}),
        ("age", {}),
        ("treated", {}),
        ("died", {}),
        ("arm", {"control": "hgh"}),
        ("arm", {"formula": "y ~ age"}),
    ):
        with refuses(PlanError):
            treatment_effects(path, treatment, **more)
    with refuses(PlanError):
        treatment_effects(made(tmp_path), "age")
    path = made(tmp_path, "y ~ arm + age + treated:age")
    with refuses(PlanError):
        treatment_effects([path], "arm")
    smaller = treatment_effects(path, "arm", formula="y ~ arm")
    assert smaller.status == "imprecise" and np.isnan(smaller.pvalues).all()
    changed = pd.read_parquet(path)
    changed.iloc[:-1].to_csv(tmp_path / "cut.csv", index=False)
    with refuses(ReleaseError):
        treatment_effects(tmp_path / "cut.csv", "arm")


def test_rows_of_bins_hold_no_effects(tmp_path: Path) -> None:
    with refuses(PlanError):
        treatment_effects(made(tmp_path, generator="binagg"), "arm")


# the command line ---------------------------------------------------------------------------------------------------------


def test_the_command_prints_the_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(made(tmp_path))
    facts = good("refit", path, "--treatment", "arm", "--control", "low", "--csv", "effects.csv", "--json").json
    own = treatment_effects(path, "arm", control="low")
    assert facts["result"]["control"] == "low"
    assert pd.read_csv("effects.csv")["estimate"].tolist() == own.params.tolist()
    assert "no arm differs from placebo" in good("refit", path, "--treatment", "arm").out
    assert run("refit", path, "--control", "low").code == 2
    assert run("refit", path, path, "--treatment", "arm").code == 2
    assert run("refit", path, "--treatment", "age").code == 3
