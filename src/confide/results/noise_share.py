"""How much of an interval is privacy noise: the one rule for what is printed as the noise share, and for the flag where noise rules.

An interval that is w wide, where sampling alone would give one of a, has the noise share

    1 - (a/w)^2,

whatever made it wide: noise of the estimate, what is allowed for because noise may hide it (upper bounds of a variance, biases of limits
and cuts, bins), and quantiles that are larger because a variance is known with noise. What sampling alone would give is read from the
release too, and is as sure as noise leaves it. One share is printed, of the best estimate of a, and the flag follows what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.results.pages.words import Flag

__all__ = ["DOMINATED", "DOMINATES", "dominated", "marked", "noise_share", "sampling_alone"]

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
    "privacy noise, with all that is allowed for because of it, makes more than 90 % of the squared half-width{}: without privacy the "
    "interval would be less than a third as wide; a larger budget, more records, narrower bounds, a coarser table or fewer terms narrow it"
)
#: What it means, of a row.
DOMINATED = _TOLD.format("")


def noise_share(width: ArrayLike, alone: ArrayLike) -> Vector:
    """The part of squared widths of intervals that sampling alone would not give, in [0, 1].

    NaN where there is no interval, one of no width, or none by sampling either.
    width: of the intervals, or half of it, infinite where one has no end; alone: the same by sampling alone.

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

    It is the robust one, as far as it is above 0: clusters, weights and heavy tails make it many times as large as the classical one.
    Where that is larger it is the classical one, as far as noise lets it be so: a robust one that noise hides says next to nothing. error:
    the sd of the noise of the robust ones.

    >>> sampling_alone([4.0, 2.0, -2.0], [0.1, 2.0, 0.5], [1.0, 3.0, 1.0]).round(2).tolist()
    [4.0, 3.0, 0.82]
    """
    own = np.maximum(robust, 0.0)
    return np.asarray(np.clip(classical, own, own + _LIKELY * np.asarray(error, dtype=np.float64)))


def dominated(share: ArrayLike) -> NDArray[np.bool_]:
    """Where privacy noise, with all that is allowed for, rules an interval."""
    return np.asarray(np.asarray(share, dtype=np.float64) > _MOST)


def marked(flags: Sequence[str], names: Sequence[str], share: ArrayLike) -> tuple[str, ...]:
    """A result's flags, with the one that names the rows whose interval is ruled by noise, where there are any. share: (p,).

    >>> marked((), ("a", "b"), [0.2, 0.95])
    ('noise_dominates',)
    """
    own = tuple(flag for flag in flags if flag != DOMINATES)
    rows = [name for name, on in zip(names, dominated(share), strict=True) if on]
    if not rows:
        return own
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return (*own, Flag(DOMINATES, _TOLD.format(f" of {', '.join(rows[:_NAMED])}{more}")))
