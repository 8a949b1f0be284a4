"""What the audit says of every registered method, leaf by leaf, and of planted faults in opaque releases.

    confide lab bench audit_states

prints the tables of evidence/audit.md. Draws of a sampled row: CONFIDE_STATE_RUNS (default 20,000); whole releases 1,000.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import confide as cf
from confide import registry
from confide.audit import Audit, audit
from confide.audit.methods import usual_request
from confide.guarantees.conversion import bare_words
from confide.methods.ptr.safety_bounds import OrderStatistic
from confide.methods.voting.rules import BETWEEN_TWO
from confide_lab.benchmarks.planted.opaque import OPAQUE_FAULTS
from confide_lab.benchmarks.planted.votes import Rarest
from confide_lab.methods import AdaSSP

RUNS = int(os.environ.get("CONFIDE_STATE_RUNS", "20000"))
Row = dict[str, Any]

_LINE = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
_BINARY = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
_COUNT = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Integer(0, 12)})
_KINDS = cf.Schema({"k": cf.Categorical(["u", "v"]), "a": cf.Numeric(-1, 1)})
_TWO = cf.Schema({"v": cf.Categorical(["no", "yes"])})
_THREE = cf.Schema({"v": cf.Categorical(["a", "b", "c"])})
_TAUGHT = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0), "v": cf.Categorical(["a", "b"], on_missing="a")})
_ONE = cf.Schema({"a": cf.Numeric(0, 1, steps=257, on_missing="midpoint")})

_TABLE = cf.Schema(
    {
        "k": cf.Categorical(["u", "v"], on_missing="u"),
        "m": cf.Categorical(["no", "yes"], on_missing="no"),
        "a": cf.Numeric(-1, 1, on_missing=0.0),
        "y": cf.Numeric(0, 1, on_missing=0.0),
        "c": cf.Integer(0, 5, on_missing=0),
    }
)
_COLUMNS = {name: _TABLE[name] for name in ("k", "a", "y")}
_PERSONS, _PANEL = (cf.Schema(_COLUMNS, unit=cf.Unit("person", rows=rows)) for rows in (1, 2))
_DECLARED = cf.Schema(_COLUMNS, rows_per_unit=2)

_FORMULA: Row = {"formula": "y ~ a"}
_CLASSES: Row = {"formula": "k ~ a"}
_VOTE: Row = {"column": "v"}
_INTERVALS_FOR: Row = {"inference": "population"}
_GROUPS: Row = {"formula": "a ~ k"}
_DRAWN: Row = {
    "parameters": {"a": (-1, 1)},
    "blocks": 10,
    "columns": ("a",),
    "seconds": 1.0,
    "allow_uninformative": True,
}


def _drawn(table: np.ndarray[Any, Any], generator: Any) -> np.ndarray[Any, Any]:
    """The records of a block themselves, over and over, as a sampler's draws."""
    return np.resize(table[:, 0], (1_000, 1))


def _high(table: np.ndarray[Any, Any]) -> float:
    """How many records are above a half."""
    return float((table[:, 0] > 0.5).sum())


def _high_mean(table: np.ndarray[Any, Any], noise: Any) -> Any:
    """Their mean, in steps of 2^-20, with noise of scale 1/8."""
    return np.rint(table[table[:, 0] > 0.5, 0].mean() * 2**20) + noise.discrete_laplace(2**17, 1)


def _loss_of_high_mean(count: float) -> float:
    """One of `count` records moves the mean by at most 1/2/(count - 1), which is at most 1/count; rounding adds a step on each side."""
    return 8 * (1 / count + 2.0**-19) if count >= 2 else float("inf")


def _teachers(teachers: int, queries: int, certificate: str, **more: Any) -> tuple[str, Row, cf.Schema]:
    """Teachers whose votes one record turns."""
    own: Row = {"label": "v", "teacher": Rarest(), "public": np.zeros((queries, 1)), "teachers": teachers}
    return "teacher_labels", {**own, "certificate": certificate, "seconds": 1.0, **more}, _TAUGHT


