"""Shares and class means without privacy, on practice records as their schema reads them: what intervals of classes are judged against."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.methods.classification.class_design import ClassDesign
from confide.results.classes import class_names
from confide.schema.practice import Practice

__all__ = ["class_truth"]


def class_truth(frame: Any, own: ClassDesign, radius: float) -> dict[str, float]:
    """The share of each class and the mean of each feature in it, by name, of records in the ball of the radius.

    NaN for the means of a class without records.
    """
    matrix, codes = Practice.checked(frame).rows(own.design)
    x = matrix[:, int(own.design.intercept) :]
    middle, half = own.chart
    u = (x - middle) / half
    with np.errstate(divide="ignore"):
        u *= np.minimum(1.0, radius / np.linalg.norm(u, axis=1))[:, None]
    x, place = middle + half * u, np.rint(codes - float(own.design.response.low))
    sizes = np.array([(place == k).sum() for k in range(len(own.classes))])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.array([x[place == k].sum(axis=0) for k in range(len(own.classes))]) / sizes[:, None]
        values = np.concatenate([sizes / sizes.sum(), means.T.ravel()])
    return {name: float(value) for name, value in zip(class_names(own.classes, own.features), values, strict=True)}
