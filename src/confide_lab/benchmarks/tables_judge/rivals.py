"""Counts, means and quartiles of OpenDP and diffprivlib, at a guarantee equal to GDP(mu) as far as there is one.

OpenDP's Gaussian noise is charged in zCDP, and rho = mu^2/2 is what GDP(mu) implies: the same noise, so nothing but what a package does
with it differs. Scales are those that OpenDP's own maps charge rho for; the tree's one (a record moves one number in each of its layers, a
length of sqrt(layers), where OpenDP charges for layers) also at its exact length. diffprivlib promises (epsilon, 0), which no mu equals; it
runs in an environment of its own (`confide_lab.benchmarks.rival`), once for all samples of a cell.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PROBABILITIES", "Diffprivlib", "OpenDP", "Sample"]

Array = np.ndarray
PROBABILITIES = (0.25, 0.5, 0.75)
_BINS = 256


@dataclass(frozen=True)
class Sample:
    """codes: the cell of each record; groups: of the means and quartiles; values, within (low, high)."""

    codes: Array
    groups: Array
    values: Array


@dataclass(frozen=True, eq=False)
class OpenDP:
    """OpenDP at rho = mu^2/2. cells, groups: how many there are; low, high: public bounds."""

    mu: float
    cells: int
    groups: int
    low: float
    high: float

    def _modules(self) -> Any:
        import opendp.prelude as dp

        dp.enable_features("contrib", "honest-but-curious")
        return dp

    def _scale(self, make: Callable[[float], Any], rho: float) -> float:
        return float(self._modules().binary_search_param(make, d_in=1, d_out=rho, T=float, bounds=(1e-3, 1e12)))

    def _counter(self, cells: int) -> Any:
        dp = self._modules()
        space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
        return dp.t.make_count_by_categories(
            *space, categories=list(range(cells)), null_category=False, MO="L2Distance<i32>", TOA="i32"
        )

    def counts(self, samples: Sequence[Sample]) -> tuple[Array, Array]:
        """(samples, cells) and the sd of the noise, which its accuracy is printed from."""
        dp = self._modules()
        base = self._counter(self.cells)
        scale = self._scale(lambda s: base >> dp.m.then_gaussian(s), self.mu**2 / 2)
        measure = base >> dp.m.then_gaussian(scale)
        found = [measure(one.codes.astype(int).tolist())[: self.cells] for one in samples]
        return np.array(found, dtype=float), np.full((len(samples), self.cells), scale)

    def means(self, samples: Sequence[Sample]) -> tuple[Array, Array]:
        """Of all records and of each group: noisy sum over noisy count of each, half the charge for either; the totals add them up.

        The error is that of the noise alone, to first order.
        """
        dp = self._modules()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        adding = space >> dp.t.then_clamp((self.low, self.high)) >> dp.t.then_sum()
        counting = space >> dp.t.then_count()
        half = self.mu**2 / 4
        s_scale = self._scale(lambda s: adding >> dp.m.then_gaussian(s), half)
        n_scale = self._scale(lambda s: counting >> dp.m.then_gaussian(s), half)
        sums, counts = adding >> dp.m.then_gaussian(s_scale), counting >> dp.m.then_gaussian(n_scale)
        estimates, errors = [], []
        for one in samples:
            parts = [one.values[one.groups == g].tolist() for g in range(self.groups)]
            s, n = np.array([sums(part) for part in parts]), np.array([counts(part) for part in parts], dtype=float)
            s, n = np.append(s.sum(), s), np.maximum(np.append(n.sum(), n), 1.0)
            times = np.append(self.groups, np.ones(self.groups))
            mean = np.clip(s / n, self.low, self.high)
            estimates.append(mean)
            errors.append(np.sqrt(times * (s_scale**2 + (mean * n_scale) ** 2)) / n)
        return np.array(estimates), np.array(errors)

    def quartiles(self, samples: Sequence[Sample]) -> Array:
        """Of each group, (samples, groups, 3): the exponential mechanism on 256 even candidates, a third of the charge each."""
        dp = self._modules()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        edges = np.linspace(self.low, self.high, _BINS + 1).tolist()

        def make(alpha: float, scale: float) -> Any:
            output = dp.zero_concentrated_divergence()
            return dp.m.make_private_quantile(*space, output, candidates=edges, alpha=alpha, scale=scale)

        measures = []
        for alpha in PROBABILITIES:
            scale = self._scale(lambda s, a=alpha: make(a, s), self.mu**2 / 6)  # type: ignore[misc]
            measures.append(make(alpha, scale))
        found = []
        for one in samples:
            parts = [one.values[one.groups == g].tolist() for g in range(self.groups)]
            found.append([[float(measure(part)) for measure in measures] for part in parts])
        return np.array(found)

    def tree_quartiles(self, samples: Sequence[Sample], *, exact: bool) -> Array:
        """The same from a tree of counts made consistent. exact: noise for the length sqrt(layers)."""
        dp = self._modules()
        branching = dp.t.choose_branching_factor(size_guess=_BINS)
        tree = self._counter(_BINS) >> dp.t.then_b_ary_tree(leaf_count=_BINS, branching_factor=branching)
        scale = self._scale(lambda s: tree >> dp.m.then_gaussian(s), self.mu**2 / 2)
        if exact:
            layers = int(tree.map(1))
            scale = float(np.sqrt(layers)) / self.mu
        measure = tree >> dp.m.then_gaussian(scale)
        joined = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
        edges = np.linspace(self.low, self.high, _BINS + 1)
        read = dp.t.make_quantiles_from_counts(edges.tolist(), alphas=list(PROBABILITIES), F="f64")
        found = []
        for one in samples:
            bins = np.clip(((one.values - self.low) / (self.high - self.low) * _BINS).astype(int), 0, _BINS - 1)
            own = [read(joined(measure(bins[one.groups == g].tolist()))) for g in range(self.groups)]
            found.append(own)
        return np.array(found, dtype=float)


_SERVER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import tools
ask = json.load(open(sys.argv[1]))
data = np.load(ask["data"])
eps, bounds, groups, cells = ask["epsilon"], tuple(ask["bounds"]), ask["groups"], ask["cells"]
ends, counts, means, quartiles = data["ends"], [], [], []
def quantile(part, q, seed):
    # it raises where a group is empty or its exponentials vanish, which is an answer of its own: none
    try:
        return float(tools.quantile(part, q, epsilon=eps / 3, bounds=bounds, random_state=seed)) if len(part) else float("nan")
    except RuntimeError:
        return float("nan")
for k, (start, stop) in enumerate(zip(ends[:-1], ends[1:])):
    code, group, value = (data[name][start:stop] for name in ("codes", "groups", "values"))
    counts.append(tools.histogram(code, epsilon=eps, bins=cells, range=(0, cells), random_state=k)[0].tolist())
    parts = [value[group == g] for g in range(groups)]
    # half for all records, half for the groups, which are disjoint
    means.append([float(tools.mean(part, epsilon=eps / 2, bounds=bounds, random_state=7 * k + j)) if len(part) else float("nan")
                  for j, part in enumerate([value, *parts])])
    quartiles.append([[quantile(part, q, 5 * k + j) for j, q in enumerate((.25, .5, .75))] for part in parts])
json.dump({"counts": counts, "means": means, "quartiles": quartiles}, open(sys.argv[2], "w"))
"""


@dataclass(frozen=True)
class Diffprivlib:
    """diffprivlib's tools, asked once for all samples. python: its interpreter; folder: of the files between the two."""

    python: str
    folder: Path

    def answers(
        self, samples: Sequence[Sample], epsilon: float, cells: int, groups: int, bounds: tuple[float, float]
    ) -> dict[str, Array]:
        """counts (samples, cells), means (samples, 1 + groups), quartiles (samples, groups, 3)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data, ask, reply = (self.folder / name for name in ("rival.npz", "rival.json", "reply.json"))
        ends = np.cumsum([0, *(len(one.codes) for one in samples)])
        codes, of_groups, values = (
            np.concatenate([getattr(one, name) for one in samples]) for name in ("codes", "groups", "values")
        )
        np.savez(data, ends=ends, codes=codes, groups=of_groups, values=values)
        asked = {"data": str(data), "epsilon": epsilon, "bounds": bounds, "groups": groups, "cells": cells}
        ask.write_text(json.dumps(asked))
        subprocess.run([self.python, "-c", _SERVER, str(ask), str(reply)], check=True)
        return {name: np.array(values) for name, values in json.loads(reply.read_text()).items()}
