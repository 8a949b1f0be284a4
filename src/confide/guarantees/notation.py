"""Trade-off functions from text, as people write them: `GDP(1)`, `laplace(0.1) ** 10`, `gaussian(1) * laplace(0.5)`.

The text is parsed, never evaluated: calls of known names on numbers, `*` for composition, `** k` for k-fold composition.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from confide.errors import PrivacyError
from confide.guarantees.conversion import from_guarantee
from confide.guarantees.curves import (
    Curve,
    approx_dp,
    gaussian,
    laplace,
    perfect,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.values import GDP, RDP, ZCDP, ApproxDP, PureDP

__all__ = ["parse_curve"]

_CURVES: dict[str, Callable[..., Curve]] = {
    "gaussian": gaussian,
    "laplace": laplace,
    "approx_dp": approx_dp,
    "symmetric_laplace": symmetric_laplace,
    "zero_inflated": zero_inflated,
    "perfect": perfect,
}
_VALUES: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (GDP, PureDP, ApproxDP, ZCDP, RDP)}
_HELP = (
    "write for instance 'GDP(1)', 'ApproxDP(1, 1e-6)', 'laplace(0.1) ** 10', 'gaussian(1) * laplace(0.5)', "
    "'symmetric_laplace(3, 0.5)' or 'zero_inflated(0.05, symmetric_laplace(inf, 0.5))'"
)


def parse_curve(text: str) -> Curve:
    """The trade-off function that a text names; `PrivacyError` for anything else, with examples.

    >>> parse_curve("gaussian(3) * GDP(4)").delta(0.0) == parse_curve("gaussian(5)").delta(0.0)
    True
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PrivacyError(f"{text!r} is no guarantee; {_HELP}") from None
    found = _read(tree, text)
    if not isinstance(found, Curve):
        raise PrivacyError(f"{text!r} is a number, not a guarantee; {_HELP}")
    return found


def _read(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return node.value
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _read(operand, text)
            if isinstance(number, (int, float)):
                return -number
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_read(item, text) for item in items)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _read(left, text), _read(right, text)
            if isinstance(one, Curve) and isinstance(other, Curve):
                return one.compose(other)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, times = _read(left, text), _read(right, text)
            if isinstance(base, Curve):
                if not isinstance(times, int) or times < 1:
                    raise PrivacyError(
                        f"{ast.unparse(node)!r}: ** takes a whole number of releases, at least 1, got {times!r}; write for instance "
                        "'laplace(0.1) ** 10'"
                    )
                return base.power(times)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            raise PrivacyError(
                f"{ast.unparse(node)!r}: releases compose by * and equal ones by **; write for instance 'GDP(1) * GDP(2)' or "
                "'GDP(1) ** 3'"
            )
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in (*_CURVES, *_VALUES):
            values = [_read(arg, text) for arg in args]
            named = {keyword.arg: _read(keyword.value, text) for keyword in keywords if keyword.arg}
            try:
                made = (_CURVES | _VALUES)[name](*values, **named)
            except TypeError:
                raise PrivacyError(f"{name} in {text!r} has other parameters; {_HELP}") from None
            except PrivacyError as error:
                raise PrivacyError(f"{ast.unparse(node)!r}: {error}") from None
            return made if isinstance(made, Curve) else from_guarantee(made)
    raise PrivacyError(f"{ast.unparse(node)!r} in {text!r} is not understood; {_HELP}")
