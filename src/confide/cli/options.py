"""Options that several commands share, each written once: privacy, ledger, JSON, settings of a method.

An option is an annotated type. Options that go together are a group, a frozen dataclass whose fields are options, or groups again, with
what is checked about them. A command takes a group as one parameter (`spread`), and the command line shows each of its options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from functools import partial, update_wrapper
from inspect import Parameter, Signature, signature
from itertools import takewhile
from math import inf
from operator import xor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer

from confide.cli.session import Refused

if TYPE_CHECKING:
    from confide.guarantees import Guarantee
    from confide.registry import Setting


_SPENT = partial(
    typer.Option, rich_help_panel="Privacy: one of --mu, --rho, --epsilon; of one analysis also --margin, --cv"
)
_KEPT = partial(typer.Option, rich_help_panel="Ledger: one of --ledger, --unaccounted")


Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="The dataset in the ledger; needed only if neither the schema nor the ledger decides it.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--simulate",
        metavar="SEED",
        help="Simulated noise, which PROTECTS NO ONE, for a rehearsal; only with --unaccounted.",
    ),
]

SchemaFile = Annotated[Path, typer.Option("--schema", metavar="FILE", help="The schema file (TOML).")]
FILES = "CSV, Parquet, Excel, OpenDocument, SPSS, Stata or SAS transport, or a table, as in survey.sqlite/answers"
RECORDS = f"The records: files of {FILES}."
Data = Annotated[list[Path], typer.Argument(metavar="DATA...", help=RECORDS)]
Nominal = Annotated[
    int | None,
    typer.Option(
        "--n",
        help="Number of records, for the forecast; it may be a guess, except under the relation substitute, where it is public.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="KEY=VALUE",
        help="One further parameter of the method; repeat for more.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option("--alpha", help="Intervals have level 1 - alpha; left out, 0.05.", show_default=False),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a report: .html or .docx with its picture, or .md or .tex; a .tex report shows the picture of --plot FILE.pdf.",
    ),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Write the plot: .png, .svg or .pdf.")]
#: Kinds of pictures, of all results.
PICTURES = ("bars", "points", "map", "box", "cdf", "histogram", "ratios", "coefficients", "forest")
PlotKind = Annotated[
    str | None,
    typer.Option(
        "--plot-kind",
        metavar="KIND",
        help="Kind of the picture. For tables: bars, points or map. For quantiles: box, cdf or histogram. For logistic and Poisson "
        "regressions: ratios or coefficients.",
        show_default=False,
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TEXT", help="Title of the picture, instead of the result's own.", show_default=False
    ),
]
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the table with all digits, for a spreadsheet.")
]


def _say_all(ctx: typer.Context, wanted: bool) -> bool:
    ctx.obj.verbose = ctx.obj.verbose or wanted
    return wanted


Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print all facts and notes, as in the report.", callback=_say_all),
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="URL",
        help="A cluster whose workers read the files: dask://host:8786 or spark://host:7077; left out, this machine.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]

Keep = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the release to this file.")]
AllowPartial = Annotated[
    bool,
    typer.Option(
        "--allow-partial",
        help="Write a publication although an analysis failed after the charge; that it failed may depend on the records.",
    ),
]

_THREE_WAYS = (
    "--mu MU for Gaussian DP (with --delta DELTA for methods that may fail), --rho RHO for zCDP, --epsilon EPSILON for pure DP (with "
    "--delta DELTA for approximate DP)"
)


@dataclass(frozen=True)
class Privacy:
    """The privacy cost: exactly one of three kinds of guarantee, with a neighboring relation or the default one."""

    mu: Annotated[float | None, _SPENT(help="Gaussian DP with parameter mu.")] = None
    rho: Annotated[float | None, _SPENT(help="Zero-concentrated DP with parameter rho.")] = None
    epsilon: Annotated[float | None, _SPENT(help="Pure DP with parameter epsilon; with --delta approximate DP.")] = None
    delta: Annotated[
        float | None, _SPENT(help="The delta of approximate DP, or of Gaussian DP for methods that may fail.")
    ] = None
    relation: Annotated[
        str | None,
        _SPENT(
            metavar="add-remove|substitute",
            help="add-remove also protects the number of records; under the relation substitute n is public.",
        ),
    ] = None
    margin: Annotated[
        list[str] | None,
        _SPENT(
            metavar="NAME=MARGIN",
            help="Instead of a cost: the wanted 95% margin of error, by a forecast name or mean, share, count, quantile, all; give --n.",
        ),
    ] = None
    cv: Annotated[
        list[str] | None,
        _SPENT(
            metavar="NAME=2%",
            help="Instead of a cost: the wanted coefficient of variation, such as 2%, of counts, shares, means and totals; needs --n.",
        ),
    ] = None

    def terms(self) -> dict[str, Any]:
        """What a plan is asked for: a privacy, or how sharp it must be, for the least of it."""
        if not self.targets:
            return {"privacy": self.guarantee()}
        self._check_targets()
        margin = dict(_target("--margin", text) for text in self.margin or ())
        return {"margin": margin or None, "cv": dict(_target("--cv", text) for text in self.cv or ()) or None}

    @property
    def targets(self) -> bool:
        """Whether a precision is wanted."""
        return bool(self.margin or self.cv)

    def _check_targets(self) -> None:
        """Refuse a wanted precision together with a cost."""
        budgets = [f"--{name}" for name in ("mu", "rho", "epsilon", "delta") if getattr(self, name) is not None]
        if self.targets and budgets:
            name = "--margin" if self.margin else "--cv"
            raise Refused(f"{name} asks for the least budget, and {budgets[0]} gives one: leave one of them out")
        if self.targets and self.relation is not None:
            raise Refused("--margin and --cv take the relation of the ledger, else the method's: leave --relation out")

    @property
    def given(self) -> bool:
        """Whether a cost or a precision is given."""
        return self.targets or any(value is not None for value in (self.mu, self.rho, self.epsilon, self.delta))

    def words(self) -> str:
        """The options as they were given, for a command that works."""
        given = {name: getattr(self, name) for name in ("mu", "rho", "epsilon", "delta", "relation")}
        return " ".join(f"--{name} {value}" for name, value in given.items() if value is not None)

    def guarantee(self) -> Guarantee:
        """The guarantee that the options ask for.

        Raises `Refused` unless exactly one of the three ways is given; impossible numbers raise `PrivacyError`.

        >>> str(Privacy(mu=1.0, relation="substitute").guarantee())
        'GDP(mu=1, substitute)'
        """
        from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP

        self._check_targets()
        if self.targets:
            name = "--margin" if self.margin else "--cv"
            raise Refused(
                f"{name} finds the cost of one analysis (confide plan, table, test, describe, regress, or a publication's file); "
                f"here give the cost by one of {_THREE_WAYS}"
            )
        mu, rho, epsilon, delta, relation = self.mu, self.rho, self.epsilon, self.delta, self.relation
        given = [name for name, value in (("--mu", mu), ("--rho", rho), ("--epsilon", epsilon)) if value is not None]
        if not given:
            lone = "--delta goes with --epsilon or --mu; " if delta is not None else ""
            raise Refused(f"{lone}the privacy cost has no default", f"give one of {_THREE_WAYS}")
        if len(given) > 1:
            raise Refused(f"{' and '.join(given)} contradict each other", f"give one of {_THREE_WAYS}")
        if delta is not None and rho is not None:
            raise Refused(f"--delta goes with --epsilon or --mu, not with --rho: give one of {_THREE_WAYS}")
        if mu is not None:
            return GDP(mu, relation=relation) if delta is None else GDP(mu, delta, relation=relation)
        if rho is not None:
            return ZCDP(rho, relation=relation)
        assert epsilon is not None
        return PureDP(epsilon, relation=relation) if delta is None else ApproxDP(epsilon, delta, relation=relation)


@dataclass(frozen=True)
class Account:
    """Exactly one of --ledger and --unaccounted, and how a release is charged there."""

    ledger: Annotated[str | None, _KEPT(metavar="LEDGER", help="The ledger to charge.")] = None
    unaccounted: Annotated[bool, _KEPT("--unaccounted", help="Release without a ledger; nothing adds up the cost.")] = (
        False
    )
    charge_delta: Annotated[
        float | None,
        _KEPT(
            metavar="DELTA",
            help="In a ledger of approximate DP: the delta of the charge; left out, the ledger chooses it.",
        ),
    ] = None
    convert_ledger: Annotated[
        bool,
        _KEPT("--convert-ledger", help="Convert a budget of approximate DP to Gaussian DP first, permanently."),
    ] = False
    dataset: Dataset = None

    def check(self, simulate: int | None) -> None:
        """Refuse neither and both, and what goes with the other one."""
        if (self.ledger is None) == (not self.unaccounted):
            raise Refused("give one of: --ledger LEDGER, which is charged, or --unaccounted, which charges none")
        if simulate is not None and self.ledger is not None:
            raise Refused(
                "simulated noise protects no one and is never charged",
                "give --unaccounted with --simulate, or leave --simulate out",
            )
        if simulate is not None and simulate < 0:
            raise Refused(f"--simulate takes a seed of at least 0, got {simulate}")
        if self.dataset is not None and self.ledger is None:
            raise Refused("--dataset names a budget in a ledger", "give --ledger, too")

    @property
    def counted(self) -> dict[str, Any]:
        """How the release is charged."""
        return {"charge_delta": self.charge_delta, "convert_ledger": self.convert_ledger}


@dataclass(frozen=True)
class Parameters:
    """Parameters of a method beside its first one."""

    setting: Settings = None
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Analyze a subgroup: \"age >= 65 & region == 'N'\"; its size is protected."
        ),
    ] = None

    def settings(self, **given: Any) -> dict[str, Any]:
        """All of them; given: those with an option of their own, None where it was left out.

        >>> Parameters(["level=.9"], "age > 65").settings(inference="dataset", within=None)
        {'where': 'age > 65', 'inference': 'dataset', 'level': 0.9}
        """
        found = {key: value for key, value in {"where": self.where, **given}.items() if value is not None}
        for text in self.setting or ():
            key, sign, value = text.partition("=")
            key = key.strip()
            if not sign or not key.isidentifier():
                raise Refused(f"--param takes KEY=VALUE, got {text!r}", "write for instance --param cov=classical")
            if key in found:
                raise Refused(f"--param gives {key!r} twice", "give it once")
            # a condition that JSON could read, such as one in quotes, is text all the same
            found[key] = value if key == "where" else value_of(value)
        return found


# options from fields --------------------------------------------------------------------------------------------------

#: Fields whose option has a shorter name as well.
_SHORT = {"--quantiles": "--q"}
_WIDE = 20  # the most characters of the values that stand beside an option's name


@dataclass(frozen=True)
class Fields:
    """Options that are fields of classes, of methods or of questions to a release: `fields_of` makes them."""

    read: ClassVar[Mapping[str, Callable[[str], Any]]] = {}

    def given(self) -> dict[str, Any]:
        """What was given, by field."""
        told = {name: getattr(self, name) for name in self.read}
        return {name: self.read[name](value) for name, value in told.items() if value is not None}


def fields_of(*kinds: str | type[Any], names: Iterable[str] = (), but: Iterable[str] = ()) -> type[Fields]:
    """The group of options of the fields of methods, given by name, or of classes.

    The type of an option is the field's, its help is what the docstring says of the field. A method of an index is not loaded.

    names: the fields that have one; left out, all but those without a default, which are arguments of the command, `where`, and `but`.

    >>> group = fields_of("least_squares", "logistic")
    >>> [field.name for field in fields(group)]
    ['limit', 'clipping_check', 'term_bounds', 'bounds', 'link', 'target']
    >>> group(limit="none", term_bounds='{"log(x)": [0, 3]}').given()
    {'limit': 'none', 'term_bounds': {'log(x)': (0, 3)}}
    """
    from confide.registry import settings_named, settings_of  # here, because the core is slow to load

    named = [kind if isinstance(kind, str) else str(vars(kind).get("name", "")) for kind in kinds]
    all_of = [settings_named(kind) if isinstance(kind, str) else settings_of(kind) for kind in kinds]
    left = {"where", *but, *(one.name for own in all_of for one in own if one.required)}
    having: dict[str, dict[str, Setting]] = {}
    for kind, own in zip(named, all_of, strict=True):
        for one in own:
            if one.name not in left and one.name in (names or [one.name]):
                having.setdefault(one.name, {})[kind] = one
    shown, read = [], {}
    for name, by_kind in having.items():
        field = next(iter(by_kind.values()))
        text = _help({kind: one.text for kind, one in by_kind.items()}, named)
        parser, read[name] = _parsers(field)
        off = "no-" if parser is bool and field.default else ""
        if parser is bool:
            text = re.sub(r"(?i)\bwhether to ", "do not " if off else "", text)
        option = f"--{off}{name.replace('_', '-')}"
        ways = [option, *filter(None, [_SHORT.get(option)])]
        shown_as = None if parser is not str else _metavar(field)
        if shown_as and len(shown_as) > _WIDE:  # it would be cut in two
            shown_as, text = name.upper(), f"{shown_as.replace('|', ', ')}. {text}"
        made = typer.Option(*ways, help=text.replace("[", r"\["), metavar=shown_as, show_default=False)
        shown.append((name, Annotated[parser | None, made], None))
    return make_dataclass("FieldsOfMethods", shown, bases=(Fields,), namespace={"read": read}, frozen=True)


def _help(texts: Mapping[str, str], kinds: Sequence[str]) -> str:
    """What all texts begin with, then what else each says and of whom, unless it is of all kinds.

    >>> _help({"means": "A column. Required.", "shares": "A column."}, ("means", "shares"))
    'A column. Of means: required.'
    """
    parts = {name: re.split(r"(?<=\.) ", text) for name, text in texts.items() if text}
    alone = len(set(texts.values())) == 1
    together = () if alone else zip(*parts.values(), strict=False)
    shared = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, together)]
    by_text: dict[str, list[str]] = {}
    for name, own in parts.items():
        by_text.setdefault(" ".join(own[len(shared) :]), []).append(name)
    said = list(shared)
    for text, names in by_text.items():
        others = [one for one in kinds if one not in names]
        of = f"Of all but {', '.join(others)}" if len(others) < len(names) else f"Of {', '.join(names)}"
        said += [f"{of}: {text[:1].lower()}{text[1:]}" if text and others else text]
    return " ".join(filter(None, said)).replace("`", "")


def _metavar(field: Setting) -> str:
    """The values of a field that has a few; else names, numbers or the field's own name."""
    kind = field.type
    if "tuple[str" in kind:
        return "A,B"
    if "float]" in kind or "float, ..." in kind:
        return "Q,Q" if "Mapping" not in kind else "JSON"
    choices = dict.fromkeys(re.findall(r'"([a-z_]+)"', field.form.partition("}")[0])) if kind.startswith("str") else {}
    return "|".join(choices) if len(choices) > 1 else "JSON" if "Mapping" in kind else field.name.upper()


