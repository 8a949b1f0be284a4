"""Regression, classification, components and PATE with differential privacy, as scikit-learn estimators over the methods of confide.

They go through `confide.release`: the ledger is charged before noise is drawn, once for each `fit`.
"""

from __future__ import annotations

try:
    import sklearn.base  # noqa: F401
    from sklearn.utils.validation import validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        'confide.sklearn needs scikit-learn 1.6 or newer; install it with: pip install "confide[sklearn]"',
        name=error.name,
    ) from error

from confide.sklearn.base import StatusWarning
from confide.sklearn.classifier import Pate, PrivateClassifier
from confide.sklearn.regressor import PrivateRegressor
from confide.sklearn.transformer import PrivatePCA

__all__ = ["EXPECTED_FAILED_CHECKS", "Pate", "PrivateClassifier", "PrivatePCA", "PrivateRegressor", "StatusWarning"]

#: The checks of scikit-learn's `check_estimator` that these estimators fail on purpose, each with its reason; give it as
#: `expected_failed_checks`. No estimator fails all of them.
EXPECTED_FAILED_CHECKS = {
    "check_classifiers_regression_target": (
        "it wants an error when labels are continuous numbers, which only their values tell. The classes are declared, "
        "and an undeclared label is missing"
    ),
    "check_estimators_empty_data_messages": (
        "it wants an error when there are no records. Their number is private under add/remove, and an "
        "error would tell an empty table from a table of one record. fit answers with noise and a status instead"
    ),
    "check_fit_idempotent": (
        "it predicts from features about 100. Where the declared bounds end below, they are clipped to a constant: the "
        'status is "not_identified", and predict raises instead of giving numbers that mean nothing'
    ),
    "check_supervised_y_no_nan": (
        "it wants an error when a response is NaN or infinite. An error that depends on the value of a record is a "
        "leak, so this response is missing and follows the schema's rule (on_missing)"
    ),
}
