"""Naive Bayes with noise for the smooth sensitivity of each class mean: the published DPNBSS, corrected.

Estimates the share of each class and the mean of each feature within it. The noise of a mean falls with the private size of its class,
through a bound that changes by a factor e^b at most from one record to the next. `ClassMeans` and `NaiveBayes` are more precise.

Guarantee: (epsilon, 0)-DP or (epsilon, delta)-DP as asked, add-remove or substitute, proved here. Features lie in [-1, 1] in half-widths.
One record leaves, enters or changes a class of n records: its mean moves by at most g(n) = 2/max(n, 1), and n by at most 1. S(n) = max over
k >= 0 of e^(-b k) g(n - k) bounds g, falls in n, and S(n) <= e^b S(n + 1) by its definition (Nissim, Raskhodnikova, Smith 2007). All is in
integers of a public step h: rint(mean/h), from exact sums, moves by at most g(n)/h + 1, which s(n) = S(n)/h + 1 bounds; s is smooth as S
is. Released is rint(mean/h) + rint((s(n)/a) Z), that is rint(rint(mean/h) + (s(n)/a) Z) for a real Z, by exact samplers at the rational
scale s(n)/a: no lattice but h itself, whatever the scale. For the neighbour, the density of Z is shifted by at most a and stretched by at
most e^b:
    Cauchy Z, h = 1/(1 + z^2):  |d log h(z)/dz| = |2z|/(1 + z^2) <= 1 and |d log(e^t h(e^t z))/dt| = |1 - z^2|/(1 + z^2) <= 1, so that the
                                loss is at most a + b. The general bound of the source asks for b = epsilon/6 and noise 6 S/epsilon here.
    Laplace Z:                  a for the shift; the stretch costs at most max(b, |z| (e^b - 1) - b) <= ln(1/delta) (e^b - 1) but with
                                probability delta, if ln(1/delta) >= 1. It comes first, so that delta is not multiplied.
A record is in one class: it touches p means under add-remove, 2 p where it changes its class. Losses and deltas add over them; half of
each is for b, since S(n) = 2/n from b = ln(n)/(n - 1) on and rises steeply below. A fifth of epsilon pays for the class counts, an
ordinary draw with Laplace noise. (Counts and means that were computed in doubles from noise on a lattice of 2^-40, on a grid of 2^-30,
named the right records at epsilon <= .003: evidence/errata.md.)

Interval: none. Source: Zafarani, Clifton 2020 (arXiv 2003.13955).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, inf, log, log1p, log2, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import Composed, Meter, Method, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source, Total
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.methods.classification.class_means import class_truth
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.reading import ClassStatistics, class_model
from confide.methods.classification.sums import ClassRows, class_pairs
from confide.results.classes import ClassModel
from confide.schema import Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide_lab.aggregates.laplace_rows import ClassCounts

__all__ = ["SmoothNaiveBayes", "smooth_sensitivity"]

Array = NDArray[np.float64]

_COUNTS, _SMOOTHING = Fraction(1, 5), 1 / 2
# Noisy means in steps are kept within these: what lies beyond is as good as any other number outside [-1, 1].
_FAR = 1 << 62
# The least b: 1e-12 of it, by which it is rounded down, is far above the last of the 60 digits of S.
_LEAST = 2.0**-30


def smooth_sensitivity(n: int, b: float) -> float:
    """S(n) = max over k >= 0 of e^(-b k) 2/max(n - k, 1): of the mean of n numbers in [-1, 1], and at n = 0.

    e^(-b k)/(n - k) rises in k once n - k < 1/b, so that the largest is at k = 0 or at k = n - 1.

    >>> smooth_sensitivity(100, 0.5), smooth_sensitivity(3, 0.01) > 2 / 3, smooth_sensitivity(0, 1.0)
    (0.02, True, 2.0)
    """
    return float(_smooth(n, b))


def _smooth(n: int, b: float) -> Fraction:
    """S(n) to 60 digits: far finer than what b was rounded down by, so that it is smooth as computed."""
    size = max(n, 1)
    with localcontext(Context(prec=60, traps=[])):
        falling = Fraction((-Decimal(b) * (size - 1)).exp())
    return 2 * max(Fraction(1, size), falling)


@dataclass(frozen=True)
class SmoothNaiveBayes(Method):
    """Naive Bayes by smooth sensitivity: a classifier without intervals, for comparison. The request is a `PureDP` or an `ApproxDP`.

    formula, term_bounds: as `ClassMeans`; variance: "identity" (variances are 1 in the data's units; they are not estimated). One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-8, 8)})
    >>> plan = SmoothNaiveBayes("kind ~ x").plan(schema, cf.PureDP(1.0))
    >>> plan.guarantee, round(plan.constants["scale"], 2), round(plan.constants["smoothing"], 3)
    (PureDP(1.0, relation='add-remove'), 2.5, 0.4)
    """

    formula: str
    variance: str = "identity"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "smooth_naive_bayes"
    family: ClassVar[str] = "classification"
    source: ClassVar[str] = (
        "smooth sensitivity (Nissim, Raskhodnikova, Smith 2007) of class means, after Zafarani, Clifton 2020"
    )
    native: ClassVar[str] = "PureDP"
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})

    def __post_init__(self) -> None:
        if self.variance != "identity":
            raise PlanError(
                f'variance must be "identity", got {self.variance!r}; NaiveBayes and ClassMeans estimate variances'
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One release. Raises `PlanError` for a formula that cannot work, `PrivacyError` for another guarantee."""
        own = self._own(schema)
        proved = Proved.of(privacy, self, schema, kinds=(PureDP, ApproxDP), instead="take ClassMeans")
        statistics = {"counts": Total(ClassCounts(own), nonnegative=True), "sums": Total(self._rows(own))}
        counts = proved.pure.spend("counts", statistics["counts"], _COUNTS)
        left = proved.rest(counts)
        return Plan.of(
            self,
            schema,
            proved,
            Composed((counts, OpaqueRelease("means", left, _PROOF))),
            statistics,
            n=n,
            constants=_constants(left, proved.relation, len(own.features)),
            target=self._target(own),
            intervals_for="no interval: ClassMeans has intervals",
            warnings=parse_formula(own.design.formula, own.design.schema).notes,
        )

    def _own(self, schema: Any) -> ClassDesign:
        return ClassDesign.of(self.formula, schema, term_bounds=self.term_bounds)

    @staticmethod
    def _rows(own: ClassDesign) -> ClassRows:
        return ClassRows(own, sqrt(len(own.features)), 1)

    def _target(self, own: ClassDesign) -> str:
        return f"shares of the classes of {own.response} and means of {', '.join(own.features)} within them"

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy counts and means, from exact sums in one pass. The number of draws is public."""
        rows, at = self._rows(self._own(source.schema)), plan.constants
        counts, total = source.aggregate(plan.statistic("counts"), plan.statistic("sums"))
        meter.draw("counts", counts)
        means, noise = _Means(rows, total, at), meter.noise("means")
        drawn = noise.grid_cauchy if at["law"] == "cauchy" else noise.grid_laplace
        noisy = [a + int(b) for a, b in zip(means.steps, drawn(means.scales, len(means.steps)), strict=True)]
        meter.opaque("means", np.array([max(-_FAR, min(_FAR, v)) for v in noisy], dtype=object), _step(at["scale"]))
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> ClassModel:
        """Shares and means without standard errors, and predictions. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        own = self._own(release.plan.schema)
        counts = release["counts"]
        # a mean of places in [-1, 1] lies there; Cauchy noise may leave it by any amount
        means = np.clip(release["means"].decode().reshape(len(own.classes), -1), -1.0, 1.0)
        found = ClassStatistics(counts.decode(), sqrt(counts.variance), means, np.zeros(means.shape), laplace=True)
        words: dict[str, Any] = {"target": self._target(own), "intervals_for": "no interval: ClassMeans has intervals"}
        return class_model(self, release, own, found, sqrt(len(own.features)), intervals=False, **words)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Shares and class means of the clipped records."""
        return class_truth(frame, self._own(CodedFrame.checked(frame).schema), inf)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners in one class and in two. None with derived or categorical features."""
        return () if schema is None else class_pairs(self._own(schema), schema)


_PROOF = "means with Cauchy or Laplace noise for a smooth bound of their sensitivity, shift and stretch apart, exact in integers"


def _step(scale: float) -> Fraction:
    """h in half-widths: 2^-30, or what keeps noise of scale 2 S/a within the exact samplers, below 2^56 steps."""
    return Fraction(2) ** max(-30, ceil(log2(scale)) - 54)


class _Means:
    """Class means in integers of h, row by row of the classes, and the exact scales of their noise, from exact sums."""

    def __init__(self, rows: ClassRows, total: NDArray[Any], at: Mapping[str, Any]) -> None:
        classes, step = len(rows.own.classes), _step(at["scale"])
        sums, counts = total[: classes * rows.block], [int(v) for v in total[classes * rows.block :]]
        self.steps, self.scales = list[int](), list[Fraction]()
        for j, value in enumerate(sums):
            n = counts[j // rows.block]
            self.steps.append(round(Fraction(int(value), rows.steps * max(n, 1)) / step))
            self.scales.append((_smooth(n, at["smoothing"]) / step + 1) * Fraction(at["scale"]))


def _constants(left: PureDP | ApproxDP, relation: str, features: int) -> dict[str, Any]:
    """law, smoothing b, scale 1/a, rounded to the safe side. left: what the counts have left for the means."""
    touched = features * (2 if relation == "substitute" else 1)
    safe = 1 + 1e-12
    cell = left.epsilon / touched / safe
    smoothing = cell * _SMOOTHING
    if isinstance(left, ApproxDP):
        # |z| (e^b - 1) - b is at most the share for |z| <= T, with b = log(1 + share/T)
        smoothing = log1p(smoothing / max(log(touched / left.delta), 1.0))
    if smoothing < _LEAST:
        raise PlanError(
            f"epsilon = {left.epsilon:.3g} for {touched} means is too little for noise in 64 bits; ask for more or take ClassMeans"
        )
    return {
        "law": "laplace" if isinstance(left, ApproxDP) else "cauchy",
        "smoothing": floor(smoothing * 2**60) / 2**60,
        "scale": safe / (cell * (1 - _SMOOTHING)),
    }
