"""Draw from a law with whole arrays of words: exact, whatever the rounding of floats does.

Each try spends three words: W0 picks the cell, W1 is the place r in the cell, W2 holds the sign (last bit) and the
uniform U of the accept test. Float64 decides a try only when it is further from the boundary than its proved error; the
rest, about one in 2^47, is settled in integer arithmetic with more words. How many tries a draw takes is independent of
the values that were accepted, so its running time tells nothing of the noise.

The error of the float64 e for e^-x, x = A r (r + 2c), in units of 2^-53, for the cells in the table: there c <= 293 and
2 A (c + 1) < .58 (the tests check this over all mantissas of sigma).
    r cut to 53 bits, dx <= 2 A (c + 1):                               .58
    A, r + 2c and two products rounded, x < .58:     4.01 * .58  =    2.33
    exp_small, e <= 1:                                                3.6
Together < 6.6 units < 2^-50.2; `law.margin` is made for 2^-48. Let b = accept_bits, u = floor(2^b U) and
d = floor(2^b e) - u. If d > margin, then 2^b e^-x > u + 1 > 2^b U: accept. If d < -margin, then 2^b e^-x < u <= 2^b U:
reject.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from confide.noise.exponential import exp_bounds, exp_small
from confide.noise.laws import GUIDE_BITS, UNDECIDED, GaussianLaw
from confide.noise.words import WordArray, Words

__all__ = ["draw"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

BLOCK = 16_384  # tries; a block's arrays stay in the processor's second cache
WORDS_PER_TRY = 3


def draw(law: GaussianLaw, words: Words, size: int) -> IntArray:
    """`size` independent draws, int64, shape (size,)."""
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        accepted = _block(law, words, tries_for(size - filled))[: size - filled]
        out[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return out


def tries_for(missing: int) -> int:
    """How many tries to make for `missing` draws: 97.5 % or more are accepted, so that one block nearly always does."""
    return min(BLOCK, missing + missing // 32 + 16)


def _block(law: GaussianLaw, words: Words, tries: int) -> IntArray:
    """What `tries` tries accept, in their order."""
    block = words.take(WORDS_PER_TRY * tries)
    first, place, last = block[:tries], block[tries : 2 * tries], block[2 * tries :]
    cells, open_cells = _cells(law, first)
    accept, near = _accept(law, cells, place, last)
    values = _values(law, cells, place, last)
    for index in np.union1d(open_cells, near):
        settled = settle(law, words, int(first[index]), int(place[index]), int(last[index]))
        accept[index] = settled is not None
        values[index] = 0 if settled is None else settled
    return values[accept]


def _cells(law: GaussianLaw, first: WordArray) -> tuple[IntArray, IntArray]:
    """The cell of each try, and the indices of those whose cell is still open (cell 0 stands in)."""
    word = first >> np.uint64(64 - law.cell_bits)
    cells = law.guide[(word >> np.uint64(law.cell_bits - GUIDE_BITS)).view(np.int64)]
    crossed = np.flatnonzero(cells == UNDECIDED)
    word = word[crossed]
    found = np.searchsorted(law.thresholds, word, side="right")
    # Open: the digits of U equal those of some F(c), which is then the last threshold that is not above them.
    still_open = law.thresholds[np.maximum(found, 1) - 1] == word
    found[still_open] = 0
    cells[crossed] = found
    return cells, crossed[still_open]


def _accept(law: GaussianLaw, cells: IntArray, place: WordArray, last: WordArray) -> tuple[BoolArray, IntArray]:
    """Whether float64 accepts each try, and the indices of those too near to call."""
    r = (place >> np.uint64(11)).view(np.int64).astype(np.float64)  # 53 bits: exact
    r *= 2.0**-53
    x = r * law.rate_float
    r += cells * 2.0
    x *= r
    e = exp_small(x)
    e *= 2.0**law.accept_bits
    distance = e.astype(np.int64)
    distance -= (last >> np.uint64(64 - law.accept_bits)).view(np.int64)
    return distance > 0, np.flatnonzero(np.abs(distance) <= law.margin)


def _values(law: GaussianLaw, cells: IntArray, place: WordArray, last: WordArray) -> IntArray:
    """The signed, rounded position of each try."""
    values = law.magnitudes[cells]
    if law.shift >= 0:
        rounded = (place >> np.uint64(63 - law.shift)).view(np.int64)
        rounded += 1
        rounded >>= 1
        values += rounded
    negative = -(last & np.uint64(1)).view(np.int64)
    values ^= negative
    values -= negative
    return values


def settle(law: GaussianLaw, words: Words, first: int, place: int, last: int) -> int | None:
    """One try in exact arithmetic: its value, or None when it is rejected. Takes more words until both are certain."""
    cell = _settle_cell(law, words, first >> (64 - law.cell_bits))
    if not _settle_accept(law, words, cell, place, last >> (64 - law.accept_bits)):
        return None
    magnitude = law.magnitude(cell, place)
    return -magnitude if last & 1 else magnitude


def _settle_cell(law: GaussianLaw, words: Words, digits: int) -> int:
    length = law.cell_bits
    while (cell := law.settle_cell(digits, length)) is None:
        digits, length = digits << 64 | int(words.take(1)[0]), length + 64
    return cell


def _settle_accept(law: GaussianLaw, words: Words, cell: int, place: int, uniform: int) -> bool:
    """U < e^-x for the real U and r that start with the digits at hand; e^-x falls in r."""
    place_bits, uniform_bits = 64, law.accept_bits
    while True:
        lowest = exp_bounds(_exponent(law, cell, place + 1, place_bits), uniform_bits + 64)[0]
        highest = exp_bounds(_exponent(law, cell, place, place_bits), uniform_bits + 64)[1]
        if (uniform + 1) << 64 <= lowest:
            return True
        if uniform << 64 >= highest:
            return False
        next_place, next_uniform = words.take(2).tolist()
        place, place_bits = place << 64 | next_place, place_bits + 64
        uniform, uniform_bits = uniform << 64 | next_uniform, uniform_bits + 64


def _exponent(law: GaussianLaw, cell: int, place: int, bits: int) -> Fraction:
    """x = A r (r + 2c) at r = place / 2^bits."""
    return law.rate * place * (place + (cell << (bits + 1))) / (1 << (2 * bits))
