"""Principal components as they are shown: explained variances, loadings, scores of public records, a scree plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.free_moments import Measure
from confide.errors import NoResult, PlanError
from confide.methods.reduction.matrix import CorrelationMatrix, unclear
from confide.methods.reduction.spectrum import Spectrum
from confide.protocol import Release
from confide.results.base import BaseResult, Column, check_alpha, level_heads
from confide.results.noise_share import marked, noise_share
from confide.results.pages.words import Flag
from confide.schema.formulas.frames import has_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["CLOSE", "Basis"]


CLOSE = Flag(
    "close",
    "two eigenvalues are nearer to each other than noise and sampling can tell: the directions of these components are not determined",
)
_WEAK = "no eigenvalue stands above its noise; ask for a larger budget, more records, narrower bounds or fewer columns"
_UNSURE = "some eigenvalues do not stand above their noise; their intervals are left out"
# An eigenvalue of which the standard error is a larger part is not shown with an interval.
_LARGEST = 0.25


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Basis(BaseResult):
    """Principal components. names (k,); estimates (k,): explained variances, errors: their standard errors, NaN where there is none; noise
    (k,): the variance by noise; alone (k,): that by sampling alone; bias (k,): what it may be off by since columns were asked to be clear;
    vectors (p, k), of length 1; centre, spread (p,): in the units of the data, what scores subtract and divide by; total: of all variances;
    correlations: of all pairs, from the same release.
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
        """From noisy moments, and sums of squared influences with the sd of their noise."""
        half = np.array([measure.half for measure in measures])
        names = tuple(measure.name for measure in measures)
        values, size = own.corrected, own.own.size
        sampling = np.maximum(sums + sd, 0.0) / size**2
        errors = np.sqrt(sampling + own.noise)
        clear = bool(own.own.clear.all())
        sure = (errors < _LARGEST * values) & clear
        shown = np.where(sure, errors, nan)
        flags = (CLOSE,) if clear and own.close(errors).any() else ()
        status = "ok" if sure.all() else "partial" if sure.any() else "weak"
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
            reason="" if status == "ok" else unclear(own.own, measures) or (_UNSURE if status == "partial" else _WEAK),
            facts=(
                ("Records", f"{own.own.gram[0, 0]:,.0f} (noise sd {sqrt(own.own.variance):,.3g})"),
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
        """All l with (l - estimate)^2 <= z^2 (sampling variance (l/estimate)^2 + noise variance): columns 0 and 1."""
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
        """The components, (columns, k), of length 1 each; the largest entry of each is positive."""
        return pd.DataFrame(self.vectors, index=list(self.columns_of), columns=list(self.names))

    def transform(self, data: Any) -> pd.DataFrame:
        """Scores of public records, (rows, k): a frame or a mapping with the columns, or an array in their order.

        Raises `NoResult` where the release gave no components, `PlanError` for other columns.
        """
        if self.status == "weak":
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
        """estimate, se, low, high, ratio, privacy_share."""
        limits, (low, high) = self.conf_int(alpha), level_heads(alpha)
        return (
            Column("name", self.names, "name"),
            Column("estimate", self.estimates, head="variance"),
            Column("se", self.errors, "std_err", head="std err"),
            Column("low", limits[0].to_numpy(), "interval", head=low),
            Column("high", limits[1].to_numpy(), "interval", head=high),
            Column("ratio", self.explained_variance_ratio.to_numpy(), "share", head="of total"),
            Column("privacy_share", self._share, "share", head="noise share"),
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
    def unit(self) -> str:
        return ""

    def draw(self, ax: Axes, alpha: float) -> None:
        """A scree plot with intervals."""
        limits, places = self.conf_int(alpha).to_numpy(), np.arange(1, len(self.names) + 1)
        ax.plot(places, self.estimates, color="#1f4e79", marker="o")
        ax.vlines(places, limits[:, 0], limits[:, 1], colors="#d1772e", linewidth=2)
        ax.set_xticks(places)
        ax.set_xlabel("component")
        ax.set_ylabel("explained variance")

    def picture(self, alpha: float) -> str:
        return f"Explained variance by component, with {1 - alpha:.0%} intervals."
