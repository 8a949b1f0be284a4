"""The simulated distribution of joint tests: exact where theory is, its size where the meat is noise, and what it does not depend on."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy import stats
from tests.results.results_examples import Maker

from confide.results.inference import wald
from confide.results.inference.contrasts import combine
from confide.results.inference.simulated_null import JointLaw, NoisyMiddleMatrix

P = 4
SHAPE = np.diag([4.0, 2.0, 1.0, 1.0]) + 0.3


def law(meat: np.ndarray, sd: float, *, noise: float = 1.0, records: float = 1e6, seed: str = "0") -> JointLaw:
    own = NoisyMiddleMatrix(meat, np.full((P, P), sd), SHAPE, 0.01)
    return JointLaw(np.eye(P), noise * np.eye(P), (own,), np.full(P, records), (seed, "question"))


def test_a_meat_without_noise_gives_the_chi_square_test() -> None:
    estimates = np.array([3.0, -2.0, 1.0, 0.5])
    covariance = SHAPE + np.eye(P)
    exact = wald.wald_test(np.eye(P), np.zeros(P), estimates, covariance, inf)
    found = wald.wald_test(np.eye(P), np.zeros(P), estimates, covariance, 5.0, law(SHAPE, 1e-6))
    assert found.statistic == pytest.approx(exact.statistic, rel=0.02)
    assert found.pvalue == pytest.approx(exact.pvalue, rel=0.05)
    assert found.df_denom > 1_000


def test_few_records_give_hotelling() -> None:
    """With a Wishart meat of 20 degrees |e|^2 is Hotelling's T^2: (20 q/(20 - q + 1)) F(q, 20 - q + 1)."""
    one = law(SHAPE, 1e-6, noise=0.0, records=20)
    rows = np.linalg.inv(np.linalg.cholesky(one.covariance(np.eye(P))))
    for square in (8.0, 15.0, 40.0):
        exact = stats.f.sf(square * 17 / (20 * P), P, 17)
        assert one.tail(rows, square)[0] == pytest.approx(exact, rel=0.12)


@pytest.mark.long
def test_the_size_is_kept_where_the_meat_is_mostly_noise() -> None:
    """At 5 %, 150 runs: more than 20 rejections at size .07 have a chance below 1e-3, none at .03 one of .01; the released covariance
    alone: above.
    """
    generator = np.random.default_rng(4)
    root, plain, kept = np.linalg.cholesky(SHAPE + np.eye(P)), 0, 0
    for run in range(150):
        noise = generator.standard_normal((P, P))
        meat = SHAPE + 3.0 * (np.triu(noise, 1) + np.triu(noise, 1).T) / np.sqrt(2) + 3.0 * np.diag(np.diag(noise))
        estimates = root @ generator.standard_normal(P)
        values, vectors = np.linalg.eigh(meat)
        released = (vectors * np.maximum(values, 0)) @ vectors.T + np.eye(P)
        plain += wald.wald_test(np.eye(P), np.zeros(P), estimates, released, inf).pvalue < 0.05
        own = law(meat, 3.0, seed=str(run))
        kept += wald.wald_test(np.eye(P), np.zeros(P), estimates, released, inf, own).pvalue < 0.05
    assert 1 <= kept <= 20
    assert plain > 20


def test_a_direction_of_little_variance_is_not_what_noise_makes_of_it() -> None:
    """Noise as large as half of the largest eigenvalue of S says nothing of the smallest, which no records multiply at will."""
    shape = np.diag([1.0, 1.0, 1.0, 0.01])
    sd, generator = np.full((P, P), 0.5), np.random.default_rng(6)
    drawn = NoisyMiddleMatrix(shape, sd, shape, 0.05).draws(generator, 400)
    assert 0.002 < drawn[:, 3, 3].mean() < 0.03
    # what the release shows beyond its noise is believed
    shown = NoisyMiddleMatrix(np.diag([1.0, 1.0, 1.0, 9.0]), sd, shape, 0.05).draws(generator, 400)
    assert shown[:, 3, 3].mean() > 6
    assert np.linalg.eigvalsh(drawn).min() >= -1e-9


def test_the_test_does_not_depend_on_how_restrictions_are_written() -> None:
    estimates, covariance = np.array([3.0, -2.0, 1.0, 0.5]), SHAPE + np.eye(P)
    matrix = np.eye(P)[:3]
    mix = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 5.0]])
    one = wald.wald_test(matrix, np.zeros(3), estimates, covariance, 5.0, law(SHAPE, 1.0))
    other = wald.wald_test(mix @ matrix, np.zeros(3), estimates, covariance, 5.0, law(SHAPE, 1.0))
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert other.pvalue == pytest.approx(one.pvalue, rel=0.15)  # other axes, other draws of directions
    again = wald.wald_test(matrix, np.zeros(3), estimates, covariance, 5.0, law(SHAPE, 1.0))
    assert again == one


def test_p_values_fall_with_distance_as_far_as_asked() -> None:
    covariance = SHAPE + np.eye(P)
    found = [
        wald.wald_test(np.eye(P)[:2], np.zeros(2), size * np.ones(P), covariance, 5.0, law(SHAPE, 0.5)).pvalue
        for size in (0.5, 1, 2, 4, 8, 16)
    ]
    assert (np.diff(found) < 0).all() and 0 < found[-1] < 1e-6


