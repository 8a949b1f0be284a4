"""A publication's file in which one part was put in the place of another says so, and nothing is printed that was not paid."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pytest

import confide as cf
from confide.core.files import to_file
from confide.errors import ReleaseError
from confide.noise import SimulatedNoise

SCHEMA = cf.Schema(
    {"x": cf.Numeric(0, 1), "g": cf.Categorical(["a", "b"]), "h": cf.Categorical(["u", "v"])}, unit=cf.Unit("pid")
)
PUB = cf.Publication(
    {
        "counts": cf.tables.Counts("g * h", inference="dataset"),
        "means": cf.tables.Means("x ~ g", inference="dataset", where="h == 'u'"),
    }
)


@cache
def text() -> str:
    frame = pd.DataFrame({"pid": range(60), "x": 0.5, "g": "a", "h": "u"})
    made = cf.release(PUB, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    return made.to_json()


def statements(body: dict[str, Any], *, whole: bool, parts: bool) -> list[dict[str, Any]]:
    plans = [body["plan"]] * whole + [child["plan"] for child in body["plan"]["children"]] * parts
    found = [one for plan in plans for one in (plan["requested"], *plan["guarantees"])]
    return found + (body["guarantees"] if whole else [])


def another_unit(whole: bool, parts: bool) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        for one in statements(body, whole=whole, parts=parts):
            one["unit"] = "household"

    return change


def asked(body: dict[str, Any]) -> Any:
    return body["plan"]["method"]["parameters"]


def part(body: dict[str, Any], place: int) -> Any:
    return body["plan"]["children"][place]["plan"]


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unit of the whole": another_unit(True, False),
    "unit of the parts": another_unit(False, True),
    "unit everywhere but in the schema": another_unit(True, True),
    "a question left out": lambda body: asked(body)["analyses"].pop(),
    "shares": lambda body: asked(body).update(shares={"counts": 1000}),
    "another subgroup": lambda body: part(body, 1)["method"]["parameters"].update(where="h == 'v'"),
    "another method": lambda body: part(body, 1).update(method=part(body, 0)["method"]),
    "what a part asked for": lambda body: part(body, 0)["requested"].update(mu=(0.01).hex()),
    "what a part gives": lambda body: part(body, 0)["guarantees"][0].update(mu=(0.01).hex()),
}


def test_the_file_itself_is_read() -> None:
    assert list(cf.infer(cf.Release.from_json(text()))) == ["counts", "means"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_whose_parts_are_exchanged_is_refused(change: str) -> None:
    body = cf.Release.from_json(text()).to_dict()
    CHANGES[change](body)
    with pytest.raises(ReleaseError):
        cf.infer(cf.Release.from_json(to_file("release", body)))
