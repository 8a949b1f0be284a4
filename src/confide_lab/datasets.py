"""The data sets of the experiments: where they are, what is public about them, and the two ways in which they are used.

Files come from the folder that the environment variable CONFIDE_DATA names (its manifest.json says what is there), or else are fetched
once from the UCI repository into a cache; either way a checksum decides. Two variants of a table:

- "public": bounds that an expert could state beforehand (the manifest's, or those kept here), an intercept, labels as indicators without
  the first level, missing values dropped; columns that name the record or hold the answer are left out.
- "paper": what Lin, Slavkovic, Bhoomireddy 2025 (arXiv 2510.16974) must have used, found by reproducing the column of their Table 2 that
  is not private: no intercept, the smallest and the largest value of each column as its bounds (which is not private), missing code
  -200 as a measurement, a subject number and two columns of random numbers among the features.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pandas as pd

from confide.errors import PlanError, SourceError
from confide.schema import Categorical, Integer, Numeric, Provenance, Schema
from confide.schema.formulas.names import quoted

__all__ = ["ENVIRONMENT", "SETS", "Recipe", "Table", "available", "content_digest", "frame_of", "table"]

ENVIRONMENT = "CONFIDE_DATA"
_URL = "https://archive.ics.uci.edu/static/public/{id}/data.csv"
_HELP = f"set {ENVIRONMENT} to a folder that holds the Parquet files and their manifest.json, as in: export {ENVIRONMENT}=/path/to/data"
_LAB = Provenance("lab", "smallest and largest value of the records")


@dataclass(frozen=True)
class Recipe:
    """How a file becomes a regression. name: the file's; target; out: columns left out; paper_out: those of the paper's variant."""

    name: str
    target: str
    out: tuple[str, ...] = ()
    paper_out: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Table:
    """A regression on real records: frame, schema, formula, and the bounds of the response."""

    name: str
    variant: str
    frame: pd.DataFrame
    schema: Schema
    formula: str
    target: str

    @property
    def response_bounds(self) -> tuple[float, float]:
        """The public bounds of the response."""
        column = self.schema[self.target]
        assert not isinstance(column, Categorical)
        return column.low, column.high


#: Short names of the experiments. D1 to D9 are those of Table 2 of the paper.
SETS: Mapping[str, Recipe] = {
    "D1": Recipe("lt_fs_id", "number_of_barriers"),
    "D2": Recipe("liver_disorders", "selector"),
    "D3": Recipe("auction_verification", "property_price"),
    "D4": Recipe("abalone", "rings"),
    "D5": Recipe("parkinsons_telemonitoring", "total_updrs", out=("subject",), paper_out=()),
    "D6": Recipe("wine_quality", "quality"),
    "D7": Recipe("air_quality", "co_gt", out=("datetime", "nmhc_gt"), paper_out=("datetime",)),
    "D8": Recipe("appliances_energy", "appliances", out=("date",)),
    "D9": Recipe("superconductivity_sample", "critical_temp"),
    "bike": Recipe("bike_sharing_hourly", "cnt", out=("instant", "casual", "registered", "dteday")),
    "airfoil": Recipe("airfoil_self_noise", "sound_pressure_level"),
    "concrete": Recipe("concrete_compressive_strength", "compressive_strength"),
    "energy": Recipe("energy_efficiency", "heating_load", out=("cooling_load",)),
    "elevators": Recipe("elevators", "goal"),
    "casp": Recipe("protein_casp", "rmsd"),
    "kin8nm": Recipe("kin8nm", "y"),
    "yacht": Recipe("yacht_hydrodynamics", "residuary_resistance"),
    "california": Recipe("california_housing", "median_house_value"),
    "adult": Recipe("adult", "hours_per_week", out=("education", "native_country", "source_split", "fnlwgt")),
}


def frame_of(name: str) -> pd.DataFrame:
    """All columns of a file by its own name, as they stand; `SourceError` when it cannot be had."""
    return pd.read_parquet(io.BytesIO(_bytes(name, _entry(name))))


@cache
def table(name: str, variant: str = "public") -> Table:
    """The table of a short name (`SETS`), variant "public" or "paper".

    Raises `PlanError` for another name or variant, `SourceError` when the file cannot be had, with what to do.
    """
    if name not in SETS:
        raise PlanError(f"there is no data set {name!r}; there are {', '.join(SETS)}")
    if variant not in ("public", "paper"):
        raise PlanError(f'variant must be "public" or "paper", got {variant!r}')
    recipe = SETS[name]
    entry = _entry(recipe.name)
    frame = pd.read_parquet(io.BytesIO(_bytes(recipe.name, entry)))
    if variant == "public":
        frame = frame.drop(columns=list(recipe.out))
        columns: dict[str, Any] = {
            str(column): _public(str(column), frame[column], entry["bounds"]) for column in frame
        }
        numbers = [column for column in columns if not isinstance(columns[column], Categorical)]
        # labels that are missing count as the first level, as indicators that are all 0
        frame = _filled(frame.dropna(subset=numbers), columns).reset_index(drop=True)
    else:
        out = recipe.out if recipe.paper_out is None else recipe.paper_out
        frame = _indicated(frame.drop(columns=list(out)).fillna({} if name != "D7" else -200.0))
        columns = {str(column): _observed(frame[column]) for column in frame}
    features = " + ".join(quoted(column) for column in columns if column != recipe.target)
    formula = f"{quoted(recipe.target)} ~ {'0 + ' if variant == 'paper' else ''}{features}"
    return Table(name, variant, frame, Schema(columns, dataset=recipe.name), formula, recipe.target)


def available(name: str) -> str | None:
    """None when the file of a short name can be read without fetching anything, else what to do."""
    recipe = SETS[name]
    try:
        entry = _entry(recipe.name)
    except SourceError as error:
        return str(error)
    found = _place(entry)
    return None if found is not None else f"{recipe.name} is not here; {_HELP}"


# columns --------------------------------------------------------------------------------------------------------------


def _public(name: str, values: pd.Series[Any], bounds: Mapping[str, Any]) -> Any:
    if pd.api.types.is_bool_dtype(values):
        return Integer(0, 1)
    if not pd.api.types.is_numeric_dtype(values):
        return Categorical(sorted(values.dropna().unique()))
    low, high = bounds[name]
    if pd.api.types.is_integer_dtype(values) and float(low).is_integer() and float(high).is_integer():
        return Integer(low, high)
    return Numeric(low, high)


def _observed(values: pd.Series[Any]) -> Any:
    low, high = float(values.min()), float(values.max())
    if pd.api.types.is_integer_dtype(values) and (low, high) == (0.0, 1.0):
        return Integer(0, 1, provenance=_LAB)
    return Numeric(low, high if high > low else low + 1.0, provenance=_LAB)


def _indicated(frame: pd.DataFrame) -> pd.DataFrame:
    """Labels as columns of 0 and 1: one for each level of three or more, the second of two."""
    made: dict[str, Any] = {}
    for name in frame:
        values = frame[name]
        if pd.api.types.is_bool_dtype(values):
            made[str(name)] = values.astype("int64")
        elif pd.api.types.is_numeric_dtype(values):
            made[str(name)] = values
        else:
            levels = sorted(values.unique())
            for level in levels if len(levels) > 2 else levels[1:]:
                made[f"{name}_{level}"] = (values == level).astype("int64")
    return pd.DataFrame(made)


def _filled(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    fixed = {
        name: frame[name].fillna(column.levels[0]).astype(str) if isinstance(column, Categorical) else frame[name]
        for name, column in columns.items()
    }
    return pd.DataFrame(fixed).astype({name: "int64" for name in frame if pd.api.types.is_bool_dtype(frame[name])})


# files ----------------------------------------------------------------------------------------------------------------


@cache
def _catalogue() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("datasets.json").read_text(encoding="utf-8"))
    return found


def _entry(name: str) -> dict[str, Any]:
    """file, sha256 and bounds: of the folder's manifest where there is one, else those kept here."""
    kept = _catalogue().get(name)
    folder = os.environ.get(ENVIRONMENT)
    if folder:
        path = Path(folder) / "manifest.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["datasets"][name]
            bounds = {column: (pair["lower"], pair["upper"]) for column, pair in (found.get("bounds") or {}).items()}
            return {**(kept or {}), "file": found["file"], "sha256": found["sha256"], "bounds": bounds}
        except FileNotFoundError:
            pass
        except (OSError, KeyError, TypeError, ValueError):
            raise SourceError(f"{path} is no manifest that lists {name}; {_HELP}") from None
    if kept is None:
        raise SourceError(f"{name} is in no catalogue; {_HELP}")
    return dict(kept)


