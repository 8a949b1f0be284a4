"""One release of every registered method with a fixed seed, as text: what a change of the frame must not move.

`python -m tests.golden.golden_cases` writes `releases.json` anew; do that only for a method whose own numbers were at fault.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info, threadpool_limits

import confide as cf
from confide import classification
from confide.core import BudgetItem, OpaqueRelease, exact_cost, leaves, method_parameters
from confide.core.events import event_to_dict
from confide.core.exact import array_to_dict, digest, fraction_to_text, pack
from confide.methods.quantiles.ranges import Ranges
from confide.methods.synthesis.table import SyntheticTable
from confide.noise import SimulatedNoise
from confide.selection import Select
from confide.sums.ranges import RangedMethod
from confide_lab.methods import (
    AdaOPS,
    AdaSSP,
    AnalyzeGauss,
    BinAgg,
    BoostedAdaSSP,
    FunctionalMechanism,
    GradientDescent,
    JohnsonLindenstrauss,
    NaiveBayes,
    OutputPerturbation,
    PosteriorSampling,
    SmoothNaiveBayes,
    Wavelet,
)
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticOutput, LogisticPTR
from confide_lab.methods.quantile.ranks import Quantile
from tests.in_place import in_place

__all__ = ["CASES", "FILE", "SCHEMA", "machine", "record", "schema_of"]

FILE = Path(__file__).with_name("releases.json")

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 4, on_missing="midpoint"),
        "w": cf.Numeric(-1, 1),
        "g": cf.Categorical(["a", "b", "c"]),
        "y": cf.Numeric(-3, 9),
        "z": cf.Integer(0, 1),
    }
)
#: Of methods that take the number of records as public: no record is left out.
COMPLETE = cf.Schema(
    {
        "x": cf.Numeric(0, 4, on_missing="midpoint"),
        "y": cf.Numeric(-3, 9, on_missing="midpoint"),
        "g": cf.Categorical(["a", "b", "c"], on_missing="a"),
        "s": cf.Categorical(["no", "yes"], on_missing="no"),
        "z": cf.Integer(0, 1, on_missing=0),
        "v": cf.Integer(0, 25, on_missing=0),
    }
)
_PUBLIC = [[0.5, 1.0], [3.5, 8.0], [2.0, -2.0]]


class NearestMean:
    """A teacher: the class whose mean is nearest."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, x: np.ndarray, y: np.ndarray) -> NearestMean:
        self.known = np.unique(y)
        self.means = np.array([x[y == k].mean(axis=0) for k in self.known])
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.known[((x[:, None] - self.means) ** 2).sum(axis=2).argmin(axis=1)]


class FirstHalf(NearestMean):
    """A teacher that agrees with all others."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (x[:, 0] > 2).astype(int)


#: Of methods about persons with several rows.
PERSONS = cf.Schema(SCHEMA.columns, unit=cf.Unit("pid"))
#: Bounds far from the values, which ranges have to find.
WIDE = cf.Schema(
    {**SCHEMA.columns, "x": cf.Numeric(0, 4_000), "w": cf.Numeric(-500, 1_000), "y": cf.Numeric(-3_000, 9_000)}
)
_MIXED = "y ~ x + w + g"
_PLAIN = "y ~ x + w"


def drawn_rows(table: Any, generator: Any) -> Any:
    """The rows themselves, as a sampler's draws."""
    return table


# its entry point is there where the package was installed since it was written
cf.register(cf.ptr.GeneralizedRelease)


def _large(table: np.ndarray) -> float:
    """How many records are above 1."""
    return float((table[:, 0] > 1).sum())


def _large_mean(table: np.ndarray, noise: Any) -> Any:
    """Their mean, in steps of 2^-20, with noise of scale 1/8."""
    return np.rint(table[table[:, 0] > 1, 0].mean() * 2**20) + noise.discrete_laplace(2**17, 1)


def _loss(k: float) -> float:
    return 8 * (4 / k + 2.0**-19) if k >= 1 else float("inf")


