"""Efficient propose-test-release for kernel regression: Nadaraya-Watson at m public points, with noise for points where records are.

Estimates f_h(x_j) = E[K(x_j, X) Y]/E[K(x_j, X)] at public points of one or several features, K a Gaussian or Epanechnikov product
kernel of public bandwidths, Y clipped to its declared bounds. Numerator over denominator is released itself, at all points at once, or
nothing. For one feature `Kernel` releases the whole curve with less noise and needs no test.

Guarantee: (mu, delta)-Gaussian DP, substitution. Let d_j be the kernel sum at x_j and B the kernel's peak. The safety (min_j d_j -
d0)_+/B moves by at most 1. Where it is above 0 the m values move by at most alpha = (2 R/d0) sqrt(min(m B^2, 2 max_x sum_j K(x_j,
x)^2)), R half the response's range (proof: `sums`, for weights that are integers). A hidden Gaussian test decides, with the share of
squared mu that makes a safety of gamma_plan pass with probability 1 - beta. Two neighbors are both safe, or one replies with
probability delta at most and the other never. What follows costs the rest: a tenth for kernel sums and local moments of clipped
residuals, which intervals need. Source: Shen, Tong, Wang 2026, Algorithm 5, with half the constants, one release for all points and
exact Gaussian accounting.

Interval: normal, f_j +- z sqrt(M_j/d_j^2 + s^2) with M_j the released sum of K^2 times squared residuals. It covers the smoothed curve
at the points, conditional on a reply where `conditional_on_reply` is flagged; not the bias of smoothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan, pi, prod, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, Composed, Meter, Plan, Release, ResultOptions, Source, Statistic, Total
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.mechanisms.ptr import reply_flags
from confide.guarantees.validation import is_finite
from confide.methods.curves.kernel import range_of, usual_share
from confide.methods.curves.sums import KERNELS, WEIGHT, KernelSafety, PointCurve, PointMoments, PointRows, smooth
from confide.results.curve import Curve, point_names
from confide.results.pages.content import check_names
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide.sums.safety_bounds import NOISE, Replying, smallest_plan

_SUMS, _MOMENTS = Fraction(1, 20), Fraction(1, 20)
_POINTS = 1_000
# Of points and bandwidths: the square of a point in bandwidths is a float.
_FAR = 1e50
# The default bandwidth, and how far apart default points are, over the range of a feature.
_WIDE = 0.25


@dataclass(frozen=True)
class EfficientPTRKernel(Replying):
    """Kernel regression at public points by efficient propose-test-release.

    Estimates f_h(x_j) = E[K(x_j, X) Y]/E[K(x_j, X)] at public points of one or
    several features. Where a hidden test finds too few records, the result is
    "declined". For one feature `Kernel` releases the whole curve with less
    noise and needs no test.

    Parameters
    ----------
    formula : str
        Formula ``"y ~ a + b"`` with numeric features.
    points : sequence of float or of tuples, optional
        Public points: numbers for one feature, or one tuple for each point. By
        default the middle of the bounds, and a quarter of the range to either
        side of it along each feature: points one default bandwidth apart.
    bandwidth : float or sequence of float, optional
        Bandwidth of all features, or one for each, in their units. By default
        a quarter of each range.
    least : float, optional
        Kernel sum that the noise is made for, in records at the kernel's peak
        (d0/B), above 1. Give `least` or `c0`, or neither. By default so many
        that the SD of a value's noise is 5% of the response's range.
    c0 : float, optional
        The same as d0 over n, in units of a density. It needs the public n.
    kernel : {"gaussian", "epanechnikov"}, default "gaussian"
        Kernel of each feature.
    gamma_plan : float, optional
        What the kernel sum exceeds `least` by when the test passes with
        probability 1 - beta. By default `least`, so that the sum is twice
        `least`. Without `least`, both are such that the sum is as small as can
        be.
    beta : float, default 0.001
        Probability that the release declines at `gamma_plan`.
    residual_bound : float, optional
        Size to which residuals are clipped in the variance, in units of the
        response. By default its whole range.

    Notes
    -----
    Guarantee: (mu, delta)-Gaussian DP under substitution. The safety moves by
    at most 1, and where it is above 0, the m values move by at most alpha. The
    module docstring has alpha and the proof.

    References
    ----------
    Shen, Tong, Wang 2026, Algorithm 5, with half the constants.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})
    >>> method = EfficientPTRKernel("y ~ x", points=[0.25, 0.5], bandwidth=0.05, least=80.0)
    >>> plan = method.plan(schema, cf.ApproxDP(1.0, 1e-6))
    >>> [part.name for part in plan.event.then.parts], round(plan.constants["alpha"], 4)
    (['curve', 'sums', 'moments'], 0.0354)
    """

    formula: str
    points: Sequence[Any] | None = None
    bandwidth: float | Sequence[float] | None = None
    least: float | None = None
    c0: float | None = None
    kernel: str = "gaussian"
    gamma_plan: float | None = None
    beta: float = 1e-3
    residual_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "efficient_ptr_kernel"
    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "kernel_regression"
    intervals: ClassVar[str] = "the smoothed curve at the points; sampling and privacy noise, given a reply"

    def __post_init__(self) -> None:
        if self.points is not None:
            object.__setattr__(self, "points", _points(self.points))
        widths = tuple(self.bandwidth) if isinstance(self.bandwidth, Iterable) else (self.bandwidth,)
        if self.bandwidth is not None and not (widths and all(is_finite(h) and 1 / _FAR <= h <= _FAR for h in widths)):
            raise PlanError(
                f"bandwidth must be a number from {1 / _FAR:g} to {_FAR:g}, or one for each feature, got {self.bandwidth!r}",
                "write bandwidth=0.05",
            )
        if self.kernel not in KERNELS:
            raise PlanError(
                f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}; a signed kernel has other constants"
            )
        if self.least is not None and self.c0 is not None:
            raise PlanError(
                "least, the kernel sum that the noise is made for, and c0, that sum over n B, say the same",
                "leave one of them out",
            )
        for name, value, low in (
            ("least", self.least, 1.0),
            ("c0", self.c0, 0.0),
            ("gamma_plan", self.gamma_plan, 1.0),
            ("residual_bound", self.residual_bound, 0.0),
        ):
            if value is not None and not (is_finite(value) and low < value < 1e12):
                raise PlanError(f"{name} must be a finite number above {low:g}, got {value!r}")
        self._check_beta()

    @classmethod
    def proposed(cls, formula: str, schema: Any, n: int, points: Sequence[float]) -> Mapping[str, Any]:
        """The curve at the points; `least` is half of the kernel sum, sqrt(2 pi) h n over the range, that even records have."""
        share = usual_share(n)
        return {
            "points": points,
            "bandwidth": share * range_of(points),
            "least": max(0.5 * sqrt(2 * pi) * share * n, 1.5),
        }

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The test and what follows it. n: the number of records, which c0 is a share of.

        Raises `PlanError` for a formula or setting that cannot work, and where no n records have the kernel sums for a reply. Raises
        `PrivacyError` for a request without a delta.
        """
        rows = self._rows(schema)
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2))
        d0, gamma = self._sizes(rows, allowance, n)
        curve, safety = PointCurve(rows, d0), KernelSafety(rows, d0)
        statistics: dict[str, Statistic] = {
            "safety": safety,
            "curve": curve,
            "sums": Total(
                PointRows(rows.design, rows.points, rows.bandwidths, rows.kernel, sums=True), nonnegative=True
            ),
            "moments": Total(PointMoments(rows, self._tau(rows.design)), nonnegative=True),
        }
        law = allowance.reply(gamma, self.beta)
        rest = 1 - law.spent
        shares = {"curve": rest * (1 - _SUMS - _MOMENTS), "sums": rest * _SUMS, "moments": rest * _MOMENTS}
        then = Composed(tuple(allowance.spend(name, statistics[name], part) for name, part in shares.items()))
        noise = curve.alpha / (law.mu * sqrt(float(shares["curve"])))
        enough = d0 / WEIGHT + 1 + law.sure / (law.mu * sqrt(float(law.spent)))
        return Plan.of(
            self,
            schema,
            allowance,
            allowance.test("safety", safety, law.spent, then),
            statistics,
            n=n,
            passes=2,
            constants={"d0": d0, "alpha": curve.alpha, "planned reply": law.promised},
            target=self._target(rows),
            intervals_for=f"{_INTERVALS_FOR}. {self._reply_words(rows, noise, enough)}",
            warnings=(
                *parse_formula(rows.design.formula, rows.design.schema).notes,
                *law.remarks("lower least, which raises the safety, or take Kernel, which always replies"),
            ),
        )

    def _rows(self, schema: Any) -> PointRows:
        whole = Schema.of(schema)
        design = ModelMatrix.of(self.formula, whole, term_bounds=self.term_bounds)
        d = len(design.terms)
        if not d or any(term.binary for term in design.terms):
            raise PlanError(f"{self.name} takes numeric features, as in 'y ~ a + b'; indicators have no kernel")
        check_names(Curve, (term.name for term in design.terms))
        points, widths = self.points, self._widths(design)
        if points is None:
            points = _default_points([(float(term.low), float(term.high)) for term in design.terms])
        if len(widths) != d or any(len(point) != d for point in points):
            raise PlanError(f"the formula has {d} features, so each point and the bandwidths must have {d} numbers")
        return PointRows(design, tuple(points), widths, self.kernel)

    def _widths(self, design: ModelMatrix) -> tuple[float, ...]:
        """The bandwidths, those by default in ranges of the features."""
        if self.bandwidth is None:
            return tuple(_WIDE * float(term.high - term.low) for term in design.terms)
        widths = self.bandwidth if isinstance(self.bandwidth, Iterable) else (self.bandwidth,) * len(design.terms)
        return tuple(map(float, widths))

    def _sizes(self, rows: PointRows, allowance: Allowance, n: int | None) -> tuple[int, float]:
        """(d0 in the integers of the weights, gamma_plan)."""
        least, gamma = self.least, self.gamma_plan
        if least is None and self.c0 is not None:
            if n is None:
                raise PlanError("c0 is a share of the public number of records", "give n=, or least= instead of c0")
            # over B, the peak of a kernel that integrates to 1
            least = self.c0 * n * prod(_mass(self.kernel) * h for h in rows.bandwidths)
        if least is None:
            # a test of no cost leaves this share of squared mu for the curve, whose values move by alpha = 2/least times this reach
            law, part = allowance.reply(2.0, self.beta), float(1 - _SUMS - _MOMENTS)
            free = PointCurve(rows, WEIGHT).alpha / 2 / (law.mu * sqrt(part) * NOISE)
            least, gamma = smallest_plan(free, law.sure / law.mu, gamma)
            least = max(least, 1.5)
            if n is not None and n >= 0:
                self._check_room(rows, least + gamma, n)
        if not least > 1:
            raise PlanError(
                f"the kernel sum that the noise is made for must exceed one record at the peak, got {least:.4g}",
                "take a larger bandwidth, c0 or least",
            )
        return int(least * WEIGHT), gamma or max(int(least * WEIGHT) / WEIGHT, 2.0)

    def _check_room(self, rows: PointRows, needed: float, n: int) -> None:
        """`PlanError` where no n records have the kernel sum of the defaults at every point."""
        # the smallest of the sums is below their mean, and a record adds a bounded amount to all of them together
        most = n * rows.largest(1) / len(rows.points) / WEIGHT
        if most <= needed:
            raise PlanError(
                f"a reply cannot be planned for: the kernel sum at every point must be at least {needed:,.4g} records, and {n:,} records "
                f"have {most:,.4g} at most at one of them",
                "take a larger budget, fewer points or points that lie closer, least=, which allows more noise, or Kernel, which always "
                "replies",
            )

    def _reply_words(self, rows: PointRows, noise: float, enough: float) -> str:
        """How much noise an answer has, and when there is one; printed with the plan. noise: its SD in half-ranges of the response."""
        half = float(rows.design.response.high - rows.design.response.low) / 2
        return (
            f"An answer has noise of SD {half * noise:.3g}, {noise / 2:.1%} of the response's range. It comes with probability "
            f"{1 - self.beta:.12g} if the kernel sum at every point is at least {enough:,.4g} records"
        )

    def _tau(self, design: ModelMatrix) -> float:
        half = float(design.response.high - design.response.low) / 2
        return min(2.0 if self.residual_bound is None else max(float(self.residual_bound) / half, 1e-6), 2.0)

    def _target(self, rows: PointRows) -> str:
        names = ", ".join(term.name for term in rows.design.terms)
        return f"smoothed regression of {rows.design.response.name} on {names} at {len(rows.points)} points"

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the sums and the test, and after a reply a second one for the residuals at the released values."""
        safety, curve, moments = (plan.statistic(name) for name in ("safety", "curve", "moments"))
        assert isinstance(safety, KernelSafety) and isinstance(curve, PointCurve)
        assert isinstance(moments, Total) and isinstance(moments.map, PointMoments)
        public: dict[str, Array] = {}
        (total,) = source.aggregate(Total(curve.map))
        steps, integers = safety.of(total), curve.of(total)
        replied = meter.test("safety", steps)
        if replied:
            found = curve.decode(meter.draw("curve", integers).decode())
            public["curve"] = np.clip(found, -1.0, 1.0)
            meter.draw("sums", total[: len(curve.map.points)])
            (squares,) = source.aggregate(Total(moments.map.at(public["curve"]), nonnegative=True))
            meter.draw("moments", squares)
        else:
            meter.decline()
        return public

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Curve:
        """The values at the points, or a result with status "declined". `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        rows, d0 = self._rows(release.plan.declared), int(release.plan.constants["d0"])
        design, m = rows.design, len(rows.points)
        low, high = float(design.response.low), float(design.response.high)
        middle, half = low + (high - low) / 2, (high - low) / 2
        f, alone, sampling, noise = (np.full(m, nan) for _ in range(4))
        flags = reply_flags(release.plan.constants["planned reply"])
        facts: tuple[tuple[str, str], ...] = (("Kernel sum asked for", f"{d0 / WEIGHT:.4g} records at the peak"),)
        replied = release.status == "released"
        if replied:
            curve = PointCurve(rows, d0)
            sd = curve.alpha * sqrt(release["curve"].variance) / (1 << 20)
            f = np.clip(curve.decode(release["curve"].decode()), -1.0, 1.0)
            sums, squares = release["sums"], release["moments"]
            # certified by the reply: no sum is below d0
            size = np.maximum(sums.decode(), float(d0)) / WEIGHT
            moments = PointMoments(rows, self._tau(design))
            # one sd of its own noise is added: a variance that noise has made small would shorten every interval
            most = size * (1 - np.maximum(np.abs(f) - sd, 0.0) ** 2)
            alone, sampling = (
                np.minimum(np.maximum(squares.decode() + more, 0.0) / moments.unit * moments.tau**2, most) / size**2
                for more in (0.0, sqrt(squares.variance))
            )
            noise = np.full(m, sd**2)
            facts += (("Noise sd", f"{half * sd:.4g}"),)
        return Curve.of(
            release,
            response=design.response.name,
            features=tuple(term.name for term in design.terms),
            points=np.array(rows.points),
            estimates=middle + half * f,
            sampling_variance=half**2 * sampling,
            noise_variance=half**2 * noise,
            denominator_noise=np.zeros(m) if replied else np.full(m, nan),
            alone=half**2 * alone,
            middle=middle,
            bounds=(low, high),
            status="valid" if replied else "declined",
            reason="" if replied else _NO_REPLY,
            flags=flags,
            target=self._target(rows),
            intervals_for=_INTERVALS_FOR,
            facts=facts,
            dense=False,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """E[K y]/E[K] at the points."""
        rows = self._rows(CodedFrame.checked(frame).schema)
        features = tuple(term.name for term in rows.design.terms)
        found = smooth(frame, rows.design, np.array(rows.points), np.array(rows.bandwidths), rows.kernel)
        return dict(zip(point_names(features, rows.points), map(float, found), strict=True))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """One point with opposite responses, and opposite corners. None with derived terms."""
        if schema is None:
            return
        rows = self._rows(schema)
        yield from corner_pairs(rows.design, schema)
        names = [term.plain for term in (*rows.design.terms, rows.design.response)]
        if None not in names:
            place = dict(zip(map(str, names), rows.points[0], strict=False))
            response = str(names[-1])
            yield (
                {**place, response: float(rows.design.response.high)},
                {**place, response: float(rows.design.response.low)},
            )


_INTERVALS_FOR = (
    "the smoothed curve E[K Y]/E[K] at the points, for the response clipped to its declared bounds; sampling of records and privacy "
    "noise, independent records, given a reply; "
    "not the bias of smoothing"
)
_NO_REPLY = (
    "the safety test did not pass: some point has too few records near it; ask for other points, a larger bandwidth or budget, or a "
    "smaller least"
)


def _mass(kernel: str) -> float:
    """The integral of a kernel over its peak, in bandwidths."""
    return sqrt(2 * pi) if kernel == "gaussian" else 4 / 3


def _default_points(ranges: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], ...]:
    """The middle of the box, and a quarter of the range to either side of it along each feature; in order where there is one.

    >>> _default_points([(0.0, 10.0)])
    ((2.5,), (5.0,), (7.5,))
    """
    middle = tuple(low + (high - low) / 2 for low, high in ranges)
    sides = [
        (*middle[:j], middle[j] + part * (high - low), *middle[j + 1 :])
        for j, (low, high) in enumerate(ranges)
        for part in (-_WIDE, _WIDE)
    ]
    return tuple(sorted((middle, *sides))) if len(ranges) == 1 else (middle, *sides)


def _points(given: Any) -> tuple[tuple[float, ...], ...]:
    try:
        found = tuple((float(row),) if np.ndim(row) == 0 else tuple(map(float, row)) for row in given)
    except (TypeError, ValueError, OverflowError):
        found = ()
    if (
        not 0 < len(found) <= _POINTS
        or not all(row and all(abs(one) <= _FAR for one in row) for row in found)
        or len({*map(len, found)}) > 1
    ):
        raise PlanError(
            f"points must hold 1 to {_POINTS:,} numbers of at most {_FAR:g} in size, or tuples of one length",
            "write points=[0.25, 0.5]",
        )
    if len(set(found)) < len(found):
        raise PlanError("points must differ from each other; a point that is named twice is paid for twice")
    return found
