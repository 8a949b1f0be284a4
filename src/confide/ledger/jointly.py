"""What two ledgers over one data set come to for a person: one of an enforced unit, one of records.

A person with m rows is covered by the unit's releases as one unit and by the records' as m records, which is m times their mu (group
privacy of a Gaussian trade-off, Dong, Roth, Su 2022, Theorem 2.14): in all GDP(sqrt(b_unit + m^2 b_record)), b the sums of mu^2 spent
(their Corollary 3.3). One relation and no delta on either side, else nothing is said.
"""

from __future__ import annotations

from fractions import Fraction

from confide.errors import PlanError
from confide.guarantees import GDP
from confide.ledger.counting.units import amount_of, root_up
from confide.ledger.names import same_name
from confide.ledger.records import LedgerState

__all__ = ["jointly"]


def jointly(one: LedgerState, other: LedgerState, rows: int) -> GDP:
    """What a person with so many rows has from both ledgers together, in either order.

    Raises `PlanError` where the two are not of one data set and relation, one of an enforced unit and one of records, or have spent a
    delta or another currency than Gaussian ones.
    """
    unit, record = (one, other) if one.enforced else (other, one)
    if not unit.enforced or record.enforced or record.unit != "record" or record.rows_per_unit > 1:
        raise PlanError(
            f"two ledgers add up for a person where one is of an enforced unit and one of records, got {one.whose} and {other.whose}"
        )
    if not same_name(one.dataset, other.dataset) or one.relation != other.relation:
        raise PlanError(
            f"two ledgers add up over one data set and relation, got {one.dataset!r}, {one.relation} and {other.dataset!r}, "
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
