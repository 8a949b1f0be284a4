"""Classic propose-test-release: a test of the distance to data on which a function is sensitive, and its relatives.

Building blocks for the `release` of a method: each is public configuration with its `guarantee`, and a verb that is handed exact
numbers and the noise. In a plan they stand as `OpaqueRelease(name, block.guarantee, block.proof)`. What they are handed cannot be
checked here: a distance must be an integer that one record moves by at most 1 under the relation (`confide.audit.falsify_sensitivity`
tries to break that).

Tests add two-sided geometric noise N, P(N >= m) = a^m/(1 + a) for m >= 1, a = e^-epsilon. A test passes iff D + N > T, T the least
integer with P(N > T) <= delta. The continuous distribution has log(1/(2 delta))/epsilon instead of T (`laplace_threshold`);
log(1/delta)/epsilon, as often printed, passes with probability delta/2. On D = 0 the test passes with probability at most delta, and
what follows is protected elsewhere:

    ordered pair (X, X'), X bad: P(S) <= e^e1 P'(S) + delta;  X good: (e1, 0) and the release (e2, delta2) composed, (e1 + e2, delta2).

Together (e1 + e2, max(delta, delta2)): the two deltas belong to different data. Sources: Dwork, Lei 2009; Vadhan 2017, section 3;
Dwork, Roth 2014, Algorithm 1 (sparse vector). Corrections: evidence/errata.md.

Functions of the table of all records as statistics: for estimators that are not sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, floor, inf, isfinite, log, log1p, nextafter, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import SAFETY_STEPS
from confide.core.allowance import Noise
from confide.core.exact import round_up
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP, calibrate_gaussian
from confide.methods.ptr.safety import CertifiedBound, SafetyBound
from confide.sums.columns import ColumnCodes
from confide.sums.integer_functions import OfRecords
from confide.sums.safety_bounds import rounded_safety, up

Value = TypeVar("Value")

_FINE = 1 << 20
_FAR = 1 << 52
# Room for the floats in a threshold, on the safe side.
_ROOM = 1e-12


def laplace_threshold(epsilon: float, delta: float) -> float:
    """log(1/(2 delta))/epsilon: what Laplace noise of scale 1/epsilon exceeds with probability delta exactly.

    >>> round(laplace_threshold(1.0, 0.01), 4)
    3.912
    """
    _checked(epsilon, delta)
    return log(1 / (2 * delta)) / epsilon


def geometric_threshold(epsilon: float, delta: float) -> int:
    """The least integer T >= 0 with P(N > T) <= delta for two-sided geometric noise of rate epsilon.

    >>> geometric_threshold(1.0, 0.01)
    4
    """
    _checked(epsilon, delta)
    # a^(T + 1)/(1 + a) <= delta
    reach = -log(delta) - log1p(exp(-epsilon)) + _ROOM * (1 - log(delta))
    return max(ceil(reach / epsilon * (1 + _ROOM)) - 1, 0)


@dataclass(frozen=True)
class _Distance:
    """A test of a distance. epsilon, delta: of the test."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checked(self.epsilon, self.delta)

    @property
    def threshold(self) -> int:
        """T."""
        return geometric_threshold(self.epsilon, self.delta)


