"""Private principal components as a scikit-learn transformer."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from confide import engine
from confide.core import Noise
from confide.core.units.contributions import shown
from confide.errors import NoResult, PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.reduction.components import PCA
from confide.noise import SimulatedNoise
from confide.schema import Schema
from confide.sklearn.base import PrivateEstimator, Roles, columns_of, refuse_text
from confide.sources import read


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components with differential privacy, for scikit-learn.

    `transform` is for public rows, because scores of private ones are as
    private as they are. In a pipeline before a private estimator the fit is
    charged separately, and the scores need separate bounds.

    Parameters
    ----------
    n_components : int, optional
        Number of components. By default all.
    scale : {"correlation", "covariance"}, default "correlation"
        Whether columns are standardized, or kept in the units of the data.
    privacy : Guarantee
        Cost of each fit, such as ``GDP(1.0)``. Required.
    schema : Schema, optional
        Schema of the columns of X. Give either `schema` or `bounds`.
    bounds : (float, float) or array, optional
        Public bounds: one pair (low, high) for all columns, or an array
        (n_features, 2).
    ledger : Ledger or None
        Ledger that every fit is charged to. None releases without accounting.
        Required.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, with
        ledger=None.

    Attributes
    ----------
    components_ : array
        Components, (k, n_features).
    explained_variance_, explained_variance_ratio_ : array
        Explained variances (k,), and their shares of the total.
    mean_, scale_ : array
        What scores subtract and divide by, (n_features,).
    n_components_ : int
        Number of components k.
    result_ : Basis
        The components as a result.
    release_ : Release
        What may be published.
    status_ : str
        Status of the result.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array
        Their names, if there are any.

    Notes
    -----
    Guarantee: that of `confide.reduction.PCA`.

    Examples
    --------
    >>> import confide as cf
    >>> X = np.random.default_rng(1).normal(size=(5_000, 3)).clip(-4, 4)
    >>> model = PrivatePCA(2, privacy=cf.GDP(1.0), bounds=(-4, 4), ledger=None).fit(X)
    >>> model.transform(X[:4]).shape, model.components_.shape
    ((4, 2), (2, 3))
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        privacy: Guarantee,
        scale: str = "correlation",
        schema: Schema | None = None,
        bounds: Any = None,
        ledger: Ledger | None,
        noise: Noise | None = None,
    ) -> None:
        self.n_components = n_components
        self.privacy = privacy
        self.scale = scale
        self.schema = schema
        self.bounds = bounds
        self.ledger = ledger
        self.noise = noise

    def fit(self, X: Any, y: Any = None) -> PrivatePCA:
        """Release the components of X; each call costs `privacy`.

        Warns with `StatusWarning` where the status is not "valid".

        Parameters
        ----------
        X : array or frame
            Records, (n, features).
        y : None
            Ignored.

        Returns
        -------
        PrivatePCA
            The estimator.

        Raises
        ------
        PlanError
            Public facts forbid the fit. Nothing was charged.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.
        """
        labels, columns = columns_of(X, "X")
        if len(columns) < 2:
            raise PlanError(
                "components are of at least two columns, got a table of 1 feature(s)", "give X more of them"
            )
        names = labels or tuple(f"x{j}" for j in range(len(columns)))
        schema = self._schema(names)
        source = read(dict(zip(names, columns, strict=True)), schema)
        method = PCA(names, self.n_components, self.scale)
        for name, column in zip(names, columns, strict=True):
            refuse_text(Roles(schema, (), name), method, (), column)
        noise = deepcopy(self.noise) if isinstance(self.noise, SimulatedNoise) else self.noise
        release = engine.release(method, source, self.privacy, ledger=self.ledger, noise=noise)
        result: Any = shown(method.infer(release), release)
        self.components_ = result.vectors.T
        self.n_components_ = self._n_features_out = len(self.components_)
        self.explained_variance_ = np.asarray(result.estimates)
        self.explained_variance_ratio_ = result.explained_variance_ratio.to_numpy()
        self.mean_, self.scale_ = result.centre, result.spread
        self._keep_release(release, result, Roles(schema, names, ""), labels)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The scores of public rows.

        Parameters
        ----------
        X : array or frame
            Public rows, (rows, n_features).

        Returns
        -------
        array
            Scores, (rows, k).

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            The release gave no components.
        ValueError
            The number, names or order of columns are not those of `fit`.
        """
        check_is_fitted(self, "components_")
        self._answered()
        _, columns = columns_of(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)
        rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        return np.asarray((rows - self.mean_) / self.scale_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """The records with given scores, in the units of the columns.

        What the other components hold is lost.

        Parameters
        ----------
        X : array
            Scores, (rows, k).

        Returns
        -------
        array
            Records, (rows, n_features).

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            The release gave no components.
        ValueError
            The number of scores is not that of the components.
        """
        check_is_fitted(self, "components_")
        self._answered()
        scores = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if scores.shape[1] != self.n_components_:
            raise ValueError(f"X has {scores.shape[1]} scores, but PrivatePCA has {self.n_components_} components")
        return np.asarray(scores @ self.components_ * self.scale_ + self.mean_)

    def _answered(self) -> None:
        if self.status_ == "imprecise":
            raise NoResult(f"the release gave no components: {self.result_.reason}")

    def _schema(self, names: tuple[str, ...]) -> Schema:
        if (self.schema is None) == (self.bounds is None):
            raise PlanError(
                "PrivatePCA needs a schema or bounds, which are public and never read from the data: write bounds=(-4, 4), or "
                "schema=cf.Schema({...})"
            )
        if self.schema is not None:
            missing = [name for name in names if name not in self.schema.names]
            if missing:
                raise PlanError(
                    f"the schema has no column {', '.join(missing)}", "name the columns of X as the schema does"
                )
            return self.schema
        return Schema(self._within(names), dataset=self._dataset)
