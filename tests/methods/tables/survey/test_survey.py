"""Survey designs in the schema and in tables: what is refused, how far one person moves what is drawn, intervals, words, files."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.few import few
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
from confide import _special as special
from confide.core import BudgetItem, Noisy, Total
from confide.core.events import Branches, leaves, mu_squared
from confide.core.meter import Meter, seal
from confide.errors import ConfideError, NoResult, PlanError, SchemaError
from confide.methods.tables.survey.results import Estimated
from confide.methods.tables.survey.sums import SurveyScores
from confide.noise import SimulatedNoise
from confide.sums.cells.cell_sums import Crossing
from confide.sums.cells.moments import Measure
from confide.sums.cells.weighted_cells import CELLS, Cap, CappedWeight, TailRows, WeightCells, allowed, ended
from confide.sums.clusters.cluster_covariance import RAMPS, WIDE, Limits, Sampled, TruncationBias
from confide.sums.clusters.psu_covariance import Listed, PersonCovariance, PsuCovariance, bits_for
from confide.testing import ZeroNoise

pytestmark = pytest.mark.usefixtures("declared")

NAMES = tuple(f"p{k}" for k in range(8))
LISTS = {"n": NAMES[:3], "s": NAMES[3:]}
COLUMNS: dict[str, Any] = {
    "y": cf.Numeric(0, 100, on_missing="drop"),
    "x": cf.Numeric(1, 9, on_missing="midpoint"),
    "w": cf.Numeric(0, 20),
    "h": cf.Categorical(["n", "s"]),
    "sex": cf.Categorical(["f", "m"]),
}
LISTED = cf.Schema(
    {**COLUMNS, "v": cf.Categorical(NAMES)},
    design=cf.SurveyDesign(weight="w", strata="h", psu="v", psus=LISTS, size=4, largest=4),
)
IDS = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", psu="v", size=4))
PERSONS = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w"))
METHODS: dict[str, Any] = {
    "means": cf.tables.Means("y + x ~ sex", inference="population"),
    "totals": cf.tables.Totals("y ~ sex", inference="population"),
    "shares": cf.tables.Shares("h * sex", within="h", inference="population"),
    "counts": cf.tables.Counts("sex", inference="population"),
    "ratios": cf.tables.Ratios("y / x ~ sex", inference="population"),
}


def records(n: int = 1_000, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    of = g.integers(0, 8, n)
    frame = pd.DataFrame(
        {
            "v": np.array(NAMES)[of],
            "h": np.where(of < 3, "n", "s"),
            "sex": g.choice(["f", "m"], n),
            "w": np.minimum(g.lognormal(0, 0.7, n), 20),
            "x": g.uniform(1, 9, n),
        }
    )
    frame["y"] = np.clip(50 + 5 * g.normal(size=8)[of] + 10 * g.normal(size=n), 0, 100)
    frame.loc[::37, "y"] = np.nan
    return frame


# schema ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
def test_a_schema_with_a_design_comes_back_to_the_bit(schema: cf.Schema) -> None:
    assert cf.Schema.from_toml(schema.to_toml()) == schema
    assert cf.Schema.from_dict(schema.to_dict()) == schema
    assert eval(repr(PERSONS.design), {"SurveyDesign": cf.SurveyDesign}) == PERSONS.design


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight": "w", "cap": 3},
        {"weight": "w", "size": 4},
        {"psu": "v"},
        {"psu": "v", "size": 4, "deff": 2},
        {"psu": "v", "size": 4, "psus": {"n": ["a", "b"]}},
        {"psu": "v", "size": 4, "strata": "h", "psus": {"n": ["a"], "s": ["b", "c"]}},
        {"weight": "w", "fraction": 2},
        {"weight": "w", "deff": 0.5},
        {"psu": "v", "size": 4, "largest": 3},
    ],
)
def test_what_no_design_can_be_is_refused(settings: dict[str, Any]) -> None:
    with refuses(SchemaError):
        cf.SurveyDesign(**settings)


@pytest.mark.parametrize(
    "design",
    [
        cf.SurveyDesign(weight="wt"),
        cf.SurveyDesign(weight="sex"),
        cf.SurveyDesign(weight="w", strata="w"),
        cf.SurveyDesign(strata="h", psu="v", size=4, psus=LISTS),
        cf.SurveyDesign(psu="sex", size=4),
        cf.SurveyDesign(strata="h", psu="v", size=4, psus={"n": 3, "x": 5}),
    ],
)
def test_a_design_that_does_not_fit_its_schema_is_refused(design: cf.SurveyDesign) -> None:
    with refuses(SchemaError):
        cf.Schema(COLUMNS, design=design)


def test_methods_whose_intervals_know_no_design_refuse_it() -> None:
    with refuses(PlanError):
        cf.plan(cf.tables.Quantiles("y ~ sex", inference="population"), PERSONS, cf.GDP(1.0))
    with refuses(PlanError):
        cf.plan(cf.tables.Means("y ~ 1", inference="population", weights="w"), PERSONS, cf.GDP(1.0))
    with refuses(PlanError):
        cf.plan(cf.tables.Means("y ~ 1", inference="population", population_size=9), PERSONS, cf.GDP(1.0))


# how far one person moves what is drawn ---------------------------------------------------------------------------------


def _scores(schema: cf.Schema, base: tuple[int, ...] | None) -> SurveyScores:
    crossing = Crossing.of(("sex",), schema)
    own = SurveyScores(crossing, (0,), Measure.of("x", schema), None, base, None)
    return own.at((4.0, 6.0), (1.5, 0.7))


@pytest.mark.parametrize("base", [(0,), (), None])
def test_scores_keep_their_length_and_do_not_hang_on_the_batch(base: tuple[int, ...] | None) -> None:
    g = np.random.default_rng(2)
    scores = _scores(LISTED, base)
    codes = np.stack([g.integers(-1, 2, 300), g.integers(0, 2**20, 300)]).astype(float)
    rows = scores(codes)
    assert ((rows**2).sum(axis=0) <= scores.l2_squared).all()
    assert (rows[:, codes[0] < 0] == 0).all()
    apart = np.concatenate([scores(np.ascontiguousarray(codes[:, k : k + 7])) for k in range(0, 300, 7)], axis=1)
    assert (apart == rows).all()


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("spread", [1.0, 2.5, 12.0])
@pytest.mark.parametrize("rough", [2, 3])
def test_no_neighbour_moves_a_meat_further_than_charged(centred: bool, spread: float, rough: int) -> None:
    """Random and extreme neighbours, sums at the cut and beyond; in the centred form two PSUs of opposite sums."""
    g = np.random.default_rng(3)
    listed = Listed.of(LISTED)
    assert listed is not None
    own = PsuCovariance(_scores(LISTED, (0,)), listed, bits=40, rough=rough)
    meat = own.at(_scores(LISTED, (0,)), spread, centred)
    columns, worst = meat.map.columns, 0.0
    allowed = {relation: float(meat.sensitivity_squared(relation)) for relation in ("add-remove", "substitute")}

    def value(codes: np.ndarray) -> np.ndarray:
        return meat.value(meat.update(meat.zero(), codes))

    for trial in range(60):
        n = int(g.integers(1, 60))
        codes = np.zeros((len(columns), n))
        high = g.random() < 0.7
        for name in columns:
            row = codes[columns.index(name)]
            if name == "x":
                row[:] = (2**20 - 1) * (g.random() < 0.5) if high else g.integers(0, 2**20, n)
            elif name == "sex":
                row[:] = 0 if high else g.integers(0, 2, n)
            else:
                row[:] = 1 if name == "h" and high else g.integers(0, 8 if name == "v" else 2, n)
        if high:  # one PSU full, the others empty or full of the opposite
            codes[columns.index("v")] = g.choice([3, 4], n, p=[0.8, 0.2])
            codes[columns.index("x")] = np.where(codes[columns.index("v")] == 3, 2**20 - 1, 0)
        whole = value(codes)
        less = value(np.ascontiguousarray(codes[:, 1:]))
        moved = float(((whole - less).astype(float) ** 2).sum())
        worst = max(worst, moved / allowed["add-remove"])
        other = codes.copy()
        other[:, 0] = other[:, int(g.integers(0, n))]
        moved = float(((whole - value(other)).astype(float) ** 2).sum())
        assert moved <= allowed["substitute"], trial
    assert worst <= 1.0
    if spread > 1:
        assert worst > 0.05  # the search finds something


@pytest.mark.parametrize("spread", [2.5, 12.0])
def test_the_first_person_of_an_empty_public_psu_moves_a_centred_meat_as_any_other(spread: float) -> None:
    """All others of the stratum at the cut: numbers of PSUs that were counted in the data would jump with her."""
    listed = Listed.of(LISTED)
    assert listed is not None
    meat = PsuCovariance(_scores(LISTED, (0,)), listed, bits=40).at(_scores(LISTED, (0,)), spread, centred=True)
    columns, places = meat.map.columns, [LISTED["v"].levels.index(name) for name in LISTS["s"]]

    def value(psus: list[int]) -> np.ndarray:
        codes = np.zeros((len(columns), len(psus)))
        for name, code in (("x", 2**20 - 1), ("h", 1), ("v", psus)):
            codes[columns.index(name)] = code
        return meat.value(meat.update(meat.zero(), codes))

    for full in range(1, len(places)):
        others = [place for place in places[:full] for _ in range(40)]
        moved = float(((value([*others, places[full]]) - value(others)).astype(float) ** 2).sum())
        assert moved <= float(meat.sensitivity_squared("add-remove")), full


@pytest.mark.parametrize("bits", [30, 40, 52, 56])
def test_no_person_moves_a_meat_of_persons_further_than_charged(bits: int) -> None:
    """Every pair of extreme records, by the exact integers; the largest comes near what is charged."""
    scores = _scores(LISTED, (0,))
    meat = PersonCovariance(scores, bits).at(scores)
    rows = np.array(
        np.meshgrid(*[(0.0, float((getattr(LISTED[name], "steps", None) or 2) - 1)) for name in scores.columns])
    )
    rows = rows.reshape(len(scores.columns), -1)
    own = meat.scores(rows).astype(np.int64).astype(object)
    outer = [np.multiply.outer(one, one) for one in own.T]
    assert max(int((one * one).sum()) for one in outer) <= meat.sensitivity_squared("add-remove")
    assert max(int(((a - b) ** 2).sum()) for a in outer for b in outer) <= meat.sensitivity_squared("substitute")
    assert max(int((one * one).sum()) for one in outer) > 0.9 * float(meat.sensitivity_squared("add-remove"))


def test_a_planted_fault_is_seen() -> None:
    """The centred form at the length of the uncentred one would break its bound."""
    listed = Listed.of(LISTED)
    assert listed is not None
    right = PsuCovariance(_scores(LISTED, (0,)), listed, bits=40, spread=4.0, centred=True)
    wrong = PsuCovariance(_scores(LISTED, (0,)), listed, bits=40, spread=4.0)
    assert wrong._moved(wrong.longest) <= 1 << 40 < right._moved(wrong.longest)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("bits", [30, 40, 54])
def test_no_length_of_a_psu_breaks_the_bound(centred: bool, bits: int) -> None:
    """G/s follows from noisy numbers: whatever it is, one person moves the meat by at most 2^bits, with s as long as that allows."""
    listed = Listed.of(LISTED)
    for spread in (0.0, 1.0, 57.0, 1e6, 1e12, 1e300):
        own = PsuCovariance(_scores(LISTED, (0,)), listed, bits=bits).at(_scores(LISTED, (0,)), spread, centred)
        assert own._moved(own.longest) <= 1 << bits
        assert own.longest == 1 or own._moved(own.longest + 1) > 1 << bits or own.longest == 1 << 28


def test_a_substitute_is_charged_as_one_who_leaves_and_one_who_comes() -> None:
    """Replaced, a person may leave one full PSU and enter another."""
    own = PsuCovariance(_scores(LISTED, (0,)), Listed.of(LISTED), bits=40)
    alone, other = (own.sensitivity_squared(relation) for relation in ("add-remove", "substitute"))
    assert other == 4 * alone and own.sensitivity_l1("substitute") == 2 * own.sensitivity_l1("add-remove")


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("spread", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("rough", [2, 3])
def test_what_the_cut_leaves_out_moves_by_a_part_of_the_meat(centred: bool, spread: float, rough: int) -> None:
    """One person more in a PSU of any size: ramps move by no more than is charged, a half or a third of the meat, and come near it."""
    own = PsuCovariance(_scores(LISTED, (0,)), Listed.of(LISTED), bits=40, rough=rough)
    own = own.at(_scores(LISTED, (0,)), spread, centred)
    columns, width, worst = own.map.columns, 2, 0.0
    assert own.sensitivity_squared("add-remove") == Fraction(1 << 80) * (1 + Fraction(1, rough**2))
    assert own.sensitivity_l1("add-remove") >= (width + Fraction(1, rough)) * (1 << 40)
    charged = float(own.sensitivity_squared("add-remove")) / (1 + rough**2)
    for n in (1, 2, 3, 7, 30, 45, 77, 300, 2_000):
        codes = np.zeros((len(columns), n))
        codes[columns.index("v")] = 3
        codes[columns.index("h")] = 1
        codes[columns.index("x")] = 2**20 - 1
        whole, less = (own.value(own.update(own.zero(), np.ascontiguousarray(part))) for part in (codes, codes[:, 1:]))
        moved = float((np.diag(whole - less)[width:].astype(float) ** 2).sum())
        assert moved <= charged
        worst = max(worst, moved / charged)
    assert worst > 0.9
    everything = whole[width:, :width]
    assert not everything.any() and own.shape == (width + RAMPS, width + RAMPS)


@pytest.mark.parametrize("rough", [2, 3])
def test_what_is_counted_behind_a_meat_is_charged_beside_what_its_cut_leaves_out(rough: int) -> None:
    """Where the persons of a PSU are counted too, the meat is charged for both: each moves by as much as a part of it, and no further."""
    own = PsuCovariance(_scores(LISTED, (0,)), Listed.of(LISTED), bits=40, rough=rough)
    own = replace(own.at(_scores(LISTED, (0,)), 4.0, False), caps=(2, 50))
    part, worst = Fraction(1 << 80, rough**2), np.zeros(2)
    assert own.sensitivity_squared("add-remove") == (1 << 80) + 2 * part
    one = own.scores(np.array([[0.0], [2**20 - 1.0]])).astype(np.int64).ravel()
    for n in (1, 2, 3, 7, 30, 45, 77, 300):
        more, less = (own.value({0: np.append(one * k, k)}) for k in (n, n - 1))
        moved = [float((np.diag(more - less)[at].astype(float) ** 2).sum()) for at in (slice(2, -2), slice(-2, None))]
        worst = np.maximum(worst, np.array(moved) / float(part))
    assert (worst <= 1).all() and (worst > 0.9).all()


@pytest.mark.parametrize("times", [0.9, 1.5, 3.0, 11.0])
def test_what_the_cut_leaves_out_is_told_from_its_ramps(times: float) -> None:
    """Without noise the factor is that of the whole sum of squares, by a chord of each ramp at most 1.12 times as large."""
    own = PsuCovariance(_scores(LISTED, (0,)), Listed.of(LISTED), bits=54).at(_scores(LISTED, (0,)), 20.0, False)
    one = own.scores(np.array([[0.0], [2**20 - 1.0]])).astype(np.int64).ravel()
    n = round(times * own.ruler[1] / float(np.sqrt((one.astype(float) ** 2).sum())))
    value = own.value({0: one * n, 1: one * 3})
    noisy = Noisy(value, Fraction(1), "grid_gaussian", Fraction(1), "frobenius")
    found = TruncationBias.of(noisy, own.ruler)
    right = float(n**2 + 9) * float((one.astype(float) ** 2).sum()) / float(np.trace(value[:2, :2]))
    assert 0.999 * right <= found.factor <= 1.13 * right and found.whole
    assert (found.words == "") == (times < 1)


def test_the_meat_of_persons_is_exact_and_bounded() -> None:
    g = np.random.default_rng(5)
    meat = PersonCovariance(_scores(LISTED, (0,)), bits=52).at(_scores(LISTED, (0,)))
    codes = np.stack([g.integers(0, 2, 500), g.integers(0, 2**20, 500)]).astype(float)
    rows = meat.scores(codes).T.astype(np.int64).astype(object)
    found = meat.value(meat.update(meat.zero(), codes))
    assert (found == rows.T @ rows).all()
    assert max(int((row**2).sum()) for row in rows) ** 2 <= meat.sensitivity_squared("add-remove")
    assert [bits_for(mu) for mu in (1e6, 1.0, 1e-12)] == [56, 54, 30]


def test_a_psu_beyond_the_public_lists_is_dropped() -> None:
    listed = Listed.of(LISTED)
    assert listed is not None
    # p0 is of the north; a record that names it in the south, or misses either, is in none
    codes = np.array([[0.0, 1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 7.0, 0.0, -1.0]])
    assert listed.numbers(codes).tolist() == [0, -1, -1, -1, -1]
    frame = records()
    strange = pd.concat([frame, frame.head(50).assign(v="p7", h="n", w=20.0, y=100.0)])
    tables = [simulated(METHODS["means"], cf.read(one, LISTED), cf.GDP(1.0), 4).params for one in (frame, strange)]
    assert (tables[0] == tables[1]).all()


def test_cells_of_weights_hold_each_weight_once() -> None:
    weight = CappedWeight(Measure.of("w", PERSONS).design)
    cells = WeightCells(weight, CELLS)
    codes = np.arange(0, 2**20, 997.0)[None]
    found = cells(codes)[0]
    values = codes[0] * 20 / (2**20 - 1)
    assert found.min() >= 1 and found.max() <= CELLS
    upper = cells.edges[found.astype(int) - 1]
    assert (values <= upper * (1 + 1e-12)).all()
    inner = found < CELLS
    assert (values[inner] > cells.edges[found[inner].astype(int)] * (1 - 1e-12)).all()


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_person_moves_what_the_cut_leaves_out_further_than_charged(relation: str) -> None:
    """Every weight and every pair of weights, at caps from next to nothing to the bound; the bound's person moves it by all of it."""
    schema = cf.Schema({**COLUMNS, "w": cf.Numeric(0, 20, on_missing="drop", steps=401)})
    codes, most = np.arange(-1.0, 401.0)[None], 0.0
    for cap in [*(20 * 2.0 ** (-np.arange(CELLS) / 2)).tolist(), 1e-9, 19.99, 20.0]:
        own = Total(TailRows(CappedWeight.named("w", schema).at(cap)), nonnegative=True)
        rows = own.map(codes)[0]
        assert rows.min() == 0 and rows[0] == 0 and (rows == np.rint(rows)).all() and (np.diff(rows[1:]) >= 0).all()
        # what is told of a weight is never less than what is lost of it
        lost = np.maximum(codes[0, 1:] / 20 - cap, 0.0)
        assert (rows[1:] * (20 - cap) >= lost * 2**20 - 1e-6).all()
        moved = rows if relation == "add-remove" else np.abs(rows[:, None] - rows)
        most = max(most, float(moved.max()) ** 2 / float(own.sensitivity_squared(relation)))
        assert moved.max() ** 2 <= own.sensitivity_squared(relation)
    assert most == 1.0


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("kind", list(METHODS))
def test_no_person_moves_what_is_drawn_of_capped_weights_further_than_charged(kind: str, relation: str) -> None:
    """The heaviest person comes, or takes the place of the lightest: each sum by as much as its spend says, in the branch with a cut."""
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", population=10_000))
    method, plan = METHODS[kind], cf.plan(METHODS[kind], schema, cf.GDP(1.0, relation=relation))
    alike = [{"h": "n", "sex": sex, "w": 0.2, "y": 50.0 + k % 9, "x": 5.0} for k in range(200) for sex in "fm"]
    drawn: list[dict[str, Any]] = []
    noisy: dict[str, Noisy] = {}

    class Told(Meter):
        def draw(self, name: str, integers: Any) -> Noisy:
            drawn[-1][name] = integers
            return noisy.setdefault(name, super().draw(name, integers))

    heavy = {"h": "s", "sex": "m", "w": 20.0, "y": 100.0, "x": 9.0}
    light = {"h": "n", "sex": "f", "w": 0.0, "y": 0.0, "x": 1.0}
    for person in ([heavy], [light] if relation == "substitute" else []):
        drawn.append({})
        seal(method, cf.read(pd.DataFrame([*alike, *person]), schema), plan, ZeroNoise(), Told)
    tails = [name for name in drawn[0] if name.startswith("(tail)")]
    assert len(tails) == 1
    for spend in leaves(plan.event):
        if spend.name in drawn[0]:
            moved = (drawn[0][spend.name] - drawn[1][spend.name]).ravel()
            assert sum(int(d) ** 2 for d in moved) <= (spend.sensitivity * spend.step) ** 2, spend.name
    assert int((drawn[0][tails[0]] - drawn[1][tails[0]])[0]) == 2**20


