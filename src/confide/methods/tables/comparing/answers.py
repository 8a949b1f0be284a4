"""Which tests a released table answers: as calls of its own, and under their names in scipy.stats with the table's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from confide.errors import PlanError
from confide.methods.tables.cells.numbers import CellNumbers

if TYPE_CHECKING:
    from confide.methods.tables.cells.result import CellTable

__all__ = ["Answer", "answers", "refused", "said_of", "some"]

# Calls of one kind in a message about a wide table.
_SHOWN = 3


@dataclass(frozen=True)
class Answer:
    """A test that a table answers. call: of the table; verb, formula: its name in scipy.stats, and what it is asked of."""

    call: str
    verb: str
    formula: str


def answers(table: Any) -> tuple[Answer, ...]:
    """The tests that a table of counts, shares or means answers; nothing for any other result.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "gain": cf.Numeric(-9, 9)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> table = cf.tables.means("gain ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> [(answer.call, answer.verb, answer.formula) for answer in answers(table)]
    [("test('t', 'sex')", 'ttest_ind', 'gain ~ sex'), ("test('mean', value=0)", 'ttest_rel', 'gain')]
    """
    kind = table.kind if isinstance(table, CellNumbers) else ""
    found = {"counts": _of_counts, "shares": _of_counts, "means": _of_means}.get(kind)
    return () if found is None else tuple(found(table))


def some(found: Iterable[Answer]) -> list[Answer]:
    """The first few of each test."""
    kept: dict[str, list[Answer]] = {}
    for answer in found:
        kept.setdefault(answer.verb, []).append(answer)
    return [answer for own in kept.values() for answer in own[:_SHOWN]]


def said_of(table: CellTable) -> str:
    """The tests that a table answers, in words, for errors."""
    calls = ", ".join(answer.call for answer in some(answers(table)))
    named = ", ".join(own.name for own in table.layout.crossing.attributes) or "none"
    return f"this table of {table.kind} answers {calls or 'no test'} (its attributes: {named})"


def refused(table: CellTable, kind: str, *attributes: str | None) -> PlanError:
    """The error of a test that a table does not answer."""
    asked = ", ".join(repr(one) for one in (kind, *attributes) if one is not None)
    other = "for counts plan cf.tables.Counts" if table.kind == "means" else "for means plan cf.tables.Means"
    return PlanError(f"no answer to test({asked}): {said_of(table)}; {other}, for ranks cf.tests.mannwhitneyu")


def _of_means(table: CellTable) -> Iterator[Answer]:
    every, several = table.layout.crossing.attributes, len(table.measured) > 1
    alone = [every[axes[0]] for axes in table.marginals if len(axes) == 1]
    for own in alone:
        kind, verb = ("t", "ttest_ind") if own.size == 2 else ("f", "f_oneway")
        for column in table.measured:
            of = f", of={column!r}" if several else ""
            yield Answer(f"test({kind!r}, {own.name!r}{of})", verb, f"{column} ~ {own.name}")
    for place, column in enumerate(table.measured):
        low, high = table.bounds(place)
        if low < 0 < high:
            of = f", of={column!r}" if several else ""
            yield Answer(f"test('mean', value=0{of})", "ttest_rel", column)


def _of_counts(table: CellTable) -> Iterator[Answer]:
    every = table.layout.crossing.attributes
    pairs = [(every[a], every[b]) for a, b in combinations(range(len(every)), 2) if table.margins.contains((a, b))]
    for one, other in pairs:
        yield Answer(
            f"test('independence', {one.name!r}, {other.name!r})", "chi2_contingency", f"{one.name} * {other.name}"
        )
    for case, dose in (pair for one, other in pairs for pair in ((one, other), (other, one)) if pair[0].size == 2):
        yield Answer(f"test('trend', {case.name!r}, {dose.name!r})", "trend", f"{case.name} ~ {dose.name}")
    for own in every:
        yield Answer(f"test('fit', {own.name!r})", "chisquare", own.name)
        yield Answer(f"test('proportion', {own.name!r}, p=.5)", "binomtest", own.name)
