"""The lab's populations of survey designs: what their one free number was chosen for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.few import few

from confide_lab.experiments import survey


def _uncentred_over_r(psus: int, apart: survey._Apart, samples: int) -> float:
    """The mean width of intervals that leave strata out over that of R's, without noise."""
    found = []
    for k in range(samples):
        frame, sampled = survey._sample(psus, 20, np.random.default_rng([7, k]), apart)
        theta = float(np.average(frame.y, weights=frame.w))
        sums = (frame.w * (frame.y - theta)).groupby([frame.h, frame.k]).sum().to_numpy() / frame.w.sum()
        count = len(sums)
        half = stats.t.ppf(0.975, count - 1) * np.sqrt(count / (count - 1) * (sums**2).sum())
        low, high = survey._r(frame, sampled)
        found.append(2 * half / (high - low))
    return float(np.mean(found))


@pytest.mark.parametrize(("psus", "page"), few([(160, 1.13), (400, 1.12)], 0))
def test_the_calibrated_population_has_the_widths_of_the_page(psus: int, page: float) -> None:
    """Within .015, and the other one has not; fixed samples."""
    assert abs(_uncentred_over_r(psus, survey._CALIBRATED, 60) - page) < 0.015
    assert _uncentred_over_r(psus, survey._OWN, 20) > page + 0.1
