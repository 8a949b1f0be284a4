"""Try to break a sensitivity: adversarial search over neighbors, for any function of a table.

A sensitivity is a bound on |f(D) - f(D')| for ALL neighbors. A search cannot prove it; it finds the pair that refutes
it. Known faults of libraries are tried first: a clip that NaN passes, sums that overflow, a mean over an empty table,
the order of a float sum. Sources: (Casacuberta, Shoemate, Vadhan, Wagaman 2022; Cebere et al. 2026).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, isfinite, isinf, isnan, sqrt
from typing import Any

import numpy as np

from confide.audit.searches.neighbors import Domain, Record, search
from confide.audit.verdict import Finding
from confide.errors import PrivacyError

NORMS = ("l1", "l2", "linf", "frobenius")


@dataclass(frozen=True)
class Response:
    """What a query said: its form (shape, keys, or the exception it raised) and its numbers, exact where they were integers."""

    form: Any
    numbers: tuple[Any, ...]
    whole: bool


@dataclass(frozen=True)
class SensitivityReport:
    """The worst pair that was found. `print(report)` says it in words.

    `ratio`: change over bound, `inf` where one answer is not a number, has another form, or an exception. `pair`: the
    two datasets. `answers`: what the query said on them. `exact`: the comparison was made in integers. `tried`: pairs
    of neighbors. `kind`: ``"neighbors"``, or ``"reordering"`` when the same records in another order gave another
    answer. `size`: the number of records that was asked for, None where it was free.
    """

    ratio: float
    bound: float
    norm: str
    relation: str
    verdict: str
    tried: int
    pair: tuple[Any, Any]
    answers: tuple[Any, Any]
    exact: bool
    kind: str
    name: str = "query"
    size: int | None = None

    @property
    def violated(self) -> bool:
        """Whether the bound is refuted."""
        return self.verdict == "violated"

    def finding(self) -> Finding:
        """The same as a row of an `Audit`: quantity "ratio", claim 1."""
        return Finding(
            name=self.name,
            quantity="ratio",
            claim=1.0,
            lower_bound=self.ratio,
            verdict="violated" if self.violated else "holds",
            attack="neighbor search" if self.kind == "neighbors" else "reordering",
            relation=self.relation,
            note=f"{self.tried} pairs tried" + (", exact integers" if self.exact else ""),
        )

    def __str__(self) -> str:
        lines = [
            f"sensitivity of {self.name} in {self.norm} under {self.relation}: {self.verdict}",
            f"claimed {self.bound:.6g}, the largest change found is {self.ratio:.6g} times that, {self.tried} pairs tried",
        ]
        if self.violated and self.relation == "substitute" and self.size is None:
            lines.append("the number of records was free, from 1 on; where it is public and fixed, give it: n=100")
        if self.violated:
            lines += [
                "the same records in another order:" if self.kind == "reordering" else "the worst neighbors:",
                *(f"  {shown(data)} -> {shown(said)}" for data, said in zip(self.pair, self.answers, strict=True)),
            ]
        return "\n".join(lines)


def falsify_sensitivity(
    query: Callable[[Any], Any],
    domain: Any,
    bound: float | Fraction,
    *,
    relation: str = "add-remove",
    norm: str = "l2",
    n: int | None = None,
    restarts: int = 12,
    seed: int = 0,
    hostile: bool = True,
    ordered: bool = False,
    tolerance: float = 1e-9,
    name: str = "",
) -> SensitivityReport:
    """Search for two neighbors on which a query moves by more than its claimed sensitivity.

    `query`: a function of a pandas frame (domain is a `Schema` or a mapping), of an array (n,) (domain is (low,
    high)) or of an array (n, d) (domain is a sequence of pairs). It returns numbers in any form. `bound`: the claim,
    in `norm`: "l1", "l2", "linf", or "frobenius". `n`: how many records, exactly under substitution and at most under
    "add-remove"; None tries 0 to 30. `hostile`: also records beyond the bounds, NaN, infinities, -0.0, subnormals,
    labels that no level knows. `ordered`: the order of records is public, so that an answer may depend on it.
    `tolerance`: relative excess that is forgiven to floats; integers are compared exactly.

    An exception counts as an answer: neighbors of which one raises refute any bound. Errors: PrivacyError for parameters out of range.

    >>> import numpy as np
    >>> falsify_sensitivity(lambda x: int((x > 0.5).sum()), (0, 1), 1).verdict
    'holds'
    >>> report = falsify_sensitivity(lambda x: np.clip(x, 0, 1).max(initial=0) * 3, (0, 1), 1)
    >>> report.verdict, report.ratio >= 3
    ('violated', True)
    """
    if norm not in NORMS:
        raise PrivacyError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    if isinstance(bound, bool) or not isinstance(bound, int | float | Fraction | np.number) or not 0 < bound < inf:
        raise PrivacyError(
            f"bound must be a finite number above 0, got {bound!r}", "write falsify_sensitivity(f, (0, 1), 1.0)"
        )
    where = Domain.of(domain, hostile=hostile)
    exact = Fraction(bound) if isinstance(bound, int | float | Fraction) else Fraction(float(bound))

    def measure(data: Any) -> Response:
        return answer(query, data)

    def gap(one: Response, other: Response) -> float:
        return _ratio(one, other, norm, exact)

    found = search(where, measure, gap, relation=relation, n=n, restarts=restarts, seed=seed)
    data, neighbor, value, kind = found.data, found.neighbor, found.value, "neighbors"
    said = measure(where.data(data)), measure(where.data(neighbor))
    whole = said[0].whole and said[1].whole
    violated = _exceeds(said, norm, exact) if whole else value > 1 + tolerance
    tried = found.tried
    if not violated and not ordered:
        mixed, count = _order(where, measure, n, seed)
        tried += count
        if mixed is not None:
            data, neighbor = mixed
            said = measure(where.data(data)), measure(where.data(neighbor))
            violated, kind, value = True, "reordering", max(value, gap(*said))
    return SensitivityReport(
        ratio=value,
        bound=float(exact),
        norm=norm,
        relation=relation,
        verdict="violated" if violated else "holds",
        tried=tried,
        pair=(where.data(data), where.data(neighbor)),
        answers=(_said(said[0]), _said(said[1])),
        exact=whole,
        kind=kind,
        name=name or getattr(query, "__name__", "query"),
        size=n,
    )


def answer(query: Callable[[Any], Any], data: Any) -> Response:
    """What a query says of data; its exception is an answer too."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _numbers(query(data))
    except Exception as error:
        return Response(("raises", type(error).__name__), (), True)


