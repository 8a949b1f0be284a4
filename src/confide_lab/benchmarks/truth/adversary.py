"""Designs of an adversary: rare levels, ties, skew, heavy tails in wide bounds, near collinearity, curvature, unequal variances, zeros.

Each is one way to break an interval. Bounds are what a steward would state: where tails are long they are wide, so that a record far out
can be hidden by noise; nothing here is tuned to a method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from confide.schema import Categorical, Integer, Numeric
from confide_lab.benchmarks.truth.design import SIZE, Design

__all__ = ["ADVERSARY"]

_FIFTEEN = tuple(f"g{k:02d}" for k in range(15))
_THREE = ("common", "some", "rare")


def _levels(g: np.random.Generator, names: tuple[str, ...], shares: Any) -> Any:
    return np.array(names, dtype=object)[g.choice(len(names), SIZE, p=np.asarray(shares) / np.sum(shares))]


def _fifteen(g: np.random.Generator) -> dict[str, Any]:
    f = g.choice(15, SIZE)
    return {"f": np.array(_FIFTEEN, dtype=object)[f], "y": 0.1 * f + g.standard_normal(SIZE)}


def _fifteen_uneven(g: np.random.Generator) -> dict[str, Any]:
    # shares from 20 % down to .5 %
    shares = np.geomspace(0.2, 0.005, 15)
    f = g.choice(15, SIZE, p=shares / shares.sum())
    y = np.where(g.uniform(size=SIZE) < 0.3, 0.0, g.gamma(1.0, 1.0 + 0.1 * f))
    return {"f": np.array(_FIFTEEN, dtype=object)[f], "y": y}


def _fifteen_mixed(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    return _fifteen_uneven(g) | {"x": x}


def _rare_level(g: np.random.Generator) -> dict[str, Any]:
    f = _levels(g, _THREE, (0.79, 0.2, 0.01))
    x = g.uniform(0, 1, SIZE)
    return {"f": f, "x": x, "y": x + 2.0 * (f == "rare") + g.standard_normal(SIZE)}


def _ties(g: np.random.Generator) -> dict[str, Any]:
    x = g.binomial(10, 0.3, SIZE)
    return {"x": x, "y": np.minimum(g.poisson(0.5 + 0.2 * x), 20)}


def _skew(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    return {"x": x, "y": np.exp(x + 1.2 * g.standard_normal(SIZE))}


def _heavy(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(-1, 1, SIZE)
    return {"x": x, "y": x + g.standard_t(2.2, SIZE)}


def _collinear(g: np.random.Generator) -> dict[str, Any]:
    a = g.standard_normal(SIZE)
    b = 0.98 * a + 0.2 * g.standard_normal(SIZE)
    return {"a": a, "b": b, "y": a - b + g.standard_normal(SIZE)}


def _unequal(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    return {"x": x, "y": 2 * x + (0.1 + 2 * x**3) * g.standard_normal(SIZE)}


def _waves(g: np.random.Generator) -> dict[str, Any]:
    x = g.beta(2, 5, SIZE)
    return {"x": x, "y": np.sin(9 * x) + 0.3 * g.standard_normal(SIZE)}


def _step(g: np.random.Generator) -> dict[str, Any]:
    x = g.uniform(0, 1, SIZE)
    chance = np.where(x < 0.5, 0.02, 0.9)
    return {"x": x, "y": (g.uniform(size=SIZE) < chance).astype(int)}


def _mixed_zeros(g: np.random.Generator) -> dict[str, Any]:
    x = g.exponential(1.0, SIZE)
    some = g.uniform(size=SIZE) < 0.05 + 0.1 * np.minimum(x, 5) / 5
    return {"x": x, "y": np.where(some, g.lognormal(2.0, 1.0, SIZE), 0.0)}


def _rare_class(g: np.random.Generator) -> dict[str, Any]:
    f = _levels(g, _THREE, (0.79, 0.2, 0.01))
    x = g.lognormal(0.0, 1.0, SIZE) * np.where(f == "rare", 4.0, 1.0)
    return {"f": f, "x": x, "y": g.poisson(1.0, SIZE)}


def _against(g: np.random.Generator) -> dict[str, Any]:
    """.4 % of the records at 7 to 8.2 sd, against the slope."""
    out = g.uniform(size=SIZE) < 0.004
    a, b = np.where(out, g.uniform(7, 8.2, SIZE), g.standard_normal(SIZE)), g.uniform(-1, 1, SIZE)
    return {"a": a, "b": b, "y": np.where(out, -2.0, a + b + g.standard_normal(SIZE))}


ADVERSARY: Mapping[str, Design] = {
    "fifteen": Design("15 levels", "y ~ f", {"f": Categorical(_FIFTEEN), "y": Numeric(-6, 8)}, 2_000, _fifteen),
    "fifteen-uneven": Design(
        "15 levels, 20 % to .5 %, skewed y",
        "y ~ f",
        {"f": Categorical(_FIFTEEN), "y": Numeric(0, 60)},
        4_000,
        _fifteen_uneven,
    ),
    "fifteen-mixed": Design(
        "15 levels, 20 % to .5 %, and a number",
        "y ~ x + f",
        {"f": Categorical(_FIFTEEN), "x": Numeric(0, 1), "y": Numeric(0, 60)},
        10_000,
        _fifteen_mixed,
    ),
    "rare-level": Design(
        "a level of 1 %",
        "y ~ x + f",
        {"f": Categorical(_THREE), "x": Numeric(0, 1), "y": Numeric(-5, 10)},
        4_000,
        _rare_level,
    ),
    "ties": Design("ties in x and y", "y ~ x", {"x": Integer(0, 10), "y": Integer(0, 20)}, 2_000, _ties),
    "skew": Design("lognormal errors", "y ~ x", {"x": Numeric(0, 1), "y": Numeric(0, 200)}, 2_000, _skew),
    "heavy": Design(
        "t with 2.2 df, bounds -100..100", "y ~ x", {"x": Numeric(-1, 1), "y": Numeric(-100, 100)}, 4_000, _heavy
    ),
    "collinear": Design(
        "features correlated .98",
        "y ~ a + b",
        {"a": Numeric(-5, 5), "b": Numeric(-5, 5), "y": Numeric(-8, 8)},
        4_000,
        _collinear,
    ),
    "unequal": Design("unequal variances", "y ~ x", {"x": Numeric(0, 1), "y": Numeric(-8, 10)}, 2_000, _unequal),
    "waves": Design("sin(9 x), x uneven", "y ~ x", {"x": Numeric(0, 1), "y": Numeric(-3, 3)}, 2_000, _waves),
    "step": Design(
        "a share that jumps from .02 to .9", "y ~ x", {"x": Numeric(0, 1), "y": Integer(0, 1)}, 2_000, _step
    ),
    "mixed-zeros": Design(
        "90 % zeros, lognormal else, x exponential",
        "y ~ x",
        {"x": Numeric(0, 20), "y": Numeric(0, 500)},
        4_000,
        _mixed_zeros,
    ),
    "against": Design(
        ".4 % of records far against the slope",
        "y ~ a + b",
        {"a": Numeric(-8.2, 8.2), "b": Numeric(-1, 1), "y": Numeric(-12, 12)},
        2_000,
        _against,
    ),
    "rare-class": Design(
        "a class of 1 % with a skewed feature",
        "y ~ x + f",
        {"f": Categorical(_THREE), "x": Numeric(0, 100), "y": Integer(0, 20)},
        4_000,
        _rare_class,
    ),
}
