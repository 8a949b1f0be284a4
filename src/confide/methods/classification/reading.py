"""From noisy class statistics to a `ClassModel`: shares, means, variances, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import Release
from confide.errors import PlanError
from confide.guarantees.validation import is_number
from confide.methods.classification.design import ClassDesign
from confide.results.base import LevelCount, level_remarks
from confide.results.classes import ClassModel, ClassTable, class_names
from confide.results.pages.content import missing_words, ranges_told

#: What the classifier assumes of variances: 1 in the data's units; one for all features; one for each; one for each class and feature.
VARIANCES = ("identity", "shared", "per_feature", "per_class")

# A class counts as seen from this many records, and this many sds of the noise of its count, on: the ratio is normal then.
_FEW, _STANDS = 20, 10
# Below so many sds of its noise, the number of all records tells nothing but that hardly any has a listed class.
_NONE = 3
# Variances of places in [-1, 1] lie between this and 1.
_LEAST = 1e-8


@dataclass(frozen=True)
class ClassStatistics:
    """Released statistics in half-ranges of the bounds. K classes, p features.

    - counts: noisy sizes (K,); count_sd: SD of their noise.
    - means: (K, p), unprojected; mean_noise: their noise variances (K, p), without that of the counts where the means are released
      themselves.
    - squares: noisy means of squares (K, p) or None; square_noise: their noise variances (K, p).
    - laplace: whether the counts' noise is Laplace noise.
    - of_units: the covariance of shares and means where several rows of a unit count, and the SD of each variance (`sums`).
    - weak: why independent units are too few for intervals, "" where they are not.
    """

    counts: Array
    count_sd: float
    means: Array
    mean_noise: Array
    squares: Array | None = None
    square_noise: Array | None = None
    laplace: bool = False
    of_units: tuple[Array, Array] | None = None
    weak: str = ""

    @property
    def sizes(self) -> Array:
        """Counts, at least 1."""
        return np.maximum(self.counts, 1.0)

    @property
    def total(self) -> float:
        """The estimated number of records, at least 1."""
        return max(float(self.counts.sum()), 1.0)

    @property
    def variances(self) -> Array:
        """Noisy variances within classes (K, p); they may be negative. The noise in the squared means is taken off."""
        assert self.squares is not None
        return np.asarray(self.squares - self.means**2 + self.mean_noise)


def checked_radius(radius: float | None, features: int) -> float:
    """R in half-ranges: the corner of the box by default; `PlanError` for one that is not a positive number."""
    corner = sqrt(features)
    if radius is None:
        return corner
    if not is_number(radius) or not 1e-3 <= radius <= 1e6:
        raise PlanError(
            f"radius must be a number of at least 0.001, in half-ranges of the bounds, got {radius!r}",
            "leave it out for sqrt(features)",
        )
    return min(float(radius), corner)


def checked_variance(variance: Any) -> None:
    """Raise `PlanError` for a variance that is none of `VARIANCES`."""
    if variance not in VARIANCES:
        raise PlanError(
            f"variance must be one of {', '.join(VARIANCES)}, got {variance!r}; 'per_feature' is the default"
        )


def class_model(
    method: Any,
    release: Release,
    own: ClassDesign,
    found: ClassStatistics,
    radius: float,
    *,
    target: str,
    intervals_for: str,
    intervals: bool = True,
    floor: float = 0.0,
    flags: tuple[str, ...] = (),
    tables: tuple[ClassTable, ...] = (),
    of: tuple[int, ...] | None = None,
) -> ClassModel:
    """The result of a release.

    - floor: the least share of a class in predictions; intervals: False gives point estimates only.
    - of: the features that the ball is for, all by default; the others are in `tables`.
    """
    thin = bool(float(found.counts.min()) < _least(found))
    few = thin or bool(found.weak)
    none = bool(float(found.counts.sum()) < _NONE * found.count_sd * sqrt(len(own.classes)))
    covariance, noise = _covariance(method.variance, own, found)
    middle, half = own.chart
    means = middle + half * found.means
    names = class_names(own.classes, own.features)
    size = len(names)
    reason = _FEW_RECORDS + _small(own, found) if thin else found.weak
    status = "imprecise" if few else "valid"
    if few or not intervals:
        covariance, noise = np.full((size, size), nan), np.full(size, nan)
    return ClassModel(
        **_stated(method, release, own),
        names=names,
        estimates=np.concatenate([np.clip(found.counts / found.total, 0.0, 1.0), means.T.ravel()]),
        covariance=covariance,
        df=inf,
        noise_variance=noise,
        status=status,
        reason=reason,
        flags=flags + (() if intervals else ("no_interval",)) + (("few_complete_records",) if none else ()),
        target=target,
        intervals_for=intervals_for,
        facts=(("Classes of", own.response), ("Records (noisy)", f"{found.total:,.0f}")),
        **_classifier(method.variance, own, found, radius, floor, tables, of),
    )


def _least(found: ClassStatistics) -> float:
    """The noisy size from which on a class counts as seen."""
    return max(_FEW, _STANDS * found.count_sd)


def _small(own: ClassDesign, found: ClassStatistics) -> str:
    """The classes below that size, by their public names, as what follows in the reason."""
    sizes = zip(own.classes, found.counts.tolist(), strict=True)
    return level_remarks(
        LevelCount(own.response, label, size, found.count_sd, found.laplace)
        for label, size in sizes
        if size < _least(found)
    )


def silent(
    method: Any, release: Release, own: ClassDesign, *, target: str, intervals_for: str, flags: tuple[str, ...]
) -> ClassModel:
    """The result of a release without a reply."""
    names = class_names(own.classes, own.features)
    size = len(names)
    return ClassModel(
        **_stated(method, release, own),
        names=names,
        estimates=np.full(size, nan),
        covariance=np.full((size, size), nan),
        df=nan,
        noise_variance=np.full(size, nan),
        status="declined",
        reason=_NO_REPLY,
        flags=flags,
        target=target,
        intervals_for=intervals_for,
        facts=(("Classes of", own.response),),
        classes=own.classes,
        label=own.response,
    )


_FEW_RECORDS = "the noisy size of at least one class is below 20 or below ten SDs of its noise; join classes, or ask for a larger budget"
_NO_REPLY = (
    "the safety test did not pass: the smallest class is not certain to have the size that the noise was made for. Lower c0 (or least) to "
    "about half of the least share (or size) to expect, join classes, or use ClassMeans, which always replies"
)


def _stated(method: Any, release: Release, own: ClassDesign) -> dict[str, Any]:
    return {
        "method": f"{method.name} {method.version}",
        "response": "",
        "requested": release.plan.requested,
        "guarantee": release.charged,
        "release_sha256": release.sha256,
        "simulated": release.simulated,
        "legend": (("Missing", _missing(release, own)), *ranges_told(release)),
        "ranges": release.ranges,
    }


def _missing(release: Release, own: ClassDesign) -> str:
    """What the schema does with missing values of the columns in use: public facts."""
    return missing_words(release.plan.declared.columns, own.design)


def _covariance(variance: str, own: ClassDesign, found: ClassStatistics) -> tuple[Array, Array]:
    """Covariance of shares and means in the data's units (0 between means of one class), and of each variance what sampling alone would
    not give.
    """
    k, p = found.means.shape
    share, n = found.counts / found.total, found.total
    safe = np.clip(share, 0.0, 1.0)
    # d(n_k/n) = (e_k - q)/n: the noise of all counts goes into each share
    gradient = (np.eye(k) - share[:, None]) / n
    share_noise = found.count_sd**2 * (gradient @ gradient.T)
    spread = _for_intervals(variance, own, found)
    sampling = spread / found.sizes[:, None]
    half2 = own.chart[1] ** 2
    noise = np.concatenate([np.diag(share_noise), (found.mean_noise * half2).T.ravel()])
    if found.of_units is not None:
        scale = np.concatenate([np.ones(k), np.repeat(own.chart[1], k)])
        whole = _with_units(found.of_units, scale, noise, share_noise)
        return whole, np.maximum(np.diag(whole) - np.maximum(np.diag(found.of_units[0]) * scale**2, 0.0), 0.0)
    covariance = np.zeros((k + k * p, k + k * p))
    covariance[:k, :k] = (np.diag(safe) - np.outer(safe, safe)) / n + share_noise
    means = ((sampling + found.mean_noise) * half2).T.ravel()
    covariance[range(k, k + k * p), range(k, k + k * p)] = means
    covariance.flags.writeable = False
    alone = ((_plain(variance, own, found) / found.sizes[:, None]) * half2).T.ravel()
    noise[k:] = np.maximum(means - alone, 0.0)
    return covariance, noise


def _with_units(of_units: tuple[Array, Array], scale: Array, noise: Array, share_noise: Array) -> Array:
    """The covariance of units and the noise; each variance with what its own error needs, as in `_for_intervals`."""
    k = len(share_noise)
    sampling, sd = of_units[0] * np.outer(scale, scale), of_units[1] * scale**2
    covariance = sampling + np.diag(noise)
    covariance[:k, :k] = sampling[:k, :k] + share_noise
    own = np.diag(covariance).copy()
    covariance[np.diag_indices(len(own))] += np.minimum(sd, 2 * sd**2 / np.maximum(own, 1e-300))
    return covariance


def _for_intervals(variance: str, own: ClassDesign, found: ClassStatistics) -> Array:
    """Variances within classes in half-ranges, with what their own errors need.

    Let V be the variance of a mean and t the SD of its estimated part, from privacy noise and from n_k records. A Student quantile with
    2 V^2/t^2 degrees of freedom (Satterthwaite) is a normal one for V + (z^2 + 1)/4 t^2/V. That is at most 2 t^2/V up to the level of
    99%. No more than t is added.
    """
    value = _plain(variance, own, found)
    if variance == "identity" or found.squares is None:
        return value
    assert found.square_noise is not None
    sizes = np.maximum(found.sizes, 2.0)[:, None]
    error = np.sqrt(found.square_noise + 2 * value**2 / sizes)
    whole = value / sizes + found.mean_noise
    return np.asarray(np.minimum(value + np.minimum(error, 2 * error**2 / (sizes * whole)), 1.0))


def _plain(variance: str, own: ClassDesign, found: ClassStatistics) -> Array:
    """Variances within classes in half-ranges."""
    if variance == "identity" or found.squares is None:
        return np.broadcast_to(own.chart[1] ** -2.0, found.means.shape).copy()
    sizes = np.maximum(found.sizes, 2.0)[:, None]
    return np.asarray(np.clip(found.variances * (sizes / (sizes - 1)), _LEAST, 1.0))


def _classifier(
    variance: str,
    own: ClassDesign,
    found: ClassStatistics,
    radius: float,
    floor: float,
    tables: tuple[ClassTable, ...],
    of: tuple[int, ...] | None,
) -> dict[str, Any]:
    middle, half = own.chart
    share = np.maximum(found.counts / found.total, max(floor, found.count_sd / found.total, 1e-12))
    places = list(range(found.means.shape[1]) if of is None else of)
    centres = found.means.copy()
    length = np.linalg.norm(centres[:, places], axis=1)
    centres[:, places] *= (radius / np.maximum(length, radius))[:, None]
    return {
        "classes": own.classes,
        "label": own.response,
        "design": own.design,
        "shares": share / share.sum(),
        "centres": middle + half * centres,
        "spreads": _for_predictions(variance, own, found, places) * half**2,
        "reach": radius,
        "tables": tables,
    }


def _for_predictions(variance: str, own: ClassDesign, found: ClassStatistics, places: list[int]) -> Array:
    """Variances of the classifier in half-ranges, not below one SD of their noise."""
    if variance == "identity" or found.squares is None or not places:
        return np.broadcast_to(own.chart[1] ** -2.0, found.means.shape).copy()
    assert found.square_noise is not None
    if variance == "per_class":
        return np.asarray(np.clip(np.maximum(found.variances, np.sqrt(found.square_noise)), _LEAST, 1.0))
    weight = (found.sizes / found.sizes.sum())[:, None]
    value = (weight * found.variances).sum(axis=0)
    error = np.sqrt((weight**2 * found.square_noise).sum(axis=0))
    if variance == "shared":
        value = np.full_like(value, value[places].mean())
        error = np.full_like(error, np.linalg.norm(error[places]) / max(len(places), 1))
    return np.broadcast_to(np.clip(np.maximum(value, error), _LEAST, 1.0), found.means.shape).copy()
