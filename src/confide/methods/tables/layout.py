"""What a table's formula asks for: attributes, the marginals to be shown, and the columns on the left side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from confide._helpers import near_match
from confide.errors import PlanError, SchemaError
from confide.methods.tables.sums import UnitWeight
from confide.schema import Categorical, Schema, Unit
from confide.schema.formulas.expression import summary_words
from confide.schema.formulas.formula import cut, parsed
from confide.schema.formulas.names import (
    age_of,
    column_named,
    hidden,
    parted,
    quoted,
    restored,
    sides,
    unknown_names,
)
from confide.sums.cells.cell_sums import Attribute, Axes, Crossing, cut_point
from confide.sums.cells.moments import Measure
from confide.sums.cells.weighted_cells import CappedWeight
from confide.sums.columns import columns_of

_MOST_MARGINALS = 4096
_MOST_CELLS = 1 << 22
_CUT = re.compile(r"cut\((.*)\)", re.DOTALL)
_EXAMPLE = 'write "region * smoker", "region:smoker" or "region + cut(age, 18, 65)"'

_Sets = list[frozenset[str]]


@dataclass(frozen=True)
class Layout:
    """A formula over a schema: `a*b` crossing and all margins, `a:b` crossing and total, `a + b` one-way margins; the total always.

    shown: the marginals asked for, the total first, then by their number of attributes; measures: what stands left of ~.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"]), "g": cf.Categorical(["u", "v"]), "x": cf.Numeric(0, 9)})
    >>> Layout.of("f * g", schema).shown, Layout.of("f:g", schema).shown, Layout.of("f + g", schema).shown
    (((), (0,), (1,), (0, 1)), ((), (0, 1)), ((), (0,), (1,)))
    >>> own = Layout.of("x + log1p(x) ~ f:cut(x, 5)", schema)
    >>> [measure.name for measure in own.measures], own.crossing.sizes
    (['x', 'log1p(x)'], (2, 2))
    """

    formula: str
    crossing: Crossing
    shown: tuple[Axes, ...]
    measures: tuple[Measure, ...] = ()
    weight: Measure | UnitWeight | None = None

    @classmethod
    def of(
        cls,
        formula: str,
        schema: Any,
        *,
        term_bounds: Mapping[str, tuple[float, float]] | None = None,
        most: int = _MOST_CELLS,
        weights: str | None = None,
        reader: type[FormulaReader] | None = None,
    ) -> Layout:
        """The layout of a formula; `PlanError` or `SchemaError` for one that cannot be planned from public facts.

        reader: of the right side, where it may hold more than columns and cuts.
        """
        if not isinstance(formula, str) or not formula.strip():
            raise PlanError(f"a table's formula is text, got {formula!r}", f"{_EXAMPLE}")
        whole = Schema.of(schema)
        left, whole_right = both_sides(formula)
        right, total = without_total(whole_right)
        read = (reader or FormulaReader)(whole, cut(formula))
        sets = read.sets(right)
        order = {name: axis for axis, name in enumerate(read.attributes)}
        shown = {tuple(sorted(order[name] for name in names)) for names in sets} | ({()} if total else set())
        crossing = read.crossing()
        measures = tuple(
            Measure.of(text, whole, formula=cut(formula), term_bounds=term_bounds) for text in summands(left)
        )
        # a reader of its own says how units count
        of_units = _unit_weight(whole) if reader is None else None
        weight = of_units if weights is None else weight_of(weights, whole)
        layout = cls(formula, crossing, tuple(sorted(shown, key=lambda axes: (len(axes), axes))), measures, weight)
        layout._check(most)
        return layout

    def _check(self, most: int) -> None:
        names = [measure.name for measure in self.measures]
        if len(set(names)) < len(names):
            raise PlanError(f"a column stands twice left of ~ in {cut(self.formula)!r}", "write it once")
        for axes in self.shown:
            if self.crossing.cells(axes) > most:
                largest = max(axes, key=lambda axis: self.crossing.sizes[axis])
                coarser = ":".join(self.crossing.attributes[axis].name for axis in axes if axis != largest)
                raise PlanError(
                    f"the crossing {self.crossing.title(axes)} has {self.crossing.cells(axes):,} cells, at most {most:,} are released",
                    f"ask for a coarser one, such as {coarser!r}, or cut {self.crossing.attributes[largest].name} at fewer points",
                )
        if sum(2 ** len(axes) for axes in self.maximal) > _MOST_MARGINALS:
            raise PlanError(
                f"{cut(self.formula)!r} asks for more than {_MOST_MARGINALS} marginals; cross fewer columns at once, as in "
                '"a:b + a:c" for two of three'
            )
        titles = [self.crossing.title(axes) if axes else "(total)" for axes in self.closure]
        if len(set(titles)) < len(titles):
            twice = next(title for title in titles if titles.count(title) > 1)
            raise PlanError(
                f"{twice!r} in {cut(self.formula)!r} names a column and a crossing of others, or the total",
                "rename the column",
            )

    @cached_property
    def closure(self) -> tuple[Axes, ...]:
        """The marginals shown and all that follow from them by adding up, by their number of attributes."""
        found = {part for axes in self.maximal for size in range(len(axes) + 1) for part in combinations(axes, size)}
        return tuple(sorted(found, key=lambda axes: (len(axes), axes)))

    @cached_property
    def maximal(self) -> tuple[Axes, ...]:
        """The marginals shown that are in no other one."""
        return tuple(axes for axes in self.shown if not any(set(axes) < set(other) for other in self.shown))

    @property
    def words(self) -> str:
        """The formula as a title has it: whether the total was asked for is seen in the table."""
        left, right = both_sides(self.formula)
        plain, total = without_total(right)
        return self.formula if total else f"{left.strip()} ~ {plain}" if left else plain

    def by(self, *, turned: bool = False) -> str:
        """The groups at the end of a title, such as " by sex and region"; turned: the other way round, of two factors."""
        right = both_sides(self.words)[1].strip().replace("`", "")
        factors = [part.strip() for part in right.split("*")]
        factors = factors[::-1] if len(factors) == 2 and turned else factors
        return "" if right == "1" else f" by {' and '.join(factors)}"

    @property
    def drops(self) -> bool:
        """Whether a record may be left out because a value is missing."""
        alone = len(self.measures) == 1 and self.measures[0].drops
        return self.crossing.drops or alone or (isinstance(self.weight, Measure) and self.weight.drops)

    @property
    def of_units(self) -> bool:
        """Whether rows weigh 1 over the rows of their unit."""
        return isinstance(self.weight, UnitWeight)

    @property
    def columns(self) -> tuple[str, ...]:
        """All schema columns that are used."""
        return columns_of(self.crossing, *self.measures, self.weight if isinstance(self.weight, Measure) else None)

    @property
    def heaviest(self) -> float:
        """The largest weight: the upper bound in the schema or a threshold below it; 1 without weights, and of units."""
        if isinstance(self.weight, CappedWeight):
            return self.weight.heaviest
        return float(self.weight.term.high) if isinstance(self.weight, Measure) else 1.0

    @property
    def usual(self) -> float:
        """The middle of the bounds of the weights, over the largest; 1 without weights, and of units."""
        return self.weight.middle / self.heaviest if isinstance(self.weight, Measure) else 1.0

    @property
    def weighed(self) -> str:
        """Of the weights, in the words of a target; nothing without."""
        if isinstance(self.weight, UnitWeight):
            return f", {self.weight.name} in the whole table, spread over its rows"
        return "" if self.weight is None else f", weighted by {self.weight.name} (at most {self.heaviest:g})"

    def axes(self, names: Any) -> Axes:
        """The positions of attributes, by name; `PlanError` for a name that is none."""
        known = [own.name for own in self.crossing.attributes]
        wanted = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else (names,)
        meant = [column_named(str(name), known) for name in wanted]
        for name in meant:
            if name not in known:
                raise PlanError(
                    f"{name!r} is not an attribute of this table{near_match(name, tuple(known))}; it has: {', '.join(known) or 'none'}"
                )
        return tuple(sorted(map(known.index, meant)))


def _unit_weight(schema: Schema) -> UnitWeight | None:
    """By weight where the unit says so; a table keeps one row of each unit otherwise."""
    unit = schema.unit
    return UnitWeight(unit.column) if isinstance(unit, Unit) and unit.rule == "weight" else None


def marginal_name(layout: Layout, axes: Axes) -> str:
    """The name of a marginal's statistic in plan and release: "region:smoker", "(total)" for the empty one."""
    return layout.crossing.title(axes) if axes else "(total)"


