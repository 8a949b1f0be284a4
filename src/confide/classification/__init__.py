"""Classification: class sums (the default) and propose-test-release."""

from confide.classification.class_sums import ClassSums
from confide.classification.efficient_ptr_bayes import EfficientPTRBayes
from confide.results.classes import ClassModel

__all__ = ["ClassModel", "ClassSums", "EfficientPTRBayes"]
