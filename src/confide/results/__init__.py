"""What users look at: tables, intervals, tests, plots, the HTML report. Nothing here sees a record."""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
