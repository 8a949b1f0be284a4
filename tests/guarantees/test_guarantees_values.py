"""The values: equality, JSON to the bit, text, plain words, and every refusal with its message."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide.guarantees as guarantees
from confide.errors import ConfideError, NoConversion, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP, gaussian_delta, guarantee_from_dict
from confide.guarantees.validation import RELATIONS, TRUSTS

LEVELS = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
DELTAS = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)


def one_line(text):
    return text.isprintable() and text == text.strip()


LABELS = st.fixed_dictionaries(
    {
        "relation": st.sampled_from([None, *RELATIONS]),
        "unit": st.sampled_from(["record", "attribute", "household", "columns age, income"]),
        "trust": st.sampled_from(TRUSTS),
        "assumptions": st.lists(st.text(min_size=1, max_size=9).filter(one_line), max_size=3).map(tuple),
    }
)
GUARANTEES = st.one_of(
    st.builds(lambda level, labels: PureDP(level, **labels), LEVELS, LABELS),
    st.builds(lambda level, labels: ZCDP(level, **labels), LEVELS, LABELS),
    st.builds(lambda level, delta, labels: ApproxDP(level, delta, **labels), LEVELS, DELTAS, LABELS),
    st.builds(lambda level, delta, labels: GDP(level, delta, **labels), LEVELS, st.just(0.0) | DELTAS, LABELS),
)


@settings(deadline=None)
@given(GUARANTEES)
def test_json_reads_back_to_the_bit(g):
    back = guarantee_from_dict(json.loads(json.dumps(g.to_dict())))
    assert back == g and type(back) is type(g) and repr(back) == repr(g) and hash(back) == hash(g)


@settings(deadline=None)
@given(GUARANTEES)
def test_repr_is_the_call_that_makes_it(g):
    assert eval(repr(g), dict(vars(guarantees))) == g
    assert pickle.loads(pickle.dumps(g)) == copy.deepcopy(g) == g


def test_values_are_frozen_equal_and_match_patterns():
    assert GDP(1) == GDP(1.0, delta=0.0) == GDP(np.float64(1)) == GDP(Fraction(1)) != GDP(1.0, 1e-9)
    assert GDP(1.0) != GDP(1.0, relation="add-remove")
    assert PureDP(1.0) != ZCDP(1.0)
    assert type(GDP(1).mu) is float and math.copysign(1, GDP(1.0, -0.0).delta) == 1
    with pytest.raises(FrozenInstanceError):
        GDP(1.0).mu = 2.0
    match ApproxDP(1.0, 1e-6):
        case ApproxDP(epsilon, delta):
            assert (epsilon, delta) == (1.0, 1e-6)
    with pytest.raises(TypeError):
        GDP(1.0, 0.0, "add-remove")


@pytest.mark.parametrize(
    ("g", "text"),
    [
        (GDP(1.0, relation="add-remove"), "GDP(mu=1, add-remove)"),
        (GDP(1.0), "GDP(mu=1, relation open)"),
        (GDP(0.5, 1e-6, relation="substitute"), "GDP(mu=0.5, delta=1e-06, substitute)"),
        (ApproxDP(1.0, 1e-6, relation="add-remove"), "ApproxDP(epsilon=1, delta=1e-06, add-remove)"),
        (PureDP(0.1, relation="add-remove", unit="attribute"), "PureDP(epsilon=0.1, add-remove, unit=attribute)"),
        (ZCDP(0.5, relation="substitute", trust="local"), "ZCDP(rho=0.5, substitute, local)"),
        (GDP(1.0000001, relation="add-remove"), "GDP(mu=1.00001, add-remove)"),
        (GDP(2.0 / 3, relation="add-remove"), "GDP(mu=0.666667, add-remove)"),
        (GDP(1234567.1, relation="add-remove"), "GDP(mu=1.23457e+06, add-remove)"),
    ],
)
def test_short_form(g, text):
    assert str(g) == text


@settings(deadline=None)
@given(LEVELS.filter(lambda level: level > 1e-300 and level < 1e300))
def test_the_short_form_never_shows_less_than_the_level(level):
    shown = Decimal(str(GDP(level)).removeprefix("GDP(mu=").split(",")[0])
    assert Decimal(repr(level)) <= shown <= Decimal(repr(level)) * Decimal("1.00001")


# -------------------------------------------------------------------------------------------------------- plain words


def test_describe_in_plain_words():
    assert GDP(1.0, relation="add-remove").describe() == (
        "Someone who sees the release and knows all other records can tell whether one record was included with at "
        "most this success: at a false-alarm rate of 5%, a detection rate of at most 26%."
    )
    substitute = GDP(0.5, relation="substitute", assumptions=("float64 sampling",)).describe()
    assert "which of two possible contents one record has (the number of records is public)" in substitute
    assert substitute.endswith("at most 12.7%, provided that the following holds: float64 sampling.")
    assert (
        "whether one household with all its rows was included"
        in GDP(1.0, relation="add-remove", unit="household").describe()
    )
    assert "one attribute of one record" in GDP(1.0, relation="substitute", unit="attribute").describe()
    assert "the collector included" in PureDP(1.0, relation="substitute", trust="local").describe()
    assert "still open" in GDP(1.0).describe()
    assert "100%; this rules out next to nothing" in GDP(1e3, relation="add-remove").describe()


@settings(deadline=None)
@given(GUARANTEES)
def test_describe_is_one_sentence_for_every_value(g):
    assert g.describe().startswith("Someone who sees ") and g.describe().endswith(".") and "\n" not in g.describe()


@settings(deadline=None)
@given(st.floats(1e-3, 8), st.floats(1e-6, 0.5), st.floats(0, 0.3))
def test_detection_limit_of_gdp(mu, rate, delta):
    quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(rate) - 1)
    truth = min(1.0, float(mpmath.ncdf(quantile + mu)) + delta)
    assert GDP(mu, delta).detection_limit(rate) == pytest.approx(truth, rel=1e-11, abs=0)


@settings(deadline=None)
@given(st.floats(1e-3, 8), st.floats(1e-4, 0.5), st.floats(1e-9, 0.3))
def test_detection_limit_is_the_best_of_all_lines(epsilon, rate, delta):
    """Both lines of an (epsilon, delta) pair: as seen from one neighbour, and from the other."""
    first = math.exp(epsilon) * rate + delta
    second = 1 - math.exp(-epsilon) * (1 - delta - rate)
    assert ApproxDP(epsilon, delta).detection_limit(rate) == pytest.approx(min(first, second, 1.0), rel=1e-12, abs=0)
    assert PureDP(epsilon).detection_limit(rate) <= ApproxDP(epsilon, delta).detection_limit(rate)


@settings(deadline=None)
@given(st.floats(1e-3, 5), st.floats(1e-4, 0.5))
def test_detection_limits_of_one_gaussian_release_are_ordered(mu, rate):
    exact = GDP(mu).detection_limit(rate)
    assert rate <= exact <= GDP(mu).to_zcdp().detection_limit(rate) + 1e-12
    for epsilon in (0.1, 1.0, 3.0):
        line = math.exp(epsilon) * rate + gaussian_delta(epsilon, mu)
        assert exact <= line * (1 + 1e-12)


# ----------------------------------------------------------------------------------------------------------- relation


def test_resolve():
    open_one = GDP(1.0, 1e-6, unit="attribute", assumptions=("a",))
    resolved = open_one.resolve("substitute")
    assert not open_one.complete and resolved.complete
    assert resolved == GDP(1.0, 1e-6, relation="substitute", unit="attribute", assumptions=("a",))
    assert resolved.resolve("substitute") == resolved


@pytest.mark.parametrize(
    ("g", "relation"),
    [
        (GDP(1.5, relation="add-remove"), "substitute"),
        (PureDP(1.0, relation="add-remove"), "substitute"),
        (ApproxDP(1.0, 1e-6, relation="add-remove"), "substitute"),
        (GDP(1.0, relation="substitute"), "add-remove"),
        (GDP(1.0), "swap"),
        (GDP(1.0), None),
    ],
)
def test_resolve_refusals(g, relation):
    with refuses(PrivacyError):
        g.resolve(relation)


# ----------------------------------------------------------------------------------------------------------- refusals

KINDS = [
    (PureDP, r"PureDP\(0\.5\)"),
    (ZCDP, r"ZCDP\(0\.1\)"),
    (GDP, r"GDP\(1\.0\)"),
    (lambda value: ApproxDP(value, 1e-6), r"ApproxDP\(1\.0, 1e-6\)"),
]


@pytest.mark.parametrize(("make", "example"), KINDS)
@pytest.mark.parametrize(
    "value",
    [
        0,
        -0.0,
        -1.0,
        math.nan,
        math.inf,
        -math.inf,
        True,
        np.bool_(True),
        "1.0",
        None,
        1j,
        10**400,
    ],
)
def test_levels_that_are_refused(make, example, value):
    with refuses(PrivacyError) as caught:
        make(value)
    assert isinstance(caught.value, ConfideError) and isinstance(caught.value, ValueError)
    if "for instance" in str(caught.value):
        assert caught.match(f"for instance {example}")


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.nan, math.inf, True, "0", None])
def test_deltas_that_are_refused(delta):
    with refuses(PrivacyError):
        GDP(1.0, delta)
    with refuses(PrivacyError):
        ApproxDP(1.0, delta)


def test_delta_of_zero():
    assert GDP(1.0, 0).delta == 0.0
    with refuses(PrivacyError):
        ApproxDP(1.0, 0.0)
    with refuses(PrivacyError):
        GDP(1.0, 1.0)


@pytest.mark.parametrize(
    "labels",
    [
        {"relation": "swap"},
        {"relation": "Add-Remove"},
        {"relation": 1},
        {"trust": "none"},
        {"trust": None},
        {"unit": ""},
        {"unit": "a\nb"},
        {"unit": " record"},
        {"unit": None},
        {"assumptions": "float64 sampling"},
        {"assumptions": (1,)},
        {"assumptions": ("",)},
        {"assumptions": ("two\nlines",)},
        {"assumptions": None},
    ],
)
def test_labels_that_are_refused(labels):
    with refuses(PrivacyError):
        GDP(1.0, **labels)


def _edited(**changes):
    return {**GDP(1.0, relation="add-remove").to_dict(), **changes}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        _edited(type="Magic"),
        _edited(type=["GDP"]),
        _edited(type="ZCDP"),
        _edited(extra=1),
        {k: v for k, v in _edited().items() if k != "unit"},
        _edited(mu=1.0),
        _edited(mu="1.0"),
        _edited(mu="0x1p0"),
        _edited(mu="0x1p99999"),
        _edited(mu="nan"),
        _edited(mu="-0x1.0000000000000p+0"),
        _edited(relation="swap"),
        _edited(assumptions="a"),
    ],
)
def test_files_that_are_refused(data):
    with refuses(PrivacyError):
        guarantee_from_dict(data)


@pytest.mark.parametrize(
    "call",
    [
        lambda: guarantees.gaussian_delta(math.nan, 1.0),
        lambda: guarantees.gaussian_delta(1.0, 0.0),
        lambda: guarantees.log_gaussian_delta(True, 1.0),
        lambda: guarantees.gaussian_epsilon(0.0, 1.0),
        lambda: guarantees.gaussian_epsilon(1.0, 1.0),
        lambda: guarantees.gaussian_epsilon(0.5, -1.0),
        lambda: guarantees.gaussian_mu(-1.0, 1e-6),
        lambda: guarantees.gaussian_mu(1.0, 2.0),
        lambda: guarantees.calibrate_gaussian(1.0),
        lambda: guarantees.pure_mu(0.0),
        lambda: guarantees.pure_epsilon(math.inf),
        lambda: GDP(1.0).detection_limit(0.0),
    ],
)
def test_arguments_that_are_refused(call):
    with refuses(PrivacyError):
        call()


def test_no_conversion_is_a_privacy_error():
    assert issubclass(NoConversion, PrivacyError)


def test_the_public_face_is_curated():
    assert all(hasattr(guarantees, name) for name in guarantees.__all__)
    assert guarantees.__all__ == sorted(guarantees.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
