"""Classification: class sums (the default), naive Bayes, and propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.classification.class_sums import ClassSums
    from confide.classification.efficient_ptr_bayes import EfficientPTRBayes
    from confide.classification.naive_bayes import NaiveBayes
    from confide.classification.smooth_naive_bayes import SmoothNaiveBayes
    from confide.results.classes import ClassModel
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ClassModel": "confide.results.classes",
            "ClassSums": "confide.classification.class_sums",
            "EfficientPTRBayes": "confide.classification.efficient_ptr_bayes",
            "NaiveBayes": "confide.classification.naive_bayes",
            "SmoothNaiveBayes": "confide.classification.smooth_naive_bayes",
        },
    )

__all__ = ["ClassModel", "ClassSums", "EfficientPTRBayes", "NaiveBayes", "SmoothNaiveBayes"]
