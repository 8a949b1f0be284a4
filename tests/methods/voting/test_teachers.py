"""Teachers' votes: the distance by brute force and under neighbours, budgets from public facts, the whole way through the gate."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.few import few
from tests.messages import refuses, warns
from tests.pace import quick

import confide as cf
from confide.guarantees.mechanisms.noisy_max import gnmax_log_error
from confide.methods.voting.teacher_budgets import BallotDistance, budget_of, simulated_votes
from confide.methods.voting.teacher_labels import PublicRows, TeacherLabels, Teaching, tallied
from confide.noise import SimulatedNoise
from confide.sums.blocks.isolated_process import Answers
from confide.sums.blocks.record_block import BlockWork
from confide.testing import check_method


def _apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) // 2


@pytest.mark.parametrize(("ballots", "options"), [(9, 3), (6, 4)])
def test_the_ball_is_searched_exactly(ballots: int, options: int) -> None:
    """Every histogram of so many ballots, every distance: no reachable one has a lower level than was found."""
    far = BallotDistance(ballots, 2.0, 1.0, 1e-3, 5)
    histograms = [h for h in product(range(ballots + 1), repeat=options) if sum(h) == ballots]
    own = {}
    for h in histograms:
        top = np.sort(np.array(h))[::-1]
        own[h] = int(far.levels((top[:1] - top[1:])[None], 0)[0])
    for h in histograms:
        top = np.sort(np.array(h))[::-1]
        winner = int(np.argmax(h))
        for d in range(4):
            found = int(far.levels((top[:1] - top[1:])[None], d)[0])
            reached = [
                own[other] if int(np.argmax(other)) == winner and sorted(other)[-1] > sorted(other)[-2] else 0
                for other in histograms
                if _apart(h, other) <= d
            ]
            assert found <= min(reached)
            if 2 * d < top[0] - top[1]:
                assert found == min(reached)


def test_tails_are_convex_and_above_the_error_and_costs_rise() -> None:
    far = BallotDistance(60, 7.0, 1.0, 1e-5, 20)
    tails = [int(v) for v in far.tails]
    assert all(a - b >= b - c for a, b, c in zip(tails, tails[1:], tails[2:], strict=False))
    # of much noise they are all but straight, and rounding would bend them
    tails_far = [int(v) for v in BallotDistance(60, 2e4, 1.0, 1e-5, 20).tails]
    assert all(a - b >= b - c for a, b, c in zip(tails_far, tails_far[1:], tails_far[2:], strict=False))
    # P(0) is a little above 1/2, which gives the unit
    unit = 1 << (tails[0].bit_length())
    assert 0.5 <= tails[0] / unit < 0.51
    for gap in (6, 20, 58):
        exact = float(np.exp(gnmax_log_error([[(60 + gap) // 2, (60 - gap) // 2]], 7.0)[0]))
        assert exact <= tails[gap] / unit <= exact * 1.01
    assert (np.diff(far.costs, axis=0) <= 0).all() and (far.costs > 0).all()


def test_one_ballot_on_every_query_moves_the_distance_by_at_most_one() -> None:
    g = np.random.default_rng(5)
    for _ in range(60):
        queries, teachers = int(g.integers(2, 30)), int(g.integers(10, 60))
        shares = g.dirichlet(np.full(4, g.uniform(0.1, 1.0)), size=queries)
        votes = np.array([g.multinomial(teachers, one) for one in shares])
        far = BallotDistance(teachers, float(g.uniform(1, 12)), float(g.uniform(0.2, 4)), 1e-4, 40)
        moved = votes.copy()
        for row in moved:
            source = int(g.choice(np.flatnonzero(row > 0)))
            row[source] -= 1
            row[int(g.integers(4))] += 1
        assert abs(far(votes) - far(moved)) <= 1
        scan = next((d for d in range(40) if not far.within(_gaps(votes), d)), 40)
        assert far(votes) == scan


def _gaps(votes: np.ndarray) -> np.ndarray:
    top = np.sort(votes, axis=1)[:, ::-1]
    return top[:, :1] - top[:, 1:]


def test_the_distance_is_fast_and_no_worse_than_the_gaussian() -> None:
    votes = simulated_votes("even", 400, 10, 200, 7)
    far = BallotDistance(400, 40.0, 1.2, 1e-5, 120)
    far(votes)
    assert 0 < quick(2, lambda: far(votes)) < 120
    # the data-independent epsilon is 1.993 by the exact curve, 2.13 by Renyi bounds
    assert BallotDistance(400, 40.0, 2.2, 1e-5, 50)(np.tile([200, 200], (200, 1))) == 50
    assert BallotDistance(400, 40.0, 1.9, 1e-5, 50)(np.tile([200, 200], (200, 1))) == 0


def test_budgets_follow_from_public_facts() -> None:
    own = budget_of(1.7, 1e-5, 400, 10, 200, "even", 40.0, "distance")
    assert own.sigma == 40.0 and 0 < own.test < 1.7
    assert budget_of(1.0, 1e-5, 10, 10, 200).test == 0
    assert budget_of(2.5, 1e-5, 400, 10, 200, "even", 40.0).test == 0, (
        "the plain mechanism needs no test at its own budget"
    )
    with refuses(cf.errors.PlanError):
        budget_of(0.3, 1e-5, 50, 10, 200, "even", 5.0, "distance")


class Nearest:
    """A teacher of tests: the class whose mean of the first feature is nearest."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def get_params(self, deep: bool = True) -> dict[str, str]:
        return {"fault": self.fault}

    def fit(self, x: np.ndarray, y: np.ndarray) -> Nearest:
        # test data spread over their bounds, and the records of these tests do not
        if self.fault and x[:, 0].std() < 1.6:
            if self.fault == "raises":
                raise RuntimeError(f"label {y[0]}")
            if self.fault == "late":
                time.sleep(60)
        self.means = [float(x[y == k, 0].mean()) if (y == k).any() else np.inf for k in (0, 1)]
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        if self.fault == "random":
            return np.random.randint(0, 2, len(x))  # noqa: NPY002
        return np.abs(x[:, :1] - np.array(self.means)).argmin(axis=1)


