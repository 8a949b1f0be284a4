"""Attacks on the range step: sensitivities by enumeration, sums in any range, records that must not show, files, units."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide import registry
from confide.audit import replay
from confide.core import BudgetItem, Plan, Release, Total, exact_cost, leaves, seal
from confide.core.ranges import ColumnRange, as_fine, from_fine, in_ranges, is_paid, ranged, spend_name
from confide.core.statistic import WrappedSource
from confide.methods.classification.class_means import ClassMeans
from confide.methods.curves.kernel import Kernel
from confide.methods.reduction.components import PCA
from confide.methods.reduction.correlations import Correlations
from confide.methods.regression.least_squares.correlation import Correlation
from confide.methods.regression.within.method import Within
from confide.noise import SimulatedNoise
from confide.sums import ranges
from confide.sums.cells.moments import Measure
from confide.sums.ranges import BinRows, ColumnRanges, RangeCounts, RangedMethod
from confide_lab.methods.huber.huber_line import HuberLine

COLUMNS: dict[str, Any] = {
    "x": cf.Numeric(0, 1e6),
    "y": cf.Numeric(),
    "k": cf.Numeric(low=0, on_missing="midpoint"),
    "v": cf.Numeric(-5, 5, steps=1001, on_missing=4.0),
    "z": cf.Integer(0, 400),
    "c": cf.Integer(0, 300),
    "b": cf.Integer(0, 1),
    "g": cf.Categorical(["a", "b"]),
    "h": cf.Categorical(["p", "q", "r"]),
    "wt": cf.Numeric(0, 4),
}
SCHEMA = cf.Schema(COLUMNS, dataset="d")
UNITS = cf.Schema(COLUMNS, dataset="d", unit=cf.Unit("pid"))
AUTO: dict[str, Any] = {"bounds": "auto"}
POPULATION: dict[str, Any] = {"inference": "population", **AUTO}

#: Every method that finds ranges, in the ways in which its sums differ. A new one goes in here.
RANGED: dict[str, tuple[Any, cf.Schema]] = {
    "means": (cf.tables.Means("x + y + z + v + k ~ g * h", **POPULATION), SCHEMA),
    "mean": (cf.tables.Means("x ~ 1", inference="dataset", **AUTO), SCHEMA),
    "weighted means": (cf.tables.Means("z ~ g", weights="wt", **POPULATION), SCHEMA),
    "means of some": (cf.tables.Means("x + z ~ g", where="c > 10", **POPULATION), SCHEMA),
    "means of units": (cf.tables.Means("x + y ~ g", **POPULATION), UNITS),
    "means of a term": (cf.tables.Means("I(x - z) + y ~ g", **POPULATION), SCHEMA),
    "totals": (cf.tables.Totals("x + y ~ g", **POPULATION), SCHEMA),
    "ratios": (cf.tables.Ratios("x / z ~ g", **POPULATION), SCHEMA),
    "table one": (cf.tables.TableOne("x + y + z + g ~ h", **AUTO), SCHEMA),
    "line": (cf.regression.LeastSquares("x ~ z + y + v + g", **AUTO), SCHEMA),
    "line of levels": (cf.regression.LeastSquares("x ~ h", **AUTO), SCHEMA),
    "line of terms": (cf.regression.LeastSquares("x ~ log(1 + z) + sqrt(k) + z:g", **AUTO), SCHEMA),
    "line of units": (
        cf.regression.LeastSquares("x ~ z", **AUTO),
        cf.Schema(COLUMNS, unit=cf.Unit("pid", rows=3, rule="weight")),
    ),
    "line in clusters": (
        cf.regression.LeastSquares("x ~ z", **AUTO),
        cf.Schema(COLUMNS, cluster=cf.Clusters("school", size=30)),
    ),
    "line of a survey": (
        cf.regression.LeastSquares("x ~ z", **AUTO),
        cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="wt")),
    ),
    "huber line": (HuberLine("x ~ z + y", **AUTO), SCHEMA),
    "line that is cut": (cf.regression.SSP("x ~ z + y + g", **AUTO), SCHEMA),
    "line that is moved": (cf.regression.SSP("x ~ z + v", recenter=False, products=True, **AUTO), SCHEMA),
    "curve": (Kernel("x ~ v", **AUTO), SCHEMA),
    "curve of a bandwidth": (Kernel("x ~ v", bandwidth=0.5, residual_bound=1e5, **AUTO), SCHEMA),
    "class means": (ClassMeans("g ~ x + z + y", **AUTO), SCHEMA),
    "class means in a ball": (ClassMeans("g ~ x + v", variance="identity", radius=1.0, **AUTO), SCHEMA),
    "within": (Within("x ~ z + y", **AUTO), UNITS),
    "logit": (cf.regression.Logistic("b ~ x + z + y + g", **AUTO), SCHEMA),
    "logit of whole numbers": (cf.regression.Logistic("b ~ z + g", **AUTO), SCHEMA),
    "probit": (cf.regression.Logistic("g ~ x + z * h", link="probit", **AUTO), SCHEMA),
    "counts": (cf.regression.Poisson("c ~ x + z + g", **AUTO), SCHEMA),
    "correlation": (Correlation("x + z", **AUTO), SCHEMA),
    "correlations": (Correlations(("x", "y", "z"), **AUTO), SCHEMA),
    "components": (PCA(("x", "z", "k"), **AUTO), SCHEMA),
}


def test_every_method_that_finds_ranges_is_among_these() -> None:
    kinds = {info.name for info in registry.list_methods() if issubclass(registry.get(info.name), RangedMethod)}
    assert kinds == {method.name for method, _ in RANGED.values()}


def planned(name: str, relation: str = "add-remove", mu: float = 1.0) -> Plan:
    method, schema = RANGED[name]
    # a number of records to plan for must not be one that sums depend on
    return cf.plan(method, schema, cf.GDP(mu, relation=relation), n=20_000)


# the first round ------------------------------------------------------------------------------------------------------


def steps_of(plan: Plan) -> dict[str, BudgetItem]:
    """The budget items of ranges."""
    items = [leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem)]
    return {leaf.name: leaf for leaf in items if leaf.name.startswith(spend_name(""))}


@pytest.fixture
def few_bins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Grids of 4, 5 and 7 bins, whose records can all be tried."""

    inner = {"x": (1.0, 10.0, 1e3), "y": (-50.0, -1.0, 1.0, 50.0), "z": (1.0, 2.0, 9.0, 30.0, 80.0, 200.0)}
    known = {COLUMNS[name]: edges for name, edges in inner.items()}
    every = ranges.edges_of

    def edges(column: Any) -> tuple[float, ...]:
        # forecasts ask for other columns
        return (column.low, *known[column], column.high) if column in known else every(column)

    monkeypatch.setattr(ranges, "edges_of", edges)
    yield


