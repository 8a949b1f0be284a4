"""What the database reports, in words for the steward: busy, read-only, full or damaged, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, IntegrityError

from confide.errors import ConfideError, LedgerBusy, PlanError

__all__ = ["Progress", "explained"]

_PERMIT = "give this account read and write permission on the file and on its directory"
_REASONS = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another process, and stayed so for {timeout:g} s; try again, or open it with a longer timeout="
    ),
    sqlite3.SQLITE_LOCKED: "is locked by another connection of this process; try again",
    sqlite3.SQLITE_READONLY: f"is read-only; {_PERMIT}",
    sqlite3.SQLITE_PERM: f"is not permitted to this account; {_PERMIT}",
    sqlite3.SQLITE_AUTH: f"is not permitted to this account; {_PERMIT}",
    sqlite3.SQLITE_FULL: "cannot grow because the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "could not be read or written (input/output error); check the disk and try again",
    sqlite3.SQLITE_CANTOPEN: f"could not be opened; {_PERMIT}",
}
# After these a failed COMMIT has certainly left nothing behind: the transaction was still open and was rolled back.
_NEVER_WRITTEN = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY}


class Progress:
    """How far a transaction came, so that an error says what is known of the charge."""

    def __init__(self) -> None:
        self.committing = False


@contextmanager
def explained(path: Path, timeout: float, progress: Progress) -> Iterator[None]:
    """Turn database errors into `LedgerBusy` (locked, read-only, full) and `PlanError` (damaged, no book)."""
    try:
        yield
    except ConfideError:
        raise
    except IntegrityError:
        raise PlanError(
            f"{path}: a second entry claims the same place in the chain, so the lock of the file did not hold (a "
            "network disk?); nothing was written; keep the book on a local disk and run book.verify()"
        ) from None
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
        reason = _REASONS.get(code)
        if reason is None:
            raise PlanError(
                f"{path}: not a ledger, or damaged ({cause}); restore it from a backup, or give the path of a book"
            ) from None
        raise LedgerBusy(f"{path} {reason.format(timeout=timeout)}; {_state(code, progress)}") from None


def _state(code: int, progress: Progress) -> str:
    if progress.committing and code not in _NEVER_WRITTEN:
        return "it failed while writing: take it as charged if book.show() lists it; nothing was released"
    return "nothing was charged"
