"""The local model: each row gets noise before anyone sees it, and analyses use the protected rows alone.

`protect` writes a table of protected rows, and `fit` needs nothing but that table. The calls that read records are in
`confide.ask.local`.
"""

from __future__ import annotations

from pathlib import Path

from confide._helpers import stubbed

globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
