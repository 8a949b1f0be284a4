"""Rehearse, charge, draw, write the receipt, in this order.

The plan is first run on simulated rows of the schema. What fails there is told in full, since no record was seen, and
costs nothing. The ledger is charged in one durable transaction before any noise is drawn. Whatever fails after that
leaves the charge in place. The message says so and says nothing about the cause, because an error that depends on
records would be a leak, and failing on purpose must gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from confide import noise as randomness, registry
from confide._helpers import QUIET
from confide._version import __version__
from confide.core import Method, Noise, Plan, RecordMap, Release, Source, seal
from confide.core.events import OpaqueRelease, nodes
from confide.core.files import check_body
from confide.core.units.privacy_unit import as_record, by_units
from confide.engine.planning import check_ledger, check_method, key_of, keyed, made_again, paid_for, pins, plan
from confide.errors import ConfideError, NoResult, PlanError, PrivacyError, ReleaseError, SchemaError, SourceError
from confide.guarantees import Guarantee
from confide.results.pages.content import Shown
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
    """Release an analysis: charge the ledger, draw noise, write the receipt.

    The plan is first run on simulated rows of the schema, which costs nothing.

    Parameters
    ----------
    method : Method or Plan
        What to release, such as ``cf.regression.SSP("y ~ a")``, or a plan from
        a file, which has its own `privacy` and `n`.
    source : Source
        Records behind a schema, from `confide.read`.
    privacy : Guarantee, optional
        Cost of the release, such as ``GDP(0.5)``. Required unless `method` is a
        plan.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, with
        ``ledger=None``; it protects no one.
    n : int, optional
        Number of records. Under substitution it is public and checked.
        Otherwise it only serves the forecast, is not checked and is not
        published.
    charge_delta : float, optional
        Delta at which a curve is charged that has a point for each delta.
    convert_ledger : bool, default False
        Whether to turn a ledger in epsilon and delta into a Gaussian DP ledger
        first. It cannot be undone.
    allow_partial : bool, default False
        Whether to return a publication in which an analysis failed. That it
        failed may depend on the records, and no guarantee covers it.
    charge_as : {"record"}, optional
        "record" charges the release of an enforced unit to a ledger of records,
        at twice its mu.

    Returns
    -------
    Release
        What may be published.

    Raises
    ------
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    LedgerBusy
        The ledger is locked. Nothing was charged.
    PlanError, PrivacyError, SourceError
        A public fact is wrong, or the plan failed on simulated rows. Nothing
        was charged.
    ReleaseError
        The release failed after the charge. The charge stays.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> release.status
    'released'
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
    if made.bounds == "shared":
        raise PlanError("bounds='shared' is for the analyses of a publication", "write bounds='auto'")
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
        title = "" if ledger is None else _rehearse(made, source, planned, key)[1]
        if planned.n is not None and (ledger is None or ledger.relation == "substitute"):
            _check_count(records, planned.n)
        if ledger is None:
            done = drawn(made, records, planned, noise, "no ledger was charged", paid=False)
        else:
            done = _released(made, records, planned, ledger, noise, charged, terms, title, charge_delta, convert_ledger)
    if done.statuses and not allow_partial:
        _check_failed(done)
    return done


_ASKED: ContextVar[Callable[[Any], Any] | None] = ContextVar("asked", default=None)


@contextmanager
def asking(ask: Callable[[Any], Any]) -> Iterator[None]:
    """Within it, the ledger keeps the title of what `ask` makes of a release's result, such as a test of a table."""
    before = _ASKED.set(ask)
    try:
        yield
    finally:
        _ASKED.reset(before)


def _no_noise(noise: Any, is_noise: bool) -> PrivacyError:
    given = type(noise).__name__
    if not is_noise:
        return PrivacyError(f"noise must be left out, or be cf.noise.SimulatedNoise(seed) in simulations, got {given}")
    if not noise.simulated:
        return PrivacyError(f"noise that is not simulated must be cf.noise.SecureNoise, got {given}", "leave noise out")
    return PrivacyError(
        "simulated noise protects nobody and is never charged",
        "write ledger=None with SimulatedNoise, or leave noise out",
    )


def _check_failed(done: Release) -> None:
    """Raise `ReleaseError` for a publication in which an analysis failed: no guarantee covers that bit, so it is
    returned on request only.
    """
    failed = [name for name, status in done.statuses.items() if status == "failed"]
    if failed:
        raise ReleaseError(
            f"{len(failed)} of {len(done.statuses)} analyses failed after the charge ({', '.join(failed)}), and nothing is released. "
            "That they failed may depend on the records, and no guarantee covers it. allow_partial=True releases the others, and says so; "
            "it is a new release, and is charged again"
        )


def _released(
    made: Method,
    source: Source,
    planned: Plan,
    ledger: Ledger,
    noise: Noise,
    charged: tuple[Guarantee, ...],
    terms: Mapping[str, Any],
    title: str,
    charge_delta: float | None,
    convert_ledger: bool,
) -> Release:
    """Charge, draw, write the receipt."""
    if planned.n is None and ledger.relation == "substitute" and made.relations == ("substitute",):
        # n is public, and what it rules out is refused before it is paid for: a method with a test would decline
        made.plan(source.schema.bare, planned.requested, n=source.count())
    charge = ledger.charge(
        charged,
        **terms,
        method=f"{made.name} {made.version}",
        plan_sha256=planned.sha256,
        title=title,
        charge_delta=charge_delta,
        convert_ledger=convert_ledger,
    )
    done = drawn(
        made,
        source,
        planned,
        noise,
        f"the charge stays in the ledger as entry {charge.seq} of {ledger.dataset!r}, without a release",
        paid=True,
    )
    try:
        ledger.receipt(charge, release_sha256=done.sha256, version=__version__)
    except ConfideError as error:
        raise ReleaseError(f"the receipt could not be written, and nothing is released: {error}") from None
    return done


