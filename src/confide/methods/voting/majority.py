"""Which of two levels most records have: one answer, by the rule that errs least at the guarantee.

Guarantee: (epsilon, delta), or epsilon alone, add-remove or substitute, single records. What leaves is one of three outcomes whose
probabilities depend on the gap between two exact counts, which one record moves by at most 1 (add-remove) or 2 (substitute); the proof is
in `confide.methods.voting.rules`. Draws are exact: Bernoulli with rational probabilities, and two-sided geometric noise in the tests.

Interval: none; the chances of a wrong answer at each gap are exact and public.
Source: the optimal rule is derived in confide; the others after Dwork, Lei 2009 and Redberg, Zhu, Wang 2023, corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.cell_sums import CellCounts, CellIndex
from confide.aggregates.cells.crossing import Crossing
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.methods.voting.ballots import Ballots, ColumnVote, ballots, votes_apart
from confide.methods.voting.rules import VoteRule, checked_rule, vote_rule
from confide.methods.voting.winner import Vote
from confide.protocol import Opaque, Plan, Proved, Question, Release, Source

__all__ = ["Majority"]

_PROOF = "chances of each answer at neighbouring gaps: confide.methods.voting.rules"
_FARTHEST = 400
_SILENT = "the votes were too near to each other for this rule to answer; ask again with a larger budget, or with rule='optimal'"


@dataclass(frozen=True)
class Majority(ColumnVote):
    """The majority of a column of two levels.

    column: categorical of two levels, or cf.Integer of two values; records without a value have no vote. rule: "optimal" (always answers),
    "noisy_max" (Laplace noise on both counts; pure), "distance" (classic propose-test-release) or "generalized"; the last two may give no
    answer.

    >>> import confide as cf
    >>> schema = cf.Schema({"vote": cf.Categorical(["no", "yes"])})
    >>> data = cf.read({"vote": ["yes"] * 60 + ["no"] * 40}, schema)
    >>> cf.infer(cf.release(Majority("vote"), data, cf.PureDP(1.0), ledger=None)).winner
    'yes'
    """

    column: str
    rule: str = "optimal"

    name: ClassVar[str] = "majority"
    source: ClassVar[str] = "optimal (epsilon, delta) rule, derived in confide; report noisy max; propose-test-release"
    native: ClassVar[str] = "ApproxDP"
    intervals: ClassVar[str] = "no interval; exact chances of a wrong answer at each gap"

    def __post_init__(self) -> None:
        checked_rule(self.rule)

    def about(self, schema: Any) -> Crossing:
        ballot = ballots(schema, self.column)
        if ballot.cells((0,)) != 2:
            raise PlanError(
                f"a majority is between two levels, and {self.column!r} has {ballot.cells((0,))}; write "
                f"cf.voting.plurality({self.column!r}, ...)"
            )
        return ballot

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One answer. Raises `PrivacyError` for a rule whose test needs a delta."""
        ballot = self.about(schema)
        labels = ballot.attributes[0].labels
        proved = Proved.of(
            privacy, self, schema, kinds=(PureDP, ApproxDP), who="a majority vote", instead="take cf.voting.plurality"
        )
        rule = vote_rule(self.rule, proved.level, proved.relation)
        reach = np.arange(1, 100_000)
        chances = rule.chances(reach)
        sure = np.flatnonzero(chances.wrong + chances.silent <= 0.01)
        said = f"right with probability .99 from {reach[sure[0]]:,} votes between the two on" if len(sure) else ""
        return Plan.of(
            self,
            schema,
            proved,
            Opaque("answer", proved.level, _PROOF),
            {"answer": CellCounts(CellIndex(ballot, (0,)))},
            n=n,
            constants={"rule": self.rule, "levels": list(labels)},
            target=f"the more frequent of {' and '.join(labels)} in {self.column}",
            covers=self.intervals,
            notes=(said,) if said else (),
        )

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many answers, (runs, 1)."""
        (counts,) = source.aggregate(plan.statistic("answer"))
        gap = int(counts[0]) - int(counts[1])
        rule, leads = self._rule(plan), 1 if gap >= 0 else 2
        wrong = Fraction(float(rule.wrong(np.array([float(abs(gap))]))[0]) if gap else 0.5)

        def answers(runs: int) -> NDArray[Any]:
            # both are drawn in any case
            silent = ~rule.test.replies(rule.distance(gap), noise, runs) if rule.test is not None else False
            errs = np.asarray(noise.bernoulli(wrong, runs), dtype=bool)
            return np.where(silent, 0, np.where(errs, 3 - leads, leads)).astype(object)[:, None]

        return answers

    def _rule(self, plan: Plan) -> VoteRule:
        level = plan.guarantee
        assert isinstance(level, PureDP | ApproxDP)
        return vote_rule(self.rule, level, plan.relation)

    def table(self, release: Release, about: Crossing, question: Question) -> Vote:
        answer = int(release["answer"].values[0])
        rule, gaps = self._rule(release.plan), np.arange(_FARTHEST + 1)
        chances = rule.chances(gaps)
        return Vote.of(
            release,
            response=self.column,
            label=None if answer == 0 else about.attributes[0].labels[answer - 1],
            rule=self.rule,
            gaps=gaps.astype(np.float64),
            wrong=chances.wrong,
            silent=chances.silent,
            flags=("no_interval",),
            status="ok" if answer else "no_reply",
            reason="" if answer else _SILENT,
        )

    def worst_data(self, plan: Plan, schema: Any) -> Iterable[tuple[Ballots, Ballots]]:
        """Gaps where the rule begins to answer, and where it begins to be sure."""
        rule = self._rule(plan)
        chances = rule.chances(np.arange(_FARTHEST))
        sure = int(np.argmax(chances.wrong + chances.silent < 0.01))
        replies = int(np.argmax(chances.silent < 0.5))
        gaps = {0, 1, 2, 3, *range(max(replies - 3, 0), replies + 2), sure}
        return votes_apart(schema, self.column, plan, sorted(gaps))
