"""Clipped and unread values: each record in one number of each column, within 1% of the square of mu, told where it matters."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.audit import falsify_sensitivity
from confide.core import Allowance, leaves
from confide.core.lost_values import NAME, SHARE, ReadRows, Share, bounded_terms, facts_of, flags_of, lost_of
from confide.core.release import parts_agree
from confide.noise import SimulatedNoise
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema({"x": cf.Numeric(0, 10, missing=[-99]), "k": cf.Integer(0, 90), "g": cf.Categorical(["a", "b"])})
COLUMNS = SCHEMA.columns
LINE = cf.regression.LeastSquares("x ~ k + g", bounds="declared")
METHODS: dict[str, Any] = {
    "means": cf.tables.Means("x ~ g", inference="population"),
    "totals": cf.tables.Totals("x ~ g", inference="dataset"),
    "ratios": cf.tables.Ratios("x / k ~ g", inference="population"),
    "counts": cf.tables.Counts("g", inference="dataset"),
    "shares": cf.tables.Shares("g", inference="population"),
    "medians": cf.tables.Quantiles("x ~ g"),
    "table one": cf.tables.TableOne("x + k ~ g"),
    "line": LINE,
    "line of a factor": cf.regression.LeastSquares("x ~ g", bounds="declared"),
    "line in ranges": cf.regression.LeastSquares("x ~ k"),
    "shared sums": cf.regression.SSP("x + k ~ g", recenter=False),
    "logit": cf.regression.Logistic("g ~ x"),
    "poisson": cf.regression.Poisson("k ~ x"),
    "correlation": cf.tests.Correlation("x + k"),
    "ranks": cf.tests.MannWhitney("x ~ g"),
}


def frame(n: int = 8_000, **parts: float) -> pd.DataFrame:
    """Text cells, as a file has them. parts: of x, how many are what they are named."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, n).round(2).astype(str).astype(object)
    words = {"below": "-3", "above": "12", "unread": "3,5", "coded": "-99", "empty": ""}
    start = 0
    for name, part in parts.items():
        x[start : start + round(part * n)] = words[name]
        start += round(part * n)
    return pd.DataFrame(
        {"x": rng.permutation(x), "k": rng.integers(0, 91, n).astype(str), "g": rng.choice(["a", "b"], n)}
    )


def released(method: Any, rows: pd.DataFrame, schema: cf.Schema = SCHEMA, mu: float = 1.0, noise: Any = None) -> Any:
    return cf.release(method, cf.read(rows, schema), cf.GDP(mu), ledger=None, noise=noise or SimulatedNoise(1))


# the vector --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_search_for_neighbours_finds_the_sensitivity_itself(relation: str) -> None:
    counts = LINE.plan(SCHEMA, cf.GDP(1.0, relation=relation)).statistics[NAME]
    bound = counts.sensitivity_squared(relation)
    assert bound == 3 * (2 if relation == "substitute" else 1)

    def told(rows: Any) -> list[int]:
        (total,) = cf.read(rows, SCHEMA).aggregate(counts)
        return list(total)

    report = falsify_sensitivity(told, SCHEMA, float(bound) ** 0.5 * (1 + 1e-12), relation=relation, restarts=2)
    assert not report.violated and report.ratio == pytest.approx(1.0)


RICH = cf.Schema(dict(COLUMNS), derive={"rich": {"if": "x >= 5"}})
#: Conditions on a column that is read anyway, and on another one and a derived one: and how many columns are counted then.
CONDITIONS = {"x >= 4": 1, "~ (rich == 'yes') & k > 2": 2}


