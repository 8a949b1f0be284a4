"""Planted faults of propose-test-release: safety bounds with one slip each, and release laws that are not private."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from confide.audit.searches.safety import falsify_safety_bound
from confide.audit.verdict import Audit, Finding
from confide.guarantees import ApproxDP, calibrate_gaussian
from confide.guarantees.mechanisms.ptr import GaussianReply, exact_reply, worst_delta
from confide.methods.ptr.safety import SafetyBound
from confide.methods.ptr.safety_bounds import (
    BallLikelihood,
    ClassMeans,
    KernelRegression,
    LeadingEigenvector,
    LeastSquares,
    OrderStatistic,
)
from confide.sums.safety_bounds import up
from confide_lab.benchmarks.planted.kinds import Fault

__all__ = ["PTR"]


class _HalfMoves(LeastSquares):
    """The least eigenvalue is said to move by half of R_x^2."""

    @property
    def moves(self) -> float:  # type: ignore[override]
        return super().moves / 2


class _SmallKappa(LeastSquares):
    """1.3 in place of kappa."""

    def alpha_at(self, t: float) -> float:
        return up(self.reach**2 * self.r_theta * 1.3 / t)


class _NotProjected(LeastSquares):
    """alpha for lines in the ball, and lines that may lie outside of it."""

    def estimate(self, prepared: Any) -> Any:
        return np.linalg.lstsq(prepared[:, :-1], prepared[:, -1], rcond=None)[0]


class _Appended(LeastSquares):
    """An intercept appended to rows of length r_x, with the constants of rows without it."""

    @property
    def reach(self) -> float:
        return self.r_x

    def prepare(self, data: Any) -> Any:
        rows = LeastSquares(self.p, self.r_x, self.r_y, self.r_theta, self.level0).prepare(data)
        return np.column_stack([np.full(len(rows), self.tau), rows])


class _Standardised(LeastSquares):
    """Columns centred by their own means before they are shortened."""

    def prepare(self, data: Any) -> Any:
        return super().prepare(np.asarray(data) - np.asarray(data).mean(axis=0))


class _JoinsOnly(ClassMeans):
    """2R/(n_k + 1) alone: the class that a record joins."""

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return 2 * self.radius / (self.smallest + 1)


class _Signed(LeadingEigenvector):
    """The eigenvector itself, whose sign is arbitrary."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p

    @property
    def names(self) -> None:  # type: ignore[override]
        return None

    def estimate(self, prepared: Any) -> Any:
        return np.linalg.eigh(prepared.T @ prepared)[1][:, -1]


class _OneEigenvalue(LeadingEigenvector):
    """The gap is said to move by r_x^2, as one eigenvalue does."""

    @property
    def moves(self) -> float:  # type: ignore[override]
        return self.r_x**2 * (1 + 2.0**-50)


class _HalfPeak(KernelRegression):
    """Half of the kernel's largest value."""

    @property
    def peak(self) -> float:
        return super().peak / 2


class _NextStep(OrderStatistic):
    """The sensitivity at distance k with windows of one record less: gamma is 1 too large."""

    def _moves(self, whole: Any, middle: int, k: int) -> bool:
        return k > 0 and super()._moves(whole, middle, k - 1)


class _FlatCurvature(BallLikelihood):
    """Curvature at 0 in place of the least on the ball."""

    def _weights(self, a: Any) -> Any:
        return super()._weights(np.zeros_like(a))


@dataclass(frozen=True)
class _Division(SafetyBound):
    """A gamma that divides by the spread of the data."""

    dim: int = 1
    alpha: float = 1.0

    def gamma(self, prepared: Any) -> float:
        return float(1 / np.ptp(prepared[:, 0]))

    def estimate(self, prepared: Any) -> Any:
        return [0.0]


def _bound(
    name: str, what: str, faulty: SafetyBound, clean: SafetyBound, domain: Any, n: int | None, restarts: int = 2
) -> Fault:
    def build(wrong: bool, runs: int, seed: int) -> Audit:
        return _attacked(faulty if wrong else clean, tuple(domain), n, seed, restarts)

    return Fault(name, what, "falsify_safety_bound", build)


@cache  # faults of one bound share its clean twin
def _attacked(bound: SafetyBound, domain: tuple[Any, ...], n: int | None, seed: int, restarts: int) -> Audit:
    return falsify_safety_bound(bound, list(domain), n=n, seed=seed, restarts=restarts).findings()


