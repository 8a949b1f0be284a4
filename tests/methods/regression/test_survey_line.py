"""Lines under a survey's design: how far one person moves what is drawn, what is estimated, words, refusals, margins.

Equality with R's `svyglm` and `calibrate` stands in tests/methods/tables/survey/test_against_r.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses
from tests.methods.tables.survey.test_survey import COLUMNS, IDS, LISTED, PERSONS, records
from tests.simulated import simulated

import confide as cf
import confide.testing
from confide.core import Branches
from confide.errors import NoResult, PlanError
from confide.methods.regression.least_squares.survey import ByWeight, LongFeatures, LongScores, SurveyReading
from confide.methods.regression.sums.scores import SizeIndices, SquareOf
from confide.methods.regression.sums.whitened_rows import Frame, WhitenedRows
from confide.methods.regression.survey_scores import Read
from confide.schema import ModelMatrix
from confide.sums.cells.weighted_cells import CappedWeight
from confide.sums.coding import Box
from confide.testing import ZeroNoise

pytestmark = pytest.mark.usefixtures("declared")

LINE = cf.regression.LeastSquares("y ~ x + sex")
DESIGN = ModelMatrix.of("y ~ x + sex", PERSONS)
MAPS: dict[str, Any] = {
    "whitened": WhitenedRows(DESIGN, cap=3.0),
    "features": LongFeatures(DESIGN, cap=3.0, longest=1 << 23),
    "scores": LongScores(DESIGN, limit=0.7, longest=1 << 26),
    "square": SquareOf(DESIGN, reach=0.5),
    "cells": SizeIndices(DESIGN, scores=True, edges=(0.1, 0.5, 2.0)),
}


def _codes(of: ByWeight, n: int) -> np.ndarray[Any, Any]:
    g, rows = np.random.default_rng(3), []
    for name in of.columns:
        column = PERSONS[name]
        rows.append(g.integers(-1, getattr(column, "steps", None) or 2, n).astype(float))
    return np.stack(rows)


@pytest.mark.parametrize("kind", list(MAPS))
def test_records_by_weight_keep_their_bound_and_do_not_hang_on_the_batch(kind: str) -> None:
    frame = Frame.of(Box.of(DESIGN), np.array([[1, 0.3, 0], [0, 2.0, 0.1], [0, 0, 0.5]]), np.array([0.2, 3.0, -1]), 0.4)
    weight = CappedWeight.named("w", PERSONS).at(5.0)
    own = ByWeight(_at(MAPS[kind], frame), weight)
    codes = _codes(own, 400)
    rows = own(codes)
    assert ((rows**2).sum(axis=0) <= own.l2_squared).all() and (np.abs(rows).sum(axis=0) <= own.l1).all()
    parts = [own(np.ascontiguousarray(codes[:, k : k + 7])) for k in range(0, 400, 7)]
    assert (np.concatenate(parts, axis=1) == rows).all()
    assert (rows[:, codes[own.columns.index("w")] < 0] == 0).all()


def _at(of: Any, frame: Frame) -> Any:
    own = {name: getattr(of, name) for name in ("cap", "limit", "reach", "edges") if hasattr(of, name)}
    return of.at(frame, *own.values())


@pytest.mark.parametrize("kind", ["features", "scores", "square"])
def test_a_record_of_weight_w_counts_as_w_of_the_heaviest(kind: str) -> None:
    """Nobody cut: the Gram matrix or sum of records of weight .25 is a quarter of that of records at the cap."""
    at = {"features": {"cap": 4.0}, "scores": {"limit": 8.0}, "square": {"reach": 4.0}}[kind]
    bare = type(MAPS[kind])(DESIGN, **at, **({"longest": 1 << 23} if kind != "square" else {}))
    codes = _codes(ByWeight(bare, CappedWeight.named("w", PERSONS)), 200)
    codes = codes[:, (codes >= 0).all(axis=0)]
    place = ByWeight(bare, CappedWeight.named("w", PERSONS)).columns.index("w")
    sums = []
    for share in (1.0, 0.25):
        codes[place] = round((2**20 - 1) * share)
        rows = ByWeight(bare, CappedWeight.named("w", PERSONS))(codes)
        sums.append(rows @ rows.T if kind == "features" else rows.sum(axis=1))
    assert np.allclose(sums[1], sums[0] / 4, rtol=1e-4, atol=1e-5 * np.abs(sums[0]).max())


@pytest.mark.long
@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
def test_contract(schema: cf.Schema) -> None:
    assert cf.testing.check_method(LINE, schema, replications=4).ok


@pytest.mark.parametrize("schema", [LISTED, IDS, PERSONS], ids=["listed", "ids", "persons"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_lines_are_planned_drawn_and_read_again(schema: cf.Schema, relation: str) -> None:
    frame = records(3_000) if schema is not PERSONS else records(3_000).drop(columns="v")
    found = simulated(LINE, cf.read(frame, schema), cf.GDP(4.0, relation=relation), 1)
    again = cf.infer(cf.Release.from_json(found.release.to_json())) if hasattr(found, "release") else found
    assert again.to_json() == found.to_json()
    assert found.status == "valid" and np.isfinite(found.bse).all()
    assert "weighted by w" in found.summary()
    assert all(word in found.summary(verbose=True) for word in ("raked", "replicate weights"))


def test_shares_of_a_plan_add_up_in_both_branches() -> None:
    for schema in (LISTED, PERSONS):
        plan = cf.plan(LINE, schema, cf.GDP(1.0))
        assert plan.guarantee.mu == 1.0 and "weighted by w" in plan.target
        (either,) = (part for part in plan.event.parts if isinstance(part, Branches))
        common = sum((one.mu_squared for one in plan.event.parts if one is not either), Fraction(0))
        for branch in either.branches:
            spent = common + sum((one.mu_squared for one in branch.parts), Fraction(0))
            assert spent <= 1 and float(spent) == pytest.approx(1.0, abs=1e-9)


def test_a_psu_beyond_the_public_lists_is_dropped() -> None:
    # a range is that of all records
    frame, line = records(2_000), replace(LINE, bounds="declared")
    strange = pd.concat([frame, frame.head(50).assign(v="p7", h="n", w=20.0, y=100.0)])
    tables = [simulated(line, cf.read(one, LISTED), cf.GDP(1.0), 4).params for one in (frame, strange)]
    assert (tables[0] == tables[1]).all()


def test_a_cut_of_weights_widens_every_interval_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    g = np.random.default_rng(5)
    n = 4_000
    frame = pd.DataFrame({"x": g.uniform(1, 9, n), "w": np.minimum(g.lognormal(0, 1.2, n), 200)})
    frame["y"] = np.clip(20 + 5 * frame.x + 5 * g.normal(size=n), 0, 100)
    columns = {"y": COLUMNS["y"], "x": COLUMNS["x"], "w": cf.Numeric(0, 200)}
    for cap in ("auto", "full"):
        schema = cf.Schema(columns, design=cf.SurveyDesign(weight="w", cap=cap))
        release = cf.release(
            cf.regression.LeastSquares("y ~ x"),
            cf.read(frame, schema),
            cf.GDP(3.0),
            ledger=None,
            noise=ZeroNoise(),
        )
        found = cf.infer(release)
        assert ("weights_trimmed" in found.flags) == (cap == "auto")
        with monkeypatch.context() as bare:
            bare.setattr(Read, "hidden", lambda *_: None)
            without = cf.infer(release)
        wider = np.ptp(found.conf_int().to_numpy(), axis=1) / np.ptp(without.conf_int().to_numpy(), axis=1)
        assert (wider > 1.0).all() if cap == "auto" else wider == pytest.approx(1.0)


def test_what_the_cut_may_move_and_the_error_of_that_are_apart() -> None:
    meat, equal = np.array([[4.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 2.0]])
    public = {"cap": np.array([4.0, 0.1, 1000.0, 50.0, 20.0]), "omega": np.array([0.5, 0.4])}
    found = Read(SimpleNamespace(public=public), 1000.0).hidden(np.eye(2), meat, equal, 500.0)
    # mean squares of scores are those of the meat over E omega^2/E omega
    largest = 500 * np.array([4.0 / 0.8, 2.0])
    assert found.lengths == pytest.approx(2 * 50 / 500 * np.sqrt(largest))
    assert np.diag(found.error) == pytest.approx((2 * 20 / 500) ** 2 * largest)
    # a meat of little but noise says nothing of a direction
    noisy = Read(SimpleNamespace(public=public | {"cap": np.array([4.0, 0.1, 1e3, 0.0, 20.0])}), 1e3)
    bare = noisy.hidden(np.eye(2), np.diag([-3.0, 1.0]), equal, 500.0)
    assert not bare.lengths.any() and (np.linalg.eigvalsh(bare.error) > 0).all()


def test_weights_that_end_far_below_their_bound_are_told_with_the_bound_to_change() -> None:
    g = np.random.default_rng(5)
    frame = pd.DataFrame({"x": g.uniform(1, 9, 2_000), "w": np.ones(2_000)})
    frame["y"] = np.clip(20 + 5 * frame.x + 5 * g.normal(size=2_000), 0, 100)
    columns = {"y": COLUMNS["y"], "x": COLUMNS["x"]}
    half = {}
    for bound in (1.0, 50.0):
        schema = cf.Schema({**columns, "w": cf.Numeric(0, bound)}, design=cf.SurveyDesign(weight="w"))
        found = simulated(cf.regression.LeastSquares("y ~ x"), cf.read(frame, schema), cf.GDP(3.0), 2)
        assert found.status == "valid" and ("declare w" in found.summary(verbose=True)) == (bound > 1)
        half[bound] = np.ptp(found.conf_int().to_numpy(), axis=1)
        table = simulated(cf.tables.Means("y ~ 1", inference="population"), cf.read(frame, schema), cf.GDP(3.0), 2)
        assert ("declare w" in table.summary(verbose=True)) == (bound > 1)
    assert (half[50.0] > 1.5 * half[1.0]).all()


def test_a_meat_that_noise_has_turned_over_is_an_interval_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", cap="full"))
    release = cf.release(
        LINE, cf.read(records().drop(columns="v").dropna(), schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise()
    )
    whole = SurveyReading.sandwich.func  # type: ignore[attr-defined]
    monkeypatch.setattr(
        SurveyReading, "sandwich", property(lambda own: replace(whole(own), meat=-100 * whole(own).meat))
    )
    found = cf.infer(release)
    shown = np.ptp(found.conf_int().to_numpy(), axis=1)
    assert found.status in ("valid", "partial") and (shown[~np.isnan(shown)] > 0).all() and not np.isnan(shown).all()


def test_declared_effects_and_fractions_scale_the_sampling_variance() -> None:
    data, errors = records().drop(columns="v").dropna(), {}
    for name, more in {"plain": {}, "deff": {"deff": 3.0}, "fraction": {"fraction": 0.25}}.items():
        schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", cap="full", **more))
        release = cf.release(LINE, cf.read(data, schema), cf.GDP(1e6), ledger=None, noise=ZeroNoise())
        errors[name] = cf.infer(release).bse
    assert errors["deff"].to_numpy() == pytest.approx(np.sqrt(3) * errors["plain"].to_numpy(), rel=1e-6)
    assert errors["fraction"].to_numpy() == pytest.approx(np.sqrt(0.75) * errors["plain"].to_numpy(), rel=1e-6)


def test_what_no_line_of_a_survey_can_be_is_refused() -> None:
    for formula in ("y ~ 1", "y ~ 0 + x"):
        with refuses(PlanError):
            cf.plan(cf.regression.LeastSquares(formula), PERSONS, cf.GDP(1.0))
    with refuses(PlanError):
        cf.plan(cf.regression.SSP("y ~ x"), PERSONS, cf.GDP(1.0))


def test_margins_are_those_of_the_formula() -> None:
    data = cf.read(records().drop(columns="v"), PERSONS)
    own = simulated(cf.regression.LeastSquares("y ~ sex + h"), data, cf.GDP(20.0), 1)
    found = own.calibrate({"sex": {"f": 51, "m": 49}, "h": {"n": 60, "s": 40}})
    assert (
        found.ci_low["mean"] < found.estimate["mean"] < found.ci_high["mean"]
        and found.estimate["total"] == 100 * found.estimate["mean"]
    )
    for wrong in (
        {"sex": {"f": 51, "m": 49}},
        {"sex": {"f": 51, "m": 49}, "h": {"n": 60, "s": 41}},
        {"sex": {"f": 51, "x": 49}, "h": {"n": 60, "s": 40}},
        {"sex": 3},
        "gone.csv",
    ):
        with refuses(PlanError):
            own.calibrate(wrong)
    with refuses(PlanError):
        simulated(LINE, data, cf.GDP(20.0), 1).calibrate({"sex": {"f": 51, "m": 49}, "x": {"1": 100}})
    with pytest.raises(NoResult):
        little = cf.read(records(40).drop(columns="v"), PERSONS)
        simulated(cf.regression.LeastSquares("y ~ sex + h"), little, cf.GDP(0.05), 1).calibrate(
            {"sex": {"f": 51, "m": 49}, "h": {"n": 60, "s": 40}}
        )


def test_a_calibrated_mean_has_degrees_of_freedom_of_its_own() -> None:
    """At the base levels it is the intercept, to the digit; elsewhere what Satterthwaite says of a combination, by brute force."""
    schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", psu="v", size=10))
    data = cf.read(records(6_000).assign(v=np.arange(6_000) // 10), schema)
    g = np.random.default_rng(1)
    draws = np.triu(g.standard_normal((40_000, 3, 3)), 1) / np.sqrt(2)
    draws += draws.transpose(0, 2, 1)
    draws[:, range(3), range(3)] = g.standard_normal((40_000, 3))
    row, apart = np.array([1.0, 0.49, 0.4]), 0
    for seed in range(12):
        own = simulated(cf.regression.LeastSquares("y ~ sex + h"), data, cf.GDP(3.0), seed)
        first = own.calibrate({"sex": {"f": 9, "m": 0}, "h": {"n": 9, "s": 0}}, alpha=0.1).loc["mean"]
        low, high = own.conf_int(0.1).loc["Intercept"]
        assert first[["estimate", "std_err", "ci_low", "ci_high"]].tolist() == pytest.approx(
            [own.params["Intercept"], own.bse["Intercept"], low, high], rel=1e-12
        )
        assert first["df"] == pytest.approx(own.df[0], rel=1e-12)
        found = own.calibrate({"sex": {"f": 51, "m": 49}, "h": {"n": 60, "s": 40}}).loc["mean"]
        s = own.sandwich
        u = row @ s.spread
        noise = s.sd_meat * np.einsum("i,dij,j->d", u, draws, u)
        part = u**2 * s.weights
        behind = min(part.sum() ** 2 / (part**2 / np.maximum(s.independent * s.support, 1)).sum(), s.free)
        variance = found["std_err"] ** 2 - row @ own.unsure @ row
        sampling = variance - row @ s.noise_covariance @ row
        # three at least; 40,000 draws tell a variance to .7 %; five standard errors
        assert found["df"] == pytest.approx(
            max(2 * variance**2 / (noise.var() + 2 * sampling**2 / behind), 3.0), rel=5 * np.sqrt(2 / 40_000)
        )
        apart += found["df"] > 1.3 * own.df.min()
    # three of five seeds: a false alarm in 300
    assert apart >= 3


def test_a_plan_says_how_many_records_of_each_level_a_calibrated_mean_needs() -> None:
    schema = cf.Schema({**COLUMNS, "w": cf.Numeric(0, 4)}, design=cf.SurveyDesign(weight="w"))
    needed = {}
    for mu in (0.5, 2.0):
        (said,) = (
            one
            for one in cf.plan(cf.regression.LeastSquares("y ~ sex + h"), schema, cf.GDP(mu)).warnings
            if "calibrate()" in one
        )
        needed[mu] = int(re.search(r"about ([\d,]+) records", said)[1].replace(",", ""))  # type: ignore[index]
    assert 3 * needed[2.0] < needed[0.5] < 5 * needed[2.0]
    assert not any("calibrate()" in one for one in cf.plan(LINE, schema, cf.GDP(1.0)).warnings)


def test_no_error_tells_of_records() -> None:
    """Empty files, no weight, one row: numbers with status and flags."""
    for frame in (records(0), records(3), records(400).assign(w=0.0), records(400).assign(y=np.nan)):
        found = simulated(LINE, cf.read(frame, LISTED), cf.GDP(1.0), 1)
        assert found.status in ("valid", "partial", "imprecise", "not_identified")
