"""What is promised: guarantees as values, their proved conversions, composition and calibration.

Pure mathematics: no records, no randomness. `conversion.py` holds every proved direction; a direction that is not there
raises `NoConversion`.

>>> compose(GDP(3.0, relation="add-remove"), GDP(4.0, relation="add-remove"))
GDP(5.0, relation='add-remove')
"""

from confide.guarantees.calibration import calibrate_gaussian, calibrate_laplace
from confide.guarantees.composition import compose, group
from confide.guarantees.conversion import calibrate_pure, from_guarantee, parse_curve
from confide.guarantees.curves import (
    Curve,
    approx_dp,
    calibrate_symmetric_laplace,
    curve_from_dict,
    gaussian,
    laplace,
    levels,
    perfect,
    plot_curves,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.mechanisms.classical import (
    laplace_epsilon,
    laplace_mu,
    laplace_renyi,
    pure_epsilon,
    pure_mu,
    pure_renyi,
)
from confide.guarantees.mechanisms.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, log_gaussian_delta
from confide.guarantees.privacy_loss import PrivacyLoss
from confide.guarantees.values import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, guarantee_from_dict

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "Curve",
    "Guarantee",
    "PrivacyLoss",
    "PureDP",
    "TradeOff",
    "approx_dp",
    "calibrate_gaussian",
    "calibrate_laplace",
    "calibrate_pure",
    "calibrate_symmetric_laplace",
    "compose",
    "curve_from_dict",
    "from_guarantee",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "group",
    "guarantee_from_dict",
    "laplace",
    "laplace_epsilon",
    "laplace_mu",
    "laplace_renyi",
    "levels",
    "log_gaussian_delta",
    "parse_curve",
    "perfect",
    "plot_curves",
    "pure_epsilon",
    "pure_mu",
    "pure_renyi",
    "symmetric_laplace",
    "zero_inflated",
]
