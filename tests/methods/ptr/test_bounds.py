"""Safety bounds: each holds under attack, its constants are right and nearly attained, and combinators keep the two promises."""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from tests.messages import refuses

from confide.audit import falsify_safety_bound
from confide.errors import PlanError, PrivacyError
from confide.methods.ptr.safety import AllOf, asserted, bound_from, bound_name, checked_bound, pack_bound
from confide.ptr import (
    BallLikelihood,
    CertifiedBound,
    ClassMeans,
    KernelRegression,
    LeadingEigenvector,
    LeastSquares,
    OrderStatistic,
    SafetyBound,
    after,
    all_of,
    scale,
)
from confide.sums.safety_bounds import (
    class_means_alpha,
    eigenvector_alpha,
    kappa,
    kernel_alpha,
    least_class_size,
    ols_alpha,
    rounded_safety,
)

PLANE = [(-1, 1), (-1, 1)]
MEDIAN = OrderStatistic(8, 0.0, 1.0, 0.3)


def test_kappa_is_its_supremum_and_no_angle_exceeds_it() -> None:
    assert abs(kappa(1.0) - 3 * sqrt(3) / 2) < 1e-12
    for r, known in ((0.25, 1.3679), (0.5, 1.7602), (1, 2.5981), (2, 4.4037), (4, 8.2333)):
        assert kappa(r) == pytest.approx(known, abs=1e-4)
        t = np.linspace(0, np.pi / 2, 200_001)
        assert kappa(r) == pytest.approx(float((2 * np.cos(t) * (np.sin(t) + r)).max()), rel=1e-9)
    generator = np.random.default_rng(3)
    for dim in (1, 2, 3):
        unit = lambda: (v := generator.standard_normal((20_000, dim))) / np.linalg.norm(v, axis=1, keepdims=True)  # noqa: E731, B023
        u, x, other, theta = unit(), unit() * generator.random((20_000, 1)), unit(), unit()
        for r in (0.25, 1.0, 4.0):
            y = r * generator.choice([-1.0, 1.0, 0.3], (2, 20_000))
            dot = lambda a, b: (a * b).sum(axis=1)  # noqa: E731
            moved = dot(u, other) * (y[0] - dot(other, theta)) - dot(u, x) * (y[1] - dot(x, theta))
            assert np.abs(moved).max() <= kappa(r) * (1 + 1e-12)


@pytest.mark.parametrize("r", [0.5, 1.0, 2.0])
def test_the_bound_on_least_squares_is_nearly_attained(r: float) -> None:
    """Far above R_x^2 the least eigenvalue hardly moves, and two records at the angles of kappa move the line by nearly alpha."""
    lam0 = 400.0
    bound = LeastSquares(2, 1.0, r, 1.0, level0=lam0)
    sine, short = (sqrt(r * r + 8) - r) / 4, min(1.0, r)
    # the line points along e2, which many rows hold fast; it moves along e1, whose eigenvalue is the least
    rest = np.array([[1.0, 0.0, 0.0]] * 401 + [[0.0, short, 0.999 * short]] * 20_000)
    found = 0.0
    for first, second in ((-r, r), (r, -r), (r, r), (-r, -r)):
        data, other = (np.vstack([rest, [sqrt(1 - sine**2), side, y]]) for side, y in ((sine, first), (-sine, second)))
        assert bound.gamma(bound.prepare(data)) > 0
        moved = bound.estimate(bound.prepare(data)) - bound.estimate(bound.prepare(other))
        found = max(found, float(np.linalg.norm(moved)) / bound.alpha)
    assert 0.98 < found <= 1


@pytest.mark.parametrize(("least", "worst"), [(3, 0.8333), (5, 0.5207), (20, 0.1381)])
def test_the_bound_on_class_means_is_attained(least: int, worst: float) -> None:
    """The only record at +R leaves a class that is else at -R, for one of the same size that is all at +R, where it is put to -R."""
    bound = ClassMeans(1, 2, 1.0, n=2 * least, c0=(least - 0.5) / (2 * least))
    assert bound.smallest == least
    first = np.column_stack([np.r_[1.0, -np.ones(least - 1)], np.zeros(least)])
    second = np.column_stack([np.ones(least), np.ones(least)])
    data = np.concatenate([first, second])
    neighbour = data.copy()
    neighbour[0] = (-1.0, 1.0)
    assert bound.gamma(bound.prepare(data)) == 1
    means = [bound.estimate(bound.prepare(one))[2:] for one in (data, neighbour)]
    assert np.linalg.norm(means[1] - means[0]) == pytest.approx(worst, abs=1e-4)
    assert class_means_alpha(1.0, least, 100) == pytest.approx(worst, abs=1e-4)


