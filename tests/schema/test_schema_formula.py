"""Formulas: what they mean, and every error that public facts can cause."""

from __future__ import annotations

import numpy as np
import pytest
from tests.messages import refuses

from confide.errors import PlanError
from confide.schema import Categorical, Integer, ModelMatrix, Numeric, Schema
from confide.schema.formulas.formula import parse_formula

SCHEMA = Schema(
    {
        **{name: Numeric(0.5, 2) for name in ("y", "a", "b", "c")},
        "income": Numeric(0, 1e6),
        "age": Integer(0, 99),
        "odd name": Numeric(0, 1),
        "class": Numeric(0, 1),
        "a.b": Numeric(0, 1),
        "region": Categorical(["N", "S"]),
    }
)


def terms(formula: str) -> list[str]:
    parsed = parse_formula(formula, SCHEMA)
    return [*(["1"] if parsed.intercept else []), *(":".join(factor.name for factor in term) for term in parsed.terms)]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("y ~ a + b", ["1", "a", "b"]),
        ("y ~ 1", ["1"]),
        ("y ~ a - 1", ["a"]),
        ("y ~ -1 + a", ["a"]),
        ("y ~ 0 + a", ["a"]),
        ("y ~ a + 0", ["a"]),
        ("y ~ a - 1 + 1", ["1", "a"]),
        ("y ~ a*b", ["1", "a", "b", "a:b"]),
        ("y ~ a:b + c", ["1", "c", "a:b"]),
        ("y ~ b:a + a:b", ["1", "b:a"]),
        ("y ~ (a + b + c)**2", ["1", "a", "b", "c", "a:b", "a:c", "b:c"]),
        ("y ~ (a + b + c)^3 - a:b:c", ["1", "a", "b", "c", "a:b", "a:c", "b:c"]),
        ("y ~ (a + b)**9", ["1", "a", "b", "a:b"]),
        ("y ~ (1 + a):b", ["1", "b", "a:b"]),
        ("y ~ a*b*c - a:b:c - b", ["1", "a", "c", "a:b", "a:c", "b:c"]),
        ("y ~ a*(b + c)", ["1", "a", "b", "c", "a:b", "a:c"]),
        ("y ~ a*b + a", ["1", "a", "b", "a:b"]),
        ("y ~ a**2", ["1", "I(a ** 2)"]),
        ("y ~ a^3", ["1", "I(a ** 3)"]),
        ("y ~ a**1", ["1", "a"]),
        ("y ~ log(a)**2", ["1", "I(log(a) ** 2)"]),
        ("y ~ I(a+b)**2", ["1", "I((a + b) ** 2)"]),
        ("y ~ a + a**2:b", ["1", "a", "I(a ** 2):b"]),
        ("y ~ I( a+1 )", ["1", "I(a + 1)"]),
        ("y ~ {a+b}", ["1", "I(a + b)"]),
        ("y ~ np.log(a) + log1p(b)", ["1", "np.log(a)", "log1p(b)"]),
        ("y ~ C(region) + region:a", ["1", "region", "region:a"]),
        ("y ~ `odd name` + log(`odd name`) + I(`class`+1) + class", ["1", "odd name", "log(`odd name`)", "I(`class` + 1)", "class"]),
        ("y ~ a.b + log(a.b)", ["1", "a.b", "log(a.b)"]),
        ("I(y - a) ~ a", ["1", "a"]),
    ],
)  # fmt: skip
def test_terms(formula: str, expected: list[str]) -> None:
    assert terms(formula) == expected


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        ("y ~ a", "y"),
        ("log(y) ~ a", "log(y)"),
        ("y/10 ~ a", "y / 10"),
        ("y - 1 ~ a", "y - 1"),
        ("I(y*b) ~ a", "I(y * b)"),
        ("`odd name`**2 ~ a", "`odd name` ** 2"),
        ("`odd name` ~ a", "odd name"),
    ],
)
def test_responses(formula: str, name: str) -> None:
    assert ModelMatrix.of(formula, SCHEMA).response.name == name


