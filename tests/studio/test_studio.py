"""The studio from a file of records to a report: what each page shows, and that one approval is one charge."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from urllib.parse import urlencode

import pandas as pd
import pytest
from tests.studio.served import LEDGER, MEANS, SCHEMA, Visitor, approval, prepared, served, settled, survey

from confide import engine
from confide.ask.menu import questions
from confide.core import Release
from confide.ledger import Ledger
from confide.schema import Categorical, Numeric, Schema, Unit
from confide.studio.folder import Folder


@pytest.fixture
def visitor(tmp_path):
    survey(tmp_path)
    with served(tmp_path) as studio:
        yield Visitor(studio).open()


def _charges(folder: Path) -> int:
    return sum(row.kind == "charge" for row in Ledger.open(folder / "ledger.db").show().rows)


def test_from_a_file_to_a_report(visitor, tmp_path):
    assert "Describe survey.csv" in visitor.get("/").text
    assert "income" in visitor.get("/schema?data=survey.csv").text
    page = prepared(visitor)
    asked = visitor.get(page).text
    assert "Waiting for the steward" in asked and "expected std. err." in asked
    price = approval(visitor, page)
    assert "mu = 0.866025" in visitor.get(price).text and _charges(tmp_path) == 0
    assert visitor.post(price).headers["location"] == page
    assert "Released." in settled(visitor, page).text
    done = Release.load(tmp_path / "means.release.json")
    assert Ledger.open(tmp_path / "ledger.db").find(done.sha256) is not None
    report = visitor.get("/release/means")
    assert "income" in report.text and report.headers["content-security-policy"].startswith("sandbox;")
    assert Release.from_json(visitor.get("/release/means/file").text) == done
    assert "mu = 0.866025" in visitor.get("/ledger/ledger.db").text
    assert "released" in visitor.get("/").text


def test_clicks_reloads_and_tabs_are_one_charge(visitor, tmp_path):
    page = prepared(visitor)
    first, second = approval(visitor, page), approval(visitor, page)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(visitor.post, [first, second] * 4))
    assert {one.headers["location"] for one in answers} == {page}
    settled(visitor, page)
    assert visitor.post(first).headers["location"] == page
    assert "This approval was used" in visitor.get(second).text
    assert _charges(tmp_path) == 1


def test_two_servers_of_one_folder_are_one_charge(visitor, tmp_path):
    page = prepared(visitor)
    with served(tmp_path) as other:
        also = Visitor(other).open()
        mine, theirs = approval(visitor, page), approval(also, page)
        visitor.post(mine), also.post(theirs)
        settled(visitor, page)
    assert _charges(tmp_path) == 1


def test_a_server_that_died_is_told_by_the_ledger(visitor, tmp_path, monkeypatch):
    page = prepared(visitor)

    monkeypatch.setattr(Folder, "keep", lambda *_: sys.exit())
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    visitor.post(approval(visitor, page))
    with served(tmp_path) as later:
        again = Visitor(later).open()
        text = settled(again, page).text
        assert "charged as entry 2" in text and "the charge stays" in text
        assert again.post(f"{page}/again").status == 303
        assert "Waiting for the steward" in again.get(page).text
    assert _charges(tmp_path) == 1


@pytest.mark.parametrize("kept", [True, False])
def test_a_release_of_an_enforced_unit_is_known_again(visitor, tmp_path, monkeypatch, kept):
    """Its plan states the ledger's key beside what was asked for: the page must not say that nothing was charged."""
    records = pd.read_csv(tmp_path / "survey.csv")
    records.assign(person=[f"p{i // 2}" for i in range(len(records))]).to_csv(tmp_path / "survey.csv", index=False)
    assert visitor.post("/schema", SCHEMA | {"unit": "person"}).status == 303
    assert visitor.post("/ledger", LEDGER | {"unit": "person"}).status == 303
    page = visitor.post("/ask", MEANS | {"name": "means"}).headers["location"]
    if not kept:
        monkeypatch.setattr(Folder, "keep", lambda *_: sys.exit())
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
    visitor.post(approval(visitor, page))
    text = settled(visitor, page).text
    assert _charges(tmp_path) == 1 and "nothing was charged" not in text
    assert ("Released." if kept else "charged as entry 2") in text


