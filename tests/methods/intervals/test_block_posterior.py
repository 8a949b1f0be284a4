"""Any sampler on blocks: what it says, what is refused, and that a sampler which fails changes nothing but numbers."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.methods.intervals.block_posterior import BlockPosterior, _nearest, rank_scores
from confide.noise import SimulatedNoise
from confide.testing import check_method

SCHEMA = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint"), "y": cf.Numeric(-2, 2, on_missing="midpoint")})
ASKED = {"privacy": cf.PureDP(4.0), "ledger": None, "progress": False}


def _data(n: int, seed: int = 1) -> object:
    g = np.random.default_rng(seed)
    x = g.normal(1.0, 1.0, n)
    return cf.read({"x": x, "y": 0.5 * x / 4 + g.normal(0, 0.2, n)}, SCHEMA)


def conjugate(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    x = table[:, 0]
    return generator.normal(x.mean(), x.std() / len(x) ** 0.5, 200)


def stretch(table: np.ndarray, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """An ensemble sampler in the manner of emcee, of mean and log sd of a normal."""
    x, walkers = table[:, 0], 12

    def log_density(at: np.ndarray) -> float:
        return -len(x) * at[1] - float(((x - at[0]) ** 2).sum()) / (2 * np.exp(2 * at[1]))

    at = np.column_stack([x.mean() + 0.1 * generator.normal(size=walkers), generator.normal(0, 0.1, walkers)])
    heights, kept = np.array([log_density(one) for one in at]), []
    for step in range(80):
        for i in range(walkers):
            other = at[(i + generator.integers(1, walkers)) % walkers]
            z = (1 + generator.random()) ** 2 / 2
            moved = other + z * (at[i] - other)
            height = log_density(moved)
            if np.log(generator.random()) < np.log(z) + height - heights[i]:
                at[i], heights[i] = moved, height
        if step >= 30:
            kept.append(at.copy())
    draws = np.concatenate(kept)
    return {"mean": draws[:, 0], "sd": np.exp(draws[:, 1])}


def bootstrap(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Slopes of scikit-learn's line on resampled rows."""
    from sklearn.linear_model import LinearRegression

    rows = generator.integers(0, len(table), (20, len(table)))
    return np.array([LinearRegression().fit(table[own, :1], table[own, 1]).coef_ for own in rows])


@pytest.mark.long
@pytest.mark.parametrize(
    ("sampler", "parameters", "truth", "seconds"),
    [
        (stretch, {"mean": (-4, 4), "sd": (0.05, 4)}, [1.0, 1.0], 8.0),
        (bootstrap, {"slope": (-1, 1)}, [0.125], 12.0),
    ],
)
def test_a_sampler_of_any_kind_gives_intervals(sampler, parameters, truth, seconds) -> None:
    start = time.monotonic()
    found = cf.intervals.block_posterior(
        sampler,
        _data(5_000, 4),
        parameters=parameters,
        blocks=25,
        seconds=seconds,
        jobs=5,
        n=5_000,
        noise=SimulatedNoise(1),
        **{**ASKED, "privacy": cf.PureDP(8.0)},
    )
    assert time.monotonic() - start >= seconds
    ends = found.conf_int()
    assert found.names == tuple(parameters) and found.status == "valid"
    assert ((ends[0] < truth) & (truth < ends[1])).all()
    assert (ends[1] - ends[0] < 0.4).all() and (found.params.to_numpy() == pytest.approx(truth, abs=0.15))


