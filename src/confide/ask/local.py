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
    """Plan the protection of a table and state its guarantee, from public facts.

    Nothing is read and nothing is charged. With `formula` and `n` the plan has
    an `outlook`. It gives the expected standard errors of every method, of a
    raw sample with the same guarantee, and of a steward who sees the records.

    Parameters
    ----------
    schema : Schema
        Public description of the table.
    columns : sequence of str
        Numeric columns to protect.
    formula : str, optional
        Formula to be fitted.
    n : int, optional
        Number of records of the fit. Required with `formula`.
    loss : str or Loss, default "squared"
        Loss of the fit, as in `fit`.
    tau : float, optional
        Quantile of the loss "quantile".
    k : float, optional
        Corner of the loss "huber", in units of the response.
    practice : DataFrame, optional
        Test data for planning. By default drawn from the schema.
    **asked : Any
        Further settings of `protect`: `public`, `level`, `privacy` or `noise`,
        `levels`, `zeta`, `accept_verbatim_rows`, and `stream`, the name of a
        stream.

    Returns
    -------
    Planned
        The plan, with `lines`, `statement` and `outlook`.

    Raises
    ------
    PlanError
        A column or setting is invalid, or `n` is missing.
    PrivacyError
        The guarantee cannot be met.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5, on_missing=0), "spent": cf.Numeric(0, 100)}, dataset="survey")
    >>> for line in cf.local.plan(schema, ["income"], noise=0.5).lines():
    ...     print(line)
    income: noise SD 5e+04, 0.5 of its width
    one attribute replaced: laplace(2.8284271247461903); detection at 5% false alarms 70%
    one record replaced: laplace(2.8284271247461903); detection at 5% false alarms 70%
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
            raise PlanError("n= and practice= are for the standard errors of a formula", "write formula='y ~ x'")
        return made
    if n is None:
        raise PlanError("standard errors need a number of records", "write n=10_000")
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
    return (Route("a steward who sees the records", errors, firm=result.status == "valid", local=False),)


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
    """Write a table in which each row carries separate noise (local model).

    Protected columns are published with noise, public columns without. Columns
    in neither list are excluded. A row is the privacy unit, so a schema with
    another unit is refused. The ledger is charged before anything is drawn. A
    failure after that leaves the charge, and no file.

    Parameters
    ----------
    data : table or path
        Records, as `confide.read` takes them.
    schema : Schema, str or Path
        Public description of the table, or its file.
    path : str or Path
        File to write, .parquet or .csv.
    columns : sequence of str, default ()
        Numeric columns to protect.
    ledger : Ledger or None
        Ledger to charge, of the local model with substitution and `unit` equal
        to `level`. None releases without accounting. Required.
    public : sequence of str, optional
        Columns to publish without any protection.
    level : {"record", "attribute"}, default "record"
        Whether the guarantee is for all protected columns of a record or for
        one attribute.
    privacy : Guarantee, optional
        `ApproxDP`, or `PureDP` for one column, at `level`. Give either
        `privacy` or `noise`.
    noise : float, optional
        SD of the noise over the width of each column's bounds.
    levels : mapping of str to float, optional
        Columns of levels to protect, each with the epsilon of its randomized
        response.
    zeta : float, default 0.0
        Probability that a row's numbers are published without noise.
    accept_verbatim_rows : bool, default False
        Confirms that rows may be published without noise. Required where `zeta`
        is above 0.
    charge_delta : float, optional
        Point of the trade-off function that a Gaussian ledger charges.
    force : bool, default False
        Whether to replace an existing file.
    seed : int, optional
        Seed of simulated noise, which protects no one and marks the file.
    progress : callable, optional
        Called with the number of rows written.

    Returns
    -------
    Planned
        What was published, with its guarantee.

    Raises
    ------
    PlanError, PrivacyError, SchemaError, SourceError
        A setting, the guarantee, the schema or the data are invalid. Nothing
        was charged.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    LedgerBusy
        Another process holds the ledger. Nothing was charged.
    ReleaseError
        A failure after the charge, which stays. No file was written.

    Notes
    -----
    Guarantee: symmetric Laplace noise on the protected numbers and randomized
    response on the protected levels, drawn independently for each row. The
    exact trade-off function is that of `Protection.guarantee`, under
    substitution, in the local model.

    References
    ----------
    Lu, Chen, Qiu 2026, Theorem 3.1.

    Examples
    --------
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
            "simulated noise protects no one and is never charged",
            "write ledger=None with a seed, or leave the seed out",
        )
    made = planned(source.schema, columns, simulated=seed is not None, **asked)
    rows = RowSource(source)
    names = (*made.protection.protected, *made.protection.public)
    rows.check(names)
    about = _about(ledger, made, source.schema, source.dataset)
    told = arrow_schema(source.schema, made.protection)
    if source.reads(path):
        raise PlanError(f"{str(path)!r} is the file that is read", "give the file of protected rows another name")
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
    """Protect simulated rows behind readers of the same kinds, into memory; `PlanError` for any failure."""
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
    """A stream of protected records, with one output for each record ID.

    A record ID has the same output whenever it appears in the version. `open`
    makes a releaser, `extend` gives the protected rows of some records, and
    `new_version` opens the next version, which has new noise for every row and
    a new charge. The parameters of a version are fixed, because others are
    another stream.

    Parameters
    ----------
    stream : Stream
        The charged version of the stream.
    schema : Schema
        Public description of the records.
    charge_delta : float or None
        Point of the trade-off function that a Gaussian ledger charges.

    Notes
    -----
    Guarantee: that of `protect`, for the first content that came with an ID.
    Each later appearance is post-processing of its stored output.

    Examples
    --------
    >>> import tempfile
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="survey")
    >>> budget = cf.GDP(4.0, relation="substitute", trust="local")
    >>> ledger = cf.Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=budget)
    >>> stream = cf.local.Releaser.open(ledger, schema, columns=["x"], noise=0.5)
    >>> stream.extend({"id": [1, 2], "x": [0.2, 0.7]}, ids="id").shape
    (2, 1)
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
        """Continue a stream that was charged, or charge its first version.

        Parameters
        ----------
        ledger : Ledger
            Ledger to charge.
        schema : Schema
            Public description of the records.
        columns : sequence of str
            Numeric columns to protect.
        charge_delta : float, optional
            Point of the trade-off function that a Gaussian ledger charges.
        **asked : Any
            Further settings of `protect`, and `stream` and `version`.

        Returns
        -------
        Releaser
            The stream.

        Raises
        ------
        PlanError, PrivacyError
            A setting or the guarantee is invalid. Nothing was charged.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.

        Examples
        --------
        >>> import tempfile
        >>> import confide as cf
        >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="survey")
        >>> budget = cf.GDP(4.0, relation="substitute", trust="local")
        >>> ledger = cf.Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db", dataset="survey", budget=budget)
        >>> stream = cf.local.Releaser.open(ledger, schema, columns=["x"], noise=0.5)
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
        """The plan and guarantee of this version."""
        return self._stream.planned

    def extend(self, data: Any, *, ids: str) -> pd.DataFrame:
        """Give the protected rows of some records, in their order.

        An ID that was seen in this version keeps its output, whatever its
        record holds now.

        Parameters
        ----------
        data : table or path
            Records, as `confide.read` takes them.
        ids : str
            Column of record IDs, which is not a column of the schema.

        Returns
        -------
        DataFrame
            The protected rows.

        Raises
        ------
        SourceError
            The records cannot be read.
        LedgerBusy
            Another process holds the ledger.
        """
        import pyarrow as pa

        from confide.sources import read as opened
        from confide.sources.row_by_row import RowSource

        told, batches = self._stream.batches(RowSource(opened(data, self._schema, ids=ids)), ids)
        frame: pd.DataFrame = pa.Table.from_batches(batches, schema=told).to_pandas()
        frame.attrs[KEY] = self.planned.protection.to_json()
        return frame

    def new_version(self, *, allow_update: bool = False) -> Releaser:
        """Open the next version of the stream, which is charged now.

        Every row that it publishes carries new noise, so both versions together
        protect less.

        Parameters
        ----------
        allow_update : bool, default False
            Confirms the charge. Required.

        Returns
        -------
        Releaser
            The next version.

        Raises
        ------
        PlanError
            `allow_update` is not True.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.
        """
        if not allow_update:
            raise PlanError(
                "a new version publishes every record once more, and is charged for all of them",
                "write allow_update=True",
            )
        from confide.local.release import Stream

        ledger = self._stream.ledger
        made = self._stream.next_version()
        about = _about(ledger, made, self._schema, self._schema.dataset)
        return Releaser(Stream.open(made, ledger, about, self._charge_delta), self._schema, self._charge_delta)


def _about(ledger: Ledger | None, made: Planned, schema: Schema, dataset: str | None) -> dict[str, Any]:
    """What the charge of a table of protected rows is about; `PlanError` where the ledger counts something else."""
    from confide.engine.planning import check_ledger, pins

    check_ledger(ledger)
    about, told = pins(schema.to_dict(), dataset, made.level), made.statement
    if ledger is not None and (ledger.trust, ledger.relation, ledger.unit) != (
        told.trust,
        told.relation,
        about["unit"],
    ):
        raise PlanError(
            f"protected rows have a separate ledger, and this one counts unit={ledger.unit!r}, relation={ledger.relation!r}, "
            f"trust={ledger.trust!r}",
            f"open one: Ledger.create(path, dataset={ledger.dataset!r}, budget=cf.GDP(2.0, 1e-3, "
            f"relation='substitute', unit={made.level!r}, trust='local'))",
        )
    return about


def _drawn(draw: Callable[[], str]) -> str:
    """Run what draws; an error after the charge says so, and tells nothing about the records."""
    try:
        return draw()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        problem = str(error) if isinstance(error, (ConfideError, OSError)) else "the draw did not end"
    raise ReleaseError(f"no table was written, and the charge stays in the ledger: {problem}")
