"""Quantiles under pure epsilon: bins, their edges, and the hulls of both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import confide as cf
from confide.aggregates.distributions.cumulative_counts import CumulativeCounts
from confide.aggregates.distributions.fitted_bins import Fine
from confide.aggregates.distributions.tree_counts import FinePlace
from confide.errors import ReleaseError
from confide.methods.intervals.pure_quantiles import QuantileAbout
from confide.protocol import seal


def test_numbers_of_all_nodes_follow_from_fine_bins_and_edges_hold_their_values() -> None:
    """Of every value of a column, in uneven bins of fine bins of three values, the last one of what is left: the node that the map says."""
    schema = cf.Schema({"x": cf.Numeric(-1, 3, steps=1_000)})
    place = FinePlace(schema, "x", Fine(1_000, 3))
    about = QuantileAbout(place, tuple(range(256)))
    starts = np.concatenate([np.arange(200), 200 + 2 * np.arange(56)])
    codes = np.arange(1_000.0)
    values, edges = np.linspace(-1, 3, 1_000), about.edges(starts)
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
    class Altered(dict):  # type: ignore[type-arg]
        public = SimpleNamespace()

    about = cf.intervals.PureQuantiles("x").about(cf.Schema({"x": cf.Numeric(-4, 4)}))
    noisy = SimpleNamespace(values=np.zeros(272), variance=1.0, decode=lambda: np.zeros(272))
    held = Altered(tree=noisy)
    held.public = {"starts": np.arange(256)}
    assert len(about.read(held).edges) == 257  # type: ignore[arg-type]
    for starts in (np.zeros(256), np.arange(1, 257), np.arange(255), np.append(np.arange(255), about.place.cells)):
        held.public = {"starts": starts}
        with pytest.raises(ReleaseError, match="altered"):
            about.read(held)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_what_both_rounds_tell_of_a_record_is_within_epsilon_and_comes_up_to_it(relation: str) -> None:
    """The log likelihood ratio of whole releases on neighbours; the second round's bins follow from noisy numbers alone."""
    schema, method = cf.Schema({"x": cf.Numeric(-4, 4)}), cf.intervals.PureQuantiles("x", (0.1, 0.9))
    plan = cf.plan(method, schema, cf.PureDP(1.0, relation=relation))
    x, about = np.random.default_rng(3).normal(size=40), method.about(schema)
    pair = (np.append(x, 3.9), np.append(x, -3.9) if relation == "substitute" else x)
    sources = [cf.read({"x": values}, schema) for values in pair]
    fine, reached = [source.aggregate(plan.statistic("fine"))[0] for source in sources], []
    noise = cf.noise.SimulatedNoise(5)
    for run in range(20):
        release = seal(method, sources[run % 2], plan, noise)
        starts = about.starts(release["outline"], method.q)  # type: ignore[arg-type]
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
