"""The executable contract: `check_method(method)` tries everything that a method promises, ours or a third party's.

It works on practice records and simulated noise, so it spends nothing. Each check is named; all run, and the failures are
reported together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confide.errors import ConfideError
from confide.guarantees import GDP, Guarantee
from confide.protocol import Method
from confide.schema import Schema
from confide.testing.checks import CHECKS, Case, ContractBroken, place_of
from confide.testing.hidden import HIDDEN
from confide.testing.practice import practice_schema
from confide.testing.side_doors import SIDE_DOORS
from confide.testing.truth import coverage

__all__ = ["Contract", "ContractBroken", "check_method", "tried"]


@dataclass(frozen=True)
class Contract:
    """What `check_method` found: (check, None or what went wrong) in the order of the checks."""

    method: str
    checks: tuple[tuple[str, str | None], ...]

    @property
    def ok(self) -> bool:
        return all(problem is None for _, problem in self.checks)

    def __str__(self) -> str:
        lines = [
            f"{'ok    ' if problem is None else 'FAILED'}  {name}" + ("" if problem is None else f": {problem}")
            for name, problem in self.checks
        ]
        return "\n".join([f"contract of {self.method}", *lines])


def check_method(
    method: Method,
    schema: Schema | None = None,
    *,
    privacy: Guarantee | None = None,
    replications: int = 80,
    raises: bool = True,
) -> Contract:
    """Run the whole contract on a method and return the list of checks; raise when one fails.

    schema: the columns to practise on; left out, every name in the method's text parameters becomes `Numeric(0.5, 2.5)`. privacy:
    what the releases may cost, default GDP(1.0) with the method's own relation. replications: first look at
    intervals, which three times as many decide where it leaves a doubt; fewer, for a slow method, find less.

    Raises `AssertionError` with every failed check, unless raises=False.

    >>> import confide as cf
    >>> cf.testing.check_method(cf.regression.SSP("y ~ a"), replications=10).ok
    True
    """
    case = Case(method, schema or practice_schema(method), privacy or GDP(1.0))
    found = []
    checks: tuple[Callable[..., None], ...] = (*CHECKS, coverage, *SIDE_DOORS, *HIDDEN)
    for check in checks:
        problem = tried(partial(coverage, replications=replications) if check is coverage else check, case)
        found.append(((check.__doc__ or "").strip().rstrip("."), problem))
    contract = Contract(f"{method.name} {method.version}", tuple(found))
    if raises and not contract.ok:
        raise ContractBroken(str(contract))
    return contract


def tried(check: Callable[[Case], None], case: Case) -> str | None:
    """What one check says of a case: None, or what went wrong."""
    try:
        check(case)
    except (
        AssertionError,
        ConfideError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
    ) as error:
        return f"{type(error).__name__}: {error}{place_of(error, case.method)}"
    return None
