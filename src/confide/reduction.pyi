"""`cf.reduction`: principal components and correlation matrices.

`correlation` and `pca` plan, release and infer in one call; `PCA` and `Correlations` are the methods.
"""

from collections.abc import Callable

from confide.ask.one_call import one_call
from confide.methods.reduction.components import PCA as PCA, Basis
from confide.methods.reduction.correlations import CorrelationMatrix, Correlations as Correlations

correlation: Callable[..., CorrelationMatrix] = one_call(Correlations, "cf.reduction.correlation")
pca: Callable[..., Basis] = one_call(PCA, "cf.reduction.pca")