def of_subgroup(where: str) -> Any:
    return cf.tables.Means("x", inference="population", where=where, bounds="declared")


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("where", CONDITIONS)
def test_in_a_subgroup_the_search_for_neighbours_finds_the_sensitivity_too(where: str, relation: str) -> None:
    counts = of_subgroup(where).plan(RICH, cf.GDP(1.0, relation=relation)).statistics[NAME]
    bound = counts.sensitivity_squared(relation)
    assert bound == CONDITIONS[where] * (2 if relation == "substitute" else 1)

    def told(rows: Any) -> list[int]:
        (total,) = cf.read(rows, RICH).aggregate(counts)
        return list(total)

    report = falsify_sensitivity(told, RICH, float(bound) ** 0.5 * (1 + 1e-12), relation=relation, restarts=2)
    assert not report.violated and report.ratio == pytest.approx(1.0)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_counts_of_a_publication_hold_on_all_neighbours(relation: str) -> None:
    """Two analyses of all records share theirs, two of different subgroups have their own: every record, and every pair of records."""
    parts = {"all": METHODS["means"], "line": LINE, "rich": of_subgroup("rich == 'yes'"), "few": of_subgroup("k < 10")}
    plan = cf.plan(cf.Publication(parts), RICH, cf.GDP(1.0, relation=relation))
    counts = {name: one for name, one in plan.statistics.items() if name.endswith(NAME)}
    assert set(counts) == {NAME, f"rich/{NAME}", f"few/{NAME}"}
    cells = product(["1", "9", "3,5", "", "-5"], ["7", "80", "n/a", ""], ["a", "z"])
    records = [cf.read(pd.DataFrame({"x": [x], "k": [k], "g": [g]}), RICH) for x, k, g in cells]
    moved = zip(*(source.aggregate(*counts.values()) for source in records), strict=True)
    for (name, statistic), own in zip(counts.items(), moved, strict=True):
        vectors = np.array(own, dtype=float)
        others = vectors if relation == "substitute" else np.zeros((1, vectors.shape[1]))
        most = ((vectors[:, None] - others[None]) ** 2).sum(axis=2).max()
        assert most == statistic.sensitivity_squared(relation), name
        paid = next(leaf for leaf in leaves(plan.event) if leaf.name == name)
        assert (paid.sensitivity * paid.step) ** 2 >= most


@pytest.mark.parametrize("rule", ["weight", "keep"])
def test_a_unit_that_leaves_a_subgroup_moves_its_counts_by_no_more(rule: str) -> None:
    """Persons of up to five rows, each inside, outside or unread: neighbours in a whole person, or in what it holds."""
    schema = cf.Schema(dict(COLUMNS), unit=cf.Unit("id", rows=2, rule=rule), derive={"rich": {"if": "x >= 5"}})
    method = cf.regression.LeastSquares("x ~ g", bounds="declared", where="rich == 'yes' & k < 50")
    rng, cells = np.random.default_rng(4), {"x": ["1", "9", "3,5", "", "-5", "-99"], "k": ["7", "80", "n/a", ""]}

    def person(name: str) -> pd.DataFrame:
        rows = int(rng.integers(1, 6))
        return pd.DataFrame({"id": name, **{key: rng.choice(own, rows) for key, own in cells.items()}, "g": "a"})

    def told(*parts: pd.DataFrame) -> Any:
        release = released(method, pd.concat(parts), schema, noise=ZeroNoise())
        return np.array(release.statistics[NAME].decode())

    others = [person(f"p{at}") for at in range(6)]
    alone, moved = told(*others), []
    for _ in range(8):
        moved.append(float(((told(*others, person("new")) - alone) ** 2).sum()))
    assert 0 < max(moved) <= 2**2 * 3 + 1e-6


def test_unread_cells_of_a_condition_are_counted() -> None:
    """Incomes above 450 with a decimal comma: the condition drops them, and 93 is told for 3,900."""
    rng = np.random.default_rng(6)
    x = rng.uniform(100, 900, 4_000)
    words = [f"{one:.2f}".replace(".", ",") if one > 450 else f"{one:.2f}" for one in x]
    rows = pd.DataFrame({"x": words, "sex": rng.choice(["f", "m"], 4_000)})
    schema = cf.Schema(
        {"x": cf.Numeric(0, 1000), "sex": cf.Categorical(["f", "m"])}, derive={"rich": {"if": "x >= 200"}}
    )
    share = float((x > 450).sum() / (x >= 200).sum())
    for where in ("x >= 200", "rich == 'yes'"):
        for method in (
            cf.tables.Counts("sex", inference="dataset", where=where),
            cf.tables.Shares("sex", inference="population", where=where),
        ):
            release = cf.Release.from_json(released(method, rows, schema, noise=ZeroNoise()).to_json())
            lost = {own.name: own for own in release.lost}
            assert set(lost) == {"x", "sex"} and lost["x"].unread.value == pytest.approx(share, abs=1e-6)
            result = cf.infer(release)
            assert result.status == "imprecise" and "values_unread" in result.flags and "of x holds" in result.reason


