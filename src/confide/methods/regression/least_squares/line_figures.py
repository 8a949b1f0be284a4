"""The figures of a release of score sums: the line in corrections of where the rounds stood, and which coefficients are answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.clusters.beyond import Beyond
from confide.aggregates.clusters.cluster_meat import independent_of
from confide.aggregates.lines.ranges import ranged
from confide.aggregates.lines.rows import BOUND, Box
from confide.aggregates.scores.limits import LEVERAGE_EDGES, OUTER, Tail
from confide.aggregates.scores.metric import Layout
from confide.aggregates.scores.score_rows import LimitedFeatures, LimitedScores
from confide.methods.regression.evidence.far_bounds import NOTED, RESIDUAL, far, few_far
from confide.methods.regression.evidence.left_out import LeftOut
from confide.methods.regression.evidence.needs import Unanswered
from confide.methods.regression.evidence.released_rounds import ReleasedRounds
from confide.methods.regression.evidence.sandwich import FLOOR, Sandwich
from confide.methods.regression.least_squares.score_sums import names_of
from confide.methods.regression.least_squares.standing import decoded_sums
from confide.methods.regression.scaling import to_units
from confide.protocol import Noisy
from confide.protocol.units.contributions import Independent

__all__ = ["LineFigures"]

# A coefficient that is correlated with one of such a feature as much as this moves with it: the first number for slopes where the counted
# tail ends, the second where it does not, and for the intercept, of which slopes are a part.
_TIED, _CLOSELY = 0.2, 0.1
# Scores so many times the typical size are rare in data of ordinary tails.
_FAR = 16.0
# Rows of a unit that hardly hang together, each of a small weight, have a meat far below that of as many records.
_UNIT_FLOOR = 0.25


@dataclass(frozen=True, eq=False)
class LineFigures(ReleasedRounds):
    """One release read with one question: the line in corrections delta of where the rounds stood, and back in the data's units."""

    keep: list[int]

    # what was released ------------------------------------------------------------------------------------------------

    def _drawn(self) -> tuple[Noisy, Noisy, Noisy]:
        gram, cross = names_of(self.release.statistics)
        return self.release[gram], self.release[cross], self.release["square"]

    def _maps(self, cap: float, limit: float) -> tuple[LimitedFeatures, LimitedScores]:
        """What A and b are sums of, under R_A and R."""
        return LimitedFeatures(self.design, cap=cap), LimitedScores(self.design, limit=limit)

    @cached_property
    def sandwich(self) -> Sandwich:
        """The sums in units of v and r, and the coefficients in those of the data."""
        drawn = self._drawn()
        cap, limit, reach = (self._number(name) for name in ("leverage_cap", "score_limit", "square_limit"))
        maps = self._maps(cap, limit)
        gram, cross, square = decoded_sums(drawn, *maps, reach)
        meat_limit = self._number("meat_limit")
        scores = LimitedScores(self.design, limit=meat_limit)
        metric, kept = self._public("metric"), len(self._public("weights"))
        gram, cross = gram[:kept, :kept], cross[:kept]
        matrix, shift = to_units(self.design, list(range(len(self.design.terms))), self.box)
        axis = np.linalg.solve(metric.T, np.eye(len(metric))[0])[:kept]
        count, beyond = max(float(axis @ gram @ axis), 1.0), Beyond.factor_of(self.release)
        return Sandwich(
            gram=gram,
            cross=cross,
            square=square,
            meat=beyond * self.release["meat"].decode()[:kept, :kept] / scores.steps**2,
            sd_gram=cap * _relative(drawn[0], maps[0].l2_squared),
            sd_cross=limit * _relative(drawn[1], sqrt(maps[1].l2_squared)),
            sd_square=reach**2 * _relative(drawn[2], BOUND),
            sd_meat=beyond * meat_limit**2 * _relative(self.release["meat"], BOUND),
            rows=matrix @ metric[:kept].T,
            shift=matrix @ self._public("line") + shift,
            axis=axis,
            s2=max(square / count, self._number("sigma") ** 2 / 4),
            weights=self._public("weights"),
            support=self._public("support"),
            cut=self._number("meat_cut"),
            units=None if self.counting is None else self._independent(count).units,
            floor=_UNIT_FLOOR if self._light else FLOOR,
        )

    @property
    def _light(self) -> bool:
        """Whether the meat may be far below that of as many records: units that count once with all rows."""
        own = self.counting
        return own is not None and own.rows == 1 and own.weighted and self.design.schema.cluster is None

    def _independent(self, count: float) -> Independent:
        found = independent_of(self.release, count)
        assert found is not None
        return found

    # which coefficients are answered ------------------------------------------------------------------------------------

    @cached_property
    def left(self) -> LeftOut | None:
        """The levels whose records were left out."""
        public = self.release.public
        return LeftOut.from_rows(self._public("left_out")) if "left_out" in public else None

    @cached_property
    def _apart(self) -> list[int]:
        """The places of the coefficients that need the records of such a level."""
        matrix, _ = to_units(self.design, list(range(len(self.design.terms))), self.box)
        return self.left.needed_by(matrix, Layout.of(self.design)) if self.left else []

    @cached_property
    def reach(self) -> dict[int, float]:
        """How many private sds the public bounds of each feature with more than two values lie from its mean, by place among the terms."""
        middle, half = self.box.arrays
        public_middle, public_half = Box.of(self.design).arrays
        away = np.abs((public_middle - middle) / half - self._public("feature_mean")) + public_half / half
        return {j: float(away[j] / self._public("feature_sd")[j]) for j in ranged(self.design)}

    @cached_property
    def _per_sd(self) -> Array:
        """The least length |v| of a record per private sd that a term of it is away from its mean, (terms,)."""
        back = np.linalg.inv(self._public("metric"))
        rows = back[1:] - self._public("feature_mean")[:, None] * back[0]
        return np.asarray(self._public("feature_sd") / np.linalg.norm(rows, axis=1))

    @cached_property
    def far(self) -> tuple[int, ...]:
        """The places, among the terms, of features whose bounds lie too far out for what their histograms show."""
        limited = self._number("score_limit") / (RESIDUAL * self._number("sigma") * self._per_sd)
        return tuple(
            j for j, reach in self.reach.items() if far(reach, float(limited[j]), self._short(j) or self._few(j))
        )

    def _few(self, j: int) -> bool:
        """Whether few records are far out in the metric, hence in this feature, where no count says otherwise."""
        if "leverage" not in self.release.statistics or self._unfinished or not self._short(j, doubt=0.0):
            return False
        noisy = self.release["leverage"]
        edges = sqrt(float(self._public("weights").sum())) * np.array(LEVERAGE_EDGES)
        seen = Tail(noisy.decode(), edges, sqrt(noisy.variance))
        return few_far(seen.beyond, seen.noise, edges, float(self._per_sd[j]), self._records)

    @property
    def unlimited(self) -> bool:
        """Whether no record of the public box could have been limited."""
        score, leverage, _ = self._public("largest")
        return bool(self._number("score_limit") >= score and self._number("leverage_cap") >= leverage)

    @cached_property
    def _unanswered(self) -> Unanswered:
        """Which coefficients are not answered, and why."""
        s, limited = self.sandwich, not self.unlimited
        away = [1 + j for j in self.far] if limited else []
        # nearer bounds, and those of features of which nothing is limited, are only a cause of large noise
        wide = [1 + j for j, reach in self.reach.items() if 1 + j in away or (reach > NOTED and s.demand[1 + j] > 1)]
        correlation = np.abs(s.correlation()[:, away])
        tied = np.asarray((correlation > self._tied[:, None]).any(axis=1))
        others = [j for j in range(len(tied)) if j not in wide and j not in self._apart]
        return Unanswered(
            wide=tuple(wide),
            demanding=tuple(j for j in others if s.demand[j] > 1 and not tied[j]),
            tied={j: away[int(np.argmax(correlation[j]))] for j in others if tied[j]},
            apart=tuple(self._apart),
        )

    @cached_property
    def _tail(self) -> Tail:
        """The noisy histogram of sizes of scores."""
        noisy, edges = self.release["tail"], self._public("score_edges")
        return Tail(noisy.decode()[: len(edges) + 1], edges, sqrt(noisy.variance), outer=OUTER)

    @property
    def _tied(self) -> Array:
        """From which correlation on a coefficient moves with one of a feature that reaches too far, (k,)."""
        return np.array([_CLOSELY, *[_CLOSELY if self._unfinished else _TIED] * len(self.design.terms)])

    @property
    def _unfinished(self) -> bool:
        """Whether scores are seen so far out that more may lie beyond."""
        return self._tail.unfinished(_FAR * self._typical)

    @property
    def _typical(self) -> float:
        """The usual size of a score, of a record or a unit."""
        spread = 1.0 if self.counting is None else self.counting.spread
        return self._number("sigma") * sqrt(float(self._public("weights").sum())) * spread


def _relative(noisy: Noisy, bound: float) -> float:
    """The noise sd of a part over what one record can have at most."""
    return sqrt(noisy.variance) / bound
