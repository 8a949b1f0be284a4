"""Many questions in the studio: one form, one plan, one request, one charge, one report, and steps that give the same release."""

from __future__ import annotations

import json
import subprocess
import sys
from urllib.parse import urlencode

import pytest
from tests.messages import refuses
from tests.studio.served import LEDGER, SCHEMA, Visitor, approval, served, settled, survey

import confide as cf
from confide import forecast
from confide.ask.menu import method_of_form, named_in, reading_of
from confide.core import Release
from confide.ledger import Ledger
from confide.noise import SimulatedNoise
from confide.schema import Schema
from confide.sources import coding

MANY = {
    "schema": "survey.schema.toml",
    "kind": "publication",
    "mu": "0.8",
    "n": "600",
    "kind0": "counts", "formula0": "region * cut(age, 40)", "inference0": "dataset", "name0": "people",
    "kind1": "t_test", "formula1": "income ~ region", "inference1": "population", "share1": "2",
    "kind2": "means", "formula2": "income ~ region", "inference2": "population", "where2": "age >= 40", "share2": "1.5",
    "kind4": "line", "formula4": "income ~ age", "inference4": "population",
}  # fmt: skip


@pytest.fixture
def visitor(tmp_path):
    survey(tmp_path)
    with served(tmp_path) as studio:
        opened = Visitor(studio).open()
        assert opened.post("/schema", SCHEMA).status == 303
        assert opened.post("/ledger", LEDGER).status == 303
        yield opened


def test_the_rows_of_a_form_are_questions():
    made = method_of_form(MANY)
    assert list(made.methods) == list(named_in(MANY)) == ["people", "t_test", "means", "line"]
    assert [str(one) for one in made.fractions.values()] == ["2/11", "4/11", "3/11", "2/11"]
    twice = {"kind": "publication", "kind0": "means", "formula0": "x ~ 1", "kind1": "means", "formula1": "y ~ 1"}
    assert list(named_in(twice)) == ["means", "means 2"]


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "publication"},
        MANY | {"share0": "heavy"},
        MANY | {"name1": "people"},
        MANY | {"formula1": "income"},
        MANY | {"kind4": "nonsense"},
        MANY | {"inference2": ""},
    ],
)
def test_what_is_wrong_is_told_of_its_question(given):
    with refuses(cf.errors.PlanError):
        method_of_form(given)


