"""Real tables that judge and that nothing is tuned to: where they are, what a steward would declare before seeing them, one formula each.

Bounds follow from what a column means (hours of a week, an age, a scale of answers); for incomes, wages, prices and counts they are
round numbers above anything plausible, which for some is 5 to 20 times what occurs. No constant of any method may be chosen on these
tables, and no bound here may be changed because a method does badly with it.

The records come from statsmodels and scikit-learn, which are installed here, and from R's data packages of the distribution (Debian:
r-cran-aer, r-cran-cardata, r-cran-ggplot2), which are read through Rscript; where R or a package is missing, its tables are skipped and
the bench says so. No data are kept in this repository.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pandas as pd

from confide.schema import Categorical, Integer, Numeric, Schema

__all__ = ["TABLES", "Outside", "frame_of", "missing"]


@dataclass(frozen=True)
class Outside:
    """One table. place: "r:PACKAGE", "statsmodels" or "sklearn"; data: its name there; columns: as a steward declares them; formula; yes:
    columns of labels that become 0 and 1, with the label that is 1; renamed: from the source's names to those of `columns`.
    """

    place: str
    data: str
    formula: str
    columns: Mapping[str, Any]
    yes: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return Schema(dict(self.columns))


def _no_yes() -> Categorical:
    return Categorical(["no", "yes"])


#: By name. The comment behind a column says what its bounds mean.
TABLES: Mapping[str, Outside] = {
    "fair": Outside(
        "statsmodels",
        "fair",
        "affairs ~ rate_marriage + age + yrs_married + children + religious",
        {
            "affairs": Numeric(0, 100),  # a yearly measure of time spent in affairs, no natural end
            "rate_marriage": Integer(1, 5),  # a scale of answers
            "age": Numeric(15, 80),  # married women
            "yrs_married": Numeric(0, 60),
            "children": Numeric(0, 15),
            "religious": Integer(1, 4),  # a scale of answers
        },
    ),
    "randhie": Outside(
        "statsmodels",
        "randhie",
        "mdvis ~ lncoins + idp + physlm + disea + hlthg + hlthf + hlthp",
        {
            "mdvis": Integer(0, 200),  # visits to a physician in a year
            "lncoins": Numeric(0, 5),  # log(1 + coinsurance in per cent), at most log(101)
            "idp": Integer(0, 1),
            "physlm": Numeric(0, 1),  # a share
            "disea": Numeric(0, 60),  # an index over about 60 chronic diseases
            "hlthg": Integer(0, 1),
            "hlthf": Integer(0, 1),
            "hlthp": Integer(0, 1),  # health is poor: rare
        },
    ),
    "cps1988": Outside(
        "r:AER",
        "CPS1988",
        "wage ~ education + experience + ethnicity + smsa + parttime",
        {
            "wage": Numeric(0, 20_000),  # dollars a week
            "education": Integer(0, 25),  # years
            "experience": Integer(-10, 70),  # age less years of schooling less 6
            "ethnicity": Categorical(["cauc", "afam"]),
            "smsa": _no_yes(),
            "parttime": _no_yes(),
        },
    ),
    "cpssw8": Outside(
        "r:AER",
        "CPSSW8",
        "earnings ~ age + gender + region + education",
        {
            "earnings": Numeric(0, 250),  # dollars an hour
            "age": Integer(15, 90),
            "gender": Categorical(["male", "female"]),
            "region": Categorical(["Northeast", "Midwest", "South", "West"]),
            "education": Integer(0, 25),
        },
    ),
    "doctor": Outside(
        "r:AER",
        "DoctorVisits",
        "visits ~ gender + age + income + illness + reduced + freepoor",
        {
            "visits": Integer(0, 14),  # in two weeks, one a day
            "gender": Categorical(["male", "female"]),
            "age": Numeric(0, 1.2),  # in centuries
            "income": Numeric(0, 10),  # in 10,000 dollars a year
            "illness": Integer(0, 14),  # in two weeks
            "reduced": Integer(0, 14),  # days in two weeks
            "freepoor": _no_yes(),  # rare
        },
    ),
    "nmes": Outside(
        "r:AER",
        "NMES1988",
        "visits ~ hospital + health + chronic + gender + school + income + insurance",
        {
            "visits": Integer(0, 365),  # in a year
            "hospital": Integer(0, 50),  # stays in a year
            "health": Categorical(["average", "poor", "excellent"]),
            "chronic": Integer(0, 20),  # conditions
            "gender": Categorical(["female", "male"]),
            "school": Integer(0, 25),
            "income": Numeric(-10, 100),  # of the family, in 10,000 dollars; losses occur
            "insurance": _no_yes(),
        },
    ),
    "diamonds": Outside(
        "r:ggplot2",
        "diamonds",
        "price ~ carat + depth + table + cut",
        {
            "price": Numeric(0, 100_000),  # dollars
            "carat": Numeric(0, 10),
            "depth": Numeric(0, 100),  # per cent
            "table": Numeric(0, 100),  # per cent
            "cut": Categorical(["Ideal", "Premium", "Very Good", "Good", "Fair"]),
        },
    ),
    "vocab": Outside(
        "r:carData",
        "Vocab",
        "vocabulary ~ year + sex + education",
        {
            "vocabulary": Integer(0, 10),  # words of ten
            "year": Integer(1970, 2020),
            "sex": Categorical(["Female", "Male"]),
            "education": Integer(0, 25),
        },
    ),
    "slid": Outside(
        "r:carData",
        "SLID",
        "wages ~ education + age + sex + language",
        {
            "wages": Numeric(0, 250),  # dollars an hour; missing for those without work, whose records are dropped
            "education": Numeric(0, 25),
            "age": Integer(15, 100),
            "sex": Categorical(["Female", "Male"]),
            "language": Categorical(["English", "French", "Other"]),
        },
    ),
    "hmda": Outside(
        "r:AER",
        "HMDA",
        "deny ~ pirat + lvrat + mhist + selfemp + insurance + afam",
        {
            "deny": Integer(0, 1),
            "pirat": Numeric(0, 5),  # payments over income
            "lvrat": Numeric(0, 3),  # loan over value
            "mhist": Categorical(["1", "2", "3", "4"]),  # a score; the higher ones are rare
            "selfemp": _no_yes(),
            "insurance": _no_yes(),  # refused one: rare
            "afam": _no_yes(),
        },
        yes={"deny": "yes"},
    ),
    "fertility2": Outside(
        "r:AER",
        "Fertility2",
        "work ~ morekids + gender1 + age + afam + hispanic",
        {
            "work": Integer(0, 52),  # weeks of a year
            "morekids": _no_yes(),
            "gender1": Categorical(["female", "male"]),
            "age": Integer(15, 50),
            "afam": _no_yes(),
            "hispanic": _no_yes(),
        },
    ),
    "college": Outside(
        "r:AER",
        "CollegeDistance",
        "education ~ score + ethnicity + urban + distance + tuition + income",
        {
            "education": Integer(10, 22),  # years
            "score": Numeric(0, 100),
            "ethnicity": Categorical(["other", "afam", "hispanic"]),
            "urban": _no_yes(),
            "distance": Numeric(0, 50),  # in 10 miles
            "tuition": Numeric(0, 10),  # in 1,000 dollars
            "income": Categorical(["low", "high"]),
        },
    ),
    "gss": Outside(
        "r:AER",
        "GSS7402",
        "kids ~ age + education + siblings + ethnicity + immigrant",
        {
            "kids": Integer(0, 8),  # eight stands for eight and more
            "age": Integer(18, 100),
            "education": Integer(0, 25),
            "siblings": Integer(0, 60),
            "ethnicity": Categorical(["cauc", "other"]),
            "immigrant": _no_yes(),
        },
    ),
    "smokeban": Outside(
        "r:AER",
        "SmokeBan",
        "smoker ~ ban + age + education",
        {
            "smoker": Integer(0, 1),
            "ban": _no_yes(),
            "age": Integer(15, 100),
            "education": Categorical(["hs", "hs drop out", "some college", "college", "master"]),
        },
        yes={"smoker": "yes"},
    ),
    "insurance": Outside(
        "r:AER",
        "HealthInsurance",
        "insurance ~ 0 + education",
        {
            "insurance": Integer(0, 1),
            "education": Categorical(["none", "ged", "highschool", "bachelor", "master", "phd", "other"]),
        },
        yes={"insurance": "yes"},
    ),
    "wells": Outside(
        "r:carData",
        "Wells",
        "switch ~ arsenic + distance + education + association",
        {
            "switch": Integer(0, 1),
            "arsenic": Numeric(0, 100),  # in 100 micrograms a litre; the worst wells known are near 50
            "distance": Numeric(0, 1_000),  # metres to the next safe well
            "education": Integer(0, 25),
            "association": _no_yes(),
        },
        yes={"switch": "yes"},
    ),
    "credit": Outside(
        "r:AER",
        "CreditCard",
        "expenditure ~ age + income + dependents + owner",
        {
            "expenditure": Numeric(0, 10_000),  # dollars a month
            "age": Numeric(0, 100),
            "income": Numeric(0, 100),  # in 10,000 dollars a year
            "dependents": Integer(0, 15),
            "owner": _no_yes(),
        },
    ),
    "houses": Outside(
        "r:AER",
        "HousePrices",
        "price ~ lotsize + bedrooms + bathrooms + driveway + gasheat + aircon",
        {
            "price": Numeric(0, 1_000_000),  # Canadian dollars
            "lotsize": Numeric(0, 50_000),  # square feet
            "bedrooms": Integer(0, 10),
            "bathrooms": Integer(0, 10),
            "driveway": _no_yes(),
            "gasheat": _no_yes(),  # rare
            "aircon": _no_yes(),
        },
    ),
    "diabetes": Outside(
        "sklearn",
        "diabetes",
        "target ~ age + sex + bmi + bp + s5",
        {
            "target": Numeric(0, 500),  # a score of progression
            "age": Numeric(15, 100),
            "sex": Categorical(["1", "2"]),
            "bmi": Numeric(10, 80),
            "bp": Numeric(30, 200),  # mean arterial pressure, mm of mercury
            "s5": Numeric(2, 9),  # log of triglycerides, mg a decilitre
        },
    ),
    "tumours": Outside(
        "sklearn",
        "breast_cancer",
        "area ~ texture + smoothness + diagnosis",
        {
            "area": Numeric(0, 10_000),  # square micrometres of a nucleus
            "texture": Numeric(0, 100),
            "smoothness": Numeric(0, 1),
            "diagnosis": Categorical(["1", "0"]),  # 1 is benign
        },
        renamed={
            "mean area": "area",
            "mean texture": "texture",
            "mean smoothness": "smoothness",
            "target": "diagnosis",
        },
    ),
}


@cache
def missing(name: str) -> str | None:
    """Why a table cannot be had here, None when it can."""
    place = TABLES[name].place
    if not place.startswith("r:"):
        return None
    if shutil.which("Rscript") is None:
        return f"{name}: R is not installed (apt-get install r-cran-{place[2:].lower()})"
    found = subprocess.run(
        ["Rscript", "-e", f"quit(status = !requireNamespace('{place[2:]}', quietly = TRUE))"],
        capture_output=True,
        check=False,
    )
    return (
        None if found.returncode == 0 else f"{name}: R has no {place[2:]} (apt-get install r-cran-{place[2:].lower()})"
    )


@cache
def frame_of(name: str) -> pd.DataFrame:
    """The records of a table, with the columns of its declaration."""
    table = TABLES[name]
    frame = _read(table.place, table.data).rename(columns=dict(table.renamed))[list(table.columns)]
    for column, label in table.yes.items():
        frame[column] = (frame[column] == label).astype(int)
    for column, declared in table.columns.items():
        if isinstance(declared, Categorical):
            # numbers that are labels are read as text without a decimal point; a missing label stays missing
            texts = frame[column].map(lambda v: f"{v:g}" if isinstance(v, float) else str(v))
            frame[column] = pd.Categorical(texts.where(frame[column].notna()), categories=list(declared.levels))
    return frame.reset_index(drop=True)


def _read(place: str, data: str) -> pd.DataFrame:
    if place == "statsmodels":
        import statsmodels.api as sm

        found: pd.DataFrame = getattr(sm.datasets, data).load_pandas().data
        return found
    if place == "sklearn":
        from sklearn import datasets

        settings: dict[str, Any] = {"scaled": False} if data == "diabetes" else {}
        return pd.DataFrame(getattr(datasets, f"load_{data}")(as_frame=True, **settings).frame)
    words = f"data('{data}', package = '{place[2:]}'); write.csv(as.data.frame({data}), row.names = FALSE)"
    text = subprocess.run(["Rscript", "-e", words], capture_output=True, check=True, text=True).stdout
    # "none" and the like are labels here; R writes NA
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["NA"])
