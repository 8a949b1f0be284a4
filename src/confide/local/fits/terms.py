"""A formula over a protected table: its terms, their noise, and the units in which a fit is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._lazy import later
from confide.errors import PlanError, ReleaseError
from confide.local.fits.corrected import Rows
from confide.local.fits.losses import Loss
from confide.local.protection import Protection, Told

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["Model"]


# Combinations of protected levels in one formula: each record stands so many times.
_MOST_COPIES = 200


@dataclass(frozen=True, eq=False)
class Model:
    """A formula's rows in units of the declared domains, and the way back.

    names (p,) of the terms; rows scaled; to_units (p, p) and shift (p,): coefficients in the data's units are to_units @ theta + shift;
    response: its name; intercept: its position, None without one; width: what the response was divided by.
    """

    names: tuple[str, ...]
    rows: Rows
    to_units: Array
    shift: Array
    response: str
    intercept: int | None
    width: float

    @classmethod
    def of(cls, frame: pd.DataFrame, told: Protection, formula: str, loss: Loss) -> Model:
        """The model matrix by formulaic. A protected column enters as it stands: noise under a function has another correction.

        Protected levels may enter as they like, among themselves and with public columns: each record stands once with each level
        (`confide.local.fits.corrected`). As the response, a protected column of two levels is the share of the second.
        Raises `PlanError` for unknown columns, for functions and products of protected numbers, for a response of other than two levels
        and for a protected response of a loss that is not one of y - t.
        """
        left, right = _sides(formula)
        if frame.empty:
            raise PlanError("the table has no records, and nothing can be fitted to it; give one that has some")
        terms = _variables(right, formula, told)
        if left in terms:
            raise PlanError(
                f"{left!r} is the response and a term of {formula!r}, with one noise in both; take one of them out"
            )
        named = {left, *terms}
        _complete(frame, told, named)
        frame, weights, copies = _over_levels(frame, {k: one for k, one in told.levels.items() if k in named})
        y, lam_y, middle_y, width_y = _response(frame, told, left, loss)
        matrix, variables = _matrix(frame, right, formula)
        names = tuple(str(name) for name in matrix.columns)
        x = matrix.to_numpy(dtype=np.float64)
        at = next((k for k, name in enumerate(names) if name == "Intercept"), None)
        lam, middle, width = (np.zeros(len(names)) for _ in range(3))
        for k, name in enumerate(names):
            lam[k], middle[k], width[k] = _units(name, variables[name], x[:, k], told)
        if at is None:
            middle[:] = 0.0
            middle_y = 0.0
        scaled = Rows(
            (x - middle) / width, (y - middle_y) / width_y, lam / width, lam_y / width_y, told.zeta, weights, copies
        )
        to_units, shift = np.diag(width_y / width), np.zeros(len(names))
        if at is not None:
            to_units[at, :] -= width_y * middle / width
            shift[at] = middle_y
        response = f"{left}[{told.levels[left].levels[1]}]" if left in told.levels else left
        return cls(names, scaled, to_units, shift, response, at, width_y)

    def in_units(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Coefficients and their covariance in the data's units."""
        moved = self.to_units @ covariance @ self.to_units.T
        return self.to_units @ theta + self.shift, (moved + moved.T) / 2


def _sides(formula: str) -> tuple[str, str]:
    left, tilde, right = formula.partition("~")
    if not tilde or not left.strip() or not right.strip():
        raise PlanError(f"a formula has a response and terms, got {formula!r}; write 'y ~ x1 + x2'")
    return left.strip().strip("`"), right.strip()


def _complete(frame: pd.DataFrame, told: Protection, named: set[str]) -> None:
    """Raise `PlanError` where a public column of the formula has no value, or none that is finite, in some rows of the file."""
    for name in sorted(named.intersection(told.public)):
        column = frame[name]
        numbers = pd.api.types.is_numeric_dtype(column)
        gone = int((~np.isfinite(column.to_numpy(dtype=np.float64)) if numbers else column.isna()).sum())
        if gone:
            there = f"np.isfinite(frame[{name!r}])" if numbers else f"frame[{name!r}].notna()"
            raise PlanError(
                f"the public column {name!r} has no value, or none that is finite, in {gone:,} of {len(frame):,} rows; leave these out: "
                f"frame = cf.local.read(path); cf.local.fit(frame[{there}], ...)"
            )


def _response(frame: pd.DataFrame, told: Protection, name: str, loss: Loss) -> tuple[Array, float, float, float]:
    """(values, noise sd, middle, width): the last two 0 and 1 where the loss is not one of y - t."""
    if name in told.levels:
        y = _two_sided(frame[name], told.levels[name].levels, loss)
        return y, 0.0, *_around(y, loss)
    noised = told.column(name)
    y = _numbers(frame[name], name, loss)
    if noised is None:
        loss.checked(y)
        return y, 0.0, *_around(y, loss)
    if not loss.location:
        raise PlanError(
            f"the response {name!r} is protected, and loss={loss.name!r} needs its true values; publish it as it is when the table is "
            "protected, or write loss='squared', 'quantile' or 'huber'"
        )
    return y, noised.sd, (noised.low + noised.high) / 2, noised.high - noised.low


