"""Where Fisher scoring starts: a fit to points that are made from noisy moments. All of it is post-processing.

Slopes of a least-squares line, scaled to log-odds, are no safe start: Newton's steps run away from them on a rare level. So the start is
the family's own fit to made points: draws with the noisy means, variances and correlations of the features (a Gaussian copula;
two-valued terms at their values), each with the linear prediction, cut to what shares can be, as its outcome.
"""

from __future__ import annotations

import numpy as np

from confide._arrays import Array
from confide._special import ndtri
from confide.aggregates.lines.ranges import ranged
from confide.aggregates.lines.rows import Box
from confide.aggregates.scores.fisher_families import LOGIT, Family
from confide.methods.regression.scaling import extent
from confide.schema import Design

__all__ = ["made_points", "started"]


_POINTS = 3_000
_STEPS = 25
# The fit's ridge, per point, and the least information that a point counts with.
_RIDGE, _LEAST = 1e-4, 0.02
# Predictions are cut to from this part of the rarer outcome's share on.
_CUT = 0.2
_RAREST = 1e-3
# No spread of a feature is below this in its half-widths.
_NARROWEST = 1e-3


def made_points(
    design: Design, box: Box, moments: Array, generator: np.random.Generator, number: int = _POINTS
) -> Array:
    """z of made records, shape (number, p). moments: second moments of z per record, (p, p) with 1 in the corner."""
    mean = moments[0, 1:]
    covariance = moments[1:, 1:] - np.outer(mean, mean)
    sd = np.sqrt(np.maximum(np.diag(covariance), _NARROWEST**2))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = generator.standard_normal((number, len(mean))) @ root.T
    normal /= np.maximum(np.sqrt((root**2).sum(axis=1)), _NARROWEST)
    low, high = extent(design, box)
    points = np.ones((number, len(mean) + 1))
    wide = set(ranged(design))
    for j in range(len(mean)):
        if j in wide:
            points[:, 1 + j] = np.clip(mean[j] + sd[j] * normal[:, j], low[j], high[j])
        else:
            share = np.clip((mean[j] - low[j]) / (high[j] - low[j]), _RAREST, 1 - _RAREST)
            points[:, 1 + j] = np.where(normal[:, j] > -ndtri(share), high[j], low[j])
    return points


def started(points: Array, line: Array, share: float, family: Family = LOGIT) -> Array:
    """theta of the model that is likeliest where each point's outcome is its linear prediction, in units in which the largest one is 1.

    line: theta of the line that predicts 2 y - 1; share: the mean of y.
    """
    least = _CUT * min(share, 1 - share)
    target = np.clip((1 + points @ line) / 2, least, 1 - least)
    theta = np.zeros(points.shape[1])
    theta[0] = family.link(share)

    def loss(at: Array) -> float:
        return float(family.loss(points @ at, target).mean() + _RIDGE / 2 * (at @ at))

    now = loss(theta)
    for _ in range(_STEPS):
        pull, own = family.pull(points @ theta, target)
        slope = points.T @ pull / len(points) + _RIDGE * theta
        bend = (points.T * np.maximum(own, _LEAST)) @ points / len(points) + _RIDGE * np.eye(len(theta))
        step, size = np.linalg.solve(bend, slope), 1.0
        while (then := loss(theta - size * step)) > now and size > 1e-3:
            size /= 2
        if then >= now:
            break
        theta, now = theta - size * step, then
    return theta
