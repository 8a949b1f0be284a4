"""`precise.figure4`, `precise.table3`: the paper's four versions beside noise-aware posteriors; seconds.

The versions of PRECISE ("+" or "-": negative counts set to 0 or not; m or m*: the number of draws or the noisy total) carry no
guarantee. The widths of the bins are not in the text at hand: `WIDTHS` has those with which its words on coverage hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.methods.intervals.count_posteriors import PoissonSum, rate_posterior, share_posterior
from confide.methods.intervals.normal_posteriors import NormalSums, normal_posterior
from confide_lab.experiment import Block, Check, Drawing, Experiment, Printed, Quantity, Record
from confide_lab.experiments.measures import shared
from confide_lab.experiments.precise_families import CAP, HALF, WIDTHS, drawn, noise_of, rival, sums_of
from confide_lab.judging import below, covers
from confide_lab.layouts import Layout
from confide_lab.published.interval_rivals import bag_of_little_bootstraps, deconvolved_bootstrap, repro_normal
from confide_lab.published.precise import C0, draws_of, precise

__all__ = ["FIGURE4", "NOTES", "TABLE3", "VERSIONS", "version_ends"]

Array = NDArray[np.float64]

#: The name of a version -> (nonneg, total).
VERSIONS = {"(+, m*)": (True, "m*"), "(+, m)": (True, "m"), "(-, m*)": (False, "m*"), "(-, m)": (False, "m")}
_P = np.array([0.025, 0.975])


def version_ends(
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
        low, high = version_ends(*_published(target, values, truth), method, epsilon, generator)
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
        return stats.beta(1 + k, 1 + n - k), C0 / (truth * (1 - truth)), WIDTHS["share"], (0.0, 1.0)
    if target == "poisson":
        return stats.gamma(0.1 + values.sum(), scale=1 / (0.1 + n)), C0 * CAP / truth, WIDTHS["rate"], (0.0, float(CAP))
    s2 = values.var(ddof=1)
    if target == "mean":
        return stats.t(n - 1, values.mean(), sqrt(s2 / n)), C0 * 2 * HALF, WIDTHS["mean"], (-HALF, HALF)
    spread = stats.invgamma((n - 1) / 2, scale=(n - 1) * s2 / 2)
    return spread, C0 * 4 * HALF**2 / 2, WIDTHS["variance"], (0.0, HALF**2)


def _claims(records: Sequence[Record]) -> list[Check]:
    """What the paper says of its figure: "+" covers in every cell, "-" falls short at small budgets, and the order of the widths."""
    by = {(r["setting"]["n"], r["setting"]["budget"], r["method"], r["quantity"]): r for r in records}
    cells = list(dict.fromkeys((n, budget) for n, budget, *_ in by))
    found = []
    for name in VERSIONS:
        states = [covers("", by[*cell, name, "coverage"], 0.95) for cell in cells if (*cell, name, "coverage") in by]
        low = [check.text for check in states if check.ok is False]
        found.append(_counted(f"{name} covers .95", states, f"; lowest {min(low)}" if low else ""))
    for narrow, wide in (("(-, m*)", "(+, m*)"), ("(+, m*)", "(+, m)"), ("(+, m)", "noise-aware")):
        pairs = [tuple(by.get((*cell, name, "width")) for name in (narrow, wide)) for cell in cells]
        found.append(_counted(f"width: {narrow} < {wide}", [below("", one, two) for one, two in pairs if one and two]))
    # "0 cells" stands for a method that was not run
    return [one for one in found if not one.text.startswith("holds in 0 cells, fails in 0, open in 0")]


def _counted(name: str, checks: Sequence[Check], more: str = "") -> Check:
    """One line for many cells: it fails where one fails, and is open where none does and one is."""
    states = [one.ok for one in checks]
    ok = False if False in states else None if None in states or not states else True
    words = f"holds in {states.count(True)} cells, fails in {states.count(False)}, open in {states.count(None)}"
    return Check(name, ok, words + more)


def _panel(target: str) -> Block:
    return Block(
        name=target,
        grid={"target": (target,), "n": (100, 500, 1000, 5000), "budget": (0.1, 0.5, 1.0, 5.0)},
        methods=(*VERSIONS, "noise-aware", "sample"),
        measure=measure_versions,
        quantities=(Quantity("coverage", of="covered"), Quantity("width")),
        replications=100,
        full=1000,
        checks=_claims,
        title=f"{target}: coverage and width of 95 % intervals, the paper's four versions beside ours",
        drawing=Drawing("lines", "n", "coverage", panels="budget", log="x"),
        titles={"noise-aware": "noise-aware posterior", "sample": "no privacy"},
    )


NOTES = (
    "the four versions are run as published and carry no guarantee (evidence/errata.md)",
    "collapsing makes one wide bin of each tail, whose count gets noise as all others do (section 3.3.3)",
)
_WIDTHS = (
    "G is G_0 of the truth; the widths of bins, which are not in the text at hand, are "
    + ", ".join(f"{width:g} ({name})" for name, width in WIDTHS.items()),
)

FIGURE4 = Experiment(
    "precise.figure4",
    "Coverage and width against n and epsilon",
    tuple(_panel(target) for target in _TRUTHS),
    sources=("Zhou, Liu 2025, section 4.1, panels of its figures; they are pictures, without numbers",),
    notes=(*NOTES, *_WIDTHS),
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
    "PRECISE": lambda v, g: version_ends(*_published("mean", v, 1.0), "(+, m*)", 1.0, g),
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
    notes=(*NOTES, *_WIDTHS),
)
