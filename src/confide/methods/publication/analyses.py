"""The analyses of a publication: how they are given and kept, what each may weigh, and what it asks of the level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from confide import registry
from confide.core import Method
from confide.core.exact import pack
from confide.core.plan import method_parameters
from confide.core.ranges import spend_name
from confide.errors import ConfideError, PlanError, PrivacyError
from confide.guarantees import GDP, Guarantee, PureDP, calibrate_pure

#: A publication, as messages show it.
EXAMPLE = 'write cf.Publication({"model": cf.regression.LeastSquares("y ~ x"), "ages": cf.classification.ClassMeans("sex ~ age")})'


def pairs(analyses: Any) -> list[tuple[Any, Any]]:
    """Names and methods, from a mapping or from what a plan's file holds."""
    if isinstance(analyses, Mapping):
        return list(analyses.items())
    if isinstance(analyses, (list, tuple)) and all(
        isinstance(one, Mapping) and set(one) == {"analysis", "method", "parameters"} for one in analyses
    ):
        return [(one["analysis"], one) for one in analyses]
    raise PlanError(f"analyses must be a mapping of names to methods, got {type(analyses).__name__}", f"{EXAMPLE}")


# How what a publication cannot hold is released.
_ALONE = "release it separately: cf.release(method, data, privacy, ledger=ledger)"


def stored(name: Any, analysis: Any) -> dict[str, Any]:
    """An analysis as plain values: its name, its method's registered name, its parameters.

    Raises `PlanError` without a method, for one that is not registered, and for one of live code, which no file can hold.
    """
    if not isinstance(name, str) or not name.strip() or "/" in name or not name.isprintable() or len(name) > 200:
        raise PlanError(f"the name of an analysis is printable text without '/', got {name!r}", f"{EXAMPLE}")
    if name.startswith(spend_name("")):
        raise PlanError(f"the name of an analysis cannot begin with {spend_name('')!r}, got {name!r}", f"{EXAMPLE}")
    if isinstance(analysis, Mapping):
        given = analysis.get("parameters", {})
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise PlanError(
                f"the parameters of the analysis {name!r} must be a mapping of names, got {given!r}", f"{EXAMPLE}"
            )
        own: dict[str, Any] = {"analysis": name, "method": str(analysis.get("method")), "parameters": dict(given)}
    elif isinstance(analysis, Method):
        own = {"analysis": name, "method": analysis.name, "parameters": method_parameters(analysis)}
    else:
        kind = f"the class {analysis.__name__}" if isinstance(analysis, type) else type(analysis).__name__
        raise PlanError(f"the analysis {name!r} must be a method with its parameters, got {kind}", f"{EXAMPLE}")
    if own["method"] not in registry.known() or own["method"] == "publication":
        raise PlanError(
            f"the analysis {name!r} must be a registered method other than a publication, got {own['method']!r}; `confide methods` lists "
            "them, and cf.register adds your method. A t, F or chi-square test is read, uncharged, from means or counts "
            "of this publication: by .test(...) of its result, or confide infer RELEASE --analysis NAME --test TEST"
        )
    if isinstance(analysis, Method) and registry.get(own["method"]) is not type(analysis):
        raise PlanError(
            f"the analysis {name!r} is of the class {type(analysis).__name__}, and {own['method']!r} is another one that is registered",
            "give yours another name, and cf.register it",
        )
    live = [key for key, value in own["parameters"].items() if not _is_plain(value)]
    if live:
        raise PlanError(
            f"the analysis {name!r} is a {own['method']} whose {' and '.join(live)} no file can hold, and a publication is its file",
            f"{_ALONE}",
        )
    return own


def _is_plain(value: Any) -> bool:
    """Whether a parameter has an exact text form."""
    try:
        pack(value)
    except TypeError:
        return False
    return True


def methods_of(asked: Iterable[Mapping[str, Any]]) -> dict[str, Method]:
    """The methods of stored analyses, by name."""
    made, problems = dict[str, Method](), list[tuple[str, ConfideError]]()
    for one in asked:
        try:
            made[one["analysis"]] = registry.make(one["method"], **one["parameters"])
        except ConfideError as error:
            problems.append((one["analysis"], error))
    if problems:
        raise faulty(problems)
    return made


def weights_of(shares: Any, names: list[str]) -> dict[str, Fraction] | None:
    """Weights as exact fractions; a double means the decimal number that it prints as."""
    if shares is None:
        return None
    if not isinstance(shares, Mapping):
        raise PlanError(
            f"shares must be a mapping of names to weights, got {shares!r}", f'write shares={{"{names[0]}": 2}}'
        )
    found = {}
    for name, weight in shares.items():
        if name not in names:
            raise PlanError(
                f"shares name the analysis {name!r}, which the publication lacks; its analyses are: {', '.join(names)}"
            )
        if isinstance(weight, bool) or not isinstance(weight, (int, float, Fraction)) or not 1e-9 <= weight <= 1e9:
            raise PlanError(
                f"the share of {name!r} must be a weight from 1e-9 to 1e9, got {weight!r}",
                "leave the analysis out, or write 1",
            )
        found[name] = weight if isinstance(weight, Fraction) else Fraction(repr(float(weight)))
    return found


def request_of(method: Method, mu: float, relation: str) -> Guarantee:
    """What an analysis may cost, in the kind of guarantee that its method has."""
    if method.native != "PureDP":
        return GDP(mu, relation=relation)
    return PureDP(calibrate_pure(GDP(mu)), relation=relation)


def needs_its_own(error: PrivacyError, request: Guarantee) -> PrivacyError:
    """The refusal of an analysis that cannot give what a publication asks of it, with the call that works."""
    return type(error)(
        f"{error}. A publication gives this analysis {request} and has no other guarantee to give; {_ALONE}"
    )


def faulty(problems: list[tuple[str, ConfideError]]) -> ConfideError:
    """One error for all analyses that cannot be planned."""
    for name, error in problems:
        error.analysis = name
    errors = [error for _, error in problems]
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else PlanError
    return errors[0] if len(errors) == 1 else kind(f"{len(errors)} analyses cannot be planned", parts=errors)
