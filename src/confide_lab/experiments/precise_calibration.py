"""`precise.calibration`: simulation-based calibration of the posteriors of `cf.intervals` (Talts et al. 2018), every family and noise.

A parameter is drawn from the prior, records from the model, a release from the records; the posterior's distribution function at the
parameter is then uniform on (0, 1), exactly for counts, up to the central limit theorem for mean and variance. Uniformity is tested by
Kolmogorov's statistic, at a level that is shared by all cells: one valid run in 1,000 fails.

A line has an improper prior, flat in (b, s^2) with |Q| for the design. It is met by drawing from it over a wide box and keeping the
releases that no parameter outside the box can give but with a chance of next to nothing: given such a release the box does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from confide.methods.intervals.count_posteriors import (
    Cells,
    PoissonSum,
    level_posterior,
    rate_posterior,
    share_posterior,
)
from confide.methods.intervals.difference import contrasts
from confide.methods.intervals.marginals import Marginal, NoiseLaw, SampledMarginal
from confide.methods.intervals.normal_posteriors import NoisyMoments, NormalSums, line_posterior, normal_posterior
from confide_lab.experiment import Block, Check, Experiment, Quantity, Record
from confide_lab.judging import told

__all__ = ["ALARM", "CALIBRATION", "FAMILIES", "rank_of", "uniformity"]

Array = NDArray[np.float64]

#: How often a run of valid posteriors fails.
ALARM = 1e-3
#: Ranks of a cell below which a shift of a fifth of a standard deviation goes unseen.
_RANKS = 50
_CAP, _LEVELS, _LEAST_SD = 25, 3, 0.05
#: family -> records of a data set.
FAMILIES = {
    "bernoulli": 100,
    "categorical": 100,
    "poisson": 100,
    "mean": 400,
    "variance": 400,
    "difference": 200,
    "slope": 100,
}


def rank_of(family: str, law: str, budget: float, generator: np.random.Generator, fault: float = 1.0) -> float:
    """The posterior's distribution function at the parameter that the records came from.

    law: "laplace" (pure epsilon) or "normal" (mu); fault: the noise's scale as the posterior takes it, over the true one.
    """
    drawn: dict[str, Callable[..., tuple[Marginal, float]]] = {
        "bernoulli": _share,
        "categorical": _level,
        "poisson": _rate,
        "mean": _mean,
        "variance": _variance,
        "difference": _difference,
        "slope": _slope,
    }
    posterior, truth = drawn[family](FAMILIES[family], law, budget, generator, fault)
    return float(posterior.cdf(np.array([truth]))[0])


def _whole(law: str, scale: float) -> NoiseLaw:
    return NoiseLaw("normal" if law == "normal" else "geometric", scale)


def _taken(law: NoiseLaw, fault: float) -> NoiseLaw:
    return NoiseLaw(law.name, law.scale * fault)


def _share(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    p, noise = g.beta(0.5, 0.5), _whole(law, 1 / budget)
    y = g.binomial(n, p) + noise.draws(g, 1)[0]
    return share_posterior(float(y), n, _taken(noise, fault)), p


def _level(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    first = g.beta(0.5, 0.5)
    p = np.r_[first, (1 - first) * g.dirichlet(np.ones(_LEVELS - 1))]
    noise = _whole(law, (2**0.5 if law == "normal" else 2.0) / budget)
    y = g.multinomial(n, p) + noise.draws(g, _LEVELS)
    return level_posterior(y, 0, n, _taken(noise, fault)), float(first)


def _difference(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    prior = np.full(4, 0.5)
    p = g.dirichlet(prior)
    noise = _whole(law, (2**0.5 if law == "normal" else 2.0) / budget)
    y = g.multinomial(n, p) + noise.draws(g, 4)
    drawn = contrasts(Cells(y, n, _taken(noise, fault), prior).draws(g, 4_000))[:, 0]
    return SampledMarginal.of(drawn), float(contrasts(p[None])[0, 0])


def _rate(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    rate, noise = g.uniform(0, _CAP), _whole(law, _CAP / budget)
    y = np.minimum(g.poisson(rate, n), _CAP).sum() + noise.draws(g, 1)[0]
    return rate_posterior(PoissonSum(n, float(y), _taken(noise, fault), _CAP)), rate


def _normal(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Any, float, float]:
    m, s = g.uniform(-1, 1), g.uniform(_LEAST_SD, 1)
    z = np.clip(g.normal(m, s, n), -1, 1)
    parts = (2.0, 2 / 1.45) if law == "normal" else (2.0, 2 / 0.4)
    laws = [NoiseLaw(law, part / budget) for part in parts]
    first, second = (float(v + own.draws(g, 1)[0]) for v, own in zip((z.sum(), (z * z).sum()), laws, strict=True))
    sums = NormalSums(n, first, second, _taken(laws[0], fault), _taken(laws[1], fault), _LEAST_SD, 1.0)
    return normal_posterior(sums), m, s


def _mean(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    grid, m, _ = _normal(n, law, budget, g, fault)
    return grid.of(lambda m, s: m, "m"), m


def _variance(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    grid, _, s = _normal(n, law, budget, g, fault)
    return grid.of(lambda m, s: s * s, "s"), s * s


# Of a line through the origin, which releases are kept: by what they say of the slope and of the variance of errors.
_SLOPE, _SPREAD = 1.0, 0.3


def _slope(n: int, law: str, budget: float, g: np.random.Generator, fault: float) -> tuple[Marginal, float]:
    # two numbers in [-1, 1]: products move by 2 in l2, squares weigh 1/sqrt 2; by 2 in l1, squares 1/2
    off, square = (NoiseLaw(law, part / budget) for part in ((2.0, 2 * 2**0.5) if law == "normal" else (2.0, 4.0)))
    reach = 5.5 if law == "normal" else 15.0  # beyond: a chance of 1e-6
    far_off, far = reach * off.scale, reach * square.scale
    low = max(0.2 * n, far)
    high = low + 6 * far
    # what may stand behind a release that is kept: its design's square is at most halved by the noise
    slope = 2 * _SLOPE + 2 * far_off / low + 1.0
    spread = 2 * (_SPREAD + 2 * (far * (1 + _SLOPE**2) + 2 * _SLOPE * far_off) / n)
    while True:
        q = float(np.sqrt(g.uniform(low**2, high**2)))  # density |Q|
        b, s2 = g.uniform(-slope, slope), g.uniform(0, spread)
        c = q * b + np.sqrt(s2 * q) * g.standard_normal()
        t = s2 * g.chisquare(n - 1) + c * c / q
        y = np.array([q, c, t]) + np.array([square.draws(g, 1)[0], off.draws(g, 1)[0], square.draws(g, 1)[0]])
        inside = low + far < y[0] < high - far
        if inside and abs(y[1] / y[0]) < _SLOPE and (y[2] - y[1] ** 2 / y[0]) / n < _SPREAD:
            break
    matrix = np.array([[y[0], y[1]], [y[1], y[2]]])
    found = line_posterior(NoisyMoments(matrix, _taken(off, fault), _taken(square, fault), n, False), g)
    return found.marginal(np.ones(1)), float(b)


def uniformity(ranks: Sequence[float]) -> float:
    """The p-value of Kolmogorov's test that ranks are uniform.

    >>> uniformity(np.linspace(0.005, 0.995, 100)) > 0.99, uniformity(np.linspace(0.3, 0.7, 100)) < 1e-6
    (True, True)
    """
    return float(stats.kstest(np.asarray(ranks), "uniform").pvalue)


# the experiment -----------------------------------------------------------------------------------------------------------


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One rank, and how far it is from a half."""
    rank = rank_of(str(at["family"]), str(at["method"]), float(at["budget"]), generator)
    return {"rank": rank, "square": 12 * (rank - 0.5) ** 2}


