"""The Gaussian curve and its inverses against mpmath: run as a script to print the largest relative errors.

.venv/bin/python tests/guarantees/guarantees_accuracy.py [points]
"""

from __future__ import annotations

import random
import sys
from math import exp, log, log10

import mpmath

from confide.guarantees import gaussian_delta, gaussian_epsilon, gaussian_mu

# The two terms of the textbook formula share up to about 10 digits at mu = 1e-4; 100 digits leave far more than 60.
mpmath.mp.dps = 100


def reference_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """The textbook formula at 100 digits, for the exact values of two floats."""
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def random_points(count: int, seed: int) -> list[tuple[float, float, float]]:
    """(epsilon, mu, delta): mu from 1e-4 to 50, delta from 1e-300 to 1, half of them near 1, epsilon on the curve."""
    generator = random.Random(seed)
    points = []
    while len(points) < count:
        mu = 10 ** generator.uniform(-4, log10(50))
        near_one = len(points) % 2
        log_delta = -(10 ** generator.uniform(-12, 0)) if near_one else -generator.uniform(0, 690.7)
        delta = exp(log_delta)
        points.append((gaussian_epsilon(delta, mu), mu, delta))
    return points


def relative(value: float, truth: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(value) / truth - 1))


def worst_errors(points: list[tuple[float, float, float]]) -> dict[str, float]:
    """The largest relative error of delta, of delta at the inverse epsilon, and of delta at the inverse mu."""
    worst = {"gaussian_delta": 0.0, "delta at gaussian_epsilon": 0.0, "delta at gaussian_mu": 0.0}
    for epsilon, mu, delta in points:
        truth = reference_delta(epsilon, mu)
        worst["gaussian_delta"] = max(worst["gaussian_delta"], relative(gaussian_delta(epsilon, mu), truth))
        worst["delta at gaussian_epsilon"] = max(worst["delta at gaussian_epsilon"], relative(delta, truth))
        if epsilon >= 0:
            at_mu = relative(delta, reference_delta(epsilon, gaussian_mu(epsilon, delta)))
            worst["delta at gaussian_mu"] = max(worst["delta at gaussian_mu"], at_mu)
    return worst


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    for name, error in worst_errors(random_points(count, seed=1)).items():
        sys.stdout.write(f"{name:28s} largest relative error {error:.2e} at {count} points\n")
    low, high = log(1e-300), log(1.0)
    sys.stdout.write(f"mu from 1e-4 to 50, log delta from {low:.1f} to {high:.0f}\n")


if __name__ == "__main__":
    main()
