"""One line is one record: against a reference that reads line by line, on hostile bytes."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings, strategies as st

from confide.schema.layout import FileLayout
from confide.sources.coding import FileMark
from confide.sources.formats import text_files
from confide.sources.formats.text_files import CsvPart, count_records, parse_line, split


def one_line(line: bytes, width: int, delimiter: str = ",") -> list[str | None] | None:
    """What a line means, written as plainly as possible: None for no record, else its fields."""
    line = line[:-1] if line.endswith(b"\r") else line
    if not line:
        return None
    text = line.decode("utf-8", "replace")
    missing: list[str | None] = [None] * width
    if "\r" in text:
        return missing
    if '"' not in text:
        fields = text.split(delimiter)
        return [*fields] if len(fields) == width else missing
    try:
        row = next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return missing
    return [*row] if len(row) == width else missing


def rows_of(block: bytes, width: int, delimiter: str = ",") -> list[tuple[str | None, ...]]:
    count, columns = split(block, range(width), delimiter=delimiter, width=width)
    assert all(len(column) == count for column in columns)
    for column in columns:
        column.validate(full=True)
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=repr)


def expected_rows(found: list[bytes], width: int, delimiter: str = ",") -> list[tuple[str | None, ...]]:
    meant = [one_line(line, width, delimiter) for line in found]
    return sorted((tuple(row) for row in meant if row is not None), key=repr)


# letters that make trouble come often
piece = st.sampled_from(
    [b'"', b",", b'""', b'"a"', b'","', b"\r", b"\x00", b"\xff", b"\xe2\x82", "é".encode(), b"1.5", b" ", b";"]
)
hostile = st.lists(piece | st.binary(max_size=3), max_size=8).map(lambda parts: b"".join(parts).replace(b"\n", b""))


@pytest.mark.long
@given(st.lists(hostile, min_size=1, max_size=12), st.integers(1, 3), st.sampled_from([",", ";", "\t"]))
@settings(max_examples=800, deadline=None)
def test_each_line_by_itself(found, width, delimiter):
    block = b"".join(line + b"\n" for line in found)
    assert rows_of(block, width, delimiter) == expected_rows(found, width, delimiter)
    assert count_records(block) == len(expected_rows(found, width, delimiter))


@pytest.mark.parametrize(
    "line",
    [
        b'"',
        b'1,"2',
        b'1,2"',
        b"\xff,\xfe",
        b"\x00,\x00",
        b"1",
        b"1,2,3",
        b"\r1,2",
        b"1\r,2",
        b'"1,2',
        b'""",',
        b",",
        b"x" * 300_000 + b'"',
    ],
)
def test_a_hostile_line_swallows_nothing(line):
    good = [b"1,a", b'2,"b"', b"3,c"]
    for at in range(4):
        found = [*good[:at], line, *good[at:]]
        rows = rows_of(b"".join(one + b"\n" for one in found), 2)
        assert rows == expected_rows(found, 2)
        for row in (("1", "a"), ("2", "b"), ("3", "c")):
            assert row in rows


def test_quotes_by_the_book():
    block = b'"a,b","c"\n"a""b",c\n"a"b,c\na"b,c\n"",""\r\n"a",b"\n" "," a"\n'
    assert rows_of(block, 2) == sorted(
        [("a,b", "c"), ('a"b', "c"), (None, None), ('a"b', "c"), ("", ""), ("a", 'b"'), (" ", " a")], key=repr
    )


def test_blank_lines_are_no_records():
    assert rows_of(b"\n\r\n1\n\n", 1) == [("1",)]
    assert split(b"\n\n", [0], delimiter=",", width=1)[0] == 0


def test_a_line_may_be_too_long(monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST", 10)
    assert rows_of(b"12345,6789\n12345,67890\n" + b'"12345","678"\n', 2) == [
        ("12345", "6789"),
        (None, None),
        (None, None),
    ]


def test_header_lines():
    assert parse_line('a,"b,c"', ",") == ["a", "b,c"]
    assert parse_line('a,"b', ",") is None


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("longest", [12, 1 << 24])
def test_files_in_blocks_of_any_size(tmp_path, monkeypatch, block_bytes, longest):
    """Where a block ends must not show, not even at a line that is too long."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(text_files, "LONGEST", longest)
    monkeypatch.setattr(text_files, "LONGEST", longest)
    found = [b"1,a", b'"', b"2,b\r", b"", b"3," + b"c" * 40, b'4,"' + b"d" * 40, b"\xff,e", b"5,f"]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfn,label\n" + b"\n".join(found))
    part = CsvPart.open(FileMark.of(path), FileLayout())
    assert part.names == ("n", "label")
    rows = []
    for one in part.pieces(["n", "label"]):
        for block in one.blocks(2):
            assert block.rows <= 2
            rows += zip(*(column.to_pylist() for column in block.columns), strict=True)
    limited = [b'"' if len(line.removesuffix(b"\r")) > longest else line for line in found]
    assert sorted(rows, key=repr) == expected_rows(limited, 2)
    assert part.count() == len(rows) == 7
