"""A book on a server: lost connections, lost answers to COMMIT, forks, rights, passwords."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from tests.ledger.ledger_workers import charge, gdp, in_child
from tests.messages import refuses

from confide.errors import LedgerBusy, PlanError
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.ledger.storage.address import Address
from confide.ledger.storage.places import store_of

UNIT = 2**38  # what GDP(0.5) costs


@pytest.fixture
def book(url: str) -> Ledger:
    return Ledger.create(url, dataset="survey", budget=GDP(2.0))


def sql(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as session:
        found = session.execute(statement, values)  # type: ignore[call-overload]
        return found.fetchall() if found.description else []


def session_of(book: Ledger) -> int:
    """The server's process behind the book's one idle connection."""
    with book._store.reading() as connection:
        return int(connection.execute("SELECT pg_backend_pid()").fetchone()[0])


@contextmanager
def proxy(url: str, cut: Callable[[bytes], tuple[bool, bool]]) -> Iterator[str]:
    """A server in between. cut(what the client sends) -> (pass it on, then break the connection)."""
    import psycopg

    with psycopg.connect(url) as session:
        host, port = session.info.host, session.info.port
    family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
    target: Any = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
    door = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        server = socket.socket(family)
        server.connect(target)

        def back() -> None:
            with suppress(OSError):
                while said := server.recv(65536):
                    client.sendall(said)

        threading.Thread(target=back, daemon=True).start()
        with suppress(OSError):
            while said := client.recv(65536):
                on, broken = cut(said)
                if broken:
                    client.shutdown(socket.SHUT_RDWR)  # before the answer can come
                if on:
                    server.sendall(said)
                if broken:
                    time.sleep(0.3)  # the server does what it was told
                    break
        client.close()
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    inner = Address.of(url)
    query = {key: value for key, value in inner.settings.items() if key not in {"host", "port"}}
    query |= {"sslmode": "disable", "gssencmode": "disable"}
    try:
        yield replace(inner, host="127.0.0.1", port=door.getsockname()[1], settings=query).text(password=True)
    finally:
        door.close()


COMMIT = b"\x0bCOMMIT\x00"


def once(word: bytes, passes: bool) -> Callable[[bytes], tuple[bool, bool]]:
    """Break the connection at the first message with a word in it, from the first lock on; it reaches the server or not."""
    locked: list[bool] = []
    done: list[bool] = []

    def cut(said: bytes) -> tuple[bool, bool]:
        if b"FOR UPDATE" in said:
            locked.append(True)
        if locked and word in said and not done:
            done.append(True)
            return passes, True
        return True, False

    return cut


def test_a_lost_answer_to_commit_is_taken_as_charged(url: str, book: Ledger) -> None:
    """The server has committed, nobody was told: the charge stands, and nothing may be released."""
    with proxy(url, once(COMMIT, True)) as through:
        far = Ledger.open(through)
        with refuses(LedgerBusy):
            charge(far, gdp(0.5))
        deadline = time.monotonic() + 120
        while book.show().units["spent_amount"] != UNIT:  # the server is told when the client is cut off already
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert book.show().without_release == 1
        assert charge(far, gdp(0.5)).seq == 3
    assert book.verify().ok


def test_a_commit_that_never_arrived_is_not_called_uncharged(url: str, book: Ledger) -> None:
    with proxy(url, once(COMMIT, False)) as through:
        far = Ledger.open(through)
        with refuses(LedgerBusy):
            charge(far, gdp(0.5))
    assert book.show().units["spent_amount"] == 0
    assert charge(book, gdp(0.5)).seq == 2
    assert book.verify().ok


@pytest.mark.parametrize("word", [b"FOR UPDATE", b"INSERT INTO entry", b"UPDATE budget"])
def test_a_connection_lost_before_commit_charges_nothing(url: str, book: Ledger, word: bytes) -> None:
    with proxy(url, once(word, True)) as through:
        far = Ledger.open(through)
        with refuses(LedgerBusy):
            charge(far, gdp(0.5))
        assert book.show().units["spent_amount"] == 0
        assert charge(far, gdp(0.5)).seq == 2
    assert book.verify().ok


def test_sessions_that_the_server_ended_are_opened_again(url: str, book: Ledger) -> None:
    charge(book, gdp(0.5))
    sql(url, "SELECT pg_terminate_backend(%s)", session_of(book))
    assert charge(book, gdp(0.5)).seq == 3


def test_a_session_ended_within_a_transaction_charges_nothing(
    url: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confide.ledger.storage import rows

    append = rows.append

    def ended(connection: Any, *arguments: Any, **columns: Any) -> Any:
        row = append(connection, *arguments, **columns)
        sql(url, "SELECT pg_terminate_backend(%s)", connection.execute("SELECT pg_backend_pid()").fetchone()[0])
        return row

    monkeypatch.setattr(rows, "append", ended)
    with pytest.raises(LedgerBusy):
        charge(book, gdp(0.5))
    monkeypatch.undo()
    assert book.show().units["spent_amount"] == 0
    assert charge(book, gdp(0.5)).seq == 2


def test_a_failed_transaction_is_never_committed_in_silence(book: Ledger, url: str) -> None:
    """The server answers COMMIT of a failed transaction with a rollback and no error."""
    store = store_of(url, 5.0)
    with (
        refuses(PlanError),
        store.writing() as connection,
        suppress(Exception),
    ):
        connection.execute("SELECT 1/0")


def test_a_server_that_is_gone_is_waited_for(url: str) -> None:
    with socket.socket() as taken:  # bound, so that nobody else answers there, and not listening
        taken.bind(("127.0.0.1", 0))
        begun = time.monotonic()
        with refuses(LedgerBusy):
            Ledger.open(f"postgresql://somebody@127.0.0.1:{taken.getsockname()[1]}/ledger", timeout=1.0)
        assert 0.7 < time.monotonic() - begun < 50  # of 1 s asked for; the default is 60


def test_a_server_that_comes_back_in_time_is_used(url: str, book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused connections, then a server: as at a restart."""
    import psycopg

    refusals: list[int] = []
    real = psycopg.connect

    def connecting(*arguments: Any, **settings: Any) -> Any:
        if len(refusals) < 3:
            refusals.append(1)
            raise psycopg.OperationalError("FATAL:  the database system is starting up")
        return real(*arguments, **settings)

    patient = Ledger.open(url, timeout=20)
    patient.close()
    monkeypatch.setattr(psycopg, "connect", connecting)
    assert charge(patient, gdp(0.5)).seq == 2
    monkeypatch.undo()
    assert len(refusals) == 3