def test_few_heavy_persons_are_told_with_what_chance_leaves_of_them() -> None:
    """25 of 5,000 persons have a seventh of the weight. What a cut leaves out has a sampling error of its own, of variance at most (b - W)
    times as much; and squares of cut scores that noise nearly hides do not make the variance small. Fixed seeds.
    """
    schema = cf.Schema({"y": cf.Numeric(15, 95), "w": cf.Numeric(0, 33)}, design=cf.SurveyDesign(weight="w"))
    method, told, cuts = cf.tables.Means("y ~ 1", inference="population"), [], 0
    for seed in range(20, 50):
        g, heavy = np.random.default_rng(seed), np.arange(5_000) < 25
        frame = pd.DataFrame({"y": 50 + 10 * g.standard_normal(5_000) + 20 * heavy, "w": np.where(heavy, 33.0, 1.0)})
        release = cf.release(
            method,
            cf.read(frame.clip(upper=95), schema),
            cf.GDP(1.0),
            ledger=None,
            noise=SimulatedNoise(seed),
        )
        own, (cap, _, _, over, error) = cf.infer(release).estimated[(), 0], release.public["cap"]
        if error:
            cuts += 1
            assert own.bias[0] / own.unsure[0] == pytest.approx(over / np.hypot(error, np.sqrt((33 / cap - 1) * over)))
            continue
        score = frame["w"] * (frame["y"] - np.average(frame["y"], weights=frame["w"]))
        told.append(own.sampling[0, 0] / own.x[0] ** 2 * frame["w"].sum() ** 2 / (score**2).sum())
    assert cuts and np.quantile(told, 0.25) > 0.55 and 0.8 < np.median(told) < 1.3


