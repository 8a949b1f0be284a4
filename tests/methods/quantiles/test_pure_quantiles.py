"""Quantiles under pure epsilon: bins, their edges, and the hulls of both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.messages import refuses

import confide as cf
from confide.core import seal
from confide.errors import PlanError, ReleaseError
from confide.methods.quantiles.draw import TreeRounds
from confide.methods.quantiles.fitted_bins import Fine
from confide.methods.quantiles.sums import FinePlace, TreeCounts
from confide.noise import SimulatedNoise
from confide.sums.cells.moments import Measure
from confide.sums.distributions.cumulative import CumulativeCounts
from confide.testing import check_method


class _Held(dict[str, Any]):
    public: dict[str, Any]


def _held(starts: Any) -> Any:
    """A release of an empty tree whose bins start there."""
    held = _Held(tree=SimpleNamespace(variance=1.0, decode=lambda: np.zeros(272)))
    held.public = {"starts": starts}
    return held


def test_numbers_of_all_nodes_follow_from_fine_bins_and_edges_hold_their_values() -> None:
    """Of every value of a column, in uneven bins of fine bins of three values, the last one of what is left: the node that the map says."""
    schema = cf.Schema({"x": cf.Numeric(-1, 3, steps=1_000)})
    place = FinePlace(schema, "x", Fine(1_000, 3))
    about = TreeRounds(Measure.of("x", schema), place, tuple(range(256)))
    starts = np.concatenate([np.arange(200), 200 + 2 * np.arange(56)])
    codes = np.arange(1_000.0)
    values, edges = np.linspace(-1, 3, 1_000), np.array(about.read(_held(starts)).bins.edges)
    bins = np.searchsorted(starts, codes // 3, side="right") - 1
    assert (edges[bins] <= values).all() and (values <= edges[bins + 1]).all()
    assert np.allclose(edges[1:-1], -1 + (3 * starts[1:] - 0.5) * 4 / 999)
    fine = np.bincount(place(codes[None])[0].astype(int) - 1, minlength=place.cells)
    found = about.first.of_fine(fine, starts).astype(int)
    assert (found[16:] == np.bincount(bins, minlength=256)).all()
    assert (found[:16] == np.bincount(bins // 16, minlength=16)).all()


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("q", [0.02, 0.5, 0.98])
def test_hulls_without_noise_are_those_of_a_binomial(q: float, alpha: float) -> None:
    """One record in each of 1,000 bins: the ends are the binomial's tails, by a record."""
    own = CumulativeCounts()
    own.counts, own.unit, own.part = np.ones(1_000), 1.0, 1.0
    own.strategy = SimpleNamespace(centred=lambda q: np.zeros(1_001), total=0.0)  # type: ignore[assignment]
    first, last = own.hull(q, alpha)
    low, high = binom.ppf([alpha / 2, 1 - alpha / 2], 1_000, q)
    assert abs(first + 1 - low) <= 1 and abs(last - high) <= 1


def test_a_release_whose_bins_do_not_rise_is_refused() -> None:
    about = TreeRounds.of(Measure.of("x", cf.Schema({"x": cf.Numeric(-4, 4)})))
    assert about.read(_held(np.arange(256))).bins.size == 256
    for starts in (np.zeros(256), np.arange(1, 257), np.arange(255), np.append(np.arange(255), about.place.cells)):
        with refuses(ReleaseError):
            about.read(_held(starts))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_what_both_rounds_tell_of_a_record_is_within_epsilon_and_comes_up_to_it(relation: str) -> None:
    """The log likelihood ratio of whole releases on neighbours; the second round's bins follow from noisy numbers alone."""
    schema, method = cf.Schema({"x": cf.Numeric(-4, 4)}), cf.tables.Quantiles("x", quantiles=(0.1, 0.9))
    plan = cf.plan(method, schema, cf.PureDP(1.0, relation=relation))
    x, about = np.random.default_rng(3).normal(size=40), TreeRounds.of(Measure.of("x", schema))
    pair = (np.append(x, 3.9), np.append(x, -3.9) if relation == "substitute" else x)
    sources = [cf.read({"x": values}, schema) for values in pair]
    fine, reached = [source.aggregate(plan.statistic("fine"))[0] for source in sources], []
    noise = cf.noise.SimulatedNoise(5)
    for run in range(20):
        release = seal(method, sources[run % 2], plan, noise)
        starts = about.starts(release["outline"], method.quantiles)  # type: ignore[arg-type]
        assert (release.public["starts"] == starts).all()
        told = reach = 0.0
        for name, own, at in (("outline", about.first, np.array(about.outline)), ("tree", about.second, starts)):
            one, other = (own.of_fine(counts, at).astype(float) for counts in fine)
            noisy, scale = release[name].values.astype(float), float(plan.spend(name).scale)
            told += (np.abs(noisy - other) - np.abs(noisy - one)).sum() / scale
            reach += np.abs(other - one).sum() / scale
        assert abs(told) <= reach * (1 + 1e-9) <= 1 + 1e-8
        reached.append(reach)
    assert max(reached) == pytest.approx(1.0)


