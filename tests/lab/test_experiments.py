"""Experiments as data: records and verdicts, parts of a grid, resumption, the registry, and the data sets' two variants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

from confide.errors import PlanError, SourceError
from confide_lab import datasets
from confide_lab.designs import FRESH, development, fresh_design, uniform
from confide_lab.experiment import Block, Check, Drawing, Experiment, Printed, Quantity, recorded, run
from confide_lab.experiments import load, names
from confide_lab.experiments.measures import shared
from confide_lab.figures import svg
from confide_lab.fits import METHODS, Case, fit, missing
from confide_lab.quantities import judged, record, statistic_of
from confide_lab.report import lines, page

JUDGED = ["binagg.figure1", "binagg.figure2", *(f"binagg.table{k}" for k in (1, 2, 3, 6, 7, 8))]


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Errors of an average, on records that the methods of a cell share."""
    draws = shared("toy", at).normal(0.0, 1.0, at["n"])
    noise = 0.0 if at["method"] == "plain" else float(generator.normal())
    if at["method"] == "broken" and at["replication"] == 0:
        raise ValueError("no line")
    return {"distance": abs(float(draws.mean()) + noise), "first": float(draws[0])}


def without(settings: Mapping[str, Any], method: str) -> bool:
    return method == "broken" and settings["n"] == 40


def toy(**changes: Any) -> Experiment:
    made: dict[str, Any] = {
        "name": "errors",
        "grid": {"n": (10, 40)},
        "methods": ("plain", "noisy", "broken", "absent"),
        "measure": measure,
        "quantities": (
            Quantity("error", of="distance"),
            Quantity("first"),
            Quantity("typical", "median", of="distance"),
        ),
        "replications": 8,
        "full": 1000,
        "printed": {(10, "plain", "error"): Printed(0.252, 3, 1000), (10, "noisy", "error"): Printed(9.0, 3, 1000)},
        "missing": lambda method: "it is not built yet" if method == "absent" else None,
        "without": without,
        "checks": lambda records: [Check("there are records", bool(records), str(len(records)))],
        "drawing": Drawing("lines", "n", "error", log="xy"),
    }
    return Experiment("toy.errors", "Errors of averages", (Block(**{**made, **changes}),), ("nobody",), ("a note",))


def done(experiment: Experiment, out: Path, **settings: Any) -> tuple[list[dict[str, Any]], list[str]]:
    said: list[str] = []
    return run(experiment, out, progress=False, note=said.append, **settings), said


def test_one_record_for_each_cell_method_and_quantity(tmp_path: Path) -> None:
    found, said = done(toy(), tmp_path)
    keys = [(r["setting"]["n"], r["method"], r["quantity"]) for r in found]
    assert len(keys) == len(set(keys)) == 3 * 5  # three quantities; broken has no cell at n = 40
    by = dict(zip(keys, found, strict=True))
    plain = by[10, "plain", "error"]
    assert plain["replications"] == 8 and plain["paper"] == 0.252 and plain["verdict"] == "undetermined"
    assert by[10, "noisy", "error"]["verdict"] == "undetermined", "eight replications"
    assert by[10, "broken", "error"]["failed"] == 1 and by[10, "broken", "error"]["replications"] == 7
    assert "paper" not in by[40, "plain", "error"]
    assert by[10, "plain", "typical"]["value"] == pytest.approx(plain["median"])
    assert any("absent is left out: it is not built yet" in text for text in said)
    assert any("1 of" in text and "no line" in text for text in said)
    json.dumps(found, allow_nan=False)


def test_methods_of_a_cell_share_their_records(tmp_path: Path) -> None:
    by = {(r["setting"]["n"], r["method"]): r["mean"] for r in done(toy(), tmp_path)[0] if r["quantity"] == "first"}
    assert by[10, "plain"] == by[10, "noisy"] and by[10, "plain"] != by[40, "plain"]


def test_a_part_has_the_numbers_of_the_whole_and_more_replications_keep_the_first(tmp_path: Path) -> None:
    whole, _ = done(toy(), tmp_path / "whole", reps=4)
    part, _ = done(toy(), tmp_path / "part", reps=4, only={"n": ["40"], "method": ["noisy"]})
    assert part == [r for r in whole if r["setting"] == {"n": 40} and r["method"] == "noisy"]
    more, _ = done(toy(), tmp_path / "part", reps=6, only={"n": ["40"], "method": ["noisy"]})
    assert {r["replications"] for r in more} == {6}
    with refuses(PlanError):
        done(toy(), tmp_path, only={"m": ["1"]})
    with refuses(PlanError):
        done(toy(), tmp_path, only={"n": ["11"]})


