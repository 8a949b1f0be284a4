"""What the estimators share: parameters, the release behind `fit`, scikit-learn's tags and clones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from confide import gate
from confide.errors import PlanError, SchemaError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.noise import SimulatedNoise
from confide.protocol import Method, Noise
from confide.protocol.units.contributions import shown
from confide.schema import Schema
from confide.sklearn.columns import (
    CLASS_WORDS,
    NUMBER_WORDS,
    Roles,
    columns_of,
    refuse_text,
    response_of,
    roles_from_bounds,
    roles_from_schema,
)
from confide.sources import read

__all__ = ["PrivateEstimator", "StatusWarning"]


class StatusWarning(UserWarning):
    """A fit whose status is not "ok": its numbers are rough, or there are none. The words are those of the published result."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and the one release of a fit. `_classes`: whether the response is a class."""

    _classes: ClassVar[bool] = False

    def __init__(
        self,
        method: Any = None,
        *,
        privacy: Guarantee,
        schema: Schema | None = None,
        bounds: Mapping[str, Any] | None = None,
        ledger: Ledger | None,
        noise: Noise | None = None,
    ) -> None:
        self.method = method
        self.privacy = privacy
        self.schema = schema
        self.bounds = bounds
        self.ledger = ledger
        self.noise = noise

    def _chosen(self, roles: Roles) -> Method:
        """The method of a fit."""
        raise NotImplementedError

    def _released(self, X: Any, y: Any) -> tuple[Any, Any, Roles, tuple[str, ...] | None]:
        """(release, result, roles, names of the columns of X) of a fit; sets nothing."""
        labels, columns = columns_of(X, "X")
        label, response = response_of(y, type(self).__name__)
        if any(len(column) != len(response) for column in columns):
            raise PlanError("X and y do not have the same number of records; give one response for each row of X")
        roles = self._roles(labels, len(columns), label)
        method = self._chosen(roles)
        refuse_text(roles, method, columns, response)
        source = read({**dict(zip(roles.features, columns, strict=True)), roles.response: response}, roles.schema)
        # a simulated stream is copied: fit must not change a parameter, and one seed is one fit
        noise = deepcopy(self.noise) if isinstance(self.noise, SimulatedNoise) else self.noise
        release = gate.release(method, source, self.privacy, ledger=self.ledger, noise=noise)
        return release, shown(method.infer(release), release), roles, labels

    def _keep_release(self, release: Any, result: Any, roles: Roles, labels: tuple[str, ...] | None) -> None:
        """What every fitted estimator has."""
        self._features = roles.features
        self.result_ = result
        self.status_ = result.status
        self.release_ = release
        self.n_features_in_ = len(roles.features)
        if labels is not None:
            self.feature_names_in_ = np.array(labels, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        # last, when the fit is kept: a filter may turn the warning into an error, and the release was paid for
        if result.status != "ok":
            warnings.warn(
                f"the status of this fit is {result.status!r}: {self._reason(result) or 'see result_.summary()'}",
                StatusWarning,
                stacklevel=3,
            )

    def _reason(self, result: Any) -> str:
        """Why a status is not "ok", in the words of the result."""
        return str(getattr(result, "reason", ""))

    def _roles(self, labels: tuple[str, ...] | None, width: int, label: str | None) -> Roles:
        """Which column of which schema is which, from names and shapes alone."""
        words = CLASS_WORDS if self._classes else NUMBER_WORDS
        if (self.schema is None) == (self.bounds is None):
            name, given = type(self).__name__, "neither schema nor" if self.schema is None else "both schema and"
            raise PlanError(
                f"{name} was given {given} bounds; it needs one of them, because bounds are public facts and are never "
                f"read from the data: write {name}(privacy=cf.GDP(1.0), ledger=None, {words.bounds}), or {words.schema}"
            )
        own = self._own_method()
        if self.bounds is not None:
            return roles_from_bounds(
                self.bounds, labels or tuple(f"x{j}" for j in range(width)), label, classes=self._classes
            )
        if not isinstance(self.schema, Schema):
            raise SchemaError(
                f"schema must be a confide.Schema, got {type(self.schema).__name__}; write {words.schema}"
            )
        return roles_from_schema(self.schema, own, labels, width, label, classes=self._classes)

    def _own_method(self) -> Any:
        """The method whose formula names columns, None where there is none."""
        return self.method

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value follows on_missing
        tags.input_tags.string = True  # labels of categorical columns; other text is a missing value
        tags.non_deterministic = not isinstance(self.noise, SimulatedNoise)
        return tags

    def __sklearn_clone__(self) -> Any:
        # scikit-learn copies parameters deeply, but a ledger is one open connection: every clone must charge the same one
        given = self.get_params(deep=False)
        twin = type(self)(**{name: value if name == "ledger" else deepcopy(value) for name, value in given.items()})
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = deepcopy(self._metadata_request)
        return twin
