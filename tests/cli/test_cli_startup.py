"""What each command loads: asked of the modules, which are the same on any machine, and not of a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.cli_runner import run

import confide as cf
from confide.cli import registry

HEAVY = {
    *(
        "numpy",
        "pandas",
        "scipy",
        "scipy.stats",
        "scipy.optimize",
        "scipy.signal",
        "scipy.linalg",
        "pyarrow",
        "polars",
        "matplotlib",
    ),
    *("formulaic.materializers", "sqlalchemy", "cryptography", "jinja2", "rich", "sklearn", "statsmodels", "pydantic"),
    # what the fronts of scipy.special and of NumPy's medians bring, of which functions alone are used
    *("scipy.special._orthogonal", "scipy.special._support_alternative_backends", "numpy.f2py", "numpy.ma"),
    # methods that are not asked
    *(
        "confide.methods.tables.means",
        "confide.methods.regression.least_squares.method",
        "confide.methods.regression.glm.logistic",
    ),
}
LAZY = ("ledger", "noise", "results", "testing")
_RUN = """
import json, sys
import confide.cli
try:
    confide.cli.main()
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(*args: str, code: int = 0) -> set[str]:
    """The heavy libraries that a command has loaded when it ends, with this code."""
    done = subprocess.run([sys.executable, "-c", _RUN, *args], capture_output=True, text=True, timeout=600, check=True)
    ended, modules = json.loads(done.stderr.strip().split("\n")[-1])
    assert (ended or 0) == code, done.stderr
    return HEAVY & set(modules)


@pytest.fixture
def schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cf.Schema:
    monkeypatch.chdir(tmp_path)
    columns = {"age": cf.Numeric(18, 90), "happy": cf.Numeric(0, 10), "region": cf.Categorical(["north", "south"])}
    found = cf.Schema(columns, dataset="survey")
    Path("schema.toml").write_text(found.to_toml())
    return found


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_front_page_loads_nothing_heavy(flag: str) -> None:
    assert loaded(flag) == set()


MEANS, LINE = "confide.methods.tables.means", "confide.methods.regression.least_squares.method"
#: What all that computes needs.
ARRAYS = {"numpy", "scipy"}
#: Records in a file of text, and noise; cells of text are measured by rich.
RECORDS = {"pyarrow", "cryptography", "rich"}


@pytest.fixture
def survey(schema: cf.Schema) -> None:
    schema.sample(2_000, 1).to_csv("survey.csv", index=False)
    cf.Ledger.create("ledger.db", dataset="survey", budget=cf.GDP(4.0)).close()
    Path("plan.json").write_text(cf.plan(cf.regression.LeastSquares("happy ~ age"), schema, cf.GDP(1.0)).to_json())


def test_a_plan_loads_what_its_forecast_needs(schema: cf.Schema) -> None:
    """A forecast reads simulated releases, so that a plan loads what a table needs; no reader of files, and no ledger."""
    assert loaded("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1") <= ARRAYS | {LINE}


def test_infer_loads_what_a_table_needs(schema: cf.Schema) -> None:
    source = cf.read(schema.sample(2_000, 1), schema)
    release = cf.release(cf.regression.LeastSquares("happy ~ age"), source, cf.GDP(1.0), ledger=None)
    Path("release.json").write_text(release.to_json())
    assert loaded("infer", "release.json") <= ARRAYS | {LINE, "rich"}


def test_methods_are_listed_from_an_index() -> None:
    assert loaded("methods") <= {"numpy", "scipy", "rich"}


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (
            (
                "table",
                "happy ~ region",
                "survey.csv",
                "--schema",
                "schema.toml",
                "--mu",
                ".1",
                "--inference",
                "population",
            ),
            MEANS,
        ),
        (("regress", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", ".1"), LINE),
        (("release", "plan.json", "survey.csv", "-o", "release.json"), LINE),
    ],
)
@pytest.mark.usefixtures("survey")
def test_a_release_of_a_file_loads_its_own_method_and_no_frame(words: tuple[str, ...], method: str) -> None:
    """A CSV file and a ledger of SQLite: neither pandas nor polars, no SQLAlchemy, nothing that checks words of a command line."""
    assert loaded(*words, "--ledger", "ledger.db") <= ARRAYS | RECORDS | {method}


@pytest.mark.usefixtures("survey")
def test_a_refusal_loads_no_records() -> None:
    words = (
        "table",
        "hapy ~ region",
        "survey.csv",
        "--schema",
        "schema.toml",
        "--mu",
        ".1",
        "--inference",
        "population",
    )
    assert loaded(*words, "--ledger", "ledger.db", code=3) <= {"numpy", "scipy", MEANS}


@pytest.mark.parametrize(
    ("option", "value"),
    [("--mu", "one"), ("--mu", "1_0"), ("--mu", ""), ("--n", "5.5"), ("--n", "1e3"), ("--n", "\u0661")],
)
def test_what_is_no_plain_number_is_still_typers(
    schema: cf.Schema, option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain words go past the command line's validators; what is refused there, or read in another way, is left to them."""
    words = {"--mu": "1", "--n": "500"} | {option: value}
    command = ("plan", "happy ~ age", "--schema", "schema.toml", *(word for pair in words.items() for word in pair))
    spared = run(*command)
    monkeypatch.setattr(registry, "_simply_read", lambda *_: registry._NOT_SIMPLE)
    assert run(*command) == spared


@pytest.mark.parametrize("room", LAZY)
def test_names_of_a_room_are_loaded_when_they_are_asked_for(room: str) -> None:
    package = import_module(f"confide.{room}")
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None and name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_this_name'"):
        _ = package.nothing_of_this_name


def test_a_part_of_a_library_is_had_first_and_the_whole_of_it_later() -> None:
    code = (
        "import confide.schema.formulas.formula, sys\n"
        "assert 'pandas' not in sys.modules\n"
        "import formulaic, formulaic.parser\n"
        "assert formulaic.parser.DefaultFormulaParser is confide.schema.formulas.formula.DefaultFormulaParser\n"
        "assert str(formulaic.Formula('y ~ a + b').rhs) == '1 + a + b'\n"
        "from formulaic import model_matrix; import pandas as pd\n"
        "print(list(model_matrix('a', pd.DataFrame({'a': [1.0, 2.0]})).columns))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.strip() == "['Intercept', 'a']", done.stderr
