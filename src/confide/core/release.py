"""The release: noisy statistics with their guarantee. Nothing else leaves the private part of the code, and it may be
published.

A publication has parts: plans in a plan, meters in a meter, releases in a release.

The budget items of a part are in the whole plan's tree under the name of the part, "model/moments". Its noise is
drawn by the meter of the whole, which alone knows what was charged. A part has a meter in front of that one
(`meter.PartMeter`), which puts its name before what it draws and can draw nothing else.

`check_plan` compares a plan's statements with its budget items before the charge, for every method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import nan, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._helpers import as_html, clean
from confide.core.codec import SPARSE, decode, encode, register
from confide.core.events import (
    ADDITIVE,
    Branches,
    BudgetItem,
    Composed,
    Event,
    OpaqueRelease,
    Test,
    exact_cost,
    fold,
    is_path,
    law_named,
    leaves,
    with_leaves,
)
from confide.core.exact import Numbers, digest
from confide.core.files import read, text_of, written
from confide.core.lost_values import NAME as LOST, Lost, bounded_terms, lost_of
from confide.core.plan import Plan
from confide.core.ranges import ColumnRange, columns_ranged, is_paid, ranged, ranges_of, spend_name
from confide.core.statistic import Statistic
from confide.core.units.privacy_unit import protected
from confide.errors import NoConversion, NoResult, PlanError, ReleaseError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, gaussian_delta
from confide.schema import Numeric

#: Between the name of a part and a name in it.
_OF = "/"


def prefixed(part: str, name: str) -> str:
    """The name of a budget item or a number of a part, in the whole."""
    return f"{part}{_OF}{name}"


def names_of(part: str, whole: Mapping[str, Any]) -> dict[str, Any]:
    """What a mapping of the whole holds for a part, by the part's own names."""
    start = prefixed(part, "")
    return {name[len(start) :]: value for name, value in whole.items() if name.startswith(start)}


def of_parts(plans: Mapping[str, Plan]) -> Event:
    """The event of a whole: all that its parts draw, one after the other."""
    return Composed(tuple(_named(part, plan.event) for part, plan in plans.items()))


def _named(part: str, event: Event) -> Event:
    def named(leaf: BudgetItem | OpaqueRelease) -> BudgetItem | OpaqueRelease:
        if isinstance(leaf, OpaqueRelease) and leaf.hiding is not None:
            leaf = replace(leaf, hiding=replace(leaf.hiding, name=prefixed(part, leaf.hiding.name)))
        return replace(leaf, name=prefixed(part, leaf.name))

    return with_leaves(event, named)


def statistics_of(plans: Mapping[str, Plan]) -> dict[str, Statistic]:
    """The live statistics of all parts."""
    return {prefixed(part, name): one for part, plan in plans.items() for name, one in plan.statistics.items()}


