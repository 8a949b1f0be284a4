"""What `synthesize` gives: rows, the release that they were made from, and the files of both.

The files of a synthetic table: Parquet or CSV, and with it a JSON sidecar with the release that its numbers come from.

A file alone cannot give intervals, because an analysis that treats its rows as records is too confident. The sidecar holds the whole
release, so that intervals can be computed from it. It also holds a digest of the rows' content, the same for CSV and Parquet. A Parquet
file carries its sidecar in its own metadata as well.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from confide.core import Release
from confide.core.files import read, text_of, written
from confide.errors import FileError, PlanError, ReleaseError
from confide.methods.synthesis.model import Rows, frame_of
from confide.results.base import BaseResult
from confide.results.pages.content import Column, Flag
from confide.results.pages.export import csv_text, plain, shielded
from confide.schema import Categorical, ModelMatrix, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_KEY = b"confide"
_KIND = "synthetic table"
_ENDINGS = (".parquet", ".csv")
_TYPES = {"text": pa.string(), "whole": pa.int64(), "double": pa.float64()}
_MAKE = 'make it with cf.synthesize(data, "y ~ a", privacy=..., ledger=..., path="table.parquet")'


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A table that was read back, its release, and how it was made."""

    frame: pd.DataFrame
    release: Release
    facts: Mapping[str, Any]


def kinds_of(frame: pd.DataFrame, schema: Schema) -> dict[str, str]:
    """How each column is stored: "text", "whole" or "double"."""
    return {
        str(name): "text"
        if isinstance(schema[str(name)], Categorical)
        else ("whole" if frame[name].dtype.kind in "iu" else "double")
        for name in frame.columns
    }


def content_digest(frame: pd.DataFrame, kinds: Mapping[str, str]) -> str:
    """SHA-256 of names and values, column by column: whole numbers, doubles to the bit, labels as text.

    Raises `ValueError` or `TypeError` for values that are not of their kind.
    """
    found = hashlib.sha256()
    for name in frame.columns:
        values, kind = frame[name], kinds[str(name)]
        found.update(f"{json.dumps(str(name))} {kind} {len(values)}\0".encode())
        if kind == "text":
            found.update(json.dumps(list(map(str, values.tolist()))).encode())
        else:
            # 0.0 added: -0.0 and 0.0 are one number and may be written alike
            found.update(values.to_numpy(dtype="<i8" if kind == "whole" else "<f8").__add__(0).tobytes())
    return found.hexdigest()


def sidecar_of(release: Release, facts: Mapping[str, Any], frame: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """The body of a sidecar."""
    kinds = kinds_of(frame, schema)
    content = content_digest(frame, kinds)
    return {"release": release.to_dict(), "made": dict(facts), "columns": kinds, "content_sha256": content}


def sidecar_path(path: Path) -> Path:
    """NAME.confide.json beside NAME."""
    return path.with_name(path.name + ".confide.json")


def check_ending(path: Path) -> None:
    """`PlanError` for an ending other than .parquet and .csv."""
    if path.suffix.lower() not in _ENDINGS:
        raise PlanError(f"a table is a .parquet or .csv file, got {str(path)!r}", 'write path="table.parquet"')


def check_place(path: Path) -> None:
    """`PlanError` for an ending, `FileError` for a folder that cannot be: to be known before anything is paid for."""
    check_ending(path)
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise FileError(
            f"{str(path)!r} cannot be written", "give a file in a folder that exists and that you may write to"
        )


def file_names(path: Path, files: int) -> list[Path]:
    """The tables' paths: the one given, or for several "table-1.parquet" and so on."""
    if files == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, files + 1)]


def sidecar_text(sidecar: Mapping[str, Any]) -> str:
    """The sidecar's file."""
    return written(_KIND, sidecar)


def table_bytes(frame: pd.DataFrame, text: str, path: Path) -> bytes:
    """A table's file, Parquet or CSV by the ending of its path; a Parquet file has the sidecar's text in its metadata."""
    if path.suffix.lower() == ".csv":
        return csv_text(frame, index=False).encode("utf-8")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: text}), sink)
    return sink.getvalue()


