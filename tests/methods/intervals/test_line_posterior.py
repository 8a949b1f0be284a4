"""Draws of the moments of a line: entry by entry where few draws of the noise are positive definite, against those of the noise itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from confide.methods.intervals import normal_posteriors as line
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.normal_posteriors import NoisyMoments

ALARM = 1e-4  # of each comparison of a series, eleven of them


def _noisy(law: str, fixed: bool) -> NoisyMoments:
    """Of 60 records, two predictors, and noise that leaves 2 to 30 % of its draws positive definite."""
    g = np.random.default_rng(5)
    rows = np.c_[np.ones(60), g.uniform(-1, 1, (60, 2)), g.uniform(-0.3, 0.3, 60)]
    matrix = rows.T @ rows
    matrix[3, 3] = 1.0
    wide = 2.0 if law == "normal" else 1.0
    return NoisyMoments(matrix, NoiseLaw(law, 6.0 * wide), NoiseLaw(law, 8.0 * wide), 60, fixed)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_single_entries_are_drawn_as_whole_matrices_are(law: str, fixed: bool) -> None:
    noisy, g = _noisy(law, fixed), np.random.default_rng(1)
    drawn = noisy.matrix + line._noise(noisy, g, 120_000)
    direct = drawn[line._positive(drawn)]
    assert 0.02 < len(direct) / len(drawn) < 0.3
    found, rhat = line._gibbs(noisy, np.random.default_rng(2))
    assert rhat < line.AGREED and (np.linalg.eigvalsh(found) > 0).all()
    # sweeps are hardly correlated: every second draw of a chain is taken for a fresh one
    found = found.reshape(line._CHAINS, -1, 4, 4)[:, ::2].reshape(-1, 4, 4)
    for i in range(4):
        for j in range(i, 4):
            if not (fixed and i == j == 0):
                assert stats.ks_2samp(found[:, i, j], direct[:, i, j]).pvalue > ALARM, (i, j)
    # what the interval is made of, not the entries alone
    smallest = [np.linalg.eigvalsh(m)[:, 0] for m in (found, direct)]
    assert stats.ks_2samp(*smallest).pvalue > ALARM


def test_chains_that_do_not_agree_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_SWEEPS", 10)
    said = iter([1.2] * 4 + [1.05] * 4 + [1.005] * 4)
    monkeypatch.setattr(line, "_rank_rhat", lambda series: next(said))
    found, rhat = line._gibbs(_noisy("normal", True), np.random.default_rng(3))
    assert rhat == 1.005 and len(found) == line._CHAINS * line._SWEEPS and next(said, None) is None
