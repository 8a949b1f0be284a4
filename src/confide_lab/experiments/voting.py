"""Redberg, Zhu, Wang 2023, Figure 3: votes between two, the data-dependent loss by gap, and error against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from typing import Any

import numpy as np
from scipy import optimize

from confide.guarantees import ApproxDP, PureDP
from confide.methods.voting.rules import laplace_minority, vote_loss, vote_rule
from confide_lab.experiment import Block, Drawing, Experiment, Quantity

__all__ = ["FIGURE3"]

_GAPS = (0, 1, 2, 3, 5, 10, 30, 100)
_SCALES = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
_GAP, _DELTA = 100, 1e-10


def loss(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The loss of a noisy maximum with epsilon = 10 at a gap: exact, and by the paper's expression."""
    gap, epsilon = at["gap"], 10.0
    if at["method"] == "printed":
        return {"epsilon": epsilon * log((2 + epsilon * (gap + 1)) / (2 + epsilon * gap))}
    return {"epsilon": vote_loss(gap, epsilon, 0.0 if at["method"] == "exact" else _DELTA)}


def equal_error(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The epsilon at which a rule errs, or says nothing, as often as Laplace noise of scale b at a gap of 100."""
    error = float(laplace_minority(_GAP / at["b"]))
    if at["method"] == "laplace":
        return {"epsilon": 1 / at["b"], "wrong": error}
    return {"epsilon": _least(lambda e: _errs(at["method"], e) <= error), "wrong": error}


def _errs(rule: str, epsilon: float) -> float:
    privacy = ApproxDP(epsilon, _DELTA) if rule != "noisy_max" else PureDP(epsilon)
    found = vote_rule(rule, privacy, "add-remove").chances([_GAP])
    # where nothing is said, a coin is as good
    return float(found.wrong[0] + found.silent[0] / 2)


def _least(holds: Callable[[float], bool]) -> float:
    high = 0.01
    while not holds(high):
        high *= 1.5
    return float(optimize.bisect(lambda e: -1.0 if holds(e) else 1.0, high / 1.5 / 1.5, high, xtol=1e-5))


FIGURE3 = Experiment(
    "voting.figure3",
    "Votes between two: loss by gap, and epsilon at equal error",
    (
        Block(
            "loss",
            {"gap": _GAPS},
            ("exact", "exact with delta", "printed"),
            loss,
            (Quantity("epsilon"),),
            1,
            exact=True,
            title="Panel (a): noise of epsilon = 10",
            drawing=Drawing(
                "lines", "gap", "epsilon", y_label="data-dependent epsilon", x_label="votes between the two"
            ),
            titles={
                "exact": "exact, delta = 0",
                "exact with delta": "exact, delta = 1e-10",
                "printed": "the paper's expression",
            },
        ),
        Block(
            "error",
            {"b": _SCALES},
            ("laplace", "optimal", "distance", "generalized"),
            equal_error,
            (Quantity("epsilon"), Quantity("error", of="wrong")),
            1,
            exact=True,
            title="Panel (b): the epsilon that errs as Laplace noise of scale b does at a gap of 100, delta = 1e-10",
            drawing=Drawing(
                "lines",
                "b",
                "epsilon",
                log="xy",
                y_label="epsilon at equal error",
                x_label="scale of the Laplace noise",
            ),
            titles={
                "laplace": "Laplace noise",
                "optimal": "optimal rule",
                "distance": "classic propose-test-release",
                "generalized": "generalized propose-test-release",
            },
        ),
    ),
    ("Redberg, Zhu, Wang, AISTATS 2023, C.1 and Figure 3",),
    (
        "The paper does not state the delta of panel (b), nor a range of scales at which the error rates are those it names.",
    ),
)
