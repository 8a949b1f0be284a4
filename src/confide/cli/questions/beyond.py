"""What `confide infer` shows beyond the table: predictions at public rows, average marginal effects, odds or rate ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.session import Refused, Session
from confide.errors import NoResult, PlanError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Beyond", "facts_of", "fine", "method_of", "say_frame"]

# Columns, as of the tables above.
_WIDTH = 78

Predict = Annotated[
    Path | None,
    typer.Option(
        "--predict",
        metavar="ROWS.csv",
        help="Predict at the rows of a PUBLIC file, with intervals: a column for each of the formula. No private records: "
        "what is printed beside them is read as public.",
    ),
]
Effects = Annotated[
    bool, typer.Option("--effects", help="Average marginal effects, of logistic and Poisson regressions.")
]
Ratios = Annotated[
    bool,
    typer.Option("--ratios", help="Odds ratios of a logistic, rate ratios of a Poisson regression, with intervals."),
]


@dataclass(frozen=True)
class Beyond:
    """What is asked for beside the table."""

    predict: Predict = None
    effects: Effects = False
    ratios: Ratios = False

    def check(self) -> None:
        """What can be known before the release is read."""
        if self.predict is not None and not self.predict.is_file():
            raise Refused(f"--predict {self.predict} is no file; give a CSV file of public rows")

    def frames(self, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """The tables by name. `PlanError` where a result has none of the kind, `NoResult` where this one has not."""
        level = {} if alpha is None else {"alpha": alpha}
        found = {}
        if self.ratios:
            name = "odds_ratios" if hasattr(result, "odds_ratios") else "rate_ratios"
            found[name] = method_of(result, name, "--ratios", "logistic or Poisson regressions")(**level)
        if self.effects:
            own = method_of(result, "average_marginal_effects", "--effects", "logistic or Poisson regressions")
            found["average_marginal_effects"] = _or_why(own, level)
        if self.predict is not None:
            own = method_of(result, "get_prediction", "--predict", "linear, logistic or Poisson regressions")
            found["predictions"] = own(_rows(self.predict, result), **level)
        return found

    def computed(self, session: Session, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """`frames`, before anything is printed where nothing is charged: what is refused is refused alone."""
        with session.doing("computing what is beyond the table"):
            return self.frames(result, alpha)

    def show(self, session: Session, result: Any, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """Print the tables; the same as strict JSON."""
        for name, frame in frames.items():
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


def fine(frame: pd.DataFrame) -> pd.DataFrame:
    """As text, the digits of a row by its standard error; degrees of freedom whole."""
    from math import floor, log10

    def row(own: pd.Series[float]) -> list[str]:
        decimals = max(1 - floor(log10(own["std_err"])), 0) if own["std_err"] > 0 else 2
        return [f"{value:,.{0 if name == 'df' else decimals}f}" for name, value in own.items()]

    import pandas as pd

    return pd.DataFrame([row(own) for _, own in frame.iterrows()], index=frame.index, columns=frame.columns)


def method_of(result: Any, name: str, option: str, kinds: str) -> Callable[..., Any]:
    """The method of a result; `PlanError` where it has none, with the questions of a publication that do. kinds: what has it."""
    found = getattr(result, name, None)
    if found is None and hasattr(result, "statuses"):
        have = [asked for asked, own in result.results.items() if hasattr(own, name)]
        which = f"ask one question: {' or '.join(f'--question {one}' for one in have)}" if have else "leave it out"
        raise PlanError(f"{option} is about {kinds}, and this release is a publication; {which}")
    if found is None:
        raise PlanError(f"{option} is about {kinds}, and this release is none; leave it out")
    return found  # type: ignore[no-any-return]


def _or_why(ask: Callable[..., pd.DataFrame], level: dict[str, float]) -> pd.DataFrame:
    """The frame, or an empty one whose note says why there is none: what is asked for beside it is shown all the same."""
    import pandas as pd

    try:
        return ask(**level)
    except NoResult as error:
        none = pd.DataFrame()
        none.attrs["note"] = str(error).partition(": the status is")[0]
        return none


def _note(name: str, frame: pd.DataFrame, result: Any) -> str:
    """Why numbers are missing from a table; nothing where none is."""
    if not frame.isna().to_numpy().any() or result.status == "ok":
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
    if name != "predictions":
        return name.replace("_", " ").capitalize()
    return "Predictions" if levels is None else f"Predictions: the probability of {levels[1]}"


def _rows(path: Path, result: Any) -> pd.DataFrame:
    """The rows of a file, labels as text, however they look."""
    import pandas as pd

    from confide.schema import Categorical

    design = result.design
    labels = {name: str for name in design.columns if isinstance(design.schema[name], Categorical)} if design else {}
    try:
        return pd.read_csv(path, dtype=labels)
    except (OSError, ValueError) as error:  # pandas' parser errors are value errors
        raise PlanError(
            f"--predict {path} cannot be read as CSV: {error}; give a header and a row for each prediction"
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
