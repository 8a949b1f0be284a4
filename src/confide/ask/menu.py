"""The questions that people ask, in their order, and the method behind each: for the studio's form and `confide explore`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confide import registry
from confide.core import Method, parameters_of
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP
from confide.schema import Categorical, Integer, Schema, Unit
from confide.schema.formulas.names import quoted


@dataclass(frozen=True)
class Question:
    """One kind of question.

    words: as people ask it; method: the registered method, or the test; pattern: the formula, with a role in place of each column, and
    after | what a schema with fewer columns has; says: what comes back; command: how the command line asks it, {} being the formula.
    """

    name: str
    words: str
    method: str
    pattern: str
    says: str
    command: str
    test: bool = False

    @property
    def covers(self) -> bool:
        """Whether the asker must say what intervals are about."""
        return not self.test and "covers" in parameters_of(registry.get(self.method))

    @property
    def family(self) -> str:
        """The name of its family in `registry.FAMILIES`."""
        return "tests" if self.test else registry.get(self.method).family

    @property
    def example(self) -> str:
        """The formula of a survey that everybody can picture."""
        return self.pattern.split(" | ")[0].format(**_PICTURED)

    def asked_of(self, schema: Schema) -> str | None:
        """The formula with columns of a schema in it; None where the schema has none that fit."""
        roles = _roles(schema)
        for pattern in self.pattern.split(" | "):
            with suppress(KeyError):
                return pattern.format_map(roles)
        return None


_PICTURED = {
    "event": "ill == 'yes'", "below": "hours",
    "number": "income", "other": "age", "label": "region", "second": "smoker", "pair": "sex", "outcome": "employed", "count": "visits",
}  # fmt: skip


def _event(schema: Schema, label: str) -> str:
    """A condition on a row: the column has its last level."""
    column = schema[label.strip("`")]
    assert isinstance(column, Categorical)
    return f"{label} == {str(column.levels[-1])!r}"


def _roles(schema: Schema) -> dict[str, str]:
    """A column for each role that a schema can fill; how a sample was drawn is no question."""
    design = schema.design
    drawn = () if design is None else (design.weight, design.strata, design.psu)

    def named(fits: Callable[[Any], bool]) -> list[str]:
        return [quoted(name) for name in schema.names if name not in drawn and fits(schema[name])]

    labels = named(lambda one: isinstance(one, Categorical))
    pairs = named(lambda one: isinstance(one, Categorical) and len(one.levels) == 2)
    outcomes = named(lambda one: isinstance(one, Integer) and (one.low, one.high) == (0, 1))
    counts = named(lambda one: isinstance(one, Integer) and one.low == 0 and one.high > 1)
    numbers = named(lambda one: not isinstance(one, Categorical) and (one.low, one.high) != (0, 1))
    found = {
        "event": [_event(schema, labels[0])] if labels and isinstance(schema.unit, Unit) else [],
        "below": [name for name in named(lambda one: not isinstance(one, Categorical) and one.low > 0) if name in numbers[:-1]],
        "number": numbers[-1:], "other": numbers[:-1], "label": labels, "second": labels[1:], "pair": pairs,
        "outcome": outcomes, "count": counts,
    }  # fmt: skip
    return {role: names[0] for role, names in found.items() if names}


_KINDS = (
    (
        "counts",
        "How many, by group",
        "counts",
        "{label} * {second} | {label}",
        "A table of counts with margins; a * b is a crossing.",
        'table "{}"',
    ),
    ("shares", "Which share, by group", "shares", "{label}", "A table of shares.", 'table "{}" --kind shares'),
    (
        "means",
        "A mean by group",
        "means",
        "{number} ~ {label} | {number} ~ 1",
        "Of the left column by the right; ~ 1: of all.",
        'table "{}"',
    ),
    (
        "totals",
        "A total by group",
        "totals",
        "{number} ~ {label} | {number} ~ 1",
        "Of the left column by the right.",
        'table "{}" --kind totals',
    ),
    (
        "medians",
        "A median by group",
        "quantiles",
        "{number} ~ {label} | {number}",
        "Medians and the distribution.",
        'table "{}" --kind quantiles',
    ),
    (
        "table_one",
        "What the records are like",
        "table_one",
        "{number} ~ {label}",
        "Table One: means, shares, medians.",
        'describe "{}"',
    ),
    (
        "ratios",
        "A total over another total, by group",
        "ratios",
        "{number} / {below} ~ {label} | {number} / {below} ~ 1",
        "A ratio of totals, such as income per hour.",
        'table "{}"',
    ),
    (
        "persons",
        "How many persons, by all their rows",
        "person_counts",
        "any({event})",
        "Each person counts once: any(...), all(...), number(..., 1, 2, 5) of the rows.",
        'table "{}" --kind person_counts',
    ),
    (
        "t_test",
        "Do two groups differ in their mean (t-test)",
        "ttest_ind",
        "{number} ~ {pair}",
        "Welch's test.",
        'test ttest_ind "{}"',
    ),
    (
        "anova",
        "Do several means differ (F-test)",
        "f_oneway",
        "{number} ~ {label}",
        "Welch's F test.",
        'test f_oneway "{}"',
    ),
    (
        "chi_square",
        "Are two columns independent",
        "chi2_contingency",
        "{label} * {second}",
        "A chi-square test.",
        'test chi2_contingency "{}"',
    ),
    (
        "rank_test",
        "Do two groups differ (rank test)",
        "mannwhitneyu",
        "{number} ~ {pair}",
        "Mann and Whitney's test.",
        'test mannwhitneyu "{}"',
    ),
    ("line", "A regression line", "least_squares", "{number} ~ {other}", "The least-squares line.", 'regress "{}"'),
    (
        "logistic",
        "Odds of a two-valued outcome",
        "logistic",
        "{outcome} ~ {number} | {pair} ~ {number}",
        "Logistic regression.",
        'regress "{}" --method logistic',
    ),
    (
        "poisson",
        "Rates of a count",
        "poisson",
        "{count} ~ {label}",
        "Poisson regression of a bounded count.",
        'regress "{}" --method poisson',
    ),
    (
        "curve",
        "A curve",
        "kernel",
        "{number} ~ {other}",
        "A smooth curve, with a band.",
        'regress "{}" --method kernel',
    ),
)
#: The kind of a form that asks many questions at once.
PUBLICATION = "publication"
_ROW = re.compile(r"formula([0-9]{1,2})")
_TESTS = ("t_test", "anova", "chi_square", "rank_test")
QUESTIONS = tuple(Question(*one, test=one[0] in _TESTS) for one in _KINDS)
_BY_NAME = {one.name: one for one in QUESTIONS}


def by_family() -> tuple[tuple[registry.Family, tuple[Question, ...]], ...]:
    """Every family in its order, with the kinds of question that a form asks of it; none, where it is asked in other ways."""
    return tuple((one, tuple(kind for kind in QUESTIONS if kind.family == one.name)) for one in registry.FAMILIES)


def question(name: str) -> Question:
    """Raises `PlanError` for a kind that is not there."""
    if name not in _BY_NAME:
        raise PlanError(f"there is no kind of question {name!r}; there are: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def method_of_form(form: Mapping[str, str]) -> Method:
    """The method that a filled form asks for: kind, formula, covers, where; of the kind "publication" the questions of its rows."""
    if form.get("kind") == PUBLICATION:
        return _publication_of(form)
    asked, formula = question(form.get("kind", "")), form.get("formula", "").strip()
    if not formula:
        raise PlanError(f"write what is asked, for instance {asked.example}")
    settings: dict[str, Any] = {}
    if where := form.get("where", "").strip():
        settings["where"] = where
    if asked.test:
        from confide.ask import tests

        wanted, _ = tests.asked_of(asked.method, formula)
        made: Method = tests.method_of_test(asked.method, wanted, settings)
        return made
    if asked.covers:
        if form.get("covers") not in ("population", "dataset"):
            raise PlanError(
                "say what intervals are about: the population, where the records are a sample of those that the question is about, or "
                "these very records"
            )
        settings["covers"] = form["covers"]
    first = parameters_of(registry.get(asked.method))[0]
    return registry.make(asked.method, **{first: formula}, **settings)


def asked_in(form: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    """(place, form) of each row of a publication's form that asks something: its fields are kind0, formula0, ..., kind1, ..."""
    places = sorted(int(found[1]) for name in form if (found := _ROW.fullmatch(name)) and form[name].strip())
    fields = ("name", "kind", "formula", "covers", "where", "share")
    return [(place, {key: form.get(f"{key}{place}", "").strip() for key in fields}) for place in places]