HOLD: list[tuple[SafetyBound, Any, int | None, float]] = [
    (MEDIAN, [(0, 1)], 15, 0.99),
    (LeastSquares(1, 1.0, 1.0, 1.0, level0=2.0), PLANE, 14, 0.4),
    (LeastSquares(2, 1.0, 1.0, 1.0, level0=1.1), [(-2, 2)] * 3, 14, 0.3),
    (LeastSquares(1, 1.0, 1.0, 2.0, level0=2.2, tau=1.0), PLANE, 16, 0.3),
    (LeastSquares(1, 1.0, 1.0, 1.0), PLANE, 14, 0.2),
    (LeadingEigenvector(3, 1.0, 4.0), [(-1, 1)] * 3, 24, 0.4),
    (LeadingEigenvector(2, 1.0), PLANE, 24, 0.2),
    (BallLikelihood(2, 1.0, 1.0, 0.5), [(-1, 1), (-1, 1), (0, 1)], 16, 0.1),
    (BallLikelihood(1, 1.0, 1.0, 0.6, link="probit"), [(-1, 1), (0, 1)], 16, 0.1),
    (ClassMeans(2, 2, 1.0, n=24, c0=0.2), [(-1, 1), (-1, 1), ("a", "b")], None, 0.6),
    (KernelRegression(((0.5,), (0.2,)), (0.2,), ((0.0, 1.0),), 1.0, 6.0), [(0, 1), (-1, 1)], 24, 0.6),
    (KernelRegression(((0.5,),), (0.2,), ((0.0, 1.0),), 1.0, 6.0, kernel="epanechnikov"), [(0, 1), (-1, 1)], 24, 0.9),
    (all_of(MEDIAN, OrderStatistic(4, 0.0, 1.0, 0.3)), [(0, 1)], 15, 0.6),
    (after(MEDIAN, np.sin, 1.0), [(0, 1)], 15, 0.8),
]


@pytest.mark.parametrize(
    ("bound", "domain", "n", "near"), HOLD, ids=lambda v: bound_name(v) if isinstance(v, SafetyBound) else ""
)
def test_a_shipped_bound_holds_under_attack(bound: SafetyBound, domain: Any, n: int | None, near: float) -> None:
    report = falsify_safety_bound(bound, domain, n=n, restarts=1 if isinstance(bound, BallLikelihood) else 2, seed=5)
    assert report.verdict == "holds", str(report)
    assert report.safe > 200 and near < report.ratio <= 1 and report.steps <= 1
    assert asserted(bound) == () or isinstance(bound, type(after(MEDIAN, np.sin, 1.0)))


def test_the_distance_of_the_quantile_is_exact() -> None:
    """Brute force over all data sets of five values on a grid of four: the least number of replacements to an unstable one."""
    grid, alpha, m = (0.0, 1 / 3, 2 / 3, 1.0), 0.4, 3
    bound = OrderStatistic(m, 0.0, 1.0, alpha)
    sets = sorted({tuple(sorted(values)) for values in product(grid, repeat=5)})

    def unstable(values: tuple[float, ...]) -> bool:
        at = [sorted((*values[:i], new, *values[i + 1 :]))[m - 1] for i in range(5) for new in grid]
        return max(abs(v - values[m - 1]) for v in at) > alpha

    def apart(one: tuple[float, ...], other: tuple[float, ...]) -> int:
        rest = list(other)
        return 5 - sum(1 for v in one if v in rest and (rest.remove(v) or True))

    bad = [values for values in sets if unstable(values)]
    for values in sets:
        exact = min(apart(values, other) for other in bad)
        assert bound.gamma(bound.prepare(np.array(values)[:, None])) == exact


