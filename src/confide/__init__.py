"""confide: valid statistics from private data.

There are three steps: plan from public facts, release from records with a privacy guarantee, and infer from the published file.

>>> import confide as cf
>>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
>>> data = cf.read(schema.sample(2_000, seed=1), schema)
>>> release = cf.release(cf.regression.LeastSquares("y ~ x"), data, privacy=cf.GDP(1.0), ledger=None)
>>> result = cf.infer(cf.Release.from_json(release.to_json()))
>>> list(result.params.index)
['Intercept', 'x']

The analyses by family:

    cf.tables          Counts, shares, means, totals, medians, by group
    cf.tests           Tests: t, F, chi-square, ranks, correlation
    cf.regression      Regression: lines, odds, rates, curves
    cf.classification  Classes: means and shares of each, predicting the class
    cf.Publication     Several questions on one budget
    cf.synthesis       A file of synthetic rows to share
    cf.local           Records protected before anyone sees them
    cf.intervals       One share, mean or slope with a posterior
    cf.reduction       Correlations and principal components
    cf.voting          Votes: which of several most records have; labels by teachers
    cf.select          The best of several methods or settings
    cf.ptr             Your own estimator
"""

from __future__ import annotations

from pathlib import Path

from confide._helpers import rooms, stubbed
from confide._version import __version__ as __version__

# Public names stand once, in the stubs: `confide --help` must not wait for pandas, scipy and polars, and type checkers read the same.
rooms(__name__, Path(__file__).parent)
globals().update(stubbed(__name__, Path(__file__).with_suffix(".pyi")))
