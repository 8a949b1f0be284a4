"""Ways to tell two neighbors apart, learned from runs of a mechanism: each gives an outcome a score, large on `neighbor`.

The best test is a threshold on the likelihood ratio (Neyman, Pearson 1933), so every attack estimates one:

| attack | reads | made for |
| --- | --- | --- |
| kind | the key of the outcome: types, texts, NaN places, exceptions | control flow, errors, special values |
| value | one number, above or below a threshold | additive noise on one number |
| histogram | the ratio of two histograms of one number | other laws of one number, spread that differs |
| atoms | exact values that occur often | discrete laws, values only one neighbor gives |
| lowest bit | the place of the last 1 in the binary digits | parity; with `bits`, the lattice of floating-point noise (Mironov 2012) |
| linear | Fisher's discriminant with a ridge | additive noise in many dimensions |
| quadratic | the ratio of two fitted normal laws | spread and correlation that differ |
| coordinates | the sum of all coordinates' histogram ratios | independent coordinates with other laws |
| distance | the distance from the center | spread that differs in many dimensions |

Nothing here decides anything: a wrong attack makes an audit weak, never wrong, because its error rates are counted on runs it has not
seen.

Audits from a single run: many canaries at once, each in or out by a fair coin, told apart in one release.

Setting. The frame u_1..u_m in R^d is orthonormal and uniformly random, the coins b_i are fair and independent; neither is
known to the mechanism. Canary i is the record `norm` u_i, and it is in the records when b_i = 1. The release is y in R^d. Signals:
s_i = <u_i, y - baseline>, m1 canaries in, m0 = m - m1 out.

Gaussian bound (`one_run_gaussian`). Assume (A) y = a + beta sum_i b_i u_i + Z where neither a nor Z depends on frame or coins;
(B) Z ~ N(0, sigma^2 I). Then the mechanism spends mu >= beta/sigma, since each canary alone moves the mean by beta; and with

    t = sqrt(m1) mean(s_i: in) / rms(s_i: out),      F(. ; k) the noncentral t law with m0 degrees and noncentrality k,

the k with F(t; k) = confidence, over sqrt(m1), exceeds beta/sigma with probability at most 1 - confidence. Proof: if a equals
the baseline on the frame, the s_i are independent N(beta b_i, sigma^2) and t has exactly that law. Otherwise the vector
(<u_i, a - baseline + Z>)_i = R w has w uniform on the sphere and independent of R, as the frame is uniform, and
R^2 is stochastically larger than in the first case (noncentral against central chi-square). t = (sqrt(m1) beta/R + c(w))/q(w), with c
and q the mean term and the root mean square of w, does not increase in R. So the bound only falls. No central limit theorem is used.

This follows the signals of Agrawal et al. (2026, arXiv 2606.12733), whose normalized sums are asymptotically Gaussian
for DP-SGD. Here the finite-sample law is exact, under the assumptions (A) and (B). Without an assumption of this kind
no one-run bound comes near. For example, a mechanism draws L ~ N(v/2, v), v = mu * mu, once and then tells every coin
by randomized response at |L|. It is mu-GDP, and at mu = 0.40 it gets 69% of all coins right with probability 0.05.
That is what the Gaussian mechanism gets right at mu = 1.

Guessing bounds (`one_run_epsilon`, `one_run_mu`). No assumption but the coins. Of r guesses W are right. Under (epsilon, delta)
for single flips, with p = e^epsilon/(1 + e^epsilon), for every k >= 1

    P(W >= v) <= P(Bin(r, p) > v - k) + m delta/k.

Proof: given y and b_1..b_{i-1} a guess is right with probability at most p + x_i, which a Bernoulli(p) or an
independent Bernoulli(x_i/(1 - p)) covers. The expectation of x_i is at most (1/2) sum over j of the integral of [(1-p) P_j - p P_{1-j}]_+
<= (1 - p) delta, so the second kind has expected number at most m delta, and Markov's inequality bounds it by k. For
delta 0 this is the bound of Steinke, Nasr, Jagielski 2023. A mu-GDP mechanism meets (epsilon, delta_mu(epsilon)) for all
epsilon at once, so the least bound over epsilon is valid for it without a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import chi2

from confide._special import bdtrc, ndtr, ndtri
from confide.audit.outcomes import FloatArray, IntArray, Outcomes
from confide.audit.verdict import Audit, Finding, curve_of
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP, gaussian_delta
from confide.guarantees.validation import count, level, share

Scorer = Callable[[FloatArray], FloatArray]

BINS = 128
FEW = 30  # fewer runs than that teach nothing
COORDINATES = 3  # single coordinates tried on their own, the most telling ones
QUADRATIC_UP_TO = 60  # dimensions
DENSE_UP_TO = 1_500  # dimensions for which a covariance matrix is built


@dataclass(frozen=True)
class Attack:
    """A named score: `Outcomes` -> (n,) floats, large where `neighbor` is likely."""

    name: str
    score: Callable[[Outcomes], FloatArray]


def learn(zero: Outcomes, one: Outcomes, *, bits: bool = False) -> list[Attack]:
    """All attacks that apply to these outcomes, fitted: zero from `data`, one from `neighbor`.

    bits: read the last binary digits of numbers that are not integers, too. Otherwise these numbers stand for real
    ones.
    """
    fine = _key_ratio(zero.fine, one.fine)
    coarse = _key_ratio(zero.coarse, one.coarse)
    kinds = len(np.union1d(zero.fine, one.fine))
    attacks = []
    if kinds > 1:
        attacks.append(Attack("kind", lambda outcomes: fine(outcomes.fine)))
        attacks.append(Attack("kind without texts", lambda outcomes: coarse(outcomes.coarse)))
    width = _common_width(zero, one)
    if width is None:
        return attacks or [Attack("none", lambda outcomes: np.zeros(len(outcomes)))]
    first, second = zero.groups[width][1], one.groups[width][1]
    key = (lambda outcomes: coarse(outcomes.coarse)) if kinds > 1 else None
    for name, scorer, is_ratio in _numeric(first, second, bits):
        if kinds == 1:
            attacks.append(Attack(name, _on_group(width, scorer, None)))
            if is_ratio:
                continue
        ratio = scorer if is_ratio else _chain(scorer, histogram_ratio(scorer(first), scorer(second)))
        label = name if is_ratio else f"{name}, histogram"
        attacks.append(Attack(label, _on_group(width, ratio, key)))
    return attacks


def _common_width(zero: Outcomes, one: Outcomes) -> int | None:
    shared = [
        (min(len(zero.groups[width][0]), len(one.groups[width][0])), width)
        for width in set(zero.groups) & set(one.groups)
    ]
    count, width = max(shared, default=(0, 0))
    return width if count >= FEW else None


def _on_group(
    width: int, scorer: Scorer, key: Callable[[Outcomes], FloatArray] | None
) -> Callable[[Outcomes], FloatArray]:
    def score(outcomes: Outcomes) -> FloatArray:
        total = np.zeros(len(outcomes)) if key is None else key(outcomes)
        if width in outcomes.groups:
            rows, matrix = outcomes.groups[width]
            total[rows] += scorer(matrix)
        return total

    return score


def _chain(inner: Scorer, outer: Scorer) -> Scorer:
    return lambda matrix: outer(inner(matrix))


def _numeric(zero: FloatArray, one: FloatArray, bits: bool) -> Iterator[tuple[str, Scorer, bool]]:
    """(name, scorer of an (n, k) matrix, whether the score is a log-likelihood ratio)."""
    k = zero.shape[1]
    telling = [0] if k == 1 else _telling(zero, one)
    for j in telling[:COORDINATES]:
        of = "" if k == 1 else f" of number {j + 1}"
        sign = 1.0 if one[:, j].mean() >= zero[:, j].mean() else -1.0
        yield f"value{of}", _column(j, sign), False
        lowest = None
        if bits or (_whole(zero[:, j]) and _whole(one[:, j])):
            lowest = _atom_ratio(_lowest_bit(zero[:, j]), _lowest_bit(one[:, j]))
        if lowest is not None:
            yield f"lowest bit{of}", _chain(_chain(_column(j, 1.0), _lowest_bit), lowest), True
        if k > 1:
            column_atoms = _atom_ratio(zero[:, j], one[:, j])
            if column_atoms is not None:
                yield f"atoms{of}", _chain(_column(j, 1.0), column_atoms), True
    atoms = _atom_ratio(_row_keys(zero), _row_keys(one))
    if atoms is not None:
        yield "atoms", _chain(_row_keys, atoms), True
    if k > 1:
        yield from _many(zero, one, telling)


def _column(j: int, sign: float) -> Scorer:
    return lambda matrix: sign * matrix[:, j]


def _many(zero: FloatArray, one: FloatArray, telling: list[int]) -> Iterator[tuple[str, Scorer, bool]]:
    n, k = min(len(zero), len(one)), zero.shape[1]
    centre = (zero.mean(axis=0) + one.mean(axis=0)) / 2
    spread = np.sqrt((zero.var(axis=0) + one.var(axis=0)) / 2)
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
    a, b = (zero - centre) * scale, (one - centre) * scale
    shift = b.mean(axis=0) - a.mean(axis=0)
    direction = shift
    if k <= DENSE_UP_TO:
        pooled = (_covariance(a) + _covariance(b)) / 2
        # the ridge keeps directions with few runs behind them from deciding; it vanishes as the runs grow
        direction = np.linalg.solve(pooled + np.eye(k) * (1e-9 + 3 * k / n), shift)
    weights = direction * scale
    yield "linear", lambda matrix: matrix @ weights, False
    if k <= QUADRATIC_UP_TO and n >= 20 * k:
        form, offset = _quadratic(a, b)
        yield "quadratic", lambda matrix: _quadratic_score((matrix - centre) * scale, form, offset), False
    yield "distance", lambda matrix: (((matrix - centre) * scale) ** 2).sum(axis=1), False
    chosen = np.array(telling[:200])
    ratios = [histogram_ratio(zero[:, j], one[:, j]) for j in chosen]

    def coordinates(matrix: FloatArray) -> FloatArray:
        total = np.zeros(len(matrix))
        for j, ratio in zip(chosen, ratios, strict=True):
            total += ratio(matrix[:, j])
        return total

    yield "coordinates", coordinates, False


def _covariance(matrix: FloatArray) -> FloatArray:
    centred = matrix - matrix.mean(axis=0)
    return np.asarray(centred.T @ centred / len(matrix), dtype=np.float64)


def _quadratic(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x'Fx + o'x is the log-likelihood ratio of two fitted normal laws, up to a constant."""
    k = a.shape[1]
    ridge = np.eye(k) * (1e-9 + k / min(len(a), len(b)))
    inverse_a, inverse_b = np.linalg.inv(_covariance(a) + ridge), np.linalg.inv(_covariance(b) + ridge)
    return (inverse_a - inverse_b) / 2, inverse_b @ b.mean(axis=0) - inverse_a @ a.mean(axis=0)


