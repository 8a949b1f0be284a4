"""A ledger in print: the percentage of the budget first, what it means, one line for each charge, at most 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_FLOOR, Context, Decimal
from textwrap import wrap
from typing import Any

from confide._helpers import clean
from confide.guarantees.conversion import bare_words

#: The widest line of a terminal that is printed for.
WIDEST = 80
_LABEL = 11
_FEWEST = 20  # the narrowest column of titles
_KINDS_OF_ENTRY = {"open": "opened", "amend": "amended", "convert": "converted to Gaussian DP"}


def percent(share: float) -> str:
    """A share of a budget as it is printed, with one decimal. The unit by which a charge is rounded up does not show.

    >>> percent(0.0625), percent(0.0001), percent(0.0), percent(1.0)
    ('6.2%', '<0.1%', '0.0%', '100.0%')
    """
    shown = f"{round(100 * share, 6):.1f}%" if share < 10 else "more than 999%"
    return "<0.1%" if 0 < round(100 * share, 6) < 0.05 else shown


def left(used: float) -> str:
    """What is left of a budget, never below nothing."""
    return percent(max(0.0, 1.0 - used))


def rounded_down(text: str) -> str:
    """A total with three figures, rounded down: what is left is never more than there is.

    >>> rounded_down("mu = 1.65831"), rounded_down("epsilon = 0, delta = 1.23e-06")
    ('mu = 1.65', 'epsilon = 0, delta = 1.23e-06')
    """
    down = Context(prec=3, rounding=ROUND_FLOOR)

    def shorter(found: re.Match[str]) -> str:
        number = float(down.create_decimal(Decimal(found[1])))
        return f"= {number:#.3g}" if number >= 0.001 else f"= {number:.3g}"

    return re.sub(r"= ([\d.]+(?:e[+-]\d+)?)", shorter, text)


def protects(state: Any) -> str:
    """Whom a budget protects from what, in the words of the glossary.

    Also who adds the noise, where that is not the steward.
    """
    rows = f" with at most {state.rows_per_unit} rows" if state.rows_per_unit > 1 else ""
    unit = f"one {state.unit}{' with all its rows' if state.enforced else rows}"
    differs = f"the values of {unit}; n is public" if state.relation == "substitute" else f"{unit} added or removed"
    return differs if state.trust == "central" else f"{differs}; local model"


def facts(pairs: Iterable[tuple[str, str]], width: int = _LABEL) -> list[str]:
    """Facts with their labels, in lines with a hanging indent."""
    lines: list[str] = []
    for label, text in pairs:
        lines += wrap(
            clean(text),
            WIDEST - 2,
            initial_indent=f"{label:<{width}}",
            subsequent_indent=" " * width,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def moment(time: str, *, utc: bool) -> str:
    """A time of the ledger, to the minute: local, or UTC.

    >>> moment("2026-11-29T09:45:12.000000+00:00", utc=True)
    '2026-11-29 09:45'
    """
    if utc:
        return f"{time[:10]} {time[11:16]}"
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M")


def head(state: Any) -> list[str]:
    """The percentage used, the parameters, and what the budget means."""
    budget = f"{bare_words(state.budget)}; left {rounded_down(state.remaining)}; {protects(state)}"
    return [
        f"Dataset {clean(state.dataset)!r}: {percent(state.used)} of the budget used, {left(state.used)} left",
        *facts([("Budget", budget), ("Meaning", state.meaning)]),
    ]


def summary(state: Any, *, verbose: bool, utc: bool) -> str:
    """The ledger of one dataset as text."""
    lines = head(state)
    entries = [
        row for row in state.rows if row.kind in ("charge", "amend", "convert") or (row.kind == "open" and row.note)
    ]
    if entries:
        lines += ["", *_table(entries, utc=utc)]
    unpaid = [row for row in state.rows if row.status == "without_release"]
    without = ", ".join(f"entry {row.seq}" for row in unpaid) or "none"
    end = f"Tip hash {state.tip[:8]}     (receipts: {'below' if verbose else '--verbose'})"
    told = f"Charged without release: {without}"
    lines += ["", *([f"{told}     {end}"] if len(told) + len(end) + 5 <= WIDEST else [*facts([("", told)], 0), end])]
    if verbose:
        lines += ["", *facts([("Used", state.spent), ("Left", state.remaining), ("Tip hash", state.tip)])]
        lines += [line for row in state.rows for line in _whole(row)]
    return "\n".join(lines)


def _table(entries: Sequence[Any], *, utc: bool) -> list[str]:
    """One line for each entry; a long title goes on below."""
    number = max(3, len(str(entries[-1].seq)))
    widest = WIDEST - 2 - (number + 2 + 16 + 2 + 2 + 7 + 2 + 8)
    cells = [(row, wrap(what(row), widest, break_on_hyphens=False)) for row in entries]
    wide = max(_FEWEST, *(len(line) for _, lines in cells for line in lines))
    heads = f"{'#':>{number}}  {'when':<16}  {'what':<{wide}}  {'charged':>7}  release"
    lines = [heads, "-" * (number + 39 + wide)]
    for row, said in cells:
        charge = row.kind == "charge"
        end = f"{percent(row.share) if charge else '':>7}  {row.release_sha256[:8] or 'none' if charge else ''}"
        lines.append(f"{row.seq:>{number}}  {moment(row.time, utc=utc)}  {said[0]:<{wide}}  {end}".rstrip())
        lines += [" " * (number + 20) + line for line in said[1:]]
    return lines


def what(row: Any) -> str:
    """What an entry is for, in one line."""
    if row.kind == "charge":
        return clean(row.title or row.method)
    return clean(": ".join(filter(None, (f"budget {_KINDS_OF_ENTRY[row.kind]}", row.note))))


def _whole(row: Any) -> list[str]:
    """All that an entry says."""
    pairs = [
        (row.kind, f"{row.time[:19]}Z {row.guarantee}"),
        ("what", " ".join(filter(None, (row.title, f"({row.method})" if row.method else "")))),
        ("charged", f"{100 * row.share:.6g}% of the budget, {row.amount}" if row.kind == "charge" else row.amount),
        ("plan ID", row.plan_sha256),
        ("note", row.note),
        ("used", row.spent),
        ("hash", row.hash),
    ]
    lines = ["", f"Entry {row.seq}"]
    return [*lines, *(f"  {label:<9}{clean(text)}" for label, text in pairs if text)]
