"""What a refusal advises is done, literally, and the call is no longer refused: in Python here, at the command line in tests/cli.

That the advice of every refusal of the suite is made of what there is, `tests.conftest.advice_is_checked` asks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.errors import ConfideError
from confide.noise import SimulatedNoise
from tests.advice import checked, codes, followed, public
from tests.messages import refuses

SCHEMA = """cf.Schema({
    "x": cf.Numeric(0, 1), "x2": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3), "age": cf.Integer(0, 100), "k": cf.Integer(0, 1),
    "g": cf.Categorical(["a", "b", "c"]), "sex": cf.Categorical(["m", "f"]), "smoker": cf.Categorical(["no", "yes"]),
})"""


def planned(method: str, privacy: str = "cf.GDP(1.0)", more: str = "") -> str:
    return f"cf.plan({method}, {SCHEMA}, {privacy}{more})"


def sharp(method: str, wish: str) -> str:
    return f"cf.plan({method}, {SCHEMA}, n=5_000, {wish})"


def asked(verb: str, column: str, privacy: str = "cf.GDP(1.0)") -> str:
    return (
        f"cf.intervals.{verb}(cf.read({SCHEMA}.sample(400, seed=1), {SCHEMA}), {column!r}, privacy={privacy}, ledger=None, "
        "noise=SimulatedNoise(1))"
    )


# (a call that is refused, which of the pieces of advice in its message is followed)
CASES = [
    # what the issue names
    (planned("cf.regression.LeastSquares('y ~ 0 + x')"), 0),
    (planned("cf.regression.LeastSquares('y ~ 0 + x')"), 1),
    (planned("cf.regression.LeastSquares('y ~ x + g - 1')"), 0),
    (planned("cf.regression.Logistic('k ~ 0 + x')"), 0),
    (planned("cf.regression.Logistic('k ~ 0 + x', link='probit')"), 0),
    (planned("cf.regression.Poisson('age ~ -1 + x')"), 0),
    (planned("cf.tables.Counts('g')"), 0),
    (planned("cf.tables.Means('x ~ g', inference='sample')"), -1),
    # settings
    (planned("cf.regression.LeastSquares('y ~ x', limit='sharp')"), -1),
    (planned("cf.regression.SSP('y ~ x', cov='strong')"), -1),
    (planned("cf.regression.Logistic('k ~ x', link='cauchit')"), -1),
    (planned("cf.tables.Quantiles('x', bins=1)"), 0),
    # how sharp it must be
    (sharp("cf.tables.Counts('g', inference='dataset')", "cv='2%'"), 0),
    (sharp("cf.tables.Counts('g', inference='dataset')", "cv={'g': 0}"), 0),
    (sharp("cf.tables.Quantiles('x ~ g')", "margin={'mean': 0.1}"), 0),
    (sharp("cf.tables.Shares('g', inference='dataset')", "cv={'count': 0.1}"), 0),
    (sharp("cf.tables.Counts('g', inference='dataset')", "margin={'count': .001}"), 0),
    (sharp("cf.tables.Counts('g', inference='population')", "cv=1e-5"), 0),
    (sharp("cf.tables.Counts('g', inference='population')", "margin={'count': .5, 'a': 3000}"), 0),
    (f"cf.plan(cf.tables.Counts('g', inference='dataset'), {SCHEMA}, margin={{'count': 50}})", 0),
    # what a public door is given in place of a method or a schema
    (f"cf.plan('y ~ x', {SCHEMA}, cf.GDP(1.0))", 0),
    (f"cf.plan(cf.regression.LeastSquares, {SCHEMA}, cf.GDP(1.0))", 0),
    # columns
    ("cf.Numeric(3, 1)", 0),
    ("cf.Numeric(0, float('nan'))", 0),
    ("cf.Integer(0, 'a')", 0),
    ("cf.Numeric(0, 10, on_missing='mean')", 0),
    ("cf.Numeric(0, 10, steps=1)", 0),
    ("cf.Numeric(0, 10, typical=(5, 20))", 0),
    ("cf.Categorical(['a', 'b'], typical={'a': 1})", 0),
]


def made(call: str) -> Any:
    return eval(call, {"cf": cf, "SimulatedNoise": SimulatedNoise})


@pytest.mark.parametrize(
    ("call", "place"), CASES, ids=[f"{call.replace(SCHEMA, 'schema')}-{place}" for call, place in CASES]
)
def test_who_follows_a_refusal_literally_is_not_refused_again(call: str, place: int) -> None:
    with pytest.raises(ConfideError) as refused:
        made(call)
    made(followed(call, str(refused.value), place))


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("write LeastSquares(formula, target='robust')", "LeastSquares takes no target"),
        ("write cf.regression.LeastCubes('y ~ x')", "there is no cf.regression.LeastCubes"),
        ("declare it as cf.Numeric(3, 1)", "is refused"),
        ("write cf.tables.counts('g', data, inference='dataset', ...)", ""),
        ("a log(x) of y, cut(age, 40) or table.diff('g')", ""),
    ],
)
def test_advice_that_nobody_can_follow_is_found(message: str, wrong: str) -> None:
    assert wrong in checked(message) and bool(wrong) == bool(checked(message))


@pytest.mark.parametrize("verb", ["proportion", "mean", "difference"])
def test_the_first_call_of_an_interval_is_answered(verb: str) -> None:
    """A schema says nothing of missing values, and nobody named a relation: a table answers the same; under substitution a posterior."""
    column = {"proportion": "smoker", "mean": "x", "difference": "smoker ~ sex"}[verb]
    found = made(asked(verb, column))
    assert found.status == "valid" and np.isfinite(found.conf_int().to_numpy()).all()
    found = made(asked(verb, column, "cf.GDP(1.0, relation='substitute')"))
    assert found.status == "valid" and np.isfinite(found.conf_int().to_numpy()).all()
    pure = made(asked(verb, column, "cf.PureDP(1.0)")) if verb != "difference" else found
    assert pure.status == "valid"


def test_public_doors_tell_the_call_that_works() -> None:
    schema = made(SCHEMA)
    data, line = cf.read(schema.sample(50, seed=1), schema), cf.regression.LeastSquares("y ~ x")
    with refuses(ConfideError):
        cf.plan(line, data, cf.GDP(1.0))
    for given in ({"x": cf.Numeric(0, 1)}, schema.sample(50, seed=1), None):
        with refuses(ConfideError) as refused:
            cf.plan(line, given, cf.GDP(1.0))
        advised = made(next(codes(str(refused.value))))
        cf.plan(line, advised, cf.GDP(1.0))
    with refuses(ConfideError):
        cf.release("y ~ x", data, cf.GDP(1.0), ledger=None)
    release = cf.release(line, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    with refuses(ConfideError):
        cf.verify("release.json", None)
    for ledger in (None, "ledger.db"):
        with refuses(ConfideError):
            cf.verify(release, ledger)
    for path in (3, data):
        with refuses(ConfideError):
            cf.synthesis.refit(path)


def test_all_that_a_schema_s_file_leaves_open_is_told_at_once() -> None:
    """Bounds of a column that turned out to be categorical are no misspelled keys: they are lines to delete."""
    text = """[columns.a]