def test_an_approval_is_good_for_one_release(visitor, tmp_path, monkeypatch):
    """What stopped and is thought of again needs a new approval: the old page's form, sent once more, charges nothing."""
    page = prepared(visitor)

    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(Folder, "keep", full)
    old = approval(visitor, page)
    visitor.post(old)
    settled(visitor, page)
    assert visitor.post(f"{page}/again").status == 303
    assert visitor.post(old).headers["location"] == page
    settled(visitor, page)
    assert Folder.at(tmp_path).decision("means") is None
    assert _charges(tmp_path) == 1


def test_a_server_that_died_before_the_charge(visitor, tmp_path):
    page = prepared(visitor)
    own = {
        "decision": "approved",
        "plan_sha256": "0" * 64,
        "data": "survey.csv",
        "ledger": "ledger.db",
        "dataset": "survey",
    }
    Folder.at(tmp_path).decide("means", own)
    assert "nothing was charged" in visitor.get(page).text


def test_a_full_disk_loses_no_release(visitor, tmp_path, monkeypatch):
    page = prepared(visitor)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Folder, "keep", full)
    visitor.post(approval(visitor, page))
    assert "Take the release now" in settled(visitor, page).text
    assert engine.infer(Release.from_json(visitor.get("/release/means/file").text)).status == "valid"


def test_a_refusal_by_the_ledger_charges_nothing(visitor, tmp_path):
    prepared(visitor)
    page = visitor.post("/ask", MEANS | {"mu": "3", "name": "dear"}).headers["location"]
    sha256 = visitor.studio.folder.request("dear").plan.sha256
    answer = visitor.post(f"{page}/approve", {"sha256": sha256, "data": "survey.csv", "ledger": "ledger.db/survey"})
    assert answer.status == 422 and "mu" in answer.text and _charges(tmp_path) == 0
    for text in (answer.text, visitor.get(page).text):
        assert "Allowed: mu up to 1" in text and "Nothing was charged." in text
        assert "GDP(" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL), "a page has forms, no calls"
    assert visitor.post(f"{page}/refuse", {"reason": ""}).status == 422
    visitor.post(f"{page}/refuse", {"reason": "too dear"})
    assert "Refused: too dear" in visitor.get(page).text


def test_a_request_that_changed_after_the_approval(visitor, tmp_path):
    page = prepared(visitor)
    price = approval(visitor, page)
    visitor.post("/ask", MEANS | {"mu": "0.9", "name": "other"})
    (tmp_path / "means.request.json").write_text((tmp_path / "other.request.json").read_text())
    answer = visitor.post(price)
    assert answer.status == 422 and "changed" in answer.text and _charges(tmp_path) == 0


def test_records_that_changed_after_the_approval(visitor, tmp_path):
    page = prepared(visitor)
    price = approval(visitor, page)
    survey(tmp_path, 700)
    answer = visitor.post(price)
    assert answer.status == 422 and "changed after the approval" in answer.text and _charges(tmp_path) == 0


def test_a_release_that_somebody_put_there_is_not_the_requests(visitor, tmp_path):
    page = prepared(visitor)
    visitor.post(approval(visitor, page))
    settled(visitor, page)
    other = visitor.post("/ask", MEANS | {"name": "other"}).headers["location"]
    (tmp_path / "other.release.json").write_text((tmp_path / "means.release.json").read_text())
    assert "Waiting for the steward" in visitor.get(other).text
    form = {
        "sha256": visitor.studio.folder.request("other").plan.sha256,
        "data": "survey.csv",
        "ledger": "ledger.db/survey",
    }
    answer = visitor.post(f"{other}/approve", form)
    assert answer.status == 422 and "is there already" in answer.text and _charges(tmp_path) == 1


