"""Intervals from any sampler: a posterior or a bootstrap on disjoint blocks of records, noisy medians of what the blocks say.

The records are divided into K blocks; the caller's sampler is run on each, in a separate process (`sums.blocks.isolated_process`). A
block says mean and SD of its draws of each parameter, clipped to the public box, and its middle where the sampler fails. Released are two
noisy medians for each of the p parameters, of the K means and of the K SDs. Each costs epsilon/(2 p), by the exponential mechanism on
ranks over a public grid (Smith 2011; McSherry, Talwar 2007).

Guarantee: PureDP(epsilon), substitution (with a public n) or add-remove, single records, whatever the sampler does on its block, converged
or not. One record moves what one block says (`sums.blocks.record_block`), so that a rank moves by at most 1. It rests on a sampler that
reads nothing but its block and leaves nothing behind that another one finds, and on `jobs` times `memory` MB; the time taken is public.

Interval: the center's, as often as wide as |center* - center| in the whole release simulated again with K normal blocks at the released
center and SD, times t_(K-1)/z. It holds for many blocks that are each large, with K between 20 and sqrt(n). Their posteriors must be near
normal, and their bias, of the order of K/n, small against n^-1/2. A block that fails moves the medians to the middle of the box, unseen
while they are few. Where most fail both medians are what a failing block says, and the interval is the box. Let the blocks' means
spread over a hundredth of the box. Then half of the intervals are at most 1.3 (K epsilon/p = 500) to 2.6 (100) times as wide as without
privacy. Where all blocks say one thing, another of the 65,536 points comes out with a chance of about 65,536 exp(-K epsilon/(8 p)). That is
a fifth at K epsilon/p = 100, the least that is planned, and 1 in 7,400 at 160, and the interval is nearly the box: take narrow bounds.
Source: Smith 2011 (sample and aggregate); the interval is derived in confide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import later
from confide.core import Meter, Method, Noise, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source, Total
from confide.core.units.contributions import shown
from confide.errors import PlanError, PrivacyError
from confide.guarantees import Guarantee, PureDP
from confide.guarantees.validation import is_finite, is_whole
from confide.methods.intervals.results import ConfidenceIntervals, Limits
from confide.noise.sources import keyed_generator
from confide.schema import CodedFrame, Schema
from confide.sums.blocks.isolated_process import Answers, Room
from confide.sums.blocks.record_block import BY, BlockWork, code_name, fresh_key, not_in_file
from confide.sums.columns import ColumnCodes, chosen_columns

stats = later("scipy.stats")

#: (table of the block, generator) -> draws: (draws,) of one parameter, (draws, p) of several, or parameter -> (draws,).
Sampler = Callable[[Array, np.random.Generator], Any]

_PROOF = (
    "one record moves what one of the blocks says, and so a rank by at most 1; exponential mechanism on ranks, epsilon/(2 p) for each "
    "median"
)
# Points of the grid of means, evenly over the box, and of that of sds, in equal ratios down to 2^-40 of its half.
_MEANS, _SDS, _LEAST = 1 << 16, 1 << 12, 2.0**-40
# Blocks times epsilon over parameters; the docstring above says how often a median is still elsewhere.
_ENOUGH = 100
_LEAST_BLOCKS, _LEAST_OF_A_BLOCK = 10, 5
_SIMULATIONS = 400


@dataclass(frozen=True)
class BlockPosterior(Method):
    """Estimate parameters with any sampler, by noisy medians over blocks of records.

    The estimand is that of the sampler. A sampler may be a posterior or a
    bootstrap, and runs on disjoint blocks of the records.

    Parameters
    ----------
    sampler : callable
        ``sampler(table, generator)`` returns draws. The table is an array of
        (rows, columns) in the columns' units, a level as its position.
    parameters : mapping of str to (float, float)
        Name of each parameter with public bounds.
    blocks : int, default 50
        Number of blocks, at least 10.
    columns : tuple of str, optional
        Columns of the table, in this order. By default all of the schema.
    seconds : float, default 60.0
        Time for all blocks together. All of it is taken, because the time must
        reveal nothing.
    memory : int, default 1024
        Memory of each block, in MB.
    jobs : int, default 1
        Blocks that run side by side.
    allow_uninformative : bool, default False
        Whether to plan although blocks times epsilon over the number of
        parameters is below 100.
    progress : callable, optional
        Called with the number of waves done and of all waves.

    See Also
    --------
    confide.intervals.block_posterior : Plan, release and infer in one call.

    Notes
    -----
    Guarantee: PureDP(epsilon) under either relation, for single records, whatever
    the sampler does on its block. A block says mean and SD of its draws, clipped to
    the bounds, and one record moves the ranks by at most 1. Released are two
    medians for each of p parameters, by the exponential mechanism, epsilon/(2 p)
    each. It rests on a sampler that reads nothing but its block and leaves nothing
    behind, and on `jobs` times `memory` MB.

    References
    ----------
    Smith (2011), Privacy-preserving statistical estimation with optimal
    convergence rates, STOC.

    McSherry and Talwar (2007), Mechanism design via differential privacy, FOCS.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> def sampler(table, generator):
    ...     x = table[:, 0]
    ...     return generator.normal(x.mean(), x.std() / len(x) ** 0.5, 200)
    >>> method = cf.intervals.BlockPosterior(sampler, {"mean": (-4, 4)}, seconds=20)
    >>> plan = cf.plan(method, schema, cf.PureDP(2.0), n=5_000)
    >>> plan.constants["seconds_of_a_block"]
    0.4
    """

    sampler: Any
    parameters: Mapping[str, tuple[float, float]]
    blocks: int = 50
    columns: tuple[str, ...] | None = None
    seconds: float = 60.0
    memory: int = 1_024
    jobs: int = 1
    allow_uninformative: bool = False
    progress: Any = field(default=None, repr=False, compare=False)

    name: ClassVar[str] = "block_posterior"
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = "noisy medians of block posteriors (Smith 2011), any sampler; interval derived in confide"
    relations: ClassVar[tuple[str, ...]] = ("substitute", "add-remove")
    native: ClassVar[str] = "PureDP"
    intervals: ClassVar[str] = "the sampler's estimand; blocks large and near normal; sampling and privacy noise"
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})

    def __post_init__(self) -> None:
        put = object.__setattr__
        live = isinstance(self.sampler, Mapping) and "live" in self.sampler
        if not callable(self.sampler) and not live:
            raise _not_a_sampler(self.sampler)
        if not isinstance(self.parameters, Mapping) or not self.parameters:
            raise PlanError(
                f"parameters must say what each may be at all, got {self.parameters!r}",
                'write parameters={"mean": (-4, 4)}',
            )
        put(self, "parameters", {str(name): _box(name, ends) for name, ends in self.parameters.items()})
        if self.columns is not None:
            put(self, "columns", (self.columns,) if isinstance(self.columns, str) else tuple(self.columns))
        if not is_whole(self.blocks, _LEAST_BLOCKS) or self.blocks > 100_000:
            raise PlanError(
                f"blocks must be a whole number from {_LEAST_BLOCKS} to 100,000, got {self.blocks!r}", "write blocks=50"
            )
        self._room  # noqa: B018  raises for what is no room

    @property
    def least_records(self) -> int:
        """Five for each block."""
        return _LEAST_OF_A_BLOCK * self.blocks

    @property
    def _room(self) -> Room:
        return Room(self.seconds, self.memory, self.jobs)

    @property
    def _boxes(self) -> tuple[Array, Array]:
        low, high = np.array(list(self.parameters.values()), dtype=np.float64).T
        return low, high

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan two noisy medians for each parameter, and try the sampler on test data, which are public: its errors show here.

        Raises `PlanError` for too few records a block or blocks for the budget, and for a sampler that fails or takes too long.
        """
        if not callable(self.sampler):
            raise not_in_file("sampler", self.sampler["live"], "cf.intervals.block_posterior(sampler, data, ...)")
        if self.where is not None:
            raise PlanError(
                "block_posterior takes all records", "leave where out, and let the sampler pick the rows of its block"
            )
        proved = Proved.of(privacy, self, schema, kinds=(PureDP,))
        assert isinstance(proved.level, PureDP)
        enough = self.blocks * proved.level.epsilon / len(self.parameters)
        if enough < _ENOUGH and not self.allow_uninformative:
            raise PlanError(
                f"{self.blocks} blocks at epsilon = {proved.level.epsilon:g} for {len(self.parameters)} parameters have blocks * "
                f"epsilon / parameters = {enough:.3g}, below {_ENOUGH}. The medians would be nearly anywhere in their bounds",
                "take "
                f"blocks={int(-(-_ENOUGH * len(self.parameters) // proved.level.epsilon))} where n allows it, or allow_uninformative=True",
            )
        if n is not None and n < self.least_records and proved.relation == "substitute":
            raise PlanError(
                f"{self.blocks} blocks of {n} records hold fewer than {_LEAST_OF_A_BLOCK} each",
                f"take blocks={max(n // _LEAST_OF_A_BLOCK, 1)} at most",
            )
        record = ColumnCodes(schema, chosen_columns(schema, self.columns, self.name))
        note = self._block_work.rehearse(
            lambda size: next(iter(record.practice(size))),
            n,
            who="the sampler",
            given=f" of the columns {', '.join(record.columns)}, in this order",
            must=f"sampler(table, generator) must give (draws, {len(self.parameters)}) finite numbers, at least 2 draws",
        )
        plan = Plan.of(
            self,
            schema,
            proved,
            OpaqueRelease("blocks", proved.level, _PROOF),
            {"records": Total(record)},
            n=n,
            constants={
                "names": list(self.parameters),
                "seconds_of_a_block": self._room.each(self.blocks),
                "waves": self._room.waves(self.blocks),
            },
            target=f"{', '.join(self.parameters)}, as the sampler has it, of {', '.join(record.columns)}",
            intervals_for=(
                f"what the sampler estimates, for {self.blocks} large blocks on which it neither fails nor is late; posteriors "
                "near normal and hardly biased (asymptotic); sampling of records and privacy noise"
            ),
        )
        # what runs is not in the file
        settings = {**plan.method.parameters, "sampler": {"live": code_name(self.sampler)}}
        return replace(plan, method=replace(plan.method, parameters=settings), notes=(*plan.notes, note))

    @property
    def _answers(self) -> Answers:
        """What a block says, (2, p): mean and SD of each parameter; of one that fails the middle of what both may be."""
        low, high = self._boxes
        half = (high - low) / 2
        return Answers(
            (2, len(low)), np.array([low, 0 * half]), np.array([high, half]), np.array([(low + high) / 2, half / 2])
        )

    @property
    def _block_work(self) -> BlockWork:
        return BlockWork(self._work, self._answers, self._room, self.blocks)

    def _work(self, table: Array, generator: np.random.Generator) -> Array:
        return self._summary(self.sampler(table, generator))

    def _summary(self, draws: Any) -> Array:
        """(2, p): mean and SD of the draws of each parameter."""
        p = len(self.parameters)
        if isinstance(draws, Mapping):
            draws = np.column_stack([np.ravel(np.asarray(draws[name], dtype=np.float64)) for name in self.parameters])
        whole = np.asarray(draws, dtype=np.float64)
        whole = whole[:, None] if whole.ndim == 1 else whole
        if whole.ndim != 2 or whole.shape[1] != p or len(whole) < 2:
            raise ValueError(f"draws of shape {np.shape(draws)}, where (draws, {p}) were asked for, at least 2 of them")
        return np.array([whole.mean(axis=0), whole.std(axis=0, ddof=1)])

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Run the blocks, then choose two medians for each parameter."""
        noise = meter.noise("blocks")
        record: Any = plan.statistic("records").map
        found = self._block_work.run(source, record, fresh_key(noise), BY[plan.relation], self.progress)
        assert isinstance(plan.guarantee, PureDP)
        meter.opaque("blocks", np.array(self.medians(found, noise, plan.guarantee.epsilon)), Fraction(1))
        return {}

    def medians(self, found: Array, noise: Noise, epsilon: float) -> list[int]:
        """The released medians of the blocks' answers, (K, 2, p): places on the grids, mean and SD of each parameter."""
        share = Fraction(epsilon) / (2 * len(self.parameters))
        chosen = []
        for said, grid in zip(found.transpose(1, 2, 0), self._grids(), strict=True):
            for values, points in zip(said, grid, strict=True):
                counts = np.bincount(_nearest(points, values), minlength=len(points))
                # one replaced value moves each score by at most 2, the denominator of 1/2
                chosen.append(noise.exponential_mechanism(rank_scores(counts, Fraction(1, 2)), share, Fraction(2)))
        return chosen

    def _grids(self) -> tuple[list[Array], list[Array]]:
        """Points of the means, and of the SDs, of each parameter."""
        boxes = list(zip(*self._boxes, strict=True))
        down = np.logspace(np.log2(_LEAST), 0, _SDS, base=2)
        return [np.linspace(a, b, _MEANS) for a, b in boxes], [(b - a) / 2 * down for a, b in boxes]

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> ConfidenceIntervals:
        """Centers with their intervals. Raises `PlanError` for any option."""
        (options or ResultOptions()).only()
        assert isinstance(release.plan.guarantee, PureDP)
        chosen = [int(place) for place in release["blocks"].values.ravel()]
        centres, limits = self.read(chosen, release.plan.guarantee.epsilon, release.drawn_sha256)
        found = ConfidenceIntervals.read(
            release,
            names=tuple(self.parameters),
            limits=limits,
            bounds=list(self.parameters.values()),
            estimates=centres.tolist(),
            alone=self._alone(chosen),
        )
        if self._failed(chosen).any():
            reason = (
                "most blocks said what one says whose sampler fails or is late; try the sampler on schema.sample(n // blocks, seed=1), "
                "give n= to the plan, and more seconds= or memory="
            )
            found = replace(found, status="no_information", reason=reason, flags=(*found.flags, "most_blocks_failed"))
        return shown(found, release)

    def _alone(self, chosen: Sequence[int]) -> list[float]:
        """How wide the intervals would be by sampling alone: those of the mean over the blocks."""
        places = np.reshape(chosen, (2, -1))
        sds = [grid[int(place)] for grid, place in zip(self._grids()[1], places[1], strict=True)]
        return [2 * float(stats.norm.ppf(0.975)) * float(sd) / sqrt(self.blocks) for sd in sds]

    def _failed(self, chosen: Sequence[int]) -> NDArray[np.bool_]:
        """Of each parameter, whether its two medians are where a block that fails is: released numbers alone."""
        said = zip(*self._answers.fallback, strict=True)
        own = [
            [int(_nearest(points, np.array(one))) for points, one in zip(grid, both, strict=True)]
            for grid, both in zip(zip(*self._grids(), strict=True), said, strict=True)
        ]
        return np.asarray((np.array(own) == np.reshape(chosen, (2, -1)).T).all(axis=1))

    def read(self, chosen: Sequence[int], epsilon: float, digest: str) -> tuple[Array, Limits]:
        """Centers and limits that follow from `medians`; the simulated releases belong to the digest."""
        places = np.reshape(chosen, (2, -1))
        centres, sds = (
            np.array([points[i] for points, i in zip(grid, own, strict=True)])
            for grid, own in zip(self._grids(), places, strict=True)
        )
        share, (low, high) = epsilon / (2 * len(centres)), self._boxes
        off = np.array(
            [
                _simulated(centre, sd, (a, b), self.blocks, share, keyed_generator(digest, str(place)))
                for place, (centre, sd, a, b) in enumerate(zip(centres, sds, low, high, strict=True))
            ]
        )

        failed = self._failed(chosen)

        def limits(alpha: float) -> tuple[Any, Any]:
            wider = stats.t.ppf(1 - alpha / 2, self.blocks - 1) / stats.norm.ppf(1 - alpha / 2)
            reach = np.where(failed, high - low, wider * np.quantile(off, 1 - alpha, axis=1))
            return np.maximum(centres - reach, low), np.minimum(centres + reach, high)

        return centres, limits

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The sampler's own means on all test data."""
        practice = CodedFrame.checked(frame)
        record = ColumnCodes(practice.schema, chosen_columns(practice.schema, self.columns, self.name))
        table = record.table(np.array([practice.codes[name] for name in record.columns], dtype=np.float64))
        found = self._summary(self.sampler(table, np.random.default_rng(1)))
        return dict(zip(self.parameters, found[0].tolist(), strict=True))

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """None known: what a record moves depends on the sampler, and is bounded for any."""
        return ()


