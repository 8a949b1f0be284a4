"""The report: that it stands alone, obeys nobody, and says what it must."""

from __future__ import annotations

import re
from dataclasses import fields
from html.parser import HTMLParser
from math import floor, inf, log10, nan
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from tests.messages import refuses
from tests.results.results_examples import NAMES, SHA, Maker

import confide.results
from confide.core import STATUSES
from confide.errors import FileError
from confide.guarantees import GDP
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.results import Estimates
from confide.results.pages.content import STATUS_WORDS
from confide.results.pages.table import level_name

HOSTILE = [
    "<script>alert(1)</script>",
    "</title></svg><img src=x>",
    '" onload="x',
    "{{ 7*7 }}",
    "--><b>",
    "&lt;",
    "\x1b[2J\u202e",
]


class Page(HTMLParser):
    """Tags with their attributes, and the text a reader sees."""

    VOID = ("meta", "br", "img", "link", "hr", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def written(result: Estimates, path: Path, alpha: float = 0.05) -> str:
    found = result.report(path, alpha)
    assert found == path
    return path.read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


def test_nothing_is_fetched(make: Maker, path: Path):
    text = written(make(), path)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "image", "base", "form", "a"} & set(page.tags)
    for tag, key, value in page.attributes:
        assert not key.startswith("on") and key not in ("src", "srcset", "action"), (tag, key)
        if key.endswith("href"):
            assert value.startswith("#"), (tag, value)
    assert not re.search(r"https?:|//|@import|src=|<link", text)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_a_path_as_text_will_do(make: Maker, path: Path):
    assert make().report(str(path)) == path


def test_drawing_inside_is_whole(make: Maker, path: Path):
    page = Page(written(make(), path))
    assert page.tags.count("svg") == 1
    named = {value for _, key, value in page.attributes if key == "id"}
    used = {value.removeprefix("#") for _, key, value in page.attributes if key == "href"}
    used |= {found for _, _, value in page.attributes for found in re.findall(r"url\(#([^)]*)\)", value)}
    assert used and used <= named
    for name in map(level_name, NAMES[1:]):
        assert name in page.text


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("status", ["valid", "imprecise"])
def test_hostile_text_is_shown_and_not_obeyed(make: Maker, path: Path, status):
    names = (*HOSTILE, "日本")
    filler = tuple(f"n{place}" for place in range(len(names)))
    every = " ".join(HOSTILE)
    statement = GDP(1.0, relation="add-remove", assumptions=("plain",))
    # a guarantee refuses text that does not print, so its share of the attack is what does
    shown = "".join(character for character in every if character.isprintable())
    evil = GDP(1.0, relation="add-remove", assumptions=(shown,))
    plain = make(
        names=filler, flags=("f",), status=status, facts=(("f", "f" * 40),), guarantee=statement, simulated=True
    )
    hostile = make(
        names=names,
        response=every,
        method=every,
        flags=(every,),
        facts=((every, every),),
        target=every,
        intervals_for=every,
        release_sha256=every,
        guarantee=evil,
        simulated=True,
        status=status,
        **({} if status == "valid" else {"reason": every}),
    )
    text = written(hostile, path)
    expected = Page(written(plain, path))
    found = Page(text)
    drawn = {"g", "path", "use", "defs", "clippath", "rect", "text"}  # the ticks of the plot follow the width of names
    assert [tag for tag in found.tags if tag not in drawn] == [tag for tag in expected.tags if tag not in drawn]
    assert set(found.tags) == set(expected.tags)
    assert {key for _, key, _ in found.attributes} == {key for _, key, _ in expected.attributes}
    assert "<script>alert(1)</script>" in found.text
    assert "{{ 7*7 }}" in found.text
    assert "\x1b" not in text and "\u202e" not in text


def test_the_same_result_gives_the_same_page(make: Maker, path: Path):
    first = written(make(), path)
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "black", "svg.fonttype": "path"}):
        second = written(make(), path)
    assert first == second


def test_it_leaves_the_settings_of_matplotlib_alone(make: Maker, path: Path):
    before = dict(matplotlib.rcParams)
    make().report(path)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_said(make: Maker, path: Path, status):
    result = make(status=status, flags=("values_clipped",))
    page = Page(written(result, path))
    assert STATUS_WORDS[status] in page.text
    assert result.reason in page.text
    assert "lies outside its declared bounds and was clipped" in page.text
    assert ("There are no intervals" in page.text) == (status not in ("valid", "partial"))


def test_no_reply_has_a_page_without_a_plot(make: Maker, path: Path):
    page = Page(written(make(status="declined", estimates=np.full(5, nan), df=nan), path))
    assert "svg" not in page.tags
    assert "declined to answer" in page.text


