"""The questions of a publication: as they are given and kept, what each may weigh, and what it asks of the level."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import inf, log, nextafter, sqrt
from typing import Any

from confide import _special as special
from confide import registry
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, Guarantee, PureDP
from confide.protocol import Method
from confide.protocol.plan import method_parameters

__all__ = ["EXAMPLE", "faulty", "method_of", "pairs", "request_of", "root", "stored", "weights_of"]

#: A publication, as messages show it.
EXAMPLE = 'write cf.Publication({"model": cf.regression.LeastSquares("y ~ x"), "ages": cf.classification.ClassMeans("sex ~ age")})'


def pairs(questions: Any) -> list[tuple[Any, Any]]:
    """Names and methods, from a mapping or from what a plan's file holds."""
    if isinstance(questions, Mapping):
        return list(questions.items())
    if isinstance(questions, (list, tuple)) and all(
        isinstance(one, Mapping) and set(one) == {"question", "method", "parameters"} for one in questions
    ):
        return [(one["question"], one) for one in questions]
    raise PlanError(f"questions must be a mapping of names to methods, got {type(questions).__name__}; {EXAMPLE}")


def stored(name: Any, question: Any) -> dict[str, Any]:
    """A question as plain values: its name, its method's registered name, its parameters."""
    if not isinstance(name, str) or not name.strip() or "/" in name or not name.isprintable() or len(name) > 200:
        raise PlanError(f"a question's name is printable text without '/', got {name!r}; {EXAMPLE}")
    if isinstance(question, Mapping):
        method, parameters = registry.current(str(question.get("method")), question.get("parameters", {}))
        own = {"question": name, "method": method, "parameters": parameters}
    elif isinstance(question, Method):
        own = {"question": name, "method": question.name, "parameters": method_parameters(question)}
    else:
        raise PlanError(f"the question {name!r} must be a method, got {type(question).__name__}; {EXAMPLE}")
    if own["method"] not in registry.known() or own["method"] == "publication":
        raise PlanError(
            f"the question {name!r} must be a registered method other than a publication, got {own['method']!r}; `confide methods` lists "
            "them, and cf.register makes one of your own known; a t, F or chi-square test is read, uncharged, from means or counts "
            "that are asked here: report[name].test(...)"
        )
    return own


def method_of(question: Mapping[str, Any]) -> Method:
    """The method of a stored question."""
    try:
        return registry.make(question["method"], **question["parameters"])
    except ConfideError as error:
        raise faulty([(question["question"], error)]) from None


def weights_of(shares: Any, names: list[str]) -> dict[str, Fraction] | None:
    """Weights as exact fractions; a double means the decimal number that it prints as."""
    if shares is None:
        return None
    if not isinstance(shares, Mapping):
        raise PlanError(
            f'shares must be a mapping of names to weights, got {shares!r}; write shares={{"{names[0]}": 2}}'
        )
    found = {}
    for name, weight in shares.items():
        if name not in names:
            raise PlanError(
                f"shares name the question {name!r}, which is not asked; the questions are: {', '.join(names)}"
            )
        if isinstance(weight, bool) or not isinstance(weight, (int, float, Fraction)) or not 0 < weight < 1e9:
            raise PlanError(
                f"the share of {name!r} must be a weight above 0, got {weight!r}; leave the question out, or write 1"
            )
        found[name] = weight if isinstance(weight, Fraction) else Fraction(repr(weight))
    return found


def root(amount: Fraction) -> float:
    """The largest double whose square is at most `amount`."""
    mu = sqrt(amount)
    while Fraction(mu) ** 2 > amount:
        mu = nextafter(mu, 0.0)
    while Fraction(nextafter(mu, inf)) ** 2 <= amount:
        mu = nextafter(mu, inf)
    return mu


def request_of(method: Method, mu: float, relation: str) -> Guarantee:
    """What a question may spend, in the kind of guarantee that its method has."""
    if method.native != "PureDP":
        return GDP(mu, relation=relation)
    # mu(epsilon) = -2 q(1/(1 + e^epsilon)), q the normal quantile
    tail = float(special.ndtr(-mu / 2))
    epsilon = log((1 - tail) / tail)
    while PureDP(epsilon, relation=relation).to_gdp().mu > mu:
        epsilon *= 1 - 2.0**-50
    return PureDP(epsilon, relation=relation)


def faulty(problems: list[tuple[str, ConfideError]]) -> ConfideError:
    """One error for all questions that cannot be planned."""
    kinds = {type(error) for _, error in problems}
    kind = kinds.pop() if len(kinds) == 1 else PlanError
    told = "; ".join(f"question {name!r}: {error}" for name, error in problems)
    return kind(told if len(problems) == 1 else f"{len(problems)} questions cannot be planned. {told}")
