"""Simulated regressions: the paper's uniform designs, the designs on which SSP2 was developed, and fresh ones that nobody tuned on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import e, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.schema import Categorical, Integer, Numeric, Schema
from confide_lab.fits import Case

__all__ = ["FRESH", "Fresh", "Truth", "case_of", "development", "fresh_design", "uniform"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What a simulated case was made from: beta (d,) in the order of the design's terms, intercept, sd of the errors."""

    beta: Array
    intercept: float
    sd: float


def case_of(
    x: Array,
    y: Array,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float,
    *,
    intercept: bool,
    binary: NDArray[np.bool_] | None = None,
) -> Case:
    """A case with columns x1.. and y. x: (n, d); x_bounds: (d, 2); binary: which columns hold 0 and 1."""
    d = x.shape[1]
    names = [f"x{j + 1}" for j in range(d)]
    columns: dict[str, Any] = {
        name: Integer(0, 1)
        if binary is not None and binary[j]
        else Numeric(float(x_bounds[j, 0]), float(x_bounds[j, 1]))
        for j, name in enumerate(names)
    }
    columns["y"] = Numeric(*map(float, y_bounds))
    frame = pd.DataFrame({**{name: x[:, j] for j, name in enumerate(names)}, "y": y})
    return Case(frame, Schema(columns), f"y ~ {'' if intercept else '0 + '}{' + '.join(names)}", mu)


def uniform(
    n: int,
    d: int,
    generator: np.random.Generator,
    *,
    mu: float = 1.0,
    y_bounds: tuple[float, float],
    intercept: bool = False,
    loose: float = 1.0,
    beta: Array | None = None,
    x: Array | None = None,
) -> tuple[Case, Truth]:
    """X ~ U[0, 1]^d, beta ~ U[1, 2]^d, normal errors of sd 1, no constant; the box is `loose` times as wide as [0, 1], about the middle.

    >>> case, truth = uniform(50, 2, np.random.default_rng(1), y_bounds=(0, 4), loose=2.0)
    >>> case.x_bounds.tolist(), case.intercept, truth.sd
    ([[-0.5, 1.5], [-0.5, 1.5]], False, 1.0)
    """
    beta = generator.uniform(1, 2, d) if beta is None else beta
    x = generator.random((n, d)) if x is None else x
    y = x @ beta + generator.standard_normal(n)
    box = np.tile([0.5 - loose / 2, 0.5 + loose / 2], (d, 1))
    return case_of(x, y, box, y_bounds, mu, intercept=intercept), Truth(beta, 0.0, 1.0)


# the designs on which SSP2 was developed ------------------------------------------------------------------------------

_LEVELS = {"a": 0.50, "b": 0.30, "c": 0.12, "d": 0.05, "e": 0.02, "f": 0.01}


def development(cell: str, generator: np.random.Generator) -> tuple[Case, Truth]:
    """A cell by its name, "uniform d=5 n=1000" and so on (`confide_lab.experiments.ssp2` lists them); mu = 1."""
    law, d, n = _read(cell)
    beta = generator.uniform(1, 2, d)
    bounds = (-1.0, 9.0) if d == 5 else (-2.0, 1.5 * d + 2.0)
    box = np.tile([0.0, 1.0], (d, 1))
    x = generator.random((n, d))
    errors = generator.standard_normal(n)
    if law == "loose":
        box = np.tile([-4.5, 5.5], (d, 1))
    elif law == "lognormal":
        x = np.minimum(generator.lognormal(0.0, 1.0, (n, d)) / 20, 1.0)
    elif law == "correlated":
        shared = generator.standard_normal((n, 1))
        normal = sqrt(0.95) * shared + sqrt(0.05) * generator.standard_normal((n, d))
        x = np.clip(0.5 + normal / 8, 0.0, 1.0)
    elif law == "skew":
        errors = (generator.lognormal(0.0, 1.0, n) - np.exp(0.5)) / sqrt((e - 1) * e)
    elif law == "t3":
        errors = generator.standard_t(3, n) / sqrt(3)
    elif law == "unequal":
        errors = errors * (0.2 + 1.6 * np.abs(2 * x[:, 0] - 1))
    elif law == "levels":
        return _levels(n, generator)
    y = x @ beta + errors
    return case_of(x, y, box, bounds, 1.0, intercept=True), Truth(beta, 0.0, 1.0)


