"""Columns of labels from a public list."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import SchemaError
from confide.schema.grid import MAX_STEPS, MISSING, Codes
from confide.schema.provenance import PUBLIC, Provenance, checked_provenance, is_unicode
from confide.schema.typical import Shares, shares_of

__all__ = ["Categorical"]

_EXAMPLE = 'write cf.Categorical(["north", "south"])'
# What booleans are called in text, most usual first.
_WORDS = {True: ("True", "true", "TRUE", "1"), False: ("False", "false", "FALSE", "0")}


@dataclass(frozen=True, init=False)
class Categorical:
    """A column of labels from a public list; the first level is the base of treatment coding.

    A label that is not in `levels` is missing. `on_missing` is "drop" (the record) or one of the levels. Levels are
    text; whole numbers and booleans given as levels stand for their text. `typical={"N": 0.7, "S": 0.3}`: about these shares of the
    records have each level, from public knowledge; they serve forecasts alone. Raises `SchemaError` for fewer than two levels, repeated
    or empty ones, and shares that do not fit them.

    >>> Categorical(["N", "S"]).code_labels(["S", "N", "W", None]).tolist()
    [1.0, 0.0, -1.0, -1.0]
    """

    levels: tuple[str, ...]
    on_missing: str = field(default="drop", kw_only=True)
    provenance: Provenance = field(default=PUBLIC, kw_only=True)
    typical: Any = field(default=None, kw_only=True)

    kind: ClassVar[str] = "categorical"

    def __init__(
        self,
        levels: Iterable[object],
        *,
        on_missing: object = "drop",
        provenance: Provenance = PUBLIC,
        typical: Any = None,
    ) -> None:
        texts = _level_texts(levels)
        rule = on_missing if isinstance(on_missing, str) else _level_text(on_missing)
        if rule != "drop" and rule not in texts:
            raise SchemaError(
                f"Categorical: on_missing must be 'drop' or one of the levels {_listed(texts)}, got {rule!r}; "
                'write on_missing="drop"'
            )
        object.__setattr__(self, "levels", texts)
        object.__setattr__(self, "on_missing", rule)
        object.__setattr__(self, "provenance", checked_provenance("Categorical", provenance))
        object.__setattr__(self, "typical", shares_of(typical, texts))

    @property
    def shares(self) -> Shares | None:
        """`typical`, whatever form it was given in."""
        assert self.typical is None or isinstance(self.typical, Shares)
        return self.typical

    @property
    def steps(self) -> int:
        """The number of levels; codes run from 0 to steps - 1.

        >>> Categorical(["a", "b", "c"]).steps
        3
        """
        return len(self.levels)

    @cached_property
    def missing_code(self) -> float:
        """The code of a missing label: -1 under "drop", else the position of the level that stands for it.

        >>> Categorical(["a", "b"], on_missing="b").missing_code
        1.0
        """
        return MISSING if self.on_missing == "drop" else float(self.levels.index(self.on_missing))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {text: position for position, text in enumerate(self.levels)}

    @cached_property
    def _numbers(self) -> dict[float, int]:
        """Positions of the levels that are numbers, the one written plainly ("1" before "1.0") first."""
        plain = sorted(self._positions, key=lambda text: text != _plain(_number(text)))
        known = [(_number(text), self._positions[text]) for text in plain]
        return {number: position for number, position in reversed(known) if number is not None}

    def index_of(self, label: object) -> int:
        """The position of a label among the levels, -1 when it is missing or not among them.

        Text means the level of exactly that text, else the level of the same number; a number means the level of that
        number; True means "True", "true", "TRUE" or "1", False likewise.

        >>> column = Categorical(["0", "1"])
        >>> column.index_of(1.0), column.index_of(True), column.index_of("01"), column.index_of("x"), column.index_of(None)
        (1, 1, 1, -1, -1)
        """
        if isinstance(label, str) and label in self._positions:
            return self._positions[label]
        if isinstance(label, (bool, np.bool_)):
            return next((self._positions[word] for word in _WORDS[bool(label)] if word in self._positions), -1)
        number = _number(label)
        return -1 if number is None else self._numbers.get(number, -1)

    def code_indices(self, indices: ArrayLike, out: Codes | None = None) -> Codes:
        """Codes of positions among the levels (any shape); a position below 0, too high, or not whole is missing.

        `out` may be a float64 array of that shape, `indices` itself included.

        >>> Categorical(["a", "b"]).code_indices([1, 0, -1, 7]).tolist()
        [1.0, 0.0, -1.0, -1.0]
        """
        x = np.asarray(indices, dtype=np.float64)
        with np.errstate(all="ignore"):
            known = (x >= 0) & (x < self.steps) & (x == np.floor(x))
        codes = np.empty(x.shape, dtype=np.float64) if out is None else out
        np.add(x, 0.0, out=codes)  # turns -0.0 into 0.0: equal codes have equal bits
        if not known.all():
            np.copyto(codes, self.missing_code, where=~known)
        return codes

    def code(self, values: ArrayLike, out: Codes | None = None) -> Codes:
        """The same as `code_indices`: every column has a `code` that takes a float64 array.

        >>> Categorical(["a", "b"]).code([1.0, float("nan")]).tolist()
        [1.0, -1.0]
        """
        return self.code_indices(values, out)

    def code_labels(self, labels: Iterable[object], out: Codes | None = None) -> Codes:
        """Codes of labels, shape (rows,), each read as `index_of` reads it.

        >>> Categorical(["a", "b"], on_missing="a").code_labels(["b", "z"]).tolist()
        [1.0, 0.0]
        """
        return self.code_indices(self.indices(labels), out)

    def indices(self, labels: Iterable[object]) -> NDArray[np.float64]:
        """Positions of labels among the levels, shape (rows,); -1 where `index_of` gives -1, whatever `on_missing` is.

        >>> Categorical(["a", "b"], on_missing="a").indices(["b", "z"]).tolist()
        [1.0, -1.0]
        """
        known: dict[tuple[type, object], int] = {}
        found = []
        for label in labels:
            try:
                key = (type(label), label)
                if key not in known:
                    known[key] = self.index_of(label)
                found.append(known[key])
            except TypeError:  # a list or the like cannot be a key and is no label
                found.append(-1)
        return np.array(found, dtype=np.float64)

    def decode(self, codes: ArrayLike) -> NDArray[Any]:
        """The labels that codes stand for, as an array of objects; None where the code is -1.

        >>> Categorical(["a", "b"]).decode([1, 0, -1]).tolist()
        ['b', 'a', None]
        """
        c = np.asarray(codes, dtype=np.float64).astype(np.int64)
        return np.array([*self.levels, None], dtype=object)[np.where(c < 0, self.steps, c)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; `typical` only where it was given.

        >>> Categorical(["a", "b"]).to_dict()["levels"]
        ['a', 'b']
        """
        facts = {
            "kind": self.kind,
            "levels": list(self.levels),
            "on_missing": self.on_missing,
            "provenance": self.provenance.to_dict(),
        }
        return facts if self.shares is None else {**facts, "typical": self.shares.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Categorical:
        """The inverse of `to_dict`; `SchemaError` when it is damaged.

        >>> Categorical.from_dict(Categorical(["a", "b"]).to_dict()).levels
        ('a', 'b')
        """
        return cls(
            data["levels"],
            on_missing=data["on_missing"],
            provenance=Provenance.from_dict(data["provenance"]),
            typical=Shares.from_dict(data["typical"]) if "typical" in data else None,
        )


def _number(label: object) -> float | None:
    """The finite number that a label means, or None."""
    if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, Real, Decimal)):
        return None
    if isinstance(label, str) and "_" in label:  # Python's own digit grouping, no number to anybody else
        return None
    try:
        number = float(label)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _plain(number: float | None) -> str:
    if number is None:
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def _level_text(level: object) -> str:
    if isinstance(level, str) and is_unicode(level):
        return str(level)
    if isinstance(level, (bool, np.bool_)):
        return str(bool(level))
    if isinstance(level, (int, np.integer)):
        return str(int(level))
    raise SchemaError(f"Categorical: a level must be text, a whole number or a boolean, got {level!r}; {_EXAMPLE}")


def _level_texts(levels: object) -> tuple[str, ...]:
    if isinstance(levels, (str, bytes, Mapping)) or not isinstance(levels, Iterable):
        raise SchemaError(f"Categorical: levels must be a list of labels, got {type(levels).__name__}; {_EXAMPLE}")
    texts = tuple(_level_text(level) for level in levels)
    if len(texts) < 2:
        raise SchemaError(
            f"Categorical: at least two levels are needed, got {len(texts)}; leave a column with one level out, or {_EXAMPLE}"
        )
    if len(texts) > MAX_STEPS:
        raise SchemaError(f"Categorical: at most {MAX_STEPS} levels are allowed, got {len(texts)}; {_EXAMPLE}")
    if "" in texts:
        raise SchemaError(f"Categorical: a level must not be empty text, which is a missing value; {_EXAMPLE}")
    if len(set(texts)) < len(texts):
        repeated = [text for text, times in Counter(texts).items() if times > 1]
        raise SchemaError(
            f"Categorical: each level must be listed once, got {_listed(repeated)} more than once; {_EXAMPLE}"
        )
    return texts


def _listed(texts: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(text) for text in texts[:most])
    return shown if len(texts) <= most else f"{shown}, ... ({len(texts)} in all)"
