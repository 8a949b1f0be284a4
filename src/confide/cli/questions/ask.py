"""Tests that `confide infer` asks of a released table, and one question of a publication: both cost nothing more."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from confide._text import near_match
from confide.cli.session import Refused
from confide.errors import PlanError

__all__ = ["TESTS", "Asked", "TestsOwn", "known_test", "not_of_a_release"]

# as in cf.tests, which is slow to load: the name of the method behind each is its own
TESTS = (
    "ttest_ind",
    "ttest_rel",
    "f_oneway",
    "chi2_contingency",
    "chisquare",
    "binomtest",
    "trend",
    "pearsonr",
    "mannwhitneyu",
    "kruskal",
    "wilcoxon",
)
# what people call them
CALLED = {
    "t": "ttest_ind", "t_test": "ttest_ind", "ttest": "ttest_ind", "t-test": "ttest_ind", "paired": "ttest_rel",
    "f": "f_oneway", "anova": "f_oneway",
    "chi2": "chi2_contingency", "chisq": "chi2_contingency", "binomial": "binomtest", "correlation": "pearsonr", "cor": "pearsonr",
    "mann-whitney": "mannwhitneyu", "kruskal-wallis": "kruskal",
}  # fmt: skip


def known_test(name: str, call: Callable[[str], str]) -> str:
    """The name of a test; `Refused` for another, with the call of the one that is meant."""
    if name not in TESTS:
        meant = CALLED.get(name.lower())
        lead = f"; write {call(meant)}" if meant else ""
        near = "" if meant else near_match(name, TESTS)
        raise Refused(f"there is no test {name!r}{near}{lead}; there are: {', '.join(TESTS)}")
    return name


@dataclass(frozen=True)
class TestsOwn:
    """What a test takes beside its formula."""

    p: Annotated[float | None, typer.Option("--p", help="binomtest: the share to test.")] = None
    level: Annotated[
        str | None,
        typer.Option("--level", help="binomtest, trend: the level whose share it is; left out, the last one."),
    ] = None
    expected: Annotated[
        str | None,
        typer.Option("--expected", metavar="A,B,C", help="chisquare: public shares, in the order of the levels."),
    ] = None

    def given(self) -> dict[str, Any]:
        """As the calls in `cf.tests` take it."""
        shares = None
        if self.expected is not None:
            try:
                shares = [float(part) for part in self.expected.split(",")]
            except ValueError:
                raise Refused(f"--expected takes numbers, got {self.expected!r}; write --expected .5,.3,.2") from None
        own = {"p": self.p, "level": self.level, "f_exp": shares}
        return {key: value for key, value in own.items() if value is not None}


@dataclass(frozen=True)
class Asked:
    """What `confide infer` asks beside the table itself."""

    question: Annotated[
        str | None,
        typer.Option("--question", metavar="NAME", help="Of a publication: this question's result alone."),
    ] = None
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="TEST",
            help="Of a table of counts, shares or means: a test in place of the table, under its name in scipy.stats (ttest_ind, "
            "f_oneway, chi2_contingency, ...), at no further cost.",
        ),
    ] = None
    own: TestsOwn = TestsOwn()

    def check(self, formula: str | None, others: dict[str, Any]) -> None:
        """What can be known before the release is read. others: options that a test or a question has no use for."""
        if self.test is not None:
            known_test(self.test, lambda name: f"--test {name}")
        elif formula is not None or self.own.given():
            raise Refused(
                "FORMULA, --p, --level and --expected are of a test; write --test NAME, such as --test ttest_ind"
            )
        for option, given in others.items():
            if given and (self.test is not None or self.question is not None):
                raise Refused(
                    f"{option} is of the whole release; leave out {option}, or --test and --question; a test's figures: --csv, --json"
                )

    def of(self, result: Any, path: Path, formula: str | None) -> Any:
        """The question's result, and the answer to the test where one is asked for."""
        if self.question is not None:
            if not hasattr(result, "statuses"):
                raise PlanError("--question is of a publication, and this release holds one question; leave it out")
            result = result[self.question]
        if self.test is None:
            return result
        if hasattr(result, "statuses"):
            found = [line for name in result.results for line in _commands(result.results[name], path, name)]
            raise Refused(f"a publication's tests are of one question; {_listed(found)}")
        found = _commands(result, path, self.question)
        formula = formula if formula is not None else _only(result, self.test, found)
        if not found:
            raise Refused(_NONE)
        from confide.faces.calls.released_tests import ask

        try:
            return ask(result, self.test, formula, **self.own.given())
        except PlanError as error:
            raise PlanError(f"{error}; {_listed(found)}") from None


_NONE = (
    "this release answers none: tables of counts, shares and means do; differences of a distribution's quantiles are .diff() of it in "
    "Python, at no further charge; confide test asks the records, and is charged"
)


def _only(table: Any, test: str, commands: list[str]) -> str:
    """The one formula that a test can be about in this table."""
    from confide.methods.tables.comparing.answers import answers

    possible = [answer.formula for answer in answers(table) if answer.verb == test]
    if len(possible) != 1:
        raise Refused(f"say of which columns; {_listed(commands)}" if commands else _NONE)
    return possible[0]


def _commands(table: Any, path: Path, question: str | None) -> list[str]:
    """The commands of some tests that a table answers."""
    from confide.methods.tables.comparing.answers import answers, some

    named = [] if question is None else ["--question", question]
    return [
        shlex.join(["confide", "infer", str(path), answer.formula, *named, "--test", answer.verb])
        for answer in some(answers(table))
    ]


def _listed(commands: list[str]) -> str:
    return "this file answers:\n  " + "\n  ".join(commands) if commands else _NONE


def not_of_a_release(ctx: typer.Context, value: Any) -> Any:
    """Lead from `confide test ... release.json` to `confide infer`: read before options that records alone need are missed."""
    for path in map(Path, value if isinstance(value, (list, tuple)) else [value]):
        if path.suffix.lower() == ".json" and path.is_file():
            given = [ctx.params.get(name) for name in ("formula", "name")]
            formula, test = (None if text is None or Path(text) == path else str(text) for text in given)
            test = CALLED.get(test.lower(), test) if test is not None else "TEST"
            of = [] if formula is None else [formula]
            raise Refused(
                f"{path} is no file of records; a table that was released answers tests at no further cost: "
                f"{shlex.join(['confide', 'infer', str(path), *of, '--test', test])}"
            )
    return value
