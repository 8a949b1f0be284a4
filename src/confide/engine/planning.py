"""The cost and the expected precision of a release, from public facts: the first step, in which no record is read.

Also what a release tells the ledger, and the key by which rows of an enforced unit are chosen: one for each ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from confide import registry
from confide.core import Method, Plan, check_plan, parameters_of
from confide.core.allowance import checked_privacy
from confide.core.plan import check_read
from confide.core.units.contributions import with_contributions
from confide.core.units.privacy_unit import protected
from confide.core.units.subgroup import subgroup_size
from confide.errors import ConfideError, NoConversion, PlanError
from confide.forecast import Forecast
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, calibrate_gaussian
from confide.ledger.names import same_name
from confide.margins import MarginsByCost, Targets, smallest
from confide.schema import Schema, Unit

if TYPE_CHECKING:
    from confide.ledger import Ledger


def check_ledger(ledger: Ledger | None) -> None:
    if ledger is None:
        return
    from confide.ledger import Ledger  # SQLAlchemy is for those who have a ledger

    if not isinstance(ledger, Ledger):
        raise PlanError(
            f"ledger must be an open cf.Ledger or None, got {type(ledger).__name__}",
            'write ledger=cf.Ledger.open("ledger.db", dataset="survey"), or ledger=None for no charge',
        )


def check_method(method: Any) -> None:
    """Refuse what is neither a method nor a plan, with the call that makes one of it."""
    is_method = not isinstance(method, type) and all(hasattr(method, name) for name in ("name", "plan"))
    if not is_method and not isinstance(method, Plan):
        raise _no_method(method)


def _no_method(method: Any) -> PlanError:
    formula = method if isinstance(method, str) and "~" in method else "y ~ x"
    given = f"the class {method.__name__}" if isinstance(method, type) else type(method).__name__
    return PlanError(
        f"method must be a method, such as cf.regression.LeastSquares, or a plan, got {given}",
        f"write cf.plan(cf.regression.LeastSquares({formula!r}), schema, cf.GDP(1.0)); confide methods lists them all",
    )


def check_schema(schema: Any) -> None:
    """Refuse what is not a schema, with the call that makes one."""
    if isinstance(schema, Schema):
        return
    raise PlanError(
        f"schema must be a cf.Schema, got {type(schema).__name__}; "
        + (
            "data from cf.read have theirs: write cf.plan(method, data.schema, cf.GDP(1.0))"
            if isinstance(getattr(schema, "schema", None), Schema)
            else 'write cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)}), or cf.Schema.from_toml("schema.toml")'
        )
    )


def pins(schema: Mapping[str, Any], dataset: str | None, level: str | None = None) -> dict[str, Any]:
    """What a charge is about, for the ledger, which compares it with what it is pinned to: dataset, unit, rows per unit.

    Whatever charges reads its schema here: a release, a publication, locally protected records, a stream, the studio.
    Relation and trust are part of the statement that is charged. `schema`: its dict, as plans hold it. `dataset`: the
    name under which the records were read. `level`: the unit of the statement if it differs from that of the schema.
    It is "record" for an enforced unit that is charged as records. It is "record" or "attribute" in the local model,
    whose schema is one of records (`local.release.planned`). Raises `PlanError`.

    >>> from confide.schema import Numeric
    >>> pins(Schema({"x": Numeric(0, 1)}, unit="household", rows_per_unit=5).to_dict(), "survey")
    {'dataset': 'survey', 'unit': 'household', 'rows_per_unit': 5, 'enforced': False}
    """
    named = schema["dataset"]
    if named is not None and dataset is not None and not same_name(named, dataset):
        raise PlanError(
            f"the schema names dataset {named!r}, and the records were read as {dataset!r}",
            f"give one name: cf.read(data, schema) without dataset=, or dataset={dataset!r} in the schema",
        )
    if level is not None:
        return {"dataset": dataset, "unit": level, "rows_per_unit": 1, "enforced": False}
    whose = protected(schema)
    enforced = whose != "record"
    return {
        "dataset": dataset,
        "unit": whose if enforced else schema["unit"],
        "rows_per_unit": int(schema["rows_per_unit"]),
        "enforced": enforced,
    }


# In a plan's public inputs: SHA-256 of the key by which rows of a unit are chosen.
_KEY = "unit key"


def key_of(schema: Schema, ledger: Ledger | None) -> bytes | None:
    """The key of an enforced unit, one for each ledger, so that its releases agree on who counts; without one the schema's digest."""
    if not isinstance(schema.unit, Unit):
        return None
    own = None if ledger is None else ledger.unit_key
    return bytes.fromhex(schema.digest) if own is None else own


def keyed(planned: Plan, key: bytes | None) -> Plan:
    if key is None:
        return planned
    return replace(planned, public_inputs={**planned.public_inputs, _KEY: hashlib.sha256(key).hexdigest()})


