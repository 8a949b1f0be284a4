"""A smoke test of the package that is installed: one line for each part, exit code 1 where one fails.

`python smoke.py` works in an empty folder of its own and asks nothing of the source tree; words behind it name the parts to
run. What needs an extra that is not there is skipped, and says so. Less than a minute of CPU.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import confide as cf
from confide.sources.coding import text_numbers

COLUMNS = {
    "x": cf.Numeric(0, 4, on_missing="midpoint"),
    "y": cf.Numeric(-3, 9, on_missing="midpoint"),
    "g": cf.Categorical(["a", "b", "c"], on_missing="a"),
    "s": cf.Categorical(["no", "yes"], on_missing="no"),
    "z": cf.Integer(0, 1, on_missing=0),
    "v": cf.Integer(0, 25, on_missing=0),
}
SCHEMA = cf.Schema(COLUMNS, dataset="survey")
PERSONS = cf.Schema(COLUMNS, dataset="visits", unit=cf.Unit("person"))
N = 2_000
GAUSSIAN, PURE, APPROXIMATE = cf.GDP(1.0), cf.PureDP(1.0), cf.ApproxDP(1.0, 1e-6)
PARTS: list[tuple[str, str | None, Callable[[], None]]] = []
RELEASED: set[str] = set()


class Nearest:
    """A teacher: the class whose mean is nearest."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, x: Any, y: Any) -> Nearest:
        self.known = np.unique(y)
        self.means = np.array([x[y == k].mean(axis=0) for k in self.known])
        return self

    def predict(self, x: Any) -> Any:
        return self.known[((x[:, None] - self.means) ** 2).sum(axis=2).argmin(axis=1)]


def draws(table: Any, generator: Any) -> Any:
    """The rows themselves, as a sampler's draws."""
    return table


def high(table: Any) -> float:
    """How many records are above 2."""
    return float((table[:, 0] > 2).sum())


def high_mean(table: Any, noise: Any) -> Any:
    """Their mean, in steps of 2^-20."""
    return np.rint(table[table[:, 0] > 2, 0].mean() * 2**20) + noise.discrete_laplace(2**17, 1)


def loss(count: float) -> float:
    """One of `count` records moves the mean by at most 2/(count - 1)."""
    return 8 * (4 / count + 2.0**-19) if count >= 2 else float("inf")


