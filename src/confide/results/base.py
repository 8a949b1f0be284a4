r"""The base of every result: what all of them say of themselves, their checks, and every way to look at one.

A family of results is a frozen dataclass on `BaseResult` that gives its columns. From them, from the fields that all results share, and
from a few words where a family has more to say, ONE renderer makes the text (`summary`), the table of a notebook, the page (`report`),
the picture (`plot`), the frame, the CSV and the JSON. A family adds rows, not pages. This is a whole one, a mean with its interval:

>>> from confide.guarantees import GDP
>>> from confide.results.inference import simulated_null
>>> from confide.results.pages.content import Column
>>> @dataclass(frozen=True, eq=False, repr=False, kw_only=True)
... class Mean(BaseResult):
...     family = "mean"
...     mean: float
...     se: float
...
...     def columns(self, alpha):
...         half = simulated_null.quantile(alpha / 2, float("inf")) * self.se
...         return (
...             Column("term", [self.response], "name"),
...             Column("estimate", [self.mean], head="mean"),
...             Column("std_err", [self.se], "std_err", head="std. err."),
...             Column("ci_low", [self.mean - half], "interval", head=f"[{alpha / 2:.6g}"),
...             Column("ci_high", [self.mean + half], "interval", head=f"{1 - alpha / 2:.6g}]"),
...         )
>>> mu = GDP(1.0, relation="add-remove")
>>> result = Mean(
...     method="mean 1", response="age", status="valid", requested=mu, guarantee=mu, target="mean of age", intervals_for="sampling and noise",
...     release_sha256="0" * 64, mean=41.5, se=0.5)
>>> print("\n".join(result.summary(alpha=0.1).splitlines()[:6]))
Mean of age
Differentially private, may be published
<BLANKLINE>
      mean  std. err.          90% CI
-------------------------------------
age  41.50       0.50  40.68 to 42.32
>>> print(result.to_csv(), end="")
name,estimate,se,low,high
age,41.5,0.5,40.52001800772997,42.47998199227003

In a method's `table`, `Mean.of(release, response="age", mean=..., se=...)` takes the rest from the release.

What a family may add, each with a default: `title`; `head()`, further facts above the table; `notes()`, further lines below it; `shown`,
the rows to print of many; `more(alpha)`, further entries of the JSON; `draw(ax, alpha)` with `picture(alpha)`, a picture of its own and
how to read it; `rows_are` and `unit`, the words on the axes of the picture that it has otherwise.

Levels of a categorical column whose noisy count is nothing, in the words of a table's reason. Public: from a release alone.

Ends of intervals that are the declared bound alone, as noise may be all that lies beyond a quantile: the flag, and what would do.

How much of an interval is privacy noise: the one rule for what is printed as the noise share, and for the flag where noise rules.

An interval that is w wide, where sampling alone would give one of a, has the noise share

    1 - (a/w)^2,

whatever made it wide: noise of the estimate, what is allowed for because noise may hide it (upper bounds of a variance, biases of limits
and cuts, bins), and quantiles that are larger because a variance is known with noise. What sampling alone would give is read from the
release too, and is as sure as noise leaves it. One share is printed, of the best estimate of a, and the flag follows what is printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide.core.codec import plain
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.results.pages import export, table
from confide.results.pages.content import (
    WITHOUT_NUMBERS,
    Flag,
    Shown,
    check_alpha,
)
from confide.results.pages.export import csv_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

# Half of a normal 95 % interval, in standard errors.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Foreseen:
    """What a forecast keeps of a result of simulated records. errors: standard errors by name, NaN where there is no interval; answered:
    the part of the numbers that have one; shares: noise shares of those, none where results do not tell; of: what all of them are called,
    and what they are.
    """

    errors: Mapping[str, float]
    answered: float = 0.0
    shares: np.ndarray[Any, Any] = field(default_factory=lambda: np.array([]))
    of: tuple[str, str] = ("every number", "numbers")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BaseResult(Shown):
    """What every result is: what it says of itself (`Shown`), and every way to look at it.

    method: name and version; response: what the table is about ("" when nothing fits); status and reason ("" when ok); flags; the
    requested and the guarantee of the release, both with their relation; target: what is estimated; intervals_for: what the intervals account
    for; facts: further lines of the head; legend: what they mean, below the table; heading: what the title adds, where a line is not the
    usual one; simulated: whether a seed made the noise, which protects nobody.

    Raises `PlanError` when the parts do not fit each other.
    """

    def _alpha(self, alpha: float | None) -> float:
        """The alpha to show: the one asked for, .05, or the one that the plan fixed."""
        if self.level is None:
            return check_alpha(0.05 if alpha is None else alpha)
        if alpha is not None and abs(1 - alpha - self.level) > 1e-12:
            raise PlanError(
                f"the level of these intervals was fixed in the plan at {self.level:g}, got alpha={alpha:g}; "
                f"write alpha={1 - self.level:g}, or plan another release"
            )
        return 1 - self.level

    def to_frame(self, alpha: float | None = None) -> pd.DataFrame:
        """The table as a DataFrame, one row for each name."""
        columns = self.columns(self._alpha(alpha))
        names = next((list(one.values) for one in columns if one.kind == "name"), None)
        index = None if names is None else pd.Index(names, name="term")
        return pd.DataFrame({one.name: np.array(one.values) for one in columns if one.kind != "name"}, index=index)

    def to_csv(self, path: str | Path | None = None, alpha: float | None = None) -> str:
        """The table as CSV, with all digits and empty where there is no valid number; written to `path` where one is given.

        Text that a spreadsheet would run is shielded (`confide.results.pages.export`). Raises `PlanError` when it cannot be written.
        """
        frame, columns = self._spread(self._alpha(alpha)), self.columns(self._alpha(alpha))
        named = any(one.kind == "name" for one in columns)
        if self.status in WITHOUT_NUMBERS:
            labels = [one.name for one in columns if one.kind in ("text", "number")]
            frame = frame.mask(frame.notna() & ~frame.columns.isin(labels))
        text = csv_text(frame, index=named, index_label="term" if named else None)
        return text if path is None else _written(text, Path(path), "table", "a file in a folder that exists")

    def to_markdown(self, alpha: float | None = None) -> str:
        """The table as Markdown, with status, guarantee and what the intervals cover below it."""
        return export.markdown(export.document(self, self._alpha(alpha)))

    def to_latex(self, alpha: float | None = None) -> str:
        """The table as LaTeX, with the rules of the package booktabs, and the same note."""
        return export.latex(export.document(self, self._alpha(alpha)))

    def to_word(self, path: str | Path, alpha: float | None = None) -> Path:
        """Write the table and its note as a Word file (.docx); returns its path. Needs the extra `word`.

        Raises `PlanError` when it cannot be written, or python-docx is not installed.
        """
        export.word(export.document(self, self._alpha(alpha)), Path(path))
        return Path(path)

    def foreseen(self) -> Foreseen:
        """What a forecast keeps of it: its first standard errors, else half of its first 95 % intervals over 1.96. Without names none."""
        columns = self.columns(self._alpha(None))
        kinds: dict[str, list[Any]] = {}
        for one in columns:
            kinds.setdefault(one.kind, []).append(one.values)
        if "name" not in kinds or not ("std_err" in kinds or len(kinds.get("interval", ())) > 1):
            return Foreseen({})
        names, what = [str(name) for name in kinds["name"][0]], self.rows_are or "number"
        called = f"every {what}", f"{what}s"
        if not self.has_intervals:
            return Foreseen(dict.fromkeys(names, np.nan), of=called)
        low, high = (np.asarray(end, dtype=float) for end in kinds.get("interval", [np.nan, np.nan])[:2])
        errors = np.asarray(kinds["std_err"][0], dtype=float) if "std_err" in kinds else (high - low) / (2 * _Z)
        told = np.isfinite(errors)
        shares = np.asarray(kinds["share"][0], dtype=float)[told] if "share" in kinds else np.array([])
        return Foreseen(dict(zip(names, map(float, errors), strict=True)), float(told.mean()), shares, called)

    def _spread(self, alpha: float) -> pd.DataFrame:
        """The frame as it goes into a file; a family may join further columns."""
        return self.to_frame(alpha)

    def to_dict(self, alpha: float | None = None) -> dict[str, Any]:
        """All that the result holds, in types of strict JSON: what is not finite is None."""
        level = self._alpha(alpha)
        columns = self.columns(level)
        # names of these are the user's own, and must not stand for another entry
        labels = {one.name: plain(one.values) for one in columns if one.kind in ("text", "number")}
        names = next((list(one.values) for one in columns if one.kind == "name"), None)
        return {
            "family": self.family,
            "method": self.method,
            "response": self.response,
            "status": self.status,
            "reason": self.reason,
            "flags": list(self.flags),
            "simulated": self.simulated,
            **({} if names is None else {"term": names}),
            **({"labels": labels} if labels else {}),
            **{one.name: plain(one.values) for one in columns if one.kind not in ("name", "text", "number")},
            "column_kinds": [[one.name, one.kind] for one in columns],
            "alpha": level,
            **{name: plain(value) for name, value in self.more(level).items()},
            "facts": plain(self.facts),
            "legend": plain(self.legend),
            "target": self.target,
            "intervals_for": self.intervals_for,
            "relation": self.relation,
            "requested": stated(self.requested),
            "guarantee": stated(self.guarantee),
            "release_sha256": self.release_sha256,
        }

    def to_json(self, alpha: float | None = None) -> str:
        """`to_dict` as strict JSON in ASCII: no NaN tokens, floats with all their digits."""
        return json.dumps(self.to_dict(alpha), allow_nan=False)

    def summary(self, alpha: float | None = None, *, verbose: bool = False) -> str:
        """The table as text, at most 80 columns wide, with a few notes: status, cautions, what intervals are about, privacy, release.

        verbose: with every fact and note that the report has.
        """
        return table.text(self, self._alpha(alpha), verbose=verbose)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        what = f" of {self.response!r}" if self.response else ""
        kind = ", simulated noise" if self.simulated else ""
        head = f"{type(self).__name__} by {self.method!r}: {len(self.to_frame()):,} {self.rows_called}{what}"
        return f"<{head}, status {self.status!r}, {self.guarantee}{kind}>"

    def _repr_html_(self) -> str:
        return table.html(self, self._alpha(None))

    def plot(
        self, alpha: float | None = None, ax: Axes | None = None, *, names: str | Sequence[str] | None = None
    ) -> Axes:
        """The family's picture, else each row with its interval and, inside it, what sampling alone would give; returns the Axes.

        names: which rows to draw, one beside the other; all but the intercept when left out. Without `ax` a new figure is made that no
        global list of figures holds: `result.plot().figure.savefig("plot.png")`.
        """
        from confide.results.pages.plots import drawn

        return drawn(self, self._alpha(alpha), ax, names)

    def report(self, path: str | Path, alpha: float | None = None) -> Path:
        """Write one self-contained HTML file with table, picture and privacy statement in plain words; returns its path.

        Raises `PlanError` when the file cannot be written.
        """
        from confide.results.pages.report import page

        words = "a file in a directory that exists, as in report('report.html')"
        _written(page(self, self._alpha(alpha)), Path(path), "report", words)
        return Path(path)


def stated(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee to the bit (`to_dict`), as text, and its levels as decimal numbers."""
    levels = {name: getattr(guarantee, name) for name in guarantee.numbers()}
    numbers = {
        name: list(level) if isinstance(level, tuple) else level
        for name, level in levels.items()
        if isinstance(level, (float, tuple))
    }
    return {**guarantee.to_dict(), "text": str(guarantee), "numbers": numbers}