def _quadratic_score(matrix: FloatArray, form: FloatArray, offset: FloatArray) -> FloatArray:
    return np.asarray(((matrix @ form) * matrix).sum(axis=1) + matrix @ offset, dtype=np.float64)


def _telling(zero: FloatArray, one: FloatArray) -> list[int]:
    """Coordinates by how much mean and spread differ, most telling first."""
    n = min(len(zero), len(one))
    deviation = np.sqrt((zero.var(axis=0) + one.var(axis=0)) / n + 1e-300)
    mean = np.abs(zero.mean(axis=0) - one.mean(axis=0)) / deviation
    spread = np.abs(np.log((zero.std(axis=0) + 1e-300) / (one.std(axis=0) + 1e-300))) * np.sqrt(n)
    return [int(j) for j in np.argsort(-np.maximum(mean, spread), kind="stable")]


def histogram_ratio(zero: FloatArray, one: FloatArray) -> Scorer:
    """The log-ratio of two histograms on shared cells, finer in the tails where small probabilities are told apart."""
    tail = 2.0 ** -np.arange(7, 1 + max(7, int(np.log2(len(zero) + len(one))) - 3))
    levels = np.concatenate([np.arange(1, BINS) / BINS, tail, 1 - tail])
    edges = np.unique(np.quantile(np.concatenate([zero, one]), np.unique(levels)))
    counts = [np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (zero, one)]
    ratio = _log_ratio(counts[0], counts[1], len(zero), len(one))
    return lambda x: ratio[np.searchsorted(edges, x, side="right")]


