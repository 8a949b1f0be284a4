"""Redberg, Zhu, Wang 2023: the numbers of evidence/errata.md on theorems about tests, generalized linear models, votes and components."""

from __future__ import annotations

from math import exp, log, log1p, sqrt

import numpy as np
from scipy import special, stats

from confide.guarantees import gaussian_delta, gaussian_mu
from confide.guarantees.mechanisms.objective_perturbation import general_sd, logistic_sd
from confide.methods.voting.rules import vote_loss
from confide.ptr import generalized_guarantee
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.components import projector_move
from confide_lab.published.generalized_ptr_glm import logistic_minimiser
from confide_lab.published.generalized_ptr_ops import algorithm_7, algorithm_8, precision_51
from confide_lab.published.pate import gnmax_exact, lemma_cost, printed_cost, printed_smooth_cost, smooth_cost

__all__ = ["CHECKS"]


def signs() -> list[Finding]:
    """E2: share of 400 runs of Algorithm 7 at (1, 1e-6) whose eigenvalue is a valid lower bound, with the signs as printed and reversed."""
    x, y = np.full((500, 1), 0.7), np.full(500, 0.5)
    true, shares = float((x * x).sum()), []
    for algorithm in (algorithm_7, algorithm_8):
        g = np.random.default_rng(2)
        runs = [algorithm(x, y, g, epsilon=1.0, delta=1e-6, lam=1.0)["eigenvalue"] <= true for _ in range(400)]
        shares.append(float(np.mean(runs)))
    return [
        Finding("valid with the signs of Algorithm 7", "1 - 1e-06", shares[0], 0.0, 0.0),
        Finding("with those of Algorithm 8", "1 - 1e-06", shares[1], 1.0, 1.0),
    ]


def deltas() -> list[Finding]:
    """Theorem 4.3: 2,000 random pairs of a test and a mechanism with three outcomes; the largest exact delta over two claims."""
    g, claims = np.random.default_rng(1), []
    for _ in range(2_000):
        e_test, e, delta, false_pass = g.uniform(0.1, 2), g.uniform(0.1, 2), 0.05, 0.05
        m, other = g.dirichlet([0.5] * 3, 2)
        passes = g.random() * (1.0 if np.maximum(m - exp(e) * other, 0).sum() <= delta else false_pass)
        low = max(passes * exp(-e_test), 1 - exp(e_test) * (1 - passes), 0.0)
        high = min(passes * exp(e_test), 1 - exp(-e_test) * (1 - passes), 1.0)
        there = g.uniform(low, high)
        exact = max(1 - passes - exp(e + e_test) * (1 - there), 0.0)
        exact += float(np.maximum(passes * m - exp(e + e_test) * there * other, 0).sum())
        claim = generalized_guarantee(epsilon=e, delta=delta, test_epsilon=e_test, false_pass=false_pass)
        claims.append((exact / claim.delta, exact / (delta + false_pass)))
    ours, theirs = np.max(claims, axis=0)
    return [
        Finding("largest exact delta over max(delta, d_false)", "-", float(ours), 0.75, 1.0),
        Finding("over the printed delta + d_false", "at most 1", float(theirs), 0.375, 0.5),
    ]


def uniform_bound() -> list[Finding]:
    """Theorem B.4: losses .5 and .6 of two neighbours, a bound with Laplace noise of scale .1 that is valid with .95 under the first."""
    margin = 0.1 * log(1 / (2 * 0.05))
    return [
        near("chance that it misses the own loss", "0.05", stats.laplace.cdf(-margin / 0.1), 0.05, 1e-6),
        near("that it misses the neighbour's", "0.05", stats.laplace.cdf((0.1 - margin) / 0.1), 0.136, 2e-3),
    ]


def substitution() -> list[Finding]:
    """E4: gamma of Theorem 5.1 at (1, 1e-6), eigenvalue 10^4, L = 2, when a record with residual 2 is replaced by one with -2."""
    gamma, lev = precision_51(1.0, 1e-6, 1e4, 2.0), 1e-4
    return [near("delta under substitution", "1e-06", gaussian_delta(1.0, 4 * sqrt(gamma * lev)), 7.5e-3, 0.01)]


def factors() -> list[Finding]:
    """E8: what multiplies (1 + log(2/delta))/alpha for the logistic loss, R = L = 1, beta = 1/4."""
    return [near("R L + 4 beta, of E.1", "R (L + beta) = 1.25", 1 + 4 * 0.25, 2.0, 1e-9)]


def determinant() -> list[Finding]:
    """E9: how far one record moves the minimiser and log det H, 60 features of rare events, n = 6,000."""
    g = np.random.default_rng(7)
    n, d, ridge = 6_000, 60, 0.05
    x = g.standard_normal((n, d))
    x[:, 0] = 6.0
    x /= np.linalg.norm(x, axis=1)[:, None]
    y = np.where(g.random(n) < 0.05, 1.0, -1.0)
    more = np.vstack([x, np.eye(d)[:1]]), np.append(y, 1.0)
    one, other = logistic_minimiser(x, y, ridge), logistic_minimiser(*more, ridge)
    sizes = []
    for theta in (one, other):
        share = special.expit(x @ theta)
        sizes.append(np.linalg.slogdet((x.T * (share * (1 - share))) @ x + ridge * np.eye(d))[1])
    step = float(np.linalg.norm(one - other))
    return [
        Finding("move of log det H over R times the step", "at most 1", abs(sizes[0] - sizes[1]) / step, 11.1, 11.5)
    ]


