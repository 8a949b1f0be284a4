"""Executors: where passes over the records run, when one machine is not enough.

The default is this process and its threads (`sources.aggregation`). Elsewhere, workers read the records, add them up
by the same maps, and send states of integers. So sums equal those of one thread to the bit, in any order. An executor
is a class of seven verbs (`remote.Executor`): here Dask and Spark.
"""

from __future__ import annotations

from typing import Any

from confide.errors import SourceError
from confide.sources.executors.remote import Executor, RemoteSource

__all__ = ["Executor", "RemoteSource", "executor_of"]

_VERBS = ("takes", "placed", "size", "run", "kept", "grouped", "dropped")


def executor_of(given: Any) -> Executor | None:
    """The executor of "dask://...", "spark://...", a `distributed.Client`, a `SparkSession`, or an executor itself; None for this process.

    Raises `SourceError`, without the address, which may hold a password.
    """
    kinds = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(given).__mro__}
    if given is None:
        return None
    if "distributed.Client" in kinds or (isinstance(given, str) and given.startswith("dask://")):
        from confide.sources.executors.dask import Dask

        return Dask.at(given) if isinstance(given, str) else Dask(given)
    if "pyspark.SparkSession" in kinds or (isinstance(given, str) and given.startswith("spark://")):
        from confide.sources.executors.spark import Spark

        return Spark.at(given) if isinstance(given, str) else Spark(given)
    if not isinstance(given, (str, type)) and all(callable(getattr(given, verb, None)) for verb in _VERBS):
        found: Executor = given
        return found
    raise SourceError(
        f"executor is a {type(given).__name__} that names no engine",
        'write executor="dask://host:8786" or executor="spark://host:7077", '
        "give a distributed.Client or a SparkSession, or leave it out for the threads of this process",
    )
