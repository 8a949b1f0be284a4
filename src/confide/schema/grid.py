"""The grid under a numeric column, and the one formula that codes values on it.

Coding is a deterministic function of one record, so privacy needs only its range. Equal bits everywhere need one
formula, one IEEE operation per step, in this order:

    s = double((steps - 1)/(high - low))
    x = double(v); missing = null, NaN or +-inf  -> on_missing
    c = rint((min(max(x, low), high) - low) * s)        0 <= c <= steps - 1;  decode: low + c/s

Codes are float64 arrays that hold exact integers; -1 stands for "missing, drop the record".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import SchemaError
from confide.schema.provenance import PUBLIC, Provenance, checked_provenance
from confide.schema.settings import is_number
from confide.schema.typical import Typical, typical_of

__all__ = ["MAX_STEPS", "MISSING", "Codes", "Grid", "works"]

Codes = NDArray[np.float64]

# 2^22 steps keep a block of 512 rows exact in a float64 matrix product: block = 2^(53 - 2b) rows at b bits.
MAX_STEPS = 2**22
MISSING = -1.0
# Of a bound: sums of a few such numbers are floats.
_LARGEST = 1e300


@dataclass(frozen=True)
class Grid:
    """A bounded column on an even grid: what `Numeric` and `Integer` share. `typical` serves forecasts and touches no code."""

    low: float
    high: float
    steps: int = field(default=2**20, kw_only=True)
    on_missing: str | float = field(default="drop", kw_only=True)
    provenance: Provenance = field(default=PUBLIC, kw_only=True)
    typical: Typical | Sequence[float] | Mapping[str, Any] | None = field(default=None, kw_only=True)

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            self._set(name, self._bound(name, getattr(self, name)))
        if not self.low < self.high:
            better = (
                f"cf.{self._name}({self.high:g}, {self.low:g})"
                if works(type(self), self.high, self.low)
                else self._example
            )
            constant = (
                "; a column of one value tells nothing: leave it out of the schema, or"
                if self.low == self.high
                else ";"
            )
            raise SchemaError(
                f"{self._name}: low must be below high, got low={self.low:g}, high={self.high:g}{constant} write {better}"
            )
        self._set("steps", self._checked_steps())
        if not self.scale < math.inf:
            raise SchemaError(
                f"{self._name}: (steps - 1)/(high - low) must be an ordinary double, got low={self.low!r}, "
                f"high={self.high!r}, steps={self.steps}; change the unit of the column, as in {self._example}"
            )
        self._set("on_missing", self._missing_rule(self.on_missing))
        checked_provenance(self._name, self.provenance)
        self._set("typical", typical_of(self._name, self.typical, self.low, self.high, self._typical_example))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def _example(self) -> str:
        return f"cf.{self._name}(0, 100)"

    @property
    def spread(self) -> Typical | None:
        """`typical`, whatever form it was given in."""
        assert self.typical is None or isinstance(self.typical, Typical)
        return self.typical

    @property
    def _typical_example(self) -> str:
        """A call that works: the middle half of the bounds."""
        quarter = (self.high - self.low) / 4
        return f"write cf.{self._name}({self.low:g}, {self.high:g}, typical=({self.low + quarter:g}, {self.high - quarter:g}))"

    def _bound(self, name: str, value: Any) -> float:
        if not is_number(value):
            raise SchemaError(
                f"{self._name}: {name} must be a finite number, got {value!r} ({type(value).__name__}); "
                f"write {self._example} with the column's public bounds"
            )
        if abs(value) > _LARGEST:
            raise SchemaError(
                f"{self._name}: {name} must be at most {_LARGEST:g} in size, got {value!r}; change the unit of the column, as in "
                f"{self._example}"
            )
        return float(value) + 0.0  # + 0.0 turns -0.0 into 0.0

    def _checked_steps(self) -> int:
        steps = self.steps
        whole = isinstance(steps, (int, np.integer)) and not isinstance(steps, bool)
        if not whole or not 2 <= steps <= MAX_STEPS:
            raise SchemaError(
                f"{self._name}: steps must be a whole number from 2 to {MAX_STEPS}, got {steps!r}; "
                "leave it out for 1048576, or write cf.Numeric(0, 100, steps=101)"
            )
        return int(steps)

    def _missing_rule(self, rule: Any) -> str | float:
        if isinstance(rule, str) and rule in ("drop", "midpoint"):
            return rule
        if is_number(rule) and self.low <= float(rule) <= self.high:
            return float(rule) + 0.0
        raise SchemaError(
            f"{self._name}: on_missing must be 'drop', 'midpoint' or a number from {self.low:g} to {self.high:g}, "
            f'got {rule!r}; write on_missing="drop"'
        )

    @cached_property
    def scale(self) -> float:
        """Grid steps per unit of the column: the double (steps - 1)/(high - low)."""
        return (self.steps - 1) / (self.high - self.low)

    @cached_property
    def missing_code(self) -> float:
        """The code of a missing value: -1 under "drop", else the code of the constant or of the midpoint."""
        if self.on_missing == "drop":
            return MISSING
        value = self.low + (self.high - self.low) / 2 if self.on_missing == "midpoint" else self.on_missing
        return float(self._on_grid(np.array([value], dtype=np.float64), None)[0])

    def code(self, values: ArrayLike, out: Codes | None = None) -> Codes:
        """Grid codes of values in the column's unit: clipped to the bounds, rounded to the grid, missing by the rule.

        `values` is an array of numbers of any shape; `out` may be a float64 array of that shape, `values` itself
        included. Returns float64 codes, exact integers from 0 to steps - 1; -1 marks a missing value under "drop".
        Never raises on the values of a numeric array.
        """
        x = np.asarray(values, dtype=np.float64)
        known = np.isfinite(x)
        codes = self._on_grid(x, out)
        if not known.all():
            np.copyto(codes, self.missing_code, where=~known)
        return codes

    def _on_grid(self, x: Codes, out: Codes | None) -> Codes:
        # No last clamp to [0, steps - 1]: it could never act. Rounding to nearest is monotone, so for x in [low, high],
        # 0 <= y = fl(x - low) <= W = fl(high - low); s = fl((steps - 1)/W) is normal and finite (checked above), hence
        # s = ((steps - 1)/W)(1 + d), |d| <= 2^-53, and fl(y s) <= fl(W s) <= (steps - 1)(1 + 2^-53)^2 < steps - 1 + 1/2
        # as steps <= 2^22. So rint gives at most steps - 1, and at least 0 because y >= 0 and s > 0.
        # x + (0.0 - low) is x - low to the bit, but turns -0.0 - 0.0 into +0.0, so that equal codes have equal bits.
        codes = np.empty(x.shape, dtype=np.float64) if out is None else out
        with np.errstate(all="ignore"):
            np.clip(x, self.low, self.high, out=codes)
            np.add(codes, 0.0 - self.low, out=codes)
            np.multiply(codes, self.scale, out=codes)
            np.rint(codes, out=codes)
        return codes

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """The values that codes stand for, in the column's unit: low + c/s, at most high; NaN where the code is -1."""
        c = np.asarray(codes, dtype=np.float64)
        return np.asarray(np.where(c < 0, np.nan, self.decode_into(c, np.empty(c.shape, dtype=np.float64))))

    def decode_into(self, codes: Codes, out: Codes) -> Codes:
        """`decode` without a look at missing values, into `out` (which may be `codes`): for inner loops."""
        np.divide(codes, self.scale, out=out)
        np.add(out, self.low, out=out)
        # low + c/s may round to one unit in the last place above high, where sqrt(high - x) would not be a number
        return np.minimum(out, self.high, out=out)

    def outside(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Where a value that is not missing lies outside the bounds, so that `code` clips it: same shape, boolean."""
        x = np.asarray(values, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(((x < self.low) | (x > self.high)) & np.isfinite(x))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form with floats as `float.hex`, the double `scale` included; `typical` only where it was given."""
        rule = self.on_missing if isinstance(self.on_missing, str) else self.on_missing.hex()
        facts = {
            "kind": self.kind,
            "low": self.low.hex(),
            "high": self.high.hex(),
            "steps": self.steps,
            "scale": self.scale.hex(),
            "on_missing": rule,
            "provenance": self.provenance.to_dict(),
        }
        return facts if self.spread is None else {**facts, "typical": self.spread.to_dict()}

    def check_scale(self, data: Mapping[str, Any]) -> None:
        """`SchemaError` when a dictionary of `to_dict` holds another scale than its bounds give."""
        if data.get("scale", self.scale.hex()) != self.scale.hex():
            raise SchemaError(
                f"{self._name}: the stored scale {data['scale']!r} is not the one of its bounds, {self.scale.hex()!r}; "
                "the description is damaged, write it anew with to_dict()"
            )


def works(kind: type[Grid], low: float, high: float) -> bool:
    """Whether a column has these bounds, so that a message may advise them."""
    try:
        return low < high and kind(low, high) is not None
    except SchemaError:
        return False
