"""What `synthesize` gives: rows, the release that they were made from, and the files of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from confide.methods.synthesis.build import Rows, frame_of
from confide.methods.synthesis.sidecar import sidecar_of, sidecar_text, write
from confide.protocol import Release
from confide.results.base import BaseResult, Column
from confide.results.pages.words import Flag
from confide.schema import Design, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SyntheticData"]

_NOT_CALIBRATED = Flag(
    "not_calibrated",
    "plain OLS on the rows does not return the released line",
)

_ROWS_ADDED = Flag(
    "rows_added",
    "rows drawn evenly from the schema were added, because plain OLS on the others had no single solution",
)

_REASONS = {
    "partial": "the privacy noise hides some coefficients (refit says which and what they need); on the rows they have the values that are "
    "most likely beside the others",
    "weak": "the privacy noise is too large beside the signal for intervals; the rows lie on a rough line",
    "not_identified": "behind the privacy noise the data do not determine the line; the rows lie on a shrunken one",
}


_SHOWN = 5  # rows that a summary shows


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SyntheticData(BaseResult):
    """One synthetic table or several, with the release behind them. Nothing in it is a record.

    frames: the tables as DataFrames, columns of the schema's kinds; made: how each was made, public numbers alone; release: all that was
    paid for. `save` writes a table with its sidecar, from which `confide.refit` reads the intervals. Further fields are those of every
    result (`confide.results.base`).
    """

    frames: tuple[pd.DataFrame, ...]
    made: tuple[Mapping[str, Any], ...]
    release: Release
    schema: Schema
    formula: str
    _sidecars: tuple[Mapping[str, Any], ...] = field(default=())

    family: ClassVar[str] = "synthesis"
    rows_called: ClassVar[str] = "rows"

    @classmethod
    def from_rows(
        cls, method: Any, release: Release, design: Design, rows: Sequence[Rows], *, status: str
    ) -> SyntheticData:
        """From rows in final form."""
        frames = tuple(frame_of(one.columns, design.schema) for one in rows)
        made = tuple(
            {**one.facts, "file": number, "files": len(rows), "method": f"{method.name} {method.version}"}
            for number, one in enumerate(rows, start=1)
        )
        flags: list[str] = []
        if any(one.get("rows_added") for one in made):
            flags.append(_ROWS_ADDED)
        if any(one.get("bounded") or one["generator"] != "calibrated" for one in made):
            flags.append(_NOT_CALIBRATED)
        return cls.of(
            release,
            response=design.response.name,
            frames=frames,
            made=made,
            release=release,
            schema=design.schema,
            formula=design.formula,
            status=status,
            reason=_REASONS.get(status, ""),
            flags=tuple(flags),
            _sidecars=tuple(
                sidecar_of(release, one, frame, design.schema) for frame, one in zip(frames, made, strict=True)
            ),
        )

    # what users ask for ---------------------------------------------------------------------------------------------

    @property
    def frame(self) -> pd.DataFrame:
        """The rows of the first file."""
        return self.frames[0]

    @property
    def sidecar(self) -> Mapping[str, Any]:
        """What stands beside the first file: the release, how the rows were made, and the digest of their content."""
        return self._sidecars[0]

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the rows as Parquet or CSV (by the ending) with their sidecars, NAME.confide.json; the paths of the tables.

        Several files get numbers: "table.parquet" becomes "table-1.parquet" and so on. Raises `PlanError` for another ending.
        """
        return write(Path(path), self.frames, self._sidecars)

    def texts(self) -> Iterator[tuple[pd.DataFrame, str]]:
        """Every table with the text of its sidecar, for those who write files of their own."""
        for frame, sidecar in zip(self.frames, self._sidecars, strict=True):
            yield frame, sidecar_text(sidecar)

    # a result like others -------------------------------------------------------------------------------------------

    @property
    def has_intervals(self) -> bool:
        """Rows carry no interval; the release beside them does."""
        return False

    @property
    def status_said(self) -> str:
        """What the status means."""
        return "rows that follow from the release; no interval comes from them" if self.status == "ok" else self.reason

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Synthetic table for {self.formula}"

    def head(self) -> tuple[tuple[str, str], ...]:
        """How many rows there are, and what plain least squares on them gives."""
        one = self.made[0]
        size = f"{one['rows']:,} rows" + (f" in each of {len(self.frames)} files" if len(self.frames) > 1 else "")
        return (
            ("Made", f"{size}, {one['bins']} bins, noisy number of records {one['records_noisy']:,.0f}"),
            ("Line", self._identity(one)),
        )

    def _identity(self, one: Mapping[str, Any]) -> str:
        if one["generator"] != "calibrated":
            return "rows are noisy bin means: plain OLS on them is biased, and values may leave their bounds"
        off = one["ols_off_by"]
        if off is None:
            return "plain OLS on the rows has no single solution"
        drawn = "a line drawn around the released one, another in each file"
        line = drawn if one.get("drawn_line") else "the released line"
        error = f"off by {off:.0e}" if off <= 1e-8 else f"only up to {off:.2g}: the response was kept in bounds"
        return f"plain OLS on the rows returns {line}, {error}"

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What the first rows are, and the guarantee in words."""
        rows = f"shown are the first {min(_SHOWN, len(self.frame))} of {len(self.frame):,} synthetic rows; all of them: to_frame()"
        return (("Rows", rows), ("In words", self.guarantee.describe()))

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """The first rows of the first file."""
        first = self.frame.head(_SHOWN)
        return tuple(
            Column(str(name), first[name].to_numpy(), "text" if first[name].dtype.kind == "O" else "number")
            for name in first
        )

    def to_frame(self, alpha: float | None = None) -> pd.DataFrame:
        """The rows of the first file."""
        return self.frame.copy()

    def to_dict(self, alpha: float | None = None) -> dict[str, Any]:
        """How the tables were made, without their rows, in types of strict JSON."""
        whole = super().to_dict(alpha)
        return {name: value for name, value in whole.items() if name not in ("labels", "alpha")}

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON of this family."""
        files = [
            {**one, "content_sha256": sidecar["content_sha256"]}
            for one, sidecar in zip(self.made, self._sidecars, strict=True)
        ]
        return {"formula": self.formula, "columns": list(self.frame.columns), "files": files}

    def draw(self, ax: Axes, alpha: float) -> None:
        """The response of the first file against its first numeric feature."""
        others = [name for name in self.frame.columns if name != self.response]
        numbers = [name for name in others if self.schema[name].kind != "categorical"]
        across = self.frame[numbers[0]] if numbers else self.frame.index
        ax.plot(across, self.frame[self.response], ".", alpha=0.3)
        ax.set_xlabel(numbers[0] if numbers else "row")
        ax.set_ylabel(self.response)
        ax.set_title("synthetic rows, not records", fontsize="small")

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        return "Each point is a synthetic row of the first file, not a record."
