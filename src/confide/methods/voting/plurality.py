"""Which of several levels most records have.

Guarantee, rule "noisy_max": mu-GDP with Gaussian noise, or epsilon with Laplace noise where a pure guarantee is asked for, add-remove or
substitute. One count for each level; a record moves one of them by 1 (a replaced one two: sqrt(2), and 2 in l1). All noisy counts leave:
they cost what the largest alone would. Rule "distance": (epsilon, delta); the winner itself, or nothing. D = max(ceil(g/m) - 1, 0), g the
gap between the two most frequent levels and m = 1 (add-remove) or 2: a record moves g by at most m, and D is 0 wherever one record makes or
breaks a tie (`StableRelease`).

Answer: the level with the largest noisy count. p-value of "another level has at least as many": (C - 1) P(N - N' >= lead), N, N' two
numbers of the noise: if another level has the most votes, some level leads it by noise alone, and there are C - 1 that may.
Interval: none of the winner; counts have theirs in `cf.tables.counts`, and the chance of a wrong answer at each gap is in
`cf.voting.errors`. Sources: report noisy max (Dwork, Roth 2014); Dong, Roth, Su 2022; Dwork, Lei 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.aggregates.cells.cell_sums import CellCounts, CellIndex
from confide.aggregates.cells.crossing import Crossing
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee
from confide.methods.ptr.classic_ptr import StableRelease
from confide.methods.voting.ballots import Ballots, ColumnVote, ballots, votes_apart
from confide.methods.voting.rules import laplace_minority
from confide.methods.voting.winner import Answered
from confide.protocol import Allowance, Meter, Method, Opaque, Plan, Proved, Question, Release, Source
from confide.protocol.spending.allowance import EITHER
from confide.results.base import Column

__all__ = ["Plurality", "PluralityVote"]

_RULES = ("noisy_max", "distance")
_SILENT = (
    "the two most frequent levels were too near to each other for this rule to answer; ask again with rule='noisy_max'"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PluralityVote(Answered):
    """The winner, and with rule "noisy_max" all noisy counts.

    label: the winner, None where the rule did not answer; levels; votes, noise_sd (levels,): noisy counts and the standard deviation of
    their noise, NaN with the rule "distance"; pvalue: of "another level has at least as many votes".
    """

    levels: tuple[str, ...]
    votes: NDArray[np.float64]
    noise_sd: float
    pvalue: float

    rows_are: ClassVar[str] = "level"
    rows_called: ClassVar[str] = "levels"
    always: ClassVar[str] = "noisy_max"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """votes and noise_sd, one row for each level."""
        return (
            Column("name", self.levels, "name"),
            Column("votes", self.votes, head="votes"),
            Column("noise_sd", np.full(len(self.levels), self.noise_sd), "std_err", head="noise sd"),
        )

    def head(self) -> tuple[tuple[str, str], ...]:
        shown = () if np.isnan(self.pvalue) else (("P(another leads)", f"{self.pvalue:.3g}"),)
        return (*super().head(), *shown)

    def more(self, alpha: float) -> dict[str, Any]:
        return {"winner": self.label, "pvalue": self.pvalue}

    def draw(self, ax: Any, alpha: float) -> None:
        places = np.arange(len(self.levels))
        ax.bar(places, np.nan_to_num(self.votes), color="#1f4e79", yerr=1.96 * np.nan_to_num(self.noise_sd), capsize=3)
        ax.set_xticks(places, list(self.levels))
        ax.set_ylabel("noisy votes")

    def picture(self, alpha: float) -> str:
        return "Noisy votes with 1.96 standard deviations of their noise."


@dataclass(frozen=True)
class Plurality(ColumnVote):
    """The most frequent level of a column.

    column: categorical, or cf.Integer of at most 256 values; records without a value have no vote. rule: "noisy_max" (always answers) or
    "distance" (the winner itself, or nothing; needs a delta).

    >>> import confide as cf
    >>> schema = cf.Schema({"vote": cf.Categorical(["a", "b", "c"])})
    >>> data = cf.read({"vote": ["b"] * 60 + ["a"] * 30 + ["c"] * 10}, schema)
    >>> found = cf.infer(cf.release(Plurality("vote"), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1)))
    >>> found.winner, found.pvalue < 1e-6
    ('b', True)
    """

    column: str
    rule: str = "noisy_max"

    name: ClassVar[str] = "plurality"
    source: ClassVar[str] = "report noisy max (Dwork, Roth 2014); distance to a tie (Dwork, Lei 2009)"
    native: ClassVar[str] = EITHER
    intervals: ClassVar[str] = "no interval; p-value of another level having at least as many votes"

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise PlanError(f"rule must be one of {', '.join(_RULES)}, got {self.rule!r}; noisy_max is the default")

    def about(self, schema: Any) -> Crossing:
        ballot = ballots(schema, self.column)
        if ballot.cells((0,)) < 2:
            raise PlanError(f"a vote is between at least two levels, and {self.column!r} has one")
        return ballot

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Noisy counts of all levels, or one answer."""
        ballot = self.about(schema)
        counts = CellCounts(CellIndex(ballot, (0,)))
        facts: dict[str, Any] = {
            "n": n,
            "constants": {"rule": self.rule},
            "target": f"the most frequent of {', '.join(ballot.attributes[0].labels)} in {self.column}",
            "covers": self.intervals,
        }
        if self.rule == "noisy_max":
            allowance = Allowance.of(privacy, self, schema)
            return Plan.of(
                self, schema, allowance, allowance.spend("votes", counts, Fraction(1)), {"votes": counts}, **facts
            )
        proved = Proved.of(privacy, self, schema, who="the rule 'distance'", instead="take rule='noisy_max'")
        event = Opaque("answer", proved.level, StableRelease.proof)
        return Plan.of(self, schema, proved, event, {"answer": counts}, **facts)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy counts; or the number of the winner from 1 on, 0 for no answer."""
        if self.rule == "noisy_max":
            return Method.draw(self, source, plan, meter)
        return super().draw(source, plan, meter)

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many answers of the rule "distance", (runs, 1)."""
        (counts,) = source.aggregate(plan.statistic("answer"))
        level = plan.guarantee
        assert isinstance(level, ApproxDP)
        votes = [int(one) for one in counts]
        order = sorted(range(len(votes)), key=lambda j: (-votes[j], j))
        move = 2 if plan.relation == "substitute" else 1
        distance = max(-(-(votes[order[0]] - votes[order[1]]) // move) - 1, 0)
        test = StableRelease(level.epsilon, level.delta)
        return lambda runs: np.where(test.replies(distance, noise, runs), order[0] + 1, 0).astype(object)[:, None]

    def table(self, release: Release, about: Crossing, question: Question) -> PluralityVote:
        labels = about.attributes[0].labels
        if self.rule == "distance":
            answer = int(release["answer"].values[0])
            return PluralityVote.of(
                release,
                response=self.column,
                label=labels[answer - 1] if answer else None,
                levels=labels,
                votes=np.full(len(labels), nan),
                noise_sd=nan,
                pvalue=nan,
                flags=("no_interval",),
                status="ok" if answer else "no_reply",
                reason="" if answer else _SILENT,
            )
        noisy = release["votes"]
        votes, sd = noisy.decode(), sqrt(noisy.variance)
        first, second = np.argsort(-votes, kind="stable")[:2]
        lead = float(votes[first] - votes[second])
        tail = (
            float(laplace_minority(lead / (sd / sqrt(2))))
            if noisy.law.endswith("laplace")
            else float(special.ndtr(-lead / sd / sqrt(2)))
        )
        return PluralityVote.of(
            release,
            response=self.column,
            label=labels[int(first)],
            levels=labels,
            votes=votes,
            noise_sd=sd,
            pvalue=min(1.0, (len(labels) - 1) * tail),
            flags=("no_interval",),
        )

    def worst_data(self, plan: Plan, schema: Any) -> Iterable[tuple[Ballots, Ballots]]:
        """Ties, and leads at which the rule "distance" begins to answer; "noisy_max" needs none."""
        if self.rule == "noisy_max" or not isinstance(plan.guarantee, ApproxDP):
            return ()
        move = 2 if plan.relation == "substitute" else 1
        replies = move * (StableRelease(plan.guarantee.epsilon, plan.guarantee.delta).threshold + 1)
        return votes_apart(schema, self.column, plan, sorted({0, 1, *range(max(replies - 3, 0), replies + 3)}))
