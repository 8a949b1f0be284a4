"""Cauchy noise rounded to integers, exactly: rint(s X/Y) for a uniform point (X, Y) of the half disc.

The direction of a uniform point of the disc is uniform, so that X/Y is a standard Cauchy number (Devroye 1986, chapter II.4). X and Y
are taken in the quarter disc, with a sign apart. Their binary digits are drawn as they are needed: whether the point lies in the disc
and which integer s X/Y rounds to are settled on intervals of rationals, and more digits are drawn while both ends do not agree. 192
digits are drawn at once, with which less than one draw in 2^100 needs more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from confide.noise.laws import Scales
from confide.noise.samplers.uniform import LazyUniform
from confide.noise.words import Words

__all__ = ["grid_cauchy"]

_WORDS = 3


def grid_cauchy(words: Words, scales: Scales, size: int) -> npt.NDArray[np.object_]:
    """`size` independent draws, Python integers in an object array: the tails are too long for 64 bits."""
    out = np.empty(size, dtype=object)
    for i in range(size):
        scale = scales.values[0 if scales.index is None else int(scales.index[i])]
        out[i] = _one(words, scale.numerator, scale.denominator)
    return out


def _one(words: Words, top: int, bottom: int) -> int:
    """One draw at the scale top/bottom."""
    while True:
        x, y = LazyUniform(words), LazyUniform(words)
        while True:
            x.extend(_WORDS)
            y.extend(_WORDS)
            inside = _inside(x, y)
            if inside is False:
                break
            # |s X/Y| rounds to floor((2 s X + Y) / (2 Y)); X/Y is between x/(y + 1) and (x + 1)/y in the last digit
            if inside and y.digits:
                low = _nearest(top * x.digits, bottom * (y.digits + 1))
                if low == _nearest(top * (x.digits + 1), bottom * y.digits):
                    return low if int(words.take(1)[0]) & 1 else -low


def _inside(x: LazyUniform, y: LazyUniform) -> bool | None:
    """Whether X^2 + Y^2 < 1; None while the digits do not tell."""
    whole = 1 << 2 * x.length
    if (x.digits + 1) ** 2 + (y.digits + 1) ** 2 <= whole:
        return True
    return False if x.digits**2 + y.digits**2 >= whole else None


def _nearest(top: int, bottom: int) -> int:
    return (2 * top + bottom) // (2 * bottom)
