"""A loss of the user's own, written with JAX: its derivatives by automatic differentiation, its mean under noise by averaging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.local.fits.losses import Loss
from confide.local.fits.noisy_means import NEXT_TO_NOTHING, laguerre

__all__ = ["OwnLoss"]


_NODES, _TINY = 64, 1e-14


@dataclass(frozen=True, eq=False)
class OwnLoss(Loss):
    """l(t, y) of one index t = x'b and one response, twice differentiable in t: `function` takes and gives JAX scalars.

    The correction needs no more than this: the Laplacian of the loss in the terms, in the scales of their noise, is Q l''(t), and its mean
    under Laplace noise, for RB, is a weighted mean over the 64 Gauss-Laguerre points of either sign: where l is smooth on the scale of
    the noise these leave less than draws do. title: what is estimated. The response is published as it is. Needs
    `pip install "confide[autodiff]"`.
    Raises `PlanError` where JAX is not installed, or the function is none of two scalars.
    """

    function: Callable[[Any, Any], Any]
    title: str = "line of the least mean loss"

    name = "own"
    convex = False

    @property
    def target(self) -> str:
        return self.title

    def value(self, t: Array, y: Array) -> Array:
        return self._of(0, t, y)

    def slope(self, t: Array, y: Array) -> Array:
        return self._of(1, t, y)

    def bend(self, t: Array, y: Array) -> Array:
        return self._of(2, t, y)

    def third(self, t: Array, y: Array) -> Array:
        return self._of(3, t, y)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        scale = max(sqrt(v), NEXT_TO_NOTHING)
        mean, slope, grown = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for u, w in zip(*laguerre(_NODES), strict=True):
            if w < _TINY:
                continue
            above, below = t + scale * u, t - scale * u
            up, low = self._of(1, above, y), self._of(1, below, y)
            mean += w / 2 * (self._of(0, above, y) + self._of(0, below, y))
            slope += w / 2 * (up + low)
            grown += w / 2 * u * (up - low)
        return mean, slope, grown / (2 * scale)

    def _of(self, order: int, t: Array, y: Array) -> Array:
        jax = _jax()
        with jax.enable_x64(True):
            return np.asarray(self._orders[order](t, np.broadcast_to(y, t.shape)), dtype=np.float64)

    @cached_property
    def _orders(self) -> tuple[Callable[[Any, Any], Any], ...]:
        """The function and its first three derivatives in t, of arrays."""
        jax = _jax()

        def scalar(t: Any, y: Any) -> Any:
            found = jax.numpy.asarray(self.function(t, y))
            if found.shape != ():
                raise PlanError(
                    "the loss takes an index and a response and gives one number; "
                    "write cf.local.OwnLoss(lambda t, y: jnp.logaddexp(0, t) - y * t)"
                )
            return found

        made: list[Callable[[Any, Any], Any]] = [scalar]
        for _ in range(3):
            made.append(jax.grad(made[-1]))
        return tuple(jax.jit(jax.vmap(one)) for one in made)


def _jax() -> Any:
    try:
        import jax
    except ImportError:
        raise PlanError(
            "a loss of your own needs JAX: pip install 'confide[autodiff]'; or take one of the losses by name"
        ) from None
    return jax
