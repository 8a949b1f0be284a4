"""Tables of databases in the studio: SQLite and DuckDB files of the folder, and a database that the steward names by a variable."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from urllib.parse import quote

import pandas as pd
import pytest
from tests.messages import refuses
from tests.studio.served import LEDGER, MEANS, SCHEMA, Visitor, served, settled, survey

from confide.core import Release
from confide.errors import PlanError, SourceError
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.studio.folder import Folder

PASSWORD = "Qx7secretQx7"


@pytest.fixture(params=["sqlite", "duckdb"])
def place(request, tmp_path):
    """A folder with the survey as a table of a database."""
    survey(tmp_path)
    frame = pd.read_csv(tmp_path / "survey.csv")
    (tmp_path / "survey.csv").unlink()
    if request.param == "sqlite":
        pytest.importorskip("adbc_driver_sqlite")
        with sqlite3.connect(tmp_path / "survey.db") as made:
            frame.to_sql("answers", made, index=False)
        made.close()
        return tmp_path, "survey.db/answers"
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "survey.duckdb")) as made:
        made.execute("create table answers as select * from frame")
        made.execute("create view outside as select * from read_text('/etc/hostname')")
    return tmp_path, "survey.duckdb/answers"


def _asked(visitor: Visitor, data: str) -> str:
    schema = ("CLINIC" if data.startswith("env:") else "survey") + "-answers.schema.toml"
    assert visitor.post("/schema", SCHEMA | {"data": data}).headers["location"] == f"/schema/{schema}"
    assert visitor.post("/ledger", LEDGER).status == 303
    return visitor.post("/ask", MEANS | {"schema": schema, "name": "means"}).headers["location"]


def _released(visitor: Visitor, page: str, data: str) -> str:
    sha256 = visitor.studio.folder.request("means").plan.sha256
    form = {"sha256": sha256, "data": data, "ledger": "ledger.db/survey"}
    answer = visitor.post(f"{page}/approve", form)
    assert answer.status == 303, answer.text
    visitor.post(answer.headers["location"])
    return settled(visitor, page).text


@pytest.mark.few("sqlite")
def test_a_table_is_described_approved_and_released(place):
    folder, data = place
    with served(folder) as studio:
        visitor = Visitor(studio).open()
        home = visitor.get("/").text
        assert f"Describe {data}" in home and "outside" not in home and "cannot be read as a ledger" not in home
        described = visitor.get("/schema?data=" + quote(data)).text
        assert "income" in described and 'value="integer" selected' in described
        page = _asked(visitor, data)
        assert "Released." in _released(visitor, page, data)
        program = visitor.get(f"{page}/steps.py").text
        assert f"cf.read({data!r}, schema)" in program and data in visitor.get(f"{page}/steps.sh").text
    first = Release.load(folder / "means.release.json")
    (folder / "means.release.json").unlink()
    (folder / "steps.py").write_text(program)
    subprocess.run([sys.executable, "steps.py"], cwd=folder, check=True, capture_output=True)
    assert Release.load(folder / "means.release.json").plan == first.plan
    rows = Ledger.open(folder / "ledger.db", dataset="survey").show().rows
    assert sum(row.kind == "charge" for row in rows) == 2


def test_a_file_that_changed_after_the_approval(place):
    folder, data = place
    with served(folder) as studio:
        visitor = Visitor(studio).open()
        page = _asked(visitor, data)
        form = {"sha256": studio.folder.request("means").plan.sha256, "data": data, "ledger": "ledger.db/survey"}
        price = visitor.post(f"{page}/approve", form).headers["location"]
        with (folder / data.split("/")[0]).open("ab") as file:
            file.write(b"\0")
        answer = visitor.post(price)
        assert answer.status == 422 and "changed after the approval" in answer.text


@pytest.mark.few("duckdb")
def test_a_database_elsewhere_is_its_variable_and_nothing_else(place, tmp_path_factory, monkeypatch):
    """Its address, which may hold a password, is on no page, in no request, no decision, no script and no release."""
    folder, data = place
    scheme = "sqlite" if data.startswith("survey.db") else "duckdb"
    hidden = tmp_path_factory.mktemp(PASSWORD) / "hidden.file"
    (folder / data.split("/")[0]).rename(hidden)
    monkeypatch.setenv("CLINIC", f"{scheme}:///{hidden}")
    monkeypatch.setenv("OTHER", f"{scheme}:///{hidden}")
    with served(folder, ["CLINIC"]) as studio:
        visitor = Visitor(studio).open()
        page = _asked(visitor, "env:CLINIC/answers")
        texts = [_released(visitor, page, "env:CLINIC/answers"), visitor.get("/").text]
        texts += [visitor.get(f"{page}/steps.{ending}").text for ending in ("py", "sh", "ipynb")]
        texts += [visitor.get("/release/means").text]
        assert visitor.get("/schema?data=env:OTHER/answers").status == 422
    texts += [one.read_text(errors="replace") for one in folder.iterdir() if one.is_file()]
    assert not any(PASSWORD in text for text in texts)
    assert (folder / "means.release.json").exists() and "env:CLINIC/answers" in texts[2]


def test_what_is_no_table(place, tmp_path_factory, monkeypatch):
    folder, data = place
    other = tmp_path_factory.mktemp("other")
    (folder / data.split("/")[0]).rename(other / "secret.db")
    (folder / "link.sqlite").symlink_to(other / "secret.db")
    own = Folder.at(folder)
    assert own.data() == []
    for name in (
        "link.sqlite/answers",
        "../other/secret.db/answers",
        "env:CLINIC/answers",
        "/etc/passwd",
        "x.sqlite/a",
    ):
        with pytest.raises((PlanError, SourceError)):
            own.records(name)
    monkeypatch.setenv("CLINIC", f"postgresql://me:{PASSWORD}@127.0.0.1:1/none")
    with pytest.raises(SourceError) as error:
        Folder.at(folder, ["CLINIC"])
    assert PASSWORD not in str(error.value)


def test_a_ledger_holds_no_records(tmp_path):
    Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=GDP(1.0)).close()
    (tmp_path / "book.sqlite").write_bytes((tmp_path / "ledger.db").read_bytes())
    own = Folder.at(tmp_path)
    assert own.data() == [] and own.ledgers() == ["ledger.db"]
    for name in ("ledger.db/entry", "book.sqlite/entry"):
        with refuses(SourceError):
            own.records(name)
