"""Two-valued outcomes of the real sets of CONFIDE_DATA, on which forecasts of logistic regression are built and measured; and counts.

Five sets have one of their own. Of the others the outcome is whether the response lies above a number that is kept here: near the middle
of its records, or above three quarters or nine tenths of them, by turns. Bounds are the public ones of the set's manifest, or of
`confide_lab.benchmarks.log_odds`. None of these tables judges anything: those of `confide_lab.benchmarks.outside_outcomes` do. Counts and
probits are those of the table of truth (`confide_lab.benchmarks.truth.models`), made and real; and the real sets whose response is a whole
number from 0 to at most 3,000, as counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from confide.core import Method
from confide.regression import Poisson
from confide.schema import Categorical, Integer, Schema
from confide.schema.formulas.names import quoted
from confide_lab.benchmarks import log_odds
from confide_lab.benchmarks.truth.cases import missing, population
from confide_lab.benchmarks.truth.models import MODELS, OUTSIDE
from confide_lab.datasets import SETS, Table, available, table as table_of

__all__ = ["COUNTED", "OutcomeSet", "count_sets", "family_sets", "outcome_sets"]

#: What share of the records lies above, by turns; and how many features a formula has at most.
_ABOVE, _MOST = (0.5, 0.25, 0.1), 8
#: Sets of their own in `log_odds`, or with too many columns.
_LEFT = ("D9",)
#: Declared bounds of responses that may be read as counts.
COUNTED = 3_000


@dataclass(frozen=True)
class OutcomeSet:
    """One table. method: what is asked, logistic regression when left out."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    formula: str
    method: Method | None = None


def outcome_sets() -> Iterator[OutcomeSet]:
    """The tables that can be had here, and the synthetic designs of `confide_lab.benchmarks.log_odds`."""
    for name, design in log_odds.DESIGNS.items():
        needed = log_odds.NEEDS.get(name)
        if needed is None or log_odds.table(needed) is not None:
            frame = design.made(np.random.default_rng(7))[list(design.columns)].reset_index(drop=True)
            yield OutcomeSet(name, frame, Schema(dict(design.columns)), design.formula)
    for j, name in enumerate(one for one in SETS if one not in _LEFT):
        if available(name) is None:
            yield _above(name, _ABOVE[j % len(_ABOVE)])


def family_sets() -> Iterator[OutcomeSet]:
    """Counts and probits: made populations, and real tables of counts with their public bounds."""
    asked = {case: own for case, (_, own, _, _) in MODELS.items()} | {case: own for (case, _), own in OUTSIDE.items()}
    for case, method in asked.items():
        if missing(case) is None:
            own = population(case)
            yield OutcomeSet(case, own.records.to_pandas(), own.schema, own.formula, method)


def count_sets() -> Iterator[OutcomeSet]:
    """Poisson regressions of the real sets' whole responses from 0 on."""
    for name in SETS:
        if name not in _LEFT and available(name) is None:
            found = table_of(name)
            own = found.schema[found.target]
            if isinstance(own, Integer) and own.low == 0 and own.high <= COUNTED:
                kept = _kept(found)
                formula = f"{quoted(found.target)} ~ " + " + ".join(map(quoted, kept))
                columns = [*kept, found.target]
                schema = Schema({column: found.schema[column] for column in columns})
                yield OutcomeSet(name, found.frame[columns], schema, formula, Poisson(formula))


def _kept(found: Table) -> list[str]:
    """The first features, factors of many levels in the place of many."""
    kept, terms = list[str](), 0
    for column in found.schema.columns:
        own = found.schema[column]
        if column != found.target:
            terms += len(own.levels) - 1 if isinstance(own, Categorical) else 1
            if terms <= _MOST + 4 and len(kept) < _MOST:
                kept.append(column)
    return kept


def _above(name: str, share: float) -> OutcomeSet:
    found = table_of(name)
    values = found.frame[found.target].to_numpy(dtype=float)
    two = set(np.unique(values)) <= {0.0, 1.0} or len(np.unique(values)) == 2
    high = values > (values.min() if two else np.quantile(values, 1 - share))
    kept = _kept(found)
    columns = {column: found.schema[column] for column in kept} | {"outcome": Integer(0, 1)}
    frame = found.frame[kept].assign(outcome=high.astype(int))
    return OutcomeSet(name, frame, Schema(columns), "outcome ~ " + " + ".join(map(quoted, kept)))