@pytest.mark.parametrize("grid", [{"n": (10, 40)}, {"n": (10,), "release": ((0.1, 2), ("a", inf))}])
def test_what_was_recorded_is_read_again(tmp_path: Path, grid: dict[str, Any]) -> None:
    toys = toy(grid=grid)
    found, _ = done(toys, tmp_path, reps=3)

    def key(r: dict[str, Any]) -> str:
        return json.dumps([r["setting"], r["method"], r["quantity"]])

    assert found and sorted(recorded(toys, tmp_path), key=key) == sorted(found, key=key)
    assert [key(r) for r in recorded(toys, tmp_path)] == [key(r) for r in found], "in the order of the grid"
    assert recorded(toys, tmp_path / "nowhere") == []


def test_fewer_replications_for_methods_that_take_long(tmp_path: Path) -> None:
    found, _ = done(toy(fewer={"noisy": 2}), tmp_path, reps=5)
    assert {r["method"]: r["replications"] for r in found if r["setting"]["n"] == 40} == {"plain": 5, "noisy": 2}


def test_statistics_and_verdicts() -> None:
    values = np.random.default_rng(1).normal(2.0, 3.0, 4_000)
    for name, expected in (("mean", 2.0), ("median", 2.0), ("sd", 3.0), ("spread", 3.0)):
        value, error = statistic_of(values, name)
        assert abs(value - expected) < 4 * error < 0.5
    assert np.isnan(statistic_of(np.array([]), "mean")[0])
    with refuses(PlanError):
        Quantity("x", "mode")


def said(printed: Printed, values: Any, statistic: str = "mean", *, exact: bool = False) -> str:
    row = record("e", "b", {}, "m", Quantity("q", statistic), np.asarray(values, dtype=np.float64))
    return str(judged(row, printed, exact=exact)["verdict"])


def test_a_verdict_can_fail() -> None:
    draws = np.random.default_rng(2).normal(1.0, 0.1, 400)
    assert said(Printed(1.0, 3, 400), draws) == "agrees"
    # four standard errors of a difference, .028
    assert said(Printed(1.03, 3, 400), draws) == "differs" == said(Printed(0.97, 3, 400), draws)
    assert said(Printed(1.0, 3, 400), draws[:9]) == "undetermined", "nine replications"
    assert said(Printed(0.9, 3, 10), draws[:10] * 8 - 7) == "undetermined", "a band above a fifth"
    assert said(Printed(0.2, 3, 10), draws[:10]) == "differs", "outside a band above a fifth"
    assert (
        said(Printed(0.25, 3), [0.25], exact=True) == "agrees"
        and said(Printed(0.26, 3), [0.25], exact=True) == "differs"
    )
    assert said(Printed(0.25, 3), [np.nan]) == "undetermined"
    with refuses(PlanError):
        Printed(1.0, tolerance=0.1)


@pytest.mark.parametrize(("ours", "theirs"), [(22.8, 0.203), (8.45, 0.0952), (904.0, 1.11)])
def test_a_heavy_tail_does_not_agree_by_its_width(ours: float, theirs: float) -> None:
    """Means that one run makes: they agreed when the band was their own standard errors."""
    tails = np.append(np.random.default_rng(3).normal(4 * theirs, theirs / 10, 99), 100 * ours)
    assert said(Printed(theirs, 4, 100), tails) == "differs", "no mean is half of what half of the runs exceed"
    tails = np.append(np.random.default_rng(3).normal(theirs * 0.6, theirs / 10, 99), 100 * ours)
    assert said(Printed(theirs, 4, 100), tails) == "undetermined"
    tails = np.append(np.random.default_rng(3).normal(theirs, theirs / 10, 99), 100 * ours)
    assert said(Printed(theirs, 4, 100), tails) == "agrees", "on medians"


def test_a_change_of_code_that_makes_numbers_changes_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confide_lab.experiments import binagg_tuning
    from confide_lab.runner import versions

    before = versions.measure_version(binagg_tuning.measure_theta)
    text = Path(binagg_tuning.__file__).read_text()
    place = tmp_path / "changed.py"
    monkeypatch.setattr(binagg_tuning, "__file__", str(place))
    place.write_text(text.replace('"Threshold of the tree (Table 6)"', '"Another title"'))
    assert versions.measure_version(binagg_tuning.measure_theta) == before
    place.write_text(text.replace('"D4": 10', '"D4": 20'))
    assert versions.measure_version(binagg_tuning.measure_theta) != before


