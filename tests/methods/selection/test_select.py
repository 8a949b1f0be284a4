"""Private selection as a method: contract, what leaves, the split, scores, ties, no reply, attacks and planted faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import Total, seal
from confide.core.statistic import WrappedSource
from confide.errors import NoConversion, NoResult, PlanError, PrivacyError
from confide.guarantees.selection import Binomial, Fixed, Poisson, TruncatedNegativeBinomial, tradeoff_delta
from confide.methods.selection import draw as parts
from confide.noise import SimulatedNoise
from confide.selection import Select, register_loss, select
from confide.sums.blocks.record_block import Collected
from confide.testing import check_method
from confide.testing.test_data import hostile_frames
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.select import SELECT_FAULTS, moved_by_one
from confide_lab.methods import AdaSSP, GradientDescent, JohnsonLindenstrauss, OutputPerturbation, PosteriorSampling

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})
ASKED = cf.ApproxDP(1.0, 1e-6)
RATES = (0.01, 0.05, 0.3, 1.0)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    cf.register(Select)


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + 2 * g.standard_normal(n)
    return frame


def rates(iterations: int = 6) -> list[Any]:
    return [GradientDescent("y ~ a + b", iterations=iterations, rate=rate) for rate in RATES]


def released(method: Select, n: int = 1_500, seed: int = 1, privacy: Any = ASKED) -> cf.Release:
    return cf.release(method, cf.read(records(n, seed), SCHEMA), privacy, ledger=None, noise=SimulatedNoise(seed))


# contract ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_contract() -> None:
    schema = cf.Schema({"a": cf.Numeric(-2, 3), "y": cf.Numeric(-20, 30)})
    method = Select([AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2)], runs=3.0)
    assert check_method(method, schema, privacy=ASKED, replications=2).ok


def test_a_release_reads_back_and_holds_the_winner_alone() -> None:
    method = Select(rates())
    done = released(method)
    result = cf.infer(cf.Release.from_json(done.to_json()))
    assert result.to_json() == method.infer(done).to_json()
    assert set(done.statistics) == {"selected"}
    winner = int(done["selected"].values[0])
    assert f"candidate {winner + 1}, gradient_descent" in dict(result.facts)["Selected"]
    assert dict(result.facts)["Runs"].startswith("as many as a public distribution gave, 12 on average")
    assert "theta" in " ".join(done.public)
    assert result.guarantee == cf.ApproxDP(1.0, 1e-6, relation="add-remove") == done.charged


def test_intervals_are_refused() -> None:
    """Candidates with intervals lose them, with all that they could be computed from."""
    method = Select(
        [cf.regression.SSP("y ~ a + b"), cf.regression.SSP("y ~ a"), cf.regression.LeastSquares("y ~ a + b")], runs=5.0
    )
    result = method.infer(released(method))
    assert {"no_interval", "post_selection"} <= set(result.flags)
    assert np.isfinite(result.estimates).all()
    assert np.isnan(result.covariance).all() and np.isnan(result.bse).all() and np.isnan(result.conf_int()).all().all()
    assert result.intervals_for.startswith("no interval") and not result.has_intervals
    assert not any(mark in value for label, value in result.facts if label != "Selected" for mark in ("[", "±"))
    assert np.isnan(result.rsquared_interval).all()


@pytest.mark.long
def test_the_better_candidate_wins() -> None:
    """Steps that are far too short lose against steps of the right length: at least 30 of 40 (one in 10^3 if they were even)."""
    method = Select([GradientDescent("y ~ a + b", iterations=6, rate=rate) for rate in (0.001, 0.5)], runs=6.0)
    wins = sum(int(released(method, 3_000, seed)["selected"].values[0]) == 1 for seed in range(40))
    assert wins >= 30


def test_one_call() -> None:
    data = cf.read(records(1_000, 3), SCHEMA)
    noise = SimulatedNoise(5)
    result = select(rates(), "absolute_error", data, privacy=ASKED, ledger=None, runs="all", noise=noise)
    assert dict(result.facts)["Runs"] == "each of the 4 candidates once"
    assert result.predict(records(3, 1)).notna().all()
    with refuses(PlanError):
        select(rates(), "absolute_error", data, privacy=ASKED)


# privacy -------------------------------------------------------------------------------------------------------------


def test_each_run_is_planned_at_the_base_level() -> None:
    plan = Select(rates()).plan(SCHEMA, ASKED)
    mu = plan.constants["base_mu"]
    law = TruncatedNegativeBinomial(1.0, 12.0)
    assert tradeoff_delta(1.0, mu, law) <= 1e-6 < tradeoff_delta(1.0, mu * 1.01, law)
    inner = Select(rates())._inner(2, SCHEMA, mu, 0.0, "add-remove")
    assert inner.guarantee.mu == mu
    # under substitute half of it for a candidate that meets two records, the rest for the score: together no more than mu
    exchanged = Select(rates()).plan(SCHEMA, cf.ApproxDP(1.0, 1e-6, relation="substitute"), n=100)
    assert exchanged.constants["base_mu"] == mu
    half = Select(rates())._inner(2, SCHEMA, mu, 0.0, "substitute")
    assert half.guarantee.mu == mu / 2 and half.relation == "add-remove"
    assert sqrt(half.guarantee.mu**2 + 0.75 * mu**2) <= mu * (1 + 1e-15)


def test_candidates_that_may_fail_get_their_slack() -> None:
    tried = [PosteriorSampling("y ~ a + b", penalty=lam) for lam in (1.0, 10.0, 100.0, 1e3)]
    method = Select(tried)
    plan = method.plan(SCHEMA, ASKED)
    assert plan.constants["base_slack"] == pytest.approx(1e-7 / 12)
    known = [PosteriorSampling("y ~ a", preset="balanced", most_records=n) for n in (500, 500)]
    assert "at most 500 records" in Select(known).plan(SCHEMA, ASKED).guarantee.assumptions
    inner = method._inner(0, SCHEMA, plan.constants["base_mu"], plan.constants["base_slack"], "add-remove")
    assert (inner.guarantee.mu, inner.guarantee.delta) == (plan.constants["base_mu"], plan.constants["base_slack"])
    with refuses(PrivacyError):
        method.plan(SCHEMA, cf.ApproxDP(1.0, 1e-6, relation="substitute"), n=100)


def test_one_record_more_is_one_record_more_in_one_part() -> None:
    assert moved_by_one(parts.split, 2) == 1


def test_shares_of_the_parts_and_independence_of_copies() -> None:
    """Of 20,000 distinct records, and of 20,000 copies of one, a quarter is held out (99.9 %); all are in one part."""
    for rows in (np.arange(40_000.0).reshape(2, -1), np.ones((2, 20_000))):
        training, held = parts.split(rows, 0.25, bytes(range(32)))
        assert training.shape[1] + held.shape[1] == 20_000
        assert abs(held.shape[1] - 5_000) < stats.norm.ppf(0.9995) * sqrt(20_000 * 0.25 * 0.75)


def test_the_split_follows_the_key_and_not_the_order() -> None:
    codes = parts.CodedRecords(SCHEMA, ("a", "b", "y"))
    frame = records(300, 4)
    found = []
    for data in (frame, frame.sample(frac=1, random_state=2)):
        (rows,) = cf.read(data, SCHEMA).aggregate(Collected(codes))
        found.append([part.tolist() for part in parts.split(rows, 0.3, b"k" * 32)])
    assert found[0] == found[1]
    assert [part.tolist() for part in parts.split(rows, 0.3, b"l" * 32)] != found[0]


def test_runs_and_candidates_are_drawn_before_any_record_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first pass the noise has given K, K candidates, the tie numbers and the key; afterwards there is one pass only."""

    class Watched(WrappedSource):
        def __init__(self, source: Any) -> None:
            super().__init__(source)
            self.asked: list[str] = []

        def aggregate(self, *statistics: Any) -> Any:
            self.asked.append("records")
            return self._source.aggregate(*statistics)

    class Told(SimulatedNoise):
        def exponential_mechanism(self, *args: Any) -> int:
            watched.asked.append("choice")
            return super().exponential_mechanism(*args)

    method = Select(rates(), runs=8.0)
    watched = Watched(cf.read(records(200, 1), SCHEMA))
    kept: list[int] = []
    drawn = Select._drawn
    monkeypatch.setattr(Select, "_drawn", lambda *given: kept.extend(drawn(*given)) or list(kept))
    done = seal(method, watched, method.plan(SCHEMA, ASKED), Told(3))
    assert watched.asked == ["choice"] * (1 + len(kept)) + ["records"]
    # how many runs there were is what the bound averages over: given K, the best of K costs far more
    assert "runs" not in done.public and not any(
        len(kept) in np.asarray(v).tolist() for v in done.public.values() if v.ndim == 1
    )