def test_least_squares_takes_the_joint_weights() -> None:
    """Records far beyond the ball cost no bias; the projection is radial; an intercept is recovered through tau."""
    generator = np.random.default_rng(2)
    x = generator.standard_normal((40_000, 2)) * 3
    y = x @ [0.3, -0.2] + 0.1 * generator.standard_normal(len(x))
    data = np.column_stack([x, y])
    bound = LeastSquares(2, 1.0, 2.0, 1.0, level0=10.0)
    assert bound.estimate(bound.prepare(data)) == pytest.approx([0.3, -0.2], abs=0.01)
    rows = bound.prepare(data)
    assert np.linalg.norm(rows[:, :2], axis=1).max() <= 1 + 1e-12
    tight = LeastSquares(2, 1.0, 2.0, 0.1, level0=10.0)
    assert np.linalg.norm(tight.estimate(tight.prepare(data))) == pytest.approx(0.1)
    data[:, 2] += 0.4
    line = LeastSquares(2, 1.0, 4.0, 2.0, level0=10.0, tau=0.5)
    found = line.estimate(line.prepare(data))
    assert found[0] * 0.5 == pytest.approx(0.4, abs=0.01) and found[1:] == pytest.approx([0.3, -0.2], abs=0.01)


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("radius", [0.3, 3.0])
def test_the_likelihood_is_minimised_over_the_ball(link: str, radius: float) -> None:
    generator = np.random.default_rng(4)
    x = generator.uniform(-1, 1, (300, 3))
    y = (x @ [1.0, -2.0, 0.5] + generator.logistic(size=300) > 0) * 1.0
    bound = BallLikelihood(3, 1.0, radius, link=link)
    rows = bound.prepare(np.column_stack([x, y]))
    sign = 2 * rows[:, 3] - 1

    def loss(theta: Any) -> float:
        t = sign * (rows[:, :3] @ theta)
        return float(np.logaddexp(0, -t).sum() if link == "logistic" else -log_ndtr(t).sum())

    found = bound.estimate(rows)
    ball = {"type": "ineq", "fun": lambda v: radius**2 - v @ v}
    other = minimize(loss, found * 0.5, constraints=[ball], method="SLSQP", options={"ftol": 1e-13, "maxiter": 500})
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)
    assert loss(found) <= loss(other.x) + 1e-9
    assert found == pytest.approx(other.x, abs=2e-4)


def test_combinators_state_what_they_must() -> None:
    second = OrderStatistic(4, 0.0, 1.0, 0.4)
    both = all_of(MEDIAN, second)
    assert both.dim == 2 and both.alpha == pytest.approx(0.5) and both.alpha >= 0.5
    means = ClassMeans(1, 2, 1.0, n=40, c0=0.2)
    mixed = all_of(means, MEDIAN)
    assert mixed.shape == (*means.shape, 1.0) and mixed.n == 40
    with refuses(PlanError):
        all_of(means, ClassMeans(1, 2, 1.0, n=41, c0=0.2))
    with refuses(PlanError):
        after(means, np.tanh, 1.0)
    assert after(means, np.tanh, 2.0, shape=None).alpha == pytest.approx(2 * means.alpha)
    with refuses(PlanError):
        after(MEDIAN, np.tanh, 0.0)
    gamma = scale(len, 2.0, 4.0, error=0.2)
    assert gamma([0] * 10) == pytest.approx((3 - 0.1) / 1.3) and gamma([]) == 0
    with pytest.raises(PlanError):
        scale(len, 0.0)


def test_rounded_safeties_keep_both_promises() -> None:
    generator = np.random.default_rng(5)
    true = generator.uniform(0, 6, 20_000)
    near = np.maximum(true + generator.uniform(-1, 1, 20_000), 0)
    for eta in (1e-12, 1e-3, 0.2, 1.0):
        seen = [
            [
                rounded_safety(max(g + e, 0.0), eta)
                for g, e in zip(gs, generator.uniform(-eta, eta, 20_000), strict=True)
            ]
            for gs in (true, near)
        ]
        assert np.abs(np.array(seen[0]) - seen[1]).max() <= 1
        assert (true[np.array(seen[0]) > 0] > 0).all()


def test_bounds_pack_and_unpack_and_live_ones_refuse() -> None:
    for bound in (MEDIAN, *(bound for bound, *_ in HOLD if not hasattr(bound, "function"))):
        assert bound_from(pack_bound(bound)) == bound
    live = after(MEDIAN, np.sin, 1.0)
    assert set(pack_bound(live)) == {"live", "dim"} and set(pack_bound(AllOf((live,)))) == {"live", "dim"}
    with refuses(PlanError):
        bound_from(pack_bound(live))
    with refuses(PlanError):
        bound_from({"bound": "nowhere:Bound", "fields": {}})


