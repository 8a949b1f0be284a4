"""What record maps under linear models share: records scaled by public bounds, coded as integers with a proved bound.

A real row u with |u| <= B is coded as m = rint(S u), S = floor((2^20 - sqrt(width)/2 - 1)/B), so that |m|^2 <= 2^40 holds with room for
the floats' errors. A proof must not rest on floats: so a row that breaks the bound is reduced until it holds, whatever happened before
(NaN becomes 0). All sensitivities are stated in m. Rounding is to the nearest integer: cutting toward zero would shift every entry one
way.

Every float step is an elementwise operation, column by column in a fixed order, so that a record's integers never depend on the batch
it came in.

Records in the corners of the public box: where sums move the most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import RecordMap
from confide.core.exact import digest, pack
from confide.schema import Categorical, ModelMatrix, Schema

BITS = 20
#: What every coded row obeys: sum m^2 <= 2^40.
BOUND = 1 << (2 * BITS)

Codes = NDArray[np.float64]

# What the doubles' roundings of a length add up to is far less: 2^-53 each, once a coordinate and a few times more.
_ROUNDINGS = 2.0**-40
# Above all that is lost where squares of coordinates are too small for a double, below all that matters.
_LEAST_SQUARE = 2.0**-900
# Three lines of the cache.
_APART = 24


def aligned(rows: int, records: int) -> Codes:
    """Room for rows of so many records, which begin at multiples of 64 bytes: vectors of doubles then never cross a line of
    the cache.

    The rows lie a little more than a power of two apart, as places that are a power of two apart share too few places of the cache.
    """
    apart = (records + 7) // 8 * 8 + _APART
    raw = np.empty(rows * apart + 8, dtype=np.float64)
    first = -raw.ctypes.data % 64 // 8
    return raw[first : first + rows * apart].reshape(rows, apart)[:, :records]


def only(rows: NDArray[Any], keep: NDArray[np.bool_] | None) -> Codes:
    """Numbers of records, in place, with 0 for one that does not count. keep: which do, None for all."""
    if keep is not None:
        rows *= keep
    return rows


class LongRows(RecordMap):
    """The bounds of a map to rows of at most `longest` steps, which another number fixes than this module's 2^20."""

    if TYPE_CHECKING:

        @property
        def longest(self) -> int: ...

        @property
        def width(self) -> int: ...

    @property
    def l2_squared(self) -> int:
        return self.longest**2

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width) * self.longest) + 1


