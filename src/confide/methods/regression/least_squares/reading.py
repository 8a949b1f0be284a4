"""A release of score sums read as a regression table: which coefficients are answered, their intervals, what the others need.

The figures of a release of score sums: the line in corrections of where the rounds stood, and which coefficients are answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import nan, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Noisy
from confide.core.units.contributions import Independent
from confide.methods.regression.evidence.nested_models import ModelSums
from confide.methods.regression.evidence.normal_equations import coefficient_names, to_units
from confide.methods.regression.evidence.r_squared import RSquared
from confide.methods.regression.evidence.sample_size_advice import (
    TIED,
    IndependentRecords,
    MissingCoefficients,
    alike_words,
    collinear_text,
    count_text,
    few_records,
    hidden_words,
    left_out_words,
    level_needs,
    mostly,
    plain,
    records_needed_text,
    summary_text,
)
from confide.methods.regression.evidence.sandwich import FLOOR, ReleaseReader, Sandwich
from confide.methods.regression.evidence.sparse_levels import CORRELATED, SparseLevels, base_levels, counted_levels
from confide.methods.regression.least_squares.draw import decoded_sums, names_of
from confide.methods.regression.least_squares.sums import USUAL_INDEX, Layout
from confide.methods.regression.linear_estimates import SharedEstimates, legend
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores
from confide.methods.regression.sums.whitened_rows import NoisySystem, choose_prior, wiener
from confide.noise import keyed_generator
from confide.results.inference import simulated_null
from confide.results.pages.content import Flag
from confide.schema.formulas.terms import factor_name
from confide.sums.clusters.cluster_covariance import TruncationBias, independent_of
from confide.sums.coding import BOUND

# Rows of a unit that hardly hang together, each of a small weight, have a meat far below that of as many records.
_UNIT_FLOOR = 0.25


@dataclass(frozen=True, eq=False)
class Coefficients(ReleaseReader):
    """One release read with one question: the line in corrections delta of where the rounds stood, and back in the data's units."""

    keep: list[int]

    # what was released ------------------------------------------------------------------------------------------------

    def _drawn(self) -> tuple[Noisy, Noisy, Noisy]:
        gram, cross = names_of(self.release.statistics)
        return self.release[gram], self.release[cross], self.release["square"]

    def _maps(self, cap: float, limit: float) -> tuple[LimitedFeatures, LimitedScores]:
        """What A and b are sums of, under R_A and R."""
        return LimitedFeatures(self.design, cap=cap), LimitedScores(self.design, limit=limit)

    @cached_property
    def sandwich(self) -> Sandwich:
        """The sums in units of v and r, and the coefficients in those of the data."""
        drawn = self._drawn()
        cap, limit, reach = (self._number(name) for name in ("leverage_cap", "score_limit", "square_limit"))
        maps = self._maps(cap, limit)
        gram, cross, square = decoded_sums(drawn, *maps, reach)
        meat_limit = self._number("meat_limit")
        scores = LimitedScores(self.design, limit=meat_limit)
        metric, kept = self._public("metric"), len(self._public("weights"))
        gram, cross = gram[:kept, :kept], cross[:kept]
        matrix, shift = to_units(self.design, list(range(len(self.design.terms))), self.box)
        axis = np.linalg.solve(metric.T, np.eye(len(metric))[0])[:kept]
        count, beyond = max(float(axis @ gram @ axis), 1.0), TruncationBias.factor_of(self.release)
        return Sandwich(
            gram=gram,
            cross=cross,
            square=square,
            meat=beyond * self.release["meat"].decode()[:kept, :kept] / scores.steps**2,
            sd_gram=cap * _relative(drawn[0], maps[0].l2_squared),
            sd_cross=limit * _relative(drawn[1], sqrt(maps[1].l2_squared)),
            sd_square=reach**2 * _relative(drawn[2], BOUND),
            sd_meat=beyond * meat_limit**2 * _relative(self.release["meat"], BOUND),
            rows=matrix @ metric[:kept].T,
            shift=matrix @ self._public("line") + shift,
            axis=axis,
            s2=max(square / count, self._number("sigma") ** 2 / 4),
            weights=self._public("weights"),
            support=self._public("support"),
            cut=self._number("meat_cut"),
            units=None if self.counting is None else self._independent(count).units,
            floor=_UNIT_FLOOR if self._light else FLOOR,
        )

    @property
    def _light(self) -> bool:
        """Whether the meat may be far below that of as many records: units that count once with all rows."""
        own = self.counting
        return own is not None and own.rows == 1 and own.weighted and self.design.schema.cluster is None

    def _independent(self, count: float) -> Independent:
        found = independent_of(self.release, count)
        assert found is not None
        return found

    # which coefficients are answered ------------------------------------------------------------------------------------

    @cached_property
    def left(self) -> SparseLevels | None:
        """The levels whose records were left out."""
        public = self.release.public
        return SparseLevels.from_rows(self._public("left_out")) if "left_out" in public else None

    @cached_property
    def _apart(self) -> list[int]:
        """The places of the coefficients that need the records of a level of this kind."""
        matrix, _ = to_units(self.design, list(range(len(self.design.terms))), self.box)
        return self.left.needed_by(matrix, Layout.of(self.design)) if self.left else []

    @property
    def unlimited(self) -> bool:
        """Whether no record of the public box could have been limited."""
        score, leverage, _ = self._public("largest")
        return bool(self._number("score_limit") >= score and self._number("leverage_cap") >= leverage)

    @cached_property
    def _unanswered(self) -> MissingCoefficients:
        """Which coefficients are not answered, and why."""
        s, reaching = self.sandwich, [1 + j for j in self._reaching]
        away = [] if self.unlimited else reaching
        # far bounds of features of which nothing is limited are only a cause of large noise
        wide = [j for j in reaching if j in away or s.demand[j] > 1]
        correlation = np.abs(s.correlation()[:, away])
        tied = np.asarray((correlation > TIED).any(axis=1))
        others = [j for j in range(len(tied)) if j not in wide and j not in self._apart]
        return MissingCoefficients(
            wide=tuple(wide),
            demanding=tuple(j for j in others if s.demand[j] > 1 and not tied[j]),
            tied={j: away[int(np.argmax(correlation[j]))] for j in others if tied[j]},
            apart=tuple(self._apart),
        )

    @property
    def _typical(self) -> float:
        """The usual size of a score, of a record or a unit."""
        spread = 1.0 if self.counting is None else self.counting.spread
        return self._number("sigma") * sqrt(float(self._public("weights").sum())) * spread


