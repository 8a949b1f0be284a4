"""From a release to its result: the method reads it, once it agrees with its own plan. No record is needed.

Also whether a published release is the one that its ledger was charged for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from confide import registry
from confide.core import Method, Plan, Release, Result, ResultOptions, statements_hold
from confide.core.release import parts_agree, request_met
from confide.core.units.contributions import shown
from confide.core.units.privacy_unit import as_record
from confide.core.units.subgroup import check_subgroup
from confide.engine.planning import check_ledger
from confide.errors import ConfideError, NoResult, PlanError, PrivacyError, ReleaseError
from confide.guarantees import Guarantee
from confide.schema.formulas.conditions import parse_predicate

if TYPE_CHECKING:
    from confide.ledger import Ledger


def infer(
    release: Release | Sequence[Release],
    *,
    ledger: Ledger | None = None,
    subset: Sequence[str] | None = None,
    contrasts: Mapping[str, Mapping[str, float]] | None = None,
    kind: str | None = None,
    quantiles: Sequence[float] | None = None,
    prior: str | None = None,
    formula: str | None = None,
    loss: str | None = None,
    inference: str | None = None,
) -> Result:
    """Compute the result of a release: estimates, intervals and tests.

    It costs nothing, because it is computed from the published file alone. The same
    release and options always give the same numbers.

    Parameters
    ----------
    release : Release or list of Release
        From `Release.load`. Several releases of tables, ``[first, again]``, are combined
        by least squares over the marginals that each of them holds.
    ledger : Ledger, optional
        For several releases only: the ledger that holds the receipts of all of them.
    subset : list of str, optional
        Coefficients to keep, by name or by factor; the intercept stays.
    contrasts : mapping of str to mapping of str to float, optional
        Combinations of coefficients, such as ``{"gap": {"sex[T.male]": 1.0}}``.
    kind : str, optional
        Of an interval: ``"credible"`` or ``"confidence"``.
    quantiles : list of float, optional
        Other quantiles than those of the plan, such as ``[0.1, 0.9]``.
    prior : str, optional
        Another prior of a credible interval, such as ``"beta(2, 5)"``.
    formula : str, optional
        Another formula, for methods that answer several from one release.
    loss : str, optional
        Another loss, for methods that answer several from one release.
    inference : {"population", "dataset"}, optional
        What the intervals of a table are about, if not what the plan says.

    Returns
    -------
    Result
        The result, in the class of the method, such as `MeanTable` or `LinearEstimates`.

    Raises
    ------
    PlanError
        The method is not installed here, or does not answer one of the options.
    ReleaseError
        The release does not agree with its own plan.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> cf.infer(release, inference="dataset").inference
    'dataset'
    """
    asked = ResultOptions(
        subset=None if subset is None else tuple(subset) if not isinstance(subset, str) else subset,  # type: ignore[arg-type]
        contrasts=contrasts,
        kind=kind,
        quantiles=None if quantiles is None else tuple(quantiles),
        prior=prior,
        formula=formula,
        loss=loss,
        inference=inference,
    )
    options = None if asked == ResultOptions() else asked
    if isinstance(release, Sequence):
        return _infer_several(release, options, ledger)
    if ledger is not None:
        raise PlanError(
            "ledger is for several releases, infer([first, again], ledger=book); one release is read without it"
        )
    method = _read_method(release)
    try:
        with _reading(release, asked=options is not None):
            if consistent(release):
                return shown(_titled(method.infer(release, options), release.plan), release)
    except PlanError:
        with _reading(release, asked=False):
            method.infer(release)  # what cannot be read whatever is asked is no fault of the options
        raise
    raise ReleaseError(_ALTERED)


def _infer_several(releases: Sequence[Release], options: ResultOptions | None, ledger: Ledger | None) -> Result:
    """Releases of one ledger's dataset as one table."""
    methods = [_read_method(release) for release in releases]
    for release in releases:
        with _reading(release, asked=options is not None):
            if not consistent(release):
                raise ReleaseError(_ALTERED)
    check_ledger(ledger)
    for release in releases:
        if ledger is not None and ledger.find(release.sha256) is None:
            raise ReleaseError(
                f"release {release.sha256} has no receipt in dataset {ledger.dataset!r}, so that nothing shows that the releases are of "
                "one dataset",
                "give the ledger that all were charged to",
            )
    if ledger is None and not all(release.simulated for release in releases):
        raise PlanError(
            "releases are combined where one ledger has the receipts of all, which shows that they are of one dataset",
            "write cf.infer([first, again], ledger=cf.Ledger.open(...))",
        )
    return _titled(methods[0].combine(releases, methods, options), releases[0].plan)


