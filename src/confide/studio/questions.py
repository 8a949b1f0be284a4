"""The questions of the studio's form, in the order in which people ask them, and the method behind each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confide import registry
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.protocol import Method, parameters_of

__all__ = ["QUESTIONS", "Question", "method_of", "number", "privacy_of", "question", "reading_of"]


@dataclass(frozen=True)
class Question:
    """One kind of question: its words, the registered method or the test, an example of what is filled in, and what comes back."""

    name: str
    words: str
    method: str
    example: str
    says: str
    test: bool = False

    @property
    def covers(self) -> bool:
        """Whether the asker must say what intervals are about."""
        return not self.test and "covers" in parameters_of(registry.get(self.method))


QUESTIONS = (
    Question(
        "counts",
        "How many, by group",
        "counts",
        "region * smoker",
        "A table of counts with margins; a * b is a crossing.",
    ),
    Question("shares", "Which share, by group", "shares", "smoker * region", "A table of shares."),
    Question(
        "means",
        "A mean by group",
        "means",
        "income ~ region",
        "Means of the left column in the groups at the right; ~ 1 for all.",
    ),
    Question(
        "totals", "A total by group", "totals", "income ~ region", "Sums of the left column in the groups at the right."
    ),
    Question(
        "medians",
        "A median by group",
        "distribution",
        "income ~ sex",
        "Medians, quartiles and the distribution, by group.",
    ),
    Question(
        "table_one",
        "What the records are like (Table One)",
        "table_one",
        "age + smoker ~ arm",
        "Means, shares, medians by group.",
    ),
    Question(
        "t_test",
        "Do two groups differ in their mean (t-test)",
        "ttest_ind",
        "income ~ sex",
        "Welch's test and the difference.",
        True,
    ),
    Question("anova", "Do several means differ (F-test)", "f_oneway", "income ~ region", "Welch's F test.", True),
    Question(
        "chi_square",
        "Are two columns independent (chi-square)",
        "chi2_contingency",
        "smoker * region",
        "A test of independence.",
        True,
    ),
    Question(
        "rank_test",
        "Do two groups differ (rank test)",
        "mannwhitneyu",
        "income ~ sex",
        "Mann and Whitney's test.",
        True,
    ),
    Question(
        "line",
        "A regression line",
        "least_squares",
        "income ~ age + sex",
        "The least-squares line, with robust standard errors.",
    ),
    Question(
        "logistic",
        "Odds of a two-valued outcome",
        "logistic",
        "employed ~ age + sex",
        "Logistic regression of a column of 0 and 1.",
    ),
    Question("poisson", "Rates of a count", "poisson", "visits ~ age + sex", "Poisson regression of a bounded count."),
    Question("curve", "A curve", "kernel", "income ~ age", "A smooth curve of one column on another, with a band."),
)
_BY_NAME = {one.name: one for one in QUESTIONS}


def question(name: str) -> Question:
    """Raises `PlanError` for a kind that is not there."""
    if name not in _BY_NAME:
        raise PlanError(f"there is no kind of question {name!r}; there are: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def method_of(form: Mapping[str, str]) -> Method:
    """The method that a filled form asks for: kind, formula, covers, where."""
    asked, formula = question(form.get("kind", "")), form.get("formula", "").strip()
    if not formula:
        raise PlanError(f"write what is asked, for instance {asked.example}")
    settings: dict[str, Any] = {}
    if where := form.get("where", "").strip():
        settings["where"] = where
    if asked.test:
        from confide.faces import tests

        wanted, _ = tests.asked_of(asked.method, formula)
        made: Method = tests.method_of(asked.method, wanted, settings)
        return made
    if asked.covers:
        if form.get("covers") not in ("population", "dataset"):
            raise PlanError(
                "say what intervals are about: the population that the records are a sample of, or these very records"
            )
        settings["covers"] = form["covers"]
    first = parameters_of(registry.get(asked.method))[0]
    return registry.make(asked.method, **{first: formula}, **settings)


def reading_of(form: Mapping[str, str]) -> Callable[[Any], Any]:
    """How the result of a form's question is shown: the result itself, or what a test asks of it."""
    asked = _BY_NAME.get(form.get("kind", ""))
    if asked is None or not asked.test:
        return lambda result: result
    from confide.faces import tests

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