def rank_scores(counts: NDArray[np.int64], q: Fraction, offset: int = 0) -> NDArray[np.int64]:
    """The scores of the points of a grid for the rank q n - offset / b; int64, shape (points,), at most 0.

    counts: numbers of records on the points, shape (points,), n their sum, below 2^40; q = a / b with b up to 10^6. One record added or
    removed moves every score by at most max(a, b - a), one replaced by at most b.

    >>> rank_scores(np.array([1, 0, 1, 2]), Fraction(1, 2))
    array([-2, -2,  0,  0])
    """
    upto = np.cumsum(counts)
    target = q.numerator * int(upto[-1]) - offset
    below = (upto - counts) * q.denominator
    return np.asarray(-np.maximum(np.maximum(below - target, target - upto * q.denominator), 0))


def _simulated(
    centre: float, sd: float, box: tuple[float, float], k: int, epsilon: float, generator: np.random.Generator
) -> Array:
    """|center* - center| of releases simulated with k normal blocks: the exponential mechanism on the gaps between them."""
    values = np.sort(np.clip(generator.normal(centre, sd, (_SIMULATIONS, k)), *box), axis=1)
    padded = np.column_stack([np.full(_SIMULATIONS, box[0]), values, np.full(_SIMULATIONS, box[1])])
    gaps = np.diff(padded, axis=1)
    with np.errstate(divide="ignore"):
        score = np.log(gaps) - epsilon * np.abs(np.arange(k + 1) - k / 2) / 2
    place = np.argmax(score + generator.gumbel(size=gaps.shape), axis=1)
    rows = np.arange(_SIMULATIONS)
    released = padded[rows, place] + generator.random(_SIMULATIONS) * gaps[rows, place]
    return np.asarray(np.abs(released - centre))


def _nearest(points: Array, values: Array) -> NDArray[np.int64]:
    """Which of increasing points each value is nearest to."""
    return np.asarray(np.searchsorted((points[1:] + points[:-1]) / 2, values))


def _box(name: object, ends: Any) -> tuple[float, float]:
    fine = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(is_finite, ends)) and ends[0] < ends[1]
    if not fine or not isfinite(float(ends[1]) - float(ends[0])):
        raise PlanError(
            f"the bounds of {name!r} must be two finite numbers, the lower first, got {ends!r}; they are public"
        )
    return float(ends[0]), float(ends[1])


def _not_a_sampler(given: Any) -> PlanError | PrivacyError:
    if hasattr(given, "__len__") and not isinstance(given, str):
        return PrivacyError(
            f"sampler must be a function of a block, got {type(given).__name__}: draws from a posterior of all records carry no guarantee. "
            "Each of them follows from every record, and no bound is known on what one record moves; noise on them protects nobody. "
            "Hand over the sampler itself: cf.intervals.block_posterior(lambda table, generator: draws, data, ...)"
        )
    return PlanError(
        f"sampler must be a function of a block's table and a generator, got {given!r}",
        "write lambda table, generator: draws",
    )
