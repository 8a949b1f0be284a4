"""Names in formulas and conditions stand for the column of exactly these characters, whatever Python's parser makes of them."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st
from tests.messages import refuses

import confide as cf
from confide.cli.options import parse_names
from confide.errors import PlanError, SchemaError
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.ssp.draw import responses_of
from confide.methods.tables.layout import Layout, weight_of
from confide.schema import ModelMatrix
from confide.schema.formulas.conditions import parse_predicate
from confide.schema.formulas.names import column_named, hidden, quoted, restored

LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="`")
# what Python's parser takes for something else: ligatures, full-width letters, signs of units, accents apart from their letter
CHANGED = st.sampled_from(
    [
        "µ",
        "μ",
        "Nº",
        "ｙｅａｒ",
        "e\u0301tat",
        "état",
        "ﬁn",
        "Ω",
        "x²",
        "a~b",
        "a,b",
        "a+b",
        "a:b",
        "it's",
        '"',
        "(",
        "a\x00b",
        "l\u2028",
    ]
)
NAMES = st.one_of(
    CHANGED,
    st.text(LETTERS, min_size=1, max_size=8),
    st.text(LETTERS, min_size=1, max_size=8).map(lambda text: unicodedata.normalize("NFD", text)),
    st.text(LETTERS, min_size=1, max_size=8).map(lambda text: unicodedata.normalize("NFC", text)),
).filter(lambda name: name.strip())  # fmt: skip
FEW = settings(max_examples=30, deadline=None, derandomize=True)


def taken(*names: str) -> None:
    """Only names that one schema takes together."""
    forms = {unicodedata.normalize("NFKC", name) for name in names}
    assume(len(forms) == len(names))


def written(name: str) -> list[str]:
    """The ways to write a name in a formula."""
    return [f"`{name}`", quoted(name)]


@FEW
@given(NAMES)
@example("µ")
@example("Nº")
@example("quoted_0_")
def test_a_name_is_read_verbatim_in_every_place(name: str) -> None:
    taken(name, "y", "g", "pid")
    schema = cf.Schema({name: cf.Numeric(0.5, 2), "y": cf.Numeric(0, 1), "g": cf.Categorical(["a", "b"])})
    labels = cf.Schema({name: cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 1), "g": cf.Categorical(["a", "b"])})
    for text in written(name):
        assert ModelMatrix.of(f"y ~ {text}", schema).terms[0].plain == name
        assert ModelMatrix.of(f"{text} ~ y", schema).response.plain == name
        assert ModelMatrix.of(f"y ~ log({text}) + I({text} ** 2)", schema).terms[1].columns == (name,)
        assert ModelMatrix.of(f"y ~ {text}*g", labels).terms[0].columns == (name,)
        assert binary_design(f"{text} ~ y", labels)[1] == ("a", "b")
        assert parse_predicate(f"{text} > 1 & g == 'a'", schema).columns == (name, "g")
        assert Layout.of(f"{text} * g", labels).crossing.columns == (name, "g")
        assert Layout.of(f"{text} ~ g:cut({text}, 1)", schema).columns == ("g", name)
        assert Layout.of(f"{text} * g", labels).axes(text) == (0,)
        assert weight_of(text, schema).columns == (name,)
        assert cf.tables.Shares(f"g * {text}", within=text, inference="dataset").about(labels).shown[0] == ()
        assert cf.tables.TableOne(f"{text} ~ g", inference="dataset").about(schema).measures[0].columns == (name,)
        assert cf.Unit("pid", per=f"`{name}`").per == name
        assert cf.Schema(dict(labels.columns), unit=cf.Unit("pid", per=f"`{name}`")).rows_per_unit == 2
        # on the command line several names are separated by commas
        assert [column_named(one, schema.names) for one in parse_names(f"`{name}`, g") or ()] == [name, "g"]


@FEW
@given(NAMES.filter(str.isidentifier), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
@example("Nº", "NFKC")
@example("µ", "NFKC")
@example("e\u0301tat", "NFC")
def test_a_bare_name_that_is_no_column_is_found_by_its_form(name: str, form: str) -> None:
    typed = unicodedata.normalize(form, name)
    taken(name, "y")
    assume(typed.isidentifier() and quoted(unicodedata.normalize("NFKC", name))[0] != "`")
    schema = cf.Schema({name: cf.Numeric(0.5, 2), "y": cf.Numeric(0, 1)})
    assert ModelMatrix.of(f"y ~ {typed}", schema).terms[0].plain == name
    assert ModelMatrix.of(f"y ~ log({typed})", schema).terms[0].columns == (name,)
    assert parse_predicate(f"{typed} > 1", schema).columns == (name,)


@FEW
@given(NAMES, st.text(max_size=20))
def test_names_hide_and_come_back(name: str, text: str) -> None:
    plain, names = hidden(f"{text} + `{name}`", (name,))
    assume(text.count("`") == 0)
    assert name in names.values() or name in text
    assert hidden(plain, (), names)[1] == {} or "'" in text or '"' in text
    # what comes back is read as the same names
    again = hidden(restored(plain, names), (name,))
    assert sorted(again[1].values()) == sorted(names.values())


def test_two_names_that_are_one_under_nfkc_are_refused_by_code_point() -> None:
    with refuses(SchemaError):
        cf.Schema({"µ": cf.Numeric(0, 1), "μ": cf.Numeric(0, 1)})
    with refuses(SchemaError):
        cf.Schema({"é": cf.Numeric(0, 1), "e\u0301": cf.Numeric(0, 1)})


def test_a_line_and_a_subgroup_are_of_the_column_that_is_written() -> None:
    # both stood in one schema once, and each formula read the other column
    schema = cf.Schema({"µ": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    frame = schema.sample(500, seed=1).assign(y=lambda own: own["µ"])
    line = cf.linear_regression("y ~ µ", cf.read(frame, schema), privacy=cf.GDP(20.0), ledger=None)
    assert line.params["µ"] == pytest.approx(1, abs=0.1)
    inside = parse_predicate("µ > .5", schema)(schema["µ"].code(frame["µ"].to_numpy())[None, :])
    assert np.array_equal(inside, frame["µ"].to_numpy() > 0.5)


def test_labels_numbers_and_functions_are_no_names() -> None:
    schema = cf.Schema({"e5": cf.Numeric(0.5, 9), "log": cf.Numeric(0.5, 9), "g": cf.Categorical(["µ", "e5"])})
    assert ModelMatrix.of("e5 ~ log(log) + I(1e5 * log)", schema).terms[1].name == "I(100000.0 * log)"
    assert parse_predicate("g == 'µ' & e5 > 1e0", schema).columns == ("e5", "g")


def test_an_unknown_name_is_told_as_it_was_written() -> None:
    schema = cf.Schema({"y": cf.Numeric(0, 1), "x": cf.Numeric(0, 1)})
    with refuses(PlanError):
        ModelMatrix.of("y ~ log(µ)", schema)
    with refuses(SchemaError):
        parse_predicate("ｘ２ > 1", schema)


def test_several_responses_are_told_apart_by_name() -> None:
    assert responses_of("µ + `a+b` ~ x") == ("`µ` ~ x", "`a+b` ~ x")
    assert responses_of("y1 + log(y2) ~ `a~b`") == ("y1 ~ `a~b`", "log(y2) ~ `a~b`")
