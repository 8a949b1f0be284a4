"""Private selection: a mechanism is run a random number of times and the best run is released. Run-count laws, bounds, calibration."""

from __future__ import annotations

from confide.guarantees.selection.bounds import profile_delta, profile_epsilon, renyi_epsilon, tradeoff_delta
from confide.guarantees.selection.calibration import Base, calibrate_selection
from confide.guarantees.selection.laws import (
    Binomial,
    Fixed,
    Poisson,
    RunLaw,
    TruncatedNegativeBinomial,
    run_law,
)

__all__ = [
    "Base",
    "Binomial",
    "Fixed",
    "Poisson",
    "RunLaw",
    "TruncatedNegativeBinomial",
    "calibrate_selection",
    "profile_delta",
    "profile_epsilon",
    "renyi_epsilon",
    "run_law",
    "tradeoff_delta",
]
