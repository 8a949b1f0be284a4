"""JohnsonLindenstrauss: the exact privacy curve of a sketch, the released law, the published version beside it."""

from __future__ import annotations

from itertools import pairwise
from math import exp, lgamma, log, sqrt
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import Gram, Meter, seal
from confide.errors import NoConversion, PlanError, PrivacyError, ReleaseError
from confide.guarantees import calibrate_gaussian
from confide.noise import SimulatedNoise
from confide.testing import check_method
from confide_lab.methods.johnson_lindenstrauss import JohnsonLindenstrauss, sketch_delta, sketch_ratio
from confide_lab.published.johnson_lindenstrauss import johnson_lindenstrauss, sketch_width

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)}, dataset="survey")
ASKED = cf.ApproxDP(1.0, 1e-6)


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + 2 * g.standard_normal(n)
    return frame


def released(frame: pd.DataFrame, seed: int = 1, privacy: object = ASKED, **settings: int) -> cf.Release:
    method = JohnsonLindenstrauss("y ~ a + b", **settings)
    noise = SimulatedNoise(seed)
    return cf.release(method, cf.read(frame, SCHEMA), privacy, ledger=None, noise=noise)  # type: ignore[arg-type]


# the privacy curve ---------------------------------------------------------------------------------------------------


def density(s: float, rows: int, scale: float) -> float:
    """Of scale times a chi-square variable, at s > 0; without the checks of scipy.stats, which take ten times as long."""
    x, half = s / scale, rows / 2
    return exp((half - 1) * log(x) - x / 2 - half * log(2) - lgamma(half)) / scale


