"""The disclosure record: of its schema's form for every kind of release, without a noisy number, and true to the ledger."""

from __future__ import annotations

import json
import re
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import confide as cf
from confide.core.events import BudgetItem, leaves
from confide.disclosures import FORMAT, schema_text
from confide.guarantees.conversion import bare_words
from confide.noise import SimulatedNoise
from tests.messages import refuses

COLUMNS = {
    "x": cf.Numeric(0, 4, on_missing="midpoint"),
    "y": cf.Numeric(-3, 9),
    "g": cf.Categorical(["a", "b", "c"]),
    "s": cf.Categorical(["no", "yes"], on_missing="no"),
}
SCHEMA = cf.Schema(COLUMNS, dataset="survey")
PERSONS = cf.Schema(COLUMNS, unit=cf.Unit("pid"))
FORM = json.loads(schema_text())

#: A release of each kind: several rounds, tables, pure, approximate, a choice, an opaque test, several questions, an enforced unit.
KINDS: dict[str, tuple[Any, Any]] = {
    "line": (cf.regression.LeastSquares("y ~ x + g"), cf.GDP(1.0)),
    "means": (cf.tables.Means("y ~ g", inference="population", where="x > 1"), cf.GDP(1.0)),
    "pure": (cf.tables.Quantiles("x", quantiles=(0.25, 0.5)), cf.PureDP(1.0)),
    "choice": (cf.voting.Plurality("s"), cf.ApproxDP(1.0, 1e-6)),
    "asked as (epsilon, delta)": (cf.tables.Counts("g * s", inference="population"), cf.ApproxDP(1.0, 1e-6)),
    "substitute": (cf.intervals.Proportion("s"), cf.PureDP(0.5)),
    "test": (
        cf.ptr.SafeRelease(cf.ptr.OrderStatistic(750, 0.0, 4.0, 0.4), ("x",), gamma_plan=30),
        cf.GDP(1.0, 1e-4),
    ),
    "questions": (
        cf.Publication(
            {"mean": cf.tables.Means("y", inference="population"), "line": cf.regression.LeastSquares("y ~ x")}
        ),
        cf.GDP(1.0),
    ),
    "persons": (cf.tables.Means("y ~ g", inference="population"), cf.GDP(1.0)),
}


