"""The questions that people ask, in their order, and the method behind each: for the studio's form and `confide explore`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from operator import itemgetter
from string import Formatter
from typing import Any

from confide import engine, registry
from confide.ask import tests
from confide.core import MenuEntry, Method, parameters_of
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP
from confide.methods.publication import Publication
from confide.schema import Categorical, Integer, Schema, Unit
from confide.schema.formulas.names import quoted

#: The kind of a form that asks many questions at once.
PUBLICATION = Publication.name
#: The kinds of question that are tests, with the tests' names.
TESTS: Mapping[str, str] = {entry.name: verb for verb, entry in tests.MENU.items()}
_ROW = re.compile(r"formula([0-9]{1,2})")


@dataclass(frozen=True)
class Question:
    """One kind of question.

    method: the registered method, or the test; test: whether it is one. The other fields come from its menu entry.
    """

    name: str
    words: str
    method: str
    pattern: str
    says: str
    command: str
    test: bool = False

    @classmethod
    def of(cls, entry: MenuEntry, method: str, *, test: bool = False) -> Question:
        """What a class, or the list of tests, states."""
        roles = {role for _, role, _, _ in Formatter().parse(entry.pattern) if role is not None}
        if not roles <= set(_PICTURED):
            unknown = ", ".join(sorted(roles - set(_PICTURED)))
            raise PlanError(f"the menu entry of {method!r} has no role {unknown}; roles are {', '.join(_PICTURED)}")
        command = entry.command or f'plan "{{}}" --method {method}'
        return cls(entry.name or method, entry.words, method, entry.pattern, entry.says, command, test)

    @property
    def takes_inference(self) -> bool:
        """Whether the asker must choose an inference target."""
        return not self.test and "inference" in parameters_of(registry.get(self.method))

    @property
    def example(self) -> str:
        """The formula of a survey that everybody can picture."""
        return self.pattern.split(" | ")[0].format(**_PICTURED)

    def asked_of(self, schema: Schema) -> str | None:
        """The first formula with columns of a schema that its plan accepts; None where no column fits."""
        roles = _roles(schema)
        found = (formula for pattern in self.pattern.split(" | ") for formula in _filled(pattern, roles))
        return next((formula for formula in islice(found, _TRIES) if self.planned(formula, schema)), None)

    def planned(self, formula: str, schema: Schema) -> bool:
        """Whether a plan accepts the formula."""
        try:
            made = method_of_form({"kind": self.name, "formula": formula, "inference": "population"})
            if self.test:
                tests.check_groups(self.method, made, schema)
            engine.plan(made, schema, GDP(1.0))
        except ConfideError:
            return False
        return True


# Formulas that are tried for one question, so that a schema of a thousand columns is listed at once.
_TRIES = 40


_PICTURED = {
    "event": "ill == 'yes'", "below": "hours",
    "number": "income", "other": "age", "label": "region", "second": "smoker", "pair": "sex", "outcome": "employed", "count": "visits",
}  # fmt: skip


def _event(schema: Schema, label: str) -> str:
    """A condition on a row: the column has its last level."""
    column = schema[label.strip("`")]
    assert isinstance(column, Categorical)
    return f"{label} == {str(column.levels[-1])!r}"


def _filled(pattern: str, roles: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The pattern with columns in their roles, each column in one of them; those that suit a role best come first."""
    named = list(dict.fromkeys(role for _, role, _, _ in Formatter().parse(pattern) if role is not None))
    for columns in product(*(roles[role] for role in named)):
        if len(set(columns)) == len(columns):
            yield pattern.format_map(dict(zip(named, columns, strict=True)))


def _roles(schema: Schema) -> dict[str, list[str]]:
    """The columns for each role, those that suit it best first; columns of the sampling design have none."""
    design = schema.design
    drawn = () if design is None else (design.weight, design.strata, design.psu)

    def named(fits: Callable[[Any], bool]) -> list[str]:
        return [quoted(name) for name in schema.names if name not in drawn and fits(schema[name])]

    labels = named(lambda one: isinstance(one, Categorical))
    pairs = named(lambda one: isinstance(one, Categorical) and len(one.levels) == 2)
    few = named(lambda one: isinstance(one, Integer) and one.steps <= _FEW)
    outcomes = named(lambda one: isinstance(one, Integer) and (one.low, one.high) == (0, 1))
    counts = named(lambda one: isinstance(one, Integer) and one.low == 0 and one.high > 1)
    others = named(lambda one: not isinstance(one, Categorical))
    numbers = [name for name in others if name not in outcomes]
    above = named(lambda one: not isinstance(one, Categorical) and one.low > 0)
    found = {
        "event": [_event(schema, name) for name in labels] if isinstance(schema.unit, Unit) else [],
        "below": [*above, *others], "number": [*reversed(numbers), *others], "other": [*numbers, *others],
        "label": [*labels, *few], "second": [*labels[1:], *labels, *few], "pair": [*pairs, *outcomes, *few],
        "outcome": outcomes, "count": [*counts, *others],
    }  # fmt: skip
    return {role: list(dict.fromkeys(names)) for role, names in found.items()}


