"""What fails behind the gate: exit codes, and nothing of a record in any output."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.cli.cli_runner import entries, good, run

from confide import Release, engine
from confide.cli import files
from confide.errors import PlanError
from confide.ledger import Ledger
from confide.regression import LeastSquares


def plan_of(method: str) -> tuple[str, ...]:
    good("plan", "age", "--method", method, "--schema", "schema.toml", "--mu", "1", "-o", f"{method}.json")
    return ("release", f"{method}.json", "survey.csv", "--ledger", "ledger.db", "-o", f"{method}.out.json")


def test_a_method_that_raises_is_exit_code_6_and_the_charge_stays(book):
    done = run(*plan_of("stranger_raising"))
    assert done.code == 6
    assert "charge stays" in done.err
    assert [charge["status"] for charge in entries()] == ["without_release"]
    assert not Path("stranger_raising.out.json").exists()
    assert run(*plan_of_again("stranger_raising"), "--json").json["exit_code"] == 6


def plan_of_again(method: str) -> tuple[str, ...]:
    return ("release", f"{method}.json", "survey.csv", "--ledger", "ledger.db", "-o", f"{method}.out.json")


def test_a_method_that_raises_without_a_ledger_charges_nobody(book):
    plan_of("stranger_raising")
    done = run("release", "stranger_raising.json", "survey.csv", "--unaccounted", "-o", "x.json")
    assert done.code == 6
    assert "no ledger was charged" in done.err
    assert entries() == []
    # simulated noise may show the exception to whoever develops a method; the command line does not
    assert (
        run("release", "stranger_raising.json", "survey.csv", "--unaccounted", "--simulate", "1", "-o", "x.json").code
        == 2
    )


def test_ctrl_c_is_130_and_says_that_a_charge_stays(book):
    done = run(*plan_of("stranger_interrupted"))
    assert done.code == 130
    assert "charge already made stays" in done.err
    assert [charge["status"] for charge in entries()] == ["without_release"]
    assert run(*plan_of_again("stranger_interrupted"), "--json").json["error"] == "Interrupted"


def test_ctrl_c_in_the_search_for_bounds_does_not_deny_a_charge(book, monkeypatch):
    def press(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("confide.ask.bounds.find_bounds", press)
    words = ("schema", "bounds", "survey.csv", "--columns", "age", "--mu", ".1")
    done = run(*words, "--ledger", "ledger.db")
    assert done.code == 130
    assert "charge already made stays" in done.err
    assert "nothing was charged" not in done.err.lower()
    assert "charge" not in run(*words, "--unaccounted").err.lower().replace("nothing was charged", "")


def test_ctrl_c_before_the_gate_says_nothing_of_a_charge(survey, monkeypatch):
    def press(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LeastSquares, "plan", press)
    done = run("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1")
    assert done.code == 130
    assert "charge" not in done.err


def test_an_exit_behind_the_gate_does_not_come_out(book):
    done = run(*plan_of("stranger_exiting"))
    assert done.code == 6
    assert "the charge stays in the ledger as entry" in " ".join(done.err.split())
    assert "SENTINEL" not in done.err


def test_an_unexpected_error_behind_the_gate_withholds_even_its_class(planned, monkeypatch):
    def fail(*_, **__):
        raise OverflowError("SENTINEL")

    monkeypatch.setattr(engine, "release", fail)
    done = run("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json")
    assert done.code == 6
    assert "OverflowError" not in done.err
    assert ".py" not in done.err
    assert run("release", "plan.json", "survey.csv", "--unaccounted", "-o", "release.json").code == 2


def test_an_unexpected_error_in_a_public_step_names_its_class_and_line(survey, monkeypatch):
    def fail(*_, **__):
        raise OverflowError("SENTINEL")

    monkeypatch.setattr(LeastSquares, "plan", fail)
    done = run("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1")
    assert done.code == 2
    line = fail.__code__.co_firstlineno + 1
    assert f"unexpected error in plan (OverflowError in test_cli_failures.py, line {line}; its text" in done.err
    assert "SENTINEL" not in done.err
    assert (
        run("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1", "--json").json["error"] == "UnexpectedError"
    )


def test_an_unexpected_error_in_a_reader_withholds_its_class(survey, monkeypatch):
    def fail(*_, **__):
        raise UnicodeError("SENTINEL")

    monkeypatch.setattr("confide.schema.schema.draft", fail)
    done = run("schema", "draft", "survey.csv")
    assert done.code == 2
    assert "UnicodeError" not in done.err


def test_no_reply_is_a_result(book):
    done = good(*plan_of("stranger_silent"))
    assert "declined to answer" in done.out
    assert "declined" in good("infer", "stranger_silent.out.json").out
    assert good("infer", "stranger_silent.out.json", "--json").json["result"]["estimate"] == [None]


REGRESS = ("regress", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", "1", "--ledger", "ledger.db")


def test_a_table_that_cannot_be_shown_after_the_charge(book, monkeypatch):
    right = LeastSquares.infer

    def fail(self, release, *rest):
        if release.simulated:  # what fails in the rehearsal is never charged
            return right(self, release, *rest)
        raise ZeroDivisionError("SENTINEL")

    monkeypatch.setattr(LeastSquares, "infer", fail)
    done = run(*REGRESS, "-o", "release.json")
    assert done.code == 6
    assert "the release is in release.json" in done.err
    assert engine.verify(Release.load("release.json"), Ledger.open("ledger.db")).ok


def test_a_report_that_cannot_be_written_after_the_charge_keeps_the_release(book, monkeypatch):
    right, drawings = files._save_plot, []

    def fail(drawn, path):
        drawings.append(path)
        if len(drawings) % 2:  # the rehearsal
            return right(drawn, path)
        raise PlanError("the plot cannot be written: " + "No space left on device")

    monkeypatch.setattr(files, "_save_plot", fail)
    with_file = run(*REGRESS, "-o", "release.json", "--plot", "plot.png")
    assert with_file.code == 6
    assert "the release is in release.json" in with_file.err
    # without -o the release would be lost: it is printed
    without = run(*REGRESS, "--plot", "plot.png")
    assert without.code == 6
    saved = Release.from_json(without.out[without.out.index('{"body"') :])
    assert engine.verify(saved, Ledger.open("ledger.db")).ok


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error"), MemoryError()])
def test_whatever_stops_the_writing_the_release_comes_out(book, monkeypatch, error):
    def stop(self, content):
        raise error

    monkeypatch.setattr(files.Output, "write", stop)
    done = run(*REGRESS, "-o", "release.json")
    assert done.code == (130 if isinstance(error, KeyboardInterrupt) else 6)
    Release.from_json(done.out[done.out.index('{"body"') :])
    assert "stays" in done.err


def test_a_warning_of_a_reader_is_not_shown_and_one_of_the_ledger_is(planned, monkeypatch):
    import warnings

    from confide import sources

    read, opened = sources.read, Ledger.open.__func__

    def noisy_read(*args, **kwargs):
        warnings.warn("SENTINEL", UserWarning, stacklevel=1)
        return read(*args, **kwargs)

    def noisy_open(cls, *args, **kwargs):
        warnings.warn("the ledger is on a network disk", UserWarning, stacklevel=1)
        return opened(cls, *args, **kwargs)

    monkeypatch.setattr(sources, "read", noisy_read)
    monkeypatch.setattr(Ledger, "open", classmethod(noisy_open))
    done = good("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json")
    assert "network disk" in done.err
