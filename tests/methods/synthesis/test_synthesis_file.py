"""The file: OLS on it, kinds, bounds, sidecar, reading back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.messages import refuses

import confide as cf
from confide.ask.synthesis import combine_synthetic as combine, refit, synthesize
from confide.core import seal
from confide.core.lost_values import NAME as LOST, SHARE
from confide.errors import FileError, NoResult, PlanError, PrivacyError, ReleaseError
from confide.methods.synthesis.model import _Equations
from confide.synthesis import SyntheticTable

FORMULA = "y ~ a + k + r"


def ols(formula: str, path, schema: cf.Schema) -> pd.Series:
    """Plain OLS by statsmodels on a file that pandas read, as any user does it; levels in the schema's order."""
    rows = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, keep_default_na=False)
    if "r" in rows:
        rows["r"] = pd.Categorical(rows["r"], list(schema["r"].levels))
    fit = smf.ols(formula, rows).fit()
    return fit.params, float(np.sqrt(fit.mse_resid))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_ols_on_the_file_is_the_release(made, release, schema, tmp_path, ending) -> None:
    (path,) = made.save(tmp_path / f"table{ending}")
    found, sd = ols(FORMULA, path, schema)
    released = cf.regression.LeastSquares(FORMULA).infer(release).params
    assert np.abs(found[released.index] - released).max() < 1e-8
    assert sd == pytest.approx(made.made[0]["residual_sd"], rel=1e-9)
    assert 0.55 < sd < 0.85


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ a*k + r:a",  # partial: noise hides one coefficient
        "y ~ a + I(a ** 2) + np.log1p(k)",
        "y ~ 1",
        "y ~ 0 + r",
        "y ~ r",
    ],
)
def test_derived_designs(frame, schema, tmp_path, formula) -> None:
    own = formula.replace("np.", "")
    method = SyntheticTable(own)
    done = cf.release(method, cf.read(frame, schema), cf.GDP(2.0), ledger=None, noise=cf.noise.SimulatedNoise(2))
    made = method.build(done)
    (path,) = made.save(tmp_path / "t.parquet")
    found, _ = ols(formula, path, schema)
    line = pd.Series(made.made[0]["coefficients"])
    assert np.abs(np.sort(found) - np.sort(line)).max() < 1e-8
    result = cf.regression.LeastSquares(own).infer(done)
    told = result.params.dropna()
    assert (line[told.index] == told).all() and (len(told) == len(line)) == (result.status == "valid")


def test_a_line_through_the_origin_is_refused_before_the_charge(frame, schema, tmp_path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(2.0))
    with refuses(PlanError):
        synthesize(frame, "y ~ 0 + a + k", schema=schema, privacy=cf.GDP(1.0), ledger=book)
    assert not [row for row in book.show().rows if row.kind == "charge"]
    # rows of bins are of no line
    call = {"schema": schema, "privacy": cf.GDP(1.0), "ledger": None, "generator": "binagg"}
    assert synthesize(frame, "y ~ 0 + a + k", **call).status == "valid"


# the line ---------------------------------------------------------------------------------------------------------------

INCOMES = cf.Schema({"age": cf.Integer(18, 90), "sex": cf.Categorical(["f", "m"]), "income": cf.Numeric(0, 1_000_000)})
BY_SEX = "income ~ age + sex"


def incomes(seed: int, n: int) -> pd.DataFrame:
    """Lognormal incomes: limiting residuals takes a tenth off the gap between the sexes."""
    generator = np.random.default_rng(seed)
    age, male = generator.integers(18, 90, n), generator.random(n) < 0.5
    income = np.exp(10.2 + 0.006 * (age - 40) + 0.3 * male + generator.standard_normal(n))
    return pd.DataFrame({"age": age, "sex": np.where(male, "m", "f"), "income": np.clip(income, 0, 1_000_000)})


def test_the_file_is_of_the_least_squares_line() -> None:
    records, method = incomes(1, 10_000), SyntheticTable(BY_SEX, cells=2)
    plan, data = method.plan(INCOMES, cf.GDP(1.0)), cf.read(records, INCOMES)
    files = [method.build(seal(method, data, plan, cf.noise.SimulatedNoise(seed)), rows=1_000) for seed in range(12)]
    gaps = [smf.ols(BY_SEX, one.frame).fit().params["sex[T.m]"] for one in files]
    private = smf.ols(BY_SEX, records).fit().params["sex[T.m]"]
    assert private > 16_000
    # the noise of a gap is a seventeenth of it, that of their mean a sixtieth
    assert abs(np.mean(gaps) / private - 1) < 0.05