@dataclass(frozen=True, eq=False)
class Noisy:
    """One noisy statistic: integers (Python integers in an object array) in steps, and the distribution of their noise.

    For norm "frobenius" the matrix is symmetric, its diagonal has variance `variance` and its off-diagonal entries
    half of it; otherwise every entry has `variance`.
    """

    values: Numbers
    step: Fraction
    law: str
    scale: Fraction
    norm: str

    def __post_init__(self) -> None:
        # what was drawn leaves as it is: no draw puts other numbers in its place
        self.values.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @cached_property
    def variance(self) -> float:
        """Noise variance of one entry in the statistic's own integers, rounding included; infinite for a choice, NaN for an opaque one."""
        if self.law == "opaque":
            return nan
        return law_named(self.law).variance(self.scale) * float(self.step**2)

    def decode(self) -> NDArray[np.float64]:
        """The values in the statistic's own integers, as floats."""
        return self._floats.copy()

    @cached_property
    def _floats(self) -> NDArray[np.float64]:
        # the step is a power of two, so scaling after the one rounding to a double is exact
        return np.array(list(map(float, self.values.ravel().tolist()))).reshape(self.shape) * float(self.step)

    @property
    def sha256(self) -> str:
        """Digest of the drawn integers, their step and their law."""
        return digest(encode(self))


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy statistics with their plan and guarantees: what may be published.

    It is made by `confide.release` and read by `confide.infer`.

    Parameters
    ----------
    plan : Plan
        The plan that it was made from.
    status : {"released", "declined"}
        "declined" when the mechanism declined.
    statistics : mapping of str to Noisy
        The noisy statistics.
    guarantees : tuple of Guarantee
        What is proved of the release.
    public : mapping of str to array
        What was computed from noisy numbers between rounds.
    artifacts : mapping of str to str
        Digests of bulk outputs.
    simulated : bool, default False
        Whether a seed made the noise. That release protects no one and is
        neither charged nor published.
    statuses : mapping of str to str
        Of a publication, by analysis: "released", "declined", or "failed" after
        the charge, which no guarantee covers.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> cf.Release.from_json(release.to_json()).sha256 == release.sha256
    True
    """

    plan: Plan
    status: str
    statistics: Mapping[str, Noisy]
    guarantees: tuple[Guarantee, ...]
    public: Mapping[str, Numbers] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    statuses: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)

    def __post_init__(self) -> None:
        if self.ranges:
            # what reads the release has the columns as they were added up
            object.__setattr__(self, "plan", replace(self.plan, clipped=ranged(self.plan.asked, self.ranges)))

    @cached_property
    def ranges(self) -> Mapping[str, ColumnRange]:
        """Ranges of columns that this release found, by name."""
        return ranges_of(self.public, self.plan)

    @cached_property
    def lost(self) -> tuple[Lost, ...]:
        """Shares of clipped and unread values of its columns; none where they were not counted."""
        names = self.plan.constants.get(LOST)
        if not names or self.plan.children:
            return ()
        own = self.statistics.get(LOST)
        # an analysis of a publication, which counts once for all of them, has its part of that
        found = self.public.get(LOST, ()) if own is None else (*own.decode(), len(names), sqrt(own.variance))
        terms: dict[str, Numeric] = {}
        if bounds := self.plan.method.parameters.get("term_bounds"):
            for one in (design.response for design in bounded_terms(bounds, self.plan.asked)):
                terms[one.name] = Numeric(one.low, one.high)
        return lost_of(np.asarray(found, dtype=np.float64), names, {**self.plan.asked.columns, **terms}, terms)

    def __getitem__(self, name: str) -> Noisy:
        if name not in self.statistics:
            raise ReleaseError(
                f"the release holds no statistic {name!r}; it holds: {', '.join(sorted(self.statistics)) or 'none'}"
            )
        return self.statistics[name]

    def child(self, name: str) -> Release:
        """Give one analysis of a publication as a release that `confide.infer` reads.

        The receipt names the whole.

        Parameters
        ----------
        name : str
            Name of the analysis.

        Returns
        -------
        Release
            The analysis.

        Raises
        ------
        PlanError
            The name does not exist.
        NoResult
            The analysis failed after the charge.
        """
        if name not in self.plan.children:
            asked = ", ".join(map(repr, self.plan.children)) or "none: it is not a publication"
            raise PlanError(f"the release has no analysis {name!r}; it has: {asked}")
        if self.statuses[name] == "failed":
            raise NoResult(
                f"the analysis {name!r} failed after the charge, and nothing of it was released", "ask it again"
            )
        plan = self.plan.children[name]
        return Release(
            plan=plan,
            status=self.statuses[name],
            statistics=names_of(name, self.statistics),
            guarantees=plan.guarantees,
            public=names_of(name, self.public),
            simulated=self.simulated,
        )

    @property
    def charged(self) -> Guarantee:
        """The native guarantee of what was drawn."""
        return self.guarantees[0]

    def to_dict(self) -> dict[str, Any]:
        """Give the release as JSON types; nothing is lost and nothing private is in it.

        Returns
        -------
        dict
            What `from_dict` reads back.
        """
        return encode(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Release
            The release.
        """
        return decode(cls, data)

    @cached_property
    def sha256(self) -> str:
        """The release ID: digest of the whole release, which the receipt in the ledger names."""
        return digest(self._plain)

    @cached_property
    def _plain(self) -> dict[str, Any]:
        """`to_dict`, kept: it must not be changed from outside."""
        return encode(self)

    @cached_property
    def drawn_sha256(self) -> str:
        """Digest of the drawn integers, their steps and their distributions, and of no name: the key of every draw
        inside `infer`.

        Columns, levels and datasets may be renamed and a plan worded differently. The draws are the same, and so is
        every number computed from them.
        """
        return digest(sorted(map(digest, self._plain["statistics"].values())))

    def to_json(self) -> str:
        """Give the publishable file, the same bits on every machine.

        Returns
        -------
        str
            The JSON text.

        Raises
        ------
        ReleaseError
            No file of confide can hold it.
        """
        return written("release", self._plain)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read a release's file.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ReleaseError
            The file is damaged, of another format, or not one that confide
            writes.
        """
        return read("release", text, cls.from_dict)

    def save(self, path: str | Path) -> Path:
        """Write `to_json` to a file.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Path
            Its path.
        """
        target = Path(path)
        target.write_text(self.to_json(), encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ReleaseError
            The file is damaged or of another format.
        """
        return cls.from_json(text_of(path, "release"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __str__(self) -> str:
        kind = "simulated, protects nobody" if self.simulated else str(self.charged)
        return clean(
            f"Release of {self.plan.method.name}: {self.plan.target}; {self.status}; {kind}; sha256 {self.sha256}"
        )


register(Noisy, encode, partial(decode, Noisy))


def statements_hold(event: Event, guarantees: tuple[Guarantee, ...]) -> bool:
    """Whether the event tree costs no more than the native statement, and the other statements follow from it."""
    if not guarantees or guarantees[0].relation is None:
        return False
    native, relation = guarantees[0], guarantees[0].relation
    exact = exact_cost(event)
    if exact is not None and exact.kind is type(native):
        paid = exact.amount <= _amount(native) and exact.delta <= (native.delta if isinstance(native, GDP) else 0)
    else:
        paid = implies(fold(event, relation), native)
    same = all((g.relation, g.unit, g.trust) == (relation, native.unit, native.trust) for g in guarantees)
    assumed = all(set(native.assumptions) <= set(g.assumptions) for g in guarantees)
    return paid and same and assumed and _bounds_fit(event, native) and all(implies(native, g) for g in guarantees[1:])


def request_met(plan: Plan) -> bool:
    """Whether a plan's request is about the same unit and relation as its guarantee, and the guarantee meets it."""
    asked, native = plan.requested, plan.guarantees[0]
    same = (asked.relation, asked.unit, asked.trust) == (native.relation, native.unit, native.trust)
    return same and any(implies(own, asked) for own in plan.guarantees)


def _bounds_fit(event: Event, native: Guarantee) -> bool:
    """Whether bounds that are proved elsewhere protect what the native statement says, under no further assumption."""
    match event:
        case OpaqueRelease(_, bound, _):
            labels = (bound.relation in (None, native.relation), bound.unit == native.unit, bound.trust == native.trust)
            return all(labels) and set(bound.assumptions) <= set(native.assumptions)
        case Composed(children) | Branches(children):
            return all(_bounds_fit(child, native) for child in children)
        case Test(on, then):
            return _bounds_fit(on, native) and _bounds_fit(then, native)
        case _:
            return True


def _amount(native: Guarantee) -> Fraction:
    """The number of a statement that adds up, exactly: the square of mu, rho or epsilon."""
    match native:
        case GDP(mu):
            return Fraction(mu) ** 2
        case ZCDP(rho):
            return Fraction(rho)
        case PureDP(epsilon):
            return Fraction(epsilon)
    return Fraction(-1)


def implies(stronger: Guarantee, weaker: Guarantee) -> bool:
    """Whether one statement follows from another by the proved conversions, numbers only.

    >>> implies(GDP(1.0), ZCDP(0.5)), implies(GDP(1.0), ZCDP(0.4)), implies(ZCDP(0.5), GDP(1.0))
    (True, False, False)
    """
    try:
        match weaker:
            case GDP(mu, delta):
                own = stronger.to_gdp(delta=delta) if isinstance(stronger, TradeOff) else stronger.to_gdp()
                return own.mu <= mu and own.delta <= delta
            case ZCDP(rho):
                return stronger.to_zcdp().rho <= rho
            case PureDP(epsilon):
                return stronger.to_pure().epsilon <= epsilon
            case RDP(orders, epsilons):
                return all(a <= b for a, b in zip(stronger.to_rdp(orders).epsilons, epsilons, strict=True))
            case ApproxDP(epsilon, delta):
                if isinstance(stronger, PureDP) and stronger.epsilon <= epsilon:
                    return True
                if isinstance(stronger, GDP):
                    return gaussian_delta(epsilon, stronger.mu) + stronger.delta <= delta
                return stronger.to_approx(epsilon=epsilon).delta <= delta
            case TradeOff(curve):
                # the same curve; whether one curve lies above another is not decided here
                return stronger.to_tradeoff().curve == curve
    except NoConversion:
        return False


def drawn_as_planned(event: Event, statistics: Mapping[str, Noisy]) -> bool:
    """Whether noisy statistics are one branch of a tree, each with the law, scale, step, norm and shape that the tree says."""
    planned = {leaf.name: leaf for leaf in leaves(event)}
    if not is_path(event, frozenset(statistics)):
        return False
    for name, noisy in statistics.items():
        leaf = planned[name]
        if isinstance(leaf, BudgetItem):
            own = (leaf.law, leaf.scale, leaf.step, leaf.norm)
            shape = (1,) if leaf.law == "exponential" else leaf.shape
            if own != (noisy.law, noisy.scale, noisy.step, noisy.norm) or noisy.shape != shape:
                return False
            if leaf.law == "exponential" and not 0 <= noisy.values[0] < prod(leaf.shape):
                return False
        elif noisy.law != "opaque":
            return False
    return True


def parts_agree(release: Release) -> bool:
    """Whether a release agrees with its plan.

    Its numbers are drawn as planned; in a publication, those of each analysis. Its statements are about the unit that
    its schema enforces. An analysis that failed has no numbers; its status is the one that no guarantee covers.
    """
    children, statuses = release.plan.children, release.statuses
    whose, whole = protected(release.plan.schema), (release.plan, *children.values())
    if any(one.unit != whose for plan in whole for one in (plan.requested, *plan.guarantees)):
        return False
    if not children:
        return not statuses and drawn_as_planned(release.plan.event, release.statistics)
    parts = {prefixed(part, name) for part in children for name in names_of(part, release.statistics)}
    shared = {name: one for name, one in release.statistics.items() if name not in parts}
    if set(statuses) != set(children) or not _children_hold(release.plan):
        return False
    if not drawn_as_planned(Composed(_shared_of(release.plan)), shared) or not _ranges_are_shared(release):
        return False
    return all(
        not names_of(part, release.statistics)
        if statuses[part] == "failed"
        else drawn_as_planned(plan.event, names_of(part, release.statistics))
        for part, plan in children.items()
    )


def _shared_of(plan: Plan) -> tuple[Event, ...]:
    """What a publication draws for all of its analyses, before them."""
    events = plan.event.parts if isinstance(plan.event, Composed) else ()
    return events[: len(events) - len(plan.children)]


def _ranges_are_shared(release: Release) -> bool:
    """Whether the analyses of a publication have the ranges that it paid for, and no others."""
    paid, found = columns_ranged(leaf.name for leaf in leaves(release.plan.event)), set[str]()
    for name, child in release.plan.children.items():
        if child.method.parameters.get("bounds") == "shared":
            found |= columns_ranged(names_of(name, release.public))
    return found <= paid and (found == paid or "failed" in release.statuses.values())


def _children_hold(plan: Plan) -> bool:
    """Whether the event of a publication is what its analyses spend, and each of them states no less than that."""
    events, alone = plan.event.parts if isinstance(plan.event, Composed) else (), _shared_of(plan)
    shared = all(
        isinstance(one, BudgetItem) and (one.name.startswith(spend_name("")) or one.name == LOST) for one in alone
    )
    return (
        shared
        and Composed(events[len(alone) :]) == of_parts(plan.children)
        and all(
            statements_hold(one.event, one.guarantees) and one.relation == plan.relation
            for one in plan.children.values()
        )
    )


def check_plan(plan: Plan, requested: Guarantee) -> None:
    """Raise `PlanError` when a plan meets another request, states less than it spends, or spends less than its maps say."""
    who = f"the plan of {plan.method.name!r}"
    whose = protected(plan.schema)
    if any(statement.unit != whose for statement in plan.guarantees):
        raise PlanError(
            f"{who} states a guarantee for another unit than {whose!r}, which its schema enforces; this is an error of the method"
        )
    if plan.requested != replace(requested.resolve(plan.relation), unit=whose):
        raise PlanError(f"{who} is for {plan.requested}, asked was {requested}; this is an error of the method")
    if not statements_hold(plan.event, plan.guarantees):
        raise PlanError(f"{who} states a guarantee that its spends exceed; this is an error of the method")
    if plan.children and not _children_hold(plan):
        raise PlanError(f"{who} does not spend what its questions spend; this is an error of the method")
    for leaf in leaves(plan.event):
        statistic = plan.statistics.get(leaf.name)
        if not isinstance(leaf, BudgetItem) or leaf.law not in ADDITIVE:
            continue
        if statistic is None:
            raise PlanError(
                f"{who} spends on {leaf.name!r} and holds no statistic of that name; this is an error of the method"
            )
        norms = ("l1",) if leaf.norm == "l1" else ("l2", "cells") if leaf.norm == "l2" else (leaf.norm,)
        if leaf.norm != "l1" and statistic.norm not in norms:
            raise PlanError(
                f"{who} draws {leaf.name!r} in another norm than its statistic's; this is an error of the method"
            )
        if not is_paid(leaf, statistic, plan) or leaf.map != statistic.map.digest:
            raise PlanError(
                f"{who} states a smaller sensitivity for {leaf.name!r} than its record map; this is an error of the method"
            )
