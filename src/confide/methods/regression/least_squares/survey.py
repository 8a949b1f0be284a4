"""Least squares of a population from a sample with a design: weights, strata and PSUs.

Estimates argmin sum over the population of (y - z'theta)^2, from records that count by their weights: sum w v r = 0. With trimmed
weights it is the root of these, which is off by A^-1 sum (w - W)+ v r. That is at most e/(1 - e) times the sum of omega times
`DISTANCE` root mean
squares of a score. There e is the lost share of weight with what noise may hide (`cells/weighted_cells`). Every interval
is widened by that.

Guarantee: mu-GDP, add-remove or substitute (`survey_sums`).

Interval: Student t with a sandwich covariance whose meat is that of persons, or of PSUs, within strata over public lists: R's `svyglm`
without noise. Degrees of freedom are at most PSUs less strata. Source: Fuller 1975; Binder 1983; the trimming as for `cf.tables.means`.

Located records by a bounded weight: least squares of a survey as least squares of records that are scaled.

A record at (v, r) that counts by omega = min(w, W)/W in [0, 1] counts as one at (sqrt(omega) v, sqrt(omega) r). Its part of A is then
omega v v', that of b and of the scores omega v r, that of q omega r^2. Maps of located records state bounds that hold for ANY v and r,
since what they code is limited to its bound. So each has the same sensitivity with weights as without; W may come from earlier noisy
numbers. A record without a weight counts as nothing. A weight is a function of the person's own record, by assumption
(`schema.survey`).

LongScores and LongFeatures are `LimitedScores` and `LimitedFeatures` in any number of steps, for numbers that are R's to the eighth
digit. The meat of PSUs fixes how far one person moves it, and with that how finely a person is coded. Source: weighted least squares
and its estimating equations (Binder 1983); the bounds of `methods/regression/sums/scores`.

The rounds of least squares under a survey's design: weights, the public PSUs, and the meat of persons or PSUs.

Before the rounds a noisy histogram of weights says where these are trimmed (`cells/weighted_cells`). Then every sum of the rounds is
over records that are scaled by the root of omega = min(w, W)/W (`survey`). The meat is that of `clusters/psu_covariance`, at limits
that begin at three standard deviations and grow where its noise allows (`clusters/cluster_covariance`), until no PSU is limited.

Guarantee: mu-GDP, add-remove or substitute: that of `draw`, whose bounds hold for any coordinates and residuals, hence for scaled ones;
one cell of the histogram moves by 1; the meat states its own. Weights, strata and PSUs are assumed to follow from the person's own
record, which plans and results print. Sources: the sources of `draw`; Binder 1983.

A release of a survey's regression read as a table: the meat of persons or PSUs, trimming of weights, calibration to public margins.

Calibration. Take public numbers of persons by the levels of every column of an additive formula. Then the mean of the response is
Xbar'beta, Xbar the population's mean row. This is the generalized regression estimator. Its variance is Xbar'V Xbar with the sandwich V
about the regression's own residuals, as R's `calibrate` has it (raking is the same to first order). It costs nothing. Source: Deville,
Sarndal 1992.

Xbar'beta is the intercept of the same regression over columns less their population means. So it has the variance and the degrees of
freedom of that coefficient. With u = A^-1 C' Xbar its sampling variance is u'Mu, and the noise in it has the variance `sd`^2 |u|^4.
Entries of M have noise of one SD on the diagonal, 1/sqrt(2) of it and twice off it. Satterthwaite's df is 2 V^2/(that + 2
(u'Mu)^2/records).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import later
from confide.core import (
    Allowance,
    BudgetItem,
    Event,
    Gram,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.core.events import leaves
from confide.core.exact import digest
from confide.core.statistic import MapOver
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.r_squared import RSquared
from confide.methods.regression.evidence.sandwich import Sandwich
from confide.methods.regression.evidence.sparse_levels import smallest_level
from confide.methods.regression.least_squares.draw import (
    PASSES,
    MiddleMatrixAt,
    RoundState,
    ScoreStatistics,
    ScoreWeights,
    run_rounds,
)
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.regression.least_squares.rounds import LeastSquaresRounds
from confide.methods.regression.least_squares.sums import Layout, Limits
from confide.methods.regression.linear_estimates import SharedEstimates, kept
from confide.methods.regression.reference import least_squares
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores
from confide.methods.regression.sums.whitened_rows import Frame, Located, LocatedRows
from confide.methods.regression.survey_scores import (
    FLOOR,
    HIDDEN,
    WEIGHED,
    WEIGHTS,
    Hidden,
    OfPopulation,
    OfUnits,
    SampleDesign,
    Surveyed,
    SurveyRead,
    meat_fineness,
    needs_terms,
    of_records,
)
from confide.results import check_alpha
from confide.results.inference import simulated_null
from confide.results.population_totals import CALLS, public_margins
from confide.schema import Categorical, ModelMatrix, Schema, SurveyDesign
from confide.sums.cells.weighted_cells import (
    CELLS,
    CappedWeight,
    WeightCells,
    hides,
    moments_of_omega,
    places_of_weights,
)
from confide.sums.clusters.cluster_covariance import LEAST, Limits as PsuLimits, Sampled, unit_caps
from confide.sums.clusters.psu_covariance import PersonCovariance, PsuCovariance
from confide.sums.coding import BITS, LongRows, round_within
from confide.sums.columns import codes_of, columns_of


class _Long(LongRows):
    """A map of `longest` steps."""

    @property
    def stated(self) -> tuple[int, ...]:
        return (self.longest,)

    @property
    def _whole(self) -> float:
        """Steps in the bound, with room for rounding."""
        return self.longest - sqrt(self.width) / 2 - 1


@dataclass(frozen=True)
class LongFeatures(_Long, LimitedFeatures):
    """One record as sqrt(w) v in integer steps, w = min(1, cap/|v|^2): |m|^2 <= longest^2."""

    longest: int = 1 << BITS
    kind: ClassVar[str] = "long features"

    @property
    def steps(self) -> float:  # type: ignore[override]
        """Integer steps in one unit of v."""
        return self._whole / sqrt(self.cap)

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            return round_within(records.v * self._factor(records), self.longest**2)


@dataclass(frozen=True)
class LongScores(_Long, LimitedScores):
    """One record as limit(v r, R)/R in `longest` steps less room for rounding: |m|^2 <= longest^2."""

    longest: int = 1 << BITS
    kind: ClassVar[str] = "long scores"

    @property
    def steps(self) -> float:
        """Integer steps in one unit of a score."""
        return self._whole / self.limit

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            return round_within(records.v * self._factor(records, self._whole), self.longest**2)


@dataclass(frozen=True)
class ByWeight(MapOver):
    """A map of located records, each scaled by the root of its weight; weight: None for a design without."""

    map: LocatedRows
    weight: CappedWeight | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.map, self.weight)

    @cached_property
    def digest(self) -> str:
        return digest(["located, by weight", self.map.digest, None if self.weight is None else self.weight.digest])

    @property
    def cells(self) -> int:
        """Of a map to cells."""
        return int(self.map.cells)  # type: ignore[attr-defined]

    def of_length(self, longest: int) -> ByWeight:
        """The same with scores of so many steps (`LongScores`)."""
        assert isinstance(self.map, LongScores)
        return replace(self, map=replace(self.map, longest=longest))

    @property
    def longest(self) -> int:
        """The bound of a score, in steps (`LongScores`)."""
        assert isinstance(self.map, LongScores)
        return self.map.longest

    def __call__(self, codes: Array) -> Array:
        own = codes[: len(self.map.columns)]
        if self.weight is None:
            return self.map(own)
        omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
        records = self.map.located(own)
        root = np.sqrt(omega)
        if records.keep is not None:
            keep = records.keep if keep is None else keep & records.keep
        return self.map.of(Located(records.v * root, records.r * root, keep))


#: Steps of the rows of A, whose products are exact in short blocks, and of b.
FINE_FEATURES, FINE_SCORES = 1 << 23, 1 << 26


@dataclass(frozen=True)
class Known:
    """What a draw knows before its rounds. mu: of the meat, over what one person moves it by."""

    weighing: ScoreWeights = field(default_factory=ScoreWeights)
    mu: float = 1.0


@dataclass(frozen=True)
class SurveySums(ScoreStatistics):
    """drawn: how the sample was drawn; bits: how fine the meat is; known: during a draw. Made by `SurveySums.of`."""

    drawn: SampleDesign = field(kw_only=True)
    bits: int = field(default=40, kw_only=True)
    known: Known = field(default=Known(), kw_only=True)

    @classmethod
    def of(cls, schema: Schema, design: ModelMatrix, limit: str) -> SurveySums:
        """From a schema with a design."""
        return cls(of_records(schema, design), limit, drawn=SampleDesign.of(schema))

    def within(self, amount: Fraction) -> SurveySums:
        """The same with a meat as fine as the budget allows."""
        return replace(self, bits=self.drawn.bits(amount))

    # plan -----------------------------------------------------------------------------------------------------------

    def _shares(self) -> tuple[dict[str, Fraction], dict[str, Fraction], dict[str, Fraction]]:
        common, long, short = super()._shares()
        first = {} if self.drawn.weight is None else {WEIGHTS: WEIGHED}
        rest = (1 - self.drawn.meat_share - sum(first.values())) / (1 - common.pop("meat"))
        scaled = [{name: rest * share for name, share in own.items()} for own in (common, long, short)]
        return {**first, **scaled[0], "meat": self.drawn.meat_share}, scaled[1], scaled[2]

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        made = self._records(relation)
        found = {} if self.drawn.weight is None else {WEIGHTS: self.drawn.weights()}
        found |= {name: self.surveyed(one) for name, one in made.items()}
        return found | {"meat": self.drawn.inside(self._meat())}

    def _records(self, relation: str) -> dict[str, Statistic]:
        """What the rounds ask, of records, but the meat."""
        made = {name: one for name, one in super()._statistics(relation).items() if name != "meat"}
        made |= dict.fromkeys(("gram", "short gram"), Gram(LongFeatures(self.design, longest=FINE_FEATURES)))
        return made | dict.fromkeys(("cross", "short cross"), Total(LongScores(self.design, longest=FINE_SCORES)))

    def _explaining(self) -> dict[str, Statistic]:
        return {}

    def _meat(self) -> PersonCovariance | PsuCovariance:
        own = self.drawn
        scores = ByWeight(LongScores(self.design), own.weight)
        return (
            PersonCovariance(scores, self.bits)
            if own.design.psu is None
            else PsuCovariance(scores, own.listed, self.bits, caps=(1, 1))
        )

    def surveyed(self, statistic: Any) -> Statistic:
        """A statistic of records as one of persons by weight, in listed PSUs; a meat has its weights already."""
        if isinstance(statistic, PersonCovariance | PsuCovariance) or not isinstance(statistic.map, LocatedRows):
            return self.drawn.inside(statistic)
        return self.drawn.inside(replace(statistic, map=ByWeight(statistic.map, self.drawn.weight)))

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        own = self._planned(plan)
        plan = replace(plan, statistics=own._records(plan.relation) | {"meat": own._meat()})
        weight = self.drawn.weight
        if weight is None:
            return run_rounds(own, Surveyed(source, own), plan, meter, ScoreWeights())
        (total,) = source.aggregate(self.drawn.weights())
        noisy = meter.draw(WEIGHTS, total)
        counts, sd = noisy.decode(), sqrt(noisy.variance)
        spend = plan.spend("cross")
        assert spend.noise_sd is not None
        level = float(spend.sensitivity * spend.step) / spend.noise_sd
        cap = own.drawn.cap(counts, sd, level, own.known.mu, len(self.design.terms) + 1)
        mean, second = moments_of_omega(
            counts, sd, WeightCells(weight, CELLS).edges, float(weight.term.low), cap.weight
        )
        # the few that may lie beyond what is seen count whole, or the limit of scores would cut what the cap left
        weighing = ScoreWeights(mean, second / mean, LEAST if hides(counts, sd) else 0.0)
        own = replace(own, drawn=own.drawn.cut(cap.weight), known=replace(own.known, weighing=weighing))
        found = run_rounds(own, Surveyed(source, own), plan, meter, weighing)
        return found | {
            "cap": np.array([cap.weight, cap.lost, cap.persons, cap.over, cap.error]),
            "omega": np.array([mean, second]),
        }

    def _planned(self, plan: Plan) -> SurveySums:
        """With a meat as fine as the plan says."""
        bits, mu = meat_fineness(plan)
        return replace(self, bits=bits, known=Known(mu=mu))

    def meat_level(self, sd: float) -> float:
        wide = 1.0 if self.drawn.design.psu is None else 2 * self._sampled(1.0).spread(0.0)
        return 2.0**self.bits / sd / max(wide, 1.0)

    def _sampled(self, count: float) -> Sampled:
        """count: the noisy sum of omega."""
        own = self.known.weighing
        return Sampled(max(count / own.mean, 1.0), own.mean, own.mean * own.heavy, 1, self.drawn.design)

    def meat_at(
        self, planned: Statistic, frame: Frame, limits: Limits, standing: RoundState, top: float
    ) -> MiddleMatrixAt:
        assert isinstance(planned, PersonCovariance | PsuCovariance)
        unit = limits.scale * sqrt(standing.metric.size)
        p = len(standing.metric.weights)
        own = PsuLimits.of(
            self._sampled(standing.count),
            self.known.mu / p,
            longest=max(top / unit, 1.0),
            centred=self.drawn.listed is not None,
        )
        person = top if own.whole else min(max(limits.meat, own.person * unit), top)
        whole = max(own.psu * unit, person)
        scores = ByWeight(LongScores(self.design).at(frame, person), self.drawn.weight)
        if isinstance(planned, PsuCovariance):
            statistic: PersonCovariance | PsuCovariance = planned.at(
                scores, whole / person, own.centred, unit_caps(self.drawn.design, self._sampled(standing.count).persons)
            )
        else:
            statistic = planned.at(scores)
        facts = {"meat_form": np.array([float(statistic.longest), float(own.centred), whole])}
        if isinstance(statistic, PsuCovariance):
            facts["meat_beyond"] = statistic.ruler
        limits = replace(limits, meat=person, cut=0.0 if own.whole else limits.cut)
        return MiddleMatrixAt(statistic, limits, facts)


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


@dataclass(frozen=True, eq=False, repr=False)
class SurveyEstimates(OfPopulation, SharedEstimates):
    """Coefficients of a population; `calibrate` gives the response's mean at public margins.

    Parameters
    ----------
    hidden : (array, array), optional
        Trimming of weights may move a combination c of coefficients by the root of the larger of c'H c, H of the two matrices. None
        where no weight was trimmed.
    unsure : array or float
        The covariance with which that is known.
    sandwich : Sandwich, optional
        Of the coefficients.
    kappa : float
        The part of each that limits of scores may move it by, of what the last round did.
    drawn : str
        The design in words.
    """

    hidden: tuple[Array, Array] | None = None
    unsure: Array | float = 0.0
    sandwich: Sandwich | None = None
    kappa: float = 0.0
    drawn: str = ""

    def calibrate(self, totals: Any, *, alpha: float = 0.05) -> pd.DataFrame:
        """Estimate the mean of the response and its total at public margins.

        Parameters
        ----------
        totals : mapping or path
            Column -> level -> number of persons in the population, for every column of the formula, or a CSV file of column, level and
            number. The numbers of each column have the same sum.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Rows "mean" and "total"; columns estimate, std_err, df and the interval.

        Raises
        ------
        PlanError
            The formula is not a sum of categorical columns, or there are other levels.
        NoResult
            Coefficients are not answered.
        """
        assert self.design is not None
        margins = public_margins(totals)
        row = _mean_row(self.design, margins)
        if self.status != "valid" or self.sandwich is None:
            raise NoResult(
                f"the status is {self.status!r}, and a calibrated mean needs every coefficient: {self.reason}"
            )
        # the coefficient that this combination is in recentred columns
        own = replace(self.sandwich, rows=row[None, :] @ self.sandwich.rows, shift=row[None, :] @ self.sandwich.shift)
        estimate, df = float(row @ self.estimates), float(own.df[0])
        error = sqrt(float(own.variances[0]) + float(np.sum(np.outer(row, row) * self.unsure)))
        half = float(simulated_null.quantile(check_alpha(alpha) / 2, df)) * error + self.kappa * abs(
            float((own.rows @ own.delta)[0])
        )
        if self.hidden is not None:
            half += sqrt(max(float(row @ each @ row) for each in self.hidden))
        size = sum(next(iter(margins.values())).values())
        mean = np.array([estimate, error, df, estimate - half, estimate + half])
        scale = np.array([1.0, 1.0, 1.0 / size, 1.0, 1.0]) * size
        named = ("estimate", "std_err", "df", "ci_low", "ci_high")
        return pd.DataFrame([mean, mean * scale], index=["mean", "total"], columns=list(named))


def _mean_row(design: Any, margins: Mapping[str, Mapping[str, float]]) -> Array:
    """The population's mean row of an additive formula of categorical columns, (coefficients,)."""
    used = columns_of(*design.terms)
    odd = [term.name for term in design.terms if len(term.columns) > 1]
    odd += [name for name in used if not isinstance(design.schema[name], Categorical)]
    if odd:
        raise PlanError(
            f"margins settle a sum of categorical columns, as in 'y ~ sex + region', and {design.formula!r} has {odd[0]!r}",
            "release that formula, with an integer column declared as Categorical",
        )
    if set(used) != set(margins):
        raise PlanError(
            f"margins name the columns of {design.formula!r}, {', '.join(used)}, got {', '.join(margins)}", f"{CALLS}"
        )
    for name, own in margins.items():
        if set(own) != set(design.schema[name].levels):
            raise PlanError(
                f"margins of {name!r} name its levels, {', '.join(design.schema[name].levels)}, got {', '.join(own)}",
                f"{CALLS}",
            )
    first = {name: design.schema[name].levels[0] for name in used}
    base = design.matrix(pd.DataFrame([first]))[0]
    row = base.copy()
    for name, own in margins.items():
        size = sum(own.values())
        levels = pd.DataFrame([{**first, name: level} for level in own])
        row += np.array(list(own.values())) / size @ (design.matrix(levels) - base)
    return np.asarray(row)


