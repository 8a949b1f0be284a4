"""Three lines of one publication: each by itself at a third of mu^2, or all from one Gram matrix: `confide lab bench pooled_lines`.

Three responses on the same four terms, and three nested models of one response; normal records within five sds, linear means. Mean width of
95 % intervals of slopes over that of HC1 without privacy on the same samples, and the share of them that cover the line's slope: the
default (`LeastSquares`) and SSP at a third each, and SSP of all at once, of which the three are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.noise import SimulatedNoise

__all__ = ["run"]

REPLICATIONS = 20
CELLS = ((2_000, 1.0), (10_000, 0.3), (10_000, 1.0), (50_000, 1.0))
TERMS = ("x0", "x1", "x2", "x3")
#: Slopes of each response.
SLOPES = {"y0": (0.1, 0.15, 0.2, 0.3), "y1": (0.3, 0.0, -0.2, 0.0), "y2": (0.0, 0.1, 0.0, 0.0)}
NESTED = (("x0",), ("x0", "x1"), TERMS)
_SD, _SHARED, _ERROR = 0.2, 0.5, 0.2
SCHEMA = cf.Schema({name: cf.Numeric(-1, 1) for name in (*TERMS, *SLOPES)})


def frame(n: int, generator: np.random.Generator) -> pd.DataFrame:
    """Records: the second term holds half of the first."""
    x = _SD * generator.standard_normal((n, 4))
    x[:, 1] += _SHARED * x[:, 0]
    columns = dict(zip(TERMS, x.T, strict=True))
    for name, slopes in SLOPES.items():
        columns[name] = x @ np.array(slopes) + _ERROR * generator.standard_normal(n)
    return pd.DataFrame(columns)


def line(response: str, terms: tuple[str, ...]) -> dict[str, float]:
    """The slopes of the population's line on some of the terms: what is left out leaks through the first two."""
    covariance = _SD**2 * np.eye(4)
    covariance[0, 1] = covariance[1, 0] = _SHARED * _SD**2
    covariance[1, 1] += (_SHARED * _SD) ** 2
    at = [TERMS.index(term) for term in terms]
    slopes = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at] @ np.array(SLOPES[response]))
    return dict(zip(terms, map(float, slopes), strict=True))


def _plain(own: pd.DataFrame, response: str, terms: tuple[str, ...]) -> dict[str, float]:
    """Widths of HC1 without privacy."""
    x = np.column_stack([np.ones(len(own)), own[list(terms)]])
    inverse = np.linalg.inv(x.T @ x)
    residual = own[response].to_numpy() - x @ (inverse @ (x.T @ own[response].to_numpy()))
    meat = (x * residual[:, None] ** 2).T @ x
    errors = np.sqrt(np.diag(inverse @ meat @ inverse) * len(own) / (len(own) - len(terms) - 1))
    return dict(zip(terms, 2 * 1.96 * errors[1:], strict=True))


def _answers(kind: str, mu: float, data: Any, seed: int) -> Iterator[tuple[str, str, tuple[str, ...], Any]]:
    """(way, response, terms, table) of the three lines."""
    asked = [(name, TERMS) for name in SLOPES] if kind == "responses" else [("y0", terms) for terms in NESTED]
    for method in (cf.regression.LeastSquares, cf.regression.SSP):
        for response, terms in asked:
            own: Any = method(f"{response} ~ {' + '.join(terms)}")
            release = cf.release(own, data, cf.GDP(mu / 3**0.5), ledger=None, noise=SimulatedNoise(seed))
            yield f"{own.name} apart", response, terms, cf.infer(release)
    left = " + ".join(SLOPES) if kind == "responses" else "y0"
    joint = cf.regression.SSP(f"{left} ~ {' + '.join(TERMS)}")
    release = cf.release(joint, data, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))
    if kind == "responses":
        whole: Any = cf.infer(release)
        yield from (("ssp together", response, terms, whole[response]) for response, terms in asked)
    else:
        for response, terms in asked:
            yield "ssp together", response, terms, cf.infer(release, subset=terms)


def run() -> list[dict[str, Any]]:
    """Widths over those without privacy, and coverage, by way."""
    rows: list[Mapping[str, Any]] = []
    for n, mu in CELLS:
        for seed in range(REPLICATIONS):
            own = frame(n, np.random.default_rng([seed, n]))
            data = cf.read(own, SCHEMA)
            for kind in ("responses", "nested"):
                for way, response, terms, table in _answers(kind, mu, data, seed):
                    if table.status != "valid":
                        continue
                    truth, plain, ends = line(response, terms), _plain(own, response, terms), table.conf_int()
                    for term in terms:
                        low, high = ends.loc[term]
                        inside, width = low <= truth[term] <= high, (high - low) / plain[term]
                        rows.append({"kind": kind, "n": n, "mu": mu, "way": way, "covered": inside, "width": width})
    found = pd.DataFrame(rows).groupby(["kind", "n", "mu", "way"], sort=False).agg(["mean", "count"])
    print("| lines | n | mu | way | width over plain | covered | slopes |\n| --- | --- | --- | --- | --- | --- | --- |")
    told = []
    for (kind, n, mu, way), row in found.iterrows():  # type: ignore[misc]
        width, covered, count = row[("width", "mean")], row[("covered", "mean")], int(row[("width", "count")])
        print(f"| {kind} | {n:,} | {mu:g} | {way} | {width:.2f} | {covered:.3f} | {count} |")
        check = f"{kind}, n = {n}, mu = {mu:g}: {way}"
        told.append({"check": check, "value": float(width), "covered": float(covered), "answers": count})
    return told