#: label -> (name, parameters, schema); a method of several ways stands here once for each that has other leaves
CASES: dict[str, tuple[str, Row, cf.Schema]] = {
    **{
        name: (name, _FORMULA, _LINE)
        for name in (
            "adaops", "adassp", "analyze_gauss", "binagg", "efficient_ptr", "functional_mechanism", "kernel",
            "output_perturbation", "posterior_sampling", "ssp", "least_squares", "wavelet",
        )
    },
    **{name: (name, _CLASSES, _KINDS) for name in ("class_means", "naive_bayes", "smooth_naive_bayes")},
    "binagg, private tree": ("binagg", {**_FORMULA, "tree": "privtree", "depth": 4}, _LINE),
    "boosted_adassp": ("boosted_adassp", {**_FORMULA, "rounds": 3}, _LINE),
    "efficient_ptr_bayes": ("efficient_ptr_bayes", {**_CLASSES, "least": 10}, _KINDS),
    "efficient_ptr_kernel": (
        "efficient_ptr_kernel", {**_FORMULA, "points": (0.0,), "bandwidth": 0.5, "least": 10.0}, _LINE,
    ),
    "gradient_descent": ("gradient_descent", _FORMULA, _LINE),
    "johnson_lindenstrauss": ("johnson_lindenstrauss", {**_FORMULA, "rows": 200}, _LINE),
    "logistic": ("logistic", _FORMULA, _BINARY),
    "logistic_objective": ("logistic_objective", _FORMULA, _BINARY),
    "logistic_output": ("logistic_output", _FORMULA, _BINARY),
    "logistic_ptr": ("logistic_ptr", _FORMULA, _BINARY),
    "logistic, probit": ("logistic", {**_FORMULA, "link": "probit"}, _BINARY),
    "poisson": ("poisson", _FORMULA, _COUNT),
    "quantile": ("quantile", {"column": "a"}, _ONE),
    "safe_release": (
        "safe_release", {"bound": OrderStatistic(21, 0.0, 1.0, alpha=0.05), "gamma_plan": 8.0}, _ONE,
    ),
    "safe_release, exact": (
        "safe_release", {"bound": OrderStatistic(21, 0.0, 1.0, alpha=0.05), "gamma_plan": 8, "mode": "exact"}, _ONE,
    ),
    "generalized_release": (
        "generalized_release",
        {"mechanism": _high_mean, "loss": _loss_of_high_mean, "statistic": _high, "sensitivity": 1.0, "grid": 2.0**-20, "columns": ("a",)},
        _ONE,
    ),
    "select": (
        "select",
        {"candidates": [AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2)], "runs": 2.0},
        _LINE,
    ),
    "synthetic_table": ("synthetic_table", {**_FORMULA, "cells": 8}, _LINE),
    "correlations": ("correlations", {"columns": ("a", "y")}, _LINE),
    "pca": ("pca", {"columns": ("a", "y")}, _LINE),
    "correlation": ("correlation", {"formula": "a + y"}, _TABLE),
    "counts": ("counts", {"formula": "k * m", **_INTERVALS_FOR}, _TABLE),
    "shares": ("shares", {"formula": "k * m", **_INTERVALS_FOR}, _TABLE),
    "means": ("means", {**_GROUPS, **_INTERVALS_FOR}, _TABLE),
    "totals": ("totals", {**_GROUPS, **_INTERVALS_FOR, "population_size": 1_000}, _TABLE),
    "ratios": ("ratios", {"formula": "a / y ~ k", **_INTERVALS_FOR}, _TABLE),
    "ratios, two rows per unit": ("ratios", {"formula": "a / y ~ k", "inference": "dataset"}, _DECLARED),
    "distinct_counts": ("distinct_counts", {"formula": "k", **_INTERVALS_FOR}, _PERSONS),
    "distinct_shares": ("distinct_shares", {"formula": "k", **_INTERVALS_FOR}, _PERSONS),
    "table_one": ("table_one", {"formula": "a + m ~ k"}, _TABLE),
    "quantiles": ("quantiles", {**_GROUPS, "bins": 8}, _TABLE),
    "quantiles, pure": ("quantiles", {"formula": "a"}, _TABLE),
    "column_ranges": ("column_ranges", {"columns": "a"}, _TABLE),
    "kruskal": ("kruskal", _GROUPS, _TABLE),
    "mann_whitney": ("mann_whitney", _GROUPS, _TABLE),
    "wilcoxon": ("wilcoxon", {"formula": "a"}, _TABLE),
    "huber_line": ("huber_line", _FORMULA, _LINE),
    "within": ("within", _FORMULA, _PANEL),
    "rows_per_unit_table": ("rows_per_unit_table", {}, _PANEL),
    "publication": (
        "publication",
        {"analyses": {"line": cf.regression.LeastSquares("y ~ a"), "counts": cf.tables.Counts("k", **_INTERVALS_FOR)}},
        _TABLE,
    ),
    "proportion": ("proportion", {"column": "m"}, _TABLE),
    "proportion, all levels": ("proportion", {"column": "k"}, _TABLE),
    "difference": ("difference", {"formula": "m ~ k"}, _TABLE),
    "mean_and_variance": ("mean_and_variance", {"column": "a"}, _TABLE),
    "slope": ("slope", _FORMULA, _TABLE),
    "block_posterior": ("block_posterior", {"sampler": _drawn, **_DRAWN}, _TABLE),
    **{f"plurality, {rule}": ("plurality", {**_VOTE, "rule": rule}, _TWO) for rule in BETWEEN_TWO},
    "plurality": ("plurality", _VOTE, _THREE),
    "plurality, distance": ("plurality", {**_VOTE, "rule": "distance"}, _THREE),
    "teacher_labels, gaussian": _teachers(2, 12, "gaussian"),
    "teacher_labels, confident": _teachers(2, 12, "gaussian", confident=(1.5, 1.85)),
    "teacher_labels, laplace": _teachers(6, 1, "laplace"),
    "teacher_labels, distance": _teachers(20, 4, "distance", sigma=0.5, agreement=(100.0, 0.5)),
}  # fmt: skip

