"""The truth table as text: rows of `truth_rows` as Markdown, failures included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from confide_lab.benchmarks.truth.answers import ELSEWHERE
from confide_lab.benchmarks.truth.cases import DESIGNS, title_of
from confide_lab.benchmarks.truth.models import MODELS
from confide_lab.benchmarks.truth.rows import bar, failing, median_of, worst

__all__ = ["line_of", "page", "write_page"]

_HEAD = (
    "| cell | n | mu | relation | worst coefficient: coverage [99.9 %] | without privacy | asked | width ratio | gap | ok | answered | "
    "flagged |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
_WORDS = """# Coverage: what intervals hold, measured

Printed by `confide lab bench truth --write docs/coverage.md` (with `--full` for all cells); nothing here is written by hand, and rows
that fail stay. The acceptance rules of the default line and of logistic regression: `confide lab bench truth --judge`.

Cases are designs (an adversary's among them: `confide_lab/benchmarks/truth/adversary.py`), the outside tables, and the real sets of
`CONFIDE_DATA` (`confide_lab/benchmarks/truth/records.py`), where that folder is given.

Each row draws samples with replacement from a full table (or from a synthetic population of 200,000 records), makes a release of each
with simulated noise, and asks how often the printed 95 % interval holds the same number of the full table: for lines the plain
least-squares coefficients of the response and the features clipped to their public bounds, or to the ranges that the release found
(the interval without privacy is held to the public bounds), whatever weights or limits a method uses
inside (`efficient_ptr`: the line of its public weights, which its title names); for the others `reference` of the method;
`posterior_sampling` states the ridge line of the very records and is held to that of each sample. Outside tables are real ones; their
bounds are declared from the meaning of their columns: `confide_lab/benchmarks/outside_tables.py`, and with an outcome of two values
`confide_lab/benchmarks/outside_outcomes.py`. Of the latter `resumes` and `chains` were looked at (which coefficients beside withheld ones
are answered; how far forecasts take bounds to lie); nothing else was settled on them. The former are not all untouched: which far bounds
are answered for, and how far counts of long scores are believed, was settled after looking at some (doctor, nmes, diamonds, credit, wells,
hmda, gss, fair, randhie), and the margin of SSP's cap after doctor and gss.

- **worst coefficient**: the least coverage among coefficients answered in at least a tenth of the runs, with its 99.9 % Clopper-Pearson
  interval; **without privacy**: what the non-private interval (HC1 for lines, HC0 for models, the bootstrap's for what has no other)
  covers on the same samples.
- **asked**: min(.93, without privacy - .03). A row fails, marked **FAILS**, where the 99.9 % interval of some answered coefficient lies
  below that (protocol, rule 15); the number of such coefficients stands beside it.
- **width ratio**: median over coefficients of the median ratio of the private to the non-private width; **gap**: the largest median
  error of a coefficient in non-private standard errors.
- **ok**: share of runs with status `valid`; **answered**: share of coefficients with an interval, at `valid` or
`partial`; **flagged**: share of
  answered runs that print a flag.
- **forecast**: the chance of status `valid` that a plan states for such a cell, from the schema alone; logistic regression only.
- mu is the budget; for methods that need a delta it is 1e-6, `quantile` and `quantiles, pure` epsilon = mu.
- `domains-` cases draw n whole PSUs of a real table, and their cells and subgroups lie in 1, 2, 4, 8 of these or the rest
  (`confide_lab/benchmarks/truth/domains.py`); a cell with the flag `few_psus` counts as not answered.
- Samples of counts and totals are of random size, and their truth is that of a sample. Methods that take the number of records as public
  have a rule for missing values in their schema; there are none.
- A method marked * states another line in its title, which a release alone determines (`huber_line`), or prints no interval at all
  (`binagg`: what the sandwich over its bins would give); it is held here against least squares, for information.
"""
_ELSEWHERE = "## Methods that are in no cell"


def page(rows: Sequence[dict[str, Any]], skipped: Iterable[str] = (), before: str = "") -> str:
    """The whole page: one table for each method. before: the page as it was, of which sections of methods without rows are kept."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    kept = {name: text for name, text in _sections(before).items() if name not in methods}
    lines = [
        line for line in before.split("\n## ")[0].split("\n") if line.startswith(tuple(f"| {name} " for name in kept))
    ]
    parts = [_WORDS, "\n".join([_short(rows), *lines])]
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        star = "" if all(row["titled"] for row in own) else " *"
        lost = sum(bool(failing(row)) for row in own)
        runs = sorted({row["replications"] for row in own})
        samples = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1]))))
        parts.append(
            f"## {method}{star}\n\n{_measured(own)}\n\n{len(own)} cells, {lost} fail; {samples} samples each.\n\n"
            + _head(own)
            + "\n"
            + "\n".join(map(line_of, sorted(own, key=_place)))
        )
    parts += kept.values()
    parts.append(_ELSEWHERE + "\n\n" + "\n".join(f"- `{name}`: {why}" for name, why in sorted(ELSEWHERE.items())))
    missing = sorted(set(skipped))
    if missing:
        parts.append("## Not run here\n\n" + "\n".join(f"- {one}" for one in missing))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _measured(rows: Sequence[dict[str, Any]]) -> str:
    """The commits at which a method was measured."""
    commits = ", ".join(sorted({row.get("commit", "unknown") for row in rows}))
    return f"Measured at {commits} (+: with changes that were not committed)."


