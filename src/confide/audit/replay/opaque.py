"""Attacks on opaque releases: numbers whose noise cannot be taken off, so that no exact difference tells what they spend.

Everything else is held still. All spends of the plan repeat one transcript (`confide.audit.replay.recording`), so
that the opaque release, and the public numbers that change with its noise, are all that two neighbors can differ in.
Its own guarantee is then the claim.

1. Where to look. Each pair of neighbors is run a few times with the same words on both, which shows how far the
   release moves, in units of its spread. From the worst pairs the record that changes climbs, one coordinate at a
   time. Certificates (`Test`, shown) are then driven to the ends of what they may say without being wrong. The
   noise is taken just below the quantile that their failure probability allows, in either direction.
2. How to tell. On the worst pair and transcript the release runs many times. Scores compete: the best direction,
   every attack of `confide.audit.runs.attacks`, and the method's own log-likelihood ratio where it offers one.
3. What it says. Error rates are counted on runs that nothing was learned from, with the bounds of Clopper and
   Pearson. So a true claim is called violated with probability at most 1 - confidence. A lower bound that is less
   than two thirds of what would have refuted the claim by so many runs says little. A fault that spends half as
   much again would not show. The release is then "untested", and the note says what the runs show and what they
   would have to show.

A method offers its own ratio by a verb `attacks(plan)`: leaf -> density, where density(source)(outcome) is the log of
the density in the proof, up to a constant that is the same for all records; `outcome`: name -> array of floats, the
leaf's number under its name.

Attacks on opaque releases of which a method gives many at once: enough runs for a chance of one in a hundred to tell.

A method offers this by a verb `repeated(source, plan, noise)`: runs -> outcomes (runs, numbers), drawn by the code
that `draw` itself takes one from. What is done before the noise, such as a fit of teachers to blocks by a fresh key,
is done once. On pairs that are attacked in this way the guarantee must be valid for each key.

The pair on which fewer runs tell most is attacked with fresh ones, five times as many as of other rows. Half of them
teach, and rare answers tell most about a vote. The lower bound is in the claim's own unit, and says little where it
is below two thirds of the claim.

Whether an opaque release shows the lattice of its noise: exact, by moving one integer of noise at a time.

A sampler gives integers, and what a method makes of them lies on a lattice whose place follows from the records.
Where the grid that is published is finer than this lattice, anyone who knows the other records computes both lattices
and sees on which one the release lies. So the noise is moved integer by integer, with the same records. It goes from
the integer that was drawn to one at the distance of the largest draw. Then it goes on in the half in which the
published number jumps most, down to two neighboring integers. The most that a pair of this kind moves a published
integer is

- covered, where it is one step of the grid at most;
- covered, where the plan hides the release (`OpaqueRelease.hiding`) and all published integers move by no more than the sensitivity of what
  hides them, which is noise that the meter draws;
- covered, where other integers of noise move the same published integer by single steps, and in all as far: a later draw on it.

All else shows. Numbers below 2^16 are not looked at: decisions, winners and marks have no last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count, product
from math import inf, isqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._special import ndtr, ndtri
from confide.audit.replay.recording import ReplayNoise, Request, run, steered
from confide.audit.replay.replay import opaque_names
from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound, upper_rate
from confide.audit.searches.neighbors import Domain, Record
from confide.audit.verdict import Finding, below_curve, curve_of
from confide.core import BudgetItem, Method, Noisy, OpaqueRelease, Plan, Source, Test, leaves, seal, threshold
from confide.core.events import ADDITIVE, Branches, Composed, Event
from confide.core.statistic import WrappedSource
from confide.guarantees import GDP, ApproxDP, PureDP, TradeOff
from confide.noise import SimulatedNoise

Outcome = Mapping[str, Array]

#: Runs of the whole release on each neighbor, at most; and of one that asks for much noise, or that was attacked by many runs at once.
RUNS, FEW = 1_000, 300
# Numbers of noise that a run may ask for before it is run less often, and for how many a request stands.
_NUMBERS, _REQUEST = 5_000, 400
# Runs with equal words that rank the pairs, and that teach the direction.
_PILOT, _TAUGHT = 5, 150
# Pairs that are looked at with extreme certificates.
_KEPT = 3
# Places of one coordinate, and times that all coordinates are tried.
_PLACES, _SWEEPS = 9, 2
# Of what would refute the claim, below which a lower bound says too little.
_POWER = 2 / 3
# Standardised values are cut here: a few wild ones must not hide a shift.
_CUT = 4.0


class _Remembered(WrappedSource):
    """A source whose sums are taken once: they are the same each time."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._known: dict[Any, Any] = {}

    def aggregate(self, *statistics: Any) -> tuple[Any, ...]:
        found = []
        for one in statistics:
            key = _key(one)
            if key is None or key not in self._known:
                (value,) = self._source.aggregate(one)
                if key is None:
                    found.append(value)
                    continue
                self._known[key] = value
            found.append(self._known[key])
        return tuple(found)

    def __getattr__(self, name: str) -> Any:
        # a method may reach for what no source has: that is not stopped here
        return getattr(self._source, name)