# estimates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(METHODS))
@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_every_kind_is_planned_drawn_and_read_again(kind: str, schema: cf.Schema, relation: str) -> None:
    frame = records() if schema is not PERSONS else records().drop(columns="v")
    release = cf.release(
        METHODS[kind], cf.read(frame, schema), cf.GDP(2.0, relation=relation), ledger=None, noise=SimulatedNoise(1)
    )
    again = cf.Release.from_json(release.to_json())
    first, second = cf.infer(release), cf.infer(again)
    assert first.to_json() == second.to_json()
    # a row over the whole range has none
    assert (np.isfinite(first.bse) != first._open).all()
    assert "weighted by w" in first.title and all(
        word in first.summary(verbose=True) for word in ("raked", "replicate weights")
    )
    assert any("raked" in text for text in release.plan.warnings)


def test_a_public_population_makes_totals_of_means() -> None:
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", population=50_000, cap="full"))
    data = cf.read(records().drop(columns="v").dropna(), schema)
    total = simulated(cf.tables.Totals("y ~ 1", inference="population"), data, cf.GDP(1e5), 1)
    mean = simulated(cf.tables.Means("y ~ 1", inference="population"), data, cf.GDP(1e5), 1)
    assert total.params["y"] == pytest.approx(50_000 * mean.params["y"], rel=1e-4)
    assert total.bse["y"] == pytest.approx(50_000 * mean.bse["y"], rel=1e-3)
    number = simulated(cf.tables.Counts("sex", inference="population"), data, cf.GDP(1e5), 1)
    assert number.params["total"] == pytest.approx(50_000, rel=1e-9)


