"""Names of columns in formulas and conditions: found as they stand, before anything is parsed.

Python's parser normalizes names (NFKC), so that it takes a micro sign for a mu and a full-width letter for a plain
one. Here a text is cut into names first, and each becomes a placeholder that no parser changes. In backticks stands
any name. Without them a name is what Python calls an identifier, with dots, followed by no bracket. The longest one
counts. It is the column of exactly these characters, else the one column that is the same under NFKC.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from confide._helpers import nearest
from confide.errors import ConfideError, SchemaError, together

# What stands for itself, as Python's own words do: text in quotes, and numbers, whose letters (1e5) begin no name.
_STRING = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_NUMBER = re.compile(r"\.?[0-9][\w.]*")
_QUOTED = re.compile("`([^`]*)`")
# Between a factor and its level in the name of a cell, and no comparison.
_LEVEL = re.compile(r"(?<![<>!=\s])=(?![=\s])")
#: A text with the levels that it names as they are printed: "sex: male * age" for "sex[T.male]:age".
level_text = partial(
    re.compile(r"\[T\.([^\]]*)\](:(?=\S))?").sub, lambda found: f": {found[1]}{' * ' if found[2] else ''}"
)
_CALLED = re.compile(r"\s*\(|['\"]")


def quoted(name: str) -> str:
    """A column's name as it stands in arithmetic: in backticks unless it is an identifier, with dots or without, that NFKC does not change.

    >>> quoted("age"), quoted("a.b"), quoted("odd name"), quoted("class"), quoted("Nº")
    ('age', 'a.b', '`odd name`', '`class`', '`Nº`')
    """
    plain = name[:1].isidentifier() and name.replace(".", "_").isidentifier() and _form(name) == name
    return name if plain and not keyword.iskeyword(name) else f"`{name}`"


def level_name(name: str) -> str:
    """A coefficient's or a cell's name as it is printed: "region: south"; in frames and formulas it keeps its own.

    >>> level_name("region[T.south]"), level_name("sex[T.male]:age"), level_name("age")
    ('region: south', 'sex: male * age', 'age')
    >>> level_name("sex=male, region=south"), level_name("income | sex=male")
    ('sex: male, region: south', 'income | sex: male')
    """
    if "[T." in name:
        return " * ".join(re.sub(r"\[T\.(.*)\]$", r": \1", part) for part in re.split(r":(?![^\[]*\])", name))
    return _LEVEL.sub(": ", name)


def bare(name: str) -> str:
    """A name without the backticks around it, where it has them.

    >>> bare("`odd name`"), bare("age")
    ('odd name', 'age')
    """
    inside = _QUOTED.fullmatch(name.strip())
    return inside.group(1) if inside else name


def column_named(text: str, columns: Collection[str]) -> str:
    """The column that a single name stands for, in backticks or without; the name without them where there is none.

    >>> column_named("`Nº`", ("Nº",)), column_named("No", ("Nº",)), column_named("age", ("Nº",))
    ('Nº', 'Nº', 'age')
    """
    if text in columns:
        return text
    name = bare(text)
    return name if name != text else _found(text.strip(), columns)


def hidden(text: str, columns: Collection[str], known: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """The text with every name replaced by a placeholder of plain letters. Also what the placeholders stand for: a
    column, or the name as it was written where there is none. `known`: placeholders that the text has already.

    >>> hidden("log(`odd name`) + age", ("odd name", "age"))
    ('log(quoted_0_) + quoted_1_', {'quoted_0_': 'odd name', 'quoted_1_': 'age'})
    """
    stem = "quoted_"
    while stem in text or stem in _form(text):
        stem = "_" + stem
    names: dict[str, str] = {}
    parts, place = [], 0
    while place < len(text):
        end, name = _token(text, place, columns, known)
        if name is None:
            parts.append(text[place:end])
        else:
            parts.append(names.setdefault(name, f"{stem}{len(names)}_"))
        place = end
    return "".join(parts), {placeholder: name for name, placeholder in names.items()}


def _token(text: str, place: int, columns: Collection[str], known: Collection[str]) -> tuple[int, str | None]:
    """Where what begins here ends, and the name that it is, None for anything else."""
    for pattern in (_QUOTED, _STRING, _NUMBER):
        if found := pattern.match(text, place):
            return found.end(), found.group(1) if pattern is _QUOTED else None
    if not text[place].isidentifier():
        return place + 1, None
    end = place + 1
    while end < len(text) and (text[end] == "." or f"a{text[end]}".isidentifier()):
        end += 1
    word = text[place:end]
    if word in known or _CALLED.match(text, end) or keyword.iskeyword(word):
        return end, None
    return end, _found(word, columns)


def _found(word: str, columns: Collection[str]) -> str:
    """The column of exactly these characters, else the one that is the same under NFKC, else the word itself."""
    if word in columns:
        return word
    same = [name for name in columns if _form(name) == _form(word)]
    return same[0] if len(same) == 1 else word


def _form(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def restored(text: str, names: Mapping[str, str], written: Callable[[str], str] = quoted) -> str:
    """The text with names in the place of their placeholders.

    >>> restored("log(quoted_0_)", {"quoted_0_": "odd name"})
    'log(`odd name`)'
    """
    if not names:
        return text
    longest = sorted(names, key=len, reverse=True)
    return re.sub("|".join(longest), lambda found: written(names[found.group()]), text)


def _some(names: Iterable[str]) -> str:
    """The first eight of some names, each once, and how many more there are."""
    each = list(dict.fromkeys(names))
    return ", ".join(each[:8]) + (f" and {len(each) - 8} more" if len(each) > 8 else "")


def age_of(schema: Any) -> str:
    """The line of a schema that makes an age of its first date; nothing where it has none, or derives columns already."""
    dates = () if schema.derive else (name for name in schema if schema[name].kind == "date")
    return "".join(f"""[derive] age = "years_between({quoted(name)}, '2024-07-01')\"""" for name in list(dates)[:1])


