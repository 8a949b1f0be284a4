"""Questions of methods other than lines, on the designs of an adversary and on real sets: curves, classes, quantiles.

Bandwidths are about a twentieth of the range, the default where the number of records is secret. Points, shares and levels were chosen by
what they ask (tails, ties, a rare class), not by what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping

from confide.classification import ClassMeans, EfficientPTRBayes
from confide.core import Method
from confide.curves import EfficientPTRKernel, Kernel
from confide_lab.methods import PosteriorSampling
from confide_lab.methods.quantile.ranks import Quantile

__all__ = ["MORE", "SIZES"]

#: Sizes of samples in the whole table.
SIZES = (50, 500, 2_000, 10_000)


def _curve(formula: str, bandwidth: float) -> Method:
    return Kernel(formula, bandwidth=bandwidth)


#: (case, method) -> what is asked.
MORE: Mapping[tuple[str, str], Method] = {
    ("ties", "kernel"): _curve("y ~ x", 0.8),
    ("skew", "kernel"): _curve("y ~ x", 0.05),
    ("heavy", "kernel"): _curve("y ~ x", 0.1),
    ("collinear", "kernel"): _curve("y ~ a", 0.5),
    ("unequal", "kernel"): _curve("y ~ x", 0.05),
    ("waves", "kernel"): _curve("y ~ x", 0.05),
    ("step", "kernel"): _curve("y ~ x", 0.05),
    ("mixed-zeros", "kernel"): _curve("y ~ x", 1.0),
    ("rare-outcome", "kernel"): _curve("y ~ x", 0.05),
    ("zeros", "kernel"): _curve("y ~ x", 0.05),
    ("bent-far", "kernel"): _curve("y ~ x", 25.0),
    ("far-records", "kernel"): _curve("y ~ x", 0.1),
    ("adult", "kernel"): _curve("hours_per_week ~ age", 4.0),
    ("bike", "kernel"): _curve("cnt ~ temp", 0.05),
    ("california", "kernel"): _curve("median_house_value ~ median_income", 1.0),
    ("casp", "kernel"): _curve("rmsd ~ f3", 0.05),
    ("wine", "kernel"): _curve("quality ~ alcohol", 0.5),
    ("air", "kernel"): _curve("co_gt ~ t", 3.0),
    ("abalone", "kernel"): _curve("rings ~ length", 0.05),
    ("kin8nm", "kernel"): _curve("y ~ theta3", 0.2),
    ("appliances", "kernel"): _curve("appliances ~ t1", 2.0),
    ("parkinsons", "kernel"): _curve("total_updrs ~ age", 4.0),
    **{
        (case, "posterior_sampling"): PosteriorSampling(formula, target="ridge")
        for case, formula in (("plain", "y ~ a + b"), ("waves", "y ~ x"), ("rare-outcome", "y ~ x"), ("heavy", "y ~ x"))
    },
    ("waves", "efficient_ptr_kernel"): EfficientPTRKernel("y ~ x", points=(0.1, 0.3), bandwidth=0.1, least=100.0),
    ("skew", "efficient_ptr_kernel"): EfficientPTRKernel("y ~ x", points=(0.3, 0.7), bandwidth=0.1, least=60.0),
    ("zeros", "efficient_ptr_kernel"): EfficientPTRKernel("y ~ x", points=(0.3, 0.7), bandwidth=0.1, least=60.0),
    ("bike", "efficient_ptr_kernel"): EfficientPTRKernel(
        "cnt ~ temp + hum", points=((0.3, 0.6), (0.6, 0.6)), bandwidth=0.15, least=100.0
    ),
    ("skew", "quantile"): Quantile("y", q=(0.05, 0.5, 0.95)),
    ("heavy", "quantile"): Quantile("y", q=(0.01, 0.5, 0.99)),
    ("ties", "quantile"): Quantile("y", q=(0.1, 0.5, 0.9)),
    ("mixed-zeros", "quantile"): Quantile("y", q=(0.5, 0.9, 0.95)),
    ("adult", "quantile"): Quantile("hours_per_week", q=(0.1, 0.5, 0.9)),
    ("california", "quantile"): Quantile("median_house_value", q=(0.1, 0.5, 0.95)),
    ("appliances", "quantile"): Quantile("appliances", q=(0.1, 0.5, 0.95)),
    ("fifteen-uneven", "class_means"): ClassMeans("f ~ y"),
    ("rare-class", "class_means"): ClassMeans("f ~ x + y"),
    ("step", "class_means"): ClassMeans("y ~ x"),
    ("rare-outcome", "class_means"): ClassMeans("y ~ x"),
    ("adult", "class_means"): ClassMeans("income ~ age + hours_per_week + capital_gain"),
    ("abalone", "class_means"): ClassMeans("sex ~ length + height + rings"),
    ("wine", "class_means"): ClassMeans("color ~ residual_sugar + chlorides + alcohol"),
    ("rare-class", "efficient_ptr_bayes"): EfficientPTRBayes("f ~ x + y", c0=0.005),
    ("wine", "efficient_ptr_bayes"): EfficientPTRBayes("color ~ residual_sugar + chlorides + alcohol", c0=0.15),
}
