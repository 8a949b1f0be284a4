"""Rows of a unit by weight: exact sums, their sensitivities, scores of units; each planted fault is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from tests.few import few

import confide as cf
from confide.core import Gram, Total
from confide.core.lost_values import ReadRows
from confide.core.ranges import as_fine
from confide.core.units import privacy_unit
from confide.core.units.privacy_unit import WHOLE_ROW, Weighted
from confide.methods.regression.sums import scores
from confide.methods.regression.sums.scores import LimitedScores, UnitFisherScores, UnitScores, UnitSizes
from confide.schema import ModelMatrix
from confide.sources.grouping import units as clustering
from confide.sums.clusters.cluster_covariance import Counting
from confide.sums.coding import BOUND
from confide.sums.ranges import BinRows

COLUMNS = {"x": cf.Numeric(-1, 1), "f": cf.Categorical(["a", "b", "c"]), "y": cf.Numeric(-1, 1), "w": cf.Integer(0, 1)}
PLAIN = cf.Schema(COLUMNS, dataset="visits")
METHODS = {
    "line": cf.regression.LeastSquares("y ~ x + f"),
    "logistic": cf.regression.Logistic("w ~ x"),
    "classes": cf.classification.ClassMeans("f ~ x + y"),
}


def schema(k: int = 1) -> cf.Schema:
    return cf.Schema(COLUMNS, dataset="visits", unit=cf.Unit("pid", rows=k))


def visits(units: int, most: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pid = np.repeat(np.arange(units), rng.integers(1, most + 1, units))
    n = len(pid)
    return pd.DataFrame(
        {
            "pid": pid,
            "x": rng.uniform(-1, 1, n),
            "f": rng.choice(["a", "b", "c"], n),
            "y": rng.uniform(-1, 1, n),
            "w": rng.integers(0, 2, n),
        }
    )


def sums(method: Any, own: cf.Schema, frame: pd.DataFrame) -> dict[str, Any]:
    plan = cf.plan(method, own, cf.GDP(1.0))
    names = [name for name in plan.statistics if name != "contributions"]
    found = cf.read(frame, own).aggregate(*(plan.statistics[name] for name in names))
    return {name: total.tolist() for name, total in zip(names, found, strict=True)}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_unique_ids_change_no_integer(name: str) -> None:
    """One row of each unit: the exact integers before noise are those of no unit at all."""
    frame = visits(400, 1)
    plain, own = sums(METHODS[name], PLAIN, frame), sums(METHODS[name], schema(), frame)
    same = {key: total for key, total in own.items() if key in plain}
    assert same == {key: plain[key] for key in same}
    assert set(plain) <= set(own)


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("k", [1, 3])
def test_the_same_integers_in_any_order_type_batch_and_memory(
    name: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = visits(120, 9)
    want = sums(METHODS[name], schema(k), frame)
    mixed = frame.sample(frac=1, random_state=2)
    halves = [mixed.iloc[:200].assign(pid=lambda f: f.pid.astype(str)), mixed.iloc[200:].astype({"pid": float})]
    assert sums(METHODS[name], schema(k), pd.concat([h.astype({"pid": object}) for h in halves])) == want
    monkeypatch.setattr(clustering, "GATHERED", 300)
    monkeypatch.setattr(clustering, "BLOCK_ROWS", 7)
    assert sums(METHODS[name], schema(k), mixed) == want


def test_500_rows_of_one_person_are_one_rows_worth_of_any_unit_around() -> None:
    once = visits(50, 1)
    many = pd.concat([once] + [once.iloc[[3]]] * 499)
    method = cf.regression.LeastSquares("y ~ x")
    one, other = (sums(method, schema(), frame) for frame in (once, many))
    # the score of 500 equal rows is rounded once more
    for key in one:
        a, b = np.array(one[key], dtype=float), np.array(other[key], dtype=float)
        assert np.abs(a - b).max() <= 2.0**-19 * max(np.abs(a).max(), 1.0), key


# sensitivities -----------------------------------------------------------------------------------------------------


def codes(names: tuple[str, ...], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Codes of rows of one unit, often at the ends of their columns, with the row that says where the unit begins."""
    steps = [
        4 if name.startswith("read(") else PLAIN[name.removeprefix("fine(").removesuffix(")")].steps for name in names
    ]
    own = np.array(
        [np.where(rng.random(rows) < 0.7, rng.choice([0, s - 1], rows), rng.integers(0, s, rows)) for s in steps],
        dtype=np.float64,
    )
    if rng.random() < 0.5:
        own[:] = own[:, :1]
    for place, name in enumerate(names):
        if name.startswith("fine("):
            own[place] = as_fine(own[place] * 2.0 / (steps[place] - 1) - 1)
    first = np.full((1, rows), -1.0)
    first[0, 0] = 0.0
    return np.concatenate([own.astype(np.float64), first])


