"""Printed layouts: cross-tables, ratios, what a test compares; the same cells in every format; frames for other tools."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.messages import refuses
from tests.results.results_examples import build

import confide as cf
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.results.pages.export import document

SCHEMA = cf.Schema(
    {
        "sex": cf.Categorical(["female", "male"]),
        "region": cf.Categorical(["north", "south", "east", "west"]),
        "age": cf.Integer(18, 90),
        "income": cf.Numeric(0, 9000),
        "smoker": cf.Categorical(["no", "yes"]),
    }
)
CALL: dict[str, Any] = {"ledger": None, "noise": SimulatedNoise(1)}


@pytest.fixture(scope="module")
def data() -> cf.Source:
    return cf.read(SCHEMA.sample(4_000, seed=1), SCHEMA)


def _heads(result: Any) -> list[str]:
    lines = result.summary().splitlines()
    rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
    return re.split("  +", lines[rule - 1].strip())


def test_two_factors_are_crossed_with_totals_last(data: cf.Source) -> None:
    table = cf.tables.counts("sex * region", data, inference="dataset", privacy=cf.GDP(0.5), **CALL)
    # the last factor does not fit 80 columns, the first one does
    assert table.title == "Records by region and sex"
    assert _heads(table) == ["region", "female", "95% CI", "male", "95% CI", "Total", "95% CI"]
    assert max(map(len, table.summary().splitlines())) <= 80
    rows = [line.split()[0] for line in table.summary().splitlines()[5:10]]
    assert rows == ["north", "south", "east", "west", "Total"]
    assert len(table.to_frame()) == 15 and len(table.to_csv().splitlines()) == 16


@pytest.mark.parametrize("points", [1, 2, 4])
def test_a_wide_group_column_pushes_no_number_out(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its head and labels wrap, down to eight characters; rows are as wide as the terminal, 80 where there is none."""
    names = ("sex", "years since the first admission", "region of the first of all addresses")
    sex, region = SCHEMA["sex"], SCHEMA["region"]
    schema = cf.Schema(dict(zip(names, (sex, SCHEMA["age"], region), strict=True)) | {"income": SCHEMA["income"]})
    cuts = f"cut(`{names[1]}`, {', '.join(str(at) for at in (30.25, 45.25, 60.25, 75.25)[:points])})"
    source = cf.read(schema.sample(2_000, seed=1), schema)
    for groups in (f"sex * {cuts}", f"sex * `{names[2]}` * {cuts}"):
        table = cf.tables.means(f"income ~ {groups}", source, inference="population", privacy=cf.GDP(1), **CALL)
        for width in (80, 160):
            monkeypatch.setenv("COLUMNS", str(width))
            lines = table.summary().splitlines()
            rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
            assert max(map(len, lines)) <= width
            head = next(line for line in lines[:rule] if line.endswith(("95% CI", "privacy share", "flags")))
            assert re.search(r" n +mean +std\. err\. +95% CI", head)
            told = [line for line in lines[rule + 1 :] if re.search(r"\d to -?[\d,.]+|none|n/a  ", line)]
            assert len(told) >= min(len(table.to_frame()), 60)
            assert ("privacy share" in head) == (width == 160)
        monkeypatch.delenv("COLUMNS")
        assert max(map(len, table.summary().splitlines())) <= 80


def test_flags_are_letters_with_a_note_each_and_one_of_all_rows_is_a_note_alone(data: cf.Source) -> None:
    """Fails when an id is printed in a row, a letter has no words, a note is lost without a word, or more than six are printed."""
    asked: dict[str, Any] = {"inference": "population", "privacy": cf.GDP(0.01), **CALL}
    table = cf.tables.means("income ~ sex * region", data, **asked)
    text, every = table.summary(), table.summary(verbose=True)
    frame = table.to_frame()
    letters = {"count_below_noise": "C", "whole_range": "W", "noise_dominates": "N", "E": "E", "F": "F"}
    used = {flag: int(frame["flags"].str.split().map(lambda own, flag=flag: flag in own).sum()) for flag in letters}
    lines = text.splitlines()
    at = lines[3].index("flags")
    cells = {cell for line in lines[5 : 5 + len(frame)] for cell in line[at:].split()}
    assert cells == {letters[flag] for flag, rows in used.items() if 0 < rows < len(frame)} and len(cells) > 2
    labels = [line.split("  ")[0] for line in lines[5 + len(frame) :] if line and not line.startswith(" ")]
    assert len(labels) == 6 and re.search(r"\(\d more notes?: summary\(verbose=True\)\)$", text)
    for flag, rows in used.items():
        if rows:
            assert f"{letters[flag]} ({rows} row" in " ".join(text.split())
            lead = flag if flag == letters[flag] else f"{letters[flag]}, {flag}"
            assert f"{lead} ({rows} row" in " ".join(every.split())
    alone = cf.tables.means("income", data, **asked)
    assert "flags" not in _heads(alone)
    assert "noise_dominates (1 row): privacy noise" in alone.summary()
    assert "noise dominates" in document(table, 0.05).note


def test_shares_are_percentages_and_three_factors_are_long(data: cf.Source) -> None:
    shares = cf.tables.shares("smoker * sex", data, inference="population", privacy=cf.GDP(1.0), **CALL)
    assert _heads(shares)[1:3] == ["female", "95% CI"] and re.search(r"\d\d\.\d%  +\d\d\.\d% to \d\d\.\d%", str(shares))
    assert shares.to_frame()["estimate"].max() <= 1
    long = cf.tables.counts("smoker * sex * region", data, inference="dataset", privacy=cf.GDP(1.0), **CALL)
    assert _heads(long)[:4] == ["smoker", "sex", "region", "records"]


