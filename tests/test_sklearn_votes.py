"""Teachers and private components as scikit-learn users know estimators: parameters, pipelines, names, probabilities, inverses."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import confide as cf
from confide.noise import SimulatedNoise
from confide.sklearn import PrivatePCA
from tests.messages import refuses

pytestmark = pytest.mark.usefixtures("blocks_in_place")


def _records() -> tuple[Any, Any, Any]:
    g = np.random.default_rng(0)
    x = g.normal(size=(900, 2))
    return x, np.where(x[:, 0] > 0, "up", "down"), g.normal(size=(16, 2))


def _pate(**settings: Any) -> Any:
    usual: dict[str, Any] = {"privacy": cf.GDP(3.0), "certificate": "gaussian", "classes": ["down", "middle", "up"]}
    return cf.voting.Pate(
        GaussianNB(),
        teachers=20,
        bounds=(-4, 4),
        ledger=None,
        seconds=1.0,
        progress=False,
        noise=SimulatedNoise(1),
        **{**usual, **settings},
    )


def test_teachers_are_cloned_searched_and_put_into_pipelines() -> None:
    x, y, public = _records()
    model = _pate()
    assert clone(model).get_params()["teachers"] == 20
    assert model.set_params(teacher__var_smoothing=1e-8).teacher.var_smoothing == 1e-8
    flow = make_pipeline(StandardScaler(), model).fit(x, y, pate__public=public)
    assert set(flow.predict(public)) <= {"down", "up", "middle"}
    assert cross_val_score(_pate(), x, y, params={"public": public}, cv=2).min() > 0.6
    fitted = _pate().fit(x, y, public=public)
    assert (pickle.loads(pickle.dumps(fitted)).predict(public) == fitted.predict(public)).all()


def test_names_of_columns_are_kept_and_compared() -> None:
    x, y, public = _records()
    frame, known = (pd.DataFrame(own, columns=["a", "b"]) for own in (x, public))
    model = _pate().fit(frame, pd.Series(y), public=known)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="same order"):
        model.predict(known[["b", "a"]])
    with refuses(cf.errors.PlanError):
        _pate().fit(frame, y, public=known[["b", "a"]])


def test_probabilities_are_the_students_or_are_not_there() -> None:
    x, y, public = _records()
    model = _pate().fit(x, y, public=public)
    found = model.predict_proba(public)
    assert found.shape == (16, 3) and found.sum(axis=1) == pytest.approx(np.ones(16))
    assert (model.classes_[found.argmax(axis=1)] == model.predict(public)).all()
    # a class that no label named
    named = {str(one) for one in model.labels_ if one is not None}
    assert all((found[:, j] == 0).all() for j, one in enumerate(model.classes_) if one not in named)
    none = _pate(student=LinearSVC())
    assert not hasattr(none, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        none.predict_proba(public)
    assert "votes are released as labels" in f"{refused.value} {refused.value.__cause__}"


def test_a_student_that_is_none_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    x, y, public = _records()
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(3.0))
    with refuses(cf.errors.PlanError):
        _pate(student="svc").set_params(ledger=book, noise=None).fit(x, y, public=public)
    assert book.show().units["spent_amount"] == 0


def _components(**settings: Any) -> PrivatePCA:
    return PrivatePCA(2, privacy=cf.GDP(2.0), bounds=(-6, 6), ledger=None, noise=SimulatedNoise(1), **settings)


def test_scores_have_names_and_lead_back() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(5_000, 3)).clip(-4, 4)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = _components().set_output(transform="pandas").fit(frame)
    scores = model.transform(frame[:4])
    assert list(scores.columns) == ["privatepca0", "privatepca1"] == model.get_feature_names_out().tolist()
    back = model.inverse_transform(scores)
    assert back.shape == (4, 3)
    again = model.transform(pd.DataFrame(back, columns=["a", "b", "c"]))
    assert again.to_numpy() == pytest.approx(scores.to_numpy())
    whole = PrivatePCA(privacy=cf.GDP(2.0), bounds=(-6, 6), ledger=None, noise=SimulatedNoise(1)).fit(x)
    assert whole.inverse_transform(whole.transform(x[:4])) == pytest.approx(x[:4])
    with pytest.raises(ValueError, match="2 components"):
        model.inverse_transform(np.zeros((1, 3)))


def test_components_of_text_are_refused_before_anything_is_charged() -> None:
    with refuses(cf.errors.SchemaError):
        _components().fit(np.array([["a", "b"]] * 9))
