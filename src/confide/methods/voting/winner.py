"""The answer of a vote: who won, and how likely this kind of vote is wrong at each gap, which is public."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._lazy import later
from confide.errors import NoResult, PlanError
from confide.guarantees import ApproxDP, PureDP
from confide.methods.voting.rules import RULES, vote_rule
from confide.results.base import BaseResult, Column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["PRINTED_GAPS", "Answered", "Vote", "draw_errors", "errors", "plot_errors"]


#: Gaps of the printed table.
PRINTED_GAPS = (0, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answered(BaseResult):
    """What a vote answered. label: the winner, None where the rule did not answer."""

    label: str | None

    family: ClassVar[str] = "vote"

    @property
    def winner(self) -> str:
        """The level that most records have, as far as this vote says; `NoResult` where it did not answer."""
        if self.label is None:
            raise NoResult(
                "the vote gave no answer; ask again with a larger budget, or without a rule: the one that is taken then always answers"
            )
        return self.label

    def head(self) -> tuple[tuple[str, str], ...]:
        return (("Winner", "no answer" if self.label is None else self.label),)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Vote(Answered):
    """The winner of a vote between two, and the exact chances of the rule behind it.

    label: the winner, None where the rule did not answer; rule; gaps, wrong, silent (gaps,): the chance of the wrong answer and of none at
    a number of votes between the two, whatever the records are.
    """

    rule: str
    gaps: Array
    wrong: Array
    silent: Array

    rows_are: ClassVar[str] = "gap"
    rows_called: ClassVar[str] = "gaps"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """The rule's chances by gap."""
        return (
            Column("gap", self.gaps, "number", head="gap"),
            Column("right", np.maximum(1 - self.wrong - self.silent, 0.0), "share", head="right"),
            Column("wrong", self.wrong, "share", head="wrong"),
            Column("silent", self.silent, "share", head="no answer"),
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
        return "How often a vote of this kind is wrong, or gives no answer, by the number of votes between the two."


def draw_errors(ax: Axes, rules: dict[str, tuple[Array, Array, Array]]) -> None:
    """Error against gap, of one rule or several: what is wrong or silent, by a line each, and what is wrong alone, dotted."""
    colours = ("#1f4e79", "#d1772e", "#3a7d44", "#8a4f9e", "#b8860b")
    for colour, (name, (gaps, wrong, silent)) in zip(colours, rules.items(), strict=False):
        ax.plot(gaps, np.maximum(wrong + silent, 1e-12), color=colour, label=name)
        if np.any(silent > 0):
            ax.plot(gaps, np.maximum(wrong, 1e-12), color=colour, linestyle=":", label=f"{name}: wrong answers")
    ax.set_yscale("log")
    ax.set_ylim(1e-9, 1)
    ax.set_xlabel("votes between the two")
    ax.set_ylabel("chance of the wrong answer or of none")
    ax.legend(frameon=False)


def errors(
    gaps: Iterable[int],
    *,
    privacy: PureDP | ApproxDP,
    rules: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Exact chances of a wrong answer and of none of a vote between two, by rule and gap: columns rule, gap, right, wrong, silent.

    gaps: numbers of votes between the two; rules: all that the guarantee allows when left out.

    >>> import confide as cf
    >>> found = errors([0, 5, 20], privacy=cf.ApproxDP(1.0, 1e-6), rules=["optimal", "noisy_max"])
    >>> found.wrong.round(5).tolist()
    [0.5, 0.00337, 0.0, 0.5, 0.01179, 0.0]
    """
    at = np.array([int(gap) for gap in gaps])
    if not isinstance(privacy, PureDP | ApproxDP):
        raise PlanError(f"chances are known at PureDP and ApproxDP, got {privacy}; write cf.ApproxDP(1.0, 1e-6)")
    frames = []
    for name in rules or (RULES if isinstance(privacy, ApproxDP) else RULES[:2]):
        found = vote_rule(name, privacy, privacy.relation or "add-remove").chances(at)
        frames.append(
            pd.DataFrame({"rule": name, "gap": at, "right": found.right, "wrong": found.wrong, "silent": found.silent})
        )
    return pd.concat(frames, ignore_index=True)


def plot_errors(
    *, privacy: PureDP | ApproxDP, rules: Sequence[str] | None = None, farthest: int = 60, ax: Any = None
) -> Axes:
    """Error against gap, of several rules at one guarantee; returns the Axes.

    >>> import confide as cf
    >>> plot_errors(privacy=cf.ApproxDP(1.0, 1e-6)).get_xlabel()
    'votes between the two'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6.4, 4.4), layout="constrained").subplots()
    frame = errors(range(farthest + 1), privacy=privacy, rules=rules)
    lines = {
        name: tuple(own[key].to_numpy() for key in ("gap", "wrong", "silent"))
        for name, own in frame.groupby("rule", sort=False)
    }
    draw_errors(ax, lines)  # type: ignore[arg-type]
    return ax  # type: ignore[no-any-return]
