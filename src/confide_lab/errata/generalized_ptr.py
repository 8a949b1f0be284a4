"""Redberg, Zhu, Wang 2023: the numbers of evidence/errata.md on generalized propose-test-release, selection and posterior sampling."""

from __future__ import annotations

from math import log, log1p, sqrt

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from confide.guarantees import gaussian_epsilon, gaussian_mu
from confide_lab.aggregates.posterior_pair import largest_precision, posterior_delta
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.adassp import spent
from confide_lab.published.generalized_ptr import printed_rdp
from confide_lab.published.generalized_ptr_ops import precision_51, release_delta
from confide_lab.published.selection import chance_best_is_drawn, run_budget, theorem_46

__all__ = ["CHECKS"]

_TAU = 0.05 / 30


def threshold() -> list[Finding]:
    """Theorem 3.4: what the test passes where it must not, over delta: P(Laplace(1/epsilon) > log(1/delta)/epsilon)."""
    return [near("chance of a false pass over delta", "1", stats.laplace.sf(log(1e6)) / 1e-6, 0.5, 1e-9)]


def posterior() -> list[Finding]:
    """E3: gamma of Theorem 5.1 at delta = 1e-6, B = 1, L = 2, and the delta that it really has."""
    found = []
    for epsilon, least, numbers, delta in (
        (1.0, 1000.0, (15.90, 8.087, 13.77), 3.9e-6),
        (2.0, 100.0, (5.649, 2.776, 4.562), 7.6e-6),
    ):
        printed, right = (precision_51(epsilon, 1e-6, least, 2.0, corrected=c) for c in (False, True))
        best, lev = largest_precision(epsilon, 1e-6, 1 / least, 2.0), 1 / least
        real = float(posterior_delta(epsilon, sqrt(printed * lev / (1 + lev)) * 2, lev))
        place = f"epsilon = {epsilon:g}, eigenvalue {least:g}"
        found += [
            near(f"printed gamma, {place}", "-", printed, numbers[0], 5e-3),
            near("with the right quantile", "-", right, numbers[1], 5e-3),
            near("exact", "-", best, numbers[2], 5e-3),
            near("delta of the printed gamma", "1e-06", real, delta, 0.02),
        ]
    return found


def lipschitz() -> list[Finding]:
    """E5: records (1, 1), (1, -1) at lam = 1: how far removing the second moves the log of the Lipschitz constant."""
    before, after = log1p(0.0), log1p(abs(1.0) / (1.0 + 1.0))
    return [near("move of the log", f"at most {log(1 + 1 / (1 + 2)):.3f}", abs(before - after), 0.405, 2e-3)]


def releases() -> list[Finding]:
    """E6: delta of one release of sd sqrt(log(6/delta))/e at delta = 1e-6; AdaSSP's epsilon over all three."""
    pairs = ((0.25, 6.4e-7), (1 / 3, 8.8e-7), (1.0, 3.7e-6), (4 / 3, 5.8e-6))
    found = [near(f"delta at e = {e:.3g}", "3.3e-07", release_delta(e, 1e-6), value, 0.015) for e, value in pairs]
    for e, value in ((0.1, 0.0507), (1.0, 0.596), (4.0, 2.68)):
        found.append(
            near(f"AdaSSP's epsilon where {e:g} is claimed", f"{e:g}", gaussian_epsilon(1e-6, spent(e, 1e-6)), value)
        )
    return found


def selection() -> list[Finding]:
    """E7: what Theorem 4.6 leaves each of random runs at (1, 1e-6) with 30 candidates, and that it gives back (1, 1e-6)."""
    each, small = run_budget(1.0, 1e-6, _TAU)
    total = theorem_46(each, small, _TAU, 0.5e-6)
    return [
        near("e* of a run", "-", each, 1 / 3, 1e-6),
        near("d* of a run", "-", small, 1.44e-17, 0.01),
        near("mu of a run", "-", gaussian_mu(each, small), 0.0425, 2e-3),
        near(
            "mu of a run with T outside the root",
            "-",
            gaussian_mu(*run_budget(1.0, 1e-6, _TAU, outside=True)),
            0.0375,
            2e-3,
        ),
        near("mu of each when all 30 run and compose", "-", gaussian_mu(1.0, 1e-6) / sqrt(30), 0.0432, 2e-3),
        near("Theorem 4.6 of (e*, d*): epsilon", "1", total[0], 1.0, 1e-12),
        near("and delta", "1e-06", total[1], 1e-6, 1e-12),
    ]


def best_drawn() -> list[Finding]:
    """E12: the chance that the best of 30 candidates is among the runs, for tau = .05/k and for three runs a candidate."""
    return [
        near("tau = .05/k", "1 - E[1/(runs + 1)]", chance_best_is_drawn(30, _TAU), 0.954, 1e-3),
        near("tau = 1/(3 k)", "-", chance_best_is_drawn(30, 1 / 90), 0.756, 1e-2),
    ]


def renyi() -> list[Finding]:
    """E13: the formula of Theorem B.5 against the exact divergence of a test and a mechanism."""
    t = 1e-3
    other = brentq(lambda q: _divergence(2.0, t, q, 0.0) - 0.5, 1e-6, 1e-3)
    claimed = printed_rdp(2.0, conditional=0.1, overall=5.0, test=0.5, false_pass=t)
    first = near("order 2, exact", f"{claimed:.4f}", _divergence(2.0, t, other, 5.0), 4.5806, 1e-4)
    t, other = float(stats.norm.sf(3.0)), float(stats.norm.sf(3.5))
    claimed = printed_rdp(8.0, conditional=0.01, overall=4.0, test=8 * 0.125, false_pass=t)
    return [
        first,
        near(
            "Gaussian test and mechanism, order 8, exact",
            f"{claimed:.3f}",
            _divergence(8.0, t, other, 4.0),
            4.814,
            1e-3,
        ),
    ]


def _divergence(order: float, t: float, other: float, overall: float) -> float:
    spoken = order * log(t) + (1 - order) * log(other) + (order - 1) * overall
    silent = order * np.log1p(-t) + (1 - order) * np.log1p(-other)
    return float(np.logaddexp(silent, spoken)) / (order - 1)


CHECKS: dict[str, Check] = {
    "gptr-3.4": threshold,
    "gptr-e3": posterior,
    "gptr-e5": lipschitz,
    "gptr-e6": releases,
    "gptr-e7": selection,
    "gptr-e12": best_drawn,
    "gptr-e13": renyi,
}
