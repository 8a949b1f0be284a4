"""The demonstration of the README runs to its end, and leaves what it says."""

from __future__ import annotations

from pathlib import Path

import demo.redbook as redbook
import pytest


def test_the_demo_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(redbook, "OUT", tmp_path)
    redbook.main()
    assert "Linear regression of rate_marriage on age, yrs_married" in capsys.readouterr().out
    assert {"ledger.db", "plan.json", "release.json"} <= {path.name for path in tmp_path.iterdir()}
