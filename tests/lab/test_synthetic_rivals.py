"""Generators and learners that are extras of the laboratory: how they are called, and a real run where they are installed."""

from __future__ import annotations

from importlib import util
from inspect import signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError, PrivacyError
from confide_lab import smartnoise
from confide_lab.experiments import binagg_synthetic as table3
from confide_lab.fits import Case


def _case(n: int = 300) -> Case:
    g = np.random.default_rng(4)
    a, b = g.random(n), g.random(n)
    schema = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(-1, 4)})
    frame = pd.DataFrame({"a": a, "b": b, "y": a + 2 * b + 0.3 * g.standard_normal(n)})
    return Case(frame, schema, "y ~ a + b", 1.0)


def test_another_package_is_called_as_its_adapter_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    case, asked = _case(), {}
    adapter = signature(smartnoise.smartnoise_table)

    def called(*args: Any, **named: Any) -> Any:
        asked.update(adapter.bind(*args, **named).arguments)
        return smartnoise.SmartNoiseTable(case.frame, case.formula, asked["generator"], asked["privacy"])

    monkeypatch.setattr(smartnoise, "smartnoise_table", called)
    for method in table3.SYNTHESISERS:
        assert table3.synthetic_table(method, case, np.random.default_rng(1)) is not None
        assert asked["generator"] == method and asked["schema"] is case.schema
        assert asked["privacy"] == cf.ApproxDP(1.0, case.delta)


def test_smartnoise_is_refused_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "snsynth", None)
    case = _case()
    call = {"schema": case.schema, "generator": "aim"}
    with refuses(PlanError):
        smartnoise.smartnoise_table(case.frame, case.formula, privacy=cf.ApproxDP(1.0, 1e-6), **call)
    with refuses(PrivacyError):
        smartnoise.smartnoise_table(case.frame, case.formula, privacy=cf.GDP(1.0), **call)
    with refuses(PlanError):
        smartnoise.smartnoise_table(
            case.frame, case.formula, schema=case.schema, privacy=cf.ApproxDP(1.0, 1e-6), generator="best"
        )


def test_smartnoise_gets_public_cells_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    g = np.random.default_rng(1)
    schema = cf.Schema(
        {
            "a": cf.Numeric(0, 1),
            "k": cf.Integer(0, 9),
            "r": cf.Categorical(["N", "S", "E", "W"]),
            "y": cf.Numeric(-4, 9),
        }
    )
    a, region = g.random(600), g.choice(["N", "S", "E", "W"], 600)
    frame = pd.DataFrame({"a": a, "k": g.integers(0, 10, 600), "r": region, "y": 2 * a + g.standard_normal(600)})

    class Transformer:
        @classmethod
        def from_pandas(cls, public, style, ordinal_columns):
            seen["public"], seen["style"] = public, style
            return cls()

        def fit(self, public):
            seen["fitted"] = public

    class Synthesizer:
        @classmethod
        def create(cls, name, epsilon, delta, batch_size):
            seen["created"] = (name, epsilon, delta, batch_size)
            return cls()

        def fit(self, codes, transformer):
            self.codes = codes

        def sample(self, rows):
            return self.codes.iloc[:rows].to_numpy().tolist()

    monkeypatch.setitem(
        __import__("sys").modules,
        "snsynth",
        SimpleNamespace(TableTransformer=Transformer, Synthesizer=Synthesizer),
    )
    made = smartnoise.smartnoise_table(
        frame,
        "y ~ a + k + r",
        schema=schema,
        privacy=cf.ApproxDP(1.0, 1e-6),
        rows=100,
        generator="dpctgan",
    )
    assert seen["created"] == ("dpctgan", 1.0, 1e-6, 500) and seen["style"] == "gan"
    assert seen["fitted"].max().to_dict() == {"a": 31, "k": 9, "r": 3, "y": 31}
    assert isinstance(made.frame, pd.DataFrame) and len(made.frame) == 100
    assert (made.frame["r"].astype(str).to_numpy() == frame["r"].to_numpy()[:100]).all()
    assert np.abs(made.frame["y"].to_numpy() - frame["y"].clip(-4, 9).to_numpy()[:100]).max() < 13 / 32
    assert "asserted" in made.summary() and "none" in made.summary()


def test_learners_are_those_that_are_installed() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    assert ("xgboost" in table3._learners(1_000, 1)) == (util.find_spec("xgboost") is not None)
    assert "network" in table3._learners(500, 1) and "network" not in table3._learners(499, 1)


def test_what_is_missing_says_how_to_install_it() -> None:
    reason = table3.synthetic_missing("aim")
    assert (reason is None) == (util.find_spec("snsynth") is not None)
    assert reason is None or "confide-lab[smartnoise]" in reason


def test_xgboost_learns() -> None:
    pytest.importorskip("xgboost", reason="XGBoost is not installed: pip install 'confide-lab[xgboost]'")
    case = _case()
    x, y = case.frame[["a", "b"]].to_numpy(), case.frame["y"].to_numpy()
    found = table3._learners(300, 1)["xgboost"].fit(x, y).predict(x)
    assert np.mean((found - y) ** 2) < 0.1 * np.var(y)


def test_a_generator_of_the_other_package_makes_rows() -> None:
    pytest.importorskip("snsynth", reason="smartnoise-synth is not installed: pip install 'confide-lab[smartnoise]'")
    case = _case()
    made = table3.synthetic_table("dpgan", case, np.random.default_rng(1))
    assert set(made.columns) == set(case.frame.columns)
    assert len(made) == 300 and np.isfinite(made.to_numpy(dtype=float)).all()