def test_the_report_and_its_figure(tmp_path: Path) -> None:
    experiment = toy()
    found, _ = done(experiment, tmp_path)
    text = page(experiment, found)
    assert text == page(experiment, found), "the same records give the same page"
    for word in ("Errors of averages", "<svg", "a note", "undetermined", "holds", "0.252"):
        assert word in text
    assert all(len(row) == 8 for row in lines(experiment.blocks[0], found))
    dots = toy(drawing=Drawing("dots", "n", "error")).blocks[0]
    assert "<svg" in svg(dots, found)
    assert svg(dots, []) == ""


def test_the_registry_holds_every_experiment_that_is_counted_on() -> None:
    assert set(JUDGED) <= set(names())
    for name in names():
        experiment = load(name)
        assert experiment.name == name and experiment.sources
        for block in experiment.blocks:
            width = len(block.grid) + 2
            assert not block.printed or name.startswith(
                ("binagg.", "eptr.", "gptr.", "zil.", "precise.", "survey.real", "survey.designs", "survey.clusters")
            ), "papers' numbers alone"
            for key in block.printed:
                if block.overall is None or len(key) != 3:
                    assert len(key) == width, (name, key)
                assert key[-2] in block.methods or block.overall, (name, key)
                assert key[-1] in {q.name for q in block.quantities} or block.overall, (name, key)
            reported = {q.name for q in block.quantities}
            if name.startswith("binagg.") and name not in ("binagg.table5", "binagg.table8", "binagg.comparison"):
                assert {"relmse", "r2"} & reported or "loss" in reported
                assert "mean" in block.methods or name == "binagg.table1", "always a row of the mean"
    with refuses(PlanError):
        load("binagg.table9")


@pytest.mark.parametrize("name", ["binagg.figure1", "binagg.figure2"])
def test_a_simulated_experiment_runs_end_to_end(tmp_path: Path, name: str) -> None:
    only = {"n": ["1000"], "method": ["ols", "mean", "ssp2", "adassp"], "d": ["1"], "loose": ["2"]}
    experiment = load(name)
    found, said = done(
        experiment,
        tmp_path,
        reps=2,
        only={k: v for k, v in only.items() if k in {"n", "method", *experiment.blocks[0].grid}},
    )
    assert not any("failed" in text for text in said), said
    assert {r["method"] for r in found} >= {"ols", "mean", "ssp2"}
    assert all(r["value"] is None or np.isfinite(r["value"]) for r in found)


# designs and methods ----------------------------------------------------------------------------------------------------


def test_methods_that_are_missing_say_so() -> None:
    assert missing("ols") is None and missing("ssp2") is None
    assert missing("nothing") == "there is no such method"
    assert {METHODS[name].kind for name in METHODS} == {"not private", "literal", "private"}


def test_least_squares_is_exact_without_noise() -> None:
    case, truth = uniform(60, 3, np.random.default_rng(1), y_bounds=(-1, 9), intercept=True)
    exact = Case(
        case.frame.assign(y=case.frame[["x1", "x2", "x3"]].to_numpy() @ truth.beta + 0.5),
        case.schema,
        case.formula,
        1.0,
    )
    found = fit("ols", exact, np.random.default_rng(1))
    np.testing.assert_allclose(found.beta, truth.beta, atol=1e-10)
    assert found.intercept == pytest.approx(0.5)
    assert fit("mean", exact, np.random.default_rng(1)).predict(exact.x)[0] == pytest.approx(exact.y.mean())


@pytest.mark.long
def test_fresh_designs_are_what_the_protocol_says() -> None:
    designs = [fresh_design(5, number) for number in FRESH]
    assert [d.regular for d in designs] == [True] * 40 + [False] * 10
    for d in (1, 3, 8, 15, 30):
        assert sum(one.d == d and one.regular for one in designs) == 8 and sum(one.d == d for one in designs) == 10
    assert {one.law for one in designs} == {"mixture", "discrete", "heavy", "blocks", "pair"}
    for one in designs[::9]:
        case, truth = one.draw(np.random.default_rng(2))
        inside = (case.frame["y"] >= one.y_bounds[0]) & (case.frame["y"] <= one.y_bounds[1])
        assert inside.mean() > 0.97 and len(case.frame) == one.n and case.x.shape == (one.n, one.d)
        assert len(truth.beta) == one.d


