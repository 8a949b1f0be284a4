"""The three steps in one call, for a steward who is also the analyst."""

from __future__ import annotations

from typing import Any

from confide import gate
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.protocol import Noise, Source
from confide.regression import SSP, LinearEstimates

__all__ = ["linear_regression"]


def linear_regression(
    formula: str,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> LinearEstimates:
    """Plan, release and infer a linear regression; `settings` are those of `confide.regression.SSP`.

    The release itself is not kept: to publish it, call `confide.release` and `confide.infer`. Errors are theirs.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = cf.linear_regression("y ~ x", data, privacy=cf.GDP(1.0), ledger=None)
    >>> result.status
    'ok'
    """
    method = SSP(formula, **settings)
    return method.infer(gate.release(method, data, privacy, ledger=ledger, noise=noise, n=n))