class Mine(SafetyBound):
    dim, alpha = 1, 0.1

    def gamma(self, prepared: Any) -> float:
        return 0.0

    def estimate(self, prepared: Any) -> Any:
        return [0.0]


class Promoted(OrderStatistic):
    """A subclass of a proved bound is its author's own."""


def test_what_is_not_proved_here_is_asserted() -> None:
    assert asserted(Mine()) == ("asserted safety bound Mine",)
    assert asserted(all_of(MEDIAN, Mine())) == ("asserted safety bound Mine",)
    assert asserted(Promoted(3, 0.0, 1.0, 0.1)) == ("asserted safety bound OrderStatistic",)
    assert asserted(after(MEDIAN, np.sin, 1.0)) == ("asserted Lipschitz constant 1 of sin",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 0),
        ("dim", 1.5),
        ("alpha", 0.0),
        ("alpha", np.inf),
        ("alpha", "x"),
        ("shape", (1.0, 2.0)),
        ("names", ("a", "b")),
    ],
)
def test_public_configuration_is_checked(name: str, value: Any) -> None:
    bound = Mine()
    setattr(bound, name, value)
    with refuses(PlanError):
        checked_bound(bound)
    with refuses(PlanError):
        checked_bound(lambda x: x)
    with refuses(PlanError):
        checked_bound(Mine(), adaptive=True)


def test_parameters_of_shipped_bounds_are_checked() -> None:
    for make in (
        lambda: LeastSquares(0, 1.0, 1.0, 1.0),
        lambda: LeastSquares(1, 1.0, 1.0, 1.0, level0=0.5),
        lambda: LeastSquares(1, -1.0, 1.0, 1.0),
        lambda: LeastSquares(1, 1.0, 1.0, 1.0, tau=0.0),
        lambda: ClassMeans(1, 2, 1.0, n=40, c0=0.5),
        lambda: ClassMeans(1, 2, 1.0, n=40, c0=0.001),
        lambda: ClassMeans(1, 1, 1.0, n=40, c0=0.2),
        lambda: ClassMeans(1, 2, 0.0, n=40, c0=0.2),
        lambda: KernelRegression(((0.5,),), (0.2,), ((0.0, 1.0),), 1.0, 1.0),
        lambda: KernelRegression(((0.5,),), (0.0,), ((0.0, 1.0),), 1.0, 6.0),
        lambda: KernelRegression(((0.5, 1.0),), (0.2,), ((0.0, 1.0),), 1.0, 6.0),
        lambda: KernelRegression(((0.5,),), (0.2,), ((0.0, 1.0),), 1.0, 6.0, kernel="sinc"),
        lambda: LeadingEigenvector(1, 1.0, 4.0),
        lambda: LeadingEigenvector(2, 1.0, 0.0),
        lambda: BallLikelihood(1, 1.0, 1.0, 0.0),
        lambda: BallLikelihood(1, 1.0, 0.0),
        lambda: BallLikelihood(1, 1.0, 1.0, link="cloglog"),
        lambda: OrderStatistic(0, 0.0, 1.0, 0.1),
        lambda: OrderStatistic(1, 1.0, 0.0, 0.1),
        lambda: OrderStatistic(1, 0.0, 1.0, 0.0),
        lambda: least_class_size(0.1, 9),
        lambda: ols_alpha(1.0, 1.0, 1.0, 0.9),
        lambda: eigenvector_alpha(1.0, np.nan),
        lambda: kernel_alpha(1.0, 2.0, 2.0),
    ):
        with pytest.raises(PlanError):
            make()


def test_the_search_takes_a_schema_and_says_what_it_cannot_do() -> None:
    import confide as cf

    schema = cf.Schema({"x": cf.Numeric(-1, 1), "g": cf.Categorical(["a", "b"])})
    report = falsify_safety_bound(ClassMeans(1, 2, 1.0, n=16, c0=0.2), schema, restarts=2)
    assert report.verdict == "holds" and report.name == "ClassMeans"
    unsafe = LeadingEigenvector(2, 1.0, 1e6)
    assert falsify_safety_bound(unsafe, PLANE, n=3, restarts=1).verdict == "untested"
    with refuses(PrivacyError):
        falsify_safety_bound(MEDIAN, [(0, 1)], n=15, relation="add-remove")
    assert isinstance(LeastSquares(1, 1.0, 1.0, 1.0), CertifiedBound)
