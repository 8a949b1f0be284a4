"""`confide methods`: what is registered, ours and then a third party's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from confide.cli.options import Json
from confide.cli.session import Session
from confide.cli.tables import facts

if TYPE_CHECKING:
    from confide.registry import MethodInfo

__all__ = ["methods"]


def methods(ctx: typer.Context, json: Json = False) -> None:
    """List every registered method: family, native guarantee, relations, parameters, source.

    By family, in the order in which people ask, then those of other packages. The
    first parameter is the MODEL of `confide plan`; --set gives the others. All of
    it is public.

    Example:

    confide methods
    """
    session: Session = ctx.obj
    from confide import registry

    with session.doing("loading the methods"):
        found = registry.list_methods()
    own = [method for method in found if method.package == "confide"]
    for family in registry.FAMILIES:
        session.say(f"== {family.words} ({family.command}; cf.{family.place}) ==\n")
        _said(session, [method for method in own if method.family == family.name])
    if others := [method for method in found if method not in own]:
        session.say("== Of other packages ==\n")
        _said(session, others)
    session.answer(
        {"families": [vars(family) for family in registry.FAMILIES], "methods": [vars(method) for method in found]}
    )


def _said(session: Session, found: Sequence[MethodInfo]) -> None:
    for method in found:
        session.say(f"{method.name} (version {method.version})")
        facts(
            session,
            [
                ("  family", method.family),
                ("  guarantee", method.native),
                ("  relations", ", ".join(method.relations)),
                ("  parameters", ", ".join(method.parameters)),
                ("  intervals", method.intervals),
                ("  source", method.source),
                *([] if method.package == "confide" else [("  package", f"{method.package} (not confide's own)")]),
            ],
        )
        session.say()
