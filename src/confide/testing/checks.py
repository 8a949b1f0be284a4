"""The checks of the contract. The docstring of each is its name in the report."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import walk_tb
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from confide import engine, registry
from confide.audit.replay.opaque import lattice
from confide.audit.replay.replay import replay
from confide.core import STATUSES, BudgetItem, Method, Plan, Release, Statistic, leaves, method_parameters, mu_squared
from confide.core.events import is_path
from confide.core.units.privacy_unit import rows_moved
from confide.engine.planning import pins
from confide.errors import ConfideError, PrivacyError
from confide.guarantees import GDP, Guarantee
from confide.ledger import Ledger
from confide.noise import SimulatedNoise
from confide.schema import Categorical, Numeric, Schema
from confide.sources import read
from confide.testing.test_data import codes_of, edge_frame, hostile_frames

# Records of a small data set, for whoever needs no more.
_FEW = 40
# Records that are replaced by each of the others; integers that a double holds, and how far sums of larger ones may be off, in parts.
_LONGEST, _EXACT, _ROUNDING = 60, 1 << 53, 1e-9


class ContractBroken(AssertionError):
    """A method broke its contract; the message lists each failed check."""


@dataclass(frozen=True)
class Case:
    """A method on a schema, at a price."""

    method: Method
    schema: Schema
    privacy: Guarantee

    @property
    def few(self) -> int:
        """How many records a small dataset has."""
        return max(_FEW, self.method.least_records)

    def plan(self) -> Plan:
        return engine.plan(self.method, self.schema, self.privacy)

    def release(self, data: Any, seed: int = 0) -> Release:
        return engine.release(
            self.method, read(data, self.schema), self.privacy, ledger=None, noise=SimulatedNoise(seed)
        )


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise ContractBroken(message)


def _describes_itself(case: Case) -> None:
    """It is a frozen dataclass that describes itself and can be made again from its parameters."""
    method = case.method
    for name in ("name", "family", "version", "source", "relations", "native", "intervals", "needs"):
        _expect(hasattr(method, name), f"the attribute {name!r} is missing")
    frozen = getattr(getattr(method, "__dataclass_params__", None), "frozen", False)
    _expect(dataclasses.is_dataclass(method) and frozen, "it is not a frozen dataclass")
    _expect(
        set(method.relations) <= {"add-remove", "substitute"} and bool(method.relations),
        "relations must be add-remove, substitute or both",
    )
    again = type(method)(**method_parameters(method))
    _expect(
        again.plan(case.schema, case.privacy).sha256 == case.plan().sha256,
        "made again from its parameters it plans something else",
    )


def _plans_from_public_facts(case: Case) -> None:
    """The plan is deterministic, prints, reads back to the bit and can be made again from its file."""
    plan = case.plan()
    again = Plan.from_json(plan.to_json())
    _expect(again.to_json() == plan.to_json(), "the plan's file does not read back to the bit")
    _expect(
        len(plan.summary()) > 0 and bool(plan.target) and bool(plan.intervals_for),
        "the plan says neither what it estimates nor what intervals cover",
    )
    known = case.method.name in {info.name for info in registry.list_methods()}
    if known and not _holds_code(plan):
        _expect(registry.remake(again, case.schema)[1] == plan, "the plan cannot be made again from its file")


def _holds_code(plan: Plan) -> bool:
    """Whether a parameter is code, of which the plan's file keeps the name alone: it must be handed over again."""
    return any(isinstance(value, Mapping) and "live" in value for value in plan.method.parameters.values())


def _charges_for_what_can_be_drawn(case: Case) -> None:
    """Its plan is released from memory; from its file it is released, or refused with nothing spent."""
    relation = case.method.relations[0]
    source = read(case.schema.sample(case.few, 7), case.schema, dataset=case.schema.dataset or "practice")
    n = case.few if relation == "substitute" else None
    plan = engine.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
    terms = pins(plan.schema, source.dataset)
    rows = None if terms["enforced"] else terms["rows_per_unit"]
    with TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        budget = GDP(100.0, 0.5, relation=relation)
        book = Ledger.create(
            Path(folder) / "ledger.db", dataset=terms["dataset"], budget=budget, unit=terms["unit"], rows_per_unit=rows
        )
        engine.release(case.method, source, plan.requested, ledger=book, n=n)
        charged = book.show().spent
        known = case.method.name in registry.known()
        try:
            engine.release(Plan.from_json(plan.to_json()), source, ledger=book)
        except ConfideError as error:
            _expect(book.show().spent == charged, f"the plan from its file is charged, and fails: {error}")
            _expect(_holds_code(plan) or not known, f"the plan from its file is refused: {error}")