@dataclass(frozen=True)
class DistanceTest(_Distance):
    """Release a value with noise for a proposed bound, if the data allow it.

    The test passes where the data are far from any data whose local sensitivity
    exceeds the bound. Then the value is released with noise for that bound,
    else nothing.

    Parameters
    ----------
    epsilon : float
        Epsilon of the test.
    delta : float
        Delta of the test: the largest probability of passing where the bound
        does not hold.
    bound : float
        Proposed bound b on the local sensitivity. It is in the l1 norm for a
        `PureDP` release (Laplace noise) and in the l2 norm for `ApproxDP` or
        `GDP` (Gaussian noise, calibrated exactly).
    release : PureDP, ApproxDP or GDP
        What the noise on the value may cost.

    Raises
    ------
    PlanError
        A parameter is out of range.

    Notes
    -----
    Guarantee: (epsilon + e2, max(delta, delta2)) for a release of (e2, delta2),
    under the relation under which one record moves the distance by at most 1.
    The module docstring has the proof.

    References
    ----------
    Dwork, Lei 2009; Vadhan 2017, section 3.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> test = DistanceTest(1.0, 1e-6, bound=0.1, release=PureDP(1.0))
    >>> test.guarantee, test.threshold, round(test.probability(14), 3), test(0, 0.5, SimulatedNoise(1)) is None
    (ApproxDP(2.0, 1e-06), 13, 0.731, True)
    """

    bound: float
    release: PureDP | ApproxDP | GDP

    proof = "distance test of classic propose-test-release"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.bound < inf:
            raise PlanError(f"bound must be a finite number above 0, got {self.bound!r}")
        if not isinstance(self.release, PureDP | ApproxDP | GDP) or (
            isinstance(self.release, GDP) and self.release.delta
        ):
            raise PrivacyError(
                f"release must be PureDP, ApproxDP or GDP without a delta, got {self.release}", "write cf.PureDP(1.0)"
            )

    @property
    def guarantee(self) -> ApproxDP:
        """(e1 + e2, max(delta, delta2)). A GDP release is read at epsilon = mu²/2 + mu sqrt(2 log(1/delta))."""
        match self.release:
            case PureDP(epsilon):
                return ApproxDP(rounded_sum(self.epsilon, epsilon), self.delta)
            case ApproxDP(epsilon, delta):
                return ApproxDP(rounded_sum(self.epsilon, epsilon), max(self.delta, delta))
            case GDP():
                own = self.release.to_approx(delta=self.delta)
                return ApproxDP(rounded_sum(self.epsilon, own.epsilon), self.delta)

    def passes(self, distance: int, noise: Noise) -> bool:
        """Draw whether the test passes: D + N > T.

        Parameters
        ----------
        distance : int
            Distance D, which is 0 wherever the bound does not hold.
        noise : Noise
            Source of noise.

        Returns
        -------
        bool
            Whether the test passes.
        """
        return int(distance) + _geometric(self.epsilon, noise) > self.threshold

    def probability(self, distance: int) -> float:
        """The exact probability of passing.

        Parameters
        ----------
        distance : int
            Distance D.

        Returns
        -------
        float
            The probability.
        """
        m = self.threshold + 1 - int(distance)
        tail = exp(-self.epsilon * max(m, 1 - m)) / (1 + exp(-self.epsilon))
        return tail if m >= 1 else 1 - tail

    def __call__(self, distance: int, value: Any, noise: Noise) -> Array | None:
        """Test, and release the value with noise if the test passes.

        Parameters
        ----------
        distance : int
            Distance D, which is 0 wherever the bound does not hold.
        value : float or array
            Exact value.
        noise : Noise
            Source of noise.

        Returns
        -------
        array or None
            value + noise, or None when the test does not pass.
        """
        return _noisy(value, self.bound, self.release, noise) if self.passes(distance, noise) else None


@dataclass(frozen=True)
class StableRelease(_Distance):
    """Release a value exactly where all nearby datasets have the same value.

    The value may be a mode, a selected model or a label. It is called with the
    distance: the number of replacements (or additions) to the nearest dataset
    on which one record changes the value.

    Parameters
    ----------
    epsilon : float
        Epsilon of the test.
    delta : float
        Delta of the test: the largest probability of passing at distance 0.

    Notes
    -----
    Guarantee: (epsilon, delta), because neighbors of good data have the same
    value.

    References
    ----------
    Dwork, Lei 2009.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> StableRelease(1.0, 1e-6)(40, "median", SimulatedNoise(1))
    'median'
    """

    proof = "distance to instability"

    @property
    def guarantee(self) -> ApproxDP:
        """(epsilon, delta): where the data are good, both neighbors have the same value."""
        return ApproxDP(self.epsilon, self.delta)

    def __call__(self, distance: int, value: Value, noise: Noise) -> Value | None:
        """Test, and release the value itself if the test passes.

        Parameters
        ----------
        distance : int
            Distance to the nearest dataset on which one record changes the
            value.
        value : Any
            Exact value.
        noise : Noise
            Source of noise.

        Returns
        -------
        Any or None
            The value itself, or None when the test does not pass.
        """
        return value if self.replies(distance, noise)[0] else None

    def replies(self, distance: int, noise: Noise, runs: int = 1) -> NDArray[np.bool_]:
        """Whether D + N > T, (runs,)."""
        drawn = noise.discrete_laplace(1 / Fraction(self.epsilon), runs)
        return np.array([int(distance) + int(one) > self.threshold for one in drawn])


