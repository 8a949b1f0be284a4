"""Whether intervals hold what their titles name: `confide lab bench truth`, for every method with an interval.

    confide lab bench truth                            a few cells of every method, some minutes
    confide lab bench truth --full                     all cells: outside tables at n = 500 to whole, mu = .3 to 3, both relations
    confide lab bench truth --judge                    the acceptance rules of the defaults on outside tables
    confide lab bench truth --judge --only logistic    that of logistic regression alone
    confide lab bench truth --only least_squares --cases diamonds hmda --replications 100 --jobs 1
    confide lab bench truth --write .   rows and pages of this checkout, from all that was run so far (--replications 0: run nothing)

Runs are recorded as they end in the folder of --out, so that an interrupted command goes on where it was; any change of the code measures
anew. The rows of the last measurement of each cell are kept in truth.json there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confide_lab.benchmarks import outside, outside_means, outside_outcomes, outside_skewed, outside_tables
from confide_lab.benchmarks.outside_tables import MEANS, OUTCOMES, SKEWED, TABLES
from confide_lab.benchmarks.truth import (
    adversary as truth_adversary,
    answers as truth_answers,
    cases as truth_cases,
    described as truth_described,
    design as truth_design,
    domains as truth_domains,
    files as truth_files,
    judge as truth_judge,
    models as truth_models,
    others as truth_others,
    page as truth_page,
    plain as truth_plain,
    records as truth_records,
    ridge as truth_ridge,
    rows as truth_rows,
    runs as truth_runs,
)
from confide_lab.benchmarks.truth.adversary import ADVERSARY
from confide_lab.benchmarks.truth.answers import ANSWERS
from confide_lab.benchmarks.truth.cases import DESIGNS
from confide_lab.benchmarks.truth.described import DESCRIBED
from confide_lab.benchmarks.truth.domains import DOMAINS
from confide_lab.benchmarks.truth.models import MODELS
from confide_lab.benchmarks.truth.others import MORE, SIZES
from confide_lab.benchmarks.truth.records import RECORDS
from confide_lab.benchmarks.truth.runs import LINES, OTHERS, Cell
from confide_lab.runner import Study, run as run_study, version_of_sources

__all__ = ["cells", "main", "measure", "run"]

OUT = Path("out/bench/truth")
#: Methods that need a fixed number of records.
_FIXED = {"efficient_ptr"} | {name for (_, name), asked in OTHERS.items() if "add-remove" not in asked.relations}
_SIZES, _LEVELS, _RELATIONS = (500, 2_000, 10_000, 0), (0.3, 1.0, 3.0), ("add-remove", "substitute")


def cells(kind: str) -> Iterator[Cell]:
    """What is run: "quick", "full" or "judge"."""
    if kind == "judge":
        for cases, method in ((TABLES, "least_squares"), (OUTCOMES, "logistic")):
            for case in cases:
                yield from (Cell(case, method, n, mu, how) for n in _SIZES for mu in _LEVELS for how in _RELATIONS)
        return
    for method in LINES:
        for case, design in DESIGNS.items():
            for mu in _LEVELS if kind == "full" else (1.0,):
                yield Cell(case, method, design.n, mu, _relation(method))
        for case in ADVERSARY if kind == "full" else ():
            yield from (Cell(case, method, n, 1.0, _relation(method)) for n in (50, 400))
        if kind == "full":
            yield Cell("long-feature", method, 100_000, 1.0, _relation(method))
    for case, method in OTHERS:
        sizes: tuple[int, ...] = (2_000, 10_000) if kind == "full" else (2_000,)
        levels: tuple[float, ...] = (1.0, 3.0) if kind == "full" else (1.0,)
        if kind == "full" and (case, method) in MORE:
            sizes = SIZES
        if kind == "full" and case in MODELS:
            sizes, levels = (500, 2_000, 10_000), _LEVELS
            yield Cell(case, method, 10_000, 1.0, "substitute")
        if case in DOMAINS:
            sizes, levels = (DOMAINS[case].psus,), _LEVELS if kind == "full" else (3.0,)
        pairs = [(n, mu) for n in sizes for mu in levels]
        if kind == "full" and (case, method) in ANSWERS:
            pairs = [(2_000, 1.0), *((n, mu) for n in (500, 10_000) for mu in (0.3, 3.0))]
        yield from (Cell(case, method, n, mu, _relation(method)) for n, mu in pairs)
    for case in RECORDS:
        for method in LINES:
            for n in (500, 10_000) if kind == "full" else (2_000,):
                yield Cell(case, method, n, 1.0, _relation(method))
    for case in TABLES:
        for method in LINES if kind == "full" else ("least_squares",):
            for n in (2_000, 10_000) if kind == "full" else (2_000,):
                yield Cell(case, method, n, 1.0, _relation(method))
    if kind == "full":
        yield from cells("judge")


def _relation(method: str) -> str:
    return "substitute" if method in _FIXED else "add-remove"


def version() -> str:
    """Changes with the code of the package and of this bench."""
    modules = (
        *(
            outside,
            outside_means,
            outside_outcomes,
            outside_skewed,
            outside_tables,
            truth_adversary,
            truth_answers,
            truth_cases,
            truth_described,
            truth_design,
            truth_domains,
            truth_files,
            truth_models,
            truth_others,
        ),
        *(truth_plain, truth_records, truth_ridge, truth_rows, truth_runs),
    )
    return version_of_sources(*modules)


def measure(
    wanted: Sequence[Cell], replications: int, out: Path = OUT, *, jobs: int = 1, show: bool = True
) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows, what was skipped and why). Rows are printed as their case is done, and kept in `out`."""
    rows, skipped, now, commit = [], [], version(), _commit()
    unique = list(dict.fromkeys(wanted))
    for case in dict.fromkeys(cell.case for cell in unique):
        lost = truth_cases.missing(case)
        own = [cell for cell in unique if cell.case == case]
        if lost is not None:
            skipped.append(lost)
            continue
        refused = {cell: truth_runs.refusal(cell) for cell in own}
        skipped += [f"{cell.case}, {cell.method}: {why}" for cell, why in refused.items() if why is not None]
        own = [cell for cell in own if refused[cell] is None]
        if not own:
            continue
        study = Study(f"truth-{case}", {"cell": tuple(map(tuple, own))}, truth_runs.replicate, replications, now)
        found = run_study(study, out / "runs", jobs=jobs)
        failed = found[found["error"].notna()]
        if len(failed):
            raise RuntimeError(f"{len(failed)} of {len(found)} runs failed, first: {failed.iloc[0].to_dict()}")
        for cell in own:
            row = truth_rows.row_of(cell, found[found["cell"] == tuple(cell)])
            row |= {"commit": commit}
            if cell.method == "logistic":
                row["expected"] = truth_runs.expected(cell)
            rows.append(row)
            if show:
                print(f"{cell.method:<12}", truth_page.line_of(row), flush=True)
        keep(rows, out)
    return rows, list(dict.fromkeys(skipped))


