"""What a protected table says of itself: which columns carry how much noise, which none, and what that promises.

It travels inside the file: as metadata of a Parquet file, as the first line of a CSV file. Whoever analyses needs nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from confide.errors import PlanError, ReleaseError
from confide.guarantees import TradeOff
from confide.guarantees.curves import Curve, levels

__all__ = ["DIGEST", "KEY", "Noised", "Protection"]

#: The key of a Parquet file's metadata, and the start of a CSV file's first line.
KEY = "confide.local"
#: Of a frame that was read from a file: the file's SHA-256, which the ledger's receipt names.
DIGEST = "confide.local.sha256"
FORMAT = 1


@dataclass(frozen=True)
class Noised:
    """One protected column: its public bounds and grid, and the standard deviation of its noise in grid steps, exactly.

    >>> age = Noised(0.0, 100.0, 101, Fraction(50))
    >>> age.step, age.sd
    (1.0, 50.0)
    """

    low: float
    high: float
    steps: int
    lam: Fraction

    @property
    def step(self) -> float:
        """One grid step, in units of the column."""
        return (self.high - self.low) / (self.steps - 1)

    @property
    def sd(self) -> float:
        """The standard deviation of the noise, in units of the column."""
        return float(self.lam) * self.step


@dataclass(frozen=True)
class Protection:
    """The protection of one table; frozen for a stream of records.

    columns: the protected ones by name; public: the columns published as they are; zeta: the probability that a row goes without noise;
    stream and version: whose records, and which of their publications; simulated: a seed made the noise, which protects nobody.

    >>> age = Noised(0.0, 100.0, 101, Fraction(50))
    >>> told = Protection({"age": age}, public=("sex",), zeta=0.0, stream="survey", version=1)
    >>> print(told.guarantee("attribute"))
    TradeOff(laplace(2.8284271247461903), substitute, unit=attribute, local)
    >>> Protection.from_json(told.to_json()) == told
    True
    """

    columns: Mapping[str, Noised]
    public: tuple[str, ...] = ()
    zeta: float = 0.0
    stream: str = "records"
    version: int = 1
    simulated: bool = False

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """The exact trade-off function when one attribute of a row is replaced, and when all its protected columns are."""
        return levels(
            [float(one.steps - 1) for one in self.columns.values()],
            [float(one.lam) for one in self.columns.values()],
            zeta=self.zeta,
        )

    def guarantee(self, level: str) -> TradeOff:
        """The statement for one level, "attribute" or "record": about the protected columns, given everything in the public ones."""
        told = () if not self.public else (f"about the protected columns alone, given {', '.join(self.public)}",)
        return TradeOff(self.curves[level], relation="substitute", unit=level, trust="local", assumptions=told)

    def to_json(self) -> str:
        """One line of JSON, numbers to the bit."""
        return json.dumps(
            {
                "format": FORMAT,
                "stream": self.stream,
                "version": self.version,
                "zeta": float(self.zeta).hex(),
                "public": list(self.public),
                "simulated": self.simulated,
                "columns": {
                    name: {
                        "low": float(one.low).hex(),
                        "high": float(one.high).hex(),
                        "steps": one.steps,
                        "lam": str(one.lam),
                    }
                    for name, one in self.columns.items()
                },
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Raises `ReleaseError` for anything that `to_json` did not write: a correction with wrong numbers is worse than none."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ReleaseError(
                    f"the table was protected in format {data['format']!r}, and this confide reads {FORMAT}; install the one that wrote it"
                )
            columns = {
                str(name): Noised(
                    float.fromhex(one["low"]), float.fromhex(one["high"]), int(one["steps"]), Fraction(one["lam"])
                )
                for name, one in data["columns"].items()
            }
            made = cls(
                columns,
                tuple(str(name) for name in data["public"]),
                float.fromhex(data["zeta"]),
                str(data["stream"]),
                int(data["version"]),
                bool(data["simulated"]),
            )
        except ReleaseError:
            raise
        except Exception:
            raise ReleaseError(_UNREADABLE) from None
        if (
            not columns
            or not 0 <= made.zeta < 1
            or any(one.lam <= 0 or not one.low < one.high or one.steps < 2 for one in columns.values())
        ):
            raise ReleaseError(_UNREADABLE)
        return made

    def column(self, name: str) -> Noised | None:
        """The noise of a column, None for one that was published as it is; `PlanError` for one that the table does not have."""
        if name in self.columns:
            return self.columns[name]
        if name in self.public:
            return None
        raise PlanError(
            f"the protected table has no column {name!r}; it has {', '.join([*self.columns, *self.public])}"
        )


_UNREADABLE = (
    "what the file says of its protection cannot be read, and nothing can be corrected without it; "
    "ask for the file as `confide protect` wrote it"
)
