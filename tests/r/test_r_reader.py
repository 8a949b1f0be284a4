"""R's package `confide` reads the numbers that Python infers, to 1e-12, and checks the files; skipped where R is not installed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.needs import lacks, need

import confide as cf
from confide.noise import SimulatedNoise
from confide.results.pages.content import Column

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-12

SCHEMA = cf.Schema(
    {
        "age": cf.Numeric(18, 90),
        "income": cf.Numeric(0, 100),
        "region": cf.Categorical(["north", "east", "süd"]),
        "smoker": cf.Categorical(["no", "yes"]),
        "visits": cf.Integer(0, 12),
    }
)
SURVEY = cf.Schema(
    {"income": cf.Numeric(0, 100), "w": cf.Numeric(0.5, 4)},
    design=cf.SurveyDesign(weight="w"),
)
#: Six families of results and two more lines; each on the schema of its question.
RELEASES: Mapping[str, tuple[Any, cf.Schema]] = {
    "line": (cf.regression.LeastSquares("income ~ age + region"), SCHEMA),
    "logistic": (cf.regression.Logistic("smoker ~ age + region"), SCHEMA),
    "poisson": (cf.regression.Poisson("visits ~ age"), SCHEMA),
    "means": (cf.tables.Means("income ~ region", inference="population"), SCHEMA),
    "counts": (cf.tables.Counts("region * smoker", inference="population"), SCHEMA),
    "distribution": (cf.tables.Quantiles("income ~ smoker", bins=32), SCHEMA),
    "rank test": (cf.tests.MannWhitney("income ~ smoker"), SCHEMA),
    "survey": (cf.tables.Means("income", inference="population"), SURVEY),
    "table one": (cf.tables.TableOne("income + age + region ~ smoker", inference="population", medians="age"), SCHEMA),
}


def _drawn(name: str) -> cf.Release:
    method, schema = RELEASES[name]
    source = cf.read(schema.sample(4_000, seed=1), schema)
    return cf.release(method, source, cf.GDP(2.0), ledger=None, noise=SimulatedNoise(3))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the package in it."""
    need("R")
    if subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True).returncode:
        lacks("R has no package jsonlite (Debian: apt-get install r-cran-jsonlite)")
    place = tmp_path_factory.mktemp("library")
    command = ["R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={place}", str(ROOT / "r")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


def _r(library: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["Rscript", *command],
        capture_output=True,
        encoding="utf-8",
        env={"R_LIBS": str(library), "PATH": "/usr/bin:/bin:/usr/local/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
    )


@pytest.fixture(scope="module")
def both(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[cf.Release, Any, dict[str, Any]]]:
    """name -> (the release, Python's result, what R read)."""
    folder = tmp_path_factory.mktemp("files")
    drawn = {name: _drawn(name) for name in RELEASES}
    paths = [str(cf.results.write_results(release, folder / f"{name}.json")) for name, release in drawn.items()]
    done = _r(library, str(ROOT / "tests/r/numbers.R"), *paths)
    assert done.returncode == 0, done.stderr
    read = dict(zip(drawn, json.loads(done.stdout), strict=True))
    return {name: (release, cf.infer(release), read[name]) for name, release in drawn.items()}


def _numbers(texts: Any) -> np.ndarray[Any, Any]:
    texts = [texts] if isinstance(texts, str) else texts
    return np.array([[float.fromhex(x) for x in row] if isinstance(row, list) else float.fromhex(row) for row in texts])


def _close(found: Any, expected: Any) -> None:
    expected = np.asarray(expected, dtype=float)
    np.testing.assert_allclose(
        _numbers(found), np.where(np.isinf(expected), np.nan, expected), rtol=TOLERANCE, atol=TOLERANCE
    )


def _long(result: Any) -> list[Column]:
    """Of Table 1, whose columns are texts: its numbers, a row for each and each group."""
    frame = result.to_frame()
    kinds = {"estimate": "estimate", "std_err": "std_err", "ci_low": "interval", "ci_high": "interval"}
    return [Column(name, frame[name].to_numpy(), kind) for name, kind in kinds.items()]


@pytest.mark.parametrize("name", RELEASES)
def test_r_reads_the_numbers_of_python(both: Any, name: str) -> None:
    release, result, read = both[name]
    columns = _long(result) if name == "table one" else list(result.columns(0.05))
    kinds = {column.kind: column for column in reversed(columns)}
    assert read["sha256"] == read["glance"] == release.sha256
    assert read["verified"] in (True, None)  # None where R has no package that computes SHA-256
    assert read["status"] == result.status == "valid"
    assert read["guarantee"] == str(release.charged)
    assert read["printed"] > 10
    _close(read["coef"], kinds["estimate"].values)
    ends = [column.values for column in columns if column.kind == "interval"][:2]
    _close(read["stored"], np.column_stack(ends))
    for kind, name_in_r in (("std_err", "std.error"), ("statistic", "statistic"), ("p", "p.value")):
        if kind in kinds:
            _close(read["tidy"][name_in_r], kinds[kind].values)
    _close(read["tidy"]["conf.low"], ends[0])
    assert "private" in read["residuals"]
    for key, noisy in release.statistics.items():
        # the first index runs fastest in R
        _close(read["noisy"][key], noisy.decode().ravel(order="F"))


@pytest.mark.parametrize("name", ["line", "logistic", "poisson"])
def test_r_has_covariance_and_intervals_at_any_level(both: Any, name: str) -> None:
    _, result, read = both[name]
    assert read["terms"] == list(result.names)
    _close(read["vcov"], result.covariance)
    _close(read["ninety"], result.conf_int(0.1).to_numpy())
    _close(read["nobs"], [result.nobs])


def test_table_one_has_a_term_for_each_number_and_group(both: Any) -> None:
    _, result, read = both["table one"]
    assert read["terms"] == list(result.params.index) and "income: mean | smoker=yes" in read["terms"]


@pytest.mark.parametrize("name", ["means", "counts", "distribution", "survey", "table one"])
def test_r_says_what_a_file_does_not_hold(both: Any, name: str) -> None:
    read = both[name][2]
    assert "no covariance between rows" in read["vcov"]
    assert "level 0.95 alone" in read["ninety"]
    assert read["nobs"] == "nan"


def test_a_rank_test_has_its_p_value(both: Any) -> None:
    _, result, read = both["rank test"]
    _close(read["tidy"]["p.value"], result.to_dict()["p_value"])


def test_r_refuses_altered_files_and_other_results(library: Path, tmp_path: Path, both: Any) -> None:
    has_digest = _r(library, "-e", "library(digest)").returncode == 0
    text = cf.results.write_results(both["line"][0], tmp_path / "line.json").read_text()
    means = json.loads(cf.results.write_results(both["means"][0], tmp_path / "means.json").read_text())
    mixed = json.dumps(
        {**means, "results": json.loads(text)["results"]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    wrong = {
        "mixed": (mixed, "belong to another release"),
        "newer": (text.replace('"format_version":"1.0"', '"format_version":"1.1"'), "format 1.1 cannot be read"),
        "torn": ("{", "not JSON"),
        "other": ('{"confide":"plan"}', "no release of confide"),
    }
    if has_digest:
        wrong["result"] = (text.replace('"estimate":[', '"estimate":[1', 1), "results in this file were changed")
        wrong["body"] = (text.replace('"n":null', '"n":5', 1), "release in this file were changed")
        # another body first, and the true one where its bytes are found too
        true, fake = text[: text.index(',"results":')], json.dumps({**json.loads(text)["body"], "status": "declined"})
        rest = {**json.loads(text), "body": 0}
        after = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).removeprefix('{"body":0')
        wrong["other body"] = (
            f'{{ "body":{fake}{after.rstrip()[:-1]},"zz":{true}}}}}\n',
            "release in this file were changed",
        )
    paths = [tmp_path / f"{name}.json" for name in wrong]
    for path, (content, _) in zip(paths, wrong.values(), strict=True):
        assert content != text
        path.write_text(content)
    code = "for (f in commandArgs(TRUE)) cat(tryCatch({confide::read_release(f); 'read'}, error = conditionMessage), '\\n')"
    said = _r(library, "-e", code, *map(str, paths)).stdout.splitlines()
    for line, (name, (_, words)) in zip(said, wrong.items(), strict=True):
        assert words in line, name


def test_a_bare_release_says_how_estimates_come_into_it(library: Path, tmp_path: Path, both: Any) -> None:
    release = both["means"][0]
    path = release.save(tmp_path / "bare.json")
    code = f'x <- confide::read_release("{path}"); print(x); coef(x)'
    done = _r(library, "-e", code)
    assert "Noisy statistics:" in done.stdout
    assert "confide infer release.json -o FILE" in done.stderr


def test_a_publication_is_read_analysis_by_analysis(library: Path, tmp_path: Path) -> None:
    # asked in an order that is not the alphabet's
    questions = {"model": RELEASES["line"][0], "incomes": RELEASES["means"][0]}
    source = cf.read(SCHEMA.sample(4_000, seed=1), SCHEMA)
    release = cf.release(cf.Publication(questions), source, cf.GDP(3.0), ledger=None, noise=SimulatedNoise(5))
    path = cf.results.write_results(release, tmp_path / "publication.json")
    code = f'library(confide); x <- read_release("{path}"); print(x); cat(names(x), "\\n"); cat(sprintf("%a", coef(x[["model"]])))'
    done = _r(library, "-e", code)
    assert done.returncode == 0, done.stderr
    assert "A publication of 2 analyses" in done.stdout
    assert done.stdout.splitlines()[-2].split() == ["model", "incomes"]
    printed = [done.stdout.index(f"\n{name} (valid)") for name in questions]
    assert printed == sorted(printed)
    _close(done.stdout.splitlines()[-1].split(), cf.infer(release)["model"].params.to_numpy())
    whole = _r(library, "-e", f'library(confide); coef(read_release("{path}"))')
    assert whole.returncode and 'take one: x[["model"]]' in whole.stderr
    rows = _r(library, "-e", f'library(confide); residuals(read_release("{path}"))')
    assert rows.returncode and "the records are private" in rows.stderr


def test_the_package_s_own_checks_pass(library: Path) -> None:
    done = _r(library, str(ROOT / "r/tests/plain.R"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["line", "means"])
def test_the_example_files_hold_what_python_infers(name: str) -> None:
    path = ROOT / f"r/inst/extdata/{name}.json"
    held = json.loads(path.read_text())["results"]["result"]
    found = cf.infer(cf.Release.load(path)).to_dict()
    np.testing.assert_allclose(held["estimate"], found["estimate"], rtol=1e-9)
    np.testing.assert_allclose(held["ci_high"], found["ci_high"], rtol=1e-9)


@pytest.mark.long
def test_r_cmd_check_is_clean(library: Path, tmp_path: Path) -> None:
    subprocess.run(["R", "CMD", "build", str(ROOT / "r")], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        ["R", "CMD", "check", "--no-manual", str(next(tmp_path.glob("*.tar.gz")))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "_R_CHECK_FORCE_SUGGESTS_": "false"},
    )
    assert "Status: OK" in done.stdout, done.stdout
