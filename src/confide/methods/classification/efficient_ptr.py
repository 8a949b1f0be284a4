"""Efficient propose-test-release for class means: noise for classes of at least L records, where a hidden test finds them that large.

Estimates the share of each class and the mean of each feature within it. `ClassMeans` estimates the same, needs no test and is the
default. This method releases the means themselves, with noise 2.9 R/L instead of 2 R/n_k, or nothing.

Guarantee: (mu, delta)-Gaussian DP, substitution. The safety (min_k n_k - (L - 1))_+ moves by at most 1. Where it is above 0, means and
counts move by alpha = sqrt(4 R^2 (1/L^2 + 1/(L + 1)^2) + 2 w^2) at most (proof: below). A hidden Gaussian test decides. It has a small
share of squared mu, at least what makes a safety of gamma_plan pass with probability 1 - beta. Two neighbors are both safe, or one
replies with probability delta at most and the other never. Unless variance="identity", a fifth of squared mu pays for sums of u_j^2 by
class, as in `ClassMeans`. Source: Shen, Tong, Wang 2026, Algorithm 3, with a smaller alpha, a larger safety and exact Gaussian
accounting (evidence/errata.md).

Interval: normal, mean_k +- z sqrt(v_k/n_k + s^2) and shares as in `ClassMeans`. It covers the shares and class means of the population,
for records clipped to the bounds and moved into the ball. It is conditional on a reply, where `conditional_on_reply` is flagged.

Class means where every class is large: what efficient propose-test-release tests and releases, in exact integers.

Relation substitute. `rows` are class rows with T = 1 step for a count, so that their sum holds S_k and n_k exactly; |S u| <= B = 2^20.
L is public, at least 2.

    safety      gamma = (min_k n_k - (L - 1))_+ over all public classes. One record changes each n_k by at most 1, hence gamma too.
    gamma > 0   every n_k >= L. The mean of class k moves by at most 2 B/n_k when one of its records is replaced or leaves, since
                S_k/n_k - (S_k - u)/(n_k - 1) = (sum over the others of (u_i - u))/(n_k (n_k - 1)), and by 2 B/(n_k + 1) when one joins. A
                record that changes class does both to two classes, and moves their counts by 1 each. So (means, w counts) move by
                alpha = sqrt(4 B^2 (1/L^2 + 1/(L + 1)^2) + 2 w^2) at most, whatever the size of gamma on the other side.

Released is rint(2^20 (means, w counts)/alpha): it moves by 2^20 steps and sqrt(dimension) for rounding, which is exact in Fractions.
Proportions n_k/n with weight n w are the same block. Source: Shen, Tong, Wang 2026, Algorithm 3, with smaller constants
(evidence/errata.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log10, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import (
    SAFETY_STEPS,
    Allowance,
    Composed,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.mechanisms.ptr import reply_flags
from confide.guarantees.validation import is_finite
from confide.methods.classification.class_means import OfClasses
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.reading import ClassStatistics, class_model, silent
from confide.methods.classification.sums import ClassRows, SquareRows, class_pairs
from confide.results.classes import ClassModel
from confide.schema import Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import BITS
from confide.sums.integer_functions import FunctionOf
from confide.sums.safety_bounds import (
    NOISE,
    Replying,
    class_means_alpha,
    class_means_gamma,
    class_weight,
    least_class_size,
    smallest_plan,
)

_FINE = 1 << BITS
# What the counts may add to alpha^2, of what the means take.
_SHARE = 0.05


@dataclass(frozen=True)
class _OfSums(FunctionOf):
    """A function of the exact class sums and counts, as the protocol wants a statistic. `of(total)` is its value."""

    map: ClassRows
    least: int

    def _parts(self, total: NDArray[Any]) -> tuple[list[int], list[list[int]]]:
        """Exact counts (classes) and sums (classes, features)."""
        k, p = len(self.map.own.classes), self.map.block
        whole = [int(v) for v in total]
        return [v // self.map.per_count for v in whole[k * p :]], [whole[j * p : (j + 1) * p] for j in range(k)]


@dataclass(frozen=True)
class ClassSafety(_OfSums):
    """The safety gamma in 1024 steps of one unit."""

    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        counts, _ = self._parts(total)
        return np.array([SAFETY_STEPS * class_means_gamma(min(counts), self.least)], dtype=object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The largest in any company: one unit where the class changes."""
        places = slice(len(self.map.own.classes) * self.map.block, None)
        return np.where((rows[places] != own[places, None]).any(axis=0), SAFETY_STEPS**2, 0)


