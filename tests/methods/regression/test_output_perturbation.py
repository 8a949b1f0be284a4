"""OutputPerturbation: contract, audit, the minimiser against exact arithmetic, its sensitivity against search, accuracy."""

from __future__ import annotations

from fractions import Fraction
from math import nan, sqrt

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import Gram
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method
from confide_lab.aggregates.minimiser import BallMinimiser
from confide_lab.methods.output_perturbation import OutputPerturbation
from confide_lab.published.output_perturbation import output_perturbation

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})


def minimiser(radius: float = 1.0, formula: str = "y ~ a + b") -> BallMinimiser:
    return OutputPerturbation(formula, radius=radius)._minimiser(cf.schema.ModelMatrix.of(formula, SCHEMA))


def gram(own: BallMinimiser, rows: np.ndarray) -> np.ndarray:
    """The exact Gram matrix of records (a, b, y), shape (records, 3)."""
    (total,) = cf.read(pd.DataFrame(rows, columns=["a", "b", "y"]), SCHEMA).aggregate(Gram(own.map))
    return np.asarray(total)


def records(n: int, seed: int, sd: float = 0.2) -> np.ndarray:
    g = np.random.default_rng(seed)
    x = g.uniform(-1, 1, (n, 2))
    return np.column_stack([x, np.clip(0.2 + x @ [0.5, -0.3] + sd * g.standard_normal(n), -1, 1)])


@pytest.mark.long
def test_contract_and_audit() -> None:
    for formula in ("y ~ a + b", "y ~ 0 + a"):
        assert check_method(OutputPerturbation(formula), SCHEMA, raises=False).ok
    assert cf.audit.audit(OutputPerturbation("y ~ a"), runs=2_000, seed=1).ok


def test_bad_settings_raise() -> None:
    for name, value in (("radius", 0.0), ("radius", nan), ("radius", 1e9), ("penalty", 0.0), ("penalty", True)):
        with refuses(PlanError):
            OutputPerturbation("y ~ a", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "lam", "radius"), [(3, 0.01, 0.3), (200, 5.0, 1.0), (200, 1e-3, 0.2), (5_000, 1.0, 1.0)])
def test_the_solver_is_far_within_half_a_step_of_the_exact_minimiser(n: int, lam: float, radius: float) -> None:
    """Against 60 digits: the ridge where it lies in the ball, else the multiplier found to 60 digits."""
    own = minimiser(radius)
    whole = gram(own, records(n, n))
    found = [int(v) for v in own.at(lam).integers(whole)]
    with mpmath.workdps(60):
        unit, g = mpmath.mpf(own.map.steps) ** 2, mpmath.sqrt(mpmath.mpf(own.map.g2))
        a = mpmath.matrix([[mpmath.mpf(int(v)) / unit for v in row[:-1]] for row in whole[:-1]])
        b = mpmath.matrix([mpmath.mpf(int(v)) / unit / g for v in whole[:-1, -1]])

        def at(nu: mpmath.mpf) -> mpmath.matrix:
            return mpmath.lu_solve(a + (mpmath.mpf(lam) + nu) * mpmath.eye(3), b)

        low, high = mpmath.mpf(0), mpmath.norm(b) / radius
        if mpmath.norm(at(low)) > radius:
            for _ in range(220):
                middle = (low + high) / 2
                low, high = (middle, high) if mpmath.norm(at(middle)) > radius else (low, middle)
        exact = [mpmath.mpf(lam) * v / mpmath.mpf(own.step) for v in at(low)]
        worst = max(abs(e - f) for e, f in zip(exact, found, strict=True))
    assert worst <= 0.5 + 1e-4


place = st.floats(-1, 1)
record = st.tuples(*[st.one_of(st.sampled_from([-1.0, 1.0]), place)] * 3)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(record, max_size=6),
    record,
    record,
    st.integers(1, 40),
    st.floats(-3, 5).map(lambda e: 10.0**e),
    st.floats(0.01, 10),
)
def test_no_neighbour_moves_the_minimiser_beyond_its_sensitivity(
    company: list[tuple[float, ...]],
    one: tuple[float, ...],
    other: tuple[float, ...],
    times: int,
    lam: float,
    radius: float,
) -> None:
    """Any company (repeated), any penalty and radius; add-remove and substitute, in released steps, exactly."""
    own = minimiser(radius)
    rest = np.array([*company * times]).reshape(-1, 3)
    alone = own.at(lam).integers(gram(own, rest))
    with_one, with_other = (own.at(lam).integers(gram(own, np.vstack([rest, row]))) for row in (one, other))
    for before, after, relation in (
        (alone, with_one, "add-remove"),
        (alone, with_other, "add-remove"),
        (with_one, with_other, "substitute"),
    ):
        moved = sum(int(d) ** 2 for d in after - before)
        assert Fraction(moved) <= own.sensitivity_squared(relation)


