"""What eight typical ledgers grant, equal releases one after the other, by the ledger's own decision.

Of an (epsilon, delta) budget the better of staying a pair (S) and of converting (G); releases that are not Gaussian by what remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.curves import objective
from confide.guarantees.mechanisms.objective_perturbation import logistic_sd
from confide.ledger.decision import count_affordable
from confide.ledger.ledger import opened_account

_ASKED = ApproxDP(1.0, 1e-6)

#: What each release states, by the head of its column. The tilted objective of logistic regression at its default ridge states
#: the pair that was asked for and its own curve.
RELEASES: dict[str, tuple[Guarantee, ...]] = {
    "pure .1": (PureDP(0.1),),
    "pure .5": (PureDP(0.5),),
    "pure 1": (PureDP(1.0),),
    "(1,1e-6)": (_ASKED,),
    "(1,1e-7)": (ApproxDP(1.0, 1e-7),),
    "objective": (_ASKED, TradeOff(objective(1 / logistic_sd(1.0, 1e-6, 1.0), 1.0))),
    "mu .24": (GDP(0.24),),
    "mu .5": (GDP(0.5),),
    "mu 1": (GDP(1.0),),
}

#: The ledgers, each with what it grants in every column.
LEDGERS: dict[Guarantee, tuple[int, ...]] = {
    ApproxDP(1.0, 1e-6): (10, 2, 1, 1, 1, 1, 0, 0, 0),
    ApproxDP(3.0, 1e-6): (40, 6, 3, 1, 3, 5, 7, 1, 0),
    ApproxDP(4.0, 1e-5): (84, 8, 4, 4, 4, 11, 14, 3, 0),
    ApproxDP(8.0, 1e-6): (232, 16, 8, 1, 8, 31, 40, 9, 2),
    ApproxDP(8.0, 1e-5): (275, 16, 8, 8, 8, 37, 48, 11, 2),
    GDP(1.0): (98, 3, 0, 0, 0, 0, 17, 4, 1),
    GDP(2.0): (398, 15, 3, 0, 0, 0, 69, 16, 4),
    GDP(2.0, 1e-6): (398, 15, 3, 1, 3, 54, 69, 16, 4),
}


@dataclass(frozen=True)
class Cell:
    """What a ledger grants of a release: as it opens, and converted where it can be."""

    stays: int
    converted: int

    @property
    def best(self) -> int:
        return max(self.stays, self.converted)

    def __str__(self) -> str:
        sign = "" if self.stays == self.converted else " S" if self.stays > self.converted else " G"
        return f"{self.best}{sign}"


def cell(budget: Guarantee, release: str) -> Cell:
    """One cell of the table."""
    statements = RELEASES[release]
    now = opened_account("bench", budget, None, 1, None)
    stays = count_affordable(now, *statements)
    return Cell(stays, count_affordable(now.converted(), *statements) if isinstance(budget, ApproxDP) else stays)


def table() -> dict[Guarantee, dict[str, Cell]]:
    """All cells."""
    return {budget: {release: cell(budget, release) for release in RELEASES} for budget in LEDGERS}


def run() -> list[dict[str, Any]]:
    """Print the table; a row a ledger, which passes where no cell differs from what was known."""
    print("what equal releases typical ledgers grant: S as a pair, G converted")
    print(" " * 22 + "".join(f"{name:>12}" for name in RELEASES), flush=True)
    rows = []
    for budget, known in LEDGERS.items():
        cells = {release: cell(budget, release) for release in RELEASES}
        print(f"{_name(budget):<22}" + "".join(f"{found!s:>12}" for found in cells.values()), flush=True)
        rows.append(
            {
                "check": f"grants of a ledger of {_name(budget)}",
                "passed": tuple(found.best for found in cells.values()) == known,
                "grants": {release: str(found) for release, found in cells.items()},
            }
        )
    return rows


def _name(budget: Guarantee) -> str:
    return str(budget).replace(", relation open", "")