def _sections(page: str) -> dict[str, str]:
    """The sections of a page by method, each with where it was measured."""
    found = {}
    for text in page.split("\n## ")[1:]:
        title, body = text.split("\n", 1)
        if "\n| cell |" in body:
            found[title.removesuffix(" *")] = f"## {title}\n{body}"
    return found


def _head(rows: Sequence[dict[str, Any]]) -> str:
    """The head of a method's table, with what plans said where they say it."""
    if not any("expected" in row for row in rows):
        return _HEAD
    first, second = _HEAD.split("\n")
    return f"{first} forecast |\n{second} --- |"


def _short(rows: Sequence[dict[str, Any]]) -> str:
    """One line for each method."""
    lines = ["| method | cells | fail | worst coefficient, median | width ratio, median | answered, median |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        least = [one["coverage"] for row in own if (one := worst(row)) is not None]
        ratios = [ratio for row in own if (ratio := median_of(row, "ratio")) is not None]
        star = "" if all(row["titled"] for row in own) else " *"
        numbers = f"{_share(_middle(least))} | {_number(_middle(ratios))} | {_share(_middle([row['answered'] for row in own]))}"
        lines.append(f"| {method}{star} | {len(own)} | {sum(bool(failing(row)) for row in own)} | {numbers} |")
    return "\n".join(lines)


def _middle(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["case"] not in DESIGNS and row["case"] not in MODELS,
        row["case"],
        row["relation"],
        row["n"] or 10**9,
        row["mu"],
    )


def line_of(row: dict[str, Any]) -> str:
    """One row."""
    head = f"| {title_of(row['case'])} | {row['n'] or 'whole'} | {row['mu']:g} | {row['relation']} |"
    least, lost = worst(row), failing(row)
    tail = f"{_share(row['status'].get('valid', 0.0))} | {_share(row['answered'])} | {_share(row['flagged'])} |"
    if "expected" in row:
        tail += f" {_share(row['expected'])} |"
    if least is None:
        return f"{head} - | - | - | - | - | {tail}"
    mark = f" **FAILS** ({len(lost)} of {len(row['coefficients'])})" if lost else ""
    plain = least.get("plain")
    gaps = [one["gap"] for one in row["coefficients"] if one.get("gap") is not None]
    gap = max(gaps, key=abs, default=None)
    held = f"{_share(least['coverage'])} [{_share(least['low'])}, {_share(least['high'])}] {_cell(least['name'])}{mark}"
    asked = None if plain is None else bar(least)
    numbers = f"{_number(median_of(row, 'ratio'))} | {_number(gap)}"
    return f"{head} {held} | {_share(plain)} | {_share(asked)} | {numbers} | {tail}"


def _cell(name: str) -> str:
    """A name within a table, where a bar would end the cell."""
    return name.replace("|", "\\|")


def _share(value: float | None) -> str:
    """A share as .95, 1.00."""
    if value is None:
        return "-"
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def write_page(path: Path, rows: Sequence[dict[str, Any]], skipped: Iterable[str] = ()) -> None:
    """Write the page, with a final line break. Sections of methods that were not measured stay as they are there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    path.write_text(page(rows, skipped, before))
