"""One forecast for every method, including third parties': its own draw and its own table, on scenarios, before anything is charged.

From each scenario (`confide.scenarios`) n records are drawn, as the number of times that each of its rows is among them. `Simulated`
sums them up exactly, in the statistics' own integers. The method draws through `seal` with simulated noise, as a release does, and
reads what it drew. So a forecast has no separate rules. It sees public facts alone: the schema, the method, the guarantee, and a number
of records. Numbers are rounded to two digits, because a forecast is a guess and must not differ between machines in its last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Gram, Method, OpaqueRelease, Plan, Source, Statistic, Total, leaves, seal
from confide.core.plan import BESIDE, Lazy, method_parameters
from confide.core.ranges import as_fine, fine_row
from confide.core.units.contributions import shown
from confide.core.units.privacy_unit import UNIT_ROW, WHOLE_ROW
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, Guarantee, PureDP
from confide.margins import MOST, rounded
from confide.noise import SimulatedNoise
from confide.results.base import BaseResult, Foreseen
from confide.scenarios import FAMILY, Columns, Scenario, scenarios, unstated, whole
from confide.schema import Categorical, Integer, ModelMatrix, Schema
from confide.schema.formulas.names import hidden, sides
from confide.schema.formulas.terms import Indicator, Term, factor_name
from confide.sums.blocks.record_block import Collected
from confide.sums.cells.cell_sums import Histogram
from confide.sums.integer_functions import Derived

#: Numbers of records of a forecast that none is given for.
SIZES = (1_000, 10_000, 100_000)
#: Scenarios for one number of records; and for each of three.
SCENARIOS, _OF_THREE = 48, 24
# An interval holds so much of the family.
_HOLDS = 0.98
# Fewer standard errors than so many say too little of where another one lies: it is between them with a chance of 1 - 2/13 from here on.
_TOLD = 12
# Columns of at most so many whole numbers are told apart by how many they are: most are spread over all of them.
_WHOLE = 20
# The chance that what is needed must give, and how closely it is found.
_EVEN, _CLOSE = 0.5, 1.2
# How often a row of a whole scenario stands there, on average.
_TIMES = 1_000
# Statistics of more numbers than these take too long to simulate.
_LARGEST = 1 << 18
_SEED = 20261122
# What is drawn in blocks, in an order, or from public records is not simulated from sums.
_WITHOUT = frozenset({"opaque", "positions", "public_table", "stream"})


# one run --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Simulated(Source):
    """A source of simulated records: codes of each column (rows,), and how often each row stands among the records (rows,)."""

    schema: Schema
    codes: dict[str, Array]
    counts: NDArray[np.int64]
    dataset: None = None
    rereadable: bool = True

    @classmethod
    def of(cls, scenario: Scenario, n: int, generator: np.random.Generator, together: int = 1) -> Simulated:
        """n records drawn from a scenario; together: so many of one unit, any of them."""
        codes, weights = scenario.codes, scenario.weights
        first = np.zeros(len(weights) // together * together)
        if together > 1:
            order = generator.permutation(len(weights))[: len(first)]
            first[np.arange(len(first)) % together > 0] = -1.0
            codes = {name: values[order] for name, values in codes.items()}
            weights = weights[order].reshape(-1, together).mean(axis=1)
        counts = generator.multinomial(n // together, weights / weights.sum()).repeat(together)
        return cls(scenario.schema, {**codes, UNIT_ROW: first, WHOLE_ROW: first}, counts)

    @classmethod
    def all_of(cls, scenario: Scenario) -> Simulated:
        """A whole scenario: each row so often that sampling does not matter."""
        counts = np.rint(scenario.weights * _TIMES).astype(np.int64)
        first = np.zeros(len(counts))
        return cls(scenario.schema, {**scenario.codes, UNIT_ROW: first, WHOLE_ROW: first}, counts)

    def count(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    def check(self, columns: Sequence[str]) -> None:
        """Nothing to refuse: every column is there."""

    def kept(self, rows: Sequence[str], once: Collection[str] = ()) -> Any:
        """A copy for one draw, with the rows of codes that it may code again."""
        return nullcontext(replace(self, codes={**self.codes, **{name: self._row(name) for name in rows}}))

    def coded_again(self, rows: Mapping[str, str], code: Callable[[str, Array], Array]) -> bool:
        """As `Source.coded_again`; of a copy that is kept for one draw."""
        there = rows.keys() <= self.codes.keys()
        self.codes.update({name: code(name, self.codes[row]) for row, name in rows.items() if there})
        return there

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """Exact sums of all records."""
        return tuple(map(self._sum, statistics))

    def _sum(self, one: Any) -> NDArray[Any]:
        """Products of whole numbers where they fit. Else by digits of the counts in base 4: at each, the sum so far counts four times."""
        if isinstance(one, Derived):
            return np.asarray(one.of(self._sum(one.behind)))
        codes = np.array([self._row(name) for name in one.map.columns]).reshape(-1, len(self.counts))
        state, add = one.zero(), one.update
        if isinstance(one, Collected):
            return np.asarray(one.value(add(state, np.repeat(codes, self.counts, axis=1))))
        if isinstance(one, Gram | Total | Histogram):
            codes, add = one.map(codes), one.add
        if type(one) in (Gram, Total) and one.map.l2_squared * self.count() < 1 << 62:
            rows = codes.astype(np.int64)
            return np.asarray((rows * self.counts) @ rows.T if type(one) is Gram else rows @ self.counts, dtype=object)
        for k in reversed(range(0, int(self.counts.max(initial=0)).bit_length(), 2)):
            twice = one.merge(state, state)
            state = add(one.merge(twice, twice), np.repeat(codes, (self.counts >> k) & 3, axis=1))
        return np.asarray(one.value(state))

    def _row(self, name: str) -> Array:
        if name in self.codes:
            return self.codes[name]
        for own in self.codes:
            if name == fine_row(own):
                return as_fine(self.schema[own].decode(self.codes[own]))
        # what is no column of the schema says that a value lay outside its bounds: none does here
        return np.zeros(len(self.counts))


@dataclass(frozen=True, eq=False)
class Run:
    """What one release of simulated records would say. result: None where there is none; seen: what of it a forecast is made of."""

    result: Any = None
    seen: Foreseen = field(default_factory=lambda: Foreseen({}))

    @property
    def ok(self) -> bool:
        """Whether its status is "valid"."""
        return self.result is not None and self.result.status == "valid"


def run(method: Method, plan: Plan, source: Simulated, noise: Any) -> Run:
    """Draw and read, as a release would; what has no result, for a reason that a release would have too, is an empty run."""
    try:
        with np.errstate(all="ignore"):
            release = seal(method, source, plan, noise)
            result: Any = shown(method.infer(release), release)
            return Run(result, result.foreseen() if isinstance(result, BaseResult) else Foreseen({}))
    except (ConfideError, ArithmeticError, np.linalg.LinAlgError):
        return Run()
    except Exception as error:
        raise PlanError(
            f"{method.name} cannot be forecast: on simulated records of the schema it raises {type(error).__name__}: {error}; its "
            "release would be refused too"
        ) from error


def simulated(method: Method, plan: Plan, scenario: Scenario, n: int, noise: Any = None) -> Run:
    """Of n records drawn from a scenario; the same each time. noise: simulated, of the scenario's own seed, when left out."""
    generator = np.random.Generator(np.random.PCG64([_SEED, scenario.number, n]))
    source = Simulated.of(scenario, n, generator, method.least_rows)
    return run(method, plan, source, SimulatedNoise(scenario.number) if noise is None else noise)


