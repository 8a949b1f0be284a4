"""Records in memory: NumPy, mappings of arrays, pandas, polars, Arrow; by slices, without a copy of the whole.

Columns without the extension types that databases give to what Arrow lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.errors import SourceError
from confide.sources.coding import Block, Cells, Coded, Part, Piece, cut, guarded

# where the digits of a UUID stand in its text
_DIGITS = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


def kind_of(kind: pa.DataType) -> pa.DataType:
    """The physical type of a column as `plain_cells` gives it: an extension type is its storage, a UUID its text."""
    if not isinstance(kind, pa.BaseExtensionType):
        return kind
    return pa.binary() if kind.extension_name == "arrow.uuid" else kind_of(kind.storage_type)


def plain_cells(cells: pa.Array) -> Cells:
    """A column of a batch without its extension type, which databases give to what Arrow lacks; a UUID is its text."""
    if not isinstance(cells.type, pa.BaseExtensionType):
        return cells
    if cells.type.extension_name != "arrow.uuid":
        return plain_cells(cells.storage)
    raw = pc.fill_null(cells.storage, bytes(16))
    digits = np.frombuffer(b"".join(raw.to_pylist()).hex().encode(), dtype=np.uint8).reshape(len(raw), 32)
    text = np.full((len(raw), 36), ord("-"), dtype=np.uint8)
    text[:, _DIGITS] = digits
    whole = pa.Array.from_buffers(pa.binary(36), len(raw), [None, pa.py_buffer(text.tobytes())]).cast(pa.binary())
    return pc.if_else(cells.is_valid(), whole, pa.scalar(None, pa.binary()))


# rows that a thread takes at once: few enough to share the work of a small table, many enough to cost nothing
_PIECE_ROWS = 1 << 16


@dataclass(frozen=True)
class Column:
    """One column in memory: its physical type, its length, and how rows start to stop are taken from it."""

    kind: Any
    rows: int = field(repr=False)
    take: Callable[[int, int], Cells] = field(repr=False)


@dataclass(frozen=True)
class Table(Part):
    """Columns of one length. `names` are all there are, `columns` those that the schema knows."""

    type: str
    names: tuple[str, ...]
    columns: Mapping[str, Column]
    rows: int = field(repr=False)
    rereadable: bool = field(default=True, init=False)
    file: None = field(default=None, init=False)

    @property
    def place(self) -> str:
        return f"the {self.type}"

    def kind(self, name: str) -> Any:
        return self.columns[name].kind

    def verify(self) -> None:
        """Nothing to compare: what is in memory is the caller's to keep."""

    def count(self) -> int:
        return self.rows

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        takes = [self.columns[name].take for name in names]
        for start in range(0, self.rows, _PIECE_ROWS):
            yield Piece(self.place, partial(_blocks, takes, start, min(start + _PIECE_ROWS, self.rows)))


def _blocks(takes: list[Callable[[int, int], Cells]], start: int, stop: int, rows: int) -> Iterator[Block]:
    return cut(Block(stop - start, [take(start, stop) for take in takes]), rows)


def from_numpy(data: NDArray[Any], names: tuple[str, ...]) -> Table:
    """A two-dimensional array with the schema's columns in the schema's order; one dimension for one column."""
    if isinstance(data, np.ma.MaskedArray):
        raise SourceError("a masked array hides which cells are missing", "pass data.astype(float).filled(np.nan)")
    data = np.asarray(data)
    if data.ndim == 1 and len(names) == 1:
        data = data[:, None]
    if data.ndim != 2 or data.shape[1] != len(names):
        raise SourceError(
            f"the NumPy array does not have one column for each of the schema's ({', '.join(names)})",
            "pass an array of shape (records, columns) in the schema's order, or a mapping {name: array}",
        )
    columns = {name: _from_array(data[:, j]) for j, name in enumerate(names)}
    return Table("NumPy array", names, columns, data.shape[0])


def from_mapping(data: Mapping[Any, Any], wanted: Sequence[str]) -> Table:
    """A mapping of column names to arrays, series or lists."""
    cells = {str(name): values for name, values in data.items()}
    columns = {name: column_of(cells[name], name) for name in wanted if name in cells}
    if len({column.rows for column in columns.values()}) > 1:
        raise SourceError(
            f"the columns of the mapping are not of one length: {', '.join(columns)}; each needs one cell per record"
        )
    rows = next((column.rows for column in columns.values()), len(next(iter(cells.values()), ())))
    return Table("mapping", tuple(cells), columns, rows)


