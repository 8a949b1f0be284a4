"""Logistic regression by noise on a penalized loss: contract, audit, exactness, intervals, solver, errors, planted faults."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from tests.few import few
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import seal, threshold
from confide.errors import NoConversion, NoResult, PlanError, PrivacyError
from confide.noise import SimulatedNoise
from confide.sums.blocks.record_block import Collected
from confide.testing import check_method
from confide.testing.test_data import ZeroNoise
from confide_lab.benchmarks.planted.logistic import LOGISTIC, evaluations
from confide_lab.methods.logistic.labelled_rows import CurvatureRows, LabelledRows
from confide_lab.methods.logistic.logistic_minimiser import LeastCurvature, PenalizedLoss, newton_steps
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticOutput, LogisticPTR
from confide_lab.methods.logistic.perturbed_objective import PerturbedObjective

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-2, 3),
        "b": cf.Numeric(0, 10),
        "c": cf.Categorical(["u", "v", "w"]),
        "y": cf.Categorical(["no", "yes"]),
    },
    dataset="survey",
)
LINE = cf.Schema({"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
ASKED = cf.ApproxDP(1.0, 1e-6)
METHODS = {"objective": LogisticObjective, "output": LogisticOutput, "ptr": LogisticPTR}
REQUESTS = {"objective": ASKED, "output": cf.GDP(1.0), "ptr": cf.GDP(1.0, 1e-6)}
FORMULA = "y ~ a + b + c"
_SHARE = Fraction(15, 100)
BETA = np.array([0.3, 0.5, -0.2, 0.7, 0.0])


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n), "c": g.choice(["u", "v", "w"], n)})
    log_odds = BETA[0] + BETA[1] * frame.a + BETA[2] * frame.b + BETA[3] * (frame.c == "v")
    frame["y"] = np.where(g.random(n) < special.expit(log_odds), "yes", "no")
    return frame


def released(
    frame: pd.DataFrame,
    seed: int = 1,
    schema: cf.Schema = SCHEMA,
    formula: str = FORMULA,
    mechanism: str = "objective",
    **settings: Any,
):
    method = METHODS[mechanism](formula, **settings)
    made = cf.release(method, cf.read(frame, schema), REQUESTS[mechanism], ledger=None, noise=SimulatedNoise(seed))
    return method.infer(made)


# contract and audit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", few(REQUESTS, "output"))
def test_contract(mechanism: str) -> None:
    method = METHODS[mechanism](FORMULA)
    contract = check_method(method, SCHEMA, privacy=REQUESTS[mechanism], raises=False, replications=20)
    assert contract.ok, contract


@pytest.mark.parametrize(
    "mechanism", [pytest.param(one, marks=[pytest.mark.long] * (one != "output")) for one in REQUESTS]
)
def test_audit(mechanism: str) -> None:
    plain = METHODS[mechanism]("y ~ a")
    for relation in plain.relations if mechanism == "output" else ("add-remove",):
        found = cf.audit.audit(plain, SCHEMA, privacy=REQUESTS[mechanism], relation=relation, runs=0, seed=1)
        assert found.violated == (), found


@pytest.mark.parametrize("fault", LOGISTIC, ids=lambda fault: fault.name)
def test_planted_faults_are_caught(fault: object) -> None:
    assert not fault.caught(0).ok  # type: ignore[attr-defined]
    assert fault.passed(0).ok  # type: ignore[attr-defined]


# exactness -----------------------------------------------------------------------------------------------------------


def _reference(frame: pd.DataFrame, ridge: float, cut: float, tilt: np.ndarray) -> np.ndarray:
    """The tilted weighted minimiser in scaled units by a general-purpose optimiser."""
    z = np.column_stack(
        [
            np.ones(len(frame)),
            (frame.a - 0.5) / 2.5,
            (frame.b - 5) / 5,
            2.0 * (frame.c == "v") - 1,
            2.0 * (frame.c == "w") - 1,
        ]
    )
    rows = z * np.where(frame.y == "yes", 1.0, -1.0)[:, None]
    w = np.minimum(1, cut / np.linalg.norm(z, axis=1))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        margin = rows @ theta
        value = float(w @ np.logaddexp(0, -margin) + ridge * theta @ theta / 2 + tilt @ theta)
        return value, ridge * theta + tilt - rows.T @ (w * special.expit(-margin))

    found = optimize.minimize(objective, np.zeros(z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return np.asarray(found.x)


def _collected(frame: pd.DataFrame, schema: cf.Schema, formula: str) -> tuple[LabelledRows, np.ndarray]:
    design, _ = LogisticObjective(formula)._design(schema)
    labelled = LabelledRows(design)
    (rows,) = cf.read(frame, schema).aggregate(Collected(labelled))
    return labelled, rows


def test_the_minimiser_is_that_of_the_weighted_tilted_loss() -> None:
    frame = records(500, 1)
    labelled, rows = _collected(frame, SCHEMA, FORMULA)
    for ridge, tilt in ((4.0, np.zeros(5)), (0.5, np.array([5.0, -3, 0, 20, 1]))):
        found = PenalizedLoss(float(labelled.steps), 1.5, ridge).minimiser(rows, tilt, 1e-9)
        np.testing.assert_allclose(found, _reference(frame, ridge, 1.5, tilt), atol=1e-5)


def test_without_noise_it_is_logistic_regression() -> None:
    """A small ridge, no weights, no noise: the maximum likelihood estimates in the data's units, the ridge's bias taken off."""
    frame = records(4_000, 2)
    method = LogisticObjective(FORMULA, row_bound=3)
    made = cf.release(method, cf.read(frame, SCHEMA), cf.ApproxDP(30.0, 1e-6), ledger=None, noise=ZeroNoise())  # type: ignore[arg-type]
    found = method.infer(made)
    assert found.status == "valid"
    matrix = found.design.matrix(frame)  # type: ignore[union-attr]
    y = (frame.y == "yes").to_numpy()

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        margin = matrix @ beta
        return float(np.logaddexp(0, margin).sum() - margin[y].sum()), matrix.T @ (special.expit(margin) - y)

    exact = optimize.minimize(loss, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(found.params, exact, atol=1e-4)
    assert list(found.params.index) == ["Intercept", "a", "b", "c[T.v]", "c[T.w]"]


def test_an_outcome_in_words_is_that_in_numbers() -> None:
    frame = records(300, 3)
    numbers = cf.Schema({**{k: v for k, v in SCHEMA.columns.items() if k != "y"}, "y": cf.Integer(0, 1)})
    fine = cf.Schema({**{k: v for k, v in SCHEMA.columns.items() if k != "y"}, "y": cf.Numeric(0, 1)})
    coded = frame.assign(y=(frame.y == "yes").astype(int))
    words = released(frame)
    for schema in (numbers, fine):
        assert released(coded, schema=schema).params.equals(words.params)
    assert words.levels == ("no", "yes") and "no" in words.summary()
    # a label that is no level and a missing one are dropped; a public rule may say otherwise
    more = pd.concat([frame, frame.iloc[:5].assign(y="maybe"), frame.iloc[:5].assign(y=None)])
    assert released(more).params.equals(words.params)
    ruled = cf.Schema({**dict(SCHEMA.columns), "y": cf.Categorical(["no", "yes"], on_missing="yes")})
    filled = released(frame.assign(y=frame.y.where(frame.index > 20, None)), schema=ruled)
    assert filled.params.equals(released(frame.assign(y=frame.y.where(frame.index > 20, "yes")), schema=ruled).params)


def test_without_an_intercept_the_line_goes_through_one_half() -> None:
    g = np.random.default_rng(5)
    frame = pd.DataFrame({"x0": g.uniform(-1, 1, 6_000), "x1": g.uniform(-1, 1, 6_000)})
    frame["y"] = (g.random(6_000) < special.expit(1.5 * frame.x0 - frame.x1)).astype(int)
    found = released(frame, schema=LINE, formula="y ~ 0 + x0 + x1")
    assert list(found.params.index) == ["x0", "x1"] and found.status == "valid"
    assert (np.abs(found.params - [1.5, -1.0]) < 5 * found.bse).all()
    assert found.predict_proba({"x0": [0.0], "x1": [0.0]}).to_numpy().tolist() == [[0.5, 0.5]]


# the solver ----------------------------------------------------------------------------------------------------------


def _tables(n: int, d: int, g: np.random.Generator) -> dict[str, np.ndarray]:
    """y z of unlike kinds, shape (d + 1, n)."""
    z = np.vstack([np.ones(n), g.uniform(-1, 1, (d, n))])
    margin = g.standard_normal(d + 1) @ z
    noisy = np.where(g.random(n) < special.expit(margin), 1.0, -1.0)
    outliers = np.sign(margin)
    outliers[: max(n // 1000, 1)] *= -1
    return {
        "plain": z * noisy,
        "corners": np.vstack([np.ones(n), np.sign(z[1:])]) * noisy,
        "steep": z * np.sign(margin + 0.03 * g.standard_normal(n)),
        "separable": z * np.sign(margin),
        "one outcome": z,
        "all alike": np.repeat(z[:, :1], n, axis=1),
        "rare": z * np.where(g.random(n) < 1e-3, 1.0, -1.0),
        "outliers": z * outliers,
    }


@pytest.mark.parametrize("n", [1, 30, 2_000, 40_000])
def test_the_fixed_steps_are_enough(n: int) -> None:
    """At ridges from 20 K down to K/10, with a large tilt: the tolerance is met after the public number of steps."""
    g = np.random.default_rng(n)
    for d in (1, 6):
        design, _ = LogisticObjective("y ~ " + " + ".join(f"x{j}" for j in range(d)))._design(
            cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(d)}, "y": cf.Integer(0, 1)})
        )
        labelled, cut = LabelledRows(design), sqrt(1 + d / 3)
        for rows in _tables(n, d, g).values():
            coded = np.rint(rows * labelled.steps)
            for epsilon in (0.05, 1.0, 10.0):
                ridge, sd = cut * labelled.longest / epsilon, 4 * cut / epsilon
                calls = []
                plain = _advance_counter(calls)
                try:
                    objective = PenalizedLoss(float(labelled.steps), cut, ridge)
                    theta = objective.minimiser(coded, g.standard_normal(d + 1) * sd, sd * 2.0**-30)
                finally:
                    _restore(plain)
                assert np.isfinite(theta).all()
                assert len(calls) == newton_steps(n, epsilon) and not any(how.get("careful") for how in calls)


def _advance_counter(calls: list[dict[str, object]]) -> object:
    from confide_lab.methods.logistic import logistic_minimiser as solver

    plain = solver._Search.advance

    def counted(self: object, **how: object) -> None:
        calls.append(how)
        plain(self, **how)  # type: ignore[arg-type]

    solver._Search.advance = counted  # type: ignore[method-assign, assignment]
    return plain


def _restore(plain: object) -> None:
    from confide_lab.methods.logistic import logistic_minimiser as solver

    solver._Search.advance = plain  # type: ignore[method-assign, assignment]


def test_the_number_of_steps_does_not_follow_from_the_records() -> None:
    assert len(evaluations(lambda objective, rows, tilt: objective.minimiser(rows, tilt, 1e-6))) == 1


def test_a_start_that_needs_more_gets_more() -> None:
    """From a tolerance that the fixed steps are kept from reaching, careful steps get there."""
    labelled, rows = _collected(records(200, 1), SCHEMA, FORMULA)
    from confide_lab.methods.logistic import logistic_minimiser as solver

    search = solver._Search(PenalizedLoss(float(labelled.steps), 1.5, 0.01), rows, np.full(5, 3.0))
    search.move(np.full(5, 300.0))
    for _ in range(400):
        if np.linalg.norm(search.gradient()) < 1e-8:
            break
        search.advance(careful=True)
    assert np.linalg.norm(search.gradient()) < 1e-8


# the released law ----------------------------------------------------------------------------------------------------


def test_theta_of_an_empty_table_is_the_tilt() -> None:
    """theta~ = -b/lam there: standard deviation s/lam within 5 standard errors over 150 releases, no coordinate tied to another."""
    method = LogisticObjective("y ~ x0 + x1", inference=False)
    plan = cf.plan(method, LINE, ASKED)
    empty = cf.read(pd.DataFrame({"x0": [], "x1": [], "y": []}, dtype=float), LINE)
    drawn = np.array([seal(method, empty, plan, SimulatedNoise(k))["logistic"].decode() for k in range(150)])
    sd = plan.constants["tilt sd"] / plan.constants["ridge"]
    assert (np.abs(drawn.std(axis=0) / sd - 1) < 5 / sqrt(300)).all()
    assert (np.abs(drawn.mean(axis=0)) < 5 * sd / sqrt(150)).all()
    assert (np.abs(np.corrcoef(drawn.T)[np.triu_indices(3, 1)]) < 0.35).all()


@pytest.mark.few("1.0-False")
@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (0.1, True)])
def test_a_real_release_tells_a_record_apart_as_well_as_claimed(factor: float, caught: bool) -> None:
    """An empty table against one record, "y ~ 1"; with 10 % of the noise the attack must succeed (power)."""
    claim = cf.ApproxDP(0.5, 0.02)
    method = LogisticObjective("y ~ 1", inference=False)
    schema = cf.Schema({"y": cf.Integer(0, 1)})
    plan = cf.plan(method, schema, claim)
    level = plan.requested
    design, _ = method._design(schema)
    noise, made = SimulatedNoise(7), method._perturbed(design, level)  # type: ignore[arg-type]
    made = replace(made, sd=made.sd * factor)
    one = np.full((1, 1), float(made.labelled.steps))

    def attacked(table: np.ndarray, runs: int) -> np.ndarray:
        return np.array([made.draw(table, noise)[0] for _ in range(runs)])

    found = cf.audit.epsilon_lower_bound(
        attacked, one[:, :0], one, runs=1_000, claim=claim, vectorized=True, confidence=1 - 1e-6
    )
    assert (found.verdict == "violated") is caught


def test_what_is_added_to_theta_hides_what_the_solver_leaves() -> None:
    """The parts of the proof, in numbers: 2 r/h + sqrt(p) steps over sigma is at most 1/32 of mu, and the noise is small beside b's."""
    labelled, _ = _collected(records(10, 1), SCHEMA, FORMULA)
    for epsilon in (0.1, 1.0, 5.0):
        made = PerturbedObjective.of(
            labelled, 1.5, 1.5 * labelled.longest / epsilon, epsilon, 1e-6, "add-remove", _SHARE
        )
        radius = (made.tolerance + sqrt(5) * made.sd * 2.0**-40) / made.ridge
        moved = 2 * radius / float(made.step) + sqrt(5)
        assert moved / sqrt(made.variance) <= cf.guarantees.gaussian_mu(epsilon, 1e-6) / 32
        assert made.output_sd < 1e-3 * made.sd / made.ridge
        # a Gaussian mechanism of the same budget without a Hessian: what is spent is 15 % of mu^2, and little more
        alone = 1.5 / (cf.guarantees.gaussian_mu(epsilon, 1e-6) * sqrt(0.85))
        assert alone <= made.sd <= alone * 1.01


