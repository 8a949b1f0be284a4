"""confide: valid statistics from private data.

Three steps: plan (public facts), release (records, through one door), infer (the published file).

>>> import confide as cf
>>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
>>> data = cf.read(schema.sample(2_000, seed=1), schema)
>>> release = cf.release(cf.regression.SSP("y ~ x"), data, privacy=cf.GDP(1.0), ledger=None)
>>> result = cf.infer(cf.Release.from_json(release.to_json()))
>>> list(result.params.index)
['Intercept', 'x']
"""

from confide import noise, regression, testing
from confide._version import __version__
from confide.errors import (
    BudgetExceeded,
    ConfideError,
    LedgerBusy,
    NoConversion,
    NoResult,
    PlanError,
    PrivacyError,
    ReleaseError,
    SchemaError,
    SourceError,
)
from confide.gate import infer, plan, release, verify
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP
from confide.ledger import Ledger
from confide.one_call import linear_regression
from confide.protocol import Plan, Question, Release
from confide.registry import methods, register
from confide.schema import Categorical, Design, Integer, Numeric, Provenance, Schema
from confide.sources import read

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "BudgetExceeded",
    "Categorical",
    "ConfideError",
    "Design",
    "Integer",
    "Ledger",
    "LedgerBusy",
    "NoConversion",
    "NoResult",
    "Numeric",
    "Plan",
    "PlanError",
    "PrivacyError",
    "Provenance",
    "PureDP",
    "Question",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaError",
    "SourceError",
    "__version__",
    "infer",
    "linear_regression",
    "methods",
    "noise",
    "plan",
    "read",
    "register",
    "regression",
    "release",
    "testing",
    "verify",
]
