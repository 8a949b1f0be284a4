"""Clipped scores of a linear model, and the noisy full-batch descent that sums them.

The score of one record at a line theta is z e with z = (1, x~) and e = t - z'theta: minus the gradient of half its squared error. Scaled
down to a length of at most C, it is a record map with |m|^2 <= 2^40 at any theta. A descent of T steps is T sums of clipped scores, each
with Gaussian noise and an equal share of the budget; a step is planned without knowing where it will be taken.

Guarantee of T steps that get the share s of mu^2: sqrt(s) mu-GDP. A step moves by at most C when a record is added or removed and by 2 C
when one is replaced by another; each step's theta follows from earlier noisy sums, so that mu^2 adds up (Dong, Roth, Su 2022, Theorem 2
and Corollary 2). Sources: Bassily, Smith, Thakurta 2014; Abadi et al. 2016 (clipped noisy gradients); Brown, Dvijotham, Evans, Liu, Smith,
Thakurta 2024 (for linear regression).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, sqrt
from typing import ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, Composed, Meter, Plan, Source, Statistic, Total
from confide.core.exact import pack
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.schema import ModelMatrix
from confide.sums.coding import Box, CodedRows, Codes, leverage, only, residual, round_within, scaled, steps

__all__ = ["ClippedScores", "descend", "plan_descent"]


# A coefficient beyond this many half-ranges of the response is useless; the descent stops there, so that scores stay numbers.
_FAR = 1e6
# Integers have 20 bits: beyond this bound a score of length 1 would have fewer than ten.
_LARGEST_CLIP = 1024.0


@dataclass(frozen=True)
class ClippedScores(CodedRows):
    """One record as S z e min(1, clip/(|e| |z|)) in integers, e = t - z'theta, z = (1, x~): width terms + 1.

    clip: bound C on the length of a score in scaled units, at most 1024. theta: shape (terms + 1,), the intercept first, () for 0; box:
    where x~ is measured from, None for the public bounds. |m|^2 <= 2^40 for any theta and box, of which neither the bound nor the digest
    says anything; `at(theta)` is the map at another line, `unit` how many integer steps one scaled unit has.

    >>> import numpy as np, confide as cf
    >>> design = cf.schema.ModelMatrix.of("y ~ x", cf.Schema({"x": cf.Numeric(0, 1, steps=3), "y": cf.Numeric(0, 1, steps=3)}))
    >>> scores = ClippedScores(design, clip=10.0)
    >>> np.round(scores(np.array([[2.0, 1.0], [2.0, 2.0]])) / scores.unit, 3).T  # z = (1, 1), (1, 0); t = 1, 1
    array([[1., 1.],
           [1., 0.]])
    """

    design: ModelMatrix
    clip: float
    theta: tuple[float, ...] = ()
    box: Box | None = None
    kind: ClassVar[str] = "clipped scores"

    def __post_init__(self) -> None:
        if not (isfinite(self.clip) and 0 < self.clip <= _LARGEST_CLIP):
            raise PlanError(
                f"the bound on a score must be above 0 and at most {_LARGEST_CLIP:g}, got {self.clip!r}; scores are in half-ranges of the "
                "response, so that 1 is a large one; leave clip out for the default"
            )

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def unit(self) -> float:
        """Integer steps in one scaled unit."""
        return float(steps(self.clip, self.width))

    @property
    def stated(self) -> list[object]:
        # theta and box are left out: the bound holds for any, and a plan does not know them yet
        return [pack(self.clip)]

    def at(self, theta: Array) -> ClippedScores:
        """The map at a line that was computed from earlier noisy outputs, shape (terms + 1,)."""
        return replace(self, theta=tuple(float(v) for v in theta))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes, self.box)
        with np.errstate(all="ignore"):
            error = residual(rows[:-1], rows[-1], self.theta)
            # min(1, C/(|e||z|)) e = clip(e, -C/|z|, C/|z|)
            edge = leverage(rows[:-1])
            np.sqrt(edge, out=edge)
            np.divide(self.clip, edge, out=edge)
            np.minimum(error, edge, out=error)
            np.negative(edge, out=edge)
            np.maximum(error, edge, out=error)
            error *= self.unit
            score = rows[:-1]
            score *= only(error, keep)
            return round_within(score)


def plan_descent(
    design: ModelMatrix, allowance: Allowance, share: Fraction, iterations: int, *, clip: float, prefix: str = "step"
) -> tuple[Composed, dict[str, Statistic]]:
    """The events and statistics of a descent: `iterations` sums of clipped scores, named "step 1", ..., with equal shares.

    share: of the allowance, for the whole descent, exactly; clip: bound on the length of a score, in scaled units. Every statistic is the
    map at theta = 0: its bound holds wherever the step will be taken. Raises `PlanError` for a clip or a number that cannot work.
    """
    if not is_whole(iterations, 1, 1000):
        raise PlanError(
            f"iterations must be a whole number from 1 to 1000, got {iterations!r}; each one is a pass over the data; 30 is the default"
        )
    scores: Statistic = Total(ClippedScores(design, clip))
    statistics = {f"{prefix} {k}": scores for k in range(1, iterations + 1)}
    part = Fraction(share) / iterations
    return Composed(tuple(allowance.spend(name, scores, part) for name in statistics)), statistics


def descend(
    meter: Meter,
    source: Source,
    plan: Plan,
    design: ModelMatrix,
    *,
    count: float,
    iterations: int,
    rate: float,
    clip: float,
    box: Box | None = None,
    prefix: str = "step",
    start: Array | None = None,
    project: Array | None = None,
) -> Array:
    """The line after `iterations` planned noisy steps theta += rate g / max(count, 3 p), shape (p,), p = terms + 1, in scaled units.

    count: a noisy number of records, released before; rate: in units of 1/count; clip, prefix: as planned; box: public or from an earlier
    noisy output. start: the first line (0 when left out); project: a (p, p) projection that every step is put through, for lines with a
    restriction. One pass over the records for each step. Everything but the sums comes from noisy outputs and public facts.
    """
    p = len(design.terms) + 1
    theta = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    size = rate / max(count, 3 * p)
    for k in range(1, iterations + 1):
        name = f"{prefix} {k}"
        scores = replace(_planned(plan.statistics, name, clip), box=box).at(theta)
        (total,) = source.aggregate(Total(scores))
        gradient = meter.draw(name, total).decode() / scores.unit
        theta = theta + size * (gradient if project is None else project @ gradient)
        theta = np.clip(theta, -_FAR, _FAR)
    return theta


def _planned(statistics: Mapping[str, Statistic], name: str, clip: float) -> ClippedScores:
    """The map that was planned under this name; a release steps with the clip that was paid for."""
    scores = statistics[name].map if name in statistics else None
    if not isinstance(scores, ClippedScores) or scores.clip != clip:
        raise PlanError(
            f"the plan holds no clipped scores {name!r} with clip={clip!r}; descend with the settings given to plan_descent"
        )
    return scores


def default_clip(design: ModelMatrix) -> float:
    """C = sqrt(1 + d/3)/2: half a half-range of the response times the usual length of z for features spread evenly in their box."""
    return 0.5 * sqrt(1 + len(design.terms) / 3)