def test_the_hessian_is_exact_and_its_noise_has_the_stated_variances() -> None:
    labelled, rows = _collected(records(300, 4), SCHEMA, FORMULA)
    theta = np.array([0.1, 0.5, -1.0, 0.3, 0.0])
    curvature = CurvatureRows(labelled, 1.5)
    objective = PenalizedLoss(float(labelled.steps), 1.5, 1.0)
    made = PerturbedObjective.of(labelled, 1.5, 6.0, 1.0, 1e-6, "add-remove", _SHARE)
    from confide_lab.methods.logistic.perturbed_objective import gram_of

    gram = gram_of(curvature.at(theta), rows).astype(float) / curvature.unit**2
    np.testing.assert_allclose(gram, objective.hessian(rows, theta) - np.eye(5), atol=1e-3)
    above = np.triu_indices(5)
    drawn = np.array([made.draw(rows[:, :0], SimulatedNoise(k))[5:] for k in range(300)])
    expected = np.where(above[0] == above[1], 1.0, sqrt(0.5)) * made.curvature_sd
    assert (np.abs(drawn.std(axis=0) / expected - 1) < 5 / sqrt(600)).all()
    assert float(made.bent) >= (2.0**40 / (cf.guarantees.gaussian_mu(1.0, 1e-6) * sqrt(0.15))) ** 2 * (1 - 1e-9)


