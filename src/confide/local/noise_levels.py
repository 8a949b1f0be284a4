"""How much noise a protected column needs: from a guarantee, or as a share of its width; public facts only.

What a table of protected rows states: which columns carry how much noise, which none, and the guarantee.

The statement is inside the file: in the metadata of a Parquet file, in the first line of a CSV file. An analyst needs nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, expm1, floor, log1p, sqrt
from typing import Self

from confide.errors import NoConversion, PlanError, PrivacyError, ReleaseError
from confide.guarantees import ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.curves import Curve, approx_dp, calibrate_symmetric_laplace, levels
from confide.guarantees.curves.composed import composed
from confide.schema import Categorical, Schema

#: The key of a Parquet file's metadata, and the start of a CSV file's first line.
KEY = "confide.local"
#: Of a frame that was read from a file: the file's SHA-256, which the ledger's receipt names.
DIGEST = "confide.local.sha256"
#: What a file says; a file of another format is refused.
FORMAT = 1


@dataclass(frozen=True)
class Noised:
    """One protected numeric column: its public bounds, its grid and its noise.

    Parameters
    ----------
    low : float
        Lower public bound.
    high : float
        Upper public bound.
    steps : int
        Number of grid points from `low` to `high`.
    lam : Fraction
        SD of the noise in grid steps, exactly.

    Examples
    --------
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
        """The SD of the noise, in units of the column."""
        return float(self.lam) * self.step


@dataclass(frozen=True)
class ProtectedColumn:
    """One protected column of levels, by randomized response.

    With probability `keep` a record's level is told, otherwise one of all
    levels at random.

    Parameters
    ----------
    levels : tuple of str
        The levels.
    keep : Fraction
        Probability of a true answer.

    Notes
    -----
    Guarantee: epsilon-DP for replacing the level. Each of k levels is told with
    probabilities whose ratio for two records is at most 1 + k keep / (1 - keep)
    = e^epsilon.

    References
    ----------
    Warner 1965; Kairouz, Oh, Viswanath 2015 (its trade-off function is the
    worst).

    Examples
    --------
    >>> sex = ProtectedColumn.of(("f", "m"), 1.0)
    >>> round(float(sex.keep), 4), round(sex.epsilon, 6)
    (0.4621, 1.0)
    """

    levels: tuple[str, ...]
    keep: Fraction

    @classmethod
    def of(cls, levels: tuple[str, ...], epsilon: float) -> Self:
        """The column with the largest `keep` that epsilon allows, rounded down.

        Parameters
        ----------
        levels : tuple of str
            The levels.
        epsilon : float
            Epsilon for replacing the level.

        Returns
        -------
        ProtectedColumn
            The column.
        """
        keep = expm1(epsilon) / (expm1(epsilon) + len(levels))
        return cls(levels, Fraction(floor(keep * (1 - 1e-9) * 2**40), 2**40))

    @property
    def epsilon(self) -> float:
        """Epsilon for replacing the level, rounded up."""
        return log1p(float(len(self.levels) * self.keep / (1 - self.keep))) * (1 + 1e-12)


