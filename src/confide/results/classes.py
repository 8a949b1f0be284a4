"""Classes: means and shares with intervals, and the classifier that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._arrays import Array
from confide._helpers import clean, later
from confide.errors import NoResult, PlanError
from confide.results.estimates import Estimates
from confide.results.inference.wald import WaldTest, restrictions
from confide.results.pages.content import LITERAL, folded, level_words
from confide.schema import ModelMatrix
from confide.schema.formulas.design import has_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from scipy import special
else:
    pd, special = later("pandas"), later("scipy.special")


# Told apart by shape as well as by colour, in print and by colour-blind readers.


def class_names(classes: Sequence[str], features: Sequence[str]) -> tuple[str, ...]:
    """Names of the estimates: shares first, then feature by feature the means of the classes.

    >>> class_names(("a", "b"), ("x",))
    ('P(a)', 'P(b)', 'x | a', 'x | b')
    """
    return (*(f"P({label})" for label in classes), *(f"{name} | {label}" for name in features for label in classes))


@dataclass(frozen=True)
class ClassTable:
    """Probabilities of 0/1 terms that exclude each other: `terms`, positions; `logs`, shape (classes, terms + 1), none of them last."""

    terms: tuple[int, ...]
    logs: Array


@dataclass(frozen=True, eq=False, repr=False)
class ClassModel(Estimates):
    """Shares and means of classes, in the units of the data, with predictions.

    The score of a class is log share - sum (x_j - mean_j)^2 / (2 variance_j).

    Parameters
    ----------
    classes : tuple of str, default ()
        Labels. Ties go to the first.
    label : str, default ""
        Column of the classes.
    design : ModelMatrix, optional
        Terms of the features.
    shares : array of float, (K,), optional
        Shares of the classes: positive, and they sum to 1.
    centres : array of float, (K, p), optional
        Means by class and term, clipped to the bounds.
    spreads : array of float, (K, p), optional
        Variances by class and term.
    reach : float, default nan
        Radius of the ball, in half-ranges from the middle of the bounds, to which
        records are clipped before they are compared, as those of the release were.
    tables : tuple of ClassTable, default ()
        0/1 terms that count by their probabilities.

    Notes
    -----
    Numbers are NaN where the release declined. The sampling covariance between two
    means of one class is not released: `cov_params` has NaN there, and a test that
    needs it raises an error.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 4)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.classification.ClassMeans("kind ~ x")
    >>> found = cf.infer(cf.release(method, data, cf.GDP(2.0), ledger=None))
    >>> found.classes, found.predict({"x": [1.0, 3.0]}).shape
    (('a', 'b'), (2,))
    """

    classes: tuple[str, ...] = ()
    label: str = ""
    design: ModelMatrix | None = None
    shares: Array | None = None
    centres: Array | None = None
    spreads: Array | None = None
    reach: float = nan
    tables: tuple[ClassTable, ...] = ()

    family: ClassVar[str] = "classes"

    # predictions ------------------------------------------------------------------------------------------------------

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """Probabilities of the classes, one column for each, at the rows of public data: a frame, a mapping of arrays, or an array
        whose columns are the features' columns in the order of the formula. NaN where a feature is missing.

        Raises `NoResult` when the release declined.
        """
        scores = self._scores(data)
        with np.errstate(invalid="ignore"):
            logs = scores - special.logsumexp(scores, axis=1, keepdims=True)
        return pd.DataFrame(np.exp(logs), columns=list(self.classes))

    def predict(self, data: Any) -> pd.Series[Any]:
        """The most probable class at each row, the first of several; None where a feature is missing. Data as `predict_proba`."""
        scores = self._scores(data)
        known = np.asarray(np.isfinite(scores).all(axis=1))
        best = np.argmax(np.where(known[:, None], scores, 0.0), axis=1)
        labels = np.array([*self.classes, None], dtype=object)[np.where(known, best, len(self.classes))]
        return pd.Series(labels, name=self.label, dtype=object)

    def _scores(self, data: Any) -> Array:
        if self.design is None or self.shares is None or self.centres is None or self.spreads is None:
            raise NoResult("the release declined, so there is nothing to predict from", "ask for a new release")
        x = self._moved(self.design, self.design.matrix(self._frame(self.design, data)))
        scores = np.log(self.shares)[None, :].repeat(len(x), axis=0)
        tabled = {place for table in self.tables for place in table.terms}
        with np.errstate(over="ignore"):
            for j in range(x.shape[1]):
                if j not in tabled:
                    gap = x[:, j, None] - self.centres[None, :, j]
                    scores -= gap * gap / (2 * self.spreads[:, j]) + np.log(self.spreads[:, j]) / 2
            for table in self.tables:
                own = x[:, table.terms]
                which = np.where(own.max(axis=1) > 0.5, own.argmax(axis=1), len(table.terms))
                scores += table.logs.T[which]
                scores[np.isnan(own).any(axis=1)] = nan
        return np.asarray(scores)

    @staticmethod
    def _frame(design: ModelMatrix, data: Any) -> Any:
        """An array as columns by name: numbers in the order of the formula's columns."""
        if has_columns(data):
            return data
        names = tuple(dict.fromkeys(column for term in design.terms for column in term.columns))
        rows = np.asarray(data)
        if rows.ndim != 2 or rows.shape[1] != len(names):
            raise PlanError(
                f"an array of records must have one column for each of {', '.join(names)}, got the shape {rows.shape}; or give a frame"
            )
        return {name: rows[:, j] for j, name in enumerate(names)}

    def _moved(self, design: ModelMatrix, matrix: Array) -> Array:
        """Terms of records, without the intercept, moved as the released ones were."""
        x = matrix[:, int(design.intercept) :]
        low = np.array([float(term.low) for term in design.terms])
        high = np.array([float(term.high) for term in design.terms])
        middle, half = low + (high - low) / 2, (high - low) / 2
        u = (np.clip(x, low, high) - middle) / half
        binary = [j for table in self.tables for j in table.terms]
        u[:, binary] = 0.0
        with np.errstate(divide="ignore"):
            u *= np.minimum(1.0, self.reach / np.linalg.norm(u, axis=1))[:, None]
        moved = middle + half * u
        moved[:, binary] = x[:, binary]
        return np.asarray(moved)

    # tables -----------------------------------------------------------------------------------------------------------

    @property
    def proportions(self) -> pd.Series[float]:
        """The shares of the classes, positive and adding up to 1, as predictions use them."""
        return pd.Series(
            np.full(len(self.classes), nan) if self.shares is None else self.shares, index=list(self.classes)
        )

    @property
    def means(self) -> pd.DataFrame:
        """Class means in the units of the data, clipped to the bounds: one row for each class, one column for each feature."""
        names = [] if self.design is None else [term.name for term in self.design.terms]
        return pd.DataFrame(self.centres, index=list(self.classes), columns=names)

    def cov_params(self) -> pd.DataFrame:
        """The covariance of the estimates; NaN between two means of one class, where it is not known."""
        frame = super().cov_params()
        return frame.mask(self._unknown)

    @property
    def _unknown(self) -> NDArray[np.bool_]:
        k = len(self.classes)
        place = np.arange(len(self.names))
        own = np.where(place < k, -1, place % k) if k else np.full(len(place), -1)
        same = (own[:, None] == own[None, :]) & (own[:, None] >= 0)
        return np.asarray(same & ~np.eye(len(place), dtype=bool))

    def wald_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> WaldTest:
        """`Estimates.wald_test`; `PlanError` for restrictions on several means of one class, whose covariance is not released."""
        matrix, _ = restrictions(self.names, r_matrix, r_value)
        used = np.asarray(np.asarray(matrix != 0).any(axis=0))
        if (self._unknown & used[:, None] & used[None, :]).any():
            raise PlanError(
                "the sampling covariance between means of one class is not released, so that they cannot be tested together; test one "
                f"feature at a time, such as {self.names[-1]!r} against another class"
            )
        return super().wald_test(r_matrix, r_value)

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the classifier; what is not known of the covariance is NaN."""
        return {
            **super().more(alpha),
            "covariance": np.where(self._unknown, nan, self.covariance),
            "label": self.label,
            "classes": self.classes,
            "features": [] if self.design is None else [term.name for term in self.design.terms],
            "shares": self.shares,
            "centres": self.centres,
            "variances": self.spreads,
            "tables": [{"terms": table.terms, "logs": table.logs} for table in self.tables],
        }

    # what is shown ----------------------------------------------------------------------------------------------------

    @property
    def _own_picture(self) -> bool:
        return self.design is not None and bool(np.isfinite(self.estimates).all())

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Shares and means of classes of {self.label or self.response}"

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        ends = f"Whiskers: {level_words(alpha)} confidence intervals. " if self.has_intervals else ""
        return f"Points: class means of each feature. {ends}The share of each class, as predictions use it, is beside its name."

    @property
    def picture_size(self) -> tuple[float, float]:
        """Width and height of the picture, in inches."""
        rows = 0 if self.design is None else len(self.design.terms)
        return 6.4, min(1.9 + rows * (0.3 + 0.16 * len(self.classes)), 200.0)

    def draw(self, ax: Axes, alpha: float) -> None:
        """Class means with their intervals, each feature on its public range."""
        _draw(self, ax, alpha)


def _draw(result: ClassModel, ax: Axes, alpha: float) -> None:
    """One row for each feature, its public range from left to right, one mark with an interval for each class."""
    from confide.results.pages.plots import LINE_COLORS, MARKS, whiskers

    assert result.design is not None
    terms, k = result.design.terms, len(result.classes)
    low = np.array([float(term.low) for term in terms])
    width = np.array([float(term.high) for term in terms]) - low
    means = (result.estimates[k:].reshape(len(terms), k) - low[:, None]) / width[:, None]
    limits = result.conf_int(alpha).to_numpy()[k:].reshape(len(terms), k, 2) if result.has_intervals else None
    rows = np.arange(len(terms))[::-1].astype(float)
    for c, label in enumerate(result.classes):
        places = rows + 0.6 * ((k - 1) / 2 - c) / max(k, 2)
        color, mark = LINE_COLORS[c % len(LINE_COLORS)], MARKS[c % len(MARKS)]
        if limits is not None:
            ends = (limits[:, c] - low[:, None]) / width[:, None]
            whiskers(ax, places, means[:, c], ends[:, 0], ends[:, 1], flat=True)
        name = clean(f"{label}: {result.proportions.iloc[c]:.1%}")
        ax.scatter(
            means[:, c],
            places,
            s=30,
            marker=mark,
            color=color,
            label=name,
            zorder=6,
            edgecolors="#ffffff",
            linewidths=0.6,
        )
    for between in rows[1:] + 0.5:
        ax.axhline(between, color="#dddddd", linewidth=1, zorder=1)
    names = [f"{folded(term.name, 24)}\n{_number(term.low)} to {_number(term.high)}" for term in terms]
    ax.set_yticks(rows, names, **LITERAL)
    ax.set_ylim(-0.6, len(terms) - 0.4)
    ax.set_xlim(min(-0.02, *means.ravel()), max(1.02, *means.ravel()))
    status = "" if result.status == "valid" else f" (status {result.status})"
    ax.set_xlabel(f"class mean, from the lower to the upper bound of each feature{status}")


def _number(value: float) -> str:
    return f"{float(value):.4g}"
