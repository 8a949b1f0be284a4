"""The recorded messages are those that the tests draw out, no fewer and no more; a message that changes is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from confide.errors import PlanError
from tests import messages
from tests.messages import constant, recorded, refuses, stale

_comparing = pytest.mark.skipif(messages.RECORDING, reason="messages are written, not compared")


@_comparing
def test_no_message_is_recorded_of_a_test_that_is_gone() -> None:
    gone = stale(recorded())
    files = " ".join(sorted({one.partition("::")[0] for one in gone}))
    assert not gone, f"CONFIDE_RECORD=1 pytest {files} drops them"


def test_what_changes_from_run_to_run_is_a_mark(tmp_path: Path) -> None:
    said = f"no file '{tmp_path}/b.csv', <X at {hex(id(object()))}>, {'ab' * 32}, port 5432"
    assert constant(said) == "no file '<tmp>/b.csv', <X at <address>>, <digest>, port <port>"
    said = "postgresql://confide@/db?host=%2Ftmp%2Fpg.5o&options=-csearch_path%3Dtest_d7: lost; try again"
    assert constant(said) == "<postgres>: lost; try again"
    assert constant("write low = 0.5, got '0x1.0p+0'") == "write low = 0.5, got '0x1.0p+0'"


@_comparing
@pytest.mark.parametrize(("kept", "told"), [(["one"], "recorded is\n  one"), ([], "no message is recorded here")])
def test_another_message_is_told_with_the_command_that_records_it(
    kept: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_held", lambda test: kept)
    with pytest.raises(pytest.fail.Exception) as failed, refuses(PlanError):
        raise PlanError("two")
    assert told in str(failed.value)
    assert "CONFIDE_RECORD=1 pytest tests/test_messages.py::test_another_message" in str(failed.value)
