"""Distributions and rank tests of private records: what their intervals and tests hold, beside rivals at the same charge.

`tables.distribution`: quartiles of lognormal incomes within 0 to 200,000; length of an interval in probability, error of a rank, coverage,
for the distribution, the exponential mechanism on ranks (at the epsilon whose charge in a GDP ledger is the same mu^2), and no privacy.
`tables.ranks`: share of rejections at 5 %, equal and shifted groups, for the two-round rank test, the noisy statistic H_abs of Couch et
al. 2019 (group sizes known, its distribution simulated), and no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import exp, inf, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

import confide as cf
from confide.methods.intervals.quantile import Quantile
from confide.methods.tables.distribution import Distribution
from confide.methods.tests.rank import MannWhitney
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Drawing, Experiment, Printed, Quantity

__all__ = ["DISTRIBUTION", "RANKS"]

Array = NDArray[np.float64]

_QUARTILES = (0.25, 0.5, 0.75)
_LAW = stats.lognorm(0.7, scale=exp(10.5))
_MOST = 200_000.0
_SETTINGS = ("500, 1", "2000, 1", "10000, 0.3", "10000, 0.1")


def _setting(text: str) -> tuple[int, float]:
    n, mu = text.split(",")
    return int(n), float(mu)


@lru_cache(maxsize=8)
def _epsilon(mu: float) -> float:
    """The epsilon of pure privacy that a GDP ledger charges mu^2 for: mu = 2 Phi^-1(e^eps / (1 + e^eps))."""
    return float(optimize.brentq(lambda eps: 2 * stats.norm.ppf(exp(eps) / (1 + exp(eps))) - mu, 1e-6, 20.0))


def measure_quartiles(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One release: mean length in probability, squared error of the rank, coverage of the quartiles, and whether the band holds."""
    n, mu = _setting(str(at["setting"]))
    values = np.minimum(_LAW.rvs(n, random_state=generator), _MOST)
    found = {"sample": _sample, "quantile": _exponential, "distribution": _distribution}[str(at["method"])](
        values, mu, generator
    )
    estimates, low, high, band = found
    upto = [_probability(part) for part in (estimates, low, high)]
    truth = np.array(_QUARTILES)
    inside = (upto[1] <= truth + 1e-9) & (truth <= upto[2] + 1e-9)
    return {
        "length": float((upto[2] - upto[1]).mean()),
        "square": float(((upto[0] - truth) ** 2).mean()),
        "covered": float(inside.mean()),
        "band": band,
    }


def _probability(values: Array) -> Array:
    return np.where(values >= _MOST, 1.0, _LAW.cdf(np.clip(values, 0.0, _MOST)))


def _released(method: Any, values: Array, privacy: Any, generator: np.random.Generator, steps: int) -> Any:
    schema = cf.Schema({"income": cf.Numeric(0, _MOST, steps=steps)})
    noise = SimulatedNoise(int(generator.integers(2**31)))
    source = cf.read(pd.DataFrame({"income": values}), schema)
    return method.infer(cf.release(method, source, privacy, ledger=None, noise=noise))


def _distribution(values: Array, mu: float, generator: np.random.Generator) -> tuple[Array, Array, Array, float]:
    result = _released(Distribution("income"), values, cf.GDP(mu), generator, 2**20)
    frame, band = result.to_frame(), result.cdf()
    truth = _probability(band["x"].to_numpy())
    holds = bool(((band["band_low"] <= truth + 1e-9) & (truth <= band["band_high"] + 1e-9)).all())
    return frame["estimate"].to_numpy(), frame["low"].to_numpy(), frame["high"].to_numpy(), float(holds)


def _exponential(values: Array, mu: float, generator: np.random.Generator) -> tuple[Array, Array, Array, float]:
    result = _released(Quantile("income", _QUARTILES), values, cf.PureDP(_epsilon(mu)), generator, 1001)
    low, high = np.array(result.low), np.array(result.high)
    return np.array(result.estimates), np.where(low > -inf, low, 0.0), np.where(high < inf, high, _MOST), float("nan")


def _sample(values: Array, mu: float, generator: np.random.Generator) -> tuple[Array, Array, Array, float]:
    """Order statistics at the normal approximation of the binomial."""
    n, q = len(values), np.array(_QUARTILES)
    half = 1.96 * np.sqrt(q * (1 - q) / n)
    parts = [np.quantile(values, np.clip(q + shift, 0, 1), method="inverted_cdf") for shift in (0.0, -half, half)]
    return parts[0], parts[1], parts[2], float("nan")


def _printed_quartiles() -> dict[tuple[Any, ...], Printed]:
    ours = (0.093, 0.050, 0.030, 0.031)
    theirs = (0.612, 0.203, 0.130, 0.334)
    found: dict[tuple[Any, ...], Printed] = {}
    for setting, one, other in zip(_SETTINGS, ours, theirs, strict=True):
        found[setting, "distribution", "length"] = Printed(one, tolerance=0.1 * one, source="reference")
        found[setting, "quantile", "length"] = Printed(other, tolerance=0.25 * other, source="reference")
    return found


