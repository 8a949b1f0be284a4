"""What a rank test says: the estimate with its interval, the statistic, its degrees of freedom, the p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Release
from confide.errors import PlanError
from confide.methods.tests.reading import Contrast, Scored, Shape, one_sample, several_groups, two_groups
from confide.results.base import BaseResult
from confide.results.hypothesis_tests import left_out, line_of, too_few, without
from confide.results.inference import simulated_null
from confide.results.pages.content import Column, check_alpha, level_words
from confide.results.pages.table import marked, noise_share

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Above this noise sd of the pooled distribution function ranks are too poor for the size of an effect; the test holds all the same.
POOR = 0.3
# Above this share of pairs in one bin of several values, too.
LUMPED = 0.3
_POOR = (
    "the noise of round 1 is too large for exact ranks. The p-value is valid; the interval is withheld, because noisy ranks shrink the "
    "estimate. A larger budget gives one"
)
# What each method is called.
_CALLED = {
    "mann_whitney": "Mann-Whitney test",
    "kruskal": "Kruskal-Wallis test",
    "wilcoxon": "Wilcoxon signed-rank test",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankTest(BaseResult):
    """A statistic and its p-value. statistic: t, or F for several groups; df: its degrees of freedom; pvalue: NaN at status "imprecise"."""

    statistic: float
    df: tuple[float, ...]
    pvalue: float

    family: ClassVar[str] = "rank test"
    inference: ClassVar[str] = "population"

    @property
    def title(self) -> str:
        called = _CALLED.get(self.method.split()[0], "Rank test")
        return f"{called}: {self.response}" + (f", {self.heading}" if self.heading else "")

    def line(self, alpha: float) -> str:
        """The statistic with its degrees of freedom and p-value."""
        return line_of("F" if len(self.df) == 2 else "t", self.df, self.statistic, self.pvalue)

    def notes(self) -> tuple[tuple[str, str], ...]:
        """The guarantee in words."""
        return (("In words", self.guarantee.describe()),)

    def more(self, alpha: float) -> dict[str, object]:
        """Entries of the JSON: the test."""
        return {"statistic": self.statistic, "df": list(self.df), "p_value": [self.pvalue]}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankEstimate(RankTest):
    """A rank test with the estimate that it tests, between -1/2 and 1/2; found: None where nothing is known."""

    name: str
    found: Contrast
    groups: tuple[str, ...] = ()
    sizes: Array = field(default_factory=lambda: np.array([]))
    ranks: Array = field(default_factory=lambda: np.array([]))

    rows_are: ClassVar[str] = "effect"

    @property
    def axis(self) -> str:
        return "estimate"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """One row: the estimate, its standard error, the test, the interval, the privacy share."""
        below, above = self._ends(alpha)
        found, known = self.found, self.status == "valid"
        estimate = found.estimate if self.status != "imprecise" else nan
        return (
            Column("term", [self.name], "name", head=self.rows_are),
            Column("estimate", [estimate]),
            Column("std_err", [found.se if known else nan], "std_err"),
            Column("statistic", [self.statistic], "statistic", printed=False),
            Column("df", [self.df[0]], "number", printed=False),
            Column("p_value", [self.pvalue], "p", printed=False),
            Column("ci_low", [below], "interval"),
            Column("ci_high", [above], "interval"),
            Column("privacy_share", self._share if known else [nan], "share"),
        )

    def printed(self, alpha: float) -> Sequence[Column]:
        """n and mean rank of each group; of one sample the estimate."""
        return _ranked(self.groups, self.sizes, self.ranks) if self.groups else self.columns(alpha)

    def line(self, alpha: float) -> str:
        """The estimate of two groups with its interval, then the test."""
        below, above = self._ends(alpha)
        estimate = self.columns(alpha)[1].values[0]
        if not self.groups or np.isnan(estimate):
            return super().line(alpha)
        level = f" ({level_words(alpha)} CI {below:.3f} to {above:.3f})" if not np.isnan(below) else ""
        return f"{self.name} = {estimate:.3f}{level}; {super().line(alpha)}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.status == "valid":
            self._put("flags", marked(self.flags, [self.name], self._share))

    @property
    def _share(self) -> Array:
        return noise_share([self.found.se], [sqrt(self.found.sampling)])

    def _ends(self, alpha: float) -> tuple[float, float]:
        if self.status != "valid":
            return nan, nan
        half = float(simulated_null.quantile(alpha / 2, self.found.df)) * self.found.se
        return max(self.found.estimate - half, -0.5), min(self.found.estimate + half, 0.5)

    @property
    def params(self) -> pd.Series[float]:
        """The estimate by its name; NaN where nothing is known."""
        return pd.Series(self.columns(0.05)[1].values, index=[self.name])

    @property
    def bse(self) -> pd.Series[float]:
        """Its standard error."""
        return pd.Series(self.columns(0.05)[2].values, index=[self.name])

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """The interval at level 1 - alpha, columns 0 (low) and 1 (high)."""
        low, high = self._ends(check_alpha(alpha))
        return pd.DataFrame({0: [low], 1: [high]}, index=[self.name])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeanRanks(RankTest):
    """A rank test of several groups, with their noisy numbers of records and mean ranks, between 0 and 1, without intervals.

    ranks: NaN of a group that the noise does not tell from empty, which the test leaves out.
    """

    groups: tuple[str, ...]
    sizes: Array
    ranks: Array

    rows_are: ClassVar[str] = "group"

    @property
    def axis(self) -> str:
        return "mean rank, from 0 to 1"

    @property
    def zero_line(self) -> bool:
        return False

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """n and mean rank of each group."""
        return _ranked(self.groups, self.sizes, self.ranks)


def _ranked(groups: Sequence[str], sizes: Array, ranks: Array) -> tuple[Column, ...]:
    """The columns of groups with their mean ranks."""
    return (
        Column("term", groups, "name", head="group"),
        Column("n", sizes, "number", whole=True),
        Column("mean_rank", ranks),
    )


_LUMPED = (
    "most records are so close together, compared with their bounds, that ranks do not separate them. The p-value is valid; the interval "
    "is withheld. Narrower bounds, or a derived column such as log1p(income), give one"
)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Both rounds of a release as its tests read them. response: the measure; generator: of draws that belong to release and question."""

    release: Release
    response: str
    groups: tuple[str, ...]
    shape: Shape
    scored: Scored
    generator: np.random.Generator


