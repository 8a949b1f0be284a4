"""The rounds behind a least-squares line: first fit, metric, limits, and the sums of scores that the line is read from.

Guarantee: mu-GDP, add-remove or substitute. Drawn are the count, two rounds of moments, two histograms, A, b, q, the
meat, and for R squared the squares of influences (`explained`). Each is a Gaussian mechanism on exact integers
(`regression/sums/scores`, `blocks`). They are adaptively composed: squares of mu add up, to the same sum in both branches, of
which the estimated number of records chooses one. Metric, line and limits follow from what was drawn before. Sources: Dwork, Talwar,
Thakurta, Zhang 2014; Dong, Roth, Su 2022, Theorem 2 and Corollary 2.

Where the rounds of a least-squares line are, and what of it is public: the line, the metric, the limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, Branches, Composed, Event, Gram, Meter, Noisy, Plan, Source, Statistic, Total
from confide.methods.regression.evidence.r_squared import Influence
from confide.methods.regression.evidence.sparse_levels import CellCounts, SparseLevels
from confide.methods.regression.least_squares.sums import (
    LEVERAGE_EDGES,
    OUTER,
    Layout,
    Levels,
    Limits,
    Maxima,
    Metric,
    Sizes,
    Tail,
    floored_moments,
    public_maxima,
    score_edges,
)
from confide.methods.regression.sums.linear_rows import (
    BlockGram,
    Present,
    multipliers,
)
from confide.methods.regression.sums.scores import (
    Influences,
    LimitedFeatures,
    LimitedScores,
    SizeIndices,
    SquareOf,
    UnitInfluences,
    UnitScores,
    UnitSizes,
)
from confide.methods.regression.sums.whitened_rows import (
    Frame,
    PartialFrame,
    Round,
    WhitenedRows,
    first_variance,
    shrunken,
    split_of,
)
from confide.noise import keyed_generator
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.clusters.cluster_covariance import Counting, meat_of, ruler_of, scores_of, with_scores
from confide.sums.coding import BOUND, Box

# Where a round's residuals are clipped, in their sds; and how much of the noise of A its eigenvalues are floored at.
_REACH, _FLOORED, _FLOORED_FACTOR = 3.0, 0.5, 0.3


@dataclass(frozen=True, eq=False)
class RoundState:
    """What the rounds know: the line, the residual SD, second moments of z per record, the metric, the count of records and of each level.

    left: the levels whose records are excluded.
    """

    theta: Array
    sigma: float
    moments: Array
    metric: Metric
    count: float
    cells: CellCounts
    least: float
    left: SparseLevels | None = None

    def score_edges(self, mu: float, counting: Counting | None = None, heavy: float = 1.0) -> tuple[float, ...]:
        """Edges of the histogram of sizes of scores. mu: of the sum b; heavy: as in `ScoreWeights`."""
        typical, count = heavy * self.sigma * sqrt(self.metric.size), self.count / heavy
        if counting is not None:
            typical, count = typical * counting.spread, count / counting.rows
        return score_edges(typical, count, len(self.metric.weights), mu)

    def spared(self, limits: Limits, maxima: Maxima) -> Limits:
        """No level is cut whole: A weighs long records down and b does not, so that its coefficient would be that many times too large."""
        return replace(limits, leverage=min(max(limits.leverage, self.metric.longest), maxima.leverage))

    def without_rare(self, layout: Layout, mu: float) -> RoundState:
        """The same, with the levels left out that noise would hide all coefficients with. mu: of the sum A."""
        left = SparseLevels.of(layout, self.cells, mu)
        if left is None:
            return self
        metric = layout.metric(self.moments, self.least, left.cells)
        return replace(self, metric=metric, left=left, count=max(self.count - float(left.counts.sum()), 1.0))


def state_after(
    done: Round, theta: Array, s2: float, layout: Layout, mu: float, before: CellCounts | None = None
) -> RoundState:
    """The metric that follows from a round with this line and residual variance in units of rho^2; mu: of the whole plan for one record.

    before: what earlier rounds say of the levels.
    """
    least = _FLOORED * (_FLOORED_FACTOR if layout.factors else 1.0) * done.gram_noise / done.count
    moments = floored_moments(done.gram, done.frame.matrix, done.count, least)
    rare = 2 / (mu * done.count)
    cells = CellCounts.of(done, layout)
    return RoundState(
        theta,
        done.frame.rho * sqrt(s2),
        moments,
        layout.metric(moments, rare),
        done.count,
        before.joined(cells) if before else cells,
        rare,
    )


def whitening_frame(standing: RoundState, box: Box, blocks: tuple[int, int, int], sd: float) -> tuple[Frame, float]:
    """The frame and the cap of the second round, residuals clipped where their number makes them rare against the noise."""
    a, b, _ = blocks
    count, size = standing.count, standing.metric.size
    mu_gram, mu_cross = a * BOUND / sd, sqrt(2) * b * BOUND / sd
    enough = min(0.25 * count * mu_gram / sqrt(2 * len(standing.theta)), count * mu_cross**2 / 18)
    cap = float(np.clip(enough, size, 8 * size))
    rho = min(2.0, standing.sigma * max(_REACH, 0.5 * mu_cross * sqrt(count / cap)))
    return Frame.of(box, standing.metric.matrix.T, standing.theta, rho), cap


def decoded_sums(
    drawn: Sequence[Noisy], features: LimitedFeatures, scores: LimitedScores, reach: float
) -> tuple[Array, Array, float]:
    """A, b and q in units of v and r, from what was drawn of them with these maps and the reach of q."""
    gram, cross, square = drawn
    return (
        gram.decode() / features.steps**2,
        cross.decode() / scores.steps,
        float(square.decode()[0]) * reach**2 / BOUND,
    )


def public_facts(standing: RoundState, theta: Array, limits: Limits, maxima: Maxima) -> dict[str, NDArray[Any]]:
    mean = standing.moments[0, 1:]
    spread = np.sqrt(np.maximum(np.diag(standing.moments)[1:] - mean**2, 1e-12))
    left = {"left_out": standing.left.rows} if standing.left else {}
    return left | {
        "metric": standing.metric.matrix,
        "line": standing.theta,
        "meat_line": theta,
        "weights": standing.metric.weights,
        "support": standing.metric.support,
        "feature_mean": mean,
        "feature_sd": spread,
        "sigma": np.array([standing.sigma]),
        "sampling": np.array([limits.sampling]),
        "score_limit": np.array([limits.score]),
        "leverage_cap": np.array([limits.leverage]),
        "meat_limit": np.array([limits.meat]),
        "square_limit": np.array([limits.square]),
        "kappa": np.array([limits.kappa]),
        "meat_cut": np.array([limits.cut]),
        "largest": np.array([maxima.score, maxima.leverage, maxima.residual]),
    }


#: Of the longest branch: first counts, two rounds, histograms, sums, meat.
PASSES = 6
# Shares of mu^2, chosen on seeds 1 to 3 of the designs of confide_lab/benchmarks/least_squares.py; each branch adds up to 1. (That of the
# tail, and what it takes from b, q and the meat, on designs of ten far records in 2,000: `limits`. That of influences, from b, is what R
# squared needs: evidence/methods/least_squares.md.)
COMMON = {"count": 1, "tail": 16, "leverage": 2, "square": 2, "meat": 8, "influence": 1}
_LONG = {"round 1": 11, "round 2": 12, "gram": 10, "cross": 37}
_SHORT = {"short round 1": 26, "short gram": 12, "short cross": 32}
# What they are parts of.
_ALL = sum(COMMON.values()) + sum(_LONG.values())
#: Of b in the long branch.
SLOPE = _LONG["cross"] / _ALL
# Fewer records than this many noise units for each coefficient: no budget to spare for a second round.
ENOUGH = 30
# A line beyond this many half-ranges of the response is useless; the line before it is kept, so that residuals stay numbers.
_FAR = 1e6


def names_of(statistics: Mapping[str, Any]) -> tuple[str, str]:
    """The names of A and b in the branch that was drawn."""
    return ("gram", "cross") if "gram" in statistics else ("short gram", "short cross")


@dataclass(frozen=True)
class ScoreWeights:
    """What is known of weights omega in [0, 1] before the rounds: their mean, and how heavy those are that sums are made of,
    E omega^2/E omega. Without weights both are 1. least: as in `Sizes`.
    """

    mean: float = 1.0
    heavy: float = 1.0
    least: float = 0.0


@dataclass(frozen=True)
class ScoreStatistics:
    """The plan and the draws of a design with an intercept.

    limit : {"auto", "none"}
        "none": no score and no leverage is limited below what the public box allows.

    Where several rows of a unit count, scores belong to units (`regression/sums/scores`).
    """

    design: ModelMatrix
    limit: str = "auto"

    @property
    def counting(self) -> Counting | None:
        """How rows of a unit count; None where each record counts separately."""
        return Counting.of(self.design.schema)

    @property
    def layout(self) -> Layout:
        return Layout.of(self.design)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(self, allowance: Allowance) -> tuple[Event, dict[str, Statistic]]:
        """The events and statistics, whose shares are exact in both branches."""
        statistics = self._statistics(allowance.relation)
        common, long, short = self._shares()
        for name in ("leverage", "influence"):
            if name not in statistics:
                part = common.pop(name)
                long["cross"] += part
                short["short cross"] += part

        def spent(shares: Mapping[str, Fraction]) -> tuple[Any, ...]:
            return tuple(allowance.spend(name, statistics[name], part) for name, part in shares.items())

        return Composed((*spent(common), Branches((Composed(spent(long)), Composed(spent(short)))))), statistics

    def _shares(self) -> tuple[dict[str, Fraction], dict[str, Fraction], dict[str, Fraction]]:
        """Of both branches, of the long one and of the short one, by name."""
        common, long, short = (
            {name: Fraction(part, _ALL) for name, part in own.items()} for own in (COMMON, _LONG, _SHORT)
        )
        return common, long, short

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        design = self.design
        moments = BlockGram(WhitenedRows(design), multipliers(*split_of(relation, last=False)))
        made: dict[str, Statistic] = {"count": Total(Present(design), nonnegative=True)}
        made |= dict.fromkeys(("round 1", "round 2", "short round 1"), moments)
        own = self.counting
        scores = LimitedScores(design) if own is None else UnitScores(design, counting=own)
        sizes = SizeIndices(design, scores=True) if own is None else UnitSizes(design, scores=True, counting=own)
        made["tail"] = Histogram(sizes)
        if self.limit == "auto":
            made["leverage"] = Histogram(SizeIndices(design, scores=False))
        made |= dict.fromkeys(("gram", "short gram"), Gram(LimitedFeatures(design)))
        made |= dict.fromkeys(("cross", "short cross"), Total(scores))
        made["square"] = Total(SquareOf(design), nonnegative=True)
        made["meat"] = meat_of(scores, design.schema.cluster)
        return made | self._explaining()

    def _explaining(self) -> dict[str, Statistic]:
        """What R squared is read from, at the line of the meat; nothing in clusters, whose influences would have to be summed up."""
        if self.design.schema.cluster is not None:
            return {}
        own = self.counting
        influences = Influences(self.design) if own is None else UnitInfluences(self.design, counting=own)
        return {"influence": Total(influences, nonnegative=True)}

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        """Noisy sums in the order of the plan; the estimated number of records chooses the branch. The public numbers between them, by
        name.
        """
        return run_rounds(self, source, plan, meter, ScoreWeights())

    def meat_level(self, sd: float) -> float:
        """mu of the meat for a record at its bound. `sd`: of the noise."""
        return BOUND / sd

    def meat_at(
        self, planned: Statistic, frame: Frame, limits: Limits, standing: RoundState, top: float
    ) -> MiddleMatrixAt:
        """The meat at a line. top: what no score exceeds."""
        scores = scores_of(planned)
        assert isinstance(scores, LimitedScores)
        statistic = with_scores(planned, scores.at(frame, limits.meat), self.design.schema, standing.count)
        return MiddleMatrixAt(statistic, limits, ruler_of(statistic))


@dataclass(frozen=True)
class MiddleMatrixAt:
    """A meat's sum, the limits with its own, and public numbers that it is read with."""

    statistic: Statistic
    limits: Limits
    public: dict[str, NDArray[Any]] = field(default_factory=dict)


