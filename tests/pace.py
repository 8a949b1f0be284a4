"""How slow this machine is just now, for tests of what has a time limit."""

from __future__ import annotations

import os
import time

# What starting and ending a process takes where nothing else runs, in seconds, generously.
_IDLE = 0.01


def slow() -> float:
    """How many times longer a process takes than on an idle machine: at least 1."""
    taken = []
    for _ in range(3):
        start = time.monotonic()
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        taken.append(time.monotonic() - start)
    return max(1.0, max(taken) / _IDLE)
