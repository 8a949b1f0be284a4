"""The studio's pages: each GET shows, each POST does one thing and sends the browser to the page that shows it.

How the studio's answers are made: its templates, the one script, a result's own page, and files to take away.
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request as Web
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from confide import engine
from confide._helpers import clean
from confide.ask.menu import PUBLICATION, Question, asked_in, by_family, number, question, questions, reading_of
from confide.core import Plan
from confide.core.units.privacy_unit import WHOLE, unit_words
from confide.errors import ConfideError, FileError, PlanError
from confide.guarantees import GDP
from confide.guarantees.plain_words import guess_percent
from confide.ledger import Ledger, printing
from confide.noise import SimulatedNoise
from confide.results.base import BaseResult
from confide.results.pages.export import save
from confide.results.pages.report import listed
from confide.results.pages.table import interval_head, view
from confide.schema import Schema
from confide.schema.draft import Field
from confide.schema.formulas.names import quoted
from confide.schema.layout import FileLayout
from confide.sources import read
from confide.studio import approvals, ranges, schema_form
from confide.studio.approvals import ApprovalQueue
from confide.studio.folder import SCHEMA, Folder, Request, stem_of
from confide.studio.forms import Form, asked_of, columns_of, plan_of, rows_of, rules_of
from confide.studio.guard import Guard, Keys, policy
from confide.studio.script import STEPS
from confide.studio.upload import ENDINGS, LARGEST, ForeignForm, received

# the guarantee in plain words, by mu: per cent of right guesses, rounded up
GUESSES = [(mu, guess_percent(GDP(mu))) for mu in (0.5, 1, 2)]
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
    plan.textContent = "Working ... ";
    const answer = await fetch("/forecast?" + new URLSearchParams(new FormData(form)));
    const text = await answer.text();
    if (own !== asked) return;
    // 204: another page of the studio asked meanwhile
    if (answer.status === 204) return follow();
    plan.innerHTML = answer.ok ? text : "";
    plan.removeAttribute("aria-busy");
  }, 400);
};
form.addEventListener("input", follow);
follow();
"""

