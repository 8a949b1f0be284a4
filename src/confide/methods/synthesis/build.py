"""From a release to rows: what a synthetic table holds, and how far plain OLS on it is from the line it was put on.

Pure post-processing: the draws come from generators keyed by the release's digest and the number of the file, so that one release and
one set of options give one file, on every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide._arrays import Array
from confide.errors import PlanError
from confide.methods.synthesis.bins import NoisyBins, feature_columns, read_bins
from confide.methods.synthesis.features import draw_columns, joined, public_rows, row_numbers
from confide.methods.synthesis.response import Line, Matrix
from confide.noise import keyed_generator
from confide.protocol import Release
from confide.schema import Categorical, Design, Integer, Schema

__all__ = ["Options", "Rows", "build_rows", "frame_of"]


# How often rows are drawn anew whose terms are no numbers (a logarithm of 0), and public rows added until OLS has one solution.
_TRIES = 20
# Rows that a noisy number of records may ask for: 8 GB for ten columns. A file from anybody may ask for any number.
_MOST_ROWS = 10**8


@dataclass(frozen=True)
class Options:
    """How a file is made from a release; none of it costs anything.

    rows: their number, None for the noisy number of records; bounded: the response is moved to its bounds and, in an integer column,
    rounded, which costs the identity with the released coefficients.
    """

    rows: int | None = None
    bounded: bool = False

    def __post_init__(self) -> None:
        rows = self.rows
        whole = isinstance(rows, (int, np.integer)) and not isinstance(rows, bool)
        if rows is not None and (not whole or rows < 1):
            raise PlanError(
                f"rows must be a whole number of at least 1, got {rows!r}; leave it out for the noisy number of records"
            )
        if not isinstance(self.bounded, bool):
            raise PlanError(f"bounded must be True or False, got {self.bounded!r}; leave it out for False")

    def rows_for(self, records: float) -> float:
        """How many rows are made of a noisy number of records; `PlanError` when nobody chose the number and it is beyond reason."""
        if self.rows is not None:
            return float(self.rows)
        if not records <= _MOST_ROWS:
            raise PlanError(
                f"the release counts more than {_MOST_ROWS} records, as many rows as are made unasked; say how many: rows=1000000"
            )
        return records

    def check(self, design: Design) -> None:
        """`PlanError` for fewer rows than OLS needs."""
        if self.rows is not None and self.rows < len(design.names) + 2:
            raise PlanError(
                f"rows must be at least {len(design.names) + 2} for {len(design.names)} coefficients, got {self.rows}; "
                "leave it out for the noisy number of records"
            )


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of a file in final form (labels as positions), and public facts about them."""

    columns: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]


def build_rows(release: Release, design: Design, line: Line, options: Options, file: int = 1) -> Rows:
    """Rows whose plain OLS is the line: features from the bins, then the response.

    file: the number of the file, part of the key of every draw.
    """
    noisy = read_bins(release, design)
    generator = keyed_generator(release.sha256, "rows", str(file))
    options.check(design)
    numbers = row_numbers(noisy.counts, options.rows_for(noisy.total))
    columns = draw_columns(noisy, design, numbers, generator)
    columns, redrawn = _with_finite_terms(columns, noisy, design, numbers, generator)
    columns, matrix, added = _with_one_solution(columns, design, generator, options.rows, int(numbers.sum()))
    y = matrix.on_line(line, generator)
    response = _plain_response(design)
    bounds = (float(design.response.low), float(design.response.high))
    outside = int(((y < bounds[0]) | (y > bounds[1])).sum())
    if options.bounded:
        y = np.clip(y, *bounds)
        if isinstance(design.schema[response], Integer):
            y = np.rint(y)
    found = matrix.off_by(y, line.coefficients)
    order = generator.permutation(len(y))
    integers = options.bounded and isinstance(design.schema[response], Integer)
    columns = {name: values[order] for name, values in columns.items()}
    columns[response] = y[order].astype(np.int64) if integers else y[order]
    return Rows(
        {name: columns[name] for name in design.schema.names if name in columns},
        {
            "generator": "calibrated",
            "rows": len(y),
            "rows_asked": options.rows,
            "records_noisy": noisy.total,
            "records_noise_sd": noisy.sd_total,
            "bins": len(noisy.bins),
            "rows_redrawn": redrawn,
            "rows_added": added,
            "bounded": options.bounded,
            "response_outside_bounds": outside,
            "ols_off_by": found if np.isfinite(found) else None,
        },
    )


def _plain_response(design: Design) -> str:
    name = design.response.plain
    if name is None:
        raise PlanError(
            f"a file has columns of the schema, and the response {design.response.name!r} is none; "
            "declare it as a column of its own in the schema and put it on the left of ~"
        )
    return name


def _matrix(columns: Mapping[str, NDArray[Any]], design: Design, rows: int) -> Array:
    """The model matrix of the rows, as anybody computes it from the file."""
    if not columns:
        return np.ones((rows, len(design.names)))
    schema = design.schema
    cells = {
        name: np.array(schema[name].levels, dtype=object)[values]  # type: ignore[union-attr]
        if isinstance(schema[name], Categorical)
        else values
        for name, values in columns.items()
    }
    return design.matrix(cells)


