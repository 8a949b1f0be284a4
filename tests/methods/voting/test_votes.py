"""Votes: the rules' chances against their bounds and a linear programme, the methods through the contract, what they refuse."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from scipy import optimize
from tests.few import few
from tests.messages import refuses
from typer.testing import CliRunner

import confide as cf
from confide.methods.voting.rules import RULES, laplace_minority, vote_loss, vote_rule
from confide.noise import SimulatedNoise
from confide.testing import check_method

SCHEMA = cf.Schema({"v": cf.Categorical(["no", "yes"]), "g": cf.Categorical(["a", "b", "c"])})
BUDGETS = [cf.PureDP(0.3), cf.PureDP(3.0), cf.ApproxDP(0.1, 1e-6), cf.ApproxDP(1.0, 1e-6), cf.ApproxDP(4.0, 0.01)]


def _outcomes(rule: str, privacy: object, relation: str, gaps: np.ndarray) -> np.ndarray:
    """Chances of the first side, the second side and of nothing at signed gaps, (gaps, 3)."""
    found = vote_rule(rule, privacy, relation).chances(gaps)  # type: ignore[arg-type]
    right = 1 - found.wrong - found.silent
    first = np.where(gaps > 0, right, found.wrong)
    second = np.where(gaps > 0, found.wrong, right)
    return np.column_stack([first, second, found.silent])


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
def test_every_rule_keeps_its_guarantee_at_every_gap(
    rule: str, privacy: cf.PureDP | cf.ApproxDP, relation: str
) -> None:
    delta = getattr(privacy, "delta", 0.0)
    if not delta and rule in ("distance", "generalized"):
        with refuses(cf.errors.PrivacyError):
            vote_rule(rule, privacy, relation)
        return
    gaps = np.arange(-300, 301)
    found = _outcomes(rule, privacy, relation, gaps)
    for moved in (1,) if relation == "add-remove" else (1, 2):
        for one, other in ((found[:-moved], found[moved:]), (found[moved:], found[:-moved])):
            # every set of outcomes: the positive parts add up
            excess = np.maximum(one - exp(privacy.epsilon) * other, 0).sum(axis=1)
            assert excess.max() <= delta * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.01), (1.5, 0.001)])
@pytest.mark.parametrize("move", [1, 2])
def test_the_optimal_rule_is_the_optimum_of_a_linear_programme(epsilon: float, delta: float, move: int) -> None:
    """Over all rules symmetric in the sides, at each gap by itself."""
    most, e = 12, exp(epsilon)
    # s(t) = P(first side) for t = 0..most; s(-t) = 1 - s(t)
    rows, ends = [], []
    for t in range(-most, most + 1):
        for u in (t - move, t + move, t - 1, t + 1):
            if abs(u) > most:
                continue
            for side in (0, 1):
                row, end = np.zeros(most + 1), delta
                for at, factor in ((t, 1.0), (u, -e)):
                    sign = 1.0 if at >= 0 else -1.0
                    constant = 0.0 if at >= 0 else 1.0
                    if side:
                        sign, constant = -sign, 1 - constant
                    row[abs(at)] += factor * sign
                    end -= factor * constant
                rows.append(row)
                ends.append(end)
    privacy = cf.ApproxDP(epsilon, delta) if delta else cf.PureDP(epsilon)
    own = vote_rule("optimal", privacy, "add-remove" if move == 1 else "substitute").chances(np.arange(most + 1)).right
    for t in range(most + 1):
        best = optimize.linprog(
            -np.eye(most + 1)[t],
            A_ub=np.array(rows),
            b_ub=np.array(ends),
            A_eq=np.eye(1, most + 1),
            b_eq=[0.5],
            bounds=[(0, 1)] * (most + 1),
        )
        assert own[t] == pytest.approx(-best.fun, abs=1e-9)


def test_the_optimal_rule_errs_least() -> None:
    gaps = np.arange(0, 400)
    for privacy in BUDGETS:
        errors = {}
        for rule in RULES if getattr(privacy, "delta", 0.0) else RULES[:2]:
            found = vote_rule(rule, privacy, "add-remove").chances(gaps)
            errors[rule] = found.wrong + found.silent
        assert all((errors["optimal"] <= own + 1e-12).all() for own in errors.values())


def test_the_loss_of_a_noisy_maximum_rises_with_the_gap_at_delta_0() -> None:
    """Figure 3 (a) shows the contrary, from a formula without its logarithm."""
    own = [vote_loss(t, 10.0, 0.0) for t in (0, 1, 10, 100)]
    assert own == pytest.approx([8.208, 9.394, 9.907, 9.990], abs=1e-3)
    assert vote_loss(2, 10.0, 1e-10) == pytest.approx(9.62, abs=0.01) and vote_loss(3, 10.0, 1e-10) < 1e-6
    a = 3 * 0.5
    g = np.random.default_rng(1)
    flips = np.mean(3 + g.laplace(0, 2, 400_000) < g.laplace(0, 2, 400_000))
    assert laplace_minority(a) == pytest.approx(flips, abs=5 * (0.2 * 0.8 / 400_000) ** 0.5)
    assert log(laplace_minority(0.0) / laplace_minority(1.0)) < 1.0


@pytest.mark.long
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "noisy_max"])
def test_votes_come_out_as_often_as_their_chances_say(rule: str) -> None:
    privacy, gap, runs = cf.ApproxDP(1.0, 0.05), 3, 150
    method = cf.voting.Plurality("v", rule)
    data = cf.read({"v": ["yes"] * (20 + gap) + ["no"] * 20}, cf.Schema({"v": SCHEMA["v"]}))
    found = []
    for seed in range(runs):
        release = cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(seed))
        found.append(int(release["answer"].values[0]))
    chance = vote_rule(rule, privacy, "add-remove").chances([gap])
    for answer, p in ((1, chance.wrong[0]), (0, chance.silent[0])):
        # 4.5 standard errors: a false alarm in 150,000 by the normal tail
        assert np.mean(np.array(found) == answer) == pytest.approx(p, abs=4.5 * (max(p * (1 - p), 1e-4) / runs) ** 0.5)


@pytest.mark.parametrize(
    ("method", "privacy"),
    few(
        [
            (cf.voting.Plurality("v"), cf.ApproxDP(1.0, 1e-6)),
            pytest.param(cf.voting.Plurality("v"), cf.PureDP(1.0), marks=pytest.mark.long),
            pytest.param(cf.voting.Plurality("v", "generalized"), cf.ApproxDP(1.0, 1e-6), marks=pytest.mark.long),
            pytest.param(cf.voting.Plurality("v", "distance"), cf.ApproxDP(1.0, 1e-6), marks=pytest.mark.long),
            pytest.param(cf.voting.Plurality("g"), cf.GDP(1.0), marks=pytest.mark.long),
            pytest.param(cf.voting.Plurality("g"), cf.PureDP(1.0), marks=pytest.mark.long),
            (cf.voting.Plurality("g", "distance"), cf.ApproxDP(1.0, 1e-6)),
        ],
        0,
    ),
    ids=str,
)
def test_votes_keep_the_contract(method: object, privacy: object) -> None:
    assert check_method(method, SCHEMA, privacy=privacy, replications=10).ok  # type: ignore[arg-type]


def test_a_plurality_tells_how_sure_it_is() -> None:
    """P(another leads) is below alpha at most as often as alpha at a tie, whatever the number of levels."""
    schema = cf.Schema({"g": SCHEMA["g"]})
    tie = cf.read({"g": ["a"] * 50 + ["b"] * 50 + ["c"] * 50}, schema)
    for privacy in (cf.GDP(0.5), cf.PureDP(0.5)):
        low = [
            cf.infer(cf.release(cf.voting.Plurality("g"), tie, privacy, ledger=None, noise=SimulatedNoise(seed))).pvalue
            <= 0.1
            for seed in range(100)
        ]
        assert np.mean(low) <= 0.1 + 4 * (0.09 / 100) ** 0.5
    clear = cf.read({"g": ["a"] * 20 + ["b"] * 90}, schema)
    found = cf.voting.plurality("g", clear, privacy=cf.ApproxDP(2.0, 1e-6), ledger=None, rule="distance")
    assert found.winner == "b" and found.status == "valid"
    silent = cf.voting.plurality("g", tie, privacy=cf.ApproxDP(0.1, 1e-9), ledger=None, rule="distance")
    assert silent.status == "declined"
    with refuses(cf.NoResult):
        _ = silent.winner


def test_what_votes_refuse() -> None:
    with refuses(cf.errors.PlanError):
        cf.plan(cf.voting.Plurality("g", "optimal"), SCHEMA, cf.PureDP(1.0))
    with refuses(cf.errors.PlanError):
        cf.voting.Plurality("v", "best")
    with refuses(cf.errors.NoConversion):
        cf.plan(cf.voting.Plurality("v", "optimal"), SCHEMA, cf.GDP(1.0))
    with refuses(cf.errors.PrivacyError):
        cf.plan(cf.voting.Plurality("v"), SCHEMA, cf.PureDP(1e-6))


def test_the_rule_that_errs_least_is_taken_where_none_is_named() -> None:
    """Between two levels under epsilon or (epsilon, delta) the optimal one; noisy counts for several levels, and under GDP."""
    for column, privacy, rule in (
        ("v", cf.PureDP(1.0), "optimal"),
        ("v", cf.ApproxDP(1.0, 1e-6), "optimal"),
        ("v", cf.GDP(1.0), "noisy_max"),
        ("g", cf.PureDP(1.0), "noisy_max"),
        ("g", cf.ApproxDP(1.0, 1e-6), "noisy_max"),
    ):
        plan = cf.plan(cf.voting.Plurality(column), SCHEMA, privacy)
        assert plan.constants["rule"] == rule and set(plan.statistics) == {"votes" if rule == "noisy_max" else "answer"}
    data = cf.read({"v": ["yes"] * 30 + ["no"] * 20}, cf.Schema({"v": SCHEMA["v"]}))
    for rule in (None, "optimal"):
        found = cf.voting.plurality("v", data, privacy=cf.PureDP(1.0), ledger=None, rule=rule, noise=SimulatedNoise(1))
        assert found.winner == "yes" and found.rule == "optimal" and found.wrong[20] < 1e-6


def test_votes_from_the_command_line(tmp_path: object) -> None:
    from pathlib import Path

    from confide.cli import app

    folder = Path(str(tmp_path))
    SCHEMA.sample(500, seed=1).to_csv(folder / "votes.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA.to_toml())
    plan = f"plan v --method plurality --schema {folder}/schema.toml --epsilon 1 -o {folder}/plan.json"
    for line in (plan, f"release {folder}/plan.json {folder}/votes.csv --unaccounted -o {folder}/r.json"):
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["infer", str(folder / "r.json")])
    assert done.exit_code == 0 and "Winner" in done.output


@pytest.mark.parametrize(
    ("relation", "leads", "distances"),
    [("add-remove", (0, 1, 2, 5), [0, 0, 1, 4]), ("substitute", (0, 1, 2, 3, 4, 5), [0, 0, 0, 1, 1, 2])],
)
def test_the_distance_of_a_plurality_is_0_where_one_record_decides(
    relation: str, leads: tuple[int, ...], distances: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ceil(g/m) - 1 for a lead of g that a record moves by m: 1 under add-remove, 2 under substitute."""
    from confide.methods.ptr.classic import StableRelease

    seen: list[int] = []

    def replies(self: object, distance: int, noise: object, runs: int) -> np.ndarray:
        seen.append(distance)
        return np.zeros(runs, dtype=bool)

    monkeypatch.setattr(StableRelease, "replies", replies)
    for lead in leads:
        data = cf.read({"g": ["b"] * (10 + lead) + ["a"] * 10}, cf.Schema({"g": SCHEMA["g"]}))
        privacy, n = cf.ApproxDP(1.0, 1e-6, relation=relation), 20 + lead if relation == "substitute" else None
        cf.release(cf.voting.Plurality("g", "distance"), data, privacy, ledger=None, noise=SimulatedNoise(1), n=n)
    assert seen == distances
