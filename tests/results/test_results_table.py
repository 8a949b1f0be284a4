"""What the tables show, and how wide."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from tests.results.results_examples import NAMES, SHA, Maker, build

from confide._helpers import clean
from confide.core import STATUSES
from confide.guarantees import GDP, ApproxDP, calibrate_gaussian
from confide.results.pages.content import STATUS_WORDS, approx_words, flag_words, missing_words, notes
from confide.results.pages.table import facts, number
from confide.schema import Categorical, Integer, ModelMatrix, Numeric, Schema


def unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@given(
    st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5, unique=True),
    st.text(max_size=150),
    st.text(max_size=150),
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=150)), max_size=3),
    st.sampled_from([1e-150, 1e-5, 1.0, 1e9, 1e150]),
)
def test_no_line_is_wider_than_80_columns(names, response, covers, facts, size):
    p = len(names)
    scale = size**2
    result = build(
        names=tuple(names),
        response=response,
        intervals_for=covers,
        facts=tuple(facts),
        simulated=True,
        estimates=np.full(p, -size),
        covariance=np.eye(p) * scale,
        noise_variance=np.full(p, scale / 3),
    )
    for verbose in (False, True):
        text = result.summary(0.012345, verbose=verbose)
        for line in text.split("\n"):
            assert cell_len(line) <= 80, line
            assert all(char.isprintable() for char in line)


def test_an_ordinary_table_has_room_for_every_column(make: Maker):
    lines = str(make(names=("Intercept", "age"))).splitlines()
    rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
    assert re.split("  +", lines[rule - 1].strip()) == [
        "term",
        "estimate",
        "std. err.",
        "t",
        "p",
        "95% CI",
        "privacy share",
    ]
    assert len(lines[rule - 1]) == len(lines[rule]) <= 80


def test_every_number_of_the_frame_is_in_its_row(make: Maker):
    names = (*NAMES[:-1], "kent[T.1]")  # a longer name leaves no room for t
    result = make(names=names)
    frame = result.to_frame()
    printed = dict(zip(names, (*names[:-1], "kent: 1"), strict=True))
    lines = {
        line[: line.index("  ")]: re.split(r"  +| to ", line[line.index("  ") :].strip())
        for line in result.summary().splitlines()
        if line.startswith(tuple(f"{one}  " for one in printed.values()))
    }
    assert set(lines) == set(printed.values())
    for name, row in frame.iterrows():
        coef, se, t, p, low, high, share = lines[printed[str(name)]]
        digits = len(se.partition(".")[2])
        assert 10 <= round(row.std_err * 10**digits) <= 100, "two digits of the standard error"
        half = 0.5 * 10**-digits
        for shown, exact, most in (
            (coef, row.estimate, half),
            (se, row.std_err, half),
            (t, row.statistic, 5.1e-2),
            (low, row.ci_low, half),
            (high, row.ci_high, half),
        ):
            assert abs(float(shown) - exact) <= most * 1.001
        assert p == "<0.001" if row.p_value < 0.001 else abs(float(p) - row.p_value) <= 5.1e-4
        assert abs(float(share.rstrip("%")) / 100 - row.privacy_share) <= 5.1e-3


@pytest.mark.parametrize("status", ["not_identified", "no_information", "declined"])
def test_what_must_not_be_interpreted_is_a_dash(make: Maker, status, tmp_path):
    result = make(status=status)
    (row,) = [line for line in result.summary().splitlines() if line.startswith("educ")]
    assert row.split()[1:] == ["n/a"] * 3, "estimate, standard error, interval: without them nothing follows"
    assert "Df" not in result.summary(verbose=True)
    for page in (result._repr_html_(), result.report(tmp_path / "r.html").read_text()):
        assert "<svg" not in page
        assert all(f">{value:.4g}" not in page for value in result.estimates)


def test_a_weak_table_has_estimates_and_dashes(make: Maker):
    (row,) = [line for line in make(status="imprecise").summary().splitlines() if line.startswith("educ")]
    assert row.split()[2:] == ["n/a"] * 2 and float(row.split()[1])


def test_the_legend_stands_below_the_table_and_in_the_report(make: Maker, tmp_path):
    result = make(legend=(("Weighted count", "a sum of weights"),))
    assert "Weighted count a sum of weights" in unwrapped(result.summary(verbose=True))
    assert "<strong>Weighted count:</strong> a sum of weights" in result.report(tmp_path / "r.html").read_text()


def test_the_guarantee_is_said_as_epsilon_and_delta_too(make: Maker, tmp_path):
    mu = GDP(1.0, relation="add-remove")
    result = make(guarantee=mu)
    for text in (unwrapped(result.summary(verbose=True)), result.report(tmp_path / "r.html").read_text()):
        assert "GDP(mu=1, add-remove), at most (4.89, 1e-6)" in text
    assert "Gaussian DP, mu = 1 (implies epsilon 4.89 at delta 1e-6), one record added" in unwrapped(result.summary())


def test_wide_characters_keep_the_columns_in_line(make: Maker):
    names = ("日本語の名前", "e\u0301te\u0301", "plain")
    lines = make(names=names).summary().splitlines()
    rule = next(len(line) for line in lines if set(line) == {"-"})
    for name in names:
        assert [cell_len(line) for line in lines if line.startswith(name)] == [rule]


def test_small_coefficients_keep_two_digits_of_their_error(make: Maker):
    result = make(names=("income",), estimates=[0.000123456], covariance=[[3.4e-5**2]], noise_variance=[0.0])
    row = next(line for line in str(result).splitlines() if line.startswith("income"))
    assert row.split()[1:3] == ["0.000123", "0.000034"]


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0.0, 4, "0.0000"), (-1234.5678, 4, "-1,234.5678"), (1e-12, None, "1.000e-12"), (nan, 4, "nan"), (inf, 4, "inf")],
)
def test_numbers(value, digits, shown):
    assert number(value, digits) == shown


def test_heads_follow_alpha_and_law(make: Maker):
    names = ("a", "b")
    heads = r"estimate\s+std\. err\.\s+t\s+p\s+95% CI\s+privacy share"
    assert re.search(heads, make(names=names).summary())
    assert re.search(r"z\s+p\s+90% CI", make(names=names, df=inf).summary(alpha=0.1))


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_said_in_words(make: Maker, status):
    result = make(status=status)
    shown = unwrapped(result.summary(verbose=True))
    assert STATUS_WORDS[status] in shown
    assert ("none at this status" in shown) == (status not in ("valid", "partial"))
    for brief in (shown, unwrapped(result.summary()), unwrapped(re.sub("<[^>]*>", " ", result._repr_html_()))):
        assert f"Status {status.replace('_', ' ')}" in brief and result.reason in brief
        assert ("Intervals for" in brief) == (status in ("valid", "partial"))


def test_the_table_says_what_it_stands_on(make: Maker):
    result = make(flags=("values_clipped", "clipping_not_checked", "own_flag"))
    text = unwrapped(result.summary(verbose=True))
    brief = (
        "Gaussian DP, mu = 0.25",
        "one record added or removed",
        result.intervals_for,
        SHA[:8],
        "lies outside its declared bounds and was clipped",
        "own flag: own flag",
    )
    for part in (
        *brief,
        str(result.guarantee),
        str(result.requested),
        "add-remove: neighboring datasets differ by one record, added or removed",
        result.target,
        SHA,
        "clipping_check=False",
        "own_flag: own flag",
        "Cov. type robust",
    ):
        assert part in text
    for part in brief:
        assert part in unwrapped(result.summary())
        assert part in unwrapped(re.sub(r"</dt><dd[^>]*>", ": ", result._repr_html_())), part


def test_one_guarantee_is_said_once(make: Maker):
    mu = GDP(1.0, relation="substitute")
    result = make(requested=mu, guarantee=mu)
    text = unwrapped(result.summary(verbose=True))
    assert text.count(str(mu)) == 1
    assert "as requested" in text
    assert "the number of records is public" in text
    assert "one record replaced, their number public" in unwrapped(result.summary())


def test_several_rows_for_one_unit_are_protected_together(make: Maker):
    mu = GDP(1.0, relation="add-remove", assumptions=("at most 3 rows per unit",))
    text = unwrapped(make(guarantee=mu).summary(verbose=True))
    assert "one unit with all its rows, added or removed" in text
    assert "Assumes at most 3 rows per unit" in text
    assert "with all its rows added or removed" in unwrapped(make(guarantee=mu).summary())


def test_simulated_noise_is_loud(make: Maker):
    for result, there in ((make(simulated=True), True), (make(), False)):
        assert ("SIMULATED NOISE: protects no one" in result.summary().splitlines()[1]) == there
        assert ("SIMULATED NOISE: protects no one" in result._repr_html_()) == there
    assert "Privacy none: the noise is simulated." in unwrapped(make(simulated=True).summary())
    assert "Guarantee none." in unwrapped(make(simulated=True).summary(verbose=True))


def test_a_long_name_is_wrapped_and_not_cut(make: Maker):
    name = "region[T.the county of Kent, without the city]"
    lines = make(names=("x", name)).summary().splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("region"))
    more = [line.strip() for line in lines[start + 1 : start + 3]]
    whole = " ".join([lines[start][: lines[start].index("  ")], *more])
    assert whole == "region: the county of Kent, without the city"


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img>', "a&b", "\x1b[31mred", "line\nbreak", "\u202eback"]
)
def test_hostile_text_is_shown_and_not_obeyed(make: Maker, hostile):
    result = make(
        names=(hostile, "b"),
        response=hostile,
        method=hostile,
        facts=((hostile, hostile),),
        status="imprecise",
        reason=hostile,
    )
    page = result._repr_html_()
    plain = make(names=("a", "b"), facts=(("f", "f"),), status="imprecise")._repr_html_()
    assert re.findall(r"<[a-z]+", page) == re.findall(r"<[a-z]+", plain)
    assert "\x1b" not in page and "\u202e" not in page
    assert clean(hostile) in unwrapped(result.summary())


@given(st.text())
def test_clean_text_is_printable(text):
    assert clean(text).isprintable()
    assert clean(clean(text)) == clean(text)


def test_the_same_numbers_are_requested_and_stated_and_no_pair_is_looser_than_the_request():
    asked = ApproxDP(1.0, 1e-6, relation="add-remove")
    stated = replace(asked, assumptions=("float64 sampling",))
    result = build(requested=asked, guarantee=stated)
    assert dict(notes(result))["Guarantee"] == f"{stated}; as requested"
    mu = GDP(calibrate_gaussian(asked), relation="add-remove")
    said = dict(notes(build(requested=asked, guarantee=mu)))["Guarantee"]
    assert ", at most (1, 1e-6); requested was ApproxDP" in said
    assert approx_words(mu) in (", at most (1, 1e-6)", ", at most (1.01, 1e-6)")
    assert approx_words(GDP(1.0), requested=asked) == ", at most (4.89, 1e-6)"
    assert flag_words("no_interval") == "The method gives estimates without intervals."


@pytest.mark.parametrize(
    "changes", [{}, {"status": "imprecise"}, {"status": "declined", "estimates": [nan] * 5}, {"simulated": True}]
)
def test_no_rendering_says_charged_because_a_release_does_not_know(changes, tmp_path):
    """A result is read from a file: whether a ledger was charged for it stands in the ledger, and `verify` reads it there."""
    for asked in (GDP(0.25, relation="add-remove"), ApproxDP(1.0, 1e-6, relation="add-remove")):
        result = build(requested=asked, **changes)
        page = result.report(tmp_path / "page.html").read_text()
        for text in (result.summary(), result._repr_html_(), page, result.to_json()):
            assert not re.search("charge|the budget is spent", text, re.IGNORECASE)


def test_what_happens_to_missing_values_is_worded_as_a_rule():
    def said(formula: str, **columns: Any) -> str:
        schema = Schema(columns)
        bounds = {"log(a)": (0.0, 1.0)} if "log" in formula else None
        return missing_words(schema.columns, ModelMatrix.of(formula, schema, term_bounds=bounds))

    unit, y = Numeric(0, 1), Numeric(0, 1)
    assert said("y ~ a", a=unit, y=y) == "records with missing a or y are excluded"
    assert said("y ~ c", c=Categorical(["N", "S"], on_missing="N"), y=y) == (
        "records with missing y are excluded; a missing c counts as the level 'N'; a label that is not declared counts as missing"
    )
    assert "missing a counts as the midpoint of its bounds" in said(
        "y ~ a", a=Numeric(0, 1, on_missing="midpoint"), y=y
    )
    assert "missing a counts as 0;" in said("y ~ log(a)", a=Integer(0, 1, on_missing="midpoint"), y=y)
    assert "missing a counts as 0.5" in said("y ~ a", a=Numeric(0, 1, steps=3, on_missing=0.3), y=y)
    assert "missing a counts as 1234567" in said("y ~ a", a=Integer(0, 3_000_000, on_missing=1_234_567), y=y)
    assert "missing c counts as the level 'midpoint'" in said(
        "y ~ c", c=Categorical(["midpoint", "low"], on_missing="midpoint"), y=y
    )
    assert said("y ~ log(a)", a=unit, y=y).endswith("a derived term without a finite value is treated as missing")


def test_so_many_degrees_of_freedom_are_not_told_apart() -> None:
    assert "> 1000" in dict(facts(build(df=[5234687.6, 6276391.2, 2000.0, 1001.0, 9e9]))).values()
    assert "50.3 to > 1000" in dict(facts(build(df=[50.3, 6276391.2, 2000.0, 1001.0, 9e9]))).values()
