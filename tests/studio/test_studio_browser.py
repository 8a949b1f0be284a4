"""The studio in a real browser: the way for two tables, by mouse and by keyboard, at two widths, without serious findings of axe-core.

Skipped where no Chromium is installed. axe-core (Mozilla Public License 2.0) lies in `tests/studio/vendor`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.needs import chromium
from tests.studio.served import LEDGER, SCHEMA, served, survey

from confide.ledger import Ledger

pytestmark = pytest.mark.needs("a browser")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_WAIT = 60_000


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium(), args=_FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser, tmp_path):
    survey(tmp_path)
    with served(tmp_path) as studio:
        # axe-core is put into the page from outside, which its policy rightly refuses
        context = browser.new_context(viewport={"width": 1400, "height": 900}, bypass_csp=True)
        opened = context.new_page()
        opened.set_default_timeout(_WAIT)
        opened.studio, opened.complaints = studio, []
        opened.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.goto(studio.link)
        yield opened
        context.close()


def _fill(page, form):
    for name, value in form.items():
        field = page.locator(f"[name='{name}']")
        kind = field.first.evaluate("e => e.tagName")
        if kind == "SELECT":
            field.select_option(value)
        elif field.first.get_attribute("type") != "hidden":
            field.fill(value)


def _serious(page) -> list[str]:
    page.wait_for_load_state()
    page.wait_for_selector("main")
    page.add_script_tag(path=Path(__file__).with_name("vendor") / "axe.min.js")
    found = page.evaluate("axe.run()")
    return [f"{one['id']}: {one['help']}" for one in found["violations"] if one["impact"] in ("serious", "critical")]


def _press(page, role, name):
    """A click, and the whole page that it leads to: a click alone ends where the first byte of an answer came."""
    page.get_by_role(role, name=name).click()
    page.wait_for_load_state()


def _home(page):
    page.goto(f"http://127.0.0.1:{page.studio.port}/")


def _released(page, formula: str, kind: str) -> None:
    page.get_by_role("link", name="New analysis of").first.click()
    page.wait_for_load_state()  # what is typed before the script runs moves no plan
    page.select_option("[name=kind]", kind)
    page.fill("[name=formula]", formula)
    page.locator("#plan pre", has_text="Plan ID").wait_for(state="attached")
    page.fill("[name=mu]", "0.4")
    page.locator("#plan", has_text="mu=0.4").wait_for()
    _press(page, "button", "Show the plan")
    _press(page, "button", "Write the request")
    _press(page, "button", "Approve: see the charge")
    page.get_by_role("button", name="Charge and release").dblclick()
    page.wait_for_load_state()
    _press(page, "link", "Read the report")


@pytest.mark.long
def test_two_tables_from_the_file_to_the_report(page, tmp_path):
    _press(page, "link", "Describe survey.csv")
    _fill(page, SCHEMA)
    _press(page, "button", "Write the schema")
    _home(page)
    _fill(page, LEDGER)
    _press(page, "button", "Open this budget")
    _home(page)
    _released(page, "income ~ age + region", "line")
    assert "Linear regression of income" in page.inner_text("h1")
    g = np.random.default_rng(5)
    pd.DataFrame({"weight": g.normal(70, 9, 500)}).to_parquet(tmp_path / "clinic.parquet")
    _home(page)
    _press(page, "link", "Describe clinic.parquet")
    _fill(page, {"dataset": "clinic", "unit": "record", "values0": "30-200", "from0": "medicine"})
    _press(page, "button", "Write the schema")
    _home(page)
    page.get_by_text("Open a budget for a project").click()
    _fill(page, LEDGER | {"dataset": "clinic"})
    _press(page, "button", "Open this budget")
    _home(page)
    _press(page, "link", "New analysis of clinic")
    page.select_option("[name=kind]", "means")
    page.fill("[name=formula]", "weight ~ 1")
    _press(page, "button", "Show the plan")
    assert "choose what the intervals are about" in page.get_by_role("alert").inner_text()
    page.get_by_label("the population that the records are a sample of").check()
    _press(page, "button", "Show the plan")
    _press(page, "button", "Write the request")
    assert (
        page.input_value("[name=data]") == "clinic.parquet" and page.input_value("[name=ledger]") == "ledger.db/clinic"
    )
    _press(page, "button", "Approve: see the charge")
    _press(page, "button", "Charge and release")
    _press(page, "link", "Read the report")
    assert "weight" in page.inner_text("main")
    for dataset in ("survey", "clinic"):
        rows = Ledger.open(tmp_path / "ledger.db", dataset=dataset).show().rows
        assert sum(row.kind == "charge" for row in rows) == 1
    assert page.complaints == []


@pytest.mark.parametrize("width", [390, pytest.param(1400, marks=pytest.mark.long)])
def test_pages_are_read_by_everyone(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert _serious(page) == []
    _press(page, "link", "Describe survey.csv")
    assert _serious(page) == []
    _fill(page, SCHEMA)
    _press(page, "button", "Write the schema")
    assert _serious(page) == []
    _home(page)
    _fill(page, LEDGER)
    _press(page, "button", "Open this budget")
    assert _serious(page) == []
    page.goto(
        f"http://127.0.0.1:{page.studio.port}/ask?schema=survey.schema.toml&kind=counts&formula=region&mu=0.3&n=600&inference=dataset"
    )
    assert _serious(page) == []
    _press(page, "button", "Write the request")
    assert _serious(page) == []
    _press(page, "button", "Approve: see the charge")
    assert _serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
def test_the_keyboard_alone_releases(page, tmp_path):
    page.get_by_role("link", name="Describe survey.csv").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[name=dataset]")
    _fill(page, SCHEMA)
    page.locator("[name=from4]").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/schema/survey.schema.toml")
    _home(page)
    _fill(page, LEDGER)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ledger/ledger.db")
    page.goto(
        f"http://127.0.0.1:{page.studio.port}/ask?schema=survey.schema.toml&kind=counts&formula=region&mu=0.3&inference=dataset"
    )
    for name in ("Write the request", "Approve: see the charge", "Charge and release"):
        button = page.get_by_role("button", name=name)
        for _ in range(60):
            page.keyboard.press("Tab")
            if button.evaluate("e => e === document.activeElement"):
                break
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.get_by_role("link", name="Read the report").wait_for()
    assert sum(row.kind == "charge" for row in Ledger.open(tmp_path / "ledger.db").show().rows) == 1


@pytest.mark.parametrize("width", [390, pytest.param(1400, marks=pytest.mark.long)])
def test_many_questions_of_a_table_of_a_database(page, tmp_path, width):
    """A table is described, two questions are asked at once with the plan following, and released with one charge."""
    frame = pd.read_csv(tmp_path / "survey.csv")
    (tmp_path / "survey.csv").unlink()
    with sqlite3.connect(tmp_path / "clinic.sqlite") as made:
        frame.to_sql("visits", made, index=False)
    made.close()
    page.set_viewport_size({"width": width, "height": 800})
    _home(page)
    _press(page, "link", "Describe clinic.sqlite/visits")
    _fill(page, {key: value for key, value in SCHEMA.items() if key != "data"})
    _press(page, "button", "Write the schema")
    _home(page)
    _fill(page, LEDGER)
    _press(page, "button", "Open this budget")
    _home(page)
    _press(page, "link", "New publication of")
    page.select_option("[name=kind0]", "counts")
    page.fill("[name=formula0]", "region * cut(age, 40)")
    assert page.input_value("[name=inference0]") == ""
    page.select_option("[name=inference0]", "dataset")
    page.select_option("[name=kind1]", "t_test")
    page.fill("[name=formula1]", "income ~ region")
    page.locator("#plan", has_text="2 analyses, one charge").wait_for()
    _press(page, "button", "Add an analysis")
    page.locator("legend", has_text="Analysis 4").wait_for()
    assert _serious(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= width
    _press(page, "button", "Write the request")
    _press(page, "button", "Approve: see the charge")
    _press(page, "button", "Charge and release")
    _press(page, "link", "Read the report")
    text = page.inner_text("main")
    assert "Publication of 2 analyses" in text and "t test: mean income by region" in page.content()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert sum(row.kind == "charge" for row in Ledger.open(tmp_path / "ledger.db").show().rows) == 1
    assert page.complaints == []


def test_thirteen_columns_fit_one_screen(page, tmp_path):
    """One table, a row a column, which one screen shows with the button; what one types is seen by everyone."""
    (tmp_path / "wide.csv").write_text(";".join(f"a_longer_name_{at}" for at in range(13)) + "\n")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"http://127.0.0.1:{page.studio.port}/schema?data=wide.csv")
    box = page.get_by_role("button", name="Write the schema").bounding_box()
    assert page.locator("tbody tr").count() == 13 and box["y"] + box["height"] <= 900
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.get_by_text("How the file is laid out: delimiter ;").click()
    page.get_by_role("button", name="Read the header again").click()
    page.wait_for_load_state()
    assert page.input_value("[name=file_delimiter]") == ";" and _serious(page) == []


def test_no_file_is_charged_that_nobody_chose(page, tmp_path):
    """With the schema of neither of two files the browser does not go on; with that of one the price asks whether it is the right one."""
    _press(page, "link", "Describe survey.csv")
    _fill(page, SCHEMA)
    _press(page, "button", "Write the schema")
    _home(page)
    _fill(page, LEDGER)
    _press(page, "button", "Open this budget")
    (tmp_path / "archive.csv").write_bytes((tmp_path / "survey.csv").read_bytes())
    own = tmp_path / "survey.schema.toml"
    text = own.read_text()
    own.write_text(text.replace('name = "survey.csv"', ""))
    page.goto(
        f"http://127.0.0.1:{page.studio.port}/ask?schema=survey.schema.toml&kind=counts&formula=region&mu=0.3&inference=dataset"
    )
    _press(page, "button", "Write the request")
    assert page.input_value("[name=data]") == ""
    page.get_by_role("button", name="Approve: see the charge").click()
    assert page.locator("[name=data]:invalid").count() == 1 and "/request/" in page.url
    own.write_text(text)
    page.reload()
    assert page.input_value("[name=data]") == "survey.csv" and _serious(page) == []
    _press(page, "button", "Approve: see the charge")
    pane = page.locator("#preflight pre")
    page.locator("#preflight", has_text="not private").wait_for()
    assert "600" in pane.inner_text() and _serious(page) == []
    told = page.get_by_role("alert").inner_text()
    assert "also have the columns of this plan's schema: archive.csv." in told
    assert "survey.csv (" in told and "bytes, changed 20" in told and _serious(page) == []
    assert page.complaints == []


def test_another_origin_can_neither_read_nor_post(page, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with served(tmp_path / "elsewhere") as other:
        foreign = page.context.new_page()
        foreign.goto(other.link)
        target = f"http://127.0.0.1:{page.studio.port}"
        read = foreign.evaluate(
            "url => fetch(url, {credentials: 'include', mode: 'no-cors'}).then(a => a.type, () => 'refused')", target
        )
        assert read in ("opaque", "refused")
        fields = "".join(f"<input name={key} value={value}>" for key, value in (LEDGER | {"name": "x"}).items())
        foreign.set_content(f"<form id=f method=post action='{target}/ledger'>{fields}</form>")
        foreign.evaluate("document.getElementById('f').submit()")
        foreign.wait_for_load_state()
        assert not (tmp_path / "x.db").exists()


def _drop(page, place, file):
    """As a file that is dragged from the desktop: the browser's own way, which no script of the page sees."""
    page.locator(place).scroll_into_view_if_needed()
    box = page.locator(place).bounding_box()
    where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    dragged = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    client = page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        client.send("Input.dispatchDragEvent", {"type": step, **where, "data": dragged})
    page.wait_for_function("document.querySelector('#file').files.length === 1")


