"""Whether the draws follow their laws: statistics with false-alarm rates fixed beforehand, and proof that they can fail.

The words are seeded, so a run is deterministic; the rate says how unlikely it was that a right sampler was caught by
these seeds. Every test that must pass stands at `ALPHA` for each p-value; all of them together at 10^-5.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import special
from tests.noise.exact import (
    LARGE,
    LAWS,
    SMALL,
    Statistic,
    bins_p_value,
    cdf,
    equal_p_value,
    ks_p_value,
    parameter,
    pmf_p_value,
    table_p_value,
    take,
    two_sample_p_value,
)

from confide.noise import (
    SecureNoise,
    SimulatedNoise,
    discrete_gaussian_variance,
    discrete_laplace_variance,
    integers,
    laplace_variance,
    variance,
)
from confide.noise.integers import Scales
from confide.noise.standard import Draws, SimulatedWords, StandardLaw

Rule = Callable[..., object]

ALPHA = 1e-8
DRAWS = 500_000
VARIANCES = dict(
    zip(LAWS, (variance, laplace_variance, discrete_gaussian_variance, discrete_laplace_variance), strict=True)
)
laws = pytest.mark.parametrize("law", LAWS)
LARGE_CASES = [
    pytest.param(p_value, scale, id=f"{p_value.__name__}-{float(scale):g}")
    for p_value, scales in ((ks_p_value, LARGE), (bins_p_value, LARGE[1:]))
    for scale in scales
]


@laws
@pytest.mark.parametrize("scale", SMALL, ids=float)
def test_small_scales_follow_the_exact_probabilities(law: str, scale: Fraction) -> None:
    assert pmf_p_value(law, take(SimulatedNoise(101), law, scale, DRAWS), float(scale)) > ALPHA


@laws
@pytest.mark.parametrize(("p_value", "scale"), LARGE_CASES)
def test_large_scales_follow_the_law(law: str, p_value: Statistic, scale: Fraction) -> None:
    assert p_value(law, take(SimulatedNoise(102), law, scale, DRAWS), float(scale)) > ALPHA


@pytest.mark.long
@laws
@pytest.mark.parametrize("scale", [*SMALL, *LARGE], ids=float)
def test_the_laws_at_20_million_draws(law: str, scale: Fraction) -> None:
    draws = take(SimulatedNoise(108), law, scale, 20_000_000)
    if scale < 100:
        assert pmf_p_value(law, draws, float(scale)) > ALPHA
    else:
        assert ks_p_value(law, draws, float(scale)) > ALPHA
        assert scale < 10**6 or bins_p_value(law, draws, float(scale)) > ALPHA


@pytest.mark.parametrize("wrong", [1.03, 1 / 1.03])
@laws
@pytest.mark.parametrize("scale", SMALL, ids=float)
def test_the_chi_square_rejects_a_scale_wrong_by_3_percent(law: str, scale: Fraction, wrong: float) -> None:
    """With half of the draws of the test above, which so much the more would."""
    draws = take(SimulatedNoise(101), law, scale * Fraction(wrong), DRAWS // 2)
    assert pmf_p_value(law, draws, float(scale)) < ALPHA


@pytest.mark.parametrize("wrong", [1.03, 1 / 1.03])
@laws
@pytest.mark.parametrize(("p_value", "scale"), [LARGE_CASES[0], LARGE_CASES[3], LARGE_CASES[-1]])
def test_the_statistics_of_large_scales_reject_a_scale_wrong_by_3_percent(
    law: str, p_value: Statistic, scale: Fraction, wrong: float
) -> None:
    draws = take(SimulatedNoise(102), law, scale * Fraction(wrong), DRAWS)
    assert p_value(law, draws, float(scale)) < ALPHA


@laws
@pytest.mark.parametrize("scale", LARGE[1:], ids=float)
def test_last_digits_are_uniform(law: str, scale: Fraction) -> None:
    assert equal_p_value(take(SimulatedNoise(103), law, scale, DRAWS) & 1023, 1024) > ALPHA


@laws
@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(10) ** 9], ids=float)
@pytest.mark.parametrize("lag", [1, 2])
def test_successive_draws_are_independent(law: str, scale: Fraction, lag: int) -> None:
    draws = take(SimulatedNoise(104), law, scale, DRAWS)
    slots = np.searchsorted(np.array([-1.2, -0.7, -0.3, 0.0, 0.3, 0.7, 1.2]) * float(scale), draws)
    assert table_p_value(slots[:-lag], slots[lag:]) > ALPHA


@laws
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5), Fraction(10) ** 9], ids=float)
def test_mean_and_variance_are_the_stated_ones(law: str, scale: Fraction) -> None:
    draws = take(SimulatedNoise(105), law, scale, DRAWS).astype(float)
    squares = draws**2
    z = (squares.mean() - VARIANCES[law](parameter(law, scale))) / (squares.std() / np.sqrt(DRAWS))
    assert abs(z) < special.ndtri(1 - ALPHA / 2)
    assert abs(draws.mean() / draws.std() * np.sqrt(DRAWS)) < special.ndtri(1 - ALPHA / 2)


# One scale for each draw: 1,000 scales from .5 to 1e15, 1,000 draws of each, in turn.
MANY = [Fraction(1, 2) + Fraction(j % 100, 7) * 10 ** (j // 67) for j in range(1_000)]


@laws
def test_an_array_of_scales_gives_each_draw_its_own_law(law: str) -> None:
    draws = take_each(law, SimulatedNoise(109), MANY, 1_000).reshape(1_000, 1_000)
    # Randomised quantiles: uniform on each integer's step of the distribution function.
    between = np.random.default_rng(5).random(draws.shape)
    uniforms = np.empty(draws.shape)
    for column, scale in enumerate(map(float, MANY)):
        k = draws[:, column]
        if law == "discrete_gaussian" and scale < 1_000:
            continue  # no closed form; the next test has them
        low, high = cdf(law, scale, k - 1), cdf(law, scale, k)
        uniforms[:, column] = low + between[:, column] * (high - low)
    chosen = [j for j, scale in enumerate(MANY) if law != "discrete_gaussian" or scale >= 1_000]
    uniforms = uniforms[:, chosen]
    slots = np.minimum((uniforms * 50).astype(int), 49)
    assert equal_p_value(slots.ravel(), 50) > ALPHA
    # Each scale by itself: the p-values of 1,000 columns of 1,000.
    counts = np.stack([np.bincount(slots[:, j] // 5, minlength=10) for j in range(slots.shape[1])])
    p_values = special.chdtrc(9, ((counts - 100) ** 2).sum(axis=1) / 100)
    assert p_values.min() > ALPHA
    # Neighbours in the array, and the same place in the next thousand, are independent.
    assert table_p_value(slots[:, :-1].ravel() // 5, slots[:, 1:].ravel() // 5) > ALPHA
    assert table_p_value(slots[:-1].ravel() // 5, slots[1:].ravel() // 5) > ALPHA


def take_each(law: str, noise: SimulatedNoise, scales: list[Fraction], times: int) -> np.ndarray:
    each: np.ndarray = getattr(noise, law)([parameter(law, s) for s in scales] * times, len(scales) * times)
    return each


@laws
def test_arrays_of_scales_equal_scalars_in_law(law: str) -> None:
    scales = [Fraction(1, 2), Fraction(10), Fraction(3), Fraction(10) ** 9]
    draws = take_each(law, SimulatedNoise(110), scales, 250_000).reshape(-1, 4)
    for column, scale in enumerate(scales):
        alone = take(SimulatedNoise(111), law, scale, 250_000)
        assert two_sample_p_value(draws[:, column], alone) > ALPHA
        if scale < 100:
            assert pmf_p_value(law, draws[:, column], float(scale)) > ALPHA
    wrong = take(SimulatedNoise(111), law, Fraction(10) * Fraction(11, 10), 250_000)
    assert two_sample_p_value(draws[:, 1], wrong) < ALPHA


@laws
def test_a_shift_of_the_scales_by_one_place_is_caught(law: str) -> None:
    draws = take_each(law, SimulatedNoise(110), [Fraction(3), Fraction(10)], 50_000).reshape(-1, 2)
    assert pmf_p_value(law, draws[:, 1], 3.0) < ALPHA
    assert pmf_p_value(law, draws[:, 0], 10.0) < ALPHA


# cell_bits, accept_bits, place_bits: few, so that settling is common in the cell, in accept, and in rounding.
FORCED = [(16, 14, 64), (12, 5, 64), (16, 14, 10), (12, 5, 6)]


def forced(law: str, scale: Fraction, seed: int, size: int, bits: tuple[int, int, int]) -> np.ndarray:
    kind = "half normal" if law == "grid_gaussian" else "exponential"
    standard = StandardLaw(kind, cell_bits=bits[0], accept_bits=bits[1], place_bits=bits[2])  # type: ignore[arg-type]
    scales = Scales.read(parameter(law, scale), size, squared=law.endswith("gaussian"))
    draws: np.ndarray = getattr(integers, law)(SimulatedWords(seed), scales, size, standard)
    return draws


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each settlement is called from here on."""
    calls = {"try": 0, "rounding": 0, "accept": 0}
    for key, owner, name in (
        ("try", StandardLaw, "settle"),
        ("rounding", integers, "settle"),
        ("accept", integers, "settle_accept"),
    ):
        right: Rule = getattr(owner, name)

        def counting(*given: object, key: str = key, right: Rule = right) -> object:
            calls[key] += 1
            return right(*given)

        monkeypatch.setattr(owner, name, counting)
    return calls


