"""What a rank test will find, before anything is spent: its power at n records in groups of equal size.

The effect of one sample is P(d + d' > 0) - 1/2, that of groups P(Y1 > Y2) - 1/2 = e of one group and each of the others, which are alike.
Then the mean scores of k groups, of variance w = 1/(3 m) + noise/m^2 each at m records, differ by 2 e, and the statistic is a chi-square
with k - 1 degrees of freedom and the non-centrality 4 e^2 (k - 1)/(k w); of one sample e^2 n/(1/3 + noise/n) with one degree.
"""

from __future__ import annotations

from math import sqrt

from confide import _special as special

__all__ = ["power_note"]

_LEVEL, _WANTED, _EFFECTS = 0.05, 0.8, (0.05, 0.1, 0.2)


def power_note(n: int, groups: int, noise: float) -> str:
    """For a plan: the power at three effects, and the effect that is found in 80 of 100 runs. noise: the variance of a sum of scores.

    >>> power_note(900, 3, 100.0).split("; ")[1]
    '80 % at 0.09'
    """
    k, df = groups, max(groups - 1, 1)
    size = n / k
    variance = 1 / (3 * size) + noise / size**2
    scale = 1 / variance if k == 1 else 4 * (k - 1) / (k * variance)
    beyond = float(special.chdtri(df, _LEVEL))
    power = ", ".join(f"{1 - special.chndtr(beyond, df, scale * e * e):.0%} at {e:g}" for e in _EFFECTS)
    least = sqrt(float(special.chndtrinc(beyond, df, 1 - _WANTED)) / scale)
    of = {1: "P(d + d' > 0) - 1/2", 2: "P(Y1 > Y2) - 1/2 of its two groups"}
    what = of.get(k, "P(Y1 > Y2) - 1/2 of one group and each of the others, which are alike,")
    return (
        f"with {n:,} records{'' if k == 1 else ' in groups of equal size'} the power (5 %, two sides) for an effect {what} is about "
        f"{power}; 80 % at {least:.2g}"
    )
