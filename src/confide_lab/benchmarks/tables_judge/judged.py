"""What replications said of one kind of number, and which claims of it fail."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide_lab.benchmarks.tables_judge.rule import held
from confide_lab.benchmarks.tables_judge.streams import Answer

__all__ = ["LEAST", "MOST", "NEAR", "WIDE", "Kept", "kind_of"]

#: The claims: coverage at least, and at most where noise is below sampling; width over the one without privacy; distance from the formula.
LEAST, MOST, WIDE, NEAR = 0.94, 0.985, 1.3, 0.1


def kind_of(words: str) -> str:
    """The kind of number without its reading and its bounds.

    >>> kind_of("means, these records, bounds x4")
    'means'
    """
    return words.split(", ")[0]


@dataclass
class Kept:
    """Replications of one kind. names: of its numbers; parts: each (r, k), those without privacy of fewer replications."""

    names: tuple[str, ...]
    parts: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, answer: Answer, targets: Mapping[str, float], bare: Sequence[Mapping[str, tuple[float, float]]]
    ) -> Kept:
        """targets: the numbers of the population; bare: the intervals without privacy of the first replications."""
        names = answer.names
        truth = np.array([targets.get(name, np.nan) for name in names])
        aim = np.broadcast_to(truth, answer.low.shape) if answer.own is None else answer.own
        room = 1e-9 * np.maximum(np.abs(aim), 1e-3 * np.nanmax(np.abs(aim)))
        found = {
            "inside": (answer.low - room <= aim) & (aim <= answer.high + room),
            # what the whole table does not have (a share of an empty cell) is no claim
            "sure": answer.sure & np.isfinite(aim),
            "known": np.isfinite(aim) & np.isfinite(answer.low),
            "width": answer.high - answer.low,
            "noise": answer.noise,
        }
        if bare and answer.own is None:
            ends = np.array([[own.get(name, (np.nan, np.nan)) for name in names] for own in bare])
            few = room[: len(bare)]
            found["bare"] = (ends[..., 0] - few <= truth) & (truth <= ends[..., 1] + few)
            found["bare width"] = ends[..., 1] - ends[..., 0]
        return cls(names, found)

    def judged(self, kind: str, formula: np.ndarray | None, floor: np.ndarray | None = None) -> dict[str, Any]:
        """Coverage of the kind and of its numbers, widths, and the claims that fail, in words.

        formula: widths at the true numbers; floor: the least width over the one without privacy that noise of one record's reach allows.
        """
        own, runs = self.parts, len(self.parts["inside"])
        inside, sure = own["inside"], own["sure"]
        whole, every = held(inside, sure), held(inside, own["known"])
        each = [held(inside[:, [k]], sure[:, [k]]) for k in range(len(self.names))]
        sampled = "bare" in own
        plain_sure = sure[: len(own["bare"])] & np.isfinite(own["bare width"]) if sampled else sure[:0]
        bare = held(own["bare"], plain_sure) if sampled else held(inside[:0], sure[:0])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            mean = np.nanmean(np.where(sure, own["width"], np.nan), axis=0)
            plain = (
                np.nanmean(np.where(plain_sure, own["bare width"], np.nan), axis=0)
                if sampled
                else np.full(len(self.names), np.nan)
            )
            noise = float(np.nanmean(np.where(sure, own["noise"], np.nan)))
        # a number that stands in hardly any sample has no mean width worth the name
        anyhow = [held(inside[:, [k]], own["known"][:, [k]]) for k in range(len(self.names))]
        often = sure.mean(axis=0) >= 0.5
        ratio = np.where(often & (plain > 0), mean / np.where(plain > 0, plain, 1.0), np.nan)
        near = (
            np.full(len(ratio), np.nan) if formula is None else np.where(often & (formula > 0), mean / formula, np.nan)
        )
        short = [self.names[k] for k, one in enumerate(each) if one.short(LEAST)]
        least = min((one for one in each if one.answers >= runs / 2), key=lambda one: one.coverage, default=whole)
        return {
            "coverage": whole.coverage, "low": whole.low, "high": whole.high, "answers": whole.answers,
            "answered": whole.answered, "numbers": int(sum(one.answers > 0 for one in each)), "least": least.coverage,
            "bare": bare.coverage if sampled else float("nan"), "noise": noise,
            "ratio": _median(ratio) if sampled else float("nan"), "widest": _most(ratio) if sampled else float("nan"),
            "formula": _median(near), "formula from": _least(near), "formula to": _most(near),
            "every": every.coverage, "every least": min((one.coverage for one in anyhow if one.answers), default=float("nan")),
            "every numbers": sum(one.answers > 0 for one in anyhow),
            "short every": [self.names[k] for k, one in enumerate(anyhow) if one.short(LEAST)],
            "short": whole.short(LEAST), "short numbers": short,
            "seldom": [self.names[k] for k, one in enumerate(each) if one.short(LEAST) and one.answered < 0.5],
            "short bare": [name for k, name in enumerate(self.names) if sampled
                           and held(own["bare"][:, [k]], plain_sure[:, [k]]).short(LEAST)],
            "long": sampled and noise < 0.5 and whole.long(MOST),
            # ties and whole values are covered for certain, by any interval
            "longer": sampled and noise < 0.5 and whole.long(max(MOST, bare.high)),
            "wide": self._wide(kind, ratio, floor), "far": self._far(near),
        }  # fmt: skip

    def _wide(self, kind: str, ratio: np.ndarray, floor: np.ndarray | None) -> list[str]:
        """Shares whose width is above 1.3 times the one without privacy, where the noise that one record needs leaves that within reach."""
        reach = np.ones(len(ratio)) if floor is None else floor
        return [
            f"{name} {value:.2f} (at least {least:.2f})"
            for name, value, least in zip(self.names, ratio, reach, strict=True)
            if kind == "shares" and value > WIDE >= least
        ]

    def _far(self, near: np.ndarray) -> list[str]:
        return [f"{name} {value:.2f}" for name, value in zip(self.names, near, strict=True) if abs(value - 1) > NEAR]


def _median(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")


def _most(values: np.ndarray) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


def _least(values: np.ndarray) -> float:
    return float(np.nanmin(values)) if np.isfinite(values).any() else float("nan")
