"""Designs: model matrices against formulaic's, exact codes, missing values, and the same bits in any batch."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import formulaic
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from tests.messages import refuses

from confide.errors import PlanError
from confide.schema import Categorical, Integer, ModelMatrix, Numeric, Schema

SCHEMA = Schema(
    {
        **{name: Numeric(0.1, 2) for name in ("y", "a", "b", "c")},
        "k": Integer(0, 9),
        "flag": Integer(0, 1),
        "g": Categorical(["N", "S"]),
        "h": Categorical(["u", "v", "w"]),
        "m": Numeric(-1, 1, on_missing="midpoint"),
        "i": Categorical(["p", "q"], on_missing="q"),
    }
)


def coded(design: ModelMatrix, frame: pd.DataFrame) -> NDArray[np.float64]:
    """Column codes of a frame, as a source hands them to the design."""
    rows = []
    for name in design.columns:
        column = design.schema[name]
        cells = frame[name]
        rows.append(
            column.code_labels(cells) if isinstance(column, Categorical) else column.code(cells.to_numpy(dtype=float))
        )
    return np.array(rows).reshape(len(design.columns), len(frame))


def decoded(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of the terms' codes, (rows, terms)."""
    columns = [
        term.low + row * ((term.high - term.low) / (term.steps - 1))
        for term, row in zip(design.terms, codes, strict=False)
    ]
    return np.array(columns).reshape(len(design.terms), codes.shape[1]).T


# against formulaic ----------------------------------------------------------------------------------------------------

FORMULAS = [
    "a", "a + b", "a*b", "a - 1", "1", "a:b:c", "(a + b + c)**2", "(a + b + g)**2 - a:b",
    "g", "a + g", "0 + g", "0 + a + g", "0 + g + h", "0 + a + g + h", "h + g - 1",
    "a:g", "a + a:g", "a*g", "g:a", "g*h", "g:h", "0 + g:h", "g + g:h", "h + g:h", "0 + g*h", "0 + g + g:h",
    "a*g*h", "a:g:h", "a:g:h + a:g", "a:b:g", "a + h:a - 1", "g:h + g:a", "0 + h:a + h", "a:h + b:h + h:g", "0 + g + h + g:h + a:g:h",
    "log(a) + np.log(b)", "log(a)*g", "I(a ** 2) + a", "log1p(k)", "I(a / b) + I(2 * a - b)", "sqrt(a) + exp(b) + abs(c)",
    "I(a ** 3):b", "I(a ** 0.7)", "I(-a + 3) + I(a ** -2)", "log(a + 0.5):h",
]  # fmt: skip


@pytest.mark.parametrize("right", FORMULAS)
def test_model_matrices_equal_formulaics(right: str) -> None:
    design = ModelMatrix.of(f"y ~ {right}", SCHEMA)
    frame = SCHEMA.sample(300, seed=3)
    functions = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "exp": np.exp, "np": np}
    expected = formulaic.model_matrix(right, frame, context=functions)
    found = pd.DataFrame(design.matrix(frame), columns=list(design.names))
    assert set(design.names) == set(expected.columns)
    np.testing.assert_allclose(found[list(expected.columns)], expected.to_numpy(dtype=float), rtol=1e-12, atol=1e-12)
    assert np.linalg.matrix_rank(found) == len(design.names), "no column is a sum of others"


