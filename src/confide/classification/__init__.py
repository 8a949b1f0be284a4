"""Classification: class sums (the default), naive Bayes, and propose-test-release."""

from confide.classification.class_sums import ClassSums
from confide.classification.efficient_ptr_bayes import EfficientPTRBayes
from confide.classification.naive_bayes import NaiveBayes
from confide.classification.smooth_naive_bayes import SmoothNaiveBayes
from confide.results.classes import ClassModel

__all__ = ["ClassModel", "ClassSums", "EfficientPTRBayes", "NaiveBayes", "SmoothNaiveBayes"]