def test_a_table_with_flags_is_long_and_says_what_they_are(data: cf.Source) -> None:
    table = cf.tables.counts("sex * region", data, inference="dataset", privacy=cf.GDP(0.01), **CALL)
    assert _heads(table)[-1] == "flags"
    assert re.search(r"^(Caution|Alarm) +\w", table.summary(), re.MULTILINE)


def test_every_format_has_the_printed_columns(data: cf.Source) -> None:
    table = cf.tables.counts("sex * region", data, inference="dataset", privacy=cf.GDP(0.5), **CALL)
    heads = tuple(_heads(table))
    assert document(table, 0.05).heads == heads
    assert table.to_markdown().splitlines()[2] == f"| {' | '.join(heads)} |"
    page = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table._repr_html_())
    assert tuple(page) == heads


def test_a_logistic_regression_prints_odds_ratios(data: cf.Source) -> None:
    result = cf.logistic_regression("smoker ~ age + sex", data, privacy=cf.GDP(2.0), **CALL)
    assert result.title == "Logistic regression: odds of smoker = yes"
    assert _heads(result) == ["term", "odds ratio", "95% CI", "p", "privacy share"]
    assert "Intercept" not in result.summary() and "sex: female; the ratio of age is per unit" in result.summary()
    log_odds = result.summary(log_odds=True)
    assert "Intercept" in log_odds and "odds ratio" not in log_odds
    frame = result.to_frame()
    assert list(frame.columns[-3:]) == ["odds_ratio", "odds_ratio_ci_low", "odds_ratio_ci_high"]
    np.testing.assert_allclose(frame["odds_ratio"].iloc[1:], np.exp(frame["estimate"].iloc[1:]))
    assert np.isnan(frame.loc["Intercept", "odds_ratio"])


def test_a_test_prints_what_it_compares(data: cf.Source) -> None:
    test = cf.tests.ttest_ind("income ~ sex", data, privacy=cf.GDP(1.0), **CALL)
    lines = test.summary().splitlines()
    assert lines[0] == "Welch t test: mean income by sex"
    assert _heads(test) == ["sex", "n", "mean", "std. err.", "95% CI"]
    assert lines[7].startswith("female - male")
    assert re.fullmatch(r"t = -?\d+\.\d\d, p [<=] [\d.]+ \(null distribution simulated, 1,999 draws\)", lines[9])
    independence = cf.tests.chi2_contingency("smoker * region", data, privacy=cf.GDP(1.0), **CALL)
    assert _heads(independence) == ["region", "n", "no", "yes", "% yes"]
    assert re.search(r"^chi2\(3\) = \d+\.\d\d, p ", independence.summary(), re.MULTILINE)
    ranks = cf.tests.kruskal("income ~ region", data, privacy=cf.GDP(1.0), **CALL)
    assert _heads(ranks) == ["group", "n", "mean rank"] and re.search(r"^F\(3, ", ranks.summary(), re.MULTILINE)


@pytest.mark.usefixtures("declared")
def test_clipping_is_one_line(data: cf.Source) -> None:
    result = cf.linear_regression("income ~ age", data, privacy=cf.GDP(1.0), **CALL)
    assert re.search(r"^Clipped +(\w+, )*\w+: at most \d+\.\d%$", result.summary(verbose=True), re.MULTILINE)


def test_a_smaller_model_has_the_references_of_its_own_factors(data: cf.Source) -> None:
    release = cf.release(cf.regression.SSP("income ~ age + sex + region"), data, cf.GDP(3.0), **CALL)
    assert "Reference      sex: female; region: north" in cf.infer(release).summary()
    assert "Reference      sex: female\n" in cf.infer(release, subset=["age", "sex"]).summary()


def test_a_negative_number_of_records_prints_as_zero() -> None:
    result = build(facts=(("n", "-12"),))
    assert result.summary().splitlines()[1].endswith("n = 0")


def test_a_publication_of_one_analysis_says_so(data: cf.Source) -> None:
    plan = cf.Publication({"persons": cf.tables.Counts("sex", inference="dataset")})
    report = cf.infer(cf.release(plan, data, cf.GDP(1.0), **CALL))
    assert report.summary().startswith("Publication of 1 analysis\n") and "for all 1" not in report.summary()


def test_table_1_writes_all_that_it_prints(data: cf.Source) -> None:
    table = cf.tables.table_one("income + smoker ~ sex", data, inference="population", privacy=cf.GDP(2.0), **CALL)
    assert _heads(table) == ["Total", "female", "male", "std. diff."]
    frame = table.to_frame()
    assert frame.loc["income: mean", ["std_dev", "std_diff"]].notna().all()
    assert {"std_dev", "std_diff", "privacy_share"} <= set(table.to_csv().splitlines()[0].split(","))


def test_a_result_is_an_arrow_stream(data: cf.Source) -> None:
    result = cf.linear_regression("income ~ age", data, privacy=cf.GDP(1.0), **CALL)
    frame = pl.DataFrame(result)
    assert frame["term"].to_list() == ["Intercept", "age"]
    assert frame["estimate"].to_list() == result.params.tolist()


def test_excel_files_hold_the_frame(data: cf.Source, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    import pandas as pd

    result = cf.linear_regression("income ~ age", data, privacy=cf.GDP(1.0), **CALL)
    read = pd.read_excel(result.to_excel(tmp_path / "line.xlsx"))
    np.testing.assert_allclose(read["estimate"], result.params, rtol=1e-12)


def test_without_the_package_excel_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with refuses(PlanError):
        build().to_excel(tmp_path / "table.xlsx")