#: Asks for the counts, lets the button be pressed when they are there, and forgets them when the page is left.
PANE = """\
const pane = document.getElementById("preflight"), told = pane && pane.querySelector("pre");
const charge = document.getElementById("charge");
const look = async () => {
  if (!pane.open || told.textContent) return;
  // Asked once.
  told.textContent = "Reading the records. Please wait ... ";
  try {
    const answer = await fetch(pane.dataset.from, {cache: "no-store"});
    // Shown as text, kept nowhere. Never as HTML.
    told.textContent = await answer.text();
    charge.disabled = false;
  } catch {
    told.textContent = "";
    pane.open = false;
  }
};
if (pane) {
  charge.disabled = true;
  look();
  // The counts are forgotten.
  pane.addEventListener("toggle", look);
  addEventListener("pagehide", () => { told.textContent = ""; pane.open = false; });
}
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
            "a publication has a table for each question, and no file of rows holds them",
            "take Markdown, LaTeX or Word",
        )
    result.to_csv(place)


_RECORDS = "/records"
_PRACTICE, _FEW, _MOST_PRACTICE = 2_000, 200, 1_000_000


class Studio:
    """One folder, one session, one port; `app` is what a server runs. databases: variables that hold the addresses of databases."""

    def __init__(self, folder: str | Path, port: int, databases: Sequence[str] = ()) -> None:
        self.folder, self.keys, self.port = Folder.at(folder, databases), Keys(), port
        self.desk = ApprovalQueue(self.folder)
        self.searches = ranges.Searches(self.folder)
        self._contents: dict[str, tuple[str, str]] = {}
        self._problems: dict[str, tuple[Any, str]] = {}
        self._forecasts, self._forecasting = count(), Lock()
        self._newest = 0
        self.app = Starlette(
            routes=list(self._routes()),
            middleware=[Middleware(Guard, keys=self.keys, port=port, files={_RECORDS: LARGEST})],
        )

    @property
    def link(self) -> str:
        """What the steward opens: it works for one browser, once."""
        return f"http://127.0.0.1:{self.port}/?token={self.keys.link}"

    def _routes(self) -> Iterator[Route]:
        shown: tuple[tuple[str, Callable[[Web], Response]], ...] = (
            ("/", self.home),
            ("/schema", self.schema_form),
            ("/schema/{name}", self.schema),
            ("/ledger/{name}", self.ledger),
            ("/ask", self.ask),
            ("/forecast", self.forecast),
            ("/practise", self.practise),
            ("/request/{name}", self.request),
            ("/request/{name}/steps.{ending}", self.step),
            ("/approve/{nonce}", self.approval),
            ("/approve/{nonce}/preflight", self.preflight),
            ("/release/{name}", self.report),
            ("/release/{name}/file", self.file),
            ("/release/{name}/report.{ending}", self.written),
            ("/style.css", self.style),
            ("/favicon.ico", lambda _: Response(status_code=204)),
        )
        done: tuple[tuple[str, Callable[[Web, Form], Response]], ...] = (
            ("/schema", self.write_schema),
            ("/schema/{name}/ranges", self.search_ranges),
            ("/ranges/{nonce}", self.find_ranges),
            ("/ledger", self.open_ledger),
            ("/ask", self.write_request),
            ("/request/{name}/simulate", self.simulate),
            ("/request/{name}/refuse", self.refuse),
            ("/request/{name}/again", self.again),
            ("/request/{name}/approve", self.approve),
            ("/approve/{nonce}", self.begin),
        )
        for path, page in shown:
            yield Route(path, self._shows(page), methods=["GET"])
        for path, action in done:
            yield Route(path, self._does(action), methods=["POST"])
        yield Route(_RECORDS, self.take, methods=["POST"])

    def _shows(self, page: Callable[[Web], Response]) -> Any:
        async def endpoint(web: Web) -> Response:
            return await run_in_threadpool(self._answered, page, web)

        return endpoint

    def _does(self, action: Callable[[Web, Form], Response]) -> Any:
        async def endpoint(web: Web) -> Response:
            try:
                form = dict(parse_qsl((await web.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=5_000))
            except ValueError:
                return self._message("This form cannot be read", "Go back, and send it again.", 400)
            if not self.keys.own(form.pop("csrf", "")):
                return self._refused(ForeignForm())
            return await run_in_threadpool(self._answered, action, web, form)

        return endpoint

    def _answered(self, work: Callable[..., Response], *given: Any) -> Response:
        try:
            return work(*given)
        except Exception as error:
            return self._refused(error)

    def _refused(self, error: Exception) -> Response:
        if isinstance(error, ForeignForm):
            words = "Nothing was done. Go to the first page, and begin there."
            return self._message("This form is of another session", words, 403)
        if isinstance(error, ConfideError):
            return self._message("That cannot be done", "\n".join(approvals.refusal(error)), 422)
        # its words may be about records
        words = "What went wrong is not shown, because its words may be about records. A charge that was made stays in the ledger."
        return self._message("That stopped", words, 500)

    # pages ------------------------------------------------------------------------------------------------------------

    def _page(self, template: str, /, status: int = 200, script: str | None = None, **facts: Any) -> Response:
        made = templates().get_template(f"{template}.html.j2")
        text = made.render(csrf=self.keys.form, folder=self.folder.root.name, script=script, guesses=GUESSES, **facts)
        headers = {"Content-Security-Policy": policy(script)}
        return HTMLResponse(text, status, headers=headers)

    def _message(self, title: str, words: str, status: int) -> Response:
        return self._page("message", status, title=title, words=words.split("\n"))

    def style(self, _: Web) -> Response:
        text = Path(__file__).with_name("templates").joinpath("studio.css").read_text(encoding="utf-8")
        return Response(text, media_type="text/css")

    def home(self, _: Web) -> Response:
        """What is in the folder, and what may be done next."""
        asked = [(one, self._standing(one)) for one in self.folder.requests()]
        own = {name for name, _ in asked}
        return self._page(
            "home",
            data=[(name, self._unread(name)) for name in self.folder.data()],
            endings=ENDINGS,
            largest=LARGEST >> 30,
            schemas=self.folder.schemas(),
            ledgers=[(name, approvals.accounts(self.folder, name)) for name in self.folder.ledgers()],
            asked=asked,
            budget=approvals.beginning(self.folder, approvals.first_without(self.folder)),
            loose=[name for name in self.folder.releases() if name not in own],
        )

    def _unread(self, name: str) -> str:
        """Why a file cannot be read, asked once for each state of it and of the schemas: a workbook is opened for it."""
        try:
            state = self.folder.mark(name), tuple(self.folder.mark(one) for one in self.folder.schemas())
        except ConfideError as error:
            return str(error)
        if self._problems.get(name, (None, ""))[0] != state:
            self._problems[name] = state, self.folder.unread(name)
        return self._problems[name][1]

    def _standing(self, name: str) -> str:
        try:
            return self.desk.state(self.folder.request(name)).name
        except ConfideError:
            return "unreadable"

    async def take(self, web: Web) -> Response:
        """A file that the browser sends comes into the folder, never over another; then the page about it is shown."""
        try:
            return to(await received(web, self.folder, self.keys.own))
        except Exception as error:
            return self._refused(error)

    # the schema -------------------------------------------------------------------------------------------------------

    def schema_form(self, web: Web) -> Response:
        """A form for what is public of a file's columns, from their names and types alone."""
        return self._schema_page(web.query_params.get("data", ""), {}, "")

    def _schema_page(self, data: str, form: Form, error: str, status: int = 200) -> Response:
        """The form with what was typed. A file that cannot be read has the fields of its layout alone, and why."""
        found: list[Field] = []
        layout = FileLayout()
        try:
            layout = schema_form.layout_of(form)
            found, layout = self.folder.fields(data, layout)
        except FileError:
            raise
        except ConfideError as unread:
            error, status = error or str(unread), 422
        own = schema_form.placed(found, form)
        return self._page(
            "schema_form",
            status,
            data=data,
            stem=stem_of(data),
            rows=schema_form.rows(found, form),
            kinds=schema_form.KINDS,
            layout=schema_form.LAYOUT,
            shown=schema_form.layout_shown(layout, form),
            file=not self.folder.is_table(data),
            form=own,
            error=error.split("\n") if error else [],
        )

    def write_schema(self, web: Web, form: Form) -> Response:
        """Write `NAME.schema.toml`, or show the form again with what is wrong in it, or with another layout of the file."""
        data = form.get("data", "")
        name = f"{stem_of(data)}{SCHEMA}"
        if form.get("again"):
            return self._schema_page(data, form, "")
        try:
            made = schema_form.schema_of(*self.folder.fields(data, schema_form.layout_of(form)), form, data)
            with self.folder.path(name).open("x", encoding="utf-8") as file:
                file.write(made.to_toml())
        except FileExistsError:
            return self._schema_page(data, form, f"{name} is there already; move it away to write another", 409)
        except FileError:
            raise
        except ConfideError as error:
            return self._schema_page(data, form, str(error), 422)
        return to(f"/schema/{quote(name)}")

    def schema(self, web: Web) -> Response:
        """The columns of a schema, and what may be asked of them."""
        name = web.path_params["name"]
        found = self._schema(name)
        facts: dict[str, Any] = {
            "schema": found,
            "columns": list(columns_of(found)),
            "rules": rules_of(found),
            "questions": questions(),
            "open": ranges.open_columns(found),
        }
        if facts["open"]:
            ledgers = [(one, approvals.accounts(self.folder, one)) for one in self.folder.ledgers()]
            facts |= {"data": self.folder.with_columns_of(found), "accounts": approvals.accounts_of(ledgers, found)}
        return self._page(
            "schema",
            name=name,
            budget=approvals.beginning(self.folder, found),
            has_budget=approvals.has_one(self.folder, found),
            **facts,
        )

    def search_ranges(self, web: Web, form: Form) -> Response:
        """The page before ranges are found: what it costs, and what it writes. Nothing is charged yet."""
        name = web.path_params["name"]
        columns = [value for key, value in form.items() if re.fullmatch("find[0-9]{1,4}", key)]
        privacy = GDP(number(form.get("mu", ""), "the cost mu"))
        made = self.searches.prepare(name, columns, form.get("data", ""), form.get("account", ""), privacy)
        return self._page("ranges", made=made, name=name)

    def find_ranges(self, web: Web, form: Form) -> Response:
        """Find the ranges, once, and show the schema that has them."""
        return to(f"/schema/{quote(self.searches.begin(web.path_params['nonce']))}")

    def _schema(self, name: str) -> Schema:
        return Schema.from_toml(self.folder.path(name))

    # ledgers ----------------------------------------------------------------------------------------------------------

    def open_ledger(self, web: Web, form: Form) -> Response:
        """A new ledger with the budget of one project."""
        name = form.get("name", "").strip()
        name = name if name.endswith(".db") else f"{name}.db"
        unit = form.get("unit", "").strip()
        budget = GDP(number(form.get("mu", ""), "the budget mu"), relation=form.get("relation") or None)
        dataset = form.get("dataset", "").strip()
        Ledger.create(
            self.folder.path(name), dataset=dataset, budget=budget, unit=unit if unit not in ("", "record") else None
        ).close()
        return to(f"/ledger/{quote(name)}")

    def ledger(self, web: Web) -> Response:
        """The percentage used, what it means and what is left, for each dataset of a ledger."""
        name = web.path_params["name"]
        place = self.folder.path(name)
        shown = []
        for dataset in Ledger.datasets(place):
            with closing(Ledger.open(place, dataset=dataset)) as book:
                shown.append((book.show(), book.buys()))
        return self._page(
            "ledger",
            name=name,
            accounts=shown,
            used=lambda state: printing.percent(state.used),
            left=lambda state: printing.left(state.used),
            when=lambda row: printing.moment(row.time, utc=False),
            what=printing.what,
            charged=lambda row: printing.percent(row.share) if row.kind == "charge" else "",
            schemas=approvals.schemas_of(self.folder, [one.dataset for one, _ in shown]),
        )

    # questions --------------------------------------------------------------------------------------------------------

    def ask(self, web: Web) -> Response:
        """The form of an analysis, with its plan once it is filled in."""
        form = asked_of(web.query_params)
        many = form.get("kind") == PUBLICATION
        found = self._schema(form["schema"]) if form.get("schema") else None
        facts: dict[str, Any] = {"form": form, "schemas": self.folder.schemas(), "families": by_family(), "plan": None}
        facts |= {"error": [], "rows": rows_of(form) if many else 0}
        if form.get("kind") and not many:
            facts["chosen"] = question(form["kind"])
        first: Question = facts.get("chosen") or questions()[0]
        facts["example"] = (None if found is None else first.asked_of(found)) or first.example
        if found is not None:
            facts["columns"] = list(columns_of(found))
        if found is not None and (asked_in(form) if many else form.get("formula")):
            try:
                facts["plan"] = self._plan(form)
            except ConfideError as error:
                facts["error"] = str(error).split("\n")
        return self._page(PUBLICATION if many else "ask", 200, SCRIPT, query=urlencode(form), **facts)

    def _plan(self, form: Form, schema: Schema | None = None) -> Plan:
        """schema: another than the one that the form names."""
        return plan_of(form, self._schema(form.get("schema", "")) if schema is None else schema)

    def forecast(self, web: Web) -> Response:
        """The plan alone, for the page of a question while its budget moves."""
        form = asked_of(web.query_params)
        own = self._newest = next(self._forecasts)
        with self._forecasting:
            if own != self._newest:  # nothing waits for it
                return Response(status_code=204)
            try:
                return self._page("plan", plan=self._plan(form), error=[])
            except ConfideError as error:
                return self._page("plan", plan=None, error=str(error).split("\n"))

    def practise(self, web: Web) -> Response:
        """The report of test data: drawn from the schema alone, with noise from a seed."""
        form = asked_of(web.query_params)
        made = self._plan(form)
        return self._practised(made, form)

    def _practised(self, made: Plan, form: Form) -> Response:
        return report(self._rehearsed(made, form, made.n or made.planned_n or _PRACTICE))

    def _rehearsed(self, made: Plan, form: Form, size: int) -> Any:
        """What a plan gives on test data of so many records."""
        schema = Schema.from_dict(made.schema)
        if size > _MOST_PRACTICE:
            raise PlanError(
                f"a rehearsal has at most {_MOST_PRACTICE:,} records, and this plan is for {size:,}; its release has no limit of this kind"
            )
        done = engine.release(made, read(schema.sample(size, 1), schema), ledger=None, noise=SimulatedNoise(1))
        return _read(form, engine.infer(done))

    def _content(self, made: Plan, form: Form) -> tuple[str, str]:
        """The title of what will be published, and what it holds, from a rehearsal of few records; the plan's words without one."""
        key = f"{made.sha256} {sorted(form.items())}"
        if key not in self._contents:
            self._contents[key] = made.target or made.method.name, ""
            with suppress(ConfideError):
                found = self._rehearsed(made, form, made.n or _FEW)
                self._contents[key] = _title_of(found), content_of(found)
        return self._contents[key]

    def write_request(self, web: Web, form: Form) -> Response:
        """Write a request: a file that the steward decides on."""
        asked = asked_of(form)
        made = self._plan(asked)
        stem = form.get("name", "").strip() or f"{asked['kind']}-{asked.get('formula', made.target)}"
        kept = self.folder.ask(stem, made, form.get("who", ""), form.get("purpose", ""), asked)
        return to(f"/request/{quote(kept.name)}")

    # requests and approvals -------------------------------------------------------------------------------------------

    def request(self, web: Web) -> Response:
        """A request with its exact plan and where it stands: to be simulated, approved or refused."""
        asked = self.folder.request(web.path_params["name"])
        state = self.desk.state(asked)
        plan, refused = None, ""
        try:
            plan = self._seen(asked)
        except ConfideError as error:
            refused = str(error)
        response = self._page(
            "request",
            asked=asked,
            plan=plan,
            state=state,
            content=(asked.name, "") if plan is None else self._content(plan, asked.form),
            decision=self.folder.decision(asked.name),
            held=self.desk.held(asked.name),
            endings=list(STEPS),
            written=list(WRITTEN),
            error=refused.split("\n") if refused else [],
            **({} if plan is None else self._choices(plan)),
        )
        if state.name == "running":
            response.headers["Refresh"] = "1"
        return response

    def _choices(self, plan: Plan) -> dict[str, Any]:
        """The records and budgets of a request, and its cost. Only what its schema was made for is chosen beforehand."""
        about = Schema.from_dict(plan.schema)
        ledgers = [(name, own) for name in self.folder.ledgers() if (own := approvals.accounts(self.folder, name))]
        named = approvals.accounts_of(ledgers, about)
        chosen = {"data": self.folder.records_of_schema(about), "ledger": named[0] if len(named) == 1 else None}
        costs = approvals.costs(self.folder, named, plan, about)
        data = sorted(self.folder.data(), key=lambda name: name != chosen["data"])
        protects = unit_words(plan.schema, plan.rule, whole=WHOLE in plan.constants, relation=plan.relation)
        return {"data": data, "ledgers": ledgers, "chosen": chosen, "costs": costs, "protects": protects}

    def _seen(self, asked: Request) -> Plan:
        """The plan made anew, with what it is expected to give where the form says for how many records: the same plan, by its digest."""
        with suppress(ConfideError):
            made: Plan = self._plan(asked.form, Schema.from_dict(asked.plan.schema))
            if made.sha256 == asked.plan.sha256:
                return made
        return asked.remade_plan()

    def step(self, web: Web) -> Response:
        """A request as a script, as commands or as a notebook."""
        asked, ending = self.folder.request(web.path_params["name"]), web.path_params["ending"]
        if ending not in STEPS:
            raise PlanError(f"steps are written as {', '.join(STEPS)}, not as {ending!r}")
        said = self.folder.decision(asked.name) or {}
        media, write = STEPS[ending]
        data, ledger = str(said.get("data", "DATA.csv")), str(said.get("ledger", "LEDGER.db"))
        text = write(asked, data, ledger, said.get("allow_partial") is True)
        return download(text, f"{asked.name}.{ending}", media)

    def simulate(self, web: Web, form: Form) -> Response:
        """What the request would give on test data."""
        asked = self.folder.request(web.path_params["name"])
        return self._practised(asked.plan, asked.form)

    def refuse(self, web: Web, form: Form) -> Response:
        """Refuse a request, with a reason that the analyst reads."""
        asked, reason = (
            self.folder.request(web.path_params["name"]),
            clean(" ".join(form.get("reason", "").split()))[:2_000],
        )
        if not reason:
            raise PlanError("a refusal needs a reason, which the analyst reads")
        self.folder.decide(asked.name, {"decision": "refused", "reason": reason, "plan_sha256": asked.plan.sha256})
        return to(f"/request/{quote(asked.name)}")

    def again(self, web: Web, form: Form) -> Response:
        """Reopen a request, if nothing came of it or the steward reconsiders."""
        asked = self.folder.request(web.path_params["name"])
        if self.desk.state(asked).name not in ("refused", "stopped"):
            raise PlanError(
                "this request was released, or is not decided", "ask the question again for another release of it"
            )
        self.folder.reopen(asked.name)
        return to(f"/request/{quote(asked.name)}")

    def approve(self, web: Web, form: Form) -> Response:
        """Prepare the page before the charge; nothing is charged yet."""
        asked = self.folder.request(web.path_params["name"])
        if form.get("sha256") != asked.plan.sha256:
            raise PlanError("the request's file changed since this page was shown; nothing was done", "read it again")
        if not form.get("data") or not form.get("ledger"):
            raise PlanError("choose the records, and the ledger that is charged; nothing was done")
        ledger, _, dataset = form.get("ledger", "").partition("/")
        title, _ = self._content(self._seen(asked), asked.form)
        kept = form.get("allow_partial") == "yes"
        made = self.desk.prepare(asked, title, form.get("data", ""), ledger, dataset or None, kept)
        return to(f"/approve/{made.nonce}")

    def approval(self, web: Web) -> Response:
        """The last page before a charge: plan ID, cost, meaning, what is left."""
        made = self.desk.prepared(web.path_params["nonce"])
        asked = self.folder.request(made.request)
        return self._page("approve", 200, PANE, made=made, asked=asked, state=self.desk.state(asked))

    def preflight(self, web: Web) -> Response:
        """What is read of the records of an approval: exact counts, for the pane that asks for them, kept nowhere."""
        try:
            text, status = str(self.desk.look(web.path_params["nonce"])), 200
        except ConfideError as error:
            text, status = clean(str(error)), 422
        except Exception:  # its words may be about records
            text, status = "That stopped. What went wrong is not shown, because its words may be about records.", 500
        return Response(text, status, {"Content-Security-Policy": "default-src 'none'; sandbox"}, "text/plain")

    def begin(self, web: Web, form: Form) -> Response:
        """Begin the release, once; every further click shows the same one."""
        return to(f"/request/{quote(self.desk.begin(web.path_params['nonce']))}")

    # releases ---------------------------------------------------------------------------------------------------------

    def report(self, web: Web) -> Response:
        """The report of a release, made from its file."""
        return report(self._result(web.path_params["name"]))

    def _result(self, name: str) -> Any:
        """What the release of a request says, as its form reads it."""
        done = self.folder.release(name)
        if done is None:
            raise PlanError(f"there is no release of {name!r} in this folder")
        form = self.folder.request(name).form if name in self.folder.requests() else {}
        return _read(form, engine.infer(done))

    def written(self, web: Web) -> Response:
        """The report of a release as a file."""
        name = web.path_params["name"]
        return written(self._result(name), name, web.path_params["ending"])

    def file(self, web: Web) -> Response:
        """The file of a release, to be published."""
        name = web.path_params["name"]
        done = self.desk.held(name) or self.folder.release(name)
        if done is None:
            raise PlanError(f"there is no release of {name!r} in this folder")
        return download(done.to_json(), f"{name}.release.json", "application/json")


