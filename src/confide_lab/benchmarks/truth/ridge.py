"""The one interval whose target is the records themselves: `PosteriorSampling(target="ridge")`, the weighted ridge line of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.methods.regression.certified.reading import chart
from confide.methods.regression.evidence.normal_equations import to_units
from confide.schema import CodedFrame, ModelMatrix
from confide_lab.methods.posterior_sampling import PosteriorSampling

__all__ = ["ridge_line"]

Array = NDArray[np.float64]


def ridge_line(method: PosteriorSampling, sample: CodedFrame, penalty: float) -> dict[str, float]:
    """By name, in the units of the data: (sum w z z' + penalty)^-1 sum w z t, w = min(1, cap/|z|^2), z and t in half-widths.

    For formulas with an intercept and the method's default cap.
    """
    design = ModelMatrix.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    x, y = sample.rows(design)
    middle, half, y_middle, y_half = chart(design)
    terms = len(design.terms)
    z = np.column_stack([np.ones(len(x)), (x[:, 1:] - middle) / half])
    weights = np.minimum(1.0, (1 + terms / 3) / (z * z).sum(axis=1))
    gram = (z.T * weights) @ z + penalty * np.eye(1 + terms)
    phi = np.linalg.solve(gram, (z.T * weights) @ ((y - y_middle) / y_half))
    matrix, shift = to_units(design, list(range(terms)))
    values: Any = matrix @ phi + shift
    return dict(zip(design.names, map(float, values), strict=True))
