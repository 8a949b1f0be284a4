"""Tables of protected rows in files: read with what they say of themselves.

Tables of protected rows written to files, batch by batch, whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from math import exp, log, log1p, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from confide._helpers import later
from confide.errors import FileError, PlanError, ReleaseError
from confide.local.noise_levels import DIGEST, KEY, Protection

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

# That a table as it was written is refused as one that was cut.
_CHANCE = 1e-9


def read(path: str | Path) -> pd.DataFrame:
    """Read a table of protected rows as a frame that carries its protection.

    The frame serves `cf.local.fit` and inspection. Its protection is in
    `attrs`.

    Parameters
    ----------
    path : str or Path
        Parquet or CSV file that `confide local protect` wrote.

    Returns
    -------
    DataFrame
        The protected rows.

    Raises
    ------
    ReleaseError
        The file does not state how it was protected.

    Examples
    --------
    >>> import tempfile
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(500, seed=1), schema, place, columns=["x"], noise=0.1, ledger=None)
    >>> cf.local.read(place).shape
    (500, 1)
    """
    return read_protected(path)[0]


def read_protected(data: Any) -> tuple[pd.DataFrame, Protection, str]:
    """A table of protected rows, its protection and its digest.

    data: a Parquet or CSV file that `confide local protect` wrote, or a frame read from one. The digest is the file's SHA-256, which
    the receipt in the ledger names. A frame that comes from no file, such as a stream's, has the digest of its protection. A frame
    carries both in `attrs`.

    Raises `ReleaseError` where a table does not state how it was protected, or was changed since.
    """
    if isinstance(data, (str, Path)):
        path = Path(data)
        try:
            frame, own = _from_csv(path) if path.suffix.lower() == ".csv" else _from_parquet(path)
            with path.open("rb") as file:
                digest = frame.attrs[DIGEST] = hashlib.file_digest(file, "sha256").hexdigest()
            return _whole(frame, own), own, digest
        except (OSError, pa.ArrowInvalid) as error:
            raise ReleaseError(
                f"{str(path)!r} cannot be read: {_why(path, error)}", "give a file that `confide local protect` wrote"
            ) from None
    attrs = getattr(data, "attrs", None)
    if attrs is None:
        raise PlanError(
            f"data must be a file or a pandas frame, got {type(data).__name__}",
            "write cf.local.fit('protected.parquet', 'y ~ x')",
        )
    if KEY not in attrs:
        raise ReleaseError(_SILENT.format("the frame", "read the file with cf.local.read"))
    told = Protection.from_json(attrs[KEY])
    return _whole(data, told), told, attrs.get(DIGEST) or hashlib.sha256(told.to_json().encode()).hexdigest()


def _whole(frame: pd.DataFrame, told: Protection) -> pd.DataFrame:
    """The frame, unless a column was clipped to its bounds or its rows were chosen so: corrections need all of the noise.

    A value within its bounds stays there with probability at most 1 - (1 - zeta) e^(-width / (sqrt(2) sd())), that of a value in their
    middle.
    """
    for name, one in told.columns.items():
        if name not in frame or frame[name].dtype.kind not in "fiu":
            continue
        values = frame[name]
        leaves = (1 - told.zeta) * exp(-(one.high - one.low) / (sqrt(2) * one.sd))
        if len(values) * log1p(-leaves) < log(_CHANCE) and values.between(one.low, one.high).all():
            raise ReleaseError(
                f"column {name!r} carries noise of SD {one.sd:.3g}, and all of its {len(values):,} values lie within {one.low:g} and "
                f"{one.high:g}. They were clipped or selected after they were protected, and no correction is valid",
                "give the table as `confide local protect` wrote it",
            )
    return frame


def _why(path: Path, error: Exception) -> str:
    """Why a file cannot be read, where the reader's message is the path alone."""
    return "no such file" if not path.exists() else str(getattr(error, "strerror", None) or error)


_SILENT = "{} does not say how it was protected, so that nothing can be corrected; {}"


def _from_parquet(path: Path) -> tuple[pd.DataFrame, Protection]:
    table = pq.read_table(path)
    told = (table.schema.metadata or {}).get(KEY.encode())
    if told is None:
        raise ReleaseError(_SILENT.format(repr(str(path)), "give a file that `confide local protect` wrote"))
    return _framed(table, Protection.from_json(told))


