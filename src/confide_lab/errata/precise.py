"""Zhou, Liu 2025, and the DP bootstrap it compares with: the numbers of evidence/errata.md."""

from __future__ import annotations

import numpy as np
from scipy import stats

from confide.guarantees.curves.factories import gaussian
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.bootstrap_cost import bootstrap_cost
from confide_lab.published.precise import (
    C0,
    beta_bins,
    density_gap,
    draws_of,
    l1_change,
    leak_event,
    least_epsilon,
    precise,
)

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
    """P2: the least epsilon that holds for the noisy counts of random draws; then for the released pair alone, which tells less."""
    found = []
    for k, claim, m, value in ((30, 0.5, 82, 6.64), (0, 1.0, 86, 53.9)):
        true = least_epsilon(beta_bins(k, 100, 0.005), beta_bins(k + 1, 100, 0.005), m, claim)
        found.append(
            near(f"least epsilon of the histogram, k = {k} and {k + 1} of 100", f"{claim:g}", true, value, 6e-3)
        )
    name = "least epsilon of the released pair, k = 0 and 1 of 100, width .0005, 99 % bound"
    found.append(Finding(name, "0.1", _pair(), 2.6, 3.6))
    return found


def _pair(runs: int = 3000) -> float:
    """Claimed epsilon .1: the event "lower end below a point", the point chosen on one half of the runs, its two rates from the other."""
    generator, width = np.random.default_rng(2), 0.0005
    m = draws_of(C0 / 0.21, width)
    first, second = (
        np.array([
            precise(generator.beta(1 + k, 101 - k, m), generator, bounds=(0.0, 1.0), width=width, epsilon=0.1)["lower"]
            for _ in range(runs)
        ]).reshape(2, -1)
        for k in (0, 1)
    )  # fmt: skip
    points = np.quantile(np.r_[first[0], second[0]], np.linspace(0.01, 0.99, 99))
    chosen = max(points, key=lambda at: _ratio(int((first[0] < at).sum()), int((second[0] < at).sum()), runs // 2))
    return _ratio(int((first[1] < chosen).sum()), int((second[1] < chosen).sum()), runs // 2)


def _ratio(hits: int, others: int, runs: int) -> float:
    """The log of a ratio of two rates that holds at 99 %."""
    low = float(stats.beta.ppf(0.005, hits, runs + 1 - hits)) if hits else 1e-9
    return float(np.log(low / stats.beta.ppf(0.995, others + 1, runs - others)))


def collapse() -> list[Finding]:
    """P3: rates of one event of the released pair for 108 and 158 successes of 500 at a claimed epsilon of 1e-6, with a bin at each end."""
    generator, runs, found = np.random.default_rng(1), 1500, []
    for width, pages in ((0.005, (0.37, 0.17)), (0.0005, (0.95, 0.02))):
        hits = [sum(leak_event(k, 500, 1e-6, generator, width=width) < 0.266 for _ in range(runs)) for k in (108, 158)]
        for k, count, page in zip((108, 158), hits, pages, strict=True):
            # four standard errors of so many runs
            reach = 4 * float(np.sqrt(page * (1 - page) / runs))
            found.append(
                Finding(
                    f"rate at k = {k}, width {width:g}",
                    "equal within 1.00005",
                    count / runs,
                    page - reach,
                    page + reach,
                )
            )
        each = _ratio(hits[0], hits[1], runs) / 50
        low, high = (0.008, 0.022) if width == 0.005 else (0.06, 0.08)
        found.append(Finding(f"least epsilon of a record, width {width:g}, 99 % bound", "1e-06", each, low, high))
    return found


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