@dataclass(frozen=True)
class Box:
    """Middle C and half of the width H of each term, in the terms' own units: where x~ = (x - C)/H is measured from.

    The public bounds give one (`Box.of`); noisy ranges give another, from which no sensitivity may follow.
    """

    middle: tuple[float, ...]
    half: tuple[float, ...]

    @classmethod
    def of(cls, design: ModelMatrix) -> Box:
        """The box of the public bounds."""
        ends = [(term.low, term.high) for term in design.terms]
        return cls(
            tuple(float(low + (high - low) / 2) for low, high in ends),
            tuple(float((high - low) / 2) for low, high in ends),
        )

    @property
    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(C, H), shapes (terms,)."""
        return np.array(self.middle, dtype=np.float64), np.array(self.half, dtype=np.float64)

    def to_list(self) -> list[object]:
        """For digests."""
        return [[pack(x) for x in self.middle], [pack(x) for x in self.half]]


def steps(bound: float, width: int) -> int:
    """S: how many integer steps one unit of a row with |u| <= bound gets."""
    return floor(((1 << BITS) - sqrt(width) / 2 - 1) / bound)


def round_within(rows: Codes, bound: int = BOUND, length: Codes | None = None) -> Codes:
    """Round to integers in place and enforce sum m^2 <= 2^40, or a smaller bound, for every column, whatever the entries are.

    length: that of each column, computed in at most some hundred roundings of doubles (`lengths`). Rounding adds sqrt(width)/2 at most,
    so that columns which leave more room than both need no sum; what is not a number leaves none.
    """
    np.rint(rows, out=rows)
    if length is not None and bool((length <= sqrt(bound) * (1 - _ROUNDINGS) - sqrt(len(rows)) / 2).all()):
        return rows
    norm = _squared_norm(rows)
    # "not <=" rather than ">": a NaN must count as out of bounds
    bad = ~(norm <= bound)
    if bad.any():
        cut = np.nan_to_num(rows[:, bad], nan=0.0, posinf=2.0**BITS, neginf=-(2.0**BITS))
        np.clip(cut, -(2.0**BITS), 2.0**BITS, out=cut)
        while (over := _squared_norm(cut) > bound).any():
            cut[:, over] = np.trunc(cut[:, over] * (1 - 2.0**-10))
        rows[:, bad] = cut
    return rows


def _squared_norm(rows: Codes) -> Codes:
    """sum m^2 of each column. Exact in any order for integers whose squares add up to at most 2^53; beyond, far above the bound."""
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


def scaled(design: ModelMatrix, codes: Codes, box: Box | None = None) -> tuple[Codes, NDArray[np.bool_] | None]:
    """Rows (1, x~_1, ..., x~_d, t), shape (terms + 2, records), and which records count (None: all).

    Every term is scaled to [-1, 1] by its public bounds, x~ = (x - midpoint)/H = 2 c/(steps - 1) - 1 in codes c, H half of the width.
    With a `box` the terms (not the response) are measured from its middle in its H instead, and may leave [-1, 1].
    """
    terms, keep = design.codes(codes)
    scale = np.array([2.0 / (term.steps - 1) for term in (*design.terms, design.response)])
    rows = np.empty((len(scale) + 1, terms.shape[1]))
    rows[0] = 1.0
    whole = rows[1:]
    np.multiply(terms, scale[:, None], out=whole)
    whole -= 1.0
    if box is not None:
        middle, half = Box.of(design).arrays
        own_middle, own_half = box.arrays
        with np.errstate(all="ignore"):
            for row, stretch, shift in zip(whole[:-1], half / own_half, (middle - own_middle) / own_half, strict=True):
                if stretch != 1.0 or shift != 0.0:
                    np.multiply(row, stretch, out=row)
                    row += shift
    return rows, keep


def leverage(z: Codes, out: Codes | None = None) -> Codes:
    """|z|^2 of each record, coordinate by coordinate, into `out` where it is given; z: (coordinates, records)."""
    if z.shape[1] > 1 and z.strides[1] == z.itemsize:
        # along the records, one coordinate after the other, and so the same number for a record in any batch
        return np.asarray(np.einsum("ij,ij->j", z, z, out=out))
    total = np.empty(z.shape[1]) if out is None else out
    total[:] = 0.0
    for row in z:
        total += row * row
    return total


def weights(z: Codes, cap: float) -> Codes:
    """min(1, cap/|z|^2); 1 where z is 0, NaN where it is not a number."""
    weight = leverage(z)
    np.divide(cap, weight, out=weight)
    return np.minimum(weight, 1.0, out=weight)


def lengths(square: Codes) -> Codes:
    """|z| from |z|^2, not below it though squares vanish below 2^-1074: a product with any factor is then no less than the true one."""
    return np.asarray(np.sqrt(square + _LEAST_SQUARE))


def shares(size: Codes, most: float) -> Codes:
    """min(1, most/size); NaN where the size is not a number."""
    share = np.maximum(size, most)
    return np.divide(most, share, out=share)


def shortening(z: Codes, length: float) -> Codes:
    """min(1, length/|z|)."""
    factor = leverage(z)
    np.sqrt(factor, out=factor)
    np.divide(length, factor, out=factor)
    return np.minimum(factor, 1.0, out=factor)


def residual(z: Codes, t: Codes, theta: Sequence[float]) -> Codes:
    """t - z'theta, one multiplication after the other: a matrix product would depend on the batch. theta: () for 0."""
    rest = t.copy()
    product = np.empty_like(rest)
    for row, weight in zip(z, theta or (0.0,) * len(z), strict=True):
        if weight != 0.0:
            np.multiply(row, weight, out=product)
            rest -= product
    return rest


