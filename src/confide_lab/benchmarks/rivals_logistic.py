"""Logistic and linear regression beside other packages', at an equal guarantee: `confide lab bench rivals_logistic`.

Error and coverage on the same samples of outside tables and of a synthetic design, all under "substitute" (the number of records is public
for diffprivlib). The guarantees: ours is GDP(mu). Against it stand

- diffprivlib's models, with its defaults, at (epsilon, 0): once at the epsilon at which GDP(mu) has delta = 1e-6, which lets it promise
  much less (at mu = 1 it is 4.89, and at epsilon = 1 a mechanism with that promise may have delta = .97 where GDP(1) has .13), and once
  at the largest epsilon that implies GDP(mu), log(Phi(mu/2)/Phi(-mu/2)), which makes it promise a little more: the two enclose what
  "equal" may mean for a pure guarantee;
- objective perturbation as shipped here, at (epsilon, 1e-6) of GDP(mu).

diffprivlib runs in an environment of its own (`confide_lab.benchmarks.rival`), which is made from the package index; where that fails its
rows are left out and a line says so. dp-statsmodels is not in the package index: it is not run, and nothing stands in its place.

error: root mean square error over that of the answer without privacy on the same samples, geometric mean over slopes, every reply counted;
covered: of the intervals that a result prints, the share that holds the value of the whole table; for diffprivlib, which prints none, that
of an interval as wide as the one without privacy around its number, as a reader might draw it; answered: the share of slopes with an
interval. CONFIDE_RIVALS_REPS (default 20) sets the samples.
"""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit

import confide as cf
from confide.core import seal
from confide.methods.regression.glm.coefficients import binary_design, log_odds
from confide.noise import SimulatedNoise
from confide.regression import SSP, LeastSquares, Logistic
from confide.schema import CodedFrame, ModelMatrix
from confide_lab.benchmarks.outside_tables import frame_of, missing, table_of
from confide_lab.benchmarks.rival import python_of_diffprivlib
from confide_lab.benchmarks.truth.plain import plain_intervals
from confide_lab.methods.logistic.methods import LogisticObjective

__all__ = ["run"]

REPLICATIONS = int(os.environ.get("CONFIDE_RIVALS_REPS", "20"))
DELTA = 1e-6
OUT = Path("out/bench")
#: Formulas by table, the first kind logistic; the synthetic design is named "uniform".
LOGISTIC = ("uniform", "pension", "contraception", "arrests", "insults")
LINEAR = ("cpssw8", "fair", "college")
CELLS = ((2_000, 1.0), (10_000, 1.0), (10_000, 3.0))


@dataclass(frozen=True, eq=False)
class Case:
    """A population with the coefficients to be found."""

    name: str
    frame: pd.DataFrame
    schema: cf.Schema
    formula: str
    binary: bool

    @property
    def ours(self) -> Any:
        return Logistic(self.formula) if self.binary else LeastSquares(self.formula)

    @property
    def design(self) -> ModelMatrix:
        return binary_design(self.formula, self.schema)[0] if self.binary else ModelMatrix.of(self.formula, self.schema)

    def sample(self, n: int, r: int) -> pd.DataFrame:
        """The same for every method."""
        rows = np.random.default_rng([crc32(self.name.encode()), n, r]).integers(0, len(self.frame), n)
        return self.frame.iloc[rows].reset_index(drop=True)


@cache
def case(name: str) -> Case:
    """An outside table, or five features of even distribution."""
    if name != "uniform":
        table = table_of(name)
        return Case(name, frame_of(name).dropna(), table.schema, table.formula, name in LOGISTIC)
    g = np.random.default_rng(20261123)
    x = g.uniform(-1, 1, (200_000, 5))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(5)])
    frame["y"] = (g.random(len(x)) < expit(-0.5 + x @ [1, -0.9, 0.8, -0.7, 0.6])).astype(int)
    schema = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(5)}, "y": cf.Integer(0, 1)})
    return Case(name, frame, schema, "y ~ " + " + ".join(f"x{j}" for j in range(5)), True)


