"""Generators of the smartnoise-synth package, for comparison. Their privacy is theirs, asserted and not proved here.

Guarantee: none of ours. What comes back carries the (epsilon, delta) that the package was asked for as an assertion of its authors. It
takes the number of records as public, draws noise from NumPy's or torch's ordinary generators, and adds up floats: no ledger is charged.
Columns are handed over as cells of the schema's public grids: the package learns no bound or level from records.

Interval: none. There is no release behind the rows, and `confide.refit` refuses them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide.errors import PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee
from confide.methods.synthesis.model import as_column
from confide.results.pages.export import csv_text
from confide.schema import Categorical, ModelMatrix, Schema

__all__ = ["GENERATORS", "SmartNoiseTable", "smartnoise_table"]

#: The generators, by the names of the package.
GENERATORS = ("aim", "dpctgan", "patectgan", "dpgan", "pategan")
# Cells that a numeric column is handed over in.
_CELLS = 32


@dataclass(frozen=True, eq=False, repr=False)
class SmartNoiseTable:
    """Rows of another package. guarantee: what that package asserts; nothing here proves it. No interval, no sidecar."""

    frame: pd.DataFrame
    formula: str
    generator: str
    guarantee: Guarantee

    @property
    def claim(self) -> str:
        """What stands behind the rows."""
        return (
            f"asserted by smartnoise-synth ({self.generator}) and not proved or audited by confide: {self.guarantee}, with the number of "
            "records taken as public"
        )

    def summary(self) -> str:
        """What the table is, in words."""
        return "\n".join(
            [
                f"Synthetic table for {self.formula}, {self.generator} of smartnoise-synth",
                "",
                f"Rows: {len(self.frame):,}",
                f"Guarantee: {self.claim}",
                "Intervals: none; there is no release behind these rows",
            ]
        )

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.formula!r} by {self.generator!r}: {len(self.frame):,} rows, asserted {self.guarantee}>"

    def _repr_html_(self) -> str:
        return f"{self.frame.head().to_html()}<p>{escape(self.claim)}</p>"

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the rows as Parquet or CSV; there is no sidecar."""
        place = Path(path)
        if place.suffix.lower() == ".parquet":
            self.frame.to_parquet(place, index=False)
        elif place.suffix.lower() == ".csv":
            place.write_text(csv_text(self.frame, index=False), encoding="utf-8", newline="")
        else:
            raise PlanError(f'a table is written as .parquet or .csv, got {str(path)!r}; write save("table.parquet")')
        return (place,)


def smartnoise_table(
    data: Any,
    formula: str,
    *,
    schema: Schema | str | os.PathLike[str] | None,
    privacy: Guarantee,
    path: str | os.PathLike[str] | None = None,
    rows: int | None = None,
    generator: str = "aim",
) -> SmartNoiseTable:
    """Rows of a generator of smartnoise-synth, over the columns of a formula.

    data: a pandas DataFrame; schema: its public description; privacy: an `ApproxDP`. rows: their number, None for that of the
    complete records. Raises `PlanError` when the package is not installed or something does not fit, `PrivacyError` for another guarantee.
    """
    if generator not in GENERATORS:
        raise PlanError(f'generator must be one of {", ".join(GENERATORS)}, got {generator!r}; write generator="aim"')
    if not isinstance(privacy, ApproxDP):
        raise PrivacyError(
            f"smartnoise-synth states (epsilon, delta), got {privacy}; write privacy=cf.ApproxDP(1.0, 1e-6)"
        )
    if not isinstance(data, pd.DataFrame):
        raise PlanError(f"generator={generator!r} takes a pandas DataFrame and a schema, got {type(data).__name__}")
    if schema is None:
        raise PlanError(
            f"generator={generator!r} needs a schema; write smartnoise_table(frame, formula, schema=schema, ...)"
        )
    whole = schema if isinstance(schema, Schema) else Schema.from_toml(schema)
    columns = ModelMatrix.of(formula, whole).columns
    package = _package(generator)
    codes, cells = _cells(data, whole, columns)
    public = pd.DataFrame({name: np.arange(max(cells.values())) % cells[name] for name in columns})
    style = "cube" if generator == "aim" else "gan"
    transformer = package.TableTransformer.from_pandas(public, style=style, ordinal_columns=list(columns))
    transformer.fit(public)
    # its batches of 500 fail below 500 records; it takes their number as public
    settings = {"batch_size": min(500, len(codes))} if generator == "dpctgan" else {}
    made = package.Synthesizer.create(generator, epsilon=privacy.epsilon, delta=privacy.delta, **settings)
    made.fit(codes, transformer=transformer)
    found = pd.DataFrame(made.sample(len(codes) if rows is None else rows))
    found.columns = pd.Index(columns)
    table = SmartNoiseTable(_decoded(found, whole, cells), formula, generator, privacy)
    if path is not None:
        table.save(Path(path))
    return table


def _package(generator: str) -> Any:
    try:
        return importlib.import_module("snsynth")
    except ImportError:
        raise PlanError(
            f"generator={generator!r} needs smartnoise-synth, which is not installed here; install it with "
            "pip install 'confide-lab[smartnoise]', or write cf.synthesize(data, formula, ...)"
        ) from None


def _cells(data: pd.DataFrame, schema: Schema, columns: tuple[str, ...]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The complete records as cells of public grids, and how many cells each column has."""
    found: dict[str, NDArray[np.int64]] = {}
    cells: dict[str, int] = {}
    complete = np.ones(len(data), dtype=np.bool_)
    for name in columns:
        column = schema[name]
        if isinstance(column, Categorical):
            codes = column.code_labels(data[name].tolist())
        else:
            codes = column.code(pd.to_numeric(data[name], errors="coerce").to_numpy(dtype=np.float64))
        cells[name] = column.steps if isinstance(column, Categorical) else min(column.steps, _CELLS)
        complete &= codes >= 0
        found[name] = (codes * cells[name] // column.steps).astype(np.int64)
    return pd.DataFrame({name: values[complete] for name, values in found.items()}), cells


def _decoded(frame: pd.DataFrame, schema: Schema, cells: Mapping[str, int]) -> pd.DataFrame:
    """Cells as values of the columns' kinds: the middle of each cell."""
    found: dict[str, Any] = {}
    for name in frame.columns:
        column = schema[name]
        codes = frame[name].to_numpy(dtype=np.int64)
        if isinstance(column, Categorical):
            found[name] = pd.Categorical.from_codes(codes.tolist(), categories=pd.Index(column.levels))
        else:
            found[name] = as_column(schema, name, (2 * codes + 1) * column.steps // (2 * cells[name]))
    return pd.DataFrame(found)
