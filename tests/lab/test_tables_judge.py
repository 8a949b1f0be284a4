"""The judge of tables: its rule, and that what it reads of many releases at once is what the methods say of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.methods.tables.draw import Margins
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.tables_judge import plain
from confide_lab.benchmarks.tables_judge.judged import Kept
from confide_lab.benchmarks.tables_judge.rule import held
from confide_lab.benchmarks.tables_judge.sets import Case, Recipe
from confide_lab.benchmarks.tables_judge.streams import Answer, Counted, Measured, Ranked


@pytest.fixture(scope="module")
def case() -> Case:
    g = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "sex": g.choice(["f", "m"], 4_000, p=[0.4, 0.6]),
            "area": g.choice(["n", "s", "w"], 4_000, p=[0.6, 0.38, 0.02]),
            "wage": np.where(g.random(4_000) < 0.3, 0.0, g.lognormal(3, 0.8, 4_000)),
            "age": np.where(g.random(4_000) < 0.1, np.nan, g.integers(18, 90, 4_000)),
        }
    )
    return Case("made", frame, Recipe(("sex", "area"), {"wage": (0, 500), "age": (16, 100)}, "sex", "area"))


def test_rule_without_gaps_is_the_rule_of_coverage() -> None:
    inside = np.random.default_rng(1).random((60, 5)) < 0.9
    own = held(inside, np.ones_like(inside))
    assert (own.coverage, own.low, own.high) == pytest.approx(interval(inside), rel=1e-3)


def test_rule_finds_a_short_interval_and_spares_a_good_one() -> None:
    g, counted = np.random.default_rng(2), np.ones((400, 1), dtype=bool)
    assert held(g.random((400, 1)) < 0.85, counted).short(0.94)
    assert not held(g.random((400, 1)) < 0.95, counted).short(0.94)
    assert not held(g.random((400, 1)) < 0.5, ~counted).short(0.94)  # nothing was claimed


def test_counts_and_shares_are_read_as_the_method_reads_them(case: Case) -> None:
    own, g = Counted(case, 0.5), np.random.default_rng(3)
    margins, exact = own.margins([g.integers(0, 4_000, 500) for _ in range(3)], g)
    found = {answer.kind: answer for answer in own.answers(margins, exact)}
    second = Margins(margins.sizes, {axes: v[1:2] for axes, v in margins.components.items()}, margins.spread)
    for kind, table in (("counts", own.table), ("shares", own.shares)):
        one = replace(table, margins=second)
        _same(one, found[kind], 1)
        _same(replace(one, inference="dataset"), found[f"{kind}, these records"], 1)
    within: Any = cf.tables.Shares("sex * area", within="sex", inference="population")
    release = cf.release(within, cf.read(case.frame, case.schema()), cf.GDP(0.5), ledger=None)
    read: Any = within.infer(release)
    table = replace(read, margins=second)
    for frame, kind in ((table.diff("sex"), "differences of shares"), (table.ratio("sex"), "relative risks")):
        assert tuple(frame.index) == found[kind].names
        np.testing.assert_allclose(frame["ci_low"], found[kind].low[1], rtol=1e-9)
        np.testing.assert_allclose(frame["ci_high"], found[kind].high[1], rtol=1e-9)
        assert (found[kind].sure[1] == (frame["flags"].str.replace("noise_dominates", "").str.strip() == "")).all()


@pytest.mark.parametrize("widened", [1.0, 4.0])
@pytest.mark.usefixtures("declared")
def test_means_are_read_as_the_method_reads_them(case: Case, widened: float) -> None:
    own, g = Measured(case, 0.5, widened), np.random.default_rng(4)
    samples = [g.integers(0, 4_000, 300) for _ in range(3)]
    margins, exact = own.sums(samples, g)
    means, records, gaps = own.answers(margins, exact)
    block = own.table.rows.block
    mine = {axes: v[2 * block :] for axes, v in margins.components.items()}
    one = replace(own.table, margins=Margins(margins.sizes, mine, margins.spread))
    _same(one, means, 2)
    _same(replace(one, inference="dataset"), records, 2)
    frame = pd.concat([one.diff("sex", of=name) for name in case.measures])
    np.testing.assert_allclose(frame["ci_low"], gaps.low[2], rtol=1e-8)
    np.testing.assert_allclose(frame["ci_high"], gaps.high[2], rtol=1e-8)
    assert (gaps.sure[2] == (frame["flags"].str.replace("noise_dominates", "").str.strip() == "")).all()
    truth = plain.truths(case, case.frame.iloc[samples[2]].reset_index(drop=True))["means"]
    assert records.own is not None
    aim = np.array([truth[name] for name in records.names])
    np.testing.assert_allclose(records.own[2], aim, rtol=1e-4, atol=1e-3 * widened)


def _same(table: Any, answer: Answer, r: int) -> None:
    frame = table.to_frame()
    assert table.names == answer.names
    np.testing.assert_allclose(frame["ci_low"], answer.low[r], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(frame["ci_high"], answer.high[r], rtol=1e-8, atol=1e-9)
    unsure = frame["flags"].str.contains("count_below_noise|skewed_few_records|whole_range")
    assert (answer.sure[r] == ~unsure).all()


def test_quantiles_without_noise_are_those_of_the_sample(case: Case) -> None:
    own, g = Ranked(case, 1e4, 1.0, "wage"), np.random.default_rng(5)
    rows = g.integers(0, 4_000, 2_000)
    found = own.answer([rows], g)
    frame = case.frame.iloc[rows].reset_index(drop=True)
    bare = plain.intervals(case, frame)["quantiles"]
    width = 500 / 256
    for k, name in enumerate(found.names):
        low, high = bare[name]
        assert found.low[0, k] <= low + width
        assert found.low[0, k] >= low - 2 * width
        assert found.high[0, k] >= high - width
        assert found.high[0, k] <= high + 2 * width


def test_judged_names_what_is_short() -> None:
    g = np.random.default_rng(6)
    inside = g.random((500, 2)) < np.array([0.95, 0.8])
    low = np.where(inside, -1.0, 1.0)
    whole = np.ones((500, 2), dtype=bool)
    answer = Answer("means", ("good", "bad"), low, np.full((500, 2), 2.0), whole, np.full((500, 2), 0.1))
    row = Kept.of(answer, {"good": 0.0, "bad": 0.0}, []).judged("means", None)
    assert row["short numbers"] == ["bad"]
    assert row["numbers"] == 2
