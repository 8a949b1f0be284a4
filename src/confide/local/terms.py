"""A formula over a protected table: its terms, their noise, and the units in which a fit is done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.local.corrected import Rows
from confide.local.losses import Loss
from confide.local.protection import Protection

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Model"]

Array = NDArray[np.float64]


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

        Raises `PlanError` for unknown columns, for functions and products of protected ones, and for a protected response of a loss that
        is not one of y - t.
        """
        left, right = _sides(formula)
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
        scaled = Rows((x - middle) / width, (y - middle_y) / width_y, lam / width, lam_y / width_y, told.zeta)
        to_units, shift = np.diag(width_y / width), np.zeros(len(names))
        if at is not None:
            to_units[at, :] -= width_y * middle / width
            shift[at] = middle_y
        return cls(names, scaled, to_units, shift, left, at, width_y)

    def in_units(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Coefficients and their covariance in the data's units."""
        moved = self.to_units @ covariance @ self.to_units.T
        return self.to_units @ theta + self.shift, (moved + moved.T) / 2


def _sides(formula: str) -> tuple[str, str]:
    left, tilde, right = formula.partition("~")
    if not tilde or not left.strip() or not right.strip():
        raise PlanError(f"a formula has a response and terms, got {formula!r}; write 'y ~ x1 + x2'")
    return left.strip(), right.strip()


def _response(frame: pd.DataFrame, told: Protection, name: str, loss: Loss) -> tuple[Array, float, float, float]:
    """(values, noise sd, middle, width): the last two 0 and 1 where the loss is not one of y - t."""
    noised = told.column(name)
    y = np.asarray(frame[name], dtype=np.float64)
    if noised is None:
        loss.checked(y)
        if not loss.location:
            return y, 0.0, 0.0, 1.0
        spread = float(y.std()) or 1.0
        return y, 0.0, float(y.mean()), spread
    if not loss.location:
        raise PlanError(
            f"the response {name!r} is protected, and loss={loss.name!r} needs its true values; publish it as it is when the table is "
            "protected, or write loss='squared', 'quantile' or 'huber'"
        )
    return y, noised.sd, (noised.low + noised.high) / 2, noised.high - noised.low


def _matrix(frame: pd.DataFrame, right: str, formula: str) -> tuple[pd.DataFrame, dict[str, set[str]]]:
    from formulaic import model_matrix  # here, because its whole is slow to load
    from formulaic.errors import FactorEvaluationError

    try:
        made: Any = model_matrix(right, frame, na_action="raise")
    except FactorEvaluationError as error:
        unknown = re.search(r"NameError: `?'?([^`' ]+)", str(error))
        if unknown is None:
            raise PlanError(
                f"the formula {formula!r} cannot be read on this table: {error}; write 'y ~ x1 + x2'"
            ) from None
        raise PlanError(
            f"the table has no column {unknown[1]!r}; it has: {', '.join(map(str, frame.columns))}"
        ) from None
    except Exception as error:
        raise PlanError(f"the formula {formula!r} cannot be read on this table: {error}; write 'y ~ x1 + x2'") from None
    spec = made.model_spec
    variables: dict[str, set[str]] = {}
    for part in spec.structure:
        known = {str(v) for v in spec.term_variables.get(part.term, ()) if str(v) in frame.columns}
        for column in part.columns:
            variables[str(column)] = known
    return made, variables


def _units(name: str, variables: set[str], values: Array, told: Protection) -> tuple[float, float, float]:
    """(noise sd, middle, width) of one term."""
    for column in sorted(variables & set(told.levels)):
        told.column(column)  # refuses it
    protected = sorted(variables & set(told.columns))
    if not protected:
        spread = float(values.std())
        return 0.0, (float(values.mean()) if spread else 0.0), spread or 1.0
    if name != protected[0]:
        raise PlanError(
            f"the term {name!r} is a function of the protected {', '.join(protected)}, whose noise this correction does not know; "
            f"write {protected[0]} as it stands, or protect the function itself as a column of its own"
        )
    one = told.columns[name]
    return one.sd, (one.low + one.high) / 2, one.high - one.low