def test_refit_covers_the_line_of_skewed_incomes() -> None:
    method, population = SyntheticTable(BY_SEX, cells=2), incomes(2, 100_000)
    plan = method.plan(INCOMES, cf.GDP(3.0))
    truth = smf.ols(BY_SEX, population).fit().params["sex[T.m]"]
    held = []
    for seed in range(30):
        rows = np.random.default_rng((3, seed)).integers(0, len(population), 4_000)
        data = cf.read(population.iloc[rows].reset_index(drop=True), INCOMES)
        done = seal(method, data, plan, cf.noise.SimulatedNoise(seed))
        result = method.regression.infer(done)
        assert result.status == "valid"
        low, high = result.conf_int().loc["sex[T.m]"]
        held.append(low <= truth <= high)
    # of 30 intervals that each hold it with .93, fewer than 21 do with a probability of 2e-5
    assert sum(held) >= 21


@pytest.mark.usefixtures("declared")
def test_half_of_the_budget_pays_for_the_draws_of_least_squares(schema) -> None:
    for formula in (FORMULA, "y ~ r"):
        whole = SyntheticTable(formula).plan(schema, cf.GDP(1.0))
        line = cf.regression.LeastSquares(formula).plan(schema, cf.GDP(1.0))
        for name in set(line.statistics) - {LOST}:
            own, alone = whole.spend(name), line.spend(name)
            assert (own.map, own.shape, own.sensitivity * own.step) == (
                alone.map,
                alone.shape,
                alone.sensitivity * alone.step,
            )
            # the line also pays for its counts of clipped and unread values
            twice = 2 * (1 - SHARE) * alone.scale * alone.step**2
            assert float(own.scale * own.step**2) == pytest.approx(float(twice), rel=1e-9)
        assert {name.split()[0] for name in whole.statistics} - {name.split()[0] for name in line.statistics} <= {
            "bins",
            "leaves",
        }
        assert line.intervals_for in whole.intervals_for


def test_coefficients_that_noise_hides_have_likely_values(frame, schema) -> None:
    """Four records of one level: its coefficient is not told, and its rows stay about where responses are."""
    rare = frame.assign(r=np.where(frame["r"] == "E", "N", frame["r"]))
    rare.loc[rare.index[:4], "r"] = "E"
    for formula in ("y ~ a + r", "y ~ r", "y ~ 0 + r"):
        method = SyntheticTable(formula)
        for seed in range(3):
            done = cf.release(
                method, cf.read(rare, schema), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(seed)
            )
            made, result = method.build(done), method.regression.infer(done)
            line = np.array(list(made.made[0]["coefficients"].values()))
            told = np.isfinite(result.estimates)
            assert made.status == result.status == "partial" and not told.all()
            assert (line[told] == result.estimates[told]).all()
            # half-ranges of the response are 6.5 wide, and so is a coefficient by chance
            assert np.abs(line[~told]).max() < 3 * 6.5
            assert "refit says which" in made.reason


def test_what_is_told_is_kept_and_the_rest_solves_the_equations() -> None:
    generator = np.random.default_rng(4)
    rows, start = np.tril(generator.normal(size=(5, 5))) + 3 * np.eye(5), generator.normal(size=5)
    gram = generator.normal(size=(9, 5)).T @ generator.normal(size=(9, 5)) + 20 * np.eye(5)
    u = generator.normal(size=5)
    exact = rows @ u + start
    for hidden in ([1], [0, 3], [0, 1, 2, 3, 4]):
        estimates = exact.copy()
        estimates[hidden] = np.nan
        equations = _Equations(rows, start, gram, gram @ u, 1e-12 * np.eye(5), 1.0)
        assert np.allclose(equations.completed(estimates), exact, atol=1e-6)
        # with noise alone nothing is known of them but the others
        nothing = _Equations(rows, start, 0 * gram, 0 * u, np.eye(5), 1.0).completed(estimates)
        told = np.isfinite(estimates)
        assert (nothing[told] == exact[told]).all()
        nearest = np.linalg.pinv(rows[told]) @ (exact - start)[told]
        assert np.allclose(nothing, rows @ nearest + start)


