"""`precise.figure4`, `precise.table3`, `precise.table4`: the paper's versions beside noise-aware posteriors; seconds; real proportions.

The four versions of PRECISE ("+" or "-": negative counts set to 0 or not; m or m*: the number of draws or the noisy total) carry no
guarantee. Figure 4's and Table 4's order of columns is lost in the text: the printed columns stand beside ours by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.methods.intervals.count_posteriors import PoissonSum, level_posterior, rate_posterior, share_posterior
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NormalSums, normal_posterior
from confide_lab.experiment import Block, Drawing, Experiment, Printed, Quantity
from confide_lab.experiments.measures import shared
from confide_lab.experiments.precise_families import CAP, HALF, drawn, noise_of, rival, sums_of
from confide_lab.layouts import Layout
from confide_lab.published.interval_rivals import bag_of_little_bootstraps, deconvolved_bootstrap, repro_normal
from confide_lab.published.precise import C0, draws_of, precise

__all__ = ["FIGURE4", "TABLE3", "TABLE4", "VERSIONS"]

Array = NDArray[np.float64]

#: The name of a version -> (nonneg, total).
VERSIONS = {"(+, m*)": (True, "m*"), "(+, m)": (True, "m"), "(-, m*)": (False, "m*"), "(-, m)": (False, "m")}
_P = np.array([0.025, 0.975])


def _version(
    posterior: Any, gap: float, width: float, bounds: tuple[float, float], name: str, epsilon: float, g: Any
) -> Array:
    """Both ends of one version of the published mechanism."""
    nonneg, total = VERSIONS[name]
    draws = np.atleast_1d(posterior.rvs(draws_of(gap, width), random_state=g))
    found = precise(draws, g, bounds=bounds, width=width, epsilon=epsilon, nonneg=nonneg, total=total)
    return np.array([found["lower"], found["upper"]])


# Figure 4 -----------------------------------------------------------------------------------------------------------------

_TRUTHS = {"bernoulli": 0.3, "poisson": 10.0, "mean": 0.0, "variance": 1.0}


def measure_versions(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Whether the interval of one target holds the truth, and its width."""
    target, n, epsilon, method = str(at["target"]), int(at["n"]), float(at["budget"]), str(at["method"])
    family, truth = ("normal" if target in ("mean", "variance") else target), _TRUTHS[target]
    values = drawn(family, 0.0 if family == "normal" else truth, n, shared("precise figure 4", at))
    name = {"bernoulli": "share", "poisson": "rate"}.get(target, target)
    if method == "sample":
        low, high = rival("sample", family, values, truth, epsilon, False, generator)[name]
    elif method == "noise-aware":
        low, high = _ours(target, family, values, epsilon, generator)
    else:
        low, high = _version(*_published(target, values, truth), method, epsilon, generator)
    return {"covered": float(low <= truth <= high), "width": float(high - low)}


def _ours(
    target: str, family: str, values: Array, epsilon: float, g: np.random.Generator, *, gaussian: bool = False
) -> Array:
    """Of the noise-aware posterior, from noise as the library's. gaussian: epsilon is mu, and noise is Gaussian."""
    n, laws = len(values), noise_of(family, epsilon, gaussian)
    noisy = sums_of(family, values) + np.array([law.draws(g, 1)[0] for law in laws])
    if target == "bernoulli":
        return share_posterior(float(noisy[0]), n, laws[0]).quantile(_P)
    if target == "poisson":
        return rate_posterior(PoissonSum(n, float(noisy[0]), laws[0], CAP)).quantile(_P)
    grid = normal_posterior(NormalSums(n, float(noisy[0]), float(noisy[1]), laws[0], laws[1], 0.05 / HALF, 1.0))
    if target == "mean":
        return HALF * grid.of(lambda m, s: m, "m").quantile(_P)
    return HALF**2 * grid.of(lambda m, s: s * s, "s").quantile(_P)


def _published(target: str, values: Array, truth: float) -> tuple[Any, float, float, tuple[float, float]]:
    """(posterior, G_0 at the truth, width of a bin, bounds)."""
    n = len(values)
    if target == "bernoulli":
        k = values.sum()
        return stats.beta(1 + k, 1 + n - k), C0 / (truth * (1 - truth)), 0.005, (0.0, 1.0)
    if target == "poisson":
        return stats.gamma(0.1 + values.sum(), scale=1 / (0.1 + n)), C0 * CAP / truth, 0.02, (0.0, float(CAP))
    s2 = values.var(ddof=1)
    if target == "mean":
        return stats.t(n - 1, values.mean(), sqrt(s2 / n)), C0 * 2 * HALF, 0.002, (-HALF, HALF)
    return stats.invgamma((n - 1) / 2, scale=(n - 1) * s2 / 2), C0 * 4 * HALF**2 / 2, 0.001, (0.0, HALF**2)


