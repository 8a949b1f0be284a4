"""What exact sums by level would say of practice records: the sandwich of tables without noise, with the noise's variance."""

from __future__ import annotations

from math import nan

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.metric import factor_name
from confide.methods.regression.factors.factor_means_reading import LevelTables
from confide.methods.regression.forecast import Expect, Expected
from confide.methods.regression.practice import Shape
from confide.schema import Design

__all__ = ["expected"]


# A level is told where the noise of its count is at most this part of it.
_USABLE = 0.4


def expected(design: Design, tables: LevelTables) -> Expect:
    """tables: of no record, for their noise. A coefficient is answered where its level and the one that it is compared with are told."""
    half = float(design.response.high - design.response.low) / 2
    kinds = [factor_name(term) for term in design.terms]
    noise, sd = tables.cross_noise, float(np.sqrt(tables.count_variance.max()))

    def expect(shape: Shape, count: int) -> Expected:
        rows = (shape.scaled[:, 1:] + 1) / 2
        if design.intercept:
            rows = np.column_stack([np.ones(len(rows)), rows])
        each = shape.weights * (count / len(rows))
        weighted = rows * each[:, None]
        bread = np.linalg.pinv(weighted.T @ rows)
        theta = bread @ (weighted.T @ shape.response)
        residuals = shape.response - rows @ theta
        meat = (weighted * (residuals**2)[:, None]).T @ rows
        covariance = bread @ (meat + noise + tables.gram_noise(theta)) @ bread
        errors = half * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        hidden = _untold(each @ (shape.scaled[:, 1:] + 1) / 2, count) < sd / _USABLE
        errors[hidden] = nan
        return Expected(errors, not hidden.any())

    def _untold(counts: Array, count: int) -> Array:
        """The fewest records of a level that each coefficient rests on."""
        if not design.intercept:
            return counts
        base = np.array([count - sum(c for c, own in zip(counts, kinds, strict=True) if own == kind) for kind in kinds])
        fewest = np.minimum(counts, base)
        return np.concatenate([[base.min() if len(base) else float(count)], fewest])

    return expect