def keep(rows: Sequence[dict[str, Any]], out: Path) -> list[dict[str, Any]]:
    """Put rows among those kept in `out`, in place of older ones of the same cell; returns all of them."""
    path = out / "truth.json"
    kept = json.loads(path.read_text()) if path.exists() else []
    whole = {_cell(row): row for row in (*kept, *rows)}
    out.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(map(json.dumps, whole.values())) + "\n]\n")
    return list(whole.values())


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(*(row[name] for name in Cell._fields))


def _commit() -> str:
    """The commit of this checkout, with "+" behind it where files were changed since."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=8", "--dirty=+"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main(arguments: Sequence[str]) -> int:
    """The command; 1 when something that was run fails its bar."""
    parser = argparse.ArgumentParser(prog="confide lab bench truth", description=__doc__.split("\n", 1)[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--full", action="store_true", help="all cells")
    kind.add_argument(
        "--judge",
        action="store_true",
        help="the acceptance rules of the default line and of logistic regression on outside tables",
    )
    kind.add_argument(
        "--baseline", metavar="COMMIT", help="record today's widths in confide_lab/benchmarks/truth/baseline.json"
    )
    parser.add_argument("--only", nargs="+", metavar="METHOD", choices=sorted({*LINES, *(m for _, m in OTHERS)}))
    parser.add_argument(
        "--cases",
        nargs="+",
        metavar="CASE",
        choices=sorted({*DESCRIBED, *DESIGNS, *DOMAINS, *MODELS, *RECORDS, *TABLES, *OUTCOMES, *SKEWED, *MEANS}),
    )
    parser.add_argument(
        "--sizes", nargs="+", type=int, metavar="N", help="records of a sample, 0 for the whole table's number"
    )
    parser.add_argument("--mu", nargs="+", type=float, metavar="MU")
    parser.add_argument("--relation", choices=_RELATIONS)
    parser.add_argument("--replications", type=int, default=40, help="samples of each cell; 0 runs nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, all cores by default")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where runs are kept (default {OUT})")
    parser.add_argument("--write", type=Path, metavar="ROOT", help="write the rows kept in --out to the checkout")
    given = parser.parse_args(arguments)
    wanted = truth_judge.baseline_cells() if given.baseline else cells(_kind(given))
    chosen = [
        cell
        for cell in wanted
        if (not given.only or cell.method in given.only)
        and (not given.cases or cell.case in given.cases)
        and (not given.sizes or cell.n in given.sizes)
        and (not given.mu or cell.mu in given.mu)
        and given.relation in (None, cell.relation)
    ]
    rows, skipped = (
        ([], []) if given.replications == 0 else measure(chosen, given.replications, given.out, jobs=given.jobs)
    )
    for one in skipped:
        print(f"skipped: {one}")
    kept = keep(rows, given.out)
    if given.baseline:
        before = set(truth_judge.baseline_cells())
        truth_judge.record([row for row in kept if _cell(row) in before], given.baseline)
        return 0
    if given.write:
        truth_page.write_pages(given.write, kept, skipped)
    if given.judge:
        asked = set(chosen)
        return truth_judge.judge([row for row in kept if _cell(row) in asked])
    lost = [row for row in rows if row["titled"] and truth_rows.failing(row)]
    print(f"{len(lost)} of {len(rows)} cells fail")
    return int(bool(lost))


def _kind(given: argparse.Namespace) -> str:
    return "judge" if given.judge else "full" if given.full else "quick"


def run() -> list[dict[str, Any]]:
    """For the list of all benchmarks: the quick cells at 100 replications."""
    rows, _ = measure(list(cells("quick")), 100, jobs=os.cpu_count() or 1)
    return [
        {
            "check": f"truth: {_cell(row)}",
            "value": least["coverage"],
            "interval": [least["low"], least["high"]],
            "low": truth_rows.bar(least),
            "high": 1.0,
            "ok": row["status"].get("valid", 0.0),
            "passed": not (row["titled"] and truth_rows.failing(row)),
        }
        for row in rows
        if (least := truth_rows.worst(row)) is not None
    ]
