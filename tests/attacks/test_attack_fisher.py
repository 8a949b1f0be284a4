"""Attacks on the draw of a line of Fisher scoring: beside the planned sums nothing follows from records, in any branch.

Each release is replayed on other records, steered so that every noisy number is that of the first (`confide.audit.replay.replay`): then
all else, coordinates, lines, bounds, kappa, levels held, where counts are cut, must be equal to the bit, however far apart the data sets
are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import confide as cf
from confide.audit.replay.replay import Replay, replay
from confide.methods.regression.glm import draw
from confide.methods.regression.glm.noise_floor import UnidentifiedLevels
from confide.regression import Logistic

_FEATURES = {
    "x": cf.Numeric(-30, 30, on_missing="drop"),
    "f": cf.Categorical(["a", "b", "c", "d"]),
    "k": cf.Integer(0, 1),
}
FORMULA = "y ~ x + f + k"
K = 6
SHARES = [0.6, 0.3, 0.08, 0.02]
BRANCHES = [(60, 1), (60 * K, 2), (200 * K, 3), (600 * K, 4)]


def schema_of(most: int) -> cf.Schema:
    return cf.Schema({**_FEATURES, "y": cf.Integer(0, most)})


def records(n: int, seed: int, most: int) -> pd.DataFrame:
    """A rare level, which hides in noise, and a feature of one tenth of its bounds."""
    g = np.random.default_rng(seed)
    x, f, k = g.normal(size=n), g.choice(list("abcd"), n, p=SHARES), g.integers(0, 2, n)
    eta = 0.7 * x - 0.4 + 0.4 * k
    y = g.random(n) < expit(eta) if most == 1 else np.minimum(g.poisson(np.exp(eta)), most)
    return pd.DataFrame({"x": x, "f": f, "k": k, "y": y.astype(int)})


def others(n: int, most: int, *, same_number: bool) -> list[pd.DataFrame]:
    """Far from `records`: one record often, corners of the box with the outcome against the slope, gaps, other numbers of records."""
    one = pd.DataFrame([{"x": 30.0, "f": "d", "k": 1, "y": 0}])
    corners = pd.concat([one, one.assign(x=-30.0, f="a", k=0, y=most), one.assign(x=np.nan), one.assign(x=np.inf)])
    found = [pd.concat([one] * n), pd.concat([corners] * n).iloc[:n]]
    return found if same_number else [*found, one.iloc[:0], records(3 * n + 1, 8, most)]


def replays(method: Any, most: int, n: int, relation: str, mu: float = 1.0, at: int = 0) -> list[Replay]:
    """One release of `records`, whose largest outcome is `most`, replayed on each of `others`, with the noise of seeds from `at` on."""
    schema, one, same = schema_of(most), records(n, 3, most), relation == "substitute"
    plan = cf.plan(method, schema, cf.GDP(mu, relation=relation), n=n if same else None)
    return [
        replay(method, plan, cf.read(one, schema), cf.read(other, schema), seed=seed, thorough=False)
        for seed, other in enumerate(others(n, most, same_number=same), at)
    ]


def nothing_else_tells_apart(method: Any, most: int, n: int, steps: int, relation: str) -> None:
    for found in replays(method, most, n, relation):
        assert found.problems == ()
        assert ("short last" in found.drawn) == (steps == 1)
        assert steps == 1 or f"step {steps} of {steps}" in found.drawn


@pytest.mark.few("60-1-add-remove", "360-2-substitute", "1200-3-add-remove", "3600-4-substitute")
@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize(("n", "steps"), BRANCHES)
def test_nothing_but_the_planned_sums_tells_data_sets_apart(n: int, steps: int, relation: str) -> None:
    nothing_else_tells_apart(Logistic(FORMULA), 1, n, steps, relation)


@pytest.mark.parametrize("relation", Logistic.relations)
def test_which_levels_are_held_follows_from_noisy_numbers(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same levels for data sets far apart, where some are held."""
    seen: list[tuple[str, ...]] = []
    of = UnidentifiedLevels.of

    def watched(*given: Any) -> UnidentifiedLevels:
        held = of(*given)
        seen.append(tuple(level.name for level in held.levels))
        return held

    monkeypatch.setattr(draw.UnidentifiedLevels, "of", watched)
    # one is held in a third of the releases or more
    for at in range(0, 40, 4):
        for found in replays(Logistic(FORMULA), 1, 1_000, relation, 0.6, at):
            assert found.problems == ()
        if any(seen):
            break
    first, second = seen[::2], seen[1::2]
    assert first == second
    assert any(first), "no level was held: the design does not reach the code"


def worst_neighbours(method: Any, most: int, n: int, relation: str) -> None:
    """A record in a corner of the box with the outcome against the line, one without a number, beside as many as decide the branch."""
    schema, base = schema_of(most), records(n, 3, most)
    far = pd.DataFrame([{"x": 30.0, "f": "d", "k": 1, "y": 0}])
    same = relation == "substitute"
    plan = cf.plan(method, schema, cf.GDP(1.0, relation=relation), n=n if same else None)
    largest, last = {"excess": 0.0}, "short last" if n == 60 else "last"
    for seed in range(20):
        if seed % 4 == 0 and largest.get(last, 0.0) > 0.4 and largest["excess"] > 0.1:
            break
        one = [far, far.assign(x=-30.0, y=most), far.assign(x=np.nan), far.assign(y=most)][seed % 4]
        changed = pd.concat([one, base.iloc[1:] if same else base], ignore_index=True)
        found = replay(method, plan, cf.read(base, schema), cf.read(changed, schema), seed=seed, thorough=False)
        assert found.ok, found.problems
        for spend, moved in found.moved.items():
            largest[spend] = max(largest.get(spend, 0.0), moved.ratio)
    # the records chosen do move them: in 25 of 30 rounds of the four, and there are five
    assert largest[last] > 0.4 and largest["excess"] > 0.1


@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize("n", [60, 200 * K])
def test_the_worst_neighbours_move_no_sum_beyond_its_sensitivity(n: int, relation: str) -> None:
    worst_neighbours(Logistic(FORMULA), 1, n, relation)
