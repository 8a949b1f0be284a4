"""The numeric privacy loss: never below the truth, near it, monotone; against exact sums, quadrature and dp-accounting."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb, exp, inf, log, log1p

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as theirs
from hypothesis import given, settings, strategies as st
from tests.few import few
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.messages import refuses
from tests.pace import quick

from confide.errors import PrivacyError
from confide.guarantees import PrivacyLoss, gaussian_delta, gaussian_epsilon, privacy_loss
from confide.guarantees.mechanisms.classical import leak_delta

UP = 1 + 1e-11  # what a profile is rounded up by


# losses are never changed, so that tests share them
@cache
def gaussian(mu, **grid):
    return PrivacyLoss.from_profile(np.vectorize(lambda e: gaussian_delta(float(e), mu) * UP), **grid)


@cache
def laplace(epsilon, **grid):
    return PrivacyLoss.from_profile(lambda e: np.maximum(-np.expm1((e - epsilon) / 2), 0) * UP, **grid)


@cache
def leaking(epsilon, delta, k):
    one = PrivacyLoss.from_profile(np.vectorize(lambda e: leak_delta(epsilon, delta, float(e)) * UP))
    return one.power(k)


def heavy(c):
    """The limit d -> infinity of the symmetric Laplace family: the tail of its loss is 1/epsilon."""
    return lambda e: -np.expm1(-(c**2) / (np.sqrt(e**2 + 2 * c**2) + e)) * UP


def leaking_truth(epsilon, delta, k, at):
    """k-fold randomised response that leaks with probability delta: a binomial sum in 60 digits."""
    with mpmath.workdps(60):
        e, d, x = mpmath.mpf(epsilon), mpmath.mpf(delta), mpmath.mpf(at)
        likely = mpmath.exp(e) / (1 + mpmath.exp(e))
        kept = sum(
            comb(k, j) * likely**j * (1 - likely) ** (k - j) * max(0, 1 - mpmath.exp(x - (2 * j - k) * e))
            for j in range(k + 1)
        )
        return 1 - (1 - d) ** k * (1 - kept)


# ------------------------------------------------------------------------------------------------------------ accuracy


@pytest.mark.parametrize(
    ("mu", "k"), few([(1.0, 1), (1.0, 10), (0.1, 100), (0.03, 1_000), (1.0, 1_000), (5.0, 3)], 0, 1, 5)
)
def test_gaussians_are_never_below_the_truth_and_within_1e_6(mu, k):
    loss = gaussian(mu).power(k)
    together = mu * k**0.5
    for delta in (0.5, 1e-3, 1e-6, 1e-9, 1e-12):
        epsilon = gaussian_epsilon(delta, together)
        if epsilon < 0:
            continue
        assert mpmath.mpf(loss.delta(epsilon)) >= reference_delta(epsilon, together)
        assert loss.delta(epsilon) <= delta + 1e-6
        assert epsilon <= loss.epsilon(delta) <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize("at", [-1.0, 0.0, 0.7, 1.5, 4.0, 7.9])
@pytest.mark.parametrize(("epsilon", "delta", "k"), [(0.5, 0.0, 16), (0.5, 1e-6, 16), (1.0, 1e-9, 5), (0.1, 1e-8, 40)])
def test_randomised_response_with_a_leak(epsilon, delta, k, at):
    truth, found = leaking_truth(epsilon, delta, k, at), leaking(epsilon, delta, k).delta(at)
    assert truth <= mpmath.mpf(found) <= truth + mpmath.mpf("1e-6")


@pytest.mark.long
def test_sums_by_quadrature():
    """Laplace twice, and Laplace after Gaussian: delta(e) is the mean of the second profile at e less the first loss."""
    with mpmath.workdps(25):

        def profile(e, size):  # of the Laplace mechanism, at any real e
            if e >= 0:
                return max(mpmath.mpf(0), 1 - mpmath.exp((e - size) / 2)) if e < size else mpmath.mpf(0)
            return 1 - mpmath.exp(e) * (1 - profile(-e, size))

        for at in (0.0, 0.4, 1.1, 1.5):
            size = mpmath.mpf("0.8")
            inner = sorted({-size, size, *(x for x in (mpmath.mpf(at) - size, mpmath.mpf(at)) if -size < x < size)})
            # loss under P: size with probability 1/2, -size with e^-size/2, and density e^((l - size)/2)/4 in between
            twice = (
                profile(at - size, size) / 2
                + profile(at + size, size) * mpmath.exp(-size) / 2
                + mpmath.quad(lambda x, s=size, t=at: profile(t - x, s) * mpmath.exp((x - s) / 2) / 4, inner)
            )
            found = laplace(0.8).power(2).delta(at)
            assert twice * (1 - mpmath.mpf("1e-15")) <= found <= twice + mpmath.mpf("1e-7")
            mixed = mpmath.quad(
                lambda z, s=size, t=at: profile(t - (z + mpmath.mpf(1) / 2), s) * mpmath.npdf(z),
                sorted([-12, -6, -3, 0, 3, 6, 12, at - size - 0.5, at - 0.5, at + size - 0.5]),
            )
            found = gaussian(1.0).compose(laplace(0.8)).delta(at)
            assert mixed * (1 - mpmath.mpf("1e-12")) <= found <= mixed + mpmath.mpf("1e-7")


def test_heavy_tails():
    """Frozen from 4e5 Monte Carlo draws (standard error 6e-4) and from the closed form for one release."""
    one = PrivacyLoss.from_profile(heavy(0.5))
    points = np.array([-3.0, 0.0, 0.5, 2.0, 20.0, 60.0])
    mirrored = np.where(points < 0, -np.expm1(points) + np.exp(points) * heavy(0.5)(-points), heavy(0.5)(points))
    assert np.all(one.delta(points) >= mirrored * (1 - 1e-10))
    assert one.delta(points)[:5] == pytest.approx(mirrored[:5], rel=1e-6)
    two = one.power(2)
    assert [two.delta(e) for e in (0.5, 1.0, 2.0)] == pytest.approx([0.3139, 0.2256, 0.1316], abs=6 * 6e-4)
    assert [laplace(2**0.5 / 2).power(2).delta(e) for e in (0.5, 1.0)] == pytest.approx([0.2226, 0.1029], abs=6 * 6e-4)


@pytest.mark.parametrize(
    ("ours", "k", "their_one"),
    few(
        [
            (lambda: gaussian(1.0), 10, lambda **g: theirs.from_gaussian_mechanism(1.0, **g)),
            (lambda: gaussian(0.1), 1_000, lambda **g: theirs.from_gaussian_mechanism(10.0, **g)),
            (lambda: laplace(0.5), 100, lambda **g: theirs.from_laplace_mechanism(2.0, **g)),
            (lambda: laplace(0.1), 1_000, lambda **g: theirs.from_laplace_mechanism(10.0, **g)),
            (lambda: laplace(1.0), 4, lambda **g: theirs.from_laplace_mechanism(1.0, **g)),
        ],
        2,
        4,
    ),
)
def test_agreement_with_dp_accounting(ours, k, their_one):
    mine, other = ours().power(k), their_one(value_discretization_interval=1e-4).self_compose(k)
    for delta in (1e-3, 1e-6):
        epsilon = other.get_epsilon_for_delta(delta)
        assert mine.epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
        assert mine.delta(epsilon) == pytest.approx(other.get_delta_for_epsilon(epsilon), abs=1e-6)


def test_a_mixture_agrees_with_dp_accounting():
    mine = gaussian(1.0).compose(laplace(0.1).power(20), laplace(0.5))
    grid = {"value_discretization_interval": 1e-4}
    other = theirs.from_gaussian_mechanism(1.0, **grid)
    other = other.compose(theirs.from_laplace_mechanism(10.0, **grid).self_compose(20))
    other = other.compose(theirs.from_laplace_mechanism(2.0, **grid))
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = other.get_epsilon_for_delta(delta)
        assert mine.epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
        assert mine.delta(epsilon) == pytest.approx(other.get_delta_for_epsilon(epsilon), abs=1e-6)


def test_small_deltas_need_the_tilts(monkeypatch):
    """The planted fault: without tilting, round-off alone is above a delta of 1e-12."""
    loss, together = laplace(0.1), gaussian_epsilon(1e-12, 0.1 * 1_000**0.5)
    with_tilts = loss.power(1_000).delta(together)
    assert with_tilts < 1e-12  # a Laplace loss varies less than that of a Gaussian with mu = epsilon
    monkeypatch.setattr(privacy_loss, "_TILTS", 0)
    assert loss.power(1_000).delta(together) > 2 * with_tilts


def test_a_thousand_releases_take_less_than_a_second():
    quick(1, lambda: gaussian(0.1).power(1_000).epsilon(1e-6))  # 0.4 s on an idle core


# ---------------------------------------------------------------------------------------------- ordered pairs, exactly


def hockey_stick(pairs, at):
    return float(sum(max(mpmath.mpf(0), p - mpmath.exp(mpmath.mpf(at)) * q) for p, q in pairs))


def law(weights):
    total = sum(weights)
    return [w / total for w in weights]


WEIGHTS = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4).map(law)


def discrete(p, q, step=2**-6):
    """The loss of a pair of laws on a few outcomes; an outcome that Q lacks has an infinite loss."""
    atoms = [(log(a / b) if b else inf, a) for a, b in zip(p, q, strict=True)]
    return PrivacyLoss.from_masses([0.0] * 2048, [0.0] * 2048, step=step, first=-1024, atoms=atoms)


@settings(deadline=None, max_examples=40)
@given(WEIGHTS, WEIGHTS, st.floats(-2, 3), st.sampled_from([1, 2, 3]))
def test_any_pair_of_discrete_laws(p, q, at, k):
    """Atoms off the grid: the truth, summed over all outcomes, is below and near."""
    q = [*law(q[:3]), 0.0]
    truth = hockey_stick(
        [(np.prod(a), np.prod(b)) for a, b in zip(product(p, repeat=k), product(q, repeat=k), strict=True)], at
    )
    found = discrete(p, q).power(k).delta(at)
    assert truth * (1 - 1e-12) <= found <= truth + k * 2**-7
    finer = discrete(p, q, step=2**-7).power(k).delta(at)
    assert truth * (1 - 1e-12) <= finer <= found * (1 + 1e-9)


def test_the_exact_sum_catches_masses_that_are_moved_down():
    """The planted fault: atoms put on the point below, which connecting the dots never does."""
    p, q = [0.3, 0.5, 0.2], [0.2, 0.2, 0.6]
    truth = hockey_stick(zip(p, q, strict=True), 0.2)
    floored = np.zeros(1024)
    for a, b in zip(p, q, strict=True):
        floored[int(log(a / b) // 2**-6) + 512] += a
    assert PrivacyLoss(2**-6, -512, floored, 0.0).delta(0.2) < truth * (1 - 1e-3)
    assert discrete(p, q).delta(0.2) >= truth


def normal_between(points, mean):
    """Masses of N(mean, 1) between neighbouring points, in the tail with the digits."""
    from scipy.special import ndtr

    shifted = points - mean
    return np.where(shifted[:-1] > 0, -np.diff(ndtr(-shifted)), np.diff(ndtr(shifted)))


@pytest.mark.parametrize("build", ["masses", "tails"])
def test_a_gaussian_pair_with_a_merged_middle(build):
    """The pair N(0,1), N(-mu,1) whose central part, of P-mass 1 - 2q, is one outcome: another profile in each order."""
    from scipy.special import ndtr, ndtri

    mu, q, step, first, points = 0.7, 0.1, 2**-9, -4096, 8193
    z = -ndtri(q)
    losses = step * (first + np.arange(points))
    x = (losses - mu**2 / 2) / mu
    clipped = np.where(np.abs(x) < z, np.where(x < 0, -z, z), x)  # the middle holds no continuous mass
    atom_p, atom_q = 1 - 2 * q, ndtr(z + mu) - ndtr(-z + mu)
    atom = (log(atom_p / atom_q), atom_p)
    if build == "masses":
        p, r = normal_between(clipped, 0.0), normal_between(clipped, -mu)
        cut = (clipped[:-1] == -z) & (clipped[1:] == z)
        p, r = np.where(cut, 0.0, p), np.where(cut, 0.0, r)
        loss = PrivacyLoss.from_masses(p, r, step=step, first=first, above=ndtr(-x[-1]), below=ndtr(x[0]), atoms=[atom])
    else:
        above_p = np.where(x < z, ndtr(-np.minimum(x, -z)) - atom_p, ndtr(-x))
        above_p = np.where(x >= z, ndtr(-x), np.where(x <= -z, ndtr(-x) - atom_p, q))
        above_q = np.where(x >= z, ndtr(-x - mu), np.where(x <= -z, ndtr(-x - mu) - atom_q, ndtr(-z - mu)))
        loss = PrivacyLoss.from_tails(above_p, above_q, step=step, first=first, atoms=[atom])
    for at in (-1.0, 0.0, 0.3, 0.9, 1.5):
        # the continuous part above the loss `at` lies right of x(at), outside the middle
        cut = (at - mu**2 / 2) / mu
        right = max(cut, z)
        truth = ndtr(-right) - exp(at) * ndtr(-right - mu)
        if cut < -z:
            truth += (ndtr(-z) - ndtr(cut)) - exp(at) * (ndtr(-z + mu) - ndtr(cut + mu))
        truth += max(0.0, atom_p - exp(at) * atom_q)
        assert truth * (1 - 1e-9) <= loss.delta(at) <= truth + 1e-6


# ------------------------------------------------------------------------------------------------------------- shape


LEVELS = st.floats(0.05, 3.0)


@settings(deadline=None, max_examples=25)
@given(LEVELS, st.floats(1.0, 2.0), st.integers(1, 30), st.floats(0, 6))
def test_monotone_in_the_profile_and_in_the_number(level, more, k, at):
    grid = {"step": 2**-9, "high": 16.0}
    low, high = laplace(level, **grid), laplace(level * more, **grid)
    assert low.power(k).delta(at) <= high.power(k).delta(at) * (1 + 1e-8) + 1e-25
    assert low.power(k).delta(at) <= low.power(k + 1).delta(at) * (1 + 1e-8) + 1e-25
    assert low.compose(high).delta(at) <= high.power(2).delta(at) * (1 + 1e-8) + 1e-25


@settings(deadline=None, max_examples=25)
@given(LEVELS, LEVELS, st.lists(st.integers(-800, 800), min_size=3, max_size=3, unique=True))
def test_profiles_fall_and_are_convex_in_the_exponential(level, other, points):
    loss = laplace(level, step=2**-8).compose(laplace(other, step=2**-7))
    low, middle, high = (point / 100 + 1e-3 for point in sorted(points))
    weight = (exp(high) - exp(middle)) / (exp(high) - exp(low))
    deltas = [loss.delta(e) for e in (low, middle, high)]
    assert deltas == sorted(deltas, reverse=True) and deltas[2] >= 0 and deltas[0] <= 1
    assert deltas[1] <= (weight * deltas[0] + (1 - weight) * deltas[2]) * (1 + 1e-10) + 1e-15


@settings(deadline=None, max_examples=40)
@given(LEVELS, st.integers(1, 20), st.floats(0.5, 500))
def test_epsilon_inverts_delta_on_the_safe_side(level, k, surprise):
    loss, goal = laplace(level, step=2**-8).power(k), exp(-surprise)
    epsilon = loss.epsilon(goal)
    if epsilon == inf:
        assert loss.infinity > goal
        return
    assert loss.delta(epsilon) <= goal
    if epsilon > 1e-6:
        assert loss.delta(epsilon * (1 - 1e-9)) > goal * (1 - 1e-6)


@settings(deadline=None, max_examples=25)
@given(LEVELS, st.integers(0, 2**32 - 1))
def test_a_profile_that_is_not_quite_convex_stays_above_the_truth(level, seed):
    noise = np.random.default_rng(seed)
    exact = lambda e: np.maximum(-np.expm1((e - level) / 2), 0)  # noqa: E731
    rough = PrivacyLoss.from_profile(lambda e: exact(e) + 1e-7 * noise.random(e.shape), step=2**-6, high=8.0)
    points = np.linspace(0, 8, 77)
    assert np.all(rough.delta(points) >= exact(points) * (1 - 1e-12))
    assert np.all(rough.delta(points) <= exact(points) + 2e-7 + 2**-8)


def test_composition_is_in_any_order_and_meets_on_the_wider_step():
    parts = [laplace(0.3, step=2**-9), laplace(0.7, step=2**-7), gaussian(0.5, step=2**-8, high=8.0)]
    there, back = parts[0].compose(*parts[1:]), parts[2].compose(parts[1], parts[0])
    assert there.step == back.step == 2**-7
    assert np.array_equal(there.masses, back.masses)
    assert parts[0].compose(parts[0], parts[0]).delta(0.5) == pytest.approx(parts[0].power(3).delta(0.5), rel=1e-9)


@pytest.mark.long
def test_forty_different_losses():
    """Joined in groups, the small ones first; each may cost 1e-6 of epsilon."""
    levels = [0.01 * (1 + j) for j in range(40)]
    together = laplace(levels[0]).compose(*map(laplace, levels[1:]))
    other = theirs.identity(value_discretization_interval=1e-4)
    for level in levels:
        other = other.compose(theirs.from_laplace_mechanism(1 / level, value_discretization_interval=1e-4))
    assert together.epsilon(1e-6) == pytest.approx(other.get_epsilon_for_delta(1e-6), rel=2e-6)


def test_mass_at_infinity_adds_up():
    loss = leaking(0.5, 1e-3, 10)
    assert loss.infinity == pytest.approx(-np.expm1(10 * log1p(-1e-3)), rel=1e-12)
    assert loss.epsilon(1e-3) == inf and loss.epsilon(1e-2) < 5.0001
    sure = PrivacyLoss(0.5, 0, [0.0], 1.0)
    assert sure.compose(loss).infinity == 1.0 and sure.delta(50.0) == 1.0 and sure.epsilon(1.0) == 0.0


def test_the_profile_left_of_the_grid():
    loss = laplace(1.0)
    for at in (-0.5, -1.0, -3.0, -40.0):
        mirrored = -np.expm1(at) + exp(at) * float(loss.delta(-at))
        assert loss.delta(at) == pytest.approx(mirrored, rel=1e-10)
    assert isinstance(loss.delta(0.3), float) and loss.delta(np.array([0.1, 0.2])).shape == (2,)
    losses, profile = loss.knots()
    assert losses.shape == profile.shape and np.all(np.diff(profile) <= 0)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "call",
    [
        lambda: PrivacyLoss(0.5, 0, [], 0.0),
        lambda: PrivacyLoss(0.5, 0, [-0.1], 0.0),
        lambda: PrivacyLoss(0.5, 0, [np.nan], 0.0),
        lambda: PrivacyLoss(0.5, 0, [[1.0]], 0.0),
        lambda: PrivacyLoss(0.0, 0, [1.0], 0.0),
        lambda: PrivacyLoss(np.inf, 0, [1.0], 0.0),
        lambda: PrivacyLoss(0.5, 0, [1.0], 1.5),
        lambda: laplace(1.0).power(0),
        lambda: laplace(1.0).power(1.5),
        lambda: laplace(1.0).epsilon(-1.0),
        lambda: laplace(1.0).epsilon(np.nan),
        lambda: PrivacyLoss.from_profile(lambda e: e[:0]),
        lambda: PrivacyLoss.from_profile(lambda e: e * np.nan),
        lambda: PrivacyLoss.from_profile(lambda e: e - 1.0),
        lambda: PrivacyLoss.from_masses([1.0], [1.0, 2.0], step=0.5, first=0),
        lambda: PrivacyLoss.from_masses([-1.0], [1.0], step=0.5, first=0),
    ],
)
def test_refusals(call):
    with refuses(PrivacyError):
        call()


def test_masses_are_read_only_and_the_text_is_short():
    loss = laplace(0.5)
    with pytest.raises(ValueError, match="read-only"):
        loss.masses[0] = 1.0
    assert repr(loss).startswith("PrivacyLoss(step=") and len(repr(loss)) < 120


# a few last digits matter where a profile is small beside its neighbours on the grid: small losses, and just before a loss ends
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_randomised_response_to_the_last_digit(epsilon, k):
    single = PrivacyLoss.from_profile(
        lambda at: np.maximum(-np.expm1(at - epsilon) / (1 + np.exp(-epsilon)), 0) * (1 + 1e-12), high=epsilon
    )
    many = single.power(k)
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        for at in (0.0, 0.3 * epsilon, 0.9 * epsilon * k, epsilon * k * (1 - 1e-9)):
            terms = ((j, p**j * (1 - p) ** (k - j), p ** (k - j) * (1 - p) ** j) for j in range(k + 1))
            truth = sum(mpmath.binomial(k, j) * max(a - mpmath.exp(mpmath.mpf(at)) * b, 0) for j, a, b in terms)
            assert truth <= mpmath.mpf(many.delta(at)) <= truth * (1 + mpmath.mpf(10) ** -3) + mpmath.mpf(10) ** -15
