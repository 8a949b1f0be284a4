"""The tree of errors.

Every message says what was given, what is allowed, and the call that works. No message ever holds a value, a count or
a position taken from records, because an error that depends on the records would be a leak.
"""

from __future__ import annotations


class ConfideError(Exception):
    """Base of all errors that confide raises on purpose.

    `exit_code` is what the command line returns for it.
    """

    exit_code = 2


class SchemaError(ConfideError, ValueError):
    """The public description of the data is wrong: a column, a bound, a level or its file."""

    exit_code = 3


class PlanError(ConfideError, ValueError):
    """The analysis cannot be planned from public facts, such as a formula or a parameter."""

    exit_code = 3


class PrivacyError(ConfideError, ValueError):
    """A guarantee is impossible or incomplete, or differs in kind from the one it meets."""

    exit_code = 3


class NoConversion(PrivacyError):
    """No proof leads from this guarantee to the kind asked for; the message names the missing direction."""


class SourceError(ConfideError):
    """A source cannot be read as its schema says; only public facts (file, column, step) are named."""

    exit_code = 3


class BudgetExceeded(ConfideError):
    """The charge does not fit the rest of the budget; nothing was charged or drawn.

    Parameters
    ----------
    message : str
        The cost, the rest of the budget, and what to do.
    requested : str, default ""
        Guarantee that was asked for.
    spent : str, default ""
        What the ledger has charged so far.
    remaining : str, default ""
        What is left of the budget.

    Examples
    --------
    >>> import confide as cf
    >>> cf.errors.BudgetExceeded("the charge does not fit", remaining="0.2").remaining
    '0.2'
    """

    exit_code = 4

    def __init__(self, message: str, *, requested: str = "", spent: str = "", remaining: str = "") -> None:
        super().__init__(message)
        self.requested = requested
        self.spent = spent
        self.remaining = remaining


class LedgerBusy(ConfideError):
    """The ledger could not be locked or written in time; nothing was charged or released."""

    exit_code = 5


class ReleaseError(ConfideError):
    """A release failed, or a released file is damaged or too new. After a charge, the charge stays."""

    exit_code = 6


class NoResult(ConfideError):
    """The mechanism declined, so the release holds nothing to predict from."""

    exit_code = 3
