"""What replications said of one kind of number, and which claims of it fail."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide_lab.benchmarks.tables_judge.answers import Answer
from confide_lab.benchmarks.tables_judge.rule import held

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
    """Replications of one kind, each part (k,) a replication. names: of its numbers."""

    names: tuple[str, ...]
    parts: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def add(self, answer: Answer, targets: Mapping[str, float], bare: Mapping[str, tuple[float, float]]) -> None:
        """One more replication. targets: what is to be covered; bare: the intervals without privacy."""
        truth = np.array([targets.get(name, np.nan) for name in self.names])
        ends = np.array([bare.get(name, (np.nan, np.nan)) for name in self.names]).reshape(-1, 2)
        room = 1e-9 * np.maximum(np.abs(truth), 1.0)
        low, high = answer.low - room, answer.high + room
        found = {
            "inside": (low <= truth) & (truth <= high),
            # what the whole table does not have (a share of an empty cell) is no claim
            "sure": answer.sure & np.isfinite(truth),
            "width": answer.high - answer.low,
            "noise": answer.noise,
            "bare": (ends[:, 0] - room <= truth) & (truth <= ends[:, 1] + room),
            "bare width": ends[:, 1] - ends[:, 0],
        }
        for name, values in found.items():
            self.parts.setdefault(name, []).append(values)

    def judged(self, kind: str, formula: np.ndarray | None, floor: np.ndarray | None = None) -> dict[str, Any]:
        """Coverage of the kind and of its numbers, widths, and the claims that fail, in words.

        formula: widths at the true numbers; floor: the least width over the one without privacy that noise of one record's reach allows.
        """
        own = {name: np.array(values) for name, values in self.parts.items()}
        inside, sure = own["inside"], own["sure"]
        whole = held(inside, sure)
        each = [held(inside[:, [k]], sure[:, [k]]) for k in range(len(self.names))]
        sampled = "these records" not in kind
        bare = held(own["bare"], sure & np.isfinite(own["bare width"]))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            mean = np.nanmean(np.where(sure, own["width"], np.nan), axis=0)
            plain = np.nanmean(np.where(sure, own["bare width"], np.nan), axis=0)
            noise = float(np.nanmean(np.where(sure, own["noise"], np.nan)))
        # a number that stands in hardly any sample has no mean width worth the name
        often = sure.mean(axis=0) >= 0.5
        ratio = np.where(often & (plain > 0), mean / np.where(plain > 0, plain, 1.0), np.nan)
        near = (
            np.full(len(ratio), np.nan) if formula is None else np.where(often & (formula > 0), mean / formula, np.nan)
        )
        short = [self.names[k] for k, one in enumerate(each) if one.short(LEAST)]
        least = min(
            (one for one in each if one.answers >= len(inside) / 2), key=lambda one: one.coverage, default=whole
        )
        return {
            "coverage": whole.coverage, "low": whole.low, "high": whole.high, "answers": whole.answers,
            "answered": whole.answered, "numbers": int(sum(one.answers > 0 for one in each)), "least": least.coverage,
            "bare": bare.coverage if sampled else float("nan"), "noise": noise,
            "ratio": _median(ratio) if sampled else float("nan"), "widest": _most(ratio) if sampled else float("nan"),
            "formula": _median(near), "formula from": _least(near), "formula to": _most(near),
            "short": whole.short(LEAST), "short numbers": short,
            "short bare": [self.names[k] for k in range(len(each)) if held(own["bare"][:, [k]], sure[:, [k]]).short(LEAST)]
            if sampled else [],
            "long": sampled and noise < 0.5 and whole.long(MOST),
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
