"""The site's pages: plain HTML that reads on a phone, without scripts; the same records give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from confide_lab.experiment import Block, Experiment
from confide_lab.layouts import LETTER, RESTORED, Layout
from confide_lab.papers.catalogue import Item, Paper
from confide_lab.papers.tally import Number, Share, layouts_of, restored_of, share_of, unexplained, with_printed
from confide_lab.quantities import LEAST, WIDE, Record
from confide_lab.report import checks, number, title_of

__all__ = ["experiment_page", "index_page", "paper_page"]

MARKS = {"agrees": "=", "differs": "≠", "undetermined": "?", "not run": "·"}
_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #1a1a1a; font: 1rem/1.5 system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1rem 1rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .4rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
a { color: #0b5394; } nav { font-size: .9rem; } p, li { max-width: 46rem; overflow-wrap: anywhere; } code { font-size: .85em; }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; margin: .3rem -1rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem; }
th, td { padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
.num td { white-space: nowrap; } .num th { font-weight: 600; }
.num tbody th { position: sticky; left: 0; background: #fff; padding-right: .8rem; }
thead th { border-bottom: 2px solid #1a1a1a; } tbody tr { border-bottom: 1px solid #dde1e6; }
.p { color: #454b54; } .o { font-weight: 600; margin-left: .35rem; }
.agrees { color: #1b6b3a; } .differs { color: #a32a00; } .undetermined, .not { color: #5a6270; }
.fails { color: #8c1515; font-weight: 700; }
.grey { color: #454b54; font-size: .9rem; } figure { margin: .8rem 0; overflow-x: auto; -webkit-overflow-scrolling: touch; }
figure img { max-width: 100%; min-width: 40rem; height: auto; display: block; }
.items { display: grid; gap: .7rem; padding: 0; list-style: none; }
.items li { max-width: none; border-left: 4px solid #c8cdd4; padding: .1rem 0 .1rem .7rem; }
.items li.ok { border-color: #1b6b3a; } .items li.bad { border-color: #a32a00; }
.bar { display: flex; height: .7rem; max-width: 46rem; border-radius: .35rem; overflow: hidden; background: #e6e9ed; margin: .3rem 0; }
.bar span { display: block; } .bar .a { background: #1b6b3a; } .bar .d { background: #c0512a; } .bar .u { background: #a9b1bc; }
"""
_RULE = (
    f"A printed number agrees (=) when ours lies within two standard errors of the difference, or within a stated tolerance; it "
    f"differs (≠) when it lies outside. It is undetermined (?) where that band is wider than {WIDE:.0%} of the number, with fewer than "
    f"{LEAST} replications, or where single runs make the mean and the medians do not decide. A dot: not run. Of "
    "numbers that are right about five in a hundred differ by chance."
).replace("%", " %")
_READINGS = (
    "To the letter: with the settings that the paper's text states. Restored: where the text leaves a setting open, or the stated one does "
    "not give the table, with the setting that gives most of its numbers; the table's title names it. Other numbers stay as they are to "
    "the letter, and both counts are of the same printed numbers."
)


def index_page(papers: Sequence[tuple[Paper, Share, int, Share, int]], mode: str, *, evidence: bool = False) -> str:
    """The first page: the five papers, the share of each verdict and how many numbers differ for no known reason, by reading."""
    parts = [
        f"<h1>Five papers, theirs beside ours</h1><p>{escape(_RULE)}</p><p>{escape(_READINGS)}</p>",
        f'<p class="grey">This site is of a {escape(mode)} run.</p>',
    ]
    for paper, letter, open_, restored, open_again in papers:
        parts.append(
            f'<h2><a href="{paper.key}.html">{escape(paper.title)}</a></h2><p class="grey">{escape(paper.source)}</p>'
        )
        parts.append(_bar(letter) + _counted(letter, open_))
        if restored.printed:
            parts.append(_again(restored, open_again) + _bar(restored))
    if evidence:
        parts.append('<p>What else was measured, attacked and compared: <a href="evidence/index.html">evidence</a></p>')
    parts.append('<p><a href="data/numbers.csv">Every printed number as CSV</a></p>')
    return _page("Five papers, theirs beside ours", parts, "")


