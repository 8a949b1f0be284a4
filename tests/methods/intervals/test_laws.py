"""Laws of noise and exact moments behind intervals: against many digits, against sums written out, against draws."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from confide.methods.intervals.count_posteriors import ClippedNormal, ClippedPoisson, ColumnShape
from confide.methods.intervals.marginals import NoiseLaw, normal_laplace, normal_laplace_tail, two_normal_laplace


@mp.workdps(100)
def test_normal_and_laplace_in_one_coordinate_to_the_last_digits() -> None:
    generator = np.random.default_rng(1)
    for _ in range(60):
        sd = 10 ** generator.uniform(-4, 4)
        x = generator.uniform(0, 30) * max(sd, 1.0)
        s, v = mp.mpf(sd), mp.mpf(x)
        up, down = (mp.e ** (s * s / 2 + sign * v) * mp.erfc((s + sign * v / s) / mp.sqrt(2)) / 4 for sign in (-1, 1))
        exact = float(mp.log(up + down))
        assert normal_laplace(x, sd, 1.0) == pytest.approx(exact, abs=1e-10 * max(1.0, abs(exact)))


def test_two_coordinates_against_quadrature() -> None:
    generator, (nodes, weights) = np.random.default_rng(2), np.polynomial.legendre.leggauss(20)
    for _ in range(200):
        sd1, sd2 = 10 ** generator.uniform(-1.2, 1.2, 2)
        r = generator.choice([-1, 1]) * (1 - 10 ** generator.uniform(-2, 0))
        b1, b2 = 1.0, 10 ** generator.uniform(-0.5, 0.5)
        at = generator.uniform(-6, 6, 2) * np.array([max(sd1, b1), max(sd2, b2)])
        covariance = (sd1**2, r * sd1 * sd2, sd2**2)
        # given the first Laplace z, the rest is normal and one Laplace; panels around every place where the integrand bends
        slope = covariance[1] / covariance[0]
        rest = np.sqrt(covariance[2] - covariance[1] * slope)
        bends = (
            (0.0, b1),
            (at[0], sd1),
            (at[0] - at[1] / slope, rest / abs(slope)),
            (at[0] - at[1] / slope, b2 / abs(slope)),
        )
        ends = np.unique(np.concatenate([middle + size * np.arange(-40, 41) for middle, size in bends]))
        half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
        z = middle + half * nodes
        inner = normal_laplace(at[1] - slope * (at[0] - z), rest, b2)
        log_own = stats.norm.logpdf(at[0] - z, scale=sd1) - np.abs(z) / b1 - np.log(2 * b1) + inner
        exact = np.log((np.exp(log_own) * half * weights).sum())
        got = two_normal_laplace(*(np.array([v]) for v in (*at, *covariance)), b1, b2)[0]
        assert got == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("law", [NoiseLaw("geometric", 3.0), NoiseLaw("laplace", 2.0), NoiseLaw("normal", 1.5)])
def test_tails_are_sums_of_densities(law: NoiseLaw) -> None:
    if law.name == "geometric":
        z = np.arange(-200, 201)
        p = np.exp(law.logpdf(z))
        assert p.sum() == pytest.approx(1, abs=1e-12)
        for k in (-5, 0, 1, 7):
            assert law.tail(k) == pytest.approx(p[z >= k].sum(), abs=1e-12)
        assert law.variance == pytest.approx((p * z * z).sum())
    else:
        for k in (-3.0, 0.0, 2.5):
            x = np.linspace(k, 120, 400_001)
            assert law.tail(k) == pytest.approx(np.trapezoid(np.exp(law.logpdf(x)), x), abs=1e-8)


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_sums_of_geometric_noise_have_the_probabilities_of_a_convolution(scale: float) -> None:
    law, far = NoiseLaw("geometric", scale), int(30 * scale) + 30
    p = np.exp(law.logpdf(np.arange(-far, far + 1)))
    whole = p
    for many in (2, 3, 6):
        while len(whole) < many * (2 * far) + 1:
            whole = np.convolve(whole, p)
        middle, z = len(whole) // 2, np.array([0, 1, 2, int(3 * scale) + 1])
        assert law.logpdf_of_sum(many, -z) == pytest.approx(np.log(whole[middle + z]), abs=1e-9)
    assert NoiseLaw("normal", scale).logpdf_of_sum(4, 1.0) == pytest.approx(stats.norm.logpdf(1.0, scale=2 * scale))


def test_the_tail_of_two_laplaces_and_of_two_normals() -> None:
    g = np.random.default_rng(4)
    for a, b in ((1.0, 2.0), (2.0, 2.0), (1.0, 0.0)):
        x = g.laplace(0, a, 400_000) + b * g.laplace(0, 1.0, 400_000)
        for at in (-3.0, 0.0, 1.0, 4.0):
            found = NoiseLaw("laplace", a).tail_with(NoiseLaw("laplace", b), at)
            assert found == pytest.approx(float(np.mean(x >= at)), abs=4e-3)
    assert NoiseLaw("normal", 3.0).tail_with(NoiseLaw("normal", 4.0), 5.0) == pytest.approx(stats.norm.sf(1.0))


def test_the_tail_of_normal_and_laplace() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(0, 2.0, 400_000) + generator.laplace(0, 1.5, 400_000)
    for at in (-4.0, 0.0, 1.0, 5.0):
        assert float(normal_laplace_tail(at, 2.0, 1.5)) == pytest.approx(float(np.mean(x >= at)), abs=4e-3)


@pytest.mark.parametrize(("m", "s"), [(0.0, 0.25), (0.75, 0.25), (-0.9, 2.0), (0.3, 1e-3)])
def test_moments_of_a_clipped_normal(m: float, s: float) -> None:
    x, w = np.polynomial.legendre.leggauss(200)
    a, b = max(-1.0, m - 12 * s), min(1.0, m + 12 * s)
    z, w = (a + b) / 2 + (b - a) / 2 * x, w * (b - a) / 2
    p, low, high = stats.norm.pdf(z, m, s) * w, stats.norm.cdf(-1, m, s), stats.norm.sf(1, m, s)
    moments = [(p * z**k).sum() + (-1) ** k * low + high for k in range(5)]
    found = ClippedNormal.of(np.array(m), np.array(s))
    assert float(found.mean) == pytest.approx(moments[1], abs=1e-12)
    assert float(found.square) == pytest.approx(moments[2], abs=1e-12)
    assert float(found.c11) == pytest.approx(moments[2] - moments[1] ** 2, rel=1e-6, abs=1e-12)
    assert float(found.c12) == pytest.approx(moments[3] - moments[1] * moments[2], rel=1e-5, abs=1e-11)
    assert float(found.c22) == pytest.approx(moments[4] - moments[2] ** 2, rel=1e-5, abs=1e-11)


def test_sums_of_clipped_poisson_counts_are_exact() -> None:
    own, n = ClippedPoisson(np.array([1.0, 2.0, 3.0]), 6), 50
    for rate, p in enumerate(own.probabilities):
        whole = np.array([1.0])
        for _ in range(n):
            whole = np.convolve(whole, p)
        s = np.arange(len(whole))
        for function in (lambda s: 1.0 * (s >= 80), lambda s: np.exp(-np.abs(s - 80.3) / 7)):
            assert own.expected(n, function)[rate] == pytest.approx(float(whole @ function(s)), abs=1e-13)


def test_moments_of_clipped_records_by_drawing_them() -> None:
    """A million normals and Poisson counts, clipped: each moment within five standard errors, which a right one misses once in 10^6."""
    g, runs = np.random.default_rng(8), 1_000_000

    def apart(values: np.ndarray, stated: float) -> float:
        return abs(float(values.mean()) - stated) / (float(values.std()) / runs**0.5 + 1e-15)

    for m, s in ((0.2, 0.5), (0.9, 0.3), (-1.0, 2.0)):
        z, own = np.clip(g.normal(m, s, runs), -1, 1), ClippedNormal.of(np.array(m), np.array(s))
        first, second = z - float(own.mean), z * z - float(own.square)
        pairs = (z, own.mean), (z * z, own.square), (first**2, own.c11), (first * second, own.c12), (second**2, own.c22)
        assert max(apart(values, float(stated)) for values, stated in pairs) < 5
    for rate, cap in ((2.0, 6), (10.0, 8), (0.1, 3)):
        x = np.minimum(g.poisson(rate, runs), cap)
        mean, variance = (float(v[0]) for v in ClippedPoisson(np.array([rate]), cap).moments)
        assert apart(x, mean) < 5 and apart((x - mean) ** 2, variance) < 5


def test_third_moments_of_bounded_numbers_are_within_what_the_bounds_allow() -> None:
    """Of numbers of any distribution on [-1, 1], exactly at two places: they are skewed at least as much, on the side that is said."""
    generator = np.random.default_rng(1)
    places, weights = generator.uniform(-1, 1, (4, 20_000)), generator.dirichlet(np.full(4, 0.3), 20_000).T
    places[0], places[1, :10_000] = -1.0, 1.0
    m = (weights * places).sum(axis=0)
    off = places - m
    s = np.sqrt((weights * off**2).sum(axis=0))
    kept = s > 0.01
    third, own = (weights * off**3).sum(axis=0)[kept], ColumnShape(0.0, 2.0).moments(m[kept], s[kept])
    said = own.c12 - 2 * m[kept] * s[kept] ** 2
    assert (np.abs(said) > 1e-3).sum() > 1_000  # that bounds ask for some is no rare thing
    assert (np.sign(said) * (third - said) >= -1e-9).all()
    two = ColumnShape(0.0, 2.0).moments(
        np.array(-0.96), np.array(np.sqrt(1 - 0.96**2))
    )  # two places: z^2 is 1, whatever z is
    assert abs(float(two.c12)) < 1e-12


@pytest.mark.parametrize("at_once", [1, 700, 1_000_000])
def test_two_laplaces_are_the_same_however_many_nodes_are_worked_on_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = np.random.default_rng(2)
    points = [*g.normal(0, 30, (2, 90)), g.uniform(1, 9, 90), g.uniform(-0.9, 0.9, 90), g.uniform(1, 9, 90)]
    once = two_normal_laplace(*points, 2.0, 0.5)
    monkeypatch.setattr("confide.methods.intervals.marginals._AT_ONCE", at_once)
    assert np.isfinite(once).all() and np.array_equal(two_normal_laplace(*points, 2.0, 0.5), once)
