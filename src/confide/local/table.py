"""Protected tables in files: read with what they say of themselves."""

from __future__ import annotations

import hashlib
from math import exp, log, log1p, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from confide._lazy import later
from confide.errors import PlanError, ReleaseError
from confide.local.protection import DIGEST, KEY, Protection

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["read", "read_protected"]

# That a table as it was written is refused as one that was cut.
_CHANCE = 1e-9


def read(path: str | Path) -> pd.DataFrame:
    """A protected table as a frame, which carries its protection in `attrs`; for `cf.local.fit` and for looking at it.

    Raises `ReleaseError` for a file that does not say how it was protected.
    """
    return read_protected(path)[0]


def read_protected(data: Any) -> tuple[pd.DataFrame, Protection, str]:
    """A protected table, its protection and its digest, from a Parquet or CSV file that `confide protect` wrote, or a frame read from one.

    The digest is the file's SHA-256, which the receipt in the ledger names; of a frame that comes from no file, such as a stream's, that of
    its protection. A frame carries both in `attrs`. Raises `ReleaseError` where a table does not say how it was protected, or was cut
    since.
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
                f"{str(path)!r} cannot be read: {_why(path, error)}; give a file that `confide protect` wrote"
            ) from None
    attrs = getattr(data, "attrs", None)
    if attrs is None:
        raise PlanError(
            f"data must be a file or a pandas frame, got {type(data).__name__}; write cf.local.fit('protected.parquet', 'y ~ x')"
        )
    if KEY not in attrs:
        raise ReleaseError(_SILENT.format("the frame", "read the file with cf.local.read"))
    told = Protection.from_json(attrs[KEY])
    return _whole(data, told), told, attrs.get(DIGEST) or hashlib.sha256(told.to_json().encode()).hexdigest()


def _whole(frame: pd.DataFrame, told: Protection) -> pd.DataFrame:
    """The frame, unless a column was cut back to its bounds, or its rows were chosen so: corrections need all of the noise.

    A value within its bounds stays there with probability 1 - (1 - zeta) e^(-width / (sqrt(2) sd)) at most, that of one in their middle.
    """
    for name, one in told.columns.items():
        if name not in frame or frame[name].dtype.kind not in "fiu":
            continue
        values = frame[name]
        leaves = (1 - told.zeta) * exp(-(one.high - one.low) / (sqrt(2) * one.sd))
        if len(values) * log1p(-leaves) < log(_CHANCE) and values.between(one.low, one.high).all():
            raise ReleaseError(
                f"column {name!r} carries noise of sd {one.sd:.3g}, and all of its {len(values):,} values lie within {one.low:g} and "
                f"{one.high:g}: they were cut back or chosen after they were protected, and no correction holds for them; give the table "
                "as `confide protect` wrote it"
            )
    return frame


def _why(path: Path, error: Exception) -> str:
    """Why a file cannot be read, where the reader's own words are the path alone."""
    return "no such file" if not path.exists() else str(getattr(error, "strerror", None) or error)


_SILENT = "{} does not say how it was protected, so that nothing can be corrected; {}"


def _from_parquet(path: Path) -> tuple[pd.DataFrame, Protection]:
    table = pq.read_table(path)
    told = (table.schema.metadata or {}).get(KEY.encode())
    if told is None:
        raise ReleaseError(_SILENT.format(repr(str(path)), "give a file that `confide protect` wrote"))
    return _framed(table, Protection.from_json(told))


def _from_csv(path: Path) -> tuple[pd.DataFrame, Protection]:
    with path.open("rb") as file:
        first = file.readline()
        mark = f"# {KEY} ".encode()
        if not first.startswith(mark):
            raise ReleaseError(_SILENT.format(repr(str(path)), "give a file that `confide protect` wrote"))
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
            f"the file says that it holds {', '.join(missing)}, and does not; ask for it as `confide protect` wrote it"
        )
    frame = table.to_pandas()
    frame.attrs[KEY] = told.to_json()
    return frame, told
