"""The line of a release in the units of the data: what the rows of a file are put on, so that plain OLS on them returns it.

It is the line of the table of `LeastSquares`, coefficient by coefficient. Rows need all of them, and a table may leave some out that noise
hides: these get their most likely values beside the others, from the same released normal equations A and b. With u the line in half-ranges
of the response (for one half-width of each feature) measured from where the rounds stood, u ~ N(0, I) is taken for it beforehand; what the
table tells fixes some of its directions, w are the others, and b less what is fixed is K w plus noise of known covariance V, so that w is
K'(K K' + V)^-1 of it. Post-processing, without draws. Source: Wiener 1949 (the linear estimate of least mean square error).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.factors.factor_figures import LevelFigures
from confide.methods.regression.factors.factor_means import FactorMeans
from confide.methods.regression.factors.factor_means_reading import LevelTables
from confide.methods.regression.least_squares.least_squares_reading import LeastSquaresReading
from confide.methods.regression.least_squares.line import LeastSquares
from confide.methods.regression.scaling import to_units
from confide.methods.synthesis.response import Line
from confide.protocol import Question, Release
from confide.schema import Design

__all__ = ["line_of_release"]


def line_of_release(release: Release, method: LeastSquares) -> tuple[Line, str]:
    """The line, coefficients in the order of the design's names, and the status of its table.

    Its covariance is that of the table, None where the table does not answer for all coefficients.
    """
    table, path = method.infer(release), method.about(release.plan.declared)
    design = table.design
    assert design is not None
    equations = _of_levels(release, design, path) if isinstance(path, FactorMeans) else _of_scores(release, design)
    covariance = table.covariance if table.status == "ok" else None
    return Line(equations.completed(table.estimates), equations.sigma, covariance), table.status


@dataclass(frozen=True, eq=False)
class _Equations:
    """gram u = cross, up to errors of covariance `noise`, and coefficients = rows u + start, in the units of the data; sigma: the residual
    sd in these units. Shapes: rows (p, p), start (p,), gram (k, p), cross (k,), noise (k, k).
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


def _of_scores(release: Release, design: Design) -> _Equations:
    """Of rounds: A and b are those of delta = M'^-1 (theta - line), in coordinates v = M z."""
    terms = list(range(len(design.terms)))
    reading = LeastSquaresReading(release, Question(), design, terms)
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


def _of_levels(release: Release, design: Design, path: FactorMeans) -> _Equations:
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


def _half(design: Design) -> float:
    return float(design.response.high - design.response.low) / 2
