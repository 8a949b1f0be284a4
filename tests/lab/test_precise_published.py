"""The published posterior-quantile mechanism does not keep its promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import confide as cf
import confide.audit
from confide_lab.published.precise import (
    C0,
    beta_bins,
    density_gap,
    draws_of,
    l1_change,
    leak_event,
    least_epsilon,
    ppquantile,
    precise,
)


def test_it_has_no_guarantee() -> None:
    for one in (precise, ppquantile):
        assert one.guarantee is None and one.errata and one.claim


def test_c0_is_the_largest_slope_of_the_normal_density() -> None:
    x = np.linspace(0, 3, 30_001)
    slope = x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    assert pytest.approx(slope.max(), abs=1e-9) == C0 and pytest.approx(0.2419707, abs=1e-7) == C0


def test_the_supremum_of_definition_4_is_n_plus_1() -> None:
    for n in (100, 5000):
        assert density_gap(0, 1, n) == pytest.approx(n + 1, rel=1e-9)


@pytest.mark.parametrize(("width", "m", "l1", "l2"), [(0.005, 82, 14.06, 2.20), (0.001, None, 70.9, 4.96)])
def test_one_record_moves_all_bins(width: float, m: int | None, l1: float, l2: float) -> None:
    m = m or draws_of(density_gap(30, 31, 100), width)
    found = l1_change(beta_bins(30, 100, width), beta_bins(31, 100, width), m)
    assert found == pytest.approx((l1, l2), rel=6e-3)


@pytest.mark.parametrize(
    ("n", "k", "width", "m", "epsilon", "true"),
    [
        (100, 30, 0.005, 82, 0.1, 1.41),
        (100, 30, 0.005, 82, 0.5, 6.64),
        (100, 30, 0.005, 82, 1.0, 11.1),
        (500, 150, 0.005, 84, 0.1, 0.65),
        (500, 150, 0.005, 84, 1.0, 5.19),
        (100, 0, 0.005, 86, 0.1, 6.40),
        (100, 0, 0.005, 86, 1.0, 53.9),
        (100, 0, 0.0005, 9, 0.1, 0.67),
        (100, 0, 0.0005, 9, 1.0, 5.64),
    ],
)
def test_the_true_epsilon_is_far_above_the_claim(
    n: int, k: int, width: float, m: int, epsilon: float, true: float
) -> None:
    found = least_epsilon(beta_bins(k, n, width), beta_bins(k + 1, n, width), m, epsilon)
    assert found == pytest.approx(true, rel=6e-3)
    assert found > 5 * epsilon


@pytest.mark.parametrize(("epsilon", "true"), [(0.1, 1.55), (1.0, 12.1)])
def test_so_it_is_for_the_mean_of_a_normal_column(epsilon: float, true: float) -> None:
    """N(mean, 1) in [-4, 4] of 100 records: one of them moves the posterior N(., .01) by 8/100."""
    edges, width = np.arange(-400, 401) / 100, 0.01
    m = draws_of(8 * C0, width)
    p, q = (np.diff(norm.cdf(edges, centre, 0.1)) for centre in (0.0, 0.08))
    assert m == 25 and l1_change(p, q, m)[0] == pytest.approx(15.5, abs=0.05)
    assert least_epsilon(p, q, m, epsilon) == pytest.approx(true, rel=6e-3)


@pytest.mark.parametrize(("width", "low", "high"), [(0.0005, 0.05, 0.9), (0.005, 0.23, 0.29)])
def test_the_collapse_tells_data_apart_at_no_budget_at_all(width: float, low: float, high: float) -> None:
    generator = np.random.default_rng(1)
    rates = [
        np.mean([leak_event(k, 500, 1e-6, generator, width=width) < 0.266 for _ in range(400)]) for k in (108, 158)
    ]
    # with epsilon = 1e-6 per record and 50 records apart the two rates may differ by a factor 1.00005
    assert rates[0] >= high and rates[1] <= low


def test_tails_become_bins_whose_counts_get_noise() -> None:
    """Ten draws in two bins of ten: four counts are noisy with a bin for each tail, two without, ten where nothing is collapsed."""
    draws = np.repeat([0.45, 0.55], 5)
    settings = {"bounds": (0.0, 1.0), "width": 0.1, "epsilon": 1.0}
    found = {
        tails: [precise(draws, np.random.default_rng(s), **settings, tails=tails) for s in range(300)]  # type: ignore[arg-type]
        for tails in ("collapsed", "dropped", "kept")
    }
    assert [found[tails][0]["bins"] for tails in found] == [4, 2, 10]
    assert all(0.4 <= one["lower"] <= one["upper"] <= 0.6 for one in found["dropped"])
    # uniform over a wide bin
    outside = [one["lower"] for one in found["collapsed"] if one["lower"] < 0.4]
    assert len(outside) > 30 and np.mean(outside) == pytest.approx(0.2, abs=0.05)


def test_a_tail_s_counts_go_with_it() -> None:
    """A threshold of 1 collapses a bin of one draw: without noise the lower end of a (m) version is found in the tail."""
    draws = np.array([0.05] * 1 + [0.45] * 5 + [0.55] * 5)
    settings = {"bounds": (0.0, 1.0), "width": 0.1, "epsilon": 1e9, "threshold": 1, "total": "m", "alpha": 0.18}
    ends = [precise(draws, np.random.default_rng(s), **settings) for s in range(20)]  # type: ignore[arg-type]
    assert all(one["lower"] < 0.4 <= one["upper"] for one in ends)
    dropped = [precise(draws, np.random.default_rng(s), **settings, tails="dropped") for s in range(20)]  # type: ignore[arg-type]
    assert all(one["lower"] >= 0.4 for one in dropped)


def test_the_audit_flags_it_on_two_records_that_differ() -> None:
    """k = 0 and 1 of n = 100, the (+, m*) version, m by the authors' G at p = .3; the released pair alone."""
    width = 0.0005
    m = draws_of(C0 / 0.21, width)
    generator = np.random.default_rng(2)

    def released(records: np.ndarray) -> float:
        k, n = int(records.sum()), len(records)
        draws = generator.beta(1 + k, 1 + n - k, m)
        return float(precise(draws, generator, bounds=(0.0, 1.0), width=width, epsilon=0.1)["lower"])

    none, one = np.zeros(100), np.r_[1.0, np.zeros(99)]
    found = cf.audit.epsilon_lower_bound(released, none, one, claim=cf.PureDP(0.1, relation="substitute"), runs=6_000)
    assert found.violated, str(found)


def test_the_audit_does_not_flag_a_noisy_count_of_the_same_records() -> None:
    """The same auditor, runs and records on what it should pass."""
    generator = np.random.default_rng(3)
    none, one = np.zeros(100), np.r_[1.0, np.zeros(99)]
    found = cf.audit.epsilon_lower_bound(
        lambda records: float(records.sum() + generator.laplace(0, 1 / 0.5)),
        none,
        one,
        claim=cf.PureDP(0.5, relation="substitute"),
        runs=6_000,
    )
    assert not found.violated, str(found)