def rehearsed(planned: Plan, source: Source, ledger: Ledger | None) -> Release:
    """What a plan releases of simulated rows, to try before the charge what comes after a release; see `_rehearse`."""
    key = key_of(source.schema, ledger)
    made, planned = made_again(planned, source.schema)
    return _rehearse(made, source, planned if key is None else keyed(planned, key), key)[0]


def _rehearse(method: Method, source: Source, planned: Plan, key: bytes | None) -> tuple[Release, str]:
    """Run a plan on simulated rows; nothing is charged and no record is read.

    The rows come from `Schema.sample`, in the physical types of the source's columns, CSV and Parquet through their
    readers. They are drawn with simulated noise, sealed, written as a file, read back, and a result is made of them.
    Code on blocks does not run again, because planning tried it (`sums.blocks`), and workers of an executor are not
    asked.

    Raises `PlanError` with the words and the cause of whatever fails; errors that name a public fact stay as they
    are.
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


def _run_on_simulated(method: Method, source: Source, planned: Plan, key: bytes | None) -> tuple[Release, str]:
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
            raise PlanError(f"analysis {name!r} fails on simulated rows of the schema; nothing was charged")
    found = Release.from_json(done.to_json())
    return found, _check_tables(method, found)


def _check_tables(method: Method, release: Release) -> str:
    """Infer from a simulated release: a fault of the method's table shows here, and not when the budget is spent.

    Returns the title of the result, which the ledger keeps with the charge; it is public, since no record was read.
    """
    plan = release.plan
    if not plan.children:
        title = ""
        with suppress(NoResult):
            found, ask = method.infer(release), _ASKED.get()
            title = _titled(found)
            if ask is not None:
                with suppress(
                    Exception
                ):  # simulated rows may lack what the test needs; groups that they lack are not said
                    title = _titled(ask(found)).partition(", without ")[0]
        # what a private choice names is the simulated records' answer, and not that of the release
        chosen = any(isinstance(node, OpaqueRelease) for node in nodes(plan.event))
        return plan.target if chosen or not title else title
    for name, child in plan.children.items():
        with suppress(NoResult):
            registry.make(child.method.name, **child.method.parameters).infer(release.child(name))
    return f"Publication of {len(plan.children)} {'analysis' if len(plan.children) == 1 else 'analyses'}"


def _titled(result: Any) -> str:
    """Without the ranges that simulated rows have."""
    return result.title.replace(result.coded, "") if isinstance(result, Shown) else ""


def _check_data(source: Any) -> None:
    """A table is not a source: its records have no schema, and pandas frames have another `aggregate`."""
    verbs = ("rereadable", "aggregate", "check", "opened")
    if not isinstance(getattr(source, "schema", None), Schema) or not all(hasattr(source, name) for name in verbs):
        raise PlanError(
            f"data must come from cf.read, got {type(source).__name__}",
            "write cf.read(frame, schema) and give what it returns",
        )


def _from_plan(method: Plan, source: Source, privacy: Guarantee | None, n: int | None) -> tuple[Method, Plan]:
    if privacy is not None or n is not None:
        raise PlanError(
            "a plan says its own privacy and n", "write confide.release(plan, source, ledger=...) without them"
        )
    return made_again(method, source.schema)


def _bounded(source: Source, key: bytes, planned: Plan) -> AbstractContextManager[Source]:
    """The source with at most the rows of each unit that its schema allows, in one snapshot of it."""
    whole = any(one.rule == "weight" for one in (planned, *planned.children.values()))
    return source.bounded(key, whole=whole, first=not all(map(by_units, planned.statistics.values())))


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
            f"the plan reads the records {planned.passes} times and this source can be read once",
            "write it to a Parquet file first",
        )


def _no_base(name: str) -> PlanError:
    return PlanError(f"the map {name} lacks its base class", f"write class {name}(confide.core.RecordMap): ...")


def _check_count(source: Source, n: int) -> None:
    """Compare a public number of records with the source's; asked only where n is public (`release`)."""
    if source.count() != n:
        raise PlanError(
            f"the plan says n = {n}, which is not the number of records in the source, of ids where a unit is enforced. "
            "Under substitution n is public: give it as it is"
        )


# in silence ---------------------------------------------------------------------------------------------------------


def drawn(method: Method, source: Source, planned: Plan, noise: Noise, charged: str, *, paid: bool) -> Release:
    """Run the private part; no exception or warning of it leaves with its text."""
    done, problem = None, ""
    try:
        with QUIET, np.errstate(all="ignore"):
            done = seal(method, source, planned, noise)
            done = replace(done, plan=done.plan.published())
            if paid:
                check_body("release", done.to_dict())  # what was paid for can be read, and its digest be told
    except BaseException as error:  # a panic of a compiled library, or an exit: its text may quote a record
        if noise.simulated or isinstance(error, KeyboardInterrupt | GeneratorExit):
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
