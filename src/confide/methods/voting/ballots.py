"""Votes of a column: what a record says, what leaves when an answer is drawn, and the records on which a vote is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.crossing import Crossing
from confide.protocol import Meter, Method, Plan, Source
from confide.schema import Categorical, Practice, Schema

__all__ = ["Ballots", "ColumnVote", "ballots", "votes_apart"]

Ballots = list[Mapping[str, Any]]


class ColumnVote(Method):
    """A vote between the levels of a column, one vote a record: whatever the rule, one answer leaves, or none."""

    column: str
    rule: str | None

    family: ClassVar[str] = "voting"

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many answers, (runs, 1): the number of a level from 1 on, 0 for none."""
        raise NotImplementedError

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The answer: the number of a level from 1 on, 0 for none."""
        answer = self.repeated(source, plan, meter.noise("answer"))(1)[0]
        meter.opaque("answer", answer, Fraction(1))
        if not answer[0]:
            meter.decline()
        return {}

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The share of votes for each level."""
        practice = Practice.checked(frame)
        return _vote_shares(self.about(practice.schema), practice)

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A vote for either of the first two levels."""
        return _opposite_votes(schema, self.column)


def ballots(schema: Any, column: str) -> Crossing:
    """What a record says: the level of a column."""
    whole = Schema.of(schema)
    return Crossing.of((column,), whole)


def _vote_shares(ballot: Crossing, practice: Practice) -> dict[str, float]:
    """The share of votes for each level, of practice records."""
    place = ballot.places(practice.codes[ballot.columns[0]][None, :].astype(np.float64), (0,))
    counts = np.bincount(place, minlength=ballot.cells((0,)) + 1)[:-1]
    return dict(zip(ballot.attributes[0].labels, (counts / max(counts.sum(), 1)).tolist(), strict=True))


def votes_apart(schema: Any, column: str, plan: Plan, gaps: Iterable[int]) -> Iterator[tuple[Ballots, Ballots]]:
    """Votes in which either level leads by each of these, and the same with one vote more for it (add-remove), or with one that changed
    sides to the other (substitute: gaps as odd or even as the public number of votes)."""
    found = [{column: value} for pair in _opposite_votes(schema, column) for one in pair for value in one.values()]
    few = 3
    for leader, other in (found, found[::-1]) if found else ():
        for gap in gaps:
            if plan.relation == "add-remove":
                yield [other] * few + [leader] * (few + gap), [other] * few + [leader] * (few + gap + 1)
            elif plan.n is not None and gap < plan.n:
                lead = (plan.n + gap + 1) // 2
                rest = [leader] * (lead - 1) + [other] * (plan.n - lead)
                yield [*rest, leader], [*rest, other]


def _opposite_votes(schema: Any, column: str) -> Iterable[tuple[Mapping[str, Any], ...]]:
    """A vote for the first level and one for the second."""
    if isinstance(schema, Schema):
        own = schema[column]
        values = own.levels if isinstance(own, Categorical) else (own.low, own.low + 1)
        yield {column: values[0]}, {column: values[1]}
