"""Between the data's units and the scaled units z = (1, x~), t in which moments are released: names, lines, units, forecasts."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.mechanisms.round_lines import allowed_lines
from confide.mechanisms.rows import Box
from confide.regression.normal_equations import Line, NoisyMoments
from confide.schema import Design, Schema
from confide.schema.term import Indicator, Term

__all__ = ["PRIOR", "coefficient_names", "extent", "factor_name", "forecast", "forecast_table", "line_of", "to_units"]

Array = NDArray[np.float64]

#: Public prior guess of |theta|^2; it balances the noise of A against that of b, and the optimum is flat in it.
PRIOR = 0.5


def coefficient_names(design: Design, keep: list[int]) -> tuple[str, ...]:
    return (*(("Intercept",) if design.intercept else ()), *(design.terms[j].name for j in keep))


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


def forecast(design: Design, schema: Schema, cap: float, noise: NoisyMoments, n: int | None) -> dict[str, Any]:
    """`forecast_table` of one release of weighted moments."""
    line = line_of(design)

    def covariance(scaled: Array, count: int) -> Array:
        weights = np.minimum(1.0, cap / (scaled**2).sum(axis=1))
        one = (scaled * weights[:, None]).T @ scaled / len(scaled)
        guess = np.full(len(one), sqrt(PRIOR / len(one)))
        bread = line.basis @ np.linalg.pinv(line.basis.T @ (count * one) @ line.basis) @ line.basis.T
        return np.asarray(bread @ (count * one / 4 + noise.noise_covariance(guess)) @ bread)

    return forecast_table(design, schema, n, covariance)


def forecast_table(
    design: Design, schema: Schema, n: int | None, covariance: Callable[[Array, int], Array]
) -> dict[str, Any]:
    """Standard errors to expect for practice records (independent, uniform) and a residual sd of a quarter of y's range.

    covariance: of theta in scaled units, from z of practice records (rows, p) and a number of records. Rounded to two digits: it is a
    guess, and a plan's file must not differ between machines in its last bits. Levels of one factor are interchangeable before the data
    are seen, and share one number: their mean variance over the simulated rows.
    """
    scaled = _practice_rows(design, schema)
    everything = list(range(len(design.terms)))
    matrix, _ = to_units(design, everything)
    names = coefficient_names(design, everything)
    alike = _alike(design)
    table: dict[str, Any] = {
        "assumes": "order of magnitude: simulated for features that are independent and uniform within bounds, and a "
        "residual sd of a quarter of the response's range; the real ones may be several times as small or large"
    }
    for count in (n,) if n else (1_000, 10_000, 100_000):
        errors = np.sqrt(alike @ np.diag(matrix @ covariance(scaled, count) @ matrix.T))
        table[f"{count:,}"] = {name: float(f"{error:.2g}") for name, error in zip(names, errors, strict=True)}
    return table


def _alike(design: Design) -> Array:
    """The matrix that averages over the coefficients that differ only in which levels of their factors they belong to."""
    kinds = [factor_name(term) for term in design.terms]
    kinds = [*([""] if design.intercept else []), *kinds]
    same = np.array([[float(one == other) for other in kinds] for one in kinds])
    return np.asarray(same / same.sum(axis=1, keepdims=True))


def factor_name(term: Term) -> str:
    """A term without its levels: "region" for "region[T.S]", "age:region" for "age:region[T.S]", "age" for "age"."""
    return ":".join(part.column if isinstance(part, Indicator) else part.name for part in term.parts)


def _practice_rows(design: Design, schema: Schema) -> Array:
    """z of 2,000 synthetic records, shape (rows, terms + 1); rows with a term that is not finite are left out."""
    values = design.matrix(schema.sample(2_000, seed=0))[:, int(design.intercept) :]
    middle, half = Box.of(design).arrays
    scaled = np.column_stack([np.ones(len(values)), np.clip((values - middle) / half, -1, 1)])
    return scaled[np.isfinite(scaled).all(axis=1)]
