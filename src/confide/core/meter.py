"""The meter: the one choke point inside a release. Every noisy number leaves through it.

It knows the plan's events. It refuses a name that is not planned, a second use, a shape or statistic other than the
planned one. And at the end it asserts that what was drawn is one branch of what was charged. The gate makes it, hands
it to the method, and seals the release from what it drew (`seal`).

Several draws over one source in lock step: whatever they ask of the records at the same time is one pass.

Each draw runs in a separate thread, but only one at a time: it goes on until it asks for sums or ends, then the next
one does. When all that are left wait for sums, these are added up in one pass and handed out. So the order of all
draws is fixed, and the number of passes is that of the draw with the most, not the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf
from threading import Semaphore, Thread
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from confide.core.allowance import Noise
from confide.core.events import (
    ADDITIVE,
    BudgetItem,
    Composed,
    Event,
    OpaqueRelease,
    Test,
    hidden_tests,
    is_path,
    leaves,
    nodes,
    threshold,
)
from confide.core.lost_values import NAME as LOST, CountedFirst
from confide.core.plan import Plan
from confide.core.ranges import RangeStep, draw_counts, in_ranges, rows_read, spend_name, to_public
from confide.core.release import Noisy, Release, names_of, prefixed
from confide.core.statistic import MappedSource, Source, Statistic, WrappedSource
from confide.core.units.contributions import NAME as CONTRIBUTIONS
from confide.core.units.privacy_unit import Weighted, weighing
from confide.core.units.subgroup import Subset
from confide.errors import PlanError, ReleaseError
from confide.guarantees.validation import is_whole
from confide.schema.formulas.conditions import Predicate, parse_predicate

# Axes of a public array; files hold no more.
_AXES = 8
# A grid of at least this part of the noise's standard deviation: noise from integers of 2^-40 and sums of doubles are finer by far.
_COARSE = Fraction(1, 1 << 20)


class Draws(Protocol):
    """What the meter is handed to: a method, to the extent that it draws (`confide.core.Method`)."""

    @property
    def name(self) -> str:
        """As registered."""

    def draw(self, source: Source, plan: Plan, meter: Any) -> Mapping[str, Any]:
        """From records: every noisy number through the meter. Returns public numbers."""

    def ranges(self, schema: Any) -> RangeStep | None:
        """The ranges that are found first."""

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None) -> Plan:
        """From public facts."""


class Meter:
    """Draws the noise of one plan, which a method is handed in `draw(source, plan, meter)`: `meter.draw("moments", total)`.

    Raises `ReleaseError` on anything that the plan does not allow. Leaving its block checks that the draws are a branch of the plan.
    """

    def __init__(self, plan: Plan, noise: Noise) -> None:
        self._plan = plan
        self._noise = noise
        self._spends = {leaf.name: leaf for leaf in leaves(plan.event)}
        self._tests = {test.on.name: test for test in hidden_tests(plan.event) if isinstance(test.on, BudgetItem)}
        self._drawn: dict[str, Noisy] = {}
        self._failed: set[str] = set()
        self._parts: dict[str, str] = {}
        self._streams: dict[str, Noise] = {}
        self._declined = False
        self._closed = False
        noise.rekey()

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def draw(self, name: str, integers: NDArray[Any]) -> Noisy:
        """Add the planned noise to exact integers (the shape that the plan says) and return what may leave."""
        spend = self._planned(name, ADDITIVE)
        if name in self._tests:
            raise ReleaseError(f"{name!r} is a safety test, which is released only when it passes", "call meter.test")
        if integers.shape != spend.shape:
            raise ReleaseError(
                f"{name!r} was planned with shape {spend.shape}, got another", "draw the planned statistic"
            )
        fine = int(1 / spend.step)
        noise = self._symmetric(spend) if spend.norm == "frobenius" else self._independent(spend)
        exact = np.empty(integers.size, dtype=object)
        # by weight sums are multiples of the statistic's grain, which is a multiple of the step
        exact[:] = [int(value * fine) for value in integers.ravel().tolist()]
        values = exact.reshape(spend.shape) + noise
        return self._leaves(name, spend, values)

    def choose(self, name: str, scores: NDArray[Any], lengths: NDArray[Any] | None = None) -> int:
        """The number of one candidate by the exponential mechanism: P(i) ~ lengths_i exp(-epsilon (max - score_i) / (2 D)).

        scores: integers, one per candidate, each moved by at most the planned sensitivity D by one unit. lengths: integers of a
        base measure that is public (left out: all 1).
        """
        spend = self._planned(name, ("exponential",))
        if scores.shape != spend.shape:
            raise ReleaseError(f"{name!r} was planned with {spend.shape[0]} candidates, got another number")
        winner = int(self._source(name).exponential_mechanism(scores, spend.scale, spend.sensitivity, lengths))
        self._leaves(name, spend, np.array([winner], dtype=object))
        return winner

    def test(self, name: str, safety: NDArray[Any]) -> bool:
        """Whether a safety test passes (`allowance.test`); only then may what follows it in the plan be drawn.

        `safety`: the integer steps behind the test, shape (1,), at least 0 and moved by at most the planned
        sensitivity s by one record. Above 0 only where what follows is protected on every neighbor. It passes where
        the safety is above 0 and max(safety - s, 0) plus noise reaches the threshold. The noisy number is then among
        the release's statistics. Noise is drawn in any case.

        A unit of k rows changes k of them. Data are safe above (k - 1) s, and s becomes (2 k - 1) s. That is at most
        0 less than the safety of a neighbor that is not.
        """
        if name not in self._tests:
            raise ReleaseError(f"the plan has no safety test {name!r}; it has: {', '.join(self._tests) or 'none'}")
        if np.shape(safety) != (1,):
            raise ReleaseError(f"the safety {name!r} must have shape (1,), got another")
        test: Test = self._tests[name]
        spend = self._planned(name, ADDITIVE)
        rows = int(self._plan.schema["rows_per_unit"])
        one = ceil(spend.sensitivity / rows)
        steps = int(safety[0]) * int(1 / spend.step)
        noise = int(self._independent(spend)[0])
        noisy = max(steps - (2 * rows - 1) * one, 0) + noise
        passed = steps > (rows - 1) * one and noisy >= threshold(spend, test.delta)
        if passed:
            self._leaves(name, spend, np.array([noisy], dtype=object))
        else:
            self._failed.add(name)
        return passed

    def drawn(self, name: str) -> Noisy:
        """What was drawn under a name, for numbers that follow from it between the rounds."""
        if name not in self._drawn:
            raise ReleaseError(f"{name!r} was not drawn yet", "draw it first")
        return self._drawn[name]

    def opaque(self, name: str, value: NDArray[Any], grid: Fraction, noise_sd: float | None = None) -> Noisy:
        """A noisy result that is proved elsewhere (`OpaqueRelease` in the plan), in steps of a public grid, a power of two.

        `value`: drawn by the method itself, from this meter's noise. Integers are the steps themselves: exact, their
        noise too; where the plan hides them, its noise is added here. Floats are rounded to the grid, and what is not
        finite becomes 0. They state the standard deviation of their noise, and a grid below 2^-20 of it is refused.
        Otherwise the records would show between the steps of the noise, or in the last bits of the doubles.
        """
        leaf = self._opaque(name)
        flat = np.asarray(value).ravel()
        if flat.dtype == object or flat.dtype.kind == "i":
            if noise_sd is not None:
                raise ReleaseError(
                    f"{name!r} is whole numbers, which state no noise", "leave noise_sd out, or hand floats"
                )
            steps = [int(v) for v in flat]
        else:
            steps = _rounded(name, flat, grid, noise_sd, leaf.hiding)
        values = np.array(steps, dtype=object).reshape(np.shape(value))
        if leaf.hiding is not None:
            values, grid = self._hidden(leaf, leaf.hiding, values), grid * leaf.hiding.step
        self._drawn[name] = Noisy(values, grid, "opaque", Fraction(0), "none")
        return self._drawn[name]

    def _hidden(self, leaf: OpaqueRelease, hiding: BudgetItem, values: NDArray[Any]) -> NDArray[Any]:
        if values.shape != hiding.shape:
            raise ReleaseError(f"{leaf.name!r} was planned with shape {hiding.shape}, got another")
        return np.asarray(values * int(1 / hiding.step) + self._independent(hiding))

    def _opaque(self, name: str) -> OpaqueRelease:
        """The planned opaque release that is still to be drawn."""
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed", "draw inside the method's draw")
        leaf = self._spends.get(name)
        if not isinstance(leaf, OpaqueRelease):
            known = ", ".join(leaf.name for leaf in self._spends.values() if isinstance(leaf, OpaqueRelease))
            raise ReleaseError(f"the plan has no opaque release {name!r}; it has: {known or 'none'}")
        if name in self._drawn:
            raise ReleaseError(f"{name!r} was drawn twice; the plan pays for one draw")
        return leaf

    def noise(self, name: str) -> Noise:
        """Noise for the opaque release `name` of the plan, and for releases that run inside it; that one's proof covers them.

        Of use until `name` was drawn. Nothing else is handed raw noise.
        """
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed", "draw inside the method's draw")
        if not isinstance(self._spends.get(name), OpaqueRelease) or name in self._drawn:
            raise ReleaseError(f"the plan has no opaque release {name!r} that is still to be drawn")
        return cast(Noise, _Inner(self, name, self._noise))

    @property
    def declined(self) -> bool:
        """Whether the mechanism declined."""
        return self._declined

    def decline(self) -> None:
        """Say that the mechanism declines. What was drawn before is part of the release nevertheless."""
        self._declined = True

    def _leaves(self, name: str, spend: BudgetItem, values: NDArray[Any]) -> Noisy:
        noisy = Noisy(values, spend.step, spend.law, spend.scale, spend.norm)
        self._drawn[name] = noisy
        return noisy

    def _planned(self, name: str, laws: tuple[str, ...]) -> BudgetItem:
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed", "draw inside the method's draw")
        spend = self._spends.get(name)
        if not isinstance(spend, BudgetItem) or spend.law not in laws:
            known = ", ".join(
                leaf.name for leaf in self._spends.values() if isinstance(leaf, BudgetItem) and leaf.law in laws
            )
            raise ReleaseError(f"the plan has no spend {name!r} of this kind; it has: {known or 'none'}")
        if name in self._drawn or name in self._failed:
            raise ReleaseError(f"{name!r} was drawn twice; the plan pays for one draw")
        return spend

    def _independent(self, spend: BudgetItem) -> NDArray[Any]:
        """One independent draw of the planned law for each number."""
        sampler = getattr(self._source(spend.name), spend.law)
        return np.array(sampler(spend.scale, int(np.prod(spend.shape))).tolist(), dtype=object).reshape(spend.shape)

    def _symmetric(self, spend: BudgetItem) -> NDArray[Any]:
        """Symmetric noise: variance sigma^2 on the diagonal, sigma^2/2 on each off-diagonal pair.

        In the Frobenius norm an off-diagonal pair counts twice, so these variances give |D|_F^2 / sigma^2, the square
        of mu, exactly.
        """
        p = spend.shape[0]
        source = self._source(spend.name)
        noise = np.zeros((p, p), dtype=object)
        noise[np.diag_indices(p)] = source.grid_gaussian(spend.scale, p).tolist()
        above = np.triu_indices(p, 1)
        noise[above] = source.grid_gaussian(spend.scale * Fraction(1, 2), len(above[0])).tolist()
        noise.T[above] = noise[above]
        return noise

    @property
    def all_drawn(self) -> Mapping[str, Noisy]:
        """What was drawn so far, by name."""
        return MappingProxyType(self._drawn)

    def draw_part(self, method: Draws, part: str, plan: Plan, records: Source) -> dict[str, NDArray[Any]]:
        """Run the draw of one analysis of a publication, inside its own plan; the public numbers that it returned."""
        own = PartMeter(self, part, plan)
        public = _drawn_by(method, records, plan, own)
        _count_units(records, plan, own)
        own.close()
        self._parts[part] = "declined" if own.declined else "released"
        return public

    def fail(self, part: str) -> None:
        """Drop one question of a publication: nothing that it drew is released."""
        self._parts[part] = "failed"
        for name in [name for name in self._drawn if name.startswith(prefixed(part, ""))]:
            del self._drawn[name]

    def _charged(self) -> Event:
        """What was charged, without the questions that failed after it."""
        if not isinstance(self._plan.event, Composed) or "failed" not in self._parts.values():
            return self._plan.event
        # what all analyses share comes first
        events, alone = self._plan.event.parts, len(self._plan.event.parts) - len(self._plan.children)
        parts = zip(self._plan.children, events[alone:], strict=True)
        kept = (part for name, part in parts if self._parts.get(name) != "failed")
        return Composed((*events[:alone], *kept))

    def close(self) -> None:
        """Assert that what was drawn is one branch of what was charged."""
        self._closed = True
        if not is_path(self._charged(), frozenset(self._drawn)) or set(self._parts) != set(self._plan.children):
            raise ReleaseError(
                "the draws are not a branch of the plan; a release draws every budget item of one branch, once"
            )

    def _source(self, name: str) -> Noise:
        """The noise, told for which name it is asked (a recording under audit listens)."""
        self._noise.mark(name)
        part = name.partition("/")[0]
        return self._stream(part) if part in self._plan.children and self._noise.spawns else self._noise

    def _stream(self, part: str) -> Noise:
        """Seeded noise of a question's own: the other questions' numbers are the same whatever becomes of it."""
        if not self._streams:
            noise: Any = self._noise
            base = noise.spawn(int(noise.uniform_integers(1 << 62, 1)[0]))
            self._streams = {name: base.spawn(place) for place, name in enumerate(self._plan.children)}
        return self._streams[part]


class PartMeter:
    """What the draw of a part is handed: the verbs of a meter, for the spends of this part alone."""

    def __init__(self, outer: Meter, part: str, plan: Plan) -> None:
        self._outer, self._part, self._plan = outer, part, plan
        self.declined = False
        self._closed = False

    def _name(self, name: str) -> str:
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after its question was closed", "draw inside the method's draw")
        return prefixed(self._part, name)

    def draw(self, name: str, integers: NDArray[Any]) -> Noisy:
        """As `Meter.draw`."""
        return self._outer.draw(self._name(name), integers)

    def choose(self, name: str, scores: NDArray[Any], lengths: NDArray[Any] | None = None) -> int:
        """As `Meter.choose`."""
        return self._outer.choose(self._name(name), scores, lengths)

    def test(self, name: str, safety: NDArray[Any]) -> bool:
        """As `Meter.test`."""
        return self._outer.test(self._name(name), safety)

    def drawn(self, name: str) -> Noisy:
        """As `Meter.drawn`."""
        return self._outer.drawn(self._name(name))

    def opaque(self, name: str, value: NDArray[Any], grid: Fraction, noise_sd: float | None = None) -> Noisy:
        """As `Meter.opaque`."""
        return self._outer.opaque(self._name(name), value, grid, noise_sd)

    def noise(self, name: str) -> Noise:
        """As `Meter.noise`."""
        return self._outer.noise(self._name(name))

    def decline(self) -> None:
        """As `Meter.decline`, for this part."""
        self.declined = True

    def close(self) -> None:
        """Assert that what was drawn is one branch of the part's own plan; nothing more is drawn for it."""
        self._closed = True
        if not is_path(self._plan.event, frozenset(names_of(self._part, self._outer.all_drawn))):
            raise ReleaseError(
                "the draws are not a branch of the plan; a release draws every budget item of one branch, once"
            )