@dataclass(frozen=True)
class Protection:
    """The protection of one table, stated in its file.

    It is fixed for a stream of records.

    Parameters
    ----------
    columns : mapping of str to Noised
        Protected numeric columns.
    public : tuple of str, default ()
        Columns that are published without protection.
    zeta : float, default 0.0
        Probability that a row's numbers are published without noise.
    stream : str, default "records"
        Name of the records.
    version : int, default 1
        Number of this publication of the stream.
    simulated : bool, default False
        Whether the noise is simulated and protects no one.
    levels : mapping of str to ProtectedColumn, optional
        Protected columns of levels.
    order : mapping of str to tuple of str, optional
        Declared levels of the public columns that hold labels. The first one is
        the reference level.

    Notes
    -----
    Guarantee: a trade-off function for one attribute or for all protected
    columns of a record, under substitution, in the local model (`guarantee`).

    Examples
    --------
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
    levels: Mapping[str, ProtectedColumn] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def protected(self) -> tuple[str, ...]:
        """All protected columns: numbers, then levels."""
        return (*self.columns, *self.levels)

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """The exact trade-off function when one attribute of a row is replaced, and when all its protected columns are."""
        told = [approx_dp(one.epsilon) for one in self.levels.values()]
        if not self.columns:
            return {
                "attribute": max(told, key=lambda one: float(one.delta(0.0))),
                "record": composed([(c, 1) for c in told]),
            }
        found = levels(
            [float(one.steps - 1) for one in self.columns.values()],
            [float(one.lam) for one in self.columns.values()],
            zeta=self.zeta,
        )
        if not told:
            return found
        # one attribute is a number or has levels: both curves at once are a lower bound of either
        worst = max(told, key=lambda one: float(one.delta(0.0)))
        return {
            "attribute": composed([(found["attribute"], 1), (worst, 1)]),
            "record": composed([(found["record"], 1), *((one, 1) for one in told)]),
        }

    def guarantee(self, level: str) -> TradeOff:
        """The guarantee for the protected columns, given everything in the public
        ones.

        Parameters
        ----------
        level : {"attribute", "record"}
            Whether one attribute or all protected columns of a row are
            replaced.

        Returns
        -------
        TradeOff
            The exact trade-off function with its relation, unit and trust.
        """
        told = () if not self.public else (f"about the protected columns alone, given {', '.join(self.public)}",)
        return TradeOff(self.curves[level], relation="substitute", unit=level, trust="local", assumptions=told)

    def to_json(self) -> str:
        """One line of JSON, with numbers to the last bit."""
        more = {} if not self.levels else {"levels": {n: [list(o.levels), str(o.keep)] for n, o in self.levels.items()}}
        more |= {} if not self.order else {"order": {name: list(own) for name, own in self.order.items()}}
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
                **more,
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read the JSON of `to_json`.

        Parameters
        ----------
        text : str or bytes
            The JSON.

        Returns
        -------
        Protection
            The protection.

        Raises
        ------
        ReleaseError
            `to_json` did not write the text. A correction with wrong numbers is
            worse than none.
        """
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ReleaseError(
                    f"the table was protected in format {data['format']!r}, and this confide reads {FORMAT}",
                    "install the one that wrote it",
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
                {
                    str(name): ProtectedColumn(tuple(str(one) for one in own), Fraction(keep))
                    for name, (own, keep) in data.get("levels", {}).items()
                },
                {str(name): tuple(str(one) for one in own) for name, own in data.get("order", {}).items()},
            )
        except ReleaseError:
            raise
        except Exception:
            raise ReleaseError(_UNREADABLE) from None
        if (
            not made.protected
            or any(not 0 < one.keep < 1 or len(one.levels) < 2 for one in made.levels.values())
            or not 0 <= made.zeta < 1
            or any(one.lam <= 0 or not one.low < one.high or one.steps < 2 for one in columns.values())
        ):
            raise ReleaseError(_UNREADABLE)
        return made

    def column(self, name: str) -> Noised | None:
        """The noise of a column; None for a column published without protection.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Noised or None
            The noise.

        Raises
        ------
        PlanError
            The table has no such column.
        """
        if name in self.columns:
            return self.columns[name]
        if name in self.public:
            return None
        if name in self.levels:
            raise PlanError(
                f"{name!r} has levels, which went through randomized response, and no numbers",
                f"write cf.local.shares(data, {name!r}) for "
                f"their shares, or let them be terms: cf.local.fit(data, 'y ~ {name}')",
            )
        raise PlanError(
            f"the protected rows have no column {name!r}; they have {', '.join([*self.protected, *self.public])}"
        )