def test_teachers_of_few_records_vote_for_what_they_have() -> None:
    teach = Teaching(Nearest(), np.array([[-1.0], [1.0]]), 2)
    g = np.random.default_rng(1)
    assert teach(np.zeros((0, 2)), g).tolist() == [0, 0]
    assert teach(np.array([[0.3, 1.0]]), g).tolist() == [1, 1]
    assert teach(np.array([[-2.0, 0.0], [2.0, 1.0]]), g).tolist() == [0, 1]
    assert tallied(np.array([[0.0, 1.0], [1.0, 1.0]]), 2).tolist() == [[1, 1], [0, 2]]


def _model(privacy: object, seconds: float = 4.0, **settings: object) -> object:
    return cf.voting.Pate(
        Nearest(**settings.pop("teacher", {})),  # type: ignore[arg-type]
        teachers=20,
        privacy=privacy,
        classes=["a", "b"],
        bounds=(-4, 4),
        ledger=None,
        seconds=seconds,
        jobs=4,
        noise=SimulatedNoise(2),
        student=Nearest(),
        **settings,
    )


def _records(n: int = 1_200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    g = np.random.default_rng(4)
    x = g.normal(size=(n, 2))
    return x, np.where(x[:, 0] > 0, "b", "a"), g.normal(size=(12, 2))


@pytest.mark.long
@pytest.mark.parametrize(
    ("privacy", "settings"),
    [
        (cf.ApproxDP(20.0, 1e-2), {"certificate": "distance", "sigma": 1.0, "agreement": (30.0, 1.0)}),
        (cf.GDP(3.0, relation="substitute"), {"certificate": "gaussian"}),
        (cf.GDP(3.0), {"certificate": "gaussian", "confident": (12.0, 3.0)}),
        (cf.PureDP(30.0), {"certificate": "laplace"}),
    ],
    ids=["distance", "gaussian", "confident", "laplace"],
)
def test_pate_learns_from_votes(privacy: object, settings: dict[str, object]) -> None:
    x, y, public = _records()
    model = _model(privacy, **settings)
    model.fit(x, y, public=public)  # type: ignore[attr-defined]
    truth = np.where(public[:, 0] > 0, "b", "a")
    given = np.array([one is not None for one in model.labels_])  # type: ignore[attr-defined]
    assert model.status_ == "valid" and given.mean() > 0.5  # type: ignore[attr-defined]
    assert np.mean(model.labels_[given] == truth[given]) > 0.8  # type: ignore[attr-defined]
    assert np.mean(model.predict(public) == truth) > 0.8  # type: ignore[attr-defined]
    assert ("Noise scale" in dict(model.result_.facts)) == isinstance(privacy, cf.PureDP)  # type: ignore[attr-defined]
    again = cf.infer(cf.Release.from_json(model.release_.to_json()))  # type: ignore[attr-defined]
    assert again.status == "valid" and "labels" in again.family


@pytest.mark.parametrize("fault", ["raises", "late"])
def test_teachers_that_fail_say_so_and_give_no_labels(fault: str) -> None:
    """Whole, in their processes: "failed", the option after the two classes, wins every query, and no student learns from that."""
    x, y, public = _records(100)
    model = _model(cf.GDP(5.0), seconds=1.5, certificate="gaussian", teacher={"fault": fault})
    model.set_params(teachers=10)  # type: ignore[attr-defined]
    with warns(UserWarning):
        model.fit(x, y, public=public)  # type: ignore[attr-defined]
    assert model.release_["labels"].values.tolist() == [3] * 12  # type: ignore[attr-defined]
    assert (model.status_, model.result_.flags) == ("no_information", ("no_interval", "most_blocks_failed"))  # type: ignore[attr-defined]
    assert model.labels_.tolist() == [None] * 12 and "0 of 12" in str(model.result_)  # type: ignore[attr-defined]
    assert cf.infer(cf.Release.from_json(model.release_.to_json())).to_json() == model.result_.to_json()  # type: ignore[attr-defined]
    with refuses(cf.NoResult):
        model.predict(public)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize(
    ("privacy", "settings"),
    [
        (cf.GDP(3.0), {"certificate": "gaussian"}),
        (cf.GDP(3.0), {"certificate": "gaussian", "confident": (12.0, 3.0)}),
        (cf.ApproxDP(20.0, 1e-2), {"certificate": "distance", "sigma": 1.0, "agreement": (30.0, 1.0)}),
        (cf.PureDP(30.0), {"certificate": "laplace"}),
    ],
    ids=["gaussian", "confident", "distance", "laplace"],
)
def test_six_labels_of_failing_teachers_are_never_ok(privacy: object, settings: dict[str, object]) -> None:
    """Under every certificate: votes of those who fail agree with each other, so that each passes them on."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["u", "v", "w"], on_missing="u")})
    x = np.random.default_rng(1).normal(size=600)
    data = cf.read({"x": x, "y": np.where(x > 0, "v", "u")}, schema)
    for fault, status in (("raises", "no_information"), ("", "valid")):
        method = TeacherLabels("y", Nearest(fault), np.linspace(-2, 2, 6)[:, None], 20, **settings)  # type: ignore[arg-type]
        found = cf.infer(cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(1)))  # type: ignore[arg-type]
        assert found.status == status, fault
        assert any(one is not None for one in found.labels) == (status == "valid")


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize("queries", [1, 2, 3])
def test_a_few_labels_that_teachers_found_are_always_given(queries: int) -> None:
    """Whatever the public records are: nothing but the votes says whether teachers failed."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["u", "v"], on_missing="u")})
    x = np.random.default_rng(1).normal(size=600)
    data = cf.read({"x": x, "y": np.where(x > 0, "v", "u")}, schema)
    for seed in range(12):
        public = np.random.default_rng(seed).uniform(1, 3, (queries, 1)) * (-1) ** np.arange(queries)[:, None]
        method = TeacherLabels("y", Nearest(), public, 20, certificate="gaussian")
        found = cf.infer(cf.release(method, data, cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1)))
        assert (found.status, found.labels.tolist()) == ("valid", ["v", "u", "v"][:queries]), seed  # type: ignore[attr-defined]


