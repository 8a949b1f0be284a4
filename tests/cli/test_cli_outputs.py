"""Where results go: what cannot take them is refused before the charge, and so is whatever else fails for public facts after it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest
from tests.cli.cli_runner import check_silence, entries, good, run

from confide import Release, engine
from confide.cli import app, files, main
from confide.ledger import Ledger

ASK = ("--schema", "schema.toml", "--mu", ".5", "--ledger", "ledger.db")
REGRESS = ("regress", "happy ~ age", "survey.csv", *ASK)


def ended(*words: str, stdout: Any) -> tuple[int, str]:
    """The exit code of a command line with that stdout, and what it says on stderr."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", said)
        app(list(words))
    assert isinstance(end.value.code, int)
    check_silence(said.getvalue())
    return end.value.code, said.getvalue()


def closed_pipe() -> Any:
    reads, writes = os.pipe()
    os.close(reads)
    return os.fdopen(writes, "w")


def full_device() -> Any:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    return open("/dev/full", "w", encoding="utf-8")  # noqa: PTH123


STREAMS = {"closed": lambda: None, "full": full_device, "unread": closed_pipe}


@contextmanager
def tiny_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    if not sys.platform.startswith("linux"):
        pytest.skip("no tmpfs here")
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
    made = subprocess.run(words, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this account may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_stdout_that_cannot_take_the_only_copy_is_refused(book: Path, stream: str, more: tuple[str, ...]) -> None:
    code, said = ended(*REGRESS, *more, stdout=STREAMS[stream]())
    assert code == 2
    assert more or "which cannot take it" in said
    assert entries() == []


@pytest.mark.parametrize(
    "words",
    [
        ("publish", "publication.toml", "survey.csv", *ASK),
        ("schema", "bounds", "survey.csv", "--columns", "age", "--mu", ".1", "--ledger", "ledger.db"),
        ("table", "region", "survey.csv", *ASK, "--inference", "population"),
        ("test", "f_oneway", "happy ~ region", "survey.csv", *ASK),
    ],
)
def test_every_command_that_charges_asks_that_of_stdout(book: Path, words: tuple[str, ...]) -> None:
    Path("publication.toml").write_text('[analyses.a]\nmethod = "least_squares"\nformula = "happy ~ age"\n')
    code, said = ended(*words, stdout=None)
    assert code == 2
    assert "which cannot take it (it is closed)" in said
    assert entries() == []


def test_with_a_file_a_closed_stdout_is_no_failure(book: Path) -> None:
    assert ended(*REGRESS, "--quiet", "-o", "release.json", stdout=None) == (0, "")
    assert engine.verify(Release.load("release.json"), Ledger.open("ledger.db")).ok


def test_with_a_file_a_document_that_cannot_be_printed_is_told_on_stderr(book: Path) -> None:
    code, said = ended(*REGRESS, "--json", "-o", "release.json", stdout=full_device())
    assert code == 6
    assert "No space left on device" in said and "the release is in release.json" in said
    assert engine.verify(Release.load("release.json"), Ledger.open("ledger.db")).ok


@pytest.mark.parametrize(("stream", "expected"), [("full", 6), ("unread", 141)])
def test_with_a_file_a_table_that_cannot_be_printed_is_kept_there(book: Path, stream: str, expected: int) -> None:
    """Nothing is printed before the charge, and what was charged is in the file."""
    assert ended(*REGRESS, "-o", "release.json", stdout=STREAMS[stream]())[0] == expected
    assert len(entries()) == 1
    assert engine.verify(Release.load("release.json"), Ledger.open("ledger.db")).ok


def test_without_either_stream_the_file_is_written(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "stdout", None)
        patch.setattr(sys, "stderr", None)
        app([*REGRESS, "-o", "release.json", "--plot", "plot.png"])
    assert end.value.code == 0
    assert engine.verify(Release.load("release.json"), Ledger.open("ledger.db")).ok
    assert Path("plot.png").is_file()


def test_a_release_that_nothing_else_takes_comes_out_on_stderr(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.Output, "write", full)
    code, said = ended("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json", stdout=None)
    assert code == 6
    saved, _ = json.JSONDecoder().raw_decode(said[said.index('{"body"') :])
    assert engine.verify(Release.from_json(json.dumps(saved)), Ledger.open("ledger.db")).ok


@pytest.mark.parametrize(
    "words",
    [
        ("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "disk/release.json"),
        (*REGRESS, "-o", "release.json", "--report", "disk/report.html"),
        (*REGRESS, "-o", "release.json", "--plot", "disk/plot.png"),
        (*REGRESS, "-o", "release.json", "--csv", "disk/table.csv"),
        ("synthesize", "happy ~ age", "survey.csv", *ASK, "-o", "disk/rows.csv"),
    ],
)
def test_a_full_disk_under_an_output_is_refused(planned: Path, words: tuple[str, ...]) -> None:
    with tiny_disk(Path("disk"), 40):
        refused = run(*words)
        assert refused.code == 2
        assert "has no room for what will be written (No space left on device)" in refused.err
        assert list(Path("disk").iterdir()) == []
    assert not Path("release.json").exists()
    assert entries() == []


def test_a_stdout_on_a_full_disk_is_refused(book: Path) -> None:
    with tiny_disk(Path("disk"), 40), Path("disk/out.txt").open("w", encoding="utf-8") as out:
        code, said = ended(*REGRESS, stdout=out)
    assert code == 2
    assert "the disk is full" in " ".join(said.split())
    assert entries() == []


def test_what_was_written_has_its_own_length_and_not_that_of_its_room(book: Path) -> None:
    Path("table.csv").write_text("old" * 100_000)
    good(*REGRESS, "-o", "release.json", "--csv", "table.csv", "--report", "report.html", "--force")
    for name in ("release.json", "table.csv", "report.html"):
        assert b"\0" not in Path(name).read_bytes()
    assert Path("table.csv").stat().st_size < 2_000
    assert not list(Path().glob(".confide-*"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--alpha", "5"), "alpha"),
        (("--ratios",), "--ratios is about logistic or Poisson regressions"),
        (("--effects",), "--effects is about"),
        (("--predict", "other.csv"), "age"),
        (("--predict", "survey.parquet"), "cannot be read as CSV"),
        (("--plot", "plot.jpeg"), "must end in"),
        (("--report", "gone/report.html"), "its folder does not exist"),
        (("-o", "gone/release.json"), "its folder does not exist"),
        (("--csv", "schema.toml"), "is the schema as well"),
        (("--margin", "age=.1"), "one of them"),
        (("--method", "logistic"), "happy"),
        (("--subset", "nonsense"), "--subset"),
    ],
)
def test_what_comes_after_the_charge_is_refused_before_it(book: Path, words: tuple[str, ...], told: str) -> None:
    Path("other.csv").write_text("height\n1\n")
    refused = run(*REGRESS, *words)
    assert refused.code in (2, 3)
    assert told in refused.err
    assert entries() == []


@pytest.mark.parametrize(
    "words",
    [
        ("test", "anova", "happy ~ region", "survey.csv", *ASK),
        ("test", "f_oneway", "happy ~ age", "survey.csv", *ASK),
        ("test", "f_oneway", "happy ~ region", "survey.csv", *ASK, "--effect", "-1", "--n", "500"),
        ("test", "binomtest", "region", "survey.csv", *ASK, "--p", "2"),
        ("test", "chisquare", "region", "survey.csv", *ASK, "--expected", ".2,.3,.5"),
        ("test", "f_oneway", "happy ~ region", "survey.csv", *ASK, "--alpha", "0"),
        ("table", "region", "survey.csv", *ASK, "--inference", "population", "--alpha", "nan"),
        ("describe", "age ~ region", "survey.csv", *ASK, "--inference", "population", "--alpha", "1"),
        ("interval", "proportion", "survey.csv", "--column", "region", *ASK, "--level", "South", "--alpha", "7"),
        ("synthesize", "happy ~ age", "survey.csv", *ASK, "-o", "rows.csv", "--rows", "0"),
        ("synthesize", "happy ~ age", "survey.csv", *ASK, "-o", "rows.csv", "--generator", "none"),
        ("regress", "happy ~ age", "survey.csv", *ASK, "--method", "stranger_bare", "--alpha", ".1"),
        ("regress", "age", "survey.csv", *ASK, "--method", "stranger_bare", "--alpha", ".1"),
        ("regress", "age", "survey.csv", *ASK, "--method", "stranger_bare", "--report", "bare.md"),
        ("regress", "age", "survey.csv", *ASK, "--method", "stranger_bare", "--csv", "bare.csv"),
    ],
)
def test_so_it_is_for_every_command(book: Path, words: tuple[str, ...]) -> None:
    assert run(*words).code in (2, 3)
    assert entries() == []


@pytest.mark.parametrize("option", [("--plot", "plot.png"), ("--report", "report.html")])
def test_a_picture_that_cannot_be_drawn_is_told_in_full_before_the_charge(
    book: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("'bogus' is not a valid value for backend")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", fail)
    refused = run(*REGRESS, "-o", "release.json", *option)
    assert refused.code == 3
    assert "'bogus' is not a valid value for backend" in refused.err
    assert not Path("release.json").exists() and not Path(option[1]).exists()
    assert entries() == []


def test_a_rehearsal_without_numbers_for_what_is_asked_beside_the_table_refuses_nothing(book: Path) -> None:
    done = good(
        "regress", "region ~ age", "survey.csv", *ASK, "--method", "logistic", "--effects", "-o", "release.json"
    )
    assert "Wrote release.json" in done.out
    assert len(entries()) == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_letter_is_no_failure_after_the_charge(
    book: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    for name in ("schema.toml", "survey.csv"):
        Path(name).write_text(Path(name).read_text("utf-8").replace("South", "Střed"), "utf-8")
    held = io.BytesIO()
    with monkeypatch.context() as patch:
        terminal = io.TextIOWrapper(held, encoding=encoding)
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "argv", ["confide", "table", "region", "survey.csv", *ASK, "--inference", "population"])
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 0
    # as an escape, or as UTF-8 where the stream's own encoding cannot be meant
    assert b"St\\u0159ed" in held.getvalue() or "Střed".encode() in held.getvalue()
    assert len(entries()) == 1
