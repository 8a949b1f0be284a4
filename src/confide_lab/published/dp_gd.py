"""DP gradient descent with its settings searched on the private data, as Lin, Slavkovic, Bhoomireddy 2025 run it (arXiv 2510.16974).

Raw units, no intercept: theta = 0; T full-batch steps with g = sum clip(x (x'theta - y), C) + N(0, C^2 T/mu^2 I), theta -= rate g/n. Each
run is mu-GDP by itself; the best of 252 (or 455) runs on the same records is not, which the authors say. All runs are made at once: one
array holds the lines of all settings, and settings leave it when their number of steps is reached.
"""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.published.marks import published

__all__ = ["REAL_DATA", "SIMULATION", "dp_gd", "dp_gd_grid"]

Array = NDArray[np.float64]
Settings = list[tuple[float, float, int]]

#: (rate, clip, steps) of the two searches: 252 settings for simulated data, 455 for real data.
SIMULATION: Settings = list(
    product((0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0), (1.0, 5.0, 10.0, 20.0, 50.0, 100.0), (1, 5, 10, 20, 50, 100))
)
REAL_DATA: Settings = list(
    product([10.0**k for k in range(-6, 1)], [10.0**k for k in range(-6, 7)], (1, 5, 10, 20, 50))
)

# Rows that are looked at together: settings times rows stay in the cache of one core.
_ENTRIES = 1 << 15


def dp_gd_grid(x: Array, y: Array, rng: np.random.Generator, *, mu: float, settings: Settings = SIMULATION) -> Array:
    """The lines of all settings, shape (settings, d), each from its own noise. x: shape (n, d), y: (n,); mu: of each run, inf for no noise.

    >>> g = np.random.default_rng(1)
    >>> x = g.random((100, 2))
    >>> dp_gd_grid(x, x @ np.ones(2), g, mu=np.inf, settings=[(1.0, 100.0, 400), (0.1, 1.0, 1)]).round(2)
    array([[1.  , 1.  ],
           [0.05, 0.05]])
    """
    n, d = x.shape
    rates, clips, steps = (np.array(column, dtype=np.float64) for column in zip(*settings, strict=True))
    # the settings with the most steps first: those still running are always the first ones
    order = np.argsort(-steps, kind="stable")
    rates, clips, steps = rates[order], clips[order], steps[order]
    sds = np.zeros(len(settings)) if mu == inf else clips * np.sqrt(steps) / mu
    # with u = x/|x| a clipped score is C u clip(|x| e/C, -1, 1); |x| e/C is a product of (|x| x, -|x| y) with (theta, 1)/C
    length = np.linalg.norm(x, axis=1)[:, None]
    whole = np.column_stack([length * x, -length[:, 0] * y])
    unit = np.divide(x, length, out=np.zeros_like(x), where=length > 0)
    theta = np.vstack([np.zeros((d, len(settings))), np.ones(len(settings))])
    for k in range(int(steps[0])):
        running = int((steps > k).sum())
        gradient = np.zeros((d, running))
        inner = theta[:, :running] / clips[:running]
        block = max(_ENTRIES // running, 1)
        for first in range(0, n, block):
            part = slice(first, first + block)
            error = whole[part] @ inner
            np.clip(error, -1.0, 1.0, out=error)
            gradient += unit[part].T @ error
        gradient = gradient * clips[:running] + rng.standard_normal((d, running)) * sds[:running]
        theta[:-1, :running] -= rates[:running] * gradient / n
    lines = np.empty((len(settings), d))
    lines[order] = theta[:-1].T
    return lines


@published(
    "mu-GDP for each run of the search",
    "E14: the settings are the best of 252 (simulated data) or 455 (real data) runs on the private records, which the "
    "accounting leaves out; only a single run with settings fixed beforehand is mu-GDP",
    "n is used exactly, which add-remove does not allow",
)
def dp_gd(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    mu: float,
    settings: Settings = SIMULATION,
    truth: Array | None = None,
) -> dict[str, Any]:
    """The best line of the search: by its distance to `truth`, shape (d,), or else by its squared error on the records.

    Returns beta (d,), setting (rate, clip, steps), losses (settings,): |beta - truth|/|truth|, or |y - x beta|^2/|y|^2; lines
    (settings, d). Not private.
    """
    lines = dp_gd_grid(x, y, rng, mu=mu, settings=settings)
    with np.errstate(over="ignore", invalid="ignore"):
        if truth is None:
            losses = ((y[:, None] - x @ lines.T) ** 2).sum(axis=0) / float(y @ y)
        else:
            losses = np.linalg.norm(lines - truth, axis=1) / float(np.linalg.norm(truth))
    best = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.inf)))
    return {"beta": lines[best], "setting": settings[best], "losses": losses, "lines": lines}
