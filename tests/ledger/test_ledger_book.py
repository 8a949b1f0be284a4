"""One book, one process: open, charge, receipt, amend, show, find, back up; each refusal with its call that works."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.ledger.ledger_workers import ABOUT, PLAN, RELEASE, charge, gdp, release_digest
from tests.messages import refuses, warns

from confide.errors import BudgetExceeded, NoConversion, PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger import Charge, Ledger, Receipt
from confide.ledger.storage.sqlite import SQLiteStore


@pytest.fixture
def book(place: str | Path) -> Ledger:
    return Ledger.create(place, dataset="survey", budget=GDP(2.0), note="first wave")


@pytest.fixture
def in_file(path: Path) -> Ledger:
    return Ledger.create(path, dataset="survey", budget=GDP(2.0), note="first wave")


def test_a_bare_budget_means_add_remove_record_central(book: Ledger) -> None:
    assert (book.relation, book.unit, book.trust, book.currency) == ("add-remove", "record", "central", "GDP")
    assert book.budget == GDP(2.0, relation="add-remove")


@pytest.mark.parametrize(
    "budget",
    [GDP(1.0, 1e-6, relation="substitute"), ApproxDP(1.0, 1e-6), ZCDP(0.5), PureDP(1.0, trust="local")],
    ids=str,
)
def test_the_terms_of_a_budget_are_the_books(place: str | Path, budget: Guarantee) -> None:
    book = Ledger.create(place, dataset="survey", budget=budget)
    again = Ledger.open(place)
    assert again.currency == type(budget).__name__
    assert again.budget == budget.resolve(
        budget.relation or ("substitute" if budget.trust == "local" else "add-remove")
    )
    assert (again.relation, again.unit, again.trust) == (book.relation, budget.unit, budget.trust)
    assert again.verify().ok


def test_it_fits_exactly_to_the_last_unit(book: Ledger) -> None:
    for _ in range(4):
        charge(book, gdp(1.0))
    assert book.show().units["remaining_amount"] == 0
    with refuses(BudgetExceeded):
        charge(book, gdp(2.0**-30))


def test_one_unit_is_left_and_one_unit_fits(place: str | Path) -> None:
    book = Ledger.create(place, dataset="survey", budget=GDP(1.0, 2.0**-60))
    charge(book, gdp(0.5))
    with pytest.raises(BudgetExceeded):
        charge(book, gdp(0.5, 2.0**-59))
    charge(book, gdp(0.75**0.5 - 1e-9, 2.0**-60))
    with pytest.raises(BudgetExceeded):
        charge(book, gdp(1e-9, 2.0**-60))
    assert book.show().units["remaining_delta"] == 0


def test_an_adaptive_mixture_adds_up(place: str | Path) -> None:
    """Each next request depends on what the refusals and grants before it were."""
    book = Ledger.create(place, dataset="survey", budget=GDP(3.0, 1e-4))
    mixture: list[Guarantee] = [
        gdp(1.0),
        PureDP(1.0, relation="add-remove"),
        ApproxDP(0.5, 1e-5, relation="add-remove"),
    ]
    expected_amount = expected_delta = 0
    for step in range(60):
        wanted = mixture[(step + expected_amount) % 3]
        before = book.show().units
        try:
            done = charge(book, wanted)
        except BudgetExceeded:
            mixture = [gdp(0.3), PureDP(0.05, relation="add-remove"), gdp(0.1, 1e-6)]
            assert book.show().units == before
            continue
        assert done.statement == wanted
        gaussian, after = wanted.to_gdp(), book.show().units
        most = -int(-(gaussian.mu**2) * 2**40 // 1)
        taken = after["spent_amount"] - before["spent_amount"]
        # a Gaussian release costs its mu^2, another what it leaves, which is never more than by the curve above it
        assert taken == most if isinstance(wanted, GDP) else 0.6 * most < taken <= most + 1
        expected_amount += taken
        expected_delta += -int(-gaussian.delta * 2**60 // 1)
    units = book.show().units
    assert units["spent_amount"] == expected_amount
    assert abs(units["spent_delta"] - expected_delta) <= 60 * 256  # delta as a float has 53 bits, in units of 2^-60
    assert 0 < units["spent_amount"] <= units["limit_amount"]
    assert 0 < units["spent_delta"] <= units["limit_delta"]
    assert book.verify().ok


def test_a_refusal_writes_nothing(book: Ledger) -> None:
    before = book.show()
    for statements in ((gdp(2.1),), (ZCDP(0.1, relation="add-remove"),), (GDP(0.1, relation="substitute"),)):
        with pytest.raises((BudgetExceeded, NoConversion, PrivacyError)):
            charge(book, *statements)
        with pytest.raises((BudgetExceeded, NoConversion, PrivacyError)):
            book.preview(statements)
    assert book.show() == before


def test_a_preview_that_fits_charges_nothing(book: Ledger) -> None:
    book.preview((gdp(2.0),))
    assert book.show().units["spent_amount"] == 0


def test_charge_and_receipt(book: Ledger) -> None:
    paid = charge(book, GDP(0.9, 1e-3, relation="add-remove"), gdp(1.0))
    assert paid.statement == gdp(1.0)
    assert book.show().without_release == 1
    receipt = book.receipt(paid, release_sha256=RELEASE, version="0.1.0")
    assert (receipt.dataset, receipt.charge_seq, receipt.seq) == ("survey", paid.seq, paid.seq + 1)
    assert (receipt.method, receipt.plan_sha256, receipt.guarantee) == ("toy 1", PLAN, gdp(1.0))
    assert (receipt.release_sha256, receipt.version) == (RELEASE, "0.1.0")
    state = book.show()
    assert (state.without_release, state.tip) == (0, receipt.tip)
    assert book.find(RELEASE) == receipt
    assert book.find("0" * 64) is None
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt


def test_one_charge_pays_for_one_release(book: Ledger) -> None:
    paid = charge(book, gdp(1.0))
    book.receipt(paid, release_sha256=RELEASE, version="0.1.0")
    with refuses(ReleaseError):
        book.receipt(paid, release_sha256=release_digest(1), version="0.1.0")
    assert len(book.show().rows) == 3


def test_equal_releases_each_have_a_receipt(book: Ledger) -> None:
    """Two releases without a reply, of one plan, have one digest."""
    first, second = charge(book, gdp(0.5)), charge(book, gdp(0.5))
    book.receipt(first, release_sha256=RELEASE, version="0.1.0")
    latest = book.receipt(second, release_sha256=RELEASE, version="0.1.0")
    assert book.find(RELEASE) == latest
    assert book.verify(tips=[RELEASE]).ok


@pytest.mark.parametrize("change", [{"seq": 99}, {"seq": 1}, {"hash": "0" * 64}])
def test_a_charge_of_another_book_gets_no_receipt(book: Ledger, change: dict[str, object]) -> None:
    paid = charge(book, gdp(1.0))
    forged = Charge(**{"seq": paid.seq, "statement": paid.statement, "hash": paid.hash, "time": paid.time, **change})
    with refuses(ReleaseError):
        book.receipt(forged, release_sha256=RELEASE, version="0.1.0")


def test_an_unfinished_charge_is_never_refunded(book: Ledger) -> None:
    charge(book, gdp(2.0))
    assert book.verify().ok
    assert book.verify().without_release == (2,)
    with pytest.raises(BudgetExceeded):
        charge(book, gdp(1.0))


def test_amend_up_down_and_below_what_is_spent(book: Ledger) -> None:
    charge(book, gdp(2.0))
    book.amend(GDP(3.0), reason="second wave")
    assert book.budget == gdp(3.0)
    charge(book, gdp(1.0))
    book.amend(GDP(1.5), reason="complaint")
    assert book.show().remaining == "mu = 0"
    with refuses(BudgetExceeded):
        charge(book, gdp(2.0**-20))
    assert [row.note for row in book.show().rows if row.kind == "amend"] == ["second wave", "complaint"]
    assert book.show().units["spent_amount"] == 5 * 2**40
    assert book.verify().ok


def test_a_full_book_opens_again_by_an_amendment(place: str | Path) -> None:
    book = Ledger.create(place, dataset="survey", budget=PureDP(0.7))
    charge(book, PureDP(0.7, relation="add-remove"))
    book.amend(PureDP(1.0), reason="second wave")
    charge(book, PureDP(0.25, relation="add-remove"))
    assert book.verify().ok


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        (ZCDP(3.0), PrivacyError),
        (ApproxDP(1.0, 1e-6), PrivacyError),
        (GDP(3.0, relation="substitute"), PrivacyError),
        (GDP(3.0, unit="attribute"), PrivacyError),
        (GDP(2.0**-30), PrivacyError),
        ("GDP(3)", PrivacyError),
    ],
)
def test_an_amendment_changes_the_size_only(book: Ledger, budget: Guarantee, error: type[Exception]) -> None:
    before = book.show()
    with pytest.raises(error):
        book.amend(budget, reason="because")
    assert book.show() == before


@pytest.mark.parametrize("reason", ["", "  ", None])
def test_an_amendment_needs_a_reason(book: Ledger, reason: str) -> None:
    with refuses(PlanError):
        book.amend(GDP(3.0), reason=reason)


def test_datasets_share_a_file_and_no_budget(place: str | Path, book: Ledger) -> None:
    other = Ledger.create(place, dataset="register", budget=ZCDP(0.5))
    charge(book, gdp(2.0))
    charge(other, ZCDP(0.5, relation="add-remove"))
    assert Ledger.datasets(place) == ("register", "survey")
    assert [row.seq for row in other.show().rows] == [1, 2]
    assert other.verify().ok
    assert book.verify().ok
    with refuses(PlanError):
        Ledger.open(place)
    with refuses(PlanError):
        Ledger.open(place, dataset="census")


def test_create_never_overwrites(place: str | Path, book: Ledger) -> None:
    charge(book, gdp(1.0))
    with refuses(PlanError):
        Ledger.create(place, dataset="survey", budget=GDP(9.0))
    assert book.budget == gdp(2.0)
    assert book.show().units["spent_amount"] == 2**40


@pytest.mark.parametrize("content", [b"a,b\n1,2\n" * 200, b"x"])
def test_a_file_of_something_else_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for call in (
        lambda: Ledger.create(path, dataset="survey", budget=GDP(1.0)),
        lambda: Ledger.open(path),
        lambda: Ledger.datasets(path),
    ):
        with refuses(PlanError):
            call()
    assert path.read_bytes() == content


def test_another_sqlite_file_is_left_alone(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE budget (dataset)")
    for call in (lambda: Ledger.create(path, dataset="survey", budget=GDP(1.0)), lambda: Ledger.open(path)):
        with refuses(PlanError):
            call()


@pytest.mark.parametrize("tables", [0, 1])
def test_a_book_of_other_tables_is_refused(path: Path, in_file: Ledger, tables: int) -> None:
    import sqlite3

    in_file.close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {tables}")
    with refuses(PlanError):
        Ledger.open(path)


def test_an_empty_file_becomes_a_book(path: Path) -> None:
    """A crash between making the file and its tables must not block the path for ever."""
    path.touch()
    assert Ledger.create(path, dataset="survey", budget=GDP(1.0)).verify().ok
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_book_no_directory(path: Path) -> None:
    with refuses(PlanError):
        Ledger.open(path)
    assert not path.exists()
    with refuses(PlanError):
        Ledger.create(path.parent / "nowhere" / "ledger.db", dataset="survey", budget=GDP(1.0))


def test_a_wrong_budget_leaves_no_file(path: Path) -> None:
    for budget in (1.0, GDP(2.0**-30), None):
        with pytest.raises(PrivacyError):
            Ledger.create(path, dataset="survey", budget=budget)  # type: ignore[arg-type]
    for dataset in ("", " ", "a\nb", "x" * 201, 7):
        with refuses(PlanError):
            Ledger.create(path, dataset=dataset, budget=GDP(1.0))  # type: ignore[arg-type]
    for timeout in (-1, float("nan"), "60", True):
        with refuses(PlanError):
            Ledger.create(path, dataset="survey", budget=GDP(1.0), timeout=timeout)  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize("odd", ["a b", "100%", "what?", "a#b", "ä;ö", "..db", ":memory:"])
def test_any_file_name_will_do(tmp_path: Path, odd: str) -> None:
    book = Ledger.create(tmp_path / odd, dataset="ä b'c\"", budget=GDP(1.0))
    charge(book, gdp(0.5))
    assert (tmp_path / odd).stat().st_size > 0
    assert Ledger.open(tmp_path / odd).show().units["spent_amount"] == 2**38
    assert repr(book) == f"Ledger.open({str(tmp_path / odd)!r}, dataset={book.dataset!r})"


def test_only_the_owner_reads_any_of_its_files(tmp_path: Path, in_file: Ledger) -> None:
    charge(in_file, gdp(1.0))
    in_file.backup(tmp_path / "copy.db")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert {"ledger.db", "ledger.db-wal", "copy.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_backup_is_a_book(tmp_path: Path, in_file: Ledger) -> None:
    charge(in_file, gdp(1.0))
    in_file.backup(tmp_path / "copy.db")
    copy = Ledger.open(tmp_path / "copy.db")
    assert copy.show().rows == in_file.show().rows
    assert copy.verify().ok
    with refuses(PlanError):
        in_file.backup(tmp_path / "copy.db")


def test_the_statement_of_account(book: Ledger) -> None:
    paid = charge(book, gdp(1.0))
    book.receipt(paid, release_sha256=RELEASE, version="0.1.0")
    charge(book, gdp(0.5))
    state = book.show()
    assert [row.kind for row in state.rows] == ["open", "charge", "receipt", "charge"]
    assert [row.status for row in state.rows] == ["", "released", "", "without_release"]
    assert state.rows[0].note == "first wave"
    assert state.spent == state.rows[-1].spent == "mu = 1.11803"
    assert state.remaining == "mu = 1.65831"
    assert [row.share for row in state.rows] == [0, 0.25, 0, 0.0625] and state.used == 0.3125
    text = str(state)
    assert text.startswith("Dataset 'survey': 31.2% of the budget used, 68.8% left\n")
    for part in (
        "left mu = 1.65;",
        "at most 85% after",
        RELEASE[:8],
        "toy 1",
        "first wave",
        "without release: entry 4",
    ):
        assert part in text
    assert RELEASE not in text and max(map(len, text.split("\n"))) <= 80
    assert RELEASE in state.summary(verbose=True, utc=True)
    assert json.loads(json.dumps(state.to_dict()))["rows"][1]["status"] == "released"


def test_a_pair_is_shown_as_the_pair(place: str | Path) -> None:
    book = Ledger.create(place, dataset="survey", budget=ApproxDP(1.0, 1e-6))
    charge(book, ApproxDP(0.25, 1e-7, relation="add-remove"))
    assert (book.show().spent, book.show().state) == ("epsilon = 0.25, delta = 1e-07", "pair")
    assert book.show().remaining == "epsilon = 0.75, delta = 9e-07"


@pytest.mark.parametrize("digest", ["", "ab", "AB" * 32, "zz" * 32, None, "ab" * 32 + "\n"])
def test_digests_and_methods_are_checked_before_the_charge(book: Ledger, digest: str) -> None:
    with refuses(PlanError):
        book.charge((gdp(1.0),), **ABOUT, method="toy 1", plan_sha256=digest)
    with refuses(PlanError):
        book.charge((gdp(1.0),), **ABOUT, method="", plan_sha256=PLAN)
    assert len(book.show().rows) == 1
    paid = charge(book, gdp(1.0))
    with refuses(PlanError):
        book.receipt(paid, release_sha256=digest, version="0.1.0")


def test_a_network_disk_is_said_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.ledger.storage.sqlite.on_network", lambda path: True)
    with warns(UserWarning):
        book = Ledger.create(path, dataset="survey", budget=GDP(1.0))
    charge(book, gdp(0.5))
    assert not Path(f"{path}-wal").exists()


def test_the_connection_has_the_settings_that_durability_needs(path: Path, in_file: Ledger) -> None:
    wanted = {"synchronous": 2, "fullfsync": 1, "foreign_keys": 1, "busy_timeout": 60_000, "journal_mode": "wal"}
    with SQLiteStore(path, 60.0).reading() as connection:
        found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
        assert connection.isolation_level is None
    assert found == wanted


def test_a_preview_says_what_a_charge_then_takes(book: Ledger) -> None:
    quote = book.preview((gdp(1.0),))
    assert (quote.before, quote.last, quote.note) == (book.show().remaining, False, "")
    charge(book, gdp(1.0))
    assert book.show().remaining == quote.after
