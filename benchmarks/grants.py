"""How many equal releases typical ledgers grant, from the mathematics alone: no records, no noise, no file.

A ledger of (epsilon, delta) is counted twice: as the pair that it opens as, and as the Gaussian state that it may become. LEAST is what
basic composition, the GDP statement of a release and the remainder of coarser curves add up to: each cell must grant that or more.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from confide.errors import NoConversion
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.curves import objective
from confide.guarantees.objective_perturbation import logistic_sd
from confide.guarantees.remainder import converted, remaining, stays

# curvature over ridge of a record at the default ridge of logistic regression for epsilon = 1
_RATIO = 1.0
_REQUEST = ApproxDP(1.0, 1e-6)

STATEMENTS: dict[str, Guarantee] = {
    "pure .1": PureDP(0.1),
    "pure .5": PureDP(0.5),
    "pure 1": PureDP(1.0),
    "(1,1e-6)": _REQUEST,
    "(1,1e-7)": ApproxDP(1.0, 1e-7),
    "objective (1,1e-6)": TradeOff(objective(1 / logistic_sd(1.0, 1e-6, 1 / _RATIO), _RATIO)),
    "mu .24": GDP(0.24),
    "mu .5": GDP(0.5),
    "mu 1": GDP(1.0),
}
LEAST: dict[ApproxDP | GDP, tuple[int, ...]] = {
    ApproxDP(1.0, 1e-6): (10, 2, 1, 1, 1, 1, 0, 0, 0),
    ApproxDP(3.0, 1e-6): (40, 6, 3, 1, 3, 1, 7, 1, 0),
    ApproxDP(4.0, 1e-5): (84, 8, 4, 4, 4, 4, 14, 3, 0),
    ApproxDP(8.0, 1e-6): (232, 16, 8, 1, 8, 5, 40, 9, 2),
    ApproxDP(8.0, 1e-5): (275, 16, 8, 8, 8, 8, 48, 11, 2),
    GDP(1.0): (98, 3, 0, 0, 0, 0, 17, 4, 1),
    GDP(2.0): (398, 15, 3, 0, 0, 0, 69, 16, 4),
    GDP(2.0, 1e-6): (398, 15, 3, 1, 3, 7, 69, 16, 4),
}

_State = tuple[Fraction, Fraction]
_MOST = 100_000


def in_gaussian_state(state: _State, statement: Guarantee) -> int:
    """How many releases a state (r^2, leak) grants."""

    def step(left: _State) -> _State:
        after = remaining(statement, left[0])
        return after.r2, left[1] - after.leak

    return _counted(state, step)


def in_pair(state: _State, statement: Guarantee) -> int:
    """How many releases a state (epsilon, delta) grants, each charged by what was asked for, or by a point of its curve."""

    def step(left: _State) -> _State:
        point = stays(statement, *left, _REQUEST)
        return left[0] - point.epsilon, left[1] - point.delta

    return _counted(state, step)


def _counted(state: _State, step: Callable[[_State], _State]) -> int:
    for count in range(_MOST):
        if state[0] <= 0:
            return count
        try:
            state = step(state)
        except NoConversion:
            return count
        if min(state) < 0:
            return count
    raise RuntimeError(f"more than {_MOST} releases are granted")


def _alone(budget: ApproxDP | GDP, statement: Guarantee) -> bool:
    """A release that is alone in its ledger needs no units: its numbers are compared with the budget's."""
    # the objective of the table states the (1, 1e-6) that it was calibrated to as well
    own: Guarantee = _REQUEST if isinstance(statement, TradeOff) else statement
    if isinstance(budget, GDP):
        own = own.to_gdp()
    match budget, own:
        case (ApproxDP(most, leak), PureDP(size)) | (GDP(most, leak), GDP(size, 0.0)):
            return size <= most
        case (ApproxDP(most, leak), ApproxDP(size, delta)) | (GDP(most, leak), GDP(size, delta)):
            return size <= most and delta <= leak
    return False


def grants(budget: ApproxDP | GDP, statement: Guarantee) -> tuple[int | None, int]:
    """(as a pair, as a Gaussian state); a ledger of GDP is no pair."""
    least = int(_alone(budget, statement))
    if isinstance(budget, GDP):
        return None, max(least, in_gaussian_state((Fraction(budget.mu) ** 2, Fraction(budget.delta)), statement))
    pair = Fraction(budget.epsilon), Fraction(budget.delta)
    state = converted(*pair)
    return max(least, in_pair(pair, statement)), in_gaussian_state((state.r2, state.leak), statement)


def run() -> list[dict[str, Any]]:
    """The table, one row a cell; printed with the better state: S stays in the pair, G is Gaussian."""
    rows: list[dict[str, Any]] = []
    print("ledger".ljust(34) + "".join(name.rjust(20) for name in STATEMENTS))
    for budget, known in LEAST.items():
        line = str(budget).replace(", relation open", "").ljust(34)
        for (name, statement), least in zip(STATEMENTS.items(), known, strict=True):
            pair, gaussian = grants(budget, statement)
            best = max(gaussian, pair or 0)
            line += f"{best} {'S' if pair is not None and pair >= gaussian else 'G'}".rjust(20)
            rows.append(
                {
                    "check": f"{budget} and {name}",
                    "pair": pair,
                    "gaussian": gaussian,
                    "least": least,
                    "passed": best >= least,
                }
            )
        print(line, flush=True)
    return rows