def _log_ratio(first: IntArray, second: IntArray, n_first: int, n_second: int) -> FloatArray:
    """log of (second share / first share), half a count added so that an empty cell is strong but finite evidence."""
    return np.asarray(np.log((second + 0.5) / n_second) - np.log((first + 0.5) / n_first), dtype=np.float64)


def _key_ratio(zero: IntArray, one: IntArray) -> Callable[[IntArray], FloatArray]:
    """Log-ratio per key; keys seen fewer than five times count as one kind, and so do unseen ones."""
    known, place = np.unique(np.concatenate([zero, one]), return_inverse=True)
    first = np.bincount(place[: len(zero)], minlength=len(known))
    second = np.bincount(place[len(zero) :], minlength=len(known))
    common = first + second >= 5
    rest = _log_ratio(np.atleast_1d(first[~common].sum()), np.atleast_1d(second[~common].sum()), len(zero), len(one))[0]
    ratio = np.where(common, _log_ratio(first, second, len(zero), len(one)), rest)

    def score(keys: IntArray) -> FloatArray:
        index = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[index] == keys, ratio[index], rest)

    return score


def _atom_ratio(zero: FloatArray, one: FloatArray) -> Scorer | None:
    """Log-ratio per exact value, where values repeat; None where hardly any does."""
    known, place = np.unique(np.concatenate([zero, one]), return_inverse=True)
    if len(known) == 1 or np.bincount(place).max() < 10:
        return None
    lookup = _key_ratio(zero.view(np.int64), one.view(np.int64))
    return lambda x: lookup(np.ascontiguousarray(x).view(np.int64))


