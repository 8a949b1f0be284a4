"""Classification: class sums (the default) and propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.classification.class_sums import ClassSums
    from confide.methods.classification.efficient_ptr_bayes import EfficientPTRBayes
    from confide.results.classes import ClassModel
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ClassModel": "confide.results.classes",
            "ClassSums": "confide.methods.classification.class_sums",
            "EfficientPTRBayes": "confide.methods.classification.efficient_ptr_bayes",
        },
    )

__all__ = ["ClassModel", "ClassSums", "EfficientPTRBayes"]
