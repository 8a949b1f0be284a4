"""What is refused before any record is read, and charged nothing; and what is never refused: records and releases as they come."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import ConfideError
from confide.noise import SimulatedNoise

I = cf.intervals  # noqa: E741

SCHEMA = cf.Schema(
    {
        "s": cf.Categorical(["no", "yes"], on_missing="no"),
        "t": cf.Categorical(["f", "m"], on_missing="f"),
        "g": cf.Categorical(["a", "b", "c"], on_missing="a"),
        "v": cf.Integer(0, 25, on_missing=0),
        "x": cf.Numeric(-4, 4, on_missing="midpoint"),
        "y": cf.Numeric(-2, 2, on_missing="midpoint"),
    },
    dataset="survey",
)
VERBS = [
    ("proportion", "s"),
    ("proportion", "g"),
    ("mean", "x"),
    ("variance", "x"),
    ("slope", "y ~ x"),
    ("difference", "s ~ t"),
]


def _data(n: int = 200) -> Any:
    return cf.read(SCHEMA.sample(n, seed=1), SCHEMA)


def _mean(**settings: Any) -> Any:
    return I.mean(_data(), "x", **{"privacy": cf.GDP(1.0, relation="substitute"), "ledger": None, **settings})


def _blocks(blocks: int, n: int) -> Any:
    return cf.intervals.block_posterior(
        lambda table, generator: [float(table[:, 0].mean())] * 2,
        _data(n),
        parameters={"mean": (-4, 4)},
        privacy=cf.PureDP(20.0),
        ledger=None,
        blocks=blocks,
        seconds=2,
        n=n,
        progress=False,
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param(lambda book: cf.Integer(), "low", id="bounds left out"),
        pytest.param(lambda book: cf.Numeric(0, inf), "finite", id="a bound that is not finite"),
        pytest.param(lambda book: cf.Numeric(nan, 1), "finite", id="a bound that is no number"),
        pytest.param(lambda book: cf.Numeric(4, -4), "low", id="bounds reversed"),
        pytest.param(lambda book: _mean(privacy=cf.PureDP(0.0), ledger=book), "above 0", id="epsilon = 0"),
        pytest.param(lambda book: _mean(privacy=cf.PureDP(-1.0), ledger=book), "above 0", id="epsilon < 0"),
        pytest.param(lambda book: _mean(privacy=cf.GDP(0.0), ledger=book), "above 0", id="mu = 0"),
        pytest.param(lambda book: _mean(privacy=cf.GDP(nan), ledger=book), "mu", id="mu is no number"),
        pytest.param(lambda book: _mean(ledger=book, epsilon=1.0), "epsilon", id="two budgets"),
        pytest.param(lambda book: _mean(privacy=None, ledger=book), "privacy", id="no budget"),
        pytest.param(lambda book: _mean().conf_int(alpha=95), "between 0 and 1", id="a level of -94"),
        pytest.param(lambda book: _mean().conf_int(alpha=0.0), "between 0 and 1", id="a level of 1"),
        pytest.param(lambda book: I.Slope("y ~ x", prior="reference"), "infinite mass", id="an improper prior"),
        pytest.param(lambda book: I.Proportion("s", prior="beta(0, 0)"), "above 0", id="an improper beta"),
        pytest.param(
            lambda book: I.MeanAndVariance("v", kind="poisson", prior="gamma(0, 0)"), "above 0", id="an improper gamma"
        ),
        pytest.param(lambda book: _blocks(9, 2_000), "from 10", id="fewer than 10 blocks"),
        pytest.param(lambda book: _blocks(100, 400), "fewer than 5", id="more blocks than n/5"),
        pytest.param(
            lambda book: _mean(privacy=cf.GDP(1.0, relation="add-remove"), ledger=book, kind="credible"),
            "public number of records",
            id="n is not public",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_and_charged_nothing(
    tmp_path: Path, asked: Callable[[Any], Any], words: str
) -> None:
    budget = cf.GDP(1.0, relation="substitute")
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=budget)
    before = book.verify()
    with pytest.raises((ConfideError, TypeError)) as error:
        asked(book)
    assert words in str(error.value)
    assert book.verify() == before


@pytest.mark.parametrize(
    "privacy", [cf.GDP(1.0, relation="substitute"), cf.PureDP(1.0, relation="substitute")], ids=str
)
@pytest.mark.parametrize(("verb", "column"), VERBS, ids=[verb for verb, _ in VERBS])
def test_no_value_of_a_record_raises(verb: str, column: str, privacy: Any) -> None:
    """Missing, infinite, far out of bounds, no level: the schema's public rule takes each."""
    frame = SCHEMA.sample(200, seed=1)
    strange = np.tile([nan, inf, -inf, 1e300, -1e300], 40)
    frame = frame.assign(x=strange, y=strange[::-1], v=strange, s="perhaps", g=None, t=["f", None] * 100)
    asked = {"privacy": privacy, "ledger": None, "noise": SimulatedNoise(1)}
    found = getattr(I, verb)(cf.read(frame, SCHEMA), column, **asked)
    assert np.isfinite(found.conf_int().to_numpy()).all() or found.status == "not_identified"


