"""The same analyses without privacy, on simulated records as their schema reads them: what intervals of regressions are judged against.

Source of the estimand: White 1980, the population's least-squares line, whatever the shape of the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.methods.regression.glm.fisher_families import Counts, Family
from confide.schema import ModelMatrix
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.terms import Term

_STEPS = 100
# Standardised coefficients run away where a line separates the outcomes.
_NO_MAXIMUM = 30.0


def least_squares(
    frame: Any, design: ModelMatrix, weight: Callable[[Array], Array] | None = None, by: Term | None = None
) -> dict[str, float]:
    """The least-squares coefficients of the clipped response on the clipped terms, by name, in the units of the data.

    frame : CodedFrame or DataFrame
        Simulated records, or a frame of them, which the design's schema then reads.
    weight : callable, optional
        Rows of the terms (records, p) -> weights of the records, where they do not count alike.
    by : Term, optional
        A column of weights, which records without one leave.

    Raises `PlanError` where the records do not determine them: an empty level, or fewer records than coefficients.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    >>> records = CodedFrame.of({"x": [0.0, 0.5, 1.0], "y": [0.0, 0.5, 7.0]}, schema)
    >>> {name: round(value, 3) + 0.0 for name, value in least_squares(records, ModelMatrix.of("y ~ x", schema)).items()}
    {'Intercept': 0.0, 'x': 1.0}
    """
    read = design if by is None else replace(design, terms=(*design.terms, by))
    x, y = (frame if isinstance(frame, CodedFrame) else CodedFrame.of(frame, design.schema)).rows(read)
    own = np.ones(len(x)) if by is None else x[:, -1]
    x = x if by is None else x[:, :-1]
    # columns of very different units are brought to one size, which changes no coefficient but for rounding
    size = np.sqrt((x * x).mean(axis=0)) if len(x) else np.zeros(x.shape[1])
    if not (size > 0).all():
        raise _undetermined(design)
    root = np.sqrt(own if weight is None else weight(x))
    found, _, rank, _ = np.linalg.lstsq(x / size * root[:, None], y * root, rcond=1e-11)
    if rank < x.shape[1]:
        raise _undetermined(design)
    return _named(design, found / size)


def _undetermined(design: ModelMatrix) -> PlanError:
    return PlanError(
        f"these simulated records do not determine the coefficients of {design.formula!r}: "
        "a level has no record, or one term follows from others",
        "give more records, or name fewer terms",
    )


def _named(design: ModelMatrix, values: Array) -> dict[str, float]:
    return {name: float(value) for name, value in zip(design.names, values, strict=True)}


def log_odds_line(frame: Any, design: ModelMatrix) -> dict[str, float]:
    """The coefficients of the likeliest logistic model, by name; values of the response from the middle of its bounds on count as 1.

    Newton's method with halved steps. Raises `PlanError` where there is no finite maximum: outcomes that a line separates.
    """
    x, y = CodedFrame.checked(frame).rows(design)
    label = np.where(y >= (float(design.response.low) + float(design.response.high)) / 2, 1.0, -1.0)
    middle, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if len(x) and design.intercept:
        middle[1:], scale[1:] = x[:, 1:].mean(axis=0), x[:, 1:].std(axis=0)
    if not len(x) or not (scale > 0).all():
        raise _undetermined(design)
    z = (x - middle) / scale
    theta = _likeliest(z, label)
    if theta is None:
        raise _undetermined(design)
    found = theta / scale
    found[0] -= float(middle @ found)
    return _named(design, found)


def likeliest_line(frame: Any, design: ModelMatrix, family: Family, by: Term | None = None) -> dict[str, float]:
    """The coefficients of the likeliest model of a family, by name: of counts the line of the mean's logarithm, whatever their variance.

    by: a column of weights, which records without one leave. Fisher scoring with halved steps on standardized features. Raises `PlanError`
    where there is no finite maximum.
    """
    x, y = CodedFrame.checked(frame).rows(design if by is None else replace(design, terms=(*design.terms, by)))
    weight = np.ones(len(x)) if by is None else x[:, -1]
    x, weight = x if by is None else x[:, :-1], weight / max(float(weight.mean()) if len(x) else 1.0, 1e-300)
    scale_of = family.high if isinstance(family, Counts) else 1.0
    target = np.asarray(y / scale_of if isinstance(family, Counts) else (y >= 0.5) * 1.0, dtype=np.float64)
    middle, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if len(x):
        middle[1:], scale[1:] = x[:, 1:].mean(axis=0), x[:, 1:].std(axis=0)
    if not len(x) or not (scale > 0).all() or not 0 < (weight * target).mean() < weight.mean():
        raise _undetermined(design)
    z = (x - middle) / scale
    theta = np.zeros(z.shape[1])
    theta[0] = family.link(float((weight * target).mean()))
    for _ in range(_STEPS):
        pull, own = (weight * one for one in family.pull(z @ theta, target))
        slope, bend = z.T @ pull / len(z), (z.T * own) @ z / len(z)
        # per outcome, as few of them make both small
        if np.linalg.eigvalsh(bend)[0] < 1e-9 * float(own.mean()) or np.abs(theta).max() > _NO_MAXIMUM:
            break
        step, size = np.linalg.solve(bend, slope), 1.0
        if float(slope @ step) < 1e-20 * float(own.mean()):
            found = theta / scale
            found[0] -= float(middle @ found)
            return _named(design, found)
        now = float((weight * family.loss(z @ theta, target)).mean())
        while float((weight * family.loss(z @ (theta - size * step), target)).mean()) > now and size > 1e-6:
            size /= 2
        theta = theta - size * step
    raise _undetermined(design)


def _likeliest(z: Array, label: Array) -> Array | None:
    theta = np.zeros(z.shape[1])

    def loss(at: Array) -> float:
        return float(np.logaddexp(0.0, -label * (z @ at)).mean())

    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(label * (z @ theta)))
        slope = -(z.T @ (label * p)) / len(z)
        bend = (z.T * (p * (1 - p))) @ z / len(z)
        if np.linalg.eigvalsh(bend)[0] < 1e-12:
            return None
        step, size = np.linalg.solve(bend, slope), 1.0
        if float(slope @ step) < 1e-20:
            return theta
        while loss(theta - size * step) > loss(theta) and size > 1e-6:
            size /= 2
        theta = theta - size * step
    return None