@dataclass(frozen=True)
class PrivateLocalBound:
    """Release a noisy upper bound of the local sensitivity, then the noisy value.

    It always replies. The bound is LS + Lap(g/e1) + (g/e1) log(1/(2 delta)) on
    a grid of g/2^20, with g = `lipschitz`. It is at least the local sensitivity
    LS except with probability delta.

    Parameters
    ----------
    epsilon_bound : float
        Epsilon e1 of the released bound.
    delta : float
        Probability with which the bound may be below the local sensitivity.
    lipschitz : float
        Largest change g of the local sensitivity when one record changes. Where
        it is unknown, hand over a `majorant` of the local sensitivity.
    epsilon : float
        Epsilon of the value's Laplace noise.

    Notes
    -----
    Guarantee: (epsilon_bound + epsilon, delta), in the l1 norm.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> bound, value = PrivateLocalBound(1.0, 1e-6, 0.01, 1.0)(0.02, 0.5, SimulatedNoise(1))
    >>> bound > 0.02, value.shape
    (True, (1,))
    """

    epsilon_bound: float
    delta: float
    lipschitz: float
    epsilon: float

    proof = "private upper bound of a local sensitivity"

    def __post_init__(self) -> None:
        _checked(self.epsilon_bound, self.delta)
        _checked(self.epsilon, self.delta)
        if not 0 < self.lipschitz < inf:
            raise PlanError(f"lipschitz must be a finite number above 0, got {self.lipschitz!r}")

    @property
    def guarantee(self) -> ApproxDP:
        """(e1 + epsilon, delta): for an ordered pair the bound fails under the first with probability at most delta."""
        return ApproxDP(rounded_sum(self.epsilon_bound, self.epsilon), self.delta)

    def __call__(self, local: float, value: Any, noise: Noise) -> tuple[float, Array]:
        """Release the noisy bound, and the value with noise for it.

        Parameters
        ----------
        local : float
            Local sensitivity in the l1 norm.
        value : float or array
            Exact value.
        noise : Noise
            Source of noise.

        Returns
        -------
        tuple of (float, array)
            The noisy bound, and value + noise.
        """
        rate = self.epsilon_bound / _FINE
        steps = ceil(Fraction(float(local)) / Fraction(self.lipschitz) * _FINE)
        steps += _geometric(rate, noise) + geometric_threshold(rate, self.delta) + 1
        bound = max(steps, 1) * self.lipschitz / _FINE * (1 + 2.0**-50)
        return bound, _noisy(value, bound, PureDP(self.epsilon), noise)


def majorant(local_at: Callable[[int], float], lipschitz: float, n: int) -> float:
    """max over d <= n of local_at(d) - lipschitz d: the least function above the local sensitivity that moves by at most `lipschitz`.

    local_at(d): the largest local sensitivity over datasets d records away.

    >>> majorant(lambda d: min((d + 1) ** 2, 8), 3, 10)
    2
    """
    return max(local_at(d) - lipschitz * d for d in range(n + 1))


