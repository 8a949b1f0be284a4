"""The three steps in one call, for a steward who is also the analyst."""

from __future__ import annotations

from confide.faces.one_call import one_call
from confide.methods.regression.likelihood.logistic import Logistic
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
from confide.methods.regression.likelihood.poisson import Poisson
from confide.methods.regression.likelihood.poisson_results import PoissonEstimates
from confide.regression import LeastSquares, LinearEstimates, Within, WithinEstimates

__all__ = ["linear_regression", "logistic_regression", "poisson_regression", "within_regression"]


@one_call(LeastSquares, verb="linear_regression")
def linear_regression(result: LinearEstimates) -> LinearEstimates:
    """Plan, release and infer a linear regression; `settings` are those of `confide.regression.LeastSquares`.

    privacy and ledger have no default: whoever wants no ledger writes ledger=None. The release itself is not kept: to
    publish it, call `confide.release` and `confide.infer`. Errors are theirs.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = cf.linear_regression("y ~ x", data, privacy=cf.GDP(1.0), ledger=None)
    >>> result.status
    'ok'
    """
    return result


@one_call(Logistic, verb="logistic_regression")
def logistic_regression(result: LogisticEstimates) -> LogisticEstimates:
    """Plan, release and infer a logistic regression; `settings` are those of `confide.regression.Logistic`.

    The outcome is a categorical column of two levels or one between 0 and 1. privacy: any request. privacy
    and ledger have no default: whoever wants no ledger writes ledger=None. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = logistic_regression("y ~ x", data, privacy=cf.GDP(1.0), ledger=None)
    >>> result.levels
    ('no', 'yes')
    """
    return result


@one_call(Poisson, verb="poisson_regression")
def poisson_regression(result: PoissonEstimates) -> PoissonEstimates:
    """Plan, release and infer a Poisson regression; `settings` are those of `confide.regression.Poisson`.

    The outcome is a count, declared as Integer(0, most). privacy and ledger have no default: whoever wants no ledger writes ledger=None.
    Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "visits": cf.Integer(0, 6)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = poisson_regression("visits ~ x", data, privacy=cf.GDP(1.0), ledger=None)
    >>> list(result.rate_ratios().columns)
    ['rate_ratio', 'low', 'high']
    """
    return result


@one_call(Within, verb="within_regression")
def within_regression(result: WithinEstimates) -> WithinEstimates:
    """Plan, release and infer a linear regression with a fixed effect of each person; `settings` are those of `confide.regression.Within`.

    The schema says who a person is: unit=cf.Unit("person_id"). privacy and ledger have no default: whoever wants no ledger writes
    ledger=None. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)}, unit=cf.Unit("person_id"))
    >>> frame = schema.sample(6_000, seed=1)
    >>> frame["person_id"] //= 4
    >>> result = within_regression("y ~ x", cf.read(frame, schema), privacy=cf.GDP(1.0), ledger=None)
    >>> result.status, list(result.params.index)
    ('ok', ['x'])
    """
    return result
