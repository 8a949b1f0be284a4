"""Lin, Slavkovic, Bhoomireddy 2025: the numbers of evidence/errata.md on private bins."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from scipy import optimize, stats

import confide as cf
from confide.guarantees import gaussian_delta
from confide_lab.aggregates.trees import path_cost
from confide_lab.errata.register import Check, Finding, near
from confide_lab.published.binagg import bin_sums, binagg, line, privtree, shares, spent, synthetic_rows

__all__ = ["CHECKS", "closed_cells", "indefinite", "rows_of_bins"]

_UNIT = np.array([[0.0, 1.0]])


def guarantee() -> list[Finding]:
    """E1: what the printed noise spends at mu = 1, and its delta at the claimed epsilon of n = 1,000."""
    claimed = optimize.brentq(lambda e: gaussian_delta(e, 1.0) - 1000**-1.1, 0.0, 50.0)
    found = [
        near(f"mu of d = {d}", "1", spent(d, shares(1.0)), mu, 1e-3)
        for d, mu in ((2, 1.150), (5, 1.512), (10, 1.973), (81, 5.169))
    ]
    for d, delta in ((5, 0.030), (10, 0.135), (81, 0.956)):
        found.append(
            near(
                f"delta at the claimed epsilon, d = {d}",
                "5.0e-04",
                gaussian_delta(claimed, spent(d, shares(1.0))),
                delta,
                0.02,
            )
        )
    return found


def attenuation() -> list[Finding]:
    """E2: 50,000 bins of 20 records, slopes (1, 2): where the printed and the whole correction end."""
    g = np.random.default_rng(22)
    bins, count = 50_000, 20
    sums = count * g.uniform(size=(bins, 2))
    sd = np.full((bins, 2), 3.0)
    labels = sums @ [1.0, 2.0] + sqrt(count) * g.standard_normal(bins)
    released = {
        "sums": sums + sd * g.standard_normal(sums.shape),
        "labels": labels,
        "counts": np.full(bins, float(count)),
        "sd_sums": sd,
    }
    printed, whole = (line(released, estimator=name)["beta"] for name in ("paper", "corrected"))
    off = float(np.abs(printed - [1.0, 2.0]).max())
    return [
        near("printed correction: largest error of a slope", "0", off, 0.165, 0.06),
        Finding("whole correction: largest error of a slope", "0", float(np.abs(whole - [1.0, 2.0]).max()), 0.0, 0.01),
    ]


def standard_error() -> list[Finding]:
    """E3: share of slopes in 95 % intervals with the variance in the place of the standard error; 40 runs of Table 1's design."""
    inside = []
    for k in range(40):
        g = np.random.default_rng((33, k))
        x, beta = g.random((1000, 5)), g.uniform(1, 2, 5)
        y = x @ beta + g.standard_normal(1000)
        found = binagg(
            x, y, g, x_bounds=np.repeat(_UNIT, 5, 0), y_bounds=(0.0, 7.0), ratio=(1.0, *3 * (9 / sqrt(3),)), root=False
        )
        low, high = found["interval"].T
        inside.append(np.mean((low <= beta) & (beta <= high)))
    return [Finding("coverage of what is printed", "0.95", float(np.mean(inside)), 0.35, 0.62)]


def clipped_response() -> list[Finding]:
    """E6: least squares on y clipped to (0, 2) without any noise, d = 1, n = 200,000."""
    errors = []
    g = np.random.default_rng(6)
    x = g.uniform(size=(200_000, 1))
    for _ in range(10):
        beta = g.uniform(1, 2)
        y = np.clip(x[:, 0] * beta + g.standard_normal(len(x)), 0, 2)
        errors.append(abs(np.linalg.lstsq(x, y, rcond=None)[0][0] - beta) / beta)
    return [near("relative error", "0", float(np.mean(errors)), 0.056, 0.15)]


def conversion() -> list[Finding]:
    """E7: the least of f - G_mu for pure epsilon: 0 at best."""
    alpha = np.linspace(1e-9, 1 - 1e-9, 200_001)
    found = []
    for epsilon in (0.1, 1.0, 3.0):
        mu = cf.PureDP(epsilon).to_gdp().mu
        pure = np.maximum(0, np.maximum(1 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1 - alpha)))
        least = float((pure - stats.norm.cdf(stats.norm.ppf(1 - alpha) - mu)).min())
        found.append(
            Finding(
                f"least of f - G_mu, epsilon = {epsilon:g}, mu = {mu:.4f}, bound {sqrt(pi / 2) * epsilon:.4f}",
                "0",
                least,
                -1e-9,
                1e-6,
            )
        )
    return found


