"""What a fork does to open stores: no connection of the parent is ever used, or closed, by a child.

A fork waits for running transactions (up to the store's timeout), so that it finds only idle connections; each back
end says what becomes of those.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["register"]


class Forked(Protocol):
    """What the hooks ask of a store."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


# The stores of this process, for the fork hooks alone: a fork concerns all of them and asks none. The lock is held
# from before a fork until after it, in the parent and in the child.
_stores: weakref.WeakSet[Forked] = weakref.WeakSet()
_fork_lock = threading.Lock()


def register(store: Forked) -> None:
    """Tell the hooks of a new store."""
    with _fork_lock:
        _stores.add(store)


def _before() -> None:
    _fork_lock.acquire()
    for store in list(_stores):
        store.before_fork()


def _in_parent() -> None:
    for store in list(_stores):
        store.after_fork_in_parent()
    _fork_lock.release()


def _in_child() -> None:
    for store in list(_stores):
        store.after_fork_in_child()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
