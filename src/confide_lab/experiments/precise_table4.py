"""`precise.table4`: widths of intervals for proportions of two real sets, the paper's four versions beside noise-aware posteriors.

What the text at hand leaves open are fields of the block: "bin", the width of a bin; "least", the public lower bound of a share, at which
G is taken (0: G_0 at the share itself); "box": whether the histogram begins at 0 ("whole") or at that bound ("least"). The printed columns
are (+, m*), (-, m*), (+, m), (-, m), in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.methods.intervals.count_posteriors import level_posterior, share_posterior
from confide.methods.intervals.marginals import NoiseLaw
from confide_lab.experiment import Block, Check, Experiment, Printed, Quantity, Record
from confide_lab.experiments.precise_paper import NOTES, version_ends
from confide_lab.judging import told
from confide_lab.layouts import LETTER, RESTORED, Layout
from confide_lab.published.precise import C0

__all__ = ["TABLE4"]

Array = NDArray[np.float64]
_P = np.array([0.025, 0.975])
#: In the order of the printed columns.
_COLUMNS = ("(+, m*)", "(-, m*)", "(+, m)", "(-, m)")
_BUDGETS = (0.1, 0.5)

# class -> (n, counts of its data set, its place, printed width without privacy, budget -> printed widths and their sds in % by column)
_CLASSES: dict[str, tuple[int, tuple[int, ...], int, float, dict[float, tuple[tuple[float, float], ...]]]] = {
    "adult, income": (
        500, (392, 108), 1, 7.21,
        {0.1: ((9.87, 1.02), (10.41, 12.50), (25.04, 18.95), (9.58, 10.58)),
         0.5: ((9.82, 1.06), (7.54, 2.02), (10.85, 3.73), (7.76, 2.03))},
    ),
    "cardiotocography, Normal": (
        2126, (1655, 295, 176), 0, 3.5,
        {0.1: ((11.1, 9.7), (6.1, 6.8), (20.3, 11.5), (7.5, 8.4)), 0.5: ((5.2, 0.5), (4.8, 4.3), (5.6, 2.1), (4.1, 1.2))},
    ),
    "cardiotocography, Suspect": (
        2126, (1655, 295, 176), 1, 2.9,
        {0.1: ((4.6, 0.4), (5.5, 12.0), (18.0, 23.0), (7.3, 16.0)), 0.5: ((4.6, 0.3), (3.3, 0.8), (5.2, 3.2), (3.5, 0.9))},
    ),
    "cardiotocography, Pathologic": (
        2126, (1655, 295, 176), 2, 2.3,
        {0.1: ((3.7, 0.3), (5.9, 14.4), (12.9, 19.8), (5.0, 9.6)), 0.5: ((3.6, 0.3), (2.7, 0.7), (3.9, 0.7), (2.8, 0.7))},
    ),
}  # fmt: skip
#: The letter's reading first.
_OPEN: dict[str, tuple[Any, ...]] = {
    "bin": (0.0005, 0.0001, 0.0002, 0.001),
    "least": (0.0, 0.05, 0.1, 0.5),
    "box": ("whole", "least"),
}
_LETTER = tuple(values[0] for values in _OPEN.values())
#: class -> (bin, least, box) with which most of its numbers agree.
_RESTORED = {
    "adult, income": (0.0005, 0.1, "whole"),
    "cardiotocography, Normal": (0.0005, 0.5, "whole"),
    "cardiotocography, Suspect": (0.0001, 0.05, "whole"),
    "cardiotocography, Pathologic": (0.0001, 0.05, "whole"),
}
#: Runs of the paper, and how many of its numbers must lie within three standard errors.
_RUNS, _MOST = 100, 0.9


def measure_share(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """The width of one interval in per cent."""
    epsilon, method = float(at["budget"]), str(at["method"])
    n, counts, place, *_ = _CLASSES[str(at["class"])]
    k = counts[place]
    if method == "original":
        ends = stats.beta.ppf(_P, 1 + k, 1 + n - k)
    elif method == "noise-aware":
        ends = _joint(counts, place, n, epsilon, generator)
    else:
        least = float(at["least"])
        p = least or k / n
        box = (least if at["box"] == "least" else 0.0, 1.0)
        # the published mechanism divides its budget: one part for each share that is told
        parts = 1 if len(counts) == 2 else len(counts)
        posterior = stats.beta(1 + k, 1 + n - k)
        ends = version_ends(posterior, C0 / (p * (1 - p)), float(at["bin"]), box, method, epsilon / parts, generator)
    return {"width": 100 * float(ends[1] - ends[0])}


def _joint(counts: tuple[int, ...], place: int, n: int, epsilon: float, g: np.random.Generator) -> Array:
    """One count, or all counts of a table at once."""
    if len(counts) == 2:
        law = NoiseLaw("geometric", 1 / epsilon)
        return share_posterior(counts[place] + law.draws(g, 1)[0], n, law).quantile(_P)
    law = NoiseLaw("geometric", 2 / epsilon)
    return level_posterior(np.array(counts) + law.draws(g, len(counts)), place, n, law).quantile(_P)


def _left_out(settings: Mapping[str, Any], method: str) -> bool:
    """Other methods know none of the open settings; a lower bound lies below the share; a box from it needs one."""
    n, counts, place, *_ = _CLASSES[str(settings["class"])]
    if method not in _COLUMNS:
        return tuple(settings[name] for name in _OPEN) != _LETTER
    return settings["least"] >= counts[place] / n or (settings["box"] == "least" and not settings["least"])


def _printed() -> dict[tuple[Any, ...], Printed]:
    found: dict[tuple[Any, ...], Printed] = {}
    for name, (*_, original, budgets) in _CLASSES.items():
        for budget, row in budgets.items():
            found[name, budget, *_LETTER, "original", "width"] = Printed(
                original, 1, tolerance=0.06, because="one decimal, an interval of draws"
            )
            digits = 2 if name.startswith("adult") else 1
            for reading in (_LETTER, _RESTORED[name]):
                for method, (width, sd) in zip(_COLUMNS, row, strict=True):
                    found[name, budget, *reading, method, "width"] = Printed(width, digits, _RUNS)
                    found[name, budget, *reading, method, "sd of width"] = Printed(sd, digits, _RUNS)
    return found


def _layouts() -> tuple[Layout, ...]:
    letter = {name: (value,) for name, value in zip(_OPEN, _LETTER, strict=True)}
    titles = {"width": "average widths in per cent", "sd of width": "their standard deviation over runs"}
    methods = ("original", *_COLUMNS, "noise-aware")
    found = [
        Layout(("class", "budget"), ("method",), {**letter, "method": methods}, quantity, f"Table 4: {title}", LETTER)
        for quantity, title in titles.items()
    ]
    for name, reading in _RESTORED.items():
        where = {
            "class": (name,),
            "method": _COLUMNS,
            **{setting: (value,) for setting, value in zip(_OPEN, reading, strict=True)},
        }
        said = f"{name}, bins of {reading[0]:g}, G at a share of {reading[1]:g}"
        found += [
            Layout(("budget",), ("method",), where, quantity, f"Table 4, {said}: {title}", RESTORED)
            for quantity, title in titles.items()
        ]
    return tuple(found)


def _agreement(records: Sequence[Record]) -> list[Check]:
    """How many widths and sds are within three standard errors, ours and those of the paper's 100 runs, by reading."""
    found = []
    for said, places in (
        ("bins of .0005, G at the share", dict.fromkeys(_CLASSES, _LETTER)),
        ("bins and G that are restored", _RESTORED),
    ):
        near, runs = [], []
        for r in records:
            at = r["setting"]
            if r["method"] not in _COLUMNS or tuple(at[name] for name in _OPEN) != places[at["class"]]:
                continue
            if "paper" in r and r["error"] is not None:
                error = r["error"] * sqrt(1 + r["replications"] / _RUNS)
                near.append(abs(r["value"] - r["paper"]) <= 3 * error)
                runs.append(r["replications"])
        if near:
            text = f"{sum(near)} of {len(near)} widths and sds within three standard errors, at least {min(runs)} runs"
            found.append(told(said, sum(near) >= _MOST * len(near), text, runs=min(runs), least=_RUNS))
    return found


