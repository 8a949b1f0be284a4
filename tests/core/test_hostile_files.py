"""A file comes from anybody, and its digest is no secret: whatever stands in it, reading ends soon, and in `ReleaseError` or a result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from tests.core.hostile import Reader, signed, tame, wild
from tests.golden.golden_cases import CASES, schema_of
from tests.messages import refuses
from tests.third_party import Mean

import confide as cf
from confide import registry
from confide.core import Branches, BudgetItem, Composed, OpaqueRelease, Test, paths
from confide.core.codec import FILE_CHARACTERS
from confide.core.events import Event, event_to_dict, is_path
from confide.core.files import DIFFERENT_DIGITS, EVENT_DEPTH, FORMAT, LEAVES, PATHS, from_file
from confide.methods.ptr.safety_bounds import OrderStatistic
from confide.noise import SimulatedNoise
from confide_lab.methods import AdaSSP, BoostedAdaSSP, GradientDescent

# Methods whose release runs code on blocks, which takes seconds.
ON_BLOCKS = ("teacher_labels", "block_posterior")
SECONDS = 2.0  # of processor time, for reading, inferring and printing together
PER_METHOD = 25
FORMATTED = f'{{"confide":"release","format_version":"{FORMAT}","body":'

_COLUMN = cf.Numeric(0.5, 2.5, on_missing="midpoint")
LINE = cf.Schema({"a": _COLUMN, "b": _COLUMN, "y": _COLUMN})
CLASSES = cf.Schema({"x": _COLUMN, "kind": cf.Categorical(["u", "v", "w"], on_missing="u")})
PAIR = cf.ApproxDP(1.0, 1e-6)
METHODS: dict[str, tuple[dict[str, Any], cf.Schema, Any]] = {
    "least_squares": ({"formula": "y ~ a + b"}, LINE, cf.GDP(1.0)),
    "gradient_descent": ({"formula": "y ~ a + b"}, LINE, cf.GDP(1.0)),
    "boosted_adassp": ({"formula": "y ~ a"}, LINE, cf.GDP(1.0)),
    "efficient_ptr": ({"formula": "y ~ a"}, LINE, PAIR),
    "synthetic_table": ({"formula": "y ~ a + b", "cells": 1024}, LINE, cf.GDP(4.0)),
    "wavelet": ({"formula": "y ~ a"}, LINE, cf.GDP(1.0)),
    "quantile": ({"column": "a"}, LINE, cf.PureDP(1.0)),
    "select": ({"candidates": [{"method": "adassp", "formula": f} for f in ("y ~ a", "y ~ b")]}, LINE, PAIR),
    "safe_release": (
        {"bound": OrderStatistic(500, 0.5, 2.5, alpha=0.05), "gamma_plan": 40, "columns": ("a",)},
        LINE,
        PAIR,
    ),
    "class_means": ({"formula": "kind ~ x"}, CLASSES, cf.GDP(2.0)),
}


@cache
def released(name: str) -> str:
    parameters, schema, privacy = METHODS[name]
    n = 1_000 if name == "safe_release" else None
    data = cf.read(schema.sample(1_000, 1), schema)
    method = registry.make(name, **parameters)
    return cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(3), n=n).to_json()


def body_of(name: str) -> Any:
    return deepcopy(json.loads(released(name))["body"])


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    found = Reader()
    # what a first file loads of libraries is no file's own time
    found.read(released("wavelet"))
    yield found
    found.close()


def refused(reader: Reader, text: str) -> None:
    found, seconds = reader.read(text)
    assert found == "ReleaseError" and seconds < SECONDS, (found, seconds)


@pytest.mark.parametrize("name", METHODS)
def test_what_confide_wrote_is_read_to_the_bit(name: str, reader: Reader) -> None:
    assert cf.Release.from_json(released(name)).to_json() == released(name)
    assert reader.read(released(name))[0] == "read"
    assert reader.read(signed(body_of(name)))[0] == "read", "the test signs as confide does"


@pytest.mark.parametrize("change", [wild, tame])
@pytest.mark.parametrize("name", METHODS)
def test_any_body_ends_soon_and_in_an_error_of_ours(
    name: str, change: Callable[[random.Random, Any], Any], reader: Reader
) -> None:
    draw, ends = random.Random(f"{name} {change.__name__}"), set()
    for number in range(PER_METHOD):
        found, seconds = reader.read(signed(change(draw, body_of(name))))
        assert found in ("read", "ReleaseError", "PlanError") and seconds < SECONDS, (number, found, seconds)
        ends.add(found)
    assert "ReleaseError" in ends


# the attacks, one by one ----------------------------------------------------------------------------------------------


def _put(value: Any, *place: Any) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        for key in place[:-1]:
            body = body[key]
        body[place[-1]] = value

    return change


ATTACKS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "a scale of ten million digits, in a plan": ("wavelet", _put("1e9999999", "plan", "event", "scale")),
    "the same in a statistic": ("wavelet", _put("1e9999999", "statistics", "cells", "scale")),
    "the same in a setting": ("wavelet", _put({"fraction": "1e9999999"}, "plan", "constants", "level")),
    "a scale of 0": ("wavelet", _put("0/1", "plan", "event", "scale")),
    "a scale not in lowest terms": ("wavelet", _put("2/2", "plan", "event", "scale")),
    "a scale that no double holds": ("wavelet", _put("1" + "0" * 350 + "/1", "plan", "event", "scale")),
    "an integer of a million digits": ("wavelet", _put("9" * 10**6, "statistics", "cells", "values", "data", 0)),
    "an integer with underscores": ("wavelet", _put("1_0", "statistics", "cells", "values", "data", 0)),
    "an integer in other digits": ("wavelet", _put("\u0661", "statistics", "cells", "values", "data", 0)),
    "a shape of another size": ("wavelet", _put([3], "statistics", "cells", "values", "shape")),
    "a shape below 0": ("wavelet", _put([-1], "statistics", "cells", "values", "shape")),
    "a shape of 2^60 numbers": ("wavelet", _put([2**30, 2**30], "statistics", "cells", "values", "shape")),
    "a shape of text": ("wavelet", _put(["64"], "statistics", "cells", "values", "shape")),
    "a planned shape of another size": ("wavelet", _put([2], "plan", "event", "shape")),
    "a level of 2^60 cells": ("wavelet", _put(10**18, "plan", "constants", "level")),
    "a double that is none": ("gradient_descent", _put("0x1p+99999", "public", "theta", "data", 0)),
    "a double written otherwise": ("gradient_descent", _put("1.0", "public", "theta", "data", 0)),
    "NaN where a number is": ("gradient_descent", _put("nan", "public", "theta", "data", 0)),
    "infinity where a number is": ("gradient_descent", _put("-inf", "public", "theta", "data", 0)),
    "bounds without end": ("wavelet", _put("inf", "plan", "schema", "columns", 0, "high")),
    "a public number missing": ("gradient_descent", lambda body: body["public"].clear()),
    "a public number of another shape": ("gradient_descent", _put([3, 1], "public", "theta", "shape")),
    "statistics missing": ("wavelet", lambda body: body["statistics"].clear()),
    "a choice that was not there": ("quantile", _put("1048576", "statistics", "0.5", "values", "data", 0)),
    "a count of 10^150 records": ("synthetic_table", lambda body: _fill(body, "1" + "0" * 150)),
    "another status": ("wavelet", _put("valid", "status")),
    "a status that is a list": ("wavelet", _put(["released"], "status")),
    "another law": ("wavelet", _put("no_noise", "statistics", "cells", "law")),
    "another norm": ("wavelet", _put("l1", "plan", "event", "norm")),
    "an unknown kind of event": ("wavelet", _put({"event": "free"}, "plan", "event")),
    "an unknown kind of guarantee": ("wavelet", _put({"type": "NoDP"}, "guarantees", 0)),
    "no guarantee": ("wavelet", _put([], "guarantees")),
    "a guarantee without relation": ("wavelet", _put(None, "guarantees", 0, "relation")),
    "a level of infinity": ("wavelet", _put("inf", "guarantees", 0, "mu")),
    "a level that overflows when squared": ("wavelet", _put((1e200).hex(), "guarantees", 0, "mu")),
    "simulated that is 1": ("wavelet", _put(1, "simulated")),
    "an entry too many": ("wavelet", _put(1, "plan", "more")),
    "half a surrogate pair": ("wavelet", _put("\ud800", "plan", "target")),
    "a name of a megabyte": ("wavelet", _put("ssp" * 10**6, "plan", "method", "name")),
    "a version that is a list": ("wavelet", _put([], "plan", "method", "version")),
    "a parameter of another type": ("wavelet", _put(5, "plan", "method", "parameters", "formula")),
    "a level named 50,000 times": (
        "class_means",
        lambda body: _column(body, "kind").update(levels=[str(i) for i in range(50_000)] * 2),
    ),
}


def _fill(body: Any, value: str) -> None:
    for noisy in body["statistics"].values():
        noisy["values"]["data"] = [value] * len(noisy["values"]["data"])


def _column(body: Any, name: str) -> Any:
    return next(column for column in body["plan"]["schema"]["columns"] if column["name"] == name)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_release_error(attack: str, reader: Reader) -> None:
    name, change = ATTACKS[attack]
    body = body_of(name)
    change(body)
    refused(reader, signed(body))


def spend(name: str) -> BudgetItem:
    return BudgetItem(name, "grid_gaussian", Fraction(1), "l2", Fraction(4), Fraction(1), (1,))


def _tower(levels: int, make: Callable[[Event, str], Event]) -> Event:
    found: Event = spend("s")
    for level in range(levels):
        found = make(found, str(level))
    return found


TREES: dict[str, Event] = {
    "22 choices": Composed(tuple(Branches((spend(f"a{i}"), spend(f"b{i}"))) for i in range(22))),
    "22 choices inside each other": _tower(
        22,
        lambda inner, at: Composed((Branches((spend("a" + at), spend("b" + at))), Branches((inner, spend("c" + at))))),
    ),
    "22 tests": Composed(tuple(Test(spend(f"a{i}"), spend(f"b{i}")) for i in range(22))),
    "a thousand events inside each other": _tower(1_000, lambda inner, at: Branches((inner, spend(at)))),
    "too many spends": Composed(tuple(spend(str(i)) for i in range(LEAVES + 1))),
    "costs without a common denominator": Composed(
        tuple(
            BudgetItem(
                str(i), "grid_gaussian", Fraction(1), "l2", Fraction(10**98 + 2 * i + 1, 10**98), Fraction(1), (1,)
            )
            for i in range(DIFFERENT_DIGITS // 100)
        )
    ),
    "a spend drawn twice": Composed((spend("a"), spend("a"))),
    "a name of two spends": Branches((spend("a"), replace(spend("a"), scale=Fraction(5)))),
}


@pytest.mark.parametrize("tree", TREES)
def test_a_tree_that_takes_long_to_fold_is_refused(tree: str, reader: Reader) -> None:
    body = body_of("wavelet")
    if tree.startswith("a thousand"):
        body["plan"]["event"] = "HERE"
        nested = '{"branches":[' * 1_000 + '],"event":"either"}' * 1_000
        refused(reader, signed(body).replace('"HERE"', nested))
        return
    body["plan"]["event"] = event_to_dict(TREES[tree])
    refused(reader, signed(body))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**6,
        '{"a":' * 10**5,
        '{"confide":"release","body":' + "9" * 10**6 + "}",
        FORMATTED + '{"a":NaN},"sha256":""}',
        FORMATTED + '{"a":1e999},"sha256":""}',
        '{"confide":"release","confide":"plan"}',
        '{"confide":["release"]}',
        '{"confide":"release","format_version":[1.0]}',
        f'{{"confide":"release","format_version":"{"1" * 5_000}.0"}}',
        FORMATTED + "[]}",
        '"\\ud800"',
        "\x00",
        "",
    ],
    ids=lambda text: text[:24] or "empty",
)
def test_text_that_is_no_file_is_refused(text: str, reader: Reader) -> None:
    refused(reader, text)


def test_an_entry_that_stands_twice_is_refused(reader: Reader) -> None:
    text = released("wavelet")
    assert '"simulated":true' in text
    refused(reader, text.replace('"simulated":true', '"simulated":false,"simulated":true'))


def test_a_file_beyond_the_limit_is_not_even_parsed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses(cf.errors.ReleaseError):
        cf.Release.from_json(" " * (FILE_CHARACTERS + 1))
    monkeypatch.setattr("confide.core.files.FILE_CHARACTERS", 1_000)
    long = tmp_path / "long.json"
    long.write_text("[" * 5_000)
    with refuses(cf.errors.ReleaseError):
        cf.Release.load(long)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    with refuses(cf.errors.ReleaseError):
        cf.Release.load(binary)


def test_a_hostile_plan_is_refused_as_well() -> None:
    body = json.loads(cf.plan(registry.make("wavelet", formula="y ~ a"), LINE, cf.GDP(1.0)).to_json())["body"]
    assert cf.Plan.from_json(signed(body, "plan")).method.name == "wavelet"
    for change in (_put("1e9999999", "event", "scale"), _put(True, "passes"), _put({"type": "x"}, "requested")):
        changed = deepcopy(body)
        change(changed)
        with pytest.raises(cf.errors.ReleaseError):
            cf.Plan.from_json(signed(changed, "plan"))


def test_messages_quote_nothing_that_a_terminal_would_run() -> None:
    body = body_of("wavelet")
    body["plan"]["\x1b[2J" + "x" * 10**5] = 1
    with pytest.raises(cf.errors.ReleaseError) as error:
        cf.Release.from_json(signed(body))
    assert "\x1b" not in str(error.value) and len(str(error.value)) < 1_000


# what may be written is what may be read ------------------------------------------------------------------------------


def test_the_largest_plans_are_within_the_limits() -> None:
    for method in (
        GradientDescent("y ~ a + b", iterations=1_000),
        BoostedAdaSSP("y ~ a", rounds=1_000),
    ):
        plan = cf.plan(method, LINE, cf.GDP(1.0))
        assert cf.Plan.from_json(plan.to_json()) == plan


def test_a_plan_that_could_not_be_read_back_is_refused_before_the_charge(tmp_path: Any) -> None:
    schema = cf.Schema({"a": _COLUMN, "y": _COLUMN}, unit="u" * 2_000)
    method, book = (
        registry.make("wavelet", formula="y ~ a"),
        cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(1.0)),
    )
    with refuses(cf.errors.PlanError):
        cf.plan(method, schema, cf.GDP(1.0)).to_json()
    with refuses(cf.errors.PlanError):
        cf.release(method, cf.read(schema.sample(50, 1), schema, dataset="d"), cf.GDP(1.0), ledger=book)
    assert not any(row.kind == "charge" for row in book.show().rows)


def test_a_setting_may_be_called_float() -> None:
    schema = cf.Schema({"float": _COLUMN, "y": _COLUMN})
    plan = cf.plan(AdaSSP("log(y) ~ float", term_bounds={"log(y)": (-1.0, 1.0)}), schema, cf.GDP(1.0))
    only = cf.plan(AdaSSP("y ~ I(float**2)"), schema, cf.GDP(1.0))
    for one in (plan, only):
        assert cf.Plan.from_json(one.to_json()) == one


def _random_tree(draw: random.Random, depth: int, names: Iterator[int]) -> Event:
    kind = draw.choice(["spend", "spend", "together", "either", "test", "opaque"]) if depth else "spend"
    if kind == "spend":
        return spend(str(next(names)))
    if kind == "opaque":
        return OpaqueRelease(str(next(names)), cf.GDP(1.0), "proof")
    parts = tuple(_random_tree(draw, depth - 1, names) for _ in range(draw.randrange(1, 4)))
    if kind == "test":
        return Test(parts[0], parts[-1], shown=draw.random() < 0.5) if len(parts) > 1 else parts[0]
    return Composed(parts) if kind == "together" else Branches(parts)


def test_is_path_says_what_the_list_of_paths_says() -> None:
    draw = random.Random(5)
    for _ in range(150):
        tree = _random_tree(draw, 3, iter(range(100)))
        known = paths(tree)
        names = sorted(frozenset().union(*known))
        for path in known:
            assert is_path(tree, path)
        for _ in range(40):
            some = frozenset(name for name in names if draw.random() < 0.5)
            assert is_path(tree, some) == (some in known)
        assert not is_path(tree, frozenset({"other"}))


def test_limits_are_known() -> None:
    assert PATHS == 65_536 and EVENT_DEPTH == 16
    assert from_file("release", released("wavelet"))["status"] == "released" and FORMAT.count(".") == 1


@dataclass(frozen=True)
class Stumbles(Mean):
    """A third-party method with an error of its own."""

    def infer(self, release: cf.Release, options: Any = None) -> Any:
        raise ValueError("an index that is off by one")


def test_an_error_of_a_method_is_release_error_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._registered, "toy_mean", Stumbles)
    data = cf.read(LINE.sample(1_000, 1), LINE)
    release = cf.release(Stumbles("a"), data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    with refuses(cf.errors.ReleaseError) as error:
        cf.infer(release)
    assert isinstance(error.value.__cause__, ValueError), "an error of the method is not hidden"


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_method_writes_what_is_read_to_the_bit(name: str) -> None:
    method, privacy = CASES[name]
    n = 1_500 if method.relations[0] == "substitute" else None
    data = cf.read(schema_of(method).sample(1_500, 7), schema_of(method))
    release = cf.release(method, data, privacy, n=n, ledger=None, noise=SimulatedNoise(11))
    assert cf.Release.from_json(release.to_json()).to_json() == release.to_json()


# A file whose digests and statements are in step, with parameters that no plan of its schema can have had.
MISFITS: dict[str, Any] = {
    "a subgroup that is no condition": ("where", "((( nonsense ==="),
    "a subgroup of no column": ("where", "nobody > 3"),
    "a subgroup that is a number": ("where", 5),
    "an empty subgroup": ("where", ""),
    "a subgroup that nothing was read in": ("where", "{column} > 1"),
    "a formula that is none": ("formula", "((( ~ nonsense =="),
    "a formula of no column": ("formula", "nobody ~ nothing"),
    "a formula that is a number": ("formula", 10**6),
    "a column that is not there": ("column", "nobody"),
    "columns that are not there": ("columns", ["nobody"]),
    "bounds of what is not there": ("term_bounds", {"nobody": [{"float": "0x0p+0"}, {"float": "0x1p+0"}]}),
    "bounds that are a text": ("term_bounds", "nobody"),
    "quantiles beyond 1": ("quantiles", [{"float": "0x1.8p+1"}]),
    "a limit that is a list": ("leverage_cap", ["a"]),
    "questions that are none": ("questions", "nobody"),
    "a parameter that no method has": ("nobody", 1),
}


@cache
def _golden(name: str) -> str:
    method, privacy = CASES[name]
    n = 400 if method.relations[0] == "substitute" else None
    schema = schema_of(method)
    if name.startswith("safe_release"):
        method, n = replace(method, bound=cf.ptr.OrderStatistic(200, 0.0, 4.0, 0.4)), 400
    data = cf.read(schema.sample(400, 7), schema)
    return cf.release(method, data, privacy, n=n, ledger=None, noise=SimulatedNoise(11)).to_json()


@pytest.mark.parametrize(
    "name", sorted({one.name: name for name, (one, _) in CASES.items() if one.name not in ON_BLOCKS}.values())
)
def test_parameters_that_do_not_fit_are_release_error_for_every_method(name: str) -> None:
    body = json.loads(_golden(name))["body"]
    own = body["plan"]["method"]["parameters"]
    column = next(one["name"] for one in body["plan"]["schema"]["columns"] if one["kind"] != "categorical")
    tried = [(key, value) for key, value in MISFITS.values() if key in (*own, "where", "nobody")]
    assert len(tried) > 5
    for key, value in tried:
        forged = deepcopy(body)
        forged["plan"]["method"]["parameters"][key] = value.format(column=column) if isinstance(value, str) else value
        for subset in (None, ("x",)):
            with pytest.raises(cf.errors.ReleaseError):
                cf.infer(cf.Release.from_json(signed(forged)), subset=subset)


def test_a_method_that_is_not_installed_is_no_fault_of_the_file() -> None:
    body = body_of("wavelet")
    body["plan"]["method"]["name"] = "nobody"
    with refuses(cf.errors.PlanError):
        cf.infer(cf.Release.from_json(signed(body)))
    body = body_of("wavelet")
    body["plan"]["method"]["version"] = "99"
    with refuses(cf.errors.PlanError):
        cf.infer(cf.Release.from_json(signed(body)))


SIDECARS: dict[str, Callable[[Any], None]] = {
    "a number of a file that is a list": _put([1], "made", "file"),
    "a line that is text": _put("yes", "made", "drawn_line"),
    "a fact without end": _put(float("inf"), "made", "residual_sd"),
    "another kind of column": _put("object", "columns", "a"),
    "columns that are a list": _put(["a"], "columns"),
    "a digest that is none": _put("0" * 63, "content_sha256"),
    "a release that is none": _put({}, "release"),
    "a scale of ten million digits": _put("1e9999999", "release", "plan", "event", "parts", 0, "scale"),
}


@pytest.mark.parametrize("change", SIDECARS)
def test_a_hostile_sidecar_is_release_error(change: str, tmp_path: Any) -> None:
    done = cf.Release.from_json(released("synthetic_table"))
    (path,) = registry.make("synthetic_table", **METHODS["synthetic_table"][0]).build(done).save(tmp_path / "t.csv")
    beside = tmp_path / "t.csv.confide.json"
    body = json.loads(beside.read_text(encoding="utf-8"))["body"]
    beside.write_text(signed(body, "synthetic table"), encoding="utf-8")
    assert cf.synthesis.refit(path).status == "valid"
    SIDECARS[change](body)
    beside.write_text(signed(body, "synthetic table"), encoding="utf-8")
    with pytest.raises(cf.errors.ReleaseError) as error:
        cf.synthesis.refit(path)
    assert error.value.exit_code == 3
