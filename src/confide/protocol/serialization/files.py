"""The envelope of published files: kind, format version, SHA-256 of the body, body. No time, path, machine or build inside."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from confide.errors import ConfideError, ReleaseError
from confide.protocol.exact import canonical_json, digest
from confide.protocol.serialization.facts import FILE_CHARACTERS
from confide.protocol.serialization.reading import check_body
from confide.protocol.serialization.shapes import INTEGER_DIGITS, refuse, shown

__all__ = ["FORMAT", "from_file", "read", "text_of", "to_file", "written"]

_Read = TypeVar("_Read")

#: What a file is written as, and the one that is read: another may hold statements that this version does not understand.
FORMAT = "1.0"

#: Of brackets inside each other: releases have up to 12, and a selection among selections' candidates a few more.
JSON_DEPTH = 64


def to_file(kind: str, body: Mapping[str, Any]) -> str:
    """The text of a file: canonical JSON, so that equal bodies are equal files."""
    return canonical_json({"confide": kind, "format_version": FORMAT, "sha256": digest(body), "body": body}) + "\n"


def written(kind: str, body: Mapping[str, Any]) -> str:
    """The text of a file that can be read back: `ReleaseError` for a body beyond what files of confide hold."""
    check_body(kind, body)
    return to_file(kind, body)


def from_file(kind: str, text: str) -> dict[str, Any]:
    """The body of a file of that kind, all of it checked (`confide.protocol.serialization.reading`) and none of it converted.

    Raises `ReleaseError` when the text is no such file, was changed, is of another format, or holds anything that confide does not write.
    """
    data = parse(kind, text)
    if not isinstance(data, dict) or data.get("confide") != kind:
        found = data.get("confide") if isinstance(data, dict) else None
        raise ReleaseError(
            f"this is no confide {kind} but {shown(found) if isinstance(found, str) else 'something else'}; "
            f"give the file that `confide {kind}` wrote"
        )
    version = data.get("format_version")
    if version != FORMAT:
        has = f"the format {shown(version)}" if isinstance(version, str) else "no format"
        raise ReleaseError(
            f"this {kind} has {has}, and this confide reads {FORMAT}; read it with the confide that wrote it"
        )
    body = data.get("body")
    if not isinstance(body, dict) or _digest(body) != data.get("sha256"):
        raise ReleaseError(
            f"the {kind} was changed after it was written: its SHA-256 does not match; ask for the original file"
        )
    check_body(kind, body)
    return body


def read(kind: str, text: str, build: Callable[[dict[str, Any]], _Read]) -> _Read:
    """What `build` makes of the body of a file of that kind.

    The body has the right types and sizes by then; what is still wrong with it (a guarantee of an impossible level, a setting that no
    class takes) is `ReleaseError` too. A file is public, so that its cause may be shown.
    """
    body = from_file(kind, text)
    try:
        return build(body)
    except ReleaseError:
        raise
    except Exception as error:
        words = str(error) if isinstance(error, ConfideError) else type(error).__name__
        raise ReleaseError(
            f"the {kind} holds what confide does not write ({words}); ask for the original file"
        ) from error


def text_of(path: str | Path, kind: str) -> str:
    """The text of a file, no more of it than a file of confide can have; `ReleaseError` when it is longer or no UTF-8."""
    with Path(path).open("rb") as file:
        content = file.read(4 * FILE_CHARACTERS + 1)  # up to four bytes a character
    if len(content) > 4 * FILE_CHARACTERS:
        raise ReleaseError(f"this is no confide {kind}: it is too large; give the file that confide wrote")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ReleaseError(f"this is no confide {kind}: no text in UTF-8; give the file that confide wrote") from None


def _digest(body: dict[str, Any]) -> str | None:
    try:
        return digest(body)
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes
        return None


# text -----------------------------------------------------------------------------------------------------------------


def parse(kind: str, text: Any) -> Any:
    """The JSON in a text, with every number, name and nesting within limits; `ReleaseError` for anything else."""
    if not isinstance(text, str):
        raise refuse(f"a {kind}", f"text but {type(text).__name__}")
    if len(text) > FILE_CHARACTERS:
        raise refuse(f"this {kind}", f"a file of at most {FILE_CHARACTERS} characters")
    try:
        data = json.loads(
            text, object_pairs_hook=_once, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
        _check_depth(data)
        return data
    except ReleaseError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise ReleaseError(f"this is no confide {kind}: not JSON; give the file that confide wrote") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        first = next(
            name for (name, _), (other, _) in pairwise(sorted(pairs, key=lambda pair: pair[0])) if name == other
        )
        raise refuse("the file", f"unambiguous, for it has an entry twice, {shown(first)}")
    return found


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS:
        raise refuse("a number in the file", f"an integer of at most {INTEGER_DIGITS} digits")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        _constant(text)
    return number


def _constant(text: str) -> NoReturn:
    raise refuse("a number in the file", "finite")


def _too_deep() -> ReleaseError:
    return refuse("the file", f"JSON whose brackets are at most {JSON_DEPTH} deep")


def _check_depth(data: Any) -> None:
    """Level by level, not by recursion: the file says how deep it is."""
    level = [data]
    for _ in range(JSON_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _too_deep()
