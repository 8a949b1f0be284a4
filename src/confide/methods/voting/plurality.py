"""Which of two or several levels most records have.

Rules. "noisy_max": mu-GDP with Gaussian noise, or epsilon with Laplace noise where a pure guarantee is asked for, add-remove or substitute.
One count for each level; a record moves one of them by 1 (a replaced one two: sqrt(2), and 2 in l1). All noisy counts leave: they cost what
the largest alone would. "distance": (epsilon, delta); the winner itself, or nothing. D = max(ceil(g/m) - 1, 0), g the gap between the two
most frequent levels and m = 1 (add-remove) or 2: a record moves g by at most m, and D is 0 wherever one record makes or breaks a tie
(`StableRelease`). Between two levels alone: "optimal", epsilon or (epsilon, delta), which always answers and errs least of all rules that
keep the guarantee, and "generalized", (epsilon, delta): one of three outcomes leaves, whose probabilities depend on the gap between two
exact counts, which one record moves by at most m; the proof is in `confide.methods.voting.rules`. Draws are exact: Bernoulli with rational
probabilities, and two-sided geometric noise in the tests.

Where no rule is named it is "optimal" between two levels under epsilon or (epsilon, delta), where at every gap no other is right more
often, and "noisy_max" elsewhere.

Answer of "noisy_max": the level with the largest noisy count. p-value of "another level has at least as many": (C - 1) P(N - N' >= lead),
N, N' two numbers of the noise: if another level has the most votes, some level leads it by noise alone, and there are C - 1 that may.
Interval: none of the winner; counts have theirs in `cf.tables.counts`. Of a rule between two the chances of a wrong answer at each gap are
exact and public, and in the result. Sources: report noisy max (Dwork, Roth 2014); Dong, Roth, Su 2022; Dwork, Lei 2009; Redberg, Zhu, Wang
2023, corrected; the optimal rule is derived in confide.
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
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.methods.ptr.classic_ptr import StableRelease
from confide.methods.voting.ballots import Ballots, ColumnVote, ballots, votes_apart
from confide.methods.voting.rules import BETWEEN_TWO, VoteRule, checked_rule, laplace_minority, vote_rule
from confide.methods.voting.winner import Answered, Vote
from confide.protocol import Allowance, Meter, Method, Opaque, Plan, Proved, Question, Release, Source
from confide.protocol.spending.allowance import EITHER
from confide.results.base import Column

__all__ = ["Plurality", "PluralityVote"]

_PROOF = "chances of each answer at neighbouring gaps"
_FARTHEST = 400
_SILENT = (
    "the two most frequent levels were too near to each other for this rule to answer; ask again with a larger budget, or leave the rule "
    "out"
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
    """The most frequent level of a column of two or more.

    column: categorical, or cf.Integer of at most 256 values; records without a value have no vote. rule: "noisy_max" (always answers),
    "distance" (the winner itself, or nothing; needs a delta), or between two levels "optimal" (always answers; epsilon or (epsilon, delta))
    or "generalized" (may give no answer; needs a delta); left out, the one that errs least.

    >>> import confide as cf
    >>> schema = cf.Schema({"vote": cf.Categorical(["a", "b", "c"]), "yes": cf.Integer(0, 1)})
    >>> data = cf.read({"vote": ["b"] * 60 + ["a"] * 30 + ["c"] * 10, "yes": [1] * 70 + [0] * 30}, schema)
    >>> found = cf.infer(cf.release(Plurality("vote"), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1)))
    >>> found.winner, found.pvalue < 1e-6
    ('b', True)
    >>> cf.infer(cf.release(Plurality("yes"), data, cf.PureDP(1.0), ledger=None)).winner
    '1'
    """

    column: str
    rule: str | None = None

    name: ClassVar[str] = "plurality"
    example: ClassVar[str] = '"vote"'
    source: ClassVar[str] = (
        "report noisy max (Dwork, Roth 2014); optimal rule between two, derived in confide; distance to a tie (Dwork, Lei 2009)"
    )
    native: ClassVar[str] = EITHER
    intervals: ClassVar[str] = (
        "no interval; p-value of another level having at least as many votes, or exact chances of a wrong answer at each gap"
    )

    def __post_init__(self) -> None:
        if self.rule is not None:
            checked_rule(self.rule)

    def about(self, schema: Any) -> Crossing:
        ballot = ballots(schema, self.column)
        levels = ballot.cells((0,))
        if levels < 2:
            raise PlanError(f"a vote is between at least two levels, and {self.column!r} has one")
        if self.rule in BETWEEN_TWO and levels != 2:
            raise PlanError(
                f"the rule {self.rule!r} is between two levels, and {self.column!r} has {levels}; "
                f"write cf.voting.Plurality({self.column!r})"
            )
        return ballot

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Noisy counts of all levels, or one answer. Raises `PrivacyError` for a rule whose test needs a delta."""
        ballot = self.about(schema)
        labels = ballot.attributes[0].labels
        counts = CellCounts(CellIndex(ballot, (0,)))
        best = "optimal" if len(labels) == 2 and isinstance(privacy, PureDP | ApproxDP) else "noisy_max"
        rule = self.rule or best
        facts: dict[str, Any] = {
            "n": n,
            "constants": {"rule": rule},
            "target": f"the most frequent of {', '.join(labels)} in {self.column}",
            "covers": self.intervals,
        }
        if rule == "noisy_max":
            allowance = Allowance.of(privacy, self, schema)
            return Plan.of(
                self, schema, allowance, allowance.spend("votes", counts, Fraction(1)), {"votes": counts}, **facts
            )
        kinds = (ApproxDP,) if rule == "distance" else (PureDP, ApproxDP)
        proved = Proved.of(
            privacy, self, schema, kinds=kinds, who=f"the rule {rule!r}", instead="take rule='noisy_max'"
        )
        proof = StableRelease.proof if rule == "distance" else _PROOF
        if rule != "distance":
            facts["notes"] = _sure(vote_rule(rule, proved.level, proved.relation))
        return Plan.of(self, schema, proved, Opaque("answer", proved.level, proof), {"answer": counts}, **facts)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy counts; or the number of the winner from 1 on, 0 for no answer."""
        if _rule_of(plan) == "noisy_max":
            return Method.draw(self, source, plan, meter)
        return super().draw(source, plan, meter)

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many answers of a rule that gives one, (runs, 1)."""
        (counts,) = source.aggregate(plan.statistic("answer"))
        return (
            self._nearest(counts, plan, noise) if _rule_of(plan) == "distance" else self._between(counts, plan, noise)
        )

    def _nearest(self, counts: NDArray[Any], plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """Of the rule "distance"."""
        level = plan.guarantee
        assert isinstance(level, ApproxDP)
        votes = [int(one) for one in counts]
        order = sorted(range(len(votes)), key=lambda j: (-votes[j], j))
        move = 2 if plan.relation == "substitute" else 1
        distance = max(-(-(votes[order[0]] - votes[order[1]]) // move) - 1, 0)
        test = StableRelease(level.epsilon, level.delta)
        return lambda runs: np.where(test.replies(distance, noise, runs), order[0] + 1, 0).astype(object)[:, None]

    def _between(self, counts: NDArray[Any], plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """Of a rule between two."""
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
        return vote_rule(_rule_of(plan), level, plan.relation)

    def table(self, release: Release, about: Crossing, question: Question) -> PluralityVote | Vote:
        labels = about.attributes[0].labels
        if _rule_of(release.plan) == "noisy_max":
            return self._counted(release, labels)
        answer = int(release["answer"].values[0])
        said: dict[str, Any] = {
            "response": self.column,
            "label": labels[answer - 1] if answer else None,
            "flags": ("no_interval",),
            "status": "ok" if answer else "no_reply",
            "reason": "" if answer else _SILENT,
        }
        if len(labels) > 2:
            nothing = np.full(len(labels), nan)
            return PluralityVote.of(release, levels=labels, votes=nothing, noise_sd=nan, pvalue=nan, **said)
        gaps = np.arange(_FARTHEST + 1)
        chances = self._rule(release.plan).chances(gaps)
        return Vote.of(
            release,
            rule=_rule_of(release.plan),
            gaps=gaps.astype(np.float64),
            wrong=chances.wrong,
            silent=chances.silent,
            **said,
        )

    def _counted(self, release: Release, labels: tuple[str, ...]) -> PluralityVote:
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
        """Ties, gaps where a rule begins to answer, and where it begins to be sure; "noisy_max" needs none."""
        if _rule_of(plan) == "noisy_max":
            return ()
        if _rule_of(plan) == "distance":
            assert isinstance(plan.guarantee, ApproxDP)
            move = 2 if plan.relation == "substitute" else 1
            replies = move * (StableRelease(plan.guarantee.epsilon, plan.guarantee.delta).threshold + 1)
            return votes_apart(schema, self.column, plan, sorted({0, 1, *range(max(replies - 3, 0), replies + 3)}))
        chances = self._rule(plan).chances(np.arange(_FARTHEST))
        sure = int(np.argmax(chances.wrong + chances.silent < 0.01))
        replies = int(np.argmax(chances.silent < 0.5))
        gaps = {0, 1, 2, 3, *range(max(replies - 3, 0), replies + 2), sure}
        return votes_apart(schema, self.column, plan, sorted(gaps))


def _rule_of(plan: Plan) -> str:
    """The rule of a plan."""
    return str(plan.constants["rule"])


def _sure(rule: VoteRule) -> tuple[str, ...]:
    """From which gap on a rule between two is right, in words."""
    reach = np.arange(1, 100_000)
    chances = rule.chances(reach)
    sure = np.flatnonzero(chances.wrong + chances.silent <= 0.01)
    return (f"right with probability .99 from {reach[sure[0]]:,} votes between the two on",) if len(sure) else ()
