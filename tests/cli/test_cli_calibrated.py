"""`confide infer --poststratify --calibrate`: the numbers of the result's own methods, at public totals from files.

Equality with R's `postStratify` and `calibrate` stands in tests/methods/tables/survey/test_against_r.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import good, run

import confide as cf
from confide.noise import SimulatedNoise

COLUMNS = {
    "w": cf.Numeric(0, 4),
    "sex": cf.Categorical(["f", "m"]),
    "h": cf.Categorical(["1", "2"]),
    "x": cf.Numeric(0, 10),
    "y": cf.Numeric(0, 100),
}
SCHEMA = cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w"))
SEX = "sex,persons\nf,51000\nm,49000\n"
# labels that look like numbers stay labels
H = "1,60000\n2,40000\n"
MARGINS = "column,level,persons\nsex,f,51000\nsex,m,49000\nh,1,60000\nh,2,40000\n"
ASKED = {
    "means": cf.tables.Means("x + y ~ sex + h", inference="population"),
    "totals": cf.tables.Totals("y ~ sex", inference="population"),
    "line": cf.regression.LeastSquares("y ~ sex + h"),
    "both": cf.Publication(
        {
            "levels": cf.tables.Means("y ~ sex", inference="population"),
            "line": cf.regression.LeastSquares("y ~ sex + h"),
            "odds": cf.regression.Logistic("sex ~ x"),
        }
    ),
}


def records(n: int) -> pd.DataFrame:
    g = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "w": g.uniform(1, 4, n),
            "sex": g.choice(["f", "m"], n),
            "h": g.choice(["1", "2"], n),
            "x": g.uniform(0, 10, n),
        }
    )
    frame["y"] = np.clip(30 + 8 * (frame.sex == "m") + 5 * (frame.h == "2") + g.normal(0, 10, n), 0, 100)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("calibrated")
    data = cf.read(records(4_000), SCHEMA)
    for name, method in ASKED.items():
        cf.release(method, data, cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1)).save(made / f"{name}.json")
    few = cf.release(
        cf.tables.Means("y ~ sex", inference="population"),
        cf.read(records(60), SCHEMA),
        cf.GDP(0.2),
        ledger=None,
        noise=SimulatedNoise(1),
    )
    few.save(made / "few.json")
    for name, text in {"sex": SEX, "h": H, "margins": MARGINS}.items():
        (made / f"{name}.csv").write_text(text)
    return made


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def own(name: str) -> cf.Result:
    return cf.infer(cf.Release.load(f"{name}.json"))


def test_a_table_is_post_stratified_as_in_python() -> None:
    call = ("infer", "means.json", "--poststratify", "sex=sex.csv", "--poststratify", "h=h.csv", "--alpha", "0.1")
    facts = good(*call, "--json").json["poststratified"]
    means, numbers = own("means"), {"sex": {"f": 51_000, "m": 49_000}, "h": {"1": 60_000, "2": 40_000}}
    expected = [
        {"name": str(frame.index[0]), **frame.iloc[0].to_dict()}
        for over, levels in numbers.items()
        for frame in (means.poststratify(levels, over, of=of, alpha=0.1) for of in ("x", "y"))
    ]
    assert facts == expected
    assert [one["name"] for one in facts] == [
        f"{of}, post-stratified by {over}" for over in ("sex", "h") for of in "xy"
    ]
    out = good(*call).out
    assert "Post-stratified: all persons" in out and "sex.csv, h.csv, read as public" in " ".join(out.split())
    # to two digits of its standard error
    assert f"{facts[1]['estimate']:,.2f}" in out and 0.1 < facts[1]["std_err"] < 1
    assert "Post-stratified" not in good("infer", "means.json").out


def test_a_line_is_calibrated_as_in_python() -> None:
    facts = good("infer", "line.json", "--calibrate", "margins.csv", "--json").json["calibrated"]
    margins = {"sex": {"f": 51_000, "m": 49_000}, "h": {"1": 60_000, "2": 40_000}}
    frame = own("line").calibrate(margins)
    assert facts == [{"name": name, **frame.loc[name].to_dict()} for name in ("mean", "total")]
    out = good("infer", "line.json", "--calibrate", "margins.csv").out
    assert "Calibrated: y, at public numbers" in out and "margins.csv, read as public" in " ".join(out.split())
    total = frame.loc["total"]
    assert f"{total['estimate']:,.0f}" in out and total["estimate"] > 1e6


def test_what_is_moved_stands_in_the_files(tmp_path: Path) -> None:
    """Beside the other rows, under labels that say what it is moved to; without the options files are as ever."""
    tables = ("infer", "means.json", "--poststratify", "sex=sex.csv", "--poststratify", "h=h.csv", "--alpha", "0.1")
    line = ("infer", "line.json", "--calibrate", "margins.csv", "--alpha", "0.1")
    for call, name, labels in (
        (tables, "poststratified", [f"{of}, post-stratified by {over}" for over in ("sex", "h") for of in "xy"]),
        (line, "calibrated", [f"{row} of y, calibrated to sex, h" for row in ("mean", "total")]),
    ):
        facts = good(*call, "--json").json[name]
        plain, moved = tmp_path / f"{name}-plain.csv", tmp_path / f"{name}.csv"
        good(*call[:2], "--alpha", "0.1", "--csv", str(plain))
        good(*call, "--csv", str(moved))
        text = moved.read_text()
        assert text.startswith(plain.read_text())
        frame = pd.read_csv(moved, index_col=0).iloc[-len(labels) :]
        assert list(frame.index) == labels
        for own, (_, row) in zip(facts, frame.iterrows(), strict=True):
            keys = ["estimate", "std_err", "ci_low", "ci_high"]
            assert [row[key] for key in keys] == [own[key] for key in keys]
            assert pd.isna(row["privacy_share"])
        for ending in ("md", "tex", "html", "docx"):
            path = tmp_path / f"{name}.{ending}"
            if ending == "docx":
                docx = pytest.importorskip("docx")
                good(*call, "--report", str(path))
                own_table = docx.Document(str(path)).tables[-1]
                cells = [[cell.text for cell in row.cells] for row in own_table.rows]
                assert cells[0][:3] == ["name", "estimate", "std_err"] and [row[0] for row in cells[1:]] == labels
                continue
            good(*call, "--report", str(path))
            said = path.read_text()
            assert all(label in said for label in labels) and "read as public and exact" in said
            assert said.index(labels[0]) > said.index("privacy share")
            # the further table says which release it is of, as the first does
            assert said.count(cf.Release.load(call[1]).sha256) == 2
            assert not good(*call[:2], "--report", str(path), "--force").err and labels[0] not in path.read_text()


def test_one_question_of_a_publication() -> None:
    found = good("infer", "both.json", "--analysis", "levels", "--poststratify", "sex=sex.csv", "--json").json
    expected = own("both")["levels"].poststratify({"f": 51, "m": 49}, "sex").iloc[0]
    assert found["poststratified"][0]["estimate"] == pytest.approx(expected["estimate"], rel=1e-12)
    for option, file, question in (("--poststratify", "sex=sex.csv", "levels"), ("--calibrate", "margins.csv", "line")):
        done = run("infer", "both.json", option, file)
        assert done.code == 3 and f"ask one analysis: --analysis {question}\n" in done.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("means.json", "--poststratify", "sex.csv"), 2, "COLUMN=TOTALS.csv, got 'sex.csv'.\n  Try      for instance"),
        (("means.json", "--poststratify", "=sex.csv"), 2, "COLUMN=TOTALS.csv"),
        (
            ("means.json", "--poststratify", "sex=gone.csv"),
            2,
            "gone.csv is no file.\n  Try      give a CSV file with a level and",
        ),
        (
            ("line.json", "--calibrate", "gone.csv"),
            2,
            "gone.csv is no file.\n  Try      give a CSV file with a column, a level and",
        ),
        (("means.json", "--poststratify", "age=sex.csv"), 3, "'age' is not an attribute of this table; it has: sex, h"),
        (
            ("means.json", "--poststratify", "h=sex.csv"),
            3,
            "name its levels, 1, 2, each once, got f, m.\n  Try      --post",
        ),
        (
            ("means.json", "--poststratify", "sex=margins.csv"),
            3,
            "two columns, level and number.\n  Try      --poststratify",
        ),
        (
            ("line.json", "--calibrate", "sex.csv"),
            3,
            "column, level and number.\n  Try      --calibrate margins.csv; as a CSV",
        ),
        (
            ("totals.json", "--poststratify", "sex=sex.csv"),
            3,
            "means are post-stratified, got totals.\n  Try      plan --method means",
        ),
        (
            ("line.json", "--poststratify", "sex=sex.csv"),
            3,
            "tables of means under a survey's design, and this release",
        ),
        (("means.json", "--calibrate", "margins.csv"), 3, "least-squares lines under a survey's design, and this"),
        (("means.json", "--poststratify", "sex=sex.csv", "--csv", "sex.csv", "--force"), 2, "a file of its own"),
    ],
)
def test_what_cannot_be_moved_is_said(words: tuple[str, ...], code: int, told: str) -> None:
    done = run("infer", *words)
    assert done.code == code and told in done.err, done.err
    # refused before anything is printed
    assert done.out == ""
    assert "poststratify(" not in done.err and "calibrate(" not in done.err and "cf." not in done.err
    assert Path("sex.csv").read_text() == SEX


def test_levels_that_the_table_does_not_tell_are_not_moved() -> None:
    assert own("few").status != "valid"
    done = run("infer", "few.json", "--poststratify", "sex=sex.csv")
    assert done.code not in (0, 2) and "[no_result, exit 3]" in done.err and "Post-stratified" not in done.out
    # the table itself is shown all the same
    assert "Means of y by sex" in done.out