def pure_epsilon(mu: float) -> float:
    """The largest epsilon whose (epsilon, 0) implies GDP(mu).

    >>> round(pure_epsilon(1.0), 3)
    0.807
    """
    return log(stats.norm.cdf(mu / 2) / stats.norm.cdf(-mu / 2))


# the rival's process ----------------------------------------------------------------------------------------------------

_SERVER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression
for line in sys.stdin:
    ask = json.loads(line)
    data = np.load(ask["data"])
    x, y = data["x"], data["y"]
    if ask["binary"]:
        model = LogisticRegression(epsilon=ask["epsilon"], data_norm=ask["norm"], max_iter=1000, random_state=ask["seed"])
    else:
        bounds = np.array(ask["bounds"])
        model = LinearRegression(epsilon=ask["epsilon"], bounds_X=(bounds[:-1, 0], bounds[:-1, 1]), bounds_y=tuple(bounds[-1]),
                                 random_state=ask["seed"])
    model.fit(x, y)
    print(json.dumps([float(np.ravel(model.intercept_)[0]), *map(float, np.ravel(model.coef_))]), flush=True)
"""


class Rival:
    """diffprivlib in its own process, asked line by line."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._file = OUT / "rivals.npz"

    def fit(self, one: Case, frame: pd.DataFrame, epsilon: float, seed: int) -> np.ndarray:
        """Coefficients in the data's units. Features of a logistic model are scaled to [-1, 1] by their public bounds before."""
        design = one.design
        x, y = CodedFrame.of(frame, design.schema if not one.binary else one.schema).rows(design)
        terms = design.terms
        low, high = (np.array([getattr(term, end) for term in terms]) for end in ("low", "high"))
        features = x[:, 1:]
        if one.binary:
            features = (features - (low + high) / 2) / ((high - low) / 2)
        np.savez(self._file, x=features, y=(y >= 0.5).astype(int) if one.binary else y)
        bounds = [
            [float(a), float(b)] for a, b in (*zip(low, high, strict=True), (design.response.low, design.response.high))
        ]
        norm = float(np.sqrt(len(terms)))
        ask = {
            "data": str(self._file),
            "binary": one.binary,
            "epsilon": epsilon,
            "norm": norm,
            "bounds": bounds,
            "seed": seed,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        found = np.array(json.loads(self._process.stdout.readline()))
        return np.asarray(log_odds(design) @ found) if one.binary else found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def rival() -> Rival | str:
    """diffprivlib, or why it is not there."""
    try:
        return Rival(python_of_diffprivlib())
    except (OSError, subprocess.CalledProcessError) as error:
        return f"skipped: diffprivlib could not be installed from the package index ({type(error).__name__})"


# one cell ---------------------------------------------------------------------------------------------------------------


Reply = tuple[np.ndarray, np.ndarray, np.ndarray]
Answer = Callable[[pd.DataFrame, int], Reply]


def answers(one: Case, n: int, mu: float, other: Rival | str) -> Iterator[tuple[str, str, Answer]]:
    """(method, guarantee, how it replies): estimates and ends of intervals, NaN without."""
    epsilon, pure = cf.GDP(mu).to_approx(delta=DELTA).epsilon, pure_epsilon(mu)
    requests: list[tuple[str, str, Any, Any]] = [
        ("confide", f"GDP({mu:g})", one.ours, cf.GDP(mu, relation="substitute"))
    ]
    if one.binary:
        asked = cf.ApproxDP(epsilon, DELTA, relation="substitute")
        requests.append(("confide, objective", f"({epsilon:.3g}, 1e-6)", LogisticObjective(one.formula), asked))
    for label, words, method, asked in requests:
        yield label, words, _own(one, n, method, asked)
    if not isinstance(other, str):
        for level, words in ((epsilon, f"({epsilon:.3g}, 0)"), (pure, f"({pure:.3g}, 0)")):
            yield "diffprivlib", words, _theirs(one, other, level)


def _own(one: Case, n: int, method: Any, asked: Any) -> Answer:
    plan = cf.plan(method, one.schema, asked, n=n)

    def reply(frame: pd.DataFrame, r: int) -> Reply:
        noise = SimulatedNoise(crc32(f"{one.name} {method.name} {asked} {r}".encode()))
        found = method.infer(seal(method, cf.read(frame, one.schema), plan, noise))
        nothing = np.full(len(found.names), np.nan)
        if found.status in ("valid", "partial"):
            low, high = found.conf_int().to_numpy().T
        else:
            low = high = nothing
        return np.asarray(found.params, dtype=float), low, high

    return reply


def _theirs(one: Case, other: Rival, epsilon: float) -> Answer:
    def reply(frame: pd.DataFrame, r: int) -> Reply:
        found = other.fit(one, frame, epsilon, r)
        ends = _plain(one, frame)
        half = (ends[:, 1] - ends[:, 0]) / 2
        return found, found - half, found + half

    return reply


def _plain(one: Case, frame: pd.DataFrame) -> np.ndarray:
    """Ends of the intervals without privacy, NaN where there is none."""
    method = Logistic(one.formula) if one.binary else SSP(one.formula)
    ends = plain_intervals(method, CodedFrame.of(frame, one.schema))
    return np.array([ends.get(name, (np.nan, np.nan)) for name in one.design.names])


def cell(name: str, n: int, mu: float, other: Rival | str) -> list[dict[str, Any]]:
    """One row for each method."""
    one = case(name)
    reference = Logistic(one.formula) if one.binary else SSP(one.formula)
    truth = np.array(list(reference.reference(CodedFrame.of(one.frame, one.schema)).values()))[1:]
    frames = [one.sample(n, r) for r in range(REPLICATIONS)]
    bare = np.array([_plain(one, frame).mean(axis=1)[1:] for frame in frames]) - truth
    plain = np.sqrt(np.nanmean(bare**2, axis=0))
    rows = []
    for label, words, reply in answers(one, n, mu, other):
        found = [reply(frame, r) for r, frame in enumerate(frames)]
        estimates, low, high = (np.array(part)[:, 1:] for part in zip(*found, strict=True))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            error = np.sqrt(np.nanmean((estimates - truth) ** 2, axis=0))
            ratio = float(np.exp(np.nanmean(np.log(error / plain))))
        told = np.isfinite(low)
        held = (low <= truth) & (truth <= high)
        own = not label.startswith("diffprivlib")
        rows.append(
            {
                "table": name, "n": n, "mu": mu, "method": label, "guarantee": words, "error": round(ratio, 2),
                "covered": round(float(held[told].mean()), 3) if told.any() else None,
                "answered": round(float(told.mean()), 2) if own else None,
            }
        )  # fmt: skip
    return rows


def lines(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """The table of evidence/methods/logistic.md."""
    yield "| table | n | mu | method | guarantee | error | covered | answered |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        covered = "-" if row["covered"] is None else f"{row['covered']:.2f}"
        answered = "none printed" if row["answered"] is None else f"{row['answered']:.2f}"
        head = f"| {row['table']} | {row['n']:,} | {row['mu']:g} | {row['method']} | {row['guarantee']}"
        yield f"{head} | {row['error']:.3g} | {covered} | {answered} |"


def run() -> list[dict[str, Any]]:
    """All cells."""
    OUT.mkdir(parents=True, exist_ok=True)
    other = rival()
    print(
        other
        if isinstance(other, str)
        else "diffprivlib 0.6.6, its linear and logistic models, features scaled by their public bounds"
    )
    print("skipped: dp-statsmodels is not in the package index")
    rows: list[dict[str, Any]] = []
    try:
        for name in (*LOGISTIC, *LINEAR):
            lost = None if name == "uniform" else missing(name)
            if lost is not None:
                print(f"skipped: {lost}")
                continue
            for n, mu in CELLS:
                found = cell(name, n, mu, other)
                rows += found
                print("\n".join(list(lines(found))[2:]), flush=True)
    finally:
        if not isinstance(other, str):
            other.close()
    print("\n".join(lines(rows)))
    return [
        {"check": f"rivals: {row['table']} {row['n']} {row['mu']} {row['method']} {row['guarantee']}", **row}
        for row in rows
    ]


if __name__ == "__main__":
    run()