def test_a_long_formula_is_no_problem() -> None:
    assert len(parse_formula("y ~ " + " + ".join(f"I(a + {i})" for i in range(2000)), SCHEMA).terms) == 2000


ERRORS = [
    # what cannot be read
    "a + b",
    "y ~ a ~ b",
    "~ a",
    "y ~ ",
    "y ~ a b",
    "y ~ log(a",
    "y ~ a +",
    "[y ~ a] + b",
    "y ~ log(class)",
    "y ~ I(" + "-" * 5000 + "a)",
    3,
    # columns
    "y ~ agee",
    "y ~ log(incom)",
    "z ~ a",
    "y ~ `odd nam`",
    "y ~ C(regin)",
    "y ~ .",
    # transforms that learn
    "y ~ scale(a)",
    "y ~ standardize(a)",
    "y ~ center(a)",
    "y ~ poly(a, 2)",
    *[f"y ~ {spline}(a, df=4)" for spline in ("bs", "cr", "cc", "cs", "te")],
    "y ~ C(age)",
    "y ~ C(`odd name`)",
    "y ~ C(region, Treatment('S'))",
    "y ~ log(C(region))",
    # what is not on the white list
    "y ~ lag(a)",
    "y ~ Q('odd name')",
    "y ~ sin(a)",
    "y ~ I(a > 1)",
    "y ~ I(a ^ 2)",
    "y ~ a[0]",
    "y ~ I(a if b else c)",
    "y ~ I(lambda: a)",
    "y ~ I(__import__('os').system('true'))",
    "y ~ I(a.mean())",
    "y ~ log(a, 2)",
    "y ~ log(x=a)",
    "y ~ log(*a)",
    "y ~ I('text')",
    "y ~ I(True * a)",
    "y ~ I(1e999 * a)",
    "y ~ I(a ** b)",
    "y ~ I(a ** 65)",
    "y ~ I(a ** (0 / 0))",
    "y ~ log(region)",
    "y ~ I(region)",
    # operators
    "y ~ a / b",
    "y ~ a %in% b",
    "y ~ a | b",
    "y ~ 2*a",
    "y ~ a + 0.5",
    "y ~ 1:a",
    "y ~ 1e3:a",
    "y ~ 'text'",
    "y ~ a**b",
    "y ~ a**0.5",
    "y ~ region**2",
    "y ~ (a:b)**2",
    "y ~ a:a",
    "y ~ a*a",
    "y ~ a - b",
    "y ~ -a",
    "y ~ (" + " + ".join(f"I(a + {i})" for i in range(70)) + ")**3",
    # terms that make no sense
    "y ~ 0",
    "y ~ a - a - 1",
    "y ~ a + a",
    "y ~ a + I(a)",
    "y ~ log(a) + np.log(a)",
    "y ~ a**2 + I(a**2)",
    "y ~ log(3)",
    "y ~ I(a * 0)",
    "y ~ I(a ** 0)",
    "y ~ I(a + 1e300)",
    "y ~ I(a * 1e-320)",
    "y ~ log(-a)",
    # the response
    "1 ~ a",
    "region ~ a",
    "y + b ~ a",
    "y:a ~ b",
    "scale(y) ~ a",
    "y ~ a + y",
    "y ~ a + log(y)",
    "log(y) ~ y:a",
    "I(y - a) ~ I(y - a)",
]


@pytest.mark.parametrize("formula", ERRORS, ids=[str(formula)[:40] for formula in ERRORS])
def test_errors(formula: str) -> None:
    with refuses(PlanError) as caught:
        ModelMatrix.of(formula, SCHEMA)
    assert len(str(caught.value)) < 900


def test_no_error_chain_shows_the_parsers_insides() -> None:
    with pytest.raises(PlanError) as caught:
        ModelMatrix.of("y ~ a b", SCHEMA)
    assert caught.value.__suppress_context__ and caught.value.__cause__ is None
    assert "\x1b" not in str(caught.value)


def test_schema_must_be_a_schema() -> None:
    with refuses(PlanError):
        ModelMatrix.of("y ~ a", {"y": 1})  # type: ignore[arg-type]


