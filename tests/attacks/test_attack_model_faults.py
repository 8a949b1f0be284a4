"""Faults that the other tests of logistic regression, kernel curves and classes let through: each test kills one."""

from __future__ import annotations

from fractions import Fraction
from math import log, log1p, sqrt

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.core import seal, threshold
from confide.methods.curves.efficient_ptr import EfficientPTRKernel
from confide.methods.curves.kernel import Kernel, Smooth
from confide.methods.curves.sums import UNIT, WEIGHT, KernelSafety
from confide.noise import SimulatedNoise
from confide.selection import Select
from confide.sums.blocks.record_block import Collected, fresh_key
from confide_lab.methods import AdaSSP
from confide_lab.methods.logistic.labelled_rows import CurvatureRows, LabelledRows
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticPTR
from confide_lab.methods.logistic.perturbed_objective import PerturbedObjective, gram_of
from confide_lab.methods.smooth_naive_bayes import SmoothNaiveBayes

LOGIT = cf.Schema({"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
LINE = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})


class _NoBend:
    """Seeded noise whose part for the Hessian is 0, so that what is added to theta alone decides V."""

    def __init__(self, seed: int, bent: Fraction) -> None:
        self._inner, self._bent = SimulatedNoise(seed), bent

    def grid_gaussian(self, variance: Fraction, size: int) -> np.ndarray:
        drawn = self._inner.grid_gaussian(variance, size)
        return np.zeros_like(drawn) if variance in (self._bent, self._bent / 2) else drawn


def _frame(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    return pd.DataFrame({"x0": g.uniform(-1, 1, n), "x1": g.uniform(-1, 1, n), "y": g.integers(0, 2, n)})


def test_the_hessian_is_that_at_the_released_theta_and_not_at_the_hidden_one() -> None:
    """V without its noise equals the Gram matrix at theta~: at the minimiser before hiding it would be another function of the records."""
    labelled = LabelledRows(LogisticObjective("y ~ x0 + x1")._design(LOGIT)[0])
    (rows,) = cf.read(_frame(4_000, 1), LOGIT).aggregate(Collected(labelled))
    made = PerturbedObjective.of(labelled, 1.2, 5.0, 1.0, 1e-6, "add-remove", Fraction(15, 100))
    assert made.bent is not None
    # a coarse grid, so that what hides theta is seen in V
    coarse = PerturbedObjective(**{**made.__dict__, "step": made.step * 2**26})
    drawn = coarse.draw(rows, _NoBend(1, made.bent))  # type: ignore[arg-type]
    unit = CurvatureRows(labelled, 1.2).unit ** 2
    expected = gram_of(CurvatureRows(labelled, 1.2).at(drawn[:3]), rows).astype(float)[np.triu_indices(3)] / unit
    np.testing.assert_allclose(drawn[3:], expected, rtol=1e-12)


def test_a_replaced_record_costs_objective_perturbation_more_noise_than_an_added_one() -> None:
    for epsilon in (0.5, 2.0):
        plans = {
            relation: cf.plan(
                LogisticObjective("y ~ x0", ridge=60.0),
                LOGIT,
                cf.ApproxDP(epsilon, 1e-6, relation=relation),
            )
            for relation in ("add-remove", "substitute")
        }
        ratio = plans["substitute"].constants["tilt sd"] / plans["add-remove"].constants["tilt sd"]
        # two opposite records move the gradient by 2 B
        assert 1.8 < ratio < 2.3


def test_the_certificate_under_substitute_is_for_the_data_set_without_the_record() -> None:
    method = LogisticPTR("y ~ x0", inference=False)
    plan = cf.plan(method, LOGIT, cf.GDP(1.0, 1e-6, relation="substitute"))
    found = seal(method, cf.read(_frame(20_000, 2), LOGIT), plan, SimulatedNoise(1))
    statistic, spend = plan.statistic("eigenvalue"), plan.spend("eigenvalue")
    failing = threshold(spend, plan.event.delta) * float(spend.step)  # type: ignore[union-attr]
    steps = float(found["eigenvalue"].decode()[0]) - failing - 1 - 1024
    least = max(steps * statistic.reach / 1024, statistic.ridge)  # type: ignore[attr-defined]
    longest, slope = statistic.map.longest, statistic.slope  # type: ignore[attr-defined]
    moved = min(slope / statistic.ridge, -log1p(-longest * slope / least) / longest)  # type: ignore[attr-defined]
    assert float(found.public["step"][0]) * 1024 == pytest.approx(moved, rel=1e-9)
    assert least > statistic.ridge  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", [LogisticObjective("y ~ x0"), LogisticPTR("y ~ x0")])
def test_methods_for_single_records_refuse_units_of_two(method: LogisticObjective | LogisticPTR) -> None:
    two = cf.Schema(dict(LOGIT.columns), rows_per_unit=2, unit="person")
    with refuses(cf.errors.PrivacyError):
        cf.plan(method, two, cf.ApproxDP(1.0, 1e-6))


def test_smooth_bayes_and_selection_refuse_units_of_two() -> None:
    two = cf.Schema({"k": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)}, rows_per_unit=2, unit="person")
    with refuses(cf.errors.PrivacyError):
        cf.plan(SmoothNaiveBayes("k ~ x"), two, cf.PureDP(1.0))
    lines = cf.Schema(dict(LINE.columns), rows_per_unit=2, unit="person")
    tried = [AdaSSP("y ~ x", row_bound=bound) for bound in (1.0, 1.2)]
    with refuses(cf.errors.PrivacyError):
        cf.plan(Select(tried), lines, cf.ApproxDP(1.0, 1e-6))


