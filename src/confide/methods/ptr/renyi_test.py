"""Generalized propose-test-release in Renyi form: a Gaussian test of the distance to data that must not pass, then a mechanism.

The distance D is 0 where the mechanism's conditional Renyi loss does not hold, and one record moves it by at most 1. The test adds Gaussian
noise of standard deviation 1/mu and passes above T, P(noise > T) <= d'. The whole has the Renyi bound of `generalized_rdp` at each order,
in which the test's own is a/2 times the square of mu. Its proof, for the corrected statement, is in `confide.methods.ptr.generalized`.

D is taken in 2^-20, rounded down, so that one record moves it by at most 2^20 + 1 steps, and noise on whole steps is rounded from a normal.
Source: Redberg, Zhu, Wang 2023, Algorithm 6 and Theorem B.5, corrected (evidence/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log

import numpy as np

from confide import _special as special
from confide.core.allowance import Noise
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP
from confide.guarantees.mechanisms.classical import rdp_epsilon
from confide.guarantees.validation import is_finite
from confide.methods.ptr.generalized import generalized_rdp

_FINE = 1 << 20
_FAR = 1 << 32
# Orders at which the Renyi bound is turned into epsilon: each gives a valid one.
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 120)


@dataclass(frozen=True)
class RenyiTest:
    """Test whether records are far from those on which a mechanism must not run.

    A building block for a method's release, as in `confide.methods.ptr.classic`.
    The distance is 0 where the mechanism's conditional loss does not hold, and
    one record moves it by at most 1.

    Parameters
    ----------
    mu : float
        Gaussian DP parameter of the test.
    false_pass : float
        Largest probability of passing at distance 0.

    Notes
    -----
    Guarantee: the Renyi bound `rdp` of test and mechanism together, under the
    relation under which one record moves the distance by at most 1. The module
    docstring of `confide.methods.ptr.generalized` has the proof.

    References
    ----------
    Redberg, Zhu, Wang 2023, Algorithm 6 and Theorem B.5, corrected.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> test = RenyiTest(mu=0.5, false_pass=1e-6)
    >>> test(0, SimulatedNoise(1)), test(40, SimulatedNoise(1))
    (False, True)
    >>> round(test.rdp(2.0, conditional=0.1, overall=5.0), 4)
    0.35
    """

    mu: float
    false_pass: float

    proof = "Gaussian test of a distance, Renyi form"

    def __post_init__(self) -> None:
        if not (is_finite(self.mu) and 0 < self.mu <= 1e3):
            raise PrivacyError(f"mu must be a number above 0 and at most 1,000, got {self.mu!r}", "write mu=0.5")
        if not (is_finite(self.false_pass) and 0 < self.false_pass < 0.5):
            raise PrivacyError(
                f"false_pass must be a number above 0 and below 1/2, got {self.false_pass!r}", "write false_pass=1e-6"
            )

    @property
    def threshold(self) -> float:
        """T in units of the distance: what it must exceed, noise included."""
        return self._steps / _FINE

    @property
    def _variance(self) -> Fraction:
        return (Fraction(_FINE + 1) / Fraction(self.mu)) ** 2

    @property
    def _steps(self) -> int:
        # a rounded draw above T steps is a normal of at least T + 1/2
        return ceil(float(_FINE + 1) / self.mu * -float(special.ndtri(self.false_pass)) * (1 + 1e-12))

    def rdp(self, order: float, *, conditional: float, overall: float) -> float:
        """The Renyi bound at one order of test and mechanism together.

        Parameters
        ----------
        order : float
            Order of the Renyi divergence, above 1.
        conditional : float
            Renyi loss of the mechanism where the test is right to pass.
        overall : float
            Renyi loss of the mechanism on any records.

        Returns
        -------
        float
            The bound.

        Raises
        ------
        PrivacyError
            A number is out of range.
        """
        return generalized_rdp(
            order, conditional=conditional, overall=overall, test=GDP(self.mu), false_pass=self.false_pass
        )

    def guarantee(
        self, delta: float, *, conditional: Callable[[float], float], overall: Callable[[float], float]
    ) -> ApproxDP:
        """The guarantee of test and mechanism at a delta, over many orders.

        Parameters
        ----------
        delta : float
            Delta of the guarantee.
        conditional, overall : callable
            Renyi losses of the mechanism, as functions of the order.

        Returns
        -------
        ApproxDP
            The smallest epsilon that the orders give.

        Raises
        ------
        PrivacyError
            A number is out of range.
        """
        if not 0 < delta < 1:
            raise PrivacyError(f"delta must lie between 0 and 1, got {delta!r}", "write delta=1e-6")
        bounds = [self.rdp(float(a), conditional=conditional(float(a)), overall=overall(float(a))) for a in _ORDERS]
        return ApproxDP(rdp_epsilon(log(delta), [float(a) for a in _ORDERS], bounds) * (1 + 1e-12), delta)

    def __call__(self, distance: float, noise: Noise) -> bool:
        """Draw whether the distance passes.

        Parameters
        ----------
        distance : float
            Distance of the records to those that must not pass.
        noise : Noise
            Source of noise.

        Returns
        -------
        bool
            Whether the mechanism may run.
        """
        # what is no number is as near as can be
        steps = floor(min(distance, _FAR) * _FINE) if distance > 0 else 0
        return steps + int(noise.grid_gaussian(self._variance, 1)[0]) > self._steps