#: name -> (method, guarantee)
_CASES: Mapping[str, tuple[Any, Any]] = {
    "adaops": (AdaOPS(_PLAIN), cf.GDP(1.0, 1e-6)),
    "adassp": (AdaSSP(_MIXED), cf.GDP(1.0)),
    "analyze_gauss": (AnalyzeGauss(_MIXED), cf.GDP(1.0)),
    "binagg": (BinAgg(_PLAIN), cf.GDP(1.0)),
    "boosted_adassp": (BoostedAdaSSP(_MIXED, rounds=3), cf.GDP(1.0)),
    "class_means": (classification.ClassMeans("g ~ x + w"), cf.GDP(1.0)),
    "efficient_ptr": (cf.regression.EfficientPTR(_PLAIN), cf.GDP(1.0, 1e-5)),
    "efficient_ptr_bayes": (classification.EfficientPTRBayes("g ~ x + w", c0=0.1), cf.GDP(1.0, 1e-5)),
    "efficient_ptr_kernel": (
        cf.curves.EfficientPTRKernel("y ~ x", points=[1.0, 2.0], bandwidth=0.5, least=40.0),
        cf.GDP(2.0, 1e-4),
    ),
    "functional_mechanism": (FunctionalMechanism(_PLAIN), cf.PureDP(1.0)),
    "gradient_descent": (GradientDescent(_PLAIN), cf.GDP(1.0)),
    "johnson_lindenstrauss": (JohnsonLindenstrauss(_PLAIN), cf.ApproxDP(1.0, 1e-6)),
    "kernel": (cf.curves.Kernel("y ~ x"), cf.GDP(1.0)),
    "logistic_objective": (LogisticObjective("z ~ x + w"), cf.ApproxDP(1.0, 1e-6)),
    "naive_bayes": (NaiveBayes("g ~ x + w"), cf.GDP(1.0)),
    "output_perturbation": (OutputPerturbation(_PLAIN), cf.GDP(1.0)),
    "posterior_sampling": (PosteriorSampling(_PLAIN), cf.GDP(1.0, 1e-6)),
    "adaops ridge": (AdaOPS(_PLAIN, target="ridge"), cf.GDP(1.0, 1e-6)),
    "posterior_sampling ridge": (PosteriorSampling(_PLAIN, target="ridge"), cf.GDP(1.0, 1e-6)),
    "correlation": (cf.tests.Correlation("x + y"), cf.GDP(1.0)),
    "counts": (cf.tables.Counts("g * cut(x, 1, 3)", inference="population"), cf.GDP(1.0)),
    "means": (cf.tables.Means("y + w ~ g", inference="population"), cf.GDP(1.0)),
    "shares": (cf.tables.Shares("g * z", within="g", inference="dataset"), cf.GDP(1.0)),
    "totals": (cf.tables.Totals("y ~ g", inference="dataset"), cf.GDP(1.0)),
    "ratios": (cf.tables.Ratios("y / x ~ g", inference="population"), cf.GDP(1.0)),
    "quantiles": (cf.tables.Quantiles("x ~ g", bins=16), cf.GDP(1.0)),
    "quantiles fitted": (cf.tables.Quantiles("x ~ g", fitted=128), cf.GDP(1.0)),
    "publication": (
        cf.Publication(
            {
                "line": cf.regression.SSP(_PLAIN),
                "few": cf.regression.LeastSquares("y ~ x", where="w >= 0 & g == 'a'"),
                "classes": cf.classification.ClassMeans("g ~ x"),
            },
            shares={"line": 2},
        ),
        cf.GDP(1.0),
    ),
    "kruskal": (cf.tests.Kruskal("x ~ g"), cf.GDP(1.0)),
    "mann_whitney": (cf.tests.MannWhitney("x ~ cut(w, 0)"), cf.GDP(1.0)),
    "table_one": (cf.tables.TableOne("x + w + g ~ cut(y, 1)", medians=("x",)), cf.GDP(1.0)),
    "wilcoxon": (cf.tests.Wilcoxon("x - w"), cf.GDP(1.0)),
    "quantile": (Quantile("x", (0.25, 0.5)), cf.PureDP(1.0)),
    "safe_release": (
        cf.ptr.SafeRelease(cf.ptr.OrderStatistic(750, 0.0, 4.0, 0.4), ("x",), gamma_plan=30),
        cf.GDP(1.0, 1e-4),
    ),
    "safe_release exact": (
        cf.ptr.SafeRelease(cf.ptr.OrderStatistic(750, 0.0, 4.0, 0.4), ("x",), mode="exact", gamma_plan=30),
        cf.ApproxDP(1.0, 1e-4),
    ),
    "generalized_release": (
        cf.ptr.GeneralizedRelease(_large_mean, _loss, _large, 1.0, grid=2.0**-20, columns=("x",)),
        cf.ApproxDP(1.0, 1e-4),
    ),
    "select": (
        Select(
            (
                {"method": "ssp", "formula": "y ~ x"},
                {"method": "ssp", "formula": _PLAIN},
            )
        ),
        cf.ApproxDP(3.0, 1e-6),
    ),
    "smooth_naive_bayes": (SmoothNaiveBayes("g ~ x + w"), cf.PureDP(1.0)),
    "logistic": (cf.regression.Logistic("z ~ x + w + g"), cf.GDP(1.0)),
    "logistic probit": (cf.regression.Logistic("z ~ x + w + g", link="probit"), cf.GDP(1.0)),
    "poisson": (cf.regression.Poisson("z ~ x + w + g"), cf.GDP(1.0)),
    "logistic_output": (LogisticOutput("z ~ x + w"), cf.GDP(1.0)),
    "logistic_ptr": (LogisticPTR("z ~ x + w"), cf.GDP(1.0, 1e-6)),
    "ssp": (cf.regression.SSP(_MIXED), cf.GDP(1.0)),
    "least_squares": (cf.regression.LeastSquares(_MIXED), cf.GDP(1.0)),
    "huber_line": (HuberLine(_MIXED), cf.GDP(1.0)),
    "synthetic_table": (SyntheticTable(_PLAIN), cf.GDP(1.0)),
    "within": (cf.regression.Within(_MIXED), cf.GDP(1.0)),
    "distinct_counts": (cf.tables.DistinctCounts("any(g == 'a' & w > 0) * z", inference="population"), cf.GDP(1.0)),
    "distinct_shares": (
        cf.tables.DistinctShares("number(g == 'a', 1, 2) * z", within="z", inference="dataset"),
        cf.GDP(1.0),
    ),
    "wavelet": (Wavelet("y ~ x"), cf.GDP(1.0)),
    "proportion": (cf.intervals.Proportion("s"), cf.PureDP(1.0)),
    "proportion confidence": (cf.intervals.Proportion("s", kind="confidence"), cf.GDP(1.0)),
    "proportion levels": (cf.intervals.Proportion("g"), cf.PureDP(1.0)),
    "mean_and_variance poisson": (cf.intervals.MeanAndVariance("v", kind="poisson"), cf.PureDP(1.0)),
    "mean_and_variance": (cf.intervals.MeanAndVariance("x"), cf.GDP(1.0)),
    "mean_and_variance laplace": (cf.intervals.MeanAndVariance("x"), cf.PureDP(1.0)),
    "slope": (cf.intervals.Slope("y ~ x"), cf.GDP(1.0)),
    "slope laplace": (cf.intervals.Slope("y ~ x"), cf.PureDP(1.0)),
    "quantiles pure": (cf.tables.Quantiles("x", quantiles=(0.25, 0.5)), cf.PureDP(1.0)),
    "correlations": (cf.reduction.Correlations("x + w + y"), cf.GDP(1.0)),
    "pca": (cf.reduction.PCA("x + w + y"), cf.GDP(1.0)),
    "pca covariance": (cf.reduction.PCA("x + w + y", 2, "covariance"), cf.GDP(1.0)),
    "teacher_labels": (
        cf.voting.TeacherLabels(
            "g", NearestMean(), _PUBLIC, 30, features=("x", "y"), certificate="gaussian", seconds=3.0, jobs=4
        ),
        cf.GDP(3.0),
    ),
    "teacher_labels distance": (
        cf.voting.TeacherLabels(
            "s", FirstHalf(), _PUBLIC, 30, ("x", "y"), "distance", 1.0, agreement=(30.0, 1.0), seconds=3.0, jobs=4
        ),
        cf.ApproxDP(20.0, 1e-2),
    ),
    "plurality optimal": (cf.voting.Plurality("z"), cf.ApproxDP(1.0, 1e-6)),
    "plurality generalized": (cf.voting.Plurality("z", "generalized"), cf.ApproxDP(1.0, 1e-6)),
    "plurality": (cf.voting.Plurality("g"), cf.PureDP(1.0)),
    "plurality distance": (cf.voting.Plurality("g", "distance"), cf.ApproxDP(1.0, 1e-6)),
    "difference": (cf.intervals.Difference("s ~ z"), cf.PureDP(1.0)),
    "block_posterior": (
        cf.intervals.BlockPosterior(drawn_rows, {"x": (0, 4)}, blocks=10, columns=("x",), seconds=2.5, jobs=10),
        cf.PureDP(10.0),
    ),
}


