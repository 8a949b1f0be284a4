"""What lines under a survey's design share: weights and public PSUs in a pass, the cut of weights, words of plans and tables.

A noisy histogram of weights says where these are cut (`cells/weighted_cells`), every statistic is one of persons in listed PSUs, and
intervals count
persons or PSUs as independent. Each way to a line states its own guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, log2, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Plan, Release, Source, Statistic
from confide.core.statistic import WrappedSource
from confide.core.units.subgroup import Subset
from confide.errors import PlanError
from confide.results.pages.content import Flag
from confide.schema import Categorical, CodedFrame, ModelMatrix, Schema, SurveyDesign
from confide.schema.survey import ASSUMPTION, NOT_COVERED, UNFORESEEN
from confide.sums.cells.cell_sums import Histogram
from confide.sums.cells.weighted_cells import CELLS, DISTANCE, Cap, CappedWeight, WeightCells, ended_words
from confide.sums.clusters.cluster_covariance import (
    FEW,
    LEAST,
    LEAST_DF,
    TruncationBias,
    fewest_behind,
    hidden_part,
    too_few_psus,
)
from confide.sums.clusters.psu_covariance import Listed, bits_for

#: The name of the histogram of weights.
WEIGHTS = "(weights)"
#: Of mu^2: that histogram; the meat of persons, and of PSUs.
WEIGHED, _PERSONS, _PSUS = Fraction(12, 100), Fraction(8, 100), Fraction(20, 100)
#: A sampling variance may be that part of the one with equal variances and independent persons; and sds of its noise that it is lifted by
#: at most on that account.
FLOOR, HIDDEN = 0.25, 3.0
# The sd of a score's coordinate in half-ranges, as `cells/weighted_cells` has it.
_SD = 0.25


@dataclass(frozen=True)
class SampleDesign:
    """How a sample was drawn, as passes see it. design: the schema's; weight, listed: its weights and public PSUs, where there are any."""

    design: SurveyDesign
    weight: CappedWeight | None
    listed: Listed | None

    @classmethod
    def of(cls, schema: Schema) -> SampleDesign:
        """From a schema with a design."""
        assert schema.design is not None
        weight = None if schema.design.weight is None else CappedWeight.named(schema.design.weight, schema)
        return cls(schema.design, weight, Listed.of(schema))

    @property
    def meat_share(self) -> Fraction:
        """Share of the budget."""
        return _PERSONS if self.design.psu is None else _PSUS

    def weights(self) -> Statistic:
        """The histogram of weights."""
        assert self.weight is not None
        return self.inside(Histogram(WeightCells(self.weight, CELLS)))

    def inside(self, statistic: Statistic) -> Statistic:
        """A statistic of those in listed PSUs."""
        return statistic if self.listed is None else Subset(statistic, self.listed)  # type: ignore[arg-type]

    def cut(self, weight: float) -> SampleDesign:
        """The same with weights cut there."""
        return replace(self, weight=None if self.weight is None else self.weight.at(weight))

    def cap(self, counts: NDArray[Any], sd: float, level: float, meat: float, coordinates: int) -> Cap:
        """Where weights are trimmed, from their noisy histogram.

        level: mu of the sum of scores for a record at its bound, a few SDs of a score; meat: mu of the meat, over what one person moves
        it by.
        """
        assert self.weight is not None
        edges = WeightCells(self.weight, CELLS).edges
        if self.design.cap == "full":
            return Cap(float(edges[0]), 0.0, max(float(counts.sum()), 1.0))
        noise = coordinates * (LEAST * _SD / level) ** 2
        hidden = hidden_part(self.design, meat / coordinates)
        return Cap.chosen(counts, sd, edges, float(self.weight.term.low), noise, 1, hidden)

    def bits(self, amount: Fraction) -> int:
        """How fine the meat is coded where the plan spends `amount` in all, as a square of mu."""
        return bits_for(sqrt(amount * self.meat_share))

    def practice(self, frame: Any) -> CodedFrame:
        """Simulated records in listed PSUs."""
        found = CodedFrame.checked(frame)
        if self.listed is None:
            return found
        inside = self.listed(np.stack([found.codes[name] for name in self.listed.columns]))
        return CodedFrame(found.schema, {name: own[inside] for name, own in found.codes.items()})

    # words of plans -----------------------------------------------------------------------------------------------------

    @property
    def alike(self) -> str:
        """What intervals take as independent."""
        own = self.design
        if own.psu is not None:
            within = f" within {own.strata}" if own.listed is not None and own.strata else ""
            return f"independent PSUs of {own.psu}{within}, {own.alike} (clipping of sums of larger or closer ones is corrected for)"
        return "independent persons" if own.deff is None else f"a declared design effect of {own.deff:g}"

    def warnings(self, meat: float, coordinates: int, outcome: float | None = None) -> list[str]:
        """Of a plan. meat: as in `cap`; outcome: as in `too_few`."""
        own = self.design
        assumed = [f"assumed: {ASSUMPTION}"] if own.weight is not None or own.listed is not None else []
        return [*too_few_psus(own, meat / coordinates, outcome=outcome), *assumed, NOT_COVERED]

    def notes(self, meat: float, coordinates: int, n: int | None, outcome: float | None = None) -> tuple[str, ...]:
        """Of a plan that was asked for n persons."""
        return (*too_few_psus(self.design, meat / coordinates, n, outcome=outcome), UNFORESEEN) if n else ()


