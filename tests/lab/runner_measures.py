"""Measures of the runner's tests: functions of a module, as worker processes need them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def noise(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return {"mean": float(generator.normal(0, at["sd"], at["n"]).mean()), "law": "normal", "positive": True}


def logged(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    """Writes a line for each run of a cell, so that repetitions can be counted."""
    time.sleep(at["wait"])
    with Path(at["log"]).open("a") as log:
        log.write(f"{at['k']} {at['replication']}\n")
    return {"value": generator.random()}


def faulty(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    match at["how"]:
        case "raises":
            raise ValueError("no root between 0 and 1")
        case "exits":
            raise SystemExit(3)
        case "dies":
            os._exit(7)
        case "answers with a list":
            return [1.0]  # type: ignore[return-value]
        case "answers with a setting":
            return {"how": 1.0}
        case "answers with an array":
            return {"x": np.zeros(3)}
        case "fails once":
            flag = Path(at["flag"])
            if not flag.exists():
                flag.touch()
                raise RuntimeError("not yet")
    return {"x": 1.0}


def threads(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    np.ones((64, 64)) @ np.ones((64, 64))
    return {
        "openmp": os.environ.get("OMP_NUM_THREADS", "none"),
        "most": max((pool["num_threads"] for pool in threadpool_info()), default=1),
    }
