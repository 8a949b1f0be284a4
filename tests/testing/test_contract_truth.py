"""The contract against the truth: a valid method passes, every planted fault is caught by the check that is for it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import confide as cf
import confide.testing
from confide.core import Method
from confide.core.exact import pack
from confide.schema import CodedFrame
from confide.testing import check_method
from confide.testing.checks import CHECKS, Case
from confide.testing.clean_process import answered
from confide.testing.contract import (
    HIDDEN,
    SIDE_DOORS,
    infer_in_a_fresh_process,
    infer_reads_the_release_alone,
    passes_are_as_planned,
    tried,
)
from confide.testing.truth import ALARM, Runs, _Run, balanced, coverage, population
from tests.few import few
from tests.testing import anova
from tests.testing.anova import Anova, AnyKind, NoReference, Planted
from tests.third_party import Mean

SCHEMA = cf.Schema({"v": cf.Numeric(0, 10), "g": cf.Categorical(["a", "b", "c"])})
NOTHING_ELSE = next(check for check in CHECKS if check.__name__ == "_shows_nothing_else")
READS_BACK = next(check for check in CHECKS if check.__name__ == "_reads_back")
IN_WORDS = next(check for check in CHECKS if check.__name__ == "_refuses_in_words")
SMALL = next(check for check in SIDE_DOORS if check.__name__ == "small_counts_are_treated_like_large_ones")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What one fault kept must not help another."""
    monkeypatch.delenv("PLANTED_COUNT", raising=False)
    anova._sums.clear()
    anova._cached.cache_clear()
    yield
    anova._file().unlink(missing_ok=True)


def case_of(method: Any) -> Case:
    return Case(method, SCHEMA, cf.GDP(1.0))


def test_a_valid_analysis_of_variance_passes_and_so_does_its_twin_without_a_fault() -> None:
    assert check_method(Anova("v", "g"), SCHEMA).ok
    assert check_method(Planted("v", "g"), SCHEMA).ok


TRUTH = [
    # the faults that a contract of a method with itself let through
    "shifted by 7",
    "standard errors x .8",
    "standard errors x 5",
    "no noise",
    # more of their kind
    "no sampling",
    "noise of mu = 1",
    "intervals of 90 %",
    "shrunk to the middle",
    "two groups swapped",
    "another estimand",
    "one degree of freedom",
    "says weak",
    "second moment",
    "fewer names",
    "says no reference",
]
HIDES = {
    "second pass beyond five": (passes_are_as_planned, SMALL),
    "global": (infer_reads_the_release_alone, infer_in_a_fresh_process),
    "two passes": (passes_are_as_planned,),
    "pass at the edge": (passes_are_as_planned,),
    "asks the count": (NOTHING_ELSE,),
    "reads the parts": (passes_are_as_planned,),
    "public count": (NOTHING_ELSE,),
    "first": (infer_in_a_fresh_process,),
    "dictionary": (infer_reads_the_release_alone, infer_in_a_fresh_process),
    "environment": (infer_reads_the_release_alone,),
    "file": (infer_reads_the_release_alone,),
    "stale": (infer_reads_the_release_alone,),
}


@pytest.mark.parametrize(
    "fault",
    few(
        TRUTH,
        "fewer names",
        "says no reference",
        "standard errors x .8",
        "no sampling",
        "another estimand",
        "noise of mu = 1",
        "no noise",
        "two groups swapped",
    ),
)
def test_intervals_that_are_wrong_are_caught(fault: str) -> None:
    assert tried(coverage, case_of(Planted("v", "g", fault=fault))) is not None


@pytest.mark.parametrize(("fault", "check"), [(fault, check) for fault, all_ in HIDES.items() for check in all_])
def test_what_hides_is_caught(fault: str, check: Any) -> None:
    case = case_of(Planted("v", "g", fault=fault))
    if fault == "first":
        case.release(SCHEMA.sample(50, 1))
    assert tried(check, case) is not None


def test_a_column_of_another_kind_is_refused_before_anything_is_paid() -> None:
    assert tried(IN_WORDS, case_of(Anova("v", "g"))) is None
    said = tried(IN_WORDS, case_of(AnyKind("v", "g")))
    assert said is not None and "with v categorical after a release, infer ends in AttributeError" in said
    turned = SCHEMA.with_columns({name: SCHEMA[name] for name in ("g", "v")})
    said = tried(IN_WORDS, dataclasses.replace(case_of(AnyKind("v", "g")), schema=turned))
    assert said is not None and "with g numeric the plan ends in AttributeError" in said


def test_a_check_that_fails_says_where_in_the_methods_own_package() -> None:
    @dataclasses.dataclass(frozen=True)
    class Misspelt(Anova):
        def table(self, release: Any, rows: Any, question: Any) -> Any:
            return rows.schema[self.response].lowest

    line = Misspelt.table.__code__.co_firstlineno + 1
    said = tried(READS_BACK, case_of(Misspelt("v", "g")))
    assert said is not None and said.endswith(f"'lowest' (test_contract_truth.py, line {line}, in table)")
    assert "(anova.py, line" in (tried(IN_WORDS, case_of(AnyKind("v", "g"))) or "")


