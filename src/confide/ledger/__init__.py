"""The ledger: the budget of a dataset, its charges, and the proof that no entry was changed."""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