# what a draw reads ---------------------------------------------------------------------------------------------------


def for_one_draw(source: Source, plan: Plan) -> AbstractContextManager[Source]:
    """What a plan's draw reads: where it reads the records more than once, a source that codes them once (`RecordSource.kept`).

    A source that stands before another one, to watch it, is asked for every pass itself (`WrappedSource`).
    """
    if plan.passes < 2:
        return nullcontext(source)
    return source.kept(*rows_read(plan))


class _Subgroup(MappedSource):
    """A source whose sums are over a subgroup: what a method's draw is handed."""

    def __init__(self, source: Source, predicate: Predicate) -> None:
        super().__init__(source, lambda one: Subset(one, predicate))

    def count(self) -> int:
        raise PlanError("the number of records in a subgroup is private", "count them with noise")


def within(source: Source, plan: Plan) -> tuple[Source, Plan]:
    """What a method's draw is handed: the records of its subgroup, and the plan with the method's own statistics.

    A histogram of all units is drawn, too.
    """
    own = {name: _own(one) for name, one in plan.statistics.items() if not one.by_unit}
    if plan.where is not None:
        source = _Subgroup(source, parse_predicate(plan.where, source.schema))
    if plan.rule == "weight":
        source = weighing(source, int(plan.schema["rows_per_unit"]))
    changed = plan.where is not None or plan.rule == "weight" or len(own) != len(plan.statistics)
    return source, replace(plan, statistics=own) if changed else plan