def test_a_public_population_is_not_that_of_a_subgroup() -> None:
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", population=50_000))
    for method in (cf.tables.Totals, cf.tables.Counts):
        with refuses(PlanError):
            formula = "y ~ 1" if method is cf.tables.Totals else "sex"
            cf.plan(method(formula, inference="population", where="sex == 'f'"), schema, cf.GDP(1.0))
    cf.plan(cf.tables.Means("y ~ 1", inference="population", where="sex == 'f'"), schema, cf.GDP(1.0))


@pytest.mark.parametrize(
    "psus", [{}, {"psu": "v", "size": 20}, {"psu": "v", "size": 22}, {"psu": "v", "size": 20, "count": 200}]
)
@pytest.mark.parametrize("where", [None, "sex == 'f'"])
def test_standard_errors_of_totals_are_never_below_binders(psus: dict[str, Any], where: str | None) -> None:
    """Also where how many PSUs or persons were sampled is not public, or is that of a subgroup; with the number they are equal."""
    g = np.random.default_rng(1)
    frame = pd.DataFrame({"sex": g.choice(["f", "m"], 4_000, p=[0.3, 0.7]), "w": g.uniform(1, 3, 4_000)})
    frame["y"] = np.clip(g.normal(50, 10, 4_000), 0, 100)
    frame["v"] = np.repeat(np.arange(200), 20) if psus else np.arange(4_000)
    inside = 1.0 if where is None else (frame["sex"] == "f")
    schema = cf.Schema(
        {"y": cf.Numeric(0, 100), "sex": COLUMNS["sex"], "w": cf.Numeric(0, 4)},
        design=cf.SurveyDesign(weight="w", cap="full", **psus),
    )
    data = cf.read(frame if psus else frame.drop(columns="v"), schema)
    for method, z in (
        (cf.tables.Totals("y ~ 1", inference="population", where=where), frame["w"] * frame["y"] * inside),
        (cf.tables.Counts("sex", inference="population", where=where), frame["w"] * inside),
    ):
        table = cf.infer(cf.release(method, data, cf.GDP(1e4), ledger=None, noise=ZeroNoise()))
        sums = z.groupby(frame["v"]).sum()
        binder = np.sqrt(len(sums) * sums.var())
        assert table.params.iloc[0] == pytest.approx(z.sum(), rel=1e-4)
        assert table.bse.iloc[0] > binder * (1 - 1e-3)
        if "count" in psus or not (psus or where):
            assert table.bse.iloc[0] == pytest.approx(binder, rel=5e-3)


def test_a_cut_of_weights_takes_nothing_from_a_sum() -> None:
    """Heavy weights that a small budget would cut: sums have all of them, up to the bound."""
    g = np.random.default_rng(3)
    frame = pd.DataFrame({"w": np.minimum(g.lognormal(0, 1.1, 2_000), 100), "sex": "f", "y": 50.0})
    columns = {"y": cf.Numeric(0, 100), "sex": COLUMNS["sex"], "w": cf.Numeric(0, 100)}
    for method in (cf.tables.Totals("y ~ 1", inference="population"), cf.tables.Counts("sex", inference="population")):
        for population, cap in ((None, 1), (20_000, CELLS)):
            schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", population=population))
            plan = cf.plan(method, schema, cf.GDP(0.3))
            assert plan.statistics["(weights)"].map.cells == cap
            release = cf.release(method, cf.read(frame, schema), cf.GDP(0.3), ledger=None, noise=ZeroNoise())
            assert (cf.infer(release).layout.heaviest == 100) == (cap == 1)


def test_a_declared_design_effect_and_fraction_scale_the_sampling_variance() -> None:
    data = records().drop(columns="v").dropna()
    errors = {}
    for name, more in {"plain": {}, "deff": {"deff": 3.0}, "fraction": {"fraction": 0.25}}.items():
        schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", cap="full", **more))
        release = cf.release(METHODS["totals"], cf.read(data, schema), cf.GDP(1e6), ledger=None, noise=ZeroNoise())
        errors[name] = cf.infer(release).bse["y"]
    assert errors["deff"] == pytest.approx(np.sqrt(3) * errors["plain"], rel=1e-6)
    assert errors["fraction"] == pytest.approx(np.sqrt(0.75) * errors["plain"], rel=1e-6)


