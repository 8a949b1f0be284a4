"""The envelope of published files: kind, format version, SHA-256 of the body, body. No time, path, machine or build inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confide.errors import ReleaseError
from confide.protocol.exact import canonical_json, digest

__all__ = ["FORMAT", "from_file", "to_file"]

#: major.minor: a newer minor may hold statements that this version does not understand, so it is refused.
FORMAT = "2.0"


def to_file(kind: str, body: Mapping[str, Any]) -> str:
    """The text of a file: canonical JSON, so that equal bodies are equal files."""
    return canonical_json({"confide": kind, "format_version": FORMAT, "sha256": digest(body), "body": body}) + "\n"


def from_file(kind: str, text: str) -> dict[str, Any]:
    """The body of a file of that kind.

    Raises `ReleaseError` when the text is no such file, was changed, or is of a newer format.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        raise ReleaseError(f"this is no confide {kind}: not JSON; give the file that confide wrote") from None
    if not isinstance(data, dict) or data.get("confide") != kind:
        found = data.get("confide") if isinstance(data, dict) else None
        raise ReleaseError(
            f"this is no confide {kind} but {found or 'something else'}; give the file that `confide {kind}` wrote"
        )
    version = str(data.get("format_version", ""))
    if not _readable(version):
        raise ReleaseError(
            f"format {version or 'without a version'} cannot be read by format {FORMAT}; needs confide >= the version that wrote it, "
            "or for a smaller format that very version"
        )
    body = data.get("body")
    if not isinstance(body, dict) or digest(body) != data.get("sha256"):
        raise ReleaseError(
            f"the {kind} was changed after it was written: its SHA-256 does not match; ask for the original file"
        )
    return body


def _readable(version: str) -> bool:
    try:
        major, minor = (int(part) for part in version.split("."))
    except ValueError:
        return False
    own_major, own_minor = (int(part) for part in FORMAT.split("."))
    return major == own_major and minor <= own_minor
