"""Factors of a protected table: the first declared level is the base, as in every other table, and names are what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.errors import PlanError, ReleaseError
from confide.local.noise_levels import Protection
from tests.messages import refuses

SCHEMA = cf.Schema(
    {
        "y": cf.Numeric(0, 10, on_missing="midpoint"),
        "arm": cf.Categorical(["treated", "control", "never seen"]),
        "code": cf.Categorical(["2", "10", "1"]),
        "µ": cf.Numeric(0, 1),
        "Nº": cf.Numeric(0, 1),
        "odd ~ name": cf.Categorical(["no", "but yes"]),
    }
)


@pytest.fixture(scope="module", params=[".parquet", ".csv"])
def protected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, n = np.random.default_rng(1), 3_000
    frame = SCHEMA.sample(n, seed=1).assign(arm=rng.choice(["control", "treated"], n))
    frame["y"] = 4 + 2.0 * (frame["arm"] == "control") + frame["µ"] + rng.normal(0, 0.3, n)
    place = tmp_path_factory.mktemp("protected") / f"table{request.param}"
    public = [name for name in SCHEMA.names if name != "y"]
    cf.local.protect(frame, SCHEMA, place, columns=["y"], public=public, noise=0.05, ledger=None)
    return place


def facts(result: Any) -> dict[str, str]:
    return dict(result.facts)


def test_the_base_is_the_first_declared_level_and_is_said(protected: Path) -> None:
    found = cf.local.fit(protected, "y ~ arm + code + µ")
    # alphabetical order would have called control the base, and turned the sign
    assert list(found.names) == ["Intercept", "arm[T.control]", "code[T.10]", "code[T.1]", "µ"]
    assert found.params["arm[T.control]"] == pytest.approx(2, abs=0.2)
    assert facts(found)["Compared with"] == "arm: treated; code: 2"
    assert "Reference      arm: treated; code: 2" in found.summary().splitlines()
    plain = cf.linear_regression(
        "y ~ arm", cf.read(SCHEMA.sample(50, seed=1), SCHEMA), privacy=cf.GDP(1.0), ledger=None
    )
    assert plain.names[1] == "arm[T.control]"
    full = cf.local.fit(protected, "y ~ 0 + arm")
    assert list(full.names) == ["arm[treated]", "arm[control]"] and "Compared with" not in facts(full)


def test_names_are_read_verbatim(protected: Path) -> None:
    found = cf.local.fit(protected, "y ~ µ + No + `odd ~ name` + I(`µ` ** 2) + µ:arm")
    assert list(found.names) == [
        "Intercept", "µ", "Nº", "odd ~ name[T.but yes]", "I(`µ` ** 2)", "µ:arm[T.control]"
    ]  # fmt: skip
    with refuses(PlanError):
        cf.local.fit(protected, "y ~ strange")


def test_two_coefficients_of_one_name_are_refused(protected: Path) -> None:
    frame = cf.local.read(protected)
    renamed = frame.rename(columns={"µ": "Intercept"})
    told = Protection.from_json(frame.attrs["confide.local"])
    public = tuple("Intercept" if name == "µ" else name for name in told.public)
    renamed.attrs["confide.local"] = Protection(told.columns, public, told.zeta, order=told.order).to_json()
    with refuses(PlanError):
        cf.local.fit(renamed, "y ~ Intercept")


def test_the_order_travels_and_a_strange_label_is_refused(protected: Path) -> None:
    frame = cf.local.read(protected)
    told = Protection.from_json(frame.attrs["confide.local"])
    assert told.order == {name: SCHEMA[name].levels for name in ("arm", "code", "odd ~ name")}
    assert Protection.from_json(told.to_json()) == told
    changed = frame.assign(arm=frame["arm"].replace("control", "Control"))
    changed.attrs = frame.attrs
    with refuses(ReleaseError):
        cf.local.fit(changed, "y ~ arm")