def as_asked(planned: Plan) -> Plan:
    """The plan before its release: without the digest of the ledger's key, which the release of an enforced unit adds."""
    return replace(planned, public_inputs={name: text for name, text in planned.public_inputs.items() if name != _KEY})


def as_charged(planned: Plan, ledger: Ledger) -> Plan:
    """The plan as this ledger is charged for it, and its release states it."""
    return keyed(as_asked(planned), key_of(Schema.from_dict(planned.schema), ledger))


def plan(
    method: Method | Plan,
    schema: Any,
    privacy: Guarantee | None = None,
    *,
    n: int | None = None,
    ledger: Ledger | None = None,
    guess: Mapping[str, Any] | None = None,
    margin: Mapping[str, Any] | None = None,
    cv: Mapping[str, Any] | float | None = None,
) -> Plan:
    """Plan a release from public facts: what it costs and what to expect.

    Nothing is read and nothing is charged.

    Parameters
    ----------
    method : Method or Plan
        What to release, such as ``cf.tables.Means("bmi ~ sex",
        inference="population")``.
    schema : Schema
        Public description of the data. Its typical spreads serve the forecast
        alone.
    privacy : Guarantee, optional
        Cost of the release, such as ``GDP(0.5)``. Required without `margin` or
        `cv`. A relation that it leaves open is taken from the ledger, else from
        the method.
    n : int, optional
        Number of records. Under substitution it is public and part of the plan;
        otherwise it serves the forecast.
    ledger : Ledger, optional
        Ledger that would be charged.
    guess : mapping of str to float, optional
        What else forecasts may assume: ``{"where": 0.2}`` is the share of
        records that the method's subgroup has.
    margin : mapping of str to float, optional
        Instead of `privacy`: the largest margins of error that are wanted, in
        units of the estimates. Keys are the names of the forecast: "mean",
        "share", "count", "quantile", or "all". In a publication by analysis:
        ``{"analysis": {"mean": 0.01}}``.
    cv : mapping of str to float or float, optional
        Instead of `privacy`: the largest coefficients of variation that are
        wanted, by the same names or one for all. For example, 0.02 is 2%.

    Returns
    -------
    Plan
        The plan. With `margin` or `cv` it has the smallest mu whose forecast
        for `n` records is as sharp, and it states `n`, which is then public by
        the caller's word.

    Raises
    ------
    PlanError
        The analysis cannot be planned from public facts.
    PrivacyError
        The method cannot give this guarantee.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> cf.plan(cf.tables.Means("x", inference="population"), schema, cf.GDP(0.5), n=2_000).guarantee.mu
    0.5
    """
    check_ledger(ledger)
    check_method(method)
    check_schema(schema)
    if margin is not None or cv is not None:
        if isinstance(method, Plan):
            raise PlanError("a plan has its budget already", "give the method itself to plan for an accuracy")
        shared = method.sharpened(schema, margin, cv, privacy, n=n, ledger=ledger)
        if shared is None:
            targets = Targets.of(margin, cv, privacy, n)
            least, notes = smallest(_at_levels(method, schema, n, ledger, guess), targets, method)
            shared = method, least.requested, notes
        own, request, notes = shared
        made = plan(own, schema, request, n=n, ledger=ledger, guess=guess)
        return replace(made, notes=(*made.notes, *notes))
    if isinstance(method, Plan):
        return made_again(method, schema)[1]
    made, request = paid_for(method, schema, privacy, ledger, n)
    size, note, where = n, "", method.where
    if where is not None:
        size, note = subgroup_size(where, schema, n, guess)
    seen, near = made, schema.closed
    if where is not None or near.bare is not schema or made.n != n:
        seen = made.outlook(method.plan(near, request, n=size), n)
    if not seen.children:
        # simulated when it is looked at, so that a release pays nothing for it
        seen = replace(seen, forecast=Forecast(made, method, schema, size, seen.forecast))
    return replace(seen, notes=(*seen.notes, note)) if note else seen


def paid_for(
    method: Method, schema: Schema, privacy: Guarantee | None, ledger: Ledger | None, n: int | None
) -> tuple[Plan, Guarantee]:
    """The plan that is charged and published, checked whatever its method; and the request, with the ledger's relation.

    A number of records that is not public, and typical spreads, never reach it; only the separate forecast uses them.
    """
    if privacy is None:
        relation = method.relations[0] if ledger is None else ledger.show().relation
        privacy = method.priced(schema, relation, n)
    request = checked_privacy(privacy)
    if ledger is not None and request.relation is None:
        request = request.resolve(ledger.relation)  # the method's own default comes later, in the plan
    if isinstance(request, PureDP) and method.native == "GDP":
        raise _no_gaussian(method, request, ledger, schema)
    where = method.where
    public = where is None and (request.relation or method.relations[0]) == "substitute"
    made = method.plan(schema.bare, request, n=n if public else None)
    if isinstance(made.schema["unit"], Mapping):
        made = with_contributions(made)
    check_plan(made, request)
    if where is not None or made.where is not None:
        check_read(made, where)
    return made, request