@dataclass(frozen=True, eq=False)
class DesignSandwich(OfUnits, Sandwich):
    """A sandwich over C PSUs, or persons, in H strata. free: C - H."""

    @property
    def sampling(self) -> Array:
        k = self.spread
        robust = self.factor * np.einsum("ij,jk,ik->i", k, self.whole_meat, k)
        # noise may leave almost nothing of a meat in some direction
        least = self.floor * self.light * self.s2 * np.einsum("ij,jk,ik->i", k, self.gram, k)
        hidden = HIDDEN * self.factor * self.sd_meat * (k**2).sum(axis=1)
        return np.asarray(np.maximum(robust, np.minimum(least, np.maximum(robust, 0.0) + hidden)))

    def alone(self, factor: float | None = None, light: float = 1.0) -> Array:
        return super().alone(self.factor if factor is None else factor, self.light)

    @property
    def records(self) -> Array:
        return np.minimum(super().records, max(self.free, 1.0))


class SurveyReading(SurveyRead, LeastSquaresReading):
    """A release of weighted sums."""

    _what: ClassVar[str] = "linear regression"
    _compared: ClassVar[bool] = False

    @property
    def _typical(self) -> float:
        return super()._typical * self.survey.light

    def _maps(self, cap: float, limit: float) -> tuple[LimitedFeatures, LimitedScores]:
        features = LongFeatures(self.design, cap=cap, longest=FINE_FEATURES)
        return features, LongScores(self.design, limit=limit, longest=FINE_SCORES)

    @property
    def _few_units(self) -> str:
        return self.survey.few

    @cached_property
    def sandwich(self) -> Sandwich:
        base = super().sandwich
        longest, centred, _ = self._public("meat_form")
        noisy, kept = self.release["meat"], len(base.gram)
        steps = LongScores(self.design, limit=self._number("meat_limit"), longest=int(longest)).steps
        count, free, factor = self.survey.independent(bool(centred))
        own = {each.name: getattr(base, each.name) for each in fields(base)}
        own |= {
            "meat": noisy.decode()[:kept, :kept] / steps**2,
            "sd_meat": sqrt(noisy.variance) / steps**2,
            "units": count,
            "floor": FLOOR,
        }
        return DesignSandwich(**own, factor=factor * self.survey.scale, free=free, light=self.survey.light)

    @cached_property
    def _cut(self) -> Hidden | None:
        s = self.sandwich
        return self.survey.hidden(s.spread, s.meat, s.s2 * s.gram, s.count)

    @property
    def _cut_weights(self) -> Array | float:
        return 0.0 if self._cut is None else self._cut.lengths

    @property
    def _unsure_cut(self) -> Array | float:
        return 0.0 if self._cut is None else self._cut.error

    @cached_property
    def explained(self) -> RSquared:
        return RSquared.nothing("not built under a design")

    # how it is told ---------------------------------------------------------------------------------------------------

    @property
    def _drawn_words(self) -> str:
        return f", {self.survey.design.words}"

    def _made(self, **more: Any) -> SharedEstimates:
        more["reason"] = self.survey.reason(more["status"], more.get("reason", ""))
        made = super()._made(**more)
        own = {each.name: getattr(made, each.name) for each in fields(made) if each.init}
        own["drawn"] = self.survey.design.words
        if more["status"] != "valid":
            return SurveyEstimates(**own)
        return SurveyEstimates(
            **own,
            hidden=None if self._cut is None else self._cut.squares,
            unsure=self._unsure_cut,
            kappa=self._number("kappa"),
            sandwich=self.sandwich,
        )


