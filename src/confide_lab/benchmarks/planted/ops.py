"""Planted faults of posterior sampling: certificates for one neighbor, signs, factors and constants as printed in its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, log1p, sqrt
from typing import Any

import numpy as np
from scipy import special, stats

import confide as cf
from confide.audit.methods import audit
from confide.audit.verdict import Audit, Finding
from confide.core import Meter, Plan, Source, seal
from confide.guarantees import gaussian_delta, gaussian_mu
from confide.methods.regression.certified.sums import moments
from confide.noise import SimulatedNoise
from confide_lab.aggregates.posterior import LogResidual, Posterior
from confide_lab.aggregates.posterior_pair import largest_shift, leverage_above, pair_delta, posterior_delta
from confide_lab.benchmarks.planted.kinds import Fault, law, mechanism
from confide_lab.methods.posterior_sampling import PosteriorSampling
from confide_lab.published.generalized_ptr_ops import precision_51

__all__ = ["OPS_FAULTS", "PAIR", "Certificates", "frequency", "one_dimension"]

#: Records (x, y) with |x|, |y| <= 1: the second takes the first one's line to 0, and its residual is the largest there is.
PAIR = (np.array([[1.0, 1.0]]), np.array([[1.0, 1.0], [1.0, -1.0]]))
SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
_CLAIM = cf.ApproxDP(1.0, 0.01)


# the whole release in one dimension, as a function ------------------------------------------------------------------


@dataclass(frozen=True)
class _Variant:
    """How bounds and precision follow from the noisy numbers: of `PosteriorSampling`, or "printed", with the sign of each quantile.

    always: a sample of tiny precision where none is within what is left, in place of no reply: its variance tells the data apart.
    """

    kind: str = "ours"
    sign: float = 1.0
    lam: float = 1.0
    always: bool = False


def one_dimension(variant: _Variant, claim: cf.ApproxDP = _CLAIM) -> Callable[[Any, Any, int], Any]:
    """(generator, records, runs) -> log-likelihood ratios of the releases (eigenvalue, residual, theta) between the data of `PAIR`."""
    epsilon, delta, lam = claim.epsilon, claim.delta, variant.lam
    if variant.kind == "ours":
        mu, spare = gaussian_mu(epsilon, 0.9 * delta), 0.1 * delta
        s_a, s_b, mu_c = 1 / (0.3 * mu), 1 / (0.3 * mu), mu * sqrt(0.82)
        quantile, near = -float(special.ndtri(spare / 4)), 1.0
    else:
        s_a = s_b = sqrt(log(6 / delta)) / (epsilon / 4)
        quantile, near = sqrt(2 * log(2 / delta)), 0.0

    def settled(first: Any, second: Any) -> tuple[Any, Any]:
        """(D, gamma) from the first number, and from both."""
        lower = np.maximum(0.0, first - variant.sign * s_a * quantile - near)
        lev = 1 / (lam + lower)
        if variant.kind == "ours":
            lev = np.array([leverage_above(v) for v in lev])
        span = np.log1p(lev)
        log_r = second + variant.sign * span * s_b * quantile + near * span
        if variant.kind == "ours":
            shift = {v: largest_shift(float(v), mu_c, spare / 2) for v in np.unique(lev)}
            found = (np.array([shift[v] for v in lev]) * np.exp(-np.maximum(log_r, 0.0))) ** 2 * (1 + lev) / lev
            return span, np.maximum(found, 1e-30 if variant.always else 0.0)
        size = np.exp(log_r)
        found = [precision_51(epsilon / 2, delta / 3, 1 / v, r) for v, r in zip(lev, size, strict=True)]
        return span, np.array(found)

    def summary(rows: Any) -> tuple[float, float]:
        return float(rows[:, 0] @ rows[:, 0]), float(rows[:, 0] @ rows[:, 1])

    def likelihood(rows: Any, first: Any, second: Any, theta: Any, span: Any, gamma: Any) -> Any:
        g, c = summary(rows)
        replied = gamma > 0  # where there is no precision, nothing is drawn
        centre, sd = c / (g + lam), 1 / np.sqrt(np.where(replied, gamma, 1.0) * (g + lam))
        return (
            stats.norm.logpdf(first, g, s_a)
            + stats.norm.logpdf(second, log1p(abs(centre)), span * s_b)
            + np.where(replied, stats.norm.logpdf(theta, centre, sd), 0.0)
        )

    def run(generator: Any, rows: Any, runs: int) -> Any:
        g, c = summary(rows)
        first = g + s_a * generator.standard_normal(runs)
        span, _ = settled(first, np.zeros(runs))
        second = log1p(abs(c / (g + lam))) + span * s_b * generator.standard_normal(runs)
        _, gamma = settled(first, second)
        theta = c / (g + lam) + generator.standard_normal(runs) / np.sqrt(np.where(gamma > 0, gamma, 1.0) * (g + lam))
        one, other = (likelihood(own, first, second, theta, span, gamma) for own in PAIR)
        return one - other

    return run


# the certificates of the method, without the sample, so that they are sums of integers and noise ---------------------


@dataclass(frozen=True)
class _HalfRange(LogResidual):
    """The residual in units of half of its range, with the sensitivity of the whole."""

    @property
    def range(self) -> float:
        return super().range / 2


@dataclass(frozen=True)
class Certificates(PosteriorSampling):
    """`PosteriorSampling` that stops after its certificates. fault: "" or "half range", "one neighbor", "no range", "transposed"."""

    penalty: float | str = 2.0
    fault: str = ""

    def _residual(self, design: Any) -> LogResidual:
        own = super()._residual(design)
        return _HalfRange(own.map, own.start, own.basis) if self.fault == "half range" else own

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        inner = made.event.then  # type: ignore[union-attr]
        return replace(made, event=replace(made.event, then=inner.on))  # type: ignore[call-arg]

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        design = self._design(source.schema)
        rows, (start, basis) = self._rows(design), self._lines(design)
        odds = self._odds(cf.core.Allowance(plan.requested, plan.guarantee, 1))  # type: ignore[arg-type]
        (whole,) = source.aggregate(moments(rows))
        posterior = Posterior.of(rows, whole, start, basis)
        lower, lam, log_r = self._bounds(meter, plan, posterior, whole, design, odds)
        own = self._residual(design).at(lam, lower)
        if self.fault == "one neighbor":
            lower += rows.bound**2
        if self.fault == "no range":
            log_r -= own.range
        return {"eigenvalue": np.array([lower]), "log_residual": np.array([log_r])}


def _replayed(wrong: bool, runs: int, seed: int) -> Audit:
    method = Certificates("y ~ 0 + a", fault="half range" if wrong else "")
    return audit(method, SCHEMA, privacy=cf.GDP(20.0, 1e-9), relation="add-remove", runs=0, seed=seed)


def frequency(fault: str, what: str, seed: int, runs: int = 300) -> Finding:
    """How often a certificate is not good for records with one less, against its failure probability: .05 here.

    what: "eigenvalue" or "log_residual". Two hundred records along one axis, and one more of the most harmful kind.
    """
    formula = "y ~ 0 + a" if what == "log_residual" else "y ~ a"
    method = Certificates(formula, fault=fault, penalty=2.0)
    whole = (
        np.array([[1.0, 1.0], [1.0, -1.0]]) if what == "log_residual" else np.tile([[1.0, 1.0], [-1.0, 1.0]], (20, 1))
    )
    if what == "eigenvalue":
        whole = np.vstack([whole, [[0.0, 1.0]]])
    names = ["a", "y"]
    plan = cf.plan(method, SCHEMA, cf.GDP(60.0, 0.2))
    source = cf.read(dict(zip(names, whole.T, strict=True)), SCHEMA)
    less = cf.read(dict(zip(names, (whole[:1] if what == "log_residual" else whole[:-1]).T, strict=True)), SCHEMA)
    design = method._design(SCHEMA)
    rows, (start, basis) = method._rows(design), method._lines(design)
    small, large = (Posterior.of(rows, one.aggregate(moments(rows))[0], start, basis) for one in (less, source))
    bad = 0
    for k in range(runs):
        public = seal(method, source, plan, SimulatedNoise(seed * 1000 + k)).public
        if what == "eigenvalue":
            least = float(np.linalg.eigvalsh(large.gram)[0])
            bad += float(public["eigenvalue"][0]) > max(least - rows.bound**2, 0.0)
        else:
            # the worst that a neighbor may have: one range more
            lower = float(public["eigenvalue"][0])
            worst = large.log_residual(2.0) + log1p(rows.bound**2 / (2.0 + lower))
            bad += float(public["log_residual"][0]) < max(worst, small.log_residual(2.0))
    low = float(stats.beta.ppf(0.0005, bad, runs - bad + 1)) if bad else 0.0
    return Finding(
        name=f"{what} {fault or 'as it is'}",
        quantity="gap",
        claim=0.05,
        lower_bound=low,
        verdict="violated" if low > 0.05 else "holds",
        attack="frequency of a failed certificate",
        relation="add-remove",
        note=f"{bad} of {runs}",
    )


def _frequency(fault: str, what: str) -> Callable[[bool, int, int], Audit]:
    return lambda wrong, runs, seed: Audit((frequency(fault if wrong else "", what, seed),))


# the sample and the exact pair --------------------------------------------------------------------------------------


class _Transposed(Posterior):
    """A sample with R' in place of R: its covariance is (RR')^-1."""

    def draw(self, lam: float, gamma: float, normal: Any) -> Any:
        lower = np.linalg.cholesky(self.gram + lam * np.eye(len(self.cross)))
        return np.asarray(self.solved(lam) + np.linalg.solve(lower, normal / 2.0**56) / sqrt(gamma))


def _covariance(kind: type[Posterior], seed: int, runs: int = 4_000) -> Finding:
    """The likelihood ratio test of the sample's covariance against (gamma H)^-1, at level 1e-6."""
    gram = np.array([[30.0, 25.0, 3.0], [25.0, 24.0, 1.0], [3.0, 1.0, 2.0]])
    posterior, lam, gamma = kind(gram, np.ones(3), 1.0, 1.0), 0.5, 3.0
    g = np.random.default_rng(seed)
    drawn = np.array([posterior.draw(lam, gamma, g.standard_normal(3) * 2.0**56) for _ in range(runs)], dtype=float)
    root = np.linalg.cholesky(gamma * (gram + lam * np.eye(3)))
    white = (drawn - posterior.solved(lam)) @ root
    own = white.T @ white / runs
    statistic = runs * (float(np.trace(own)) - float(np.linalg.slogdet(own)[1]) - 3)
    return Finding(
        name="covariance of the sample",
        quantity="gap",
        claim=float(stats.chi2.isf(1e-6, 6)),
        lower_bound=statistic,
        verdict="violated" if statistic > stats.chi2.isf(1e-6, 6) else "holds",
        attack="likelihood ratio",
        relation="add-remove",
    )


