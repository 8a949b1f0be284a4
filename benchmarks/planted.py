"""Planted faults: small mechanisms with ONE fault each, that the audit, the contract or a test must catch, and their clean twins.

A new fault is one entry in one of the lists: a query with a wrong bound, a mechanism with a wrong claim, a law, a sampler, a safety
bound, a method with a wrong line (`benchmarks/planted_toy.py`), or one that breaks a check of the contract. The kinds are in
`benchmarks/planted_kinds.py`; `python -m benchmarks faults` lists all of them with what catches each.

    query("bins overlap", "a record on an edge is counted in two bins", overlapping, counts, (0, 1), 1)
"""

from __future__ import annotations

from benchmarks.planted_bins import BINS
from benchmarks.planted_cells import CELLS
from benchmarks.planted_choices import CHOICES
from benchmarks.planted_classes import CLASSES
from benchmarks.planted_curves import CURVES
from benchmarks.planted_eptr_ols import EPTR_OLS
from benchmarks.planted_kernel import KERNEL
from benchmarks.planted_kinds import Fault
from benchmarks.planted_lattice import LATTICES
from benchmarks.planted_least_squares import LEAST_SQUARES
from benchmarks.planted_logistic import LOGISTIC
from benchmarks.planted_mechanisms import LAWS, MECHANISMS, METHODS, SAMPLERS
from benchmarks.planted_models import CLASS_MODELS
from benchmarks.planted_moments import MOMENTS
from benchmarks.planted_ops import OPS_FAULTS
from benchmarks.planted_ptr import PTR
from benchmarks.planted_queries import QUERIES, SAFETY
from benchmarks.planted_rivals import RIVALS
from benchmarks.planted_select import SELECT_FAULTS
from benchmarks.planted_shared import SHARED
from benchmarks.planted_ssp2 import SSP2_FAULTS
from benchmarks.planted_steps import STEPS
from benchmarks.planted_synthetic import SYNTHETIC

__all__ = ["ELSEWHERE", "FAMILIES", "FAULTS", "Fault", "runs_in"]

#: What the faults are in, and the faults.
FAMILIES: dict[str, list[Fault]] = {
    "queries": QUERIES,
    "mechanisms": MECHANISMS,
    "laws": LAWS,
    "samplers": SAMPLERS,
    "a small method": METHODS,
    "safety bounds": SAFETY,
    "second moments": MOMENTS,
    "descents and minimisers": STEPS,
    "tables of made-up records": SYNTHETIC,
    "bins": BINS,
    "shared release": SHARED,
    "rounds of residuals": SSP2_FAULTS,
    "the least-squares line": LEAST_SQUARES,
    "classifiers": CLASSES,
    "certified lines": EPTR_OLS,
    "propose-test-release": PTR,
    "posterior sampling": OPS_FAULTS,
    "kernel regression": KERNEL,
    "selection": SELECT_FAULTS,
    "logistic regression": LOGISTIC,
    "cells": CELLS,
    "rival lines": RIVALS,
    "curves": CURVES,
    "class models": CLASS_MODELS,
    "selection and quantiles": CHOICES,
    "lattices": LATTICES,
}

FAULTS: list[Fault] = [fault for family in FAMILIES.values() for fault in family]

#: The tests that run the faults of a family, where those of its own method do.
_TESTS = {
    "rounds of residuals": "tests/audit/test_audit_planted.py (long)",
    "the least-squares line": "tests/attacks/test_attack_least_squares.py",
    "classifiers": "tests/methods/classification/test_naive_bayes.py",
    "certified lines": "tests/methods/regression/test_efficient_ptr.py",
    "posterior sampling": "tests/methods/regression/test_posterior_sampling.py",
    "kernel regression": "tests/methods/regression/test_kernel_curve.py",
    "selection": "tests/methods/selection/test_select.py",
    "logistic regression": "tests/methods/regression/test_logistic.py",
    "lattices": "tests/attacks/test_attack_lattice.py",
}


def runs_in(family: str) -> str:
    """The file of tests that runs the faults of a family."""
    return _TESTS.get(family, "tests/audit/test_audit_planted.py")


#: Faults that the tests of their own method run.
ELSEWHERE = tuple(
    fault for name, family in FAMILIES.items() if "audit_planted" not in runs_in(name) for fault in family
)
