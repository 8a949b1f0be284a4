"""Zhou, Liu 2025, and the DP bootstrap it compares with: the numbers of docs/errata.md."""

from __future__ import annotations

import numpy as np
from scipy import stats

from confide.guarantees.curves.factories import gaussian
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.bootstrap_cost import bootstrap_cost
from confide_lab.published.precise import C0, beta_bins, density_gap, draws_of, l1_change, leak_event, least_epsilon

__all__ = ["CHECKS"]


def sensitivity() -> list[Finding]:
    """P1: how far one record moves all bins, in l1, n = 100, k = 30 and 31."""
    found = []
    for width, draws, value in ((0.005, 82, 14.06), (0.001, None, 70.9)):
        m = draws or draws_of(density_gap(30, 31, 100), width)
        moved = l1_change(beta_bins(30, 100, width), beta_bins(31, 100, width), m)[0]
        found.append(near(f"l1 move at width {width:g}", "1", moved, value, 6e-3))
    return found


def epsilon() -> list[Finding]:
    """P2: the least epsilon that holds for the noisy counts of random draws."""
    found = []
    for k, claim, m, value in ((30, 0.5, 82, 6.64), (0, 1.0, 86, 53.9)):
        true = least_epsilon(beta_bins(k, 100, 0.005), beta_bins(k + 1, 100, 0.005), m, claim)
        found.append(near(f"least epsilon, k = {k} and {k + 1} of 100", f"{claim:g}", true, value, 6e-3))
    return found


def collapse() -> list[Finding]:
    """P3: rates of one event of the released pair for 108 and 158 successes of 500 at a claimed epsilon of 1e-6."""
    generator = np.random.default_rng(1)
    rates = [float(np.mean([leak_event(k, 500, 1e-6, generator) < 0.266 for _ in range(100)])) for k in (108, 158)]
    return [
        Finding("rate at k = 108", "equal within 1.00005", rates[0], 0.99, 1.0),
        Finding("rate at k = 158", "", rates[1], 0.0, 0.01),
    ]


def supremum() -> list[Finding]:
    """P4: Definition 4's supremum at k = 0 against the limit C0/(p (1 - p)) at p = .3."""
    return [
        near(f"G_n at k = 0, n = {n}", f"{C0 / 0.21:.2f}", density_gap(0, 1, n), n + 1.0, 1e-6) for n in (100, 5000)
    ]


def ranks() -> list[Finding]:
    """P5: how far one record moves the expected rank of a point among the m draws, n = 100, k = 30 and 31, where 1 is claimed."""
    x = np.linspace(0, 1, 20_001)
    moved = np.abs(stats.beta(31, 71).cdf(x) - stats.beta(32, 70).cdf(x)).max()
    m = draws_of(density_gap(30, 31, 100), 0.005)
    return [near(f"expected move of a rank among {m} draws", "1", m * float(moved), 7.03, 0.01)]


def bootstrap() -> list[Finding]:
    """delta of B noisy resamples of 10,000 records, composed numerically, over that of the mu-GDP that is claimed, at epsilon = 4 mu."""
    return [
        near(
            f"delta over the claim's, B = {count}, mu = {mu:g}",
            "1",
            float(bootstrap_cost(10_000, count, mu).delta(4 * mu)) / float(gaussian(mu).delta(4 * mu)),
            value,
        )
        for count, mu, value in ((2000, 1.0, 1.17), (20, 1.0, 17.96))
    ]


CHECKS: dict[str, Check] = {
    "precise-p1": sensitivity,
    "precise-p2": epsilon,
    "precise-p3": collapse,
    "precise-p4": supremum,
    "precise-p5": ranks,
    "dp-bootstrap": bootstrap,
}
