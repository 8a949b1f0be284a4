"""Checks of the contract on what hides: passes that depend on records, ways around the source, and results that know more than a release.

Two releases of one content, made of different records, are had by steering (`confide.audit.watching.recording`): a result that differs
between them was told something beside the release, by a module's global, a file, a cache. What is kept once and for all is found by a
process of its own, which has seen no record.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from confide import gate
from confide.audit.watching.recording import ReplayNoise, Run, run
from confide.errors import ConfideError
from confide.protocol import Plan, Release, method_parameters
from confide.protocol.events import has_branches
from confide.protocol.exact import pack
from confide.protocol.source import Behind
from confide.schema import Categorical
from confide.sources import read
from confide.testing.checks import Case, _expect
from confide.testing.fresh import answered
from confide.testing.practice import edge_frame

__all__ = ["HIDDEN", "infer_in_a_fresh_process", "infer_reads_the_release_alone", "passes_are_as_planned"]

# Around limits of disclosure control, with one record more and less.
_SIZES = (0, 1, 5, 6, 11, 1_000)
_PATIENCE = 120  # seconds that a fresh process may take
# What a method may ask of a source; an attribute of its own making would be a way around the meter.
_OFFERED = frozenset({"unit", "shards", "stream"})  # and what each source has


class _Offered(Behind):
    """A source with nothing but what the protocol gives it; what else was asked for is noted."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in _OFFERED:
            self._asked.append(name)
        return getattr(self._source, name)


def passes_are_as_planned(case: Case) -> None:
    """The records are read as often as planned, whatever and however many they are, and through the protocol of sources alone."""
    for relation in case.method.relations:
        asked = dataclasses.replace(case.privacy, relation=relation)
        frames = list(_frames(case))
        for frame in frames if relation == case.method.relations[0] else frames[-3:]:
            try:
                plan = gate.plan(case.method, case.schema, asked, n=len(frame) if relation == "substitute" else None)
            except ConfideError:
                continue  # so few records are refused, from public facts
            source = _Offered(read(frame, case.schema))
            found = run(case.method, source, plan, ReplayNoise(3))
            _expect(not source._asked, f"draw asked the source for {', '.join(sorted(set(source._asked)))}")
            passes = sum(call.startswith("pass") for call in found.calls)
            exact = not has_branches(plan.event) and not _declined(found)
            _expect(
                passes == plan.passes if exact else passes <= plan.passes,
                f"under {relation} it read the records {passes} times, planned are {plan.passes}",
            )


def _declined(found: Run) -> bool:
    return found.release is None or found.release.status != "released"


def _frames(case: Case) -> Iterator[pd.DataFrame]:
    """Few and many records, evenly drawn and at the edges of their bounds."""
    many, edges = case.schema.sample(max(_SIZES), 24), edge_frame(case.schema, max(_SIZES))
    for size in _SIZES:
        yield many.iloc[:size]
    yield edges
    numbers = {name: case.schema[name] for name in case.schema.names}
    ends = [
        (column.low, column.high, float("nan")) for column in numbers.values() if not isinstance(column, Categorical)
    ]
    names = [name for name, column in numbers.items() if not isinstance(column, Categorical)]
    for values in zip(*ends, strict=True):
        yield many.assign(**dict(zip(names, values, strict=True)))
    yield pd.concat([many.iloc[:1]] * 40, ignore_index=True)


def infer_reads_the_release_alone(case: Case) -> None:
    """Infer knows nothing but the release: of two releases with one content, made of other records, it gives the same result."""
    first = case.release(case.schema.sample(200, 16))
    alone = type(case.method)(**method_parameters(case.method)).infer(first).to_json()
    _expect(case.method.infer(first).to_json() == alone, "the method remembers the records that it released")
    case.release(case.schema.sample(350, 17))
    _expect(case.method.infer(first).to_json() == alone, "the result changes when the method has seen other records")
    plan = case.plan()
    one = run(case.method, read(case.schema.sample(300, 21), case.schema), plan, ReplayNoise(5)).release
    if one is None:
        return  # other checks say why
    result = case.method.infer(one)
    _expect(
        result.release_sha256 == one.sha256, "the result names another release than the one that it was asked about"
    )
    before = result.to_json()
    for other in (edge_frame(case.schema, 300), case.schema.sample(400, 22)):
        same = _steered(case, plan, other, one)
        if same is None:
            continue  # what it computes between the rounds follows from more than its noisy numbers, or it took another branch
        after = case.method.infer(same).to_json()
        _expect(
            after == before, "two releases of one content have different results: infer knows more than the release"
        )
        _expect(case.method.infer(one).to_json() == before, "the result changes when the method has seen other records")


def _steered(case: Case, plan: Plan, frame: pd.DataFrame, wanted: Release) -> Release | None:
    """A release of other records with the content of `wanted`, where there is one."""
    made = run(case.method, read(frame, case.schema), plan, ReplayNoise(6), wanted.statistics).release
    return made if made is not None and made.to_json() == wanted.to_json() else None


def infer_in_a_fresh_process(case: Case) -> None:
    """A process that has seen no record infers the same result from the release's file."""
    place = _place(type(case.method))
    if place is None:
        return  # a class without a file cannot be had in another process; the steered releases above stand alone
    try:
        parameters = pack(method_parameters(case.method))
    except TypeError:
        return  # a parameter that is code (a safety bound) has no text from which another process could make it
    release = case.release(case.schema.sample(300, 23), 4)
    here = case.method.infer(release).to_json()
    given = {**place, "parameters": parameters, "release": release.to_json()}
    found = answered(given, _PATIENCE)
    where = "; define the method in a module of its own" if place["module"] == "__main__" else ""
    _expect("result" in found, f"infer fails in a process that has seen no record: {found.get('failed')}{where}")
    _expect(found["result"] == here, "infer gives another result in a process that has seen no record")


def _place(cls: type) -> dict[str, Any] | None:
    """Where a fresh process finds a class: its module, or the definitions of the file that was run; None for neither."""
    if "<locals>" in cls.__qualname__:
        return None
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return None
    return {"module": cls.__module__, "file": str(Path(file).resolve()), "name": cls.__qualname__}


HIDDEN: tuple[Callable[[Case], None], ...] = (
    passes_are_as_planned,
    infer_reads_the_release_alone,
    infer_in_a_fresh_process,
)
