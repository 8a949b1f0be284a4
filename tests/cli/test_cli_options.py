"""Privacy, ledger and settings as options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.cli.cli_runner import good, run
from tests.messages import refuses

from confide.cli.options import Parameters, Privacy, fields_of, value_of
from confide.cli.session import Refused
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP
from confide.registry import settings_of

PLAN = ("plan", "happy ~ age", "--schema", "schema.toml")


@dataclass(frozen=True)
class First:
    """A toy.

    Parameters
    ----------
    model : str
        What is asked.
    power : int, default 1
        How much, 1 or 2.

    Notes
    -----
    More of it.
    """

    model: str
    power: int = 1
    labels: tuple[str, ...] = ()
    cuts: float | Sequence[float] = 0.0
    bounds: Mapping[str, tuple[float, float]] | None = None


@dataclass(frozen=True)
class Second(First):
    """Another one.

    Parameters
    ----------
    model : str
        What is asked.
    power : int, default 1
        How much, 1 or 2.
    quick : bool, default True
        Whether.
    """

    quick: bool = True


TOYS = (First, Second)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ((1.5, None, None, None, None), GDP(1.5)),
        ((None, 0.25, None, None, "substitute"), ZCDP(0.25, relation="substitute")),
        ((None, None, 2.0, None, None), PureDP(2.0)),
        ((None, None, 2.0, 1e-6, "add-remove"), ApproxDP(2.0, 1e-6, relation="add-remove")),
        ((1.0, None, None, 1e-6, None), GDP(1.0, 1e-6)),
    ],
)
def test_each_way_to_ask(given_, expected):
    assert Privacy(*given_).guarantee() == expected


def test_numbers_as_people_write_them():
    written = {
        ".05": 0.05,
        "-.5": -0.5,
        "5.": 5.0,
        "+2": 2,
        "+.5e-3": 5e-4,
        "1.e3": 1e3,
        "[.1, -.2, 3]": (0.1, -0.2, 3),
    }
    assert {text: value_of(text) for text in written} == written
    assert type(value_of("5.")) is float and type(value_of("+2")) is int
    for text in ("log(.5)", "a.5", "1.5.2", "y ~ a + .5", "007", "v1.", '".5"x', "."):
        assert value_of(text) == text
    assert value_of('{"a": ".5"}') == {"a": ".5"}
    assert Parameters(["c0=.05"]).settings() == {"c0": 0.05}


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_exactly_one_way(present):
    mu, rho, epsilon, delta = (
        value if there else None for value, there in zip((1.0, 0.5, 2.0, 1e-6), present, strict=True)
    )
    allowed = sum(present[:3]) == 1 and (delta is None or rho is None)
    if allowed:
        Privacy(mu, rho, epsilon, delta).guarantee()
        return
    with pytest.raises(Refused) as refused:
        Privacy(mu, rho, epsilon, delta).guarantee()
    for way in ("--mu", "--rho", "--epsilon", "--delta"):
        assert way in str(refused.value)


@pytest.mark.parametrize(
    "words", [(), ("--delta", "1e-6"), ("--mu", "1", "--rho", "1"), ("--rho", "1", "--delta", "1e-6"), ("--mu", "one")]
)
def test_unclear_privacy_is_a_usage_error(survey, words):
    done = run(*PLAN, *words)
    assert done.code == 2
    assert "--mu" in done.err
    assert run(*PLAN, *words, "--json").json["error"] == "UsageError"


@pytest.mark.parametrize(
    "words",
    [
        ("--mu", "0"),
        ("--mu", "nan"),
        ("--mu=-1",),
        ("--mu", "inf"),
        ("--epsilon", "1", "--delta", "2"),
        ("--mu", "1", "--relation", "none"),
    ],
)
def test_impossible_privacy_is_refused_by_its_own_error(survey, words):
    assert run(*PLAN, *words).code == 3
    assert run(*PLAN, *words, "--json").json["error"] == "PrivacyError"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("None", None),
        ("null", None),
        ("robust", "robust"),
        ("", ""),
        ('"1"', "1"),
        ("[0, [1]]", (0, (1,))),
        ('{"log(x)": [0, 14]}', {"log(x)": (0, 14)}),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("a=b", "a=b"),
        ("{", "{"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_values_are_json_or_text(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_settings_keep_what_follows_the_first_sign():
    assert Parameters(["a=b=c", "d = 1"]).settings() == {"a": "b=c", "d": 1}
    for wrong in (["a"], ["=1"], ["a b=1"], ["a=1", "a=2"]):
        with refuses(Refused):
            Parameters(wrong).settings()


def test_set_reaches_the_method_and_names_what_it_does_not_have(survey):
    done = good(
        *PLAN,
        "--mu",
        "1",
        "--method",
        "ssp",
        "--param",
        "cov=classical",
        "--param",
        "clipping_check=false",
        "--param",
        "recenter=false",
        "--json",
    ).json
    assert done["parameters"]["cov"] == "classical"
    assert done["parameters"]["clipping_check"] is False
    assert [spend["name"] for spend in done["spends"]] == ["range of age", "range of happy", "moments"]
    assert run(*PLAN, "--mu", "1", "--param", "colour=red").code == 3
    assert "formula" in run(*PLAN, "--mu", "1", "--param", "formula=y~x").err


def test_unknown_method_names_the_near_match(survey):
    done = run(*PLAN, "--mu", "1", "--method", "sssp")
    assert done.code == 3
    assert "did you mean 'ssp'" in done.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--ledger", "ledger.db", "--unaccounted"),
        ("--ledger", "ledger.db", "--simulate", "1"),
        ("--unaccounted", "--dataset", "survey"),
        ("--unaccounted", "--simulate", "-1"),
    ],
)
def test_release_and_regress_want_one_way_to_account(planned, words):
    for command in (("release", "plan.json"), ("regress", "happy ~ age")):
        more = ("--schema", "schema.toml", "--mu", "1") if command[0] == "regress" else ()
        done = run(*command, "survey.csv", "-o", "new.json", *more, *words)
        assert done.code == 2
        assert not Path("new.json").exists()


def test_an_option_of_several_commands_is_written_once():
    # what a ledger, a file or a rate is to a command may differ; what may be spent, on which records and how it is counted may not
    from typer.main import get_command

    from confide.cli import app

    commands = get_command(app).commands
    shared = {"table", "test", "describe", "regress", "publish", "synthesize", "release", "plan", "advise"}
    helps: dict[str, set[str]] = {}
    for name in shared:
        for option in commands[name].params:
            helps.setdefault(option.opts[0], set()).add(option.help or "")
    several = {option for option, texts in helps.items() if len(texts) > 1}
    # of what classes say of their fields, a command shows what its own methods have
    of_fields = {"--bounds", "--weights", "--term-bounds", "--inference"}
    assert several <= {"-o", "--ledger", "--schema", "--method", "--n", "formula", *of_fields}
    for name in ("table", "test", "describe", "regress"):
        own = {option.opts[0] for option in commands[name].params}
        assert {"--mu", "--ledger", "--param", "--where", "--report", "--alpha", "--simulate"} <= own


def test_options_are_made_of_the_fields_of_a_method(survey):
    group = fields_of(*TOYS)
    assert [one.name for one in fields(group)] == ["power", "labels", "cuts", "bounds", "quick"]
    # an option of a field turns its default around, here by --no-quick
    given = group(power=2, labels="a, b", cuts=".5", bounds='{"x": [0, 1]}', quick=True).given()
    assert given == {"power": 2, "labels": ("a", "b"), "cuts": 0.5, "bounds": {"x": (0, 1)}, "quick": False}
    assert group().given() == {}
    first, second = ({one.name: (one.form, one.text) for one in settings_of(kind)} for kind in (First, Second))
    assert first["power"] == second["power"] == ("int, default 1", "How much, 1 or 2.")


def test_a_setting_is_an_option_wherever_a_command_asks_its_method(survey):
    rest = ("survey.csv", "--schema", "schema.toml", "--mu", "1", "--unaccounted", "--json")
    done = good("regress", "happy ~ age", *rest, "--limit", "none", "--no-clipping-check").json
    assert '"limit": "none"' in json.dumps(done["release"])
    assert (
        run("regress", "happy ~ age", *rest, "--link", "probit")
        .json["message"]
        .startswith("method 'least_squares' has no parameter 'link'")
    )
