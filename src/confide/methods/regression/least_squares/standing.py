"""Where the rounds of a least-squares line stand, and what of it is public: the line, the metric, the limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.lines.rows import BOUND, Box
from confide.aggregates.lines.whitened_rows import Frame
from confide.aggregates.scores.limits import Limits, Maxima, score_edges
from confide.aggregates.scores.metric import Layout, Metric, floored_moments
from confide.aggregates.scores.rounds import Round
from confide.aggregates.scores.score_rows import LimitedFeatures, LimitedScores
from confide.aggregates.scores.unit_scores import Counting
from confide.methods.regression.evidence.left_out import CellCounts, LeftOut
from confide.protocol import Noisy

__all__ = ["Standing", "decoded_sums", "public_facts", "second_frame", "standing_after"]

# Where a round's residuals are clipped, in their sds; and how much of the noise of A its eigenvalues are floored at.
_REACH, _FLOORED, _FLOORED_FACTOR = 3.0, 0.5, 0.3


@dataclass(frozen=True, eq=False)
class Standing:
    """What the rounds know: the line, the residual sd, second moments of z per record, the metric, the count of records, those of each
    level; and which levels are left out (`left_out`).
    """

    theta: Array
    sigma: float
    moments: Array
    metric: Metric
    count: float
    cells: CellCounts
    least: float
    left: LeftOut | None = None

    def score_edges(self, mu: float, counting: Counting | None = None, heavy: float = 1.0) -> tuple[float, ...]:
        """Edges of the histogram of sizes of scores. mu: of the sum b; heavy: as in `Weighing`."""
        typical, count = heavy * self.sigma * sqrt(self.metric.size), self.count / heavy
        if counting is not None:
            typical, count = typical * counting.spread, count / counting.rows
        return score_edges(typical, count, len(self.metric.weights), mu)

    def spared(self, limits: Limits, maxima: Maxima) -> Limits:
        """No level is cut whole: A weighs long records down and b does not, so that its coefficient would be that many times too large."""
        return replace(limits, leverage=min(max(limits.leverage, self.metric.longest), maxima.leverage))

    def without_rare(self, layout: Layout, mu: float) -> Standing:
        """The same, with the levels left out that noise would hide all coefficients with. mu: of the sum A."""
        left = LeftOut.of(layout, self.cells, mu)
        if left is None:
            return self
        metric = layout.metric(self.moments, self.least, left.cells)
        return replace(self, metric=metric, left=left, count=max(self.count - float(left.counts.sum()), 1.0))


def standing_after(
    done: Round, theta: Array, s2: float, layout: Layout, mu: float, before: CellCounts | None = None
) -> Standing:
    """The metric that follows from a round with this line and residual variance in units of rho^2; mu: of the whole plan for one record.

    before: what earlier rounds say of the levels.
    """
    least = _FLOORED * (_FLOORED_FACTOR if layout.factors else 1.0) * done.gram_noise / done.count
    moments = floored_moments(done.gram, done.frame.matrix, done.count, least)
    rare = 2 / (mu * done.count)
    cells = CellCounts.of(done, layout)
    return Standing(
        theta,
        done.frame.rho * sqrt(s2),
        moments,
        layout.metric(moments, rare),
        done.count,
        before.joined(cells) if before else cells,
        rare,
    )


def second_frame(standing: Standing, box: Box, blocks: tuple[int, int, int], sd: float) -> tuple[Frame, float]:
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


def public_facts(
    standing: Standing, frame: Frame, theta: Array, limits: Limits, maxima: Maxima, edges: Sequence[float]
) -> dict[str, NDArray[Any]]:
    mean = standing.moments[0, 1:]
    spread = np.sqrt(np.maximum(np.diag(standing.moments)[1:] - mean**2, 1e-12))
    left = {"left_out": standing.left.rows} if standing.left else {}
    return left | {
        "box": np.array([frame.box.middle, frame.box.half], dtype=np.float64),
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
        "score_edges": np.array(edges),
        "largest": np.array([maxima.score, maxima.leverage, maxima.residual]),
    }