def test_scores_have_the_noise_that_is_accounted() -> None:
    """The variance of a score's noise is (clip/mu)^2, one clip being what a record moves; chi-square, 99.9 %."""
    mu = 0.3
    drawn = np.asarray(SimulatedNoise(1).grid_gaussian(parts.score_noise(mu), 4_000), dtype=float)
    statistic = (drawn**2).sum() / (parts.STEPS / mu) ** 2
    assert stats.chi2(4_000).ppf(0.0005) < statistic < stats.chi2(4_000).ppf(0.9995)
    assert Fraction(parts.STEPS) ** 2 / parts.score_noise(mu) <= Fraction(mu) ** 2


@pytest.mark.parametrize("kind", ["squared_error", "absolute_error", "log_loss"])
def test_losses_are_those_of_the_line_and_never_beyond_the_clip(kind: str) -> None:
    schema = cf.Schema({"a": cf.Numeric(-2, 3), "y": cf.Integer(0, 1) if kind == "log_loss" else cf.Numeric(-20, 30)})
    design = cf.schema.ModelMatrix.of("y ~ a", schema)
    clip = {"squared_error": 625.0, "absolute_error": 25.0, "log_loss": 1.4}[kind]
    lines = ((0.5, 1.0), (-3.0, 4.0), (float("nan"), 1.0), (1e308, 1e308))
    statistic = Total(parts.LineLoss(design, kind, clip, lines), nonnegative=True)
    frame = schema.sample(400, 3)
    (total,) = cf.read(frame, schema).aggregate(statistic)
    y = frame.y.to_numpy(dtype=float)
    for own, (intercept, slope) in zip(total[:2], lines[:2], strict=True):
        line = intercept + slope * frame.a.to_numpy()
        loss = {
            "squared_error": (y - line) ** 2,
            "absolute_error": np.abs(y - line),
            "log_loss": np.logaddexp(0, np.where(y > 0.5, -line, line)),
        }[kind]
        assert int(own) / parts.STEPS == pytest.approx(np.minimum(loss / clip, 1).sum(), rel=1e-3)
    assert int(total[2]) == 400 * parts.STEPS
    map_ = statistic.map
    for _, hostile in hostile_frames(schema):
        (found,) = cf.read(hostile, schema).aggregate(statistic)
        assert all(0 <= int(v) <= len(hostile) * parts.STEPS for v in found)
    codes = np.array([[0.0, 5.0, 9.0], [1.0, 0.0, 1.0]])
    assert np.array_equal(map_(codes), np.concatenate([map_(codes[:, [j]]) for j in range(3)], axis=1))