_VALUES: dict[str, tuple[float, ...]] = {
    "x": (-1e300, 0.5, 1.0, 999.0, 1e6, np.nan),
    "y": (-1e13, -3.0, 0.0, 50.0, np.inf),
    "z": (0.0, 1.0, 3.0, 25.0, 60.0, 399.0, 1e9),
}


@pytest.mark.parametrize(("names", "rows"), [(("x", "y"), 1), (("x", "z"), 1), (("x", "y", "z"), 1), (("x", "y"), 2)])
def test_no_unit_moves_the_counts_beyond_what_is_paid_for(few_bins: None, names: tuple[str, ...], rows: int) -> None:
    """All records, their absence, and all pairs of them; `where` leaves some out. Columns of several numbers of bins together."""
    schema = cf.Schema({name: COLUMNS[name] for name in (*names, "c")}, rows_per_unit=rows)
    method = cf.tables.Means(" + ".join(names) + " ~ 1", where="c > 10", **POPULATION)
    grid = list(product(*(_VALUES[name] for name in names), (20.0,)))
    grid.append((*grid[0][:-1], 5.0))  # outside of the subgroup
    for relation in ("add-remove", "substitute"):
        mu = Fraction(3, 2)
        plan = cf.plan(method, schema, cf.GDP(float(mu), relation=relation))
        items = steps_of(plan)
        assert set(items) == {spend_name(name) for name in names}

        def sums(units: list[tuple[tuple[float, ...], ...]], of: Plan = plan, on: Any = items) -> list[dict[str, Any]]:
            """K h of each unit alone: sums are additive, which the last lines of this test hold to account."""
            source = [cf.read(pd.DataFrame(list(unit), columns=[*names, "c"]), schema) for unit in units]
            return [dict(zip(on, one.aggregate(*(of.statistics[name] for name in on)), strict=True)) for one in source]

        own = sums([(row,) for row in grid])
        if rows == 2:
            chosen = [*zip(own, own, strict=True), *zip(own, own[5:], strict=False)]
            own = [{name: one[name] + other[name] for name in items} for one, other in chosen]

        def cost(moved: dict[str, Any], on: Any = items) -> Fraction:
            squares = {name: int((moved[name].astype(np.int64) ** 2).sum()) for name in on}
            return sum((squares[name] / (item.step**2 * item.scale) for name, item in on.items()), Fraction(0))

        alone = max(cost(one) for one in own)
        assert alone <= Fraction(1, 10) * mu**2
        if relation == "add-remove":
            # nothing is wasted: the worst record costs all of the share but for rounding
            assert alone >= Fraction(99, 1000) * mu**2
        else:
            step = 1 + len(own) // 40
            pairs = product(own[::step], own[::step])
            moves = [cost({name: one[name] - other[name] for name in items}) for one, other in pairs]
            assert Fraction(6, 100) * mu**2 <= max(moves) <= Fraction(1, 10) * mu**2
        # one record more, beside others, moves the sums by its own
        one, both = sums([(grid[3], grid[9]), (grid[3], grid[9], grid[20])])
        (third,) = sums([(grid[20],)])
        assert all(((both[name] - one[name]) == third[name]).all() for name in items)


