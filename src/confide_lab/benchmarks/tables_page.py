"""Figures of the derivation of tables, at 20,000 draws each: `confide lab bench tables_page`.

Counts with noise, differences, relative risks and odds ratios of two shares, means of a rare 0/1 column: coverage of 95 % intervals beside
the figure that a prototype of the derivation gave, in per cent. A figure is off when the two differ by more than two points and more than
3.3 standard errors. Where a later correction changed the interval (counts: a noisy count below 0 is read as 0) the figure is a floor; so
it is for rare means, where intervals of the derivation fall short of 95 themselves and ours cover more.
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


#: (records in each group, mu) -> size of a t test that ignores the noise, normal records within 4 sds.
IGNORED = {(50, 1.0): 15.9, (50, 0.3): 47.0, (200, 0.3): 23.0, (2000, 0.1): 19.0}
#: (records, mu) of a correlation.
FISHER = ((200, 1.0), (1000, 0.3))


def _said(page: float) -> str:
    """A figure of the derivation, where it has one."""
    return "-" if np.isnan(page) else f"{page:g}"


def _row(check: str, found: float, page: float, *, floor: bool = False, draws: int = DRAWS) -> dict[str, Any]:
    error = 100 * float(np.sqrt(max(found * (1 - found), 1e-4) / draws))
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
            floor=True,
        )


def practice(g: np.random.Generator) -> Iterator[dict[str, Any]]:
    """What is often done with noisy numbers, by the rows of evidence/errata.md: sizes, a coverage, and a sum's bias."""
    for (n, mu), page in IGNORED.items():
        # two groups of one normal distribution within 4 sds, as rows of one table, 2,000 times
        sums = noisy_sums(np.clip(g.standard_normal((4_000, n)) / 4, -1, 1), mu, g)
        size = np.maximum(sums.n, 2.0)
        spread = np.maximum(1 - sums.q / size - (sums.s / size) ** 2, 1e-4) / (size - 1)
        gap, error = np.diff((sums.s / size).reshape(-1, 2))[:, 0], np.sqrt(spread.reshape(-1, 2).sum(1))
        name = f"noisy means in a t test, 2 x {n}, mu = {mu:g}: size"
        yield _row(name, float((np.abs(gap) > _Z * error).mean()), page, draws=2_000)
    yield _row("1,000 empty cells set to 0 from below: bias of a cell, in noise sds", _clipped(g), 39.9)
    for n, mu in FISHER:
        name = f"Fisher's z of a noisy correlation .5, n = {n}, mu = {mu:g}: coverage"
        yield _row(name, _fisher(n, mu, g), float("nan"), draws=2_000)


def _clipped(g: np.random.Generator) -> float:
    return float(np.maximum(g.standard_normal(100 * DRAWS), 0.0).mean())


def _fisher(n: int, mu: float, g: np.random.Generator) -> float:
    """Coverage of tanh(z +- 1.96/sqrt(n - 3)) from sums with the noise of the correlation's release, a0^2 = .45."""
    x, y = g.standard_normal((2, 2_000, n))
    u, v = x / 4, (0.5 * x + np.sqrt(0.75) * y) / 4
    sds = np.array([1 / 0.45, *[1 / np.sqrt(0.45 * 0.55)] * 4, 1 / 0.55]) / mu
    exact = [np.full(2_000, float(n)), *(part.sum(1) for part in (u, v, u * u, v * v, u * v))]
    size, su, sv, suu, svv, suv = (part + sd * g.standard_normal(2_000) for part, sd in zip(exact, sds, strict=True))
    with np.errstate(all="ignore"):
        top = suv / size - su * sv / size**2
        r = top / np.sqrt((suu / size - (su / size) ** 2) * (svv / size - (sv / size) ** 2))
        gap = np.abs(np.arctanh(r) - np.arctanh(0.5))
    return float((gap <= _Z / np.sqrt(n - 3)).mean())


def run() -> list[dict[str, Any]]:
    """All figures."""
    g = np.random.default_rng(20_261_123)
    rows = [*counts(g), *pairs(g), *rare(g), *practice(g)]
    print("| figure | here | derivation | off |\n| --- | --- | --- | --- |")
    for row in rows:
        at_least = "at least " if row["floor"] else ""
        print(
            f"| {row['check']} | {row['value']:.1f} | {at_least}{_said(row['page'])} | {'' if row['passed'] else 'off'} |"
        )
    return rows


if __name__ == "__main__":
    run()
