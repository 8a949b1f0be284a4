"""What a hostile review tried on the default regression and on SSP's leverages; each test says what must hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.few import few

import confide as cf
from confide.audit.methods import audit
from confide.core import Allowance, BudgetItem
from confide.core.events import leaves, paths
from confide.core.lost_values import NAME as LOST
from confide.methods.regression.sums import whitened_rows
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores, SquareOf
from confide.methods.regression.sums.whitened_rows import Frame
from confide.regression import SSP, LeastSquares, Logistic
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.least_squares import LEAST_SQUARES, unlike

pytestmark = pytest.mark.usefixtures("declared")

COLUMNS = {
    "a": cf.Numeric(0, 1),
    "b": cf.Numeric(-5, 5, on_missing="drop"),
    "k": cf.Integer(0, 1),
    "f": cf.Categorical(["p", "q", "r"], on_missing="drop"),
    "g": cf.Categorical(["u", "v", "w", "x"]),
    "y": cf.Numeric(-10, 10),
    "z": cf.Integer(0, 1),
}
SCHEMA = cf.Schema(COLUMNS)
RELATIONS = ("add-remove", "substitute")
DESIGN = ModelMatrix.of("y ~ a + b + k + f + a:k", SCHEMA)
P = len(DESIGN.terms) + 1


@pytest.mark.parametrize("fault", LEAST_SQUARES, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert fault.caught(0).verdict == "violated"
    assert fault.passed(0).violated == ()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 3])
def test_every_branch_spends_all_and_no_more(relation: str, rows: int) -> None:
    """Exact sums over each branch of (sensitivity of the statistic)^2/sigma^2, against mu^2."""
    schema = cf.Schema(COLUMNS, rows_per_unit=rows)
    formulas = ("y ~ a + b", "y ~ k + a:k", "y ~ f", "y ~ f + g", "z ~ a", "z ~ f", "y ~ 1", "y ~ k + f:a + g")
    methods: list[Any] = [
        LeastSquares(formula, clipping_check=check, limit=limit)
        for formula in formulas
        for check in (True, False)
        for limit in ("auto", "none")
    ]
    methods += [SSP(formula, leverage_cap=cap) for formula in ("y ~ a + b", "y + z ~ a + f") for cap in (None, 3.0)]
    for method in methods:
        for request in (cf.GDP(0.7, relation=relation), cf.ApproxDP(1.0, 1e-6, relation=relation)):
            plan = method.plan(schema, request)
            amount = Allowance.of(request, method, schema).amount
            spends = {leaf.name: leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem)}
            for names in paths(plan.event):
                spent = Fraction(0)
                # a hundredth of all is for the counts of clipped and unread values
                for name in names - {LOST}:
                    moved = plan.statistics[name].sensitivity_squared(relation) * rows**2
                    assert (spends[name].sensitivity * spends[name].step) ** 2 >= moved
                    spent += moved / (spends[name].scale * spends[name].step ** 2)
                assert Fraction(999_999, 1_000_000) < spent / amount <= 1, (method, names)


def _codes(generator: np.random.Generator, many: int) -> Any:
    sizes = [SCHEMA[name].steps for name in DESIGN.columns]
    return np.array([generator.choice([0, size - 1, size // 3], many) for size in sizes], dtype=np.float64)


def _frames(generator: np.random.Generator) -> list[Frame]:
    """Scales over three hundred decades, numbers that are none, boxes of no width."""

    def made(matrix: Any, theta: Any, half: Any) -> Frame:
        return Frame.of(Box((0.3,) * (P - 1), tuple(map(float, half))), matrix, theta, 1.0)

    wild = np.array([0.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, 1.0])
    normal = generator.normal(size=(P, P))
    return [
        made(normal * 10.0 ** generator.uniform(-150, 150, (P, P)), normal[0] * 1e6, np.ones(P - 1)),
        made(normal * 1e-170, normal[0], 10.0 ** generator.uniform(-150, 2, P - 1)),
        made(normal * 1e170, normal[0] * 1e150, np.full(P - 1, 5e-324)),
        made(generator.choice(wild, (P, P)), generator.choice(wild, P), generator.choice(wild, P - 1)),
    ]


def test_integers_stay_within_their_bounds_at_frames_that_no_round_gives() -> None:
    generator = np.random.default_rng(1)
    frames = [frame for _ in range(2) for frame in _frames(generator)]
    for frame, limit in product(frames, (1e-300, 1e-6, 1.0, 1e300)):
        codes = _codes(generator, 30)
        maps: tuple[Any, ...] = (LimitedFeatures(DESIGN), LimitedScores(DESIGN), SquareOf(DESIGN))
        for one in maps:
            rows: Any = one.at(frame, limit)
            with np.errstate(all="ignore"):
                found = rows(codes)
                single = np.concatenate([rows(codes[:, [k]]) for k in range(30)], axis=1)
            assert (found == np.rint(found)).all()
            whole = found.astype(np.int64).astype(object)
            assert max((whole * whole).sum(axis=0)) <= rows.l2_squared
            assert np.array_equal(single, found)


def test_the_exact_way_without_doubles_gives_the_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On machines whose product of doubles is not exact, integers are multiplied: the same numbers, missing codes included."""
    generator = np.random.default_rng(2)
    frame = Frame.of(Box.of(DESIGN), generator.normal(size=(P, P)) * 1e3, generator.normal(size=P), 1.0)
    codes = _codes(generator, 300)
    codes[0, ::7] = -1
    maps: tuple[Any, ...] = (LimitedFeatures(DESIGN).at(frame, 7.0), LimitedScores(DESIGN).at(frame, 3.0))
    own = [rows(codes) for rows in maps]
    monkeypatch.setattr(whitened_rows, "exact_products", lambda: False)
    for rows, found in zip(maps, own, strict=True):
        assert np.array_equal(rows(codes), found)


