"""Attacks on lines of Fisher scoring where a unit has several rows: releases beside ones with a unit of 1, k, k + 1, 10 k rows more.

Each release is replayed at the same noisy numbers (`confide.audit.replay.replay`), in the short branch and in a long one: every sum
moves by at most what is charged, with the largest moves all that is charged, and nothing else tells the two apart.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import confide as cf
from confide.audit.replay.replay import Replay, replay
from confide.engine.planning import key_of, keyed
from confide.engine.releasing import _bounded
from confide.regression import Logistic

_COLUMNS = {
    "x": cf.Numeric(-30, 30, on_missing="drop"),
    "w": cf.Numeric(-30, 30),
    "f": cf.Categorical(["a", "b"]),
    "y": cf.Integer(0, 1),
}
FORMULA = "y ~ x + w + f"
FAR = {"x": 30.0, "w": 30.0, "f": "b", "y": 0, "pid": "z"}
OPPOSITE = {"x": -30.0, "w": 30.0, "f": "a", "y": 1, "pid": "z"}
MISSING = FAR | {"x": np.nan}


def people(n: int) -> pd.DataFrame:
    """Rows of half as many persons."""
    g = np.random.default_rng(3)
    x, w, f = g.normal(size=n), g.normal(size=n), g.choice(["a", "b"], n)
    y = (g.random(n) < expit(0.7 * x - 0.4)).astype(int)
    return pd.DataFrame({"x": x, "w": w, "f": f, "y": y, "pid": [f"p{k}" for k in g.integers(0, n // 2, n)]})


def units(k: int) -> list[pd.DataFrame]:
    """Of one person each: the same row, rows of opposite corners, rows of which some cannot be used."""
    made = [[FAR] * m for m in (1, k, k + 1, 10 * k)]
    made += [[FAR, OPPOSITE] * k, [FAR, MISSING] * (2 * k), [OPPOSITE] * (k + 1)]
    return [pd.DataFrame(rows) for rows in made]


def replays(unit: cf.Unit, link: str, n: int, relation: str = "add-remove") -> list[Replay]:
    """The release of `people` and one person, whom each of `units` replaces, or without her, to whom each is added."""
    schema, method, base = cf.Schema(_COLUMNS, unit=unit), Logistic(FORMULA, link=link), people(n)
    same = relation == "substitute"
    first = pd.concat([base, pd.DataFrame([OPPOSITE])]) if same else base
    plan = cf.plan(method, schema, cf.GDP(1.0, relation=relation), n=first.pid.nunique() if same else None)
    plan = keyed(plan, key_of(schema, None))
    found = []
    for seed, own in enumerate(units(unit.rows)):
        second = pd.concat([own.iloc[:1], base, own.iloc[1:]])
        with (
            _bounded(cf.read(first, schema), key_of(schema, None), plan) as one,
            _bounded(cf.read(second, schema), key_of(schema, None), plan) as other,
        ):
            found.append(replay(method, plan, one, other, seed=seed, thorough=False))
    return found


@pytest.mark.few("3-weight-logit-1500", "3-weight-probit-60", "1-keep-logit-1500")
@pytest.mark.parametrize("n", [60, 1_500])
@pytest.mark.parametrize(
    ("rows", "rule", "link"),
    [(3, "weight", "logit"), (3, "weight", "probit"), (1, "weight", "logit"), (1, "keep", "logit")],
)
def test_no_unit_moves_a_sum_beyond_what_is_charged(rows: int, rule: str, n: int, link: str) -> None:
    largest: dict[str, float] = {}
    for found in replays(cf.Unit("pid", rows=rows, rule=rule), link, n):
        assert found.ok, found.problems
        assert float(sum(moved.cost for moved in found.moved.values())) <= 1.0
        for name, moved in found.moved.items():
            largest[name] = max(largest.get(name, 0.0), moved.ratio)
    assert ("short last" in largest) == (n == 60)
    names = ("count", "contributions", *(() if n == 60 else ("leverage", "last", "excess", "meat")))
    assert min(largest[name] for name in names) > 0.99, largest


@pytest.mark.parametrize("rule", ["weight", "keep"])
def test_a_replaced_unit_moves_no_sum_beyond_what_is_charged(rule: str) -> None:
    for found in replays(cf.Unit("pid", rows=1, rule=rule), "logit", 60, "substitute"):
        assert found.ok, found.problems
