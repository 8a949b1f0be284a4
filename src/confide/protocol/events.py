"""What a release does to the budget, as a tree of events; the guarantee of a plan is a fold over it.

`Spend` is one noisy vector or matrix. The other nodes say how spends belong together. Where no proof covers a node the fold
refuses: it never guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, nextafter, sqrt
from typing import Any

from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, Guarantee, compose, guarantee_from_dict
from confide.protocol.exact import fraction_from_text, fraction_to_text

__all__ = [
    "Either",
    "Event",
    "Opaque",
    "PerPath",
    "Select",
    "Spend",
    "Test",
    "Together",
    "event_from_dict",
    "event_to_dict",
    "fold",
    "leaves",
    "mu_squared",
    "paths",
]


@dataclass(frozen=True)
class Spend:
    """One noisy statistic: integers plus noise on the same grid.

    sensitivity: bound on what one unit can change, in released steps, in `norm` ("l2", or "frobenius" for a symmetric matrix
    whose off-diagonal entries get half the variance). scale: for law "grid_gaussian" the variance sigma^2 in squared steps.
    step: the size of one released step in the statistic's own integers (1, or a power of 1/2 when noise would be small
    against 1). map: digest of the record map that states the sensitivity of one record.
    """

    name: str
    law: str
    sensitivity: Fraction
    norm: str
    scale: Fraction
    step: Fraction
    shape: tuple[int, ...]
    map: str = ""

    @property
    def mu_squared(self) -> Fraction:
        """Exact cost in Gaussian differential privacy: (sensitivity / sigma)^2 (Dong, Roth, Su 2022, Theorem 2)."""
        if self.law != "grid_gaussian":
            raise PrivacyError(
                f"the law {self.law!r} of {self.name!r} has no Gaussian cost; the laws that have: grid_gaussian"
            )
        return self.sensitivity**2 / self.scale

    @property
    def cost(self) -> float:
        """mu of this spend alone, rounded up."""
        mu = sqrt(self.mu_squared)
        return mu if Fraction(mu) ** 2 >= self.mu_squared else nextafter(mu, inf)


@dataclass(frozen=True)
class Together:
    """All parts are released; adaptive composition."""

    parts: tuple[Event, ...]


@dataclass(frozen=True)
class Either:
    """Exactly one branch runs; which one may depend on earlier noisy outputs only."""

    branches: tuple[Event, ...]


@dataclass(frozen=True)
class Test:
    """A private test; `then` runs only when it passes."""

    __test__ = False  # the name is the field's, not a test class for pytest

    on: Event
    then: Event


@dataclass(frozen=True)
class Select:
    """Private selection: `base` is run a random number of times with the law `runs`, and one winner leaves."""

    base: Event
    runs: str


@dataclass(frozen=True)
class PerPath:
    """Spends along a tree of which one record meets a single path; `bound` is the proved guarantee of any path."""

    leaf: Event
    bound: Guarantee


@dataclass(frozen=True)
class Opaque:
    """A release whose guarantee is proved elsewhere, in `proof`."""

    name: str
    guarantee: Guarantee
    proof: str


Event = Spend | Together | Either | Test | Select | PerPath | Opaque


def leaves(event: Event) -> Iterator[Spend | Opaque]:
    """The spends and opaque releases of a tree, in order."""
    match event:
        case Spend() | Opaque():
            yield event
        case Together(children) | Either(children):
            for child in children:
                yield from leaves(child)
        case Test(on, then):
            yield from leaves(on)
            yield from leaves(then)
        case Select(base, _):
            yield from leaves(base)
        case PerPath(leaf, _):
            yield from leaves(leaf)


def paths(event: Event) -> frozenset[frozenset[str]]:
    """The sets of names that may have been drawn when the release ends: one set for each branch."""
    match event:
        case Spend() | Opaque():
            return frozenset({frozenset({event.name})})
        case Together(parts):
            return frozenset(frozenset().union(*choice) for choice in product(*(paths(part) for part in parts)))
        case Either(branches):
            return frozenset().union(*(paths(branch) for branch in branches))
        case Test(on, then):
            return paths(on) | paths(Together((on, then)))
        case Select(base, _):
            return paths(base)
        case PerPath(leaf, _):
            return paths(leaf)


def mu_squared(event: Event) -> Fraction | None:
    """The exact mu^2 of a tree that consists of Gaussian spends alone; None when another node is in it.

    Gaussian spends compose adaptively by adding mu^2; the dearest branch counts.
    """
    match event:
        case Spend(law="grid_gaussian"):
            return event.mu_squared
        case Together(parts):
            costs = [mu_squared(part) for part in parts]
            return None if any(c is None for c in costs) else sum((c for c in costs if c is not None), Fraction(0))
        case Either(branches):
            costs = [mu_squared(branch) for branch in branches]
            return None if any(c is None for c in costs) else max(c for c in costs if c is not None)
        case _:
            return None


def fold(event: Event, relation: str) -> Guarantee:
    """The guarantee of a tree under a relation, never below its exact cost.

    Raises `PlanError` for a node that has no proved bound of its own (private selection: wrap it in `Opaque` with its proof).
    """
    exact = mu_squared(event)
    if exact is not None:
        mu = sqrt(exact)
        return GDP(mu if Fraction(mu) ** 2 >= exact else nextafter(mu, inf), relation=relation)
    match event:
        case Opaque(_, guarantee, _) | PerPath(_, guarantee):
            return guarantee.resolve(relation)
        case Together(parts):
            return compose(*(fold(part, relation) for part in parts))
        case Test(on, then):
            return compose(fold(on, relation), fold(then, relation))
        case Either(branches):
            bounds = [fold(branch, relation) for branch in branches]
            if len(set(bounds)) == 1:
                return bounds[0]
            raise PlanError(
                "branches with different guarantees that are not all Gaussian have no proved maximum; give them the same one"
            )
        case _:
            raise PlanError(
                f"no proved bound for the event {type(event).__name__}; wrap it as Opaque(name, guarantee, proof)"
            )


def event_to_dict(event: Event) -> dict[str, Any]:
    """JSON-safe form of a tree."""
    match event:
        case Spend():
            return {
                "event": "spend",
                "name": event.name,
                "law": event.law,
                "sensitivity": fraction_to_text(event.sensitivity),
                "norm": event.norm,
                "scale": fraction_to_text(event.scale),
                "step": fraction_to_text(event.step),
                "shape": list(event.shape),
                "map": event.map,
            }
        case Together(parts):
            return {"event": "together", "parts": [event_to_dict(part) for part in parts]}
        case Either(branches):
            return {"event": "either", "branches": [event_to_dict(branch) for branch in branches]}
        case Test(on, then):
            return {"event": "test", "on": event_to_dict(on), "then": event_to_dict(then)}
        case Select(base, runs):
            return {"event": "select", "base": event_to_dict(base), "runs": runs}
        case PerPath(leaf, bound):
            return {"event": "per_path", "leaf": event_to_dict(leaf), "bound": bound.to_dict()}
        case Opaque(name, guarantee, proof):
            return {"event": "opaque", "name": name, "guarantee": guarantee.to_dict(), "proof": proof}


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_dict`; an unknown node is refused with `ReleaseError`."""
    kind = data.get("event")
    if kind == "spend":
        return Spend(
            name=data["name"],
            law=data["law"],
            sensitivity=fraction_from_text(data["sensitivity"]),
            norm=data["norm"],
            scale=fraction_from_text(data["scale"]),
            step=fraction_from_text(data["step"]),
            shape=tuple(data["shape"]),
            map=data["map"],
        )
    if kind == "together":
        return Together(tuple(event_from_dict(part) for part in data["parts"]))
    if kind == "either":
        return Either(tuple(event_from_dict(branch) for branch in data["branches"]))
    if kind == "test":
        return Test(event_from_dict(data["on"]), event_from_dict(data["then"]))
    if kind == "select":
        return Select(event_from_dict(data["base"]), data["runs"])
    if kind == "per_path":
        return PerPath(event_from_dict(data["leaf"]), guarantee_from_dict(data["bound"]))
    if kind == "opaque":
        return Opaque(data["name"], guarantee_from_dict(data["guarantee"]), data["proof"])
    raise ReleaseError(
        f"unknown event {kind!r} in the file; the kinds are spend, together, either, test, select, per_path, opaque"
    )