def _pair(shift: float, leverage: float, mu: float, slack: float) -> Finding:
    """Whether a shift keeps a pair within a Gaussian curve and a slack, at 400 epsilons."""
    points = np.linspace(0, 8 * mu, 400)
    over = posterior_delta(points, shift, leverage) - [gaussian_delta(float(e), mu) + slack for e in points]
    return Finding(
        name="pair of posteriors",
        quantity="delta",
        claim=slack,
        lower_bound=float(max(over)) + slack,
        verdict="violated" if max(over) > 0 else "holds",
        attack="exact curve",
        relation="add-remove",
    )


def _one_direction(leverage: float, mu: float, slack: float) -> float:
    """The largest shift that one direction alone allows."""
    points = np.linspace(0, 8 * mu, 200)
    target = np.array([gaussian_delta(float(e), mu) + slack for e in points])
    low, high = 0.0, 4 * mu
    for _ in range(50):
        m = (low + high) / 2
        # with the record first: N(m, v) against N(0, 1), standardised
        own = [pair_delta(float(e), m * sqrt(1 + leverage), 1 + leverage) for e in points]
        low, high = (m, high) if (np.array(own) <= target).all() else (low, m)
    return low


_MU, _SLACK, _LEVERAGE = 1.0, 1e-6, 0.03
_PRINTED = precision_51(2.0, 1e-6, 100.0, 2.0)

