"""The ledger of a dataset: charge before the noise, receipt after the release, and nothing is ever given back.

The moves of a ledger beside a charge: opening, converting; and what its rows say as values.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from confide._helpers import as_html
from confide.errors import ConfideError, LedgerBusy, PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.guarantees.values import weakness
from confide.ledger.account import Account, amended_limit
from confide.ledger.chain import (
    GENESIS,
    charge_delta_to_text,
    guarantee_from_text,
    guarantee_to_text,
    statements_to_text,
)
from confide.ledger.currencies import currency_of
from confide.ledger.currency import ZERO, checked_delta
from confide.ledger.decision import choose, purchases
from confide.ledger.names import same_name
from confide.ledger.outputs import Outputs, stored_outputs
from confide.ledger.records import Charge, LedgerState, Quote, Receipt, Verification, statement_of_account
from confide.ledger.refusal import quote
from confide.ledger.scope import check_dataset, check_pins, check_unit
from confide.ledger.storage import rows
from confide.ledger.storage.places import check_text, checked_path, store_of
from confide.ledger.storage.store import Room, Store
from confide.ledger.verify import checked_tip, examine

# Units that no id column tells: a row, and an attribute of one under local trust.
_BARE = ("record", "attribute")


def opened_account(
    dataset: str, budget: Guarantee, unit: str | None, rows_per_unit: int | None, grants: str | None
) -> Account:
    """The account of a dataset before its first entry.

    A unit whose rows are not declared is one that schemas enforce: it gets its key here.
    """
    currency = currency_of(budget)
    # a row that carries its own noise hides its values, not that it is there
    full = budget if budget.complete else budget.resolve("substitute" if budget.trust == "local" else "add-remove")
    whose = full.unit if unit is None else unit
    enforced = rows_per_unit is None and whose not in _BARE
    rows_per_unit = 1 if rows_per_unit is None else rows_per_unit
    check_unit(whose, rows_per_unit)
    if enforced:
        if full.unit not in ("record", whose):
            raise PrivacyError(f"the ledger's unit is {whose!r} and its budget's {full.unit!r}; give one of them")
        full = replace(full, unit=whose)
    key = secrets.token_bytes(32) if enforced else b""
    if grants not in (None, "gaussian"):
        raise PlanError(
            f"grants must be 'gaussian' or left out, got {grants!r}; write grants='gaussian' to convert an (epsilon, delta) budget at once"
        )
    new = Account(
        dataset,
        currency,
        full.relation or "",
        whose,
        full.trust,
        full,
        currency.limit(full),
        ZERO,
        0,
        GENESIS,
        rows_per_unit,
        key_sha256=hashlib.sha256(key).hexdigest() if enforced else "",
        unit_key=key.hex(),
    )
    return new if grants is None else new.converted()


def as_converted(account: Account) -> Account:
    """The account as a charge with convert_ledger=True finds it: converted, if it is not."""
    return account if account.currency.state == "gaussian" else account.converted()


def write_conversion(connection: Connection, account: Account, reason: str) -> Account:
    after = account.converted()
    _, account = rows.append(
        connection,
        account,
        after,
        price=after.limit,
        kind="convert",
        guarantee=guarantee_to_text(account.budget),
        note=reason,
    )
    return account


def taken_words(account: Account, new: Account, name: str, target: str) -> str:
    """Why a data set's budget in a ledger is not opened again, and what works: on the same terms that one, on others a ledger beside it."""
    taken = f"dataset {account.dataset!r} has a budget in {name} already, and a budget is never overwritten"
    use = f"use it: Ledger.open({target!r}, dataset={account.dataset!r})"
    apart = [
        f"{mine}, not {theirs}" for mine, theirs in zip(_terms(account), _terms(new), strict=True) if mine != theirs
    ]
    if not apart:
        return f"{taken}; {use}; change it: ledger.amend(budget, reason='...')"
    file = Path(target)
    beside = "OTHER_LEDGER" if "://" in target else str(file.with_stem(f"{file.stem}-{_file_name(account, new)}"))
    whose = "" if new.unit in _BARE and new.rows_per_unit == 1 else f", unit={new.unit!r}"
    rows_of = "" if new.enforced or not whose else f", rows_per_unit={new.rows_per_unit}"
    return (
        f"{taken}; it counts {'; '.join(apart)}; {use}, or open this one in a ledger of its own: Ledger.create({beside!r}, "
        f"dataset={account.dataset!r}, budget={new.budget!r}{whose}{rows_of}) (two ledgers on the same records add up, unseen)"
    )