TABLE4 = Experiment(
    "precise.table4",
    "Proportions of adult and cardiotocography: widths of 95 % intervals in per cent",
    (
        Block(
            name="widths",
            grid={
                "class": tuple(_CLASSES),
                "budget": _BUDGETS,
                "bin": (0.0005, 0.0001),
                "least": _OPEN["least"],
                "box": ("whole",),
            },
            methods=("original", *_COLUMNS, "noise-aware"),
            measure=measure_share,
            quantities=(Quantity("width", bounded=True), Quantity("sd of width", "sd", of="width", bounded=True)),
            replications=200,
            full=1000,
            fewer={"original": 1},
            exact=("original",),
            printed=_printed(),
            without=_left_out,
            checks=_agreement,
            layouts=_layouts(),
            open_settings=_OPEN,
            title="width in per cent: mean, and standard deviation over runs; counts of the two data sets as the paper prints them",
            titles={"original": "no privacy", "noise-aware": "noise-aware posterior, all counts at once"},
        ),
    ),
    sources=("Zhou, Liu 2025, Table 4",),
    notes=(
        *NOTES,
        "The printed columns are (+, m*), (-, m*), (+, m), (-, m): the order in which the four versions' numbers come out here.",
        "Widths of bins, bounds on the shares and with them G are not in the text at hand: fields bin, least and box.",
    ),
)
