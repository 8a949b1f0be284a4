"""`confide audit`: the table, JSON, exit codes, methods and functions of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.cli_runner import good, run, strict_json

# in one pass; the audit of both is in tests/audit/test_audit_methods.py
SSP = ("audit", "ssp", "y ~ a", "--param", "cov=classical", "--param", "recenter=false", "--param", "bounds=declared")

MODULE = """
import numpy as np
from confide_lab.benchmarks.planted.toy import Toy
from confide import GDP
from confide.audit import audit
method, leaky = Toy("v"), Toy("v", fault="exact df")
def noisy():
    generator = np.random.default_rng(1)
    return lambda x, runs: x + generator.normal(size=runs)
def check():
    return audit(noisy(), data=0.0, neighbor=1.0, claim=GDP(1.0), vectorized=True, runs=2_000)
def wrong():
    return audit(noisy(), data=0.0, neighbor=4.0, claim=GDP(1.0), vectorized=True, runs=2_000)
def nothing():
    return 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("my_own_audit.py").write_text(MODULE)
    return tmp_path


def test_the_table_of_a_registered_method(here: Path) -> None:
    done = good(*SSP, "--runs", "400", "--seed", "1")
    for text in (
        "ssp moments",
        "ssp release",
        "record and replay",
        "add-remove",
        "substitute",
        "GDP(mu=1)",
        "verdict: holds",
    ):
        assert text in done.out
    # no progress bar outside a terminal; on a busy machine a line every ten seconds
    assert "\r" not in done.err and all(line.startswith("audit: step ") for line in done.err.splitlines())


def test_a_seed_repeats_the_table(here: Path) -> None:
    words = ("audit", "my_own_audit:method", "--runs", "400", "--seed")
    first, again, other = (good(*words, seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_json_on_stdout_and_in_a_file(here: Path) -> None:
    words = ("audit", "confide_lab.benchmarks.planted.toy:Toy", "v", "--runs", "0", "-o", "audit.json")
    done = good(*words, "--json")
    written = strict_json(Path("audit.json").read_text())
    assert done.json["ok"] and done.json["wrote"] == "audit.json"
    assert written["findings"] == done.json["findings"] and len(written["findings"]) > 4
    again = run(*words)
    assert again.code == 2 and "--force" in again.err


def test_one_relation_another_price_and_a_schema(survey: Path) -> None:
    done = good(
        "audit", "ssp", "happy ~ age + region", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6",
        "--relation", "substitute", "--param", "recenter=false", "--param", "bounds=declared", "--runs", "0", "--json",
    )  # fmt: skip
    assert {row["relation"] for row in done.json["findings"]} == {"substitute"}


@pytest.mark.parametrize(("name", "code"), [("method", 0), ("leaky", 1), ("check", 0), ("wrong", 1)])
def test_methods_and_functions_of_ones_own(here: Path, name: str, code: int) -> None:
    words = ["audit", f"my_own_audit:{name}", "--runs", "0"]
    done = run(*words)
    assert done.code == code, done.out + done.err
    assert ("verdict: violated" in done.out) == (code == 1)
    assert run(*words, "--json").json["ok"] == (code == 0)


def test_what_was_not_tested_has_a_code_and_a_reason_of_its_own(here: Path) -> None:
    words = ("audit", "johnson_lindenstrauss", "y ~ a", "--param", "rows=40", "--runs", "0")
    done = run(*words)
    assert done.code == 7, done.out + done.err
    assert "verdict: untested" in done.out and "johnson_lindenstrauss sketch, add-remove: untested, " in done.out
    told = run(*words, "--json")
    assert told.code == 7 and told.json["verdict"] == "untested" and told.json["ok"] is False
    assert {state["verdict"] for state in told.json["states"]} == {"holds", "untested"}
    assert run("audit", "--help").out.count("7 if none is and") == 1


def test_a_class_of_ones_own_takes_its_parameters(here: Path) -> None:
    words = ("audit", "confide_lab.benchmarks.planted.toy:Toy", "v", "--runs", "0")
    assert run(*words).code == 0
    assert run(*words, "--param", "fault=log").code == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("audit", "no_such"), 3),
        (("audit", "ssp"), 3),
        (("audit", "my_own_audit:nothing"), 3),
        (("audit", "my_own_audit:absent"), 3),
        (("audit", "no_such_module:x"), 3),
        (("audit", "my_own_audit:method", "v"), 2),
        (("audit", "confide_lab.benchmarks.planted.toy:Toy", "v", "--param", "speed=1"), 3),
        (("audit", "ssp", "y ~ a", "--runs", "3"), 2),
        (("audit", "ssp", "y ~ a", "--confidence", "1"), 2),
        (("audit", "ssp", "y ~ a", "--mu", "1", "--rho", "1"), 2),
        (("audit", "ssp", "y ~ a", "--relation", "both", "--runs", "0"), 3),
        (("audit", "ssp", "y ~ a", "--schema", "absent.toml"), 3),
    ],
)
def test_refusals(here: Path, words: tuple[str, ...], code: int) -> None:
    assert run(*words).code == code
    assert json.loads(run(*words, "--json").out)["exit_code"] == code


def test_a_module_that_is_not_there_is_named(here: Path) -> None:
    told = run("audit", "nosuchmod:x").err
    assert "no module 'nosuchmod'" in told
    assert "PYTHONPATH" in told
    assert "module:attribute" in run("audit", "nosuch").err
    assert "confide audit quantile income" in run("audit", "quantile").err