def _parsers(field: Setting) -> tuple[type[Any], Callable[[Any], Any]]:
    """(the type that the command line checks, what turns its value into the field's)."""
    kind = field.type
    if kind == "bool":
        return bool, partial(xor, bool(field.default))  # an option turns the default around
    if "tuple[str" in kind:
        return str, parse_names
    if "Mapping" in kind or "bool" in kind:
        return str, value_of
    if "Sequence[float]" in kind or "tuple[float" in kind:
        return str, partial(_numbers, f"--{field.name}", single="|" in kind and not kind.startswith("tuple"))
    if kind.startswith("str"):
        return str, str
    return (int, int) if kind.startswith("int") else (float, float)


def _numbers(option: str, text: str, *, single: bool) -> float | tuple[float, ...]:
    """Numbers that commas separate; one alone is itself where a field takes one."""
    found = value_of(f"[{text}]")
    low, high = (0, 1) if option in _SHORT else (-inf, inf)
    fits = isinstance(found, tuple) and all(isinstance(one, (int, float)) and low < one < high for one in found)
    if not fits or not found:
        option = _SHORT.get(option, option)
        raise Refused(f"{option} takes numbers that commas separate, got {text!r}", f"write {option} 0.25,0.5,0.75")
    numbers: tuple[float, ...] = found
    return numbers[0] if single and len(numbers) == 1 else numbers