def test_heavy_tails_beyond_the_cut_are_made_up_for() -> None:
    """Lognormal incomes far within wide bounds, at a budget that cuts scores: the standard error is that of all."""
    g = np.random.default_rng(8)
    n = 6_000
    frame = pd.DataFrame({"y": np.minimum(g.lognormal(0, 1.2, n), 100), "v": np.repeat(np.arange(n // 20), 20)})
    schema = cf.Schema({"y": cf.Numeric(0, 100)}, cluster=cf.Clusters("v", size=20, largest=20, icc=0.05))
    method = cf.tables.Means("y ~ 1", inference="population")
    release = cf.release(method, cf.read(frame, schema), cf.GDP(0.5), ledger=None, noise=ZeroNoise())
    assert release.public["limits (total)"][3] == 0
    sums = frame.assign(z=frame.y - frame.y.mean()).groupby("v").z.sum()
    exact = np.sqrt(300 / 299 * (sums**2).sum()) / n
    own = cf.infer(release).estimated[(), 0]
    assert np.sqrt(np.diag(own.sampling)[0]) / own.x[0] == pytest.approx(exact, rel=0.1)


def test_differences_count_psus_that_both_cells_lie_in() -> None:
    """Two sexes of the same villages: their difference is more precise than independent cells would be."""
    g = np.random.default_rng(9)
    village = np.repeat(np.arange(200), 20)
    frame = pd.DataFrame({"sex": g.choice(["f", "m"], 4_000), "v": village})
    frame["x"] = np.clip(5 + g.normal(size=200)[village] + 0.5 * g.normal(size=4_000), 1, 9)
    schema = cf.Schema({k: COLUMNS[k] for k in ("sex", "x")}, cluster=cf.Clusters("v", size=20, largest=20))
    found = simulated(cf.tables.Means("x ~ sex", inference="population"), cf.read(frame, schema), cf.GDP(2.0), 1)
    low, high = found.diff({"sex": "f"}, {"sex": "m"}).iloc[0][["ci_low", "ci_high"]]
    apart = np.sqrt((found.bse[["x | sex=f", "x | sex=m"]] ** 2).sum())
    assert high - low < 0.5 * 2 * 1.96 * apart


# the cap and the limits -----------------------------------------------------------------------------------------------


def test_the_cap_is_where_the_interval_is_shortest() -> None:
    edges = 50.0 * 2.0 ** (-np.arange(CELLS) / 2)
    counts = np.zeros(CELLS)
    counts[9:14] = 400.0  # weights of about 1
    cap = Cap.chosen(counts, 0.0, edges, 0.0, 5.0, 1)
    assert cap.lost == 0.0 and cap.weight == pytest.approx(edges[9]) and cap.persons == 2_000
    counts[0] = 20.0  # a few of 50: they count where noise is small, and are cut where it is large
    assert Cap.chosen(counts, 0.0, edges, 0.0, 1e-9, 1).lost == 0.0
    dear = Cap.chosen(counts, 0.0, edges, 0.0, 2_000.0, 1)
    assert dear.lost > 0 and dear.weight < edges[0]


def weights_of(kind: str, g: np.random.Generator) -> np.ndarray:
    """2,000 weights of mean about 1."""
    if kind == "lognormal":
        sigma = np.sqrt(np.log(3.25))
        return np.exp(sigma * g.normal(size=2_000) - sigma**2 / 2)
    if kind == "pareto":
        return np.minimum(0.2 / 1.2 * (1 - g.random(2_000)) ** (-1 / 1.2), 50)
    if kind == "a group":
        return np.where(
            g.random(2_000) < 0.05, np.minimum(2 * (1 - g.random(2_000)) ** (-1 / 1.5), 50), 0.5 + g.random(2_000)
        )
    return np.ones(2_000)


@pytest.mark.parametrize("kind", ["lognormal", "pareto", "a group", "equal"])
def test_the_lost_weight_is_rarely_understated_whatever_weights_hide_in_noise(kind: str) -> None:
    edges, under, reps = 50.0 * 2.0 ** (-np.arange(CELLS) / 2), 0, 300
    for seed in range(reps):
        g = np.random.default_rng(seed)
        w = weights_of(kind, g)
        counts = -np.diff([(w <= edge).sum() for edge in (*edges, 0.0)]) + 3.0 * g.normal(size=CELLS)
        cap = Cap.chosen(counts, 3.0, edges, 0.0, 3.0, 1)
        under += cap.lost < np.maximum(w - cap.weight, 0).sum() / w.sum()
    # P(Binomial(300, .05) > 29) = .0004
    assert under <= 29


def test_a_bound_far_above_all_weights_is_not_paid_for_in_full() -> None:
    """The error of what may be lost counts beside other noise: W lies well below the bound."""
    edges, sd = 25.0 * 2.0 ** (-np.arange(CELLS) / 2), 2.9
    for seed in range(20):
        counts = np.zeros(CELLS)
        counts[9] = 2_000.0
        cap = Cap.chosen(counts + sd * np.random.default_rng(seed).normal(size=CELLS), sd, edges, 0.0, 2.3, 1)
        assert cap.weight <= 18 and cap.error > 0


@pytest.mark.parametrize("alpha", few([0.001, 0.01, 0.05, 0.1, 0.32], 0, 2))
def test_intervals_miss_a_bias_that_is_known_with_noise_as_often_as_they_say(alpha: float) -> None:
    """Over its size and direction, and the noise with which it is known, by quadrature: the grid's error is a thousandth of alpha."""
    noise = special.ndtri((np.arange(2_000) + 0.5) / 2_000)
    ones, most = np.ones(len(noise)), 0.0
    for sd in (0.02, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 10.0):
        for size in np.concatenate([np.arange(0, 4, 0.2), np.arange(4, 12, 2)]) * max(1.0, sd) / 2:
            half = allowed(ones, size + sd * noise, sd * ones, alpha)
            for part in (0.0, 0.5, 1.0):
                missed = special.ndtr(part * size - half) + special.ndtr(-part * size - half)
                most = max(most, float(missed.mean()) / alpha)
    # it is the level that is used up, not more
    assert 0.99 < most <= 1.001


def test_weights_are_cut_where_their_bound_is_far_and_nothing_is_paid_for_it_elsewhere() -> None:
    g, n = np.random.default_rng(3), 2_000
    w = np.minimum(g.lognormal(-0.6, 1.1, n), 50)
    for high, cut in ((50.0, True), (2.0, False)):
        frame = pd.DataFrame({"y": g.normal(50, 10, n), "w": np.minimum(w, high)})
        schema = cf.Schema({"y": cf.Numeric(0, 100), "w": cf.Numeric(0, high)}, design=cf.SurveyDesign(weight="w"))
        own = simulated(cf.tables.Means("y ~ 1", inference="population"), cf.read(frame, schema), cf.GDP(0.5), 1)
        assert ("weights_trimmed" in own.flags) == cut == (own.layout.heaviest < high)


@pytest.mark.parametrize("kind", ["lognormal", "pareto", "a group", "equal"])
def test_what_a_table_says_is_lost_is_rarely_less_than_what_is(kind: str) -> None:
    schema = cf.Schema({"y": cf.Numeric(0, 1), "w": cf.Numeric(0, 50)}, design=cf.SurveyDesign(weight="w"))
    method, under, reps = cf.tables.Means("y ~ 1", inference="population"), 0, 60
    for seed in range(reps):
        w = weights_of(kind, np.random.default_rng(seed))
        own = simulated(method, cf.read(pd.DataFrame({"y": w > 2, "w": w}), schema), cf.GDP(1.0), seed)
        under += own.lost < np.maximum(w - own.layout.heaviest, 0).sum() / w.sum()
    # the noise of the sum of weights comes on top of 5 %; P(Binomial(60, .06) > 13) = 2e-5
    assert under <= 13


def test_where_noise_hides_how_far_a_cell_spreads_what_is_lost_counts_by_the_whole_tables_spread() -> None:
    """A cell of next to no spread, as far as noise tells: two sds of nothing would be no bound on how far the lost lie."""
    g, n = np.random.default_rng(4), 4_000
    rare = g.random(n) < 0.05
    w = np.where(rare, np.minimum(2 * (1 - g.random(n)) ** (-1 / 1.5), 50), 1.0)
    frame = pd.DataFrame({"g": np.where(rare, "b", "a"), "y": g.normal(50, 10, n).clip(0, 100), "w": w})
    columns = {"g": cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 100), "w": cf.Numeric(0, 50)}
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w"))
    hidden = 0
    for seed in range(12):
        own = simulated(cf.tables.Means("y ~ g", inference="population"), cf.read(frame, schema), cf.GDP(0.3), seed)
        of, every = own.estimated[(0,), 0], own.estimated[(), 0]
        told, whole = (50 * np.sqrt(one.moments.plain_variance) for one in (of, every))
        distance = of.unsure / (of.unsure[0] * (of.x[0] + of.over)) * (of.x + of.over)
        hidden += told[1] < 0.5 * whole[0]
        # relative to the large cell, whose spread is seen
        assert distance[1] >= 0.8 * min(1.0, whole[0] / max(told[0], 1e-9)) or own.layout.heaviest == 50
    assert hidden >= 2


def test_what_is_lost_may_be_all_of_one_group() -> None:
    """A small group has all large weights: its own lost share is counted, and for shares how far an indicator may lie."""
    n, rare = 2_000, 40
    w = np.concatenate([np.ones(n - rare), np.resize([3.0, 6.0, 40.0, 3.0], rare)])
    frame = pd.DataFrame({"g": ["b" if k >= n - rare else "a" for k in range(n)], "w": w})
    frame["y"] = np.where(w > 30, 4.0, 0.0)
    columns = {"g": cf.Categorical(["a", "b"]), "y": cf.Numeric(-5, 5), "w": cf.Numeric(0, 50)}
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w"))
    for method, cell in (
        (cf.tables.Means("y ~ g", inference="population"), 1),
        (cf.tables.Shares("g", inference="population"), 1),
    ):
        release = cf.release(method, cf.read(frame, schema), cf.GDP(0.3), ledger=None, noise=ZeroNoise())
        table = cf.infer(release)
        capped = np.minimum(w, table.layout.heaviest)
        assert capped.max() < 40
        inside = frame.g.to_numpy() == "b"
        of = (inside, frame.y) if method.name == "means" else (np.ones(n, dtype=bool), inside)
        mean = [np.average(of[1][of[0]], weights=own[of[0]]) for own in (w, capped)]
        found = table.estimated[(0,), 0]
        # a weight of 1 counts in steps of 2^-20 of the cap
        assert abs(mean[1] - mean[0]) <= found.bias[cell] * (1 + table.layout.heaviest * 2.0**-20)


@pytest.mark.parametrize("heavy", [0, 10, 20])
def test_a_rare_stratum_far_beyond_all_other_weights_is_never_taken_for_none(heavy: int) -> None:
    """2,000 persons of weight 1, some of 33, a bound of 50: what the cap leaves out is within e with an error of 5 %."""
    edges, under, reps = 50.0 * 2.0 ** (-np.arange(CELLS) / 2), {3.0: 0, 3_000.0: 0}, 400
    w = np.concatenate([np.ones(2_000 - heavy), np.full(heavy, 33.0)])
    true = -np.diff([(w <= edge).sum() for edge in (*edges, 0.0)]).astype(float)
    for seed in range(reps):
        counts = true + 5.0 * np.random.default_rng(seed).normal(size=CELLS)
        for noise in under:
            cap = Cap.chosen(counts, 5.0, edges, 0.0, noise, 1)
            under[noise] += cap.lost < np.maximum(w - cap.weight, 0).sum() / w.sum()
    # P(Binomial(400, .05) > 35) = .0008
    assert max(under.values()) <= 35
    assert ended(true, 5.0, edges) == edges[11]
    assert ended(np.array([150.0, 40.0, 90.0, 400.0]), 5.0, edges[:4]) is None


@pytest.mark.parametrize("cap", ["auto", "full"])
def test_the_head_says_what_large_weights_count_as(cap: str) -> None:
    """At the bound of the schema nothing is lost, whichever way it came to be the cap."""
    columns = {**COLUMNS, "w": cf.Numeric(0, 2)}
    frame = records().drop(columns="v").assign(w=2.0)
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", cap=cap))
    release = cf.release(METHODS["means"], cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise())
    table = cf.infer(release)
    assert "weights_trimmed" not in table.flags
    assert dict(table.head())["Largest weight"] == "2, the bound of the schema; nothing assumed"


def test_limits_grow_with_the_budget_and_cut_nobody_in_the_end() -> None:
    design = cf.SurveyDesign(psu="v", size=10, largest=10, count=200)
    sampled = Sampled(2_000, 1.0, 1.0, 1, design)
    least, most = (Limits.of(sampled, mu, longest=20.0, centred=True) for mu in (0.05, 1e6))
    assert (least.person, least.whole, least.centred) == (3.0, False, False)
    assert most.whole and most.psu == 200.0 and most.centred


@pytest.mark.parametrize("mu", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("centred", [False, True])
def test_the_cut_of_psu_sums_alone_grows_to_a_tenth_of_the_variance_in_noise_and_no_further(
    mu: float, centred: bool
) -> None:
    """With unequal weights; beyond that only cuts at the least limits have more noise."""
    design = cf.SurveyDesign(psu="v", size=20, largest=20, count=400)
    sampled = Sampled(8_000, 0.34, 0.13, 1, design)
    alone, own = (Limits.of(sampled, mu, longest=20.0, centred=centred, wide=wide) for wide in (0.0, WIDE))
    noise = own.moved(False) / mu / sampled.measured
    assert noise == pytest.approx(max(0.1, alone.moved(False) / mu / sampled.measured))
    assert own.person == alone.person and own.psu >= alone.psu


_PARTS = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.3, 2.0, 5.0, 20.0])


# Student's quantile on a fine grid of 1/df: SciPy's own, of every draw, is what the coverage below would take its time for.
_IN_DF = np.linspace(0.0, 1.0, 20_001)
_QUANTILES = stats.t.ppf(0.975, 1 / np.maximum(_IN_DF, 1e-12))


def test_students_quantile_is_a_line_between_the_points_of_its_grid() -> None:
    df = np.geomspace(1.0, 1e6, 1_001)
    np.testing.assert_allclose(np.interp(1 / df, _IN_DF, _QUANTILES), stats.t.ppf(0.975, df), rtol=0, atol=1e-7)


def _covered(noisy: float, of_estimate: float, free: int) -> tuple[float, float]:
    """(coverage, mean width over that of the variance without noise in it) of Y where V_M = 1 is drawn with chi-square sampling of `free`
    degrees of freedom and normal noise of sd `noisy`, at 400 x 400 quantiles of both.
    """
    at = (np.arange(400) + 0.5) / 400
    drawn = stats.chi2.ppf(at, free)[:, None] / free + noisy * stats.norm.ppf(at)
    facts: Any = SimpleNamespace(part=1.0)
    noise = np.full_like(drawn, of_estimate)
    counts, df = Estimated.freedom(
        facts, np.maximum(drawn, 0.0), np.full_like(drawn, noisy), noise, np.array(float(free))
    )
    half = np.interp(1 / df, _IN_DF, _QUANTILES) * np.sqrt(counts + noise)
    sd = np.sqrt(1.0 + of_estimate)
    return float(np.mean(2 * special.ndtr(half / sd) - 1)), float(half.mean() / (stats.t.ppf(0.975, free) * sd))


@pytest.mark.parametrize("free", [10, 20, 60, 380])
@pytest.mark.parametrize("of_estimate", [0.0, 0.01, 0.1, 0.25, 1.0])
def test_intervals_cover_however_much_of_a_variance_is_noise(free: int, of_estimate: float) -> None:
    """No draw at random: the coverage itself."""
    assert min(_covered(noisy, of_estimate, free)[0] for noisy in _PARTS) > 0.948


def test_a_variance_that_is_partly_noise_widens_intervals_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without the upper bound of a small draw they would not cover."""
    for noisy, most in ((0.2, 1.03), (0.4, 1.14), (0.8, 1.43)):
        assert _covered(noisy, 0.03, 140)[1] < most
    monkeypatch.setattr("confide.methods.tables.survey.results._ONE_SIDED", 0.0)
    assert _covered(1.0, 0.03, 140)[0] < 0.9


def test_sums_of_psus_that_are_skewed_and_closer_than_declared_count_as_far_as_noise_allows() -> None:
    """One in four PSUs is rich, weights differ between PSUs, and icc is left at its .2: the standard error is that of Binder's formula."""
    g, count, size = np.random.default_rng(3), 400, 12
    frame = pd.DataFrame({"v": np.repeat([f"q{k}" for k in range(count)], size)})
    frame["w"] = np.repeat(np.clip(g.lognormal(0, 0.6, count), 0, 6), size)
    frame["y"] = np.repeat(np.where(g.random(count) < 0.25, 70.0, 20.0), size) + g.normal(0, 15, count * size)
    schema = cf.Schema(
        {"y": cf.Numeric(0, 100), "w": cf.Numeric(0, 6)},
        design=cf.SurveyDesign(weight="w", psu="v", size=size, largest=size, count=count),
    )
    w, y = frame.w.to_numpy(), frame.y.clip(0, 100).to_numpy()
    sums = pd.Series(w * (y - np.average(y, weights=w)) / w.sum()).groupby(frame.v).sum()
    known = float(np.sqrt(count / (count - 1) * (sums**2).sum()))
    method = cf.tables.Means("y ~ 1", inference="population")
    release = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise())
    table = cf.infer(release)
    own = table.estimated[(), 0]
    assert 0.92 < float(np.sqrt(own.sampling[0, 0]) / own.x[0]) / known < 1.02
    assert 0.92 < float(table.bse.iloc[0]) / known < 1.25
    told = dict(table.notes())["PSUs"]
    assert (
        "of at most about 12 persons, alike by at most 0.2" in told
        and "are clipped, which the intervals allow for" in told
    )


def _uneven(g: np.random.Generator) -> pd.DataFrame:
    """400 PSUs of 1 to 150 persons, ten on average, alike by .7 in both columns."""
    sizes = np.clip(np.exp(g.normal(np.log(10) - 0.98, 1.4, 400)).astype(int), 2, 150)
    of = np.repeat(np.arange(400), sizes)
    level, n = g.normal(size=400)[of], len(of)
    y = np.sqrt(0.7) * level + np.sqrt(0.3) * g.standard_normal(n)
    x = 0.7 * g.normal(size=400)[of] + 0.7 * g.standard_normal(n)
    return pd.DataFrame({"v": of, "y": np.clip(y, -6, 6), "x": np.clip(x, -5, 5), "w": 1.0})


@pytest.mark.parametrize("what", ["line", "logit", "mean"])
def test_psus_that_are_larger_and_closer_than_declared_are_made_up_for(what: str) -> None:
    """Standard errors over those of R's formula; cut alone they were .7 of it for lines."""
    frame = _uneven(np.random.default_rng(3))
    x, y = frame.x.to_numpy(), frame.y.to_numpy()
    columns: dict[str, Any] = {"y": cf.Numeric(-6, 6), "x": cf.Numeric(-5, 5), "w": cf.Numeric(0, 1)}
    method: Any = {
        "line": cf.regression.LeastSquares("y ~ x"),
        "mean": cf.tables.Means("y ~ 1", inference="population"),
    }.get(what)
    if what == "logit":
        frame["y"], columns["y"], method = (y > 0).astype(int), cf.Integer(0, 1), cf.regression.Logistic("y ~ x")
        y = frame.y.to_numpy(dtype=float)
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", psu="v", size=10, count=400))
    data = cf.read(frame, schema)
    tables: list[Any] = [simulated(method, data, cf.GDP(2.0), seed) for seed in range(15)]
    z = np.ones((len(y), 1)) if what == "mean" else np.column_stack([np.ones(len(y)), x])
    theta, slope = np.zeros(z.shape[1]), np.ones(len(y))
    for _ in range(20 if what == "logit" else 1):
        fitted = 1 / (1 + np.exp(-z @ theta)) if what == "logit" else z @ theta
        slope = fitted * (1 - fitted) if what == "logit" else slope
        theta = theta + np.linalg.solve((z * slope[:, None]).T @ z, z.T @ (y - fitted))
    fitted = 1 / (1 + np.exp(-z @ theta)) if what == "logit" else z @ theta
    scores = z * (y - fitted)[:, None]
    sums = np.stack([np.bincount(frame.v, weights=own) for own in scores.T], axis=1)
    bread = np.linalg.inv((z * slope[:, None]).T @ z)
    right = np.sqrt(np.diag(bread @ sums.T @ sums @ bread))[-1]
    ratios = [float(found.bse.iloc[-1]) / right for found in tables if found.status == "valid"]
    assert len(ratios) == 15 and 0.9 < float(np.median(ratios)) < 1.3
    told = tables[0].summary(verbose=True) if what == "mean" else str(tables[0].flags)
    assert ("are clipped, which the intervals allow for" if what == "mean" else "psu_totals_clipped") in " ".join(
        told.split()
    )


def test_plans_warn_of_too_few_psus_with_the_number_that_would_do() -> None:
    few = cf.Schema(COLUMNS, design=cf.SurveyDesign(psu="v", size=4, largest=4, count=20))
    (text,) = [one for one in cf.plan(METHODS["counts"], few, cf.GDP(0.5)).warnings if "too few PSUs" in one]
    enough = int(text.split("About ")[-1].split(" PSUs")[0].replace(",", ""))
    more = cf.Schema(COLUMNS, design=cf.SurveyDesign(psu="v", size=4, largest=4, count=enough))
    assert not any("too few" in one for one in cf.plan(METHODS["counts"], more, cf.GDP(0.5)).warnings)


def test_plans_of_many_cells_warn_of_the_psus_that_each_cell_needs() -> None:
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(psu="v", size=4, largest=4, count=200))
    warned = []
    for right in ("1", "cut(x, 2, 3, 4, 5, 6, 7, 8)"):
        plan = cf.plan(cf.tables.Means(f"y ~ {right}", inference="population"), schema, cf.GDP(1.0))
        warned.append([one for one in plan.warnings if "too few PSUs" in one])
    assert not warned[0] and "in each of 8 cells" in warned[1][0]