@pytest.mark.parametrize("relation", few(RELATIONS, 0))
@pytest.mark.parametrize(
    ("method", "level"),
    [
        (LeastSquares("y ~ a + b"), 30.0),
        (LeastSquares("y ~ a + f + k"), 1.0),
        (LeastSquares("y ~ a + f + k", limit="none"), 30.0),
        (LeastSquares("z ~ a + g"), 30.0),
        (LeastSquares("y ~ f"), 1.0),
        (LeastSquares("y ~ f + g + k"), 30.0),
        (LeastSquares("z ~ f + g"), 1.0),
        (SSP("y ~ a + b"), 30.0),
        (SSP("y + z ~ a + f"), 30.0),
        (Logistic("z ~ a + f"), 1.0),
        (Logistic("z ~ f + g"), 30.0),
    ],
    ids=lambda value: getattr(value, "formula", str(value)),
)
def test_one_transcript_gives_one_release_on_any_data(method: Any, level: float, relation: str) -> None:
    """Branch, passes, requests, public numbers and errors follow from what was released: data that are no neighbours show it too."""
    assert unlike(method, cf.GDP(level, relation=relation), SCHEMA) == ()


@pytest.mark.long
@pytest.mark.parametrize("level", [1.0, 30.0])
@pytest.mark.parametrize(
    ("method", "names", "rows"),
    [
        (LeastSquares("y ~ a + b"), "aby", 1),
        (LeastSquares("y ~ a + f + k"), "afky", 1),
        (LeastSquares("z ~ a", limit="none"), "az", 1),
        (LeastSquares("y ~ a + b"), "aby", 3),
        (LeastSquares("y ~ f"), "fy", 2),
        (LeastSquares("y ~ f + g + k"), "fgky", 1),
        (LeastSquares("z ~ f + g"), "fgz", 1),
        (SSP("y ~ a + b"), "aby", 1),
        (SSP("y + z ~ a + b"), "abyz", 1),
        (SSP("y + z ~ a + f", products=True), "afyz", 1),
    ],
    ids=lambda value: getattr(value, "formula", str(value)),
)
def test_the_audit_finds_nothing(method: Any, names: str, rows: int, level: float) -> None:
    """All branches, both relations, units of several rows."""
    schema = cf.Schema({name: COLUMNS[name] for name in names}, rows_per_unit=rows)
    found = audit(method, schema, privacy=cf.GDP(level), runs=0, seed=3)
    assert found.ok, found.violated