def _row_keys(matrix: FloatArray) -> FloatArray:
    """One float per row that is equal for equal rows: the number itself, or a mixed hash of the row's bits."""
    if matrix.shape[1] == 1:
        return np.ascontiguousarray(matrix[:, 0]) + 0.0
    mixed = np.zeros(len(matrix), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for j in range(matrix.shape[1]):
            bits = np.ascontiguousarray(matrix[:, j] + 0.0).view(np.uint64)
            mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(12)).astype(np.float64)


def _whole(x: FloatArray) -> bool:
    return bool((x == np.rint(x)).all())


def _lowest_bit(x: FloatArray) -> FloatArray:
    """The exponent of the last binary digit 1 of each number; -2000 for 0."""
    mantissa, exponent = np.frexp(x)
    digits = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = digits & -digits
    place = np.log2(np.maximum(last, 1).astype(np.float64))  # exact: powers of two
    return np.where(digits == 0, -2000.0, exponent - 53 + place)


ASSUMED = (
    "holds for a release that adds N(0, sigma^2 I) to a sum over records in which each canary counts with the same weight (its "
    "noise independent of frame and coins)"
)


@dataclass(frozen=True, eq=False)
class Canaries:
    """A random orthonormal frame (m, d), fair coins (m,) and the length of each canary.

    >>> canaries = Canaries.draw(100, 400, norm=2.0, seed=1)
    >>> canaries.records.shape[1], canaries.included.shape, bool(np.allclose(canaries.frame @ canaries.frame.T, np.eye(100)))
    (400, (100,), True)
    """

    frame: FloatArray
    included: np.ndarray[Any, np.dtype[np.bool_]]
    norm: float

    @classmethod
    def draw(cls, number: int, dimension: int, *, norm: float = 1.0, seed: int | None = None) -> Canaries:
        """New canaries; seed=None draws from the system. Errors: PrivacyError unless 20 <= number <= dimension."""
        m, d = count(number, "number", "number=1000"), count(dimension, "dimension", "dimension=2000")
        if not 20 <= m <= d:
            raise PrivacyError(
                f"canaries must be at least 20 and at most the dimension, to be orthogonal: got {m} in dimension {d}"
            )
        rng = np.random.default_rng(seed)
        basis, triangle = np.linalg.qr(rng.normal(size=(d, m)))
        frame = (basis * np.sign(np.diag(triangle))).T  # with these signs the frame is uniform (Mezzadri 2007)
        included = rng.random(m) < 0.5
        return cls(np.ascontiguousarray(frame), included, level(norm, "norm", "norm=1.0"))

    @property
    def records(self) -> FloatArray:
        """The canaries that are in, (k, d)."""
        return np.asarray(self.norm * self.frame[self.included], dtype=np.float64)

    def signals(self, release: ArrayLike, baseline: ArrayLike | None = None) -> FloatArray:
        """<u_i, release - baseline>, (m,). Errors: PrivacyError unless the release is a finite vector (d,)."""
        y = np.asarray(release, dtype=np.float64)
        if y.shape != self.frame.shape[1:] or not np.isfinite(y).all():
            raise PrivacyError(
                f"the release must be a finite vector of shape {self.frame.shape[1:]}, got shape {y.shape}; flatten it, or audit "
                "other outcomes with epsilon_lower_bound"
            )
        return np.asarray(self.frame @ (y if baseline is None else y - np.asarray(baseline)), dtype=np.float64)


