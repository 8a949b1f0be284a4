"""Typical spreads: text forms, messages, and that nothing but a forecast ever depends on them."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

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
    assert GIVEN.without_typical == BARE and BARE.without_typical is BARE
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
    ("given", "said"),
    [
        ((5, 20), r"within the bounds 0 and 10, got 5 and 20; .* write cf\.Numeric\(0, 10, typical=\(2.5, 7.5\)\)"),
        ((5, 5), "a low number below a high one"),
        ((7, 5), "a low number below a high one"),
        ((float("nan"), 5), "two numbers of the column"),
        ((1, 10**400), "two numbers of the column"),
        (("a", 5), "two numbers of the column"),
        ((True, 5), "two numbers of the column"),
        ((1, 2, 3), "two numbers, or a table"),
        ({"low": 1}, "two numbers, or a table"),
        ({"low": 1, "high": 2, "who": "me"}, "two numbers, or a table"),
        (3, "two numbers, or a table"),
        (
            Typical(1, 2, own=0),
            r"own must be a share above 0 and at most 1, got 0: .* write typical=cf.Typical\(1, 2, own=0.5\)",
        ),
        ({"low": 1, "high": 2, "own": "x"}, "own must be a share"),
    ],
)
def test_what_is_wrong_is_named_with_the_call_that_works(given: object, said: str) -> None:
    with pytest.raises(cf.SchemaError, match=said):
        Numeric(0, 10, typical=given)  # type: ignore[arg-type]


def test_in_a_file_the_message_names_the_line_to_write() -> None:
    with pytest.raises(
        cf.SchemaError, match=r"column 'x': .* write in \[columns.x\] the line typical = \{ low = 2.5, high = 7.5 \}"
    ):
        Schema.from_toml('columns.x = { kind = "numeric", low = 0, high = 10, typical = [5, 20] }')
    with pytest.raises(cf.SchemaError, match=r"column 'x': .* a share above 0 for each of the 2 levels"):
        Schema.from_toml('columns.x = { kind = "categorical", levels = ["a", "b"], typical = [5, 20] }')
    damaged = GIVEN.to_dict()
    damaged["columns"][0]["typical"] = {"low": 1.0}
    with pytest.raises(cf.SchemaError, match="low and high in hexadecimal"):
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
    with pytest.raises(cf.SchemaError, match=r"add up to 1, got .*; write typical=\{'a': 0.5, 'b': 0.5\}"):
        cf.Categorical(["a", "b"], typical=given)
