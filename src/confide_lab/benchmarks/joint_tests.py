"""Size and power of joint tests: how often a true set of restrictions is rejected at 5 %, and a false one.

Families: the least-squares line, exact sums by factor, SSP with one response and with two, the robust line. Restrictions have their true
values (size), or values that lie away by as much as the test that knows the covariance of the released estimate (from all runs of the
cell) rejects in three quarters of runs (power; the direction is drawn anew in each run). A size fails if the 99.9 % interval misses
[.03, .07], a power if it is below .8 of the other's by more than chance allows. The last rows pool the sizes of each family, which decides
between .02 and .03 where the runs of a cell do not. Part of it: `python -m confide_lab.benchmarks.joint_tests "SSP" "factors"`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

import confide as cf
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.methods.huber.huber_line import HuberLine

Array = NDArray[np.float64]
SLOPES = (1.0, -0.5, 0.5, 0.2, 0.0, 0.3, -0.4, 0.1)
KINDS = ("normal", "unequal", "skewed", "rare")
# Each kind with one size, each size with one kind.
CELLS = (("rare", 500, 3.0), ("unequal", 2_000, 1.0), ("skewed", 10_000, 0.3), ("normal", 10_000, 1.0))
# Of two factors: effects of the levels against the first, and their shares.
LEVELS = {"f": ((0, 1, -1, 2, 0.5, 0), (0.3, 0.25, 0.2, 0.15, 0.07, 0.03)), "g": ((0, 1, -0.5), (0.5, 0.3, 0.2))}
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class World:
    """Records whose least-squares line is known: `draw(n, generator)` gives them; truth of the coefficients, in the table's order;
    restrictions: rows of the tests, by what is printed.
    """

    formula: str
    columns: Columns
    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    truth: Array
    restrictions: Mapping[str, Array]


def features(kind: str, n: int, generator: np.random.Generator) -> Array:
    """(n, 8): uniform; or two of them skewed; or three indicators of 5 %, 10 % and 30 %."""
    x = generator.uniform(-1, 1, (n, len(SLOPES)))
    if kind == "skewed":
        x[:, :2] = np.clip(generator.exponential(0.25, (n, 2)) - 1, -1, 1)
    if kind == "rare":
        x[:, :3] = generator.uniform(size=(n, 3)) < (0.05, 0.1, 0.3)
    return x


def errors(kind: str, x: Array, generator: np.random.Generator) -> Array:
    """(n,): mean 0 at every x, sd about 1."""
    if kind == "skewed":
        return np.asarray(generator.exponential(1.0, len(x)) - 1)
    spread = 0.4 + 1.2 * np.abs(x[:, 3]) if kind == "unequal" else np.ones(len(x))
    return np.asarray(spread * generator.standard_normal(len(x)))


def eight(kind: str) -> World:
    """Eight features; the first 2, 4 and all slopes are tested."""
    names = [f"x{j}" for j in range(len(SLOPES))]
    whole = 3 if kind == "rare" else 0

    def draw(n: int, generator: np.random.Generator) -> pd.DataFrame:
        x = features(kind, n, generator)
        y = x @ np.array(SLOPES) + errors(kind, x, generator)
        return pd.DataFrame(x, columns=names).astype(dict.fromkeys(names[:whole], int)).assign(y=y)

    columns = {name: cf.Integer(0, 1) if j < whole else cf.Numeric(-1, 1) for j, name in enumerate(names)}
    rows = np.eye(len(SLOPES) + 1)[1:]
    return World(
        "y ~ " + " + ".join(names),
        {**columns, "y": cf.Numeric(-8, 8)},
        draw,
        np.array([0.0, *SLOPES]),
        {f"{q} restrictions": rows[:q] for q in (2, 4, 8)},
    )


def factors(kind: str) -> World:
    """Two factors of six and three levels; "unequal": the rarest level of f has three times the others' sd."""

    def draw(n: int, generator: np.random.Generator) -> pd.DataFrame:
        drawn = {name: generator.choice(len(shares), n, p=shares) for name, (_, shares) in LEVELS.items()}
        mean = sum(np.array(effects)[drawn[name]] for name, (effects, _) in LEVELS.items())
        spread = np.where(drawn["f"] == 5, 3.0 if kind == "unequal" else 1.0, 1.0)
        y = mean + spread * generator.standard_normal(n)
        return pd.DataFrame({name: np.array(list("abcdef"))[codes] for name, codes in drawn.items()}).assign(y=y)

    columns = {name: cf.Categorical(list("abcdef"[: len(shares)])) for name, (_, shares) in LEVELS.items()}
    effects = [effect for own, _ in LEVELS.values() for effect in own[1:]]
    rows = np.eye(len(effects) + 1)[1:]
    parts = {"levels of g (2)": rows[5:], "levels of f (5)": rows[:5], "all 7": rows}
    return World("y ~ f + g", {**columns, "y": cf.Numeric(-10, 14)}, draw, np.array([0.0, *effects]), parts)


