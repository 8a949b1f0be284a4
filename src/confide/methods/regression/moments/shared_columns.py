"""Regressions of one publication that share columns: what drawing them together would gain, as notes of the plan. They are drawn apart.

SSP releases the Gram matrix of v = (z, sqrt(g2) t), of Frobenius norm at most D (`moments.ssp`): of one response D^2 = (R2 + g2)^2, of m
responses on the same terms R2^2 + 2 m g2 R2 + m g2^2; a coefficient's noise variance goes as D^2 (1/g2 + 1/2) over the share of mu^2. One
matrix for several questions has the sum of their shares. It is one question with several responses, or a larger model of which smaller
ones are read; the note gives its formula.

LeastSquares adds up scores in coordinates that are whitened for its own terms, at lines of its own: of two lines on different terms no sum
serves both. Lines on the same terms could share what is of features alone (number, ranges, leverages, their Gram matrix), a part f of
each one's mu^2: of k lines at equal shares the noise variance of the rest falls to (1 - f)/(1 - f/k), at f = .2 never below .8. How one
Gram matrix for all compares with the default apart: `confide lab bench pooled_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from confide.errors import ConfideError
from confide.guarantees import GDP
from confide.methods.regression.least_squares.line import LeastSquares
from confide.methods.regression.moments.ssp import SSP
from confide.protocol import Method, Plan, Spend
from confide.protocol.events import leaves
from confide.schema.formulas.names import parted, sides

__all__ = ["shared_columns"]

# Of the spends of a line, those that no response takes part in.
_FEATURES = ("count", "leverage", "ranges", "gram")
# What is worth a note.
_ENOUGH = 0.95


def shared_columns(
    methods: Mapping[str, Method], shares: Mapping[str, Fraction], plans: Mapping[str, Plan], schema: Any
) -> tuple[str, ...]:
    """Notes for lines that share columns. methods, shares: of the publication, by name; plans: of its parts."""
    found: dict[Any, list[str]] = {}
    for name, method in methods.items():
        if type(method) in (SSP, LeastSquares) and schema.design is None and schema.cluster is None:
            found.setdefault(_alike(method), []).append(name)
    notes: list[str] = []
    for names in found.values():
        own = {name: methods[name] for name in names}
        if len(names) > 1 and all(isinstance(one, SSP) for one in own.values()):
            notes += _one_matrix(own, shares, schema)
        elif len(names) > 1 and len({_sides(one)[1] for one in own.values()}) == 1:
            notes += _one_line(names, plans)
    return tuple(notes)


def _alike(method: Any) -> Any:
    """What lines agree in that could be drawn together."""
    bare = replace(method, formula="y ~ x")
    return type(method), method.where, repr(bare)


def _sides(method: Any) -> tuple[str, str]:
    left, *right = sides(method.formula)
    return left, " + ".join(sorted(parted("~".join(right), "+")))


def _one_matrix(own: Mapping[str, Any], shares: Mapping[str, Fraction], schema: Any) -> Iterable[str]:
    """Several responses on the same terms, or one response on several sets of terms."""
    both = {name: _sides(one) for name, one in own.items()}
    lefts, rights = (list(dict.fromkeys(side[k] for side in both.values())) for k in (0, 1))
    terms = list(dict.fromkeys(part for right in rights for part in right.split(" + ")))
    if min(len(lefts), len(rights)) > 1:
        return
    formula = f"{' + '.join(lefts)} ~ {' + '.join(terms)}"
    first = next(iter(own.values()))
    try:
        joint = _loss(replace(first, formula=formula), schema) / float(sum(shares[name] for name in own))
        ratios = {name: joint * float(shares[name]) / _loss(one, schema) for name, one in own.items()}
    except ConfideError:
        return
    if sum(ratios.values()) / len(ratios) > _ENOUGH:
        return
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    read = (
        "and result['y'] is the table of one"
        if len(lefts) > 1
        else "smaller models are read by cf.Question(subset=...), whose covariance assumes equal residual variances"
    )
    yield (
        f"{', '.join(own)} are drawn apart; as one question, SSP({formula!r}) with the shares of all, the noise variance of the moments "
        f"over that of separate ones would be: {told}; {read}"
    )


def _loss(method: Any, schema: Any) -> float:
    layout = method._layout(schema)
    cap, g2, m = layout.cap, layout.g2, layout.outcomes
    squared = (cap + m * g2) ** 2 if method.products else cap**2 + 2 * m * g2 * cap + m * g2**2
    return float(squared * (1 / g2 + 0.5))


def _one_line(names: list[str], plans: Mapping[str, Plan]) -> Iterable[str]:
    """Several responses of the default on the same terms."""
    spends = [
        {
            one.name: float(one.sensitivity) ** 2 / float(one.scale)
            for one in leaves(plans[name].event)
            if isinstance(one, Spend)
        }
        for name in names
    ]
    # sums by level have no such rounds
    if not all("gram" in own for own in spends):
        return
    levels = [plans[name].guarantee for name in names]
    whole = [one.mu**2 for one in levels if isinstance(one, GDP)]
    part = sum(sum(own.get(key, 0.0) for key in _FEATURES) / of for own, of in zip(spends, whole, strict=True)) / len(
        names
    )
    gain = 1 - ((1 - part) / (1 - part / len(names))) ** 0.5
    yield (
        f"{', '.join(names)} are lines on the same terms, drawn apart: {part:.0%} of each one's mu^2 tells of the terms alone, so that "
        f"drawing them together would take at most {gain:.0%} off the sd of the noise"
    )
