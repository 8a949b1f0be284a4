"""Text forms that lose nothing: integers as decimals, floats as `float.hex`, fractions as "p/q"; and digests over them.

A published release must read back to the bit on any machine, years later, so no number passes through a decimal rendering of
a binary float.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide._text import clean

__all__ = [
    "Numbers",
    "array_from_dict",
    "array_to_dict",
    "canonical_json",
    "clean",
    "digest",
    "fraction_from_text",
    "fraction_to_text",
    "pack",
    "round_up",
    "sqrt_up",
    "unpack",
]

if TYPE_CHECKING:
    Numbers: TypeAlias = NDArray[Any]
else:

    class Numbers:
        """How a field of a file says that it holds an array; the codec knows it by this class.

        What NumPy's own annotations are made of differs between its versions: since 2.5 they are no `np.ndarray` any more.
        """


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no white space, no NaN.

    >>> canonical_json({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value, in hexadecimal (64 characters).

    >>> digest({"a": 1}) == digest({"a": 1}), len(digest([]))
    (True, 64)
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def pack(value: Any) -> Any:
    """A JSON-safe form of nested public settings; floats become `{"float": hex}` and fractions `{"fraction": "p/q"}`.

    >>> pack({"low": 0.5, "names": ("a", "b")})
    {'low': {'float': '0x1.0000000000000p-1'}, 'names': ['a', 'b']}
    """
    # most of what comes, without the questions below, of which the last asks an abstract class
    if type(value) is str:
        return value
    if type(value) is dict:
        return {str(key): pack(item) for key, item in value.items()}
    if type(value) is float:
        return {"float": value.hex()}
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return {"float": float(value).hex()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [pack(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, Fraction):
        return {"fraction": fraction_to_text(value)}
    if isinstance(value, Mapping):
        return {str(key): pack(item) for key, item in value.items()}
    raise TypeError(f"no exact text form for {type(value).__name__}; use numbers, text, booleans, lists or mappings")


def unpack(value: Any) -> Any:
    """The inverse of `pack`; lists come back as tuples.

    >>> unpack(pack({"low": 0.1, "names": ["a"]}))
    {'low': 0.1, 'names': ('a',)}
    """
    if isinstance(value, dict):
        if set(value) == {"float"} and isinstance(value["float"], str):
            return float.fromhex(value["float"])
        if set(value) == {"fraction"} and isinstance(value["fraction"], str):
            return fraction_from_text(value["fraction"])
        return {key: unpack(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(unpack(item) for item in value)
    return value


def fraction_to_text(value: Fraction) -> str:
    """A fraction as "p/q".

    >>> fraction_to_text(Fraction(3, 2)), fraction_to_text(Fraction(4))
    ('3/2', '4/1')
    """
    return f"{value.numerator}/{value.denominator}"


def fraction_from_text(text: str) -> Fraction:
    """The inverse of `fraction_to_text`.

    >>> fraction_from_text("3/2")
    Fraction(3, 2)
    """
    return Fraction(text)


def array_to_dict(values: NDArray[Any]) -> dict[str, Any]:
    """An array of floats or integers (any size of integer, when its dtype is object) as a JSON-safe dictionary.

    >>> array_to_dict(np.array([0.5, 1.0]))["data"]
    ['0x1.0000000000000p-1', '0x1.0000000000000p+0']
    """
    if values.dtype.kind == "f":
        return {"type": "float", "shape": list(values.shape), "data": list(map(float.hex, values.ravel().tolist()))}
    return {"type": "integer", "shape": list(values.shape), "data": list(map(str, map(int, values.ravel().tolist())))}


def array_from_dict(data: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse of `array_to_dict`; integers come back as Python integers in an object array.

    >>> array_from_dict(array_to_dict(np.array([[2**70]], dtype=object)))[0, 0] == 2**70
    True
    """
    shape = tuple(int(size) for size in data["shape"])
    if data["type"] == "float":
        return np.array([float.fromhex(text) for text in data["data"]], dtype=np.float64).reshape(shape)
    values = np.empty(len(data["data"]), dtype=object)
    values[:] = list(map(int, data["data"]))
    return values.reshape(shape)


def round_up(value: Fraction, bits: int = 64) -> Fraction:
    """The smallest m 2^e with m < 2^bits that is not below `value` > 0: short to write, and on the safe side.

    >>> round_up(Fraction(1, 3), bits=4)
    Fraction(11, 32)
    """
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - bits
    mantissa = _mantissa_up(value, exponent)
    if mantissa >= 1 << bits:
        exponent += 1
        mantissa = _mantissa_up(value, exponent)
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


def _mantissa_up(value: Fraction, exponent: int) -> int:
    """The smallest m with m 2^exponent >= value, in whole numbers: plans ask often, and a quotient of fractions takes ten times as long."""
    return -((-value.numerator << max(-exponent, 0)) // (value.denominator << max(exponent, 0)))


def sqrt_up(value: Fraction, bits: int = 64) -> Fraction:
    """An upper bound of the square root, exact when the root is a fraction, else tight to about `bits` bits.

    >>> sqrt_up(Fraction(1, 4))
    Fraction(1, 2)
    >>> 2 < sqrt_up(Fraction(2)) ** 2 < 2 + Fraction(1, 2**60)
    True
    """
    root = Fraction(_isqrt_up(value.numerator * value.denominator), value.denominator)
    if root * root == value:
        return root
    shift = 2 * max(bits - (value.numerator * value.denominator).bit_length() // 2, 0)
    return Fraction(_isqrt_up((value.numerator * value.denominator) << shift), value.denominator << (shift // 2))


def _isqrt_up(value: int) -> int:
    root = isqrt(value)
    return root if root * root == value else root + 1
