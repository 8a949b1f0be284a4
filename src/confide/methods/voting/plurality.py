"""Which of two or several levels most records have.

- "noisy_max": mu-GDP with Gaussian noise, or epsilon with Laplace noise where a pure guarantee is asked for, add/remove or
  substitution. There is one count for each level; a record moves one of them by 1 (a replaced one two: sqrt(2), and 2 in l1). All noisy
  counts are released, because they cost what the largest alone would.
- "distance": (epsilon, delta); the winner itself, or nothing. D = max(ceil(g/m) - 1, 0), with g the gap between the two most frequent
  levels and m = 1 (add/remove) or 2 (substitution). A record moves g by at most m, and D is 0 wherever one record makes or breaks a tie
  (`StableRelease`).
- "optimal", between two levels alone: epsilon or (epsilon, delta). It always answers and errs least of all rules that keep the
  guarantee.
- "generalized", between two levels alone: (epsilon, delta). One of three outcomes is released, whose probabilities depend on the gap
  between two exact counts, which one record moves by at most m. The proof is in `confide.methods.voting.rules`.

Draws are exact: Bernoulli with rational probabilities, and two-sided geometric noise in the tests.

Where no rule is named it is "optimal" between two levels under epsilon or (epsilon, delta), where at every gap no other is right more
often, and "noisy_max" elsewhere.

Answer of "noisy_max": the level with the largest count after noise. The p-value of "another level has at least as many" is (C - 1) P(N
- N' >= lead), N, N' two numbers of the noise. If another level has the most votes, some level leads it by noise alone, and there are C
- 1 that may. Interval: none of the winner; counts have theirs in `cf.tables.counts`. For a rule between two the probabilities of a
wrong answer at each gap are exact and public, and in the result. Sources: report noisy max (Dwork, Roth 2014); Dong, Roth, Su 2022;
Dwork, Lei 2009; Redberg, Zhu, Wang 2023, corrected; the optimal rule is derived in confide.

The answer of a vote: the winner, and how likely this kind of vote is wrong at each gap, which is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Allowance, Meter, Method, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source
from confide.core.allowance import EITHER
from confide.errors import NoResult, PlanError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.methods.ptr.classic import StableRelease
from confide.methods.voting.rules import (
    BETWEEN_TWO,
    RULES,
    Ballots,
    ColumnVote,
    VoteRule,
    ballots,
    checked_rule,
    laplace_minority,
    vote_rule,
    votes_apart,
)
from confide.results.base import BaseResult
from confide.results.pages.content import LITERAL, Column, folded, thousands
from confide.sums.cells.cell_sums import CellCounts, CellIndex, Crossing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


#: Gaps of the printed table.
PRINTED_GAPS = (0, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answered(BaseResult):
    """The answer of a vote.

    Parameters
    ----------
    label : str or None
        The winner. None where the rule did not answer.
    """

    label: str | None

    family: ClassVar[str] = "vote"

    @property
    def winner(self) -> str:
        """The level with most votes according to this vote; `NoResult` where it did not answer."""
        if self.label is None:
            raise NoResult(
                "the vote gave no answer",
                "ask again with a larger budget, or without a rule: the one that is taken then always answers",
            )
        return self.label

    def head(self) -> tuple[tuple[str, str], ...]:
        return (("Winner", "no answer" if self.label is None else self.label),)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Vote(Answered):
    """The winner of a vote between two, and the exact probabilities of its rule.

    Parameters
    ----------
    rule : str
        Name of the rule.
    gaps : array of float
        Differences between the two numbers of votes.
    wrong : array of float
        Probability of the wrong answer at each gap, whatever the records are.
    silent : array of float
        Probability of no answer at each gap, whatever the records are.
    """

    rule: str
    gaps: Array
    wrong: Array
    silent: Array

    rows_are: ClassVar[str] = "gap"
    rows_called: ClassVar[str] = "gaps"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """The rule's probabilities by gap."""
        return (
            Column("difference", self.gaps, "number"),
            Column("p_correct", np.maximum(1 - self.wrong - self.silent, 0.0), "share"),
            Column("p_wrong", self.wrong, "share"),
            Column("p_none", self.silent, "share"),
        )

    @property
    def shown(self) -> Sequence[int]:
        """The rows of a few round gaps."""
        return [int(place) for place in np.flatnonzero(np.isin(self.gaps, PRINTED_GAPS))]

    def head(self) -> tuple[tuple[str, str], ...]:
        return (*super().head(), ("Rule", self.rule))

    def notes(self) -> tuple[tuple[str, str], ...]:
        return (
            ("Chances", "of this rule at a number of votes between the two, which is secret; not of these records"),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        return {"winner": self.label, "rule": self.rule}

    def draw(self, ax: Axes, alpha: float) -> None:
        draw_errors(ax, {self.rule: (self.gaps, self.wrong, self.silent)})

    def picture(self, alpha: float) -> str:
        return "Lines: probability that a vote of this kind gives a wrong label, or none, by the number of votes between the two."


def draw_errors(ax: Axes, rules: dict[str, tuple[Array, Array, Array]]) -> None:
    """Probability of an error by gap, of one rule or several: a line each for wrong or none, and a dotted one for wrong alone."""
    from confide.results.pages.plots import LINE_COLORS

    farthest = 1.0
    for color, (name, (gaps, wrong, silent)) in zip(LINE_COLORS, rules.items(), strict=False):
        ax.plot(gaps, np.maximum(wrong + silent, 1e-12), color=color, label=name)
        farthest = max(farthest, float(np.max(gaps[wrong + silent > _RARE], initial=0.0)))
        if np.any(silent > 0):
            ax.plot(gaps, np.maximum(wrong, 1e-12), color=color, linestyle=":", label=f"{name}: wrong label")
    ax.set_yscale("log")
    ax.set_ylim(_RARE, 1)
    ax.set_xlim(0.0, 1.05 * farthest)
    ax.set_xlabel("votes between the two")
    ax.set_ylabel("probability of a wrong label or of none")


def draw_votes(ax: Axes, levels: Sequence[str], votes: Array, half: float, words: str) -> None:
    """A bar for each level, with its number at its end."""
    from confide.results.pages.plots import COLORS, INK, whiskers

    places = np.arange(len(levels))
    ax.bar(places, votes, facecolor=COLORS[0], edgecolor=INK, linewidth=0.8)
    if half:
        whiskers(ax, places, votes, votes - half, votes + half)
    for place, vote in zip(places, votes, strict=True):
        top = (place, max(vote, 0.0) + half)
        ax.annotate(f"{vote:,.0f}", top, (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8)
    width = max(60 // max(len(levels), 1), 6)
    ax.set_xticks(places, [folded(level, width) for level in levels], **LITERAL)
    ax.set_ylabel(words)
    ax.margins(y=0.12)
    thousands(ax.yaxis)


def errors(
    gaps: Iterable[int],
    *,
    privacy: PureDP | ApproxDP,
    rules: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The exact probabilities of a wrong answer and of none in a vote between two.

    Parameters
    ----------
    gaps : iterable of int
        Differences between the two numbers of votes.
    privacy : PureDP or ApproxDP
        Guarantee of the vote.
    rules : sequence of str, optional
        Rules to compare. By default all that the guarantee allows.

    Returns
    -------
    DataFrame
        One row for each rule and gap, with the columns rule, gap, p_correct,
        p_wrong and p_none.

    Raises
    ------
    PlanError
        `privacy` is not a PureDP or ApproxDP guarantee.

    Examples
    --------
    >>> import confide as cf
    >>> found = errors([0, 5, 20], privacy=cf.ApproxDP(1.0, 1e-6), rules=["optimal", "noisy_max"])
    >>> found.p_wrong.round(5).tolist()
    [0.5, 0.00337, 0.0, 0.5, 0.01179, 0.0]
    """
    at = np.array([int(gap) for gap in gaps])
    if not isinstance(privacy, PureDP | ApproxDP):
        raise PlanError(f"chances are known at PureDP and ApproxDP, got {privacy}", "write cf.ApproxDP(1.0, 1e-6)")
    frames = []
    for name in rules or (RULES if isinstance(privacy, ApproxDP) else RULES[:2]):
        found = vote_rule(name, privacy, privacy.relation or "add-remove").chances(at)
        frames.append(
            pd.DataFrame(
                {"rule": name, "gap": at, "p_correct": found.right, "p_wrong": found.wrong, "p_none": found.silent}
            )
        )
    return pd.concat(frames, ignore_index=True)


def plot_errors(
    *, privacy: PureDP | ApproxDP, rules: Sequence[str] | None = None, farthest: int = 60, ax: Any = None
) -> Axes:
    """Plot the probabilities of an error against the gap, for several rules.

    Parameters
    ----------
    privacy : PureDP or ApproxDP
        Guarantee of the vote.
    rules : sequence of str, optional
        Rules to compare. By default all that the guarantee allows.
    farthest : int, default 60
        Largest gap that is drawn.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes of the plot.

    Examples
    --------
    >>> import confide as cf
    >>> plot_errors(privacy=cf.ApproxDP(1.0, 1e-6)).get_xlabel()
    'votes between the two'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6.4, 4.4), layout="constrained").subplots()
    frame = errors(range(farthest + 1), privacy=privacy, rules=rules)
    lines = {
        name: tuple(own[key].to_numpy() for key in ("gap", "p_wrong", "p_none"))
        for name, own in frame.groupby("rule", sort=False)
    }
    draw_errors(ax, lines)  # type: ignore[arg-type]
    ax.legend(frameon=False)
    return ax  # type: ignore[no-any-return]


_PROOF = "chances of each answer at neighboring gaps"
_FARTHEST = 400
_RARE = 1e-9
_SILENT = (
    "the two most frequent levels were too near to each other for this rule to answer; ask again with a larger budget, or leave the rule "
    "out"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PluralityVote(Answered):
    """The winner of a vote, and with rule "noisy_max" the released counts.

    Parameters
    ----------
    levels : tuple of str
        The levels.
    votes : array of float
        Estimated votes of each level. NaN with the rule "distance".
    noise_sd : float
        SD of the noise in each count. NaN with the rule "distance".
    pvalue : float
        p-value of "another level has at least as many votes".
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
            Column("term", self.levels, "name"),
            Column("votes", self.votes),
            Column("noise_sd", np.full(len(self.levels), self.noise_sd), "std_err"),
        )

    def head(self) -> tuple[tuple[str, str], ...]:
        shown = () if np.isnan(self.pvalue) else (("P(another leads)", f"{self.pvalue:.3g}"),)
        return (*super().head(), *shown)

    def more(self, alpha: float) -> dict[str, Any]:
        return {"winner": self.label, "pvalue": self.pvalue}

    def draw(self, ax: Any, alpha: float) -> None:
        draw_votes(
            ax, self.levels, np.nan_to_num(self.votes), 1.96 * np.nan_to_num(self.noise_sd), "DP number of votes"
        )

    def picture(self, alpha: float) -> str:
        return "Bars: DP numbers of votes. Whiskers: 1.96 standard deviations of their noise."


@dataclass(frozen=True)
class Plurality(ColumnVote):
    """The level of a column that most records have.

    Estimates the most frequent of two or more levels. Records without a value
    have no vote.

    Parameters
    ----------
    column : str
        Categorical column, or an integer column of at most 256 values.
    rule : {"noisy_max", "distance", "optimal", "generalized"}, optional
        "noisy_max" always answers. "distance" gives the exact winner or no
        answer, and needs a delta. Between two levels, "optimal" always answers,
        and "generalized" may give no answer and needs a delta. By default the
        rule that errs least.

    Notes
    -----
    Guarantee: Gaussian DP, or pure DP where it is asked for, with "noisy_max";
    (epsilon, delta) with "distance" and "generalized"; epsilon or (epsilon,
    delta) with "optimal". Add/remove or substitution. One record moves one
    count by 1 (a substituted record moves two). The module docstring has the
    sensitivities.

    There is no interval. The result has a p-value of "another level has at
    least as many votes", or the exact probabilities of a wrong answer at each
    gap.

    References
    ----------
    Dwork, Roth 2014; Dong, Roth, Su 2022; Dwork, Lei 2009; Redberg, Zhu, Wang
    2023, corrected.

    Examples
    --------
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
                f"the rule {self.rule!r} is between two levels, and {self.column!r} has {levels}",
                f"write cf.voting.Plurality({self.column!r})",
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
            "intervals_for": self.intervals,
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
        return Plan.of(self, schema, proved, OpaqueRelease("answer", proved.level, proof), {"answer": counts}, **facts)

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

    def table(self, release: Release, about: Crossing, options: ResultOptions) -> PluralityVote | Vote:
        labels = about.attributes[0].labels
        if _rule_of(release.plan) == "noisy_max":
            return self._counted(release, labels)
        answer = int(release["answer"].values[0])
        said: dict[str, Any] = {
            "response": self.column,
            "label": labels[answer - 1] if answer else None,
            "flags": ("no_interval",),
            "status": "valid" if answer else "declined",
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
    return (f"right with probability 0.99 from {reach[sure[0]]:,} votes between the two on",) if len(sure) else ()
