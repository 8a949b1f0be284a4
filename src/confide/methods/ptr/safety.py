"""Safety bounds: what a user states of an estimator so that propose-test-release may reply with it.

A safety bound is public configuration and four functions of the data. With S = diag(shape), or the identity, it promises for all
datasets X, X' of the same size that differ in one record

    (C1)  gamma(X) >= 0 and |gamma(X) - gamma(X')| <= 1;
    (C2)  gamma(X) > 0 implies |S (estimate(X) - estimate(X'))|_2 <= alpha, for every such X'.

C2 is one-sided: X' may be unsafe and its estimate undefined, because data with gamma = 0 never get a reply and their estimate is never
computed. C1 survives minima, convex combinations, clipping at 0, floor and ceil. With g, g' >= 0 at most 1 apart, ceil(g) and ceil(g')
are at most 1 apart, and ceil(g) > 0 exactly where g > 0.

A statistic that is known up to an error eta (in units of gamma) is passed on as (gamma - eta)_+/(1 + 3 eta), `rounded_safety`; counts
are exact. `confide.audit.falsify_safety_bound` tries to break a bound; no search proves one.

Source: Dwork, Lei 2009; Shen, Tong, Wang 2026 (SaLBo); the combinators are proved in their docstrings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from math import isfinite, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core.exact import pack, unpack
from confide.errors import PlanError
from confide.sums.blocks.record_block import code_from, code_name
from confide.sums.safety_bounds import rounded_safety, up

# The bounds that files may name without the import of their module.
_BOUNDS = ("BallLikelihood", "ClassMeans", "KernelRegression", "LeadingEigenvector", "LeastSquares", "OrderStatistic")


class SafetyBound(ABC):
    """What makes propose-test-release of an estimator safe, to be subclassed.

    Subclasses state `dim` and `alpha`, and define `gamma` and `estimate`. All
    attributes are public configuration. Data are float arrays (n, d) with one
    row for each record and one column for each schema column that the release
    names. Values are in the column's units; a categorical column holds the
    position of its level.

    Attributes
    ----------
    dim : int
        Length of the estimate.
    alpha : float
        Largest move of the scaled estimate where gamma is above 0.
    shape : tuple of float, optional
        Diagonal of S: one scale above 0 for each coordinate. None stands for 1.
    n : int, optional
        Public number of records, where alpha rests on it.
    names : tuple of str, optional
        Names of the estimate's coordinates.

    Notes
    -----
    A bound promises C1 (one record moves gamma by at most 1) and C2 (where
    gamma is above 0, one record moves S estimate by at most alpha). The module
    docstring states both exactly.

    References
    ----------
    Dwork, Lei 2009; Shen, Tong, Wang 2026.

    Examples
    --------
    >>> class SmallMean(SafetyBound):  # mean of the values below 1, for data of which enough are
    ...     dim, alpha = 1, 2 / 50
    ...     def gamma(self, x):
    ...         return max(int((x[:, 0] < 1).sum()) - 49, 0)
    ...     def estimate(self, x):
    ...         return x[x[:, 0] < 1].mean(axis=0)
    >>> SmallMean().gamma(np.zeros((60, 1)))
    11
    """

    dim: int
    alpha: float
    shape: tuple[float, ...] | None = None
    n: int | None = None
    names: tuple[str, ...] | None = None

    def prepare(self, data: Any) -> Any:
        """Process record by record: clip, rescale, drop columns.

        Nothing that is learned from the data may enter.

        Parameters
        ----------
        data : array
            Records, (n, d).

        Returns
        -------
        Any
            What `gamma` and `estimate` get. By default the records.
        """
        return data

    @abstractmethod
    def gamma(self, prepared: Any) -> float:
        """The safety of the prepared data.

        Parameters
        ----------
        prepared : Any
            What `prepare` gave.

        Returns
        -------
        float
            At least 0, and defined for all data.
        """

    @abstractmethod
    def estimate(self, prepared: Any) -> Any:
        """The estimate of the prepared data.

        It is computed only after a reply was drawn, and so only where gamma is
        above 0.

        Parameters
        ----------
        prepared : Any
            What `prepare` gave.

        Returns
        -------
        array
            The estimate, of length `dim`.
        """


class CertifiedBound(SafetyBound):
    """A safety bound from one number of the data, such as a least eigenvalue.

    The number, called level L, certifies how far the estimate can move. With
    mode="adaptive" a safe release publishes a noisy L and uses the alpha that
    it certifies, so that no level has to be chosen. In the other modes alpha =
    alpha_at(level0) and gamma = (L - level0 - l)_+/l, with l = `moves`.
    Subclasses define `level`, `alpha_at` and `estimate`.

    Attributes
    ----------
    moves : float
        Largest change l of L when one record changes.
    least : float
        Number above 0. A certificate at or below it is never used.
    level0 : float, optional
        Level that is planned on, in the other modes.

    Notes
    -----
    `alpha_at(t)` bounds the move of the estimate from data with L >= t + l.

    Examples
    --------
    >>> class MeanOfMany(CertifiedBound):  # mean of the values in (0, 1); L is their number
    ...     dim, moves, least = 1, 1.0, 1.0
    ...     def level(self, x):
    ...         return float((abs(x[:, 0] - 0.5) < 0.5).sum())
    ...     def alpha_at(self, t):
    ...         return 2 / t
    ...     def estimate(self, x):
    ...         return x[abs(x[:, 0] - 0.5) < 0.5].mean(axis=0)
    >>> bound = MeanOfMany()
    >>> bound.level(np.full((60, 1), 0.2)), bound.alpha_at(50.0)
    (60.0, 0.04)
    """

    moves: float
    least: float
    level0: float | None = None

    @abstractmethod
    def level(self, prepared: Any) -> float:
        """The level L of the prepared data.

        Parameters
        ----------
        prepared : Any
            What `prepare` gave.

        Returns
        -------
        float
            L, finite for all data.
        """

    @abstractmethod
    def alpha_at(self, t: float) -> float:
        """Bound on the estimate's move from data with L >= t + moves.

        Parameters
        ----------
        t : float
            Certified level, above `least`.

        Returns
        -------
        float
            The bound, in the norm of `shape`. It decreases in t.
        """

    def error(self, prepared: Any) -> float:
        """How far rounding may have moved L, in units of `moves`.

        Parameters
        ----------
        prepared : Any
            What `prepare` gave. Only its number of records may be used.

        Returns
        -------
        float
            The error. 0 for exact arithmetic.
        """
        return 0.0

    @property
    def alpha(self) -> float:  # type: ignore[override]
        if self.level0 is None:
            raise PlanError(
                f"{bound_name(self)} has no level0",
                'give one for the modes with a fixed alpha, or write mode="adaptive"',
            )
        return self.alpha_at(self.level0)

    def gamma(self, prepared: Any) -> float:
        if self.level0 is None:
            return 0.0
        safety = (self.level(prepared) - self.level0 - self.moves) / self.moves
        return rounded_safety(max(safety, 0.0), self.error(prepared))


def scale(
    statistic: Callable[[Any], float], lipschitz: float, threshold: float = 0.0, *, error: float = 0.0
) -> Callable[[Any], float]:
    """The safety of a statistic that one record moves by a bounded amount.

    The safety is gamma = (statistic - threshold)_+/lipschitz. Clipping at 0 and
    shifting keep C1.

    Parameters
    ----------
    statistic : callable
        Function of the prepared data that gives one number.
    lipschitz : float
        Largest change of the statistic when one record changes.
    threshold : float, default 0.0
        Value of the statistic above which data are safe.
    error : float, default 0.0
        What rounding may add to the statistic, in its own units.

    Returns
    -------
    callable
        gamma, as a function of the prepared data.

    Examples
    --------
    >>> scale(len, 2.0, 4)([0.0] * 10)
    3.0
    """
    if not (0 < lipschitz < float("inf") and isfinite(threshold) and 0 <= error < float("inf")):
        raise PlanError(
            f"lipschitz must be a finite number above 0, threshold finite and error at least 0, got {lipschitz!r}, {threshold!r}, {error!r}"
        )
    return lambda prepared: rounded_safety(
        max((float(statistic(prepared)) - threshold) / lipschitz, 0.0), error / lipschitz
    )


@dataclass(frozen=True)
class AllOf(SafetyBound):
    """Several estimates of the same records in one release: `all_of`.

    C1: a minimum of functions that move by at most 1 moves by at most 1. C2: where the minimum is above 0 every part is safe. The
    squares of the parts' moves, each in its own S-norm, add up to at most the sum of alpha_i^2.
    """

    bounds: tuple[SafetyBound, ...]

    @property
    def dim(self) -> int:  # type: ignore[override]
        return sum(bound.dim for bound in self.bounds)

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return up(sqrt(sum(bound.alpha**2 for bound in self.bounds)))

    @property
    def shape(self) -> tuple[float, ...] | None:  # type: ignore[override]
        if all(bound.shape is None for bound in self.bounds):
            return None
        return tuple(s for bound in self.bounds for s in (bound.shape or (1.0,) * bound.dim))

    @property
    def n(self) -> int | None:  # type: ignore[override]
        return next((bound.n for bound in self.bounds if bound.n is not None), None)

    @property
    def names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return tuple(
            f"{bound_name(bound)} {i + 1}: {name}"
            for i, bound in enumerate(self.bounds)
            for name in (bound.names or tuple(str(j + 1) for j in range(bound.dim)))
        )

    def prepare(self, data: Any) -> tuple[Any, ...]:
        return tuple(bound.prepare(data) for bound in self.bounds)

    def gamma(self, prepared: tuple[Any, ...]) -> float:
        return min(float(bound.gamma(part)) for bound, part in zip(self.bounds, prepared, strict=True))

    def estimate(self, prepared: tuple[Any, ...]) -> Array:
        parts = zip(self.bounds, prepared, strict=True)
        return np.concatenate([np.ravel(np.asarray(bound.estimate(part), dtype=np.float64)) for bound, part in parts])


def all_of(*bounds: SafetyBound) -> AllOf:
    """Combine several safety bounds into one, with their estimates side by side.

    Its gamma is the least of the parts' gammas. Its alpha is the root of the
    sum of alpha^2.

    Parameters
    ----------
    *bounds : SafetyBound
        The bounds, in the order of the estimates.

    Returns
    -------
    AllOf
        A safety bound of all estimates together.

    Raises
    ------
    PlanError
        No bound is given, or two bounds rest on different numbers of records.

    Examples
    --------
    >>> from confide.methods.ptr.safety_bounds import OrderStatistic
    >>> quartiles = all_of(OrderStatistic(25, 0.0, 1.0, 0.1), OrderStatistic(75, 0.0, 1.0, 0.1))
    >>> quartiles.dim, round(quartiles.alpha, 4)
    (2, 0.1414)
    """
    if not bounds or not all(isinstance(bound, SafetyBound) for bound in bounds):
        raise PlanError("all_of takes safety bounds, at least one", "write all_of(first, second)")
    sizes = {bound.n for bound in bounds if bound.n is not None}
    if len(sizes) > 1:
        raise PlanError(
            f"the bounds of all_of rest on different numbers of records: {sorted(sizes)}", "give all the same n"
        )
    return AllOf(tuple(bounds))


@dataclass(frozen=True)
class LipschitzBound(SafetyBound):
    """A Lipschitz function of an estimate: `after`."""

    base: SafetyBound
    function: Callable[[Array], Any]
    lipschitz: float
    dim: int
    shape: tuple[float, ...] | None

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return up(self.base.alpha * self.lipschitz)

    @property
    def n(self) -> int | None:  # type: ignore[override]
        return self.base.n

    def prepare(self, data: Any) -> Any:
        return self.base.prepare(data)

    def gamma(self, prepared: Any) -> float:
        return self.base.gamma(prepared)

    def estimate(self, prepared: Any) -> Any:
        return self.function(np.ravel(np.asarray(self.base.estimate(prepared), dtype=np.float64)))


_LEFT_OUT: Any = object()


def after(
    bound: SafetyBound,
    function: Callable[[Array], Any],
    lipschitz: float,
    *,
    dim: int | None = None,
    shape: tuple[float, ...] | None = _LEFT_OUT,
) -> LipschitzBound:
    """Apply a Lipschitz function to the estimate of a safety bound.

    The new estimate is function(estimate) and its alpha is alpha * lipschitz. A
    function of the released numbers needs none of this, because it is
    post-processing and costs nothing.

    Parameters
    ----------
    bound : SafetyBound
        Bound of the estimate.
    function : callable
        Function of the estimate.
    lipschitz : float
        Lipschitz constant of the function, from the norm |S .| of `bound` to
        that of `shape`.
    dim : int, optional
        Length of what the function gives. By default that of `bound`.
    shape : tuple of float, optional
        Scales of the new estimate; None for the plain norm. Required where
        `bound` has a shape, because a projection that is 1-Lipschitz in the
        plain norm is not so in the other.

    Returns
    -------
    LipschitzBound
        A safety bound of the function of the estimate.

    Raises
    ------
    PlanError
        `bound` has a shape and `shape` is not given, or a parameter is invalid.

    Examples
    --------
    >>> from confide.methods.ptr.safety_bounds import OrderStatistic
    >>> percent = after(OrderStatistic(50, 0.0, 1.0, 0.05), lambda x: 100 * x, 100.0)
    >>> round(percent.alpha, 6)
    5.0
    """
    if not 0 < lipschitz < float("inf"):
        raise PlanError(
            f"lipschitz must be a finite number above 0, got {lipschitz!r}", "write after(bound, function, 1.0)"
        )
    if shape is _LEFT_OUT:
        if bound.shape is not None:
            raise PlanError(
                f"{bound_name(bound)} has a shape, and a constant of the plain norm is not one of its norm",
                "state both: "
                "after(bound, function, lipschitz, shape=...), lipschitz from the bound's norm to that of the new shape",
            )
        shape = None
    return LipschitzBound(bound, function, float(lipschitz), bound.dim if dim is None else dim, shape)


# what a plan says of a bound ------------------------------------------------------------------------------------------


def bound_name(bound: SafetyBound) -> str:
    """The class of a bound, or its `name` where it has one."""
    return str(getattr(bound, "name", type(bound).__name__))


def asserted(bound: SafetyBound) -> tuple[str, ...]:
    """What a guarantee assumes of a bound: nothing for those that are proved here, otherwise that its author is right."""
    if type(bound) is AllOf:
        return tuple(dict.fromkeys(text for part in bound.bounds for text in asserted(part)))
    if type(bound) is LipschitzBound:
        function = getattr(bound.function, "__name__", "function")
        return (*asserted(bound.base), f"asserted Lipschitz constant {bound.lipschitz:g} of {function}")
    if code_name(bound) in {f"confide:{name}" for name in _BOUNDS}:
        return ()
    return (f"asserted safety bound {bound_name(bound)}",)


def checked_bound(bound: Any, *, adaptive: bool = False) -> SafetyBound:
    """The bound itself, its public configuration in order; `PlanError` otherwise."""
    if not isinstance(bound, SafetyBound):
        raise PlanError(
            f"bound must be a confide.ptr.SafetyBound, got {type(bound).__name__}; subclass it with dim, alpha, gamma and estimate"
        )
    who = bound_name(bound)
    dim = getattr(bound, "dim", None)
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise PlanError(
            f"{who}.dim must be a whole number of at least 1, got {dim!r}; it is the length of the estimate"
        )
    shape = bound.shape
    if shape is not None and (len(shape) != dim or not all(0 < s < float("inf") for s in shape)):
        raise PlanError(f"{who}.shape must hold {dim} finite numbers above 0, or be None")
    if bound.names is not None and len(bound.names) != dim:
        raise PlanError(f"{who}.names must hold {dim} names, or be None")
    if adaptive:
        if not isinstance(bound, CertifiedBound):
            raise PlanError(
                f'mode="adaptive" needs a bound with a level (confide.ptr.CertifiedBound), {who} has none',
                'write mode="gdp" and gamma_plan=...',
            )
        if not (0 < bound.moves < float("inf") and 0 < bound.least < float("inf")):
            raise PlanError(f"{who}.moves and {who}.least must be finite numbers above 0")
        return bound
    alpha = getattr(bound, "alpha", None)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number) or not 0 < float(alpha) < float("inf"):
        raise PlanError(
            f"{who}.alpha must be a finite number above 0, got {alpha!r}; it bounds the move of a safe estimate"
        )
    return bound


def pack_bound(bound: SafetyBound) -> dict[str, Any]:
    """A bound as public settings: class and fields of a frozen dataclass whose fields have a text form, else its class alone.

    >>> from confide.methods.ptr.safety_bounds import OrderStatistic
    >>> pack_bound(OrderStatistic(3, 0.0, 1.0, 0.1))["fields"]["alpha"]
    0.1
    """
    where = code_name(bound)
    if is_dataclass(bound) and bound.__dataclass_params__.frozen:
        try:
            return {
                "bound": where,
                "fields": {f.name: _packed(getattr(bound, f.name)) for f in fields(bound) if f.init},
            }
        except TypeError:
            pass
    return {"live": where, "dim": int(bound.dim)}


def bound_from(settings: Mapping[str, Any]) -> SafetyBound:
    """The inverse of `pack_bound`; `PlanError` for a bound that no file can hold, or whose class this process has not loaded."""
    again = "confide.ptr.safe_release(bound, data, ...); a frozen dataclass of numbers and text is held by files"
    made: SafetyBound = code_from(settings, "bound", again, _classes(), _unpacked)
    return made


def _classes() -> set[type[Any]]:
    import_module("confide.methods.ptr.safety_bounds")
    found: set[type[Any]] = set()
    waiting: list[type[Any]] = [SafetyBound]
    while waiting:
        new = [cls for cls in waiting.pop().__subclasses__() if cls not in found]
        found.update(new)
        waiting += new
    return found


def _packed(value: Any) -> Any:
    if isinstance(value, SafetyBound):
        inner = pack_bound(value)
        if "live" in inner:
            raise TypeError
        return inner
    if isinstance(value, tuple | list) and any(isinstance(one, SafetyBound) for one in value):
        return [_packed(one) for one in value]
    pack(value)
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Mapping) and not {"bound", "live"}.isdisjoint(value):
        return bound_from(value)
    if isinstance(value, tuple | list):
        return tuple(_unpacked(one) for one in value)
    return unpack(value) if isinstance(value, dict) else value
