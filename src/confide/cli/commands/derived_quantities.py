"""What `confide infer` shows beyond the table, at no further cost: predictions, effects, ratios, and estimates at public totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide._helpers import later
from confide.cli.files import Further
from confide.cli.session import Refused, Session
from confide.cli.tables import fine
from confide.errors import FileError, NoResult, PlanError

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Columns, as of the tables above.
_WIDTH = 78

Predict = Annotated[
    Path | None,
    typer.Option(
        "--predict",
        metavar="ROWS.csv",
        help="Predict at the rows of a PUBLIC file, with intervals; never give it protected records.",
    ),
]
Effects = Annotated[
    bool, typer.Option("--effects", help="Print average marginal effects of a logistic or Poisson regression.")
]
Ratios = Annotated[
    bool,
    typer.Option(
        "--ratios", help="Print odds ratios of a logistic or rate ratios of a Poisson regression, with intervals."
    ),
]
LogOdds = Annotated[
    bool,
    typer.Option(
        "--log-odds", help="Print coefficients and the intercept of a logistic or Poisson regression, not ratios."
    ),
]

Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="TERMS",
        help="Compare a linear regression with the model without these terms, such as age,region: F test, AIC, BIC. Repeat for more. "
        "Printed, and in --json; --csv and --report have the regression alone.",
    ),
]


@dataclass(frozen=True)
class DerivedOptions:
    """Quantities to print in addition to the table."""

    predict: Predict = None
    without: Without = None
    effects: Effects = False
    ratios: Ratios = False
    log_odds: LogOdds = False

    def shown(self, result: Any) -> Any:
        """The result as it is printed: with coefficients where `log_odds` asks for them."""
        if not self.log_odds:
            return result
        if not hasattr(result, "log_odds"):
            raise PlanError(
                "--log-odds is about logistic and Poisson regressions, and this release is another", "leave it out"
            )
        return replace(result, log_odds=True)

    def check(self) -> None:
        """What can be known before the release is read."""
        if self.predict is not None and not self.predict.is_file():
            raise Refused(f"--predict {self.predict} is no file", "give a CSV file of public rows")

    def frames(self, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """The tables by name. `PlanError` where a result has none of the kind, `NoResult` where this one has not."""
        level = {} if alpha is None else {"alpha": alpha}
        found = {}
        if self.ratios:
            name = "odds_ratios" if hasattr(result, "odds_ratios") else "rate_ratios"
            found[name] = method_of_result(result, name, "--ratios", "logistic or Poisson regressions")(**level)
        if self.effects:
            own = method_of_result(result, "average_marginal_effects", "--effects", "logistic or Poisson regressions")
            found["average_marginal_effects"] = _or_why(own, level)
        if self.without:
            found["smaller_models"] = _or_why(partial(_compared, result, self.without), level)
        if self.predict is not None:
            own = method_of_result(result, "get_prediction", "--predict", "linear, logistic or Poisson regressions")
            found["predictions"] = own(_rows(self.predict, result), **level)
        return found

    def computed(self, session: Session, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """`frames`, before anything is printed where nothing is charged: what is refused is refused alone."""
        with session.doing("computing what is beyond the table"):
            return self.frames(result, alpha)

    def show(self, session: Session, result: Any, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """Print the tables; the same as strict JSON."""
        for name, frame in frames.items():
            if "summary" in frame.attrs:
                session.say("")
                session.say(frame.attrs["summary"])
                continue
            note = frame.attrs.get("note") or _note(name, frame, result)
            say_frame(session, frame, _title(name, result), note)
        return {name: facts_of(frame) for name, frame in frames.items()}


def say_frame(session: Session, frame: pd.DataFrame, title: str, note: str, *, by_error: bool = False) -> None:
    """Print a table with its title and note. by_error: each row to two digits of its standard error, for totals; else four digits."""
    session.say("")
    session.say(title)
    if len(frame.columns):
        shown = frame.rename_axis(None)
        text = fine(shown) if by_error else shown
        session.say(text.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-"))
    if note:
        session.say(fill(f"Note: {note}", _WIDTH, subsequent_indent=" " * 6))


def is_report(result: Any) -> bool:
    """Whether a result is that of a publication."""
    from confide.results.pages.publication import Report

    return isinstance(result, Report)


def method_of_result(result: Any, name: str, option: str, kinds: str) -> Callable[..., Any]:
    """The method of a result; `PlanError` where it has none, with the questions of a publication that do. kinds: what has it."""
    found = getattr(result, name, None)
    if found is None and is_report(result):
        have = [asked for asked, own in result.results.items() if hasattr(own, name)]
        which = f"ask one analysis: {' or '.join(f'--analysis {one}' for one in have)}" if have else "leave it out"
        raise PlanError(f"{option} is about {kinds}, and this release is a publication", f"{which}")
    if found is None:
        raise PlanError(f"{option} is about {kinds}, and this release is none", "leave it out")
    return found  # type: ignore[no-any-return]


def _or_why(ask: Callable[..., pd.DataFrame], level: dict[str, float]) -> pd.DataFrame:
    """The frame, or an empty one whose note says why there is none: what is asked for beside it is shown all the same."""
    try:
        return ask(**level)
    except NoResult as error:
        none = pd.DataFrame()
        none.attrs["note"] = str(error).partition(": the status is")[0]
        return none


def _compared(result: Any, without: Sequence[str], alpha: float | None = None) -> pd.DataFrame:
    """Smaller models against the full one."""
    from confide.methods.regression.comparing import compare_models
    from confide.methods.regression.linear_estimates import SharedEstimates

    if not isinstance(result, SharedEstimates):
        raise PlanError("--without is about linear regressions, and this release is another", "leave it out")
    models = [[name.strip() for name in own.split(",") if name.strip()] for own in without]
    found = compare_models(result, models)
    frame = found.to_frame(alpha)
    # without what the table above it says already
    frame.attrs["summary"] = found.summary(alpha).partition("\nPrivacy ")[0]
    return frame


def _note(name: str, frame: pd.DataFrame, result: Any) -> str:
    """Why numbers are missing from a table; nothing where none is."""
    if not frame.isna().to_numpy().any() or result.status == "valid":
        return ""
    if name == "average_marginal_effects":
        return (
            "a mean slope has an interval where every coefficient has one, as what is not told may move it; the table's reason says what "
            "the others need"
        )
    if name == "predictions":
        return "a prediction needs every coefficient that its row is multiplied by; the table's reason says what those without one need"
    return "a dash is a coefficient without an interval; the table's reason says what it needs"


def _title(name: str, result: Any) -> str:
    levels = getattr(result, "levels", None)
    if name == "average_marginal_effects":
        return "Average marginal effects over the records: mean slopes; of levels and columns of two values the mean change"
    if name == "smaller_models":
        return "Smaller models: F test with privacy noise; F, AIC and BIC of the records, with intervals for the noise"
    if name != "predictions":
        return name.replace("_", " ").capitalize()
    return "Predictions" if levels is None else f"Predictions: the probability of {levels[1]}"


def _rows(path: Path, result: Any) -> pd.DataFrame:
    """The rows of a file, labels as text, however they look."""
    from confide.schema import Categorical

    design = result.design
    labels = {name: str for name in design.columns if isinstance(design.schema[name], Categorical)} if design else {}
    try:
        return pd.read_csv(path, dtype=labels)
    except (OSError, ValueError) as error:  # pandas' parser errors are value errors
        raise FileError(
            f"--predict {path} cannot be read as CSV: {error}", "give a header and a row for each prediction"
        ) from None


def facts_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One mapping for each row, its name first where it has one; None where there is no number, text as it is."""
    rows = [
        {str(c): v if isinstance(v, str) else None if v != v else float(v) for c, v in row.items()}
        for row in frame.to_dict("records")
    ]
    # predictions are numbered, ratios and effects are named
    numbered = frame.index.dtype.kind == "i"
    return rows if numbered else [{"name": str(key), **row} for key, row in zip(frame.index, rows, strict=True)]


