"""The gate between the wings: rehearse, charge, draw, receipt, in this order.

The plan is first run on simulated rows of the schema: what fails there is told in full, since no record was seen, and costs nothing.
The ledger is charged in one durable transaction before any noise is drawn. Whatever fails afterwards leaves the charge in place
and says so, without a word about the cause: an error that depends on records would be a leak, and failing on purpose must buy
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from confide import noise as randomness, registry
from confide._helpers import QUIET
from confide._version import __version__
from confide.core import Method, Noise, Plan, RecordMap, Release, Source, seal
from confide.core.files import check_body
from confide.core.units.privacy_unit import as_record
from confide.engine.planning import check_ledger, check_method, key_of, keyed, made_again, paid_for, pins, plan
from confide.errors import ConfideError, NoResult, PlanError, PrivacyError, ReleaseError, SchemaError, SourceError
from confide.guarantees import Guarantee
from confide.schema import Schema
from confide.sums.blocks.isolated_process import fallbacks_only

if TYPE_CHECKING:
    from confide.ledger import Ledger


def release(
    method: Method | Plan,
    source: Source,
    privacy: Guarantee | None = None,
    *,
    ledger: Ledger | None,
    noise: Noise | None = None,
    n: int | None = None,
    charge_delta: float | None = None,
    convert_ledger: bool = False,
    allow_partial: bool = False,
    charge_as: str | None = None,
) -> Release:
    """Charge the ledger, then draw noise, then write the receipt; returns what may be published.

    method: a method such as `cf.regression.SSP("y ~ a")`, or a plan from a file (then `privacy` and `n` are the plan's).
    ledger: an open `Ledger`; it is required, and whoever wants none writes ledger=None. noise: leave it out; only simulations pass
    `cf.noise.SimulatedNoise(seed)`, with ledger=None. charge_delta: where a curve is charged that has a point for each delta;
    convert: turn an (epsilon, delta) ledger into a Gaussian one first, for good (`Ledger.charge`). allow_partial: hand over a publication in
    which a question failed; that it failed may depend on the records, and no guarantee covers it. charge_as: "record" charges the release
    of an enforced unit to a ledger of records, at twice its mu (`core.units.privacy_unit.as_record`).

    Raises `BudgetExceeded` (nothing drawn), `LedgerBusy` (nothing charged), `PlanError`, `PrivacyError` or `SourceError` (public
    facts, nothing charged; also what fails on simulated rows of the schema, on which the plan is run first), and `ReleaseError` after the
    charge: then the charge stays and there is no release.
    """
    if ledger is not None:
        check_ledger(ledger)
    check_method(method)
    noise = randomness.SecureNoise() if noise is None else noise
    is_noise = hasattr(noise, "grid_gaussian") and hasattr(noise, "simulated")
    if not (is_noise and (ledger is None if noise.simulated else isinstance(noise, randomness.SecureNoise))):
        raise _no_noise(noise, is_noise)
    _check_data(source)
    key = key_of(source.schema, ledger)
    if isinstance(method, Plan):
        made, planned = _from_plan(method, source, privacy, n)
    elif n is None:
        made, (planned, _) = method, paid_for(method, source.schema, privacy, ledger, n)
    else:  # looked at as a planning value too, where it is not public
        made, planned = method, plan(method, source.schema, privacy, n=n, ledger=ledger)
    if key is not None:
        planned = keyed(planned, key)
    charged, terms = planned.guarantees, {}
    if charge_as is not None:
        charged = (as_record(planned.guarantees, charge_as, planned.schema),)
    if ledger is not None:
        planned.to_json()  # what is paid for must be readable
        terms = pins(planned.schema, source.dataset, charge_as)
        # the ledger's own terms come before any look at the records: a refusal must not tell what nobody has paid for
        ledger.check(**terms)
        ledger.preview(charged, charge_delta=charge_delta, convert_ledger=convert_ledger)
    # before any method sees the records: what one unit contributes is bounded here, so that no method can forget it
    with source.opened() if key is None else _bounded(source, key, planned) as records:
        _check_source(records, planned)
        if ledger is not None:
            _rehearse(made, source, planned, key)
        if planned.n is not None and (ledger is None or ledger.relation == "substitute"):
            _check_count(records, planned.n)
        if ledger is None:
            done = drawn(made, records, planned, noise, "no ledger was charged", paid=False)
        else:
            done = _released(made, records, planned, ledger, noise, charged, terms, charge_delta, convert_ledger)
    if done.statuses and not allow_partial:
        _check_failed(done)
    return done


def _no_noise(noise: Any, is_noise: bool) -> PrivacyError:
    given = type(noise).__name__
    if not is_noise:
        return PrivacyError(f"noise must be left out, or be cf.noise.SimulatedNoise(seed) in simulations, got {given}")
    if not noise.simulated:
        return PrivacyError(f"noise that is not simulated must be cf.noise.SecureNoise, got {given}; leave noise out")
    return PrivacyError(
        "simulated noise protects nobody and is never charged; write ledger=None with SimulatedNoise, or leave noise out"
    )


def _check_failed(done: Release) -> None:
    """Raise `ReleaseError` for a publication in which a question failed: a bit that no guarantee covers is not handed over unasked."""
    failed = [name for name, status in done.statuses.items() if status == "failed"]
    if failed:
        raise ReleaseError(
            f"{len(failed)} of {len(done.statuses)} questions failed after the charge ({', '.join(failed)}), and nothing is released: that "
            "they failed may depend on the records, and no guarantee covers it. allow_partial=True releases the others, and says so; it is a "
            "new release, and is charged again"
        )


def _released(
    made: Method,
    source: Source,
    planned: Plan,
    ledger: Ledger,
    noise: Noise,
    charged: tuple[Guarantee, ...],
    terms: Mapping[str, Any],
    charge_delta: float | None,
    convert_ledger: bool,
) -> Release:
    """Charge, draw, write the receipt."""
    charge = ledger.charge(
        charged,
        **terms,
        method=f"{made.name} {made.version}",
        plan_sha256=planned.sha256,
        charge_delta=charge_delta,
        convert_ledger=convert_ledger,
    )
    done = drawn(
        made,
        source,
        planned,
        noise,
        f"the charge stays in the ledger as entry {charge.seq} of {ledger.dataset!r}, unfinished",
        paid=True,
    )
    try:
        ledger.receipt(charge, release_sha256=done.sha256, version=__version__)
    except ConfideError as error:
        raise ReleaseError(f"the receipt could not be written, and nothing is released: {error}") from None
    return done


def rehearsed(planned: Plan, source: Source, ledger: Ledger | None) -> Release:
    """What a plan releases of simulated rows, for whoever would try what comes after a release before the charge; see `_rehearse`."""
    key = key_of(source.schema, ledger)
    made, planned = made_again(planned, source.schema)
    return _rehearse(made, source, planned if key is None else keyed(planned, key), key)


def _rehearse(method: Method, source: Source, planned: Plan, key: bytes | None) -> Release:
    """Run a plan on simulated rows; nothing is charged and no record is read.

    The rows are of `Schema.sample`, in the physical types of the source's columns, CSV and Parquet behind their own readers. They are drawn
    with simulated noise, sealed, written as a file, read back, and a result is made of them. Code on blocks does not run again: the plan
    tried it by itself (`sums.blocks`), and workers of an executor are not asked.

    Raises `PlanError` with the words and the cause of whatever fails; errors that name a public fact stay what they are.
    """
    try:
        return _run_on_simulated(method, source, planned, key)
    except (PlanError, SchemaError, PrivacyError, SourceError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a compiled library is no Exception
        raise PlanError(
            f"{method.name} cannot be released: on simulated rows of the schema it raises {type(error).__name__}: {error}; nothing was "
            "charged, and no record was seen"
        ) from error


def _run_on_simulated(method: Method, source: Source, planned: Plan, key: bytes | None) -> Release:
    from confide.sources.coding import of_simulated  # here, because pyarrow is slow to load and a plan does without it
    from confide.sources.simulated import simulated_source

    noise, charged = randomness.SimulatedNoise(1), "nothing was charged"
    rows = simulated_source(source)
    opened = rows.opened() if key is None else _bounded(rows, key, planned)
    with fallbacks_only(), of_simulated(), opened as records:
        done = drawn(method, records, planned, noise, charged, paid=False)
        for name in (name for name, status in done.statuses.items() if status == "failed"):
            # alone, because nothing is kept of what fails among others
            child = planned.children[name]
            drawn(
                registry.make(child.method.name, **child.method.parameters), records, child, noise, charged, paid=False
            )
            raise PlanError(f"question {name!r} fails on simulated rows of the schema; nothing was charged")
    found = Release.from_json(done.to_json())
    _check_tables(method, found)
    return found


def _check_tables(method: Method, release: Release) -> None:
    """Infer from a simulated release: a fault of the method's table shows here, and not when the budget is spent."""
    parts = [(method, release)] if not release.plan.children else []
    for name, child in release.plan.children.items():
        parts.append((registry.make(child.method.name, **child.method.parameters), release.child(name)))
    for one, own in parts:
        with suppress(NoResult):
            one.infer(own)


def _check_data(source: Any) -> None:
    """A table is no source: its records have no schema, and pandas frames have an `aggregate` of their own."""
    verbs = ("rereadable", "aggregate", "check", "opened")
    if not isinstance(getattr(source, "schema", None), Schema) or not all(hasattr(source, name) for name in verbs):
        raise PlanError(
            f"data must come from cf.read, got {type(source).__name__}; write cf.read(frame, schema) and give what it returns"
        )


def _from_plan(method: Plan, source: Source, privacy: Guarantee | None, n: int | None) -> tuple[Method, Plan]:
    if privacy is not None or n is not None:
        raise PlanError(
            "a plan says its own privacy and n; write confide.release(plan, source, ledger=...) without them"
        )
    return made_again(method, source.schema)


def _bounded(source: Source, key: bytes, planned: Plan) -> AbstractContextManager[Source]:
    """The source with at most the rows of each unit that its schema allows, in one snapshot of it."""
    return source.bounded(key, whole=any(one.rule == "weight" for one in (planned, *planned.children.values())))


def _check_source(source: Source, planned: Plan) -> None:
    """Everything that public facts of the source can refuse, before the charge."""
    statistics = tuple(planned.statistics.values())
    for statistic in statistics:
        if RecordMap not in type(statistic.map).__mro__:
            raise _no_base(type(statistic.map).__name__)
    source.check(tuple(dict.fromkeys(column for statistic in statistics for column in statistic.map.columns)))
    source.check_statistics(statistics)
    if planned.passes > 1 and not source.rereadable:
        raise SourceError(
            f"the plan reads the records {planned.passes} times and this source can be read once; write it to a Parquet file first"
        )


def _no_base(name: str) -> PlanError:
    return PlanError(f"the map {name} lacks its base class; write class {name}(confide.core.RecordMap): ...")


def _check_count(source: Source, n: int) -> None:
    """Compare a public number of records with the source's; asked only where n is public (`release`)."""
    if source.count() != n:
        raise PlanError(
            f"the plan says n = {n}, which is not the number of records in the source, of ids where a unit is enforced; "
            "under substitute n is public: give it as it is"
        )


# in silence ---------------------------------------------------------------------------------------------------------


def drawn(method: Method, source: Source, planned: Plan, noise: Noise, charged: str, *, paid: bool) -> Release:
    """Run the private part; no exception or warning of it leaves with words of its own."""
    done, problem = None, ""
    try:
        with QUIET, np.errstate(all="ignore"):
            done = seal(method, source, planned, noise)
            done = replace(done, plan=done.plan.published())
            if paid:
                check_body("release", done.to_dict())  # what was paid for can be read, and its digest be told
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a compiled library is no Exception, and its text may quote a record
        if noise.simulated:
            raise
        # a source's own errors name public facts alone; one that anybody else raised under that name says nothing
        own = isinstance(error, SourceError) and _raised_by_a_source(error)
        problem, done = f" ({error})" if own else "", None
    if done is None:
        # raised outside the handler: even "from None" would leave the first error, with its words, in __context__
        raise ReleaseError(f"the release failed after it began{problem}; {charged}, and nothing is released")
    return done


def _raised_by_a_source(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith("confide.sources.")