@pytest.mark.parametrize("what", ["release", "part"])
def test_a_place_that_was_taken_after_the_approval_costs_nothing(visitor, tmp_path, what):
    page = prepared(visitor)
    price = approval(visitor, page)
    if what == "release":
        (tmp_path / "means.release.json").write_text("{}")
    else:
        (tmp_path / ".means.release.part").mkdir()
    answer = visitor.post(price)
    assert answer.status == 422 and _charges(tmp_path) == 0
    assert Folder.at(tmp_path).decision("means") is None
    assert visitor.get(page).status == 200


def test_a_file_system_without_links_keeps_the_release(visitor, tmp_path, monkeypatch):
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    page = prepared(visitor)
    monkeypatch.setattr(os, "link", refused)
    visitor.post(approval(visitor, page))
    assert "Released." in settled(visitor, page).text
    done = Release.load(tmp_path / "means.release.json")
    assert Ledger.open(tmp_path / "ledger.db").find(done.sha256) is not None
    assert not list(tmp_path.glob(".*part"))


def _chosen(page: str, name: str) -> list[str]:
    """What a field of choices has chosen, as a browser does: what is marked, else the first."""
    field = page.split(f'name="{name}" required>')[1].split("</select>")[0]
    options = re.findall(r'<option(?: value="([^"]*)")?( selected)?>([^<]*)', field)
    marked = [value or words for value, selected, words in options if selected]
    return marked or ["" if options[0][2] == "choose" else options[0][2]]


def test_the_file_of_the_schema_is_chosen_and_no_other(visitor, tmp_path):
    """Not the first by the alphabet, nor one of a like name; and where two schemas name two files, none."""
    page = prepared(visitor)
    (tmp_path / "archive 2019.csv").write_bytes((tmp_path / "survey.csv").read_bytes())
    (tmp_path / "survey.pq").write_bytes(b"")
    assert _chosen(visitor.get(page).text, "data") == ["survey.csv"]
    (tmp_path / "survey.pq").unlink()
    own = (tmp_path / "survey.schema.toml").rename(tmp_path / "by another name.toml")
    assert _chosen(visitor.get(page).text, "data") == ["survey.csv"]
    own.rename(tmp_path / "survey.schema.toml")
    copy = tmp_path / "archive 2019.schema.toml"
    text = (tmp_path / "survey.schema.toml").read_text()
    assert 'name = "survey.csv"' in text
    copy.write_text(text.replace("survey.csv", "archive 2019.csv"))
    assert _chosen(visitor.get(page).text, "data") == [""]
    copy.write_text(copy.read_text().replace("90", "95"))  # the schema of other records
    assert _chosen(visitor.get(page).text, "data") == ["survey.csv"]
    nameless = (tmp_path / "survey.schema.toml").read_text().replace('name = "survey.csv"', "")
    (tmp_path / "survey.schema.toml").write_text(nameless)
    assert _chosen(visitor.get(page).text, "data") == [""]
    (tmp_path / "survey.schema.toml").write_text(text)
    records = (tmp_path / "survey.csv").read_text()
    (tmp_path / "survey.csv").write_text("age,region\n31,N\n")  # not the columns of its schema any more
    assert _chosen(visitor.get(page).text, "data") == [""]
    (tmp_path / "survey.csv").write_text(records)
    (tmp_path / "survey.csv").unlink()
    assert _chosen(visitor.get(page).text, "data") == [""]
    form = {"sha256": visitor.studio.folder.request("means").plan.sha256, "data": "", "ledger": "ledger.db/survey"}
    for given in (form, form | {"data": "archive 2019.csv", "ledger": ""}):
        answer = visitor.post(f"{page}/approve", given)
        assert answer.status == 422 and "choose the records" in answer.text


def test_files_of_two_years_have_a_schema_each(visitor, tmp_path):
    for year in (2019, 2020):
        (tmp_path / f"survey.{year}.csv").write_bytes((tmp_path / "survey.csv").read_bytes())
    page = visitor.post("/schema", SCHEMA | {"data": "survey.2020.csv"}).headers["location"]
    assert page == "/schema/survey.2020.schema.toml"
    visitor.post("/ledger", LEDGER)
    asked = visitor.post("/ask", MEANS | {"schema": "survey.2020.schema.toml"}).headers["location"]
    assert _chosen(visitor.get(asked).text, "data") == ["survey.2020.csv"]


