"""Populations of the truth table for counts and two-valued outcomes: a right model, a wrong one, spread, zeros in excess, rare levels.

Each is finite, made from a seed that is its name; the truth is the likeliest model on all of it. "far counts" breaks on purpose what a
cut of counts assumes: one record in a thousand lies at the declared bound, and nothing between it and the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from confide.core import Method
from confide.regression import Logistic, Poisson
from confide.schema import Categorical, Integer, Numeric

__all__ = ["MODELS", "OUTSIDE"]

Array = NDArray[np.float64]
Made = dict[str, Any]

_SIZE = 200_000
_LEVELS = ("many", "some", "few")


def _features(g: np.random.Generator) -> tuple[Array, Array, Array]:
    """Two normal features, and a factor of three levels, one of 2 %."""
    a, b = g.standard_normal((2, _SIZE))
    return a, b, g.choice(3, _SIZE, p=(0.68, 0.3, 0.02))


def _records(a: Array, b: Array, f: Array, y: Any) -> Made:
    return {"a": a, "b": b, "f": np.array(_LEVELS, dtype=object)[f], "y": y}


def _rate(a: Array, b: Array, f: Array) -> Array:
    return np.asarray(np.exp(0.3 + 0.4 * a - 0.3 * b + np.array([0.0, 0.3, 0.6])[f]))


def _counts(noise: Callable[[np.random.Generator, Array], Array]) -> Callable[[np.random.Generator], Made]:
    def made(g: np.random.Generator) -> Made:
        a, b, f = _features(g)
        return _records(a, b, f, noise(g, _rate(a, b, f)))

    return made


def _far(g: np.random.Generator, rate: Array) -> Array:
    return np.where(g.random(len(rate)) < 0.001, 60, g.poisson(rate))


def _bent_counts(g: np.random.Generator) -> Made:
    a, b, f = _features(g)
    return _records(a, b, f, g.poisson(0.5 + 0.6 * a**2 + np.exp(0.5 * np.sin(2 * b))))


def _full_counts(g: np.random.Generator) -> Made:
    """A steep rate that stops growing: what lies far out is below every exponential."""
    a, b, f = _features(g)
    return _records(a, b, f, g.poisson(np.exp(np.clip(1.2 * a - 0.3 * b, -6.0, 3.0))).clip(0, 30))


def _bumped(g: np.random.Generator) -> Made:
    """A rate that falls with a, and rises and falls with b in one level alone."""
    a, b, f = _features(g)
    bump = 1.5 * np.exp(-(((b - 0.5) / 0.4) ** 2)) * (f == 1)
    return _records(a, b, f, g.poisson(np.exp(1.0 - 0.7 * a + bump)).clip(0, 60))


def _crowded(g: np.random.Generator) -> Made:
    """Most records at the declared bound."""
    a, b, f = _features(g)
    return _records(a, b, f, g.poisson(np.exp(1.6 + 0.5 * a - 0.3 * b)).clip(0, 5))


def _exposed(g: np.random.Generator) -> Made:
    """Features like exposures, skewed and long-tailed within wide bounds, of which counts grow slower than any exponential."""
    a, b = np.exp(0.9 * g.standard_normal((2, _SIZE)))
    f = g.choice(3, _SIZE, p=(0.68, 0.3, 0.02))
    return _records(a, b, f, g.poisson(0.5 + a / (1 + 0.2 * b)).clip(0, 60))


def _mixed(g: np.random.Generator) -> Made:
    """Two of three records are zeros in excess, more so for large b, and the others have a variance of their mean and 2 mean^2."""
    a, b, f = _features(g)
    counted = g.random(_SIZE) < 0.15 + 0.4 / (1 + np.exp(b))
    rate = 3 * _rate(a, b, f) * g.gamma(0.5, 2.0, _SIZE)
    return _records(a, b, f, np.where(counted, g.poisson(rate), 0).clip(0, 200))


_TWELVE = tuple(f"g{k:02d}" for k in range(12))
_ODDS = np.array([0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.04, 0.03, 0.03, 0.015, 0.01, 0.005])


def _twelve(g: np.random.Generator) -> Made:
    """Twelve levels, 30 % to .5 %, with rates of their own."""
    f = g.choice(12, _SIZE, p=_ODDS)
    a = g.uniform(-1, 1, _SIZE)
    rate = np.exp(0.5 + 0.5 * a + np.linspace(-1, 1.2, 12)[f])
    return {"a": a, "f": np.array(_TWELVE, dtype=object)[f], "y": g.poisson(rate).clip(0, 40)}


def _shares(share: Callable[[Array, Array, Array], Array]) -> Callable[[np.random.Generator], Made]:
    def made(g: np.random.Generator) -> Made:
        a, b, f = _features(g)
        return _records(a, b, f, (g.random(_SIZE) < share(a, b, f)).astype(int))

    return made


def _against(outcome: Callable[[np.random.Generator, Array], Array], far: int) -> Callable[[np.random.Generator], Made]:
    """0.4 % of the records at 7 to 8.2 sd, within bounds that reach less than five half-widths, whose outcomes are `far`."""

    def made(g: np.random.Generator) -> Made:
        a, b = g.standard_normal(_SIZE), g.uniform(-1, 1, _SIZE)
        out = g.random(_SIZE) < 0.004
        a = np.where(out, g.uniform(7, 8.2, _SIZE), a)
        return {"a": a, "b": b, "y": np.where(out, far, outcome(g, np.clip(0.5 * a, -1.5, 1.5) + 0.4 * b))}

    return made


_INSIDE = {"a": Numeric(-8.2, 8.2), "b": Numeric(-1, 1)}


def _columns(outcome: Any) -> Mapping[str, Any]:
    return {"a": Numeric(-6, 6), "b": Numeric(-6, 6), "f": Categorical(_LEVELS), "y": outcome}


_FORMULA = "y ~ a + b + f"
_COUNT, _WIDE, _TWO = Integer(0, 30), Integer(0, 60), Integer(0, 1)
_POISSON, _PROBIT = Poisson(_FORMULA), Logistic(_FORMULA, link="probit")

#: case -> (title, what is asked, columns, generator -> columns of the population)
MODELS: Mapping[str, tuple[str, Method, Mapping[str, Any], Callable[[np.random.Generator], Made]]] = {
    "counts": ("Poisson counts, mean 2", _POISSON, _columns(_COUNT), _counts(lambda g, rate: g.poisson(rate))),
    "counts-spread": (
        "counts, variance mean + mean^2",
        _POISSON,
        _columns(_WIDE),
        _counts(lambda g, rate: g.poisson(rate * g.gamma(1.0, 1.0, len(rate)))),
    ),
    "counts-zeros": (
        "counts, half of them zeros by chance",
        _POISSON,
        _columns(_COUNT),
        _counts(lambda g, rate: g.poisson(2 * rate) * (g.random(len(rate)) < 0.5)),
    ),
    "counts-bent": ("counts, a mean that is no exponential", _POISSON, _columns(_COUNT), _bent_counts),
    "counts-full": ("counts, a steep mean that stops growing", _POISSON, _columns(_COUNT), _full_counts),
    "counts-tail": (
        "counts, a lognormal tail (sigma 1)",
        _POISSON,
        _columns(_WIDE),
        _counts(lambda g, rate: g.poisson(rate * np.exp(g.standard_normal(len(rate)) - 0.5))),
    ),
    "counts-far": ("far counts: 1 in 1,000 at the bound", _POISSON, _columns(_WIDE), _counts(_far)),
    "counts-steep": (
        "the same steep mean, without a factor beside it",
        Poisson("y ~ a + b"),
        {"a": Numeric(-6, 6), "b": Numeric(-6, 6), "y": _COUNT},
        _full_counts,
    ),
    "counts-falls": ("counts that fall, and rise and fall in one level", _POISSON, _columns(_WIDE), _bumped),
    "counts-bound": ("counts, most at their bound", _POISSON, _columns(Integer(0, 5)), _crowded),
    "counts-exposed": (
        "counts of long-tailed exposures",
        _POISSON,
        {**_columns(_WIDE), "a": Numeric(0, 60), "b": Numeric(0, 60)},
        _exposed,
    ),
    "counts-mixed": ("zeros in excess and far counts, up to 200", _POISSON, _columns(Integer(0, 200)), _mixed),
    "counts-loose": (
        "Poisson counts, mean 2, a bound 20 times too wide",
        _POISSON,
        _columns(Integer(0, 300)),
        _counts(lambda g, rate: g.poisson(rate)),
    ),
    "counts-levels": (
        "counts, twelve levels, 30 % to .5 %",
        Poisson("y ~ a + f"),
        {"a": Numeric(-1, 1), "f": Categorical(_TWELVE), "y": Integer(0, 40)},
        _twelve,
    ),
    "counts-against": (
        "counts, .4 % far against the slope inside bounds of 8 sds",
        Poisson("y ~ a + b"),
        {**_INSIDE, "y": Integer(0, 10)},
        _against(lambda g, eta: g.poisson(np.exp(0.3 + 0.6 * eta)).clip(0, 10), 0),
    ),
    "probit-against": (
        "a probit, .4 % far against the slope inside bounds of 8 sds",
        Logistic("y ~ a + b", link="probit"),
        {**_INSIDE, "y": _TWO},
        _against(lambda g, eta: (g.random(len(eta)) < ndtr(eta)).astype(int), 0),
    ),
    "probit": (
        "a probit",
        _PROBIT,
        _columns(_TWO),
        _shares(lambda a, b, f: ndtr(-0.4 + 0.6 * a - 0.4 * b + np.array([0.0, 0.3, -0.5])[f])),
    ),
    "probit-bent": (
        "a probit, a mean that is none",
        _PROBIT,
        _columns(_TWO),
        _shares(lambda a, b, f: 0.1 + 0.8 * ndtr(-1.5 + a**2 + np.sin(2 * b) + 0.3 * f)),
    ),
    "probit-rare": (
        "a probit of a 2 % outcome",
        _PROBIT,
        _columns(_TWO),
        _shares(lambda a, b, f: ndtr(-2.3 + 0.35 * a - 0.25 * b + np.array([0.0, 0.2, 0.4])[f])),
    ),
}

#: (outside table, name) -> what is asked: counts with their public bounds, and two-valued outcomes by a probit.
OUTSIDE: Mapping[tuple[str, str], Method] = {
    ("doctor", "poisson"): Poisson("visits ~ gender + age + income + illness + reduced + freepoor"),
    ("nmes", "poisson"): Poisson("visits ~ hospital + health + chronic + gender + school + insurance"),
    ("randhie", "poisson"): Poisson("mdvis ~ lncoins + idp + physlm + disea + hlthg + hlthf + hlthp"),
    ("hmda", "probit"): Logistic("deny ~ pirat + lvrat + afam", link="probit"),
    ("smokeban", "probit"): Logistic("smoker ~ ban + age", link="probit"),
}
