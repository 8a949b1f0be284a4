"""Draws that belong to a release: the same each time for the same drawn integers, and no protection of anything."""

from __future__ import annotations

import hashlib

import numpy as np

from confide.errors import PrivacyError

__all__ = ["keyed_generator"]


def keyed_generator(*digests: str) -> np.random.Generator:
    """A NumPy generator (Philox) keyed by digests: the same draws inside `infer` for the same drawn integers and purpose.

    Inside `infer` the first one is `release.drawn_sha256`, the others say what for, in words of the code: never a name of the schema or of
    the question, by which a column that is renamed would move a result. Never for noise that protects: whoever knows the digests knows
    the draws. Errors: PrivacyError without any digest.

    >>> float(keyed_generator("drawn", "rank test").random()) == float(keyed_generator("drawn", "rank test").random())
    True
    """
    if not digests:
        raise PrivacyError(
            "no digest was given, but the draws must belong to something: keyed_generator(release.drawn_sha256)."
        )
    # Each with its length, so that ("ab", "c") and ("a", "bc") differ.
    text = "".join(f"{len(digest)}:{digest}" for digest in digests)
    return np.random.Generator(np.random.Philox(key=int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")))