def test_residuals_are_taken_at_the_released_curve() -> None:
    """The second vector, with its noise taken off, is the exact sum at the curve in `public`: at the exact curve it would be another."""
    x = np.linspace(0, 1, 300)
    source = cf.read({"x": x, "y": np.sin(7 * x)}, LINE)
    method = Kernel("y ~ x", bandwidth=0.1)
    plan = cf.plan(method, LINE, cf.GDP(0.3))

    class Quiet:
        """No noise on the second vector."""

        def __init__(self) -> None:
            self._inner, self._calls = SimulatedNoise(1), 0

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def grid_gaussian(self, variance: Fraction, size: int) -> np.ndarray:
            self._calls += 1
            drawn = self._inner.grid_gaussian(variance, size)
            return drawn if self._calls == 1 else np.zeros_like(drawn)

    made = seal(method, source, plan, Quiet())  # type: ignore[arg-type]
    residuals = plan.statistic("residuals")
    rows = residuals.map  # type: ignore[attr-defined]
    curve = Smooth.of(rows.base.axis, made["curve"]).curve(rows.base.axis.centres)
    np.testing.assert_array_equal(curve, made.public["curve"])
    (exact,) = source.aggregate(type(residuals)(rows.at(curve)))  # type: ignore[call-arg]
    np.testing.assert_array_equal(made["residuals"].decode(), exact.astype(float))


def test_a_dropped_record_is_in_no_kernel_sum() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="drop"), "y": cf.Numeric(-1, 1, on_missing="drop")})
    plan = cf.plan(Kernel("y ~ x", bandwidth=0.1), schema, cf.GDP(1.0))
    rows = plan.statistic("curve").map
    for x, y in ((np.nan, 1.0), (0.5, np.nan), (np.nan, np.nan)):
        (total,) = cf.read({"x": [x], "y": [y]}, schema).aggregate(plan.statistic("curve"))
        assert not total.any(), rows
        (total,) = cf.read({"x": [x], "y": [y]}, schema).aggregate(plan.statistic("residuals"))
        assert not total.any()
    (total,) = cf.read({"x": [0.5], "y": [1.0]}, schema).aggregate(plan.statistic("curve"))
    assert 0 < int((total.astype(object) ** 2).sum()) <= 2 * UNIT**4


def test_kernel_safety_is_above_0_only_where_every_sum_is_above_d0() -> None:
    method = EfficientPTRKernel("y ~ x", points=[0.5, 0.6], bandwidth=0.1, least=3.0)
    plan = cf.plan(method, LINE, cf.ApproxDP(1.0, 1e-6))
    safety = plan.statistic("safety")
    assert isinstance(safety, KernelSafety)
    for least in (safety.d0 - WEIGHT, safety.d0 - WEIGHT // 2, safety.d0 - 1, safety.d0):
        assert int(safety.of(np.array([least, 100 * WEIGHT, 0, 0], dtype=object))[0]) == 0
    assert int(safety.of(np.array([safety.d0 + WEIGHT, 100 * WEIGHT, 0, 0], dtype=object))[0]) == 1024


def test_what_the_laplace_law_of_smooth_bayes_spends() -> None:
    """The constants follow from epsilon, delta and the means that a record touches: one or, where it changes its class, two for each."""
    schema = cf.Schema({"k": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1), "z": cf.Numeric(0, 1)})
    for relation, moved in (("add-remove", 1), ("substitute", 2)):
        plan = cf.plan(SmoothNaiveBayes("k ~ x + z"), schema, cf.ApproxDP(2.0, 1e-5, relation=relation))
        made, counts = plan.constants, plan.spend("counts")
        touched = 2 * moved
        far = log(touched / 1e-5)
        assert counts.sensitivity * counts.step == moved
        spent = float(counts.exact_cost.amount) + touched * (1 / made["scale"] + made["smoothing"] * far)
        assert 0.9 * 2.0 < spent <= 2.0 * (1 + 1e-9)


