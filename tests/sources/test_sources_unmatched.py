"""Labels that match no level, counted for the steward: whatever holds the records, and only what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from confide.schema import Categorical, Numeric, Schema
from confide.sources import read
from confide.sources.undeclared_labels import unmatched_labels

SCHEMA = Schema({"x": Numeric(0, 1), "g": Categorical(["a", "b"]), "k": Categorical([1, 2], on_missing=1)})
G = ["a", "A", None, "", "b", " b", "c", "a"]  # "A", " b" and "c" match none; an empty cell holds no label
K = [1.0, 2.0, 3.0, float("nan"), 1.5, 2.0, float("inf"), 1.0]  # 3, 1.5 and inf
FRAME = pd.DataFrame({"x": np.linspace(0, 1, 8), "g": pd.Series(G, dtype=object), "k": K})


def as_csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(folder: Path) -> Path:
    FRAME.to_parquet(folder / "t.parquet", index=False)
    return folder / "t.parquet"


@pytest.mark.parametrize(
    "data",
    [
        as_csv,
        as_parquet,
        lambda folder: [as_csv(folder)],
        lambda folder: FRAME,
        lambda folder: FRAME.assign(g=FRAME["g"].astype("category")),
        lambda folder: FRAME.astype(object),
        lambda folder: pl.from_pandas(FRAME),
        lambda folder: pa.Table.from_pandas(FRAME),
        lambda folder: {"x": FRAME["x"], "g": G, "k": K},
        lambda folder: {"x": FRAME["x"], "g": pa.array(G).dictionary_encode(), "k": np.array(K)},
    ],
)
def test_every_container_gives_the_same_counts(data: Any, tmp_path: Path) -> None:
    assert unmatched_labels(read(data(tmp_path), SCHEMA)) == {"g": 3, "k": 3}


def test_whole_numbers_and_booleans_are_read_as_a_release_reads_them() -> None:
    schema = Schema({"k": Categorical([1, 2]), "b": Categorical([True, False])})
    assert unmatched_labels(read({"k": np.array([1, 2, 7]), "b": np.array([True, False, True])}, schema)) == {
        "k": 1,
        "b": 0,
    }
    values = {"k": [True, 2, pd.NA, None, "2.0", [1]], "b": [1, 0, "true", "no", None, 2]}
    # the list in k, and "no" and 2 in b: 1, 0 and "true" mean True, False and True
    assert unmatched_labels(read(values, schema)) == {"k": 1, "b": 2}


def test_many_rows_and_a_schema_without_labels() -> None:
    schema = Schema({"g": Categorical(["a", "b"])})
    cells = np.array(["a", "z"] * 50_000 + ["b"] * 7, dtype=object)
    assert unmatched_labels(read({"g": cells}, schema)) == {"g": 50_000}
    assert unmatched_labels(read({"x": [1.0]}, Schema({"x": Numeric(0, 1)}))) == {}
