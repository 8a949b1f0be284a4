"""Whose program is at the other end of a connection within this machine, where the system tells it: Linux does.

A cookie knows no port: a browser sends the studio's to every server on the same address, and another account of this machine may run one.
So where it can be known, a request of another account is refused whatever it has.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["stranger"]

# a socket of IPv6 reaches an address of IPv4, too
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_STANDS = "01"


def stranger(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether a connection is of an account that is neither this one nor the system's own; False where the system does not tell.

    Of a socket that its owner closed nothing is known, so that such a request, whose answer nobody waits for, is a stranger's.
    """
    if not _TABLES[0].exists():
        return False
    try:
        near, far = _written(client), _written(server)
    except OSError:  # no address of IPv4
        return True
    own = [(state, user) for local, remote, state, user in _rows() if local.endswith(near) and remote.endswith(far)]
    if own:
        known = {os.getuid(), os.geteuid(), 0}
        return any(state != _STANDS or user not in known for state, user in own)
    # it comes from another network than this process sees, as a container's host has; or it was closed meanwhile, and this end knows
    return not any(
        local.endswith(far) and remote.endswith(near) and state == _STANDS for local, remote, state, _ in _rows()
    )


def _written(address: tuple[str, int]) -> str:
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _rows() -> Iterator[tuple[str, str, str, int]]:
    """(local address, remote address, state, user) of each connection."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, state, _, _, _, user, *_ = line.split()
                yield local, remote, state, int(user)