@pytest.mark.parametrize("right", FORMULAS)
def test_codes_are_the_model_matrix_of_the_decoded_columns(right: str) -> None:
    design = ModelMatrix.of(f"y ~ {right}", SCHEMA)
    codes = coded(design, SCHEMA.sample(300, seed=4))
    on_grid = pd.DataFrame({name: SCHEMA[name].decode(row) for name, row in zip(design.columns, codes, strict=True)})
    found, keep = design.codes(codes)
    assert keep is None
    assert found.shape == (len(design.terms) + 1, 300)
    assert (found == np.rint(found)).all() and (found >= 0).all()
    for row, term in zip(found, (*design.terms, design.response), strict=True):
        assert row.max() <= term.steps - 1
        assert not np.signbit(row).any()
    steps = np.array([(term.high - term.low) / (term.steps - 1) for term in design.terms])
    error = np.abs(decoded(design, found) - design.matrix(on_grid)[:, int(design.intercept) :])
    # half a grid step, and what float64 leaves of a bound computed outward
    assert (error <= 0.5 * steps + 1e-14).all()
    assert (error[:, [term.binary for term in design.terms]] == 0).all()


def test_names_as_in_statsmodels() -> None:
    design = ModelMatrix.of("y ~ a*g + C(h) + log(b) + k:h", SCHEMA)
    assert design.names == (
        "Intercept",
        "a",
        "g[T.S]",
        "h[T.v]",
        "h[T.w]",
        "log(b)",
        "a:g[T.S]",
        "k:h[u]",
        "k:h[v]",
        "k:h[w]",
    )
    assert ModelMatrix.of("y ~ 0 + g + h", SCHEMA).names == ("g[N]", "g[S]", "h[T.v]", "h[T.w]")
    assert ModelMatrix.of("y ~ g:h - 1", SCHEMA).names == (
        "g[N]:h[u]",
        "g[S]:h[u]",
        "g[N]:h[v]",
        "g[S]:h[v]",
        "g[N]:h[w]",
        "g[S]:h[w]",
    )
    assert ModelMatrix.of("y ~ g:h", SCHEMA).names == (
        "Intercept",
        "h[T.v]",
        "h[T.w]",
        "g[T.S]:h[u]",
        "g[T.S]:h[v]",
        "g[T.S]:h[w]",
    )
    assert ModelMatrix.of("y ~ 1", SCHEMA).names == ("Intercept",)


# grids ----------------------------------------------------------------------------------------------------------------


def test_plain_columns_are_handed_on_untouched() -> None:
    design = ModelMatrix.of("y ~ b + k + a", SCHEMA)
    assert design.columns == ("b", "k", "a", "y")
    codes = coded(design, SCHEMA.sample(50, 1))
    found, keep = design.codes(codes)
    assert found is codes and keep is None
    assert [term.steps for term in design.terms] == [2**20, 10, 2**20]
    assert [(term.low, term.high) for term in design.terms] == [(0.1, 2.0), (0.0, 9.0), (0.1, 2.0)]
    mixed, _ = ModelMatrix.of("y ~ b + k + log(a)", SCHEMA).codes(codes)
    assert mixed[:2].tolist() == codes[:2].tolist() and mixed[3].tolist() == codes[3].tolist()


def test_exact_codes_of_derived_terms() -> None:
    design = ModelMatrix.of("y ~ a:b + I(k ** 2) + k:flag", SCHEMA)
    frame = SCHEMA.sample(500, 2)
    codes = coded(design, frame)
    columns = dict(zip(design.columns, codes, strict=True))
    found, _ = design.codes(codes)
    for row, term in zip(found, design.terms, strict=False):
        scale = (2**20 - 1) / (term.high - term.low)
        for at in range(500):
            # every step in Python floats: the same IEEE operations one by one
            value = {
                name: min(float(c[at]) / SCHEMA[name].scale + SCHEMA[name].low, SCHEMA[name].high)
                for name, c in columns.items()
            }  # type: ignore[union-attr]
            product = {
                "a:b": lambda v: v["a"] * v["b"],
                "I(k ** 2)": lambda v: v["k"] * v["k"],
                "k:flag": lambda v: v["k"] * v["flag"],
            }[term.name](value)
            assert row[at] == round((min(max(product, term.low), term.high) - term.low) * scale)


