"""The tree of errors.

Every message says what was given, what is allowed, and the call that works. No message ever holds a value, a count or
a position taken from records, because an error that depends on the records would be a leak.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_WHOLE = 10**9  # columns of lines that are not wrapped


class ConfideError(Exception):
    """Base of all errors that confide raises on purpose.

    Parameters
    ----------
    problem : str
        What was given, and which rule it breaks.
    remedy : str, default ""
        What to do: the call that works, or the smallest change. The command line
        and the studio print it in their own words.
    allowed : str, default ""
        The set or the range that is allowed.
    name : str, default ""
        Short name of the problem; left out, that of the class.
    parts : sequence of ConfideError, default ()
        The problems, where one call has several.
    instead : (str, str), optional
        An argument as it was given, and as it works.

    Notes
    -----
    `exit_code` is what the command line returns for it. `analysis` is the analysis
    of a publication that it is about, or "". `ending` says what became of the
    budget, where the class knows it.

    Examples
    --------
    >>> import confide as cf
    >>> print(cf.ConfideError("n must be above 0, got 0", "write n=100"))
    n must be above 0, got 0; write n=100
    >>> print(cf.ConfideError("the formula names x", "write y", allowed="y, z"))
    the formula names x.
      Allowed  y, z
      Try      y
    """

    exit_code = 2
    analysis = ending = _called = ""

    def __init__(
        self,
        problem: str = "",
        remedy: str = "",
        *,
        allowed: str = "",
        name: str = "",
        parts: Sequence[ConfideError] = (),
        instead: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy, self.allowed = str(problem), str(remedy), allowed
        self.parts, self.instead = tuple(parts), instead
        own = name or self._called or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        self.names: tuple[str, ...] = tuple(dict.fromkeys(one for part in parts for one in part.names)) or (own,)

    def __str__(self) -> str:
        if self.allowed or self.parts or "\n" in self.remedy:
            return "\n".join(
                [*self.lines(width=_WHOLE), *([f"{self.ending} [{', '.join(self.names)}]"] if self.ending else [])]
            )
        return "; ".join(filter(None, [self.told, self.remedy]))

    @property
    def told(self) -> str:
        """The problem, and the analysis that has it."""
        return f"analysis {self.analysis!r}: {self.problem}" if self.analysis else self.problem

    def lines(
        self,
        said: Callable[[ConfideError, str], str] = lambda _, text: text,
        head: str = "",
        indent: str = "  ",
        width: int = 80,
    ) -> list[str]:
        """The lines of a message: each problem with what is allowed, then what to try.

        Parameters
        ----------
        said : callable
            The words of a reader, from the error and a text of it.
        head : str, default ""
            What stands before the problem.
        indent : str, default "  "
            What stands before the further lines.
        width : int, default 80
            Most columns of a line, where words allow it.

        Returns
        -------
        list of str
            The lines.
        """
        problem = said(self, self.told)
        found = hanging(head, problem + ("" if problem.endswith((".", "?", "!")) else "."), width)
        for number, one in enumerate(self.parts, 1):
            found += one.lines(said, f"{indent}{number}  ", f"{indent}   ", width)
        for label, text in (("Allowed", self.allowed), ("Try", said(self, self.remedy).removeprefix("write "))):
            text = re.sub(" `(confide [^`]*)`$", r"\n\1", text) if len(text) > width - 11 else text
            found += hanging(f"{indent}{label:<9}", text, width) if text else []
        return found


def together(parts: Sequence[ConfideError], where: str, remedy: str = "") -> ConfideError:
    """One error for several problems, and what mends all of them; a single problem is itself."""
    own = [inner for part in parts for inner in part.parts or (part,)]
    if len(own) > 1:
        for one in own:  # what works is said once, for all of them
            one.remedy = "" if one.instead else one.remedy
    whole = own[0] if len(own) == 1 else type(own[0])(f"{len(own)} problems in {where}", parts=own)
    whole.remedy = remedy or whole.remedy
    return whole


def hanging(label: str, text: str, width: int = 80) -> list[str]:
    r"""A text behind its label, wrapped at words; a command that is broken has backslashes, so that it can be pasted.

    >>> print(*hanging("  Try  ", "confide plan 'income ~ age' --mu 1\nor wait", 30), sep="\n")
      Try  confide plan \
             'income ~ age' \
             --mu 1
           or wait
    """
    found, under = list[str](), " " * len(label)
    for line in text.split("\n"):
        command = line.startswith("confide ")
        parts = re.findall(r"""(?:-\S+ (?!-))?(?:"[^"]*"|'[^']*'|\S)+""", line) if command else line.split()
        row = lead = under if found else label
        for part in [line] if len(lead) + len(line) <= width else parts:
            if row != lead and len(row) + len(part) >= width - 2 * command:
                found.append(row + " \\" * command)
                row = lead = under + "  " * command
            row += part if row == lead else f" {part}"
        found.append(row)
    return found


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
    allowed : str, default ""
        The largest cost that fits.
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
    ending = "Nothing was charged and no noise was drawn."

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        allowed: str = "",
        requested: str = "",
        spent: str = "",
        remaining: str = "",
    ) -> None:
        super().__init__(problem, remedy, allowed=allowed)
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
    allowed : str, default ""
        What the release does hold.
    name : str, default ""
        Short name of the problem; left out, that of the class.
    parts : sequence of ConfideError, default ()
        The problems, where there are several.
    instead : (str, str), optional
        An argument as it was given, and as it works.

    Examples
    --------
    >>> import confide as cf
    >>> cf.NoResult("the release declined").exit_code
    3
    """

    exit_code = 3
