"""How many rows units have: a noisy histogram, and what each number of rows that counts would cost.

Guarantee: mu-GDP, add-remove (a unit lies in one cell: sensitivity 1) or substitute (two cells: sqrt 2), whatever `rows` the schema says.
Noise: rounded Gaussian (core 3.1). It serves to choose `rows` in `cf.Unit`, which is never done from the data by itself: whoever writes
another number into the schema says that it came from this release. Source: exact histogram; Dong, Roth, Su 2022, Theorem 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.protocol import Method, Question, Release, Statistic
from confide.protocol.spending.allowance import UNIT_SHARE
from confide.protocol.units import contributions as histogram
from confide.protocol.units.whose import WHOLE
from confide.results.base import BaseResult, Column
from confide.schema import Unit

__all__ = ["ContributionTable", "Contributions"]

#: Numbers of rows that the table compares.
_ROWS = (1, 2, 3, 5, 10, 20, 50)
# The histogram's own spend; the name "contributions" is that of the part that other plans pay for.
_NAME = "units"


@dataclass(frozen=True)
class Contributions(Method):
    """Units by the number of their rows. The schema must enforce a unit."""

    name: ClassVar[str] = "contributions"
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = "exact histogram; Dong, Roth, Su 2022, Theorem 2"

    def about(self, schema: Any) -> Any:
        if not isinstance(schema.unit, Unit):
            raise PlanError(
                f"contributions are counted by an enforced unit, the schema says unit={schema.unit!r}; write "
                'cf.Schema(..., unit=cf.Unit("person_id")) with the id column of the data'
            )
        if self.where is not None:
            raise PlanError(f"contributions are of all units, got where={self.where!r}; leave it out")
        return schema

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        # all of mu^2: what is set aside for counting units is for this
        return {_NAME: (_Own(), 1 / (1 - UNIT_SHARE))}

    def facts(self, about: Any) -> Mapping[str, Any]:
        return {
            "target": f"values of {about.unit.column} by the number of their rows",
            "covers": self.intervals,
            "constants": {WHOLE: about.unit.column},
        }

    def table(self, release: Release, about: Any, question: Question) -> ContributionTable:
        noisy = release[_NAME]
        sd = sqrt(float(noisy.scale)) * float(noisy.step)
        found = [histogram.Counted.of(noisy.decode(), sd, k) for k in _ROWS]
        return ContributionTable.of(
            release,
            response=f"rows of each {about.unit.column}",
            rows=_ROWS,
            kept=[1 - one.lost for one in found],
            kept_sd=[one.lost_sd for one in found],
            noise=[histogram.noise_ratio(noisy.decode(), sd, k) for k in _ROWS],
            histogram=noisy.decode(),
            facts=(("Units (noisy)", f"{found[0].units:,.0f} ± {1.96 * found[0].units_sd:,.0f}"),),
        )


class _Own(histogram.Contributions):
    """The same histogram as what a method itself releases: its draw asks for it."""

    by_unit = False


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ContributionTable(BaseResult):
    """What each `rows` in `cf.Unit` would keep and cost: the share of rows that count, and the noise of a mean beside that of rows=1.

    Rows of a cell are taken to be spread evenly over it, so that shares are right up to that. histogram: noisy numbers of units with 1, 2,
    3 to 4, 5 to 8, ... rows.
    """

    rows: tuple[int, ...]
    kept: Any
    kept_sd: Any
    noise: Any
    histogram: NDArray[np.float64]

    family: ClassVar[str] = "contributions"
    rows_called: ClassVar[str] = "numbers of rows"

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Private histogram of {self.response}"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """rows, kept, its noise, noise of a mean; one row for each k."""
        return (
            Column("name", tuple(f"rows={k}" for k in self.rows), "name"),
            Column("kept", self.kept, "share", head="rows kept"),
            Column("kept_sd", self.kept_sd, "share", head="its noise"),
            Column("noise", self.noise, "number", head="noise of a mean"),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What to do with it."""
        return (
            (
                "In words",
                "rows=1 counts each unit once; more rows keep more of the table and move towards the mean over rows, at more noise (beside "
                "that of rows=1). The choice is public: say in the schema's provenance that it came from this release",
            ),
        )
