"""Names of code in a mapping or a file: nothing but known classes comes of them, and nothing is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.ptr.safety import AllOf, bound_from, pack_bound
from confide.methods.ptr.safety_bounds import OrderStatistic
from confide.noise import SimulatedNoise
from confide.sums.blocks.isolated_process import in_place
from confide.sums.blocks.record_block import code_from, code_name, not_in_file

SCHEMA = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint"), "y": cf.Categorical(["a", "b"], on_missing="a")})
MEDIAN = OrderStatistic(50, -4.0, 4.0, alpha=0.1)


@dataclass(frozen=True)
class Known:
    low: float
    high: float = 1.0


@dataclass(frozen=True)
class Picky:
    """Checks its fields as Python does, without words of its own."""

    alpha: float

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise cf.errors.PrivacyError(f"alpha must be between 0 and 1, got {self.alpha!r}")


class Loose:
    """No frozen dataclass."""

    def __init__(self, low: float) -> None:
        raise AssertionError("called")


NAME = code_name(Known)


def test_a_class_of_ours_has_a_name_that_does_not_change_when_its_file_is_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = pack_bound(MEDIAN)["bound"]
    monkeypatch.setattr(OrderStatistic, "__module__", "confide.elsewhere")
    assert name == pack_bound(MEDIAN)["bound"] == "confide:OrderStatistic" and bound_from(pack_bound(MEDIAN)) == MEDIAN
    assert f"{__name__}:Known" == NAME and code_name(os.getcwd) == "posix:getcwd"
    monkeypatch.setattr(Known, "__module__", "confident")
    assert code_name(Known) == "confident:Known"


def test_a_known_class_comes_back_from_its_fields() -> None:
    assert code_from({"thing": NAME, "fields": {"low": "2"}}, "thing", "f(thing)", [Known], float) == Known(2.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"live": NAME},
        {"thing": "os:system", "fields": {"command": "true"}},
        {"thing": "builtins:dict", "fields": {}},
        {"thing": 3, "fields": {}},
        {},
        {"thing": NAME},
        {"thing": NAME, "fields": {}},
        {"thing": NAME, "fields": {"low": 1.0, "more": 2.0}},
        {"thing": NAME, "fields": [1.0]},
        {"thing": code_name(Loose), "fields": {"low": 1.0}},
    ],
)
def test_anything_else_is_refused_with_the_call_that_hands_it_over(settings: dict[str, Any]) -> None:
    with refuses(cf.errors.PlanError):
        code_from(settings, "thing", "f(thing)", [Known, Loose])


@pytest.mark.parametrize("alpha", [None, "a", []])
def test_fields_that_the_class_itself_chokes_on_are_refused_in_words(alpha: Any) -> None:
    settings = {"thing": code_name(Picky), "fields": {"alpha": alpha}}
    with refuses(cf.errors.PlanError):
        code_from(settings, "thing", "f(thing)", [Picky])
    with refuses(cf.errors.PlanError):
        code_from(
            {"thing": NAME, "fields": {"low": alpha}},
            "thing",
            "f(thing)",
            [Known],
            lambda packed: 1 / len(packed) + packed,
        )


def test_what_the_class_says_in_its_own_words_is_left_as_it_is() -> None:
    with refuses(cf.errors.PrivacyError):
        code_from({"thing": code_name(Picky), "fields": {"alpha": 2}}, "thing", "f(thing)", [Picky])


def test_a_bound_of_a_file_without_its_alpha_is_refused_in_words() -> None:
    packed = pack_bound(MEDIAN)
    with pytest.raises(cf.errors.PlanError):
        bound_from({**packed, "fields": {**packed["fields"], "alpha": None}})


def test_code_that_no_file_holds_is_named_with_the_call() -> None:
    said = not_in_file("sampler", "os:system", "f(sampler)")
    assert isinstance(said, cf.errors.PlanError)
    assert str(said).startswith("the plan was made with the live sampler 'os:system'") and "f(sampler)" in str(said)


def test_a_class_that_is_there_twice_is_refused() -> None:
    with refuses(cf.errors.PlanError):
        code_from({"thing": NAME, "fields": {"low": 1.0}}, "thing", "f(thing)", [Known, Known])


def _bound(settings: dict[str, Any]) -> Callable[[], Any]:
    return lambda: SafeRelease(settings, columns=("x",), gamma_plan=20)  # type: ignore[arg-type]


def _sampler(settings: dict[str, Any]) -> Callable[[], Any]:
    return lambda: cf.intervals.BlockPosterior(settings, {"mean": (-4, 4)}, blocks=10, columns=("x",))


def _teacher(settings: dict[str, Any]) -> Callable[[], Any]:
    return lambda: cf.voting.TeacherLabels("y", settings, np.zeros((4, 1)), 10, certificate="gaussian")


_NAMES = [
    {"live": "os:system"},
    {"live": "os:system", "settings": {"command": "true"}},
    {"live": "os:system", "fields": {"command": "true"}},
    {"teacher": "os:system", "settings": {"command": "true"}},
    {"sampler": "os:system", "fields": {"command": "true"}},
    {"bound": "os:system", "fields": {"command": "true"}},
    {"bound": code_name(AllOf(())), "fields": {"bounds": [{"live": "os:system", "dim": 1}]}},
    {"bound": code_name(AllOf(())), "fields": {"bounds": [{"bound": "os:system", "fields": {"command": "true"}}]}},
]


@pytest.mark.parametrize("settings", _NAMES, ids=str)
@pytest.mark.parametrize(
    ("made", "privacy"),
    [(_bound, cf.ApproxDP(1.0, 1e-6)), (_sampler, cf.PureDP(100.0)), (_teacher, cf.GDP(3.0))],
    ids=["bound", "sampler", "teacher"],
)
def test_a_name_in_a_mapping_calls_nothing_and_is_refused(
    made: Callable[..., Any], privacy: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By each method that takes code, through the whole release: the call is refused, and what is named does not run."""
    called: list[Any] = []
    monkeypatch.setattr(os, "system", lambda *given, **named: called.append((given, named)))
    data = cf.read(SCHEMA.sample(101, seed=1), SCHEMA)
    n = 101 if made is _bound else None
    try:
        with pytest.raises((cf.errors.PlanError, cf.errors.PrivacyError)), in_place():
            cf.release(made(settings)(), data, privacy, ledger=None, n=n, noise=SimulatedNoise(1))
    finally:
        assert not called


def test_a_bound_of_bounds_comes_back_and_one_with_code_inside_does_not() -> None:
    whole = AllOf((MEDIAN, MEDIAN))
    assert bound_from(pack_bound(whole)) == whole
    inside = {"bound": code_name(whole), "fields": {"bounds": [pack_bound(MEDIAN), {"live": "m:f", "dim": 1}]}}
    with refuses(cf.errors.PlanError):
        bound_from(inside)