@pytest.mark.long
def test_a_record_of_the_real_release_is_within_the_claim() -> None:
    """The winner's number and the count, releases on each neighbour of a pair with opposite rows: no epsilon beyond the claim."""
    claim = cf.ApproxDP(2.0, 0.01, relation="add-remove")
    schema = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
    tried = [AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.4)]
    method = Select(tried, runs=3.0, holdout=0.5)
    plan = method.plan(schema, claim)
    frames = [pd.DataFrame({"a": [1.0] * n, "y": [1.0] * n}) for n in (1, 2)]

    def run(which: int, runs: int) -> np.ndarray:
        source = cf.read(frames[which], schema)
        out = []
        for seed in range(runs):
            done = seal(method, source, plan, SimulatedNoise(seed + 100_000 * which))
            out.append(float(int(done.public["statistic response"][0])))
        return np.array(out)

    found = cf.audit.epsilon_lower_bound(run, 0, 1, runs=150, claim=claim, vectorized=True, confidence=0.999)
    assert found.verdict == "holds"


def test_ties_by_a_public_order_are_harmless_and_fresh_ones_are_even() -> None:
    """With equal scores the last candidate by number wins an exact law that is still below the bound; by fresh numbers all win alike."""
    law, k = TruncatedNegativeBinomial(1.0, 6.0), 3
    even = np.full(k, 1 / k) * float(1 - law.pgf(0.0))
    ordered = np.diff(law.pgf(np.arange(k + 1) / k))
    assert ordered.sum() == pytest.approx(1) and ordered[-1] > even[-1]
    # the law by number does not depend on the records, so that it costs nothing
    wins = np.zeros(k)
    method = Select([AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2, 1.4)], runs=6.0)
    zero = np.zeros(5)
    for seed in range(600):
        noise = SimulatedNoise(seed)
        ties = noise.grid_gaussian(Fraction(1 << 80), len(zero))
        wins[int(np.argmax(np.array([int(t) for t in ties], dtype=object))) % k] += 1
    assert stats.chisquare(wins, np.array([2, 2, 1]) / 5 * 600).pvalue > 1e-3
    assert method.holdout == 0.25


