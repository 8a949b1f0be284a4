"""Whether an opaque release shows the lattice of its own noise: exact, by moving one integer of noise at a time.

A sampler gives integers, and what a method makes of them lies on a lattice whose place follows from the records. Where the grid that is
published is finer than this lattice, whoever knows the other records computes both lattices and sees on which one the release lies. So
the noise is moved integer by integer, with the same records: from the integer that was drawn to one as far as the largest that was
drawn, then in the half in which what is published jumps most, down to two neighbouring integers. The most that such a pair moves a
published integer is

- covered, where it is one step of the grid at most;
- covered, where the plan hides the release (`Opaque.hiding`) and all published integers move by no more than the sensitivity of what
  hides them, which is noise that the meter draws;
- covered, where other integers of noise move the same published integer by single steps, and in all as far: a later draw on it.

All else shows. Numbers below 2^16 are not looked at: decisions, winners and marks have no last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.verdict import Finding
from confide.audit.watching.recording import ReplayNoise, Request, run
from confide.protocol import Method, Opaque, Plan, Source, leaves
from confide.protocol.spending.laws import ADDITIVE

__all__ = ["Shown", "lattice"]

Whole = NDArray[Any]

# Published integers below this have no room for a lattice beside 2^-20 of a noise.
_SMALL = 1 << 16
# Integers of one request that are moved: the ends, and for a later draw on the same number up to so many.
_COVER = 64


@dataclass(frozen=True)
class Shown:
    """One opaque release: the largest jump of a published integer, in steps, that one step of noise makes and nothing covers.

    jump: 1 or less where all is covered. allowed: what the plan's hiding noise covers, in steps of the Euclidean norm; 1 without one.
    tried: integers of noise that were moved.
    """

    name: str
    jump: int
    allowed: int
    tried: int

    @property
    def ok(self) -> bool:
        return self.jump <= self.allowed

    def finding(self, method: str, relation: str) -> Finding:
        """A row of an `Audit`: quantity "gap", the largest jump in published steps."""
        return Finding(
            name=f"{method} {self.name}",
            quantity="gap",
            claim=float(self.allowed),
            lower_bound=float(self.jump),
            verdict="holds" if self.ok else "violated",
            attack="lattice",
            relation=relation,
            note=str(self),
        )

    def __str__(self) -> str:
        words = f"the least step of its noise moves {self.name!r} by {self.jump:,} published steps, covered are {self.allowed:,}"
        return f"{words}; {self.tried} integers of noise moved"


def lattice(
    method: Method,
    plan: Plan,
    source: Source,
    *,
    seed: int = 0,
    wrap: Callable[[Any], Any] | None = None,
) -> tuple[Shown, ...]:
    """What each opaque release of a method shows of its noise's lattice on these records; none where it has none or did not reply.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)})
    >>> method = cf.ptr.SafeRelease(cf.ptr.OrderStatistic(150, 0.0, 1.0, 0.4), ("x",), mode="exact", gamma_plan=30)
    >>> plan, records = cf.plan(method, schema, cf.ApproxDP(1.0, 1e-4)), schema.sample(300, 1)
    >>> [one.ok for one in lattice(method, plan, cf.read(records, schema))]
    [True]
    """
    attack = _Attack(method, plan, source, seed, wrap)
    return tuple(
        attack.shown(leaf)
        for leaf in leaves(plan.event)
        if isinstance(leaf, Opaque) and attack.has(attack.first, leaf.name)
    )


class _Attack:
    """Runs of one release with the same words but for an integer of noise."""

    def __init__(
        self, method: Method, plan: Plan, source: Source, seed: int, wrap: Callable[[Any], Any] | None
    ) -> None:
        self._target = (method, source, plan)
        self._plan, self._seed, self._wrap = plan, seed, wrap
        noise = ReplayNoise(seed, wrap=wrap)
        one = run(*self._target, noise)
        self.first = {} if one.release is None else one.release.statistics
        self.requests = one.requests
        self._public = self._paid(one.release.statistics if one.release is not None else {})

    @staticmethod
    def has(statistics: Any, name: str) -> bool:
        """Whether it was published, with numbers that are large enough to have last digits."""
        return name in statistics and any(abs(int(v)) >= _SMALL for v in statistics[name].values.ravel())

    def _paid(self, drawn: Any) -> set[int]:
        """The places of requests that the meter made for what the plan pays by name, hiding noise among it."""
        wanted = []
        for leaf in leaves(self._plan.event):
            spend = leaf.hiding if isinstance(leaf, Opaque) else leaf
            if spend is None or spend.law not in ADDITIVE or leaf.name not in drawn:
                continue
            scales = (spend.scale, spend.scale / 2) if spend.norm == "frobenius" else (spend.scale,)
            wanted += [(spend.law, str(scale)) for scale in scales]
        return {place for place, request in enumerate(self.requests) if (request.law, request.scale) in wanted}

    def at(self, name: str, place: int, index: int, value: int) -> Whole | None:
        """What is published with one integer of noise replaced; None where that leads elsewhere."""
        request = self.requests[place]
        values = list(request.values)
        values[index] = value
        forced: list[Sequence[int] | None] = [None] * place + [values]
        one = run(*self._target, ReplayNoise(self._seed, forced, wrap=self._wrap))
        if one.release is None or name not in one.release.statistics:
            return None
        found = one.release.statistics[name].values.ravel()
        return found if found.shape == self.first[name].values.ravel().shape else None

    def shown(self, leaf: Opaque) -> Shown:
        """The largest jump that nothing covers."""
        worst, tried = np.zeros(self.first[leaf.name].values.size, dtype=object), 0
        whole = 0
        for place, index in self._moved():
            jump = self._jump(leaf.name, place, index)
            tried += 1
            worst = np.maximum(worst, jump)
            whole = max(whole, _length(jump))
        if leaf.hiding is not None:
            return Shown(leaf.name, whole, int(leaf.hiding.sensitivity), tried)
        open_ = [i for i, jump in enumerate(worst) if jump > 1 and not self._covered(leaf.name, i, int(jump))]
        return Shown(
            leaf.name, max((int(worst[i]) for i in open_), default=min(1, max(map(int, worst), default=0))), 1, tried
        )

    def _moved(self, most: int = 2) -> Iterator[tuple[int, int]]:
        """(request, integer of it) inside opaque releases: the ends of each request, or up to `most` of it."""
        for place, request in enumerate(self.requests):
            if place in self._public or request.law not in (*ADDITIVE, "grid_cauchy") or not request.size:
                continue
            yield from (
                (place, i)
                for i in np.unique(np.linspace(0, request.size - 1, min(most, request.size)).astype(int)).tolist()
            )

    def _jump(self, name: str, place: int, index: int) -> Whole:
        """How far one step of this integer of noise moves each published integer, where it moves them most."""
        request = self.requests[place]
        low = request.values[index]
        high = low + _reach(request)
        one, other = (self.at(name, place, index, value) for value in (low, high))
        still = np.zeros(self.first[name].values.size, dtype=object)
        if one is None or other is None:
            return still
        while high - low > 1:
            if max(abs(other - one)) <= 1:
                break
            middle = (low + high) // 2
            between = self.at(name, place, index, middle)
            if between is None:
                return still
            if _length(between - one) >= _length(other - between):
                high, other = middle, between
            else:
                low, one = middle, between
        return np.asarray(abs(other - one))

    def _covered(self, name: str, i: int, jump: int) -> bool:
        """Whether some noise moves the published integer i by single steps, and as far as the jump in all."""
        for place, index in self._moved(_COVER):
            base, reach = self.requests[place].values[index], _reach(self.requests[place])
            runs = [self.at(name, place, index, base + step) for step in (0, 1, reach, reach + 1)]
            here, near, far, beyond = (None if found is None else int(found[i]) for found in runs)
            if here is None or near is None or far is None or beyond is None:
                continue
            if abs(near - here) <= 1 and abs(beyond - far) <= 1 and abs(far - here) >= jump:
                return True
        return False


def _reach(request: Request) -> int:
    """About a standard deviation of the request, from what was drawn."""
    return max(max(map(abs, request.values)), 1)


def _length(difference: Whole) -> int:
    """The Euclidean length, rounded up."""
    square = int((difference * difference).sum())
    root = isqrt(square)
    return root + (root * root < square)