# what is simulated ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Setting:
    """What is simulated in a plan's place: units of one row each, all of them in the subgroup that is asked about."""

    method: Method
    schema: Schema
    privacy: Guarantee
    n: int

    @classmethod
    def of(cls, made: Plan, method: Method, schema: Schema, n: int) -> Setting | None:
        """From a plan; None where nothing can be simulated from sums, or no standard error is to be expected. n: some number of records."""
        if _WITHOUT & set(method.needs) or method.intervals == Method.intervals:
            return None
        if schema.cluster is not None or schema.design is not None:
            return None
        if sum(prod(one.shape) for one in made.statistics.values()) > _LARGEST:
            return None
        return cls(replace(method, where=None), schema, made.requested, n)

    @property
    def near(self) -> Schema:
        """Where its scenarios lie: the schema, with bounds where none are declared. The method is told nothing of these."""
        return self.schema.closed

    @property
    def chosen(self) -> bool:
        """Whether a private choice names what the results are of, which simulated records do not tell."""
        return any(isinstance(leaf, OpaqueRelease) for leaf in leaves(self.plan(self.n).event))

    @cached_property
    def columns(self) -> Columns:
        """What the question is about, without the subgroup."""
        return columns_of(self.plan(self.n), self.schema, self.method.outcome)

    def plan(self, n: int) -> Plan:
        """For n records."""
        public = self.privacy.relation == "substitute"
        return self.method.plan(self.schema.bare, self.privacy, n=n if public else None)

    def runs(self, n: int, count: int) -> tuple[Run, ...]:
        """One for each scenario."""
        plan, found = self.plan(n), list[Run]()
        for scenario in scenarios(self.near, self.columns, count):
            found.append(simulated(self.method, plan, scenario, n))
            if found[-1].result is not None and not found[-1].seen.errors:
                break  # its results have no standard errors
        return tuple(found)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Those of its formula, where it has a line."""
        given = method_parameters(self.method)
        if not isinstance(given.get("formula"), str):
            return ()
        outcomes = {name: Integer(0, 1) for name in self.columns.response if self.schema[name].steps == 2}
        schema = self.near.with_columns({**self.near.columns, **outcomes})
        try:
            return ModelMatrix.of(given["formula"], schema, term_bounds=given.get("term_bounds")).terms
        except ConfideError:
            return ()


def columns_of(made: Plan, schema: Schema, outcome: str = "") -> Columns:
    """The columns that a plan is about: of its formula, else those of its statistics, of which the last one is taken for the response."""
    formula = made.method.parameters.get("formula")
    rows = {row: name for name in schema.names for row in (name, fine_row(name))}
    read = [rows[row] for one in made.statistics.values() for row in one.map.columns if row in rows]
    if not isinstance(formula, str):
        names = tuple(dict.fromkeys(read))
        return Columns(names[:-1], names[-1:], outcome)
    parts = [[name for name in hidden(side, schema.names)[1].values() if name in schema] for side in sides(formula)]
    response = tuple(dict.fromkeys(parts[0])) if len(parts) > 1 else ()
    features = dict.fromkeys(
        name for name in (*(name for side in parts[len(parts) > 1 :] for name in side), *read) if name not in response
    )
    return Columns(tuple(features), response, outcome)


# the table --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Lazy):
    """Expected standard errors by number of records and name, and the chance of status "valid": simulated when it is looked at.

    n: the number of records, or of those in the subgroup; None for `SIZES`. `given`: what the method forecasts by its formula, to
    which the simulation adds its chance and title alone. Empty where a method is not simulated. The keys:

    - "assumes": what the family of scenarios is, in words.
    - "note": how far the numbers can be trusted, or what they are of; "" where that needs no words.
    - "title": the title of the results, where no private choice names what they are of.
    - "1,000", ...: a number by name, the median over the scenarios, where every numeric column has a typical spread. Otherwise (low,
      high), between which 98% of the family's standard errors lie. None where next to no scenario has one.
    - "between": where there is a number, its (low, high).
    - "valid": the share of the scenarios with that status.
    - "answered": the share of the numbers with an interval, over the scenarios.
    - "of": what all of them are called, and what they are.
    - "price": how many times as wide as without privacy, where results tell.

    Levels of one factor whose shares are not stated are interchangeable before the data are seen. So are columns whose spreads are not
    stated. What the scenarios give for one therefore applies to all, for columns in units of their half-ranges.
    """

    made: Plan
    method: Method
    schema: Schema
    n: int | None
    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def table(self) -> dict[str, Any]:
        sizes = (self.n,) if self.n else SIZES
        setting = Setting.of(self.made, self.method, self.schema, sizes[0])
        table = dict(self.given) if setting is None else _table(setting, sizes, self.given)
        return self._without_unit(table) if table else table

    @cached_property
    def without_unit(self) -> tuple[str, ...]:
        """The columns that have neither bounds nor typical values, so that standard errors have no unit."""
        setting = Setting.of(self.made, self.method, self.schema, self.n or SIZES[0])
        declared = self.made.declared
        return tuple(
            name
            for name in (setting.columns.names if setting is not None else ())
            if not _placed(declared[name]) and not _spread(self.schema[name])
        )

    def _without_unit(self, table: dict[str, Any]) -> dict[str, Any]:
        """The table, without standard errors where they have no unit."""
        alone = self.without_unit
        if not alone:
            return table
        cells = {key: dict.fromkeys(table[key]) for key in table if key not in BESIDE}
        note = (
            f"Standard errors have no unit, because the schema has neither bounds nor typical values of {', '.join(alone)}. For example,\n"
            f"  [columns.{alone[0]}]  typical = [LOW, HIGH]"
        )
        return {**table, **cells, "between": {}, "value": {}, "uneven": {}, "note": note}

    @cached_property
    def needed(self) -> str:
        """How many records, or which budget, give a chance of one half; "" where it is there, or neither is found up to the largest."""
        privacy, n = self.made.guarantee, self.n
        setting = Setting.of(self.made, self.method, self.schema, n or 1)
        low = any(valid < _EVEN for valid in self.table.get("valid", {}).values())
        if not (low and n and setting and isinstance(privacy, GDP | PureDP)):
            return ""
        name = privacy.numbers()[0]
        level = getattr(privacy, name)

        def chance(size: int, own: Setting) -> float:
            return _chance(own.runs(size, _OF_THREE), every=bool(self.given))

        found = [
            _least(lambda x: chance(round(n * x), setting), MOST / level),
            _least(lambda x: chance(n, replace(setting, privacy=replace(privacy, **{name: level * x}))), MOST / level),
        ]
        words = (
            "" if found[0] is None else f"about {rounded(n * found[0], 2):,.0f} records",
            "" if found[1] is None else f"{name} of at least {rounded(level * found[1], 2):g}",
        )
        return ", or ".join(filter(None, words))


def _placed(column: Any) -> bool:
    """Whether a column has bounds, or labels."""
    return isinstance(column, Categorical) or all(column.declared)


def _spread(column: Any) -> bool:
    """Whether it has typical values."""
    return not isinstance(column, Categorical) and column.spread is not None


def _least(chance: Callable[[float], float], most: float) -> float | None:
    """The factor, to a fifth, from which on the chance is one half; None where it is not up to the largest factor."""
    low, high = 1.0, 2.0
    while chance(high) < _EVEN:
        low, high = high, 2 * high
        if high > most:
            return None
    while high > low * _CLOSE:
        middle = sqrt(low * high)
        low, high = (middle, high) if chance(middle) < _EVEN else (low, middle)
    return high


def _chance(runs: Sequence[Run], *, every: bool) -> float:
    """The share of the scenarios whose result is valid. every: and has an interval for each of its numbers."""
    return round(float(np.mean([one.ok and (not every or one.seen.answered == 1) for one in runs])), 2)


def _table(setting: Setting, sizes: Sequence[int], given: Mapping[str, Any]) -> dict[str, Any]:
    count = SCENARIOS if len(sizes) == 1 else _OF_THREE
    found = {n: setting.runs(n, count) for n in sizes}
    names = tuple(dict.fromkeys(name for runs in found.values() for one in runs for name in one.seen.errors))
    answered = [one.seen.answered for runs in found.values() for one in runs if one.ok]
    if not names or (answered and not any(answered)):
        return dict(given)
    columns = setting.columns.names
    known, alike = not unstated(setting.near, columns), _alike(names, setting)
    table: dict[str, Any] = {"assumes": _assumes(known, count), "note": _note(setting.near, columns)}
    if given:
        table = {**given, "assumes": table["assumes"], "note": given["assumes"]}
    told = [one for runs in found.values() for one in runs if one.seen.errors]
    title = "" if setting.chosen else told[0].result.title.replace(told[0].result.coded, "")
    table |= {"of": told[0].seen.of, "title": title}
    table |= {key: {} for key in ("valid", "answered", "price", "between")}
    for key, runs in zip(
        [k for k in given if k not in BESIDE] or map("{:,}".format, sizes), found.values(), strict=True
    ):
        if not given:
            errors = np.array([[one.seen.errors.get(name, nan) for name in names] for one in runs])
            own = {name: errors[:, places] * sizes / size for name, (places, sizes, size) in alike.items()}
            table[key] = {name: _entry(values, known) for name, values in own.items()}
            if known:
                table["between"][key] = {name: _entry(values, False) for name, values in own.items()}
        table["valid"][key] = _chance(runs, every=bool(given))
        table["answered"][key] = round(float(np.mean([one.seen.answered for one in runs])), 2)
        shares = np.concatenate([one.seen.shares for one in runs])
        prices = 1 / np.sqrt(1 - shares[shares < 1])
        if prices.size:
            table["price"][key] = _rounded(_quantile(prices, _EVEN))
    if not given and not any(cell for key in table["valid"] for cell in table[key].values()):
        table["note"] = ""  # nothing is told that it could be about
    return table


def _alike(names: Sequence[str], setting: Setting) -> dict[str, tuple[list[int], Array, float]]:
    """By name: the places of the numbers that nothing public tells apart from it, what each is multiplied by to be compared, and its own.

    These are levels of one factor whose shares are not stated. They are also numeric columns whose spread is not stated and that are in
    one term alone: per half-range they are alike, where as many values are possible.
    """
    used = [column for term in setting.terms for column in term.columns]
    told = {term.name: (_kind(term, setting.near, used), (term.high - term.low) / 2) for term in setting.terms}
    kinds = [told.get(name, (name, 1.0)) for name in names]
    places = {kind: [j for j, (other, _) in enumerate(kinds) if other == kind] for kind, _ in kinds}
    return {
        name: (places[kind], np.array([kinds[j][1] for j in places[kind]]), size)
        for name, (kind, size) in zip(names, kinds, strict=True)
    }


def _kind(term: Term, schema: Schema, used: Sequence[str]) -> str:
    if term.plain is not None and schema[term.plain].typical is None and used.count(term.plain) == 1:
        # no column has an empty name
        return f"``{min(term.steps, _WHOLE + 1)}"
    columns = [schema[part.column] for part in term.parts if isinstance(part, Indicator)]
    told = all(isinstance(column, Categorical) and column.shares is not None for column in columns)
    return term.name if told else factor_name(term)


def _entry(errors: Array, known: bool) -> Any:
    """One cell: a number, the interval of 98% of what was found, or None where next to no scenario has an interval."""
    found = errors[np.isfinite(errors)]
    if not found.size:
        return None
    if known:
        return _rounded(_quantile(found, _EVEN))
    if found.size < _TOLD:
        return None
    # one more of them lies between these with that chance: the least and the largest, where there are few
    low, high = (_quantile(found, share) for share in ((1 - _HOLDS) / 2, (1 + _HOLDS) / 2))
    return _rounded(low), _rounded(high)


def _quantile(values: Array, share: float) -> float:
    """Of finite numbers, by the rule of Weibull: one more lies below it with that chance. NumPy's own loads its masked arrays first."""
    return float(np.interp((values.size + 1) * share - 1, np.arange(values.size), np.sort(values, axis=None)))


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _note(schema: Schema, columns: Sequence[str]) -> str:
    """How far the numbers tell."""
    silent = unstated(schema, columns)
    if silent:
        column: Any = schema[silent[0]]
        quarter = (column.high - column.low) / 4
        return (
            f"The forecast is wide because the schema states no typical values of {', '.join(silent)}. For example,\n"
            f"  [columns.{silent[0]}]  typical = [{column.low + quarter:g}, {column.high - quarter:g}]"
        )
    if not whole(schema, columns):
        return (
            "Own shares or shares of levels are not stated. Without them a number is off by more than a factor of 2 "
            "about every other time: the forecast is the range in brackets."
        )
    return ""


def _assumes(known: bool, count: int) -> str:
    kind = "the median over" if known else f"{_HOLDS:.0%} of those in"
    return (
        f"{kind} {count} scenarios of simulated records: {'the typical spreads of the schema, tails normal to long' if known else FAMILY}; "
        "0.1% to 100% of a feature's variance is independent of the other features; the features leave 3% to 100% of the variance of the "
        "response unexplained, unless stated"
    )
