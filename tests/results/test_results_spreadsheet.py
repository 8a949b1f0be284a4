"""CSV that a spreadsheet shows and does not run: every cell of text is checked as it stands in the file, and reads back as it was."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import confide as cf
from confide.methods.synthesis.files import load
from confide.results.pages.export import csv_text, plain, shielded
from confide.synthesis import SyntheticTable

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "=cmd|'/c calc'!A1",
    "'=1",
    "''=1",
    "a;=1",
    "a\n=1",
    "-9",
    "+.5",
]
HARMLESS = ["-9", "+.5", "-1e5", "a-b", "a=1", "'tis", "", "x", "a;b"]


def runs(cell: str) -> bool:
    """Whether a spreadsheet takes a cell, or what follows a separator in it, for a formula that is not a plain number."""
    parts = [part for line in cell.splitlines() or [""] for part in line.split(";")] + [cell]
    return any(part[:1] in tuple("=+-@\t\r") and part[:1] != "" and not _number(part) for part in parts)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text and text.isascii() and "_" not in text and text.lstrip("+-")[:1] in tuple("0123456789.")


@given(st.text(alphabet="='+-@\t\r\n;a1.", max_size=8) | st.text(max_size=12))
def test_no_cell_runs_and_each_reads_back(text: str) -> None:
    assert not runs(shielded(text))
    assert plain(shielded(text)) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert shielded(text) == text == plain(text)


def test_numbers_stay_numbers_and_labels_are_shielded_everywhere() -> None:
    frame = pd.DataFrame({"=a": [-1.5, 2.0], "-b": [-3, 4], "text": pd.Categorical(["=x", "valid"])}, index=["@i", "j"])
    rows = list(csv.reader(io.StringIO(csv_text(frame))))
    assert rows == [["", "'=a", "'-b", "text"], ["'@i", "-1.5", "-3", "'=x"], ["j", "2.0", "4", "valid"]]
    assert frame.columns[0] == "=a" and frame.index[0] == "@i", "the frame itself is as it was"


@pytest.fixture(scope="module")
def hostile() -> tuple[cf.Schema, pd.DataFrame]:
    levels = [text for text in FORMULAS if text.strip()]
    schema = cf.Schema(
        {"=a": cf.Numeric(-2, 2), "@r": cf.Categorical(levels), "y": cf.Numeric(-9, 9)},
    )
    draw = np.random.default_rng(1)
    a, r = draw.uniform(-2, 2, 4_000), draw.choice(levels, 4_000)
    return schema, pd.DataFrame({"=a": a, "@r": r, "y": 1 + a + draw.normal(0, 0.5, 4_000)})


@pytest.mark.parametrize("generator", ["calibrated", "binagg"])
def test_a_synthetic_csv_runs_nothing_and_refits(hostile, tmp_path, generator: str) -> None:
    schema, frame = hostile
    method = SyntheticTable("y ~ `=a` + `@r`", generator=generator)
    done = cf.release(method, cf.read(frame, schema), cf.GDP(8.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    made = method.build(done)
    (path,) = made.save(tmp_path / "table.csv")
    rows = list(csv.reader(path.open(newline="", encoding="utf-8")))
    assert rows[0] == ["'=a", "'@r", "y"] and not any(runs(cell) for row in rows for cell in row)
    assert any(row[1] == "-9" for row in rows) and any(row[0].startswith("-") for row in rows[1:]), (
        "numbers stay numbers"
    )
    assert load(path).frame["@r"].tolist() == [str(label) for label in made.frame["@r"]]
    if generator == "calibrated":
        assert cf.synthesis.refit(path).release_sha256 == done.sha256


def test_full_width_signs_and_marks_of_no_width_begin_a_formula_too() -> None:
    for text in ("＝1+1", "＋1", "－1+1", "＠SUM(1)", "\ufeff=1", "\xa0=1", " =1", "\u200b=1", "\x00=1"):
        assert shielded(text) != text and plain(shielded(text)) == text
