"""The table of a result in other people's documents: Markdown, LaTeX, Word. The same cells as the text, with their notes.

>>> markdown(Document("Means", (("a", "1.0"),), ("name", "mean"), "ok; GDP(mu=1, add-remove)")).splitlines()[2:4]
['| name | mean |', '| :--- | ---: |']

CSV that a spreadsheet shows and does not run.

A cell that begins with =, +, -, @, a tab or a carriage return is a formula to Excel, LibreOffice and Google Sheets, and a label comes from
the author of the schema. An apostrophe before it makes it text (OWASP, "CSV Injection"); `plain` takes it off again, so that labels read
back as they were. Semicolons and line breaks begin a cell as well where they separate. Numbers stay as they are, labels such as "-9" too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide._helpers import clean
from confide.errors import FileError, PlanError
from confide.results.pages.content import Shown, row_flags
from confide.results.pages.table import Document, View, view

if TYPE_CHECKING:
    import pandas as pd


#: What a report's file may end in -> the verb of a result that gives it.
REPORTS: Mapping[str, str] = {
    ".html": "report",
    ".htm": "report",
    ".md": "to_markdown",
    ".tex": "to_latex",
    ".docx": "to_word",
}

# what Markdown would take for a sign of its own
# signs, and the end of a text in brackets that would be a link's or a picture's
_SPECIAL, _SHIELDED = re.compile(r"([\\`*_|<>~]|\](?=[(\[:]))"), r"\\\1"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}",
}  # fmt: skip


def document(result: Shown, alpha: float, *, pictured: bool = False) -> Document:
    """The document of a result. pictured: with its picture, which takes a moment."""
    seen: View = view(result, alpha)
    flags = f", flagged {', '.join(result.flags)}" if result.flags else ""
    status = f"Status {result.status}{flags}: {result.status_said}."
    guarantee = seen.simulated or f"Differential privacy: {result.guarantee}."
    status += "".join(f" {grave.capitalize()}: {words}." for grave, words in row_flags(result, joined=True))
    note = f"{status} {guarantee} Intervals: {result.intervals_for}. Release {result.release_sha256}."
    note = f"{seen.line}. {note}" if seen.line else note
    labels = next((place for place, one in enumerate(seen.laid) if not one.left), len(seen.laid))
    rows = tuple(zip(*(one.cells for one in seen.laid), strict=True))
    picture = None
    if pictured:
        from confide.results.pages.plots import png  # here, because matplotlib is slow to load

        picture = png(result, alpha)
    return Document(seen.title, rows, tuple(one.head for one in seen.laid), clean(note), max(labels, 1), picture)


def markdown(made: Document) -> str:
    """A table of GitHub's Markdown."""

    def plain(text: str) -> str:
        return _SPECIAL.sub(_SHIELDED, text)

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(map(plain, cells))} |"

    rule = [":---" if place < made.labels else "---:" for place in range(len(made.heads))]
    lines = [
        f"**{plain(made.title)}**",
        "",
        line(made.heads),
        f"| {' | '.join(rule)} |",
        *map(line, made.rows),
        "",
        plain(made.note),
    ]
    return "\n".join(lines) + "\n"


def latex(made: Document) -> str:
    """A `table` of LaTeX with the rules of the package booktabs."""
    columns = "".join("l" if place < made.labels else "r" for place in range(len(made.heads)))

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(_escaped, cells)) + r" \\"

    rows = "\n".join(map(line, made.rows))
    return "\n".join(
        [
            r"\begin{table}  % \usepackage{booktabs}",
            rf"\caption{{{_escaped(made.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            line(made.heads),
            r"\midrule",
            rows,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\par\footnotesize {_escaped(made.note)}",
            r"\end{table}",
            "",
        ]
    )


