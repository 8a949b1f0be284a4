"""The columns of a schema: bounds, grid, levels, the rule for missing values, and where these facts come from.

The grid under a numeric column, and the one formula that codes values on it.

Coding is a deterministic function of one record, so privacy needs only its range. Equal bits everywhere need one
formula, one IEEE operation per step, in this order:

    s = double((steps - 1)/(high - low))
    x = double(v); missing = null, NaN or +-inf  -> on_missing
    c = rint((min(max(x, low), high) - low) * s)        0 <= c <= steps - 1;  decode: low + c/s

Codes are float64 arrays that hold exact integers; -1 stands for "missing, drop the record".

`Categorical` holds columns of labels from a public list.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import SchemaError
from confide.schema.missing import code_ranges, codes_from_json, codes_to_json, missing_codes
from confide.schema.settings import (
    PUBLIC,
    Provenance,
    Shares,
    Typical,
    checked_provenance,
    is_number,
    is_unicode,
    shares_of,
    typical_of,
)

Codes = NDArray[np.float64]

# 2^22 steps keep a block of 512 rows exact in a float64 matrix product: block = 2^(53 - 2b) rows at b bits.
MAX_STEPS = 2**22
MISSING = -1.0
# Of a bound: sums of a few such numbers are floats.
_LARGEST = 1e300
#: What stands for a bound that is not declared: a release finds the range below it.
OPEN = 1e12
# Bounds that are made up lie so many widths of the typical values beyond them.
_ROOM = 5


@dataclass(frozen=True)
class Grid:
    """A bounded column on an even grid, which `Numeric` and `Integer` share. `typical` serves forecasts and touches no code."""

    low: float
    high: float
    steps: int = field(default=2**20, kw_only=True)
    on_missing: str | float = field(default="drop", kw_only=True)
    provenance: Provenance = field(default=PUBLIC, kw_only=True)
    typical: Typical | Sequence[float] | Mapping[str, Any] | None = field(default=None, kw_only=True)
    missing: Sequence[Any] | None = field(default=None, kw_only=True)

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.missing is not None:
            self._set("missing", missing_codes(self._name, self.missing))
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
    def declared(self) -> tuple[bool, bool]:
        """Whether the lower and the upper bound are declared; a range is found for one that is not."""
        return self.low != -OPEN, self.high != OPEN

    @property
    def closed(self) -> Self:
        """The column with bounds where none are declared: around its typical values, else 1 apart."""
        if all(self.declared):
            return self
        low, high = (self.low if self.declared[0] else None), (self.high if self.declared[1] else None)
        if self.spread is not None:
            room = _ROOM * (self.spread.high - self.spread.low)
            low = self.spread.low - room if low is None else low
            high = self.spread.high + room if high is None else high
        if low is None:
            low = 0.0 if high is None else high - 1
        return replace(self, low=low, high=low + 1 if high is None else high)

    def said(self, value: float) -> str:
        """A value as labels and messages have it: a number, of a column of dates the date."""
        return f"{value:g}"

    def point(self, value: Any) -> float | None:
        """The value that a constant of a formula means; None for anything but a number, in a column of dates a date."""
        return float(value) if is_number(value) else None

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
                f"{self._name}: {name} must be a finite number, got {value!r} ({type(value).__name__})",
                f"write {self._example} with the column's public bounds",
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
                f"{self._name}: steps must be a whole number from 2 to {MAX_STEPS}, got {steps!r}",
                "leave it out for 2**20, or write cf.Numeric(0, 100, steps=101)",
            )
        return int(steps)

    def _missing_rule(self, rule: Any) -> str | float:
        if isinstance(rule, str) and rule in ("drop", "midpoint"):
            return rule
        if is_number(rule) and self.low <= float(rule) <= self.high:
            return float(rule) + 0.0
        raise SchemaError(
            f"{self._name}: on_missing must be 'drop', 'midpoint' or a number from {self.low:g} to {self.high:g}, "
            f"got {rule!r}",
            'write on_missing="drop"',
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
        """Give the grid codes of values in the column's unit.

        Values are clipped to the bounds and rounded to the grid. Missing values
        follow the column's rule. No value of a numeric array raises.

        Parameters
        ----------
        values : array of float
            Numbers, of any shape.
        out : array of float64, optional
            Where to write; of the same shape, `values` itself included.

        Returns
        -------
        array of float64
            Exact integers from 0 to steps - 1; -1 marks a missing value under
            "drop".
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
        """Give the values that codes stand for, in the column's unit: low + c/s,
        at most high.

        Parameters
        ----------
        codes : array of float
            Codes.

        Returns
        -------
        array of float64
            Values; NaN where the code is -1.
        """
        c = np.asarray(codes, dtype=np.float64)
        return np.asarray(np.where(c < 0, np.nan, self.decode_into(c, np.empty(c.shape, dtype=np.float64))))

    def decode_into(self, codes: Codes, out: Codes) -> Codes:
        """`decode` without a look at missing values, into `out` (which may be `codes`): for inner loops."""
        np.divide(codes, self.scale, out=out)
        np.add(out, self.low, out=out)
        # low + c/s may round to one unit in the last place above high, where sqrt(high - x) would not be a number
        return np.minimum(out, self.high, out=out)

    def outside(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Tell where a value lies outside the bounds, so that `code` clips it.

        Parameters
        ----------
        values : array of float
            Numbers, of any shape.

        Returns
        -------
        array of bool
            Of the same shape; False where a value is missing.
        """
        x = np.asarray(values, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(((x < self.low) | (x > self.high)) & np.isfinite(x))

    def to_dict(self) -> dict[str, Any]:
        """Give the column as JSON types, with floats as `float.hex` texts and the
        double `scale` included.

        Returns
        -------
        dict
            What `from_dict` reads back; `typical` only where it was given.
        """
        rule = self.on_missing if isinstance(self.on_missing, str) else self.on_missing.hex()
        facts = {
            "kind": self.kind,
            "low": self.low.hex(),
            "high": self.high.hex(),
            "steps": self.steps,
            "scale": self.scale.hex(),
            "on_missing": rule,
            "provenance": self.provenance.to_dict(),
            **({} if self.missing is None else {"missing": codes_to_json(self.missing)}),
        }
        return facts if self.spread is None else {**facts, "typical": self.spread.to_dict()}

    def check_scale(self, data: Mapping[str, Any]) -> None:
        """`SchemaError` when a dictionary of `to_dict` holds another scale than its bounds give."""
        if data.get("scale", self.scale.hex()) != self.scale.hex():
            raise SchemaError(
                f"{self._name}: the stored scale {data['scale']!r} is not the one of its bounds, {self.scale.hex()!r}; "
                "the description is damaged, write it again with to_dict()"
            )


def works(kind: type[Grid], low: float, high: float) -> bool:
    """Whether a column has these bounds, so that a message may advise them."""
    try:
        return low < high and kind(low, high) is not None
    except SchemaError:
        return False


_EXAMPLE = 'write cf.Categorical(["north", "south"])'
# What booleans are called in text, most usual first.
_WORDS = {True: ("True", "true", "TRUE", "1"), False: ("False", "false", "FALSE", "0")}


@dataclass(frozen=True, init=False)
class Categorical:
    """A column of labels from a public list.

    The first level is the reference level of treatment coding. A label that is
    not in `levels` is missing.

    Parameters
    ----------
    levels : sequence of str
        At least two different labels. Whole numbers and booleans stand for
        their text.
    on_missing : str, default "drop"
        "drop" excludes the record; one of the levels stands for a missing
        value.
    provenance : Provenance, optional
        Where the levels come from, such as ``Provenance("public",
        "codebook")``.
    typical : mapping of str to float, optional
        About which share of the records has each level, such as ``{"N": 0.7,
        "S": 0.3}``, from public knowledge. Only forecasts use it.
    missing : list of str or number, optional
        Codes for "no answer", such as ``["-99"]``. They are missing like any
        label that is not a level, and do not count as unread. Left out: those
        of the schema.
    codes : list of str, optional
        What stands for each level in the data, such as ``["1", "2"]`` for
        ``["male", "female"]``. A cell is a level by its text or its code.

    Raises
    ------
    SchemaError
        Fewer than two levels, repeated or empty ones, or shares or codes that
        do not fit them.

    Examples
    --------
    >>> Categorical(["N", "S"]).code_labels(["S", "N", "W", None]).tolist()
    [1.0, 0.0, -1.0, -1.0]
    """

    levels: tuple[str, ...]
    on_missing: str = field(default="drop", kw_only=True)
    provenance: Provenance = field(default=PUBLIC, kw_only=True)
    typical: Any = field(default=None, kw_only=True)
    missing: Sequence[Any] | None = field(default=None, kw_only=True)
    codes: tuple[str, ...] | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "categorical"

    def __init__(
        self,
        levels: Iterable[object],
        *,
        on_missing: object = "drop",
        provenance: Provenance = PUBLIC,
        typical: Any = None,
        missing: Sequence[Any] | None = None,
        codes: Sequence[Any] | None = None,
    ) -> None:
        texts = _level_texts(levels)
        rule = on_missing if isinstance(on_missing, str) else _level_text(on_missing)
        if rule != "drop" and rule not in texts:
            raise SchemaError(
                f"Categorical: on_missing must be 'drop' or one of the levels {_listed(texts)}, got {rule!r}",
                'write on_missing="drop"',
            )
        object.__setattr__(self, "levels", texts)
        object.__setattr__(self, "on_missing", rule)
        object.__setattr__(self, "provenance", checked_provenance("Categorical", provenance))
        object.__setattr__(self, "typical", shares_of(typical, texts))
        object.__setattr__(self, "codes", None if codes is None else _level_codes(codes, texts))
        object.__setattr__(self, "missing", None if missing is None else missing_codes("Categorical", missing))
        if missing:
            self._check_missing()

    def _check_missing(self) -> None:
        numbers = np.array(sorted(self._numbers), dtype=np.float64)
        for code in self.missing or ():
            ends = code_ranges([code])
            within = bool(len(ends)) and bool(((numbers >= ends[0, 0]) & (numbers <= ends[0, 1])).any())
            if within or (isinstance(code, str) and self.index_of(code) >= 0):
                shown = code if isinstance(code, str) else f"{code[0]:g} to {code[1]:g}"
                raise SchemaError(
                    f"Categorical: {shown!r} is a code of missing values and a level of the column too",
                    "leave it out of the levels, or write missing=[...] without it; missing=[] for no codes",
                )

    @property
    def shares(self) -> Shares | None:
        """`typical`, whatever form it was given in."""
        assert self.typical is None or isinstance(self.typical, Shares)
        return self.typical

    @property
    def steps(self) -> int:
        """The number of levels; codes run from 0 to steps - 1.

        Examples
        --------
        >>> Categorical(["a", "b", "c"]).steps
        3
        """
        return len(self.levels)

    @cached_property
    def missing_code(self) -> float:
        """The code of a missing label: -1 under "drop", else the position of the
        level that stands for it.

        Examples
        --------
        >>> Categorical(["a", "b"], on_missing="b").missing_code
        1.0
        """
        return MISSING if self.on_missing == "drop" else float(self.levels.index(self.on_missing))

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each level, by its text and by its code in the data.

        Examples
        --------
        >>> Categorical(["male", "female"], codes=["1", "2"]).places
        {'male': 0, 'female': 1, '1': 0, '2': 1}
        """
        texts = (*self.levels, *(self.codes or ()))
        return {text: at % self.steps for at, text in enumerate(texts)}

    @cached_property
    def _numbers(self) -> dict[float, int]:
        """Positions of the levels that are numbers, the one written plainly ("1" before "1.0") first."""
        plain = sorted(self.places, key=lambda text: text != _plain(_number(text)))
        known = [(_number(text), self.places[text]) for text in plain]
        return {number: position for number, position in reversed(known) if number is not None}

    def index_of(self, label: object) -> int:
        """Give the position of a label among the levels.

        Text means the level of exactly that text, else the level of the same
        number. A number means the level of that number. True means "True",
        "true", "TRUE" or "1", and False likewise.

        Parameters
        ----------
        label : object
            Text, number, boolean or None.

        Returns
        -------
        int
            The position; -1 if the label is missing or not among the levels.

        Examples
        --------
        >>> column = Categorical(["0", "1"])
        >>> column.index_of(1.0), column.index_of(True), column.index_of("01"), column.index_of("x"), column.index_of(None)
        (1, 1, 1, -1, -1)
        """
        if isinstance(label, str) and label in self.places:
            return self.places[label]
        if isinstance(label, (bool, np.bool_)):
            return next((self.places[word] for word in _WORDS[bool(label)] if word in self.places), -1)
        number = _number(label)
        return -1 if number is None else self._numbers.get(number, -1)

    def code_indices(self, indices: ArrayLike, out: Codes | None = None) -> Codes:
        """Give the codes of positions among the levels.

        Parameters
        ----------
        indices : array of float
            Positions, of any shape. One below 0, too high or not whole is
            missing.
        out : array of float64, optional
            Where to write; of the same shape, `indices` itself included.

        Returns
        -------
        array of float64
            Codes; -1 marks a missing value under "drop".

        Examples
        --------
        >>> Categorical(["a", "b"]).code_indices([1, 0, -1, 7]).tolist()
        [1.0, 0.0, -1.0, -1.0]
        """
        x = np.asarray(indices, dtype=np.float64)
        codes = np.empty(x.shape, dtype=np.float64) if out is None else out
        with np.errstate(all="ignore"):
            whole = x == np.floor(x)
            # most often all are positions, which fewer steps tell
            known = None if x.size and x.min() >= 0 and x.max() < self.steps else (x >= 0) & (x < self.steps)
        np.add(x, 0.0, out=codes)  # turns -0.0 into 0.0: equal codes have equal bits
        if known is not None or not whole.all():
            np.copyto(codes, self.missing_code, where=~(whole if known is None else whole & known))
        return codes

    def code(self, values: ArrayLike, out: Codes | None = None) -> Codes:
        """Do the same as `code_indices`, because every column has a method `code`.

        Parameters
        ----------
        values : array of float
            Positions among the levels.
        out : array of float64, optional
            Where to write.

        Returns
        -------
        array of float64
            Codes.

        Examples
        --------
        >>> Categorical(["a", "b"]).code([1.0, float("nan")]).tolist()
        [1.0, -1.0]
        """
        return self.code_indices(values, out)

    def code_labels(self, labels: Iterable[object], out: Codes | None = None) -> Codes:
        """Give the codes of labels, each read as `index_of` reads it.

        Parameters
        ----------
        labels : iterable
            Labels.
        out : array of float64, optional
            Where to write.

        Returns
        -------
        array of float64
            Codes, shape (rows,).

        Examples
        --------
        >>> Categorical(["a", "b"], on_missing="a").code_labels(["b", "z"]).tolist()
        [1.0, 0.0]
        """
        return self.code_indices(self.indices(labels), out)

    def indices(self, labels: Iterable[object]) -> NDArray[np.float64]:
        """Give the positions of labels among the levels, whatever `on_missing` is.

        Parameters
        ----------
        labels : iterable
            Labels.

        Returns
        -------
        array of float64
            Positions, shape (rows,); -1 where `index_of` gives -1.

        Examples
        --------
        >>> Categorical(["a", "b"], on_missing="a").indices(["b", "z"]).tolist()
        [1.0, -1.0]
        """
        known: dict[tuple[type, object], int] = {}
        found = []
        for label in labels:
            try:
                key = (type(label), label)
                if key not in known:
                    known[key] = self.index_of(label)
                found.append(known[key])
            except TypeError:  # a list or the like cannot be a key and is no label
                found.append(-1)
        return np.array(found, dtype=np.float64)

    def decode(self, codes: ArrayLike) -> NDArray[Any]:
        """Give the labels that codes stand for.

        Parameters
        ----------
        codes : array of float
            Codes.

        Returns
        -------
        array of object
            Labels; None where the code is -1.

        Examples
        --------
        >>> Categorical(["a", "b"]).decode([1, 0, -1]).tolist()
        ['b', 'a', None]
        """
        c = np.asarray(codes, dtype=np.float64).astype(np.int64)
        return np.array([*self.levels, None], dtype=object)[np.where(c < 0, self.steps, c)]

    def to_dict(self) -> dict[str, Any]:
        """Give the column as JSON types; `typical` only where it was given.

        Returns
        -------
        dict
            What `from_dict` reads back.

        Examples
        --------
        >>> Categorical(["a", "b"]).to_dict()["levels"]
        ['a', 'b']
        """
        facts = {
            "kind": self.kind,
            "levels": list(self.levels),
            "on_missing": self.on_missing,
            "provenance": self.provenance.to_dict(),
            **({} if self.missing is None else {"missing": codes_to_json(self.missing)}),
            **({} if self.codes is None else {"codes": list(self.codes)}),
        }
        return facts if self.shares is None else {**facts, "typical": self.shares.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Categorical:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Categorical
            The column.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> Categorical.from_dict(Categorical(["a", "b"]).to_dict()).levels
        ('a', 'b')
        """
        return cls(
            data["levels"],
            on_missing=data["on_missing"],
            provenance=Provenance.from_dict(data["provenance"]),
            typical=Shares.from_dict(data["typical"]) if "typical" in data else None,
            missing=codes_from_json(data["missing"]) if "missing" in data else None,
            codes=data.get("codes"),
        )


def _number(label: object) -> float | None:
    """The finite number that a label means, or None."""
    if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, Real, Decimal)):
        return None
    if isinstance(label, str) and "_" in label:  # Python's own digit grouping, no number to anybody else
        return None
    try:
        number = float(label)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _plain(number: float | None) -> str:
    if number is None:
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def _level_text(level: object) -> str:
    if isinstance(level, str) and is_unicode(level):
        return str(level)
    if isinstance(level, (bool, np.bool_)):
        return str(bool(level))
    if isinstance(level, (int, np.integer)):
        return str(int(level))
    raise SchemaError(f"Categorical: a level must be text, a whole number or a boolean, got {level!r}", f"{_EXAMPLE}")


def _level_texts(levels: object) -> tuple[str, ...]:
    if isinstance(levels, (str, bytes, Mapping)) or not isinstance(levels, Iterable):
        raise SchemaError(f"Categorical: levels must be a list of labels, got {type(levels).__name__}", f"{_EXAMPLE}")
    texts = tuple(_level_text(level) for level in levels)
    if len(texts) < 2:
        raise SchemaError(
            f"Categorical: at least two levels are needed, got {len(texts)}",
            f"leave a column with one level out, or {_EXAMPLE}",
        )
    if len(texts) > MAX_STEPS:
        raise SchemaError(f"Categorical: at most {MAX_STEPS} levels are allowed, got {len(texts)}", f"{_EXAMPLE}")
    if "" in texts:
        raise SchemaError("Categorical: a level must not be empty text, which is a missing value", f"{_EXAMPLE}")
    if len(set(texts)) < len(texts):
        repeated = [text for text, times in Counter(texts).items() if times > 1]
        raise SchemaError(
            f"Categorical: each level must be listed once, got {_listed(repeated)} more than once", f"{_EXAMPLE}"
        )
    return texts


def _level_codes(codes: Any, levels: tuple[str, ...]) -> tuple[str, ...]:
    """The codes of levels as texts; `SchemaError` unless there is one for each level that means no other."""
    example = f"write codes={[str(at) for at in range(1, min(len(levels), 3) + 1)]}, one code for each level"
    if isinstance(codes, (str, bytes, Mapping)) or not isinstance(codes, Iterable):
        raise SchemaError(f"Categorical: codes must be a list of texts, got {type(codes).__name__}", example)
    texts = tuple(_level_text(code) for code in codes)
    if len(texts) != len(levels) or "" in texts:
        raise SchemaError(f"Categorical: {len(levels)} levels need as many codes, got {len(texts)}", example)
    means: dict[Any, int] = {}
    for at, text in [*enumerate(levels), *enumerate(texts)]:
        for meaning in {text, _number(text)} - {None}:
            # levels alone may be one number, as "1" and "01": the one that is written plainly counts
            if means.setdefault(meaning, at) != at and (meaning in texts or text in texts):
                raise SchemaError(f"Categorical: the code {text!r} means another level too", example)
    return texts


def _listed(texts: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(text) for text in texts[:most])
    return shown if len(texts) <= most else f"{shown}, ... ({len(texts)} in all)"


# Above 2^53 neighboring integers are no longer all doubles.
_EXACT = 2**53


@dataclass(frozen=True)
class Numeric(Grid):
    """A column of real numbers with public bounds.

    Values are coded on an even grid from `low` to `high`. Values outside the
    bounds are clipped to the nearest bound. A bound that is not given is
    not declared: methods that add numbers up then find the range privately, for a
    tenth of the cost of a release.

    Parameters
    ----------
    low, high : float, optional
        Public bounds, low below high, both at most 1e300 in size. Without
        them values are assumed to be within 1e12 in size.
    steps : int, default 2**20
        Number of grid points, from 2 to 2**22.
    on_missing : str or float, default "drop"
        "drop" excludes the record; "midpoint" or a number within the bounds
        stands for a missing value.
    provenance : Provenance, optional
        Where the bounds come from, such as ``Provenance("public",
        "questionnaire")``.
    typical : (float, float) or Typical, optional
        Where about 95% of the values lie, such as ``(5e3, 9e4)``, from public
        knowledge. It makes forecasts sharper and touches no record.
    missing : list of str, number or mapping, optional
        Codes for "no answer", such as ``["-99", {"from": -9, "to": -1}]``. A
        cell with one is missing, whatever the bounds are. Left out: those of the
        schema.

    Raises
    ------
    SchemaError
        Bounds, steps or the missing value are not allowed, or `typical` is not
        within the bounds.

    Examples
    --------
    >>> column = Numeric(0, 1, steps=11, on_missing=0.2)
    >>> column.code([0.31, -4, 7, float("nan")]).tolist(), column.decode([10]).tolist(), column.scale
    ([3.0, 0.0, 10.0, 2.0], [1.0], 10.0)
    >>> Numeric(low=0).declared
    (True, False)
    """

    low: float = -OPEN
    high: float = OPEN

    kind: ClassVar[str] = "numeric"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Numeric:
        """Read what `to_dict` wrote, to the bit.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Numeric
            The column.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> column = Numeric(0.1, 0.7, on_missing=0.3)
        >>> Numeric.from_dict(column.to_dict()) == column
        True
        """
        low, high, facts = grid_facts(data)
        column = cls(low, high, steps=data["steps"], **facts)
        column.check_scale(data)
        return column


@dataclass(frozen=True)
class Integer(Grid):
    """A column of whole numbers with public bounds.

    Its grid is the integers from `low` to `high`, both included. Values that
    are not whole are rounded, a half to the even code, counted from `low`.

    Parameters
    ----------
    low, high : int
        Public bounds, for at most 2**22 different values.
    on_missing : str or int, default "drop"
        "drop" excludes the record; "midpoint" or a number within the bounds
        stands for a missing value.
    provenance : Provenance, optional
        Where the bounds come from, such as ``Provenance("public",
        "questionnaire")``.
    typical : (float, float) or Typical, optional
        Where about 95% of the values lie, from public knowledge. It makes
        forecasts sharper and touches no record.
    missing : list of str, number or mapping, optional
        Codes for "no answer", such as ``["-99", {"from": -9, "to": -1}]``. A
        cell with one is missing, whatever the bounds are. Left out: those of the
        schema.

    Raises
    ------
    SchemaError
        The bounds are not whole or too far apart, or `typical` is not within
        them.

    Examples
    --------
    >>> Integer(0, 5).code([2.0, 2.7, 9, float("inf")]).tolist(), Integer(0, 5).steps
    ([2.0, 3.0, 5.0, -1.0], 6)
    """

    steps: int = field(default=0, init=False)

    kind: ClassVar[str] = "integer"

    def _checked_steps(self) -> int:
        for name, bound in (("low", self.low), ("high", self.high)):
            if not bound.is_integer() or abs(bound) > _EXACT:
                real = f", or cf.Numeric({self.low!r}, {self.high!r}) for real numbers"
                raise SchemaError(
                    f"Integer: {name} must be a whole number of at most 2^53 in size, got {bound!r}; write {self._example}"
                    + (real if works(Numeric, self.low, self.high) else "")
                )
        steps = int(self.high) - int(self.low) + 1
        if steps > MAX_STEPS:
            raise SchemaError(
                f"Integer: high - low + 1 must be at most {MAX_STEPS}, got low={self.low:.0f}, high={self.high:.0f}",
                f"write cf.Numeric({self.low:.0f}, {self.high:.0f}), whose grid is coarser than the integers",
            )
        return steps

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Integer:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Integer
            The column.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> Integer.from_dict(Integer(0, 5).to_dict()) == Integer(0, 5)
        True
        """
        low, high, facts = grid_facts(data)
        column = cls(low, high, **facts)
        column.check_scale(data)
        return column


Column: TypeAlias = Numeric | Integer | Categorical


def grid_facts(data: Mapping[str, Any]) -> tuple[float, float, dict[str, Any]]:
    """low, high, and what columns on a grid take by name."""
    rule = data["on_missing"]
    try:
        low, high = float.fromhex(data["low"]), float.fromhex(data["high"])
        rule = rule if rule in ("drop", "midpoint") else float.fromhex(rule)
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(
            "low, high and a constant for on_missing must be floats in hexadecimal", "write the column with to_dict()"
        ) from None
    typical = Typical.from_dict(data["typical"]) if "typical" in data else None
    missing = codes_from_json(data["missing"]) if "missing" in data else None
    where = Provenance.from_dict(data["provenance"])
    return low, high, {"on_missing": rule, "provenance": where, "typical": typical, "missing": missing}