def statistics(k: int) -> Iterator[tuple[str, Any, int]]:
    """Statistics by weight, and how many times their own sensitivity one unit may move them."""
    design = ModelMatrix.of("y ~ x", PLAIN)
    method = cf.regression.LeastSquares("y ~ x")
    for name, one in cf.plan(method, schema(k), cf.GDP(1.0)).statistics.items():
        if name != "contributions":
            yield name, one, k if isinstance(one, Weighted) else 1
    logistic = cf.plan(cf.regression.Logistic("w ~ x"), schema(k), cf.GDP(1.0)).statistics["meat"]
    yield "logistic meat", logistic, 1
    assert design.columns == ("x", "y")


def value(one: Any, own: NDArray[np.float64]) -> NDArray[Any]:
    return one.value(one.update(one.zero(), own))


@pytest.mark.parametrize("k", few([1, 2, 3], 1))
def test_one_unit_moves_a_statistic_by_no_more_than_is_charged(k: int) -> None:
    """Adding, removing and replacing units of 1 to 400 rows, in exact integers."""
    rng = np.random.default_rng(k)
    worst: dict[str, float] = {}
    for name, one, times in statistics(k):
        rows = one.map.map if isinstance(one, Weighted) else one.map
        names = rows.columns if isinstance(rows, BinRows | ReadRows) else rows.design.columns
        for relation in ("add-remove", "substitute"):
            allowed = one.sensitivity_squared(relation) * times**2
            for _ in range(40):
                here = value(one, codes(names, int(rng.choice([1, k, k + 1, 17, 400])), rng))
                there = value(one, codes(names, int(rng.choice([1, k, 10 * k, 60])), rng)) * (relation == "substitute")
                moved = sum((Fraction(v) ** 2 for v in (here - there).ravel()), Fraction(0))
                assert moved <= allowed, (name, relation)
                worst[name] = max(worst.get(name, 0.0), float(moved / allowed))
    assert worst["count"] > 0.99
    assert max(worst.values()) > 0.999


def test_the_weights_of_a_unit_add_up_to_k() -> None:
    rng = np.random.default_rng(3)
    one = next(one for name, one, _ in statistics(2) if name == "count")
    for m in (1, 2, 3, 7, 1_000):
        (total,) = value(one, codes(("x", "y"), m, rng))
        assert abs(total - min(m, 2)) <= Fraction(1, 1 << 20)


@pytest.mark.parametrize("k", [1, 2])
def test_a_weighted_sum_is_the_nearest_multiple_of_its_grain(k: int) -> None:
    """Of units of many sizes at once, against Fractions: rounded once, to the nearest, not by size and not downwards."""
    rng, far = np.random.default_rng(11), []
    for name, one, _ in statistics(k):
        if not isinstance(one, Weighted):
            continue
        inner = one.statistic
        for _ in range(25):
            own = [codes(inner.map.columns, int(m), rng) for m in rng.choice([1, 2, 3, 5, 6, 7, 11, 13], 9)]
            exact = np.array(inner.value(inner.zero()), dtype=object) * Fraction(1)
            for unit in own:
                m = unit.shape[1]
                rows = np.array(inner.value(inner.update(inner.zero(), unit[:-1])), dtype=object)
                exact = exact + rows * Fraction(min(k, m), m)
            off = [Fraction(v) / one.grain for v in (value(one, np.concatenate(own, axis=1)) - exact).ravel()]
            assert max(map(abs, off)) <= Fraction(1, 2) + Fraction(16, 1 << 40), name
            far += [float(v) for v in off if v]
    # as often upwards as downwards: five standard errors of the mean of an even distribution
    assert abs(np.mean(far)) <= 5 * (1 / 12 / len(far)) ** 0.5 and np.max(far) > 0.4


def test_rounding_is_charged() -> None:
    """Half a grain on either side, in each number, twice over: of counts a grain is 2^-20, of sums of fine rows one step."""
    for name, one, _ in statistics(1):
        if isinstance(one, Weighted):
            size = int(np.prod(one.shape))
            for relation in ("add-remove", "substitute"):
                inner = float(one.statistic.sensitivity_squared(relation))
                moved = one.sensitivity_squared(relation) - one.statistic.sensitivity_squared(relation)
                assert float(moved) >= 4 * (inner * size) ** 0.5 * float(one.grain), name
                l1 = one.sensitivity_l1(relation) - one.statistic.sensitivity_l1(relation)
                assert l1 == 2 * size * one.grain, name


def test_unusable_rows_take_no_weight() -> None:
    """m counts the rows that the analysis can use: those with a value, inside the subgroup."""
    own = cf.Schema({**COLUMNS, "y": cf.Numeric(-1, 1, on_missing="drop")}, unit=cf.Unit("pid"))
    frame = pd.DataFrame(
        {"pid": [1] * 10 + [2], "x": [0.5] * 11, "f": ["a"] * 11, "y": [1.0] + [np.nan] * 9 + [-1.0], "w": [1] * 11}
    )
    once = frame.iloc[[0, 10]]
    method = cf.regression.LeastSquares("y ~ x")
    assert sums(method, own, frame) == sums(method, own, once)
    frame = frame.assign(y=1.0, x=[0.5] + [-0.5] * 10)
    inside = cf.regression.LeastSquares("y ~ x", where="x >= 0")
    assert sums(inside, own, frame) == sums(inside, own, frame.iloc[[0]])