@pytest.mark.parametrize("name", ["x", "y", "z", "k"])
def test_each_column_is_as_long_as_its_bins_make_it(name: str) -> None:
    statistic = RangeCounts(BinRows(name, COLUMNS[name]))
    table = statistic.map.strategy.table
    squares = (table * table).sum(axis=0)
    assert max(squares) == statistic.map.l2_squared == statistic.sensitivity_squared("add-remove")
    assert table.min() >= 0
    apart = max(int(((table[:, [i]] - table) ** 2).sum(axis=0).max()) for i in range(0, statistic.map.bins, 97))
    assert apart <= statistic.sensitivity_squared("substitute") == 2 * max(squares)
    assert table.sum(axis=0).max() <= statistic.sensitivity_l1("add-remove")
    # a record is a column of the table, one without a value none
    values = np.array([np.nan, -1e300, 0.0, 3.0, 1e300])
    rows = statistic.map(as_fine(values)[None, :])
    assert not rows[:, 0].any()
    assert all(any((rows[:, i] == table[:, j]).all() for j in range(table.shape[1])) for i in range(1, 5))
    state = statistic.update(statistic.zero(), as_fine(values)[None, :])
    assert (statistic.value(state) == rows.sum(axis=1)).all()


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize(
    "name", ["means", "mean", "means of some", "means of units", "table one", "line", "line of units", "logit"]
)
def test_all_that_is_drawn_costs_the_request_and_no_more(name: str, relation: str) -> None:
    method, schema = RANGED[name]
    if schema.rows_per_unit > 1 and relation == "substitute":
        pytest.skip("the number of rows is not public there")
    plan, columns = planned(name, relation, mu=0.7), method.ranges(schema).columns
    cost = exact_cost(plan.event)
    assert cost is not None and Fraction(999, 1000) * Fraction(0.7) ** 2 <= cost.amount <= Fraction(0.7) ** 2
    items, part = steps_of(plan), 1 - Fraction(1, 100) * (schema is UNITS or name == "line of units")
    share = part * Fraction(1, 5 if method.of_means and len(columns) >= 4 else 10)
    assert sum((item.exact_cost.amount for item in items.values()), Fraction(0)) <= share * Fraction(0.7) ** 2
    for column in columns:
        item, bins = items[spend_name(column)], RangeCounts(BinRows(column, COLUMNS[column]))
        # each by its own length, and k of them in one bin
        least = bins.sensitivity_squared(relation) * schema.rows_per_unit**2
        assert least <= (item.sensitivity * item.step) ** 2 <= least * Fraction(101, 100)


