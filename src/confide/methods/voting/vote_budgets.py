"""Noise and test of teachers' votes, chosen from public facts alone: the budget, the sizes, and how much teachers are expected to agree.

Votes are simulated under that expectation, by teachers none of which fails; no private vote is looked at. Where less noise with a
certificate gets more labels right than the plain Gaussian mechanism of the same (epsilon, delta), and its test would pass, it is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.guarantees import gaussian_mu
from confide.guarantees.validation import is_finite
from confide.methods.ptr.classic_ptr import StableRelease
from confide.methods.voting.teachers_distance import BallotDistance

__all__ = ["VoteBudget", "budget_of", "checked_agreement", "simulated_votes"]

Agreement = str | tuple[float, float]

#: Chance of passing that is planned for, in all simulations.
_PASS = 0.99
_SEEDS = 3
_SIGMAS = (3.0, 5.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0)
# Of the test, the usual ones first.
_SHARES = (0.3, 0.25, 0.4, 0.2, 0.5, 0.15, 0.6, 0.1)


@dataclass(frozen=True)
class VoteBudget:
    """sigma: of the noise on counts; test: epsilon of the certificate, 0 for the plain Gaussian mechanism; right: of labels, in
    simulations."""

    sigma: float
    test: float
    right: float

    def distance(self, epsilon: float, delta: float, teachers: int) -> BallotDistance:
        """The distance behind the test, cut where it passes all but surely."""
        most = StableRelease(self.test, delta).threshold + ceil(log(1e12) / self.test) + 1
        return BallotDistance(teachers, self.sigma, left(epsilon, self.test), delta, most)


def left(epsilon: float, test: float) -> float:
    """epsilon - test, rounded down."""
    return nextafter(epsilon - test, 0.0)


def checked_agreement(agreement: object) -> Agreement:
    """ "even", or the two numbers of a Beta law; `PlanError` otherwise."""
    if agreement == "even":
        return "even"
    if isinstance(agreement, tuple | list) and len(agreement) == 2 and all(is_finite(v) and v > 0 for v in agreement):
        return float(agreement[0]), float(agreement[1])
    raise PlanError(
        "agreement must be 'even' or two numbers above 0 of a Beta law of the most frequent label's share, "
        f"got {agreement!r}; "
        "write (12, 1.5)"
    )


@lru_cache(maxsize=16)
def simulated_votes(agreement: Agreement, teachers: int, classes: int, queries: int, seed: int) -> NDArray[np.int64]:
    """Votes (queries, classes) under an expectation: the most frequent label has a share of the teachers, the others split the rest.

    "even": a share evenly distributed from 38 % to 100 %. (a, b): Beta(a, b), of what lies above 38 %. The rest is multinomial with
    shares of a Dirichlet law of parameter 1/2; draws in which another label leads are drawn again.

    >>> simulated_votes("even", 400, 10, 3, 0).sum(axis=1).tolist()
    [400, 400, 400]
    """
    generator = np.random.default_rng([seed, teachers, classes])
    rows: list[list[int]] = []
    while len(rows) < queries:
        if agreement == "even":
            top = int(generator.integers(ceil(0.3775 * teachers), teachers + 1))
        else:
            top = int(generator.binomial(teachers, generator.beta(*agreement)))
        rest = generator.multinomial(teachers - top, generator.dirichlet(np.full(classes - 1, 0.5)))
        if rest.max(initial=0) < top and top > 0.375 * teachers:
            rows.append([top, *rest])
    found = np.array(rows)
    found.flags.writeable = False
    return found


def _right(votes: NDArray[np.int64], sigma: float) -> float:
    """The share of labels that noise leaves as they are."""
    generator = np.random.default_rng(1)
    noisy = votes[None] + sigma * generator.standard_normal((10, *votes.shape))
    return float((noisy.argmax(axis=2) == 0).mean())


@lru_cache(maxsize=32)
def budget_of(
    epsilon: float,
    delta: float,
    teachers: int,
    classes: int,
    queries: int,
    agreement: Agreement = "even",
    sigma: float | None = None,
    certificate: str = "auto",
) -> VoteBudget:
    """The budget for (epsilon, delta). sigma: given, or chosen; certificate: "auto", "distance" or "gaussian".

    Raises `PlanError` where a certificate is asked for and would not pass under the expectation.

    >>> budget_of(1.7, 1e-5, 400, 10, 200).test > 0, budget_of(1.0, 1e-5, 10, 10, 200).test
    (True, 0.0)
    """
    plain = sqrt(2 * queries) / gaussian_mu(epsilon, delta)
    if sigma is not None and sigma < plain and certificate == "gaussian":
        raise PlanError(
            f"the plain Gaussian mechanism needs sigma of at least {plain:.4g} for {queries} queries at ({epsilon:g}, {delta:g}), "
            f"got {sigma:g}; leave sigma out, or take certificate='distance'"
        )
    # nobody votes "failed", which noise can make the winner all the same
    simulated = [
        np.pad(simulated_votes(agreement, teachers, classes, queries, seed), ((0, 0), (0, 1))) for seed in range(_SEEDS)
    ]
    gaussian = VoteBudget(
        max(plain, sigma or 0.0), 0.0, float(np.mean([_right(one, max(plain, sigma or 0.0)) for one in simulated]))
    )
    if certificate == "gaussian" or (certificate == "auto" and sigma is not None and sigma >= plain):
        return gaussian
    best = None
    for one in (sigma,) if sigma is not None else tuple(s for s in _SIGMAS if s < plain):
        found = _shared(epsilon, delta, teachers, one, simulated)
        if found is not None and (best is None or found.right > best.right + 1e-3):
            best = found
    if best is not None and (certificate == "distance" or sigma is not None or best.right > gaussian.right + 1e-3):
        return best
    if certificate == "distance" or sigma is not None:
        raise PlanError(
            f"no test passes with probability {_PASS} at ({epsilon:g}, {delta:g}) with {teachers} teachers, {queries} queries and the "
            "expected agreement; take more teachers, fewer queries, a larger budget, another sigma or certificate='gaussian'"
        )
    return gaussian


def _shared(
    epsilon: float, delta: float, teachers: int, sigma: float, simulated: list[NDArray[np.int64]]
) -> VoteBudget | None:
    """A share of the test with which it passes in all simulations, with a quarter to spare where one has it; None where none passes."""
    gaps = [np.sort(votes, axis=1)[:, ::-1] for votes in simulated]
    gaps = [one[:, :1] - one[:, 1:] for one in gaps]
    for spare in (1.25, 1.0):
        for share in _SHARES:
            own = VoteBudget(sigma, share * epsilon, 0.0)
            need = StableRelease(own.test, delta).threshold + ceil(log(1 / (1 - _PASS)) / own.test)
            far = own.distance(epsilon, delta, teachers)
            if all(far.within(one, ceil(spare * need) - 1) for one in gaps):
                return VoteBudget(sigma, own.test, float(np.mean([_right(one, sigma) for one in simulated])))
    return None
