"""The gate between the wings: charge, draw, receipt, in this order.

The ledger is charged in one durable transaction before any noise is drawn. Whatever fails afterwards leaves the charge in place
and says so, without a word about the cause: an error that depends on records would be a leak, and failing on purpose must buy
nothing.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from confide import noise as randomness
from confide import registry
from confide._version import __version__
from confide.accuracy import Precision, check_accuracy, smallest
from confide.errors import ConfideError, NoConversion, NoResult, PlanError, PrivacyError, ReleaseError, SourceError
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, calibrate_gaussian
from confide.ledger.names import same_name
from confide.protocol import Method, Noise, Plan, Question, Release, Result, Source, check_plan, seal, statements_hold
from confide.protocol.allowance import checked_privacy
from confide.protocol.contributions import shown, with_contributions
from confide.protocol.proof import parts_agree, request_met
from confide.protocol.reading import check_body
from confide.protocol.subgroup import check_read
from confide.protocol.where import subgroup_size
from confide.protocol.whose import as_record, protected
from confide.schema import Schema, Unit

if TYPE_CHECKING:
    from confide.ledger import Ledger

__all__ = ["Check", "consistent", "infer", "plan", "precision", "release", "verify"]


def plan(
    method: Method | Plan,
    schema: Any,
    privacy: Guarantee | None = None,
    *,
    n: int | None = None,
    ledger: Ledger | None = None,
    guess: Mapping[str, Any] | None = None,
    accuracy: Mapping[str, Any] | None = None,
    level: float | None = None,
) -> Plan:
    """What a release would spend and give, from public facts; nothing is read and nothing is charged.

    n: the number of records, public under "substitute", a planning value for the forecast otherwise. Typical spreads of the schema serve
    the forecast alone. A relation that `privacy` leaves open is taken from the ledger, else from the method. guess: what else forecasts
    may rest on, by the caller's word: {"where": .2} is the share of the records that the method's subgroup has.
    accuracy: in place of privacy, the largest standard errors that are wanted, by the names of the forecast ("mean", "share", "count",
    "quantile" or "all" for each of them), with `level` the largest half-widths of intervals at that level: the plan is that of the
    smallest mu whose forecast for n records is as sharp, and tells of n, which is then public by the caller's word. Of a publication
    {"question": {"mean": .01}, ...}, one entry for each question.
    """
    _check_ledger(ledger)
    if accuracy is not None:
        if hasattr(method, "sharpened"):
            own, request = method.sharpened(schema, accuracy, privacy, n=n, level=level, ledger=ledger)
            made = plan(own, schema, request, n=n, ledger=ledger, guess=guess)
            return replace(made, notes=(*made.notes, _TELLS_OF_N))
        wanted = check_accuracy(accuracy, privacy, n, level)
        made = smallest(_at_levels(method, schema, n, ledger, guess), wanted, level)
        return replace(made, notes=(*made.notes, _TELLS_OF_N))
    if isinstance(method, Plan):
        return registry.remake(method, schema)[1]
    if privacy is None and hasattr(method, "priced"):
        relation = method.relations[0] if ledger is None else ledger.show().relation
        privacy = method.priced(schema, relation, n)
    request = _resolved(checked_privacy(privacy), ledger)
    _check_kind(method, request, ledger)
    public = (request.relation or method.relations[0]) == "substitute"
    # a number of records that is not public, and typical spreads, never reach the plan that is charged and published, only the
    # forecast beside it
    bare = getattr(schema, "without_typical", schema)
    size, note, where = n, "", getattr(method, "where", None)
    if where is not None:
        size, note = subgroup_size(where, schema, n, guess)
    made = with_contributions(method.plan(bare, request, n=n if public and where is None else None))
    check_plan(made, request)
    check_read(made, where)
    _check_file(made)
    if where is None and bare is schema and (public or n is None):
        return made
    seen = made.outlook(method.plan(schema, request, n=size), n)
    return replace(seen, notes=(*seen.notes, note)) if note else seen


_TELLS_OF_N = "accuracy: the budget was chosen for the number of records given, and tells of it; that number counts as public by your word"


def _at_levels(
    method: Method | Plan, schema: Any, n: int | None, ledger: Ledger | None, guess: Mapping[str, Any] | None
) -> Callable[[float], Plan]:
    """The plans of a method by their level: mu, or epsilon where its guarantee is pure."""
    if isinstance(method, Plan):
        raise PlanError("a plan has its budget already; give the method itself to plan for an accuracy")
    kind = PureDP if method.native == "PureDP" else GDP
    return lambda level: plan(method, schema, kind(level), n=n, ledger=ledger, guess=guess)


def precision(
    method: Method,
    schema: Any,
    *,
    n: int,
    levels: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0),
    ledger: Ledger | None = None,
    guess: Mapping[str, Any] | None = None,
) -> Precision:
    """What precision costs: predicted standard errors of n records at several mu (epsilon where the guarantee is pure), with a plot.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> cf.precision(cf.tables.Means("y ~ 1", covers="population"), schema, n=2_000, levels=(0.5, 1.0)).levels
    (0.5, 1.0)
    """
    kind = "epsilon" if method.native == "PureDP" else "mu"
    return Precision.of(_at_levels(method, schema, n, ledger, guess), levels, kind)


def release(
    method: Method | Plan,
    source: Source,
    privacy: Guarantee | None = None,
    *,
    ledger: Ledger | None,
    noise: Noise | None = None,
    n: int | None = None,
    charge_delta: float | None = None,
    convert: bool = False,
    keep_others: bool = False,
    charge_as: str | None = None,
) -> Release:
    """Charge the ledger, then draw noise, then write the receipt; returns what may be published.

    method: a method such as `cf.regression.SSP("y ~ a")`, or a plan from a file (then `privacy` and `n` are the plan's).
    ledger: an open `Ledger`; it is required, and whoever wants none writes ledger=None. noise: leave it out; only simulations pass
    `cf.noise.SimulatedNoise(seed)`, with ledger=None. charge_delta: where a curve is charged that has a point for each delta;
    convert: turn an (epsilon, delta) ledger into a Gaussian one first, for good (`Ledger.charge`). keep_others: hand over a publication in
    which a question failed; that it failed may depend on the records, and no guarantee covers it. charge_as: "record" charges the release
    of an enforced unit to a ledger of records, at twice its mu (`protocol.whose.as_record`).

    Raises `BudgetExceeded` (nothing drawn), `LedgerBusy` (nothing charged), `PlanError`, `PrivacyError` or `SourceError` (public
    facts, nothing charged), and `ReleaseError` after the charge: then the charge stays and there is no release.
    """
    _check_ledger(ledger)
    noise = randomness.SecureNoise() if noise is None else noise
    if not hasattr(noise, "grid_gaussian") or not hasattr(noise, "simulated"):
        raise PrivacyError(
            f"noise must be left out, or be cf.noise.SimulatedNoise(seed) in simulations, got {type(noise).__name__}"
        )
    if not noise.simulated and not isinstance(noise, randomness.SecureNoise):
        raise PrivacyError(
            f"noise that is not simulated must be cf.noise.SecureNoise, got {type(noise).__name__}; leave noise out"
        )
    if ledger is not None and noise.simulated:
        raise PrivacyError(
            "simulated noise protects nobody and is never charged; write ledger=None with SimulatedNoise, or leave noise out"
        )
    _check_data(source)
    made, planned = _planned(method, source, privacy, ledger, n)
    charged = planned.guarantees
    if charge_as is not None:
        charged = (as_record(planned.guarantees, charge_as, planned.schema),)
    if ledger is not None:
        # the ledger's own terms come before any look at the records: a refusal must not tell what nobody has paid for
        ledger.check(**_about(source, planned, charge_as))
        ledger.preview(charged, charge_delta=charge_delta, convert=convert)
    # before any method sees the records: what one unit contributes is bounded here, so that no method can forget it
    with _bounded(source, ledger, planned) as records:
        done = _released(made, records, planned, ledger, noise, charged, charge_as, charge_delta, convert)
    if not keep_others:
        _check_failed(done)
    return done


def _check_failed(done: Release) -> None:
    """Raise `ReleaseError` for a publication in which a question failed: a bit that no guarantee covers is not handed over unasked."""
    failed = [name for name, status in done.statuses.items() if status == "failed"]
    if failed:
        raise ReleaseError(
            f"{len(failed)} of {len(done.statuses)} questions failed after the charge ({', '.join(failed)}), and nothing is released: that "
            "they failed may depend on the records, and no guarantee covers it. keep_others=True releases the others, and says so; it is a "
            "new release, and is charged again"
        )


def _released(
    made: Method,
    source: Source,
    planned: Plan,
    ledger: Ledger | None,
    noise: Noise,
    charged: tuple[Guarantee, ...],
    charge_as: str | None,
    charge_delta: float | None,
    convert: bool,
) -> Release:
    """Check, charge, draw, write the receipt."""
    _check_source(source, planned)
    if planned.n is not None and (ledger is None or ledger.relation == "substitute"):
        _check_count(source, planned.n)
    if ledger is None:
        return _draw(made, source, planned, noise, "no ledger was charged")
    charge = ledger.charge(
        charged,
        **_about(source, planned, charge_as),
        method=f"{made.name} {made.version}",
        plan_sha256=planned.sha256,
        charge_delta=charge_delta,
        convert=convert,
    )
    done = _draw(
        made,
        source,
        planned,
        noise,
        f"the charge stays in the ledger as entry {charge.seq} of {ledger.dataset!r}, unfinished",
    )
    try:
        ledger.receipt(charge, release_sha256=done.sha256, version=__version__)
    except ConfideError as error:
        raise ReleaseError(f"the receipt could not be written, and nothing is released: {error}") from None
    return done


def infer(
    release: Release | Sequence[Release],
    question: Question | None = None,
    *,
    ledger: Ledger | None = None,
    **others: Any,
) -> Result:
    """The result of a release: the same numbers each time for one release and question. No record is needed.

    Of several releases of tables, [first, again], the marginals that each holds are combined by least squares; `ledger` is then the one
    that has the receipts of all of them, which says that they are of one data set.

    Raises `PlanError` when the method that made the release is not installed here, and for anything beside a question; `ReleaseError`
    when the release does not agree with its own plan or its numbers are not those that its method releases.
    """
    if isinstance(release, Sequence):
        return _infer_several(release, question, ledger, others)
    if ledger is not None:
        raise PlanError(
            "ledger is for several releases, infer([first, again], ledger=book); one release is read without it"
        )
    method = _read_method(release, question, others)
    with _reading(release, asked=question is not None):
        if consistent(release):
            return shown(_titled(method.infer(release, question), release.plan), release)
    raise ReleaseError(_ALTERED)


def _infer_several(
    releases: Sequence[Release], question: Question | None, ledger: Ledger | None, others: Any
) -> Result:
    """Releases of one ledger's data set as one table."""
    from confide.methods.tables.combined import combined

    methods = [_read_method(release, question, others) for release in releases]
    for release in releases:
        with _reading(release, asked=question is not None):
            if not consistent(release):
                raise ReleaseError(_ALTERED)
    _check_ledger(ledger)
    for release in releases:
        if ledger is not None and ledger.find(release.sha256) is None:
            raise ReleaseError(
                f"release {release.sha256} has no receipt in dataset {ledger.dataset!r}, so that nothing says that the releases are of one "
                "data set; give the ledger that all were charged to"
            )
    if ledger is None and not all(release.simulated for release in releases):
        raise PlanError(
            "releases are combined where one ledger has the receipts of all, which says that they are of one data set; write "
            "cf.infer([first, again], ledger=cf.Ledger.open(...))"
        )
    found = combined(releases, methods, question)
    return _titled(found, releases[0].plan)


def _read_method(release: Release, question: Question | None, others: Any) -> Method:
    """The method behind a release, in the version that made it."""
    _check_question(release, question, others)
    with _reading(release, asked=True):
        method = registry.make(release.plan.method.name, **release.plan.method.parameters)
    if release.plan.method.version not in (method.version, *method.reads):
        raise PlanError(
            f"the release was made by {method.name} {release.plan.method.version}, here is version {method.version}; "
            "install the version of confide that made it"
        )
    return method


_ALTERED = (
    "the release does not agree with its own plan (guarantees, spends or noise): the file was altered; ask for the original, "
    "and check it with confide.verify against the ledger"
)


def _titled(result: Result, made: Plan) -> Result:
    """The result with the subgroup in its title, where a method wrote a title of its own."""
    target = made.titled(result.target)
    return result if target == result.target else replace(result, target=target)  # type: ignore[type-var]


@contextmanager
def _reading(release: Release, *, asked: bool) -> Iterator[None]:
    """Whatever a method trips over in a release is `ReleaseError`, with its cause: a release is public, and so is all that is read in it.

    The cause stays in sight (`__cause__`), because it may be an error of the method as well as of the file. asked: the caller chose
    something as well, so that a `PlanError` may be about that.
    """
    try:
        yield
    except (ReleaseError, NoResult):
        raise
    except Exception as error:
        if asked and isinstance(error, PlanError):
            raise
        words = str(error) if isinstance(error, ConfideError) else type(error).__name__
        raise ReleaseError(
            f"method {release.plan.method.name!r} cannot read this release, because a number, name or setting in it is not what the method "
            f"releases ({words}); ask for the original file, and if this is it, report the error that stands above as one of the method"
        ) from error


def _of_records(release: Release) -> tuple[Guarantee, ...]:
    """What the release of an enforced unit is charged as in a ledger of records."""
    try:
        return (as_record(release.guarantees, "record", release.plan.schema),)
    except PrivacyError:
        return ()


def consistent(release: Release) -> bool:
    """Whether a file's statements are its plan's and paid for, and its numbers were drawn as planned.

    A forger who keeps all of them in step is found by `verify` alone: the receipt in the ledger names the original.
    """
    return (
        parts_agree(release)
        and release.guarantees == release.plan.guarantees
        and statements_hold(release.plan.event, release.guarantees)
        and request_met(release.plan)
    )


@dataclass(frozen=True)
class Check:
    """What `verify` found: `ok`, and one line for each thing looked at."""

    ok: bool
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def verify(release: Release, ledger: Ledger) -> Check:
    """Check a published release against the ledger it was charged to: receipt, guarantee, plan, chain."""
    lines, ok = [], True
    receipt = ledger.find(release.sha256)
    if release.simulated:
        ok = False
        lines.append("FAILED  the release was made with simulated noise: it protects nobody")
    if receipt is None:
        ok = False
        lines.append(f"FAILED  no receipt for release {release.sha256} in dataset {ledger.dataset!r}")
    else:
        lines.append(f"ok      receipt of entry {receipt.seq} names this release")
        paid = consistent(release) and receipt.guarantee in (*release.guarantees, *_of_records(release))
        ok &= paid
        lines.append(
            f"{'ok    ' if paid else 'FAILED'}  the charged guarantee is one that the release's spends pay for"
        )
        same = receipt.plan_sha256 == release.plan.sha256
        ok &= same
        lines.append(f"{'ok    ' if same else 'FAILED'}  the charged plan is the release's plan")
    book = ledger.verify(heads=[release.sha256] if receipt is not None else [])
    ok &= book.ok
    lines.append(
        "ok      the ledger's chain, totals and limits hold" if book.ok else "FAILED  " + "; ".join(book.problems)
    )
    return Check(ok, tuple(lines))


class _Quiet:
    """Warnings off while any release runs: their words may come from records.

    Python's filters belong to the whole process, so releases in several threads share one change of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


_QUIET = _Quiet()


def _check_ledger(ledger: Ledger | None) -> None:
    if ledger is None:
        return
    from confide.ledger import Ledger  # SQLAlchemy is for those who have a ledger

    if not isinstance(ledger, Ledger):
        raise PlanError(
            f"ledger must be an open cf.Ledger or None, got {type(ledger).__name__}; "
            'write ledger=cf.Ledger.open("book.db", dataset="survey"), or ledger=None for no charge'
        )


def _check_file(made: Plan) -> None:
    """Refuse a plan that no file can hold: what is paid for must be readable."""
    try:
        check_body("plan", made.to_dict())
    except ReleaseError as error:
        raise PlanError(
            f"the plan of {made.method.name!r} is beyond what a file of confide holds, so that its release could never be read: {error}"
        ) from None


def _check_data(source: Any) -> None:
    """A table is no source: its records have no schema, and pandas frames have an `aggregate` of their own."""
    if not all(hasattr(source, name) for name in ("schema", "rereadable", "aggregate", "check")):
        raise PlanError(
            f"data must come from cf.read, got {type(source).__name__}; write cf.read(frame, schema) and give what it returns"
        )


def _check_kind(method: Any, request: Guarantee, ledger: Ledger | None) -> None:
    """Refuse a pure guarantee of a Gaussian method with equal ones that it has, and the names of methods that can give it."""
    if isinstance(request, PureDP) and getattr(method, "native", "") == "GDP":
        pure = [info.name for info in registry.list_methods() if info.native == "PureDP"]
        other = (
            f", or a method with a pure guarantee: {', '.join(pure)}"
            if pure
            else "; no method here has a pure guarantee"
        )
        # the three are one release: the Gaussian one whose curve meets (epsilon, delta), and its rho = mu^2/2
        asked = ApproxDP(request.epsilon, _delta_beside(request.epsilon, ledger))
        mu = float(f"{calibrate_gaussian(asked):.4g}")
        raise NoConversion(
            f"{method.name} adds Gaussian noise, and there is no Gaussian noise for {request}; ask for "
            f"ApproxDP({asked.epsilon!r}, {asked.delta!r}), which is GDP({mu!r}) or ZCDP({float(f'{mu**2 / 2:.4g}')!r}){other}"
        )


def _delta_beside(epsilon: float, ledger: Ledger | None) -> float:
    """A delta for a request that names none: of an (epsilon, delta) ledger half its share of the budget, else 1e-6."""
    budget = None if ledger is None else ledger.budget
    if not isinstance(budget, ApproxDP):
        return 1e-6
    return float(f"{min(budget.delta * epsilon / (2 * budget.epsilon), budget.delta):.2g}")


def _check_question(release: Any, question: Any, others: dict[str, Any]) -> None:
    if not isinstance(release, Release):
        raise PlanError(
            f"infer takes a release, got {type(release).__name__}; write cf.infer(cf.Release.load('release.json'))"
        )
    if question is not None and not isinstance(question, Question):
        raise PlanError(
            f"a question must be a cf.Question or None, got {type(question).__name__}; write "
            "cf.infer(release, cf.Question(subset=['age']))"
        )
    if others:
        name, value = next(iter(others.items()))
        known = [field.name for field in fields(Question)]
        call = f"{name}={value!r}" if name in known else "subset=['age']"
        raise PlanError(
            f"infer takes a release and a question, got {', '.join(others)}; a question has the fields {', '.join(known)}; "
            f"write cf.infer(release, cf.Question({call}))"
        )


def _resolved(privacy: Guarantee, ledger: Ledger | None) -> Guarantee:
    """An open relation is the ledger's; the method's default comes later, in the plan."""
    if ledger is not None and privacy.relation is None:
        return privacy.resolve(ledger.relation)
    return privacy


def _planned(
    method: Method | Plan, source: Source, privacy: Guarantee | None, ledger: Ledger | None, n: int | None
) -> tuple[Method, Plan]:
    if isinstance(method, Plan):
        if privacy is not None or n is not None:
            raise PlanError(
                "a plan says its own privacy and n; write confide.release(plan, source, ledger=...) without them"
            )
        made, planned = registry.remake(as_asked(method), source.schema)
        check_plan(planned, method.requested)
    else:
        made, planned = method, plan(method, source.schema, privacy, n=n, ledger=ledger)
    return made, _keyed(planned, _key(source.schema, ledger))


def as_asked(planned: Plan) -> Plan:
    """The plan before its release: without the digest of the ledger's key, which the release of an enforced unit adds."""
    return replace(planned, public_inputs={name: text for name, text in planned.public_inputs.items() if name != _KEY})


def as_charged(planned: Plan, ledger: Ledger) -> Plan:
    """The plan as this ledger is charged for it, and its release states it."""
    return _keyed(as_asked(planned), _key(Schema.from_dict(planned.schema), ledger))


def _keyed(planned: Plan, key: bytes | None) -> Plan:
    if key is None:
        return planned
    return replace(planned, public_inputs={**planned.public_inputs, _KEY: hashlib.sha256(key).hexdigest()})


# In a plan's public inputs: SHA-256 of the key by which rows of a unit are chosen.
_KEY = "unit key"


def _key(schema: Schema, ledger: Ledger | None) -> bytes | None:
    """The key of an enforced unit, one for each ledger, so that its releases agree on who counts; without one the schema's digest."""
    if not isinstance(schema.unit, Unit):
        return None
    own = None if ledger is None else ledger.unit_key
    return bytes.fromhex(schema.digest) if own is None else own


def _bounded(source: Source, ledger: Ledger | None, planned: Plan) -> AbstractContextManager[Source]:
    """The source with at most the rows of each unit that its schema allows; as it is where a record is a unit, in one snapshot of it."""
    key = _key(source.schema, ledger)
    if key is None:
        opened = getattr(type(source), "opened", None)
        return nullcontext(source) if opened is None else cast("AbstractContextManager[Source]", opened(source))
    bound = getattr(source, "bounded", None)
    if bound is None:
        raise SourceError(
            f"the schema protects {source.schema.unit.column!r}, and a {type(source).__name__} cannot bound its rows; "
            "read the records with cf.read(data, schema)"
        )
    weighted = any(one.rule == "weight" for one in (planned, *planned.children.values()))
    return cast("AbstractContextManager[Source]", bound(key, whole=True) if weighted else bound(key))


def _about(source: Source, planned: Plan, charge_as: str | None = None) -> dict[str, Any]:
    """What a release is about, for the ledger, which compares it with what it is pinned to: data set, unit, rows per unit."""
    named = planned.schema["dataset"]
    if named is not None and source.dataset is not None and not same_name(named, source.dataset):
        raise PlanError(
            f"the schema names dataset {named!r}, and the records were read as {source.dataset!r}; give one name: "
            f"cf.read(data, schema) without dataset=, or dataset={source.dataset!r} in the schema"
        )
    whose = protected(planned.schema)
    if charge_as is not None:
        return {"dataset": source.dataset, "unit": "record", "rows_per_unit": 1, "enforced": False}
    enforced = whose != "record"
    return {
        "dataset": source.dataset,
        "unit": whose if enforced else planned.schema["unit"],
        "rows_per_unit": int(planned.schema["rows_per_unit"]),
        "enforced": enforced,
    }


def _check_source(source: Source, planned: Plan) -> None:
    """Everything that public facts of the source can refuse, before the charge."""
    source.check(
        tuple(dict.fromkeys(column for statistic in planned.statistics.values() for column in statistic.map.columns))
    )
    sums_alone = getattr(type(source), "check_statistics", None)
    if sums_alone is not None:
        sums_alone(source, tuple(planned.statistics.values()))
    if planned.passes > 1 and not source.rereadable:
        raise SourceError(
            f"the plan reads the records {planned.passes} times and this source can be read once; write it to a Parquet file first"
        )


def _check_count(source: Source, n: int) -> None:
    """Compare a public number of records with the source's; asked only where n is public (`release`)."""
    if source.count() != n:
        raise PlanError(
            f"the plan says n = {n}, which is not the number of records in the source, of ids where a unit is enforced; "
            "under substitute n is public: give it as it is"
        )


def _draw(method: Method, source: Source, planned: Plan, noise: Noise, charged: str) -> Release:
    """Run the private part; no exception or warning of it leaves with words of its own."""
    done, problem = None, ""
    try:
        with _QUIET, np.errstate(all="ignore"):
            done = seal(method, source, planned, noise)
            done = replace(done, plan=done.plan.published())
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