def made_again(asked: Plan, schema: Any) -> tuple[Method, Plan]:
    """The method of a plan from elsewhere, and the plan made again: no number of a file is believed, including its cost."""
    method, planned = registry.remake(as_asked(asked), schema)
    check_plan(planned, asked.requested)
    return method, planned


def _at_levels(
    method: Method, schema: Any, n: int | None, ledger: Ledger | None, guess: Mapping[str, Any] | None
) -> Callable[[float], Plan]:
    """The plans of a method by their level: mu, or epsilon where its guarantee is pure. A method's own forecast stands as it is."""
    kind = PureDP if method.native == "PureDP" else GDP

    def at(level: float) -> Plan:
        made = plan(method, schema, kind(level), n=n, ledger=ledger, guess=guess)
        forecast = made.forecast
        if not isinstance(forecast, Forecast) or not forecast.given:
            return made
        if alone := forecast.without_unit:
            raise PlanError(
                f"a precision needs a unit, and the schema has neither bounds nor typical values of {', '.join(alone)}",
                "declare where the values lie, typical=(low, high) in the schema",
            )
        return replace(made, forecast=forecast.given)

    return at


def margins_by_cost(
    method: Method,
    schema: Any,
    *,
    n: int,
    levels: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0),
    ledger: Ledger | None = None,
    guess: Mapping[str, Any] | None = None,
) -> MarginsByCost:
    """Compare the margins of error to expect at several costs.

    Nothing is read and nothing is charged.

    Parameters
    ----------
    method : Method
        What to release.
    schema : Schema
        Public description of the data.
    n : int
        Number of records, for the forecast.
    levels : sequence of float, default (0.1, 0.2, 0.5, 1.0, 2.0)
        Values of mu; of epsilon where the method's guarantee is pure DP.
    ledger : Ledger, optional
        Ledger that would be charged.
    guess : mapping of str to float, optional
        What else forecasts may assume: ``{"where": 0.2}`` is the share of
        records that the method's subgroup has.

    Returns
    -------
    MarginsByCost
        Expected standard errors at each level, as a table and a plot.

    Raises
    ------
    PlanError
        The analysis cannot be planned from public facts.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> cf.margins_by_cost(cf.tables.Means("y ~ 1", inference="population"), schema, n=2_000, levels=(0.5, 1.0)).levels
    (0.5, 1.0)
    """
    kind = "epsilon" if method.native == "PureDP" else "mu"
    return MarginsByCost.of(_at_levels(method, schema, n, ledger, guess), levels, kind)


def _no_gaussian(method: Any, request: PureDP, ledger: Ledger | None, schema: Any) -> NoConversion:
    """The refusal of a pure guarantee of a Gaussian method: equal ones that it has, and the names of methods that can give it."""
    pure = _pure(method, request, schema)
    other = (
        f", or for a method with a pure guarantee: {', '.join(pure)}"
        if pure
        else "; no method here has a pure guarantee for this question"
    )
    # the three are one release: the Gaussian one whose curve meets (epsilon, delta), and its rho = mu^2/2
    asked = ApproxDP(request.epsilon, _delta_beside(request.epsilon, ledger))
    mu = float(f"{calibrate_gaussian(asked):.4g}")
    return NoConversion(
        f"{method.name} adds Gaussian noise, and there is no Gaussian noise for {request}",
        "ask for "
        f"cf.ApproxDP({asked.epsilon!r}, {asked.delta!r}), which is cf.GDP({mu!r}) or cf.ZCDP({float(f'{mu**2 / 2:.4g}')!r}){other}",
    )


def _pure(method: Any, request: PureDP, schema: Any) -> list[str]:
    """The methods with a pure guarantee that plan the same analysis and may replace this one."""
    (first, *_) = parameters_of(type(method))
    asked, found = getattr(method, first), []
    for info in registry.list_methods() if isinstance(asked, str) else ():
        if "PureDP" in info.native and info.family == method.family and info.parameters[:1] == (first,):
            try:
                registry.make(info.name, **{first: asked}).plan(schema, request)
            except ConfideError:
                continue
            found.append(info.name)
    return found


def _delta_beside(epsilon: float, ledger: Ledger | None) -> float:
    """A delta for a request that names none: for a ledger in epsilon and delta half its share of the budget, else 1e-6."""
    budget = None if ledger is None else ledger.budget
    if not isinstance(budget, ApproxDP):
        return 1e-6
    return float(f"{min(budget.delta * epsilon / (2 * budget.epsilon), budget.delta):.2g}")
