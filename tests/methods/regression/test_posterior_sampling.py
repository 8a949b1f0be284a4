"""PosteriorSampling: contract, replay and failures of its certificates, the law of the sample, intervals, planted faults."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log, log1p, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import OpaqueRelease, ResultOptions, leaves, seal
from confide.errors import NoResult, PlanError, PrivacyError
from confide.methods.regression.certified.sums import Part, moments
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method
from confide_lab.aggregates.posterior import LeverageRows, Odds, Posterior, chosen_penalty
from confide_lab.aggregates.posterior_pair import largest_shift, posterior_delta
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.ops import OPS_FAULTS, PAIR, Certificates, one_dimension
from confide_lab.methods.posterior_sampling import PosteriorSampling
from confide_lab.published import generalized_ptr_ops as published

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)}, dataset="survey")
ASKED = cf.GDP(1.0, 1e-6)


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame(g.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    frame["y"] = np.clip(0.2 + 0.5 * frame.a - 0.3 * frame.b + 0.2 * g.standard_normal(n), -1, 1)
    return frame


def released(
    frame: pd.DataFrame, method: PosteriorSampling, seed: int = 1, privacy: cf.Guarantee = ASKED
) -> cf.Release:
    return cf.release(method, cf.read(frame, SCHEMA), privacy, ledger=None, noise=SimulatedNoise(seed))


def posterior(frame: pd.DataFrame, method: PosteriorSampling) -> Posterior:
    """What the release sees, in scaled units."""
    design = method._design(SCHEMA)
    rows = method._rows(design)
    (whole,) = cf.read(frame, SCHEMA).aggregate(moments(rows))
    return Posterior.of(rows, whole, *method._lines(design))


# the contract --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    [
        PosteriorSampling("y ~ a + b"),
        PosteriorSampling("y ~ 0 + a", penalty=20.0),
        PosteriorSampling("y ~ a", preset="balanced", most_records=5_000),
    ],
    ids=["auto", "through zero", "balanced"],
)
def test_contract(method: PosteriorSampling) -> None:
    assert check_method(method, SCHEMA, privacy=ASKED, raises=False).ok


@pytest.mark.long
def test_audit_of_the_release_and_of_the_certificates() -> None:
    """With the sample nothing can be taken off, so what is exact is the replay; without it every certificate is measured."""
    assert cf.audit.audit(PosteriorSampling("y ~ a + b"), SCHEMA, privacy=ASKED, runs=1_000, seed=1).violated == ()
    method = Certificates("y ~ a + b", penalty="auto")
    found = cf.audit.audit(method, SCHEMA, privacy=cf.GDP(10.0, 1e-9), relation="add-remove", runs=1_000, seed=2)
    exact = [f for f in found if f.attack.startswith("exact")]
    assert found.ok and {f.name.split()[-1] for f in exact} >= {"eigenvalue", "residual"}


def test_the_plan_adds_up() -> None:
    method = PosteriorSampling("y ~ a + b")
    plan = cf.plan(method, SCHEMA, cf.ApproxDP(1.0, 1e-6))
    names = [leaf.name for leaf in leaves(plan.event)]
    assert names == ["eigenvalue", "residual", "line"]
    level = plan.guarantee
    assert isinstance(level, cf.GDP) and level.delta == 1e-7 and level.assumptions == ()
    odds = method._odds(cf.core.Allowance(plan.requested, level, 1))
    hiding = next(leaf for leaf in leaves(plan.event) if isinstance(leaf, OpaqueRelease)).hiding
    assert hiding is not None
    total = sum(Fraction(m) ** 2 for m in (odds.eigenvalue, odds.residual, odds.sample)) + hiding.mu_squared
    assert Fraction(level.mu) ** 2 * (1 - Fraction(1, 10**12)) < total <= Fraction(level.mu) ** 2
    assert 2 * odds.failure + odds.slack == level.delta
    assert "may fail with probability 2.5e-08" in " ".join(plan.summary(verbose=True).split())


def test_what_cannot_be_planned() -> None:
    method = PosteriorSampling("y ~ a")
    with refuses(PrivacyError):
        cf.plan(method, SCHEMA, cf.GDP(1.0))
    with refuses(PrivacyError):
        cf.plan(method, SCHEMA, replace(ASKED, relation="substitute"))
    with refuses(PrivacyError):
        cf.plan(method, cf.Schema(dict(SCHEMA.columns), rows_per_unit=2), ASKED)
    for bad in ({"penalty": 0.0}, {"penalty": True}, {"leverage_cap": 0.5}, {"target": "ols"}, {"preset": "best"}):
        with refuses(PlanError):
            PosteriorSampling("y ~ a", **bad)  # type: ignore[arg-type]
    with refuses(PlanError):
        PosteriorSampling("y ~ a", target="population")
    for most in (None, 0, 2.5):
        with refuses(PlanError):
            PosteriorSampling("y ~ a", preset="balanced", most_records=most)  # type: ignore[arg-type]
    with refuses(PlanError):
        method.infer(released(records(50, 1), method), ResultOptions(subset=("a",)))


def test_the_ledger_takes_it_with_its_delta(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0, delta=1e-5))
    method = PosteriorSampling("y ~ a + b")
    done = cf.release(method, cf.read(records(200, 1), SCHEMA), ASKED, ledger=book)
    assert (
        cf.verify(done, book).ok
        and "PosteriorSampling" not in str(done.charged)
        and method.infer(done).status == "valid"
    )
    assert cf.Release.from_json(done.to_json()) == done


# rows and certificates -----------------------------------------------------------------------------------------------


def test_rows_keep_a_line_and_their_bounds() -> None:
    design = cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA)
    rows = LeverageRows(design, sqrt(5 / 3))
    frame = pd.DataFrame({"a": [1.0, 0.0, -1.0], "b": [1.0, 0.1, 1.0], "y": [0.3, -0.2, 1.0]})
    (whole,) = cf.read(frame, SCHEMA).aggregate(moments(rows))
    z = np.column_stack([np.ones(3), frame[["a", "b"]]])
    w = np.minimum(1, (5 / 3) / (z**2).sum(axis=1))
    own = Posterior.of(rows, whole, np.zeros(3), np.eye(3))
    np.testing.assert_allclose(own.gram, (z * w[:, None]).T @ z, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(own.cross, (z * w[:, None]).T @ frame["y"], rtol=1e-5, atol=1e-5)
    assert own.bound**2 == pytest.approx(5 / 3, rel=1e-4) and own.reach == pytest.approx(1.0, abs=1e-9)
    through = PosteriorSampling("y ~ 0 + a")
    half = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    start, basis = through._lines(through._design(half))
    assert abs(start @ basis).max() < 1e-12 and np.allclose(basis.T @ basis, np.eye(1))


place = st.floats(-1, 1)
record = st.tuples(*[st.one_of(st.sampled_from([-1.0, 1.0]), place)] * 3)


@settings(max_examples=200, deadline=None)
@given(st.lists(record, max_size=5), record, st.integers(1, 30), st.floats(-2, 4), st.floats(0, 1))
def test_no_neighbour_moves_a_certificate_beyond_its_sensitivity(
    company: list[tuple[float, ...]], one: tuple[float, ...], times: int, power: float, part: float
) -> None:
    """Any company, penalty and lower bound that is valid for the smaller records; exact integers."""
    method, lam = PosteriorSampling("y ~ a + b"), 10.0**power
    design = method._design(SCHEMA)
    rows = method._rows(design)
    less = pd.DataFrame([*company * times], columns=["a", "b", "y"], dtype=float)
    more = pd.concat([less, pd.DataFrame([one], columns=["a", "b", "y"])])
    small, large = posterior(less, method), posterior(more, method)
    (before,), (after,) = (
        Part(rows, "eigenvalue").of(cf.read(f, SCHEMA).aggregate(moments(rows))[0]) for f in (less, more)
    )
    assert 0 <= after - before <= 1 << 20
    lower = part * max(float(np.linalg.eigvalsh(small.gram)[0]), 0.0)
    own = method._residual(design).at(lam, lower)
    assert abs(int(own.of(large)[0] - own.of(small)[0])) <= (1 << 20) + 2


def test_removing_a_record_moves_the_residual_by_more_than_the_published_bound() -> None:
    """Lemma D.2 with the larger records' eigenvalue is false; with the smaller ones' it holds on 10,000 random pairs."""
    (x, _), (x1, x2) = PAIR[0][0], PAIR[1]
    assert x == 1
    sizes = [log1p(abs(float(r[:, 0] @ r[:, 1])) / (float(r[:, 0] @ r[:, 0]) + 1)) for r in PAIR]
    assert abs(sizes[0] - sizes[1]) == pytest.approx(0.405, abs=1e-3) and x1[0] == x2[0]
    assert abs(sizes[0] - sizes[1]) > log(1 + 1 / (1 + 2))
    g = np.random.default_rng(4)
    closest = 0.0
    for _ in range(10_000):
        n, d = int(g.integers(0, 6)), int(g.integers(1, 4))
        x = g.standard_normal((n + 1, d))
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1) * g.choice([1, 1, 3])
        y, lam = np.sign(g.standard_normal(n + 1)), 10 ** g.uniform(-2, 1)
        size = []
        for rows, response in ((x[:n], y[:n]), (x, y)):
            h = rows.T @ rows + lam * np.eye(d)
            size.append(log1p(float(np.linalg.norm(np.linalg.solve(h, rows.T @ response)))))
        least = float(np.linalg.eigvalsh(x[:n].T @ x[:n])[0])
        bound = log1p(1 / (lam + max(least, 0.0)))
        assert abs(size[1] - size[0]) <= bound + 1e-12
        closest = max(closest, abs(size[1] - size[0]) / bound)
    assert closest > 0.5


@pytest.mark.few(
    "a sample where none is private enough",
    "residual of the records at hand",
    "transposed factor",
    "one direction of the pair",
    "precision of Theorem 5.1",
)
@pytest.mark.parametrize("fault", OPS_FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert not fault.caught(12_000).ok
    assert fault.passed(12_000).ok


def test_the_sign_that_is_printed_is_caught_at_its_own_claim() -> None:
    """Algorithm 7 with (1, 1e-6): the runs of the whole release on one pair say epsilon above 4."""
    from confide_lab.benchmarks.planted.ops import _Variant

    claim = cf.ApproxDP(1.0, 1e-6)
    g = np.random.default_rng(5)
    attacked = one_dimension(_Variant("printed", -1.0), claim)
    found = cf.audit.epsilon_lower_bound(
        lambda x, k: attacked(g, x, k), *PAIR, runs=12_000, claim=claim, vectorized=True, confidence=1 - 1e-6
    )
    assert found.verdict == "violated" and found.lower_bound > 3


# the sample ----------------------------------------------------------------------------------------------------------


def test_the_release_is_a_sample_of_the_posterior_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whitened by the released precision and penalty, 250 lines have the identity covariance (chi-square, 99.9 %)."""
    # the precision is released: any will do, and a search for each sample takes long
    monkeypatch.setattr("confide_lab.methods.posterior_sampling.largest_shift", lambda *_: 0.5)
    method, frame = PosteriorSampling("y ~ a + b", penalty=3.0), records(300, 2)
    own = posterior(frame, method)
    root = np.linalg.cholesky(own.gram + 3.0 * np.eye(3))
    plan, source = cf.plan(method, SCHEMA, ASKED), cf.read(frame, SCHEMA)
    white = []
    for seed in range(250):
        release = seal(method, source, plan, SimulatedNoise(seed))
        gamma = float(release.public["precision"][0])
        white.append(sqrt(gamma) * (release["line"].decode() - own.solved(3.0)) @ root)
    drawn = np.array(white)
    spread = drawn.T @ drawn / 250
    statistic = 250 * (np.trace(spread) - np.linalg.slogdet(spread)[1] - 3)
    assert statistic < stats.chi2.isf(0.001, 6)
    assert 250 * float((drawn.mean(axis=0) ** 2).sum()) < stats.chi2.isf(0.001, 3)


