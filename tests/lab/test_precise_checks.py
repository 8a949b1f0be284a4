"""Checks A7 to A9, A12 and A13 of intervals for one parameter: narrow beside rivals, nothing lost without noise, one release, fast."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.few import few
from tests.pace import quick

from confide.methods.intervals.count_posteriors import Cells, PoissonSum, rate_posterior, share_posterior
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NoisyMoments, NormalSums, line_posterior, normal_posterior
from confide_lab.experiments.precise import exact_coverage
from confide_lab.experiments.precise_families import CAP, HALF, drawn, noise_of, rival

P = np.array([0.025, 0.975])


def _mean(n: int, sums: tuple[float, float], laws: tuple[NoiseLaw, ...]) -> float:
    grid = normal_posterior(NormalSums(n, *sums, laws[0], laws[1], 0.05 / HALF, 1.0))
    low, high = HALF * grid.of(lambda m, s: m, "m").quantile(P)
    return float(high - low)


@pytest.mark.parametrize(("n", "epsilon"), few([(100, 0.5), (100, 5.0), (500, 0.1), (1000, 1.0), (5000, 0.1)], 0, 1))
def test_shares_are_no_wider_than_the_bootstrap(n: int, epsilon: float) -> None:
    """A7, at a share of .3: at most 1.03 times the parametric bootstrap's interval, and narrower than that of three copies."""
    g, law = np.random.default_rng(7), NoiseLaw("geometric", 1 / epsilon)
    widths = []
    for _ in range(80):
        values = drawn("bernoulli", 0.3, n, g)
        low, high = share_posterior(values.sum() + law.draws(g, 1)[0], n, law).quantile(P)
        others = [rival(name, "bernoulli", values, 0.3, epsilon, False, g)["share"] for name in ("PB", "MS")]
        widths.append([high - low, *(b - a for a, b in others)])
    ours, bootstrap, copies = np.mean(widths, axis=0)
    assert ours <= 1.03 * bootstrap and ours < copies


def test_a_share_of_500_records_at_half_an_epsilon() -> None:
    """A8, without simulation: coverage in [.93, .975], a width of .083 within .002 at the counts that are likely."""
    law = NoiseLaw("geometric", 2.0)
    assert 0.93 <= exact_coverage("bernoulli", 0.3, 500, law) <= 0.975
    for y in range(140, 161, 5):
        low, high = share_posterior(float(y), 500, law).quantile(P)
        assert high - low == pytest.approx(0.083, abs=0.002)


@pytest.mark.parametrize("y", [-30.0, 0.0, 33.0, 120.0])
def test_a_mixture_of_betas_is_a_distribution(y: float) -> None:
    """Its weights add up to 1 within 1e-10, and so does its distribution function over the shares."""
    found = share_posterior(y, 100, NoiseLaw("geometric", 10.0))
    assert float(found.cdf(1.0) - found.cdf(0.0)) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("n", [1000, 5000])
def test_a_large_budget_loses_nothing(n: int, gaussian: bool) -> None:
    """A9: at a budget of 50 the width is that without privacy, within 2 %."""
    count = round(0.3 * n)
    low, high = share_posterior(count, n, NoiseLaw("normal" if gaussian else "geometric", 1 / 50)).quantile(P)
    plain = stats.beta.ppf(P, 0.5 + count, 0.5 + n - count)
    assert (high - low) / (plain[1] - plain[0]) == pytest.approx(1, abs=0.02)

    law = NoiseLaw("normal" if gaussian else "geometric", CAP / 50)
    low, high = rate_posterior(PoissonSum(n, 10.0 * n, law, CAP)).quantile(P)
    plain = stats.gamma.ppf(P, 1 + 10 * n, scale=1 / n)
    assert (high - low) / (plain[1] - plain[0]) == pytest.approx(1, abs=0.02)

    ours = _mean(n, (0.0, n / HALF**2), noise_of("normal", 50.0, gaussian))
    assert ours / (2 * stats.t.ppf(0.975, n - 1) / sqrt(n)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_without_noise_a_line_and_all_levels_have_their_conjugate_posteriors(law: str) -> None:
    """The quantiles of a slope are Student's, with n - d - 2 degrees of freedom; those of a level Beta's."""
    g, n = np.random.default_rng(4), 60
    x = np.column_stack([np.ones(n), g.uniform(-1, 1, (n, 2))])
    y = x @ [0.1, 0.4, -0.2] + g.normal(0, 0.2, n)
    rows = np.column_stack([x, y])
    none = NoiseLaw(law, 1e-9)
    found = line_posterior(NoisyMoments(rows.T @ rows, none, none, n, True), g)
    b, (rss,), *_ = np.linalg.lstsq(x, y, rcond=None)
    q, free = np.array([0.025, 0.5, 0.975]), n - 3 - 2
    for j, scale in enumerate(np.sqrt(rss / free * np.diag(np.linalg.inv(x.T @ x)))):
        assert found.marginal(np.eye(3)[j]).quantile(q) == pytest.approx(b[j] + scale * stats.t.ppf(q, free), abs=1e-6)
    counts = np.array([30, 10, 20])
    cells = Cells(counts, n, NoiseLaw("normal" if law == "normal" else "geometric", 0.01), np.full(3, 0.5))
    for j, k in enumerate(counts):
        assert cells.marginal(j).quantile(q) == pytest.approx(stats.beta.ppf(q, 0.5 + k, 1 + n - k), abs=1e-6)


@pytest.mark.parametrize(("n", "mu"), [(100, 0.1), (100, 0.5), (1000, 0.1)])
def test_one_joint_release_is_narrower_than_two(n: int, mu: float) -> None:
    """A12: the second moment costs the mean nothing; with half of the budget each, the mean's interval is 12 % wider or more."""
    g = np.random.default_rng(12)
    joint, split = noise_of("normal", mu, True), noise_of("normal", mu / sqrt(2), True)
    # each moment by itself: z moves by 2, z^2 by 1
    split = (split[0], NoiseLaw("normal", sqrt(2) / mu))
    widths = []
    for _ in range(12):
        z = np.clip(g.normal(size=n) / HALF, -1, 1)
        at = g.normal(size=2)
        widths.append(
            [
                _mean(n, (z.sum() + laws[0].scale * at[0], (z * z).sum() + laws[1].scale * at[1]), laws)
                for laws in (joint, split)
            ]
        )
    ours, theirs = np.mean(widths, axis=0)
    assert ours <= 0.88 * theirs


@pytest.mark.parametrize("gaussian", [True, False])
def test_many_records_cost_nothing(gaussian: bool) -> None:
    """A13: from the sums of 50,000 records an interval takes less than 2 s of a processor."""
    laws = noise_of("normal", 1.0, gaussian)
    quick(2, lambda: _mean(50_000, (10.0, 50_000 / HALF**2), laws))
