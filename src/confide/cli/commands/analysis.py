"""`confide plan | release | infer | regress`: the three steps, and all of them in one; what is asked of a release that is there."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later, near_match
from confide.cli.commands.derived_quantities import Calibrated, DerivedOptions, is_report
from confide.cli.commands.publish import asked_in, is_publication, plan_in
from confide.cli.engine import (
    OneStepRequest,
    after,
    at_once,
    begin,
    check_relation,
    make,
    open_ledger,
    paid_facts,
    pay,
    remember,
    source_of,
)
from confide.cli.files import (
    Drawings,
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
from confide.cli.messages import for_command_line
from confide.cli.options import (
    Account,
    Alpha,
    Covers,
    Data,
    Dataset,
    Delimiter,
    Executor,
    KeepOthers,
    Nominal,
    Parameters,
    Privacy,
    SchemaFile,
    Seed,
    Written,
    spread,
    value_of,
)
from confide.cli.session import Refused, Session
from confide.errors import PlanError

if TYPE_CHECKING:
    from confide import engine, registry
else:
    engine, registry = later("confide.engine"), later("confide.registry")


def quantiles_of(text: str | None) -> tuple[float, ...] | None:
    """The quantiles of --q; `Refused` for what is none."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < one < 1 for one in found):
        raise Refused(f"--q takes numbers between 0 and 1, got {text!r}; write --q .25,.5,.75")
    return found


@dataclass(frozen=True)
class RequeryOptions:
    """A question to a release that is there: what is left out stays as the plan has it."""

    subset: Annotated[
        str | None,
        typer.Option(
            "--subset",
            metavar="A,B",
            help="Keep these coefficients only, by name or by factor; the intercept stays. Beside numeric columns the default "
            "line's smaller models have no intervals; those of --method ssp have.",
        ),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="credible|confidence", help="Of an interval: a posterior, or confidence limits."
        ),
    ] = None
    prior: Annotated[
        str | None,
        typer.Option("--prior", metavar="PRIOR", help='Of a posterior: another prior, such as "beta(2, 5)".'),
    ] = None
    q: Annotated[str | None, typer.Option("--q", metavar="Q,Q", help="Of quantiles: others, such as .25,.5,.75.")] = (
        None
    )
    covers: Covers = None

    def given(self) -> dict[str, str | None]:
        """What was asked, by its option."""
        return {
            "--subset": self.subset,
            "--kind": self.kind,
            "--prior": self.prior,
            "--q": self.q,
            "--covers": self.covers,
        }

    def question(self) -> Any:
        """The question; None where nothing is asked anew."""
        from confide.core import Question

        if not any(given is not None for given in self.given().values()):
            return None
        return Question(
            subset=_names(self.subset),
            kind=self.kind,
            prior=self.prior,
            quantiles=quantiles_of(self.q),
            covers=self.covers,
        )