def test_a_value_that_is_filled_in_does_not_hide_its_cell() -> None:
    """on_missing puts unread cells on the other side of the condition."""
    schema = cf.Schema({**COLUMNS, "k": cf.Integer(0, 90, on_missing="midpoint")})
    rows = frame()
    rows.loc[:799, "k"] = "?"
    (_, lost) = released(of_subgroup("k < 10"), rows, schema, noise=ZeroNoise()).lost
    inside = pd.to_numeric(rows.k[800:]) < 10
    assert lost.name == "k" and lost.unread.value == pytest.approx(800 / (800 + inside.sum()), abs=1e-6)


def test_an_unread_cell_that_is_counted_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = LINE.plan(SCHEMA, cf.GDP(1.0)).statistics[NAME]
    honest = ReadRows.__call__

    def twice(self: ReadRows, codes: Any) -> Any:
        rows = honest(self, codes)
        rows[1::4] += rows[3::4]
        return rows

    monkeypatch.setattr(ReadRows, "__call__", twice)

    def told(rows: Any) -> list[int]:
        (total,) = cf.read(rows, SCHEMA).aggregate(counts)
        return list(total)

    assert falsify_sensitivity(told, SCHEMA, 3**0.5, restarts=2).violated


def test_each_cell_is_in_one_number_before_any_record_is_dropped() -> None:
    rows = pd.DataFrame(
        {
            "x": ["1", "-1", "11", "1,5", "-99", "", None, "inf", "10"],
            "k": ["", "x", "91", "-1", "4", "4", "4", "4", "4"],
            "g": ["a", "c", "", None, "b", "a", "a", "a", "a"],
        }
    )
    (total,) = cf.read(rows, SCHEMA).aggregate(LINE.plan(SCHEMA, cf.GDP(1.0)).statistics[NAME])
    #                       other, below, above, unread
    assert list(total) == [5, 1, 1, 2, 6, 1, 1, 1, 8, 0, 0, 1]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_a_hundredth_of_the_cost_is_for_them_and_the_rest_for_the_answer(name: str, relation: str) -> None:
    plan = METHODS[name].plan(SCHEMA, cf.GDP(1.0, relation=relation))
    (own,) = (leaf for leaf in leaves(plan.event) if leaf.name == NAME)
    assert 0.999 * float(SHARE) < own.mu_squared <= SHARE
    columns = plan.statistics[NAME].map.names
    assert (own.sensitivity * own.step) ** 2 >= len(columns) * (2 if relation == "substitute" else 1)
    assert plan.constants[NAME] == columns and plan.statistics[NAME].map.digest == own.map


@pytest.mark.parametrize("name", METHODS)
def test_what_is_lost_is_told_in_every_family(name: str) -> None:
    release = released(METHODS[name], frame(below=0.02, above=0.1, unread=0.03))
    result = cf.infer(release)
    assert cf.infer(cf.Release.from_json(release.to_json())).to_json() == result.to_json()
    facts = dict(result.facts)
    if name in ("counts", "shares"):
        assert not {"values_clipped", "values_unread"} & set(result.flags) and "Clipped" not in facts
        return
    assert {"values_clipped", "values_unread"} <= set(result.flags), result.flags
    assert (
        "x to [0, 10]" in facts["Clipped"] and "above" in facts["Clipped"] and facts["Unread values"].startswith("x ")
    )
    assert "Clipped " in result.summary() and "Unread values" in result.summary()


