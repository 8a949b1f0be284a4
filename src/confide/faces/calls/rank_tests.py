"""Rank tests of `cf.tests`, in one call each: plan, release and infer."""

from __future__ import annotations

from confide.faces.one_call import one_call
from confide.methods.tests.rank import Kruskal, MannWhitney, Wilcoxon
from confide.methods.tests.rank_result import RankTest

__all__ = ["kruskal", "mannwhitneyu", "wilcoxon"]


@one_call(MannWhitney, verb="cf.tests.mannwhitneyu", example='"income ~ sex", data, privacy=cf.GDP(1.0), ledger=None')
def mannwhitneyu(result: RankTest) -> RankTest:
    """Do two groups differ? P(Y1 > Y2) - 1/2 with its interval, and the test of equal laws: plan, release and infer `MannWhitney`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> 0 < mannwhitneyu("income ~ sex", data, privacy=cf.GDP(1.0), ledger=None).pvalue <= 1
    True
    """
    return result


@one_call(Kruskal, verb="cf.tests.kruskal", example='"income ~ region", data, privacy=cf.GDP(1.0), ledger=None')
def kruskal(result: RankTest) -> RankTest:
    """Do several groups differ? Mean ranks and the test of equal laws: plan, release and infer `Kruskal`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "region": cf.Categorical(["N", "S", "W"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> kruskal("income ~ region", data, privacy=cf.GDP(1.0), ledger=None).df[0]
    2.0
    """
    return result


@one_call(Wilcoxon, verb="cf.tests.wilcoxon", example='"after - before", data, privacy=cf.GDP(1.0), ledger=None')
def wilcoxon(result: RankTest) -> RankTest:
    """Is a difference centred at 0? P(d + d' > 0) - 1/2 with its interval, and the signed-rank test: plan, release and infer `Wilcoxon`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"before": cf.Numeric(0, 10), "after": cf.Numeric(0, 10)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> 0 < wilcoxon("after - before", data, privacy=cf.GDP(1.0), ledger=None).pvalue <= 1
    True
    """
    return result
