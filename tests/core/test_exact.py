"""Text forms lose nothing; roundings go the safe way."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from confide.core.exact import array_from_dict, array_to_dict, canonical_json, digest, pack, round_up, sqrt_up, unpack

fractions = st.fractions(min_value=Fraction(1, 10**12), max_value=10**30)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_pack_reads_back(value: object) -> None:
    def tuples(v: object) -> object:
        if isinstance(v, list):
            return tuple(tuples(x) for x in v)
        return {k: tuples(x) for k, x in v.items()} if isinstance(v, dict) else v

    if isinstance(value, dict) and set(value) & {"float", "fraction"}:
        return
    again = unpack(json.loads(canonical_json(pack(value))))
    assert again == tuples(value) or "float" in str(value) or "fraction" in str(value)


@pytest.mark.parametrize(
    "values", [np.array([0.1, -0.0, 5e-324, np.inf, np.nan]), np.array([[1, -(2**80)], [0, 7]], dtype=object)]
)
def test_arrays_read_back_to_the_bit(values: np.ndarray) -> None:
    again = array_from_dict(json.loads(json.dumps(array_to_dict(values))))
    assert again.shape == values.shape
    assert [str(v) for v in again.ravel()] == [str(v) for v in values.ravel()]
    if values.dtype.kind == "f":
        assert (np.signbit(again) == np.signbit(values)).all()


def test_arrays_hold_python_integers() -> None:
    assert array_from_dict(array_to_dict(np.array([2**63], dtype=object)))[0] == 2**63


@given(fractions)
def test_round_up_is_short_tight_and_never_below(value: Fraction) -> None:
    rounded = round_up(value)
    assert value <= rounded <= value * (1 + Fraction(1, 2**63))
    mantissa = rounded.numerator // (rounded.numerator & -rounded.numerator)
    assert mantissa.bit_length() <= 64 and (rounded.denominator & (rounded.denominator - 1)) == 0
    assert round_up(rounded) == rounded


@given(fractions)
def test_sqrt_up_is_tight_and_never_below(value: Fraction) -> None:
    root = sqrt_up(value)
    assert root * root >= value
    assert root * root <= value * (1 + Fraction(1, 2**50))
    assert sqrt_up(value * value) == value


def test_digest_does_not_depend_on_key_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 1})
