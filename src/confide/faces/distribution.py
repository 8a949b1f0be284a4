"""`cf.tables.distribution`: quantiles, distribution function and pictures of a column by group, in one call."""

from __future__ import annotations

from typing import Any

from confide.faces.one_call import LEFT_OUT, answered, checked_call
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.tables.distribution import Distribution
from confide.methods.tables.distribution_result import DistributionResult
from confide.methods.tables.result import checked_reading
from confide.protocol import Noise, Source

__all__ = ["distribution"]

_EXAMPLE = '"income ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None'


def distribution(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> DistributionResult:
    """Quantiles and distribution function of a column by group: plan, release, infer `Distribution`, whose parameters `settings` are.

    covers ("population" or "dataset"), privacy and ledger have no default. The result answers every question about the distribution at no
    further cost: `quantile`, `cdf` with its band, `histogram`, `letter_values`, `iqr`, `diff`, `plot("box" | "cdf" | "density")`. Errors
    are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> found = distribution("income ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> found.quantile([0.1, 0.9]).shape
    (6, 4)
    """
    checked_reading(covers, "distribution")
    checked_call("cf.tables.distribution", Distribution, privacy, ledger, settings, example=_EXAMPLE)
    method = Distribution(formula, covers=str(covers), **settings)
    found: DistributionResult = answered(method, data, privacy, ledger, noise, n)
    return found