def test_undeclared_labels_are_unread_in_counts() -> None:
    rows = frame()
    rows.loc[:700, "g"] = "c"
    result = cf.infer(released(METHODS["counts"], rows))
    assert result.flags == ("values_unread",) and dict(result.facts)["Unread values"].startswith("g 8.")
    assert result.status == "imprecise" and "levels in the schema" in result.reason


# when it is said ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["means", "medians", "line", "ranks"])
def test_a_column_that_is_hardly_read_leaves_rough_figures(name: str) -> None:
    result = cf.infer(released(METHODS[name], frame(unread=0.95)))
    assert result.status == "imprecise" and "values_unread" in result.flags
    assert "of x holds something that is not read" in result.reason
    # some families print intervals at this status, others none: one wording for all, and the remedy is no budget
    told = " ".join(result.summary(verbose=True).split())
    assert "any intervals are for the cells that were read" in told and "release again" in told
    assert "too large" not in told and "rough figures" not in told and "none at this status" not in told
    assert dict(result.facts)["Unread values"].startswith(("x 95", "x 94"))


@pytest.mark.parametrize("name", ["means", "medians", "line", "ranks", "table one"])
def test_declared_codes_are_not_unread_and_undeclared_ones_are_clipped(name: str) -> None:
    rows = frame(coded=0.2, empty=0.1)
    declared = cf.infer(released(METHODS[name], rows))
    assert not {"values_clipped", "values_unread"} & set(declared.flags)
    told = cf.infer(released(METHODS[name], rows, cf.Schema({**COLUMNS, "x": cf.Numeric(0, 10)})))
    assert "values_clipped" in told.flags and "values_unread" not in told.flags
    assert "below" in dict(told.facts)["Clipped"]


def test_ages_of_999_are_flagged_where_declared_bounds_are_kept() -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": np.where(rng.random(5_000) < 0.15, 999, rng.integers(18, 90, 5_000))})
    method = cf.tables.Means("age", inference="population")
    result = cf.infer(released(method, rows, cf.Schema({"age": cf.Integer(0, 120)})))
    assert result.ranges["age"].kept and "values_clipped" in result.flags
    assert dict(result.facts)["Clipped"].startswith("age to [0, 120]: 0.") and "above" in dict(result.facts)["Clipped"]


def test_a_range_that_is_found_tells_its_shares_itself() -> None:
    rows = frame(below=0.02, above=0.1, unread=0.03)
    schema = cf.Schema({**COLUMNS, "x": cf.Numeric()})
    result = cf.infer(released(METHODS["means"], rows, schema))
    assert result.ranges["x"].clips and "values_clipped" not in result.flags and "values_unread" in result.flags
    assert "Clipped" not in dict(result.facts) and dict(result.facts)["Unread values"].startswith("x 3.")


def test_an_unasked_count_says_so() -> None:
    method = cf.regression.LeastSquares("x ~ k", bounds="declared", clipping_check=False)
    plan = method.plan(SCHEMA, cf.GDP(1.0))
    assert NAME not in plan.statistics and any("not counted" in one for one in plan.warnings)
    result = cf.infer(released(method, frame(above=0.3)))
    assert "clipping_not_checked" in result.flags and dict(result.facts)["Clipped"] == "not counted"


def test_flags_are_rare_where_nothing_is_lost() -> None:
    """At 500 records and mu = 1 each share has noise of several percent; all thirty together are flagged in one of twenty releases."""
    names = tuple(f"x{i}" for i in range(10))
    schema = cf.Schema(dict.fromkeys(names, cf.Numeric(0, 1)))
    sd = 10 * len(names) ** 0.5
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(2_000):
        counts = np.zeros((10, 4))
        counts[:, 0] = 500
        lost = lost_of(np.append(counts + rng.normal(0, sd, counts.shape), [10, sd]), names, schema.columns)
        found += any(own.clipped or own.unread.above(0.005) for own in lost)
    assert found / 2_000 < 0.06


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (Share(0.152, 0.0055, 3), "15.2% (14.2% to 16.2%)"),
        (Share(0.95, 0.01, 3), "95% (92% to 98%)"),
        (Share(0.95, 0.01, 30, 10), "95% (93% to 97%)"),
        (Share(0.001, 0.002, 3), "0.1%"),
    ],
)
def test_shares_in_words(share: Share, words: str) -> None:
    assert str(share) == words


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_intervals_of_shares_hold(share: float, columns: int) -> None:
    """n comes from the same counts, with its noise: 95% intervals hold the share, large ones and below 1,000 records too."""
    names = tuple(f"x{i}" for i in range(columns))
    schema = cf.Schema(dict.fromkeys(names, cf.Numeric(0, 1)))
    rng, sd = np.random.default_rng(3), 10 * columns**0.5
    for n in (500, 3_000):
        held = 0
        for _ in range(2_000):
            counts = n * np.array([[1 - share, 0.0, 0.0, share]] * columns) + rng.normal(0, sd, (columns, 4))
            low, high = lost_of(np.append(counts, [columns, sd]), names, schema.columns)[0].unread.ends
            held += low <= share <= high
        assert 0.93 < held / 2_000 < 0.97 or (share == 0.1 and held / 2_000 < 0.99)


