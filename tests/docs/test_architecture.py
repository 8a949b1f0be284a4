"""The map of the house names what stands: the rooms of the import contract, and the files that new things go to."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAP = next(ROOT.glob("docs/**/architecture.md")).read_text()
SOURCE = ROOT / "src/confide"
_CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
ROOMS = [room.strip() for layer in _CONTRACT["layers"] for room in re.split(r"[|:]", layer)]


def test_every_room_of_the_contract_stands_on_the_map() -> None:
    drawn = MAP.split("```text")[2].split("```")[0]
    for room in ROOMS:
        name = room.removeprefix("confide.")
        family = name.startswith("methods.") and "methods/<family>" in drawn
        assert family or re.search(rf"\b{name}\b", drawn), f"{room} is not on the map"


def test_every_room_that_stands_is_in_the_contract() -> None:
    inside = [*SOURCE.iterdir(), *(SOURCE / "methods").iterdir()]
    found = {
        ".".join(one.relative_to(ROOT / "src").with_suffix("").parts)
        for one in inside
        if (one.suffix == ".py" or (one / "__init__.py").exists()) and not one.name.startswith("_")
    }
    assert found - {"confide.methods"} <= set(ROOMS)


def test_new_things_go_to_files_that_are_there() -> None:
    table = MAP.split("## Where something new goes")[1].split("##")[0]
    named = [name for name in re.findall(r"`([\w/]+(?:\.py|/))`", table) if "/" in name]
    assert len(named) > 10
    assert [name for name in named if not (SOURCE / name).exists()] == []
