"""Trade-off functions as objects: what a release lets anyone find out, exactly.

>>> from confide.guarantees.curves import gaussian, laplace
>>> round(gaussian(1.0).f(0.05), 4), laplace(1.0).epsilon(0.0)
(0.7405, 1.0)
"""

from confide.guarantees.curves.composed import Composed
from confide.guarantees.curves.curve import Curve, plot_curves
from confide.guarantees.curves.elementary import (
    Gaussian,
    Laplace,
    Perfect,
    RandomisedResponse,
    Relaxed,
    RenyiBound,
    ZeroInflated,
)
from confide.guarantees.curves.factories import (
    approx_dp,
    calibrate_symmetric_laplace,
    curve_from_dict,
    gaussian,
    laplace,
    levels,
    objective,
    perfect,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.curves.symmetric_laplace import SymmetricLaplace
from confide.guarantees.mechanisms.objective_perturbation import Objective

__all__ = [
    "Composed",
    "Curve",
    "Gaussian",
    "Laplace",
    "Objective",
    "Perfect",
    "RandomisedResponse",
    "Relaxed",
    "RenyiBound",
    "SymmetricLaplace",
    "ZeroInflated",
    "approx_dp",
    "calibrate_symmetric_laplace",
    "curve_from_dict",
    "gaussian",
    "laplace",
    "levels",
    "objective",
    "perfect",
    "plot_curves",
    "symmetric_laplace",
    "zero_inflated",
]
