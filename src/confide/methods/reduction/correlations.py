"""The correlation matrix of several bounded columns, with intervals, from one release.

Guarantee: mu-GDP, add-remove or substitute. A record gives (1, phi(u_1), ..., phi(u_p)), |phi| <= 1, and the release is the noisy Gram
matrix of that, in exact integers (`aggregates.moments.joint_moments`): sensitivity 1 + p in the Frobenius norm (sqrt(2) times that under
substitute), variance half as large off the diagonal; rounded Gaussian noise. Fourth moments, which intervals need, ride for free.

Interval: all r within the normal quantile times the standard error that they would have, (1 - r^2)^2 k/N and the variance by noise, which
does not fall near 1; k >= 1 the influence variance from fourth moments over (1 - r^2)^2. It covers the correlation of the columns moved
into their bounds. "weak" where a column's spread is below ten noise standard deviations, which a note of the plan says beforehand.
Sources: Dwork, Talwar, Thakurta, Zhang 2014 with exact noise (Dong, Roth, Su 2022); influence variance: Devlin, Gnanadesikan,
Kettenring 1975.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide.aggregates.cells.free_moments import practice_places
from confide.aggregates.lines.rows import BITS
from confide.aggregates.moments.joint_moments import JointMomentRows
from confide.guarantees import Guarantee
from confide.methods.reduction.columns import OfColumns, expected, joint_moments, measures_of
from confide.methods.reduction.matrix import CorrelationMatrix, pair_names
from confide.protocol import Gram, Plan, Question, Release, Statistic
from confide.schema import Practice

__all__ = ["Correlations"]


@dataclass(frozen=True)
class Correlations(OfColumns):
    """Pearson's correlations of all pairs. columns: names or derived terms, a list or "a + b + c"; term_bounds: bounds of derived terms.

    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> found = cf.infer(cf.release(Correlations("x + y + z"), data, cf.GDP(1.0), ledger=None))
    >>> found.names, found.matrix().shape
    (('r(x, y)', 'r(x, z)', 'r(y, z)'), (3, 3))
    """

    columns: tuple[str, ...]
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "correlations"
    source: ClassVar[str] = "Analyze Gauss on joint moments to order four, exact Gaussian noise"
    intervals: ClassVar[str] = (
        "correlations of the population's columns moved into their bounds; sampling and privacy noise"
    )

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        return {"moments": (Gram(about, entry_bits=BITS), Fraction(1))}

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One Gram matrix; a note says from how many records on columns are answered."""
        made = super().plan(schema, privacy, n=n, public=public)
        return replace(made, notes=(*made.notes, expected(made, self.about(schema), schema, n)))

    def facts(self, about: JointMomentRows) -> Mapping[str, Any]:
        names = ", ".join(measure.name for measure in about.measures)
        return {"target": f"correlations of {names}", "covers": self.intervals}

    def table(self, release: Release, about: JointMomentRows, question: Question) -> CorrelationMatrix:
        own = joint_moments(about, release["moments"])
        return CorrelationMatrix.read(release, own, about.measures)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The correlations of practice records."""
        practice = Practice.checked(frame)
        measures = measures_of(self.columns, practice.schema, self.term_bounds)
        found = np.atleast_2d(np.corrcoef(practice_places(measures, practice).T))
        names = pair_names([measure.name for measure in measures])
        return dict(zip(names, found[np.triu_indices(len(measures), 1)].tolist(), strict=True))