def test_the_statement_says_all_that_it_must(make: Maker, path: Path):
    result = make()
    page = Page(written(result, path))
    for part in (
        "One record, which is one row of the data.",
        "neighboring datasets differ by one record, added or removed; the number of records is protected too",
        result.guarantee.describe(),
        f"Requested{result.requested}",
        f"Guarantee of the release{result.guarantee}",
        result.intervals_for,
        result.target,
        SHA,
        "How to read this table",
        "privacy share is the part of the squared margin of error that is privacy noise.",
    ):
        assert part in page.text, part
    for heading in ("Estimates", "What is protected, and how well", "How the intervals were made"):
        assert heading in page.text


def test_rows_of_a_unit_and_assumptions_are_said(make: Maker, path: Path):
    statement = GDP(1.0, relation="substitute", assumptions=("at most 4 rows per unit", "float64 sampling"))
    page = Page(written(make(guarantee=statement), path))
    assert "All rows of one unit together" in page.text
    assert "one row of the data" not in page.text
    assert "Under the assumption: at most 4 rows per unit." in page.text
    assert "Under the assumption: float64 sampling." in page.text
    assert "the number of records is public" in page.text


def test_simulated_noise_is_loud(make: Maker, path: Path):
    page = Page(written(make(simulated=True), path))
    assert page.text.count("SIMULATED NOISE: protects no one") >= 2  # banner and plot
    assert {("p", "role", "alert"), ("p", "class", "alarm")} <= set(page.attributes)
    assert page.text.index("SIMULATED NOISE") < page.text.index("Status valid")
    assert "Nothing: the noise was simulated." in page.text
    assert "SIMULATED" not in written(make(), path)


def test_the_example_and_the_picture_are_read_aloud(make: Maker, path: Path):
    result = make(df=inf)
    text = written(result, path, alpha=0.1)
    low, high = result.conf_int(0.1).loc["age"]
    digits = 1 - floor(log10(result.bse["age"]))
    coef, low, high = (f"{value:.{digits}f}" for value in (result.params["age"], low, high))
    assert f"the estimate for age is {coef}, and its 90% interval is {low} to {high}" in text
    assert f'<td role="cell" data-label="90% CI">{low} to {high}</td>' in text
    (alt,) = [value for _, key, value in Page(text).attributes if key == "aria-label"]
    assert alt.startswith("Estimates of y. Smallest: ") and "; largest: " in alt and "90% confidence intervals" in alt


def test_a_phone_and_a_printer_are_thought_of(make: Maker, path: Path):
    text = written(make(), path)
    assert '<html lang="en">' in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert "@media print" in text and "@media screen and (max-width: 58rem)" in text
    cells = [value for tag, key, value in Page(text).attributes if tag == "td" and key == "data-label"]
    assert cells[:2] == ["estimate", "std. err."]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        ("#1a1a1a", "#ffffff"),
        ("#454b54", "#ffffff"),
        ("#ffffff", "#8c1515"),
        ("#1a1a1a", "#eff6f1"),
        ("#1a1a1a", "#fdf3e7"),
    ],
)
def test_contrast_is_that_of_wcag_aaa(make: Maker, path: Path, ink, paper):
    text = written(make(), path)
    assert ink in text and paper in text
    dark, light = sorted((luminance(ink), luminance(paper)))
    assert (light + 0.05) / (dark + 0.05) >= 7


def test_a_file_that_cannot_be_written_is_named(make: Maker, tmp_path: Path):
    with refuses(FileError):
        make().report(tmp_path / "missing" / "r.html")


def test_the_templates_are_in_the_package():
    folder = Path(confide.results.__file__).parent
    assert {"report.html.j2", "table.html.j2"} <= {file.name for file in folder.iterdir()}


def test_the_joint_test_of_the_slopes_is_a_fact_of_the_page(make: Maker, tmp_path: Path) -> None:
    """It is the result's own Wald test, and stands where all slopes are answered and there is a constant."""
    result = make()
    tested = result.wald_test([name for name in NAMES if name != "Intercept"])
    text = Page(written(result, tmp_path / "a.html")).text
    assert (
        f"F(4, 241.7) = {tested.statistic:.4g}, P>F <0.001" in text and tested.pvalue < 0.001 and "AIC and BIC" in text
    )
    assert "F(4, 241.7)" not in result.summary()
    for other in (make(status="partial"), make(status="imprecise"), make(names=("a", "b"))):
        assert "All slopes zero" not in Page(written(other, tmp_path / "b.html")).text


def test_a_count_that_is_not_published_is_said_to_be_none(make: Maker, tmp_path: Path) -> None:
    """A line holds a noisy number of records, or NaN where the release has none; estimates of another kind hold no such number."""
    own = {one.name: getattr(make(), one.name) for one in fields(Estimates)}
    for k, (result, said) in enumerate(
        [(make(), False), (LinearEstimates(**own, nobs=812.0), False), (LinearEstimates(**own), True)]
    ):
        assert ("their number is not published" in Page(written(result, tmp_path / f"{k}.html")).text) == said