def eigenvalue() -> list[Finding]:
    """E10: the largest move of the least eigenvalue over 300 random sets of three features at lam = 2, where 2.25 is allowed."""
    g, most = np.random.default_rng(10), 0.0
    for _ in range(300):
        n, d = int(g.integers(1, 30)), 3
        x = g.standard_normal((n + 1, d))
        x /= np.linalg.norm(x, axis=1)[:, None]
        y = g.choice([-1.0, 1.0], n + 1)
        found = []
        for rows in (slice(0, n), slice(0, n + 1)):
            share = special.expit(x[rows] @ logistic_minimiser(x[rows], y[rows], 2.0))
            found.append(np.linalg.eigvalsh((x[rows].T * (share * (1 - share))) @ x[rows])[0])
        most = max(most, abs(float(found[1] - found[0])))
    return [Finding("largest move at lam = 2 R L", "2.25", most, 0.249, 0.254)]


def certificate() -> list[Finding]:
    """E11: Example C.8 at (1, 1e-6): delta of the eigenvalue's noise, and by how many of its sds the bound is shifted."""
    e, delta = 0.5, 1e-6
    return [
        near("delta of the noise at epsilon/2", "5e-07", gaussian_delta(e, e / sqrt(log(4 / delta))), 1.83e-6, 0.01),
        near("sds of the shift as printed", "-", sqrt(2) * log(1 / delta), 19.54, 1e-3),
        near("with the root", "-", sqrt(2 * log(1 / delta)), 5.257, 1e-3),
        near("of a normal quantile at delta/2", "-", -float(special.ndtri(delta / 2)), 4.892, 1e-3),
    ]


def objective() -> list[Finding]:
    """Redberg, Koskela, Wang 2023: the constant c, and noise over that of one Gaussian mechanism at (1, 1e-6)."""
    floor = 1 / gaussian_mu(1.0, 1e-6)
    return [
        near("log(1 + beta/lam) at lam = .5", "-log(1 - beta/lam) = 0.693", log1p(0.5), 0.405, 2e-3),
        near(
            "sd of the logistic curve at lam = 1, over one Gaussian",
            "-",
            logistic_sd(1.0, 1e-6, 1.0) / floor,
            1.0,
            2e-3,
        ),
        near("sd of the general form at lam = 2", "-", general_sd(1.0, 1e-6, 2.0) / floor, 1.16, 0.01),
    ]


def labels() -> list[Finding]:
    """E11 of votes: Theorem 5.4's loss of a label and the exact one."""
    return [
        near(
            f"sigma = {sigma:g}, gap {gap:g}, order {order:g}",
            f"{printed_cost(order, sigma):.2g}",
            gnmax_exact(gap, order, sigma),
            value,
            2e-3,
        )
        for sigma, gap, order, value in ((5.0, 40.0, 50.0, 1.305), (5.0, 40.0, 20.0, 0.703), (2.0, 16.0, 10.0, 2.286))
    ]


def smooth() -> list[Finding]:
    """E3, E4 of votes: releasing a number with noise of its smooth sensitivity, sigma = 15."""
    found = [
        near(
            f"order {order:g}, beta {beta:g}",
            f"{printed_smooth_cost(order, beta, 15.0):.4f}",
            smooth_cost(order, beta, 15.0),
            value,
            1e-3,
        )
        for order, beta, value in ((49.0, 0.01, 3.616), (50.0, 0.0099, 5.549))
    ]
    return [
        *found,
        near("Lemma 5.5, order 2", f"{lemma_cost(2.0, 15.0):.4f}", smooth_cost(2.0, 0.1, 15.0), 0.0308, 2e-3),
    ]


def majority() -> list[Finding]:
    """E14: the loss of a noisy majority between two at epsilon = 10: it rises with the gap."""
    return [
        near(f"gap {gap}", "falls", vote_loss(gap, 10.0, 0.0), value, 2e-4)
        for gap, value in ((0, 8.208), (1, 9.394), (10, 9.907), (100, 9.990))
    ]


def projector() -> list[Finding]:
    """E18: how far one record moves the projector; sqrt(2)/(gap - 2) is printed."""
    return [
        near(f"gap {gap:g}, {relation}", f"{sqrt(2) / (gap - 2):.3g}", projector_move(gap, relation), value, 2e-3)
        for gap, relation, value in (
            (3.0, "add-remove", 0.287),
            (20.0, "add-remove", 0.0363),
            (3.0, "substitute", 0.777),
        )
    ]


CHECKS: dict[str, Check] = {
    "gptr-e2": signs,
    "gptr-4.3": deltas,
    "gptr-b4": uniform_bound,
    "gptr-e4": substitution,
    "gptr-e8": factors,
    "gptr-e9": determinant,
    "gptr-e10": eigenvalue,
    "gptr-e11": certificate,
    "objective": objective,
    "gptr-votes": labels,
    "gptr-smooth": smooth,
    "gptr-majority": majority,
    "gptr-projector": projector,
}
