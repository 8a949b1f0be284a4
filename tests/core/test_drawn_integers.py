"""Draws inside `infer` belong to the drawn integers alone: names of columns, levels and data sets move no number of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.core import Release
from confide.noise import SimulatedNoise
from confide.regression import LeastSquares

OLD = {"y": "y", "z": "z", "g": "g", "h": "h"}
NEW = {"y": "wage", "z": "age in years", "g": "Zone", "h": "an attribute"}
LEVELS = {"g": (["a", "b"], ["west", "east"]), "h": (["u", "v", "w"], ["3", "1", "2"])}


def _released(asked: Callable[[Mapping[str, str]], Any], names: Mapping[str, str], n: int = 400) -> Release:
    g = np.random.default_rng(7)
    own = {"y": g.normal(0, 1, n).clip(-4, 4), "z": g.normal(1, 2, n).clip(-4, 4)}
    codes = {"g": g.integers(0, 2, n), "h": g.choice(3, n, p=[0.6, 0.37, 0.03])}
    levels = {name: LEVELS[name][names is NEW] for name in LEVELS}
    columns: dict[str, Any] = {names[name]: cf.Numeric(-4, 4) for name in own}
    columns |= {names[name]: cf.Categorical(levels[name]) for name in codes}
    frame = {names[name]: values for name, values in own.items()}
    frame |= {names[name]: np.array(levels[name])[values] for name, values in codes.items()}
    data = cf.read(pd.DataFrame(frame), cf.Schema(columns))
    return cf.release(asked(names), data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(5))


def _one(method: Callable[[str], Any], formula: str) -> Callable[[Mapping[str, str]], Any]:
    return lambda names: method(" ".join(f"`{names[part]}`" if part in names else part for part in formula.split()))


def _counts(formula: str) -> Any:
    return cf.tables.Counts(formula, inference="population")


def _means(formula: str) -> Any:
    return cf.tables.Means(formula, inference="population")


def _joint(release: Release, names: Mapping[str, str]) -> list[float]:
    law = cf.infer(release).joint
    return [float(law.tail(1e2 * np.eye(3)[1:], square)[0]) for square in (1.0, 6.0)]


CASES: dict[str, tuple[Any, Callable[[Release, Mapping[str, str]], Any]]] = {
    "t": (_one(_means, "y ~ 0 + g"), lambda r, s: [(t := cf.infer(r).test("t")).pvalue, *t.conf_int().iloc[0]]),
    "f": (_one(_means, "y ~ 0 + h"), lambda r, s: [cf.infer(r).test("f", s["h"]).pvalue]),
    "chi-square": (_one(_counts, "g * h"), lambda r, s: [cf.infer(r).test("independence").pvalue]),
    "together": (
        _one(_counts, "g * h"),
        lambda r, s: cf.infer(r).to_frame(simultaneous=True)[["ci_low", "ci_high"]].to_numpy(),
    ),
    "mann-whitney": (_one(cf.tests.MannWhitney, "y ~ g"), lambda r, s: cf.infer(r).conf_int().to_numpy()),
    "kruskal": (_one(cf.tests.Kruskal, "y ~ h"), lambda r, s: [cf.infer(r).statistic]),
    "wilcoxon": (_one(cf.tests.Wilcoxon, "y"), lambda r, s: cf.infer(r).conf_int().to_numpy()),
    "distribution": (
        _one(cf.tables.Quantiles, "y ~ g"),
        lambda r, s: [found._band(own, 0.05) for found in [cf.infer(r)] for own in found.groups],
    ),
    "joint": (_one(LeastSquares, "y ~ z + g"), _joint),
}


@pytest.mark.parametrize("name", CASES)
def test_names_move_no_number(name: str) -> None:
    asked, read = CASES[name]
    old, new = (_released(asked, names) for names in (OLD, NEW))
    assert old.sha256 != new.sha256 and old.drawn_sha256 == new.drawn_sha256
    np.testing.assert_array_equal(read(old, OLD), read(new, NEW))


def test_other_integers_have_other_draws() -> None:
    asked = CASES["t"][0]
    one, other = _released(asked, OLD), _released(asked, OLD, 401)
    assert one.drawn_sha256 != other.drawn_sha256
