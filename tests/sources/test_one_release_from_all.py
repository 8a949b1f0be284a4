"""The same persons in every kind of file, with the faults of office files declared: one release, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf

pytest.importorskip("pyreadstat")
pytest.importorskip("python_calamine")

ROWS = 800
IN_FILE = "Monatseinkommen (\u20ac)"
LEVELS = ["m\u00e4nnlich", "weiblich"]


def _people() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    income = np.round(rng.lognormal(7.5, 0.7, ROWS), 2)
    income[rng.random(ROWS) < 0.1] = -99
    age = rng.integers(18, 90, ROWS).astype(float)
    age[rng.random(ROWS) < 0.1] = 999
    return pd.DataFrame({IN_FILE: income, "sex": rng.integers(1, 4, ROWS), "age": age})


def _schema(**file: Any) -> cf.Schema:
    """Code 3 of sex is "no answer"; the labels stand behind the codes."""
    columns = {
        "income": cf.Numeric(0, 20_000, missing=[-99]),
        "sex": cf.Categorical(LEVELS, codes=["1", "2"], missing=["3"]),
        "age": cf.Integer(18, 90, missing=[{"from": 997, "to": 999}]),
    }
    return cf.Schema(columns, dataset="persons", file={"names": {"income": IN_FILE}, **file})


def _german(people: pd.DataFrame) -> str:
    """As a spreadsheet saves it: a title, the header, the rows, a line of sums, and an empty one."""
    amounts = [f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) for amount in people[IN_FILE]]
    rows = zip(amounts, people["sex"].map("{:02d}".format), people["age"].map("{:.0f}".format), strict=True)
    return "\r\n".join(["Personen;;", f"{IN_FILE};sex;age", *map(";".join, rows), "Summe;;", ""])


TEXT = {"delimiter": ";", "decimal": ",", "thousands": ".", "skip": 1, "not_records": ["Summe"]}


def _csv(encoding: str) -> Callable[[Path, pd.DataFrame], Any]:
    def made(folder: Path, people: pd.DataFrame) -> Any:
        (folder / "p.csv").write_bytes(_german(people).encode(encoding))
        return cf.read(folder / "p.csv", _schema(**TEXT, encoding=encoding))

    return made


def _sheet(ending: str) -> Callable[[Path, pd.DataFrame], Any]:
    def made(folder: Path, people: pd.DataFrame) -> Any:
        path = folder / f"p.{ending}"
        with pd.ExcelWriter(path) as book:
            pd.DataFrame({"notes": ["of the office"]}).to_excel(book, sheet_name="Notizen", index=False)
            whole = pd.concat([people.astype(object), pd.DataFrame({IN_FILE: ["Summe"]})])
            whole.to_excel(book, sheet_name="Daten", index=False, startrow=1)
        return cf.read(path, _schema(sheet="Daten", skip=1, not_records=["Summe"]))

    return made


def _statistics(ending: str, **settings: Any) -> Callable[[Path, pd.DataFrame], Any]:
    def made(folder: Path, people: pd.DataFrame) -> Any:
        import pyreadstat

        path = folder / f"p.{ending}"
        write = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[ending]
        write(people.rename(columns={IN_FILE: "income"}), str(path), **settings)
        return cf.read(path, _schema())

    return made


def _parquet(folder: Path, people: pd.DataFrame) -> Any:
    people.to_parquet(folder / "p.parquet")
    return cf.read(folder / "p.parquet", _schema())


FILES: dict[str, Callable[[Path, pd.DataFrame], Any]] = {
    "CSV, UTF-8": _csv("utf-8"),
    "CSV, cp1252": _csv("cp1252"),
    "CSV, UTF-16": _csv("utf-16"),
    "xlsx": _sheet("xlsx"),
    "ods": _sheet("ods"),
    "dta": _statistics("dta"),
    "sav": _statistics(
        "sav",
        variable_value_labels={"sex": {1: LEVELS[0], 2: LEVELS[1], 3: "k.A."}},
        missing_ranges={"income": [-99], "sex": [3], "age": [{"lo": 997, "hi": 999}]},
    ),
    "xpt": _statistics("xpt"),
    "Parquet": _parquet,
    "pandas": lambda folder, people: cf.read(people, _schema()),
}


@pytest.mark.parametrize("kind", FILES)
def test_one_release_from_all_files(kind: str, tmp_path: Path) -> None:
    people = _people()
    method = cf.tables.Means("income + age ~ sex", inference="population")
    plain = cf.read(people.rename(columns={IN_FILE: "income"}), _schema())
    found = [
        cf.release(method, source, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(3)).to_json()
        for source in (plain, FILES[kind](tmp_path, people))
    ]
    assert found[0] == found[1]
    table = cf.infer(cf.Release.from_json(found[1]))
    known = people[(people[IN_FILE] > 0) & (people["sex"] < 3)]
    truth = known.groupby("sex")[IN_FILE].mean().to_numpy()
    shown = table.to_frame().iloc[1:3]
    wide = (shown["ci_high"] - shown["ci_low"]).to_numpy()
    assert (
        list(shown["sex"]) == LEVELS
        and (np.abs(shown["estimate"].to_numpy() - truth) < wide).all()
        and (wide < truth).all()
    )