def of_records(schema: Schema, design: ModelMatrix) -> ModelMatrix:
    """The design as rounds see it, which know records alone: no units, clusters or design of a survey."""
    return replace(design, schema=Schema({name: schema[name] for name in schema.names}, dataset=schema.dataset))


def meat_fineness(plan: Plan) -> tuple[int, float]:
    """(bits, mu over the 2^bits that one person moves the meat by) of a planned meat."""
    spend = plan.spend("meat")
    assert spend.noise_sd is not None
    moved = float(spend.sensitivity * spend.step) / (2 if plan.relation == "substitute" else 1)
    # of PSUs what their cut leaves out is charged besides
    bits = round(log2(moved))
    return bits, 2.0**bits / spend.noise_sd


class Surveyed(WrappedSource):
    """A source whose sums are over a survey, for rounds of records. of: says how each statistic is one."""

    def __init__(self, source: Source, of: Any) -> None:
        super().__init__(source)
        self._of = of

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        return self._source.aggregate(*(self._of.surveyed(one) for one in statistics))


def needs_terms(design: ModelMatrix, what: str) -> None:
    """Refuse a formula without terms, whose `what` (a mean, a share) a table has. `PlanError`."""
    if not design.terms:
        name, call = design.response.name, f"cf.tables.{what}s"
        asked = f"{name} ~ 1" if what == "mean" else name
        raise PlanError(
            f"{design.formula!r} has no term, and under a design a {what} is asked of {call}, "
            f'{call}("{asked}", ..., inference="population")'
        )


@dataclass(frozen=True, eq=False)
class OfUnits:
    """What sandwiches under a design have besides. factor: of the meat; free: degrees of freedom of C PSUs, or persons, in H strata;
    light: E omega^2/E omega."""

    factor: float = 1.0
    free: float = np.inf
    light: float = 1.0


