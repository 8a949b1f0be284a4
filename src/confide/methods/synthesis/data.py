"""What `synthesize` gives: rows, the release that they were made from, and the files of both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from confide.guarantees import Guarantee
from confide.methods.synthesis.build import Rows, frame_of
from confide.methods.synthesis.sidecar import sidecar_of, sidecar_text, write
from confide.protocol import Release
from confide.protocol.exact import clean
from confide.schema import Design, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SyntheticData"]

_REASONS = {
    "weak": "the privacy noise is too large beside the signal for intervals; the rows lie on a shrunken line",
    "not_identified": "behind the privacy noise the data do not determine the line; the rows lie on a shrunken one",
}


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticData:
    """One synthetic table or several, with the release behind them. Nothing in it is a record.

    frames: the tables as DataFrames, columns of the schema's kinds; facts: how each was made, public numbers alone; release: all that was
    paid for. `save` writes a table with its sidecar, from which `confide.refit` reads the intervals.
    """

    method: str
    response: str
    frames: tuple[pd.DataFrame, ...]
    facts: tuple[Mapping[str, Any], ...]
    release: Release
    schema: Schema
    formula: str
    status: str
    flags: tuple[str, ...]
    target: str
    covers: str
    _sidecars: tuple[Mapping[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, method: Any, release: Release, design: Design, made: Sequence[Rows], *, status: str) -> SyntheticData:
        """From rows in final form."""
        frames = tuple(frame_of(rows.columns, design.schema) for rows in made)
        facts = tuple(
            {**rows.facts, "file": number, "files": len(made), "method": f"{method.name} {method.version}"}
            for number, rows in enumerate(made, start=1)
        )
        flags = []
        if any(one.get("rows_added") for one in facts):
            flags.append("rows_added")
        if any(one.get("bounded") or one["generator"] != "calibrated" for one in facts):
            flags.append("not_calibrated")
        sidecars = tuple(
            sidecar_of(release, one, frame, design.schema) for frame, one in zip(frames, facts, strict=True)
        )
        return cls(
            method=f"{method.name} {method.version}",
            response=design.response.name,
            frames=frames,
            facts=facts,
            release=release,
            schema=design.schema,
            formula=design.formula,
            status=status,
            flags=tuple(flags),
            target=release.plan.target,
            covers=release.plan.covers,
            _sidecars=sidecars,
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
    def reason(self) -> str:
        """Why the status is not ok; "" when it is."""
        return _REASONS.get(self.status, "")

    @property
    def release_sha256(self) -> str:
        """Digest of the release."""
        return self.release.sha256

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release."""
        return self.release.charged

    @property
    def requested(self) -> Guarantee:
        """What was asked for."""
        return self.release.plan.requested

    @property
    def relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return str(self.guarantee.relation)

    @property
    def simulated(self) -> bool:
        """Whether a seed made the noise, which protects nobody."""
        return self.release.simulated

    def _lines(self) -> list[tuple[str, str]]:
        one = self.facts[0]
        size = f"{one['rows']:,} rows" + (f" in each of {len(self.frames)} files" if len(self.frames) > 1 else "")
        if one["generator"] == "calibrated":
            off = one["ols_off_by"]
            drawn = (
                "a line drawn around the released one, another in each file"
                if one.get("drawn_line")
                else "the released line"
            )
            exact = f"plain OLS on the rows returns {drawn}"
            identity = (
                "plain OLS on the rows has no single solution"
                if off is None
                else exact
                + (f", off by {off:.0e}" if off <= 1e-8 else f" only up to {off:.2g}: the response was kept in bounds")
            )
        else:
            identity = "rows are noisy bin means: plain OLS on them is biased, and values may leave their bounds"
        lines = [
            ("Status", f"{self.status}{': ' + self.reason if self.reason else ''}"),
            ("Flags", ", ".join(self.flags)),
            ("Made", f"{size}, {one['bins']} bins, noisy number of records {one['records_noisy']:,.0f}"),
            ("Line", identity),
            ("Guarantee", f"{self.guarantee}, requested {self.requested}"),
            ("In words", self.guarantee.describe()),
            ("Intervals", self.covers),
            ("Release SHA", self.release_sha256),
        ]
        if self.simulated:
            lines.insert(0, ("Warning", "SIMULATED NOISE: protects nobody"))
        return [(label, words) for label, words in lines if words]

    def summary(self) -> str:
        """What the table is, in words, with its guarantee; no statistic of the rows."""
        head = f"Synthetic table for {self.formula}, {self.method}"
        return "\n".join(map(clean, [head, "", *(f"{label}: {words}" for label, words in self._lines())]))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.formula!r}: {len(self.frame):,} rows, status {self.status!r}, {self.guarantee}>"

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(clean(words))}</td></tr>"
            for label, words in self._lines()
        )
        first = self.frame.head()
        # pandas escapes markup; what does not print is escaped here
        shown = first.assign(**{str(name): first[name].map(clean) for name in first if first[name].dtype.kind == "O"})
        return f"{shown.rename(columns=clean).to_html()}<table>{lines}</table>"

    def to_frame(self) -> pd.DataFrame:
        """The rows of the first file."""
        return self.frame.copy()

    def to_dict(self) -> dict[str, Any]:
        """How the tables were made, without their rows, in types of strict JSON."""
        return {
            "family": "synthesis",
            "method": self.method,
            "response": self.response,
            "formula": self.formula,
            "status": self.status,
            "reason": self.reason,
            "flags": list(self.flags),
            "simulated": self.simulated,
            "columns": list(self.frame.columns),
            "files": [
                {**one, "content_sha256": sidecar["content_sha256"]}
                for one, sidecar in zip(self.facts, self._sidecars, strict=True)
            ],
            "target": self.target,
            "covers": self.covers,
            "relation": self.relation,
            "requested": self.requested.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "release_sha256": self.release_sha256,
        }

    def to_json(self) -> str:
        """`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The response of the first file against its first numeric feature."""
        from matplotlib.figure import Figure

        own = ax if ax is not None else Figure().add_subplot()
        numbers = [
            name for name in self.frame.columns if name != self.response and self.schema[name].kind != "categorical"
        ]
        across = self.frame[numbers[0]] if numbers else self.frame.index
        own.plot(across, self.frame[self.response], ".", alpha=0.3)
        own.set_xlabel(numbers[0] if numbers else "row")
        own.set_ylabel(self.response)
        own.set_title("synthetic rows, not records")
        return own

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page; returns its path. Raises `PlanError` when it cannot be written."""
        from confide.errors import PlanError

        target = Path(path)
        name = escape(clean(self.formula))
        page = (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>'
            f"<body><h1>Synthetic table for {name}</h1>{self._repr_html_()}</body></html>\n"
        )
        try:
            target.write_text(page, encoding="utf-8")
        except OSError as error:
            raise PlanError(
                f"the report cannot be written to {str(path)!r}: {error.strerror}; give a file in a folder that exists"
            ) from None
        return target
