"""Bounds of a column before a schema is settled: `cf.find_bounds`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import asinh, sinh
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide.ask.one_call import LEFT_OUT, checked_ledger
from confide.core import Noise, Release
from confide.core.allowance import checked_privacy
from confide.errors import PlanError
from confide.guarantees import Guarantee, PureDP
from confide.ledger import Ledger
from confide.methods.quantiles.method import Quantiles
from confide.schema import Numeric, Provenance, Schema, Unit
from confide.sums.distributions.cumulative import monotone

if TYPE_CHECKING:
    from confide import engine
else:
    engine = later("confide.engine")

_BINS = 1024
#: Sizes that the grid tells apart: below the first all is 0, beyond the second all is the same.
_LEAST, _MOST = 1e-6, 1e12
# Below so many noise sds of a cumulative count a tail says nothing; the cover is then what stands above them.
_ABOVE = 3.0
_WIDEST = 0.25
_WARNING = (
    "these bounds follow from the records, and values beyond them are clipped. Means and slopes are then of the clipped column, and an "
    "interval does not cover those of the column before clipping. Bounds from public knowledge are better, where there are any"
)


@dataclass(frozen=True)
class SignedLog(Numeric):
    """A column coded on an even grid of asinh(x/least), linear near 0 and logarithmic in size beyond; bounds are in that unit."""

    kind: ClassVar[str] = "numeric"

    def code(self, values: ArrayLike, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return super().code(np.arcsinh(np.asarray(values, dtype=np.float64) / _LEAST), out)


@dataclass(frozen=True)
class FoundRange:
    """Bounds of a column that a release found, with their cost.

    Parameters
    ----------
    name : str
        Column.
    low, high : float
        Bounds, in the units of the column.
    coverage : float
        Share of records that the bounds are meant to include. It is less than
        `asked` where noise hides the tails. It is 0 where noise hides the
        quartiles, too: then the bounds are the ends of the grid, and say nothing.
    asked : float
        Share that was asked for.
    column : Numeric
        Entry for the schema, with its provenance.
    release : Release
        The charged release.
    warning : str
        What the bounds mean for intervals.
    """

    name: str
    low: float
    high: float
    coverage: float
    asked: float
    column: Numeric
    release: Release
    warning: str = _WARNING

    def to_toml(self) -> str:
        """The entry for a schema's file."""
        text = Schema({self.name: self.column}).to_toml()
        return text[text.index("[columns.") :]

    def into(self, schema: Schema) -> Schema:
        """Return a schema in which the column has these bounds.

        Parameters
        ----------
        schema : Schema
            Schema with the column.

        Returns
        -------
        Schema
            The schema with the new bounds.
        """
        columns = {**schema.columns, self.name: replace(self.column, on_missing=_rule(schema, self.name))}
        return Schema(columns, rows_per_unit=schema.rows_per_unit, unit=schema.unit, dataset=schema.dataset)

    def __str__(self) -> str:
        held = (
            f"hold about {self.coverage:.1%} of the records"
            if self.coverage
            else "are the ends of the grid, and say nothing"
        )
        less = (
            ""
            if self.coverage >= self.asked - 1e-9
            else f" ({self.asked:.1%} were asked for; noise hides what lies further out, or it lies beyond the grid)"
        )
        return (
            f"{self.name}: {self.low:.6g} to {self.high:.6g} {held}{less}\n{self.release.charged}\nnote: {self.warning}\n"
            + self.to_toml()
        )


