"""Every erratum that prints its numbers finds them; every row of the page has its columns and names something that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.few import few
from tests.messages import refuses
from typer.testing import CliRunner

from confide.cli import app
from confide.errors import PlanError
from confide_lab.errata import names, rows
from confide_lab.errata.register import Finding, near
from confide_lab.experiments import names as experiments

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "evidence" / "errata.md").read_text()
TABLES = [[line for line in part.splitlines() if line.startswith("| ")] for part in re.split(r"\n\n", PAGE)]


@pytest.mark.parametrize("name", few(names(), "binagg-e8", "precise-p4", "gptr-e2", "eptr-e10d", "zil-e7"))
def test_the_numbers_of_an_erratum_are_found(name: str) -> None:
    found = rows(name)
    assert found and all(one.holds for one in found), [one for one in found if not one.holds]
    # a band that any number would meet says nothing
    assert all(one.high - one.low <= max(0.3, 0.5 * abs(one.found)) for one in found)


def test_a_number_that_is_not_the_page_s_is_told() -> None:
    assert not near("x", "", 1.03, 1.0, 0.02).holds and not Finding("x", "", 0.5, 0.6, 0.7).holds
    with refuses(PlanError):
        rows("binagg-e99")


def test_the_command_prints_them() -> None:
    done = CliRunner().invoke(app, ["lab", "errata", "gptr-e7"])
    assert done.exit_code == 0 and "0.0425" in done.stdout and "as stated" in done.stdout
    assert "zil-e13" in CliRunner().invoke(app, ["lab", "errata"]).stdout


def test_every_row_of_the_page_has_the_columns_of_its_head() -> None:
    for lines in TABLES:
        if lines:
            widths = {len(re.split(r"(?<!\\)\|", line)) for line in lines}
            assert len(widths) == 1, [
                line[:80]
                for line in lines
                if len(re.split(r"(?<!\\)\|", line)) != len(re.split(r"(?<!\\)\|", lines[0]))
            ]


def test_every_row_of_the_papers_names_what_runs() -> None:
    lines = next(lines for lines in TABLES if lines and "where it is checked" in lines[0])[2:]
    for line in lines:
        place = re.split(r"(?<!\\)\|", line)[5]
        for command in re.findall(r"confide lab errata ([\w.-]+)", place):
            assert command in names(), command
        for command in re.findall(r"confide lab run ([\w.]+)", place):
            assert command in experiments(), command
        assert re.search(r"`(confide lab |pytest )", place), f"no command: {line[:90]}"
        if re.search(r"Redberg, Zhu|Shen, Tong|Zhou, Liu|Lu, Chen|Lin, Slavkovic|the same", line.split("|")[1]):
            # a row of the five papers prints its numbers, or says that it has none
            assert re.search(r"`confide lab (errata|run|bench) |words alone", place), line[:90]
        for path in re.findall(r"(tests/[\w/.]+\.py)`", place):
            assert (ROOT / path).is_file(), path
