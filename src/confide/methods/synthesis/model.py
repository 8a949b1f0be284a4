"""From a release to rows: what a synthetic table holds, and how far least squares on it is from the coefficients that it was made for.

Pure post-processing: the draws come from generators keyed by the release's digest and the number of the file. So one release and one
set of options give one file, on every run.

The columns of synthetic records, from noisy bins alone: how many in each bin, and where within it.

Post-processing of a release: the draws come from a generator keyed by its digest, so that one release gives one file.

A response with given coefficients: residuals that are orthogonal to the model matrix of the file, so that least squares returns them.

The coefficients of a release in the units of the data, which least squares on the rows of a file returns.

They come from the table of `LeastSquares`, one for one. Rows need all of them, and a table may leave some out that noise hides.
These get their most likely values given the others, from the same released normal equations A and b. Let u be the coefficients in
half-ranges of the response (for one half-range of each feature), measured from where the rounds ended. Beforehand u ~ N(0, I) is
assumed. What the table tells fixes some of its directions, and w are the others. b less what is fixed is K w plus noise of known
covariance V, so that w is K'(K K' + V)^-1 of it. Post-processing, without draws. Source: Wiener 1949 (the linear estimate of least mean
square error).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf, log10, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core import Release, ResultOptions
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.factors.draw import FactorMeans
from confide.methods.regression.factors.reading import LevelTables
from confide.methods.regression.factors.results import LevelFigures
from confide.methods.regression.least_squares.method import LeastSquares
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.synthesis.bins import NoisyBins, feature_columns, read_bins
from confide.noise import keyed_generator
from confide.schema import Categorical, Integer, ModelMatrix, Schema

# Numbers are rounded to the decimals that a millionth of the column's range has.
_FINE = 6
# A bin's noisy mean moves its rows when the noisy count exceeds so many noise sds.
_TRUSTED = 3.0
# A mean at the very edge of its bin would put every row there.
_EDGE = 0.97
# Tilts beyond this have a mean above the edge; means below the other number are no tilt.
_STEEPEST = 60.0
_FLAT = 1e-6


def row_numbers(counts: Array, total: float) -> Whole:
    """Whole numbers of rows (bins,), at least 0, that add up to max(round(total), 0).

    The same amount is taken from all noisy counts until what is left above 0 adds up to `total`. Dropping negative counts alone would
    make more rows than there were records. Halves go to the bins with the largest rest.

    >>> row_numbers(np.array([5.2, -2.0, 0.4, 3.4]), 7.0).tolist()
    [4, 0, 0, 3]
    """
    target = max(round(total), 0)
    if not len(counts) or target == 0:
        return np.zeros(len(counts), dtype=np.int64)
    ordered = np.sort(counts)[::-1]
    taken = (np.cumsum(ordered) - target) / np.arange(1, len(counts) + 1)
    # the last one that is still above what is taken from it; the largest always is
    last = int(np.flatnonzero(ordered > taken)[-1])
    exact = np.maximum(counts - taken[last], 0.0)
    numbers = np.floor(exact).astype(np.int64)
    rest = target - int(numbers.sum())
    if rest > 0:
        numbers[np.argsort(-(exact - numbers), kind="stable")[:rest]] += 1
    return np.asarray(numbers)


def draw_columns(
    noisy: NoisyBins, design: ModelMatrix, numbers: Whole, generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Columns of final values: numbers[k] rows of bin k, even within the bin or tilted to its noisy mean.

    Integers lie on their lattice, labels are levels, numbers are rounded and within bounds. Rows are in the order of the bins.
    """
    row = np.repeat(np.arange(len(numbers)), numbers)
    trusted = noisy.counts > _TRUSTED * max(noisy.sd_counts, noisy.sd_sums)
    low, width = noisy.bins.low, noisy.bins.high - noisy.bins.low
    means = np.where(trusted[:, None], noisy.sums / np.where(trusted, noisy.counts, 1.0)[:, None], 0.0)
    tilt = tilts(np.clip(means, -_EDGE, _EDGE), width)
    columns: dict[str, NDArray[Any]] = {}
    for j, name in enumerate(feature_columns(design)):
        place = generator.random(len(row))
        if not isinstance(design.schema[name], Categorical):
            place = places(tilt[row, j], place)
        size = width[row, j]
        columns[name] = as_column(design.schema, name, low[row, j] + np.minimum(np.floor(place * size), size - 1))
    return columns


