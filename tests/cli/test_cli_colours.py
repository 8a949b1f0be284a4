"""Colours: for a terminal alone, of whole lines of known forms, and never chosen by a name from a file."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from confide.cli.session import painted, paints


class Terminal:
    @staticmethod
    def isatty() -> bool:
        return True


def test_who_gets_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paints(Terminal) and not paints(None)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not paints(Terminal)
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not paints(Terminal)


@pytest.mark.parametrize("line", ["age   31,013", "my warning: x", "region[T.Status: valid]", "", "A publication"])
def test_other_lines_stay_as_they_are(line):
    assert painted(line) == line


def test_the_words_are_the_same():
    status = "Status         partial: z\nStatus         not identified: z\nCaution        z\nAlarm          z"
    text = f"SIMULATED NOISE: protects no one\n{'-' * 78}\n{status}\nwarning: y"
    coloured = painted(text)
    assert coloured.count("\x1b[0m") == 9 and "\x1b[33mpartial" in coloured and "\x1b[1;31mnot identified" in coloured
    assert all(
        f"\x1b[{code}m{word}" in coloured for code, word in (("33", "Caution"), ("1;31", "Alarm"), ("1;31", "SIM"))
    )
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text


@pytest.mark.long
def test_a_terminal_is_coloured_and_a_pipe_is_not(tmp_path):
    command = [sys.executable, "-m", "confide", "plan", "x ~ 1", "--schema", "missing.toml", "--mu", "1"]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert "\x1b[" not in piped.stderr and "error" in piped.stderr
    own, other = pty.openpty()
    shown = {**os.environ, "TERM": "xterm"}
    shown.pop("NO_COLOR", None)
    subprocess.run(command, cwd=tmp_path, stdout=other, stderr=other, check=False, env=shown)
    os.close(other)
    assert b"\x1b[1;31mError" in os.read(own, 10_000)
    os.close(own)
