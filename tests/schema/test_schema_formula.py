"""Formulas: what they mean, and every error that public facts can cause."""

from __future__ import annotations

import numpy as np
import pytest

from confide.errors import PlanError
from confide.schema import Categorical, Design, Integer, Numeric, Schema
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
    assert Design.of(formula, SCHEMA).response.name == name


def test_a_long_formula_is_no_problem() -> None:
    assert len(parse_formula("y ~ " + " + ".join(f"I(a + {i})" for i in range(2000)), SCHEMA).terms) == 2000


ERRORS = [
    # what cannot be read
    ("a + b", 'exactly one ~ .* has 0; write "y ~ a \\+ b"'),
    ("y ~ a ~ b", "has 2"),
    ("~ a", "no response on the left"),
    ("y ~ ", 'no terms on the right of ~; write "y ~ a \\+ b", or "y ~ 1"'),
    ("y ~ a b", "cannot be read: Missing operator between `a` and `b`"),
    ("y ~ log(a", "cannot be read"),
    ("y ~ a +", "cannot be read"),
    ("[y ~ a] + b", "cannot be read as arithmetic"),
    ("y ~ log(class)", "names with spaces and Python words"),
    ("y ~ I(" + "-" * 5000 + "a)", "cannot be read"),
    (3, "a formula is text, got int"),
    # columns
    ("y ~ agee", r"names 'agee', which is no column of the schema \(did you mean 'age'\?\); the columns are: y, a, b"),
    ("y ~ log(incom)", r"'incom', .*did you mean 'income'"),
    ("z ~ a", "names 'z', which is no column"),
    ("y ~ `odd nam`", "did you mean 'odd name'"),
    ("y ~ C(regin)", "did you mean 'region'"),
    ("y ~ .", "write the columns by name: y, a, b"),
    # transforms that learn
    ("y ~ scale(a)", "'scale\\(a\\)' .* learned from the records; write I\\(\\(x - 40\\) / 10\\)"),
    ("y ~ standardize(a)", "mean and the standard deviation would be learned"),
    ("y ~ center(a)", "the mean would be learned .* write I\\(x - 40\\)"),
    ("y ~ poly(a, 2)", "orthogonal basis would be learned .* write x \\+ I\\(x \\*\\* 2\\)"),
    *[(f"y ~ {spline}(a, df=4)", "knots and basis would be learned") for spline in ("bs", "cr", "cc", "cs", "te")],
    ("y ~ C(age)", r"declares no levels for 'age', .* 'age': Categorical\(\[\"1\", \"2\", \"3\"\]\)"),
    ("y ~ C(`odd name`)", "declares no levels for 'odd name'"),
    ("y ~ C(region, Treatment('S'))", "C takes the name of one categorical column"),
    ("y ~ log(C(region))", "C\\(region\\)' .* it stands alone"),
    # what is not on the white list
    ("y ~ lag(a)", "would mix records"),
    ("y ~ Q('odd name')", "quoted by backticks"),
    ("y ~ sin(a)", "sin is not among the functions"),
    ("y ~ I(a > 1)", "'a > 1' .* none of the operations"),
    ("y ~ I(a ^ 2)", "a power is written x \\*\\* 2"),
    ("y ~ a[0]", "none of the operations"),
    ("y ~ I(a if b else c)", "none of the operations"),
    ("y ~ I(lambda: a)", "none of the operations"),
    ("y ~ I(__import__('os').system('true'))", "not among the functions"),
    ("y ~ I(a.mean())", "a.mean is not among the functions"),
    ("y ~ log(a, 2)", "exactly one expression"),
    ("y ~ log(x=a)", "exactly one expression"),
    ("y ~ log(*a)", "exactly one expression"),
    ("y ~ I('text')", "a constant must be a finite number"),
    ("y ~ I(True * a)", "a constant must be a finite number"),
    ("y ~ I(1e999 * a)", "a constant must be a finite number"),
    ("y ~ I(a ** b)", "the exponent must be a constant"),
    ("y ~ I(a ** 65)", "from -64 to 64"),
    ("y ~ I(a ** (0 / 0))", "from -64 to 64"),
    ("y ~ log(region)", "categorical column 'region' in arithmetic"),
    ("y ~ I(region)", "categorical column 'region' in arithmetic"),
    # operators
    ("y ~ a / b", "for a quotient write I\\(a / b\\)"),
    ("y ~ a %in% b", "write a:b"),
    ("y ~ a | b", "one formula for each part"),
    ("y ~ 2*a", "has 2 as a term or factor; a constant in a formula is written inside of I\\(\\)"),
    ("y ~ a + 0.5", "has 0.5 as a term"),
    ("y ~ 1:a", "has 1 as a term or factor"),
    ("y ~ 1e3:a", "has 1e3 as a term"),
    ("y ~ 'text'", "has 'text' as a term"),
    ("y ~ a**b", "no whole number from 1 to 99"),
    ("y ~ a**0.5", "as in I\\(age \\*\\* 0.5\\)"),
    ("y ~ region**2", "power of the categorical column 'region'"),
    ("y ~ (a:b)**2", "write I\\(\\(a \\* b\\) \\*\\* 2\\)"),
    ("y ~ a:a", "crosses 'a' with itself"),
    ("y ~ a*a", "crosses 'a' with itself"),
    ("y ~ a - b", "takes away 'b', which is not in it"),
    ("y ~ -a", "takes away 'a'"),
    ("y ~ (" + " + ".join(f"I(a + {i})" for i in range(70)) + ")**3", "more than 4096 terms"),
    # terms that make no sense
    ("y ~ 0", "neither a term nor an intercept"),
    ("y ~ a - a - 1", "neither a term nor an intercept"),
    ("y ~ a + a", "has the term 'a' twice; write it once"),
    ("y ~ a + I(a)", "has the term 'I\\(a\\)' twice \\(also written 'a'\\)"),
    ("y ~ log(a) + np.log(a)", "twice"),
    ("y ~ a**2 + I(a**2)", "twice"),
    ("y ~ log(3)", "is a constant; the intercept stands for constants"),
    ("y ~ I(a * 0)", "'I\\(a \\* 0\\)' .* is constant: it is 0"),
    ("y ~ I(a ** 0)", "is constant: it is 1"),
    ("y ~ I(a + 1e300)", "is constant"),
    ("y ~ I(a * 1e-320)", "bounds that no grid fits"),
    ("y ~ log(-a)", "not defined for any value within the bounds of the schema, a from 0.5 to 2"),
    # the response
    ("1 ~ a", "the response '1' .* is a constant"),
    (
        "region ~ a",
        "the response 'region' .* is categorical.* logistic regression .* declare it as cf.Integer\\(0, 1\\)",
    ),
    ("y + b ~ a", "must be one term; .* write I\\(y \\+ b\\) ~"),
    ("y:a ~ b", "cannot be read as arithmetic"),
    ("scale(y) ~ a", "learned from the records"),
    ("y ~ a + y", "'y' is also among the features .*, in 'y'"),
    ("y ~ a + log(y)", "also among the features .*, in 'log\\(y\\)'"),
    ("log(y) ~ y:a", "also among the features .*, in 'y:a'"),
    ("I(y - a) ~ I(y - a)", "also among the features"),
]