def part(
    name: str, extra: str | None = None, needs: str | None = None
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Name a part; `needs` is a module of the extra without which it is skipped."""

    def named(body: Callable[[], None]) -> Callable[[], None]:
        PARTS.append((name, extra if needs and find_spec(needs) is None else None, body))
        return body

    return named


def records(schema: cf.Schema = SCHEMA) -> Any:
    frame = schema.sample(N, seed=7)
    if schema is PERSONS:
        frame["person"] = frame["person"] // 3
    return frame


def registered() -> set[str]:
    return {one.name for one in cf.list_methods() if one.package == "confide"}


def released(method: Any, privacy: Any, schema: cf.Schema = SCHEMA, live: bool = False) -> Any:
    """Plan, charge a ledger in SQLite, draw, write, read and infer. The plan goes by a file, unless it holds live code."""
    RELEASED.add(method.name)
    plan = cf.plan(method, schema, privacy, n=N if method.relations[0] == "substitute" else None)
    place = f"{method.name}.db"
    Path(place).unlink(missing_ok=True)
    unit = {"unit": "person"} if schema is PERSONS else {}
    ledger = cf.Ledger.create(place, dataset=str(schema.dataset), budget=plan.requested, **unit)
    data = cf.read(records(schema), schema)
    if live:
        release = cf.release(method, data, privacy, ledger=ledger, n=plan.n)
    else:
        release = cf.release(cf.Plan.from_json(plan.to_json()), data, ledger=ledger)
    assert [row.kind for row in ledger.show().rows] == ["open", "charge", "receipt"] and ledger.find(release.sha256)
    release.save("one.json")
    result, again = cf.infer(release), cf.infer(cf.Release.load("one.json"))
    assert result.summary() == again.summary() and result.to_json() == again.to_json()
    assert len(result.to_frame())
    return result


# the families ---------------------------------------------------------------------------------------------------------


@part("tables")
def _() -> None:
    tables = cf.tables
    for method in (
        tables.Counts("g * cut(x, 1, 3)", inference="population"),
        tables.Shares("g * s", within="g", inference="dataset"),
        tables.Means("y + x ~ g", inference="population"),
        tables.Totals("y ~ g", inference="dataset"),
        tables.Ratios("y / x ~ g", inference="population"),
        tables.Quantiles("x ~ g"),
        tables.TableOne("x + y + g ~ s", medians=("x",)),
    ):
        released(method, GAUSSIAN)


@part("ranges")
def _() -> None:
    found = cf.find_bounds(records(), "y", privacy=GAUSSIAN, ledger=None)
    assert found.ranges["y"].low < found.ranges["y"].high
    RELEASED.add("column_ranges")
    bare = cf.Schema({**SCHEMA.columns, "y": cf.Numeric()}, dataset="survey")
    released(cf.tables.Means("y ~ g", inference="population"), GAUSSIAN, bare)


@part("tables of persons")
def _() -> None:
    released(cf.tables.DistinctCounts("any(g == 'a' & x > 1) * s", inference="population"), GAUSSIAN, PERSONS)
    released(cf.tables.DistinctShares("any(g == 'a') * s", within="s", inference="dataset"), GAUSSIAN, PERSONS)
    cf.tables.rows_per_unit_table(cf.read(records(PERSONS), PERSONS), privacy=GAUSSIAN, ledger=None)
    RELEASED.add("rows_per_unit_table")


@part("tests")
def _() -> None:
    for method in (
        cf.tests.Correlation("x + y"),
        cf.tests.MannWhitney("x ~ s"),
        cf.tests.Kruskal("x ~ g"),
        cf.tests.Wilcoxon("x - y"),
    ):
        released(method, GAUSSIAN)
    data = cf.read(records(), SCHEMA)
    for call, formula in (
        (cf.tests.ttest_ind, "x ~ s"),
        (cf.tests.f_oneway, "x ~ g"),
        (cf.tests.chi2_contingency, "g * s"),
    ):
        call(formula, data, privacy=GAUSSIAN, ledger=None).summary()


@part("lines")
def _() -> None:
    for method in (
        cf.regression.LeastSquares("y ~ x + g"),
        cf.regression.SSP("y ~ x + g"),
    ):
        released(method, GAUSSIAN)
    released(cf.regression.Within("y ~ x + g"), GAUSSIAN, PERSONS)
    released(cf.regression.EfficientPTR("y ~ x"), cf.GDP(1.0, 1e-5))


@part("logistic and Poisson regression")
def _() -> None:
    released(cf.regression.Logistic("z ~ x + g"), GAUSSIAN)
    released(cf.regression.Poisson("v ~ x"), GAUSSIAN)
    data = cf.read(records(), SCHEMA)
    cf.logistic_regression("z ~ x", data, privacy=GAUSSIAN, ledger=None).odds_ratios()


@part("classes and curves")
def _() -> None:
    released(cf.classification.ClassMeans("g ~ x + y"), GAUSSIAN)
    released(cf.classification.EfficientPTRBayes("g ~ x + y", c0=0.1), cf.GDP(1.0, 1e-5))
    released(cf.curves.Kernel("y ~ x"), GAUSSIAN)
    released(cf.curves.EfficientPTRKernel("y ~ x", points=[1.0, 2.0], bandwidth=0.5, least=40.0), cf.GDP(2.0, 1e-4))


@part("synthetic table")
def _() -> None:
    for place in ("made.csv", "made.parquet"):
        cf.synthesize(cf.read(records(), SCHEMA), "y ~ x", privacy=GAUSSIAN, ledger=None, path=place)
        assert "x" in str(cf.synthesis.refit(place).summary())
    RELEASED.add("synthetic_table")


@part("protected records")
def _() -> None:
    ledger = cf.Ledger.create(
        "local.db", dataset="survey", budget=cf.GDP(6.0, 1e-3, relation="substitute", trust="local")
    )
    cf.local.protect(
        records(), SCHEMA, "protected.parquet", columns=["x"], public=["y"], noise=0.4, ledger=ledger, charge_delta=1e-4
    )
    assert "x" in cf.local.fit("protected.parquet", "y ~ x").summary()
    cf.local.plan(SCHEMA, ["x"], public=["y"], privacy=cf.ApproxDP(4.0, 0.01), formula="y ~ x", n=N)


@part("intervals")
def _() -> None:
    for method in (
        cf.intervals.Proportion("s"),
        cf.intervals.Proportion("g"),
        cf.intervals.MeanAndVariance("x"),
        cf.intervals.Slope("y ~ x"),
        cf.intervals.Difference("s ~ z"),
        cf.tables.Quantiles("x", quantiles=(0.25, 0.5)),
    ):
        released(method, PURE)


@part("code on blocks")
def _() -> None:
    released(
        cf.intervals.BlockPosterior(draws, {"x": (0, 4)}, blocks=10, columns=("x",), seconds=5.0, jobs=10),
        cf.PureDP(10.0),
        live=True,
    )
    released(
        cf.voting.TeacherLabels(
            "s",
            Nearest(),
            [[0.5, 1.0], [3.5, 8.0]],
            20,
            features=("x", "y"),
            certificate="gaussian",
            seconds=6.0,
            jobs=10,
        ),
        cf.GDP(3.0),
        live=True,
    )


@part("votes")
def _() -> None:
    released(cf.voting.Plurality("z"), APPROXIMATE)
    released(cf.voting.Plurality("g"), PURE)


@part("components and correlations")
def _() -> None:
    released(cf.reduction.PCA("x + y + v"), GAUSSIAN)
    released(cf.reduction.Correlations("x + y + v"), GAUSSIAN)


@part("selection")
def _() -> None:
    tried = [cf.regression.SSP(formula) for formula in ("y ~ x", "y ~ x + z")]
    cf.select(tried, "squared_error", cf.read(records(), SCHEMA), privacy=cf.ApproxDP(3.0, 1e-6), ledger=None)
    RELEASED.add("select")


@part("propose, test, release")
def _() -> None:
    bound = cf.ptr.OrderStatistic(N // 2, 0.0, 4.0, 0.4)
    released(cf.ptr.SafeRelease(bound, ("x",), gamma_plan=30), cf.GDP(1.0, 1e-4))
    own = cf.ptr.GeneralizedRelease(high_mean, loss, high, 1.0, grid=2.0**-20, columns=("x",))
    assert released(own, cf.ApproxDP(1.0, 1e-4), live=True).status == "valid"


@part("publication")
def _() -> None:
    questions = {
        "line": cf.regression.LeastSquares("y ~ x", where="x >= 1 & g == 'a'"),
        "table": cf.tables.Counts("g * s", inference="population"),
    }
    result = released(cf.Publication(questions), GAUSSIAN)
    assert "line" in result.summary() and "table" in result.summary()


@part("every registered method was released")
def _() -> None:
    assert registered() == RELEASED, registered() ^ RELEASED


# what stands around them ----------------------------------------------------------------------------------------------


def same(*sources: Any) -> None:
    """The same records, however they arrive, give the same release."""
    method = cf.tables.Counts("g * s", inference="dataset")
    noise = [cf.noise.SimulatedNoise(1) for _ in sources]
    found = {
        cf.release(method, cf.read(source, SCHEMA), GAUSSIAN, ledger=None, noise=one).sha256
        for source, one in zip(sources, noise, strict=True)
    }
    assert len(found) == 1


@part("sources")
def _() -> None:
    frame = records()
    frame.to_csv("survey.csv", index=False)
    frame.to_parquet("survey.parquet", index=False)
    same(
        frame,
        "survey.csv",
        "survey.parquet",
        ["survey.parquet"],
        pa.Table.from_pandas(frame),
        {name: frame[name].to_numpy() for name in frame},
    )


@part("sources of polars", "marginaleffects", needs="polars")
def _() -> None:
    import polars as pl

    frame = records()
    polars = pl.from_pandas(frame)
    same(frame, polars, polars.lazy())


@part("a number is one whatever its neighbors are")
def _() -> None:
    texts = [
        "1",
        "+7",
        "-.5",
        "5.",
        "1e5",
        "-1e400",
        "1e-400",
        "inf",
        "nan",
        "7 kg",
        "",
        "1_0",
        "0x1p3",
        " 3 ",
        "1e",
        "--1",
        "9" * 400,
    ]
    alone = [text_numbers(pa.array([text], pa.large_string()))[0] for text in texts]
    assert np.array_equal(text_numbers(pa.array(texts, pa.large_string())), alone, equal_nan=True)
    assert alone[:5] == [1.0, 7.0, -0.5, 5.0, 1e5] and np.isnan(alone[9:13]).all() and alone[13] == 3.0


@part("the ledger holds")
def _() -> None:
    ledger = cf.Ledger.create("held.db", dataset="survey", budget=GAUSSIAN)
    method, data = cf.tables.Counts("g", inference="dataset"), cf.read(records(), SCHEMA)
    cf.release(method, data, GAUSSIAN, ledger=ledger)
    try:
        cf.release(method, data, GAUSSIAN, ledger=ledger)
    except cf.BudgetExceeded:
        pass
    else:
        raise AssertionError("a budget of one release paid for two")
    assert len(cf.Ledger.open("held.db").show().rows) == len(ledger.show().rows) and ledger.verify().ok


@part("files of plans and releases")
def _() -> None:
    plan = cf.plan(cf.regression.LeastSquares("y ~ x + g"), SCHEMA, GAUSSIAN)
    again = cf.Plan.from_json(plan.to_json())
    assert again.sha256 == plan.sha256
    release = cf.release(again, cf.read(records(), SCHEMA), ledger=None)
    assert cf.Release.from_json(release.to_json()).sha256 == release.sha256
    assert cf.Schema.from_toml(SCHEMA.to_toml()) == SCHEMA


@part("forecasts and advice")
def _() -> None:
    method = cf.regression.LeastSquares("y ~ x")
    assert "x" in str(cf.plan(method, SCHEMA, GAUSSIAN, n=N))
    assert len(cf.advise("linear_regression", "y ~ x", SCHEMA, N, GAUSSIAN, replications=2).to_frame())


@part("pictures and reports")
def _() -> None:
    import matplotlib

    matplotlib.use("agg")
    data = cf.read(records(), SCHEMA)
    for place, result in {
        "line": cf.linear_regression("y ~ x + g", data, privacy=GAUSSIAN, ledger=None),
        "counts": cf.tables.counts("g * s", data, inference="population", privacy=GAUSSIAN, ledger=None),
        "medians": cf.tables.quantiles("x ~ g", data, inference="population", privacy=GAUSSIAN, ledger=None),
        "curve": cf.infer(cf.release(cf.curves.Kernel("y ~ x"), data, GAUSSIAN, ledger=None)),
        "components": cf.reduction.pca("x + y + v", data, privacy=GAUSSIAN, ledger=None),
    }.items():
        assert result.plot() is not None
        result.report(f"{place}.html")
        assert "<svg" in Path(f"{place}.html").read_text(encoding="utf-8"), place
    cf.voting.plot_errors(privacy=APPROXIMATE)


# the command line -----------------------------------------------------------------------------------------------------


def confide(*words: str, code: int = 0) -> str:
    """Run the installed command; its output."""
    command = Path(sys.executable).with_name("confide")
    done = subprocess.run([str(command), *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, (
        f"confide {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


@part("command line")
def _() -> None:
    records().to_csv("people.csv", index=False)
    records().to_parquet("people.parquet", index=False)
    assert confide("--version") == f"confide {version('confide')}\n"
    assert "ledger" in confide("--help") and "--mu" in confide("plan", "--help")
    confide("schema", "draft", "people.parquet", "-o", "draft.toml")
    assert "[columns.x]" in Path("draft.toml").read_text()
    Path("schema.toml").write_text(SCHEMA.to_toml())
    assert "a, b, c" in confide("schema", "check", "schema.toml")
    confide("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "1.5")
    asked = ("--schema", "schema.toml", "--mu", "1")
    assert "x" in confide("plan", "y ~ x + g", *asked, "-o", "plan.json")
    plan = cf.Plan.from_json(Path("plan.json").read_text())
    confide("release", "plan.json", "people.csv", "--ledger", "ledger.db", "-o", "release.json")
    release = cf.Release.load("release.json")
    assert release.plan.sha256 == plan.sha256 and cf.Ledger.open("ledger.db").find(release.sha256)
    shown = confide("infer", "release.json", "--report", "release.html")
    assert cf.infer(release).summary().splitlines()[0].strip() in shown and Path("release.html").stat().st_size
    assert json.loads(confide("infer", "release.json", "--json"))
    assert confide("verify", "release.json", "--ledger", "ledger.db").count("pass  ") == 4
    table = (
        "table",
        "g * s",
        "people.csv",
        "--inference",
        "dataset",
        "--ledger",
        "ledger.db",
        "--schema",
        "schema.toml",
    )
    confide(*table, "--mu", "1.2", code=4)  # more than is left
    confide(*table, "--mu", ".5", "-o", "table.json")
    assert cf.Release.load("table.json").plan.method.name == "counts"
    assert {one["name"] for one in json.loads(confide("methods", "--json"))["methods"]} >= registered()
    confide("ledger", "unknown", code=2)


# extras ---------------------------------------------------------------------------------------------------------------


@part("scikit-learn", "sklearn", "sklearn")
def _() -> None:
    from sklearn.naive_bayes import GaussianNB

    from confide.sklearn import PrivateRegressor

    frame = records()
    PrivateRegressor(privacy=GAUSSIAN, bounds={"X": (0, 4), "y": (-3, 9)}, ledger=None).fit(frame[["x"]], frame["y"])
    cf.voting.Pate(
        GaussianNB(), teachers=20, privacy=cf.GDP(3.0), classes=["no", "yes"], bounds=(-3, 9), ledger=None, seconds=10.0
    ).fit(frame[["x", "y"]].to_numpy(), frame["s"].to_numpy(), public=frame[["x", "y"]].to_numpy()[:5])


@part("databases", "sql", "adbc_driver_sqlite")
def _() -> None:
    with sqlite3.connect("survey.db") as connection:
        records().to_sql("answers", connection, index=False)
    same("survey.parquet", "survey.db/answers", cf.sql("sqlite:///survey.db", "select * from answers"))


@part("DuckDB", "duckdb", "duckdb")
def _() -> None:
    same("survey.parquet", cf.sql("duckdb://", "select * from 'survey.parquet'"))


@part("Dask", "dask", "distributed")
def _() -> None:
    from distributed import Client

    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        method, noise = cf.tables.Counts("g * s", inference="dataset"), cf.noise.SimulatedNoise
        data = cf.read("survey.parquet", SCHEMA, executor=client)
        there = cf.release(method, data, GAUSSIAN, ledger=None, noise=noise(1))
        here = cf.release(method, cf.read("survey.parquet", SCHEMA), GAUSSIAN, ledger=None, noise=noise(1))
        assert there.sha256 == here.sha256


@part("Word", "word", "docx")
def _() -> None:
    data = cf.read(records(), SCHEMA)
    cf.linear_regression("y ~ x", data, privacy=GAUSSIAN, ledger=None).to_word("table.docx")
    assert Path("table.docx").stat().st_size


def run(chosen: Sequence[str]) -> int:
    """Run the parts; 1 where one failed."""
    names = (
        "numpy",
        "scipy",
        "pandas",
        "pyarrow",
        "formulaic",
        "cryptography",
        "threadpoolctl",
    )
    names += ("matplotlib", "jinja2", "typer", "click", "rich")
    print(f"Python {sys.version.split()[0]}:", ", ".join(f"{name} {_version(name)}" for name in names))
    failed = 0
    for name, missing, body in PARTS:
        if chosen and name not in chosen:
            continue
        if missing:
            print(f"skipped  {name}: the extra {missing} is not installed")
            continue
        before = _cpu()
        try:
            body()
        except Exception:
            failed += 1
            print(f"FAILED   {name}\n{traceback.format_exc()}")
        else:
            print(f"ok       {name} ({_cpu() - before:.1f} s)")
        sys.stdout.flush()
    print(f"{failed} of {len(PARTS)} parts failed; {_cpu():.1f} s of CPU")
    return int(failed > 0)


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "none"


def _cpu() -> float:
    """Seconds of CPU of this process and its children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        code = run(sys.argv[1:])
    sys.exit(code)