@pytest.mark.parametrize(("bound", "relation"), [(4, "add-remove"), (80, "substitute")])
def test_pure_quantiles_cover_and_are_narrow_in_wide_bounds_too(bound: float, relation: str) -> None:
    """40 replications: a 95 % interval that holds the truth less than 31 times of 40 fails; a valid one does once in 10^5."""
    schema, q = cf.Schema({"x": cf.Numeric(-bound, bound)}), (0.1, 0.5, 0.9)
    truth, hits, width, plain = np.array([-1.28155, 0.0, 1.28155]), np.zeros(3), np.zeros(3), np.zeros(3)
    for seed in range(40):
        x = np.random.default_rng(seed).normal(size=10_000)
        release = cf.release(
            cf.tables.Quantiles("x", quantiles=q),
            cf.read({"x": x}, schema),
            cf.PureDP(1.0, relation=relation),
            ledger=None,
            noise=SimulatedNoise(seed),
        )
        frame = cf.infer(release).to_frame()
        hits += (frame.ci_low <= truth) & (truth <= frame.ci_high)
        width += frame.ci_high - frame.ci_low
        half = 1.96 * np.sqrt(np.array(q) * (1 - np.array(q)) / 10_000)
        plain += np.quantile(x, np.array(q) + half) - np.quantile(x, np.array(q) - half)
    assert (hits >= 31).all() and (width <= 1.5 * plain).all()


def test_ends_that_are_the_declared_bound_alone_are_said() -> None:
    """300 records: noise may be all that lies below the .02 quantile, and of 6 records it hides everything."""
    schema = cf.Schema({"x": cf.Numeric(-4, 4)})

    def asked(n: int, q: tuple[float, ...]) -> object:
        data = cf.read({"x": np.random.default_rng(1).normal(size=n)}, schema)
        return cf.tables.quantiles(
            "x", data, inference="population", quantiles=q, privacy=cf.PureDP(2.0), ledger=None, noise=SimulatedNoise(2)
        )

    some = asked(300, (0.02, 0.5))
    frame = some.to_frame()
    assert some.status == "partial" and list(frame["flags"]) == ["at_declared_bound", ""] and frame.ci_low.iloc[0] == -4
    assert "the low end of 0.02 is the declared bound" in some.reason and "records" in some.reason
    assert "at_declared_bound" in str(some)
    assert asked(6, (0.02, 0.5)).status == "no_information"
    # at 99.9 % the same end of more records is one, at 95 % it is not
    more = asked(600, (0.02, 0.5))
    assert more.status == "valid" and "at_declared_bound" not in str(more)
    far = more.to_frame(alpha=0.001)
    assert list(far["flags"]) == ["at_declared_bound", ""] and far.ci_low.iloc[0] == -4


def test_ends_that_are_the_declared_bound_alone_are_said_under_gdp_too() -> None:
    schema = cf.Schema({"x": cf.Numeric(-4, 4), "t": cf.Categorical(["f", "m"])})
    g = np.random.default_rng(1)

    def asked(n: int, formula: str = "x") -> object:
        data = cf.read({"x": g.normal(size=n), "t": g.choice(["f", "m"], n)}, schema)
        return cf.tables.quantiles(
            formula,
            data,
            inference="population",
            quantiles=(0.01, 0.5),
            privacy=cf.GDP(1.0),
            ledger=None,
            noise=SimulatedNoise(2),
        )

    # three records lie below the quantile: so in all of 200 releases, and in one of four its noise has a flag too
    some = asked(300)
    flags = some.to_frame()["flags"]
    assert some.status == "partial" and flags.str.contains("at_declared_bound").tolist() == [True, False]
    assert some.conf_int()[0].iloc[0] == -4 and some.params.notna().all()
    assert "the low end of 0.01 is the declared bound" in some.reason and "records" in some.reason
    assert "at_declared_bound" in str(some) and asked(20_000).status == "valid"
    groups = asked(300, "x ~ t")
    assert groups.status == "partial" and "the low end of t=f, 0.01" in groups.reason
    # a quantile that is at the last value for certain has no end that records could move
    ones = cf.Schema({"k": cf.Integer(0, 9)})
    top = cf.read({"k": np.where(np.arange(100) % 10, 9, 0)}, ones)
    found = cf.tables.quantiles(
        "k", top, inference="population", quantiles=0.95, privacy=cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)
    )
    assert found.status == "valid" and found.conf_int().to_numpy().tolist() == [[9, 9]]


def test_an_atom_at_a_bound_is_no_open_end() -> None:
    """Half of the records are 0, the lower bound, as the release says: the .1 quantile is there, and nothing is flagged."""
    schema = cf.Schema({"x": cf.Numeric(0, 100)})
    x = np.where(np.arange(4_000) % 2, 0.0, np.random.default_rng(1).uniform(0, 100, 4_000))
    found = cf.tables.quantiles(
        "x",
        cf.read({"x": x}, schema),
        inference="population",
        quantiles=0.1,
        privacy=cf.PureDP(1.0),
        ledger=None,
        noise=SimulatedNoise(2),
    )
    assert found.status == "valid" and found.to_frame().ci_low.iloc[0] == 0 and found.to_frame().ci_high.iloc[0] < 1


