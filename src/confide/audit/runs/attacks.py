"""Ways to tell two neighbours apart, learnt from runs of a mechanism: each gives an outcome a score, large on `neighbour`.

The best test is a threshold on the likelihood ratio (Neyman, Pearson 1933), so every attack estimates one:

| attack | reads | made for |
| --- | --- | --- |
| kind | the key of the outcome: types, texts, NaN places, exceptions | control flow, errors, special values |
| value | one number, above or below a threshold | additive noise on one number |
| histogram | the ratio of two histograms of one number | other laws of one number, spread that differs |
| atoms | exact values that occur often | discrete laws, values only one neighbour gives |
| lowest bit | the place of the last 1 in the binary digits | parity; with `bits`, the lattice of floating-point noise (Mironov 2012) |
| linear | Fisher's discriminant with a ridge | additive noise in many dimensions |
| quadratic | the ratio of two fitted normal laws | spread and correlation that differ |
| coordinates | the sum of all coordinates' histogram ratios | independent coordinates with other laws |
| distance | the distance from the centre | spread that differs in many dimensions |

Nothing here decides anything: a wrong attack makes an audit weak, never wrong, because its error rates are counted on runs it has not
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from confide.audit.outcomes import FloatArray, IntArray, Outcomes

__all__ = ["Attack", "histogram_ratio", "learn"]

Scorer = Callable[[FloatArray], FloatArray]

BINS = 128
FEW = 30  # fewer runs than that teach nothing
COORDINATES = 3  # single coordinates tried on their own, the most telling ones
QUADRATIC_UP_TO = 60  # dimensions
DENSE_UP_TO = 1_500  # dimensions for which a covariance matrix is built


@dataclass(frozen=True)
class Attack:
    """A named score: `Outcomes` -> (n,) floats, large where `neighbour` is likely."""

    name: str
    score: Callable[[Outcomes], FloatArray]


def learn(zero: Outcomes, one: Outcomes, *, bits: bool = False) -> list[Attack]:
    """All attacks that apply to these outcomes, fitted: zero from `data`, one from `neighbour`.

    bits: read the last binary digits of numbers that are no integers too; otherwise such numbers stand for real ones.
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
