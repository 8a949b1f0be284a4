"""Levels that noise hides: which are held, what the others feel of it, what is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import confide as cf
from confide.core import seal
from confide.methods.regression.glm.coefficients import log_odds
from confide.methods.regression.glm.noise_floor import UnidentifiedLevels, levels_of
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import CodedFrame, ModelMatrix
from confide.sums.coding import Box

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(-3, 3),
        "f": cf.Categorical(["a", "b", "c", "d"]),
        "k": cf.Integer(0, 1),
        "y": cf.Integer(0, 1),
    }
)
DESIGN = ModelMatrix.of("y ~ x + f + k", SCHEMA)
SHARES = {"a": 0.6, "b": 0.3, "c": 0.09, "d": 0.01}


def _moments() -> tuple[np.ndarray, np.ndarray]:
    """Second moments of z where d is rare, and T that makes them I."""
    g = np.random.default_rng(1)
    n = 20_000
    f = g.choice(list(SHARES), n, p=list(SHARES.values()))
    z = np.column_stack(
        [np.ones(n), g.normal(size=n) / 3, *(np.where(f == level, 1.0, -1.0) for level in "bcd"), g.choice([-1, 1], n)]
    )
    moments = z.T @ z / n
    values, vectors = np.linalg.eigh(moments)
    return moments, vectors / np.sqrt(values)


def _levels():
    return levels_of(DESIGN, Box.of(DESIGN))


def _gram(transform: np.ndarray, hidden: str, size: float) -> np.ndarray:
    """A = 100 I but along one level, where it is `size`."""
    (own,) = (one for one in _levels() if (one.column, one.name) == ("f", hidden))
    d = np.linalg.solve(transform, own.weights)
    d /= np.linalg.norm(d)
    return 100.0 * np.eye(len(d)) + (size - 100.0) * np.outer(d, d)


def test_nothing_is_held_where_the_information_stands_above_its_noise() -> None:
    moments, transform = _moments()
    held = UnidentifiedLevels.of(_gram(transform, "d", 60.0), 5.0, transform, moments, _levels())
    assert held.levels == () and (held.basis == np.eye(len(moments))).all()


@pytest.mark.parametrize("size", [10.0, -30.0])
def test_a_hidden_level_is_held_alone_and_only_its_coefficient_hangs_on_it(size: float) -> None:
    moments, transform = _moments()
    gram = _gram(transform, "d", size)
    held = UnidentifiedLevels.of(gram, 5.0, transform, moments, _levels())
    assert [(one.column, one.name) for one in held.levels] == [("f", "d")]
    assert np.allclose(held.basis.T @ held.basis, np.eye(len(moments) - 1))
    assert np.linalg.eigvalsh(held.basis.T @ gram @ held.basis)[0] == pytest.approx(100.0)
    direction = np.linalg.solve(transform, held.levels[0].weights)
    assert np.abs(held.basis.T @ direction).max() < 1e-9
    moved = log_odds(DESIGN, Box.of(DESIGN)) @ transform @ direction
    names = np.array(DESIGN.names)
    assert list(names[np.abs(moved) > 1e-9]) == ["f[T.d]"] and moved[list(names).index("f[T.d]")] == pytest.approx(1.0)


def test_a_level_of_many_records_is_never_held_nor_all_of_a_column() -> None:
    moments, transform = _moments()
    assert UnidentifiedLevels.of(_gram(transform, "b", 1.0), 5.0, transform, moments, _levels()).levels == ()
    held = UnidentifiedLevels.of(-np.eye(len(moments)), 5.0, transform, moments, _levels())
    assert held.levels == () and (held.basis == np.eye(len(moments))).all()


def test_of_all_records_nothing_is_held() -> None:
    design = ModelMatrix.of("y ~ x", SCHEMA)
    levels = levels_of(design, Box.of(design))
    assert [(one.column, one.name) for one in levels] == [("", "")]
    held = UnidentifiedLevels.of(np.diag([50.0, 1.0]), 5.0, np.eye(2), np.eye(2), levels)
    assert held.levels == () and (held.basis == np.eye(2)).all()


@pytest.mark.parametrize("slope", [False, True])
def test_a_cell_of_a_product_is_held_along_all_that_vanishes_outside_of_it(slope: bool) -> None:
    """a = b = 1 in 4 % of the records: its own coefficient, and its own slope where it has one, hang on it."""
    schema = cf.Schema({"a": cf.Integer(0, 1), "b": cf.Integer(0, 1), "x": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
    design = ModelMatrix.of("y ~ a * b * x" if slope else "y ~ a * b + x", schema)
    g, box = np.random.default_rng(1), Box.of(design)
    frame = pd.DataFrame(
        {name: (g.random(20_000) < 0.2).astype(int) for name in "ab"} | {"x": g.uniform(-1, 1, 20_000)}
    )
    middle, half = box.arrays
    z = np.column_stack([np.ones(len(frame)), (design.matrix(frame)[:, 1:] - middle) / half])
    moments = z.T @ z / len(z)
    transform = np.linalg.inv(np.linalg.cholesky(moments)).T
    levels = levels_of(design, box)
    (own,) = (one for one in levels if (one.column, one.name) == ("a:b", "1:1"))
    assert np.allclose(z @ own.weights, frame.a * frame.b)
    hidden, _ = np.linalg.qr(np.linalg.solve(transform, own.along))
    gram = 100.0 * np.eye(len(hidden)) - 99.0 * hidden @ hidden.T
    held = UnidentifiedLevels.of(gram, 5.0, transform, moments, levels)
    assert [(one.column, one.name) for one in held.levels] == [("a:b", "1:1")]
    assert held.basis.shape[1] == len(moments) - 1 - slope
    assert [design.names[j] for j in own.cell.places] == (["a:b", "a:b:x"] if slope else ["a:b"])


def _frame(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    f = g.choice(list(SHARES), n, p=list(SHARES.values()))
    # in d the slope of x is another, so that leaving it out is felt if anything of it is
    x, k = np.clip(g.normal(size=n) + 1.0 * (f == "d"), -3, 3), g.integers(0, 2, n)
    eta = -0.4 + 0.7 * np.where(f == "d", -1.0, 1.0) * x + 0.5 * (f == "b") + 0.4 * k
    return pd.DataFrame({"x": x, "f": f, "k": k, "y": (g.random(n) < expit(eta)).astype(int)})


@pytest.mark.few("add-remove")
@pytest.mark.parametrize("relation", Logistic.relations)
def test_one_rare_level_does_not_take_the_table_with_it(relation: str) -> None:
    """20 of 2,000 records: the level is not answered, all others are, and cover the line of all records."""
    method, n, mu = Logistic("y ~ x + f + k"), 2_000, 1.0 if relation == "add-remove" else 2.0
    plan = cf.plan(method, SCHEMA, cf.GDP(mu, relation=relation), n=n if relation == "substitute" else None)
    population = _frame(100_000, 0)
    truth = pd.Series(dict(method.reference(CodedFrame.of(population, SCHEMA))))
    others = [name for name in truth.index if name not in ("f[T.c]", "f[T.d]")]
    answered, covered, named, few = 0, 0, 0, 0
    for seed in range(20):
        frame = population.sample(n, replace=True, random_state=seed).reset_index(drop=True)
        found = method.infer(seal(method, cf.read(frame, SCHEMA), plan, SimulatedNoise(seed)))
        if found.status in ("valid", "partial") and found.params[others].notna().all():
            ends = found.conf_int().loc[others]
            answered += 1
            covered += int(((ends[0] <= truth[others]) & (truth[others] <= ends[1])).sum())
        named += "f[d]" in found.reason
        few += "too few records to estimate: f[d]" in found.reason
    # of 260 seeds 98 % are answered, 97 % name the level, 25 % say that its records are too few: a false alarm in 250
    assert answered >= 17 and named >= 15 and few >= 1
    # less than .87 of 80 has a probability of 2e-3 at a coverage of .95
    assert covered >= 0.87 * answered * len(others)


def test_a_table_without_intervals_does_not_say_that_others_have_one() -> None:
    frame, said = _frame(4_000, 1), []
    for seed in range(6):
        data = cf.read(frame, SCHEMA)
        found = cf.logistic_regression(
            "y ~ x + f + k", data, privacy=cf.GDP(0.1), ledger=None, noise=SimulatedNoise(seed)
        )
        assert ("the other coefficients are answered" not in found.reason) or found.status == "partial"
        said.append(found.status == "imprecise" and "so that none has an interval" in found.reason)
    assert any(said)
