"""Shares of all levels and differences of two shares: the blocks `levels` and `two` of `precise.coverage` and `precise.gdp`.

`levels`: a column of five levels of .6, .25, .1, .04 and .01. `two`: an outcome in two groups, "even" (.3 and .5 in groups of one half)
or "rare" (.02 and .05, the second in a fifth of the records). Intervals of the library, from one release each through `cf.release`, and
"sample", the same without privacy: Beta(1/2, 1/2) for shares, the profile of the true counts for a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.methods.intervals.count_posteriors import NoisyTable
from confide.methods.intervals.marginals import NoiseLaw
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Check, Quantity, Record
from confide_lab.experiments.measures import shared

__all__ = ["cell_blocks", "measure_levels", "measure_two"]

Array = NDArray[np.float64]

_LEVELS = {"a": 0.6, "b": 0.25, "c": 0.1, "d": 0.04, "e": 0.01}
#: Shares of the two groups, and the second group's share of the records.
_TWO = {"even": (0.3, 0.5, 0.5), "rare": (0.02, 0.05, 0.2)}
_SCHEMAS = {
    "levels": cf.Schema({"g": cf.Categorical(list(_LEVELS), on_missing="a")}),
    "two": cf.Schema({name: cf.Integer(0, 1, on_missing=0) for name in ("y", "g")}),
}
# Of a table whose counts have no noise.
_NONE = NoiseLaw("normal", 1e-6)


def measure_levels(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Of the largest, the middle and the smallest level: whether the interval holds its share, its width, and whether that is over 1/2."""
    n, shares = int(at["n"]), np.array(list(_LEVELS.values()))
    codes = shared("precise levels", at).choice(len(shares), n, p=shares)
    if at["method"] == "sample":
        k = np.bincount(codes, minlength=len(shares))
        ends = np.column_stack([stats.beta.ppf(p, 0.5 + k, 0.5 + n - k) for p in (0.025, 0.975)])
    else:
        frame = pd.DataFrame({"g": np.array(list(_LEVELS), dtype=object)[codes]})
        ends = _ours(cf.intervals.Proportion("g"), frame, "levels", at, generator)
    named = {"large": 0, "middle": 2, "small": 4}
    return _told({name: (ends[j], float(shares[j]), 1.0) for name, j in named.items()})


def measure_two(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Of the difference and of the share in the second group."""
    first, second, part = _TWO[str(at["truth"])]
    records = shared("precise two", at)
    group = (records.random(int(at["n"])) < part).astype(int)
    y = (records.random(len(group)) < np.where(group == 1, second, first)).astype(int)
    if at["method"] == "sample":
        table = NoisyTable(np.bincount(2 * group + y, minlength=4).astype(float), len(y), _NONE)
        ends = np.array([table.difference(0.05), table.share(1, 0.05)])
    else:
        found = _ours(cf.intervals.Difference("y ~ g"), pd.DataFrame({"y": y, "g": group}), "two", at, generator)
        ends = found[[0, 2]]
    return _told({"difference": (ends[0], second - first, 2.0), "share": (ends[1], second, 1.0)})


def _ours(
    method: Any, frame: pd.DataFrame, family: str, at: Mapping[str, Any], generator: np.random.Generator
) -> Array:
    """The ends of all intervals of a release, (parameters, 2)."""
    budget = float(at["budget"])
    privacy: Any = cf.GDP(budget) if at.get("gaussian") else cf.PureDP(budget)
    noise = SimulatedNoise(int(generator.integers(2**31)))
    release = cf.release(method, cf.read(frame, _SCHEMAS[family]), privacy, ledger=None, noise=noise)
    kind = "credible" if at["method"] == "noise-aware" else "confidence"
    found: Any = method.infer(release, cf.core.ResultOptions(kind=kind))
    return np.asarray(found.conf_int().to_numpy(), dtype=np.float64)


def _told(ends: Mapping[str, tuple[Array, float, float]]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name, ((low, high), truth, room) in ends.items():
        found[f"{name} covered"] = float(low <= truth <= high)
        found[f"{name} width"] = float(high - low)
        found[f"{name} dominated"] = float(high - low > room / 2)
    return found


def cell_blocks(
    grid: Mapping[str, Any], checks: Callable[[Sequence[Record]], list[Check]], titles: Mapping[str, str]
) -> tuple[Block, ...]:
    """Both blocks; grid: n and budget, and the noise."""

    def block(name: str, truths: tuple[str, ...], measure: Any, targets: tuple[str, ...], title: str) -> Block:
        return Block(
            name=name,
            grid={"truth": truths, **grid},
            methods=("noise-aware", "confidence", "sample"),
            measure=measure,
            quantities=tuple(
                Quantity(f"{target} {what}", of=f"{target} {'covered' if what == 'coverage' else what}")
                for target in targets
                for what in ("coverage", "width", "dominated")
            ),
            replications=100,
            full=1000,
            checks=checks,
            title=f"{title}: coverage and width of 95 % intervals",
            titles=titles,
        )

    return (
        block("levels", ("five",), measure_levels, ("large", "middle", "small"), "shares of five levels"),
        block("two", tuple(_TWO), measure_two, ("difference", "share"), "a difference of two shares"),
    )
