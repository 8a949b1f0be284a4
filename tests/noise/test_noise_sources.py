"""The two sources as users meet them, and the keyed generator."""

from __future__ import annotations

import copy
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from tests.messages import refuses
from tests.noise.exact import LAWS

import confide.noise as room
from confide.errors import PrivacyError
from confide.noise import SecureNoise, SimulatedNoise, keyed_generator

BIG = Fraction(10) ** 18


def test_only_these_names_are_public() -> None:
    assert sorted(room.__all__) == [
        "SecureNoise",
        "SimulatedNoise",
        "discrete_gaussian_variance",
        "discrete_laplace_variance",
        "keyed_generator",
        "laplace_variance",
        "variance",
    ]
    assert SecureNoise.simulated is False
    assert SimulatedNoise.simulated is True


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [SecureNoise(), SimulatedNoise(3)], ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("size", [0, 1, 5, 20_000, np.int64(3)])
def test_draws_are_int64_of_the_size_asked_and_may_be_written_to(
    law: str, noise: SecureNoise | SimulatedNoise, size: int
) -> None:
    draws = getattr(noise, law)(10**9, size)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    draws += 1


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [-1, 1.0, True, None, "3", (2, 3), np.float64(2)])
def test_a_bad_size_is_refused(law: str, size: object) -> None:
    with refuses(PrivacyError):
        getattr(SimulatedNoise(1), law)(1, size)


@pytest.mark.parametrize("law", LAWS)
def test_each_law_states_its_guarantee_with_sensitivity_and_source(law: str) -> None:
    text = " ".join(str(getattr(SecureNoise, law).__doc__ or getattr(SimulatedNoise, law).__doc__).split())
    for part in ("Guarantee: ", "one record changes by at most", "Errors: PrivacyError", "Source: ", ">>> "):
        assert part in text
    claims = {
        "grid_gaussian": ("mu-GDP",),
        "grid_laplace": ("PureDP(", "trade-off curve of the real Laplace"),
        "discrete_gaussian": ("is ZCDP(D^2 / (2 sigma2)), and no more is claimed", "not D/sigma-GDP"),
        "discrete_laplace": ("PureDP(", "No more is claimed"),
    }
    assert all(claim in text for claim in claims[law])


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "7", (1, 2)])
def test_a_bad_seed_or_key_is_refused(seed: object) -> None:
    with refuses(PrivacyError):
        SimulatedNoise(seed)  # type: ignore[arg-type]
    with refuses(PrivacyError):
        SimulatedNoise(1).spawn(seed)  # type: ignore[arg-type]


def test_secure_noise_takes_no_seed() -> None:
    with pytest.raises(TypeError):
        SecureNoise(7)  # type: ignore[call-arg]


def test_int_float_and_fraction_of_one_value_are_one_law() -> None:
    draws = [SimulatedNoise(5).grid_gaussian(sigma2, 50).tolist() for sigma2 in (4, 4.0, Fraction(4), np.int32(4))]
    assert draws[0] == draws[1] == draws[2] == draws[3]


def test_same_seed_same_calls_same_numbers() -> None:
    """Frozen numbers: a change here breaks the repetition of published simulations."""
    noise = SimulatedNoise(7)
    assert noise.grid_gaussian(1, 8).tolist() == FROZEN_1
    assert noise.grid_gaussian(Fraction(10**30, 3), 3).tolist() == FROZEN_2
    assert noise.spawn(2).grid_gaussian(100, 6).tolist() == FROZEN_3
    for law, frozen in FROZEN_LAWS.items():
        assert getattr(SimulatedNoise(7), law)([4, Fraction(10**12, 7), 0.1, 10**16], 4).tolist() == frozen


FROZEN_1 = [0, 0, 0, 1, 0, -1, 0, 1]
FROZEN_2 = [-998962896927410, 387272054702006, 431055780975227]
FROZEN_3 = [-3, -5, -7, 13, -5, -7]
FROZEN_LAWS = {
    "grid_gaussian": [0, -34953, 0, 62820318],
    "grid_laplace": [0, -13211084504, 0, 5657031830524025],
    "discrete_gaussian": [-1, -34953, 0, 56570318],
    "discrete_laplace": [0, -13211084504, 0, 5657031830524024],
}


def test_rekey_neither_restarts_nor_changes_simulated_noise() -> None:
    one, two = SimulatedNoise(7), SimulatedNoise(7)
    first = one.grid_gaussian(BIG, 10)
    one.rekey()
    second = one.grid_gaussian(BIG, 10)
    assert [*first, *second] == [*two.grid_gaussian(BIG, 10), *two.grid_gaussian(BIG, 10)]
    assert not set(first) & set(second)


def test_simulated_noise_goes_on_after_pickling_and_copying() -> None:
    noise = SimulatedNoise(7).spawn(3)
    noise.grid_gaussian(BIG, 10)
    twins = [pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)]
    expected = noise.grid_gaussian(BIG, 100).tolist()
    child = noise.spawn(1).grid_gaussian(BIG, 10).tolist()
    for twin in twins:
        assert twin.grid_gaussian(BIG, 100).tolist() == expected
        assert twin.spawn(1).grid_gaussian(BIG, 10).tolist() == child


def test_children_depend_on_the_keys_alone_and_differ() -> None:
    used = SimulatedNoise(7)
    used.grid_gaussian(BIG, 1_000)
    assert used.spawn(4).grid_gaussian(BIG, 5).tolist() == SimulatedNoise(7).spawn(4).grid_gaussian(BIG, 5).tolist()
    root = SimulatedNoise(7)
    family = [root, SimulatedNoise(8), *(root.spawn(key) for key in (0, 1, 2**32, 2**64))]
    family += [root.spawn(0).spawn(1), root.spawn(1).spawn(0), SimulatedNoise(2**200), SimulatedNoise(71)]
    assert len({tuple(member.grid_gaussian(BIG, 3)) for member in family}) == len(family)
    assert repr(root.spawn(0).spawn(1)) == "SimulatedNoise(7).spawn(0).spawn(1)"


def test_threads_that_draw_simulated_noise_at_once_never_share_words() -> None:
    noise = SimulatedNoise(9)
    drawn: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: drawn.append(noise.grid_gaussian(4**56, 20_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    # 80,000 draws on a scale of 2^56: a chance repetition has probability below 1e-7.
    assert len(np.unique(np.concatenate(drawn))) == 80_000


def test_keyed_generators_repeat_and_keep_their_keys_apart() -> None:
    keys = [("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",), ("a", ""), ("", "a"), ("1:a",), ("a1:b",)]
    drawn = [tuple(keyed_generator(*key).integers(2**62, size=4).tolist()) for key in keys]
    assert len(set(drawn)) == len(keys)
    assert drawn == [tuple(keyed_generator(*key).integers(2**62, size=4).tolist()) for key in keys]
    assert type(keyed_generator("a").bit_generator) is np.random.Philox
    assert keyed_generator("a").bit_generator.random_raw(2).tolist() == FROZEN_KEYED


FROZEN_KEYED = [15272640894523500070, 8613737083956620231]


def test_a_keyed_generator_needs_a_digest() -> None:
    with refuses(PrivacyError):
        keyed_generator()
