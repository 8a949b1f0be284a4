"""The types between the rooms. Nothing here draws noise of its own or reads records."""

from confide.protocol.events import (
    Either,
    Event,
    Opaque,
    PerPath,
    Select,
    Spend,
    Test,
    Together,
    fold,
    leaves,
    mu_squared,
    paths,
)
from confide.protocol.meter import Meter
from confide.protocol.method import Method
from confide.protocol.noise import Noise
from confide.protocol.plan import Allowance, MethodId, Plan, method_parameters
from confide.protocol.proof import check_plan, implies, statements_hold
from confide.protocol.question import Question
from confide.protocol.release import Noisy, Release
from confide.protocol.result import STATUSES, Result
from confide.protocol.source import Source
from confide.protocol.statistic import Gram, RecordMap, Statistic, Total

__all__ = [
    "STATUSES",
    "Allowance",
    "Either",
    "Event",
    "Gram",
    "Meter",
    "Method",
    "MethodId",
    "Noise",
    "Noisy",
    "Opaque",
    "PerPath",
    "Plan",
    "Question",
    "RecordMap",
    "Release",
    "Result",
    "Select",
    "Source",
    "Spend",
    "Statistic",
    "Test",
    "Together",
    "Total",
    "check_plan",
    "fold",
    "implies",
    "leaves",
    "method_parameters",
    "mu_squared",
    "paths",
    "statements_hold",
]
