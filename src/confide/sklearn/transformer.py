"""Private principal components as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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
from confide.schema import Numeric, Schema
from confide.sklearn.base import PrivateEstimator, Roles, StatusWarning, columns_of, refuse_text
from confide.sources import read


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components with a differential privacy guarantee (`cf.reduction.PCA`).

    Parameters
    ----------
    n_components : how many, all when left out; scale : "correlation" or "covariance"; privacy : what a fit may cost, no default;
    schema : `confide.Schema` of the columns of X, or bounds : public bounds, one pair (low, high) or an array (n_features, 2); ledger :
    charged by each fit, ledger=None for none; noise : leave it out, only simulations pass `cf.noise.SimulatedNoise(seed)`.

    Attributes
    ----------
    components_ (k, n_features), explained_variance_, explained_variance_ratio_ (k,), mean_, scale_ (n_features,), n_components_, result_,
    release_, status_, n_features_in_, feature_names_in_.

    `transform` is for public records: scores of private ones are as private as they are. In a pipeline before a private estimator the fit
    is charged by itself, and the scores need bounds of their own.

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
        """Release components of X (n, features), once; each call spends `privacy`. y is not looked at.

        Raises `PlanError` for what public facts forbid; warns with `StatusWarning` where the status is not "valid".
        """
        labels, columns = columns_of(X, "X")
        if len(columns) < 2:
            raise PlanError("components are of at least two columns, got a table of 1 feature(s); give X more of them")
        names = labels or tuple(f"x{j}" for j in range(len(columns)))
        schema = self._schema(names)
        source = read(dict(zip(names, columns, strict=True)), schema)
        method = PCA(names, self.n_components, self.scale)
        for name, column in zip(names, columns, strict=True):
            refuse_text(Roles(schema, (), name), method, (), column)
        noise = deepcopy(self.noise) if isinstance(self.noise, SimulatedNoise) else self.noise
        release = engine.release(method, source, self.privacy, ledger=self.ledger, noise=noise)
        result: Any = shown(method.infer(release), release)
        self.release_, self.result_, self.status_ = release, result, result.status
        self.n_features_in_ = len(names)
        if labels is not None:
            self.feature_names_in_ = np.array(labels, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        self.components_ = result.vectors.T
        self.n_components_ = self._n_features_out = len(self.components_)
        self.explained_variance_ = np.asarray(result.estimates)
        self.explained_variance_ratio_ = result.explained_variance_ratio.to_numpy()
        self.mean_, self.scale_ = result.centre, result.spread
        if result.status != "valid":
            warnings.warn(f"the status of this fit is {result.status!r}: {result.reason}", StatusWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Scores of public records, (rows, k).

        `NotFittedError` before fit, `NoResult` where the release gave no components, `ValueError` for another number of columns, for
        other names or another order than those of fit.
        """
        check_is_fitted(self, "components_")
        self._answered()
        _, columns = columns_of(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)
        rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        return np.asarray((rows - self.mean_) / self.scale_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Records (rows, n_features) with these scores (rows, k), in the units of the columns; what the other components hold is left out.

        Raises as `transform`.
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
                    f"the schema has no column {', '.join(missing)}; name the columns of X as the schema does"
                )
            return self.schema
        pairs = np.asarray(self.bounds, dtype=np.float64)
        if pairs.shape not in ((2,), (len(names), 2)):
            raise PlanError(f"bounds must be one pair (low, high) or {len(names)} of them, got the shape {pairs.shape}")
        own: Mapping[str, Any] = {
            name: Numeric(float(low), float(high))
            for name, (low, high) in zip(names, np.broadcast_to(pairs, (len(names), 2)), strict=True)
        }
        return Schema(own)