def _own(statistic: Statistic) -> Statistic:
    """A method's own statistic, which `Weighted` and `Subset` stand around."""
    while isinstance(statistic, (Subset, Weighted)):
        statistic = statistic.statistic
    return statistic


# the whole of a draw -------------------------------------------------------------------------------------------------


def seal(
    method: Draws, source: Source, plan: Plan, noise: Noise, make: Callable[[Plan, Noise], Meter] | None = None
) -> Release:
    """The private part of one plan: make the meter, hand it to `method.draw`, seal what it drew. No charge is made here.

    For the gate, after the charge; for releases inside an opaque one, with `meter.noise(name)`; and for simulations.
    make: gives a meter that is watched, for the audit. Raises `ReleaseError` when the method draws anything but a
    branch of its plan, returns anything but public numbers, or writes to the plan.
    """
    with for_one_draw(source, plan) as records, (make or Meter)(plan, noise) as meter:
        public = _drawn_by(method, records, plan, meter)
        _count_units(records, plan, meter)
    return Release(
        plan=plan,
        status="declined" if meter._declined else "released",
        statistics=dict(meter._drawn),
        guarantees=plan.guarantees,
        public=public,
        simulated=noise.simulated,
        statuses=dict(meter._parts),
    )


def _drawn_by(method: Draws, source: Source, plan: Plan, meter: Any) -> dict[str, NDArray[Any]]:
    """Hand a method the records, its plan and a meter; the public numbers that it returns. Raises `ReleaseError` as `seal` does."""
    planned, ranges, again = plan.sha256, dict[str, Any](), plan
    step = method.ranges(plan.declared)
    if step is not None:
        draw_counts(step, source, plan, meter)
    elif LOST in plan.statistics:
        source = CountedFirst(source, plan.statistic(LOST), partial(meter.draw, LOST))
    if LOST in plan.statistics:
        again = replace(plan, statistics={name: one for name, one in plan.statistics.items() if name != LOST})
    if step is not None and not plan.children:
        found = {name: step.found(name, meter.drawn(spend_name(name)), plan) for name in step.columns}
        source, again = in_ranges(method, step, source, again, found, alone=True)
        ranges = to_public(found)
    public = method.draw(*within(source, again), meter)
    if plan.sha256 != planned:
        # its dictionaries are published with the release: what records wrote there would leave unpaid
        raise ReleaseError(
            f"draw of {method.name} wrote to its plan; numbers leave by meter.draw or as what draw returns"
        )
    if meter.declined and not any(isinstance(node, (Test, OpaqueRelease)) for node in nodes(plan.event)):
        raise ReleaseError(
            f"{method.name} declined, and its plan has no test or opaque release that pays for saying so"
        )
    return _numbers(method, public) | ranges


