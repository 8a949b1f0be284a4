"""Files that the browser sends into the folder: what is kept and shown, and that hostile names and forms leave nothing."""

from __future__ import annotations

import sqlite3
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.studio.served import LEDGER, MEANS, SCHEMA, Visitor, prepared, served, survey

from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.studio import upload

CSV = b"age,region\n31,N\n57,S\n"


@pytest.fixture
def visitor(tmp_path):
    with served(tmp_path) as studio:
        yield Visitor(studio).open()


def _alike(page: str, visitor: Visitor, folder) -> str:
    """A page without what has other digits in each run: the field of its forms, and the path of the test's folder."""
    return page.replace(visitor.studio.keys.form, "").replace(str(folder), "")


def _names(folder) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_file_is_kept_and_described(visitor, tmp_path):
    assert "Choose a file, or drop one here" in visitor.get("/").text
    content = CSV + b"4,\x00\xff\r\n-- edge\r\n\r\n" * 5_000
    answer = visitor.send("survey 2024.csv", content)
    assert answer.status == 303 and answer.headers["location"] == "/schema?data=survey%202024.csv"
    place = tmp_path / "survey 2024.csv"
    assert place.read_bytes() == content and place.stat().st_mode & 0o777 == 0o600 and _names(tmp_path) == [place.name]
    page = visitor.get(answer.headers["location"]).text
    assert "region" in page and "57" not in _alike(page, visitor, tmp_path)


def test_what_a_first_line_lacks_is_told_in_the_studios_words(visitor, tmp_path):
    for line in (b"1,2\n", b"1;2\n", b""):
        text = visitor.send("x.csv", line).text
        assert "x.csv" in text and "Schema.draft" not in text and str(tmp_path) not in text and _names(tmp_path) == []


@pytest.mark.parametrize("line", [b"age;region\n", b"age\tregion\n"])
def test_a_file_without_commas_is_described(visitor, line):
    answer = visitor.send("x.csv", line)
    assert answer.status == 303 and "region" in visitor.get(answer.headers["location"]).text


def test_names_in_other_letters(visitor, tmp_path):
    for name in ("Erhebung Größe.csv", "調査.csv", "o'x & co.csv"):
        assert visitor.send(name, CSV).status == 303 and (tmp_path / name).read_bytes() == CSV


def test_a_database_a_schema_and_a_request_are_shown(visitor, tmp_path, tmp_path_factory):
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path_factory.mktemp("made") / "a.sqlite") as made:
        made.execute("create table answers (age int)")
        content = made.serialize()
    made.close()
    assert visitor.send("a.sqlite", content).headers["location"] == "/schema?data=a.sqlite/answers"
    other = tmp_path_factory.mktemp("analyst")
    survey(other, 50)
    with served(other) as studio:
        prepared(Visitor(studio).open())
    for name, page in (("survey.schema.toml", "/schema/survey.schema.toml"), ("means.request.json", "/request/means")):
        assert visitor.send(name, (other / name).read_bytes()).headers["location"] == page
        assert visitor.get(page).status == 200


def test_nothing_is_written_over(visitor, tmp_path):
    survey(tmp_path, 50)
    prepared(visitor)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    (tmp_path / "away.csv").symlink_to(tmp_path.parent / "nowhere.csv")
    (tmp_path / "near.csv").symlink_to(tmp_path / "nothing.csv")
    (tmp_path / "b.sqlite-wal").write_bytes(b"what another database left")
    for name in ("survey.csv", "survey.schema.toml", "means.request.json", "away.csv", "near.csv", "b.sqlite"):
        answer = visitor.send(name, CSV)
        assert answer.status == 422, name
    assert {one: (tmp_path / one).read_bytes() for one in before} == before
    assert not (tmp_path / "nothing.csv").exists() and not (tmp_path.parent / "nowhere.csv").exists()


def test_a_request_takes_no_other_ones_decision(visitor, tmp_path):
    survey(tmp_path, 50)
    page = prepared(visitor)
    visitor.post(f"{page}/refuse", {"reason": "too dear"})
    content = (tmp_path / "means.request.json").read_bytes()
    (tmp_path / "means.request.json").unlink()
    assert "would be taken for this request" in visitor.send("means.request.json", content).text


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv", "..", ".", "", "/etc/cron.d/x.csv", "a/../../x.csv", "a\\b.csv", "C:\\x\\..\\a\\b.csv/", ".hidden.csv",
        b"a\x00.csv", b"a\n.csv", b"\xff\xfe.csv", "\u202egnp.csv", "x" * 300 + ".csv", "x" * 5_000 + ".csv", "%2e%2e%2fx.csv/..",
        "ledger.db", "BOOK.DB", "x.db", "x.release.json", "x.decision.json", "x.toml", "x.html", "x.py", "x", "x.csv.exe", "ledger.db-wal",
        "-ox.csv", "--ledger=x.csv",
    ],
)  # fmt: skip
def test_hostile_names_leave_nothing(visitor, tmp_path, name):
    assert visitor.post("/ledger", LEDGER).status == 303
    before, around = _names(tmp_path), _names(tmp_path.parent)
    answer = visitor.send(name, CSV)
    assert answer.status == 422, answer.text
    assert _names(tmp_path) == before and _names(tmp_path.parent) == around