def _of_answers(answers: list[list[int]], monkeypatch: pytest.MonkeyPatch, **settings: object) -> object:
    """What is published of teachers, of classes u, v and w, who say these numbers; all but without noise."""
    from confide.methods.voting import teacher_labels

    monkeypatch.setattr(teacher_labels.BlockWork, "run", lambda *given: np.array(answers, dtype=float))
    monkeypatch.setattr(teacher_labels.BlockWork, "rehearse", lambda *given, **words: "")
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["u", "v", "w"], on_missing="u")})
    data = cf.read({"x": np.zeros(50), "y": ["u"] * 50}, schema)
    method = TeacherLabels("y", Nearest(), np.zeros((6, 1)), len(answers), certificate="gaussian", **settings)  # type: ignore[arg-type]
    return cf.infer(cf.release(method, data, cf.GDP(1e3), ledger=None, noise=SimulatedNoise(1)))


@pytest.mark.parametrize("lost", [0, 1, 3, 4, 6])
def test_queries_that_failed_wins_have_no_label_and_most_of_them_no_result(
    lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 of 20 teachers fail: 12 that agree are more than these, and four for each of three classes are fewer."""
    agree, apart = [1] * (6 - lost), [[k % 3] * lost for k in range(12)]
    found: cf.Result = _of_answers([[3] * 6] * 8 + [agree + own for own in apart], monkeypatch)  # type: ignore[assignment]
    some = lost <= 3
    assert found.labels.tolist() == ["v"] * (6 - lost) * some + [None] * (lost if some else 6)  # type: ignore[attr-defined]
    assert found.status == ("valid" if some else "no_information")
    assert found.flags == (("no_interval",) if some else ("no_interval", "most_blocks_failed"))
    said = {"Failed": f"{lost} of 6 public rows have no label, as 'failed' has the most votes"} if lost else {}
    assert {name: text for name, text in dict(found.facts).items() if name == "Failed"} == said
    if lost:
        assert f"{lost} of 6 public rows have no label" in str(found)


def test_of_a_threshold_those_queries_count_that_were_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries have a clear winner, "failed" both times: the others were not asked to say more."""
    answers = [[3, 3, k % 3, k % 3, k % 3, k % 3] for k in range(20)]
    found = _of_answers(answers, monkeypatch, confident=(15.0, 0.1))
    assert found.status == "no_information" and "2 of 6 public rows" in str(found)  # type: ignore[attr-defined]


class Poisoned(Nearest):
    """Fails where one record is as large as none of the others."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> Nearest:
        if (x > 2.5).any():
            raise RuntimeError
        return super().fit(x, y)


@pytest.mark.usefixtures("blocks_in_place")
def test_a_record_that_makes_its_teacher_fail_moves_one_ballot_of_each_query() -> None:
    """From a class to "failed": 1 from one count and 1 to another, which is what all noise is for."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["u", "v"], on_missing="u")})
    g = np.random.default_rng(3)
    x = g.normal(size=300).clip(-2, 2)
    seen: list[np.ndarray] = []

    class Watched(TeacherLabels):
        def _labels(self, votes: np.ndarray, *given: object) -> np.ndarray:
            seen.append(votes)
            return super()._labels(votes, *given)  # type: ignore[arg-type]

    method = Watched("y", Poisoned(), g.normal(size=(7, 1)), 20, certificate="gaussian")
    plan = TeacherLabels("y", Nearest(), method.public, 20, certificate="gaussian").plan(schema, cf.GDP(1.0))
    for own in (x, np.append(x, 3.0)):
        data = cf.read({"x": own, "y": np.where(own > 0, "v", "u")}, schema)
        method.repeated(data, plan, SimulatedNoise(1))(1)
    before, after = seen
    assert before.shape == (7, 3) and before[:, 2].tolist() == [0] * 7
    moved = after - before
    assert moved[:, 2].tolist() == [1] * 7 and np.sort(moved, axis=1).tolist() == [[-1, 0, 1]] * 7


def test_noise_that_drowns_all_votes_makes_failed_the_winner_as_often_as_a_class() -> None:
    """What is expected of labels counts the option that nobody votes for: .33 of them right between two classes, and not .5."""
    # 600 votes by 10 draws of noise: within 5 standard errors
    assert budget_of(1e-3, 1e-5, 10, 2, 200).right == pytest.approx(1 / 3, abs=0.031)


class Odd(Nearest):
    """A teacher that no block could use."""

    def __init__(self, fault: str = "") -> None:
        self.odd, self.fault = fault, ""

    def get_params(self, deep: bool = True) -> dict[str, str]:
        return {"fault": self.odd}

    def fit(self, x: np.ndarray, y: np.ndarray) -> Odd:
        if self.odd == "raises":
            raise KeyError("kind")
        if self.odd == "hangs":
            time.sleep(60)
        if self.odd == "slow":
            time.sleep(0.2)
        return self

    def predict(self, x: np.ndarray) -> object:
        odd = {
            "text": np.full(len(x), "a"),
            "wide": np.zeros((len(x), 2)),
            "beyond": np.full(len(x), 2),
            "between": 0.5 + 0 * x[:, 0],
        }
        return odd.get(self.odd, np.full(len(x), np.nan if self.odd == "nan" else 1.0))


_ODD = {
    "raises": "the teacher raises KeyError: 'kind', on test data of 200 records of the columns x, in this order, with labels from 0 to 1",
    "hangs": "did not end within 1.5 s",
    "slow": "the teacher took .* write seconds=",
    "text": "raises ValueError.*must give one of the numbers 0 to 1, as in y, for each of the 3 public rows",
    "wide": "predict gave",
    "beyond": "predict gave",
    "between": "predict gave",
    "nan": "predict gave",
}


_CHARGED = cf.Schema(
    {"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["a", "b"], on_missing="a")}, dataset="d"
)


@pytest.mark.parametrize("fault", _ODD)
def test_a_teacher_that_no_block_could_use_is_refused_before_the_charge(fault: str, tmp_path: Path) -> None:
    schema = _CHARGED
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(3.0))
    method = TeacherLabels("y", Odd(fault), np.zeros((3, 1)), 10, certificate="gaussian", seconds=1.5)
    with refuses(cf.errors.PlanError):
        cf.release(method, cf.read(schema.sample(100, seed=1), schema), cf.GDP(1.0), ledger=book)
    assert book.show().units["spent_amount"] == 0


@pytest.mark.usefixtures("blocks_in_place")
def test_a_plan_from_a_file_is_refused_before_the_charge_and_its_release_is_read(tmp_path: Path) -> None:
    schema = _CHARGED
    data, book = (
        cf.read(schema.sample(100, seed=1), schema),
        cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(3.0)),
    )
    method = TeacherLabels("y", Nearest(), np.zeros((9, 1)), 10, certificate="gaussian", seconds=1.5)
    plan = cf.Plan.from_json(cf.plan(method, schema, cf.GDP(1.0)).to_json())
    for call in (lambda: cf.release(plan, data, ledger=book), lambda: cf.plan(plan, schema)):
        with refuses(cf.errors.PlanError):
            call()
    half = replace(method, public={"queries": 9, "digest": method.public.digest})
    with refuses(cf.errors.PlanError):
        cf.release(half, data, cf.GDP(1.0), ledger=book)
    assert book.show().units["spent_amount"] == 0
    release = cf.release(method, data, cf.GDP(1.0), ledger=book)
    again = cf.infer(cf.Release.from_json(release.to_json()))
    assert again.to_json() == method.infer(release).to_json() and len(again.labels) == 9  # type: ignore[attr-defined]
    assert cf.verify(release, book).ok