def _count_units(source: Source, plan: Plan, meter: Any) -> None:
    """The histogram of contributions, where the plan pays for one: of all units, whatever subgroup the method is about."""
    statistic = plan.statistics.get(CONTRIBUTIONS)
    if statistic is not None and statistic.by_unit:
        (counts,) = source.aggregate(plan.statistic(CONTRIBUTIONS))
        meter.draw(CONTRIBUTIONS, counts)


def _numbers(method: Draws, public: Any) -> dict[str, NDArray[Any]]:
    """What a draw returned, as arrays of numbers under plain names; nothing of it stands in an error."""
    if not isinstance(public, Mapping):
        raise ReleaseError(
            f"draw of {method.name} must return a mapping of public numbers, got {type(public).__name__}; return {{}} for none"
        )
    found = {}
    for name, values in public.items():
        array = np.asarray(values)
        whole = array.dtype == object and all(is_whole(v) for v in array.ravel())
        if not (isinstance(name, str) and name.isprintable() and array.ndim <= _AXES) or not (
            whole or array.dtype.kind in "biu" or (array.dtype.kind == "f" and np.isfinite(array).all())
        ):
            raise ReleaseError(
                f"draw of {method.name} must return finite numbers in arrays of at most {_AXES} axes, under printable names, got others"
            )
        found[name] = array
    return found


