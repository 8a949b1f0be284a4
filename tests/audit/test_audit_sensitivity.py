"""falsify_sensitivity: finds what libraries got wrong, passes what is right, measures the worst ratio exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.audit import falsify_sensitivity
from confide.audit.searches.neighbors import Domain

SCHEMA = cf.Schema({"region": cf.Categorical(["N", "S"]), "v": cf.Integer(0, 9)})


def whole(x: Any) -> Any:
    return np.clip(np.nan_to_num(x), 0, 1)


def test_three_lines_are_enough() -> None:
    report = falsify_sensitivity(lambda x: np.clip(x, 0, 1).sum(), (0, 1), 1)
    assert report.violated and math.isinf(report.ratio)
    assert "violated" in str(report) and "nan" in str(report)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_exact_worst_ratio_of_sums(relation: str) -> None:
    def sums(x: Any) -> list[float]:
        return [math.fsum(np.clip(np.nan_to_num(x[:, j]), -1, 2)) for j in range(2)]

    report = falsify_sensitivity(sums, [(-1, 2)] * 2, 1, relation=relation)
    assert report.ratio == pytest.approx(math.sqrt(8 if relation == "add-remove" else 18))


@pytest.mark.parametrize(("norm", "ratio"), [("l1", 3), ("l2", 3**0.5), ("linf", 1), ("frobenius", 3**0.5)])
def test_norms(norm: str, ratio: float) -> None:
    report = falsify_sensitivity(lambda x: [len(x)] * 3, (0, 1), 1, norm=norm)
    assert report.exact and report.ratio == pytest.approx(ratio)
    assert report.violated == (ratio > 1)


def test_integers_are_compared_exactly() -> None:
    big = 2**70

    def counted(x: Any) -> int:
        return big * len(x)

    assert falsify_sensitivity(counted, (0, 1), big).verdict == "holds"
    assert falsify_sensitivity(counted, (0, 1), Fraction(big) - Fraction(1, 10**6)).verdict == "violated"
    assert falsify_sensitivity(lambda x: [len(x)] * 2, (0, 1), Fraction(14142135623, 10**10)).verdict == "violated"
    assert falsify_sensitivity(lambda x: [len(x)] * 2, (0, 1), Fraction(14142135624, 10**10)).verdict == "holds"


def test_int64_overflow_needs_more_than_one_record() -> None:
    def total(x: Any) -> int:
        return int(np.clip(np.nan_to_num(x), 0, 2.0**62).astype(np.int64).sum())

    assert falsify_sensitivity(total, (0, 2**62), 2**62).violated
    assert not falsify_sensitivity(
        lambda x: sum(int(v) for v in np.clip(np.nan_to_num(x), 0, 2.0**62)), (0, 2**62), 2**62
    ).violated


def test_order_of_a_float_sum_and_how_to_say_that_order_is_public() -> None:
    report = falsify_sensitivity(lambda x: float(whole(x).sum()), (0, 1), 1)
    assert report.violated and report.kind == "reordering" and report.finding().attack == "reordering"
    assert not falsify_sensitivity(lambda x: float(whole(x).sum()), (0, 1), 1, ordered=True).violated
    assert not falsify_sensitivity(lambda x: math.fsum(whole(x)), (0, 1), 1).violated


def test_fixed_n_is_kept_under_substitute() -> None:
    sizes = set()

    def mean(x: Any) -> float:
        sizes.add(len(x))
        return math.fsum(whole(x)) / len(x)

    assert not falsify_sensitivity(mean, (0, 1), 1 / 20, relation="substitute", n=20).violated
    assert sizes == {20}
    violated = falsify_sensitivity(
        lambda x: float(np.clip(np.nanmean(x), 0, 1)), (0, 1), 1 / 20, relation="substitute", n=20
    )
    assert violated.violated and violated.ratio > 5


def test_frames_from_a_schema_with_unknown_labels() -> None:
    def by_region(frame: pd.DataFrame) -> dict[str, int]:
        return {str(level): int((frame["region"] == level).sum()) for level in ("N", "S")}

    assert not falsify_sensitivity(by_region, SCHEMA, 1, restarts=3).violated
    assert falsify_sensitivity(by_region, SCHEMA, 1, relation="substitute", restarts=3).ratio == pytest.approx(2**0.5)
    # a table whose rows are the labels that occur tells which labels occur
    assert falsify_sensitivity(lambda frame: frame["region"].value_counts().to_numpy(), SCHEMA, 1, restarts=3).violated


def test_an_error_on_one_side_refutes_and_on_both_does_not() -> None:
    def picky(x: Any) -> float:
        if len(x) > 3:
            raise ValueError("too many")
        return 0.0

    def hopeless(x: Any) -> float:
        raise ValueError("always")

    assert falsify_sensitivity(picky, (0, 1), 1).violated
    assert not falsify_sensitivity(hopeless, (0, 1), 1).violated


def test_within_the_domain_alone_when_asked() -> None:
    assert falsify_sensitivity(lambda x: math.fsum(x), (0, 1), 1).violated
    assert not falsify_sensitivity(lambda x: math.fsum(x), (0, 1), 1, hostile=False).violated


def test_ascent_finds_what_no_corner_shows() -> None:
    """The largest move is inside the domain, at 0.3."""

    def peak(x: Any) -> float:
        y = whole(x)
        return math.fsum(np.maximum(0, 1 - 2.5 * np.abs(y - 0.3)))

    assert falsify_sensitivity(peak, (0, 1), 0.99, seed=4).violated


def test_reproducible_and_readable() -> None:
    reports = [falsify_sensitivity(lambda x: 2 * math.fsum(whole(x)), (0, 1), 1, seed=5) for _ in range(2)]
    assert str(reports[0]) == str(reports[1])
    row = reports[0].finding()
    assert (row.quantity, row.claim, row.verdict) == ("ratio", 1.0, "violated")
    assert row.lower_bound == pytest.approx(2.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: falsify_sensitivity(len, (0, 1), 0),
        lambda: falsify_sensitivity(len, (0, 1), math.inf),
        lambda: falsify_sensitivity(len, (0, 1), True),
        lambda: falsify_sensitivity(len, (0, 1), 1, norm="l3"),
        lambda: falsify_sensitivity(len, (0, 1), 1, relation="both"),
        lambda: falsify_sensitivity(len, (0, 1), 1, n=0),
        lambda: falsify_sensitivity(len, (1, 0), 1),
        lambda: falsify_sensitivity(len, "abc", 1),
        lambda: falsify_sensitivity(len, 3, 1),
        lambda: Domain.of([(0, math.inf)]),
    ],
)
def test_bad_parameters_are_refused(call: Any) -> None:
    with pytest.raises(cf.errors.PrivacyError):
        call()


def test_known_worst_cases_are_attained() -> None:
    """Class sums with counts have joint sensitivity exactly 2R, (X'X, X'y / sqrt 2) exactly sqrt(3.125) R^2, under substitute."""

    def finite(x: Any) -> Any:
        return np.clip(np.nan_to_num(x, nan=0.0), -1e3, 1e3)

    def ball(x: Any) -> Any:
        return x * np.minimum(1, 1 / np.maximum(np.sqrt((x**2).sum(axis=1)), 1e-300))[:, None]

    def class_sums(x: Any) -> list[float]:
        points, first = ball(finite(x[:, :2])), finite(x[:, 2]) > 0.5
        return [math.fsum(v) for own in (first, ~first) for v in (*points[own].T, np.ones(int(own.sum())))]

    def moments(x: Any) -> list[float]:
        (a, b), y = ball(finite(x[:, :2])).T, np.clip(finite(x[:, 2]), -1, 1)
        return [math.fsum(v) for v in (a * a, b * b, 2**0.5 * a * b, 0.5**0.5 * a * y, 0.5**0.5 * b * y)]

    first = falsify_sensitivity(class_sums, [(-1, 1), (-1, 1), (0, 1)], 2, relation="substitute", restarts=4)
    second = falsify_sensitivity(moments, [(-1, 1)] * 3, math.sqrt(3.125), relation="substitute", restarts=4)
    for report in (first, second):
        assert report.verdict == "holds" and report.ratio > 0.999


def test_a_free_number_of_records_is_said_under_substitute() -> None:
    report = falsify_sensitivity(
        lambda x: float(np.nan_to_num(np.clip(x, 0, 10)).mean()), (0, 10), 0.5, relation="substitute"
    )
    assert report.violated
    assert "the number of records was free, from 1 on" in str(report)
    assert "np.float64" not in str(report)
