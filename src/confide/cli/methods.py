"""`confide methods`: what is registered, ours and then a third party's."""

from __future__ import annotations

import typer

from confide.cli.options import Json
from confide.cli.session import Session
from confide.cli.tables import facts

__all__ = ["methods"]


def methods(ctx: typer.Context, json: Json = False) -> None:
    """List every registered method: family, native guarantee, relations, parameters, source.

    The first parameter is the MODEL of `confide plan`; --set gives the others. All
    of it is public.

    Example:

    confide methods
    """
    session: Session = ctx.obj
    from confide import registry

    with session.doing("loading the methods"):
        found = registry.list_methods()
    for place, method in enumerate(found):
        if place:
            session.say()
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
    session.answer({"methods": [vars(method) for method in found]})
