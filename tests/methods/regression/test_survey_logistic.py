"""Lines of an outcome under a survey's design: how far one person moves what is drawn, what is estimated, words, refusals.

Equality with R's `svyglm` stands in tests/methods/tables/survey/test_against_r.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses
from tests.methods.tables.survey.test_survey import COLUMNS, LISTS, NAMES, records as weighed
from tests.simulated import simulated

import confide as cf
import confide.testing
from confide.errors import NoResult, PlanError
from confide.methods.regression.glm.fisher_families import LOGIT, PROBIT, Family
from confide.methods.regression.glm.fisher_rows import (
    CROSS,
    FisherRows,
    FisherScores,
    InformationIndices,
    LongFisherScores,
)
from confide.methods.regression.glm.sums import Excess, FisherSum
from confide.methods.regression.sums.whitened_rows import Frame
from confide.methods.regression.survey_scores import Read
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame, ModelMatrix
from confide.sums.cells.weighted_cells import CappedWeight
from confide.sums.coding import BOUND, Box
from confide.testing import ZeroNoise

OWN: dict[str, Any] = {**COLUMNS, "o": cf.Integer(0, 1)}
PERSONS = cf.Schema(OWN, design=cf.SurveyDesign(weight="w"))
IDS = cf.Schema(OWN, design=cf.SurveyDesign(weight="w", psu="v", size=4))
LISTED = cf.Schema(
    {**OWN, "v": cf.Categorical(NAMES)},
    design=cf.SurveyDesign(weight="w", strata="h", psu="v", psus=LISTS, size=4, largest=4),
)
LINE = cf.regression.Logistic("o ~ x + sex")
DESIGN = ModelMatrix.of("o ~ x + sex", PERSONS)
WEIGHT = CappedWeight.named("w", PERSONS)
_STEEP = (np.array([[1, 0.3, 0], [0, 2.0, 0.1], [0, 0, 0.5]]), np.array([0.2, 3.0, -1]))


def records(n: int = 1_000, seed: int = 1) -> pd.DataFrame:
    frame, g = weighed(n, seed), np.random.default_rng(seed + 100)
    p = 1 / (1 + np.exp(-(0.4 * (frame.x - 5) + 0.5 * (frame.sex == "m"))))
    return frame.assign(o=(g.random(n) < p).astype(int))


def _frame(transform: Any = _STEEP[0], line: Any = _STEEP[1]) -> Frame:
    return Frame.of(Box.of(DESIGN), np.asarray(transform, dtype=float), np.asarray(line, dtype=float), 1.0)


def _codes(columns: tuple[str, ...], n: int, g: np.random.Generator, *, ends: bool = False) -> np.ndarray[Any, Any]:
    rows = []
    for name in columns:
        steps = getattr(PERSONS[name], "steps", None) or 2
        rows.append((g.choice([0, steps - 1], n) if ends else g.integers(-1, steps, n)).astype(float))
    return np.stack(rows)


# how far one person moves what is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [LOGIT, PROBIT], ids=["logit", "probit"])
@pytest.mark.parametrize("kind", [FisherRows, FisherScores, LongFisherScores, Excess, InformationIndices])
def test_persons_by_weight_keep_their_bound_and_do_not_hang_on_the_batch(kind: Any, family: Family) -> None:
    own = kind(DESIGN, family=family, weight=WEIGHT.at(5.0)).at(_frame(), 1.3, 0.7)
    own = replace(own, longest=1 << 26, limit=0.2) if kind is LongFisherScores else own
    assert own.columns[-1] == "w"
    codes = _codes(own.columns, 400, np.random.default_rng(3))
    rows = own(codes)
    assert ((rows**2).sum(axis=0) <= own.l2_squared).all() and (np.abs(rows).sum(axis=0) <= own.l1).all()
    parts = [own(np.ascontiguousarray(codes[:, k : k + 7])) for k in range(0, 400, 7)]
    assert (np.concatenate(parts, axis=1) == rows).all()
    assert (rows[:, codes[-1] < 0] == 0).all() and rows[:, codes[-1] >= 0].any()


@pytest.mark.parametrize("family", [LOGIT, PROBIT], ids=["logit", "probit"])
def test_no_neighbour_moves_the_sum_of_score_and_information_further_than_charged(family: Family) -> None:
    """Extreme persons of all weights at random lines, limits and cuts: one who comes or goes, one who is replaced."""
    g, worst = np.random.default_rng(4), {"add-remove": 0.0, "substitute": 0.0}
    for _ in range(150):
        transform = np.triu(g.normal(size=(3, 3))) * 10.0 ** g.uniform(-2, 2)
        frame, alpha, bound = (
            _frame(transform, g.normal(size=3) * 10.0 ** g.uniform(-2, 1)),
            10.0 ** g.uniform(-1, 1),
            10.0 ** g.uniform(-2, 1),
        )
        own = FisherSum(
            FisherRows(DESIGN, family=family, weight=WEIGHT.at(10.0 ** g.uniform(-1, 1.3))).at(frame, alpha, bound)
        )
        codes = _codes(own.map.columns, 40, g, ends=True)
        codes[-1] = g.integers(0, 2**20, 40) if g.random() < 0.5 else 2**20 - 1
        rows = own.map(codes)
        k = own.map.features
        alone = ((rows[:k] ** 2).sum(axis=0)) ** 2 + 2 * CROSS**2 * (rows[k:] ** 2).sum(axis=0)
        worst["add-remove"] = max(worst["add-remove"], float(alone.max()))
        moved = max(float(np.max(own.moved_squared(row, rows))) for row in rows.T)
        worst["substitute"] = max(worst["substitute"], moved)
    for relation, most in worst.items():
        charged = float(own.sensitivity_squared(relation))
        assert most <= charged and most > 0.5 * charged, relation


def test_a_planted_fault_is_seen() -> None:
    """Weights that are not cut, at a limit that holds for omega up to 1, would be longer."""
    frame, g = _frame(), np.random.default_rng(6)
    own = FisherRows(DESIGN, weight=WEIGHT.at(2.0)).at(frame, 1.0, 0.5)
    codes = _codes(own.columns, 200, g, ends=True)
    parts = own.parts(codes)
    free = own.weights(parts.size) * (codes[-1] / (2**20 - 1) * 20 / 2.0)
    length = free * np.sqrt((own.alpha * parts.information * parts.square) ** 2 + parts.residual**2 * parts.square)
    kept = own.counted(parts) * length / np.maximum(free, 1e-300)
    assert length.max() > 3 * own.bound and kept.max() <= own.bound * (1 + 1e-9)


@pytest.mark.parametrize("kind", [FisherRows, LongFisherScores, Excess])
def test_a_person_of_weight_w_counts_as_w_of_the_heaviest(kind: Any) -> None:
    own = kind(DESIGN, weight=WEIGHT).at(_frame(np.eye(3), [0.2, 0.8, -0.3]), 1.0, 8.0 if kind is not Excess else 0.4)
    codes = _codes(own.columns, 300, np.random.default_rng(5))
    codes, sums = codes[:, (codes >= 0).all(axis=0)], []
    for share in (1.0, 0.25):
        codes[-1] = round((2**20 - 1) * share)
        rows = own(codes)
        k = own.features
        sums.append(np.append(rows[:k] @ rows[:k].T, rows[k:].sum(axis=1)) if kind is FisherRows else rows.sum(axis=1))
    assert np.abs(sums[0]).min() > 0
    assert np.allclose(sums[1], sums[0] / 4, rtol=1e-4, atol=1e-5 * np.abs(sums[0]).max())


def test_scores_beyond_their_limit_keep_their_direction() -> None:
    """A meat's limit is shorter than D where weights are uneven; shorter scores are as without it."""
    own = replace(LongFisherScores(DESIGN, weight=WEIGHT, longest=1 << 26)).at(_frame(), 1.0, 0.7)
    codes = _codes(own.columns, 300, np.random.default_rng(7))
    whole, cut = (one(codes) / one.steps for one in (own, replace(own, limit=0.1)))
    size = np.sqrt((whole**2).sum(axis=0))
    expected = whole * np.minimum(1.0, 0.1 / np.maximum(size, 1e-12))
    assert (size > 0.1).any() and (size[size > 0] < 0.1).any() and np.abs(cut - expected).max() < 1e-6