@pytest.mark.parametrize(("n", "mu"), [(300, 0.1), (2_000, 1.0)])
def test_what_hides_the_sample_is_nothing_beside_it(n: int, mu: float) -> None:
    """The noise that the meter adds against the sample's sd in its narrowest direction; its share of mu^2."""
    method, frame = PosteriorSampling("y ~ a + b"), records(n, 3)
    release = released(frame, method, privacy=cf.GDP(mu, 1e-6))
    hiding = next(leaf for leaf in leaves(release.plan.event) if isinstance(leaf, OpaqueRelease)).hiding
    assert hiding is not None and hiding.mu_squared <= Fraction(mu) ** 2 / 1024
    public = {name: float(value[0]) for name, value in release.public.items()}
    widest = float(np.linalg.eigvalsh(posterior(frame, method).gram)[-1]) + public["penalty"]
    assert sqrt(hiding.scale) * float(release["line"].step) < 2.0**-43 / sqrt(public["precision"] * widest)


def test_the_precision_follows_from_the_released_bounds() -> None:
    """gamma is what the exact pair allows at the released leverage and residual, and no more."""
    method = PosteriorSampling("y ~ a + b")
    release = released(records(2_000, 3), method)
    public = {name: float(value[0]) for name, value in release.public.items()}
    bound = LeverageRows(method._design(SCHEMA), sqrt(5 / 3)).bound
    lev = bound**2 / (public["penalty"] + public["eigenvalue"])
    m = sqrt(public["precision"] * lev / (1 + lev)) * np.exp(public["log_residual"])
    odds = method._odds(cf.core.Allowance(ASKED, release.plan.guarantee, 1))  # type: ignore[arg-type]
    assert m == pytest.approx(largest_shift(lev, odds.sample, odds.slack), rel=1e-9)
    from confide.guarantees import gaussian_delta

    for e in (0.0, 0.5, 2.0, 4.0):
        assert posterior_delta(e, m, lev) <= gaussian_delta(e, odds.sample) + odds.slack


