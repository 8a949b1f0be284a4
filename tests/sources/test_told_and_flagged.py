"""Files that are read wrongly: the steward is told before the charge, the reader after, and once declared the mean is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide as cf

N = 5_000
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Wrong:
    """What a file holds, what a schema first says of it, and what makes it right.

    told: counts of the preflight by name, as a function of the cells; flag: of the first release.
    """

    cells: Callable[[Array, Array], list[str]]
    high: float
    mended: dict[str, Any]
    told: str
    flag: str
    file: dict[str, Any] | None = None


def _german(values: Array, odd: Array) -> list[str]:
    return [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in values]


def _comma(values: Array, odd: Array) -> list[str]:
    return [f'"{value:,.0f}"' for value in values]


def _coded(code: str) -> Callable[[Array, Array], list[str]]:
    return lambda values, odd: [code if is_odd else f"{value:.2f}" for value, is_odd in zip(values, odd, strict=True)]


def _with_commas(values: Array, odd: Array) -> list[str]:
    return [cell.replace(".", ",") for cell in _coded("999.0")(values, odd)]


WRONG = {
    "decimal commas": Wrong(
        _german, 9_000, {"file": {"decimal": ",", "thousands": "."}}, "unread", "values_unread", {"delimiter": ";"}
    ),
    "commas of thousands": Wrong(_comma, 9_000, {"file": {"thousands": ","}}, "unread", "values_unread"),
    "-99 in a fifth": Wrong(_coded("-99"), 9_000, {"missing": [-99]}, "below", "values_clipped"),
    "99999 in a fifth": Wrong(_coded("99999"), 9_000, {"missing": [99999]}, "above", "values_clipped"),
    "999 in a fifth of the ages": Wrong(_coded("999"), 110, {"missing": [999]}, "above", "values_clipped"),
    "999,0 as the file writes it": Wrong(
        _with_commas, 110, {"missing": ["999,0"]}, "above", "values_clipped", {"delimiter": ";", "decimal": ","}
    ),
}


@pytest.mark.parametrize("bounds", ["declared", "auto"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_it_is_told_flagged_and_right_once_declared(wrong: Wrong, bounds: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(49, 12, N).clip(18, 95) if wrong.high < 1_000 else rng.lognormal(7.7, 0.5, N).clip(50, 8_900)
    odd = rng.random(N) < 0.2
    cells = wrong.cells(values, odd)
    path = tmp_path / "persons.csv"
    sexes = rng.choice(["f", "m"], N)
    mark = (wrong.file or {}).get("delimiter", ",")
    path.write_text("\n".join([f"x{mark}sex", *(f"{cell}{mark}{sex}" for cell, sex in zip(cells, sexes, strict=True))]))
    columns = {"x": cf.Numeric(0, wrong.high), "sex": cf.Categorical(["f", "m"])}
    mended = {**wrong.mended, "file": {**(wrong.file or {}), **wrong.mended.get("file", {})}}
    first, right = cf.Schema(columns, file=wrong.file), cf.Schema(columns, **mended)

    seen = cf.preflight(cf.read(path, first)).columns["x"]
    expected = int(odd.sum()) if wrong.told != "unread" else sum("," in cell for cell in cells)
    assert getattr(seen, wrong.told) == expected
    assert seen.below + seen.above + seen.unread == expected
    again = cf.preflight(cf.read(path, right)).columns["x"]
    assert (again.below, again.above, again.unread) == (0, 0, 0)

    released = _mean(path, first, bounds)
    known = values if wrong.told == "unread" else values[~odd]
    assert wrong.flag in released.flags
    assert (released.status == "valid") == (wrong.told != "unread")
    answer = _mean(path, right, bounds)
    assert answer.status == "valid" and not {"values_unread", "values_clipped"} & set(answer.flags)
    total = answer.to_frame().iloc[0]
    assert abs(total["estimate"] - known.mean()) < 4 * total["std_err"] and total["std_err"] < 0.03 * known.mean()


def _mean(path: Path, schema: cf.Schema, bounds: str) -> Any:
    method = cf.tables.Means("x ~ sex", inference="population", bounds=bounds)
    noise = cf.noise.SimulatedNoise(7)
    return cf.infer(cf.release(method, cf.read(path, schema), cf.GDP(1.0), ledger=None, noise=noise))


def test_a_field_more_than_the_header_is_told(tmp_path: Path) -> None:
    """As R's write.table(sep=",") writes it: every record would be dropped, after the charge."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x,sex", *(f'"{at}",{at % 50},f' for at in range(200))]))
    schema = cf.Schema({"x": cf.Numeric(0, 50), "sex": cf.Categorical(["f", "m"])})
    found = cf.preflight(cf.read(path, schema))
    assert (found.records, found.other_width, found.without_any) == (200, 200, 200)
    assert "200" in str(found) and "width" in str(found)
