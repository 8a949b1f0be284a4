"""The difference of a share between two groups, from one release of the four counts.

Guarantee: PureDP(epsilon) or mu-GDP, substitution, with a public n; the sizes of the groups are not public. The 2 x 2 table of counts:
l1 = 2, l2 = sqrt 2 for all four at once.

Credible interval: the exact joint posterior of the four cells under Dirichlet(1/2, ...) given all noisy counts and the public sum
(`count_posteriors.Cells`), drawn 20,000 times. It gives the difference of the two shares, and each share separately. Confidence intervals
of the three: by the profile of the noisy counts, no size of a group known (`count_posteriors.NoisyTable`). For means and groups of several
levels: the tables (cf.tables.shares(...).diff), which `cf.intervals.difference` asks under add-remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Release
from confide.errors import PlanError
from confide.methods.intervals.count_posteriors import Cells, NoisyTable
from confide.methods.intervals.marginals import SampledMarginal
from confide.methods.intervals.method import IntervalMethod, parsed_prior, share_alone
from confide.methods.intervals.proportion import level_name
from confide.methods.intervals.results import ConfidenceIntervals, Posterior
from confide.methods.intervals.sums import PairRows, whole_frame
from confide.noise import keyed_generator
from confide.schema import Categorical, Integer, Schema
from confide.schema.formulas.names import bare, column_named, sides
from confide.sums.coding import ends

_DRAWS = 20_000
# Dirichlet's a of each cell, where nothing is asked for.
_CELL = 0.5
# What intervals of either kind cover.
_INTERVALS_FOR = (
    "difference of two population shares, and each of them; sampling and privacy noise; exact under the prior",
    "difference of two population shares, and each of them; sampling and privacy noise; confidence by the profile of the counts",
)


@dataclass(frozen=True)
class Difference(IntervalMethod):
    """Estimate a share in the second group minus that in the first.

    The estimand is the difference of two shares in the population.

    Parameters
    ----------
    formula : str
        Outcome and group, such as ``"smoker ~ sex"``, each a column of two levels.
        The share is of the second level of the outcome.
    prior : str, default ""
        Prior of the four cells, ``"dirichlet(a)"``. Empty for a = 1/2.

    See Also
    --------
    confide.intervals.difference : Also for means and several groups.

    Notes
    -----
    Guarantee: PureDP(epsilon) or mu-GDP under substitution, with a public n. The
    sizes of the groups are protected. One replaced record moves the four counts by
    2 in l1 and root 2 in l2. Credible intervals are exact under the prior.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({
    ...     "smoker": cf.Categorical(["no", "yes"], on_missing="no"),
    ...     "sex": cf.Categorical(["f", "m"], on_missing="f")})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.intervals.Difference("smoker ~ sex")
    >>> release = cf.release(method, data, cf.PureDP(1.0), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> list(cf.infer(release).names)
    ['smoker=yes: sex=m - sex=f', 'smoker=yes | sex=f', 'smoker=yes | sex=m']
    """

    formula: str
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "difference"
    intervals: ClassVar[str] = (
        "difference of two population shares; sampling and privacy noise; exact under the prior, or confidence by the profile of the counts"
    )
    whole: ClassVar[bool] = True

    def rows(self, schema: Schema, pure: bool) -> PairRows:
        outcome, group = (column_named(name, schema.names) for name in self._sides())
        for name in (outcome, group):
            own = schema[name]
            if own.steps != 2 or not isinstance(own, (Categorical, Integer)):
                raise PlanError(
                    f"a difference of shares is of two columns of two levels, and {name!r} is none; for several levels and for means write "
                    'cf.tables.shares("smoker * region", within="region", inference="population").diff(...), or cf.tests.ttest_ind'
                )
        return PairRows(schema, group, outcome)

    def _sides(self) -> tuple[str, str]:
        parts = sides(self.formula) if isinstance(self.formula, str) else []
        if len(parts) != 2 or not all(parts):
            raise PlanError(f"a difference takes outcome ~ group, got {self.formula!r}", 'write "smoker ~ sex"')
        return bare(parts[0]), bare(parts[1])

    def facts(self, about: PairRows) -> Mapping[str, Any]:
        return {"target": f"difference of shares, {self.formula}", "intervals_for": self.intervals}

    def _prior(self, text: str) -> float:
        return parsed_prior(text, {"dirichlet": 1}, "dirichlet(0.5)", self.name)[1][0]

    def _names(self, schema: Schema) -> tuple[str, str, str]:
        outcome, group = self._sides()
        what = level_name(schema, outcome, 1)
        first, second = (level_name(schema, group, code) for code in (0, 1))
        return f"{what}: {second} - {first}", f"{what} | {first}", f"{what} | {second}"

    def credible(self, release: Release, rows: PairRows, n: int, prior: float) -> Posterior:
        law, sums = self.law(release), self.sums(release)
        cells = Cells(sums, n, law, np.full(4, prior))
        key = release.drawn_sha256, "difference"
        draws = contrasts(cells.draws(keyed_generator(*key, f"{prior!r}"), _DRAWS))

        middle = contrasts(
            Cells(_halves(sums), n, law, np.full(4, _CELL)).draws(keyed_generator(*key, "middle"), _DRAWS)
        )

        def flat() -> list[SampledMarginal]:
            others = contrasts(Cells(sums, n, law, np.ones(4)).draws(keyed_generator(*key, "flat"), _DRAWS))
            return [SampledMarginal.of(others[:, j]) for j in range(3)]

        return Posterior.read(
            release,
            response=self._sides()[0],
            intervals_for=_INTERVALS_FOR[0],
            names=self._names(rows.schema),
            marginals=[SampledMarginal.of(draws[:, j]) for j in range(3)],
            bounds=[(-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)],
            alone=_alone(sums),
            joint=lambda generator, size: contrasts(cells.draws(generator, size)),
            reached=lambda alpha: _reached([law.allows(float(y), 0, n, alpha)[0] for y in sums]),
            prior=f"Dirichlet({prior:g}, ...)",
            middle=[SampledMarginal.of(middle[:, j]) for j in range(3)],
            flat=flat if prior != _CELL else None,
            facts=(("n", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def confidence(self, release: Release, rows: PairRows, n: int) -> ConfidenceIntervals:
        sums, law = self.sums(release), self.law(release)
        table, halves = (NoisyTable(counts, n, law) for counts in (sums, _halves(sums)))
        return ConfidenceIntervals.read(
            release,
            response=self._sides()[0],
            intervals_for=_INTERVALS_FOR[1],
            names=self._names(rows.schema),
            limits=partial(_limits, table),
            estimates=table.estimates,
            middle=partial(_limits, halves),
            bounds=[(-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)],
            alone=_alone(sums),
            facts=(("n", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        outcome, group = self._sides()
        practice = whole_frame(frame, (outcome, group))
        y, g = practice.codes[outcome], practice.codes[group]
        first, second = float(np.mean(y[g == 0])), float(np.mean(y[g == 1]))
        return dict(zip(self._names(practice.schema), (second - first, first, second), strict=True))

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two cells."""
        if isinstance(schema, Schema):
            yield ends(schema, self._sides())


def _halves(sums: Array) -> Array:
    """Groups as large as these whose shares are one half."""
    return np.repeat(np.asarray(sums, dtype=np.float64).reshape(2, 2).mean(axis=1), 2)


def _alone(sums: Array) -> list[float]:
    """How wide the intervals of the difference and of both shares would be by sampling alone."""
    counts = np.asarray(sums, dtype=np.float64).reshape(2, 2)
    sizes = np.maximum(counts.sum(axis=1), 1.0)
    widths = share_alone(counts[:, 1] / sizes, sizes)
    return [float(np.hypot(*widths)), *widths.tolist()]


def _limits(table: NoisyTable, alpha: float) -> tuple[list[float], list[float]]:
    """Of the difference and of both shares."""
    ends = [table.difference(alpha), table.share(0, alpha), table.share(1, alpha)]
    return [low for low, _ in ends], [high for _, high in ends]


def _reached(none: list[bool]) -> list[tuple[bool, bool]]:
    """Whether difference and shares may be at their bounds, from whether each cell may hold no record at all."""
    first, second = (none[1], none[0]), (none[3], none[2])
    return [(second[0] and first[1], second[1] and first[0]), first, second]


def contrasts(cells: Array) -> Array:
    """(second - first, first, second) of draws of the four cells, the outcome running faster."""
    first = cells[:, 1] / np.maximum(cells[:, 0] + cells[:, 1], 1e-300)
    second = cells[:, 3] / np.maximum(cells[:, 2] + cells[:, 3], 1e-300)
    return np.column_stack([second - first, first, second])
