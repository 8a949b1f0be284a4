"""Draws from the standard half normal and the standard exponential, digit by digit: what all laws are made of.

The half line is cut into cells of width 1/16. A try picks cell c with probability proportional to the density at its
left end and a uniform place r in it. It is accepted with probability e^-x, x = A r (r + 2c) with A = 1/512 for the
half normal, x = A r with A = 1/16 for the exponential. An accepted try is the number (c + r) / 16, of which c and the
first 64 binary digits of r are known. The digits of r that no test has looked at are uniform, so that a comparison
which is still open may draw them afterward. There is one public table per law, whatever the scale of the noise.

A try spends two words: 32 bits pick the cell, 31 are the uniform U of the accept test, one is the sign; the other word
is r. Float64 decides a try only when it is further from the boundary than its proved error; the rest, about one in
2^24, is settled in integer arithmetic with more words. How many tries a draw takes is independent of the values that
were accepted, so its running time tells nothing of the noise.

The error of the float64 e for e^-x, in units of 2^-53, for the cells in the table: there x < 0.40 and the slope of x in
r is below 0.40, for either law (the tests check this).
    r reduced to 53 bits, dx <= slope:                              0.40
    r + 2c and a product rounded (A is a power of two), x < 0.40:    2.01 * 0.40  =  0.81
    exp_small, e <= 1:                                              3.6
Together < 5 units; allowed for are 2^-48, what the digits of r that are not known may change, and one unit for the floor
of u = floor(2^b U), b = accept_bits. If 2^b e - u > margin, then 2^b e^-x > u + 1 > 2^b U: accept; if it is below
-margin, then 2^b e^-x < u <= 2^b U: reject.

Where the random bits come from: streams of uniform, independent 64-bit words.

`SecureWords` is the only source for noise that protects anybody: AES-256 in counter mode, keyed by the operating
system. `SimulatedWords` is its repeatable twin for tests and studies. The samplers see nothing of either but `take`.

e^-x twice: integer bounds to any precision, and a fast float64 whose error is proved.

No call of the C library's exp is made anywhere: it comes without a proved error bound and differs between platforms.
"""

from __future__ import annotations

import hashlib
import os
import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NoReturn, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError

WordArray = npt.NDArray[np.uint64]

KEY_BYTES = 32
BLOCK_BYTES = 16

# What tells counter mode from random bits is that it never repeats a 128-bit block: with q blocks under one key the
# advantage is at most q^2 / 2^129. 2^30 words are q = 2^29 blocks, hence at most 2^-71.
WORDS_PER_KEY = 2**30


class Words(Protocol):
    """A stream of uniform 64-bit words."""

    def take(self, count: int) -> WordArray:
        """The next `count` words, at most 2^30 at a time; no other call ever gets one of them."""
        ...