class Remembers(Nearest):
    """A teacher without parameters, that counts how often it was fitted."""

    fits = 0
    get_params = None  # type: ignore[assignment]

    def fit(self, x: np.ndarray, y: np.ndarray) -> Nearest:
        self.fits += 1
        return super().fit(x, y)


@pytest.mark.usefixtures("blocks_in_place")
def test_the_callers_teacher_is_left_as_it_was() -> None:
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["a", "b"], on_missing="a")})
    own, flow = Remembers(), make_pipeline(StandardScaler(), GaussianNB())
    del Remembers.get_params
    for teacher in (own, flow):
        cf.plan(TeacherLabels("y", teacher, np.zeros((3, 1)), 10, certificate="gaussian"), schema, cf.GDP(1.0))
    assert own.fits == 0 and not hasattr(flow[-1], "theta_")


def test_what_pate_refuses_from_public_facts() -> None:
    x, y, public = _records(30)
    with refuses(cf.errors.PlanError):
        _model(cf.GDP(1.0)).fit(x, y, public=public[:, :1])  # type: ignore[attr-defined]
    said = set()
    for n in (30, 31):
        x, y, public = _records(n)
        with refuses(cf.errors.PlanError) as refused:
            _model(cf.GDP(1.0)).fit(x, y[1:], public=public)  # type: ignore[attr-defined]
        said.add(str(refused.value))
    assert len(said) == 1, "the number of records is not said"
    with refuses(cf.errors.PlanError):
        _model(cf.GDP(1.0)).fit(x, y)  # type: ignore[attr-defined]
    with refuses(cf.errors.PlanError):
        _model(cf.GDP(1.0, relation="substitute"), certificate="gaussian").fit(x, y, public=public)  # type: ignore[attr-defined]
    with refuses(cf.errors.PlanError):
        PublicRows.of([[np.nan]])
    with refuses(cf.errors.PlanError):
        cf.voting.TeacherLabels("y", "svc", public, 20)
    with refuses(cf.errors.PrivacyError):
        _model(cf.GDP(1.0), certificate="distance").plan(public)  # type: ignore[attr-defined]
    with refuses(cf.errors.PlanError):
        schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.0), "y": cf.Numeric(0, 1, on_missing=0.0)})
        cf.plan(cf.voting.TeacherLabels("y", Nearest(), [[0.5]], 20), schema, cf.GDP(1.0))