def test_without_noise_it_is_the_weighted_ridge_line() -> None:
    frame, method = records(3_000, 4), PosteriorSampling("y ~ a + b", penalty=0.01)
    release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1e3, 1e-6), ledger=None, noise=ZeroNoise())
    z = np.column_stack([np.ones(3_000), frame[["a", "b"]]])
    w = np.sqrt(np.minimum(1, (5 / 3) / (z**2).sum(axis=1)))[:, None]
    line, *_ = np.linalg.lstsq(w * z, w[:, 0] * frame["y"], rcond=None)
    np.testing.assert_allclose(method.infer(release).params, line, atol=1e-4)


def test_a_penalty_that_no_precision_fits_gets_no_reply() -> None:
    method = PosteriorSampling("y ~ a + b", penalty=0.01)
    release = released(records(30, 5), method, privacy=cf.GDP(0.2, 1e-6))
    found = method.infer(release)
    assert release.status == "declined" and set(release.statistics) == {"eigenvalue", "residual"}
    assert found.status == "declined" and found.params.isna().all() and "penalty" in found.reason
    assert found.summary() and found.to_json()
    with pytest.raises(NoResult):
        found.predict(records(3, 1))
    assert released(records(30, 5), PosteriorSampling("y ~ a + b"), privacy=cf.GDP(0.2, 1e-6)).status == "released"


