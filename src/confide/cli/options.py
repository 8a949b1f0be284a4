"""Options that several commands share, each written once: privacy, ledger, JSON, settings of a method."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.session import Refused

if TYPE_CHECKING:
    from confide.guarantees import Guarantee

__all__ = [
    "Alpha",
    "Book",
    "ChargeDelta",
    "Convert",
    "Csv",
    "Data",
    "Dataset",
    "Delimiter",
    "Delta",
    "Epsilon",
    "Force",
    "Json",
    "Mu",
    "NoLedger",
    "Nominal",
    "Plot",
    "Relation",
    "Report",
    "Rho",
    "SchemaFile",
    "Seed",
    "Settings",
    "Where",
    "check_ledger",
    "delimiter_of",
    "privacy",
    "value_of",
]

_PRIVACY = "Privacy: exactly one of --mu, --rho, --epsilon"
_LEDGER = "Ledger: one of --ledger, --no-ledger"

Mu = Annotated[
    float | None, typer.Option("--mu", help="Gaussian differential privacy, GDP(mu).", rich_help_panel=_PRIVACY)
]
Rho = Annotated[
    float | None,
    typer.Option("--rho", help="Zero-concentrated differential privacy, ZCDP(rho).", rich_help_panel=_PRIVACY),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", help="PureDP(epsilon); with --delta ApproxDP(epsilon, delta).", rich_help_panel=_PRIVACY),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Goes with --epsilon; or with --mu, GDP(mu, delta), for methods that may fail.",
        rich_help_panel=_PRIVACY,
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="add-remove|substitute",
        help="add-remove hides whether a record is there; substitute hides its values, and n is public.",
        rich_help_panel=_PRIVACY,
    ),
]

Book = Annotated[
    str | None, typer.Option("--ledger", metavar="LEDGER", help="The ledger to charge.", rich_help_panel=_LEDGER)
]
Convert = Annotated[
    bool,
    typer.Option(
        "--convert",
        help="Turn an (epsilon, delta) ledger into a Gaussian one first, once and for good.",
        rich_help_panel=_LEDGER,
    ),
]
ChargeDelta = Annotated[
    float | None,
    typer.Option(
        "--charge-delta",
        metavar="DELTA",
        help="Charge a curve at its point with this delta; left out, as the ledger can best.",
        rich_help_panel=_LEDGER,
    ),
]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Charge no ledger: nobody adds up what was spent.", rich_help_panel=_LEDGER)
]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="The dataset in the ledger; may be left out when the schema names it or the ledger holds one.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--simulate", metavar="SEED", help="Seeded noise that PROTECTS NOBODY, for rehearsals; only with --no-ledger."
    ),
]

SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The schema (TOML): what is public about the data.")
]
Data = Annotated[
    list[Path], typer.Argument(metavar="DATA...", help="The records: CSV or Parquet files.", show_default=False)
]
Nominal = Annotated[
    int | None,
    typer.Option(
        "--n",
        help="Number of records. Under substitute it is public and checked. Under add-remove it may be a guess: it serves the forecast "
        "alone, and is not checked and not published.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A further parameter of the method, as JSON or else as text; repeat for more.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Ask about a subgroup alone: \"age >= 65 & region == 'N'\". Its size is private.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option("--alpha", help="1 - alpha is the level of the intervals; .05 when left out.", show_default=False),
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write one self-contained HTML page.")
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Write the plot: .png, .svg or .pdf.")]
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the table with all digits, for a spreadsheet.")
]
Delimiter = Annotated[
    str,
    typer.Option("--delimiter", metavar="CHAR", help="What separates the fields of CSV files: ',' ';' or '\\t' (tab)."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Strict JSON on stdout and nothing else; errors too.")]

_THREE_WAYS = (
    "--mu MU for GDP (with --delta DELTA for methods that may fail), --rho RHO for ZCDP, --epsilon EPSILON for PureDP (with --delta DELTA "
    "for ApproxDP)"
)


def privacy(
    mu: float | None, rho: float | None, epsilon: float | None, delta: float | None, relation: str | None
) -> Guarantee:
    """The guarantee that the options ask for.

    Raises `Refused` unless exactly one of the three ways is given; impossible numbers raise `PrivacyError`.

    >>> str(privacy(1.0, None, None, None, "substitute"))
    'GDP(mu=1, substitute)'
    """
    from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP

    given = [name for name, value in (("--mu", mu), ("--rho", rho), ("--epsilon", epsilon)) if value is not None]
    if not given:
        lone = "--delta goes with --epsilon or --mu; " if delta is not None else ""
        raise Refused(f"{lone}privacy has no default: say what may be spent, by one of {_THREE_WAYS}")
    if len(given) > 1:
        raise Refused(f"{' and '.join(given)} ask for different things: give one of {_THREE_WAYS}")
    if delta is not None and rho is not None:
        raise Refused(f"--delta goes with --epsilon or --mu, not with --rho: give one of {_THREE_WAYS}")
    if mu is not None:
        return GDP(mu, relation=relation) if delta is None else GDP(mu, delta, relation=relation)
    if rho is not None:
        return ZCDP(rho, relation=relation)
    assert epsilon is not None
    return PureDP(epsilon, relation=relation) if delta is None else ApproxDP(epsilon, delta, relation=relation)


def check_ledger(book: str | None, no_ledger: bool, dataset: str | None, simulate: int | None) -> None:
    """Exactly one of --ledger and --no-ledger; what goes with one of them must not stand beside the other."""
    if (book is None) == (not no_ledger):
        raise Refused("say who keeps the account, one of: --ledger LEDGER charges that one, --no-ledger charges none")
    if simulate is not None and book is not None:
        raise Refused(
            "simulated noise protects nobody and is never charged: --simulate goes with --no-ledger, or leave it out"
        )
    if simulate is not None and simulate < 0:
        raise Refused(f"--simulate takes a seed of at least 0, got {simulate}")
    if dataset is not None and book is None:
        raise Refused("--dataset names an account in a ledger: it goes with --ledger")


def delimiter_of(text: str) -> str:
    r"""The character that separates fields; a tab may be typed as \t, which shells hand on as two characters.

    >>> delimiter_of("\\t") == delimiter_of("tab") == "\t", delimiter_of(";")
    (True, ';')
    """
    return "\t" if text in ("\\t", "tab") else text


def settings(texts: Sequence[str] | None, where: str | None = None) -> dict[str, Any]:
    """Parameters from `key=value` texts, and the subgroup."""
    found: dict[str, Any] = {} if where is None else {"where": where}
    for text in texts or ():
        key, sign, value = text.partition("=")
        key = key.strip()
        if not sign or not key.isidentifier():
            raise Refused(f"--set takes KEY=VALUE, got {text!r}; write for instance --set cov=classical")
        if key in found:
            raise Refused(f"--set gives {key!r} twice; give it once")
        # a condition that JSON could read, such as one in quotes, is text all the same
        found[key] = value if key == "where" else value_of(value)
    return found


def value_of(text: str) -> Any:
    """A value as JSON when it parses, with Python's True, False, None and numbers such as .05 as well, else the text itself.

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
