"""What was published of each record of a protected stream: one output for each id and version, beside the entries that paid for it.

Noise drawn anew for the same record would be averaged away, and noise that follows from the record's content would show whether it
changed. So an output is drawn once, stored, and given again whenever its id comes back, whatever content comes with it; contents are
never compared. Source: derived here; errata, the section on protected records.

The ids of the records stand beside their outputs: where a stream is stored, the file or database is as private as its ids, while all that
a ledger shows stays public. Every transaction that stores outputs also writes an entry of the chain: how many the version has by now, and
the SHA-256 of what it adds, ids and outputs in the order of the ids. Each row names the charge that paid for it and the entry that tells
of it. So `Ledger.verify` sees a row that was deleted, altered or put there, nothing is drawn where one is missing, and a tip that was kept
elsewhere tells an older copy, in which ids would be drawn once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from confide.errors import PlanError
from confide.ledger.chain import STREAM_OUTPUT, guarantee_to_text
from confide.ledger.storage import rows

if TYPE_CHECKING:
    from confide.ledger.account import Account
    from confide.ledger.storage.store import Connection, Store


# Ids that one statement asks for, and rows that one stores; databases limit the number of parameters.
_ASKED, _TOGETHER = 10_000, 50


class Outputs:
    """The stored outputs of one version of one stream, made by `Ledger.outputs`.

    `keep(ids, draw)` gives an output for each id, in order: the stored one, or one that `draw` makes now. It is on disk when the call
    returns, in one transaction that no other writer of the dataset is beside. Outputs that no charge paid for are refused.
    """

    def __init__(self, store: Store, dataset: str, plan_sha256: str) -> None:
        self._store, self._dataset, self._plan = store, dataset, plan_sha256
        self._counted = ""  # hash of the last entry at which rows were counted, or that was written here since

    def keep(self, ids: Sequence[bytes], draw: Callable[[Sequence[int]], Sequence[bytes]]) -> list[bytes]:
        """An output for each id. draw: the outputs of rows at these positions, called once at most, for ids that have none yet.

        An id that stands twice in `ids` has one output, that of its first row.
        Raises `PlanError` when the stream's version was never charged or outputs of it are missing, `LedgerBusy` when nothing could be
        written.
        """
        counted = self._counted
        with self._store.writing() as connection:
            account = rows.locked_account(connection, self._dataset)
            charge = rows.charge_of(connection, self._dataset, self._plan)
            if charge is None:
                raise PlanError(
                    "this version of the stream was never charged, so no record of it can be published",
                    "open it with cf.local.Releaser.open",
                )
            last = rows.last_outputs(connection, self._dataset, self._plan)
            known = self._known(connection, charge, ids) if last is not None else {}
            new = [one for one in dict.fromkeys(ids) if one not in known]
            if new:
                before = 0 if last is None else int(last["note"])
                if last is None or last["hash"] != counted:
                    self._check_count(connection, charge, before)
                first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
                made = dict(zip(new, draw([first[one] for one in new]), strict=True))
                last, _ = self._add(connection, account, charge, before, made)
                counted = last["hash"]
                known |= made
        self._counted = counted  # only what was committed
        return [known[one] for one in ids]

    def _add(
        self, connection: Connection, account: Account, charge: int, before: int, made: Mapping[bytes, bytes]
    ) -> tuple[dict[str, Any], Account]:
        """Store outputs, and the entry that tells of them."""
        added = sorted(made.items())  # as the table keeps them
        each = f"({', '.join('?' * len(STREAM_OUTPUT))})"

        def put(some: Sequence[tuple[bytes, bytes]], together: int) -> None:
            many = f"INSERT INTO stream_output ({', '.join(STREAM_OUTPUT)}) VALUES {', '.join([each] * together)}"
            whole = [(self._dataset, charge, *one, account.entries + 1) for one in some]
            connection.executemany(many, [tuple(chain.from_iterable(some)) for some in _pieces(whole, together)])

        even = len(added) - len(added) % _TOGETHER
        if even:
            put(added[:even], _TOGETHER)
        if even < len(added):
            put(added[even:], 1)
        return rows.append(
            connection,
            account,
            kind="outputs",
            guarantee=guarantee_to_text(account.budget),
            plan_sha256=self._plan,
            release_sha256=_digest(added),
            note=str(before + len(added)),
        )

    def _check_count(self, connection: Connection, charge: int, said: int) -> None:
        """Refuse to draw where the table has another number of outputs than the chain says."""
        count = "SELECT count(*) FROM stream_output WHERE dataset = ? AND charge = ?"
        (there,) = connection.execute(count, (self._dataset, charge)).fetchone()
        if said != there:
            raise PlanError(
                f"the stream has {there:,} stored outputs, and the chain says {said:,}: an id that was published would be "
                "drawn once more; nothing was drawn",
                "restore the newest backup, or open a new version",
            )

    def _known(self, connection: Connection, charge: int, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The stored outputs of these ids."""
        found: dict[bytes, bytes] = {}
        for some in _pieces(list(dict.fromkeys(ids)), _ASKED):
            marks = ", ".join("?" * len(some))
            query = f"SELECT id, output FROM stream_output WHERE dataset = ? AND charge = ? AND id IN ({marks})"
            stored = connection.execute(query, (self._dataset, charge, *some))
            found |= {bytes(one): bytes(output) for one, output in stored}
        return found


def stored_outputs(connection: Connection, dataset: str) -> dict[tuple[int, int], tuple[int, str]]:
    """(charge, entry) -> (how many outputs name the two, their digest), by going through all that a dataset stores."""
    query = "SELECT charge, entry, id, output FROM stream_output WHERE dataset = ? ORDER BY charge, entry, id"
    told = {}
    for key, some in groupby(connection.stream(query, (dataset,)), itemgetter(0, 1)):
        outputs = [(bytes(one), bytes(output)) for _, _, one, output in some]
        told[int(key[0]), int(key[1])] = len(outputs), _digest(outputs)
    return told


def _pieces(whole: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _digest(outputs: Sequence[tuple[bytes, bytes]]) -> str:
    """SHA-256 of ids and outputs in order, each with its length before it."""
    parts = [part for pair in outputs for part in pair]
    lengths = {size: size.to_bytes(8, "big") for size in set(map(len, parts))}
    return hashlib.sha256(b"".join([lengths[len(part)] + part for part in parts])).hexdigest()