def test_a_share_of_a_publication_is_flagged_with_those_of_all_its_analyses() -> None:
    """With noise that hides 20%: by three shares alone it would be seen, by thirty it may be chance."""
    schema = cf.Schema({"x": cf.Numeric(0, 1)})
    counts = [160.0, 0.0, 0.0, 40.0]
    for together, seen in ((1, True), (10, False)):
        (lost,) = lost_of(np.array([*counts, together, 17.0]), ("x",), schema.columns)
        assert (flags_of([lost], ()) == ("values_unread",)) == seen and (lost.unread.least > 0.2) != seen


def test_where_noise_hides_shares_it_says_which() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1)})
    lost = lost_of(np.array([190.0, 5.0, 5.0, 0.0, 1, 17.0]), ("x",), schema.columns)
    told = "shares below 19%{} cannot be told from noise"
    assert facts_of(lost, ()) == (("Clipped", told.format(", also of unread values,")),)
    # of a column whose range was found, or of labels
    assert facts_of(lost, ("x",)) == (("Unread values", told.format("")),)


# units, subgroups, publications ------------------------------------------------------------------------------------------


def test_a_unit_counts_by_weight() -> None:
    """One person with 400 unread rows is one of 200, and not 400 of 599."""
    rows = pd.DataFrame({"id": ["a"] * 400 + [f"p{i}" for i in range(199)], "x": ["?"] * 400 + ["5"] * 199, "k": "1"})
    schema = cf.Schema({"x": cf.Numeric(0, 10), "k": cf.Numeric(0, 10)}, unit=cf.Unit("id"))
    method = cf.regression.LeastSquares("x ~ k", bounds="declared")
    plan = method.plan(schema, cf.GDP(1.0))
    assert plan.rule == "weight"
    lost, _ = released(method, rows, schema, noise=ZeroNoise()).lost
    assert lost.unread.value == pytest.approx(1 / 200, rel=0.01)


def test_a_unit_of_several_rows_costs_as_many() -> None:
    schema = cf.Schema(dict(COLUMNS), unit=cf.Unit("id", rows=3, rule="keep"))
    plan = LINE.plan(schema, cf.GDP(1.0))
    own = plan.spend(NAME)
    assert (own.sensitivity * own.step) ** 2 >= 9 * 3


def test_shares_of_a_subgroup_are_of_its_records() -> None:
    rows = frame(unread=0.2)
    inside = rows.g == "a"
    method = cf.tables.Means("x", inference="population", where="g == 'a'", bounds="declared")
    lost, condition = released(method, rows, noise=ZeroNoise()).lost
    share = float((rows.x[inside] == "3,5").mean())
    assert (lost.name, condition.name) == ("x", "g") and lost.unread.value == pytest.approx(share, abs=1e-6)


