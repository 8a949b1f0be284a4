"""Draws that belong to a release: the same each time for one release and question, and no protection of anything."""

from __future__ import annotations

import hashlib

import numpy as np

from confide.errors import PrivacyError

__all__ = ["keyed_generator"]


def keyed_generator(*digests: str) -> np.random.Generator:
    """A NumPy generator (Philox) keyed by digests: the same draws inside `infer` for one release and question.

    Never for noise that protects: whoever knows the digests knows the draws. Errors: PrivacyError without any digest.

    >>> float(keyed_generator("release", "question").random()) == float(keyed_generator("release", "question").random())
    True
    """
    if not digests:
        raise PrivacyError(
            "no digest was given, but the draws must belong to something: keyed_generator(release.sha256)."
        )
    # Each with its length, so that ("ab", "c") and ("a", "bc") differ.
    text = "".join(f"{len(digest)}:{digest}" for digest in digests)
    return np.random.Generator(np.random.Philox(key=int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")))