def _read_method(release: Release) -> Method:
    """The method behind a release, in the version that made it."""
    if not isinstance(release, Release):
        raise PlanError(
            f"infer takes a release, got {type(release).__name__}", "write cf.infer(cf.Release.load('release.json'))"
        )
    made = release.plan.method
    with _reading(release, asked=True):  # which methods there are is a fact of this machine, and not of the file
        kind = registry.get(made.name)
    if made.version != kind.version:
        raise PlanError(
            f"the release was made by {kind.name} {made.version}, here is version {kind.version}",
            "install the version of confide that made it",
        )
    with _reading(release, asked=False):
        method = registry.make(made.name, **made.parameters)
        _check_parameters(method, release.plan)
        # a publication found these ranges, so that the plan of the analysis does not name them
        found = method.to_find(release.plan.asked) if method.bounds == "shared" else release.ranges
        if set(release.ranges) != set(found):
            raise ReleaseError(_ALTERED)
    return method


def _check_parameters(method: Method, made: Plan) -> None:
    """Raise what parameters raise that no plan of this schema can have had: a formula, a column, a subgroup."""
    schema = made.asked
    method.about(schema)
    if method.where is not None:
        parse_predicate(method.where, schema)
        check_subgroup(method)
        if made.titled(made.target) != made.target:
            raise ReleaseError(_ALTERED)


def _titled(result: Result, made: Plan) -> Result:
    """The result with the subgroup in its target and its facts, where a method wrote its own."""
    changes: dict[str, Any] = {}
    if (target := made.titled(result.target)) != result.target:
        changes["target"] = target
    if made.where is not None and is_dataclass(result):  # a third party's result may be none, and have no facts
        own = {one.name: getattr(result, one.name) for one in fields(result)}
        if "facts" in own and "Subgroup" not in dict(own["facts"]):
            changes["facts"] = (*own["facts"], ("Subgroup", made.where.strip()))
    return replace(result, **changes) if changes else result  # type: ignore[type-var]


@contextmanager
def _reading(release: Release, *, asked: bool) -> Iterator[None]:
    """Turn any error of a method on a release into `ReleaseError`, with its cause: a release is public, and so is all
    that follows from it.

    The cause stays visible (`__cause__`), because it may be an error of the method as well as of the file. `asked`:
    the caller chose an option, so that a `PlanError` may be about that.
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
            f"method {release.plan.method.name!r} cannot read this release. A number, name or setting in it is not what the method "
            f"releases ({words})",
            "ask for the original file, and if this is it, report the error above to the method's authors",
        ) from error


_ALTERED = (
    "the release does not agree with its own plan (guarantees, budget items or noise): the file was altered; ask for the original, "
    "and check it with confide.verify against the ledger"
)


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
    """What `verify` found.

    Parameters
    ----------
    ok : bool
        Whether everything agrees.
    lines : tuple of str
        One line for each check.
    """

    ok: bool
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def verify(release: Release, ledger: Ledger) -> Check:
    """Check a published release against the ledger that was charged for it.

    Checked are the receipt, the guarantee, the plan and the ledger's chain of
    entries.

    Parameters
    ----------
    release : Release
        From `Release.load`.
    ledger : Ledger
        From `Ledger.open`.

    Returns
    -------
    Check
        `ok`, and one line for each check; prints as text.

    Raises
    ------
    ReleaseError
        `release` is not a release.
    PlanError
        `ledger` is None.

    Examples
    --------
    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)}, dataset="survey")
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> ledger = cf.Ledger.create(f"{tempfile.mkdtemp()}/ledger.db", dataset="survey", budget=cf.GDP(2.0))
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=ledger)
    >>> cf.verify(release, ledger).ok
    True
    """
    if not isinstance(release, Release):
        raise ReleaseError(
            f"a release is verified, got {type(release).__name__}",
            'write cf.verify(cf.Release.load("release.json"), ledger)',
        )
    if ledger is None:
        raise PlanError(
            "a release is verified against its ledger, got None",
            'write ledger=cf.Ledger.open("ledger.db", dataset="survey")',
        )
    check_ledger(ledger)
    lines, ok = [], True
    receipt = ledger.find(release.sha256)
    if release.simulated:
        ok = False
        lines.append("FAIL  the noise of this release is simulated: it protects no one")
    if receipt is None:
        ok = False
        lines.append(f"FAIL  no receipt of release {release.sha256[:8]} in dataset {ledger.dataset!r}")
    else:
        lines.append(f"pass  entry {receipt.seq} is the receipt of this release")
        paid = consistent(release) and receipt.guarantee in (*release.guarantees, *_of_records(release))
        ok &= paid
        lines.append(f"{'pass' if paid else 'FAIL'}  the charge covers the release's budget items")
        same = receipt.plan_sha256 == release.plan.sha256
        ok &= same
        lines.append(f"{'pass' if same else 'FAIL'}  the charged plan is the plan of the release")
    book = ledger.verify(tips=[release.sha256] if receipt is not None else [])
    ok &= book.ok
    lines.append(
        "pass  hash chain, totals and limits of the ledger" if book.ok else "FAIL  " + "; ".join(book.problems)
    )
    return Check(ok, tuple(lines))


def _of_records(release: Release) -> tuple[Guarantee, ...]:
    """What the release of an enforced unit is charged as in a ledger of records."""
    try:
        return (as_record(release.guarantees, "record", release.plan.schema),)
    except PrivacyError:
        return ()
