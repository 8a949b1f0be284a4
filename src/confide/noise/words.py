"""Where the random bits come from: streams of uniform, independent 64-bit words.

`SecureWords` is the only source for noise that protects anybody: AES-256 in counter mode, keyed by the operating
system. `SimulatedWords` is its repeatable twin for tests and studies. The samplers see nothing of either but `take`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from typing import NoReturn, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError

__all__ = ["SecureWords", "SimulatedWords", "WordArray", "Words"]

WordArray = npt.NDArray[np.uint64]

KEY_BYTES = 32
BLOCK_BYTES = 16

# What tells counter mode from random bits is that it never repeats a 128-bit block: with q blocks under one key the
# advantage is at most q^2 / 2^129. 2^30 words are q = 2^29 blocks, hence at most 2^-71.
WORDS_PER_KEY = 2**30


class Words(Protocol):
    """A stream of uniform 64-bit words."""

    def take(self, count: int) -> WordArray:
        """The next `count` words, at most 2^30 at a time; no other call ever gets one of them."""
        ...


class _Keystream:
    """AES-256-CTR under a key of its own, used by one process.

    A keystream is thrown away as a whole, lock included, when its process forks: a lock that another thread held at
    the fork would never open again in the child.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._key()

    def _key(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # only who draws waits for it

        secret = os.urandom(KEY_BYTES + BLOCK_BYTES)
        cipher = Cipher(algorithms.AES(secret[:KEY_BYTES]), modes.CTR(secret[KEY_BYTES:]))
        self._encrypt: Callable[[bytes], bytes] = cipher.encryptor().update
        self._left = WORDS_PER_KEY

    def read(self, count: int) -> bytes:
        with self._lock:
            if count > self._left:
                self._key()
            self._left -= count
            return self._encrypt(bytes(8 * count))


class SecureWords:
    """Cryptographic words: never seeded, never copied, never repeated by a forked child, none kept between calls.

    The key and the first counter block are 48 bytes of `os.urandom`, made anew by `rekey`, after 2^30 words and in a
    forked process. Threads may share one instance. Source: NIST SP 800-38A (counter mode), FIPS 197 (AES).

    Errors: PrivacyError on pickling and copying.

    >>> len(SecureWords().take(3))
    3
    """

    def __init__(self) -> None:
        self._keystream = _Keystream()
        _LIVE.add(self)

    def rekey(self) -> None:
        """Start again from fresh bytes of the operating system; the old key is forgotten."""
        self._keystream = _Keystream()

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        keystream = self._keystream
        if keystream.pid != os.getpid():
            # Two threads of a child may both come by here: each then reads from a keystream of its own, which is safe.
            keystream = self._keystream = _Keystream()
        return np.frombuffer(keystream.read(count), dtype=np.uint64)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(
            "the words of secure noise cannot be pickled or copied: the copy would draw the same noise twice. "
            "Make a new SecureNoise() where the noise is drawn."
        )


# The pid test in `take` alone would miss a descendant that is given the pid of its dead ancestor; this hook alone would
# miss a fork made outside Python. The set holds its members weakly.
_LIVE: WeakSet[SecureWords] = WeakSet()


def _rekey_all() -> None:
    for words in list(_LIVE):
        words.rekey()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_rekey_all)


class SimulatedWords:
    """Repeatable words from NumPy's PCG64DXSM, keyed by the SHA-256 of the seed and the path of spawn keys.

    `BitGenerator.random_raw` is promised by NumPy to give the same words on every platform and in every version.

    >>> int(SimulatedWords(7).take(1)[0]) == int(SimulatedWords(7).take(1)[0])
    True
    """

    def __init__(self, seed: int, path: tuple[int, ...] = ()) -> None:
        self.seed = seed
        self.path = path
        # Hashed, because SeedSequence's own spawn keys run together: (2^32,) and (0, 1) would be one stream.
        digest = hashlib.sha256(f"confide/simulated/{seed}/{path}".encode()).digest()
        self._bits = np.random.PCG64DXSM(np.random.SeedSequence(int.from_bytes(digest, "big")))

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        return self._bits.random_raw(count)
