"""What the one-call functions share: the refusal of a call without privacy or ledger, and the way to an answer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from confide._text import near_match
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.protocol import Noise, Question, Source
from confide.protocol.allowance import checked_privacy
from confide.protocol.contributions import shown

__all__ = ["LEFT_OUT", "answered", "checked_call", "checked_ledger"]

_OWN = ("privacy", "ledger", "noise", "n")
LEFT_OUT: Any = object()  # None means: charge no ledger


def answered(
    method: Any,
    data: Source,
    privacy: Guarantee | None,
    ledger: Ledger | None,
    noise: Noise | None,
    n: int | None,
    question: Question | None = None,
) -> Any:
    """The result of one release."""
    from confide import gate  # here, because the gate is slow to load and a plan does without it

    release = gate.release(method, data, privacy, ledger=ledger, noise=noise, n=n)
    return shown(method.infer(release, question), release)


def checked_ledger(ledger: Ledger | None) -> None:
    """Refuse a call that says nothing of the ledger."""
    if ledger is LEFT_OUT:
        raise PlanError(
            "ledger was left out: say which ledger is charged, or that none is; write "
            'ledger=cf.Ledger.open("ledger.db", dataset="survey"), or ledger=None for no charge'
        )


def checked_call(
    verb: str,
    method: type[Any],
    privacy: Guarantee | None,
    ledger: Ledger | None,
    settings: dict[str, Any],
    *,
    example: str = '"y ~ x", data, privacy=cf.GDP(1.0), ledger=None',
) -> None:
    """Refuse a call without privacy or ledger, and options that the method does not have."""
    checked_privacy(privacy)
    checked_ledger(ledger)
    known = tuple(field.name for field in fields(method) if field.init and field.name != "formula")
    for name in settings:
        if name not in known:
            raise PlanError(
                f"{verb} has no option {name!r}{near_match(name, (*known, *_OWN))}; its options are "
                f"{', '.join((*_OWN, *known))}; write {verb}({example})"
            )
