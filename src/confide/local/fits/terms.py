"""A formula over a protected table: its terms, their noise, and the units in which a fit is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._lazy import later
from confide.errors import PlanError, ReleaseError
from confide.local.fits.corrected import Rows
from confide.local.fits.losses import Loss
from confide.local.protection import Protection, Told
from confide.schema.formulas.names import column_named, hidden, restored, sides

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
    response: its name; intercept: its position, None without one; width: what the response was divided by; bases: the level that the
    coefficients of each factor are differences from, the first one declared.
    """

    names: tuple[str, ...]
    rows: Rows
    to_units: Array
    shift: Array
    response: str
    intercept: int | None
    width: float
    bases: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, told: Protection, formula: str, loss: Loss) -> Model:
        """The model matrix by formulaic. A protected column enters as it stands: noise under a function has another correction.

        Protected levels may enter as they like, among themselves and with public columns: each record stands once with each level
        (`confide.local.fits.corrected`). As the response, a protected column of two levels is the share of the second.
        Raises `PlanError` for unknown columns, for functions and products of protected numbers, for a response of other than two levels
        and for a protected response of a loss that is not one of y - t.
        """
        left, written = _sides(formula)
        if frame.empty:
            raise PlanError("the table has no records, and nothing can be fitted to it; give one that has some")
        known = tuple(map(str, frame.columns))
        left = column_named(left, known)
        right, called = hidden(written, known)
        terms = _variables(right, formula, called, told)
        unknown = [name for name in called.values() if name not in known]
        if unknown:
            raise PlanError(f"the table has no column {unknown[0]!r}; it has: {', '.join(known)}")
        if left in terms:
            raise PlanError(
                f"{left!r} is the response and a term of {formula!r}, with one noise in both; take one of them out"
            )
        named = {left, *terms}
        _complete(frame, told, named)
        frame = _in_order(frame, {name: own for name, own in told.order.items() if name in named})
        frame, weights, copies = _over_levels(frame, {k: one for k, one in told.levels.items() if k in named})
        y, lam_y, middle_y, width_y = _response(frame, told, left, loss)
        matrix, variables, based = _matrix(frame, right, formula, called)
        names = tuple(str(name) for name in matrix.columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanError(f"two coefficients of {formula!r} are called {twice!r}; rename a column")
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
        return cls(names, scaled, to_units, shift, response, at, width_y, based)

    def in_units(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Coefficients and their covariance in the data's units."""
        moved = self.to_units @ covariance @ self.to_units.T
        return self.to_units @ theta + self.shift, (moved + moved.T) / 2


def _sides(formula: str) -> tuple[str, str]:
    both = sides(formula)
    if len(both) != 2 or not all(both):
        raise PlanError(f"a formula has a response and terms, got {formula!r}; write 'y ~ x1 + x2'")
    return both[0], both[1]


def _codes(column: pd.Series[Any], levels: tuple[str, ...]) -> NDArray[np.int64]:
    """The places of labels among the declared levels."""
    codes = pd.Index(levels).get_indexer(pd.Index(column))
    if (codes < 0).any():
        raise ReleaseError(
            f"the table has cells of {column.name!r} that are none of its levels; ask for it as it was protected"
        )
    return np.asarray(codes, dtype=np.int64)


def _in_order(frame: pd.DataFrame, order: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """Public labels in the declared order of those that occur: the first one is the base, as in every other table."""
    found = {}
    for name, levels in order.items():
        codes = _codes(frame[name], levels)
        found[name] = pd.Categorical.from_codes(codes, categories=pd.Index(levels)).remove_unused_categories()
    return frame.assign(**found) if found else frame


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
        codes = ((_codes(frame[name], one.levels)[:, None] + away) % count).ravel()
        wide[name] = pd.Categorical.from_codes(codes, categories=pd.Index(one.levels))
        weights = weights * ((away == 0) - (1 - keep) / count) / keep
    return wide, np.tile(weights, len(frame)), copies


def _variables(right: str, formula: str, called: Mapping[str, str], told: Protection) -> set[str]:
    """The columns that the right side names; `PlanError` where a protected number is in a function, before that is computed.

    called: what the placeholders of the right side stand for (`hidden`): formulaic reads names as Python does, which changes some.
    """
    from formulaic import Formula, SimpleFormula

    try:
        whole = Formula(right)
        if isinstance(whole, SimpleFormula):
            found = {
                restored(str(term), called, str): {
                    called[str(v)] for v in Formula([term]).required_variables if str(v) in called
                }
                for term in whole
            }
    except Exception as error:
        raise _unreadable(formula, error, called) from None
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


def _unreadable(formula: str, error: Exception, called: Mapping[str, str]) -> PlanError:
    why = restored(str(error), called, str)
    return PlanError(f"the formula {formula!r} cannot be read on this table: {why}; write 'y ~ x1 + x2'")


def _matrix(
    frame: pd.DataFrame, right: str, formula: str, called: Mapping[str, str]
) -> tuple[pd.DataFrame, dict[str, set[str]], tuple[tuple[str, str], ...]]:
    """The model matrix, the columns behind each of its own, and the base of each factor that has all levels but one."""
    from formulaic import model_matrix  # here, because its whole is slow to load

    held = pd.DataFrame({placeholder: frame[name] for placeholder, name in called.items()}, index=frame.index)
    try:
        made: Any = model_matrix(right, held, na_action="raise")
    except Exception as error:
        raise _unreadable(formula, error, called) from None
    spec = made.model_spec
    variables: dict[str, set[str]] = {}
    based: dict[str, str] = {}
    for part in spec.structure:
        factors = [one for scoped in part.scoped_terms for one in scoped.factors if one.reduced]
        for name in (called[str(one.factor)] for one in factors if str(one.factor) in called):
            based[name] = str(pd.Categorical(frame[name]).categories[0])
        known = {called[str(v)] for v in spec.term_variables.get(part.term, ()) if str(v) in called}
        for column in part.columns:
            variables[_called(str(column), called)] = known
    made.columns = [_called(str(column), called) for column in made.columns]
    return made, variables, tuple(based.items())


def _called(name: str, called: Mapping[str, str]) -> str:
    """A term by the names of its columns: as they are where they are factors, as a formula has them inside of a function."""
    if not called:
        return name
    alone = rf"(?:^|(?<=:))({'|'.join(called)})(?=$|[:\[])"
    return restored(re.sub(alone, lambda found: called[found[1]], name), called)


def _units(name: str, variables: set[str], values: Array, told: Protection) -> tuple[float, float, float]:
    """(noise sd, middle, width) of one term."""
    _check_plain(name, variables, told)
    if name not in told.columns:
        spread = float(values.std())
        return 0.0, (float(values.mean()) if spread else 0.0), spread or 1.0
    one = told.columns[name]
    return one.sd, (one.low + one.high) / 2, one.high - one.low
