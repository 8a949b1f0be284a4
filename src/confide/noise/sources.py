"""The two sources of noise, secure and simulated, and the generator for repeatable draws that protect nothing.

The two discrete laws from OpenDP's samplers: an independent implementation, for anyone who prefers to trust that one.

Draws that belong to a release: the same each time for the same drawn integers, and no protection of anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from confide.core.allowance import Noise
from confide.errors import PrivacyError
from confide.noise import exponential_mechanism, integers, symmetric_laplace
from confide.noise.integers import Scales, described, exact_rational, whole
from confide.noise.standard import SecureWords, SimulatedWords, Words

ROOT_BITS = 1100  # beyond the smallest double


class OpenDPSamplers:
    """`discrete_gaussian` and `discrete_laplace` by OpenDP's measurements on 64-bit integers, released on zeros.

    OpenDP takes its scale as a double. Ours is the smallest double that is at least the scale. So the noise is never
    short of what the guarantee needs, and its scale too large by a relative 2^-52 at most. Its random bits are its
    own. Errors: PrivacyError when the package is not installed. Source: opendp.org, make_gaussian and make_laplace.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise PrivacyError(
                "backend='opendp' needs the package opendp, which is not installed: pip install 'confide[opendp]', or "
                "SecureNoise() for the samplers of confide."
            ) from None
        # The noise measurements are among those that OpenDP asks its users to enable.
        dp.enable_features("contrib")
        self._dp: Any = dp

    def discrete_gaussian(self, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        """P(k) proportional to e^(-k^2/(2 sigma2)); int64, shape (size,)."""
        return self._draw(self._dp.m.make_gaussian, self._dp.l2_distance(T="i64"), scales, size)

    def discrete_laplace(self, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        """P(k) proportional to e^(-|k|/scale); int64, shape (size,)."""
        return self._draw(self._dp.m.make_laplace, self._dp.l1_distance(T="i64"), scales, size)

    def _draw(self, make: Callable[..., Any], metric: Any, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        domain = self._dp.vector_domain(self._dp.atom_domain(T="i64"))
        out = np.empty(size, dtype=np.int64)
        for number, value in enumerate(scales.values):
            which: Any = slice(None) if scales.index is None else np.flatnonzero(scales.index == number)
            measurement = make(domain, metric, scale=double_above(value, scales.squared))
            out[which] = measurement([0] * len(out[which])) if len(out[which]) else []
        return out


def double_above(value: Fraction, squared: bool) -> float:
    """The smallest double that is at least `value`, or at least its square root.

    >>> double_above(Fraction(9, 4), True), double_above(Fraction(1, 3), False) > Fraction(1, 3)
    (1.5, True)
    """
    if squared:
        scaled = -(-(value.numerator << 2 * ROOT_BITS) // value.denominator)
        value = Fraction(1 + math.isqrt(scaled - 1), 1 << ROOT_BITS)
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


class _GridNoise(Noise):
    """The samplers over a stream of words; what the two sources share.

    Every scale is an exact rational: an int, a Fraction, or a float at its exact value; or a list, tuple or array of
    them, one for each draw. All draws are independent.
    """

    simulated: ClassVar[bool]
    _words: Words

    @property
    def _stream(self) -> Words:
        """The words that the samplers take."""
        return self._words

    def grid_gaussian(self, sigma2: object, size: int) -> npt.NDArray[np.int64]:
        """N(0, sigma2) rounded to the nearest integer, `size` independent draws, int64, shape (size,), in grid steps.

        sigma2 is the variance before rounding, in squared grid steps: one rational or a sequence of `size`. The
        variance of the draws is `confide.noise.variance(sigma2)`. Guarantee: integers q_i that one record changes by
        at most D_i, each with a draw of sigma2_i added, are mu-GDP (and `mu^2/2`-zCDP), exactly, when the sum of
        D_i^2 / sigma2_i is at most `mu^2`, under the relation for which the D_i are bounds. The reason: q + round(N)
        = round(q + N) is post-processing of the Gaussian mechanism. Errors: PrivacyError when sigma2 is not positive
        and finite, or its root is 2^57 steps or more, or there is not one for each draw, or size is negative or no
        integer. Source: Dong, Roth, Su 2022, Theorem 2.

        >>> SimulatedNoise(7).grid_gaussian(10**6, 3).dtype
        dtype('int64')
        >>> SimulatedNoise(7).grid_gaussian([1, 10**6, 10**12], 3).shape
        (3,)
        """
        size = whole(size, "size", "grid_gaussian(sigma2, 100)")
        return integers.grid_gaussian(self._stream, Scales.read(sigma2, size, squared=True), size)

    def grid_laplace(self, scale: object, size: int) -> npt.NDArray[np.int64]:
        """A Laplace of this scale rounded to the nearest integer, `size` independent draws, int64, in grid steps.

        P(0) = 1 - e^(-1/2s), P(k) = e^(-|k|/s) sinh(1/2s): scale s is that of the Laplace before rounding, one
        rational or a sequence of `size`. The variance of the draws is `confide.noise.laplace_variance(scale)`.
        Guarantee: integers q_i that one record changes by at most D_i, each with a draw of scale s_i added, are
        PureDP(sum of D_i / s_i). A single one has the whole trade-off curve of the real Laplace mechanism of
        sensitivity D and scale s, exactly, because q + round(L) = round(q + L) is post-processing of it. Errors:
        PrivacyError when scale is not positive and finite, or 2^57 steps or more, or there is not one for each draw,
        or size is negative or no integer. Source: Dwork, McSherry, Nissim, Smith 2006, Example 1; Dong, Roth, Su
        2022, Proposition 4 (post-processing).

        >>> SimulatedNoise(7).grid_laplace(1000, 3).shape
        (3,)
        """
        size = whole(size, "size", "grid_laplace(scale, 100)")
        return integers.grid_laplace(self._stream, Scales.read(scale, size, squared=False), size)

    def grid_cauchy(self, scale: object, size: int) -> npt.NDArray[np.object_]:
        """A Cauchy number of this scale rounded to the nearest integer, `size` independent draws, Python integers, in grid steps.

        `scale`: of the Cauchy before rounding, whose quartiles are -scale and scale; one rational or a sequence of
        `size`. It has no variance. Guarantee: none alone. An integer moved by D with a draw of scale s has
        log-likelihood ratios of at most D/s, and scales s and e^b s differ by at most b. This is the noise of smooth
        sensitivity. Rounding is post-processing. Errors: PrivacyError as `grid_laplace`. Source: Devroye 1986,
        chapter II.4; Nissim, Raskhodnikova, Smith 2007 (its use).

        >>> SimulatedNoise(7).grid_cauchy(1000, 3).dtype
        dtype('O')
        """
        size = whole(size, "size", "grid_cauchy(scale, 100)")
        return integers.grid_cauchy(self._stream, Scales.read(scale, size, squared=False), size)

    def discrete_gaussian(self, sigma2: object, size: int) -> npt.NDArray[np.int64]:
        """P(k) proportional to e^(-k^2 / (2 sigma2)) on the integers, `size` independent draws, int64, in grid steps.

        sigma2 is the parameter, in squared grid steps: one rational or a sequence of `size`. The variance of the
        draws is `confide.noise.discrete_gaussian_variance(sigma2)`. Guarantee: an integer that one record changes by
        at most D, with a draw added, is ZCDP(D^2 / (2 sigma2)), and no more is claimed. It is not D/sigma-GDP: at
        sigma = 1, D = 1 that claim would need a delta of 0.016. For GDP use `grid_gaussian`. Errors: PrivacyError
        when sigma2 is not positive and finite, or its root is 2^57 steps or more, or there is not one for each draw,
        or size is negative or no integer. Source: Canonne, Kamath, Steinke 2020, Theorem 4 (guarantee) and Algorithm
        3 (rejection).

        >>> SimulatedNoise(7).discrete_gaussian(4, 3).shape
        (3,)
        """
        size = whole(size, "size", "discrete_gaussian(sigma2, 100)")
        return integers.discrete_gaussian(self._stream, Scales.read(sigma2, size, squared=True), size)

    def discrete_laplace(self, scale: object, size: int) -> npt.NDArray[np.int64]:
        """P(k) = tanh(1/2s) e^(-|k|/s) on the integers, `size` independent draws, int64, in grid steps.

        scale is s: one rational or a sequence of `size`. The variance of the draws is
        `confide.noise.discrete_laplace_variance(scale)`. Guarantee: integers q_i that one record changes by at most
        D_i, each with a draw of scale s_i added, are PureDP(sum of D_i / s_i), exactly. No more is claimed, because
        its trade-off curve is below that of the real Laplace mechanism (total variation 0.462 against 0.393 at D = s
        = 1). For that curve use `grid_laplace`. Errors: PrivacyError when scale is not positive and finite, or 2^57
        steps or more, or there is not one for each draw, or size is negative or no integer. Source: Ghosh,
        Roughgarden, Sundararajan 2012 (the geometric mechanism).

        >>> SimulatedNoise(7).discrete_laplace(2.5, 3).shape
        (3,)
        """
        size = whole(size, "size", "discrete_laplace(scale, 100)")
        return integers.discrete_laplace(self._stream, Scales.read(scale, size, squared=False), size)

    def bernoulli(self, p: object, size: int) -> npt.NDArray[np.bool_]:
        """`size` independent coins, True with probability exactly p, a rational from 0 to 1; bool, shape (size,).

        Guarantee: none alone; randomized response that keeps a bit with probability p > 1/2 is PureDP(log(p / (1 -
        p))). Errors: PrivacyError when p is not a number from 0 to 1, or size is negative or no integer.

        >>> bool(SimulatedNoise(7).bernoulli(1, 3).all())
        True
        """
        exact = exact_rational(p)
        if exact is None or not 0 <= exact <= 1:
            raise PrivacyError(
                f"p is {described(p)}, but a probability must be an int, a float or a fractions.Fraction from 0 to 1, as "
                "in bernoulli(Fraction(1, 3), 100)."
            )
        return integers.bernoulli(self._stream, exact, whole(size, "size", "bernoulli(p, 100)"))

    def uniform_integers(self, m: int, size: int) -> npt.NDArray[np.int64]:
        """`size` independent integers, each of 0, ..., m - 1 with probability exactly 1/m; int64, shape (size,).

        Guarantee: none alone; the outcomes say nothing of any record. Errors: PrivacyError when m is not an integer
        from 1 to 2^63, or size is negative or no integer.

        >>> bool((SimulatedNoise(7).uniform_integers(6, 100) < 6).all())
        True
        """
        m = whole(m, "m", "uniform_integers(6, 100)", least=1)
        if m > 2**63:
            raise PrivacyError(
                "m is above 2^63, but the integers must fit 64 bits, as in uniform_integers(2**63, 100)."
            )
        return integers.uniform_integers(self._stream, m, whole(size, "size", "uniform_integers(m, 100)"))

    def exponential_mechanism(
        self, scores: object, epsilon: object, sensitivity: object, lengths: object = None
    ) -> int:
        """The index of one candidate: P(i) proportional to lengths_i exp(-epsilon (max - score_i) / (2 sensitivity)), exactly.

        `scores`: integers, shape (candidates,), a million of them if need be. `lengths`: integers of a base measure,
        at least 0, None for equal ones; epsilon and sensitivity: exact rationals above 0. Guarantee: PureDP(epsilon),
        under the relation for which one record moves every score by at most `sensitivity`, and if the lengths do not
        depend on records. Real scores are first rounded down to a public grid, and `sensitivity` grows by a step.
        Errors: PrivacyError for other arguments. Source: McSherry, Talwar 2007, Theorem 6.

        >>> SimulatedNoise(7).exponential_mechanism([0, 1000, 3], 1, 1)
        1
        """
        return exponential_mechanism.exponential_mechanism(self._stream, scores, epsilon, sensitivity, lengths)

    def symmetric_laplace(self, lam: object, rows: int) -> npt.NDArray[np.int64]:
        """Multivariate symmetric Laplace noise rounded to integers: sqrt(W) lam N, one W ~ Exp(1) for a whole row; shape (rows, d).

        lam: d noise standard deviations in grid steps, exact rationals above 0.
        Guarantee: for integer rows that differ by D_j in column j, the trade-off function
        `confide.guarantees.symmetric_laplace(d, c)` with c^2 = sum of (D_j / lam_j)^2, for the substitution of one row; rounding is
        post-processing. Source: Lu, Chen, Qiu 2026, section 2. Errors: PrivacyError for other arguments.

        >>> SimulatedNoise(7).symmetric_laplace([1000, 50], 4).shape
        (4, 2)
        """
        return symmetric_laplace.symmetric_laplace(self._stream, lam, rows)

    def zero_inflated_laplace(self, lam: object, zeta: object, rows: int) -> npt.NDArray[np.int64]:
        """The same, but a row gets no noise at all with probability `zeta`, an exact rational from 0 to below 1.

        Guarantee: `zero_inflated(zeta, symmetric_laplace(d, c))` of `confide.guarantees`. Errors: PrivacyError for other arguments.

        >>> SimulatedNoise(7).zero_inflated_laplace([1000], 0.5, 4).shape
        (4, 1)
        """
        return symmetric_laplace.zero_inflated_laplace(self._stream, lam, zeta, rows)

    def lattice_laplace(self, a: object, d: int, rows: int, zeta: object = 0) -> npt.NDArray[np.int64]:
        """The Laplace law of the lattice: characteristic function 1 / (1 + a sum of (2 - 2 cos t_j)), variance 2 a; shape (rows, d).

        A simple random walk on the integers for a geometric number of steps. d = 1: PureDP(k log(1/q)) for a shift of
        k steps, with q / (1 - q)^2 = a. For d > 1 the continuous curve is not a bound. Errors: PrivacyError for other
        arguments.

        >>> SimulatedNoise(7).lattice_laplace(2, 2, 4).shape
        (4, 2)
        """
        return symmetric_laplace.lattice_laplace(self._stream, a, d, rows, zeta)


class SecureNoise(_GridNoise):
    """Noise that protects: from cryptographic words that nobody can repeat, fork-safe, shared safely by threads.

    Never seeded; pickling and copying raise PrivacyError. backend="opendp" draws `discrete_gaussian` and
    `discrete_laplace` by OpenDP (extra `opendp`) from its own random bits; every other draw then raises PrivacyError.

    >>> SecureNoise().grid_gaussian(1.0, 4).shape
    (4,)
    """

    simulated: ClassVar[bool] = False

    def __init__(self, *, backend: str = "confide") -> None:
        if backend not in ("confide", "opendp"):
            given = repr(backend) if isinstance(backend, str) else f"a {type(backend).__name__}"
            raise PrivacyError(
                f"backend is {given}, but it must be 'confide' or 'opendp', as in SecureNoise(backend='opendp')."
            )
        self._words: SecureWords = SecureWords()
        self._opendp = OpenDPSamplers() if backend == "opendp" else None

    @property
    def _stream(self) -> Words:
        if self._opendp is not None:
            raise PrivacyError(
                "backend='opendp' offers discrete_gaussian and discrete_laplace only, but another draw was asked of it: "
                "use SecureNoise(), whose samplers offer them all."
            )
        return self._words

    def discrete_gaussian(self, sigma2: object, size: int) -> npt.NDArray[np.int64]:
        if self._opendp is None:
            return super().discrete_gaussian(sigma2, size)
        size = whole(size, "size", "discrete_gaussian(sigma2, 100)")
        return self._opendp.discrete_gaussian(Scales.read(sigma2, size, squared=True), size)

    def discrete_laplace(self, scale: object, size: int) -> npt.NDArray[np.int64]:
        if self._opendp is None:
            return super().discrete_laplace(scale, size)
        size = whole(size, "size", "discrete_laplace(scale, 100)")
        return self._opendp.discrete_laplace(Scales.read(scale, size, squared=False), size)

    def rekey(self) -> None:
        """Forget the key and make a new one; called at the start of each release."""
        self._words.rekey()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(
            "SecureNoise cannot be pickled or copied: the copy would draw the same noise twice. "
            "Call SecureNoise() where the noise is drawn, or SimulatedNoise(seed) for a study that protects nobody."
        )


class SimulatedNoise(_GridNoise):
    """Repeatable noise for tests and studies: the same laws and samplers from seeded words. It protects no one.

    The words come from NumPy's PCG64DXSM: the same seed and the same calls give the same numbers on every platform.
    Picklable; a copy goes on from where the original stands. Errors: PrivacyError unless `seed` is an integer >= 0.

    >>> bool((SimulatedNoise(7).grid_gaussian(4, 100) == SimulatedNoise(7).grid_gaussian(4, 100)).all())
    True
    """

    simulated: ClassVar[bool] = True
    spawns: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        self._words: SimulatedWords = SimulatedWords(whole(seed, "seed", "SimulatedNoise(7)"))

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
        child._words = SimulatedWords(self._words.seed, (*self._words.path, whole(key, "key", "noise.spawn(0)")))
        return child

    def __repr__(self) -> str:
        return f"SimulatedNoise({self._words.seed})" + "".join(f".spawn({key})" for key in self._words.path)


def keyed_generator(*digests: str) -> np.random.Generator:
    """A NumPy generator (Philox) keyed by digests: the same draws inside `infer` for the same drawn integers and purpose.

    Inside `infer` the first one is `release.drawn_sha256`, the others say what for, in words of the code. They are
    never a name of the schema or of the analysis, because then a renamed column would move a result. Never for noise
    that protects: anyone who knows the digests knows the draws. Errors: PrivacyError without any digest.

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
