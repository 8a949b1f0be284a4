"""Frozen dataclasses in files: their plain JSON form, to the bit, and back, by the types of their fields.

A field that is a dataclass, a guarantee, a fraction, an array (`Numbers`), or a tuple or mapping of such is written as that; anything else
is a public setting, which `pack` writes and `unpack` reads. A class of which a file holds one of several kinds is registered (`register`).
Two kinds of fields are marked where they are declared:

    LIVE     stands in no file: what was just computed, or may follow from what is not public
    SPARSE   is written only where one of the sparse fields of its class says something, that is differs from its default

A file is checked before it is read (`confide.protocol.serialization.reading`), and nothing here measures it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import isfinite
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from confide.guarantees import Guarantee, guarantee_from_dict
from confide.protocol.exact import (
    Numbers,
    array_from_dict,
    array_to_dict,
    fraction_from_text,
    fraction_to_text,
    pack,
    unpack,
)

__all__ = ["LIVE", "SPARSE", "decode", "encode", "plain", "register"]

LIVE: Mapping[str, bool] = {"live": True}
SPARSE: Mapping[str, bool] = {"sparse": True}

_T = TypeVar("_T")
_Coder = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_SETTING: _Coder = (pack, unpack)
_KNOWN: dict[Any, _Coder] = {
    Fraction: (fraction_to_text, fraction_from_text),
    Guarantee: (lambda value: value.to_dict(), guarantee_from_dict),
    Numbers: (lambda value: array_to_dict(np.asarray(value)), array_from_dict),
}


def register(kind: Any, to_plain: Callable[[Any], Any], from_plain: Callable[[Any], Any]) -> None:
    """Say how values of a type, or of one of the types of a union, are written and read."""
    _KNOWN[kind] = (to_plain, from_plain)


def encode(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Share:
    ...     name: str
    ...     part: Fraction
    >>> encode(Share("a", Fraction(1, 3)))
    {'name': 'a', 'part': '1/3'}
    >>> decode(Share, encode(Share("a", Fraction(1, 3)))).part
    Fraction(1, 3)
    """
    kind: Any = type(value)
    coders = _coders(kind)
    written = {name: to_plain(getattr(value, name)) for name, (to_plain, _) in coders.items()}
    sparse = _sparse(kind)
    if sparse and all(getattr(value, name) == _default(field) for name, field in sparse.items()):
        return {name: one for name, one in written.items() if name not in sparse}
    return written


def decode(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """The inverse of `encode`. Raises `KeyError` where an entry is missing that is not sparse."""
    declared: Any = kind
    sparse = _sparse(declared)
    found = {
        name: from_plain(data[name])
        for name, (_, from_plain) in _coders(declared).items()
        if name in data or name not in sparse
    }
    return kind(**found)


@lru_cache(maxsize=256)
def _coders(kind: Any) -> dict[str, _Coder]:
    """How each field of a dataclass is written and read."""
    hints = get_type_hints(kind)
    return {field.name: _coder(hints[field.name]) for field in fields(kind) if not field.metadata.get("live")}


@lru_cache(maxsize=256)
def _sparse(kind: Any) -> dict[str, Any]:
    """The sparse fields of a dataclass by name."""
    return {field.name: field for field in fields(kind) if field.metadata.get("sparse")}


def _coder(hint: Any) -> _Coder:
    """How a value of a type is written and read."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _KNOWN:
        return _KNOWN[hint]
    if is_dataclass(hint):
        return encode, partial(decode, hint)  # type: ignore[arg-type]
    inner = _coder(_held(origin, args)) if origin is not None else _SETTING
    if inner is _SETTING:
        return _SETTING
    to_plain, from_plain = inner
    if origin is tuple:
        return lambda values: [to_plain(one) for one in values], lambda data: tuple(from_plain(one) for one in data)
    if origin in (Union, UnionType):
        return (
            lambda value: None if value is None else to_plain(value),
            lambda data: None if data is None else from_plain(data),
        )
    return (
        lambda values: {name: to_plain(one) for name, one in values.items()},
        lambda data: {name: from_plain(one) for name, one in data.items()},
    )


def _held(origin: Any, args: tuple[Any, ...]) -> Any:
    """What a tuple of one kind, an optional value or a mapping by name holds; `Any` for what else there is."""
    if origin in (Union, UnionType):
        kinds = [one for one in args if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else Any
    if origin is tuple:
        return args[0] if len(args) == 2 and args[1] is Ellipsis else Any
    return args[1] if isinstance(origin, type) and issubclass(origin, Mapping) else Any


def _default(field: Any) -> Any:
    return field.default_factory() if field.default is MISSING else field.default


def plain(value: Any) -> Any:
    """A value in types of strict JSON for readers, of which nothing is read back: what is not finite is None.

    >>> plain({"a": (1.0, float("nan")), "b": np.array([[1, 2]])})
    {'a': [1.0, None], 'b': [[1, 2]]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(value) if isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    return [plain(item) for item in value]