def tilts(mean: Array, width: Whole) -> Array:
    """k of the law P(i) ~ exp(2 k i/width) on the codes i = 0 .. width - 1, whose mean is the middle plus `mean` half-ranges.

    It has the largest entropy of all laws on these codes with that mean; means lie in [-0.97, 0.97]. The mean grows with k and is
    (width coth k - coth(k/width))/(width - 1); k is found by bisection.

    >>> tilts(np.array([0.0, 0.5]), np.array([4, 2])).round(6).tolist()
    [0.0, 1.098612]
    """
    size = np.maximum(width.astype(np.float64), 2.0)
    target = np.abs(mean)
    low, high = np.full(mean.shape, 1e-9), np.full(mean.shape, _STEEPEST)
    for _ in range(50):
        k = (low + high) / 2
        above = (size / np.tanh(k) - 1 / np.tanh(k / size)) / (size - 1) > target
        low, high = np.where(above, low, k), np.where(above, k, high)
    return np.asarray(np.where(target < _FLAT, 0.0, np.sign(mean) * (low + high) / 2))


def places(tilt: Array, place: Array) -> Array:
    """Places x in [0, 1) of the density exp(2 k x), by its quantile function at `place` in [0, 1)."""
    size = np.where(tilt == 0, 1.0, np.abs(tilt))
    # by symmetry for tilts above 0, so that the exponential never overflows
    found = -np.log1p(np.where(tilt > 0, 1 - place, place) * np.expm1(-2 * size)) / (2 * size)
    found = np.where(tilt > 0, 1 - found, found)
    return np.asarray(np.clip(np.where(tilt == 0, place, found), 0.0, np.nextafter(1.0, 0.0)))


def as_column(schema: Schema, name: str, codes: NDArray[Any]) -> NDArray[Any]:
    """Codes as final values: int64 for an integer column, positions for a categorical one, rounded floats else."""
    column = schema[name]
    if isinstance(column, Categorical):
        return codes.astype(np.int64)
    values = column.decode(codes)
    if isinstance(column, Integer):
        return np.rint(values).astype(np.int64)
    decimals = _FINE - floor(log10(column.high - column.low))
    # powers of ten beyond 10^22 are no exact doubles, and rounding with them would not look any rounder
    return np.clip(np.round(values, max(decimals, 0)), column.low, column.high) if decimals <= 22 else values


def public_rows(design: ModelMatrix, rows: int, generator: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Columns drawn evenly within the schema's bounds; the levels of a categorical column take turns."""
    columns = {}
    for name in feature_columns(design):
        steps = design.schema[name].steps
        if isinstance(design.schema[name], Categorical):
            codes = (np.arange(rows) + int(generator.integers(steps))) % steps
        else:
            codes = generator.integers(0, steps, rows)
        columns[name] = as_column(design.schema, name, codes)
    return columns


def joined(first: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rows of both."""
    return {name: np.concatenate([values, other[name]]) for name, values in first.items()}


# Columns whose part of its own is below this share of their length are no columns of their own.
_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients (p,) in the order of the design's names and the residual SD, both in the units of the data.

    covariance (p, p): of the coefficients, sampling and privacy noise; None where the release gives no valid one.
    """

    coefficients: Array
    sigma: float
    covariance: Array | None = None

    def drawn(self, generator: np.random.Generator) -> Line:
        """A line drawn from the normal distribution of this one; itself when there is no covariance."""
        if self.covariance is None:
            return self
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))
        return Line(self.coefficients + scaled @ generator.standard_normal(len(values)), self.sigma, self.covariance)


@dataclass(frozen=True, eq=False)
class Matrix:
    """A model matrix (rows, p) with an orthonormal basis (rows, rank) of its columns, each scaled to length 1 first."""

    values: Array
    length: Array
    basis: Array

    @classmethod
    def of(cls, values: Array) -> Matrix:
        """With its basis."""
        length = np.sqrt((values**2).sum(axis=0))
        length = np.where(length > 0, length, 1.0)
        if not values.size:
            return cls(values, length, np.zeros((len(values), 0)))
        left, sizes, _ = np.linalg.svd(values / length, full_matrices=False)
        return cls(values, length, left[:, : int((sizes > _SINGULAR * max(sizes[0], 1e-300)).sum())])

    @property
    def deficient(self) -> bool:
        """Whether OLS has no single solution, or no degree of freedom left for the residuals."""
        rows, p = self.values.shape
        return bool(rows < p + 2 or self.basis.shape[1] < p)

    def fitted(self, y: Array) -> Array:
        """Least squares of y, on columns scaled to length 1."""
        solution, *_ = np.linalg.lstsq(self.values / self.length, y, rcond=None)
        return np.asarray(solution / self.length)

    def residuals(self, sigma: float, generator: np.random.Generator) -> Array:
        """Normal residuals (rows,), exactly orthogonal to the matrix, of which OLS estimates the SD `sigma` exactly."""
        rows, rank = self.basis.shape
        found: Array = generator.standard_normal((rows,))
        for _ in range(2):  # once more for what rounding left
            found = found - self.basis @ (self.basis.T @ found)
        size = float(np.sqrt(found @ found))
        return found * (sigma * sqrt(rows - rank) / size) if rows > rank and size > 0 else np.zeros(rows)

    def on_line(self, line: Line, generator: np.random.Generator) -> Array:
        """The response (rows,): the line at every row plus residuals, corrected once for what rounding did to the solution."""
        y = self.values @ line.coefficients + self.residuals(line.sigma, generator)
        return np.asarray(y if self.deficient else y + self.values @ (line.coefficients - self.fitted(y)))

    def off_by(self, y: Array, coefficients: Array) -> float:
        """How far least squares is off: the largest difference, each against 1 or the coefficient, whichever is larger."""
        if self.deficient:
            return inf
        off = np.abs(self.fitted(y) - coefficients) / np.maximum(np.abs(coefficients), 1.0)
        return float(np.max(off, initial=0.0))


