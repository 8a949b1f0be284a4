"""Rank tests of `cf.tests`, in one call each: plan, release and infer."""

from __future__ import annotations

from typing import Any

from confide.faces.one_call import LEFT_OUT, answered, checked_call
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.tests.rank import Kruskal, MannWhitney, Wilcoxon
from confide.methods.tests.rank_result import RankTest
from confide.protocol import Noise, Source

__all__ = ["kruskal", "mannwhitneyu", "wilcoxon"]


def mannwhitneyu(
    formula: str,
    data: Source,
    *,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> RankTest:
    """Do two groups differ? P(Y1 > Y2) - 1/2 with its interval, and the test of equal laws: plan, release and infer `MannWhitney`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> 0 < mannwhitneyu("income ~ sex", data, privacy=cf.GDP(1.0), ledger=None).pvalue <= 1
    True
    """
    example = '"income ~ sex", data, privacy=cf.GDP(1.0), ledger=None'
    checked_call("cf.tests.mannwhitneyu", MannWhitney, privacy, ledger, settings, example=example)
    found: RankTest = answered(MannWhitney(formula, **settings), data, privacy, ledger, noise, n)
    return found


def kruskal(
    formula: str,
    data: Source,
    *,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> RankTest:
    """Do several groups differ? Mean ranks and the test of equal laws: plan, release and infer `Kruskal`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "region": cf.Categorical(["N", "S", "W"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> kruskal("income ~ region", data, privacy=cf.GDP(1.0), ledger=None).df[0]
    2.0
    """
    example = '"income ~ region", data, privacy=cf.GDP(1.0), ledger=None'
    checked_call("cf.tests.kruskal", Kruskal, privacy, ledger, settings, example=example)
    found: RankTest = answered(Kruskal(formula, **settings), data, privacy, ledger, noise, n)
    return found


def wilcoxon(
    formula: str,
    data: Source,
    *,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> RankTest:
    """Is a difference centred at 0? P(d + d' > 0) - 1/2 with its interval, and the signed-rank test: plan, release and infer `Wilcoxon`.

    privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"before": cf.Numeric(0, 10), "after": cf.Numeric(0, 10)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> 0 < wilcoxon("after - before", data, privacy=cf.GDP(1.0), ledger=None).pvalue <= 1
    True
    """
    example = '"after - before", data, privacy=cf.GDP(1.0), ledger=None'
    checked_call("cf.tests.wilcoxon", Wilcoxon, privacy, ledger, settings, example=example)
    found: RankTest = answered(Wilcoxon(formula, **settings), data, privacy, ledger, noise, n)
    return found
