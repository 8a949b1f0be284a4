"""PrivateClassifier: the same gate, containers, labels, methods by name, clones, refusals."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.messages import refuses

import confide as cf
from confide import registry
from confide.classification import ClassMeans, EfficientPTRBayes
from confide.errors import NoResult, PlanError, SchemaError
from confide.noise import SimulatedNoise
from confide.sklearn import PrivateClassifier
from confide_lab.methods import NaiveBayes

SCHEMA = cf.Schema({"a": cf.Numeric(-3, 3), "b": cf.Numeric(-3, 3), "kind": cf.Categorical(["no", "yes"])}, dataset="d")


@pytest.fixture(autouse=True)
def registered() -> None:
    for method in (ClassMeans, EfficientPTRBayes, NaiveBayes):
        registry.register(method)


def records(n: int = 2_000, seed: int = 1) -> tuple[pd.DataFrame, pd.Series[Any]]:
    g = np.random.default_rng(seed)
    y = g.random(n) < 0.4
    X = pd.DataFrame(g.standard_normal((n, 2)) * 0.6 + np.where(y, 1.0, -1.0)[:, None], columns=["a", "b"])
    return X, pd.Series(np.where(y, "yes", "no"), name="kind")


def classifier(method: Any = None, **settings: Any) -> PrivateClassifier:
    facts = {"privacy": cf.GDP(1.0), "ledger": None, "noise": SimulatedNoise(1), "schema": SCHEMA}
    return PrivateClassifier(method, **{**facts, **settings})


def test_it_is_a_classifier_whose_numbers_are_those_of_the_release() -> None:
    X, y = records()
    model = classifier().fit(X, y)
    assert is_classifier(model) and model.status_ == "valid" and model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, y) > 0.95
    again = cf.infer(cf.Release.from_json(model.release_.to_json()))
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X).to_numpy())
    np.testing.assert_array_equal(model.predict(X), again.predict(X).to_numpy())


def test_all_containers_and_types_of_labels() -> None:
    X, y = records(500)
    expected = classifier().fit(X, y).predict_proba(X)
    for given in (X.to_numpy(), X.to_numpy().tolist(), pl.from_pandas(X)):
        np.testing.assert_array_equal(classifier().fit(given, y).predict_proba(given), expected)
    numbers = (y == "yes").astype(int)
    facts = {"schema": None, "bounds": {"X": (-3, 3), "y": [0, 1]}}
    model = classifier(**facts).fit(X.to_numpy(), numbers.to_numpy())
    assert model.classes_.dtype.kind == "i" and model.score(X.to_numpy(), numbers) > 0.9
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), expected)
    flags = classifier(**{**facts, "bounds": {"X": (-3, 3), "y": [False, True]}}).fit(
        X.to_numpy(), numbers.to_numpy() == 1
    )
    assert flags.classes_.tolist() == [False, True] and flags.predict(X.to_numpy()).dtype == bool


@pytest.mark.parametrize(
    "method", ["class_means", "naive_bayes", NaiveBayes("kind ~ a"), ClassMeans("kind ~ a + I(b**2)")]
)
def test_methods_by_name_and_by_formula(method: Any) -> None:
    X, y = records()
    privacy = cf.PureDP(2.0) if method == "naive_bayes" or isinstance(method, NaiveBayes) else cf.GDP(1.0)
    model = classifier(method, privacy=privacy).fit(X, y)
    assert model.score(X, y) > 0.85 and model.predict_proba(X.head(4)).shape == (4, 2)


def test_a_ledger_is_charged_for_each_fit_and_clones_share_it(tmp_path: Path) -> None:
    X, y = records(300)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(2.0))
    model = classifier(noise=None, ledger=book)
    cross_val_score(model, X, y, cv=3, error_score="raise")
    assert clone(model).ledger is book
    model.fit(X, y)
    with pytest.raises(cf.BudgetExceeded):
        model.fit(X, y)
    assert model.status_ in ("valid", "imprecise")  # the earlier fit is kept


def test_pipelines_and_pickles() -> None:
    X, y = records()
    step = FunctionTransformer(lambda table: np.asarray(table) / 3.0)
    facts = {"schema": None, "bounds": {"X": (-1, 1), "y": ["no", "yes"]}}
    assert make_pipeline(step, classifier(**facts)).fit(X, y).score(X, y) > 0.9
    model = classifier().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_values_never_raise_and_missing_public_features_give_none() -> None:
    X, y = records(400)
    hostile, labels = X.to_numpy(dtype=object, copy=True), y.astype(object)
    hostile[:20] = ["text", np.inf]
    labels.iloc[5:9] = ["other", None, 3.5, "maybe"]
    model = classifier().fit(hostile, labels)
    public = X.head(3).copy()
    public.iloc[1, 0] = np.nan
    assert model.predict(public.to_numpy())[1] is None and model.predict(public.to_numpy())[0] in ("no", "yes")


def test_refusals() -> None:
    X, y = records(200)
    with pytest.raises(NotFittedError):
        classifier().predict(X)
    with refuses(PlanError):
        classifier(cf.regression.LeastSquares("a ~ b")).fit(X[["b"]], X["a"])
    with refuses(PlanError):
        classifier("clas_sums").fit(X, y)
    with refuses(SchemaError):
        classifier(schema=None, bounds={"X": (-3, 3), "y": 2}).fit(X, y)
    with pytest.raises(ValueError, match="feature"):
        classifier().fit(X, y).predict(X[["b", "a"]])
    silent = classifier(EfficientPTRBayes("kind ~ a + b", least=5_000), privacy=cf.ApproxDP(1.0, 1e-6)).fit(X, y)
    assert silent.status_ == "declined"
    with pytest.raises(NoResult):
        silent.predict(X)


def test_errors_show_the_call_of_a_classifier_and_a_range_of_labels_is_refused() -> None:
    X, y = records(200)
    facts = {"schema": None}
    for bounds in ({"X": (-3, 3)}, None, 3, {"X": "wide", "y": ["no", "yes"]}, {"X": (1, 2, 3), "y": ["no", "yes"]}):
        with refuses((PlanError, SchemaError)):
            classifier(**facts, bounds=bounds).fit(X, y)
    with refuses(PlanError):
        classifier(**facts).fit(X, y)
    for pair in ((-10, 10), (0.0, 1.0), (np.int64(0), np.float64(1))):
        with refuses(SchemaError):
            classifier(**facts, bounds={"X": (-3, 3), "y": pair}).fit(X, y)
    for labels in (("no", "yes"), np.array(["no", "yes"])):
        assert classifier(**facts, bounds={"X": (-3, 3), "y": labels}).fit(X, y).classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(("method", "privacy"), [("class_means", cf.GDP(1.0)), ("naive_bayes", cf.PureDP(1.0))])
def test_labels_that_are_not_listed_show_in_the_result(method: str, privacy: Any) -> None:
    X, y = records(1_000)
    for seed in range(10):
        facts: dict[str, Any] = {
            "schema": None,
            "bounds": {"X": (-3, 3), "y": [-10, 10]},
            "noise": SimulatedNoise(seed),
        }
        model = classifier(method, privacy=privacy, **facts).fit(X, y)
        assert model.status_ == "imprecise" and "few_complete_records" in model.result_.flags
        assert "undeclared labels" in " ".join(model.result_.summary().split())
        assert model.result_.params[:2].between(0, 1).all()
    assert "few_complete_records" not in classifier(method, privacy=privacy).fit(X, y).result_.flags


def test_logistic_regression_plugs_in_by_name() -> None:
    registry.register(cf.regression.Logistic)
    X, y = records()
    model = classifier("logistic", privacy=cf.ApproxDP(2.0, 1e-6)).fit(X, y)
    assert model.score(X, y) > 0.9 and model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(X.head(9)).sum(axis=1), 1.0)