def _tested(frame: pd.DataFrame) -> list[Record]:
    found = []
    for (family, budget, method), part in frame.groupby(["family", "budget", "method"], sort=False):
        p = uniformity(part["rank"].to_list())
        found.append(
            {
                "setting": {"cells": f"{family}, budget {budget:g}"},
                "method": method,
                "quantity": "p of uniform ranks",
                "statistic": "p",
                "value": p,
                "error": None,
                "mean": p,
                "standard_error": None,
                "median": p,
                "replications": len(part),
                "no_answer": 0,
                "failed": 0,
            }
        )
    return found


def _judged(records: Sequence[Record]) -> list[Check]:
    ps = {f"{row['setting']['cells']} {row['method']}": row["value"] for row in records if row["statistic"] == "p"}
    level = ALARM / max(len(ps), 1)
    low = [f"{name} {p:.1e}" for name, p in ps.items() if p < level]
    said = f"{len(ps)} cells, least p {min(ps.values(), default=1.0):.2g}, level {level:.1e}" + "".join(
        f"; {one}" for one in low
    )
    runs = min((row["replications"] for row in records if row["statistic"] == "p"), default=0)
    return [told("ranks of the truth are uniform", not low, said, runs=runs, least=_RANKS)]


CALIBRATION = Experiment(
    "precise.calibration",
    "Simulation-based calibration of the posteriors of one parameter",
    (
        Block(
            name="ranks",
            grid={"family": tuple(FAMILIES), "budget": (0.1, 5.0)},
            methods=("laplace", "normal"),
            measure=measure,
            quantities=(Quantity("rank"), Quantity("square", label="12 (rank - 1/2)^2")),
            replications=200,
            full=2000,
            overall=_tested,
            checks=_judged,
            title="the posterior's distribution function at the truth: mean 1/2, mean of 12 (u - 1/2)^2 1, uniform",
            titles={"laplace": "Laplace noise, epsilon", "normal": "Gaussian noise, mu"},
        ),
    ),
    sources=("Talts et al. 2018; priors of confide.methods.intervals",),
)
