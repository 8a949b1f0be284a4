"""Tables and the tests on them: coverage of intervals, sizes and power of tests, and the loss of strategies, against the page's numbers.

Sums are drawn as a release would hold them (exact sums and Gaussian noise of the planned variance), and read by the code that reads
releases: the rounding of noise to a grid, far below it, is left out, and with it the cost of the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.methods.tables.comparing.chi_square import noise_matrix, table_test
from confide.methods.tables.draw import Margins, Strategy
from confide.methods.tables.intervals import MeanSums, count_interval, ratio, share_interval
from confide_lab.experiment import Block, Drawing, Experiment, Quantity

__all__ = ["COVERAGE", "MARGINALS", "TESTS"]

Array = NDArray[np.float64]
_Z = 1.959963984540054


# coverage of section 3 ------------------------------------------------------------------------------------------------


def counts(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of one noisy Poisson count covers its mean."""
    y = generator.poisson(at["mean"]) + at["sd"] * generator.standard_normal()
    low, high = count_interval(np.array([y]), at["sd"] ** 2, _Z)
    if at["method"] == "wald":
        half = _Z * np.sqrt(max(y, 0.0) + at["sd"] ** 2)
        low, high = np.array([y - half]), np.array([y + half])
    return {"covered": float(low[0] <= at["mean"] <= high[0]), "width": float(high[0] - low[0])}