OPS_FAULTS = [
    mechanism(
        "signs of the certificates as printed",
        "the eigenvalue's quantile is added and the residual's taken off (Algorithm 7)",
        one_dimension(_Variant("printed", -1.0)),
        one_dimension(_Variant()),
        _CLAIM,
        data=PAIR[0],
        neighbor=PAIR[1],
    ),
    mechanism(
        "a sample where none is private enough",
        "at a leverage for which there is no precision it samples with a tiny one",
        one_dimension(_Variant(lam=0.05, always=True), cf.ApproxDP(0.3, 1e-6)),
        one_dimension(_Variant(lam=0.05), cf.ApproxDP(0.3, 1e-6)),
        cf.ApproxDP(0.3, 1e-6),
        data=PAIR[0],
        neighbor=PAIR[1],
    ),
    Fault(
        "eigenvalue of the larger records",
        "the certificate is not lowered by B^2: it is good for the records at hand only",
        "frequency of a failed certificate",
        _frequency("one neighbor", "eigenvalue"),
    ),
    Fault(
        "residual of the records at hand",
        "the certificate is not raised by one range",
        "frequency of a failed certificate",
        _frequency("no range", "log_residual"),
    ),
    Fault(
        "residual in half ranges",
        "the residual is released in units of half its range, with the sensitivity of the whole",
        "audit of the method",
        _replayed,
    ),
    law(
        "transposed factor",
        "the sample is taken with R' in place of R",
        lambda: _covariance(_Transposed, 1),
        lambda: _covariance(Posterior, 2),
    ),
    law(
        "one direction of the pair",
        "the shift is the largest that the direction with the record first allows",
        lambda: _pair(_one_direction(_LEVERAGE, _MU, _SLACK), _LEVERAGE, _MU, _SLACK),
        lambda: _pair(largest_shift(_LEVERAGE, _MU, _SLACK), _LEVERAGE, _MU, _SLACK),
    ),
    law(
        "precision of Theorem 5.1",
        "gamma from sqrt(log(2/delta)) in place of a normal quantile",
        lambda: _at(_PRINTED),
        lambda: _at(precision_51(2.0, 1e-6, 100.0, 2.0, corrected=True)),
    ),
]  # fmt: skip


def _at(gamma: float) -> Finding:
    """The exact delta of a precision at epsilon = 2, residual 2, leverage 1/100, where 1e-6 is claimed."""
    lev = Fraction(1, 100)
    found = posterior_delta(2.0, sqrt(gamma * 4 * float(lev / (1 + lev))), float(lev))
    return Finding(
        name="delta",
        quantity="delta",
        claim=1e-6,
        lower_bound=found,
        verdict="violated" if found > 1e-6 else "holds",
        attack="exact curve",
        relation="add-remove",
    )
