"""`cf.intervals`: one parameter at a time, in one call each.

A lower-case name is the call (plan, release, infer), a class the method behind it. Which release answers follows from the relation. Under
substitute (the number of records is public) it is a noise-aware posterior, or exact confidence limits, of the same release. Under
add-remove (the number of records is secret; what ledgers have unless they say otherwise) `proportion`, `mean`, `quantile` and `difference`
answer from the releases of `cf.tables`; the others say which call works. What a verb estimates is the same under both. An open relation is
substitute, but add-remove where records may be left out for a missing value and a table answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide._lazy import names
from confide.faces.calls.interval_verbs import VERBS

if TYPE_CHECKING:
    from confide.faces.calls.interval_calls import (
        difference,
        interval_method,
        mean,
        proportion,
        quantile,
        slope,
        variance,
    )
    from confide.methods.intervals.block_posterior import BlockPosterior
    from confide.methods.intervals.difference import Difference
    from confide.methods.intervals.mean_and_variance import MeanAndVariance
    from confide.methods.intervals.proportion import Proportion
    from confide.methods.intervals.pure_quantiles import PureQuantiles
    from confide.methods.intervals.slope import Slope
else:
    _METHODS: dict[str, Any] = {
        "BlockPosterior": "confide.methods.intervals.block_posterior",
        "Difference": "confide.methods.intervals.difference",
        "MeanAndVariance": "confide.methods.intervals.mean_and_variance",
        "Proportion": "confide.methods.intervals.proportion",
        "PureQuantiles": "confide.methods.intervals.pure_quantiles",
        "Slope": "confide.methods.intervals.slope",
    }
    __getattr__, __dir__ = names(
        __name__, {**dict.fromkeys((*VERBS, "interval_method"), "confide.faces.calls.interval_calls"), **_METHODS}
    )

__all__ = [
    "BlockPosterior",
    "Difference",
    "MeanAndVariance",
    "Proportion",
    "PureQuantiles",
    "Slope",
    "difference",
    "interval_method",
    "mean",
    "proportion",
    "quantile",
    "slope",
    "variance",
]