def _key(statistic: Any) -> Any:
    try:
        hash(statistic)
    except TypeError:
        return None
    return statistic


@dataclass(frozen=True)
class Setting:
    """What is attacked: an opaque leaf of a plan, on records of a domain; wrap: as `audit`."""

    method: Any
    plan: Plan
    leaf: str
    domain: Domain
    schema: Any
    wrap: Callable[[Any], Any] | None = None

    def source(self, records: Sequence[Record]) -> Source:
        """Records behind the schema, their sums remembered."""
        from confide.sources import read

        return cast(Source, _Remembered(read(self.domain.data(records), self.schema)))


@dataclass(frozen=True, eq=False)
class OpaquePair:
    """One opaque release on two neighbors, everything else held at a transcript."""

    setting: Setting
    records: tuple[Sequence[Record], Sequence[Record]]
    sources: tuple[Source, Source]
    transcript: Mapping[str, Noisy] = field(default_factory=dict)

    @classmethod
    def of(cls, setting: Setting, records: tuple[Sequence[Record], Sequence[Record]], seed: int) -> OpaquePair | None:
        """At the transcript of one run on the first of the two; None where it cannot be released, which record and replay tells."""
        made = cls(setting, records, (setting.source(records[0]), setting.source(records[1])))
        try:
            release, _, _ = made.drawn(0, seed)
        except Exception:
            return None
        hidden = opaque_names(setting.plan)
        spends = {name: noisy for name, noisy in release.statistics.items() if name not in hidden}
        return replace(made, transcript=spends)

    def drawn(self, which: int, seed: int) -> tuple[Any, dict[str, Noisy], ReplayNoise]:
        """The release, what its opaque parts gave themselves, and its noise."""
        noise, own, what = ReplayNoise(seed, wrap=self.setting.wrap), dict[str, Noisy](), self.setting
        with np.errstate(all="ignore"):
            watched = steered(noise, self.transcript, own)
            release = seal(what.method, self.sources[which], what.plan, noise, watched)
        return release, own, noise

    def outcome(self, which: int, seed: int) -> Outcome | None:
        """What can be seen of the leaf; None where it is not drawn, or where the mechanism declines."""
        release, own, _ = self.drawn(which, seed)
        leaf = self.setting.leaf
        if leaf not in own:
            return None
        values = {leaf: np.asarray(own[leaf].decode(), dtype=np.float64).ravel()}
        for name, array in release.public.items():
            numbers = np.asarray(array)
            values[f"public {name}"] = np.array([float(v) for v in numbers.ravel()])
        if release.status != "released":
            values["status"] = np.zeros(0)
        return values