@dataclass(frozen=True, eq=False)
class Read:
    """What a release of weighted sums says of its design. records: noisy number of persons."""

    release: Release
    records: float

    @property
    def _schema(self) -> Schema:
        return self.release.plan.declared

    @property
    def design(self) -> SurveyDesign:
        """As the schema says."""
        found = self._schema.design
        assert found is not None
        return found

    def _number(self, name: str, place: int) -> float:
        return float(np.asarray(self.release.public[name], dtype=np.float64)[place])

    @property
    def omega(self) -> tuple[float, float]:
        """(E omega, E omega^2)."""
        return (self._number("omega", 0), self._number("omega", 1)) if "omega" in self.release.public else (1.0, 1.0)

    @property
    def light(self) -> float:
        """E omega^2/E omega."""
        mean, second = self.omega
        return second / mean

    @property
    def lost(self) -> float:
        """The share of weight that trimming removes, with what noise may hide."""
        return self._number("cap", 1) if "cap" in self.release.public else 0.0

    @property
    def centred(self) -> bool:
        """Whether deviations were taken within strata."""
        return "meat_form" in self.release.public and bool(self._number("meat_form", 1))

    @cached_property
    def beyond(self) -> TruncationBias | None:
        """What the cut of PSU sums left out; None without PSUs."""
        ruler = self.release.public.get("meat_beyond")
        return None if ruler is None else TruncationBias.of(self.release["meat"], np.asarray(ruler, dtype=np.float64))

    @property
    def scale(self) -> float:
        """What sampling variances are taken times: a declared design effect, a public fraction, what the cut of PSU sums left out."""
        cut = 1.0 if self.beyond is None else self.beyond.factor
        return cut * (self.design.deff or 1.0) * (1.0 - (self.design.fraction or 0.0))

    @cached_property
    def known(self) -> float:
        """The PSUs that hold records, at least."""
        ruler = self.release.public.get("meat_beyond")
        if ruler is None:
            return inf
        return fewest_behind(self.release["meat"], np.asarray(ruler, dtype=np.float64))

    @property
    def few(self) -> str:
        """Why PSUs are too few for intervals, "" where they are not."""
        return FEW if self.known - 1 < LEAST_DF else ""

    def independent(self, centred: bool) -> tuple[float, float, float]:
        """(C, degrees of freedom, the factor of the meat) of C PSUs, or persons, in H strata.

        Degrees of freedom are C - H, and at most the PSUs that are known to hold records less one.
        """
        design, schema = self.design, self._schema
        persons = max(self._number("cap", 2) if "cap" in self.release.public else self.records, 2.0)
        if design.psu is None:
            return persons, persons - 1, persons / (persons - 1)
        column = None if design.strata is None else schema[design.strata]
        strata = len(column.levels) if isinstance(column, Categorical) else 1
        count = float(design.psu_count or max(persons / float(design.size or 1.0), 2.0))
        return count, max(min(count - strata, self.known - 1), 1.0), 1.0 if centred else count / (count - 1)

    def hidden(self, spread: Array, meat: Array, equal: Array, count: float) -> Hidden | None:
        """How much trimming of weights may move combinations of coefficients; None where no weight was trimmed.

        spread: coefficients per score; meat: the squared scores of persons; equal: the same with the variances of the model;
        count: the sum of omega. Both are brought to mean squares of scores among weights.
        """
        if not self.lost:
            return None
        over, error = self._number("cap", 3), self._number("cap", 4)
        own = count / self.light * spread @ meat @ spread.T, count * spread @ equal @ spread.T
        part = (DISTANCE * over / count) ** 2
        return Hidden((part * own[0], part * own[1]), (DISTANCE * error / count) ** 2 * _largest(*own))

    # how it is told -----------------------------------------------------------------------------------------------------

    @property
    def ended(self) -> str:
        """The sentence on weights that end far below their bound."""
        weight = self.design.weight
        if weight is None or WEIGHTS not in self.release.statistics:
            return ""
        return ended_words(self.release[WEIGHTS], CappedWeight.named(weight, self._schema))

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Of every table."""
        ended = (Flag("weight_bound_too_wide", self.ended),) if self.ended else ()
        always = (*ended, Flag("design_assumptions", f"assumed: {ASSUMPTION}"), Flag("design_exclusions", NOT_COVERED))
        if self.beyond is not None and self.beyond.words:
            told = f"PSUs are assumed to be {self.design.alike}; clipping of sums of larger or closer ones is corrected for"
            always = (*always, Flag("psu_totals_clipped", told + self.beyond.words))
        if not self.lost:
            return always
        capped = Flag(
            "weights_trimmed",
            f"weights above {self._number('cap', 0):.4g} are set to it, {self.lost:.2%} of all weight with what noise may hide. "
            f"Intervals are valid where the scores of these records average at most {DISTANCE:g} root mean squares",
        )
        return (capped, *always)

    @property
    def head(self) -> tuple[tuple[str, str], ...]:
        """Lines over the table."""
        own = self.design
        count, free, _ = self.independent(True)
        kind = "persons" if own.psu is None else f"PSUs of {own.psu}"
        within = ", within strata" if self.centred else ""
        told = [("Cov. type", f"linearized, {count:,.0f} {kind}{within}, {free:,.0f} degrees of freedom")]
        if own.weight is not None:
            most = self._number("cap", 0)
            told.append(("Largest weight", f"{most:.4g}" + (", capped" if self.lost else ", the bound of the schema")))
        return tuple(told)

    def reason(self, status: str, reason: str) -> str:
        """The reason with the sentence on weights, where there is no answer."""
        return f"{reason}; {self.ended}" if self.ended and status != "valid" else reason


@dataclass(frozen=True, eq=False)
class Hidden:
    """What trimming of weights may do.

    squares: a combination c of coefficients is moved by at most the root of the larger of c'H c, H of the two (k, k).

    error: the covariance with which that is known, (k, k).
    """

    squares: tuple[Array, Array]
    error: Array

    @property
    def lengths(self) -> Array:
        """What each coefficient may be moved by, (k,)."""
        return np.asarray(np.sqrt(np.max([np.maximum(np.diag(own), 0.0) for own in self.squares], axis=0)))


def _largest(robust: Array, equal: Array) -> Array:
    """The second matrix with the larger diagonal of both: a noisy meat may have none."""
    own = np.diag(equal)
    with np.errstate(all="ignore"):
        scale = np.where(own > 0, np.sqrt(np.maximum(np.diag(robust) / own, 1.0)), 0.0)
    return np.asarray(equal * np.multiply.outer(scale, scale))


class SurveyRead:
    """What readings of releases of weighted sums share: they say how the sample was drawn."""

    release: Release

    if TYPE_CHECKING:

        @property
        def _records(self) -> float: ...

    @cached_property
    def survey(self) -> Read:
        """What the release says of its design."""
        return Read(self.release, self._records)

    @property
    def _told(self) -> tuple[Flag, ...]:
        return self.survey.flags

    @property
    def _head(self) -> tuple[tuple[str, str], ...]:
        return self.survey.head


class OfPopulation:
    """What estimates under a design say in their title. drawn: the design in words."""

    drawn: str

    @property
    def title(self) -> str:
        return f"{super().title}, {self.drawn}"  # type: ignore[misc]
