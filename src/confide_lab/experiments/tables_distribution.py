"""Distributions and rank tests of private records: what their intervals and tests hold, beside rivals at the same charge.

`tables.distribution`: quartiles of lognormal incomes within 0 to 200,000; length of an interval in probability, error of a rank, coverage,
for the distribution, the exponential mechanism on ranks (at the epsilon whose charge in a GDP ledger is the same mu^2), and no privacy.
`tables.ranks`: share of rejections at 5 %, equal and shifted groups, for the two-round rank test, the noisy statistic H_abs of Couch et
al. 2019 (group sizes known, its distribution simulated), and no privacy; how often the interval of the two-round test covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import exp, inf, isnan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

import confide as cf
from confide.methods.quantiles.method import Quantiles
from confide.methods.tests.rank import Kruskal, MannWhitney
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Drawing, Experiment, Quantity
from confide_lab.methods.quantile.ranks import Quantile

__all__ = ["DISTRIBUTION", "RANKS"]

Array = NDArray[np.float64]

_QUARTILES = (0.25, 0.5, 0.75)
_LAW = stats.lognorm(0.7, scale=exp(10.5))
_MOST = 200_000.0
_ZEROS = 0.45
_WITH_ZEROS = "2000, 1, 45 % zeros"
_SETTINGS = ("500, 1", "500, 0.3", "2000, 1", "2000, 0.3", "10000, 0.3", "10000, 0.1", _WITH_ZEROS)


def _setting(text: str) -> tuple[int, float, float]:
    """(number of records, mu, share of zeros)."""
    n, mu, *rest = text.split(",")
    return int(n), float(mu), _ZEROS if rest else 0.0


@lru_cache(maxsize=8)
def _epsilon(mu: float) -> float:
    """The epsilon of pure privacy that a GDP ledger charges mu^2 for: mu = 2 Phi^-1(e^eps / (1 + e^eps))."""
    return float(optimize.brentq(lambda eps: 2 * stats.norm.ppf(exp(eps) / (1 + exp(eps))) - mu, 1e-6, 20.0))


def measure_quartiles(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One release: mean length in probability, squared error of the rank, coverage of each quartile, and whether the band holds.

    With zeros among the incomes a rank is no number, and length and error are left out.
    """
    n, mu, zeros = _setting(str(at["setting"]))
    values = np.minimum(_LAW.rvs(n, random_state=generator), _MOST)
    if zeros:
        values = np.where(generator.random(n) < zeros, 0.0, values)
    found = {"sample": _sample, "quantile": _exponential, "distribution": _distribution}[str(at["method"])]
    estimates, low, high, band = found(values, mu, generator, zeros)
    q = np.array(_QUARTILES)
    truth = np.where(q <= zeros, 0.0, _LAW.ppf(np.maximum(q - zeros, 0.0) / (1 - zeros)))
    inside = (low <= truth + 1e-6) & (truth - 1e-6 <= high)
    upto = [_probability(part) for part in (estimates, low, high)]
    return {
        "length": float("nan") if zeros else float((upto[2] - upto[1]).mean()),
        "square": float("nan") if zeros else float(((upto[0] - q) ** 2).mean()),
        "covered": float(inside.mean()),
        **{f"q{k}": float(one) for k, one in enumerate(inside, start=1)},
        "band": band,
    }


def _probability(values: Array, zeros: float = 0.0) -> Array:
    """How many incomes lie below a value."""
    below = np.where(values > 0, zeros + (1 - zeros) * _LAW.cdf(np.clip(values, 0.0, _MOST)), 0.0)
    return np.where(values >= _MOST, 1.0, below)


def _released(method: Any, values: Array, privacy: Any, generator: np.random.Generator, steps: int) -> Any:
    schema = cf.Schema({"income": cf.Numeric(0, _MOST, steps=steps)})
    noise = SimulatedNoise(int(generator.integers(2**31)))
    source = cf.read(pd.DataFrame({"income": values}), schema)
    return method.infer(cf.release(method, source, privacy, ledger=None, noise=noise))


def _distribution(
    values: Array, mu: float, generator: np.random.Generator, zeros: float
) -> tuple[Array, Array, Array, float]:
    result = _released(Quantiles("income"), values, cf.GDP(mu), generator, 2**20)
    frame, band = result.to_frame(), result.cdf()
    truth = _probability(band["x"].to_numpy(), zeros)
    holds = bool(((band["band_low"] <= truth + 1e-9) & (truth <= band["band_high"] + 1e-9)).all())
    return frame["estimate"].to_numpy(), frame["ci_low"].to_numpy(), frame["ci_high"].to_numpy(), float(holds)


