"""The table of a perturbed logistic fit: from what "objective", "output" and "ptr" release to log-odds in the data's units."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from confide.aggregates.lines.labelled_rows import CurvatureRows, LabelledRows
from confide.guarantees import ApproxDP
from confide.methods.regression.likelihood.logistic_design import log_odds
from confide.methods.regression.likelihood.logistic_reading import Reading, read
from confide.methods.regression.likelihood.logistic_results import LogisticEstimates
from confide.methods.regression.linear import legend
from confide.protocol import Release
from confide.schema import Design

__all__ = ["perturbed_table"]


def perturbed_table(method: Any, release: Release) -> LogisticEstimates:
    """The table of a release that `method`, a `Logistic`, planned."""
    design, levels = method._design(release.plan.schema)
    reading, ridge, sd = _read(method, release, design)
    matrix = log_odds(design)
    p = len(reading.theta)
    status = "weak" if reading.weak else "ok"
    flags: tuple[str, ...] = ()
    covariance = matrix @ reading.covariance @ matrix.T
    if not method._share:
        status, flags, covariance = "ok", ("no_interval",), np.full((p, p), np.nan)
    own = np.full(p, np.nan) if status == "weak" or flags else np.diag(matrix @ reading.noise @ matrix.T)
    return LogisticEstimates.of(
        release,
        response=design.response.name,
        names=design.names,
        estimates=matrix @ reading.theta,
        covariance=(covariance + covariance.T) / 2,
        noise_variance=own,
        status=status,
        reason=reading.weak if status == "weak" else "",
        flags=flags,
        facts=(
            ("Outcome", f"{levels[1]} against {levels[0]}"),
            (
                "Mechanism",
                f"{method.mechanism} perturbation"
                if method.mechanism != "ptr"
                else "output perturbation with a certificate",
            ),
            (
                "Ridge",
                f"{ridge:.4g} in scaled units" + (", its bias taken off" if status == "ok" and not flags else ""),
            ),
            ("Noise", f"sd {sd:.4g} on the gradient" if method.mechanism == "objective" else f"sd {sd:.4g} on theta"),
        ),
        legend=legend(design, release.plan.schema)[1:],
        design=design,
        levels=levels,
        ridge=ridge,
    )


def _read(method: Any, release: Release, design: Design) -> tuple[Reading, float, float]:
    """The reading, lam, and the sd of the noise that decides."""
    labelled, cut = LabelledRows(design), method._cut(design)
    p = labelled.width
    if method.mechanism == "objective":
        level = release.plan.requested
        assert isinstance(level, ApproxDP)
        perturbed = method._perturbed(design, level)
        drawn = release["logistic"].decode()
        theta, ridge, tilt, output, spread = (
            drawn[:p],
            perturbed.ridge,
            perturbed.sd,
            perturbed.output_sd,
            perturbed.curvature_sd,
        )
        upper = drawn[p:]
    else:
        noisy, step = release["minimiser"], float(release.public["step"][0])
        theta, ridge = noisy.decode() * step, float(release.public["ridge"][0])
        tilt, output = 0.0, sqrt(noisy.variance) * step
        upper, spread = np.empty(0), 0.0
        if method._share:
            bent, unit = release["curvature"], CurvatureRows(labelled, cut).unit ** 2
            upper, spread = bent.decode()[np.triu_indices(p)] / unit, sqrt(bent.variance) / unit
    if not method._share:
        nothing = np.full((p, p), np.nan)
        return Reading(theta, nothing, nothing, ""), ridge, tilt or output
    whole = np.zeros((p, p))
    whole[np.triu_indices(p)] = upper
    whole.T[np.triu_indices(p)] = upper
    return read(theta, whole, ridge=ridge, tilt=tilt, output=output, spread=spread), ridge, tilt or output
