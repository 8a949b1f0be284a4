"""`cf.reduction`: principal components and correlation matrices.

`correlation` and `pca` are the calls (plan, release, infer); `PCA` and `Correlations` are the methods behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confide._lazy import names

if TYPE_CHECKING:
    from confide.faces.calls.reduction_calls import correlation, pca
    from confide.methods.reduction.components import PCA
    from confide.methods.reduction.correlations import Correlations
else:
    _METHODS: Mapping[str, Any] = {
        "PCA": "confide.methods.reduction.components",
        "Correlations": "confide.methods.reduction.correlations",
    }
    __getattr__, __dir__ = names(
        __name__, {**dict.fromkeys(("correlation", "pca"), "confide.faces.calls.reduction_calls"), **_METHODS}
    )

__all__ = ["PCA", "Correlations", "correlation", "pca"]
