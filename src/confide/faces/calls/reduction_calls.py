"""The calls behind `cf.reduction`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confide.faces.one_call import LEFT_OUT, answered, checked_ledger
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.reduction.basis import Basis
from confide.methods.reduction.components import PCA
from confide.methods.reduction.correlations import Correlations
from confide.methods.reduction.matrix import CorrelationMatrix
from confide.protocol import Noise, Source

__all__ = ["correlation", "pca"]


def correlation(
    columns: Sequence[str] | str,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    term_bounds: Mapping[str, tuple[float, float]] | None = None,
    where: str | None = None,
    noise: Noise | None = None,
    n: int | None = None,
) -> CorrelationMatrix:
    """Plan, release and infer `Correlations(columns)` in one call: a correlation matrix with intervals and a heat map.

    privacy and ledger have no default. Errors: `PlanError` for columns that are not numeric.

    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> cf.reduction.correlation("x + y + z", data, privacy=cf.GDP(1.0), ledger=None).conf_int().shape
    (3, 2)
    """
    checked_ledger(ledger)
    method = Correlations(columns, term_bounds, where=where)  # type: ignore[arg-type]
    found: CorrelationMatrix = answered(method, data, privacy, ledger, noise, n)
    return found


def pca(
    columns: Sequence[str] | str,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    components: int | None = None,
    scale: str = "correlation",
    term_bounds: Mapping[str, tuple[float, float]] | None = None,
    where: str | None = None,
    noise: Noise | None = None,
    n: int | None = None,
) -> Basis:
    """Plan, release and infer `PCA(columns, components, scale)` in one call: components, explained variances with intervals, correlations.

    privacy and ledger have no default. Errors: `PlanError` for columns that are not numeric, or more components than columns.

    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> found = cf.reduction.pca("x + y + z", data, privacy=cf.GDP(1.0), ledger=None, components=2)
    >>> found.correlations.matrix().shape
    (3, 3)
    """
    checked_ledger(ledger)
    method = PCA(columns, components, scale, term_bounds, where=where)  # type: ignore[arg-type]
    found: Basis = answered(method, data, privacy, ledger, noise, n)
    return found