# where to look --------------------------------------------------------------------------------------------------------


def certificates(event: Event) -> Iterator[tuple[BudgetItem, Test]]:
    """The shown tests of a tree that may be wrong with some probability, and their spends."""
    match event:
        case Composed(children) | Branches(children):
            for child in children:
                yield from certificates(child)
        case Test(on, then, delta, shown):
            if shown and delta and isinstance(on, BudgetItem) and on.shape == (1,):
                yield on, event
            yield from certificates(then)


def _moved(held: OpaquePair, seeds: Sequence[int]) -> float:
    """How far the release moves at equal words, in its own spread; a certain difference of kind counts as six."""
    pairs = [(held.outcome(0, seed), held.outcome(1, seed)) for seed in seeds]
    kinds = [_shape(one) == _shape(other) for one, other in pairs]
    alike = [(_flat(one), _flat(other)) for (one, other), same in zip(pairs, kinds, strict=True) if same and one]
    apart = float(6.0 * (1 - sum(kinds) / len(kinds)))
    if len(alike) < 3 or len({len(one) for one, _ in alike}) > 1:
        return apart
    first, second = (np.array(side) for side in zip(*alike, strict=True))
    spread = _spread(first)
    shift = np.median(np.abs(second - first), axis=0)
    far = np.where(spread > 0, shift / np.where(spread > 0, spread, 1.0), 6.0 * (second != first).mean(axis=0))
    return apart + float(np.sqrt((np.minimum(far, 1e6) ** 2).sum()))


def _spread(values: Array) -> Array:
    low, high = np.percentile(values, [25, 75], axis=0)
    return np.asarray((high - low) / 1.35)


def _shape(outcome: Outcome | None) -> Any:
    return None if outcome is None else tuple((name, value.shape) for name, value in sorted(outcome.items()))


def _flat(outcome: Outcome | None) -> Array:
    assert outcome is not None
    return np.concatenate([outcome[name] for name in sorted(outcome)])


def _at_the_ends(held: OpaquePair, tests: Sequence[tuple[BudgetItem, Test]]) -> Iterator[OpaquePair]:
    """The same pair with each certificate as high and as low as it may be without failing under either neighbor."""
    for signs in product((-1, 1), repeat=len(tests)):
        chosen = held
        for (spend, test), sign in zip(tests, signs, strict=True):
            exact = [_exact(chosen, which, spend.name) for which in (0, 1)]
            if None in exact or spend.name not in chosen.transcript:
                break
            room = threshold(spend, test.delta) - 1
            value = min(exact) + room if sign > 0 else max(exact) - room  # type: ignore[type-var, operator]
            end = replace(chosen.transcript[spend.name], values=np.array([value], dtype=object))
            chosen = replace(chosen, transcript={**chosen.transcript, spend.name: end})
        else:
            yield chosen


def _exact(held: OpaquePair, which: int, name: str) -> int | None:
    """The integer behind a spend of one number."""
    release, _, noise = held.drawn(which, 0)
    own = [request for request in noise.requests if request.owner == name]
    if name not in release.statistics or len(own) != 1:
        return None
    return int(release.statistics[name].values[0]) - own[0].values[0]


def _worst(candidates: Sequence[OpaquePair], seed: int) -> OpaquePair | None:
    """The pair and transcript at which the release moves most."""
    seeds = range(seed, seed + _PILOT)
    kept = _most(candidates, seeds)[:_KEPT]
    if not kept:
        return None
    kept = [*kept, _climbed(kept[0], seeds)]
    tests = list(certificates(kept[0].setting.plan.event))
    ends = [end for one in kept for end in _at_the_ends(one, tests)] if tests else []
    return _most([*kept, *ends], seeds)[0]


def _most(held: Sequence[OpaquePair], seeds: Sequence[int]) -> list[OpaquePair]:
    """Those that move most first; of equals the first."""
    scored = sorted((-_moved(one, seeds), k) for k, one in enumerate(held))
    return [held[k] for _, k in scored]