def _with_finite_terms(
    columns: dict[str, NDArray[Any]], noisy: NoisyBins, design: Design, numbers: NDArray[np.int64], generator: Any
) -> tuple[dict[str, NDArray[Any]], int]:
    """Rows with a term that is no number are drawn again in their bins, and in the end left out."""
    if all(term.plain is not None or term.binary for term in design.terms):
        return columns, 0
    bin_of = np.repeat(np.arange(len(numbers)), numbers)
    redrawn = 0
    for left in range(_TRIES, -1, -1):
        lost = ~np.isfinite(_matrix(columns, design, len(bin_of))).all(axis=1)
        if not lost.any():
            break
        if left == 0:
            return {name: values[~lost] for name, values in columns.items()}, redrawn
        redrawn += int(lost.sum())
        again = draw_columns(noisy, design, np.bincount(bin_of[lost], minlength=len(numbers)), generator)
        columns = {name: values.copy() for name, values in columns.items()}
        for name, values in again.items():
            columns[name][lost] = values
    return columns, redrawn


def _with_one_solution(
    columns: dict[str, NDArray[Any]], design: Design, generator: Any, rows: int | None, drawn: int
) -> tuple[dict[str, NDArray[Any]], Matrix, int]:
    """Rows drawn evenly from the schema are added where OLS has no single solution, a level without rows for instance.

    With a fixed number of rows they take the place of the last ones. Returns the columns, their model matrix, how many were added.
    """
    p = len(design.names)
    if not columns:  # an intercept alone
        enough = max(drawn, p + 2)
        return columns, Matrix.of(np.ones((enough, p))), enough - drawn
    matrix, added = Matrix.of(_matrix(columns, design, 0)), 0
    for _ in range(_TRIES):
        if not matrix.deficient:
            break
        more = public_rows(design, p + 2, generator)
        finite = np.isfinite(_matrix(more, design, 0)).all(axis=1)
        columns = joined({name: values[finite] for name, values in more.items()}, columns)
        added += int(finite.sum())
        if rows is not None:
            columns = {name: values[:rows] for name, values in columns.items()}
        matrix = Matrix.of(_matrix(columns, design, 0))
    return columns, matrix, added


def frame_of(columns: Mapping[str, NDArray[Any]], schema: Schema) -> pd.DataFrame:
    """A DataFrame with columns of their kinds; a categorical column has all its levels, in the schema's order."""
    found: dict[str, Any] = {}
    for name, values in columns.items():
        column = schema[name]
        if isinstance(column, Categorical):
            found[name] = pd.Categorical.from_codes(values.tolist(), categories=pd.Index(column.levels))
        else:
            found[name] = values
    return pd.DataFrame(found)


def literal_rows(release: Release, design: Design, options: Options, file: int = 1) -> Rows:
    """Rows from the bins' noisy sums alone, whose sums per bin are the noisy ones exactly.

    Every row of a bin is its noisy mean plus noise of the size that the sums carry, centred within the bin (the sum is sufficient, so
    this is equal in law to noise of its own on every row's share of the sum). Bins with fewer than 2 rows are left out. Values may leave
    the bounds and the lattice of integers. Source: Lin, Slavković, Bhoomireddy 2025 (arXiv 2510.16974), Algorithm 3, with the noise that
    its claim needs and with sums centred in their bins.
    """
    noisy = read_bins(release, design, label=True)
    assert noisy.labels is not None
    generator = keyed_generator(release.sha256, "rows", str(file))
    counts = np.maximum(np.rint(noisy.counts), 0.0)
    wanted = options.rows_for(float(counts.sum()))
    if options.rows is not None and counts.sum() > 0:
        counts = row_numbers(counts, wanted).astype(np.float64)
    numbers = np.where(counts >= 2, counts, 0).astype(np.int64)
    kept = np.flatnonzero(numbers)
    row = np.repeat(kept, numbers[kept])
    low, high = noisy.bins.low[row], noisy.bins.high[row]
    columns: dict[str, NDArray[Any]] = {}
    outside = 0
    for j, name in enumerate(feature_columns(design)):
        column = design.schema[name]
        first, width = low[:, j], high[:, j] - low[:, j]
        if isinstance(column, Categorical):
            columns[name] = first + np.minimum(np.floor(generator.random(len(row)) * width), width - 1).astype(np.int64)
            continue
        place = _places(noisy.sums[:, j], noisy, numbers, row, generator)
        values = column.low + (first + (width - 1) / 2 + place * np.maximum((width - 1) / 2, 0.5)) / column.scale
        outside += int(((values < column.low) | (values > column.high)).sum())
        columns[name] = values
    response = _plain_response(design)
    half = (design.response.high - design.response.low) / 2
    columns[response] = design.response.low + half * (1 + _places(noisy.labels, noisy, numbers, row, generator))
    order = generator.permutation(len(row))
    return Rows(
        {name: columns[name][order] for name in design.schema.names if name in columns},
        {
            "generator": "binagg",
            "rows": len(row),
            "rows_asked": options.rows,
            "records_noisy": noisy.total,
            "records_noise_sd": noisy.sd_total,
            "bins": len(noisy.bins),
            "bins_left_out": int((numbers == 0).sum()),
            "features_outside_bounds": outside,
            "ols_off_by": None,
        },
    )


def _places(
    sums: Array, noisy: NoisyBins, numbers: NDArray[np.int64], row: NDArray[np.int64], generator: np.random.Generator
) -> Array:
    """Noisy means plus centred deviations of sd `sd_sums` / sqrt(rows of the bin), shape (rows,)."""
    size = np.maximum(numbers, 1).astype(np.float64)
    deviation = generator.standard_normal(len(row))
    mean = np.bincount(row, deviation, minlength=len(numbers)) / size
    return np.asarray((sums / size)[row] + (deviation - mean[row]) * (noisy.sd_sums / sqrt(1.0) / np.sqrt(size))[row])
