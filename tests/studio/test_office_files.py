"""Files as offices have them, in the studio: described in one table, listed with what is wrong with them, looked at before the charge."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

import pandas as pd
import pytest
from tests.studio.served import LEDGER, MEANS, SCHEMA, Visitor, approval, prepared, served, settled, survey

from confide import engine
from confide.core import Release
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.schema import Categorical, Date, Integer, Numeric, Schema
from confide.sources import read
from confide.sources.preflight import HEAD, preflight

GERMAN = "id;Größe;income;sex;born\n" + "".join(
    f"{at};{160 + at % 30};1.{at % 900:03},50;{1 + at % 2};{1 + at % 28:02}.03.1970\n" for at in range(400)
)
FORM = {
    "data": "a.csv", "dataset": "a", "unit": "record", "source": "codebook", "codes": "-99",
    "file_delimiter": ";", "file_decimal": ",", "file_thousands": ".", "file_encoding": "cp1252", "file_not_records": "Summe, Total",
    "dates": "%d.%m.%Y",
    "kind1": "integer", "values1": "100-220",
    "kind2": "numeric", "values2": "0-9000", "codes2": "-",
    "kind3": "categorical", "values3": "1=male, 2=female", "codes3": "9, -9 to -1",
    "kind4": "date", "values4": "1900-01-01 to 2006-12-31", "from4": "adults",
}  # fmt: skip


@pytest.fixture
def visitor(tmp_path):
    with served(tmp_path) as studio:
        yield Visitor(studio).open()


def _hidden(page: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in re.findall(r'name="(column\d+)" value="([^"]*)"', page)}


def test_a_file_of_an_office_is_described_in_one_form(visitor, tmp_path):
    (tmp_path / "a.csv").write_text(GERMAN, encoding="cp1252")
    listed = html.unescape(visitor.get("/").text)
    assert "Cannot be read as it stands" in listed and "Describe a.csv" in listed and "[file]" not in listed
    page = visitor.get("/schema?data=a.csv")
    assert page.status == 422 and "Read the header again" in page.text and "Write the schema" not in page.text
    again = visitor.post("/schema", {"data": "a.csv", "file_encoding": "cp1252", "again": "yes"})
    assert again.status == 200 and "Größe" in again.text and 'name="file_delimiter" value=";"' in again.text
    assert visitor.post("/schema", FORM | _hidden(again.text)).headers["location"] == "/schema/a.schema.toml"
    made = Schema.from_toml(tmp_path / "a.schema.toml")
    layout = {
        "delimiter": ";",
        "encoding": "cp1252",
        "decimal": ",",
        "thousands": ".",
        "not_records": ["Summe", "Total"],
    }
    assert made.file.to_settings() == layout | {"name": "a.csv"}
    known = {"provenance": made["sex"].provenance, "missing": ["-99"]}
    assert made["sex"].provenance.text == "codebook" and made["born"].provenance.text == "adults"
    assert made["Größe"] == Integer(100, 220, **known) and made["income"] == Numeric(0, 9000, **known | {"missing": []})
    codes = ["9", {"from": -9, "to": -1}]
    assert made["sex"] == Categorical(["male", "female"], codes=["1", "2"], **known | {"missing": codes})
    born = made["born"]
    assert isinstance(born, Date) and born.formats == ("%d.%m.%Y",) and "id" not in made
    shown = visitor.get("/schema/a.schema.toml").text
    assert "1900-01-01 to 2006-12-31" in shown and "0 to 9000" in shown
    assert "Cannot be read" not in visitor.get("/").text


def test_its_records_are_released_in_their_layout(visitor, tmp_path):
    """The plan says nothing of the file; what the schema of the folder says of it holds, and is bound by the approval."""
    (tmp_path / "a.csv").write_text(GERMAN, encoding="cp1252")
    assert visitor.post("/schema", FORM).status == 303
    visitor.post("/ledger", LEDGER | {"dataset": "a"})
    page = visitor.post(
        "/ask", MEANS | {"schema": "a.schema.toml", "formula": "income ~ sex", "name": "means"}
    ).headers["location"]
    assert '<option value="a.csv" selected>' in visitor.get(page).text
    form = {"sha256": visitor.studio.folder.request("means").plan.sha256, "data": "a.csv", "ledger": "ledger.db/a"}
    price = visitor.post(f"{page}/approve", form).headers["location"]
    own = visitor.get(f"{price}/preflight")
    assert own.headers["cache-control"] == "no-store" and "400" in own.text and "unread" not in own.text
    schema = tmp_path / "a.schema.toml"
    schema.write_text(schema.read_text().replace('decimal = ","', "").replace('thousands = "."', ""))
    visitor.post(price)
    assert "Released." in settled(visitor, page).text
    means = engine.infer(Release.load(tmp_path / "means.release.json")).to_frame()["estimate"]
    assert all(1_000 < mean < 1_600 for mean in means)  # 1.742,50 read as 1742.5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"values2": "9000-0"}, "column 'income': '9000-0' has its bounds the wrong way round"),
        ({"values3": ""}, "column 'sex': list its levels"),
        ({"values3": "1=male, female"}, "column 'sex': '1=male, female' has codes for some levels alone"),
        ({"values4": ""}, "column 'born': give its first and last day"),
        ({"source": ""}, "column 'sex': say where its bounds or levels are known from"),
        ({"kind1": ""}, "column 'Größe': choose its kind"),
        ({"kind1": "<b>"}, "column 'Größe': choose one of the kinds"),
        ({"codes3": "1"}, "column 'sex'"),
        ({"codes": ", ".join(map(str, range(1_001)))}, "1,000"),
        ({"missing1": "many"}, "column 'Größe': what a missing value counts as must be a number"),
        ({"unit": ""}, "say who is protected"),
        ({"file_thousands": ","}, "one mark cannot be two things"),
        ({"file_skip": "many"}, "lines above the header must be a number"),
        ({"file_skip": "1"}, "may be a record"),
        ({"file_encoding": "<script>alert(1)</script>"}, "encoding of [file] must be"),
        ({"file_delimiter": "ab"}, "cannot separate fields"),
    ],
)  # fmt: skip
def test_what_is_wrong_names_the_column_and_stays(visitor, tmp_path, changed, told):
    (tmp_path / "a.csv").write_text(GERMAN, encoding="cp1252")
    answer = visitor.post("/schema", FORM | changed)
    text = html.unescape(answer.text)
    assert answer.status == 422 and told in text and "<script>" not in answer.text
    assert not (tmp_path / "a.schema.toml").exists()
    (name, value), *_ = changed.items()
    if value and value[0] != "<" and not name.startswith("kind"):
        assert f'value="{html.escape(value)}"' in answer.text or f'value="{html.escape(value)}" selected' in answer.text
    assert "31.5" not in text and "1.031" not in text  # of a record


def test_numbers_may_have_no_bounds(visitor, tmp_path):
    survey(tmp_path)
    form = SCHEMA | {"values0": "", "from0": "", "values2": "", "from2": ""}
    assert visitor.post("/schema", form).status == 303
    made = Schema.from_toml(tmp_path / "survey.schema.toml")
    assert not any(made["age"].declared) and not any(made["income"].declared) and type(made["age"]) is Numeric
    assert "each release finds its own" in visitor.get("/schema/survey.schema.toml").text


def test_rows_go_with_their_names(visitor, tmp_path):
    """What was typed for a column stays with it where the file, or what is read as its header, changed meanwhile."""
    survey(tmp_path)
    named = _hidden(visitor.get("/schema?data=survey.csv").text)
    frame = pd.read_csv(tmp_path / "survey.csv")
    frame.assign(new=1)[["income", "new", "visits", "age", "works", "region"]].to_csv(
        tmp_path / "survey.csv", index=False
    )
    assert visitor.post("/schema", SCHEMA | named).status == 303
    made = Schema.from_toml(tmp_path / "survey.schema.toml")
    assert made["income"].high == 60_000 and made["age"].low == 18 and "new" not in made


def test_ages_follow_from_a_date_that_is_shown_by_an_example(visitor, tmp_path):
    (tmp_path / "a.csv").write_text(GERMAN, encoding="cp1252")
    form = FORM | {"dates": "31.12.1950", "values4": "1.1.1900 to 31.12.2006"}
    lines = "age = years_between(born, '2024-07-01')\n\nyoung = { if = \"age < 30\" }\n`Größe in m` = `Größe` / 100"
    assert visitor.post("/schema", form | {"derived": lines}).status == 303
    made = Schema.from_toml(tmp_path / "a.schema.toml")
    assert list(made.derive) == ["age", "young", "Größe in m"] and made["age"].high == 124
    assert made["born"].formats == ("%d.%m.%Y",) and made["born"].said(made["born"].low) == "1900-01-01"
    (tmp_path / "a.schema.toml").unlink()
    wrong = {
        "age": "does not define a column",
        "age = mean(born)": "is refused",
        "age = { if = ": "does not define a column",
    }
    for line, told in wrong.items():
        answer = visitor.post("/schema", form | {"derived": line})
        text = html.unescape(answer.text)
        assert answer.status == 422 and told in text and f">{line}</textarea>" in text, line
    answer = visitor.post("/schema", form | {"dates": "TT.MM.JJJJ"})
    assert "column 'born': 'TT.MM.JJJJ' does not show" in html.unescape(answer.text) and "format=" not in answer.text


def test_the_layout_stands_above_the_table_and_enter_writes_the_schema(visitor, tmp_path):
    (tmp_path / "a.csv").write_text(GERMAN.replace("ö", "oe").replace("ß", "ss"))
    page = visitor.get("/schema?data=a.csv").text
    assert page.index("<summary>How the file is laid out") < page.index('<table class="columns">')
    # Enter presses the first button of a form
    assert re.search("<button[^>]*>([^<]*)", page)[1] == "Write the schema"


def test_a_title_has_no_range_of_test_data(visitor, tmp_path):
    survey(tmp_path)
    visitor.post("/schema", SCHEMA | {"values2": "", "from2": ""})
    visitor.post("/ledger", LEDGER)
    page = visitor.post("/ask", MEANS).headers["location"]
    assert "<h1>Mean income by region</h1>" in visitor.get(page).text
    assert "<h1>Release: Mean income by region</h1>" in visitor.get(approval(visitor, page)).text


def test_value_labels_are_confirmed(visitor, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"sex": [1.0, 2.0, 9.0], "age": [31.0, 57.0, 44.0]})
    facts = {
        "variable_value_labels": {"sex": {1: "male", 2: "female"}},
        "column_labels": ["<b>Sex</b> of person", "Age"],
    }
    pyreadstat.write_sav(frame, tmp_path / "a.sav", missing_ranges={"sex": [9]}, **facts)
    page = visitor.get("/schema?data=a.sav").text
    assert 'value="1=male, 2=female"' in page and 'name="codes0" value="9"' in page and "&lt;b&gt;Sex" in page
    form = {
        "data": "a.sav",
        "dataset": "a",
        "unit": "record",
        "source": "codebook",
        "kind0": "categorical",
        "kind1": "numeric",
    }
    answer = visitor.post("/schema", form)
    assert answer.status == 422 and "tick the box" in answer.text
    assert visitor.post("/schema", form | {"codebook": "yes"}).status == 303
    made = Schema.from_toml(tmp_path / "a.schema.toml")
    assert made["sex"].levels == ("male", "female") and made.file.name == "a.sav"


def test_a_workbook_of_several_sheets(visitor, tmp_path, tmp_path_factory):
    pytest.importorskip("python_calamine"), pytest.importorskip("openpyxl")
    place = tmp_path_factory.mktemp("made") / "a.xlsx"
    with pd.ExcelWriter(place) as book:
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="<i>notes", index=False)
        pd.DataFrame({"age": [31, 57]}).to_excel(book, sheet_name="Daten", index=False)
    answer = visitor.send("a.xlsx", place.read_bytes())
    assert answer.headers["location"] == "/schema?data=a.xlsx"
    page = visitor.get("/schema?data=a.xlsx").text
    assert "several sheets" in page and "Daten" in page and "<i>" not in page
    assert "several sheets" in visitor.get("/").text
    form = {"data": "a.xlsx", "dataset": "a", "unit": "record", "kind0": "numeric"}
    assert "age" in visitor.post("/schema", form | {"file_sheet": "2", "again": "yes"}).text
    assert visitor.post("/schema", form | {"file_sheet": "Daten"}).status == 303
    assert Schema.from_toml(tmp_path / "a.schema.toml").file.sheet == "Daten"
    assert visitor.studio.folder.records_of_schema(Schema.from_toml(tmp_path / "a.schema.toml")) == "a.xlsx"
    assert "several sheets" not in visitor.get("/").text


def test_every_file_that_cannot_be_read_is_listed_with_why(visitor, tmp_path):
    hostile = {"a.xlsx": b"PK\3\4 no", "b.sav": b"$FL2", "c.dta": b"", "d.parquet": b"PAR1", "e.csv": b"31,57\n"}
    hostile |= {"f.ods": b"", "g.xpt": b"x"}
    for name, content in hostile.items():
        (tmp_path / name).write_bytes(content)
    page = visitor.get("/").text
    assert (
        page.count("Cannot be read as it stands") == len(hostile)
        and "57" not in page.split("</table>")[0].split("e.csv")[1][:400]
    )
    for name in hostile:
        answer = visitor.get(f"/schema?data={quote(name)}")
        assert answer.status == 422 and "Read the header again" in answer.text, name
        assert visitor.send(f"x{name}", hostile[name]).status == 422
    assert str(tmp_path) not in page


def test_layouts_that_contradict_each_other_are_chosen_by_name(visitor, tmp_path):
    survey(tmp_path)
    page = prepared(visitor)
    text = (tmp_path / "survey.csv").read_text()
    for name in ("b.csv", "c.csv"):
        (tmp_path / name).write_text(text.replace(",", ";"))
    own = (tmp_path / "survey.schema.toml").read_text()
    (tmp_path / "b.schema.toml").write_text(own.replace('name = "survey.csv"', 'name = "b.csv"\ndelimiter = ";"'))
    form = {"sha256": visitor.studio.folder.request("means").plan.sha256, "ledger": "ledger.db/survey"}
    for data, status in (("b.csv", 303), ("survey.csv", 303), ("c.csv", 422)):
        answer = visitor.post(f"{page}/approve", form | {"data": data})
        assert answer.status == status, data
    assert "say differently how c.csv is laid out" in html.unescape(answer.text)


def test_the_pane_alone_has_counts(visitor, tmp_path, capfd):
    """What was lost on reading is told where it is asked for, in the words of the command line; on no page, in no file, in no log."""
    survey(tmp_path)
    frame = pd.read_csv(tmp_path / "survey.csv", dtype=str)
    frame.loc[:136, "income"] = "1.742,81"
    frame.to_csv(tmp_path / "survey.csv", index=False)
    page = prepared(visitor)
    price = approval(visitor, page)
    assert Ledger.open(tmp_path / "ledger.db").show().used == 0
    pages = [visitor.get(price).text]
    pane = visitor.get(f"{price}/preflight")
    assert (
        pane.status == 200
        and pane.headers["content-type"].startswith("text/plain")
        and pane.headers["cache-control"] == "no-store"
    )
    assert HEAD[:30] in pane.text and "137" in pane.text and "9.9,9" in pane.text
    schema = Schema.from_toml(tmp_path / "survey.schema.toml")
    assert pane.text == str(preflight(read(tmp_path / "survey.csv", schema), ["income", "region"]))
    visitor.post(price)
    pages += [
        settled(visitor, page).text,
        visitor.get("/").text,
        visitor.get(price).text,
        visitor.get("/ledger/ledger.db").text,
    ]
    files = [one.read_bytes().decode("latin-1") for one in tmp_path.iterdir() if one.name != "survey.csv"]
    for text in (*pages, *files, *capfd.readouterr(), repr(vars(visitor.studio.desk))):
        assert "Preflight:" not in text and "9.9,9" not in text and "1.742" not in text and "of 600" not in text


def test_the_pane_fails_without_words_of_records(visitor, tmp_path, monkeypatch):
    survey(tmp_path)
    price = approval(visitor, prepared(visitor))
    assert visitor.get(f"/approve/{'a' * 22}/preflight").status == 422
    assert Visitor(visitor.studio).get(f"{price}/preflight").status == 403

    def broken(*_: object) -> None:
        raise ValueError("record 31 holds 1.742,81")

    monkeypatch.setattr("confide.studio.approvals.preflight", broken)
    answer = visitor.get(f"{price}/preflight")
    assert answer.status == 500 and "31" not in answer.text
    survey(tmp_path, 700)
    assert "changed after the approval" in visitor.get(f"{price}/preflight").text


def test_ranges_are_found_privately_and_charged_once(visitor, tmp_path):
    survey(tmp_path, 3_000)
    form = SCHEMA | {"values0": "", "from0": "", "values2": "", "from2": "", "codes2": "-99"}
    page = visitor.post("/schema", form).headers["location"]
    assert "Find the ranges privately" not in visitor.get(page).text  # no budget yet
    visitor.post("/ledger", LEDGER)
    assert "Find the ranges privately" in visitor.get(page).text
    asked = {"find0": "income", "data": "survey.csv", "account": "ledger.db/survey", "mu": "0.5"}
    wrong = [
        {"find0": "works"},
        {"find0": "<b>"},
        {"data": ""},
        {"account": ""},
        {"mu": "x"},
        {"mu": "9"},
        {"data": "../x.csv"},
    ]
    for one in wrong:
        assert visitor.post(f"{page}/ranges", asked | one).status == 422, one
    assert (
        visitor.post(f"{page}/ranges", {"data": "survey.csv", "account": "ledger.db/survey", "mu": "1"}).status == 422
    )
    shown = visitor.post(f"{page}/ranges", asked).text
    assert "50.0%" in shown or "of the budget" in shown
    action = re.search(r'action="(/ranges/[^"]+)"', shown)[1]
    charges = lambda: sum(row.kind == "charge" for row in Ledger.open(tmp_path / "ledger.db").show().rows)  # noqa: E731
    assert charges() == 0
    assert (
        visitor.post(action, csrf="guessed").status == 403
        and visitor.get(action).status in (404, 405)
        and charges() == 0
    )
    for _ in range(2):
        assert visitor.post(action).headers["location"] == "/schema/survey-ranges.schema.toml"
    assert charges() == 1
    made, done = (
        Schema.from_toml(tmp_path / "survey-ranges.schema.toml"),
        Release.load(tmp_path / "survey-ranges.release.json"),
    )
    assert all(made["income"].declared) and not any(made["age"].declared) and made["income"].missing == ("-99",)
    assert made["income"].provenance.kind == "private" and done.sha256 in made["income"].provenance.text
    assert made.file.name == "survey.csv" and made.dataset == "survey"
    assert visitor.post(f"{page}/ranges", asked).status == 422  # written already
    assert visitor.get("/").status == 200 and visitor.get("/release/survey-ranges").status == 200


def test_a_search_for_ranges_protects_as_many_rows_as_the_schema_says(visitor, tmp_path):
    survey(tmp_path, 3_000)
    known = Schema({"income": Numeric()}, dataset="survey", rows_per_unit=5, file={"name": "survey.csv"})
    (tmp_path / "p.schema.toml").write_text(known.to_toml())
    Ledger.create(tmp_path / "one.db", dataset="survey", budget=GDP(1.0)).close()
    Ledger.create(tmp_path / "five.db", dataset="survey", budget=GDP(1.0), rows_per_unit=5).close()
    asked = {"find0": "income", "data": "survey.csv", "mu": "0.5"}
    page = "/schema/p.schema.toml/ranges"
    refused = visitor.post(page, asked | {"account": "one.db/survey"})
    assert refused.status == 422 and "at most 5" in refused.text
    shown = visitor.post(page, asked | {"account": "five.db/survey"}).text
    visitor.post(re.search(r'action="(/ranges/[^"]+)"', shown)[1])
    assert Release.load(tmp_path / "p-ranges.release.json").plan.schema["rows_per_unit"] == 5
    assert Ledger.open(tmp_path / "one.db").show().used == 0


def test_ranges_of_records_that_changed_are_not_found(visitor, tmp_path):
    survey(tmp_path)
    page = visitor.post("/schema", SCHEMA | {"values2": "", "from2": ""}).headers["location"]
    visitor.post("/ledger", LEDGER)
    asked = {"find0": "income", "data": "survey.csv", "account": "ledger.db/survey", "mu": "0.5"}
    action = re.search(r'action="(/ranges/[^"]+)"', visitor.post(f"{page}/ranges", asked).text)[1]
    survey(tmp_path, 700)
    assert "changed meanwhile" in visitor.post(action).text
    assert visitor.post(action).status == 422 and visitor.post(f"/ranges/{'a' * 22}").status == 422
    assert (
        Ledger.open(tmp_path / "ledger.db").show().used == 0 and not (tmp_path / "survey-ranges.schema.toml").exists()
    )