def _pays_for_what_it_draws(case: Case) -> None:
    """The spends of the plan cost no more than the guarantee it states, and no more than was asked."""
    for relation in case.method.relations:
        asked = dataclasses.replace(case.privacy, relation=relation)
        plan = case.method.plan(case.schema, asked)
        cost = mu_squared(plan.event)
        native = plan.guarantees[0]
        if cost is not None and isinstance(native, GDP):
            _expect(cost <= Fraction(native.mu) ** 2, f"under {relation} the spends cost more than the stated mu")
        _expect(plan.relation == relation, f"asked for {relation}, the plan states {plan.relation}")
        for leaf in leaves(plan.event):
            statistic = plan.statistics.get(leaf.name)
            if statistic is not None and isinstance(leaf, BudgetItem):
                stated = leaf.sensitivity * leaf.step
                rows = rows_moved(statistic, case.schema.rows_per_unit)
                _expect(
                    stated**2 >= statistic.sensitivity_squared(relation) * rows**2,
                    f"{leaf.name}: the spend states less than its map",
                )
    unknown = {"add-remove", "substitute"} - set(case.method.relations)
    for relation in unknown:
        try:
            case.method.plan(case.schema, dataclasses.replace(case.privacy, relation=relation))
        except PrivacyError:
            continue
        raise ContractBroken(f"{relation} is not among its relations, yet it plans for it")


def _refuses_in_words(case: Case) -> None:
    """Another kind of column, or none of that name, is refused by the plan as a ConfideError, or goes through to the result."""
    columns = {name: case.schema[name] for name in case.schema.names}
    for name, column in columns.items():
        if isinstance(column, Categorical):
            _refuses_or_goes_through(case, {**columns, name: Numeric(0, 1)}, f"with {name} numeric")
        else:
            _refuses_or_goes_through(case, {**columns, name: Categorical(["no", "yes"])}, f"with {name} categorical")
        _refuses_or_goes_through(case, {k: v for k, v in columns.items() if k != name}, f"without a column {name}")


def _refuses_or_goes_through(case: Case, columns: Mapping[str, Any], said: str) -> None:
    try:
        changed = dataclasses.replace(case, schema=case.schema.with_columns(columns))
    except ConfideError:  # no such schema: it has no columns, or its design names this one
        return
    step = "the plan"
    try:
        with suppress(ConfideError):
            changed.plan()
            step = "after a release, infer"
            case.method.infer(changed.release(changed.schema.sample(changed.few, 7)))
    except Exception as error:
        raise ContractBroken(
            f"{said} {step} ends in {type(error).__name__}: {error}{place_of(error, case.method)}; refuse it in the plan, "
            "with a PlanError that says what to name"
        ) from error


def place_of(error: BaseException, method: Method) -> str:
    """Where in the package of a method an error arose, innermost; nothing where none of its lines was running."""
    own = type(method).__module__.partition(".")[0]
    places = [
        (frame.f_code, line)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == own
    ]
    if not places or isinstance(error, ContractBroken):
        return ""
    code, line = places[-1]
    return f" ({Path(code.co_filename).name}, line {line}, in {code.co_name})"


def _reads_back(case: Case) -> None:
    """A release reads back to the bit, and infer gives the same result from the file, twice."""
    release = case.release(case.schema.sample(500, 1))
    again = Release.from_json(release.to_json())
    _expect(again.to_json() == release.to_json(), "the release's file does not read back to the bit")
    results = [case.method.infer(one).to_json() for one in (release, again, again)]
    _expect(len(set(results)) == 1, "infer gives different numbers for one release")
    _expect(release.simulated, "a simulated release is not marked")


