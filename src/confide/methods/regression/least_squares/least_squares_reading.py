"""A release of score sums read as a regression table: which coefficients are answered, their intervals, what the others need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.limits import USUAL_INDEX
from confide.aggregates.scores.metric import Layout, factor_name
from confide.aggregates.scores.shrinkage import NoisySystem, choose_prior, wiener
from confide.methods.regression.evidence.far_bounds import NEAR, NOTED
from confide.methods.regression.evidence.left_out import CORRELATED
from confide.methods.regression.evidence.level_counts import base_levels, counted_levels
from confide.methods.regression.evidence.needs import (
    alike_words,
    bounds_words,
    demand_words,
    first_words,
    flat_words,
    hidden_words,
    left_out_words,
    level_needs,
    mostly,
    plain,
    tied_words,
    unseen_sd,
)
from confide.methods.regression.evidence.remarks import PlainSample, clipped_responses, count_text, few_records
from confide.methods.regression.least_squares.explained import Explained
from confide.methods.regression.least_squares.line_figures import LineFigures
from confide.methods.regression.linear import legend
from confide.methods.regression.scaling import coefficient_names, to_units
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.noise import keyed_generator
from confide.results.inference import student
from confide.results.pages.words import Flag

__all__ = ["LeastSquaresReading"]

_SUBSET_POINTS = Flag(
    "subset_points",
    "a smaller model read from this release has point estimates alone; release the smaller formula for its "
    "intervals, or take SSP, whose releases answer smaller models",
)

_UNLIMITED = Flag(
    "unlimited",
    "every record within the declared bounds counts in full, so that nothing is assumed about tails",
)

_TAIL_ASSUMPTION = Flag(
    "tail_assumption",
    "a record far out may count for less than it is, and records farther out than can be counted are taken to be "
    "rare; under Intervals stand this assumption and how much wider intervals are without it, by limit='none'",
)


@dataclass(frozen=True, eq=False)
class LeastSquaresReading(LineFigures, PlainSample):
    """One release read with one question: the table, and what it says."""

    def _too_wide(self, place: int, *, hidden: bool) -> str:
        """The sentence on a feature's bounds. hidden: its coefficient could not be told without limits either."""
        j = place - 1
        term, (mean, sd) = self.design.terms[j], self._moments(j)
        limits = not self.unlimited and j in self.far
        why = (
            "a few records out there could move its coefficient and no private count can see them"
            if limits
            else "noise grows with them"
        )
        enough = mean - NEAR * sd, mean + NEAR * sd
        unseen = self.box.half[j] * unseen_sd(self._gram(), self.sandwich.sd_gram * self._back @ self._back.T, j)
        if unseen:
            return flat_words(term.name, (term.low, term.high), (mean - NEAR * unseen, mean + NEAR * unseen))
        said = bounds_words(term.name, self.reach[j], (term.low, term.high), enough, NEAR, why)
        return f"{said}, or ask limit='none'" if limits and not hidden else said

    @cached_property
    def _back(self) -> Array:
        """B: z = B v, of the coordinates that were kept, (p, kept)."""
        return np.asarray(np.linalg.pinv(self._public("metric"))[:, : len(self._public("weights"))])

    def _gram(self) -> Array:
        """The released sums of z z', (p, p)."""
        return np.asarray(self._back @ self.sandwich.gram @ self._back.T)

    def _reasons(self, *, told: bool = True) -> str:
        """Why coefficients are not answered: bounds, rare levels, demand, what moves with a feature that reaches too far."""
        names, s, left = self.design.names, self.sandwich, self._unanswered
        parts = [self._too_wide(place, hidden=bool(s.demand[place] > 1)) for place in left.wide]
        parts.append(self._levels(demanding=bool(left.demanding), told=told))
        if left.demanding:
            numbers = [place - 1 for place in left.demanding if place]
            parts.append(alike_words([term.name for term in self.design.terms], self._gram(), numbers))
            demand = [float(s.demand[place]) for place in left.demanding]
            parts.append(demand_words([names[place] for place in left.demanding], demand, self._records))
        for other in dict.fromkeys(left.tied.values()):
            parts.append(tied_words([names[j] for j, with_ in left.tied.items() if with_ == other], names[other]))
        return "; ".join(part for part in parts if part)

    def _hidden(self) -> str:
        """The reason where the Gram matrix is not that of any records."""
        few = few_records(self.release["count"])
        wide = [] if few else [1 + j for j, reach in self.reach.items() if reach > NOTED]
        known = [self._too_wide(place, hidden=True) for place in wide]
        parts = [
            f"the released Gram matrix is not positive definite: {hidden_words([term.name for term in self.design.terms], self._gram())}",
            *known,
            self._levels(demanding=True),
            "ask for fewer terms, tighter bounds, more records or a larger budget",
        ]
        return "; ".join(part for part in parts if part)

    # how it is told; a survey says more ---------------------------------------------------------------------------------

    _what: ClassVar[str] = "linear regression"

    @property
    def _drawn_words(self) -> str:
        """How the records were drawn, for the title."""
        return ""

    # the table ----------------------------------------------------------------------------------------------------------

    def table(self) -> SharedEstimates:
        """The regression table."""
        if len(self.keep) < len(self.design.terms):
            return self._points(
                "weak",
                "a smaller model has point estimates alone, because the released robust covariance belongs to the full one; release the "
                "smaller formula for its intervals",
                (_SUBSET_POINTS,),
            )
        if not self.sandwich.positive:
            return self._points("not_identified", self._hidden())
        unanswered = self._unanswered.places
        if few := self._few_units:
            return self._points("weak", few)
        # an intercept stands or falls with the slopes
        usable = self.sandwich.demand <= 1
        if not mostly(self._groups, usable) or len(unanswered) == len(usable):
            return self._points("weak", self._reasons(told=False))
        return self._intervals(unanswered)

    @property
    def _few_units(self) -> str:
        """Why independent units are too few for intervals, "" where they are not."""
        return "" if self.counting is None else self._independent(self.sandwich.count).weak

    @property
    def _groups(self) -> list[list[int]]:
        """Places of coefficients that could be told: of each factor, and of each other term."""
        layout = Layout.of(self.design)
        groups = [*layout.factors, *((j,) for j in layout.numeric)]
        return [[1 + j for j in group if 1 + j not in self._apart] for group in groups]

    def _intervals(self, hidden: list[int]) -> SharedEstimates:
        s = self.sandwich
        covariance, df, records = s.covariance + self._unsure_cut, np.array(s.df), np.array(s.records)
        noise = np.maximum(np.diag(covariance) - s.alone(), 0.0)
        estimates, bias = np.array(s.estimates), self._number("kappa") * np.abs(s.rows @ s.delta) + self._cut_weights
        moved = self.left.bias(s, self._public("metric"), Layout.of(self.design).factors) if self.left else 0 * bias
        bias += moved
        estimates[hidden] = noise[hidden] = df[hidden] = bias[hidden] = nan
        covariance[hidden] = covariance[:, hidden] = nan
        explained = self.explained
        return self._made(
            names=self.design.names,
            estimates=estimates,
            covariance=covariance,
            df=df,
            sampling_df=records,
            noise_variance=noise,
            bias=bias if (bias > 0).any() else None,
            joint=s.law((self.release.drawn_sha256,)),
            status="partial" if hidden else "ok",
            reason=self._reasons() if hidden else "",
            covers="; ".join(
                part
                for part in (self.release.plan.covers, self._assumption(), self._allowed(moved, covariance, df, bias))
                if part
            ),
            flags=(_UNLIMITED if self.unlimited else _TAIL_ASSUMPTION,),
            facts=(self._limited(), *explained.facts),
            rsquared=explained.share,
            rsquared_interval=explained.interval,
        )

    @property
    def _cut_weights(self) -> Array | float:
        """The bias of a cut of weights, at most."""
        return 0.0

    @property
    def _unsure_cut(self) -> Array | float:
        """The covariance with which that is known."""
        return 0.0

    @cached_property
    def explained(self) -> Explained:
        """R squared and the residual standard deviation."""
        if self.left is not None:
            return Explained.nothing("levels left out")
        if "influence" not in self.release.statistics:
            return Explained.nothing("not built in clusters")
        response = self.design.response
        unit = float(response.high - response.low) / 2
        return Explained.of(self.sandwich, self.release, self.release.public, unit=unit)

    def _points(self, status: str, reason: str, flags: tuple[str, ...] = ()) -> SharedEstimates:
        names = coefficient_names(self.design, self.keep)
        unknown = np.full((len(names),) * 2, nan)
        return self._made(
            names=names,
            estimates=self._shrunken(),
            covariance=unknown,
            df=nan,
            noise_variance=unknown[0],
            status=status,
            reason=reason,
            flags=flags,
            facts=(self._limited(),),
        )

    def _made(self, *, flags: tuple[str, ...], facts: tuple[tuple[str, str], ...], **more: Any) -> SharedEstimates:
        count = self.release["count"]
        clipping, clipped = clipped_responses(self.release, float(count.decode()[0]))
        return SharedEstimates.of(
            self.release,
            response=self.design.response.name,
            target=f"{self._what} of {self.design.response.name} on {', '.join(more['names'])}, least squares{self._drawn_words}",
            flags=(*clipping, *flags, *self._told, *few_records(count)),
            facts=(*self._head, ("Count (noisy)", count_text(count)), *facts, *clipped),
            legend=legend(self.design, self.release.plan.declared)[1:],
            design=self.design,
            nobs=float(count.decode()[0]),
            **more,
        )

    def _shrunken(self) -> Array:
        """The line of the kept columns from the shrunken normal equations, in the data's units."""
        s, metric = self.sandwich, self._public("metric")
        columns = [0, *(1 + j for j in self.keep)]
        # theta = L phi: delta = M'^-1 (L phi - line)
        inside = np.linalg.solve(metric.T, np.eye(len(metric))[:, columns])
        basis, back = np.linalg.qr(inside)
        line = np.linalg.solve(metric.T, self._public("line"))
        kept, p = len(s.gram), len(metric)
        # what is left out adds nothing, for certain
        gram, cross = np.zeros((p, p)), np.zeros(p)
        gram[:kept, :kept], cross[:kept] = s.gram, s.cross
        start = basis.T @ line
        away = basis @ start - line
        system = NoisySystem(
            basis.T @ gram @ basis, basis.T @ (cross - gram @ away), s.sd_gram, s.sd_cross, s.s2, False
        )
        generator = keyed_generator(self.release.drawn_sha256, "points")
        psi, _ = wiener(system, choose_prior(system, generator))
        phi = np.linalg.solve(back, start + psi)
        matrix, shift = to_units(self.design, self.keep, self.box)
        return np.asarray(matrix[:, columns] @ phi + shift)

    # what is said ---------------------------------------------------------------------------------------------------------

    def _limited(self) -> tuple[str, str]:
        """Which of scores and leverages are limited, and where."""
        limit, cap = self._number("score_limit"), self._number("leverage_cap")
        top, highest, _ = map(float, self._public("largest"))
        typical = self._typical
        said = (
            [f"scores at {plain(limit / typical)} x typical (public maximum {plain(top / typical)} x)"]
            if limit < top
            else []
        )
        said += [f"leverages at {plain(cap / highest)} of their public maximum"] if cap < highest else []
        return "Limits", ", ".join(said) or "not limited"

    def _assumption(self) -> str:
        if self.unlimited:
            return "no score was limited: no assumption on tails"
        level = self.sandwich.sd_cross / self._number("score_limit")
        sampling = self._number("sampling")
        own, whole = (
            sqrt(sampling**2 + (limit * level) ** 2)
            for limit in (self._number("score_limit"), float(self._public("largest")[0]))
        )
        noted = [
            f"{self.design.terms[j].name} ({reach:.0f})"
            for j, reach in self.reach.items()
            if reach > NOTED and j not in self.far
        ]
        lumps = (
            f"; that next to no record lies far out in the bounds of {', '.join(noted)}, in brackets their reach in standard deviations"
            if noted
            else ""
        )
        return (
            f"assumed: beyond the last countable point tails fall at least like |s|^-{USUAL_INDEX:g}{lumps}; without "
            f"that (limit='none') intervals are {self._width(whole / own)}"
        )

    def _allowed(self, moved: Array, covariance: Array, df: Array, bias: Array) -> str:
        """What intervals allow for the records left out, with its price; "" for none."""
        if self.left is None:
            return ""
        half = student.quantile(0.025, df) * np.sqrt(np.diag(covariance)) + bias
        return (
            "of the levels left out: that residuals within them are as large as elsewhere and correlate with the features by at most "
            f"{CORRELATED:g}; for any correlation intervals would be at most {1 + float(np.nanmax(moved / half)):.2f} times as wide"
        )

    def _width(self, factor: float) -> str:
        """What intervals without limits would be."""
        wide = "about the same width" if factor < 1.1 else f"about {plain(factor)} times as wide"
        demand = self.sandwich.demand[self.sandwich.demand <= 1]
        growth = float(self._public("largest")[1]) / self._number("leverage_cap")
        return f"{wide}, and fewer coefficients may be answered" if (demand * growth > 1).any() else wide

    @property
    def _totals(self) -> tuple[Array, Array]:
        """Totals of z and their noise, (p,) and (p, p); nothing of what was left out."""
        s = self.sandwich
        back = np.linalg.inv(self._public("metric"))[:, : len(s.gram)]
        noise = s.sd_gram**2 / 2 * (float(s.axis @ s.axis) * np.eye(len(s.gram)) + np.outer(s.axis, s.axis))
        return back @ s.gram @ s.axis, back @ noise @ back.T

    def _levels(self, *, demanding: bool, told: bool = False) -> str:
        """What a reason says of rare levels. demanding: whether noise hides coefficients, so that the rarest level matters; told: whether
        some are answered.
        """
        counts = counted_levels(self.design, self._totals, box=self.box, keep=self.keep)
        base = base_levels(self.design)
        if self.left is None:
            return level_needs(counts, base, self._records, demanding=demanding)
        names = self._names_left(base)
        counts = [one for one in counts if f"{one.column}[{one.level}]" not in names]
        first = [column for column, level in base.items() if f"{column}[{level}]" in names]
        parts = [
            left_out_words(names, list(self.left.counts), list(self.left.sds), list(self.left.enough), told=told),
            first_words(first) if first else "",
            level_needs(counts, base, self._records, demanding=demanding),
        ]
        return "; ".join(part for part in parts if part)

    def _names_left(self, base: Mapping[str, str]) -> list[str]:
        """Levels left out as a sentence names them: "region[west]", "member = 1", "region[west]:age[old]"; base: as `base_levels`."""
        names, layout = [], Layout.of(self.design)
        for place, cell in self.left.cells if self.left else ():
            own = [self.design.terms[j] for j in layout.factors[place]]
            column = own[0].columns[0]
            if own[0].plain is not None:
                names.append(f"{column} = {cell}")
            elif cell:
                names.append(own[cell - 1].name.replace("[T.", "["))
            else:
                names.append(
                    f"{column}[{base[column]}]" if column in base else f"the first level of {factor_name(own[0])}"
                )
        return names