# How often rows are drawn anew whose terms are no numbers (a logarithm of 0), and public rows added until OLS has one solution.
_TRIES = 20
# Rows that a noisy number of records may ask for: 8 GB for ten columns. A file from anybody may ask for any number.
_MOST_ROWS = 10**8


@dataclass(frozen=True)
class Options:
    """How a file is made from a release; none of it costs anything.

    rows: their number, None for the estimated number of records; bounded: the response is clipped to its bounds and, in an integer
    column, rounded. Least squares then no longer returns the released coefficients.
    """

    rows: int | None = None
    bounded: bool = False

    def __post_init__(self) -> None:
        rows = self.rows
        whole = isinstance(rows, (int, np.integer)) and not isinstance(rows, bool)
        if rows is not None and (not whole or rows < 1):
            raise PlanError(
                f"rows must be a whole number of at least 1, got {rows!r}",
                "leave it out for the estimated number of records",
            )
        if not isinstance(self.bounded, bool):
            raise PlanError(f"bounded must be True or False, got {self.bounded!r}", "leave it out for False")

    def rows_for(self, records: float) -> float:
        """How many rows are made of an estimated number of records; `PlanError` when no number was chosen and it is beyond reason."""
        if self.rows is not None:
            return float(self.rows)
        if not records <= _MOST_ROWS:
            raise PlanError(
                f"the release counts more than {_MOST_ROWS} records, as many rows as are made unasked",
                "say how many: rows=1000000",
            )
        return records

    def check(self, design: ModelMatrix) -> None:
        """`PlanError` for fewer rows than OLS needs."""
        if self.rows is not None and self.rows < len(design.names) + 2:
            raise PlanError(
                f"rows must be at least {len(design.names) + 2} for {len(design.names)} coefficients, got {self.rows}",
                "leave it out for the estimated number of records",
            )


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of a file in final form (labels as positions), and public facts about them."""

    columns: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]


def build_rows(release: Release, design: ModelMatrix, line: Line, options: Options, file: int = 1) -> Rows:
    """Rows on which least squares returns the released coefficients: features from the bins, then the response.

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


def _plain_response(design: ModelMatrix) -> str:
    name = design.response.plain
    if name is None:
        raise PlanError(
            f"a file has columns of the schema, and the response {design.response.name!r} is not one",
            "declare it as a column in the schema and put it on the left of ~",
        )
    return name


def _matrix(columns: Mapping[str, NDArray[Any]], design: ModelMatrix, rows: int) -> Array:
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
    columns: dict[str, NDArray[Any]], noisy: NoisyBins, design: ModelMatrix, numbers: NDArray[np.int64], generator: Any
) -> tuple[dict[str, NDArray[Any]], int]:
    """Rows with a term that is not a number are drawn again in their bins, and excluded in the end."""
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
    columns: dict[str, NDArray[Any]], design: ModelMatrix, generator: Any, rows: int | None, drawn: int
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


