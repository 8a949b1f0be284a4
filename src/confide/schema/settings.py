"""Settings of a schema, checked in one place: numbers, and tables of its file that do not describe a column.

`Provenance` says where the public facts of a column come from; it is kept with them from the first version of the
file format.

`Typical` says where most values of a column lie, from public knowledge. Forecasts are made of it, and nothing else. A
typical spread never touches a record. It is in the text forms of a schema, and in no plan, release or digest. Two
schemas that differ only in it read the same records to the same bits, and make the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from confide._helpers import near_match
from confide.errors import SchemaError


def entries(
    settings: Mapping[Any, Any],
    *,
    of: str,
    known: Sequence[str],
    call: str,
    numbers: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """The entries of a table as its class takes them; `SchemaError` for one that is unknown, or no number.

    `of`: what the table describes, as in "a unit". `known`: the entries that it may have. `call`: what to write.
    `numbers`: the entries that files hold as hexadecimal floats, and whether a whole one is an integer.

    >>> entries({"size": "0x1.ep+4"}, of="a cluster", known=("size",), call="", numbers={"size": True})
    {'size': 30}
    """
    unknown = [entry for entry in settings if entry not in known]
    if unknown:
        raise SchemaError(
            f"{of} has no entry {unknown[0]!r}{near_match(str(unknown[0]), tuple(known))}; allowed are {', '.join(known)}",
            f"{call}",
        )
    own = dict(settings)
    for name, whole in (numbers or {}).items():
        if isinstance(own.get(name), str):
            try:
                value = float.fromhex(own[name])
            except (ValueError, OverflowError):
                raise SchemaError(f"{name} of {of} must be a number, got {own[name]!r}", f"{call}") from None
            own[name] = int(value) if whole and value.is_integer() else value
    return own


def is_number(value: Any) -> bool:
    """Whether a public setting is a finite real number; booleans are not.

    >>> is_number(0.5), is_number(True), is_number("1"), is_number(float("inf"))
    (True, False, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return False
    try:
        return isfinite(float(value))
    except OverflowError:
        return False


_KINDS = ("public", "private", "lab")
_EXAMPLE = 'write cf.schema.Provenance("public", "answer scale of the questionnaire")'


def is_unicode(text: str) -> bool:
    """Whether a text has a UTF-8 form, so that it can be written to a file; lone surrogates have none.

    >>> is_unicode("é"), is_unicode(chr(0xD800))
    (True, False)
    """
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


@dataclass(frozen=True)
class Provenance:
    """Origin of bounds or levels.

    Parameters
    ----------
    kind : {"public", "private", "lab"}, default "public"
        "public" with its source, "private" for facts found by a release, "lab"
        to mark everything made from it.
    text : str, default ""
        The public source, or the receipt of the release.

    Raises
    ------
    SchemaError
        The kind is unknown, or "private" has no receipt.

    Examples
    --------
    >>> Provenance("public", "answer scale of the questionnaire").kind
    'public'
    """

    kind: str = "public"
    text: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise SchemaError(
                f"provenance: the kind must be 'public', 'private' or 'lab', got {self.kind!r}", f"{_EXAMPLE}"
            )
        if not isinstance(self.text, str) or not is_unicode(self.text):
            raise SchemaError(f"provenance: the text must be a string, got {type(self.text).__name__}", f"{_EXAMPLE}")
        if self.kind == "private" and not self.text:
            raise SchemaError(
                "provenance: 'private' needs the receipt of the release that the bounds come from, got no text",
                'write cf.schema.Provenance("private", "receipt id")',
            )

    def to_dict(self) -> dict[str, str]:
        """Give the origin as JSON types.

        Returns
        -------
        dict
            What `from_dict` reads back.

        Examples
        --------
        >>> Provenance("lab", "practice").to_dict()
        {'kind': 'lab', 'text': 'practice'}
        """
        return {"kind": self.kind, "text": self.text}

    @classmethod
    def from_dict(cls, data: Any) -> Provenance:
        """Read what `to_dict` wrote; a bare string is the text of a public origin.

        Parameters
        ----------
        data : mapping or str
            What `to_dict` gave.

        Returns
        -------
        Provenance
            The origin.

        Raises
        ------
        SchemaError
            The data are anything else.

        Examples
        --------
        >>> Provenance.from_dict("questionnaire")
        Provenance(kind='public', text='questionnaire')
        """
        if isinstance(data, str):
            return cls("public", data)
        if not isinstance(data, Mapping) or not set(data) <= {"kind", "text"}:
            raise SchemaError(
                "provenance must be a text, or a table with the entries kind and text",
                'write provenance = { kind = "public", text = "answer scale of the questionnaire" }',
            )
        return cls(data.get("kind", "public"), data.get("text", ""))


PUBLIC = Provenance()


def checked_provenance(owner: str, provenance: object) -> Provenance:
    """`provenance` itself; `SchemaError` in the name of `owner` when it is not a `Provenance`."""
    if not isinstance(provenance, Provenance):
        raise SchemaError(
            f"{owner}: provenance must be a Provenance, got {type(provenance).__name__}",
            'write provenance=Provenance("public", "where the bounds come from")',
        )
    return provenance


_ENTRIES = ("low", "high", "own", "provenance")


@dataclass(frozen=True)
class Typical:
    """Where about 95% of a column's values lie, from public knowledge.

    For a normal distribution the two numbers are the mean minus and plus two
    standard deviations. They come from a yearbook or an earlier survey, never
    from the records, because a plan prints what follows from them.

    Parameters
    ----------
    low, high : float
        Lower and upper number, in the column's unit.
    provenance : Provenance, optional
        Who states the numbers.
    own : float, optional
        About which share of the column's variance a linear regression on the
        other columns of a formula would leave, above 0 and at most 1. For a
        feature it is one over its variance inflation factor, for a response one
        minus R squared.

    Examples
    --------
    >>> from confide.schema import Numeric
    >>> Numeric(0, 1e6, typical=(5e3, 9e4)).typical
    Typical(low=5000.0, high=90000.0, provenance=Provenance(kind='public', text=''), own=None)
    >>> Typical(5e3, 9e4, Provenance("public", "yearbook 2023")).provenance.text
    'yearbook 2023'
    """

    low: float
    high: float
    provenance: Provenance = field(default=PUBLIC)
    own: float | None = field(default=None, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Give the spread as JSON types, with floats as `float.hex` texts.

        Returns
        -------
        dict
            What `from_dict` reads back.

        Examples
        --------
        >>> Typical(0.5, 1.0).to_dict()["high"]
        '0x1.0000000000000p+0'
        """
        facts = {"low": self.low.hex(), "high": self.high.hex(), "provenance": self.provenance.to_dict()}
        return facts if self.own is None else {**facts, "own": self.own.hex()}

    @classmethod
    def from_dict(cls, data: Any) -> Typical:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Typical
            The spread.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> Typical.from_dict(Typical(0.1, 0.7).to_dict()) == Typical(0.1, 0.7)
        True
        """
        try:
            low, high = float.fromhex(data["low"]), float.fromhex(data["high"])
            where = data["provenance"]
            own = float.fromhex(data["own"]) if "own" in data else None
        except (TypeError, ValueError, KeyError, OverflowError):
            raise SchemaError(
                "a typical spread has low and high in hexadecimal and a provenance", "write the column with to_dict()"
            ) from None
        return cls(low, high, Provenance.from_dict(where), own=own)


@dataclass(frozen=True)
class Shares:
    """About which share of the records has each level of a categorical column, in the order of the levels, with a provenance.

    >>> from confide.schema import Categorical
    >>> Categorical(["north", "south"], typical={"north": 0.9, "south": 0.1}).shares.each
    (0.9, 0.1)
    """

    each: tuple[float, ...]
    provenance: Provenance = field(default=PUBLIC)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form with floats as `float.hex`."""
        return {"shares": [share.hex() for share in self.each], "provenance": self.provenance.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> Shares:
        """The inverse of `to_dict`; `SchemaError` when it is damaged.

        >>> Shares.from_dict(Shares((0.75, 0.25)).to_dict()).each
        (0.75, 0.25)
        """
        try:
            each, where = tuple(float.fromhex(share) for share in data["shares"]), data["provenance"]
        except (TypeError, ValueError, KeyError, OverflowError):
            raise SchemaError(
                "typical shares are floats in hexadecimal with a provenance", "write the column with to_dict()"
            ) from None
        return cls(each, Provenance.from_dict(where))


# Typical shares are rounded figures: their sum may be off by this much, and is brought to 1.
_ROUNDING = 0.05


def shares_of(given: Any, levels: tuple[str, ...]) -> Shares | None:
    """What a categorical column was given as `typical`: None, a share for each level by name or in order, or `Shares`.

    Raises `SchemaError` unless there is one share above 0 for each level and they add up to about 1.
    """
    if given is None:
        return None
    where: Any = PUBLIC
    if isinstance(given, Shares):
        given, where = given.each, given.provenance
    elif isinstance(given, Mapping) and set(given) == {"shares", "provenance"} and set(levels) != set(given):
        where = given["provenance"]
        given, where = given["shares"], where if isinstance(where, Provenance) else Provenance.from_dict(where)
    if isinstance(given, Mapping) and set(given) == set(levels):
        given = [given[level] for level in levels]
    fits = isinstance(given, (list, tuple)) and len(given) == len(levels) and all(map(is_number, given))
    if not fits or min(given) <= 0 or not abs(sum(given) - 1) <= _ROUNDING:
        even = {level: round(1 / len(levels), 3) for level in levels[:3]}
        raise SchemaError(
            f"Categorical: typical must be a share above 0 for each of the {len(levels)} levels, which add up to 1, got {given!r}",
            f"write typical={even if len(levels) <= 3 else '{...}'}, or leave it out",
        )
    total = float(sum(given))
    # shares that add up to 1 but for rounding stay as they are, so that text forms keep every bit
    each = tuple(float(share) if abs(total - 1) < 1e-9 else float(share) / total for share in given)
    return Shares(each, checked_provenance("Categorical: typical", where))


def typical_of(owner: str, given: Any, low: float, high: float, example: str) -> Typical | None:
    """What a column was given as `typical`: None, two numbers, a table with low and high, or a `Typical`.

    owner, example: the column's class and a call that makes one, for messages. Raises `SchemaError` unless it lies within the column's
    bounds, low below high.
    """
    if given is None:
        return None
    numbers, own, where = _read(owner, given, example)
    if not all(map(is_number, numbers)):
        raise _refused(owner, f"two numbers of the column, got {given!r}", example)
    least, most = (float(number) + 0.0 for number in numbers)
    if not low <= least < most <= high:
        raise _refused(
            owner,
            f"a low number below a high one, both within the bounds {low:g} and {high:g}, got {least:g} and {most:g}",
            example,
        )
    if own is not None and not (is_number(own) and 0 < own <= 1):
        raise SchemaError(
            f"{owner}: own must be a share above 0 and at most 1 (got {own!r}). It is what a linear regression on the others "
            "leaves of the variance",
            f"write typical=cf.Typical({least:g}, {most:g}, own=0.5), or leave it out",
        )
    return Typical(least, most, checked_provenance(f"{owner}: typical", where), own=None if own is None else float(own))


def _read(owner: str, given: Any, example: str) -> tuple[tuple[Any, Any], Any, Any]:
    if isinstance(given, Typical):
        return (given.low, given.high), given.own, given.provenance
    if isinstance(given, Mapping) and set(given) <= set(_ENTRIES) and {"low", "high"} <= set(given):
        where = given.get("provenance", PUBLIC)
        origin = where if isinstance(where, Provenance) else Provenance.from_dict(where)
        return (given["low"], given["high"]), given.get("own"), origin
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return (given[0], given[1]), None, PUBLIC
    raise _refused(owner, f"two numbers, or a table with low, high, own and provenance, got {given!r}", example)


def _refused(owner: str, allowed: str, example: str) -> SchemaError:
    return SchemaError(
        f"{owner}: typical must be {allowed}; about 95% of the values lie between them; {example}, or leave it out"
    )