def run_rounds(
    of: ScoreStatistics, source: Source, plan: Plan, meter: Meter, weighing: ScoreWeights
) -> dict[str, NDArray[Any]]:
    """Draw through a branch; the public numbers by name."""
    return _Draw(of, source, plan, meter, weighing).run()


@dataclass(frozen=True, eq=False)
class _Draw:
    """One run through a branch."""

    of: ScoreStatistics
    source: Source
    plan: Plan
    meter: Meter
    weighing: ScoreWeights

    def run(self) -> dict[str, NDArray[Any]]:
        design = self.of.design
        (count,) = self.source.aggregate(self.plan.statistic("count"))
        records = float(self.meter.draw("count", count).decode()[0])
        long = self._mu * records * self.weighing.mean >= ENOUGH * (len(design.terms) + 1)
        transform, cap = self.of.layout.start()
        start = Frame.of(Box.of(design), transform.T, np.zeros(len(transform)), 1.0)
        standing = self._round("round 1" if long else "short round 1", start, cap)
        if long:
            frame, cap = self._second(standing)
            standing = self._round("round 2", frame, cap, before=standing.cells)
        branch = "" if long else "short "
        return self._sums(standing.without_rare(self.of.layout, self._level(branch + "gram")), branch)

    @property
    def _mu(self) -> float:
        """mu of the whole plan for one record: what the count's share says, whatever the relation and rows per unit."""
        return 1 / sqrt(COMMON["count"] / _ALL * self._sd("count") ** 2)

    def _sd(self, name: str) -> float:
        found = self.plan.spend(name).noise_sd
        assert found is not None
        return found

    def _level(self, name: str) -> float:
        """mu of a sum, or of a Gram matrix, of rows for a record at its bound."""
        planned = self.plan.statistic(name)
        bound = planned.map.l2_squared
        return (bound if isinstance(planned, Gram) else sqrt(bound)) / self._sd(name)

    def _round(self, name: str, frame: Frame, cap: float, before: CellCounts | None = None) -> RoundState:
        """One round of moments, its shrunken line, and the metric that follows."""
        planned = self.plan.statistic(name)
        assert isinstance(planned, BlockGram) and isinstance(planned.map, WhitenedRows)
        (total,) = self.source.aggregate(replace(planned, map=planned.map.at(frame, cap)))
        noisy = self.meter.draw(name, total)
        done = Round.decoded(noisy, planned, frame, cap)
        generator = keyed_generator("noise fission", noisy.sha256)
        layout = self.of.layout
        free = before is None and not layout.factors
        delta, s2 = shrunken(done.system(first_variance(done), free=free), done, generator)
        theta = frame.line + frame.rho * frame.matrix @ delta
        theta = theta if (np.abs(theta) <= _FAR).all() else frame.line
        return state_after(done, theta, s2, layout, self._mu, before)

    def _second(self, standing: RoundState) -> tuple[Frame, float]:
        """The frame and the cap of the second round, residuals clipped where their number makes them rare against the noise."""
        planned = self.plan.statistic("round 2")
        assert isinstance(planned, BlockGram)
        return whitening_frame(standing, Box.of(self.of.design), planned.blocks, self._sd("round 2"))

    def _sums(self, standing: RoundState, branch: str) -> dict[str, NDArray[Any]]:
        """Histograms, A, b, q and the meat at the line that they give."""
        layout = self.of.layout
        frame: Frame = Frame.of(Box.of(self.of.design), standing.metric.matrix.T, standing.theta, 1.0)
        if standing.left:
            frame = PartialFrame(
                frame.box, frame.transform, frame.theta, 1.0, tuple(map(layout.indicators, standing.left.cells))
            )
        maxima = public_maxima(self.of.design, layout, frame)
        if self.of.counting is not None:
            maxima = replace(maxima, score=maxima.score * self.of.counting.rows)
        limits = standing.spared(self._limits(standing, frame, maxima, branch), maxima)
        gram, cross, square = self._three(frame, limits, branch)
        delta, kept = np.zeros_like(cross), len(standing.metric.weights)
        with suppress(np.linalg.LinAlgError):
            delta[:kept] = np.linalg.solve(gram[:kept, :kept], cross[:kept])
        theta = frame.line + frame.matrix @ delta
        # where noise hides A the meat serves no interval
        theta = theta if (np.abs(theta) <= _FAR).all() else frame.line
        planned, at = self.plan.statistic("meat"), replace(frame, theta=tuple(theta))
        meat = self.of.meat_at(planned, at, limits, standing, maxima.score)
        last, public = {"meat": meat.statistic}, meat.public
        if "influence" in self.plan.statistics:
            influences = self.plan.statistic("influence")
            assert isinstance(influences, Total) and isinstance(influences.map, Influences)
            rows = 1 if self.of.counting is None else self.of.counting.rows
            rss = square - float(cross[:kept] @ delta[:kept])
            own = Influence.of(self.of.design, at, standing.metric, gram[:kept, :kept], rss)
            own = own.limited(limits, standing.count, BOUND / self._sd("influence"), rows)
            last["influence"] = replace(influences, map=influences.map.at(at, own.line, own.share, own.reach))
            public = public | own.public
        for name, total in zip(last, self.source.aggregate(*last.values()), strict=True):
            self.meter.draw(name, total)
        return public_facts(standing, theta, meat.limits, maxima) | public

    def _edges(self, standing: RoundState, branch: str) -> tuple[float, ...]:
        """Of the histogram of sizes of scores."""
        return standing.score_edges(self._level(branch + "cross"), self.of.counting, self.weighing.heavy)

    def _limits(self, standing: RoundState, frame: Frame, maxima: Maxima, branch: str) -> Limits:
        size = sqrt(standing.metric.size)
        edges = {
            "tail": self._edges(standing, branch),
            "leverage": tuple(size * e for e in LEVERAGE_EDGES),
        }
        names = [name for name in ("tail", "leverage") if name in self.plan.statistics]
        asked = []
        for name in names:
            planned = self.plan.statistic(name)
            assert isinstance(planned, Histogram) and isinstance(planned.map, SizeIndices)
            asked.append(replace(planned, map=planned.map.at(frame, edges[name])))
        tails = {}
        for name, total in zip(names, self.source.aggregate(*asked), strict=True):
            counts, own = self.meter.draw(name, total).decode(), np.array(edges[name])
            outer, top = (OUTER, maxima.score) if name == "tail" else (0, sqrt(maxima.leverage))
            # cells beyond the bounds hold noise alone, on which no belief may rest
            counts = np.where(np.append(0.0, own) < top, counts[: len(own) + 1], 0.0)
            tails[name] = Tail(counts, own, self._sd(name), outer=outer)
        levels = Levels(
            self._level(branch + "gram"),
            self._level(branch + "cross"),
            BOUND / self._sd("square"),
            self.of.meat_level(self._sd("meat")),
        )
        sizes = Sizes(
            standing.metric.weights,
            standing.sigma,
            standing.count,
            tails["tail"],
            tails.get("leverage"),
            maxima,
            levels,
            1.0 if self.of.counting is None else self.of.counting.spread,
            self.weighing.heavy,
            self.weighing.least,
        )
        return sizes.limits(_rarer(self.of.design, standing), unlimited=self.of.limit == "none")

    def _three(self, frame: Frame, limits: Limits, branch: str) -> tuple[Array, Array, float]:
        planned = {name: self.plan.statistic(name) for name in (branch + "gram", branch + "cross", "square")}
        features, scores, squares = (statistic.map for statistic in planned.values())
        assert isinstance(features, LimitedFeatures) and isinstance(scores, LimitedScores)
        assert isinstance(squares, SquareOf)
        features, scores = features.at(frame, limits.leverage), scores.at(frame, limits.score)
        totals = self.source.aggregate(
            Gram(features),
            Total(scores),
            Total(squares.at(frame, limits.square), nonnegative=True),
        )
        drawn = [self.meter.draw(name, total) for name, total in zip(planned, totals, strict=True)]
        return decoded_sums(drawn, features, scores, limits.square)


def _rarer(design: ModelMatrix, standing: RoundState) -> float | None:
    """The estimated number of records with the rarer of two public values of the response; None for a response with more."""
    if design.response.steps != 2:
        return None
    share = float(np.clip((1 + standing.moments[0] @ standing.theta) / 2, 0.0, 1.0))
    return standing.count * min(share, 1 - share)