def test_the_account_of_the_data_set_is_chosen_where_there_is_one(visitor, tmp_path):
    visitor.post("/ledger", LEDGER | {"name": "a", "dataset": "archive"})
    page = prepared(visitor)
    assert _chosen(visitor.get(page).text, "ledger") == ["ledger.db/survey"]
    visitor.post("/ledger", LEDGER | {"name": "c"})
    assert _chosen(visitor.get(page).text, "ledger") == [""]


def test_the_price_names_the_file_where_another_has_its_columns(visitor, tmp_path):
    page = prepared(visitor)
    os.utime(tmp_path / "survey.csv", (1_700_000_000, 1_700_000_000))
    told = f"{(tmp_path / 'survey.csv').stat().st_size:,} bytes, changed {datetime.fromtimestamp(1_700_000_000):%Y-%m-%d %H:%M}"
    alone = visitor.get(approval(visitor, page)).text
    assert f"survey.csv, {told}" in alone and "right ones" not in alone
    (tmp_path / "archive 2019.csv").write_bytes((tmp_path / "survey.csv").read_bytes())
    (tmp_path / "other.csv").write_text("age\n1\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    beside = visitor.get(approval(visitor, page)).text.split("</table>")[1].split("Charge and release")[0]
    assert "archive 2019.csv." in beside and f"<strong>survey.csv</strong> ({told})" in beside
    assert "other.csv" not in beside and "broken" not in beside and _charges(tmp_path) == 0


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"dataset": "census"}, "open for"),
        ({"unit": "household"}, "declare unit="),
        ({"rows_per_unit": 5}, "declare rows_per_unit=1"),
        ({"unit": Unit("age")}, "enforced"),
    ],
)
def test_no_price_is_shown_in_a_ledger_of_something_else(visitor, tmp_path, facts, said):
    """What a charge is about is compared where the price is said, as the release compares it."""
    prepared(visitor)
    columns = {"income": Numeric(0, 60_000), "region": Categorical(["N", "S"])}
    schema = Schema(columns, **{"dataset": "survey", **facts})
    (tmp_path / "own.toml").write_text(schema.to_toml())
    page = visitor.post("/ask", MEANS | {"schema": "own.toml", "name": "own"}).headers["location"]
    form = {
        "sha256": visitor.studio.folder.request("own").plan.sha256,
        "data": "survey.csv",
        "ledger": "ledger.db/survey",
    }
    answer = visitor.post(f"{page}/approve", form)
    assert answer.status == 422 and said in html.unescape(answer.text) and _charges(tmp_path) == 0


def test_no_form_says_by_itself_what_intervals_are_about(visitor):
    prepared(visitor)
    form = {key: value for key, value in MEANS.items() if key != "inference"}
    for page in (f"/ask?{urlencode(form)}", f"/forecast?{urlencode(form)}"):
        answer = visitor.get(page)
        assert "checked" not in answer.text and "choose what the intervals are about" in answer.text
    assert visitor.post("/ask", form).status == 422
    assert 'value="dataset" checked' in visitor.get(f"/ask?{urlencode(form | {'inference': 'dataset'})}").text


def test_the_plan_follows_the_budget(visitor):
    prepared(visitor)
    texts = [
        visitor.get(f"/forecast?schema=survey.schema.toml&kind=line&formula=income+~+age&mu={mu}&n=600").text
        for mu in (0.5, 1)
    ]
    assert "mu=0.5" in texts[0] and "mu=1" in texts[1]
    assert (
        'role="alert"' in visitor.get("/forecast?schema=survey.schema.toml&kind=line&formula=income+~+wealth&mu=1").text
    )