def _declared(method: Any) -> Any:
    """The method without ranges, where it may find some: its sums are those of the declared bounds."""
    return replace(method, bounds="declared") if isinstance(method, RangedMethod) else method


CASES: Mapping[str, tuple[Any, Any]] = {
    **{name: (_declared(method), privacy) for name, (method, privacy) in _CASES.items()},
    "column_ranges": (Ranges("x + y"), cf.GDP(1.0)),
    "means in ranges": (cf.tables.Means("x + y ~ g", inference="population", bounds="found"), cf.GDP(1.0)),
    "least_squares in ranges": (cf.regression.LeastSquares(_MIXED, bounds="found"), cf.GDP(1.0)),
    "logistic in ranges": (cf.regression.Logistic("z ~ x + w", bounds="found"), cf.GDP(1.0)),
}

#: Cases on a schema of their own.
_OWN = {
    "teacher_labels",
    "block_posterior",
    "proportion",
    "mean_and_variance",
    "slope",
    "difference",
}


def schema_of(method: Any) -> cf.Schema:
    """The schema of a case's method."""
    if method.name in ("within", "distinct_counts", "distinct_shares"):
        return PERSONS
    if isinstance(method, RangedMethod) and method.bounds == "found":
        return WIDE
    return COMPLETE if method.name in _OWN else SCHEMA


