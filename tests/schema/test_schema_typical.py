"""Typical spreads: text forms, messages, and that nothing but a forecast ever depends on them."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from tests.messages import refuses

import confide as cf
from confide.schema import Integer, Numeric, Provenance, Schema, Typical

YEARBOOK = Provenance("public", "yearbook 2023")
BARE = Schema({"x": Numeric(0, 1e6), "k": Integer(0, 100), "g": cf.Categorical(["a", "b"]), "y": Numeric(0, 50)})
GIVEN = Schema(
    {
        **BARE.columns,
        "x": Numeric(0, 1e6, typical=(5e3, 9e4)),
        "k": Integer(0, 100, typical=Typical(3, 60, YEARBOOK, own=0.3)),
        "g": cf.Categorical(["a", "b"], typical={"a": 0.9, "b": 0.1}),
    }
)


def test_every_text_form_keeps_them_to_the_bit() -> None:
    for again in (
        Schema.from_dict(json.loads(json.dumps(GIVEN.to_dict()))),
        Schema.from_toml(GIVEN.to_toml()),
        pickle.loads(pickle.dumps(GIVEN)),
        copy.deepcopy(GIVEN),
    ):
        assert again == GIVEN != BARE
        assert again["k"].typical == Typical(3.0, 60.0, YEARBOOK, own=0.3)
        assert again["g"].shares.each == (0.9, 0.1)
    assert "typical" not in json.dumps(BARE.to_dict()) + BARE.to_toml()


def test_no_digest_holds_them() -> None:
    assert GIVEN.bare == BARE and BARE.bare is BARE
    assert GIVEN.digest == BARE.digest
    assert hash(GIVEN) == hash(BARE)


@pytest.mark.parametrize(
    "given",
    [
        (5e3, 9e4),
        [5_000, 90_000],
        {"low": 5e3, "high": 9e4},
        Typical(5e3, 9e4),
        {"low": 5e3, "high": 9e4, "provenance": ""},
    ],
)
def test_they_are_given_in_several_forms(given: object) -> None:
    assert Numeric(0, 1e6, typical=given).typical == Typical(5e3, 9e4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        (5, 20),
        (5, 5),
        (7, 5),
        (float("nan"), 5),
        (1, 10**400),
        ("a", 5),
        (True, 5),
        (1, 2, 3),
        {"low": 1},
        {"low": 1, "high": 2, "who": "me"},
        3,
        Typical(1, 2, own=0),
        {"low": 1, "high": 2, "own": "x"},
    ],
)
def test_what_is_wrong_is_named_with_the_call_that_works(given: object) -> None:
    with refuses(cf.errors.SchemaError):
        Numeric(0, 10, typical=given)  # type: ignore[arg-type]


def test_in_a_file_the_message_names_the_line_to_write() -> None:
    with refuses(cf.errors.SchemaError):
        Schema.from_toml('columns.x = { kind = "numeric", low = 0, high = 10, typical = [5, 20] }')
    with refuses(cf.errors.SchemaError):
        Schema.from_toml('columns.x = { kind = "categorical", levels = ["a", "b"], typical = [5, 20] }')
    damaged = GIVEN.to_dict()
    damaged["columns"][0]["typical"] = {"low": 1.0}
    with refuses(cf.errors.SchemaError):
        Schema.from_dict(damaged)


@pytest.mark.parametrize("method", [cf.regression.LeastSquares("y ~ x + k + g"), cf.regression.SSP("y ~ x + k + g")])
def test_plans_and_releases_are_the_same_to_the_bit(method: cf.regression.SSP) -> None:
    frame = BARE.sample(500, seed=1)
    made = {}
    for name, schema in (("bare", BARE), ("given", GIVEN)):
        plan = cf.plan(method, schema, cf.GDP(1.0), n=2_000)
        again = cf.plan(cf.Plan.from_json(plan.to_json()), GIVEN)
        done = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(3))
        made[name] = plan.to_json(), again.sha256, done.to_json(), method.plan(schema, cf.GDP(1.0)).sha256
    assert made["bare"] == made["given"]


@pytest.mark.parametrize("given", [{"a": 0.9, "b": 0.1}, [0.9, 0.1], {"shares": [0.9, 0.1], "provenance": ""}])
def test_shares_are_given_by_name_or_in_order(given: object) -> None:
    assert cf.Categorical(["a", "b"], typical=given).shares.each == (0.9, 0.1)


@pytest.mark.parametrize(
    "given", [{"a": 1.0}, [0.9, 0.2], [1.0, 0.0], [0.5, "x"], [0.5, True], 3, {"a": 0.5, "c": 0.5}, [0.5, float("nan")]]
)
def test_shares_that_do_not_fit_are_named(given: object) -> None:
    with refuses(cf.errors.SchemaError):
        cf.Categorical(["a", "b"], typical=given)