@pytest.mark.parametrize(("formula", "said"), ERRORS, ids=[str(formula)[:40] for formula, _ in ERRORS])
def test_errors(formula: str, said: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        Design.of(formula, SCHEMA)
    assert len(str(caught.value)) < 900


def test_no_error_chain_shows_the_parsers_insides() -> None:
    with pytest.raises(PlanError) as caught:
        Design.of("y ~ a b", SCHEMA)
    assert caught.value.__suppress_context__ and caught.value.__cause__ is None
    assert "\x1b" not in str(caught.value)


def test_schema_must_be_a_schema() -> None:
    with pytest.raises(PlanError, match=r"must be a confide\.Schema, got dict"):
        Design.of("y ~ a", {"y": 1})  # type: ignore[arg-type]


def test_two_columns_of_one_name() -> None:
    schema = Schema(
        {"y": Numeric(0, 1), "a": Numeric(0, 1), "b": Numeric(0, 1), "a:b": Numeric(0, 1), "Intercept": Numeric(0, 1)}
    )
    with pytest.raises(PlanError, match=r"two columns .* are called 'a:b'"):
        Design.of("y ~ `a:b` + a:b", schema)
    with pytest.raises(PlanError, match=r"called 'Intercept'"):
        Design.of("y ~ Intercept", schema)


# bounds ---------------------------------------------------------------------------------------------------------------


def test_bounds_come_from_interval_arithmetic() -> None:
    design = Design.of("y ~ a:b + I(a ** 2) + sqrt(income) + age:region + I(income / 1000)", SCHEMA)
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
        with pytest.raises(PlanError, match="no finite bounds") as caught:
            Design.of(formula, SCHEMA)
        argument = str(caught.value).split("term_bounds=")[1].split("}")[0] + "}"
        bounds = eval(argument)  # the text is the library's own message
        assert isinstance(bounds, dict)
        design = Design.of(formula, SCHEMA, term_bounds=bounds)
        ((name, pair),) = bounds.items()
        assert any(name in term.name for term in (*design.terms, design.response))
        assert dict(design.term_bounds)[name] == tuple(map(float, pair))


def test_given_bounds_are_used() -> None:
    design = Design.of("y ~ log(income) + log(income):a", SCHEMA, term_bounds={"log( income )": (0, 14)})
    assert [(term.name, term.low, term.high) for term in design.terms] == [
        ("log(income)", 0.0, 14.0),
        ("log(income):a", 0.0, 28.0),
    ]
    design = Design.of(
        "y ~ log(income):a", SCHEMA, term_bounds={"log(income)": (0, 14), "log(income):a": np.array([1, 5])}
    )
    assert (design.terms[0].low, design.terms[0].high) == (1.0, 5.0)
    assert Design.of("log(income) ~ a", SCHEMA, term_bounds={"log(income)": [0, 14]}).response.high == 14.0


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (3, "must be a mapping of names to pairs, got int"),
        ({"log(income)": 3}, "must be a pair of finite numbers with the smaller first, got 3; write term_bounds"),
        ({"log(income)": (14, 0)}, r"got \(14, 0\)"),
        ({"log(income)": (0, 0)}, r"got \(0, 0\)"),
        ({"log(income)": (0, float("inf"))}, "pair of finite numbers"),
        ({"log(income)": (False, True)}, "pair of finite numbers"),
        ({"log(income)": ("0", "1")}, "pair of finite numbers"),
        ({"log(income)": (0, 5e-324)}, "no grid fits"),
        (
            {"log(income)": (0, 14), "log(incom)": (0, 1)},
            r"'log\(incom\)' \(did you mean 'log\(income\)'\?\).* those are: log\(income\)",
        ),
        ({"log(income)": (0, 14), "a": (0, 1)}, "names the column 'a', whose bounds stand in the schema"),
        ({"log(income)": (0, 14), "region[T.S]": (0, 2)}, "no derived term"),
    ],
)
def test_wrong_term_bounds(bounds: object, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Design.of("y ~ log(income) + a + region", SCHEMA, term_bounds=bounds)  # type: ignore[arg-type]


def test_term_bounds_without_a_derived_term() -> None:
    with pytest.raises(PlanError, match="it has none: plain columns have their bounds in the schema"):
        Design.of("y ~ b", SCHEMA, term_bounds={"log(b)": (0, 1)})