def _numbers(value: Any) -> Response:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return Response((), (int(value),), True)
    if isinstance(value, float | np.floating):
        return Response((), (float(value),), False)
    if isinstance(value, Fraction):
        return Response((), (value,), True)
    if isinstance(value, Mapping):
        parts = [(str(key), _numbers(value[key])) for key in sorted(value, key=str)]
        form = tuple((key, part.form) for key, part in parts)
        return Response(form, sum((part.numbers for _, part in parts), ()), all(part.whole for _, part in parts))
    if value is None or isinstance(value, str):
        return Response(("text", value), (), True)
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return Response(array.shape, tuple(array.ravel().tolist()), True)
    if array.dtype.kind == "f":
        return Response(array.shape, tuple(array.astype(np.float64).ravel().tolist()), False)
    parts_ = [_numbers(item) for item in array.ravel().tolist()] if array.dtype.kind == "O" and array.ndim else []
    if not parts_ and array.size:
        raise PrivacyError(f"a query must return numbers, got {type(value).__name__}")
    form = (array.shape, tuple(part.form for part in parts_))
    return Response(form, sum((part.numbers for part in parts_), ()), all(part.whole for part in parts_))


def distance(one: Response, other: Response, norm: str) -> Any:
    """How far apart two answers are: exact (its square for l2) when all numbers are whole, a float otherwise, `inf` for two forms."""
    if one.form != other.form or len(one.numbers) != len(other.numbers):
        return inf
    if one.whole and other.whole:
        moved = [
            abs(int(a) - int(b)) if _int(a) and _int(b) else abs(Fraction(a) - Fraction(b))
            for a, b in _both(one, other)
        ]
        if norm in ("l2", "frobenius"):
            return sum(d * d for d in moved)
        return sum(moved) if norm == "l1" else max(moved, default=0)
    steps = [_step(a, b) for a, b in _both(one, other)]
    if inf in steps:
        return inf
    if norm in ("l2", "frobenius"):
        top = max(steps, default=0.0)
        return top * sqrt(fsum((d / top) ** 2 for d in steps)) if top > 0 else 0.0
    return fsum(steps) if norm == "l1" else max(steps, default=0.0)


def _both(one: Response, other: Response) -> Any:
    return zip(one.numbers, other.numbers, strict=True)


def _int(value: Any) -> bool:
    return isinstance(value, int)


def _step(a: Any, b: Any) -> float:
    """|a - b| of two numbers; two NaN, or the same infinity, are not a step at all."""
    a, b = float(a), float(b)
    apart: float = abs(a - b)
    if isnan(a) or isnan(b):
        return 0.0 if isnan(a) and isnan(b) else inf
    if isinf(a) or isinf(b):
        return 0.0 if a == b else inf
    return apart


def _exceeds(said: tuple[Response, Response], norm: str, bound: Fraction) -> bool:
    apart = distance(*said, norm)
    return bool(apart > (bound**2 if norm in ("l2", "frobenius") else bound))


def _ratio(one: Response, other: Response, norm: str, bound: Fraction) -> float:
    apart = distance(one, other, norm)
    if apart == inf:
        return inf
    if one.whole and other.whole:
        return _root(Fraction(apart) / bound**2) if norm in ("l2", "frobenius") else _float(Fraction(apart) / bound)
    return float(apart) / float(bound) if isfinite(apart) else inf


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf


def _root(value: Fraction) -> float:
    squared = _float(value)
    return sqrt(squared) if isfinite(squared) else inf


def _order(
    domain: Domain, measure: Callable[[Any], Response], n: int | None, seed: int
) -> tuple[tuple[tuple[Record, ...], tuple[Record, ...]] | None, int]:
    """The same records in two orders that give two answers, if there are any, and how many were compared."""
    generator = np.random.Generator(np.random.PCG64([seed, 1]))
    tried = 0
    for size in (n or 3, n or 30, n or 300):
        records = domain.inner(generator, size)
        first = measure(domain.data(records))
        for _ in range(8):
            mixed = [records[i] for i in generator.permutation(size)]
            tried += 1
            if repr(measure(domain.data(mixed))) != repr(first):
                return (tuple(records), tuple(mixed)), tried
    return None, tried


def _said(given: Response) -> Any:
    if given.form and isinstance(given.form, tuple) and given.form[0] == "raises":
        return given.form[1]
    return given.numbers[0] if len(given.numbers) == 1 else given.numbers


def shown(value: Any) -> str:
    """Data or an answer on one line, shortened to 160 characters; of more than six records their number and the last, which changed."""
    if hasattr(value, "to_dict"):
        text = (
            str(value.to_dict("list"))
            if len(value) <= 6
            else f"{len(value)} records, the last {value.iloc[-1].to_dict()}"
        )
    elif isinstance(value, np.ndarray) and len(value) > 6:
        text = f"{len(value)} records, the last {value[-1].tolist()!r}"
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:157] + "..."