def test_a_root_that_is_not_defined_everywhere(frame, schema) -> None:
    method = SyntheticTable("y ~ sqrt(a - 0.3)", term_bounds={"sqrt(a - 0.3)": (0, 2)})
    done = cf.release(method, cf.read(frame, schema), cf.GDP(2.0), ledger=None, noise=cf.noise.SimulatedNoise(2))
    made = method.build(done)
    assert made.made[0]["rows_redrawn"] > 0
    assert (made.frame["a"] >= 0.3).all()
    assert made.made[0]["ols_off_by"] < 1e-10


def test_kinds_and_bounds(made, schema) -> None:
    rows = made.frame
    assert list(rows) == ["a", "r", "k", "y"]  # the formula's columns in the schema's order
    assert rows["k"].dtype == np.int64 and rows["k"].between(0, 9).all()
    assert rows["a"].between(-1, 3).all()
    assert list(rows["r"].cat.categories) == ["N", "S", "NA", "E"]
    assert rows["y"].dtype == np.float64
    assert rows["a"].round(7).equals(rows["a"])


def test_features_look_like_the_records(made, frame) -> None:
    rows = made.frame
    assert abs(len(rows) - len(frame)) < 150
    assert abs(rows["a"].mean() - frame["a"].mean()) < 0.05
    assert abs(rows["a"].std() - frame["a"].std()) < 0.1
    assert abs(rows["k"].mean() - frame["k"].mean()) < 0.3
    shares, true = (one["r"].value_counts(normalize=True) for one in (rows, frame))
    assert np.abs(shares - true[shares.index]).max() < 0.04


def test_the_same_release_gives_the_same_file(made, release, tmp_path) -> None:
    again = SyntheticTable(FORMULA).build(cf.Release.from_json(release.to_json()))
    pd.testing.assert_frame_equal(made.frame, again.frame)
    for name in ("x.parquet", "x.csv"):
        texts = []
        for one in (made, again):
            (path,) = one.save(tmp_path / name)
            texts.append((path.read_bytes(), (tmp_path / f"{name}.confide.json").read_bytes()))
        assert texts[0] == texts[1]


