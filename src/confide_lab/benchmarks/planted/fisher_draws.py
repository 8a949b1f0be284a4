"""Faults of a draw of Fisher scoring: what stands between two rounds is read from records instead of from what left before.

Each fault draws and pays as planned, and goes on with the exact numbers of one statistic. Far data sets at one transcript show it: with
every noisy number equal, the branch, the coordinates, the lines and bounds must be equal, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import confide as cf
from confide.audit import Audit
from confide.core import Meter, Plan, Source
from confide.regression import Logistic
from confide_lab.benchmarks.planted.kinds import Fault, bounded
from confide_lab.benchmarks.planted.least_squares import Peeking, unlike

__all__ = ["FISHER_DRAWS"]

_SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
_ATTACK = "one transcript on data far apart"


@dataclass(frozen=True)
class _Peeked(Logistic):
    """Logistic regression that sees some statistics before their noise, or none."""

    exact: tuple[str, ...] = ()

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        peeking: Any = Peeking(meter, self.exact)
        return super().draw(source, plan, peeking)


def _peeked(name: str, what: str, *exact: str, rows: int) -> Fault:
    """rows: how many records; with three coefficients and mu = 1 there are two steps from 90, three from 300 on."""

    def audit(wrong: bool, runs: int, seed: int) -> Audit:
        method = _Peeked("y ~ a + b", exact=exact if wrong else ())
        problems = unlike(method, cf.GDP(1.0, relation="add-remove"), _SCHEMA, rows=rows, seed=seed)
        return Audit((bounded(name, 0.0, len(problems), _ATTACK),))

    return Fault(name, what, _ATTACK, audit, "logistic")


FISHER_DRAWS = [
    _peeked(
        "steps from the exact count", "how many steps there are follows from the number of records", "count", rows=85
    ),
    _peeked("coordinates of the exact moments", "whitened by sums before their noise", "linear", rows=400),
    _peeked("start of the exact moments", "in the branch of few records", "short linear", rows=40),
    _peeked(
        "a step at the exact score", "the second line follows from sums before their noise", "step 1 of 3", rows=400
    ),
    _peeked("bound of the exact histogram", "D is where the records end", "leverage", rows=400),
    _peeked("the last step at the exact score", "the meat's line and the levels held are exact", "last", rows=400),
    _peeked("one step at the exact score", "in the branch of few records", "short step", rows=40),
]