def test_binary_terms() -> None:
    design = ModelMatrix.of("y ~ flag + g*h + flag:g + a:g + k", SCHEMA)
    assert [term.name for term in design.terms if term.binary] == [
        "flag", "g[T.S]", "h[T.v]", "h[T.w]", "g[T.S]:h[T.v]", "g[T.S]:h[T.w]", "flag:g[T.S]",
    ]  # fmt: skip
    assert all((term.low, term.high, term.steps) == (0.0, 1.0, 2) for term in design.terms if term.binary)
    codes, _ = design.codes(coded(design, SCHEMA.sample(200, 1)))
    for row, term in zip(codes, design.terms, strict=False):
        if term.binary:
            assert set(row.tolist()) == {0.0, 1.0}


def test_a_share_between_0_and_1_is_not_binary() -> None:
    schema = Schema(
        {"y": Numeric(0, 1), "share": Numeric(0, 1), "yes": Numeric(0, 1, steps=2), "g": Categorical(["N", "S"])}
    )
    design = ModelMatrix.of("y ~ share*g + yes*g", schema)
    found = {term.name: (term.binary, term.steps) for term in (*design.terms, design.response)}
    assert found == {
        "share": (False, 2**20),
        "g[T.S]": (True, 2),
        "yes": (True, 2),
        "share:g[T.S]": (False, 2**20),
        "yes:g[T.S]": (True, 2),
        "y": (False, 2**20),
    }


# missing values -------------------------------------------------------------------------------------------------------


def test_records_with_missing_values_are_dropped_or_filled() -> None:
    nan = float("nan")
    frame = pd.DataFrame(
        {
            "y": [1, 1, 1, 1, nan, 1.0],
            "a": [1, nan, 1, 1, 1, 1.0],
            "g": ["S", "S", "X", "S", "S", "N"],
            "m": [0.5, 0.5, 0.5, nan, 0.5, 0.5],
            "i": ["p", "p", "p", "zzz", "p", None],
        }
    )
    for formula in ("y ~ a + m", "y ~ a*g + m:a + i", "y ~ log(a) + exp(m) + i:g"):
        design = ModelMatrix.of(formula, SCHEMA)
        codes = coded(design, frame)
        found, keep = design.codes(codes)
        complete = frame[[name for name in design.columns if SCHEMA[name].on_missing == "drop"]].notna().all(axis=1)
        if "g" in design.columns:
            complete &= frame["g"].isin(["N", "S"])
        assert keep is not None and keep.tolist() == complete.tolist()
        assert np.isfinite(found).all()
    design = ModelMatrix.of("y ~ m + i", SCHEMA)
    found, keep = design.codes(coded(design, frame))
    assert found[0, 3] == SCHEMA["m"].missing_code == 524288
    assert found[1].tolist() == [0, 0, 0, 1, 0, 1]


ZERO = Schema(
    {
        "y": Numeric(0, 1),
        "x": Numeric(0, 8, steps=9),
        "z": Numeric(0, 8, steps=9, on_missing="midpoint"),
        "g": Categorical(["N", "S"], on_missing="N"),
    }
)


def test_values_that_are_not_finite_follow_on_missing() -> None:
    codes = np.array([[0.0, 1, 8], [1, 1, 1]])
    dropped, keep = ModelMatrix.of("y ~ log(x)", ZERO, term_bounds={"log(x)": (-1, 3)}).codes(codes)
    assert keep is not None and keep.tolist() == [False, True, True]
    assert np.isfinite(dropped).all()
    design = ModelMatrix.of("y ~ log(z)", ZERO, term_bounds={"log(z)": (-1, 3)})
    filled, keep = design.codes(codes)
    assert keep is None
    assert filled[0].tolist() == [524288, 262144, round((np.log(8) + 1) / 4 * (2**20 - 1))]