def test_bias_takes_from_the_statistic_and_unanswered_estimates_do_not_matter() -> None:
    estimates, covariance = np.array([3.0, -2.0, 1.0, np.nan]), SHAPE + np.eye(P)
    covariance[3] = covariance[:, 3] = np.nan
    matrix = np.eye(P)[:2]
    free = wald.wald_test(matrix, np.zeros(2), estimates, covariance, 5.0, law(SHAPE, 1.0))
    bound = wald.wald_test(
        matrix, np.zeros(2), estimates, covariance, 5.0, law(SHAPE, 1.0), np.array([0.5, 0.5, 0, np.nan])
    )
    assert 0 < bound.statistic < free.statistic and bound.pvalue > free.pvalue
    # no bias within the bound makes the statistic smaller than the one that is tested
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = estimates.copy()
        moved[:2] += 0.5 * np.array(signs)
        assert wald.wald_test(
            matrix, np.zeros(2), moved, covariance, 5.0, law(SHAPE, 1.0)
        ).statistic >= bound.statistic * (1 - 1e-9)
    assert np.isnan(wald.wald_test(np.eye(P)[2:], np.zeros(2), estimates, covariance, 5.0, law(SHAPE, 1.0)).pvalue)


def test_what_a_bias_leaves_is_the_least_over_its_whole_box() -> None:
    generator = np.random.default_rng(5)
    estimates, root = np.array([3.0, -2.0, 1.0, 0.5]), generator.standard_normal((P, P)) + np.eye(P)
    covariance, bias = root @ root.T, np.array([0.8, 0.3, 0.0, 0.6])
    found = wald.wald_test(np.eye(P), np.zeros(P), estimates, covariance, inf, None, bias).statistic
    # exact: a quadratic form is smallest on the box where one of its faces is free
    ends = np.linspace(-1, 1, 41)
    grid = np.array(np.meshgrid(ends, ends, ends)).reshape(3, -1).T * bias[[0, 1, 3]]
    moved = np.repeat(estimates[None, :], len(grid), axis=0)
    moved[:, [0, 1, 3]] -= grid
    each = np.einsum("ij,jk,ik->i", moved, np.linalg.inv(covariance), moved) / P
    assert found <= each.min() * (1 + 1e-9)
    assert found == pytest.approx(each.min(), rel=0.02)
    # the sum of what each bias does by itself takes more
    unit = np.linalg.inv(np.linalg.cholesky(covariance))
    length = np.linalg.norm(unit @ estimates) - np.linalg.norm(unit, axis=0) @ bias
    assert found > 1.05 * max(length, 0) ** 2 / P


def test_contrasts_together_know_that_their_biases_are_the_same(make: Maker) -> None:
    p = len(make().names)
    result = make(bias=np.linspace(0.0, 0.01, p) * np.sqrt(np.diag(make().covariance)) * 100)
    rows = np.eye(p)[1:4] + np.eye(p)[2:5]
    joint = combine(result, rows, names=("a", "b", "c")).joint_test()
    assert joint.statistic == pytest.approx(result.wald_test(rows).statistic, rel=1e-9)
    # what moves both combinations alike leaves their difference
    same = combine(result, rows[[0, 0]] + np.eye(p)[[0, 4]] * [[0], [1]], names=("a", "b")).pairs()
    assert result.bias is not None and same.bias is not None
    assert same.bias[0] == pytest.approx(result.bias[4])


def test_responses_whose_products_are_not_known_count_as_often_as_they_are_tied() -> None:
    meat = NoisyMiddleMatrix(np.eye(2), np.full((2, 2), 1e-6), np.eye(2))
    one = JointLaw(np.eye(4), np.zeros((4, 4)), (meat, meat), np.full(4, 1e6), ("a",))
    apart, tied = one.covariance(np.eye(4)[:2]), one.covariance(np.eye(4))
    np.testing.assert_allclose(apart, np.eye(2), atol=1e-4)
    np.testing.assert_allclose(tied, 2 * np.eye(4), atol=1e-4)
    known = replace(one, correlation=np.array([[1.0, 0.6], [0.6, 1.0]])).covariance(np.eye(4))
    np.testing.assert_allclose(known, np.kron([[1, 0.6], [0.6, 1]], np.eye(2)), atol=1e-4)


def test_an_estimates_table_hands_its_law_to_every_joint_test(make: Maker) -> None:
    result = make()
    p = len(result.names)
    covariance = np.asarray(result.covariance)
    own = JointLaw(
        np.eye(p),
        np.zeros((p, p)),
        (NoisyMiddleMatrix(covariance, np.full((p, p), 1e-9), covariance),),
        np.full(p, 30.0),
        ("k",),
    )
    known = make(joint=own)
    names = list(result.names[1:4])
    assert known.wald_test(names).pvalue > result.wald_test(names).pvalue
    single = result.names[1]
    assert known.wald_test([single]).pvalue == result.wald_test([single]).pvalue