class _Keystream:
    """AES-256-CTR under a separate key, used by one process.

    A keystream is thrown away as a whole, lock included, when its process forks: a lock that another thread held at
    the fork would never open again in the child.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._key()

    def _key(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # only who draws waits for it

        secret = os.urandom(KEY_BYTES + BLOCK_BYTES)
        cipher = Cipher(algorithms.AES(secret[:KEY_BYTES]), modes.CTR(secret[KEY_BYTES:]))
        self._encrypt: Callable[[bytes], bytes] = cipher.encryptor().update
        self._left = WORDS_PER_KEY

    def read(self, count: int) -> bytes:
        with self._lock:
            if count > self._left:
                self._key()
            self._left -= count
            return self._encrypt(bytes(8 * count))


class SecureWords:
    """Cryptographic words: never seeded, never copied, never repeated by a forked child, none kept between calls.

    The key and the first counter block are 48 bytes of `os.urandom`, made again by `rekey`, after 2^30 words and in a
    forked process. Threads may share one instance. Source: NIST SP 800-38A (counter mode), FIPS 197 (AES).

    Errors: PrivacyError on pickling and copying.

    >>> len(SecureWords().take(3))
    3
    """

    def __init__(self) -> None:
        self._keystream = _Keystream()
        _LIVE.add(self)

    def rekey(self) -> None:
        """Start again from fresh bytes of the operating system; the old key is forgotten."""
        self._keystream = _Keystream()

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        keystream = self._keystream
        if keystream.pid != os.getpid():
            # Two threads of a child may both come by here: each then reads from a keystream of its own, which is safe.
            keystream = self._keystream = _Keystream()
        return np.frombuffer(keystream.read(count), dtype=np.uint64)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(
            "the words of secure noise cannot be pickled or copied: the copy would draw the same noise twice. "
            "Make a new SecureNoise() where the noise is drawn."
        )


# The pid test in `take` alone would miss a descendant that is given the pid of its dead ancestor; this hook alone would
# miss a fork made outside Python. The set holds its members weakly.
_LIVE: WeakSet[SecureWords] = WeakSet()


def _rekey_all() -> None:
    for words in list(_LIVE):
        words.rekey()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_rekey_all)


class SimulatedWords:
    """Repeatable words from NumPy's PCG64DXSM, keyed by the SHA-256 of the seed and the path of spawn keys.

    `BitGenerator.random_raw` is promised by NumPy to give the same words on every platform and in every version.

    >>> int(SimulatedWords(7).take(1)[0]) == int(SimulatedWords(7).take(1)[0])
    True
    """

    def __init__(self, seed: int, path: tuple[int, ...] = ()) -> None:
        self.seed = seed
        self.path = path
        # Hashed, because SeedSequence's own spawn keys run together: (2^32,) and (0, 1) would be one stream.
        digest = hashlib.sha256(f"confide/simulated/{seed}/{path}".encode()).digest()
        self._bits = np.random.PCG64DXSM(np.random.SeedSequence(int.from_bytes(digest, "big")))

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        return self._bits.random_raw(count)


FloatArray = npt.NDArray[np.float64]


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits e^-x <= high`, `x >= 0` and exact; they differ by a few units.

    Reduce below 2^-8 by halving, alternating series, square back.

    >>> exp_bounds(Fraction(1), 8)  # 256 / e = 94.18
    (94, 95)
    """
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 8)
    # Each squaring doubles the relative error and adds a unit; 32 spare bits keep the result within a few units.
    wide = bits + halvings + 32
    scaled = (x.numerator << wide) // x.denominator
    low = _reduced_exp(scaled + 1, wide, halvings)[0]
    high = _reduced_exp(scaled, wide, halvings)[1]
    return low >> (wide - bits), min(1 << bits, -(-high >> (wide - bits)))


def _reduced_exp(scaled: int, wide: int, halvings: int) -> tuple[int, int]:
    """Bounds of 2^wide e^-y, y = scaled / 2^wide: the series at y / 2^halvings < 2^-8, then `halvings` squarings."""
    shift = wide + halvings  # y / 2^halvings = scaled / 2^shift, exactly
    total = term = 1 << wide
    index = 0
    while term:
        index += 1
        # Each floor loses less than 1, and what it inherits shrinks by 2^-8: every term is short by less than 1.01.
        term = (term * scaled >> shift) // index
        total += -term if index % 2 else term
    # `index` terms, each off by less than 1.01, and an alternating remainder below the first term left out (< 1).
    slack = 2 * index + 2
    low, high = max(0, total - slack), total + slack
    for _ in range(halvings):
        low = low * low >> wide
        high = -(-high * high >> wide)
    return low, high


# Error budget of `exp_small`, relative, in units u = 2^-53, for 0 <= r < 1/64 (the tests redo it in rationals):
#   series cut after r^6, r^7/5040 e^(1/64): .42;  Horner, each product and sum rounded: 1.05;  table entry: 1;
#   last product: 1.  Sum 3.47, and terms in u^2.
EXP_SMALL_ERROR = Fraction(36, 10) / 2**53
# One table entry and one product more.
EXP_WIDE_ERROR = Fraction(57, 10) / 2**53
SLOTS = 64  # q = 0 .. 63: x < 1
WHOLES = 32  # x < 32


def _nearest_exp(x: Fraction) -> float:
    """The double nearest to e^-x: both integer bounds round to it (a division of ints rounds correctly)."""
    bits = 128
    while True:
        low, high = (end / (1 << bits) for end in exp_bounds(x, bits))
        if low == high:
            return low
        bits += 64


_EXP_TABLE: FloatArray = np.array([_nearest_exp(Fraction(q, SLOTS)) for q in range(SLOTS)], dtype=np.float64)
_EXP_WHOLES: FloatArray = np.array([_nearest_exp(Fraction(q)) for q in range(WHOLES)], dtype=np.float64)
_COEFFICIENTS = tuple((-1) ** j / factorial for j, factorial in enumerate((1, 1, 2, 6, 24, 120, 720)))


