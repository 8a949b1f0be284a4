"""The terms of a ledger: dataset, privacy unit, rows per unit. A release on other terms is refused.

Also the guarantee of two ledgers over one dataset for a person: one of an enforced unit, one of records.

A person with m rows is covered by the unit's releases as one unit and by the records' as m records, which is m times their mu (group
privacy of a Gaussian trade-off, Dong, Roth, Su 2022, Theorem 2.14). In all mu is sqrt(b_unit + m^2 b_record), with b the sums of the
squares of mu that are charged (their Corollary 3.3). One relation and no delta on either side, else nothing is said.
"""

from __future__ import annotations

from fractions import Fraction

from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP
from confide.guarantees.validation import is_whole
from confide.ledger.account import Account
from confide.ledger.currency import amount_of, root_up
from confide.ledger.names import named, same_name
from confide.ledger.records import LedgerState
from confide.ledger.storage.places import check_text


def jointly(one: LedgerState, other: LedgerState, rows: int) -> GDP:
    """What a person with so many rows has from both ledgers together, in either order.

    Raises `PlanError` where the two are not of one dataset and relation, one of an enforced unit and one of records, or have spent a
    delta or another unit of account than Gaussian ones.
    """
    unit, record = (one, other) if one.enforced else (other, one)
    if not unit.enforced or record.enforced or record.unit != "record" or record.rows_per_unit > 1:
        raise PlanError(
            f"two ledgers add up for a person where one is of an enforced unit and one of records, got {one.whose} and {other.whose}"
        )
    if not same_name(one.dataset, other.dataset) or one.relation != other.relation:
        raise PlanError(
            f"two ledgers add up over one dataset and relation, got {one.dataset!r}, {one.relation} and {other.dataset!r}, "
            f"{other.relation}"
        )
    if not isinstance(rows, int) or rows < 1:
        raise PlanError(f"rows must be a whole number of at least 1, the rows of the person, got {rows!r}")
    amounts = []
    for state in (unit, record):
        kind = type(state.budget)
        if state.units["spent_delta"] or state.currency not in _IN_MU:
            raise PlanError(
                f"ledgers add up as Gaussian ones without a delta, and that of {state.whose} has spent {state.spent} of a {kind.__name__}"
            )
        amounts.append(amount_of(state.units["spent_amount"]) * _IN_MU[state.currency])
    return GDP(root_up(amounts[0] + Fraction(rows) ** 2 * amounts[1]), relation=unit.relation, unit=unit.unit)


# mu^2 in one unit of what a ledger counts: mu^2 itself, or rho = mu^2/2.
_IN_MU = {"GDP": 1, "ZCDP": 2}


_MANY = 1_000_000_000
_WHY = " ('?' stands for what is still to be filled in, and a blank filler is not seen)"


def check_dataset(dataset: object) -> str:
    """The name of a dataset for a ledger; `PlanError` if it is not one."""
    if not isinstance(dataset, str) or not named(dataset):
        raise PlanError(
            f"dataset must be a name of 1 to 200 printable characters, got {dataset!a}{_WHY}",
            "for instance dataset='survey'",
        )
    return dataset


def check_unit(unit: object, rows_per_unit: object) -> None:
    """Refuse, with `PlanError`, an invalid name of a unit or number of rows."""
    if not isinstance(unit, str) or not named(unit):
        raise PlanError(
            f"unit must be the name of what is protected, 1 to 200 printable characters, got {unit!a}{_WHY}",
            "for instance unit='person'",
        )
    check_text("unit", unit)
    whole = is_whole(rows_per_unit)
    if not whole or not 1 <= rows_per_unit <= _MANY:  # type: ignore[operator]
        raise PlanError(
            f"rows_per_unit must be a whole number from 1 to {_MANY}, the most rows that one unit has, got {rows_per_unit!r}; for "
            "instance rows_per_unit=1"
        )


def check_pins(account: Account, dataset: object, unit: str, rows_per_unit: int, *, enforced: bool = False) -> None:
    """Refuse a release of another dataset, another unit or another number of rows per unit than the ledger's.

    Releases of an enforced unit add up whatever the number of its rows that counts; a declared one in a ledger of an enforced unit, and
    the reverse, are refused.

    Raises `PlanError` (the dataset, or what is not a name), `PrivacyError` (unit, rows per unit).
    """
    if dataset is None:
        raise PlanError(
            f"the schema names no dataset, and a ledger charges a named one; the ledger is open for {account.dataset!r}; if these are its "
            f"records, write dataset={account.dataset!r} in their schema"
        )
    given = check_dataset(dataset)
    check_unit(unit, rows_per_unit)
    if not same_name(given, account.dataset):
        raise PlanError(
            f"the release is of dataset {given!r}, the ledger is open for {account.dataset!r}",
            f"write Ledger.open(path, dataset={given!r})",
        )
    if enforced or account.enforced:
        _check_enforced(account, unit, enforced)
        return
    if not same_name(unit, account.unit):
        raise PrivacyError(
            f"dataset {account.dataset!r} counts what one {account.unit} may lose, and the release protects one {unit}",
            "open a ledger "
            f"for that one: Ledger.create(path, dataset={account.dataset!r}, budget=..., unit={unit!r}, "
            f"rows_per_unit={rows_per_unit}) (two ledgers on the same records add up, unseen); or declare unit={account.unit!r} in the "
            "schema, if that is whom the records are about, with the most rows that one has",
        )
    if rows_per_unit != account.rows_per_unit:
        raise PrivacyError(
            f"dataset {account.dataset!r} counts units of at most {account.rows_per_unit} row(s), and the release is for units of at most "
            f"{rows_per_unit}, whose prices do not add up with the others'",
            "open a ledger for these: Ledger.create(path, "
            f"dataset={account.dataset!r}, budget=..., unit={unit!r}, rows_per_unit={rows_per_unit}) (two ledgers on the same "
            f"records add up, unseen); or declare rows_per_unit={account.rows_per_unit} in the schema, if no unit has more",
        )


def _check_enforced(account: Account, unit: str, enforced: bool) -> None:
    if account.enforced and enforced and same_name(unit, account.unit):
        return
    if account.enforced:
        how = f"one {unit}" if enforced else f"one {unit}, which its schema declares and nothing enforces"
        raise PrivacyError(
            f"dataset {account.dataset!r} counts what one {account.unit} with all its rows may lose, enforced, and the release protects "
            f"{how}",
            f"write unit=cf.Unit({account.unit!r}) in the schema, with the id column of the data; or, where there are no ids, "
            f"open a ledger of declared units: Ledger.create(path, dataset={account.dataset!r}, budget=..., unit={account.unit!r}, "
            "rows_per_unit=1)",
        )
    raise PrivacyError(
        f"dataset {account.dataset!r} counts what one {account.unit} may lose, and the release protects one {unit} with all its rows, "
        "enforced",
        f"open a ledger for that one: Ledger.create(path, dataset={account.dataset!r}, budget=..., unit={unit!r}) (two "
        "ledgers on the same records add up, unseen)",
    )