def _climbed(held: OpaquePair, seeds: Sequence[int]) -> OpaquePair:
    """The last record moved to where the release moves most, one coordinate at a time."""
    domain, best, value = held.setting.domain, held, _moved(held, seeds)
    for _ in range(_SWEEPS):
        before = value
        for j, axis in enumerate(domain.axes):
            between = np.linspace(axis.low, axis.high, _PLACES)
            places: list[Any] = list(axis.levels) or (np.rint(between) if axis.whole else between).tolist()
            for place in dict.fromkeys(places):
                own, other = best.records
                record = other[-1]
                tried = OpaquePair.of(
                    held.setting, (own, [*other[:-1], (*record[:j], place, *record[j + 1 :])]), seeds[0]
                )
                if tried is not None and (found := _moved(tried, seeds)) > value:
                    best, value = tried, found
        if value <= before:
            break
    return best


# how to tell ----------------------------------------------------------------------------------------------------------


def _direction(held: OpaquePair, seeds: Sequence[int]) -> Callable[[Outcome | None], float] | None:
    """A score that is large on the neighbor: the mean shift at equal words over the covariance. None without numbers of one shape."""
    pairs = [(held.outcome(0, seed), held.outcome(1, seed)) for seed in seeds]
    shapes = [_shape(one) for pair in pairs for one in pair if one is not None]
    if not shapes:
        return None
    usual = max(set(shapes), key=shapes.count)
    alike = [(_flat(a), _flat(b)) for a, b in pairs if _shape(a) == usual == _shape(b)]
    if len(alike) < 20:
        return None
    first, second = (np.array(side) for side in zip(*alike, strict=True))
    both = np.concatenate([first, second])
    middle, spread = np.median(both, axis=0), _spread(both)
    spread = np.where(spread > 0, spread, np.where(both.std(axis=0) > 0, both.std(axis=0), 1.0))

    def standardised(values: Array) -> Array:
        return np.asarray(np.clip((values - middle) / spread, -_CUT, _CUT))

    a, b = standardised(first), standardised(second)
    shift = (b - a).mean(axis=0)
    covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)).reshape(len(shift), len(shift)) / 2
    weights = np.linalg.solve(covariance + np.eye(len(shift)) * (1e-6 + len(shift) / len(a) / 10), shift)
    return lambda outcome: float(standardised(_flat(outcome)) @ weights) if _shape(outcome) == usual else 0.0


def _ratio(held: OpaquePair) -> Callable[[Outcome | None], float] | None:
    """The method's own log-likelihood ratio of the leaf on this pair, where it offers one."""
    offered = getattr(held.setting.method, "attacks", None)
    density = None if offered is None else offered(held.setting.plan).get(held.setting.leaf)
    if density is None:
        return None
    zero, one = (density(source) for source in held.sources)
    return lambda outcome: 0.0 if outcome is None else float(one(outcome)) - float(zero(outcome))