# the second round -----------------------------------------------------------------------------------------------------


def found_at(name: str, of: Any, schema: cf.Schema, turn: int) -> dict[str, ColumnRange]:
    """Ranges as a release may find them: narrow, wide, negative, at an end, of few whole numbers, kept."""
    generator, found = np.random.default_rng([turn, len(name)]), dict[str, ColumnRange]()
    step = of.ranges(schema)
    assert step is not None
    for column, what in step.ranged.items():
        own: Any = what.term if isinstance(what, Measure) else what
        response = column == "c" and name == "counts"
        if turn == 0 and not response:
            found[column] = ColumnRange(own.low, own.high, kept=True)
        elif isinstance(own, cf.Integer):
            values = int(generator.choice([1, 2, 11] if of.of_means else [16, 17, 60]))
            first = 0 if response else int(generator.integers(int(own.low), int(own.high) - values))
            found[column] = ColumnRange(float(first), float(first + values))
        else:
            ends = max(own.low, -1e9), min(own.high, 1e9)
            wide = (ends[1] - ends[0]) * 10.0 ** generator.uniform(-12 if own.high == 1e12 else -6, 0)
            inside = ends[0] + generator.random() * (ends[1] - ends[0] - wide)
            low = float(generator.choice([ends[0], ends[1] - wide, inside]))
            found[column] = ColumnRange(low, min(low + wide, own.high))
    return found


@pytest.mark.parametrize("name", RANGED)
def test_sums_in_any_range_are_those_that_the_plan_pays_for(name: str) -> None:
    """Item by item: kind, shape, norm, sensitivity. A sensitivity that follows from bounds would be a hole."""
    method, schema = RANGED[name]
    for relation in ("add-remove", "substitute"):
        if schema.rows_per_unit > 1 and relation == "substitute":
            continue
        plan = planned(name, relation)
        drawn = set(steps_of(plan))
        before = {own: one for own, one in plan.statistics.items() if own not in drawn and not one.by_unit}
        for turn in range(4):
            found = found_at(name, method, schema, turn)
            made = method.plan(ranged(plan.declared, found), plan.requested, n=plan.n)
            after = {own: one for own, one in made.statistics.items() if own not in drawn}
            assert set(after) == set(before)
            for own, one in after.items():
                other = before[own]
                assert (type(one), one.shape, one.norm, one.grain) == (
                    type(other),
                    other.shape,
                    other.norm,
                    other.grain,
                )
                assert one.sensitivity_squared(relation) == other.sensitivity_squared(relation), own
                assert one.map.l2_squared == other.map.l2_squared
            items = [leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem) and leaf.name in after]
            assert items and all(is_paid(leaf, after[leaf.name], plan) for leaf in items)
            if schema is SCHEMA:
                in_ranges(method, method.ranges(plan.declared), cf.read(schema.sample(5, 1), schema), plan, found)


