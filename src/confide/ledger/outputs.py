"""What was published of each record of a protected stream: one output for each id and version, beside the entries that paid for it.

Noise drawn anew for the same record would be averaged away, and noise that follows from the record's content would show whether it
changed. So an output is drawn once, stored, and given again whenever its id comes back, whatever content comes with it; contents are
never compared. Source: derived here; errata, the section on protected records.

The ids of the records stand beside their outputs: where a stream is stored, the file or database is as private as its ids, while all that
a ledger shows stays public. Outputs are no entries of the chain, and `Ledger.verify` says nothing of them: where a row was deleted, or an
older copy put back, an id that was published is drawn once more, and its noise could be averaged with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, LargeBinary, MetaData, String, Table, insert, inspect, select

from confide.errors import PlanError
from confide.ledger import rows

if TYPE_CHECKING:
    from confide.ledger.store import Store

__all__ = ["Outputs"]

_metadata = MetaData()

_outputs = Table(
    "local_output",
    _metadata,
    Column("dataset", String(200), primary_key=True),
    Column("plan_sha256", String(64), primary_key=True),  # of the stream with all its parameters and its version
    Column("id", LargeBinary, primary_key=True),
    Column("output", LargeBinary, nullable=False),
)

# Ids that one statement asks for; databases limit the number of parameters.
_ASKED = 500


class Outputs:
    """The stored outputs of one version of one stream, made by `Ledger.outputs`.

    `keep(ids, draw)` gives an output for each id, in order: the stored one, or one that `draw` makes now. It is on disk when the call
    returns, in one transaction that no other writer of the dataset is beside. Outputs that no charge paid for are refused.
    """

    def __init__(self, store: Store, dataset: str, plan_sha256: str) -> None:
        self._store, self._dataset, self._plan = store, dataset, plan_sha256
        with store.reading() as connection:
            there = inspect(connection).has_table(_outputs.name)
        if not there:
            with store.writing(creating=True) as connection:
                _metadata.create_all(connection)

    def keep(self, ids: Sequence[bytes], draw: Callable[[Sequence[int]], Sequence[bytes]]) -> list[bytes]:
        """An output for each id. draw: the outputs of rows at these positions, called once at most, for ids that have none yet.

        An id that stands twice in `ids` has one output, that of its first row.
        Raises `PlanError` when the stream's version was never charged, `LedgerBusy` when nothing could be written.
        """
        with self._store.writing() as connection:
            rows.locked_account(connection, self._dataset)
            if not rows.has_charge(connection, self._dataset, self._plan):
                raise PlanError(
                    "this version of the stream was never charged, so no record of it can be published; open it with cf.local.Releaser.open"
                )
            known = self._known(connection, ids)
            first: dict[bytes, int] = {}
            for at, one in enumerate(ids):
                if one not in known:
                    first.setdefault(one, at)
            if first:
                made = dict(zip(first, draw(list(first.values())), strict=True))
                own = {"dataset": self._dataset, "plan_sha256": self._plan}
                connection.execute(
                    insert(_outputs), [{**own, "id": one, "output": output} for one, output in made.items()]
                )
                known |= made
        return [known[one] for one in ids]

    def _known(self, connection: Connection, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        asked = list(dict.fromkeys(ids))
        for start in range(0, len(asked), _ASKED):
            query = select(_outputs.c.id, _outputs.c.output).where(
                _outputs.c.dataset == self._dataset,
                _outputs.c.plan_sha256 == self._plan,
                _outputs.c.id.in_(asked[start : start + _ASKED]),
            )
            found |= {bytes(one): bytes(output) for one, output in connection.execute(query)}
        return found
