"""Shen, Tong, Wang 2026: the numbers of docs/errata.md on efficient propose-test-release."""

from __future__ import annotations

from functools import partial
from math import log, sqrt

import numpy as np

from confide.aggregates.safety_formulas import kappa
from confide.guarantees.reply import worst_delta
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.eptr import classical_multiplier, distance_probability, logistic_probability

__all__ = ["CHECKS"]


def release() -> list[Finding]:
    """E1: the exact delta of Theorem 2.2 over the stated one, where it is used and where it fails."""
    found = []
    for epsilon, value in ((0.5, 0.77), (1, 0.60), (2, 0.37), (4, 0.135), (8, 0.027), (24, 3.0), (40, 31.0)):
        mu = epsilon / (2 * classical_multiplier(0.01))
        delta = worst_delta(
            partial(logistic_probability, epsilon=epsilon, delta=0.01),
            mu, epsilon, largest=4 / epsilon * log(100) + 6, step=0.1, far=True,
        )  # fmt: skip
        found.append(near(f"exact delta over .01 at epsilon = {epsilon:g}", "at most 1", delta / 0.01, value, 0.02))
    return found


def distance() -> list[Finding]:
    """E2: the exact delta of Algorithm 1 over the stated one."""
    found = []
    for epsilon, delta, value in (
        (2, 0.01, 1.22),
        (4, 0.01, 2.13),
        (8, 0.01, 7.43),
        (1, 1e-6, 110.0),
        (4, 1e-6, 1264.0),
    ):
        worst = worst_delta(
            partial(distance_probability, epsilon=epsilon, delta=delta),
            epsilon / classical_multiplier(delta), epsilon, largest=6 / epsilon * log(1 / delta) + 3, step=1.0,
        )  # fmt: skip
        found.append(near(f"exact delta over {delta:g} at epsilon = {epsilon:g}", "at most 1", worst / delta, value))
    return found


def class_means() -> list[Finding]:
    """E5: how far replacing a record moves the class means, in R, by brute force over the two classes' extreme records."""
    found = []
    for least, value in ((3, 0.8333), (5, 0.5207), (20, 0.1381)):
        # the one record at +R of a class at -R goes to another class of that size at +R, and is -R there
        before = np.array([(1.0 - (least - 1)) / least, 1.0])
        after = np.array([-1.0, (least - 1.0) / (least + 1)])
        found.append(
            near(
                f"move of the means at least class {least}",
                f"{2 / (least - 1):.4f}",
                float(np.linalg.norm(after - before)),
                value,
                1e-3,
            )
        )
    return found


def line() -> list[Finding]:
    """E3, E4: how far a line moves, in units of R_x^2 R_th / lambda."""
    t = np.linspace(0, np.pi / 2, 200_001)
    return [
        near(
            "largest 2 cos t (sin t + 1), the tight constant",
            "4",
            float((2 * np.cos(t) * (np.sin(t) + 1)).max()),
            3 * sqrt(3) / 2,
            1e-6,
        ),
        near("kappa(1) of the library", "4", kappa(1.0), 2.598, 1e-3),
        near("kappa(2)", "-", kappa(2.0), 4.4037, 1e-4),
    ]


def wine_code() -> list[Finding]:
    """E10: the worst delta of the authors' code for wine, whose noise lacks the factor 2 of Algorithm 2, at a claim of .01."""
    found = []
    for epsilon, value in ((4.0, 0.0172), (8.0, 0.106)):
        mu = epsilon / classical_multiplier(0.01)
        delta = worst_delta(
            partial(logistic_probability, epsilon=epsilon, delta=0.01),
            mu, epsilon, largest=4 / epsilon * log(100) + 6, step=0.1, far=True,
        )  # fmt: skip
        found.append(near(f"exact delta at epsilon = {epsilon:g}", "0.01", delta, value, 0.02))
    return found


CHECKS: dict[str, Check] = {
    "eptr-e1": release,
    "eptr-e2": distance,
    "eptr-e4": line,
    "eptr-e5": class_means,
    "eptr-e10": wine_code,
}