def literal_rows(release: Release, design: ModelMatrix, options: Options, file: int = 1) -> Rows:
    """Rows from the bins' noisy sums alone, whose sums per bin are the noisy ones exactly.

    Every row of a bin is its noisy mean plus noise of the size that the sums carry, centered within the bin. The sum is sufficient, so
    this is equal in distribution to separate noise on every row's share of the sum. Bins with fewer than 2 rows are excluded. Values
    may leave the bounds and the lattice of integers. Source: Lin, Slavković, Bhoomireddy 2025 (arXiv 2510.16974), Algorithm 3, with the
    noise that its claim needs and with sums centered in their bins.
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
    """Noisy means plus centered deviations of SD `sd_sums` / sqrt(rows of the bin), shape (rows,)."""
    size = np.maximum(numbers, 1).astype(np.float64)
    deviation = generator.standard_normal(len(row))
    mean = np.bincount(row, deviation, minlength=len(numbers)) / size
    return np.asarray((sums / size)[row] + (deviation - mean[row]) * (noisy.sd_sums / sqrt(1.0) / np.sqrt(size))[row])


def line_of_release(release: Release, method: LeastSquares) -> tuple[Line, str]:
    """The line, coefficients in the order of the design's names, and the status of its table.

    Its covariance is that of the table, None where the table does not answer for all coefficients.
    """
    table, path = method.infer(release), method.about(release.plan.declared)
    design = table.design
    assert design is not None
    equations = _of_levels(release, design, path) if isinstance(path, FactorMeans) else _of_scores(release, design)
    covariance = table.covariance if table.status == "valid" else None
    return Line(equations.completed(table.estimates), equations.sigma, covariance), table.status


@dataclass(frozen=True, eq=False)
class _Equations:
    """gram u = cross, up to errors of covariance `noise`, and coefficients = rows u + start, in the units of the data; sigma: the residual
    SD in these units. Shapes: rows (p, p), start (p,), gram (k, p), cross (k,), noise (k, k).
    """

    rows: Array
    start: Array
    gram: Array
    cross: Array
    noise: Array
    sigma: float

    def completed(self, estimates: Array) -> Array:
        """The coefficients (p,), with the most likely values where `estimates` has NaN."""
        told = np.isfinite(estimates)
        if told.all():
            return np.array(estimates)
        size = np.linalg.norm(self.rows[told], axis=1)
        fixed = self.rows[told] / size[:, None]
        # the rest of the space, from the full orthonormal basis
        basis, _ = np.linalg.qr(fixed.T, mode="complete")
        free = basis[:, len(fixed) :]
        u = np.linalg.lstsq(fixed, (estimates - self.start)[told] / size, rcond=None)[0]
        inside = self.gram @ free
        u = u + free @ inside.T @ np.linalg.solve(inside @ inside.T + self.noise, self.cross - self.gram @ u)
        return np.where(told, estimates, self.rows @ u + self.start)


def _of_scores(release: Release, design: ModelMatrix) -> _Equations:
    """Of rounds: A and b belong to delta = M'^-1 (theta - line), in coordinates v = M z."""
    terms = list(range(len(design.terms)))
    reading = LeastSquaresReading(release, ResultOptions(), design, terms)
    s, (matrix, shift) = reading.sandwich, to_units(design, terms, reading.box)
    line, metric, sigma = (np.asarray(release.public[name], dtype=np.float64) for name in ("line", "metric", "sigma"))
    variance = float(sigma[0]) ** 2
    if s.positive:
        rss, bread = s.residual_sum
        variance = max((rss + bread + float(np.trace(s.bread @ s.meat))) / s.count, variance / 4)
    delta = s.delta if s.positive else np.zeros(len(s.cross))
    return _Equations(
        rows=matrix,
        start=matrix @ line + shift,
        gram=s.gram @ np.linalg.inv(metric.T)[: len(s.gram)],
        cross=s.cross,
        noise=s.noise(delta) + s.s2 * _above_zero(s.gram),
        sigma=_half(design) * sqrt(variance),
    )


def _of_levels(release: Release, design: ModelMatrix, path: FactorMeans) -> _Equations:
    """Of tables by level, measured from the mean of all records."""
    levels, half = path.levels, _half(design)
    tables = LevelTables.of(levels, path.rows(str(release.charged.relation)), release["sums"])
    own = LevelFigures(release, design, levels, tables, np.arange(levels.width))
    assert levels.constant is not None
    mean = float(np.clip(tables.sums[tables.places[0]].sum() / max(tables.count, 1.0), -1.0, 1.0))
    rows, start = half * np.eye(levels.width), (float(design.response.low) + half * (1 + mean)) * levels.constant
    try:
        fitted, variance = own.fitted, own.variance
    except np.linalg.LinAlgError:  # tables that no line fits
        return _Equations(rows, start, 0 * rows, 0 * start, np.eye(levels.width), half)
    return _Equations(
        rows=rows,
        start=start,
        gram=fitted.gram,
        cross=tables.cross - mean * fitted.gram @ levels.constant,
        noise=fitted.noise + variance * _above_zero(fitted.gram),
        sigma=half * sqrt(variance),
    )


def _above_zero(matrix: Array) -> Array:
    """A symmetric matrix without its negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _half(design: ModelMatrix) -> float:
    return float(design.response.high - design.response.low) / 2
