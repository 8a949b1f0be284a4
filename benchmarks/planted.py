"""Planted faults: small mechanisms with ONE fault each, that the audit must catch, and their clean twins, that it must pass.

A new fault is one entry in one of the lists: a query with a wrong bound, a mechanism with a wrong claim, a law, a sampler, a safety
bound, or a method with a wrong line (`benchmarks/planted_toy.py`). The kinds are in `benchmarks/planted_kinds.py`.

    query("bins overlap", "a record on an edge is counted in two bins", overlapping, counts, (0, 1), 1)
"""

from __future__ import annotations

from benchmarks.planted_bins import BINS
from benchmarks.planted_classes import CLASSES
from benchmarks.planted_eptr_ols import EPTR_OLS
from benchmarks.planted_kernel import KERNEL
from benchmarks.planted_kinds import Fault
from benchmarks.planted_lattice import LATTICES
from benchmarks.planted_logistic import LOGISTIC
from benchmarks.planted_mechanisms import LAWS, MECHANISMS, METHODS, SAMPLERS
from benchmarks.planted_moments import MOMENTS
from benchmarks.planted_ops import OPS_FAULTS
from benchmarks.planted_ptr import PTR
from benchmarks.planted_queries import QUERIES, SAFETY
from benchmarks.planted_select import SELECT_FAULTS
from benchmarks.planted_shared import SHARED
from benchmarks.planted_ssp2 import SSP2_FAULTS
from benchmarks.planted_steps import STEPS
from benchmarks.planted_synthetic import SYNTHETIC

__all__ = ["ELSEWHERE", "FAULTS", "Fault"]

FAULTS: list[Fault] = [
    *QUERIES,
    *MECHANISMS,
    *LAWS,
    *SAMPLERS,
    *METHODS,
    *SAFETY,
    *MOMENTS,
    *STEPS,
    *SYNTHETIC,
    *BINS,
    *SHARED,
    *SSP2_FAULTS,
    *CLASSES,
    *EPTR_OLS,
    *PTR,
    *OPS_FAULTS,
    *KERNEL,
    *SELECT_FAULTS,
    *LOGISTIC,
    *LATTICES,
]

#: Faults that the tests of their own method run.
ELSEWHERE = (*CLASSES, *EPTR_OLS, *OPS_FAULTS, *LOGISTIC, *KERNEL, *SELECT_FAULTS, *LATTICES)