def _terms(account: Account) -> tuple[str, ...]:
    """What is for good, in words."""
    rows_of = "with all its rows" if account.enforced else f"of at most {account.rows_per_unit} row(s)"
    return (
        f"what one {account.unit} {rows_of} may lose",
        f"in {account.currency.name}",
        f"relation {account.relation}",
        f"trust {account.trust}",
    )


def _file_name(account: Account, new: Account) -> str:
    """What tells a ledger from the one beside it: its unit, where that is another and can stand in a file's name."""
    return new.unit if new.unit != account.unit and re.fullmatch(r"[\w.-]{1,40}", new.unit) else "other"


def check_same_terms(account: Account, budget: Guarantee) -> None:
    mine = (account.currency.name, account.relation, account.budget.unit, account.trust)
    theirs = (type(budget).__name__, budget.relation, budget.unit, budget.trust)
    if mine != theirs:
        raise PrivacyError(
            f"dataset {account.dataset!r} is counted in {mine[0]} with relation={mine[1]!r}, unit={account.unit!r}, "
            f"trust={mine[3]!r} for good; the budget {budget} is not; an amendment changes the size only: "
            f"ledger.amend({mine[0]}(...), reason='...')"
        )


def receipt_of(row: Mapping[str, Any]) -> Receipt:
    try:
        guarantee = guarantee_from_text(row["guarantee"])
    except (KeyError, TypeError, ValueError):
        raise PlanError(
            f"receipt {row['seq']} of dataset {row['dataset']!r} is damaged; ledger.verify() lists what is wrong"
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
        tip=row["hash"],
    )


_DIGEST = re.compile(r"[0-9a-f]{64}")