def test_the_certificate_is_above_the_eigenvalue_as_rarely_as_said() -> None:
    """At a failure of 5 %: at most 5 % of 2,000 certificates, plus four standard errors; and not much less, or it would be wasteful."""
    frame = records(2_000, 6)
    method = LogisticPTR(FORMULA, inference=False)
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0, 0.05))
    statistic = plan.statistic("eigenvalue")
    assert isinstance(statistic, LeastCurvature)
    (least,) = cf.read(frame, SCHEMA).aggregate(statistic)
    spend = plan.spend("eigenvalue")
    failing = threshold(spend, plan.event.delta) * float(spend.step)  # type: ignore[union-attr]
    noise = SimulatedNoise(1).grid_gaussian(spend.scale, 2_000).astype(float) * float(spend.step)
    above = (noise > failing).mean()
    assert 0.03 < above < 0.05 + 4 * sqrt(0.05 * 0.95 / 2_000)
    # what it gives is the same number less the quantile
    found = seal(method, cf.read(frame, SCHEMA), plan, SimulatedNoise(3))
    certified = (float(found["eigenvalue"].decode()[0]) - failing - 1) * statistic.reach / 1024
    step = float(found.public["step"][0])
    bound = -np.log1p(-labelled_share(statistic, certified)) / statistic.map.longest
    assert step * 1024 == pytest.approx(min(bound, statistic.slope / statistic.ridge), rel=1e-9)
    assert certified < float(least[0]) * statistic.reach / 1024 + 4 * sqrt(spend.scale) * float(spend.step)


