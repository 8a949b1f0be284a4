"""The tables of coverage as a page in Markdown, failures named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from confide_lab.benchmarks.tables_judge.judged import WIDE
from confide_lab.benchmarks.tables_judge.rule import FALSE_ALARM

__all__ = ["lines"]

Row = Mapping[str, Any]

_TITLES = {
    "short every": "numbers below .94 over all answers",
    "short numbers": "numbers below .94 where no flag speaks against them",
    "wide": "width above 1.3 times that without privacy",
}


def lines(rows: Sequence[Row], flags: Sequence[Row], bounds: Sequence[Row], replications: int) -> Iterator[str]:
    """The page."""
    yield "| kind | n | mu | covered | weakest set | all | without privacy | weakest number | stands | width over plain | over formula |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    keys = list(dict.fromkeys((row["kind"], row["n"], row["mu"]) for row in rows))
    for key in sorted(keys, key=lambda one: (one[0], one[1], one[2])):
        yield _line(key, [row for row in rows if (row["kind"], row["n"], row["mu"]) == key])
    yield ""
    yield from _failures(rows, replications)
    if flags:
        yield ""
        yield "| set | cells of all crossings of two that expect 100 records | any flag | a flag against the interval |"
        yield "| --- | --- | --- | --- |"
        for row in flags:
            yield f"| {row['set']} | {row['cells']} | {row['any flag']:.3f} | {row['unsure']:.3f} |"
    if bounds:
        yield ""
        yield from _alone(bounds)


def _alone(rows: Sequence[Row]) -> Iterator[str]:
    """Means of one column for all records, by how many times the bounds are as wide as the records' own range."""
    yield "| n | mu | bounds over range | width over plain, median | widest | at most 1.3 | could be, at the least noise |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for key in dict.fromkeys((row["n"], row["mu"], row["times"]) for row in rows):
        own = [row for row in rows if (row["n"], row["mu"], row["times"]) == key]
        width, floor = (np.array([row[name] for row in own]) for name in ("width", "floor"))
        yield (
            f"| {key[0]:,} | {key[1]:g} | {key[2]:g} | {np.median(width):.2f} | {width.max():.2f} | "
            f"{(width <= WIDE).sum()} of {len(own)} | {(floor <= WIDE).sum()} of {len(own)} |"
        )


def _line(key: tuple[str, int, float], rows: Sequence[Row]) -> str:
    kind, n, mu = key
    weights = np.array([row["answers"] for row in rows], dtype=float)
    told = [row for row in rows if row["answers"]]
    if not told:
        return f"| {kind} | {n:,} | {mu:g} | - | | | | | 0 | | |"
    weakest = min(told, key=lambda row: row["coverage"])
    covered = float(np.nansum(weights * [row["coverage"] if row["answers"] else 0.0 for row in rows]) / weights.sum())
    bare = (
        float(np.nanmean([row["bare"] for row in told])) if np.isfinite([row["bare"] for row in told]).any() else None
    )
    least = min(row["least"] for row in told)
    stands = float(np.mean([row["answered"] for row in rows]))
    width = [row["ratio"] for row in told if np.isfinite(row["ratio"])]
    formula = [row["formula"] for row in told if np.isfinite(row["formula"])]
    cells = [
        kind, f"{n:,}", f"{mu:g}", f"{covered:.3f}", f"{weakest['set']} {weakest['coverage']:.3f}",
        f"{np.mean([row['every'] for row in told]):.3f}", "" if bare is None else f"{bare:.3f}", f"{least:.2f}", f"{stands:.2f}",
        f"{np.median(width):.2f}" if width else "", f"{np.median(formula):.2f}" if formula else "",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _failures(rows: Sequence[Row], replications: int) -> Iterator[str]:
    kinds = len(rows)
    numbers = sum(row["numbers"] for row in rows)
    short = [row for row in rows if row["short"]]
    long = [row for row in rows if row["long"]]
    longer = sum(row["longer"] for row in rows)
    each = [(row, name) for row in rows for name in row["short numbers"]]
    bare = sum(len(row["short bare"]) for row in rows)
    alarms = FALSE_ALARM * numbers
    every = [(row, name) for row in rows for name in row["short every"]]
    seldom = sum(len(row["seldom"]) for row in rows)
    yield f"{replications} samples a cell. Kinds below .94: {len(short)} of {kinds}; above .985 with little noise: {len(long)} of {kinds}, "
    yield f"and {longer} of them above what the interval without privacy covers, too."
    yield (
        f"Numbers below .94 by themselves where no flag speaks against them: {len(each)} of {numbers:,}, of which {seldom} are flagged "
        f"in more than half of the samples; over all answers, flagged or not: {len(every)} of "
        f"{sum(row['every numbers'] for row in rows):,}. Without privacy, same numbers and samples: {bare}. "
        f"False alarms to be expected at the most: {alarms:.1f}."
    )
    wide = [(row, name) for row in rows for name in row["wide"]]
    far = [(row, name) for row in rows for name in row["far"]]
    near = sum(row["numbers"] for row in rows if np.isfinite(row["formula"]))
    yield f"Shares wider than 1.3 times the interval without privacy, though noise need not: {len(wide)};"
    yield f"not within 10 % of the formula: {len(far)} of {near}."
    for row in short:
        yield f"- below .94: {_where(row)}: {_ends(row)}"
    for kind in dict.fromkeys(row["kind"] for row in long):
        own, all_ = [row for row in long if row["kind"] == kind], [row for row in rows if row["kind"] == kind]
        most = max(own, key=lambda row: row["coverage"])
        yield f"- above .985: {kind}: {len(own)} of {len(all_)}; the most: {_where(most)}: {_ends(most)}"
    for title, words in _TITLES.items():
        for name in dict.fromkeys(row["set"] for row in rows if row[title]):
            told = [row for row in rows if row["set"] == name and row[title]]
            yield f"- {words}: {name}: " + "; ".join(
                f"{row['kind']}, n = {row['n']:,}, mu = {row['mu']:g}: {len(row[title])} ({', '.join(row[title][:3])}"
                f"{', ...' if len(row[title]) > 3 else ''})"
                for row in told
            )
    for kind in dict.fromkeys(row["kind"] for row in rows if np.isfinite(row["formula"])):
        own = [row for row in rows if row["kind"] == kind and np.isfinite(row["formula"])]
        low, high = min(row["formula from"] for row in own), max(row["formula to"] for row in own)
        beyond, of = sum(len(row["far"]) for row in own), sum(row["numbers"] for row in own)
        yield f"- mean width over the formula's, {kind}: {low:.2f} to {high:.2f}, {beyond} of {of} beyond 10 %"


def _ends(row: Row) -> str:
    plain = f", without privacy {row['bare']:.3f}" if np.isfinite(row["bare"]) else ""
    return f"{row['coverage']:.3f} [{row['low']:.3f}, {row['high']:.3f}]{plain}"


def _where(row: Row) -> str:
    return f"{row['set']}, {row['kind']}, n = {row['n']:,}, mu = {row['mu']:g}"