def test_the_search_comes_near_the_bound_and_a_bound_at_zero_would_fail() -> None:
    """Many records hold the line at the ball's edge on one side, where a record pulls to the other. Power of the test above."""
    own = minimiser()
    company, pull = (gram(own, np.array([row])) for row in ([0.0, 0.0, -1.0], [1.0, 1.0, 1.0]))
    best = 0.0
    for lam in np.geomspace(1, 1e5, 11):
        for many in 10 ** np.arange(7):
            before, after = own.at(lam).integers(company * int(many)), own.at(lam).integers(company * int(many) + pull)
            best = max(best, sqrt(sum(int(d) ** 2 for d in after - before)))
    assert 0.45 * 1024 < best <= 1024 + 4
    # |u||t|, the slope at theta = 0, is not enough: the line adds to the residual
    longest = (5 / 3) ** 0.5 * (5 / 9) ** 0.5
    assert longest / own.step < best


def test_the_penalty_follows_from_the_noisy_count_alone() -> None:
    method = OutputPerturbation("y ~ a + b")
    frame = pd.DataFrame(records(2_000, 1), columns=["a", "b", "y"])
    release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    count = float(release["count"].decode()[0])
    own = minimiser()
    noise = sqrt(release["minimiser"].variance) * own.step
    assert float(release.public["penalty"][0]) == pytest.approx(sqrt(count * noise * sqrt(3) / 2), rel=1e-4)
    # the noise of the line is the planned one: G/m over the penalty
    assert noise == pytest.approx(own.slope / sqrt(0.99), rel=0.01)


@pytest.mark.parametrize("formula", ["y ~ a + b", "y ~ 0 + a + b"])
def test_without_noise_and_penalty_it_is_weighted_least_squares(formula: str) -> None:
    rows = records(3_000, 2)
    frame = pd.DataFrame(rows, columns=["a", "b", "y"])
    method = OutputPerturbation(formula, penalty=0.001, radius=3.0)
    release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1e4), ledger=None, noise=ZeroNoise())
    z = np.column_stack([np.ones(len(rows)), rows[:, :2]])
    weight = np.sqrt(np.minimum(1, (5 / 3) / (z**2).sum(axis=1)))[:, None]
    x = z if formula == "y ~ a + b" else z[:, 1:]
    line, *_ = np.linalg.lstsq(weight * x, weight[:, 0] * rows[:, 2], rcond=None)
    # lam theta is released in steps of G/1024, whatever lam is: rounding is coarse at this tiny penalty
    np.testing.assert_allclose(method.infer(release).params, line, atol=minimiser(3.0).step / 0.001)
    better = OutputPerturbation(formula, penalty=5.0, radius=3.0)
    release = cf.release(better, cf.read(frame, SCHEMA), cf.GDP(1e4), ledger=None, noise=ZeroNoise())
    np.testing.assert_allclose(better.infer(release).params, line, atol=0.02)


def test_with_noise_it_beats_the_mean_and_a_line_that_is_too_long_stays_in_the_ball() -> None:
    rows = records(5_000, 3)
    frame, method = pd.DataFrame(rows, columns=["a", "b", "y"]), OutputPerturbation("y ~ a + b")
    losses = []
    for seed in range(15):
        found = method.infer(
            cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))
        )
        losses.append(float(((frame["y"] - found.predict(frame)) ** 2).mean()) / float(frame["y"].var()))
    assert np.median(losses) < 0.6
    short = OutputPerturbation("y ~ a + b", radius=0.1)
    release = cf.release(short, cf.read(frame, SCHEMA), cf.GDP(1e4), ledger=None, noise=ZeroNoise())
    assert np.linalg.norm(short.infer(release).params) <= 0.1 + 0.01


def test_the_published_claim_fails_for_squared_error() -> None:
    """One record moves the minimiser by more than 2/(n L), on which its noise rests."""
    n, regulariser = 500, 0.01
    x, y = np.full((n, 1), 0.1), np.full(n, 1.0)
    other_x, other_y = x.copy(), y.copy()
    other_x[0], other_y[0] = 1.0, -1.0
    g = np.random.default_rng(1)
    one, other = (
        output_perturbation(a, b, g, epsilon=1.0, regulariser=regulariser)["exact"]
        for a, b in ((x, y), (other_x, other_y))
    )
    assert abs(one - other)[0] > 1.3 * 2 / (n * regulariser)
    assert output_perturbation.guarantee is None and "slope" in output_perturbation.errata[0]
