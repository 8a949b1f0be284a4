"""Write the site: index, a page for each paper and experiment, PNG files, CSV files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confide_lab.experiment import recorded
from confide_lab.experiments import load
from confide_lab.layouts import RESTORED
from confide_lab.papers.catalogue import PAPERS, Paper
from confide_lab.papers.pages import experiment_page, index_page, paper_page, slug
from confide_lab.papers.pictures import png
from confide_lab.papers.plan import experiments_of, once
from confide_lab.papers.tally import Number, numbers_of, share_of, status_of, unexplained
from confide_lab.quantities import Record

__all__ = ["write"]

_COLUMNS = ("setting", "method", "quantity", "statistic", "paper", "value", "error", "median", "replications", "no_answer", "failed",
            "verdict", "allowed", "reason")  # fmt: skip


def write(
    folder: Path, out: Path, mode: str, papers: Sequence[str] = tuple(PAPERS), *, evidence: bool = False
) -> dict[str, Any]:
    """The site of what is recorded in `out`, with a link to the pages of evidence where they stand in it; the shares of each paper."""
    for name in ("pictures", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for key in papers for name in experiments_of(PAPERS[key])))
    records = {name: recorded(load(name), out) for name in names}
    numbers: list[Number] = []
    shares: dict[str, Any] = {}
    first = []
    for key in papers:
        found = _paper(folder, PAPERS[key], records)
        numbers += found
        letter, restored = share_of(found), share_of(found, RESTORED)
        first.append((PAPERS[key], letter, restored, unexplained(found)))
        shares[key] = {
            "printed": letter.printed,
            "letter": dict(letter.counts),
            "restored": dict(restored.counts),
            "unexplained": unexplained(found),
            "text": letter.text(),
            "restored_text": restored.text() if restored.printed else "",
        }
    for name in names:
        _experiment(folder, name, records[name], [PAPERS[key] for key in papers if name in experiments_of(PAPERS[key])])
    (folder / "index.html").write_text(index_page(first, mode, evidence=evidence), encoding="utf-8")
    (folder / "data" / "numbers.csv").write_text(_numbers_csv(numbers), encoding="utf-8")
    (folder / "data" / "shares.json").write_text(json.dumps(shares, indent=1) + "\n", encoding="utf-8")
    return shares


def _paper(folder: Path, paper: Paper, records: dict[str, list[Record]]) -> list[Number]:
    items, everything = [], []
    for item in paper.items:
        found: list[Number] = []
        seconds, ran = 0.0, False
        if item.experiment in records:
            experiment = load(item.experiment)
            found, ran = numbers_of(item, experiment, records[item.experiment]), bool(records[item.experiment])
            seconds = sum(once(experiment, block, method) for block in experiment.blocks for method in block.methods)
        items.append((item, status_of(item, found, ran), found, seconds))
        everything += found
    (folder / f"{paper.key}.html").write_text(paper_page(paper, items), encoding="utf-8")
    return everything


def _experiment(folder: Path, name: str, records: list[Record], papers: Sequence[Paper]) -> None:
    experiment = load(name)
    pictures = []
    for block in experiment.blocks:
        there = [r for r in records if r["block"] == block.name]
        place = f"{name}.{slug(block.name)}"
        picture = png(block, there) if there else None
        if picture is not None:
            (folder / "pictures" / f"{place}.png").write_bytes(picture)
            pictures.append(place)
        (folder / "data" / f"{place}.csv").write_text(_csv(there), encoding="utf-8")
    (folder / f"{name}.html").write_text(experiment_page(experiment, records, pictures, papers), encoding="utf-8")


def _csv(records: Sequence[Record]) -> str:
    room = io.StringIO()
    sheet = csv.writer(room, lineterminator="\n")
    sheet.writerow(_COLUMNS)
    for r in records:
        setting = " ".join(f"{name}={value}" for name, value in r["setting"].items())
        sheet.writerow([setting, *(r.get(name, "") for name in _COLUMNS[1:])])
    return room.getvalue()


def _numbers_csv(numbers: Sequence[Number]) -> str:
    room = io.StringIO()
    sheet = csv.writer(room, lineterminator="\n")
    sheet.writerow(("item", "experiment", "block", "table", "reading", *_COLUMNS))
    for one in numbers:
        r = {**one.record, "verdict": one.word, "reason": one.reason}
        setting = " ".join(f"{name}={value}" for name, value in r["setting"].items())
        sheet.writerow(
            [
                one.item.number,
                one.item.experiment,
                one.block,
                one.layout,
                one.reading,
                setting,
                *(r.get(name, "") for name in _COLUMNS[1:]),
            ]
        )
    return room.getvalue()