def from_pandas(data: Any, wanted: Sequence[str]) -> Table:
    """A pandas DataFrame; its index is not looked at."""
    names = tuple(str(name) for name in data.columns)
    columns = {name: _from_series(_series(data, names.index(name))) for name in wanted if names.count(name) == 1}
    return Table("pandas DataFrame", names, columns, len(data))


def _series(data: Any, place: int) -> Any:
    """The column of a frame at a place, whose label no other column has as text: by its label where that is text, which is quicker."""
    label = data.columns[place]
    return data[label] if type(label) is str else data.iloc[:, place]


def from_polars(data: Any, wanted: Sequence[str]) -> Table:
    """A polars DataFrame."""
    columns = {name: _from_polars_series(data.get_column(name)) for name in wanted if name in data.columns}
    return Table("polars DataFrame", tuple(data.columns), columns, data.height)


def from_arrow(data: pa.Table, wanted: Sequence[str]) -> Table:
    """An Arrow table."""
    names = tuple(str(name) for name in data.column_names)
    columns = {name: _from_chunks(_plain(data.column(name))) for name in wanted if names.count(name) == 1}
    return Table("Arrow table", names, columns, data.num_rows)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without its extension type."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([plain_cells(chunk) for chunk in column.chunks], kind_of(column.type))


def column_of(values: Any, name: str) -> Column:
    """One column of a mapping. Lists stay lists of objects: as an array, one text cell would turn all into text."""
    module = type(values).__module__.partition(".")[0]
    if isinstance(values, np.ma.MaskedArray):
        raise SourceError(
            f"column {name!r}: a masked array hides which cells are missing", "pass values.astype(float).filled(np.nan)"
        )
    if isinstance(values, (list, tuple)):
        return _from_array(np.fromiter(values, dtype=object, count=len(values)))
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return _from_array(np.asarray(values))
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_chunks(values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values]))
    if module == "polars" and type(values).__name__ == "Series":
        return _from_polars_series(values)
    if module == "pandas" and hasattr(values, "dtype"):
        import pandas as pd

        return _from_series(pd.Series(values))
    raise SourceError(
        f"column {name!r} is a {type(values).__name__}; a column is a one-dimensional array, a series or a list"
    )


def _from_array(values: NDArray[Any]) -> Column:
    return Column(values.dtype, len(values), lambda start, stop: values[start:stop])


def _from_chunks(values: pa.ChunkedArray) -> Column:
    return Column(values.type, len(values), lambda start, stop: _one_chunk(values.slice(start, stop - start)))


def _one_chunk(values: Any) -> pa.Array:
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _from_polars_series(series: Any) -> Column:
    try:
        kind = series.head(0).to_arrow().type if str(series.dtype) != "Object" else "Object"
    except pa.ArrowException:  # a type that Arrow lacks
        kind = str(series.dtype)
    return Column(kind, len(series), lambda start, stop: series.slice(start, stop - start).to_arrow())


def _from_series(series: Any) -> Column:
    """A pandas series: NumPy memory as it is, categories through their codes, other extension types through Arrow."""
    dtype, rows = series.dtype, len(series)
    if isinstance(dtype, np.dtype):
        return _from_array(series.to_numpy())
    return _from_extension(series, dtype, rows)


def _from_extension(series: Any, dtype: Any, rows: int) -> Column:
    if dtype.name == "category":
        categories = _from_series(series.cat.categories.to_series())
        codes = series.cat.codes.to_numpy()
        cells = guarded(
            "the categories of a pandas column could not be read", lambda: categories.take(0, categories.rows)
        )
        return Column(categories.kind, rows, lambda start, stop: Coded(codes[start:stop], cells))
    if str(dtype).startswith("Sparse"):
        return _from_array(np.asarray(series))
    if getattr(dtype, "storage", None) == "python":
        # Arrow refuses the whole column for one lone surrogate
        return Column(np.dtype(object), rows, lambda start, stop: series.iloc[start:stop].to_numpy(dtype=object))
    try:
        kind = pa.array(series.iloc[:0]).type
    except (pa.ArrowException, TypeError, ValueError):
        kind = str(dtype)
    return Column(kind, rows, lambda start, stop: _one_chunk(pa.array(series.iloc[start:stop])))
