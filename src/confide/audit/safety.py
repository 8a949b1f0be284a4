"""Try to break a safety bound: the two promises on which propose-test-release rests.

A safety bound is a function gamma of the data together with an estimate and a number alpha ("bound"), such that for all
neighbours X, X'

    (C1) gamma >= 0 and |gamma(X) - gamma(X')| <= 1;
    (C2) gamma(X) > 0  implies  |S (estimate(X) - estimate(X'))|_2 <= alpha, for EVERY neighbour X'.

C2 needs only one of the two to be safe. The other may be unsafe, and then its estimate may be undefined (an exception, NaN): with
gamma = 0 the mechanism never replies and never looks. Where both are safe both estimates must exist. A wrong C1 makes the
private test too sure of itself, a wrong C2 makes the noise too small; either one breaks the guarantee. A
statistic that is known up to rounding must be passed on as (gamma - eta)/(1 + 3 eta) cut at 0, or the search finds the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

from confide.audit.pairs import Domain, search
from confide.audit.sensitivity import Answer, answer, distance, shown
from confide.audit.verdict import Audit, Finding
from confide.errors import PrivacyError

__all__ = ["SafetyReport", "falsify_safety_bound"]

# below every real violation, above nothing: lets the ascent climb toward safe data before it can measure anything there
_FOOTHOLD = 1e-9


@dataclass(frozen=True)
class _Seen:
    gamma: float
    estimate: Answer


@dataclass(frozen=True)
class SafetyReport:
    """The worst violations found. `print(report)` says them in words.

    steps: the largest move of gamma between neighbours (claim: 1; `inf` where gamma is negative, no number or raises). ratio: the largest
    move of the estimate from safe data, over the bound. pair_steps, pair_ratio: the two data sets of each. safe: how many of the
    tried pairs had a safe side; with none C2 was not tested. tried: pairs of neighbours.
    """

    steps: float
    ratio: float
    bound: float
    relation: str
    verdict: str
    tried: int
    safe: int
    pair_steps: tuple[Any, Any]
    pair_ratio: tuple[Any, Any]
    name: str = "gamma"

    @property
    def broken(self) -> bool:
        """Whether one of the promises is refuted."""
        return self.verdict == "broken"

    def findings(self) -> Audit:
        """The same as two rows of an `Audit`."""
        limit = 1 + _TOLERANCE
        rows = (("moves by at most 1", self.steps, 1), ("bounds the estimate where safe", self.ratio, self.safe))
        return Audit(
            tuple(
                Finding(
                    name=f"{self.name} {what}",
                    quantity="ratio",
                    claim=1.0,
                    lower_bound=value,
                    verdict="broken" if value > limit else "holds" if tested else "untested",
                    attack="neighbour search",
                    relation=self.relation,
                    note=f"{self.tried} pairs tried, {self.safe} with a safe side",
                )
                for what, value, tested in rows
            )
        )

    def __str__(self) -> str:
        lines = [
            f"safety bound {self.name} under {self.relation}: {self.verdict}",
            f"gamma moved by {self.steps:.6g} (claim 1), the estimate by {self.ratio:.6g} of its bound where safe",
            f"{self.tried} pairs tried, {self.safe} with a safe side",
        ]
        for what, value, pair in (("gamma", self.steps, self.pair_steps), ("estimate", self.ratio, self.pair_ratio)):
            if value > 1 + _TOLERANCE:
                lines += [f"the worst neighbours of the {what}:", *(f"  {shown(data)}" for data in pair)]
        return "\n".join(lines)


_TOLERANCE = 1e-9


def falsify_safety_bound(
    gamma: Callable[[Any], Any],
    estimate: Callable[[Any], Any],
    bound: float | Fraction,
    domain: Any,
    *,
    relation: str = "substitute",
    scales: Sequence[float] | None = None,
    threshold: float = 0.0,
    n: int | None = None,
    restarts: int = 12,
    seed: int = 0,
    hostile: bool = True,
    name: str = "gamma",
) -> SafetyReport:
    """Search for neighbours that break gamma (C1) or the bound on the estimate where gamma says safe (C2).

    gamma, estimate: functions of the data that `domain` makes (see `falsify_sensitivity`), as they are called: clipping included. bound:
    alpha, in the Euclidean norm after the estimate's coordinates are multiplied by `scales` (S; None: all 1). threshold: data with
    gamma above it are called safe. n: number of records, public under "substitute"; None tries 1 to 31. What gamma raises, and a
    gamma that is negative or no number, breaks C1.

    Errors: PrivacyError for parameters out of range.

    >>> import numpy as np
    >>> count = lambda x: max(int((x > 0).sum()) - 4, 0)
    >>> share = lambda x: float(np.clip(x[x > 0], 0, 1).mean())
    >>> falsify_safety_bound(count, share, 1 / 2, (-1, 1), n=12, hostile=False).verdict
    'holds'
    >>> falsify_safety_bound(count, share, 1 / 12, (-1, 1), n=12, hostile=False).verdict
    'broken'
    """
    if isinstance(bound, bool) or not isinstance(bound, int | float | Fraction | np.number) or not 0 < bound < inf:
        raise PrivacyError(f"bound must be a finite number above 0, the alpha of the safety bound, got {bound!r}")
    where = Domain.of(domain, hostile=hostile)
    alpha = float(bound)
    hits = {"safe": 0}

    def measure(data: Any) -> _Seen:
        return _Seen(_gamma(gamma, data), answer(estimate, data))

    def moved(one: _Seen, other: _Seen) -> float:
        if not (_fits(one.gamma) and _fits(other.gamma)):
            return inf
        return abs(one.gamma - other.gamma)

    def apart(one: _Seen, other: _Seen) -> float:
        best = max(one.gamma, other.gamma, 0.0)
        if not (one.gamma > threshold or other.gamma > threshold):
            return _FOOTHOLD * best / (1 + best)
        hits["safe"] += 1
        for seen, partner in ((one, other), (other, one)):
            if _undefined(seen.estimate):
                # an unsafe estimate is never asked for
                return inf if seen.gamma > threshold else 0.0 if partner.gamma > threshold else inf
        return float(distance(_scaled(one.estimate, scales), _scaled(other.estimate, scales), "l2")) / alpha

    first = search(where, measure, moved, relation=relation, n=n, restarts=restarts, seed=seed)
    second = search(where, measure, apart, relation=relation, n=n, restarts=restarts, seed=seed + 1)
    ratio = second.value if hits["safe"] else 0.0
    ratio = 0.0 if ratio < 2 * _FOOTHOLD else ratio
    broken = first.value > 1 + _TOLERANCE or ratio > 1 + _TOLERANCE
    return SafetyReport(
        steps=first.value,
        ratio=ratio,
        bound=alpha,
        relation=relation,
        verdict="broken" if broken else "holds" if hits["safe"] else "untested",
        tried=first.tried + second.tried,
        safe=hits["safe"],
        pair_steps=(where.data(first.data), where.data(first.neighbour)),
        pair_ratio=(where.data(second.data), where.data(second.neighbour)),
        name=name,
    )


def _gamma(gamma: Callable[[Any], Any], data: Any) -> float:
    said = answer(gamma, data)
    return float(said.numbers[0]) if len(said.numbers) == 1 else float("nan")


def _fits(value: float) -> bool:
    return isfinite(value) and value >= 0


def _undefined(said: Answer) -> bool:
    return not said.numbers or not all(isfinite(float(value)) for value in said.numbers)


def _scaled(said: Answer, scales: Sequence[float] | None) -> Answer:
    numbers = tuple(float(value) for value in said.numbers)
    if scales is not None:
        numbers = tuple(s * value for s, value in zip(scales, numbers, strict=True))
    # two forms of the same numbers are no violation here: only where the estimate lies counts
    return Answer((), numbers, False)