DISTRIBUTION = Experiment(
    "tables.distribution",
    "Quartiles of incomes by a distribution, by the exponential mechanism, and without privacy",
    (
        Block(
            "quartiles",
            {"setting": _SETTINGS},
            ("sample", "distribution", "quantile"),
            measure_quartiles,
            (
                Quantity("length", "mean"),
                Quantity("covered", "mean"),
                Quantity("squared error of rank", "mean", of="square"),
                Quantity("band", "mean"),
            ),
            replications=60,
            full=600,
            printed=_printed_quartiles(),
            drawing=Drawing("dots", "setting", "length", log="x", x_label="mean length of intervals, in probability"),
            titles={
                "sample": "without privacy",
                "distribution": "distribution, 256 bins",
                "quantile": "exponential mechanism on ranks",
            },
        ),
    ),
    sources=("development figures of the distribution, an independent prototype",),
    notes=(
        "setting: number of records, mu. The exponential mechanism has the epsilon that a GDP ledger charges the same mu^2 for.",
    ),
)

# rank tests -----------------------------------------------------------------------------------------------------------

_ROWS = ("50, 1", "50, 0.3", "200, 0.3", "2000, 0.1")
# In sds over sqrt(n/2): a t test without privacy finds a shift of this eight times in ten.
_SHIFT = 2.83


def measure_ranks(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Whether a test rejects at 5 %: groups of n normal records within 4 sds, of equal means and with a shift."""
    n, mu = _setting(str(at["setting"]))
    found: dict[str, float | str] = {}
    for name, shift in (("size", 0.0), ("power", _SHIFT * sqrt(2 / n))):
        one, other = generator.normal(shift, 1.0, n), generator.normal(0.0, 1.0, n)
        test = {"scipy": _scipy, "mann_whitney": _ranks, "h_abs": _absolute}[str(at["method"])]
        found[name] = float(test(one, other, mu, generator) < 0.05)
    return found


def _scipy(one: Array, other: Array, mu: float, generator: np.random.Generator) -> float:
    return float(stats.mannwhitneyu(one, other).pvalue)


def _ranks(one: Array, other: Array, mu: float, generator: np.random.Generator) -> float:
    frame = pd.DataFrame({"y": np.concatenate([one, other]), "g": ["a"] * len(one) + ["b"] * len(other)})
    schema = cf.Schema({"y": cf.Numeric(-4, 4), "g": cf.Categorical(["a", "b"])})
    noise = SimulatedNoise(int(generator.integers(2**31)))
    method = MannWhitney("y ~ g")
    result = method.infer(cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=noise))
    return float(np.nan_to_num(getattr(result, "pvalue"), nan=1.0))  # noqa: B009


def _h_abs(ranks: Array, n: int) -> float:
    """4 (N - 1)/N^2 times the sum of group size times |mean rank - (N + 1)/2|; one record moves it by at most 8."""
    whole = 2 * n
    gaps = abs(ranks[:n].mean() - (whole + 1) / 2) + abs(ranks[n:].mean() - (whole + 1) / 2)
    return float(4 * (whole - 1) / whole**2 * n * gaps)


@lru_cache(maxsize=16)
def _null(n: int, mu: float) -> tuple[float, ...]:
    generator = np.random.Generator(np.random.PCG64([17, n]))
    ranks = np.arange(1.0, 2 * n + 1)
    drawn = [_h_abs(generator.permutation(ranks), n) + 8 / mu * generator.standard_normal() for _ in range(4000)]
    return tuple(np.sort(drawn))


def _absolute(one: Array, other: Array, mu: float, generator: np.random.Generator) -> float:
    ranks = stats.rankdata(np.concatenate([one, other]))
    found = _h_abs(ranks, len(one)) + 8 / mu * generator.standard_normal()
    null = np.array(_null(len(one), mu))
    return float((1 + (null >= found).sum()) / (1 + len(null)))


RANKS = Experiment(
    "tables.ranks",
    "Two groups by ranks: the share of tests that reject",
    (
        Block(
            "groups",
            {"setting": _ROWS},
            ("scipy", "mann_whitney", "h_abs"),
            measure_ranks,
            (Quantity("size", "mean"), Quantity("power", "mean")),
            replications=100,
            full=1000,
            printed={
                **{
                    (row, "mann_whitney", "power"): Printed(value, 2, 1000, source="reference")
                    for row, value in zip(_ROWS, (0.74, 0.32, 0.69, 0.71), strict=True)
                },
                **{
                    (row, "h_abs", "power"): Printed(value, 2, 1000, source="reference")
                    for row, value in zip(_ROWS, (0.60, 0.20, 0.43, 0.45), strict=True)
                },
            },
            titles={
                "scipy": "Mann-Whitney without privacy",
                "mann_whitney": "ranks in two rounds",
                "h_abs": "noisy H_abs",
            },
        ),
    ),
    sources=("development figures, an independent prototype; Couch, Kazan, Shi, Bray, Groce 2019 for H_abs",),
    notes=("setting: records in each group, mu. The sizes of groups are known to H_abs, and not to the others.",),
)