@pytest.mark.parametrize("kind", ["credible", "confidence"])
@pytest.mark.parametrize("pure", [True, False])
def test_releases_that_no_records_could_give_are_read_as_they_are(pure: bool, kind: str) -> None:
    """Counts outside 0 to n, negative second moments, indefinite products: with next to no budget noise is all there is."""
    size = 0.01
    privacy = cf.PureDP(size, relation="substitute") if pure else cf.GDP(size, relation="substitute")
    data, outside, flags = _data(30), 0, set()
    for seed in range(4):
        for method in (
            I.Proportion("s"),
            I.Proportion("g"),
            I.MeanAndVariance("v", kind="poisson"),
            I.MeanAndVariance("x"),
            I.Slope("y ~ x"),
        ):
            if kind not in method.kinds or (method.name == "slope" and seed):  # Gibbs's sampler takes its time
                continue
            release = cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(seed))
            asked = "kind" in method.asks and method.kind != "poisson"
            found = cf.infer(release, kind=kind if asked else None)
            flags |= set(found.flags)
            outside += method.name == "proportion" and not 0 <= release["sums"].decode()[0] <= 30
            ends = found.conf_int().to_numpy()
            if found.status == "not_identified":
                assert method.name == "slope"
                continue
            assert np.isfinite(ends).all() and (ends[:, 0] <= ends[:, 1]).all()
    assert outside >= 2
    if kind == "credible":
        assert {"prior_dominates", "at_parameter_bound"} & {str(flag) for flag in flags}


@pytest.mark.parametrize("level", [4.7, -0.5, "abc", 26, nan, inf, [1]])
def test_a_level_of_a_whole_number_column_is_one_of_its_values(level: Any) -> None:
    """A level between two values was taken for the one below, and a word ended in an error without a type."""
    with refuses(cf.errors.PlanError):
        cf.plan(I.Proportion("v", level=level), SCHEMA, cf.PureDP(1.0), n=200)
    assert cf.plan(I.Proportion("v", level="4"), SCHEMA, cf.PureDP(1.0), n=200).target == "share of records with v=4"


def test_results_say_which_kind_they_are_and_what_a_difference_is_of() -> None:
    """Words on what is estimated and covered are those of the answer, not of all answers that a release could give."""
    asked: dict[str, Any] = {"ledger": None, "noise": SimulatedNoise(1)}
    share = I.proportion(_data(), "s", privacy=cf.PureDP(1.0, relation="substitute"), **asked)
    limits = I.proportion(_data(), "s", privacy=cf.PureDP(1.0, relation="substitute"), kind="confidence", **asked)
    assert share.intervals_for.endswith("exact under the prior") and limits.intervals_for.endswith("at every share")
    far = cf.GDP(5.0, relation="add-remove")
    assert I.difference(_data(), "x ~ t", privacy=far, **asked).target.startswith("differences of means of x")
    shares = I.difference(_data(), "s ~ t", privacy=far, **asked)
    assert shares.target == "differences of shares of records with s=yes: each level of t less the first"
    assert I.mean(_data(), "x", privacy=far, **asked).target == "mean of x, clipped to its bounds"


def test_the_picture_of_levels_has_no_line_at_zero_and_a_share_no_unit() -> None:
    asked: dict[str, Any] = {"ledger": None, "noise": SimulatedNoise(1)}
    schema = cf.Schema({"age": cf.Numeric(15, 50, on_missing="midpoint"), "s": SCHEMA["s"]})
    data = cf.read(schema.sample(2_000, seed=1), schema)
    share = I.proportion(data, "s", privacy=cf.GDP(1.0, relation="add-remove"), **asked)
    assert share.plot().get_xlabel() == "share"
    difference = I.difference(data, "age ~ s", privacy=cf.GDP(1.0, relation="add-remove"), **asked)
    assert 0 in [line.get_xdata()[0] for line in difference.plot().lines]
