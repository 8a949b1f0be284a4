"""How much a pure mechanism may spend within any request."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log, nextafter

from confide.errors import PrivacyError
from confide.guarantees.mechanisms.randomised_response import pure_epsilon
from confide.guarantees.rounding import SLACK, sqrt_down
from confide.guarantees.values import GDP, ZCDP, ApproxDP, Guarantee, PureDP

__all__ = ["calibrate_pure"]


def calibrate_pure(privacy: Guarantee) -> float:
    """The largest epsilon such that *every* epsilon-private release meets a request; rounded to the safe side.

    What holds for randomised response holds for all (Kairouz, Oh, Viswanath 2015). PureDP gives its epsilon; GDP(mu) the
    inverse of `pure_mu`; ZCDP(rho) the largest float with epsilon^2/2 <= rho; ApproxDP the epsilon of randomised response
    whose curve meets (epsilon, delta). A delta of GDP(mu, delta) is left unused. Raises `PrivacyError` for anything else.

    >>> calibrate_pure(PureDP(0.5)), calibrate_pure(ZCDP(0.5)), round(calibrate_pure(GDP(1.0)), 6)
    (0.5, 1.0, 0.806965)
    """
    match privacy:
        case PureDP(epsilon):
            return epsilon
        case GDP(mu):
            return _down(pure_epsilon(mu))
        case ZCDP(rho):
            return sqrt_down(2 * Fraction(rho))
        case ApproxDP(epsilon, delta):
            # (e^x - e^epsilon) / (1 + e^x) = delta, solved for x: the curve of randomised response at epsilon
            return max(epsilon, _down(epsilon + log((1 + delta * exp(-epsilon)) / (1 - delta))))
        case _:
            raise PrivacyError(
                f"a pure mechanism is calibrated to PureDP, GDP, ZCDP or ApproxDP, got {type(privacy).__name__}; "
                "write for instance calibrate_pure(PureDP(1.0))"
            )


def _down(number: float) -> float:
    # The statement that leads back is itself rounded up by SLACK, and mu grows as slowly as the root of epsilon: twice the
    # slack in epsilon answers one in mu; four times leaves room for the float on either side.
    return nextafter(number * (1 - 4 * SLACK), -inf)
