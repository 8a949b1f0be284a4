"""How little noise meets a request: the largest privacy level of a mechanism within a guarantee, rounded down.

`calibrate_gaussian` answers with mu = sensitivity / sigma of Gaussian noise, `calibrate_laplace` with epsilon =
sensitivity / scale of Laplace noise; multiply or divide by the sensitivity to have the noise. Both take a number of
equal releases that shall meet the request together. The other way round, a noise level promises `GDP(mu)`,
`PureDP(epsilon)` or, exactly, `TradeOff(laplace(epsilon))`, and their conversions. How the Laplace mechanism meets
GDP: `mechanisms/classical`.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, log, log1p, nextafter

import numpy as np
from numpy.typing import NDArray

from confide._helpers import later
from confide.errors import NoConversion, PrivacyError
from confide.guarantees.conversion import not_a_guarantee
from confide.guarantees.mechanisms.classical import laplace_epsilon, laplace_renyi
from confide.guarantees.mechanisms.gaussian import bracket, mu_bracket
from confide.guarantees.privacy_loss import PrivacyLoss
from confide.guarantees.validation import SLACK, count, float_up, sqrt_down
from confide.guarantees.values import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, way

optimize = later("scipy.optimize")

# The epsilon beyond which no grid of losses is made; what several releases gain there by composing is not looked for.
_WIDEST = 1e6


@way
def calibrate_gaussian(privacy: Guarantee, *, releases: int = 1) -> float:
    """Largest mu at which Gaussian releases meet a request together.

    This is a calibration, not a statement. GDP gives its mu. ApproxDP gives the
    analytic Gaussian mechanism, the lower end of its bracket less 1e-11 of
    itself. ZCDP gives the largest float with mu * mu / 2 <= rho, and RDP the
    same with order * mu * mu / 2 at each order.

    Parameters
    ----------
    privacy : Guarantee
        Request. A delta of GDP is left unused.
    releases : int, default 1
        Number of equal releases that share the request. mu falls with its
        square root.

    Returns
    -------
    float
        Sensitivity over the SD of the noise, rounded to the safe side.

    Raises
    ------
    NoConversion
        The request is PureDP, which no Gaussian noise gives, or TradeOff.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism for differential
    privacy, ICML.

    Examples
    --------
    >>> calibrate_gaussian(ZCDP(0.5)), round(calibrate_gaussian(ApproxDP(1.0, 1e-6)), 6)
    (1.0, 0.236704)
    >>> calibrate_gaussian(GDP(1.0), releases=4)
    0.5
    """
    k = count(releases, "releases", "calibrate_gaussian(GDP(1.0), releases=10)")
    match privacy:
        case GDP(mu):
            square = Fraction(mu) ** 2
        case ApproxDP(epsilon, delta):
            square = Fraction(mu_bracket(epsilon, delta)[0] * (1 - SLACK)) ** 2
        case ZCDP(rho):
            square = 2 * Fraction(rho)
        case RDP(orders, epsilons):
            square = min(2 * Fraction(e) / Fraction(a) for a, e in zip(orders, epsilons, strict=True))
            if square == 0:
                raise _nothing_left(privacy)
        case PureDP(epsilon):
            raise NoConversion(
                f"there is no Gaussian noise for PureDP (got {privacy}). Any Gaussian release exceeds every epsilon "
                "with some probability",
                f"ask for cf.ApproxDP({epsilon!r}, 1e-6), or for GDP or ZCDP, or use a method with Laplace noise",
            )
        case TradeOff():
            raise _no_request("calibrate_gaussian", privacy)
        case _:
            raise not_a_guarantee(privacy, "calibrate_gaussian(GDP(1.0))")
    return sqrt_down(square / k)


def calibrate_laplace(privacy: Guarantee, *, releases: int = 1) -> float:
    """Largest epsilon at which Laplace releases meet a request together.

    PureDP: its epsilon, divided. ApproxDP: exact, for several releases by
    numeric composition. GDP: exact for one release; for several, each within
    mu/sqrt(releases) and delta/releases. ZCDP: epsilon^2/2 <= rho/releases,
    which holds for every pure mechanism and is not exact for Laplace. RDP:
    exact at each order.

    Parameters
    ----------
    privacy : Guarantee
        Request.
    releases : int, default 1
        Number of equal releases that share the request.

    Returns
    -------
    float
        Sensitivity over the scale of the noise, rounded down.

    Raises
    ------
    NoConversion
        The request is a TradeOff.

    Examples
    --------
    >>> round(calibrate_laplace(ApproxDP(1.0, 1e-6)), 8), round(calibrate_laplace(GDP(1.0)), 6)
    (1.000002, 0.965529)
    >>> calibrate_laplace(PureDP(1.0), releases=4)
    0.25
    """
    k = count(releases, "releases", "calibrate_laplace(PureDP(1.0), releases=10)")
    match privacy:
        case PureDP(epsilon):
            return _float_down(Fraction(epsilon) / k)
        case ApproxDP(epsilon, delta):
            alone = max(epsilon, _down(epsilon - 2 * log1p(-delta)))
            return alone if k == 1 else _several(epsilon, delta, k, alone)
        case GDP(mu, delta):
            return _down(laplace_epsilon(sqrt_down(Fraction(mu) ** 2 / k), _float_down(Fraction(delta) / k)))
        case ZCDP(rho):
            return sqrt_down(2 * Fraction(rho) / k)
        case RDP(orders, epsilons):
            if epsilons[0] == 0:
                raise _nothing_left(privacy)
            roots = [
                bracket(lambda size, a=a, e=e: laplace_renyi(a, size) - e / k, start=1.0)[0]  # type: ignore[misc]
                for a, e in zip(orders, epsilons, strict=True)
            ]
            return _down(min(roots))
        case TradeOff():
            raise _no_request("calibrate_laplace", privacy)
        case _:
            raise not_a_guarantee(privacy, "calibrate_laplace(PureDP(1.0))")


def _several(epsilon: float, delta: float, k: int, alone: float) -> float:
    """The epsilon of k Laplace releases that are (epsilon, delta)-private together, on the numeric upper bound."""

    def excess(size: float) -> float:
        def profile(at: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.maximum(-np.expm1((at - size) / 2), 0.0) * (1 + SLACK)

        together = PrivacyLoss.from_profile(profile, high=size).power(k).delta(epsilon)
        return log(max(float(together), 1e-300)) - log(delta)

    low = _float_down(Fraction(epsilon) / k)  # they are epsilon-private together
    if alone > _WIDEST:
        return low
    if excess(low * (1 + 1e-6)) > 0 or excess(alone) <= 0:
        return low
    # For many releases the answer is near the level that meets the request as a Gaussian, which makes the search short.
    near = calibrate_laplace(GDP(calibrate_gaussian(ApproxDP(epsilon, delta))), releases=k)
    ends = sorted({low * (1 + 1e-6), alone, *(e for e in (near, 1.3 * near) if low * (1 + 1e-6) < e < alone)})
    while len(ends) > 2 and excess(ends[1]) <= 0:
        del ends[0]
    found = float(optimize.brentq(excess, ends[0], ends[1], xtol=1e-300, rtol=1e-9))
    step = 1e-9
    while found > low and excess(found) > 0:
        found, step = found * (1 - step), 2 * step
    return max(found, low)


def _float_down(exact: Fraction) -> float:
    return -float_up(-exact)


def _down(number: float) -> float:
    return nextafter(number * (1 - SLACK), -inf)


def _no_request(verb: str, privacy: Guarantee) -> NoConversion:
    return NoConversion(
        f"{verb} takes no trade-off function as a request, got {privacy}: ask for one number of it, for instance "
        f"{verb}(privacy.to_approx(delta=1e-6))"
    )


def _nothing_left(privacy: Guarantee) -> PrivacyError:
    return PrivacyError(
        f"{privacy} allows a Renyi divergence of 0, which no release that depends on the records meets",
        "give epsilons above 0, for instance RDP((2, 8), (0.1, 0.4))",
    )
