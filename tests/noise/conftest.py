"""Words that a test writes itself, and words whose uses it counts."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from confide.noise import standard


class ScriptedWords:
    """Gives the words it was made with, in order, and remembers how many were asked for each time."""

    def __init__(self, words: list[int]) -> None:
        self.left = list(words)
        self.asked: list[int] = []

    def take(self, count: int) -> np.ndarray:
        assert count <= len(self.left), "more words were asked for than the script holds"
        self.asked.append(count)
        given, self.left = self.left[:count], self.left[count:]
        return np.array(given, dtype=np.uint64)


@pytest.fixture
def scripted() -> Callable[[list[int]], ScriptedWords]:
    return ScriptedWords


@pytest.fixture(autouse=True)
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise here is of the operating system's bytes, new each time."""
    monkeypatch.setattr(standard, "os", os)
    for words in list(standard._LIVE):
        words.rekey()
