"""A private line by rounds: second moments of residuals, in coordinates that the round before has whitened.

The first release pays for the whole range of the response and for the public box of the features. Every further one measures residuals
from the line so far, at their own scale, in coordinates where the noisy Gram matrix is the identity, so that noise is needed on that
scale only. A plan has two branches, of which a noisy count chooses one: three rounds after private ranges and before which a histogram of
leverages sets the last cap; or, for few records against the budget, two rounds (inference) or a plain noisy descent (prediction).

Guarantee: mu-GDP under add-remove and substitute. Each part is a Gaussian mechanism on exact integers whose bound holds whatever came
out before (`whitened_rows`, `blocks`, `ranges`, `scores`), and mu^2 adds up over adaptive parts and is the same in both branches. What is
computed between rounds follows from noisy outputs; the fission draws come from a generator keyed by them. Sources: Dwork, Talwar,
Thakurta, Zhang 2014 (noisy Gram matrix); Dong, Roth, Su 2022, Theorem 2 and Corollary 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, Branches, Composed, Event, Gram, Meter, Plan, Source, Statistic, Total
from confide.methods.regression.evidence.normal_equations import allowed_lines
from confide.methods.regression.sums.linear_rows import (
    BlockGram,
    CellIndices,
    Present,
    RangeCells,
    multipliers,
    private_box,
    ranged,
)
from confide.methods.regression.sums.whitened_rows import (
    Frame,
    LeverageCells,
    LeverageIndices,
    Round,
    WhitenedRows,
    first_variance,
    shrunken,
    split_of,
)
from confide.noise import keyed_generator
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide_lab.aggregates.scores import descend, plan_descent
from confide_lab.methods.clipped_responses import ClippedRows
from confide_lab.methods.huber.released_rounds import round_names
from confide_lab.methods.huber.residual_rows import FarResiduals, ScoreRows
from confide_lab.methods.huber.round_lines import RoundLines, restriction

__all__ = ["draw_line", "plan_line"]


# Shares of mu^2; found by simulation, see evidence/methods/huber_line.md.
_COUNT = Fraction(1, 100)
_MEAT = Fraction(8, 100)
_CLIPPING = Fraction(1, 100)
_LEVERAGE = Fraction(2, 100)
_RANGES = Fraction(10, 100)
_ROUNDS = (Fraction(15, 100), Fraction(20, 100), Fraction(55, 100))
_SHORT = (Fraction(35, 100), Fraction(65, 100))
# Fewer records than this many noise units for each coefficient: no budget to spare for ranges and leverages.
_ENOUGH = 30
_DESCENT_STEPS = 30
# A line beyond this many half-ranges of the response is useless; the line before it is kept, so that residuals stay numbers.
_FAR = 1e6


# --- plan --------------------------------------------------------------------------------------------------------------


def plan_line(
    design: ModelMatrix,
    allowance: Allowance,
    objective: str,
    *,
    clipping: bool = True,
) -> tuple[Event, dict[str, Statistic]]:
    """The events and statistics of a line that gets all of the allowance, exactly.

    objective: "inference" ends with an unshrunken round and a meat for its covariance, "prediction" with a shrunken one. clipping: spend
    1 % on a noisy count of responses outside their bounds and 1 % on one of clipped residuals (inference only).
    """
    inference = objective == "inference"
    statistics: dict[str, Statistic] = {"count": Total(Present(design), nonnegative=True)}
    shares = {"count": _COUNT}
    if inference and clipping:
        statistics["residuals"] = Total(FarResiduals(design), nonnegative=True)
        shares["residuals"] = _CLIPPING
    if inference and clipping:
        # weights are 1 at this cap, so that the count is one of records
        bounded = design.response.name in dict(design.term_bounds)
        statistics["clipping"] = Total(ClippedRows(design, 1.0 + len(design.terms), edges=bounded), nonnegative=True)
        shares["clipping"] = _CLIPPING
    if inference:
        statistics["meat"] = Gram(ScoreRows(design))
        shares["meat"] = _MEAT
    taken = sum((shares[name] for name in ("residuals", "clipping") if name in shares), Fraction(0))
    rest = 1 - _COUNT - (_MEAT if inference else 0)
    common = {name: allowance.spend(name, statistics[name], part) for name, part in shares.items()}
    long, own = _long_branch(design, allowance, rest - _LEVERAGE, taken)
    statistics |= own
    if inference:
        short, own = _short_branch(design, allowance, rest, taken)
    else:
        short, own = plan_descent(design, allowance, rest, _DESCENT_STEPS, clip=_descent_clip(design))
    statistics |= own
    return Composed((*common.values(), Branches((long, short)))), statistics


def _long_branch(
    design: ModelMatrix, allowance: Allowance, rest: Fraction, taken: Fraction
) -> tuple[Event, dict[str, Statistic]]:
    found = bool(ranged(design))
    scale = rest if found else rest / (1 - _RANGES)
    statistics: dict[str, Statistic] = {"ranges": RangeCells(CellIndices(design))} if found else {}
    shares = {"ranges": rest * _RANGES} if found else {}
    for name, part in zip(round_names(3), _ROUNDS, strict=True):
        statistics[name] = _round_statistic(design, allowance, last=name == "round 3")
        shares[name] = scale * part - (taken if name == "round 3" else 0)
    statistics["leverage"] = LeverageCells(LeverageIndices(design))
    shares["leverage"] = _LEVERAGE
    return _spent(allowance, statistics, shares), statistics


def _short_branch(
    design: ModelMatrix, allowance: Allowance, rest: Fraction, taken: Fraction
) -> tuple[Event, dict[str, Statistic]]:
    first, last = round_names(2)
    statistics: dict[str, Statistic] = {
        first: _round_statistic(design, allowance, last=False),
        last: _round_statistic(design, allowance, last=True),
    }
    shares = {first: rest * _SHORT[0], last: rest * _SHORT[1] - taken}
    return _spent(allowance, statistics, shares), statistics


def _spent(allowance: Allowance, statistics: dict[str, Statistic], shares: dict[str, Fraction]) -> Composed:
    return Composed(tuple(allowance.spend(name, statistics[name], part) for name, part in shares.items()))


def _round_statistic(design: ModelMatrix, allowance: Allowance, *, last: bool) -> BlockGram:
    return BlockGram(WhitenedRows(design), multipliers(*split_of(allowance.relation, last=last)))


def _descent_clip(design: ModelMatrix) -> float:
    return 0.5 * sqrt(1 + len(design.terms) / 3)


# --- release -----------------------------------------------------------------------------------------------------------


def _reach(s2: float, mu: float, count: float, cap: float) -> float:
    """Where the meat clips residuals, in units of rho: beyond three standard deviations, and further the more records there are."""
    reach = min(1.0, max(sqrt(s2), 1e-3) * max(3.0, 0.5 * sqrt(mu * count / cap))) if s2 >= 0 else 1.0
    return reach if np.isfinite(reach) else 1.0


def draw_line(design: ModelMatrix, meter: Meter, source: Source, plan: Plan) -> dict[str, NDArray[Any]]:
    """Draw what `plan_line` planned; the public numbers between the rounds, by name, for `Release.public`."""
    first = [name for name in ("count", "clipping", "ranges") if name in plan.statistics]
    sums = dict(zip(first, source.aggregate(*map(plan.statistic, first)), strict=True))
    count = meter.draw("count", sums["count"])
    if "clipping" in sums:
        meter.draw("clipping", sums["clipping"])
    records, p = float(count.decode()[0]), len(design.terms) + 1
    mu = _level(plan)
    if mu * records >= _ENOUGH * p:
        box = Box.of(design)
        if "ranges" in sums:
            ranges = meter.draw("ranges", sums["ranges"])
            box = private_box(design, ranges.decode(), sqrt(ranges.variance))
        return _Rounds(design, meter, source, plan, mu).run(box, round_names(3))
    if "meat" in plan.statistics:
        return _Rounds(design, meter, source, plan, mu).run(Box.of(design), round_names(2))
    limit = 1 + len(design.terms) / 3
    start, project = restriction(design)
    theta = descend(
        meter,
        source,
        plan,
        design,
        count=records,
        iterations=_DESCENT_STEPS,
        rate=1 / limit,
        clip=_descent_clip(design),
        start=start,
        project=project,
    )
    return {"line": theta, "box": _packed(Box.of(design))}


def _level(plan: Plan) -> float:
    """mu of the whole line for one record: what the count's share says, whatever the relation and rows per unit."""
    spend = plan.spend("count")
    return 1 / sqrt(float(_COUNT) * float(spend.scale) * float(spend.step) ** 2)