def test_without_weights_the_maps_are_those_of_records() -> None:
    for kind in (FisherRows, FisherScores, Excess, InformationIndices):
        plain, own = kind(DESIGN), kind(DESIGN, weight=WEIGHT)
        assert plain.columns == DESIGN.columns and plain.digest != own.digest
        codes = _codes(own.columns, 100, np.random.default_rng(8))
        codes[-1] = 2**20 - 1
        assert (plain.at(_frame(), 1.0, 0.5)(codes[:-1]) == own.at(_frame(), 1.0, 0.5)(codes)).all()


# a release --------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
def test_contract(schema: cf.Schema) -> None:
    assert cf.testing.check_method(LINE, schema, replications=4).ok


@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_lines_are_planned_drawn_and_read_again(schema: cf.Schema, relation: str) -> None:
    frame = records(3_000) if schema is not PERSONS else records(3_000).drop(columns="v")
    privacy = cf.GDP(4.0, relation=relation)
    release = cf.release(LINE, cf.read(frame, schema), privacy, ledger=None, noise=SimulatedNoise(1))
    found, again = cf.infer(release), cf.infer(cf.Release.from_json(release.to_json()))
    assert again.to_json() == found.to_json()
    assert found.status == "valid" and np.isfinite(found.bse).all()
    assert "weighted by w" in found.title and all(
        word in found.summary(verbose=True) for word in ("raked", "replicate weights")
    )
    assert any("raked" in text for text in release.plan.warnings)
    with refuses(NoResult):
        found.average_marginal_effects()


