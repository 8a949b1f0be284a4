"""The one tree of errors.

Every message says what was given, what is allowed, and the call that works. No message ever holds a value, a count or a
position taken from records: an error that depends on the records would be a leak.
"""

from __future__ import annotations


class ConfideError(Exception):
    """Everything that confide raises on purpose. `exit_code` is what the command line returns for it."""

    exit_code = 2


class SchemaError(ConfideError, ValueError):
    """The public description of the data is wrong: a column, a bound, a level, a file of them."""

    exit_code = 3


class PlanError(ConfideError, ValueError):
    """The analysis cannot be planned from public facts: a formula, a parameter, a method that is not there."""

    exit_code = 3


class PrivacyError(ConfideError, ValueError):
    """A guarantee is impossible, incomplete or of another kind than the one it meets."""

    exit_code = 3


class NoConversion(PrivacyError):
    """No proof leads from the guarantee at hand to the one asked for; the message names the missing direction."""


class SourceError(ConfideError):
    """A source cannot be read as its schema says; only public facts (file, column, step) are named."""

    exit_code = 3


class BudgetExceeded(ConfideError):
    """The charge does not fit what is left. Nothing was charged and no noise was drawn."""

    exit_code = 4

    def __init__(self, message: str, *, requested: str = "", spent: str = "", remaining: str = "") -> None:
        super().__init__(message)
        self.requested = requested
        self.spent = spent
        self.remaining = remaining


class LedgerBusy(ConfideError):
    """The ledger could not be locked or written in time. Nothing was charged and nothing was released."""

    exit_code = 5


class ReleaseError(ConfideError):
    """A release failed, or a released file is damaged or too new. After a charge, the charge stays."""

    exit_code = 6


class NoResult(ConfideError):
    """The release holds no reply, so there is nothing to predict from."""

    exit_code = 3