_EXACT = "numbers of persons from {files}, read as public and exact; nothing further is spent"


@dataclass(frozen=True)
class Calibrated:
    """Public totals, and what is calibrated to them."""

    poststratify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TOTALS.csv",
            help="Of a survey's table of means by COLUMN: the estimate of all persons at public numbers of its levels. Each line "
            "of the file has a level and its number of persons. Repeat for more.",
        ),
    ] = None
    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="MARGINS.csv",
            help="Of a survey's regression on categorical columns: the response's mean and total at public numbers of their levels. Each "
            "line of the file has a column, one of its levels and the number of persons.",
        ),
    ] = None

    @property
    def files(self) -> dict[str, Path]:
        """The files of public totals, by the option as it was given. `Refused` for an option that names none."""
        found = {f"--poststratify {over}": path for over, path in self._tables()}
        return found if self.calibrate is None else {**found, "--calibrate": self.calibrate}

    def check(self) -> None:
        """What can be known before the release is read."""
        for option, path in self.files.items():
            if not path.is_file():
                lines = "a column, a level" if option == "--calibrate" else "a level"
                raise Refused(
                    f"{option}: {path} is no file", f"give a CSV file with {lines} and its number of persons in a line"
                )

    def _tables(self) -> Iterator[tuple[str, Path]]:
        for text in self.poststratify or ():
            over, sign, path = (part.strip() for part in text.partition("="))
            if not (over and sign and path):
                raise Refused(
                    f"--poststratify takes COLUMN=TOTALS.csv, got {text!r}",
                    "write for instance --poststratify sex=totals.csv",
                )
            yield over, Path(path)

    def moved(self, session: Session, result: Any, alpha: float | None) -> Moved:
        """What is asked for, before anything is printed: a file that does not fit, or a result of another kind, is refused (`PlanError`).

        Of a result that has no such estimate the table is shown all the same, and the reason comes after it.
        """
        with session.doing("computing estimates at public totals"):
            try:
                frames = self.frames(result, alpha)
            except NoResult as error:
                return Moved({}, error)
        files: dict[str, list[Any]] = {
            "poststratified": [path for _, path in self._tables()],
            "calibrated": [self.calibrate],
        }
        found = {}
        for name, frame in frames.items():
            note = _EXACT.format(files=", ".join(map(str, files[name])))
            found[name] = Further(_moved_title(name, result), frame, _labels(name, frame, result), note)
        return Moved(found)

    def frames(self, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """The tables by name, as `poststratify` of each measured column and `calibrate` give them. `PlanError` where a result has none of
        the kind, `NoResult` where this one has not.
        """
        level = {} if alpha is None else {"alpha": alpha}
        found = {}
        if self.poststratify:
            own = method_of_result(result, "poststratify", "--poststratify", "tables of means under a survey's design")
            rows = [
                own(path, over, of=measured, **level) for over, path in self._tables() for measured in result.measured
            ]
            found["poststratified"] = pd.concat(rows)
        if self.calibrate is not None:
            own = method_of_result(result, "calibrate", "--calibrate", "least-squares lines under a survey's design")
            found["calibrated"] = own(self.calibrate, **level)
        return found


@dataclass(frozen=True)
class Moved:
    """Tables at public totals by name, and why there are none."""

    tables: Mapping[str, Further]
    missing: NoResult | None = None

    def show(self, session: Session) -> dict[str, Any]:
        """Print the tables; the same as strict JSON. Raises why there are none."""
        if self.missing is not None:
            raise self.missing
        for one in self.tables.values():
            say_frame(session, one.frame, one.title, one.note, by_error=True)
        return {name: facts_of(one.frame) for name, one in self.tables.items()}


def _labels(name: str, frame: pd.DataFrame, result: Any) -> list[str]:
    """What rows are called where they stand beside others."""
    from confide.sums.columns import columns_of

    if name == "poststratified":
        return list(frame.index)
    over = ", ".join(columns_of(*result.design.terms))
    return [f"{row} of {result.design.response.name}, calibrated to {over}" for row in frame.index]


def _moved_title(name: str, result: Any) -> str:
    if name == "poststratified":
        return "Post-stratified: all persons, at public numbers of each level"
    return f"Calibrated: {result.design.response.name}, at public numbers of each level"