def _law(name: str, what: str, faulty: Any, clean: Any) -> Fault:
    """Worst exact delta of a release law over its claim."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        ratio = (faulty if wrong else clean)()
        finding = Finding(
            name=name,
            quantity="ratio",
            claim=1.0,
            lower_bound=ratio,
            verdict="violated" if ratio > 1 + 1e-9 else "holds",
            attack="exact divergence",
            relation="substitute",
        )
        return Audit((finding,))

    return Fault(name, what, "exact divergence", build)


def _gaussian(shift: float) -> float:
    epsilon, delta = 1.0, 0.01
    law = GaussianReply(calibrate_gaussian(ApproxDP(epsilon, delta)), delta, 50.0)

    def probability(g: Any) -> Any:
        return np.where(g > 0, ndtr(law.mu_test * np.maximum(g - shift, 0.0) + ndtri(delta)), 0.0)

    return worst_delta(probability, law.mu_release, epsilon, largest=70, step=0.1) / delta


def _logistic(noise: float) -> float:
    """Algorithm 1's test with noise for `noise` times epsilon."""
    epsilon, delta = 4.0, 0.01
    multiplier = float(np.sqrt(2 * np.log(1.25 / delta)))
    m = 1 + 2 / epsilon * np.log(1 / delta)
    return (
        worst_delta(lambda g: expit(epsilon / 2 * (g - m)), noise * epsilon / multiplier, epsilon, largest=20, far=True)
        / delta
    )


def _table(skip: int) -> float:
    law = exact_reply(1.0, 0.01, 20)
    return (
        worst_delta(lambda g: law.probabilities(np.asarray(g) * skip), law.mu, 1.0, largest=40 / skip, step=0.5) / 0.01
    )


_LINE: dict[str, Any] = {"p": 1, "r_x": 1.0, "r_y": 1.0, "r_theta": 1.0, "level0": 2.0}
_PLANE = [(-1, 1)] * 2

PTR = [
    _bound(
        "eigenvalue moves by half", "Lipschitz constant halved", _HalfMoves(**_LINE), LeastSquares(**_LINE), _PLANE, 14
    ),
    _bound(
        "kappa is 1.3", "a constant of the least-squares bound", _SmallKappa(**_LINE), LeastSquares(**_LINE), _PLANE, 14
    ),
    _bound(
        "alpha after projection, line before",
        "the estimate is not projected",
        _NotProjected(1, 1.0, 4.0, 0.5, 1.5),
        LeastSquares(1, 1.0, 4.0, 0.5, 1.5),
        [(-1, 1), (-4, 4)],
        14,
    ),
    _bound(
        "intercept after clipping",
        "rows longer than the constants say",
        _Appended(1, 1.0, 1.0, 2.0, level0=2.2, tau=1.0),
        LeastSquares(1, 1.0, 1.0, 2.0, level0=2.2, tau=1.0),
        _PLANE,
        16,
    ),
    _bound(
        "standardised", "means of the data inside prepare", _Standardised(**_LINE), LeastSquares(**_LINE), _PLANE, 14
    ),
    _bound(
        "class means, joins only",
        "2R/(n_k + 1) alone",
        _JoinsOnly(2, 2, 1.0, n=24, c0=0.2),
        ClassMeans(2, 2, 1.0, n=24, c0=0.2),
        [(-1, 1), (-1, 1), ("a", "b")],
        None,
    ),
    _bound(
        "sign of an eigenvector",
        "an estimate that is not unique",
        _Signed(2, 1.0, 4.0),
        LeadingEigenvector(2, 1.0, 4.0),
        _PLANE,
        24,
    ),
    _bound(
        "gap as one eigenvalue",
        "Lipschitz constant halved",
        _OneEigenvalue(2, 1.0, 4.0),
        LeadingEigenvector(2, 1.0, 4.0),
        _PLANE,
        24,
    ),
    _bound(
        "half of a kernel's peak",
        "Lipschitz constant halved",
        _HalfPeak(((0.5,),), (0.2,), ((0.0, 1.0),), 1.0, 6.0),
        KernelRegression(((0.5,),), (0.2,), ((0.0, 1.0),), 1.0, 6.0),
        [(0, 1), (-1, 1)],
        24,
    ),
    _bound(
        "quantile's window too short",
        "gamma is above 0 where one record moves the value further",
        _NextStep(8, 0.0, 1.0, 0.3),
        OrderStatistic(8, 0.0, 1.0, 0.3),
        [(0, 1)],
        15,
    ),
    _bound(
        "curvature at the middle",
        "strong convexity that does not hold on the ball",
        _FlatCurvature(1, 1.0, 6.0, 1.0),
        BallLikelihood(1, 1.0, 6.0, 0.02),
        [(-1, 1), (0, 1)],
        24,
        2,
    ),
    _bound(
        "gamma divides",
        "no number on records that are all alike",
        _Division(),
        OrderStatistic(8, 0.0, 1.0, 0.3),
        [(0, 1)],
        15,
    ),
    _law(
        "test without its shift", "data with 0 < gamma <= 1 get credit", lambda: _gaussian(0.0), lambda: _gaussian(1.0)
    ),
    _law(
        "whole epsilon for the noise",
        "test at epsilon/2, noise at epsilon",
        lambda: _logistic(1.0),
        lambda: _logistic(0.5),
    ),
    _law("two steps of the table", "rounding jumps over a step", lambda: _table(2), lambda: _table(1)),
]