def _rounded(
    name: str, values: NDArray[np.float64], grid: Fraction, noise_sd: float | None, hiding: BudgetItem | None
) -> list[int]:
    """Floats on a grid that does not show how they were made."""
    if hiding is not None:
        raise ReleaseError(f"{name!r} is hidden by noise on whole numbers, got floats", "round them to the grid first")
    if noise_sd is None or not 0 < noise_sd < inf:
        raise ReleaseError(
            f"{name!r} must state the standard deviation of its noise, a number above 0, got {noise_sd!r}",
            f"write meter.opaque({name!r}, value, grid, noise_sd), or hand whole numbers of exact noise",
        )
    if grid < _COARSE * Fraction(noise_sd):
        raise ReleaseError(
            f"the grid of {name!r} is {float(grid):.3g}, below 2^-20 of its noise's standard deviation {noise_sd:.3g}, where the lattice "
            "of the noise would show",
            f"take a grid of at least {float(_COARSE) * noise_sd:.3g}",
        )
    flat = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return [round(Fraction(float(v)) / grid) for v in flat]


class _Inner:
    """The noise of a meter for one opaque release: it is keyed already, and of no use after that one was drawn."""

    def __init__(self, outer: Meter, owner: str, noise: Noise) -> None:
        self._outer, self._owner, self._noise = outer, owner, noise

    def rekey(self) -> None:
        self._check()

    def mark(self, name: str) -> None:
        """Releases inside belong to the outer name."""

    def _check(self) -> None:
        if self._outer._closed or self._owner in self._outer._drawn:
            raise ReleaseError(f"the opaque release {self._owner!r} was drawn already; its noise ended with it")

    def __getattr__(self, name: str) -> Any:
        self._check()
        found = getattr(self._noise, name)
        if not callable(found):
            return found

        def asked(*given: Any, **named: Any) -> Any:
            self._check()
            self._outer._source(self._owner)
            return found(*given, **named)

        return asked