def one_run_gaussian(signals: ArrayLike, included: ArrayLike, *, confidence: float = 0.99) -> float:
    """The lower bound on mu of a Gaussian mechanism from one run; theorem and assumptions at the head of this file.

    signals: (m,); included: (m,) booleans. Errors: PrivacyError for other shapes.

    >>> rng = np.random.default_rng(1)
    >>> included = rng.random(2000) < 0.5
    >>> 0.85 < one_run_gaussian(included + rng.normal(size=2000), included) < 1
    True
    """
    confidence = share(confidence, "confidence", "confidence=0.99", zero=False)
    s, b = np.asarray(signals, dtype=np.float64), np.asarray(included, dtype=bool)
    inside, outside = int(b.sum()), int((~b).sum())
    if s.shape != b.shape or s.ndim != 1:
        raise PrivacyError(f"signals and included must have one shape (m,), got {s.shape} and {b.shape}")
    if min(inside, outside) < 2:
        return 0.0  # such coins say nothing
    spread = sqrt(float((s[~b] ** 2).mean()))
    if spread == 0:
        return np.inf if s[b].mean() > 0 else 0.0
    t = sqrt(inside) * float(s[b].mean()) / spread
    chi = t * _chi(outside)

    def excess(k: float) -> float:
        return float(ndtr(chi - k).mean()) - confidence

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, chi[-1] + 10, xtol=1e-10)) / sqrt(inside)


@lru_cache(maxsize=64)
def _chi(degrees: int) -> FloatArray:
    """chi/sqrt(degrees) at the middles of equally likely slices.

    F(t; k) = E Phi(t chi/sqrt(degrees) - k), and as the mean over the slices it is right to 1e-5.
    """
    slices = (np.arange(20_000) + 0.5) / 20_000
    return np.asarray(np.sqrt(chi2.ppf(slices, degrees) / degrees), dtype=np.float64)