def test_a_child_neither_uses_nor_closes_its_parents_session(book: Ledger) -> None:
    charge(book, gdp(0.5))
    before = session_of(book)

    def body() -> str:
        import gc

        inside = session_of(book)
        charge(book, gdp(0.5))
        book.close()
        gc.collect()
        return str(inside)

    assert in_child(body) not in {str(before), ""}
    pid = os.fork()
    if pid == 0:  # a child that ends in the ordinary way, with everything that runs at exit
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(pid, 0)
    assert session_of(book) == before
    assert charge(book, gdp(0.5)).seq == 4
    assert book.verify().ok


def test_what_a_transaction_is_sure_of(url: str, book: Ledger) -> None:
    """Whatever the role's defaults are: one view to read; to write, rows as they are after the lock, and a real flush."""
    settings = "-cdefault_transaction_isolation=serializable -csynchronous_commit=off"
    odd = f"{url}%20{settings.replace(' ', '%20').replace('=', '%3D')}"
    store = store_of(odd, 5.0)
    names = "current_setting('transaction_isolation')"
    names += ", current_setting('synchronous_commit'), current_setting('lock_timeout')"
    with store.reading() as connection:
        assert connection.execute(f"SELECT {names}").fetchone()[:1] == ("repeatable read",)
    with store.writing() as connection:
        found = connection.execute(f"SELECT {names}").fetchone()
    assert found == ("read committed", "on", "5s")
    assert charge(Ledger.open(odd), gdp(0.5)).seq == 2


