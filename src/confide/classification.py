"""Classification: class means (the default) and propose-test-release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.methods.classification.class_means import ClassMeans
    from confide.methods.classification.efficient_ptr_bayes import EfficientPTRBayes
    from confide.results.classes import ClassModel
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ClassModel": "confide.results.classes",
            "ClassMeans": "confide.methods.classification.class_means",
            "EfficientPTRBayes": "confide.methods.classification.efficient_ptr_bayes",
        },
    )

__all__ = ["ClassMeans", "ClassModel", "EfficientPTRBayes"]
