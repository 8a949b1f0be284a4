"""Coverage of a normal mean and variance over very many data sets, from the ends of intervals on a grid of releases.

Given n and the noise, the ends of an interval are smooth functions of the two released sums. They are computed on a grid of releases around
what is expected (even in arsinh of standard deviations, to where less than 1e-6 of releases lie), and read by cubic splines at the sums of
data sets that are drawn in full, with their noise: the coverage is over all of these. `off`: how far, at most, the splines are from the
intervals themselves at releases that are drawn apart, in widths of the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.methods.intervals.count_posteriors import ClippedNormal
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NormalSums, normal_posterior
from confide_lab.experiment import Block, Quantity
from confide_lab.experiments.precise_families import HALF, TARGETS, drawn, noise_of, sums_of, truth_of

__all__ = ["measure_row", "measure_surface", "rows_block", "surface_block"]

Array = NDArray[np.float64]

#: Mean, standard deviation, records and mu of the page's table "Which prior covers" that the box does not dominate (A15).
_ROWS = {
    f"N({mean:g}, {sd:g}^2), {n}, {mu:g}": (mean, sd, n, mu)
    for mean, sd, n, mu in (
        (0.0, 1.0, 100, 0.5),
        (0.0, 1.0, 100, 1.0),
        (0.0, 1.0, 100, 5.0),
        (1.5, 0.7, 100, 0.5),
        (1.5, 0.7, 100, 1.0),
        (1.5, 0.7, 100, 5.0),
        (0.0, 2.0, 100, 0.5),
        (0.0, 2.0, 100, 1.0),
        (0.0, 0.4, 100, 1.0),
        (-2.0, 0.6, 500, 0.5),
        (3.0, 1.0, 100, 1.0),
        (3.0, 1.0, 1000, 0.5),
        (0.0, 1.0, 1000, 0.1),
        (0.0, 1.0, 1000, 1.0),
        (0.0, 1.0, 5000, 0.1),
    )
}
_LEAST_SD = 0.05
_SIDE, _FAR, _CENTRE = 19, 10.0, 1.0
_CHECKS = 12


def measure_surface(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Of each target coverage, mean width and the share of intervals wider than half the box, over `draws` data sets."""
    from scipy.interpolate import RectBivariateSpline

    n, truth, draws = int(at["n"]), float(at["truth"]), int(at["draws"])
    laws = noise_of("normal", float(at["budget"]), bool(at.get("gaussian")))
    own = ClippedNormal.of(np.array([truth / HALF]), np.array([1 / HALF]))
    middle = n * np.array([own.mean[0], own.square[0]])
    sd = np.sqrt(n * np.array([own.c11[0], own.c22[0]]) + np.array([law.variance for law in laws]))
    even = np.linspace(-1, 1, _SIDE) * np.arcsinh(_FAR / _CENTRE)
    places = _CENTRE * np.sinh(even)
    ends = np.array([[_ends(middle + sd * np.array([a, b]), n, laws) for b in places] for a in places])
    splines = [RectBivariateSpline(even, even, ends[:, :, j], s=0) for j in range(ends.shape[2])]
    scaled = (_released(truth, n, draws, laws, generator) - middle) / sd
    t = np.arcsinh(np.clip(scaled, -_FAR, _FAR) / _CENTRE)
    read = np.column_stack([spline.ev(t[:, 0], t[:, 1]) for spline in splines])
    exact = np.array([_ends(middle + sd * _CENTRE * np.sinh(one), n, laws) for one in t[:_CHECKS]])
    return {**_shares(read, truth), **_off(read[:_CHECKS], exact)}


def _released(truth: float, n: int, draws: int, laws: tuple[NoiseLaw, ...], generator: np.random.Generator) -> Array:
    """Noisy sums of data sets, (draws, 2)."""
    sums = np.array([sums_of("normal", drawn("normal", truth, n, generator)) for _ in range(draws)])
    return sums + np.column_stack([law.draws(generator, draws) for law in laws])


def _ends(sums: Array, n: int, laws: tuple[NoiseLaw, ...]) -> list[float]:
    """Low and high of the mean, low and high of the variance, in the column's units."""
    low = _LEAST_SD / HALF
    grid = normal_posterior(NormalSums(n, float(sums[0]), float(sums[1]), laws[0], laws[1], low, 1.0))
    p = np.array([0.025, 0.975])
    mean = HALF * grid.of(lambda m, s: m, "m").quantile(p)
    variance = HALF**2 * grid.of(lambda m, s: s * s, "s").quantile(p)
    return [float(v) for v in (*mean, *variance)]


def measure_row(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Of one release of a row of the page's table: whether the intervals hold the mean and the variance."""
    mean, sd, n, mu = _ROWS[str(at["row"])]
    laws = noise_of("normal", mu, True)
    sums = sums_of("normal", generator.normal(mean, sd, n)) + np.array([law.draws(generator, 1)[0] for law in laws])
    a, b, c, d = _ends(sums, n, laws)
    return {"mean covered": float(a <= mean <= b), "variance covered": float(c <= sd**2 <= d)}


def rows_block(**settings: Any) -> Block:
    """The block of `measure_row`; settings: checks and titles of a block."""
    return Block(
        name="rows_normal",
        grid={"row": tuple(_ROWS)},
        methods=("noise-aware",),
        measure=measure_row,
        quantities=(Quantity("mean coverage", of="mean covered"), Quantity("variance coverage", of="variance covered")),
        replications=200,
        full=1000,
        title="normal: the rows that say which prior covers (mean, variance, records, mu)",
        **settings,
    )


def _shares(ends: Array, at: float) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for j, (name, truth) in enumerate(truth_of("normal", at).items()):
        low, high = ends[:, 2 * j], ends[:, 2 * j + 1]
        least, most = TARGETS["normal"][name]
        found[f"{name} covered"] = float(np.mean((low <= truth) & (truth <= high)))
        found[f"{name} width"] = float(np.mean(high - low))
        found[f"{name} dominated"] = float(np.mean(high - low > (most - least) / 2))
    return found


def _off(read: Array, exact: Array) -> dict[str, float | str]:
    width = np.repeat(exact[:, 1::2] - exact[:, ::2], 2, axis=1)
    return {"off": float(np.max(np.abs(read - exact) / width))}


def surface_block(grid: Mapping[str, Any], title: str, **settings: Any) -> Block:
    """The block of this measure; settings: checks and titles of a block."""
    names = [
        (f"{target} {what}", target, what) for target in TARGETS["normal"] for what in ("covered", "width", "dominated")
    ]
    quantities = tuple(
        Quantity(f"{target} {'coverage' if what == 'covered' else what}", of=of) for of, target, what in names
    )
    return Block(
        name="surface_normal",
        grid={**grid, "draws": (20_000,)},
        methods=("noise-aware",),
        measure=measure_surface,
        quantities=(*quantities, Quantity("off")),
        replications=1,
        full=1,
        title=title,
        **settings,
    )
