"""A method in one call: plan, release and infer, made of the method's class; and what the calls that do more share with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from confide import _docs
from confide._helpers import later, near_match
from confide.core import Noise, Source, parameters_of
from confide.core.allowance import checked_privacy
from confide.core.units.contributions import shown
from confide.errors import BudgetExceeded, ConfideError, PlanError, together
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.schema.formulas.expression import unknown_in

if TYPE_CHECKING:
    from confide import engine
else:
    engine = later("confide.engine")

#: What may be given where a call lacks it.
_ALLOWED = {
    "inference": '"population"  the records are a sample of it\n"dataset"     exactly these records',
    "privacy": "cf.GDP(mu), cf.ZCDP(rho), cf.PureDP(epsilon), cf.ApproxDP(epsilon, delta)",  # prose-lint: off
    "ledger": "a ledger, or None to charge none",
}
_ASKED = {
    "inference": ": what are the intervals about?",
    "privacy": ": what may the release cost?",
    "ledger": ": which one is charged?",
}
LEFT_OUT: Any = object()  # None means: charge no ledger
_OWN = ("privacy", "ledger", "noise", "n")
_PAID = "privacy=cf.GDP(1.0), ledger=None"
_OUTCOME = _docs.outcome(
    "Result\n    Estimates with standard errors and intervals, to print, draw and write.\n"
    "    The release is not kept: use `confide.release` and `confide.infer` when\n"
    "    you need the file to publish or to verify.",
    "BudgetExceeded",
    "PlanError",
)

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
        """The answer. privacy and ledger have no default. Write ledger=None to release without accounting."""


def one_call(method: type[Any], verb: str, before: int = 1) -> Callable[..., Any]:
    """The call that plans, releases and infers a method, with the parameters, help and refusals of the class.

    verb: how the call is written, "cf.tables.counts"; before: how many of the method's parameters come before the data. A method with
    two readings (`inference`) has to be told which.

    >>> import confide as cf
    >>> "Ledger to charge" in one_call(cf.regression.LeastSquares, "cf.linear_regression").__doc__
    True
    """
    known = {field.name: field for field in fields(method)}
    names = parameters_of(method)
    first, settings = names[:before], names[before:]
    defaults = {name: Parameter.empty if known[name].default is MISSING else known[name].default for name in settings}
    readings = "inference" in names
    given = [method.example, "data", 'inference="population"' if readings else "", _PAID]
    example = ", ".join(filter(None, given))
    leading = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (*first, "data")])

    def call(
        *asked: Any,
        privacy: Guarantee | None = None,
        ledger: Ledger | None = LEFT_OUT,
        noise: Noise | None = None,
        n: int | None = None,
        **chosen: Any,
    ) -> Any:
        spoken = leading.bind_partial(*asked, **{key: chosen.pop(key) for key in leading.parameters if key in chosen})
        lacks = [name for name in leading.parameters if name not in spoken.arguments]
        lacks += ["inference"] if readings and chosen.get("inference") is None else []
        lacks += ["privacy"] if privacy is None else []
        lacks += ["ledger"] if ledger is LEFT_OUT else []
        if lacks:
            raise _lacking(verb, lacks, spoken.arguments, example)
        *given, data = leading.bind(*spoken.args, **spoken.kwargs).args
        checked_call(verb, settings, privacy, ledger, chosen, example=example)
        try:
            return answered(method(*given, **chosen), data, privacy, ledger, noise, n)
        except BudgetExceeded as error:
            price, *others = error.remedy.split("\n")
            error.remedy = "\n".join([_written(verb, given, chosen, f"{price}, ledger=ledger"), *others])
            raise

    call.__name__ = call.__qualname__ = verb.rpartition(".")[2]
    call.__signature__ = call_signature((*first, "data"), defaults)  # type: ignore[attr-defined]
    call.__doc__ = _help(method, call.__signature__.parameters)  # type: ignore[attr-defined]
    return call


def _written(verb: str, given: Iterable[Any], chosen: Mapping[str, Any], paid: str) -> str:
    """A call as it is written, of records that are called data. paid: its last arguments."""

    def shown(one: Any) -> str:
        return json.dumps(one, ensure_ascii=False) if isinstance(one, str) else repr(one)

    named = [f"{name}={shown(value)}" for name, value in chosen.items()]
    return f"{verb}({', '.join([*map(shown, given), 'data', *named, paid])})"


def _lacking(verb: str, lacks: Sequence[str], given: Mapping[str, Any], example: str) -> ConfideError:
    """The error of a call with all that it lacks, after the names of its formula that the schema does not have."""
    formula, schema = given.get("formula"), getattr(given.get("data"), "schema", None)
    wrong = unknown_in(formula, schema) if isinstance(formula, str) and schema is not None else None
    if isinstance(formula, str):
        known = formula if wrong is None or wrong.instead is None else wrong.instead[1]
        example = re.sub(r'^".*?"', json.dumps(known, ensure_ascii=False), example)
    parts = [
        PlanError(f"{name} is required{_ASKED.get(name, '')}", allowed=_ALLOWED.get(name, ""), name=f"{name}_missing")
        for name in lacks
    ]
    return together([*filter(None, [wrong]), *parts], "this call", f"write {verb}({example})")


def _help(method: type[Any], names: Iterable[str]) -> str:
    """The help of a call, by the docstring of its class: first line, parameters of the signature, what is returned and raised, example."""
    parts = _docs.sections(method.__doc__)
    listed = _docs.section(_docs.parameters(method.__doc__), names)
    own = {title: body for title, body in parts.items() if title not in ("", "Parameters", "Examples")}
    last = {"Examples": parts["Examples"]} if "Examples" in parts else {}
    return _docs.joined({"": parts[""], "Parameters": listed, **_OUTCOME, **own, **last})


def call_signature(first: Sequence[str], settings: Mapping[str, Any], returns: Any = Signature.empty) -> Signature:
    """What help shows of a call: its first parameters, privacy, ledger, noise and n, and its settings with their defaults."""
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
    ask: Callable[[Any], Any] = lambda result: result,
) -> Any:
    """The result of one release. ask: what is made of it, such as a test of a table, whose title the ledger keeps."""
    with engine.asking(ask):
        release = engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n)
    return ask(shown(method.infer(release), release))


def checked_ledger(ledger: Ledger | None) -> None:
    """Refuse a call that says nothing of the ledger."""
    if ledger is LEFT_OUT:
        raise PlanError(
            "ledger was left out: say which ledger is charged, or that none is",
            'write ledger=cf.Ledger.open("ledger.db", dataset="survey"), or ledger=None for no charge',
        )


def checked_call(
    verb: str,
    known: Sequence[str],
    privacy: Guarantee | None,
    ledger: Ledger | None,
    settings: Iterable[str],
    *,
    example: str,
) -> Guarantee:
    """The requested guarantee; refuses a call without privacy or ledger, and settings that it does not have."""
    requested = checked_privacy(privacy)
    checked_ledger(ledger)
    for name in settings:
        if name not in known:
            raise PlanError(
                f"{verb} has no option {name!r}{near_match(name, (*known, *_OWN))}; its options are "
                f"{', '.join((*_OWN, *known))}",
                f"write {verb}({example})",
            )
    return requested
