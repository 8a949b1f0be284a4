"""What `confide infer` moves to public totals from files: post-stratified means, calibrated lines, at no further cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.facts import Further
from confide.cli.questions.beyond import facts_of, method_of, say_frame
from confide.cli.session import Refused, Session
from confide.errors import NoResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Calibrated", "Moved"]

_EXACT = "numbers of persons from {files}, read as public and exact; nothing further is spent"


@dataclass(frozen=True)
class Calibrated:
    """Public totals, and what is moved to them."""

    poststratify: Annotated[
        list[str] | None,
        typer.Option(
            "--poststratify",
            metavar="COLUMN=TOTALS.csv",
            help="Of a survey's table of means by COLUMN: the estimate of all persons at public numbers of its levels. The file "
            "has a level and its number of persons in a line. Repeat for more.",
        ),
    ] = None
    calibrate: Annotated[
        Path | None,
        typer.Option(
            "--calibrate",
            metavar="MARGINS.csv",
            help="Of a survey's line on categorical columns: the response's mean and total at public numbers of their levels. The file has "
            "a column, one of its levels and the number of persons in a line.",
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
                    f"{option}: {path} is no file; give a CSV file with {lines} and its number of persons in a line"
                )

    def _tables(self) -> Iterator[tuple[str, Path]]:
        for text in self.poststratify or ():
            over, sign, path = (part.strip() for part in text.partition("="))
            if not (over and sign and path):
                raise Refused(
                    f"--poststratify takes COLUMN=TOTALS.csv, got {text!r}; write for instance --poststratify sex=totals.csv"
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
            found[name] = Further(_title(name, result), frame, _labels(name, frame, result), note)
        return Moved(found)

    def frames(self, result: Any, alpha: float | None) -> dict[str, pd.DataFrame]:
        """The tables by name, as `poststratify` of each measured column and `calibrate` give them. `PlanError` where a result has none of
        the kind, `NoResult` where this one has not.
        """
        level = {} if alpha is None else {"alpha": alpha}
        found = {}
        if self.poststratify:
            import pandas as pd

            own = method_of(result, "poststratify", "--poststratify", "tables of means under a survey's design")
            rows = [
                own(path, over, of=measured, **level) for over, path in self._tables() for measured in result.measured
            ]
            found["poststratified"] = pd.concat(rows)
        if self.calibrate is not None:
            own = method_of(result, "calibrate", "--calibrate", "least-squares lines under a survey's design")
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
    from confide.aggregates.column_codes import columns_of

    if name == "poststratified":
        return list(frame.index)
    over = ", ".join(columns_of(*result.design.terms))
    return [f"{row} of {result.design.response.name}, calibrated to {over}" for row in frame.index]


def _title(name: str, result: Any) -> str:
    if name == "poststratified":
        return "Post-stratified: all persons, at public numbers of each level"
    return f"Calibrated: {result.design.response.name}, at public numbers of each level"
