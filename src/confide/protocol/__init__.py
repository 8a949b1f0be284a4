"""The types between the rooms. Nothing here draws noise of its own or reads records."""

from confide.protocol.events import (
    Cost,
    Either,
    Event,
    Opaque,
    Spend,
    Test,
    Together,
    exact_cost,
    fold,
    hidden_tests,
    leaves,
    mu_squared,
    paths,
    threshold,
)
from confide.protocol.meter import Meter, seal
from confide.protocol.method import FormulaMethod, Method
from confide.protocol.plan import MethodId, Plan, method_parameters, parameters_of
from confide.protocol.question import Question
from confide.protocol.release import Noisy, Release
from confide.protocol.result import STATUSES, Result
from confide.protocol.source import Source
from confide.protocol.spending.allowance import SAFETY_STEPS, Allowance
from confide.protocol.spending.laws import LAWS, Law
from confide.protocol.spending.noise import Noise
from confide.protocol.spending.proof import check_plan, implies, statements_hold
from confide.protocol.spending.proved import Proved
from confide.protocol.statistic import Beginning, Gram, RecordMap, SparseMap, Statistic, Total
from confide.protocol.units.where import Subset, Where

__all__ = [
    "LAWS",
    "SAFETY_STEPS",
    "STATUSES",
    "Allowance",
    "Beginning",
    "Cost",
    "Either",
    "Event",
    "FormulaMethod",
    "Gram",
    "Law",
    "Meter",
    "Method",
    "MethodId",
    "Noise",
    "Noisy",
    "Opaque",
    "Plan",
    "Proved",
    "Question",
    "RecordMap",
    "Release",
    "Result",
    "Source",
    "SparseMap",
    "Spend",
    "Statistic",
    "Subset",
    "Test",
    "Together",
    "Total",
    "Where",
    "check_plan",
    "exact_cost",
    "fold",
    "hidden_tests",
    "implies",
    "leaves",
    "method_parameters",
    "mu_squared",
    "parameters_of",
    "paths",
    "seal",
    "statements_hold",
    "threshold",
]
