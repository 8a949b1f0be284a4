"""Private classification as a scikit-learn estimator, over any method of confide that predicts classes.

PATE as a scikit-learn classifier: teachers on blocks of private records label public ones, from which a student learns.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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
from confide.schema import Categorical, Integer, Schema
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
    """Classification with differential privacy, for scikit-learn.

    Every `fit` is a release that costs `privacy`, so a search is charged once
    for each fold and candidate. `score` and every validation score are computed
    without noise from the records that they get, so use public rows only. No
    step of a pipeline before this one may be fitted on the private records (see
    `PrivateRegressor`).

    Parameters
    ----------
    method : Method or str, optional
        Method with a formula, such as
        ``confide.classification.ClassMeans("kind ~ a + b")``. The name of a
        registered one ("class_means", "logistic") is used on all columns of X.
        By default `ClassMeans` on all columns.
    privacy : Guarantee
        Cost of each fit, such as ``GDP(1.0)``. Required.
    schema : Schema, optional
        Schema of the columns of X and of the response, as for
        `PrivateRegressor`. The response is a `Categorical`, or an `Integer` of
        few values. A label that is not listed follows its `on_missing`. Give
        either `schema` or `bounds`.
    bounds : mapping, optional
        Public facts instead of a schema:
        ``{"X": (low, high), "y": ["no", "yes"]}``. Features as for
        `PrivateRegressor`; for y the list of classes, which may be numbers. A
        tuple of two numbers is refused, because it reads as a range. A record
        whose label is not listed is excluded.
    ledger : Ledger or None
        Ledger that every fit is charged to. None releases without accounting.
        Required.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, with
        ledger=None.

    Attributes
    ----------
    classes_ : array
        The public classes in their declared order, as numbers where y was
        numbers.
    result_ : ClassModel
        The table of the method, with `predict_proba`.
    release_ : Release
        What may be published.
    status_ : str
        "valid", or why there are no intervals; see `result_.reason`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array
        Their names, if there are any.

    Notes
    -----
    Guarantee: the method's. The fitted estimator depends on records through
    `release_` and on the types of their columns alone.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "kind": cf.Categorical(["no", "yes"])})
    >>> test_data = schema.sample(2_000, seed=1)
    >>> X, y = test_data[["a", "b"]], test_data["kind"]
    >>> model = PrivateClassifier(privacy=cf.GDP(1.0), schema=schema, ledger=None).fit(X, y)
    >>> model.status_, model.classes_.tolist(), model.predict_proba(X.head(3)).shape
    ('valid', ['no', 'yes'], (3, 2))
    """

    _classes: ClassVar[bool] = True

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Release a model of the classes; each call costs `privacy`.

        Containers are those that `PrivateRegressor.fit` takes. When fit raises,
        an earlier fit of the estimator is kept.

        Parameters
        ----------
        X : array or frame
            Records, (n, features).
        y : array
            Their classes, (n,).

        Returns
        -------
        PrivateClassifier
            The estimator.

        Raises
        ------
        PlanError, SchemaError, PrivacyError, SourceError
            Public facts forbid the fit. Nothing was charged.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.
        ReleaseError
            A failure after the charge, which stays.
        """
        release, result, roles, labels = self._released(X, y)
        self.classes_ = _typed(_levels(roles), y)
        self._keep_release(release, result, roles, labels)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the classes for public rows.

        Predictions for private records are as private as the records.

        Parameters
        ----------
        X : array or frame
            Records, (n, features).

        Returns
        -------
        array
            Probabilities of `classes_`, (n, n_classes). NaN where a feature is
            missing.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            The release was declined.
        ValueError
            The columns are not those of `fit`.
        """
        check_is_fitted(self, "result_")
        if self.status_ == "declined":
            raise NoResult(f"the release gave no model to predict from: {self.result_.reason}")
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = columns_of(X, "X")
        found = self.result_.predict_proba(dict(zip(self._features, columns, strict=True)))
        return np.asarray(found, dtype=np.float64).reshape(-1, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class for public rows.

        Parameters
        ----------
        X : array or frame
            Records, (n, features).

        Returns
        -------
        array
            The first of the most probable classes of each row. None where a
            feature is missing.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            The release was declined.
        ValueError
            The columns are not those of `fit`.
        """
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
                f"method must be a method that predicts classes, with its settings, or its name, got {method!r}",
                'write method=cf.classification.ClassMeans("kind ~ a + b"), or leave it out for all columns',
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
    """Private aggregation of teacher ensembles (PATE), for scikit-learn.

    Teachers learn from blocks of the private records and label public rows.
    A student learns from these.

    Parameters
    ----------
    teacher : classifier
        Any classifier with `fit` and `predict`, of numbers of classes. Each
        block of the records gets a clone.
    teachers : int
        Number of teachers. A few hundred, with at least a few dozen records
        each, are usual.
    privacy : Guarantee
        Cost of each fit, such as ``ApproxDP(1.7, 1e-5)``, or ``GDP(1.0)`` with
        certificate="gaussian". Required.
    classes : sequence
        Public list of labels, which is never learned from the records.
    bounds : (float, float) or array
        Public bounds of the features: one pair (low, high) for all, or an array
        (n_features, 2).
    ledger : Ledger or None
        Ledger that every fit is charged to. None releases without accounting.
        Required.
    student : classifier, optional
        Any classifier. By default a clone of the teacher.
    certificate : {"auto", "distance", "gaussian", "laplace"}, default "auto"
        How the budget is accounted. "auto" takes the one that gets most labels
        right in public simulations.
    sigma : float, optional
        SD of the noise on counts. By default it is chosen from public facts.
    agreement : "even" or (float, float), default "even"
        Expected distribution of the winner's share, for choosing the noise:
        even, or the parameters of a Beta distribution.
    confident : (float, float), optional
        Threshold and SD of the noise of a test, with certificate="gaussian".
    seconds : float, default 60.0
        Time for all teachers together, always used in full.
    jobs : int, default 1
        Number of teachers that run at the same time.
    memory : int, default 1024
        Memory for each teacher, in MB.
    progress : bool, default True
        Whether to show a progress bar.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Attributes
    ----------
    labels_ : array
        For each public row its label, None for none.
    student_ : classifier
        The fitted student. Without any label there is none, and `predict`
        raises `NoResult`.
    result_ : VotedLabels
        The labels as a result.
    release_ : Release
        What may be published.
    status_ : str
        "valid", "declined" where the certificate failed, or "no_information"
        where most teachers failed.
    classes_ : array
        The public classes.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array
        Their names, if there are any.

    Notes
    -----
    Guarantee: that of `TeacherLabels`. The student sees public rows and
    released labels alone. Each fit is charged in full, with or without labels.

    Examples
    --------
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
        """Plan a fit with these public rows; nothing is read or charged.

        Parameters
        ----------
        public : array
            Public rows, (queries, features).

        Returns
        -------
        Plan
            Cost and settings of the fit.
        """
        _, columns = columns_of(public, "public")
        return engine.plan(self._method(_rows(columns)), self._schema(len(columns)), self.privacy)

    def fit(self, X: Any, y: Any, public: Any = None) -> Pate:
        """Fit teachers, label the public rows and fit the student.

        Each call is a release that costs `privacy`. Values never raise: a
        missing value becomes the middle of the bounds, and a label that is not
        among `classes` counts as the first one.

        Parameters
        ----------
        X : array or frame
            Private records, (n, features).
        y : array
            Their labels, (n,).
        public : array or frame
            Public rows to label, (queries, features). Required.

        Returns
        -------
        Pate
            The estimator.

        Raises
        ------
        PlanError
            Public facts forbid the fit: public rows are missing or have
            other columns, or there are more teachers than records.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.
        """
        if public is None:
            raise PlanError("fit needs public rows without labels, which teachers vote on", "write fit(X, y, public=P)")
        names, columns = columns_of(X, "X")
        known, asked = columns_of(public, "public")
        _, response = response_of(y, "Pate")
        same = len(asked) == len(columns) and (names is None or known is None or names == known)
        if not same or any(len(column) != len(response) for column in columns):
            raise PlanError(
                "X and public must be tables with the same columns in the same order, and y one label for each row of X",
                "write fit(X, y, public=P), P[:, j] and X[:, j] of one feature",
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
        """The student before it learns; `PlanError` for an object that is not a classifier, before anything is charged."""
        student = self.teacher if self.student is None else self.student
        if isinstance(student, type) or not all(
            callable(getattr(student, verb, None)) for verb in ("fit", "predict", "get_params")
        ):
            raise PlanError(
                f"student must be a scikit-learn classifier, such as sklearn.linear_model.LogisticRegression(), got {student!r}"
            )
        return student

    def predict(self, X: Any) -> NDArray[Any]:
        """The student's labels of public rows.

        Parameters
        ----------
        X : array or frame
            Public rows, (rows, features). Missing values are passed to the
            student.

        Returns
        -------
        array
            A label for each row.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            No label was released.
        ValueError
            The columns are not those of `fit`.
        """
        check_is_fitted(self, "status_")
        found = np.asarray(self._taught().predict(self._public(X)), dtype=np.int64)
        return np.asarray(self.classes_[found])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The student's probabilities of the classes, where it has them.

        They are not shares of votes. A class that no public row was labeled
        with has probability 0.

        Parameters
        ----------
        X : array or frame
            Public rows, (rows, features).

        Returns
        -------
        array
            Probabilities, (rows, classes), in the order of `classes_`.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            No label was released.
        ValueError
            The columns are not those of `fit`.
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
        columns = self._within([f"x{j}" for j in range(width)], on_missing="midpoint")
        return Schema({**columns, "y": replace(label, on_missing=label.levels[0])}, dataset=self._dataset)


def _rows(columns: Sequence[Any]) -> NDArray[Any]:
    """Public rows as one table, numbers wherever they are numbers."""
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