def write(path: Path, frames: Sequence[pd.DataFrame], sidecars: Sequence[Mapping[str, Any]]) -> tuple[Path, ...]:
    """Write tables with their sidecars; several get numbers."""
    check_ending(path)
    places = file_names(path, len(frames))
    for place, frame, sidecar in zip(places, frames, sidecars, strict=True):
        text = sidecar_text(sidecar)
        try:
            place.write_bytes(table_bytes(frame, text, place))
            sidecar_path(place).write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(
                f"{str(place)!r} cannot be written: {error.strerror}", "give a file in a folder that exists"
            ) from None
    return tuple(places)


def load(path: Path) -> Synthetic:
    """A table with its sidecar, or the metadata of its Parquet file.

    Raises `ReleaseError` when there is no sidecar or it was changed, or when the rows are not those that it was written for.
    """
    check_ending(path)
    if not path.is_file():
        raise _reading(f"there is no file {str(path)!r}; {_MAKE}")
    try:
        release, body = read(_KIND, _sidecar_text(path), lambda body: (Release.from_dict(body["release"]), body))
    except ReleaseError as error:
        raise _reading(str(error)) from error
    content, kinds, facts = body["content_sha256"], body["columns"], body["made"]
    try:
        frame = _rows(path, kinds)
        same = set(frame.columns) == set(kinds) and content_digest(frame, kinds) == content
    except (KeyError, TypeError, ValueError):
        same = False
    if not same:
        raise _reading(
            f"the rows of {str(path)!r} are not those that its sidecar was written for: they were changed, dropped or put in another "
            "order. Intervals come from the release alone, so ask for the original file"
        )
    return Synthetic(frame, release, facts)


def _reading(message: str) -> ReleaseError:
    """A file that cannot be used: no charge was made."""
    error = ReleaseError(message)
    error.exit_code = 3
    return error


def _sidecar_text(path: Path) -> str:
    beside = sidecar_path(path)
    if beside.is_file():
        try:
            return text_of(beside, _KIND)
        except OSError:
            raise _reading(f"the sidecar {str(beside)!r} cannot be read; ask for the original file") from None
    if path.suffix.lower() == ".parquet":
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException):
            raise _reading(f"{str(path)!r} is not a readable Parquet file; ask for the original file") from None
        if _KEY in metadata:
            return str(metadata[_KEY].decode("utf-8", errors="replace"))
    raise _reading(
        f"{str(path)!r} has no sidecar ({beside.name}), and synthetic rows carry no interval; put the sidecar into the folder "
        f"of the file, or {_MAKE}"
    )