def test_titles_name_a_design_and_nothing_that_nobody_said() -> None:
    frame = records().drop(columns="v")
    columns = {name: COLUMNS[name] for name in ("y", "x", "w")}
    for design, words in (
        (None, ""),
        (cf.SurveyDesign(weight="w"), ", weighted by w"),
        (cf.SurveyDesign(deff=3), ", declared design effect 3"),
    ):
        schema = cf.Schema(columns, design=design)
        found = simulated(cf.tables.Ratios("y / x", inference="population"), cf.read(frame, schema), cf.GDP(1.0), 1)
        assert found.title == f"Ratios of y / x{words}" and words in found.target
        assert ("design effect" in found.title + found.target) == (design is not None and design.deff is not None)
        assert any("replicate weights" in text for _, text in found.notes()) == bool(words)


def test_ratios_are_of_persons_with_both_values() -> None:
    frame = records().drop(columns="v")
    release = cf.release(METHODS["ratios"], cf.read(frame, PERSONS), cf.GDP(1e6), ledger=None, noise=ZeroNoise())
    own = frame.dropna()
    expected = (own.w * own.y).sum() / (own.w * own.x).sum()
    assert cf.infer(release).params["y / x"] == pytest.approx(expected, rel=1e-5)
    columns = {name: COLUMNS[name] for name in ("y", "x", "sex")}
    practice = cf.schema.CodedFrame.of(frame[list(columns)], cf.Schema(columns))
    reference = METHODS["ratios"].reference(practice)
    assert reference["y / x"] == pytest.approx(own.y.sum() / own.x.sum(), rel=1e-5)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_no_unit_of_several_rows_moves_what_is_drawn_further_than_charged(rows: int, relation: str) -> None:
    schema = cf.Schema(COLUMNS, rows_per_unit=rows)
    method, plan = METHODS["ratios"], cf.plan(METHODS["ratios"], schema, cf.GDP(1.0, relation=relation))
    ends = [{"h": "n", "sex": "f", "w": 1.0, "y": y, "x": x} for y, x in ((0.0, 9.0), (100.0, 1.0))]
    alike = [{"h": "n", "sex": sex, "w": 1.0, "y": 50.0 + k, "x": 5.0} for k in range(9) for sex in "fm"]
    drawn: list[dict[str, Any]] = []
    noisy: dict[str, Noisy] = {}

    class Told(Meter):
        def draw(self, name: str, integers: Any) -> Noisy:
            drawn[-1][name] = integers
            # what came out before is the same of both neighbours
            return noisy.setdefault(name, super().draw(name, integers))

    for unit in (ends[:1], ends[1:] if relation == "substitute" else []):
        drawn.append({})
        source = cf.read(pd.DataFrame([*alike, *unit * rows]), schema)
        seal(method, source, plan, ZeroNoise(), Told)
    for spend in leaves(plan.event):
        moved = (drawn[0][spend.name] - drawn[1][spend.name]).ravel()
        assert sum(int(d) ** 2 for d in moved) <= (spend.sensitivity * spend.step) ** 2, spend.name