def frame_of(schema: cf.Schema) -> pd.DataFrame:
    """Records of a case; persons have three rows."""
    frame = (SCHEMA if schema is WIDE else schema).sample(1500, 7)
    return frame.assign(pid=frame["pid"] // 3) if schema is PERSONS else frame


def record(name: str) -> dict[str, Any]:
    """Plan costs, noisy integers, public numbers and results of one case; floats as hex, long lists as digests."""
    with threadpool_limits(1):  # sums of several threads have other last bits
        return _record(name)


def _record(name: str) -> dict[str, Any]:
    method, privacy = CASES[name]
    schema = schema_of(method)
    source = cf.read(frame_of(schema), schema)
    relation = method.relations[0]
    plan = cf.plan(method, schema, privacy, n=1500 if relation == "substitute" else None)
    with in_place():  # a block that runs out of time on a busy machine would be another number
        release = cf.release(method, source, privacy, n=plan.n, ledger=None, noise=SimulatedNoise(11))
    cost = exact_cost(plan.event)
    result = cf.infer(release)
    return {
        "version": method.version,
        "event": digest(event_to_dict(plan.event)),
        "spends": {leaf.name: _leaf(leaf) for leaf in leaves(plan.event)},
        "cost": None
        if cost is None
        else [cost.kind.__name__, fraction_to_text(cost.amount), fraction_to_text(cost.delta)],
        "guarantees": [str(one) for one in plan.guarantees],
        "parameters": digest(pack({k: v for k, v in method_parameters(method).items() if _plain(v)})),
        "status": [release.status, result.status],
        "statistics": {key: _array(noisy.values) for key, noisy in sorted(release.statistics.items())},
        "public": {key: _array(np.asarray(value)) for key, value in sorted(release.public.items())},
        "result": {
            key: _array(np.asarray(value))
            for key in ("estimates", "covariance", "noise_variance", "values", "shares", "means", "df")
            if (value := getattr(result, key, None)) is not None and np.asarray(value).dtype.kind in "fiu"
        },
    }


def _leaf(leaf: BudgetItem | OpaqueRelease) -> list[str]:
    if isinstance(leaf, OpaqueRelease):
        return ["opaque", str(leaf.guarantee)]
    return [leaf.law, fraction_to_text(leaf.sensitivity), fraction_to_text(leaf.scale), fraction_to_text(leaf.step)]


def _plain(value: Any) -> bool:
    try:
        pack(value)
    except TypeError:
        return False
    return True


def _array(values: Any) -> Any:
    return array_to_dict(values)


def machine() -> str:
    """What made the numbers: the kernel of the linear algebra, and what NumPy's functions are compiled for here. Others may move the last
    bits of a later round.
    """
    blas = {
        f"{one['internal_api']} {one.get('architecture', '')}" for one in threadpool_info() if one["user_api"] == "blas"
    }
    functions = json.dumps(np.lib.introspect.opt_func_info(), sort_keys=True)
    return f"{', '.join(sorted(blas))}; functions {hashlib.sha256(functions.encode()).hexdigest()[:12]}"


def main(names: list[str]) -> None:
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    if not names:  # the others stay those of the machine that recorded them
        known["machine"] = machine()
    for name in names or sorted(CASES):
        known[name] = record(name) | ({"machine": machine()} if names else {})
        sys.stdout.write(f"{name}: {known[name]['status']}\n")
    FILE.write_text(json.dumps(known, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
