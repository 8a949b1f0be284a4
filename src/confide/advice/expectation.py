"""What to expect of each method of a task, and what that advises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, isnan, log, nan, sqrt
from typing import Any

import pandas as pd

from confide._lazy import later
from confide.guarantees import Guarantee
from confide.protocol.serialization.codec import plain

__all__ = ["Advice", "Expectation", "mean_ratio", "ranked"]

stats = later("scipy.stats")

# A dozen runs know a standard error to about a fifth.
_TELLS = 1.2
# As in a plan, which says "ok likely" from here on.
_MOSTLY = 0.8
_NOTHING = "No method is expected to give intervals that hold for all numbers here"
_REMEDY = "; more records, fewer terms, tighter bounds or a larger budget would help"
# Intervals are to hold in about so many cases; fewer by less chance than this is a miss.
_COVERS, _CHANCE = 0.93, 1e-3


@dataclass(frozen=True)
class Expectation:
    """What to expect of one method. error: predicted standard errors, one for each number, in the data's units, all NaN where there
    are none; ratio: the same over the least, as a geometric mean; replies: the share of runs that gave numbers; intervals: the share of
    numbers that had an interval; tested: whether it rests on a private test or certificate that may fail; problem: why it cannot be asked;
    coverage: the share of `trials` intervals that held the method's own reference; width: of the intervals, over that of intervals
    without privacy noise; halves: their median half-widths, one for each number, in the data's units. NaN where there are none.
    """

    method: str
    settings: str
    error: tuple[float, ...]
    ratio: float
    replies: float
    tested: bool
    intervals: float
    problem: str = ""
    coverage: float = nan
    trials: int = 0
    width: float = nan
    halves: tuple[float, ...] = ()

    @property
    def misses(self) -> bool:
        """Whether so many intervals missed that it is no chance: less than one in a thousand, if each held in .93 of the cases."""
        hits = round(self.coverage * self.trials) if self.trials else 0
        return bool(self.trials and stats.binom.cdf(hits, self.trials, _COVERS) < _CHANCE)

    @property
    def valid(self) -> bool:
        """Whether it may be expected to reply, with intervals that hold what they name."""
        return not self.problem and self.replies >= _MOSTLY and self.intervals >= _MOSTLY and not self.misses

    @property
    def score(self) -> float:
        """Errors and, where there are intervals, their width, as a geometric mean."""
        return self.ratio if isnan(self.width) else sqrt(self.ratio * self.width)

    @property
    def label(self) -> str:
        return self.method + (f"({self.settings})" if self.settings else "")


@dataclass(frozen=True)
class Advice:
    """Expectations, the least errors first. `print(advice)` says them in words; `best` is the method to take.

    names: what the predicted standard errors are of; without_privacy: the standard errors that sampling alone leaves.
    """

    task: str
    formula: str
    n: int
    privacy: Guarantee
    names: tuple[str, ...]
    without_privacy: tuple[float, ...]
    expectations: tuple[Expectation, ...]
    assumes: str

    @property
    def alike(self) -> tuple[Expectation, ...]:
        """The methods that the runs cannot tell from the best one, itself included."""
        return _alike(self.expectations)

    @property
    def best(self) -> Expectation:
        """The first: of the methods whose intervals hold, one with the least errors and widths, as asked, without a test."""
        return self.expectations[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice, and what it says of methods that rest on a test."""
        ranked = [one for one in self.expectations if isfinite(one.ratio)]
        if not ranked:
            return ("No method gives numbers here; ask for fewer terms, more records or a larger budget.",)
        best = self.best
        cost = mean_ratio(best.error, self.without_privacy)
        size = "as large as those without privacy" if cost < 1.1 else f"{cost:.2f} times those without privacy"
        if best.valid:
            said = [f"Take {best.label}: standard errors about {size}{_intervals(best)}."]
        else:
            remedy = _REMEDY if self.task == "linear_regression" else ""
            said = [
                f"{_NOTHING}{remedy}.",
                f"First comes {best.label}: standard errors about {size}{_intervals(best)}.",
            ]
            if best.misses:
                said.append(
                    f"The intervals of {best.label} miss: they held in {best.coverage:.0%} of {best.trials} cases; do not report them."
                )
        sharper = min((one for one in ranked if one is not best), key=lambda one: one.ratio, default=best)
        if best.valid and sharper.ratio * _TELLS < best.ratio:
            why = (
                "its intervals miss"
                if sharper.misses
                else f"it gives intervals for {sharper.intervals:.0%} of the numbers"
            )
            said.append(
                f"{sharper.label} has standard errors {sharper.ratio / best.ratio:.2f} times as large, but {why}."
            )
        others = [one.label for one in self.alike if one is not best]
        if others:
            said.append(f"So many runs cannot tell it from {', '.join(others)}.")
        free = [one for one in ranked if not one.tested]
        for one in (one for one in ranked if one.tested and (one is best or one not in self.alike)):
            if not free or one.ratio < free[0].ratio:
                said.append(
                    f"{one.label} rests on a private test and is expected to be better than any method without one."
                )
            else:
                said.append(
                    f"{one.label} rests on a private test and is expected to be worse than {free[0].label}, which needs none: "
                    f"standard errors {one.ratio / free[0].ratio:.2f} times as large."
                )
        if best.intervals < _MOSTLY:
            often = (
                "gave no intervals"
                if not best.intervals
                else f"gave intervals in {best.intervals:.0%} of the runs only"
            )
            other = next((one for one in ranked if one.intervals >= _MOSTLY), None)
            held = (
                "" if other is None or not other.misses else f", which held in {other.coverage:.0%} of the cases only"
            )
            said.append(
                f"{best.label} {often}"
                + ("." if other is None else f"; {other.label} gave them in {other.intervals:.0%}{held}.")
            )
        return tuple(said)

    def to_frame(self) -> pd.DataFrame:
        """One row for each method: ratio, replies, tested, intervals, and the predicted standard error of each number."""
        rows = [
            {
                "method": one.label,
                "ratio": one.ratio,
                "replies": one.replies,
                "tested": one.tested,
                "intervals": one.intervals,
                "coverage": one.coverage,
                "width": one.width,
                **dict(zip(self.names, one.error, strict=True)),
                "problem": one.problem,
            }
            for one in self.expectations
        ]
        return pd.DataFrame(rows).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; what is not finite is None."""
        body = {
            "task": self.task,
            "formula": self.formula,
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "assumes": self.assumes,
            "names": self.names,
            "without_privacy": self.without_privacy,
            "advice": self.sentences,
            "methods": [vars(one) for one in self.expectations],
        }
        return dict(plain(body))

    def __str__(self) -> str:
        width = max(len(one.label) for one in self.expectations) + 2
        shown = self.names[:5]
        cells = [max(len(name), 9) + 2 for name in shown]
        head = f"{'':<{width}}{'ratio':>8}{'replies':>9}{'intervals':>11}{'coverage':>10}{'width':>8}" + "".join(
            f"{name:>{cell}}" for name, cell in zip(shown, cells, strict=True)
        )
        lines = [f"{self.task} of {self.formula!r} at {self.privacy}, n = {self.n:,}", *self.sentences, "", head]
        bare = "".join(f"{v:>{cell}.3g}" for v, cell in zip(self.without_privacy, cells, strict=False))
        lines.append(
            f"{'without privacy':<{width}}{'':>8}{'':>9}{'':>11}{'':>10}{'':>8}{bare}"[: width + 46 + sum(cells)]
        )
        for one in self.expectations:
            if one.problem:
                lines.append(f"{one.label:<{width}}cannot be asked: {one.problem}")
                continue
            errors = "".join(f"{v:>{cell}.3g}" for v, cell in zip(one.error, cells, strict=False))
            covers = "-" if isnan(one.coverage) else f"{one.coverage:.0%}"
            wide = "-" if isnan(one.width) else f"{one.width:.2f}"
            lines.append(
                f"{one.label:<{width}}{one.ratio:>8.2f}{one.replies:>9.0%}{one.intervals:>11.0%}{covers:>10}{wide:>8}{errors}"
            )
        more = f" (the first {len(shown)} of {len(self.names)})" if len(self.names) > len(shown) else ""
        return "\n".join([*lines, "", f"Predicted standard errors{more}; {self.assumes}"])


def _intervals(one: Expectation) -> str:
    """What to expect of the intervals, in words."""
    if not one.intervals or isnan(one.width):
        return ""
    covers = "" if isnan(one.coverage) else f", which held in {one.coverage:.0%} of the cases"
    return (
        f", intervals for {one.intervals:.0%} of the numbers, {one.width:.2f} times as wide as without privacy{covers}"
    )


def ranked(found: list[Expectation]) -> tuple[Expectation, ...]:
    """The one to take first, then the others by their errors. One with a test is first only where no other has numbers that hold."""
    free = [one for one in found if not (one.tested or one.problem or one.misses) and isfinite(one.ratio)]
    first = min(_alike(free or found) or found, key=lambda one: (sum(_doubts(one)), _doubts(one), one.score))
    return (first, *sorted((one for one in found if one is not first), key=lambda one: one.ratio))


def _alike(found: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """Of the methods that promise most, those whose scores the runs cannot tell from the least."""
    asked = [one for one in found if not one.problem and isfinite(one.ratio)]
    most = min(map(_rank, asked), default=0)
    pool = [one for one in asked if _rank(one) == most]
    least = min((one.score for one in pool), default=inf)
    return tuple(one for one in pool if one.score <= _TELLS * least)


def _rank(one: Expectation) -> int:
    """0 for a valid method, 1 where what intervals there are hold, 2 without any, 3 where they miss."""
    # a wrong interval is worse than none
    return 0 if one.valid else 3 if one.misses else 1 if one.intervals > 0 else 2


def _doubts(one: Expectation) -> tuple[bool, ...]:
    other = "add-remove" in one.settings or "substitute" in one.settings
    return (one.replies < _MOSTLY, one.intervals < _MOSTLY, one.misses, other, one.tested)


def mean_ratio(error: tuple[float, ...], base: tuple[float, ...]) -> float:
    """The geometric mean of the ratios over the numbers that have both; infinite where fewer than half of them do."""
    pairs = [(a, b) for a, b in zip(error, base, strict=True) if isfinite(a) and isfinite(b) and a > 0 and b > 0]
    if 2 * len(pairs) < len(error) or not pairs:
        return inf
    return exp(sum(log(a / b) for a, b in pairs) / len(pairs))
