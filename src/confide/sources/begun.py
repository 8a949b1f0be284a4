"""What beginnings computed in an earlier pass of one draw, block by block: the rest of the memory that its codes leave.

Several passes of a draw measure in the same coordinates at other lines. The part of their beginning that they have in common
(`protocol.Lasting`) is kept for the blocks for which there is room, of the part that was asked for last, and never written to a file. The
arrays are those that the part computed, so that no number hangs on what is kept; statistics get read-only views of them, which no call
makes writable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.protocol import Lasting

__all__ = ["Begun", "Kept"]

Kept = tuple[NDArray[Any] | None, ...]


class Begun:
    """Of one lasting part, for some rows of codes. keep: is handed what was computed for a block and says whether it had room."""

    def __init__(self, lasting: Lasting, rows: slice | list[int], keep: Callable[[Begun, int, Kept], bool]) -> None:
        self._lasting, self._rows, self._keep = lasting, rows, keep
        self._full = False
        #: What is kept, by block; for the one who keeps it alone.
        self.blocks: dict[int, Kept] = {}

    def is_of(self, lasting: Lasting, rows: slice | list[int]) -> bool:
        """Whether the part is equal, of the same class, and of the same rows."""
        return type(lasting) is type(self._lasting) and rows == self._rows and bool(lasting == self._lasting)

    def of(self, block: int, codes: NDArray[np.float64]) -> Kept | None:
        """What the part gives for a block with these codes; None where it is not known and there is no room to keep it."""
        found = self.blocks.get(block)
        if found is None and not self._full:
            found = tuple(map(_sealed, self._lasting(codes)))
            self._full = not self._keep(self, block, found)
        return found


def _sealed(array: NDArray[Any] | None) -> NDArray[Any] | None:
    """A view that is read only: of memory that was given away as read only, so that `setflags` cannot undo it."""
    return None if array is None else np.asarray(memoryview(np.ascontiguousarray(array).data).toreadonly())