def _relative(noisy: Noisy, bound: float) -> float:
    """The SD of the noise of a part over what one record can have at most."""
    return sqrt(noisy.variance) / bound


_SUBSET_POINTS = Flag(
    "submodel_points",
    "a smaller model read from this release has point estimates without intervals; release the smaller formula for its "
    "intervals, or take SSP, whose releases answer smaller models",
)

_UNLIMITED = Flag(
    "no_clipping",
    "every record within the declared bounds has full weight, so that nothing is assumed about tails",
)

_TAIL_ASSUMPTION = Flag(
    "tail_assumption",
    "extreme records may be down-weighted, and records too extreme to be counted are assumed to be rare. The note "
    "Intervals says how much wider intervals are without this assumption; the parameter limit with the value none does without it",
)


@dataclass(frozen=True, eq=False)
class LeastSquaresReading(Coefficients, IndependentRecords):
    """One release read with one question: the table, and what it says."""

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
        parts = [self._too_wide(place - 1) for place in left.wide]
        parts.append(self._levels(demanding=bool(left.demanding), told=told))
        if left.demanding:
            numbers = [place - 1 for place in left.demanding if place]
            parts.append(alike_words([term.name for term in self.design.terms], self._gram(), numbers))
            demand = [float(s.demand[place]) for place in left.demanding]
            parts.append(records_needed_text([names[place] for place in left.demanding], demand, self._records))
        for other in dict.fromkeys(left.tied.values()):
            parts.append(collinear_text([names[j] for j, with_ in left.tied.items() if with_ == other], names[other]))
        return "; ".join(part for part in parts if part)

    def _hidden(self) -> str:
        """The reason where the Gram matrix is not that of any records."""
        known = [] if few_records(self.release["count"]) else map(self._too_wide, self._reaching)
        parts = [
            f"the released Gram matrix is not positive definite: {hidden_words([term.name for term in self.design.terms], self._gram())}",
            *known,
            self._levels(demanding=True),
            "ask for fewer terms, more records or a larger budget",
        ]
        return "; ".join(part for part in parts if part)

    # how it is told; a survey says more ---------------------------------------------------------------------------------

    _what: ClassVar[str] = "linear regression"
    # whether its residual sum of squares is that of independent records, which models are compared by
    _compared: ClassVar[bool] = True

    @property
    def _drawn_words(self) -> str:
        """How the records were drawn, for the title."""
        return ""

    # the table ----------------------------------------------------------------------------------------------------------

    def table(self) -> SharedEstimates:
        """The regression table."""
        if len(self.keep) < len(self.design.terms):
            return self._points(
                "imprecise",
                "a smaller model has point estimates without intervals, because the released robust covariance belongs to the full one; "
                "release the smaller formula for its intervals",
                (_SUBSET_POINTS,),
            )
        if not self.sandwich.positive:
            return self._points("not_identified", self._hidden())
        unanswered = self._unanswered.places
        if few := self._few_units:
            return self._points("imprecise", few)
        # an intercept stands or falls with the slopes
        usable = self.sandwich.demand <= 1
        if not mostly(self._groups, usable) or len(unanswered) == len(usable):
            return self._points("imprecise", self._reasons(told=False))
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
        one_by_one = self._compared and not (hidden or self.counting or self.left)
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
            sums=partial(ModelSums.of_sandwich, s) if one_by_one else None,
            status="partial" if hidden else "valid",
            reason=self._reasons() if hidden else "",
            intervals_for="; ".join(
                part
                for part in (
                    self.release.plan.intervals_for,
                    self._assumption(),
                    self._allowed(moved, covariance, df, bias),
                )
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
    def explained(self) -> RSquared:
        """R squared and the residual standard deviation."""
        if self.left is not None:
            return RSquared.nothing("levels excluded")
        if "influence" not in self.release.statistics:
            return RSquared.nothing("not built in clusters")
        response = self.design.response
        unit = float(response.high - response.low) / 2
        return RSquared.of(self.sandwich, self.release, self.release.public, unit=unit)

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
        return SharedEstimates.of(
            self.release,
            response=self.design.response.name,
            target=f"{self._what} of {self.design.response.name} on {', '.join(more['names'])}, least squares{self._drawn_words}",
            flags=(*flags, *self._told, *few_records(count)),
            facts=(*self._head, ("n", count_text(count)), *facts),
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
            [
                f"scores clipped at {plain(limit / typical)} times the typical size (at most {plain(top / typical)} times by the bounds)"
            ]
            if limit < top
            else []
        )
        said += [f"leverages clipped at {plain(cap / highest)} of what the bounds allow"] if cap < highest else []
        return "Limits", ", ".join(said) or "not limited"

    def _assumption(self) -> str:
        if self.unlimited:
            return "no score was clipped: no assumption on tails"
        level = self.sandwich.sd_cross / self._number("score_limit")
        sampling = self._number("sampling")
        own, whole = (
            sqrt(sampling**2 + (limit * level) ** 2)
            for limit in (self._number("score_limit"), float(self._public("largest")[0]))
        )
        return f"assumed: tails of scores fall at least as s^-{USUAL_INDEX:g}; without it, intervals are {self._width(whole / own)}"

    def _allowed(self, moved: Array, covariance: Array, df: Array, bias: Array) -> str:
        """What intervals allow for the records left out, with its price; "" for none."""
        if self.left is None:
            return ""
        half = simulated_null.quantile(0.025, df) * np.sqrt(np.diag(covariance)) + bias
        return (
            "of the excluded levels: that residuals within them are as large as elsewhere. They correlate with the features by at most "
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
        """Totals of z and their noise, (p,) and (p, p), without the records that were excluded."""
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
            summary_text(first) if first else "",
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
