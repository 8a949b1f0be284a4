"""What the database reports, in words for the steward: busy, read-only, full or damaged, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError

from confide.errors import ConfideError, LedgerBusy, PlanError

__all__ = ["Progress", "explained"]


class Progress:
    """How far a transaction came, so that an error says what is known of the charge."""

    def __init__(self) -> None:
        self.committing = False


@contextmanager
def explained(
    name: str, reason_of: Callable[[BaseException | None], tuple[str | None, bool]], progress: Progress
) -> Iterator[None]:
    """Turn database errors into `LedgerBusy` (locked, read-only, full, gone) and `PlanError` (damaged, no ledger).

    reason_of: the back end's words for the driver's error, or None when it is no passing state; and whether a COMMIT
    that failed so has certainly left nothing behind.
    """
    try:
        yield
    except ConfideError:
        raise
    except IntegrityError:
        raise PlanError(
            f"{name}: a second entry claims the same place in the chain, so the lock did not hold (a network disk?); "
            "nothing was written; keep the ledger on a local disk or on a server, and run ledger.verify()"
        ) from None
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason, undone = reason_of(cause)
        if reason is None:
            raise PlanError(
                f"{name}: not a ledger, or damaged ({cause}); restore it from a backup, or give the place of a ledger"
            ) from None
        unknown = progress.committing and not undone
        state = (
            "it failed while writing: take it as charged if ledger.show() lists it; nothing was released"
            if unknown
            else "nothing was charged"
        )
        raise LedgerBusy(f"{name} {reason}; {state}") from None