@pytest.mark.few(
    "mean loss", "a loser leaves", "coins by place", "runs after scores", "exact scores", "slack counted once"
)
@pytest.mark.parametrize("fault", SELECT_FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert not fault.caught(1_000).ok
    assert fault.passed(1_000).ok


# no reply ------------------------------------------------------------------------------------------------------------


def test_no_run_is_no_reply() -> None:
    method = Select(rates(), runs=Poisson(0.5))
    plan = method.plan(SCHEMA, ASKED)
    source = cf.read(records(200, 1), SCHEMA)
    made = [seal(method, source, plan, SimulatedNoise(seed)) for seed in range(20)]
    done = next(one for one in made if one.status == "declined")
    assert int(done["selected"].values[0]) == -1 and not done.public
    result = method.infer(cf.Release.from_json(done.to_json()))
    assert result.status == "declined" and np.isnan(result.estimates).all() and result.summary()
    with pytest.raises(NoResult):
        result.predict(records(2, 1))
    assert any(one.status == "released" for one in made)


def test_runs_without_a_reply_lose_against_any_other() -> None:
    """Too few records for posterior sampling at the first penalty: the other candidate is released wherever it was drawn."""
    tried = [PosteriorSampling("y ~ a", penalty=0.01), AdaSSP("y ~ a")]
    method = Select(tried, runs=8.0)
    plan = method.plan(SCHEMA, ASKED)
    source = cf.read(records(3, 1), SCHEMA)
    winners = {int(seal(method, source, plan, SimulatedNoise(seed))["selected"].values[0]) for seed in range(12)}
    assert winners <= {-1, 1} and 1 in winners


# losses of the user's own ----------------------------------------------------------------------------------------------


@register_loss
@dataclass(frozen=True)
class Pinball:
    """The loss of a line taken as a quantile."""

    tau: float = 0.8
    clip: float = 25.0
    name: ClassVar[str] = "pinball"
    columns: ClassVar[tuple[str, ...]] = ("a", "b", "y")

    def __call__(self, result: Any, record: Mapping[str, Any]) -> float:
        gap = float(record["y"][0]) - float(result.predict({"a": record["a"], "b": record["b"], "y": record["y"]})[0])
        return max(self.tau * gap, (self.tau - 1) * gap)


def test_a_registered_loss_is_taken_record_by_record() -> None:
    method = Select(rates(3), Pinball(0.6), runs=3.0)
    done = released(method, 60)
    again = cf.Release.from_json(done.to_json())
    assert again.plan.method.parameters["score"] == {"loss": "pinball", "tau": 0.6, "clip": 25.0}
    assert cf.infer(again).to_json() == method.infer(done).to_json()
    part = parts.Part(SCHEMA, ("a", "b", "y"), np.array([[0.0, 9.0], [5.0, 7.0], [100.0, 10.0]]))
    both = parts.losses_of(part, [method.infer(done)], Pinball(0.6), 25.0)[0]
    each = [
        parts.losses_of(
            parts.Part(SCHEMA, ("a", "b", "y"), part._rows[:, [j]]), [method.infer(done)], Pinball(0.6), 25.0
        )[0]
        for j in range(2)
    ]
    assert both == sum(each) and 0 < both <= 2 * parts.STEPS
    with pytest.raises(PlanError, match="name that is not taken"):
        register_loss(type("Other", (), {"name": "squared_error"}))


# errors --------------------------------------------------------------------------------------------------------------


def test_errors_say_what_is_allowed() -> None:
    for make in (
        lambda: Select(rates()[0]),
        lambda: Select(rates()[:1]),
        lambda: Select(rates(), "margin"),
        lambda: Select(rates(), clip=0.0),
        lambda: Select(rates(), holdout=1.0),
        lambda: Select([Select(rates()), Select(rates())]),
        lambda: Select([AdaSSP("y ~ a"), AdaSSP("b ~ a")]).plan(SCHEMA, ASKED),
        lambda: Select([{"method": "nothing"}, {"method": "nothing"}]),
    ):
        with refuses(PlanError):
            make()
    with refuses(NoConversion):
        Select(rates()).plan(SCHEMA, cf.GDP(1.0))
    with refuses(NoConversion):
        Select([AdaSSP("y ~ a"), JohnsonLindenstrauss("y ~ a")]).plan(SCHEMA, ASKED)
    with refuses(PrivacyError):
        Select(rates()).plan(cf.Schema(SCHEMA.columns, rows_per_unit=2), ASKED)
    with pytest.raises(PrivacyError):
        Select(rates(), runs=0.5)


def test_laws_of_runs_are_kept_as_given() -> None:
    for law in (Poisson(12.0), Binomial(24, 0.5), Fixed(4), TruncatedNegativeBinomial(0.0, 12.0)):
        plan = Select(rates(), runs=law).plan(SCHEMA, ASKED)
        assert cf.Plan.from_json(plan.to_json()).constants["runs"] == law.to_dict()
    few = [AdaSSP("y ~ a"), OutputPerturbation("y ~ a")]
    assert Select(few, runs="all").plan(SCHEMA, ASKED).constants["chance_drawn"] == 1.0
