"""Curves: kernel regression as a whole curve (the default), and at public points by propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.curves.efficient_ptr_kernel import EfficientPTRKernel
    from confide.methods.curves.kernel import Kernel
    from confide.results.curve import Curve
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Curve": "confide.results.curve",
            "EfficientPTRKernel": "confide.methods.curves.efficient_ptr_kernel",
            "Kernel": "confide.methods.curves.kernel",
        },
    )

__all__ = ["Curve", "EfficientPTRKernel", "Kernel"]
