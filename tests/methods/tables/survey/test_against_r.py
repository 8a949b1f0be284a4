"""Three designs without noise, to what R's survey package printed (`designs.R` beside this file): estimates and standard errors to 1e-8."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import good

import confide as cf
from confide.testing import ZeroNoise

pytestmark = pytest.mark.usefixtures("declared")

SCRIPT = Path(__file__).with_name("designs.R")
GUIDE = Path(__file__).parents[4] / "evidence" / "survey.md"
# R 4.2 with survey 4.1-1
PRINTED = """
persons:mean,2411.72117592585,8.05179063225081
persons:mean f,2411.40483878275,12.3116140031001
persons:mean m,2411.95750753496,10.643545903021
persons:difference,-0.552668752218324,16.2745478816171
persons:total,295189297.375,1384054.13516262
persons:number f,52339.6015625,500.74713311846
persons:share f,0.427618909460141,0.00385063550461303
persons:ratio,1.60702885460722,0.00720214306533636
persons:line (Intercept),602.718562326756,6.49896164308975
persons:line x,2.0007441241427,0.00355009946489412
persons:line sexm,1000.13720833591,4.06857310430333
persons:line age,498.641779661497,2.46468042569185
persons:wide (Intercept),2412.39270582644,25.9964103933504
persons:wide x,0.00297097720808362,0.0142004540924562
persons:wide sexm,0.548753271168731,16.2741847810433
persons:wide age,-5.4458246649813,9.85869178840668
persons:logit (Intercept),1.22336595463935,0.0540889034164313
persons:logit x,-0.00133595102988983,3.10182005714346e-05
persons:logit sexm,0.536351103514992,0.0343771150137215
persons:logit age,0.416488829829275,0.020925470637885
persons:probit (Intercept),0.751901100906277,0.0329574386608671
persons:probit x,-0.00081781017061893,1.83984216932947e-05
persons:probit sexm,0.326878690795137,0.0208065569975121
persons:probit age,0.253932500184866,0.0126402856232711
persons:poststratified,2411.67564647133,8.16239064112671
persons:two margins,2411.48017726499,8.17310125505059
clusters:mean,2411.72117592585,31.4384875174089
clusters:mean f,2411.40483878275,32.0683241831479
clusters:mean m,2411.95750753496,31.7691371081858
clusters:difference,-0.552668752218324,10.8975873538482
clusters:total,295189297.375,3944693.79063213
clusters:number f,52339.6015625,194.061824902197
clusters:share f,0.427618909460141,0.00145420467571715
clusters:ratio,1.60702885460722,0.0283815732050772
clusters:line (Intercept),602.718562326756,21.3143820298719
clusters:line x,2.0007441241427,0.0136049640326806
clusters:line sexm,1000.13720833591,2.72470917155245
clusters:line age,498.641779661497,0.935985261161049
clusters:wide (Intercept),2412.39270582644,85.2587535433332
clusters:wide x,0.00297097720808362,0.054419766722859
clusters:wide sexm,0.548753271168731,10.8987003309866
clusters:wide age,-5.4458246649813,3.74403367838779
clusters:logit (Intercept),1.22336595463935,0.16122703163807
clusters:logit x,-0.00133595102988983,0.000102742546314489
clusters:logit sexm,0.536351103514992,0.0329729877159895
clusters:logit age,0.416488829829275,0.0204281238039134
clusters:probit (Intercept),0.751901100906277,0.0974592861376419
clusters:probit x,-0.00081781017061893,6.1031638660976e-05
clusters:probit sexm,0.326878690795137,0.0199350540104139
clusters:probit age,0.253932500184866,0.0122982261217419
clusters:poststratified,2411.67564647133,31.453795651679
clusters:two margins,2411.48017726499,31.4550635505638
clusters:subgroup,2414.06053019058,31.7359512066852
strata:mean,2411.72117592585,30.1582791130488
strata:mean f,2411.40483878275,30.8477518230212
strata:mean m,2411.95750753496,30.480594447682
strata:difference,-0.552668752218324,10.9175800616961
strata:total,295189297.375,3702416.66450525
strata:number f,52339.6015625,188.561431377095
strata:share f,0.427618909460141,0.00145709436160522
strata:ratio,1.60702885460722,0.0277706501957994
strata:line (Intercept),602.718562326756,21.2096639867604
strata:line x,2.0007441241427,0.0133966490666157
strata:line sexm,1000.13720833591,2.7297289990089
strata:line age,498.641779661497,0.937628312931353
strata:wide (Intercept),2412.39270582644,84.8398977761099
strata:wide x,0.00297097720808362,0.0535864895281127
strata:wide sexm,0.548753271168731,10.9187724638418
strata:wide age,-5.4458246649813,3.75060409731964
strata:logit (Intercept),1.22336595463935,0.160811725670757
strata:logit x,-0.00133595102988983,0.000101787736531437
strata:logit sexm,0.536351103514992,0.0329796055339818
strata:logit age,0.416488829829275,0.0204155919095562
strata:probit (Intercept),0.751901100906277,0.0972091761008729
strata:probit x,-0.00081781017061893,6.04578840682818e-05
strata:probit sexm,0.326878690795137,0.0199400199334201
strata:probit age,0.253932500184866,0.0122943109397234
strata:poststratified,2411.67564647133,30.1788654112517
strata:two margins,2411.48017726499,30.1796377901708
strata:subgroup,2414.06053019058,30.4624241255594
"""
COLUMNS: dict[str, Any] = {
    "y": cf.Integer(0, 4808, on_missing="midpoint"),
    "x": cf.Integer(500, 2502, on_missing="midpoint"),
    "w": cf.Numeric(0, 12, steps=12 * 1024 + 1),
    "sex": cf.Categorical(["f", "m"]),
    "age": cf.Integer(0, 2),
    "group": cf.Categorical(["0", "1", "2"]),
    "z": cf.Integer(1_000, 8_206, on_missing="midpoint"),
    "v": cf.Integer(0, 1),
}
STRATA = [str(h) for h in range(5)]
PSUS = {stratum: [str(psu) for psu in range(1000) if psu % 5 == int(stratum)] for stratum in STRATA}
DESIGNS = {
    "persons": cf.Schema(COLUMNS, design=cf.SurveyDesign(weight="w", cap="full")),
    "clusters": cf.Schema(
        COLUMNS, design=cf.SurveyDesign(weight="w", cap="full", psu="psu", size=20, largest=20, count=1000)
    ),
    "strata": cf.Schema(
        {**COLUMNS, "h": cf.Categorical(STRATA), "psu": cf.Categorical([str(psu) for psu in range(1000)])},
        design=cf.SurveyDesign(weight="w", cap="full", strata="h", psu="psu", psus=PSUS, size=20, largest=20),
    ),
}
# Integers of 20 bits for values and of some 20 for scores: rounding is what is left, below 1e-8 of either number over 20,000 persons.
CLOSE = 1e-8
# A total without a public N and without lists of PSUs: what PSUs spread is the difference of two large numbers, of which the squared total
# is known to some 1e-8 of itself, several times what is left.
DIFFERENCE = 1e-7


@lru_cache(maxsize=1)
def records() -> pd.DataFrame:
    """What `records` of the script makes."""
    i = np.arange(20_000)
    psu = i // 20
    h = psu % 5
    y = (i * 7919 + psu * 104729) % 1009 + 300 * ((psu * 7) % 11) + 200 * h
    x = 500 + (i * 6007 + psu * 331) % 2003
    male, age = (i * 13 + psu) % 7 >= 3, (i * 17 + psu * 3) % 3
    return pd.DataFrame(
        {
            "psu": psu.astype(str),
            "h": h.astype(str),
            "y": y,
            "x": x,
            "w": 1 + ((i * 7907 + psu * 17) % 9973) / 1024 + h / 8,
            "sex": np.where(male, "m", "f"),
            "age": age,
            "group": age.astype(str),
            "z": 2 * x + 1000 * male + 500 * age + y // 4,
            "v": (y + 400 * male + 300 * age > x + 1500).astype(int),
        }
    )


def said(text: str) -> dict[str, tuple[float, float]]:
    """Lines of the script by name."""
    found = {}
    for line in text.split("\n"):
        name, *numbers = line.strip().rsplit(",", 2)
        if len(numbers) == 2:
            found[name] = (float(numbers[0]), float(numbers[1]))
    return found


def released(name: str, method: Any, mu: float = 1e6) -> cf.Release:
    schema = DESIGNS[name]
    frame = records().drop(columns=[] if name == "strata" else ["h"])
    return cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=ZeroNoise())


def table(name: str, method: Any, mu: float = 1e6) -> Any:
    return cf.infer(released(name, method, mu))


MARGINS = "column,level,persons\nsex,f,51000\nsex,m,49000\ngroup,0,31000\ngroup,1,34000\ngroup,2,35000\n"


def check(name: str, what: str, estimate: float, se: float, close: float = CLOSE) -> None:
    value, error = said(PRINTED)[f"{name}:{what}"]
    assert estimate == pytest.approx(value, rel=CLOSE)
    assert se == pytest.approx(error, rel=close)


@pytest.mark.parametrize("name", list(DESIGNS))
def test_means_and_differences(name: str) -> None:
    found = table(name, cf.tables.Means("y ~ sex", inference="population"))
    check(name, "mean", found.params["y"], found.bse["y"])
    for k in "fm":
        check(name, f"mean {k}", found.params[f"y | sex={k}"], found.bse[f"y | sex={k}"])
    moved = found.poststratify({"f": 51_000, "m": 49_000}, "sex").iloc[0]
    check(name, "poststratified", moved["estimate"], moved["std_err"])
    own = found.estimated[(0,), 0]
    se = np.sqrt(own.std_err[0] ** 2 + own.std_err[1] ** 2 - 2 * own.covariance(0, 1))
    value, error = said(PRINTED)[f"{name}:difference"]
    # of means of some 2,400
    assert found.params["y | sex=f"] - found.params["y | sex=m"] == pytest.approx(value, abs=2 * CLOSE * 2_400)
    assert se == pytest.approx(error, rel=CLOSE)


@pytest.mark.parametrize("name", list(DESIGNS))
def test_totals_numbers_shares_and_ratios(name: str) -> None:
    close = CLOSE if name == "strata" else DIFFERENCE
    total = table(name, cf.tables.Totals("y ~ 1", inference="population"))
    check(name, "total", total.params["y"], total.bse["y"], close)
    number = table(name, cf.tables.Counts("sex", inference="population"))
    check(name, "number f", number.params["sex=f"], number.bse["sex=f"], close)
    share = table(name, cf.tables.Shares("sex", inference="population"))
    check(name, "share f", share.params["sex=f"], share.bse["sex=f"])
    ratio = table(name, cf.tables.Ratios("y / x", inference="population"))
    check(name, "ratio", ratio.params["y / x"], ratio.bse["y / x"])


@pytest.mark.parametrize("name", list(DESIGNS))
def test_lines_and_two_margins(name: str, tmp_path: Path) -> None:
    # slopes of one response are far from 0, residuals of the other fill the steps of the meat
    narrow, wide = (
        table(name, cf.regression.LeastSquares(f"{y} ~ x + sex + age", limit="none"), 1e9) for y in ("z", "y")
    )
    for ours, theirs in {"Intercept": "(Intercept)", "x": "x", "sex[T.m]": "sexm", "age": "age"}.items():
        assert narrow.params[ours] == pytest.approx(said(PRINTED)[f"{name}:line {theirs}"][0], rel=CLOSE)
        value, error = said(PRINTED)[f"{name}:wide {theirs}"]
        assert wide.params[ours] == pytest.approx(value, abs=CLOSE * 2_400)
        assert wide.bse[ours] == pytest.approx(error, rel=CLOSE)
    path = tmp_path / "margins.csv"
    path.write_text(MARGINS)
    two = table(name, cf.regression.LeastSquares("y ~ sex + group", limit="none"), 1e9).calibrate(path)
    check(name, "two margins", two.estimate["mean"], two.std_err["mean"])
    assert two.estimate["total"] == pytest.approx(100_000 * two.estimate["mean"], rel=1e-15)


@pytest.mark.parametrize("name", list(DESIGNS))
def test_the_command_line_moves_releases_to_public_totals(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sex.csv").write_text("sex,persons\nf,51000\nm,49000\n")
    Path("margins.csv").write_text(MARGINS)
    released(name, cf.tables.Means("y ~ sex", inference="population")).save("means.json")
    released(name, cf.regression.LeastSquares("y ~ sex + group", limit="none"), 1e9).save("line.json")
    (one,) = good("infer", "means.json", "--poststratify", "sex=sex.csv", "--json").json["poststratified"]
    check(name, "poststratified", one["estimate"], one["std_err"])
    mean, total = good("infer", "line.json", "--calibrate", "margins.csv", "--json").json["calibrated"]
    check(name, "two margins", mean["estimate"], mean["std_err"])
    assert total["estimate"] == pytest.approx(100_000 * mean["estimate"], rel=1e-15)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("name", list(DESIGNS))
def test_lines_of_an_outcome(name: str, link: str) -> None:
    """Scores have some 20 bits: 1e-6 of coefficients, and a fifth of that of standard errors."""
    found = table(name, cf.regression.Logistic("v ~ x + sex + age", link=link))
    for ours, theirs in {"Intercept": "(Intercept)", "x": "x", "sex[T.m]": "sexm", "age": "age"}.items():
        value, error = said(PRINTED)[f"{name}:{link} {theirs}"]
        assert found.params[ours] == pytest.approx(value, rel=1e-6)
        assert found.bse[ours] == pytest.approx(error, rel=2e-7)
    assert found.status == "valid" and (found.df <= {"persons": 19_996, "clusters": 996, "strata": 992}[name]).all()


@pytest.mark.parametrize("name", ["clusters", "strata"])
def test_subgroups_keep_all_psus(name: str) -> None:
    found = table(name, cf.tables.Means("y ~ 1", inference="population", where="age == 1"))
    check(name, "subgroup", found.params["y"], found.bse["y"])


def test_the_guide_shows_what_its_file_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of R in evidence/survey.md are those of its made-up survey without noise, to the digits shown."""
    monkeypatch.chdir(tmp_path)
    guide, made = GUIDE.read_text(encoding="utf-8"), {}
    exec(guide.partition("```python\n")[2].partition("```")[0], made)
    data, shown = cf.read(made["survey"], made["schema"]), {}
    for method in (
        cf.tables.Means("income ~ sex", inference="population"),
        cf.tables.Ratios("income / hours ~ 1", inference="population"),
    ):
        own = cf.infer(cf.release(method, data, cf.GDP(1e6), ledger=None, noise=ZeroNoise()))
        shown |= {name: (own.params[name], own.bse[name]) for name in own.params.index}
        if own.verb == "means":
            moved = own.poststratify({"f": 51_000, "m": 49_000}, "sex").iloc[0]
    line, both = (
        cf.infer(
            cf.release(
                cf.regression.LeastSquares(formula, limit="none"), data, cf.GDP(1e9), ledger=None, noise=ZeroNoise()
            )
        )
        for formula in ("income ~ age + hours", "income ~ sex + region")
    )
    shown |= {name: (line.params[name], line.bse[name]) for name in ("age", "hours")}
    made["survey"]["rich"] = (made["survey"].income > 480).astype(int)
    columns = {name: own for name, own in made["schema"].columns.items() if name != "income"}
    schema = cf.Schema(columns | {"rich": cf.Integer(0, 1)}, design=made["schema"].design)
    outcome, logistic = cf.read(made["survey"], schema), cf.regression.Logistic("rich ~ age + hours")
    odds = cf.infer(cf.release(logistic, outcome, cf.GDP(1e6), ledger=None, noise=ZeroNoise()))
    people = {"sex": {"f": 51_000, "m": 49_000}, "region": {"north": 40_000, "south": 30_000, "west": 30_000}}
    shown["post-stratified"] = (moved["estimate"], moved["std_err"])
    shown["calibrated"] = tuple(both.calibrate(people).loc["mean"][["estimate", "std_err"]])
    shown |= {f"odds of {name}": (odds.params[name], odds.bse[name]) for name in ("age", "hours")}
    first = ("| `svy", "| m |", "| hours |", "| log-odds")
    rows = [line.split(" | ")[1:3] for line in guide.splitlines() if line.startswith(first)]
    assert len(rows) == len(shown) == 10
    for said_of, found in zip(rows, shown.values(), strict=True):
        for text, value in zip(said_of, found, strict=True):
            assert float(text) == pytest.approx(value, abs=0.6 * 10.0 ** -len(text.partition(".")[2]))


@pytest.mark.needs("R")
def test_r_still_says_so() -> None:
    done = subprocess.run(["Rscript", str(SCRIPT)], capture_output=True, text=True, check=False)
    if "there is no package" in done.stderr:
        pytest.skip("R's survey package is not installed")
    found = said(done.stdout)
    assert set(found) == set(said(PRINTED))
    for name, numbers in said(PRINTED).items():
        assert found[name] == pytest.approx(numbers, rel=1e-9)