def test_a_curve_has_its_sampling_variance_in_full() -> None:
    """Where noise is negligible the released variance is that of the records' residuals, within 3 % at the middle."""
    g = np.random.default_rng(1)
    x = g.uniform(0, 1, 40_000)
    y = np.where(g.random(40_000) < 0.5, 0.5, -0.5)
    made = cf.release(
        Kernel("y ~ x", bandwidth=0.05),
        cf.read({"x": x, "y": y}, LINE),
        cf.GDP(20.0),
        ledger=None,
        noise=SimulatedNoise(1),
    )
    found = cf.infer(made)
    weights = np.exp(-(((x - 0.5) / 0.05) ** 2) / 2)
    exact = sqrt((weights**2 * 0.25).sum()) / weights.sum()
    at = found.at([0.5])
    assert float(at["std_err"].iloc[0]) == pytest.approx(exact, rel=0.04)


def test_class_safety_is_above_0_only_where_every_class_has_the_least_size() -> None:
    from confide.methods.classification.efficient_ptr import ClassSafety, EfficientPTRBayes

    schema = cf.Schema({"k": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)})
    plan = cf.plan(EfficientPTRBayes("k ~ x", least=10), schema, cf.ApproxDP(1.0, 1e-6))
    safety = plan.statistic("safety")
    assert isinstance(safety, ClassSafety)
    for size, expected in ((0, 0), (8, 0), (9, 0), (10, 1024), (11, 2048)):
        labels = ["a"] * size + ["b"] * 50
        (steps,) = cf.read({"k": labels, "x": [0.5] * len(labels)}, schema).aggregate(safety)
        assert int(steps[0]) == expected


def test_scores_under_substitute_leave_room_for_a_record_that_changes_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates at mu/2 and scores at sqrt(3)/2 mu, in squares 1/4 + 3/4: a record may leave training and enter validation."""
    from confide.methods.selection import draw as parts

    cf.register(Select)
    tried = [AdaSSP("y ~ x", row_bound=bound) for bound in (1.0, 1.2, 1.3, 1.4)]
    method, asked, seen = Select(tried, runs=6.0), [], parts.score_noise
    monkeypatch.setattr(parts, "score_noise", lambda mu: (asked.append(mu), seen(mu))[1])
    g = np.random.default_rng(1)
    source = cf.read({"x": g.random(200), "y": g.uniform(-1, 1, 200)}, LINE)
    for relation, share in (("add-remove", 1.0), ("substitute", sqrt(0.75))):
        plan = cf.plan(method, LINE, cf.ApproxDP(1.0, 1e-6, relation=relation))
        asked.clear()
        seal(method, source, plan, SimulatedNoise(1))
        assert asked == [pytest.approx(plan.constants["base_mu"] * share, rel=1e-12)]
    assert 1 / 4 + sqrt(0.75) ** 2 == pytest.approx(1.0)


def test_a_split_has_a_key_of_its_own_in_each_release() -> None:
    noise = SimulatedNoise(1)
    assert len({fresh_key(noise) for _ in range(50)}) == 50


def test_classes_below_twenty_records_or_ten_sds_have_no_interval() -> None:
    from confide.classification import ClassMeans

    schema = cf.Schema({"k": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)})
    for size, asked in ((15, cf.GDP(50.0)), (60, cf.GDP(0.1))):
        labels = ["a"] * size + ["b"] * 2_000
        x = np.linspace(0, 1, len(labels))
        made = cf.release(
            ClassMeans("k ~ x"), cf.read({"k": labels, "x": x}, schema), asked, ledger=None, noise=SimulatedNoise(1)
        )
        found = cf.infer(made)
        assert found.status == "imprecise" and found.conf_int().isna().all().all()


def test_the_band_turns_at_least_once_for_each_bandwidth() -> None:
    g = np.random.default_rng(1)
    x = g.random(3_000)
    made = cf.release(
        Kernel("y ~ x", bandwidth=0.05),
        cf.read({"x": x, "y": np.sin(6 * x)}, LINE),
        cf.GDP(1.0),
        ledger=None,
        noise=SimulatedNoise(1),
    )
    assert cf.infer(made).crossings >= 1 / 0.05


def test_cells_of_the_loss_count_at_their_upper_ends() -> None:
    """Each probability belongs to the cell below its point, so that a bracket that rises with the loss is summed from above."""
    from scipy import special

    from confide.guarantees import selection

    ends, mass = selection._losses()
    below = np.concatenate([[-9.0], ends[:-1]])
    assert (below < ends).all() and ends[-1] == pytest.approx(9.0)
    np.testing.assert_allclose(mass, special.ndtr(ends) - special.ndtr(below), atol=1e-15)
    low, high = selection._cells()
    assert (low < high).all() and low[0] == 0.0 and high[-1] == pytest.approx(1.0)
    np.testing.assert_array_equal(low[1:], high[:-1])
