"""The two sources of noise, secure and simulated, and the generator for repeatable draws that protect nothing."""

from __future__ import annotations

import hashlib
from typing import ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.laws import exact_variance, gaussian_law
from confide.noise.sampler import draw
from confide.noise.words import SecureWords, SimulatedWords, Words

__all__ = ["SecureNoise", "SimulatedNoise", "keyed_generator"]


class _GridNoise:
    """The samplers over a stream of words; what the two sources share."""

    simulated: ClassVar[bool]
    _words: Words

    def grid_gaussian(self, sigma2: object, size: int) -> npt.NDArray[np.int64]:
        """N(0, sigma2) rounded to the nearest integer, `size` independent draws, int64, shape (size,), in grid steps.

        sigma2 is the variance before rounding, in squared grid steps: a Fraction, or an int or float at its exact
        value. The variance of the draws is `confide.noise.variance(sigma2)`.
        Guarantee: integers q_i that one record changes by at most D_i, each with a draw of sigma2_i added, are mu-GDP
        when the sum of D_i^2 / sigma2_i is at most mu^2, exactly, under the relation for which the D_i hold:
        q + round(N) = round(q + N) is post-processing of the Gaussian mechanism.
        Errors: PrivacyError when sigma2 is not positive and finite, or its root is 2^57 steps or more, or size is
        negative or no integer.
        Source: Dong, Roth, Su 2022, Theorem 2.

        >>> SimulatedNoise(7).grid_gaussian(10**6, 3).dtype
        dtype('int64')
        """
        return draw(
            gaussian_law(exact_variance(sigma2)), self._words, _whole(size, "size", "grid_gaussian(sigma2, 100)")
        )


class SecureNoise(_GridNoise):
    """Noise that protects: from cryptographic words that nobody can repeat, fork-safe, shared safely by threads.

    Never seeded; pickling and copying raise PrivacyError.

    >>> SecureNoise().grid_gaussian(1.0, 4).shape
    (4,)
    """

    simulated: ClassVar[bool] = False

    def __init__(self) -> None:
        self._words: SecureWords = SecureWords()

    def rekey(self) -> None:
        """Forget the key and make a new one; called at the start of each release."""
        self._words.rekey()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(
            "SecureNoise cannot be pickled or copied: the copy would draw the same noise twice. "
            "Call SecureNoise() where the noise is drawn, or SimulatedNoise(seed) for a study that protects nobody."
        )


class SimulatedNoise(_GridNoise):
    """Repeatable noise for tests and studies: the same laws and samplers from seeded words. It protects nobody.

    The words are those of NumPy's PCG64DXSM: the same seed and the same calls give the same numbers on every platform.
    Picklable; a copy goes on from where the original stands. Errors: PrivacyError unless `seed` is an integer >= 0.

    >>> bool((SimulatedNoise(7).grid_gaussian(4, 100) == SimulatedNoise(7).grid_gaussian(4, 100)).all())
    True
    """

    simulated: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        self._words: SimulatedWords = SimulatedWords(_whole(seed, "seed", "SimulatedNoise(7)"))

    def rekey(self) -> None:
        """Nothing happens: a new key would not repeat, and the old key again would repeat the last release's noise."""

    def spawn(self, key: int) -> SimulatedNoise:
        """The independent source numbered `key` under this one, whatever was drawn before: one per replication.

        Errors: PrivacyError unless `key` is an integer >= 0.

        >>> first, second = (SimulatedNoise(7).spawn(key).grid_gaussian(10**6, 1) for key in (0, 1))
        >>> bool(first[0] == second[0])
        False
        """
        child = SimulatedNoise(self._words.seed)
        child._words = SimulatedWords(self._words.seed, (*self._words.path, _whole(key, "key", "noise.spawn(0)")))
        return child

    def __repr__(self) -> str:
        return f"SimulatedNoise({self._words.seed})" + "".join(f".spawn({key})" for key in self._words.path)


def _whole(value: object, name: str, call: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        given = f"a {type(value).__name__}"
    elif value >= 0:
        return int(value)
    else:
        given = "negative"
    raise PrivacyError(f"{name} is {given}, but it must be an integer of 0 or more, as in {call}.")


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