# A whole number of so few values may stand for groups.
_FEW = 16


def questions() -> tuple[Question, ...]:
    """Those that methods and tests state, by family in the order in which people ask; another package's after ours."""
    return tuple(one for _, kinds in by_family() for one in kinds)


def by_family() -> tuple[tuple[registry.Family, tuple[Question, ...]], ...]:
    """Every family in its order, with the kinds of question that a form asks of it; none, where it is asked in other ways."""
    found: dict[str, list[tuple[int, Question]]] = {one.name: [] for one in registry.FAMILIES}
    for method in registry.classes():
        if method.menu is not None:
            found.setdefault(method.family, []).append((method.menu.place, Question.of(method.menu, method.name)))
    found[tests.FAMILY] += [(entry.place, Question.of(entry, verb, test=True)) for verb, entry in tests.MENU.items()]
    return tuple(
        (
            registry.family(name) or registry.Family(name, name.capitalize(), "", "confide plan"),
            # the sort is stable: ours stand before another package's of the same place
            tuple(one for _, one in sorted(own, key=itemgetter(0))),
        )
        for name, own in found.items()
    )


def question(name: str) -> Question:
    """Raises `PlanError` for a kind that is not there."""
    known = {one.name: one for one in questions()}
    if name not in known:
        raise PlanError(f"there is no kind of question {name!r}; there are: {', '.join(known)}")
    return known[name]


def method_of_form(form: Mapping[str, str]) -> Method:
    """The method that a filled form asks for: kind, formula, inference, where; of the kind "publication" the questions of its rows."""
    if form.get("kind") == PUBLICATION:
        return _publication_of(form)
    asked, formula = question(form.get("kind", "")), form.get("formula", "").strip()
    if not formula:
        raise PlanError(f"write the formula, for instance {asked.example}")
    settings: dict[str, Any] = {}
    if where := form.get("where", "").strip():
        settings["where"] = where
    if asked.test:
        wanted, _ = tests.asked_of(asked.method, formula)
        made: Method = tests.method_of_test(asked.method, wanted, settings)
        return made
    if asked.takes_inference:
        if form.get("inference") not in ("population", "dataset"):
            raise PlanError(
                "choose what the intervals are about: the population, where the records are a sample of those of interest, or "
                "exactly these records"
            )
        settings["inference"] = form["inference"]
    first = parameters_of(registry.get(asked.method))[0]
    return registry.make(asked.method, **{first: formula}, **settings)


def asked_in(form: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    """(place, form) of each row of a publication's form that asks something: its fields are kind0, formula0, ..., kind1, ..."""
    places = sorted(int(found[1]) for name in form if (found := _ROW.fullmatch(name)) and form[name].strip())
    fields = ("name", "kind", "formula", "inference", "where", "share")
    return [(place, {key: form.get(f"{key}{place}", "").strip() for key in fields}) for place in places]


def named_in(form: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The analyses of a publication's form by name; one without a name is called by its kind, and by a number where that is taken."""
    rows = asked_in(form)
    taken = {own["name"] for _, own in rows if own["name"]}
    named: dict[str, dict[str, str]] = {}
    for place, own in rows:
        name = own["name"]
        if not name:
            kind, count = own["kind"] or "analysis", 1
            while (name := kind if count == 1 else f"{kind} {count}") in taken:
                count += 1
            taken.add(name)
        if name in named:
            raise PlanError(f"row {place + 1}: there is an analysis {name!r} already", "give it another name")
        named[name] = own
    return named


def _publication_of(form: Mapping[str, str]) -> Method:
    asked, methods, shares = named_in(form), {}, {}
    if not asked:
        raise PlanError("a publication needs an analysis: choose a kind in the first row, and write its columns")
    for name, own in asked.items():
        try:
            methods[name] = method_of_form(own)
        except ConfideError as error:
            error.analysis = name
            raise
        if own["share"]:
            weight = number(own["share"], f"the weight of {name!r}")
            shares[name] = int(weight) if weight.is_integer() else weight
    return Publication(methods, shares=shares or None)


def reading_of(form: Mapping[str, str]) -> Callable[[Any], Any]:
    """How the result of a form's question is shown: itself, or what a test asks of it; of a publication, question by question."""
    if form.get("kind") == PUBLICATION:
        readings = {name: reading_of(own) for name, own in named_in(form).items()}
        return lambda report: report.read_as(readings)
    verb = TESTS.get(form.get("kind", ""))
    if verb is None:
        return lambda result: result
    return tests.asked_of(verb, form.get("formula", "").strip())[1]


def privacy_of(form: Mapping[str, str]) -> GDP:
    """The budget that a filled form asks for."""
    return GDP(number(form.get("mu", ""), "mu"))


def number(text: str, what: str) -> float:
    """Raises `PlanError` for text that is not a number."""
    try:
        return float(text)
    except ValueError:
        raise PlanError(f"{what} must be a number, got {text!r}") from None
