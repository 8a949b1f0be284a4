"""Record and replay: exact differences for one-round and adaptive methods, and everything else that may not differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.third_party import Mean

import confide as cf
from confide.audit import replay
from confide.audit.replay.recording import ReplayNoise, run
from confide.core import BudgetItem, Composed, Meter, Plan
from confide.noise import SimulatedNoise
from confide.sums.coding import Box
from confide_lab.benchmarks.planted.toy import SCHEMA, Toy

XY = cf.Schema({"a": cf.Numeric(-2, 3), "y": cf.Numeric(-20, 30)})
SSP = cf.regression.SSP


def replayed(
    method: Any, one: Any, other: Any, schema: cf.Schema = XY, relation: str = "add-remove", seed: int = 0
) -> Any:
    n = len(one) if relation == "substitute" else None
    plan = cf.plan(method, schema, cf.GDP(1.0, relation=relation), n=n)
    return replay(method, plan, cf.read(one, schema), cf.read(other, schema), seed=seed)


def _box(release: Any) -> Box | None:
    """The box of the transcript, None where it is the public one."""
    if "box" not in release.public:
        return None
    middle, half = release.public["box"]
    return Box(tuple(middle), tuple(half))


def _layout(method: Any, release: Any) -> Any:
    """The layout with the cap of the transcript, where it has one."""
    layout = method._layout(XY)
    return layout.far(float(release.public["cap"][0])) if "cap" in release.public else layout


# in the public box; few records; re-centred
WAYS = [(False, 60, ""), ("auto", 30, ""), ("auto", 400, "re-centred ")]


@pytest.mark.parametrize("cov", ["robust", "classical"])
@pytest.mark.parametrize(("recenter", "n", "branch"), WAYS)
def test_the_difference_is_the_one_of_the_exact_integers(cov: str, recenter: Any, n: int, branch: str) -> None:
    method, frame = SSP("y ~ a", cov=cov, recenter=recenter), XY.sample(n, 1)
    found = replayed(method, frame, frame.iloc[1:])
    assert found.ok and found.problems == ()
    plan = cf.plan(method, XY, cf.GDP(1.0))
    name = f"{branch}moments"
    first = run(method, cf.read(frame, XY), plan, ReplayNoise(0))
    assert first.release is not None and set(found.moved) == set(first.release.statistics)
    # in the box of the transcript
    (row,) = cf.read(frame.iloc[:1], XY).aggregate(_layout(method, first.release).moments_in(_box(first.release)))
    assert found.moved[name].squared == Fraction(int((row * row).sum()))
    scale = plan.spend(name).scale
    assert found.moved[name].cost == Fraction(int((row * row).sum())) / scale


@pytest.mark.parametrize(("recenter", "n", "branch"), WAYS)
def test_the_second_pass_is_compared_at_the_same_noisy_line(recenter: Any, n: int, branch: str) -> None:
    """The meat's integers at the line of the transcript: exactly what a map at that line gives for the record."""
    from confide.methods.regression.sums.linear_rows import LinearRows

    method, frame = SSP("y ~ a", recenter=recenter), XY.sample(n, 2)
    plan = cf.plan(method, XY, cf.GDP(1.0))
    found = replayed(method, frame, frame.iloc[1:], seed=3)
    first = run(method, cf.read(frame, XY), plan, ReplayNoise(3))
    assert first.release is not None
    rows, theta = plan.statistic(f"{branch}meat").map, first.release.public["theta"]
    assert isinstance(rows, LinearRows) and rows.residual == 0 and rows.recentred == (recenter == "auto")
    limit = float(first.release.public["limits"][0])
    (meat,) = cf.read(frame.iloc[:1], XY).aggregate(
        _layout(method, first.release).meat(0, theta, _box(first.release), limit)
    )
    assert found.moved[f"{branch}meat"].squared == Fraction(int((meat * meat).sum()))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("record", [(np.nan, 1.0), (np.inf, -np.inf), (1e300, 5e-324), (-0.0, 2.0**63)])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_hostile_records_show_in_the_statistics_alone(
    relation: str, record: tuple[float, float], recenter: Any
) -> None:
    frame = XY.sample(30, 3)
    odd = pd.DataFrame([record], columns=["a", "y"])
    other = pd.concat([frame if relation == "add-remove" else frame.iloc[1:], odd])
    assert replayed(SSP("y ~ a", recenter=recenter), frame, other, relation=relation).ok