def outcomes(kind: str) -> World:
    """Two responses with the same slopes of four features, residuals correlated by .6: equal slopes, and all of them."""
    names, slopes = [f"x{j}" for j in range(4)], np.array(SLOPES[:4])

    def draw(n: int, generator: np.random.Generator) -> pd.DataFrame:
        x = generator.uniform(-1, 1, (n, 4))
        e = generator.standard_normal((n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
        e *= 0.4 + 1.2 * np.abs(x[:, 3:]) if kind == "unequal" else 1.0
        return pd.DataFrame(x, columns=names).assign(y1=x @ slopes + e[:, 0], y2=x @ slopes + e[:, 1])

    columns = {**{name: cf.Numeric(-1, 1) for name in names}, "y1": cf.Numeric(-8, 8), "y2": cf.Numeric(-8, 8)}
    one = np.hstack([np.zeros((4, 1)), np.eye(4)])
    apart = np.hstack([one, -one])
    whole = np.vstack([np.hstack([one, 0 * one]), np.hstack([0 * one, one])])
    tests = {"2 slopes equal in both": apart[:2], "4 slopes equal in both": apart, "all 8 slopes": whole}
    return World("y1 + y2 ~ " + " + ".join(names), columns, draw, np.array([0.0, *slopes, 0.0, *slopes]), tests)


#: By family: its method, its worlds, and the kinds and sizes that are run.
FAMILIES: Mapping[str, tuple[Callable[[str], Any], Callable[[str], World], tuple[tuple[str, int, float], ...]]] = {
    "least squares": (cf.regression.LeastSquares, eight, CELLS),
    "factors": (
        cf.regression.LeastSquares,
        factors,
        (("normal", 500, 3.0), ("unequal", 2_000, 1.0), ("normal", 10_000, 0.3), ("unequal", 10_000, 1.0)),
    ),
    "SSP": (cf.regression.SSP, eight, CELLS),
    "SSP, two responses": (
        lambda formula: cf.regression.SSP(formula, products=True),
        outcomes,
        (("normal", 2_000, 1.0), ("unequal", 10_000, 1.0)),
    ),
    "robust line": (
        HuberLine,
        eight,
        (("unequal", 2_000, 1.0), ("rare", 10_000, 0.3), ("normal", 10_000, 1.0)),
    ),
}


def releases(
    make: Callable[[str], Any], world: World, kind: str, n: int, mu: float, runs: int, seed: int
) -> Iterator[Any]:
    """Tables in which every coefficient has an interval, at most one a run."""
    schema = cf.Schema(dict(world.columns))
    plan = cf.plan(make(world.formula), schema, cf.GDP(mu))
    for run in range(runs):
        frame = world.draw(n, np.random.default_rng((seed, KINDS.index(kind), n, run)))
        noise = cf.noise.SimulatedNoise(hash((seed, n, round(10 * mu), run)) % 2**31)
        table = cf.infer(cf.release(plan, cf.read(frame, schema), ledger=None, noise=noise))
        if table.status == "valid":
            yield table


def distance(q: int) -> float:
    """How far away, in standard errors, a chi-square test of q restrictions at 5 % rejects in three quarters of cases."""
    critical = stats.chi2.ppf(0.95, q)
    return sqrt(float(optimize.brentq(lambda away: stats.ncx2.sf(critical, q, away) - 0.75, 0.1, 100)))


def judge(tables: list[Any], rows: Array, truth: Array, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Rejections at 5 %, one a table: of the truth, of a false null, and of the latter by the known covariance."""
    q, value = len(rows), rows @ truth
    estimates = np.array([rows @ table.estimates for table in tables])
    covariance = (estimates - value).T @ (estimates - value) / len(tables)
    root, inverse = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    critical = stats.chi2.ppf(0.95, q)
    generator = np.random.default_rng((seed, q))
    size, power, known = [], [], []
    for table, estimate in zip(tables, estimates, strict=True):
        direction = generator.standard_normal(q)
        away = value + distance(q) * root @ direction / np.linalg.norm(direction)
        size.append(table.wald_test(rows, value).pvalue < 0.05)
        power.append(table.wald_test(rows, away).pvalue < 0.05)
        known.append((estimate - away) @ inverse @ (estimate - away) > critical)
    return {"size": np.array(size), "power": np.array(power), "known": np.array(known)}


def cell(family: str, kind: str, n: int, mu: float, runs: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Rows of one cell, one for each test; none where fewer than a third of the runs answer every coefficient."""
    make, world_of, _ = FAMILIES[family]
    world = world_of(kind)
    tables = list(releases(make, world, kind, n, mu, runs, seed))
    where = f"{family}, {kind}, n={n} mu={mu:g}"
    if 3 * len(tables) < runs:
        print(f"       {where}: every coefficient answered in {len(tables)} of {runs} runs, no test", flush=True)
        return
    for label, rows in world.restrictions.items():
        found = judge(tables, rows, world.truth, seed)
        mean, low, high = interval(found["size"])
        power, other = float(found["power"].mean()), float(found["known"].mean())
        passed = consistent(found["size"], 0.03, 0.07) and consistent(found["power"], 0.8 * other, 1.0)
        print(
            f"{'ok    ' if passed else 'FAILED'} {where}, {label}: size {mean:.3f} [{low:.3f}, {high:.3f}], "
            f"power {power:.2f} of {other:.2f} ({len(tables)} of {runs} runs)",
            flush=True,
        )
        yield {
            "check": f"joint test, {where}, {label}: size",
            "value": float(mean),
            "interval": [low, high],
            "low": 0.03,
            "high": 0.07,
            "power": power,
            "power of the known covariance": other,
            "ok": len(tables) / runs,
            "family": family,
            "rejected": found["size"].tolist(),
            "passed": bool(passed),
        }


def pooled(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The size of each family over its cells and tests; the runs of a cell are clusters."""
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        runs = sum(len(row["rejected"]) for row in own)
        size = sum(sum(row["rejected"]) for row in own) / runs
        least = min(row["power"] / row["power of the known covariance"] for row in own)
        # tests of one cell share their runs, so that their errors may be as large as those of one test: three tests count as one
        margin = 3.3 * sqrt(max(size, 0.01) * (1 - size) / (runs / 3))
        passed = size + margin >= 0.03 and size - margin <= 0.07
        print(
            f"{'ok    ' if passed else 'FAILED'} {family}: size {size:.3f} +- {margin:.3f} over {len(own)} tests, least power {least:.2f} "
            "of the known covariance's",
            flush=True,
        )
        yield {"check": f"joint tests, {family}: size", "value": size, "low": 0.03, "high": 0.07, "passed": passed}


def run(runs: int = 150, families: tuple[str, ...] = tuple(FAMILIES)) -> list[dict[str, Any]]:
    rows = [
        row for family in families for kind, n, mu in FAMILIES[family][2] for row in cell(family, kind, n, mu, runs)
    ]
    return [*rows, *pooled(rows)]


if __name__ == "__main__":
    run(families=tuple(sys.argv[1:]) or tuple(FAMILIES))