def _exponential(
    values: Array, mu: float, generator: np.random.Generator, zeros: float
) -> tuple[Array, Array, Array, float]:
    result = _released(Quantile("income", _QUARTILES), values, cf.PureDP(_epsilon(mu)), generator, 1001)
    low, high = np.array(result.low), np.array(result.high)
    return np.array(result.estimates), np.where(low > -inf, low, 0.0), np.where(high < inf, high, _MOST), float("nan")


def _sample(
    values: Array, mu: float, generator: np.random.Generator, zeros: float
) -> tuple[Array, Array, Array, float]:
    """Order statistics at the normal approximation of the binomial."""
    n, q = len(values), np.array(_QUARTILES)
    half = 1.96 * np.sqrt(q * (1 - q) / n)
    parts = [np.quantile(values, np.clip(q + shift, 0, 1), method="inverted_cdf") for shift in (0.0, -half, half)]
    return parts[0], parts[1], parts[2], float("nan")


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
                *(Quantity(f"q{k}", "mean") for k in (1, 2, 3)),
                Quantity("squared error of rank", "mean", of="square"),
                Quantity("band", "mean"),
            ),
            replications=100,
            drawing=Drawing("dots", "setting", "length", log="x", x_label="mean length of intervals, in probability"),
            titles={
                "sample": "without privacy",
                "distribution": "distribution, bins laid where the records are",
                "quantile": "exponential mechanism on ranks",
            },
        ),
    ),
    sources=("no paper",),
    notes=(
        "setting: number of records, mu. q1, q2, q3: coverage of each quartile.",
        "The exponential mechanism has the epsilon that a GDP ledger charges the same mu^2 for.",
    ),
)

# rank tests -----------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Two groups of normal records: sizes, sds, mu, and the bounds in units of the larger sd."""

    sizes: tuple[int, int]
    mu: float
    sds: tuple[float, float] = (1.0, 1.0)
    bounds: float = 4.0


_EQUAL = ("50, 1", "50, 0.3", "200, 0.3", "2000, 0.1")
_ROWS = {
    "50, 1": _Row((50, 50), 1.0),
    "50, 0.3": _Row((50, 50), 0.3),
    "200, 0.3": _Row((200, 200), 0.3),
    "200, 0.3, bounds 10 sds": _Row((200, 200), 0.3, bounds=10.0),
    "2000, 0.1": _Row((2000, 2000), 0.1),
    "50 and 200, 1, sds 3 and 1": _Row((50, 200), 1.0, (3.0, 1.0)),
    "50 and 200, 1, sds 1 and 3": _Row((50, 200), 1.0, (1.0, 3.0)),
    "100 and 400, 0.3, sds 3 and 1": _Row((100, 400), 0.3, (3.0, 1.0)),
    "200, 0.3, sds 3 and 1": _Row((200, 200), 0.3, (3.0, 1.0)),
}
# In standard errors of a difference of means: a t test without privacy finds a shift of this eight times in ten.
_SHIFT = 2.83


