"""What a smoothed curve can expect before anything is spent: an interval for its standard errors, and how much of it is told.

Every number is that of simulated records of 32 shapes, from public facts alone. 95 % of a column's values lie in its typical range where
the schema states one, else in 5 % to 100 % of its bounds, anywhere inside them: of the feature from the narrowest in the first shape to the
widest in the last, of the response at steps of the golden ratio, so that both are narrowest at once. The feature is normal, skewed away
from the nearer bound as a shifted lognormal of log-sd .75, or even, by chance; in one shape of three its tails are long: beyond that range
values fall like those of a Pareto distribution of index 1.5 to 4. The response follows a wave in the feature, which leaves 3 % to 100 % of
its variance; of a response of two values the share lies between 5 % and 95 %. At points over the bounds the moments behind an interval
follow without noise, as `kernel_reading` has them, and the points at which too few records stand above the noise have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide._special import ndtr, ndtri
from confide.aggregates.kernels.kernel_cells import Axis
from confide.schema import Categorical, Design, Schema

__all__ = ["CurveForecast"]


_SEED, _SHAPES, _POINTS, _RECORDS = 20261123, 32, 41, 240
_NARROWEST, _SKEW, _KINDS, _INDICES = 0.05, 0.75, 3, (1.5, 4.0)
_LEAST_LEFT, _SHARES, _WAVES = 0.03, (0.05, 0.95), (0.5, 2.0)
# The normal quantile of 97.5 %.
_Z = 1.959963984540054
# Multiples of it fill the numbers from 0 to 1 evenly.
_GOLDEN = 0.6180339887498949
_FAMILY = (
    "feature and response anywhere in 5 % to 100 % of their bounds where nothing is stated, even to long-tailed; a wave leaves "
    "3 % to 100 % of the response"
)


@dataclass(frozen=True, eq=False)
class CurveForecast:
    """Expectations of one plan. sds: of the noise of one number of the curve, and of the moments of residuals, in records at the peak;
    lost: below how many sds of its noise a number of records is none; few: nor below so many; told: the part of the points at least.
    """

    schema: Schema
    design: Design
    axis: Axis
    squared: Axis
    sds: tuple[float, float]
    lost: float
    few: float
    told: float

    def table(self, n: int | None) -> dict[str, Any]:
        """By number of records: the interval of standard errors, and the chance of `ok`; as plans print it."""
        found: dict[str, Any] = {
            "assumes": f"the median over the points with an interval, the least and the largest in {_SHAPES} shapes of simulated records: "
            + _FAMILY,
            "of": ("enough of the curve", "points"),
            **{name: {} for name in ("ok", "answered", "price")},
        }
        for count in (n,) if n else (1_000, 10_000, 100_000):
            rows = np.array([self._expected(shape, count) for shape in self._drawn])
            key, (errors, shares, prices) = f"{count:,}", rows.T
            held = errors[np.isfinite(errors)]
            ends = (held.min(), held.max()) if len(held) else None
            found[key] = {"curve": None if ends is None else tuple(float(f"{end:.2g}") for end in ends)}
            found["ok"][key] = round(float((shares >= self.told).mean()), 2)
            found["answered"][key] = round(float(shares.mean()), 2)
            found["price"][key] = float(f"{np.nanmedian(prices) if len(held) else np.nan:.2g}")
        return found

    def _expected(self, shape: Mapping[str, Array], count: int) -> tuple[float, float, float]:
        """(median standard error, share of the points, how many times that without privacy) over the points with an interval."""
        below, own = np.maximum(count * shape["below"], 1e-12), shape["curve"]
        noise, residuals = (sd * size for sd, size in zip(self.sds, self._sizes, strict=True))
        seen = below >= np.maximum(self.lost * noise, self.few)
        if not seen.any():
            return np.nan, 0.0, np.nan
        most = count * shape["squares"] * (1 - own**2)
        sampling = count * shape["moments"]
        private = np.minimum(sampling + residuals, np.maximum(most, sampling)) + noise**2 * (1 + own**2)
        half = float(self.design.response.high - self.design.response.low) / 2
        # no interval is longer than the bounds
        errors = np.minimum(half * np.sqrt(private) / below, half / _Z)[seen]
        bare = np.maximum(half * np.sqrt(sampling) / below, 1e-300)[seen]
        return float(np.median(errors)), float(seen.mean()), float(np.median(errors / bare))

    @cached_property
    def _points(self) -> Array:
        return np.linspace(self.axis.low, self.axis.high, _POINTS)

    @cached_property
    def _sizes(self) -> tuple[Array, Array]:
        """What one sd of a number's noise is at each point, of the curve and of the moments."""
        first, second = (np.linalg.norm(axis.weights(self._points), axis=1) for axis in (self.axis, self.squared))
        return first, second

    @cached_property
    def _drawn(self) -> list[dict[str, Array]]:
        return [self._shape(k) for k in range(_SHAPES)]

    def _shape(self, k: int) -> dict[str, Array]:
        """At each point and for one record: E K, the smoothed curve, E K^2 (y - curve)^2 and E K^2; y in half-ranges."""
        generator = np.random.Generator(np.random.PCG64([_SEED, k]))
        scores = ndtri((np.arange(_RECORDS) + 0.5) / _RECORDS)
        x = self._feature(scores, generator, k)
        kernel = np.exp(-(((self._points[:, None] - x) / self.axis.h) ** 2) / 2)
        mean, variance = self._response(scores, generator, k)
        below = kernel.mean(axis=1)
        with np.errstate(all="ignore"):
            curve = np.where(below > 0, (kernel @ mean) / _RECORDS / below, 0.0)
        squared = kernel * kernel
        moments = (squared * (variance + (mean - curve[:, None]) ** 2)).mean(axis=1)
        return {"below": below, "curve": curve, "moments": moments, "squares": squared.mean(axis=1)}

    def _feature(self, scores: Array, generator: np.random.Generator, k: int) -> Array:
        """Values within the bounds."""
        bounds = float(self.axis.low), float(self.axis.high)
        share = _NARROWEST + (1 - _NARROWEST) * k / (_SHAPES - 1)
        low, high = _range(bounds, self._typical(self.design.terms[0].plain), share, generator)
        form, index = generator.integers(3), generator.uniform(*_INDICES)
        middle, half = (low + high) / 2, (high - low) / 2
        toward = 1.0 if middle - bounds[0] <= bounds[1] - middle else -1.0
        if form == 0:
            places = (ndtr(scores) - 0.5) / 0.475
        else:
            places = scores / _Z
            if form == 1:
                least, most = exp(-_SKEW * _Z), exp(_SKEW * _Z)
                places = toward * (2 * (np.exp(_SKEW * scores) - least) / (most - least) - 1)
            if k % _KINDS == _KINDS - 1:
                beyond = np.maximum(2 * ndtr(-np.abs(scores)) / 0.05, 1e-12) ** (-1 / index)
                places = places * np.maximum(beyond, 1.0)
        return np.asarray(np.clip(middle + half * places, *bounds))

    def _response(self, scores: Array, generator: np.random.Generator, k: int) -> tuple[Array, Array]:
        """Means and variances of the response at the records, in half-ranges around the middle."""
        wave = np.sin(generator.uniform(0, 2 * np.pi) + generator.uniform(*_WAVES) * scores)
        wave = (wave - wave.mean()) / wave.std()
        left = _LEAST_LEFT + (1 - _LEAST_LEFT) * generator.random() ** 1.5
        if self.design.response.steps == 2:
            share = generator.uniform(*_SHARES)
            mean = np.clip(2 * (share + sqrt((1 - left) * share * (1 - share)) * wave) - 1, -0.98, 0.98)
            return mean, 1 - mean**2
        response = self.design.response
        bounds, share = (float(response.low), float(response.high)), _NARROWEST + (1 - _NARROWEST) * (k * _GOLDEN % 1)
        low, high = _range(bounds, self._typical(response.plain), share, generator)
        half = float(response.high - response.low) / 2
        middle, sd = (low + high) / 2, (high - low) / 2 / _Z / half
        mean = (middle - response.low) / half - 1 + sqrt(1 - left) * sd * wave
        return np.clip(mean, -1.0, 1.0), np.full(len(scores), left * sd**2)

    def _typical(self, name: str | None) -> tuple[float, float] | None:
        """The stated range of a column that stands as it is."""
        column = None if name is None else self.schema[name]
        spread = None if column is None or isinstance(column, Categorical) else column.spread
        return None if spread is None else (spread.low, spread.high)


def _range(
    bounds: tuple[float, float], typical: tuple[float, float] | None, share: float, generator: np.random.Generator
) -> tuple[float, float]:
    """Where 95 % of the values lie: what is stated, or this share of the bounds."""
    if typical is not None:
        return typical
    width = share * (bounds[1] - bounds[0])
    low = bounds[0] + generator.random() * (bounds[1] - bounds[0] - width)
    return low, low + width