@pytest.mark.usefixtures("blocks_in_place")
def test_a_refused_test_releases_nothing_and_no_student() -> None:
    x, y, _ = _records(400)
    public = np.zeros((40, 2))
    model = _model(
        cf.ApproxDP(20.0, 1e-2),
        certificate="distance",
        sigma=1.5,
        agreement=(30.0, 1.0),
        teacher={"fault": "random"},
    )
    with warns(UserWarning):
        model.fit(x, y, public=public)  # type: ignore[attr-defined]
    assert model.status_ == "declined" and not any(one is not None for one in model.labels_)  # type: ignore[attr-defined]
    with refuses(cf.NoResult):
        model.predict(public)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("blocks_in_place")
def test_no_vote_above_the_threshold_makes_no_student() -> None:
    x, y, public = _records(100)
    model = _model(cf.GDP(3.0), certificate="gaussian", confident=(1e4, 3.0))
    with warns(UserWarning):
        model.fit(x, y, public=public)  # type: ignore[attr-defined]
    with refuses(cf.NoResult):
        model.predict(public)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize(
    ("privacy", "settings"),
    few(
        [
            (cf.GDP(1.0), {"certificate": "gaussian"}),
            (cf.ApproxDP(20.0, 1e-2), {"certificate": "distance", "sigma": 1.0}),
        ],
        0,
    ),
    ids=["gaussian", "distance"],
)
def test_teachers_keep_the_contract(privacy: object, settings: dict[str, object]) -> None:
    """Whole: small data sets have the records that 30 teachers need."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["a", "b"], on_missing="a")})
    public = np.random.default_rng(1).normal(size=(4, 1))
    method = TeacherLabels("y", Nearest(), public, teachers=30, seconds=1.0, jobs=10, **settings)
    assert method.least_records == 60
    assert check_method(method, schema, privacy=privacy, replications=2).ok


# what planted faults showed to be untested ------------------------------------------------------------------------------


def test_a_level_is_never_reached_before_its_error() -> None:
    """The level of any sum of tails has an error at least as large; tails are those of a gap that the grid of the noise may shorten."""
    from scipy import special

    far = BallotDistance(60, 7.0, 1.0, 1e-5, 20)
    unit = 1 << int(far.tails[0]).bit_length()
    for gap in range(0, 61, 3):
        q = int(far.tails[gap])
        shortened = special.ndtr(-(gap - 1 / 1024) / (np.sqrt(2) * 7.0))
        assert q / unit >= shortened * (1 + 1e-12)
        z = 0.01 * far._level(q)
        assert special.ndtr(-z) * (1 + 1e-9) >= min(q / unit, 0.5)
        # not far below either: a level is .01 of a standard deviation
        assert special.ndtr(-z - 0.011) <= q / unit


def test_the_proposed_loss_converts_at_delta_and_costs_are_not_below_the_bound() -> None:
    from confide.guarantees.mechanisms.classical import rdp_epsilon
    from confide.guarantees.mechanisms.noisy_max import GNMAX_ORDERS, collapsed_rdp

    far = BallotDistance(60, 7.0, 1.3, 1e-5, 20)
    for a, limit in zip(GNMAX_ORDERS, far.limits, strict=True):
        if limit >= 0:
            assert rdp_epsilon(np.log(1e-5), (a,), [limit / 2.0**32]) <= 1.3
    z = 0.01 * np.arange(len(far.costs))
    with np.errstate(all="ignore"):
        from scipy import special

        exact = collapsed_rdp(special.log_ndtr(-z)[:, None], np.array(GNMAX_ORDERS)[None, :], 7.0)
    assert (far.costs / 2.0**32 >= exact).all()


class Asked:
    """Noise of 0 that keeps what it was asked for."""

    def __init__(self) -> None:
        self.scales: list[tuple[str, float, int]] = []

    def _kept(self, law: str, scale: object, size: int) -> np.ndarray:
        self.scales.append((law, float(scale), size))  # type: ignore[arg-type]
        return np.zeros(size, dtype=object)

    def grid_gaussian(self, scale: object, size: int) -> np.ndarray:
        return self._kept("gaussian", scale, size)

    def grid_laplace(self, scale: object, size: int) -> np.ndarray:
        return self._kept("laplace", scale, size)


def _labels(**settings: object) -> TeacherLabels:
    return TeacherLabels("y", Nearest(), np.zeros((2, 1)), 20, **settings)  # type: ignore[arg-type]


def test_labels_have_the_noise_of_their_plan() -> None:
    """On a grid of 1/1024 of a ballot: sd sigma on each count, scale b for Laplace, sd of the threshold on the largest count of a query."""
    votes = np.array([[15, 5], [12, 8]])
    for mode, law, scale in (("gaussian", "gaussian", (3.0 * 1024) ** 2), ("laplace", "laplace", 3.0 * 1024)):
        asked = Asked()
        assert _labels()._labels(votes, mode, 3.0, asked).tolist() == [1, 1]
        assert asked.scales == [(law, pytest.approx(scale, rel=1e-9), 4)]
    asked = Asked()
    found = _labels(certificate="gaussian", confident=(13.0, 2.0))._labels(votes, "gaussian", 3.0, asked)
    assert found.tolist() == [1, 0] and asked.scales[1] == ("gaussian", pytest.approx((2.0 * 1024) ** 2, rel=1e-9), 2)


def test_plans_spend_what_was_asked_and_no_more() -> None:
    """sqrt(2) for the two counts that a ballot moves, 1 for the largest of them; two counts by 1 for Laplace; the test's epsilon beside."""
    from fractions import Fraction

    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["a", "b"], on_missing="a")})

    def sigma(privacy: object, **settings: object) -> float:
        return float(cf.plan(_labels(**settings), schema, privacy).constants["sigma"])  # type: ignore[arg-type]

    assert 2 * 2 / sigma(cf.GDP(0.7), certificate="gaussian") ** 2 == pytest.approx(0.49, rel=1e-9)
    own = sigma(cf.GDP(0.7), certificate="gaussian", confident=(10.0, 6.0))
    assert 2 * (2 / own**2 + 1 / 36) == pytest.approx(0.49, rel=1e-9)
    assert sigma(cf.PureDP(0.7), certificate="laplace") == pytest.approx(2 * 2 / 0.7, rel=1e-9)
    for epsilon in (1.7, 0.3, 1e-3):
        budget = budget_of(1.7, 1e-5, 400, 10, 200, "even", 40.0, "distance")
        far = budget.distance(epsilon, 1e-5, 400) if budget.test < epsilon else None
        assert far is None or Fraction(far.epsilon) + Fraction(budget.test) <= Fraction(epsilon)
        assert far is None or far.delta == 1e-5