def _counted(share: Share, open_: int) -> str:
    if not share.printed:
        return "<p>The paper prints no measured number as text: its figures are drawn, its theorems checked.</p>"
    return (
        f"<p>{share.printed} printed numbers, with the text as printed: {escape(share.text())}.{_why(share, open_)}</p>"
    )


def _again(restored: Share, open_: int) -> str:
    return f"<p>The same numbers, restored: {escape(restored.text())}.{_why(restored, open_)}</p>"


def _why(share: Share, open_: int) -> str:
    if not share.counts["differs"]:
        return ""
    return (
        f" {open_} of those that differ {'has' if open_ == 1 else 'have'} no known reason."
        if open_
        else " What differs has a known reason."
    )


def paper_page(paper: Paper, items: Sequence[tuple[Item, str, Sequence[Number], float]]) -> str:
    """One paper: its tables, figures and claims with status, erratum and page; then what differs, with reasons. Seconds are of one run."""
    everything = [one for _, _, found, _ in items for one in found]
    share = share_of(everything)
    parts = [f"<h1>{escape(paper.title)}</h1>", f'<p class="grey">{escape(paper.source)}</p>', _bar(share)]
    parts.append(_counted(share, unexplained(everything)))
    restored = share_of(everything, RESTORED)
    if restored.printed:
        parts.append(_again(restored, unexplained(everything, RESTORED)))
    parts.append("<ul class=items>")
    for item, status, _, seconds in items:
        kind = (
            "ok"
            if status.startswith(("reproduces", "holds"))
            else "bad"
            if status.startswith(("does not", "as printed it does not", "fails"))
            else ""
        )
        name = escape(item.number)
        if item.experiment:
            name = f'<a href="{item.experiment}.html">{name}</a>'
        details = [f"errata {item.errata}"] if item.errata else []
        details += [f"one replication of all of it: {seconds:.3g} s"] if item.experiment else []
        lines = [f"<strong>{name}</strong>: {escape(item.says)}.<br>{escape(status)}"]
        lines += [f'<br><span class="grey">{escape("; ".join(details))}</span>'] if details else []
        lines += [f"<br><code>{escape(item.show)}</code>"] if item.show else []
        parts.append(f'<li class="{kind}">{"".join(lines)}</li>')
    parts.append("</ul>")
    differing = [one for one in everything if one.word == "differs" and one.reading == LETTER]
    if differing:
        parts.append(f"<h2>What differs, and why</h2>{_reasons(differing)}")
    still = [one for one in restored_of(everything) if one.word == "differs"]
    if still:
        parts.append(f"<h2>What differs restored, too</h2>{_reasons(still)}")
    return _page(paper.title, parts, '<a href="index.html">all papers</a>')


def _reasons(differing: Sequence[Number]) -> str:
    groups: dict[tuple[str, str], list[Number]] = {}
    for one in differing:
        groups.setdefault((one.item.number, one.reason or "no reason is known"), []).append(one)
    rows = "".join(
        f"<li><strong>{escape(place)}</strong>, {len(found)}: {escape(reason)}</li>"
        for (place, reason), found in groups.items()
    )
    return f"<ul>{rows}</ul>"


def experiment_page(
    experiment: Experiment, records: Sequence[Record], pictures: Sequence[str], papers: Sequence[Paper]
) -> str:
    """All blocks of an experiment: figures, tables in the paper's rows and columns, judgements, and where the CSV is."""
    parts = [
        f"<h1>{escape(experiment.title)}</h1>",
        f'<p class="grey">{escape(experiment.name)}. {escape("; ".join(experiment.sources))}</p>',
    ]
    parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in experiment.notes)}</ul>")
    parts.append(
        '<p class="grey">In each cell: the paper’s number in grey where it prints one, then ours, and the mark of the verdict. '
        "Figures have two standard errors on either side, and medians where single runs make the mean.</p>"
    )
    for block in experiment.blocks:
        there = [r for r in records if r["block"] == block.name]
        if there or block.printed:
            parts += _block(experiment, block, there, f"{experiment.name}.{slug(block.name)}" in pictures)
    links = " · ".join(f'<a href="{paper.key}.html">{escape(paper.title.split(":")[0])}</a>' for paper in papers)
    return _page(experiment.title, parts, f'<a href="index.html">all papers</a> · {links}')


