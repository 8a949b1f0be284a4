"""The coefficients of a normal linear model, with or without an intercept, from one release of second moments.

Guarantee: PureDP(epsilon) or mu-GDP, substitution, with a public n. Released are all products a_i a_j of a = ([1,] x_1, ..., x_p, y) in
[-1, 1] by public bounds, squares times w. One replaced record moves them together by at most D^2/2 in l1 (w = 1/2). In l2 it moves them by
D, or sqrt(D^2 - 1) (w = 1/sqrt 2), D = len(a) (`rows.ProductRows`).

Model: y given x normal with one variance, records independent. Credible intervals have the prior flat in (coefficients, variance). They are
the conjugate posterior averaged over what the exact moments may have been, given the noisy ones (`line_posterior`); exact, for any number
of coefficients. Assumed, and printed: normal errors of equal variance, and bounds of y that are rarely reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.core import Release
from confide.errors import PlanError
from confide.methods.intervals.count_posteriors import ClippedNormal
from confide.methods.intervals.marginals import StudentMixture
from confide.methods.intervals.method import IntervalMethod
from confide.methods.intervals.normal_posteriors import AGREED, LinePosterior, NoisyMoments, line_posterior
from confide.methods.intervals.results import Posterior
from confide.methods.intervals.sums import STEP, ProductRows, squares_weight, whole_frame
from confide.noise import keyed_generator
from confide.results.inference import simulated_null
from confide.results.pages.content import Flag
from confide.schema import CodedFrame, ModelMatrix, Schema

_CLIPPED = Flag(
    "slope_attenuated",
    "the model puts a noticeable share of the responses outside their bounds, where they were clipped: slopes are biased toward 0; take "
    "wider bounds for the response",
)
_CUT = (
    "the model puts {} of the responses outside their bounds, where they were clipped. Slopes are biased toward 0 by about as much, "
    "which their intervals do not include; take wider bounds for the response, or ask cf.linear_regression for the clipped responses"
)
_HIDDEN = (
    "noise may be all that the terms seem to vary by. Where they vary by less, slopes are biased toward 0, which their intervals do not "
    "include; take narrower bounds for the terms, more records or a larger budget"
)
_NOT_MIXED = "the chains that draw what the moments may have been do not agree (R-hat {:.3f}); the noise is too large for this model"
# Of what the exact moments may have been: terms without any spread of their own are not among it more often than this.
_SINGULAR = 0.01
# Shares of the responses beyond their bounds: from which on it is said, and from which on the line of those within is another one. Even
# responses between their bounds vary as normal ones do of which an eighth is beyond.
_RARE, _MANY = 1e-3, 0.2
# Of the half of a 95 % interval: a slope that is drawn to 0 by more is not held as often as is said. It is judged by a second moment of
# the response that is lessened by so many standard deviations of its noise.
_HELD, _SURE = 0.25, 1.645
_MOST = 24


@dataclass(frozen=True)
class Slope(IntervalMethod):
    """Estimate the coefficients of a normal linear model, with a posterior.

    The estimand is the coefficients in the population. Errors are assumed to be
    normal with equal variance, and the response to reach its bounds rarely.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"y ~ x1 + x2"``, or ``"y ~ x - 1"`` without an
        intercept.
    kind : {"credible"}, default "credible"
        Kind of interval.
    prior : {"", "flat"}, default ""
        Prior, which is flat in (coefficients, variance).

    See Also
    --------
    confide.linear_regression : Without these assumptions, under either relation.

    Notes
    -----
    Guarantee: PureDP(epsilon) or mu-GDP under substitution, with a public n. The
    module docstring has the sensitivity of the released products. The posterior is
    exact, for any number of coefficients.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0),
    ...                     "y": cf.Numeric(-2, 2, on_missing=0.0)})
    >>> x = np.random.default_rng(1).uniform(-1, 1, 1000)
    >>> y = 0.5 * x + np.random.default_rng(2).normal(0, 0.25, 1000)
    >>> data = cf.read({"x": x, "y": y}, schema)
    >>> release = cf.release(cf.intervals.Slope("y ~ x"), data, cf.GDP(1.0),
    ...                      ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> low, high = cf.infer(release).conf_int().loc["x"]
    >>> bool(0.4 < low < 0.5 < high < 0.6)
    True
    """

    formula: str
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "slope"
    intervals: ClassVar[str] = (
        "coefficients of a normal line; sampling and privacy noise; normal errors of equal variance"
    )
    kinds: ClassVar[tuple[str, ...]] = ("credible",)
    asks: ClassVar[tuple[str, ...]] = ("prior",)

    def rows(self, schema: Schema, pure: bool) -> ProductRows:
        found = ProductRows(ModelMatrix.of(self.formula, schema, term_bounds=self.term_bounds), pure)
        if not 2 <= found.size - found.design.intercept <= _MOST:
            raise PlanError(f"a slope needs 1 to {_MOST - 1} terms, got {len(found.design.terms)}", "write 'y ~ x'")
        return found

    def facts(self, about: ProductRows) -> Mapping[str, Any]:
        return {
            "target": f"coefficients of the normal line {self.formula}, responses clipped to their bounds",
            "intervals_for": self.intervals,
            "warnings": (
                "intervals assume normal errors of equal variance and a response that rarely reaches its bounds; without those write "
                "cf.linear_regression",
            ),
        }

    def _prior(self, text: str) -> str:
        if text not in ("", "flat"):
            raise PlanError(
                f"the prior of a slope is flat in (coefficients, variance), got {text!r}; 1/variance puts infinite mass where noise "
                "can take the residual to 0. Leave prior out"
            )
        return "flat"

    def _enough(self, rows: ProductRows, n: int | None) -> None:
        least = rows.size + 2
        if n is not None and n < least:
            raise PlanError(f"{len(rows.design.names)} coefficients need at least {least} records, got n = {n}")

    def credible(self, release: Release, rows: ProductRows, n: int, prior: str) -> Posterior:
        d = len(rows.design.names)
        if n < rows.size + 2:
            return self._without(release, rows, "there are too few records for so many coefficients")
        noisy = self._moments(release, rows, n)
        found = line_posterior(noisy, keyed_generator(release.drawn_sha256, "slope"))
        weights, shifts = _units(rows)
        marginals = [found.marginal(weights[j], shifts[j]) for j in range(d)]
        weak: dict[str, Any]
        if found.rhat >= AGREED:
            weak = {"status": "not_identified", "reason": _NOT_MIXED.format(found.rhat)}
        elif found.spread < 1 - _SINGULAR:
            weak = {"status": "imprecise", "reason": _HIDDEN}
        else:
            weak = (
                {"status": "imprecise", "reason": _CUT.format(f"{_beyond(noisy, found):.1%}")}
                if _drawn_in(noisy, found)
                else {}
            )
        return Posterior.read(
            release,
            response=rows.design.response.name,
            names=rows.design.names,
            marginals=marginals,
            bounds=[(-inf, inf)] * d,
            alone=_alone(found, weights),
            joint=lambda generator, size: _draws(found, generator, size) @ weights.T + shifts,
            prior="flat in (coefficients, variance)",
            flags=(_CLIPPED,) if _beyond(noisy, found) > _RARE else (),
            facts=(
                ("n", f"{n:,} (public)"),
                ("Noise", f"of products, in scaled units: {noisy.off.words()}"),
                ("Moments drawn", f"{found.sampler}, {found.acceptance:.1%} positive definite"),
            ),
            **weak,
        )

    def _without(self, release: Release, rows: ProductRows, reason: str) -> Posterior:
        d = len(rows.design.names)
        flat = StudentMixture(np.zeros(1), np.full(1, 1e6), 3.0)
        return Posterior.read(
            release,
            response=rows.design.response.name,
            names=rows.design.names,
            marginals=[flat] * d,
            bounds=[(-inf, inf)] * d,
            joint=lambda generator, size: np.full((size, d), np.nan),
            prior="flat in (coefficients, variance)",
            facts=(("Records", "too few"), ("Noise", ""), ("Moments drawn", "none")),
            status="not_identified",
            reason=reason,
        )

    def _moments(self, release: Release, rows: ProductRows, n: int) -> NoisyMoments:
        matrix = rows.decode(self.sums(release), n)
        own, weight = self.law(release, STEP), squares_weight(rows.pure)
        return NoisyMoments(matrix, own, self.law(release, STEP * weight), n, rows.design.intercept)

    def confidence(self, release: Release, rows: ProductRows, n: int) -> Posterior:
        raise PlanError(
            "a slope has credible intervals; for confidence intervals of any design write cf.linear_regression"
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Least squares of test data."""
        schema = CodedFrame.checked(frame).schema
        design = ModelMatrix.of(self.formula, schema, term_bounds=self.term_bounds)
        practice = whole_frame(frame, design.columns)
        x, y = practice.rows(design)
        return dict(zip(design.names, np.linalg.lstsq(x, y, rcond=None)[0].tolist(), strict=True))

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners."""
        if isinstance(schema, Schema):
            from confide.sums.coding import corner_pairs

            yield from corner_pairs(ModelMatrix.of(self.formula, schema, term_bounds=self.term_bounds), schema)


def _units(rows: ProductRows) -> tuple[Array, Array]:
    """(W, shift): coefficients in the columns' own units are shift + W b."""
    centre, unit = rows.scaling
    c, h, cy, hy = centre[:-1], unit[:-1], centre[-1], unit[-1]
    slopes = np.diag(hy / h)
    if not rows.design.intercept:
        return slopes, np.zeros(len(h))
    weights = np.zeros((len(h) + 1, len(h) + 1))
    weights[1:, 1:] = slopes
    weights[0, 0], weights[0, 1:] = hy, -hy * c / h
    return weights, np.concatenate([[cy], np.zeros(len(h))])


def _alone(found: LinePosterior, weights: Array) -> list[float]:
    """How wide the intervals would be by sampling alone, given the middle one of the possible exact moments."""
    scales = np.linalg.norm(np.einsum("kji,cj->kci", found.factors, weights), axis=2)
    return [float(one) for one in 2 * simulated_null.quantile(0.025, found.df) * np.median(scales, axis=0)]


def _draws(found: LinePosterior, generator: np.random.Generator, size: int) -> Array:
    """Joint draws of b in scaled units."""
    own = generator.integers(0, len(found.centres), size)
    z = generator.standard_normal((size, found.centres.shape[1]))
    t = (
        np.einsum("kij,kj->ki", found.factors[own], z)
        / np.sqrt(generator.chisquare(found.df, size) / found.df)[:, None]
    )
    return np.asarray(found.centres[own] + t)


def _beyond(noisy: NoisyMoments, found: LinePosterior, less: float = 0.0) -> float:
    """The share of normal responses beyond their bounds, at the middle of the posterior.

    Their spread is that of the normal whose clipped numbers vary as much. Without an intercept no released product gives their middle. The
    root mean square of the fitted ones replaces it, on either side, and the spread is that of the errors.

    less: SDs of noise that are subtracted
    from the second moment of the response.
    """
    b = np.median(found.centres, axis=0)
    n, d = noisy.n, len(b)
    fitted = float(b @ noisy.matrix[:d, :d] @ b) / n
    whole = (float(noisy.matrix[d, d]) - less * sqrt(noisy.square.variance)) / n
    mean = float(noisy.matrix[0, d]) / n if noisy.fixed else sqrt(max(fitted, 0.0))
    square = max(whole, fitted if noisy.fixed and not less else 0.0) - mean**2
    if whole <= mean**2 or square <= 0:  # noise is larger than the spread, and says nothing of it
        return 0.0
    spreads = np.geomspace(1e-3, 30, 300)
    spread = float(np.interp(square, ClippedNormal.of(np.array(mean), spreads).c11, spreads))
    return float(special.ndtr(-np.array([1 - mean, 1 + mean]) / spread).sum())


def _drawn_in(noisy: NoisyMoments, found: LinePosterior) -> bool:
    """Whether clipping of responses, which multiplies slopes by the share within the bounds, moves one by more than it may."""
    p = min(_beyond(noisy, found, _SURE), 0.9)
    if p < _MANY:
        return False
    slopes = range(int(noisy.fixed), found.centres.shape[1])
    unit = np.eye(found.centres.shape[1])
    marginals = [found.marginal(unit[j]) for j in slopes]
    return any(p / (1 - p) * abs(one.mean) > _HELD * 1.96 * one.sd for one in marginals)