@pytest.mark.parametrize("rows", [2, 7, 50, 1_000])
@pytest.mark.parametrize("ratio", [0.02, 0.3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
def test_delta_is_the_integral_of_the_privacy_loss(rows: int, ratio: float, epsilon: float) -> None:
    """The hockey-stick divergence of the two laws of the sum of squares, by quadrature, in both directions."""
    one, worst = stats.chi2(rows), 0.0
    ends = (0.0, one.mean() + 40 * one.std() * (1 + ratio))
    for p, q in ((1.0, 1 + ratio), (1 + ratio, 1.0)):
        found, _ = integrate.quad(
            lambda s, p=p, q=q: max(density(s, rows, p) - exp(epsilon) * density(s, rows, q), 0.0),
            *ends,
            points=np.linspace(one.ppf(1e-9), one.ppf(1 - 1e-9), 30),
            limit=500,
        )
        worst = max(worst, found)
    # the quadrature meets a kink where the divergence begins
    assert sketch_delta(epsilon, rows, ratio) == pytest.approx(worst, rel=1e-3, abs=1e-10)


def _exact(epsilon: float, rows: int, ratio: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        e, c, k = mpmath.mpf(epsilon), mpmath.mpf(ratio), mpmath.mpf(rows) / 2
        half = k * mpmath.log1p(c)
        high, low = (e + half) * (1 + c) / c, (half - e) * (1 + c) / c

        def above(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.gammainc(k, x, mpmath.inf, regularized=True)

        grown = above(high / (1 + c)) - mpmath.exp(e) * above(high)
        return grown if low <= 0 else max(grown, 1 - above(low) - mpmath.exp(e) * (1 - above(low / (1 + c))))


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_computed_delta_is_never_too_low(epsilon: float, delta: float) -> None:
    """At the ratios that are used, against 50 digits: within 1e-9, where calibration leaves room for 1e-6."""
    for rows in (2, 30, 10_000, 1_000_000):
        ratio = sketch_ratio(epsilon, delta, rows)
        exact = _exact(epsilon, rows, ratio)
        assert exact <= delta
        assert abs(sketch_delta(epsilon, rows, ratio) / float(exact) - 1) < 1e-7


def test_delta_rises_with_the_ratio_and_the_rows() -> None:
    """The proof's step: less of the record in w^2 is a coarser observation."""
    grid = np.geomspace(1e-4, 10, 60)
    for rows in (2, 20, 500):
        deltas = [sketch_delta(0.7, rows, c) for c in grid]
        assert all(a <= b + 1e-15 for a, b in pairwise(deltas))
    assert all(sketch_delta(0.7, r, 0.1) < sketch_delta(0.7, r + 1, 0.1) for r in range(2, 60))


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_ratio_meets_its_request_and_wastes_nothing(epsilon: float, delta: float) -> None:
    for rows in (2, 30, 10_000, 1_000_000):
        ratio = sketch_ratio(epsilon, delta, rows)
        assert sketch_delta(epsilon, rows, ratio) <= delta
        assert sketch_delta(epsilon, rows, ratio * 1.0001) > delta * 0.999


def test_with_many_rows_it_is_the_gaussian_mechanism() -> None:
    """sd of an entry off the diagonal, w^2/sqrt(r), against 1/(sqrt(2) mu) of the noisy Gram matrix: 2 % at 10,000 rows."""
    gauss = 1 / (sqrt(2) * calibrate_gaussian(ASKED))
    sds = [1 / sketch_ratio(1.0, 1e-6, rows) / sqrt(rows) for rows in (100, 10_000, 1_000_000)]
    assert sds[0] > sds[1] > sds[2] > gauss
    assert sds[1] / gauss == pytest.approx(1.018, abs=2e-3) and sds[2] / gauss < 1.003


def test_the_published_width_is_an_order_of_magnitude_larger() -> None:
    found = [sketch_width(1.0, r, 1.0, 1e-6) * sketch_ratio(1.0, 1e-6, r) for r in (7, 20, 200, 10_000)]
    assert found == pytest.approx([26.8, 23.7, 18.6, 15.7], abs=0.1)
    assert johnson_lindenstrauss.guarantee is None and johnson_lindenstrauss.errata


# the release ---------------------------------------------------------------------------------------------------------


def test_contract() -> None:
    assert check_method(JohnsonLindenstrauss("y ~ a + b", rows=60), SCHEMA, privacy=ASKED, raises=False).ok


@pytest.mark.long
def test_audit() -> None:
    method = JohnsonLindenstrauss("y ~ a + b", rows=60)
    found = cf.audit.audit(method, SCHEMA, privacy=ASKED, runs=2_000, seed=1)
    assert found.violated == ()


def _along(release: cf.Release, direction: np.ndarray) -> float:
    """The released sum of squares along a record, v'M^(-1) W M^(-1) v with M = w^2 I of an empty table, up to a factor."""
    return float(direction @ release["sketch"].decode() @ direction)


@pytest.mark.parametrize(("rows", "caught"), [(40, False), pytest.param(1, True, marks=pytest.mark.long)])
def test_a_real_release_tells_its_worst_record_apart_as_well_as_claimed(rows: int, caught: bool) -> None:
    """An empty table against the worst record; with w^2 of one row in place of 40 the attack must succeed (power)."""
    claim = cf.ApproxDP(1.0, 0.05)
    method = JohnsonLindenstrauss("y ~ a + b", rows=40)
    (pair,) = method.worst_pairs(SCHEMA)
    frame = pd.DataFrame([pair[0]])
    source = cf.read(frame, SCHEMA)
    plan = cf.plan(method, SCHEMA, claim)
    plan.constants["ratio"] = sketch_ratio(1.0, 0.05, rows)  # type: ignore[index]
    (gram,) = source.aggregate(plan.statistic("moments"))
    values, vectors = np.linalg.eigh(np.asarray(gram, dtype=float))
    # its row is as long as the bound allows, but for the rounding to integers
    assert values[-1] == pytest.approx(2.0**40, rel=1e-4)
    noise, direction = SimulatedNoise(7), vectors[:, -1]
    empty = cf.read(frame.iloc[:0], SCHEMA)

    def attacked(table: object, runs: int) -> np.ndarray:
        return np.array([_along(seal(method, table, plan, noise), direction) for _ in range(runs)])  # type: ignore[arg-type]

    found = cf.audit.epsilon_lower_bound(
        attacked, empty, source, runs=600, claim=claim, vectorized=True, confidence=1 - 1e-6
    )
    assert (found.verdict == "violated") is caught


def test_the_release_is_a_wishart_matrix() -> None:
    """Mean r M and variance r (M_ij^2 + M_ii M_jj) over 400 releases, within 5 sds."""
    frame, rows = records(40, 1), 50
    method = JohnsonLindenstrauss("y ~ a + b", rows=rows)
    plan = cf.plan(method, SCHEMA, ASKED)
    source = cf.read(frame, SCHEMA)
    (gram,) = source.aggregate(plan.statistic("moments"))
    whole = np.asarray(gram, dtype=float) + 2.0**40 / plan.constants["ratio"] * np.eye(4)
    drawn = np.array([seal(method, source, plan, SimulatedNoise(k))["sketch"].decode() for k in range(400)])
    variance = rows * (whole**2 + np.outer(np.diag(whole), np.diag(whole)))
    assert (np.abs(drawn.mean(axis=0) - rows * whole) < 5 * np.sqrt(variance / 400)).all()
    assert (np.abs(drawn.var(axis=0) / variance - 1) < 0.4).all()
    assert isinstance(plan.statistic("moments"), Gram)


def test_the_line_is_unbiased_of_the_ridge() -> None:
    """w^2 is taken off again: at n = 20,000 and epsilon = 4 the line is near least squares."""
    frame = records(20_000, 2)
    method = JohnsonLindenstrauss("y ~ a + b")
    matrix = np.column_stack([np.ones(len(frame)), frame[["a", "b"]]])
    ols = np.linalg.lstsq(matrix, frame["y"], rcond=None)[0]
    lines = []
    for seed in range(9):
        found = method.infer(released(frame, seed, cf.ApproxDP(4.0, 1e-5)))
        assert found.status == "valid" and found.bse.isna().all()
        lines.append(found.params.to_numpy())
    loss = [float(((frame["y"] - matrix @ line) ** 2).mean()) for line in (*lines, ols)]
    assert np.median(loss[:-1]) < 1.01 * loss[-1]
    few = method.infer(released(records(10, 3)))
    assert few.status == "imprecise" and np.isfinite(few.params).all()


def test_the_statement_names_its_assumption_and_is_charged(tmp_path: Path) -> None:
    release = released(records(100, 1))
    assert release.charged == cf.ApproxDP(1.0, 1e-6, relation="add-remove", assumptions=("float64 sampling",))
    assert "float64 sampling" in JohnsonLindenstrauss("y ~ a + b").infer(release).summary(verbose=True)
    ledger = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0, delta=1e-5))
    source = cf.read(records(100, 1), SCHEMA)
    done = cf.release(JohnsonLindenstrauss("y ~ a + b"), source, ASKED, ledger=ledger)
    assert cf.verify(done, ledger).ok


def test_what_a_sketch_cannot_give() -> None:
    method = JohnsonLindenstrauss("y ~ a + b")
    with refuses(NoConversion):
        cf.plan(method, SCHEMA, cf.GDP(1.0))
    with refuses(PrivacyError):
        cf.plan(method, SCHEMA, cf.ApproxDP(1.0, 1e-6, relation="substitute"))
    with refuses(PrivacyError):
        cf.plan(method, cf.Schema(dict(SCHEMA.columns), rows_per_unit=2), ASKED)
    for rows in (1, 2.5, True, 10**7):
        with refuses(PlanError):
            JohnsonLindenstrauss("y ~ a", rows=rows)  # type: ignore[arg-type]
    with refuses(PlanError):
        cf.plan(JohnsonLindenstrauss("y ~ a + b", rows=3), SCHEMA, ASKED)


def test_the_meter_lets_out_what_the_plan_calls_opaque_and_nothing_else() -> None:
    from fractions import Fraction

    plan = cf.plan(JohnsonLindenstrauss("y ~ a + b"), SCHEMA, ASKED)
    value = np.array([[1.26, np.nan], [np.inf, -3.1]])
    with Meter(plan, SimulatedNoise(1)) as meter:
        with refuses(ReleaseError):
            meter.opaque("moments", value, Fraction(1), 1.0)
        noisy = meter.opaque("sketch", value, Fraction(1, 2), 2.0)
        with refuses(ReleaseError):
            meter.opaque("sketch", value, Fraction(1), 1.0)
        with refuses(ReleaseError):
            meter.draw("sketch", np.zeros((2, 2), dtype=object))
    assert noisy.decode().tolist() == [[1.5, 0.0], [0.0, -3.0]] and np.isnan(noisy.variance)
    with refuses(ReleaseError):
        meter.opaque("sketch", value, Fraction(1), 1.0)


def test_the_grid_of_a_sketch_is_no_finer_than_its_noise_allows() -> None:
    """2^-20 of the least sd of an entry, w^2 sqrt(r), to twice that; and the published integers are those of exact arithmetic."""
    from fractions import Fraction

    g = np.random.default_rng(4)
    frame = pd.DataFrame(g.uniform(-1, 1, (2_000, 3)), columns=["a", "b", "y"])
    for rows in (20, 100, 3_000):
        method = JohnsonLindenstrauss("y ~ a + b", rows=rows)
        source, plan = cf.read(frame, SCHEMA), cf.plan(method, SCHEMA, ASKED)
        release = cf.release(method, source, ASKED, ledger=None, noise=SimulatedNoise(3))
        own = method._map(method._design(SCHEMA))
        least = Fraction(own.l2_squared / plan.constants["ratio"]) * Fraction(np.sqrt(rows))
        assert least / 2**20 <= release["sketch"].step <= least / 2**19
    # the same sketch in exact rationals: a Cholesky factor in 120 digits, whole normal numbers
    from confide_lab.aggregates.digits import cholesky, numbers

    (gram,) = source.aggregate(plan.statistic("moments"))
    ridge = own.l2_squared / plan.constants["ratio"]
    root = cholesky(numbers(gram) + numbers([ridge])[0] * numbers(np.eye(len(gram), dtype=int))).T
    drawn = SimulatedNoise(3).grid_gaussian(Fraction(2**80), 3_000 * len(gram)).astype(object).reshape(3_000, -1)
    exact = root @ numbers(drawn.T @ drawn) @ root.T / numbers([2**80])[0]
    step = float(release["sketch"].step)
    away = np.array([[float(v) for v in row] for row in exact]) / step - release["sketch"].values.astype(float)
    assert abs(away).max() <= 0.5 + 2.0**-10


def test_the_published_sketch_runs_in_both_branches() -> None:
    g = np.random.default_rng(1)
    x = g.uniform(-0.5, 0.5, (40_000, 2))
    y = x @ [0.5, -0.3] + g.uniform(-0.2, 0.2, 40_000)
    few = johnson_lindenstrauss(x[:100], y[:100], g, bound=1.0, rows=20, epsilon=1.0, delta=1e-6)
    many = johnson_lindenstrauss(x, y, g, bound=1.0, rows=20, epsilon=4.0, delta=1e-3)
    assert few["altered"] and not many["altered"] and many["sketch"].shape == (20, 3)
    np.testing.assert_allclose(many["beta"], [0.5, -0.3], atol=0.4)
