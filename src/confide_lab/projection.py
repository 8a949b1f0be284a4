"""The line that HuberLine says it estimates when the relation is not linear: least squares with the weights that were released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide_lab.fits import Case, Fitted, fitted_of
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.huber.released_rounds import last_round

__all__ = ["fitted_with_projection"]

Array = NDArray[np.float64]


def fitted_with_projection(
    case: Case, whole: Case, generator: np.random.Generator, *, slope_bound: float | None = None
) -> tuple[Fitted, Array | None]:
    """HuberLine on `case`, and the slopes (d,) on `whole` of the line with the weights of that release; None where no round was
    released."""
    method = HuberLine(case.formula, slope_bound=slope_bound)
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
    release = cf.release(method, case.source, cf.GDP(case.mu), ledger=None, noise=noise)
    found = fitted_of(method.infer(release), case)
    try:
        done = last_round(case.design, release.statistics, release.public, str(release.charged.relation))
    except KeyError:
        return found, None
    middle, half = np.array(done.frame.box.middle), np.array(done.frame.box.half)
    z = np.column_stack([np.ones(len(whole.x)), (whole.x - middle) / half])
    with np.errstate(divide="ignore"):
        weights = np.minimum(1.0, done.cap / ((z @ done.frame.matrix) ** 2).sum(axis=1))
    root = np.sqrt(weights)
    theta, *_ = np.linalg.lstsq(z * root[:, None], whole.clipped * root, rcond=None)
    return found, np.asarray(theta[1:] / half, dtype=np.float64)
