"""What a release does to the budget, as a tree of events; the guarantee of a plan is a fold over it.

`Spend` is one noisy vector or matrix. The other nodes say how spends belong together. Where no proof covers a node the fold
refuses: it never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, nextafter, sqrt
from typing import Any

from confide.errors import NoConversion, PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, Guarantee, PureDP, compose, guarantee_from_dict
from confide.protocol.exact import fraction_from_text, fraction_to_text
from confide.protocol.laws import ADDITIVE, law_named

__all__ = [
    "Cost",
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
    "exact_cost",
    "fold",
    "leaves",
    "mu_squared",
    "paths",
]


@dataclass(frozen=True)
class Cost:
    """An exact amount of one kind of guarantee: mu^2 of GDP, rho of ZCDP, epsilon of PureDP."""

    kind: type[GDP] | type[ZCDP] | type[PureDP]
    amount: Fraction

    def guarantee(self, relation: str) -> Guarantee:
        """The statement, its number rounded up to a float."""
        if self.kind is GDP:
            return GDP(_up(sqrt(self.amount), lambda mu: mu**2 >= self.amount), relation=relation)
        return self.kind(_up(float(self.amount), lambda number: number >= self.amount), relation=relation)


def _up(nearest: float, enough: Callable[[Fraction], bool]) -> float:
    return nearest if enough(Fraction(nearest)) else nextafter(nearest, inf)


@dataclass(frozen=True)
class Spend:
    """One noisy statistic: integers plus noise on the same grid; or one private choice.

    law: a name in `LAWS`. sensitivity: bound on what one unit can change, in released steps, in `norm` ("l2"; "frobenius" for a
    symmetric matrix whose off-diagonal entries get half the variance; "l1"; "score" for a choice). scale: sigma^2 in squared steps
    for the Gaussian laws, s in steps for the Laplace laws, epsilon for a choice. step: the size of one released step in the
    statistic's own integers (1, or a power of 1/2 when noise would be small against 1). shape: of the statistic, or (candidates,).
    map: digest of the record map that states the sensitivity of one record.
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
    def exact_cost(self) -> Cost:
        """What this spend adds to a total: mu^2, rho or epsilon, exactly."""
        law = law_named(self.law)
        if self.scale <= 0 or self.sensitivity < 0 or self.step <= 0 or self.norm not in law.norms:
            raise PrivacyError(
                f"the spend {self.name!r} has no cost: a {self.law} needs scale and step above 0, a sensitivity of at least 0, in the "
                f"norm {' or '.join(law.norms)}; got scale {self.scale}, step {self.step}, sensitivity {self.sensitivity}, "
                f"norm {self.norm!r}"
            )
        return Cost(law.kind, law.cost(self.sensitivity, self.scale))

    @property
    def noise_sd(self) -> float | None:
        """Standard deviation of the noise of one number in the statistic's own integers; None for a choice."""
        if self.law not in ADDITIVE:
            return None
        return sqrt(law_named(self.law).variance(self.scale)) * float(self.step)

    @property
    def mu_squared(self) -> Fraction:
        """Exact cost in Gaussian differential privacy: (sensitivity / sigma)^2 (Dong, Roth, Su 2022, Theorem 2)."""
        cost = self.exact_cost
        if cost.kind is not GDP:
            raise PrivacyError(
                f"the law {self.law!r} of {self.name!r} has no exact Gaussian cost, only {cost.kind.__name__}; "
                "the law that has one: grid_gaussian"
            )
        return cost.amount


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


def exact_cost(event: Event) -> Cost | None:
    """The exact cost of a tree whose spends are of one kind: mu^2, rho and epsilon add up, and the dearest branch counts.

    Gaussian and discrete Gaussian spends have the cost in rho in common. None when another node is in the tree, or when a pure
    and a Gaussian spend meet.
    """
    match event:
        case Spend():
            return event.exact_cost
        case Together(parts):
            return _joined([exact_cost(part) for part in parts], lambda amounts: sum(amounts, Fraction(0)))
        case Either(branches):
            return _joined([exact_cost(branch) for branch in branches], max)
        case _:
            return None


def _joined(costs: list[Cost | None], join: Callable[[list[Fraction]], Fraction]) -> Cost | None:
    known = [cost for cost in costs if cost is not None]
    kinds = {cost.kind for cost in known}
    if not known or len(known) < len(costs) or (len(kinds) > 1 and PureDP in kinds):
        return None
    kind = ZCDP if ZCDP in kinds else known[0].kind
    # mu-GDP is (mu^2 / 2)-zCDP, exactly
    return Cost(kind, join([c.amount / 2 if c.kind is GDP and kind is ZCDP else c.amount for c in known]))


def mu_squared(event: Event) -> Fraction | None:
    """The exact mu^2 of a tree that consists of Gaussian spends alone; None when another node is in it."""
    cost = exact_cost(event)
    return cost.amount if cost is not None and cost.kind is GDP else None


def fold(event: Event, relation: str) -> Guarantee:
    """The guarantee of a tree under a relation, never below its exact cost.

    A tree of unlike guarantees is stated in GDP where all convert, else in ZCDP. Raises `PlanError` for a node that has no
    proved bound of its own (private selection: wrap it in `Opaque` with its proof).
    """
    exact = exact_cost(event)
    if exact is not None:
        return exact.guarantee(relation)
    match event:
        case Opaque(_, guarantee, _) | PerPath(_, guarantee):
            return guarantee.resolve(relation)
        case Together(parts):
            return compose(*_alike([fold(part, relation) for part in parts]))
        case Test(on, then):
            return compose(*_alike([fold(on, relation), fold(then, relation)]))
        case Either(branches):
            bounds = [fold(branch, relation) for branch in branches]
            if len(set(bounds)) == 1:
                return bounds[0]
            raise PlanError(
                "branches with different guarantees that have no exact cost of one kind have no proved maximum; give them the same one"
            )
        case _:
            raise PlanError(
                f"no proved bound for the event {type(event).__name__}; wrap it as Opaque(name, guarantee, proof)"
            )


def _alike(bounds: list[Guarantee]) -> list[Guarantee]:
    """The same statements in one kind: as they are, else as GDP, else as ZCDP."""
    if len({type(bound) for bound in bounds}) == 1:
        return bounds
    try:
        return [bound.to_gdp() for bound in bounds]
    except NoConversion:
        pass
    try:
        return [bound.to_zcdp() for bound in bounds]
    except NoConversion:
        kinds = ", ".join(dict.fromkeys(type(bound).__name__ for bound in bounds))
        raise PlanError(
            f"no proved statement covers {kinds} together; give each spend a law with a common one"
        ) from None


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
