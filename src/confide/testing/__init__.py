"""The executable contract that any method can be put through, and what it is tried on."""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