# Of as many records what a level needs hardly hangs on their number.
_MANY = 1e5


@dataclass(frozen=True)
class SurveyLine:
    """The way to a line under the design of a schema."""

    schema: Schema
    design: ModelMatrix
    limit: str = "auto"

    def __post_init__(self) -> None:
        LeastSquaresRounds(self.schema, self.design, self.limit)  # refuses a line without an intercept
        needs_terms(self.design, "mean")

    @property
    def drawn(self) -> SurveyDesign:
        """How the sample was drawn."""
        assert self.schema.design is not None
        return self.schema.design

    @cached_property
    def _sums(self) -> SurveySums:
        return SurveySums.of(self.schema, self.design, self.limit)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of both branches."""
        sums = self._sums.within(allowance.amount)
        event, statistics = sums.plan(allowance)
        meat = next(one for one in leaves(event) if isinstance(one, BudgetItem) and one.name == "meat")
        told = sqrt(meat.mu_squared), len(self.design.terms) + 1
        *first, limits = sums.drawn.warnings(*told)
        warned = [*first, *self._for_margins(event), limits]
        return {
            "event": event,
            "statistics": statistics,
            "passes": PASSES + (WEIGHTS in statistics),
            "target": (
                f"linear regression of {self.design.response.name} on {self.design.features}, least squares, {self.drawn.words}"
            ),
            "intervals_for": (
                f"coefficients of the population's least-squares line for {self.design.response.name} clipped to its bounds, "
                f"linearized variances; {sums.drawn.alike}; privacy noise, unequal residual variances and nonlinear means allowed"
            ),
            "warnings": tuple(warned),
            "notes": sums.drawn.notes(*told, n),
        }

    def _for_margins(self, event: Event) -> list[str]:
        """What every level needs before the line can be calibrated, where it has levels alone."""
        if any(len(term.columns) > 1 or not term.binary for term in self.design.terms):
            return []
        gram = next(one for one in leaves(event) if isinstance(one, BudgetItem) and one.name == "gram")
        # twice that: whether a level is told follows from noisy counts
        least = ceil(2 * smallest_level(Layout.of(self.design), _MANY, sqrt(gram.mu_squared)))
        heavy = ", times the largest weight that counts over the mean one" if self.drawn.weight is not None else ""
        return [
            f"calibrate() needs every level estimated: about {least:,} records in each{heavy}; join rarer ones with others"
        ]

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The histogram of weights and the rounds."""
        return self._sums.draw(source, plan, meter)

    def table(self, release: Release, options: ResultOptions) -> SharedEstimates:
        """The table. A smaller model has point estimates without intervals."""
        return SurveyReading(release, options, self._sums.design, kept(self.design, options)).table()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Least squares without privacy, of simulated records in listed PSUs, by their weights."""
        own = self._sums.drawn
        return least_squares(own.practice(frame), self.design, by=None if own.weight is None else own.weight.term)

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """As of the line without a design."""
        return LeastSquaresRounds(self.schema, self.design).worst_pairs()