def test_records_lost_for_two_reasons_are_all_lost() -> None:
    design = ModelMatrix.of("y ~ log(x) + z", ZERO, term_bounds={"log(x)": (-1, 3)})
    codes = np.array([[0.0, 1, 1, 1], [1, 1, 1, 1], [1, -1, 1, 1]])
    assert design.columns == ("x", "z", "y")
    _, keep = design.codes(codes)
    assert keep is not None and keep.tolist() == [False, False, True, True]


def test_given_bounds_hold_a_factor_before_it_is_multiplied() -> None:
    design = ModelMatrix.of("y ~ log(x):I(z / 8)", ZERO, term_bounds={"log(x)": (0, 1)})
    assert (design.terms[0].low, design.terms[0].high) == (0.0, 1.0)
    found, _ = design.codes(np.array([[8.0, 8], [4, 8], [1, 1]]))
    assert found[0].tolist() == [round(0.5 * (2**20 - 1)), 2**20 - 1]


@pytest.mark.parametrize("name", ["x", "z"])
def test_a_factor_that_is_not_finite_counts_whatever_it_is_multiplied_by(name: str) -> None:
    design = ModelMatrix.of(f"y ~ log({name}):g", ZERO, term_bounds={f"log({name})": (-1, 3)})
    codes = np.array([[0.0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]])
    found, keep = design.codes(codes)
    if name == "x":
        assert keep is not None and keep.tolist() == [False, False, True, True]
    else:
        assert keep is None and found[:2, :2].tolist() == [[design.terms[0].grid.missing_code] * 2] * 2


def test_roots_at_the_upper_bound_are_numbers() -> None:
    highs = np.random.default_rng(1).uniform(0, 100, 200)
    for high in highs.tolist():
        schema = Schema({"y": Numeric(0, 1), "x": Numeric(0, high)})
        design = ModelMatrix.of(f"y ~ sqrt({high!r} - x)", schema)
        assert design.codes(np.array([[2.0**20 - 1], [0.0]]))[1] is None


# the same bits in any batch -------------------------------------------------------------------------------------------

BATCH = (
    "log(y) ~ a + log(a) + log1p(k) + exp(b) + sqrt(c) + I(a ** 0.37) + I(a ** 5) + I(a / b) + a:b:c + log(a):exp(b)"
    " + g*h + a:g + m + log(a):i"
)