def labelled_share(statistic: LeastCurvature, certified: float) -> float:
    return statistic.map.longest * statistic.slope / max(certified, statistic.ridge)


# intervals -----------------------------------------------------------------------------------------------------------


def test_intervals_cover_and_those_without_privacy_noise_do_not() -> None:
    """40 runs at n = 3,000, epsilon = 0.5: 95 % by the 99.9 % rule; the Hessian's alone, with the ridge and b forgotten, miss it."""
    truth, method = np.array([-0.5, 1.5, -1.0]), LogisticObjective("y ~ x0 + x1")
    plan = cf.plan(method, LINE, cf.ApproxDP(0.5, 1e-6))
    hits, naive = 0, 0
    for seed in range(40):
        g = np.random.default_rng(seed)
        frame = pd.DataFrame({"x0": g.uniform(-1, 1, 3_000), "x1": g.uniform(-1, 1, 3_000)})
        frame["y"] = (g.random(3_000) < special.expit(truth[0] + frame.x0 * truth[1] + frame.x1 * truth[2])).astype(int)
        release = seal(method, cf.read(frame, LINE), plan, SimulatedNoise(seed))
        found = method.infer(release)
        assert found.status == "valid"
        low, high = found.conf_int().to_numpy().T
        hits += int(((low <= truth) & (truth <= high)).sum())
        drawn = release["logistic"].decode()
        bent = np.zeros((3, 3))
        bent[np.triu_indices(3)] = drawn[3:]
        bent.T[np.triu_indices(3)] = drawn[3:]
        sd = np.sqrt(np.diag(np.linalg.inv(bent)))
        naive += int((np.abs(drawn[:3] - truth) <= 1.96 * sd).sum())
    assert stats.beta.ppf(0.9995, hits + 1, 120 - hits) >= 0.95 if hits < 120 else True
    assert stats.beta.ppf(0.9995, naive + 1, 120 - naive) < 0.95


