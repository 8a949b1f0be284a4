"""Principal components of bounded columns: directions, explained variances with intervals, and correlations, from one release.

Guarantee: mu-GDP, add/remove or substitution, two statistics. Nine tenths of squared mu pay for the noisy Gram matrix of joint moments,
with sensitivity 1 + p in the Frobenius norm (`methods.reduction.sums`) and exact Gaussian noise. That is Analyze Gauss with the exact
curve instead of sqrt(2 log(1.25/delta)), and half the variance off the diagonal. One tenth pays, at the noisy components, for sums of
squared influences on each eigenvalue, each clipped at a public cap (`InfluenceRows`, k numbers in [0, 1] for a record).

Components are eigenvectors of the noisy correlation matrix (scale="correlation") or of the covariance matrix in the units of the data.
Explained variances are its eigenvalues less what noise adds to them at second order, sum over j of v_ij/(l_i - l_j), v_ij the noise
variance of a_i'E a_j.

Interval of an eigenvalue: all l within the normal quantile times the standard error that they would have. Its sampling variance is in
proportion to l^2: sum I^2/N^2 at the estimate, I its influence by record, plus one standard deviation of the noise of that sum. Its
noise variance is by the delta method. The interval covers the eigenvalue of the population's matrix where components are apart. Where
two are closer than noise and sampling can tell, the flag "eigenvalues_not_separated" states that their directions are not determined.
Sources: Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022; influence of an eigenvalue: Critchley 1985.

Eigenvalues and eigenvectors of noisy moments, with what a record and the noise move them by.

Principal components as they are shown: explained variances, loadings, scores of public rows, a scree plot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Allowance, Composed, Gram, Meter, Plan, Release, ResultOptions, Source, Total
from confide.errors import NoResult, PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.reduction.correlations import (
    CorrelationMatrix,
    OfColumns,
    expected,
    joint_moments,
    measures_of,
    unclear,
)
from confide.methods.reduction.sums import InfluenceRows, JointMomentRows, JointMoments
from confide.results.base import BaseResult
from confide.results.pages.content import Column, Flag, check_alpha, level_words
from confide.results.pages.table import marked, noise_share
from confide.schema import CodedFrame
from confide.schema.formulas.design import has_columns
from confide.sums.cells.moments import Measure, practice_places
from confide.sums.coding import BITS

# An eigenvalue below this part of the mean one is no basis for a logarithm.
_LEAST = 1e-3
# Squared influences are cut at so many times their mean under a normal distribution, and more where noise allows.
_FEWEST, _NOISE = 30.0, 0.1


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The k largest eigenvalues of a matrix of noisy moments, in standardized columns or in half-ranges of the bounds.

    values (p,), falling, as the noisy matrix has them; vectors (p, p), in columns; spread (p,): what a column is divided by.
    """

    own: JointMoments
    k: int
    correlation: bool
    values: Array
    vectors: Array
    spread: Array

    @classmethod
    def of(cls, own: JointMoments, k: int, correlation: bool, weights: Array | None = None) -> Spectrum:
        """weights (p,): half-ranges of the bounds, by which columns of a covariance count; 1 when left out."""
        covariance = own.covariance
        if correlation:
            floor = np.maximum(np.diag(covariance), 1e-9)
            spread = np.sqrt(floor)
        else:
            spread = np.ones(own.p) if weights is None else 1 / np.asarray(weights)
        matrix = covariance / np.outer(spread, spread)
        if correlation:
            matrix = np.clip(matrix, -1.0, 1.0)
            np.fill_diagonal(matrix, 1.0)
        values, vectors = np.linalg.eigh(matrix)
        vectors = (
            vectors[:, ::-1] * np.where(vectors[np.abs(vectors).argmax(axis=0), range(own.p)] < 0, -1.0, 1.0)[::-1]
        )
        return cls(own, k, correlation, values[::-1], vectors, spread)

    @cached_property
    def directions(self) -> Array:
        """a_j = v_j/spread, (k, p): what u is multiplied by."""
        return np.asarray((self.vectors[:, : self.k] / self.spread[:, None]).T)

    @cached_property
    def squares(self) -> Array:
        """b_jk = l_j a_jk^2 for correlations, whose columns are standardized by the records themselves; 0 for covariances."""
        if not self.correlation:
            return np.zeros((self.k, self.own.p))
        return np.asarray(self.values[: self.k, None] * self.directions**2)

    @cached_property
    def levels(self) -> Array:
        """r_j, (k,): influences have mean 0."""
        return np.zeros(self.k) if self.correlation else self.values[: self.k].copy()

    def caps(self, noise: float) -> Array:
        """Where squared influences are clipped, (k,): far above their mean, but only so far that the noise stays small.

        The noise of this part of a cap, for each, is at most a tenth of a normal distribution's sum.
        """
        usual = 2 * np.maximum(self.values[: self.k], _LEAST * self._mean) ** 2
        return np.asarray(usual * max(_FEWEST, _NOISE * self.own.size / noise))

    @property
    def _mean(self) -> float:
        return max(float(np.mean(self.values)), 1e-12)

    @cached_property
    def noise(self) -> Array:
        """Noise variances of the k eigenvalues, by the delta method."""
        found = []
        for j, a in enumerate(self.directions):
            weights = np.outer(a, a)
            if self.correlation:
                weights -= np.diag(self.values[j] * a * a)
            found.append(self.own.noise_of(weights))
        return np.array(found)

    @cached_property
    def _apart(self) -> Array:
        """Noise variance of a_i'E a_j, (k, p), of the Gram matrix's noise alone."""
        size = self.own.size
        whole = self.vectors / self.spread[:, None]
        lengths = (whole**2).sum(axis=0)
        return np.asarray(np.outer(lengths[: self.k], lengths) * self.own.variance / 2 / size**2)

    @cached_property
    def corrected(self) -> Array:
        """The k eigenvalues less what noise adds at second order, never below a thousandth of their mean."""
        found = self.values[: self.k].copy()
        for i in range(self.k):
            for j in range(self.own.p):
                if j != i:
                    gap = self.values[i] - self.values[j]
                    # where eigenvalues meet, second order ends; noise pushes them apart by no more than its own size
                    found[i] -= self._apart[i, j] * gap / (gap * gap + 4 * self._apart[i, j])
        return np.maximum(found, _LEAST * self._mean)

    def close(self, errors: Array) -> NDArray[np.bool_]:
        """Which components have a neighbor nearer than three standard errors of the difference, (k,)."""
        below = np.abs(np.diff(self.values))
        out = np.zeros(self.k, dtype=bool)
        for j in range(self.k):
            gaps = [below[i] for i in (j - 1, j) if 0 <= i < len(below)]
            out[j] = min(gaps, default=np.inf) < 3 * sqrt(2) * float(errors[j])
        return out


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