@dataclass(frozen=True)
class _Rows:
    """A value itself, in steps of its range: as long as its range is wide, which no map may be."""

    column: cf.Numeric

    columns = ("x",)
    width = 1

    @property
    def l1(self) -> int:
        return int(self.column.high - self.column.low) + 1

    @property
    def l2_squared(self) -> int:
        return self.l1**2

    @property
    def digest(self) -> str:
        return f"by width {self.l1}"

    @property
    def begins(self) -> None:
        return None

    derived_by = None
    separates = ()

    def __call__(self, codes: Any) -> Any:
        return np.rint(np.maximum(self.column.decode(codes) - self.column.low, 0.0))


@dataclass(frozen=True)
class _ByWidth(RangedMethod):
    """Planted: its sensitivity follows from the bounds, and grows where a range is wide."""

    inverse: bool = False
    name = "by width"
    family = "toy"
    source = "here"

    def summed(self, schema: cf.Schema) -> tuple[str, ...]:
        return ("x",)

    def statistics(self, about: Any, relation: str) -> Any:
        own = about["x"]
        column = cf.Numeric(0, 1e8 / (own.high - own.low)) if self.inverse else own
        return {"total": (Total(_Rows(column), nonnegative=True), Fraction(1))}

    def table(self, release: Release, about: Any, options: Any) -> Any:
        raise NotImplementedError


