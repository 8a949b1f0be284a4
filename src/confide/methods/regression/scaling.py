"""Between the data's units and the scaled units z = (1, x~), t in which moments are released: names, lines, units."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.rows import Box
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import Line
from confide.schema import Design

__all__ = ["PRIOR", "allowed_lines", "coefficient_names", "extent", "line_of", "to_units"]


#: Public prior guess of |theta|^2; it balances the noise of A against that of b, and the optimum is flat in it.
PRIOR = 0.5


def coefficient_names(design: Design, keep: list[int]) -> tuple[str, ...]:
    return (*(("Intercept",) if design.intercept else ()), *(design.terms[j].name for j in keep))


def allowed_lines(design: Design, keep: list[int] | None = None, box: Box | None = None) -> tuple[Array, Array]:
    """(origin, lines), shapes (p,), (p, k): free in the kept columns; without an intercept, through y = 0 at x = 0 in the data's units.

    box: where z was measured from, the public bounds when left out.
    """
    keep = list(range(len(design.terms))) if keep is None else keep
    p = len(design.terms) + 1
    columns = np.eye(p)[:, [1 + j for j in keep]]
    if design.intercept:
        return np.zeros(p), np.column_stack([np.eye(p)[:, 0], columns])
    middle, half = (box or Box.of(design)).arrays
    columns[0] = [middle[j] / half[j] for j in keep]
    low, high = float(design.response.low), float(design.response.high)
    origin = np.zeros(p)
    origin[0] = -(low + (high - low) / 2) / ((high - low) / 2)
    return origin, columns


def line_of(design: Design, keep: list[int] | None = None, box: Box | None = None) -> Line:
    """`allowed_lines` as a `Line`."""
    return Line(*allowed_lines(design, keep, box))


def to_units(design: Design, keep: list[int], box: Box | None = None) -> tuple[Array, Array]:
    """(J, shift): coefficients in the data's units are J theta + shift, in the order of `coefficient_names`.

    box: where z was measured from, the public bounds when left out.
    """
    middle, half = (box or Box.of(design)).arrays
    y_half = _half(design.response)
    matrix = np.zeros((len(design.terms) + 1, len(design.terms) + 1))
    _check_units(design)
    matrix[0, 0] = y_half
    matrix[0, 1:] = -y_half * middle / half
    matrix[range(1, len(matrix)), range(1, len(matrix))] = y_half / half
    shift = np.zeros(len(matrix))
    shift[0] = _middle(design.response)
    rows = [*([0] if design.intercept else []), *(1 + j for j in keep)]
    return matrix[rows], shift[rows]


def extent(design: Design, box: Box | None = None) -> tuple[Array, Array]:
    """From where to where each x~ of a box goes within the public bounds, shapes (terms,): -1 to 1 in the public box itself."""
    middle, half = Box.of(design).arrays
    own_middle, own_half = (box or Box.of(design)).arrays
    return (middle - half - own_middle) / own_half, (middle + half - own_middle) / own_half


def _check_units(design: Design) -> None:
    """Refuse bounds so large, small or far apart in size that a variance in their units is no finite double."""
    for term in (*design.terms, design.response):
        sizes = (abs(_middle(term)), _half(term))
        if max(sizes) > 1e60 or sizes[1] < 1e-60:
            raise PlanError(
                f"the bounds of {term.name!r} are {term.low:g} and {term.high:g}; a variance in these units cannot be computed; "
                "declare the column in other units, with a size and a width between 1e-60 and 1e60"
            )


def _middle(term: Any) -> float:
    return float(term.low + (term.high - term.low) / 2)


def _half(term: Any) -> float:
    return float((term.high - term.low) / 2)