def pieces(size: int) -> Callable[[Any, Any], Any]:
    def apply(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate(
            [np.array(design.codes(codes[:, at : at + size])[0]) for at in range(0, codes.shape[1], size)], axis=1
        )

    return apply


def strided(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    return design.codes(np.repeat(codes, 3, axis=1)[:, ::3])[0]


def backward(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    return design.codes(codes[:, ::-1])[0][:, ::-1]


def transposed(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    return design.codes(np.ascontiguousarray(codes.T).T)[0]


def shifted(design: ModelMatrix, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    return design.codes(np.concatenate([codes[:, :3], codes], axis=1))[0][:, 3:]


@pytest.mark.parametrize(
    ("rows", "apply"),
    [
        (300, pieces(1)),
        (20_000, pieces(7)),
        (20_000, pieces(8191)),
        (20_000, strided),
        (20_000, backward),
        (20_000, transposed),
        (20_000, shifted),
    ],
)
def test_a_record_gives_the_same_bits_in_any_batch(rows: int, apply: Callable[..., Any]) -> None:
    design = ModelMatrix.of(BATCH, SCHEMA)
    generator = np.random.default_rng(7)
    codes = np.array([generator.integers(0, SCHEMA[name].steps, rows).astype(float) for name in design.columns])
    whole, keep = design.codes(codes)
    assert keep is None
    assert np.ascontiguousarray(apply(design, codes)).tobytes() == whole.tobytes()


def test_the_values_before_the_grid_have_the_same_bits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes hide most differences of last bits, so the values are compared as well: NumPy's own depend on the strides."""
    design = ModelMatrix.of("y ~ log(a) + exp(b) + I(a ** 0.37) + log1p(k)", SCHEMA)
    generator = np.random.default_rng(8)
    codes = np.array([generator.integers(0, SCHEMA[name].steps, 9000).astype(float) for name in design.columns])
    seen: list[NDArray[np.float64]] = []
    whole_code = Numeric.code

    def spy(self: Numeric, values: Any, out: Any = None) -> Any:
        seen.append(np.array(values))
        return whole_code(self, values, out)

    monkeypatch.setattr(Numeric, "code", spy)

    def values(given: NDArray[np.float64]) -> NDArray[np.float64]:
        seen.clear()
        design.codes(given)
        blocks = [np.array(seen[at : at + 4]) for at in range(0, len(seen), 4)]
        return np.concatenate(blocks, axis=1)[:, : given.shape[1]]

    whole = values(codes)
    assert values(np.ascontiguousarray(codes[:, ::-1])).tobytes() == np.ascontiguousarray(whole[:, ::-1]).tobytes()
    assert values(codes[:, ::-1])[:, ::-1].tobytes() == whole.tobytes()
    assert values(codes[:, 5:]).tobytes() == np.ascontiguousarray(whole[:, 5:]).tobytes()
    assert values(np.repeat(codes, 3, axis=1)[:, ::3]).tobytes() == whole.tobytes()
    assert (
        np.concatenate([values(codes[:, at : at + 7]) for at in range(0, 700, 7)], axis=1).tobytes()
        == np.ascontiguousarray(whole[:, :700]).tobytes()
    )
    assert (
        np.concatenate([values(codes[:, at : at + 1]) for at in range(100)], axis=1).tobytes()
        == np.ascontiguousarray(whole[:, :100]).tobytes()
    )


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2**20 - 1), min_size=2, max_size=8), st.integers(0, 4095), st.integers(0, 2**20 - 1))
def test_other_records_do_not_matter(others: list[int], at: int, own: int) -> None:
    design = ModelMatrix.of("y ~ log(a) + exp(a) + I(a ** 0.37)", SCHEMA)
    batch = np.resize(np.array(others, dtype=float), (2, 4200))
    batch[:, at] = own
    assert design.codes(batch)[0][:, at].tobytes() == design.codes(np.full((2, 1), float(own)))[0][:, 0].tobytes()


def test_hostile_codes_raise_nothing() -> None:
    design = ModelMatrix.of(BATCH, SCHEMA)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for rows in (0, 1, 5):
            for code in (-1.0, 0.0):
                found, keep = design.codes(np.full((len(design.columns), rows), code))
                assert found.shape == (len(design.terms) + 1, rows)
                assert np.isfinite(found).all()
                assert keep is None if code == 0 or rows == 0 else not keep.any()


def test_codes_need_one_row_for_each_column() -> None:
    design = ModelMatrix.of("y ~ a", SCHEMA)
    for shape in ((3, 5), (2,), (1, 2)):
        with refuses(PlanError):
            design.codes(np.zeros(shape))


# public frames --------------------------------------------------------------------------------------------------------


def test_matrix_of_public_frames() -> None:
    design = ModelMatrix.of("y ~ a*g + log(k)", SCHEMA, term_bounds={"log(k)": (0, 3)})
    given: dict[str, Any] = {"a": [0.5, 99.0, float("nan"), 1], "g": ["N", "S", "S", "X"], "k": [1, 2, 3, 4]}
    expected = [
        [1, 0.5, 0, 0, 0],
        [1, 99, 1, np.log(2), 99],
        [1, np.nan, 1, np.log(3), np.nan],
        [1, 1, np.nan, np.log(4), np.nan],
    ]
    assert design.names == ("Intercept", "a", "g[T.S]", "log(k)", "a:g[T.S]")
    frames = [
        given,
        {name: np.array(cells) for name, cells in given.items()},
        pd.DataFrame(given),
        pl.DataFrame(given),
        pd.DataFrame(given).convert_dtypes(),
    ]
    for frame in frames:
        np.testing.assert_array_equal(design.matrix(frame), expected)
    np.testing.assert_array_equal(
        design.matrix({"a": 0.5, "g": "S", "k": [1, 2]}), [[1, 0.5, 1, 0, 0.5], [1, 0.5, 1, np.log(2), 0.5]]
    )
    assert design.matrix({"a": 1, "g": "S", "k": 1}).shape == (1, 5)
    assert design.matrix(pd.DataFrame({"a": [], "g": [], "k": []})).shape == (0, 5)
    assert ModelMatrix.of("y ~ 1", SCHEMA).matrix(given).tolist() == [[1.0]] * 4
    assert ModelMatrix.of("y ~ 1", SCHEMA).matrix(pd.DataFrame(given)).tolist() == [[1.0]] * 4


def test_values_of_public_frames_are_used_as_they_are() -> None:
    schema = Schema(
        {"y": Numeric(0, 1), "x": Numeric(0, 8, on_missing="midpoint"), "g": Categorical(["N", "S"], on_missing="S")}
    )
    design = ModelMatrix.of("y ~ x + log(x):g", schema, term_bounds={"log(x)": (0, 1)})
    found = design.matrix({"x": [1000.0, np.nan], "g": ["N", None]})
    assert found[0].tolist() == [1.0, 1000.0, np.log(1000), 0.0]
    assert np.isnan(found[1, 1:]).all()


def test_response_of() -> None:
    frame = pd.DataFrame({"y": [1.0, 50.0, np.nan]})
    np.testing.assert_array_equal(ModelMatrix.of("y ~ a", SCHEMA).response_of(frame), [1, 50, np.nan])
    np.testing.assert_allclose(ModelMatrix.of("log(y) ~ a", SCHEMA).response_of(frame), np.log([1, 50, np.nan]))


@pytest.mark.parametrize(
    "frame",
    [
        3,
        np.zeros((2, 2)),
        {"A": [1], "g": ["N"]},
        {},
        {"a": [1, 2], "g": ["N"]},
        {"a": ["x"], "g": ["N"]},
        {"a": [[1.0]], "g": ["N"]},
    ],
)
def test_wrong_frames(frame: Any) -> None:
    with refuses(PlanError):
        ModelMatrix.of("y ~ a + g", SCHEMA).matrix(frame)


# text forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", ["y ~ a", BATCH, "y ~ 0 + g:h", "y ~ 1"])
def test_designs_are_values(formula: str) -> None:
    bounds = {"log(a)": (-0.1, 3)} if "log(a)" in formula else None
    design = ModelMatrix.of(formula, SCHEMA, term_bounds=bounds)
    data = json.loads(json.dumps(design.to_dict()))
    again = ModelMatrix.from_dict(data, Schema.from_dict(SCHEMA.to_dict()))
    assert again == design and hash(again) == hash(design)
    assert again.to_dict() == design.to_dict()
    assert [(term.low.hex(), term.high.hex()) for term in again.terms] == [
        (term.low.hex(), term.high.hex()) for term in design.terms
    ]
    assert pickle.loads(pickle.dumps(design)) == design
    with pytest.raises(AttributeError):
        design.formula = "y ~ b"  # type: ignore[misc]


def test_a_design_needs_its_own_schema() -> None:
    design = ModelMatrix.of("y ~ a", SCHEMA)
    other = Schema({"y": Numeric(0, 1), "a": Numeric(0, 1)})
    with refuses(PlanError):
        ModelMatrix.from_dict(design.to_dict(), other)
    for damaged in ({}, {**design.to_dict(), "term_bounds": {"a": ["x", "y"]}}, {"formula": "y ~ a", "term_bounds": 3}):
        with refuses(PlanError):
            ModelMatrix.from_dict(damaged, SCHEMA)
    with refuses(PlanError):
        ModelMatrix.from_dict({**design.to_dict(), "terms": []}, SCHEMA)