def test_few_records_give_a_weak_status_and_no_interval() -> None:
    found = released(records(60, 1))
    assert found.status == "imprecise" and found.bse.isna().all() and np.isfinite(found.params).all()
    assert not found.has_intervals
    plain = released(records(60, 1), inference=False)
    assert plain.status == "valid" and "no_interval" in plain.flags and plain.bse.isna().all()
    # noise on the minimiser asks for a ridge whose bias cannot be taken off
    assert "no_interval" in released(records(20_000, 1), mechanism="output").flags


@pytest.mark.parametrize("mechanism", list(REQUESTS))
def test_a_separable_table_gives_finite_numbers(mechanism: str) -> None:
    g = np.random.default_rng(1)
    frame = pd.DataFrame({"x0": g.uniform(-1, 1, 5_000), "x1": g.uniform(-1, 1, 5_000)})
    frame["y"] = (frame.x0 > 0).astype(int)
    found = released(frame, schema=LINE, formula="y ~ x0 + x1", mechanism=mechanism)
    assert np.isfinite(found.params).all() and found.params["x0"] > 3
    assert ((found.predict(frame[["x0", "x1"]]) == "1") == (frame.y == 1)).mean() > 0.95


# results -------------------------------------------------------------------------------------------------------------


def test_predictions_and_odds() -> None:
    found = released(records(20_000, 1))
    public = records(5, 9).drop(columns="y")
    share = found.predict_proba(public)
    assert list(share.columns) == ["no", "yes"] and np.allclose(share.sum(axis=1), 1)
    log_odds = found.design.matrix(public) @ found.params.to_numpy()  # type: ignore[union-attr]
    np.testing.assert_allclose(share["yes"], special.expit(log_odds), atol=1e-12)
    assert found.predict(public).tolist() == ["yes" if p >= 0.5 else "no" for p in share["yes"]]
    assert found.predict(public.assign(a=np.nan)).isna().all()
    assert set(found.predict(public, threshold=0.999)) == {"no"}
    odds = found.odds_ratios()
    assert odds.loc["a", "odds_ratio"] == pytest.approx(exp(found.params["a"]))
    assert (odds["ci_low"] < odds["odds_ratio"]).all() and (odds["odds_ratio"] < odds["ci_high"]).all()
    assert found.to_dict()["levels"] == ["no", "yes"] and len(found.to_dict()["odds_ratio"]) == 5
    for threshold_ in (0, 1.5, True):
        with refuses(PlanError):
            found.predict(public, threshold=threshold_)  # type: ignore[arg-type]


