"""The rules for single cells, and that a cell never depends on its neighbours."""

from __future__ import annotations

import datetime
import random
import re
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, isnan, nan

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import confide as cf
from confide.core.lost_values import OTHER, UNREAD
from confide.schema import Categorical, Date, Numeric
from confide.sources.coder import code_of, reader_of
from confide.sources.coding import (
    EMPTY,
    HOLDS,
    MARKS,
    Coded,
    Labels,
    Numbers,
    from_arrow,
    how_read,
    is_readable,
    missing_of,
    sliced,
    text_numbers,
)
from confide.sources.grouping.ids import hashes


def same(one, other) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def raw_text(cells: list[bytes | None]) -> pa.Array:
    """Arrow text of any bytes, as a Parquet file may hold it."""
    return pa.array(cells, pa.binary()).view(pa.string())


# numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (" 2\t", 2.0),
        ("+1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-3e2", -300.0),
        ("1e400", inf),
        ("true", 1.0),
        ("True", 1.0),
        (" FALSE", 0.0),
        ("", nan),
        (" ", nan),
        ("two", nan),
        ("1_000", nan),
        ("1,5", nan),
        ("0x10", nan),
        ("1 2", nan),
        ("1\x00", nan),
        ("٣", nan),
        ("--1", nan),
        ("2020-01-01", nan),
    ],
)
def test_text_is_a_number_or_missing(text, value):
    assert same(Numbers()(pa.array([text])), [value])
    assert same(Numbers()(np.array([text, 7.0], dtype=object)), [value, 7.0])


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    st.sampled_from(["{!r}", "{:.17g}", "{:.30e}", " {:+.20f} "]),
)
@settings(max_examples=200, deadline=None)
def test_text_is_rounded_correctly(values, form):
    texts = [form.format(value) for value in values]
    assert same(text_numbers(pa.array(texts)), [float(text) for text in texts])


@pytest.mark.parametrize(
    "digits", ["9007199254740993", "0.1000000000000000055511151231257827021181583404541015625", "1" * 400]
)
def test_text_halfway_between_doubles(digits):
    """Ties and long inputs: where a parser that is almost right goes wrong."""
    for text in (digits, digits + "1", "-" + digits, "0." + digits.replace(".", "")):
        assert same(text_numbers(pa.array([text])), [float(text)])


def test_elementwise_casts():
    numbers = Numbers()
    big = 2**63 - 1
    assert same(numbers(np.array([1, big])), [1.0, float(big)])
    assert same(numbers(np.array([2**64 - 1], dtype=np.uint64)), [2.0**64])
    assert same(numbers(pa.array([big, None])), [float(big), nan])
    assert same(numbers(pa.array([2**64 - 1, None], pa.uint64())), [2.0**64, nan])
    assert same(numbers(np.array([0.1], dtype=np.float32)), [float(np.float32(0.1))])
    assert same(numbers(np.array([0.1], dtype=np.float16)), [float(np.float16(0.1))])
    assert same(numbers(pa.array([0.5, None], pa.float16())), [0.5, nan])
    assert same(numbers(np.array([1.5, 2.5], dtype=">f8")), [1.5, 2.5])
    assert same(numbers(np.array([1, 2], dtype=">i4")), [1.0, 2.0])
    assert same(numbers(np.array([True, False])), [1.0, 0.0])
    assert same(numbers(pa.array([True, None])), [1.0, nan])
    assert same(numbers(pa.array([None, None])), [nan, nan])
    assert same(numbers(np.array(["1.5", "x"])), [1.5, nan])
    assert same(numbers(pa.array(["1.5", None], pa.large_string())), [1.5, nan])
    assert same(numbers(pa.array(["1.5", None], pa.string_view())), [1.5, nan])


