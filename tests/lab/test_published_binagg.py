"""The published algorithms: what they spend, the attack they fail, the estimator that stays biased, closed cells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import confide as cf
from confide.testing import codes_of
from confide_lab.aggregates.cell_sums import CellRows
from confide_lab.experiments import load
from confide_lab.methods.binagg import BinAgg
from confide_lab.published.binagg import ERRATA, bin_sums, binagg, line, privtree, shares, spent, synthetic_rows

UNIT = np.array([[0.0, 1.0]] * 2)


def test_each_is_marked() -> None:
    for one in (privtree, bin_sums, binagg, synthetic_rows):
        assert one.guarantee is None and one.claim and one.errata
    assert len(ERRATA) == 15 and [text.split(":")[0] for text in ERRATA] == [f"E{i}" for i in range(1, 16)]


@pytest.mark.parametrize(("d", "mu"), [(2, 1.150), (4, 1.402), (5, 1.512), (10, 1.973), (27, 3.059), (81, 5.169)])
def test_what_the_literal_noise_spends(d: int, mu: float) -> None:
    assert spent(d, shares(1.0)) == pytest.approx(mu, abs=1e-3)
    assert spent(d, shares(1.0), "corrected") == pytest.approx(1.0)


def _power(shift: float, draws: int = 100_000) -> float:
    g = np.random.default_rng(5)
    threshold = np.quantile(g.standard_normal(draws), 0.99)
    return float((g.standard_normal(draws) + shift > threshold).mean())


def test_the_attack_breaks_the_literal_sums_and_not_ours() -> None:
    """False-positive rate .01, d = 10, mu = 1: at most .092 is allowed; the literal sums give .80."""
    d, allowed = 10, stats.norm.cdf(stats.norm.ppf(0.01) + 1)
    assert _power(np.sqrt(d)) == pytest.approx(0.80, abs=0.02)
    schema = cf.Schema({**{f"x{j}": cf.Numeric(0, 1) for j in range(d)}, "y": cf.Numeric(0, 1)})
    method = BinAgg("y ~ " + " + ".join(f"x{j}" for j in range(d)), force=True, clipping_check=False, tree="grid")
    plan = method.plan(schema, cf.GDP(1.0))
    pairs = list(method.worst_pairs(schema))
    rows = plan.statistic("cells").map
    assert isinstance(rows, CellRows)
    import pandas as pd

    found = rows(codes_of(cf.read(pd.DataFrame([one for pair in pairs for one in pair]), schema), rows))
    spend = plan.spend("cells")
    shift = float(np.sqrt((found**2).sum(axis=0)).max()) / (float(spend.scale) ** 0.5 * float(spend.step))
    assert 0.9 < shift <= 1.0
    assert _power(shift) <= allowed + 4 * np.sqrt(allowed / 100_000) + 0.002


def test_the_printed_estimator_is_the_naive_one() -> None:
    g, bins, each = np.random.default_rng(3), 20_000, 20
    beta, corner = np.array([1.0, 2.0]), g.integers(0, 32, size=(bins, 2)) / 32
    x = corner[:, None, :] + g.uniform(size=(bins, each, 2)) / 32
    sd = (corner + 1 / 32) * np.sqrt(2) / shares(1.0)[2]
    made = {
        "counts": np.full(bins, float(each)),
        "sums": x.sum(axis=1) + sd * g.standard_normal((bins, 2)),
        "labels": (x @ beta).sum(axis=1) + 13 * g.standard_normal(bins),
        "sd_sums": sd,
    }
    assert np.abs(line(made, estimator="corrected")["beta"] - beta).max() < 0.03
    assert line(made, estimator="paper")["beta"][1] < 1.96


def test_closed_cells_count_twice() -> None:
    x = np.repeat([[0.5, 0.5]], 400, axis=0)
    for closed in (False, True):
        g = np.random.default_rng(1)
        tree = privtree(x, g, bounds=UNIT, epsilon=1.0, depth=2, closed=closed)
        assert (sum(len(one) for one in tree["members"]) > 400) is closed


def test_the_square_root_is_a_choice_and_singular_bins_give_nan() -> None:
    g = np.random.default_rng(2)
    x = g.uniform(size=(2_000, 2))
    y = x @ [1.0, 2.0] + g.standard_normal(2_000)
    made = bin_sums(x, y, g, x_bounds=UNIT, y_bounds=(-3, 6))
    np.testing.assert_allclose(line(made)["se"] ** 2, line(made, root=False)["se"])
    none = bin_sums(x[:0], y[:0], g, x_bounds=UNIT, y_bounds=(-3, 6))
    assert np.isnan(line(none)["beta"]).all() or np.isfinite(line(none)["beta"]).all()


def test_records_of_algorithm_3_add_up_to_the_release() -> None:
    g = np.random.default_rng(4)
    x = g.uniform(size=(1_000, 2))
    y = x @ [1.0, 2.0] + g.standard_normal(1_000)
    made = synthetic_rows(x, y, g, x_bounds=UNIT, y_bounds=(-3, 6))
    np.testing.assert_allclose(made["x"].sum(axis=0), made["released"]["sums"].sum(axis=0), rtol=1e-9)
    assert made["y"].sum() == pytest.approx(made["released"]["labels"].sum())
    outside = ((made["x"] < 0) | (made["x"] > 1)).mean()
    assert outside > 0.02


def test_counts_scaled_to_the_exact_number_show_it() -> None:
    totals = []
    for n in (500, 501):
        g = np.random.default_rng(6)
        x = np.full((n, 2), 0.3)
        totals.append(bin_sums(x, x[:, 0], g, x_bounds=UNIT, y_bounds=(0, 1), exact_n=True)["counts"].sum())
    assert totals == pytest.approx([500, 501])


def test_a_tree_with_less_of_the_budget_has_fewer_bins() -> None:
    """At .77 of the tree's part of mu; what is spent is less too, and the noise of the sums is the same."""
    x = np.random.default_rng(7).uniform(size=(4_000, 2))
    bins, spending = [], []
    for part in (1.0, 0.77):
        made = [
            bin_sums(x, x[:, 0], np.random.default_rng(s), x_bounds=UNIT, y_bounds=(0, 1), tree_share=part)
            for s in range(10)
        ]
        bins.append(np.median([len(one["counts"]) for one in made]))
        spending.append(made[0]["spent"])
    assert bins[1] < 0.95 * bins[0] and spending[1] < spending[0]


@pytest.mark.parametrize("name", ["binagg.table2", "binagg.table6", "binagg.table7", "binagg.table8"])
def test_what_the_tables_leave_open_is_a_setting(name: str) -> None:
    """The stated mu of the tree comes first, stands in the letter's table, and other methods are run with it alone."""
    block = load(name).blocks[0]
    stated = block.open_settings["mu_bin"][0]
    letter = [one for one in block.layouts if one.reading == "letter"]
    assert stated == 0.189 and letter and all(one.where["mu_bin"] == (stated,) for one in letter)
    assert all(one.where["mu_bin"] != (stated,) for one in block.layouts if one.reading == "restored")
    if "ols" in block.methods:
        assert block.without is not None
        assert block.without({"mu_bin": 0.145}, "ols") and not block.without({"mu_bin": 0.145}, "binagg_literal")
