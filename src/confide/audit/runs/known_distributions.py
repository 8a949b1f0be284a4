"""Exact audits: no runs, where the law of the output is known in closed form.

Two laws P (on the records) and Q (on the neighbor) over countably many outcomes are told apart best by thresholds on
their likelihood ratio. These tests are the knots (alpha_k, beta_k) of the exact trade-off curve, which is straight
between them. A claimed curve f is convex, so it lies below the exact curve everywhere as soon as it does at the
knots. Checking the knots decides the claim, up to rounding of floats (`ROUNDING`). From the knots also follow the
exact

    delta(epsilon) = max_k (1 - beta_k - e^epsilon alpha_k)        (the hockey-stick divergence)
    epsilon(delta) = max_k log((1 - beta_k - delta)/alpha_k)
    mu             = max_k (Phi^-1(1 - alpha_k) - Phi^-1(beta_k))

For additive noise with a log-concave law on the integers, moved by D steps, the thresholds are half-lines {X >= k}, and
only tails are needed. Where there are more knots than `MOST`, as many are taken in even steps: every finding "violated" stays exact, and
"holds" is about those knots. The continuous laws "gaussian" and "laplace" are read at `MOST` thresholds in the same sense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide._helpers import later
from confide._special import ndtr, ndtri
from confide.audit.outcomes import FloatArray
from confide.audit.verdict import Finding, curve_of, relation_of, trade_off_of
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.guarantees.validation import level

signal = later("scipy.signal")

MOST = 200_001
ROUNDING = 1e-12  # sums of 1e6 terms in float64, smallest first, are right to 1e-13 of their size
WIDEST = 20_000.0  # steps of sigma up to which a discrete Gaussian is summed term by term
_LAWS = ("grid_gaussian", "discrete_gaussian", "grid_laplace", "discrete_laplace", "gaussian", "laplace")


@dataclass(frozen=True, eq=False)
class Knots:
    """Tests between two laws, each array (k,): false-alarm rates alpha, their complements 1 - alpha, miss rates beta,
    powers 1 - beta; complements stand apart so that small numbers keep their digits. `rounding`: what these numbers
    may be wrong by.
    """

    alpha: FloatArray
    quiet: FloatArray
    beta: FloatArray
    power: FloatArray
    rounding: float = ROUNDING

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at a real epsilon, of the worse order of the pair: the least delta that it allows."""
        forward = (self.power - exp(epsilon) * self.alpha).max()
        return max(0.0, float(forward), float((self.quiet - exp(epsilon) * self.beta).max()))

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon >= 0 at delta that this pair allows, in its worse order; inf where there is none."""
        worst = 0.0
        for seen, wrong in ((self.power, self.alpha), (self.quiet, self.beta)):
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.log(np.maximum(seen - delta, 0)) - np.log(wrong)
            needed = needed[seen > delta + (self.rounding if delta else 0)]
            worst = max(worst, float(needed.max(initial=0.0)))
        return worst

    def mu(self) -> float:
        """The least mu of Gaussian differential privacy that this pair allows; inf where there is none."""
        if ((self.alpha == 0) & (self.power > self.rounding)).any() or (
            (self.beta == 0) & (self.quiet > self.rounding)
        ).any():
            return inf
        inside = (self.alpha > 0) & (self.quiet > 0) & (self.beta > 0) & (self.power > 0)
        a, b = self.alpha[inside], self.beta[inside]
        alarm = np.where(a < 0.5, -ndtri(a), ndtri(self.quiet[inside]))
        miss = np.where(b < 0.5, -ndtri(b), ndtri(self.power[inside]))
        return max(0.0, float((alarm + miss).max(initial=0.0)))

    def gap(self, claim: Any) -> float:
        """By how much the claimed curve lies above the exact one at worst: the delta that the claim lacks; negative where it has room."""
        f = _values(claim, self.alpha)
        g = _values(claim, self.beta)
        return float(max((f - self.beta).max(), (g - self.alpha).max()))


def audit_law(
    law: str,
    *,
    scale: Any,
    shift: Any,
    claim: Any,
    quantity: str | None = None,
    delta: float | None = None,
    name: str = "",
    relation: str | None = None,
) -> Finding:
    """The exact verdict on integers (or reals) plus noise of a known law, for a neighbor that moves them by `shift`.

    `law`: "grid_gaussian", "discrete_gaussian", "grid_laplace", "discrete_laplace", or the real "gaussian",
    "laplace". `scale`: sigma^2 for the Gaussian laws, s for the Laplace laws, in (squared) steps, as in a
    `BudgetItem`. `shift`: steps; or one per independent coordinate (then scale is one number or one per coordinate).
    `claim`: a guarantee, a curve, or a number of `quantity` ("mu" or "epsilon"). Several coordinates are read through
    one integer-weighted sum of cells of the coordinates, near the best statistic: a post-processing, so that
    "violated" is exact. Errors: PrivacyError for a law or numbers that are not allowed.

    >>> audit_law("grid_gaussian", scale=4, shift=2, claim=GDP(1.0)).verdict
    'holds'
    >>> found = audit_law("discrete_gaussian", scale=4, shift=2, claim=GDP(1.0))
    >>> found.verdict, round(found.lower_bound, 5)
    ('violated', 1.01064)
    """
    knots = exact_knots(law, scale=scale, shift=shift)
    several = np.ndim(shift) > 0 and len(shift) > 1
    attack = f"exact, {len(knots.alpha):,} thresholds" + (" on a weighted sum" if several else "")
    return _finding(knots, claim, quantity, delta, name or law, relation, attack)


def audit_probabilities(
    first: ArrayLike,
    second: ArrayLike,
    *,
    claim: Any,
    quantity: str | None = None,
    delta: float | None = None,
    name: str = "finite law",
    relation: str | None = None,
) -> Finding:
    """The exact verdict where both laws are known: probabilities of the same outcomes on two neighbors, shape (n,).

    >>> audit_probabilities([0.75, 0.25], [0.25, 0.75], claim=1.0, quantity="epsilon").lower_bound
    1.09861...
    """
    knots = _finite(first, second)
    return _finding(knots, claim, quantity, delta, name, relation, f"exact, {len(knots.alpha):,} outcomes")


def audit_exponential(
    scores: ArrayLike,
    neighbor_scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: float,
    lengths: ArrayLike | None = None,
    claim: Any = None,
    name: str = "exponential",
    relation: str | None = None,
) -> Finding:
    """The exact verdict on the exponential mechanism for two vectors of scores (n,).

    P(i) is proportional to lengths_i e^(epsilon score_i / (2 sensitivity)). claim: PureDP(epsilon) unless given.
    Source: McSherry, Talwar 2007.

    >>> audit_exponential([2, 0, 0, 0], [0, 2, 2, 2], epsilon=1.0, sensitivity=1.0).verdict  # the scores moved by 2, not by 1
    'violated'
    """
    rate = level(epsilon, "epsilon", "epsilon=1.0") / (2 * level(sensitivity, "sensitivity", "sensitivity=1.0"))
    laws = []
    for one in (scores, neighbor_scores):
        exponents = np.asarray(one, dtype=np.float64) * rate
        # far below the best a weight would be 0 on one side alone; kept at e^-680, such outcomes count for nothing
        weights = np.exp(np.maximum(exponents - exponents.max(), -680.0)) * (
            1.0 if lengths is None else np.asarray(lengths, dtype=np.float64)
        )
        laws.append(weights / weights.sum())
    return audit_probabilities(
        *laws, claim=PureDP(epsilon) if claim is None else claim, quantity="epsilon", name=name, relation=relation
    )


def _finding(
    knots: Knots, claim: Any, quantity: str | None, delta: float | None, name: str, relation: str | None, attack: str
) -> Finding:
    is_mu = isinstance(claim, GDP) and claim.delta == 0
    is_epsilon = isinstance(claim, PureDP | ApproxDP)
    asked = quantity or ("mu" if is_mu else "epsilon" if is_epsilon else "gap")
    if asked not in ("mu", "epsilon", "gap") or (asked == "gap" and isinstance(claim, int | float)):
        raise PrivacyError(
            f"quantity must say what the claim {claim!r} counts: 'mu' or 'epsilon', got {quantity!r}",
            "write for instance claim=1.0, quantity='mu'",
        )
    at = delta if delta is not None else claim.delta if isinstance(claim, ApproxDP) else 0.0
    if isinstance(claim, int | float):
        claimed: Any = GDP(claim) if asked == "mu" else ApproxDP(claim, at) if at else PureDP(claim)
    else:
        claimed = claim
    gap = -inf if claim is None else knots.gap(claimed)
    bound = knots.mu() if asked == "mu" else knots.epsilon(at) if asked == "epsilon" else gap
    # in the far tails a pure or Gaussian claim can fail by less probability than floats resolve, and the ratio shows it
    number = claimed.mu if is_mu or (asked == "mu" and isinstance(claimed, GDP)) else inf
    number = claimed.epsilon if asked == "epsilon" and isinstance(claimed, PureDP) and at == 0 else number
    beyond = asked != "gap" and bound - number > 1e-9 * number + knots.rounding if number < inf else False
    verdict = "untested" if claim is None else "violated" if gap > knots.rounding or beyond else "holds"
    return Finding(
        name=name,
        quantity=asked,
        claim=claim,
        lower_bound=bound,
        verdict=verdict,  # type: ignore[arg-type]
        attack=attack,
        relation=relation if relation is not None else relation_of(claim),
        delta=at,
        note=f"the claimed curve is {gap:.3g} above the exact one" if verdict == "violated" else "",
    )


def _values(claim: Any, alpha: FloatArray) -> FloatArray:
    """The claimed f at many alpha: by formula for the common claims, else through the curve itself."""
    if isinstance(claim, GDP):
        return np.asarray(np.maximum(ndtr(-ndtri(alpha) - claim.mu) - claim.delta, 0.0), dtype=np.float64)
    if isinstance(claim, PureDP | ApproxDP):
        delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
        steep = 1 - delta - np.exp(min(claim.epsilon, 700.0)) * alpha
        flat = np.exp(-claim.epsilon) * (1 - delta - alpha)
        return np.asarray(np.maximum(np.maximum(steep, flat), 0.0), dtype=np.float64)
    curve = curve_of(claim)
    inner = trade_off_of(claim)
    if inner is not None and len(alpha) > 1:
        values = np.asarray(inner(alpha), dtype=np.float64)
        if values.shape == alpha.shape:
            return values
    return np.array([curve(float(a)) for a in alpha])


def _finite(first: ArrayLike, second: ArrayLike) -> Knots:
    p, q = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if p.ndim != 1 or p.shape != q.shape or not all(x.min(initial=0) >= 0 and abs(x.sum() - 1) < 1e-9 for x in (p, q)):
        raise PrivacyError("the two laws must be probabilities of the same outcomes, shape (n,), each with sum 1")
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-(np.log(q) - np.log(p)), kind="stable")
    p, q = p[order], q[order]
    # each term carries the rounding of an exponential and a normaliser, and a running sum that of its additions
    rounding = max(ROUNDING, 8 * len(p) * 2.0**-53)
    return Knots(_sums(p), _sums_behind(p), _sums_behind(q), _sums(q), rounding=rounding)


def _sums(x: FloatArray) -> FloatArray:
    """0 and the running sums of x."""
    return np.concatenate([[0.0], np.cumsum(x)])


def _sums_behind(x: FloatArray) -> FloatArray:
    """What the running sums leave: sums from the other end, so that small ones keep their digits."""
    return _sums(x[::-1])[::-1]


def exact_knots(law: str, *, scale: Any, shift: Any) -> Knots:
    """The tests between noise of a law and the same noise moved by `shift`; arguments as `audit_law`.

    >>> [round(exact_knots(law, scale=1, shift=1).delta(0.0), 3) for law in ("grid_laplace", "discrete_laplace")]
    [0.393, 0.462]
    """
    if law not in _LAWS:
        raise PrivacyError(f"no closed form for the law {law!r}; the laws are {', '.join(_LAWS)}")
    shifts = [abs(float(one)) for one in np.atleast_1d(np.asarray(shift, dtype=np.float64))]
    scales = [float(one) for one in (scale if isinstance(scale, Sequence | np.ndarray) else [scale] * len(shifts))]
    if len(scales) != len(shifts):
        raise PrivacyError(
            f"there are {len(shifts)} shifts and {len(scales)} scales", "give one scale, or one per shift"
        )
    spreads = [
        sqrt(level(s, "scale", "scale=4")) if "gaussian" in law else level(s, "scale", "scale=2") for s in scales
    ]
    whole = law not in ("gaussian", "laplace")
    if whole and any(one != round(one) for one in shifts):
        raise PrivacyError(f"the law {law!r} lives on the integers, so shift must be whole steps, got {shift!r}")
    moved = [(spread, by) for spread, by in zip(spreads, shifts, strict=True) if by]
    if len(moved) > 1:
        return _weighted_sum(law, moved)
    spread, by = moved[0] if moved else (spreads[0], 0.0)
    reach = spread * (37 if "gaussian" in law else 600)
    k = np.linspace(-reach, by + reach, MOST)
    if whole:
        k = np.unique(np.rint(k)) if 2 * reach + by > MOST else np.arange(-ceil(reach), by + ceil(reach) + 1)
    one = 1.0 if whole else 0.0
    # X >= k on the records; X + D < k, that is -X >= D + 1 - k, on the neighbor
    alpha, quiet, beta, power = (_tail(law, spread, x) for x in (k, one - k, by + one - k, k - by))
    return Knots(alpha, quiet, beta, power)


def upper_tail(law: str, scale: float, k: ArrayLike) -> FloatArray:
    """P(X >= k) for a law by its name and scale (sigma^2 or s), with relative accuracy for k > 0; k whole for the integer laws.

    >>> float(upper_tail("grid_laplace", 1.0, 1)) == exp(-0.5) / 2
    True
    """
    spread = sqrt(scale) if "gaussian" in law else float(scale)
    return _tail(law, spread, np.asarray(k, dtype=np.float64))


def _tail(law: str, spread: float, k: FloatArray) -> FloatArray:
    one = 1.0 if law not in ("gaussian", "laplace") else 0.0
    positive = k > 0
    far = _far_tail(law, spread, np.where(positive, k, one - k))
    return np.asarray(np.where(positive, far, 1 - far), dtype=np.float64)


def _far_tail(law: str, spread: float, k: FloatArray) -> FloatArray:
    """P(X >= k) for k > 0 (for k >= 0 of the continuous laws)."""
    if law == "discrete_gaussian":
        sums = _discrete_gaussian_tails(spread)
        return sums[np.minimum(k, len(sums) - 1).astype(np.int64)]
    forms: dict[str, Callable[[FloatArray], Any]] = {
        "grid_gaussian": lambda x: ndtr(-(x - 0.5) / spread),
        "gaussian": lambda x: ndtr(-x / spread),
        "grid_laplace": lambda x: np.exp(-(x - 0.5) / spread) / 2,
        "laplace": lambda x: np.exp(-x / spread) / 2,
        "discrete_laplace": lambda x: np.exp(-x / spread) / (1 + np.exp(-1 / spread)),
    }
    return np.asarray(forms[law](k), dtype=np.float64)


@lru_cache(maxsize=16)
def _discrete_gaussian_tails(sigma: float) -> FloatArray:
    """P(X >= k) for k = 0, 1, ... until it is 0 to all digits; index len - 1 holds that 0."""
    if sigma > WIDEST:
        raise PrivacyError(
            f"a discrete Gaussian is summed term by term up to sigma = {WIDEST:g} steps, got {sigma:g}; beyond that its "
            "mu exceeds shift/sigma by 1/(24 sigma^2) in relative terms"
        )
    x = np.arange(ceil(38.5 * sigma) + 2) / sigma
    weights = np.exp(-x * x / 2)
    tails = np.cumsum(weights[::-1])[::-1]  # smallest first
    total = 2 * tails[1] + weights[0]
    return np.append(tails / total, 0.0)


def _weighted_sum(law: str, moved: list[tuple[float, float]]) -> Knots:
    """Knots of the statistic sum_i w_i c_i, c_i the cell of coordinate i, by convolution of its exact laws."""
    if len(moved) > 64:
        raise PrivacyError(
            f"at most 64 coordinates that move are summed exactly, got {len(moved)}; audit them in groups"
        )
    whole = law not in ("gaussian", "laplace")
    cells = [max(1.0, float(round(spread / 32))) if whole else spread / 32 for spread, _ in moved]
    # per cell, the log-likelihood ratio of a Gaussian grows by D g / sigma^2, of a Laplace by about g/s
    slopes = np.array(
        [(by / spread if "gaussian" in law else 1.0) * g / spread for (spread, by), g in zip(moved, cells, strict=True)]
    )
    weights = np.maximum(np.rint(16 * slopes / slopes.max()), 0).astype(int)
    zero, one = np.ones(1), np.ones(1)
    for (spread, by), g, weight in zip(moved, cells, weights, strict=True):
        if not weight:
            continue
        reach = spread * (9 if "gaussian" in law else 40)
        edges = np.arange(-ceil(reach / g), ceil((by + reach) / g) + 1, dtype=np.float64) * g
        for moved_by in (0.0, by):
            tails = np.concatenate([[1.0], _tail(law, spread, edges - moved_by), [0.0]])
            law_of_cell = np.zeros((len(tails) - 2) * weight + 1)
            law_of_cell[::weight] = np.maximum(tails[:-1] - tails[1:], 0)
            if moved_by:
                one = np.maximum(signal.fftconvolve(one, law_of_cell), 0)
            else:
                zero = np.maximum(signal.fftconvolve(zero, law_of_cell), 0)
    zero, one = zero / zero.sum(), one / one.sum()
    alpha, quiet, beta, power = _sums(zero[::-1]), _sums_behind(zero[::-1]), _sums_behind(one[::-1]), _sums(one[::-1])
    told = (
        (alpha > 1e-9) & (beta > 1e-9) & (quiet > 1e-9) & (power > 1e-9)
    )  # a transform leaves errors of 1e-16 per cell; knots further out say nothing
    return Knots(alpha[told], quiet[told], beta[told], power[told], rounding=1e-11)
