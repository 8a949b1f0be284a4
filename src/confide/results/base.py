r"""The base of every result: what all of them say of themselves, their checks, and every way to look at one.

A family of results is a frozen dataclass on `BaseResult` that gives its columns. One renderer makes the text (`summary`), the table of a
notebook, the page (`report`), the picture (`plot`), the frame, the files and the JSON from these columns and the shared fields. A
complete family, a mean with its interval:

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
...             Column("std_err", [self.se], "std_err"),
...             Column("ci_low", [self.mean - half], "interval"),
...             Column("ci_high", [self.mean + half], "interval"),
...         )
>>> mu = GDP(1.0, relation="add-remove")
>>> result = Mean(
...     method="mean 1", response="age", status="valid", requested=mu, guarantee=mu, target="mean of age", intervals_for="sampling error",
...     release_sha256="0" * 64, mean=41.5, se=0.5)
>>> print("\n".join(result.summary(alpha=0.1).splitlines()[:6]))
Mean of age
Differentially private, may be published
<BLANKLINE>
term   mean  std. err.          90% CI
--------------------------------------
age   41.50       0.50  40.68 to 42.32
>>> print(result.to_csv(), end="")
term,estimate,std_err,ci_low,ci_high
age,41.5,0.5,40.52001800772997,42.47998199227003

In a method's `table`, `Mean.of(release, response="age", mean=..., se=...)` takes the rest from the release.

A family may add: `title`; `head()`, further facts; `notes()`, further lines below the table; `printed(alpha)`, `crossed(alpha)` and
`line(alpha)`, another layout. `shown` selects the rows to print; `more(alpha)` adds entries to the JSON. `draw(ax, alpha)` with
`picture(alpha)` is a separate picture and how to read it; `axis`, the words on the axis of the picture that it has otherwise.

Levels of a categorical column with a DP count that is not distinguishable from zero, in the words of a table's reason.

Ends of intervals that are the declared bound alone, as noise may be all that lies beyond a quantile: the flag, and what would do.

How much of an interval is privacy noise: the one rule for the privacy share and for the flag of dominating noise.

An interval of width w, with width a from sampling error alone, has the privacy share

    1 - (a/w)^2,

for all causes of width: the noise of the estimate, allowances for what noise may hide, and larger quantiles because a variance is noisy.
Allowances are upper bounds of a variance, biases of clipping, and bins. The width a is estimated from the release, too. One share is
printed, from the best estimate of a, and the flag follows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from confide._helpers import later
from confide.core.codec import plain
from confide.errors import FileError, PlanError
from confide.guarantees import Guarantee
from confide.results.pages import export, table
from confide.results.pages.content import (
    WITHOUT_NUMBERS,
    Shown,
    check_alpha,
    either,
)
from confide.results.pages.export import csv_text, shielded_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

# Half of a normal 95% interval, in standard errors.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Foreseen:
    """What a forecast keeps of a result of simulated records.

    errors: standard errors by name, NaN without an interval. `answered`: the share of numbers with an interval. `shares`: their privacy
    shares, if the result has them. `of`: the names of all numbers and of one.
    """

    errors: Mapping[str, float]
    answered: float = 0.0
    shares: np.ndarray[Any, Any] = field(default_factory=lambda: np.array([]))
    of: tuple[str, str] = ("all numbers", "numbers")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BaseResult(Shown):
    """A result: its fields (`Shown`) and every way to read it, print it and write it.

    Raises `PlanError` when the parts do not agree.
    """

    def _alpha(self, alpha: float | None) -> float:
        """The alpha to show: the given one, 0.05, or the one that the plan fixed."""
        if self.level is None:
            return check_alpha(0.05 if alpha is None else alpha)
        if alpha is not None and abs(1 - alpha - self.level) > 1e-12:
            raise PlanError(
                f"the level of these intervals was fixed in the plan at {self.level:g}, got alpha={alpha:g}",
                f"write alpha={1 - self.level:g}, or plan another release",
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

        Text that a spreadsheet would run is shielded (`confide.results.pages.export`). Raises `FileError` when it cannot be written.
        """
        text = csv_text(self._filed(alpha), index=False)
        return text if path is None else _written(text, Path(path), "table", "a file in a folder that exists")

    def to_excel(self, path: str | Path, alpha: float | None = None) -> Path:
        """Write the table as an Excel file (.xlsx), with all digits.

        Cells without a valid number are empty, and text that Excel would run as
        a formula starts with an apostrophe, as in `to_csv`.

        Parameters
        ----------
        path : str or Path
            File to write.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        PlanError
            The file cannot be written, or openpyxl is not installed.
        """
        try:
            import_module("openpyxl")
        except ModuleNotFoundError:
            raise PlanError(
                "Excel files need one more package: pip install 'confide[excel]'; to_csv(path) needs none"
            ) from None
        try:
            shielded_frame(self._filed(alpha)).to_excel(Path(path), index=False, sheet_name="table", engine="openpyxl")
        except OSError as error:
            raise FileError(
                f"the table cannot be written to {str(path)!r}: {error.strerror}", "give a file in a folder that exists"
            ) from None
        return Path(path)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream, for polars, DuckDB and others that read the Arrow PyCapsule interface."""
        import pyarrow

        frame = self._filed(None)
        return pyarrow.Table.from_pandas(frame, preserve_index=False).__arrow_c_stream__(requested_schema)

    def _filed(self, alpha: float | None) -> pd.DataFrame:
        """The frame as it goes into a file: names of rows are a column, and cells without a valid number are empty."""
        level = self._alpha(alpha)
        frame, columns = self._spread(level), self.columns(level)
        if self.status in WITHOUT_NUMBERS:
            labels = [one.name for one in columns if one.kind in ("text", "number")]
            frame = frame.mask(frame.notna() & ~frame.columns.isin(labels))
        named = any(one.kind == "name" for one in columns)
        return frame.rename_axis("term").reset_index() if named else frame

    def to_markdown(self, alpha: float | None = None) -> str:
        """The table as Markdown, with status, guarantee and what the intervals cover below it."""
        return export.markdown(export.document(self, self._alpha(alpha)))

    def to_latex(self, alpha: float | None = None) -> str:
        """The table as LaTeX, with the rules of the package booktabs, and the same note."""
        return export.latex(export.document(self, self._alpha(alpha)))

    def to_word(self, path: str | Path, alpha: float | None = None) -> Path:
        """Write the table, its note and the picture as a Word file (.docx); returns its path. Needs the extra `word`.

        Raises `FileError` when it cannot be written, `PlanError` when python-docx is not installed.
        """
        export.word(export.document(self, self._alpha(alpha), pictured=True), Path(path))
        return Path(path)

    def foreseen(self) -> Foreseen:
        """What a forecast keeps: the first standard errors, else the first margins of error over 1.96. Nothing without names."""
        columns = self.columns(self._alpha(None))
        kinds: dict[str, list[Any]] = {}
        for one in columns:
            kinds.setdefault(one.kind, []).append(one.values)
        if "name" not in kinds or not ("std_err" in kinds or len(kinds.get("interval", ())) > 1):
            return Foreseen({})
        names, what = [str(name) for name in kinds["name"][0]], self.rows_are or "number"
        called = f"all {what}s", f"{what}s"
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
            **({"ranges": {name: plain(vars(own)) for name, own in self.ranges.items()}} if self.ranges else {}),
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
        """The table as text with a few notes: status, cautions, what intervals are about, privacy, release.

        It is 80 columns wide; rows that need more are as wide as the terminal.
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
        self,
        alpha: float | None = None,
        ax: Axes | None = None,
        *,
        names: str | Sequence[str] | None = None,
        kind: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Axes:
        """Draw the result and its intervals.

        A new figure has a caption that says what marks and whiskers are. No global
        list of figures holds it: ``result.plot().figure.savefig("plot.png")``.

        Parameters
        ----------
        alpha : float, default 0.05
            1 - alpha is the level of the intervals.
        ax : matplotlib Axes, optional
            Axes to draw on. A new figure is made when left out.
        names : str or sequence of str, optional
            Rows to draw. All but the intercept when left out.
        kind : str, optional
            Kind of picture, one of the result's ``pictures``. The first when left
            out.
        title : str, optional
            Title instead of the result's own.
        labels : mapping of str to str, optional
            Words instead of names on axes and in legends, such as
            ``{"income": "Income (dollars)", "male": "Men"}``.

        Returns
        -------
        matplotlib Axes
            The axes, whose ``figure`` is the picture.

        Raises
        ------
        PlanError
            For a kind that the result does not have, and for names and labels that
            are not in the picture.
        """
        from confide.results.pages.plots import drawn

        return drawn(self.looking(kind=kind, title=title, labels=labels), self._alpha(alpha), ax, names)

    def looking(self, *, kind: str | None = None, **wanted: Any) -> Self:
        """The same result with another picture, in `plot` and in every report. wanted: fields of `Look`, None for the present one.

        Raises `PlanError` for a kind that the result does not have.
        """
        if kind is not None and kind not in self.pictures:
            raise PlanError(
                f"kind must be {either([repr(one) for one in self.pictures])}, got {kind!r}",
                f"write plot(kind={self.pictures[0]!r})",
            )
        changed = {name: value for name, value in {"kind": kind, **wanted}.items() if value is not None}
        own = copy(self)
        own._put("look", replace(self.look, **changed))
        return own

    def report(self, path: str | Path, alpha: float | None = None) -> Path:
        """Write one self-contained HTML file with table, picture and privacy statement in plain words; returns its path.

        Raises `FileError` when the file cannot be written.
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
        raise FileError(f"the {what} cannot be written to {str(path)!r}: {error.strerror}", f"give {give}") from None
    return text


_REACH = NormalDist().inv_cdf(0.975)
# of a Laplace number in sds: P(|Z| > s ln 20) = 1/20, and its sd is s sqrt(2)
_LAPLACE = log(20) / sqrt(2)
# levels that a reason names one by one; a column may have thousands
_LISTED = 6


@dataclass(frozen=True)
class LevelCount:
    """A declared level of a column, its DP count and the SD of the noise; laplace: whether the noise is Laplace, not Gaussian.

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
        """The 95% margin of error of the count, from its noise (of a sum of Laplace numbers: at least that)."""
        return (_LAPLACE if self.laplace else _REACH) * self.sd

    @property
    def seen(self) -> bool:
        """Whether the count is above its noise."""
        return self.count > self.margin


def level_remarks(counts: Iterable[LevelCount], counted: str = "DP count") -> str:
    """What a reason adds for these levels, "" for none: each is named with its DP count.

    >>> level_remarks([LevelCount("region", "west", 3.2, 6.1)])
    "; level 'west' of region has a DP count of 3 ± 12: it cannot be estimated"
    """
    given = sorted(counts, key=lambda one: one.seen)  # stable: those that cannot be estimated come first
    parts = [
        f"level {one.level!r} of {one.column} has a {counted} of {round(one.count):,} ± {one.margin:,.0f}"
        + ("" if one.seen else ": it cannot be estimated")
        for one in given[:_LISTED]
    ]
    rest = given[_LISTED:]
    unseen = sum(not one.seen for one in rest)
    parts += [f"{unseen} more levels cannot be estimated"] if unseen else []
    parts += [f"{len(rest) - unseen} more levels are as small"] if len(rest) > unseen else []
    return "".join(f"; {part}" for part in parts)


def level_legend(remarks: str) -> tuple[tuple[str, str], ...]:
    """The same words below a table whose status gives no reason; nothing for none."""
    return (("Levels", remarks.removeprefix("; ")),) if remarks else ()