def test_a_statement_of_account_is_of_one_moment(book: Ledger) -> None:
    """A charge between reading the budget row and reading the chain must not look like damage."""
    from confide.ledger.storage import rows

    chain = rows.chain_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "chain_rows", lambda *what: (charge(book, gdp(0.25)), chain(*what))[1])
        assert book.verify().ok
        assert len(book.show().rows) == 2
    assert len(book.show().rows) == 3


def test_what_is_no_book_is_refused(url: str) -> None:
    with refuses(PlanError):
        Ledger.open(url)
    sql(url, "CREATE TABLE entry (x int)")
    with refuses(PlanError):
        Ledger.create(url, dataset="survey", budget=GDP(1.0))
    sql(url, "DROP TABLE entry")
    Ledger.create(url, dataset="survey", budget=GDP(1.0))
    sql(url, "UPDATE confide_ledger SET format = 3")
    with refuses(PlanError):
        Ledger.open(url)
    sql(url, "UPDATE confide_ledger SET format = 2, application = 'other'")
    with refuses(PlanError):
        Ledger.open(url)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE budget SET spent_amount = spent_amount - 1",
        "UPDATE budget SET limit_amount = limit_amount + 1",
        "DELETE FROM entry WHERE seq = 3",
        "UPDATE entry SET amount = amount - 1 WHERE seq = 2",
        "UPDATE entry SET method = 'other 1' WHERE seq = 2",
    ],
)
def test_changes_by_hand_are_found(url: str, book: Ledger, change: str) -> None:
    for _ in range(2):
        charge(book, gdp(0.5))
    assert book.verify().ok
    sql(url, change)
    assert not book.verify().ok


def test_a_role_that_charges_cannot_rewrite(url: str, book: Ledger) -> None:
    """The rights of the manual: enough to charge, and never to change or remove an entry."""
    import psycopg

    schema = sql(url, "SELECT current_schema()")[0][0]
    role = f"clerk_{schema}"
    try:
        sql(url, f'CREATE ROLE "{role}" LOGIN')
    except psycopg.errors.InsufficientPrivilege:
        pytest.skip("the role of CONFIDE_POSTGRES may not create roles")
    try:
        sql(url, f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
        sql(url, f'GRANT SELECT ON confide_ledger, budget, entry, stream_output TO "{role}"')
        clerk = replace(Address.of(url), username=role).text(password=True)
        try:
            limited = Ledger.open(clerk)
        except PlanError:
            pytest.skip("the server lets no new role in without a password")
        with refuses(LedgerBusy):
            charge(limited, gdp(0.5))
        sql(url, f'GRANT INSERT ON entry TO "{role}"')
        sql(url, f'GRANT UPDATE ON budget TO "{role}"')
        assert charge(limited, gdp(0.5)).seq == 2
        assert limited.verify().ok
        for change in ("UPDATE entry SET amount = 0", "DELETE FROM entry"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sql(clerk, change)
        limited.amend(gdp(3.0), reason="mine")  # these rights alone let a clerk amend, and it is seen
        assert [entry.note for entry in book.show().rows if entry.kind == "amend"] == ["mine"]
        sql(url, "ALTER TABLE entry ENABLE ROW LEVEL SECURITY")
        sql(url, "CREATE POLICY readers ON entry FOR SELECT USING (true)")
        sql(url, f"CREATE POLICY charges ON entry FOR INSERT TO \"{role}\" WITH CHECK (kind IN ('charge', 'receipt'))")
        with pytest.raises(LedgerBusy):
            limited.amend(gdp(9.0), reason="mine")
        assert book.budget == gdp(3.0)
        assert charge(limited, gdp(0.5)).seq == 4
        book.amend(gdp(4.0), reason="the owner's")
        assert book.verify().ok
        limited.close()
    finally:
        sql(url, f'DROP OWNED BY "{role}"')
        sql(url, f'DROP ROLE "{role}"')


def test_a_read_only_server_charges_nothing_and_says_so(url: str, book: Ledger) -> None:
    standby = Ledger.open(f"{url}%20-cdefault_transaction_read_only%3Don")
    with refuses(LedgerBusy):
        charge(standby, gdp(0.5))
    assert standby.show().units["spent_amount"] == 0
