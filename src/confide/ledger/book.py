"""The budget book of a dataset: charge before the noise, receipt after the release, and nothing is ever given back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from confide.errors import ConfideError, LedgerBusy, PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.ledger import rows
from confide.ledger.account import Account
from confide.ledger.chain import (
    GENESIS,
    charge_delta_to_text,
    guarantee_from_text,
    guarantee_to_text,
    statements_to_text,
)
from confide.ledger.currency import checked_delta, currency_of
from confide.ledger.decision import choose
from confide.ledger.places import check_text, checked_path, store_of
from confide.ledger.records import Charge, LedgerState, Quote, Receipt, Verification
from confide.ledger.refusal import quote
from confide.ledger.statement import statement_of_account
from confide.ledger.store import Store
from confide.ledger.units import ZERO
from confide.ledger.verify import examine

__all__ = ["Ledger"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Ledger:
    """A budget book, open for one dataset: a file (SQLite), or a database of a PostgreSQL server for a team.

    Any number of datasets share a book. Safe for threads, processes and forks. Everything in it is public: nothing
    comes from a record. Made by `Ledger.create` and `Ledger.open`.

    >>> import tempfile
    >>> from confide.guarantees import GDP
    >>> book = Ledger.create(Path(tempfile.mkdtemp()) / "book.db", dataset="survey", budget=GDP(2.0))
    >>> charge = book.charge((GDP(1.0, relation="add-remove"),), method="mean 1", plan_sha256="0" * 64)
    >>> receipt = book.receipt(charge, release_sha256="1" * 64, version="0.1.0")
    >>> book.find("1" * 64) == receipt
    True
    >>> book.amend(GDP(3.0), reason="board decision 12")
    >>> print(book.budget, "|", book.show().spent)
    GDP(mu=3, add-remove) | mu = 1, mu^2 = 1, delta = 0
    >>> Ledger.open(book.path).verify(heads=[receipt]).ok
    True
    """

    def __init__(self, store: Store, dataset: str) -> None:
        self._store = store
        self._dataset = dataset

    @classmethod
    def create(
        cls, path: str | Path, *, dataset: str, budget: Guarantee, note: str = "", timeout: float = 60.0
    ) -> Ledger:
        """Open a budget for a dataset, in a new file (mode 0600) or in an existing book; never overwrites.

        path: a file, or a URL such as "postgresql://user@host/database" (extra `postgres`; there the database's rights
        say who may do what). budget: GDP, ApproxDP, ZCDP or PureDP; its class is the book's currency for good. A
        relation left open means add-remove. timeout: seconds to wait for another process's lock.

        Raises `PlanError` (the dataset has a budget, or the file is something else), `PrivacyError` (not a budget),
        `LedgerBusy`.

        >>> import tempfile
        >>> from confide.guarantees import ZCDP
        >>> Ledger.create(Path(tempfile.mkdtemp()) / "book.db", dataset="survey", budget=ZCDP(0.5)).relation
        'add-remove'
        """
        _check_dataset(dataset)
        check_text("note", note)
        currency = currency_of(budget)
        full = budget if budget.complete else budget.resolve("add-remove")
        relation = full.relation or ""
        new = Account(dataset, currency, relation, full.unit, full.trust, full, currency.limit(full), ZERO, 0, GENESIS)
        store = store_of(path, timeout)
        store.create()
        with store.writing(creating=True) as connection:
            if rows.budget_row(connection, dataset) is not None:
                raise PlanError(
                    f"dataset {dataset!r} has a budget in {store.name} already, and a budget is never overwritten; use "
                    f"it: Ledger.open({store.target!r}, dataset={dataset!r}); change it: book.amend(budget, "
                    "reason='...')"
                )
            rows.open_book(connection, new, note)
        return cls(store, dataset)

    @classmethod
    def open(cls, path: str | Path, *, dataset: str | None = None, timeout: float = 60.0) -> Ledger:
        """Open a dataset's book, in a file or at a URL; `dataset` may be left out when there is exactly one.

        Raises `PlanError` (no such book or dataset, or several), `LedgerBusy`.
        """
        store = store_of(path, timeout)
        store.check()
        with store.reading() as connection:
            known = rows.dataset_names(connection)
        listed = ", ".join(repr(name) for name in known) or "none"
        if dataset is None:
            if len(known) != 1:
                raise PlanError(
                    f"{store.name} holds the datasets {listed}; say which: Ledger.open({store.target!r}, dataset=...)"
                )
            dataset = known[0]
        if dataset not in known:
            raise PlanError(
                f"there is no dataset {dataset!r} in {store.name}; it holds {listed}; open a budget for it: "
                f"Ledger.create({store.target!r}, dataset={dataset!r}, budget=...)"
            )
        return cls(store, dataset)

    @staticmethod
    def datasets(path: str | Path) -> tuple[str, ...]:
        """The names of the datasets in a book, sorted; `PlanError` when it is no book."""
        store = store_of(path, 60.0)
        try:
            store.check()
            with store.reading() as connection:
                return rows.dataset_names(connection)
        finally:
            store.close()

    @property
    def path(self) -> Path:
        """The file, absolute; `PlanError` when the book is on a server (`place` says where)."""
        return self._store.path

    @property
    def place(self) -> str:
        """Where the book is, to be shown: the file, or the server's URL without its password."""
        return self._store.name

    @property
    def dataset(self) -> str:
        """The dataset that this book is open for."""
        return self._dataset

    @property
    def budget(self) -> Guarantee:
        """The budget as it stands now, amendments included."""
        return self._account().budget

    @property
    def relation(self) -> str:
        """The neighbouring relation of every charge."""
        return self._account().relation

    @property
    def unit(self) -> str:
        """What is protected: "record", ..."""
        return self._account().unit

    @property
    def trust(self) -> str:
        """Who is trusted with the records: "central" or "local"."""
        return self._account().trust

    @property
    def currency(self) -> str:
        """What the book counts in: "GDP", "ZCDP", "PureDP" or "ApproxDP"."""
        return self._account().currency.name

    def preview(self, statements: Sequence[Guarantee], *, charge_delta: float | None = None) -> Quote:
        """What `charge` would charge for these statements as the book stands, or raise; no charge, no lock.

        >>> import tempfile
        >>> from confide.guarantees import GDP
        >>> book = Ledger.create(Path(tempfile.mkdtemp()) / "book.db", dataset="survey", budget=GDP(1.0))
        >>> print(book.preview((GDP(0.6, relation="add-remove"),)).after)
        mu = 0.8, mu^2 = 0.64, delta = 0
        """
        account = self._account()
        chosen = choose(account, statements, charge_delta)
        return quote(account, chosen.statement, chosen.price)

    def charge(
        self, statements: Sequence[Guarantee], *, method: str, plan_sha256: str, charge_delta: float | None = None
    ) -> Charge:
        """Charge the cheapest of a release's proved statements that converts and fits.

        When this returns, the charge is on disk and noise may be drawn. statements: complete guarantees of one release,
        each proved, in the book's relation, unit and trust. charge_delta: where a `TradeOff` statement is charged, as
        the GDP(mu, charge_delta) that follows from it (books in GDP and ApproxDP); rounded down to units of 2^-60.

        Raises `BudgetExceeded` (does not fit), `NoConversion` or `PrivacyError` (cannot be counted here), `PlanError`
        (arguments, a damaged book), `LedgerBusy` (locked, read-only, disk full). Nothing was charged then, unless
        `LedgerBusy` says that this is not known.
        """
        if not isinstance(method, str) or not method:
            raise PlanError(f"method must be a method's name and version, got {method!r}; for instance method='ssp 1'")
        check_text("method", method)
        _check_digest("plan_sha256", plan_sha256)
        self.preview(statements, charge_delta=charge_delta)  # a refusal needs no lock; a grant is decided only under it
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
            chosen = choose(account, statements, charge_delta)
            row = rows.append(
                connection,
                account,
                price=chosen.price,
                kind="charge",
                guarantee=guarantee_to_text(chosen.statement),
                statements=statements_to_text(tuple(statements)),
                method=method,
                plan_sha256=plan_sha256,
                note=charge_delta_to_text(checked_delta(charge_delta)),
            )
        return Charge(row["seq"], chosen.statement, row["hash"], row["time"])

    def receipt(self, charge: Charge, *, release_sha256: str, version: str) -> Receipt:
        """Record that a charge became a release. One charge pays for one release.

        Raises `ReleaseError` (the charge is not in this book, or has a receipt), `PlanError` (arguments), `LedgerBusy`;
        the charge stays in any case.
        """
        _check_digest("release_sha256", release_sha256)
        check_text("version", version)
        try:
            with self._store.writing() as connection:
                account = rows.locked_account(connection, self._dataset)
                paid = rows.unpaid_charge(connection, self._dataset, charge)
                row = rows.append(
                    connection,
                    account,
                    kind="receipt",
                    charge_seq=charge.seq,
                    release_sha256=release_sha256,
                    version=version,
                    # not the clock's: the time between charge and receipt is how long the records took
                    time=paid["time"],
                    **rows.shared_columns(paid),
                )
        except LedgerBusy as error:
            reason = str(error).replace("nothing was charged", "the receipt was not written")
            raise LedgerBusy(f"charge {charge.seq} of dataset {self._dataset!r} stays, unfinished: {reason}") from None
        return _receipt(row)

    def find(self, release_sha256: str) -> Receipt | None:
        """The receipt of a release (the latest, when several releases are equal); None when it has none here."""
        with self._store.reading() as connection:
            row = rows.receipt_row(connection, self._dataset, release_sha256)
        return None if row is None else _receipt(row)

    def show(self) -> LedgerState:
        """The statement of account: terms, budget, spent, left, every entry.

        A charge without a receipt is "unfinished": it was charged, perhaps released, and is never refunded.
        """
        with self._store.reading() as connection:
            return statement_of_account(self._read(connection), rows.chain_rows(connection, self._dataset))

    def verify(self, *, heads: Iterable[Receipt | str] = ()) -> Verification:
        """Go through the whole chain: hashes, prices, limits, totals, receipts. Problems are text, never exceptions.

        heads: receipts, chain heads or release digests that were kept outside the book. Without them, entries cut from
        the end and an older copy put back cannot be seen.
        """
        try:
            damage = self._store.integrity()
            with self._store.reading() as connection:
                budget = rows.budget_row(connection, self._dataset)
                chain = rows.chain_rows(connection, self._dataset)
        except ConfideError as error:
            return Verification(False, (str(error),), 0, GENESIS)
        return examine(self._dataset, budget, chain, heads, damage)

    def amend(self, budget: Guarantee, *, reason: str) -> None:
        """Replace the budget, upward or downward, by a new entry that says why; what is spent stays spent.

        A budget below what is spent is allowed: then nothing more fits. The filter's guarantee is that of a budget
        fixed in advance, so a book that was raised after looking at releases promises its largest budget only in
        good faith.

        Raises `PrivacyError` (another currency, relation, unit or trust), `PlanError` (no reason), `LedgerBusy`.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise PlanError(
                "an amendment needs a reason, which stays in the book; for instance "
                "book.amend(GDP(3.0), reason='board decision 12')"
            )
        check_text("reason", reason)
        currency = currency_of(budget)
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
            full = budget if budget.complete else budget.resolve(account.relation)
            _check_same_terms(account, full)
            amended = replace(account, budget=full, limit=currency.limit(full))
            rows.append(
                connection, account, budget=amended, kind="amend", guarantee=guarantee_to_text(full), note=reason
            )

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy of the whole file to a new path (mode 0600).

        Copying the file itself may lose the last entries. Raises `PlanError` when the path exists, or when the book is
        on a server (whose own tool is pg_dump), `LedgerBusy`.
        """
        self._store.copy_to(checked_path(path))

    def close(self) -> None:
        """Close idle connections; the book connects again when it is used."""
        self._store.close()

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.target!r}, dataset={self._dataset!r})"

    def _account(self) -> Account:
        with self._store.reading() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> Account:
        row = rows.budget_row(connection, self._dataset)
        if row is None:
            raise PlanError(
                f"there is no dataset {self._dataset!r} in {self.place} any more; open a budget for it: "
                "Ledger.create(path, dataset=..., budget=...)"
            )
        return Account.of(row)


