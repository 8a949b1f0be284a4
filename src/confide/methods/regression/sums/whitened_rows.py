"""Records in whitened coordinates: the maps under repeated releases of residual moments.

A round measures a record as u = T'z and r = clip((t - z'theta)/rho, -1, 1), with weight w = min(1, R2/|u|^2). T, theta, rho, R2 and the
box of z come from earlier noisy outputs, and for ANY of them every record obeys

    w |u|^2 <= R2,   w r^2 <= 1,   w^2 r^2 |u|^2 <= R2,

so that the integers obey |m|^2 <= 2^40 (`sums.coding`), whose floats do not even matter: a row that breaks it is reduced. The plan
holds each map with its sensitivity before the numbers are known; `at(frame, ...)` gives the map of one round.

Records in the coordinates of a frame: v = T'z and r = t - z'theta of each record, by one exact product of integers.

The coordinates of a record are one linear map of its codes. It is rounded to integers that keep every sum below 2^53, and is then one
exact matrix product. So no number depends on the batch, on the order or on the machine. All further float steps are elementwise.

Rounding the map moves no bound: what is coded from v and r is limited to its bound whatever they are, and the map is the same for all
records. It moves v by at most 2^-28 of the largest |v_j| that the public box allows, far below a step of what is coded.

Shrunken solutions of noisy normal equations, and the amount of shrinkage chosen from the noisy numbers themselves.

A and b are noisy second moments whose noise has a known law: Sym(SA) on A (variance SA^2 on the diagonal, SA^2/2 off it), N(0, Sb^2 I)
on b. The solution with prior delta ~ N(0, tau^2 I) weighs each eigendirection by its signal against its noise (a Wiener filter). The
variance tau^2 is chosen by splitting the noise (fission). A1 = A + f E and A2 = A - E/f with fresh noise E of the same law are
independent. So a solution from the first may be scored on the second. All of it is post-processing. Sources: Wiener 1949; Leiner, Duan,
Wasserman, Ramdas 2023 (data fission).

One round of noisy residual moments: its numbers in its own units, and its plain and its shrunken solution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Beginning, Noisy
from confide.core.exact import exact_products, product
from confide.methods.regression.sums.linear_rows import BlockGram
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import (
    BITS,
    BOUND,
    Box,
    CodedRows,
    aligned,
    lengths,
    leverage,
    only,
    round_within,
    shares,
    steps,
)

# Sums of products stay below this, with room for the rounding of the map.
_ROOM = 2.0**52
# Features from which on results stay: their memory grows with the features, what they spare with the square, and ten are about even.
_WIDE = 32


@dataclass(frozen=True)
class Frame:
    """Where a round stands: the box of z, T (p, p) row by row, the line theta (p,) so far, and the scale rho of its residuals."""

    box: Box
    transform: tuple[tuple[float, ...], ...]
    theta: tuple[float, ...]
    rho: float

    @classmethod
    def start(cls, box: Box) -> Frame:
        """T = I, theta = 0, rho = 1: the first round."""
        p = len(box.middle) + 1
        return cls(box, tuple(tuple(float(i == j) for j in range(p)) for i in range(p)), (0.0,) * p, 1.0)

    @classmethod
    def of(cls, box: Box, transform: Array, theta: Array, rho: float) -> Frame:
        """From arrays."""
        return cls(
            box, tuple(tuple(map(float, row)) for row in np.asarray(transform)), tuple(map(float, theta)), float(rho)
        )

    @property
    def matrix(self) -> Array:
        """T as an array, shape (p, p)."""
        return np.array(self.transform, dtype=np.float64)

    @property
    def line(self) -> Array:
        """theta as an array, shape (p,)."""
        return np.array(self.theta, dtype=np.float64)


@dataclass(frozen=True)
class PartialFrame(Frame):
    """A frame for records outside some cells: (terms, present) is the cell where any of these 0/1 terms is 1, or where none is."""

    apart: tuple[tuple[tuple[int, ...], bool], ...] = ()

    def outside(self, terms: Array) -> NDArray[np.bool_]:
        """Which records lie in none of the cells, (records,), from the codes of the terms."""
        kept = np.ones(terms.shape[1], dtype=np.bool_)
        for places, present in self.apart:
            kept &= (terms[list(places)] > 0).any(axis=0) != present
        return kept


@dataclass(frozen=True)
class Coordinates:
    """v = M z and r = t - z'theta of records, from their codes: out = scale * (matrix @ codes) + shift, row r last.

    `matrix` holds integers, shape (p + 1, terms + 1), with sum |entry| |code| < 2^53 for any record.
    """

    matrix: Array
    scale: Array
    shift: Array

    @classmethod
    def of(cls, design: ModelMatrix, frame: Frame) -> Coordinates:
        """The map of a frame: T' = M, theta; the frame's scale of residuals is not used."""
        slope, shift = _linear(design, frame)
        codes = np.array([max(term.steps - 1, 1) for term in (*design.terms, design.response)], dtype=np.float64)
        # columns of few values are brought to the size of the others, exactly, so that one scale serves a whole row
        lift = 2.0 ** np.maximum(BITS - np.ceil(np.log2(codes)), 0.0)
        slope = slope / lift
        largest = np.abs(slope) @ (codes * lift)
        largest = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
        scale = 2.0 ** np.clip(np.floor(np.log2(_ROOM / largest)), -900, 900)
        whole = np.rint(np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0) * scale[:, None])
        # a hair of rounding may pass the bound only where numbers are beyond use; then the row is nothing
        whole[np.abs(whole) @ (codes * lift) >= 2 * _ROOM] = 0.0
        return cls(whole * lift, 1.0 / scale, shift)

    @cached_property
    def _scaled(self) -> Array:
        """scale * matrix. Each scale is a power of two, so that sums of the scaled integers are exact where those of the integers are."""
        return self.matrix * self.scale[:, None]

    @cached_property
    def _alone(self) -> NDArray[np.intp] | None:
        """The code that each row is a multiple of, where each is, as before anything is known of the columns; None elsewhere."""
        apart = (self.matrix != 0).sum(axis=1).max() <= 1
        return np.abs(self.matrix).argmax(axis=1) if apart else None

    @cached_property
    def last(self) -> Coordinates:
        """The map to r alone, to the bit."""
        return Coordinates(self.matrix[-1:], self.scale[-1:], self.shift[-1:])

    def __call__(self, codes: Array, out: Array | None = None) -> Array:
        """Rows (v, r), shape (p + 1, records), from the terms' codes; into `out` where it is given."""
        with np.errstate(all="ignore"):
            if self._alone is not None:
                if out is None:
                    out = np.empty((len(self.matrix), codes.shape[1]))
                # the products of a matrix of these rows, without its zeros: exact as they are
                for row, at, scaled in zip(out, self._alone, self._scaled, strict=True):
                    np.multiply(codes[at], scaled[at], out=row)
            elif exact_products():
                out = product(self._scaled, codes, out)
            else:
                out = _whole_product(self.matrix, codes, out)
                out *= self.scale[:, None]
            out += self.shift[:, None]
        return out