def test_a_forecast_that_nobody_waits_for_is_not_made(visitor, monkeypatch):
    """Three are asked for while the first is made: the second is dropped."""
    prepared(visitor)
    studio, begun, go_on, made = visitor.studio, Event(), Event(), []
    real = studio._plan

    def slow(form, *given):
        made.append(form["mu"])
        begun.set()
        assert go_on.wait(60)
        return real(form, *given)

    monkeypatch.setattr(studio, "_plan", slow)
    with ThreadPoolExecutor(3) as pool:
        answers = []
        for mu in ("0.1", "0.2", "0.3"):
            page = f"/forecast?{urlencode(MEANS | {'mu': mu})}"
            answers.append(pool.submit(visitor.get, page))
            assert begun.wait(60)
            while studio._newest < len(answers) - 1:
                time.sleep(0.01)
        go_on.set()
        told = [answer.result() for answer in answers]
    assert [answer.status for answer in told] == [200, 204, 200] and made == ["0.1", "0.3"]
    assert "mu=0.3" in told[2].text


@pytest.mark.long
def test_every_question_has_a_plan_and_practice(visitor):
    prepared(visitor)
    filled = {
        "counts": "region",
        "shares": "region",
        "means": "income ~ region",
        "totals": "income ~ region",
        "medians": "income ~ region",
        "table_one": "age + income ~ region",
        "ratios": "income / age ~ region",
        "persons": "any(region == 'N')",
        "t_test": "income ~ region",
        "anova": "income ~ region",
        "chi_square": "region * cut(age, 40)",
        "rank_test": "income ~ region",
        "line": "income ~ age",
        "logistic": "works ~ age",
        "poisson": "visits ~ region",
        "curve": "income ~ age",
    }
    assert list(filled) == [one.name for one in questions()]
    asked = {"schema": "survey.schema.toml", "mu": "1", "inference": "population"}
    for kind in ("t_test", "counts", "medians"):
        form = urlencode(asked | {"kind": kind, "formula": filled[kind]})
        shown = visitor.get(f"/practise?{form}")
        assert shown.status == 200 and "SIMULATED" in shown.text.upper(), kind
    for kind, formula in filled.items():
        if kind == "persons":  # of rows that are told apart by an id
            continue
        form = urlencode(asked | {"kind": kind, "formula": formula})
        assert "Plan ID" in visitor.get(f"/forecast?{form}").text, kind


def test_steps_hold_the_plan_in_each_form(visitor, tmp_path):
    """Run they are in test_databases.py, and by the next test."""
    page = prepared(visitor)
    visitor.post(approval(visitor, page))
    settled(visitor, page)
    steps = {ending: visitor.get(f"{page}/steps.{ending}").text for ending in ("py", "sh", "ipynb")}
    assert all(visitor.studio.folder.request("means").plan.sha256 in text for text in steps.values())
    cells = json.loads(steps["ipynb"])["cells"]
    assert "".join(cell["source"] + "\n\n" for cell in cells).rstrip() == steps["py"].rstrip()


@pytest.mark.long
def test_steps_make_the_same_plan(visitor, tmp_path):
    page = prepared(visitor)
    visitor.post(approval(visitor, page))
    settled(visitor, page)
    (tmp_path / "means.release.json").unlink()
    (tmp_path / "steps.py").write_text(visitor.get(f"{page}/steps.py").text)
    subprocess.run([sys.executable, "steps.py"], cwd=tmp_path, check=True, capture_output=True)
    assert _charges(tmp_path) == 2 and (tmp_path / "means.html").exists()


def test_commands_make_the_same_plan(visitor, tmp_path):
    page = prepared(visitor)
    text = visitor.get(f"{page}/steps.sh").text
    line = next(one for one in text.splitlines() if one.startswith("confide plan"))
    command = f"{sys.executable} -m {line}"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    made = json.loads((tmp_path / "means.plan.json").read_text())
    assert made["sha256"] == visitor.studio.folder.request("means").plan.sha256


