"""Protected records: fits of three real tables against the plain fit of all their records, and how long releases and fits take."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import confide as cf
from confide.local.fits.fitting import fitted
from confide.local.fits.losses import Logistic, Rows
from confide.noise import SecureNoise
from confide_lab.benchmarks.acceptance import _row
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.datasets import frame_of
from confide_lab.experiments.local_coverage import truncated_normal
from confide_lab.published.zil import protected

__all__ = ["real", "run", "speed", "stored"]

Array = NDArray[np.float64]
_DRAWS = 40
#: Records of the stream whose outputs are stored.
STORED = int(os.environ.get("CONFIDE_STORED_RECORDS", "1000000"))

#: file, formula, loss, protected terms with public bounds, response with its bounds.
_REAL: tuple[tuple[str, str, dict[str, tuple[float, float]], tuple[str, float, float]], ...] = (
    (
        "california_housing",
        "squared",
        {"median_income": (0, 15), "housing_median_age": (0, 52)},
        ("median_house_value", 0, 500_001),
    ),
    ("bike_sharing_hourly", "squared", {"temp": (0, 1), "hum": (0, 1)}, ("cnt", 0, 1_000)),
    ("adult", "logistic", {"age": (17, 90), "education_num": (1, 16)}, ("over_50k", 0, 1)),
)


def real() -> list[dict[str, Any]]:
    """Intervals from 40 protected tables of each set, noise a quarter of the width, against the plain estimate of the whole table."""
    return [_table(*one) for one in _REAL]


def _table(
    name: str, loss: str, terms: dict[str, tuple[float, float]], response: tuple[str, float, float]
) -> dict[str, Any]:
    y, low, high = response
    frame = frame_of(name)
    if name == "adult":
        frame = frame.assign(over_50k=frame["income"].astype(str).str.contains(">50K").astype(float))
    frame = pd.DataFrame(
        {key: np.clip(frame[key].to_numpy(float), *ends) for key, ends in {**terms, y: (low, high)}.items()}
    )
    schema = cf.Schema(
        {key: cf.Numeric(*ends, on_missing=sum(ends) / 2) for key, ends in {**terms, y: (low, high)}.items()},
        dataset=name,
    )
    formula = f"{y} ~ {' + '.join(terms)}"
    plain = _plain(frame, list(terms), y, loss)
    hits, answered = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(_DRAWS):
            place = Path(folder) / "p.parquet"
            cf.local.protect(
                frame, schema, place, columns=list(terms), public=[y], noise=0.25, ledger=None, seed=k, force=True
            )
            result = cf.local.fit(place, formula, loss=loss)
            if result.status == "valid":
                answered += 1
                limits = result.conf_int().to_numpy()
                hits.append((limits[:, 0] <= plain) & (plain <= limits[:, 1]))
    held = np.array(hits)
    mean, a, b = interval(held)
    row = {
        "check": f"{name}, {loss}: share of 95 % intervals that hold the plain estimate",
        "value": mean,
        "interval": [a, b],
        "answered": answered,
        "of": _DRAWS,
        "passed": consistent(held, 0.94, 1.0),
    }
    print(row, flush=True)
    return row


def _plain(frame: pd.DataFrame, terms: list[str], y: str, loss: str) -> Array:
    x = np.column_stack([np.ones(len(frame)), frame[terms].to_numpy(float)])
    response = frame[y].to_numpy(float)
    if loss == "squared":
        return np.asarray(np.linalg.lstsq(x, response, rcond=None)[0])
    middle, scale = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    middle[0] = 0
    theta = fitted(Logistic(), "naive", Rows((x - middle) / scale, response, np.zeros(x.shape[1]), 0.0, 0.0)).theta
    slopes = theta / scale
    slopes[0] = theta[0] - middle[1:] @ slopes[1:]
    return np.asarray(slopes)


def speed() -> list[dict[str, Any]]:
    """CPU seconds on one core; limits are those of a quiet machine."""
    generator = np.random.default_rng(1)
    plain = round(_cpu(lambda: generator.laplace(size=10**7)), 3)
    rows = [_row("10^7 values of one column, noise drawn and added", _cpu(_release), 0, 5.0, numpy=plain)]
    rows += stored()
    n, half = 10_000, 0.5
    x = truncated_normal(generator, (n, 6), half)
    y = (generator.random(n) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    for method, zeta, most in (("SL", 0.0, 0.1), ("RB", 0.2, 1.5)):
        given = Rows(protected(x, 0.5, zeta, generator)[0], y, np.full(6, 0.5), 0.0, zeta)
        rows.append(_row(f"logistic fit by {method}, n = 10^4, d = 6", _best(method, given), 0, most))
    return rows


def _best(method: str, rows: Rows) -> float:
    return min(_cpu(lambda: fitted(Logistic(), method, rows)) for _ in range(5))


def _release() -> None:
    noise, codes = SecureNoise(), np.zeros(65_536, dtype=np.int64)
    for _ in range(10**7 // 65_536 + 1):
        codes + noise.symmetric_laplace([2**19], 65_536)[:, 0]


def stored() -> list[dict[str, Any]]:
    """A stream of `STORED` records whose ids come in order, and of one whose ids come in none: CPU seconds, of which 60 are asked of 10^7,
    and the highest memory of a process that does nothing else, in MB."""
    rows = []
    for way, step in (("in order", 1), ("in no order", 7_654_321)):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "records.parquet"
            _write(place, step)
            begun = time.perf_counter()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                seconds, peak = alone.submit(_extend, place).result()
            wall = time.perf_counter() - begun
        what = f"with the store, {STORED:,} records, ids {way}"
        rows.append(_row(what, seconds, 0, 60.0 * STORED / 10**7, wall=round(wall, 1)))
        rows.append(_row(f"{what}: highest memory, MB", peak, 0, 500.0))
    return rows


def _write(place: Path, step: int) -> None:
    """The ids are 0, 1 and so on times `step`, which has no factor in common with their number, modulo that number."""
    kinds = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    with pq.ParquetWriter(place, kinds) as file:
        for start in range(0, STORED, 10**5):
            ids = np.arange(start, min(start + 10**5, STORED)) * step % STORED
            file.write_table(pa.table({"id": ids, "x": np.full(len(ids), 0.5)}, kinds))


def _extend(place: Path) -> tuple[float, float]:
    """(CPU seconds, highest memory in MB) of one call of `extend`."""
    schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="speed")
    budget = cf.GDP(6.0, 1e-3, relation="substitute", trust="local")
    book = cf.Ledger.create(place.with_suffix(".db"), dataset="speed", budget=budget)
    stream = cf.local.Releaser.open(book, schema, columns=["x"], noise=2.0, charge_delta=1e-6)
    seconds = _cpu(lambda: stream.extend(place, ids="id"))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 2**20)


def _cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def run() -> list[dict[str, Any]]:
    """Both, by `confide lab bench local_records`."""
    return [*speed(), *real()]
