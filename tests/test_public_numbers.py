"""Every public number, fed with what is of no use: an error of ours says what is allowed; nothing overflows, divides by zero or hangs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import confide as cf
from confide import forecast, guarantees as G
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, PureDP, TradeOff
from confide.guarantees.privacy_loss import PrivacyLoss
from tests.golden.golden_cases import CASES, SCHEMA, schema_of

pytestmark = pytest.mark.filterwarnings("ignore:.* protects nobody")  # a budget that is too large, and kept

ODD = (1e300, 1e-300, 10**400, inf, nan, -1, True, "1", None, 0, 1e17, 5e-324, 1.7e308)


def name_of(value: Any) -> str:
    return "10**400" if isinstance(value, int) and value > 10**300 else repr(value)


odd = pytest.mark.parametrize("value", ODD, ids=name_of)


def typed(call: Callable[[], Any]) -> Any:
    """What a call returns; None where it raises an error of ours. Any other error fails the test."""
    try:
        return call()
    except cf.ConfideError as error:
        assert str(error).strip()
        return None


# guarantees ----------------------------------------------------------------------------------------------------------

MADE: dict[str, Callable[[Any], Any]] = {
    "PureDP": PureDP,
    "ApproxDP": lambda x: ApproxDP(x, 1e-6),
    "delta of ApproxDP": lambda x: ApproxDP(1.0, x),
    "ZCDP": ZCDP,
    "GDP": GDP,
    "delta of GDP": lambda x: GDP(1.0, x),
    "from_approx": lambda x: GDP.from_approx(x, 1e-6),
    "delta of from_approx": lambda x: GDP.from_approx(1.0, x),
    "order of RDP": lambda x: RDP((x,), (0.1,)),
    "level of RDP": lambda x: RDP((2.0,), (x,)),
    "orders of RDP": lambda x: RDP(x, (0.1,)),
    "levels of RDP": lambda x: RDP((2.0,), x),
    "gaussian": lambda x: TradeOff(G.gaussian(x)),
    "laplace": lambda x: TradeOff(G.laplace(x)),
    "approx_dp": lambda x: TradeOff(G.approx_dp(x, 1e-6)),
    "delta of approx_dp": lambda x: TradeOff(G.approx_dp(1.0, x)),
    "symmetric_laplace": lambda x: TradeOff(G.symmetric_laplace(3, x)),
    "d of symmetric_laplace": lambda x: TradeOff(G.symmetric_laplace(x, 0.5)),
    "zero_inflated": lambda x: TradeOff(G.zero_inflated(x, G.laplace(1.0))),
}
VERBS: dict[str, Callable[[Any], Any]] = {
    "to_gdp": lambda g: g.to_gdp(),
    "to_pure": lambda g: g.to_pure(),
    "to_rdp": lambda g: g.to_rdp(),
    "to_zcdp": lambda g: g.to_zcdp(),
    "to_approx at delta": lambda g: g.to_approx(delta=1e-6),
    "to_approx at epsilon": lambda g: g.to_approx(epsilon=1.0),
    "to_gdp at delta": lambda g: g.to_gdp(delta=1e-6),
    "detection_limit": lambda g: g.detection_limit(),
    "text": lambda g: (str(g), repr(g), g.describe(), G.guarantee_from_dict(g.to_dict())),
    "compose": lambda g: G.compose(g, g),
    "group": lambda g: G.group(g, 3),
    "calibrate_gaussian": lambda g: G.calibrate_gaussian(g),
    "calibrate_laplace": lambda g: G.calibrate_laplace(g),
    "several by calibrate_laplace": lambda g: G.calibrate_laplace(g, releases=7),
    "calibrate_pure": lambda g: G.calibrate_pure(g),
}


@odd
@pytest.mark.parametrize("kind", MADE)
def test_a_guarantee_of_any_number_is_refused_or_converts(kind: str, value: Any) -> None:
    made = typed(lambda: MADE[kind](value))
    # 4 s for the numeric composition of what one float above 1e-300 allows
    for name, verb in VERBS.items() if made is not None else ():
        if name != "several by calibrate_laplace" or kind != "ApproxDP" or value not in (1e-300, 5e-324):
            typed(lambda verb=verb: verb(made))  # type: ignore[misc]


BASE = (
    PureDP(1.0),
    ApproxDP(1.0, 1e-6),
    ZCDP(0.5),
    GDP(1.0),
    GDP(1.0, 1e-6),
    RDP((2.0, 8.0), (0.5, 1.5)),
    TradeOff(G.laplace(1.0)),
)
CURVES = (G.gaussian(1.0), G.laplace(1.0), G.approx_dp(1.0, 1e-6), G.zero_inflated(0.1, G.laplace(1.0)))


@odd
@pytest.mark.parametrize("g", BASE, ids=str)
def test_a_conversion_at_any_number_is_refused_or_done(g: Any, value: Any) -> None:
    for call in (
        lambda: g.to_gdp(delta=value),
        lambda: g.to_rdp((value,)),
        lambda: g.to_rdp(value),
        lambda: g.to_approx(epsilon=value),
        lambda: g.to_approx(delta=value),
        lambda: g.detection_limit(value),
        lambda: G.group(g, value),
        lambda: G.calibrate_gaussian(g, releases=value),
        lambda: G.calibrate_laplace(g, releases=value),
    ):
        typed(call)


@odd
@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_curve_at_any_number_is_refused_or_read(curve: Any, value: Any) -> None:
    for verb in ("f", "delta", "epsilon", "gdp", "power"):
        typed(lambda verb=verb: getattr(curve, verb)(value))  # type: ignore[misc]


@odd
@pytest.mark.parametrize(
    ("function", "others"),
    [
        ("gaussian_delta", (1.0, 1.0)),
        ("gaussian_epsilon", (1e-6, 1.0)),
        ("gaussian_mu", (1.0, 1e-6)),
        ("log_gaussian_delta", (1.0, 1.0)),
        ("laplace_mu", (1.0, 1e-6)),
        ("laplace_epsilon", (1.0, 1e-6)),
        ("pure_mu", (1.0,)),
        ("pure_epsilon", (1.0,)),
        ("laplace_renyi", (2.0, 1.0)),
        ("pure_renyi", (2.0, 1.0)),
        ("calibrate_symmetric_laplace", (1.0, 0.1, 2)),
    ],
)
def test_a_function_of_any_number_is_refused_or_done(function: str, others: tuple[float, ...], value: Any) -> None:
    for place in range(len(others)):
        given = (*others[:place], value, *others[place + 1 :])
        typed(lambda given=given: getattr(G, function)(*given))  # type: ignore[misc]


@odd
def test_a_loss_of_any_window_is_refused_or_made(value: Any) -> None:
    loss = PrivacyLoss.from_profile(G.laplace(1.0).delta)
    for call in (
        lambda: PrivacyLoss.from_profile(G.laplace(1.0).delta, high=value),
        lambda: PrivacyLoss.from_profile(G.laplace(1.0).delta, step=value),
        lambda: loss.delta(value),
        lambda: loss.epsilon(value),
        lambda: G.levels([value], [1.0]),
        lambda: G.levels([1.0], [1.0], zeta=value),
        lambda: G.levels([1.0, 1.0], [1.0, 1.0], k=value),
        lambda: G.parse_curve(f"laplace({value})"),
    ):
        typed(call)


# schemas -------------------------------------------------------------------------------------------------------------

DESIGN = {"weight": "w", "strata": "r", "psu": "v", "size": 10}
SETTINGS: dict[str, Callable[[Any], Any]] = {
    "low": lambda x: cf.Numeric(x, 100),
    "high": lambda x: cf.Numeric(0, x),
    "steps": lambda x: cf.Numeric(0, 1, steps=x),
    "on_missing": lambda x: cf.Numeric(0, 1, on_missing=x),
    "typical, low": lambda x: cf.Numeric(0, 1, typical=(x, 0.9)),
    "typical, high": lambda x: cf.Numeric(0, 1, typical=(0.1, x)),
    "typical": lambda x: cf.Numeric(0, 1, typical=x),
    "own": lambda x: cf.Numeric(0, 1, typical=cf.Typical(0.1, 0.9, own=x)),
    "low of integers": lambda x: cf.Integer(x, 100),
    "high of integers": lambda x: cf.Integer(0, x),
    "typical shares": lambda x: cf.Categorical(["a", "b"], typical=(x, 0.5)),
    "level": lambda x: cf.Categorical([x, 2]),
    "rows of a unit": lambda x: cf.Unit("p", rows=x),
    "groups of a unit": lambda x: cf.Unit("p", per="y", groups=x),
    **{
        f"{name} of clusters": lambda x, name=name: cf.Clusters(**{"column": "s", "size": 3, name: x})
        for name in ("size", "icc", "count", "largest")
    },
    **{
        f"{name} of a design": lambda x, name=name: cf.SurveyDesign(**{**DESIGN, name: x})
        for name in ("size", "icc", "largest", "count", "deff", "population", "fraction")
    },
    "rows_per_unit": lambda x: cf.Schema({"a": cf.Numeric(0, 1)}, rows_per_unit=x),
    "n of a sample": lambda x: cf.Schema({"a": cf.Numeric(0, 1)}).sample(x, 1),
    "seed of a sample": lambda x: cf.Schema({"a": cf.Numeric(0, 1)}).sample(3, x),
}


@odd
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_any_number_is_refused_or_plans(setting: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "SCENARIOS", 3)  # of each setting: all of them together have more than a plan has
    column = typed(lambda: SETTINGS[setting](value))
    if not isinstance(column, (cf.Numeric, cf.Integer)):
        return
    schema = cf.Schema({"a": column, "y": cf.Numeric(0, 1)})
    assert cf.Schema.from_dict(schema.to_dict()) == schema
    for method in (
        cf.tables.Totals("a ~ 1", inference="dataset"),
        cf.regression.LeastSquares("a ~ y"),
        cf.regression.SSP("y ~ log1p(abs(a))"),
    ):
        plan = typed(lambda method=method: cf.plan(method, schema, GDP(1.0), n=1_000))  # type: ignore[misc]
        assert plan is None or plan.summary()


# plans, ledgers, advice ----------------------------------------------------------------------------------------------

QUICK = {
    "line": cf.regression.SSP("y ~ x"),
    "means": cf.tables.Means("y ~ g", inference="population"),
    "classes": cf.classification.ClassMeans("g ~ x"),
    "curve": cf.curves.Kernel("y ~ x"),
    "parts": cf.reduction.PCA("x + w + y"),
    "questions": cf.Publication({"a": cf.regression.SSP("y ~ x"), "b": cf.intervals.MeanAndVariance("x")}),
}
REQUESTS: dict[str, Callable[[Any], Any]] = {
    name: MADE[name] for name in ("PureDP", "ApproxDP", "delta of ApproxDP", "ZCDP", "GDP")
}


@odd
@pytest.mark.parametrize("asked", REQUESTS)
def test_a_request_of_any_number_is_refused_or_planned(asked: str, value: Any) -> None:
    request = typed(lambda: REQUESTS[asked](value))
    for method in QUICK.values() if request is not None else ():
        typed(lambda method=method: cf.plan(method, SCHEMA, request))  # type: ignore[misc]
    for name in ("ratios", "safe_release exact", "smooth_naive_bayes", "logistic") if request is not None else ():
        method, _ = CASES[name]
        typed(lambda method=method: cf.plan(method, schema_of(method), request, n=1_500))  # type: ignore[misc]


@odd
@pytest.mark.parametrize("asked", REQUESTS)
def test_a_budget_of_any_number_is_refused_or_kept(asked: str, value: Any, tmp_path: Path) -> None:
    book, pair = (
        cf.Ledger.create(tmp_path / f"{k}.db", dataset="d", budget=budget)
        for k, budget in enumerate((GDP(2.0), ApproxDP(2.0, 1e-5)))
    )
    budget = typed(lambda: REQUESTS[asked](value))
    if budget is not None:
        statement = budget.resolve("add-remove")
        typed(lambda: str(cf.Ledger.create(tmp_path / "own.db", dataset="d", budget=budget).show()))
        typed(lambda: book.preview((statement,)))
        typed(lambda: pair.preview((statement,)))
        typed(lambda: pair.amend(budget, reason="a test"))
    typed(lambda: pair.preview((GDP(0.1, relation="add-remove"),), charge_delta=value))
    typed(lambda: cf.Ledger.create(tmp_path / "timed.db", dataset="d", budget=GDP(1.0), timeout=value))
    typed(lambda: cf.Ledger.create(tmp_path / "rows.db", dataset="d", budget=GDP(1.0), rows_per_unit=value))


@odd
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("name", QUICK)
def test_any_number_of_records_is_refused_or_planned(name: str, relation: str, value: Any) -> None:
    typed(lambda: cf.plan(QUICK[name], SCHEMA, GDP(1.0, relation=relation), n=value))


@odd
def test_any_wish_is_refused_or_planned(value: Any) -> None:
    means, some = QUICK["means"], cf.regression.SSP("y ~ x", where="w > 0")
    for call in (
        lambda: cf.plan(means, SCHEMA, margin={"all": value}, n=5_000),
        lambda: cf.plan(cf.tables.Counts("g", inference="dataset"), SCHEMA, cv=value, n=5_000),
        lambda: cf.plan(cf.tables.Counts("g", inference="dataset"), SCHEMA, cv={"all": value}, n=5_000),
        lambda: cf.plan(means, SCHEMA, margin={"all": 0.1}, n=value),
        lambda: cf.plan(some, SCHEMA, GDP(1.0), n=1_000, guess={"where": value}),
        lambda: cf.plan(some, SCHEMA, GDP(1.0), n=1_000, guess=value),
        lambda: cf.margins_by_cost(means, SCHEMA, n=value),
        lambda: cf.margins_by_cost(means, SCHEMA, n=1_000, levels=(value,)),
        lambda: cf.margins_by_cost(means, SCHEMA, n=1_000, levels=value),
        lambda: cf.advise("linear_regression", "y ~ x", SCHEMA, 300, GDP(1.0), replications=value),
        lambda: cf.Publication({"a": QUICK["line"]}, shares={"a": value}),
        lambda: cf.noise.SimulatedNoise(value),
    ):
        typed(call)
    if value not in (1e17,):  # a float, and as a number of records refused by `is_whole`
        typed(lambda: cf.advise("linear_regression", "y ~ x", SCHEMA, value, GDP(1.0), replications=2))


# methods -------------------------------------------------------------------------------------------------------------

# Parameters that are no numbers: text and names, other methods, code; and code on blocks, whose plans run it.
_NO_NUMBERS = {
    *(
        "formula",
        "column",
        "columns",
        "label",
        "teacher",
        "questions",
        "sampler",
        "candidates",
        "progress",
        "where",
        "weights",
    ),
    *("features", "show", "medians", "within", "public", "confident", "bound", "kernel", "score"),
}
_ON_BLOCKS = ("teacher_labels", "teacher_labels distance", "block_posterior")


@pytest.mark.parametrize("name", sorted({method.name: name for name, (method, _) in CASES.items()}.values()))
def test_a_parameter_of_any_number_is_refused_or_planned(name: str) -> None:
    """Alone, in a tuple and by name, as parameters of bounds, levels and quantiles are given."""
    method, privacy = CASES[name]
    schema = schema_of(method)
    for field in fields(method):
        if not field.init or field.name in _NO_NUMBERS:
            continue
        for value in ODD:
            for given in (value, (value,), (0.5, value), {"x": (0, value)}, {"total": value}):
                made = typed(lambda given=given, field=field: replace(method, **{field.name: given}))  # type: ignore[misc]
                if made is not None and name not in _ON_BLOCKS:
                    typed(lambda made=made: cf.plan(made, schema, privacy, n=1_500))  # type: ignore[misc]