def test_a_test_is_read_as_a_test(tmp_path):
    survey(tmp_path)
    schema = Schema({"age": cf.Integer(18, 90), "region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 6e4)})
    data = cf.read(tmp_path / "survey.csv", schema)
    done = cf.release(method_of_form(MANY), data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(2))
    plain, report = cf.infer(done), reading_of(MANY)(cf.infer(done))
    assert type(report["t_test"]).__name__ == "HypothesisTests" and report.shares == plain.shares
    assert type(report["means"]) is type(plain["t_test"]) and "t test" in report.summary()


def test_a_publication_is_one_request_and_one_charge(visitor, tmp_path):
    shown = visitor.get("/ask?" + urlencode(MANY)).text
    assert "4 analyses, one charge" in shown
    assert shown.count("<legend>Analysis") == 5
    more = visitor.get("/ask?" + urlencode(MANY | {"rows": "9"})).text
    assert more.count("<legend>Analysis") == 9
    assert 'role="alert"' in visitor.get("/forecast?" + urlencode(MANY | {"formula2": "wealth ~ 1"})).text
    page = visitor.post("/ask", MANY | {"name": "yearbook"}).headers["location"]
    visitor.post(approval(visitor, page))
    assert "Released." in settled(visitor, page).text
    report = visitor.get("/release/yearbook").text
    assert all(f"<h2>{name}</h2>" in report for name in ("people", "t_test", "means", "line"))
    rows = Ledger.open(tmp_path / "ledger.db").show().rows
    assert sum(row.kind == "charge" for row in rows) == 1


@pytest.mark.long
def test_steps_give_the_same_plan_and_report(visitor, tmp_path):
    page = visitor.post("/ask", MANY | {"name": "yearbook"}).headers["location"]
    visitor.post(approval(visitor, page))
    settled(visitor, page)
    wanted = visitor.studio.folder.request("yearbook").plan
    (tmp_path / "yearbook.release.json").unlink()
    Ledger.open(tmp_path / "ledger.db").amend(cf.GDP(3.0), reason="a test")
    (tmp_path / "steps.py").write_text(visitor.get(f"{page}/steps.py").text)
    subprocess.run([sys.executable, "steps.py"], cwd=tmp_path, check=True, capture_output=True)
    assert Release.load(tmp_path / "yearbook.release.json").plan.sha256 == wanted.sha256
    assert "t test: mean income by region" in (tmp_path / "yearbook.html").read_text()
    for name in ("yearbook.release.json", "yearbook.html"):
        (tmp_path / name).unlink()
    program = visitor.get(f"{page}/steps.sh").text.replace("\nconfide ", f"\n{sys.executable} -m confide ")
    subprocess.run(["sh", "-c", program], cwd=tmp_path, check=True, capture_output=True)
    assert json.loads((tmp_path / "yearbook.plan.json").read_text())["sha256"] == wanted.sha256
    assert Release.load(tmp_path / "yearbook.release.json").plan.sha256 == wanted.sha256


def test_no_row_says_by_itself_what_its_intervals_are_about(visitor):
    """Of a table it has to be chosen; a test or a line has one answer and is asked nothing."""
    empty = visitor.get("/ask?schema=survey.schema.toml&kind=publication").text
    for row in range(3):
        field = empty.split(f'name="inference{row}">')[1].split("</select>")[0]
        assert field.startswith('<option value="">choose</option>') and "selected" not in field
    bare = {key: value for key, value in MANY.items() if not key.startswith("inference")}
    for page in ("/ask?", "/forecast?"):
        assert "choose what the intervals are about" in visitor.get(page + urlencode(bare)).text
    assert visitor.post("/ask", bare).status == 422
    told = visitor.get("/forecast?" + urlencode(bare | {"inference0": "dataset", "inference2": "population"})).text
    assert "4 analyses, one charge" in told


def test_hostile_rows_are_text(visitor):
    hostile = MANY | {"name0": "<script>alert(1)</script>", "where2": "age >= 40\nEND"}
    answer = visitor.get("/ask?" + urlencode(hostile))
    assert answer.status == 200 and "<script>alert" not in answer.text
    asked = visitor.post("/ask", hostile)
    if asked.status == 303:
        page = asked.headers["location"]
        assert "<script>alert" not in visitor.get(page).text
        steps = visitor.get(f"{page}/steps.sh").text
        assert "\nEND\n" not in steps


def test_a_test_that_its_table_cannot_answer_is_refused_in_the_plan(visitor):
    """Three groups for a t test: told before anything is asked for, not after the charge."""
    wrong = MANY | {"formula1": "income ~ cut(age, 30, 60)"}
    assert "a t test compares two groups" in visitor.get("/forecast?" + urlencode(wrong)).text
    assert visitor.post("/ask", wrong).status == 422
    for odd in ({"rows": "9" * 5_000}, {"rows": "²"}, {"share0": "nan"}, {"share0": "inf"}, {"n": "1" * 5_000}):
        assert visitor.get("/ask?" + urlencode(MANY | odd)).status == 200


@pytest.mark.few("True")
@pytest.mark.parametrize("kept", [False, True])
def test_a_question_that_fails_after_the_charge(visitor, tmp_path, monkeypatch, kept):
    """Nothing is released, unless the steward said before that the others are; her steps say the same."""
    kind = type(method_of_form(MANY).methods["means"])
    right = kind.draw

    def draw(self, source, plan, meter):
        done = right(self, source, plan, meter)
        if coding._SIMULATED.get():  # what fails in the rehearsal is never charged
            return done
        raise ValueError("a record with an income of twelve")

    page = visitor.post("/ask", MANY | {"name": "yearbook"}).headers["location"]
    assert 'name="allow_partial"' in visitor.get(page).text
    form = {"sha256": visitor.studio.folder.request("yearbook").plan.sha256, "data": "survey.csv"}
    form |= {"ledger": "ledger.db/survey", **({"allow_partial": "yes"} if kept else {})}
    price = visitor.post(f"{page}/approve", form).headers["location"]
    assert ("the others are released" in visitor.get(price).text) == kept
    monkeypatch.setattr(kind, "draw", draw)
    # nor what fails in a forecast
    foreseen = forecast.simulated

    def simulated(*of):
        with coding.of_simulated():
            return foreseen(*of)

    monkeypatch.setattr(forecast, "simulated", simulated)
    visitor.post(price)
    text = settled(visitor, page).text
    assert "twelve" not in text and ("Released." in text) == kept == (tmp_path / "yearbook.release.json").exists()
    assert ("--allow-partial" in visitor.get(f"{page}/steps.sh").text) == kept
    assert ("allow_partial=True" in visitor.get(f"{page}/steps.py").text) == kept
    assert sum(row.kind == "charge" for row in Ledger.open(tmp_path / "ledger.db").show().rows) == 1
