"""Safety bounds: what a user states of an estimator so that propose-test-release may reply with it.

A safety bound is public configuration and four functions of the data. With S = diag(shape), or the identity, it promises for all data
sets X, X' of the same size that differ in one record

    (C1)  gamma(X) >= 0 and |gamma(X) - gamma(X')| <= 1;
    (C2)  gamma(X) > 0 implies |S (estimate(X) - estimate(X'))|_2 <= alpha, for every such X'.

C2 is one-sided: X' may be unsafe and its estimate undefined, for data with gamma = 0 never get a reply and their estimate is
never asked for. C1 survives minima, convex combinations, cutting at 0, floor and ceil: with g, g' >= 0 at most 1 apart, ceil(g) and
ceil(g') are at most 1 apart, and ceil(g) > 0 exactly where g > 0.

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
    """Subclass this, state dim and alpha, and write gamma and estimate; all attributes are public configuration.

    dim: length of the estimate; alpha: as above; shape: S, one scale above 0 for each coordinate, or None; n: the public number of records
    where alpha rests on it, else None; names: of the estimate's coordinates, or None. Data are float arrays (n, d): one row for each
    record, one column for each schema column that the release names, in its units (a categorical column as the position of its level).

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
        """Record by record: clip, rescale, drop columns. Nothing that is learnt from the data may enter."""
        return data

    @abstractmethod
    def gamma(self, prepared: Any) -> float:
        """The safety of what `prepare` gave: at least 0, defined for all data."""

    @abstractmethod
    def estimate(self, prepared: Any) -> Any:
        """The estimate, length `dim`; asked for only where a reply was drawn, and so where gamma is above 0."""


class CertifiedBound(SafetyBound):
    """A bound from one number L of the data, such as a least eigenvalue, that says how far the estimate can move.

    moves: one record moves L by at most this, l. `alpha_at(t)`: bounds the move of the estimate from data with L >= t + l. least: a number
    above 0; no certificate at or below it is used. With that the level need not be chosen: mode="adaptive" of a safe release publishes a
    noisy L and takes the alpha that it certifies. level0: where the other modes take alpha = alpha_at(level0), gamma = (L - level0 -
    l)_+/l.
    """

    moves: float
    least: float
    level0: float | None = None

    @abstractmethod
    def level(self, prepared: Any) -> float:
        """L of what `prepare` gave: finite for all data."""

    @abstractmethod
    def alpha_at(self, t: float) -> float:
        """Bound on the estimate's move (in the norm of `shape`) from data with L >= t + moves; falls in t, for t > `least`."""

    def error(self, prepared: Any) -> float:
        """How far rounding may have moved L, in units of `moves`, from the number of records alone; 0 for exact arithmetic."""
        return 0.0

    @property
    def alpha(self) -> float:  # type: ignore[override]
        if self.level0 is None:
            raise PlanError(
                f'{bound_name(self)} has no level0; give one for the modes with a fixed alpha, or write mode="adaptive"'
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
    """gamma = (statistic - threshold)_+/lipschitz, for a statistic that one record moves by at most `lipschitz`.

    error: what rounding may add to the statistic, in its own units. Cutting at 0 and shifting keep C1.

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

    C1: a minimum of functions that move by at most 1 does. C2: where it is above 0 every part is safe, and the squares of the parts'
    moves, each in its own S-norm, add up to at most the sum of alpha_i^2.
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
    """The estimates of several bounds side by side: gamma their least, alpha the root of the sum of alpha^2.

    Raises `PlanError` without bounds, or where two rest on different numbers of records.
    """
    if not bounds or not all(isinstance(bound, SafetyBound) for bound in bounds):
        raise PlanError("all_of takes safety bounds, at least one; write all_of(first, second)")
    sizes = {bound.n for bound in bounds if bound.n is not None}
    if len(sizes) > 1:
        raise PlanError(
            f"the bounds of all_of rest on different numbers of records: {sorted(sizes)}; give all the same n"
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
    """The estimate function(estimate), alpha * lipschitz: the function's Lipschitz constant from the norm |S .| of `bound` to that of
    `shape`.

    dim: length of what the function gives (default: that of `bound`). Where `bound` has a shape, a projection that is 1-Lipschitz in the
    plain norm is not in the other: then the new shape must be said (None for the plain norm) and `lipschitz` is meant between these
    two norms, else `PlanError`. A function of the released numbers needs none of this: it is post-processing and costs nothing.
    """
    if not 0 < lipschitz < float("inf"):
        raise PlanError(
            f"lipschitz must be a finite number above 0, got {lipschitz!r}; write after(bound, function, 1.0)"
        )
    if shape is _LEFT_OUT:
        if bound.shape is not None:
            raise PlanError(
                f"{bound_name(bound)} has a shape, and a constant of the plain norm is none of its norm; state both: "
                "after(bound, function, lipschitz, shape=...), lipschitz from the bound's norm to that of the new shape"
            )
        shape = None
    return LipschitzBound(bound, function, float(lipschitz), bound.dim if dim is None else dim, shape)


# what a plan says of a bound ------------------------------------------------------------------------------------------


def bound_name(bound: SafetyBound) -> str:
    """The class of a bound, or its `name` where it has one."""
    return str(getattr(bound, "name", type(bound).__name__))


def asserted(bound: SafetyBound) -> tuple[str, ...]:
    """What a guarantee assumes of a bound: nothing for those that are proved here, else that its author is right."""
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
                f'mode="adaptive" needs a bound with a level (confide.ptr.CertifiedBound), {who} has none; write mode="gdp" and '
                "gamma_plan=..."
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
