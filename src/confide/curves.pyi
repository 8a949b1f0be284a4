"""Curves: kernel regression as a whole curve (the default), and at public points by propose-test-release."""

from confide.methods.curves.efficient_ptr import EfficientPTRKernel as EfficientPTRKernel
from confide.methods.curves.kernel import Kernel as Kernel
from confide.results.curve import Curve as Curve