def _stated(rounds: Rounds, *, intervals: bool) -> dict[str, str]:
    scored, shape = rounds.scored, rounds.shape
    if scored.told.sum() < min(len(scored.n), 2):
        return {"status": "imprecise", "reason": too_few(_lost(rounds))}
    if intervals and shape.level(scored.all) > POOR:
        return {"status": "partial", "reason": _POOR}
    if intervals and shape.lumped(scored.all) > LUMPED:
        return {"status": "partial", "reason": _LUMPED}
    return {}


def _lost(rounds: Rounds) -> tuple[str, ...]:
    """Groups that the noise does not tell from empty."""
    return tuple(name for name, told in zip(rounds.groups, rounds.scored.told, strict=True) if not told and name)


def _facts(rounds: Rounds) -> tuple[tuple[str, str], ...]:
    scored = rounds.scored
    sizes = ", ".join(f"{name} {size:,.0f}".strip() for name, size in zip(rounds.groups, scored.n, strict=True))
    return (("n", f"{sizes} (SD of the noise {np.sqrt(scored.v0):,.3g})"),)


def _estimated(rounds: Rounds, name: str, found: Contrast, **others: Any) -> RankTest:
    stated = _stated(rounds, intervals=True)
    weak = stated.get("status") == "imprecise"
    t = nan if weak else found.estimate / found.se
    p = nan if weak else float(simulated_null.two_sided(t, found.df))
    return RankEstimate.of(
        rounds.release,
        response=rounds.response,
        name=name,
        found=found,
        statistic=t,
        df=(found.df,),
        pvalue=p,
        facts=_facts(rounds),
        **others,
        **stated,
    )


def _ranks(scored: Scored) -> Array:
    """Mean ranks between 0 and 1."""
    return np.asarray(np.clip(0.5 + (scored.means - scored.centre) / 2, 0.0, 1.0))


def read_two(rounds: Rounds) -> RankTest:
    """Mann and Whitney's."""
    name = f"P({rounds.groups[0]} > {rounds.groups[1]}) - 1/2"
    scored = rounds.scored
    ranks = np.where(scored.told, _ranks(scored), nan)
    found = two_groups(rounds.shape, scored, rounds.generator)
    return _estimated(rounds, name, found, groups=rounds.groups, sizes=scored.n, ranks=ranks)


def read_one(rounds: Rounds) -> RankTest:
    """Wilcoxon's."""
    return _estimated(rounds, "P(d + d' > 0) - 1/2", one_sample(rounds.shape, rounds.scored, rounds.generator))


def read_several(rounds: Rounds) -> RankTest:
    """Kruskal and Wallis': mean scores, F."""
    if len(rounds.groups) < 2:
        raise PlanError("a rank test compares at least two groups")
    stated, scored, lost = _stated(rounds, intervals=False), rounds.scored, _lost(rounds)
    weak, own, df = bool(stated), scored.of(scored.told), (nan, nan)
    statistic, ranks = nan, np.full(len(scored.n), nan)
    if not weak:
        statistic, df = several_groups(rounds.shape, scored, rounds.generator)
        ranks[scored.told] = _ranks(own)
    return MeanRanks.of(
        rounds.release,
        response=rounds.response,
        groups=rounds.groups,
        sizes=scored.n,
        ranks=ranks,
        statistic=statistic,
        df=df,
        pvalue=nan if weak else float(special.fdtrc(df[0], df[1], statistic)),
        facts=(*_facts(rounds), *left_out(lost)),
        heading=without(lost).removeprefix(", "),
        target=rounds.release.plan.target + without(lost),
        **stated,
    )