@dataclass(frozen=True)
class FileOptions:
    """How the file of records is laid out, in the place of the schema's table [file]."""

    delimiter: Annotated[
        str | None, typer.Option(metavar="CHAR", help="The separator of text files: ',' ';' or '\\t' (tab).")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar="MARK", help="The decimal mark of numbers in text, '.' or ','.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="The encoding of text files, such as cp1252.")
    ] = None
    skip: Annotated[int | None, typer.Option(metavar="LINES", help="Lines above the header.")] = None
    sheet: Annotated[str | None, typer.Option(metavar="SHEET", help="The sheet of a workbook, by name or number.")] = (
        None
    )

    def entries(self) -> dict[str, Any]:
        """What was given, as entries of [file]."""
        delimiter = None if self.delimiter is None else delimiter_of(self.delimiter)
        sheet = int(self.sheet) if self.sheet is not None and self.sheet.isdecimal() else self.sheet
        given = {
            "delimiter": delimiter,
            "decimal": self.decimal,
            "encoding": self.encoding,
            "sheet": sheet,
            "skip": self.skip,
        }
        return {name: entry for name, entry in given.items() if entry is not None}


@dataclass(frozen=True)
class PreflightOptions:
    """Whether the records are looked at before the charge, for the steward alone."""

    no_preflight: Annotated[
        bool,
        typer.Option(
            "--no-preflight",
            "--quiet",
            help="Do not count, before the charge, how the records are read; the counts are private and go to stderr.",
        ),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Go on after these counts without a question.")] = False


@dataclass(frozen=True)
class Written:
    """How the command ends: which files it may replace, and whether its answer is JSON (`Session` looks for that itself)."""

    force: Force = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Charged:
    """What a command is told that plans and releases in one go."""

    privacy: Privacy
    account: Account
    n: Nominal = None
    file: FileOptions
    preflight: PreflightOptions
    executor: Executor = None
    simulate: Seed = None
    written: Written


def _target(option: str, text: str) -> tuple[str, float]:
    """A name and the wanted precision: a margin of error in the units of the number, or a share of it.

    >>> _target("--margin", "mean=400"), _target("--cv", "mean=2%"), _target("--cv", ".02")
    (('mean', 400.0), ('mean', 0.02), ('all', 0.02))
    """
    name, sign, value = text.rpartition("=")
    relative = option == "--cv"
    percent = value.strip().endswith("%")
    try:
        size = float(value.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        size = 0.0
    if relative and not sign:
        name = "all"
    if percent and not relative:
        raise Refused(
            f"--margin takes a margin of error in the units of the number, got {text!r}; for a standard error of "
            f"{value.strip()} of the number write --cv {text}"
        )
    if not name or not size > 0:
        raise Refused(
            f"--cv takes NAME=SHARE, a standard error over the number, got {text!r}; write --cv mean=2%"
            if relative
            else f"--margin takes NAME=MARGIN, a margin of error above 0, got {text!r}; write --margin mean=0.02"
        )
    return name, size


def delimiter_of(text: str) -> str:
    r"""The character that separates fields; a tab may be typed as \t, which shells hand on as two characters.

    >>> delimiter_of("\\t") == delimiter_of("tab") == "\t", delimiter_of(";")
    (True, ';')
    """
    return "\t" if text in ("\\t", "tab") else text


def parse_names(text: str) -> tuple[str, ...]:
    """Names that commas outside of parentheses and backticks separate, or a JSON list of them.

    >>> parse_names("age, income"), parse_names("cut(age, 40), sex"), parse_names('["a, b"]')
    (('age', 'income'), ('cut(age, 40)', 'sex'), ('a, b',))
    """
    from confide.schema.formulas.names import parted  # here, because schemas are slow to load

    names = value_of(text)
    listed = isinstance(names, tuple) and all(isinstance(one, str) for one in names)
    return tuple(names if listed else filter(None, map(str.strip, parted(text, ","))))


def value_of(text: str) -> Any:
    """A value as JSON when it parses, with Python's True, False, None and numbers without their first 0 as well, else the text itself.

    >>> [value_of(text) for text in ("1.5", ".05", "false", "False", "robust", "[0, .5]", "NaN")]
    [1.5, 0.05, False, False, 'robust', (0, 0.5), 'NaN']
    """
    constants = {"True": True, "False": False, "None": None}
    if text.strip() in constants:
        return constants[text.strip()]
    # Python's spellings of a number beside JSON's: .5, 5. and +5; text in quotes is left alone
    spelled = re.sub(r"(?<![\w.+-])\+(?=[\d.])", "", re.sub(r"(?<![\w.])\.(?=\d)", "0.", text))
    spelled = re.sub(r"(?<=\d)\.(?!\d)", ".0", spelled)
    for written in (text, spelled) if '"' not in text else (text,):
        try:
            return _frozen(json.loads(written, parse_constant=_no_number))
        except (ValueError, RecursionError):
            continue
    return text


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _frozen(value: Any) -> Any:
    """Lists as tuples, as they come back from a plan's file."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def spread(command: Callable[..., None], **made: type[Any]) -> Callable[..., None]:
    """The command as a parser reads it: each group among its parameters stands there as its options.

    made: groups that are made of classes (`fields_of`), by the parameter that takes them.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> @spread
    ... def area(name: str, *, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> area(name="hall", height=3)
    hall 3
    >>> list(signature(area).parameters)
    ['name', 'width', 'height']
    """
    hints = get_type_hints(command, include_extras=True) | made
    own = signature(command).parameters.values()
    groups = {parameter.name: hints[parameter.name] for parameter in own if _is_group(hints[parameter.name])}
    shown = [
        option
        for parameter in own
        for option in (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]

    def run(**given: Any) -> None:
        whole = {name: _gathered(kind, given) for name, kind in groups.items()}
        # messages name the options of the command that they are read beside
        if (session := getattr(given.get("ctx"), "obj", None)) is not None:
            session.options = frozenset(option for one in given["ctx"].command.params for option in one.opts)
            session.charging = "--unaccounted" in session.options
        # an option of a group may have the group's name
        single = (parameter.name for parameter in own if parameter.name not in groups)
        command(**{name: given[name] for name in single if name in given}, **whole)

    update_wrapper(run, command)
    run.__signature__ = Signature(shown, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in shown}
    return run


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def _options(kind: Any) -> Iterator[Parameter]:
    """The options of a group, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if _is_group(hints[field.name]):
            yield from _options(hints[field.name])
        else:
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def _gathered(kind: Any, given: Mapping[str, Any]) -> Any:
    """A group from what was given; what was not has its default."""
    hints = get_type_hints(kind)
    return kind(
        **{
            field.name: _gathered(hints[field.name], given) if _is_group(hints[field.name]) else given[field.name]
            for field in fields(kind)
            if _is_group(hints[field.name]) or field.name in given
        }
    )