def _check_dataset(dataset: str) -> None:
    if not isinstance(dataset, str) or not dataset.strip() or len(dataset) > 200 or not dataset.isprintable():
        raise PlanError(
            f"dataset must be a name of 1 to 200 printable characters, got {dataset!r}; for instance dataset='survey'"
        )


def _check_digest(name: str, value: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise PlanError(
            f"{name} must be a SHA-256, 64 hexadecimal digits in lower case, got {value!r}; for instance plan.sha256"
        )


def _check_same_terms(account: Account, budget: Guarantee) -> None:
    mine = (account.currency.name, account.relation, account.unit, account.trust)
    theirs = (type(budget).__name__, budget.relation, budget.unit, budget.trust)
    if mine != theirs:
        raise PrivacyError(
            f"dataset {account.dataset!r} is counted in {mine[0]} with relation={mine[1]!r}, unit={mine[2]!r}, "
            f"trust={mine[3]!r} for good; the budget {budget} is not; an amendment changes the size only: "
            f"book.amend({mine[0]}(...), reason='...')"
        )


def _receipt(row: Mapping[str, Any]) -> Receipt:
    try:
        guarantee = guarantee_from_text(row["guarantee"])
    except (KeyError, TypeError, ValueError):
        raise PlanError(
            f"receipt {row['seq']} of dataset {row['dataset']!r} is damaged; book.verify() lists what is wrong"
        ) from None
    return Receipt(
        dataset=row["dataset"],
        seq=row["seq"],
        charge_seq=row["charge_seq"],
        release_sha256=row["release_sha256"],
        method=row["method"],
        plan_sha256=row["plan_sha256"],
        guarantee=guarantee,
        time=row["time"],
        version=row["version"],
        head=row["hash"],
    )