def test_public_totals_come_from_a_mapping_or_a_file(tmp_path: Path) -> None:
    data = cf.read(records().drop(columns="v"), PERSONS)
    found = simulated(METHODS["means"], data, cf.GDP(2.0), 1)
    path = tmp_path / "totals.csv"
    path.write_text("sex,persons\nf,51000\nm,49000\n")
    one, other = found.poststratify({"f": 0.51, "m": 0.49}, "sex", of="x"), found.poststratify(path, "sex", of="x")
    assert one.equals(other) and one["ci_low"].iloc[0] < one["estimate"].iloc[0] < one["ci_high"].iloc[0]
    for wrong in (
        {"f": 1},
        {"f": 1, "m": -1},
        "gone.csv",
    ):
        with refuses(PlanError):
            found.poststratify(wrong, "sex")
    for other in (METHODS["totals"], cf.tables.Shares("sex", inference="population")):
        with refuses(PlanError):
            simulated(other, data, cf.GDP(2.0), 1).poststratify({"f": 1, "m": 1}, "sex")
    with refuses(PlanError):
        found.poststratify({"f": 1, "m": 1}, ("sex",))


@pytest.mark.parametrize(
    ("n", "mu", "seed", "status"),
    [
        (60, 0.2, 0, "no_information"),
        (90, 0.5, 1, "imprecise"),
        (300, 0.5, 1, "valid"),
    ],
)
def test_a_mean_of_levels_without_numbers_is_not_post_stratified(n: int, mu: float, seed: int, status: str) -> None:
    """At least 19 of 40 releases are of the status that is asked for; of the valid ones three had both numbers."""
    data = cf.read(records(n).drop(columns="v"), PERSONS)
    every = (simulated(METHODS["means"], data, cf.GDP(mu), at) for at in range(seed, seed + 20))
    found = next(one for one in every if one.status == status and one.estimated[(0,), 0].thin.any())
    with refuses(NoResult):
        found.poststratify({"f": 1, "m": 1}, "sex")