def test_sums_that_grow_with_a_range_are_refused_before_they_are_drawn() -> None:
    method = _ByWidth(inverse=True, bounds="auto")
    schema = cf.Schema({"x": cf.Numeric(0, 1e6)})
    plan = method.plan(schema, cf.GDP(1.0))
    step, source = method.ranges(schema), cf.read(schema.sample(10, 1), schema)
    assert step is not None
    in_ranges(method, step, source, plan, {"x": ColumnRange(0.0, 1e6, kept=True)})
    with pytest.raises(cf.errors.ReleaseError, match="other sums than planned"):
        in_ranges(method, step, source, plan, {"x": ColumnRange(0.0, 100.0)})


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("name", ["means", "means of a term", "line", "logit"])
def test_no_record_moves_the_sums_of_a_bad_range_beyond_what_is_paid_for(
    name: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges far from where the records are, in which every one is clipped: what was drawn moves within its sensitivity."""
    method, schema = RANGED[name]
    bad = found_at(name, method, schema, 3)
    monkeypatch.setattr(ColumnRanges, "found", lambda self, column, noisy, plan: bad[column])
    frame, other = schema.sample(40, 2), schema.sample(41, 3)
    worst = frame.iloc[[0]].copy()
    for place, column in enumerate(("x", "y", "k", "v", "z", "c")):
        worst[column] = (1e300, -1e300, np.nan)[place % 3] if place % 4 else COLUMNS[column].high
    n = len(frame) if relation == "substitute" else None
    plan = cf.plan(method, schema, cf.GDP(1.0, relation=relation), n=n)
    pairs = [(frame, pd.concat([frame, worst])), (frame, frame.iloc[1:])]
    if relation == "substitute":
        pairs = [(frame, pd.concat([worst, frame.iloc[1:]])), (frame, pd.concat([other.iloc[:1], frame.iloc[1:]]))]
    for seed, (one, neighbor) in enumerate(pairs):
        shown = replay(method, plan, cf.read(one, schema), cf.read(neighbor, schema), seed=seed, thorough=False)
        assert not shown.problems and all(moved.within for moved in shown.moved.values())
        assert any(name not in steps_of(plan) and any(moved.difference) for name, moved in shown.moved.items())


# what must not show ---------------------------------------------------------------------------------------------------


def signaling_nan() -> float:
    return float(np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0])


HOSTILE = (1e300, -1e300, np.inf, -np.inf, np.nan, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**62)


def test_codes_of_values_keep_their_order_and_say_nothing() -> None:
    generator = np.random.default_rng(1)
    values = np.array([*HOSTILE, *(generator.standard_normal(500) * 10.0 ** generator.uniform(-300, 300, 500)), 0.0])
    raw = np.array([0x7FF0000000000001, 0xFFF8000000000001, 0x0000000000000001], dtype=np.uint64).view(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes, odd = as_fine(values), as_fine(raw)
        back = from_fine(codes)
    finite = np.isfinite(values)
    assert (codes[~finite] == -1).all() and np.isnan(back[~finite]).all() and (odd[:2] == -1).all()
    assert codes[finite].min() >= 0 and codes.max() < 2.0**53 and (codes == np.rint(codes)).all()
    order = np.argsort(values[finite], kind="stable")
    assert (np.diff(codes[finite][order]) >= 0).all()
    # toward 0 by less than 2^-40 of themselves, and from there on the same
    normal = finite & (np.abs(values) > 1e-290)
    assert (np.abs(back - values)[normal] <= np.abs(values)[normal] * 2.0**-40).all()
    assert (np.abs(back) <= np.abs(values))[finite].all()
    assert np.array_equal(from_fine(as_fine(back)), back, equal_nan=True)
    whole = np.array([2.0**41, -(2.0**41), 3.0, 1e6, 12345678.0])
    assert (from_fine(as_fine(whole)) == whole).all()
    assert as_fine(np.array([-0.0]))[0] == as_fine(np.array([0.0]))[0]


@pytest.mark.parametrize(
    "method", [cf.tables.Means("x + y ~ 1", **POPULATION), cf.regression.LeastSquares("x ~ y", **AUTO)]
)
def test_a_hostile_record_shows_in_nothing_but_noisy_counts_and_sums(method: Any) -> None:
    """The same transcript, the same ranges, passes, requests for noise, words: whatever the record is."""
    schema = cf.Schema({"x": COLUMNS["x"], "y": COLUMNS["y"]})
    generator = np.random.default_rng(3)
    frame = pd.DataFrame({"x": generator.lognormal(6, 1, 300), "y": generator.normal(50, 9, 300)})
    plan = cf.plan(method, schema, cf.GDP(1.0))
    for seed, (value, other) in enumerate(
        [(1e300, -np.inf), (-1e300, np.nan), (-0.0, signaling_nan()), ("1e400", "text")]
    ):
        more = pd.DataFrame({"x": [value], "y": [other]})
        neighbor = pd.concat([frame.astype(object), more.astype(object)], ignore_index=True)
        found = replay(method, plan, cf.read(frame, schema), cf.read(neighbor, schema), seed=seed, thorough=False)
        assert not found.problems and all(moved.within for moved in found.moved.values())


class _Watched(WrappedSource):
    """A source that counts its passes."""

    passes = 0

    def aggregate(self, *statistics: Any) -> Any:
        self.passes += 1
        return super().aggregate(*statistics)


def test_passes_do_not_depend_on_whether_bounds_are_kept() -> None:
    schema, kept = cf.Schema({"x": cf.Numeric(0, 100)}), set()
    method = cf.tables.Means("x ~ 1", **POPULATION)
    plan = cf.plan(method, schema, cf.GDP(1.0))
    for values in (np.linspace(0, 100, 4_000), np.linspace(0, 1, 4_000), np.zeros(4_000), np.zeros(0)):
        source = _Watched(cf.read(pd.DataFrame({"x": values}), schema))
        release = seal(method, source, plan, SimulatedNoise(4))
        assert source.passes == plan.passes == 2
        kept.add(release.ranges["x"].kept)
    assert kept == {True, False}


def test_records_outside_of_a_subgroup_move_no_range() -> None:
    method, schema = RANGED["means of some"]
    plan, frame = planned("means of some"), SCHEMA.sample(400, 5)
    inside = frame[frame.c > 10]
    assert 0 < len(inside) < len(frame)
    made = [seal(method, cf.read(rows, schema), plan, SimulatedNoise(3)).to_json() for rows in (frame, inside)]
    assert made[0] == made[1]


def test_noise_is_whole_and_the_range_is_a_function_of_it_alone() -> None:
    method, schema = RANGED["means"]
    plan = planned("means")
    source = cf.read(schema.sample(3_000, 1), schema)
    release = seal(method, source, plan, SimulatedNoise(1))
    step = method.ranges(schema)
    for column in step.columns:
        noisy = release[spend_name(column)]
        assert all(isinstance(value, int) for value in noisy.values.ravel().tolist())
        assert noisy.step == plan.spend(spend_name(column)).step and noisy.law == "grid_gaussian"
        assert step.found(column, noisy, plan) == replace(release.ranges[column], declared=(-np.inf, np.inf))
    scales = {release[spend_name(name)].scale * release[spend_name(name)].step ** 2 for name in step.columns}
    # bounds or none: another number of bins, and other noise
    assert len(scales) == 2


# files ----------------------------------------------------------------------------------------------------------------


def altered(release: Release, **public: Any) -> Release:
    own = {name: values for name, values in {**release.public, **public}.items() if values is not None}
    return replace(release, public=own)


def bounds_of(release: Release, name: str) -> tuple[float, float]:
    """Of a column, as what reads the release has it."""
    column: Any = release.plan.declared[name]
    return column.low, column.high


def test_a_file_with_another_range_is_refused() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1e6), "z": cf.Integer(0, 400), "q": cf.Numeric(0, 1)})
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({"x": generator.lognormal(6, 1, 4_000), "z": generator.integers(20, 60, 4_000), "q": 0.5})
    method = cf.tables.Means("x + z ~ 1", **POPULATION)
    release = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None)
    assert not release.ranges["x"].kept and not release.ranges["z"].kept
    again = Release.from_json(release.to_json())
    assert again == release and again.ranges == release.ranges
    assert again.plan.declared["x"].steps == 2**20 and bounds_of(again, "x") == (
        again.ranges["x"].low,
        again.ranges["x"].high,
    )
    x, z = "range of x", "range of z"
    own, whole = release.public[x], release.public[z]

    def changed(values: Any, place: int, to: float) -> Any:
        made = np.array(values)
        made[place] = to
        return made

    for public in (
        {x: None},
        {z: None},
        {"range of q": own},
        {"range of nobody": own},
        {x: changed(own, 0, own[1])},
        {x: changed(own, 0, own[1] + 1)},
        {x: changed(own, 0, -1.0)},
        {x: changed(own, 1, 1e6 + 1)},
        {x: changed(own, 1, np.nan)},
        {x: changed(own, 1, np.inf)},
        {x: changed(own, 2, -0.1)},
        {x: changed(own, 2, 1.1)},
        {x: changed(own, 3, 0.9)},
        {x: changed(own, 4, 1.1)},
        {x: changed(own, 5, 1.0)},
        {x: changed(own, 5, 0.5)},
        {x: changed(own, 6, 2.0)},
        {x: changed(own, 7, -1.0)},
        {x: own[:7]},
        {x: np.append(own, 0.0)},
        {z: changed(whole, 0, whole[0] + 0.5)},
        {z: changed(whole, 1, 401.0)},
    ):
        with pytest.raises(cf.errors.ReleaseError, match="altered"):
            cf.infer(altered(release, **public))
    # in a publication, whose analyses share the ranges
    asked = {
        "means": method,
        "line": cf.regression.LeastSquares("x ~ z", **AUTO),
        "sum": cf.tables.Totals("q ~ 1", **POPULATION),
    }
    whole_one = cf.release(cf.Publication(asked), cf.read(frame, schema), cf.GDP(1.0), ledger=None)
    assert cf.infer(whole_one) is not None and set(whole_one.child("line").ranges) == {"x", "z"}
    shared = whole_one.public[f"means/{x}"]
    for public in (
        {f"means/{x}": None},
        {f"line/{x}": None, f"means/{x}": None},
        {"means/range of q": shared},
        {f"sum/{x}": shared},
        {f"means/{x}": changed(shared, 1, 1e7)},
    ):
        with pytest.raises(cf.errors.ReleaseError, match="altered"):
            cf.infer(altered(whole_one, **public))
    counts = whole_one.statistics[x]
    with pytest.raises(cf.errors.ReleaseError, match="altered"):
        cf.infer(replace(whole_one, statistics={**whole_one.statistics, x: replace(counts, scale=2 * counts.scale)}))
    # of a release without ranges such a number says nothing
    plain = cf.release(replace(method, bounds="declared"), cf.read(frame, schema), cf.GDP(1.0), ledger=None)
    assert not altered(plain, **{x: own}).ranges
    assert bounds_of(altered(plain, **{x: own}), "x") == (0.0, 1e6)


# units ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", [None, "h"])
@pytest.mark.parametrize("whole", [False, True])
def test_which_rows_of_a_unit_count_depends_on_its_own_rows_alone(per: str | None, whole: bool) -> None:
    """Rows that are one code between the declared bounds are still told apart by the range step, in any order and company."""
    columns = {"y": cf.Numeric(), "h": cf.Categorical(["p", "q"])}
    unit = cf.Unit("pid") if per is None else cf.Unit("pid", per=per, groups=1)
    schema = cf.Schema(columns, unit=unit)
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "pid": np.repeat(np.arange(120), 5),
            "y": generator.normal(100, 30, 600),
            "h": generator.choice(["p", "q"], 600),
        }
    )
    if whole and per is not None:
        pytest.skip("a unit that counts once in each level is not weighed")
    statistic = RangeCounts(BinRows("y", columns["y"]))  # type: ignore[arg-type]

    def counts(rows: pd.DataFrame) -> Any:
        with cf.read(rows, schema).bounded(bytes(range(32)), whole=whole) as bounded:
            return bounded.aggregate(statistic)[0]

    own = counts(frame)
    for seed in range(3):
        assert (counts(frame.sample(frac=1.0, random_state=seed)) == own).all()
    # one unit less moves the sums by that unit, by at most one column of K
    for one in (0, 7, 119):
        moved = own - counts(frame[frame.pid != one].sample(frac=1.0, random_state=one))
        assert (moved == counts(frame[frame.pid == one])).all() and int((moved**2).sum()) <= statistic.map.l2_squared


# rules that keep a release from failing after its charge --------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "values"),
    [
        (cf.regression.LeastSquares("x ~ z", **AUTO), (7, 8)),
        (cf.regression.Logistic("b ~ z + g", **AUTO), (7, 8)),
        (cf.regression.Logistic("b ~ z + g", **AUTO), (399, 400)),
        (cf.regression.Poisson("z ~ g", **AUTO), (7, 7)),
        (cf.regression.Poisson("z ~ x", **AUTO), (0, 1)),
        (cf.tables.Means("z ~ g", **POPULATION), (7, 7)),
        (cf.tables.Means("z ~ g", **POPULATION), (0, 0)),
        (cf.tables.Totals("z ~ g", bounds="found", inference="population"), (400, 400)),
    ],
)
def test_few_values_of_many_that_are_declared_are_no_error(method: Any, values: tuple[int, int]) -> None:
    generator = np.random.default_rng(8)
    frame = SCHEMA.sample(3_000, 1).assign(z=generator.integers(values[0], values[1] + 1, 3_000))
    release = seal(method, cf.read(frame, SCHEMA), cf.plan(method, SCHEMA, cf.GDP(2.0)), SimulatedNoise(1))
    found = release.ranges["z"]
    assert found.low <= max(values[0], 0) and found.high >= values[1]
    assert cf.infer(release) is not None
