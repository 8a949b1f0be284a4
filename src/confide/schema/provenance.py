"""Where the public facts of a column come from: kept with them from the first version of the file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import SchemaError

__all__ = ["PUBLIC", "Provenance", "checked_provenance", "is_unicode"]

_KINDS = ("public", "private", "lab")
_EXAMPLE = 'write cf.Provenance("public", "answer scale of the questionnaire")'


def is_unicode(text: str) -> bool:
    """Whether a text has a UTF-8 form, so that it can be written to a file; lone surrogates have none.

    >>> is_unicode("é"), is_unicode(chr(0xD800))
    (True, False)
    """
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


@dataclass(frozen=True)
class Provenance:
    """The origin of bounds or levels: "public" (with its text), "private" (a receipt), "lab" (marks everything made
    from it).

    Raises `SchemaError` for another kind, or for "private" without the receipt.

    >>> Provenance("public", "answer scale of the questionnaire").kind
    'public'
    """

    kind: str = "public"
    text: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise SchemaError(
                f"provenance: the kind must be 'public', 'private' or 'lab', got {self.kind!r}; {_EXAMPLE}"
            )
        if not isinstance(self.text, str) or not is_unicode(self.text):
            raise SchemaError(f"provenance: the text must be a string, got {type(self.text).__name__}; {_EXAMPLE}")
        if self.kind == "private" and not self.text:
            raise SchemaError(
                "provenance: 'private' needs the receipt of the release that the bounds come from, got no text; "
                'write cf.Provenance("private", "receipt id")'
            )

    def to_dict(self) -> dict[str, str]:
        """JSON-safe form.

        >>> Provenance("lab", "practice").to_dict()
        {'kind': 'lab', 'text': 'practice'}
        """
        return {"kind": self.kind, "text": self.text}

    @classmethod
    def from_dict(cls, data: Any) -> Provenance:
        """The inverse of `to_dict`; a bare string is the text of a public origin. `SchemaError` for anything else.

        >>> Provenance.from_dict("questionnaire")
        Provenance(kind='public', text='questionnaire')
        """
        if isinstance(data, str):
            return cls("public", data)
        if not isinstance(data, Mapping) or not set(data) <= {"kind", "text"}:
            raise SchemaError(
                "provenance must be a text, or a table with the entries kind and text; "
                'write provenance = { kind = "public", text = "answer scale of the questionnaire" }'
            )
        return cls(data.get("kind", "public"), data.get("text", ""))


PUBLIC = Provenance()


def checked_provenance(owner: str, provenance: object) -> Provenance:
    """`provenance` itself; `SchemaError` in the name of `owner` when it is no `Provenance`."""
    if not isinstance(provenance, Provenance):
        raise SchemaError(
            f"{owner}: provenance must be a Provenance, got {type(provenance).__name__}; "
            'write provenance=Provenance("public", "where the bounds come from")'
        )
    return provenance
