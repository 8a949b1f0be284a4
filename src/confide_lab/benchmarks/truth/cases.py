"""The populations of the truth table: outside tables, and designs on which a promise was once broken, made here from fixed seeds.

A population is finite: samples are drawn from it with replacement, so that its own least-squares line (shares, quantiles, curve) is the
truth to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from confide.schema import Categorical, CodedFrame, Integer, Numeric, Schema
from confide_lab.benchmarks import outside_tables
from confide_lab.benchmarks.truth import (
    described as truth_described,
    domains as truth_domains,
    records as truth_records,
)
from confide_lab.benchmarks.truth.adversary import ADVERSARY
from confide_lab.benchmarks.truth.described import DESCRIBED
from confide_lab.benchmarks.truth.design import SIZE, Design
from confide_lab.benchmarks.truth.domains import DOMAINS
from confide_lab.benchmarks.truth.models import MODELS
from confide_lab.benchmarks.truth.records import RECORDS

__all__ = ["DESIGNS", "Population", "formula_of", "missing", "population", "title_of"]


def _rare_outcome(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    return {"x": x, "y": (g.uniform(size=SIZE) < 0.01 + 0.02 * x).astype(int)}


def _zeros(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    some = g.uniform(size=SIZE) < 0.02 + 0.04 * x
    return {"x": x, "y": np.where(some, g.gamma(2.0, 4.0, SIZE), 0.0)}


_DEGREES = ("school", "some college", "bachelor", "graduate")


def _incomes(g: np.random.Generator) -> dict[str, Any]:
    age = g.uniform(18, 70, SIZE)
    edu = g.choice(4, SIZE, p=(0.45, 0.3, 0.17, 0.08))
    scale = np.array([28e3, 36e3, 55e3, 80e3])[edu] * (0.6 + 0.01 * (age - 18))
    income = scale * np.exp(0.8 * g.standard_normal(SIZE) - 0.32)
    return {"age": age, "edu": np.array(_DEGREES, dtype=object)[edu], "income": income}


def _long_feature(g: np.random.Generator) -> dict[str, Any]:
    x = g.lognormal(0.0, 1.0, SIZE)
    return {"x": x, "y": 2 * np.sqrt(x) + g.standard_normal(SIZE)}


def _bent(g: np.random.Generator) -> dict[str, Any]:
    x = g.exponential(1.0, SIZE)
    return {"x": x, "y": 3 * np.log1p(x) + g.standard_normal(SIZE)}


def _bent_far(g: np.random.Generator) -> dict[str, Any]:
    x = g.lognormal(0.0, 1.5, SIZE)
    return {"x": x, "y": 3 * np.log1p(x) + g.standard_normal(SIZE)}


def _far_records(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(-1, 1, SIZE)
    far = g.uniform(size=SIZE) < 0.005
    return {"x": x, "y": x + np.where(far, 30.0, g.standard_normal(SIZE))}


def _plain(g: np.random.Generator) -> dict[str, Any]:
    a, b = g.uniform(-1, 1, (2, SIZE))
    return {"a": a, "b": b, "y": a - b / 2 + g.standard_normal(SIZE)}


_INCOMES = {"age": Numeric(15, 100), "edu": Categorical(_DEGREES), "income": Numeric(0, 1e6)}

DESIGNS: Mapping[str, Design] = {
    "rare-outcome": Design(
        "two-valued y, 2 %", "y ~ x", {"x": Numeric(0, 1), "y": Integer(0, 1)}, 4_000, _rare_outcome
    ),
    "zeros": Design("96 % zeros", "y ~ x", {"x": Numeric(0, 1), "y": Numeric(0, 100)}, 4_000, _zeros),
    "incomes": Design("incomes, bounds 0..1e6", "income ~ age + edu", _INCOMES, 10_000, _incomes),
    "long-feature": Design(
        "a long-tailed feature", "y ~ x", {"x": Numeric(0, 100), "y": Numeric(-10, 40)}, 10_000, _long_feature
    ),
    "bent": Design("3 log(1 + x), x exponential", "y ~ x", {"x": Numeric(0, 20), "y": Numeric(-10, 20)}, 4_000, _bent),
    "bent-far": Design(
        "3 log(1 + x), x lognormal(0, 1.5)", "y ~ x", {"x": Numeric(0, 500), "y": Numeric(-10, 30)}, 10_000, _bent_far
    ),
    "far-records": Design(
        ".5 % of records at +30 sd", "y ~ x", {"x": Numeric(-1, 1), "y": Numeric(-40, 40)}, 4_000, _far_records
    ),
    "group-means": Design("means by group", "income ~ 0 + edu", _INCOMES, 1_600, _incomes),
    "plain": Design(
        "a line with normal errors",
        "y ~ a + b",
        {"a": Numeric(-1, 1), "b": Numeric(-1, 1), "y": Numeric(-6, 6)},
        2_000,
        _plain,
    ),
    **ADVERSARY,
}


@dataclass(frozen=True, eq=False)
class Population:
    """All records of a case as Arrow columns, the same as the schema reads them, and the formula of its line."""

    records: pa.Table
    practice: CodedFrame
    schema: Schema
    formula: str

    def __len__(self) -> int:
        return int(self.records.num_rows)

    def sample(self, rows: Any) -> tuple[pa.Table, CodedFrame]:
        """Some of the records, for a release and for the answer without privacy."""
        codes = {name: own[rows] for name, own in self.practice.codes.items()}
        return self.records.take(pa.array(rows)), CodedFrame(self.schema, codes)


def missing(case: str) -> str | None:
    """Why a case cannot be had here, None when it can."""
    if case in RECORDS:
        return truth_records.missing(case)
    if case in DESCRIBED:
        return truth_described.missing(case)
    if case in DOMAINS:
        return truth_domains.missing(case)
    return None if case in DESIGNS or case in MODELS else outside_tables.missing(case)


def title_of(case: str) -> str:
    """What a case is called in the table."""
    if case in MODELS:
        return MODELS[case][0]
    return DESIGNS[case].title if case in DESIGNS else case


def formula_of(case: str) -> str:
    """The formula of a case's line, or of its model."""
    if case in MODELS:
        return str(vars(MODELS[case][1])["formula"])
    if case in RECORDS:
        return RECORDS[case][1]
    if case in DESCRIBED:
        return DESCRIBED[case].formula
    return DESIGNS[case].formula if case in DESIGNS else outside_tables.table_of(case).formula


@cache
def population(case: str) -> Population:
    """The records of a case; the same in every process."""
    if case in DESIGNS or case in MODELS:
        made = DESIGNS[case].made if case in DESIGNS else MODELS[case][3]
        # the seed is the name, so that a design that is added changes no other
        frame = pd.DataFrame(made(np.random.default_rng(list(case.encode()))))
        schema = DESIGNS[case].schema if case in DESIGNS else Schema(dict(MODELS[case][2]))
        for name, column in schema.columns.items():
            if isinstance(column, Categorical):
                frame[name] = pd.Categorical(frame[name], categories=list(column.levels))
    elif case in RECORDS:
        frame, schema = truth_records.frame_of(case)
    elif case in DESCRIBED:
        frame, schema = truth_described.frame_of(case), truth_described.schema_of(case)
    else:
        frame, schema = outside_tables.frame_of(case), outside_tables.table_of(case).schema
    records = pa.Table.from_pandas(frame, preserve_index=False)
    return Population(records, CodedFrame.of(frame, schema), schema, formula_of(case))
