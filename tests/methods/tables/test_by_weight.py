"""Tables by weight under a unit: a person counts once in the whole table, in each cell with the share of its rows that lie there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.few import few
from tests.messages import refuses

import confide as cf
from confide.methods.tables.draw import UnitMargins
from confide.methods.tables.sums import UnitCells
from confide.noise import SimulatedNoise
from confide.sums.cells.cell_sums import CellTotals, Crossing
from confide.sums.cells.moments import Measure, MomentRows, count_steps
from confide.sums.cells.weighted_cells import CountRows

COLUMNS = {"f": cf.Categorical(["a", "b", "c"]), "g": cf.Categorical(["u", "v"]), "x": cf.Numeric(-1, 3)}
PLAIN = cf.Schema(COLUMNS, dataset="visits")
SCHEMA = cf.Schema(COLUMNS, dataset="visits", unit=cf.Unit("person", rule="weight"))
CROSSING = Crossing.of(("f", "g"), PLAIN)
BIG = cf.GDP(1e6)


def maps(relation: str) -> dict[str, UnitCells]:
    rows = MomentRows(CROSSING, (0, 1), (Measure.of("x", PLAIN),), count_steps(1, relation))
    return {
        "counts": UnitCells(CROSSING, (0, 1), CountRows(CROSSING, (0, 1))),
        "means": UnitCells(CROSSING, (0, 1), rows),
    }


def visits(units: int, seed: int, icc: float = 0.8, most: int = 12) -> pd.DataFrame:
    """Persons with 1 to `most` visits, in any cells; values of one person are alike."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(units), rng.integers(1, most + 1, units))
    own = rng.normal(size=units)[person] * np.sqrt(icc) + rng.normal(size=len(person)) * np.sqrt(1 - icc)
    liked = rng.integers(0, 3, units)[person]
    f = np.where(rng.random(len(person)) < 0.5, liked, rng.integers(0, 3, len(person)))
    frame = pd.DataFrame(
        {"person": person, "f": np.array(["a", "b", "c"])[f], "x": np.clip(1 + 0.4 * own + 0.2 * f, -1, 3)}
    )
    return frame.assign(g=np.where(rng.random(len(person)) < 0.6, "u", "v")).sample(frac=1.0, random_state=seed)


def weights(frame: pd.DataFrame) -> pd.Series[float]:
    return 1.0 / frame.groupby("person")["person"].transform("size")