def _block(experiment: Experiment, block: Block, there: Sequence[Record], drawn: bool) -> list[str]:
    place = f"{experiment.name}.{slug(block.name)}"
    parts = [f"<h2>{escape(block.title or block.name)}</h2>"]
    if drawn:
        text = f"{block.title or block.name}: {block.drawing.quantity if block.drawing else ''}"
        parts.append(
            f'<figure><a href="pictures/{place}.png"><img src="pictures/{place}.png" alt="{escape(text)}" loading="lazy"></a></figure>'
        )
    found = checks(block, there) if there else []
    if found:
        states = {True: ("agrees", "holds"), False: ("fails", "FAILS"), None: ("grey", "open")}
        rows = (
            f'<li><span class="{states[c.ok][0]}">{states[c.ok][1]}</span> {escape(c.name)}: {escape(c.text)}</li>'
            for c in found
        )
        failing = sum(c.ok is False for c in found)
        summary = f"{len(found)} judgment{'s' * (len(found) > 1)}, {failing} fail{'s' * (failing == 1)}"
        parts.append(f"<details><summary>{summary}</summary><ul>{''.join(rows)}</ul></details>")
    whole = with_printed(block, there)
    for layout in layouts_of(block, whole):
        parts.append(_table(block, layout, whole))
    parts.append(f'<p class="grey"><a href="data/{place}.csv">CSV of all {len(there)} records</a></p>')
    return parts


def _table(block: Block, layout: Layout, records: Sequence[Record]) -> str:
    grid = layout.grid(records)
    if not grid.rows:
        return ""
    head = "".join(f"<th>{escape(_words(block, layout.columns, key))}</th>" for key in grid.columns)
    body = "".join(
        f"<tr><th>{escape(_words(block, layout.rows, key))}</th>{''.join(_cell(r) for r in row)}</tr>"
        for key, row in grid.rows
    )
    corner = escape(", ".join(layout.rows))
    return (
        f"<h3>{escape(layout.title)}</h3><div class=wide><table class=num><thead><tr><th>{corner}</th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _words(block: Block, names: Sequence[str], key: Sequence[Any]) -> str:
    return ", ".join(
        _method(str(value), block) if name == "method" else str(value) for name, value in zip(names, key, strict=True)
    )


def _method(name: str, block: Block) -> str:
    """A title that fits into the head of a column, else the short name."""
    title = title_of(name, block)
    return title if len(title) <= 30 else name


def _cell(r: Record | None) -> str:
    if r is None:
        return "<td></td>"
    ours = number(r["value"])
    if "paper" not in r:
        return f"<td><span class=o>{ours}</span></td>"
    word = r.get("verdict", "not run")
    why = escape(r.get("reason", "") or "")
    return f'<td title="{why}"><span class=p>{number(r["paper"])}</span><span class="o {word.split()[0]}">{ours} {MARKS[word]}</span></td>'


def slug(text: str) -> str:
    """A name for files.

    >>> slug("50 x 20, 0.05")
    '50-x-20-0.05'
    """
    return re.sub(r"[^a-zA-Z0-9.]+", "-", text).strip("-")


def _bar(share: Share) -> str:
    if not share.printed:
        return ""
    parts = (("a", "agrees"), ("d", "differs"), ("u", "undetermined"))
    spans = "".join(
        f'<span class={kind} style="width:{100 * share.counts[word] / share.printed:.1f}%"></span>'
        for kind, word in parts
    )
    return f'<div class=bar role=img aria-label="{escape(share.text())}">{spans}</div>'


def _page(title: str, parts: Sequence[str], links: str) -> str:
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
            f"<nav>{links}</nav>" if links else "",
            *parts,
            "</main></body></html>\n",
        ]
    )
