"""The ledger of a dataset: charge before the noise, receipt after the release, no refunds. Also opening and converting a budget."""

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
from confide.ledger.records import Charge, LedgerState, Quote, Receipt, Verification, state_of
from confide.ledger.refusal import quote
from confide.ledger.scope import check_dataset, check_pins, check_unit
from confide.ledger.storage import rows
from confide.ledger.storage.places import check_text, checked_path, store_of
from confide.ledger.storage.store import Connection, Room, Store
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
            raise PrivacyError(f"the ledger's unit is {whose!r} and its budget's {full.unit!r}", "give one of them")
        full = replace(full, unit=whose)
    key = secrets.token_bytes(32) if enforced else b""
    if grants not in (None, "gaussian"):
        raise PlanError(
            f"grants must be 'gaussian' or left out, got {grants!r}",
            "write grants='gaussian' to convert an (epsilon, delta) budget at once",
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


def taken_words(account: Account, new: Account, name: str) -> str:
    """Why a budget is not opened again, and what works: on the same terms that one, on others a second ledger."""
    taken = f"dataset {account.dataset!r} has a budget in {name} already, and a budget is never overwritten"
    use = f"use it: Ledger.open({name!r}, dataset={account.dataset!r})"
    apart = [
        f"{mine}, not {theirs}" for mine, theirs in zip(_terms(account), _terms(new), strict=True) if mine != theirs
    ]
    if not apart:
        return f"{taken}; {use}; change it: ledger.amend(budget, reason='...')"
    file = Path(name)
    beside = "OTHER_LEDGER" if "://" in name else str(file.with_stem(f"{file.stem}-{_file_name(account, new)}"))
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
    """The account of what was charged to the budget of one dataset.

    Make it with `Ledger.create`, or open it with `Ledger.open`. A ledger is a
    file (SQLite) or a database of a PostgreSQL server, and holds any number of
    datasets. `print(ledger.show())` prints the percentage of the budget used,
    what the budget means, and each charge.

    Parameters
    ----------
    store : Store
        The file or the database. `create` and `open` find it.
    dataset : str
        Name of the dataset.

    See Also
    --------
    release : Charge a ledger and draw a release.
    verify : Check a release against its ledger.

    Notes
    -----
    Safe for threads, processes and forks. Each entry carries the hash of the
    one before, so that a changed entry shows in `verify`. All that a ledger
    shows is public and comes from no record; a file with stored outputs of the
    local model also holds ids of records. Dataset, unit, rows per unit,
    relation and trust are fixed by `create`. Names are compared after Unicode
    NFKC, case folding and trimming.

    Examples
    --------
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
    GDP(mu=3, add-remove) | mu = 1
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
        """Open a budget for a dataset, in a new ledger or an existing one.

        Parameters
        ----------
        path : str or Path
            A file, such as ``"ledger.db"``, or the URL of a PostgreSQL
            database, such as ``"postgresql://user@host/database"``. A new file
            gets mode 0600; nothing is overwritten.
        dataset : str
            Name of the dataset that the budget is for.
        budget : GDP, ApproxDP, ZCDP or PureDP
            Most privacy loss that all releases may add up to. Its class fixes
            how charges add up. Without a relation it means "add-remove", and
            "substitute" in the local model.
        unit : str, optional
            Id column of the privacy unit, as in ``cf.Unit``. Left out: each
            record is one unit.
        rows_per_unit : int, optional
            Most rows of a unit that schemas declare and nothing enforces.
        grants : {"gaussian"}, optional
            Convert an ApproxDP budget to Gaussian DP at once, permanently.
        note : str, default ""
            Remark that the first entry keeps, such as a decision's number.
        timeout : float, default 60.0
            Seconds to wait for another process's lock.

        Returns
        -------
        Ledger
            The ledger, open for the dataset.

        Raises
        ------
        PlanError
            The dataset has a budget already, or the file is not a ledger.
        PrivacyError
            `budget` cannot be a budget.
        LedgerBusy
            Another process holds the lock.

        Warns
        -----
        UserWarning
            The budget is so large that it protects no one.

        Examples
        --------
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
                raise PlanError(taken_words(held, new, store.name))
            rows.open_ledger(connection, new, note)
        return cls(store, dataset)

    @classmethod
    def open(cls, path: str | Path, *, dataset: str | None = None, timeout: float = 60.0) -> Ledger:
        """Open the ledger of a dataset.

        Parameters
        ----------
        path : str or Path
            A file, or the URL of a PostgreSQL database.
        dataset : str, optional
            Name of the dataset. May be left out if the ledger holds one.
        timeout : float, default 60.0
            Seconds to wait for another process's lock.

        Returns
        -------
        Ledger
            The ledger, open for the dataset.

        Raises
        ------
        PlanError
            There is no such ledger or dataset, or there are several datasets.
        LedgerBusy
            Another process holds the lock.
        """
        store = store_of(path, timeout)
        store.check()
        with store.reading() as connection:
            known = rows.dataset_names(connection)
        listed = ", ".join(repr(name) for name in known) or "none"
        if dataset is None:
            if len(known) != 1:
                raise PlanError(
                    f"{store.name} holds the datasets {listed}",
                    f"say which: Ledger.open({store.name!r}, dataset=...)",
                )
            dataset = known[0]
        found = next((name for name in known if isinstance(dataset, str) and same_name(name, dataset)), None)
        if found is None:
            raise PlanError(
                f"there is no dataset {dataset!r} in {store.name}; it holds {listed}",
                f"open a budget for it: Ledger.create({store.name!r}, dataset={dataset!r}, budget=...)",
            )
        return cls(store, found)

    @staticmethod
    def datasets(path: str | Path) -> tuple[str, ...]:
        """Names of the datasets in a ledger.

        Parameters
        ----------
        path : str or Path
            A file, or the URL of a PostgreSQL database.

        Returns
        -------
        tuple of str
            The names, sorted.

        Raises
        ------
        PlanError
            The file is not a ledger.
        """
        store = store_of(path, 60.0)
        try:
            store.check()
            with store.reading() as connection:
                return rows.dataset_names(connection)
        finally:
            store.close()

    @property
    def path(self) -> Path:
        """The file, absolute; a ledger on a server has none (`PlanError`), see `place`."""
        return self._store.path

    @property
    def place(self) -> str:
        """The file, or the server's URL without its password."""
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
        """The neighboring relation of every charge."""
        return self._account().relation

    @property
    def unit(self) -> str:
        """The privacy unit: "record", or the id column of the schema."""
        return self._account().unit

    @property
    def rows_per_unit(self) -> int:
        """The most rows of a unit that schemas declare; 1 for an enforced unit."""
        return self._account().rows_per_unit

    @property
    def unit_key(self) -> bytes | None:
        """The key by which rows of an enforced unit are chosen; None without an enforced unit.

        No guarantee depends on its secrecy. It is not printed, so that no one can shape rows by it.
        """
        account = self._account()
        return bytes.fromhex(account.unit_key) if account.enforced else None

    @property
    def tip(self) -> str:
        """The tip hash, which is the hash of the last entry. Keep a copy outside the ledger for `verify(tips=[tip])`."""
        return self._account().tip

    @property
    def converted(self) -> bool:
        """Whether an approximate DP budget was converted to Gaussian DP."""
        return self._account().currency.state == "gaussian"

    @property
    def trust(self) -> str:
        """Who adds the noise: "central" (the steward) or "local" (each record)."""
        return self._account().trust

    @property
    def currency(self) -> str:
        """The kind of the budget: "GDP", "ZCDP", "PureDP" or "ApproxDP"."""
        return self._account().currency.name

    def check(self, *, dataset: str | None, unit: str, rows_per_unit: int, enforced: bool = False) -> None:
        """Refuse a release of another dataset, unit or number of rows per unit.

        Parameters
        ----------
        dataset : str or None
            The dataset of the release.
        unit : str
            Its privacy unit.
        rows_per_unit : int
            The most rows of one unit that it declares.
        enforced : bool, default False
            Whether confide enforces the unit.

        Raises
        ------
        PlanError
            The dataset is another one, or has no name.
        PrivacyError
            The unit or the rows per unit differ.
        """
        check_pins(self._account(), dataset, unit, rows_per_unit, enforced=enforced)

    def buys(self) -> tuple[str, ...]:
        """How many further releases of usual sizes the budget is enough for.

        Returns
        -------
        tuple of str
            One line; for an approximate DP budget also one for the case that it
            is converted.

        Examples
        --------
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
        """What a charge would cost as the ledger stands. Nothing is charged.

        Parameters
        ----------
        statements : sequence of Guarantee
            The guarantees of one release, such as ``plan.guarantees``.
        charge_delta : float, optional
            Point of the privacy curve to charge, as in `charge`.
        convert_ledger : bool, default False
            Whether the charge would convert the budget first.

        Returns
        -------
        Quote
            The cost, what would remain, and what all releases together mean.

        Raises
        ------
        BudgetExceeded
            The charge does not fit.
        NoConversion, PrivacyError
            The guarantees cannot be added up here.

        Examples
        --------
        >>> import tempfile
        >>> from confide.guarantees import GDP
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=GDP(1.0))
        >>> print(ledger.preview((GDP(0.6, relation="add-remove"),)).after)
        mu = 0.8
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
        title: str = "",
        charge_delta: float | None = None,
        convert_ledger: bool = False,
    ) -> Charge:
        """Charge the smallest of a release's proved guarantees that fits.

        When this returns, the charge is on disk and noise may be drawn.
        `confide.release` calls it; call it yourself only for a release that
        confide does not make.

        Parameters
        ----------
        statements : sequence of Guarantee
            Complete guarantees of one release, each proved, with the relation,
            unit and trust of the ledger.
        dataset : str or None
            The dataset of the release, which must be the ledger's.
        unit : str
            Its privacy unit, which must be the ledger's.
        rows_per_unit : int
            The most rows of one unit that it declares.
        enforced : bool, default False
            Whether confide enforces the unit.
        method : str
            Name and version of the method, such as ``"counts 1"``.
        plan_sha256 : str
            The plan ID.
        title : str, default ""
            What the charge pays for, in words, for `show`.
        charge_delta : float, optional
            Point to charge of a guarantee that has one for each delta: a
            `TradeOff` in a Gaussian DP budget, any curve in an approximate DP
            budget. Rounded down to units of 2^-60.
        convert_ledger : bool, default False
            Convert an approximate DP budget to Gaussian DP first, permanently,
            if the charge then fits.

        Returns
        -------
        Charge
            The entry, for the receipt.

        Raises
        ------
        BudgetExceeded
            The charge does not fit. Nothing was charged.
        NoConversion, PrivacyError
            The guarantees cannot be added up here. Nothing was charged.
        PlanError
            An argument is invalid, the dataset is another one, or the ledger
            was changed by hand. Nothing was charged.
        LedgerBusy
            The ledger is locked or read-only, or the disk is full. Nothing was
            charged, unless the message says that this is not known.
        """
        if not isinstance(method, str) or not method:
            raise PlanError(
                f"method must be a method's name and version, got {method!r}", "for instance method='ssp 1'"
            )
        check_text("method", method)
        check_text("title", title)
        _check_digest("plan_sha256", plan_sha256)
        # a refusal needs no lock, since totals only grow; a grant is decided only under it
        seen = self._account()
        check_pins(seen, dataset, unit, rows_per_unit, enforced=enforced)
        choose(as_converted(seen) if convert_ledger else seen, statements, charge_delta)
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
                title=title,
                plan_sha256=plan_sha256,
                note=charge_delta_to_text(checked_delta(charge_delta)),
            )
            # before the commit: what was charged can have its receipt, however full the disk gets until then
            room = self._store.room(sum(len(value.encode()) for value in row.values() if isinstance(value, str)))
        charge = Charge(row["seq"], chosen.statement, row["hash"], row["time"])
        self._rooms[charge] = room
        return charge

    def charged(self, plan_sha256: str) -> bool:
        """Whether a plan was charged here.

        Parameters
        ----------
        plan_sha256 : str
            The plan ID.

        Returns
        -------
        bool
            True if an entry charges it. A stream of the local model that
            continues is not charged again.
        """
        with self._store.reading() as connection:
            return rows.charge_of(connection, self._dataset, plan_sha256) is not None

    def outputs(self, plan_sha256: str) -> Outputs:
        """Stored outputs of one version of a stream of the local model.

        Parameters
        ----------
        plan_sha256 : str
            The plan ID of the version.

        Returns
        -------
        Outputs
            The outputs by the ids of records, which are not public.
        """
        return Outputs(self._store, self._dataset, plan_sha256)

    def convert(self, *, reason: str = "") -> None:
        """Convert an approximate DP budget to Gaussian DP, permanently.

        What is left becomes Gaussian DP with a small delta. After that, Gaussian
        releases add up by the squares of their parameters, and epsilons no
        longer add up.

        Parameters
        ----------
        reason : str, default ""
            The reason, which the ledger keeps.

        Raises
        ------
        PlanError
            The budget is of another kind, or was converted already.
        PrivacyError
            No delta is left, or too little.
        LedgerBusy
            Another process holds the lock.

        Examples
        --------
        >>> import tempfile
        >>> from confide.guarantees import ApproxDP
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=ApproxDP(8.0, 1e-5))
        >>> ledger.convert(reason="many Gaussian releases to come")
        >>> print(ledger.show().remaining)
        mu = 1.6647, delta = 2e-07
        """
        check_text("reason", reason)
        with self._store.writing() as connection:
            write_conversion(connection, rows.locked_account(connection, self._dataset), reason)

    def receipt(self, charge: Charge, *, release_sha256: str, version: str) -> Receipt:
        """Record that a charge became a release. One charge pays for one release.

        Parameters
        ----------
        charge : Charge
            What `charge` returned.
        release_sha256 : str
            The release ID.
        version : str
            The version of confide that made the release.

        Returns
        -------
        Receipt
            The proof that the release belongs to the charge.

        Raises
        ------
        ReleaseError
            The charge is not in this ledger, or has a receipt. It stays.
        PlanError
            An argument is invalid. The charge stays.
        LedgerBusy
            The receipt could not be written. The charge stays.
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
            raise LedgerBusy(
                f"charge {charge.seq} of dataset {self._dataset!r} stays, without a release: {reason}"
            ) from None
        return receipt_of(row)

    def find(self, release_sha256: str) -> Receipt | None:
        """Find the receipt of a release.

        Parameters
        ----------
        release_sha256 : str
            The release ID, 64 digits.

        Returns
        -------
        Receipt or None
            The latest receipt; None if this ledger has none.
        """
        with self._store.reading() as connection:
            row = rows.receipt_row(connection, self._dataset, release_sha256)
        return None if row is None else receipt_of(row)

    def show(self) -> LedgerState:
        """The state of the dataset: terms, budget, percentage used, every entry.

        Returns
        -------
        LedgerState
            `print` shows it as ``confide ledger show`` does. A charge without a
            receipt has the status "without_release". It is never refunded.
        """
        with self._store.reading() as connection:
            return state_of(self._read(connection), rows.chain_rows(connection, self._dataset))

    def verify(self, *, tips: Iterable[Receipt | str] = ()) -> Verification:
        """Check the hash chain, costs, limits, totals, receipts and stored outputs.

        Parameters
        ----------
        tips : iterable of Receipt or str, optional
            Receipts, tip hashes or release IDs that were kept outside the
            ledger, whole or at least their first 12 digits. Without them,
            missing newest entries and an older copy do not show.

        Returns
        -------
        Verification
            Whether everything holds, and what does not, in words.

        Raises
        ------
        PlanError
            A kept text is neither a hash nor the beginning of one.
        """
        tips = tuple(item if isinstance(item, Receipt) else checked_tip(item) for item in tips)
        try:
            damage = self._store.integrity()
            with self._store.reading() as connection:
                budget = rows.budget_row(connection, self._dataset)
                chain = rows.chain_rows(connection, self._dataset)
                # where somebody took their table away the chain says what is missing
                there = self._store.has_table(connection, "stream_output")
                stored = stored_outputs(connection, self._dataset) if there else {}
        except ConfideError as error:
            return Verification(False, (str(error),), 0, GENESIS)
        return examine(self._dataset, budget, chain, tips, damage, stored)

    def amend(self, budget: Guarantee, *, reason: str) -> None:
        """Replace the budget by a new entry with a reason; charges stay.

        Parameters
        ----------
        budget : Guarantee
            The whole new budget, larger or smaller, of the same kind.
        reason : str
            The reason, which the ledger keeps.

        Raises
        ------
        PrivacyError
            The kind, relation, unit or trust differ.
        PlanError
            There is no reason.
        LedgerBusy
            Another process holds the lock.

        Warns
        -----
        UserWarning
            The budget is so large that it protects no one.

        Notes
        -----
        Below the total of the charges, nothing more fits. The guarantee is that
        of a budget that was fixed in advance. A budget that was raised after
        someone saw releases keeps its largest value only in good faith.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise PlanError(
                "an amendment needs a reason, which stays in the ledger",
                "for instance ledger.amend(GDP(3.0), reason='board decision 12')",
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

        Use it instead of copying the file, which may lose the last entries.

        Parameters
        ----------
        path : str or Path
            The new file.

        Raises
        ------
        PlanError
            The path exists, or the ledger is on a server (use pg_dump).
        LedgerBusy
            Another process holds the lock.
        """
        self._store.copy_to(checked_path(path))

    def close(self) -> None:
        """Close idle connections. The ledger connects again when it is used."""
        self._store.close()

    def _repr_html_(self) -> str:
        return as_html(f"{self.show()}\n\nwhat is left is enough for {'; '.join(self.buys())}")

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.name!r}, dataset={self._dataset!r})"

    def _account(self) -> Account:
        with self._store.reading() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> Account:
        row = rows.budget_row(connection, self._dataset)
        if row is None:
            raise PlanError(
                f"there is no dataset {self._dataset!r} in {self.place} any more",
                "open a budget for it: Ledger.create(path, dataset=..., budget=...)",
            )
        return rows.account_here(connection, row)


def _check_digest(name: str, value: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise PlanError(
            f"{name} must be a SHA-256, 64 hexadecimal digits in lower case, got {value!r}", "for instance plan.sha256"
        )
