"""Methods kept for comparison: registered like any third party's, each beaten by a method of `confide` that its page names."""

from confide_lab.methods.adaops import AdaOPS
from confide_lab.methods.adassp import AdaSSP
from confide_lab.methods.analyze_gauss import AnalyzeGauss
from confide_lab.methods.binagg import BinAgg
from confide_lab.methods.boosted_adassp import BoostedAdaSSP
from confide_lab.methods.functional_mechanism import FunctionalMechanism
from confide_lab.methods.gradient_descent import GradientDescent
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.johnson_lindenstrauss import JohnsonLindenstrauss
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticOutput, LogisticPTR
from confide_lab.methods.naive_bayes import NaiveBayes
from confide_lab.methods.output_perturbation import OutputPerturbation
from confide_lab.methods.posterior_sampling import PosteriorSampling
from confide_lab.methods.quantile.ranks import Quantile
from confide_lab.methods.smooth_naive_bayes import SmoothNaiveBayes
from confide_lab.methods.wavelet import Wavelet

__all__ = [
    "AdaOPS",
    "AdaSSP",
    "AnalyzeGauss",
    "BinAgg",
    "BoostedAdaSSP",
    "FunctionalMechanism",
    "GradientDescent",
    "HuberLine",
    "JohnsonLindenstrauss",
    "LogisticObjective",
    "LogisticOutput",
    "LogisticPTR",
    "NaiveBayes",
    "OutputPerturbation",
    "PosteriorSampling",
    "Quantile",
    "SmoothNaiveBayes",
    "Wavelet",
]