def test_the_penalty_of_many_records_is_small_and_its_choice_uses_public_numbers() -> None:
    odds = Odds(0.3, 0.3, 0.9, 2.5e-8, 5e-8)
    few, many = (chosen_penalty(odds, lower, 3, 1.3, 1.0, 0.7) for lower in (0.0, 1e5))
    assert many < 2 < few
    release = released(records(5_000, 6), PosteriorSampling("y ~ a + b"), seed=3)
    lower, lam = (float(release.public[name][0]) for name in ("eigenvalue", "penalty"))
    bound = LeverageRows(PosteriorSampling("y ~ a + b")._design(SCHEMA), sqrt(5 / 3)).bound
    level = PosteriorSampling("y ~ a + b")._odds(cf.core.Allowance(ASKED, release.plan.guarantee, 1))  # type: ignore[arg-type]
    assert lam == chosen_penalty(level, lower, 3, bound, 1 + 2.0**-40, sqrt(0.5))


def test_ridge_intervals_cover_the_ridge_line_and_not_the_population() -> None:
    """40 runs of 40 records: all slopes and the intercept at 95 % and more, while the population's line is missed (99.9 % bounds)."""
    method = PosteriorSampling("y ~ a + b", penalty=30.0, target="ridge")
    frame = records(40, 7)
    own = posterior(frame, method)
    ridge, truth = own.solved(30.0), np.array([0.2, 0.5, -0.3])
    plan, source = cf.plan(method, SCHEMA, cf.GDP(4.0, 1e-6)), cf.read(frame, SCHEMA)
    hits, population = np.zeros(3), np.zeros(3)
    for seed in range(40):
        found = method.infer(seal(method, source, plan, SimulatedNoise(seed)))
        assert found.status == "valid" and "ridge line of these records" in found.target
        assert set(found.flags) - {"noise_dominates"} == {"ridge_line"}
        limits = found.conf_int().to_numpy()
        hits += (limits[:, 0] <= ridge) & (ridge <= limits[:, 1])
        population += (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    assert (stats.beta.ppf(0.9995, hits + 1, 40 - hits + 1e-9) >= 0.95).all()
    assert stats.beta.ppf(0.9995, population.min() + 1, 40 - population.min()) < 0.95


def test_with_noise_it_beats_the_mean_and_the_balanced_preset_pays_for_knowing_nothing() -> None:
    frame = records(5_000, 8)
    losses = []
    for method in (
        PosteriorSampling("y ~ a + b"),
        PosteriorSampling("y ~ a + b", preset="balanced", most_records=6_000),
    ):
        plan, source = cf.plan(method, SCHEMA, ASKED), cf.read(frame, SCHEMA)
        found = [method.infer(seal(method, source, plan, SimulatedNoise(k))).predict(frame) for k in range(9)]
        losses.append(np.median([float(((frame["y"] - line) ** 2).mean()) for line in found]) / float(frame["y"].var()))
    assert losses[0] < 0.45 and losses[0] < losses[1]
    assert "at most 6000 records" in plan.guarantee.assumptions


# the published algorithms --------------------------------------------------------------------------------------------


def test_the_published_algorithms_run_and_carry_no_guarantee() -> None:
    g = np.random.default_rng(9)
    x = g.standard_normal((4_000, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ [0.5, -0.3, 0.2] + 0.1 * g.standard_normal(4_000), -1, 1)
    for run in (published.algorithm_8, published.adaops, published.ops_balanced, published.out_pert):
        settings = {"lam": 10.0} if run is published.algorithm_8 else {}
        lines = [run(x, y, g, epsilon=4.0, delta=1e-6, **settings)["beta"] for _ in range(15)]
        error = np.median([float(np.linalg.norm(b - [0.5, -0.3, 0.2])) for b in lines])
        assert error < 0.35, run
        assert run.guarantee is None and run.claim and run.errata
    bounds = [published.algorithm_7(x, y, g, epsilon=1.0, delta=1e-6, lam=10.0) for _ in range(5)]
    least = float(np.linalg.eigvalsh(x.T @ x)[0])
    assert all(b["eigenvalue"] > least for b in bounds)  # the printed sign
    declined = published.algorithm_8(x[:5], y[:5], g, epsilon=0.1, delta=1e-6, lam=2.5)
    assert declined["beta"] is None
    chosen = published.algorithm_3(x, y, x[:50], y[:50], g, epsilon=4.0, delta=1e-6)
    assert chosen["runs"] >= 1 and (chosen["beta"] is None or chosen["beta"].shape == (3,))