class Ledger:
    """A ledger, open for one dataset: in a file (SQLite), or in a database of a PostgreSQL server for a team.

    Any number of datasets share a file. Safe for threads, processes and forks. Everything that it shows is public: nothing
    comes from a record (a file with `outputs` holds ids of records). Made by `Ledger.create` and `Ledger.open`. Data set, unit, rows per
    unit, relation and trust are pinned when it is opened; names are compared after Unicode NFKC, case folding and trimming.

    >>> import tempfile
    >>> from confide.guarantees import GDP
    >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=GDP(2.0))
    >>> about = {"dataset": "survey", "unit": "record", "rows_per_unit": 1}
    >>> charge = ledger.charge((GDP(1.0, relation="add-remove"),), **about, method="mean 1", plan_sha256="0" * 64)
    >>> receipt = ledger.receipt(charge, release_sha256="1" * 64, version="0.1.0")
    >>> ledger.find("1" * 64) == receipt
    True
    >>> ledger.amend(GDP(3.0), reason="board decision 12")
    >>> print(ledger.budget, "|", ledger.show().spent)
    GDP(mu=3, add-remove) | mu = 1, mu^2 = 1, delta = 0
    >>> Ledger.open(ledger.path).verify(tips=[receipt]).ok
    True
    """

    def __init__(self, store: Store, dataset: str) -> None:
        self._store = store
        self._dataset = dataset
        # the room of receipts that are still to come; a charge that is dropped gives it back
        self._rooms: weakref.WeakKeyDictionary[Charge, Room | None] = weakref.WeakKeyDictionary()

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        dataset: str,
        budget: Guarantee,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        grants: str | None = None,
        note: str = "",
        timeout: float = 60.0,
    ) -> Ledger:
        """Open a budget for a dataset, in a new file (mode 0600) or in an existing one; never overwrites.

        path: a file, or a URL such as "postgresql://user@host/database" (extra `postgres`; there the database's rights
        say who may do what). budget: GDP, ApproxDP, ZCDP or PureDP; its class is the ledger's currency for good. A
        relation left open means add-remove, under local trust substitute. unit: what is protected: the id column of the schemas'
        `cf.Unit`, which is enforced and whose key, 32 bytes from the operating system, is made here; the record when left out.
        rows_per_unit: with it the unit is one that schemas declare and nothing enforces, and this is the most rows that one has. grants:
        "gaussian" converts an ApproxDP budget at once
        (`convert`). timeout: seconds to wait for another process's lock.

        Raises `PlanError` (the dataset has a budget, or the file is something else), `PrivacyError` (not a budget),
        `LedgerBusy`; warns of a budget that protects nobody.

        >>> import tempfile
        >>> from confide.guarantees import ZCDP
        >>> Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=ZCDP(0.5)).relation
        'add-remove'
        """
        check_dataset(dataset)
        check_text("note", note)
        new = opened_account(dataset, budget, unit, rows_per_unit, grants)
        if weak := weakness(budget):
            warnings.warn(f"dataset {dataset!r}: {weak}", stacklevel=2)
        store = store_of(path, timeout)
        store.create()
        with store.writing(creating=True) as connection:
            taken = next((name for name in rows.dataset_names(connection) if same_name(name, dataset)), None)
            if taken is not None:
                held = Account.of(rows.budget_row(connection, taken) or {})
                raise PlanError(taken_words(held, new, store.name, store.target))
            rows.open_ledger(connection, new, note)
        return cls(store, dataset)

    @classmethod
    def open(cls, path: str | Path, *, dataset: str | None = None, timeout: float = 60.0) -> Ledger:
        """Open a dataset's ledger, in a file or at a URL; `dataset` may be left out when there is exactly one.

        Raises `PlanError` (no such ledger or dataset, or several), `LedgerBusy`.
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
        found = next((name for name in known if isinstance(dataset, str) and same_name(name, dataset)), None)
        if found is None:
            raise PlanError(
                f"there is no dataset {dataset!r} in {store.name}; it holds {listed}; open a budget for it: "
                f"Ledger.create({store.target!r}, dataset={dataset!r}, budget=...)"
            )
        return cls(store, found)

    @staticmethod
    def datasets(path: str | Path) -> tuple[str, ...]:
        """The names of the datasets in a ledger, sorted; `PlanError` when it is no ledger."""
        store = store_of(path, 60.0)
        try:
            store.check()
            with store.reading() as connection:
                return rows.dataset_names(connection)
        finally:
            store.close()

    @property
    def path(self) -> Path:
        """The file, absolute; `PlanError` when the ledger is on a server (`place` says where)."""
        return self._store.path

    @property
    def place(self) -> str:
        """Where the ledger is, to be shown: the file, or the server's URL without its password."""
        return self._store.name

    @property
    def dataset(self) -> str:
        """The dataset that this ledger is open for."""
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
        """What is protected: "record", "person", ..."""
        return self._account().unit

    @property
    def rows_per_unit(self) -> int:
        """The most rows that one unit has."""
        return self._account().rows_per_unit

    @property
    def unit_key(self) -> bytes | None:
        """The key by which rows of an enforced unit are chosen, for the gate; None where units are not enforced.

        No guarantee hangs on it being secret. It keeps people from shaping their rows, so that it is shown to nobody.
        """
        account = self._account()
        return bytes.fromhex(account.unit_key) if account.enforced else None

    @property
    def tip(self) -> str:
        """The hash of the last entry. Kept elsewhere, it tells when an older copy is put back: `verify(tips=[tip])`."""
        return self._account().tip

    @property
    def converted(self) -> bool:
        """Whether this is an (epsilon, delta) ledger that was converted to a Gaussian one."""
        return self._account().currency.state == "gaussian"

    @property
    def trust(self) -> str:
        """Who is trusted with the records: "central" or "local"."""
        return self._account().trust

    @property
    def currency(self) -> str:
        """What the ledger counts in: "GDP", "ZCDP", "PureDP" or "ApproxDP"."""
        return self._account().currency.name

    def check(self, *, dataset: str | None, unit: str, rows_per_unit: int, enforced: bool = False) -> None:
        """Refuse a release that is about something else than this ledger: another data set, unit or number of rows per unit.

        Reads the ledger alone. Raises `PlanError` (the data set, or one without a name), `PrivacyError` (unit, rows per unit).
        """
        check_pins(self._account(), dataset, unit, rows_per_unit, enforced=enforced)

    def buys(self) -> tuple[str, ...]:
        """What is left buys, in words: how many equal releases of some usual sizes, one after the other.

        >>> import tempfile
        >>> from confide.guarantees import ApproxDP
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=ApproxDP(8.0, 1e-5))
        >>> print(*ledger.buys(), sep="\\n")
        8 releases at (1, 1e-06), or 80 at epsilon 0.1
        converted to Gaussian (mu = 1.6647): 11 at mu 0.5, or 2 at epsilon 1
        """
        return purchases(self._account())

    def preview(
        self,
        statements: Sequence[Guarantee],
        *,
        charge_delta: float | None = None,
        convert_ledger: bool = False,
    ) -> Quote:
        """What `charge` would charge for these statements as the ledger stands, or raise; no charge, no lock.

        >>> import tempfile
        >>> from confide.guarantees import GDP
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=GDP(1.0))
        >>> print(ledger.preview((GDP(0.6, relation="add-remove"),)).after)
        mu = 0.8, mu^2 = 0.64, delta = 0
        """
        account = self._account()
        asked = as_converted(account) if convert_ledger else account
        chosen = choose(asked, statements, charge_delta)
        return quote(asked, chosen.statement, chosen.price, account if asked is not account else None)

    def charge(
        self,
        statements: Sequence[Guarantee],
        *,
        dataset: str | None,
        unit: str,
        rows_per_unit: int,
        enforced: bool = False,
        method: str,
        plan_sha256: str,
        charge_delta: float | None = None,
        convert_ledger: bool = False,
    ) -> Charge:
        """Charge the cheapest of a release's proved statements that converts and fits.

        When this returns, the charge is on disk and noise may be drawn. statements: complete guarantees of one release,
        each proved, in the ledger's relation, unit and trust. dataset, unit, rows_per_unit: what the release is about, as
        its schema says; they must be the ledger's; enforced: whether that unit's rows are bounded by the
        gate. charge_delta: where a curve is charged that has a point for each delta
        (a `TradeOff` in mu^2, anything in an (epsilon, delta) ledger); rounded down to units of 2^-60. convert: turn an
        (epsilon, delta) ledger into a Gaussian one first, for good, if it is not one yet and the charge fits.

        Raises `BudgetExceeded` (does not fit), `NoConversion` or `PrivacyError` (cannot be counted here), `PlanError`
        (arguments, another data set, a ledger that was changed by hand), `LedgerBusy` (locked, read-only, disk full).
        Nothing was charged then, unless `LedgerBusy` says that this is not known.
        """
        if not isinstance(method, str) or not method:
            raise PlanError(f"method must be a method's name and version, got {method!r}; for instance method='ssp 1'")
        check_text("method", method)
        _check_digest("plan_sha256", plan_sha256)
        # a refusal needs no lock, since totals only grow; a grant is decided only under it
        self.check(dataset=dataset, unit=unit, rows_per_unit=rows_per_unit, enforced=enforced)
        self.preview(statements, charge_delta=charge_delta, convert_ledger=convert_ledger)
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
            check_pins(account, dataset, unit, rows_per_unit, enforced=enforced)
            if convert_ledger and as_converted(account) is not account:
                account = write_conversion(connection, account, "for the release charged next")
            chosen = choose(account, statements, charge_delta)
            row, _ = rows.append(
                connection,
                account,
                account.charged(chosen.price),
                price=chosen.price,
                kind="charge",
                guarantee=guarantee_to_text(chosen.statement),
                statements=statements_to_text(tuple(statements)),
                method=method,
                plan_sha256=plan_sha256,
                note=charge_delta_to_text(checked_delta(charge_delta)),
            )
            # before the commit: what was charged can have its receipt, however full the disk gets until then
            room = self._store.room(sum(len(value.encode()) for value in row.values() if isinstance(value, str)))
        charge = Charge(row["seq"], chosen.statement, row["hash"], row["time"])
        self._rooms[charge] = room
        return charge

    def charged(self, plan_sha256: str) -> bool:
        """Whether a plan was charged here: a protected stream that goes on is not charged again."""
        with self._store.reading() as connection:
            return rows.charge_of(connection, self._dataset, plan_sha256) is not None

    def outputs(self, plan_sha256: str) -> Outputs:
        """The stored outputs of one version of a protected stream (`confide.local`), beside the entries; they hold ids of records."""
        return Outputs(self._store, self._dataset, plan_sha256)

    def convert(self, *, reason: str = "") -> None:
        """Turn an (epsilon, delta) ledger into a Gaussian one, once and for good: what is left becomes mu^2 and a small delta.

        Afterwards Gaussian releases cost their mu^2, and others what they leave of it; epsilons no longer simply add.

        Raises `PlanError` (another currency, or converted already), `PrivacyError` (no delta left, or too little),
        `LedgerBusy`.

        >>> import tempfile
        >>> from confide.guarantees import ApproxDP
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=ApproxDP(8.0, 1e-5))
        >>> ledger.convert(reason="many Gaussian releases to come")
        >>> print(ledger.show().remaining)
        mu = 1.6647, mu^2 = 2.77122, delta = 2e-07
        """
        check_text("reason", reason)
        with self._store.writing() as connection:
            write_conversion(connection, rows.locked_account(connection, self._dataset), reason)

    def receipt(self, charge: Charge, *, release_sha256: str, version: str) -> Receipt:
        """Record that a charge became a release. One charge pays for one release.

        Raises `ReleaseError` (the charge is not in this ledger, or has a receipt), `PlanError` (arguments), `LedgerBusy`;
        the charge stays in any case.
        """
        _check_digest("release_sha256", release_sha256)
        check_text("version", version)
        room = self._rooms.get(charge)
        if room is not None:
            room.give_back(locked=False)
        try:
            with self._store.writing() as connection:
                account = rows.locked_account(connection, self._dataset)
                paid = rows.unpaid_charge(connection, self._dataset, charge)
                if room is not None:
                    room.give_back(locked=True)  # no charge of another process can take it
                row, _ = rows.append(
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
        return receipt_of(row)

    def find(self, release_sha256: str) -> Receipt | None:
        """The receipt of a release (the latest, when several releases are equal); None when it has none here."""
        with self._store.reading() as connection:
            row = rows.receipt_row(connection, self._dataset, release_sha256)
        return None if row is None else receipt_of(row)

    def show(self) -> LedgerState:
        """The statement of account: terms, budget, spent, left, every entry.

        A charge without a receipt is "unfinished": it was charged, perhaps released, and is never refunded.
        """
        with self._store.reading() as connection:
            return statement_of_account(self._read(connection), rows.chain_rows(connection, self._dataset))

    def verify(self, *, tips: Iterable[Receipt | str] = ()) -> Verification:
        """Go through the whole chain: hashes, prices, limits, totals, receipts, stored outputs. Problems are text, never exceptions.

        tips: receipts, chain tips or release digests that were kept outside the ledger, or their first 12 digits or
        more. Without them, entries cut from the end and an older copy put back cannot be seen. `PlanError` for text that
        is none of these.
        """
        tips = tuple(item if isinstance(item, Receipt) else checked_tip(item) for item in tips)
        try:
            damage = self._store.integrity()
            with self._store.reading() as connection:
                budget = rows.budget_row(connection, self._dataset)
                chain = rows.chain_rows(connection, self._dataset)
                stored = stored_outputs(connection, self._dataset)
        except ConfideError as error:
            return Verification(False, (str(error),), 0, GENESIS)
        return examine(self._dataset, budget, chain, tips, damage, stored)

    def amend(self, budget: Guarantee, *, reason: str) -> None:
        """Replace the budget, upward or downward, by a new entry that says why; what is spent stays spent.

        A budget below what is spent is allowed: then nothing more fits. The filter's guarantee is that of a budget
        fixed in advance, so a ledger that was raised after looking at releases promises its largest budget only in
        good faith.

        Raises `PrivacyError` (another currency, relation, unit or trust), `PlanError` (no reason), `LedgerBusy`; warns of a budget
        that protects nobody.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise PlanError(
                "an amendment needs a reason, which stays in the ledger; for instance "
                "ledger.amend(GDP(3.0), reason='board decision 12')"
            )
        check_text("reason", reason)
        currency = currency_of(budget)
        if weak := weakness(budget):
            warnings.warn(f"dataset {self._dataset!r}: {weak}", stacklevel=2)
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
            full = budget if budget.complete else budget.resolve(account.relation)
            full = replace(full, unit=account.unit) if account.enforced and full.unit == "record" else full
            check_same_terms(account, full)
            currency.limit(full)  # refuses what is no budget of its kind
            limit = amended_limit(account, full, rows.first_charge(connection, self._dataset))
            amended = replace(account, budget=full, limit=limit)
            rows.append(
                connection,
                account,
                amended,
                price=amended.limit,
                kind="amend",
                guarantee=guarantee_to_text(full),
                note=reason,
            )

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy of the whole file to a new path (mode 0600).

        Copying the file itself may lose the last entries. Raises `PlanError` when the path exists, or when the ledger is
        on a server (whose own tool is pg_dump), `LedgerBusy`.
        """
        self._store.copy_to(checked_path(path))

    def close(self) -> None:
        """Close idle connections; the ledger connects again when it is used."""
        self._store.close()

    def _repr_html_(self) -> str:
        return as_html(f"{self.show()}\n\nwhat is left buys: {'; '.join(self.buys())}")

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
        return rows.account_here(connection, row)


def _check_digest(name: str, value: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise PlanError(
            f"{name} must be a SHA-256, 64 hexadecimal digits in lower case, got {value!r}; for instance plan.sha256"
        )