CLOSE = Flag(
    "eigenvalues_not_separated",
    "two eigenvalues are nearer to each other than noise and sampling can tell: the directions of these components are not determined",
)
_WEAK = "no eigenvalue is above its noise; ask for a larger budget, more records or fewer columns"
_UNSURE = "some eigenvalues are not above their noise and have no intervals"
# An eigenvalue of which the standard error is a larger part is not shown with an interval.
_LARGEST = 0.25


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Basis(BaseResult):
    """Principal components: explained variances, loadings and scores.

    Parameters
    ----------
    names : tuple of str
        Names of the components.
    estimates : array of float
        Explained variances.
    errors : array of float
        Their standard errors, NaN where there is none.
    noise : array of float
        Variance of each by privacy noise.
    alone : array of float
        Variance of each by sampling alone.
    bias : array of float
        Bound on the bias from selecting columns whose spread is above the
        noise.
    vectors : array of float
        Components as columns, of length 1, (columns, components).
    centre : array of float
        What scores subtract, in the units of the data.
    spread : array of float
        What scores divide by, in the units of the data.
    total : float
        Total of all variances.
    columns_of : tuple of str
        The columns.
    correlations : CorrelationMatrix
        Correlations of all pairs, from the same release.
    """

    names: tuple[str, ...]
    estimates: Array
    errors: Array
    noise: Array
    alone: Array
    bias: Array
    vectors: Array
    centre: Array
    spread: Array
    total: float
    columns_of: tuple[str, ...]
    correlations: CorrelationMatrix

    family: ClassVar[str] = "principal components"
    rows_are: ClassVar[str] = "component"
    rows_called: ClassVar[str] = "components"

    @property
    def biased(self) -> bool:
        return bool((self.bias > 0).any())

    @classmethod
    def read(
        cls, release: Release, own: Spectrum, measures: Sequence[Measure], sums: Array, sd: Array, *, scale: str
    ) -> Basis:
        """From noisy moments, and sums of squared influences with the SD of their noise."""
        half = np.array([measure.half for measure in measures])
        names = tuple(measure.name for measure in measures)
        values, size = own.corrected, own.own.size
        sampling = np.maximum(sums + sd, 0.0) / size**2
        errors = np.sqrt(sampling + own.noise)
        clear = bool(own.own.clear.all())
        sure = (errors < _LARGEST * values) & clear
        shown = np.where(sure, errors, nan)
        flags = (CLOSE,) if clear and own.close(errors).any() else ()
        status = "valid" if sure.all() else "partial" if sure.any() else "imprecise"
        by = own.spread * half if own.correlation else np.ones(len(half))
        middle = np.array([measure.middle for measure in measures])
        return cls.of(
            release,
            response=", ".join(names),
            names=tuple(f"PC{j + 1}" for j in range(own.k)),
            estimates=np.where(sure, values, nan) if status == "partial" else values,
            errors=shown,
            noise=own.noise,
            alone=np.maximum(sums, 0.0) / size**2,
            bias=np.abs(values - 1) * (own.own.chosen @ own.vectors[:, : own.k] ** 2)
            if own.correlation
            else np.zeros(own.k),
            vectors=own.vectors[:, : own.k],
            centre=middle + half * own.own.means,
            spread=by,
            total=float(len(half)) if own.correlation else float(np.diag(own.own.covariance) @ half**2),
            columns_of=names,
            correlations=CorrelationMatrix.read(release, own.own, measures),
            flags=flags,
            status=status,
            reason=""
            if status == "valid"
            else unclear(own.own, measures) or (_UNSURE if status == "partial" else _WEAK),
            facts=(
                ("n", f"{own.own.gram[0, 0]:,.0f} (noise SD {sqrt(own.own.variance):,.3g})"),
                ("Matrix", scale),
            ),
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._put("flags", marked(self.flags, self.names, self._share))

    @property
    def params(self) -> pd.Series[float]:
        """Explained variances, indexed by component."""
        return pd.Series(self.estimates, index=list(self.names), dtype="float64")

    @property
    def explained_variance_ratio(self) -> pd.Series[float]:
        """Explained variances over their total."""
        return self.params / self.total

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence intervals of the explained variances.

        They hold all l with (l - estimate)^2 <= z^2 (sampling variance
        (l/estimate)^2 + noise variance).

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high).
        """
        low, high = self._ends(alpha, self.errors**2 - self.noise, self.noise, self.bias)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def _ends(self, alpha: float, sampling: Array, noise: Array | float, bias: Array | float) -> tuple[Array, Array]:
        z = -float(special.ndtri(check_alpha(alpha) / 2))
        with np.errstate(all="ignore"):
            lead = 1 - z * z * sampling / self.estimates**2
            root = np.sqrt(np.maximum(self.estimates**2 - lead * (self.estimates**2 - z * z * noise), 0.0))
            low, high = np.maximum((self.estimates - root) / lead - bias, 0.0), (self.estimates + root) / lead + bias
            high = np.where(lead > 0, high, np.inf)
        known = np.isfinite(self.errors)
        return np.where(known, low, nan), np.where(known, high, nan)

    @property
    def _share(self) -> Array:
        low, high = self._ends(0.05, self.errors**2 - self.noise, self.noise, self.bias)
        alone = self._ends(0.05, self.alone, 0.0, 0.0)
        return noise_share(high - low, alone[1] - alone[0])

    def loadings(self) -> pd.DataFrame:
        """The components as columns.

        Returns
        -------
        DataFrame
            (columns, components), each of length 1 with a positive largest
            entry.
        """
        return pd.DataFrame(self.vectors, index=list(self.columns_of), columns=list(self.names))

    def transform(self, data: Any) -> pd.DataFrame:
        """Compute the scores of public rows.

        Parameters
        ----------
        data : DataFrame, mapping or array
            Records with the columns, or an array in their order.

        Returns
        -------
        DataFrame
            Scores, (rows, components).

        Raises
        ------
        NoResult
            The release gave no components.
        PlanError
            The columns are others.
        """
        if self.status == "imprecise":
            raise NoResult(f"the release gave no components: {self.reason}")
        rows = self._rows(data)
        return pd.DataFrame((rows - self.centre) / self.spread @ self.vectors, columns=list(self.names))

    def _rows(self, data: Any) -> Array:
        if has_columns(data):
            missing = [name for name in self.columns_of if name not in data]
            if missing:
                raise PlanError(
                    f"the records have no column {', '.join(missing)}; components are of {', '.join(self.columns_of)}"
                )
            return np.column_stack([np.asarray(data[name], dtype=np.float64) for name in self.columns_of])
        rows = np.asarray(data, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.columns_of):
            raise PlanError(f"records must have the columns {', '.join(self.columns_of)}, got the shape {rows.shape}")
        return rows

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate, std_err, ci_low, ci_high, variance_share, privacy_share."""
        limits = self.conf_int(alpha)
        return (
            Column("term", self.names, "name"),
            Column("estimate", self.estimates, head="variance"),
            Column("std_err", self.errors, "std_err"),
            Column("ci_low", limits[0].to_numpy(), "interval"),
            Column("ci_high", limits[1].to_numpy(), "interval"),
            Column("variance_share", self.explained_variance_ratio.to_numpy(), "share"),
            Column("privacy_share", self._share, "share"),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        return {
            "columns": self.columns_of,
            "loadings": self.vectors,
            "centre": self.centre,
            "spread": self.spread,
            "total": self.total,
            "correlations": self.correlations.matrix().to_numpy(),
        }

    @property
    def axis(self) -> str:
        return "explained variance"

    def draw(self, ax: Axes, alpha: float) -> None:
        """A scree plot with intervals."""
        from confide.results.pages.plots import COLORS, whiskers

        limits, places = self.conf_int(alpha).to_numpy(), np.arange(1, len(self.names) + 1)
        ax.plot(places, self.estimates, color=COLORS[0], marker="o", zorder=6)
        whiskers(ax, places, self.estimates, limits[:, 0], limits[:, 1])
        ax.set_ylim(bottom=0.0)
        ax.set_xticks(places)
        ax.set_xlabel("component")
        ax.set_ylabel("explained variance")

    def picture(self, alpha: float) -> str:
        return f"Points: explained variance of each component. Whiskers: {level_words(alpha)} confidence intervals."


SCALES = ("correlation", "covariance")
_INFLUENCE = Fraction(1, 10)


@dataclass(frozen=True)
class PCA(OfColumns):
    """Principal components, with explained variances and loadings.

    Estimates the eigenvalues and eigenvectors of the population's correlation
    or covariance matrix of the clipped columns.

    Parameters
    ----------
    columns : tuple of str
        Names of columns or derived terms, as a list or as ``"a + b + c"``.
    components : int, optional
        Number of components. By default all.
    scale : {"correlation", "covariance"}, default "correlation"
        Whether columns are standardized, or kept in the units of the data.

    Notes
    -----
    Guarantee: Gaussian DP with parameter mu, add/remove or substitution. Nine
    tenths of the budget pay for a Gram matrix of joint moments with sensitivity
    1 + p in the Frobenius norm. One tenth pays for sums of squared influences,
    each clipped at a public cap. The module docstring has the details.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022; Critchley 1985.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> found = cf.infer(cf.release(PCA("x + y + z", components=2), data, cf.GDP(1.0), ledger=None))
    >>> found.names, found.loadings().shape
    (('PC1', 'PC2'), (3, 2))
    """

    columns: tuple[str, ...]
    components: int | None = None
    scale: str = "correlation"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "pca"
    source: ClassVar[str] = "Analyze Gauss (Dwork, Talwar, Thakurta, Zhang 2014) with exact Gaussian noise"
    intervals: ClassVar[str] = (
        "explained variances of the population's columns clipped to their bounds; sampling and privacy noise"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale not in SCALES:
            raise PlanError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}; correlation is the default")
        if self.components is not None and not is_whole(self.components, 1, len(self.columns)):
            raise PlanError(
                f"components must be a whole number from 1 to {len(self.columns)}, the number of columns, got {self.components!r}"
            )

    @property
    def k(self) -> int:
        """How many components."""
        return len(self.columns) if self.components is None else int(self.components)

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Joint moments, then influences at the noisy components; a note says from how many records on columns are answered."""
        rows, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        moments, influence = Gram(rows, entry_bits=BITS), Total(InfluenceRows(rows.measures, self.k), nonnegative=True)
        event = Composed(
            (allowance.spend("moments", moments, 1 - _INFLUENCE), allowance.spend("influences", influence, _INFLUENCE))
        )
        names = ", ".join(measure.name for measure in rows.measures)
        made = Plan.of(
            self,
            schema,
            allowance,
            event,
            {"moments": moments, "influences": influence},
            n=n,
            passes=2,
            target=f"principal components of {names} by their {self.scale} matrix",
            intervals_for=self.intervals,
        )
        return replace(made, notes=(*made.notes, expected(made, rows, schema, n)))

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Moments; then influences at what was drawn."""
        moments, influence = plan.statistic("moments"), plan.statistic("influences")
        assert isinstance(moments, Gram) and isinstance(moments.map, JointMomentRows)
        assert isinstance(influence, Total) and isinstance(influence.map, InfluenceRows)
        noisy = meter.draw("moments", source.aggregate(moments)[0])
        own = self._spectrum(moments.map, joint_moments(moments.map, noisy))
        sd = plan.spend("influences").noise_sd
        assert sd is not None
        caps = own.caps(sd / influence.map.steps)
        rows = influence.map.at(own.own.means, own.directions, own.squares, own.levels, caps)
        meter.draw("influences", source.aggregate(Total(rows, nonnegative=True))[0])
        return {"caps": caps}

    def _spectrum(self, rows: Any, own: JointMoments) -> Spectrum:
        half = np.array([measure.half for measure in rows.measures])
        return Spectrum.of(own, self.k, self.scale == "correlation", half)

    def table(self, release: Release, about: JointMomentRows, options: ResultOptions) -> Basis:
        own, noisy = self._spectrum(about, joint_moments(about, release["moments"])), release["influences"]
        unit = InfluenceRows(about.measures, self.k).steps
        caps = np.asarray(release.public["caps"], dtype=np.float64)
        sums, sd = noisy.decode() / unit * caps, np.sqrt(noisy.variance) / unit * caps
        return Basis.read(release, own, about.measures, sums, sd, scale=self.scale)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The largest eigenvalues of test data."""
        practice = CodedFrame.checked(frame)
        measures = measures_of(self.columns, practice.schema, self.term_bounds)
        places = practice_places(measures, practice)
        values = places * np.array([measure.half for measure in measures])
        whole = np.corrcoef(values.T) if self.scale == "correlation" else np.cov(values.T, bias=True)
        found = np.linalg.eigvalsh(whole)[::-1][: self.k]
        return {f"PC{j + 1}": float(value) for j, value in enumerate(found)}
