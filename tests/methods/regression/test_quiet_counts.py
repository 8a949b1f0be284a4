"""How many records of a level have the rarer outcome, as a released line says: what is answered rests on it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import expit, logit

import confide as cf
from confide.aggregates.rows import Box
from confide.methods.regression.likelihood.fisher.fisher_levels import QuietLevel, Seen
from confide.methods.regression.likelihood.logistic_design import binary_design
from confide.schema import Practice

SCHEMA = cf.Schema({"f": cf.Categorical(["a", "b", "c"]), "x": cf.Integer(0, 1), "y": cf.Integer(0, 1)})
RATES = {"a": 0.6, "b": 0.9, "c": 0.985}
SIZES = {"a": 2_000, "b": 1_500, "c": 400}


def test_log_odds_that_differ_between_levels_do_not_spread_those_within_one() -> None:
    frame = pd.DataFrame({"f": np.repeat(list(SIZES), list(SIZES.values()))})
    frame = frame.assign(x=np.arange(len(frame)) % 2, y=0)
    design, _ = binary_design("y ~ f + x", SCHEMA, None)
    rows, _ = Practice.of(frame, SCHEMA).rows(design)
    box = Box.of(design)
    middle, half = box.arrays
    z = np.column_stack([np.ones(len(rows)), (rows[:, 1:] - middle) / half])
    # the exact line of the rates, in z: x has no effect
    log_odds = logit(frame["f"].map(RATES).to_numpy(dtype=float))
    line = np.linalg.lstsq(z, log_odds, rcond=None)[0]
    nothing = np.zeros((len(line), len(line)))
    seen = Seen(line, line, nothing, (np.zeros(len(line)), nothing), z.T @ z / len(z), float(len(z)), box)
    # every level is listed where any number is too few
    found = {one.count.level: one for one in _all(seen, design)}
    assert np.isclose(found["c"].count.count, SIZES["c"] * expit(-logit(RATES["c"])), rtol=1e-6)
    assert np.isclose(found["b"].count.count, SIZES["b"] * (1 - RATES["b"]), rtol=1e-6)
    assert found["c"].outcome == 0


def _all(seen: Seen, design: Any) -> list[QuietLevel]:
    with patch("confide.methods.regression.likelihood.fisher.fisher_levels._FEWEST", np.inf):
        return [one for one in seen.quiet(design, SCHEMA.to_dict()) if one.count.column == "f"]
