"""CPU time of what users call by default on columns of many levels and on CSV files, against pandas' groupby and against one pass.

Alternating runs, one thread and one BLAS thread on both sides, CONFIDE_BENCH_RUNS (default 5) of each. `confide lab bench default_levels`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide_lab.benchmarks.timed import Check, alternating, shown

__all__ = ["run"]

RUNS = int(os.environ.get("CONFIDE_BENCH_RUNS", "5"))
FOLDER = Path("out/bench")
ROWS, LEVELS = 1_000_000, 1_000
_PRIVACY = cf.GDP(1.0)


def _labels(levels: int) -> list[str]:
    return [f"level {k}" for k in range(levels)]


def _levelled(rows: int, levels: int) -> tuple[pd.DataFrame, cf.Schema]:
    """A column of many levels, spread evenly, and two numbers, in memory; the levels are text."""
    g = np.random.default_rng(5)
    kind = g.integers(0, levels, rows)
    x = g.uniform(-1, 1, (2, rows))
    y = np.clip(x[0] + kind % 7 / 7 + g.standard_normal(rows) / 2, -4, 4)
    frame = pd.DataFrame({"kind": np.array(_labels(levels), dtype=object)[kind], "x": x[0], "z": x[1], "y": y})
    numbers = {"x": cf.Numeric(-1, 1), "z": cf.Numeric(-1, 1), "y": cf.Numeric(-4, 4)}
    return frame, cf.Schema({"kind": cf.Categorical(_labels(levels)), **numbers})


def _read(data: Any, schema: cf.Schema) -> Any:
    return cf.read(data, schema, threads=1)


def _ours(frame: pd.DataFrame, schema: cf.Schema) -> Mapping[str, Callable[[], Any]]:
    def classes() -> Any:
        method = cf.classification.ClassMeans("kind ~ x + z")
        return cf.infer(cf.release(method, _read(frame, schema), _PRIVACY, ledger=None))

    def tabled(call: Callable[..., Any], formula: str) -> Any:
        return call(formula, _read(frame, schema), inference="population", privacy=_PRIVACY, ledger=None)

    return {
        "class means": classes,
        "counts": lambda: tabled(cf.tables.counts, "kind"),
        "means": lambda: tabled(cf.tables.means, "y ~ kind"),
        "regression on the levels alone": lambda: cf.linear_regression(
            "y ~ kind", _read(frame, schema), privacy=_PRIVACY, ledger=None
        ),
    }


def levels() -> list[Check]:
    """A thousand levels, as text and as a pandas Categorical, over the groupby that gives the same numbers without privacy."""
    text, schema = _levelled(ROWS, LEVELS)
    found = []
    for form, frame in (("text", text), ("a Categorical", text.astype({"kind": "category"}))):
        calls = dict(_ours(frame, schema))
        of = {
            "class means": "groupby of two means",
            "counts": "groupby of counts",
            "means": "groupby of one mean",
            "regression on the levels alone": "groupby of one mean",
        }
        by = {
            "groupby of two means": lambda f=frame: f.groupby("kind", observed=True)[["x", "z"]].agg(["mean", "var"]),
            "groupby of counts": lambda f=frame: f.groupby("kind", observed=True).size(),
            "groupby of one mean": lambda f=frame: f.groupby("kind", observed=True)["y"].agg(["mean", "var"]),
        }
        seconds = alternating({**calls, **by}, RUNS)
        for name in calls:
            what = f"{name} of {LEVELS:,} levels ({form}), {ROWS:,} rows in memory, over pandas' {of[name]}"
            # a line of a thousand coefficients has a covariance of a million numbers; groupby has none
            bar = None if name.startswith("regression") else 5.0
            found.append(shown(what, seconds[name], seconds[of[name]], bar))
    return found


def questions() -> list[Check]:
    """Twenty two-way tables in one publication, over twenty groupbys and one scan."""
    g = np.random.default_rng(6)
    names = [f"c{k}" for k in range(7)]
    sizes = (2, 3, 4, 5, 6, 8, 10)
    schema = cf.Schema({name: cf.Categorical(_labels(size)) for name, size in zip(names, sizes, strict=True)})
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(g.integers(0, size, ROWS), categories=_labels(size))
            for name, size in zip(names, sizes, strict=True)
        }
    )
    pairs = list(islice(combinations(names, 2), 20))
    path = FOLDER / "levels.parquet"
    FOLDER.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path)
    asked = cf.Publication({f"{a} by {b}": cf.tables.Counts(f"{a}:{b}", inference="population") for a, b in pairs})

    def published(data: Any) -> Any:
        return cf.release(asked, _read(data, schema), _PRIVACY, ledger=None)

    def grouped(table: pd.DataFrame) -> Any:
        return [table.groupby([a, b], observed=False).size() for a, b in pairs]

    seconds = alternating(
        {
            "memory": lambda: published(frame),
            "Parquet": lambda: published(path),
            "groupby": lambda: grouped(frame),
            "scan and groupby": lambda: grouped(pd.read_parquet(path)),
            "scan": lambda: pd.read_parquet(path),
        },
        RUNS,
    )
    scan = seconds["scan"]
    limit = tuple(3 * a + b for a, b in zip(seconds["groupby"], scan, strict=True))
    return [
        shown(
            f"20 questions on {ROWS:,} rows from {own}, over 3 groupbys of the same cells and one scan",
            seconds[own],
            limit,
            1.0,
        )
        for own in ("memory", "Parquet")
    ]


def terms() -> list[Check]:
    """A factor of a hundred levels beside a number."""
    frame, schema = _levelled(100_000, 100)
    import statsmodels.formula.api as smf

    seconds = alternating(
        {
            "ours": lambda: cf.linear_regression(
                "y ~ x + kind", _read(frame, schema), privacy=cf.GDP(3.0), ledger=None
            ),
            "statsmodels": lambda: smf.ols("y ~ x + C(kind)", frame).fit(cov_type="HC1"),
        },
        RUNS,
    )
    what = "linear regression on a number and 100 levels, 100,000 rows in memory, over statsmodels' formula with HC1"
    return [shown(what, seconds["ours"], seconds["statsmodels"], 1.0)]


def passes() -> list[Check]:
    """A method of two passes over a CSV file, against one of one pass."""
    frame, schema = _levelled(300_000, 20)
    path = FOLDER / "levels.csv"
    FOLDER.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)

    def fitted(passes: int) -> Any:
        with _read(path, schema).kept(("x", "z", "y", "kind")) as source:
            from confide.core import Total
            from confide.methods.regression.sums.linear_rows import Present

            design = cf.schema.ModelMatrix.of("y ~ x + z + kind", schema)
            for _ in range(passes):
                source.aggregate(Total(Present(design), nonnegative=True))

    seconds = alternating({"one": lambda: fitted(1), "two": lambda: fitted(2)}, RUNS)
    return [shown("two passes over a CSV file of 300,000 rows, over one", seconds["two"], seconds["one"], 1.3)]


def run() -> list[Check]:
    return [*levels(), *questions(), *terms(), *passes()]


if __name__ == "__main__":
    run()
