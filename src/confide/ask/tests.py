"""`cf.tests`: tests of hypotheses with differential privacy, in one call each, under the names of scipy.stats.

Each test uses one release: a t-test uses means, a chi-square test counts. A release of that kind answers the test as well, at no further
cost: `table.test("independence", "smoker", "region")`. All tests are about the population that the records are a sample of, and their
p-values account for sampling and privacy noise. Each call also takes the parameters of its method, such as where="age >= 65".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

from confide import _docs
from confide._helpers import near_match
from confide.ask.one_call import LEFT_OUT, OneCall, answered, call_signature, checked_call, one_call
from confide.core import MenuEntry, Plan, Source, parameters_of
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.regression.least_squares.correlation import Correlation
from confide.methods.tables.comparing.power import EFFECTS, power_of
from confide.methods.tables.counts import OF_ROWS, Counts, Shares
from confide.methods.tables.draw import check_one_test
from confide.methods.tables.means import Means
from confide.methods.tables.survey.results import no_tests
from confide.methods.tests.rank import Kruskal, MannWhitney, Wilcoxon
from confide.methods.tests.results import RankTest
from confide.results.hypothesis_tests import HypothesisTests
from confide.schema import Schema
from confide.schema.formulas.names import column_named, parted, sides
from confide.sums.clusters.psu_covariance import design_of

__all__ = [
    "Correlation",
    "Kruskal",
    "MannWhitney",
    "Wilcoxon",
    "asked_of",
    "binomtest",
    "chi2_contingency",
    "chisquare",
    "f_oneway",
    "kruskal",
    "mannwhitneyu",
    "pearsonr",
    "plan",
    "trend",
    "ttest_ind",
    "ttest_rel",
    "wilcoxon",
]

_POPULATION = "population"


def _asked(verb: str, formula: str, data: Source, call: dict[str, Any], **given: Any) -> HypothesisTests:
    """Answer a test from one release. call: what every call takes, and the method's parameters; given: the test's own."""
    method, settings = METHODS[verb], dict(call)
    privacy, ledger = settings.pop("privacy", None), settings.pop("ledger", LEFT_OUT)
    noise, n = settings.pop("noise", None), settings.pop("n", None)
    example = '"income ~ sex"' if method is Means else '"smoker * region"'
    known = [name for name in parameters_of(method) if name != "formula"]
    checked_call(
        f"cf.tests.{verb}",
        known,
        privacy,
        ledger,
        settings,
        example=f"{example}, data, privacy=cf.GDP(1.0), ledger=None",
    )
    wanted, ask = asked_of(verb, formula, **given)
    own = method_of_test(verb, wanted, settings)
    check_groups(verb, own, data.schema)
    found: HypothesisTests = answered(own, data, privacy, ledger, noise, n, ask)
    return found


#: The method whose release answers a test.
METHODS: Mapping[str, type[Any]] = {
    "ttest_ind": Means,
    "ttest_rel": Means,
    "f_oneway": Means,
    "chi2_contingency": Counts,
    "chisquare": Counts,
    "binomtest": Counts,
    "trend": Counts,
    "pearsonr": Correlation,
    "mannwhitneyu": MannWhitney,
    Kruskal.name: Kruskal,
    Wilcoxon.name: Wilcoxon,
}

#: Where the menu lists tests, and the entries of those that it does, by name.
FAMILY = Kruskal.family
MENU: Mapping[str, MenuEntry] = {
    "ttest_ind": MenuEntry(
        "Do two groups differ in their mean (t-test)",
        "{number} ~ {pair}",
        "Welch's test.",
        command='test ttest_ind "{}"',
        name="t_test",
        place=1,
    ),
    "f_oneway": MenuEntry(
        "Do several means differ (F-test)",
        "{number} ~ {label}",
        "Welch's F test.",
        command='test f_oneway "{}"',
        name="anova",
        place=2,
    ),
    "chi2_contingency": MenuEntry(
        "Are two columns independent",
        "{label} * {second}",
        "A chi-square test.",
        command='test chi2_contingency "{}"',
        name="chi_square",
        place=3,
    ),
    "mannwhitneyu": MenuEntry(
        "Do two groups differ (rank test)",
        "{number} ~ {pair}",
        "Mann and Whitney's test.",
        command='test mannwhitneyu "{}"',
        name="rank_test",
        place=4,
    ),
}


_OUTCOME = _docs.outcome(
    "HypothesisTests\n    Statistic, degrees of freedom, p-value, and the estimate where there is one.\n"
    "    The release is not kept: use `confide.release` and `table.test` when you\n"
    "    need the file to publish or to verify.",
    "BudgetExceeded",
    "PlanError",
)
_UNWEIGHTED = """
Parameters
----------
weights : None
    Not available: the null distribution needs records of equal weight.