def serve(
    folder: str | Path, port: int = 0, tell: Callable[[str], None] = print, databases: Sequence[str] = ()
) -> None:
    """Run the studio on this machine alone until it is interrupted; tell: is given the link, once it can be opened.

    databases: names of environment variables that hold addresses of databases, whose tables are records too.
    """
    import uvicorn

    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        studio = Studio(folder, listening.getsockname()[1], databases)
        # who is at the other end is asked of the system, not of a header
        plain: dict[str, Any] = {"access_log": False, "server_header": False, "proxy_headers": False, "lifespan": "off"}
        config = uvicorn.Config(studio.app, log_level="warning", **plain)
        tell(studio.link)
        sys.stdout.flush()
        uvicorn.Server(config).run(sockets=[listening])


def _title_of(result: Any) -> str:
    """The title of a rehearsal, without the ranges that it found, which are of test data."""
    return clean(result.title.replace(getattr(result, "coded", ""), ""))


def content_of(result: Any) -> str:
    """What a result holds, such as "A table of 8 cells and 7 totals with n, mean and 95% CI"."""
    if not isinstance(result, BaseResult):
        tables = [_title_of(one) if hasattr(one, "title") else name for name, one in result.results.items()]
        return f"One file with {len(tables)} {'table' if len(tables) == 1 else 'tables'}: {'; '.join(tables)}"
    seen = view(result, result._alpha(None))
    rows = len(seen.rows)
    totals = sum("Total" in row[: seen.labels] for row in seen.rows)
    heads = [
        head if one.kind != "interval" else interval_head(result, one, result._alpha(None))
        for one, head in zip(seen.columns, seen.heads, strict=True)
        if one.kind in ("estimate", "interval", "p") or head == "n"
    ]
    heads = list(dict.fromkeys(heads))
    what = f"{rows - totals} cells and {totals} total{'' if totals == 1 else 's'}" if totals else f"{rows} rows"
    return f"A table of {what}{f' with {listed(heads)}' if heads else ''}"


def _read(form: Form, result: Any) -> Any:
    """The result as its form reads it; a form of a file that somebody altered, or of another question, leaves it as it is."""
    try:
        return reading_of(form)(result)
    except Exception:  # whatever it says, what was paid for is shown
        return result