def test_one_skewed_level_is_no_skewed_mean_of_all() -> None:
    """One of some 30 values of m is 100 and the others 0, as all of 200 releases say."""
    means, frame = replace(METHODS["means"], bounds="declared"), records(60).drop(columns="v").assign(w=8.0)
    low = np.flatnonzero(frame["sex"] == "m")
    frame.loc[low, "y"] = np.where(low == low[0], 100.0, 0.0)
    found = simulated(means, cf.read(frame, PERSONS), cf.GDP(30.0), 1)
    own = found.estimated[(0,), 0]
    assert own.moments.skewed.tolist() == [False, True] and not own.thin.any()
    assert np.isfinite(found.poststratify({"f": 1, "m": 1}, "sex")).all(axis=None)
    assert own.weak_sum(np.array([0.0, 1.0])) and not own.weak_sum(np.array([1.0, 0.0]))
    few = replace(own, most=np.array([2.0, 200.0]))
    assert few.weak_sum(np.array([0.5, 0.5])) and not own.weak_sum(np.array([0.5, 0.5]))


def test_a_publication_asks_each_table_apart() -> None:
    asked = {"a": METHODS["means"], "b": METHODS["counts"], "c": cf.tables.Shares("sex", inference="population")}
    data = cf.read(records().drop(columns="v"), PERSONS)
    report = cf.infer(cf.release(cf.Publication(asked), data, cf.GDP(3.0), ledger=None, noise=SimulatedNoise(2)))
    assert report["b"].verb == "counts" and np.isfinite(report["a"].bse).all()


def test_no_error_tells_of_records() -> None:
    """Empty files, no weight, one cell: numbers with status and flags, or the same public error on neighbours."""
    said = set()
    for frame in (records(0), records(3), records(400).assign(w=0.0), records(400).assign(y=np.nan)):
        try:
            found = simulated(METHODS["means"], cf.read(frame, LISTED), cf.GDP(1.0), 1)
            assert found.status in ("valid", "imprecise", "no_information")
            said.add("")
        except ConfideError as error:
            said.add(str(error))
    assert said == {""}


def test_shares_of_a_plan_add_up() -> None:
    plan = cf.plan(METHODS["means"], LISTED, cf.GDP(1.0))
    (either,) = (part for part in plan.event.parts if isinstance(part, Branches))
    rest = sum((spend.mu_squared for spend in plan.event.parts if isinstance(spend, BudgetItem)), Fraction(0))
    # whichever way weights are cut, all is spent
    for branch in either.branches:
        spent = rest + mu_squared(branch)
        assert spent <= 1 and float(spent) == pytest.approx(1.0, abs=1e-9)
    full = cf.plan(METHODS["means"], cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", cap="full")), cf.GDP(1.0))
    assert not any(isinstance(part, Branches) for part in full.event.parts)
    assert "weighted by w, strata h, PSUs v" in plan.target


@pytest.mark.parametrize(
    "method",
    [METHODS["means"], cf.regression.LeastSquares("y ~ x"), cf.regression.Logistic("sex ~ x")],
    ids=["means", "line", "odds"],
)
def test_a_plan_of_few_psus_says_how_many_would_do(method: Any) -> None:
    """Where their number is public, and where it follows from n; with that many the warning is gone."""

    def warned(count: int | None, n: int | None) -> list[str]:
        schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", psu="v", size=10, count=count))
        plan = cf.plan(method, schema, cf.GDP(0.3), n=n)
        assert all("at n" not in one for one in plan.warnings), "n is not public, and no part of what is charged"
        return [one for one in (*plan.warnings, *plan.notes) if "too few PSUs" in one]

    (said,) = warned(20, None)
    (also,) = warned(None, 200)
    enough = int(said.split(". About ")[1].split(" PSUs")[0].replace(",", ""))
    assert "at n = 200" in also and f"About {enough:,} PSUs" in also
    assert enough > 100 and not warned(enough + 1, None) and not warned(None, 10 * enough + 10)
    assert not warned(None, None)


@pytest.mark.parametrize("counts", [np.zeros(CELLS), np.full(CELLS, -50.0), np.full(CELLS, 1e12), np.eye(CELLS)[0]])
@pytest.mark.parametrize("noise", [0.0, 1.0, 1e12])
def test_a_cap_is_found_whatever_the_histogram_says(counts: np.ndarray, noise: float) -> None:
    edges = 25.0 * 2.0 ** (-np.arange(CELLS) / 2)
    for sd in (0.0, 1e-6, 3.0, 1e9):
        cap = Cap.chosen(counts, sd, edges, 0.0, noise, 1, 50.0)
        assert cap.weight in edges and np.isfinite([cap.lost, cap.over, cap.error]).all() and 0 <= cap.lost <= 1


def test_the_mu_that_would_do_is_rounded_up():
    from confide.schema import SurveyDesign
    from confide.sums.clusters.cluster_covariance import too_few_psus

    design = SurveyDesign(psu="v", size=10, count=15)
    told = too_few_psus(design, 0.3)[0]
    times = float(re.search(r"or ([\d.]+) times the mu", told)[1])
    assert not too_few_psus(design, 0.3 * times)


def test_a_plan_of_a_design_for_n_persons_says_that_nothing_is_forecast():
    columns = {"y": cf.Numeric(0, 1), "w": cf.Numeric(0, 2), "x": cf.Numeric(0, 1)}
    schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w"))
    for method in (cf.tables.Means("y ~ 1", inference="population"), cf.regression.LeastSquares("y ~ x")):
        assert any("not forecast" in note for note in cf.plan(method, schema, cf.GDP(1.0), n=500).notes)
        assert not any("not forecast" in note for note in cf.plan(method, schema, cf.GDP(1.0)).notes)
