"""A small survey whose records can be recognised, and folders at each stage of an analysis."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import SCHEMA, good
from tests.cli.cli_toy import TOYS

from confide import registry

JOURNALS = shutil.ignore_patterns("ledger.db-*")


@pytest.fixture(autouse=True)
def toys():
    """The toy methods, registered for one test."""
    for toy in TOYS:
        registry.register(toy)
    yield
    for toy in TOYS:
        registry._registered.pop(toy.name, None)


@pytest.fixture(scope="session")
def stages(tmp_path_factory):
    """The folders of all stages, made once by the commands themselves; each test gets a copy."""
    folder = tmp_path_factory.mktemp("cli")
    first = folder / "survey"
    first.mkdir()
    generator = np.random.Generator(np.random.PCG64(1))
    n = 2_000
    age = generator.integers(18, 60, n) + 0.739173917391
    children = generator.integers(0, 6, n)
    region = np.where(generator.random(n) < 0.5, "North [N]", "South")
    happy = 1 + 0.05 * age - 0.1 * children + generator.normal(0, 0.5, n)
    frame = pd.DataFrame(
        {"age": age, "children": children, "region": region, "happy": np.round(happy, 2) + 0.00739173917391}
    )
    frame["remark"] = "qwzx"
    frame.to_csv(first / "survey.csv", index=False)
    frame.to_parquet(first / "survey.parquet", index=False)
    (first / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    steps = {
        "book": ("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2"),
        "planned": ("plan", "happy ~ age + children", "--schema", "schema.toml", "--mu", "1", "-o", "plan.json"),
        "released": ("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json"),
    }
    before = "survey"
    for stage, command in steps.items():
        shutil.copytree(folder / before, folder / stage, ignore=JOURNALS)
        with contextlib.chdir(folder / stage):
            good(*command)
        with contextlib.closing(sqlite3.connect(folder / stage / "ledger.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that one file is the whole book
        before = stage
    return folder


@pytest.fixture
def stage(stages, tmp_path, monkeypatch):
    """Make a copy of a stage the current folder."""

    def enter(name):
        folder = tmp_path / name
        shutil.copytree(stages / name, folder, ignore=JOURNALS)
        monkeypatch.chdir(folder)
        return folder

    return enter


@pytest.fixture
def survey(stage):
    """A folder with survey.csv, survey.parquet and schema.toml, which is the current one."""
    return stage("survey")


@pytest.fixture
def book(stage):
    """The same with a budget of GDP(2) in ledger.db."""
    return stage("book")


@pytest.fixture
def planned(stage):
    """The same with plan.json."""
    return stage("planned")


@pytest.fixture
def released(stage):
    """The same with release.json."""
    return stage("released")