def units_of(rng: np.random.Generator, n: int, extreme: bool) -> np.ndarray[Any, Any]:
    """Codes of n persons of 1 to 40 rows, and the row that says where they begin; extreme: values at the bounds alone."""
    sizes = rng.integers(1, 41, n)
    rows = int(sizes.sum())
    top = PLAIN["x"].steps - 1
    x = rng.integers(0, 2, rows) * top if extreme else rng.integers(0, top + 1, rows)
    first = np.full(rows, -1.0)
    first[np.cumsum(sizes) - sizes] = 3.0
    cells = rng.integers(0, rng.integers(1, 7), rows)
    return np.array([cells // 2, cells % 2, x, first], dtype=float)


@pytest.mark.parametrize("kind", ["counts", "means"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_unit_moves_it_by_more_than_its_charge(kind: str, relation: str) -> None:
    own, worst, rng = maps(relation)[kind], 0.0, np.random.default_rng(3)
    limit = int(CellTotals(own).sensitivity_squared(relation))
    for at in range(60):
        codes = units_of(rng, 40, extreme=bool(at % 2))
        if kind == "counts":
            codes = codes[[0, 1, 3]]
        found = own(codes).astype(np.int64).astype(object)
        pairs = found[:, :20] - found[:, 20:] if relation == "substitute" else found
        squared = (pairs * pairs).sum(axis=0)
        assert (squared <= limit).all()
        worst = max(worst, float(max(squared)) / limit)
    assert worst > (0.98 if relation == "add-remove" else 0.7)  # the bound is near what is found


def test_each_part_of_the_bound_is_needed() -> None:
    """Without the share in the second half, or with weights of rows, the squared length passes it."""
    own = maps("add-remove")["counts"]
    codes = np.array([[0.0] * 4, [0.0] * 4, [2.0, -1, -1, -1]])
    assert (own(codes)[0] / 2**20).tolist() == [1.0]  # four rows in one cell are one, not four
    apart = np.array([[0.0, 1.0, 2.0, 2.0], [0.0] * 4, [2.0, -1, -1, -1]])
    found = own(apart)[:, 0]
    assert found[:6].sum() == 2**20 and (found**2).sum() < 2**40


@pytest.mark.parametrize("fault", ["each row counts", "omega in the second half", "charged as add-remove"])
def test_planted_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = UnitCells._pairs
    if fault == "charged as add-remove":
        alone = CellTotals.sensitivity_squared
        monkeypatch.setattr(CellTotals, "sensitivity_squared", lambda self, _: alone(self, "add-remove"))

    def wrong(self: UnitCells, codes: Any) -> Any:
        unit, place, out = right(self, codes)
        half = len(out) // 2
        if fault == "omega in the second half":
            out[half:] = out[:half]
        if fault == "each row counts":
            out *= np.bincount(np.cumsum(codes[-1] >= 0) - 1)[unit]
        return unit, place, out

    monkeypatch.setattr(UnitCells, "_pairs", wrong)
    with pytest.raises(AssertionError):
        test_no_unit_moves_it_by_more_than_its_charge(
            "means", "substitute" if fault == "charged as add-remove" else "add-remove"
        )


@pytest.mark.parametrize("kind", ["counts", "means"])
def test_rows_of_their_own_are_the_integers_of_records(kind: str) -> None:
    own = maps("add-remove")[kind]
    codes = units_of(np.random.default_rng(1), 300, extreme=False)
    codes[-1] = 0.0
    codes = codes if kind == "means" else codes[[0, 1, 3]]
    found = own(codes)
    assert (found[: len(found) // 2] == own.inner(codes[:-1])).all()
    assert not found[len(found) // 2 :].any()


@pytest.mark.parametrize("kind", ["counts", "means"])
def test_neither_order_nor_batches_show(kind: str) -> None:
    from confide.sources.grouping import units

    frame = visits(300, 4)
    exact = CellTotals(maps("add-remove")[kind])
    found = []
    for seed in range(3):
        mixed = frame.sample(frac=1.0, random_state=seed)
        if seed == 1:
            mixed["person"] = mixed["person"].astype(float)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(units, "BLOCK_ROWS", [16_384, 7, 301][seed])
            with cf.read(mixed, SCHEMA).bounded(whole=True) as source:
                found.append(source.aggregate(exact)[0])
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def answered(method: Any, frame: pd.DataFrame, privacy: Any = BIG, seed: int = 1, schema: cf.Schema = SCHEMA) -> Any:
    return cf.infer(cf.release(method, cf.read(frame, schema), privacy, ledger=None, noise=SimulatedNoise(seed)))


def test_without_noise_they_are_what_pandas_says() -> None:
    frame = visits(2_000, 5)
    w = weights(frame)
    counts = answered(cf.tables.Counts("f * g", inference="population"), frame).params
    assert counts["total"] == pytest.approx(2_000, abs=0.1)
    assert counts["f=a"] == pytest.approx(w[frame.f == "a"].sum(), abs=0.1)
    assert counts["f=b, g=u"] == pytest.approx(w[(frame.f == "b") & (frame.g == "u")].sum(), abs=0.1)
    shares = answered(cf.tables.Shares("f * g", within="g", inference="population"), frame).params
    inside = frame.g == "v"
    assert shares["f=c, g=v"] == pytest.approx(w[inside & (frame.f == "c")].sum() / w[inside].sum(), abs=1e-3)
    means = answered(cf.tables.Means("x ~ f", inference="population"), frame)
    for level in "abc":
        own = frame.f == level
        assert means.params[f"x | f={level}"] == pytest.approx(np.average(frame.x[own], weights=w[own]), abs=1e-3)
        # the sampling variance by persons
        by_person = (w * (frame.x - means.params[f"x | f={level}"]))[own].groupby(frame.person[own]).sum()
        expected = np.sqrt((by_person**2).sum()) / w[own].sum()
        assert means.bse[f"x | f={level}"] == pytest.approx(expected, rel=0.02)


def test_a_marginal_that_was_not_drawn_takes_the_larger_variance() -> None:
    rng = np.random.default_rng(0)
    table = rng.uniform(10, 20, (4, 2, 3))
    drawn = {(0, 1): (table, 1.0), (): (table.sum(axis=(1, 2)), 1.0)}
    own = UnitMargins.of_units((2, 3), drawn, (0,))
    assert (own.table((0, 1))[1:] == table[1:]).all()
    seen = own.table((0,))
    assert seen[1] == pytest.approx(table[1].sum(axis=1)) and (seen[2:] == 0).all()
    assert own.rough((0,)) >= 1


@pytest.mark.parametrize("icc", few([0.2, 0.8], 0))
def test_intervals_cover_by_persons(icc: float) -> None:
    """60 samples of 500 persons, each in several cells."""
    hits: dict[str, list[bool]] = {}
    # the population's numbers, of a sample of very many
    whole = visits(60_000, 999, icc)
    truth = {}
    w = weights(whole)
    for level in "abc":
        own = whole.f == level
        truth[f"x | f={level}"] = np.average(whole.x[own], weights=w[own])
        truth[f"f={level}"] = float(w[own].sum() / w.sum())
    for seed in range(60):
        frame = visits(500, seed, icc)
        for method in (cf.tables.Means("x ~ f", inference="population"), cf.tables.Shares("f", inference="population")):
            table = answered(method, frame, cf.GDP(1.0), seed)
            ends = table.conf_int()
            for name in table.params.index:
                if name in truth:
                    hits.setdefault(name, []).append(bool(ends.loc[name, 0] <= truth[name] <= ends.loc[name, 1]))
        if seed == 0:
            gap = table.diff({"f": "a"}, {"f": "b"})
            assert gap["ci_low"].iloc[0] < truth["f=a"] - truth["f=b"] < gap["ci_high"].iloc[0]
    # 99.9 % of 60 trials at .95 have 50 hits or more
    assert all(sum(own) >= 50 for own in hits.values()), {name: np.mean(own) for name, own in hits.items()}
    assert len(hits) == 6


def test_500_rows_of_one_person_are_one() -> None:
    frame = visits(300, 8, most=1)
    crowd = pd.DataFrame({"person": -1, "f": "a", "g": "u", "x": 3.0}, index=range(500))
    for method in (cf.tables.Counts("f * g", inference="dataset"), cf.tables.Totals("x ~ f", inference="dataset")):
        before, after = (answered(method, one).params for one in (frame, pd.concat([frame, crowd])))
        assert (after - before).abs().max() <= 3.01  # one person's worth: a count of 1, a total of at most 3


@pytest.mark.parametrize(
    "method",
    [
        cf.tables.Means("x + y ~ f", inference="population"),
        cf.tables.Counts("f", inference="population", weights="y"),
        cf.tables.Quantiles("x ~ f", inference="population"),
    ],
)
def test_what_keeps_one_row_says_so(method: Any) -> None:
    schema = cf.Schema({**COLUMNS, "y": cf.Numeric(0, 1)}, unit=cf.Unit("person", rule="weight"))
    with refuses(cf.errors.PlanError):
        cf.plan(method, schema, cf.GDP(1.0))


def test_several_rows_each_are_refused_and_tests_too() -> None:
    several = cf.Schema(COLUMNS, unit=cf.Unit("person", rows=3, rule="weight"))
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.Counts("f", inference="population"), several, cf.GDP(1.0))
    frame = visits(200, 1)
    for method, test in (
        (cf.tables.Counts("f * g", inference="population"), "independence"),
        (cf.tables.Means("x ~ g", inference="population"), "t"),
    ):
        with refuses(cf.errors.PlanError):
            answered(method, frame, cf.GDP(1.0)).test(test, *(("g",) if test == "t" else ()))


def test_the_page_says_whose_rows_they_are() -> None:
    table = answered(cf.tables.Counts("f", inference="population"), visits(300, 2), cf.GDP(1.0))
    assert "each person once in the whole table" in table.target
    assert "each person once" in table.summary(verbose=True)
    kept = answered(
        cf.tables.Counts("f", inference="population"),
        visits(300, 2),
        cf.GDP(1.0),
        schema=cf.Schema(COLUMNS, unit=cf.Unit("person")),
    )
    assert "in the whole table" not in kept.target