def _rows(path: Path, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a file as they were written: labels as text, doubles to the bit."""
    try:
        if path.suffix.lower() == ".parquet":
            return pd.DataFrame(pq.read_table(path).to_pandas())
        types = {shielded(name): _TYPES[kind] for name, kind in kinds.items()}
        options = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        lines = csv.ParseOptions(newlines_in_values=True)
        frame = pd.DataFrame(csv.read_csv(path, parse_options=lines, convert_options=options).to_pandas())
        named = frame.set_axis([plain(name) for name in frame.columns], axis=1)
        for name in named.columns[named.columns.isin([name for name, kind in kinds.items() if kind == "text"])]:
            named[name] = named[name].map(plain)
        return named
    except (OSError, pa.ArrowException):
        raise _reading(
            f"{str(path)!r} cannot be read as the table that was written; ask for the original file"
        ) from None


_NOT_CALIBRATED = Flag(
    "fit_on_rows_differs",
    "least squares on the rows does not return the released coefficients",
)

_ROWS_ADDED = Flag(
    "rows_added",
    "rows drawn evenly from the schema were added, because least squares on the others had no single solution",
)

_REASONS = {
    "partial": "the privacy noise hides some coefficients (refit says which and what they need); on the rows they have the values that are "
    "most likely given the others",
    "imprecise": "the privacy noise is too large for intervals; the rows follow rough coefficients",
    "not_identified": "the privacy noise is so large that the data do not determine the coefficients; the rows follow shrunken ones",
}


_SHOWN = 5  # rows that a summary shows


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SyntheticData(BaseResult):
    """Synthetic data: one table or several, with the release behind them.

    The rows are not records. `save` writes a table with its sidecar, from which
    `confide.synthesis.refit` reads the intervals.

    Parameters
    ----------
    frames : tuple of DataFrame
        The tables, with columns of the schema's kinds.
    made : tuple of mapping
        How each table was made, in public numbers alone.
    release : Release
        The release that all tables come from.
    schema : Schema
        Schema of the columns.
    formula : str
        Formula of the regression.
    sidecars : tuple of mapping, default ()
        What is stored with each file: the release, how the rows were made, and
        the digest of their content.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.synthesis.SyntheticTable("y ~ x")
    >>> made = cf.infer(cf.release(method, data, privacy=cf.GDP(1.0), ledger=None))
    >>> made.frame.columns.tolist(), len(made.frames)
    (['x', 'y'], 1)
    """

    frames: tuple[pd.DataFrame, ...]
    made: tuple[Mapping[str, Any], ...]
    release: Release
    schema: Schema
    formula: str
    sidecars: tuple[Mapping[str, Any], ...] = field(default=())

    family: ClassVar[str] = "synthesis"
    rows_called: ClassVar[str] = "rows"

    @classmethod
    def from_rows(
        cls, method: Any, release: Release, design: ModelMatrix, rows: Sequence[Rows], *, status: str
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
            sidecars=tuple(
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
        """What is stored with the first file: the release, how the rows were made, and the digest of their content."""
        return self.sidecars[0]

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the rows as Parquet or CSV, with their sidecars.

        Parameters
        ----------
        path : str or Path
            File that ends with .parquet or .csv. Several files get numbers:
            "table.parquet" becomes "table-1.parquet" and so on. Each sidecar is
            called NAME.confide.json.

        Returns
        -------
        tuple of Path
            Paths of the tables.

        Raises
        ------
        PlanError
            The path has another ending.
        """
        return write(Path(path), self.frames, self.sidecars)

    def texts(self) -> Iterator[tuple[pd.DataFrame, str]]:
        """Every table with the text of its sidecar, for writers of other files.

        Yields
        ------
        tuple of (DataFrame, str)
            Table and text.
        """
        for frame, sidecar in zip(self.frames, self.sidecars, strict=True):
            yield frame, sidecar_text(sidecar)

    # a result like others -------------------------------------------------------------------------------------------

    @property
    def has_intervals(self) -> bool:
        """False, because intervals come from the release and not from the rows."""
        return False

    @property
    def status_said(self) -> str:
        """The meaning of the status."""
        return (
            "rows that follow from the release; no interval comes from them" if self.status == "valid" else self.reason
        )

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Synthetic table for {self.formula}"

    def head(self) -> tuple[tuple[str, str], ...]:
        """How many rows there are, and what plain least squares on them gives."""
        one = self.made[0]
        size = f"{one['rows']:,} rows" + (f" in each of {len(self.frames)} files" if len(self.frames) > 1 else "")
        return (
            ("Made", f"{size}, {one['bins']} bins, estimated number of records {one['records_noisy']:,.0f}"),
            ("Line", self._identity(one)),
        )

    def _identity(self, one: Mapping[str, Any]) -> str:
        if one["generator"] != "calibrated":
            return "rows are noisy bin means: least squares on them is biased, and values may leave their bounds"
        off = one["ols_off_by"]
        if off is None:
            return "least squares on the rows has no single solution"
        drawn = "coefficients drawn around the released ones, others in each file"
        line = drawn if one.get("drawn_line") else "the released coefficients"
        error = f"off by {off:.0e}" if off <= 1e-8 else f"only up to {off:.2g}: the response was kept in bounds"
        return f"least squares on the rows returns {line}, {error}"

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
        """The rows of the first file.

        Parameters
        ----------
        alpha : float, optional
            Ignored, because rows have no intervals.

        Returns
        -------
        DataFrame
            The rows.
        """
        return self.frame.copy()

    def to_dict(self, alpha: float | None = None) -> dict[str, Any]:
        """How the tables were made, without their rows, in types of strict JSON."""
        whole = super().to_dict(alpha)
        return {name: value for name, value in whole.items() if name not in ("labels", "alpha")}

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON of this family."""
        files = [
            {**one, "content_sha256": sidecar["content_sha256"]}
            for one, sidecar in zip(self.made, self.sidecars, strict=True)
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
