"""Sums over records of a Fisher score: A and b in one symmetric matrix, the excess of down-weighted records, and both in one pass.

The maps, their bounds and the proofs: `fisher_rows`.

Where counts lie: one record as a cell among edges that halve a declared bound.

With the bound C of an outcome between 0 and C the edges are C 2^(-j/2), j = 0..30. A histogram of these cells moves by 1 in one cell for
one record, sensitivity 1, and by 1 in two under substitution, sqrt(2): `Histogram`.

How many records each distinct row of a model matrix has, by outcome: one record is in one cell.

A histogram of these cells moves by 1 in one cell for one record, sensitivity 1, and by 1 in two under substitution, sqrt(2), whatever the
rows are. A unit of m records moves at most m times 1 (`Histogram`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Gram, RecordMap, Statistic, Total
from confide.errors import PlanError
from confide.methods.regression.glm.fisher_rows import CROSS, FisherMap, FisherParts, FisherRows
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import CellNumber
from confide.sums.coding import BITS, BOUND, DesignRows, lengths, only


@dataclass(frozen=True)
class _Given(RecordMap):
    """Rows that are integers already: what the sums below add up."""

    width: int
    columns: tuple[str, ...] = ()
    l1: int = 0
    l2_squared: int = 2 * BOUND
    digest: str = ""

    def __call__(self, rows: Array) -> Array:
        return rows


@dataclass(frozen=True)
class FisherSum(Statistic):
    """[[sum a a', c sum b], [c sum b', 0]], shape (k + 1, k + 1), symmetric: sensitivity 2^40, under substitution 2^41."""

    map: FisherRows
    norm: str = field(default="frobenius", init=False)

    @cached_property
    def _sums(self) -> tuple[Gram, Total]:
        return Gram(_Given(self.map.features), entry_bits=BITS), Total(_Given(self.map.features))

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.features + 1, self.map.features + 1)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(BOUND) ** 2 * (4 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= (k + 1) |M|_F
        return (self.map.features + 1) * Fraction(BOUND) * (2 if relation == "substitute" else 1)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes in the Frobenius norm when the record with the row `own` gives way to each of `rows`."""
        k, own = self.map.features, own[:, None]
        inner = (own[:k] * rows[:k]).sum(axis=0)
        gram = (rows[:k] * rows[:k]).sum(axis=0) ** 2 + (own[:k] * own[:k]).sum(axis=0) ** 2 - 2 * inner**2
        return gram + 2 * CROSS**2 * ((rows[k:] - own[k:]) ** 2).sum(axis=0)

    def zero(self) -> Any:
        gram, cross = self._sums
        return gram.zero(), cross.zero()

    def update(self, state: Any, codes: Array) -> Any:
        return self.added(state, self.map.looked_at(codes)[0])

    def added(self, state: Any, rows: Array) -> Any:
        """The state with rows of the map added."""
        gram, cross = self._sums
        return gram.update(state[0], rows[: self.map.features]), cross.update(state[1], rows[self.map.features :])

    def merge(self, a: Any, b: Any) -> Any:
        gram, cross = self._sums
        return gram.merge(a[0], b[0]), cross.merge(a[1], b[1])

    def value(self, state: Any) -> NDArray[Any]:
        gram, cross = self._sums
        whole = np.zeros(self.shape, dtype=object)
        whole[:-1, :-1] = gram.value(state[0])
        whole[:-1, -1] = whole[-1, :-1] = CROSS * cross.value(state[1])
        return whole


