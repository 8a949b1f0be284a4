"""The face itself: help that works, --json on every command, hostile names, real processes."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from tests.cli.cli_runner import entries, good, run, strict_json
from tests.test_prose_lint import forbidden

from confide import cli
from confide._version import __version__
from confide.cli import app
from confide.cli.registry import OURS, Commands, purposes
from confide.cli.session import Session, strict
from confide.cli.tables import table


def commands(group=None, path=()):
    """Every command with its path."""
    group = group or typer.main.get_command(app)
    context = typer.Context(group)
    # a package of its own brings "lab": it is not among the front's own commands
    for name, command in ((name, group.get_command(context, name)) for name in group.list_commands(context)):
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())
PATHS = list(COMMANDS)


@cache
def help_of(path):
    """What a command prints of itself."""
    return good(*path, "--help")


def examples(text: str) -> list[list[str]]:
    """The command lines in a help text."""
    lines = re.sub(r"\\\s*\n", " ", text).splitlines()
    found = [line.strip() for line in lines if line.strip().startswith("confide ")]
    return [shlex.split(re.sub(r"\s{2,}\(.*\)$", "", line))[1:] for line in found]


def test_a_list_of_commands_says_what_each_says_of_itself_and_loads_none():
    for name, purpose in purposes():
        assert " ".join(Commands()[name].help.split("\n\n")[0].split()) == purpose
    code = "import sys; from confide.cli import app; print([one for one in sys.modules if 'confide.cli.' in one])"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"confide.cli.{where.split(':')[0]}'" in there for where in OURS.values())


def test_all_commands_are_here():
    assert set(map(" ".join, PATHS)) == {
        "schema draft",
        "schema check",
        "schema sample",
        "schema bounds",
        "explore",
        "advise",
        "plan",
        "local plan",
        "release",
        "infer",
        "table",
        "describe",
        "test",
        "regress",
        "interval",
        "publish",
        "synthesize",
        "refit",
        "local protect",
        "local fit",
        "lab bench",
        "lab list",
        "lab run",
        "lab report",
        "lab papers",
        "lab errata",
        "lab referee",
        "ledger init",
        "ledger show",
        "ledger verify",
        "ledger amend",
        "ledger convert",
        "ledger tip",
        "verify",
        "statement",
        "methods",
        "audit",
        "curve",
        "studio",
    }


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_json_purpose_example_and_says_what_is_public(path):
    command = COMMANDS[path]
    assert any("--json" in parameter.opts for parameter in command.params)
    purpose = command.help.split("\n\n")[0]
    assert "\n" not in purpose.strip()
    assert re.search("public|published|schema alone|no record", command.help)
    words = " ".join(path).split()
    shown = [line[: len(words)] for line in examples(command.help)]
    assert shown and all(line == words for line in shown)
    shown = help_of(path).out
    assert "Usage:" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_an_example_can_be_pasted_and_every_one_parses(path, survey):
    example = help_of(path).out.partition("Example:")[2].partition("╭")[0]
    lines = [line.rstrip() for line in example.splitlines()]
    assert max(map(len, lines)) < 80
    starts = [before[-1:] != "\\" for before, line in pairwise(lines) if line.strip()]
    own = [line.split()[0] == "confide" for line in lines[1:] if line.strip()]
    assert starts == own, "a line that is continued ends in a backslash"
    for words in examples(example):
        with COMMANDS[path].make_context(words[len(path) - 1], words[len(path) :], obj=Session(json=False)):
            pass


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_gives_usage_errors_in_json(path):
    if path == ("lab", "run"):
        pytest.skip("its --json takes a file")
    if path == ("lab", "bench"):
        pytest.skip("options after a name are the benchmark's own")
    done = run(*path, "--no-such-option", "--json")
    assert done.code == 2
    assert done.json["error"] == "UsageError"
    assert " ".join(path) in done.json["message"]


def test_the_path_in_the_help_works_line_by_line(survey):
    schema = Path("schema.toml").read_text()
    Path("schema.toml").unlink()
    lines = examples(typer.main.get_command(app).help)
    assert [line[0] for line in lines] == ["schema", "schema", "ledger", "plan", "release", "infer"]
    for line in lines:
        good(*line)
        if line[1] == "draft":
            Path("schema.toml").write_text(schema)  # the bounds are filled in by hand


def test_every_example_works(survey):
    order = [
        "ledger init",
        "schema check",
        "schema sample",
        "explore",
        "advise",
        "plan",
        "release",
        "infer",
        "table",
        "describe",
        "test",
        "regress",
        "synthesize",
        "refit",
        "verify",
        "statement",
        "ledger show",
        "ledger verify",
        "ledger amend",
        "ledger tip",
        "methods",
    ]
    by_path = {" ".join(path): examples(command.help)[0] for path, command in COMMANDS.items()}
    assert set(by_path) == {
        *order,
        "schema draft",
        "ledger convert",
        "audit",
        "curve",
        "studio",
        "publish",
        "local plan",
        "local protect",
        "local fit",
        "interval",
        "schema bounds",
        "lab bench",
        "lab list",
        "lab run",
        "lab report",
        "lab papers",
        "lab errata",
        "lab referee",
    }
    few = {"advise": ("--replications", "4")}  # the example is of as many runs as a forecast has
    printed = [good(*by_path[name], *few.get(name, ())) for name in order]
    printed += [help_of(path) for path in PATHS if path[0] != "lab"]
    lines = [line for done in printed for line in (done.out + done.err).splitlines()]
    # a statement names the statistics as the release's file does
    found = forbidden("\n".join(line for line in lines if not line.endswith("grid gaussian")))
    assert found == [], found
    Path("schema.toml").unlink()
    good(*by_path["schema draft"])


def test_the_module_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "confide", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"confide {__version__}\n"


def test_version_and_no_command():
    assert good("--version").out == f"confide {__version__}\n"
    assert good("--version", "--json").json == {"version": __version__}
    assert good("--json", "--version").json == {"version": __version__}
    for words in ((), ("schema",), ("ledger",)):
        assert run(*words).code == 2
    assert run("--json").json["error"] == "UsageError"
    assert run("nonsense", "--json").json["exit_code"] == 2


def _ends(*_, **__):
    """What typer 0.12 does with click 8.5: the version is printed for every command, and the code is 0."""
    typer.echo(f"confide {__version__}")
    raise typer.Exit


BROKEN = {
    "ends while options are read": (cli.CommandGroup, "make_context", _ends),
    "reads and runs nothing": (cli.CommandGroup, "invoke", lambda *_: None),
    "runs another command": (
        cli.CommandGroup,
        "resolve_command",
        lambda front, *_: ("methods", Commands()["methods"], []),
    ),
    "leaves out the command's function": (typer.core.TyperCommand, "invoke", lambda *_: None),
    "hands nothing on": (cli, "app", lambda: None),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_command_that_did_not_run_is_an_error(fault, json, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # put back after the test
    line = ["confide", "ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2", *json]
    monkeypatch.setattr(sys, "argv", line)
    with monkeypatch.context() as broken:
        broken.setattr(*BROKEN[fault], raising=False)
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert end.value.code == 2
    assert not Path("ledger.db").exists()
    assert "did not run" in "".join(capsys.readouterr())
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert Path("ledger.db").exists()


def test_no_option_before_a_command_takes_a_value():
    """A command's words come first on its line, by which it is told whether the one that ran is the one that was named."""
    groups = [typer.main.get_command(app)]
    for group in groups:
        assert all(getattr(one, "is_flag", False) for one in group.params)
        context = typer.Context(group)
        below = [group.get_command(context, name) for name in group.list_commands(context)]
        groups += [one for one in below if hasattr(one, "commands")]
    assert len(groups) >= 3


