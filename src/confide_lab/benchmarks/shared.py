"""Coverage of what one shared release of SSP answers: two responses, a quadratic, an interaction, adjusted predictions, re-centring.

1-GDP, add-remove, default (robust) covariance; designs and seeds that no setting was chosen on. The interval rule is that of
`confide_lab.benchmarks.coverage`: a claim fails only when a 99.9 % Clopper-Pearson interval misses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide.regression import SSP
from confide_lab.benchmarks.coverage import consistent, interval
from confide_lab.benchmarks.runs import table

Array = NDArray[np.float64]

_NORTH = ("N", "E", "S", "W")
_SURVEY = cf.Schema(
    {
        "age": cf.Numeric(18, 90),
        "dose": cf.Numeric(0, 4),
        "region": cf.Categorical(list(_NORTH)),
        "y1": cf.Numeric(-14, 26),
        "y2": cf.Numeric(-14, 26),
    }
)
_CENTRE = 5.0


def _records(n: int, generator: np.random.Generator) -> dict[str, Any]:
    """Features that are not uniform, and two residuals with correlation .6; sd 2 for both."""
    age = 18 + 72 * generator.beta(2.0, 2.5, n)
    dose = 4 * generator.beta(1.5, 1.5, n)
    region = generator.choice(_NORTH, n, p=(0.3, 0.3, 0.2, 0.2))
    errors = 2 * generator.standard_normal((n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    return {"age": age, "dose": dose, "region": region, "e": errors}


def _release(formula: str, records: dict[str, Any], r: int, **settings: Any) -> Any:
    data = cf.read({name: records[name] for name in _SURVEY.names}, _SURVEY)
    made = cf.release(SSP(formula, **settings), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(r))
    return cf.infer(made)


def _hits(limits: Any, truth: Any) -> dict[str, Any]:
    bounds = np.asarray(limits, dtype=float)
    return {f"hit_{j}": low <= t <= high for j, ((low, high), t) in enumerate(zip(bounds, truth, strict=True))}


def outcomes(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """Both responses' intervals, and whether the true "same slope of dose" is rejected at 5 %, alone and with that of age."""
    n, r = at["n"], at["replication"]
    records = _records(n, np.random.default_rng((811, n, r)))
    mean = 0.05 * (records["age"] - 50) + 1.5 * records["dose"]
    records["y1"], records["y2"] = mean + records["e"][:, 0], 2 - 0.1 * (records["age"] - 50) + 1.5 * records["dose"]
    records["y2"] = records["y2"] + records["e"][:, 1]
    result = _release("y1 + y2 ~ age + dose", records, r, products=at["products"], recenter=at["recenter"])
    if result.status != "valid":
        return {"ok": False}
    truth = [-2.5, 0.05, 1.5, 7.0, -0.1, 1.5]
    return {
        "ok": True,
        "alone": result.wald_test("y1: dose = y2: dose").pvalue < 0.05,
        "joint": result.wald_test("y1: dose = y2: dose, y1: age - y2: age = 0.15").pvalue < 0.05,
        **_hits(result.conf_int(), truth),
    }


def curves(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """Intervals of a line in dose and its square, or in dose by region; and of adjusted predictions from it."""
    n, r, kind = at["n"], at["replication"], at["kind"]
    records = _records(n, np.random.default_rng((822, n, r)))
    dose, south = records["dose"], (records["region"] == "S").astype(float)
    if kind == "quadratic":
        mean = 1 + 3 * dose - 0.5 * dose**2
        formula, truth = "y1 ~ dose + I(dose**2)", [1.0, 3.0, -0.5]
        request: dict[str, Any] = {"at": {"dose": [0.5, 2.0, 3.5]}}
        means = [1 + 3 * d - 0.5 * d * d for d in (0.5, 2.0, 3.5)]
    else:
        mean = 1 + dose + south - 0.75 * dose * south
        formula, truth = "y1 ~ dose*region", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -0.75, 0.0]
        request = {"by": "region"}
        means = [3.0, 3.0, 2.5, 3.0]
    records["y1"] = mean + records["e"][:, 0]
    records["y2"] = records["e"][:, 1]
    result = _release(formula, records, r, recenter=at["recenter"])
    if result.status != "valid":
        return {"ok": False}
    names = list(result.names)
    if kind != "quadratic":  # terms in the formula's own order
        order = ["Intercept", "region[T.E]", "region[T.S]", "region[T.W]", "dose"]
        order += [f"dose:region[T.{level}]" for level in "ESW"]
        truth = [dict(zip(order, truth, strict=True))[name] for name in names]
    adjusted = result.adjusted_predictions(**request)
    found = _hits(result.conf_int(), truth)
    return {"ok": True, **found, **{f"mean_{k}": v for k, v in enumerate(_hits(adjusted.conf_int(), means).values())}}