def _linear(design: ModelMatrix, frame: Frame) -> tuple[Array, Array]:
    """(slopes (p + 1, terms + 1), shift (p + 1,)) of (v, r) in the codes of terms and response."""
    public_middle, public_half = Box.of(design).arrays
    middle, half = frame.box.arrays
    # z = start + stretch c, t = -1 + last c
    stretch = np.array([2.0 / max(term.steps - 1, 1) for term in (*design.terms, design.response)])
    last = stretch[-1]
    start = np.concatenate([[1.0], (public_middle - public_half - middle) / half])
    stretch = stretch[:-1] * public_half / half
    transform, theta = frame.matrix, frame.line
    p = len(theta)
    slope = np.zeros((p + 1, p))
    slope[:p, :-1] = (transform[1:] * stretch[:, None]).T
    slope[p, :-1] = -theta[1:] * stretch
    slope[p, -1] = last
    return slope, np.append(start @ transform, -1.0 - float(start @ theta))


def _whole_product(matrix: Array, codes: Array, out: Array | None) -> Array:
    """matrix @ codes in integers."""
    whole = np.einsum("ij,jk->ik", matrix.astype(np.int64), codes.astype(np.int64))
    if out is None:
        return np.asarray(whole, dtype=np.float64)
    out[:] = whole
    return out


