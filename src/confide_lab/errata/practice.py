"""Usual practice and rivals' code: numbers of evidence/errata.md that belong to none of the five papers."""

from __future__ import annotations

from math import log, sqrt

from confide.guarantees import gaussian_epsilon, gaussian_mu
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.generalized_ptr_ops import release_delta

__all__ = ["CHECKS"]


def classical_gaussian() -> list[Finding]:
    """Noise of sd sqrt(2 log(1.25/delta))/epsilon beyond epsilon = 1: the epsilon that it really has at delta = 1e-3."""
    sd = sqrt(2 * log(1.25 / 1e-3)) / 8
    return [near("epsilon where 8 is claimed", "8", gaussian_epsilon(1e-3, 1 / sd), 8.18, 2e-3)]


def adassp() -> list[Finding]:
    """AdaSSP's constants at (1, 1e-6): delta of a part, mu of the three, and the mu that the request allows."""
    return [
        near("delta of one part at epsilon/3", "3.3e-07", release_delta(1 / 3, 1e-6), 8.8e-7, 0.015),
        near("mu of the three together", "-", 1 / sqrt(3 * log(6 / 1e-6)), 0.146, 5e-3),
        near("mu that (1, 1e-6) allows", "-", gaussian_mu(1.0, 1e-6), 0.237, 5e-3),
    ]


def boosted_adassp() -> list[Finding]:
    """The authors' Boosted AdaSSP at (1, 1e-6), T = 100: a multiplier mu in the place of 1/mu, in full for each of 2 + T releases."""
    mu = gaussian_mu(1.0, 1e-6)
    return [near("mu that is spent", f"{mu:.3f}", sqrt(2 + 100) / mu, 42.7, 3e-3)]


CHECKS: dict[str, Check] = {"gaussian": classical_gaussian, "adassp": adassp, "boosted-adassp": boosted_adassp}
