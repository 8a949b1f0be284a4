"""Groups of options: a command takes a group as one parameter, and the command line shows each of its options.

A group is a frozen dataclass whose fields are options, or groups again. So an option, its help, its default and what is checked about it
stand once, however many commands take it, those of other packages among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

__all__ = ["spread"]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as a parser reads it: each group among its parameters stands there as its options.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> @spread
    ... def area(name: str, *, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> area(name="hall", height=3)
    hall 3
    >>> list(signature(area).parameters)
    ['name', 'width', 'height']
    """
    hints = get_type_hints(command, include_extras=True)
    own = signature(command).parameters.values()
    groups = {parameter.name: hints[parameter.name] for parameter in own if _is_group(hints[parameter.name])}
    shown = [
        option
        for parameter in own
        for option in (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]

    def run(**given: Any) -> None:
        made = {name: _gathered(kind, given) for name, kind in groups.items()}
        # messages name the options of the command that they are read beside
        if (session := getattr(given.get("ctx"), "obj", None)) is not None:
            session.options = frozenset(option for one in given["ctx"].command.params for option in one.opts)
        command(**{parameter.name: given[parameter.name] for parameter in own if parameter.name in given}, **made)

    update_wrapper(run, command)
    run.__signature__ = Signature(shown, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in shown}
    return run


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def _options(kind: Any) -> Iterator[Parameter]:
    """The options of a group, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if _is_group(hints[field.name]):
            yield from _options(hints[field.name])
        else:
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def _gathered(kind: Any, given: Mapping[str, Any]) -> Any:
    """A group from what was given; what was not has its default."""
    hints = get_type_hints(kind)
    return kind(
        **{
            field.name: _gathered(hints[field.name], given) if _is_group(hints[field.name]) else given[field.name]
            for field in fields(kind)
            if _is_group(hints[field.name]) or field.name in given
        }
    )
