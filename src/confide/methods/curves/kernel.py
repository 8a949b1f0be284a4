"""Kernel regression (Nadaraya, Watson) of one feature: a whole curve, released once with Gaussian-process noise.

Estimates f_h(x) = E[K(x, X) Y]/E[K(x, X)], K the Gaussian kernel of a public bandwidth h, Y clipped to its declared bounds. The release is
one vector of exact kernel sums at nodes h/2 apart (`kernel_cells`), from which numerator and denominator follow at every x:
their noise is a Gaussian process with covariance proportional to K, any number of query points costs one release, and no state is kept.

Guarantee: mu-GDP, add-remove or substitute. One record adds (1, v) (x) a(x), |v| <= 1, |a(x)|^2 <= 1, whose squared length is at most 2.
Two records have a nonnegative inner product (1 + v v')(a'a'), because kernel and 1 + v v' are, so they differ by at most sqrt(4) = 2. Both
in exact integers, both attained; the noise's pointwise sd is sqrt(2) and 2 over mu, in units of K(x, x), for numerator and
denominator alike. One tenth of mu^2 pays for the local moments of clipped residuals, a second vector of the same kind with the squared
kernel: one record adds at most 1, two differ by at most sqrt(2). Gaussian mechanisms on exact integers (Dong, Roth, Su 2022).
Source: Hall, Rinaldo, Wasserman 2013 (functions with Gaussian-process noise); Shen, Tong, Wang 2026 (the estimator). The sensitivities, the
exact integers and the band are worked out here.

Interval: Fieller's, from sampling and privacy noise of numerator and denominator; for a response of two values with the sampling variance
of the share that is asked about, as Wilson's (1927); where the denominator is lost in noise, or fewer than five records at the kernel's
peak are seen, it is all that the response's bounds allow. Covers f_h, the smoothed curve, at each point, or as a whole (`simultaneous`);
the bias f_h - f stays in it, and `undersmooth` makes that small beside the interval at the price of a wider one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.aggregates.kernels.kernel_cells import Axis, KernelRows, KernelSums, ResidualRows
from confide.aggregates.lines.corners import corner_pairs
from confide.aggregates.reference import smooth
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite
from confide.methods.curves.kernel_reading import Smooth, moments_at, one_feature, shares, turning
from confide.protocol import Allowance, FormulaMethod, Meter, Plan, Question, Release, Source, Together
from confide.protocol.plan import check_n
from confide.results.base import check_names
from confide.results.curve import Curve, point_names
from confide.results.pages.words import Flag
from confide.schema import Design, Practice, Schema
from confide.schema.formulas.formula import parse_formula

__all__ = ["Kernel"]

_THIN = Flag(
    "thin",
    "at some points the records do not stand above the privacy noise; there the interval is all that the response's "
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


@dataclass(frozen=True)
class Kernel(FormulaMethod):
    """Nadaraya-Watson regression as one private curve, with pointwise and simultaneous bands.

    formula: "y ~ x", one numeric feature, which may be derived ("y ~ log(x)"); bandwidth: h > 0 in units of the feature (default: a fifth
    of its range times n^(-1/5) where n is public, under substitute, else a twentieth of the range); undersmooth: h n^(-1/20), for f itself;
    residual_bound: residuals beyond this size, in units of the response, count at that size in the variance (default: its whole range,
    which none exceeds; a smaller public bound makes bands narrower, and too short where residuals are larger); term_bounds: public bounds
    of derived terms. Two passes.

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
    source: ClassVar[str] = (
        "Nadaraya-Watson with Gaussian-process noise (Hall, Rinaldo, Wasserman 2013), exact integer kernel sums"
    )
    intervals: ClassVar[str] = "the smoothed curve, at each point or as a whole; sampling and privacy noise"

    def __post_init__(self) -> None:
        for name in ("bandwidth", "residual_bound"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise PlanError(f"{name} must be a finite number above 0, got {value!r}; leave it out for the default")
        if not isinstance(self.undersmooth, bool):
            raise PlanError(f"undersmooth must be True or False, got {self.undersmooth!r}")

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
        event = Together(tuple(spends))
        facts: dict[str, Any] = {
            "passes": 2,
            "constants": {"bandwidth": h, "cells": curve.axis.cells, "residual bound": residuals.tau},
            "target": f"smoothed regression of {design.response.name} on {design.terms[0].name}, bandwidth {h:.4g}",
            "covers": self._covers(design),
            "warnings": parse_formula(self.formula, schema).notes,
        }
        return Plan.of(self, schema, allowance, event, statistics, n=n, **facts)

    def _design(self, schema: Any) -> Design:
        design = super()._design(schema)
        one_feature(design, self.name)
        check_names(Curve, (design.terms[0].name,))
        return design

    def _bandwidth(self, design: Design, n: int) -> float:
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

    def _rows(self, design: Design, h: float) -> tuple[KernelRows, ResidualRows]:
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

    def _covers(self, design: Design) -> str:
        return (
            f"the smoothed curve E[K Y]/E[K] for {design.response.name} clipped to its declared bounds, at each point, and as a "
            "whole "
            "where a simultaneous band is asked for; sampling of records and privacy noise, independent records, residuals within the "
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

    def infer(self, release: Release, question: Question | None = None) -> Curve:
        """The curve at points a twelfth of a bandwidth apart. A question has nothing to ask: `PlanError`."""
        (question or Question()).only()
        design, h = self._design(release.plan.declared), float(release.plan.constants["bandwidth"])
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
            status="weak" if weak else "ok",
            reason=_WEAK if weak else "",
            flags=(_THIN,) if lost.any() and not weak else (),
            facts=(
                ("Bandwidth", f"{h:.6g}"),
                ("Noise sd (records at the peak)", f"{float(np.median(s)):.4g}"),
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
        design = self._design(Practice.checked(frame).schema)
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
    "almost nowhere (over less than two bandwidths, or half of the range) do the records stand above the privacy noise; ask for a larger "
    "bandwidth, more records or a larger budget"
)
