"""Logistic regression by Fisher scoring: coverage of the population's plain maximum-likelihood coefficients, widths and answers.

`confide lab bench log_odds` runs it; CONFIDE_LOG_ODDS_REPS (default 40) sets the samples of each cell, CONFIDE_LOG_ODDS the designs,
by name, comma-separated (default: all). A design is a finite population, made from a fixed seed or a table of CONFIDE_DATA (skipped
without it), of which samples are drawn with replacement; the truth is the likeliest model on all of it. Beside every release stands the
sandwich interval without privacy on the same sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

import confide as cf
from confide.core import seal
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import CodedFrame
from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.truth.plain import plain_intervals

REPLICATIONS = int(os.environ.get("CONFIDE_LOG_ODDS_REPS", "40"))
CHOSEN = tuple(name for name in os.environ.get("CONFIDE_LOG_ODDS", "").split(",") if name)
_SIZE = 200_000
# Fewer answers tell nothing of a cell.
_TOLD = 10


@dataclass(frozen=True)
class Design:
    """formula; columns of the schema; made: generator -> frame; cells: (n, mu), n = 0 for all records."""

    formula: str
    columns: dict[str, Any]
    made: Callable[[np.random.Generator], pd.DataFrame]
    cells: tuple[tuple[int, float], ...]


def _outcome(g: np.random.Generator, eta: Any) -> Any:
    return (g.random(len(eta)) < expit(eta)).astype(int)


def _names(d: int) -> list[str]:
    return [f"x{j}" for j in range(d)]


def _sum(names: list[str]) -> str:
    return "y ~ " + " + ".join(names)


def _uniform(d: int, slopes: Any, intercept: float = -0.5) -> Callable[[np.random.Generator], pd.DataFrame]:
    def made(g: np.random.Generator) -> pd.DataFrame:
        x = g.uniform(-1, 1, (_SIZE, d))
        return pd.DataFrame(x, columns=_names(d)).assign(y=_outcome(g, intercept + x @ np.asarray(slopes)))

    return made


def _normal(d: int, scale: float) -> Callable[[np.random.Generator], pd.DataFrame]:
    def made(g: np.random.Generator) -> pd.DataFrame:
        x = g.standard_normal((_SIZE, d))
        eta = -0.5 + x @ np.array([0.7 * (-1) ** j * (1 - 0.04 * j) for j in range(d)]) * 2 / np.sqrt(d)
        return pd.DataFrame(x * scale, columns=_names(d)).assign(y=_outcome(g, eta))

    return made


def _level(g: np.random.Generator) -> pd.DataFrame:
    x, rare = g.uniform(-1, 1, (_SIZE, 3)), g.random(_SIZE) < 0.01
    return pd.DataFrame(x, columns=_names(3)).assign(
        rare=rare.astype(int), y=_outcome(g, -0.5 + x @ [1, -0.8, 0.5] + 0.7 * rare)
    )


def _bent(g: np.random.Generator) -> pd.DataFrame:
    x = g.uniform(-1, 1, (_SIZE, 3))
    return pd.DataFrame(x, columns=_names(3)).assign(
        y=_outcome(g, -1.5 + 3 * x[:, 0] ** 2 + np.sin(3 * x[:, 1]) - x[:, 2])
    )


def _against(g: np.random.Generator) -> pd.DataFrame:
    """1 % of the records at 8 to 20 sd, with outcomes against the slope."""
    x = g.standard_normal((_SIZE, 3))
    eta = -0.3 + x @ [1.0, -0.7, 0.5]
    y = _outcome(g, eta)
    out = g.random(_SIZE) < 0.01
    x[out, 0] = g.uniform(8, 20, out.sum()) * g.choice([-1, 1], out.sum())
    y[out] = (x[out, 0] < 0).astype(int)
    return pd.DataFrame(x, columns=_names(3)).assign(y=y)


def _inside(g: np.random.Generator) -> pd.DataFrame:
    """0.4 % of the records at 7 to 8.2 sd, within bounds that reach less than five half-widths, with outcomes against the slope."""
    x, z = g.standard_normal(_SIZE), g.uniform(-1, 1, _SIZE)
    out = g.random(_SIZE) < 0.004
    x = np.where(out, g.uniform(7, 8.2, _SIZE), x)
    return pd.DataFrame({"x": x, "z": z, "y": np.where(out, 0, _outcome(g, -0.5 + 1.2 * x + z))})


def _factor(g: np.random.Generator) -> pd.DataFrame:
    """Eight levels, of which one has next to no events; an outcome of 4.5 %."""
    shares = np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02])
    level = g.choice(8, _SIZE, p=shares)
    x = g.standard_normal(_SIZE)
    effect = np.array([0, 0.4, -0.3, 0.8, 0.2, -0.5, -5.0, 0.5])[level]
    labels = np.array(list("abcdefgh"), dtype=object)[level]
    return pd.DataFrame({"x": x, "f": labels, "y": _outcome(g, -3.3 + 0.5 * x + effect)})


def _few(share: float, events: float) -> Callable[[np.random.Generator], pd.DataFrame]:
    """A flag of this share of the records, and this share of all records with the flag and the outcome."""

    def made(g: np.random.Generator) -> pd.DataFrame:
        x, flag = g.uniform(-1, 1, (_SIZE, 3)), g.random(_SIZE) < share
        eta = -2.0 + x @ [0.8, -0.6, 0.4]
        off = brentq(lambda by: expit(eta[flag] + by).mean() * share - events, -15, 15)
        return pd.DataFrame(x, columns=_names(3)).assign(flag=flag.astype(int), y=_outcome(g, eta + off * flag))

    return made


@cache
def table(name: str) -> pd.DataFrame | None:
    folder = os.environ.get("CONFIDE_DATA")
    path = Path(folder) / f"{name}.parquet" if folder else None
    return pd.read_parquet(path) if path is not None and path.exists() else None


def _adult(_: np.random.Generator) -> pd.DataFrame:
    frame = table("adult")
    assert frame is not None
    return frame.assign(
        y=(frame["income"].str.strip().str.startswith(">")).astype(int),
        married=frame["marital_status"].str.startswith("Married").astype(int),
        male=(frame["sex"].str.strip() == "Male").astype(int),
        race=frame["race"].str.strip(),
    )


def _credit(_: np.random.Generator) -> pd.DataFrame:
    frame = table("default_of_credit_card_clients")
    assert frame is not None
    return frame.assign(
        y=frame["default_payment_next_month"],
        man=(frame["sex"] == 1).astype(int),
        married=(frame["marriage"] == 1).astype(int),
    )


_BOX = {name: cf.Numeric(-1, 1) for name in _names(20)}
_Y = {"y": cf.Integer(0, 1)}
_USUAL = ((1_000, 1.0), (10_000, 0.3), (10_000, 1.0), (10_000, 3.0))
_ADULT = {
    "age": cf.Integer(17, 100),
    "education_num": cf.Integer(1, 16),
    "hours_per_week": cf.Integer(0, 99),
    "male": cf.Integer(0, 1),
    "married": cf.Integer(0, 1),
}
_RACES = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]

DESIGNS: dict[str, Design] = {
    "uniform d=5": Design(
        _sum(_names(5)), {**{n: _BOX[n] for n in _names(5)}, **_Y}, _uniform(5, [1, -0.9, 0.8, -0.7, 0.6]), _USUAL
    ),
    "uniform d=20": Design(
        _sum(_names(20)),
        {**_BOX, **_Y},
        _uniform(20, [0.5 * (-1) ** j * (1 - 0.03 * j) for j in range(20)]),
        ((10_000, 0.3), (10_000, 1.0), (10_000, 3.0)),
    ),
    "normal d=20 box x15": Design(
        _sum(_names(20)), {**dict.fromkeys(_names(20), cf.Numeric(-15, 15)), **_Y}, _normal(20, 1.0), ((20_000, 1.0),)
    ),
    "normal d=4 box x4": Design(
        _sum(_names(4)), {**dict.fromkeys(_names(4), cf.Numeric(-4, 4)), **_Y}, _normal(4, 1.0), _USUAL
    ),
    "outcome 2 %": Design(
        _sum(_names(2)),
        {**{n: _BOX[n] for n in _names(2)}, **_Y},
        _uniform(2, [0.8, -0.5], intercept=-4.05),
        ((10_000, 0.3), (10_000, 1.0), (10_000, 3.0)),
    ),
    "level 1 %": Design(
        "y ~ x0 + x1 + x2 + rare",
        {**{n: _BOX[n] for n in _names(3)}, "rare": cf.Integer(0, 1), **_Y},
        _level,
        ((10_000, 0.3), (10_000, 1.0), (10_000, 3.0)),
    ),
    "slopes 8 and -4": Design(
        _sum(_names(2)),
        {**{n: _BOX[n] for n in _names(2)}, **_Y},
        _uniform(2, [8, -4]),
        ((5_000, 0.3), (5_000, 1.0), (5_000, 3.0)),
    ),
    "wrong model": Design(
        _sum(_names(3)), {**{n: _BOX[n] for n in _names(3)}, **_Y}, _bent, ((10_000, 0.3), (10_000, 1.0), (10_000, 3.0))
    ),
    "1 % far against": Design(
        _sum(_names(3)),
        {**dict.fromkeys(_names(3), cf.Numeric(-25, 25)), **_Y},
        _against,
        ((20_000, 0.3), (20_000, 1.0), (20_000, 3.0)),
    ),
    "0.4 % against within 5 half-widths": Design(
        "y ~ x + z",
        {"x": cf.Numeric(-8.2, 8.2), "z": cf.Numeric(-1, 1), **_Y},
        _inside,
        ((2_000, 1.0), (2_000, 3.0), (10_000, 0.3), (10_000, 1.0)),
    ),
    "a level without events": Design(
        "y ~ x + f",
        {"x": cf.Numeric(-5, 5), "f": cf.Categorical(list("abcdefgh")), **_Y},
        _factor,
        ((2_000, 1.0), (10_000, 1.0)),
    ),
    # 12 events at the flag of 6,000 records, or 20 of 10,000: whether noise lets them be told is open
    "flag with few events": Design(
        "y ~ x0 + x1 + x2 + flag",
        {**{n: _BOX[n] for n in _names(3)}, "flag": cf.Integer(0, 1), **_Y},
        _few(0.05, 0.002),
        ((6_000, 1.0), (10_000, 0.3), (2_500, 3.0)),
    ),
    "adult5": Design(
        "y ~ age + education_num + hours_per_week + male + married",
        {**_ADULT, **_Y},
        _adult,
        ((5_000, 0.3), (5_000, 1.0), (5_000, 3.0), (0, 1.0)),
    ),
    "adult12": Design(
        "y ~ age + education_num + hours_per_week + male + married + race + capital_gain + capital_loss + fnlwgt",
        {
            **_ADULT,
            "race": cf.Categorical(_RACES),
            "capital_gain": cf.Integer(0, 100_000),
            "capital_loss": cf.Integer(0, 5_000),
            "fnlwgt": cf.Integer(0, 2_000_000),
            **_Y,
        },
        _adult,
        ((0, 0.3), (0, 1.0), (0, 3.0)),
    ),
    "credit": Design(
        "y ~ limit_bal + age + man + married + pay_0 + bill_amt1 + pay_amt1",
        {
            "limit_bal": cf.Numeric(0, 1_000_000),
            "age": cf.Integer(18, 100),
            "man": cf.Integer(0, 1),
            "married": cf.Integer(0, 1),
            "pay_0": cf.Integer(-2, 9),
            "bill_amt1": cf.Numeric(-200_000, 1_000_000),
            "pay_amt1": cf.Numeric(0, 1_000_000),
            **_Y,
        },
        _credit,
        ((0, 0.3), (0, 1.0), (0, 3.0)),
    ),
}
NEEDS = {"adult5": "adult", "adult12": "adult", "credit": "default_of_credit_card_clients"}


@dataclass(frozen=True, eq=False)
class _Population:
    frame: pd.DataFrame
    schema: cf.Schema
    truth: dict[str, float]


@cache
def _population(name: str) -> _Population:
    own = DESIGNS[name]
    schema = cf.Schema(own.columns)
    frame = own.made(np.random.default_rng(crc32(name.encode())))[list(own.columns)].reset_index(drop=True)
    return _Population(frame, schema, dict(Logistic(own.formula).reference(CodedFrame.of(frame, schema))))


def cell(
    name: str, n: int, mu: float, replications: int = REPLICATIONS, relation: str = "add-remove"
) -> dict[str, Any]:
    """One cell: shares of statuses, coverage of the worst coefficient and of all, of both intervals, the ratio of their widths."""
    whole, method = _population(name), Logistic(DESIGNS[name].formula)
    size = n or len(whole.frame)
    plan = cf.plan(method, whole.schema, cf.GDP(mu, relation=relation), n=size if relation == "substitute" else None)
    truth = np.array(list(whole.truth.values()))
    hits, plain, ratio, status, errors = [], [], [], [], []
    for r in range(replications):
        g = np.random.default_rng([crc32(name.encode()), size, r])
        frame = whole.frame.iloc[g.integers(0, len(whole.frame), size)].reset_index(drop=True)
        noise = SimulatedNoise(crc32(f"{name} {size} {mu} {relation} {r}".encode()))
        found: Any = method.infer(seal(method, cf.read(frame, whole.schema), plan, noise))
        status.append(found.status)
        ends = plain_intervals(method, CodedFrame.of(frame, whole.schema))
        bare = np.array([ends.get(key, (np.nan, np.nan)) for key in whole.truth])
        known = np.isfinite(bare[:, 0])
        plain.append(np.where(known, (bare[:, 0] <= truth) & (truth <= bare[:, 1]), np.nan))
        low, high = (
            found.conf_int().to_numpy().T if found.status in ("valid", "partial") else np.full((2, len(truth)), np.nan)
        )
        hits.append(np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan))
        ratio.append((high - low) / (bare[:, 1] - bare[:, 0]))
        errors.append((found.estimates - truth) / (bare[:, 1] - bare[:, 0]) * 2 * 1.96)
    return {
        "design": name,
        "n": size,
        "mu": mu,
        **_summary(list(whole.truth), *map(np.array, (hits, plain, ratio, errors)), status),
    }


def _summary(names: list[str], hits: Any, plain: Any, ratio: Any, errors: Any, status: list[str]) -> dict[str, Any]:
    answered = np.isfinite(hits)
    found: dict[str, Any] = {
        "ok": round(status.count("valid") / len(status), 2),
        "partial": round(status.count("partial") / len(status), 2),
        "answered": round(float(answered.mean()), 2),
        "plain": round(float(np.nanmean(plain)), 3),
    }
    seen = [j for j in range(len(names)) if answered[:, j].sum() >= max(len(status) / 10, 1)]
    if seen:
        covered = [float(np.nanmean(hits[:, j])) for j in seen]
        worst = int(np.argmin(covered))
        j = seen[worst]
        found |= {
            "coverage": round(float(np.nanmean(hits)), 3),
            "worst": round(covered[worst], 3),
            "of": names[j],
            "worst plain": round(float(np.nanmean(plain[answered[:, j], j])), 3),
            "high": round(interval(hits[answered[:, j], j] > 0)[2], 3),
            "width": round(float(np.nanmedian(ratio)), 2),
            "bias": round(float(np.nanmax(np.abs(np.nanmedian(errors[:, seen], axis=0)))), 2),
        }
        found["passed"] = found["high"] >= min(0.93, found["worst plain"] - 0.03)
    return found


def cells() -> Iterator[tuple[str, int, float]]:
    """The cells that can be run here."""
    for name, own in DESIGNS.items():
        if (not CHOSEN or name in CHOSEN) and (name not in NEEDS or table(NEEDS[name]) is not None):
            for n, mu in own.cells:
                yield name, n, mu


def lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """The table of evidence/methods/logistic.md."""
    yield "| design | n | mu | ok, partial | answered | all coefficients | worst one | without privacy, there | width |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in found:
        cells = [
            row["design"],
            f"{row['n']:,}",
            f"{row['mu']:g}",
            f"{row['ok']:.2f}, {row['partial']:.2f}",
            f"{row['answered']:.2f}",
        ]
        rest = (
            [
                f"{row['coverage']:.3f}",
                f"{row['worst']:.3f} {row['of']}",
                f"{row['worst plain']:.3f}",
                f"{row['width']:.2f}",
            ]
            if "worst" in row
            else ["-"] * 4
        )
        yield f"| {' | '.join([*cells, *rest])} |"


def together(found: list[dict[str, Any]]) -> str:
    """What cells with at least ten answers hold, in one sentence."""
    told = [row for row in found if "worst" in row and row["answered"] * REPLICATIONS >= _TOLD]
    if not told:
        return f"no cell has {_TOLD} answers"
    covered, plain = (np.array([row[name] for row in told]) for name in ("coverage", "plain"))
    lost = [f"{row['design']} n={row['n']} mu={row['mu']:g}: {row['of']}" for row in told if not row["passed"]]
    return (
        f"{len(told)} cells with at least {_TOLD} answers: all coefficients covered {covered.min():.3f} at least, {covered.mean():.3f} on "
        f"average (without privacy {plain.min():.3f}, {plain.mean():.3f}); the worst coefficient fails in {len(lost)}"
        + (f" ({'; '.join(lost)})" if lost else "")
    )


def run() -> list[dict[str, Any]]:
    found = []
    for one in cells():
        found.append({"check": "{} n={} mu={}".format(*one), **cell(*one)})
        print(found[-1], flush=True)
    print("\n".join(lines(found)), flush=True)
    print(together(found), flush=True)
    return found


if __name__ == "__main__":
    run()