def test_what_is_not_what_its_name_says_is_not_kept(visitor, tmp_path, tmp_path_factory):
    book = tmp_path_factory.mktemp("other") / "ledger.db"
    Ledger.create(book, dataset="survey", budget=GDP(5.0)).close()
    hostile = {
        "a.csv": b"",
        "records.csv": b"31,57\n12,13\n",
        "b.parquet": CSV,
        "c.sqlite": CSV,
        "d.sqlite": book.read_bytes(),
        "e.duckdb": b"\0" * 8 + b"DUCK" + b"\xff" * 5_000,
        "f.schema.toml": b"columns = 3",
        "g.request.json": b'{"plan": {"method": {"name": "os.system"}}}',
        "h.request.json": b"[" * 100_000,
        "i.csv.gz": b"\x1f\x8b" + b"\xff" * 40,
    }
    for name, content in hostile.items():
        answer = visitor.send(name, content)
        assert answer.status == 422, name
        assert "31" not in _alike(answer.text, visitor, tmp_path) and _names(tmp_path) == [], name


def test_hostile_columns_run_nothing(visitor, tmp_path):
    names = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "a\u202eb",
        "{{ 7 * 7 }}",
        "'; drop table x;--",
        "",
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: [1.5] for name in names}), sink)
    page = visitor.get(visitor.send("p.parquet", sink.getvalue().to_pybytes()).headers["location"]).text
    assert "<script>" not in page and "<img" not in page and "{{ 7 * 7 }}" in page and ">a\u202eb" not in page
    form = SCHEMA | {"data": "p.parquet", **{f"kind{at}": "" for at in range(6)}}
    form |= {"kind0": "numeric", "values0": "0-2", "values1": "", "from0": "<script>", "kind1": ""}
    answer = visitor.post("/schema", form)
    assert answer.status in (303, 422)
    if answer.status == 303:
        answer = visitor.get(answer.headers["location"])
    assert "<script>" not in answer.text


def test_forms_that_are_not_the_pages_own(visitor, tmp_path):
    before = {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Content-Type": "text/plain"}
    for headers in (*before, {"Content-Type": "application/x-www-form-urlencoded"}, {"Cookie": "x=y"}):
        assert visitor.send("x.csv", CSV, **headers).status == 403
    for csrf in ("", "guessed", "x" * 10_000):
        answer = visitor.send("x.csv", CSV, csrf=csrf)
        assert answer.status == 403 and "Nothing was done" in answer.text
    own = b'Content-Disposition: form-data; name="csrf"\r\n\r\n' + visitor.studio.keys.form.encode()
    file = b'Content-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n' + CSV
    for parts, status in (([file, own], 403), ([file], 403), ([own], 422), ([own, file, file], 422), ([], 422)):
        assert visitor.send_parts(parts).status == status
    assert visitor.send("x.csv", CSV, **{"Content-Type": "multipart/form-data"}).status == 422
    assert visitor.send("x.csv", CSV, **{"Content-Type": "multipart/form-data; boundary=other"}).status == 422
    assert _names(tmp_path) == []


def test_what_is_too_large_is_refused_before_it_is_read(visitor, tmp_path, monkeypatch):
    answer = visitor.send("x.csv", CSV, **{"Content-Length": str(upload.LARGEST + 1)})
    assert answer.status == 403
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr(upload.shutil, "disk_usage", lambda _: usage)
    assert "no room" in visitor.send("x.csv", CSV * 10).text
    assert _names(tmp_path) == []


def test_a_form_that_breaks_off_leaves_nothing(visitor, tmp_path):
    import socket
    import time

    own = visitor.studio.keys.form
    body = f'--edge\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{own}\r\n--edge\r\n'
    body += 'Content-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\nage,region\n31,N\n'
    host = f"127.0.0.1:{visitor.studio.port}"
    head = f"POST /records HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {visitor.cookie}\r\n"
    head += "Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: 100000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", visitor.studio.port)) as link:
        link.sendall((head + body).encode())
        while not _names(tmp_path):
            time.sleep(0.01)
        (part,) = tmp_path.iterdir()
        assert part.name.startswith(".") and part.stat().st_mode & 0o777 == 0o600
        assert "There are no records" in visitor.get("/").text
    while _names(tmp_path):
        time.sleep(0.01)


def test_a_sent_file_is_asked_like_any_other(visitor, tmp_path, tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    survey(made)
    page = visitor.send("survey.csv", (made / "survey.csv").read_bytes()).headers["location"]
    assert "income" in visitor.get(page).text
    prepared(visitor)
    asked = urlencode(MEANS)
    assert "Plan ID" in visitor.get(f"/forecast?{asked}").text
