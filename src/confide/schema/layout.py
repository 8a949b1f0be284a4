"""How the files of a dataset are laid out: what separates and marks their cells, and which rows of them do not count.

These facts say where a cell's text stands and how a number is written there. They are public, and of one file: the same records in
another file have others. So a schema keeps them for the data steward, in its text forms alone. No digest, plan or release holds them, and
a CSV file and a Parquet file of the same records give the same release.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from confide._helpers import near_match
from confide.errors import SchemaError
from confide.schema.settings import is_unicode

#: Endings of files, and what reads them.
FORMATS = {
    "csv": "text",
    "tsv": "text",
    "xlsx": "sheet",
    "xlsm": "sheet",
    "xlsb": "sheet",
    "xls": "sheet",
    "ods": "sheet",
    "dta": "statistics",
    "sav": "statistics",
    "zsav": "statistics",
    "por": "statistics",
    "xpt": "statistics",
    "parquet": "parquet",
}
#: What the names of files of records end with.
ENDINGS = (*(f".{name}" for name in FORMATS), ".csv.gz", ".tsv.gz", ".pq")
# More lines above a header, or more texts that mark no record, are a mistake.
_MOST = 1000
# In these a byte means another character after some other byte, perhaps in another record.
_STATEFUL = ("utf_7", "iso2022", "hz", "punycode", "idna", "unicode_escape", "raw_unicode_escape")
_EXAMPLE = 'write [file] with delimiter = ";" and decimal = ","'


@dataclass(frozen=True)
class FileLayout:
    """The table ``[file]`` of a schema.

    Parameters
    ----------
    format : str, optional
        Kind of file, one of `FORMATS`. Left out: by its ending.
    delimiter : str, optional
        One ASCII character that separates the fields of text files. Left out: a comma, and a tab in TSV files.
    quote : str, default '"'
        Character around fields that hold the delimiter; "" for none.
    encoding : str, default "utf-8"
        Encoding of text files, such as "cp1252".
    decimal : str, default "."
        Decimal mark of numbers in text cells, "." or ",".
    thousands : str, default ""
        What separates groups of three digits there: ".", ",", " " or "'". Left out: nothing does.
    skip : int, default 0
        Lines (rows of a sheet) above the header, at most 1,000.
    not_records : list of str, optional
        Texts such as "Summe". A row whose first cell that is not empty is one of them is not a record.
    sheet : str or int, optional
        Name of a workbook's sheet, or its number from 1.
    name : str, optional
        Name of the file, which the studio chooses beforehand.
    names : mapping of str to str, optional
        Columns that have another name in the file, by their name in the schema.

    Raises
    ------
    SchemaError
        An entry is not allowed, or two of them contradict each other.

    Examples
    --------
    >>> FileLayout(delimiter=";", decimal=",", thousands=".").to_settings()
    {'delimiter': ';', 'decimal': ',', 'thousands': '.'}
    """

    format: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    skip: int = 0
    not_records: tuple[str, ...] = ()
    sheet: str | int | None = None
    name: str | None = None
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        checked_delimiter(self.delimiter if self.delimiter is not None else ",")
        _check(self.format is None or self.format in FORMATS, "format", self.format, "one of " + ", ".join(FORMATS))
        one = isinstance(self.quote, str) and (not self.quote or (len(self.quote) == 1 and self.quote.isascii()))
        _check(one and self.quote not in ("\n", "\r", "\0"), "quote", self.quote, 'one ASCII character, or "" for none')
        _check(self.decimal in (".", ","), "decimal", self.decimal, '"." or ","')
        _check(self.thousands in ("", ".", ",", " ", "'"), "thousands", self.thousands, '"." "," " " or "\'"')
        whole = isinstance(self.skip, int) and not isinstance(self.skip, bool)
        _check(whole and 0 <= self.skip <= _MOST, "skip", self.skip, f"a whole number from 0 to {_MOST:,}")
        listed = isinstance(self.not_records, (list, tuple)) and all(map(_is_text, self.not_records))
        _check(
            listed and len(self.not_records) <= _MOST,
            "not_records",
            self.not_records,
            f"a list of at most {_MOST:,} texts",
        )
        number = isinstance(self.sheet, int) and not isinstance(self.sheet, bool) and self.sheet >= 1
        _check(
            self.sheet is None or number or _is_text(self.sheet), "sheet", self.sheet, "its name, or its number from 1"
        )
        _check(self.name is None or _is_text(self.name), "name", self.name, "the name of the file")
        named = isinstance(self.names, Mapping) and all(map(_is_text, [*self.names, *self.names.values()]))
        _check(named, "names", self.names, "a table of names in the schema and in the file")
        self._check_together()
        object.__setattr__(self, "not_records", tuple(text.strip() for text in self.not_records))
        object.__setattr__(self, "names", MappingProxyType(dict(self.names)))
        object.__setattr__(self, "encoding", _checked_encoding(self.encoding))

    def _check_together(self) -> None:
        if self.decimal == self.thousands:
            raise SchemaError(
                f"decimal and thousands of [file] are both {self.decimal!r}, and one mark cannot be two things",
                _EXAMPLE,
            )
        if self.quote and self.quote == self.delimiter:
            raise SchemaError(f"quote and delimiter of [file] are both {self.quote!r}", 'write quote = "" for none')
        kind = None if self.format is None else FORMATS[self.format]
        if self.sheet is not None and kind not in (None, "sheet"):
            raise SchemaError(f"[file] has a sheet, and a {self.format} file has none", "leave sheet out")
        twice = [name for name in self.names.values() if list(self.names.values()).count(name) > 1]
        if twice:
            raise SchemaError(
                f"two columns of the schema are {twice[0]!r} in the file", "give each column of the file one name"
            )

    def __hash__(self) -> int:
        return hash(repr(self.to_settings()))

    def __reduce__(self) -> Any:
        return layout_from_settings, (self.to_settings(),)

    @property
    def marks(self) -> tuple[str, str]:
        """Decimal mark and separator of thousands of numbers in text.

        Examples
        --------
        >>> FileLayout(decimal=",").marks
        (',', '')
        """
        return self.decimal, self.thousands

    def kind_of(self, name: str) -> str | None:
        """What reads a file of this name: "text", "sheet", "statistics" or "parquet"; None where it has no known ending.

        Parameters
        ----------
        name : str
            Name of the file.

        Returns
        -------
        str or None
            The kind.

        Examples
        --------
        >>> FileLayout().kind_of("a.CSV.gz"), FileLayout(format="csv").kind_of("a.txt"), FileLayout().kind_of("a.txt")
        ('text', 'text', None)
        """
        ending = self.format or name.lower().removesuffix(".gz").rpartition(".")[2]
        kind = FORMATS.get("parquet" if ending == "pq" else ending)
        return kind if kind == "text" or self.format or not name.lower().endswith(".gz") else None

    def separator(self, name: str) -> str:
        """What separates the fields of a text file of this name.

        Parameters
        ----------
        name : str
            Name of the file.

        Returns
        -------
        str
            One character.

        Examples
        --------
        >>> FileLayout().separator("a.csv"), FileLayout().separator("a.tsv"), FileLayout(delimiter=";").separator("a.tsv")
        (',', '\\t', ';')
        """
        if self.delimiter is not None:
            return self.delimiter
        ending = self.format or name.lower().removesuffix(".gz").rpartition(".")[2]
        return "\t" if ending == "tsv" else ","

    def with_entries(self, entries: Mapping[str, Any]) -> FileLayout:
        """The layout with other entries, checked.

        Parameters
        ----------
        entries : mapping
            Entries of ``[file]``.

        Returns
        -------
        FileLayout
            A new layout.

        Raises
        ------
        SchemaError
            An entry is unknown or not allowed.

        Examples
        --------
        >>> FileLayout(decimal=",").with_entries({"delimiter": ";"}).to_settings()
        {'delimiter': ';', 'decimal': ','}
        """
        return replace(self, **_known(entries))

    def to_settings(self) -> dict[str, Any]:
        """Give the entries that are not left out, as TOML has them.

        Returns
        -------
        dict
            What ``[file]`` holds.

        Examples
        --------
        >>> FileLayout(not_records=("Summe",)).to_settings()
        {'not_records': ['Summe']}
        """
        plain = PLAIN
        given = {own.name: getattr(self, own.name) for own in fields(self)}
        shown = {name: value for name, value in given.items() if value != getattr(plain, name)}
        lists = {name: list(value) for name, value in shown.items() if isinstance(value, tuple)}
        return {**shown, **lists, **({"names": dict(self.names)} if self.names else {})}


def layout_from_settings(settings: Any) -> FileLayout:
    """A layout from the entries of ``[file]``; a layout is returned as it is.

    >>> layout_from_settings({"delimiter": ";"}).delimiter
    ';'
    """
    if isinstance(settings, FileLayout):
        return settings
    if not isinstance(settings, Mapping):
        raise SchemaError(f"file must be a table of entries, got {type(settings).__name__}", _EXAMPLE)
    return FileLayout(**_known(settings))


def _known(settings: Mapping[str, Any]) -> dict[str, Any]:
    known = tuple(own.name for own in fields(FileLayout))
    if "skip_last" in settings:
        raise SchemaError(
            "[file] has no skip_last: in a file without such a line it would drop the last records, and who they are depends on the others",
            'write not_records = ["Summe"], with the first cell of the line that is not a record',
        )
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise SchemaError(
            f"[file] has no entry {unknown[0]!r}{near_match(str(unknown[0]), known)}",
            _EXAMPLE,
            allowed=", ".join(known),
        )
    return dict(settings)


def in_file(layout: FileLayout, columns: Mapping[str, Any]) -> tuple[FileLayout, Mapping[str, Any]]:
    """The layout with the names in the file that tables of columns state, and these tables without them."""
    named = {
        name: table["in_file"] for name, table in columns.items() if isinstance(table, Mapping) and "in_file" in table
    }
    if not named:
        return layout, columns
    bare = {
        name: {entry: given for entry, given in table.items() if entry != "in_file"} if name in named else table
        for name, table in columns.items()
    }
    return layout.with_entries({"names": {**layout.names, **named}}), bare


def checked_delimiter(delimiter: str) -> str:
    """What may separate fields. Raises `SchemaError`.

    >>> checked_delimiter(";")
    ';'
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise SchemaError(
            f"delimiter={delimiter!r} cannot separate fields", 'give one ASCII character, such as "," ";" or "\\t"'
        )
    return delimiter


def _checked_encoding(encoding: Any) -> str:
    """The encoding by the one name that Python has for it: "utf-8" for "UTF8"."""
    try:
        found = codecs.lookup(encoding)
        stateful = found.name.replace("-", "_").startswith(_STATEFUL)
        known = bool(found._is_text_encoding)
        if known and not stateful:
            found.incrementaldecoder("replace").decode(b"", True)  # "undefined" refuses this, too
    except (LookupError, TypeError, ValueError):
        known = False
    _check(known, "encoding", encoding, '"utf-8", "cp1252", "latin-1", "utf-16" or another that Python knows')
    if stateful:
        raise SchemaError(
            f"[file] has the encoding {encoding!r}, in which a byte may change the characters of later records",
            "save the file as UTF-8",
        )
    return found.name


def _check(fits: bool, name: str, given: Any, allowed: str) -> None:
    if not fits:
        raise SchemaError(f"{name} of [file] must be {allowed}, got {given!r}", _EXAMPLE)


def _is_text(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip()) and is_unicode(text)


#: Of files that need no words.
PLAIN = FileLayout()