def measure_ranks(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Whether a test rejects at 5 % and its interval covers: normal records, of equal means and with a shift."""
    row = _ROWS[str(at["setting"])]
    found: dict[str, float | str] = {}
    step = _SHIFT * sqrt(sum(sd**2 / n for sd, n in zip(row.sds, row.sizes, strict=True)))
    for name, covers, shift in (("size", "covered, equal", 0.0), ("power", "covered, shifted", step)):
        one = generator.normal(shift, row.sds[0], row.sizes[0])
        other = generator.normal(0.0, row.sds[1], row.sizes[1])
        test = {"scipy": _scipy, "mann_whitney": _ranks, "h_abs": _absolute}[str(at["method"])]
        pvalue, (low, high) = test(one, other, row, generator)
        truth = float(stats.norm.cdf(shift / sqrt(row.sds[0] ** 2 + row.sds[1] ** 2))) - 0.5
        found[name] = float(pvalue < 0.05)
        found[covers] = float("nan") if isnan(low) else float(low <= truth <= high)
    return found


_Found = tuple[float, tuple[float, float]]
_NO_INTERVAL = (float("nan"), float("nan"))


def _scipy(one: Array, other: Array, row: _Row, generator: np.random.Generator) -> _Found:
    return float(stats.mannwhitneyu(one, other).pvalue), _NO_INTERVAL


def _ranks(one: Array, other: Array, row: _Row, generator: np.random.Generator) -> _Found:
    frame = pd.DataFrame({"y": np.concatenate([one, other]), "g": ["a"] * len(one) + ["b"] * len(other)})
    ends = row.bounds * max(row.sds)
    schema = cf.Schema({"y": cf.Numeric(-ends, ends), "g": cf.Categorical(["a", "b"])})
    noise = SimulatedNoise(int(generator.integers(2**31)))
    method = MannWhitney("y ~ g")
    result: Any = method.infer(cf.release(method, cf.read(frame, schema), cf.GDP(row.mu), ledger=None, noise=noise))
    # without a p-value (a group that is not seen) nothing is rejected; without an interval nothing is covered or missed
    interval = result.conf_int().to_numpy(dtype=float) if result.status == "valid" else np.array([_NO_INTERVAL])
    low, high = interval[0]
    return float(np.nan_to_num(result.pvalue, nan=1.0)), (float(low), float(high))


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


def _absolute(one: Array, other: Array, row: _Row, generator: np.random.Generator) -> _Found:
    ranks = stats.rankdata(np.concatenate([one, other]))
    found = _h_abs(ranks, len(one)) + 8 / row.mu * generator.standard_normal()
    null = np.array(_null(len(one), row.mu))
    return float((1 + (null >= found).sum()) / (1 + len(null))), _NO_INTERVAL


def _unequal(at: Mapping[str, Any], method: str) -> bool:
    """H_abs is compared in rows of one size and spread."""
    row = _ROWS[str(at["setting"])]
    return method == "h_abs" and (row.sizes[0] != row.sizes[1] or row.sds[0] != row.sds[1])


_SEVERAL = {
    "4 x 50, 1": ((50,) * 4, 1.0, (1.0,) * 4),
    "4 x 200, 0.3": ((200,) * 4, 0.3, (1.0,) * 4),
    "50, 200 and 100, 1, sds 3, 1 and 2": ((50, 200, 100), 1.0, (3.0, 1.0, 2.0)),
    "3 x 200, 0.3, sds 3, 1 and 1": ((200,) * 3, 0.3, (3.0, 1.0, 1.0)),
}


def measure_several(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Whether the test of several groups rejects at 5 %: normal records of equal means."""
    sizes, mu, sds = _SEVERAL[str(at["setting"])]
    samples = [generator.normal(0.0, sd, n) for n, sd in zip(sizes, sds, strict=True)]
    if at["method"] == "scipy":
        return {"size": float(stats.kruskal(*samples).pvalue < 0.05)}
    levels = [f"g{k}" for k in range(len(sizes))]
    frame = pd.DataFrame({"y": np.concatenate(samples), "g": np.repeat(levels, sizes)})
    schema = cf.Schema({"y": cf.Numeric(-4 * max(sds), 4 * max(sds)), "g": cf.Categorical(levels)})
    noise, method = SimulatedNoise(int(generator.integers(2**31))), Kruskal("y ~ g")
    result: Any = method.infer(cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=noise))
    return {"size": float(np.nan_to_num(result.pvalue, nan=1.0) < 0.05)}


RANKS = Experiment(
    "tables.ranks",
    "Groups by ranks: the share of tests that reject",
    (
        Block(
            "groups",
            {"setting": tuple(_ROWS)},
            ("scipy", "mann_whitney", "h_abs"),
            measure_ranks,
            tuple(Quantity(name, "mean") for name in ("size", "power", "covered, equal", "covered, shifted")),
            replications=200,
            titles={
                "scipy": "Mann-Whitney without privacy",
                "mann_whitney": "ranks in two rounds",
                "h_abs": "noisy H_abs",
            },
            without=_unequal,
        ),
        Block(
            "several",
            {"setting": tuple(_SEVERAL)},
            ("scipy", "kruskal"),
            measure_several,
            (Quantity("size", "mean"),),
            replications=200,
            titles={"scipy": "Kruskal and Wallis without privacy", "kruskal": "ranks in two rounds"},
        ),
    ),
    sources=("Couch, Kazan, Shi, Bray, Groce 2019 for H_abs",),
    notes=(
        "setting: records in each group, mu; bounds 4 of the larger sd unless said.",
        "The sizes of groups are known to H_abs, and not to the others.",
    ),
)
