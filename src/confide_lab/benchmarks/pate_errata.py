"""The numbers in evidence/errata.md on teachers' votes and votes between two: Theorem 5.4, Lemma 5.5, Theorem 23, Figure 3, Theorem C.13.

confide lab bench pate_errata
"""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.guarantees.mechanisms.noisy_max import published_rdp
from confide.methods.voting.rules import vote_loss
from confide_lab.benchmarks.acceptance import _row
from confide_lab.published.components import projector_move
from confide_lab.published.pate import (
    gnmax_exact,
    lemma_cost,
    printed_cost,
    printed_smooth_cost,
    smooth_cost,
    smooth_quadrature,
)

__all__ = ["run"]


def run() -> list[dict[str, Any]]:
    """Each number of the page, within its last digit."""
    rows = []
    for sigma, gap, order, value, printed in (
        (5.0, 40.0, 50.0, 1.305, 3.7e-4),
        (5.0, 40.0, 20.0, 0.703, 0.0101),
        (2.0, 16.0, 10.0, 2.286, 6.7e-4),
    ):
        exact = gnmax_exact(gap, order, sigma)
        said = f"Theorem 5.4, sigma={sigma:g} gap={gap:g} alpha={order:g}: claimed {printed_cost(order, sigma):.2g}"
        rows.append(_row(said, exact, value - 2e-3, value + 2e-3))
        rows.append(
            _row(f"its printed cost, about {printed:g}", printed_cost(order, sigma), printed * 0.98, printed * 1.02)
        )
    for order, beta, printed, value in (
        (49.0, 0.01, 0.2731, 3.616),
        (50.0, 0.008, 0.2504, 0.5378),
        (50.0, 0.0099, 0.2838, 5.549),
    ):
        said = (
            f"Theorem 23, alpha={order:g} beta={beta:g} sigma=15: claimed {printed_smooth_cost(order, beta, 15.0):.4f}"
        )
        rows.append(_row(said, smooth_cost(order, beta, 15.0), value * 0.999, value * 1.001, printed=printed))
        rows.append(
            _row(
                "the same by quadrature of one pair",
                smooth_quadrature(order, beta, 15.0),
                value * 0.99,
                value * 1.001,
            )
        )
    for order, beta, value in ((5.0, 0.04, 0.02731), (2.0, 0.1, 0.03084)):
        said = f"Lemma 5.5, alpha={order:g} sigma=15: claimed {lemma_cost(order, 15.0):.5f}"
        rows.append(_row(said, smooth_cost(order, beta, 15.0), value * 0.999, value * 1.001))
    reverse = gnmax_reverse(38.0, 5.0, 5.0)
    bound = float(published_rdp(np.array(float(np.log(_tail(38.0, 5.0)))), 5.0, 5.0))
    rows.append(_row("reverse direction over the published bound, gap 38, sigma 5, alpha 5", reverse / bound, 2.3, 2.4))
    for gap, value in ((0, 8.208), (1, 9.394), (10, 9.907), (100, 9.990)):
        rows.append(_row(f"Figure 3 (a), gap {gap}", vote_loss(gap, 10.0, 0.0), value - 1e-3, value + 1e-3))
    for gap, relation, value in ((3.0, "add-remove", 0.287), (20.0, "add-remove", 0.0363), (3.0, "substitute", 0.777)):
        rows.append(
            _row(
                f"projector's move, {relation}, gap {gap:g}", projector_move(gap, relation), value - 6e-4, value + 6e-4
            )
        )
    return rows


def _tail(gap: float, sigma: float) -> float:
    from scipy import stats

    return float(stats.norm.sf(gap / (np.sqrt(2) * sigma)))


def gnmax_reverse(gap: float, order: float, sigma: float) -> float:
    """D(M(X') || M(X)) of one label between two classes, X' with a gap of 2 less."""
    p, q = _tail(gap - 2, sigma), _tail(gap, sigma)
    return float(np.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1))
