"""Separation: how often a coefficient is answered whose records have next to no outcome, or no other one, and what its interval holds.

`confide lab bench separation` runs it; CONFIDE_SEPARATION_REPS (default 200) sets the samples of each design. n = 1,000, mu = 1,
add-remove, simulated noise. The cell a = b = 1 of two even columns has the outcome of a share of .999 or 1, or counts of a mean of .002 or
0; the same cells as one factor (y ~ f) stand beside, and a number (y ~ x) with all outcomes alike, alone or with a column. Others have no
such cell: three values of d (y ~ d) with shares 1 - s, .4, s, or means m, m, 2, and the corners of two columns (y ~ a + b) with shares
1 - s, .4, .4, s. Each kind has an ordinary design, for what is lost. The target is the last coefficient, infinite or none where a share is
1 or a mean 0: no interval is right there. A design fails where the 99.9 % interval of the coverage at status `valid` is below .93, or where
more than one sample of 100 has an answer to what is infinite.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_expit, log_ndtr, logit, ndtri
from scipy.stats import beta

import confide as cf
from confide.core import Method, seal
from confide.noise import SimulatedNoise
from confide.regression import Logistic, Poisson

REPLICATIONS = int(os.environ.get("CONFIDE_SEPARATION_REPS", "200"))
_N = 1_000
_LEVELS = ("u", "v", "w", "s")
_MOST = 10
_SHARES, _MEANS = (0.3, 0.4, 0.5), (1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Case:
    """formula; last: the share or mean of the cell a = b = 1, level s; the s or m of d and of a + b; of all cells where x is in it."""

    model: str
    formula: str
    last: float

    @property
    def method(self) -> Method:
        """What is asked."""
        return Poisson(self.formula) if self.model == "poisson" else Logistic(self.formula, link=self.model)

    @property
    def schema(self) -> cf.Schema:
        """Of the columns that the formula names."""
        columns = {
            "a": cf.Integer(0, 1),
            "b": cf.Integer(0, 1),
            "f": cf.Categorical(list(_LEVELS)),
            "d": cf.Integer(0, 2),
            "x": cf.Numeric(-1, 1),
        }
        used = {name: one for name, one in columns.items() if name in self.formula.split("~")[1]}
        return cf.Schema({**used, "y": cf.Integer(0, _MOST if self.model == "poisson" else 1)})

    @property
    def rates(self) -> np.ndarray:
        """Of the four cells, or of the values of d."""
        if "x" in self.formula:
            return np.full(4, self.last)
        if "d" in self.formula:
            return np.array([self.last, self.last, 2.0] if self.model == "poisson" else [1 - self.last, 0.4, self.last])
        if "+" in self.formula:
            return np.array([1 - self.last, 0.4, 0.4, self.last])
        return np.array([*(_MEANS if self.model == "poisson" else _SHARES), self.last])

    @property
    def truth(self) -> float:
        """The last coefficient; NaN where every value is as likely."""
        with np.errstate(all="ignore"):
            line = {"logit": logit, "probit": ndtri, "poisson": np.log}[self.model](self.rates)
        if not np.isfinite(line).all():
            return np.nan
        if "x" in self.formula:
            return 0.0
        if "d" in self.formula:
            return self._likeliest(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]))
        if "+" in self.formula:
            return self._likeliest(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))
        return float(line[3] - line[1] - line[2] + line[0] if "*" in self.formula else line[3] - line[0])

    def _likeliest(self, rows: np.ndarray) -> float:
        """The last coefficient of the likeliest line over rows of one weight, where the rates need not lie on one."""
        rates = self.rates

        def loss(theta: np.ndarray) -> float:
            eta = rows @ theta
            if self.model == "poisson":
                return float((np.exp(eta) - rates * eta).sum())
            yes, no = (log_expit(eta), log_expit(-eta)) if self.model == "logit" else (log_ndtr(eta), log_ndtr(-eta))
            return -float((rates * yes + (1 - rates) * no).sum())

        return float(minimize(loss, np.zeros(rows.shape[1]), options={"gtol": 1e-9}).x[-1])

    def frame(self, seed: int) -> pd.DataFrame:
        """A sample."""
        g = np.random.default_rng(seed)
        a, b = g.integers(0, 2, (2, _N))
        d = g.integers(0, 3, _N) if "d" in self.formula else a
        rate = self.rates[d if "d" in self.formula else 2 * a + b]
        y = g.poisson(rate).clip(0, _MOST) if self.model == "poisson" else (g.random(_N) < rate).astype(int)
        labels = np.array(_LEVELS, dtype=object)[2 * a + b]
        whole = pd.DataFrame({"a": a, "b": b, "f": labels, "d": d, "x": g.uniform(-1, 1, _N), "y": y})
        return whole[list(self.schema.names)]


def cases() -> list[Case]:
    """All of them."""
    found = []
    for model, few, none, even in (
        ("logit", 0.999, 1.0, 0.7),
        ("probit", 0.999, 1.0, 0.7),
        ("poisson", 0.002, 0.0, 1.2),
    ):
        found += [Case(model, formula, last) for last in (few, none, even) for formula in ("y ~ a * b", "y ~ f")]
        found += [Case(model, "y ~ x", none), Case(model, "y ~ x", even), Case(model, "y ~ a + x", none)]
        found += [Case(model, "y ~ d", last) for last in (few, none, even)]
        if model != "poisson":
            found += [Case(model, "y ~ a + b", last) for last in (few, none, even)]
    return found


def measured(case: Case, replications: int) -> dict[str, Any]:
    """Counts of samples: status, answered at all, at `valid`, and covered of these."""
    method, schema = case.method, case.schema
    plan, truth = cf.plan(method, schema, cf.GDP(1.0)), case.truth
    status: dict[str, int] = {}
    answered, fine, covered = 0, 0, 0
    for seed in range(replications):
        release = seal(method, cf.read(case.frame(seed), schema), plan, SimulatedNoise(seed))
        found: Any = method.infer(release)
        status[found.status] = status.get(found.status, 0) + 1
        low, high = found.conf_int().to_numpy()[-1]
        if np.isfinite(low):
            answered += 1
            fine += found.status == "valid"
            covered += bool(low <= truth <= high) and found.status == "valid"
    top = float(beta.ppf(0.9995, covered + 1, fine - covered)) if covered < fine else 1.0
    return {
        "check": f"{case.model:8} {case.formula:10} last {case.last:<6g}",
        "status": status,
        "answered": answered,
        "ok": fine,
        "covered": covered,
        "passed": top >= 0.93 if np.isfinite(truth) else 100 * answered <= replications,
    }


def run() -> list[dict[str, Any]]:
    """Every design, printed as it comes."""
    rows = []
    for case in cases():
        row = measured(case, REPLICATIONS)
        print(
            f"{row['check']} of {REPLICATIONS}: answered {row['answered']:3}, at ok {row['ok']:3}, covered {row['covered']:3}"
            f"{'' if row['passed'] else '  FAILED'}  {row['status']}",
            flush=True,
        )
        rows.append(row)
    return rows
