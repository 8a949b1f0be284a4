"""What each command loads: asked of the modules, which are the same on any machine, and not of a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import confide as cf

HEAVY = {
    *("numpy", "pandas", "scipy", "scipy.stats", "scipy.optimize", "scipy.signal", "pyarrow", "polars", "matplotlib"),
    *("formulaic.materializers", "sqlalchemy", "cryptography", "jinja2", "rich", "sklearn", "statsmodels"),
    # what the fronts of scipy.special and of NumPy's medians bring, of which functions alone are used
    *("scipy.special._orthogonal", "numpy.ma"),
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


def loaded(*args: str) -> set[str]:
    """The heavy libraries that a command has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", _RUN, *args], capture_output=True, text=True, timeout=600, check=True)
    code, modules = json.loads(done.stderr.strip().split("\n")[-1])
    assert not code, done.stderr
    return HEAVY & set(modules)


@pytest.fixture
def schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cf.Schema:
    monkeypatch.chdir(tmp_path)
    found = cf.Schema({"age": cf.Numeric(18, 90), "happy": cf.Numeric(0, 10)}, dataset="survey")
    Path("schema.toml").write_text(found.to_toml())
    return found


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_front_page_loads_nothing_heavy(flag: str) -> None:
    assert loaded(flag) == set()


def test_a_plan_loads_what_its_forecast_needs(schema: cf.Schema) -> None:
    """A forecast reads simulated releases, so that a plan loads what a table needs; no reader of files, and no ledger."""
    more = loaded("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1") - {"numpy", "scipy"}
    assert more <= {"pandas", "pyarrow", "numpy.ma"}


def test_infer_loads_what_a_table_needs(schema: cf.Schema) -> None:
    source = cf.read(schema.sample(2_000, 1), schema)
    release = cf.release(cf.regression.LeastSquares("happy ~ age"), source, cf.GDP(1.0), ledger=None)
    Path("release.json").write_text(release.to_json())
    more = loaded("infer", "release.json") - {"numpy", "scipy"}
    # pandas brings pyarrow where it is installed, and numpy.ma; cells of text are measured by rich
    assert more <= {"pandas", "pyarrow", "rich", "numpy.ma"}


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
