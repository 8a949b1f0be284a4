"""Text forms that lose nothing: integers as decimals, floats as `float.hex`, fractions as "p/q"; and digests over them.

A published release must read back to the bit on any machine, years later, so no number passes through a decimal rendering of
a binary float.

Matrix products of integers in doubles, exact where this machine's products are, in pieces for which BLAS has its fast ways.

Integers whose partial sums stay below 2^53 add up exactly in any order, with or without fused multiplications; who calls sees to the
bound. A machine whose products split or emulate doubles is found out once (`exact_sums`, `exact_products`); callers then add in integers.

OpenBLAS has a separate way for products of at most 10^6 terms, without the copies of the general one. It is quicker
for few rows of many records, and quickest where rows begin at multiples of 64 bytes (`confide.sums.coding.aligned`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array

if TYPE_CHECKING:
    Numbers: TypeAlias = NDArray[Any]
else:

    class Numbers:
        """How a field of a file says that it holds an array; the codec knows it by this class.

        What NumPy's own annotations are made of differs between its versions: since 2.5 they are not `np.ndarray` any
        more.
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


# Terms of a product that BLAS takes the short way for.
_TERMS = 1_000_000
# Pieces of fewer records than this cost more in calls than they save.
_SHORTEST = 512
# Rows of one product; from how many rows on, and up to how many, products of so many beat the symmetric one of all.
_ROWS, _FEWEST, _MOST = 8, 9, 40


def product(matrix: Array, columns: Array, out: Array | None) -> Array:
    """matrix @ columns, into `out` where it is given."""
    most = _TERMS // matrix.size
    if columns.shape[1] <= most or most < _SHORTEST:
        return np.matmul(matrix, columns, out=out)
    if out is None:
        out = np.empty((len(matrix), columns.shape[1]))
    step = most // 8 * 8
    for start in range(0, columns.shape[1], step):
        np.matmul(matrix, columns[:, start : start + step], out=out[:, start : start + step])
    return out


def gram(rows: Array) -> Array:
    """rows @ rows.T of integers.

    >>> gram(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[5.0, 6.0], [6.0, 9.0]]
    """
    k, records = rows.shape
    if not _FEWEST <= k <= _MOST or records < _SHORTEST:
        return np.asarray(rows @ rows.T)
    found = np.empty((k, k))
    for first in range(0, k, _ROWS):
        some = rows[first : first + _ROWS]
        # one row more than the last few: NumPy takes the slow symmetric product for an array with its own transpose
        rest = rows[min(first, k - len(some) - 1) :]
        step = _TERMS // (len(some) * len(rest)) // 8 * 8
        part = np.zeros((len(some), len(rest)))
        for start in range(0, records, step):
            part += some[:, start : start + step] @ rest[:, start : start + step].T
        found[first : first + _ROWS, k - len(rest) :] = part
        found[k - len(rest) :, first : first + _ROWS] = part.T
    return found


@lru_cache(maxsize=1)
def exact_sums() -> bool:
    """Whether this machine's Gram matrices and sums of doubles are exact on integers of 20 bits, 8,192 at a time."""
    index = np.arange(17 * 8192, dtype=np.int64).reshape(17, 8192)
    rows = (1 << 20) - (index * 2654435761 % 7)
    rows[1::3] *= np.where(index[1] % 3 == 0, -1, 1)
    doubles = rows.astype(np.float64)
    exact = np.einsum("ik,jk->ij", rows, rows)
    sums = bool(((doubles @ np.ones(rows.shape[1])).astype(np.int64) == rows.sum(axis=1)).all())
    # few rows and more of them go different ways
    both = (gram(doubles), doubles[:3] @ doubles[:3].T)
    return sums and all(bool((own.astype(np.int64) == exact[: len(own), : len(own)]).all()) for own in both)


@lru_cache(maxsize=1)
def exact_products() -> bool:
    """Whether this machine's product of doubles is exact up to 2^53."""
    index = np.arange(64 * 96, dtype=np.int64).reshape(64, 96)
    left = (1 << 26) - (index[:6, :64].T * 2654435761 % 1009).T
    left[1::2] *= -1
    right = (1 << 20) - index * 40503 % 977
    exact = np.einsum("ij,jk->ik", left, right)
    rows, columns = left.astype(np.float64), right.astype(np.float64)
    # several rows and one row go different ways
    found = np.concatenate([rows @ columns, rows[:1] @ columns])
    return bool((found.astype(np.int64) == np.concatenate([exact, exact[:1]])).all())