kind = "categorical"
low = "?"
high = "?"
[columns.b]
kind = "numeric"
low = "?"
high = 1
[columns.c]
kind = "integer"
low = 0
high = 3
levels = ["?"]
"""
    with pytest.raises(ConfideError) as refused:
        cf.Schema.from_toml(text)
    told = str(refused.value)
    lines = {name: re.findall(rf"\[columns.{name}\].*?(?:write a line such as|delete)   (.*)", told) for name in "abc"}
    assert all(lines.values()), told
    for line in [one for own in lines.values() for gone in own for one in gone.split(" and ")]:
        text = text.replace(line + "\n", "", 1)
    text = text.replace('low = "?"\n', lines["b"][0] + "\n").replace("[columns.b]", lines["a"][0] + "\n[columns.b]")
    assert cf.Schema.from_toml(text).names == ("a", "b", "c")


# reasons of results -----------------------------------------------------------------------------------------------------


def fitted(formula: str, method: Any, mu: float, seed: int, same: bool) -> Any:
    g = np.random.default_rng(seed)
    x = g.uniform(0, 1, 3_000)
    frame = {
        "x": x,
        "x2": x if same else np.full(3_000, 0.5),
        "y": x + g.normal(0, 0.3, 3_000),
        "k": (g.random(3_000) < x) * 1,
    }
    frame |= {"v": g.poisson(1 + x)}
    schema = cf.Schema(
        {
            "x": cf.Numeric(0, 1),
            "x2": cf.Numeric(0, 1),
            "y": cf.Numeric(-1, 3),
            "k": cf.Integer(0, 1),
            "v": cf.Integer(0, 9),
        }
    )
    release = cf.release(method(formula), cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))
    return cf.infer(release)


LINES = [("y ~ x + x2", cf.regression.LeastSquares), ("y ~ x + x2", cf.regression.SSP), ("k ~ x + x2", cf.regression.Logistic),
         ("v ~ x + x2", cf.regression.Poisson)]  # fmt: skip


@pytest.mark.parametrize(("formula", "method"), LINES)
def test_two_equal_columns_are_named(formula: str, method: Any) -> None:
    told = [fitted(formula, method, 1.0, seed, same=True) for seed in range(4)]
    assert all("direction" not in one.reason for one in told)
    named = [one for one in told if one.status != "valid"]
    # of counts another cause may be named first: means beyond what is declared, where such a line leads
    assert any(re.search(r"x2? and x2? (?:apart|are nearly the same)", one.reason) for one in named)


@pytest.mark.parametrize(("formula", "method"), LINES[:1] + LINES[2:])
@pytest.mark.parametrize("mu", [1.0, 100.0])
def test_a_constant_feature_is_named_and_no_bounds_without_room_are_advised(
    formula: str, method: Any, mu: float
) -> None:
    told = [fitted(formula, method, mu, seed, same=False) for seed in range(2)]
    for one in told:
        assert "whether x2 varies at all: leave it out" in one.reason, one.reason
        for low, high in re.findall(r"declare it within \[([0-9.]+), ([0-9.]+)\]", one.reason):
            assert float(high) - float(low) > 2**-19, "two steps of the grid are no bounds"


# every message, as it is written --------------------------------------------------------------------------------------

SOURCE = Path(cf.__file__).parent
_BARE = re.compile(r"\b(?:write|ask for|declare it as) ([A-Z]\w*)\(")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of a file that are no docstring, their holes left open."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, _DOCUMENTED) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(one.value if isinstance(one, ast.Constant) else "..." for one in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_what_a_message_tells_to_write_needs_no_import_but_confide() -> None:
    """ "write SSP(...)" is no Python after `import confide as cf`; cf.regression.SSP(...) is."""
    bare = [
        f"{place.relative_to(SOURCE)}:{line}: {name}"
        for place in SOURCE.rglob("*.py")
        if place.parts[len(SOURCE.parts)] != "cli"
        for line, text in messages(ast.parse(place.read_text(encoding="utf-8")))
        for name in _BARE.findall(text)
        if isinstance(public(name), type)
    ]
    assert not bare, bare
