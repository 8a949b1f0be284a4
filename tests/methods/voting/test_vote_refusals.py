"""Bad input to votes, teachers and components: a typed error that names public facts, the same whatever the records are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.messages import refuses

import confide as cf
from confide.guarantees.mechanisms.noisy_max import collapsed_rdp, published_rdp
from confide.methods.voting.teacher_budgets import BallotDistance, checked_votes
from confide.methods.voting.teacher_labels import TeacherLabels
from confide.noise import SimulatedNoise
from confide.sklearn import PrivatePCA

SCHEMA = cf.Schema(
    {
        "v": cf.Categorical(["no", "yes"], on_missing="no"),
        "g": cf.Categorical(["a", "b", "c"]),
        "x": cf.Numeric(0, 1, on_missing="midpoint"),
        "z": cf.Numeric(0, 1, on_missing="midpoint"),
    }
)
PUBLIC = np.zeros((5, 2))


def _pate(privacy: Any = None, **settings: Any) -> Any:
    usual: dict[str, Any] = {"teachers": 10, "classes": ["no", "yes"], "bounds": (0, 1), "ledger": None, "seconds": 0.1}
    if privacy is None:
        privacy = cf.GDP(1.0)
    return cf.voting.Pate(GaussianNB(), privacy=privacy, progress=False, **{**usual, **settings})


def _fit(public: Any = PUBLIC, **settings: Any) -> Callable[[Any], Any]:
    return lambda own: _pate(**settings).fit(own[["x", "z"]].to_numpy(), own["v"].to_numpy(), public=public)


def _released(method: Callable[[], Any], privacy: Any, **more: Any) -> Callable[[Any], Any]:
    return lambda own: cf.release(method(), cf.read(own, SCHEMA), privacy, ledger=None, **more)


def _labels(**settings: Any) -> TeacherLabels:
    usual: dict[str, Any] = {
        "label": "v",
        "teacher": GaussianNB(),
        "public": PUBLIC,
        "teachers": 10,
        "features": ("x", "z"),
    }
    return TeacherLabels(**{**usual, **settings})


_GDP, _APPROX = cf.GDP(1.0), cf.ApproxDP(1.0, 1e-5)
CASES: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "more teachers than public records": (
        _fit(privacy=cf.GDP(1.0, relation="substitute"), teachers=100),
        cf.errors.PlanError,
    ),
    "one teacher": (_fit(teachers=1), cf.errors.PlanError),
    "no public records": (_fit(public=None), cf.errors.PlanError),
    "public records of no rows": (_fit(public=PUBLIC[:0]), cf.errors.PlanError),
    "public records of other columns": (_fit(public=PUBLIC[:, :1]), cf.errors.PlanError),
    "public records with a gap": (_fit(public=np.full((5, 2), np.nan)), cf.errors.PlanError),
    "public records of text": (_fit(public=np.full((5, 2), "a")), cf.errors.PlanError),
    "one class": (_fit(classes=["no"]), cf.errors.SchemaError),
    "bounds of other columns": (_fit(bounds=np.zeros((3, 2))), cf.errors.PlanError),
    "sigma of 0": (_fit(sigma=0.0), cf.errors.PlanError),
    "sigma too small": (_fit(sigma=0.1, certificate="gaussian"), cf.errors.PlanError),
    "unknown certificate": (_fit(certificate="best"), cf.errors.PlanError),
    "certificate without a delta": (_fit(certificate="distance"), cf.errors.PrivacyError),
    "agreement of no law": (_fit(agreement="high"), cf.errors.PlanError),
    "threshold without its noise": (_fit(certificate="gaussian", confident=(5.0, 0.0)), cf.errors.PlanError),
    "threshold that spends all": (_fit(certificate="gaussian", confident=(5.0, 0.1)), cf.errors.PlanError),
    "a student that is none": (_fit(student="svc"), cf.errors.PlanError),
    "a teacher that is none": (lambda own: _labels(teacher="svc"), cf.errors.PlanError),
    "labels that are numbers": (_released(lambda: _labels(label="x", features=("z",)), _GDP), cf.errors.PlanError),
    "teachers of other columns": (_released(lambda: _labels(features=("x",)), _GDP), cf.errors.PlanError),
    "a column that is not there": (_released(lambda: _labels(features=("x", "w")), _GDP), cf.ConfideError),
    "seconds of 0": (_released(lambda: _labels(seconds=0.0), _GDP), cf.errors.PlanError),
    "a rule between two among three": (
        _released(lambda: cf.voting.Plurality("g", "optimal"), _APPROX),
        cf.errors.PlanError,
    ),
    "a vote on numbers": (_released(lambda: cf.voting.Plurality("x"), _APPROX), cf.ConfideError),
    "an unknown rule": (_released(lambda: cf.voting.Plurality("v", "best"), _APPROX), cf.errors.PlanError),
    "a test without a delta": (
        _released(lambda: cf.voting.Plurality("v", "generalized"), cf.PureDP(1.0)),
        cf.errors.PrivacyError,
    ),
    "an epsilon too small": (_released(lambda: cf.voting.Plurality("v"), cf.PureDP(1e-6)), cf.errors.PrivacyError),
    "no component": (_released(lambda: cf.reduction.PCA("x + z", 0), _GDP), cf.errors.PlanError),
    "more components than columns": (_released(lambda: cf.reduction.PCA("x + z", 3), _GDP), cf.errors.PlanError),
    "components of one column": (_released(lambda: cf.reduction.PCA("x"), _GDP), cf.errors.PlanError),
    "correlations of labels": (_released(lambda: cf.reduction.Correlations("x + v"), _GDP), cf.ConfideError),
    "an unknown scale": (_released(lambda: cf.reduction.PCA("x + z", scale="unit"), _GDP), cf.errors.PlanError),
    "a transformer without bounds": (
        lambda own: PrivatePCA(privacy=_GDP, ledger=None).fit(own[["x", "z"]].to_numpy()),
        cf.errors.PlanError,
    ),
    "votes that do not add up": (lambda own: checked_votes([[3, 1], [2, 1]], 4), cf.errors.PlanError),
    "votes of one class": (lambda own: checked_votes([[4], [4]], 4), cf.errors.PlanError),
    "an epsilon of 0": (lambda own: BallotDistance(10, 3.0, 0.0, 1e-5, 4), cf.errors.PlanError),
    "a delta of 1": (lambda own: BallotDistance(10, 3.0, 1.0, 1.0, 4), cf.errors.PlanError),
    "an order of 1": (lambda own: published_rdp(-8.0, 1.0, 40.0), cf.errors.PrivacyError),
    "a sigma of 0": (lambda own: collapsed_rdp(-8.0, 2.0, 0.0), cf.errors.PrivacyError),
    "an unknown relation": (lambda own: cf.GDP(1.0, relation="swap"), cf.errors.PrivacyError),
}


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize(("call", "error"), CASES.values(), ids=CASES)
def test_bad_input_is_refused_alike_on_all_records(call: Callable[[Any], Any], error: type[Exception]) -> None:
    texts = set()
    for seed in (1, 2):
        with refuses(error) as refused:
            call(SCHEMA.sample(30, seed=seed))
        texts.add(str(refused.value))
    assert len(texts) == 1


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda x, y: (x[:3], y[:3]), id="fewer records than teachers, their number private"),
        pytest.param(lambda x, y: (x[:0], y[:0]), id="no record"),
        pytest.param(lambda x, y: (x, np.full(len(y), "no")), id="one class"),
        pytest.param(lambda x, y: (x, np.where(x[:, 0] > 0.5, "maybe", y)), id="a label that is no class"),
        pytest.param(lambda x, y: (np.where(x > 0.5, np.nan, x), y), id="missing numbers"),
        pytest.param(lambda x, y: (np.where(x > 0.5, 1e300, x), y), id="numbers out of bounds"),
    ],
)
def test_records_never_raise(change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    g = np.random.default_rng(1)
    x, y = change(g.uniform(size=(60, 2)), np.array(["no", "yes"] * 30))
    model = _pate(cf.GDP(1.0), certificate="gaussian", noise=SimulatedNoise(3)).fit(x, y, public=PUBLIC)
    assert model.status_ == "valid" and len(model.labels_) == 5
    assert set(model.predict(PUBLIC)) <= {"no", "yes"}
