"""The ledger: what may be spent on a data set, what was, and the proof that nobody changed it."""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
