"""What a release does to the budget, as a tree of events; the guarantee of a plan is a fold over it.

`BudgetItem` is one noisy vector or matrix. The other nodes say how spends belong together. Where no proof covers a node the fold
refuses: it never guesses.

What each law of noise costs and how much it spreads, as exact functions of its scale.

| law | norm of the sensitivity D | scale | guarantee of one draw | source |
| --- | --- | --- | --- | --- |
| grid_gaussian | l2 (or frobenius) | variance sigma^2 | GDP(D / sigma) | Dong, Roth, Su 2022, Theorem 2; rounding is post-processing |
| discrete_gaussian | l2 | variance sigma^2 | ZCDP(D^2 / (2 sigma^2)) | Canonne, Kamath, Steinke 2020, Theorem 4 |
| grid_laplace | l1 | scale s | PureDP(D / s) | Dwork, McSherry, Nissim, Smith 2006; rounding is post-processing |
| discrete_laplace | l1 | scale s | PureDP(D / s) | Ghosh, Roughgarden, Sundararajan 2012 |
| exponential | of the score | epsilon | PureDP(epsilon) | McSherry, Talwar 2007 |
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import ceil, inf, nextafter, sqrt
from typing import Any

from confide import _special as special
from confide.core.codec import SPARSE, decode, encode
from confide.errors import NoConversion, PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP, compose
from confide.guarantees.validation import float_up

# the variance of one draw of each, in squared steps: closed forms in float64, good to 1e-12 -------------------------


def rounded_gaussian(sigma2: Fraction) -> float:
    """N(0, sigma2) rounded to the nearest integer: sigma2 + 1/12 plus a series that is below 2e-8 from sigma = 1 on.

    Relative error below 1e-12 from sigma = 0.02 on (there the variance is 1e-137).
    """
    if sigma2 < Fraction(1, 4):
        return _variance_by_tails(math.sqrt(sigma2))
    four_s = 4 * math.pi**2 * float(sigma2)
    # From sigma = 1/2 on the terms fall faster than e^(-4.9 j^2): the fourth is below 1e-33.
    series = sum((-1) ** j * (1 / j**2 + four_s) * math.exp(-four_s * j * j / 2) for j in (1, 2, 3))
    return float(sigma2 + Fraction(1, 12)) + series / math.pi**2


def _variance_by_tails(sigma: float) -> float:
    """The sum of (2k - 1) P(|X| >= k - 1/2): for small sigma, where the series cancels against sigma2 + 1/12."""
    # Below sigma = 1/2 what follows k = 5 is below 1e-22 of the first term.
    reach = 1 / (sigma * math.sqrt(2)) if sigma > 1e-9 else math.inf
    return sum((2 * k - 1) * math.erfc((k - 0.5) * reach) for k in (5, 4, 3, 2, 1))


def rounded_laplace(scale: Fraction) -> float:
    """A Laplace rounded to the nearest integer: cosh(x) / (2 sinh(x)^2), x = 1/(2s); near 2 s^2 for large s."""
    x = _inverse(2 * scale)
    # e^x and e^-x apart from their quotient: sinh would overflow for small scales.
    return math.exp(-x) * (1 + math.exp(-2 * x)) / math.expm1(-2 * x) ** 2


def discrete_laplace(scale: Fraction) -> float:
    """P(k) proportional to e^(-|k|/scale): 2 q / (1 - q)^2 with q = e^(-1/scale)."""
    x = _inverse(scale)
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


def discrete_gaussian(sigma2: Fraction) -> float:
    """P(k) proportional to e^(-k^2 / (2 sigma2)): below sigma2 by less than 3e-7 from sigma = 1 on."""
    if sigma2 < 1:
        half = _inverse(2 * sigma2)
        weights = [(k * k, math.exp(-half * k * k)) for k in range(1, 15)]  # the next is below e^-112
        return 2 * sum(square * weight for square, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))
    # Poisson summation: the normaliser is sigma sqrt(2 pi) (1 + 2 sum_j e^(-2 pi^2 sigma2 j^2)); its derivative.
    s = float(sigma2)
    terms = [(j * j, math.exp(-2 * math.pi**2 * s * j * j)) for j in (1, 2, 3)]
    total = 1 + 2 * sum(weight for _, weight in terms)
    return s - 8 * math.pi**2 * s * s * sum(square * weight for square, weight in terms) / total


def _inverse(value: Fraction) -> float:
    """1 / value, at most 1e6: e^-x is 0 there already."""
    return float(1 / value) if value > Fraction(1, 10**6) else 1e6


# the laws -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """A law of noise: what kind of statement it gives, the exact number in it, and the variance of one draw.

    cost(D, scale) is the square of mu for GDP, rho for ZCDP and epsilon for PureDP: the number that adds up when
    releases compose.
    """

    name: str
    kind: type[GDP] | type[ZCDP] | type[PureDP]
    norms: tuple[str, ...]
    cost: Callable[[Fraction, Fraction], Fraction]
    variance: Callable[[Fraction], float]


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("grid_gaussian", GDP, ("l2", "frobenius"), lambda d, sigma2: d**2 / sigma2, rounded_gaussian),
        Law("discrete_gaussian", ZCDP, ("l2",), lambda d, sigma2: d**2 / (2 * sigma2), discrete_gaussian),
        Law("grid_laplace", PureDP, ("l1",), lambda d, s: d / s, rounded_laplace),
        Law("discrete_laplace", PureDP, ("l1",), lambda d, s: d / s, discrete_laplace),
        Law("exponential", PureDP, ("score",), lambda _, epsilon: epsilon, lambda _: inf),
    )
}

#: The laws that add noise to integers; the other one chooses.
ADDITIVE = ("grid_gaussian", "discrete_gaussian", "grid_laplace", "discrete_laplace")


def law_named(name: str) -> Law:
    """The law of that name; `PrivacyError` for one that has no proved cost here.

    >>> law_named("grid_laplace").cost(Fraction(3), Fraction(6))
    Fraction(1, 2)
    """
    if name not in LAWS:
        raise PrivacyError(f"no law {name!r} with a proved cost; the laws are {', '.join(LAWS)}")
    return LAWS[name]


@dataclass(frozen=True)
class Cost:
    """An exact amount of one kind of guarantee: the square of mu for GDP, rho of ZCDP, epsilon of PureDP; delta: of GDP alone."""

    kind: type[GDP] | type[ZCDP] | type[PureDP]
    amount: Fraction
    delta: Fraction = Fraction(0)

    def guarantee(self, relation: str) -> Guarantee:
        """The statement, its numbers rounded up to floats."""
        if self.kind is GDP:
            mu = _up(sqrt(self.amount), lambda number: number**2 >= self.amount)
            return GDP(mu, _up(float(self.delta), lambda number: number >= self.delta), relation=relation)
        return self.kind(_up(float(self.amount), lambda number: number >= self.amount), relation=relation)


def _up(nearest: float, enough: Callable[[Fraction], bool]) -> float:
    return nearest if enough(Fraction(nearest)) else nextafter(nearest, inf)


@dataclass(frozen=True)
class BudgetItem:
    """One noisy statistic: integers plus noise on the same grid; or one private choice.

    `law`: a name in `LAWS`. `sensitivity`: bound on what one unit can change, in released steps, in `norm` ("l2",
    "l1"; "score" for a choice). The norm "frobenius" is for a symmetric matrix whose off-diagonal entries get half
    the variance. `scale`: sigma^2 in squared steps for the Gaussian laws, s in steps for the Laplace laws, epsilon
    for a choice. `step`: the size of one released step in the statistic's own integers (1, or a power of 1/2 when
    noise would be small against 1). `shape`: of the statistic, or (candidates,). `map`: digest of the record map that
    states the sensitivity of one record.
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
        """What this budget item adds to a total: the square of mu, rho or epsilon, exactly."""
        law = law_named(self.law)
        if self.scale <= 0 or self.sensitivity < 0 or self.step <= 0 or self.norm not in law.norms:
            raise PrivacyError(
                f"the budget item {self.name!r} has no cost. A {self.law} needs scale and step above 0, a sensitivity of at least 0, "
                f"in the norm {' or '.join(law.norms)}; got scale {self.scale}, step {self.step}, sensitivity {self.sensitivity}, "
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
class Composed:
    """All parts are released; adaptive composition."""

    parts: tuple[Event, ...]


@dataclass(frozen=True)
class Branches:
    """Exactly one branch runs; which one may depend on earlier noisy outputs only."""

    branches: tuple[Event, ...]


@dataclass(frozen=True)
class Test:
    """A test on noisy numbers, and what follows when it passes. The guarantee of `then` may fail together with the test,
    on `delta`.

    `shown`: the noisy numbers of `on` are released whatever they say, and `then` runs or not by what they say. The
    sensitivities of `then` hold unless the certificate that `on` gives is wrong, which happens with probability at
    most `delta` under either neighbor. Then squares of mu and deltas add. Not shown: the safety test of efficient
    propose-test-release. `on` is one Gaussian spend on an integer safety that moves by at most its sensitivity s. It
    passes only where the safety is above 0 and max(safety - s, 0) plus its noise reaches `threshold(on, delta)`. When
    it does not, nothing of it is released. `then` is protected on every neighbor of data with a safety above 0. Where
    both neighbors have one, test and release are Gaussian mechanisms composed. Where one has none, the other passes
    with probability at most `delta`, and where both have none nothing happens. So squares of mu add and `delta` is
    added once. Source: Shen et al. (efficient propose-test-release), with a Gaussian test; evidence/errata.md.
    """

    __test__ = False  # the name is the field's, not a test class for pytest

    on: Event
    then: Event
    delta: Fraction = field(default=Fraction(0), metadata=SPARSE)
    shown: bool = field(default=True, metadata=SPARSE)


@dataclass(frozen=True)
class OpaqueRelease:
    """A release whose guarantee is proved in its method; proof: by what, in words, and by no file's name, since files are moved.

    `hiding`: noise that the meter adds to it last, to integers. Numbers that are computed in rounded arithmetic, or
    from noise on a lattice, are not those that the proof is about: they differ by a distance that is bounded.
    `guarantee` is then of the ideal numbers. The sensitivity of `hiding` bounds how far the integers of two neighbors
    are apart where the ideal numbers agree. So `hiding` is what the integers cost given the ideal numbers. The two
    are composed.
    """

    name: str
    guarantee: Guarantee
    proof: str
    hiding: BudgetItem | None = field(default=None, metadata=SPARSE)


Event = BudgetItem | Composed | Branches | Test | OpaqueRelease


def leaves(event: Event) -> Iterator[BudgetItem | OpaqueRelease]:
    """The spends and opaque releases of a tree, in order."""
    match event:
        case BudgetItem() | OpaqueRelease():
            yield event
        case Composed(children) | Branches(children):
            for child in children:
                yield from leaves(child)
        case Test(on, then):
            yield from leaves(on)
            yield from leaves(then)


def with_leaves(event: Event, change: Callable[[BudgetItem | OpaqueRelease], BudgetItem | OpaqueRelease]) -> Event:
    """The same tree with each spend and opaque release put through `change`."""
    match event:
        case BudgetItem() | OpaqueRelease():
            return change(event)
        case Composed(parts):
            return Composed(tuple(with_leaves(part, change) for part in parts))
        case Branches(branches):
            return Branches(tuple(with_leaves(branch, change) for branch in branches))
        case Test(on, then):
            return replace(event, on=with_leaves(on, change), then=with_leaves(then, change))


def nodes(event: Event) -> Iterator[Event]:
    """Every node of a tree, the tree itself first."""
    yield event
    match event:
        case Composed(children) | Branches(children):
            for child in children:
                yield from nodes(child)
        case Test(on, then):
            yield from nodes(on)
            yield from nodes(then)


def paths(event: Event) -> frozenset[frozenset[str]]:
    """The sets of names that may have been drawn when the release ends: one set for each branch."""
    match event:
        case BudgetItem() | OpaqueRelease():
            return frozenset({frozenset({event.name})})
        case Composed(parts):
            return frozenset(frozenset().union(*choice) for choice in product(*(paths(part) for part in parts)))
        case Branches(branches):
            return frozenset().union(*(paths(branch) for branch in branches))
        case Test(on, then, _, shown):
            return (paths(on) if shown else frozenset({frozenset()})) | paths(Composed((on, then)))


def is_path(event: Event, drawn: Set[str]) -> bool:
    """Whether names are one of `paths`, without writing these out: each node takes its own names, and is looked at once.

    The parts of `Composed`, and a test and what follows it, have no name in common: a file with another plan is not read.

    >>> one = BudgetItem("a", "grid_gaussian", Fraction(1), "l2", Fraction(4), Fraction(1), (1,))
    >>> other = replace(one, name="b")
    >>> is_path(Branches((one, other)), {"a"}), is_path(Composed((one, other)), {"a"})
    (True, False)
    """
    match event:
        case BudgetItem() | OpaqueRelease():
            return drawn == {event.name}
        case Composed(parts):
            own = [drawn & _names(part) for part in parts]
            return drawn == set().union(*own) and all(map(is_path, parts, own))
        case Branches(branches):
            return any(is_path(branch, drawn) for branch in branches)
        case Test(on, then, _, shown):
            first, second = drawn & _names(on), drawn & _names(then)
            if not drawn and not shown:
                return True
            after = is_path(then, second) or (shown and not second)
            return drawn == first | second and is_path(on, first) and after


def has_branches(event: Event) -> bool:
    """Whether more than one set of names may have been drawn; the sets are not written out, which are many where branches multiply."""
    return any(isinstance(node, (Branches, Test)) for node in nodes(event))


def _names(event: Event) -> Set[str]:
    return {leaf.name for leaf in leaves(event)}


def hidden_tests(event: Event) -> Iterator[Test]:
    """The tests of a tree whose noisy number is released only when they pass."""
    match event:
        case Composed(children) | Branches(children):
            for child in children:
                yield from hidden_tests(child)
        case Test(on, then, _, shown):
            if not shown:
                yield event
            yield from hidden_tests(on)
            yield from hidden_tests(then)


def threshold(on: BudgetItem, delta: Fraction) -> int:
    """The least released step T with P(noise >= T) <= delta: what a safety test must reach, exactly as the sampler draws.

    The noise is N(0, scale) rounded to the nearest step, so that it reaches T with probability P(N >= T - 1/2). The quantile is taken
    for a delta that is smaller by 1e-9 of itself, which is far more than what its evaluation may be wrong by.

    >>> threshold(BudgetItem("safety", "grid_gaussian", Fraction(1024), "l2", Fraction(2048**2), Fraction(1), (1,)), Fraction(1, 100))
    4765
    """
    if not (0 < delta < Fraction(1, 2)):
        raise PrivacyError(f"the failure probability of a safety test must be between 0 and 1/2, got {float(delta)!r}")
    quantile = -float(special.ndtri(float(delta) * (1 - 1e-9)))
    return ceil(quantile * (1 + 1e-12) * sqrt(on.scale) + 0.5)


def exact_cost(event: Event) -> Cost | None:
    """The exact cost of a tree whose budget items are of one kind: the square of mu, rho, epsilon and delta add up, and
    the most costly branch counts.

    Gaussian and discrete Gaussian spends have the cost in rho in common. None when another node is in the tree, when a pure
    and a Gaussian spend meet, or where a delta stands beside a cost that has none.
    """
    match event:
        case BudgetItem():
            return event.exact_cost
        case OpaqueRelease(name, guarantee, proof, BudgetItem() as hiding):
            return exact_cost(Composed((OpaqueRelease(name, guarantee, proof), hiding)))
        case OpaqueRelease(_, GDP(mu, delta), _):
            return Cost(GDP, Fraction(mu) ** 2, Fraction(delta))
        case Composed(parts):
            return _joined([exact_cost(part) for part in parts], _sum)
        case Branches(branches):
            return _joined([exact_cost(branch) for branch in branches], max)
        case Test(on, then, delta, shown):
            if not 0 <= delta < 1 or not isinstance(shown, bool):
                raise PlanError(
                    f"the failure probability of a test must be at least 0 and below 1, got {float(delta)!r}",
                    "write allowance.test(...) or allowance.certify(...)",
                )
            if not shown:
                _check_safety_test(event)
            both = _joined([exact_cost(on), exact_cost(then)], _sum)
            if both is None or (delta and both.kind is not GDP):
                return None
            return replace(both, delta=both.delta + delta)
        case _:
            return None


def _check_safety_test(test: Test) -> None:
    """A hidden test is proved for one Gaussian number alone, with a failure probability above 0."""
    on = test.on
    if (
        not isinstance(on, BudgetItem)
        or on.law != "grid_gaussian"
        or on.shape != (1,)
        or not 0 < test.delta < Fraction(1, 2)
    ):
        raise PlanError(
            "a safety test that is not shown needs one Gaussian spend of shape (1,) and a failure probability between 0 and 1/2",
            "write allowance.test(name, statistic, share, then)",
        )


def _sum(amounts: list[Fraction]) -> Fraction:
    # equal ones first: rounds cost alike, and a sum over a long common denominator is slow
    return sum((amount * times for amount, times in Counter(amounts).items()), Fraction(0))


def _joined(costs: list[Cost | None], join: Callable[[list[Fraction]], Fraction]) -> Cost | None:
    known = [cost for cost in costs if cost is not None]
    kinds = {cost.kind for cost in known}
    if not known or len(known) < len(costs) or (len(kinds) > 1 and PureDP in kinds):
        return None
    kind = ZCDP if ZCDP in kinds else known[0].kind
    if kind is ZCDP and any(cost.delta for cost in known):
        return None
    # mu-GDP is (mu^2 / 2)-zCDP, exactly
    amount = join([c.amount / 2 if c.kind is GDP and kind is ZCDP else c.amount for c in known])
    return Cost(kind, amount, join([c.delta for c in known]))


def mu_squared(event: Event) -> Fraction | None:
    """The exact square of mu of a tree whose cost is Gaussian; None when it has another."""
    cost = exact_cost(event)
    return cost.amount if cost is not None and cost.kind is GDP else None


def fold(event: Event, relation: str) -> Guarantee:
    """The guarantee of a tree under a relation, never below its exact cost.

    A tree of unlike guarantees is stated in GDP where all convert, else in ZCDP. Raises `PlanError` for a node that
    has no proved bound (selection: wrap it in `OpaqueRelease` with its proof).
    """
    exact = exact_cost(event)
    if exact is not None:
        return exact.guarantee(relation)
    match event:
        case OpaqueRelease(name, guarantee, proof, BudgetItem() as hiding):
            return fold(Composed((OpaqueRelease(name, guarantee, proof), hiding)), relation)
        case OpaqueRelease(_, guarantee, _):
            # whose the numbers are is said by the plan's statements, and compared there
            return replace(guarantee, unit="record").resolve(relation)
        case Composed(parts):
            return _together([fold(part, relation) for part in parts])
        case Test(on, then, delta, shown):
            if delta or not shown:
                raise PlanError(
                    "a test that may fail has a proved bound with Gaussian spends alone",
                    "give what it tests and what follows "
                    "Gaussian laws, or wrap it as OpaqueRelease(name, guarantee, proof)",
                )
            return compose(*_alike([fold(on, relation), fold(then, relation)]))
        case Branches(branches):
            bounds = [fold(branch, relation) for branch in branches]
            if len(set(bounds)) == 1:
                return bounds[0]
            raise PlanError(
                "branches with different guarantees that have no exact cost of one kind have no proved maximum",
                "give them the same one",
            )
        case _:
            raise PlanError(
                f"no proved bound for the event {type(event).__name__}",
                "wrap it as OpaqueRelease(name, guarantee, proof)",
            )


def _together(bounds: list[Guarantee]) -> Guarantee:
    """Both at once; an (epsilon, 0) adds its epsilon to an (epsilon, delta)."""
    pure, approx = ([bound for bound in bounds if isinstance(bound, kind)] for kind in (PureDP, ApproxDP))
    if not (pure and approx and len(pure) + len(approx) == len(bounds)):
        return compose(*_alike(bounds))
    more, both = compose(*pure), compose(*approx)
    assert isinstance(more, PureDP) and isinstance(both, ApproxDP)
    assumed = tuple(dict.fromkeys((*both.assumptions, *more.assumptions)))
    return replace(both, epsilon=float_up(Fraction(more.epsilon) + Fraction(both.epsilon)), assumptions=assumed)


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
            f"no proved statement covers {kinds} together", "give each spend a law with a common one"
        ) from None


# in files -----------------------------------------------------------------------------------------------------------

_KINDS = {
    "spend": BudgetItem,
    "together": Composed,
    "either": Branches,
    "test": Test,
    "opaque": OpaqueRelease,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def event_to_dict(event: Event) -> dict[str, Any]:
    """JSON-safe form of a tree."""
    return {"event": _NAMES[type(event)], **encode(event)}


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_dict`; an unknown node is refused with `ReleaseError`."""
    kind = data.get("event")
    if kind not in _KINDS:
        raise ReleaseError(f"unknown event {kind!r} in the file; the kinds are {', '.join(_KINDS)}")
    event: Event = decode(_KINDS[kind], data)
    if isinstance(event, Test) and not isinstance(event.shown, bool):
        raise ReleaseError("a test is shown or not, true or false; the file was altered")
    hiding = event.hiding if isinstance(event, OpaqueRelease) else None
    if hiding is not None and not (
        isinstance(hiding, BudgetItem) and hiding.law in ADDITIVE and hiding.norm in ("l1", "l2")
    ):
        raise ReleaseError("what hides an opaque release is a spend of independent noise; the file was altered")
    return event
