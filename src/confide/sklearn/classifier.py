"""Private classification as a scikit-learn estimator, over any method of confide that predicts classes.

PATE as a scikit-learn classifier: teachers on blocks of private records label public ones, from which a student learns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from confide import engine, registry
from confide._helpers import progress_bar
from confide.core import Method, Noise, Plan
from confide.core.units.contributions import shown
from confide.errors import NoResult, PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.classification.class_means import ClassMeans
from confide.methods.voting.teacher_labels import TeacherLabels
from confide.noise import SimulatedNoise
from confide.schema import Categorical, Integer, Numeric, Schema
from confide.sklearn.base import (
    PrivateEstimator,
    Roles,
    StatusWarning,
    columns_of,
    formula_of,
    refuse_text,
    response_of,
)
from confide.sources import read


class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Classification with a differential privacy guarantee, for scikit-learn's pipelines and tools.

    Every `fit` is a release: it spends `privacy`, and a ledger is charged for it, once for each fold and candidate of a search. `score`
    and every validation score come from the records that they are given, without noise: use them with public records only. No step of a
    pipeline before this one may be fitted on the private records (see `PrivateRegressor`).

    Parameters
    ----------
    method : a method such as `confide.classification.ClassMeans("kind ~ a + b")`, whose formula names columns; or the name
        of a registered one, which is used on all columns of X ("class_means", "logistic"); None means ClassMeans on all columns.
    privacy : what a fit may cost, for instance `cf.GDP(1.0)`; no default.
    schema : `confide.Schema` of the columns of X and of the response, as for `PrivateRegressor`; the response is a `Categorical`, or an
        `Integer` of few values. A label that is not listed there follows its `on_missing`.
    bounds : in place of a schema, `{"X": (low, high), "y": ["no", "yes"]}`: bounds of features as for `PrivateRegressor`, and the
        public list of classes, numbers too (`"y": [0, 1]`; a tuple of two numbers is refused, because it reads as a range). Neither has a
        default or is read from the data. A record whose label is not listed is left out.
    ledger : the `confide.Ledger` that every fit is charged to; it is required, and whoever wants none writes ledger=None.
    noise : leave it out; only simulations pass `cf.noise.SimulatedNoise(seed)`, with ledger=None.

    Attributes
    ----------
    classes_ : array (n_classes,): the public classes in their declared order, as numbers where y was numbers.
    result_ : the table of the method, with `predict_proba` (`confide.classification.ClassModel`).
    release_ : what may be published (`confide.Release`).
    status_ : "valid", or why there are no intervals; see `result_.reason`.
    n_features_in_, feature_names_in_ : how many columns X had, and their names if it had any.

    Guarantee: the method's. The fitted estimator depends on records through `release_` and on the types of their columns alone.

    >>> import confide as cf
    >>> schema = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "kind": cf.Categorical(["no", "yes"])})
    >>> practice = schema.sample(2_000, seed=1)
    >>> X, y = practice[["a", "b"]], practice["kind"]
    >>> model = PrivateClassifier(privacy=cf.GDP(1.0), schema=schema, ledger=None).fit(X, y)
    >>> model.status_, model.classes_.tolist(), model.predict_proba(X.head(3)).shape
    ('valid', ['no', 'yes'], (3, 2))
    """

    _classes: ClassVar[bool] = True

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Release a model of the classes y (n,) on X (n, features), once; each call spends `privacy`. Returns the estimator.

        Containers and errors as `PrivateRegressor.fit`. When fit raises, an earlier fit of the estimator is kept as it was.
        """
        release, result, roles, labels = self._released(X, y)
        self.classes_ = _typed(_levels(roles), y)
        self._keep_release(release, result, roles, labels)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of `classes_` at the rows of X (n, features), shape (n, n_classes); NaN where a feature is missing.

        X is public: predictions for private records are as private as the records.

        Raises `sklearn.exceptions.NotFittedError` before fit, `NoResult` when the release holds no reply, and `ValueError` when the
        columns are not those of fit.
        """
        check_is_fitted(self, "result_")
        if self.status_ == "declined":
            raise NoResult(f"the release gave no model to predict from: {self.result_.reason}")
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = columns_of(X, "X")
        found = self.result_.predict_proba(dict(zip(self._features, columns, strict=True)))
        return np.asarray(found, dtype=np.float64).reshape(-1, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class at each row of X, the first of several; None where a feature is missing. Errors as `predict_proba`."""
        share = self.predict_proba(X)
        known = np.asarray(np.isfinite(share).all(axis=1))
        labels = self.classes_[np.where(known[:, None], share, 0.0).argmax(axis=1)]
        if known.all():
            return np.asarray(labels)
        found = labels.astype(object)
        found[~known] = None
        return np.asarray(found)

    def _own_method(self) -> Any:
        method = self.method
        kind = registry.get(method) if isinstance(method, str) else method
        own = kind if isinstance(kind, type) else type(kind)
        classes = issubclass(own, Method) and (own.family == "classification" or own.outcome == "two")
        if method is not None and (isinstance(method, type) or not classes):
            raise PlanError(
                f"method must be a method that predicts classes, with its settings, or its name, got {method!r}; write "
                'method=cf.classification.ClassMeans("kind ~ a + b"), or leave it out for all columns'
            )
        return None if isinstance(method, str) else method

    def _chosen(self, roles: Roles) -> Method:
        """The method as given, or one on all columns."""
        method, formula = self.method, formula_of(roles)
        if method is None:
            return ClassMeans(formula)
        chosen: Method = registry.make(method, formula=formula) if isinstance(method, str) else method
        return chosen


def _levels(roles: Roles) -> tuple[str, ...]:
    """The classes of the response, in their declared order."""
    column = roles.schema[roles.response]
    assert isinstance(roles.schema, Schema)
    if isinstance(column, Categorical):
        return column.levels
    assert isinstance(column, Integer)
    return tuple(str(int(column.low) + k) for k in range(column.steps))


def _typed(levels: tuple[str, ...], y: Any) -> NDArray[Any]:
    """The classes as y has them: whole numbers, numbers or booleans where its type says so and every class is one, else text."""
    kind = getattr(getattr(y, "dtype", None), "kind", "") or (
        np.asarray(y).dtype.kind if isinstance(y, (list, tuple)) else ""
    )
    try:
        if kind == "b":
            return np.array([{"true": True, "1": True, "false": False, "0": False}[level.lower()] for level in levels])
        if kind in "iu" and kind:
            return np.array([int(level) for level in levels])
        if kind == "f":
            return np.array([float(level) for level in levels])
    except (KeyError, ValueError):
        pass
    return np.array(levels, dtype=object)


def _has_probabilities(model: Pate) -> bool:
    student = model.teacher if model.student is None else model.student
    if hasattr(student, "predict_proba"):
        return True
    raise AttributeError(
        f"predict_proba is the student's, and {type(student).__name__} has none: votes are released as labels, without probabilities; "
        "take student=LogisticRegression() or another one that has it"
    )


class Pate(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Private aggregation of teacher ensembles, with a certified budget.

    Parameters
    ----------
    teacher : any classifier with fit and predict, of numbers of classes; cloned for each of `teachers` blocks of the records.
    teachers : how many; a few hundred, with at least a few dozen records each, are usual.
    privacy : `cf.ApproxDP(1.7, 1e-5)`, or `cf.GDP(1.0)` with certificate="gaussian"; no default.
    classes : the public list of labels, which is never learned from the records.
    bounds : public bounds of the features: one pair (low, high) for all, or an array (n_features, 2).
    ledger : the `confide.Ledger` that every fit is charged to; whoever wants none writes ledger=None.
    student : any classifier; a copy of the teacher when left out.
    certificate, sigma, agreement, confident, seconds, jobs, memory : as in `TeacherLabels`.
    relation : taken from `privacy`, else add-remove.
    progress : whether a bar is shown; noise : leave it out; only simulations pass `cf.noise.SimulatedNoise(seed)`.

    Attributes
    ----------
    labels_ : for each public record the label that it was given, None for none; student_ : fitted; result_, release_ : what may be
    published; status_ : "valid", "declined" where the certificate did not hold, or "no_information" where most teachers failed; classes_,
    n_features_in_, feature_names_in_. Where no record was given a label there is no student, and `predict` raises `NoResult`.

    Guarantee: that of `TeacherLabels`; the student sees public records and released labels alone. Charged in full whether or not labels
    come.

    >>> import confide as cf
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = Pate(LogisticRegression(), teachers=50, privacy=cf.ApproxDP(3.0, 1e-5), classes=[0, 1], bounds=(-4, 4), ledger=None)
    >>> print(model.plan(public=np.zeros((100, 2))).constants["certificate"])
    gaussian
    """

    def __init__(
        self,
        teacher: Any,
        *,
        teachers: int,
        privacy: Guarantee,
        classes: Sequence[Any],
        bounds: Any,
        ledger: Ledger | None,
        student: Any = None,
        certificate: str = "auto",
        sigma: float | None = None,
        agreement: Any = "even",
        confident: tuple[float, float] | None = None,
        seconds: float = 60.0,
        jobs: int = 1,
        memory: int = 1_024,
        progress: bool = True,
        noise: Noise | None = None,
    ) -> None:
        self.teacher = teacher
        self.teachers = teachers
        self.privacy = privacy
        self.classes = classes
        self.bounds = bounds
        self.ledger = ledger
        self.student = student
        self.certificate = certificate
        self.sigma = sigma
        self.agreement = agreement
        self.confident = confident
        self.seconds = seconds
        self.jobs = jobs
        self.memory = memory
        self.progress = progress
        self.noise = noise

    def plan(self, public: Any) -> Plan:
        """What a fit with these public records would cost and do; nothing is read or charged. public: (queries, features)."""
        _, columns = columns_of(public, "public")
        return engine.plan(self._method(_rows(columns)), self._schema(len(columns)), self.privacy)

    def fit(self, X: Any, y: Any, public: Any = None) -> Pate:
        """Fit teachers on X (n, features), y (n,), label the rows of `public` (queries, features) and fit the student; spends `privacy`
        once.

        Raises `PlanError` for what public facts forbid: public records left out or with other columns, more teachers than records where
        their number is public. Values never raise: what is missing becomes the middle of the bounds, a label that is not among `classes`
        counts as the first one.
        """
        if public is None:
            raise PlanError(
                "fit needs public records without labels, which teachers vote on; write fit(X, y, public=P)"
            )
        names, columns = columns_of(X, "X")
        known, asked = columns_of(public, "public")
        _, response = response_of(y, "Pate")
        same = len(asked) == len(columns) and (names is None or known is None or names == known)
        if not same or any(len(column) != len(response) for column in columns):
            raise PlanError(
                "X and public must be tables with the same columns in the same order, and y must have one label for each row of X; write "
                "fit(X, y, public=P), P[:, j] and X[:, j] of one feature"
            )
        rows, schema = _rows(asked), self._schema(len(columns))
        features = tuple(f"x{j}" for j in range(len(columns)))
        method = self._method(rows)
        refuse_text(Roles(schema, features, "y"), method, columns, response)
        source = read({**dict(zip(features, columns, strict=True)), "y": response}, schema)
        self._untaught()
        noise = deepcopy(self.noise) if isinstance(self.noise, SimulatedNoise) else self.noise
        n = len(response) if self.privacy.relation == "substitute" else None
        with progress_bar("teachers") if self.progress else nullcontext(None) as told:
            tell = None if told is None else lambda done, of: told(done, of, "fitted and asked")
            live = replace(method, progress=tell)
            release = engine.release(live, source, self.privacy, ledger=self.ledger, noise=noise, n=n)
        self._learn(rows, names or known, release, shown(method.infer(release), release), schema)
        return self

    def _learn(
        self, rows: NDArray[Any], names: tuple[str, ...] | None, release: Any, result: Any, schema: Schema
    ) -> None:
        self.release_, self.result_, self.status_ = release, result, result.status
        self.n_features_in_ = rows.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        self.classes_ = np.array(list(self.classes))
        places = {level: j for j, level in enumerate(_label_levels(schema))}
        known = np.array([one is not None for one in result.labels])
        own = np.array([places[str(one)] for one in result.labels[known]], dtype=np.int64)
        self.labels_ = np.array(
            [None if one is None else self.classes_[places[str(one)]] for one in result.labels], dtype=object
        )
        self.student_ = None
        if not len(own):
            warnings.warn(f"no labels were released: {self._why()}", StatusWarning, stacklevel=3)
            return
        if len(np.unique(own)) < 2:
            self.student_ = _Constant(int(own[0]))
            return
        self.student_ = clone(self._untaught()).fit(rows[known], own)

    def _untaught(self) -> Any:
        """The student before it learns; `PlanError` for what is no classifier, before anything is charged."""
        student = self.teacher if self.student is None else self.student
        if isinstance(student, type) or not all(
            callable(getattr(student, verb, None)) for verb in ("fit", "predict", "get_params")
        ):
            raise PlanError(
                f"student must be a scikit-learn classifier, such as sklearn.linear_model.LogisticRegression(), got {student!r}"
            )
        return student

    def predict(self, X: Any) -> NDArray[Any]:
        """The student's labels of public records X (rows, features); what is missing in them is the student's matter.

        `NotFittedError` before fit, `NoResult` where no label was released, `ValueError` for columns that are not those of fit.
        """
        check_is_fitted(self, "status_")
        found = np.asarray(self._taught().predict(self._public(X)), dtype=np.int64)
        return np.asarray(self.classes_[found])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of classes for public records X by the student, (rows, classes), in the order of `classes_`; there where the
        student has them, and no shares of votes. 0 for a class that no public record was labelled with. Raises as `predict`.
        """
        check_is_fitted(self, "status_")
        student = self._taught()
        own = np.asarray(student.predict_proba(self._public(X)), dtype=np.float64)
        found = np.zeros((len(own), len(self.classes_)))
        found[:, np.asarray(student.classes_, dtype=np.int64)] = own
        return found

    def _taught(self) -> Any:
        if self.student_ is None:
            raise NoResult(f"no labels were released, so there is no student: {self._why()}")
        return self.student_

    def _public(self, X: Any) -> NDArray[Any]:
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False))

    def _why(self) -> str:
        return str(self.result_.reason) or "no vote reached the threshold of `confident`; take a lower one"

    def _method(self, rows: NDArray[Any]) -> TeacherLabels:
        return TeacherLabels(
            "y",
            self.teacher,
            rows,
            self.teachers,
            features=tuple(f"x{j}" for j in range(rows.shape[1])),
            certificate=self.certificate,
            sigma=self.sigma,
            agreement=self.agreement,
            confident=self.confident,
            seconds=self.seconds,
            jobs=self.jobs,
            memory=self.memory,
        )

    def _schema(self, width: int) -> Schema:
        # 1.0 and 1 are one label
        whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in self.classes]
        label = Categorical(whole)
        pairs = np.asarray(self.bounds, dtype=np.float64)
        if pairs.shape not in ((2,), (width, 2)):
            raise PlanError(
                f"bounds must be one pair (low, high) or {width} of them, one for each feature, got the shape {pairs.shape}"
            )
        own = np.broadcast_to(pairs, (width, 2))
        columns: Mapping[str, Any] = {
            f"x{j}": Numeric(float(low), float(high), on_missing="midpoint") for j, (low, high) in enumerate(own)
        }
        return Schema({**columns, "y": replace(label, on_missing=label.levels[0])})


def _rows(columns: Sequence[Any]) -> NDArray[Any]:
    """Public records as one table, numbers wherever they are numbers."""
    found = np.column_stack([np.asarray(column) for column in columns])
    return found if found.dtype.kind not in "biuf" else np.asarray(found, dtype=np.float64)


def _label_levels(schema: Schema) -> tuple[str, ...]:
    label = schema["y"]
    assert isinstance(label, Categorical)
    return label.levels


class _Constant:
    """The student of labels of one class."""

    def __init__(self, label: int) -> None:
        self.label, self.classes_ = label, [label]

    def predict(self, x: Any) -> NDArray[np.int64]:
        return np.full(len(x), self.label, dtype=np.int64)

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        return np.ones((len(x), 1))
