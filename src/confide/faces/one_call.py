"""What the one-call functions share: their parameters, the refusal of a call without privacy or ledger, and the way to an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import update_wrapper
from inspect import Parameter, Signature
from typing import Any, Protocol, TypeVar

from confide._text import near_match
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.protocol import Noise, Question, Source, parameters_of
from confide.protocol.spending.allowance import checked_privacy
from confide.protocol.units.contributions import shown

__all__ = [
    "LEFT_OUT",
    "OneCall",
    "answered",
    "call_signature",
    "checked_call",
    "checked_ledger",
    "checked_settings",
    "one_call",
]

_OWN = ("privacy", "ledger", "noise", "n")
LEFT_OUT: Any = object()  # None means: charge no ledger
_EXAMPLE = '"y ~ x", data, privacy=cf.GDP(1.0), ledger=None'

_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)


class OneCall(Protocol[_Result_co]):
    """Plan, release and infer in one call. settings: the parameters of the method."""

    __name__: str

    def __call__(
        self,
        formula: str,
        data: Source,
        *,
        privacy: Guarantee | None = None,
        ledger: Ledger | None = LEFT_OUT,
        noise: Noise | None = None,
        n: int | None = None,
        **settings: Any,
    ) -> _Result_co:
        """The answer. privacy and ledger have no default: whoever wants no ledger writes ledger=None."""


def one_call(
    method: type[Any],
    *,
    verb: str,
    example: str = _EXAMPLE,
    check: Callable[[str, dict[str, Any]], None] | None = None,
) -> Callable[[Callable[[_Result], _Result]], OneCall[_Result]]:
    """Make a call of a function that says what is shown of the method's result; it keeps the function's name and docstring.

    verb: how it is written; check: of the formula and the settings, before any other.
    """

    def made(show: Callable[[_Result], _Result]) -> OneCall[_Result]:
        def call(
            formula: str,
            data: Source,
            *,
            privacy: Guarantee | None = None,
            ledger: Ledger | None = LEFT_OUT,
            noise: Noise | None = None,
            n: int | None = None,
            **settings: Any,
        ) -> _Result:
            if check is not None:
                check(formula, settings)
            checked_call(verb, method, privacy, ledger, settings, example=example)
            return show(answered(method(formula, **settings), data, privacy, ledger, noise, n))

        update_wrapper(call, show)
        call.__signature__ = _signature(method, show)  # type: ignore[attr-defined]
        return call

    return made


def _signature(method: type[Any], show: Callable[..., Any]) -> Signature:
    """What help shows: the call's own parameters, then those of the method."""
    known = {field.name: field for field in fields(method)}
    first, *settings = (known[name] for name in parameters_of(method))
    others = {field.name: Parameter.empty if field.default is MISSING else field.default for field in settings}
    return call_signature((first.name, "data"), others, show.__annotations__.get("return"))


def call_signature(first: tuple[str, ...], settings: Mapping[str, Any], returns: Any) -> Signature:
    """Of a call: its first parameters, privacy, ledger, noise and n, and its settings with their defaults."""
    named = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in first]
    own = {name: None if name in ("noise", "n") else Parameter.empty for name in _OWN}
    others = [Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in {**own, **settings}.items()]
    return Signature([*named, *others], return_annotation=returns)


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
    example: str = _EXAMPLE,
) -> None:
    """Refuse a call without privacy or ledger, and options that the method does not have."""
    checked_privacy(privacy)
    checked_ledger(ledger)
    known = tuple(field.name for field in fields(method) if field.init and field.name != "formula")
    checked_settings(verb, known, settings, example=example)


def checked_settings(verb: str, known: Sequence[str], settings: Iterable[str], *, example: str = _EXAMPLE) -> None:
    """Refuse options that a call does not have."""
    for name in settings:
        if name not in known:
            raise PlanError(
                f"{verb} has no option {name!r}{near_match(name, (*known, *_OWN))}; its options are "
                f"{', '.join((*_OWN, *known))}; write {verb}({example})"
            )