def test_it_draws_reports_and_reads_as_other_tables_do(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "confide.guarantees.plain_words._RATES", 20
    )  # at which the report reads the curve, each a search of its own
    found = released(records(20_000, 1))
    assert "float64 solver" in found.summary(verbose=True) and "yes against no" in found.summary(verbose=True)
    assert found.plot().get_figure() is not None
    assert found.report(tmp_path / "report.html").exists()  # type: ignore[operator]
    assert found.wald_test("a = 0").pvalue < 0.01
    without = found.__class__(
        **{**found.__dict__, "status": "declined", "reason": "declined", "covariance": np.full((5, 5), np.nan)}
    )
    with pytest.raises(NoResult):
        without.predict(records(3, 1))


def test_the_ledger_is_charged_by_the_curve(tmp_path: object) -> None:
    ledger = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0, delta=1e-5))  # type: ignore[operator]
    done = cf.release(LogisticObjective(FORMULA), cf.read(records(100, 1), SCHEMA), ASKED, ledger=ledger)
    assert cf.verify(done, ledger).ok
    native, asked = done.plan.guarantees
    assert asked == cf.ApproxDP(1.0, 1e-6, relation="add-remove", assumptions=("float64 solver",))
    assert done.charged == native and native.to_approx(epsilon=1.0).delta <= 1e-6
    # (1, 1e-6) as a point costs its Gaussian curve's 1.52
    state = ledger.show()
    assert 0.06 < state.units["spent_amount"] / 2**40 < 0.08, state.units
    assert cf.Release.from_json(done.to_json()) == done


