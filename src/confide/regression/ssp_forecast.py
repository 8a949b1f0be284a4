"""What a release of weighted moments would say of practice records: its own reading of moments without noise, with the noise's variance."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.ranges import CELLS, private_box, ranged
from confide.mechanisms.rows import Box
from confide.protocol import Event, Spend
from confide.protocol.events import leaves
from confide.regression.forecast import Expect, Expected
from confide.regression.normal_equations import Meat, NoisyMoments, fit, identified, trusted
from confide.regression.practice import Shape
from confide.regression.scaling import line_of, to_units
from confide.regression.shared_moments import Layout

__all__ = ["expected"]

Array = NDArray[np.float64]


def expected(layout: Layout, event: Event, mu: float, enough: float) -> Expect:
    """What the first response's table would hold. mu: of the release; enough: `ssp` pays for ranges where mu n >= enough x coefficients."""
    spends = {leaf.name: leaf for leaf in leaves(event) if isinstance(leaf, Spend)}
    design = layout.design
    keep = list(range(len(design.terms)))

    def expect(shape: Shape, count: int) -> Expected:
        far = layout.recentring and mu * count >= enough * (len(design.terms) + 1)
        box = _box(layout, spends, shape, count) if far else None
        scaled = shape.scaled if box is None else _moved(layout, shape, box)
        each = shape.weights * (count / len(scaled))
        moments = _moments(layout, spends, scaled, shape.response, each, far=far)
        line = line_of(design, keep, box)
        matrix, _ = to_units(design, keep, box)
        try:
            status, _ = identified(moments, line)
            fitted = fit(moments, line)
        except np.linalg.LinAlgError:
            status = "not_identified"
        if status != "ok":
            return Expected(np.full(len(matrix), nan), False)
        meat = _meat(layout, spends, scaled, shape.response - scaled @ fitted.theta, each, far=far)
        if meat is not None:
            meat = meat.unclipped(fitted.weighted_residuals(layout.cap))
        shown, _ = trusted(fitted, matrix, meat)
        variances = np.einsum("ij,jk,ik->i", matrix, fitted.covariance(shown), matrix)
        return Expected(np.sqrt(np.maximum(variances, 0.0)), True)

    return expect


def _sd(spends: Mapping[str, Spend], name: str) -> float:
    sd = spends[name].noise_sd
    assert sd is not None
    return sd


def _box(layout: Layout, spends: Mapping[str, Spend], shape: Shape, count: int) -> Box:
    """The box of noisy ranges, from histograms without noise."""
    own = [1 + j for j in ranged(layout.design)]
    cells = np.clip(((shape.scaled[:, own] + 1) / 2 * CELLS).astype(int), 0, CELLS - 1)
    histograms = np.array([np.bincount(column, shape.weights * (count / len(cells)), CELLS) for column in cells.T])
    return private_box(layout.design, histograms, _sd(spends, "ranges"))


def _moved(layout: Layout, shape: Shape, box: Box) -> Array:
    """z in another box than the public one."""
    (middle, half), (new, width) = Box.of(layout.design).arrays, box.arrays
    return np.column_stack([np.ones(len(shape.scaled)), (shape.scaled[:, 1:] * half + middle - new) / width])


def _weights(layout: Layout, scaled: Array) -> Array:
    return np.asarray(np.minimum(1.0, layout.cap / (scaled**2).sum(axis=1)))


def _moments(
    layout: Layout, spends: Mapping[str, Spend], scaled: Array, response: Array, each: Array, *, far: bool
) -> NoisyMoments:
    (name,) = layout.names("moments", far=far)
    noise = layout.decoded(np.zeros(spends[name].shape), _sd(spends, name)).each[0]
    weighted = scaled * (_weights(layout, scaled) * each)[:, None]
    return NoisyMoments(
        weighted.T @ scaled,
        weighted.T @ response,
        float(weighted[:, 0] @ response**2),
        noise.sd_gram,
        noise.sd_cross,
        noise.sd_square,
    )


def _meat(
    layout: Layout, spends: Mapping[str, Spend], scaled: Array, residuals: Array, each: Array, *, far: bool
) -> Meat | None:
    """The meat of a robust covariance; None for a classical one."""
    if not layout.robust:
        return None
    name = layout.names("meat", far=far)[0]
    scores = scaled * (_weights(layout, scaled) * np.clip(residuals, -1, 1))[:, None]
    noise = layout.decoded_meat(np.zeros(spends[name].shape), _sd(spends, name))
    return Meat((scores * each[:, None]).T @ scores, noise.sd)