def test_an_estimate_without_a_reference_is_refused() -> None:
    said = tried(coverage, case_of(NoReference("v", "g")))
    assert said is not None and "states no reference" in said


def test_a_script_is_inferred_by_its_definitions_alone(tmp_path: Any) -> None:
    """The method of a script that calls check_method itself: nothing but its definitions runs in the fresh process."""
    script = tmp_path / "own.py"
    script.write_text(
        "from dataclasses import dataclass\nimport confide as cf\nfrom confide.testing import check_method\n"
        "from tests.third_party import Mean\n"
        "@dataclass(frozen=True)\nclass Own(Mean):\n    name = 'own_mean'\n"
        "found = check_method(Own('v'), cf.Schema({'v': cf.Numeric(0, 10)}), replications=8)\nprint(found.ok)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "True", done.stderr


_ODD = """
import os, sys, time
asked = 0
class Odd:
    def __init__(self, way): self.way = way
    def to_json(self): return str(asked)
    def infer(self, release):
        global asked
        asked += 1
        {"counts": list, "prints": lambda: os.write(1, b"{}\\n"), "reads": sys.stdin.read, "raises": lambda: 1 / 0,
         "ends": lambda: os._exit(3), "exits": sys.exit, "waits": lambda: time.sleep(60)}[self.way]()
        return self
"""


@pytest.mark.parametrize("way", ["counts", "prints", "reads", "raises", "ends", "exits", "waits"])
def test_each_answer_is_of_a_process_of_its_own(way: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_methods.py").write_text(_ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    release = case_of(Anova("v", "g")).release(SCHEMA.sample(50, 1)).to_json()
    given = {"module": "odd_methods", "file": "", "name": "Odd", "release": release}
    found = answered(given | {"parameters": pack({"way": way})}, 1.0 if way == "waits" else 120.0)
    wrong = {
        "raises": "ZeroDivisionError: division by zero",
        "ends": "its process ended with status 768",
        "exits": "SystemExit",
        "waits": "it takes more than 1 seconds",
    }
    assert found == ({"failed": wrong[way]} if way in wrong else {"result": "1"})
    assert answered(given | {"parameters": pack({"way": "counts"})}, 120.0) == {"result": "1"}


# the ruler itself -----------------------------------------------------------------------------------------------------


def test_the_budget_makes_the_noise_about_half_of_the_variance() -> None:
    people = population(SCHEMA)
    at = balanced(case_of(Anova("v", "g")), people)
    found = at.method.infer(at.release(people.sample(5_000, random_state=1), 1))
    share = np.asarray(found.noise_variance) / np.diag(found.covariance)
    assert np.all((share > 0.25) & (share < 0.75))


def test_columns_of_the_population_hang_together_and_keep_their_values() -> None:
    people, sampled = population(SCHEMA), SCHEMA.sample(100_000, 10)
    means = people.groupby("g")["v"].mean()
    assert means["c"] - means["a"] > 2
    assert np.array_equal(np.sort(people["v"]), np.sort(sampled["v"]))
    assert people["g"].value_counts().to_dict() == sampled["g"].value_counts().to_dict()


def runs_of(z: np.ndarray) -> Runs:
    """Runs whose pivots are z, of shape (runs, names), with their own covariance."""
    found = tuple(_Run(np.abs(row) <= 1.959964, row, (float(row @ row), len(row))) for row in z)
    return Runs(pd.Series(np.zeros(z.shape[1]), index=[f"b{j}" for j in range(z.shape[1])]), found)


def fails(z: np.ndarray) -> bool:
    try:
        first = runs_of(z[:80])
        first.check(looks=2)
        if not first.fine:
            runs_of(z).check(looks=2)
    except AssertionError:
        return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("names", [1, 5])
def test_false_alarms_are_as_rare_as_stated(names: int) -> None:
    """At most 1 in 1,000: in 4,000 contracts of a normal pivot more than 16 would refute that (Poisson, p < 1e-5)."""
    generator = np.random.Generator(np.random.PCG64(7))
    alarms = sum(fails(generator.normal(size=(240, names))) for _ in range(4_000))
    assert alarms <= stats.poisson.isf(1e-5, 4_000 * ALARM)


@pytest.mark.parametrize(("factor", "least"), [(1 / 0.8, 0.85), (2**0.5, 0.99), (1 / 5, 1.0)])
def test_the_power_against_wrong_standard_errors(factor: float, least: float) -> None:
    """Of one name alone, the hardest case: standard errors x .8, without the noise, x 5."""
    generator = np.random.Generator(np.random.PCG64(8))
    caught = np.mean([fails(factor * generator.normal(size=(240, 1))) for _ in range(400)])
    assert caught >= least


def test_the_toy_mean_states_a_reference_like_any_other() -> None:
    assert type(Mean("v")).reference is not Method.reference
    found = Anova("v", "g").reference(CodedFrame.of(SCHEMA.sample(50, 1), SCHEMA))
    assert set(found) == {"a", "b", "c"}
    assert dataclasses.is_dataclass(Planted) and len(TRUTH) + len(HIDES) >= 6 + 15
    assert HIDDEN
