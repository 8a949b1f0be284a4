"""A curve: estimates over points of one or several features, with pointwise and simultaneous bands, and values in between.

The picture of a curve: the estimate over its feature, the pointwise band, and around it the band that holds the whole curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, nan, pi
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.errors import NoResult, PlanError
from confide.results.base import BaseResult, Foreseen
from confide.results.pages.content import (
    LITERAL,
    WITHOUT_NUMBERS,
    Column,
    check_alpha,
    check_simultaneous,
    folded,
    level_words,
    thousands,
)
from confide.results.pages.table import marked, noise_share
from confide.schema.formulas.design import has_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LINE, _POINTWISE, _WHOLE = "#0072B2", "#F3CF8C", "#D55E00"


class Banded(Protocol):
    """What the picture needs of a curve (`results.curve.Curve` has it)."""

    @property
    def features(self) -> Any: ...
    @property
    def points(self) -> Any: ...
    @property
    def estimates(self) -> Any: ...
    @property
    def dense(self) -> bool: ...
    @property
    def response(self) -> str: ...
    @property
    def crossings(self) -> float: ...
    @property
    def has_intervals(self) -> bool: ...
    def conf_int(self, alpha: float = ..., *, simultaneous: bool = ...) -> Any: ...


def draw_curve(result: Banded, ax: Axes, alpha: float) -> None:
    """Draw on `ax`. Points of several features stand one beside the other."""
    single = len(result.features) == 1
    x = result.points[:, 0] if single else np.arange(len(result.points)) + 1.0
    (_band if result.dense else _points)(result, alpha, ax, x)
    name = folded(result.features[0], 40) if single else f"point of {folded(', '.join(result.features), 40)}"
    ax.set_xlabel(name, **LITERAL)
    ax.set_ylabel(folded(result.response, 40), **LITERAL)
    thousands(ax.yaxis)


def _band(result: Banded, alpha: float, ax: Axes, x: Any) -> None:
    level = level_words(alpha)
    if result.has_intervals:
        low, high = result.conf_int(alpha).to_numpy().T
        ax.fill_between(
            x, low, high, color=_POINTWISE, alpha=0.7, linewidth=0, label=f"{level} at each point", zorder=1
        )
        if isfinite(result.crossings):
            for end, label in zip(
                result.conf_int(alpha, simultaneous=True).to_numpy().T,
                (f"{level} for the whole curve", None),
                strict=True,
            ):
                ax.plot(x, end, color=_WHOLE, linewidth=1.2, linestyle=(0, (4, 2)), label=label, zorder=2)
    ax.plot(x, result.estimates, color=_LINE, linewidth=2, label="estimate", zorder=3)


def _points(result: Banded, alpha: float, ax: Axes, x: Any) -> None:
    from confide.results.pages.plots import INK, whiskers

    if result.has_intervals:
        low, high = result.conf_int(alpha).to_numpy().T
        whiskers(ax, x, result.estimates, low, high)
    ax.scatter(x, result.estimates, s=30, color=INK, zorder=6)


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

optimize = later("scipy.optimize")


def point_names(features: Sequence[str], points: ArrayLike) -> tuple[str, ...]:
    """One name for each point, such as "x = 0.25".

    >>> point_names(("x", "z"), [[0.25, 1.0]])
    ('x = 0.25, z = 1',)
    """
    rows = np.asarray(points, dtype=np.float64)
    return tuple(", ".join(f"{f} = {v:.12g}" for f, v in zip(features, row, strict=True)) for row in rows)


#: Rows of the printed table.
_SHOWN = 11


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Curve(BaseResult):
    """An estimated function at points, with intervals and a simultaneous band.

    Each estimate is a ratio of a noisy numerator and a noisy denominator.

    Parameters
    ----------
    features : tuple of str
        Names of the features.
    points : array of float, (m, d)
        Public points, one row each.
    estimates : array of float, (m,)
        Values of the function, in the units of the response.
    sampling_variance : array of float, (m,)
        Sampling variance of the numerator over the denominator.
    noise_variance : array of float, (m,)
        Variance of the privacy noise of the same ratio.
    denominator_noise : array of float, (m,)
        Squared relative noise of the denominator; 0 where it has none.
    middle : float
        Value of the response from which numerators are measured.
    bounds : (float, float)
        Bounds of the response. Estimates and intervals are clipped to them.
    dense : bool, default True
        Whether values between the points may be read off. It needs one feature
        and points in ascending order.
    crossings : float, default nan
        Expected total turning angle of the process of normalized errors. NaN
        where no simultaneous band is known.
    band_variance : array of float, optional
        Sampling variance for the band, where it is another one.
    null_variance : array of float, (3, m), optional
        a, b, c where the sampling variance is a + b v + c v^2 at the value v,
        measured from the middle.
    alone : array of float, optional
        Sampling variance for the privacy share, without what is added for noise.

    Notes
    -----
    Intervals solve (numerator - f denominator)^2 <= z^2 variance(f) for f
    (Fieller 1954), clipped to the bounds. Where the denominator cannot be told
    from its noise, or `denominator_noise` is infinite, the interval is the whole
    range. With exact denominators they are estimate +- z std. err.; with
    `null_variance` for shares of two values and no noise, Wilson's (1927).

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> mu = GDP(1.0, relation="add-remove")
    >>> x = np.linspace(0, 1, 5)[:, None]
    >>> curve = Curve(
    ...     method="kernel 1", response="y", features=("x",), points=x, estimates=x[:, 0] ** 2,
    ...     sampling_variance=np.full(5, 0.01), noise_variance=np.zeros(5), denominator_noise=np.zeros(5), middle=0.0,
    ...     bounds=(0.0, 1.0), status="valid", reason="", flags=(), requested=mu, guarantee=mu, target="E[y|x]",
    ...     intervals_for="sampling", release_sha256="0" * 64)
    >>> curve.at(0.125).round(3).iloc[0].tolist()
    [0.125, 0.031, 0.1, 0.0, 0.227]
    """

    features: tuple[str, ...]
    points: Array
    estimates: Array
    sampling_variance: Array
    noise_variance: Array
    denominator_noise: Array
    middle: float
    bounds: tuple[float, float]
    dense: bool = True
    crossings: float = nan
    band_variance: Array | None = None
    null_variance: Array | None = None
    alone: Array | None = None

    family: ClassVar[str] = "curve"
    rows_called: ClassVar[str] = "points"

    def __post_init__(self) -> None:
        super().__post_init__()
        points = np.array(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.features) or not len(points):
            raise PlanError(
                f"points must have one column for each of {', '.join(self.features)}, got the shape {points.shape}"
            )
        if self.dense and (len(self.features) != 1 or (np.diff(points[:, 0]) <= 0).any()):
            raise PlanError(
                "a dense curve has one feature and points in ascending order", "write dense=False for others"
            )
        self._put("points", points)
        for field in ("estimates", "sampling_variance", "noise_variance", "denominator_noise"):
            values = np.array(getattr(self, field), dtype=np.float64)
            if values.shape != (len(points),):
                raise PlanError(f"{field} must hold one number for each of {len(points)} points, got {values.shape}")
            self._put(field, values)
        if self.band_variance is not None:
            self._put("band_variance", np.array(self.band_variance, dtype=np.float64))
            assert self.band_variance.shape == (len(points),)
        if self.null_variance is not None:
            self._put("null_variance", np.array(self.null_variance, dtype=np.float64))
            assert self.null_variance.shape == (3, len(points))
        for field in ("points", "estimates", "sampling_variance", "noise_variance", "denominator_noise"):
            getattr(self, field).flags.writeable = False
        if self.alone is not None:
            self._put("alone", np.array(self.alone, dtype=np.float64))
            assert self.alone.shape == (len(points),)
        if self.status == "valid" and not np.isfinite(self.estimates).all():
            raise PlanError("at status 'valid' estimates must be finite; otherwise say another status and its reason")
        self._put("flags", marked(self.flags, self.names, self._share))

    # the vocabulary of the other results ------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each point, such as "x = 0.25"."""
        return point_names(self.features, self.points)

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by name."""
        return pd.Series(self.estimates.copy(), index=list(self.names))

    @property
    def has_intervals(self) -> bool:
        """Whether `conf_int` gives numbers."""
        return self.status == "valid" and "no_interval" not in self.flags

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors to first order: sampling and privacy noise together; NaN without intervals."""
        return pd.Series(np.sqrt(self._variances.sum(axis=0)), index=list(self.names))

    @property
    def privacy_share(self) -> pd.Series[float]:
        """The privacy share of each 95% interval (`confide.results.pages.table`)."""
        return pd.Series(self._share, index=list(self.names))

    @property
    def _share(self) -> Array:
        z, nothing = self._quantile(0.05, simultaneous=False), np.zeros(len(self.points))
        low, high = self._limits(
            z, self.estimates, self._sampling(simultaneous=False), self.noise_variance, self.denominator_noise
        )
        own = self._sampling(simultaneous=False) if self.alone is None else self.alone
        alone = self._limits(z, self.estimates, own, nothing, nothing)
        return noise_share(high - low, alone[1] - alone[0])

    @property
    def _variances(self) -> Array:
        """Sampling and noise part at the points, shape (2, m)."""
        if not self.has_intervals:
            return np.full((2, len(self.points)), nan)
        return np.stack(
            [self.sampling_variance, self._noise(self.estimates, self.noise_variance, self.denominator_noise)]
        )

    def _noise(self, value: Array, noise: Array, relative: Array) -> Array:
        """The noise part of a squared standard error; infinite where the denominator is lost, whatever the value."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isfinite(relative), noise + relative * (value - self.middle) ** 2, inf))

    def foreseen(self) -> Foreseen:
        """The median standard error of the points whose interval is not all that the bounds allow."""
        errors, told = self.bse.to_numpy(), np.isfinite(self.denominator_noise) & self.has_intervals
        median = float(np.median(errors[told])) if told.any() else nan
        return Foreseen({"curve": median}, float(told.mean()), self._share[told], ("enough of the curve", "points"))

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """Intervals at level 1 - alpha, columns 0 (low) and 1 (high), one row for each point; NaN outside status "valid".

        simultaneous: a band that holds the whole curve at once with that probability. Raises `PlanError` where none is known.
        """
        z = self._quantile(check_alpha(alpha), simultaneous)
        parts = (self.estimates, self._sampling(simultaneous), self.noise_variance, self.denominator_noise)
        low, high = self._limits(z, *parts)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def _limits(self, z: float, value: Array, sampling: Array, noise: Array, relative: Array) -> tuple[Array, Array]:
        """Fieller's set, the whole of the bounds where it is unbounded. sampling: (m,), or a, b, c as in null_variance, (3, m)."""
        least, most = self.bounds
        if not self.has_intervals:
            return np.full(len(value), nan), np.full(len(value), nan)
        f = value - self.middle
        fixed, slope, square = sampling if sampling.ndim == 2 else (sampling, 0.0, 0.0)
        with np.errstate(all="ignore"):
            relative = relative + square
            lead = 1 - z * z * relative
            inside = (fixed + noise) * lead + relative * f * f + slope * f + (z * slope / 2) ** 2
            half = z * np.sqrt(np.maximum(inside, 0.0)) / lead
            centre = (f + z * z * slope / 2) / lead
            low, high = self.middle + centre - half, self.middle + centre + half
        open_ = ~(lead > 0) | ~np.isfinite(low + high)
        low, high = np.clip(np.where(open_, least, low), least, most), np.clip(np.where(open_, most, high), least, most)
        return low, high

    def _sampling(self, simultaneous: bool) -> Array:
        if self.null_variance is not None:
            return self.null_variance
        return self.band_variance if simultaneous and self.band_variance is not None else self.sampling_variance

    def _quantile(self, alpha: float, simultaneous: bool) -> float:
        z = float(-special.ndtri(alpha / 2))
        if not check_simultaneous(simultaneous):
            return z
        if not isfinite(self.crossings):
            raise PlanError(
                "no simultaneous band is known for this curve", "write conf_int(alpha) for intervals at each point"
            )
        # Rice 1944: the chance to leave [-c, c] is at most that at the start and the expected number of crossings
        ratio = self.crossings / pi
        return float(optimize.brentq(lambda c: 2 * special.ndtr(-c) + ratio * exp(-c * c / 2) - alpha, 0.0, 40.0))

    # values -----------------------------------------------------------------------------------------------------------

    def at(self, x: ArrayLike, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """The curve at public points: the features, estimate, std_err, ci_low, ci_high. Reading it costs nothing.

        x: one number or a list of them; with several features one row of numbers for each point. A dense curve is read between its
        points, and at its ends beyond them; another one at its points alone (`PlanError`). Raises `NoResult` without a reply.
        """
        self._replied()
        places = self._places(x)
        rows = None if self.dense else self._rows(places)
        value, own, noise, relative, sampling = (
            self._between(places, part) if rows is None else part[..., rows]
            for part in (
                self.estimates,
                self._sampling(simultaneous) if self.null_variance is None else self.sampling_variance,
                self.noise_variance,
                self.denominator_noise,
                self._sampling(simultaneous),
            )
        )
        low, high = self._limits(self._quantile(check_alpha(alpha), simultaneous), value, sampling, noise, relative)
        se = np.sqrt(own + self._noise(value, noise, relative)) if self.has_intervals else low
        columns = {name: places[:, j] for j, name in enumerate(self.features)}
        return pd.DataFrame({**columns, "estimate": value, "std_err": se, "ci_low": low, "ci_high": high})

    def predict(self, data: Any) -> pd.Series[float]:
        """The curve at the rows of public data: a frame or mapping that holds the features, or numbers as for `at`; NaN where one is
        missing.

        Raises `NoResult` when the release declined.
        """
        self._replied()
        if has_columns(data):
            missing = [name for name in self.features if name not in data]
            if missing:
                raise PlanError(f"the data have no column {missing[0]!r}; the curve needs {', '.join(self.features)}")
            data = np.column_stack([np.atleast_1d(np.asarray(data[name], dtype=np.float64)) for name in self.features])
        places = self._places(data, missing=True)
        known = np.isfinite(places).all(axis=1)
        values = np.full(len(places), nan)
        if known.any():
            values[known] = self.at(places[known])["estimate"]
        return pd.Series(values, name=self.response)

    def _replied(self) -> None:
        if self.status == "declined":
            raise NoResult("the release declined, so there is no curve to read", "ask for a new release")

    def _places(self, x: ArrayLike, *, missing: bool = False) -> Array:
        d = len(self.features)
        try:
            places = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise PlanError(f"points must be numbers, got {type(x).__name__}", "write at([0.1, 0.2])") from None
        places = places.reshape(-1, 1) if d == 1 and places.ndim <= 1 else np.atleast_2d(places)
        if places.ndim != 2 or places.shape[1] != d or not (missing or np.isfinite(places).all()):
            raise PlanError(
                f"points must be finite, with one number for each of {', '.join(self.features)}", "write at([0.1, 0.2])"
            )
        return places

    def _between(self, places: Array, part: Array) -> Array:
        """Numbers of the points, read between them."""
        rows = [np.interp(places[:, 0], self.points[:, 0], row) for row in np.atleast_2d(part)]
        return rows[0] if part.ndim == 1 else np.array(rows)

    def _rows(self, places: Array) -> list[int]:
        known = {tuple(row): k for k, row in enumerate(self.points.tolist())}
        wrong = [row for row in map(tuple, places.tolist()) if row not in known]
        if wrong:
            raise PlanError(
                f"the release holds the curve at {len(known)} points alone, and {wrong[0]} is none of them; to_frame() lists them"
            )
        return [known[row] for row in map(tuple, places.tolist())]

    # what is shown ----------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> list[int]:
        """Positions of the rows that tables show: some, evenly apart, of a dense curve."""
        m = len(self.points)
        if not self.dense or m <= _SHOWN:
            return list(range(m))
        return [round(k * (m - 1) / (_SHOWN - 1)) for k in range(_SHOWN)]

    def left_out(self, count: int, shown: int) -> str:
        """What is said of the points that are not printed."""
        return f"{shown} of {count:,} {self.rows_called}; all of them: to_frame(), any other: at(x)"

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"{super().title} over {', '.join(self.features)}"

    def head(self) -> tuple[tuple[str, str], ...]:
        """How many points there are."""
        return (("Points", f"{len(self.points):,}"),)

    def reported(self) -> tuple[tuple[str, str, str], ...]:
        """A curve is made of sums near its points, and says how many records there are nowhere."""
        return (("Records", "their number is not published", ""),)

    own_columns: ClassVar[tuple[str, ...]] = (
        "estimate", "std_err", "ci_low", "ci_high", "band_low", "band_high", "privacy_share"
    )  # fmt: skip

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """All points: the features, estimate, std_err, ci_low, ci_high, band_low, band_high (NaN where no band is known), privacy_share."""
        known = isfinite(self.crossings)
        limits = self.conf_int(alpha)
        band = self.conf_int(alpha, simultaneous=True) if known else limits * nan
        hidden = self.status in WITHOUT_NUMBERS
        whole = "contains the whole curve with that probability."
        return (
            *(Column(name, self.points[:, j], "number", head=name) for j, name in enumerate(self.features)),
            Column("estimate", self.estimates * nan if hidden else self.estimates),
            Column("std_err", self.bse.to_numpy(), "std_err"),
            Column("ci_low", limits[0].to_numpy(), "interval"),
            Column("ci_high", limits[1].to_numpy(), "interval"),
            Column("band_low", band[0].to_numpy(), "interval", words=whole, printed=known),
            Column("band_high", band[1].to_numpy(), "interval", words=whole, printed=known),
            Column("privacy_share", self.privacy_share.to_numpy(), "share"),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON beyond the table."""
        own = ("features", "dense", "points", "sampling_variance", "noise_variance", "denominator_noise", "middle")
        return {
            "label": self.response,
            **{name: getattr(self, name) for name in (*own, "bounds", "crossings")},
        }

    def draw(self, ax: Axes, alpha: float) -> None:
        """The curve with its pointwise band and, where one is known, the simultaneous one."""
        draw_curve(self, ax, alpha)

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        level = level_words(alpha)
        if not self.has_intervals:
            return f"{'Line' if self.dense else 'Points'}: estimates, without intervals."
        if not self.dense:
            return f"Points: estimates. Whiskers: {level} confidence intervals."
        whole = f" Dashed lines: the {level} band for the whole curve at once." if isfinite(self.crossings) else ""
        return f"Line: the estimate. Shaded: its {level} confidence interval at each point.{whole}"
