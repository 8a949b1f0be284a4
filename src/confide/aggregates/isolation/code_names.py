"""Code that a caller hands over, in a file: its name, and what may come of a name.

A file runs nothing. A name in it is compared with those of the classes that are handed in here, and is looked up nowhere else; an object
of one of them is made from the fields that the file holds. All other code (samplers, teachers, bounds with functions in them) is handed
over again by who has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from confide.errors import ConfideError, PlanError

__all__ = ["code_from", "code_name", "not_in_file"]

# Packages whose files may be moved and whose classes keep their names.
_OURS = ("confide", "confide_lab")


def code_name(code: Any) -> str:
    """The name of a function or a class, or of an object's class: "module:name", of one of ours "confide:name", in whatever file it is.

    >>> code_name(len), code_name(PlanError("no"))
    ('builtins:len', 'confide:PlanError')
    """
    kind = code if hasattr(code, "__qualname__") else type(code)
    package = kind.__module__.partition(".")[0]
    return f"{package if package in _OURS else kind.__module__}:{kind.__qualname__}"


def not_in_file(what: str, name: Any, again: str) -> PlanError:
    """The error for code that no file holds, whose name alone stands in it ({"live": name}).

    what: what it is called, such as "sampler"; again: the call that hands it over again.

    >>> raise not_in_file("sampler", "os:system", "cf.private_block_posterior(sampler, data, ...)")
    Traceback (most recent call last):
    confide.errors.PlanError: the plan was made with the live sampler 'os:system', which no file can hold; hand it over again: ...
    """
    return PlanError(
        f"the plan was made with the live {what} {name!r}, which no file can hold; hand it over again: {again}"
    )


def code_from(
    settings: Mapping[str, Any],
    what: str,
    again: str,
    known: Iterable[type[Any]],
    value: Callable[[Any], Any] = lambda packed: packed,
) -> Any:
    """The object that a file's settings name: {what: "module:name", "fields": {...}}, of one of the `known` classes.

    what: what it is called, such as "bound"; again: the call that hands it over again; known: frozen dataclasses that this process has
    loaded; value: of a field, from its text form. `PlanError` for {"live": name}, which stands for code that no file holds, for any
    other name, for which nothing is imported, looked up or called, and for fields that the class itself refuses.

    >>> code_from({"bound": "os:system", "fields": {}}, "bound", "cf.ptr.safe_release(bound, data, ...)", [])
    Traceback (most recent call last):
    confide.errors.PlanError: the plan's bound 'os:system' is not loaded here; import the module that has it and try again, or hand ...
    """
    if "live" in settings:
        raise not_in_file(what, settings["live"], again)
    name, given = settings.get(what), settings.get("fields")
    found = [cls for cls in known if code_name(cls) == name]
    if len(found) > 1:
        raise PlanError(
            f"the plan's {what} {name!r} is defined more than once here, and which one is meant cannot be told; start anew, or hand it "
            f"over again: {again}"
        )
    if not found:
        raise PlanError(
            f"the plan's {what} {name!r} is not loaded here; import the module that has it and try again, or hand it over again: {again}"
        )
    frozen = getattr(getattr(found[0], "__dataclass_params__", None), "frozen", False)
    own = [field for field in fields(found[0]) if field.init] if frozen else []
    needed = {field.name for field in own if field.default is MISSING and field.default_factory is MISSING}
    if not frozen or not isinstance(given, Mapping) or not needed <= set(given) <= {field.name for field in own}:
        raise PlanError(
            f"the plan's {what} {name!r} is not made from the fields that stand in the file; hand it over again: {again}"
        )
    try:
        return found[0](**{key: value(packed) for key, packed in given.items()})
    except ConfideError:
        raise
    except Exception as error:  # whatever a class raises at what a file holds, which is public
        raise PlanError(
            f"the plan's {what} {name!r} cannot be made from the fields that stand in the file ({type(error).__name__}: {error}); hand it "
            f"over again: {again}"
        ) from error