def looseness(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """Relative error and intervals of slopes at d = 5, n = 1000 with feature bounds `loose` times as wide as the features."""
    loose, r, d, n = at["loose"], at["replication"], 5, 1_000
    generator = np.random.default_rng((833, r))
    x = generator.uniform(size=(n, d))
    beta = generator.uniform(1, 2, d)
    y = x @ beta + generator.standard_normal(n)
    reach = (loose - 1) / 2
    columns: dict[str, Any] = {f"x{j}": cf.Numeric(-reach, 1 + reach) for j in range(d)}
    schema = cf.Schema({**columns, "y": cf.Numeric(-1, 9)})
    method = SSP("y ~ " + " + ".join(columns), cov=at["cov"], recenter=at["recenter"], clipping_check=False)
    made = cf.release(
        method,
        cf.read(np.column_stack([x, y]), schema),
        cf.GDP(1.0),
        ledger=None,
        noise=cf.noise.SimulatedNoise(7_000 + r),
    )
    result = cf.infer(made)
    slopes = result.params.to_numpy()[1:]
    found: dict[str, Any] = {
        "ok": result.status == "valid",
        "distance": float(np.linalg.norm(slopes - beta) / np.linalg.norm(beta)),
    }
    if result.status == "valid":
        found |= _hits(result.conf_int().to_numpy()[1:], beta)
    return found


def _coverage(check: str, cell: Any, before: str, low: float = 0.93, high: float = 1.0) -> list[dict[str, Any]]:
    ok = cell[cell["ok"] == 1]
    names = [name for name in cell if str(name).startswith(before) and ok[name].notna().any()]
    share = len(ok) / len(cell)
    if len(ok) < 20:
        print(f"       {check}: {share:.2f} of the runs are ok, too few to judge", flush=True)
        return [{"check": check, "ok": share, "passed": True}]
    hits = ok[names].to_numpy(bool)
    mean, a, b = interval(hits)
    row = {
        "check": check,
        "value": mean,
        "interval": [a, b],
        "low": low,
        "high": high,
        "passed": consistent(hits, low, high),
        "ok": share,
    }
    print(
        f"{'ok    ' if row['passed'] else 'FAILED'} {check}: {mean:.3f} [{a:.3f}, {b:.3f}] ok {share:.2f}", flush=True
    )
    return [row]


def _outcome_rows(reps: int) -> list[dict[str, Any]]:
    grid = {"n": (1_000, 5_000), "products": (False, True), "recenter": (False, "auto")}
    rows = []
    for at, cell in table("shared-outcomes", grid, outcomes, reps).groupby(list(grid), sort=False):
        n, products, recenter = at  # type: ignore[misc]
        said = f"n={n} products={bool(products)} recenter={recenter}"
        rows += _coverage(f"two responses, {said}", cell, "hit_")
        for kind, most in (("alone", 0.07), ("joint", 0.07)):
            # the size of a true test of equality; upper bounds reject less often than 5 %, so only too many count
            rows += _coverage(f"size of a test across, {kind}, {said}", cell, kind, 0.0, most)
    return rows


def _curve_rows(reps: int) -> list[dict[str, Any]]:
    grid = {"n": (2_000, 10_000), "kind": ("quadratic", "interaction"), "recenter": (False, "auto")}
    rows = []
    for (n, kind, recenter), cell in table("shared-curves", grid, curves, reps).groupby(list(grid), sort=False):
        said = f"{kind}, n={n} recenter={recenter}"
        rows += _coverage(f"coefficients of a {said}", cell, "hit_")
        rows += _coverage(f"adjusted predictions of a {said}", cell, "mean_")
    return rows


#: Median relative errors to expect at looseness 1, 4, 10 (classical, re-centred).
_EXPECTED = {1.0: 0.092, 4.0: 0.13, 10.0: 0.36}


def _loose_rows(reps: int) -> list[dict[str, Any]]:
    grid = {"loose": (1.0, 4.0, 10.0), "cov": ("classical", "robust"), "recenter": (False, "auto")}
    rows = []
    for (loose, cov, recenter), cell in table("shared-looseness", grid, looseness, reps).groupby(
        list(grid), sort=False
    ):
        said = f"{loose:g}x loose, {cov}, recenter={recenter}"
        median = float(cell["distance"].median())
        row = {"check": f"median error, {said}", "value": median, "passed": True, "ok": float(cell["ok"].mean())}
        print(f"       {row['check']}: {median:.3g} ok {row['ok']:.2f}", flush=True)
        rows.append(row)
        rows += _coverage(f"coverage, {said}", cell, "hit_")
    return rows


def run(reps: int = 200) -> list[dict[str, Any]]:
    return [*_loose_rows(60), *_outcome_rows(reps), *_curve_rows(reps)]
