"""Posterior and confidence region of a mean and a standard deviation, where they are narrow beside the box and far from its middle."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from confide.methods.intervals.count_posteriors import ColumnShape
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NormalSums, confidence_region, normal_posterior

# Mean and standard deviation in half-ranges, records, budget.
PLACES = [
    (-0.168, 0.0338, 10_000, 1.0),
    (0.9, 0.01, 1_000_000, 1.0),
    (0.0, 0.03, 10_000, 1.0),
    (0.5, 0.005, 7_000, 0.7),
    (-0.04, 0.2, 300, 2.0),
]


def _sums(place: tuple[float, float, int, float], law: str, column: bool) -> NormalSums:
    """Sums as expected, but for a standard deviation of each."""
    m, s, n, budget = place
    laws = [NoiseLaw(law, scale / budget) for scale in ((2.0, 1.2) if law == "normal" else (2.0, 4.0))]
    first, second = n * m, n * (m * m + s * s)
    off = sqrt(n * s * s + laws[0].variance)
    return NormalSums(
        n,
        first + off,
        second + 2 * m * off + sqrt(laws[1].variance),
        laws[0],
        laws[1],
        1e-3,
        1.0,
        ColumnShape(0.0, 2.0) if column else None,
    )


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_narrow_posterior_is_found_wherever_it_lies(
    place: tuple[float, float, int, float], law: str, column: bool
) -> None:
    """Moments against those of a grid that is laid about the truth; steps of a tenth of a standard deviation and finer."""
    m, s, n, _ = place
    sums = _sums(place, law, column)
    far = 12 * sqrt(n * s * s + sums.law1.variance) / n
    # the standard deviation may be much smaller than its noise lets be seen, hardly larger
    most = min(
        1.0, sqrt(s * s + 9 * (sqrt(sums.law2.variance) + 2 * abs(m) * sqrt(sums.law1.variance) + s * s) / n) * 2
    )
    points, log_s = (
        np.linspace(sums.first / n - far, sums.first / n + far, 241),
        np.linspace(np.log(1e-3), np.log(most), 401),
    )
    grid = points[:, None], np.exp(log_s)[None, :]
    weights = sums.log_likelihood(*grid) + sums.log_prior("uniform", *grid)
    shares = np.exp(weights - weights.max()).sum(axis=1)
    mean = float(shares @ points / shares.sum())
    sd = sqrt(float(shares @ (points - mean) ** 2 / shares.sum()))
    found = normal_posterior(sums).mean
    low, high = found.quantile(np.array([0.025, 0.975]))
    cumulated = (np.cumsum(shares) - shares / 2) / shares.sum()
    assert np.interp([low, high], points, cumulated) == pytest.approx([0.025, 0.975], abs=0.006)
    assert found.mean == pytest.approx(mean, abs=0.02 * sd)


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_narrow_confidence_region_is_found(place: tuple[float, float, int, float], law: str) -> None:
    """It holds the truth, one standard deviation off, and is no wider than twice what the first sum alone would need."""
    m, s, n, _ = place
    sums = _sums(place, law, True)
    points, sds, inside = confidence_region(sums, 0.05)
    held, held_s = points[inside.any(axis=1)], sds[inside.any(axis=0)]
    assert held.min() <= m <= held.max() and held_s.min() <= s <= held_s.max()
    assert held.max() - held.min() <= 2 * 3.92 * sqrt(n * s * s + sums.law1.variance) / n
