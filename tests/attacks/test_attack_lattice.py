"""Opaque releases and the lattice of their noise: the attack that named the records, and what keeps it from coming back."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import confide as cf
import confide.audit
import confide.testing
from confide.audit.replay.opaque import lattice
from confide.core import seal
from confide.noise import SimulatedNoise
from confide.testing.checks import Case, _shows_no_lattice
from confide.testing.contract import tried
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.lattice import (
    LATTICES,
    CoarseSampling,
    OldAdaOPS,
    OldSampling,
    count_named,
    old_counts,
    sample_named,
)
from confide_lab.methods import SmoothNaiveBayes
from confide_lab.methods.adaops import AdaOPS
from confide_lab.methods.posterior_sampling import PosteriorSampling

FORMULA = "y ~ x0 + x1 + x2 + x3"
SCHEMA = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(4)}, "y": cf.Numeric(-1, 1)})
LABELS = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-1, 1)})
# 40 fair guesses: this many or more once in 10^5
CHANCE = int(stats.binom.isf(1e-5, 40, 0.5)) + 1


def pair(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """n records, and the same without the first one."""
    g = np.random.default_rng(seed)
    frame = pd.DataFrame(g.uniform(-1, 1, (n, 4)), columns=[f"x{j}" for j in range(4)])
    frame["y"] = np.clip(0.5 * frame.x0 - 0.3 * frame.x1 + 0.2 * g.standard_normal(n), -1, 1)
    return frame, frame.iloc[1:]


@cache
def releases(method: Any, n: int, mu: float, runs: int) -> list[cf.Release]:
    """Every other one is of the smaller of two neighbours."""
    plan = cf.plan(method, SCHEMA, cf.GDP(mu, 1e-6))
    return [seal(method, cf.read(pair(n, seed)[seed % 2], SCHEMA), plan, SimulatedNoise(seed)) for seed in range(runs)]


def named(method: Any, n: int, mu: float, runs: int, bits: int) -> int:
    """How often the attack names the right one of two neighbours."""
    made = enumerate(releases(method, n, mu, runs))
    return sum(sample_named(method, pair(n, k), release, SCHEMA, bits) == k % 2 for k, release in made)


@pytest.mark.few("old_sampling-300-0.1")
@pytest.mark.parametrize(
    ("method", "n", "mu"),
    [
        (OldSampling(FORMULA), 300, 0.1),
        (OldAdaOPS(FORMULA), 1_000, 0.5),
        pytest.param(OldSampling(FORMULA), 1_000, 0.5, marks=pytest.mark.long),
        pytest.param(OldAdaOPS(FORMULA), 300, 0.1, marks=pytest.mark.long),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_old_sampling_named_the_records(method: Any, n: int, mu: float) -> None:
    """z on steps of 2^-40 under a grid of 2^-50: 19 of 20 at least, where mu = .5 allows .60 of guesses."""
    assert named(method, n, mu, 20, 40) >= 19


@pytest.mark.parametrize("method", [PosteriorSampling(FORMULA), AdaOPS(FORMULA)], ids=lambda m: m.name)
@pytest.mark.parametrize("bits", [40, 56])
def test_the_sample_names_nothing(method: Any, bits: int) -> None:
    assert named(method, 300, 0.1, 40, bits) < CHANCE


def test_counts_on_a_lattice_named_the_class_and_ordinary_draws_do_not() -> None:
    """SmoothNaiveBayes at epsilon = 1e-3: a class of 40 or of 41 records."""
    epsilon, sizes = 1e-3, (np.array([60, 40]), np.array([60, 41]))
    scale = 1 / (epsilon / 5) * (1 + 1e-12)
    old, new = 0, 0
    method = SmoothNaiveBayes("kind ~ x")
    plan = cf.plan(method, LABELS, cf.PureDP(epsilon))
    sources = [cf.read({"kind": ["a"] * a + ["b"] * b, "x": np.zeros(a + b)}, LABELS) for a, b in sizes]
    spend = plan.spend("counts")
    for seed in range(40):
        truth = seed % 2
        steps = old_counts(sizes[truth], scale, SimulatedNoise(seed))
        old += count_named(steps, Fraction(1, 1 << 30), scale, sizes) == truth
        release = cf.release(method, sources[truth], cf.PureDP(epsilon), ledger=None, noise=SimulatedNoise(seed))
        new += count_named(release["counts"].values, spend.step, scale, sizes) == truth
    assert old >= 38 and new < CHANCE


def test_means_lie_on_their_grid_alone() -> None:
    """At epsilon = 1e-3 noise of a mean is 10^3 half-widths, 10^12 steps: each residue of a step of the old lattice occurs."""
    method = SmoothNaiveBayes("kind ~ x")
    source = cf.read({"kind": ["a"] * 3, "x": np.ones(3)}, LABELS)
    ends = []
    for seed in range(200):
        release = cf.release(method, source, cf.PureDP(1e-3), ledger=None, noise=SimulatedNoise(seed))
        ends += [int(v) % 8 for v in release["means"].values]
    # 400 draws on 8 residues: beyond this once in 10^6
    assert stats.chisquare(np.bincount(ends, minlength=8)).statistic < stats.chi2.isf(1e-6, 7)


@pytest.mark.few("z on a lattice of 2^-30")
@pytest.mark.parametrize("fault", LATTICES, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert not fault.caught(0).ok
    assert fault.passed(0).ok


@pytest.mark.few("old")
@pytest.mark.parametrize(
    "method",
    [OldSampling("y ~ x0"), CoarseSampling("y ~ x0"), CoarseSampling("y ~ x0", cut=True)],
    ids=["old", "steps of 2^-30", "cut to steps of 2^-30"],
)
def test_a_planted_lattice_is_caught_by_attack_audit_and_contract(method: Any) -> None:
    asked = cf.GDP(1.0, 1e-6)
    schema = cf.Schema({"x0": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
    source, plan = cf.read(schema.sample(40, 1), schema), cf.plan(method, schema, asked)
    (shown,) = lattice(method, plan, source)
    assert not shown.ok and "moves 'line' by" in str(shown)
    assert all(
        one.ok
        for one in lattice(PosteriorSampling("y ~ x0"), cf.plan(PosteriorSampling("y ~ x0"), schema, asked), source)
    )
    found = cf.audit.audit(method, schema, privacy=asked, runs=0, seed=1)
    assert any(f.attack == "lattice" and f.verdict == "violated" for f in found if f.name.endswith("line lattice"))
    case = Case(method, schema, asked)
    assert "published steps" in (tried(_shows_no_lattice, case) or "")
    if isinstance(method, OldSampling):  # and by no other check
        contract = cf.testing.check_method(method, schema, privacy=asked, raises=False, replications=2)
        assert [name for name, problem in contract.checks if problem] == [_shows_no_lattice.__doc__.rstrip(".")]
