"""A mechanism of the user's own with a data-dependent loss: what is asserted is attacked, and the test keeps its error."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.messages import refuses

import confide as cf
from confide.audit import falsify_loss
from confide.core import seal
from confide.errors import PlanError, PrivacyError
from confide.methods.ptr.feature_votes import FeatureVotes, forward
from confide.noise import SimulatedNoise
from confide.sums.blocks.record_block import _FACTORS, Collected
from confide.sums.columns import ColumnCodes

STEP, SCALE = 2**20, 20
SCHEMA = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint"), "y": cf.Numeric(0, 1, on_missing="midpoint")})
PAIR = cf.ApproxDP(1.0, 1e-6)


def group_mean(table: np.ndarray, noise: Any) -> Any:
    """Mean of y where x is above 1/2, with Laplace noise of 1/20."""
    return np.rint(table[table[:, 0] > 0.5, 1].mean() * STEP) + noise.discrete_laplace(STEP // SCALE, 1)


def count(table: np.ndarray) -> float:
    return float((table[:, 0] > 0.5).sum())


def loss(k: float) -> float:
    """The mean of k records moves by 1/k, and by two steps of rounding."""
    return SCALE * (1 / k + 2 / STEP) if k >= 1 else inf


def careless(k: float) -> float:
    return loss(k) / 4


def _data(n: int = 400, share: float = 0.5) -> Any:
    g = np.random.default_rng(1)
    x = np.where(g.random(n) < share, 0.9, 0.1)
    return cf.read({"x": x, "y": g.beta(2, 5, n)}, SCHEMA)


def _asked(data: Any, **more: Any) -> Any:
    given: dict[str, Any] = {
        "loss": loss,
        "statistic": count,
        "sensitivity": 1.0,
        "grid": 1 / STEP,
        "privacy": PAIR,
        "ledger": None,
        "n": 400,
        "noise": SimulatedNoise(1),
    }
    return cf.ptr.generalized_release(group_mean, data, **(given | more))


def test_it_replies_where_the_loss_is_small_and_declines_elsewhere() -> None:
    found = _asked(_data())
    assert found.status == "valid" and abs(found.params.iloc[0] - 2 / 7) < 0.5
    said = " ".join(found.guarantee.assumptions)
    assert "asserted: one record moves count by at most 1" in said and "not broken" in said
    assert _asked(_data(share=0.01)).status == "declined"


def test_a_loss_and_a_sensitivity_that_are_too_small_are_broken_before_anything_is_charged() -> None:
    for wrong in ({"loss": careless}, {"sensitivity": 0.5}):
        with pytest.raises(PlanError) as caught:
            _asked(_data(), **wrong)
        assert "broken" in str(caught.value) and "Nothing was charged" in str(caught.value)
    report = falsify_loss(group_mean, loss, count, 1.0, SCHEMA, n=200, epsilon=0.75)
    assert report.verdict == "holds" and report.ratio == 1.0 and 0 < report.lower_bound <= report.loss
    assert falsify_loss(group_mean, careless, count, 1.0, SCHEMA, n=200, epsilon=0.75).verdict == "violated"
    assert falsify_loss(group_mean, loss, count, 0.9, SCHEMA, n=200, epsilon=0.75).verdict == "violated"
    assert falsify_loss(group_mean, lambda k: inf, count, 1.0, SCHEMA, n=20, epsilon=0.75).verdict == "untested"


def test_a_false_pass_is_as_rare_as_it_is_said_to_be() -> None:
    """At the last unsafe statistic the test passes with probability at most delta, and not much less."""
    method = cf.ptr.GeneralizedRelease(group_mean, lambda k: 0.5 if k > 100 else 2.0, count, 1.0)
    noise, runs = SimulatedNoise(3), 4_000
    table = np.column_stack([np.r_[np.full(100, 0.9), np.full(100, 0.1)], np.zeros(200)])
    passed = sum(method.passes(table, noise, 1.0, 0.05) for _ in range(runs))
    assert binom.sf(passed - 1, runs, 0.05) > 1e-4 and passed > 0.03 * runs
    table[100:180, 0] = 0.9
    assert sum(method.passes(table, noise, 1.0, 0.05) for _ in range(200)) > 190


def test_what_cannot_work_is_refused_before_the_records_are_seen() -> None:
    data = _data()

    def rising(k: float) -> float:
        return k / 100

    def broken(table: np.ndarray) -> float:
        raise KeyError("no")

    for wrong in (
        {"loss": rising},
        {"statistic": broken},
        {"sensitivity": 0.0},
        {"grid": 0.3},
        {"dim": 2},
        {"test_share": 0.0},
        {"report": 3},
        {"columns": ("z",)},
    ):
        with pytest.raises((PlanError, cf.errors.SchemaError)):
            _asked(data, **wrong)
    with pytest.raises(PrivacyError):
        _asked(data, privacy=cf.GDP(1.0))
    with refuses(PlanError):
        cf.ptr.GeneralizedRelease(3, loss, count, 1.0)  # type: ignore[arg-type]


def test_a_mechanism_that_fails_on_the_records_declines_without_a_word() -> None:
    def failing(table: np.ndarray, noise: Any) -> Any:
        if table[0, 1] == 0.25:
            raise ValueError("the first record is the one")
        return noise.discrete_laplace(STEP, 1)

    frame = {"x": np.full(1_000, 0.9), "y": np.full(1_000, 0.25)}
    schema = cf.Schema({name: cf.Numeric(0, 1, steps=5, on_missing="midpoint") for name in "xy"})
    method = cf.ptr.GeneralizedRelease(failing, lambda k: 0.0, count, 1.0)
    release = cf.release(method, cf.read(frame, schema), PAIR, ledger=None, noise=SimulatedNoise(1), n=1_000)
    assert release.status == "declined" and method.infer(release).status == "declined"


def test_it_charges_a_ledger_and_its_plan_says_what_the_test_has(tmp_path: Any) -> None:
    schema = cf.Schema(SCHEMA.columns, dataset="survey")
    ledger = cf.Ledger.create(
        tmp_path / "ledger.db", dataset="survey", budget=cf.ApproxDP(2.0, 1e-5, relation="substitute")
    )
    data = cf.read({"x": np.full(400, 0.9), "y": np.full(400, 0.5)}, schema)
    assert _asked(data, ledger=ledger, noise=None).status in ("valid", "declined")
    assert ledger.show().spent.startswith("epsilon 1") or "1" in ledger.show().spent
    plan = cf.plan(cf.ptr.GeneralizedRelease(group_mean, loss, count, 1.0, grid=1 / STEP), schema, PAIR, n=1_000)
    assert plan.constants["test_epsilon"] == 0.25 and plan.constants["loss"] == 0.75
    assert "never" not in " ".join(plan.warnings)


# features -------------------------------------------------------------------------------------------------------------

FEATURES = cf.Schema({name: cf.Numeric(-4, 6, on_missing="midpoint") for name in "abcdy"}, dataset="survey")


def _features(n: int, strong: float, seed: int = 1) -> Any:
    g = np.random.default_rng(seed)
    x = g.random((n, 4))
    y = strong * (x[:, 1] - x[:, 3]) + 0.5 * g.normal(size=n)
    return cf.read(dict(zip("abcd", x.T, strict=True)) | {"y": y}, FEATURES)


def test_features_that_blocks_agree_on_are_chosen_and_others_declined() -> None:
    asked: dict[str, Any] = {"privacy": PAIR, "ledger": None, "noise": SimulatedNoise(1)}
    found = cf.ptr.select_features("y ~ a + b + c + d", _features(6_000, 2.0), 2, **asked)
    assert found.names == ("b", "d") and found.formula == "y ~ b + d" and found.guarantee.assumptions == ()
    none = cf.ptr.select_features("y ~ a + b + c + d", _features(6_000, 0.0), 2, **asked)
    assert none.status == "declined" and none.formula == "y ~ 1" and "did not agree" in str(none)
    for formula, k in (("y ~ a", 1), ("y ~ a + b", 2), ("y ~ log(a) + b + c", 1), ("y ~ a + a + b", 1)):
        with refuses(PlanError):
            cf.ptr.select_features(formula, _features(200, 1.0), k, **asked)


def test_one_record_moves_the_gap_by_two_at_most_and_no_set_with_a_gap_above_two() -> None:
    g, own = np.random.default_rng(2), FeatureVotes(4, 2, 12)
    far = 0
    for _ in range(300):
        table = g.random((48, 5))
        table[:, 4] += g.choice([0.0, 0.6, 3.0]) * (table[:, 1] - table[:, 3])
        other = table.copy()
        other[int(g.integers(48))] = g.choice([0.0, 1.0, 50.0], 5)
        gap, near = own.statistic(table), own.statistic(other)
        assert abs(gap - near) <= 2
        if gap > 2:
            far += 1
            assert (own.mechanism(table, None) == own.mechanism(other, None)).all()
    assert far > 50


def _gaps(records: np.ndarray, votes: FeatureVotes, seeds: range) -> list[float]:
    """The gap of votes in each of many releases of the same records."""
    seen: list[float] = []

    def statistic(table: np.ndarray) -> float:
        seen.append(votes.statistic(table))
        return seen[-1]

    schema = cf.Schema({name: cf.Numeric(0, 1, on_missing="midpoint") for name in "aby"})
    method = cf.ptr.GeneralizedRelease(votes.mechanism, votes.loss, statistic, 2.0, test_share=1.0)
    plan = method.plan(schema, cf.ApproxDP(1.0, 1e-6), n=len(records))
    data = cf.read(dict(zip("aby", records.T, strict=True)), schema)
    seen.clear()
    for seed in seeds:
        seal(method, data, plan, SimulatedNoise(seed))
    return seen


def test_a_record_does_not_move_others_from_block_to_block() -> None:
    """A release puts records into an order of their contents, in which a replaced one would shift all between its two places. The gap
    would then move by up to the number of blocks, and the set with it: an order is drawn instead.
    """
    g, votes = np.random.default_rng(5), FeatureVotes(2, 1, 10)
    codes = Collected(
        ColumnCodes(cf.Schema({name: cf.Numeric(0, 1, on_missing="midpoint") for name in "aby"}), tuple("aby"))
    )
    x = np.round(g.random((40, 2)), 3)
    records = np.column_stack([x, x[:, 0]])

    def by_contents(table: np.ndarray) -> float:
        data = cf.read(dict(zip("aby", table.T, strict=True)), codes.map.schema)
        (rows,) = data.aggregate(codes)
        return votes.statistic(codes.map.table(rows))

    # records on which blocks hardly agree, and of many replacements the one that moves the gap most where blocks follow contents
    records[::2, 2] = x[::2, 1]
    pairs = []
    for _ in range(60):
        other = records.copy()
        other[g.integers(40)] = np.round(g.random(3), 3)
        pairs.append((abs(by_contents(other) - by_contents(records)), other))
    moved, worst = max(pairs, key=lambda pair: pair[0])
    assert moved > 2
    gaps = [_gaps(table, votes, range(300)) for table in (records, worst)]
    # each gap differs between orders, and no quantile of it by more than 2 and what 300 draws leave open
    assert all(len(set(own)) > 2 for own in gaps)
    shift = np.abs(np.mean(gaps[0]) - np.mean(gaps[1]))
    assert shift < 2 + 4 * np.hypot(*(np.std(own) / np.sqrt(300) for own in gaps))


def test_the_order_of_a_table_is_drawn_and_all_records_are_in_it() -> None:
    seen: list[np.ndarray] = []

    def statistic(table: np.ndarray) -> float:
        seen.append(table.copy())
        return count(table)

    method = cf.ptr.GeneralizedRelease(group_mean, loss, statistic, 1.0, grid=1 / STEP)
    plan, data = method.plan(SCHEMA, PAIR, n=100), _data(100)
    seen.clear()
    for seed in (1, 1, 2):
        seal(method, data, plan, SimulatedNoise(seed))
    first, again, other = seen
    assert (first == again).all() and (first != other).any()
    assert all((np.sort(table[:, 1]) == np.sort(first[:, 1])).all() for table in seen)


def test_a_forward_search_takes_what_explains_most_of_what_is_left() -> None:
    g = np.random.default_rng(3)
    x = g.normal(size=(500, 4))
    x[:, 1] = x[:, 0] + 0.01 * g.normal(size=500)  # nothing is left of it once the first is in
    rows = np.column_stack([x, 3 * x[:, 0] + x[:, 2]])
    assert sorted(forward(rows, 2).tolist()) in ([0, 2], [1, 2])
    assert forward(np.zeros((5, 5)), 2).tolist() == []


def _voted(rows: np.ndarray, k: int) -> np.ndarray:
    return FeatureVotes(4, k, 60).votes(rows)


def test_blocks_without_a_choice_do_not_vote_for_what_a_formula_names_first() -> None:
    """Fewer records than k + 2 in a block, a response that does not vary, features that hardly any block has: no agreement."""
    g = np.random.default_rng(4)
    few = g.random((180, 5))
    assert _voted(few, 2).sum() == 0 and _voted(few[:40], 1).sum() == 0
    rare = g.random((1_200, 5))
    rare[:, 4] = 0.3
    rare[::401, 4] = 1.0
    assert 0 < _voted(rare, 1).sum() <= 3
    levels = g.random((1_200, 5))
    levels[:, :4] = g.random((1_200, 4)) < 0.002
    assert _voted(levels, 2).sum() < 20


def test_features_of_the_same_gain_share_the_votes() -> None:
    rows = np.random.default_rng(5).random((1_200, 5))
    rows[:, 1] = rows[:, 2] = rows[:, 3] = rows[:, 0]
    rows[:, 4] += rows[:, 0]
    assert _voted(rows, 1).tolist() == [15, 15, 15, 15]


@pytest.mark.parametrize("formula", ["y ~ a + b + c + d", "y ~ d + c + b + a"])
def test_a_rare_response_or_few_records_are_declined_in_any_order(formula: str) -> None:
    g = np.random.default_rng(6)
    schema = cf.Schema({name: cf.Numeric(0, 1, on_missing="midpoint") for name in "abcdy"})
    for n in (150, 2_000):
        records = {name: g.random(n) for name in "abcd"} | {"y": (g.random(n) < 0.005) * 1.0}
        found = cf.ptr.select_features(
            formula, cf.read(records, schema), 1, privacy=PAIR, ledger=None, noise=SimulatedNoise(1)
        )
        assert found.status == "declined"


# what one record may do -----------------------------------------------------------------------------------------------

_SORTED = cf.Schema(
    {name: cf.Numeric(-1, 1, steps=2**20 if name == "d" else 1_001, on_missing="midpoint") for name in "acdy"}
)


def _woven(blocks: int, half: int, moved: bool) -> dict[str, np.ndarray]:
    """Records that `Collected` sorts so that each `blocks`-th one is of a kind; moved: its last one stands in the middle.

    In each block a explains y, and c does where the second half of the order is shifted by one: both change their sign from block to
    block, and c also from half to half. d decides the order.
    """
    n = 2 * half * blocks
    i = np.arange(n)
    y = np.where(i // blocks % 2 == 0, 1.0, -1.0)
    a = np.where(i % blocks % 2 == 0, y, -y)
    c = np.where(i >= n // 2, -a, a)
    codes = {name: np.rint((0.5 * own + 1) * 500) for name, own in (("a", a), ("c", c), ("y", y))}
    weight = dict(zip("acdy", _FACTORS, strict=False))
    rest = sum(weight[name] * own for name, own in codes.items())
    d = np.rint((np.linspace(rest.max(), rest.min() + weight["d"] * (2**20 - 3_000), n) - rest) / weight["d"]) + 1_000
    assert (np.diff(rest + weight["d"] * d) > 0).all() and d.min() >= 0 and d.max() < 2**20 - 1
    records = {name: own / 500 - 1 for name, own in codes.items()} | {"d": d / (2**20 - 1) * 2 - 1}
    if moved:
        for own in records.values():
            own[-1] = own[n // 2 - 1]
        records["d"][-1] += 1e-4
    return records


def test_a_record_that_moves_others_in_the_order_of_contents_moves_no_choice() -> None:
    blocks, half, runs = 40, 20, 12
    chosen = []
    for moved in (False, True):
        data = cf.read(_woven(blocks, half, moved), _SORTED)
        asked: dict[str, Any] = {"privacy": PAIR, "ledger": None, "blocks": blocks, "n": 2 * half * blocks}
        found = [
            cf.ptr.select_features("y ~ a + c + d", data, 1, **asked, noise=SimulatedNoise(k)).names
            for k in range(runs)
        ]
        chosen.append(found)
    for names in {*chosen[0], *chosen[1]}:
        first, second = (own.count(names) for own in chosen)
        # both are draws of chances within a factor e: a split of 12 to 0 has a chance below 1e-5 at probabilities p and p/e, p + p/e <= 1
        assert not (min(first, second) == 0 and max(first, second) == runs), names


def test_functions_get_the_records_in_an_order_that_is_drawn() -> None:
    """Two releases of the same records see two orders, and each of them all records."""
    seen: list[np.ndarray] = []

    def kept(table: np.ndarray) -> float:
        seen.append(table[:, 0].copy())
        return 30.0

    method = cf.ptr.GeneralizedRelease(lambda table, noise: noise.discrete_laplace(10, 1), lambda v: 0.5, kept, 1.0)
    given = {name: np.linspace(0, 1, 400) for name in "xy"}
    tables = []
    for seed in (1, 2):
        seen.clear()
        cf.release(method, cf.read(given, SCHEMA), PAIR, ledger=None, noise=SimulatedNoise(seed), n=400)
        tables.append(seen[-1])
    assert (tables[0] != tables[1]).mean() > 0.9
    for table in tables:
        assert np.allclose(np.sort(table), given["x"], atol=1e-5)
        # of drawn orders 0.23 is 4.6 sd of the correlation with the order of the contents
        assert abs(np.corrcoef(np.argsort(table), np.arange(400))[0, 1]) < 0.23


def test_the_loss_is_also_looked_at_where_the_test_lowers_the_statistic_to() -> None:
    def even(k: float) -> float:
        return 30.0 / k**2 if k else inf  # falls with every count, and rises below 0

    with refuses(PlanError):
        _asked(_data(), loss=even, report=None)
    assert _asked(_data(share=0.01), loss=lambda k: 30 / k**2 if k >= 1 else inf, statistic=count).status == "declined"


def test_what_is_cut_at_the_far_end_never_passes() -> None:
    """A statistic so far below 0 that it is cut, or that is no number, does not become a safer one."""

    def safe(v: float) -> float:
        return 0.0 if v >= -5_000 else inf

    noise, table = SimulatedNoise(1), np.zeros((3, 2))
    for value in (-1e9, -inf, np.nan, -1e300):
        method = cf.ptr.GeneralizedRelease(group_mean, safe, lambda t, v=value: v, 1e-6)
        assert not any(method.passes(table, noise, 1.0, 1e-6) for _ in range(50))
    method = cf.ptr.GeneralizedRelease(group_mean, safe, lambda t: 0.0, 1e-6)
    assert all(method.passes(table, noise, 1.0, 1e-6) for _ in range(50))


def test_two_neighbors_pass_with_chances_within_what_the_test_may_spend() -> None:
    """Where passes are rare, chances of statistics a move apart differ by e^e_t: no more, and not much less."""
    method = cf.ptr.GeneralizedRelease(group_mean, lambda k: 0.0 if k > 0 else inf, count, 1.0, test_share=1.0)
    runs, epsilon, off = 20_000, 1.0, round(method.taken_off(1.0, 0.01))
    near = []
    for k in (off - 2, off - 1):
        table = np.column_stack([np.r_[np.full(k, 0.9), np.full(40 - k, 0.1)], np.zeros(40)])
        noise = SimulatedNoise(k)
        near.append(sum(method.passes(table, noise, epsilon, 0.01) for _ in range(runs)) / runs)
    spent = np.log(near[1] / near[0])
    sd = float(np.sqrt(sum((1 - p) / (p * runs) for p in near)))
    assert abs(spent - epsilon) < 4 * sd + 0.01


def test_a_report_on_something_else_is_refused() -> None:
    other = falsify_loss(group_mean, loss, count, 1.0, SCHEMA, n=100, epsilon=0.5)
    with refuses(PlanError):
        _asked(_data(), report=other)  # up to a smaller loss than the mechanism may have here
    right = falsify_loss(group_mean, loss, count, 1.0, SCHEMA, n=100, epsilon=0.75)
    found = _asked(_data(), report=right)
    assert f"attacked on {right.tried:,} pairs" in " ".join(found.guarantee.assumptions)
    for wrong in ({"statistic": lambda t: count(t)}, {"sensitivity": 2.0}, {"privacy": cf.ApproxDP(2.0, 1e-6)}):
        with pytest.raises(PlanError, match="the report is on"):
            _asked(_data(), **{"report": right, **wrong})


def test_the_attack_sees_what_one_of_many_like_records_does() -> None:
    """A median of two halves jumps from one end to the other."""

    def median(table: np.ndarray) -> float:
        return float(np.median(table[:, 0]))

    for n in (50, 51):
        found = falsify_loss(
            lambda t, noise: noise.discrete_laplace(10, 1), lambda v: 0.5, median, 0.4, [(0, 1)], n=n, epsilon=1.0
        )
        assert found.violated and found.ratio >= 1.25


def test_only_the_votes_own_functions_assert_nothing() -> None:
    own = FeatureVotes(2, 1, 10)

    def said(mechanism: Any, moves: float = 2.0) -> tuple[str, ...]:
        method = cf.ptr.GeneralizedRelease(mechanism, own.loss, own.statistic, moves, test_share=1.0)
        plan = cf.plan(method, FEATURES.with_columns({k: FEATURES[k] for k in "aby"}), PAIR, n=100)
        return tuple(plan.guarantee.assumptions)

    assert said(own.mechanism) == ()
    assert (
        said(own.mechanism, 1.0)
        and said(FeatureVotes(2, 1, 11).mechanism)
        and said(lambda t, noise: own.mechanism(t, noise))
    )


def test_blocks_that_cannot_agree_are_refused_before_anything_is_charged() -> None:
    asked: dict[str, Any] = {"ledger": None, "noise": SimulatedNoise(1)}
    with refuses(PlanError):
        cf.ptr.select_features("y ~ a + b + c", _features(150, 1.0), 1, privacy=PAIR, n=150, **asked)
    with refuses(PlanError):
        cf.ptr.select_features("y ~ a + b + c", _features(600, 1.0), 1, privacy=PAIR, blocks=20, **asked)
    few = cf.ptr.select_features("y ~ a + b + c", _features(150, 1.0), 1, privacy=PAIR, **asked)
    assert few.status == "declined"  # no block has records enough to vote


def test_the_votes_have_no_loss_only_where_no_record_changes_the_set() -> None:
    g, own = np.random.default_rng(4), FeatureVotes(2, 1, 9)
    changed = 0
    for _ in range(400):
        table = g.random((45, 3))
        table[:, 2] += 0.4 * (table[:, 0] + table[:, 1])
        other = table.copy()
        other[int(g.integers(45))] = g.choice([0.0, 3.0, 50.0], 3)
        if (own.mechanism(table, None) != own.mechanism(other, None)).any():
            changed += own.statistic(table) > 0
            assert own.loss(own.statistic(table)) == inf
    assert changed > 5


def test_a_loss_that_is_little_too_small_is_broken_where_runs_tell_it() -> None:
    """Laplace noise of a sum's own move: the loss is 1, and neither 0.6 nor what lies beyond 1.2 is meant."""

    def noisy_sum(table: np.ndarray, noise: Any) -> Any:
        return np.rint(table.sum() * 1_000) + noise.discrete_laplace(1_000, 1)

    asked: tuple[Any, ...] = (len, 1.0, [(0, 1)])
    small = falsify_loss(noisy_sum, lambda size: 0.6, *asked, n=10, epsilon=1.0, runs=6_000)
    assert small.violated and 0.6 < small.lower_bound <= 1.0
    assert falsify_loss(noisy_sum, lambda size: 1.0, *asked, n=10, epsilon=1.0, runs=6_000).verdict == "holds"