@pytest.mark.parametrize("cell", ["levels n=300", "lognormal d=5 n=300", "correlated d=5 n=300", "unequal d=5 n=300"])
def test_development_cells(cell: str) -> None:
    case, truth = development(cell, np.random.default_rng(3))
    assert len(case.frame) == 300 and case.x.shape[1] == len(truth.beta)
    with refuses(PlanError):
        development("cauchy d=5 n=3", np.random.default_rng(3))


# data sets --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny manifest with two sets: labels and missing codes."""
    g = np.random.default_rng(1)
    air = pd.DataFrame(
        {
            "datetime": pd.date_range("2020-01-01", periods=30),
            "co_gt": g.uniform(0, 9, 30),
            "nmhc_gt": g.integers(0, 9, 30),
            "t": g.normal(9, 1, 30),
        }
    )
    air.loc[:4, "co_gt"] = np.nan
    rings = pd.DataFrame({"sex": list("MFI") * 10, "length": g.random(30), "rings": g.integers(1, 30, 30)})
    bounds = {"co_gt": (0, 30), "nmhc_gt": (0, 3000), "t": (-15, 45), "length": (0, 1), "rings": (0, 35)}
    entries = {}
    for name, frame in (("air_quality", air), ("abalone", rings)):
        path = tmp_path / f"{name}.parquet"
        frame.to_parquet(path)
        entries[name] = {
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bounds": {c: {"lower": bounds[c][0], "upper": bounds[c][1]} for c in frame if c in bounds},
        }
    (tmp_path / "manifest.json").write_text(json.dumps({"datasets": entries}))
    monkeypatch.setenv(datasets.ENVIRONMENT, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    datasets.table.cache_clear()
    yield tmp_path
    datasets.table.cache_clear()


def test_the_two_variants_of_a_table(folder: Path) -> None:
    paper, public = datasets.table("D7", "paper"), datasets.table("D7", "public")
    assert paper.formula == "co_gt ~ 0 + nmhc_gt + t" and public.formula == "co_gt ~ t"
    assert len(paper.frame) == 30 and (paper.frame["co_gt"] == -200).sum() == 5
    assert len(public.frame) == 25 and public.response_bounds == (0.0, 30.0)
    assert paper.schema["t"].provenance.kind == "lab" and public.schema["t"].provenance.kind == "public"
    sex = datasets.table("D4", "paper")
    assert [name for name in sex.frame if name.startswith("sex_")] == ["sex_F", "sex_I", "sex_M"]
    assert datasets.table("D4").formula == "rings ~ sex + length"


def test_files_that_are_not_what_they_should_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(folder / "abalone.parquet")
    with refuses(SourceError):
        datasets.table("D4")
    with refuses(SourceError):
        datasets.table("D1")
    with refuses(PlanError):
        datasets.table("D0")
    with refuses(PlanError):
        datasets.table("D4", "secret")
    (folder / "manifest.json").write_text("{")
    with refuses(SourceError):
        datasets.table("D4")


def test_a_fetched_table_is_kept_only_when_every_value_is_right(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"area": [1.5, 2.0], "number_of_barriers": [3, 4]})
    served = tmp_path / "served.csv"
    frame.rename(columns={"number_of_barriers": "Number of Barriers"}).to_csv(served, index=False)
    entry = {
        "file": "lt_fs_id.parquet", "sha256": "", "uci_id": 1, "doi": "x", "columns": list(frame),
        "content": datasets.content_digest(frame), "bounds": {"area": (0, 9), "number_of_barriers": (0, 9)},
    }  # fmt: skip
    monkeypatch.delenv(datasets.ENVIRONMENT)
    monkeypatch.setattr(datasets, "_catalogue", lambda: {"lt_fs_id": entry})
    monkeypatch.setattr(datasets, "_URL", served.as_uri())
    assert datasets.available("D1") is not None
    assert len(datasets.table("D1").frame) == 2
    assert datasets.available("D1") is None
    datasets.table.cache_clear()
    (tmp_path / "cache" / "confide" / "data" / "lt_fs_id.parquet").unlink()
    served.write_text(served.read_text().replace("1.5", "1.6"))
    with refuses(SourceError):
        datasets.table("D1")
    served.unlink()
    with refuses(SourceError):
        datasets.table("D1")


def test_the_catalogue_knows_every_set() -> None:
    kept = datasets._catalogue()
    for recipe in datasets.SETS.values():
        entry = kept[recipe.name]
        assert recipe.target in entry["columns"] and len(entry["sha256"]) == len(entry["content"]) == 64
        assert set(recipe.out) <= set(entry["columns"])
