"""Speed of the noise: draws a second of every law at every scale, scales given one for each draw, OpenDP beside us.

    python -m confide_lab.benchmarks.noise [draws]

One core, best of five. Asked: grid_gaussian at 5e6 draws a second or more from scale 10 to 1e15, and at 50 times the
integer sampler of OpenDP in the same run; no set-up for a scale.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np

from confide.noise import SecureNoise
from confide.noise.integers import Scales
from confide.noise.standard import StandardLaw

LAWS = ("grid_gaussian", "grid_laplace", "discrete_gaussian", "discrete_laplace")
SCALES = ("0.5", "10", "1e3", "1e6", "1e9", "1e15")
ASKED = 5_000_000
OPENDP_DRAWS = 20_000
OPENDP_RATIO = 50


def best(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def parameter(law: str, scale: Fraction) -> Fraction:
    return scale**2 if law.endswith("gaussian") else scale


def one_scale(noise: SecureNoise, law: str, scale: str, draws: int) -> dict[str, object]:
    draw, given = getattr(noise, law), parameter(law, Fraction(scale))
    speed = draws / best(lambda: draw(given, draws))
    return {
        "check": f"{law} at scale {scale}",
        # The bar is for the noise of the library; the others are shown.
        "passed": speed >= ASKED or law != "grid_gaussian" or float(scale) < 10,
        "draws_per_second": round(speed),
        "size_1_us": round(1e6 * best(lambda: draw(given, 1), 100), 1),
        "size_100_us": round(1e6 * best(lambda: draw(given, 100), 100), 1),
    }


def many_scales(noise: SecureNoise, law: str) -> list[dict[str, object]]:
    """1,000 scales: one draw of each in a call, 1,000 draws of each in a call, and one call for each scale."""
    scales = [parameter(law, Fraction(3, 7) + j * 10 ** (j // 90)) for j in range(1_000)]
    draw = getattr(noise, law)
    each = best(lambda: draw(scales, 1_000))
    thousand = best(lambda: draw(scales * 1_000, 1_000_000), 3)
    floats = np.repeat([float(scale) for scale in scales], 1_000)
    as_floats = best(lambda: draw(floats, 1_000_000), 3)
    alone = best(lambda: draw(scales[7], 1_000))
    calls = best(lambda: [draw(scale, 1) for scale in scales], 3)
    return [
        {
            "check": f"{law}: 1,000 scales in one call, one draw each",
            "passed": (each - alone) / 1_000 < 2e-5,
            "milliseconds": round(1e3 * each, 2),
            "beyond_one_scale_us_per_scale": round(1e3 * (each - alone), 2),
            "calls_for_each_scale_milliseconds": round(1e3 * calls, 1),
        },
        {
            "check": f"{law}: 1,000 scales, 1,000 draws each, in one call",
            "passed": 1e6 / thousand > ASKED / 5,
            "draws_per_second_fractions": round(1e6 / thousand),
            "draws_per_second_float64_array": round(1e6 / as_floats),
        },
    ]


def set_up() -> list[dict[str, object]]:
    """The public tables, once in a process, and what a new scale costs."""
    rows: list[dict[str, object]] = []
    kinds: tuple[Literal["half normal", "exponential"], ...] = ("half normal", "exponential")
    for kind in kinds:
        seconds = best(partial(StandardLaw, kind))
        rows.append(
            {
                "check": f"table of the standard {kind}",
                "passed": seconds < 0.03,
                "milliseconds": round(1e3 * seconds, 2),
            }
        )
    sigma2 = Fraction(10**30 + 1, 7)
    seconds = best(lambda: Scales.read(sigma2, 1, squared=True), 200)
    rows.append({"check": "a new scale", "passed": seconds < 1e-4, "microseconds": round(1e6 * seconds, 1)})
    return rows


def beside_opendp(noise: SecureNoise, draws: int) -> list[dict[str, object]]:
    """The integer samplers of OpenDP in the same run, and ours over theirs; empty when it is not installed."""
    try:
        theirs = SecureNoise(backend="opendp")
    except ValueError:
        return [{"check": "OpenDP is installed", "passed": False}]
    rows: list[dict[str, object]] = []
    for law, reference in (
        ("grid_gaussian", "discrete_gaussian"),
        ("discrete_gaussian", "discrete_gaussian"),
        ("discrete_laplace", "discrete_laplace"),
    ):
        for scale in SCALES:
            given = parameter(law, Fraction(scale))
            slow = OPENDP_DRAWS / best(partial(getattr(theirs, reference), given, OPENDP_DRAWS), 2)
            fast = draws / best(partial(getattr(noise, law), given, draws), 3)
            rows.append(
                {
                    "check": f"{law} beside OpenDP's {reference} at scale {scale}",
                    "passed": fast >= OPENDP_RATIO * slow or law != "grid_gaussian",
                    "ratio": round(fast / slow, 1),
                    "opendp_draws_per_second": round(slow),
                    "draws_per_second": round(fast),
                }
            )
    return rows


def run(draws: int = 3_000_000) -> list[dict[str, object]]:
    """All rows, each with what it was asked."""
    noise = SecureNoise()
    rows: list[dict[str, object]] = []

    def show(more: list[dict[str, object]]) -> None:
        rows.extend(more)
        for row in more:
            print(json.dumps(row), flush=True)

    show(set_up())
    for law in LAWS:
        show([one_scale(noise, law, scale, draws) for scale in SCALES])
        show(many_scales(noise, law))
    show(beside_opendp(noise, draws))
    return rows


def main() -> None:
    run(int(float(sys.argv[1])) if len(sys.argv) > 1 else 3_000_000)


if __name__ == "__main__":
    main()
