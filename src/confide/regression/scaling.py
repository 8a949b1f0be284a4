"""Between the data's units and the scaled units z = (1, x~), t in which moments are released: names, lines, units, forecasts."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.regression.normal_equations import Line, NoisyMoments
from confide.schema import Design

__all__ = ["PRIOR", "coefficient_names", "forecast", "line_of", "to_units"]

Array = NDArray[np.float64]

#: Public prior guess of |theta|^2; it balances the noise of A against that of b, and the optimum is flat in it.
PRIOR = 0.5


def coefficient_names(design: Design, keep: list[int]) -> tuple[str, ...]:
    return (*(("Intercept",) if design.intercept else ()), *(design.terms[j].name for j in keep))


def line_of(design: Design, keep: list[int] | None = None) -> Line:
    """Where theta may lie: free in the kept columns; without an intercept, through y = 0 at x = 0 in the data's own units."""
    keep = list(range(len(design.terms))) if keep is None else keep
    p = len(design.terms) + 1
    columns = np.eye(p)[:, [1 + j for j in keep]]
    if design.intercept:
        return Line(np.zeros(p), np.column_stack([np.eye(p)[:, 0], columns]))
    middle, half = _box(design)
    columns[0] = [middle[j] / half[j] for j in keep]
    offset = np.zeros(p)
    offset[0] = -_middle(design.response) / _half(design.response)
    return Line(offset, columns)


def to_units(design: Design, keep: list[int]) -> tuple[Array, Array]:
    """(J, shift): coefficients in the data's units are J theta + shift, in the order of `coefficient_names`."""
    middle, half = _box(design)
    y_half = _half(design.response)
    matrix = np.zeros((len(design.terms) + 1, len(design.terms) + 1))
    matrix[0, 0] = y_half
    matrix[0, 1:] = -y_half * middle / half
    matrix[range(1, len(matrix)), range(1, len(matrix))] = y_half / half
    shift = np.zeros(len(matrix))
    shift[0] = _middle(design.response)
    rows = [*([0] if design.intercept else []), *(1 + j for j in keep)]
    return matrix[rows], shift[rows]


def _box(design: Design) -> tuple[Array, Array]:
    return np.array([_middle(term) for term in design.terms]), np.array([_half(term) for term in design.terms])


def _middle(term: Any) -> float:
    return float(term.low + (term.high - term.low) / 2)


def _half(term: Any) -> float:
    return float((term.high - term.low) / 2)


def forecast(design: Design, noise: NoisyMoments, n: int | None) -> dict[str, Any]:
    """Standard errors to expect with independent features, uniform between their bounds, and a residual sd of a quarter of y's range."""
    mean = np.array([1.0, *(_expected(term)[0] for term in design.terms)])
    spread = np.diag([0.0, *(_expected(term)[1] for term in design.terms)])
    p = len(mean)
    guess = np.full(p, sqrt(PRIOR / p))
    line = line_of(design)
    matrix, _ = to_units(design, list(range(len(design.terms))))
    names = coefficient_names(design, list(range(len(design.terms))))
    table: dict[str, Any] = {
        "assumes": "if features are independent and uniform within bounds, and the residual sd is a quarter of the response's range"
    }
    for count in (n,) if n else (1_000, 10_000, 100_000):
        gram = count * (np.outer(mean, mean) + spread)
        bread = line.basis @ np.linalg.inv(line.basis.T @ gram @ line.basis) @ line.basis.T
        covariance = matrix @ bread @ (gram / 4 + noise.noise_covariance(guess)) @ bread @ matrix.T
        table[f"{count:,}"] = dict(zip(names, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return table


def _expected(term: Any) -> tuple[float, float]:
    """Mean and variance of a scaled term that is uniform between its bounds; an indicator is taken as 1 in half of the records."""
    return (0.0, 1.0) if term.binary else (0.0, 1 / 3)
