"""confide: valid statistics from private data.

Three steps: plan (public facts), release (records, through one gate), infer (the published file).

>>> import confide as cf
>>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
>>> data = cf.read(schema.sample(2_000, seed=1), schema)
>>> release = cf.release(cf.regression.LeastSquares("y ~ x"), data, privacy=cf.GDP(1.0), ledger=None)
>>> result = cf.infer(cf.Release.from_json(release.to_json()))
>>> list(result.params.index)
['Intercept', 'x']

What may be asked, in the order in which people ask:

    cf.tables          Counts, shares, means, totals, medians, by group
    cf.tests           Tests: t, F, chi-square, ranks, correlation
    cf.regression      Regression: lines, odds, rates, curves
    cf.classification  Classes: means and shares of each, predicting the class
    cf.Publication     Several questions on one budget
    cf.synthesis       A file of synthetic rows to share
    cf.local           Records protected before anyone sees them
    cf.intervals       One share, mean or slope with a posterior; pure quantiles
    cf.reduction       Correlations and principal components
    cf.voting          Votes: which of several most records have; labels by teachers
    cf.select          The best of several methods or settings
    cf.ptr             An estimator of your own
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from confide._version import __version__

if TYPE_CHECKING:
    from confide import (
        aggregates,
        audit,
        classification,
        curves,
        guarantees,
        noise,
        ptr,
        regression,
        synthesis,
        testing,
    )
    from confide.advice import advise
    from confide.disclosures import disclosure
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
    from confide.faces import intervals, local, reduction, tables, tests, voting
    from confide.faces.calls.block_posterior import private_block_posterior
    from confide.faces.calls.bounds import find_bounds
    from confide.faces.calls.results_file import write_results
    from confide.faces.regression import linear_regression, logistic_regression, poisson_regression, within_regression
    from confide.faces.selection import select
    from confide.faces.synthesis import combine, refit, synthesize
    from confide.gate import infer, plan, precision, release, verify
    from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, PureDP, TradeOff
    from confide.ledger import Ledger
    from confide.protocol import Plan, Question, Release
    from confide.publication import Publication
    from confide.registry import list_methods, register
    from confide.results.compare import compare
    from confide.schema import (
        Categorical,
        Clusters,
        Design,
        Integer,
        Numeric,
        Provenance,
        Schema,
        SurveyDesign,
        Typical,
        Unit,
    )
    from confide.sources import read, sql

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "BudgetExceeded",
    "Categorical",
    "Clusters",
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
    "Publication",
    "PureDP",
    "Question",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaError",
    "SourceError",
    "SurveyDesign",
    "TradeOff",
    "Typical",
    "Unit",
    "__version__",
    "advise",
    "aggregates",
    "audit",
    "classification",
    "combine",
    "compare",
    "contributions",
    "curves",
    "disclosure",
    "find_bounds",
    "guarantees",
    "infer",
    "intervals",
    "linear_regression",
    "list_methods",
    "local",
    "logistic_regression",
    "noise",
    "plan",
    "poisson_regression",
    "precision",
    "private_block_posterior",
    "ptr",
    "read",
    "reduction",
    "refit",
    "register",
    "regression",
    "release",
    "select",
    "sql",
    "synthesis",
    "synthesize",
    "tables",
    "testing",
    "tests",
    "verify",
    "voting",
    "within_regression",
    "write_results",
]

_ROOMS = (
    "aggregates",
    "audit",
    "classification",
    "curves",
    "guarantees",
    "noise",
    "ptr",
    "regression",
    "synthesis",
    "testing",
)
_HOMES = {
    "ApproxDP": "confide.guarantees",
    "BudgetExceeded": "confide.errors",
    "Categorical": "confide.schema",
    "Clusters": "confide.schema",
    "ConfideError": "confide.errors",
    "Design": "confide.schema",
    "GDP": "confide.guarantees",
    "Integer": "confide.schema",
    "Ledger": "confide.ledger",
    "LedgerBusy": "confide.errors",
    "NoConversion": "confide.errors",
    "NoResult": "confide.errors",
    "Numeric": "confide.schema",
    "Plan": "confide.protocol",
    "PlanError": "confide.errors",
    "PrivacyError": "confide.errors",
    "Provenance": "confide.schema",
    "Publication": "confide.publication",
    "PureDP": "confide.guarantees",
    "Question": "confide.protocol",
    "RDP": "confide.guarantees",
    "Release": "confide.protocol",
    "ReleaseError": "confide.errors",
    "Schema": "confide.schema",
    "SchemaError": "confide.errors",
    "SourceError": "confide.errors",
    "SurveyDesign": "confide.schema",
    "TradeOff": "confide.guarantees",
    "Typical": "confide.schema",
    "Unit": "confide.schema",
    "ZCDP": "confide.guarantees",
    "advise": "confide.advice",
    "compare": "confide.results.compare",
    "combine": "confide.faces.synthesis",
    "contributions": "confide.faces.calls.units",
    "disclosure": "confide.disclosures",
    "find_bounds": "confide.faces.calls.bounds",
    "private_block_posterior": "confide.faces.calls.block_posterior",
    "infer": "confide.gate",
    "intervals": "confide.faces.intervals",
    "linear_regression": "confide.faces.regression",
    "list_methods": "confide.registry",
    "local": "confide.local",
    "logistic_regression": "confide.faces.regression",
    "plan": "confide.gate",
    "precision": "confide.gate",
    "poisson_regression": "confide.faces.regression",
    "read": "confide.sources",
    "sql": "confide.sources",
    "reduction": "confide.faces.reduction",
    "refit": "confide.faces.synthesis",
    "register": "confide.registry",
    "release": "confide.gate",
    "select": "confide.faces.selection",
    "synthesize": "confide.faces.synthesis",
    "tables": "confide.faces.tables",
    "tests": "confide.faces.tests",
    "verify": "confide.gate",
    "voting": "confide.faces.voting",
    "within_regression": "confide.faces.regression",
    "write_results": "confide.faces.calls.results_file",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `confide --help` must not wait for pandas, scipy and polars."""
    if name in _ROOMS:
        return import_module(f"confide.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'confide' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = getattr(home, name) if hasattr(home, name) else home
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
