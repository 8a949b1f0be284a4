"""Linear combinations of estimates, each with its standard error, interval and test; and their joint test and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide.errors import PlanError
from confide.results.inference import simulated_null, wald
from confide.results.inference.simulated_null import JointLaw

if TYPE_CHECKING:
    import pandas as pd

    from confide.results.estimates import Estimates
else:
    pd = later("pandas")


Vector = NDArray[np.float64]

_NAMED = 3  # names that a prompt shows


@dataclass(frozen=True, eq=False, repr=False)
class Combinations:
    """Named linear combinations of estimates, with tests and intervals.

    Attributes are named as in `ContrastResults` of statsmodels. Errors are NaN if
    the estimates have none.

    Parameters
    ----------
    names : tuple of str
        Names of the combinations.
    effect : array of float
        Value of each combination, in its units.
    covariance : array of float
        Covariance of the effects.
    df : float or array of float
        Degrees of freedom of Student's t; inf for the normal distribution.
    null : array of float
        Values under the null hypotheses.
    joint : JointLaw, optional
        Distribution of tests of several effects at once.
    bias : array of float, optional
        Bounds on the bias of the effects.
    moves : array of float, optional
        Matrix M. The biases are M x, each element of x between -1 and 1.

    Examples
    --------
    >>> gap = Combinations(("a - b",), np.array([2.0]), np.array([[1.0]]),
    ...                    float("inf"), np.array([0.0]))
    >>> gap.pvalue.round(4).tolist()
    [0.0455]
    """

    names: tuple[str, ...]
    effect: Vector
    covariance: Vector
    df: float | Vector
    null: Vector
    joint: JointLaw | None = None
    bias: Vector | None = None
    moves: Vector | None = None

    @property
    def sd(self) -> Vector:
        """Standard errors (q,): sampling and privacy noise."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def tvalue(self) -> Vector:
        """(effect - null) over standard error (q,), moved toward zero by the bound on the bias."""
        away = self.effect - self.null
        if self.bias is not None:
            away = np.sign(away) * np.maximum(np.abs(away) - self.bias, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(away / self.sd)

    @property
    def pvalue(self) -> Vector:
        """Two-sided p-values (q,) of effect = null, each separately."""
        return simulated_null.two_sided(self.tvalue, self.df)

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha for each effect separately: columns 0 (low) and 1 (high)."""
        from confide.results.pages.content import check_alpha  # here, because estimates import this page

        width = simulated_null.quantile(check_alpha(alpha) / 2, self.df) * self.sd + (
            0.0 if self.bias is None else self.bias
        )
        return pd.DataFrame({0: self.effect - width, 1: self.effect + width}, index=list(self.names))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """estimate, std_err, statistic, p_value, ci_low, ci_high; one row for each combination."""
        limits = self.conf_int(alpha)
        return pd.DataFrame(
            {
                "estimate": self.effect,
                "std_err": self.sd,
                "statistic": self.tvalue,
                "p_value": self.pvalue,
                "ci_low": limits[0],
                "ci_high": limits[1],
            },
            index=list(self.names),
        )

    def joint_test(self) -> wald.WaldTest:
        """F test of all effects = null together."""
        return wald.wald_test(
            np.eye(len(self.names)), self.null, self.effect, self.covariance, self.df, self.joint, self.moves
        )

    def pairs(self) -> Combinations:
        """All differences "one - other" of the combinations, for example of adjusted means; not adjusted for their number."""
        if len(self.names) < 2:
            raise PlanError("differences need at least two combinations", "name more levels or values")
        first, second = np.triu_indices(len(self.names), 1)
        rows = np.zeros((len(first), len(self.names)))
        rows[np.arange(len(first)), first] = 1.0
        rows[np.arange(len(first)), second] -= 1.0
        names = tuple(f"{self.names[i]} - {self.names[j]}" for i, j in zip(first, second, strict=True))
        return _combined(names, rows, self, np.zeros(len(rows)))

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:_NAMED]) + (", ..." if len(self.names) > _NAMED else "")
        return f"<Combinations of estimates: {len(self.names)} ({shown}); print() shows the table>"

    def __str__(self) -> str:
        return str(self.summary_frame().to_string(float_format=lambda v: f"{v:.4g}"))


def combine(
    result: Estimates, matrix: ArrayLike, *, names: tuple[str, ...], null: ArrayLike | None = None
) -> Combinations:
    """Combinations of a table's estimates: rows of `matrix` (q, p), compared with `null` (q,), zero when left out."""
    rows = np.asarray(matrix, dtype=np.float64)
    value = np.zeros(len(rows)) if null is None else np.asarray(null, dtype=np.float64)
    return _combined(names, rows, result, value)


def _combined(names: tuple[str, ...], rows: Vector, of: Estimates | Combinations, null: Vector) -> Combinations:
    effect = of.effect if isinstance(of, Combinations) else np.asarray(of.params, dtype=np.float64)
    made, moves = simulated_null.weighted(rows, effect), _moves(of)
    return Combinations(
        names,
        made,
        simulated_null.spread(rows, of.covariance),
        simulated_null.fewest(rows, of.df),
        null,
        None if of.joint is None else of.joint.of(rows),
        None if moves is None else np.where(np.isnan(made), np.nan, np.abs(rows @ moves).sum(axis=1)),
        None if moves is None else rows @ moves,
    )


def _moves(of: Estimates | Combinations) -> Vector | None:
    """What bounds on biases can do, taken together; nothing for what is not answered."""
    if isinstance(of, Combinations):
        return of.moves
    return None if of.bias is None else np.diag(np.nan_to_num(of.bias))


def labels(r_matrix: Any, count: int) -> tuple[str, ...]:
    """What each restriction is called: its text where it was written as text, else its number."""
    parts: list[str] = []
    if isinstance(r_matrix, str):
        parts = [part.strip() for part in r_matrix.split(",")]
    elif isinstance(r_matrix, (list, tuple)) and all(isinstance(part, str) for part in r_matrix):
        parts = [str(part).strip() for part in r_matrix]
    if len(parts) != count or len(set(parts)) < count:
        return tuple(f"c{k}" for k in range(count))
    return tuple(parts)