def _around(y: Array, loss: Loss) -> tuple[float, float]:
    """(middle, width) of a response without noise."""
    return (float(y.mean()), float(y.std()) or 1.0) if loss.location else (0.0, 1.0)


def _numbers(column: pd.Series, name: str, loss: Loss) -> Array:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        low, high = loss.sides
        raise PlanError(
            f"the response {name!r} was published as levels, and a response is a number; publish it as {low:g} and {high:g}, or protect "
            f"its two levels: cf.local.protect(..., levels={{{name!r}: 1.0}})"
        ) from None


def _two_sided(column: pd.Series, levels: tuple[str, ...], loss: Loss) -> Array:
    if len(levels) != 2:
        raise PlanError(
            f"the response {column.name!r} has {len(levels)} levels, and a response has two; its shares are known: write "
            f"cf.local.shares(data, {column.name!r})"
        )
    return np.asarray(np.where(column.cat.codes == 1, loss.sides[1], loss.sides[0]), dtype=np.float64)


def _over_levels(frame: pd.DataFrame, levels: Mapping[str, Told]) -> tuple[pd.DataFrame, Array | None, int]:
    """(frame, weights, copies): each record once with every combination of these levels, as it was told first."""
    if not levels:
        return frame, None, 1
    copies = prod(len(one.levels) for one in levels.values())
    if copies > _MOST_COPIES:
        raise PlanError(
            f"the levels of {', '.join(levels)} make {copies:,} combinations, and a formula takes {_MOST_COPIES}; take fewer of them"
        )
    records = np.arange(len(frame))
    wide = frame.take(np.repeat(records, copies)).reset_index(drop=True)
    weights, apart = np.ones(copies), copies
    for name, one in levels.items():
        count, keep = len(one.levels), float(one.keep)
        apart //= count
        away = np.arange(copies) // apart % count  # from the level that was told
        known = pd.Index(one.levels)
        told = known.get_indexer(pd.Index(frame[name]))
        if (told < 0).any():
            raise ReleaseError(
                f"the table has cells of {name!r} that are none of its levels; ask for it as it was protected"
            )
        codes = ((told[:, None] + away) % count).ravel()
        wide[name] = pd.Categorical.from_codes(codes, categories=known)
        weights = weights * ((away == 0) - (1 - keep) / count) / keep
    return wide, np.tile(weights, len(frame)), copies


def _variables(right: str, formula: str, told: Protection) -> set[str]:
    """The columns that the right side names; `PlanError` where a protected number is in a function, before that is computed."""
    from formulaic import Formula, SimpleFormula

    try:
        whole = Formula(right)
        if isinstance(whole, SimpleFormula):
            found = {str(term): {str(v) for v in Formula([term]).required_variables} for term in whole}
    except Exception as error:
        raise _unreadable(formula, error) from None
    if not isinstance(whole, SimpleFormula):
        raise PlanError(
            f"the formula {formula!r} has several parts on its right side, and a fit has one; write 'y ~ x1 + x2'"
        )
    for term, variables in found.items():
        _check_plain(term, variables, told)
    return set().union(*found.values())


def _check_plain(term: str, variables: set[str], told: Protection) -> None:
    protected = sorted(variables & set(told.columns))
    if protected and term != protected[0]:
        raise PlanError(
            f"the term {term!r} is a function of the protected {', '.join(protected)}, whose noise this correction does not know; "
            f"write {protected[0]} as it stands, or protect the function itself as a column of its own"
        )


def _unreadable(formula: str, error: Exception) -> PlanError:
    return PlanError(f"the formula {formula!r} cannot be read on this table: {error}; write 'y ~ x1 + x2'")


def _matrix(frame: pd.DataFrame, right: str, formula: str) -> tuple[pd.DataFrame, dict[str, set[str]]]:
    from formulaic import model_matrix  # here, because its whole is slow to load
    from formulaic.errors import FactorEvaluationError

    try:
        made: Any = model_matrix(right, frame, na_action="raise")
    except FactorEvaluationError as error:
        unknown = re.search(r"NameError: `?'?([^`' ]+)", str(error))
        if unknown is None:
            raise _unreadable(formula, error) from None
        raise PlanError(
            f"the table has no column {unknown[1]!r}; it has: {', '.join(map(str, frame.columns))}"
        ) from None
    except Exception as error:
        raise _unreadable(formula, error) from None
    spec = made.model_spec
    variables: dict[str, set[str]] = {}
    for part in spec.structure:
        known = {str(v) for v in spec.term_variables.get(part.term, ()) if str(v) in frame.columns}
        for column in part.columns:
            variables[str(column)] = known
    return made, variables


def _units(name: str, variables: set[str], values: Array, told: Protection) -> tuple[float, float, float]:
    """(noise sd, middle, width) of one term."""
    _check_plain(name, variables, told)
    if name not in told.columns:
        spread = float(values.std())
        return 0.0, (float(values.mean()) if spread else 0.0), spread or 1.0
    one = told.columns[name]
    return one.sd, (one.low + one.high) / 2, one.high - one.low
