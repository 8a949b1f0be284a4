"""Confidence limits of two shares and their difference, from noisy counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.few import few

import confide as cf
from confide.methods.intervals.count_posteriors import NoisyTable
from confide.methods.intervals.marginals import NoiseLaw
from confide.noise import SimulatedNoise

ALARM = 1e-4  # of each cell
_RUNS = 500


@pytest.mark.parametrize("law", ["geometric", "normal"])
@pytest.mark.parametrize(
    ("first", "second", "part", "n", "budget"),
    few(
        [
            (0.3, 0.5, 0.5, 500, 0.5),
            (0.02, 0.05, 0.2, 1_000, 0.5),
            (0.0, 0.3, 0.1, 500, 1.0),
            (0.9, 0.9, 0.02, 100, 0.1),
        ],
        1,
        3,
    ),
)
def test_intervals_hold_what_they_say(
    law: str, first: float, second: float, part: float, n: int, budget: float
) -> None:
    g = np.random.default_rng([n, law == "normal"])
    noise = NoiseLaw(law, (2**0.5 if law == "normal" else 2.0) / budget)
    cells = [(1 - part) * (1 - first), (1 - part) * first, part * (1 - second), part * second]
    held = np.zeros(3)
    for _ in range(_RUNS):
        table = NoisyTable(g.multinomial(n, cells) + noise.draws(g, 4), n, noise)
        # what an interval holds, without its ends, which the other tests find
        scaled = [
            table._scaled(np.array([second - first]), 0.05),
            *(table._share_scaled(k, np.array([p]), 0.05) for k, p in enumerate((first, second))),
        ]
        held += [bool(np.abs(v[0]) <= 1) for v in scaled]
    # fails by chance where .95 holds exactly: once in 10,000
    assert (stats.binom.cdf(held, _RUNS, 0.95) > ALARM).all(), held / _RUNS


@pytest.mark.parametrize("alpha", [0.2, 0.05])
def test_noise_on_few_whole_numbers(alpha: float) -> None:
    """All of one group and none of the other have the outcome: what is not 0 in the counts that tell is noise alone."""
    g, noise = np.random.default_rng(5), NoiseLaw("geometric", 2 / 3)
    held = 0
    for _ in range(_RUNS):
        table = NoisyTable(np.array([0.0, 3.0, 27.0, 0.0]) + noise.draws(g, 4), 30, noise)
        held += abs(table._scaled(np.array([-1.0]), alpha)[0]) <= 1
    assert stats.binom.cdf(held, _RUNS, 1 - alpha) > ALARM, held / _RUNS


def test_the_greatest_differences_are_left_out_by_counts_that_no_noise_explains() -> None:
    """P(noise >= 2) is .04, P(noise >= 4) .002: with all of 50 and none of 50, the former comes in 8 % of all releases."""
    noise = NoiseLaw("geometric", 2 / 3)
    for none, low in ((2.0, True), (4.0, False)):
        for counts, side in (([none, 50.0, 50.0, 0.0], 0), ([50.0, 0.0, none, 50.0], 1)):
            end = NoisyTable(np.array(counts), 100, noise).difference(0.05)[side]
            assert (abs(end) == 1.0) == low


def test_without_noise_they_are_those_of_the_score() -> None:
    """Wilson's limits of a share, but for what the cumulants move; Miettinen and Nurminen's of a difference to 1 %."""
    table = NoisyTable(np.array([700.0, 300.0, 520.0, 480.0]), 2_000, NoiseLaw("normal", 1e-6))
    p, n, z = 0.3, 1_000, 1.959964
    middle, reach = (
        (p + z * z / (2 * n)) / (1 + z * z / n),
        z / (1 + z * z / n) * (p * 0.7 / n + (z / (2 * n)) ** 2) ** 0.5,
    )
    assert table.share(0, 0.05) == pytest.approx((middle - reach, middle + reach), abs=5e-4)
    wald = 1.959964 * (0.3 * 0.7 / n + 0.48 * 0.52 / n) ** 0.5
    assert table.difference(0.05) == pytest.approx((0.18 - wald, 0.18 + wald), rel=0.01)
    assert table.estimates == pytest.approx((0.18, 0.3, 0.48))


def test_narrow_wide_and_nested_intervals() -> None:
    """An interval far narrower than the first grid is found; noise alone leaves everything; a higher level is wider."""
    many = NoisyTable(np.array([7e8, 3e8, 5e8, 5e8]), 2_000_000_000, NoiseLaw("normal", 2.0))
    low, high = many.difference(0.05)
    assert low < 0.2 < high and high - low < 1e-4
    nothing = NoisyTable(np.array([-3.0, 40.0, 10.0, -80.0]), 20, NoiseLaw("geometric", 200.0))
    assert nothing.difference(0.05) == (-1.0, 1.0) and nothing.share(1, 0.05) == (0.0, 1.0)
    table = NoisyTable(np.array([70.0, 30.0, 50.0, 52.0]), 200, NoiseLaw("geometric", 4.0))
    for v in table.difference(0.05):
        assert abs(table._scaled(np.array([v]), 0.05)[0]) == pytest.approx(1.0, abs=1e-3)
    for v in table.share(1, 0.05):
        assert abs(table._share_scaled(1, np.array([v]), 0.05)[0]) == pytest.approx(1.0, abs=1e-3)
    (a, b), (c, d) = table.difference(0.05), table.difference(0.001)
    assert c < a < b < d


def test_noise_that_is_nearly_nothing_leaves_what_the_records_say() -> None:
    """Geometric noise that is hardly ever other than 0 has no end of kurtosis, and yet nothing to say."""
    for scale in (1e-4, 0.1, 0.2):
        table = NoisyTable(np.array([0.0, 8.0, 6.0, 2.0]), 16, NoiseLaw("geometric", scale))
        sharp = NoisyTable(np.array([0.0, 8.0, 6.0, 2.0]), 16, NoiseLaw("normal", 1e-4))
        for alpha in (0.2, 0.05, 0.001):
            for own, other in zip(
                (table.difference(alpha), table.share(0, alpha), table.share(1, alpha)),
                (sharp.difference(alpha), sharp.share(0, alpha), sharp.share(1, alpha)),
                strict=True,
            ):
                assert own == pytest.approx(other, abs=0.05), (scale, alpha)


@pytest.mark.parametrize("privacy", [cf.PureDP(1.0, relation="substitute"), cf.GDP(1.0, relation="substitute")])
def test_one_release_answers_both_kinds(privacy: cf.Guarantee) -> None:
    g = np.random.default_rng(3)
    frame = pd.DataFrame({"y": g.integers(0, 2, 900), "g": g.integers(0, 2, 900)})
    schema = cf.Schema({name: cf.Integer(0, 1, on_missing=0) for name in ("y", "g")})
    method = cf.intervals.Difference("y ~ g")
    release = cf.release(method, cf.read(frame, schema), privacy, ledger=None, noise=SimulatedNoise(4))
    credible, confidence = (
        method.infer(release, cf.core.ResultOptions(kind=kind)) for kind in ("credible", "confidence")
    )
    one, other = credible.conf_int().to_numpy(), confidence.conf_int().to_numpy()
    assert list(credible.names) == list(confidence.names) and np.abs(one - other).max() < 0.02
    assert "exact under the prior" in credible.intervals_for and "confidence" not in credible.intervals_for
    assert "confidence by the profile" in confidence.intervals_for and "prior" not in confidence.intervals_for
    called = cf.intervals.difference(
        cf.read(frame, schema), "y ~ g", privacy=privacy, ledger=None, kind="confidence", n=900, noise=SimulatedNoise(4)
    )
    assert called.conf_int().equals(confidence.conf_int())


@pytest.mark.parametrize(("budget", "status"), [(0.01, ("imprecise", "no_information")), (1.0, ("valid",))])
def test_noise_as_large_as_the_groups_is_never_ok(budget: float, status: tuple[str, ...]) -> None:
    """Those releases alone that noise moved away from the middle would be ok, and hold less than they say."""
    g = np.random.default_rng(3)
    frame = pd.DataFrame({"y": g.integers(0, 2, 800), "g": g.integers(0, 2, 800)})
    schema = cf.Schema({name: cf.Integer(0, 1, on_missing=0) for name in ("y", "g")})
    method, data = cf.intervals.Difference("y ~ g", kind="confidence"), cf.read(frame, schema)
    for seed in range(12):
        privacy = cf.PureDP(budget, relation="substitute")
        found = method.infer(cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(seed)))
        assert found.status in status
