"""The acceptance rules of the defaults on outside tables.

Least squares: coverage, share of answers, width against plain SSP's as it was. Logistic regression: coverage; answers wherever the plan's
forecast says that they are likely; and for how many tables it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from confide_lab.benchmarks.outside_tables import TABLES
from confide_lab.benchmarks.truth.page import line_of
from confide_lab.benchmarks.truth.rows import bar, failing
from confide_lab.benchmarks.truth.runs import Cell

__all__ = ["BASELINE", "baseline_cells", "judge", "judge_outcomes", "record"]

BASELINE = Path(__file__).with_name("baseline.json")
_SIZES = (500, 2_000, 10_000)
#: At n = 10,000 and mu = 1 this share of the coefficients of lines with up to ten of them has an interval; a table is at most so much
#: wider than plain SSP was.
_ANSWERED, _TERMS, _WIDER = 0.9, 10, 1.05
#: A forecast says "likely" from this chance on; at n = 10,000 and mu = 1 it does for so many tables of up to ten coefficients.
_LIKELY, _TABLES = 0.8, 6


def baseline_cells() -> Iterator[Cell]:
    """The cells whose widths are kept: SSP and the default line as they were, at mu = 1."""
    for case in TABLES:
        yield from (Cell(case, method, n, 1.0, "add-remove") for method in ("ssp", "huber_line") for n in _SIZES)


def record(rows: Sequence[dict[str, Any]], commit: str) -> None:
    """Keep median widths and answers in `BASELINE`."""
    tables: dict[str, Any] = {}
    for row in rows:
        own = tables.setdefault(row["case"], {}).setdefault(row["method"], {})
        own[str(row["n"])] = {
            "ok": row["status"].get("valid", 0.0),
            "replications": row["replications"],
            "widths": {one["name"]: [one["answered"], one.get("width")] for one in row["coefficients"]},
        }
    head = json.dumps({"commit": commit, "mu": 1.0, "relation": "add-remove"})[1:-1]
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(own)}" for case, own in tables.items())
    BASELINE.write_text(f'{{{head}, "tables": {{\n{lines}\n}}}}\n')


def judge(rows: Sequence[dict[str, Any]]) -> int:
    """Print what fails; 1 when anything does."""
    checked = sum(one["answered"] > 0 for row in rows for one in row["coefficients"])
    lost = [row for row in rows if failing(row)]
    print(
        f"\ncoverage: {len(lost)} of {len(rows)} cells fail ({checked} coefficients looked at; by chance {checked / 2000:.1f} at most)"
    )
    for row in lost:
        names = ", ".join(f"{one['name']} {one['coverage']:.2f} < {bar(one):.2f}" for one in failing(row))
        print(f"  FAILED  {line_of(row)}\n          {names}")
    for words in (*_pooled(rows), *_by_size(rows)):
        print(f"  {words}")
    outcomes = [row for row in rows if row["method"] == "logistic"]
    unkept = judge_outcomes(outcomes) if outcomes else 0
    rows = [row for row in rows if row["method"] != "logistic"]
    if not rows:
        return int(bool(lost or unkept))
    short = list(_short_of_answers(rows))
    print(f"answers at n = 10,000, mu = 1: {len(short)} of {sum(map(_counts, rows))} cells below {_ANSWERED:.0%}")
    for row in short:
        print(
            f"  FAILED  {row['case']} {row['relation']}: {row['answered']:.0%} of {len(row['coefficients'])} coefficients"
        )
    wide = list(_widths(rows))
    print(
        f"width against plain SSP's before: {sum(ratio > _WIDER for _, ratio, _ in wide)} of {len(wide)} tables above {_WIDER}"
    )
    for case, ratio, words in wide:
        print(f"  {'FAILED' if ratio > _WIDER else 'ok    '}  {case}: {ratio:.2f} ({words})")
    if not BASELINE.exists():
        print(f"  no widths to compare with: {BASELINE.name} is missing; run --baseline COMMIT")
    return int(bool(lost or unkept or short or any(ratio > _WIDER for _, ratio, _ in wide)))


def judge_outcomes(rows: Sequence[dict[str, Any]]) -> int:
    """Print what the forecasts of logistic regression said and what came; 1 when the rule is not kept."""
    told = [row for row in rows if row.get("expected") is not None]
    print("forecasts of logistic regression: what the plan said of status valid, and what came")
    for low, high, words in ((_LIKELY, 1.01, "likely"), (0.5, _LIKELY, "open"), (0.2, 0.5, "seldom"), (-1, 0.2, "no")):
        own = [row for row in told if low <= row["expected"] < high]
        if own:
            said, ok = np.mean([(row["expected"], row["status"].get("valid", 0.0)) for row in own], axis=0)
            answered = np.array([row["answered"] for row in own])
            print(
                f"  {words:<7} {len(own):>4} cells: said {said:.0%} on average, ok in {ok:.0%} of the runs, {answered.mean():.0%} of "
                f"coefficients answered, at least {_ANSWERED:.0%} of them in {np.mean(answered >= _ANSWERED):.0%} of the cells"
            )
    missed = [row for row in told if row["expected"] >= _LIKELY and row["answered"] < _ANSWERED]
    unlikely = sum(1 - row["expected"] for row in told if row["expected"] >= _LIKELY)
    print(
        f"answers where they are likely: {len(missed)} cells below {_ANSWERED:.0%}; {unlikely:.1f} by the plans' own chances"
    )
    for row in missed:
        print(
            f"  FAILED  {row['case']} n={row['n'] or 'whole'} mu={row['mu']:g} {row['relation']}: said {row['expected']:.0%}, "
            f"{row['answered']:.0%} of {len(row['coefficients'])} coefficients answered"
        )
    main = [row for row in told if _counts(row)]
    likely = {row["case"] for row in main if row["expected"] >= _LIKELY}
    enough = not main or len(likely) >= _TABLES
    print(
        f"  {'ok    ' if enough else 'FAILED'}  likely at n = 10,000, mu = 1 for {len(likely)} of "
        f"{len({row['case'] for row in main})} tables, {_TABLES} are asked: {', '.join(sorted(likely))}"
    )
    return int(bool(missed) or not enough)


def _pooled(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For information: coverage over all intervals of a table, which are not independent, and without privacy on the same samples."""
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [one for row in rows if row["case"] == case for one in row["coefficients"] if "plain" in one]
        weights = [one["answered"] for one in own]
        if own:
            private, plain = (np.average([one[name] for one in own], weights=weights) for name in ("coverage", "plain"))
            yield f"pooled  {case}: {private:.3f}, without privacy {plain:.3f} ({sum(weights):,} intervals)"