def _names(subset: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, or a JSON list when a name has a comma in it."""
    if subset is None:
        return None
    names = value_of(subset)
    if isinstance(names, tuple) and names and all(isinstance(name, str) for name in names):
        return names
    return tuple(name.strip() for name in subset.split(",") if name.strip())


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
class TestArguments:
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
class AnswerOptions:
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
    own: TestArguments = TestArguments()

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
            if not is_report(result):
                raise PlanError("--question is of a publication, and this release holds one question; leave it out")
            result = result[self.question]
        if self.test is None:
            return result
        if is_report(result):
            found = [line for name in result.results for line in _commands(result.results[name], path, name)]
            raise Refused(f"a publication's tests are of one question; {_listed(found)}")
        found = _commands(result, path, self.question)
        formula = formula if formula is not None else _only(result, self.test, found)
        if not found:
            raise Refused(_NONE)
        from confide.ask.tests import ask_release

        try:
            return ask_release(result, self.test, formula, **self.own.given())
        except PlanError as error:
            raise PlanError(f"{error}; {_listed(found)}") from None


_NONE = (
    "this release answers none: tables of counts, shares and means do; differences of a distribution's quantiles are .diff() of it in "
    "Python, at no further charge; confide test asks the records, and is charged"
)


def _only(table: Any, test: str, commands: list[str]) -> str:
    """The one formula that a test can be about in this table."""
    from confide.methods.tables.comparing.chi_square import answers

    possible = [answer.formula for answer in answers(table) if answer.verb == test]
    if len(possible) != 1:
        raise Refused(f"say of which columns; {_listed(commands)}" if commands else _NONE)
    return possible[0]


def _commands(table: Any, path: Path, question: str | None) -> list[str]:
    """The commands of some tests that a table answers."""
    from confide.methods.tables.comparing.chi_square import answers, some

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


@spread
def plan(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="The method's first parameter: a formula for a regression; or a publication's TOML file.",
            show_default=False,
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="The schema (TOML): what is public about the data. A publication's file may name it itself.",
        ),
    ] = None,
    *,
    privacy: Privacy,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A name that `confide methods` lists: least_squares (a line), logistic (an outcome of two values), poisson (counts), "
            "kernel (a curve), ...",
        ),
    ] = "least_squares",
    parameters: Parameters,
    n: Nominal = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="LEDGER", help="Take an open relation from this ledger, and see whether it fits."
        ),
    ] = None,
    dataset: Dataset = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write the plan that `confide release` takes."),
    ] = None,
    written: Written,
) -> None:
    """Show what an analysis will spend and what it will give, before anything is spent.

    Reads the schema alone: no record is touched, nothing is charged, and all that
    is printed is public.

    Example:

    confide plan "happy ~ age + children" --schema schema.toml --mu 1 -o plan.json

    confide plan publication.toml
    """
    session: Session = ctx.obj
    asked = None
    if is_publication(model):
        with session.doing("reading the publication"):
            asked = asked_in(model)
        schema, n = schema or asked.schema, n or asked.n
    if schema is None:
        named = ', or schema = "schema.toml" in the publication\'s file' if asked is not None else ""
        raise Refused(f"a plan needs the schema; write --schema FILE{named}")
    with session.doing("plan"):
        if asked is None:
            terms = privacy.terms()
        else:
            own = privacy.given or not asked.priced
            terms = asked.terms(privacy.guarantee() if own else None)
    settings = parameters.settings()
    if dataset is not None and ledger is None:
        raise Refused("--dataset names an account in a ledger: it goes with --ledger")
    check_places({"-o": output}, {"the schema": schema, "the ledger": ledger_file(ledger)})
    session.ledger = ledger
    with reserve(output, force=written.force) as place:
        with session.doing("plan"):
            found = load_schema(schema)
            book = open_ledger(ledger, dataset, found.dataset)
            chosen = make(method, model, settings) if asked is None else asked.publication
            check_relation(chosen, book)
            planned = engine.plan(chosen, found, n=n, ledger=book, **terms)
        remember(session, planned, schema, Account(ledger, dataset=dataset))
        session.say(planned.summary())
        if book is not None:
            quote = book.preview(planned.guarantees)
            session.say(f"fits what is left in dataset {book.dataset!r}: {quote}")
            if quote.note:
                session.note(f"note: {for_command_line(quote.note)}")
        if place is not None:
            write_output(place, planned.to_json())
            session.say(
                f"wrote {output}: release it with: confide release {output} DATA --ledger LEDGER -o release.json"
            )
    session.answer({**plan_facts(planned), "ledger": ledger_facts(book), "wrote": output})


@spread
def release(
    ctx: typer.Context,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="A plan's file; the schema is in it. Or a publication's TOML file that names schema and privacy.",
            show_default=False,
        ),
    ],
    data: Data,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the release, which may be published.")
    ],
    *,
    account: Account,
    delimiter: Delimiter = ",",
    executor: Executor = None,
    keep_others: KeepOthers = False,
    simulate: Seed = None,
    written: Written,
) -> None:
    """Charge the ledger, then draw the noise, then write the release: once, and it cannot be had again.

    The file may be published: noisy numbers, the plan and its guarantee. Exit code
    6 says that it failed after the charge, which stays. If the file cannot be
    written then, the release is printed on stdout.

    Example:

    confide release plan.json survey.csv --ledger book.db -o release.json
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
            source = source_of(data, schema, delimiter, executor)
        remember(session, planned, None, account)
        paid = pay(session, planned, source, book, account, simulate, keep_others=keep_others, place=place)
        keep(session, place, paid.release)
    after(session, paid, output)
    session.say(f"infer with: confide infer {output}")
    session.answer({**paid_facts(paid), "wrote": output})


@spread
def infer(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's file.", show_default=False)],
    formula: Annotated[
        str | None,
        typer.Argument(
            metavar="[FORMULA]", help='Of --test: its columns, "income ~ sex"; one test needs none.', show_default=False
        ),
    ] = None,
    *,
    anew: RequeryOptions,
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
            help="Write the release again with these results in its file, for R and other readers without confide.",
            show_default=False,
        ),
    ] = None,
    drawings: Drawings,
    written: Written,
) -> None:
    """Print the table of a release: estimates, intervals, tests.

    Needs the published file alone, as often as you like: the same numbers each
    time, nothing is spent, and all that is printed is public.

    Examples:

    confide infer release.json --subset age --report report.html

    confide infer share.json --kind confidence

    confide infer incomes.json "income ~ sex" --test ttest_ind

    confide infer visits.json --ratios --effects --predict persons.csv

    confide infer incomes.json --poststratify sex=persons.csv

    confide infer release.json -o for-R.json
    """
    session: Session = ctx.obj
    asked.check(formula, {**anew.given(), "-o": output})
    beyond.check()
    calibrated.check()
    read = {"the release": release, "--predict": beyond.predict, **calibrated.files}
    check_places({"-o": output, **drawings.places}, read)
    from confide.ask.results_file import with_results

    with drawings.reserved(force=written.force) as drawn, reserve(output, force=written.force) as place:
        with session.doing("reading the release"):
            loaded = load_release(release)
        with session.doing("infer"):
            result = asked.of(engine.infer(loaded, anew.question()), release, formula)
        moved = calibrated.moved(session, result, alpha)
        frames = beyond.computed(session, result, alpha)
        show_result(session, result, alpha, drawn, tuple(moved.tables.values()))
        if place is not None:
            with session.doing("writing the results"):
                write_output(place, with_results(loaded, result_facts(result, alpha)))
            session.say(f"wrote {output}: the release with these results")
    more = beyond.show(session, result, frames) | moved.show(session)
    wrote = {} if output is None else {"wrote": output}
    session.answer({"result": result_facts(result, alpha), **more, **wrote, **vars(drawings)} if session.json else {})


