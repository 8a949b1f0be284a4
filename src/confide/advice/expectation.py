"""What to expect of each method of a task, and what that advises."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, log
from typing import Any

import pandas as pd

from confide.guarantees import Guarantee

__all__ = ["Advice", "Expectation", "mean_ratio"]

# A dozen runs know a standard error to about a fifth.
_TELLS = 1.2
_MOSTLY = 0.9


@dataclass(frozen=True)
class Expectation:
    """What to expect of one method. error: predicted standard errors, one for each number, in the data's units, all NaN where there
    are none; ratio: the same over the least, as a geometric mean; replies: the share of runs that gave numbers, intervals: of those that
    gave intervals, too; tested: whether it rests on a private test or certificate that may fail; problem: why it cannot be asked.
    """

    method: str
    settings: str
    error: tuple[float, ...]
    ratio: float
    replies: float
    tested: bool
    intervals: float
    problem: str = ""

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
        """The methods whose ratios the runs cannot tell from the least one."""
        return tuple(one for one in self.expectations if one.ratio <= _TELLS and not one.problem)

    @property
    def best(self) -> Expectation:
        """Of the methods that are alike, one that gave intervals and replies, under the asked relation, without a test, if there is one."""

        def doubts(one: Expectation) -> tuple[bool, ...]:
            other = "add-remove" in one.settings or "substitute" in one.settings
            return (one.replies < _MOSTLY, one.intervals < _MOSTLY, other, one.tested)

        return min(self.alike or self.expectations, key=lambda one: (sum(doubts(one)), doubts(one), one.ratio))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice, and what it says of methods that rest on a test."""
        ranked = [one for one in self.expectations if isfinite(one.ratio)]
        if not ranked:
            return ("No method gives numbers here; ask for fewer terms, more records or a larger budget.",)
        best = self.best
        cost = mean_ratio(best.error, self.without_privacy)
        size = "as large as those without privacy" if cost < 1.1 else f"{cost:.2f} times those without privacy"
        said = [f"Take {best.label}: standard errors about {size}."]
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
            better = next((one for one in ranked if one.intervals >= _MOSTLY), None)
            said.append(
                f"{best.label} {often}"
                + ("." if better is None else f"; {better.label} gave them in {better.intervals:.0%}.")
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
                **dict(zip(self.names, one.error, strict=True)),
                "problem": one.problem,
            }
            for one in self.expectations
        ]
        return pd.DataFrame(rows).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; what is not finite is None."""
        return {
            "task": self.task,
            "formula": self.formula,
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "assumes": self.assumes,
            "names": list(self.names),
            "without_privacy": [_plain(v) for v in self.without_privacy],
            "advice": list(self.sentences),
            "methods": [
                {**vars(one), "error": [_plain(v) for v in one.error], "ratio": _plain(one.ratio)}
                for one in self.expectations
            ],
        }

    def __str__(self) -> str:
        width = max(len(one.label) for one in self.expectations) + 2
        shown = self.names[:5]
        cells = [max(len(name), 9) + 2 for name in shown]
        head = f"{'':<{width}}{'ratio':>8}{'replies':>9}{'intervals':>11}" + "".join(
            f"{name:>{cell}}" for name, cell in zip(shown, cells, strict=True)
        )
        lines = [f"{self.task} of {self.formula!r} at {self.privacy}, n = {self.n:,}", *self.sentences, "", head]
        bare = "".join(f"{v:>{cell}.3g}" for v, cell in zip(self.without_privacy, cells, strict=False))
        lines.append(f"{'without privacy':<{width}}{'':>8}{'':>9}{'':>11}{bare}"[: width + 28 + sum(cells)])
        for one in self.expectations:
            if one.problem:
                lines.append(f"{one.label:<{width}}cannot be asked: {one.problem}")
                continue
            errors = "".join(f"{v:>{cell}.3g}" for v, cell in zip(one.error, cells, strict=False))
            lines.append(f"{one.label:<{width}}{one.ratio:>8.2f}{one.replies:>9.0%}{one.intervals:>11.0%}{errors}")
        more = f" (the first {len(shown)} of {len(self.names)})" if len(self.names) > len(shown) else ""
        return "\n".join([*lines, "", f"Predicted standard errors{more}; {self.assumes}"])


def _plain(value: float) -> float | None:
    return value if isfinite(value) else None


def mean_ratio(error: tuple[float, ...], base: tuple[float, ...]) -> float:
    """The geometric mean of the ratios; infinite where a number has no finite error."""
    logs = [log(a / b) for a, b in zip(error, base, strict=True) if b > 0 and isfinite(a) and a > 0]
    return exp(sum(logs) / len(logs)) if len(logs) == len(error) and logs else inf
