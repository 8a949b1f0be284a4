"""Classes: class means (the default) and propose-test-release."""

from confide.methods.classification.class_means import ClassMeans as ClassMeans
from confide.methods.classification.efficient_ptr import EfficientPTRBayes as EfficientPTRBayes
from confide.results.classes import ClassModel as ClassModel