def shares(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of a share covers it: count and number of records with independent noise of sd 1/mu."""
    n, p, sd = at["n"], at["p"], 1.0 / at["mu"]
    y = generator.binomial(n, p) + sd * generator.standard_normal()
    size = n + sd * generator.standard_normal()
    if at["method"] == "ours":
        low, high = share_interval(np.array([y]), np.array([size]), sd**2, sd**2, 0.0, _Z)
        return {"covered": float(low[0] <= p <= high[0])}
    share = float(np.clip(y / max(size, 1.0), 0.0, 1.0))
    sampling, noise = share * (1 - share) / max(size, 1.0), sd**2 * (1 + share**2) / max(size, 1.0) ** 2
    variance = {"wald": sampling + noise, "sampling only": sampling, "noise only": noise}[at["method"]]
    return {"covered": float(abs(share - p) <= _Z * np.sqrt(variance))}


def noisy_sums(u: Array, mu: float, generator: np.random.Generator) -> MeanSums:
    """Sums of groups (groups, n) with the noise of one column under add-remove."""
    groups, n = u.shape
    v, v0, v1 = u * u, 3 / mu**2, 1.5 / mu**2
    exact = (np.full(groups, float(n)), u.sum(1), (1 - v).sum(1), (u * (1 - v)).sum(1), (v * (1 - v)).sum(1))
    noise = (np.sqrt(v0 if k == 0 else v1) * generator.standard_normal(groups) for k in range(5))
    n_, s, q, c, d = (part + own for part, own in zip(exact, noise, strict=True))
    return MeanSums(n_, s, q, c, d, np.full(groups, v0), np.full(groups, v1))


def _column(law: str, shape: tuple[int, int], generator: np.random.Generator) -> Array:
    if law == "normal":
        return np.clip(0.2 + 0.25 * generator.standard_normal(shape), -1, 1)
    if law == "rare":
        return np.where(generator.random(shape) < 0.01, 1.0, -1.0)
    return np.clip(np.exp(10.3 + 0.8 * generator.standard_normal(shape)), 0, 5e5) / 2.5e5 - 1


@cache
def mean_of(law: str) -> float:
    """The mean of a column; of the clipped normal one to four digits, of the incomes by a million quantiles."""
    if law != "income":
        return {"normal": 0.2, "rare": -0.98}[law]
    x = np.exp(10.3 + 0.8 * stats.norm.ppf((np.arange(1_000_000) + 0.5) / 1_000_000))
    return float((np.clip(x, 0, 5e5) / 2.5e5 - 1).mean())


def means(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of a mean covers it."""
    sums, truth = noisy_sums(_column(at["law"], (1, at["n"]), generator), at["mu"], generator), mean_of(at["law"])
    if at["method"] == "sampling only":
        half = _Z * np.sqrt(sums.variance / sums.size)
        return {"covered": float(abs(sums.mean[0] - truth) <= half[0]), "weak": 0.0}
    low, high = sums.interval(_Z)
    weak = float(sums.n[0] < 3 * sums.skewness[0] ** 2)
    return {"covered": float(low[0] <= truth <= high[0]), "weak": weak}


def risks(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether the interval of a relative risk of two groups covers it."""
    sd, parts = 1.0 / at["mu"], []
    for n, p in ((at["n"], at["p1"]), (at["n"], at["p2"])):
        y, size = generator.binomial(n, p) + sd * generator.standard_normal(), n + sd * generator.standard_normal()
        limits = share_interval(np.array([y]), np.array([size]), sd**2, sd**2, 0.0, _Z)
        parts.append((np.clip(np.array([y / max(size, 1.0)]), 0, 1), *limits))
    _, low, high = ratio(parts[0], parts[1])
    truth = at["p1"] / at["p2"]
    if at["method"] == "delta":
        (p, *_), (q, *_) = parts
        with np.errstate(all="ignore"):
            var = sum((1 - s) / (s * at["n"]) + sd**2 * (1 + s * s) / (s * at["n"]) ** 2 for s in (p, q))
            gap = np.abs(np.log(p / q) - np.log(truth))
            # a share of 0 has no logarithm, and no interval
            return {"covered": float((np.isfinite(gap) & (gap <= _Z * np.sqrt(var)))[0]), "open": 0.0}
    return {"covered": float(low[0] <= truth <= high[0]), "open": float(low[0] == 0 or not np.isfinite(high[0]))}


_COVERED = (Quantity("coverage", of="covered"),)

COVERAGE = Experiment(
    "tables.coverage",
    "Coverage of the intervals of tables",
    (
        Block(
            "counts",
            {"mean": (1.0, 5.0, 20.0, 80.0), "sd": (0.5, 1.0, 2.0, 5.0, 20.0)},
            ("ours", "wald"),
            counts,
            _COVERED,
            1000,
            20_000,
            title="Counts: Poisson means with noise",
            drawing=Drawing("lines", "mean", "coverage", panels="sd", log="x"),
        ),
        Block(
            "shares",
            {"n": (200, 1000, 5000), "p": (0.005, 0.05, 0.1), "mu": (0.3, 1.0)},
            ("ours", "wald", "sampling only", "noise only"),
            shares,
            _COVERED,
            1000,
            20_000,
            title="Shares",
        ),
        Block(
            "means",
            {"law": ("normal", "income", "rare"), "n": (50, 200, 1000), "mu": (0.3, 1.0, 3.0)},
            ("ours", "sampling only"),
            means,
            (*_COVERED, Quantity("weak", of="weak")),
            500,
            title="Means of a column in [-1, 1]",
        ),
        Block(
            "risks",
            {"n": (100, 500), "p1": (0.02, 0.1), "p2": (0.04, 0.1), "mu": (0.3, 1.0)},
            ("ours", "delta"),
            risks,
            (*_COVERED, Quantity("open", of="open")),
            1000,
            20_000,
            title="Relative risks of two groups",
        ),
    ),
    sources=("evidence/methods/tables.md",),
    notes=("Sums are drawn with Gaussian noise of the planned variance, without the gate.",),
)


# tests of section 4 ---------------------------------------------------------------------------------------------------


def _law(shape: tuple[int, int], effect: float) -> Array:
    rows, columns = shape
    p = np.full(shape, 1.0 / (rows * columns))
    slope = np.outer(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns))
    return np.asarray(p * (1 + effect * slope))


def independence(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """p-values of one table: counts of the cells with independent noise of sd 1/mu."""
    shape, n, mu = at["table"], at["n"], at["mu"]
    exact = generator.multinomial(n, _law(shape, at["effect"]).ravel()).reshape(shape).astype(float)
    if at["method"] == "not private":
        found = exact[exact.sum(1) > 0][:, exact.sum(0) > 0]
        return {"rejected": float(stats.chi2_contingency(found, correction=False).pvalue < 0.05)}
    noisy = exact + generator.standard_normal(shape) / mu
    if at["method"] == "noisy Pearson":
        kept = np.maximum(noisy, 0.5)
        return {"rejected": float(stats.chi2_contingency(kept, correction=False).pvalue < 0.05)}
    margins = Margins.of(shape, {(0, 1): (noisy[None], 1 / mu**2)})
    own = table_test(noisy[None], noise_matrix(margins, (0, 1)), generator)
    return {"rejected": float(own.pvalue < 0.05)}


# Records in each group, mu, bounds in sds of the records.
_TWO: dict[str, tuple[int, int, float, float, float]] = {
    "2 x 50, 1": (50, 50, 1.0, -4.0, 4.0),
    "2 x 50, .3": (50, 50, 0.3, -4.0, 4.0),
    "2 x 200, .3": (200, 200, 0.3, -4.0, 4.0),
    "2 x 200, .3, bounds 10 sds": (200, 200, 0.3, -10.0, 10.0),
    "2 x 2000, .1": (2000, 2000, 0.1, -4.0, 4.0),
    "2 x 200, 1, exponential": (200, 200, 1.0, -4.0, 4.0),
    "50 and 200, 1": (50, 200, 1.0, -4.0, 4.0),
    "2 x 200, 1, off centre": (200, 200, 1.0, -3.0, 27.0),
}
# A difference that a t test without privacy finds in 80 of 100 runs, in its standard errors.
_FOUND = 2.83


def two_means(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Whether a t test rejects at 5 %, of equal means and of means that differ, and whether its interval covers."""
    one, other, mu, low, high = _TWO[at["setting"]]
    found: dict[str, float] = {}
    for name, covers, shift in (
        ("size", "covered, equal", 0.0),
        ("power", "covered, apart", _FOUND * np.sqrt(1 / one + 1 / other)),
    ):
        draw = generator.exponential if "exponential" in at["setting"] else generator.standard_normal
        y = [draw(size=n) - ("exponential" in at["setting"]) + by for n, by in ((one, shift), (other, 0.0))]
        if at["method"] == "not private":
            own = stats.ttest_ind(*y, equal_var=False)
            found[name], ends = float(own.pvalue < 0.05), tuple(own.confidence_interval())
        else:
            schema = cf.Schema({"y": cf.Numeric(low, high), "g": cf.Categorical(["a", "b"])})
            frame = pd.DataFrame({"y": np.concatenate(y), "g": np.repeat(["a", "b"], [one, other])})
            noise = cf.noise.SimulatedNoise(int(generator.integers(2**31)))
            test = cf.tests.ttest_ind("y ~ g", cf.read(frame, schema), privacy=cf.GDP(mu), ledger=None, noise=noise)
            found[name] = float(np.nan_to_num(test.pvalue, nan=1.0) < 0.05)
            ends = tuple(test.conf_int().iloc[0])
        found[covers] = float(ends[0] <= shift <= ends[1])
    return found


TESTS = Experiment(
    "tables.tests",
    "Size and power of the tests on tables",
    (
        Block(
            "independence",
            {
                "table": ((3, 3), (2, 2), (4, 5)),
                "n": (50, 200, 1000),
                "mu": (0.1, 0.3, 1.0),
                "effect": (0.0, 0.4),
            },
            ("not private", "noisy Pearson", "ours"),
            independence,
            (Quantity("rejected", of="rejected"),),
            200,
            title="Chi-square test of independence at 5 %",
        ),
        Block(
            "groups",
            {"setting": tuple(_TWO)},
            ("not private", "ours"),
            two_means,
            tuple(Quantity(name, of=name) for name in ("size", "power", "covered, equal", "covered, apart")),
            100,
            title="t test of two groups at 5 %",
        ),
    ),
    sources=("evidence/methods/tests.md",),
)


# strategies of section 2.1 --------------------------------------------------------------------------------------------


def _ways(sizes: tuple[int, ...], of: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(axes for k in of for axes in combinations(range(len(sizes)), k))


def marginals(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The loss of a strategy over the least of any linear Gaussian mechanism."""
    sizes, ways = at["sizes"], at["ways"]
    asked, closure = _ways(sizes, ways), _ways(sizes, tuple(range(max(ways) + 1)))
    best = Strategy.of(sizes, closure, asked)
    if at["method"] == "ours":
        return {"loss": best.loss / best.least}
    if at["method"] == "cells alone":
        return {"loss": len(asked) * prod(sizes) / best.least}
    equal = len(asked) * sum(prod(sizes[axis] for axis in axes) for axes in asked)
    if at["method"] == "equal split":
        return {"loss": equal / best.least}
    own = Strategy(sizes, closure, asked, dict.fromkeys(asked, Fraction(1, len(asked))), best.weights)
    return {"loss": own.loss / best.least}


_SIX = (9, 16, 7, 15, 6, 5)
_SETS = (
    ((12, 2), (0, 1, 2)),
    ((8, 2, 12), (0, 1, 2, 3)),
    (_SIX, (0, 1, 2)),
    (_SIX, (2,)),
    (_SIX, (1,)),
)
_STRATEGIES = ("cells alone", "equal split", "equal split + GLS", "ours")

MARGINALS = Experiment(
    "tables.marginals",
    "The loss of strategies for marginals",
    (
        Block(
            "loss",
            {"sizes": ((12, 2), (8, 2, 12), _SIX), "ways": ((0, 1, 2), (0, 1, 2, 3), (2,), (1,))},
            _STRATEGIES,
            marginals,
            (Quantity("loss", of="loss"),),
            1,
            exact=True,
            without=lambda at, method: (at["sizes"], at["ways"]) not in _SETS,
            title="Loss over the least of any linear Gaussian mechanism",
        ),
    ),
    sources=("evidence/methods/tables.md",),
)
