"""Alternating runs, their CPU and wall seconds, memory, and checks against a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

__all__ = ["Check", "Seconds", "alternating", "peak", "shown"]

#: One line of a benchmark's file.
Check: TypeAlias = dict[str, Any]
#: CPU (user and system) and wall.
Seconds: TypeAlias = tuple[float, ...]


def alternating(calls: Mapping[str, Callable[[], Any]], runs: int, *, warm: bool = True) -> dict[str, Seconds]:
    """Medians over `runs` rounds of all calls, one after the other, with one BLAS thread; warm: a round before them warms up."""
    times: dict[str, list[Seconds]] = {name: [] for name in calls}
    with threadpool_limits(1):
        for r in range(runs + warm):
            for name, call in calls.items():
                wall, cpu = time.perf_counter(), time.process_time()
                call()
                if r or not warm:
                    times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: tuple(median(one[i] for one in own) for i in (0, 1)) for name, own in times.items()}


def peak() -> float:
    """The largest resident set of this process in MB, from Linux; `ru_maxrss` would begin at that of the process that started it."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def shown(what: str, ours: Seconds, theirs: Seconds, bar: float | None) -> Check:
    """The ratio of CPU seconds against its bar (None: for information), printed."""
    ratios = [round(a / b, 2) for a, b in zip(ours, theirs, strict=True)]
    row = {
        "check": f"CPU of {what}",
        "value": ratios[0],
        "bar": bar,
        "wall_ratio": ratios[-1],
        "cpu_seconds": [round(ours[0], 4), round(theirs[0], 4)],
        "passed": bar is None or ratios[0] <= bar,
    }
    print(f"{'ok    ' if row['passed'] else 'FAILED'} {row}", flush=True)
    return row
