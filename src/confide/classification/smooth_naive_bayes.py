"""Naive Bayes with noise for the smooth sensitivity of each class mean: the published DPNBSS, corrected.

Estimates the share of each class and the mean of each feature within it. The noise of a mean falls with the private size of its class,
through a bound that changes by a factor e^b at most from one record to the next. `ClassSums` and `NaiveBayes` are more precise.

Guarantee: (epsilon, 0)-DP or (epsilon, delta)-DP as asked, add-remove or substitute, proved here; float64 sampling is assumed. Features
lie in [-1, 1] in half-widths. One record leaves, enters or changes a class of n records: its mean moves by at most g(n) = 2/max(n, 1), and
n by at most 1. S(n) = max over k >= 0 of e^(-b k) g(n - k) bounds g, falls in n, and S(n) <= e^b S(n + 1) by its definition (Nissim,
Raskhodnikova, Smith 2007). Released is mean + (S(n)/a) Z. For the neighbour, the density of Z is shifted by at most a and stretched by at
most e^b:
    Cauchy Z, h = 1/(1 + z^2):  |d log h(z)/dz| = |2z|/(1 + z^2) <= 1 and |d log(e^t h(e^t z))/dt| = |1 - z^2|/(1 + z^2) <= 1, so that the
                                loss is at most a + b. The general bound of the source asks for b = epsilon/6 and noise 6 S/epsilon here.
    Laplace Z:                  a for the shift; the stretch costs at most max(b, |z| (e^b - 1) - b) <= ln(1/delta) (e^b - 1) but with
                                probability delta, if ln(1/delta) >= 1. It comes first, so that delta is not multiplied.
A record is in one class: it touches p means under add-remove, 2 p where it changes its class. Losses and deltas add over them; half of
each is for b, since S(n) = 2/n from b = ln(n)/(n - 1) on and rises steeply below. A fifth of epsilon pays for the class counts with
Laplace noise.

Interval: none. Source: Zafarani, Clifton 2020 (arXiv 2003.13955).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, floor, log, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.classification.class_design import ClassDesign
from confide.classification.class_rows import ClassRows, class_pairs
from confide.classification.reading import ClassStatistics, class_model
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.protocol import Meter, Method, Noise, Opaque, Plan, Proved, Question, Release, Source, Total
from confide.results.classes import ClassModel
from confide.schema import Schema
from confide.schema.formula import parse_formula

__all__ = ["SmoothNaiveBayes", "smooth_sensitivity"]

Array = NDArray[np.float64]

_COUNTS, _SMOOTHING = 1 / 5, 1 / 2
# Normal and Laplace numbers as integers of the exact samplers: steps in one unit.
_FINE = 1 << 40
_GRID = Fraction(1, 1 << 30)


def smooth_sensitivity(n: int, b: float) -> float:
    """S(n) = max over k >= 0 of e^(-b k) 2/max(n - k, 1): of the mean of n numbers in [-1, 1], and at n = 0.

    e^(-b k)/(n - k) rises in k once n - k < 1/b, so that the largest is at k = 0 or at k = n - 1.

    >>> smooth_sensitivity(100, 0.5), smooth_sensitivity(3, 0.01) > 2 / 3, smooth_sensitivity(0, 1.0)
    (0.02, True, 2.0)
    """
    size = max(n, 1)
    return 2 * max(1 / size, exp(-b * (size - 1)))


@dataclass(frozen=True)
class SmoothNaiveBayes(Method):
    """Naive Bayes by smooth sensitivity: a classifier without intervals, for comparison. The request is a `PureDP` or an `ApproxDP`.

    formula, term_bounds: as `ClassSums`; variance: "identity" (variances are 1 in the data's units; they are not estimated). One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-8, 8)})
    >>> plan = SmoothNaiveBayes("kind ~ x").plan(schema, cf.PureDP(1.0))
    >>> plan.guarantee, round(plan.constants["scale"], 2), round(plan.constants["smoothing"], 3)
    (PureDP(1.0, relation='add-remove', assumptions=('float64 sampling',)), 2.5, 0.4)
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
                f'variance must be "identity", got {self.variance!r}; NaiveBayes and ClassSums estimate variances'
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One release. Raises `PlanError` for a formula that cannot work, `PrivacyError` for another guarantee."""
        own = self._own(schema)
        proved = Proved.of(
            privacy, self, schema, kinds=(PureDP, ApproxDP), assumptions=("float64 sampling",), instead="take ClassSums"
        )
        return Plan.of(
            self,
            schema,
            proved,
            Opaque("model", proved.level, _PROOF),
            {"sums": Total(self._rows(own))},
            n=n,
            constants=_constants(proved, len(own.features)),
            target=self._target(own),
            covers="no interval: ClassSums has intervals",
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
        own = self._own(source.schema)
        rows, at = self._rows(own), plan.constants
        (total,) = source.aggregate(plan.statistic("sums"))
        noise = meter.noise("model")
        counts, sums = rows.decode(np.array([float(v) for v in total]))
        size = np.maximum(counts, 1.0)[:, None]
        spread = np.array([smooth_sensitivity(int(n), at["smoothing"]) for n in counts])[:, None] * at["scale"]
        noisy = counts + at["count scale"] * _laplace(noise, len(counts))
        draw = _cauchy if at["law"] == "cauchy" else _laplace
        means = sums / size + spread * draw(noise, sums.size).reshape(sums.shape)
        meter.opaque("model", np.concatenate([noisy, means.ravel()]), _GRID)
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, question: Question | None = None) -> ClassModel:
        """Shares and means without standard errors, and predictions. A question has nothing to ask: `PlanError`."""
        (question or Question()).only()
        own = self._own(release.plan.schema)
        values, k = release["model"].decode(), len(own.classes)
        # a mean of places in [-1, 1] lies there; Cauchy noise may leave it by any amount
        means = np.clip(values[k:].reshape(k, -1), -1.0, 1.0)
        found = ClassStatistics(
            values[:k], sqrt(2) * release.plan.constants["count scale"], means, np.zeros(means.shape)
        )
        words: dict[str, Any] = {"target": self._target(own), "covers": "no interval: ClassSums has intervals"}
        return class_model(self, release, own, found, sqrt(len(own.features)), intervals=False, **words)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners in one class and in two. None with derived or categorical features."""
        return () if schema is None else class_pairs(self._own(schema), schema)


_PROOF = (
    "Laplace noise on counts; means with Cauchy or Laplace noise for a smooth bound of their sensitivity, shift and stretch apart: "
    "confide.classification.smooth_naive_bayes"
)


def _normal(noise: Noise, size: int) -> Array:
    return np.asarray(noise.grid_gaussian(Fraction(_FINE**2), size), dtype=np.float64) / _FINE


def _laplace(noise: Noise, size: int) -> Array:
    return np.asarray(noise.grid_laplace(Fraction(_FINE), size), dtype=np.float64) / _FINE


def _cauchy(noise: Noise, size: int) -> Array:
    """The ratio of two standard normal numbers."""
    top, bottom = _normal(noise, 2 * size).reshape(2, size)
    return np.asarray(top / np.where(bottom == 0.0, 1 / _FINE, bottom))


def _constants(proved: Proved, features: int) -> dict[str, Any]:
    """law, smoothing b, scale 1/a, scale of the counts' Laplace noise; rounded to the safe side."""
    touched = features * (2 if proved.relation == "substitute" else 1)
    moved = 2 if proved.relation == "substitute" else 1
    safe = 1 + 1e-12
    cell = proved.level.epsilon * (1 - _COUNTS) / touched / safe
    smoothing = cell * _SMOOTHING
    if isinstance(proved.level, ApproxDP):
        # |z| (e^b - 1) - b is at most the share for |z| <= T, with b = log(1 + share/T)
        smoothing = log1p(smoothing / max(log(touched / proved.level.delta), 1.0))
    return {
        "law": "laplace" if isinstance(proved.level, ApproxDP) else "cauchy",
        "smoothing": floor(smoothing * 2**60) / 2**60,
        "scale": safe / (cell * (1 - _SMOOTHING)),
        "count scale": moved / (proved.level.epsilon * _COUNTS) * safe,
    }
