"""Attacks on floating point, on releases of this library: exact, by comparing releases with the same noise to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.golden.golden_cases import CASES, schema_of

import confide as cf
from confide.audit import replay
from confide.core import seal
from confide.noise import SimulatedNoise
from confide_lab.benchmarks.float_attacks import OPAQUE, opaque

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
METHOD = cf.regression.SSP("y ~ a")
NEXT_PAYLOAD = np.array([0x7FF8DEADBEEF0001, 0xFFF0000000000001], dtype=np.uint64).view(np.float64)


def released(a: Any, y: Any | None = None, seed: int = 1) -> cf.Release:
    a = np.asarray(a, dtype=np.float64)
    frame = pd.DataFrame({"a": a, "y": a if y is None else y})
    return cf.release(METHOD, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0.0, 0.5], [-0.0, 0.5]),
        ([5e-324, 0.5], [0.0, 0.5]),
        ([-5e-324, 0.5], [0.0, 0.5]),
        ([np.inf, 0.5], [-np.inf, 0.5]),
        ([NEXT_PAYLOAD[0], 0.5], [np.nan, 0.5]),
        ([NEXT_PAYLOAD[1], 0.5], [np.nan, 0.5]),
        ([1.7e308, 0.5], [1.5, 0.5]),
        ([2.0**63, 0.5], [1.5, 0.5]),
        ([-(2.0**63), 0.5], [-1.5, 0.5]),
        ([1.0 + 2.0**-52, 0.5], [1.5, 0.5]),
    ],
)
def test_what_no_schema_can_tell_apart_is_one_release(one: list[float], other: list[float]) -> None:
    """Sign of zero, subnormals, payloads of NaN, infinities, numbers beyond 64-bit integers: the same codes, the same bits."""
    y = np.full(2, 0.25)
    assert released(one, y).to_json() == released(other, y).to_json()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308, 2.0**63, *NEXT_PAYLOAD])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_a_hostile_record_moves_the_statistics_within_their_bounds_and_nothing_else(
    value: float, relation: str
) -> None:
    frame = SCHEMA.sample(30, 1)
    odd = pd.DataFrame({"a": [value], "y": [value]})
    other = pd.concat([frame, odd]) if relation == "add-remove" else pd.concat([frame.iloc[1:], odd])
    n = len(frame) if relation == "substitute" else None
    plan = cf.plan(METHOD, SCHEMA, cf.GDP(1.0, relation=relation), n=n)
    assert replay(METHOD, plan, cf.read(frame, SCHEMA), cf.read(other, SCHEMA)).ok


def test_outputs_lie_on_the_lattice_of_the_noise_whatever_the_records() -> None:
    """Released numbers are whole steps, and every residue of them occurs: none tells an integer of the records."""
    ends, plan = {0: [], 1: []}, cf.plan(METHOD, SCHEMA, cf.GDP(1.0))
    for k in range(2):
        values = np.array([1.0] * k + [0.1, 0.2])
        source = cf.read(pd.DataFrame({"a": values, "y": values}), SCHEMA)
        for seed in range(120):
            noisy = seal(METHOD, source, plan, SimulatedNoise(seed))["moments"]
            assert all(isinstance(value, int) for value in noisy.values.ravel())
            ends[k].append(int(noisy.values[0, 0]) & 1)
    odd = [np.mean(ends[k]) for k in (0, 1)]
    # 120 fair coins: beyond 4.9 sds once in 10^6
    assert all(abs(share - 0.5) < 0.224 for share in odd)


@pytest.mark.few("posterior_sampling", "smooth_naive_bayes")
@pytest.mark.parametrize("name", OPAQUE)
def test_opaque_releases_of_real_numbers_show_no_lattice_and_no_last_digit(name: str) -> None:
    rows = opaque(name, *OPAQUE[name], runs=60)
    assert len(rows) >= 2 and all(row["passed"] for row in rows), rows


def test_every_method_that_assumes_float64_is_attacked() -> None:
    for name, (method, privacy) in CASES.items():
        plan = cf.plan(method, schema_of(method), privacy, n=1500 if method.relations[0] == "substitute" else None)
        if any("float64" in text for one in plan.guarantees for text in one.assumptions) and _is_opaque(plan):
            assert method.name in OPAQUE, name


def _is_opaque(plan: cf.core.Plan) -> bool:
    return any(isinstance(leaf, cf.core.OpaqueRelease) for leaf in cf.core.leaves(plan.event))


def test_order_and_batches_of_values_whose_float_sum_depends_on_order() -> None:
    generator = np.random.default_rng(3)
    values = np.clip(generator.uniform(size=501) * 10.0 ** generator.integers(-12, 1, 501), -1, 1)
    orders = [generator.permutation(values) for _ in range(6)]
    assert len({float(sum(order)) for order in orders}) > 1
    assert len({released(order).to_json() for order in orders}) == 1


def test_sums_beyond_64_bits_are_exact() -> None:
    """Squares of 2^20 steps, summed over 10^5 rows and doubled nine times, pass 2^63."""
    from confide.core import Gram

    plan = cf.plan(METHOD, SCHEMA, cf.GDP(1.0))
    statistic = plan.statistic("moments")
    assert isinstance(statistic, Gram)
    (one,) = cf.read(pd.DataFrame({"a": [1.0], "y": [1.0]}), SCHEMA).aggregate(statistic)
    codes = np.full((2, 100_000), float(SCHEMA["a"].steps - 1))  # type: ignore[union-attr]
    state = statistic.update(statistic.zero(), codes)
    for _ in range(9):
        other = statistic.merge(statistic.zero(), state)
        state = statistic.merge(other, statistic.merge(statistic.zero(), state))
    assert (statistic.value(state) == one * 100_000 * 2**9).all()
    assert int(statistic.value(state)[0, 0]) > 2**63
