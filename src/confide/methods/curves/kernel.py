"""Kernel regression (Nadaraya, Watson) of one feature: a whole curve, released once with Gaussian-process noise.

Estimates f_h(x) = E[K(x, X) Y]/E[K(x, X)], K the Gaussian kernel of a public bandwidth h, Y clipped to its declared bounds. The release
is one vector of exact kernel sums at nodes h/2 apart (`sums`), from which numerator and denominator follow at every x. Their noise is a
Gaussian process with covariance proportional to K. Any number of query points costs one release, and no state is kept.

Guarantee: mu-GDP, add/remove or substitution. One record adds (1, v) (x) a(x), |v| <= 1, |a(x)|^2 <= 1, whose squared length is at most
2. Two records have a nonnegative inner product (1 + v v')(a'a'), because kernel and 1 + v v' are nonnegative, so they differ by at most
sqrt(4) = 2. Both hold in exact integers, and both are attained. The noise's pointwise SD is sqrt(2) and 2 over mu, in units of K(x, x),
for numerator and denominator alike. One tenth of squared mu pays for the local moments of clipped residuals. They are a second vector
of the same kind with the squared kernel: one record adds at most 1, two differ by at most sqrt(2). Gaussian mechanisms on exact
integers (Dong, Roth, Su 2022). Source: Hall, Rinaldo, Wasserman 2013 (functions with Gaussian-process noise); Shen, Tong, Wang 2026
(the estimator). The sensitivities, the exact integers and the band are worked out here.

Interval: Fieller's, from sampling and privacy noise of numerator and denominator. For a response of two values it has the sampling
variance of the share in question, as Wilson's (1927). Where the denominator is lost in noise, or fewer than five records at the
kernel's peak are seen, it is all that the response's bounds allow. It covers f_h, the smoothed curve, at each point, or as a whole
(`simultaneous`). The bias f_h - f stays in it. `undersmooth` makes that bias small relative to the interval, which becomes wider.

From noisy kernel sums to a curve with bands: all post-processing, in units of K(x, x) = 1 and half-ranges of the response.

N and D are the noisy numerator and denominator, each with noise of SD s; f = N/max(D, 2). The error of f at x is that of sum_i K_i (y_i
- f(x)) over D, whose sampling variance is E sum_i K_i^2 (y_i - f(x))^2. With e_i = y_i - f(x_i) that is

    M(x) = sum_i K_i^2 e_i^2 + sum_i K_i^2 (f(x_i) - f(x))^2,

the cross term has mean zero. The first sum is released (residuals at the released curve, clipped at tau). One SD of its noise is added
before it is floored at 0. For a band that contains the whole curve three are added, because some place along it has a moment that noise
made small. The second sum follows from the released curve, with D/(h sqrt(2 pi)) for the records' density. Neither can make M larger
than the response's bounds allow: sum_i K_i^2 (1 - f^2), with |f| made smaller by one SD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import (
    Allowance,
    Composed,
    FormulaMethod,
    MenuEntry,
    Meter,
    Noisy,
    Plan,
    Release,
    ResultOptions,
    Source,
)
from confide.core.plan import check_n
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.curves.sums import UNIT, Axis, KernelRows, KernelSums, ResidualRows, smooth
from confide.results.curve import Curve, point_names
from confide.results.pages.content import Flag, check_names
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide.sums.ranges import RangedMethod

#: D below this many records at the kernel's peak is a quotient of nothing.
_FLOOR = 2.0


def one_feature(design: ModelMatrix, method: str) -> None:
    """`PlanError` unless the formula has exactly one numeric feature."""
    if len(design.terms) != 1 or design.terms[0].binary:
        many = ", ".join(term.name for term in design.terms) or "none"
        raise PlanError(
            f'{method} takes one numeric feature, as in "y ~ x", got: {many}; for several features at chosen points write '
            f"cf.curves.EfficientPTRKernel({design.formula!r}, points=..., bandwidth=...)"
        )


@dataclass(frozen=True)
class Smooth:
    """A released curve: noisy sums at the nodes of an axis (2, nodes), in units of one record at the peak, and the SD of each number."""

    axis: Axis
    sums: Array
    sd: float

    @classmethod
    def of(cls, axis: Axis, noisy: Noisy) -> Smooth:
        unit = UNIT * axis.unit
        return cls(axis, noisy.decode().reshape(2, -1) / unit, sqrt(noisy.variance) / unit)

    def parts(self, x: Array) -> tuple[Array, Array, Array]:
        """(D, N, s) at x: s is the SD of the noise of either, SD |a(x)|."""
        weights = self.axis.weights(x)
        return weights @ self.sums[0], weights @ self.sums[1], self.sd * np.linalg.norm(weights, axis=1)

    def curve(self, x: Array) -> Array:
        """f at x, in half-ranges of the response, within [-1, 1]."""
        below, above, _ = self.parts(x)
        return np.asarray(np.clip(above / np.maximum(below, _FLOOR), -1.0, 1.0))


def moments_at(smooth: Smooth, x: Array, residuals: ResidualRows, noisy: Noisy, *sds: float) -> list[Array]:
    """M at x, once for each number of SDs of noise that it is raised by."""
    unit = UNIT * residuals.axis.unit / residuals.tau**2
    sums, sd = noisy.decode() / unit, sqrt(noisy.variance) / unit
    weights = residuals.axis.weights(x)
    released, error = weights @ sums, sd * np.linalg.norm(weights, axis=1)
    own, (total, first, second), spare = smooth.curve(x), *_squares(smooth, x)
    moved = np.maximum(second - 2 * own * first + own * own * total, 0.0)
    denominator, _, s = smooth.parts(x)
    apart = s / np.maximum(denominator, _FLOOR) * np.sqrt(1 + own * own)
    most = (total + spare) * (1 - np.maximum(np.abs(own) - apart, 0.0) ** 2)
    return [np.minimum(np.maximum(released + k * error, 0.0) + moved, most) for k in sds]


def _squares(smooth: Smooth, x: Array) -> tuple[tuple[Array, Array, Array], float]:
    """Sums of K_i^2 times 1, f(x_i) and f(x_i)^2 at x, as the released curve has them; and the largest SD of the noise of D."""
    axis, h = smooth.axis, smooth.axis.h
    # the density is a smoothed one, so that some of it lies beyond the box: there the records are those at its ends
    gap = h / 8
    wide = np.arange(axis.low - 3 * h, axis.high + 3 * h + gap, gap)
    inside = np.clip(wide, axis.low, axis.high)
    below, _, noise = smooth.parts(wide)
    mass = np.maximum(below, 0.0) * (gap / (h * sqrt(2 * pi)))
    at = smooth.curve(inside)
    kernel = np.exp(-(((x[:, None] - inside) / h) ** 2))
    return (kernel @ mass, kernel @ (mass * at), kernel @ (mass * at * at)), float(noise.max())


def shares(smooth: Smooth, x: Array, half: float) -> Array:
    """For y = -1 or 1: the sampling variance of f if f is v, as a + b v + c v^2 in units of half-ranges `half`, shape (3, points).

    E sum K_i^2 (y_i - v)^2 = sum K_i^2 (1 - 2 f(x_i) v + v^2). Here f(x_i) is v plus what the curve turns within the squared kernel.
    That part is counted where it makes the variance larger.
    """
    (total, first, _), spare = _squares(smooth, x)
    below, own = smooth.parts(x)[0], smooth.curve(x)
    size = (total + spare) / np.maximum(below, _FLOOR) ** 2
    turned = first / np.maximum(total, 1e-12) - own
    slope = np.where(turned * own < 0, -2 * turned, 0.0)
    return np.array([half**2 * size, half * slope * size, -size])


def turning(smooth: Smooth, x: Array, sampling: Array, noise: Array) -> float:
    """Bound on how far the normalized error's process turns over the curve (Rice; Johansen, Johnstone 1990).

    The error at x is sqrt(noise) (e_N - f e_D)/sqrt(1 + f^2) + sqrt(sampling) e_S, all three of unit variance. The first two have speed
    1/h, the last 1/(sqrt(2) h) where records are many. So the speed is at most 1/h, plus what the two mixing angles turn, added up.
    """
    own = smooth.curve(x)
    angles = (np.arctan(own), np.arctan2(np.sqrt(sampling), np.sqrt(noise)))
    turned = sum(float(np.abs(np.diff(angle)).sum()) for angle in angles)
    return (smooth.axis.high - smooth.axis.low) / smooth.axis.h + turned


_THIN = Flag(
    "sparse_region",
    "at some points the records are too few for the privacy noise; there the interval is all that the response's "
    "bounds allow",
)


_RESIDUALS = Fraction(1, 10)
# The rule of thumb for a bandwidth: a fifth of the range times n^(-1/5); and the n it takes where n is no public fact.
_RULE, _USUAL = 0.2, 1_000
#: Points of the curve to one bandwidth, and at least so many in all.
_DENSE, _LEAST = 12, 200
# Bandwidths below this part of the range would need tables of hundreds of megabytes.
_FINEST = 300
# A denominator below this many sds of its noise says nothing about the curve, and so few records at the peak (about sqrt(2) as many
# count) nothing about its error: what is divided by is floored, and no sum of so few is normal.
_LOST, _FEW = 3.0, 5.0
# So many bandwidths of the range must be told, however wide the declared bounds are.
_TOLD = 2.0
# How many sds of its noise the sampling variance is raised by for the band: it must hold along the whole curve at once.
_SURE = 3.0


def usual_share(n: int) -> float:
    """The usual bandwidth of n records, over the range of the feature."""
    return float(_RULE * n**-0.2)


def range_of(points: Sequence[float]) -> float:
    """The range of a feature. points: the middles of equal parts of it."""
    return (points[-1] - points[0]) * len(points) / (len(points) - 1)


@dataclass(frozen=True)
class Kernel(RangedMethod, FormulaMethod):
    """Kernel regression of one feature as a whole curve, with bands.

    Estimates f_h(x) = E[K(x, X) Y]/E[K(x, X)], where K is the Gaussian kernel
    of bandwidth h and Y is clipped to its bounds (Nadaraya-Watson). Any number
    of points of the curve costs one release.

    Parameters
    ----------
    formula : str
        Formula ``"y ~ x"`` with one numeric feature, which may be derived, such
        as ``"y ~ log(x)"``.
    bandwidth : float, optional
        Bandwidth h above 0, in units of the feature. By default a fifth of its
        range times n^(-1/5) where n is public (substitution), otherwise a
        twentieth of the range.
    undersmooth : bool, default False
        Whether to use h n^(-1/20), so that the bias of smoothing is small
        relative to the interval.
    residual_bound : float, optional
        Size to which residuals are clipped in the variance, in units of the
        response. By default its whole range, which none exceeds. A smaller
        bound makes bands narrower, and too short where residuals are larger.

    Notes
    -----
    Guarantee: Gaussian DP with parameter mu, add/remove or substitution. The
    kernel sums are a vector of exact integers whose sensitivity is sqrt(2)
    (add/remove) or 2 (substitution) in units of K(x, x). A tenth of the budget
    pays for the local moments of residuals. The module docstring has the proof.

    References
    ----------
    Hall, Rinaldo, Wasserman 2013; Shen, Tong, Wang 2026.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})
    >>> plan = Kernel("y ~ x", bandwidth=0.05).plan(schema, cf.GDP(1.0))
    >>> plan.spend("curve").shape, plan.spend("residuals").shape
    ((106,), (70,))
    >>> x = np.linspace(0, 1, 4000)
    >>> data = cf.read({"x": x, "y": np.sin(6 * x)}, schema)
    >>> method = Kernel("y ~ x")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> method.infer(release).at([0.25, 0.5])["estimate"].round(1).tolist()
    [1.0, 0.1]
    """

    formula: str
    bandwidth: float | None = None
    undersmooth: bool = False
    residual_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "kernel"
    family: ClassVar[str] = "regression"
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A curve",
        "{number} ~ {other}",
        "A smooth curve, with a band.",
        command='regress "{}" --method kernel',
        name="curve",
        place=4,
    )
    task: ClassVar[str] = "kernel_regression"
    targets: ClassVar[Mapping[str, Any] | None] = {}
    source: ClassVar[str] = (
        "Nadaraya-Watson with Gaussian-process noise (Hall, Rinaldo, Wasserman 2013), exact integer kernel sums"
    )
    intervals: ClassVar[str] = "the smoothed curve, at each point or as a whole; sampling and privacy noise"

    def __post_init__(self) -> None:
        for name in ("bandwidth", "residual_bound"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise PlanError(
                    f"{name} must be a finite number above 0, got {value!r}", "leave it out for the default"
                )
        if not isinstance(self.undersmooth, bool):
            raise PlanError(f"undersmooth must be True or False, got {self.undersmooth!r}")

    @classmethod
    def proposed(cls, formula: str, schema: Any, n: int, points: Sequence[float]) -> Mapping[str, Any]:
        """The usual bandwidth, under either relation."""
        return {"bandwidth": usual_share(n) * range_of(points)}

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Two vectors of kernel sums. Raises `PlanError` for a formula or bandwidth that cannot work."""
        check_n(n)
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        known = n if allowance.relation == "substitute" and n else _USUAL
        h = self._bandwidth(design, known)
        curve, residuals = self._rows(design, h)
        statistics = {"curve": KernelSums(curve), "residuals": KernelSums(residuals)}
        shares = {"curve": 1 - _RESIDUALS, "residuals": _RESIDUALS}
        spends = [allowance.spend(name, statistics[name], share) for name, share in shares.items()]
        event = Composed(tuple(spends))
        facts: dict[str, Any] = {
            "passes": 2,
            "constants": {"bandwidth": h, "cells": curve.axis.cells, "residual bound": residuals.tau},
            "target": f"smoothed regression of {design.response.name} on {design.terms[0].name}, bandwidth {h:.4g}",
            "intervals_for": self._intervals_for(design),
            "warnings": parse_formula(self.formula, schema).notes,
        }
        return Plan.of(self, schema, allowance, event, statistics, n=n, **facts)

    def summed(self, schema: Schema) -> tuple[str, ...]:
        """The response; the feature where its bandwidth follows from its range, so that the number of cells does not."""
        design = self._design(schema)
        return tuple(design.response.columns if self.bandwidth is not None else design.columns)

    def _design(self, schema: Any) -> ModelMatrix:
        design = super()._design(schema)
        one_feature(design, self.name)
        check_names(Curve, (design.terms[0].name,))
        return design

    def _bandwidth(self, design: ModelMatrix, n: int) -> float:
        term = design.terms[0]
        width = float(term.high - term.low)
        h = _RULE * width * n**-0.2 if self.bandwidth is None else float(self.bandwidth)
        h *= n**-0.05 if self.undersmooth else 1.0
        if not width / _FINEST <= h <= 2 * width:
            raise PlanError(
                f"the bandwidth must lie between {width / _FINEST:.3g} and {2 * width:.3g}, a "
                f"three-hundredth of the feature's range and twice it, got {h:.4g}"
            )
        return h

    def _rows(self, design: ModelMatrix, h: float) -> tuple[KernelRows, ResidualRows]:
        term, response = design.terms[0], design.response
        half = float(response.high - response.low) / 2
        tau = min(2.0 if self.residual_bound is None else float(self.residual_bound) / half, 2.0)
        if tau < 1e-6:
            raise PlanError(
                f"residual_bound must be at least a millionth of the response's range, got {self.residual_bound!r}"
            )
        axis = Axis(float(term.low), float(term.high), term.steps, h)
        base = KernelRows(design, axis)
        return base, ResidualRows(base, Axis(axis.low, axis.high, axis.steps, h / sqrt(2), axis.cells), tau)

    def _intervals_for(self, design: ModelMatrix) -> str:
        return (
            f"the smoothed curve E[K Y]/E[K] for {design.response.name} clipped to its bounds, at each point, and as a "
            "whole in a simultaneous band; sampling of records and privacy noise, independent records, residuals within the "
            "residual bound; not the bias of smoothing"
            + (", which undersmoothing makes small" if self.undersmooth else "")
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the curve, a second one for the residuals at it."""
        residuals = plan.statistic("residuals")
        assert isinstance(residuals, KernelSums) and isinstance(residuals.map, ResidualRows)
        axis = residuals.map.base.axis
        (sums,) = source.aggregate(plan.statistic("curve"))
        curve = Smooth.of(axis, meter.draw("curve", sums)).curve(axis.centres)
        (moments,) = source.aggregate(KernelSums(residuals.map.at(curve)))
        meter.draw("residuals", moments)
        return {"curve": curve}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Curve:
        """The curve at points a twelfth of a bandwidth apart. `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        design, n = self._design(release.plan.declared), release.plan.n
        h = self._bandwidth(design, n or _USUAL)
        rows, residuals = self._rows(design, h)
        axis, response = rows.axis, design.response
        smooth = Smooth.of(axis, release["curve"])
        x = _points(axis)
        below, _, s = smooth.parts(x)
        size = np.maximum(below, 2.0)
        f = smooth.curve(x)
        # one sd of its own noise is added: a variance that noise has made small would shorten every interval
        moments = moments_at(smooth, x, residuals, release["residuals"], 0.0, 1.0, _SURE)
        alone, sampling, whole = (moment / size**2 for moment in moments)
        lost = below < np.maximum(_LOST * s, _FEW)
        relative = (s / size) ** 2
        # of a range of a few bandwidths, half
        weak = float((~lost).mean()) < min(_TOLD * h / (axis.high - axis.low), 0.5)
        half, middle = float(response.high - response.low) / 2, float(response.low + (response.high - response.low) / 2)
        return Curve.of(
            release,
            response=response.name,
            features=(design.terms[0].name,),
            points=x[:, None],
            estimates=middle + half * f,
            sampling_variance=half**2 * sampling,
            noise_variance=half**2 * relative,
            denominator_noise=np.where(lost, inf, relative),
            middle=middle,
            bounds=(float(response.low), float(response.high)),
            status="imprecise" if weak else "valid",
            reason=_WEAK if weak else "",
            flags=(_THIN,) if lost.any() and not weak else (),
            facts=(
                ("Bandwidth", f"{h:.6g}"),
                ("Noise SD (records at the peak)", f"{float(np.median(s)):.4g}"),
            ),
            legend=(("Thin places", "where few records lie, the interval is all that the response's bounds allow"),),
            crossings=nan if weak else turning(smooth, x, whole, relative * (1 + f * f)),
            band_variance=half**2 * whole,
            alone=half**2 * alone,
            null_variance=shares(smooth, x, half) if response.steps == 2 else None,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """E[K y]/E[K] at the points of the table; `PlanError` where the bandwidth follows from a public number of records."""
        if self.bandwidth is None or self.undersmooth:
            raise PlanError(
                "which curve is smoothed follows from the plan's number of records; for a reference write "
                f"cf.curves.Kernel({self.formula!r}, bandwidth=0.05) with a bandwidth in units of the feature"
            )
        design = self._design(CodedFrame.checked(frame).schema)
        h = self._bandwidth(design, _USUAL)
        points = _points(self._rows(design, h)[0].axis)[:, None]
        found = smooth(frame, design, points, np.array([h]))
        return dict(zip(point_names((design.terms[0].name,), points), map(float, found), strict=True))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners, and one place with opposite responses: both attain the sensitivity. None with derived terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)


def _points(axis: Axis) -> Array:
    """Where the table reads the curve."""
    steps = max(int(_DENSE * (axis.high - axis.low) / axis.h), _LEAST)
    return np.linspace(axis.low, axis.high, steps + 1)


_WEAK = (
    "almost everywhere the records are too few for the privacy noise (all but two bandwidths, or half of the range); ask for a larger "
    "bandwidth, more records or a larger budget"
)