_UNREADABLE = (
    "what the file says of its protection cannot be read, and nothing can be corrected without it; "
    "ask for the file as `confide local protect` wrote it"
)


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

    privacy: ApproxDP, or PureDP for a single column, at `level`; or noise: standard deviation over width, instead of it.
    Raises `PlanError` and `PrivacyError` from the schema and the request alone.
    """
    if (privacy is None) == (noise is None):
        raise PlanError(
            "give a guarantee, or the noise of each column as a share of its width",
            "write privacy=cf.ApproxDP(1.0, 1e-3) or noise=1.0",
        )
    if not names:
        raise PlanError(
            f"name the columns to protect, of {', '.join(schema.names)}", f"write columns=[{schema.names[0]!r}]"
        )
    if len(set(names)) < len(names):
        raise PlanError(f"each column is named once, got {', '.join(names)}")
    share = Fraction(_share(len(names), level, zeta, privacy)) if noise is None else _given(noise)
    return {name: _noised(schema, name, share) for name in names}


def _given(noise: float) -> Fraction:
    if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 1e-3 <= noise <= 1e6:
        raise PlanError(
            f"noise is a standard deviation over the column's width, from 0.001 to a million, got {noise!r}",
            "write noise=1.0",
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
            f"the noise {why} has a trade-off function, which meets (epsilon, delta) and no {privacy}",
            "write privacy=cf.ApproxDP(1.0, 1e-3), or give noise= and read the function with `confide curve`",
        )
    return (1.0 if level == "attribute" else sqrt(d)) / shift * (1 + 1e-12)


def _noised(schema: Schema, name: str, share: Fraction) -> Noised:
    column = schema[name]
    if isinstance(column, Categorical):
        raise PlanError(
            f"column {name!r} has levels, and noise on levels is randomized response",
            f"write levels={{{name!r}: 1.0}}, with its epsilon, and leave it out of columns=",
        )
    if column.on_missing == "drop":
        raise PlanError(
            f"column {name!r} drops records without a value, and here every record is published",
            f"state a public value for them: on_missing={(column.low + column.high) / 2:g} in the schema",
        )
    wide = column.steps - 1
    lam = Fraction(ceil(share * wide * _PART), _PART)
    if lam < _FINE:
        raise PrivacyError(
            f"column {name!r} has {column.steps:,} grid steps, and its noise of {float(lam):.3g} steps is under {_FINE}. Rounding "
            "would be seen in corrections",
            "declare it as cf.Numeric(low, high), or ask for more noise",
        )
    return Noised(column.low, column.high, column.steps, lam)


def order_of(schema: Schema, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The declared levels of those of these columns that hold labels."""
    own = {name: schema[name] for name in names}
    return {name: one.levels for name, one in own.items() if isinstance(one, Categorical)}


def describe_columns(schema: Schema, levels: Mapping[str, float]) -> dict[str, ProtectedColumn]:
    """The columns of levels with their randomized response, each with a separate epsilon; `PlanError` for a column without levels."""
    found = {}
    for name, epsilon in levels.items():
        column = schema[name]
        if not isinstance(column, Categorical):
            raise PlanError(f"column {name!r} has no levels", "name it in columns=, whose noise is for numbers")
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 1e-3 <= epsilon <= 20:
            raise PlanError(
                f"levels= gives the epsilon of each column, from 0.001 to 20, got {epsilon!r} for {name!r}", "write 1.0"
            )
        if column.on_missing == "drop":
            raise PlanError(
                f"column {name!r} drops records without a level, and here every record is published",
                f"state a public level for them: on_missing={column.levels[0]!r} in the schema",
            )
        found[name] = ProtectedColumn.of(column.levels, float(epsilon))
    return found


def rest_of(privacy: Guarantee | None, told: Mapping[str, ProtectedColumn], level: str) -> Guarantee | None:
    """What a request leaves to the numbers beside columns of levels; `PlanError` for no level, or where the levels alone ask for more.

    Draws are independent, so epsilons add up. For a record they add up over all columns of levels. For one attribute the largest
    counts, because its statement is about a number and a column of levels at once (`Protection.curves`).
    """
    if level not in LEVELS:
        raise PlanError(f"level must be 'attribute' or 'record', got {level!r}", "write level='record'")
    if privacy is None or not told:
        return privacy
    if not isinstance(privacy, (ApproxDP, PureDP)):
        raise PlanError(
            f"columns of levels have an epsilon each, and {privacy} has none to take them from",
            "write privacy=cf.ApproxDP(4.0, 1e-3)",
        )
    own = [one.epsilon for one in told.values()]
    taken = sum(own) if level == "record" else max(own)
    if not taken < privacy.epsilon:
        raise PlanError(
            f"the levels of {', '.join(told)} alone have epsilon {taken:.4g} for one {level}, and the request is {privacy.epsilon:g}",
            "give levels= less, or ask for more",
        )
    return replace(privacy, epsilon=(privacy.epsilon - taken) * (1 - 1e-12))
