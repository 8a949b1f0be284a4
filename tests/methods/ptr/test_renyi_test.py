"""Algorithm 6 as a building block: it passes as often as it says, and its Renyi bound is the corrected one."""

from __future__ import annotations

from math import inf, nan

import pytest
from scipy.stats import binom, norm

from confide import ptr
from confide.errors import PrivacyError
from confide.guarantees import GDP
from confide.noise import SimulatedNoise


def test_it_passes_falsely_as_rarely_as_it_says_and_far_data_surely() -> None:
    test, noise, runs = ptr.RenyiTest(mu=1.0, false_pass=0.05), SimulatedNoise(1), 4_000
    passed = sum(test(0.0, noise) for _ in range(runs))
    assert binom.sf(passed - 1, runs, 0.05) > 1e-4 and binom.cdf(passed, runs, 0.05) > 1e-4
    assert test.threshold == pytest.approx(-norm.ppf(0.05), rel=1e-5)
    assert all(test(20.0, noise) for _ in range(50))
    strict = ptr.RenyiTest(mu=1.0, false_pass=1e-12)
    assert not any(strict(distance, noise) for distance in (nan, -inf, -1.0, 0.0) for _ in range(20))
    assert strict(inf, noise)


def test_its_bound_is_that_of_the_corrected_theorem() -> None:
    test = ptr.RenyiTest(mu=0.5, false_pass=1e-6)
    for order in (1.5, 2.0, 8.0):
        assert test.rdp(order, conditional=0.1, overall=2.0) == ptr.generalized_rdp(
            order, conditional=0.1, overall=2.0, test=GDP(0.5), false_pass=1e-6
        )
    found = test.guarantee(1e-5, conditional=lambda a: 0.02 * a, overall=lambda a: 0.1 * a)
    more = test.guarantee(1e-5, conditional=lambda a: 0.05 * a, overall=lambda a: 0.1 * a)
    assert 0 < found.epsilon < more.epsilon and found.delta == 1e-5


def test_what_is_out_of_range_is_refused() -> None:
    for wrong in ({"mu": 0.0}, {"mu": nan}, {"false_pass": 0.0}, {"false_pass": 0.5}):
        with pytest.raises(PrivacyError):
            ptr.RenyiTest(**({"mu": 0.5, "false_pass": 1e-6} | wrong))
    with pytest.raises(PrivacyError):
        ptr.RenyiTest(0.5, 1e-6).guarantee(0.0, conditional=lambda a: a, overall=lambda a: a)