def test_shares_of_a_plan_add_up_in_all_branches() -> None:
    for schema in (LISTED, PERSONS):
        plan = cf.plan(LINE, schema, cf.GDP(1.0))
        assert plan.guarantee.mu == 1.0 and "weighted by w" in plan.target

        def spent(event: Any) -> set[Fraction]:
            if hasattr(event, "branches"):
                return {one for branch in event.branches for one in spent(branch)}
            if hasattr(event, "parts"):
                found = {Fraction(0)}
                for part in event.parts:
                    found = {a + b for a in found for b in spent(part)}
                return found
            return {event.mu_squared}

        for total in spent(plan.event):
            assert total <= 1 and float(total) == pytest.approx(1.0, abs=1e-9)


def test_a_psu_beyond_the_public_lists_is_dropped() -> None:
    frame = records(2_000)
    strange = pd.concat([frame, frame.head(50).assign(v="p7", h="n", w=20.0, o=1)])
    tables = [simulated(LINE, cf.read(one, LISTED), cf.GDP(1.0), 4).params for one in (frame, strange)]
    assert (tables[0] == tables[1]).all()


def test_the_reference_is_the_weighted_line_of_listed_psus() -> None:
    frame = records(4_000)
    strange = pd.concat([frame, frame.head(500).assign(v="p7", h="n", w=20.0, o=1)])
    assert LISTED.design is not None
    schema = cf.Schema(dict(LISTED.columns), design=replace(LISTED.design, cap="full"))
    release = cf.release(LINE, cf.read(frame, schema), cf.GDP(1e6), ledger=None, noise=ZeroNoise())
    own = LINE.reference(CodedFrame.of(strange, schema))
    assert cf.infer(release).params.to_numpy() == pytest.approx(np.array(list(own.values())), rel=1e-4)
    bare = LINE.reference(CodedFrame.of(frame, cf.Schema(OWN)))
    assert max(abs(own[name] - bare[name]) for name in own) > 1e-3


def test_a_cut_of_weights_widens_every_interval_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    g, n = np.random.default_rng(5), 4_000
    frame = pd.DataFrame({"x": g.uniform(1, 9, n), "w": np.minimum(g.lognormal(0, 1.2, n), 200)})
    frame["o"] = (g.random(n) < 1 / (1 + np.exp(-0.4 * (frame.x - 5)))).astype(int)
    columns = {"o": OWN["o"], "x": COLUMNS["x"], "w": cf.Numeric(0, 200)}
    for cap in ("auto", "full"):
        schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", cap=cap))
        data, method = cf.read(frame, schema), cf.regression.Logistic("o ~ x")
        release = cf.release(method, data, cf.GDP(3.0), ledger=None, noise=ZeroNoise())
        found = cf.infer(release)
        assert found.status == "valid" and ("weights_trimmed" in found.flags) == (cap == "auto")
        with monkeypatch.context() as bare:
            bare.setattr(Read, "hidden", lambda *_: None)
            without = cf.infer(release)
        wider = np.ptp(found.conf_int().to_numpy(), axis=1) / np.ptp(without.conf_int().to_numpy(), axis=1)
        assert (wider > 1.0).all() if cap == "auto" else wider == pytest.approx(1.0)


def test_declared_effects_and_fractions_scale_the_sampling_variance() -> None:
    data, errors = records(6_000).drop(columns="v"), {}
    for name, more in {"plain": {}, "deff": {"deff": 3.0}, "fraction": {"fraction": 0.25}}.items():
        schema = cf.Schema(OWN, design=cf.SurveyDesign(weight="w", cap="full", **more))
        release = cf.release(LINE, cf.read(data, schema), cf.GDP(1e6), ledger=None, noise=ZeroNoise())
        errors[name] = cf.infer(release).bse
    assert errors["deff"].to_numpy() == pytest.approx(np.sqrt(3) * errors["plain"].to_numpy(), rel=1e-6)
    assert errors["fraction"].to_numpy() == pytest.approx(np.sqrt(0.75) * errors["plain"].to_numpy(), rel=1e-6)