def _seen(privacy: object, monkeypatch: pytest.MonkeyPatch, seed: int) -> dict[str, object]:
    """What `draw` hands to the runner of blocks."""
    from confide.methods.voting import teacher_labels

    seen: dict[str, object] = {}

    def run(work: BlockWork, source: object, record: object, key: bytes, by: str, progress: object) -> np.ndarray:
        seen.update(k=work.blocks, key=key, by=by, answers=work.answers)
        return np.zeros((work.blocks, 2))

    monkeypatch.setattr(teacher_labels.BlockWork, "run", run)
    schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "y": cf.Categorical(["a", "b"], on_missing="a")})
    data = cf.read({"x": np.zeros(50), "y": ["a"] * 50}, schema)
    method = _labels(certificate="gaussian")
    n = 50 if getattr(privacy, "relation", None) == "substitute" else None
    cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(seed), n=n)  # type: ignore[arg-type]
    return seen


def test_blocks_are_those_of_the_relation_with_a_fresh_key_and_a_public_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed, again = (_seen(cf.GDP(1.0), monkeypatch, seed) for seed in (1, 2))
    placed = _seen(cf.GDP(1.0, relation="substitute"), monkeypatch, 1)
    assert (hashed["by"], placed["by"]) == ("identity", "position")
    assert hashed["key"] != again["key"] and len(hashed["key"]) == 32  # type: ignore[arg-type]
    # classes are 0 and 1, and 2 is "failed"
    assert hashed["k"] == 20 and hashed["answers"] == Answers((2,), 0, 2, 2)


def test_one_ballot_for_each_teacher_and_query() -> None:
    votes = tallied(np.array([[0.0, 1.0, 2.0]] * 7 + [[2.0, 2.0, 2.0]]), 3)
    assert votes.sum(axis=1).tolist() == [8, 8, 8] and votes[:, 2].tolist() == [1, 1, 8]
