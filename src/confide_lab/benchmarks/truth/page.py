"""The truth table: every row of `truth_rows` in a CSV file, failures included, and two pages of what they come to."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from confide_lab.benchmarks.truth.answers import ELSEWHERE
from confide_lab.benchmarks.truth.cases import title_of
from confide_lab.benchmarks.truth.rows import bar, failing, median_of, worst

__all__ = [
    "COLUMNS",
    "as_csv",
    "evidence_page",
    "line_of",
    "record_of",
    "records_in",
    "reference_page",
    "updated",
    "write_pages",
]

#: Of the CSV file. `failed`: how many of the `coefficients` fail the rule. `held_against`: "title" or, for a method that states
#: something else or nothing, "least squares".
COLUMNS = (
    "method", "held_against", "cell", "n", "mu", "relation", "coefficient", "coverage", "low", "high", "failed", "coefficients",
    "without_privacy", "asked", "width_ratio", "gap", "valid", "answered", "flagged", "forecast", "samples", "measured_at",
)  # fmt: skip
#: Where the file and the pages of a checkout are.
PLACES = {"csv": "evidence/coverage.csv", "evidence": "evidence/coverage.md", "reference": "docs/reference/coverage.md"}
_WORDS = """# Coverage: how often intervals contain the truth, measured

See in which cells the intervals of a method contain the true number, and in which they fail. For statisticians and reviewers. You need to
know what an [interval of a result](../docs/explain/intervals.md) is about.