@dataclass(frozen=True, eq=False)
class Located:
    """Records in the coordinates of a frame: v (p, records), r (records,), and which records count (None: all). Read only.

    room: where their squares and lengths are written, (2, records).
    """

    v: Array
    r: Array
    keep: NDArray[np.bool_] | None
    room: Array | None = None

    @cached_property
    def square(self) -> Array:
        """|v|^2, coordinate by coordinate, (records,)."""
        return leverage(self.v, None if self.room is None else self.room[0])

    @cached_property
    def length(self) -> Array:
        """|v|, (records,)."""
        return np.sqrt(self.square, out=None if self.room is None else self.room[1])

    def at(self, r: Array) -> Located:
        """The same records at another line."""
        found = Located(self.v, r, self.keep)
        found.__dict__.update(square=self.square, length=self.length)
        return found


@dataclass(frozen=True)
class Locating(Beginning):
    """What maps in the same coordinates compute alike: from the codes of a design's columns to `Located` records.

    stays: whether later passes ask for the same coordinates, at this line or at another (`core.Beginning`).
    """

    design: ModelMatrix
    frame: Frame
    stays: bool = field(default=False, compare=False)

    @cached_property
    def coordinates(self) -> Coordinates:
        return Coordinates.of(self.design, self.frame)

    @property
    def rows(self) -> int:
        """Of the room for what it gives: v, r, |v|^2 and |v|."""
        return len(self.design.terms) + 4

    def __call__(self, codes: Array, room: Array | None = None) -> Located:
        terms, keep = self.design.codes(codes)
        if isinstance(self.frame, PartialFrame):
            outside = self.frame.outside(terms)
            keep = outside if keep is None else keep & outside
        if room is None:
            rows = self.coordinates(terms)
            return Located(rows[:-1], rows[-1], keep)
        rows = self.coordinates(terms, room[:-2])
        # lengths are written now, by one thread, and not when a later pass asks first
        found = Located(rows[:-1], rows[-1], keep, room[-2:]).at(rows[-1])
        # what a map wrote here would be in the sums of later passes
        for kept in (found.v, found.r, found.square, found.length):
            kept.flags.writeable = False
        return found

    def after(self, other: Beginning, begun: Any, codes: Array) -> Located | None:
        """What it gives, from what a beginning before it gave for the same records; None where that was in other coordinates."""
        if not isinstance(other, Locating) or not isinstance(begun, Located) or other.design != self.design:
            return None
        if other.frame == self.frame:
            return begun
        if replace(other.frame, theta=self.frame.theta) != self.frame:
            return None
        terms, _ = self.design.codes(codes)
        return begun.at(self.coordinates.last(terms)[0])


@dataclass(frozen=True)
class InCoordinates(CodedRows):
    """What maps in coordinates share: a design, and the frame of one release; without one the public box, T = I, theta = 0.

    The frame and all limits are not in the digest: the bounds hold for any, and the plan does not know them yet.
    """

    design: ModelMatrix
    frame: Frame | None = None
    stays: ClassVar[bool] = False

    @property
    def features(self) -> int:
        """p: the terms and the intercept."""
        return len(self.design.terms) + 1

    @property
    def width(self) -> int:
        return self.features

    @property
    def rho(self) -> float:
        """The frame's scale of residuals."""
        return self.frame.rho if self.frame else 1.0

    @cached_property
    def _locating(self) -> Locating:
        frame = self.frame or Frame.start(Box.of(self.design))
        return Locating(self.design, frame, self.stays and self.features >= _WIDE)

    @property
    def coordinates(self) -> Coordinates:
        """Of the frame, computed once."""
        return self._locating.coordinates


class LocatedRows(InCoordinates, ABC):
    """Maps that are a function `of` the located record, so that several of them share its coordinates (`core.Beginning`)."""

    @property
    def begins(self) -> Locating | None:
        """None for a map that is called in its own way."""
        return self._locating if type(self).__call__ is LocatedRows.__call__ else None

    @abstractmethod
    def of(self, records: Located) -> Array:
        """The integers of located records."""

    def located(self, codes: Array) -> Located:
        """Records in the map's coordinates."""
        return self._locating(codes)

    def __call__(self, codes: Array) -> Array:
        return self.of(self.located(codes))