def test_bounds_of_the_response_cost_the_identity_and_the_sidecar_says_how_much(frame, tmp_path) -> None:
    whole = cf.Schema({"a": cf.Numeric(-1, 3), "y": cf.Integer(0, 3)})
    method = SyntheticTable("y ~ a")
    done = cf.release(method, cf.read(frame, whole), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    made = method.build(done, bounded=True)
    assert made.frame["y"].dtype == np.int64 and made.frame["y"].between(0, 3).all()
    released = np.array(list(made.made[0]["coefficients"].values()))
    fit = smf.ols("y ~ a", made.frame).fit().params.to_numpy()
    measured = np.max(np.abs(fit - released) / np.maximum(np.abs(released), 1))
    assert made.sidecar["made"]["ols_off_by"] == pytest.approx(measured, rel=1e-6) and measured > 1e-4
    assert "fit_on_rows_differs" in made.flags
    free = method.build(done)
    assert free.made[0]["ols_off_by"] < 1e-10 and free.made[0]["response_outside_bounds"] > 0


def test_rows_are_noisy_or_asked_for(release, frame) -> None:
    method = SyntheticTable(FORMULA)
    assert len(method.build(release).frame) != len(frame)  # seed 4: noise of sd 12 moved it
    assert len(method.build(release, rows=500).frame) == 500
    assert method.build(release, rows=500).made[0]["ols_off_by"] < 1e-8
    with refuses(PlanError):
        method.build(release, rows=7)


# reading back -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_refit_is_infer(made, release, tmp_path, ending) -> None:
    (path,) = made.save(tmp_path / f"t{ending}")
    assert refit(path).to_json() == cf.regression.LeastSquares(FORMULA).infer(release).to_json()
    assert refit(path, FORMULA).to_json() == refit(path).to_json()
    assert refit(str(path), "y ~ r + k + a").to_json() == refit(path).to_json()
    smaller = cf.regression.LeastSquares(FORMULA).infer(
        release, cf.core.ResultOptions(subset=("a", "r[T.S]", "r[T.NA]", "r[T.E]"))
    )
    assert refit(path, "y ~ a + r").to_json() == smaller.to_json()


def test_parquet_carries_its_sidecar(made, tmp_path) -> None:
    (path,) = made.save(tmp_path / "t.parquet")
    before = refit(path).to_json()
    (tmp_path / "t.parquet.confide.json").unlink()
    assert refit(path).to_json() == before


def test_refusals(made, tmp_path) -> None:
    (path,) = made.save(tmp_path / "t.csv")
    for formula in (
        "y ~ a + unused",
        "a ~ k",
        "y ~ 0 + a",
        "y ~ a + I(k ** 2)",
    ):
        with refuses(PlanError) as error:
            refit(path, formula)
        assert "cf.synthesis.refit(path)" in str(error.value)
    (tmp_path / "t.csv.confide.json").unlink()
    with refuses(ReleaseError) as refused:
        refit(path)
    assert refused.value.exit_code == 3
    with refuses(ReleaseError):
        refit(tmp_path / "nowhere.parquet")
    with refuses(PlanError):
        refit(tmp_path / "t.xlsx")


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("change", ["value", "label", "row", "order", "column"])
def test_a_changed_file_is_refused(made, tmp_path, ending, change) -> None:
    (path,) = made.save(tmp_path / f"t{ending}")
    rows = made.frame.copy()
    if change == "value":
        rows.loc[3, "y"] = np.nextafter(rows.loc[3, "y"], 99)
    elif change == "label":
        rows.loc[3, "r"] = "N" if rows.loc[3, "r"] != "N" else "S"
    elif change == "row":
        rows = rows.iloc[:-1]
    elif change == "order":
        rows = rows.iloc[::-1]
    else:
        rows = rows.rename(columns={"a": "b"})
    rows.to_parquet(path, index=False) if ending == ".parquet" else rows.to_csv(path, index=False)
    with refuses(ReleaseError):
        refit(path)


def test_a_changed_sidecar_is_refused(made, tmp_path) -> None:
    (path,) = made.save(tmp_path / "t.csv")
    beside = tmp_path / "t.csv.confide.json"
    text = json.loads(beside.read_text())
    text["body"]["made"]["rows"] += 1
    beside.write_text(json.dumps(text))
    with refuses(ReleaseError):
        refit(path)
    beside.write_text("no JSON")
    with refuses(ReleaseError):
        refit(path)


def test_the_summary_has_no_interval_and_says_so(made) -> None:
    assert "never from the rows" in " ".join(made.summary().split())
    assert not any(head in made.summary(verbose=True) + made._repr_html_() for head in ("95% CI", "[0.025"))
    assert json.loads(made.to_json())["files"][0]["content_sha256"] == made.sidecar["content_sha256"]


# several files ----------------------------------------------------------------------------------------------------------


def test_several_files(frame, schema, tmp_path) -> None:
    made = synthesize(
        frame,
        FORMULA,
        schema=schema,
        privacy=cf.GDP(1.0),
        ledger=None,
        files=4,
        path=tmp_path / "m.csv",
        noise=cf.noise.SimulatedNoise(4),
    )
    paths = [tmp_path / f"m-{number}.csv" for number in range(1, 5)]
    each = np.array([ols(FORMULA, path, schema)[0].to_numpy() for path in paths])
    assert np.ptp(each, axis=0).min() > 0
    result = refit(paths)
    found = pd.Series(each.mean(axis=0), ols(FORMULA, paths[0], schema)[0].index)
    assert np.abs(found[result.params.index] - result.params).max() < 1e-8
    variances = pd.Series((1 + 1 / 4) * each.var(axis=0, ddof=1), found.index)
    assert np.allclose(variances[result.params.index], np.diag(result.covariance), rtol=1e-6)
    assert np.allclose(result.df, 1 / (1 / 3 + 1 / refit(paths[0]).df))
    assert np.array_equal(result.bias, refit(paths[0]).bias)
    # file 1 of several has the same features as the only one, and another line
    assert made.frames[0][["a", "k", "r"]].equals(SyntheticTable(FORMULA).build(made.release).frame[["a", "k", "r"]])
    # one release behind all of them: its own intervals come from any of them
    assert refit(paths[0]).to_json() == refit(paths[2]).to_json()
    with refuses(PlanError):
        combine([paths[0], paths[0]])
    with refuses(PlanError):
        combine(paths[:1])


def test_files_on_one_line_are_not_combined(frame, schema, tmp_path) -> None:
    method, few = SyntheticTable(FORMULA), cf.read(frame.iloc[:300], schema)
    release = cf.release(method, few, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(2))
    single = method.build(release, files=2)
    assert single.status != "valid" and not single.made[0]["drawn_line"]
    paths = single.save(tmp_path / "s.parquet")
    with refuses(NoResult):
        combine(paths)


# other generators, wrong calls ------------------------------------------------------------------------------------------


def test_binagg_reproduces_its_sums_and_has_no_line(frame, schema, tmp_path) -> None:
    made = synthesize(
        frame,
        "y ~ a",
        schema=schema,
        privacy=cf.GDP(4.0),
        ledger=None,
        generator="binagg",
        noise=cf.noise.SimulatedNoise(1),
    )
    from confide.methods.synthesis.bins import read_bins

    design = SyntheticTable("y ~ a", generator="binagg").design_of(schema)
    noisy = read_bins(made.release, design, label=True)
    counts = np.maximum(np.rint(noisy.counts), 0)
    kept = counts >= 2
    column = schema["a"]
    width = noisy.bins.high[:, 0] - noisy.bins.low[:, 0]
    middle = column.low + (noisy.bins.low[:, 0] + (width - 1) / 2) / column.scale
    sums = (counts * middle + noisy.sums[:, 0] * (width - 1) / 2 / column.scale)[kept].sum()
    assert made.frame["a"].sum() == pytest.approx(sums, rel=1e-9)
    labels = (counts * 2.5 + 6.5 * noisy.labels)[kept].sum()
    assert made.frame["y"].sum() == pytest.approx(labels, rel=1e-9)
    assert "may leave their bounds" in made.summary()
    (path,) = made.save(tmp_path / "b.parquet")
    with refuses(PlanError):
        refit(path)


def test_wrong_calls(frame, schema) -> None:
    data = cf.read(frame, schema)
    call = {"privacy": cf.GDP(1.0), "ledger": None}
    with refuses(PrivacyError):
        synthesize(data, FORMULA, ledger=None)
    with refuses(PlanError):
        synthesize(data, FORMULA, privacy=cf.GDP(1.0))
    with refuses(PlanError):
        synthesize(data, FORMULA, boundd=True, **call)
    with refuses(PlanError):
        synthesize(data, FORMULA, generator="gan", **call)
    with refuses(PlanError):
        synthesize(frame, FORMULA, **call)
    with refuses(PlanError):
        synthesize(data, FORMULA, schema=schema, **call)
    with refuses(PlanError):
        synthesize(data, "y / 10 ~ a", **call)
    with refuses(PlanError):
        synthesize(data, FORMULA, path="t.xlsx", **call)
    with refuses(FileError):
        synthesize(data, FORMULA, path="nowhere/t.csv", **call)
    with refuses(PlanError):
        synthesize(data, FORMULA, files=0, **call)
    with refuses(PlanError):
        SyntheticTable(FORMULA, cells=1)


def test_the_ledger_is_charged_once(frame, schema, tmp_path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(2.0))
    made = synthesize(frame, FORMULA, schema=schema, privacy=cf.GDP(1.0), ledger=book, files=2)
    assert cf.verify(made.release, book).ok
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1
    with refuses(PlanError):
        synthesize(frame, FORMULA, schema=schema, privacy=cf.GDP(1.0), ledger=book, rows=3)
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("formula", ["y ~ a + k + r", "y ~ a + k", "y ~ r"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_line_is_that_of_the_regression_whatever_its_status(frame, schema, n, formula, relation) -> None:
    method, statuses = SyntheticTable(formula), set()
    for seed in range(2):
        done = cf.release(
            method,
            cf.read(frame.iloc[:n], schema),
            cf.GDP(1.0, relation=relation),
            ledger=None,
            noise=cf.noise.SimulatedNoise(seed),
            n=n if relation == "substitute" else None,
        )
        result, made = cf.regression.LeastSquares(formula).infer(done), method.build(done)
        statuses.add(result.status)
        found = np.array(list(made.made[0]["coefficients"].values()))
        # the raw numbers: a table that is not identified shows none
        told = np.isfinite(result.estimates)
        assert np.array_equal(found[told], result.estimates[told]) and np.isfinite(found).all()
        assert told.all() or result.status == "partial"
    assert n == 300 or "valid" not in statuses