@dataclass(frozen=True)
class FirstPassing:
    """Release a value with noise for the first proposed bound that passes a test.

    The proposals increase and are tested by the sparse vector technique. The
    noise has rate epsilon/2 on the threshold and epsilon/4 on each distance, on
    a grid of 1/1024. The threshold is the least with P(nu - rho >= threshold)
    <= delta/m, exactly.

    Parameters
    ----------
    bounds : tuple of float
        Increasing proposals b_1 < ... < b_m, in the norm of `release`.
    epsilon : float
        Epsilon of all tests together.
    delta : float
        Delta of all tests together.
    release : PureDP or ApproxDP
        What the noise on the value may cost.

    Notes
    -----
    Guarantee: (epsilon + e2, delta + delta2). The deltas add here, because for
    one dataset some proposals may be good and others bad.

    References
    ----------
    Dwork, Roth 2014, Algorithm 1 (sparse vector).

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> test = FirstPassing((0.1, 0.2, 0.4), 1.0, 1e-6, PureDP(1.0))
    >>> test.first((0, 300, 900), SimulatedNoise(1)), test.guarantee
    (1, ApproxDP(2.0, 1e-06))
    """

    bounds: tuple[float, ...]
    epsilon: float
    delta: float
    release: PureDP | ApproxDP

    proof = "sparse vector over proposed bounds"

    def __post_init__(self) -> None:
        _checked(self.epsilon, self.delta)
        if (
            not self.bounds
            or any(not 0 < a < inf for a in self.bounds)
            or list(self.bounds) != sorted(set(self.bounds))
        ):
            raise PlanError(f"bounds must be finite, above 0 and increasing, got {self.bounds!r}")

    @property
    def guarantee(self) -> ApproxDP:
        own = self.release.delta if isinstance(self.release, ApproxDP) else 0.0
        return ApproxDP(
            rounded_sum(self.epsilon, self.release.epsilon), rounded_sum(self.delta, own) if own else self.delta
        )

    @property
    def threshold(self) -> int:
        """In steps of 1/1024 of a record."""
        goal, low, high = self.delta / len(self.bounds) * (1 - 1e-9), 1, 2
        while self.exceeds(high) > goal:
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.exceeds(middle) > goal else (low, middle)
        return low

    def exceeds(self, steps: int) -> float:
        """P(nu - rho >= steps) for steps >= 1, nu and rho two-sided geometric of rates epsilon/4096 and epsilon/2048."""
        la, lb = self.epsilon / 4 / _SPARSE, self.epsilon / 2 / _SPARSE
        a, b, lx = exp(-la), exp(-lb), lb - la
        c = -expm1(-lb) / (1 + b)
        joint = -expm1(-la - lb)
        # rho >= 0; -steps < rho < 0; rho <= -steps
        first = c * exp(-la * steps) / ((1 + a) * joint)
        second = c * exp(-la * steps) / (1 + a) * (exp(-lx) - exp(-lx * steps)) / -expm1(-lx)
        third = c * (exp(-lb * steps) / -expm1(-lb) - a * exp(-lb * steps) / ((1 + a) * joint))
        return first + second + third

    def first(self, distances: Sequence[int], noise: Noise) -> int | None:
        """Draw the first proposal that passes.

        Parameters
        ----------
        distances : sequence of int
            Distances to data that exceed each bound.
        noise : Noise
            Source of noise.

        Returns
        -------
        int or None
            Number of the proposal, from 0; None where none passes.
        """
        if len(distances) != len(self.bounds):
            raise PlanError(f"there are {len(self.bounds)} proposals, got another number of distances")
        level = self.threshold + _geometric(self.epsilon / 2 / _SPARSE, noise)
        for j, distance in enumerate(distances):
            if _SPARSE * int(distance) + _geometric(self.epsilon / 4 / _SPARSE, noise) >= level:
                return j
        return None

    def __call__(self, distances: Sequence[int], value: Any, noise: Noise) -> tuple[int, Array] | None:
        """Release the first proposal that passes, and the value with noise for it.

        Parameters
        ----------
        distances : sequence of int
            Distances to data that exceed each bound.
        value : float or array
            Exact value.
        noise : Noise
            Source of noise.

        Returns
        -------
        tuple of (int, array) or None
            Number of the proposal and value + noise; None where none passes.
        """
        j = self.first(distances, noise)
        return None if j is None else (j, _noisy(value, self.bounds[j], self.release, noise))


_SPARSE = 1 << 10


