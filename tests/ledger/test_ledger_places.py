"""Where a book may be: files, the ways to write a URL, what is refused; and a password that is shown nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.ledger.ledger_workers import ABOUT, charge, gdp, release_digest
from tests.messages import refuses

from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP
from confide.ledger import Ledger


@pytest.fixture
def book(url: str) -> Ledger:
    return Ledger.create(url, dataset="survey", budget=GDP(2.0))


SECRET = "hunter2-äß"


def test_a_password_is_nowhere(url: str) -> None:
    from urllib.parse import quote

    from sqlalchemy import make_url

    given = make_url(url)
    with_password = given.set(password=SECRET).update_query_dict({"application_name": "x"})
    text = with_password.render_as_string(hide_password=False)
    book = Ledger.create(text, dataset="survey", budget=GDP(2.0))
    paid = charge(book, gdp(0.5))
    receipt = book.receipt(paid, release_sha256=release_digest(1), version="test")
    told = [repr(book), book.place, str(book.show()), str(receipt), str(book.verify()), str(vars(book._store)["name"])]
    wrong: list[tuple[Any, ...]] = [
        (text, {"dataset": "nobody"}),
        (with_password.set(database="no_such_database").render_as_string(hide_password=False), {}),
        (with_password.set(username="no_such_role").render_as_string(hide_password=False), {}),
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
