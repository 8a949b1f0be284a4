"""How much noise a protected column needs: from a guarantee, or as a share of its width; public facts only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.guarantees.curves import calibrate_symmetric_laplace
from confide.local.protection import Noised, Told
from confide.schema import Categorical, Schema

__all__ = ["LEVELS", "noised_columns", "order_of", "rest_of", "told_columns"]

#: One attribute of a record changes, or all its protected columns.
LEVELS = ("attribute", "record")

# A column's noise is a multiple of this part of a grid step, rounded up.
_PART = 1024
# Rounding to the grid leaves a correction an error of (step / noise)^2: at most 4e-4 of the noise's own variance.
_FINE = 50


def noised_columns(
    schema: Schema,
    names: Sequence[str],
    *,
    level: str,
    zeta: float,
    privacy: Guarantee | None = None,
    noise: float | None = None,
) -> dict[str, Noised]:
    """The protected columns with their noise, the same multiple of each column's width.

    privacy: ApproxDP, or PureDP for a single column, at `level`; or noise: standard deviation over width, in place of it.
    Raises `PlanError` and `PrivacyError` from the schema and the request alone.
    """
    if (privacy is None) == (noise is None):
        raise PlanError(
            "give a guarantee, or the noise of each column as a share of its width; write privacy=cf.ApproxDP(1.0, 1e-3) or noise=1.0"
        )
    if not names:
        raise PlanError(
            f"name the columns to protect, of {', '.join(schema.names)}; write columns=[{schema.names[0]!r}]"
        )
    if len(set(names)) < len(names):
        raise PlanError(f"each column is named once, got {', '.join(names)}")
    share = Fraction(_share(len(names), level, zeta, privacy)) if noise is None else _given(noise)
    return {name: _noised(schema, name, share) for name in names}


def _given(noise: float) -> Fraction:
    if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 1e-3 <= noise <= 1e6:
        raise PlanError(
            f"noise is a standard deviation over the column's width, from .001 to a million, got {noise!r}; write noise=1.0"
        )
    return Fraction(noise)


def _share(d: int, level: str, zeta: float, privacy: Guarantee | None) -> float:
    """Noise standard deviation over width that meets the request."""
    if isinstance(privacy, PureDP) and d == 1 and zeta == 0:
        shift = privacy.epsilon / sqrt(2) * (1 - 1e-12)
    elif isinstance(privacy, ApproxDP):
        shift = calibrate_symmetric_laplace(privacy.epsilon, privacy.delta, d, zeta=zeta)
    else:
        why = "with rows left without noise" if zeta and isinstance(privacy, PureDP) else f"of {d} columns"
        raise NoConversion(
            f"the noise {why} has a trade-off function, which meets (epsilon, delta) and no {privacy}; write "
            "privacy=cf.ApproxDP(1.0, 1e-3), or give noise= and read the function with `confide curve`"
        )
    return (1.0 if level == "attribute" else sqrt(d)) / shift * (1 + 1e-12)


def _noised(schema: Schema, name: str, share: Fraction) -> Noised:
    column = schema[name]
    if isinstance(column, Categorical):
        raise PlanError(
            f"column {name!r} has levels, and noise on levels is randomised response; write levels={{{name!r}: 1.0}}, with its "
            "epsilon, and leave it out of columns="
        )
    if column.on_missing == "drop":
        raise PlanError(
            f"column {name!r} drops records without a value, and here every record is published; state a public value for them: "
            f"on_missing={(column.low + column.high) / 2:g} in the schema"
        )
    wide = column.steps - 1
    lam = Fraction(ceil(share * wide * _PART), _PART)
    if lam < _FINE:
        raise PrivacyError(
            f"column {name!r} has {column.steps:,} grid steps, and its noise of {float(lam):.3g} steps is under {_FINE}, so that rounding "
            "would be seen in corrections; declare it as cf.Numeric(low, high), or ask for more noise"
        )
    return Noised(column.low, column.high, column.steps, lam)


def order_of(schema: Schema, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The declared levels of those of these columns that hold labels."""
    own = {name: schema[name] for name in names}
    return {name: one.levels for name, one in own.items() if isinstance(one, Categorical)}


def told_columns(schema: Schema, levels: Mapping[str, float]) -> dict[str, Told]:
    """The columns of levels with their randomised response, each of its own epsilon; `PlanError` for what has no levels."""
    found = {}
    for name, epsilon in levels.items():
        column = schema[name]
        if not isinstance(column, Categorical):
            raise PlanError(f"column {name!r} has no levels; name it in columns=, whose noise is for numbers")
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 1e-3 <= epsilon <= 20:
            raise PlanError(
                f"levels= gives the epsilon of each column, from .001 to 20, got {epsilon!r} for {name!r}; write 1.0"
            )
        if column.on_missing == "drop":
            raise PlanError(
                f"column {name!r} drops records without a level, and here every record is published; state a public level for them: "
                f"on_missing={column.levels[0]!r} in the schema"
            )
        found[name] = Told.of(column.levels, float(epsilon))
    return found


def rest_of(privacy: Guarantee | None, told: Mapping[str, Told], level: str) -> Guarantee | None:
    """What a request leaves to the numbers beside columns of levels; `PlanError` for no level, or where the levels alone ask for more.

    Draws are independent, so that epsilons add up: of all columns of levels for a record, of the largest for one attribute, whose statement
    is about a number and a column of levels at once (`Protection.curves`).
    """
    if level not in LEVELS:
        raise PlanError(f"level must be 'attribute' or 'record', got {level!r}; write level='record'")
    if privacy is None or not told:
        return privacy
    if not isinstance(privacy, (ApproxDP, PureDP)):
        raise PlanError(
            f"columns of levels have an epsilon each, and {privacy} has none to take them from; write "
            "privacy=cf.ApproxDP(4.0, 1e-3)"
        )
    own = [one.epsilon for one in told.values()]
    taken = sum(own) if level == "record" else max(own)
    if not taken < privacy.epsilon:
        raise PlanError(
            f"the levels of {', '.join(told)} alone have epsilon {taken:.4g} for one {level}, and the request is {privacy.epsilon:g}; "
            "give levels= less, or ask for more"
        )
    return replace(privacy, epsilon=(privacy.epsilon - taken) * (1 - 1e-12))
