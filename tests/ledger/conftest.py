"""Where the books of the tests are: a file, and a schema of its own on the server that CONFIDE_POSTGRES names."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.needs import need

SERVER = os.environ.get("CONFIDE_POSTGRES", "")
needs_server = pytest.mark.needs("PostgreSQL")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "ledger.db"


@pytest.fixture
def url() -> Iterator[str]:
    """A database that holds no book yet."""
    need("PostgreSQL")
    import psycopg

    plain = SERVER.replace("postgresql+psycopg://", "postgresql://")
    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(plain, autocommit=True) as server:
        server.execute(f'CREATE SCHEMA "{schema}"')
        yield f"{plain}{'&' if '?' in plain else '?'}options={quote(f'-csearch_path={schema}')}"
        server.execute(f'DROP SCHEMA "{schema}" CASCADE')


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_server)])
def place(request: pytest.FixtureRequest) -> str | Path:
    """A place for a book, of each kind."""
    found: str | Path = request.getfixturevalue({"sqlite": "path", "postgres": "url"}[request.param])
    return found