@laws
@pytest.mark.parametrize("bits", FORCED, ids=str)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(31)], ids=float)
def test_the_law_holds_where_settlement_is_forced(
    law: str, scale: Fraction, bits: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    size = 100_000 if bits == (16, 14, 64) else 20_000
    assert pmf_p_value(law, forced(law, scale, 106, size, bits), float(scale)) > ALPHA
    assert calls["try"] > (1_000 if bits[0] == 12 else 20)
    assert calls["rounding"] > (1_000 if bits[0] == 12 else 20)
    if law == "discrete_gaussian":
        assert calls["accept"] > (1_000 if bits[1] == 5 else 0)


@laws
def test_the_law_holds_where_rounding_is_forced_at_large_scales(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 bits of the place on a scale of 10^9 steps decide no rounding at all: every draw is settled."""
    calls = counted(monkeypatch)
    draws = forced(law, Fraction(10) ** 9, 112, 20_000, (32, 31, 10))
    assert calls["rounding"] >= 20_000 > 100 * calls["try"]
    assert ks_p_value(law, draws, 1e9) > ALPHA
    assert equal_p_value(draws & 63, 64) > ALPHA


@pytest.mark.parametrize("law", ["grid_gaussian", "grid_laplace"])
@pytest.mark.parametrize("wrong", ["accept", "cell", "rounding"])
def test_a_faulty_settlement_is_caught(law: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, cell, rounding = StandardLaw._settle_accept, StandardLaw._settle_cell, integers.settle
    if wrong == "accept":
        monkeypatch.setattr(
            StandardLaw, "_settle_accept", lambda *a: None if accept(*a) else (a[2], a[3], a[0].place_bits)
        )
    elif wrong == "cell":
        monkeypatch.setattr(StandardLaw, "_settle_cell", lambda *a: cell(*a) // 2)
    else:
        monkeypatch.setattr(integers, "settle", lambda *a: rounding(*a) + 1)
    assert pmf_p_value(law, forced(law, Fraction(3), 107, 100_000, (12, 5, 6)), 3.0) < ALPHA


def test_a_faulty_settlement_of_the_gaussian_test_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = integers.settle_accept
    monkeypatch.setattr(integers, "settle_accept", lambda *a: not accept(*a))
    assert (
        pmf_p_value("discrete_gaussian", forced("discrete_gaussian", Fraction(31), 107, 50_000, FORCED[1]), 31) < ALPHA
    )


def _all_accepted(right: Rule) -> Rule:
    return lambda law, cells, first, place: (np.ones(len(cells), dtype=bool), np.array([], dtype=int))


def _one_word_for_two(right: Rule) -> Rule:
    return lambda law, cells, first, place: right(law, cells, place >> np.uint64(32), place)


def _one_cell_too_far(right: Rule) -> Rule:
    return lambda law, first: (right(law, first)[0] + 1, right(law, first)[1])


def _no_sign(right: Rule) -> Rule:
    def draw(law: StandardLaw, words: SimulatedWords, size: int) -> Draws:
        draws = right(law, words, size)
        draws.negative[:] = False  # type: ignore[attr-defined]
        return draws  # type: ignore[return-value]

    return draw


FAULTS = [
    ("_accept", _all_accepted),
    ("_accept", _one_word_for_two),
    ("_cells", _one_cell_too_far),
    ("draw", _no_sign),
]


@pytest.mark.parametrize("law", ["grid_gaussian", "grid_laplace", "discrete_laplace"])
@pytest.mark.parametrize(("name", "breaking"), FAULTS, ids=lambda part: getattr(part, "__name__", part))
def test_a_fault_in_the_sampler_is_caught(
    law: str, name: str, breaking: Callable[[Rule], Rule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandardLaw, name, breaking(getattr(StandardLaw, name)))
    # all cells accepted shows least: a p-value of 1e-10 at 10^6 draws; those of the others are 0
    draws = take(SimulatedNoise(102), law, Fraction(10) ** 9, DRAWS * (4 if breaking is _all_accepted else 1))
    assert min(ks_p_value(law, draws, 1e9), bins_p_value(law, draws, 1e9)) < ALPHA


def _truncated(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(integers, "HALF", 0)
    return "grid_gaussian"


def _rounded(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        integers, "_draw", lambda *given, right=integers._draw: right(*given[:4], integers.HALF, given[5])
    )
    return "discrete_laplace"


def _both_zeros(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(integers, "_draw", lambda *given, right=integers._draw: right(*given[:5], None))
    return "discrete_laplace"


def _no_gaussian_test(monkeypatch: pytest.MonkeyPatch) -> str:
    always = lambda *given: np.ones(len(given[3]), dtype=bool)  # noqa: E731
    monkeypatch.setattr(integers._GaussianAccept, "__call__", always)
    return "discrete_gaussian"


@pytest.mark.parametrize("breaking", [_truncated, _rounded, _both_zeros, _no_gaussian_test], ids=lambda f: f.__name__)
def test_a_fault_in_the_rounding_or_the_rejection_is_caught(
    breaking: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    law = breaking(monkeypatch)
    assert pmf_p_value(law, take(SimulatedNoise(101), law, Fraction(3), DRAWS), 3.0) < ALPHA


@laws
def test_secure_noise_follows_the_same_law(law: str) -> None:
    """Not seeded: each of these may fail once in 10^8 runs."""
    noise = SecureNoise()
    assert pmf_p_value(law, take(noise, law, Fraction(3), 200_000), 3.0) > ALPHA
    assert ks_p_value(law, take(noise, law, Fraction(10) ** 6, 200_000), 1e6) > ALPHA
