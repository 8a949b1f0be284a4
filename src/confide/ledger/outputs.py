"""What was published of each record of a protected stream: one output for each id and version, beside the entries that paid for it.

Noise drawn anew for the same record would be averaged away, and noise that follows from the record's content would show whether it
changed. So an output is drawn once, stored, and given again whenever its id comes back, whatever content comes with it; contents are
never compared. Source: derived here; errata, the section on protected records.

The ids of the records stand beside their outputs: where a stream is stored, the file or database is as private as its ids, while all that
a ledger shows stays public. Every transaction that stores outputs also writes an entry of the chain: how many the version has by now, and
their digest, the sum modulo 2^256 of the SHA-256 of each id with its output. So `Ledger.verify` sees a row that was deleted or altered,
nothing is drawn where one is missing, and a head that was kept elsewhere tells an older copy, in which ids would be drawn once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, LargeBinary, MetaData, String, Table, func, insert, inspect, select

from confide.errors import PlanError
from confide.ledger import rows
from confide.ledger.chain import guarantee_to_text
from confide.ledger.tables import STREAMED

if TYPE_CHECKING:
    from confide.ledger.store import Store

__all__ = ["Outputs", "stored_outputs"]

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
            ready = store.format_of(connection) == STREAMED
        if not ready:
            with store.writing(creating=True) as connection:
                _metadata.create_all(connection)
                store.set_format(connection, STREAMED)

    def keep(self, ids: Sequence[bytes], draw: Callable[[Sequence[int]], Sequence[bytes]]) -> list[bytes]:
        """An output for each id. draw: the outputs of rows at these positions, called once at most, for ids that have none yet.

        An id that stands twice in `ids` has one output, that of its first row.
        Raises `PlanError` when the stream's version was never charged or outputs of it are missing, `LedgerBusy` when nothing could be
        written.
        """
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
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
                count, digest = self._before(connection)
                made = dict(zip(first, draw(list(first.values())), strict=True))
                self._store_all(connection, made)
                rows.append(
                    connection,
                    account,
                    kind="outputs",
                    guarantee=guarantee_to_text(account.budget),
                    plan_sha256=self._plan,
                    release_sha256=_text(digest + _sum(made.items())),
                    note=str(count + len(made)),
                )
                known |= made
        return [known[one] for one in ids]

    def _store_all(self, connection: Connection, made: Mapping[bytes, bytes]) -> None:
        """Insert the outputs by the driver itself: what is put between for types costs more than the rows."""
        statement = insert(_outputs).compile(dialect=connection.dialect)
        names = statement.positiontup
        whole = [
            {"dataset": self._dataset, "plan_sha256": self._plan, "id": one, "output": output}
            for one, output in made.items()
        ]
        rows_of: Any = [tuple(row[name] for name in names) for row in whole] if names else whole
        connection.exec_driver_sql(str(statement), rows_of)

    def _before(self, connection: Connection) -> tuple[int, int]:
        """How many outputs the version has, and their digest, as its last entry says; refuses to draw where the table has others."""
        own = _outputs.c.dataset == self._dataset, _outputs.c.plan_sha256 == self._plan
        there = connection.execute(select(func.count()).select_from(_outputs).where(*own)).scalar_one()
        last = rows.last_outputs(connection, self._dataset, self._plan)
        if last is None:  # a stream of before these entries were written: what it has is taken as it stands
            found = connection.execute(select(_outputs.c.id, _outputs.c.output).where(*own))
            return there, _sum((bytes(one), bytes(output)) for one, output in found)
        if int(last["note"]) != there:
            raise PlanError(
                f"the stream has {there:,} stored outputs, and the chain says {int(last['note']):,}: an id that was published would be "
                "drawn once more; nothing was drawn; restore the newest backup, or open a new version"
            )
        return there, int(last["release_sha256"], 16)

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


def stored_outputs(connection: Connection, dataset: str) -> dict[str, tuple[int, str]]:
    """plan -> (how many outputs a dataset stores for it, their digest), by going through all of them."""
    if not inspect(connection).has_table(_outputs.name):
        return {}
    query = select(_outputs.c.plan_sha256, _outputs.c.id, _outputs.c.output).where(_outputs.c.dataset == dataset)
    counts: dict[str, int] = {}
    sums: dict[str, int] = {}
    for plan, one, output in connection.execute(query):
        counts[plan] = counts.get(plan, 0) + 1
        sums[plan] = sums.get(plan, 0) + _sum([(bytes(one), bytes(output))])
    return {plan: (count, _text(sums[plan])) for plan, count in counts.items()}


def _sum(outputs: Iterable[tuple[bytes, bytes]]) -> int:
    """The same whatever the order: databases have none."""
    return sum(
        int.from_bytes(hashlib.sha256(len(one).to_bytes(8, "big") + one + output).digest(), "big")
        for one, output in outputs
    )


def _text(total: int) -> str:
    return f"{total % 2**256:064x}"
