"""Coverage of `cf.local.fit`: tables protected by `cf.local.protect` and fitted again, in the settings for which intervals are promised.

Terms are normal, truncated to (-1, 1) (the logistic one to (-.5, .5)); all slopes are as `_SLOPES` says; responses are public. The noise is
seeded, and is that of a release otherwise: the same grid, the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtri

import confide as cf
from confide_lab.experiment import Block, Experiment, Quantity

__all__ = ["COVERAGE", "Design", "truncated_normal"]

Array = NDArray[np.float64]
_MISSING = {"intercept": np.nan, "slopes": np.nan}


@dataclass(frozen=True)
class Design:
    """One design. half: terms lie within it of 0; noise: standard deviation over 2 half; errors: (generator, x (n, d)) -> (n,);
    quantile: of an error at x = 0, what the intercept of the line at tau is."""

    loss: str
    n: int
    d: int
    half: float
    noise: float
    errors: Callable[[np.random.Generator, Array], Array]
    tau: float | None = None
    quantile: float = 0.0

    @property
    def slopes(self) -> Array:
        """All 1 for means and log odds; from 1 down to -.5 for quantiles, as in the designs of the page."""
        return np.ones(self.d) if self.tau is None else np.linspace(1.0, -0.5, self.d)


def _normal(g: np.random.Generator, x: Array) -> Array:
    return g.standard_normal(len(x))


def _unequal(g: np.random.Generator, x: Array) -> Array:
    return np.asarray((1 + 0.4 * x[:, 0]) * g.standard_normal(len(x)))


def _line(n: int, d: int, tau: float, law: Any, lam: float = 1.0) -> Design:
    def errors(g: np.random.Generator, x: Array) -> Array:
        return np.asarray(law.rvs(size=len(x), random_state=g))

    return Design("quantile", n, d, 1.0, lam / 2, errors, tau, float(law.ppf(tau)))


DESIGNS = {
    "linear, d=3": Design("squared", 2_000, 3, 1.0, 0.5, _normal),
    "logistic, d=6": Design("logistic", 5_000, 6, 0.5, 0.5, _normal),
    "median, t3 errors, d=3": _line(5_000, 3, 0.5, stats.t(3)),
    "median, exponential errors, d=3": _line(5_000, 3, 0.5, stats.expon()),
    ".75 quantile, normal errors, d=2": _line(5_000, 2, 0.75, stats.norm()),
    ".9 quantile, normal errors, d=2": _line(5_000, 2, 0.9, stats.norm()),
    ".25 quantile, Laplace errors, d=6, n=10000": _line(10_000, 6, 0.25, stats.laplace(), 0.5),
    "median, unequal errors, d=4": Design("quantile", 5_000, 4, 1.0, 0.5, _unequal, 0.5),
}
_ZETA = {"linear, d=3": 0.1}
# Bounds of all coefficients of `cf.local.fit`: slopes are 1 and the intercept 0.
_BOUNDS = {"no bounds": None, "-3 to 3": (-3.0, 3.0), "-1 to 1.5": (-1.0, 1.5)}


def truncated_normal(generator: np.random.Generator, shape: tuple[int, ...], half: float) -> Array:
    """Standard normal draws within (-half, half), by the quantile function."""
    low, high = stats.norm.cdf([-half, half])
    return np.asarray(ndtri(generator.uniform(low, high, shape)))


def covered(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Protect one table, fit it, and count the intervals that hold the line it was made from."""
    design, bounds = DESIGNS[at["design"]], _BOUNDS[at.get("bounds", "no bounds")]
    x = truncated_normal(generator, (design.n, design.d), design.half)
    line = x @ design.slopes
    if design.loss == "logistic":
        y = (generator.random(design.n) < 1 / (1 + np.exp(-line))).astype(float)
    else:
        y = line + design.errors(generator, x)
    names = [f"x{j}" for j in range(design.d)]
    schema = cf.Schema(
        {
            **{name: cf.Numeric(-design.half, design.half, on_missing=0) for name in names},
            "y": cf.Numeric(-1e3, 1e3, on_missing=0),
        },
        dataset="simulated",
    )
    zeta = _ZETA.get(at["design"], 0.2) if at["method"] == "RB" else 0.0
    with TemporaryDirectory() as folder:
        place = Path(folder) / "protected.parquet"
        cf.local.protect(
            {**{name: x[:, j] for j, name in enumerate(names)}, "y": y},
            schema,
            place,
            columns=names,
            public=["y"],
            ledger=None,
            noise=design.noise,
            zeta=zeta,
            accept_verbatim_rows=True,
            seed=int(generator.integers(2**31)),
        )
        result = cf.local.fit(place, f"y ~ {' + '.join(names)}", loss=design.loss, tau=design.tau, bounds=bounds)
    answered = result.status in ("valid", "partial")
    found = {"answered": float(answered), "distance": np.nan, **_MISSING}
    if not answered:
        return found
    limits = result.conf_int().to_numpy()
    truth = np.concatenate([[design.quantile], design.slopes])
    held = ((limits[:, 0] <= truth) & (truth <= limits[:, 1])).astype(float)
    found["slopes"] = float(held[1:].mean())
    found["distance"] = sqrt(float(np.mean(np.square(result.params.to_numpy()[1:] - design.slopes))))
    if np.isfinite(limits[0]).all():
        found["intercept"] = float(held[0])
    return found


COVERAGE = Experiment(
    "zil.coverage",
    "Coverage of 95 % intervals of cf.local.fit",
    (
        Block(
            "coverage",
            {"design": tuple(DESIGNS)},
            ("SL", "RB"),
            covered,
            (Quantity("answered"), Quantity("slopes"), Quantity("intercept"), Quantity("rmse", "rms", of="distance")),
            100,
            titles={"SL": "SL, no row without noise", "RB": "RB, a share of rows without noise"},
            title="Share of intervals that hold the line that made the records; nominal .95",
        ),
        Block(
            "bounds",
            {"design": ("linear, d=3", "logistic, d=6"), "bounds": tuple(_BOUNDS)},
            ("SL", "RB"),
            covered,
            (Quantity("answered"), Quantity("slopes"), Quantity("intercept"), Quantity("rmse", "rms", of="distance")),
            200,
            titles={"SL": "SL, no row without noise", "RB": "RB, a share of rows without noise"},
            title="The same where bounds= gives each coefficient the same bounds",
        ),
    ),
    sources=("evidence/methods/local.md",),
    notes=(
        "noise sd over the columns' width .5; .25 for the Laplace errors; zeta .1 for the line and .2 else, with RB alone",
        "answered: status valid or partial; intervals are counted among those. A quantile line's intercept has an answer with RB alone",
        "slopes under unequal errors: those of the line under normal noise of .8 residual standard deviations, as the title of a fit says",
    ),
)