def _read(cell: str) -> tuple[str, int, int]:
    law, *rest = cell.split()
    numbers = {key: int(float(value)) for key, _, value in (part.partition("=") for part in rest)}
    if law not in ("uniform", "loose", "lognormal", "correlated", "skew", "t3", "unequal", "levels"):
        raise PlanError(f"there is no development cell {cell!r}")
    return law, numbers.get("d", 5), numbers["n"]


def _levels(n: int, generator: np.random.Generator) -> tuple[Case, Truth]:
    """One label with six levels of 50, 30, 12, 5, 2 and 1 %, the first one left out."""
    names, shares = list(_LEVELS), list(_LEVELS.values())
    drawn = generator.choice(len(names), n, p=shares)
    effects = np.concatenate([[0.0], generator.uniform(1, 2, len(names) - 1)])
    y = 1.0 + effects[drawn] + generator.standard_normal(n)
    frame = pd.DataFrame({"level": [names[k] for k in drawn], "y": y})
    schema = Schema({"level": Categorical(names), "y": Numeric(-4.0, 8.0)})
    return Case(frame, schema, "y ~ level", 1.0), Truth(effects[1:], 1.0, 1.0)


# fresh designs --------------------------------------------------------------------------------------------------------

_DIMENSIONS = (1, 3, 8, 15, 30)
_SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
_LAWS = ("mixture", "discrete", "heavy", "blocks", "pair")
_ERRORS = ("normal", "t3", "exponential", "unequal")
_POPULATION = 40_000

#: Numbers of the cells: 40 with mu n >= 30 p, then 10 with less.
FRESH = range(50)


@dataclass(frozen=True)
class Fresh:
    """One fresh design: what `draw` makes records from. features: n, generator -> x (n, d); sds: of the features (d,)."""

    number: int
    n: int
    d: int
    mu: float
    law: str
    errors: str
    beta: Array
    intercept: float
    sd: float
    sds: Array
    variance: float
    x_bounds: Array
    y_bounds: tuple[float, float]
    binary: NDArray[np.bool_]
    features: Callable[[int, np.random.Generator], Array]
    largest: float

    @property
    def p(self) -> int:
        """Coefficients with the intercept."""
        return self.d + 1

    @property
    def regular(self) -> bool:
        """Whether mu n >= 30 p."""
        return self.mu * self.n >= 30 * self.p

    def draw(self, generator: np.random.Generator) -> tuple[Case, Truth]:
        """n records and the truth."""
        x = self.features(self.n, generator)
        y = self.intercept + x @ self.beta + self.sd * _errors(self.errors, x, self.largest, generator)
        case = case_of(x, y, self.x_bounds, self.y_bounds, self.mu, intercept=True, binary=self.binary)
        return case, Truth(self.beta, self.intercept, self.sd)


