"""BinAgg: linear regression from noisy counts and sums of bins of the feature space.

Estimates the line E[y|x] = intercept + x'beta. The box of the features is cut into bins by a private tree (`aggregates.trees`); each bin
releases its noisy count, the sums of its features about the bin's middle, and the sum of its responses about the middle of their bounds.
Regressors are v_k = (c_k, c_k mid_k + s_k), labels t_k; the line solves sum_k w_k (v_k (t_k - v_k'theta) + Omega_k theta) = 0, Omega_k the
known covariance of v_k's noise, with weights w_k = 1/(s2 c_k + sd_t^2 + theta'Omega_k theta) found in eight rounds. It is for a release
of bins, or for few features: bins grow scarce with d (refused above six terms unless force=True), and `LeastSquares` is closer to the
truth.

Guarantee: mu-GDP, add-remove or substitute. 1 % of mu^2 pays for a count of clipped responses (it moves by 1); of the rest 1/28 for the
tree and 27/28 for the table of the bins, in which a record moves one row by at most 2^20 in exact integers (sqrt(2) times that when it is
replaced; `aggregates.cell_sums`). Cells are half open, so that a record is in one bin alone. Gaussian mechanisms, composed adaptively by
adding mu^2 (Dong, Roth, Su 2022, Theorem 2 and Corollary 2); the PrivTree option spends pure epsilon, stated in GDP.
Source: Lin, Slavkovic, Bhoomireddy 2025 (arXiv 2510.16974), Algorithms 1 and 2, with the privacy, the estimator and the covariance
corrected: evidence/errata.md.

Interval: none is printed, and no table says "valid". The sandwich over K bins knows K scores and weights bins, not records: where a mean is
curved, or a factor has few levels, it misses (`confide lab bench truth`, rows of binagg). `sandwich` gives it for studies: Student t with K
- p degrees of freedom; cov="hc3" (default) divides each score by one less its leverage, unequal residual variances allowed; cov="model"
assumes equal ones. It is kept to compare with published work; `LeastSquares` has intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.core import (
    Allowance,
    Composed,
    FormulaMethod,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.regression.evidence.normal_equations import Line, coefficient_names, line_of, to_units
from confide.methods.regression.evidence.sparse_levels import unseen_levels
from confide.methods.regression.linear_estimates import LinearEstimates, legend
from confide.methods.regression.reference import least_squares
from confide.results.base import level_legend
from confide.schema import Categorical, CodedFrame, Schema
from confide.schema.formulas.formula import parse_formula
from confide_lab.aggregates.bins import Folded, NoisyBins, draw_bins, plan_bins, read_bins
from confide_lab.aggregates.trees import Paths
from confide_lab.methods.clipped_responses import UNCHECKED, ClippedRows, clipped_share

__all__ = ["BinAgg", "BinLine"]

Array = NDArray[np.float64]

_CLIPPING_SHARE = Fraction(1, 100)
# More terms than this leave too few records in a bin.
_MOST_TERMS = 6
_ROUNDS = 8
# Leverage is counted up to here, as an estimate of it may be anything.
_LEVERAGE = 0.9
# Residual variance to begin with, and the least: in squared half-ranges of the response.
_FIRST_VARIANCE = 1 / 16
_LEAST_VARIANCE = 1e-8
_TREE_SHARE = Fraction(1, 28)
# Leaves of PrivTree at most.
_CELLS = 1024
# Cuts of a path, which is one integer of 64 bits.
_DEEPEST = 62

_NOT_IDENTIFIED = (
    "there are no more bins than coefficients and one, or their noisy sums of squares are not positive definite: the noise says more than "
    "the records; ask for fewer terms, tighter bounds, more records or a larger budget"
)
_COMPARISON = (
    "BinAgg is kept to compare with published work, and its table has no intervals: a sandwich over bins misses the least-squares line "
    "where the mean is curved or a factor has few levels; LeastSquares with the same formula has intervals"
)
_WILD = (
    "a coefficient is far beyond the response's range over the feature's: the noise says more than the records; ask for fewer terms, "
    "tighter bounds, more records or a larger budget"
)
# A coefficient in scaled units beyond this is no line through a bounded response.
_FAR = 1e3


@dataclass(frozen=True, eq=False)
class BinLine:
    """A line with its sandwich over bins, in the units of the data: estimates (p,), covariance and its noise part (p, p), NaN unless status
    is "valid"; df: of Student's t.
    """

    names: tuple[str, ...]
    estimates: Array
    covariance: Array
    noise: Array
    df: float
    status: str

    @property
    def errors(self) -> Array:
        """Standard errors, (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def limits(self, alpha: float = 0.05) -> Array:
        """Low and high ends at level 1 - alpha, (p, 2)."""
        half = float(stats.t.isf(alpha / 2, self.df)) * self.errors
        return np.column_stack([self.estimates - half, self.estimates + half])


@dataclass(frozen=True)
class BinAgg(FormulaMethod):
    """Linear regression from noisy bins, to compare with published work: point estimates without intervals.

    formula: "y ~ a + b"; tree: "gaussian" (default), "privtree" or "grid" (bins that do not depend on the records); cov: "hc3" or
    "model"; depth: how often the box is cut at most (default: once for each term, at least 4; PrivTree 18); force: allow more than six
    terms; clipping_check: pay 1 % of mu^2 for a noisy count of responses outside their bounds; term_bounds: of derived terms, public.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = BinAgg("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.passes, plan.spend("cells").shape
    (1.0, 2, (16, 3))
    """

    formula: str
    tree: str = "gaussian"
    cov: str = "hc3"
    depth: int | None = None
    force: bool = False
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "binagg"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = (
        "noisy bin sums (Lin, Slavkovic, Bhoomireddy 2025), privacy and estimator corrected, noise-aware sandwich"
    )
    intervals: ClassVar[str] = "no interval"

    @property
    def needs(self) -> frozenset[str]:
        """PrivTree's decisions are proved as a whole; all else is a spend."""
        return frozenset({"opaque"}) if self.tree == "privtree" else frozenset()

    def __post_init__(self) -> None:
        for name, allowed in (("tree", ("gaussian", "privtree", "grid")), ("cov", ("hc3", "model"))):
            if getattr(self, name) not in allowed:
                words = ", ".join(f'"{one}"' for one in allowed)
                raise PlanError(
                    f'{name} must be one of {words}, got {getattr(self, name)!r}; write BinAgg(formula, {name}="{allowed[0]}")'
                )
        if self.depth is not None and not is_whole(self.depth, 1, _DEEPEST):
            raise PlanError(f"depth must be a whole number from 1 to {_DEEPEST}, got {self.depth!r}; leave it out")
        for name in ("force", "clipping_check"):
            if not isinstance(getattr(self, name), bool):
                raise PlanError(f"{name} must be True or False, got {getattr(self, name)!r}; write {name}=True")

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The tree, the table of its leaves and the count of clipped responses, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, and above six terms without force=True.
        """
        design = self._design(schema)
        terms = len(design.terms)
        if terms > _MOST_TERMS and not self.force:
            raise PlanError(
                f"bins of {terms} terms hold too few records each: BinAgg is for at most {_MOST_TERMS}; use "
                f"LeastSquares({self.formula!r}) or SSP({self.formula!r}), or write BinAgg({self.formula!r}, force=True)"
            )
        allowance = Allowance.of(privacy, self, schema)
        if self.tree == "privtree":
            allowance = Folded(allowance.requested, allowance.level, allowance.rows_per_unit)
        statistics: dict[str, Statistic] = {}
        share = 1 - _CLIPPING_SHARE if self.clipping_check else Fraction(1)
        depth = self._depth(terms)
        events, bins = plan_bins(
            design, allowance, share, kind=self.tree, depth=depth, cells=_CELLS, tree_share=_TREE_SHARE
        )
        statistics |= bins
        if self.clipping_check:
            edges = design.response.name in (self.term_bounds or {})
            # a cap of 1 + terms is never reached: every record counts the same
            statistics["clipping"] = Total(ClippedRows(design, 1.0 + terms, edges=edges), nonnegative=True)
            events = (*events, allowance.spend("clipping", statistics["clipping"], _CLIPPING_SHARE))
        paths = Paths.of(design, depth)
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(events),
            statistics,
            n=n,
            passes=1 + (self.tree != "grid"),
            constants={"depth": paths.depth, "codes": list(paths.steps)},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}, from bins, for comparison",
            intervals_for="nothing: a line from noisy bins, without intervals",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _depth(self, terms: int) -> int:
        if self.depth is not None:
            return self.depth
        return 18 if self.tree == "privtree" else min(max(terms, 4), 12)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The tree, then the table of its leaves and the clipped responses."""
        draw_bins(meter, source, plan, beside=("clipping",) if self.clipping_check else ())
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The line at status "imprecise", without intervals. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design, found = self._design(release.plan.declared), self.sandwich(release)
        bins = read_bins(release, design)
        count = float(bins.counts.sum())
        error = sqrt(float((bins.sd_counts**2).sum()))
        flags, clipped = self._clipping(release, count)
        unseen = unseen_levels(design, _totals(bins))
        return LinearEstimates.of(
            release,
            response=design.response.name,
            names=found.names,
            estimates=found.estimates,
            df=nan,
            status="not_identified" if found.status == "not_identified" else "imprecise",
            reason=_COMPARISON
            if found.status == "valid"
            else (_WILD if found.status == "imprecise" else _NOT_IDENTIFIED) + unseen,
            flags=("no_interval", *flags, *(("few_complete_records",) if count < 3 * error else ())),
            facts=(
                ("Bins", f"{len(bins)} ({self.tree})"),
                ("Records (noisy)", f"{count:,.0f} ± {stats.norm.ppf(0.975) * error:,.0f}"),
                (f"Clipped {design.response.name} (noisy)", clipped),
            ),
            # the first line of the legend explains a weighted count, which this table does not show
            legend=(
                *legend(design, release.plan.declared)[1:],
                *(level_legend(unseen) if found.status == "valid" else ()),
            ),
            design=design,
            nobs=count,
        )

    def sandwich(self, release: Release) -> BinLine:
        """The line and the sandwich over its bins, in the units of the data: for studies of the method, no interval to report."""
        design = self._design(release.plan.declared)
        keep = list(range(len(design.terms)))
        matrix, shift = to_units(design, keep)
        bins = read_bins(release, design)
        found = fit_bins(bins, line_of(design), self.cov)
        names = coefficient_names(design, keep)
        return BinLine(
            names,
            matrix @ found.theta + shift,
            matrix @ found.covariance @ matrix.T,
            matrix @ found.noise @ matrix.T,
            float(max(len(bins) - len(names), 1)),
            found.status,
        )

    def _clipping(self, release: Release, count: float) -> tuple[tuple[str, ...], str]:
        """Flag and text of the paid diagnostic: which share of responses lay outside their declared bounds."""
        if not self.clipping_check:
            return ("clipping_not_checked",), UNCHECKED
        seen, text = clipped_share(release["clipping"], count, ClippedRows.unit)
        return ("values_clipped",) if seen else (), text

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two records in one corner of the box with responses at opposite bounds, two in opposite corners, two on the first cut.

        In a corner of its bin a record's row has full length; on a cut it must be in one bin alone. None without a schema or with derived
        terms.
        """
        design = None if schema is None else self._design(schema)
        names = [] if design is None else [term.plain for term in (*design.terms, design.response)]
        if schema is None or None in names:
            return
        columns = {str(name): schema[str(name)] for name in names}
        ends = {
            name: (column.low, column.high) for name, column in columns.items() if not isinstance(column, Categorical)
        }
        high = {name: pair[1] for name, pair in ends.items()}
        low = {name: pair[0] for name, pair in ends.items()}
        yield high, {**high, str(names[-1]): low[str(names[-1])]}
        yield high, low
        cut = {name: pair[0] + (pair[1] - pair[0]) / 2 for name, pair in ends.items()}
        yield {**cut, str(names[-1]): high[str(names[-1])]}, cut


def _totals(bins: NoisyBins) -> tuple[Array, Array]:
    """Totals of (1, x~) over all bins, shape (p,), and their noise covariance (p, p): the noise of a count moves x~ by its bin's middle."""
    lever = np.column_stack([np.ones(len(bins)), bins.middles])
    noise = (lever * (bins.sd_counts**2)[:, None]).T @ lever
    noise += np.diag([0.0, *(bins.sd_sums**2).sum(axis=0)])
    return bins.counts @ lever + np.array([0.0, *bins.sums.sum(axis=0)]), noise


@dataclass(frozen=True, eq=False)
class _Fit:
    """theta (p,) in scaled units, its covariance and the noise's part of it (p, p), NaN unless the status is "valid"."""

    theta: Array
    covariance: Array
    noise: Array
    status: str


def fit_bins(bins: NoisyBins, line: Line, cov: str) -> _Fit:
    """The line of noisy bins, and its covariance: "hc3" or "model"."""
    k, p = len(bins), len(line.offset)
    free = line.basis.shape[1]
    unknown = np.full((p, p), nan)
    regressors = np.column_stack([bins.counts, bins.counts[:, None] * bins.middles + bins.sums])
    # A_k: noise of the count moves every regressor by the bin's middle
    lever = np.column_stack([np.ones(k), bins.middles])
    own = np.column_stack([np.zeros(k), bins.sd_sums**2])
    count2, label2 = bins.sd_counts**2, bins.sd_labels**2
    theta, s2 = np.zeros(p), _FIRST_VARIANCE
    bread = np.full((free, free), nan)
    weights = np.ones(k)
    with np.errstate(all="ignore"):
        for _ in range(_ROUNDS):
            noise = label2 + count2 * (lever @ theta) ** 2 + own @ theta**2
            weights = 1 / (s2 * np.maximum(bins.counts, 1.0) + noise)
            moments = (regressors * weights[:, None]).T @ regressors - (lever * (weights * count2)[:, None]).T @ lever
            moments -= np.diag(weights @ own)
            restricted = line.basis.T @ moments @ line.basis
            right = regressors.T @ (weights * bins.labels) - moments @ line.offset
            try:
                theta = line.offset + line.basis @ np.linalg.solve(restricted, line.basis.T @ right)
                bread = np.linalg.inv(restricted)
                definite = bool(np.linalg.eigvalsh((restricted + restricted.T) / 2)[0] > 0)
            except np.linalg.LinAlgError:
                return _Fit(np.full(p, nan), unknown, unknown, "not_identified")
            residuals = bins.labels - regressors @ theta
            noise = label2 + count2 * (lever @ theta) ** 2 + own @ theta**2
            present = np.maximum(bins.counts, 0.0)
            spread_of_counts = max(float((weights**2 * present) @ present), 1e-300)
            s2 = float((weights**2 * present) @ (residuals**2 - noise)) / spread_of_counts
            s2 = max(s2, _LEAST_VARIANCE) if np.isfinite(s2) else _FIRST_VARIANCE
        shown = theta if np.isfinite(theta).all() else np.full(p, nan)
        if k <= free + 1:
            return _Fit(shown, unknown, unknown, "not_identified")
        if not definite or not np.isfinite(bread).all():
            return _Fit(shown, unknown, unknown, "not_identified")
        if not (np.abs(theta) < _FAR).all():
            return _Fit(shown, unknown, unknown, "imprecise")
        spread = lever * (count2 * (lever @ theta))[:, None] + own * theta  # Omega_k theta
        varied = (regressors @ line.basis, spread @ line.basis)
        if cov == "hc3":
            leverage = np.clip(weights * np.einsum("ki,ij,kj->k", varied[0], bread, varied[0]), 0.0, _LEVERAGE)
            scores = (varied[0] * residuals[:, None] + varied[1]) * (weights / (1 - leverage))[:, None]
            meat = scores.T @ scores
        else:
            f2 = s2 * present + noise
            meat = (varied[0] * (weights**2 * f2)[:, None]).T @ varied[0] + (
                varied[1] * weights[:, None] ** 2
            ).T @ varied[1]
        # what the known noise alone gives at this line
        part = (varied[0] * (weights**2 * noise)[:, None]).T @ varied[0]
    wide = line.basis @ bread
    covariance = wide @ meat @ wide.T
    covariance = (covariance + covariance.T) / 2
    return _Fit(theta, covariance, wide @ part @ wide.T, "valid")
