"""Memory is bounded by the batch, not by the file: measured as the peak of a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS_PER_GROUP = 131_072

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])  # the project's root, where `tests` is
from tests.sources.records import Plain
from confide.core import Gram
from confide.schema import Numeric, Schema
from confide.sources import read
names = tuple(f"x{j}" for j in range(10))
source = read(sys.argv[1], Schema({name: Numeric(-3, 3) for name in names}))
(gram,) = source.aggregate(Gram(Plain(names)))
# ru_maxrss would begin at the peak of the process that runs the tests
print(gram[0, 0], open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


def write(path: Path, rows: int) -> Path:
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(10)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROWS_PER_GROUP):
            size = min(ROWS_PER_GROUP, rows - start)
            batch = pa.table([rng.normal(size=size) for _ in names], schema=schema)
            writer.write_table(batch, row_group_size=ROWS_PER_GROUP)
    return path


def peak(path: Path, rows: int) -> float:
    """Megabytes that one pass over the file needs, the interpreter and all libraries included."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(Path(__file__).parents[2])],
        capture_output=True,
        text=True,
        check=True,
    )
    count, kilobytes = done.stdout.split()
    assert int(count) == rows
    return int(kilobytes) / 1024


@pytest.mark.long
def test_ten_million_records_in_500_megabytes(tmp_path):
    rows = 10_000_000
    assert peak(write(tmp_path / "t.parquet", rows), rows) < 500


@pytest.mark.long
def test_a_longer_file_needs_no_more(tmp_path):
    """Eight row groups against two: each thread holds one at a time."""
    short, long = (
        peak(write(tmp_path / f"{groups}.parquet", groups * ROWS_PER_GROUP), groups * ROWS_PER_GROUP)
        for groups in (2, 8)
    )
    assert long < short + 40
