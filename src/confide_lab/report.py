"""The records of an experiment for people: table rows, and one HTML page that stands alone with the paper's figure redrawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from confide_lab.experiment import Block, Check, Experiment, Record
from confide_lab.figures import svg
from confide_lab.fits import METHODS

__all__ = ["HEADS", "checks", "lines", "page", "title_of"]

HEADS = ("setting", "method", "quantity", "paper", "ours", "std err", "replications", "verdict")


def lines(block: Block, records: Sequence[Record]) -> list[list[str]]:
    """The rows of the table: the paper's number, ours, its standard error, and the verdict.

    Only papers' numbers are compared: what a verdict means is said at `confide_lab.quantities.Printed.verdict`.
    """
    return [
        [
            setting_text(record),
            title_of(record["method"], block),
            record["quantity"],
            _source(record),
            number(record["value"]),
            number(record["error"]),
            f"{record['replications']}" + (f" (+{record['failed']} failed)" if record.get("failed") else ""),
            record.get("verdict", ""),
        ]
        for record in records
    ]


def checks(block: Block, records: Sequence[Record]) -> list[Check]:
    """The block's judgements over its records."""
    return [] if block.checks is None else block.checks(records)


def title_of(method: str, block: Block) -> str:
    """A method's title, else its name."""
    return block.titles.get(method) or (METHODS[method].title if method in METHODS else method)


def setting_text(record: Record) -> str:
    """Settings in one line."""
    return " ".join(f"{name}={value}" for name, value in record["setting"].items())


def number(value: float | None) -> str:
    """Four digits, or a dash.

    >>> number(0.12345), number(None), number(123456.0)
    ('0.1235', '-', '1.235e+05')
    """
    return "-" if value is None else f"{value:.4g}"


def _source(record: Record) -> str:
    return number(record["paper"]) if "paper" in record else ""


_STYLE = """
body { margin: 0; background: #fff; color: #1a1a1a; font: 1rem/1.5 system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; white-space: nowrap; } .n { text-align: right; }
thead th { border-bottom: 2px solid #1a1a1a; } tbody tr { border-bottom: 1px solid #dde1e6; }
.agrees { color: #1b6b3a; } .differs { color: #a34a00; } .undetermined { color: #454b54; } .fails { color: #8c1515; font-weight: 700; }
.wide { overflow-x: auto; } figure { margin: .8rem 0; } figure svg { max-width: 100%; height: auto; } .grey { color: #454b54; }
"""


def page(experiment: Experiment, records: Sequence[Record]) -> str:
    """The whole page. It names no time and no machine: the same records give the same page."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(experiment.title)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(experiment.title)}</h1>",
        f'<p class="grey">{escape(experiment.name)}. Source: {escape("; ".join(experiment.sources))}</p>',
        f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in experiment.notes)}</ul>",
        "<p>Verdicts: a number agrees with the paper's within two standard errors of the difference, or within a stated tolerance, and "
        "differs beyond; a band above a fifth of the number, fewer than ten replications and a heavy tail leave it undetermined. "
        "Methods marked NOT private spend more than they claim or look at the private records.</p>",
    ]
    for block in experiment.blocks:
        there = [record for record in records if record["block"] == block.name]
        if there:
            parts += _section(block, there)
    return "\n".join([*parts, "</main></body></html>\n"])


def _section(block: Block, records: Sequence[Record]) -> list[str]:
    parts = [f"<h2>{escape(block.title or block.name)}</h2>"]
    if block.drawing is not None:
        drawn = svg(block, records)
        if drawn:
            parts.append(f"<figure>{drawn}</figure>")
    found = checks(block, records)
    if found:
        states = {True: ("agrees", "holds"), False: ("fails", "FAILS"), None: ("grey", "open")}
        parts.append(
            "<ul>"
            + "".join(
                f'<li><span class="{states[one.ok][0]}">{states[one.ok][1]}</span> {escape(one.name)}: {escape(one.text)}</li>'
                for one in found
            )
            + "</ul>"
        )
    head = "".join(f"<th{' class=n' if 3 <= k <= 6 else ''}>{escape(text)}</th>" for k, text in enumerate(HEADS))
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if 3 <= k <= 6 else ''}>{escape(text)}</td>" for k, text in enumerate(row[:7]))
        + f'<td class="{escape(row[7])}">{escape(row[7])}</td></tr>'
        for row in lines(block, records)
    )
    return [*parts, f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>']
