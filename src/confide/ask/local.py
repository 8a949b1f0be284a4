"""`cf.local`: protect a table before anyone sees it, and fit on protected records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.errors import ConfideError, PlanError, PrivacyError, ReleaseError
from confide.guarantees import ApproxDP, Guarantee
from confide.local.estimates import ProtectedEstimates, ProtectedShares, fit, mean, shares
from confide.local.files import read
from confide.local.fits.losses import OwnLoss
from confide.local.noise_levels import KEY, Noised, ProtectedColumn, Protection

if TYPE_CHECKING:
    import pandas as pd

    from confide.ledger import Ledger
    from confide.local.fits.losses import Loss
    from confide.local.precision import Outlook, Route
    from confide.local.release import Planned, Stream
    from confide.schema import Schema

__all__ = [
    "Noised",
    "OwnLoss",
    "ProtectedColumn",
    "ProtectedEstimates",
    "ProtectedShares",
    "Protection",
    "Releaser",
    "fit",
    "mean",
    "plan",
    "protect",
    "read",
    "shares",
]


def plan(
    schema: Schema,
    columns: Sequence[str],
    *,
    formula: str | None = None,
    n: int | None = None,
    loss: str | Loss = "squared",
    tau: float | None = None,
    k: float | None = None,
    practice: pd.DataFrame | None = None,
    **asked: Any,
) -> Planned:
    """What a protected table will carry and promise, from public facts; nothing is read and nothing is charged.

    columns: to protect. asked: public, level, privacy or noise, levels, zeta, stream (`confide.local.release.planned`). formula and n: what
    will be fitted, on how many records; the plan then has an `outlook`, with the standard errors to expect of every method under `loss`,
    of a raw sample that promises as much, and of a keeper who sees the records (`confide.local.precision`). practice: records for planning.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5, on_missing=0), "spent": cf.Numeric(0, 100)}, dataset="survey")
    >>> for line in cf.local.plan(schema, ["income"], noise=0.5).lines():
    ...     print(line)
    income: noise sd 5e+04, 0.5 of its width
    one attribute replaced: laplace(2.8284271247461903); detection at 5 % false alarms 70%
    one record replaced: laplace(2.8284271247461903); detection at 5 % false alarms 70%
    no column is published as it is
    >>> made = cf.local.plan(
    ...     schema, ["income"], public=["spent"], privacy=cf.ApproxDP(1.0, 0.01), formula="spent ~ income", n=5_000)
    >>> list(made.outlook.frame.index)[:2]
    ['without protection', 'SL']
    """
    from confide.local.release import planned

    made = planned(schema, columns, **asked)
    if formula is None:
        if n is not None or practice is not None:
            raise PlanError("n= and practice= are for the standard errors of a formula; write formula='y ~ x'")
        return made
    if n is None:
        raise PlanError("standard errors need a number of records; write n=10_000")
    from confide.local.precision import outlook

    about = {key: asked[key] for key in ("privacy", "noise", "levels", "zeta") if key in asked}
    found = outlook(
        schema,
        columns,
        formula,
        n,
        public=made.protection.public,
        level=made.level,
        loss=loss,
        tau=tau,
        k=k,
        practice=practice,
        **about,
    )
    central = _central(schema, made, found, formula, loss, practice)
    return replace(made, outlook=replace(found, ways=(*found.ways, *central)))


# What a keeper would run for a loss; a quantile line and a separating line have no central method here.
_CENTRAL = {"squared": "LeastSquares", "logistic": "Logistic", "poisson": "Poisson"}
# Beyond this many records simulating a keeper's release takes longer than a plan may.
_MOST = 200_000


def _central(
    schema: Schema, made: Planned, found: Outlook, formula: str, loss: str | Loss, practice: pd.DataFrame | None
) -> tuple[Route, ...]:
    """The standard errors of the central method at the same guarantee for a record, by one simulated release of planning records."""
    from confide.local.fits.losses import loss_named
    from confide.local.precision import Route, planning_records

    if found.loss not in _CENTRAL or made.level != "record" or found.n > _MOST:
        return ()
    if not isinstance(found.privacy, ApproxDP):  # the central methods of these losses have no pure noise
        return ()
    from confide import regression
    from confide.ask.one_call import answered
    from confide.noise import SimulatedNoise
    from confide.schema import Schema
    from confide.sources import read as opened

    chosen = loss_named(loss)
    records = planning_records(schema, formula, chosen, made.protection, practice, found.n)
    if practice is not None:
        records = records.sample(found.n, replace=True, random_state=1).reset_index(drop=True)
    method = getattr(regression, _CENTRAL[found.loss])(formula)
    privacy = replace(found.privacy, relation="substitute", trust="central")
    used = Schema({name: schema[name] for name in records.columns})
    result = answered(method, opened(records, used), privacy, None, SimulatedNoise(1), None)
    errors = {str(name): float(error) for name, error in result.bse.items()}
    return (Route("a keeper who sees the records", errors, firm=result.status == "valid", local=False),)


def protect(
    data: Any,
    schema: Schema | str | Path,
    path: str | Path,
    *,
    columns: Sequence[str] = (),
    ledger: Ledger | None,
    public: Sequence[str] | None = None,
    level: str = "record",
    privacy: Guarantee | None = None,
    noise: float | None = None,
    levels: Mapping[str, float] | None = None,
    zeta: float = 0.0,
    accept_verbatim_rows: bool = False,
    charge_delta: float | None = None,
    force: bool = False,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Planned:
    """Write a table in which each row carries noise of its own: the protected columns with it, the public ones as they are.

    A row is what is protected, so that a schema of another unit is refused. data: whatever `cf.read` takes; path: a .parquet or .csv file.
    columns: numbers to protect; levels: columns of levels to protect, each with the epsilon of its randomised response; public: to publish
    without any protection; columns in none of them are left out. privacy: ApproxDP (PureDP for one column) at `level`, "record" or
    "attribute"; or noise: standard deviation over width. ledger: one of its own, under trust local and relation substitute, with `unit` =
    level; None charges nobody. charge_delta: where a Gaussian ledger charges the curve. zeta: the probability that a row's numbers go
    without noise. seed: simulation only, marks the file; progress: called with the rows written.

    The ledger is charged before anything is drawn. Whatever fails afterwards leaves the charge, and no file.
    Raises `PlanError`, `PrivacyError`, `SchemaError`, `SourceError`, `BudgetExceeded`, `LedgerBusy`; `ReleaseError` after the charge.

    >>> import tempfile
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5), "y": cf.Numeric(-1, 3)})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(
    ...     schema.sample(500, seed=1), schema, place, columns=["x"], public=["y"], noise=0.1, ledger=None)
    >>> cf.local.fit(place, "y ~ x").status
    'valid'
    """
    from confide.sources import read as opened

    return protect_source(
        opened(data, schema),
        path,
        columns=columns,
        ledger=ledger,
        public=public,
        level=level,
        privacy=privacy,
        noise=noise,
        levels=levels,
        zeta=zeta,
        accept_verbatim_rows=accept_verbatim_rows,
        charge_delta=charge_delta,
        force=force,
        seed=seed,
        progress=progress,
    )


def protect_source(
    source: Any,
    path: str | Path,
    *,
    columns: Sequence[str],
    ledger: Ledger | None,
    charge_delta: float | None = None,
    force: bool = False,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
    **asked: Any,
) -> Planned:
    """`protect` for records that `cf.read` opened."""
    from confide.local.files import Place
    from confide.local.release import arrow_schema, charged, planned, protected_batches, receipt
    from confide.noise import SecureNoise, SimulatedNoise
    from confide.sources.row_by_row import RowSource

    if ledger is not None and seed is not None:
        raise PrivacyError(
            "simulated noise protects nobody and is never charged; write ledger=None with a seed, or leave the seed out"
        )
    made = planned(source.schema, columns, simulated=seed is not None, **asked)
    rows = RowSource(source)
    names = (*made.protection.protected, *made.protection.public)
    rows.check(names)
    about = _about(ledger, made, source.schema, source.dataset)
    told = arrow_schema(source.schema, made.protection)
    if source.reads(path):
        raise PlanError(f"{str(path)!r} is the file that is read; give the protected table another name")
    with Place(Path(path), force) as place:
        if ledger is not None:
            _rehearse(source, made, told, place)
            place.set_aside(source.count(), len(names))
        charge = None if ledger is None else charged(made, ledger, about, charge_delta)
        sampler = SecureNoise() if seed is None else SimulatedNoise(seed)
        digest = _drawn(lambda: place.write(protected_batches(rows, made, sampler, progress), told))
    if ledger is not None:
        receipt(ledger, charge, digest)
    return made


def _rehearse(source: Any, made: Planned, told: Any, place: Any) -> None:
    """Protect simulated rows behind readers of the same kinds, into memory; `PlanError` for whatever fails."""
    import io

    from confide.local.files import write_table
    from confide.local.release import protected_batches
    from confide.noise import SimulatedNoise
    from confide.sources.coding import of_simulated
    from confide.sources.row_by_row import RowSource
    from confide.sources.simulated import simulated_source

    try:
        with of_simulated():
            rows = RowSource(simulated_source(source))
            suffix, file = place.path.suffix.lower(), io.BytesIO()
            write_table(protected_batches(rows, made, SimulatedNoise(1)), told, suffix, file)
    except ConfideError:
        raise
    except Exception as error:
        raise PlanError(
            f"the table cannot be protected: on simulated rows of the schema it raises {type(error).__name__}: {error}; nothing was "
            "charged, and no record was seen"
        ) from error


class Releaser:
    """A stream of protected records that come back: each id has one output for each version, given again whenever it comes.

    Made by `open`; `extend` gives the protected rows of some records, `new_version` opens the next version, whose noise is new for every
    row and which is charged for all. Parameters are those of the version for good: others are another stream.
    """

    def __init__(self, stream: Stream, schema: Schema, charge_delta: float | None) -> None:
        self._stream, self._schema, self._charge_delta = stream, schema, charge_delta

    @classmethod
    def open(
        cls,
        ledger: Ledger,
        schema: Schema,
        *,
        columns: Sequence[str],
        charge_delta: float | None = None,
        **asked: Any,
    ) -> Releaser:
        """Go on with a stream that was charged, or charge its first version. asked: as `protect`, and stream=, version=.

        >>> import tempfile
        >>> import confide as cf
        >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="survey")
        >>> budget = cf.GDP(4.0, relation="substitute", trust="local")
        >>> book = cf.Ledger.create(Path(tempfile.mkdtemp()) / "local.db", dataset="survey", budget=budget)
        >>> stream = cf.local.Releaser.open(book, schema, columns=["x"], noise=0.5)
        >>> first = stream.extend({"id": [1, 2], "x": [0.2, 0.7]}, ids="id")
        >>> again = stream.extend({"id": [2, 3], "x": [0.9, 0.1]}, ids="id")
        >>> bool(again["x"][0] == first["x"][1])
        True
        """
        from confide.local.release import Stream, planned

        made = planned(schema, columns, **asked)
        about = _about(ledger, made, schema, schema.dataset)
        return cls(Stream.open(made, ledger, about, charge_delta), schema, charge_delta)

    @property
    def planned(self) -> Planned:
        """What this version promises."""
        return self._stream.planned

    def extend(self, data: Any, *, ids: str) -> pd.DataFrame:
        """The protected rows of `data`, in its order. ids: the column of record ids, which is no column of the schema.

        An id that was seen in this version has the output of then, whatever its record says now.
        Raises `SourceError`, `LedgerBusy`.
        """
        import pyarrow as pa

        from confide.sources import read as opened
        from confide.sources.row_by_row import RowSource

        told, batches = self._stream.batches(RowSource(opened(data, self._schema, ids=ids)), ids)
        frame: pd.DataFrame = pa.Table.from_batches(batches, schema=told).to_pandas()
        frame.attrs[KEY] = self.planned.protection.to_json()
        return frame

    def new_version(self, *, allow_update: bool = False) -> Releaser:
        """The next version of the stream, charged now: every row that it publishes carries new noise, beside that of this version."""
        if not allow_update:
            raise PlanError(
                "a new version publishes every record once more, and is charged for all of them; write allow_update=True"
            )
        from confide.local.release import Stream

        ledger = self._stream.ledger
        made = self._stream.next_version()
        about = _about(ledger, made, self._schema, self._schema.dataset)
        return Releaser(Stream.open(made, ledger, about, self._charge_delta), self._schema, self._charge_delta)


def _about(ledger: Ledger | None, made: Planned, schema: Schema, dataset: str | None) -> dict[str, Any]:
    """What the charge of a protected table is about; `PlanError` where the ledger counts something else."""
    from confide.engine.planning import check_ledger, pins

    check_ledger(ledger)
    about, told = pins(schema.to_dict(), dataset, made.level), made.statement
    if ledger is not None and (ledger.trust, ledger.relation, ledger.unit) != (
        told.trust,
        told.relation,
        about["unit"],
    ):
        raise PlanError(
            f"a protected table has a ledger of its own, and this one counts unit={ledger.unit!r}, relation={ledger.relation!r}, "
            f"trust={ledger.trust!r}; open one: Ledger.create(path, dataset={ledger.dataset!r}, budget=cf.GDP(2.0, 1e-3, "
            f"relation='substitute', unit={made.level!r}, trust='local'))"
        )
    return about


def _drawn(draw: Callable[[], str]) -> str:
    """What is raised after the charge says so, and nothing about the records."""
    try:
        return draw()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        problem = str(error) if isinstance(error, (ConfideError, OSError)) else "the draw did not end"
    raise ReleaseError(f"no table was written, and the charge stays in the ledger: {problem}")