def weight_of(text: Any, schema: Schema) -> Measure:
    """The column of weights; `PlanError` for one that may be negative or has no public bounds."""
    name = column_named(text, schema.names) if isinstance(text, str) else None
    if name is None or name not in schema:
        known = ", ".join(name for name in schema.names if schema[name].kind != "categorical") or "none"
        raise PlanError(
            f"weights must name a numeric column of the schema, got {text!r}{near_match(str(text), schema.names)}; numeric are: {known}"
        )
    column = schema[name]
    if isinstance(column, Categorical) or not 0 <= column.low < column.high:
        raise PlanError(
            f"weights are numbers of at least 0 with a public largest one, and {name!r} lacks these bounds",
            f"declare it as in {name!r}: cf.Numeric(0, 20), where larger weights count as 20",
        )
    return Measure.of(quoted(name), schema, formula=f"weights={name}")


def both_sides(formula: str) -> tuple[str, str]:
    """What stands left and right of the one ~ that may stand in a formula."""
    parts = sides(formula)
    if len(parts) > 2:
        raise PlanError(
            f"a formula has at most one ~, {cut(formula)!r} has {len(parts) - 1}", 'write "income ~ region"'
        )
    if len(parts) == 1:
        return "", formula
    left, right = parts
    if not left or not right:
        raise PlanError(
            f"one side of {cut(formula)!r} is empty", 'write "income ~ region", or "income ~ 1" for all records'
        )
    return left, right