#: label -> the level where it is not the usual one under the first relation: ten blocks of a few dozen records need add-remove
_REQUESTS: dict[str, cf.Guarantee] = {
    "block_posterior": cf.PureDP(2, relation="add-remove"),
    "quantiles, pure": cf.PureDP(1, relation="add-remove"),
}


def methods(wanted: Sequence[str] = ()) -> list[Row]:
    """One audit for each, under its first relation but for `_REQUESTS`: no spend may be violated."""
    missing = set(registry.known()) - {name for name, _, _ in CASES.values()}
    rows: list[Row] = [{"check": f"every registered method is audited ({len(CASES)} cases)", "passed": not missing}]
    print(
        "\n| method | level | holds | untested, with the reason | seconds |\n| --- | --- | --- | --- | --- |",
        flush=True,
    )
    for label in sorted(wanted or CASES):
        name, parameters, schema = CASES[label]
        method = registry.make(name, **parameters)
        start = time.perf_counter()
        request = _REQUESTS.get(label) or replace(usual_request(method, schema), relation=method.relations[0])
        found = audit(method, schema, privacy=request, relation=request.relation, runs=RUNS, seed=1)
        spent = time.perf_counter() - start
        relation = "" if request.relation == method.relations[0] else f", {str(request.relation).replace('-', '/')}"
        _line(label, bare_words(request) + relation, found, spent)
        rows.append(
            {
                "check": f"audit of {label}: {found.verdict}",
                "states": [state.to_dict() for state in found.states],
                "seconds": round(spent, 1),
                "passed": found.verdict != "violated",
            }
        )
    return rows


def _line(label: str, level: str, found: Audit, seconds: float) -> None:
    short = {state: state.spend.split(" ", 1)[-1] for state in found.states}
    holds = ", ".join(short[state] for state in found.states if state.verdict == "holds") or "-"
    rest = "; ".join(
        f"**{short[state]}**: {'VIOLATED ' if state.verdict == 'violated' else ''}{state.reason.split('; ')[0]}"
        for state in found.states
        if state.verdict != "holds"
    )
    print(f"| {label} | {level} | {holds} | {rest or '-'} | {seconds:.0f} |", flush=True)


def faults() -> list[Row]:
    """Each planted fault of an opaque release must be violated, its clean twin must not."""
    rows: list[Row] = []
    print(
        "\n| fault | what is wrong | verdict | refuted by | clean twin |\n| --- | --- | --- | --- | --- |", flush=True
    )
    for fault in OPAQUE_FAULTS:
        wrong, clean = fault.caught(10**6), fault.passed(10**6)
        by = ", ".join(dict.fromkeys(one.attack for one in wrong.violated)) or "-"
        print(f"| {fault.name} | {fault.what} | {wrong.verdict} | {by} | {clean.verdict} |", flush=True)
        rows.append(
            {
                "check": f"planted fault: {fault.name}",
                "value": wrong.verdict,
                "clean": clean.verdict,
                "passed": wrong.verdict == "violated" and clean.verdict != "violated",
            }
        )
    return rows


def run() -> list[Row]:
    return [*faults(), *methods()]


if __name__ == "__main__":
    methods(sys.argv[1:])
