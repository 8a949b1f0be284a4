"""The table of a shared release: contrasts, joint tests term by term, adjusted predictions; and several responses in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._lazy import later
from confide.aggregates.scores.metric import factor_name
from confide.errors import PlanError
from confide.methods.regression.adjusted import adjusted_rows
from confide.methods.regression.linear import LinearEstimates
from confide.results.inference import wald
from confide.results.inference.contrasts import Combinations, combine, labels

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["SharedEstimates"]


@dataclass(frozen=True, eq=False, repr=False)
class SharedEstimates(LinearEstimates):
    """Coefficients of one line, or of several responses' lines on the same features, with tests within and across.

    `tables`: response -> its own table, empty for a single response; `result["y2"]` is one of them. With several responses the names
    are "y1: age", R squared is in the tables, and predictions are asked of a table. `loose`: the sampling part of `covariance` within
    responses, where those across are not known; a test that ties m responses counts it m times.
    """

    tables: Mapping[str, SharedEstimates] = field(default_factory=dict)
    loose: NDArray[np.float64] | None = None

    def __getitem__(self, response: str) -> SharedEstimates:
        """The table of one response. Raises `PlanError` for a response that the release does not hold."""
        if response in self.tables:
            return self.tables[response]
        if not self.tables and response == self.response:
            return self
        raise PlanError(
            f"the release holds no response {response!r}; it holds: {', '.join(self.tables) or self.response}"
        )

    def wald_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """`Estimates.wald_test`; a test across responses whose products were not released uses an upper bound of its variance.

        A factor is no coefficient and has one for each level: `wald_test_terms()` tests them together.
        """
        matrix, value = self._restrictions(r_matrix, r_value)
        covariance = self.covariance if self.loose is None else self.covariance + self._spare(matrix) * self.loose
        return wald.test(matrix, value, self.estimates, covariance, self.df, self.joint, self.bias, self.status)

    def t_test(
        self,
        r_matrix: str | Sequence[str] | ArrayLike | Mapping[str, Mapping[str, float]],
        r_value: ArrayLike = 0,
    ) -> Combinations:
        """Each restriction by itself: effect, standard error, t, p and interval; several as rows of one table.

        r_matrix: as in `wald_test`, or named contrasts as {"young - old": {"age[T.young]": 1, "age[T.old]": -1}}. The effect is the left
        side less the right side of a restriction's names, compared with its constant. NaN outside status "ok".
        """
        if isinstance(r_matrix, Mapping):
            named = tuple(r_matrix)
            for weights in r_matrix.values():
                unknown = [name for name in weights if name not in self.names]
                if unknown:
                    raise PlanError(f"there is no coefficient {unknown[0]!r}; there are: {', '.join(self.names)}")
            matrix = np.array([[float(r_matrix[name].get(own, 0.0)) for own in self.names] for name in named])
            value = np.zeros(len(named))
            if not named:
                raise PlanError("name at least one contrast, as in t_test({'a - b': {'a': 1, 'b': -1}})")
        else:
            matrix, value = self._restrictions(r_matrix, r_value)
            named = labels(r_matrix, len(matrix))
        made = combine(self, matrix, names=named, null=value)
        if self.loose is None:
            return made
        return replace(made, covariance=matrix @ (self.covariance + self._spare(matrix) * self.loose) @ matrix.T)

    def wald_test_terms(self) -> pd.DataFrame:
        """A joint test of each term, that all its coefficients are zero: statistic, df_num, df_denom, pvalue; one row for each term.

        With an intercept a factor's coefficients are differences from its base level, and the test asks whether levels differ. Without
        one, as in "income ~ 0 + edu", the first factor has a coefficient for each level, which is the level's own mean where it stands
        alone: then the test asks whether all of them are zero, which says nothing of whether levels differ. Ask that of a formula with
        an intercept, or as `wald_test("edu[low] = edu[mid], edu[mid] = edu[high]")`.

        With several responses a term's coefficients are tested in all of them. The intercept is left out.
        """
        assert self.design is not None
        kinds = {term.name: factor_name(term) for term in self.design.terms}
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            own = name
            for response in self.tables:
                own = own.removeprefix(f"{response}: ")
            if own in kinds:
                groups.setdefault(kinds[own], []).append(place)
        tests = {kind: self.wald_test(np.eye(len(self.names))[places]) for kind, places in groups.items()}
        return pd.DataFrame(
            {
                "statistic": [test.statistic for test in tests.values()],
                "df_num": [test.df_num for test in tests.values()],
                "df_denom": [test.df_denom for test in tests.values()],
                "pvalue": [test.pvalue for test in tests.values()],
            },
            index=list(tests),
        )

    def adjusted_predictions(
        self, frame: Any = None, *, by: str | Sequence[str] | None = None, at: Mapping[str, Any] | None = None
    ) -> Combinations:
        """The line's mean over public rows, by groups or at chosen values, with standard errors and intervals.

        frame: rows to average over; None: the grid of the schema, numeric columns at the middle of their bounds and every combination of
        levels once, so that `adjusted_predictions(by="region")` are the marginal means of a factor. at: {"age": [20, 40]} sets a column in
        every row. `.pairs()` of the result are the differences. Intervals cover the line's mean, not a new response.
        Raises `PlanError` for columns that the terms do not use, and for several responses (ask a table: `result["y1"]`).
        """
        self._single("adjusted predictions")
        assert self.design is not None
        names, rows = adjusted_rows(self.design, frame, by, at)
        place = [self.design.names.index(name) for name in self.names]
        return combine(self, rows[:, place], names=names)

    def more(self, alpha: float) -> dict[str, Any]:
        """`LinearEstimates.more`, and under "tables" the table of each of several responses."""
        tables = {name: table.to_dict(alpha) for name, table in self.tables.items()}
        return {**super().more(alpha), **({"tables": tables} if tables else {})}

    def _restrictions(
        self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`wald.restrictions`, which names the call that works where a factor stands for its coefficients."""
        if self.design is not None and isinstance(r_matrix, (str, list, tuple)):
            given = (
                r_matrix.split(",") if isinstance(r_matrix, str) else [part for part in r_matrix if type(part) is str]
            )
            words = {part.split("=")[0].strip().strip("`") for part in given}
            terms = {term.name: factor_name(term) for term in self.design.terms}
            for factor in dict.fromkeys(terms.values()):
                if factor in words and factor not in self.names and factor not in terms:
                    own = [name for name, kind in terms.items() if kind == factor]
                    raise PlanError(
                        f"{factor!r} is a factor, which has a coefficient for each level: {', '.join(own)}; their joint test is "
                        f"wald_test_terms().loc[{factor!r}]"
                    )
        return wald.restrictions(self.names, r_matrix, r_value)

    def _rows(self, frame: Any) -> Any:
        self._single("predictions")
        return super()._rows(frame)

    def _single(self, what: str) -> None:
        if self.tables:
            one = next(iter(self.tables))
            raise PlanError(f"{what} belong to one response; ask its table: result[{one!r}]")

    def _touched(self, matrix: Any) -> list[str]:
        """The responses whose coefficients restrictions are about."""
        used = [name for name, column in zip(self.names, np.asarray(matrix).T, strict=True) if np.any(column != 0)]
        return [response for response in self.tables if any(name.startswith(f"{response}: ") for name in used)]

    def _spare(self, matrix: Any) -> int:
        """How many times more than once the sampling part counts in a test of these restrictions, one by one."""
        return max(max(len(self._touched(row[None, :])) for row in np.atleast_2d(matrix)), 1) - 1
