"""Sampled lower bounds: they come near tight claims, keep their false-alarm rate, and read every kind of outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from math import exp, inf, isnan, log, nan
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta as beta_law, binom
from tests.messages import refuses

from confide.audit.outcomes import encode
from confide.audit.runs.attacks import learn
from confide.audit.runs.lower_bounds import (
    epsilon_lower_bound,
    epsilon_of_errors,
    mu_lower_bound,
    mu_of_errors,
    upper_rate,
)
from confide.audit.verdict import Audit, Finding, below_curve, curve_of
from confide.errors import PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, PureDP, gaussian_delta
from confide.noise import SimulatedNoise

MILLION = 500_000  # runs on each of the two neighbors: 10^6 draws together


def gaussian(seed: int, dimension: int = 1, factor: float = 1.0) -> Callable[[float, int], Any]:
    rng = np.random.default_rng((1, seed))
    way = rng.normal(size=dimension)
    way /= np.linalg.norm(way)
    return lambda x, runs: x * way + factor * rng.normal(size=(runs, dimension))


@pytest.mark.parametrize("dimension", [1, 10])
def test_audit_bounds_come_near_tight_gaussian_claims(dimension: int) -> None:
    found = mu_lower_bound(gaussian(3, dimension), 0.0, 1.0, runs=MILLION, vectorized=True, claim=GDP(1.0))
    assert 0.95 <= found.lower_bound <= 1 and found.verdict == "holds"
    assert found.draws == 10**6 and found.confidence == 0.99


def test_audit_bounds_come_near_in_fifty_dimensions() -> None:
    found = mu_lower_bound(gaussian(3, 50), 0.0, 1.0, runs=100_000, vectorized=True, claim=GDP(1.0))
    assert 0.9 <= found.lower_bound <= 1


def test_audit_bounds_come_near_grid_gaussian_and_laplace() -> None:
    noise, rng = SimulatedNoise(4), np.random.default_rng(4)
    grid = mu_lower_bound(
        lambda x, runs: x + noise.grid_gaussian(2**20, runs), 0, 1024, runs=MILLION, vectorized=True, claim=1.0
    )
    laplace = epsilon_lower_bound(
        lambda x, runs: x + rng.laplace(size=runs), 0.0, 1.0, runs=MILLION, vectorized=True, claim=PureDP(1.0)
    )
    assert 0.95 <= grid.lower_bound <= 1 and 0.95 <= laplace.lower_bound <= 1
    assert grid.verdict == laplace.verdict == "holds"


FAULTS: dict[str, tuple[Callable[[Any, int], Any], Any, Any, Any, str]] = {}
_rng = np.random.default_rng(9)
FAULTS["noise times .97"] = (lambda x, n: x + 0.97 * _rng.normal(size=n), 0.0, 1.0, GDP(1.0), "mu")
FAULTS["claim is half of epsilon"] = (lambda x, n: x + _rng.laplace(size=n), 0.0, 1.0, PureDP(0.5), "epsilon")
FAULTS["sigma taken for mu"] = (lambda x, n: x + 0.5 * _rng.normal(size=n), 0.0, 1.0, GDP(0.5), "mu")
FAULTS["sensitivity halved"] = (
    lambda x, n: x + 0.5 * _rng.normal(size=(n, 3)),
    np.zeros(3),
    np.eye(3)[1],
    GDP(1.0),
    "mu",
)
FAULTS["one coordinate forgotten"] = (
    lambda x, n: x + _rng.normal(size=(n, 2)),
    np.zeros(2),
    np.ones(2),
    GDP(1.0),
    "mu",
)
FAULTS["square root of d forgotten"] = (
    lambda x, n: x + _rng.normal(size=(n, 16)), np.zeros(16), np.ones(16), GDP(1.0), "mu"
)  # fmt: skip
FAULTS["clip computed and discarded"] = (
    lambda x, n: (np.minimum(x, 1.0), x)[1] + _rng.normal(size=n), 0.0, 3.0, GDP(1.0), "mu"
)  # fmt: skip
FAULTS["noise halved"] = (lambda x, n: x + 0.5 * _rng.normal(size=(n, 5)), np.zeros(5), np.eye(5)[2], GDP(1.0), "mu")
FAULTS["spread leaks"] = (lambda x, n: x * _rng.normal(size=(n, 4)), 1.0, 1.3, GDP(0.2), "mu")
FAULTS["parity leaks"] = (lambda x, n: 2 * _rng.integers(-500, 500, n) + x, 0, 1, PureDP(1.0), "epsilon")
FAULTS["one value leaks"] = (
    lambda x, n: np.where(_rng.random(n) < 0.01 * x, 7.0, _rng.normal(size=n)), 0, 1, PureDP(1.0), "epsilon"
)  # fmt: skip
FAULTS["a seed is used again"] = (
    lambda x, n: x + np.random.default_rng(1).normal(size=1) * np.ones(n), 0.0, 0.1, GDP(1.0), "mu"
)  # fmt: skip
FAULTS["NaN leaks"] = (lambda x, n: np.where(_rng.random(n) < 0.5 * x, nan, 1.0), 0, 1, PureDP(1.0), "epsilon")
FAULTS["sign of zero leaks"] = (
    lambda x, n: np.where(_rng.random(n) < 0.5, 0.0 * x, 1.0),
    1.0,
    -1.0,
    PureDP(1.0),
    "epsilon",
)


@pytest.mark.parametrize("name", FAULTS)
def test_audit_bounds_catch(name: str) -> None:
    mechanism, data, neighbor, claim, kind = FAULTS[name]
    bound = mu_lower_bound if kind == "mu" else epsilon_lower_bound
    runs = MILLION if "97" in name else 50_000
    found = bound(mechanism, data, neighbor, runs=runs, vectorized=True, claim=claim, confidence=0.999)
    assert found.violated, found


def test_audit_bounds_lattice_of_floats_only_on_request() -> None:
    rng = np.random.default_rng(2)

    def noisy(x: float, runs: int) -> Any:
        return x + rng.laplace(size=runs)

    assert not epsilon_lower_bound(noisy, 0.0, 1.0, runs=50_000, vectorized=True, claim=1.0).violated
    assert epsilon_lower_bound(noisy, 0.0, 1.0, runs=50_000, vectorized=True, claim=1.0, bits=True).violated


def test_audit_bounds_grid_noise_has_no_lattice_to_read() -> None:
    noise = SimulatedNoise(5)
    found = mu_lower_bound(
        lambda x, runs: (x + noise.grid_gaussian(2**20, runs)) / 2**10, 0, 1024, runs=50_000, vectorized=True, claim=1.0,
        bits=True,
    )  # fmt: skip
    assert found.verdict == "holds"


def test_audit_bounds_read_any_outcome() -> None:
    rng = np.random.default_rng(3)

    def raises(x: int) -> float:
        if x and rng.random() < 0.2:
            raise ValueError("no")
        return float(rng.normal())

    outcomes: list[Callable[[int], Any]] = [
        raises,
        lambda x: {"a": rng.normal(), "b": "yes" if rng.random() < 0.1 + 0.8 * x else "no"},
        lambda x: None if x else nan,
        lambda x: [1.0] * (3 + x),
        lambda x: {"n": 5, "m": 6} if x else {"n": 5},
        lambda x: f"{rng.normal() + 9 * x:.3f}",
        lambda x: b"a" if x else b"b",
        lambda x: 10**400 if x else 1,
        lambda x: np.float32(1) if x else 1.0,
        lambda x: inf if x else -inf,
        lambda x: (rng.normal(), True) if x else (rng.normal(), False),
    ]
    for outcome in outcomes:
        assert epsilon_lower_bound(outcome, 0, 1, runs=3000, claim=1.0).violated, outcome
        assert not epsilon_lower_bound(outcome, 0, 0, runs=3000, claim=0.05, confidence=0.999).violated


def test_audit_bounds_vectorized_forms() -> None:
    rng = np.random.default_rng(3)

    def sometimes(x: int, runs: int) -> Any:
        if x:
            raise RuntimeError("only on the neighbor")
        return rng.normal(size=runs)

    assert epsilon_lower_bound(sometimes, 0, 1, runs=1000, vectorized=True, claim=1.0).violated
    found = mu_lower_bound(
        lambda x, n: {"a": rng.normal(size=(n, 2)), "b": x + rng.normal(size=n)}, 0.0, 2.0, runs=20_000, vectorized=True
    )
    assert found.verdict == "untested" and 1.6 < found.lower_bound <= 2
    words = epsilon_lower_bound(
        lambda x, n: np.where(rng.random(n) < 0.2 + 0.6 * x, "yes", "no"), 0, 1, runs=20_000, vectorized=True
    )
    assert 1.2 < words.lower_bound < log(4)
    with refuses(PrivacyError):
        mu_lower_bound(lambda x, n: np.zeros(3), 0, 1, runs=1000, vectorized=True)


def test_audit_bounds_users_test() -> None:
    rng = np.random.default_rng(5)
    found = mu_lower_bound(
        lambda x, n: x + rng.normal(size=(n, 2)), 0.0, 1.0, runs=50_000, vectorized=True, test=lambda y: y.sum(axis=1)
    )
    assert 1.3 < found.lower_bound <= 2**0.5
    one = mu_lower_bound(lambda x: {"y": x + rng.normal()}, 0.0, 3.0, runs=2_000, test=lambda y: y["y"])
    assert 2 < one.lower_bound <= 3


CLAIMS = [GDP(1.0), GDP(0.9, 0.1), ZCDP(0.5), PureDP(3.0), ApproxDP(1.0, gaussian_delta(1.0, 1.0)), 1.0]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_audit_bounds_false_alarms_of_true_claims(claim: Any) -> None:
    """40 audits at confidence .95: more than 11 alarms have probability 1.3e-7 at the nominal rate."""
    rng = np.random.default_rng(6)
    trimmed = isinstance(claim, PureDP)

    def mechanism(x: float, runs: int) -> Any:
        return x + (rng.laplace(size=runs) / 3 if trimmed else rng.normal(size=runs))

    alarms = sum(
        mu_lower_bound(mechanism, 0.0, 1.0, runs=4_000, vectorized=True, claim=claim, confidence=0.95).violated
        for _ in range(40)
    )
    assert alarms <= 11


def test_audit_bounds_randomised_response_is_exact() -> None:
    """The optimal attack is an atom: 200 audits at .9; the bound passes the truth no more often than 1 - confidence allows."""
    rng, keep = np.random.default_rng(7), 1 / (1 + exp(-1))
    passed = 0
    for _ in range(200):
        found = epsilon_lower_bound(
            lambda x, n: np.where(rng.random(n) < keep, x, 1 - x), 0, 1, runs=2_000, vectorized=True, confidence=0.9
        )
        passed += found.lower_bound > 1
    assert passed <= binom.isf(1e-6, 200, 0.1)


def test_audit_bounds_catch_an_auditor_that_evaluates_on_its_training_runs() -> None:
    """The planted fault in the audit itself: scores learnt and counted on the same runs give false alarms where there is no leak."""
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(20):
        zero, one = (encode(rng.normal(size=(200, 50)), 200) for _ in range(2))
        attack = next(a for a in learn(zero, one) if a.name == "linear")
        scores = attack.score(zero), attack.score(one)
        cut = float(np.median(np.concatenate(scores)))
        alpha = upper_rate((scores[0] > cut).sum(), 200, 0.025)
        beta = upper_rate((scores[1] <= cut).sum(), 200, 0.025)
        alarms += below_curve(float(alpha), float(beta), curve_of(GDP(0.01)))
    honest = sum(
        mu_lower_bound(gaussian(i, 50), 0.0, 0.0, runs=400, vectorized=True, claim=0.01, confidence=0.95).violated
        for i in range(20)
    )
    assert alarms >= 15 and honest <= 7


def test_audit_bounds_formulas() -> None:
    hits, n = np.arange(0, 21), 20
    expected = np.append(beta_law.ppf(0.98, hits[:-1] + 1, n - hits[:-1]), 1.0)
    np.testing.assert_allclose(upper_rate(hits, n, 0.02), expected, rtol=1e-12)
    alpha, beta = np.array([0.1]), np.array([0.2])
    assert epsilon_of_errors(alpha, beta, 0.05)[0] == max(log(0.75 / 0.1), log(0.85 / 0.2))
    edge = float(ndtr(-1.5))
    assert mu_of_errors(np.array([edge]), np.array([edge]))[0] == pytest.approx(3.0)


def test_audit_bounds_reproduce_with_a_seeded_mechanism() -> None:
    first, second = (mu_lower_bound(gaussian(1), 0.0, 1.0, runs=2000, vectorized=True) for _ in range(2))
    assert first == second


def test_audit_bounds_delta_follows_the_claim() -> None:
    found = epsilon_lower_bound(gaussian(2), 0.0, 1.0, runs=20_000, vectorized=True, claim=ApproxDP(1.0, 0.05))
    assert found.delta == 0.05 and found.violated


def test_audit_bounds_refuse() -> None:
    for wrong in (
        {"runs": 0},
        {"runs": 10},
        {"confidence": 1.0},
        {"confidence": nan},
        {"claim": "GDP"},
        {"claim": inf},
    ):
        with pytest.raises(PrivacyError):
            mu_lower_bound(gaussian(1), 0.0, 1.0, vectorized=True, **wrong)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError):
        epsilon_lower_bound(gaussian(1), 0.0, 1.0, vectorized=True, delta=-0.1)
    with refuses(PrivacyError):
        mu_lower_bound(gaussian(1), 0.0, 1.0, runs=1000)  # not vectorized: the mechanism misses an argument


def test_audit_bounds_table() -> None:
    ok = Finding(name="sum", quantity="mu", claim=GDP(1.0), lower_bound=0.9, verdict="holds", attack="linear", draws=10)
    bad = Finding(
        name="<b>", quantity="epsilon", claim=None, lower_bound=inf, verdict="untested", attack="kind", delta=0.1
    )
    table = Audit((ok,), title="Audit") + Audit((bad,))
    assert table.verdict == "untested" and not table.ok and Audit((ok,)).ok
    assert len(table) == 2 and table[0] is ok and "mu >= 0.9" in table.text()
    body = json.loads(table.json())
    assert body["findings"][1]["lower_bound"] == "inf" and body["findings"][1]["alpha"] is None
    assert list(table.frame()["verdict"]) == ["holds", "untested"] and isnan(table.frame()["alpha"][0])
    assert "&lt;b&gt;" in table._repr_html_()
    with refuses(PrivacyError):
        Finding(name="a", quantity="mu", claim=None, lower_bound=0, verdict="fine", attack="")  # type: ignore[arg-type]


def test_audit_bounds_curves_of_claims() -> None:
    for claim in (GDP(1.0), PureDP(1.0), ApproxDP(1.0, 0.01), ZCDP(0.5), RDP((2.0, 8.0), (0.5, 2.0))):
        f = curve_of(claim)
        values = [f(a) for a in np.linspace(0, 1, 50)]
        assert all(x >= y - 1e-12 for x, y in pairwise(values)) and values[-1] == 0
    assert curve_of(PureDP(1.0))(0.5) == pytest.approx(0.5 / exp(1))
    assert curve_of(0.0)(0.3) == pytest.approx(0.7)