def _panel(target: str) -> Block:
    return Block(
        name=target,
        grid={"target": (target,), "n": (100, 500, 1000, 5000), "budget": (0.1, 0.5, 1.0, 5.0)},
        methods=(*VERSIONS, "noise-aware", "sample"),
        measure=measure_versions,
        quantities=(Quantity("coverage", of="covered"), Quantity("width")),
        replications=50,
        full=1000,
        title=f"{target}: coverage and width of 95 % intervals, the paper's four versions beside ours",
        drawing=Drawing("lines", "n", "coverage", panels="budget", log="x"),
        titles={"noise-aware": "noise-aware posterior", "sample": "no privacy"},
    )


_NOTES = ("the four versions are run as published, with G_0 of the truth, and carry no guarantee (docs/errata.md)",)

FIGURE4 = Experiment(
    "precise.figure4",
    "Coverage and width against n and epsilon",
    tuple(_panel(target) for target in _TRUTHS),
    sources=("Zhou, Liu 2025, section 4.1, panels of its figures; they are pictures, without numbers",),
    notes=_NOTES,
)


# Table 3 ------------------------------------------------------------------------------------------------------------------


def measure_seconds(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Seconds of the processor for one interval of a normal mean, records in memory."""
    values = generator.normal(size=int(at["n"]))
    run = _TIMED[str(at["method"])]
    start = process_time()
    run(values, generator)
    return {"cpu": process_time() - start}


_BOUNDS = (-HALF, HALF)
_TIMED: dict[str, Callable[[Array, np.random.Generator], Any]] = {
    "PRECISE": lambda v, g: _version(*_published("mean", v, 1.0), "(+, m*)", 1.0, g),
    "MS": lambda v, g: rival("MS", "normal", v, 0.0, 1.0, False, g),
    "PB": lambda v, g: rival("PB", "normal", v, 0.0, 1.0, False, g),
    "deconv": lambda v, g: deconvolved_bootstrap(v, g, mu=1.0, bounds=_BOUNDS),
    "repro": lambda v, g: repro_normal(v, g, mu=1.0, bounds=_BOUNDS, sds=(0.05, HALF)),
    "BLBquant": lambda v, g: bag_of_little_bootstraps(v, g, epsilon=5.0, bounds=_BOUNDS),
    "noise-aware, Gaussian": lambda v, g: _ours("mean", "normal", v, 1.0, g, gaussian=True),
    "noise-aware, Laplace": lambda v, g: _ours("mean", "normal", v, 1.0, g),
}
_SECONDS = {
    "PRECISE": (0.03, 0.05, 0.05),
    "MS": (0.01, 0.01, 0.01),
    "PB": (0.10, 0.31, 2.02),
    "deconv": (4.75, 10.22, 75.6),
    "repro": (8.50, 86.4, 1044.6),
    "BLBquant": (0.04, 14.19, 486.6),
}
_SIZES = (100, 5000, 50000)

TABLE3 = Experiment(
    "precise.table3",
    "Seconds for one interval of a normal mean",
    (
        Block(
            name="seconds",
            grid={"n": _SIZES},
            methods=tuple(_TIMED),
            measure=measure_seconds,
            quantities=(Quantity("seconds", "median", of="cpu"),),
            replications=3,
            full=1,
            fewer={"repro": 1, "deconv": 1, "BLBquant": 1},
            printed={
                (n, method, "seconds"): Printed(value, 2, open="a run time of another machine")
                for method, values in _SECONDS.items()
                for n, value in zip(_SIZES, values, strict=True)
            },
            layouts=(Layout(("n",), ("method",), quantity="seconds", title="Table 3: seconds for one interval"),),
            title="seconds of one processor; the paper's are of its authors' machine (R, Apple M3 Max)",
        ),
    ),
    sources=("Zhou, Liu 2025, Table 3",),
    notes=_NOTES,
)


# Table 4 ------------------------------------------------------------------------------------------------------------------

# class -> (n, counts of its data set, its place, prior of each count, G_0's share, printed widths in % by budget)
_CLASSES: dict[str, tuple[int, tuple[int, ...], int, dict[float, tuple[tuple[float, float], ...]]]] = {
    "adult, income": (
        500, (392, 108), 1,
        {0.1: ((9.87, 1.02), (10.41, 12.50), (25.04, 18.95), (9.58, 10.58)),
         0.5: ((9.82, 1.06), (7.54, 2.02), (10.85, 3.73), (7.76, 2.03))},
    ),
    "cardiotocography, Normal": (
        2126, (1655, 295, 176), 0,
        {0.1: ((11.1, 9.7), (6.1, 6.8), (20.3, 11.5), (7.5, 8.4)), 0.5: ((5.2, 0.5), (4.8, 4.3), (5.6, 2.1), (4.1, 1.2))},
    ),
    "cardiotocography, Suspect": (
        2126, (1655, 295, 176), 1,
        {0.1: ((4.6, 0.4), (5.5, 12.0), (18.0, 23.0), (7.3, 16.0)), 0.5: ((4.6, 0.3), (3.3, 0.8), (5.2, 3.2), (3.5, 0.9))},
    ),
    "cardiotocography, Pathologic": (
        2126, (1655, 295, 176), 2,
        {0.1: ((3.7, 0.3), (5.9, 14.4), (12.9, 19.8), (5.0, 9.6)), 0.5: ((3.6, 0.3), (2.7, 0.7), (3.9, 0.7), (2.8, 0.7))},
    ),
}  # fmt: skip
_ORIGINAL = {
    "adult, income": 7.21,
    "cardiotocography, Normal": 3.5,
    "cardiotocography, Suspect": 2.9,
    "cardiotocography, Pathologic": 2.3,
}
_COLUMNS = tuple(f"printed column {j}" for j in (1, 2, 3, 4))
_BIN = 0.002


def measure_share(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """The width of one interval in per cent; of a printed column its mean, and as `sd` its standard deviation."""
    name, epsilon, method = str(at["class"]), float(at["budget"]), str(at["method"])
    n, counts, place, printed = _CLASSES[name]
    if method in _COLUMNS:
        width, sd = printed[epsilon][_COLUMNS.index(method)]
        return {"width": width, "sd": sd}
    k = counts[place]
    if method == "original":
        ends = stats.beta.ppf(_P, 1 + k, 1 + n - k)
    elif method == "noise-aware":
        ends = _joint(counts, place, n, epsilon, generator)
    else:
        p = k / n
        ends = _version(
            stats.beta(1 + k, 1 + n - k), C0 / (p * (1 - p)), _BIN, (0.0, 1.0), method, epsilon / _parts(counts), generator
        )  # fmt: skip
    return {"width": 100 * float(ends[1] - ends[0])}


def _parts(counts: tuple[int, ...]) -> int:
    """Into how many parts the published mechanism divides its budget: one for each share that is told."""
    return 1 if len(counts) == 2 else len(counts)


def _joint(counts: tuple[int, ...], place: int, n: int, epsilon: float, g: np.random.Generator) -> Array:
    """One count, or all counts of a table at once."""
    if len(counts) == 2:
        law = NoiseLaw("geometric", 1 / epsilon)
        return share_posterior(counts[place] + law.draws(g, 1)[0], n, law).quantile(_P)
    law = NoiseLaw("geometric", 2 / epsilon)
    return level_posterior(np.array(counts) + law.draws(g, len(counts)), place, n, law).quantile(_P)


TABLE4 = Experiment(
    "precise.table4",
    "Proportions of adult and cardiotocography: widths of 95 % intervals in per cent",
    (
        Block(
            name="widths",
            grid={"class": tuple(_CLASSES), "budget": (0.1, 0.5)},
            methods=("original", *_COLUMNS, *VERSIONS, "noise-aware"),
            measure=measure_share,
            quantities=(Quantity("width"), Quantity("sd of width", "sd", of="width"), Quantity("printed sd", of="sd")),
            replications=100,
            full=100,
            fewer={"original": 1, **dict.fromkeys(_COLUMNS, 1)},
            printed={
                (name, budget, "original", "width"): Printed(
                    width, 1, tolerance=0.06, because="one decimal, an interval of draws"
                )
                for name, width in _ORIGINAL.items()
                for budget in (0.1, 0.5)
            },
            layouts=tuple(
                Layout(
                    ("class", "budget"),
                    ("method",),
                    {"method": ("original", *_COLUMNS, *VERSIONS, "noise-aware")},
                    quantity,
                    f"Table 4: {title}",
                )
                for quantity, title in (
                    ("width", "average widths in per cent"),
                    ("sd of width", "their standard deviation over runs"),
                    ("printed sd", "standard deviations as the paper prints them"),
                )
            ),
            title="width in per cent, mean and standard deviation over 100 runs; counts of the two data sets as the paper prints them",
            titles={"original": "no privacy", "noise-aware": "noise-aware posterior, all counts at once"},
        ),
    ),
    sources=("Zhou, Liu 2025, Table 4; the order of its four columns is lost in the text",),
    notes=_NOTES,
)