def unknown_names(
    kind: type[ConfideError],
    what: str,
    text: str,
    columns: Collection[str],
    *first: str,
    also: Collection[str] = (),
    age: str = "",
) -> Any:
    """The error for all names in a formula or a condition that are not columns, with the text that works; None where all are.

    first: of the names, what was met. also: names that are allowed with the columns. age: what `age_of` says of the schema.

    >>> print(unknown_names(SchemaError, "where", "agee > sxe", ("age", "sex")))
    2 problems in where.
      1  where names "agee", which is not a column of the schema.
         Allowed  age, sex
      2  where names "sxe", which is not a column of the schema.
         Allowed  age, sex
      Try      "age > sex"
    """
    plain, found = hidden(text, columns)
    wrong = list(dict.fromkeys(name for name in (*found.values(), *first) if name not in (*columns, *also)))
    near = {name: nearest(name, columns, 3) for name in wrong}
    fixed = {mark: (near.get(name) or [name])[0] for mark, name in found.items()}
    works = all(near.values()) and set(wrong) <= set(found.values())
    parts = [
        kind(
            f'{what} names "{name}", which is not a column of the schema'
            + ("" if works else "".join(f" (did you mean {one!r}?)" for one in near[name][:1])),
            allowed=_some(columns if len(columns) <= 8 else [*near[name], *columns]),
            name="unknown_column",
        )
        for name in wrong
    ]
    if not parts:
        return None
    instead = f'write "{restored(plain, fixed)}"' if works else "write one of these, or add the column to the schema"
    instead += f", for an age by {age}" if age and not works else ""
    whole = together(parts, what, instead)
    whole.instead = (text, restored(plain, fixed)) if works else None
    return whole


def sides(formula: str) -> list[str]:
    """What stands on either side of each ~ that is in no name and no text, without blanks around it.

    >>> sides("`a~b` ~ x"), sides("x")
    (['`a~b`', 'x'], ['x'])
    """
    parts, place = [""], 0
    while place < len(formula):
        found = _QUOTED.match(formula, place) or _STRING.match(formula, place)
        end = found.end() if found else place + 1
        if formula[place:end] == "~":
            parts.append("")
        else:
            parts[-1] += formula[place:end]
        place = end
    return [part.strip() for part in parts]


def parted(text: str, marks: str) -> list[str]:
    """The parts of a text that marks join, outside of parentheses, brackets, quotes and backticks.

    >>> parted("g in ('a', 'b'), 1, 5", ","), parted("log(a + b) + `c+d`", "+")
    (["g in ('a', 'b')", '1', '5'], ['log(a + b)', '`c+d`'])
    """
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        else:
            depth += (letter in "([") - (letter in ")]")
        if letter in marks and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts] if text.strip() else []


def check_distinct(names: Collection[str]) -> None:
    """Refuse two names that are one under NFKC: they look alike, and most programs cannot tell them apart.

    Raises `SchemaError` that names both by code point.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(_form(name), name)
        if other != name:
            raise SchemaError(
                f"two columns have one name under Unicode's NFKC: {other!r} ({_points(other)}) and {name!r} ({_points(name)})",
                "rename one of them in the data and the schema",
            )


def _points(name: str) -> str:
    return " ".join(f"U+{ord(letter):04X}" for letter in name)


def with_intercept(formula: str) -> str:
    """A formula with the intercept that it leaves out by 0 or by - 1.

    >>> with_intercept("y ~ 0 + x"), with_intercept("y ~ x - 1"), with_intercept("y ~ -1 + x * `a + 0`"), with_intercept("y ~ 0")
    ('y ~ x', 'y ~ x', 'y ~ x * `a + 0`', 'y ~ 1')
    """
    left, right = sides(formula)
    terms = [term for term in parted(right, "+") if term not in ("0", "-1", "- 1")]
    terms = [re.sub(r"\s*-\s*1$", "", term) for term in terms]
    return f"{left} ~ {' + '.join(term for term in terms if term) or '1'}"