@pytest.mark.parametrize("rows", [(0, 1), (1, 0), (1, 2)])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_few_records(rows: tuple[int, int], recenter: Any) -> None:
    one, other = (XY.sample(5, 4).iloc[:k] for k in rows)
    assert replayed(SSP("y ~ a", recenter=recenter), one, other).ok


def test_two_records_that_differ_too_much_are_measured_exactly() -> None:
    frame = XY.sample(30, 5)
    frame.loc[:1] = [[3.0, 30.0]] * 2
    found = replayed(SSP("y ~ a", recenter=False), frame, frame.iloc[2:])
    assert not found.ok and not found.problems
    assert found.moved["moments"].ratio > 1.3


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("half noise", "scale"),
        ("exact df", "public"),
        ("error", "exception"),
        ("log", "log lines"),
        ("warning", "warnings"),
        ("print", "printed"),
        ("extra draws", "no statistic explains"),
        ("extra pass", "passes"),
        ("size", "public"),
        ("noise x 0.97", "does not enter as it was drawn"),
        ("noise of a fixed seed", "without its own noise"),
    ],
)
def test_what_is_found_is_said(fault: str, says: str) -> None:
    frame = SCHEMA.sample(40, 1)
    found = replayed(Toy(fault=fault), frame, pd.concat([frame, frame.iloc[:1]]), SCHEMA)
    assert any(says in problem for problem in found.problems), found.problems
    row = found.finding("toy", "add-remove")
    assert row.violated and says in row.note


def test_messages_name_no_value_of_a_release() -> None:
    frame = SCHEMA.sample(40, 1)
    found = replayed(Toy(fault="exact df"), frame, frame.iloc[1:], SCHEMA)
    assert found.problems == ("the same transcript: 'public' of the release differs (df)",)


@dataclass(frozen=True)
class Counting(Mean):
    """Asks for the number of records, which add-remove keeps secret."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        source.count()
        return super().draw(source, plan, meter)


def test_the_number_of_records_may_not_be_asked_for_under_add_remove() -> None:
    frame = SCHEMA.sample(10, 1)
    found = replayed(Counting("v"), frame, frame.iloc[1:], SCHEMA)
    assert any("number of records" in problem for problem in found.problems)
    other = pd.concat([frame.iloc[1:], frame.iloc[:1]])
    assert replayed(Counting("v"), frame, other, SCHEMA, relation="substitute").ok


@dataclass(frozen=True)
class Chooser(Mean):
    """The exponential mechanism over counts above and below the middle, then the moments."""

    exact: bool = True
    native = "PureDP"

    def plan(self, schema: Any, privacy: Any, *, n: Any = None, public: Any = None) -> Plan:
        from confide.core import Allowance, Total
        from confide.sums import ColumnMoments

        allowance = Allowance.of(privacy, self, schema)
        statistic = Total(ColumnMoments(schema, self.column), nonnegative=True)
        choice = allowance.choice("half", 2, Fraction(1), Fraction(1, 2), map=statistic.map.digest)
        spend = allowance.spend("moments", statistic, Fraction(1, 2))
        event = Composed((choice, spend))
        return Plan.of(self, schema, allowance, event, {"moments": statistic}, n=n, target="t", intervals_for="c")

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (total,) = source.aggregate(plan.statistic("moments"))
        count, first = (int(v) >> 20 for v in total[:2])
        factor = 1 if self.exact else 3
        chosen = meter.choose("half", np.array([factor * first, factor * (count - first)], dtype=object))
        meter.draw("moments", total if chosen in (0, 1) else total * 0)
        return {"chosen": np.array([chosen])}


class Chooses:
    """A sampler with an exponential mechanism of its own, so that this test needs no other."""

    def __init__(self, inner: SimulatedNoise) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any, lengths: Any = None) -> int:
        return int(np.argmax(np.asarray(scores, dtype=float)))


@pytest.mark.parametrize("exact", [True, False])
def test_a_choice_is_replayed_and_its_scores_are_compared(exact: bool) -> None:
    schema = cf.Schema({"v": cf.Numeric(0, 10)})
    frame = pd.DataFrame({"v": [10.0] * 5})
    method = Chooser("v", exact=exact)
    plan = cf.plan(method, schema, cf.PureDP(1.0))
    # the largest score changes side: the winner differs, unless the transcript says which one left
    other = pd.concat([frame, pd.DataFrame({"v": [10.0]})])
    found = replay(method, plan, cf.read(frame, schema), cf.read(other, schema), wrap=Chooses)
    assert not found.problems
    assert found.moved["half"].within == exact
    assert found.moved["half"].ratio == (1.0 if exact else 3.0)
    assert isinstance(found.moved["half"].spend, BudgetItem)