def test_two_columns_of_one_name() -> None:
    schema = Schema(
        {"y": Numeric(0, 1), "a": Numeric(0, 1), "b": Numeric(0, 1), "a:b": Numeric(0, 1), "Intercept": Numeric(0, 1)}
    )
    with refuses(PlanError):
        ModelMatrix.of("y ~ `a:b` + a:b", schema)
    with refuses(PlanError):
        ModelMatrix.of("y ~ Intercept", schema)


# bounds ---------------------------------------------------------------------------------------------------------------


def test_bounds_come_from_interval_arithmetic() -> None:
    design = ModelMatrix.of("y ~ a:b + I(a ** 2) + sqrt(income) + age:region + I(income / 1000)", SCHEMA)
    found = {term.name: (term.low, term.high, term.steps) for term in design.terms}
    assert found == {
        "I(a ** 2)": (0.25, 4.0, 2**20),
        "sqrt(income)": (0.0, 1000.0, 2**20),
        "I(income / 1000)": (0.0, 1000.0, 2**20),
        "a:b": (0.25, 4.0, 2**20),
        "age:region[N]": (0.0, 99.0, 2**20),
        "age:region[S]": (0.0, 99.0, 2**20),
    }


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ log(income)",
        "y ~ I(1 / income)",
        "y ~ exp(income)",
        "y ~ log(income):a",
        "y ~ a*log(income)",
        "log(income) ~ a",
        "y ~ I(1 / (a - 1))",
        "y ~ I(income ** 60)",
        "y ~ I(income ** 40):I(age ** 40)",
        "y ~ log(`odd name`)",
        "y ~ I(log(income) - log(age))",
    ],
)
def test_infinite_bounds_name_an_argument_that_works(formula: str) -> None:
    for _ in range(3):
        with refuses(PlanError) as caught:
            ModelMatrix.of(formula, SCHEMA)
        argument = str(caught.value).split("term_bounds=")[1].split("}")[0] + "}"
        bounds = eval(argument)  # the text is the library's own message
        assert isinstance(bounds, dict)
        design = ModelMatrix.of(formula, SCHEMA, term_bounds=bounds)
        ((name, pair),) = bounds.items()
        assert any(name in term.name for term in (*design.terms, design.response))
        assert dict(design.term_bounds)[name] == tuple(map(float, pair))


def test_given_bounds_are_used() -> None:
    design = ModelMatrix.of("y ~ log(income) + log(income):a", SCHEMA, term_bounds={"log( income )": (0, 14)})
    assert [(term.name, term.low, term.high) for term in design.terms] == [
        ("log(income)", 0.0, 14.0),
        ("log(income):a", 0.0, 28.0),
    ]
    design = ModelMatrix.of(
        "y ~ log(income):a", SCHEMA, term_bounds={"log(income)": (0, 14), "log(income):a": np.array([1, 5])}
    )
    assert (design.terms[0].low, design.terms[0].high) == (1.0, 5.0)
    assert ModelMatrix.of("log(income) ~ a", SCHEMA, term_bounds={"log(income)": [0, 14]}).response.high == 14.0


@pytest.mark.parametrize(
    "bounds",
    [
        3,
        {"log(income)": 3},
        {"log(income)": (14, 0)},
        {"log(income)": (0, 0)},
        {"log(income)": (0, float("inf"))},
        {"log(income)": (False, True)},
        {"log(income)": ("0", "1")},
        {"log(income)": (0, 5e-324)},
        {"log(income)": (0, 14), "log(incom)": (0, 1)},
        {"log(income)": (0, 14), "a": (0, 1)},
        {"log(income)": (0, 14), "region[T.S]": (0, 2)},
    ],
)
def test_wrong_term_bounds(bounds: object) -> None:
    with refuses(PlanError):
        ModelMatrix.of("y ~ log(income) + a + region", SCHEMA, term_bounds=bounds)  # type: ignore[arg-type]


def test_term_bounds_without_a_derived_term() -> None:
    with refuses(PlanError):
        ModelMatrix.of("y ~ b", SCHEMA, term_bounds={"log(b)": (0, 1)})
