"""Candidates of a selection as plain values, by registered names; and losses that a user registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from confide import registry
from confide.errors import ConfideError, PlanError, PrivacyError
from confide.guarantees import GDP
from confide.methods.selection import selection as parts
from confide.protocol import Method
from confide.protocol.plan import method_parameters
from confide.schema import Schema

__all__ = ["is_registered", "label", "loss_named", "needs_delta", "register_loss", "stored"]

_losses: dict[str, type[Any]] = {}


def register_loss(loss: type[Any]) -> type[Any]:
    """Make a `RecordLoss` class known to this process under its `name`, so that plans and releases can be read back. A decorator.

    Raises `PlanError` for a name that is taken.
    """
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or name in parts.LOSSES or _losses.get(name, loss) is not loss:
        raise PlanError(f"a loss needs a name of its own, got {name!r}; taken: {', '.join((*parts.LOSSES, *_losses))}")
    _losses[name] = loss
    return loss


def is_registered(loss: type[Any]) -> bool:
    """Whether a class of losses is known."""
    return loss in _losses.values()


def loss_named(name: str) -> type[Any] | None:
    """A registered loss."""
    return _losses.get(name)


def stored(candidate: Any) -> dict[str, Any]:
    """A candidate as plain values: its registered name and its parameters."""
    if isinstance(candidate, Mapping):
        if not isinstance(candidate.get("method"), str):
            raise PlanError(
                "a candidate that is a mapping must name its method; give the method itself: cf.regression.SSP('y ~ x')"
            )
        own = dict(candidate)
    else:
        name = candidate.name if isinstance(candidate, Method) else None
        own = {"method": name, **method_parameters(candidate)}
    if own.get("where") is not None:
        raise PlanError(
            f"a candidate is fitted and scored on the same records, got one with where={own['where']!r}; give where to the selection itself"
        )
    if own["method"] not in registry.known() or own["method"] == "select":
        raise PlanError(
            f"a candidate must be a registered method other than a selection, got {own['method']!r}; there are: "
            f"{', '.join(registry.known())}"
        )
    return own


def needs_delta(method: Method, schema: Schema) -> bool:
    """Whether a method's guarantee may fail: it refuses a level without a delta and takes one with it."""
    try:
        method.plan(schema, GDP(1.0, relation="add-remove"))
    except PrivacyError as error:
        return "needs a delta" in str(error)
    except ConfideError:
        return False
    return False


def label(method: Method) -> str:
    """A candidate with the settings that are not its defaults."""
    given = [
        f"{field.name}={getattr(method, field.name)!r}"
        for field in fields(cast(Any, method))
        if field.init and getattr(method, field.name) != field.default
    ]
    return f"{method.name}({', '.join(given)})"
