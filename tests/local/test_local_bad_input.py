"""What a holder and an analyst may give wrong: the error or the status that each meets, in one table.

Nothing raises on the values of records, and no message about records shows one; what is public (a request, a schema, a file that was
published) is refused with an error of its own type that says what to write.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.local.noise_levels import KEY, Noised, Protection
from tests.messages import refuses

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 1, on_missing=0.5),
        "z": cf.Numeric(-10, 10, on_missing=0),
        "w": cf.Numeric(0, 1, on_missing=0.5),
        "gaps": cf.Numeric(0, 1),
        "age": cf.Integer(18, 90, on_missing=50),
        "sex": cf.Categorical(["f", "m"], on_missing="f"),
        "y": cf.Numeric(-5, 15),
    },
    dataset="survey",
)


def _plan(columns: list[str], **asked: Any) -> Any:
    return cf.local.plan(SCHEMA, columns, **asked)


@pytest.mark.parametrize(
    ("what", "ask", "error"),
    [
        ("no bounds", lambda: cf.Numeric(1, 1), cf.errors.SchemaError),
        ("bounds the wrong way round", lambda: cf.Numeric(2, 1), cf.errors.SchemaError),
        ("bounds that are no numbers", lambda: cf.Numeric(0, float("inf")), cf.errors.SchemaError),
        ("a column of no schema", lambda: _plan(["income"], noise=1.0), cf.errors.SchemaError),
        ("no column", lambda: _plan([], noise=1.0), cf.errors.PlanError),
        ("a column twice", lambda: _plan(["x", "x"], noise=1.0), cf.errors.PlanError),
        ("protected and public", lambda: _plan(["x"], public=["x"], noise=1.0), cf.errors.PlanError),
        ("a public column of no schema", lambda: _plan(["x"], public=["q"], noise=1.0), cf.errors.SchemaError),
        ("no noise", lambda: _plan(["x"], noise=0.0), cf.errors.PlanError),
        ("negative noise", lambda: _plan(["x"], noise=-1.0), cf.errors.PlanError),
        ("noise that is no number", lambda: _plan(["x"], noise=float("nan")), cf.errors.PlanError),
        ("neither noise nor guarantee", lambda: _plan(["x"]), cf.errors.PlanError),
        ("zeta of 1", lambda: _plan(["x"], noise=1.0, zeta=1.0), cf.errors.PlanError),
        ("zeta below 0", lambda: _plan(["x"], noise=1.0, zeta=-0.1), cf.errors.PlanError),
        ("zeta that is no number", lambda: _plan(["x"], noise=1.0, zeta=float("nan")), cf.errors.PlanError),
        ("rows without noise", lambda: _plan(["x"], noise=1.0, zeta=0.1), cf.errors.PlanError),
        ("an unknown level", lambda: _plan(["x"], noise=1.0, level="row"), cf.errors.PlanError),
        ("an unknown level of levels", lambda: _plan([], levels={"sex": 1.0}, level="row"), cf.errors.PlanError),
        ("mu of a curve that has none", lambda: _plan(["x"], privacy=cf.GDP(1.0)), cf.errors.NoConversion),
        ("rho likewise", lambda: _plan(["x", "z", "w"], privacy=cf.ZCDP(1.0)), cf.errors.NoConversion),
        ("pure noise of two columns", lambda: _plan(["x", "z"], privacy=cf.PureDP(1.0)), cf.errors.NoConversion),
        ("noise on levels", lambda: _plan(["sex"], noise=1.0), cf.errors.PlanError),
        ("records without a value are dropped", lambda: _plan(["gaps"], noise=1.0), cf.errors.PlanError),
        ("a grid that the noise shows", lambda: _plan(["age"], noise=0.3), cf.errors.PrivacyError),
    ],
)
def test_requests_are_refused_before_anything_is_read(
    what: str, ask: Callable[[], Any], error: type[Exception]
) -> None:
    with refuses(error):
        ask()


def _odd(kind: str, n: int = 60) -> dict[str, Any]:
    """Records with values that no schema hopes for; the number of rows is public and stays."""
    x: Any = np.full(n, 0.5)
    if kind == "text":
        x = np.array(["much"] * n, dtype=object)
    elif kind == "none":
        x = np.array([None] * n, dtype=object)
    elif kind != "constant":
        x[::3] = {"nan": np.nan, "inf": np.inf, "minus inf": -np.inf, "out of bounds": 7e300}[kind]
    return {"x": x, "y": np.zeros(n)}


@pytest.mark.parametrize("kind", ["nan", "inf", "minus inf", "out of bounds", "none", "constant"])
def test_values_never_raise_and_leave_no_trace(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "p.parquet"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = cf.local.protect(_odd(kind), SCHEMA, place, columns=["x"], public=["y"], noise=0.5, ledger=None, seed=1)
    plain = cf.local.protect(
        _odd("constant"), SCHEMA, tmp_path / "q.parquet", columns=["x"], public=["y"], noise=0.5, ledger=None, seed=1
    )
    told = cf.local.read(place)
    assert len(told) == 60 and np.isfinite(told["x"]).all()
    assert made.protection == plain.protection and made.lines() == plain.lines()


def _fit(zeta: float = 0.0, n: int = 400, sd: float = 0.5, change: Any = None, **asked: Any) -> Any:
    """A fit of y on a protected x in (0, 1), published beside it."""
    generator = np.random.default_rng(3)
    x = generator.random(n)
    noise = np.sqrt(generator.standard_exponential(n)) * generator.standard_normal(n) * (generator.random(n) >= zeta)
    frame = pd.DataFrame(
        {"x": x + sd * noise, "y": 2 * x + generator.standard_normal(n), "one": 1.0, "side": 1.0 * (x > 0.5)}
    )
    told = Protection({"x": Noised(0, 1, 2**20, Fraction(int(sd * 2**20)))}, ("y", "one", "side"), zeta)
    frame.attrs[KEY] = told.to_json()
    frame = frame if change is None else change(frame)
    return cf.local.fit(frame, asked.pop("formula", "y ~ x"), **asked)


def _silent(frame: pd.DataFrame) -> pd.DataFrame:
    frame.attrs.clear()
    return frame


@pytest.mark.parametrize(
    ("what", "ask", "error"),
    [
        ("RB of rows that all have noise", lambda: _fit(method="RB"), cf.errors.PlanError),
        ("DR likewise", lambda: _fit(method="DR"), cf.errors.PlanError),
        ("an unknown method", lambda: _fit(method="best"), cf.errors.PlanError),
        ("an unknown loss", lambda: _fit(loss="cubic"), cf.errors.PlanError),
        ("a function of a noisy column", lambda: _fit(formula="y ~ np.log(x)"), cf.errors.PlanError),
        ("a column that was left out", lambda: _fit(formula="y ~ q"), cf.errors.PlanError),
        ("a protected logistic response", lambda: _fit(formula="x ~ y", loss="logistic"), cf.errors.PlanError),
        ("values cut back to the bounds", lambda: _fit(change=lambda f: f.clip(0, 1)), cf.errors.ReleaseError),
        (
            "rows chosen by their noisy values",
            lambda: _fit(n=2_000, change=lambda f: f[f["x"].between(0, 1)]),
            cf.errors.ReleaseError,
        ),
        ("no word on the noise", lambda: _fit(change=_silent), cf.errors.ReleaseError),
    ],
)
def test_what_cannot_be_corrected_is_refused(what: str, ask: Callable[[], Any], error: type[Exception]) -> None:
    with refuses(error):
        ask()


def _one_sided(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(side=1.0)


def _counts(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(y=np.arange(len(frame)) % 7)


@pytest.mark.parametrize(
    ("what", "asked", "status", "words"),
    [
        ("noise not corrected", {"method": "naive"}, "imprecise", "takes noise for data"),
        ("no firm curvature", {"n": 60, "sd": 20.0}, "imprecise|not_identified", "noise"),
        (
            "a minimum at the edge of the box",
            {"formula": "side ~ 1 + x", "loss": "logistic", "n": 60, "change": _one_sided},
            "not_identified",
            "no interior minimum",
        ),
        ("a constant term beside the intercept", {"formula": "y ~ x + one"}, "imprecise|not_identified", ""),
        (
            "a Poisson index with much noise",
            {"loss": "poisson", "sd": 3.0, "change": _counts},
            "imprecise|not_identified",
            "",
        ),
        ("few rows for a quantile line", {"loss": "absolute"}, "imprecise", "5,000"),
        ("one record", {"n": 1}, "imprecise|not_identified", ""),
    ],
)
def test_what_cannot_be_answered_says_so(what: str, asked: dict[str, Any], status: str, words: str) -> None:
    found = _fit(**asked)
    assert found.status in status.split("|") and words in found.reason and found.reason
    assert found.bse.isna().all() and found.conf_int().isna().all(axis=None)


def test_an_empty_table_is_released_and_answers_nothing(tmp_path: Path) -> None:
    place = tmp_path / "p.parquet"
    cf.local.protect(_odd("constant", 0), SCHEMA, place, columns=["x"], public=["y"], noise=0.5, ledger=None, seed=1)
    assert len(cf.local.read(place)) == 0
    for ask in (lambda: cf.local.fit(place, "y ~ x"), lambda: cf.local.mean(place, "x")):
        with refuses(cf.errors.PlanError):
            ask()
