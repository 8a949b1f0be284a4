"""What is promised: guarantees as values, their proved conversions, composition and calibration.

Pure mathematics: no records, no randomness. `conversion.py` holds every proved direction; a direction that is not there
raises `NoConversion`.

>>> compose(GDP(3.0, relation="add-remove"), GDP(4.0, relation="add-remove"))
GDP(5.0, relation='add-remove')
"""

from confide.guarantees.conversion import calibrate_gaussian, compose, group
from confide.guarantees.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, log_gaussian_delta
from confide.guarantees.randomised_response import pure_epsilon, pure_mu
from confide.guarantees.values import GDP, ZCDP, ApproxDP, Guarantee, PureDP, guarantee_from_dict

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Guarantee",
    "PureDP",
    "calibrate_gaussian",
    "compose",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "group",
    "guarantee_from_dict",
    "log_gaussian_delta",
    "pure_epsilon",
    "pure_mu",
]
