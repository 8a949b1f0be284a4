"""The line of a release in the units of the data, from the last round's noisy moments: what the rows of a file are put on.

The plain solution A^{-1} b where the noisy Gram matrix stands above its noise, a shrunken one where it does not; without an intercept
among the lines through the origin. Post-processing: the draws of the shrunken one are keyed by the release.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from confide.aggregates.scores.round_lines import RoundLines, allowed_lines
from confide.aggregates.scores.rounds import last_round
from confide.methods.synthesis.response import Line
from confide.noise import keyed_generator
from confide.protocol import Question, Release
from confide.schema import Design

__all__ = ["line_of_release"]


def line_of_release(release: Release, design: Design) -> tuple[Line, str]:
    """The line, coefficients in the order of the design's names, and its status: "ok", "weak" or "not_identified"."""
    done = last_round(design, release.statistics, release.public, str(release.charged.relation))
    lines = RoundLines.of(done, *allowed_lines(design, box=done.frame.box))
    reduced = lines.reduced(done)
    smallest = float(np.linalg.eigvalsh((reduced.gram + reduced.gram.T) / 2)[0])
    status = "ok" if smallest >= reduced.gram_noise else ("weak" if smallest > 0 else "not_identified")
    if status == "ok":
        delta, s2 = lines.plain(done)
    else:
        delta, s2 = lines.shrunken(done, keyed_generator(release.sha256, Question().sha256))
    theta = done.frame.line + done.frame.rho * done.frame.matrix @ delta
    theta = theta if np.isfinite(theta).all() else done.frame.line
    half = (design.response.high - design.response.low) / 2
    centre, reach = done.frame.box.arrays
    slopes = half * theta[1:] / reach
    intercept = design.response.low + half + half * theta[0] - float(centre @ slopes)
    sigma = half * done.frame.rho * sqrt(s2)
    return Line(np.array([*([intercept] if design.intercept else []), *slopes]), sigma), status
