"""The tree of errors.

Every message says what was given, what is allowed, and the call that works. No message ever holds a value, a count or
a position taken from records, because an error that depends on the records would be a leak.
"""

from __future__ import annotations


class ConfideError(Exception):
    """Base of all errors that confide raises on purpose.

    Parameters
    ----------
    problem : str
        What was given, and which rule it breaks.
    remedy : str, default ""
        What to do: the call that works, or the smallest change. The command line
        and the studio print it in their own words.

    Notes
    -----
    `exit_code` is what the command line returns for it.

    Examples
    --------
    >>> import confide as cf
    >>> print(cf.ConfideError("n must be above 0, got 0", "write n=100"))
    n must be above 0, got 0; write n=100
    """

    exit_code = 2

    def __init__(self, problem: str = "", remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = str(problem), str(remedy)

    def __str__(self) -> str:
        return "; ".join(filter(None, [self.problem, self.remedy]))


class SchemaError(ConfideError, ValueError):
    """The public description of the data is wrong: a column, a bound, a level or its file."""

    exit_code = 3


class PlanError(ConfideError, ValueError):
    """The analysis cannot be planned from public facts, such as a formula or a parameter."""

    exit_code = 3


class FileError(ConfideError):
    """A file does not exist, cannot be read or cannot be written."""

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
    problem : str
        The cost, and the rest of the budget.
    remedy : str, default ""
        What would fit, or how the steward raises the budget.
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

    def __init__(
        self, problem: str, remedy: str = "", *, requested: str = "", spent: str = "", remaining: str = ""
    ) -> None:
        super().__init__(problem, remedy)
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
    """The mechanism declined, so the release holds nothing to predict from.

    Parameters
    ----------
    problem : str
        What the release does not hold.
    remedy : str, default ""
        What to ask for instead.

    Examples
    --------
    >>> import confide as cf
    >>> cf.NoResult("the release declined").exit_code
    3
    """

    exit_code = 3