def path() -> list[Finding]:
    """E8: what the dearest path of PrivTree costs, over the scale; 3 is charged."""
    return [
        near(f"scale {scale:g}", "3", path_cost(scale), value, 1e-3)
        for scale, value in ((1.0, 2.083), (20.0, 2.541), (50.0, 2.580), (400.0, 2.603))
    ]


def closed_cells() -> list[Finding]:
    """E9: how many closed cells count one record, integers from 0 to 8 in three dimensions: 2^3 at a corner of cuts."""
    g = np.random.default_rng(1)
    cells = privtree(
        g.integers(0, 9, (2000, 3)).astype(float), g, bounds=8 * np.repeat(_UNIT, 3, 0), epsilon=1.0, closed=True
    )
    times = np.bincount(np.concatenate(cells["members"]), minlength=2000)
    return [Finding("most cells that count one record", "1", float(times.max()), 8, 8)]


def rescaled() -> list[Finding]:
    """E10: by how much rescaled totals of 500 and 501 records differ."""
    totals = []
    for n in (500, 501):
        x = np.full((n, 2), 0.3)
        made = bin_sums(
            x, x[:, 0], np.random.default_rng(6), x_bounds=np.repeat(_UNIT, 2, 0), y_bounds=(0, 1), exact_n=True
        )
        totals.append(float(made["counts"].sum()))
    return [near("difference of the totals", "noise", totals[1] - totals[0], 1.0, 1e-9)]


def rows_of_bins(runs: int = 60) -> list[Finding]:
    """E11: median errors on the release and on its synthetic rows, d = 3, n = 2,000, corrected noise."""
    found = []
    for k in range(runs):
        g = np.random.default_rng((11, k))
        x, beta = g.uniform(size=(2000, 3)), g.uniform(1, 2, 3)
        y = x @ beta + g.standard_normal(2000)
        made = synthetic_rows(x, y, g, x_bounds=np.repeat(_UNIT, 3, 0), y_bounds=(-3, 9), noise="corrected")
        plain = np.linalg.lstsq(made["x"], made["y"], rcond=None)[0]
        whole = np.linalg.lstsq(np.column_stack([np.ones(len(made["x"])), made["x"]]), made["y"], rcond=None)[0][1:]
        lines = (line(made["released"], estimator="corrected")["beta"], plain, whole)
        outside = float(((made["x"] < 0) | (made["x"] > 1)).mean())
        spread = float((made["y"] - made["x"] @ plain).std())
        found.append([*(float(np.linalg.norm(b - beta) / np.linalg.norm(beta)) for b in lines), spread, outside])
    names = (
        "error on the release",
        "error of OLS on the rows",
        "with an intercept",
        "residual sd of the rows, 1 in the records",
        "share outside",
    )
    values, shares_ = (0.125, 0.177, 0.61, 2.7, 0.21), (0.06, 0.06, 0.06, 0.06, 0.06)
    return [
        near(n, "-", f, v, s)
        for n, f, v, s in zip(names, np.median(found, axis=0).tolist(), values, shares_, strict=True)
    ]


def indefinite(runs: int = 60) -> list[Finding]:
    """E12: share of indefinite equations, d = 10, n = 500, corrected noise."""
    bad = []
    for k in range(runs):
        g = np.random.default_rng((12, k))
        x = g.uniform(size=(500, 10))
        y = x @ g.uniform(1, 2, 10) + g.standard_normal(500)
        made = bin_sums(x, y, g, x_bounds=np.repeat(_UNIT, 10, 0), y_bounds=(0, 15), noise="corrected")
        weights = 1 / made["counts"]
        matrix = (made["sums"] * weights[:, None]).T @ made["sums"] - np.diag(weights @ made["sd_sums"] ** 2)
        bad.append(np.linalg.eigvalsh(matrix)[0] <= 0)
    return [Finding("share of indefinite equations", "0", float(np.mean(bad)), 1.0, 1.0)]


CHECKS: dict[str, Check] = {
    "binagg-e1": guarantee,
    "binagg-e2": attenuation,
    "binagg-e3": standard_error,
    "binagg-e6": clipped_response,
    "binagg-e7": conversion,
    "binagg-e8": path,
    "binagg-e9": closed_cells,
    "binagg-e10": rescaled,
    "binagg-e11": rows_of_bins,
    "binagg-e12": indefinite,
}