def test_a_form_that_is_wrong_is_shown_again(visitor):
    answer = visitor.post("/schema", SCHEMA | {"values0": "ninety", "values1": ""})
    assert answer.status == 422 and 'value="ninety"' in answer.text and 'value="the tariff"' in answer.text
    told = html.unescape(answer.text)
    assert "column 'age': 'ninety' does not state two bounds" in told and "column 'region': list its levels" in told
    assert visitor.post("/schema", SCHEMA | {"from2": ""}).status == 422
    assert "choose its kind, or clear" in visitor.post("/schema", SCHEMA | {"kind2": ""}).text
    assert visitor.post("/schema", SCHEMA).status == 303
    assert visitor.post("/schema", SCHEMA).status == 409
    assert visitor.post("/ledger", LEDGER | {"mu": "-1"}).status == 422


def test_missing_values_and_labels_that_are_not_listed(visitor, tmp_path):
    asked = visitor.get("/schema?data=survey.csv").text
    assert "Missing counts as" in asked
    wrong = {"missing1": "W", "missing0": "many", "missing2": "70000"}
    for key, value in wrong.items():
        answer = visitor.post("/schema", SCHEMA | {key: value})
        assert answer.status == 422 and f'value="{value}"' in answer.text
    rules = {"missing0": "midpoint", "missing1": "other", "missing2": "0", "missing4": "drop"}
    page = visitor.post("/schema", SCHEMA | {"values1": "N, other"} | rules).headers["location"]
    made = Schema.from_toml(tmp_path / "survey.schema.toml")
    found = [made[name].on_missing for name in ("age", "region", "income", "works", "visits")]
    assert found == ["midpoint", "other", 0, "drop", "drop"]
    text = visitor.get(page).text
    assert ">other</td>" in text and ">midpoint</td>" in text and ">excluded</td>" in text


@pytest.mark.parametrize("unit", ["record", "person"])
def test_a_budget_begins_with_the_schemas_data_set_and_unit(visitor, tmp_path, unit):
    records = pd.read_csv(tmp_path / "survey.csv")
    records.assign(person=range(len(records))).to_csv(tmp_path / "survey.csv", index=False)
    assert 'name="unit" value="record"' in visitor.get("/").text
    page = visitor.post("/schema", SCHEMA | {"unit": unit}).headers["location"]
    for place in ("/", page):
        text = visitor.get(place).text
        assert f'name="unit" value="{unit}"' in text and 'value="survey.db"' in text
    form = {"name": "survey.db", "dataset": "survey", "mu": "1", "unit": unit}
    assert visitor.post("/ledger", form).status == 303
    assert Ledger.open(tmp_path / "survey.db").unit == unit
    assert "Open a budget for it" not in visitor.get(page).text
    assert 'value="survey.db"' not in visitor.get("/").text


def test_a_report_is_had_as_a_file(visitor, tmp_path):
    page = prepared(visitor)
    assert visitor.get("/release/means/report.md").status == 422
    visitor.post(approval(visitor, page))
    assert "/release/means/report.docx" in settled(visitor, page).text
    shown = {
        "html": "<title>Mean income by region",
        "md": "| region | n |",
        "tex": "\\begin{table}",
        "csv": "variable,region,",
    }
    for ending, own in shown.items():
        answer = visitor.get(f"/release/means/report.{ending}")
        assert answer.status == 200 and own in answer.text, (ending, answer.text[:80])
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''means.{ending}"
    assert visitor.get("/release/means/report.exe").status == 422
    assert _charges(tmp_path) == 1


@pytest.mark.parametrize("unit", ["record", "person"])
def test_what_is_asked_is_practised_and_exemplified(visitor, tmp_path, unit):
    """With an enforced unit too: practice records have ids of their own. Names stand as a formula takes them."""
    records = pd.read_csv(tmp_path / "survey.csv").rename(columns={"income": "net income"})
    records.assign(person=range(len(records))).to_csv(tmp_path / "survey.csv", index=False)
    assert visitor.post("/schema", SCHEMA | {"unit": unit}).status == 303
    text = visitor.get("/ask?schema=survey.schema.toml&kind=means").text
    assert "<code>`net income`</code>" in text and 'placeholder="visits ~ region"' in text
    form = urlencode(MEANS | {"formula": "`net income` ~ region"})
    shown = visitor.get(f"/practise?{form}")
    assert shown.status == 200 and "SIMULATED" in shown.text.upper()
