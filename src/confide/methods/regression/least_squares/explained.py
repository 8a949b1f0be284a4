"""R squared and the residual standard deviation of a least-squares line, each with an interval or a dash and the reason.

With theta known ESS + RSS is the response's sum of squares about its mean. Both are released with noise; their intervals add sampling,
whose fourth powers are bounded by what no record exceeds: sum r^4 <= reach^2 sum r^2. Where squares of residuals were cut there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.sandwich import Sandwich
from confide.results.pages.table import DASH, with_interval

__all__ = ["Explained"]


_Z = 1.959963984540054
# Wider than this an interval says nothing about R squared.
_WIDEST = 0.2


@dataclass(frozen=True)
class Explained:
    """R squared, its 95 % interval (NaN where it has none), and the facts that a table prints."""

    share: float
    interval: tuple[float, float]
    facts: tuple[tuple[str, str], ...]

    @classmethod
    def nothing(cls, why: str) -> Explained:
        """A dash for both, with the reason."""
        return cls(nan, (nan, nan), (("R-squared", f"{DASH} ({why})"), ("Residual sd", f"{DASH} ({why})")))

    @classmethod
    def of(cls, s: Sandwich, line: Array, *, reach: float, largest: float, unit: float) -> Explained:
        """From sums whose A is positive definite.

        line: theta in the whitened features; reach: beyond which residuals were cut; largest: that a residual may have; unit: half the
        width of the response's bounds.
        """
        rss, bread = s.residual_sum
        rss += bread + float(np.trace(s.bread @ s.meat))
        error = sqrt(s.sd_square**2 + reach**2 * max(s.square, 0.0))
        residual = max(rss - _Z * error, 0.0), rss + _Z * error
        if reach < largest or rss <= 0:
            return cls.nothing("squares of far residuals were cut" if reach < largest else "noise hides it")
        sds = tuple(unit * sqrt(end / s.count) for end in (rss, *residual))
        sd = ("Residual sd", with_interval(*sds))
        explained, spread = _line_part(s, line)
        low = max(explained - _Z * spread, 0.0)
        interval = low / max(low + residual[1], 1e-300), _ratio(explained + _Z * spread, residual[0])
        if interval[1] - interval[0] > _WIDEST:
            return cls(nan, (nan, nan), (("R-squared", f"{DASH} (not known to ± .1)"), sd))
        share = _ratio(explained, rss)
        return cls(share, interval, (("R-squared", f"{share:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"), sd))


def _ratio(explained: float, residual: float) -> float:
    explained = max(explained, 0.0)
    return explained / max(explained + residual, 1e-300) if explained + residual > 0 else 1.0


def _line_part(s: Sandwich, line: Array) -> tuple[float, float]:
    """(ESS, its sd): the sum of squares of v'line about its mean, corrected for what the line took from its own noise."""
    centred = line - s.axis * float(s.axis @ s.gram @ line) / s.count
    spread = s.bread @ (s.noise(s.delta) + s.meat) @ s.bread
    slope, moved = s.gram @ centred, s.gram @ spread
    explained = float(centred @ slope) - float(np.trace(moved))
    # records differ in (v'line)^2: as in a normal distribution at least
    sampling = 2 * max(explained, 0.0) ** 2 / s.count
    variance = 4 * float(slope @ spread @ slope) + 2 * float(np.trace(moved @ moved)) + sampling
    return explained, sqrt(max(variance, 0.0))