def _written(text: str, path: Path, what: str, give: str) -> str:
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise PlanError(f"the {what} cannot be written to {str(path)!r}: {error.strerror}; give {give}") from None
    return text


_REACH = NormalDist().inv_cdf(0.975)
# of a Laplace number in sds: P(|Z| > s ln 20) = 1/20, and its sd is s sqrt(2)
_LAPLACE = log(20) / sqrt(2)
# levels that a reason names one by one; a column may have thousands
_LISTED = 6


@dataclass(frozen=True)
class LevelCount:
    """A declared level of a column, its noisy count and the sd of that noise; laplace: whether the noise is Laplace's, not Gaussian.

    >>> LevelCount("region", "west", 3.2, 6.1).seen, LevelCount("region", "west", 30.0, 6.1).seen
    (False, True)
    """

    column: str
    level: str
    count: float
    sd: float
    laplace: bool = False

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the count, from its noise (of a sum of Laplace numbers: at least that)."""
        return (_LAPLACE if self.laplace else _REACH) * self.sd

    @property
    def seen(self) -> bool:
        """Whether the count stands above its noise."""
        return self.count > self.margin


def level_remarks(counts: Iterable[LevelCount], counted: str = "noisy count") -> str:
    """What follows in a reason for these levels, "" where there are none: each is named with its noisy count.

    >>> level_remarks([LevelCount("region", "west", 3.2, 6.1)])
    "; level 'west' of region has a noisy count of 3 ± 12: nothing can be told of it"
    """
    given = sorted(counts, key=lambda one: one.seen)  # stable: those of which nothing can be told come first
    parts = [
        f"level {one.level!r} of {one.column} has a {counted} of {round(one.count):,} ± {one.margin:,.0f}"
        + ("" if one.seen else ": nothing can be told of it")
        for one in given[:_LISTED]
    ]
    rest = given[_LISTED:]
    unseen = sum(not one.seen for one in rest)
    parts += [f"of {unseen} more levels nothing can be told"] if unseen else []
    parts += [f"{len(rest) - unseen} more levels are as small"] if len(rest) > unseen else []
    return "".join(f"; {part}" for part in parts)


def level_legend(remarks: str) -> tuple[tuple[str, str], ...]:
    """The same words below a table whose status gives no reason; nothing for none."""
    return (("Levels", remarks.removeprefix("; ")),) if remarks else ()


Vector = NDArray[np.float64]

# Above this share an interval is more than three times as wide as that of sampling alone.
_MOST = 0.9
# Sds of its noise that a robust variance may be off by, an error of 5 % on either side.
_LIKELY = 1.645
# Rows that a flag names.
_NAMED = 6

#: What the flag is called, of a result and of a row.
DOMINATES = "noise_dominates"
_TOLD = (
    "privacy noise, with all that is allowed for because of it, makes more than 90 % of the squared half-width{}: without privacy the "
    "interval would be less than a third as wide; a larger budget, more records, narrower bounds, a coarser table or fewer terms narrow it"
)
#: What it means, of a row.
DOMINATED = _TOLD.format("")


def noise_share(width: ArrayLike, alone: ArrayLike) -> Vector:
    """The part of squared widths of intervals that sampling alone would not give, in [0, 1].

    NaN where there is no interval, one of no width, or none by sampling either.
    width: of the intervals, or half of it, infinite where one has no end; alone: the same by sampling alone.

    >>> noise_share([2.0, 2.0, float("inf"), float("nan"), 0.0], [1.0, 3.0, 1.0, 1.0, 0.0]).tolist()
    [0.75, 0.0, 1.0, nan, nan]
    """
    whole, own = np.broadcast_arrays(np.asarray(width, dtype=np.float64), np.asarray(alone, dtype=np.float64))
    with np.errstate(all="ignore"):
        found = 1.0 - (own / whole) ** 2
    known = (whole > 0) & np.isfinite(own)
    found = np.where(known, np.where(np.isinf(whole), 1.0, found), np.nan)
    return np.asarray(np.clip(found, 0.0, 1.0))


def sampling_alone(robust: ArrayLike, error: ArrayLike, classical: ArrayLike) -> Vector:
    """The best estimate of sampling variances that released sums give.

    It is the robust one, as far as it is above 0: clusters, weights and heavy tails make it many times as large as the classical one.
    Where that is larger it is the classical one, as far as noise lets it be so: a robust one that noise hides says next to nothing. error:
    the sd of the noise of the robust ones.

    >>> sampling_alone([4.0, 2.0, -2.0], [0.1, 2.0, 0.5], [1.0, 3.0, 1.0]).round(2).tolist()
    [4.0, 3.0, 0.82]
    """
    own = np.maximum(robust, 0.0)
    return np.asarray(np.clip(classical, own, own + _LIKELY * np.asarray(error, dtype=np.float64)))


def dominated(share: ArrayLike) -> NDArray[np.bool_]:
    """Where privacy noise, with all that is allowed for, rules an interval."""
    return np.asarray(np.asarray(share, dtype=np.float64) > _MOST)


def marked(flags: Sequence[str], names: Sequence[str], share: ArrayLike) -> tuple[str, ...]:
    """A result's flags, with the one that names the rows whose interval is ruled by noise, where there are any. share: (p,).

    >>> marked((), ("a", "b"), [0.2, 0.95])
    ('noise_dominates',)
    """
    own = tuple(flag for flag in flags if flag != DOMINATES)
    rows = [name for name, on in zip(names, dominated(share), strict=True) if on]
    if not rows:
        return own
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return (*own, Flag(DOMINATES, _TOLD.format(f" of {', '.join(rows[:_NAMED])}{more}")))