def _from_csv(path: Path) -> tuple[pd.DataFrame, Protection]:
    with path.open("rb") as file:
        first = file.readline()
        mark = f"# {KEY} ".encode()
        if not first.startswith(mark):
            raise ReleaseError(_SILENT.format(repr(str(path)), "give a file that `confide local protect` wrote"))
        told = Protection.from_json(first[len(mark) :])
        # levels are text, "0" and "NA" too; what is missing was written as nothing
        options = csv.ConvertOptions(
            column_types=dict.fromkeys((*told.levels, *told.order), pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return _framed(csv.read_csv(file, convert_options=options), told)


def _framed(table: pa.Table, told: Protection) -> tuple[pd.DataFrame, Protection]:
    missing = [name for name in (*told.protected, *told.public) if name not in table.column_names]
    if missing:
        raise ReleaseError(
            f"the file says that it holds {', '.join(missing)}, and does not",
            "ask for it as `confide local protect` wrote it",
        )
    frame = table.to_pandas()
    frame.attrs[KEY] = told.to_json()
    return frame, told


_SUFFIXES = (".parquet", ".csv")
# Rows of each row group but the last. Batches end where the pieces of the source do, as at the file of each region, and would tell of
# every row which of them it is from.
_GROUP = 65_536
# Bytes of a cell at most, as text of a double with its separator: what is set aside on the disk.
_CELL = 26


class Place:
    """The place of a table of protected rows: a file beside `path`, created before the charge and moved to `path` when it is complete.

    A draw that ends early leaves no file, because half a table reveals which rows came first. Raises `PlanError` for a place that
    cannot take it.
    """

    def __init__(self, path: Path, force: bool) -> None:
        self.path = path
        if path.suffix.lower() not in _SUFFIXES:
            raise PlanError(
                f"protected rows are written to a .parquet or .csv file, got {str(path)!r}", "write 'protected.parquet'"
            )
        if not path.parent.is_dir():
            raise FileError(f"there is no folder {str(path.parent)!r}", "make it first")
        if path.exists() and not path.is_file():
            raise PlanError(f"{str(path)!r} is not a file", "give the name of a file")
        if path.exists() and not force:
            raise PlanError(f"{str(path)!r} exists", "give another name, or force=True to replace it")
        try:
            if path.exists():
                path.open("ab").close()
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".confide-", suffix=path.suffix)
        except OSError as error:
            raise self._refused(error) from None
        self._raw, self._part = os.fdopen(handle, "wb"), Path(name)

    def _refused(self, error: OSError) -> FileError:
        return FileError(
            f"{str(self.path)!r} cannot be written: {error.strerror}", "give a file in a folder that you may write to"
        )

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()
        self._part.unlink(missing_ok=True)

    def set_aside(self, rows: int, columns: int) -> None:
        """Reserve room on the disk for so many rows, where the system can. Their number is public, because each is published."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._raw.fileno(), 0, _GROUP + rows * columns * _CELL)
        except OSError as error:
            if error.errno not in (
                errno.EINVAL,
                errno.EOPNOTSUPP,
                errno.ENOSYS,
            ):  # a file system that sets nothing aside
                raise self._refused(error) from None

    def write(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
        """Write the batches and move them to their place; returns the file's SHA-256."""
        write_table(batches, schema, self.path.suffix.lower(), self._raw)
        self._raw.flush()
        self._raw.truncate()
        os.fsync(self._raw.fileno())
        digest = _digest(self._part)
        self._part.replace(self.path)
        return digest


def write_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, suffix: str, raw: object) -> None:
    """Write batches as a file of that ending."""
    if suffix == ".csv":
        told = (schema.metadata or {})[KEY.encode()]
        raw.write(f"# {KEY} ".encode() + told + b"\n")  # type: ignore[attr-defined]
        with csv.CSVWriter(raw, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    with pq.ParquetWriter(raw, schema) as file:
        for table in _even(batches, schema):
            file.write_table(table, row_group_size=_GROUP)


def _even(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of `_GROUP` rows and a last one with the rest, whatever the batches are."""
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        while held.num_rows >= _GROUP:
            yield held.slice(0, _GROUP)
            held = held.slice(_GROUP)
    if held.num_rows:
        yield held


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