def named_in(form: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The questions of a publication's form by name; one without a name is called by its kind, and by a number where that is taken."""
    rows = asked_in(form)
    taken = {own["name"] for _, own in rows if own["name"]}
    named: dict[str, dict[str, str]] = {}
    for place, own in rows:
        name = own["name"]
        if not name:
            kind, count = own["kind"] or "question", 1
            while (name := kind if count == 1 else f"{kind} {count}") in taken:
                count += 1
            taken.add(name)
        if name in named:
            raise PlanError(f"row {place + 1}: there is a question {name!r} already; give it another name")
        named[name] = own
    return named


def _publication_of(form: Mapping[str, str]) -> Method:
    from confide.methods.publication import Publication

    asked, methods, shares = named_in(form), {}, {}
    if not asked:
        raise PlanError("a publication needs a question: choose a kind in the first row, and write its columns")
    for name, own in asked.items():
        try:
            methods[name] = method_of_form(own)
        except ConfideError as error:
            raise PlanError(f"question {name!r}: {error}") from None
        if own["share"]:
            weight = number(own["share"], f"the weight of {name!r}")
            shares[name] = int(weight) if weight.is_integer() else weight
    return Publication(methods, shares=shares or None)


def reading_of(form: Mapping[str, str]) -> Callable[[Any], Any]:
    """How the result of a form's question is shown: itself, or what a test asks of it; of a publication, question by question."""
    if form.get("kind") == PUBLICATION:
        readings = {name: reading_of(own) for name, own in named_in(form).items()}
        return lambda report: report.read_as(readings)
    asked = _BY_NAME.get(form.get("kind", ""))
    if asked is None or not asked.test:
        return lambda result: result
    from confide.ask import tests

    return tests.asked_of(asked.method, form.get("formula", "").strip())[1]


def privacy_of(form: Mapping[str, str]) -> GDP:
    """The budget that a filled form asks for."""
    return GDP(number(form.get("mu", ""), "mu"))


def number(text: str, what: str) -> float:
    """Raises `PlanError` for text that is no number."""
    try:
        return float(text)
    except ValueError:
        raise PlanError(f"{what} must be a number, got {text!r}") from None