def _place(entry: Mapping[str, Any]) -> Path | None:
    folders = [os.environ.get(ENVIRONMENT), str(_cache())]
    return next((Path(f) / entry["file"] for f in folders if f and (Path(f) / entry["file"]).is_file()), None)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "confide" / "data"


def _bytes(name: str, entry: Mapping[str, Any]) -> bytes:
    place = _place(entry)
    if place is None:
        return _fetched(name, entry)
    found = place.read_bytes()
    if hashlib.sha256(found).hexdigest() != entry["sha256"] and place.parent != _cache():
        raise SourceError(f"{place.name} is not the file that the manifest describes: its sha256 differs; {_HELP}")
    return found


def _fetched(name: str, entry: Mapping[str, Any]) -> bytes:
    """The file from its original source, as Parquet bytes; kept only when every value is what it must be."""
    number = entry.get("uci_id")
    if number is None:
        raise SourceError(f"{name} is not here and cannot be fetched (DOI {entry.get('doi')}); {_HELP}")
    url = _URL.format(id=number)
    try:
        with urlopen(url, timeout=60) as answer:
            frame = pd.read_csv(io.BytesIO(_unpacked(answer.read())))
    except (URLError, OSError, ValueError) as error:
        raise SourceError(f"{name} cannot be fetched from {url} ({type(error).__name__}); {_HELP}") from None
    frame = frame.rename(columns={column: _snake(str(column)) for column in frame})
    wanted = list(entry["columns"])
    if set(wanted) - set(frame) or content_digest(frame[wanted]) != entry["content"]:
        raise SourceError(f"{url} does not hold the values of {name} that are expected; {_HELP}")
    room = io.BytesIO()
    frame[wanted].to_parquet(room, index=False)
    place = _cache() / entry["file"]
    place.parent.mkdir(parents=True, exist_ok=True)
    hidden = place.with_suffix(f".{os.getpid()}")
    hidden.write_bytes(room.getvalue())
    hidden.replace(place)
    return room.getvalue()


def _unpacked(data: bytes) -> bytes:
    if data[:2] != b"PK":
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return packed.read(next(name for name in packed.namelist() if name.endswith(".csv")))


def _snake(name: str) -> str:
    """lower_snake_case.

    >>> _snake("Whole_weight"), _snake("pH"), _snake("Jitter:PPQ5")
    ('whole_weight', 'p_h', 'jitter_ppq5')
    """
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower()).strip("_")


def content_digest(frame: pd.DataFrame) -> str:
    """A checksum of names and values, whatever the file's form: numbers as doubles, all else as text.

    >>> content_digest(pd.DataFrame({"a": [1, 2]})) == content_digest(pd.DataFrame({"a": [1.0, 2.0]}))
    True
    """
    digest = hashlib.sha256()
    for name in frame:
        digest.update(f"{name}\0".encode())
        values = frame[name]
        if pd.api.types.is_numeric_dtype(values):
            digest.update(np.ascontiguousarray(values.to_numpy(dtype="<f8", na_value=np.nan)).tobytes())
        else:
            digest.update("\0".join("" if pd.isna(value) else str(value) for value in values).encode())
    return digest.hexdigest()