def _figure(result: Shown, alpha: float, name: str) -> str:
    """A `figure` of LaTeX with the picture in a file, and its caption."""
    from confide.results.pages.plots import caption  # here, because matplotlib is slow to load

    title = result.look.title or result.picture_title
    return "\n".join(
        [
            r"\begin{figure}  % \usepackage{graphicx}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{name}}}",
            rf"\caption{{{_escaped(clean(title))}. {_escaped(caption(result, alpha))}}}",
            r"\end{figure}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def word(made: Document | Sequence[Document], path: Path) -> None:
    """A .docx with the table, or with one after the other; needs python-docx."""
    docx = _docx()
    page = docx.Document()
    for one in [made] if isinstance(made, Document) else made:
        _put(page, one, docx.enum.text.WD_ALIGN_PARAGRAPH.RIGHT)
    try:
        page.save(str(path))
    except OSError as error:
        raise FileError(
            f"the table cannot be written to {str(path)!r}: {error.strerror}", "give a file in a folder that exists"
        ) from None


def _put(page: Any, made: Document, right: Any) -> None:
    page.add_heading(made.title, level=1)
    table = page.add_table(rows=0, cols=len(made.heads), style="Light List")
    for cells in (made.heads, *made.rows):
        for place, (cell, text) in enumerate(zip(table.add_row().cells, cells, strict=True)):
            cell.text = text
            if place >= made.labels:
                cell.paragraphs[0].alignment = right
    page.add_paragraph(made.note)
    if made.picture is not None:
        drawing, words, caption = made.picture
        page.add_picture(io.BytesIO(drawing), width=page.sections[0].page_width * 2 // 3)
        page.inline_shapes[-1]._inline.docPr.set("descr", words)
        page.add_paragraph(caption, style="Caption")


def save(
    result: Any,
    path: Path,
    level: Callable[[Any], Mapping[str, Any]] = lambda verb: {},
    below: Sequence[Document] = (),
    figure: str = "",
) -> None:
    """Write a result as its ending asks (`REPORTS`); level: verb -> further arguments; below: tables that follow from it and come after
    its own, with their notes; figure: the file of its picture, for LaTeX. `PlanError` when it cannot be written.
    """
    name = REPORTS[path.suffix.lower()]
    verb = getattr(result, name, None)
    if verb is None:
        raise PlanError(
            f"results of this method are written as a page alone, got {path.name!r}", f"write {path.stem}.html"
        )
    try:
        if name in ("to_markdown", "to_latex"):
            text = markdown if name == "to_markdown" else latex
            drawn = (
                [_figure(result, result._alpha(level(verb).get("alpha")), figure)]
                if figure and name == "to_latex"
                else []
            )
            path.write_text("\n".join([verb(**level(verb)), *map(text, below), *drawn]), encoding="utf-8")
        elif below and name == "to_word":
            word([document(result, result._alpha(level(verb).get("alpha")), pictured=True), *below], path)
        elif below:
            from confide.results.pages.report import page

            path.write_text(page(result, result._alpha(level(verb).get("alpha")), below), encoding="utf-8", newline="")
        else:
            verb(path, **level(verb))
    except OSError as error:
        raise FileError(
            f"the report cannot be written to {str(path)!r}: {error.strerror}", "give a file in a directory that exists"
        ) from None


def check_word() -> None:
    """`PlanError` where Word files cannot be written, because python-docx is not installed."""
    _docx()


def _docx() -> Any:
    try:
        import docx
        import docx.enum.text
    except ModuleNotFoundError:
        raise PlanError(
            "Word files need one more package: pip install 'confide[word]'; .md and .tex files need none"
        ) from None
    return docx


# a formula's first signs, full-width ones too; blanks and marks of no width before them are skipped by some programs
_SIGNS = r"['\s\x00\u200b-\u200f\u2060\ufeff]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile(rf"(^|[;\t\r\n])(?={_SIGNS})")
_SHIELD = re.compile(rf"(^|[;\t\r\n])'(?={_SIGNS})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def shielded(text: str) -> str:
    """A label as it stands in a CSV cell: with an apostrophe where a spreadsheet would run it.

    >>> shielded("=1+1"), shielded("-9"), shielded("a-b"), shielded("'=1")
    ("'=1+1", '-9', 'a-b', "''=1")
    """
    return text if _NUMBER.fullmatch(text) else _RUNS.sub(r"\1'", text)


def plain(cell: str) -> str:
    """The label of a cell that `shielded` wrote.

    >>> plain(shielded("=1+1")), plain(shielded("'=1")), plain("'tis")
    ('=1+1', "'=1", "'tis")
    """
    return _SHIELD.sub(r"\1", cell)


def csv_text(frame: pd.DataFrame, **options: Any) -> str:
    """A frame as CSV, names of columns, row labels and text cells `shielded`; options as of `DataFrame.to_csv`."""
    safe = shielded_frame(frame)
    if options.get("index", True):
        safe.index = _labels(frame.index)
    text = str(safe.to_csv(lineterminator="\n", **options))
    # a carriage return ends a line to every reader, and Python's writer leaves it without quotes
    return text if "\r" not in text else str(safe.to_csv(lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC, **options))


def shielded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with its names of columns and its text cells `shielded`."""
    safe = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":  # text, categories included
            safe.isetitem(place, frame.iloc[:, place].astype(object).map(_cell).to_numpy())
    safe.columns = _labels(frame.columns)
    return safe


def _labels(index: Any) -> Any:
    if index.nlevels > 1:
        return index.set_levels([level.map(_cell) for level in index.levels])
    return index.map(_cell).rename(index.name)


def _cell(value: Any) -> Any:
    return shielded(value) if isinstance(value, str) else value