def one_run_epsilon(
    correct: int, guesses: int, *, canaries: int | None = None, delta: float = 0.0, confidence: float = 0.99
) -> float:
    """The lower bound on epsilon at delta from one run in which `correct` of `guesses` coins were told; no assumptions.

    canaries: how many coins there were, guessed or not (only needed for delta above 0). Errors: PrivacyError for impossible counts.

    >>> round(one_run_epsilon(900, 1000, confidence=0.95), 2)
    2.02
    """
    m, confidence = _counted(correct, guesses, canaries, confidence)
    delta = share(delta, "delta", "delta=1e-6", zero=True)
    return _largest(lambda epsilon: _chance(correct, guesses, m, epsilon, delta) <= 1 - confidence)


def one_run_mu(correct: int, guesses: int, *, canaries: int | None = None, confidence: float = 0.99) -> float:
    """The lower bound on mu from one run, as `one_run_epsilon`: every Gaussian-private mechanism, no assumptions, far from tight.

    >>> 0.2 < one_run_mu(690, 1000, confidence=0.95) < 0.43
    True
    """
    m, confidence = _counted(correct, guesses, canaries, confidence)
    return _largest(lambda mu: _gaussian_chance(correct, guesses, m, mu) <= 1 - confidence)


def _counted(correct: int, guesses: int, canaries: int | None, confidence: float) -> tuple[int, float]:
    confidence = share(confidence, "confidence", "confidence=0.99", zero=False)
    m = guesses if canaries is None else canaries
    if not 0 <= correct <= count(guesses, "guesses", "guesses=1000") <= m:
        raise PrivacyError(f"need 0 <= correct <= guesses <= canaries, got {correct}, {guesses}, {m}")
    return m, confidence


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest number that is refuted, from below up to 1e-6; 0 where none is."""
    low, high = 0.0, 1e-3
    while refuted(high):
        low, high = high, 2 * high
        if high > 100:
            return low
    while high - low > 1e-6 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _chance(correct: int, guesses: int, m: int, epsilon: float, delta: float) -> float:
    """The bound on P(W >= correct), least over k."""
    p = 1 / (1 + exp(-epsilon))
    k = np.unique(np.geomspace(1, max(correct, 1), 40).astype(int)) if delta else np.array([1])
    tail = np.where(correct - k < 0, 1.0, bdtrc(np.maximum(correct - k, 0), guesses, p))
    return min(1.0, float((tail + m * delta / k).min(initial=1.0)))


def _gaussian_chance(correct: int, guesses: int, m: int, mu: float) -> float:
    return min(
        _chance(correct, guesses, m, e, gaussian_delta(e, mu)) for e in np.linspace(0.1, 6, 40) * mu + mu * mu / 2
    )


def one_run_audit(
    mechanism: Callable[[FloatArray], ArrayLike],
    *,
    dimension: int,
    canaries: int = 1000,
    norm: float = 1.0,
    baseline: ArrayLike | None = None,
    guesses: int | None = None,
    claim: Any = None,
    confidence: float = 0.99,
    seed: int | None = None,
    name: str = "",
    relation: str | None = "add-remove",
) -> Audit:
    """Audit a vector release with one run: the Gaussian bound and the assumption-free guessing bound, one finding each.

    `mechanism`: the canaries that are in, (k, d) -> release (d,); it adds them to whatever records it has.
    `canaries`: m <= dimension. `norm`: length of each canary, the bound of one record. `baseline`: (d,) what the
    release would be without canaries and noise, if known; it sharpens the bounds. `guesses`: how many coins are
    guessed, those with the largest and smallest signals; a fifth of m unless given. `claim`: a guarantee, a curve or
    a number mu. `seed`: of frame and coins; None draws from the system.

    Each finding holds with its own `confidence`. Errors: PrivacyError for parameters or releases that do not fit.

    >>> noise = np.random.default_rng(2)
    >>> audit = one_run_audit(lambda rows: rows.sum(axis=0) + noise.normal(size=1500), dimension=1500, claim=GDP(0.5), seed=1)
    >>> [finding.verdict for finding in audit]
    ['violated', 'holds']
    """
    r = max(2, canaries // 5) if guesses is None else count(guesses, "guesses", "guesses=200")
    if r > canaries:
        raise PrivacyError(f"guesses must be at most the number of canaries, {canaries}, got {r}")
    share(confidence, "confidence", "confidence=0.99", zero=False)
    drawn = Canaries.draw(canaries, dimension, norm=norm, seed=seed)
    signals = drawn.signals(mechanism(drawn.records), baseline)
    called = name or getattr(mechanism, "__name__", "mechanism")
    labels = {"confidence": confidence, "draws": 1, "relation": relation, "name": called, "claim": claim}
    mu = one_run_gaussian(signals, drawn.included, confidence=confidence)
    gaussian = Finding(
        quantity="mu",
        lower_bound=mu,
        verdict="untested" if claim is None else "violated" if _above_gaussian(claim, mu) else "holds",
        attack=f"one run, {canaries} canaries, sum of signals",
        note=ASSUMED,
        **labels,
    )
    order = np.argsort(signals, kind="stable")
    correct = int((~drawn.included[order[: r // 2]]).sum() + drawn.included[order[len(order) - (r - r // 2) :]].sum())
    return Audit((gaussian, _guessed(correct, r, canaries, claim, labels)))


def _guessed(correct: int, guesses: int, m: int, claim: Any, labels: dict[str, Any]) -> Finding:
    confidence = labels["confidence"]
    counted = isinstance(claim, PureDP | ApproxDP)
    delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    if counted:
        bound = one_run_epsilon(correct, guesses, canaries=m, delta=delta, confidence=confidence)
        chance = _chance(correct, guesses, m, claim.epsilon, delta)
    else:
        bound = one_run_mu(correct, guesses, canaries=m, confidence=confidence)
        chance = _claimed_chance(correct, guesses, m, claim)
    return Finding(
        quantity="epsilon" if counted else "mu",
        lower_bound=bound,
        verdict="untested" if claim is None else "violated" if chance <= 1 - confidence else "holds",
        attack=f"one run, {correct} of {guesses} guesses right",
        delta=delta,
        **labels,
    )


def _claimed_chance(correct: int, guesses: int, m: int, claim: Any) -> float:
    """The least bound over epsilon for any claim with a privacy profile; from its curve where it has none."""
    if claim is None:
        return 1.0
    if isinstance(claim, GDP) and claim.delta == 0:
        return _gaussian_chance(correct, guesses, m, claim.mu)
    if isinstance(claim, int | float):
        return _gaussian_chance(correct, guesses, m, float(claim))
    return min(_chance(correct, guesses, m, e, delta) for e, delta in _profile(claim))


def _profile(claim: Any) -> Iterable[tuple[float, float]]:
    """(epsilon, delta) pairs of a claimed curve: delta(epsilon) = sup over alpha of 1 - f(alpha) - e^epsilon alpha, bounded from above."""
    f = curve_of(claim)
    alphas = np.concatenate([[0.0], np.geomspace(1e-9, 1, 400)])
    values = np.array([f(float(a)) for a in alphas])
    for epsilon in np.linspace(0.1, 8, 40):
        # on [left, right] f is at least its value at the right end and alpha at least the left end: never too small a delta
        yield float(epsilon), min(1.0, max(0.0, float((1 - values[1:] - exp(epsilon) * alphas[:-1]).max())))


def _above_gaussian(claim: Any, mu: float) -> bool:
    """Whether the claimed curve lies above that of mu somewhere."""
    f = curve_of(claim)
    alphas = ndtr(np.linspace(-6, 6, 241))
    gaussian = ndtr(-ndtri(alphas) - mu)
    return bool((np.array([f(float(a)) for a in alphas]) > gaussian + 1e-12).any())