def exp_small(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 1 with relative error below 3.6 * 2^-53, from +, -, * and a table only.

    Every step is one IEEE operation of a NumPy ufunc, so the bits are the same on every platform.

    >>> float(exp_small(np.array([0.0]))[0])
    1.0
    """
    q = (x * 64.0).astype(np.int64)
    r = x - q * 0.015625  # exact: r < 1/64 is a multiple of the last place of x
    value: FloatArray = r * _COEFFICIENTS[6]
    for coefficient in _COEFFICIENTS[5:0:-1]:
        value += coefficient
        value *= r
    value += 1.0
    value *= _EXP_TABLE[q]
    return value


def exp_wide(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 32 with relative error below 5.7 * 2^-53, in the same way.

    >>> float(exp_wide(np.array([0.0]))[0])
    1.0
    """
    whole = x.astype(np.int64)
    value = exp_small(x - whole)  # exact: the difference keeps the last place of x
    value *= _EXP_WHOLES[whole]
    return value


_EXP_FARS: FloatArray = np.array([_nearest_exp(Fraction(WHOLES * q)) for q in range(22)], dtype=np.float64)


def exp_far(x: FloatArray) -> FloatArray:
    """e^-x for 0 <= x < 704 with relative error below 7.8 * 2^-53, in the same way.

    >>> float(exp_far(np.array([0.0]))[0])
    1.0
    """
    far = (x * (1 / WHOLES)).astype(np.int64)
    value = exp_wide(x - far * float(WHOLES))  # exact, as above
    value *= _EXP_FARS[far]
    return value


IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Kind = Literal["half normal", "exponential"]

BLOCK = 16_384  # tries; a block's arrays stay in the processor's second cache
CELL_BITS = 4  # cells of width 2^-4
TABLE_CELLS = 512  # more than a table of 32-bit thresholds has: 101 and 356
WORDS_PER_TRY = 2
SLOT_BITS = 7  # the guide has 2^7 slots for each halving of the tail; a finer table would leave the first cache
RATES: dict[Kind, Fraction] = {"half normal": Fraction(1, 512), "exponential": Fraction(1, 16)}


class CellTable:
    """The cumulative probabilities F(c) of the cells, each between two integers over 2^bits.

    P(c + 1) = P(c) * ratio, ratio = e^-A shrink^c, every product rounded outwards; shrink = e^-2A for the half normal
    (P(c) = e^(-A c^2) / Z) and 1 for the exponential (P(c) = e^(-A c) / Z).
    """

    def __init__(self, kind: Kind, bits: int) -> None:
        self.bits = bits
        self._one = 1 << bits
        rate = RATES[kind]
        ratio = exp_bounds(rate, bits)
        shrink = exp_bounds(2 * rate, bits) if kind == "half normal" else (self._one, self._one)
        weight = (self._one, self._one)
        sums = [weight]
        # Until the tail is a few units; weights of high end 1 or 2 can stick there, so the stop is well above.
        while weight[1] > 1 << 16:
            weight, ratio = self._product(weight, ratio), self._product(ratio, shrink)
            sums.append((sums[-1][0] + weight[0], sums[-1][1] + weight[1]))
        # What is left out: at most weight * (ratio + ratio^2 + ...), as the ratios never rise.
        tail = -(-weight[1] * ratio[1] // (self._one - ratio[1]))
        total_low, total_high = sums[-1][0], sums[-1][1] + tail
        self.low = [(low << bits) // total_high for low, _ in sums]
        self.high = [min(self._one, -((-high << bits) // total_low)) for _, high in sums]

    def _product(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] * b[0] >> self.bits, -(-a[1] * b[1] >> self.bits)

    def thresholds(self, bits: int) -> list[int] | None:
        """T_c = floor(2^bits F(c)) up to the first that is 2^bits - 1; None when some F(c) is not known well enough."""
        found: list[int] = []
        for low, high in zip(self.low, self.high, strict=True):
            threshold = low >> (self.bits - bits)
            if high >> (self.bits - bits) != threshold:
                return None
            found.append(threshold)
            if threshold == (1 << bits) - 1:
                return found
        return None

    def cell(self, digits: int, length: int) -> int | None:
        """The cell of every U in [digits, digits + 1) / 2^length; None when that interval is not clear of some F(c)."""
        start, end = digits << (self.bits - length), (digits + 1) << (self.bits - length)
        c = bisect_right(self.high, start)  # F(c - 1) <= start, for certain
        return c if c < len(self.low) and end <= self.low[c] else None


@lru_cache(maxsize=8)
def cell_table(kind: Kind, bits: int) -> CellTable:
    """The table of `kind` at a precision; public numbers, kept because settlements come back to the same few."""
    return CellTable(kind, bits)


@dataclass
class Draws:
    """Accepted tries: the numbers (cells + r) / 16, r in [places, places + 2^(64 - place_bits)) / 2^64, and their signs.

    cells, places: uint64, places without the digits that are not known; negative: bool. `settled` holds, for the
    few that were settled, (cell, digits, length): all the digits of r that the settlement looked at. Those after them
    are uniform and not drawn yet.
    """

    cells: WordArray
    places: WordArray
    negative: BoolArray
    settled: dict[int, tuple[int, int, int]]

    def digits(self, index: int, place_bits: int) -> tuple[int, int]:
        """(d, length): 16 times the number lies in [d, d + 1) / 2^length."""
        if index in self.settled:
            cell, place, length = self.settled[index]
        else:
            cell, length = int(self.cells[index]), place_bits
            place = int(self.places[index]) >> (64 - length)
        return cell << length | place, length


class StandardLaw:
    """The standard half normal or exponential as tables for the sampler.

    `cell_bits`, `accept_bits` and `place_bits` are how many bits of a try decide before more are drawn. The law is the
    same for every choice; the tests choose few, so that tries that need more are common.
    """

    def __init__(self, kind: Kind, *, cell_bits: int = 32, accept_bits: int = 31, place_bits: int = 64) -> None:
        self.kind: Kind = kind
        self.rate = RATES[kind]
        self.cell_bits = cell_bits
        self.accept_bits = accept_bits
        self.place_bits = place_bits
        # In units of 2^-accept_bits: the error of float64 and of the missing digits of r, up to the next, and the floor.
        self.margin = -(-(1 << accept_bits) * (1 + (1 << (48 - min(48, place_bits)))) >> 48) + 1
        self.thresholds = self._thresholds()
        self.first_cell, self.next_threshold = self._guide()

    def _thresholds(self) -> list[int]:
        bits = self.cell_bits + 128
        while (found := cell_table(self.kind, bits).thresholds(self.cell_bits)) is None:
            bits += 64
        return found

    def _guide(self) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
        """For each slot of words: the cell of its least word if no threshold equals it, and the next threshold.

        A slot is the words whose distance v from 2^cell_bits has one binary exponent and one group of 7 bits after the
        leading one. Cells are so wide, compared with the tail beyond them, that a slot of several words never holds two
        thresholds. One comparison then gives the cell, the same steps for all words.
        """
        cells, following = [], []
        top = 1 << self.cell_bits
        for exponent in range(self.cell_bits + 1):
            for group in range(1 << SLOT_BITS):
                # v from `least` to `most`, hence words from top - most to top - least.
                lead = (1 << SLOT_BITS) + group
                least = -(-(lead << exponent) >> SLOT_BITS)
                most = -(-((lead + 1) << exponent) >> SLOT_BITS) - 1
                low_word, high_word = max(0, top - most), max(0, top - least)
                below = bisect_right(self.thresholds, low_word - 1)
                if low_word < high_word and bisect_right(self.thresholds, high_word) > below + 1:
                    raise AssertionError(f"two thresholds share a slot of the {self.kind}: SLOT_BITS is too small")
                cells.append(below)
                following.append(self.thresholds[below])
        return np.array(cells, dtype=np.uint16), np.array(following, dtype=np.uint32)

    def draw(self, words: Words, size: int) -> Draws:
        """`size` independent draws with independent fair signs."""
        parts = []
        missing = size
        while True:
            parts.append(self._block(words, min(BLOCK, tries_for(missing)), missing))
            missing -= len(parts[-1].cells)
            if not missing:
                return parts[0] if len(parts) == 1 else _joined(parts)

    def _block(self, words: Words, tries: int, most: int) -> Draws:
        """What `tries` tries accept, in their order, at most `most`."""
        block = words.take(WORDS_PER_TRY * tries)
        first, place = block[:tries], block[tries:]
        if self.place_bits < 64:
            place = place >> np.uint64(64 - self.place_bits) << np.uint64(64 - self.place_bits)
        cells, open_cells = self._cells(first)
        accept, near = self._accept(cells, first, place)
        settled: dict[int, tuple[int, int, int]] = {}
        for index in sorted({*open_cells.tolist(), *near.tolist()}):
            outcome = self.settle(words, int(first[index]), int(place[index]))
            accept[index] = outcome is not None
            if outcome is not None:
                settled[index] = outcome
                cells[index] = min(outcome[0], TABLE_CELLS - 1)  # stands in where the true one is beyond
        kept = np.flatnonzero(accept)[:most]
        if settled:  # by their place among the accepted
            order = {index: position for position, index in enumerate(kept.tolist())}
            settled = {order[index]: outcome for index, outcome in settled.items() if index in order}
        return Draws(cells[kept].astype(np.uint64), place[kept], (first[kept] & np.uint64(1)).astype(np.bool_), settled)

    def _cells(self, first: WordArray) -> tuple[npt.NDArray[np.uint16], IntArray]:
        """The cell of each try, and the indices of those whose cell is still open."""
        word = (first >> np.uint64(64 - self.cell_bits)).astype(np.uint32)
        above = float(1 << self.cell_bits) - word.astype(np.float64)  # exact, 1 or more: its leading bits name the slot
        slot = above.view(np.int64) >> np.int64(52 - SLOT_BITS)
        slot -= np.int64(1023 << SLOT_BITS)
        threshold = self.next_threshold[slot]
        cells = self.first_cell[slot]
        cells += threshold < word
        # Open: the digits of U equal those of some F(c).
        return cells, np.flatnonzero(threshold == word)

    def _accept(self, cells: npt.NDArray[np.uint16], first: WordArray, place: WordArray) -> tuple[BoolArray, IntArray]:
        """Whether float64 accepts each try, and the indices of those too near to call."""
        r = (place >> np.uint64(11)).view(np.int64).astype(np.float64)  # 53 bits: exact
        r *= 2.0**-53
        x = r * float(self.rate)
        if self.kind == "half normal":
            r += cells * 2.0
            x *= r
        uniform = (first << np.uint64(self.cell_bits)) >> np.uint64(64 - self.accept_bits)
        return below(uniform, exp_small(x), self.accept_bits, self.margin)

    def settle(self, words: Words, first: int, place: int) -> tuple[int, int, int] | None:
        """One try in exact arithmetic: (cell, place, length) with the place's known digits, or None when rejected."""
        cell = self._settle_cell(words, first >> (64 - self.cell_bits))
        uniform = (first << self.cell_bits) % (1 << 64) >> (64 - self.accept_bits)
        return self._settle_accept(words, cell, place >> (64 - self.place_bits), uniform)

    def _settle_cell(self, words: Words, digits: int) -> int:
        length = self.cell_bits
        while (cell := cell_table(self.kind, length + 128).cell(digits, length)) is None:
            digits, length = digits << 64 | int(words.take(1)[0]), length + 64
        return cell

    def _settle_accept(self, words: Words, cell: int, place: int, uniform: int) -> tuple[int, int, int] | None:
        """U < e^-x for the real U and r that start with the digits at hand; e^-x falls in r."""
        place_bits, uniform_bits = self.place_bits, self.accept_bits
        while True:
            lowest = exp_bounds(self.exponent(cell, place + 1, place_bits), uniform_bits + 64)[0]
            highest = exp_bounds(self.exponent(cell, place, place_bits), uniform_bits + 64)[1]
            if (uniform + 1) << 64 <= lowest:
                return cell, place, place_bits
            if uniform << 64 >= highest:
                return None
            next_place, next_uniform = words.take(2).tolist()
            place, place_bits = place << 64 | next_place, place_bits + 64
            uniform, uniform_bits = uniform << 64 | next_uniform, uniform_bits + 64

    def exponent(self, cell: int, place: int, bits: int) -> Fraction:
        """x at r = place / 2^bits."""
        if self.kind == "exponential":
            return self.rate * place / (1 << bits)
        return self.rate * place * (place + (cell << (bits + 1))) / (1 << (2 * bits))


def tries_for(missing: int) -> int:
    """How many tries to make for `missing` draws: 96.9% or more are accepted, so that one block mostly does."""
    return missing + missing // 24 + 8


def below(uniform: WordArray, e: FloatArray, bits: int, margin: int) -> tuple[BoolArray, IntArray]:
    """Whether U < e for the U that start with `uniform` / 2^bits, and the indices too near to call; overwrites e."""
    e *= float(1 << bits)
    e -= uniform.view(np.int64)
    accept = e > 0
    return accept, np.flatnonzero(np.abs(e, out=e) <= margin)


def _joined(parts: list[Draws]) -> Draws:
    settled, offset = {}, 0
    for part in parts:
        settled.update({offset + index: outcome for index, outcome in part.settled.items()})
        offset += len(part.cells)
    return Draws(
        np.concatenate([part.cells for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.negative for part in parts]),
        settled,
    )


@lru_cache(maxsize=2)
def standard_law(kind: Kind) -> StandardLaw:
    """The law of `kind` that the sources use; about 30 kB, made once in a process."""
    return StandardLaw(kind)