@dataclass(frozen=True)
class WhitenedRows(LocatedRows):
    """One record as sqrt(w) (u, r) in integer steps: p features with |m_u|^2 <= 2^40 and a response with m_r^2 <= 2^40."""

    cap: float = 1.0
    kind: ClassVar[str] = "whitened rows"

    def at(self, frame: Frame, cap: float = 1.0) -> Self:
        """The map of one round. cap: R2."""
        return replace(self, frame=frame, cap=float(cap))

    @property
    def l2_squared(self) -> int:
        return 2 * BOUND

    @property
    def width(self) -> int:
        return self.features + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of u."""
        return steps(sqrt(self.cap), self.width)

    #: Integer steps in one unit of r.
    response_steps: ClassVar[int] = (1 << BITS) - 2

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width - 1) * (1 << BITS)) + 1 + (1 << BITS)

    def of(self, records: Located) -> Array:
        rows = aligned(self.width, len(records.r))
        u, r = rows[:-1], rows[-1]
        with np.errstate(all="ignore"):
            root = only(shares(records.length, sqrt(self.cap)), records.keep)
            np.divide(records.r, self.rho, out=r)
            np.clip(r, -1.0, 1.0, out=r)
            r *= root
            r *= float(self.response_steps)
            root *= float(self.steps)
            np.multiply(records.v, root, out=u)
            round_within(u, length=lengths(records.square) * root)
            round_within(rows[-1:])
        return rows


@dataclass(frozen=True)
class LeverageIndices(LocatedRows):
    """The cell of |u|^2 among public edges p 2^(j/2), j = -4..6: 1 to 12, and 0 for a record that is dropped."""

    kind: ClassVar[str] = "leverage cells"
    width: ClassVar[int] = 1
    cells: ClassVar[int] = 12
    l1: ClassVar[int] = 12
    l2_squared: ClassVar[int] = 144

    def at(self, frame: Frame) -> Self:
        """The map in the coordinates of a frame."""
        return replace(self, frame=frame)

    @property
    def edges(self) -> Array:
        """The eleven edges."""
        return np.asarray(self.features * 2.0 ** (np.arange(-4, 7) / 2))

    def of(self, records: Located) -> Array:
        # what is no number counts as infinitely far out
        square = np.nan_to_num(records.square, nan=np.inf, posinf=np.inf)
        cell = 1.0 + np.searchsorted(self.edges, square, side="left")
        return only(cell, records.keep)[None, :]


@dataclass(frozen=True)
class LeverageCells(Histogram):
    """How many records lie in each cell of |u|^2, shape (12,): one record moves one count by 1."""

    map: LeverageIndices

    def at(self, frame: Frame) -> LeverageCells:
        """The statistic in the coordinates of a frame."""
        return LeverageCells(self.map.at(frame))


# How unequally noise is split: the solving copy gets noise 1 + f^2, the scoring one 1 + 1/f^2 times the original.
_SPLIT = 0.7
_DRAWS = 8
_PRIORS = tuple(4.0**k for k in range(-9, 3))
# |delta|^2 that the noise of A is multiplied with is bounded: a wild intermediate solution must not switch shrinkage off
_LARGEST = 4.0


@dataclass(frozen=True, eq=False)
class NoisySystem:
    """A (p, p), b (p,), the SDs of their noise, the residual variance s2, and whether axis 0 is fitted without shrinkage."""

    gram: Array
    cross: Array
    sd_gram: float
    sd_cross: float
    s2: float
    free: bool = False


def wiener(system: NoisySystem, prior: float, repeats: int = 4) -> tuple[Array, float]:
    """(delta, degrees of freedom) for a prior variance; harmless where eigenvalues of A are negative."""
    solutions, freedom = _solutions(system, (prior,), repeats)
    return solutions[0], float(freedom[0])


def _solutions(system: NoisySystem, priors: tuple[float, ...], repeats: int) -> tuple[Array, Array]:
    """The filter for each prior, shape (..., priors, p), and its degrees of freedom, with one eigendecomposition.

    A and b may be stacks, shapes (..., p, p) and (..., p). A free axis is fitted out first, where A is above 0 along it.
    """
    gram, cross = system.gram, system.cross
    above = gram[..., 0, 0] > 0 if system.free else np.array(False)
    if not above.all() and above.any():
        alone = [
            _solutions(replace(system, gram=a, cross=b), priors, repeats) for a, b in zip(gram, cross, strict=True)
        ]
        return np.array([found for found, _ in alone]), np.array([freedom for _, freedom in alone])
    if above.all():
        first, height = gram[..., 0, :1], cross[..., :1]
        row = gram[..., 1:, 0] / first
        inner = replace(
            system,
            gram=gram[..., 1:, 1:] - row[..., :, None] * gram[..., None, 0, 1:],
            cross=cross[..., 1:] - row * height,
            free=False,
        )
        slopes, freedom = _solutions(inner, priors, repeats)
        heights = (height - (slopes @ gram[..., 0, 1:, None])[..., 0]) / first
        return np.concatenate([heights[..., None], slopes], axis=-1), freedom + 1
    values, vectors = np.linalg.eigh((gram + np.swapaxes(gram, -1, -2)) / 2)
    seen = (np.swapaxes(vectors, -1, -2) @ cross[..., None])[..., 0]
    found, freedom = _filtered(values, seen, system, np.array(priors), repeats)
    return (vectors[..., None, :, :] @ found[..., None])[..., 0], freedom


def _filtered(values: Array, seen: Array, system: NoisySystem, priors: Array, repeats: int) -> tuple[Array, Array]:
    """The filter in the eigenbasis of A; the noise of A enters through |delta|^2, hence the repeats."""
    size = np.zeros((*seen.shape[:-1], len(priors)))
    m = max(seen.shape[-1], 1)
    signal = (system.s2 * np.maximum(values, 0.0) + system.sd_cross**2)[..., None, :]
    square, product = (values**2)[..., None, :], (values * seen)[..., None, :]
    for _ in range(repeats):
        variance = signal + (system.sd_gram**2 / 2 * size * (1 + 1 / m))[..., None]
        below = square + variance / priors[:, None]
        solution = product / below
        size = np.minimum((solution[..., None, :] @ solution[..., None])[..., 0, 0], _LARGEST)
    return solution, (square / below).sum(axis=-1)


def choose_prior(system: NoisySystem, generator: np.random.Generator, priors: tuple[float, ...] = _PRIORS) -> float:
    """The prior variance, of those given, whose solution predicts best on the other part of the split noise.

    Loss: delta'A2 delta - 2 delta'b2 + 2 s2 f, summed over 8 splits; f, the degrees of freedom, stands for fitting the records twice.
    """
    p = len(system.cross)
    noises = [
        (symmetric_noise(p, system.sd_gram, generator), generator.normal(0.0, system.sd_cross, p))
        for _ in range(_DRAWS)
    ]
    gram_noise, cross_noise = (np.array(each) for each in zip(*noises, strict=True))
    wider = sqrt(1 + _SPLIT**2)
    solving = replace(
        system,
        gram=system.gram + _SPLIT * gram_noise,
        cross=system.cross + _SPLIT * cross_noise,
        sd_gram=wider * system.sd_gram,
        sd_cross=wider * system.sd_cross,
    )
    gram, cross = system.gram - gram_noise / _SPLIT, system.cross - cross_noise / _SPLIT
    solutions, freedom = _solutions(solving, priors, 2)
    fitted = ((solutions @ gram) * solutions).sum(axis=-1) - 2 * (solutions @ cross[..., None])[..., 0]
    losses = fitted + 2 * system.s2 * freedom
    return priors[int(np.argmin(sum(losses, np.zeros(len(priors)))))]


def symmetric_noise(p: int, sd: float, generator: np.random.Generator) -> Array:
    """Sym(SD): symmetric Gaussian, variance `sd`^2 on the diagonal and `sd`^2/2 on each off-diagonal pair, shape (p, p)."""
    half = generator.normal(0.0, sd / 2, (p, p))
    return np.asarray(half + half.T)


# How a round splits between Gram matrix, cross products and square; one proved split for substitute, where cross products cost more.
_EARLY = (Fraction(45, 100), Fraction(45, 100), Fraction(10, 100))
_LAST = (Fraction(25, 100), Fraction(70, 100), Fraction(5, 100))
_SUBSTITUTE = (Fraction(15, 100), Fraction(247, 1000), Fraction(5, 100))


def split_of(relation: str, *, last: bool) -> tuple[Fraction, Fraction, Fraction]:
    """The shares of a round's budget for A, b and q."""
    if relation == "substitute":
        return _SUBSTITUTE
    return _LAST if last else _EARLY


