"""Processor time of one interval from released sums, against the bars of its page: a share 5 ms, a mean and a variance 20 ms or 1.5 s."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from confide.methods.intervals.count_posteriors import ColumnShape, share_posterior
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NormalSums, normal_posterior

_P = np.array([0.025, 0.975])
_RUNS = 21
_NS = (100, 1_000, 50_000, 1_000_000)
# Seconds that an interval may take.
_SHARE, _GAUSSIAN, _LAPLACE = 0.005, 0.02, 1.5


def _share(n: int, law: str, generator: np.random.Generator) -> Callable[[], Any]:
    """A share of .3 at epsilon or mu 1."""
    y = float(generator.binomial(n, 0.3) + NoiseLaw(law, 1.0).draws(generator, 1)[0])
    return lambda: share_posterior(y, n, NoiseLaw(law, 1.0)).quantile(_P)


def _moments(n: int, law: str, generator: np.random.Generator) -> Callable[[], Any]:
    """Mean and variance of a column with sd a quarter of its half-range, a tenth of it off the middle, at epsilon or mu 1."""
    laws = [NoiseLaw(law, scale) for scale in ((2.0, 1.3793) if law == "normal" else (2.0, 5.0))]
    z = generator.normal(0.1, 0.25, min(n, 100_000)).clip(-1, 1)
    z = np.tile(z, -(-n // len(z)))[:n]
    sums = [float(sum_ + law.draws(generator, 1)[0]) for sum_, law in zip((z.sum(), (z * z).sum()), laws, strict=True)]

    def both() -> None:
        grid = normal_posterior(NormalSums(n, *sums, laws[0], laws[1], 1e-3, 1.0, ColumnShape(0.0, 2.0)))
        grid.of(lambda m, s: m, "m").quantile(_P)
        grid.of(lambda m, s: s * s, "s").quantile(_P)

    return both


def run() -> list[dict[str, Any]]:
    """Medians over 21 intervals of as many data sets."""
    found = []
    for what, make, law, bar in (
        ("share, Gaussian noise", _share, "normal", _SHARE),
        ("share, geometric noise", _share, "geometric", _SHARE),
        ("mean and variance, Gaussian noise", _moments, "normal", _GAUSSIAN),
        ("mean and variance, Laplace noise", _moments, "laplace", _LAPLACE),
    ):
        for n in _NS:
            took = []
            for seed in range(_RUNS):
                call = make(n, law, np.random.default_rng(seed))
                start = process_time()
                call()
                took.append(process_time() - start)
            row = {"check": f"{what}, n = {n:,}", "seconds": median(took), "most": max(took), "bar": bar}
            print(
                f"{row['check']:48} {1e3 * median(took):8.2f} ms, at most {1e3 * max(took):8.2f} ms; bar {1e3 * bar:g} ms"
            )
            found.append({**row, "passed": median(took) <= bar})
    return found