Sums = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Outcome:
    """What a draw returned, or that it raised: of the error nothing is kept, for its words may come from records."""

    value: Any = None
    failed: bool = False


def in_rounds(source: Source, draws: Mapping[str, Callable[[Source], Any]]) -> dict[str, Outcome]:
    """Run draws, each of which is handed a source, and say how each ended. What a pass over the records raises ends all of them."""
    running = {name: _Running(draw, source) for name, draw in draws.items()}
    try:
        for one in running.values():
            one.start()
        while waiting := [one for one in running.values() if one.asked is not None]:
            _hand_out(source, waiting)
            for one in waiting:
                one.go_on()
    finally:
        for one in running.values():
            one.stop()
    return {name: one.outcome for name, one in running.items()}


def _hand_out(source: Source, waiting: Sequence[_Running]) -> None:
    """One pass for all requests; equal requests are added up once, and each is given separate numbers."""
    wanted: list[Statistic] = []
    places = []
    for one in waiting:
        own = []
        for statistic in one.asked or ():
            place = next((i for i, known in enumerate(wanted) if _same(known, statistic)), len(wanted))
            if place == len(wanted):
                wanted.append(statistic)
            own.append(place)
        places.append(own)
    sums = source.aggregate(*wanted)
    for one, own in zip(waiting, places, strict=True):
        one.given = tuple(np.array(sums[place], copy=True) for place in own)


def _same(one: Statistic, other: Statistic) -> bool:
    """Whether two statistics are the same sums: one object, or equal in every field that tells objects of their class apart."""
    if one is other:
        return True
    if type(one) is not type(other) or one.map.digest != other.map.digest:
        return False
    try:
        return bool(one == other)
    except Exception:  # fields without a truth value, such as arrays
        return False


class _Stopped(BaseException):
    """Ends a draw that nobody waits for any more."""


class _Running:
    """One draw in a thread, and the source that it is handed."""

    def __init__(self, draw: Callable[[Source], Any], source: Source) -> None:
        self._draw, self._source = draw, source
        self._turn, self._back = Semaphore(0), Semaphore(0)
        self._stopped = False
        self.asked: tuple[Statistic, ...] | None = None
        self.given: Sums = ()
        self.outcome = Outcome(failed=True)
        # what numpy and others keep by context, such as how they treat a division by zero, holds inside as outside
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="confide-draw", daemon=True)

    # seen from outside ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._back.acquire()

    def go_on(self) -> None:
        self.asked = None
        self._turn.release()
        self._back.acquire()

    def stop(self) -> None:
        self._stopped = True
        self._turn.release()
        if self._thread.ident is not None and self.asked is not None:
            self._thread.join()

    # seen from the draw ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.outcome = Outcome(self._draw(_Shared(self, self._source)))
        except BaseException:  # a panic of a compiled library is no Exception
            self.outcome = Outcome(failed=True)
        finally:
            self._back.release()

    def ask(self, statistics: tuple[Statistic, ...]) -> Sums:
        self.asked = statistics
        self._back.release()
        self._turn.acquire()
        if self._stopped:
            raise _Stopped
        return self.given


class _Shared(WrappedSource):
    """The source of one draw among several."""

    def __init__(self, own: _Running, source: Source) -> None:
        super().__init__(source)
        self._own = own

    def aggregate(self, *statistics: Statistic) -> Sums:
        return self._own.ask(statistics)