def _packed(box: Box) -> Array:
    return np.array([box.middle, box.half], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Rounds:
    """One run through the rounds of a branch."""

    design: ModelMatrix
    meter: Meter
    source: Source
    plan: Plan
    mu: float

    def run(self, box: Box, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        p = len(self.design.terms) + 1
        frame, cap = Frame.start(box), 1 + len(self.design.terms) / 3
        frames, caps = [], []
        for name in names:
            last = name == names[-1]
            done = self._round(name, frame, cap)
            frames.append(frame)
            caps.append(cap)
            if not last:
                delta, s2 = self._shrunken(name, done, first=name == names[0])
                theta = _sane(frame.line + frame.rho * frame.matrix @ delta, frame.line)
                frame, cap = self._next(done, theta, s2, names[names.index(name) + 1], p)
        meat = self._meat(done) if "meat" in self.plan.statistics else {}
        return {**_public(frames, caps, box), **meat}

    def _round(self, name: str, frame: Frame, cap: float) -> Round:
        planned = self.plan.statistic(name)
        assert isinstance(planned, BlockGram) and isinstance(planned.map, WhitenedRows)
        asked: list[Any] = [replace(planned, map=planned.map.at(frame, cap))]
        counted = name in (round_names(3)[-1], round_names(2)[-1]) and "residuals" in self.plan.statistics
        if counted:
            far = self.plan.statistic("residuals")
            assert isinstance(far, Total) and isinstance(far.map, FarResiduals)
            asked.append(replace(far, map=far.map.at(frame)))
        total, *others = self.source.aggregate(*asked)
        if counted:
            self.meter.draw("residuals", others[0])
        return Round.decoded(self.meter.draw(name, total), planned, frame, cap)

    def _shrunken(self, name: str, done: Round, *, first: bool) -> tuple[Array, float]:
        """The correction to go on from, on the lines that the formula allows; the first round does not shrink an intercept."""
        generator = self._generator(name)
        if self.design.intercept:
            return shrunken(done.system(first_variance(done), free=first), done, generator)
        return self._lines(done).shrunken(done, generator)

    def _lines(self, done: Round) -> RoundLines:
        return RoundLines.of(done, *allowed_lines(self.design, box=done.frame.box))

    def _generator(self, name: str) -> np.random.Generator:
        """Draws that follow from what was released: they add nothing to it, and a replay repeats them."""
        return keyed_generator("noise fission", self.meter.drawn(name).sha256)

    def _next(self, done: Round, theta: Array, s2: float, name: str, p: int) -> tuple[Frame, float]:
        """The frame and the cap of the round to come."""
        count = done.count
        values, vectors = np.linalg.eigh((done.gram + done.gram.T) / 2 / count)
        values = np.maximum(values, 0.5 * done.gram_noise / count)
        transform = done.frame.matrix @ vectors / np.sqrt(values)
        split = split_of(self.plan.relation, last=True)
        share = self._share(name)
        mu_gram, mu_cross = sqrt(split[0] * share) * self.mu, sqrt(split[1] * share) * self.mu
        frame = Frame.of(done.frame.box, transform, theta, done.frame.rho)
        if name == round_names(3)[-1]:
            cap = self._leverage_cap(frame, mu_gram, mu_cross, p)
        else:
            cap = float(np.clip(min(0.25 * count * mu_gram / sqrt(2 * p), count * mu_cross**2 / 18), p, 8 * p))
        rho = done.frame.rho
        rho = min(2 * rho, rho * sqrt(s2) * max(3.0, 0.5 * mu_cross * sqrt(count / cap)))
        return replace(frame, rho=rho), cap

    def _share(self, name: str) -> float:
        """The part of the line's mu^2 that a round gets."""
        count, own = self.plan.spend("count"), self.plan.spend(name)
        return float(_COUNT * own.mu_squared / count.mu_squared)

    def _leverage_cap(self, frame: Frame, mu_gram: float, mu_cross: float, p: int) -> float:
        """The largest cap whose predicted variance is within a tenth of the smallest, from a noisy histogram of |u|^2."""
        planned = self.plan.statistic("leverage")
        assert isinstance(planned, LeverageCells)
        (cells,) = self.source.aggregate(planned.at(frame))
        counts = self.meter.draw("leverage", cells).decode()
        edges = planned.map.edges
        middles = np.concatenate([[0.7 * edges[0]], np.sqrt(edges[:-1] * edges[1:]), [12.0 * p]])
        best, cap = inf, float(edges[2])
        variances = []
        for edge in edges[2:]:
            kept = max(float(counts @ np.minimum(middles, edge)) / p, 1.0)
            noise = 1 / kept + 9 * edge / (mu_cross * kept) ** 2
            variances.append(noise * (1 + (edge * sqrt(2 * p) / (mu_gram * kept)) ** 2))
        best = min(variances)
        for edge, variance in zip(edges[2:], variances, strict=True):
            if variance <= 1.1 * best:
                cap = float(edge)
        return cap

    def _meat(self, done: Round) -> dict[str, NDArray[Any]]:
        """The meat at the line of the last round."""
        frame = done.frame
        planned = self.plan.statistic("meat")
        assert isinstance(planned, Gram) and isinstance(planned.map, ScoreRows)
        delta, s2 = self._lines(done).plain(done)
        theta = _sane(frame.line + frame.rho * frame.matrix @ delta, frame.line)
        mu = 1 / sqrt(float(self.plan.spend("meat").scale) / float(self.plan.spend("meat").sensitivity) ** 2)
        reach = _reach(s2, mu, done.count, done.cap)
        (total,) = self.source.aggregate(Gram(planned.map.at(frame, done.cap, theta, reach)))
        self.meter.draw("meat", total)
        return {"meat_line": theta, "reach": np.array([reach])}


def _sane(theta: Array, fallback: Array) -> Array:
    return np.asarray(theta if (np.abs(theta) <= _FAR).all() else fallback)


def _public(frames: list[Frame], caps: list[float], box: Box) -> dict[str, NDArray[Any]]:
    return {
        "box": _packed(box),
        "transform": np.array([frame.transform for frame in frames], dtype=np.float64),
        "theta": np.array([frame.theta for frame in frames], dtype=np.float64),
        "rho": np.array([frame.rho for frame in frames], dtype=np.float64),
        "cap": np.array(caps, dtype=np.float64),
    }
