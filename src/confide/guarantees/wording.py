"""Plain words for data stewards: what a guarantee lets anyone find out at most."""

from __future__ import annotations

from math import ceil
from typing import Any

__all__ = ["percent", "sentence", "weakness"]


def percent(probability: float) -> str:
    """A probability in percent with one decimal, rounded up so that a limit is never understated.

    >>> percent(0.25951), percent(0.05)
    ('26 %', '5 %')
    """
    # 1e-9 keeps a limit that is a round number, up to the last bits of its float, from moving up a step.
    return f"{min(100.0, ceil(probability * 1000 - 1e-9) / 10):g} %"


def sentence(limit: str, *, relation: str | None, unit: str, trust: str, assumptions: tuple[str, ...]) -> str:
    """The sentence of `describe`; `limit` is the detection rate at a false-alarm rate of 5 %.

    >>> sentence("26 %", relation="add-remove", unit="record", trust="central", assumptions=())  # doctest: +ELLIPSIS
    'Someone who sees the release and knows all other records can tell whether one record was included ...'
    """
    seen = (
        "the release" if trust == "central" else "everything that leaves the owner of a record, the collector included,"
    )
    note = "; this rules out next to nothing" if limit == "100 %" else ""
    condition = f", provided that the following holds: {'; '.join(assumptions)}" if assumptions else ""
    return (
        f"Someone who sees {seen} and knows all other records can tell {_difference(relation, unit)} with at most "
        f"this success: with a false-alarm rate of 5 %, detection of at most {limit}{note}{condition}."
    )


def _difference(relation: str | None, unit: str) -> str:
    """What the two neighbours differ in, in plain words."""
    bare = {"record": "one record", "attribute": "one attribute of one record"}
    thing, counted = bare.get(unit, f"one {unit} with all its rows"), "records" if unit in bare else f"values of {unit}"
    included = f"whether {thing} was included"
    contents = f"which of two possible contents {thing} has"
    match relation:
        case "add-remove":
            return included
        case "substitute":
            return f"{contents} (the number of {counted} is public)"
        case _:
            return f"{included}, or {contents}, as the plan will say (the relation is still open),"


# Above these a test that finds a record out is right but for one case in millions (the least sum of both errors is 2 Phi(-5) at mu = 10
# and 2/(1 + e^20) at epsilon = 20; rho = mu^2/2).
_WEAK = (("mu", 10.0), ("epsilon", 20.0), ("rho", 50.0))


def weakness(guarantee: Any) -> str:
    """What to say of a guarantee so large that it protects nobody; nothing for any other.

    >>> from confide.guarantees import GDP, PureDP
    >>> weakness(GDP(1e9))
    'mu = 1e+09 protects nobody: whoever sees so much can tell whether a record is there; mu is of the order of 1, hardly above 10'
    >>> weakness(PureDP(1.0))
    ''
    """
    for name, most in _WEAK:
        level = getattr(guarantee, name, 0.0)
        if level > most:
            return (
                f"{name} = {level:.6g} protects nobody: whoever sees so much can tell whether a record is there; {name} is of the "
                f"order of 1, hardly above {most:g}"
            )
    return ""
