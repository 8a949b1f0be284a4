"""`confide local protect` and `confide local fit`, as their help shows them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cli.cli_runner import good, run

SCHEMA = """\
dataset = "survey"
[columns.age]
kind = "numeric"
low = 18
high = 90
on_missing = 50
[columns.income]
kind = "numeric"
low = 0
high = 100
on_missing = 30
[columns.region]
kind = "categorical"
levels = ["n", "s"]
"""


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.uniform(18, 90, 4_000), "region": rng.choice(["n", "s"], 4_000)})
    frame["income"] = 0.5 * frame.age + 10 * (frame.region == "s") + rng.normal(0, 5, 4_000)
    frame.to_csv("survey.csv", index=False)
    return frame


INIT = "ledger init local.db --dataset survey --mu 6 --delta .001 --unit record --trust local"
PROTECT = "local protect survey.csv p.parquet --schema schema.toml --columns income,age --public region --noise .5"


def test_a_table_is_protected_and_fitted(survey: pd.DataFrame) -> None:
    good(*shlex.split(INIT))
    look = good(*shlex.split(PROTECT), "--plan")
    assert "one record replaced: symmetric_laplace(2" in look.out and not Path("p.parquet").exists()
    charged = (*shlex.split(PROTECT), *shlex.split("--ledger local.db --charge-delta 1e-4"))
    done = good(*charged, "--json").json
    assert done["public"] == ["region"] and done["columns"]["age"]["noise_sd"] == pytest.approx(36.0, rel=1e-6)
    again = run(*charged)
    assert again.code == 3 and "exists" in again.err
    shown = good("local", "fit", "income ~ age + region", "p.parquet", "--report", "r.html", "--json").json["result"]
    assert shown["status"] == "valid" and shown["response"] == "income"
    assert "No protection at all" in Path("r.html").read_text()
    within = good("local", "fit", "income ~ age + region", "p.parquet", "--bounds", "-1000:1000", "--json").json[
        "result"
    ]
    assert within["status"] == "valid"
    edge = run("local", "fit", "income ~ age + region", "p.parquet", "--bounds", "age=900:1000", "--json")
    assert edge.json["result"]["status"] == "not_identified"
    for wrong in ("age", "age=1:0", "1:0", "age=0:inf"):
        done = run("local", "fit", "income ~ age", "p.parquet", "--bounds", wrong)
        # the advice is a command line's, not a tuple of Python
        assert done.code == 2 and "Try      --bounds x=0:2" in done.err


def test_ctrl_c_after_the_charge_does_not_deny_it(survey: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    good(*shlex.split(INIT))

    def press(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("confide.local.files.Place.write", press)
    done = run(*shlex.split(PROTECT), *shlex.split("--ledger local.db --charge-delta 1e-4"))
    assert (
        done.code == 130 and "charge already made stays" in done.err and "nothing was charged" not in done.err.lower()
    )
    assert "Nothing was charged." in run(*shlex.split(PROTECT), "--no-such-option").err


def test_a_fit_of_what_is_not_protected_is_refused(survey: pd.DataFrame) -> None:
    done = run("local", "fit", "income ~ age", "survey.csv")
    assert done.code != 0 and "how it was protected" in done.err


def test_a_central_ledger_is_refused(survey: pd.DataFrame) -> None:
    good(*shlex.split("ledger init ledger.db --dataset survey --mu 6"))
    done = run(*shlex.split(PROTECT), "--ledger", "ledger.db")
    assert done.code == 3 and "a separate ledger" in done.err
    assert run(*shlex.split("ledger init x.db --dataset survey --mu 6 --trust everyone")).code == 2


def test_what_is_wrong_is_said_in_options(survey: pd.DataFrame) -> None:
    good("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2")
    done = run(*shlex.split(PROTECT), "--ledger", "ledger.db")
    assert done.code == 3 and "--delta 0.001 --relation substitute --trust local" in done.err
    made = good(*shlex.split(PROTECT), "--unaccounted")
    assert "Charged to no ledger" in made.out
    again = run(*shlex.split(PROTECT), "--unaccounted")
    assert "--force to replace" in again.err
    unknown = run("local", "fit", "income ~ ages", "p.parquet")
    assert unknown.code == 3 and "no column 'ages'; it has: age, income, region" in unknown.err.replace(
        "income, age", "age, income"
    )
    assert run("local", "fit", "income ~ age", "none.parquet").code == 3
    for more, words in (
        ("", "or --noise 1.0"),
        ("--noise .5 --zeta .1", "--accept-verbatim-rows"),
        ("--noise .5 --level person", "--level record"),
    ):
        asked = "local protect survey.csv q.parquet --schema schema.toml --columns age --unaccounted"
        assert words in run(*shlex.split(f"{asked} {more}")).err
    assert "--levels region=1.0" in run(*shlex.split(asked.replace("age", "region")), "--noise", ".5").err
    assert "--method SL" in run("local", "fit", "income ~ age", "p.parquet", "--method", "RB").err
    assert "--loss absolute for medians" in run("local", "fit", "income ~ age", "p.parquet", "--loss", "median").err
