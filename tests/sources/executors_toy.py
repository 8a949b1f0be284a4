"""An executor in this process, for tests: every portion and piece of work is pickled on its way, and it can be told to misbehave."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import confide as cf
from confide.sources.executors.kept import KeptPortion
from confide.sources.executors.worker import bounded, dealt, portions

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(18, 90),
        "income": cf.Numeric(0, 100, on_missing="midpoint"),
        "region": cf.Categorical(["N", "S", "W"]),
        "ill": cf.Categorical(["no", "yes"]),
    },
    dataset="survey",
)
OF_UNITS = cf.Schema(
    {name: SCHEMA[name] for name in SCHEMA.names}, dataset="survey", unit=cf.Unit("person", rule="keep")
)

BY_WEIGHT = cf.Schema({name: SCHEMA[name] for name in SCHEMA.names}, dataset="survey", unit=cf.Unit("person"))
_SCHOOLS = cf.Clusters("school", size=40)
CLUSTERED = cf.Schema({name: SCHEMA[name] for name in SCHEMA.names}, dataset="survey", cluster=_SCHOOLS)
UNITS_IN_CLUSTERS = cf.Schema(
    {name: SCHEMA[name] for name in SCHEMA.names}, dataset="survey", unit=cf.Unit("person", rows=2), cluster=_SCHOOLS
)
# which methods take all rows by weight, and clusters
SCHEMAS = {"records": SCHEMA, "units": OF_UNITS, "weight": BY_WEIGHT, "clusters": CLUSTERED, "both": UNITS_IN_CLUSTERS}
METHODS = {
    "line": cf.regression.LeastSquares("income ~ age + region"),
    "log-odds": cf.regression.Logistic("ill ~ age + region"),
    "means": cf.tables.Means("income ~ region", inference="population"),
    "classes": cf.classification.ClassMeans("ill ~ age + income"),
}


@dataclass
class Here:
    """name of an engine, none behind it. twist: what to do to the documents of a pass; before: what happens before each pass.

    It behaves in the pass over no records that is asked for before a charge. loses: whether what workers kept is lost before each pass.
    """

    name: str = "Here"
    twist: Callable[[list[str]], list[str]] = lambda documents: documents
    before: Callable[[], Any] = lambda: None
    sent: list[str] = field(default_factory=list)
    open: int = 0
    loses: bool = False

    def takes(self, part: Any) -> bool:
        return getattr(part, "travels", False)

    def placed(self, parts: Sequence[Any]) -> list[Any]:
        self.open += 1
        return [pickle.dumps(one) for one in portions(parts)]

    def size(self, records: list[Any]) -> int:
        return len(records)

    def run(self, records: list[Any], work: Any) -> list[str]:
        if work.rows:
            self.before()
        work = pickle.loads(pickle.dumps(work))
        portions = [
            pickle.loads(one) if isinstance(one, bytes) else pickle.loads(pickle.dumps(one)) if self.loses else one
            for one in records
        ]
        documents = [work(label, one) for label, one in enumerate(portions)]
        assert all(isinstance(json.loads(one), dict) for one in documents)
        if not work.rows:
            return documents
        self.sent += documents
        return self.twist(documents[::-1])

    def kept(self, records: list[Any], keeping: Any) -> list[Any]:
        self.open += 1
        keeping = pickle.loads(pickle.dumps(keeping))
        return [KeptPortion(pickle.loads(one), keeping) for one in records]

    def grouped(self, records: list[Any], coding: Any, rule: Any) -> list[Any]:
        coding, rule = pickle.loads(pickle.dumps((coding, rule)))
        if coding.column is None:
            own = [dealt(pickle.loads(one), coding, 1) for one in records]
            return [pickle.dumps(bounded(0, 1, one, coding.rows, rule)) for one in own]
        split = [dealt(pickle.loads(one), coding, 5) for one in records]
        return [pickle.dumps(bounded(label, 5, [own[label] for own in split], coding.rows, rule)) for label in range(5)]

    def dropped(self, records: list[Any]) -> None:
        self.open -= 1


def files(at: Path, n: int = 3_000, seed: int = 2) -> list[Path]:
    """Practice records in three Parquet files of several row groups, with a person for every three rows or so."""
    frame = SCHEMA.sample(n, seed)
    frame["person"] = (frame.index.to_numpy() * 7919) % (n // 3)
    # schools of persons, but for one row in eleven, which names another one, and some that name none
    frame["school"] = [
        f"s{p % 37}" if at % 11 else f"s{at % 5}" if at % 2 else "" for at, p in enumerate(frame["person"])
    ]
    found = []
    for number in range(3):
        frame.iloc[number::3].to_parquet(at / f"{number}.parquet", row_group_size=251)
        found.append(at / f"{number}.parquet")
    return found


def digest(method: str, source: Any, privacy: Any = None) -> str:
    made: str = cf.release(
        METHODS[method], source, privacy or cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(11), n=None
    ).sha256
    return made


def cases() -> list[tuple[str, str]]:
    """Methods and schemas that go together: tables of means have no meat of clusters."""
    return [
        (method, schema)
        for schema in SCHEMAS
        for method in METHODS
        if method != "means" or schema not in ("clusters", "both")
    ]


#: A few of them, for engines on which each takes seconds.
FEW = [("line", name) for name in SCHEMAS] + [("log-odds", "weight"), ("means", "units"), ("classes", "both")]


def groups(path: Path) -> int:
    return int(pq.ParquetFile(path).metadata.num_row_groups)
