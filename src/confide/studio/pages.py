"""How the studio's answers are made: its templates, the one script, a result's own page, and files to take away."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from confide._special import ndtr
from confide._text import clean
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.pages.written import save
from confide.schema.formulas.names import quoted

__all__ = ["CHANCES", "SCRIPT", "WRITTEN", "download", "report", "templates", "to", "written"]

# how often who guesses whether one person is in the data is right, of 100 cases, by mu
CHANCES = [(mu, 100 * float(ndtr(mu / 2))) for mu in (0.5, 1, 2)]
_REPORT = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'"
)

SCRIPT = """\
const form = document.getElementById("question"), plan = document.getElementById("plan");
let timer = 0, asked = 0;
const follow = () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const told = [...form.elements].filter(field => /^formula/.test(field.name));
    if (told.length && !told.some(field => field.value)) return;
    const own = ++asked;
    plan.setAttribute("aria-busy", "true");
    const answer = await fetch("/forecast?" + new URLSearchParams(new FormData(form)));
    const text = await answer.text();
    if (own !== asked) return;
    if (answer.ok) plan.innerHTML = text;
    plan.removeAttribute("aria-busy");
  }, 400);
};
form.addEventListener("input", follow);
follow();
"""


@lru_cache(maxsize=1)
def templates() -> Environment:
    loader = PackageLoader("confide.studio", "templates")
    made = Environment(
        loader=loader,
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plain": clean, "in_formula": quoted}
    return made


def to(place: str) -> Response:
    return RedirectResponse(place, 303)


def report(result: Any) -> Response:
    """A result's own page. It is made of a file that anyone may have written, so that it runs nothing and reaches nothing."""
    with tempfile.TemporaryDirectory() as place:
        text = result.report(Path(place) / "report.html").read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": _REPORT})


def download(text: str | bytes, name: str, media: str) -> Response:
    named = f"attachment; filename*=UTF-8''{quote(name)}"
    return Response(
        text, media_type=media, headers={"Content-Disposition": named, "Content-Security-Policy": "default-src 'none'"}
    )


#: How a report is written: its ending, and the media type. The Word file needs the extra `word`.
WRITTEN: Mapping[str, str] = {
    "html": "text/html",
    "md": "text/markdown",
    "tex": "text/x-tex",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "csv": "text/csv",
}


def written(result: Any, name: str, ending: str) -> Response:
    """A result as a file: a page, or its table for a text, a paper, a word processor or a spreadsheet; `PlanError` for another ending."""
    if ending not in WRITTEN:
        raise PlanError(f"reports are written as {', '.join(WRITTEN)}, not as {ending!r}")
    with tempfile.TemporaryDirectory() as place:
        own = Path(place) / f"report.{ending}"
        (_as_csv if ending == "csv" else save)(result, own)
        return download(own.read_bytes(), f"{name}.{ending}", WRITTEN[ending])


def _as_csv(result: Any, place: Path) -> None:
    if not isinstance(result, BaseResult):
        raise PlanError(
            "a publication has a table for each question, and no file of rows holds them; take Markdown, LaTeX or Word"
        )
    result.to_csv(place)