def find_bounds(
    data: Any,
    column: str,
    *,
    coverage: float = 0.99,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    dataset: str | None = None,
    unit: Any = None,
    noise: Noise | None = None,
    charge_delta: float | None = None,
    convert_ledger: bool = False,
    **read: Any,
) -> FoundRange:
    """Find bounds of a numeric column by a release, if none are public.

    Declare bounds from public knowledge wherever you can, because a found range
    costs budget and describes these records.

    Parameters
    ----------
    data : table or path
        Records as `confide.read` takes them, without a schema.
    column : str
        Name of a numeric column.
    coverage : float, default 0.99
        Share of values wanted inside the bounds, from 0.5 to 0.9999.
    privacy : Guarantee
        Cost of the release, such as ``GDP(0.2)``. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    dataset : str, optional
        Name of the dataset in the ledger. By default the ledger's.
    unit : Unit, optional
        Privacy unit, such as ``cf.Unit("person_id")``, where the ledger protects
        persons.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.
    charge_delta : float, optional
        Delta at which a ledger of (epsilon, delta) is charged.
    convert_ledger : bool, default False
        Whether to turn a ledger of (epsilon, delta) into one of Gaussian DP
        first. It cannot be undone.
    **read : optional
        Further parameters of `confide.read`.

    Returns
    -------
    FoundRange
        ``low``, ``high``, the charged release, and ``into(schema)``.

    Raises
    ------
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    PlanError
        `coverage` is out of range, or the column does not exist. Nothing was
        charged.

    Notes
    -----
    Guarantee: that of the release, which is of asinh(x/1e-6), a function of one
    record. It is a distribution with Gaussian noise, or under pure DP two trees
    of counts. Sizes from 1e-6 to 1e12 are told apart, in steps of 8% to 9% (finer
    near the ends under pure DP). Each end is rounded outward to two digits.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> incomes = {"income": np.random.default_rng(1).lognormal(10, 0.7, 20_000)}
    >>> found = cf.find_bounds(incomes, "income", privacy=cf.GDP(0.2),
    ...                        ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> 500 < found.low < 5_000 and 100_000 < found.high < 500_000
    True
    >>> found.column.provenance.kind
    'private'
    """
    requested = checked_privacy(privacy)
    checked_ledger(ledger)
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float)) or not 0.5 <= coverage <= 0.9999:
        raise PlanError(f"coverage must be a share from 0.5 to 0.9999, got {coverage!r}", "write coverage=0.99")
    from confide.sources import read as read_records

    reach = asinh(_MOST / _LEAST)
    grid = SignedLog(-reach, reach, provenance=Provenance("public", f"grid of asinh(x/{_LEAST:g}), of cf.find_bounds"))
    named = dataset if dataset is not None or ledger is None else ledger.dataset
    whose = unit if isinstance(unit, Unit) else "record"
    source = read_records(data, Schema({column: grid}, dataset=named, unit=whose), **read)
    pure = isinstance(requested, PureDP) or (ledger is not None and isinstance(ledger.budget, PureDP))
    tails = ((1 - coverage) / 2, (1 + coverage) / 2)
    formula = column if re.fullmatch(r"[A-Za-z_]\w*", column) else f"`{column}`"
    method = (
        Quantiles(formula, quantiles=tails) if pure else Quantiles(formula, _BINS, quantiles=tails, inference="dataset")
    )
    release = engine.release(
        method, source, requested, ledger=ledger, noise=noise, charge_delta=charge_delta, convert_ledger=convert_ledger
    )
    return _read(release, method, column, coverage, ledger)


def _read(release: Release, method: Quantiles, column: str, coverage: float, ledger: Ledger | None) -> FoundRange:
    """The bounds from the noisy sums: tails as thin as the noise permits, one bin further out."""
    group = method.infer(release).group()  # type: ignore[attr-defined]
    sums, sds, edges = group.sums, group.sds, np.array(group.bins.edges)
    size = max(float(sums[-1]), 1.0)
    tail = max((1 - coverage) / 2, _ABOVE * float(np.median(sds)) / size)
    # beyond a quarter on either side the middle of the noise would be taken for that of the records
    hidden = tail > _WIDEST
    tail = 0.5 if hidden else tail
    even = monotone(sums)
    first = 0 if hidden else int(np.clip(np.searchsorted(even, tail * size, side="left") - 1, 0, len(edges) - 2))
    last = (
        len(edges) - 1
        if hidden
        else int(np.clip(np.searchsorted(even, (1 - tail) * size, side="left"), first + 1, len(edges) - 1))
    )
    low, high = _outwards(_LEAST * sinh(edges[first]), down=True), _outwards(_LEAST * sinh(edges[last]), down=False)
    if not low < high:  # all that the grid does not tell from 0
        low, high = -2 * _LEAST, 2 * _LEAST
    held = 1 - 2 * tail
    if not hidden and (first == 0 or last == len(edges) - 1):
        # the outermost bins hold what lies beyond the grid as well
        below = float(even[1]) / size if first == 0 else tail
        above = 1 - float(even[-2]) / size if last == len(edges) - 1 else tail
        held = max(min(held, 1 - below - above), 0.0)
    receipt = None if ledger is None else ledger.find(release.sha256)
    text = f"release {release.sha256}" + (
        "" if receipt is None or ledger is None else f", entry {receipt.seq} of {ledger.dataset}"
    )
    entry = Numeric(low, high, provenance=Provenance("private", f"cf.find_bounds, coverage {held:.4g}: {text}"))
    return FoundRange(column, low, high, held, float(coverage), entry, release)


def _outwards(x: float, *, down: bool) -> float:
    """Two digits, away from the middle; 0 for what the grid cannot tell from it."""
    if abs(x) <= 2 * _LEAST:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(abs(x))) - 1)
    return float(f"{float((np.floor(x / unit) if down else np.ceil(x / unit)) * unit):.6g}")


def _rule(schema: Schema, name: str) -> Any:
    """The rule for missing values of the column that is replaced."""
    rule = schema[name].on_missing if name in schema.names else "drop"
    return rule if rule in ("drop", "midpoint") else "drop"