@dataclass(frozen=True, eq=False)
class NoisySums:
    """A (p, p), b (p,), q and the SDs of their noise: `sd_gram` on A's diagonal (1/sqrt(2) of it off the diagonal), sd_cross, sd_square."""

    gram: Array
    cross: Array
    square: float
    sd_gram: float
    sd_cross: float
    sd_square: float


@dataclass(frozen=True, eq=False)
class Round(NoisySums):
    """What a round released, in its own units, and the frame and cap it was taken in."""

    frame: Frame
    cap: float

    @classmethod
    def decoded(cls, noisy: Noisy, statistic: BlockGram, frame: Frame, cap: float) -> Round:
        """From integers in steps."""
        rows = statistic.map
        assert isinstance(rows, WhitenedRows)
        u, r = float(rows.at(frame, cap).steps), float(rows.response_steps)
        a, b, c = (float(x) for x in statistic.blocks)
        values, sd = noisy.decode(), sqrt(noisy.variance)
        return cls(
            gram=values[:-1, :-1] / (a * u * u),
            cross=values[:-1, -1] / (b * u * r),
            square=float(values[-1, -1] / (c * r * r)),
            sd_gram=sd / (a * u * u),
            sd_cross=sd / (sqrt(2) * b * u * r),
            sd_square=sd / (c * r * r),
            frame=frame,
            cap=cap,
        )

    @cached_property
    def axis(self) -> Array:
        """e with e'u = 1 for every record, T^{-1} e_0, shape (p,)."""
        p = len(self.cross)
        return np.asarray(np.linalg.solve(self.frame.matrix, np.eye(p)[0]))

    @cached_property
    def count(self) -> float:
        """The noisy weighted count of records, at least 1."""
        return max(float(self.axis @ self.gram @ self.axis), 1.0)

    @property
    def largest(self) -> float:
        """What no residual variance exceeds, in units of rho^2: half the response's range squared, and 1 at least."""
        return max(1.0, 1 / self.frame.rho**2)

    @property
    def gram_noise(self) -> float:
        """About the operator norm of the noise of A."""
        return self.sd_gram * sqrt(2 * len(self.cross))

    def residual_variance(self, delta: Array) -> float:
        """An upper guess of the residual variance at delta, in units of rho^2: the residual sum of squares plus one SD of its noise."""
        rss = self.square - 2 * float(delta @ self.cross) + float(delta @ self.gram @ delta)
        size = float(delta @ delta)
        noise = sqrt(self.sd_square**2 + 4 * self.sd_cross**2 * size + self.sd_gram**2 * size**2)
        return float(np.clip((max(rss, 0.0) + noise) / self.count, 1e-4, self.largest))

    def system(self, s2: float, *, free: bool) -> NoisySystem:
        """The noisy normal equations of the correction delta."""
        return NoisySystem(self.gram, self.cross, self.sd_gram, self.sd_cross, s2, free)


def shrunken(
    system: NoisySystem, round_: Round, generator: np.random.Generator, offset: Array | None = None, basis: Any = None
) -> tuple[Array, float]:
    """(delta, s2): the shrunken correction of a round and its residual variance; the noisy system may be a reduced one.

    offset, basis: delta = offset + basis psi when `system` is in psi, with orthonormal columns of the basis.
    """
    solution = np.zeros(len(system.cross))
    delta = np.zeros(len(round_.cross))
    for _ in range(1 if len(round_.cross) > 40 else 2):
        solution, _ = wiener(system, choose_prior(system, generator))
        delta = solution if basis is None else (0.0 if offset is None else offset) + basis @ solution
        system = replace(system, s2=round_.residual_variance(delta))
    return delta, system.s2


def first_variance(round_: Round) -> float:
    """The residual variance to begin with, in units of rho^2."""
    count = round_.count
    return float(np.clip(max(round_.square, 0.02 * count) / count, 1e-4, 1.0))