"""


def _shown(ask: Callable[..., HypothesisTests]) -> OneCall[HypothesisTests]:
    """The same call; help shows the test's own arguments, those of every call, and the settings of the method behind it."""
    own = signature(ask).parameters.values()
    first = tuple(one.name for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD)
    given = {one.name: one.default for one in own if one.kind is Parameter.KEYWORD_ONLY}
    kind = METHODS[ask.__name__]
    settings = {name: getattr(kind, name, None) for name in parameters_of(kind) if name not in ("formula", "inference")}
    shown = call_signature(first, {**given, **settings}, "HypothesisTests")
    ask.__signature__ = shown  # type: ignore[attr-defined]
    others = (kind.__doc__, None if kind is Means else _UNWEIGHTED)
    ask.__doc__ = _docs.completed(ask.__doc__, shown.parameters, others, _OUTCOME)
    return ask


def method_of_test(name: str, formula: str, settings: Mapping[str, Any]) -> Any:
    """The method behind a test, from the formula of its release; `PlanError` for settings under which its null law is wrong."""
    check_weights(name, settings)
    kind = METHODS[name]
    own = {"inference": _POPULATION} if kind in POPULATION_TESTS else {}
    return kind(formula, **{**settings, **own})


#: The methods that are told that tests are of the population, with the kinds of table that answer the same tests.
POPULATION_TESTS: Mapping[type[Any], tuple[str, ...]] = {Means: (Means.name,), Counts: (Counts.name, Shares.name)}


