"""The rounds of a release: their names, and the first and the last of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from confide.core import Noisy
from confide.methods.regression.sums.linear_rows import BlockGram, multipliers
from confide.methods.regression.sums.whitened_rows import Frame, Round, WhitenedRows, split_of
from confide.schema import ModelMatrix
from confide.sums.coding import Box

__all__ = ["first_round", "last_round", "round_names"]


def round_names(rounds: int) -> tuple[str, ...]:
    """The names of the rounds: "round 1" to "round 3" of the long branch, "short round 1" and "short round 2" of the other."""
    return tuple(f"{'short ' if rounds == 2 else ''}round {k + 1}" for k in range(rounds))


def first_round(
    design: ModelMatrix, statistics: Mapping[str, Noisy], public: Mapping[str, Any], relation: str
) -> Round:
    """The first round of a release: moments of (z, t) themselves, whose residuals are clipped by the response's bounds alone."""
    long = round_names(3)
    names = long if long[0] in statistics else round_names(2)
    box = np.asarray(public["box"], dtype=np.float64)
    frame = Frame.start(Box(tuple(map(float, box[0])), tuple(map(float, box[1]))))
    planned = BlockGram(WhitenedRows(design), multipliers(*split_of(relation, last=False)))
    return Round.decoded(statistics[names[0]], planned, frame, float(np.asarray(public["cap"])[0]))


def last_round(design: ModelMatrix, statistics: Mapping[str, Noisy], public: Mapping[str, Any], relation: str) -> Round:
    """The round that an interval is read from: of a release's statistics and public numbers.

    Raises `KeyError` when the release ended with a descent, which has no rounds.
    """
    long = round_names(3)[-1]
    name = long if long in statistics else round_names(2)[-1]
    box = np.asarray(public["box"], dtype=np.float64)
    frame = Frame.of(
        Box(tuple(map(float, box[0])), tuple(map(float, box[1]))),
        np.asarray(public["transform"])[-1],
        np.asarray(public["theta"])[-1],
        float(np.asarray(public["rho"])[-1]),
    )
    planned = BlockGram(WhitenedRows(design), multipliers(*split_of(relation, last=True)))
    return Round.decoded(statistics[name], planned, frame, float(np.asarray(public["cap"])[-1]))
