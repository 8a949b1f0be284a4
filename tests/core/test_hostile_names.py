"""Names that come from a file are shown and never run: no control character on a terminal, no element in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.hostile import signed
from tests.few import few
from typer.testing import CliRunner

import confide as cf
from confide import registry
from confide.cli import app
from confide.noise import SimulatedNoise

SCRIPT, ESCAPE, MATH = "<script>alert(1)</script>", "\x1b[2J\x9b1m\u202eage", "$\\frac{"
LEVELS = ["@SUM(1)", "<b>ok</b>\n", "\x07bell\r"]
_COLUMN = cf.Numeric(0.5, 2.5, on_missing="midpoint")
SCHEMA = cf.Schema(
    {
        SCRIPT: _COLUMN,
        ESCAPE: _COLUMN,
        MATH: _COLUMN,
        "y": _COLUMN,
        "k\x1b[31m": cf.Categorical(LEVELS, on_missing=LEVELS[0]),
    }
)
_LINE = f"y ~ `{SCRIPT}` + `{ESCAPE}` + `{MATH}` + `k\x1b[31m`"
METHODS: dict[str, tuple[dict[str, Any], Any]] = {
    "least_squares": ({"formula": _LINE}, cf.GDP(4.0)),
    "adassp": ({"formula": _LINE}, cf.GDP(4.0)),
    "class_means": ({"formula": f"`k\x1b[31m` ~ `{SCRIPT}` + `{ESCAPE}` + `{MATH}`"}, cf.GDP(4.0)),
    "counts": ({"formula": f"`k\x1b[31m` * cut(`{ESCAPE}`, 1)", "inference": "population"}, cf.GDP(4.0)),
    "means": ({"formula": f"`{MATH}` + `{SCRIPT}` ~ `k\x1b[31m`", "inference": "dataset"}, cf.GDP(4.0)),
    "quantile": ({"column": ESCAPE}, cf.PureDP(1.0)),
    "wavelet": ({"formula": f"`{SCRIPT}` ~ `{ESCAPE}`"}, cf.GDP(4.0)),
    "kernel": ({"formula": f"`{MATH}` ~ `{SCRIPT}`"}, cf.GDP(4.0)),
    "synthetic_table": ({"formula": _LINE}, cf.GDP(4.0)),
}


def harmless(text: str) -> bool:
    return all(char == "\n" or char.isprintable() for char in text)


@pytest.mark.parametrize("name", few(METHODS, 0, 1, 2, 3))
def test_hostile_names_are_shown_and_never_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, privacy = METHODS[name]
    data = cf.read(SCHEMA.sample(2_000, 1), SCHEMA)
    release = cf.release(registry.make(name, **parameters), data, privacy, ledger=None, noise=SimulatedNoise(1))
    again = cf.Release.from_json(release.to_json())
    result = cf.infer(again)
    for text in (str(again), again.plan.summary(), result.summary(), str(result)):
        assert harmless(text), text
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for markup in (page, result._repr_html_()):
        assert "<script>alert" not in markup and "<b>ok" not in markup and "\x1b" not in markup
    monkeypatch.chdir(tmp_path)
    release.save("release.json")
    done = CliRunner().invoke(app, ["infer", "release.json", "--plot", "p.svg"])
    assert done.exit_code == 0 and harmless(done.stdout) and harmless(done.stderr), done.stderr
    assert "<script>" not in Path("p.svg").read_text(encoding="utf-8")


def test_words_of_a_forged_file_are_shown_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = cf.read(SCHEMA.sample(2_000, 1), SCHEMA)
    release = cf.release(
        registry.make("least_squares", formula="y ~ 1"), data, cf.GDP(4.0), ledger=None, noise=SimulatedNoise(1)
    )
    body = json.loads(release.to_json())["body"]
    body["plan"] |= {"target": ESCAPE + SCRIPT, "intervals_for": ESCAPE + SCRIPT, "warnings": [ESCAPE]}
    monkeypatch.chdir(tmp_path)
    Path("release.json").write_text(signed(body), encoding="utf-8")
    done = CliRunner().invoke(app, ["infer", "release.json", "--report", "page.html"])
    assert done.exit_code == 0 and harmless(done.stdout) and harmless(done.stderr)
    assert "<script>alert" not in Path("page.html").read_text(encoding="utf-8")
    body["plan"]["method"]["name"] = ESCAPE
    Path("other.json").write_text(signed(body), encoding="utf-8")
    refused = CliRunner().invoke(app, ["infer", "other.json"])
    assert refused.exit_code == 3 and harmless(refused.stderr)
