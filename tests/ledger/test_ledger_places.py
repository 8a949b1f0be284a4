"""Where a book may be: files, the ways to write a URL, what is refused; and a password that is shown nowhere."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.ledger_workers import ABOUT, charge, gdp, release_digest
from tests.messages import refuses

from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.ledger.storage.address import Address


@pytest.fixture
def book(url: str) -> Ledger:
    return Ledger.create(url, dataset="survey", budget=GDP(2.0))


SECRET = "hunter2-äß"


def test_a_password_is_nowhere(url: str) -> None:
    from urllib.parse import quote

    given = Address.of(url)
    with_password = replace(given, password=SECRET, settings={**given.settings, "application_name": "x"})
    text = with_password.text(password=True)
    assert SECRET not in repr(with_password) and SECRET not in with_password.text()
    book = Ledger.create(text, dataset="survey", budget=GDP(2.0))
    paid = charge(book, gdp(0.5))
    receipt = book.receipt(paid, release_sha256=release_digest(1), version="test")
    told = [repr(book), book.place, str(book.show()), str(receipt), str(book.verify()), str(vars(book._store)["name"])]
    wrong: list[tuple[Any, ...]] = [
        (text, {"dataset": "nobody"}),
        (replace(with_password, database="no_such_database").text(password=True), {}),
        (replace(with_password, username="no_such_role").text(password=True), {}),
        (f"{text}&password={quote(SECRET)}&nonsense={quote(SECRET)}", {}),
        (f"postgresql://u:{quote(SECRET)}@127.0.0.1:not-a-port/db", {}),
        (f"postgresql://u:{quote(SECRET)}@127.0.0.1", {}),
        (f"mysql://u:{quote(SECRET)}@127.0.0.1/db", {}),
        (Path(f"postgresql://u:{quote(SECRET)}@127.0.0.1/db"), {}),
        (f"postgresql://u:{quote(SECRET)}@127.0.0.1:1/db", {"timeout": 0.0}),
    ]
    for place, more in wrong:
        with pytest.raises(ConfideError) as caught:
            Ledger.open(place, **more)
        told.append(str(caught.value))
    with pytest.raises(PlanError) as caught:
        Ledger.create(text, dataset="survey", budget=GDP(2.0))
    told.append(str(caught.value))
    for call in (lambda: book.backup("copy.dump"), lambda: book.path):
        with pytest.raises(PlanError) as caught:
            call()
        told.append(str(caught.value))
    assert "pg_dump" in told[-2]
    for line in told:
        assert SECRET not in line and quote(SECRET) not in line, line
    assert "places" not in repr(book) and repr(book).startswith("Ledger.open('postgresql://")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_scheme_may_be_written_in_three_ways(url: str, book: Ledger, scheme: str) -> None:
    assert Ledger.open(f"{scheme}://{url.split('://', 1)[1]}").dataset == "survey"


@pytest.mark.parametrize(
    "place",
    [
        "mysql://host/db",
        "postgresql+asyncpg://host/db",
        "sqlite:///ledger.db",
        "postgresql://host",
        "postgresql://host:port/db",
        Path("postgresql://host/db"),
    ],
)
def test_other_places_are_refused_with_the_call_that_works(place: str | Path) -> None:
    """Needs no server."""
    for call in (Ledger.open, Ledger.datasets):
        with refuses(PlanError):
            call(place)


def test_texts_that_a_database_cannot_hold_are_refused(place: str | Path) -> None:
    book = Ledger.create(place, dataset="survey", budget=GDP(2.0))
    for text in ("a\x00b", "\ud800"):
        with refuses(PlanError):
            book.amend(GDP(3.0), reason=text)
        with refuses(PlanError):
            book.charge((gdp(0.5),), **ABOUT, method=text, plan_sha256="0" * 64)
        with refuses(PlanError):
            Ledger.create(place, dataset="other", budget=GDP(3.0), note=text)
    book.amend(GDP(3.0), reason="Beschluß 12: 数 😀 'quoted' \"so\" \\ \n%s :x")
    assert book.verify().ok


def test_a_ledger_in_a_file_loads_no_driver_of_a_server_and_no_table_library(path: Path) -> None:
    """In a process of its own: created, charged, shown and verified."""
    code = f"""
import sys
from confide.guarantees import GDP
from confide.ledger import Ledger
book = Ledger.create({str(path)!r}, dataset="survey", budget=GDP(1.0))
terms = dict(dataset="survey", unit="record", rows_per_unit=1)
paid = book.charge((GDP(0.5, relation="add-remove"),), **terms, method="toy 1", plan_sha256="0" * 64)
book.receipt(paid, release_sha256="0" * 64, version="test")
assert book.verify().ok and book.show().without_release == 0 and book.buys()
heavy = ("pandas", "polars", "pyarrow", "sqlalchemy", "psycopg", "scipy.special._logsumexp", "scipy.linalg", "scipy.optimize")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("url", "settings", "shown"),
    [
        (
            "postgresql://u%40x:p%2Fw:/@db.example:5433/my%20base?sslmode=require&password=q",
            {
                "user": "u@x",
                "password": "q",
                "host": "db.example",
                "port": 5433,
                "dbname": "my base",
                "sslmode": "require",
            },
            "postgresql://u%40x:***@db.example:5433/my base?sslmode=require",
        ),
        (
            "postgres://[::1]/base?options=-csearch_path%3Done+-cgeqo=off",
            {"host": "::1", "dbname": "base", "options": "-csearch_path=one -cgeqo=off"},
            "postgresql://[::1]/base?options=-csearch_path%3Done+-cgeqo%3Doff",
        ),
        (
            "postgresql+psycopg:///base?host=%2Ftmp%2Fserver",
            {"host": "/tmp/server", "dbname": "base"},
            "postgresql:///base?host=%2Ftmp%2Fserver",
        ),
        (
            "postgresql://u@/base?host=one:5432&host=other:5433",
            {"user": "u", "host": "one,other", "port": "5432,5433", "dbname": "base"},
            "postgresql://u@/base?host=one%2Cother&port=5432%2C5433",
        ),
    ],
)
def test_a_url_is_read_as_its_parts(url: str, settings: dict[str, Any], shown: str) -> None:
    address = Address.of(url)
    assert address.driver_settings() == settings
    assert address.text() == shown
    assert Address.of(address.text(password=True)) == address


def test_a_server_without_its_driver_is_refused_with_the_call_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "confide.ledger.storage.postgres", raising=False)
    with refuses(PlanError):
        Ledger.open("postgresql://somebody@host/ledger")