# scores of units ---------------------------------------------------------------------------------------------------


def units_of(design: ModelMatrix, counting: Counting, bound: float = 0.3) -> list[Any]:
    return [
        UnitScores(design, limit=bound, counting=counting),
        UnitSizes(design, scores=True, counting=counting),
        UnitFisherScores(ModelMatrix.of("w ~ x", PLAIN), bound=bound, counting=counting),
    ]


def test_rows_that_hang_together_wholly_count_as_one() -> None:
    """Ten equal rows of each unit leave the meat what one row leaves; a meat of rows would be a tenth."""
    frame = visits(300, 1)
    tenfold = pd.concat([frame] * 10)
    for name in ("line", "logistic"):
        own = sums(METHODS[name], schema(), tenfold)["meat"]
        plain = sums(METHODS[name], PLAIN, frame)["meat"]
        a, b = np.array(own, dtype=float), np.array(plain, dtype=float)
        assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def test_scores_of_units_are_limited() -> None:
    rng = np.random.default_rng(5)
    counting = Counting(5, WHOLE_ROW)
    for rows in units_of(ModelMatrix.of("y ~ x", PLAIN), counting):
        for m in (1, 2, 5, 6, 50):
            found = rows(codes(rows.design.columns, m, rng))
            assert found.shape[1] == 1
            assert (found**2).sum() <= rows.l2_squared
    assert all(
        one.l2_squared in (BOUND, one.width * 26**2) for one in units_of(ModelMatrix.of("y ~ x", PLAIN), counting)
    )


def test_a_unit_score_does_not_depend_on_the_order_of_its_rows() -> None:
    rng = np.random.default_rng(6)
    for rows in units_of(ModelMatrix.of("y ~ x", PLAIN), Counting(3, WHOLE_ROW)):
        own = codes(rows.design.columns, 17, rng)
        for _ in range(20):
            order = rng.permutation(17)
            mixed = np.concatenate([own[:-1][:, order], own[-1:]])
            assert np.array_equal(rows(mixed), rows(own))


def test_kept_rows_have_scores_of_units_too() -> None:
    own = cf.Schema(COLUMNS, unit=cf.Unit("pid", rows=3, rule="keep"))
    plan = cf.plan(cf.regression.LeastSquares("y ~ x"), own, cf.GDP(1.0))
    assert plan.rule is None
    assert isinstance(plan.statistics["meat"].map, UnitScores)
    assert not isinstance(plan.statistics["count"], Weighted)
    assert isinstance(Total(LimitedScores(ModelMatrix.of("y ~ x", PLAIN))), Total)


# planted faults ----------------------------------------------------------------------------------------------------


def _whole_file(first: Any, counted: Any) -> Any:
    starts = np.flatnonzero(first >= 0)
    return starts, np.full(len(starts), int(counted.sum()))


def _plant(fault: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    if fault == "weights from the whole file":
        monkeypatch.setattr(privacy_unit, "rows_in_units", _whole_file)
        return lambda: test_unique_ids_change_no_integer("line")
    if fault == "weights of one":
        monkeypatch.setattr(Weighted, "value", lambda self, state: sum(self.statistic.value(s) for s in state.values()))
        return lambda: test_one_unit_moves_a_statistic_by_no_more_than_is_charged(1)
    if fault == "row meat for units":
        monkeypatch.setattr(
            UnitScores, "__call__", lambda self, own: np.rint(LimitedScores.__call__(self, own[:-1]) / 10)
        )
        return test_rows_that_hang_together_wholly_count_as_one
    if fault == "unit sum not cut":
        monkeypatch.setattr(scores, "limited", lambda sums, longest: np.rint(sums))
        return test_scores_of_units_are_limited
    if fault == "unusable rows count":
        monkeypatch.setattr(privacy_unit, "usable", lambda map, own: np.ones(own.shape[1], dtype=bool))
        monkeypatch.setattr(scores, "usable", lambda map, own: np.ones(own.shape[1], dtype=bool))
        return test_unusable_rows_take_no_weight
    raise AssertionError(fault)


@pytest.mark.parametrize(
    "fault",
    ["weights from the whole file", "weights of one", "row meat for units", "unit sum not cut", "unusable rows count"],
)
def test_planted_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check = _plant(fault, monkeypatch)
    with pytest.raises((AssertionError, cf.ConfideError)):
        check()


def test_a_gram_matrix_of_units_has_the_bound_of_one() -> None:
    one = Gram(UnitScores(ModelMatrix.of("y ~ x", PLAIN), counting=Counting(5, WHOLE_ROW)))
    assert one.sensitivity_squared("add-remove") == Fraction(BOUND) ** 2
    spend = cf.plan(cf.regression.LeastSquares("y ~ x"), schema(5), cf.GDP(1.0)).spend
    assert spend("meat").sensitivity * spend("meat").step == BOUND
    assert spend("gram").sensitivity * spend("gram").step >= 5 * BOUND