def _same_integers(case: Case) -> None:
    """The same records in another order, in other batches, give the same integers and with one seed the same release."""
    frame = case.schema.sample(1500, 2)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    shuffled = frame.sample(frac=1.0, random_state=3).reset_index(drop=True)
    variants = [
        frame,
        shuffled,
        pa.Table.from_batches(table.to_batches(max_chunksize=7)),
        pa.Table.from_batches(table.to_batches(max_chunksize=611)),
    ]
    _expect(
        len({case.release(data, 5).to_json() for data in variants}) == 1,
        "the release depends on the order or the batches of the records",
    )


def _maps_one_record(case: Case) -> None:
    """Every record map gives the same bits row by row, in blocks, contiguous or strided."""
    source = read(edge_frame(case.schema, 400), case.schema)
    for name, statistic in case.plan().statistics.items():
        codes = codes_of(source, statistic.map)
        whole = np.asarray(statistic.map(codes))
        doubled = np.repeat(codes, 2, axis=1)
        for parts in (
            [statistic.map(codes[:, j : j + 1]) for j in range(codes.shape[1])],
            [statistic.map(codes[:, j : j + 7]) for j in range(0, codes.shape[1], 7)],
            [statistic.map(doubled[:, ::2])],
            [statistic.map(np.asfortranarray(codes))],
            [np.asarray(statistic.map(np.tile(codes, 8191 // codes.shape[1] + 1)[:, :8191]))[:, : codes.shape[1]]],
        ):
            _expect(
                np.array_equal(np.concatenate(parts, axis=1), whole), f"{name}: a record's integers depend on its batch"
            )
        _expect(bool((whole == np.rint(whole)).all()), f"{name}: the map gives numbers that are not integers")


def _bounds_hold(case: Case) -> None:
    """No record and no pair of records found by search moves a statistic beyond its stated sensitivity."""
    source = read(edge_frame(case.schema, 3000), case.schema)
    for name, statistic in case.plan().statistics.items():
        rows = np.unique(statistic.map(codes_of(source, statistic.map)), axis=1)
        squares = _largest(lambda own: (own * own).sum(axis=0), rows)
        _expect(squares <= statistic.map.l2_squared, f"{name}: a record goes beyond l2_squared")
        _expect(
            _largest(lambda own: abs(own).sum(axis=0), rows) <= statistic.map.l1, f"{name}: a record goes beyond l1"
        )
        for relation in case.method.relations:
            _expect(
                _moved(statistic, rows, relation) <= statistic.sensitivity_squared(relation),
                f"{name}: a neighbor under {relation} moves it beyond its sensitivity",
            )


def _moved(statistic: Statistic, rows: NDArray[Any], relation: str) -> int:
    """The largest squared change of a statistic over neighbors: of each row alone, or of the longest beside all."""
    nothing = np.zeros(len(rows))
    if relation == "add-remove":
        return _largest(_replaced(statistic, nothing), rows)
    sizes = np.asarray(statistic.moved_squared(nothing, rows), dtype=float)
    longest = rows[:, np.argsort(sizes)[-_LONGEST:]]
    return max(_largest(_replaced(statistic, row), rows, float(sizes.max())) for row in longest.T)


def _replaced(statistic: Statistic, row: NDArray[Any]) -> Callable[[NDArray[Any]], Any]:
    return lambda rows: statistic.moved_squared(row.astype(rows.dtype), rows)


def _largest(of: Callable[[NDArray[Any]], Any], rows: NDArray[Any], terms: float = 0.0) -> int:
    """The largest that a function gives of a column: of doubles where they hold every integer, else of exact ones, looked for by doubles.

    terms: how large what it adds up may be, to a small factor, if larger than what it gives.
    """
    found = np.asarray(of(rows), dtype=float)
    worst = float(found.max())
    size = max(worst, terms)
    if 8 * size < _EXACT:
        return int(worst)
    return int(max(of(rows[:, found >= worst - _ROUNDING * size].astype(object))))


def _shows_nothing_else(case: Case) -> None:
    """Between neighbors nothing differs but the declared statistics: record and replay, with the noise of one transcript."""
    frame, edges = case.schema.sample(case.few, 7), edge_frame(case.schema, 20)
    hostile = [rows for label, rows in hostile_frames(case.schema) if label in ("NaN", "1e300", "mixed objects")]
    for relation in case.method.relations:
        pairs = [
            (frame, _exchanged(frame, one)) for one in (edges.iloc[[3]], hostile[0].iloc[[0]], hostile[2].iloc[[1]])
        ]
        if relation == "add-remove":
            pairs = [(frame, frame.iloc[1:]), (frame.iloc[:0], frame.iloc[:1]), (edges, edges.iloc[:-1])]
            pairs += [(frame, pd.concat([frame, rows.iloc[[0]]])) for rows in hostile]
        n = len(frame) if relation == "substitute" else None
        plan = engine.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
        for seed, (one, other) in enumerate(pairs):
            found = replay(case.method, plan, read(one, case.schema), read(other, case.schema), seed=seed)
            _expect(not found.problems, f"under {relation}: {'; '.join(found.problems)}")
            for name, moved in found.moved.items():
                _expect(moved.within, f"{name}: two neighbors under {relation} differ by more than its sensitivity")


def _shows_no_lattice(case: Case) -> None:
    """No opaque release is published finer than the lattice of its noise."""
    source = read(case.schema.sample(case.few, 7), case.schema)
    for relation in case.method.relations:
        asked = dataclasses.replace(case.privacy, relation=relation)
        plan = engine.plan(case.method, case.schema, asked, n=case.few if relation == "substitute" else None)
        for shown in lattice(case.method, plan, source, seed=9):
            _expect(shown.ok, f"under {relation} {shown}")


def _exchanged(frame: pd.DataFrame, record: pd.DataFrame) -> pd.DataFrame:
    """The records with the first one exchanged."""
    return pd.concat([record.astype(object), frame.iloc[1:]], ignore_index=True)


def _words(result: Any) -> tuple[str, str]:
    """The reason and what intervals cover; a third party's result may give no reason."""
    return getattr(result, "reason", ""), result.intervals_for


def _data_never_raise(case: Case) -> None:
    """Hostile records change no type, key, message, warning or log line; statuses stay among the known ones."""
    seen, said, files = set(), set(), []
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        for label, frame in hostile_frames(case.schema):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                release = case.release(frame, 8)
                result = case.method.infer(release)
            _expect(
                result.status in STATUSES, f"{label}: the status {result.status!r} is not one of {', '.join(STATUSES)}"
            )
            body = json.loads(result.to_json())
            seen.add(
                (
                    type(result).__name__,
                    tuple(sorted(body)),
                    tuple(sorted(release.to_dict())),
                )
            )
            # which branch ran may follow from noisy outputs; what was drawn must be one of them
            _expect(is_path(release.plan.event, frozenset(release.statistics)), f"{label}: another set of statistics")
            state = (result.status, result.flags)
            said.add((state, result.target))
            files.append((label, release.to_json(), _words(result)))
            _expect(bool(result.summary()), f"{label}: the result does not print")
    finally:
        logging.getLogger().removeHandler(handler)
    for label, text, words in files:
        # a reason may quote noisy numbers, such as the count of a level, and covers the price of an assumption, but nothing that is kept
        # outside the file: by now it is another's
        method: Any = case.method
        again = dataclasses.replace(method).infer(Release.from_json(text))
        _expect(
            _words(again) == words,
            f"{label}: the reason or what intervals cover depends on more than the release's file",
        )
    _expect(len(seen) == 1, "the kind of result or its keys depend on the records")
    _expect(
        len({state for state, *_ in said}) == len(said),
        "the target depends on the records beyond the status and the flags",
    )
    _expect(log.getvalue() == "", "a log line was written")


CHECKS: tuple[Callable[..., None], ...] = (
    _describes_itself,
    _plans_from_public_facts,
    _charges_for_what_can_be_drawn,
    _pays_for_what_it_draws,
    _refuses_in_words,
    _reads_back,
    _same_integers,
    _maps_one_record,
    _bounds_hold,
    _shows_nothing_else,
    _shows_no_lattice,
    _data_never_raise,
)
