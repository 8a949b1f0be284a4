"""Figures of the derivation of tables, at 20,000 draws each: `confide lab bench tables_page`.

Counts with noise, differences, relative risks and odds ratios of two shares, means of a rare 0/1 column: coverage of 95 % intervals beside
the figure that a prototype of the derivation gave, in per cent. A figure is off when the two differ by more than two points and more than
3.3 standard errors. Where a later correction changed the interval (counts: a noisy count below 0 is read as 0) the figure is a floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from confide.methods.tables.intervals import count_interval, difference, ratio, share_interval
from confide_lab.experiments.tables import noisy_sums

__all__ = ["run"]

DRAWS = 20_000
_Z = 1.959963984540054
#: Noise sd -> (least coverage of ours, least of Wald's) over Poisson means from .1 to 80.
COUNTS = {0.5: (94.8, 80.5), 1.0: (95.0, 87.8), 2.0: (95.0, 92.2), 5.0: (95.0, 94.2), 20.0: (95.0, 94.9)}
MEANS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 80.0)
#: (n1, n2, p1, p2, mu) -> difference, relative risk, odds ratio, share of open intervals.
PAIRS = {
    (100, 100, 0.1, 0.1, 1.0): (95.3, 95.1, 95.1, 0.5),
    (500, 500, 0.02, 0.04, 1.0): (95.3, 95.2, 95.2, 0.4),
    (50, 50, 0.1, 0.1, 0.5): (96.2, 95.6, 95.6, 59.0),
    (100, 100, 0.02, 0.1, 0.3): (95.2, 96.0, 96.2, 92.0),
}
#: (records, mu) -> coverage of the mean of a 0/1 column with a share of .01.
RARE = {(50, 10.0): 84.1, (100, 3.0): 90.5, (500, 10.0): 93.8}


def _row(check: str, found: float, page: float, *, floor: bool = False) -> dict[str, Any]:
    error = 100 * float(np.sqrt(max(found * (1 - found), 1e-4) / DRAWS))
    gap = 100 * found - page
    off = (-gap if floor else abs(gap)) > max(2.0, 3.3 * error)
    return {"check": check, "value": round(100 * found, 2), "page": page, "floor": floor, "passed": not off}


def counts(g: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Poisson means with noise: the least coverage over the means."""
    for sd, (ours, wald) in COUNTS.items():
        found, plain = [], []
        for mean in MEANS:
            y = g.poisson(mean, DRAWS) + sd * g.standard_normal(DRAWS)
            low, high = count_interval(y, sd**2, _Z)
            found.append(float(((low <= mean) & (mean <= high)).mean()))
            plain.append(float((np.abs(y - mean) <= _Z * np.sqrt(np.maximum(y, 0) + sd**2)).mean()))
        yield _row(f"counts, noise sd {sd:g}: least coverage", min(found), ours, floor=True)
        yield _row(f"counts, noise sd {sd:g}: least coverage of Wald's", min(plain), wald)


def pairs(g: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Two shares of separate groups, each count with noise of its own."""
    for (n1, n2, p1, p2, mu), page in PAIRS.items():
        parts = []
        for n, p in ((n1, p1), (n2, p2)):
            y = g.binomial(n, p, DRAWS) + g.standard_normal(DRAWS) / mu
            size = n + g.standard_normal(DRAWS) / mu
            low, high = share_interval(y, size, mu**-2, mu**-2, 0.0, _Z)
            parts.append((np.clip(y / np.maximum(size, 1.0), 0, 1), low, high))
        found = [
            (difference(parts[0], parts[1]), p1 - p2),
            (ratio(parts[0], parts[1]), p1 / p2),
            (ratio(parts[0], parts[1], odds=True), p1 * (1 - p2) / (p2 * (1 - p1))),
        ]
        setting = f"{n1}, {n2}, {p1:g}, {p2:g}, mu = {mu:g}"
        for name, ((_, low, high), truth), value in zip(
            ("difference", "relative risk", "odds ratio"), found, page, strict=False
        ):
            yield _row(f"{name}: {setting}", float(((low <= truth) & (truth <= high)).mean()), value)
        _, low, high = found[1][0]
        yield _row(f"open: {setting}", float(((low == 0) | ~np.isfinite(high)).mean()), page[3])


def rare(g: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Means whose sampling error is skewed."""
    for (n, mu), page in RARE.items():
        sums = noisy_sums(np.where(g.random((DRAWS, n)) < 0.01, 1.0, -1.0), mu, g)
        low, high = sums.interval(_Z)
        yield _row(
            f"mean of a 0/1 column, share .01, n = {n}, mu = {mu:g}",
            float(((low <= -0.98) & (high >= -0.98)).mean()),
            page,
        )


def run() -> list[dict[str, Any]]:
    """All figures."""
    g = np.random.default_rng(20_261_123)
    rows = [*counts(g), *pairs(g), *rare(g)]
    print("| figure | here | derivation | off |\n| --- | --- | --- | --- |")
    for row in rows:
        at_least = "at least " if row["floor"] else ""
        print(f"| {row['check']} | {row['value']:.1f} | {at_least}{row['page']:g} | {'' if row['passed'] else 'off'} |")
    return rows


if __name__ == "__main__":
    run()
