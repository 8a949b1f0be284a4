"""Room for a receipt, taken before its charge is on disk: a full disk refuses the charge, and never the receipt alone."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["Room"]


class Room:
    """Bytes of a folder's disk that nobody else can take: a file without a name, which the system frees when the process ends.

    folder: beside the ledger; start: they lie behind a hole of so many bytes, which takes no room, so that a limit on the size of files
    refuses here as well; opening, size: how many are given back before the receipt's lock, for what opening the ledger anew takes, and how
    many under it. Raises `OSError` where they cannot be had. A room that is dropped is given back.
    """

    def __init__(self, folder: Path, start: int, size: int, opening: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (held until the receipt)
        self._under = start + size
        self._file.seek(start)
        left = size + opening
        while left:
            # written and not allocated alone, as every system and every file system has it; a full disk writes less, then nothing
            left -= self._file.write(bytes(left)) or 0

    def give_back(self, *, locked: bool) -> None:
        """Free bytes now, although a forked child may hold the file as well; locked: the rest, too."""
        with suppress(OSError, ValueError):  # closed: given back before, and the receipt is refused
            self._file.truncate(0 if locked else self._under)
        if locked:
            self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # no file could be made
            self._file.close()
