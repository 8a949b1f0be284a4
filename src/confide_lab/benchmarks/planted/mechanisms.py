"""Mechanisms, laws, samplers and methods that spend more than they claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from confide.audit.runs.known_distributions import audit_exponential, audit_law
from confide.guarantees import GDP, ApproxDP, PureDP, calibrate_gaussian
from confide.noise import SimulatedNoise
from confide.regression import SSP
from confide_lab.benchmarks.planted.kinds import law, mechanism, method, sampler
from confide_lab.benchmarks.planted.toy import LINE_SCHEMA, ExactLine, Toy

__all__ = ["LAWS", "MECHANISMS", "METHODS", "SAMPLERS"]


def _gauss(g: Any, x: Any, k: int, sd: float = 1.0) -> Any:
    return x + g.normal(size=(k, *np.shape(x))) * sd


def _twice(g: Any, x: Any, k: int) -> Any:
    return np.stack([_gauss(g, x, k), _gauss(g, x, k)], axis=1)


def _shared_noise(g: Any, x: Any, k: int) -> Any:
    z = g.normal(size=k) * 2**0.5
    return np.stack([x + z, 2 * x + z], axis=1)


def _own_noise(g: Any, x: Any, k: int) -> Any:
    return np.stack([x + g.normal(size=k) * 2**0.5, x + g.normal(size=k) * 2**0.5], axis=1)


def _geometric(g: Any, x: Any, k: int, per_step: float) -> Any:
    """Two-sided geometric noise: floor(ln u / -per_step) has P(m) ~ e^(-per_step m)."""
    one, other = (np.floor(np.log(g.random(k)) / -per_step) for _ in range(2))
    return x + one - other


def _choose(factor: float) -> Callable[..., Any]:
    def chosen(g: Any, x: Any, k: int) -> Any:
        p = np.exp(factor * np.asarray(x))
        return g.choice(len(p), size=k, p=p / p.sum()).astype(float)

    return chosen


def _grid(sigma2: float, unit: int) -> Callable[..., Any]:
    def drawn(g: Any, x: Any, k: int) -> Any:
        return x * unit + SimulatedNoise(int(g.integers(2**40))).grid_gaussian(sigma2, k)

    return drawn


def _per_group(g: Any, x: Any, k: int) -> Any:
    """A histogram with the noise of one bin, where a record is in two bins."""
    return np.asarray(x) + g.normal(size=(k, 2))


MECHANISMS = [
    mechanism("two releases, one charge", "the same noisy number twice, charged once", _twice, _gauss, GDP(1.0)),
    mechanism(
        "sigma taken for mu",
        "noise sd mu = 0.5 in place of 1/mu",
        lambda g, x, k: _gauss(g, x, k, 0.5),
        lambda g, x, k: _gauss(g, x, k, 2.0),
        GDP(0.5),
    ),
    mechanism(
        "variance taken for sd",
        "noise sd sigma^2 in place of sigma, at mu = 2",
        lambda g, x, k: _gauss(g, x, k, 0.25),
        lambda g, x, k: _gauss(g, x, k, 0.5),
        GDP(2.0),
    ),
    mechanism("stream reused", "two statistics share one draw", _shared_noise, _own_noise, GDP(1.0)),
    mechanism(
        "binary for natural logarithm",
        "geometric noise with log2 of its base",
        lambda g, x, k: _geometric(g, x, k, math.log2(math.e)),
        lambda g, x, k: _geometric(g, x, k, 1.0),
        PureDP(1.0),
    ),
    mechanism(
        "exponential mechanism without the 2",
        "e^(epsilon score / D) for scores of both signs",
        _choose(1.0),
        _choose(0.5),
        PureDP(1.0),
        data=[1.0, 0.0, 0.0],
        neighbor=[0.0, 1.0, 1.0],
    ),
    mechanism(
        "Laplace from l2",
        "scale from the l2 norm of four coordinates",
        lambda g, x, k: x + g.laplace(size=(k, 4)) * 2,
        lambda g, x, k: x + g.laplace(size=(k, 4)) * 4,
        PureDP(1.0),
        data=np.zeros(4),
        neighbor=np.ones(4),
    ),
    mechanism(
        "grid step forgotten",
        "noise in units, statistic in 1/1024 units",
        _grid(1.0, 1024),
        _grid(1024.0**2, 1024),
        GDP(1.0),
    ),
    mechanism(
        "truncated noise",
        "noise is cut off at two sds",
        lambda g, x, k: x + np.clip(g.normal(size=k), -2, 2),
        _gauss,
        GDP(1.0),
    ),
    mechanism(
        "noise never negative",
        "noise is clamped at 0 before it is added",
        lambda g, x, k: x + np.maximum(g.normal(size=k), 0),
        _gauss,
        GDP(1.0),
    ),
    mechanism(
        "one record, two bins",
        "histogram noise of one bin, a record is in two",
        _per_group,
        lambda g, x, k: np.asarray(x) + g.normal(size=(k, 2)) * 2**0.5,
        GDP(1.0),
        data=[0.0, 0.0],
        neighbor=[1.0, 1.0],
    ),
    mechanism(
        "Laplace called Gaussian",
        "Laplace noise of sd 1 claims mu = 1",
        lambda g, x, k: x + g.laplace(size=k) / 2**0.5,
        _gauss,
        GDP(1.0),
    ),
]

# laws and samplers ----------------------------------------------------------------------------------------------------

_CLASSIC = ApproxDP(8.0, 0.01)
_SIGMA_CLASSIC = math.sqrt(2 * math.log(1.25 / 0.01)) / 8


LAWS = [
    law(
        "classical Gaussian at epsilon 8",
        "sqrt(2 log(1.25/delta))/epsilon holds for epsilon <= 1 only",
        lambda: audit_law("gaussian", scale=_SIGMA_CLASSIC**2, shift=1, claim=_CLASSIC, name="classical Gaussian"),
        lambda: audit_law(
            "gaussian", scale=1 / calibrate_gaussian(_CLASSIC) ** 2, shift=1, claim=_CLASSIC, name="analytic Gaussian"
        ),
    ),
    law(
        "discrete Gaussian as GDP",
        "the discrete Gaussian at sigma = 1 claims GDP(D/sigma)",
        lambda: audit_law("discrete_gaussian", scale=1, shift=1, claim=GDP(1.0), name="discrete Gaussian"),
        lambda: audit_law("grid_gaussian", scale=1, shift=1, claim=GDP(1.0), name="rounded Gaussian"),
    ),
    law(
        "score sensitivity halved",
        "the exponential mechanism with half of the score's sensitivity",
        lambda: audit_exponential([0, 2, 0], [2, 0, 2], epsilon=1.0, sensitivity=1, claim=PureDP(1.0)),
        lambda: audit_exponential([0, 2, 0], [2, 0, 2], epsilon=1.0, sensitivity=2, claim=PureDP(1.0)),
    ),
]

SAMPLERS = [
    sampler(
        "sampler x 0.97",
        "noise 3 % too small",
        lambda s, k: s.grid_gaussian(940_900, k),
        lambda s, k: s.grid_gaussian(10**6, k),
        "grid_gaussian",
        10**6,
    ),
    sampler(
        "sampler without tails",
        "noise beyond three sds is drawn again",
        lambda s, k: _redrawn(s, k),
        lambda s, k: s.grid_gaussian(10**6, k),
        "grid_gaussian",
        10**6,
    ),
]


def _redrawn(source: Any, size: int) -> Any:
    drawn = source.grid_gaussian(10**6, 2 * size)
    return drawn[np.abs(drawn) < 3_000][:size]


# methods --------------------------------------------------------------------------------------------------------------

METHODS = [
    method("noise halved", "the meter asks for a quarter of the variance", Toy(fault="half noise"), Toy()),
    method("sensitivity halved", "the record map states half of its bound", Toy(fault="sensitivity halved"), Toy()),
    method(
        "a number of the map forgotten", "three numbers with the bound of two", Toy(fault="one number forgotten"), Toy()
    ),
    method(
        "map without its clip", "the record map clips and returns what was before", Toy(fault="clip discarded"), Toy()
    ),
    method(
        "off-diagonal variance",
        "symmetric noise with a quarter of the variance off the diagonal",
        Toy(fault="off-diagonal", gram=True),
        Toy(gram=True),
    ),
    method("n in the degrees of freedom", "the exact n stands in a public number", Toy(fault="exact df"), Toy()),
    method("data-dependent error", "many records raise", Toy(fault="error"), Toy()),
    method("noise x 0.97", "noise is scaled after it was drawn", Toy(fault="noise x 0.97"), Toy()),
    method("noise cut off", "noise is truncated after it was drawn", Toy(fault="noise cut off"), Toy()),
    method("noise of one sign", "noise is clamped at 0 after it was drawn", Toy(fault="noise never negative"), Toy()),
    method("draw reused", "two statistics get one draw", Toy(fault="same noise twice", twice=True), Toy(twice=True)),
    method(
        "noise of a fixed seed", "noise comes from a generator of its own", Toy(fault="noise of a fixed seed"), Toy()
    ),
    method("complete records in the log", "a log line says how many records are complete", Toy(fault="log"), Toy()),
    method("mean in a warning", "a warning says the exact mean", Toy(fault="warning"), Toy()),
    method("printed branch", "printed text depends on the number of records", Toy(fault="print"), Toy()),
    method("draws by n", "how much noise is drawn depends on the records", Toy(fault="extra draws"), Toy()),
    method("passes by n", "how often the records are read depends on them", Toy(fault="extra pass"), Toy()),
    method("sizes by n", "the size of a public array depends on the records", Toy(fault="size"), Toy()),
    method(
        "branch by n",
        "an exact number decides what is released",
        Toy(fault="branch", branches=True),
        Toy(branches=True),
    ),
    method(
        "second pass at the exact line",
        "residuals of a second pass are taken from the line before noise",
        ExactLine("y ~ a", recenter=False, bounds="declared"),
        SSP("y ~ a", recenter=False, bounds="declared"),
        LINE_SCHEMA,
    ),
]
