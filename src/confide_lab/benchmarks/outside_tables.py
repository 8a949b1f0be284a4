"""Real tables that judge and that nothing is tuned to: what a steward would declare before seeing them, one line each.

Bounds follow from what a column means (hours of a week, an age, a scale of answers); for incomes, wages, prices and counts they are
round numbers above anything plausible, which for some is 5 to 20 times what occurs. No constant of any method may be chosen on these
tables, and no bound here may be changed because a method does badly with it. Where they come from: `confide_lab.benchmarks.outside`; those
with an
outcome of two values: `confide_lab.benchmarks.outside_outcomes`; those with a skewed response: `confide_lab.benchmarks.outside_skewed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pandas as pd

from confide.schema import Categorical, Integer, Numeric
from confide_lab.benchmarks.outside import Outside, lacking, no_yes, records_of
from confide_lab.benchmarks.outside_means import MEANS
from confide_lab.benchmarks.outside_outcomes import OUTCOMES
from confide_lab.benchmarks.outside_skewed import SKEWED

__all__ = ["MEANS", "OUTCOMES", "SKEWED", "TABLES", "Outside", "frame_of", "missing", "table_of"]

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
            "smsa": no_yes(),
            "parttime": no_yes(),
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
            "freepoor": no_yes(),  # rare
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
            "insurance": no_yes(),
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
            "selfemp": no_yes(),
            "insurance": no_yes(),  # refused one: rare
            "afam": no_yes(),
        },
        yes={"deny": "yes"},
    ),
    "fertility2": Outside(
        "r:AER",
        "Fertility2",
        "work ~ morekids + gender1 + age + afam + hispanic",
        {
            "work": Integer(0, 52),  # weeks of a year
            "morekids": no_yes(),
            "gender1": Categorical(["female", "male"]),
            "age": Integer(15, 50),
            "afam": no_yes(),
            "hispanic": no_yes(),
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
            "urban": no_yes(),
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
            "immigrant": no_yes(),
        },
    ),
    "smokeban": Outside(
        "r:AER",
        "SmokeBan",
        "smoker ~ ban + age + education",
        {
            "smoker": Integer(0, 1),
            "ban": no_yes(),
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
            "association": no_yes(),
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
            "owner": no_yes(),
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
            "driveway": no_yes(),
            "gasheat": no_yes(),  # rare
            "aircon": no_yes(),
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


def table_of(name: str) -> Outside:
    """A table of any kind."""
    return {**TABLES, **OUTCOMES, **SKEWED, **MEANS}[name]


@cache
def missing(name: str) -> str | None:
    """Why a table cannot be had here, None when it can."""
    return lacking(name, table_of(name).place)


@cache
def frame_of(name: str) -> pd.DataFrame:
    """The records of a table, with the columns of its declaration."""
    return records_of(table_of(name))
