"""A release of Fisher scoring read as a table of log-odds: which coefficients are answered, their intervals, what the others need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later
from confide.mechanisms.fisher_rows import FisherScores
from confide.mechanisms.ranges import ranged
from confide.mechanisms.rows import BOUND, Box
from confide.noise import keyed_generator
from confide.protocol import Question, Release
from confide.regression.far_bounds import NEAR, far, short_tail
from confide.regression.fisher_hidden import Held, levels_of
from confide.regression.fisher_levels import QuietLevel, Seen, places_of, quiet_words
from confide.regression.fisher_needs import assumed_words, held_words, safe_words
from confide.regression.fisher_rounds import FisherRound, linear_round, scored, steps_of
from confide.regression.fisher_sandwich import FisherSandwich
from confide.regression.linear import legend
from confide.regression.logistic_design import log_odds
from confide.regression.logistic_results import LogisticEstimates
from confide.regression.needs import bounds_words, demand_words, plain, tied_words
from confide.regression.remarks import count_text, few_records
from confide.schema import Design

__all__ = ["FisherReading"]

stats = later("scipy.stats")

Array = NDArray[np.float64]

# Coefficients of features whose bounds reach beyond so many private half-widths are at risk from records that count less.
_AT_RISK = 5.0
# The mean residual of records that the noise of the excess hides, at most; and how far above its noisy number that may be.
_TAIL_RESIDUAL, _ONE_SIDED = 0.15, 1.645
# A bias above this part of the half-width makes a coefficient no answer.
_TOO_MUCH = 0.5
# A line so steep is answered only after four steps of which the last was short; and a last step beyond its noise is none.
_STEEP, _SHORT_STEP, _TRAVELLED = 3.0, 0.75, 4.0
# A coefficient that is correlated as much with one of a feature that reaches too far moves with it.
_TIED = 0.2


@dataclass(frozen=True, eq=False)
class FisherReading:
    """One release read with one question. levels: of the outcome, the base first."""

    release: Release
    question: Question
    design: Design
    levels: tuple[str, str]

    # what was released ------------------------------------------------------------------------------------------------

    def _public(self, name: str) -> Array:
        return np.asarray(self.release.public[name], dtype=np.float64)

    @cached_property
    def box(self) -> Box:
        """Where z was measured from."""
        middle, half = self._public("box")
        return Box(tuple(map(float, middle)), tuple(map(float, half)))

    @cached_property
    def last(self) -> FisherRound:
        """The last round, in units of u."""
        return scored(self.design, self.release)

    @cached_property
    def held(self) -> Held:
        """The levels that the last step could not tell."""
        levels = levels_of(self.design, self.release.plan.schema, self.box)
        return Held.of(self.last.gram, self.last.sd_gram, self._public("transform"), self._public("moments"), levels)

    @cached_property
    def sandwich(self) -> FisherSandwich:
        """The sums in the directions that can be told, and the coefficients in units of the data."""
        return self._whole.within(self.held.basis)

    @cached_property
    def _whole(self) -> FisherSandwich:
        bound = float(self._public("bound")[0])
        rows, meat = FisherScores(self.design, bound=bound), self.release["meat"]
        units = log_odds(self.design, self.box)
        return FisherSandwich(
            last=self.last,
            meat=meat.decode() / rows.steps**2,
            sd_meat=bound**2 * sqrt(meat.variance) / BOUND,
            rows=units @ self._public("transform"),
            shift=units @ self._public("line"),
        )

    @property
    def _records(self) -> float:
        return max(float(self.release["count"].decode()[0]), 1.0)

    @property
    def _df(self) -> float:
        return max(self._records - len(self.design.names), 3.0)

    # which coefficients are answered ------------------------------------------------------------------------------------

    @cached_property
    def reach(self) -> dict[int, tuple[float, float]]:
        """By place among the terms of more than two values: how far its public bounds lie from its private mean in private sds, and from
        the middle of its private range in half-widths of sqrt(3) sds; without ranges both are from the moments.
        """
        middle, half = self.box.arrays
        public_middle, public_half = Box.of(self.design).arrays
        centre, width = (public_middle - middle) / half, public_half / half
        sds = (np.abs(centre - self._public("feature_mean")) + width) / self._public("feature_sd")
        halves = np.abs(centre) + width if "ranges" in self.release.statistics else sds / sqrt(3)
        return {j: (float(sds[j]), float(halves[j])) for j in ranged(self.design)}

    @cached_property
    def far(self) -> tuple[int, ...]:
        """The places, among the terms, of features whose bounds lie too far out for what their histograms show."""
        # a record counts less from some length on, whatever its residual: no reach is safe for that
        return tuple(j for j, (sds, _) in self.reach.items() if far(sds, 0.0, self._short(j)))

    def _short(self, j: int) -> bool:
        """Whether the tail of a feature was seen to be short; never in the short branch, which pays for no ranges."""
        if "ranges" not in self.release.statistics:
            return False
        noisy, term = self.release["ranges"], self.design.terms[j]
        mean, spread = self._moments(j)
        own = noisy.decode()[ranged(self.design).index(j)]
        return short_tail(own, sqrt(noisy.variance), self._records, (term.low, term.high), mean, spread)

    def _moments(self, j: int) -> tuple[float, float]:
        """Mean and sd of a feature in the data's units."""
        middle, half = self.box.middle[j], self.box.half[j]
        mean, sd = float(self._public("feature_mean")[j]), float(self._public("feature_sd")[j])
        return middle + half * mean, half * sd

    @cached_property
    def bias(self) -> Array:
        """A bound on the bias of each coefficient, (k,): from records that count less, and from levels held at the line before."""
        return self._weighted + self._from_held

    @cached_property
    def _from_held(self) -> Array:
        """What records of levels that are held may move each coefficient, (k,)."""
        return self.held.bias(self._lengths, *self._held_counts)

    @cached_property
    def _held_counts(self) -> tuple[Array, Array]:
        """About how many records the levels held have, and the sds of the noise in it, (levels,) each."""
        if not self.held.levels:
            return np.empty(0), np.empty(0)
        linear = linear_round(self.design, self.release, self.box)
        weights = np.array([one.weights for one in self.held.levels])
        scale = self._records / linear.count
        sds = linear.sd_gram * np.sqrt((weights[:, 0] ** 2 + (weights**2).sum(axis=1)) / 2) * scale
        return weights @ self._public("moments")[0] * self._records, sds

    @cached_property
    def _lengths(self) -> Array:
        """|C A^-1| of each coefficient, (k,): what a score of length one moves it by, at most."""
        return np.asarray(np.linalg.norm(self.sandwich.rows @ self.sandwich.bread, axis=1))

    @cached_property
    def _weighted(self) -> Array:
        """A bound on what records that count less may move each coefficient at risk, (k,)."""
        excess = self.release["excess"]
        seen, hidden = max(float(excess.decode()[0]), 0.0) / BOUND, _ONE_SIDED * sqrt(excess.variance) / BOUND
        bound = float(self._public("bound")[0])
        own = self._lengths
        # others move with these as far as they hang together, by what was seen
        half = np.maximum(self._half, 1e-300)
        part = np.where(self._at_risk, bound * seen * own, 0.0) / half
        along = (np.abs(self.sandwich.correlation()) * part).max(axis=1) * half
        return np.where(self._at_risk, bound * (seen + _TAIL_RESIDUAL * hidden) * own, along)

    @cached_property
    def _at_risk(self) -> NDArray[np.bool_]:
        """The coefficients of features whose bounds reach far beyond their private range, (k,)."""
        return np.array([False, *(self.reach.get(j, (0.0, 0.0))[1] > _AT_RISK for j in range(len(self.design.terms)))])

    @cached_property
    def _half(self) -> Array:
        """Half-widths of 95 % intervals before the bias, (k,)."""
        return np.asarray(stats.t.isf(0.025, self._df) * np.sqrt(np.maximum(np.diag(self.sandwich.covariance), 0.0)))

    @cached_property
    def quiet(self) -> list[QuietLevel]:
        """Levels with next to no records of one outcome."""
        transform, s = self._public("transform"), self.sandwich
        told, back = transform @ self.held.basis, np.linalg.inv(transform)
        noise = told @ s.bread @ s.noise @ s.bread @ told.T
        surprise = back.T @ self.last.cross, self.last.sd_cross**2 * back.T @ back
        lines = self._public("line"), self._public("meat_line")
        seen = Seen(*lines, noise, surprise, self._public("moments"), self._records, self.box)
        return seen.quiet(self.design, self.release.plan.schema)

    @cached_property
    def _wide(self) -> list[int]:
        """Coefficients that records far out in wide bounds may move unseen."""
        # the same records are behind all of them: too much for one is an assumption too far for all
        own = np.where(self._at_risk, self._weighted, 0.0)
        biased = np.flatnonzero(own > 0) if (own > _TOO_MUCH * self._half).any() else np.empty(0, dtype=int)
        return sorted({*(1 + j for j in self.far), *map(int, biased)})

    @cached_property
    def _apart(self) -> list[int]:
        """Coefficients that hang on a level that is held, and those that its records may move too far."""
        schema = self.release.plan.schema
        own = (places_of(self.design, schema, one.column, one.name) for one in self.held.levels)
        moved = np.flatnonzero(self._from_held > _TOO_MUCH * self._half)
        return sorted({*(j for places in own for j in places), *map(int, moved)})

    @cached_property
    def _tied(self) -> dict[int, int]:
        """Coefficients that move with one that records far out may move."""
        if not self._wide:
            return {}
        correlation = np.abs(self.sandwich.correlation()[:, self._wide])
        moved = self._weighted > _TOO_MUCH * self._half
        return {
            j: self._wide[int(np.argmax(row))]
            for j, row in enumerate(correlation)
            if j and j not in self._wide and (moved[j] or row.max() > _TIED)
        }

    # the table ----------------------------------------------------------------------------------------------------------

    def table(self) -> LogisticEstimates:
        """The table of log-odds."""
        if self.sandwich.least <= 0:
            return self._points(
                "not_identified",
                "noise hides what the data say about some direction (the released information is not positive definite); ask for fewer "
                "terms, tighter bounds, more records or a larger budget",
            )
        reason = self._weak()
        if reason:
            return self._points("weak", reason)
        hidden = sorted({*self._wide, *self._tied, *self._apart, *(j for one in self.quiet for j in one.places)})
        if hidden and len({*hidden, 0}) > len(self.design.terms):
            return self._points("weak", self._reasons(told=False))
        return self._intervals(hidden)

    @property
    def _settling(self) -> Array:
        """A basis of the directions that must have settled: all but those of levels that are not answered, (k, fewer)."""
        quiet = {(one.count.column, one.count.level) for one in self.quiet}
        levels = levels_of(self.design, self.release.plan.schema, self.box)
        lost = [one for one in levels if (one.column, one.name) in quiet]
        return self.held.beside(self._public("transform"), lost) if lost else self.held.basis

    def _weak(self) -> str:
        """Why there is no interval at all, "" where there may be."""
        s = self.sandwich
        if s.least < s.last.norm:
            demand = s.last.norm / s.least
            names = [name for name, own in zip(self.design.names, s.demand, strict=True) if own > 1] or list(
                self.design.names
            )
            wide = [self._too_wide(j) for j in self.far]
            return "; ".join(
                [*wide, *quiet_words(self.quiet), demand_words(names, [demand] * len(names), self._records)]
            )
        basis = self._settling
        moving = self._whole.within(basis)
        line = basis @ (basis.T @ np.linalg.solve(self._public("transform"), self._public("meat_line")))
        slopes = (self._public("transform") @ line)[1:]
        moments = self._public("moments")
        mean = moments[0, 1:]
        spread = sqrt(max(float(slopes @ (moments[1:, 1:] - np.outer(mean, mean)) @ slopes), 0.0))
        size = float(np.linalg.norm(moving.delta))
        steep = spread > _STEEP and (steps_of(self.release.statistics) < 4 or size > _SHORT_STEP)
        if steep or moving.travelled > _TRAVELLED:
            return (
                "the steps did not settle: the last one still moved the line by more than its noise"
                if not steep
                else f"the line is steep (log-odds with a standard deviation of {plain(spread)} over records) and the steps did not settle"
            ) + "; ask for more records, a larger budget, fewer terms, or tighter bounds where records lie far out"
        return ""

    def _intervals(self, hidden: list[int]) -> LogisticEstimates:
        s = self.sandwich
        covariance, noise = np.array(s.covariance), np.array(s.noise_variance)
        estimates, bias = np.array(s.estimates), np.array(self.bias)
        estimates[hidden] = noise[hidden] = bias[hidden] = nan
        covariance[hidden] = covariance[:, hidden] = nan
        return self._made(
            estimates=estimates,
            covariance=covariance,
            df=self._df,
            noise_variance=noise,
            bias=bias if np.nan_to_num(bias).any() else None,
            status="partial" if hidden else "ok",
            reason=self._reasons() if hidden else "",
            covers=f"{self.release.plan.covers}; {self._assumption(hidden)}",
        )

    def _points(self, status: str, reason: str) -> LogisticEstimates:
        unknown = np.full((len(self.design.names),) * 2, nan)
        delta = self.last.shrunken(keyed_generator(self.release.sha256, self.question.sha256))
        return self._made(
            estimates=self._whole.rows @ delta + self._whole.shift,
            covariance=unknown,
            df=nan,
            noise_variance=unknown[0],
            status=status,
            reason=reason,
        )

    def _made(self, **more: Any) -> LogisticEstimates:
        count, steps = self.release["count"], steps_of(self.release.statistics)
        return LogisticEstimates.of(
            self.release,
            names=self.design.names,
            response=self.design.response.name,
            flags=few_records(count),
            facts=(
                ("Outcome", f"{self.levels[1]} against {self.levels[0]}"),
                ("Cov. type", "robust"),
                ("Count (noisy)", count_text(count)),
                ("Steps", f"{steps} of Fisher scoring, and a last one"),
                ("Weights", f"at most {float(self._public('less')[0]):.2%} of the records count less"),
            ),
            legend=legend(self.design, self.release.plan.schema)[1:],
            design=self.design,
            levels=self.levels,
            **more,
        )

    # what is said ---------------------------------------------------------------------------------------------------------

    def _assumption(self, hidden: list[int]) -> str:
        """What the intervals rest on, and what they would be without it."""
        shown = [j for j in np.flatnonzero((self._weighted > 0) & self._at_risk) if j not in hidden]
        if not shown:
            return safe_words(_AT_RISK)
        worst = float(self._public("bound")[0] * self._public("less")[0]) * self._records * self._lengths
        price = max(float((self._half[j] + worst[j]) / (self._half[j] + self.bias[j])) for j in shown)
        return assumed_words([self.design.names[j] for j in shown], _TAIL_RESIDUAL, price)

    def _too_wide(self, j: int) -> str:
        """The sentence on the bounds of a feature."""
        term, (mean, sd) = self.design.terms[j], self._moments(j)
        if j in self.far:
            enough, near = (mean - NEAR * sd, mean + NEAR * sd), NEAR
        else:
            ranges = "ranges" in self.release.statistics
            middle, half = (self.box.middle[j], self.box.half[j]) if ranges else (mean, sqrt(3) * sd)
            enough, near = (middle - _AT_RISK * half, middle + _AT_RISK * half), _AT_RISK * half / sd
        why = "a few records out there, which count less, could move its coefficient"
        return bounds_words(term.name, self.reach[j][0], (term.low, term.high), enough, near, why)

    def _reasons(self, *, told: bool = True) -> str:
        """Why coefficients are not answered: bounds, what moves with them, levels without one of the outcomes. told: whether others are."""
        names = self.design.names
        parts = [self._too_wide(place - 1) for place in self._wide]
        for other in dict.fromkeys(self._tied.values()):
            parts.append(tied_words([names[j] for j, with_ in self._tied.items() if with_ == other], names[other]))
        held = held_words(self.design, self.release.plan.schema, self.held.levels, *self._held_counts, told=told)
        return "; ".join([*parts, *held, *quiet_words(self.quiet)])
