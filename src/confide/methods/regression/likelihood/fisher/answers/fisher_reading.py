"""A release of Fisher scoring read as a table: which coefficients are answered, their intervals, what the others need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import nan, sqrt
from typing import Any, cast

import numpy as np

from confide._arrays import Array
from confide.aggregates.clusters.cluster_meat import independent_of
from confide.aggregates.scores.fisher_families import LOGIT, Counts
from confide.methods.regression.evidence.far_bounds import NEAR
from confide.methods.regression.evidence.needs import (
    alike_words,
    bounds_words,
    demand_words,
    flat_words,
    hidden_words,
    plain,
    tied_words,
    unseen_sd,
)
from confide.methods.regression.evidence.remarks import PlainSample, count_text, few_records
from confide.methods.regression.likelihood.fisher.answers.fisher_effects import MeanSlope, mean_slope
from confide.methods.regression.likelihood.fisher.answers.fisher_figures import AT_RISK, FisherFigures
from confide.methods.regression.likelihood.fisher.answers.fisher_levels import NearLevel, QuietLevel, Seen, quiet_words
from confide.methods.regression.likelihood.fisher.answers.fisher_needs import assumed_words, held_words, safe_words
from confide.methods.regression.likelihood.fisher.fisher_bound import TAIL_RESIDUAL
from confide.methods.regression.likelihood.fisher.fisher_counts import (
    counts_words,
    cut_assumption,
    full_assumption,
    full_words,
    less_assumption,
    less_words,
    too_far_words,
    wide_words,
)
from confide.methods.regression.likelihood.fisher.fisher_hidden import levels_of
from confide.methods.regression.likelihood.fisher.fisher_rounds import steps_of
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
from confide.methods.regression.likelihood.model_results import ModelEstimates
from confide.methods.regression.likelihood.poisson_results import PoissonEstimates
from confide.methods.regression.linear import legend
from confide.noise import keyed_generator

__all__ = ["FisherReading"]


# A bias above this part of the half-width makes a coefficient no answer.
_TOO_MUCH = 0.5
# And so many of those where the line says more than half of the largest count.
_FULL_TOO_MUCH = 1.0
# The bounds that would do are named so much nearer than where records begin to move a coefficient: the next release has ranges of its own.
_SAFE = 0.8
# Of counts: an assumption on records that are off the line whose price is more than so many widths is none.
_FAR_TOO_MUCH = 5.0
# Bounds nearer than so many sds are not named as far ones, and no more than so many features.
_NEAR, _NAMED = 3.5, 3
# A line so steep is answered only after four steps of which the last was short; and a last step beyond its noise is none.
_STEEP, _SHORT_STEP, _TRAVELLED = 3.0, 0.75, 4.0
# A coefficient that is correlated as much with one of a feature that reaches too far moves with it.
_TIED = 0.2


@dataclass(frozen=True, eq=False)
class FisherReading(PlainSample, FisherFigures):
    """One release read with one question: what is answered, and what is said."""

    # which coefficients are answered ------------------------------------------------------------------------------------

    @cached_property
    def quiet(self) -> list[QuietLevel]:
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
    def _seen(self) -> Seen:
        transform, s = self._public("transform"), self.sandwich
        told, back = transform @ self.held.basis, np.linalg.inv(transform)
        noise = told @ s.bread @ s.noise @ s.bread @ told.T
        surprise = back.T @ self.last.cross, self.last.sd_cross**2 * back.T @ back
        lines = self._public("line"), self._public("meat_line")
        information = self._information, self.last.sd_gram * back.T @ back
        return Seen(
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
        """Noisy numbers of records by distinct row of the matrix and outcome, (rows, 2), and their sd; None where none were released."""
        if "outcomes" not in self.release.statistics:
            return None
        noisy = self.release["outcomes"]
        return noisy.decode().reshape(-1, 2), sqrt(noisy.variance)

    @cached_property
    def _wide(self) -> list[int]:
        """Coefficients that records far out in wide bounds may move unseen."""
        own = np.where(self._at_risk, self._weighted, 0.0)
        much = own > _TOO_MUCH * self._half
        # the same far records are behind all that are counted by them: too much for one is an assumption too far for all; what a feature
        # pays for the ends of its own bounds is its own
        with_it = self._counted & (own > 0) if much.any() else np.zeros_like(much)
        return sorted({*(1 + j for j in self.far), *map(int, np.flatnonzero(much | with_it))})

    @cached_property
    def _apart(self) -> list[int]:
        """Coefficients that hang on a level that is held, and those that its records may move too far."""
        own = (j for one in self.held.levels for j in one.cell.places)
        moved = np.flatnonzero(self._from_held > _TOO_MUCH * self._half)
        return sorted({*own, *map(int, moved)})

    @cached_property
    def _tied(self) -> dict[int, int]:
        """Coefficients that move with one that records far out may move: by nobody knows how much, or by too much."""
        if not self._wide:
            return {}
        correlation = np.abs(self.sandwich.correlation()[:, self._wide])
        # what was counted moves others by a bound that is in their intervals; what lies too far to be counted has none
        unbounded = np.array([j - 1 in self.far for j in self._wide])
        moved = self._weighted > _TOO_MUCH * self._half
        moved[0] &= isinstance(self.family, Counts)
        return {
            j: self._wide[int(np.argmax(row))]
            for j, row in enumerate(correlation)
            if j not in self._wide and (moved[j] or (j and row[unbounded].max(initial=0.0) > _TIED))
        }

    # the table ----------------------------------------------------------------------------------------------------------

    def table(self) -> ModelEstimates:
        """The table of coefficients."""
        if self.sandwich.least <= 0:
            return self._points(
                "not_identified",
                f"{hidden_words([term.name for term in self.design.terms], self._information)} (the released information is not positive "
                "definite); ask for fewer terms, tighter bounds, more records or a larger budget",
            )
        reason = self._few_units or self._weak()
        if reason:
            return self._points("weak", reason)
        hidden = sorted({*self._wide, *self._tied, *self._apart, *(j for one in self.quiet for j in one.places)})
        if hidden and len({*hidden, 0}) > len(self.design.terms):
            return self._points("weak", self._reasons(told=False))
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
                    demand_words(names, [demand] * len(names), self._records),
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
                "the steps did not settle: the last one still moved the line by more than its noise"
                if not steep
                else f"the line is steep ({self.family.scale_words} with a standard deviation of {plain(spread)} over records) and the "
                "steps did not settle"
            )
            asked = "ask for more records, a larger budget, fewer terms, or tighter bounds where records lie far out"
            return "; ".join([*self._wide_counts, unsettled, asked])
        return self._moved_by_counts()

    @property
    def _wide_counts(self) -> list[str]:
        """The sentence on a bound of counts that lies far beyond those seen."""
        own = self.scored_family
        return wide_words(self.release, self.design, own, self._records) if isinstance(own, Counts) else []

    @property
    def _farthest(self) -> list[str]:
        """The features whose bounds reach farthest."""
        far = sorted((sds, self.design.terms[j].name) for j, (sds, _) in self.reach.items() if sds > _NEAR)
        return [name for _, name in far[: -_NAMED - 1 : -1]]

    def _moved_by_counts(self) -> str:
        """Why counts above the cut, or records that count less, leave no interval of a count's line; "" where there is one."""
        odd = self.odd_bias > _FAR_TOO_MUCH * (self._half + self._weighted)
        odd |= (self.odd > 0) & ~self._counted & (self._weighted > _TOO_MUCH * self._half)
        if odd.any() and not self._far_out.any():
            return less_words(float(self._public("less")[0]), self._farthest)
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
            status="partial" if hidden else "ok",
            reason=self._reasons() if hidden else "",
            covers="; ".join([self.release.plan.covers, *self._assumptions(hidden)]),
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
                ("Count (noisy)", count_text(count)),
                ("Steps", f"{steps} of Fisher scoring, and a last one"),
                ("Weights", f"at most {float(self._public('less')[0]):.2%} of the records count less"),
            ),
            legend=legend(self.design, self.release.plan.declared)[1:],
            design=self.design,
            nobs=float(count.decode()[0]),
            heading="weighted line: records far out in the features count less" if self.weighted else "",
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
        """What the intervals of coefficients rest on where records count less, and what they would be without it."""
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

    def _too_wide(self, j: int) -> str:
        """The sentence on the bounds of a feature."""
        term, (mean, sd) = self.design.terms[j], self._moments(j)
        back = np.linalg.inv(self._public("transform"))
        unseen = self.box.half[j] * unseen_sd(self._information, self.last.sd_gram * back.T @ back, j)
        if unseen:
            return flat_words(term.name, (term.low, term.high), (mean - NEAR * unseen, mean + NEAR * unseen))
        if j in self.far and not isinstance(self.family, Counts):
            enough, near = (mean - NEAR * sd, mean + NEAR * sd), NEAR
        elif self._beyond[1 + j] > 0 and not self._counted[1 + j]:
            # as far as a score may miss so much that the bound on its bias is what an answer may have
            part, missed = self.scored_family.score_part, float(self._beyond[1 + j])
            allowed = missed * _SAFE * _TOO_MUCH * float(self._half[1 + j] / self._weighted[1 + j])
            near = self.reach[j][0] * (part + allowed) / (part + missed)
            enough = (mean - near * sd, mean + near * sd)
        elif self._beyond[1 + j] > 0:
            # as far as a score is long before it counts less
            near = self.reach[j][0] * float(self._public("bound")[0] / self._public("ends")[j])
            enough = (mean - near * sd, mean + near * sd)
        else:
            ranges = "ranges" in self.release.statistics
            middle, half = (self.box.middle[j], self.box.half[j]) if ranges else (mean, sqrt(3) * sd)
            safe = _SAFE * AT_RISK * half
            enough, near = (middle - safe, middle + safe), safe / sd
        why = "a few records out there, which count less, could move its coefficient"
        return bounds_words(term.name, self.reach[j][0], (term.low, term.high), enough, near, why)

    def _reasons(self, *, told: bool = True) -> str:
        """Why coefficients are not answered: bounds, what moves with them, levels without one of the outcomes. told: whether others are."""
        names = self.design.names
        parts = [self._too_wide(place - 1) for place in self._wide]
        for other in dict.fromkeys(self._tied.values()):
            parts.append(tied_words([names[j] for j, with_ in self._tied.items() if with_ == other], names[other]))
        held = held_words(self.design, self.held.levels, *self._held_persons, told=told)
        # of a level that is held its records are said, and those with one outcome are no other cause
        named = {(one.column, one.name) for one in self.held.levels}
        quiet = [one for one in self.quiet if (one.count.column, one.count.level) not in named]
        return "; ".join([*parts, *held, *quiet_words(quiet)])