class DesignRows(RecordMap, ABC):
    """What record maps of a design share; `kind` and the design alone make the digest where `stated` adds nothing."""

    design: ModelMatrix
    kind: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def derived_by(self) -> ModelMatrix:
        return self.design

    @property
    def stated(self) -> Iterable[object]:
        """What the digest says in addition to the design: all that a bound rests on, and nothing that a plan does not know yet."""
        return ()

    @property
    def digest(self) -> str:
        return digest([self.kind, self.design.to_dict(), *self.stated])


class CodedRows(DesignRows):
    """What rows of 20-bit integers share; |m|_1 <= sqrt(width) |m|_2."""

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width) * (1 << BITS)) + 1

    @property
    def l2_squared(self) -> int:
        return BOUND


class IndicatorRows(DesignRows):
    """What maps of one record to 0 or 1 share."""

    @property
    def width(self) -> int:
        return 1

    @property
    def l1(self) -> int:
        return 1

    @property
    def l2_squared(self) -> int:
        return 1


def cell_among(edges: Sequence[float], size: Array) -> Array:
    """1 + the number of edges below each size, as doubles; what is not a number counts as infinitely large.

    Edge by edge over all records, which for two dozen edges is faster than a search for each record.
    """
    within = np.empty(len(size), dtype=np.bool_)
    # at most two dozen edges: one byte holds the count
    beyond = np.full(len(size), 1 + len(edges), dtype=np.int8)
    for edge in edges:
        np.less_equal(size, edge, out=within)
        beyond -= within.view(np.int8)
    return beyond.astype(np.float64)


def ends(schema: Schema, columns: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two records at opposite ends of columns: at the first and the last level, or at the lower and the upper bound.

    >>> import confide as cf
    >>> ends(cf.Schema({"x": cf.Numeric(0, 1), "g": cf.Categorical(["a", "b", "c"])}), ("x", "g"))
    ({'x': 0.0, 'g': 'a'}, {'x': 1.0, 'g': 'c'})
    """
    low, high = ({name: _end(schema[name], sign) for name in columns} for sign in (-1, 1))
    return low, high


def corner_pairs(design: ModelMatrix, schema: Schema) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Two pairs of records with |z|^2 = 1 + d and |t| = 1; none with derived or categorical terms.

    In the first pair every other feature is mirrored, so that the rows z are as orthogonal as can be: the worst for z z' under
    substitution. In the second the features agree and the responses are opposite: z t and -z t, the worst for z t.
    """
    names = [term.plain for term in (*design.terms, design.response)]
    if None in names:
        return
    plain = [str(name) for name in names]
    if any(isinstance(schema[name], Categorical) for name in plain):
        return
    signs: tuple[tuple[int, ...], ...] = (
        (1,) * len(plain),
        (*((-1) ** (j + 1) for j in range(len(plain) - 1)), 1),
        (*(1,) * (len(plain) - 1), -1),
    )
    corner, mirrored, opposite = (
        {name: _end(schema[name], sign) for name, sign in zip(plain, row, strict=True)} for row in signs
    )
    yield corner, mirrored
    yield corner, opposite


def outcome_pairs(design: ModelMatrix, schema: Schema) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Records in two corners of the public box with outcomes as far apart as can be, then one corner with both outcomes.

    They pull the coefficients of a regression as much as a bound on one record's score allows.
    """
    low, high = ends(schema, design.columns)
    yield low, high
    yield low, {**low, **{name: high[name] for name in design.response.columns}}


def _end(column: Any, sign: int) -> Any:
    if isinstance(column, Categorical):
        return column.levels[-1 if sign > 0 else 0]
    return float(column.high if sign > 0 else column.low)