def test_quantiles_of_whole_values_are_whole() -> None:
    generator = np.random.default_rng(1)
    for most, n in ((9, 3_000), (200, 3_000), (5_000, 3_000)):
        schema = cf.Schema({"x": cf.Integer(0, most)})
        data = cf.read({"x": generator.integers(0, most + 1, n)}, schema)
        found = cf.tables.quantiles(
            "x",
            data,
            inference="population",
            quantiles=(0.2, 0.5),
            privacy=cf.PureDP(2.0),
            ledger=None,
            noise=SimulatedNoise(3),
        )
        numbers = found.to_frame()[["estimate", "ci_low", "ci_high"]].to_numpy()
        assert (numbers == np.round(numbers)).all() and (numbers[:, 1] <= numbers[:, 2]).all()


def test_a_record_moves_one_node_of_each_level() -> None:
    """Over all pairs of records and any bins: the sensitivities are reached and never passed."""
    schema = cf.Schema({"x": cf.Integer(0, 39, on_missing="drop")})
    place = FinePlace(schema, "x", Fine(40, 1))
    for starts in (tuple(range(16)), (0, 1, 2, 30, 31, 39), tuple(range(0, 40, 3))):
        own = TreeCounts(place, (4, 4), starts)
        codes = [np.array([[-1.0]])] + [np.array([[float(k)]]) for k in range(40)]
        values = [own.value(own.update(own.zero(), one)) for one in codes]
        apart = np.array([[np.abs(a - b).sum() for b in values] for a in values], dtype=float)
        assert apart[0].max() == own.sensitivity_l1("add-remove") == 2
        assert apart.max() == own.sensitivity_l1("substitute") == 4
        rows = np.concatenate([place(one) for one in codes], axis=1)
        said = np.array([own.moved_squared(rows[:, k], rows) for k in range(41)])
        assert (said == apart).all()
        counts = np.bincount(np.arange(40) % 7, minlength=40)
        assert (
            own.of_fine(counts, np.array(starts)) == sum(k * v for k, v in zip(counts, values[1:], strict=True))
        ).all()


def test_the_contract_of_pure_quantiles() -> None:
    schema = cf.Schema({"x": cf.Numeric(0.5, 2.5)})
    assert check_method(
        cf.tables.Quantiles("x", quantiles=(0.25, 0.5)), schema, privacy=cf.PureDP(1.0), replications=10
    ).ok


@pytest.mark.parametrize("privacy", [cf.GDP(2.0), cf.PureDP(2.0)], ids=str)
def test_a_subgroup_is_of_the_records_that_a_condition_names(privacy: cf.Guarantee) -> None:
    data = cf.read({"x": np.random.default_rng(1).normal(size=3_000)}, cf.Schema({"x": cf.Numeric(-4, 4)}))
    asked = {"inference": "population", "privacy": privacy, "ledger": None, "noise": SimulatedNoise(1)}
    found = cf.tables.quantiles("x", data, where="x > 0", quantiles=0.5, **asked)
    assert found.conf_int()[0].iloc[0] > 0.5
    # any other quantile is read off the same release
    assert found.quantile(0.9)["estimate"].iloc[0] > 1.2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"formula": "x ~ g"}, "of all records"),
        ({"formula": "exp(x)"}, "a column as it stands"),
        ({"formula": "x", "bins": 20}, "got 'x' and bins; write cf.tables.Quantiles('x')"),
        ({"formula": "x", "inference": "dataset"}, "write inference='population'"),
    ],
)
def test_what_pure_epsilon_has_not_is_refused_and_gaussian_noise_has_it(asked: dict[str, object], words: str) -> None:
    schema = cf.Schema({"x": cf.Numeric(-4, 4), "g": cf.Categorical(["a", "b"])})
    method = cf.tables.Quantiles(**asked)  # type: ignore[arg-type]
    with pytest.raises(PlanError) as error:
        cf.plan(method, schema, cf.PureDP(1.0))
    assert words in str(error.value) and "cf.GDP(1.0)" in str(error.value)
    cf.plan(method, schema, cf.GDP(1.0))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("kind", [cf.GDP, cf.PureDP])
def test_no_value_of_a_record_raises(kind: Any, relation: str) -> None:
    """Missing, infinite, far out of bounds: the schema's public rule takes each."""
    strange = np.tile([np.nan, np.inf, -np.inf, 1e300, -1e300], 40)
    data = cf.read({"x": strange}, cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")}))
    asked = {"inference": "population", "privacy": kind(1.0, relation=relation), "ledger": None}
    found = cf.tables.quantiles("x", data, noise=SimulatedNoise(1), **asked)
    assert np.isfinite(found.conf_int().to_numpy()).all()