def without_total(right: str) -> tuple[str, bool]:
    """A right side, and whether its total is asked for: "0 + sex" asks for the groups alone, whose noise is then all that is paid for.

    >>> without_total("0 + sex"), without_total("sex")
    (('sex', False), ('sex', True))
    """
    found = re.match(r"\s*0\s*\+\s*(?=\S)", right)
    return (right, True) if found is None else (right[found.end() :], False)


def summands(left: str) -> list[str]:
    """The parts of a left side that + joins."""
    return parted(left, "+")


def _summed(tree: Any) -> list[Any]:
    """What an operator joins; of + all of it, as long sums hang to the left, deeper than calls may nest."""
    found: list[Any] = []
    while getattr(tree, "operator", None) is not None and str(tree.operator.symbol) == "+" and len(tree.args) == 2:
        tree, last = tree.args
        found.append(last)
    return [tree, *reversed(found)] if found else list(tree.args)


class FormulaReader:
    """Right sides as sets of attribute names; collects the attributes in order of appearance."""

    def __init__(self, schema: Schema, shown: str) -> None:
        self.schema, self.shown = schema, shown
        self.attributes: dict[str, Attribute] = {}
        self._names: dict[str, str] = {}

    def crossing(self) -> Crossing:
        """The crossing of the attributes that were read."""
        return Crossing(tuple(self.attributes.values()), self.schema)

    def sets(self, right: str) -> _Sets:
        plain, self._names = hidden(right, self.schema.names)
        return self._read(parsed(plain, self._names, self.shown))

    def _read(self, tree: Any) -> _Sets:
        if not hasattr(tree, "operator"):
            text = str(tree.token).strip()
            return [frozenset()] if text == "1" else [frozenset((self._attribute(text),))]
        symbol = str(tree.operator.symbol)
        if symbol in ("**", "^") and len(tree.args) == 2:
            return self._power(self._read(tree.args[0]), str(getattr(tree.args[1], "token", "")).strip())
        parts = [self._read(part) for part in _summed(tree)]
        if symbol == "+":
            return list(dict.fromkeys(one for part in parts for one in part))
        if symbol in ("*", ":") and len(parts) == 2:
            crossed = list(dict.fromkeys(one | other for one in parts[0] for other in parts[1]))
            return crossed if symbol == ":" else list(dict.fromkeys((*parts[0], *parts[1], *crossed)))
        raise PlanError(f"the operator {symbol!r} in {self.shown!r} is not used in tables", f"{_EXAMPLE}")

    def _power(self, sets: _Sets, times: str) -> _Sets:
        if not re.fullmatch("[1-9]", times):
            raise PlanError(f"a power in {self.shown!r} must be a whole number from 1 to 9", "write (a + b + c)**2")
        found = sets
        for _ in range(int(times) - 1):
            found = list(dict.fromkeys((*found, *(one | other for one in found for other in sets))))
        return found

    def _attribute(self, text: str) -> str:
        own = self.attribute(text)
        if self.attributes.setdefault(own.name, own) != own:
            raise PlanError(
                f"{own.name!r} in {self.shown!r} is a column and what another one is made to", "rename the column"
            )
        return own.name

    def attribute(self, text: str) -> Attribute:
        """What one name or call of the formula stands for."""
        call = _CUT.fullmatch(text)
        if call is not None:
            return self._cut(call.group(1))
        if self._name(text) in self.schema:
            return Attribute.of(self._name(text), self.schema)
        if text in self._names:
            own = self._name(text)
            raise unknown_names(SchemaError, "the formula", self.shown, self.schema.names, own, age=age_of(self.schema))
        if meant := summary_words(self.shown):
            raise PlanError(f"the formula {self.shown!r} is refused: {meant}")
        if re.match(r"(any|all|number)\s*\(", text):
            raise PlanError(
                f"{self.spelled(text)!r} is of all rows of a person",
                "ask cf.tables.distinct_counts or distinct_shares (on the command line "
                '--kind distinct_counts), of a schema with unit=cf.Unit("person_id")',
            )
        age = age_of(self.schema)
        raise PlanError(
            f"{self.spelled(text)!r} in {self.shown!r} is neither a column nor a cut of one",
            f"{_EXAMPLE}{f'; for an age {age} in the schema' if age else ''}",
        )

    def spelled(self, text: str) -> str:
        """Text with its names put back."""
        return restored(text, self._names)

    def _name(self, text: str) -> str:
        return self._names.get(text.strip(), text.strip())

    def _cut(self, inside: str) -> Attribute:
        first, *rest = parted(inside, ",")
        name = self._name(first)
        if name not in self.schema:
            age = age_of(self.schema)
            if first in self._names:
                raise unknown_names(SchemaError, "cut", quoted(name), self.schema.names, age=age)
            raise PlanError(
                f"cut in {self.shown!r} takes the name of a column, got {self.spelled(first)!r}",
                f"derive the column in the schema, {age or '[derive]'}, and write cut(age, 18, 65)",
            )
        try:
            points: list[Any] = [cut_point(part) for part in rest]
        except ValueError:
            points = [self.spelled(part) for part in rest]
        return Attribute.cut(name, points, self.schema)
