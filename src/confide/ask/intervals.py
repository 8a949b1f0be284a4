"""`cf.intervals`: one parameter at a time, in one call each.

A lower-case name is the call (plan, release, infer), a class the method behind it. Which release answers follows from the relation. Under
substitute (the number of records is public) it is a noise-aware posterior, or exact confidence limits, of the same release. Under
add-remove (the number of records is secret; what ledgers have unless they say otherwise) `proportion`, `mean` and `difference`
answer from the releases of `cf.tables`; the others say which call works. What a verb estimates is the same under both. An open relation is
substitute, but add-remove where records may be left out for a missing value and a table answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

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
    """Which method answers, and how its release is read."""

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
    """The method that answers a verb, and its reading. relation: the ledger's, where there is one; the guarantee's own comes first.

    Raises `PlanError` for a verb or kind that is not there, with the call that works.
    """
    if verb not in VERBS:
        raise PlanError(f"there is no interval {verb!r}{near_match(verb, tuple(VERBS))}; there are: {', '.join(VERBS)}")
    kinds = MeanAndVariance.kinds if verb == "mean" else KINDS
    if kind is not None and kind not in kinds:
        allowed = " or ".join(f'"{one}"' for one in kinds)
        raise PlanError(f"the kind of {verb} must be {allowed}, got {kind!r}; leave it out for the family's own")
    open_ = _open_relation(verb, column, schema, privacy, kind, settings)
    where = privacy.relation or relation or open_
    if where == "substitute" and not (verb == Difference.name and _needs_tables(column, schema)):
        return _noise_aware(verb, column, schema, kind, settings)
    return _of_tables(verb, column, schema, privacy, kind, settings)


def _open_relation(
    verb: str, column: str, schema: Schema, privacy: Guarantee, kind: str | None, settings: dict[str, Any]
) -> str:
    """The relation where nobody named one: substitute, but add-remove where records may be left out and a table answers the same."""
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
            f"a difference of shares is of the outcome's second level, {level_name(schema, outcome, 1)}, got level={level!r}; leave level "
            "out: the difference of the other level is the same with the other sign"
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
            f"{verb} of {column!r} is answered by a table with Gaussian noise here, got {privacy}; write cf.GDP(...) or cf.ApproxDP(...), "
            f"on a ledger with such a budget; with relation='substitute' in the guarantee and the ledger {alone}"
        )
    level = settings.pop("level", None)
    where = settings.pop("where", None)
    if settings:
        raise PlanError(f"under add-remove {verb} takes no {', '.join(sorted(settings))}; leave it out")
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
            lambda release: _rows(release, made, [column], column, target=f"mean of {column}, moved into its bounds"),
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
            f"a difference of means has no level, and {outcome} is no column of labels, got level={level!r}; leave it out"
        )
    made = Means(f"{outcome} ~ {group}", inference=_POPULATION, where=where)
    return IntervalAnswer(made, lambda release: _difference(release, made, group, outcome, None))


def _sides(formula: str) -> list[str]:
    parts = sides(formula)
    if len(parts) != 2 or not all(parts):
        raise PlanError(f'a difference takes outcome ~ group, got {formula!r}; write "smoker ~ sex" or "income ~ sex"')
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
    """Each level of the group less the first one (MOVER). what: the level of the outcome whose shares they are, the one at this place."""
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
    of = f"means of {outcome}, moved into its bounds" if what is None else f"shares of records with {what}"
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
                f"data must come from cf.read, got {type(data).__name__}; write "
                f"cf.intervals.{verb}(cf.read(frame, schema), {column!r}, ...)"
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
    call.__signature__ = call_signature(("data", "column"), dict.fromkeys(known), Any)  # type: ignore[attr-defined]
    return call


@_one_call
def proportion() -> Any:
    """The share of records with a level of a column; level: left out, the second one of two, of more levels all; prior: "beta(a, b)", or
    of all "dirichlet(a)".

    Under substitute the posterior (kind="credible", the default) or exact confidence limits of the same release; under add-remove the
    confidence interval of the shares of `cf.tables`.

    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> result = proportion(data, "smoker", privacy=cf.PureDP(0.5), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> result.conf_int().round(2).to_numpy().tolist()
    [[0.47, 0.56]]
    """


@_one_call
def mean() -> Any:
    """The mean of a numeric column, of counts too, whatever they are distributed as; of: "column" (values moved into their bounds, the
    default) or "normal"; kind: "credible", "confidence", or "poisson": the rate of a column cf.Integer(0, U), for counts whose variance is
    their mean; see `MeanAndVariance`.

    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"visits": cf.Integer(0, 25, on_missing=0)})
    >>> data = cf.read({"visits": np.random.default_rng(1).negative_binomial(1, 0.2, 1000)}, schema)
    >>> asked = {"privacy": cf.GDP(1.0), "ledger": None, "noise": cf.noise.SimulatedNoise(1)}
    >>> mean(data, "visits", **asked).conf_int().round(1).to_numpy().tolist()
    [[3.7, 4.3]]
    >>> mean(data, "visits", kind="poisson", **asked).names
    ('rate of visits',)
    """


@_one_call
def variance() -> Any:
    """The variance of a numeric column, whatever it is distributed as; of: as for `mean`.

    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0)})
    >>> data = cf.read({"x": np.random.default_rng(1).normal(size=1000)}, schema)
    >>> result = variance(data, "x", privacy=cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> list(result.names)
    ['variance of x']
    """


@_one_call
def slope() -> Any:
    """The coefficients of a normal line, "y ~ x1 + x2": credible intervals. For any design: `cf.linear_regression`.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0), "y": cf.Numeric(-2, 2, on_missing=0.0)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> list(slope(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1)).names)
    ['Intercept', 'x']
    """


@_one_call
def difference() -> Any:
    """A share or a mean in one group less that in the first, "smoker ~ sex", "income ~ sex".

    Under substitute the posterior of a difference of two shares (kind="credible", the default) or confidence limits of the same release;
    under add-remove, for means and for several groups MOVER's interval from the tables of shares or means.

    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"]), "sex": cf.Categorical(["f", "m"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> asked = cf.GDP(1.0, relation="add-remove")
    >>> difference(data, "smoker ~ sex", privacy=asked, ledger=None, noise=cf.noise.SimulatedNoise(1)).status
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
    """Intervals for what any sampler estimates: PyMC, NumPyro, emcee, a bootstrap of scikit-learn, a function of yours.

    sampler: (table, generator) -> draws, run on each of `blocks` disjoint blocks of the records, in a process of its own; parameters: name
    -> (low, high), public bounds; privacy: PureDP(epsilon); seconds: of all blocks together, taken in full, as time must tell nothing;
    jobs: blocks side by side (left out: as many as there are processors); memory: MB of each block. Others: `BlockPosterior`.

    Raises `PrivacyError` for an array of draws, which no noise makes private, and what `confide.release` raises.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> def bootstrap(table, generator):
    ...     return [table[generator.integers(0, len(table), len(table)), 0].mean() for _ in range(50)]
    >>> result = block_posterior(bootstrap, data, parameters={"mean": (-4, 4)}, privacy=cf.PureDP(4.0), ledger=None, blocks=30,
    ...     seconds=4, noise=cf.noise.SimulatedNoise(1), n=5_000)
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