@pytest.mark.parametrize("width", [390, pytest.param(1400, marks=pytest.mark.long)])
def test_a_chosen_file_is_described_budgeted_asked_and_released(page, tmp_path, width):
    """From an empty folder, as somebody goes who has not read the guide: each page has the way on, and none a dead end."""
    (tmp_path / "survey.csv").rename(tmp_path.parent / f"{tmp_path.name} panel.csv")
    page.set_viewport_size({"width": width, "height": 800})
    _home(page)
    assert page.get_by_text("There are no records in this folder yet").is_visible() and _serious(page) == []
    given = tmp_path.parent / f"{tmp_path.name} panel.csv"
    if width == 1400:
        page.set_input_files("#file", given)
    else:
        _drop(page, "#file", given)
    _press(page, "button", "Copy it into the folder")
    assert "Kind" in page.inner_text("main")
    _fill(page, {key: value for key, value in SCHEMA.items() if key not in ("data", "dataset", "kind2")})
    _press(page, "button", "Write the schema")
    assert "choose its kind" in page.get_by_role("alert").inner_text() and _serious(page) == []
    _fill(page, {"kind2": "numeric", "missing2": "0"})
    _press(page, "button", "Write the schema")
    assert _serious(page) == []
    _press(page, "button", "Open this budget")
    assert _serious(page) == []
    _press(page, "link", "New analysis of")
    page.select_option("[name=kind]", "means")
    page.fill("[name=formula]", "income ~ region")
    page.get_by_label("exactly these records").check()
    _press(page, "button", "Show the plan")
    _press(page, "link", "Rehearse")
    assert "SIMULATED" in page.inner_text("main").upper()
    page.go_back()
    _press(page, "button", "Write the request")
    _press(page, "button", "Approve: see the charge")
    _press(page, "button", "Charge and release")
    page.get_by_role("link", name="Read the report").wait_for()
    assert _serious(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as taken:
        page.get_by_role("link", name="Markdown").click()
    assert "| region | n | mean |" in Path(taken.value.path()).read_text()
    _press(page, "link", "Read the report")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # of A4 within margins: a table, as on a wide screen
    cells = [page.get_by_role(role).first.bounding_box() for role in ("rowheader", "cell")]
    assert cells[0]["y"] == cells[1]["y"] and page.evaluate("document.documentElement.scrollWidth") <= 718
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": width, "height": 800})
    _home(page)
    page.get_by_text("Bring a file into this folder").click()
    page.set_input_files("#file", tmp_path / f"{tmp_path.name} panel.csv")
    _press(page, "button", "Copy it into the folder")
    assert "is there already" in page.get_by_role("alert").inner_text()