def attack_opaque(
    setting: Setting,
    leaf: OpaqueRelease,
    pairs: Sequence[tuple[Sequence[Record], Sequence[Record]]],
    *,
    name: str,
    runs: int,
    confidence: float,
    seed: int = 0,
) -> list[Finding]:
    """The rows of one opaque release: a row for each score, on the worst of these pairs at the worst transcript.

    runs: of the whole release on each neighbor, at least 40. confidence: that a true claim is called violated by no row.
    """
    claim = leaf.guarantee.resolve(setting.plan.relation)
    if isinstance(claim, TradeOff):  # what follows from the curve
        claim = next((own for own in setting.plan.guarantees if isinstance(own, GDP | PureDP | ApproxDP)), claim)
    candidates = [held for pair in pairs if (held := OpaquePair.of(setting, pair, seed)) is not None]
    worst = _worst(candidates, seed + 1)
    if worst is None or not isinstance(claim, GDP | PureDP | ApproxDP):
        why = "no pair released it" if worst is None else f"no attack knows {claim}"
        return [silent(name, setting.plan, claim, why)]
    runs = _affordable(worst, runs, seed)
    learnt = _direction(worst, range(seed + 100, seed + 100 + min(_TAUGHT, runs)))
    scores: dict[str, Callable[[Outcome | None], float] | None] = {"learnt": None}
    if learnt is not None:
        scores["best direction"] = learnt
    own = _ratio(worst)
    if own is not None:
        scores["likelihood ratio of the method"] = own
    fresh = count(seed + 10_000)
    drawn = [[worst.outcome(which, next(fresh)) for _ in range(runs)] for which in (0, 1)]
    level = 1 - (1 - confidence) / len(scores)
    return [
        _row(what, score, drawn, claim, name, setting.plan, level, len(candidates)) for what, score in scores.items()
    ]


