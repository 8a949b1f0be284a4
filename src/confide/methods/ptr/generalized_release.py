"""Generalized propose-test-release of a mechanism of the user's own, whose privacy loss depends on the data.

Estimates what the mechanism gives. A statistic of the records says how large the mechanism's loss is there: loss(statistic). A noisy test
decides whether that is at most e, and the mechanism runs where it passes; otherwise the result is "declined".

Guarantee: ApproxDP(e_t + e, max(delta, d')) under substitution with a public number of records. It is for a test of e_t with
a probability of false passes d', and a mechanism whose loss is meant at delta. Both are the request's own delta here, because they do not
add. Proof, for an ordered pair (X, X'):

    if loss(statistic(X)) > e: a pass has probability at most d' under X. The test adds N, two-sided geometric noise of rate e_t.
    Its step is the statistic's move. The test takes off T with P(N > T) <= d'. It passes where loss(statistic + N - T) <= e. The loss
    does not rise with the statistic, and a pass therefore means N > T. Refusals are post-processing of the test: P <= e^e_t P' + d'.

    if loss(statistic(X)) <= e: adaptive composition of the test with the mechanism in the direction X -> X', (e_t + e, delta).

The case is that of the first argument, for every pair and order. Test and mechanism draw separate noise. This is Theorem 4.3 of Redberg,
Zhu, Wang 2023 as corrected (evidence/errata.md): the deltas belong to different data, and one direction of the loss is enough.

The functions get the records in an order that each release draws without looking at them. So the orders of two neighbors can be drawn
together such that the tables differ in one row (`confide.sums.blocks.record_block`). The proof holds for each such pair of tables, and by
joint convexity for the mixture. In an order by contents one record would shift the rows after it, and blocks of rows would all change.

What cannot be enforced for a user's functions is asserted, and the guarantee lists it. One record moves the statistic by at
most its sensitivity, the mechanism has the stated loss, and the loss does not rise with the statistic. Planning attacks the
first two on tables drawn from the schema (`confide.audit.falsify_loss`), before anything is charged, and checks the third on the values
found there. It also calls mechanism and statistic twice, with the same noise: numbers from elsewhere than `noise` are refused. A mechanism
that raises on the records declines, as one that is refused: raising is an outcome for which its loss must hold.

Interval: none, because how the mechanism's output varies between samples is not known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import floor, frexp, inf, isfinite, nan, nextafter
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Meter, Method, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source, Total
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee
from confide.guarantees.validation import is_count, is_finite
from confide.methods.ptr.classic import geometric_threshold
from confide.methods.ptr.feature_votes import MOVES, FeatureVotes
from confide.results import Estimates
from confide.schema import Schema
from confide.sums.blocks.record_block import BY, Collected, code_name, divided, fresh_key, not_in_file
from confide.sums.columns import ColumnCodes, chosen_columns

_FINE = 1 << 20
_FAR = 1 << 52
_PRACTICE = 200
_PROOF = "test of a data-dependent loss, then the mechanism in one direction (Redberg, Zhu, Wang 2023, Theorem 4.3, corrected)"
_FUNCTIONS = ("mechanism", "loss", "statistic")


@dataclass(frozen=True)
class GeneralizedRelease(Method):
    """Propose-test-release of a mechanism whose privacy loss depends on the data.

    Estimates what the mechanism gives. It runs where a noisy test finds its
    privacy loss small enough; otherwise the result is "declined".

    Parameters
    ----------
    mechanism : callable
        ``mechanism(table, noise)`` gives `dim` whole numbers, in steps of
        `grid`. The table is an array (n, columns) in the columns' units, a level
        as its position. `noise` draws whole numbers: ``grid_gaussian(variance,
        size)``, ``discrete_laplace(scale, size)``, ``bernoulli(p, size)``. Draw
        all random numbers from it: others are refused.
    loss : callable
        ``loss(value)`` is the epsilon of the mechanism, toward every neighbor and
        at the delta of the request or a smaller one, on tables whose statistic is
        `value`. It must not rise with it.
    statistic : callable
        ``statistic(table)`` is a number, larger where data are safer.
    sensitivity : float
        Largest change of the statistic when one record changes.
    dim : int, default 1
        How many numbers the mechanism gives.
    grid : float, default 1.0
        Unit of the mechanism's whole numbers, a power of two.
    test_share : float, default 0.25
        Share of epsilon for the test, above 0. With 1 the mechanism runs only
        where its loss is 0.
    columns : tuple of str, optional
        Columns of the table, in this order. By default all of the schema.
    names : tuple of str, optional
        Names of the numbers.
    tried : int, default 0
        Number of pairs of neighbors on which `confide.audit.falsify_loss`
        attacked the functions without success. The guarantee states it.

    See Also
    --------
    confide.ptr.generalized_release : Attack, plan, release and infer in one call.

    Notes
    -----
    Guarantee: ApproxDP(epsilon, delta), substitution with a public number of
    records, for what is asserted of the functions. The module docstring has the proof, and what is
    asserted.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem 4.3, corrected.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> def mechanism(table, noise):
    ...     high = table[table[:, 0] > 0.5, 0]
    ...     return np.rint(high.mean() * 2**20) + noise.discrete_laplace(2**20 / 20, 1)
    >>> method = GeneralizedRelease(
    ...     mechanism, lambda k: 20 * (1 + 2**-19 * k) / k if k >= 1 else np.inf,
    ...     lambda table: float((table[:, 0] > 0.5).sum()), 1.0, grid=2**-20)
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> release = cf.release(method, data, cf.ApproxDP(1.0, 1e-6), ledger=None, n=1_000, noise=cf.noise.SimulatedNoise(1))
    >>> method.infer(release).status
    'valid'
    """

    mechanism: Any
    loss: Any
    statistic: Any
    sensitivity: float
    dim: int = 1
    grid: float = 1.0
    test_share: float = 0.25
    columns: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    tried: int = 0

    name: ClassVar[str] = "generalized_release"
    family: ClassVar[str] = "ptr"
    source: ClassVar[str] = "generalized propose-test-release (Redberg, Zhu, Wang 2023), corrected"
    relations: ClassVar[tuple[str, ...]] = ("substitute",)
    needs: ClassVar[frozenset[str]] = frozenset({"fixed_n", "opaque"})

    def __post_init__(self) -> None:
        for own in _FUNCTIONS:
            given = getattr(self, own)
            if not callable(given) and not (isinstance(given, Mapping) and "live" in given):
                raise PlanError(f"{own} must be a function, got {type(given).__name__}")
        if not (is_finite(self.sensitivity) and self.sensitivity > 0):
            raise PlanError(
                f"sensitivity must be a finite number above 0, got {self.sensitivity!r}; it bounds what one record does to the statistic"
            )
        if not is_count(self.dim, 1) or self.dim > 10_000:
            raise PlanError(f"dim must be a whole number from 1 to 10,000, got {self.dim!r}")
        if not (is_finite(self.grid) and self.grid > 0 and frexp(self.grid)[0] == 0.5):
            raise PlanError(f"grid must be a power of two, got {self.grid!r}", "write grid=2**-20")
        if not (is_finite(self.test_share) and 0 < self.test_share <= 1):
            raise PlanError(f"test_share must be above 0 and at most 1, got {self.test_share!r}", "leave it out")
        put = object.__setattr__
        for own in ("columns", "names"):
            given = getattr(self, own)
            if given is not None:
                if not isinstance(given, Iterable):
                    raise PlanError(f"{own} must be names, got {given!r}", f"write {own}=('x', 'y'), or leave it out")
                put(self, own, (given,) if isinstance(given, str) else tuple(map(str, given)))
        if self.names is not None and len(set(self.names)) != self.dim:
            raise PlanError(f"names must be {self.dim} different names, got {self.names!r}")
        if not is_count(self.tried):
            raise PlanError(f"tried must be a whole number of pairs, got {self.tried!r}")

    # plan -----------------------------------------------------------------------------------------------------------

    def about(self, schema: Any) -> ColumnCodes:
        """The columns of the table. Raises `PlanError` for one that is not there or may drop records."""
        return ColumnCodes(schema, chosen_columns(schema, self.columns, self.name))

    def budget(self, epsilon: float) -> tuple[Fraction, Fraction]:
        """(e_t, e): what the test has of epsilon, and what the mechanism's loss may be."""
        test = Fraction(self.test_share) * Fraction(epsilon)
        return test, Fraction(epsilon) - test

    def taken_off(self, epsilon: float, delta: float) -> float:
        """T, in units of the statistic: with so much less than its value the loss must be small for a pass of probability one half."""
        rate = float(self.budget(epsilon)[0] / (_FINE + 1))
        return geometric_threshold(rate, delta) / _FINE * self.sensitivity

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the test and the mechanism, and try both on test data, which are public: errors of their author show here.

        Raises `PlanError` for functions or columns that cannot work, `PrivacyError` for a guarantee that is not ApproxDP.
        """
        for own in _FUNCTIONS:
            if not callable(getattr(self, own)):
                raise not_in_file(own, getattr(self, own)["live"], "cf.ptr.generalized_release(mechanism, data, ...)")
        votes = getattr(self.mechanism, "__self__", None)
        if type(votes) is FeatureVotes:
            votes.check(n)
        proved = Proved.of(privacy, self, schema, assumptions=self._assumed())
        assert isinstance(proved.level, ApproxDP)
        test, rest = self.budget(proved.level.epsilon)
        geometric_threshold(float(test) / (_FINE + 1), proved.level.delta)
        record = self.about(schema)
        safe = self._rehearse(record, n, rest)
        words = tuple(self.names or (f"theta[{j + 1}]" for j in range(self.dim)))
        plan = Plan.of(
            self,
            schema,
            proved,
            OpaqueRelease("reply", proved.level, _PROOF),
            {"records": Total(record)},
            n=n,
            constants={"names": list(words), "test_epsilon": float(test), "loss": float(rest)},
            target=f"{_called(self.mechanism)} of {', '.join(record.columns)}",
            intervals_for="no interval: the output's sampling law is not known",
            warnings=() if safe else (_NEVER.format(f"{float(rest):.4g}"),),
        )
        settings = {**plan.method.parameters, **{own: {"live": code_name(getattr(self, own))} for own in _FUNCTIONS}}
        return replace(plan, method=replace(plan.method, parameters=settings))

    def _assumed(self) -> tuple[str, ...]:
        votes = getattr(self.mechanism, "__self__", None)
        given = (self.mechanism, self.loss, self.statistic)
        own = (votes.mechanism, votes.loss, votes.statistic) if type(votes) is FeatureVotes else None
        if given == own and self.sensitivity >= MOVES:
            return ()  # proved for any records
        statistic, mechanism = _called(self.statistic), _called(self.mechanism)
        texts = (
            f"asserted: one record moves {statistic} by at most {self.sensitivity:g}",
            f"asserted: {mechanism} has the privacy loss {_called(self.loss)} of {statistic}, which does not rise with it",
        )
        return (*texts, f"attacked on {self.tried:,} pairs of neighbors, not broken") if self.tried else texts

    def _rehearse(self, record: ColumnCodes, n: int | None, rest: Fraction) -> bool:
        """Try each function on test data; whether one of the tables is safe. `PlanError` where one fails or the loss rises."""
        from confide.noise import SimulatedNoise

        size, values, safe = max(n or _PRACTICE, 1), [], False

        def step(what: str, compute: Callable[[], Any]) -> Any:
            try:
                return compute()
            except Exception as error:
                raise PlanError(
                    f"{what} raises {type(error).__name__}: {error}, on {size} test records of the columns {', '.join(record.columns)} "
                    "(in this order; public, from the schema alone). On records this error would be a refusal",
                    f"correct {what}, or name its columns: columns=(...)",
                ) from None

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for table in record.practice(size):
                values.append(step("statistic", partial(_number, self.statistic, table.copy())))
                self._same("statistic", values[-1], step("statistic", partial(_number, self.statistic, table.copy())))
                loss = step("loss", partial(_number, self.loss, values[-1]))
                if not loss >= 0:
                    raise PlanError(f"loss gives {loss}, and must give a number of at least 0, or infinity")
                if loss <= rest:
                    safe = True
                    found = step("mechanism", partial(self.mechanism, table.copy(), SimulatedNoise(1)))
                    if _whole(found, self.dim) is None:
                        raise self._not_whole(found)
                # where the loss is too large the mechanism may raise, and what it gives there is held against itself all the same
                self._same("mechanism", *(self._output(table, SimulatedNoise(1)) for _ in range(2)))
            # the test asks for the loss at the statistic with its noise less T, which no records may have: a count below 0
            least = min(0.0, *values)
            under = least - self.sensitivity * np.geomspace(_FAR / _FINE, 0.5, 70)
            grid = np.unique(np.concatenate([under, values, np.linspace(least, max(values) + self.sensitivity, 100)]))
            losses = [self._loss(float(v)) for v in grid]
            if any(later > earlier for earlier, later in pairwise(losses)):
                raise PlanError(
                    "loss rises with the statistic, which the test lowers, to below what records can have",
                    "give a statistic that is larger where data are safer, and a loss of infinity where it is too small: "
                    "lambda k: 20 / k**2 if k >= 1 else np.inf",
                )
            least = self._least(max(values))
            if least > rest:
                raise PlanError(
                    f"the loss is {least:.4g} even at the largest statistic that the test reads, and the mechanism may have "
                    f"{float(rest):.4g}: the test would never pass",
                    "ask for a larger epsilon or a smaller test_share, or give a mechanism with more noise",
                )
        return safe

    def _least(self, largest: float) -> float:
        """The least loss that a table can have: it does not rise, and statistics are cut. 0 where it has no number there."""
        try:
            last = float(self.loss(self.sensitivity * (_FAR // _FINE)))
        except Exception:
            return 0.0
        return min(last, self._loss(largest)) if last >= 0 else 0.0

    def _not_whole(self, found: Any) -> PlanError:
        numbers = f"{self.dim} whole number{'s' * (self.dim > 1)}"
        with suppress(TypeError, ValueError):
            if np.size(found) == self.dim and not np.isfinite(np.asarray(found, dtype=np.float64)).all():
                return PlanError(
                    f"mechanism must give {numbers}, got {found!r} on test records whose loss is small enough",
                    "let loss be infinity where the mechanism has no number, as where a group is empty",
                )
        return PlanError(
            f"mechanism must give {numbers}, in steps of the grid, got {found!r}",
            "round to the grid and add whole noise: np.rint(value / grid) + noise.discrete_laplace(scale, 1)",
        )

    @staticmethod
    def _same(what: str, first: Any, second: Any) -> None:
        """`PlanError` where two calls differ on one table with one noise: what is drawn elsewhere has no privacy, and no proof."""
        if first == second or (first != first and second != second):
            return
        if what == "statistic":
            raise PlanError(
                "statistic gives two different values on the same test records; what the guarantee says of it holds for none",
                "let statistic be a function of the table alone, without random numbers and without memory",
            )
        raise PlanError(
            "mechanism gives two different outputs on the same test records with the same noise: it draws from elsewhere than `noise`, or "
            "remembers. Such numbers are not those of the guarantee, because floats and seeds show what was added",
            "draw all noise from `noise`: noise.discrete_laplace(scale, 1), not np.random",
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Test, then the mechanism where it passes, on the records in an order that is drawn."""
        record: Any = plan.statistic("records").map
        (rows,) = source.aggregate(Collected(record))
        noise = meter.noise("reply")
        (rows,) = divided(rows, 1, fresh_key(noise), BY["substitute"])
        table = record.table(rows)
        level = plan.guarantee
        assert isinstance(level, ApproxDP)
        passed = self.passes(table, noise, level.epsilon, level.delta)
        values = np.zeros(self.dim + 1, dtype=object)
        found = self._output(table, noise) if passed else None
        if found is not None:
            values[0], values[1:] = 1, found
        meter.opaque("reply", values, Fraction(1))
        if found is None:
            meter.decline()
        return {}

    def passes(self, table: Array, noise: Any, epsilon: float, delta: float) -> bool:
        """Draw the test: whether the loss at the statistic with its noise less T is at most e."""
        test, rest = self.budget(epsilon)
        # rounded down, so that one record moves it by at most a step more
        rate = test / (_FINE + 1)
        noisy = self._steps(table) + int(noise.discrete_laplace(1 / rate, 1)[0])
        below = noisy - geometric_threshold(float(rate), delta)
        if below <= -_FAR:
            return False  # what was cut there may be anything below, or no number
        exact = Fraction(below, _FINE) * Fraction(self.sensitivity)
        value = float(exact)
        # never above what the proof speaks of
        return self._loss(value if Fraction(value) <= exact else nextafter(value, -inf)) <= rest

    def _steps(self, table: Array) -> int:
        """The statistic in 2^-20 of its move, rounded down and clipped to a public range; the least where it raises or is not a number."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = float(self.statistic(table.copy()))
            except Exception:
                value = nan
        if not isfinite(value):
            return _FAR if value == inf else -_FAR
        return min(max(floor(Fraction(value) / Fraction(self.sensitivity) * _FINE), -_FAR), _FAR)

    def _loss(self, value: float) -> float:
        try:
            found = float(self.loss(value))
        except Exception:
            return inf
        return found if found >= 0 else inf

    def _output(self, table: Array, noise: Any) -> list[int] | None:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return _whole(self.mechanism(table.copy(), noise), self.dim)
            except Exception:
                return None

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Estimates:
        """The mechanism's numbers, or "declined". `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        constants, replied = release.plan.constants, release.status == "released"
        values = np.full(self.dim, nan)
        if replied:
            values = release["reply"].decode()[1:] * self.grid
        return Estimates.of(
            release,
            names=tuple(map(str, constants["names"])),
            estimates=values,
            noise_variance=np.full(self.dim, nan),
            status="valid" if replied else "declined",
            reason="" if replied else _NO_REPLY,
            flags=("no_interval",),
            facts=(
                ("Test", f"epsilon {constants['test_epsilon']:.4g}"),
                ("Loss of the mechanism", f"at most {constants['loss']:.4g}, asserted"),
            ),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None, because the mechanism is the user's own and has no interval."""
        raise PlanError(
            f"{self.name} prints no interval, so there is no reference to hold one against",
            "call the mechanism on the records themselves",
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """None, because they belong to the functions (`confide.audit.falsify_loss`)."""
        return ()


def _number(function: Callable[[Any], Any], argument: Any) -> float:
    return float(function(argument))


def _called(function: Any) -> str:
    if isinstance(function, Mapping):
        return str(function.get("live", "function"))
    return str(getattr(function, "__name__", type(function).__name__))


def _whole(found: Any, dim: int) -> list[int] | None:
    """`dim` whole numbers of a public size; None for anything else."""
    numbers = np.ravel(np.asarray(found, dtype=object))
    if numbers.shape != (dim,):
        return None
    whole = []
    for one in numbers:
        if not is_finite(one) and not isinstance(one, int):
            return None
        value = Fraction(one) if isinstance(one, int) else Fraction(float(one))
        if value.denominator != 1 or abs(value) > _FAR:
            return None
        whole.append(int(value))
    return whole


_NO_REPLY = (
    "the mechanism did not run: its privacy loss was not found small enough on these data; ask for a larger budget, or give a mechanism "
    "with more noise"
)
_NEVER = "on records drawn from the schema alone the loss is above {}, the most that the mechanism may have, so that none would be released"