HOSTILE = [
    "[red]x[bold].csv",
    "a b;$(touch owned).csv",
    "-x.csv",
    "new\nline.csv",
    "\x1b[2J\x1b]0;owned\x07.csv",
    "ünï©ode\u202e.csv",
    "'\".csv",
    "%s{0}.csv",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_names_are_names(planned, name):
    data = Path(f"./{name}")
    os.link("survey.csv", data)
    given = f"./{name}" if name.startswith("-") else name
    out = given.replace(".csv", ".json")
    done = good("release", "plan.json", given, "--ledger", "ledger.db", "-o", out)
    assert Path(out).exists()
    report = given.replace(".csv", ".html")
    shown = [
        done,
        good("infer", out, "--report", report),
        run("infer", out + ".missing"),
        run("release", "plan.json", given + ".nope", "--unaccounted", "-o", "n.json"),
        run("schema", "check", given, "--json"),
        run("schema", "check", given),
    ]
    for one in shown:
        assert "\x1b" not in one.out + one.err
        assert "\u202e" not in one.out + one.err
    assert not Path("owned").exists()
    if name.startswith("[red]"):
        assert "[red]x[bold].json" in done.out
    good("release", "plan.json", given, "--unaccounted", "-o", "j.json", "--json")


def test_hostile_names_inside_a_schema_do_not_reach_the_terminal(survey):
    text = Path("schema.toml").read_text().replace("who was asked [sic]", "\\u001b[2Jgone [bold]")
    Path("schema.toml").write_text(text)
    out = good("schema", "check", "schema.toml").out
    assert "\x1b" not in out
    assert "[bold]" in out


def test_tables_keep_every_character_in_a_pipe(capsys):
    long = "x" * 500
    table(Session(), ("a [b]", "c"), [("[red]1[/red]", long), (":smile:", "")], right=("c",))
    out = capsys.readouterr().out
    for text in ("a [b]", "[red]1[/red]", long, ":smile:"):
        assert text in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_strict_json_has_no_number_that_json_lacks():
    import numpy as np

    from confide import GDP

    held = {
        "a": float("nan"),
        "b": (np.float64("inf"), np.int64(3), np.bool_(True)),
        "c": GDP(1.0),
        "d": Path("x"),
        1: None,
    }
    text = json.dumps(strict(held), allow_nan=False)
    found = strict_json(text)
    assert found["a"] is None
    assert found["b"][:2] == [None, 3]
    assert found["c"]["mu"] == 1.0


def test_the_spinner_is_silent_without_a_terminal_and_shows_with_one(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for kind, seen in ((io.StringIO, False), (Terminal, True)):
        held = kind()
        monkeypatch.setattr(sys, "stderr", held)
        monkeypatch.setenv("TERM", "xterm")
        with Session().doing("reading the records"):
            time.sleep(0.15)
        assert ("reading the records" in held.getvalue()) == seen


# real processes -------------------------------------------------------------------------------------------------------

CONFIDE = [sys.executable, "-c", "from confide.cli import main; main()"]


def process(*words: str, **kwargs):
    return subprocess.run([*CONFIDE, *words], capture_output=True, timeout=600, **kwargs)


def test_the_entry_point_in_a_process(planned):
    narrow = {**os.environ, "COLUMNS": "40", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    done = process(
        "regress",
        "happy ~ age + region",
        "survey.csv",
        "--schema",
        "schema.toml",
        "--mu",
        "1",
        "--ledger",
        "ledger.db",
        "--no-preflight",
        "-o",
        "r.json",
        env=narrow,
    )
    assert done.returncode == 0, done.stderr
    assert b"region: South" in done.stdout
    assert b"Traceback" not in done.stderr
    assert done.stderr == b""


def test_a_closed_pipe_and_a_name_that_is_no_utf8(planned):
    name = os.fsdecode(b"bad\xff.json")
    line = shlex.join([*CONFIDE, "release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", name])
    done = subprocess.run(["bash", "-c", f"{line} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, timeout=600)
    # the reader left, before the charge or after it: what was charged must be there all the same
    assert done.returncode in (0, 141)
    assert Path(name).exists() == (len(entries()) == 1)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_in_a_process(planned):
    wait = "import time\nfrom confide import engine\nengine.release = lambda *a, **k: print('inside', flush=True) or time.sleep(600)\n"
    code = f"{wait}from confide.cli import main; main()"
    words = ["release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json"]
    child = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"inside\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=300)
    assert child.returncode == 130
    assert b"charge already made stays" in err
    assert b"Traceback" not in err
    assert not Path("release.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="resource")
def test_help_answers_soon():
    import resource

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    done = process("--help")
    assert done.returncode == 0
    assert b"draft" in done.stdout
    assert spent() - before < 5  # CPU seconds, a guard against an accident: the package takes about 1.3, the face 0.1


def test_the_cli_itself_imports_nothing_heavy():
    code = (
        "import sys, types; package = types.ModuleType('confide'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['confide'] = package; import confide.cli\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'pyarrow', 'matplotlib', 'formulaic', 'sqlalchemy'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    import confide

    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(confide.__file__).parent)], capture_output=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