def _affordable(held: OpaquePair, runs: int, seed: int) -> int:
    """Runs of a release that asks for much noise are fewer."""
    asked = sum(request.size + _REQUEST for request in held.drawn(0, seed)[2].requests)
    return min(runs, max(RUNS * _NUMBERS // max(asked, 1), FEW))


def _row(
    what: str,
    score: Callable[[Outcome | None], float] | None,
    drawn: list[list[Outcome | None]],
    claim: Any,
    name: str,
    plan: Plan,
    level: float,
    pairs: int,
) -> Finding:
    """The lower bound that one score gives, from runs that were drawn before."""
    left = [iter(side) for side in drawn]
    found = mu_lower_bound(
        lambda which: _seen(next(left[which])) if score is None else score(next(left[which])),
        0,
        1,
        runs=len(drawn[0]),
        confidence=level,
        claim=claim,
        name=name,
        relation=plan.relation,
        test=None if score is None else float,
    )
    needed = _needed(claim, len(drawn[0]), level)
    reached = found.lower_bound / needed
    how = f"end to end, {found.attack if score is None else what}"
    said = f"mu >= {found.lower_bound:.2f} shown on the worst of {pairs} pairs, {needed:.2f} would refute the claim by so many runs"
    if found.violated or reached >= _POWER:
        return replace(found, attack=how, note=said)
    why = f"{said}: a fault that spends half as much again would not show; audit at another budget, or with more runs"
    if needed == inf:
        why = "nothing that so few runs show could refute the claim; audit at a smaller budget, or with more runs"
    return replace(found, verdict="untested", attack=how, note=why)


@lru_cache(maxsize=64)
def _needed(claim: Any, runs: int, level: float) -> float:
    """The least mu of a Gaussian mechanism that so many runs refute a claim with, when all goes as expected; inf where none does."""
    counted, curve = runs - runs // 2, curve_of(claim)
    alpha = np.linspace(0.005, 0.5, 40)
    for mu in np.geomspace(0.1, 8.0, 60):
        beta = ndtr(ndtri(1 - alpha) - mu)
        # two tests of two errors each share the level, as in `mu_lower_bound`
        up, down = (upper_rate(rate * counted, counted, (1 - level) / 4) for rate in (alpha, beta))
        if any(below_curve(float(a), float(b), curve) for a, b in zip(up, down, strict=True)):
            return float(mu)
    return inf


def _seen(outcome: Outcome | None) -> Any:
    return None if outcome is None else dict(outcome)


def silent(name: str, plan: Plan, claim: Any, why: str) -> Finding:
    """A row that says why nothing was asked."""
    return Finding(
        name=name,
        quantity="ratio",
        claim=claim,
        lower_bound=0.0,
        verdict="untested",
        attack="none",
        relation=plan.relation,
        note=why,
    )


# Numbers that the runs on a pair may have: where a few pairs are chosen, of these the worst, and there; and runs at least.
_REPEATED_PILOT, _CHOICE, _REPEATED_NUMBERS, _LEAST = 20_000, 60_000, 3_000_000, 2_000
_REPEATED_KEPT, _TIMES = 4, 5

Many = Callable[[int], NDArray[Any]]


def attack_repeated(
    setting: Setting,
    leaf: OpaqueRelease,
    pairs: Sequence[tuple[Sequence[Record], Sequence[Record]]],
    *,
    name: str,
    runs: int,
    confidence: float,
    seed: int = 0,
) -> list[Finding]:
    """A row on the worst of these pairs; none where the method offers no runs at once. runs: on each neighbor, at most."""
    claim = leaf.guarantee.resolve(setting.plan.relation)
    if not isinstance(claim, GDP | PureDP | ApproxDP):
        return []

    def sampler(records: Sequence[Record], own: int) -> Many | None:
        noise: Any = SimulatedNoise(own)
        wrapped = noise if setting.wrap is None else setting.wrap(noise)
        many = setting.method.repeated(setting.source(records), setting.plan, wrapped)
        return None if many is None else lambda count: np.asarray(many(count), dtype=np.float64)

    bound = mu_lower_bound if isinstance(claim, GDP) else epsilon_lower_bound
    # the same words on both: whatever `repeated` does once is done alike, and later runs are fresh ones
    made = []
    for k, pair in enumerate(pairs):
        both = [many for records in pair if (many := sampler(records, seed + k)) is not None]
        if not both:
            return []
        made.append(both)

    def told(k: int, numbers: int, level: float) -> Finding:
        count = min(_TIMES * runs, max(numbers // int(made[k][0](1).size), _LEAST))
        return bound(
            lambda which, size: made[k][which](size),
            0,
            1,
            runs=count,
            claim=claim,
            confidence=level,
            vectorized=True,
            name=name,
            relation=setting.plan.relation,
        )

    chosen = list(range(len(pairs)))
    for numbers, kept in ((_REPEATED_PILOT, _REPEATED_KEPT), (_CHOICE, 1)):
        scores = [told(k, numbers, 0.99).lower_bound for k in chosen]
        chosen = [chosen[i] for i in np.argsort(np.negative(scores), kind="stable")[:kept]]
    if not chosen:
        return [silent(name, setting.plan, claim, "there is no pair of neighbors")]
    worst = told(chosen[0], _REPEATED_NUMBERS, confidence)
    stated = claim.mu if isinstance(claim, GDP) else claim.epsilon
    said = (
        f"{worst.quantity} >= {worst.lower_bound:.2f} of {stated:.2f} shown on the worst of {len(pairs)} pairs by "
        f"{worst.draws // 2:,} runs each"
    )
    how = f"many runs, {worst.attack}"
    if worst.violated or worst.lower_bound >= _POWER * stated:
        return [replace(worst, attack=how, note=said)]
    why = f"{said}: a fault that spends half as much again would not show"
    return [replace(worst, verdict="untested", attack=how, note=why)]


Whole = NDArray[Any]

# Published integers below this have no room for a lattice beside 2^-20 of a noise.
_SMALL = 1 << 16
# Integers of one request that are moved: the ends, and for a later draw on the same number up to so many.
_COVER = 64


@dataclass(frozen=True)
class Shown:
    """One opaque release: the largest jump of a published integer, in steps, that one step of noise makes and nothing covers.

    `jump`: 1 or less where all is covered. `allowed`: what the plan's hiding noise covers, in steps of the Euclidean
    norm; 1 without one. `tried`: integers of noise that were moved.
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
        if isinstance(leaf, OpaqueRelease) and attack.has(attack.first, leaf.name)
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
            spend = leaf.hiding if isinstance(leaf, OpaqueRelease) else leaf
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

    def shown(self, leaf: OpaqueRelease) -> Shown:
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
        """Whether some noise moves the published integer i by single steps, and by the whole jump."""
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
