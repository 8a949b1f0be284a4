"""Power of a test before anything is spent: the chance to reject at 5% under an effect, of a public number of records.

Everything follows from the plan's noise variances and textbook effect sizes, those of Cohen 1988:

    d  difference of two means over the standard deviation (t, paired t)
    f  standard deviation of the groups' means over that of records (F)
    w  chi-square per record (independence, fit); r  correlation (pearsonr, and of score and outcome in a trend)
    h  difference of two shares (binomtest)

Groups and cells are assumed to be equally large, and the standard deviation of records to be a sixth of their range. Noise enters as in
the tests. Rank tests state their power in their own plans. A power is computed from a public n, and no plan's file contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from confide import _special as special
from confide._helpers import later
from confide.core import Allowance
from confide.errors import PlanError

stats = later("scipy.stats")

_LEVEL, _WANTED, _SIZES = 0.05, 0.8, (1_000, 10_000, 100_000)
_SD = 1 / 3  # of records, in halves of the range
#: What an effect is called, the one that is shown when none is given (Cohen's small to medium), and what it is.
EFFECTS: Mapping[str, tuple[str, float, str]] = {
    "ttest_ind": ("d", 0.2, "difference of the means in standard deviations"),
    "ttest_rel": ("d", 0.2, "mean difference in standard deviations"),
    "f_oneway": ("f", 0.1, "spread of the groups' means in standard deviations"),
    "chi2_contingency": ("w", 0.1, "root of chi-square per record"),
    "chisquare": ("w", 0.1, "root of chi-square per record"),
    "binomtest": ("h", 0.05, "difference of the share"),
    "trend": ("r", 0.1, "correlation of score and outcome"),
    "pearsonr": ("r", 0.1, "correlation"),
}

#: Of an effect: (degrees of freedom, non-centrality of chi-square, and what its quantile is stretched by, if at all) at n records.
Centre = Callable[[float, float], tuple[float, ...]]


@dataclass(frozen=True)
class Power:
    """The power of a test. name: as in `cf.tests`; rows: (n, power at `effect`, the effect found in 80 of 100 runs) for each n."""

    name: str
    effect: float
    rows: tuple[tuple[int, float, float], ...]

    def lines(self) -> tuple[str, ...]:
        """One line for each number of records."""
        letter, _, words = EFFECTS[self.name]
        found = []
        for n, power, least in self.rows:
            most = f"80% for {letter} = {least:.2g}" if least < inf else "no effect has 80%"
            what = f"{letter} = {self.effect:g} ({words})"
            found.append(f"power of {self.name} (5%) at {n:,} records: {power:.0%} for {what}; {most}")
        return tuple(found)


def power_of(
    name: str, method: Any, schema: Any, privacy: Any, *, n: int | None = None, effect: float | None = None
) -> Power:
    """The power of a test by the method whose release answers it, under a privacy; at n records, or at three sizes without n."""
    letter, usual, words = EFFECTS[name]
    shown = usual if effect is None else effect
    if isinstance(shown, bool) or not isinstance(shown, (int, float)) or not 0 < shown < inf:
        raise PlanError(f"effect of {name} is {letter}, {words}, above 0; got {effect!r}", f"write effect={usual:g}")
    allowance = Allowance.of(privacy, method, schema)
    unit = 1.0 / float(allowance.amount)
    centre = _CENTRES[name](method, method.about(schema), allowance.relation, unit)
    rows = []
    for size in (n,) if n else _SIZES:
        rows.append((int(size), _power(*centre(size, shown)), _least(centre, size)))
    return Power(name, float(shown), tuple(rows))


def _power(df: float, away: float, stretch: float = 1.0) -> float:
    return float(stats.ncx2.sf(stretch * stats.chi2.isf(_LEVEL, df), df, max(away, 1e-12)))


def _least(centre: Centre, n: float) -> float:
    """The smallest effect with a power of 80%."""
    low, high = 0.0, 1e-4
    while _power(*centre(n, high)) < _WANTED:
        low, high = high, 2 * high
        if high > 1e3:
            return inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(*centre(n, middle)) < _WANTED else (low, middle)
    return high


# the tests -------------------------------------------------------------------------------------------------------------


def _means(*, paired: bool = False, two: bool = False) -> Callable[..., Centre]:
    def made(method: Any, layout: Any, relation: str, unit: float) -> Centre:
        axes = () if paired else max(layout.shown, key=len)
        cells = layout.crossing.cells(axes)
        v0, v1 = method._noises(layout, method.strategy(layout).variance(axes) * unit, relation)
        share = layout.usual

        def centre(n: float, effect: float) -> tuple[float, ...]:
            size = n / cells
            # of a cell's mean, in sds of records: sampling, and the noise of a mean half-way to its bound
            own = 1 / size + (v1 + v0 / 4) / (share * size * _SD) ** 2
            # half the noise sd of s^2, which the test adds to it
            spread = v0 * (1 - _SD**2 + 1 / 4) ** 2 + 2 * v1
            stretch = 1 + sqrt(spread) / (share * size * _SD**2) / 2 / size / own
            if paired:
                return 1.0, effect**2 / own
            # between two groups d, between several f: cells f^2
            away = (effect**2 / 2 if two else cells * effect**2) / own
            return (1.0, away, stretch) if two else (cells - 1.0, away)

        return centre

    return made


def _table(method: Any, layout: Any, relation: str, unit: float) -> Centre:
    axes = max(layout.shown, key=len)
    cells = layout.crossing.cells(axes)
    noise = method.strategy(layout).variance(axes) * unit * (2.0 if relation == "substitute" else 1.0)
    shape = layout.crossing.shape(axes)
    df = 1.0
    for size in shape:
        df *= size - 1

    def centre(n: float, effect: float) -> tuple[float, float]:
        return df, n * effect**2 / (1 + noise * cells / n)

    return centre


def _trend(method: Any, layout: Any, relation: str, unit: float) -> Centre:
    whole = _table(method, layout, relation, unit)
    return lambda n, effect: (1.0, whole(n, effect)[1])


def _share(method: Any, layout: Any, relation: str, unit: float) -> Centre:
    axes = max(layout.shown, key=len)
    cells = layout.crossing.cells(axes)
    noise = method.strategy(layout).variance(axes) * unit * (2.0 if relation == "substitute" else 1.0)
    p = 1.0 / cells

    def centre(n: float, effect: float) -> tuple[float, float]:
        return 1.0, effect**2 / (p * (1 - p) / n + noise / n**2)

    return centre


def _correlation(method: Any, about: Any, relation: str, unit: float) -> Centre:
    # the slope of columns in sds, whose scores are limited at four typical ones, sqrt(1 + 1/2) sds long, 1/2 the slope's weight; later
    # where the noise is .4 of what sampling alone leaves. A total moves by twice the bound under substitute.
    noise = (4 * sqrt(1.5 / 0.5)) ** 2 * unit / method.of_slope * (4.0 if relation == "substitute" else 1.0)

    def centre(n: float, effect: float) -> tuple[float, float]:
        r = min(effect, 0.9999)
        own = 1 / n + max(noise / n**2, 0.16 / n)
        return 1.0, 0.25 * float(special.log1p(2 * r / (1 - r))) ** 2 / own

    return centre


_CENTRES: Mapping[str, Callable[..., Centre]] = {
    "ttest_ind": _means(two=True),
    "f_oneway": _means(),
    "ttest_rel": _means(paired=True),
    "chi2_contingency": _table,
    "chisquare": _table,
    "trend": _trend,
    "binomtest": _share,
    "pearsonr": _correlation,
}
