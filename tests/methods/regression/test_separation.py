"""Cells of a design in which all outcomes are alike: every one is found, whatever made it, and its coefficients are not answered."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.few import few

import confide as cf
from confide.core import seal
from confide.methods.regression.evidence.cells import cell_words, design_cells, distinct_rows
from confide.methods.regression.glm.noise_floor import least_against
from confide.methods.regression.glm.sums import OutcomeCells
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.testing.test_data import ZeroNoise, codes_of
from confide_lab.benchmarks.separation import Case, measured

COLUMNS = {
    "a": cf.Integer(0, 1),
    "b": cf.Integer(0, 1),
    "c": cf.Integer(0, 1),
    "t": cf.Integer(1, 2),
    "f": cf.Categorical(["u", "v", "w"]),
    "x": cf.Numeric(-1, 3),
    "y": cf.Integer(0, 1),
}
SCHEMA = cf.Schema(COLUMNS)
GRID = pd.DataFrame(
    list(product([0, 1], [0, 1], [0, 1], [1, 2], ["u", "v", "w"], [-1.0, 0.3, 3.0])), columns=list("abctfx")
)
FORMULAS = (
    "y ~ 1",
    "y ~ x",
    "y ~ a",
    "y ~ a + f",
    "y ~ a * b",
    "y ~ a:b",
    "y ~ a + a:b",
    "y ~ a + b + c + a:b:c",
    "y ~ a * b + a * c",
    "y ~ t * a",
    "y ~ f * a",
    "y ~ a + I(a*b)",
    "y ~ f * x",
    "y ~ a * b * x",
)


def _design(formula: str) -> tuple[ModelMatrix, np.ndarray]:
    design = ModelMatrix.of(formula, SCHEMA)
    return design, design.matrix(GRID)


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_set_of_records_that_a_combination_of_columns_marks_holds_a_cell(formula: str) -> None:
    """By trial of all 0/1 vectors over the distinct rows of the design that are combinations of its columns."""
    design, matrix = _design(formula)
    cells = [matrix @ one.weights for one in design_cells(design)]
    for own in cells:
        assert np.allclose(own, own.round()) and set(own.round()) <= {0.0, 1.0} and own.any()
    sets = [own.round().astype(bool) for own in cells]
    assert not any((one <= other).all() for one in sets for other in sets if one is not other)
    binary = matrix[:, [not np.ptp(matrix[:, j]) or len(np.unique(matrix[:, j])) == 2 for j in range(matrix.shape[1])]]
    rows, place = np.unique(binary.round(9), axis=0, return_inverse=True)
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    base = left[:, sizes > 1e-9 * sizes[0]]
    marked = 0
    for bits in product([False, True], repeat=len(rows)):
        mark = np.array(bits)
        if mark.any() and np.abs(mark - base @ (base.T @ mark)).max() < 1e-9:
            marked += 1
            assert any((one <= mark[place.reshape(-1)]).all() for one in sets), mark
    assert marked >= len(sets)


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_hangs_on_a_cell_moves_the_line_there_alone(formula: str) -> None:
    design, matrix = _design(formula)
    for one in design_cells(design):
        inside = (matrix @ one.weights).round().astype(bool)
        assert np.allclose((matrix @ one.along)[~inside], 0.0)
        assert {j for j in range(len(one.weights)) if one.weights[j]} <= set(one.places)
        for place, value in one.fixed:
            assert np.allclose(matrix[inside, 1 + place], value)


def test_cells_are_named_by_what_they_depend_on() -> None:
    def named(formula: str) -> list[str]:
        return [cell_words(one.column, one.name) for one in design_cells(_design(formula)[0])]

    assert named("y ~ x") == ["all records"]
    assert named("y ~ a + f") == ["a[0]", "a[1]", "f[u]", "f[v]", "f[w]"]
    assert named("y ~ t * a") == ["a:t[0:1]", "a:t[0:2]", "a:t[1:1]", "a:t[1:2]"]
    assert named("y ~ a:b") == ["a:b[0:0 or 0:1 or 1:0]", "a:b[1:1]"]
    assert "a[0]" in named("y ~ a + b + c + a:b:c")


def test_with_a_slope_of_its_own_a_level_has_two_coefficients() -> None:
    design, _ = _design("y ~ f * x")
    by = {one.name: [design.names[j] for j in one.places] for one in design_cells(design)}
    assert by["w"] == ["f[T.w]", "f[T.w]:x"] and by["u"] == list(design.names)


@pytest.mark.parametrize("model", ["logit", "probit", "poisson"])
@pytest.mark.parametrize("alike", few([False, True], 1))
def test_a_cell_of_two_columns_is_no_more_answered_than_the_level_of_one_factor(model: str, alike: bool) -> None:
    """Each was answered in 21 of 30 samples and more (counts: 9), and covered in none where all outcomes are alike."""
    last = {True: {"poisson": 0.0}.get(model, 1.0), False: {"poisson": 0.002}.get(model, 0.999)}[alike]
    for formula in ("y ~ a * b", "y ~ f"):
        found = measured(Case(model, formula, last), 10)
        assert found["answered"] <= (1 if model == "poisson" else 0), found
        # what else there is stays answered
        assert found["status"].get("partial", 0) >= 4


@pytest.mark.parametrize("model", ["logit", "probit", "poisson"])
def test_where_all_outcomes_are_alike_a_number_has_no_slope(model: str) -> None:
    """Without noise it was `valid`, with a finite interval, every time."""
    case = Case(model, "y ~ x", 0.0 if model == "poisson" else 1.0)
    plan = cf.plan(case.method, case.schema, cf.GDP(1.0))
    for noise in (ZeroNoise(), *(SimulatedNoise(seed) for seed in range(6))):
        found: Any = case.method.infer(seal(case.method, cf.read(case.frame(1), case.schema), plan, noise))
        assert found.status in ("imprecise", "not_identified") and not np.isfinite(found.conf_int().to_numpy()).any()
        if isinstance(noise, ZeroNoise):
            assert "all records (about 0 ±" in found.reason


def test_a_cell_of_a_product_is_looked_for_under_weights_too() -> None:
    schema = cf.Schema(
        {"w": cf.Numeric(1, 3), "a": cf.Integer(0, 1), "b": cf.Integer(0, 1), "y": cf.Integer(0, 1)},
        design=cf.SurveyDesign(weight="w"),
    )
    method = Logistic("y ~ a * b")
    plan, named, partial = cf.plan(method, schema, cf.GDP(4.0)), 0, 0
    for seed in range(10):
        frame = Case("logit", "y ~ a * b", 1.0).frame(seed)
        frame = frame.assign(w=np.random.default_rng(seed).uniform(1, 3, len(frame)))
        found: Any = method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(seed)))
        assert found.status != "valid" and not np.isfinite(found.conf_int().loc["a:b"]).any()
        named += "a:b[1:1]" in found.reason
        partial += found.status == "partial" and "a:b[1:1]" in found.reason
    # of 60 seeds 88 % name the cell, 70 % answer the rest: a false alarm in 600
    assert named >= 5 and partial >= 2


def test_advice_on_a_product_names_a_formula_without_it() -> None:
    case = Case("logit", "y ~ a * b", 1.0)
    found: Any = case.method.infer(
        seal(
            case.method,
            cf.read(case.frame(2), case.schema),
            cf.plan(case.method, case.schema, cf.GDP(3.0)),
            ZeroNoise(),
        )
    )
    assert found.status == "partial" and "or write the formula without the product of a:b" in found.reason
    assert found.params.isna().to_dict() == {"Intercept": False, "a": False, "b": False, "a:b": True}


def test_ordinary_designs_are_answered_as_ever() -> None:
    for model, last in (("logit", 0.7), ("probit", 0.7), ("poisson", 1.2)):
        for formula in ("y ~ a * b", "y ~ x"):
            found = measured(Case(model, formula, last), 4)
            assert found["ok"] >= 3, found


# Directions that are no cell's own ----------------------------------------------------------------------------------------

DOSE = cf.Schema({"d": cf.Integer(0, 2), "y": cf.Integer(0, 1)})


@pytest.mark.parametrize("model", few(["logit", "probit", "poisson"], 0))
def test_a_direction_that_no_record_stands_against_is_not_answered(model: str) -> None:
    """Of 60 samples y ~ d was answered in 29 and 30 (probit 52 and 55), y ~ a + b in 13 and 15 (36 and 37), y ~ a + x in 8 (14, 4)."""
    few, none = {"poisson": (0.002, 0.0)}.get(model, (0.999, 1.0))
    cases = [Case(model, "y ~ a + x", none), Case(model, "y ~ d", none)]
    if model != "poisson":
        cases += [Case(model, "y ~ d", few), Case(model, "y ~ a + b", none), Case(model, "y ~ a + b", few)]
    for case in cases:
        found = measured(case, 4)
        assert not found["answered"], found


@pytest.mark.parametrize("model", ["logit", "probit", "poisson"])
def test_ordinary_lines_of_few_values_are_answered(model: str) -> None:
    formulas = ("y ~ d",) if model == "poisson" else ("y ~ d", "y ~ a + b")
    for formula in formulas:
        found = measured(Case(model, formula, 1.2 if model == "poisson" else 0.7), 4)
        assert found["ok"] == 4, found


def test_outcomes_are_counted_where_cells_do_not_tell_them() -> None:
    def counted(formula: str, schema: cf.Schema = SCHEMA) -> bool:
        return "outcomes" in cf.plan(Logistic(formula), schema, cf.GDP(1.0)).statistics

    assert counted("y ~ d", DOSE) and counted(
        "y ~ d + I(d**2)", cf.Schema({"d": cf.Integer(0, 3), "y": cf.Integer(0, 1)})
    )
    assert not counted("y ~ d + I(d**2)", DOSE)  # three rows, three columns
    assert counted("y ~ a + f") and counted("y ~ t + a:b")
    assert not any(counted(formula) for formula in ("y ~ a", "y ~ f", "y ~ a * b", "y ~ a:b", "y ~ x", "y ~ a + b + x"))
    assert not counted("y ~ d", cf.Schema({"d": cf.Integer(0, 12), "y": cf.Integer(0, 1)}))


def test_one_record_is_in_the_cell_of_its_row_and_outcome() -> None:
    schema = cf.Schema({"f": cf.Categorical(["u", "v", "w"]), "d": cf.Integer(0, 3), "y": cf.Integer(0, 9)})
    design = ModelMatrix.of("y ~ d + f", schema)
    rows = distinct_rows(design)
    assert rows is not None and len(rows.rows) == 12
    cells = OutcomeCells(design, rows.columns, rows.sizes, tuple(rows.row_of.tolist()))
    g = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"f": g.choice(["u", "v", "w", "lost"], 300), "d": g.integers(0, 4, 300), "y": g.integers(0, 3, 300)}
    )
    codes = codes_of(cf.read(frame, schema), cells)
    found = cells(codes)[0].astype(int)
    matrix = design.matrix(frame)
    for cell, own, y, label in zip(found, matrix, frame["y"], frame["f"], strict=True):
        if label == "lost":
            assert cell == 0
        else:
            assert np.array_equal(rows.rows[(cell - 1) // 2], own) and (cell - 1) % 2 == (y > 0)
    table = Histogram(cells)
    assert table.value(table.update(table.zero(), codes)).sum() == (frame["f"] != "lost").sum()
    assert (table.sensitivity_squared("add-remove"), table.sensitivity_squared("substitute")) == (1, 2)


def test_the_fewest_records_against_a_direction_are_found() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    apart = np.array([[300.0, 2.0], [200.0, 100.0], [3.0, 300.0]])
    found = least_against(rows, apart, 1.0, [np.ones(3)], of_counts=False)
    for place in (0, 1):
        one = min((one for one in found if one.place == place), key=lambda one: one.count)
        assert (one.count, one.moved.tolist()) == (5.0, [True, False, True]) and np.isclose(one.sd, 2**0.5)
    # two rows with both outcomes hold a line of two coefficients
    mixed = np.array([[300.0, 100.0], [200.0, 100.0], [0.0, 300.0]])
    assert min(one.count for one in least_against(rows, mixed, 1.0, [np.ones(3)], of_counts=False)) == 100.0
    # of counts nothing stands against falling where there are none, but what there is stands against any move
    none = np.array([[300.0, 0.0], [300.0, 1.0], [40.0, 260.0]])
    assert {one.count for one in least_against(rows, none, 1.0, [], of_counts=True)} >= {1.0}
    assert all(one.count > 200 for one in least_against(rows, none[::-1] + 260, 1.0, [], of_counts=True))


def test_what_a_direction_moves_is_named() -> None:
    case = Case("logit", "y ~ a + b", 1.0)
    plan = cf.plan(case.method, case.schema, cf.GDP(3.0))
    found: Any = case.method.infer(seal(case.method, cf.read(case.frame(2), case.schema), plan, ZeroNoise()))
    assert found.status == "imprecise" and not np.isfinite(found.conf_int().to_numpy()).any()
    said = [
        case.method.infer(seal(case.method, cf.read(case.frame(seed), case.schema), plan, SimulatedNoise(seed))).reason
        for seed in range(4)
    ]
    assert any("a:b[0:0 or 1:1] (about " in one and "of the other outcome" in one for one in said), said