Every row is in [coverage.csv](coverage.csv), failures included. `confide lab bench truth --write .` prints the file, this page and its
[summary](../docs/reference/coverage.md), with `--full` for all cells. `confide lab bench truth --judge` prints the acceptance rules of the
default regression and of logistic regression. Tables were also compared with [eight real sets](methods/tables.md#eight-real-sets).

## How it is measured

Each row of the file is one method on one cell:

1. Samples are drawn with replacement from a full table, or from a synthetic population of 200,000 records.
2. Each sample is released with simulated noise.
3. The printed 95% interval is compared with the same number of the full table.

**The number that is compared.** For a linear regression it is the least-squares coefficient of response and features, clipped to their
public bounds or to the ranges that the release found. Weights or limits that a method uses inside do not change it. The interval without
privacy is compared at the public bounds. For other methods the number is `reference` of the method. There are two exceptions.
`efficient_ptr` states the regression with its public weights, which its title names. `posterior_sampling` states the ridge regression of
the records themselves, and is compared with that of each sample.

**The cells.** They are designs, the outside tables, and the real sets of the folder `CONFIDE_DATA`, if there is one. One of the designs is
an adversary's (`confide_lab/benchmarks/truth/adversary.py`; real sets: `confide_lab/benchmarks/truth/records.py`). Outside tables are real
ones, and their bounds are declared from the meaning of their columns. They are in `confide_lab/benchmarks/outside_tables.py`, and those
with an outcome of two values in `confide_lab/benchmarks/outside_outcomes.py`.

**What was chosen after a look at them.** Two settings depend on outcome tables that were looked at, `resumes` and `chains`: which
coefficients next to withheld ones are answered, and how far forecasts assume bounds to lie. Nothing else was chosen on outcome tables. Of
the other outside tables, some were looked at before these settings were chosen:

- how wide bounds may be for an answer, and how far counts of long scores are believed: doctor, nmes, diamonds, credit, wells, hmda, gss,
  fair, randhie
- the margin of SSP's cap: doctor, gss

The columns of the file:

- `coefficient`, `coverage`, `low`, `high`: the least coverage among coefficients that are answered in at least a tenth of the runs, with
  its 99.9% Clopper-Pearson interval.
- `without_privacy`: the coverage of the interval without privacy on the same samples: HC1 for linear regression, HC0 for other models, the
  bootstrap for what has no other.
- `asked`, `failed`: the bar, the lesser of 0.93 and `without_privacy` - 0.03. A row fails if the 99.9% interval of an answered coefficient
  lies below the bar; `failed` counts such coefficients.
- `width_ratio`: the median over coefficients of the median ratio of the private width to the one without privacy.
- `gap`: the largest median error of a coefficient, in standard errors without privacy.
- `valid`, `answered`, `flagged`: the share of runs with the status `valid`; of coefficients with an interval, at `valid` or `partial`; of
  answered runs that print a flag.
- `forecast`: of logistic regression: the chance of status `valid` that a plan states for the cell, from the schema alone.

What to know of single cells:

- mu is the budget. For methods that need a delta it is 1e-6; for `quantile` and `quantiles, pure` epsilon equals mu.
- `domains-` cells draw n whole PSUs of a real table (`confide_lab/benchmarks/truth/domains.py`). Their subgroups lie in 1, 2, 4 or 8 of
  these, or in the rest. A number with the flag `few_psus` counts as not answered.
- Samples of counts and totals are of random size, and the truth is that of a sample. Methods with a public number of records have a rule
  for missing values in their schema, and no value is missing.
- A method marked * is compared with least squares for information. It states another regression in its title, which a release alone
  determines (`huber_line`), or prints no interval (`binagg`, where the sandwich over its bins stands instead).
"""
_REFERENCE = """# How often intervals contain the truth

See for each method how often its 95% confidence intervals contain the true number, and how wide they are beside those without privacy.
For analysts and reviewers who decide whether to trust an interval.
You need to know what an interval of a result is about ([glossary](glossary.md)).

<!-- Made from evidence/coverage.csv by `confide lab bench truth --write .`: do not edit it here. -->

A cell is one table or design, one number of records and one mu. Samples are drawn from a table whose true numbers are known. Each
is released with simulated noise, and its intervals are compared with the truth.

"Coverage" is that of the worst coefficient of a cell, and of these the median over cells. It is below 0.95 in part because it is
the least of several, each measured with few samples. "Width ratio" is the width over that without privacy, in cells with an
interval.

A cell fails if a 99.9% interval of its coverage lies below the bar: 0.93, or three points less than without privacy. For example,
"1 of 44" is a method that fails in one cell of 44. The bar of each cell is in the
[evidence](../../evidence/coverage.md), as is the file of all rows.
"""
Record = Mapping[str, str]


def record_of(row: dict[str, Any]) -> dict[str, str]:
    """A row of the CSV file."""
    least, lost = worst(row), failing(row)
    found: dict[str, Any] = {
        "method": row["method"],
        "held_against": "title" if row["titled"] else "least squares",
        "cell": title_of(row["case"]),
        "n": row["n"] or "whole",
        "mu": f"{row['mu']:g}",
        "relation": row["relation"],
        "failed": len(lost),
        "coefficients": len(row["coefficients"]),
        "valid": row["status"].get("valid", 0.0),
        "answered": row["answered"],
        "flagged": row["flagged"],
        "forecast": row.get("expected"),
        "samples": row["replications"],
        "measured_at": row.get("commit", "unknown"),
    }
    if least is not None:
        plain = least.get("plain")
        gaps = [one["gap"] for one in row["coefficients"] if one.get("gap") is not None]
        found |= {
            "coefficient": least["name"],
            "coverage": least["coverage"],
            "low": least["low"],
            "high": least["high"],
            "without_privacy": plain,
            "asked": None if plain is None else bar(least),
            "width_ratio": _number(median_of(row, "ratio")),
            "gap": _number(max(gaps, key=abs, default=None)),
        }
    return {name: _text(found.get(name)) for name in COLUMNS}


def _text(value: Any) -> str:
    if value is None or value == "-":
        return ""
    return f"{round(value, 4):g}" if isinstance(value, float) else str(value)


def updated(kept: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """Rows with those of methods that were measured again in place of the old ones, each method's together and in order."""
    again = {one["method"] for one in new}
    rows = [one for one in kept if one["method"] not in again] + list(new)
    order = list(dict.fromkeys(one["method"] for one in (*kept, *new)))
    return sorted(rows, key=lambda one: (order.index(one["method"]), *_place(one)))


def _place(one: Record) -> tuple[Any, ...]:
    return one["cell"], one["relation"], float("inf") if one["n"] == "whole" else int(one["n"]), float(one["mu"])


def records_in(path: Path) -> list[Record]:
    """The rows of the CSV file; none where it is not there."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.exists() else []


def as_csv(records: Sequence[Record]) -> str:
    """The CSV file."""
    room = io.StringIO()
    sheet = csv.DictWriter(room, COLUMNS, lineterminator="\n")
    sheet.writeheader()
    sheet.writerows(records)
    return room.getvalue()


def evidence_page(records: Sequence[Record], skipped: Iterable[str] = ()) -> str:
    """The page of the laboratory's site: how it was measured, a line a method, and every row that fails."""
    parts = [
        _WORDS,
        "## By method",
        _summary(records),
        "## Rows that fail",
        _failures(records),
        "## Methods that are in no cell",
    ]
    parts.append("\n".join(f"- `{name}`: {why}" for name, why in sorted(ELSEWHERE.items())))
    if missing := sorted(set(skipped)):
        parts += ["## Not run here", "\n".join(f"- {one}" for one in missing)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def reference_page(records: Sequence[Record]) -> str:
    """The page of the guides: a line for each method that is held to its own title."""
    own = [one for one in records if one["held_against"] == "title"]
    return f"{_REFERENCE}\n{_summary(own)}\n"


def _summary(records: Sequence[Record]) -> str:
    """One line for each method, by its name."""
    lines = [
        "| Method | Fails, of cells | Coverage | Width ratio | Answered | Samples a cell |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for method in sorted({one["method"] for one in records}):
        own = [one for one in records if one["method"] == method]
        lost = sum(int(one["failed"]) > 0 for one in own)
        samples = " to ".join(dict.fromkeys(str(end(int(one["samples"]) for one in own)) for end in (min, max)))
        star = "" if all(one["held_against"] == "title" for one in own) else " *"
        middles = (_middle(own, "coverage", ".2f"), _middle(own, "width_ratio", ".3g"), _middle(own, "answered", ".2f"))
        lines.append(f"| {method}{star} | {lost} of {len(own)} | {' | '.join(middles)} | {samples} |")
    return "\n".join(lines)


def _failures(records: Sequence[Record]) -> str:
    lines = [
        "| Method | Cell | n | mu | Relation | Coefficient | Coverage [99.9%] | Asked | Failed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one['method']} | {_written(one['cell'])} | {_written(one['n'])} | {one['mu']} | {one['relation']} "
        f"| {_cell(one['coefficient'])} | {one['coverage']} [{one['low']}, {one['high']}] | {one['asked']} "
        f"| {one['failed']} of {one['coefficients']} |"
        for one in records
        if int(one["failed"])
    ]
    return "\n".join(lines)


def _middle(records: Sequence[Record], column: str, form: str) -> str:
    """The median of a column, "n/a" where it is empty."""
    values = [float(one[column]) for one in records if one[column]]
    return f"{float(np.median(values)):{form}}" if values else "n/a"


def write_pages(root: Path, rows: Sequence[dict[str, Any]], skipped: Iterable[str] = ()) -> None:
    """Write the file and both pages of a checkout. Rows of methods that were not measured stay."""
    records = updated(records_in(root / PLACES["csv"]), [record_of(row) for row in rows])
    texts = {"csv": as_csv(records), "evidence": evidence_page(records, skipped), "reference": reference_page(records)}
    for name, text in texts.items():
        place = root / PLACES[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


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


def _written(name: str) -> str:
    """The name of a cell as pages write numbers; the names themselves are seeds."""
    digits = re.sub(r"(?<![\w.])\.(?=\d)", "0.", name.replace(" %", "%").replace(" sd", " SD"))
    return _cell(re.sub(r"^\d+$", lambda found: f"{int(found[0]):,}", digits))


def _share(value: float | None) -> str:
    """A share as .95, 1.00."""
    if value is None:
        return "-"
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