@dataclass(frozen=True)
class SafeMeans(_OfSums):
    """rint(2^20 (means, w counts)/alpha), shape (classes (features + 1),): means class by class, then counts."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    @property
    def moved(self) -> int:
        # each of two roundings is off by a half at most
        return _FINE + ceil(sqrt(self.shape[0]))

    @cached_property
    def weight(self) -> float:
        """w: one count in units of the integer rows."""
        return class_weight(float(self.map.longest), self.least, 1, _SHARE)

    @cached_property
    def alpha(self) -> float:
        """How far (means, w counts) move at most in the integers of the rows."""
        return class_means_alpha(float(self.map.longest), self.least, 1, self.weight)

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        counts, sums = self._parts(total)
        unit, count_unit = Fraction(_FINE) / Fraction(self.alpha), Fraction(self.weight) * _FINE / Fraction(self.alpha)
        # an empty class has no mean; it is never released, and 0 stands in
        means = [round(unit * value / max(n, 1)) for n, own in zip(counts, sums, strict=True) for value in own]
        return np.array([*means, *(round(count_unit * n) for n in counts)], dtype=object)

    def decode(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(counts, means (classes, features) in half-ranges) from values in steps."""
        k = len(self.map.own.classes)
        unit = self.alpha / _FINE
        return values[k * self.map.block :] * unit / self.weight, values[: k * self.map.block].reshape(
            k, -1
        ) * unit / self.map.steps

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squares of the largest moves in any company of classes of size L: exact up to floats."""
        k, p = len(self.map.own.classes), self.map.block
        before, after = np.asarray(own, dtype=np.float64), np.asarray(rows, dtype=np.float64)
        same = (before[k * p :, None] == after[k * p :]).all(axis=0)
        one, many = before[: k * p], after[: k * p]
        apart = ((many - one[:, None]) ** 2).sum(axis=0) / self.least**2
        far = (np.linalg.norm(one) + self.map.longest) ** 2 / self.least**2
        joined = (np.linalg.norm(many, axis=0) + self.map.longest) ** 2 / (self.least + 1) ** 2
        squares = np.where(same, apart, far + joined + 2 * self.weight**2)
        return squares * (_FINE / self.alpha) ** 2


_SQUARES = Fraction(1, 5)


@dataclass(frozen=True)
class EfficientPTRBayes(Replying, OfClasses):
    """Class means and shares by efficient propose-test-release.

    Estimates what `ClassMeans` does, which needs no test and is the default.
    Here the means themselves are released, where a hidden test finds every
    class large; otherwise the result is "declined". A delta is needed.

    Parameters
    ----------
    c0 : float, optional
        Least share of a class that the noise is made for, about half of the
        least share to expect. Then L = floor(c0 n) + 1, and n has to be public.
        Give `c0` or `least`, or neither. By default L is such that the SD of the
        noise of a mean is 5% of its feature's range.
    least : int, optional
        Least number L of records of a class that the noise is made for.
    gamma_plan : float, optional
        Number of records above L - 1 in the smallest class that passes with
        probability 1 - beta. By default 3 L/4, so that a share of 1.75 c0 has a
        reply. Without `least` and `c0`, L and `gamma_plan` are such that the
        smallest class may be as small as can be.
    beta : float, default 0.001
        Probability that the release declines at `gamma_plan`.

    Notes
    -----
    Guarantee: (mu, delta)-Gaussian DP under substitution. The safety moves by
    at most 1, and where it is above 0, means and counts move by at most alpha.
    The module docstring has alpha and the proof.
    ``plan.constants["records for a reply"]`` is the size of the smallest class
    from which a reply has probability 1 - beta.

    References
    ----------
    Shen, Tong, Wang 2026, Algorithm 3, with a smaller alpha.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-8, 8)})
    >>> plan = EfficientPTRBayes("kind ~ x", c0=0.04).plan(schema, cf.ApproxDP(1.0, 1e-6), n=5_000)
    >>> plan.constants["least"], plan.constants["records for a reply"], [part.name for part in plan.event.then.parts]
    (201, 351, ['means', 'squares'])
    """

    formula: str
    c0: float | None = None
    least: int | None = None
    variance: str = "per_feature"
    radius: float | None = None
    gamma_plan: float | None = None
    beta: float = 1e-3
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "efficient_ptr_bayes"
    task: ClassVar[str] = "classification"
    intervals: ClassVar[str] = "shares and means of classes; sampling and privacy noise, given a reply"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.c0 is not None and self.least is not None:
            raise PlanError(
                f"c0, about half of the least share of a class to expect, and least, a least size, say the same; got c0={self.c0!r} and "
                f"least={self.least!r}",
                "leave one of them out",
            )
        if self.c0 is not None and not (is_finite(self.c0) and 0 < self.c0 < 0.5):
            raise PlanError(
                f"c0 must be above 0 and below one over the number of classes, got {self.c0!r}. Usual is about half of the "
                "least share of a class to expect",
                "write c0=0.05 where that share is 0.1",
            )
        if self.least is not None and (
            isinstance(self.least, bool) or not isinstance(self.least, int) or not 2 <= self.least < 1 << 40
        ):
            raise PlanError(f"least must be a whole number of at least 2, got {self.least!r}", "write least=200")
        if self.gamma_plan is not None and not (is_finite(self.gamma_plan) and self.gamma_plan > 1):
            raise PlanError(
                f"gamma_plan must be a number above 1, got {self.gamma_plan!r}",
                "leave it out for 3/4 of the least size",
            )
        self._check_beta()

    @classmethod
    def proposed(cls, formula: str, schema: Any, n: int, points: Sequence[float]) -> Mapping[str, Any]:
        """Half of the share that every class would have if all had the same."""
        return {"c0": 0.5 / len(ClassDesign.of(formula, schema).classes)}

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the test and what follows it, from public facts. n: the number of records, which c0 is a share of.

        Raises `PlanError` for a formula or setting that cannot work, and where no class sizes of n records allow the planned reply.
        Raises `PrivacyError` for a guarantee without a delta.
        """
        own = self._own(schema)
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2))
        least, gamma = self._sizes(own, allowance, n)
        if n is not None and n >= 0:
            self._check_room(len(own.classes), least, gamma, n)
        rows, radius = self._rows(own), self._radius(own)
        means = SafeMeans(rows, least)
        statistics: dict[str, Statistic] = {"safety": ClassSafety(rows, least), "means": means}
        law = allowance.reply(gamma, self.beta)
        share, slope = law.spent, sqrt(float(law.spent)) * law.mu
        # the share is rounded to a millionth, which may cost a little of the reach
        enough = least + max(ceil(law.sure / slope - 1e-3), 0)
        squares = Fraction(0) if self.variance == "identity" else _SQUARES * (1 - share)
        sd = means.alpha / means.map.steps / (law.mu * sqrt(float(1 - share - squares)))
        then = [allowance.spend("means", means, 1 - share - squares)]
        if squares:
            statistics["squares"] = Total(SquareRows(own, radius), nonnegative=True)
            then.append(allowance.spend("squares", statistics["squares"], squares))
        return Plan.of(
            self,
            schema,
            allowance,
            allowance.test("safety", statistics["safety"], share, Composed(tuple(then))),
            statistics,
            n=n,
            constants={"least": least, "radius": radius, "planned reply": law.promised, "records for a reply": enough},
            target=self._target(own),
            intervals_for=f"{self._intervals_for()}. {self._reply_words(len(own.classes), least, enough, sd, n)}",
            warnings=(
                *parse_formula(own.design.formula, own.design.schema).notes,
                *law.remarks("give a larger one, or take ClassMeans, which always replies"),
            ),
        )

    def _rows(self, own: ClassDesign) -> ClassRows:
        return ClassRows(own, self._radius(own), 1)

    def _sizes(self, own: ClassDesign, allowance: Allowance, n: int | None) -> tuple[int, float]:
        """(L, gamma_plan)."""
        if self.least is not None or self.c0 is not None:
            least = self._least(own, n)
            return least, self._gamma(least)
        law, part = allowance.reply(2.0, self.beta), float(1 if self.variance == "identity" else 1 - _SQUARES)
        # alpha is a little below this over L, in half-ranges
        reach = self._radius(own) * sqrt(8 * (1 + _SHARE))
        free = reach / 2 / (law.mu * sqrt(part) * NOISE)
        size, gamma = smallest_plan(free, law.sure / law.mu, self.gamma_plan)
        return max(ceil(size), 2), gamma

    def _least(self, own: ClassDesign, n: int | None) -> int:
        if self.least is not None:
            return self.least
        assert self.c0 is not None
        if self.c0 >= 1 / len(own.classes):
            raise PlanError(
                f"c0 = {self.c0!r} is not below one over the number of classes, {1 / len(own.classes):.4g}: not all {len(own.classes)} "
                "classes can be larger; about half of the least share to expect is usual"
            )
        if n is None:
            raise PlanError("c0 is a share of the public number of records", "give n=, or least= instead of c0")
        return least_class_size(self.c0, n)

    def _gamma(self, least: int) -> float:
        """Records above L - 1 that the reply is planned for."""
        return max(3 * least / 4 if self.gamma_plan is None else float(self.gamma_plan), 1.5)

    def _check_room(self, classes: int, least: int, gamma: float, n: int) -> None:
        """`PlanError` where even classes of equal size are too small for the planned reply."""
        needed = ceil(least - 1 + gamma)
        if needed * classes <= n:
            return
        said = (
            f"a reply cannot be planned for: with L = {least:,} and gamma_plan = {gamma:.4g} the smallest class needs "
            f"{needed:,} records, {classes} classes {needed * classes:,} in all, and there are {n:,}"
        )
        room = n // classes + 1
        most = floor(room / 1.75 if self.gamma_plan is None else room - self.gamma_plan)
        if most < 3:
            raise PlanError(
                f"{said}; take ClassMeans, which always replies"
                + ("" if self.gamma_plan is None else ", or leave gamma_plan out")
            )
        if self.least is None and self.c0 is None:
            raise PlanError(
                f"{said}",
                f"ask for a larger budget, take more noise with least={most - 1} at most, or ClassMeans, which always replies",
            )
        if self.least is not None:
            raise PlanError(
                f"{said}",
                f"take about half of the smallest class to expect, least={most - 1} at most, or ClassMeans, which always replies",
            )
        highest = _down((most - 1) / n)
        raise PlanError(
            f"{said}",
            f"take about half of the least share of a class to expect, c0={highest:g} at most, or ClassMeans, which always replies",
        )

    def _reply_words(self, classes: int, least: int, enough: int, noise: float, n: int | None) -> str:
        """When there is a reply, and how much noise its means have; printed with the plan. noise: its SD in half-ranges."""
        words = (
            f"It replies with probability {1 - self.beta:.12g} if the smallest class has at least {enough:,} records"
        )
        if n is not None:
            words += f" ({enough / n:.2g} of {n:,})" if enough * classes <= n else f", which {n:,} records cannot have"
        return (
            f"{words}, and hardly ever at L = {least:,} or fewer. The noise of a mean has an SD of {noise / 2:.1%} of its "
            "feature's range"
        )

    def _intervals_for(self) -> str:
        return self._covered("independent records, given a reply")

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for sums, counts and squares; the means are found whether there is a reply or not."""
        safety, means = plan.statistic("safety"), plan.statistic("means")
        assert isinstance(safety, ClassSafety) and isinstance(means, SafeMeans)
        others = [name for name in plan.statistics if name == "squares"]
        total, *rest = source.aggregate(Total(means.map), *map(plan.statistic, others))
        steps, integers = safety.of(total), means.of(total)
        replied = meter.test("safety", steps)
        if replied:
            meter.draw("means", integers)
            for name, values in zip(others, rest, strict=True):
                meter.draw(name, values)
        else:
            meter.decline()
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> ClassModel:
        """The table of shares and means, which also predicts, or a result with status "declined". `PlanError` for any option."""
        (options or ResultOptions()).only()
        own, least = self._own(release.plan.declared), int(release.plan.constants["least"])
        words: dict[str, Any] = {"target": self._target(own), "intervals_for": self._intervals_for()}
        flags = reply_flags(release.plan.constants["planned reply"])
        if release.status == "declined":
            return silent(self, release, own, flags=flags, **words)
        safe, noisy = SafeMeans(self._rows(own), least), release["means"]
        counts, means = safe.decode(noisy.decode())
        sd = sqrt(noisy.variance) * safe.alpha / (1 << 20)
        error = np.full(means.shape, (sd / safe.map.steps) ** 2)
        sizes = np.maximum(counts, 1.0)[:, None]
        squared = self._squared(own, release["squares"] if self.variance != "identity" else None, sizes)
        found = ClassStatistics(counts, sd / safe.weight, means, error, *squared)
        floor = least / max(float(counts.sum()), 1.0) if release.plan.n is None else least / release.plan.n
        return class_model(self, release, own, found, self._radius(own), floor=min(floor, 1.0), flags=flags, **words)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners in one class and in two. None with derived terms."""
        return () if schema is None else class_pairs(self._own(schema), schema)


def _down(share: float) -> float:
    """Two digits of a share, rounded down."""
    unit = 10.0 ** (floor(log10(share)) - 1)
    return float(f"{floor(share / unit) * unit:.12g}")
