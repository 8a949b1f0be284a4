"""The numbers in docs/errata.md on Lin, Slavkovic, Bhoomireddy 2025 that `confide_lab/benchmarks/binagg.py` does not print."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from scipy import optimize, stats

import confide as cf
from confide_lab.aggregates.trees import path_cost
from confide_lab.benchmarks.acceptance import _row
from confide_lab.published.binagg import bin_sums, line, privtree, shares, spent, synthetic_rows

UNIT = np.array([[0.0, 1.0]])


def _delta(epsilon: float, mu: float) -> float:
    return float(stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2))


def privacy() -> list[dict[str, Any]]:
    """E1: what the literal noise spends, in delta at the epsilon that mu = 1 has at delta = 1000^-1.1; E7, E8, E9, E10."""
    claimed = optimize.brentq(lambda e: _delta(e, 1.0) - 1000**-1.1, 0.0, 50.0)
    rows = []
    for d, delta in ((5, 0.030), (10, 0.135), (81, 0.956)):
        mu = spent(d, shares(1.0))
        true = _delta(claimed, mu)
        rows.append(_row(f"E1 true delta at the claimed epsilon, d={d}", true, delta - 0.002, delta + 0.002, mu=mu))
    alpha = np.linspace(1e-9, 1 - 1e-9, 200_001)
    for epsilon in (0.1, 1.0, 3.0):
        mu = cf.PureDP(epsilon).to_gdp().mu
        pure = np.maximum(0, np.maximum(1 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1 - alpha)))
        least = float((pure - stats.norm.cdf(stats.norm.ppf(1 - alpha) - mu)).min())
        rows.append(
            _row(f"E7 least of f - G_mu, epsilon={epsilon}", least, -1e-9, 1e-6, mu=mu, bound=sqrt(np.pi / 2) * epsilon)
        )
    for scale in (1.0, 20.0, 50.0, 400.0):
        rows.append(_row(f"E8 dearest path times the scale, scale {scale:g}", path_cost(scale), 2.0, 2.607))
    g = np.random.default_rng(1)
    cells = privtree(
        g.integers(0, 9, (2000, 3)).astype(float), g, bounds=8 * np.repeat(UNIT, 3, 0), epsilon=1.0, closed=True
    )
    times = np.bincount(np.concatenate(cells["members"]), minlength=2000)
    rows.append(_row("E9 most closed cells that count one record, integers from 0 to 8", float(times.max()), 2, 64))
    totals = []
    for n in (500, 501):
        x = np.full((n, 2), 0.3)
        made = bin_sums(
            x, x[:, 0], np.random.default_rng(6), x_bounds=np.repeat(UNIT, 2, 0), y_bounds=(0, 1), exact_n=True
        )
        totals.append(float(made["counts"].sum()))
    rows.append(_row("E10 rescaled totals of neighbours differ by", totals[1] - totals[0], 1.0 - 1e-9, 1.0 + 1e-9))
    return rows


def estimation() -> list[dict[str, Any]]:
    """E6: least squares on clipped responses; E11: on synthetic rows; E12: indefinite equations."""
    errors = []
    g = np.random.default_rng(6)
    x = g.uniform(size=(200_000, 1))
    for _ in range(10):
        beta = g.uniform(1, 2)
        y = np.clip(x[:, 0] * beta + g.standard_normal(len(x)), 0, 2)
        errors.append(abs(np.linalg.lstsq(x, y, rcond=None)[0][0] - beta) / beta)
    rows = [_row("E6 error of OLS on y clipped to (0, 2), n = 200,000", float(np.mean(errors)), 0.05, 0.09)]
    found = []
    for k in range(60):
        g = np.random.default_rng((11, k))
        x, beta = g.uniform(size=(2000, 3)), g.uniform(1, 2, 3)
        y = x @ beta + g.standard_normal(2000)
        made = synthetic_rows(x, y, g, x_bounds=np.repeat(UNIT, 3, 0), y_bounds=(-3, 9), noise="corrected")
        plain = np.linalg.lstsq(made["x"], made["y"], rcond=None)[0]
        whole = np.linalg.lstsq(np.column_stack([np.ones(len(made["x"])), made["x"]]), made["y"], rcond=None)[0][1:]
        lines = (line(made["released"], estimator="corrected")["beta"], plain, whole)
        outside = float(((made["x"] < 0) | (made["x"] > 1)).mean())
        spread = float((made["y"] - made["x"] @ plain).std())
        found.append([*(float(np.linalg.norm(b - beta) / np.linalg.norm(beta)) for b in lines), spread, outside])
    names = (
        "BinAgg on the release",
        "OLS on the rows",
        "OLS with an intercept",
        "residual sd of the rows",
        "share outside",
    )
    rows += [
        _row(f"E11 {name}", value, 0.0, 10.0)
        for name, value in zip(names, np.median(found, axis=0).tolist(), strict=True)
    ]
    bad = []
    for k in range(60):
        g = np.random.default_rng((12, k))
        x = g.uniform(size=(500, 10))
        y = x @ g.uniform(1, 2, 10) + g.standard_normal(500)
        made = bin_sums(x, y, g, x_bounds=np.repeat(UNIT, 10, 0), y_bounds=(0, 15), noise="corrected")
        weights = 1 / made["counts"]
        matrix = (made["sums"] * weights[:, None]).T @ made["sums"] - np.diag(weights @ made["sd_sums"] ** 2)
        bad.append(np.linalg.eigvalsh(matrix)[0] <= 0)
    rows.append(_row("E12 share of indefinite equations, d=10 n=500, corrected noise", float(np.mean(bad)), 0.5, 1.0))
    return rows


def run() -> list[dict[str, Any]]:
    return [*privacy(), *estimation()]
