"""`confide infer`, `confide regress`, `confide methods`, and a third-party method through all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import check_silence, entries, good, printed, run

import confide as cf
from confide import Release, engine, tables
from confide.core.exact import digest

REGRESS = ("regress", "happy ~ age + region", "survey.csv", "--schema", "schema.toml", "--mu", "1")


def test_infer_prints_the_table_of_the_api(released):
    result = engine.infer(Release.load("release.json"))
    assert good("infer", "release.json").out == printed(result.summary())
    assert good("infer", "release.json").out == good("infer", "release.json").out
    assert good("infer", "release.json", "--json").json["result"] == json.loads(result.to_json())


def test_infer_takes_a_level_and_a_subset(released):
    release = Release.load("release.json")
    assert good("infer", "release.json", "--alpha", ".1").out == printed(engine.infer(release).summary(alpha=0.1))
    smaller = engine.infer(release, subset=("age",))
    for text in ("age", " age ,", '["age"]'):
        assert good("infer", "release.json", "--subset", text).out == printed(smaller.summary())
    assert run("infer", "release.json", "--subset", "wealth").code == 3
    assert run("infer", "release.json", "--alpha", "2").code == 3


def test_infer_asks_one_release_another_question(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    data = cf.read(schema.sample(300, seed=1), schema)
    share = cf.release(cf.intervals.Proportion("smoker"), data, cf.PureDP(1.0), ledger=None)
    table = cf.release(
        tables.Shares("smoker", inference="population"), data, cf.GDP(1.0, relation="substitute"), ledger=None
    )
    share.save("share.json")
    table.save("table.json")
    for words, release, options in (
        (("share.json", "--kind", "confidence"), share, {"kind": "confidence"}),
        (("share.json", "--prior", "beta(2, 5)"), share, {"prior": "beta(2, 5)"}),
        (("table.json", "--inference", "dataset"), table, {"inference": "dataset"}),
    ):
        assert good("infer", *words).out == printed(engine.infer(release, **options).summary())
        assert good("infer", *words).out != good("infer", words[0]).out
    refused = run("infer", "table.json", "--kind", "confidence")
    assert refused.code == 3 and "inference" in refused.err
    assert run("infer", "share.json", "--q", "2").code == 2


def test_reports_are_written_for_papers_too(released):
    result = engine.infer(Release.load("release.json"))
    good("infer", "release.json", "--report", "table.md", "--alpha", ".1")
    assert Path("table.md").read_text(encoding="utf-8") == result.to_markdown(alpha=0.1)
    good("infer", "release.json", "--report", "table.tex")
    assert Path("table.tex").read_text(encoding="utf-8") == result.to_latex()
    pytest.importorskip("docx")
    good("infer", "release.json", "--report", "table.docx")
    assert Path("table.docx").read_bytes().startswith(b"PK")
    assert run("infer", "release.json", "--report", "table.odt").code == 2


def test_infer_writes_report_and_plot(released):
    out = good("infer", "release.json", "--report", "report.html", "--plot", "plot.svg").out
    assert "Wrote report.html" in out
    assert "<svg" in Path("plot.svg").read_text()
    check_silence(Path("report.html").read_text())
    good("infer", "release.json", "--plot", "plot.png", "--json")
    assert Path("plot.png").read_bytes().startswith(b"\x89PNG")
    for words in (
        ("--plot", "plot.gif"),
        ("--plot", "nowhere/plot.png"),
        ("--report", "."),
        ("--report", "release.json"),
        ("--report", "a.svg", "--plot", "a.svg"),
    ):
        assert run("infer", "release.json", *words).code == 2


def test_infer_writes_the_release_with_its_results(released):
    release = Release.load("release.json")
    said = good("infer", "release.json", "--alpha", ".1", "-o", "both.json").out
    assert said.endswith("Wrote both.json: the release with these results\n")
    assert Release.load("both.json") == release
    held = json.loads(Path("both.json").read_text())["results"]
    assert held["result"] == json.loads(engine.infer(release).to_json(alpha=0.1))
    assert held["sha256"] == digest(held["result"])
    assert run("infer", "release.json", "-o", "both.json").code == 2  # it is there already
    assert run("infer", "release.json", "-o", "release.json", "--force").code == 2
    assert good("infer", "release.json", "-o", "both.json", "--force", "--json").json["wrote"] == "both.json"
    # a second pass reads the file with results as it reads the bare one
    assert good("infer", "both.json").out == printed(engine.infer(release).summary())


@pytest.mark.parametrize("content", [None, "", "{}", '{"confide": "plan"}', "garbage"])
def test_a_damaged_release_is_exit_code_3(survey, content):
    if content is not None:
        Path("release.json").write_text(content)
    for command in (("infer", "release.json"), ("verify", "release.json", "--ledger", "ledger.db")):
        assert run(*command).code == 3
        assert run(*command, "--json").json["exit_code"] == 3


def test_another_format_says_so(released):
    text = Path("release.json").read_text().replace('"format_version":"1.0"', '"format_version":"1.1"')
    Path("release.json").write_text(text)
    assert "read it with the confide that wrote it" in run("infer", "release.json").err


def test_regress_is_the_three_steps_in_one(book):
    done = good(
        *REGRESS, "--ledger", "ledger.db", "-o", "release.json", "--report", "report.html", "--plot", "plot.png"
    )
    assert done.out.splitlines()[-1] == "Charged 25.0% of the budget of 'survey'; 75.0% is left. Wrote release.json"
    table = good("infer", "release.json").out.rstrip("\n")
    assert table in done.out
    assert "region: South" in table
    assert len(entries()) == 1
    assert Path("report.html").stat().st_size > 1_000


def test_regress_options_reach_the_method(survey):
    done = good(
        *REGRESS,
        "--unaccounted",
        "--method",
        "ssp",
        "--param",
        "cov=classical",
        "--no-clipping-check",
        "--relation",
        "substitute",
        "--n",
        "2000",
        "-o",
        "r.json",
        "--json",
    )
    release = Release.load("r.json")
    assert release.plan.method.parameters["cov"] == "classical"
    assert release.plan.method.parameters["clipping_check"] is False
    assert release.plan.n == 2000
    assert done.json["result"]["term"] == ["Intercept", "age", "region[T.South]"]
    assert done.json["wrote"] == "r.json"
    assert done.json["ledger"] is None
    assert done.json["release"] is None
    assert run(*REGRESS, "--unaccounted", "--param", "objective=guess").code == 3
    assert run(*REGRESS, "--unaccounted", "--relation", "substitute", "--n", "7").code == 3


def test_regress_without_a_file_says_so_and_json_carries_the_release(book):
    assert good(*REGRESS[:-1], ".1", "--ledger", "ledger.db").out.endswith("is left. Not kept: use -o FILE\n")
    found = good(*REGRESS[:-1], ".1", "--ledger", "ledger.db", "--json").json
    release = Release.from_json(json.dumps(found["release"]))
    assert release.sha256 == found["release_sha256"]
    assert engine.infer(release).to_json() == json.dumps(found["result"])


def test_regress_without_privacy_or_ledger_is_refused(book):
    assert run(*REGRESS[:-2], "--ledger", "ledger.db").code == 2
    assert run(*REGRESS).code == 2
    assert run(*REGRESS, "--unaccounted", "--plot", "plot.docx").code == 2
    assert entries() == []


def test_regress_by_each_kind_of_privacy(survey):
    for words in (("--rho", ".5"), ("--epsilon", "2", "--delta", "1e-6")):
        good(*REGRESS[:-2], *words, "--unaccounted")
    # a Gaussian method has no pure guarantee, and says what to ask for instead
    assert run(*REGRESS[:-2], "--epsilon", "2", "--unaccounted", "--json").json["error"] == "NoConversion"


def test_methods_lists_ours_and_a_strangers():
    out = good("methods").out
    for text in ("ssp (version 1)", "stranger_mean (version 1)", "formula, cov", "add-remove, substitute", "GDP"):
        assert text in out
    listed = {method["name"]: method for method in good("methods", "--json").json["methods"]}
    assert listed["ssp"]["family"] == "regression"
    assert listed["stranger_mean"]["parameters"] == ["column", "widen"]


def test_a_strangers_method_gets_everything_for_nothing(book):
    good(
        "plan",
        "age",
        "--method",
        "stranger_mean",
        "--schema",
        "schema.toml",
        "--mu",
        ".5",
        "--param",
        "widen=2",
        "-o",
        "mean.json",
    )
    good("release", "mean.json", "survey.parquet", "--ledger", "ledger.db", "-o", "mean.release.json")
    out = " ".join(good("infer", "mean.release.json", "--report", "mean.html", "--plot", "mean.png").out.split())
    assert "mean" in out
    assert "Gaussian DP, mu = 0.5" in out and "one record added or removed" in out
    result = good("infer", "mean.release.json", "--json").json["result"]
    assert result["ci_low"][0] < 39.5 < result["ci_high"][0]
    good("verify", "mean.release.json", "--ledger", "ledger.db")
    assert entries()[0]["method"] == "stranger_mean 1"
    assert run("infer", "mean.release.json", "--subset", "x").code in (0, 3)


def test_odds_ratios_stand_in_the_csv_file(survey):
    run_it = (
        "regress",
        "region ~ age",
        "survey.csv",
        "--schema",
        "schema.toml",
        "--mu",
        "2",
        "--unaccounted",
        "--simulate",
        "1",
    )
    said = good(*run_it, "--method", "logistic", "--csv", "odds.csv", "--plot", "odds.svg", "--verbose").out
    assert re.search(r"^term +odds ratio", said, re.M) and not re.search(r"^Intercept", said, re.M)
    assert "Intercept" in good(*run_it, "--method", "logistic", "--log-odds").out
    table = pd.read_csv("odds.csv", index_col="term")
    for end in ("", "_ci_low", "_ci_high"):
        column, exponent = f"odds_ratio{end}", end.removeprefix("_") or "estimate"
        assert np.isnan(table.loc["Intercept", column])  # odds at 0, and no ratio
        rest = table.drop(index="Intercept")
        assert np.allclose(rest[column], np.exp(rest[exponent])) and rest[column].notna().all()
    good("regress", "happy ~ age", *run_it[2:], "--csv", "line.csv")
    assert "odds_ratio" not in pd.read_csv("line.csv")


def test_a_result_of_a_strangers_own_kind(book):
    good("plan", "age", "--method", "stranger_bare", "--schema", "schema.toml", "--mu", ".5", "-o", "bare.json")
    good("release", "bare.json", "survey.csv", "--ledger", "ledger.db", "-o", "bare.release.json")
    assert good("infer", "bare.release.json").out == "mean [of x] = 1\n"
    assert good("infer", "bare.release.json", "--json").json["result"] == {"mean": None, "sd": None}
    good("infer", "bare.release.json", "--report", "bare.html", "--plot", "bare.svg")
    assert run("infer", "bare.release.json", "--alpha", ".1").code == 3