@pytest.mark.parametrize(
    "method",
    [
        cf.regression.Logistic("o ~ x", target="weighted"),
        cf.regression.Logistic("o ~ 1"),
        cf.regression.Logistic("o ~ 0 + x"),
        cf.regression.Poisson("o ~ x"),
    ],
)
def test_what_no_line_of_a_survey_can_be_is_refused(method: Any) -> None:
    with refuses(PlanError):
        cf.plan(method, PERSONS, cf.GDP(1.0))


def test_no_error_tells_of_records() -> None:
    """Empty files, no weight, one row, one outcome: numbers with status and flags."""
    frames = (records(0), records(3), records(400).assign(w=0.0), records(400).assign(o=1), records(400).assign(v="x"))
    for frame in frames:
        found = simulated(LINE, cf.read(frame, LISTED), cf.GDP(1.0), 1)
        assert found.status in ("valid", "partial", "imprecise", "not_identified")
        assert found.summary()


def test_a_steps_bound_is_what_the_plan_charges() -> None:
    plan = cf.plan(LINE, PERSONS, cf.GDP(1.0))
    spend = plan.spend("last")
    assert float(spend.sensitivity * spend.step) == BOUND


def _alike(count: int, way: str, numbers: bool) -> tuple[pd.DataFrame, cf.Schema]:
    """Persons of an even outcome in `count` groups of 20, alike by .2, and a schema that says so."""
    g, size = np.random.default_rng(7), 20
    of = np.repeat(np.arange(count), size)
    x, lean = (np.sqrt(0.2) * g.normal(size=count)[of] + np.sqrt(0.8) * g.normal(size=count * size) for _ in range(2))
    frame = pd.DataFrame({"x": np.clip(x, -4, 4) if numbers else (x > 0).astype(int), "v": of, "w": 1.0})
    frame["o"] = (lean + 0.5 * (frame.x - frame.x.mean()) > 0).astype(int)
    columns: dict[str, Any] = {"x": cf.Numeric(-4, 4) if numbers else cf.Integer(0, 1), "o": cf.Integer(0, 1)}
    if way == "clusters":
        clusters = cf.Clusters("v", size=size, largest=size, icc=0.2, count=count)
        return frame, cf.Schema(columns, cluster=clusters)
    design = cf.SurveyDesign(weight="w", psu="v", size=size, largest=size, icc=0.2, count=count)
    return frame, cf.Schema({**columns, "w": cf.Numeric(0, 1)}, design=design)


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("way", ["clusters", "PSUs"])
def test_with_the_clusters_that_a_plan_asks_for_noise_is_about_half_of_what_it_measures(
    way: str, numbers: bool
) -> None:
    method, mu, size = cf.regression.Logistic("o ~ x"), 2.0, 10
    (said,) = (one for one in cf.plan(method, _alike(size, way, numbers)[1], cf.GDP(mu)).warnings if "too few" in one)
    found = re.search(r"About ([\d,]+) (?:values|PSUs) of v, or ([\d.]+) times the mu, would do where .* is even", said)
    assert found is not None
    enough = int(found[1].replace(",", ""))
    assert float(found[2]) == pytest.approx(enough / size, abs=0.2)
    frame, schema = _alike(enough + 1, way, numbers)
    assert not any("too few" in one for one in cf.plan(method, schema, cf.GDP(mu)).warnings)
    data = cf.read(frame, schema)
    noisy = [cf.release(method, data, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))["meat"] for seed in range(5)]
    measured = np.mean([np.diag(one.decode())[:2].mean() for one in noisy])
    assert 0.25 < np.sqrt(noisy[0].variance) / measured < 1.0


def test_a_plan_for_n_persons_says_how_many_clusters_would_do() -> None:
    columns = {"x": cf.Numeric(-4, 4), "y": cf.Numeric(-6, 6), "o": cf.Integer(0, 1)}
    schema = cf.Schema(columns, cluster=cf.Clusters("v", size=20))
    for method in (cf.regression.LeastSquares("y ~ x"), cf.regression.Logistic("o ~ x")):
        plan = cf.plan(method, schema, cf.GDP(0.3), n=400)
        assert any("too few clusters for this budget at n = 400" in one for one in plan.notes)
        assert not any("too few" in one for one in plan.warnings), "n is not public, and no part of what is charged"
        assert not any("too few" in one for one in cf.plan(method, schema, cf.GDP(0.3), n=400_000).notes)