def check_weights(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse weights under which the null law of a test does not hold."""
    if METHODS[name] is not Means and settings.get("weights") is not None:
        raise PlanError(
            f"{name} tests records that count alike, and weights change its null law",
            "leave weights out, or ask for "
            "cf.tables.shares(..., weights=...) with intervals and differences. ttest_ind, ttest_rel and f_oneway take weights",
        )


def check_groups(name: str, method: Any, schema: Schema) -> None:
    """Refuse records and groups that a test cannot compare, from the schema, before anything is charged."""
    if type(method) in POPULATION_TESTS:
        _check_records(method, schema)
    if name not in ("ttest_ind", "f_oneway"):
        return
    groups = method.about(schema).crossing.attributes
    if len(groups) != 1:
        raise PlanError(
            f"{name} compares the levels of one column, got {method.formula!r}",
            'write "income ~ sex", or ask for cf.tables.means and its test(..., "sex")',
        )
    if name == "ttest_ind" and groups[0].size != 2:
        raise PlanError(
            f"a t test compares two groups, and {groups[0].name!r} has {groups[0].size}",
            "ask for cf.tests.f_oneway, or declare two levels, as cut(age, 40) does",
        )


def _check_records(method: Any, schema: Schema) -> None:
    """Refuse a sample of a design, and units that count in several levels or by weight: the table of their release answers no test."""
    design = design_of(schema)
    if design is not None:
        raise PlanError(no_tests(design))
    check_one_test(schema)
    if method.about(schema).of_units:
        raise PlanError(OF_ROWS)


def asked_of(name: str, formula: str, **given: Any) -> tuple[str, Callable[[Any], HypothesisTests]]:
    """Name the release that a test needs, and how its table answers the test.

    Parameters
    ----------
    name : str
        Name of the test, such as ``"ttest_ind"``.
    formula : str
        Formula of the test, such as ``"income ~ sex"``.
    **given : optional
        The test's own arguments: ``p``, ``level``, ``alternative``, ``f_exp``,
        ``scores`` or ``given``.

    Returns
    -------
    tuple of (str, callable)
        Formula of the release, and a function from its table to the test.

    Raises
    ------
    PlanError
        The formula does not fit the test. Nothing was charged.

    Examples
    --------
    >>> import confide as cf
    >>> cf.tests.asked_of("ttest_ind", "income ~ sex")[0]
    'income ~ 0 + sex'
    """
    if name in ("ttest_ind", "f_oneway"):
        outcome, group = _sides(name, formula)
        # the mean of all records is nothing that the test asks for: without it the groups' noise is a quarter less
        alone = formula if group.startswith("0") else f"{outcome} ~ 0 + {group}"
        return alone, lambda table: table.test("t" if name == "ttest_ind" else "f")
    if name == "ttest_rel":
        if len(sides(formula)) > 1:
            raise PlanError(
                f"ttest_rel takes a difference of columns, got {formula!r}",
                'write ttest_rel("after - before", data, ...)',
            )
        return f"{formula} ~ 1", lambda table: table.test("mean")
    if name == "chi2_contingency":
        return _contingency(formula, given.pop("given", None))
    if name == "chisquare":
        return formula, lambda table: table.test("fit", _only(table), expected=given.get("f_exp"))
    if name == "binomtest":
        asked = {"p": 0.5, "level": None, "alternative": "two-sided", **given}
        return formula, lambda table: table.test("proportion", _only(table), **asked)
    if name == "trend":
        outcome, dose = _sides(name, formula)
        return f"{outcome}:{dose}", lambda table: table.test("trend", *_attributes(table), **given)
    return formula, lambda table: table


def plan(
    name: str,
    formula: str,
    schema: Schema,
    privacy: Guarantee | None = None,
    *,
    n: int | None = None,
    effect: float | None = None,
    ledger: Ledger | None = None,
    settings: Mapping[str, Any] | None = None,
    **given: Any,
) -> Plan:
    """Plan a test by name, with its power, without touching the records.

    Parameters
    ----------
    name : str
        Name of the test, such as ``"ttest_ind"``.
    formula : str
        Formula of the test, such as ``"income ~ sex"``.
    schema : Schema
        Public description of the data.
    privacy : Guarantee, optional
        Cost of the release, such as ``GDP(0.5)``. May be left out with `ledger`.
    n : int, optional
        Number of records for the forecast. It is public by your word.
    effect : float, optional
        Effect whose power is printed: Cohen's d, f or w, or a correlation r.
    ledger : Ledger, optional
        Ledger whose budget and neighboring relation the plan is made for.
    settings : mapping of str to object, optional
        Parameters of the method behind the test, such as ``{"where": "age > 65"}``.
    **given : optional
        The test's own arguments, such as ``p=0.2`` of binomtest.

    Returns
    -------
    Plan
        Plan of the release, with the power of the test among its notes.

    Raises
    ------
    PlanError
        The test does not exist, or cannot be planned from public facts.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]),
    ...                     "income": cf.Numeric(0, 100)})
    >>> plan = cf.tests.plan("ttest_ind", "income ~ sex", schema, cf.GDP(1.0),
    ...                      n=2_000, effect=0.2)
    >>> plan.notes[-1].partition(" at ")[2].partition(":")[0]
    '2,000 records'
    """
    from confide import engine  # here, because the gate is slow to load

    if name not in METHODS:
        raise PlanError(f"there is no test {name!r}{near_match(name, tuple(METHODS))}; there are: {', '.join(METHODS)}")
    wanted, _ = asked_of(name, formula, **given)
    method = method_of_test(name, wanted, settings or {})
    check_groups(name, method, schema)
    made = engine.plan(method, schema, privacy, n=n, ledger=ledger)
    if name not in EFFECTS:
        return made
    return replace(
        made, notes=(*made.notes, *power_of(name, method, schema, made.requested, n=n, effect=effect).lines())
    )


def _contingency(formula: str, given: str | Sequence[str] | None) -> tuple[str, Callable[[Any], HypothesisTests]]:
    others = [given] if isinstance(given, str) else list(given or ())
    parts = parted(formula, "*:")
    if len(parts) != 2 or len(sides(formula)) > 1 or len(parted(formula, "+")) > 1:
        raise PlanError(
            f"independence is of two attributes, got {formula!r}", 'write "smoker * region", given="sex" for strata'
        )

    def ask(table: Any) -> HypothesisTests:
        names = [name for name in _attributes(table) if name not in others]
        found: HypothesisTests = table.test("independence", *names, given=others or None)
        return found

    # the crossing alone: its margins follow, and noise on them would buy the test nothing
    return ":".join([*parts, *others]), ask


def _attributes(table: Any) -> list[str]:
    return [own.name for own in table.layout.crossing.attributes]


def _sides(verb: str, formula: str) -> tuple[str, str]:
    both = sides(formula)
    if len(both) != 2 or not all(both):
        raise PlanError(
            f"{verb} takes a formula with two sides, got {formula!r}", f'write {verb}("income ~ sex", data, ...)'
        )
    return both[0], both[1]


@_shown
def ttest_ind(formula: str, data: Source, **call: Any) -> HypothesisTests:
    """Test whether two groups have equal means, by Welch's t-test.

    Variances may differ. For skewed columns `mannwhitneyu` has more power.

    Parameters
    ----------
    formula : str
        Numeric column and two groups, such as ``"income ~ sex"`` or
        ``"income ~ cut(age, 40)"``.

    See Also
    --------
    f_oneway : Several groups.
    mannwhitneyu : The same question by ranks.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Means`.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different
    population variances are involved, Biometrika 34.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]),
    ...                     "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.ttest_ind("income ~ sex", data, privacy=cf.GDP(1.0),
    ...                    ledger=None).names
    ('income by sex: f - m',)
    """
    return _asked("ttest_ind", formula, data, call)


@_shown
def ttest_rel(formula: str, data: Source, **call: Any) -> HypothesisTests:
    """Test whether the mean difference of two columns is zero, by a paired t-test.

    Parameters
    ----------
    formula : str
        Difference of two columns, such as ``"after - before"``. Its public bounds
        follow from those of the columns.

    See Also
    --------
    wilcoxon : The same question by ranks.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Means`.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"before": cf.Numeric(0, 10), "after": cf.Numeric(0, 10)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.ttest_rel("after - before", data, privacy=cf.GDP(1.0),
    ...                    ledger=None).status
    'valid'
    """
    return _asked("ttest_rel", formula, data, call)


@_shown
def f_oneway(formula: str, data: Source, **call: Any) -> HypothesisTests:
    """Test whether several groups have equal means, by Welch's F test.

    Variances may differ. For skewed columns `kruskal` has more power.

    Parameters
    ----------
    formula : str
        Numeric column and groups, such as ``"income ~ region"``.

    See Also
    --------
    ttest_ind : Two groups.
    kruskal : The same question by ranks.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Means`.

    References
    ----------
    Welch (1951), On the comparison of several mean values: an alternative
    approach, Biometrika 38.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S", "W"]),
    ...                     "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.f_oneway("income ~ region", data, privacy=cf.GDP(1.0),
    ...                   ledger=None).df.tolist()
    [2.0]
    """
    return _asked("f_oneway", formula, data, call)


@_shown
def chi2_contingency(
    formula: str,
    data: Source,
    *,
    given: str | Sequence[str] | None = None,
    **call: Any,
) -> HypothesisTests:
    """Test whether two columns are independent, by a chi-square test.

    The null distribution includes the privacy noise.

    Parameters
    ----------
    formula : str
        Two categorical columns, such as ``"smoker * region"``.
    given : str or sequence of str, optional
        Columns within whose levels independence is tested. The statistics of the
        levels add up.

    See Also
    --------
    chisquare : Shares of one column.
    trend : An ordered second column.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Counts`.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"a": cf.Categorical(["x", "y"]),
    ...                     "b": cf.Categorical(["u", "v", "w"])})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.chi2_contingency("a * b", data, privacy=cf.GDP(1.0),
    ...                           ledger=None).df.tolist()
    [2.0]
    """
    return _asked("chi2_contingency", formula, data, call, given=given)


@_shown
def chisquare(
    attribute: str,
    data: Source,
    *,
    f_exp: Any = None,
    **call: Any,
) -> HypothesisTests:
    """Test whether the levels of a column have given shares, by a chi-square test.

    The null distribution includes the privacy noise.

    Parameters
    ----------
    attribute : str
        Categorical column.
    f_exp : sequence of float or mapping of str to float, optional
        Public shares, in the order of the levels or by name. By default the
        shares are equal.

    See Also
    --------
    binomtest : The share of one level.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Counts`.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"a": cf.Categorical(["x", "y", "z"])})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.chisquare("a", data, f_exp=[0.5, 0.25, 0.25],
    ...                    privacy=cf.GDP(1.0), ledger=None).df.tolist()
    [2.0]
    """
    return _asked("chisquare", attribute, data, call, f_exp=f_exp)


@_shown
def binomtest(
    attribute: str,
    data: Source,
    *,
    p: float = 0.5,
    level: str | None = None,
    alternative: str = "two-sided",
    **call: Any,
) -> HypothesisTests:
    """Test whether the share of one level is p.

    The test is exact under substitution, with `n` given and no record excluded.

    Parameters
    ----------
    attribute : str
        Categorical column.
    p : float, default 0.5
        Share under the null hypothesis.
    level : str, optional
        Level whose share is tested. By default the last one.
    alternative : {"two-sided", "less", "greater"}, default "two-sided"
        Alternative hypothesis.

    See Also
    --------
    chisquare : The shares of all levels.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Counts`.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    >>> data = cf.read(schema.sample(400, seed=1), schema)
    >>> found = cf.tests.binomtest(
    ...     "smoker", data, privacy=cf.GDP(1.0, relation="substitute"),
    ...     ledger=None, n=400)
    >>> found.null
    'exact: binomial and noise'
    """
    return _asked("binomtest", attribute, data, call, p=p, level=level, alternative=alternative)


@_shown
def trend(
    formula: str,
    data: Source,
    *,
    scores: Sequence[float] | None = None,
    level: str | None = None,
    **call: Any,
) -> HypothesisTests:
    """Test whether the share of an outcome changes with an ordered dose.

    Parameters
    ----------
    formula : str
        Outcome and dose, such as ``"case ~ dose"``, both categorical.
    scores : sequence of float, optional
        Scores of the doses. By default 0, 1, 2, and so on.
    level : str, optional
        Level of the outcome whose share is tested. By default the last one.

    See Also
    --------
    chi2_contingency : A dose without an order.

    Notes
    -----
    Guarantee: mu-GDP under either relation. The release is that of `Counts`.

    References
    ----------
    Armitage (1955), Tests for linear trends in proportions and frequencies,
    Biometrics 11.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"case": cf.Categorical(["no", "yes"]),
    ...                     "dose": cf.Categorical(["low", "mid", "high"])})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> cf.tests.trend("case ~ dose", data, privacy=cf.GDP(1.0),
    ...                ledger=None).statistic
    'z'
    """
    return _asked("trend", formula, data, call, scores=scores, level=level)


pearsonr: OneCall[HypothesisTests] = one_call(Correlation, "cf.tests.pearsonr")
mannwhitneyu: OneCall[RankTest] = one_call(MannWhitney, "cf.tests.mannwhitneyu")
kruskal: OneCall[RankTest] = one_call(Kruskal, "cf.tests.kruskal")
wilcoxon: OneCall[RankTest] = one_call(Wilcoxon, "cf.tests.wilcoxon")


def _only(table: Any) -> str:
    """The one attribute of a table."""
    names = _attributes(table)
    if len(names) != 1:
        raise PlanError(f"this test is of one attribute, got {', '.join(names) or 'none'}")
    return str(names[0])


# a question to a table that was released, which costs nothing more --------------------------------------------------------

# What `table.test` calls the tests of counts of one attribute, or of two.
_KINDS = {"chi2_contingency": "independence", "chisquare": "fit", "binomtest": "proportion", "trend": "trend"}


def ask_release(table: Any, name: str, formula: str, **given: Any) -> HypothesisTests:
    """Answer a test from a table of counts, shares or means, at no further cost.

    Parameters
    ----------
    table : CountTable, ShareTable or MeanTable
        Result of a release.
    name : str
        Name of the test, such as ``"ttest_ind"``.
    formula : str
        Formula of the test, with columns that the table holds.
    **given : optional
        The test's own arguments, such as ``p`` and ``level`` of binomtest.

    Returns
    -------
    HypothesisTests
        Statistic, degrees of freedom and p-value.

    Raises
    ------
    PlanError
        The table does not answer the test.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]),
    ...                     "wage": cf.Numeric(0, 90)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> table = cf.tables.means("wage ~ sex", data, inference="population",
    ...                         privacy=cf.GDP(1.0), ledger=None)
    >>> ask_release(table, "ttest_ind", "wage ~ sex").names
    ('wage by sex: f - m',)
    """
    holds = METHODS[name]
    if table.kind not in POPULATION_TESTS.get(holds, ()):
        other = f"of {holds.name}" if holds in POPULATION_TESTS else f"that confide test {name} asks for"
        raise PlanError(f"{name} is a question to a release {other}, and this is a table of {table.kind}")
    asked_of(name, formula, **given)  # refuses what is no formula of this test
    left, *rest = sides(formula)
    right = "~".join(rest)
    attributes = [own.name for own in table.layout.crossing.attributes]
    if name in ("ttest_ind", "f_oneway"):
        group = _known(re.sub(r"^0\s*\+", "", right), attributes)
        found = table.test("t" if name == "ttest_ind" else "f", group, of=_known(left, table.measured))
    elif name == "ttest_rel":
        found = table.test("mean", of=_known(formula, table.measured))
    else:
        named = [left, right] if right else parted(formula, "*:")
        own = {"expected": given.get("f_exp")} if name == "chisquare" else dict(given)
        own = {"p": 0.5, **own} if name == "binomtest" else own
        found = table.test(_KINDS[name], *(_known(one, attributes) for one in named), **own)
    answer: HypothesisTests = found
    return answer


def _known(text: str, names: Collection[str]) -> str:
    """The name that is meant, whatever its spaces; the text itself where there is none, which the table then refuses."""
    if (named := column_named(text, tuple(names))) in names:
        return named
    plain = text.replace("`", "").replace(" ", "")
    return next((name for name in names if name.replace("`", "").replace(" ", "") == plain), text.strip())