def _drawn(name: str, noise: Any = None, ledger: Any = None) -> cf.Release:
    method, privacy = KINDS[name]
    frame = SCHEMA.sample(1_500, seed=7)
    source = cf.read(frame.assign(pid=frame.index // 3), PERSONS) if name == "persons" else cf.read(frame, SCHEMA)
    public = {"n": 1_500} if method.relations[0] == "substitute" else {}
    return cf.release(method, source, privacy, ledger=ledger, noise=noise or SimulatedNoise(3), **public)


def _faults(value: Any, form: Any, where: str = "record") -> list[str]:
    """What of a value is not of its form: as much of JSON Schema as the record's schema uses, and an error for more."""
    assert set(form) <= {
        *("$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "pattern", "anyOf"),
        *("required", "properties", "additionalProperties", "items"),
    }
    if "$ref" in form:
        return _faults(value, FORM["$defs"][form["$ref"].rsplit("/", 1)[1]], where)
    if "anyOf" in form:
        tried = [_faults(value, one, where) for one in form["anyOf"]]
        return [] if any(not found for found in tried) else min(tried, key=len)
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    allowed = form.get("type", list(kinds))
    allowed = [allowed] if isinstance(allowed, str) else allowed
    fits = any(isinstance(value, kinds[one]) and (one == "boolean" or not isinstance(value, bool)) for one in allowed)
    if not fits:
        return [f"{where}: {value!r} is no {allowed}"]
    found = [] if form.get("const", value) == value else [f"{where}: {value!r}"]
    found += [] if value in form.get("enum", [value]) else [f"{where}: {value!r} is none of {form['enum']}"]
    if isinstance(value, str) and not re.search(form.get("pattern", ""), value):
        found.append(f"{where}: {value!r} does not match {form['pattern']}")
    if isinstance(value, list):
        found += [one for k, item in enumerate(value) for one in _faults(item, form.get("items", {}), f"{where}[{k}]")]
    if isinstance(value, dict):
        properties, others = form.get("properties", {}), form.get("additionalProperties", {})
        found += [f"{where} lacks {name}" for name in form.get("required", ()) if name not in value]
        for name, item in value.items():
            own = properties.get(name, others)
            found += [f"{where}.{name} is unknown"] if own is False else _faults(item, own or {}, f"{where}.{name}")
    return found


@pytest.fixture(scope="module")
def releases() -> dict[str, cf.Release]:
    return {name: _drawn(name) for name in KINDS}


@pytest.mark.parametrize("name", KINDS)
def test_the_record_is_of_its_schema_and_holds_no_number_of_the_release(
    releases: dict[str, cf.Release], name: str
) -> None:
    release = releases[name]
    record = cf.privacy_statement(release)
    facts = record.to_dict()
    assert _faults(facts, FORM) == []
    assert (
        facts["format"] == FORMAT and facts["simulated"] and "nobody is protected" in " ".join(record.summary().split())
    )
    assert facts["release_sha256"] == release.sha256 and facts["plan_sha256"] == release.plan.sha256
    assert facts["guarantee"]["stated"][0]["text"] == str(release.charged)
    # what is drawn is told by name, and no noisy integer of any length that could not be by chance
    drawn = {one["name"] for one in facts["noise"] if one["drawn"]}
    assert drawn <= set(release.statistics)
    text = record.to_json()
    for noisy in release.statistics.values():
        for value in noisy.values.ravel().tolist():
            number = str(abs(value))
            assert len(number) < 7 or not re.search(rf"(?<!\d){number}(?!\d)", text)
            assert len(number) < 9 or number not in text
    # the record of the file that was published is the same
    assert cf.privacy_statement(cf.Release.from_json(release.to_json())).to_json() == text


def test_the_schema_refuses_what_is_not_of_its_form(releases: dict[str, cf.Release]) -> None:
    facts = cf.privacy_statement(releases["means"]).to_dict()
    for change in (
        {"status": "done"},
        {"release_sha256": "0"},
        {"estimate": 1.0},
        {"noise": [{"name": "a", "law": "laplace", "drawn": True}]},
        {"guarantee": {**facts["guarantee"], "stated": [{}]}},
        {"simulated": 1},
    ):
        assert _faults({**facts, **change}, FORM), change
    assert _faults({name: value for name, value in facts.items() if name != "unit"}, FORM)


def test_what_it_says_of_each_kind(releases: dict[str, cf.Release]) -> None:
    found = {name: cf.privacy_statement(release).to_dict() for name, release in releases.items()}
    assert found["means"]["what"]["subgroup"] == "x > 1"
    assert found["persons"]["unit"]["protected"] == "pid" and found["persons"]["unit"]["enforced"]
    assert found["substitute"]["beside"]["number_of_records"] == 1_500
    assert found["line"]["beside"]["number_of_records"] is None
    assert set(found["questions"]["analyses"]) == {"mean", "line"}
    assert found["pure"]["guarantee"]["follows"]["gdp"]["mu"] == pytest.approx(cf.PureDP(1.0).to_gdp().mu)
    follows = found["line"]["guarantee"]["follows"]
    assert follows["zcdp_rho"] == 0.5
    assert follows["epsilon_at_delta"]["1e-06"] == cf.GDP(1.0).to_approx(delta=1e-6).epsilon
    assert found["asked as (epsilon, delta)"]["guarantee"]["requested"]["type"] == "ApproxDP"
    # branches that were planned and not taken
    assert {one["drawn"] for one in found["line"]["noise"]} == {True, False}


def test_people_read_it_question_by_question(releases: dict[str, cf.Release]) -> None:
    """Of each question its estimand, method, charge and noise, in multiples of the sensitivity; nothing runs off the page."""
    release = releases["questions"]
    said = cf.privacy_statement(release).summary()
    assert max(map(len, said.splitlines())) <= 110
    whole, *questions = said.split("\nAnalysis ")
    assert "2 analyses: mean, line" in whole
    # the ranges that both share are of neither
    assert re.findall(r"^ +(?:Noise +)?(range of \w+) +\d+ +\S+ +mu \S+ +grid gaussian$", whole, re.MULTILINE) == [
        "range of y",
        "range of x",
    ]
    for name, text in zip(release.plan.children, questions, strict=True):
        child = release.plan.children[name]
        assert text.startswith(f"{'12'[name == 'line']} of 2: {name} (released)")
        words = " ".join(text.split())
        assert f"Estimated {child.target}" in words and f"Method {child.method.name}" in words
        assert f"Charged {bare_words(child.guarantee)}" in words
        for leaf in leaves(child.event):
            assert isinstance(leaf, BudgetItem)
            row = rf"^ +(Noise +)?{re.escape(leaf.name)} +{int(np.prod(leaf.shape))} +(\S+) +mu (\S+) +grid gaussian$"
            found = re.search(row, text, re.MULTILINE)
            if f"{name}/{leaf.name}" not in release.statistics:
                assert found is None and leaf.name in words.split("planned and not drawn: ")[1]
                continue
            assert found is not None, leaf.name
            # of a Gaussian the one is 1 over the other, and what is paid is not understated
            assert float(found[2]) * float(found[3]) == pytest.approx(1, rel=2e-3)
            assert float(found[3]) >= sqrt(float(leaf.exact_cost.amount)) * (1 - 1e-12)
    assert "1 is the most by which one record changes" in " ".join(said.split())


def test_what_is_no_gaussian_is_told_too(releases: dict[str, cf.Release]) -> None:
    said = {name: cf.privacy_statement(releases[name]).summary() for name in ("pure", "choice", "test", "persons")}
    assert re.search(r"epsilon 0?\.?\d+ +\w+", said["pure"])
    assert "one pid changes" in " ".join(said["persons"].split())
    for name, text in said.items():
        assert max(map(len, text.splitlines())) <= 110, name


def test_with_a_ledger_it_names_the_entry_and_the_tip(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(2.0))
    source = cf.read(SCHEMA.sample(500, seed=1), SCHEMA)
    release = cf.release(KINDS["means"][0], source, cf.GDP(1.0), ledger=book)
    facts = cf.privacy_statement(release, book).to_dict()
    assert _faults(facts, FORM) == []
    own, receipt = facts["ledger"], book.find(release.sha256)
    assert receipt is not None and own["agrees"] and not facts["simulated"]
    assert own["tip"] == book.tip and own["entry"]["tip"] == receipt.tip
    assert (own["entry"]["receipt"], own["entry"]["charge"]) == (receipt.seq, receipt.charge_seq)
    other = cf.privacy_statement(_drawn("means"), book)
    assert other.to_dict()["ledger"]["entry"] is None and "DOES NOT AGREE" in " ".join(other.summary().split())
    assert _faults(other.to_dict(), FORM) == []


def test_no_record_of_a_release_whose_statements_are_not_paid_for(releases: dict[str, cf.Release]) -> None:
    from dataclasses import replace

    better = cf.GDP(0.1, relation="add-remove")
    forged = replace(releases["line"], guarantees=(better,), plan=replace(releases["line"].plan, guarantees=(better,)))
    with refuses(cf.errors.ReleaseError):
        cf.privacy_statement(forged)


def test_the_command_line_writes_it(tmp_path: Path, releases: dict[str, cf.Release]) -> None:
    from confide.cli import app

    path, out = releases["means"].save(tmp_path / "release.json"), tmp_path / "record.json"
    done = CliRunner().invoke(app, ["statement", str(path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "Guarantee" in done.output and "nobody is protected" in " ".join(done.output.split())
    assert json.loads(out.read_text()) == cf.privacy_statement(releases["means"]).to_dict()
    cf.Ledger.create(
        tmp_path / "other.db", dataset=releases["means"].plan.schema["dataset"], budget=cf.GDP(1.0)
    ).close()
    other = CliRunner().invoke(app, ["statement", str(path), "--ledger", str(tmp_path / "other.db")])
    assert other.exit_code == 1 and "DOES NOT AGREE" in " ".join(other.output.split())
    told = CliRunner().invoke(app, ["statement", str(path), "--json"])
    assert json.loads(told.output)["record"]["release_sha256"] == releases["means"].sha256
