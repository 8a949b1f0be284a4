"""Principal components: Analyze Gauss, propose-test-release on the gap, and noisy rows, by the variance that they capture."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np

from confide_lab.experiment import Block, Drawing, Experiment, Quantity
from confide_lab.published import components

__all__ = ["COMPARISON"]

_DELTA, _K = 1e-6, 3
_SIZES = ("5000 x 20", "2000 x 50", "20000 x 50")
_METHODS = ("gauss", "gauss_printed", "projector", "projector_printed", "rows")


def comparison(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Captured variance of three components, spectrum 10, 10, 10, 1, ..., rows scaled to length at most 1; NaN and replied = 0 for no
    reply."""
    n, p = (int(part) for part in at["rows"].split(" x "))
    x = generator.standard_normal((n, p)) * np.sqrt(np.where(np.arange(p) < _K, 10.0, 1.0))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    calls: dict[str, Any] = {
        "gauss": components.corrected_gauss,
        "gauss_printed": components.printed_gauss,
        "projector": components.corrected_projector,
        "projector_printed": components.printed_projector,
        "rows": components.noisy_rows,
    }
    found: Any = calls[at["method"]](x, _K, generator, epsilon=at["epsilon"], delta=_DELTA)
    basis = found["basis"] if isinstance(found, dict) else found
    if basis is None:
        return {"captured": nan, "replied": 0.0}
    return {"captured": components.captured(x, basis), "replied": 1.0}


COMPARISON = Experiment(
    "pca.comparison",
    "Private principal components: captured variance of three components",
    (
        Block(
            "captured",
            {"rows": _SIZES, "epsilon": (0.2, 1.0)},
            _METHODS,
            comparison,
            (Quantity("captured"), Quantity("replied")),
            10,
            title="Unit rows, spectrum 10, 10, 10, 1, ..., delta = 1e-6, add-remove",
            drawing=Drawing("dots", "rows", "captured", panels="epsilon", y_label="captured variance"),
            titles={
                "gauss": "Analyze Gauss, exact noise",
                "gauss_printed": "Analyze Gauss as printed",
                "projector": "propose-test-release, corrected",
                "projector_printed": "propose-test-release as printed",
                "rows": "noisy rows",
            },
        ),
    ),
    ("Redberg, Zhu, Wang, AISTATS 2023, C.4; Dwork, Talwar, Thakurta, Zhang 2014",),
    ("Exact Analyze Gauss is the default of `cf.reduction.PCA`: no rival captures more.",),
)