def _broken() -> list[float]:
    raise ValueError("a record")


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize(
    "says",
    [_broken, lambda: [np.nan] * 5, lambda: [np.inf, 1.0], list, lambda: [[[0.0]]], lambda: "no", lambda: None],
    ids=["raises", "nan", "infinite", "none", "shape", "text", "nothing"],
)
def test_a_sampler_that_always_fails_on_records_gives_a_release(says) -> None:
    """Practice records spread over the bounds, and these do not: it raises on all blocks, which says the middle of the bounds.

    Another of the 65,536 points comes out with a chance of about 65,536 exp(-25 epsilon/8): below 1e-11 at epsilon 12, a fifth at 4.
    """

    def failing(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        if table[:, 0].std() < 1.6:
            return says()
        return generator.normal(size=10)

    found = cf.intervals.block_posterior(
        failing,
        _data(500),
        parameters={"mean": (-4, 4)},
        blocks=25,
        seconds=2,
        jobs=5,
        n=500,
        **ASKED | {"privacy": cf.PureDP(12.0)},
    )
    assert found.params.iloc[0] == pytest.approx(0.0, abs=0.1)
    assert (found.status, found.flags) == ("no_information", ("most_blocks_failed",))
    assert found.conf_int().to_numpy().tolist() == [[-4.0, 4.0]]


@pytest.mark.parametrize(("failing", "status"), [(10, "valid"), (40, "no_information")])
def test_blocks_of_which_most_fail_say_so_of_all_their_parameters(failing, status) -> None:
    """From released medians alone; a few that fail are not seen in them, which is what the intervals assume."""
    g, method = np.random.default_rng(2), BlockPosterior(conjugate, {"mean": (-4, 4), "share": (0, 1)}, 50)
    found = np.stack([g.normal([0.7, 0.3], 0.05, (50, 2)), np.full((50, 2), 0.05)], axis=1)
    found[:failing] = [[0.0, 0.5], [2.0, 0.25]]  # the middle, and half of what a sd may be at most
    chosen = method.medians(found, SimulatedNoise(1), 16.0)
    _, limits = method.read(chosen, 16.0, "1")
    low, high = limits(0.05)
    assert ((low == [-4, 0]) & (high == [4, 1])).all() == (status == "no_information")
    assert method._failed(chosen).tolist() == [status == "no_information"] * 2


def _hanging(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    time.sleep(600)
    return np.zeros(5)


def _hungry(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return np.ones(2**26).cumsum()[:5]  # 512 MB


def _ending(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    os._exit(3)


@pytest.mark.parametrize(
    "sampler",
    [
        _hanging,
        _hungry,
        _ending,
    ],
)
def test_a_sampler_that_is_too_much_for_the_caller_is_refused_by_the_plan(sampler) -> None:
    start, method = time.monotonic(), BlockPosterior(sampler, {"mean": (-4, 4)}, blocks=25, seconds=3, memory=64)
    with refuses(cf.errors.PlanError):
        cf.plan(method, SCHEMA, cf.PureDP(4.0), n=1_000)
    assert time.monotonic() - start < 300


@pytest.mark.usefixtures("blocks_in_place")
def test_the_release_is_the_same_for_the_same_noise_and_reads_back() -> None:
    method = BlockPosterior(conjugate, {"mean": (-4, 4)}, blocks=25, seconds=3.0, jobs=5)
    one, two = (
        cf.release(method, _data(1_000), cf.PureDP(4.0), ledger=None, n=1_000, noise=SimulatedNoise(3))
        for _ in range(2)
    )
    assert one.sha256 == two.sha256
    again = cf.infer(cf.Release.from_json(one.to_json()))
    assert again.to_json() == method.infer(one).to_json()
    assert "takes 3 s in every case: 25 blocks, 5 side by side" in str(cf.plan(method, SCHEMA, cf.PureDP(4.0), n=1_000))


@pytest.mark.parametrize("draws", [np.zeros((4_000, 1)), [[0.1, 0.2]], pd.DataFrame({"mean": [0.1]})])
def test_draws_of_all_records_are_refused_with_the_reason(draws) -> None:
    with refuses(cf.errors.PrivacyError):
        cf.intervals.block_posterior(draws, _data(100), parameters={"mean": (-4, 4)}, **ASKED)


def _raising(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    raise KeyError("theta")


@pytest.mark.parametrize(
    ("settings", "privacy", "n"),
    [
        ({"blocks": 9}, 4.0, 1_000),
        ({}, 1.0, 1_000),
        ({"parameters": {"a": (0, 1), "b": (0, 1)}}, 3.0, 1_000),
        ({}, 4.0, 200),
        ({"parameters": {"mean": (4, -4)}}, 4.0, 1_000),
        ({"parameters": {}}, 4.0, 1_000),
        ({"seconds": 0}, 4.0, 1_000),
        ({"sampler": _raising}, 4.0, 1_000),
        ({"seconds": 0.5}, 4.0, 1_000),
        ({"sampler": lambda table, generator: table}, 4.0, 1_000),
        ({"sampler": lambda table, generator: [np.nan] * 5}, 4.0, 1_000),
        ({"sampler": 3}, 4.0, 1_000),
        ({"where": "x > 0"}, 4.0, 1_000),
    ],
)
def test_what_cannot_be_is_refused_before_the_records(settings, privacy, n) -> None:
    with refuses(cf.errors.PlanError):
        cf.plan(
            BlockPosterior(**{"sampler": conjugate, "parameters": {"mean": (-4, 4)}, **settings}),
            SCHEMA,
            cf.PureDP(privacy),
            n=n,
        )


def _slow(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    time.sleep(0.2)
    return np.zeros(5)


def test_a_sampler_that_takes_longer_than_a_block_has_is_refused(monkeypatch) -> None:
    """It takes 0.2 s or more, as busy as the machine is; in the words of the refusal, by a clock that goes on by 0.25 s at a look."""
    method = BlockPosterior(_slow, {"mean": (-4, 4)}, seconds=6)
    with pytest.raises(cf.errors.PlanError, match=r"took [\d.e+]+ s .* a block has 0\.11 s: write seconds="):
        cf.plan(method, SCHEMA, cf.PureDP(4.0), n=1_000)
    looks = itertools.count()
    monkeypatch.setattr("confide.sums.blocks.record_block.monotonic", lambda: next(looks) / 4)
    with refuses(cf.errors.PlanError):
        cf.plan(replace(method, sampler=conjugate), SCHEMA, cf.PureDP(4.0), n=1_000)


def test_one_block_moves_the_choice_by_no_more_than_its_share() -> None:
    """Scores of all points of a grid, for blocks of which one says something else: at most 2 apart, exactly."""
    g, points = np.random.default_rng(5), np.linspace(-1, 1, 101)
    for _ in range(200):
        values = g.choice(points, 20)
        other = values.copy()
        other[g.integers(20)] = g.choice([-1.0, 1.0, g.uniform(-1, 1)])
        scores = [rank_scores(np.bincount(_nearest(points, v), minlength=101), Fraction(1, 2)) for v in (values, other)]
        assert np.abs(scores[0] - scores[1]).max() <= 2


def first_rows(table: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A bootstrap: what it says hangs on the order of the rows."""
    return table[generator.integers(0, len(table), 20), 0] if len(table) else np.zeros(20)


@pytest.mark.usefixtures("blocks_in_place")
def test_a_record_more_moves_what_one_block_says(monkeypatch) -> None:
    """Whole: of what the release is chosen from, under add-remove. The number of blocks does not follow from that of records."""
    seen, medians = [], BlockPosterior.medians
    monkeypatch.setattr(
        BlockPosterior, "medians", lambda self, found, *rest: seen.append(found) or medians(self, found, *rest)
    )
    schema = cf.Schema({"x": cf.Integer(0, 4_000_000, on_missing=0)})
    method = BlockPosterior(first_rows, {"mean": (0, 4e6)}, blocks=25, seconds=3.0, jobs=25)
    x = np.random.default_rng(7).integers(0, 1_000_000, 400)
    for seed, more in enumerate((900_000, 3_900_000, int(x[0]), 0)):
        seen.clear()
        for values in (x, np.append(x, more), np.append(more, x)[: 100 * seed + 1]):
            data = cf.read({"x": values}, schema)
            cf.release(method, data, cf.PureDP(4.0, relation="add-remove"), ledger=None, noise=SimulatedNoise(seed))
        assert [found.shape for found in seen] == [(25, 2, 1)] * 3
        assert (seen[0] != seen[1]).any(axis=(1, 2)).sum() == 1


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_keys_are_drawn_anew_and_do_not_follow_from_records(relation, monkeypatch) -> None:
    """With a key that is known beforehand a replaced record could move all blocks; one that follows from records is no key."""
    from confide.sums.blocks import record_block

    seen, divided = [], record_block.divided
    monkeypatch.setattr(
        record_block, "divided", lambda rows, k, key, by: seen.append((key, by)) or divided(rows, k, key, by)
    )
    method = BlockPosterior(conjugate, {"mean": (-4, 4)}, blocks=25, seconds=3.0, jobs=25)
    for data, seed in ((1, 1), (2, 1), (1, 2), (1, 3)):
        privacy = cf.PureDP(4.0, relation=relation)
        cf.release(method, _data(200, data), privacy, ledger=None, noise=SimulatedNoise(seed))
    keys, ways = zip(*seen, strict=True)
    assert keys[0] == keys[1] and len(set(keys)) == 3 and set(map(len, keys)) == {32}
    assert set(ways) == {{"substitute": "position", "add-remove": "identity"}[relation]}


@pytest.mark.parametrize("parameters", [1, 3])
def test_the_choices_add_up_to_epsilon_and_state_what_a_block_moves(parameters) -> None:
    """Of all medians of a release: shares of epsilon, sensitivities, and the exact ratio of their chances on neighbours."""

    class Listening:
        def __init__(self) -> None:
            self.asked: list = []

        def exponential_mechanism(self, scores, epsilon, sensitivity):
            self.asked.append((scores, epsilon, sensitivity))
            return 0

    g, method = np.random.default_rng(8), BlockPosterior(conjugate, {str(k): (-1, 1) for k in range(parameters)}, 10)
    ends, largest = np.array([-1.0, 0.0])[:, None], 0.0
    for run in range(20):
        one = g.uniform(-1, 1, (10, 2, parameters)) if run % 2 else np.tile(ends * np.ones(parameters), (10, 1, 1))
        other = one.copy()
        other[g.integers(10)] = g.choice([-1.0, 1.0], (2, parameters))
        heard = [Listening(), Listening()]
        for found, noise in zip((one, other), heard, strict=True):
            method.medians(found, noise, 2.0)  # type: ignore[arg-type]
        assert sum(epsilon for _, epsilon, _ in heard[0].asked) == 2
        apart = 0.0
        for (a, epsilon, moved), (b, *_) in zip(heard[0].asked, heard[1].asked, strict=True):
            largest = max(largest, np.abs(a - b).max() / float(moved))
            chances = [np.exp(float(epsilon) * scores / (2 * float(moved))) for scores in (a, b)]
            apart += np.abs(np.log(chances[0] / chances[0].sum()) - np.log(chances[1] / chances[1].sum())).max()
        assert apart <= 2
    assert largest == 1.0


@pytest.mark.parametrize(("blocks", "epsilon", "chance"), [(25, 4.0, 1 / 5), (40, 4.0, 1 / 7_400), (25, 12.0, 3.4e-12)])
def test_how_often_a_median_is_where_no_block_is(blocks, epsilon, chance) -> None:
    """All blocks say one point: the chance of another one, summed over the grid, and its closed form."""
    points = np.linspace(-4, 4, 1 << 16)
    counts = np.bincount(_nearest(points, np.zeros(blocks)), minlength=len(points))
    weights = np.exp(rank_scores(counts, Fraction(1, 2)) * epsilon / 2 / 4)
    others = weights[counts == 0].sum()
    assert others / (1 + others) == pytest.approx(chance, rel=0.03)
    assert others == pytest.approx(65_536 * np.exp(-blocks * epsilon / 8), rel=1e-4)


def _limits(n: int, blocks: int, epsilon: float, sd: float, times: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals from normal blocks around 0.7 in (-4, 4)."""
    g, method = np.random.default_rng(1), BlockPosterior(conjugate, {"mean": (-4, 4)}, blocks)
    free, ends = n // blocks - 1, []
    for seed in range(times):
        found = np.stack([g.normal(0.7, sd, blocks), sd * (g.chisquare(free, blocks) / free) ** 0.5], axis=1)
        chosen = method.medians(found[:, :, None], SimulatedNoise(seed), epsilon)
        ends.append(np.ravel(method.read(chosen, epsilon, str(seed))[1](0.05)))
    low, high = np.transpose(ends)
    return low, high


@pytest.mark.parametrize(
    ("n", "blocks", "epsilon", "wider"),
    [
        (10_000, 100, 1.0, 2.0),
        (10_000, 100, 5.0, 1.28),
        pytest.param(50_000, 200, 0.5, 2.55, marks=pytest.mark.long),
        pytest.param(50_000, 200, 1.0, 1.61, marks=pytest.mark.long),
        pytest.param(50_000, 200, 5.0, 1.26, marks=pytest.mark.long),
    ],
)
def test_normal_blocks_are_covered_at_the_price_that_is_stated(n, blocks, epsilon, wider) -> None:
    """Cells at K epsilon from 100 to 1,000: of 400 intervals 366 or more, which .95 misses once in 10^3; the seeds are fixed."""
    low, high = _limits(n, blocks, epsilon, (blocks / n) ** 0.5, 400)
    assert ((low < 0.7) & (high > 0.7)).sum() >= 366
    assert np.median(high - low) / (2 * 1.96 / n**0.5) == pytest.approx(wider, rel=0.06)


def test_blocks_that_say_one_thing_are_covered_by_nearly_the_box() -> None:
    low, high = _limits(5_000, 25, 4.0, 1e-6)
    assert ((low < 0.7) & (high > 0.7)).all() and np.median(high - low) > 7


@pytest.mark.usefixtures("blocks_in_place")
def test_the_contract() -> None:
    """Whole: small data sets have the records that ten blocks need, and the truth is the sampler's on all practice records."""
    schema = cf.Schema({"x": SCHEMA["x"]})
    method = BlockPosterior(conjugate, {"mean": (-4, 4)}, blocks=10, seconds=1.0, jobs=10, allow_uninformative=True)
    assert check_method(method, schema, privacy=cf.PureDP(20.0), replications=10).ok


def test_the_least_number_of_records_is_the_one_that_plans() -> None:
    method = BlockPosterior(conjugate, {"mean": (-4, 4)}, blocks=10, seconds=1.0, jobs=10)
    asked = cf.PureDP(20.0, relation="substitute")
    assert method.least_records == 50 and cf.plan(method, SCHEMA, asked, n=50).n == 50
    with refuses(cf.errors.PlanError):
        cf.plan(method, SCHEMA, asked, n=49)
