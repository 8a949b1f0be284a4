"""What the rounds before the sums of scores would know of practice records: simulated rounds, with noise of the planned size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.blocks import BlockGram
from confide.aggregates.lines.rows import Box
from confide.aggregates.lines.whitened_rows import Frame, WhitenedRows
from confide.aggregates.scores.metric import Layout
from confide.aggregates.scores.rounds import Round, first_variance
from confide.aggregates.scores.shrinkage import symmetric_noise, wiener
from confide.methods.regression.evidence.left_out import CellCounts
from confide.methods.regression.least_squares.standing import Standing, second_frame, standing_after

__all__ = ["Rounds"]


@dataclass(frozen=True, eq=False)
class Rounds:
    """z in the box (rows, p), the response (rows,), for how many records each row stands (rows,), the line that they have (p,); sd: of the
    noise of a round by its name.
    """

    box: Box
    layout: Layout
    scaled: Array
    response: Array
    each: Array
    theta: Array
    moments: BlockGram
    sd: Mapping[str, float]
    mu: float
    generator: np.random.Generator

    def standing(self, *, long: bool) -> Standing:
        """After the last round of the branch."""
        transform, cap = self.layout.start()
        start = Frame.of(self.box, transform.T, np.zeros(len(transform)), 1.0)
        if not long:
            return self._round("short round 1", start, cap)
        standing = self._round("round 1", start, cap)
        frame, cap = second_frame(standing, self.box, self.moments.blocks, self.sd["round 2"])
        return self._round("round 2", frame, cap, standing.cells)

    def _round(self, name: str, frame: Frame, cap: float, before: CellCounts | None = None) -> Standing:
        done = self._drawn(self.sd[name], frame, cap)
        own = np.linalg.solve(frame.matrix, self.theta - frame.line) / frame.rho
        # the prior that the release chooses from its noise, as the line itself has it
        prior = max(float(own @ own) / len(own), 1e-5)
        system = done.system(first_variance(done), free=before is None and not self.layout.factors)
        for _ in range(2):
            delta, _ = wiener(system, prior)
            system = replace(system, s2=done.residual_variance(delta))
        theta = frame.line + frame.rho * frame.matrix @ delta
        return standing_after(done, theta, system.s2, self.layout, self.mu, before)

    def _drawn(self, sd: float, frame: Frame, cap: float) -> Round:
        """Weighted moments of u and clipped residuals, with noise."""
        u = self.scaled @ frame.matrix
        residuals = np.clip((self.response - self.scaled @ frame.line) / frame.rho, -1.0, 1.0)
        weights = self.each * np.minimum(1.0, cap / np.maximum((u**2).sum(axis=1), 1e-300))
        rows = self.moments.map
        assert isinstance(rows, WhitenedRows)
        a, b, c = (float(x) for x in self.moments.blocks)
        step, response_step = float(rows.at(frame, cap).steps), float(rows.response_steps)
        sd_gram, sd_cross, sd_square = (
            sd / (a * step**2),
            sd / (sqrt(2) * b * step * response_step),
            sd / (c * response_step**2),
        )
        weighted, p = u * weights[:, None], u.shape[1]
        draw = self.generator
        return Round(
            weighted.T @ u + symmetric_noise(p, sd_gram, draw),
            weighted.T @ residuals + draw.normal(0, sd_cross, p),
            float(weights @ residuals**2) + sd_square * float(draw.normal()),
            sd_gram,
            sd_cross,
            sd_square,
            frame,
            cap,
        )
