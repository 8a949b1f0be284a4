"""AdaOPS: a posterior sample whose penalty minimises a high-probability bound on its error, with certificates that hold.

Estimates the line E[y|x] = intercept + x'beta, as `PosteriorSampling` does: same rows, same two released bounds, same exact
calibration. What is AdaOPS's own: each of the two bounds takes a quarter of mu (Wang gives each epsilon/4), and the penalty is the least of

    lam |theta|^2 + (d/2 + sqrt(d log 20) + log 20) 2/gamma(lam),

where the second term is the source's bound on the sample's squared error with probability .95, with gamma(lam) what the exact pair gives
at the released eigenvalue, in place of its constants.

Guarantee: GDP(mu, delta), add-remove, single records: proof in `confide_lab.methods.posterior_sampling`, with shares 1/16, 1/16 and
14/16 of mu^2. The source's noise, sd sqrt(log(6/delta))/(epsilon/4), is not (epsilon/4, delta/3)-DP (at epsilon = 1,
delta = 1e-6 its delta is 6.4e-7, at epsilon = 4 3.7e-6, where 3.3e-7 is claimed), and its certificates hold for one of two neighbours
only (evidence/errata.md); the algorithm to the letter is `confide_lab.published.generalized_ptr_ops.adaops`.
Source: Wang 2018 (UAI), Algorithm AdaOPS.

Interval: as `PosteriorSampling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import ClassVar

from confide_lab.methods.posterior_sampling import PosteriorMethod

__all__ = ["AdaOPS"]

_SIXTEENTH = Fraction(1, 16)


@dataclass(frozen=True)
class AdaOPS(PosteriorMethod):
    """Linear regression by one posterior sample, AdaOPS's split and penalty with an exact calibration: a line.

    formula: "y ~ a + b"; penalty: "auto" for the rule above, or a public lam; leverage_cap, target, term_bounds: as in `PosteriorSampling`.
    The request needs a delta. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> [round(float(AdaOPS("y ~ x").plan(schema, cf.GDP(1.0, 1e-6)).spend(name).mu_squared), 6) for name in ("eigenvalue", "residual")]
    [0.0625, 0.0625]
    """

    formula: str
    penalty: float | str = "auto"
    leverage_cap: float | None = None
    target: str | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "adaops"
    source: ClassVar[str] = "AdaOPS (Wang 2018), certificates for both neighbours, exact privacy of the pair"
    intervals: ClassVar[str] = "no interval; target='ridge': the ridge line of the records, privacy noise alone"
    shares: ClassVar[tuple[Fraction, Fraction]] = (_SIXTEENTH, _SIXTEENTH)

    def __post_init__(self) -> None:
        self._check()

    def _tail(self, dimension: int) -> float:
        """The .95 bound of a chi-square with d degrees (Laurent, Massart 2000), over d."""
        d = dimension
        return 2 * (d / 2 + sqrt(d * log(20)) + log(20)) / d