@spread
def regress(
    ctx: typer.Context,
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help='For instance "happy ~ age + children".', show_default=False)
    ],
    data: Data,
    schema: SchemaFile,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="A regression that `confide methods` lists: least_squares (a line), logistic (and --set link=probit), poisson (counts), "
            "within (fixed effects of persons).",
        ),
    ] = "least_squares",
    no_clipping_check: Annotated[
        bool,
        typer.Option(
            "--no-clipping-check",
            help="Do not pay 1 % of the budget to learn how many responses lie outside their bounds.",
        ),
    ] = False,
    *,
    beyond: DerivedOptions,
    once: OneStepRequest,
) -> None:
    """Plan, release and infer a regression in one go, for a steward who is also the analyst.

    Charges the ledger once and prints the table, which may be published. Without
    -o the release is not kept, and another table of it costs the budget again.

    Examples:

    confide regress "happy ~ age" survey.csv --schema schema.toml --mu .5 \\
      --ledger book.db -o age.json

    confide regress "visits ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db --method poisson

    confide regress "smoker ~ age" survey.csv --schema schema.toml --mu 1 \\
      --ledger book.db --method logistic --ratios
    """
    beyond.check()
    settings = once.parameters.settings(clipping_check=False if no_clipping_check else None)
    at_once(ctx.obj, once, data, schema, method, formula, settings, beyond=beyond)