def _by_size(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For information: what came at each size, relation and mu, over all tables and coefficients that were answered."""
    for of in sorted({_setting(row) for row in rows}):
        own = [row for row in rows if _setting(row) == of]
        seen = [one for row in own for one in row["coefficients"] if one["answered"]]
        method, n, relation, mu = of
        ok, answered = np.mean([(row["status"].get("valid", 0.0), row["answered"]) for row in own], axis=0)
        size = f"n = {n:,.0f}" if isfinite(n) else "whole"
        words = f"{method}, {size}, {relation}, mu = {mu:g}: ok {ok:.2f}, answered {answered:.2f}"
        if seen:
            covered = np.average([one["coverage"] for one in seen], weights=[one["answered"] for one in seen])
            width = np.median([one["ratio"] for one in seen if one.get("ratio") is not None] or [np.nan])
            words += f", covered {covered:.3f}, width {width:.2f}"
        yield f"{words} ({len(own)} cells)"


def _setting(row: dict[str, Any]) -> tuple[str, float, str, float]:
    """Method, size (without end for whole tables), relation and mu, in the order in which they are printed."""
    return row["method"], row["n"] or inf, row["relation"], row["mu"]


def _counts(row: dict[str, Any]) -> bool:
    return row["n"] == 10_000 and row["mu"] == 1 and len(row["coefficients"]) <= _TERMS


def _short_of_answers(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from (row for row in rows if _counts(row) and row["answered"] < _ANSWERED)


def _widths(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float, str]]:
    """(table, median over its cells of the median width ratio of its coefficients, the cells) at mu = 1, add-remove.

    A coefficient counts where both were answered in at least half of the runs: rarer answers are a choice of lucky samples.
    """
    kept = json.loads(BASELINE.read_text())["tables"] if BASELINE.exists() else {}
    for case in dict.fromkeys(row["case"] for row in rows):
        ratios = {}
        for row in rows:
            before = kept.get(case, {}).get("ssp", {}).get(str(row["n"]))
            if row["case"] != case or row["mu"] != 1 or row["relation"] != "add-remove" or before is None:
                continue
            found = [
                one["width"] / before["widths"][one["name"]][1]
                for one in row["coefficients"]
                if one["answered"] >= row["replications"] / 2
                and before["widths"][one["name"]][0] >= before["replications"] / 2
            ]
            if found:
                ratios[row["n"]] = float(np.median(found))
        if ratios:
            words = ", ".join(f"n = {n:,}: {ratio:.2f}" for n, ratio in ratios.items())
            yield case, float(np.median(list(ratios.values()))), words
