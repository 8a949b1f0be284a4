"""A release of Fisher scoring read as a table: which coefficients are answered, their intervals, what the others need.

Levels of which next to no records have one of the two outcomes: their coefficients are at a boundary, or cannot be told from it.

A level is any cell of the design, up to all records (`evidence.cells`); all have one rule. So have other directions that no record
stands against (`noise_floor`), whose counts are a histogram's.

Two noisy numbers of a level's records with its rarer outcome follow from the last round, and neither may be small. With N_l records and
mean log-odds eta_l the fit before it expects N_l p_l. Here p_l = expit(c eta_l), c = (1 + pi s^2/8)^(-1/2) for log-odds that vary by s
within a level (MacKay 1992). g holds sum (y - p), and their sum is the first number. The second is what the released fit expects. At a
boundary it lags behind the first, since a step moves log-odds by about one, but its noise is another.

What is answered by its own noisy number is answered too high: of levels with few such records those with lucky noise pass. Let X be a
number with noise of SD s, answered from T on. It has the interval whose coverage is right GIVEN that it is answered (Lee, Sun, Sun,
Taylor 2016, for a truncated normal number). Let r be the SD of noise and of sampling, r^2 = s^2 + X, d = (X - T)/r, and Q the normal
tail. Then all numbers below X - x r are excluded, where

    Q(x) = 0.025 Q(x - d),      x > 1.96, infinite at d = 0 and 1.96 again where d is large.

In log-odds noise is not normal where X is not a multiple of s. Down to the number L = X - x s it is log(X/L), for which 1.96 s/X is too
little. The variance of a level's log-odds grows by what is missing; a level for which L is below one record cannot be told. The other
end of an interval grows with it, without need. Counts of any size have the same rule with what a level counts in all, r of the
Poisson's. In addition, the number of the level's records in the linear round must exceed its noise. Within the noise all that follows
from it is luck, and a few records of large counts look like many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, log, nan, pi, sqrt
from typing import Any, cast

import numpy as np

from confide._arrays import Array
from confide._special import expit, log_ndtr
from confide.methods.regression.evidence.cells import all_records, cell_words, distinct_rows
from confide.methods.regression.evidence.normal_equations import extent
from confide.methods.regression.evidence.sample_size_advice import (
    TIED,
    IndependentRecords,
    alike_words,
    collinear_text,
    count_text,
    few_records,
    hidden_words,
    plain,
    records_needed_text,
)
from confide.methods.regression.glm.clipping import (
    AT_RISK,
    TAIL_RESIDUAL,
    counts_words,
    cut_assumption,
    full_assumption,
    full_words,
    less_assumption,
    less_words,
    too_far_words,
    wide_words,
)
from confide.methods.regression.glm.coefficients import FisherFigures
from confide.methods.regression.glm.draw import steps_of
from confide.methods.regression.glm.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.glm.noise_floor import (
    Level,
    assumed_words,
    held_words,
    least_against,
    level_of,
    levels_of,
    safe_words,
)
from confide.methods.regression.glm.results import (
    LogisticEstimates,
    MeanSlope,
    ModelEstimates,
    PoissonEstimates,
    mean_slope,
)
from confide.methods.regression.linear_estimates import legend
from confide.noise import keyed_generator
from confide.results.base import LevelCount
from confide.schema import ModelMatrix
from confide.sums.clusters.cluster_covariance import independent_of
from confide.sums.coding import Box

# With fewer records of an outcome than this, noise counted against them, a coefficient has no normal distribution to speak of.
_FEWEST = 5.0
# By outcome: 0, 1, or counts of any size.
_SAID = ("without the outcome", "with the outcome", "counted in all", "of the other outcome")
_COUNTED = 2
#: Records against a direction.
AGAINST = 3
# The number of a level's records stands so many sds of its noise above 0.
_CLEAR = 3.0
# No level has a smaller share of the records, and none counts less than so much.
_LEAST_SHARE, _LEAST_WEIGHT = 1e-4, 0.1
# Half of a 95 % interval in sds, and the tail beyond it.
_NORMAL, _TAIL = 1.96, 0.025
# Nearer than this to where answers begin no interval is short enough for any use; farther than that a normal one is as good.
_AT_ONCE, _FAR_OFF = 0.05, 6.0


@dataclass(frozen=True)
class SparseLevel:
    """A level with an estimated number, and the coefficients that depend on it.

    count: of records with one outcome (outcome 0 or 1), a total of counts (2), or what a direction moves, with the records against it
    (3).
    """

    count: LevelCount
    outcome: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NearLevel:
    """A level that is told by its count, and the variances that its log-odds have beside those of the sandwich: of noise, and in all.

    moves: how the coefficients move with it, (k,).
    """

    noise: float
    variance: float
    moves: Array


@dataclass(frozen=True, eq=False)
class _Look:
    """Two counts of the rarer outcome, log-odds per record of it, and which outcome it is."""

    counts: tuple[LevelCount, LevelCount]
    per: float
    outcome: int

    @property
    def hidden(self) -> bool:
        """Whether the level cannot be told."""
        return any(_lowest(count)[0] < 1.0 for count in self.counts)


@dataclass(frozen=True, eq=False)
class LevelState:
    """What is known of levels.

    before, line : array
        theta before the last round and the released one, (k,).
    noise : array
        Covariance of its privacy noise, (k, k).
    surprise : (array, array)
        sum w z (y - p) at the first, with the covariance of its noise.
    information : (array, array), optional
        sum w h z z' there, with the SD of its noise for a direction c as a function of c.
    moments : array
        Second moments of z per record, (k, k), z measured from `box`.
    records : float
        Estimated number of records.
    numbers : callable, optional
        Of weights of levels (levels, k): how many records of each the linear round counted, with SDs.
    outcomes : (array, float), optional
        Estimated numbers of records by distinct row of the matrix and outcome (rows, 2), with the SD of each.
    """

    before: Array
    line: Array
    noise: Array
    surprise: tuple[Array, Array]
    moments: Array
    records: float
    box: Box
    family: Family = LOGIT
    information: tuple[Array, Array] | None = None
    numbers: Callable[[Array], tuple[Array, Array]] | None = None
    outcomes: tuple[Array, float] | None = None

    def quiet(self, design: ModelMatrix) -> list[SparseLevel]:
        """The levels and other directions whose number of records with the rarer outcome, or against them, is small or hidden by noise."""
        found = []
        levels = levels_of(design, self.box)
        # where all outcomes are alike each level has its own noise, and what hangs on none would be answered
        if all(one.column for one in levels):
            levels.append(level_of(all_records(design), self.box))
        for level, look in self._looks(design, levels):
            if look.hidden or self._few(level):
                one = min(look.counts, key=lambda count: count.count - count.margin)
                found.append(SparseLevel(one, look.outcome, level.cell.places))
        return found + self._separated(design)

    def _separated(self, design: ModelMatrix) -> list[SparseLevel]:
        """The directions of separation, by the rows that they move."""
        rows = distinct_rows(design)
        if rows is None or self.outcomes is None:
            return []
        counts, sd = self.outcomes
        known = [rows.rows @ one.cell.weights for one in levels_of(design, self.box)]
        places: dict[tuple[str, str], set[int]] = {}
        least: dict[tuple[str, str], LevelCount] = {}
        for one in least_against(rows.rows, counts, sd, known, of_counts=self._counts):
            said = rows.named(design, one.moved)
            count = LevelCount(*said, one.count, one.sd)
            if _lowest(count)[0] < 1.0:
                places.setdefault(said, set()).add(one.place)
                least.setdefault(said, count)
        return [SparseLevel(least[said], AGAINST, tuple(sorted(own))) for said, own in places.items()]

    def near(self, design: ModelMatrix) -> list[NearLevel]:
        """The levels that are told although noise could have hidden them."""
        found = []
        for level, look in self._looks(design, levels_of(design, self.box)):
            if look.hidden:
                continue
            ends = [_lowest(count) for count in look.counts]
            noise, more = max((_missing_variance(c, *end) for c, end in zip(look.counts, ends, strict=True)), key=sum)
            if noise + more > 0:
                moves = level.cell.weights
                found.append(NearLevel(noise * look.per**2, (noise + more) * look.per**2, moves))
        return found

    def _looks(self, design: ModelMatrix, levels: Sequence[Level]) -> Iterator[tuple[Level, _Look]]:
        """What each level shows."""
        totals, noise = self.surprise
        for level in levels:
            weights, mean = level.weights, self._mean(design, level)
            eta, error = float(mean @ self.line), sqrt(max(float(mean @ self.noise @ mean), 0.0))
            damped, damped_before = (self._damped(line, level) for line in (self.line, self.before))
            # of the outcome that the released line says is the rarer; of counts there is one side
            sign, number = (
                (-1.0 if eta > 0 and not self._counts else 1.0),
                max(float(weights @ self.moments[0]), _LEAST_SHARE) * self.records,
            )
            rarer, steep = self._expected(number, sign * eta, damped)
            before = sign * float(mean @ self.before)
            expected, slope = self._expected(number, before, damped_before)
            unit = self._unit(before) / self._weight(weights, slope / self._unit(before))
            missed, unsure = float(weights @ totals), sqrt(max(float(weights @ noise @ weights), 0.0))
            counts = (
                LevelCount(level.column, level.name, rarer, steep * error),
                LevelCount(level.column, level.name, expected + sign * unit * missed, unit * unsure),
            )
            yield level, _Look(counts, 1 / max(steep, 1e-300), 2 if self._counts else int(sign > 0))

    def _weight(self, weights: Array, most: float) -> float:
        """How much a record of a level counts on average, by the information there is and there would be of full weights."""
        if self.information is None or self._counts:
            return 1.0
        there, noise = (float(weights @ own @ weights) for own in self.information)
        return float(np.clip((there + noise) / max(most, 1e-300), _LEAST_WEIGHT, 1.0))

    def _few(self, level: Level) -> bool:
        """Whether noise hides how many records have a level of counts."""
        if not self._counts or self.numbers is None:
            return False
        (number,), (sd,) = self.numbers(level.weights[None, :])
        return bool(number < _CLEAR * sd)

    @property
    def _counts(self) -> bool:
        return isinstance(self.family, Counts)

    def _expected(self, number: float, eta: float, damped: float) -> tuple[float, float]:
        """What so many records count where eta has this mean, and its derivative. damped: of a line."""
        if self.family == LOGIT:
            mean = float(expit(eta * damped))
            return number * mean, number * mean * (1 - mean)
        at = np.array([eta if self._counts else eta * damped])
        return number * float(self.family.mean(at)[0]), number * float(self.family.slope(at)[0])

    def _unit(self, eta: float) -> float:
        """How many outcomes one unit of the score stands for."""
        if self.family == LOGIT:
            return 1.0
        at = np.array([eta])
        return float(self.family.slope(at)[0] / self.family.information(at)[0])

    def _mean(self, design: ModelMatrix, level: Level) -> Array:
        """The mean of z over the records of a level, (k,): exactly in its own columns, as the moments say and within bounds in others."""
        mean = level.weights @ self.moments / max(float(level.weights @ self.moments[0]), _LEAST_SHARE)
        low, high = extent(design, self.box)
        mean = np.concatenate([[1.0], np.clip(mean[1:], low, high)])
        middle, half = self.box.arrays
        for j, value in level.cell.fixed:
            mean[1 + j] = (value - middle[j]) / half[j]
        return np.asarray(mean)

    def _damped(self, line: Array, level: Level) -> float:
        """c of a line over the records of a level, of whose own columns nothing varies there."""
        own = np.array(line)
        own[[1 + j for j, _ in level.cell.fixed]] = 0.0
        varying = float(own @ self.moments @ own) - float(self.moments[0] @ own) ** 2
        return 1 / sqrt(1 + pi * max(varying, 0.0) / 8)


def _lowest(count: LevelCount) -> tuple[float, float]:
    """(L, x): the least count that is not excluded, given that this one was answered, and x; -inf where none is."""
    beyond = (count.count - _FEWEST) / sqrt(count.sd**2 + max(count.count, 1.0))
    if not beyond > _AT_ONCE:
        return -inf, inf
    x = _sds_beyond(beyond) if beyond < _FAR_OFF else _NORMAL
    return count.count - x * count.sd, x


def _sds_beyond(d: float) -> float:
    """x of Q(x) = 0.025 Q(x - d)."""
    low, high = _NORMAL, 4 / d + d + 2
    for _ in range(60):
        x = (low + high) / 2
        if float(log_ndtr(-x)) > log(_TAIL) + float(log_ndtr(d - x)):
            low = x
        else:
            high = x
    return high


def _missing_variance(count: LevelCount, low: float, x: float) -> tuple[float, float]:
    """What a normal interval of the logarithm of a count lacks: of noise, and of sampling, in squared records."""
    noise = (count.count * log(count.count / low) / _NORMAL) ** 2 - count.sd**2
    return max(noise, 0.0), ((x / _NORMAL) ** 2 - 1) * count.count


# Levels that a reason names.
_FIRST = 3


def quiet_words(found: Sequence[SparseLevel]) -> list[str]:
    """One sentence for the levels, the rarest first; none for none."""
    if not found:
        return []
    first = sorted(found, key=lambda one: one.count.count)[:_FIRST]
    named = ", ".join(
        f"{cell_words(one.count.column, one.count.level)} (about {max(one.count.count, 0.0):.0f} ± {one.count.margin:.0f} "
        f"{_SAID[one.outcome]})"
        for one in first
    )
    more = f" and {len(found) - _FIRST} more" if len(found) > _FIRST else ""
    counted = first[0].outcome == _COUNTED
    if not all(one.count.column for one in first):
        return [f"{named} are too alike for any coefficient to be estimated; more records or a larger budget may help"]
    crossed = list(dict.fromkeys(one.count.column for one in first if ":" in one.count.column))
    way = f", or write the formula without the product of {' or '.join(crossed)}" if crossed else ""
    rest = f"join a level of this kind with another, or leave it out of the schema, by which its records count as missing{way}"
    if counted:
        return [
            f"levels whose counts may be noise alone have no coefficient that can be estimated: {named}{more}; more records or a larger "
            f"budget tell them; else {rest}"
        ]
    return [
        f"levels with almost no records of one outcome have no coefficient that can be estimated: {named}{more}; {rest}"
    ]


# A bias above this part of the half-width makes a coefficient no answer.
_TOO_MUCH = 0.5
# And so many of those where the line says more than half of the largest count.
_FULL_TOO_MUCH = 1.0
# Of counts: an assumption on records that are off the line whose price is more than so many widths is none.
_FAR_TOO_MUCH = 5.0
# A line so steep is answered only after four steps of which the last was short; and a last step beyond its noise is none.
_STEEP, _SHORT_STEP, _TRAVELLED = 3.0, 0.75, 4.0


@dataclass(frozen=True, eq=False)
class FisherReading(IndependentRecords, FisherFigures):
    """One release read with one set of options: what is answered, and the sentences of the table."""

    # which coefficients are answered ------------------------------------------------------------------------------------

    @cached_property
    def quiet(self) -> list[SparseLevel]:
        """Levels with next to no records of one outcome."""
        return self._seen.quiet(self.design)

    @cached_property
    def _covariance(self) -> Array:
        """The covariance of the coefficients, (k, k)."""
        whole = np.array(self.sandwich.covariance)
        for one in self._near:
            whole += one.variance * np.outer(one.moves, one.moves)
        return whole

    @property
    def _alone(self) -> Array:
        """The part of the variances that sampling alone would give, (k,)."""
        return self.sandwich.alone() + sum((one.variance - one.noise) * one.moves**2 for one in self._near)

    @cached_property
    def _near(self) -> list[NearLevel]:
        return self._seen.near(self.design)

    @cached_property
    def _seen(self) -> LevelState:
        transform, s = self._public("transform"), self.sandwich
        told, back = transform @ self.held.basis, np.linalg.inv(transform)
        noise = told @ s.bread @ s.noise @ s.bread @ told.T
        surprise = back.T @ self.last.cross, self.last.sd_cross**2 * back.T @ back
        lines = self._public("line"), self._public("meat_line")
        information = self._information, self.last.sd_gram * back.T @ back
        return LevelState(
            *lines,
            noise,
            surprise,
            self._public("moments"),
            self._mass,
            self.box,
            self.scored_family,
            information,
            self._records_of,
            self._outcomes,
        )

    @property
    def _outcomes(self) -> tuple[Array, float] | None:
        """Noisy numbers of records by distinct row of the matrix and outcome, (rows, 2), and their SD; None where none were released."""
        if "outcomes" not in self.release.statistics:
            return None
        noisy = self.release["outcomes"]
        return noisy.decode().reshape(-1, 2), sqrt(noisy.variance)

    @property
    def _wide(self) -> list[int]:
        """Coefficients of features whose bounds reach too far."""
        return [1 + j for j in self.far]

    @cached_property
    def _apart(self) -> list[int]:
        """Coefficients that depend on a level that is held, and those that its records may move too far."""
        own = (j for one in self.held.levels for j in one.cell.places)
        moved = np.flatnonzero(self._from_held > _TOO_MUCH * self._half)
        return sorted({*own, *map(int, moved)})

    @cached_property
    def _tied(self) -> dict[int, int]:
        """Coefficients that move with that of a wide feature."""
        if not self._wide:
            return {}
        correlation = np.abs(self.sandwich.correlation()[:, self._wide])
        return {
            j: self._wide[int(np.argmax(row))]
            for j, row in enumerate(correlation)
            if j and j not in self._wide and row.max() > TIED
        }

    # the table ----------------------------------------------------------------------------------------------------------

    def table(self) -> ModelEstimates:
        """The table of coefficients."""
        if self.sandwich.least <= 0:
            return self._points(
                "not_identified",
                f"{hidden_words([term.name for term in self.design.terms], self._information)} (the released information is not positive "
                "definite); ask for fewer terms, more records or a larger budget",
            )
        reason = self._few_units or self._weak()
        if reason:
            return self._points("imprecise", reason)
        hidden = sorted({*self._wide, *self._tied, *self._apart, *(j for one in self.quiet for j in one.places)})
        if hidden and len({*hidden, 0}) > len(self.design.terms):
            return self._points("imprecise", self._reasons(told=False))
        return self._intervals(hidden)

    @property
    def _few_units(self) -> str:
        """Why independent units are too few for intervals, "" where they are not."""
        units = None if self.counting is None else independent_of(self.release, self._records)
        return "" if units is None else units.weak

    @property
    def _settling(self) -> Array:
        """A basis of the directions that must have settled: all but those of levels that are not answered, (k, fewer)."""
        quiet = {(one.count.column, one.count.level) for one in self.quiet}
        levels = levels_of(self.design, self.box)
        lost = [one for one in levels if (one.column, one.name) in quiet]
        return self.held.beside(self._public("transform"), lost) if lost else self.held.basis

    @property
    def _information(self) -> Array:
        """The released information in z, (p, p)."""
        back = np.linalg.inv(self._public("transform"))
        return np.asarray(back.T @ self.last.gram @ back)

    def _weak(self) -> str:
        """Why there is no interval at all, "" where there may be."""
        s = self.sandwich
        if s.least < s.last.norm:
            demand = s.last.norm / s.least
            names = [name for name, own in zip(self.design.names, s.demand, strict=True) if own > 1] or list(
                self.design.names
            )
            wide = [self._too_wide(j) for j in self.far]
            terms = [term.name for term in self.design.terms]
            alike = alike_words(terms, self._information, range(len(terms)))
            return "; ".join(
                [
                    *self._wide_counts,
                    *wide,
                    *quiet_words(self.quiet),
                    *([alike] if alike else []),
                    records_needed_text(names, [demand] * len(names), self._records),
                ]
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
            unsettled = (
                "the steps did not settle: the last one still moved the coefficients by more than their noise"
                if not steep
                else f"the slopes are steep ({self.family.scale_words} with a standard deviation of {plain(spread)} over records) and the "
                "steps did not settle"
            )
            asked = "ask for more records, a larger budget or fewer terms"
            return "; ".join([*self._wide_counts, unsettled, asked])
        return self._moved_by_counts()

    @property
    def _wide_counts(self) -> list[str]:
        """The sentence on a bound of counts that lies far beyond those seen."""
        own = self.scored_family
        return wide_words(self.release, self.design, own, self._records) if isinstance(own, Counts) else []

    def _moved_by_counts(self) -> str:
        """Why counts above the limit, or down-weighted records, leave no interval of a Poisson coefficient; "" where there is one."""
        odd = self.odd_bias > _FAR_TOO_MUCH * (self._half + self._weighted)
        odd |= (self.odd > 0) & ~self._counted & (self._weighted > _TOO_MUCH * self._half)
        if odd.any() and not self._far_out.any():
            return less_words(float(self._public("less")[0]))
        own = self.scored_family
        if (self.full_bias > _FULL_TOO_MUCH * self._half).any():
            return full_words(self.design.response.name)
        if isinstance(own, Counts) and (self.cut_bias > _TOO_MUCH * self._half).any():
            return too_far_words(self.design.response.name, own)
        return ""

    def _intervals(self, hidden: list[int]) -> ModelEstimates:
        covariance = np.array(self._covariance)
        noise = np.maximum(np.diag(covariance) - self._alone, 0.0)
        estimates, bias = np.array(self.sandwich.estimates), np.array(self.bias + self.cut_bias + self.full_bias)
        estimates[hidden] = noise[hidden] = bias[hidden] = nan
        covariance[hidden] = covariance[:, hidden] = nan
        return self._made(
            estimates=estimates,
            covariance=covariance,
            df=self._df,
            sampling_df=None if self.sandwich.units is None else self.sandwich.sampling_df,
            noise_variance=noise,
            bias=bias if np.nan_to_num(bias).any() else None,
            status="partial" if hidden else "valid",
            reason=self._reasons() if hidden else "",
            intervals_for="; ".join([self.release.plan.intervals_for, *self._assumptions(hidden)]),
            effects=self._effects,
        )

    @property
    def _effects(self) -> Callable[[], MeanSlope | None] | None:
        return partial(mean_slope, self)

    def _points(self, status: str, reason: str) -> ModelEstimates:
        unknown = np.full((len(self.design.names),) * 2, nan)
        delta = self.last.shrunken(keyed_generator(self.release.drawn_sha256, "points"), self.scored_family.scale)
        return self._made(
            estimates=self._whole.rows @ delta + self._whole.shift,
            covariance=unknown,
            df=nan,
            noise_variance=unknown[0],
            status=status,
            reason=reason,
        )

    def _made(self, **more: Any) -> ModelEstimates:
        count, steps = self.release["count"], steps_of(self.release.statistics)
        own = self.scored_family
        levels = self.levels
        outcome = (
            ("Outcome", f"{levels[1]} against {levels[0]}") if levels else ("Counts", counts_words(cast(Counts, own)))
        )
        kind = {"levels": levels, "link": own.name} if levels else {}
        found: ModelEstimates = self._kind.of(
            self.release,
            names=self.design.names,
            response=self.design.response.name,
            flags=(*self._told, *few_records(count)),
            facts=(
                outcome,
                *self._head,
                ("n", count_text(count)),
                ("Steps", f"{steps} of Fisher scoring, and a last one"),
                ("Weights", f"at most {float(self._public('less')[0]):.2%} of the records are down-weighted"),
            ),
            legend=legend(self.design, self.release.plan.declared)[1:],
            design=self.design,
            nobs=float(count.decode()[0]),
            heading="weighted: records with extreme features are down-weighted" if self.weighted else "",
            **kind,
            **more,
        )
        return found

    @property
    def _kind(self) -> Any:
        """The class of the table."""
        return LogisticEstimates if self.levels else PoissonEstimates

    # what is said ---------------------------------------------------------------------------------------------------------

    def _assumptions(self, hidden: list[int]) -> list[str]:
        """What the intervals rest on, and their price."""
        own, s = self.scored_family, self.sandwich
        shown = [j for j in range(len(self._half)) if j not in hidden]
        said = [] if self.weighted else self._far_assumption(shown)
        if isinstance(own, Counts):
            said += cut_assumption(own, s.noise_variance[shown] / np.diag(s.covariance)[shown])
            if not self.weighted:
                said += full_assumption(self.full_bias[shown] / self._half[shown])
        return said

    def _far_assumption(self, shown: list[int]) -> list[str]:
        """What the intervals of coefficients rest on where records are down-weighted, and what they would be without it."""
        said = []
        if isinstance(self.family, Counts):
            price = float((1 + self.worst_bias[shown] / (self._half + self.bias)[shown]).max(initial=1.0))
            rest = [j for j in shown if not self._counted[j]]
            paid, others = (
                [self.design.names[j] for j in own] for own in ([j for j in rest if self._beyond[j] > 0], rest)
            )
            said = less_assumption(price, paid, others, odd=self.odd > 0)
        far = [j for j in shown if self._weighted[j] > 0 and self._counted[j]]
        if not far:
            return said or [safe_words(AT_RISK)]
        worst = float(self._public("bound")[0] * self._public("less")[0]) * self._records * self._lengths
        price = max(float((self._half[j] + worst[j]) / (self._half[j] + self.bias[j])) for j in far)
        names, squared = [self.design.names[j] for j in far], self.family == LOGIT
        return [assumed_words(names, TAIL_RESIDUAL, price, squared=squared), *said]

    def _reasons(self, *, told: bool = True) -> str:
        """Why coefficients are not answered: bounds, what moves with them, levels without one of the outcomes. told: whether others are."""
        names = self.design.names
        parts = [self._too_wide(place - 1) for place in self._wide]
        for other in dict.fromkeys(self._tied.values()):
            parts.append(collinear_text([names[j] for j, with_ in self._tied.items() if with_ == other], names[other]))
        held = held_words(self.design, self.held.levels, *self._held_persons, told=told)
        # of a level that is held its records are said, and those with one outcome are no other cause
        named = {(one.column, one.name) for one in self.held.levels}
        quiet = [one for one in self.quiet if (one.count.column, one.count.level) not in named]
        return "; ".join([*parts, *held, *quiet_words(quiet)])
