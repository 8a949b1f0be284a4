"""`cf.intervals`: intervals for one parameter, in one call each.

A lower-case name is the call (plan, release, infer), a class the method behind it. The neighboring relation decides which release answers.
Under substitution (the number of records is public) a call gives a noise-aware posterior, or exact confidence limits, of the same release.
Under add-remove (the number of records is secret, which is the default of ledgers) `proportion`, `mean` and `difference` answer from the
releases of `cf.tables`. The other calls then say which call works. The estimand is the same under both relations. If nothing names a
relation, it is substitution, but add-remove where records may be excluded for a missing value and a table answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from confide import _docs
from confide._helpers import later, near_match, progress_bar
from confide.ask.one_call import LEFT_OUT, answered, call_signature, checked_call, checked_ledger
from confide.core import Noise, Release, Source
from confide.core.allowance import checked_privacy
from confide.core.units.contributions import shown
from confide.errors import PlanError
from confide.guarantees import Guarantee, PureDP
from confide.ledger import Ledger
from confide.methods.intervals.block_posterior import BlockPosterior, Sampler
from confide.methods.intervals.difference import Difference
from confide.methods.intervals.mean_and_variance import MeanAndVariance
from confide.methods.intervals.method import KINDS
from confide.methods.intervals.proportion import Proportion, asked_levels, level_code, level_name
from confide.methods.intervals.results import ConfidenceIntervals
from confide.methods.intervals.slope import Slope
from confide.methods.tables.comparing.comparisons import differences_alone
from confide.methods.tables.counts import Shares
from confide.methods.tables.means import Means
from confide.results.base import BaseResult
from confide.schema import Categorical, Integer, Schema
from confide.schema.formulas.names import column_named, sides

if TYPE_CHECKING:
    from confide import engine
else:
    engine = later("confide.engine")

__all__ = [
    "BlockPosterior",
    "Difference",
    "MeanAndVariance",
    "Proportion",
    "Slope",
    "difference",
    "interval_method",
    "mean",
    "proportion",
    "slope",
    "variance",
]

#: What each call takes besides data, column (a formula for slope and difference), privacy, ledger, noise, n, kind and where. A call with a
#: method of its own has the method's name.
VERBS: Mapping[str, tuple[str, ...]] = {
    Proportion.name: ("level", "prior"),
    "mean": ("of", "prior"),
    "variance": ("of", "prior"),
    Slope.name: (),
    Difference.name: ("level", "prior"),
}
_POPULATION = "population"
#: Verb -> what to write under add-remove, where it does not answer.
_INSTEAD = {
    "variance": 'cf.tables.means("{} ~ 1", data, ..., inference="population").sd()',
    Slope.name: 'cf.linear_regression("{}", data, ...)',
}


@dataclass(frozen=True)
class IntervalAnswer:
    """Method that answers a call, and how its release is read."""

    method: Any
    read: Callable[[Release], BaseResult]


def interval_method(
    verb: str,
    column: str,
    schema: Schema,
    privacy: Guarantee,
    *,
    relation: str | None = None,
    kind: str | None = None,
    **settings: Any,
) -> IntervalAnswer:
    """Name the method that answers a call of `cf.intervals`, and its reading.

    Parameters
    ----------
    verb : {"proportion", "mean", "variance", "slope", "difference"}
        Name of the call.
    column : str
        Column, or formula of slope and difference.
    schema : Schema
        Public description of the data.
    privacy : Guarantee
        Cost of the release. Its neighboring relation comes first.
    relation : {"add-remove", "substitute"}, optional
        Neighboring relation of the ledger, if there is one.
    kind : {"credible", "confidence", "poisson"}, optional
        Kind of interval. By default the first one that the method has.
    **settings : optional
        Further arguments of the call, such as ``level="yes"``.

    Returns
    -------
    IntervalAnswer
        ``method`` to release, and ``read``, a function from the release to the
        result.

    Raises
    ------
    PlanError
        The call or the kind does not exist. The message has a call that works.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    >>> cf.intervals.interval_method(
    ...     "proportion", "smoker", schema, cf.PureDP(0.5)).method.name
    'proportion'
    """
    if verb not in VERBS:
        raise PlanError(f"there is no interval {verb!r}{near_match(verb, tuple(VERBS))}; there are: {', '.join(VERBS)}")
    kinds = MeanAndVariance.kinds if verb == "mean" else KINDS
    if kind is not None and kind not in kinds:
        allowed = " or ".join(f'"{one}"' for one in kinds)
        raise PlanError(f"the kind of {verb} must be {allowed}, got {kind!r}", "leave it out for the family's own")
    open_ = _open_relation(verb, column, schema, privacy, kind, settings)
    where = privacy.relation or relation or open_
    if where == "substitute" and not (verb == Difference.name and _needs_tables(column, schema)):
        return _noise_aware(verb, column, schema, kind, settings)
    return _of_tables(verb, column, schema, privacy, kind, settings)


def _open_relation(
    verb: str, column: str, schema: Schema, privacy: Guarantee, kind: str | None, settings: dict[str, Any]
) -> str:
    """The relation where nothing names one: substitution, but add-remove where records may be excluded and a table answers the same."""
    apart = verb in _INSTEAD or isinstance(privacy, PureDP) or kind not in (None, "confidence")
    if apart or settings.get("prior") is not None:
        return "substitute"
    names = _sides(column) if verb == Difference.name else [column]
    columns = [own for name in names if (own := schema.columns.get(column_named(name, schema.names))) is not None]
    return "add-remove" if any(own.on_missing == "drop" for own in columns) else "substitute"


def _needs_tables(formula: str, schema: Schema) -> bool:
    """Whether a difference is of means or of several groups: one release of four counts is of two shares."""
    columns = [schema[column_named(name, schema.names)] for name in _sides(formula)]
    return any(own.steps != 2 or not isinstance(own, (Categorical, Integer)) for own in columns)


def _noise_aware(verb: str, column: str, schema: Schema, kind: str | None, settings: dict[str, Any]) -> IntervalAnswer:
    made: Any
    given = {**settings, **({} if kind is None else {"kind": kind})}
    if verb == Difference.name:
        _check_second(schema, column, given.pop("level", None))
    match verb:
        case Proportion.name:
            made = Proportion(column, **given)
        case "mean" | "variance":
            made = MeanAndVariance(column, show=(verb,), **given)
        case Slope.name:
            made = Slope(column, **given)
        case _:
            made = Difference(column, **given)
    return IntervalAnswer(made, made.infer)


def _check_second(schema: Schema, formula: str, level: Any) -> None:
    """`PlanError` for a level that a difference of two shares is not of."""
    outcome = column_named(_sides(formula)[0], schema.names)
    if level is not None and level_code(schema, outcome, level) != 1:
        raise PlanError(
            f"a difference of shares is of the outcome's second level, {level_name(schema, outcome, 1)}, got level={level!r}",
            "leave level out: the difference of the other level is the same with the other sign",
        )


def _of_tables(
    verb: str, column: str, schema: Schema, privacy: Guarantee, kind: str | None, settings: dict[str, Any]
) -> IntervalAnswer:
    """A table releases the number of records with the rest where it is secret; it answers differences that have no posterior either way."""
    if verb in _INSTEAD:
        raise PlanError(
            f"{verb} is answered where the number of records is public; under add-remove write {_INSTEAD[verb].format(column)}, or ask "
            f"with relation='substitute' in the guarantee and the ledger"
        )
    if kind not in (None, "confidence"):
        raise PlanError(
            "a posterior of a difference is of two columns of two levels, with a public number of records; leave kind out (confidence)"
            if verb == Difference.name
            else f"a posterior of {verb} rests on a public number of records; under add-remove leave kind out (confidence), or ask with "
            "relation='substitute' in the guarantee and the ledger"
        )
    if isinstance(privacy, PureDP):
        alone = f"{verb} has a pure guarantee"
        if verb == Difference.name:
            alone = "the difference of two columns of two levels each has a pure guarantee, and no other one has"
        raise PlanError(
            f"{verb} of {column!r} is answered by a table with Gaussian noise here, got {privacy}",
            "write cf.GDP(...) or cf.ApproxDP(...), "
            f"on a ledger with this kind of budget. With relation='substitute' in the guarantee and the ledger {alone}",
        )
    level = settings.pop("level", None)
    where = settings.pop("where", None)
    if settings:
        raise PlanError(f"under add-remove {verb} takes no {', '.join(sorted(settings))}", "leave it out")
    made: Any
    if verb == Proportion.name:
        names = [level_name(schema, column, code) for code in asked_levels(schema, column, level)]
        target = f"share of records with {names[0]}" if len(names) == 1 else f"shares of the levels of {column}"
        made = Shares(column, inference=_POPULATION, where=where)
        return IntervalAnswer(made, lambda release: _rows(release, made, names, column, target=target, shares=True))
    if verb == "mean":
        made = Means(f"{column} ~ 1", inference=_POPULATION, where=where)
        return IntervalAnswer(
            made,
            lambda release: _rows(release, made, [column], column, target=f"mean of {column}, clipped to its bounds"),
        )
    outcome, group = _sides(column)
    named = column_named(outcome, schema.names)
    if isinstance(schema[named], Categorical):
        place = level_code(schema, named, level)
        what = level_name(schema, named, place)
        made = Shares(f"{outcome} * {group}", within=group, inference=_POPULATION, where=where)
        return IntervalAnswer(made, lambda release: _difference(release, made, group, outcome, what, place))
    if level is not None:
        raise PlanError(
            f"a difference of means has no level, and {outcome} is not a column of labels, got level={level!r}",
            "leave it out",
        )
    made = Means(f"{outcome} ~ {group}", inference=_POPULATION, where=where)
    return IntervalAnswer(made, lambda release: _difference(release, made, group, outcome, None))


def _sides(formula: str) -> list[str]:
    parts = sides(formula)
    if len(parts) != 2 or not all(parts):
        raise PlanError(
            f"a difference takes outcome ~ group, got {formula!r}", 'write "smoker ~ sex" or "income ~ sex"'
        )
    return parts


def _rows(release: Release, method: Any, names: Sequence[str], column: str, **said: Any) -> ConfidenceIntervals:
    """Rows of a table. said: fields of the result."""
    table = method.infer(release)
    places = [list(table.params.index).index(name) for name in names]

    def limits(alpha: float) -> tuple[list[float], list[float]]:
        own = table.conf_int(alpha).to_numpy(dtype=np.float64)[places]
        return own[:, 0].tolist(), own[:, 1].tolist()

    low, high = (np.array(end) for end in limits(0.05))
    alone = (high - low) * np.sqrt(1 - table.privacy_share.to_numpy(dtype=np.float64)[places])
    estimates = table.params.to_numpy(dtype=np.float64)[places].tolist()
    return _read(release, table, names, estimates, limits, column, effects=False, alone=alone, **said)


def _difference(
    release: Release, method: Any, group: str, outcome: str, what: str | None, place: int = 0
) -> ConfidenceIntervals:
    """Each level of the group minus the first one (MOVER). what: the level of the outcome whose shares these are, at this place."""
    table = method.infer(release)
    # of each level of the group the outcome's levels follow one another
    every = 1 if what is None else table.layout.crossing.sizes[table.layout.axes(outcome)[0]]

    def rows(alpha: float) -> Any:
        return table.diff(group, alpha=alpha).iloc[place::every]

    first = rows(0.05)
    names = [name.replace(f"({what}, ", "(") for name in first.index]

    def limits(alpha: float) -> tuple[list[float], list[float]]:
        own = rows(alpha)
        return own["ci_low"].tolist(), own["ci_high"].tolist()

    alone = differences_alone(table, group, None, 0)[place::every]
    of = f"means of {outcome}, clipped to its bounds" if what is None else f"shares of records with {what}"
    target = f"differences of {of}: each level of {group} less the first"
    return _read(
        release,
        table,
        names,
        first["estimate"].tolist(),
        limits,
        outcome,
        target=target,
        shares=what is not None,
        alone=alone,
    )


def _read(
    release: Release,
    table: Any,
    names: Sequence[str],
    estimates: Sequence[float],
    limits: Any,
    response: str,
    **said: Any,
) -> ConfidenceIntervals:
    low, high = (np.array(end) for end in limits(0.05))
    return ConfidenceIntervals.of(
        release,
        response=response,
        names=tuple(names),
        estimates=np.clip(np.array(estimates), low, high),
        limits=limits,
        bounds=((-np.inf, np.inf),) * len(names),
        status=table.status,
        reason=table.reason,
        flags=table.flags,
        intervals_for=table.intervals_for,
        **said,
    )


_OUTCOME = _docs.outcome(
    "Posterior, ConfidenceIntervals or table\n    Estimates with intervals, to print, draw and write. The release is not kept:\n"
    "    use `confide.release` when you need the file to publish or to verify.",
    "BudgetExceeded",
    "PlanError",
)


def _one_call(said: Callable[[], Any]) -> Callable[..., Any]:
    """Make the call of a verb, which plans, releases and infers, of a function that says what it answers: its name and docstring."""
    verb = said.__name__
    known = ("kind", *VERBS[verb], "where")

    def call(
        data: Source,
        column: str,
        *,
        privacy: Guarantee | None = None,
        ledger: Ledger | None = LEFT_OUT,
        noise: Noise | None = None,
        n: int | None = None,
        **settings: Any,
    ) -> Any:
        example = 'data, "x", privacy=cf.GDP(1.0), ledger=None'
        requested = checked_call(f"cf.intervals.{verb}", known, privacy, ledger, settings, example=example)
        if not hasattr(data, "schema"):
            raise PlanError(
                f"data must come from cf.read, got {type(data).__name__}",
                f"write cf.intervals.{verb}(cf.read(frame, schema), {column!r}, ...)",
            )
        answer = interval_method(
            verb,
            column,
            data.schema,
            requested,
            relation=None if ledger is None else ledger.relation,
            **{name: value for name, value in settings.items() if value is not None},
        )
        release = engine.release(answer.method, data, requested, ledger=ledger, noise=noise, n=n)
        return shown(answer.read(release), release)

    update_wrapper(call, said)
    listed = call_signature(("data", "column"), dict.fromkeys(known), Any)
    call.__signature__ = listed  # type: ignore[attr-defined]
    call.__doc__ = _docs.completed(said.__doc__, listed.parameters, outcome=_OUTCOME)
    return call


@_one_call
def proportion() -> Any:
    """Estimate the share of records with one level of a column.

    Under substitution the answer is a posterior or exact confidence limits. Under
    add-remove it is the confidence interval of `confide.tables.shares`.

    Parameters
    ----------
    column : str
        Categorical column, or integer column with few values.
    kind : {"credible", "confidence"}, optional
        Kind of interval. By default "credible" under substitution.
    level : str or float, optional
        Level whose share is wanted. By default the second of two levels; of more
        levels, all.
    prior : str, optional
        Prior of one share, ``"beta(a, b)"``, or of all, ``"dirichlet(a)"``.

    See Also
    --------
    confide.tables.shares : Shares by group.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> result = cf.intervals.proportion(
    ...     data, "smoker", privacy=cf.PureDP(0.5), ledger=None,
    ...     noise=cf.noise.SimulatedNoise(1))
    >>> result.conf_int().round(2).to_numpy().tolist()
    [[0.47, 0.56]]
    """


@_one_call
def mean() -> Any:
    """Estimate the mean of a numeric column, whatever its distribution.

    Under substitution the answer is a posterior or a confidence interval. Under
    add-remove it is the confidence interval of `confide.tables.means`.

    Parameters
    ----------
    column : str
        Numeric column.
    kind : {"credible", "confidence", "poisson"}, optional
        Kind of interval. "poisson" is the rate of an integer column from 0, for
        counts whose variance is their mean. By default "credible" under
        substitution.
    of : {"column", "normal"}, optional
        Estimand: the mean of the column clipped to its bounds (the default), or
        of the normal distribution before clipping.
    prior : str, optional
        Prior: "uniform", "reference" or "jeffreys"; of a rate also
        ``"gamma(shape, rate)"``.

    See Also
    --------
    confide.tables.means : Means by group.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"visits": cf.Integer(0, 25, on_missing=0)})
    >>> visits = np.random.default_rng(1).negative_binomial(1, 0.2, 1000)
    >>> data = cf.read({"visits": visits}, schema)
    >>> asked = {"privacy": cf.GDP(1.0), "ledger": None,
    ...          "noise": cf.noise.SimulatedNoise(1)}
    >>> result = cf.intervals.mean(data, "visits", **asked)
    >>> result.conf_int().round(1).to_numpy().tolist()
    [[3.7, 4.3]]
    >>> cf.intervals.mean(data, "visits", kind="poisson", **asked).names
    ('rate of visits',)
    """


@_one_call
def variance() -> Any:
    """Estimate the variance of a numeric column, whatever its distribution.

    Needs substitution. Under add-remove the message names the call that works.

    Parameters
    ----------
    column : str
        Numeric column.
    kind : {"credible", "confidence"}, optional
        Kind of interval. By default "credible".
    of : {"column", "normal"}, optional
        Estimand: the variance of the column clipped to its bounds (the default),
        or of the normal distribution before clipping.
    prior : str, optional
        Prior: "uniform", "reference" or "jeffreys".

    See Also
    --------
    mean : The mean of the same column.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0)})
    >>> x = np.random.default_rng(1).normal(size=1000)
    >>> data = cf.read({"x": x}, schema)
    >>> result = cf.intervals.variance(
    ...     data, "x", privacy=cf.GDP(1.0), ledger=None,
    ...     noise=cf.noise.SimulatedNoise(1))
    >>> list(result.names)
    ['variance of x']
    """


@_one_call
def slope() -> Any:
    """Estimate the coefficients of a normal linear model, by a posterior.

    Needs substitution. The errors are assumed to be normal with equal variance.
    `confide.linear_regression` needs neither.

    Parameters
    ----------
    column : str
        Formula, such as ``"y ~ x1 + x2"``.
    kind : {"credible"}, optional
        Kind of interval.

    See Also
    --------
    confide.linear_regression : Any model, under either relation.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0),
    ...                     "y": cf.Numeric(-2, 2, on_missing=0.0)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> result = cf.intervals.slope(
    ...     data, "y ~ x", privacy=cf.GDP(1.0), ledger=None,
    ...     noise=cf.noise.SimulatedNoise(1))
    >>> list(result.names)
    ['Intercept', 'x']
    """


@_one_call
def difference() -> Any:
    """Estimate a share or a mean in one group minus that in the first group.

    Under substitution the difference of two shares has a posterior or confidence
    limits. Means, several groups, and all of them under add-remove, have MOVER
    intervals from the tables of shares or means.

    Parameters
    ----------
    column : str
        Formula, such as ``"smoker ~ sex"`` or ``"income ~ sex"``.
    kind : {"credible", "confidence"}, optional
        Kind of interval. By default "credible" where there is a posterior.
    level : str, optional
        Level of the outcome whose share is wanted. By default the second of two.
    prior : str, optional
        Prior of the four cells, ``"dirichlet(a)"``.

    See Also
    --------
    confide.tests.ttest_ind : A test of the difference of two means.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"]),
    ...                     "sex": cf.Categorical(["f", "m"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> cf.intervals.difference(
    ...     data, "smoker ~ sex", privacy=cf.GDP(1.0, relation="add-remove"),
    ...     ledger=None, noise=cf.noise.SimulatedNoise(1)).status
    'valid'
    """


def block_posterior(
    sampler: Sampler,
    data: Source,
    *,
    parameters: Mapping[str, tuple[float, float]],
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    blocks: int = 50,
    columns: tuple[str, ...] | None = None,
    seconds: float = 60.0,
    memory: int = 1_024,
    jobs: int | None = None,
    allow_uninformative: bool = False,
    progress: bool = True,
    n: int | None = None,
    noise: Noise | None = None,
) -> ConfidenceIntervals:
    """Estimate what any sampler estimates, with intervals, from blocks of records.

    A sampler may be a model of PyMC or NumPyro, emcee, a bootstrap, or a function
    of yours. It runs on disjoint blocks of the records, and noisy medians of what
    the blocks say are released.

    Parameters
    ----------
    sampler : callable
        ``sampler(table, generator)`` returns draws. The table is an array of
        (rows, columns) in the columns' units, a level as its position. It runs in
        a separate process for each block.
    data : Source
        Records behind a schema, from `confide.read`.
    parameters : mapping of str to (float, float)
        Name of each parameter with public bounds.
    privacy : PureDP
        Cost of the release, such as ``PureDP(1.0)``. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    blocks : int, default 50
        Number of blocks, at least 10.
    columns : tuple of str, optional
        Columns of the table, in this order. By default all of the schema.
    seconds : float, default 60.0
        Time for all blocks together. All of it is taken, because the time must
        reveal nothing.
    memory : int, default 1024
        Memory of each block, in MB.
    jobs : int, optional
        Blocks that run side by side. By default the number of processors.
    allow_uninformative : bool, default False
        Whether to plan although blocks times epsilon over the number of
        parameters is below 100.
    progress : bool, default True
        Whether to print how many blocks are done.
    n : int, optional
        Public number of records. Needed under substitution only.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Returns
    -------
    ConfidenceIntervals
        One interval for each parameter.

    Raises
    ------
    PrivacyError
        `sampler` is an array of draws, which no noise makes differentially private.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    PlanError
        A parameter is invalid, or the sampler fails on test data. Nothing was
        charged.

    See Also
    --------
    BlockPosterior : The method behind this call.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> def bootstrap(table, generator):
    ...     rows = generator.integers(0, len(table), (50, len(table)))
    ...     return table[rows, 0].mean(axis=1)
    >>> result = cf.intervals.block_posterior(
    ...     bootstrap, data, parameters={"mean": (-4, 4)},
    ...     privacy=cf.PureDP(4.0), ledger=None, blocks=30, seconds=4,
    ...     noise=cf.noise.SimulatedNoise(1), n=5_000)
    >>> result.names, result.status
    (('mean',), 'valid')
    """
    beside = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    method = BlockPosterior(
        sampler, parameters, blocks, columns, seconds, memory, beside if jobs is None else jobs, allow_uninformative
    )
    checked_privacy(privacy)
    checked_ledger(ledger)
    with progress_bar("blocks") if progress else nullcontext(None) as told:
        tell = None if told is None else lambda done, of: told(done, of, f"{seconds * (1 - done / of):.0f} s left")
        found: ConfidenceIntervals = answered(replace(method, progress=tell), data, privacy, ledger, noise, n)
    return found
