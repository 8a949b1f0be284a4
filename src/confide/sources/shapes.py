"""Shapes of cells that are not read as values, and what a shape looks like: a decimal comma, a unit in the cell.

A shape tells how a cell is written and not what it says: digits are 9 and letters a, and runs of them one character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.sources.coding import ALIKE, Cells, Coded, is_text, taken, text_array, valid_text

#: What a byte becomes that the file's encoding does not have.
UNDECODED = "\ufffd"
# Characters of a shape.
_CUT = 12
_NINE, _A = ord("9"), ord("a")
_SAME = np.arange(256, dtype=np.uint8)
_SAME[ord("0") : _NINE + 1] = _NINE
_SAME[_A : ord("z") + 1] = _SAME[ord("A") : ord("Z") + 1] = _A
# What the shapes of dates look like.
_DATES = {
    "9.9.9": 'format = "%d.%m.%Y"?',
    "9/9/9": 'format = "%d/%m/%Y" or "%m/%d/%Y"?',
    "9-9-9": 'format = "%Y-%m-%d" or "%d-%m-%Y"?',
    "9": "a year alone, or a number of days: epoch = ...?",
    "a": "a code of missing values? missing = [...], from the codebook",
}
# Separators of thousands as a layout names them.
_PLAIN = {ord(other): mark for mark, others in ALIKE.items() for other in others}


def texts_of(cells: Cells) -> pa.Array:
    """Cells as valid text; an object that is neither text nor a number as its type."""
    if isinstance(cells, Coded):
        return texts_of(taken(cells.cells, np.asarray(cells.positions, dtype=np.intp)))
    if isinstance(cells, np.ndarray):
        return text_array([_text_of(cell) for cell in cells.tolist()])
    if pa.types.is_dictionary(cells.type):
        return texts_of(cells.dictionary).take(cells.indices)
    return valid_text(cells) if is_text(cells.type) else cells.cast(pa.large_string())


def _text_of(cell: object) -> str:
    if isinstance(cell, (str, float)):
        return str(cell)
    # Python writes no whole number of thousands of digits
    return "9" if isinstance(cell, int) else f"({type(cell).__name__})"


def shapes_of(texts: pa.Array) -> Counter[str]:
    """How often each shape is there: runs of digits are 9, runs of letters a, other characters as they are.

    >>> shapes_of(pa.array(["1.742,81", " 17 kg", "n/a", "12.000,5"]))
    Counter({'9.9,9': 2, '9 a': 1, 'a/a': 1})
    """
    # few are left to look at once digits and letters of ASCII are alike
    alike = pc.value_counts(_alike(pc.utf8_trim_whitespace(texts.cast(pa.large_string()))))
    shapes = pc.replace_substring_regex(alike.field(0), r"\p{Nd}+", "9")
    shapes = pc.utf8_slice_codeunits(pc.replace_substring_regex(shapes, r"[\p{L}\p{M}]+", "a"), 0, _CUT)
    found: Counter[str] = Counter()
    for shape, times in zip(shapes.to_pylist(), alike.field(1).to_pylist(), strict=True):
        found[shape] += times
    return found


def _alike(texts: pa.Array) -> pa.Array:
    """Texts with runs of ASCII digits as 9 and of ASCII letters as a. Bytes of other characters stay as they are."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = _SAME[np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]]
    starts = offsets - offsets[0]
    kept = np.ones(len(raw), dtype=bool)
    kept[1:] = (raw[1:] != raw[:-1]) | ((raw[1:] != _NINE) & (raw[1:] != _A))
    # the first byte of a text is no repetition of the text before; an empty text at the end has none
    kept[starts[:-1][starts[:-1] < len(raw)]] = True
    ends = np.concatenate([[0], np.cumsum(kept)])[starts]
    data = np.ascontiguousarray(raw[kept])
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(data))


def hints_of(shapes: Sequence[str], marks: tuple[str, str], kind: str = "numeric") -> tuple[str, ...]:
    """What shapes look like in a column of this kind, each once; cells with two marks tell what a single one is."""
    told = (_DATES.get(shape, "") if kind == "date" else hint_of(shape, marks) for shape in shapes)
    found = dict.fromkeys(hint for hint in told if hint)
    both = any(" and " in hint for hint in found)
    return tuple(hint for hint in found if not (both and " or " in hint))


def hint_of(shape: str, marks: tuple[str, str] = (".", "")) -> str:
    """What unread cells of a shape look like, from the schema's marks alone; "" for nothing that is known.

    >>> hint_of("9.9,9"), hint_of("9 a"), hint_of("9,9", (".", ""))
    ('decimal = "," and thousands = "." in [file]?', 'a unit in the cell?', 'decimal = "," or thousands = "," in [file]?')
    """
    bare = shape.lstrip("+-\u2212(").translate(_PLAIN)
    between = bare.replace("9", "")
    if UNDECODED in bare:
        return ""
    if ";" in bare or "\t" in bare:
        return "another delimiter, or a title above the header (skip = 1), in [file]?"
    if "a" in bare:
        return "a unit in the cell?" if "9" in bare else "a code of missing values? missing = [...], from the codebook"
    if bare.startswith("9") and bare.endswith("9") and between and set(between) <= set(".,' "):
        return _hint_of_marks(between, marks)
    if between in ("--", "//"):
        return "a date?"
    return "a unit in the cell?" if "9" in bare and set(between) & set("%€$£") else ""


def _hint_of_marks(between: str, marks: tuple[str, str]) -> str:
    """Of digits with marks between them, such as ".," for 9.9,9."""
    first, last = between[0], between[-1]
    if first != last and between.count(last) == 1 and last in ".," and set(between[:-1]) == {first}:
        own = (last, first)
        entries = [
            f'{word} = "{mark}"'
            for word, mark, there in zip(("decimal", "thousands"), own, marks, strict=True)
            if mark != there
        ]
        return f"{' and '.join(entries)} in [file]?" if entries else ""
    if len(set(between)) > 1:
        return ""
    if len(between) == 1 and first in ".,":
        entries = [
            f'{word} = "{first}"' for word, there in zip(("decimal", "thousands"), marks, strict=True) if there != first
        ]
        return f"{' or '.join(entries)} in [file]?" if entries else ""
    dated = ", or a date?" if between == ".." else "?"
    return f'thousands = "{first}" in [file]{dated}' if marks[1] != first else ""