@lru_cache(maxsize=64)
def fresh_design(seed: int, number: int) -> Fresh:
    """Design `number` (0..49) of a design seed: 8 regular and 2 hard ones for each d in 1, 3, 8, 15, 30.

    Feature laws are cycled: mixtures of two normals; counts, indicators, five-point scales and waiting times; lognormal and t_3; blocks
    of three with correlation .85; normals with one pair at .99. Standardised coefficients dense, sparse (d/5) or zero; R squared .3, .6
    or .9; errors normal, t_3, exponential, or with a standard deviation proportional to .4 + 1.2 |u_1|. Bounds of features: the
    .001 and .999 quantiles, or 3 or 10 times as wide and off the centre; of the response: those quantiles of the line, 5 sd further, or
    3 times as wide.
    """
    generator = np.random.default_rng([seed, number])
    hard = number >= 40
    d = _DIMENSIONS[(number - 40) // 2 if hard else number // 8]
    law = _LAWS[number % len(_LAWS)]
    # with one feature and mu of .3 or more only fewer than 200 records are too few
    pairs = [
        (n, mu) for n in ((100,) if hard else ()) + _SIZES for mu in (0.3, 1.0, 3.0) if (mu * n < 30 * (d + 1)) == hard
    ]
    n, mu = pairs[generator.integers(len(pairs))]
    features, binary = _features(law, d, generator)
    shape = ("dense", "sparse", "zero")[generator.integers(3)]
    squared = float(generator.choice((0.3, 0.6, 0.9)))
    errors = str(generator.choice(_ERRORS))
    looseness = float(generator.choice((1.0, 3.0, 10.0)))
    y_loose = float(generator.choice((1.0, 3.0)))
    population = features(_POPULATION, generator)
    sds = population.std(axis=0)
    standard = generator.standard_normal(d)
    if shape == "sparse":
        standard[generator.permutation(d)[max(d // 5, 1) :]] = 0.0
    if shape == "zero":
        standard[:] = 0.0
    beta = standard / sds
    intercept = float(generator.normal())
    line = intercept + population @ beta
    sd = float(line.std() * sqrt(1 / squared - 1)) if shape != "zero" else 1.0
    x_bounds = np.array(
        [_wider(pair, looseness, generator) for pair in np.quantile(population, (0.001, 0.999), axis=0).T]
    )
    x_bounds[binary] = (0.0, 1.0)
    low, high = np.quantile(line, (0.001, 0.999))
    y_bounds = _wider((low - 5 * sd, high + 5 * sd), y_loose, generator)
    u = _first(population)
    return Fresh(
        number, n, d, mu, law, errors, beta, intercept, sd, sds, float(line.var() + sd**2), x_bounds, y_bounds, binary, features,
        float(sqrt(np.mean((0.4 + 1.2 * np.abs(u)) ** 2))),
    )  # fmt: skip


def _wider(pair: Any, factor: float, generator: np.random.Generator) -> tuple[float, float]:
    """Bounds `factor` times as wide that hold the old ones, off the centre."""
    low, high = map(float, pair)
    width = max(high - low, 1e-6)
    left = float(generator.uniform(0, 1)) * (factor - 1) * width
    return low - left, low - left + factor * width


def _errors(law: str, x: Array, scale: float, generator: np.random.Generator) -> Array:
    """Errors of mean 0 and variance 1."""
    n = len(x)
    if law == "t3":
        return np.asarray(generator.standard_t(3, n) / sqrt(3), dtype=np.float64)
    if law == "exponential":
        return generator.exponential(1.0, n) - 1.0
    normal = generator.standard_normal(n)
    return normal if law == "normal" else normal * (0.4 + 1.2 * np.abs(_first(x))) / scale


def _first(x: Array) -> Array:
    """u_1: the first feature, standardised by its own sample and kept within 3."""
    first = x[:, 0]
    found: Array = np.clip((first - first.mean()) / max(float(first.std()), 1e-12), -3, 3)
    return found


def _features(
    law: str, d: int, generator: np.random.Generator
) -> tuple[Callable[[int, np.random.Generator], Array], NDArray[np.bool_]]:
    """A sampler of features and which of them are 0 or 1. What is random about the law itself is drawn here."""
    binary = np.zeros(d, dtype=np.bool_)
    if law == "mixture":
        shift, share = generator.uniform(2, 4, d), generator.uniform(0.2, 0.8, d)

        def mixture(n: int, g: np.random.Generator) -> Array:
            return g.standard_normal((n, d)) + shift * (g.random((n, d)) < share)

        return mixture, binary
    if law == "discrete":
        binary[1::4] = True

        def discrete(n: int, g: np.random.Generator) -> Array:
            kinds = (
                lambda: g.poisson(2.0, n),
                lambda: g.random(n) < 0.2,
                lambda: g.integers(1, 6, n),
                lambda: g.geometric(0.3, n),
            )
            return np.column_stack([np.asarray(kinds[j % 4](), dtype=np.float64) for j in range(d)])

        return discrete, binary
    if law == "heavy":

        def heavy(n: int, g: np.random.Generator) -> Array:
            return np.column_stack([g.lognormal(0.0, 0.8, n) if j % 2 == 0 else g.standard_t(3, n) for j in range(d)])

        return heavy, binary
    root = np.linalg.cholesky(_correlation(law, d))

    def normal(n: int, g: np.random.Generator) -> Array:
        found: Array = g.standard_normal((n, d)) @ root.T
        return found

    return normal, binary


def _correlation(law: str, d: int) -> Array:
    found = np.eye(d)
    if law == "blocks":
        for first in range(0, d, 3):
            part = slice(first, min(first + 3, d))
            found[part, part] = 0.85
        np.fill_diagonal(found, 1.0)
    elif d > 1:
        found[0, 1] = found[1, 0] = 0.99
    return found