def test_a_publication_pays_once_for_each_column() -> None:
    asked = {name: METHODS[name] for name in ("means", "medians", "line")}
    asked["women"] = cf.tables.Means("x", inference="population", where="g == 'a'")
    publication = cf.Publication(asked)
    plan = cf.plan(publication, SCHEMA, cf.GDP(1.0))
    paid = {leaf.name: leaf.mu_squared for leaf in leaves(plan.event) if leaf.name.endswith(NAME)}
    # three quarters for all records, the last one for a subgroup
    assert set(paid) == {NAME, f"women/{NAME}"}
    assert float(paid[NAME]) == pytest.approx(0.0075, rel=1e-3)
    assert plan.statistics[NAME].map.names == ("x", "g", "k")
    rows = frame(above=0.1, unread=0.03)
    release = released(publication, rows)
    release = cf.Release.from_json(release.to_json())
    assert parts_agree(release)
    report = cf.infer(release)
    for name, result in report.results.items():
        assert {"values_clipped", "values_unread"} <= set(result.flags), name
    told = {name: release.child(name).lost[0] for name in ("means", "medians", "line")}
    # the number of records that shares are of comes from an analysis's own columns
    assert {own.name for own in told.values()} == {"x"}
    assert np.ptp([own.unread.value for own in told.values()]) < 1e-4
    assert {own.unread.many for own in told.values()} == {9} and release.child("women").lost[0].unread.many == 6


def test_counts_beside_the_budget_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Allowance, "amount", property(lambda self: self.part * self._whole))
    with pytest.raises(cf.errors.PlanError, match="do not fit its request"):
        METHODS["counts"].plan(SCHEMA, cf.GDP(1.0))


def test_a_damaged_file_is_refused() -> None:
    release = released(METHODS["means"], frame())
    text = release.to_json().replace('"clipped, unread":["x","g"]', '"clipped, unread":["x","y"]')
    assert text != release.to_json()
    with pytest.raises(cf.errors.ReleaseError):
        cf.infer(cf.Release.from_json(text))


def test_a_column_of_the_table_cannot_have_its_name() -> None:
    schema = cf.Schema({NAME: cf.Categorical(["a", "b"]), "g": cf.Categorical(["a", "b"])})
    with pytest.raises(cf.errors.PlanError):
        cf.tables.Counts(f"`{NAME}` * g", inference="dataset").plan(schema, cf.GDP(1.0))


def test_pure_guarantees_have_no_such_counts_and_say_so() -> None:
    method = cf.tables.Quantiles("x")
    assert NAME not in method.plan(SCHEMA, cf.PureDP(1.0)).statistics
    source = cf.read(frame(above=0.5), SCHEMA)
    release = cf.release(method, source, cf.PureDP(1.0), ledger=None, noise=SimulatedNoise(1))
    result = cf.infer(cf.Release.from_json(release.to_json()))
    assert "clipping_not_checked" in result.flags and dict(result.facts)["Clipped"] == "not counted"
    assert any("not counted" in one for one in release.plan.warnings)


def test_a_derived_term_with_bounds_of_its_own_is_counted() -> None:
    """log(y) clipped to (2.5, 3.5): 800 of 1,000 values are moved, though y lies within its bounds."""
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(1, 1000)})
    y = np.exp(np.linspace(0.1, 6.8, 1000))
    rows = pd.DataFrame({"x": np.linspace(0, 1, 1000), "y": y})
    bounds = {"log(y)": (2.5, 3.5)}
    for method in (
        cf.regression.LeastSquares("log(y) ~ x", term_bounds=bounds),
        cf.regression.SSP("log(y) ~ x", term_bounds=bounds),
        cf.tables.Means("log(y)", inference="population", term_bounds=bounds, bounds="declared"),
    ):
        release = released(method, rows, schema, mu=4.0)
        found = {own.name: own for own in cf.Release.from_json(release.to_json()).lost}
        assert set(found) - {"x"} == {"y", "log(y)"} and not found["y"].clipped and found["log(y)"].clipped
        assert found["log(y)"].below.value + found["log(y)"].above.value == pytest.approx(0.85, abs=0.05)
        told = dict(cf.infer(release).facts)["Clipped"]
        assert "log(y) to [2.5, 3.5]" in told and "at or below" in told and "at or above" in told
    assert bounded_terms({"log(y)": (2.5, 3.5)}, cf.Schema({"y": cf.Numeric(low=1)})) == ()
