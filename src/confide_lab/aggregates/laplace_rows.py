"""Records by class for Laplace noise: sums, squares, counts and 0/1 terms, in integers with an exact bound in the l1 norm.

A record of class k is u, its features that are not 0/1 in half-widths from the middle of their bounds, moved into the ball |u| <= R, in
the block of class k. sum |u_j| <= min(p, sqrt(p) R) and sum u_j^2 <= R^2 bound its two rows. One record added or removed moves a sum by its
row, one replaced by another by two rows, whether their classes are the same or not. A record is in one class, and of the levels of a factor
in one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.core import RecordMap
from confide.core.exact import digest, pack
from confide.methods.classification.design import ClassDesign
from confide.schema import ModelMatrix
from confide.sums.coding import BITS, Codes, scaled

__all__ = ["ClassCounts", "ClassPowers", "LevelCounts"]

_ONE = 1 << BITS


def _by_class(own: ClassDesign, codes: Codes) -> tuple[Codes, list[NDArray[np.bool_]]]:
    """Scaled features (terms, records), and for each class who belongs to it."""
    rows, keep = scaled(own.design, codes)
    last = len(own.classes) - 1
    place = np.rint((rows[-1] + 1.0) * (last / 2))
    members = [np.asarray(place == k) for k in range(last + 1)]
    return np.ascontiguousarray(rows[1:-1]), members if keep is None else [who & keep for who in members]


@dataclass(frozen=True)
class _Rows(RecordMap):
    own: ClassDesign

    @property
    def columns(self) -> tuple[str, ...]:
        return self.own.design.columns

    @property
    def derived_by(self) -> ModelMatrix:
        return self.own.design


@dataclass(frozen=True)
class ClassPowers(_Rows):
    """u (power 1) or u^2 (power 2) of a record in the block of its class, in integer steps: sum |m| <= 2^20."""

    radius: float
    power: int = 1
    l1: int = field(default=_ONE, init=False)
    l2_squared: int = field(default=_ONE**2, init=False)

    @property
    def block(self) -> int:
        """Features that are not 0/1."""
        return len(self.own.measured)

    @property
    def width(self) -> int:
        return len(self.own.classes) * self.block

    @property
    def steps(self) -> int:
        """Integer steps in one half-width, or in one squared."""
        bound = self.radius**2 if self.power == 2 else min(float(self.block), sqrt(self.block) * self.radius)
        return floor((_ONE - self.block / 2 - 1) / bound)

    @property
    def digest(self) -> str:
        return digest(["class powers", self.own.digest, pack(self.radius), self.power])

    def __call__(self, codes: Codes) -> Codes:
        terms, members = _by_class(self.own, codes)
        u = np.ascontiguousarray(terms[list(self.own.measured)])
        with np.errstate(all="ignore"):
            length = np.zeros(u.shape[1])
            square = np.empty(u.shape[1])
            for row in u:
                np.multiply(row, row, out=square)
                length += square
            np.sqrt(length, out=length)
            np.divide(self.radius, length, out=length)
            np.minimum(length, 1.0, out=length)
            u *= length
            if self.power == 2:
                u *= u
            u *= float(self.steps)
            np.rint(u, out=u)
            # the bound must not rest on floats; no record has been seen to break it
            size = np.abs(u).sum(axis=0)
            u[:, ~(size <= _ONE)] = 0.0
        out = np.zeros((self.width, u.shape[1]))
        for k, who in enumerate(members):
            np.copyto(out[k * self.block : (k + 1) * self.block], u, where=who)
        return out

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums in half-widths (or squared), shape (classes, features that are not 0/1)."""
        return np.asarray(values.reshape(len(self.own.classes), -1) / self.steps)


@dataclass(frozen=True)
class ClassCounts(_Rows):
    """1 in the place of a record's class."""

    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    @property
    def width(self) -> int:
        return len(self.own.classes)

    @property
    def digest(self) -> str:
        return digest(["class counts", self.own.digest])

    def __call__(self, codes: Codes) -> Codes:
        return np.stack(_by_class(self.own, codes)[1]).astype(np.float64)


@dataclass(frozen=True)
class LevelCounts(_Rows):
    """1 for each 0/1 term that a record has, in the block of its class: at most one of each group."""

    @property
    def _terms(self) -> tuple[int, ...]:
        return tuple(place for group in self.own.groups for place in group.terms)

    @property
    def width(self) -> int:
        return len(self.own.classes) * len(self._terms)

    @property
    def l1(self) -> int:
        return len(self.own.groups)

    @property
    def l2_squared(self) -> int:
        return len(self.own.groups)

    @property
    def digest(self) -> str:
        return digest(["level counts", self.own.digest])

    def __call__(self, codes: Codes) -> Codes:
        terms, members = _by_class(self.own, codes)
        have = np.asarray(terms[list(self._terms)] > 0.0)
        return np.concatenate([have & who for who in members]).astype(np.float64)

    def decode(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """For each group the counts of its terms, shape (classes, terms of the group)."""
        table = values.reshape(len(self.own.classes), -1)
        ends = np.cumsum([len(group.terms) for group in self.own.groups])[:-1]
        return list(np.split(table, ends, axis=1))
