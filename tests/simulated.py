"""Releases for simulations: planned once for each method, schema and request, then drawn and read as often as wanted.

The words are the same as those of `cf.infer(cf.release(...))` with the same noise, and so is every number; the gate's checks of each
plan and file, which tests of the gate look at, would take half of the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import confide as cf
from confide.core import seal
from confide.noise import SimulatedNoise

__all__ = ["simulated"]

_plan = lru_cache(maxsize=16)(cf.plan)


def simulated(method: Any, source: Any, privacy: Any, seed: int, question: Any = None) -> Any:
    """The result of one release of these records with the noise of a seed."""
    with np.errstate(all="ignore"):
        release = seal(method, source, _plan(method, source.schema, privacy), SimulatedNoise(seed))
    return method.infer(release, question)
