"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
