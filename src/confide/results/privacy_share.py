"""The part of an interval that is privacy noise, and the flag of a row where it dominates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.results.pages.content import Flag

Vector = NDArray[np.float64]

# Above this share an interval is more than three times as wide as that of sampling alone.
_MOST = 0.9
# Sds of its noise that a robust variance may be off by, an error of 5 % on either side.
_LIKELY = 1.645
# Rows that a flag names.
_NAMED = 6

#: What the flag is called, of a result and of a row.
DOMINATES = "noise_dominates"
_TOLD = (
    "privacy noise is more than 90% of the squared margin of error{}. Without privacy the interval would be less than a third as wide. A "
    "larger budget, more records, narrower bounds, a coarser table or fewer terms narrow it"
)
#: What it means, of a row.
DOMINATED = _TOLD.format("")


def noise_share(width: ArrayLike, alone: ArrayLike) -> Vector:
    """The part of squared widths of intervals that is privacy noise, in [0, 1].

    NaN without an interval, with a width of 0, or without a sampling width. width: of the intervals, or half of it, infinite for an open
    interval; alone: the same from sampling error only.

    >>> noise_share([2.0, 2.0, float("inf"), float("nan"), 0.0], [1.0, 3.0, 1.0, 1.0, 0.0]).tolist()
    [0.75, 0.0, 1.0, nan, nan]
    """
    whole, own = np.broadcast_arrays(np.asarray(width, dtype=np.float64), np.asarray(alone, dtype=np.float64))
    with np.errstate(all="ignore"):
        found = 1.0 - (own / whole) ** 2
    known = (whole > 0) & np.isfinite(own)
    found = np.where(known, np.where(np.isinf(whole), 1.0, found), np.nan)
    return np.asarray(np.clip(found, 0.0, 1.0))


def sampling_alone(robust: ArrayLike, error: ArrayLike, classical: ArrayLike) -> Vector:
    """The best estimate of sampling variances that released sums give.

    It is the robust one where that is above 0, because clusters, weights and heavy tails make it many times as large as the classical one.
    If the classical one is larger, it is that one, within the noise of the robust one. error: the SD of that noise.

    >>> sampling_alone([4.0, 2.0, -2.0], [0.1, 2.0, 0.5], [1.0, 3.0, 1.0]).round(2).tolist()
    [4.0, 3.0, 0.82]
    """
    own = np.maximum(robust, 0.0)
    return np.asarray(np.clip(classical, own, own + _LIKELY * np.asarray(error, dtype=np.float64)))


def dominated(share: ArrayLike) -> NDArray[np.bool_]:
    """Where privacy noise dominates an interval."""
    return np.asarray(np.asarray(share, dtype=np.float64) > _MOST)


def marked(flags: Sequence[str], names: Sequence[str], share: ArrayLike) -> tuple[str, ...]:
    """A result's flags, with the one that names the rows with dominating noise, if any. share: (p,).

    >>> marked((), ("a", "b"), [0.2, 0.95])
    ('noise_dominates',)
    """
    own = tuple(flag for flag in flags if flag != DOMINATES)
    rows = [name for name, on in zip(names, dominated(share), strict=True) if on]
    if not rows:
        return own
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return (*own, Flag(DOMINATES, _TOLD.format(f" of {', '.join(rows[:_NAMED])}{more}")))
