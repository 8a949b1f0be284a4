"""Speed of the noise: draws a second, set-up of a law and a draw of 100, one JSON line per scale.

    python benchmarks/noise.py [draws]

One core, best of five. Asked: 5e6 draws a second at every scale from 10 to 1e15, set-up below 30 ms.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction

from confide.noise import SecureNoise
from confide.noise.laws import GaussianLaw

SCALES = ("0.5", "1", "10", "1e3", "1e6", "1e9", "1e15")


def best(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(scale: str, draws: int) -> dict[str, object]:
    noise, sigma2 = SecureNoise(), Fraction(scale) ** 2
    setup = best(lambda: GaussianLaw(sigma2))
    noise.grid_gaussian(sigma2, 1)
    return {
        "law": "grid_gaussian",
        "scale": scale,
        "draws": draws,
        "draws_per_second": round(draws / best(lambda: noise.grid_gaussian(sigma2, draws))),
        "setup_ms": round(1e3 * setup, 2),
        "size_100_us": round(1e6 * best(lambda: noise.grid_gaussian(sigma2, 100), 200), 1),
    }


def run(draws: int = 5_000_000) -> list[dict[str, object]]:
    """A row per scale; the bar of 5e6 draws a second holds from scale 10 on."""
    rows = []
    for scale in SCALES:
        row = measure(scale, draws)
        fast = int(str(row["draws_per_second"])) >= 5_000_000 or float(scale) < 10
        rows.append({"check": f"grid_gaussian at scale {scale}", "passed": fast, **row})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    draws = int(float(sys.argv[1])) if len(sys.argv) > 1 else 5_000_000
    run(draws)


if __name__ == "__main__":
    main()