@given(st.lists(st.none() | st.decimals(min_value=-(10**9), max_value=10**9, places=9), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_decimals_are_rounded_correctly(cells):
    expected = [nan if cell is None else float(cell) for cell in cells]
    assert same(Numbers()(pa.array(cells, pa.decimal128(20, 9))), expected)
    assert same(Numbers()(np.array(cells, dtype=object)), expected)


OBJECTS = [
    None,
    nan,
    pd.NA,
    pd.NaT,
    3,
    True,
    np.int8(4),
    np.float32(0.5),
    Decimal("0.1"),
    Decimal("sNaN"),
    Fraction(1, 3),
    10**400,
]
OBJECTS += [
    -(10**5000),
    Fraction(10**400),
    "0.1",
    " 7 ",
    "x",
    "",
    "\ud800",
    "1\ud800",
    b"1",
    1j,
    np.complex128(2),
    [1],
    {},
    object,
]
OBJECTS += [
    datetime.date(2020, 1, 1),
    np.datetime64("2020"),
    np.array(3.0),
    np.longdouble(2),
    Decimal("1e999999"),
    np.str_("2.5"),
]


def test_objects_one_by_one():
    cells = np.empty(len(OBJECTS), dtype=object)
    cells[:] = OBJECTS
    got = Numbers()(cells)
    assert got[4:9].tolist() == [3.0, 1.0, 4.0, 0.5, 0.1]
    assert got[10] == 1 / 3
    assert (got[14], got[15], got[-1]) == (0.1, 7.0, 2.5)
    known = {index for index, value in enumerate(got) if isfinite(value)}
    assert known == {4, 5, 6, 7, 8, 10, 14, 15, len(OBJECTS) - 3, len(OBJECTS) - 1}


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_an_object_does_not_depend_on_its_neighbours(data):
    chosen = data.draw(st.lists(st.integers(0, len(OBJECTS) - 1), min_size=1, max_size=12))
    for reader in (Numbers(), Labels(Categorical(["1", "3", "x", "True", "0.1"]))):
        alone = []
        for index in chosen:
            cell = np.empty(1, dtype=object)
            cell[0] = OBJECTS[index]
            alone.append(float(reader(cell)[0]))
        cells = np.empty(len(chosen), dtype=object)
        cells[:] = [OBJECTS[index] for index in chosen]
        assert same(reader(cells), alone)


cell_bytes = (
    st.none()
    | st.binary(max_size=6)
    | st.sampled_from([b"1", b"1.0", b" 1", b"N", b"true", b"\xff", b"1\xff", b"1e5", b"\x00"])
)


@given(st.lists(cell_bytes, min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
def test_text_does_not_depend_on_its_neighbours(cells):
    """Any bytes, invalid UTF-8 included."""
    for reader in (Numbers(), Labels(Categorical(["1", "N", "true", "\ufffd"]))):
        alone = [float(reader(raw_text([cell]))[0]) for cell in cells]
        assert same(reader(raw_text(cells)), alone)
        assert same(reader(raw_text(cells).dictionary_encode()) if b"" not in cells else alone, alone)
        assert same(reader(raw_text([None, *cells, b"2"]).slice(1, len(cells))), alone)


# labels -------------------------------------------------------------------------------------------


def test_labels_by_text_then_by_number():
    labels = Labels(Categorical(["1", "2", "ten", "0.5"]))
    assert labels(pa.array(["1", "2", "ten", "0.5", "Ten", " ten", None, "3"])).tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    assert labels(pa.array(["1.0", "2e0", ".5", " 1"])).tolist() == [0, 1, 3, 0]
    assert labels(np.array([1.0, nan, 2.0, inf, 0.5, 1.5])).tolist() == [0, -1, 1, -1, 3, -1]
    assert labels(np.array([1, 2, 3])).tolist() == [0, 1, -1]
    assert labels(pa.array([1, None, 2])).tolist() == [0, -1, 1]
    assert labels(np.array([True, False])).tolist() == [0, -1]
    assert labels(pa.array([Decimal("2.00"), None, Decimal("0.50")])).tolist() == [1, -1, 3]
    assert labels(np.array([1, 1.0, "1", True, None, nan, "ten", 2**70], dtype=object)).tolist() == [
        0,
        0,
        0,
        0,
        -1,
        -1,
        2,
        -1,
    ]


@pytest.mark.parametrize(
    ("levels", "true", "false"),
    [
        (["True", "False"], 0, 1),
        (["false", "true"], 1, 0),
        (["0", "1"], 1, 0),
        (["TRUE", "FALSE"], 0, 1),
        (["1", "true", "True"], 2, -1),
        (["a", "b"], -1, -1),
    ],
)
def test_booleans_find_their_level(levels, true, false):
    expected = [true, false]
    assert Labels(Categorical(levels))(np.array([True, False])).tolist() == expected
    assert Labels(Categorical(levels))(pa.array([True, False, None])).tolist() == [*expected, -1]
    assert Labels(Categorical(levels))(np.array([True, np.bool_(False), None], dtype=object)).tolist() == [
        *expected,
        -1,
    ]


def test_text_and_numbers_of_booleans_agree():
    """The same boolean from memory, from CSV as pandas or polars write it, and after pandas made floats of it."""
    for levels in (["False", "True"], ["0", "1"], ["false", "true"]):
        labels = Labels(Categorical(levels))
        for cells in (["False", "True"], ["false", "true"], ["FALSE", "TRUE"], ["0", "1"], ["0.0", "1.0"]):
            assert labels(pa.array(cells)).tolist() == [0, 1]
        assert labels(np.array([0.0, 1.0])).tolist() == [0, 1]


def test_levels_of_one_number():
    """An exact text comes first; a number means the level written plainly."""
    labels = Labels(Categorical(["01", "1", "1.0", "True"]))
    assert labels(pa.array(["01", "1", "1.0", "True", "1.00", "true"])).tolist() == [0, 1, 2, 3, 1, 1]
    assert labels(np.array([1.0])).tolist() == [1]
    assert labels(np.array([1])).tolist() == [1]


def test_integers_beyond_doubles():
    large = 2**53 + 1
    labels = Labels(Categorical([str(2**53), str(large), "-9223372036854775808"]))
    assert labels(np.array([2**53, large, large + 1, -(2**63)])).tolist() == [0, 1, -1, 2]
    assert labels(pa.array([2**53, large, None])).tolist() == [0, 1, -1]
    assert labels(np.array([large, 2**53], dtype=object)).tolist() == [1, 0]
    assert labels(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [-1]


def test_levels_that_are_no_numbers():
    labels = Labels(Categorical(["nan", "inf", "N"]))
    assert labels(np.array([nan, inf, 1.0])).tolist() == [-1, -1, -1]
    assert labels(pa.array(["nan", "inf", "NaN"])).tolist() == [0, 1, -1]


# dictionaries -------------------------------------------------------------------------------------


def test_dictionaries():
    cells = pa.array(["S", None, "N", "S", "q"]).dictionary_encode()
    assert Labels(Categorical(["N", "S"]))(cells).tolist() == [1, -1, 0, 1, -1]
    assert same(Numbers()(pa.array([1.5, None, 2.5, 1.5]).dictionary_encode()), [1.5, nan, 2.5, 1.5])
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["N", None]))
    assert Labels(Categorical(["N", "S"]))(with_null).tolist() == [0, -1, -1]
    assert Labels(Categorical(["1", "x"]))(
        Coded(np.array([0, -1, 1], dtype=np.int8), np.array([1, "x"], dtype=object))
    ).tolist() == [0, -1, 1]


def test_a_new_dictionary_replaces_the_old():
    reader = Labels(Categorical(["N", "S"]))
    for values in (["N", "S"], ["S", "N"], ["N", "S"], ["x", "S"]):
        dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(values))
        assert reader(dictionary).tolist() == [{"N": 0, "S": 1}.get(value, -1) for value in values]


def test_slices_share_the_columns_rules():
    for cells in (np.arange(5.0), pa.array([0.0, 1, 2, 3, 4]), Coded(np.arange(5), np.arange(5.0))):
        assert Numbers()(sliced(cells, 1, 4)).tolist() == [1.0, 2.0, 3.0]


# types --------------------------------------------------------------------------------------------


def test_types_without_a_rule():
    for kind in (pa.date32(), pa.timestamp("s"), pa.binary(), pa.list_(pa.float64()), pa.struct([]), pa.duration("s")):
        assert not is_readable(kind)
        assert not is_readable(pa.dictionary(pa.int8(), kind))
    for dtype in ("datetime64[s]", "timedelta64[s]", "complex128", "S3", "V8"):
        assert not is_readable(np.dtype(dtype))
    assert not is_readable("period[M]")
    for kind in (
        pa.float16(),
        pa.int8(),
        pa.decimal128(5, 1),
        pa.large_string(),
        pa.bool_(),
        pa.null(),
        pa.string_view(),
    ):
        assert is_readable(kind)


def test_missing_is_missing():
    assert isnan(Numbers.missing)
    assert Labels.missing == -1


# codes of missing values --------------------------------------------------------------------------


def forms(cells: list[str | None], typed: list[float]) -> list[object]:
    """One column as text of every type, as objects, and as numbers."""
    texts = pa.array(cells)
    arrow = [texts, texts.cast(pa.large_string()), texts.cast(pa.string_view()), texts.dictionary_encode()]
    coded = Coded(np.arange(len(cells)), np.array(cells, dtype=object))
    numbers = np.array(typed)
    return [*arrow, coded, np.array(cells, dtype=object), numbers, numbers.astype(object), pa.array(typed)]


@pytest.mark.parametrize(
    ("codes", "marks", "cells", "typed"),
    [
        (["999,0", "\u221299"], (",", ""), ["999,0", "-99,00", "\u221299", "5,5", None], [999, -99, -99, 5.5, nan]),
        (["9.999"], (",", "."), ["9.999", "9999", "8.000", "1.742,81", None], [9999, 9999, 8000, 1742.81, nan]),
        (["9 999", -1], (".", " "), ["9\u202f999", "-1", "\u22121.0", "7", None], [9999, -1, -1, 7, nan]),
        (["\u221299"], (".", ""), ["-99", "\u221299", "-99.0", "5.5", None], [-99, -99, -99, 5.5, nan]),
        (["true", "-99"], (",", ""), ["-99", "1", "1,0", "TRUE", None], [-99, 1, 1, 1, nan]),
    ],
)
def test_a_code_is_one_as_programs_and_as_the_file_write_it(codes, marks, cells, typed):
    column = Numeric(0, 1e4, missing=codes)
    (values, found), *others = [
        (reader_of(column, marks)(one), code_of(column, marks)(one)) for one in forms(cells, typed)
    ]
    is_code = np.array([one in (999, 9999, -99, -1) for one in typed])
    assert same(values, np.where(is_code, nan, typed))
    assert same(found < 0, ~is_code) and found[-1] == EMPTY and (found[:-1][~is_code[:-1]] == HOLDS).all()
    for other in others:
        assert same(other[0], values) and same(other[1], found)


def test_a_code_of_text_is_one_in_no_other_spelling():
    column = Numeric(0, 9, missing=["true", "k.A."])
    cells = pa.array(["true", " k.A. ", "True", "K.A.", "1"])
    assert same(reader_of(column)(cells), [nan, nan, 1, nan, 1])
    assert code_of(column)(cells).tolist() == [0, 1, HOLDS, HOLDS, HOLDS]


@pytest.mark.parametrize(
    ("levels", "code", "marks"), [("17.5", "17,5", (",", "")), ("1000", "1.000", (",", ".")), ("1", "true", MARKS)]
)
def test_a_code_is_no_level_of_the_same_number(levels, code, marks):
    column = Categorical([levels, "2"], missing=[code])
    for cells in (pa.array([code, f" {code} ", levels, "2"]), np.array([code, f" {code} ", levels, "2"], dtype=object)):
        assert reader_of(column, marks)(cells).tolist() == [-1, -1, 0, 1]
        assert code_of(column, marks)(cells).tolist()[:2] == [0, 0]


def test_truth_values_are_codes_as_their_numbers_are():
    column = Categorical(["no", "yes"], missing=[1])
    for cells in (
        np.array([True, False]),
        pa.array([True, False]),
        np.array([True, False], dtype=object),
        np.array([1.0, 0.0]),
        np.array([1, 0]),
        np.array([1, 0.0], dtype=object),
        pa.array(["1", "0"]),
    ):
        assert how_read(reader_of(column)(cells), cells, code_of(column)).tolist() == [OTHER, UNREAD]


def test_views_of_text_are_read_like_other_text():
    """Arrow takes no rows of views, and a cell without a value needs that."""
    columns = {
        "x": Numeric(0, 9, missing=["-9"]),
        "g": Categorical(["a", "b"]),
        "d": Date("1900-01-01", "2006-12-31", missing=["9999-12-31"]),
    }
    cells = {
        "x": ["1", "2", None, "?", "-9", " "],
        "g": ["a", "b", None, "?", "b", ""],
        "d": ["1970-01-01", "2000-02-29", None, "?", "9999-12-31", ""],
    }
    for name in columns:
        found = []
        for kind in (pa.string(), pa.string_view()):
            table = pa.table({one: pa.array(own * 50, kind) for one, own in cells.items()})
            source = cf.read(table, cf.Schema(columns))
            seen = cf.preflight(source, name).columns[name]
            assert (seen.unread, seen.empty) == (50, 100)
            method = (cf.tables.Counts if name == "g" else cf.tables.Means)(name, inference="population")
            found.append(
                (
                    str(cf.preflight(source)),
                    cf.release(method, source, cf.GDP(1), ledger=None, noise=cf.noise.SimulatedNoise(1)),
                )
            )
        assert found[0][0] == found[1][0]
        assert found[0][1].sha256 == found[1][1].sha256


_MARKS_OF_NUMBERS = "0123456789.+-eE naifINFty_x"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)


def _cells_of_all_sorts(generator: random.Random, size: int) -> list[str | None]:
    """Numbers, words, empty and missing cells, and what looks like numbers."""
    odd = [
        "",
        None,
        "NA",
        "n/a",
        "inf",
        "-Infinity",
        "+7",
        "true",
        "é",
        "1e400",
        "1e-400",
        "--",
        " 5 ",
        "1_0",
        "0x1",
        "nan(1)",
    ]
    kinds = [
        lambda: repr(generator.uniform(-1e3, 1e3)),
        lambda: generator.choice(odd),
        lambda: "".join(generator.choice(_MARKS_OF_NUMBERS) for _ in range(generator.randint(0, 7))),
    ]
    return [generator.choice(kinds[: generator.randint(1, 3)])() for _ in range(size)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_what_number_a_text_is_depends_on_no_other_cell(kind: pa.DataType) -> None:
    """A block of numbers alone, one with words, and one that does not read as a whole are read in different ways."""
    generator = random.Random(7)
    for _ in range(200):
        cells = pa.array(_cells_of_all_sorts(generator, generator.randint(0, 25)), kind)
        for part in (cells, cells.slice(len(cells) // 3)):
            alone = [text_numbers(part.slice(at, 1))[0] for at in range(len(part))]
            assert np.array_equal(text_numbers(part), alone, equal_nan=True)


def test_numbers_in_text_are_pythons() -> None:
    """Python rounds correctly too; it reads more, such as 1_0, which is no number in a file."""
    cells = [cell for cell in _cells_of_all_sorts(random.Random(8), 5_000) if cell is not None]
    meant = [float(cell) if _NUMBER.fullmatch(cell := text.strip()) else np.nan for text in cells]
    words = {"true": 1.0}
    assert np.array_equal(
        text_numbers(pa.array(cells)), [words.get(c, m) for c, m in zip(cells, meant, strict=True)], equal_nan=True
    )


@pytest.mark.parametrize(
    "cells",
    [
        *(
            pa.array([1, None, 3] * 9, kind)
            for kind in (pa.int8(), pa.uint32(), pa.int64(), pa.float32(), pa.float64())
        ),
        *(
            pa.array([True, False, None, True] * 9),
            pa.array([True] * 20),
            pa.array(["a", None]),
            pa.array([], pa.int64()),
        ),
    ],
    ids=lambda cells: str(cells.type),
)
def test_arrays_come_from_arrow_as_pyarrow_gives_them(cells: pa.Array) -> None:
    for part in (cells, cells.slice(1), cells.slice(3, 10), cells.drop_null().slice(2)):
        found, meant = from_arrow(part), part.to_numpy(zero_copy_only=False)
        assert found.dtype == meant.dtype and np.array_equal(found, meant, equal_nan=found.dtype.kind == "f")
        assert missing_of(part).tolist() == [cell is None for cell in part.to_pylist()]


def test_equal_ids_have_one_hash_and_others_another() -> None:
    generator = random.Random(9)
    ids = [
        bytes(generator.randrange(256) for _ in range(generator.choice([0, 1, 7, 8, 9, 63, 64, 65, 200])))
        for _ in range(3_000)
    ]
    whole = pa.array(ids, pa.large_binary())
    found = hashes(whole)
    assert found.tolist() == [hashes(whole.slice(at, 1))[0] for at in range(len(whole))]
    assert len(set(found.tolist())) == len(set(ids))
    assert not (found == hashes(whole, 2)).any()
    # each of 64 files has its share of consecutive ids: a binomial count of 50,000, within five standard deviations
    files = np.bincount(
        hashes(pa.array([b"%d" % number for number in range(50_000)], pa.large_binary())) % np.uint64(64), minlength=64
    )
    assert abs(files - 50_000 / 64).max() < 5 * np.sqrt(50_000 / 64)
