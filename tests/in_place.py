"""Other people's code on blocks, run here and without a clock: the same numbers as in its processes, on a machine of any pace.

The processes, their time and their memory have tests of their own (tests/aggregates/test_isolated.py).
"""

from __future__ import annotations

import hashlib
import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import numpy as np
import pytest

from confide.aggregates.isolated import Array, Isolated


def _answer(workers: Isolated, table: Array, own: bytes) -> Array:
    generator = np.random.default_rng(int.from_bytes(own, "little"))
    np.random.seed(int(generator.integers(1 << 32)))  # noqa: NPY002
    random.seed(int(generator.integers(1 << 62)))
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stdout(nowhere), redirect_stderr(nowhere):
            found = np.asarray(workers._work(np.array(table, dtype=np.float64), generator), dtype=np.float64)
        left = b"\x01" + found.tobytes() if found.shape == workers._answers.shape else b""
    except Exception:
        left = b""
    return workers._answers.read(left)


def _run(workers: Isolated, tables: list[Array], key: bytes) -> Array:
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    own = [hashlib.sha256(key + place.to_bytes(8, "little")).digest()[:16] for place in range(len(tables))]
    found = [_answer(workers, table, one) for table, one in zip(tables, own, strict=True)]
    random.setstate(before[0])
    np.random.set_state(before[1])  # noqa: NPY002
    return np.array(found).reshape(len(tables), *workers._answers.shape)


@contextmanager
def in_place() -> Iterator[None]:
    """No process is started and no time is waited out within."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Isolated, "__enter__", lambda workers: workers)
        patch.setattr(Isolated, "__exit__", lambda *_: None)
        patch.setattr(Isolated, "run", _run)
        yield


@pytest.fixture
def blocks_in_place() -> Iterator[None]:
    with in_place():
        yield
