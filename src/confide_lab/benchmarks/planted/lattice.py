"""Planted faults of opaque releases: noise on a lattice that is coarser than the grid that is published, and the attack that reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide.audit.replay.opaque import lattice
from confide.audit.verdict import Audit
from confide.core import OpaqueRelease, Plan, Test
from confide.methods.regression.certified.sums import moments
from confide_lab.aggregates.digits import in_digits, numbers
from confide_lab.aggregates.posterior import Posterior, normal_steps, sample_step
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.methods.adaops import AdaOPS
from confide_lab.methods.posterior_sampling import PosteriorMethod, PosteriorSampling

__all__ = [
    "LATTICES",
    "CoarseSampling",
    "OldAdaOPS",
    "OldSampling",
    "count_named",
    "off_lattice",
    "old_counts",
    "sample_named",
]

_OLD, _OLD_GRID = 40, Fraction(1, 1 << 50)
_COUNT_GRID = Fraction(1, 1 << 30)


# the sampling of versions 1: z in steps of 2^-40, doubles, a grid of 2^-50, nothing added -----------------------------


def _old(posterior: Posterior, noise: Any, lam: float, gamma: float, lower: float) -> tuple[NDArray[Any], Fraction]:
    size = len(posterior.moments)
    drawn = noise.grid_gaussian(Fraction(4**_OLD), size)
    normal = np.asarray(drawn, dtype=np.float64) / 2.0**_OLD
    matrix = posterior.gram + lam * np.eye(size)
    upper = np.linalg.cholesky(matrix).T
    theta = np.linalg.solve(matrix, posterior.cross) + np.linalg.solve(upper, normal) / sqrt(gamma)
    return np.array([round(Fraction(float(v)) / _OLD_GRID) for v in theta], dtype=object), _OLD_GRID


def _bare(plan: Plan) -> Plan:
    """The plan without the noise that hides the sample."""
    first = plan.event
    assert isinstance(first, Test) and isinstance(first.then, Test) and isinstance(first.then.then, OpaqueRelease)
    return replace(plan, event=replace(first, then=replace(first.then, then=replace(first.then.then, hiding=None))))


@dataclass(frozen=True)
class OldSampling(PosteriorSampling):
    """`PosteriorSampling`, version 1."""

    name: ClassVar[str] = "old_sampling"
    _sampled = staticmethod(_old)

    def plan(self, *args: Any, **named: Any) -> Plan:
        return _bare(super().plan(*args, **named))


@dataclass(frozen=True)
class OldAdaOPS(AdaOPS):
    """`AdaOPS`, version 1."""

    name: ClassVar[str] = "old_adaops"
    _sampled = staticmethod(_old)

    def plan(self, *args: Any, **named: Any) -> Plan:
        return _bare(super().plan(*args, **named))


@dataclass(frozen=True)
class CoarseSampling(PosteriorSampling):
    """`PosteriorSampling` with z in steps of 2^-bits, hidden by noise that is made for finer ones. cut: drawn fine, then cut to them."""

    bits: int = 30
    cut: bool = False
    name: ClassVar[str] = "coarse_sampling"

    def _sampled(  # type: ignore[override]
        self, posterior: Posterior, noise: Any, lam: float, gamma: float, lower: float
    ) -> tuple[NDArray[Any], Fraction]:
        size, coarse = len(posterior.moments), 2 ** (56 - self.bits)
        if self.cut:
            normal = np.array([int(v) // coarse * coarse for v in normal_steps(noise, size)], dtype=object)
        else:
            normal = np.array(
                [int(v) * coarse for v in noise.grid_gaussian(Fraction(4**self.bits), size)], dtype=object
            )
        step = sample_step(gamma, lam + lower, size)
        return posterior.steps(lam, gamma, normal, step), step


# the attacks ----------------------------------------------------------------------------------------------------------


@in_digits
def off_lattice(
    method: PosteriorMethod, data: pd.DataFrame, release: cf.Release, schema: cf.Schema, bits: int
) -> float:
    """How far z lies from the lattice of 2^-bits, in its steps, if the records were `data`: 1/4 on average where they were not."""
    public = {name: float(value[0]) for name, value in release.public.items()}
    design = method._design(schema)
    rows = method._rows(design)
    start, basis = method._lines(design)
    (whole,) = cf.read(data, schema).aggregate(moments(rows))
    posterior = Posterior.of(rows, whole, start, basis)
    upper = posterior._root(public["penalty"])
    step = release["line"].step
    theta = numbers([int(v) for v in release["line"].values]) * step.numerator / step.denominator
    apart, scale, size = 0.0, Decimal(public["precision"]).sqrt(), len(theta)
    centre = posterior._solved(upper)
    z = (upper @ (theta - centre)) * scale * 2**bits
    for i in range(size):
        apart += float(abs(z[i] - z[i].to_integral_value()))
    return apart / size


def sample_named(
    method: PosteriorMethod, pair: tuple[pd.DataFrame, pd.DataFrame], release: cf.Release, schema: cf.Schema, bits: int
) -> int:
    """Which of two data sets a release names, by the lattice."""
    return int(np.argmin([off_lattice(method, data, release, schema, bits) for data in pair]))


def old_counts(counts: Any, scale: float, noise: Any) -> NDArray[Any]:
    """Counts as version 1 of `SmoothNaiveBayes` released them: doubles on a lattice of scale 2^-40, in steps of 2^-30."""
    drawn = np.asarray(noise.grid_laplace(Fraction(2**_OLD), len(counts)), dtype=np.float64) / 2.0**_OLD
    noisy = np.asarray(counts, dtype=np.float64) + scale * drawn
    return np.array([round(Fraction(float(v)) / _COUNT_GRID) for v in noisy], dtype=object)


def count_named(values: Any, step: Fraction, scale: float, pair: tuple[Any, Any]) -> int:
    """Which of two vectors of counts noisy ones name, by the lattice of scale 2^-40."""
    lattice, found = Fraction(scale) / 2**_OLD, []
    for counts in pair:
        place = [(int(v) * step - int(n)) / lattice for v, n in zip(values, counts, strict=True)]
        found.append(sum(abs(float(p - round(p))) for p in place))
    return int(np.argmin(found))


# the faults, for the registry -----------------------------------------------------------------------------------------

_SCHEMA = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})


def _planted(name: str, what: str, faulty: Any, clean: Any) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method = faulty if wrong else clean
        plan = cf.plan(method, _SCHEMA, cf.GDP(1.0, 1e-6))
        shown = lattice(method, plan, cf.read(_SCHEMA.sample(40, seed), _SCHEMA), seed=seed)
        return Audit(tuple(one.finding(method.name, plan.relation) for one in shown))

    return Fault(name, what, "lattice", build)


LATTICES = [
    _planted(
        "z on a lattice of 2^-40",
        "a posterior sample in doubles on a grid of 2^-50, as versions 1 of PosteriorSampling and AdaOPS published it",
        OldSampling("y ~ x"),
        PosteriorSampling("y ~ x"),
    ),
    _planted(
        "z on a lattice of 2^-30",
        "z of a posterior sample in steps of 2^-30, hidden by noise that is made for steps of 2^-56",
        CoarseSampling("y ~ x"),
        CoarseSampling("y ~ x", bits=56),
    ),
    _planted(
        "z cut to a lattice of 2^-30",
        "the same, from fine integers that are rounded down",
        CoarseSampling("y ~ x", cut=True),
        AdaOPS("y ~ x"),
    ),
]