# errors --------------------------------------------------------------------------------------------------------------


def test_an_infeasible_ridge_names_the_least_one() -> None:
    design, _ = LogisticObjective(FORMULA)._design(SCHEMA)
    labelled = LabelledRows(design)
    least = PerturbedObjective.least_ridge(sqrt(1 + 4 / 3) * labelled.longest, 1.0, 1e-6, "add-remove", _SHARE)
    for ridge in (0.1, 0.99 * least):
        with refuses(PrivacyError):
            cf.plan(LogisticObjective(FORMULA, ridge=ridge), SCHEMA, ASKED)
    assert cf.plan(LogisticObjective(FORMULA, ridge=1.05 * least), SCHEMA, ASKED).constants["ridge"] == 1.05 * least
    with refuses(PlanError):
        cf.plan(LogisticPTR(FORMULA, ridge=1.0), SCHEMA, REQUESTS["ptr"])


def test_requests_that_have_no_guarantee_are_refused() -> None:
    for request in (cf.GDP(1.0), cf.ZCDP(0.1)):
        with refuses(NoConversion):
            cf.plan(LogisticObjective(FORMULA), SCHEMA, request)
    with refuses(NoConversion):
        cf.plan(LogisticObjective(FORMULA), SCHEMA, cf.PureDP(1.0))
    with refuses(PrivacyError):
        cf.plan(LogisticPTR(FORMULA), SCHEMA, cf.GDP(1.0))
    twice = cf.Schema(dict(SCHEMA.columns), rows_per_unit=2)
    for mechanism in ("objective", "ptr"):
        with refuses(PrivacyError):
            cf.plan(METHODS[mechanism](FORMULA), twice, REQUESTS[mechanism])
    assert cf.plan(LogisticOutput(FORMULA), twice, cf.GDP(1.0)).guarantee == cf.GDP(
        1.0, relation="add-remove", assumptions=("at most 2 rows per unit (declared, not enforced)", "float64 solver")
    )


def test_settings_and_outcomes_that_cannot_work_are_refused() -> None:
    for settings in (
        {"inference": 1},
        {"ridge": -1.0},
        {"row_bound": True},
        {"ridge": float("nan")},
    ):
        with pytest.raises(PlanError):
            LogisticObjective(FORMULA, **settings)  # type: ignore[arg-type]
    with refuses(PlanError):
        cf.plan(LogisticObjective("c ~ a"), SCHEMA, ASKED)
    with refuses(PlanError):
        cf.plan(LogisticObjective("a ~ b"), SCHEMA, ASKED)
    with refuses(PlanError):
        cf.plan(LogisticObjective("nobody ~ b"), SCHEMA, ASKED)


def test_intervals_in_clusters_and_surveys_are_refused() -> None:
    """Those of a penalized loss take records as independent and drawn alike."""
    schools = cf.Schema(dict(SCHEMA.columns), cluster=cf.Clusters("school", size=30))
    survey = cf.Schema({**SCHEMA.columns, "w": cf.Numeric(0, 9)}, design=cf.SurveyDesign(weight="w"))
    for mechanism in ("objective", "ptr"):
        with refuses(PlanError):
            cf.plan(METHODS[mechanism](FORMULA), schools, REQUESTS[mechanism])
        with refuses(PlanError):
            cf.plan(METHODS[mechanism](FORMULA), survey, REQUESTS[mechanism])


def test_replaced_records_cost_twice_the_noise() -> None:
    plans = {
        r: cf.plan(LogisticObjective(FORMULA), SCHEMA, cf.ApproxDP(1.0, 1e-6, relation=r))
        for r in LogisticObjective.relations
    }
    sds = {r: plan.constants["tilt sd"] for r, plan in plans.items()}
    assert 1.9 < sds["substitute"] / sds["add-remove"] < 2.15
