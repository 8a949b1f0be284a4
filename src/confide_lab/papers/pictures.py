"""Figures of blocks as PNG files, the same bytes for the same records."""

from __future__ import annotations

import io
from collections.abc import Sequence

from confide_lab.experiment import Block
from confide_lab.figures import draw
from confide_lab.quantities import Record

__all__ = ["png"]


def png(block: Block, records: Sequence[Record]) -> bytes | None:
    """The block's drawing, None where it has none or nothing to draw."""
    import matplotlib

    with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
        figure = draw(block, records)
        if figure is None:
            return None
        room = io.BytesIO()
        figure.savefig(room, format="png", dpi=110, metadata={"Software": None})
    return room.getvalue()