def _noisy(value: Any, bound: float, release: PureDP | ApproxDP | GDP, noise: Noise) -> Array:
    """value + noise for a sensitivity of `bound`, on a grid of bound/2^20. The bound is raised by two steps for rounding in each
    coordinate.
    """
    flat = np.ravel(np.asarray(value, dtype=np.float64))
    steps = np.clip(np.nan_to_num(np.rint(flat * (_FINE / bound)), posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
    if isinstance(release, PureDP):
        moved = _FINE + 2 * len(flat)
        drawn = noise.grid_laplace(round_up(moved / Fraction(release.epsilon)), len(flat))
    else:
        moved = _FINE + 2 * ceil(sqrt(len(flat)))
        drawn = noise.grid_gaussian(round_up((moved / Fraction(calibrate_gaussian(release))) ** 2), len(flat))
    return np.array([float(int(a) + int(b)) for a, b in zip(steps, drawn, strict=True)]) * (bound / _FINE)


def _geometric(rate: float, noise: Noise) -> int:
    # scale 1/rate, exactly the number that the thresholds are computed for
    return int(noise.discrete_laplace(1 / Fraction(rate), 1)[0])


def rounded_sum(a: float, b: float) -> float:
    """a + b, never below the exact sum.

    >>> rounded_sum(0.5, 0.25), rounded_sum(1.0, 1e-20) > 1.0
    (0.75, True)
    """
    near = a + b
    return near if Fraction(near) >= Fraction(a) + Fraction(b) else nextafter(near, inf)


def _checked(epsilon: float, delta: float) -> None:
    if not 0 < epsilon < inf:
        raise PrivacyError(f"epsilon must be a finite number above 0, got {epsilon!r}")
    if not 0 < delta < 0.5:
        raise PrivacyError(f"delta must lie between 0 and 1/2, got {delta!r}")


#: Steps of one unit of alpha, and of one move of a level.
FINE = 1 << 20
#: What a number is cut to before it becomes an integer: public, far beyond anything of use, and exact in doubles.
FAR = 1 << 52
_SAFE_ENOUGH = 1 << 40


@dataclass(frozen=True, eq=False)
class OfTable(OfRecords):
    """Integers that are a function of the whole table, with a stated bound on what one record moves: `integers(table)`."""

    map: ColumnCodes
    integers: Callable[[Array], NDArray[Any]]
    shape: tuple[int, ...]
    moved: int

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.moved) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.moved * ceil(sqrt(self.shape[0])))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        return np.full(rows.shape[1], self.moved**2, dtype=object)

    def of(self, sums: NDArray[Any]) -> NDArray[Any]:
        return self.integers(self.map.table(sums))


def safety_of(bound: SafetyBound, table: Array) -> NDArray[Any]:
    """floor(1024 gamma), shape (1,): above 0 only where gamma is, moved by at most 1024 by one record.

    A gamma that raises or is not a number means "unsafe": data never raise.
    """
    gamma = _number(lambda: bound.gamma(bound.prepare(table.copy())))
    return np.array([floor(SAFETY_STEPS * min(max(gamma, 0.0), _SAFE_ENOUGH))], dtype=object)


def level_of(bound: CertifiedBound, table: Array) -> NDArray[Any]:
    """The level in 2^-20 of its move, rounded down, shape (1,); 0 where it raises or is not a number."""

    def units() -> float:
        prepared = bound.prepare(table.copy())
        return rounded_safety(max(bound.level(prepared) / bound.moves, 0.0), bound.error(prepared))

    return np.array([floor(FINE * min(_number(units), _SAFE_ENOUGH))], dtype=object)


def certificate(bound: CertifiedBound, noisy: int, threshold: int, rows: int = 1) -> float:
    """t: with a noisy level in steps of which the noise reaches `threshold` rarely, L >= t + rows * moves but for that chance."""
    steps = noisy - threshold - rows * FINE
    # rounded toward 0, never up
    t = float(Fraction(steps, FINE) * Fraction(bound.moves))
    return t * (1 - 2.0**-50) if t > 0 else t


def vector_of(bound: SafetyBound, table: Array, alpha: float) -> NDArray[Any]:
    """rint(2^20 S estimate/alpha), shape (dim,), as Python integers: moves by `vector_moves` where the estimate moves by alpha.

    An estimate that raises, has another length or is not a number becomes 0: where it may be computed, none should.
    """
    try:
        found: Array = np.ravel(np.asarray(bound.estimate(bound.prepare(table.copy())), dtype=np.float64))
    except Exception:
        found = np.zeros(bound.dim)
    if found.shape != (bound.dim,):
        found = np.zeros(bound.dim)
    scaled = found * np.array(bound.shape or (1.0,) * bound.dim) * (FINE / alpha)
    steps = np.clip(np.nan_to_num(np.rint(scaled), nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR)
    return np.array([int(v) for v in steps], dtype=object)


def vector_moves(dim: int) -> int:
    """2^20 + 2 ceil(sqrt(dim)) steps: alpha, half a step each way for rounding a coordinate, and as much again for floats."""
    return FINE + 2 * ceil(sqrt(dim))


def public_alpha(alpha: float) -> float:
    """alpha rounded up by one part in 10^11."""
    return up(float(alpha))


def _number(compute: Callable[[], Any]) -> float:
    try:
        value = float(compute())
    except Exception:
        return 0.0
    return value if isfinite(value) else (float(_SAFE_ENOUGH) if value > 0 else 0.0)
