"""`confide curve`: what is typed is answered in its own notation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.cli_runner import good, run


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("GDP(1) + GDP(2)", "GDP(1) * GDP(2)"),
        ("gauss(1)", "'gauss(1)' is not understood"),
        ("GDP 1", "'GDP 1' is not a guarantee"),
        ("laplace(1", "'laplace(1' is not a guarantee"),
        ("", "'' is not a guarantee"),
        ("GDP(-1)", "write for instance GDP(1.0)"),
        ("PureDP(-1)", "write for instance PureDP(0.5)"),
        ("ApproxDP(1,0)", "ApproxDP(1.0, 1e-6)"),
        ("laplace(0.1) ** 2.5", "'laplace(0.1) ** 10'"),
        ("laplace(0.1) ** 0", "at least 1, got 0"),
    ],
)
def test_a_wrong_guarantee_is_shown_as_typed(text: str, told: str) -> None:
    done = run("curve", text)
    assert done.code == 2
    assert told in done.err
    assert "--mu" not in done.err
    assert "--epsilon" not in done.err


def test_no_epsilon_is_infinite_and_not_none() -> None:
    out = good("curve", "GDP(1)", "--delta", "0").out
    assert "infinite" in out
    assert "none" not in out


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("curve", "GDP(1)", "--plot", "nodir/b.png")
    assert done.code == 2
    assert "its folder does not exist" in done.err
