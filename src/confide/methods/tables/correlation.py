"""The correlation of two bounded columns, by Fisher's z with the variance that the released joint moments give.

Guarantee: mu-GDP, add-remove or substitute. A record gives f(u) x f(v), f(u) = (a0, a1 phi(u)), 25 numbers of length at most 1 in all
(`free_moments.PairRows`): sensitivity 1 at a0^2 = .45 under add-remove, sqrt(2) at a0^2 = 1/2 under substitute; rounded Gaussian noise.

Interval: z = atanh r +- the normal quantile times sd/(1 - r^2), sd^2 the larger of (1 - r^2)^2 and the influence variance of r from the
released fourth moments, over N, and the noise of r by the delta method. It covers the correlation of the columns moved into their bounds.
Source: Fisher 1915; the influence variance as in Devlin, Gnanadesikan, Kettenring 1975; the release is derived in confide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import atanh, inf, nan, sqrt
from typing import Any, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.aggregates.cells.cell_sums import CellTotals
from confide.aggregates.cells.crossing import Crossing
from confide.aggregates.cells.free_moments import Measure, PairRows, practice_places
from confide.aggregates.column_codes import columns_of
from confide.aggregates.lines.corners import ends
from confide.aggregates.moments.pair_sums import PairSums
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.cells.layout import summands
from confide.protocol import Method, Plan, Question, Release, Statistic
from confide.results.hypothesis import HypothesisTests
from confide.results.pages.spreads import hidden_words, spread_words
from confide.schema import Practice, Schema
from confide.schema.formulas.names import sides

__all__ = ["Correlation"]


_MORE = "a larger budget or more records"


@dataclass(frozen=True)
class Correlation(Method):
    """Pearson's correlation. formula: "x + y", two numeric columns or derived terms; term_bounds: public bounds of derived terms. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 10), "y": cf.Numeric(0, 10)})
    >>> release = cf.release(Correlation("x + y"), cf.read(schema.sample(2_000, seed=1), schema), cf.GDP(1.0), ledger=None)
    >>> list(cf.infer(release).to_frame().columns)
    ['estimate', 'low', 'high', 'statistic', 'df', 'p']
    """

    formula: str
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "correlation"
    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("1",)
    family: ClassVar[str] = "tests"
    source: ClassVar[str] = "Fisher 1915 on joint moments in one Gaussian release (Dong, Roth, Su 2022)"
    intervals: ClassVar[str] = (
        "correlation of the population's columns moved into their bounds; sampling and privacy noise"
    )

    def about(self, schema: Any) -> tuple[Measure, Measure]:
        whole = Schema.of(schema)
        parts = summands(self.formula) if isinstance(self.formula, str) else []
        if len(parts) != 2 or len(sides(self.formula)) > 1:
            raise PlanError(f"a correlation is of two columns, got {self.formula!r}; write 'x + y'")
        first, second = (Measure.of(part, whole, formula=self.formula, term_bounds=self.term_bounds) for part in parts)
        if first.name == second.name:
            raise PlanError(f"the correlation of {first.name!r} with itself is 1; write two columns, 'x + y'")
        return first, second

    def _rows(self, about: tuple[Measure, Measure], relation: str) -> PairRows:
        return PairRows(Crossing((), about[0].design.schema), (), about, even=relation == "substitute")

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        return {"moments": (CellTotals(self._rows(about, relation)), Fraction(1))}

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Joint moments; a note says from how many records on, and from which spreads on, there is an answer."""
        made = super().plan(schema, privacy, n=n, public=public)
        about, sd = self.about(schema), made.spend("moments").noise_sd
        assert sd is not None
        own = self._sums(self._rows(about, made.relation), np.zeros(25), sd**2)
        return replace(made, notes=(*made.notes, spread_words(about, schema, own.clear_from, n)))

    @staticmethod
    def _sums(rows: PairRows, sums: Array, variance: float) -> PairSums:
        """Noisy numbers in units of one record."""
        a0, a1 = rows.shares
        units = rows.steps * np.outer([a0, *[a1] * 4], [a0, *[a1] * 4])
        return PairSums(sums.reshape(5, 5) / units, variance / units**2)

    def facts(self, about: Any) -> Mapping[str, Any]:
        return {"target": f"correlation of {about[0].name} and {about[1].name}", "covers": self.intervals}

    def table(self, release: Release, about: Any, question: Question) -> HypothesisTests:
        rows, noisy = self._rows(about, release.plan.relation), release["moments"]
        own = self._sums(rows, noisy.decode(), noisy.variance)
        name = f"r({about[0].name}, {about[1].name})"
        common: dict[str, Any] = {"response": self.formula, "names": (name,), "statistic": "z", "null": "normal"}
        reason = _unclear(own, about)
        if reason:
            return HypothesisTests.of(
                release,
                status="weak",
                reason=reason,
                statistics=[nan],
                df=[nan],
                pvalues=[nan],
                estimates=np.array([nan]),
                limits=lambda alpha: (np.array([-1.0]), np.array([1.0])),
                **common,
            )
        r, sampling, noise = own.correlation()
        error = sqrt(sampling + noise) / (1 - r * r)
        centre = atanh(r)

        def limits(alpha: float) -> tuple[Array, Array]:
            half = float(-special.ndtri(alpha / 2)) * error
            return np.tanh([centre - half]), np.tanh([centre + half])

        z = centre / error if error < inf else 0.0
        return HypothesisTests.of(
            release,
            statistics=[z],
            df=[nan],
            pvalues=[2 * float(special.ndtr(-abs(z)))],
            estimates=np.array([r]),
            limits=limits,
            **common,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The correlation of practice records."""
        practice = Practice.checked(frame)
        about = self.about(practice.schema)
        r = float(np.atleast_2d(np.corrcoef(practice_places(about, practice).T))[0, 1])
        return {f"r({about[0].name}, {about[1].name})": r}

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Corners of the bounds: opposite ones, and neighbours."""
        if schema is None:
            return ()
        names = columns_of(*self.about(schema))
        low, high = ends(schema, names)
        return (low, high), (low, {**low, names[-1]: high[names[-1]]})


def _unclear(own: PairSums, about: tuple[Measure, Measure]) -> str:
    """Why there is no interval, "" where there is one."""
    if not own.counted:
        return f"the records do not stand above their noise; ask for {_MORE}"
    hidden = [measure for measure, clear in zip(about, own.spread, strict=True) if not clear]
    return f"{hidden_words(hidden)}, or ask for {_MORE}" if hidden else ""