@dataclass(frozen=True)
class Excess(FisherMap):
    """q min((N/D - 1)+, 1) of a complete record in steps of 2^-40, 0 for any other: from 0 to 1 whatever the floats are.

    q = r^2 of the logit, |r|/m of other families (`fisher_families`). Of counts q min((1 - w) M/D, 1), which times D is what its score
    misses.

    Guarantee: with Gaussian noise on the total, mu-GDP under add-remove and under substitution at a sensitivity of 1 (2^40 steps):
    every term is clipped to [0, 2^40] in integers. Extreme records that the line predicts add nothing, those with the other outcome up
    to 1.
    """

    width: ClassVar[int] = 1
    l1: ClassVar[int] = BOUND
    l2_squared: ClassVar[int] = BOUND**2

    def __call__(self, codes: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.beyond(self.parts(codes))

    def beyond(self, parts: FisherParts) -> Array:
        """The same from the parts, whose r and N are used up."""
        size, keep = parts.size, parts.keep
        if self.family.score_part:
            w = self.split(size, parts.most, parts.square)[1]
            size = lengths(parts.square) * parts.most
            size *= 1.0 - w
            size /= self.bound
        else:
            size /= self.bound
            size -= 1.0
        # fmin: what is no number counts as far out
        np.fmin(size, 1.0, out=size)
        np.maximum(size, 0.0, out=size)
        size *= self.family.missed(parts.residual, parts.most)
        if parts.omega is not None:
            size *= parts.omega
        np.fmin(size, 1.0, out=size)
        size *= float(BOUND)
        np.rint(size, out=size)
        return only(size, keep)[None, :]


@dataclass(frozen=True)
class SumAndExcess(Statistic):
    """`FisherSum` and the total of an `Excess` at the same line, from one look at each record; `split` gives the two, to the bit.

    For the pass alone: what is planned and drawn are the two statistics, each with its own sensitivity.
    """

    sums: FisherSum
    excess: Excess
    norm: str = field(default="none", init=False)

    @property
    def map(self) -> FisherRows:
        return self.sums.map

    @property
    def shape(self) -> tuple[int]:
        return (self.sums.shape[0] ** 2 + 1,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        raise PlanError("a joint sum has no sensitivity", "draw its two parts as they were planned")

    sensitivity_l1 = sensitivity_squared

    @cached_property
    def _total(self) -> Total:
        return Total(_Given(1, l2_squared=self.excess.l2_squared), nonnegative=True)

    def zero(self) -> Any:
        return self.sums.zero(), self._total.zero()

    def update(self, state: Any, codes: Array) -> Any:
        rows, parts = self.map.looked_at(codes)
        with np.errstate(all="ignore"):
            return self.sums.added(state[0], rows), self._total.update(state[1], self.excess.beyond(parts))

    def merge(self, a: Any, b: Any) -> Any:
        return self.sums.merge(a[0], b[0]), self._total.merge(a[1], b[1])

    def value(self, state: Any) -> NDArray[Any]:
        return np.append(self.sums.value(state[0]).ravel(), self._total.value(state[1]))

    def split(self, value: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """What the two statistics would have given."""
        return value[:-1].reshape(self.sums.shape), value[-1:]


#: Cells between 0 and C.
COUNT_CELLS = 31


def count_edges(high: float) -> Array:
    """Upper edges of the cells, (31,), the last one C."""
    return np.asarray(high * 2.0 ** (np.arange(1 - COUNT_CELLS, 1) / 2))


@dataclass(frozen=True)
class CountIndices(DesignRows):
    """The cell of a record's outcome, from 1 on, up to its upper edge; 0 for a record that is dropped."""

    design: ModelMatrix
    kind: ClassVar[str] = "count cells"
    width: ClassVar[int] = 1
    cells: ClassVar[int] = COUNT_CELLS
    l1: ClassVar[int] = COUNT_CELLS
    l2_squared: ClassVar[int] = COUNT_CELLS**2

    def __call__(self, codes: Array) -> Array:
        terms, keep = self.design.codes(codes)
        # in steps of the code, so that the last edge is the last code
        edges = count_edges(float(self.design.response.steps - 1))
        cell = 1.0 + np.minimum(np.searchsorted(edges, terms[-1], side="left"), COUNT_CELLS - 1)
        return only(cell, keep)[None, :]


@dataclass(frozen=True)
class OutcomeCells(CellNumber, DesignRows):
    """The cell 1 + 2 r of a record of row r with an outcome of 0, 2 + 2 r with another one; 0 for a record that is dropped.

    names, sizes: the columns behind the rows, of so many values; row_of: the row of each combination, the last column's changing fastest.
    """

    design: ModelMatrix
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    row_of: tuple[int, ...]
    kind: ClassVar[str] = "outcome cells"

    @property
    def cells(self) -> int:
        return 2 * (max(self.row_of) + 1)

    @property
    def stated(self) -> tuple[object, ...]:
        return (list(self.names), list(self.sizes), list(self.row_of))

    def __call__(self, codes: Array) -> Array:
        terms, keep = self.design.codes(codes)
        at = np.zeros(codes.shape[1], dtype=np.int64)
        for name, size in zip(self.names, self.sizes, strict=True):
            # what is missing is dropped by `keep`, wherever it is put
            own = np.clip(codes[self.design.columns.index(name)], 0, size - 1)
            at = at * size + own.astype(np.int64)
        cell = 1.0 + 2 * np.array(self.row_of, dtype=np.float64)[at] + (terms[-1] > 0)
        return only(cell, keep)[None, :]
