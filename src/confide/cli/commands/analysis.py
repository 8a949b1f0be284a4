"""`confide plan | release | infer`: the three steps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import confide as cf
from confide._helpers import later, near_match
from confide.cli.commands.derived_quantities import Calibrated, DerivedOptions, is_report
from confide.cli.commands.publish import asked_in, is_publication, plan_in
from confide.cli.engine import (
    Delivery,
    after,
    begin,
    check_relation,
    make,
    open_ledger,
    paid_facts,
    pay,
    source_of,
)
from confide.cli.files import (
    Drawings,
    answer_result,
    check_places,
    keep,
    ledger_facts,
    ledger_file,
    load_plan,
    load_release,
    load_schema,
    plan_facts,
    reserve,
    result_facts,
    show_result,
    write_output,
)
from confide.cli.messages import plan_command
from confide.cli.options import (
    Account,
    AllowPartial,
    Alpha,
    Data,
    Dataset,
    Executor,
    Fields,
    FileOptions,
    Nominal,
    Parameters,
    PreflightOptions,
    Privacy,
    Seed,
    Verbose,
    Written,
    fields_of,
    spread,
)
from confide.cli.session import Refused, Session
from confide.core import Release, ResultOptions
from confide.errors import ConfideError, PlanError

if TYPE_CHECKING:
    from confide import engine, registry
    from confide.ask import tests
else:
    engine, registry, tests = later("confide.engine"), later("confide.registry"), later("confide.ask.tests")


#: What people call tests.
_CALLED = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "t=ttest_ind t_test=ttest_ind ttest=ttest_ind t-test=ttest_ind paired=ttest_rel f=f_oneway anova=f_oneway "
        "chi2=chi2_contingency chisq=chi2_contingency binomial=binomtest correlation=pearsonr cor=pearsonr "
        "mann-whitney=mannwhitneyu kruskal-wallis=kruskal",
    )
)


def known_test(name: str, call: Callable[[str], str]) -> None:
    """Refuse what is no test, with the call of the one that is meant."""
    if name not in tests.METHODS:
        meant = _CALLED.get(name.lower())
        near = "" if meant else near_match(name, tuple(tests.METHODS))
        remedy = f"write {call(meant)}" if meant else ""
        raise Refused(f"there is no test {name!r}{near}; there are: {', '.join(tests.METHODS)}", remedy)


@dataclass(frozen=True)
class TestArguments:
    """What a test takes beside its formula."""

    p: Annotated[float | None, typer.Option(help="binomtest: the share to test.")] = None
    level: Annotated[
        str | None, typer.Option(help="binomtest, trend: the level whose share is tested; left out, the last one.")
    ] = None
    expected: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="chisquare: public shares, in the order of the levels.")
    ] = None

    def given(self) -> dict[str, Any]:
        """As the calls in `cf.tests` take it."""
        shares = None
        if self.expected is not None:
            try:
                shares = [float(part) for part in self.expected.split(",")]
            except ValueError:
                raise Refused(
                    f"--expected takes numbers, got {self.expected!r}", "write --expected 0.5,0.3,0.2"
                ) from None
        own = {"p": self.p, "level": self.level, "f_exp": shares}
        return {key: value for key, value in own.items() if value is not None}


@dataclass(frozen=True)
class AnswerOptions:
    """Options of `confide infer` other than those of the table."""

    analysis: Annotated[str | None, typer.Option(metavar="NAME", help="Print one analysis of a publication.")] = None
    test: Annotated[
        str | None,
        typer.Option(
            metavar="TEST",
            help="Print a test instead of the table, under its name in scipy.stats, at no further cost.",
        ),
    ] = None
    own: TestArguments = TestArguments()

    def check(self, formula: str | None, others: dict[str, Any]) -> None:
        """What can be known before the release is read. others: options that a test or a question has no use for."""
        if self.test is not None:
            known_test(self.test, lambda name: f"--test {name}")
        elif formula is not None or self.own.given():
            raise Refused(
                "FORMULA, --p, --level and --expected are of a test", "write --test NAME, such as --test ttest_ind"
            )
        for option, given in others.items():
            if given and (self.test is not None or self.analysis is not None):
                raise Refused(
                    f"{option} is of the whole release",
                    f"leave out {option}, or --test and --analysis; a test's figures: --csv, --json",
                )

    def of(self, result: Any, path: Path, formula: str | None) -> Any:
        """The result of one analysis, or of a test of it."""
        if self.analysis is not None:
            if not is_report(result):
                raise PlanError("--analysis is for a publication, and this release holds one analysis", "leave it out")
            result = result[self.analysis]
        if self.test is None:
            return result
        if is_report(result):
            found = [line for name in result.results for line in _commands(result.results[name], path, name)]
            raise Refused("a publication's tests are of one analysis", _listed(found))
        found = _commands(result, path, self.analysis)
        formula = formula if formula is not None else _only(result, self.test, found)
        if not found:
            raise Refused(_NONE)
        try:
            return tests.ask_release(result, self.test, formula, **self.own.given())
        except PlanError as error:
            raise PlanError(str(error), _listed(found)) from None


_NONE = (
    "this release answers no test; tables of counts, shares and means do. In Python, .diff() of a table of quantiles compares groups at "
    "no further cost. A new test is a release: confide test"
)


def _only(table: Any, test: str, commands: list[str]) -> str:
    """The one formula that a test can be about in this table."""
    from confide.methods.tables.comparing.chi_square import answers

    possible = [answer.formula for answer in answers(table) if answer.verb == test]
    if len(possible) != 1:
        raise Refused("say of which columns", _listed(commands)) if commands else Refused(_NONE)
    return possible[0]


def _commands(table: Any, path: Path, analysis: str | None) -> list[str]:
    """The commands of some tests that a table answers."""
    from confide.methods.tables.comparing.chi_square import answers, available_answers

    named = [] if analysis is None else ["--analysis", analysis]
    return [
        shlex.join(["confide", "infer", str(path), answer.formula, *named, "--test", answer.verb])
        for answer in available_answers(answers(table))
    ]


def _listed(commands: list[str]) -> str:
    return "\n           ".join(["one of those that this file answers:", *commands]) if commands else _NONE


def not_of_a_release(ctx: typer.Context, value: Any) -> Any:
    """Lead from `confide test ... release.json` to `confide infer`: read before options that records alone need are missed."""
    for path in map(Path, value if isinstance(value, (list, tuple)) else [value]):
        if path.suffix.lower() == ".json" and path.is_file():
            given = [ctx.params.get(name) for name in ("formula", "name")]
            formula, test = (None if text is None or Path(text) == path else str(text) for text in given)
            test = _CALLED.get(test.lower(), test) if test is not None else "TEST"
            of = [] if formula is None else [formula]
            raise Refused(
                f"{path} is no file of records; a table that was released answers tests at no further cost",
                shlex.join(["confide", "infer", str(path), *of, "--test", test]),
            )
    return value


def _check_subset(release: Release, asked: dict[str, Any]) -> None:
    """`PlanError` where the method of a release fits no smaller model, with those that do."""
    own = registry.get(release.plan.method.name)
    if "subset" in asked and "subset" not in own.asks:
        others = [name for name in registry.known() if "subset" in registry.get(name).asks]
        raise PlanError(
            "--subset fits a smaller model, and this release does not hold what that needs",
            f"leave --subset out; releases of --method {', '.join(others)} answer subsets",
        )


@spread
def plan(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A formula, or the TOML file of a publication.",
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The schema file (TOML); the file of a publication may name it.",
        ),
    ] = None,
    *,
    privacy: Privacy,
    method: Annotated[
        str | None,
        typer.Option(help="The method, as `confide methods` lists them; left out, least_squares."),
    ] = None,
    parameters: Parameters,
    n: Nominal = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="Print the percentage of this ledger's budget, and take its relation."),
    ] = None,
    dataset: Dataset = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the plan to this file, for confide release."),
    ] = None,
    verbose: Verbose = False,
    written: Written,
) -> None:
    """Show the cost and the expected precision of an analysis.

    Reads the schema only and no record; all that it prints is public.

    Example:

    confide plan "happy ~ age + children" --schema schema.toml --mu 1 -o plan.json
    """
    session: Session = ctx.obj
    asked = None
    if is_publication(model):
        with session.doing("reading the publication"):
            asked = asked_in(model)
        schema, n = schema or asked.schema, n or asked.n
    if schema is None:
        named = ', or schema = "schema.toml" in the publication\'s file' if asked is not None else ""
        raise Refused("a plan needs the schema", f"write --schema FILE{named}")
    with session.doing("plan"):
        if asked is None:
            terms = privacy.terms()
        else:
            own = privacy.given or not asked.priced
            terms = asked.terms(privacy.guarantee() if own else None)
    settings = parameters.settings()
    if dataset is not None and ledger is None:
        raise Refused("--dataset names a budget in a ledger", "give --ledger, too")
    check_places({"-o": output}, {"the schema": schema, "the ledger": ledger_file(ledger)})
    session.ledger = ledger
    with reserve(output, force=written.force) as place:
        with session.doing("plan"):
            found = load_schema(schema)
            book = open_ledger(ledger, dataset, found.dataset)
            chosen = (
                make(method or cf.regression.LeastSquares.name, model, settings) if asked is None else asked.publication
            )
            check_relation(chosen, book)
            planned = engine.plan(chosen, found, n=n, ledger=book, **terms)
        session.dataset = None if book is None else book.dataset

        def show(budget: str = "") -> None:
            text = planned.summary(verbose=session.verbose, budget=budget)
            session.say(text.replace("summary(verbose=True)", "--verbose"))

        try:
            quote = None if book is None else book.preview(planned.guarantees)
        except ConfideError:
            show()
            raise
        show("" if quote is None or book is None else quote.words(book.dataset))
        if quote is not None and quote.note:
            session.note(f"note: {session.worded(quote.note)}")
        if place is not None:
            write_output(place, planned.to_json())
            charged = "LEDGER" if ledger is None or "://" in ledger else shlex.quote(ledger)
            session.say(f"\nWrote {output}")
            session.say(f"Next       confide release {output} DATA --ledger {charged} -o release.json")
    session.answer({**plan_facts(planned), "ledger": ledger_facts(book), "wrote": output})


@spread
def release(
    ctx: typer.Context,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="A plan file, or the TOML file of a publication that names its schema and cost.",
        ),
    ],
    data: Data,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="Write the release, which may be published, to this file."),
    ],
    *,
    account: Account,
    file: FileOptions,
    preflight: PreflightOptions,
    executor: Executor = None,
    allow_partial: AllowPartial = False,
    simulate: Seed = None,
    written: Written,
) -> None:
    """Charge the ledger, draw the noise, write the release of a plan.

    The file may be published: it holds noisy statistics, the plan and the guarantee.
    Before the charge, stderr says how the records are read: exact counts, for the
    steward only. Exit code 6 means that a step after the charge failed; the charge
    stays. If the file cannot be written, the release is printed on stdout.

    Example:

    confide release plan.json survey.csv --ledger ledger.db -o release.json
    """
    session: Session = ctx.obj
    begin(session, account, simulate, {"-o": output}, {"the plan": plan}, data)
    with session.doing("reading the plan"):
        from confide.schema import Schema

        planned = plan_in(plan) if is_publication(plan) else load_plan(plan)
        schema = Schema.from_dict(planned.schema)
        # made anew, because a price is said of it: nothing that a file states is believed
        planned = engine.plan(planned, schema)
    with reserve(output, force=written.force) as place:
        with session.doing("opening the ledger"):
            book = open_ledger(account.ledger, account.dataset, schema.dataset)
            check_relation(registry.get(planned.method.name), book)
        with session.doing("opening the data", private=True):
            source = source_of(data, schema, file, executor)
        session.cheaper = partial(plan_command, planned, ledger=account.ledger, dataset=account.dataset)
        result = Delivery(place, allow_partial=allow_partial)
        paid = pay(session, planned, source, book, account, simulate, result, preflight)
        keep(session, place, paid.release)
    after(session, paid, output)
    session.say(f"Next       confide infer {output}")
    session.answer({**paid_facts(paid), "wrote": output})


#: A question to a release that is there: what is left out stays as the plan has it.
_ASKED_ANEW = fields_of(ResultOptions, but=("contrasts", "formula", "loss"))


@partial(spread, anew=_ASKED_ANEW)
def infer(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.")],
    formula: Annotated[
        str | None,
        typer.Argument(
            metavar="[FORMULA]",
            help='The columns of --test, such as "income ~ sex"; left out if the table has one such test.',
            show_default=False,
        ),
    ] = None,
    *,
    anew: Fields,
    asked: AnswerOptions,
    beyond: DerivedOptions,
    calibrated: Calibrated,
    alpha: Alpha = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the release again with these results in its file, for R.",
            show_default=False,
        ),
    ] = None,
    drawings: Drawings,
    written: Written,
) -> None:
    """Print the table of a release: estimates, intervals, tests.

    Reads the released file only. Results are the same each time, cost nothing and
    are public.

    Example:

    confide infer release.json --report report.html
    """
    session: Session = ctx.obj
    options = anew.given()
    asked.check(formula, {**{f"--{name}": True for name in options}, "-o": output})
    beyond.check()
    calibrated.check()
    read = {"the release": release, "--predict": beyond.predict, **calibrated.files}
    check_places({"-o": output, **drawings.places}, read)
    from confide.ask.results_file import with_results

    with drawings.reserved(force=written.force) as drawn, reserve(output, force=written.force) as place:
        with session.doing("reading the release"):
            loaded = load_release(release)
        with session.doing("infer"):
            _check_subset(loaded, options)
            result = beyond.shown(asked.of(engine.infer(loaded, **options), release, formula))
        if drawings.plot is not None and is_report(result):
            raise Refused("a publication is drawn question by question", f"add --analysis {next(iter(result.results))}")
        moved = calibrated.moved(session, result, alpha)
        frames = beyond.computed(session, result, alpha)
        show_result(session, result, alpha, drawn, tuple(moved.tables.values()), drawings=drawings)
        if place is not None:
            with session.doing("writing the results"):
                write_output(place, with_results(loaded, result_facts(result, alpha)))
            session.say(f"Wrote {output}: the release with these results")
    more = beyond.show(session, result, frames) | moved.show(session)
    wrote = {} if output is None else {"wrote": output}
    answer_result(session, result, alpha, drawings, **more, **wrote)
