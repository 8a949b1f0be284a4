"""Columns: the coding formula to the bit, its range, its accuracy, the missing rules, and every error."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

from confide.errors import SchemaError
from confide.schema import Categorical, Integer, Numeric, Provenance
from confide.schema.columns import MAX_STEPS
from confide.schema.toml import column_from_dict

DOUBLES = st.floats(allow_nan=True, allow_infinity=True, width=64)
BOUNDS = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)
STEPS = st.integers(min_value=2, max_value=MAX_STEPS)


def reference(column: Numeric | Integer, value: float) -> int:
    """The coding formula in Python floats: the same IEEE operations one by one, the last clamp included."""
    scale = (column.steps - 1) / (column.high - column.low)
    if not math.isfinite(value):
        if column.on_missing == "drop":
            return -1
        midpoint = column.low + (column.high - column.low) / 2
        return reference(column, midpoint if column.on_missing == "midpoint" else float(column.on_missing))
    code = round((min(max(value, column.low), column.high) - column.low) * scale)
    return min(max(code, 0), column.steps - 1)


@st.composite
def numeric(draw: st.DrawFn) -> Numeric:
    low, high = sorted(draw(st.tuples(BOUNDS, BOUNDS)))
    if not high - low > 1e-6 * max(abs(low), abs(high), 1.0):
        high = low + max(abs(low), 1.0)
    rule = draw(st.sampled_from(["drop", "midpoint", low, high]))
    return Numeric(low, high, steps=draw(STEPS), on_missing=rule)


@settings(deadline=None, max_examples=300)
@given(numeric(), st.lists(DOUBLES, min_size=1, max_size=30), st.lists(st.floats(-0.1, 1.1), min_size=1, max_size=30))
def test_code_is_the_formula_to_the_bit(column: Numeric, wild: list[float], inside: list[float]) -> None:
    values = np.array([*wild, *(column.low + u * (column.high - column.low) for u in inside), column.low, column.high])
    codes = column.code(values)
    assert codes.dtype == np.float64
    assert codes.astype(object).tolist() == [float(reference(column, v)) for v in values.tolist()]
    assert not np.signbit(codes[codes == 0]).any()


@settings(deadline=None, max_examples=200)
@given(numeric(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_codes_stay_in_range_and_are_the_nearest_grid_point(column: Numeric, shares: list[float]) -> None:
    values = np.array([min(column.low + u * (column.high - column.low), column.high) for u in shares])
    for value, code in zip(values.tolist(), column.code(values).tolist(), strict=True):
        assert 0 <= code <= column.steps - 1
        exact = (
            Fraction(column.steps - 1)
            * (Fraction(value) - Fraction(column.low))
            / (Fraction(column.high) - Fraction(column.low))
        )
        assert abs(Fraction(int(code)) - exact) <= Fraction(1, 2) + Fraction(column.steps, 2**50)


@pytest.mark.parametrize("steps", [2, 3, 1000, 2**20, 2**22])
@pytest.mark.parametrize(
    "low, high", [(0, 1), (-1e300, 7e299), (0.1, 0.3), (1e15, 1e15 + 1), (-5e-300, 5e-300), (1 - 2**-53, 1)]
)
def test_the_last_clamp_could_never_act(low: float, high: float, steps: int) -> None:
    column = Numeric(low, high, steps=steps)
    assert column.code([low, high, math.nextafter(high, -math.inf), -1e308, 1e308]).max() == steps - 1
    assert column.code([low, high, -1e308, 1e308]).tolist() == [0, steps - 1, 0, steps - 1]


@settings(deadline=None, max_examples=100)
@given(numeric())
def test_decode_inverts_code_and_stays_within_the_bounds(column: Numeric) -> None:
    codes = np.unique(np.rint(np.linspace(0, column.steps - 1, 50)))
    values = column.decode(codes)
    assert ((values >= column.low) & (values <= column.high)).all()
    if column.high - column.low > 1e-3 * max(abs(column.low), abs(column.high)):  # else two codes may share a double
        assert column.code(values).tolist() == codes.tolist()
    assert np.isnan(column.decode([-1.0])).all()


def test_decode_never_exceeds_high() -> None:
    worst = [Numeric(0, high) for high in np.random.default_rng(1).uniform(0, 100, 400)]
    assert any((c.steps - 1) / c.scale > c.high for c in worst), "the plain formula does exceed high for some bounds"
    assert all(c.decode([c.steps - 1])[0] <= c.high for c in worst)


def test_known_codes() -> None:
    assert Numeric(17.5, 42).code([17.5, 20, 30.123456, 42]).tolist() == [0, 106997, 540271, 1048575]
    assert Numeric(0, 1).scale == 1048575.0
    assert Numeric(0, 5.5).scale.hex() == (1048575 / 5.5).hex()


@pytest.mark.parametrize(("rule", "expected"), [("drop", -1), ("midpoint", 50), (12.4, 12)])
def test_missing_values(rule: object, expected: int) -> None:
    column = Numeric(0, 100, steps=101, on_missing=rule)
    assert column.code([math.nan, math.inf, -math.inf]).tolist() == [expected] * 3
    assert column.missing_code == expected
    assert column.code([7.0]).tolist() == [7]


def test_negative_zero_and_zero_have_equal_bits() -> None:
    for column in (Numeric(0, 1), Numeric(-0.0, 1), Numeric(-1, 0), Numeric(-1, -0.0), Integer(0, 3)):
        codes = column.code([0.0, -0.0])
        assert codes[0].tobytes() == codes[1].tobytes()
        assert column.low.hex() == (column.low + 0.0).hex()


def test_integers() -> None:
    column = Integer(-2, 3)
    assert (column.steps, column.scale) == (6, 1.0)
    assert column.code([-9, -2, -1.4, 0, 2.6, 3, 99]).tolist() == [0, 0, 1, 2, 5, 5, 5]
    assert column.decode([0, 5]).tolist() == [-2, 3]
    big = Integer(10**15, 10**15 + 2**22 - 1)
    assert big.code([10**15 + 12345]).tolist() == [12345]


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_shapes_dtypes_and_out(shape: tuple[int, ...]) -> None:
    column = Numeric(0, 10, steps=11)
    values = np.full(shape, 3.2)
    assert column.code(values).shape == shape
    assert column.code(values.astype(np.float32)).tolist() == column.code(values).tolist()
    assert column.code(values.astype(np.int64)).tolist() == np.full(shape, 3).tolist()
    out = np.empty(shape)
    assert column.code(values, out=out) is out
    own = values.copy()
    column.code(own, out=own)
    assert own.tolist() == np.full(shape, 3).tolist()
    assert values.tolist() == np.full(shape, 3.2).tolist(), "without out= the input is left alone"


def test_the_same_bits_in_any_batch() -> None:
    column = Numeric(-3.3, 7.7)
    values = np.random.default_rng(2).normal(2, 4, 20_000)
    values[::97] = np.nan
    whole = column.code(values)
    assert (
        whole.tobytes() == np.concatenate([column.code(values[i : i + 7]) for i in range(0, len(values), 7)]).tobytes()
    )
    assert whole[:500].tolist() == [column.code(values[i : i + 1])[0] for i in range(500)]
    assert whole.tobytes() == column.code(values[::-1])[::-1].tobytes()
    assert whole.tobytes() == column.code(np.repeat(values, 3)[::3]).tobytes()


def test_hostile_values_give_no_warning() -> None:
    with np.errstate(all="raise"):
        Numeric(-1e300, 7e299).code([1e308, -1e308, 5e-324, np.nan, np.inf])
        Numeric(0, 1).outside([np.nan, np.inf, 1e308])


def test_outside() -> None:
    assert Numeric(0, 1).outside([0, 1, -1e-9, 1.1, np.nan, np.inf]).tolist() == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]


BAD_NUMBERS = [True, False, "1", None, math.nan, math.inf, -math.inf, 10**400, 1j, [1]]


@pytest.mark.parametrize("kind", [Numeric, Integer])
@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_bounds_must_be_finite_numbers(kind: type[Numeric] | type[Integer], bad: object) -> None:
    for low, high in ((bad, 1), (0, bad)):
        with refuses(SchemaError):
            kind(low, high)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Numeric(5, 1),
        lambda: Numeric(1, 1),
        lambda: Integer(9, -9),
        lambda: Numeric(-1.7e308, 1.7e308),
        lambda: Numeric(0, 1, steps=1),
        lambda: Numeric(0, 1, steps=2**22 + 1),
        lambda: Numeric(0, 1, steps=2.0),  # type: ignore[arg-type]
        lambda: Numeric(0, 1, steps=True),
        lambda: Numeric(0, 5e-324),
        lambda: Numeric(0, 1.7e308, steps=2),
        lambda: Numeric(0, 1, on_missing=2),
        lambda: Numeric(0, 1, on_missing="zero"),
        lambda: Numeric(0, 1, on_missing=True),
        lambda: Numeric(0, 1, on_missing=math.nan),
        lambda: Numeric(0, 1, on_missing=None),  # type: ignore[arg-type]
        lambda: Numeric(0, 1, provenance="public"),  # type: ignore[arg-type]
        lambda: Integer(0, 2.5),
        lambda: Integer(0, 2**54),
        lambda: Integer(0, 2**22),
        lambda: Provenance("secret"),
        lambda: Provenance("private"),
        lambda: Provenance("public", 3),  # type: ignore[arg-type]
        lambda: Categorical("NS"),
        lambda: Categorical(3),  # type: ignore[arg-type]
        lambda: Categorical({"a": 1}),
        lambda: Categorical(["a"]),
        lambda: Categorical([]),
        lambda: Categorical(["a", "b", "a"]),
        lambda: Categorical(["a", 1.5]),
        lambda: Categorical(["a", ""]),
        lambda: Categorical(["a", "b"], on_missing="c"),
        lambda: Categorical(["a", "b"], on_missing=None),
        lambda: column_from_dict({"kind": "text"}),
        lambda: column_from_dict([]),
        lambda: column_from_dict({"kind": "numeric", "low": "0x0p+0"}),
        lambda: column_from_dict({**Numeric(0, 1).to_dict(), "low": 0.0}),
        lambda: column_from_dict({**Numeric(0, 1).to_dict(), "scale": "0x1p+3"}),
        lambda: column_from_dict({**Numeric(0, 1).to_dict(), "provenance": 3}),
    ],
)
def test_errors_say_what_was_given_and_what_works(make: object) -> None:
    with refuses(SchemaError):
        make()  # type: ignore[operator]


@settings(deadline=None, max_examples=100)
@given(numeric())
def test_dictionaries_keep_every_bit(column: Numeric) -> None:
    again = column_from_dict(column.to_dict())
    assert again == column
    assert (again.low.hex(), again.high.hex(), again.scale.hex()) == (
        column.low.hex(),
        column.high.hex(),
        column.scale.hex(),
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "column",
    [
        Numeric(0.1, 0.7, steps=77, on_missing=0.3, provenance=Provenance("private", "r-17")),
        Integer(-5, 5, on_missing="midpoint"),
        Categorical(["a", "b"], on_missing="b", provenance=Provenance("lab")),
    ],
)
def test_columns_are_values(column: Numeric | Integer | Categorical) -> None:
    assert column_from_dict(column.to_dict()) == column
    assert pickle.loads(pickle.dumps(column)) == column
    assert hash(pickle.loads(pickle.dumps(column))) == hash(column)
    with pytest.raises(AttributeError):
        column.on_missing = "drop"  # type: ignore[misc]


# categorical columns --------------------------------------------------------------------------------------------------


def test_labels() -> None:
    column = Categorical(["N", "S", "1", "2.50", "007"])
    given = ["S", "n", "1", 1, 1.0, np.int8(1), 2.5, "2.5", 7, "7", None, float("nan"), [1], "", 10**400, "1_0"]
    assert column.indices(given).tolist() == [1, -1, 2, 2, 2, 2, 3, 3, 4, 4, -1, -1, -1, -1, -1, -1]


def test_a_number_means_the_level_written_plainly() -> None:
    assert Categorical(["1.0", "1", "01"]).indices([1, "1.0", "01", "1.00"]).tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("levels", [["False", "True"], ["false", "true"], ["0", "1"], [False, True], [0, 1]])
def test_booleans_as_labels(levels: list[object]) -> None:
    assert Categorical(levels).indices([True, False, np.True_]).tolist() == [1, 0, 1]


def test_codes_of_positions() -> None:
    column = Categorical(["a", "b", "c"])
    given = [0, 2, 3, -1, 1.5, math.nan, math.inf, -0.0]
    assert column.code_indices(given).tolist() == [0, 2, -1, -1, -1, -1, -1, 0]
    assert not np.signbit(column.code_indices([-0.0]))[0]
    imputed = Categorical(["a", "b", "c"], on_missing="c")
    assert imputed.code_indices(given).tolist() == [0, 2, 2, 2, 2, 2, 2, 0]
    assert imputed.code_labels(["z", "b", None]).tolist() == [2, 1, 2]
    out = np.empty(2)
    assert column.code_indices([1, 9], out=out) is out
    assert column.decode([2, 0, -1]).tolist() == ["c", "a", None]
