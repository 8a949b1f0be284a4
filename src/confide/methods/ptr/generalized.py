"""Generalized propose-test-release: a test of a mechanism's data-dependent privacy loss, or a private upper bound of it.

A mechanism M has the loss e(X) at data X when P(M(X) in S) <= e^e(X) P(M(X') in S) + delta for all neighbors X' and all S: one direction
is enough.

A test (`LossTest`). T is (e_t, d_t)-DP and passes with probability at most d' where e(X) > e. Then test and release are
(e_t + e, d_t + max(delta, d'))-DP. Proof, for an ordered pair (X, X'): if e(X) > e, a reply has probability at most d' under X, and
refusals are post-processing of the test: P <= e^e_t P' + d_t + d'. If e(X) <= e: adaptive composition of the test with M in the
direction X -> X'. The case is that of the first argument, for every pair and order; the two deltas belong to different data, so they do
not add.

A uniform bound (`UniformBound`). A number ebar is released with (e_t, d_t)-DP noise, and a parameter is chosen for which ebar says "at most
e". With E = {ebar >= max(e(X), e(X'))}, P(not E) <= d' under BOTH X and X': P(S) <= P(S, E) + d' and on E the release is (e, delta): total
(e_t + e, d_t + delta + d'). A bound that holds for e(X) alone, under X alone, is not enough for both orders; one sensitivity on top
makes it so.

Renyi (`generalized_rdp`). With losses e(a) where the test says yes rightly, e~(a) always, the test's e_t(a), at order a > 1:

    (a - 1) RDP(a) <= log max{ exp((a-1)(e_t(a) + e(a))),
                               exp((a-1) e_t(a)) + inf over b > a of d'^((b-a)/(b-1)) exp((a-1)(e_t(b) + e~(a))) }.

Proof of the second line: "no" contributes exp((a-1) e_t(a)) at most. "Yes", t under X and t' under X', contributes t (t/t')^(a-1)
exp((a-1) e~(a)); t^b t'^(1-b) <= exp((b-1) e_t(b)) gives (t/t')^(a-1) <= (exp((b-1) e_t(b))/t)^((a-1)/(b-1)), and t <= d'. The
published statement replaces t (t/t')^(a-1) by a power of d' that it is not: evidence/errata.md.

Source: Redberg, Zhu, Wang 2023 (Theorems 4.3, 4.7, B.5), corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, inf, isfinite, log

import numpy as np

from confide.core.allowance import Noise
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP
from confide.methods.ptr.classic import geometric_threshold, rounded_sum

_FINE = 1 << 20
_FAR = 1 << 52
# Orders b - a that the infimum is taken over: each gives a valid bound.
_ORDERS = np.geomspace(1e-3, 1e8, 600)


def generalized_guarantee(
    *, epsilon: float, delta: float, test_epsilon: float, false_pass: float, test_delta: float = 0.0
) -> ApproxDP:
    """The guarantee of a test of the privacy loss, followed by the mechanism.

    Parameters
    ----------
    epsilon : float
        Loss e that the mechanism has where the test is right to pass.
    delta : float
        Delta at which this loss is meant.
    test_epsilon : float
        Epsilon e_t of the test.
    false_pass : float
        Largest probability d' of passing where the loss is above `epsilon`.
    test_delta : float, default 0.0
        Delta d_t of the test.

    Returns
    -------
    ApproxDP
        (e_t + e, d_t + max(delta, d')).

    Raises
    ------
    PrivacyError
        A number is out of range.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem 4.3, corrected.

    Examples
    --------
    >>> generalized_guarantee(epsilon=1.0, delta=1e-6, test_epsilon=0.5, false_pass=1e-6)
    ApproxDP(1.5, 1e-06)
    """
    for name, value in (("epsilon", epsilon), ("test_epsilon", test_epsilon)):
        if not 0 < value < inf:
            raise PrivacyError(f"{name} must be a finite number above 0, got {value!r}")
    if not all(0 <= value < 1 for value in (delta, false_pass, test_delta)):
        raise PrivacyError(
            f"delta, false_pass and test_delta must lie in [0, 1), got {delta!r}, {false_pass!r}, {test_delta!r}"
        )
    return ApproxDP(rounded_sum(epsilon, test_epsilon), rounded_sum(test_delta, max(delta, false_pass)))


def _check_moves(moves: float) -> None:
    if not 0 < moves < inf:
        raise PlanError(
            f"moves must be a finite number above 0, got {moves!r}; it bounds what one record does to the loss"
        )


@dataclass(frozen=True)
class LossTest:
    """Test whether a mechanism's privacy loss is at most a proposed epsilon.

    The loss is one that one record moves by at most `moves`; geometric noise of
    cost `test_epsilon` is added to it. A building block for a method's release,
    as in `confide.methods.ptr.classic`.

    Parameters
    ----------
    epsilon : float
        Proposed epsilon.
    delta : float
        Delta at which the mechanism's loss is meant.
    moves : float
        Largest change of the loss when one record changes.
    test_epsilon : float
        Epsilon of the test.
    false_pass : float
        Largest probability of passing where the loss is above `epsilon`.

    Notes
    -----
    Guarantee: (test_epsilon + epsilon, max(delta, false_pass)) for test and
    mechanism together. The module docstring has the proof.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem 4.3, corrected.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> test = LossTest(1.0, 1e-6, moves=0.01, test_epsilon=0.5, false_pass=1e-6)
    >>> test.guarantee, test(0.5, SimulatedNoise(1)), test(1.01, SimulatedNoise(1))
    (ApproxDP(1.5, 1e-06), True, False)
    """

    epsilon: float
    delta: float
    moves: float
    test_epsilon: float
    false_pass: float

    proof = "test of a data-dependent loss"

    def __post_init__(self) -> None:
        _check_moves(self.moves)
        geometric_threshold(self.test_epsilon, self.false_pass)

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of test and release together."""
        return generalized_guarantee(
            epsilon=self.epsilon, delta=self.delta, test_epsilon=self.test_epsilon, false_pass=self.false_pass
        )

    def margin(self) -> float:
        """How far below epsilon a loss must be to pass with probability one half."""
        return (geometric_threshold(self.test_epsilon / _FINE, self.false_pass) + 1) * self.moves / _FINE

    def __call__(self, loss: float, noise: Noise) -> bool:
        """Draw whether loss + noise + margin is at most epsilon.

        Parameters
        ----------
        loss : float
            Privacy loss of the mechanism at the data.
        noise : Noise
            Source of noise.

        Returns
        -------
        bool
            Whether the test passes.
        """
        rate = self.test_epsilon / _FINE
        # below where losses are cut: one that is above epsilon, infinite or not, has more steps than this
        limit = min(floor(Fraction(self.epsilon) / Fraction(self.moves) * _FINE), _FAR - 1)
        noisy = _steps(loss, self.moves) + int(noise.discrete_laplace(1 / Fraction(rate), 1)[0])
        return noisy + geometric_threshold(rate, self.false_pass) <= limit


@dataclass(frozen=True)
class UniformBound:
    """Release an upper bound of a privacy loss that holds for both neighbors.

    The bound is loss + moves + noise + quantile; it fails with probability at
    most `failure`. Choose a parameter whose loss, computed from the bound, is
    at most epsilon, and run it.

    Parameters
    ----------
    moves : float
        Largest change of the loss when one record changes.
    test_epsilon : float
        Epsilon of the released bound.
    failure : float
        Probability with which the bound may fail.

    Notes
    -----
    Guarantee: (test_epsilon + epsilon, delta + failure) with a mechanism whose
    loss the bound keeps at epsilon and delta. The module docstring has the
    proof.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem 4.7, corrected.

    Examples
    --------
    >>> from confide.noise import SimulatedNoise
    >>> bound = UniformBound(moves=0.01, test_epsilon=0.5, failure=1e-6)
    >>> bound(0.5, SimulatedNoise(1)) > 0.51, bound.guarantee(1.0, 1e-6)
    (True, ApproxDP(1.5, 2e-06))
    """

    moves: float
    test_epsilon: float
    failure: float

    proof = "private upper bound of a data-dependent loss, valid under both neighbors"

    def __post_init__(self) -> None:
        _check_moves(self.moves)
        geometric_threshold(self.test_epsilon, self.failure)

    def guarantee(self, epsilon: float, delta: float) -> ApproxDP:
        """The guarantee of the bound with a mechanism whose loss it bounds.

        Parameters
        ----------
        epsilon : float
            Bound on the mechanism's loss.
        delta : float
            Delta at which the loss is meant.

        Returns
        -------
        ApproxDP
            (test_epsilon + epsilon, delta + failure). The deltas add here.
        """
        return ApproxDP(rounded_sum(epsilon, self.test_epsilon), rounded_sum(delta, self.failure))

    def __call__(self, loss: float, noise: Noise) -> float:
        """Draw the noisy bound, on a grid of moves/2^20.

        Parameters
        ----------
        loss : float
            Privacy loss of the mechanism at the data.
        noise : Noise
            Source of noise.

        Returns
        -------
        float
            The bound.
        """
        rate = self.test_epsilon / _FINE
        steps = _steps(loss, self.moves) + _FINE + int(noise.discrete_laplace(1 / Fraction(rate), 1)[0])
        total = steps + geometric_threshold(rate, self.failure)
        # losses are cut there, so that nothing is known above
        return inf if total >= _FAR else total * self.moves / _FINE * (1 + 2.0**-50)


def generalized_rdp(
    order: float,
    *,
    conditional: float,
    overall: float,
    test: PureDP | ZCDP | GDP | Callable[[float], float],
    false_pass: float,
) -> float:
    """A Renyi bound at one order for a test followed by a mechanism.

    The module docstring has the formula and its proof.

    Parameters
    ----------
    order : float
        Order a of the Renyi divergence, above 1.
    conditional : float
        Loss e(a) of the mechanism where the test is right to pass.
    overall : float
        Loss of the mechanism in every case.
    test : PureDP, ZCDP, GDP or callable
        Guarantee of the test, or its Renyi curve as a function of the order.
    false_pass : float
        Largest probability of passing where the conditional loss does not hold.

    Returns
    -------
    float
        The Renyi bound at `order`.

    Raises
    ------
    PrivacyError
        A number is out of range.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem B.5, corrected.

    Examples
    --------
    >>> round(generalized_rdp(2.0, conditional=0.1, overall=5.0, test=PureDP(0.5), false_pass=1e-3), 4)
    0.6384
    """
    if not order > 1 or not 0 <= conditional < inf or not 0 <= overall < inf or not 0 < false_pass < 1:
        raise PrivacyError(
            f"order must be above 1, the losses finite and at least 0, and false_pass in (0, 1), got {order!r}, {conditional!r}, "
            f"{overall!r}, {false_pass!r}"
        )
    curve = _curve(test)
    own, up = curve(order), order - 1
    orders = order + _ORDERS
    wrong = min(
        ((b - order) / (b - 1) * log(false_pass) + up * (curve(float(b)) + overall) for b in orders), default=inf
    )
    if isinstance(test, PureDP):
        wrong = log(false_pass) + up * (test.epsilon + overall)
    refused = up * own
    second = max(refused, wrong) + log(1 + exp(-abs(refused - wrong))) if isfinite(wrong) else wrong
    return max(own + conditional, second / up)


def _curve(test: PureDP | ZCDP | GDP | Callable[[float], float]) -> Callable[[float], float]:
    match test:
        case PureDP(epsilon):
            return lambda _: epsilon
        case ZCDP(rho):
            return lambda a: rho * a
        case GDP(mu, delta):
            if delta:
                raise PrivacyError(f"a test with a delta has no Renyi curve, got {test}", f"give cf.GDP({mu!r})")
            return lambda a: mu * mu / 2 * a
    return test


def _steps(loss: float, moves: float) -> int:
    """The loss in 2^-20 of its move, rounded up and clipped to a public range. A value that is not a number becomes the largest."""
    if not loss >= 0:
        loss = 0.0 if loss < 0 else inf
    return _FAR if loss == inf else min(ceil(Fraction(float(loss)) / Fraction(moves) * _FINE), _FAR)
