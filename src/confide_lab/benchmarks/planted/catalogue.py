"""Planted faults: small mechanisms with ONE fault each, that the audit, the contract or a test must catch, and their clean twins.

A new fault is one entry in one of the lists: a query with a wrong bound, a mechanism with a wrong claim, a law, a sampler, a safety
bound, a method with a wrong line (`confide_lab/benchmarks/planted/toy.py`), or one that breaks a check of the contract. The kinds are in
`confide_lab/benchmarks/planted/kinds.py`; `confide lab bench faults` lists all of them with what catches each.

    query("bins overlap", "a record on an edge is counted in two bins", overlapping, counts, (0, 1), 1)
"""

from __future__ import annotations

from confide_lab.benchmarks.planted.bins import BINS
from confide_lab.benchmarks.planted.cells import CELLS
from confide_lab.benchmarks.planted.choices import CHOICES
from confide_lab.benchmarks.planted.classes import CLASSES
from confide_lab.benchmarks.planted.curves import CURVES
from confide_lab.benchmarks.planted.eptr_ols import EPTR_OLS
from confide_lab.benchmarks.planted.kernel import KERNEL
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.lattice import LATTICES
from confide_lab.benchmarks.planted.least_squares import LEAST_SQUARES
from confide_lab.benchmarks.planted.logistic import LOGISTIC
from confide_lab.benchmarks.planted.mechanisms import LAWS, MECHANISMS, METHODS, SAMPLERS
from confide_lab.benchmarks.planted.models import CLASS_MODELS
from confide_lab.benchmarks.planted.moments import MOMENTS
from confide_lab.benchmarks.planted.ops import OPS_FAULTS
from confide_lab.benchmarks.planted.ptr import PTR
from confide_lab.benchmarks.planted.queries import QUERIES, SAFETY
from confide_lab.benchmarks.planted.reductions import REDUCTIONS
from confide_lab.benchmarks.planted.rivals import RIVALS
from confide_lab.benchmarks.planted.rounds import ROUNDS
from confide_lab.benchmarks.planted.select import SELECT_FAULTS
from confide_lab.benchmarks.planted.shared import SHARED
from confide_lab.benchmarks.planted.steps import STEPS
from confide_lab.benchmarks.planted.synthetic import SYNTHETIC
from confide_lab.benchmarks.planted.votes import VOTES

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
    "tables of synthetic records": SYNTHETIC,
    "bins": BINS,
    "shared release": SHARED,
    "rounds of residuals": ROUNDS,
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
    "votes and teachers": VOTES,
    "components and correlations": REDUCTIONS,
}

FAULTS: list[Fault] = [fault for family in FAMILIES.values() for fault in family]

#: The tests that run the faults of a family, where those of its own method do.
_TESTS = {
    "rounds of residuals": "tests/audit/test_audit_planted.py (long)",
    "the least-squares line": "tests/attacks/test_attack_least_squares.py",
    "classifiers": "tests/methods/classification/test_naive_bayes.py",
    "certified lines": "tests/methods/regression/test_efficient_ptr.py",
    "posterior sampling": "tests/methods/regression/test_posterior_sampling.py",
    "kernel regression": "tests/methods/regression/test_kernel.py",
    "selection": "tests/methods/selection/test_select.py",
    "logistic regression": "tests/methods/regression/test_perturbed_logistic.py",
    "lattices": "tests/attacks/test_attack_lattice.py",
    "votes and teachers": "tests/methods/voting/test_vote_audits.py",
}


def runs_in(family: str) -> str:
    """The file of tests that runs the faults of a family."""
    return _TESTS.get(family, "tests/audit/test_audit_planted.py")


#: Faults that the tests of their own method run.
ELSEWHERE = tuple(
    fault for name, family in FAMILIES.items() if "audit_planted" not in runs_in(name) for fault in family
)
