"""Rank tests: Mann-Whitney's of two groups, Kruskal and Wallis' of several, Wilcoxon's of one sample, in two rounds of noise.

Guarantee: mu-GDP, add-remove or substitution. Round 1, a fifth of the cost: the numbers of records up to public edges, by group
(`confide.sums.distributions.cumulative`). Round 2, four fifths: each group's number of records, sum of scores and sum of 1 - u^2. Scores u
in [-1, 1] are public numbers that follow from round 1. Sensitivities are proved there for any scores; the rounds are composed
adaptively (Dong, Roth, Su 2022, Corollary 2). Both are a public table times the histogram of a group, so that records are read once.

Null hypothesis: equal distributions (one sample: a distribution that is symmetric about 0). Scores follow from the sum of the groups'
round 1 alone, so that labels are exchangeable given them, and a poor round 1 costs power, not size. Bounds cost bins, not noise: bounds ten
times too wide cost little. Variances hold for groups of unequal size and spread, too (`reading`).
Sources: Mann, Whitney 1947. Kruskal, Wallis 1952. Wilcoxon 1945. Brunner, Munzel 2000. Couch, Kazan, Shi, Bray, Groce 2019 (rank tests
with differential privacy; their H_abs is compared by `confide lab run tables.ranks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, Composed, Meter, Method, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tests.reading import Scored, Shape, power_note, scores_of
from confide.methods.tests.results import RankTest, Rounds, read_one, read_several, read_two
from confide.noise import keyed_generator
from confide.schema import CodedFrame, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import column_named, parted, sides
from confide.sums.cells.cell_sums import Attribute, Crossing, cut_point
from confide.sums.cells.moments import Measure
from confide.sums.coding import BOUND, ends
from confide.sums.columns import practice_codes
from confide.sums.distributions.cumulative import (
    BinRows,
    Bins,
    BinTotals,
    CumulativeRows,
    Histograms,
    ScoreRows,
    SignedRows,
    strategy,
)

_FIRST, _SECOND = Fraction(1, 5), Fraction(4, 5)
#: Bins of round 1; for one sample sizes below 0, 0, and above.
BINS = 128
_CUT = re.compile(r"cut\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class RankAbout:
    """Maps of a rank test: that of round 1, and that of round 2 before its scores are known.

    shapes: groups of round 1, of two for one sample: what is below 0 and the rest.
    """

    first: BinRows
    second: ScoreRows
    groups: tuple[str, ...]

    @property
    def bins(self) -> int:
        """Of one group's counts in round 1."""
        return self.first.half if isinstance(self.first, SignedRows) else self.first.bins.size

    def shape(self, values: Array, variance: float) -> Shape:
        """Round 1, from its noisy integers."""
        own = strategy(self.bins)
        blocks = values.reshape(self.first.block, self.first.cells)
        rows = blocks.reshape(2, 3 * self.bins) if isinstance(self.first, SignedRows) else blocks.T
        return Shape(own.counts(rows), variance / 4.0**20, own, self._alone)

    @property
    def _alone(self) -> NDArray[np.bool_]:
        """Of the bins of round 1, those of one value."""
        found = self.first.bins.alone(self.first.measure.term.steps)
        return found[self.first.half - 1 :] if isinstance(self.first, SignedRows) else found

    def scores(self, shape: Shape) -> Array:
        """u of each bin: of one sample H(|d|) with the sign of d, 0 for 0."""
        if not isinstance(self.first, SignedRows):
            return scores_of(shape.counts.sum(axis=0))
        own = (scores_of(shape.counts.sum(axis=0)) + 1.0) / 2
        return np.concatenate([-own[:0:-1], [0.0], own[1:]])

    def scored(self, shape: Shape, values: Array, variance: float) -> Scored:
        """Round 2, from its noisy integers, with the numbers of records of round 1."""
        n, s, q = values.reshape(3, self.second.cells)
        t, unit = float(self.second.count), float(self.second.steps)
        sizes = shape.counts.sum(axis=1)
        both = shape.size_variance
        if self.second.cells == 1:
            sizes, both = sizes.sum(keepdims=True), 2 * both
        return Scored.joined(sizes, both, n / t, s / unit, q / unit, variance / t**2, variance / unit**2)


@dataclass(frozen=True)
class _Ranks(Method):
    """Common base of rank tests: two rounds over one pass.

    Parameters
    ----------
    formula : str
        Numeric column, and its groups.
    """

    formula: str

    family: ClassVar[str] = "tests"
    counts_lost: ClassVar[bool] = True
    #: A call that works.
    _example: ClassVar[str]
    _read: ClassVar[staticmethod[[Rounds], RankTest]]

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or not self.formula.strip():
            raise PlanError(f"{type(self).__name__} takes a formula, got {self.formula!r}", f"write {self._example}")

    def about(self, schema: Any) -> RankAbout:
        """The maps of both rounds; `PlanError` or `SchemaError` for what cannot be planned from public facts."""
        raise NotImplementedError

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Two Gaussian rounds; with n, a note says what the test will find."""
        allowance, about = Allowance.of(privacy, self, schema), self.about(schema)
        about = replace(about, second=replace(about.second, count=_count(allowance.relation)))
        first, second = BinTotals(about.first), BinTotals(about.second)
        event = Composed((allowance.spend("cumulative", first, _FIRST), allowance.spend("scores", second, _SECOND)))
        live = {"histograms": Histograms(about.first), "cumulative": first, "scores": second}
        made = Plan.of(self, schema, allowance, event, live, n=n, **self.facts(about))
        return (
            made
            if not n
            else replace(made, notes=(*made.notes, power_note(n, about.second.cells, _noise(made, about))))
        )

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the histograms, which stay here; round 1, the scores that follow from it, round 2."""
        about = self._planned(plan)
        (counts,) = source.aggregate(plan.statistic("histograms"))
        noisy = meter.draw("cumulative", BinTotals(about.first).value(counts))
        scores = about.scores(about.shape(noisy.decode(), noisy.variance))
        meter.draw("scores", BinTotals(replace(about.second, scores=tuple(map(float, scores)))).value(counts))
        return {"scores": scores}

    def _planned(self, plan: Plan) -> RankAbout:
        about = self.about(plan.declared)
        return replace(about, second=replace(about.second, count=_count(plan.relation)))

    def _rounds(self, release: Release) -> tuple[RankAbout, Shape, Scored]:
        about = self._planned(release.plan)
        first, second = release["cumulative"], release["scores"]
        shape = about.shape(first.decode(), first.variance)
        return about, shape, about.scored(shape, second.decode(), second.variance)

    def table(self, release: Release, about: RankAbout, options: ResultOptions) -> RankTest:
        """The test, with what it tests: an estimate and its interval, or mean ranks."""
        about, shape, scored = self._rounds(release)
        generator = keyed_generator(release.drawn_sha256, "rank test")
        return self._read(Rounds(release, about.first.measure.name, about.groups, shape, scored, generator))

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record at either end of the scores."""
        if isinstance(schema, Schema):
            yield from (ends(schema, (name,)) for name in self.about(schema).first.measure.columns)


def _noise(plan: Plan, about: RankAbout) -> float:
    """The noise variance of a group's sum of scores."""
    return ((plan.spend("scores").noise_sd or 0.0) / float(about.second.steps)) ** 2


def _count(relation: str) -> int:
    """T of the scores' rows: a tenth of the squared length under add-remove, free up to a half under substitution."""
    return isqrt(BOUND if relation == "substitute" else BOUND // 9)


def _grouped(formula: str, schema: Any, example: str) -> tuple[Measure, Crossing]:
    """The measure and the groups of "y ~ g", "y ~ a:b" or "y ~ cut(x, 18)"."""
    parts = sides(formula)
    if len(parts) != 2 or not all(parts):
        raise PlanError(f"{cut(formula)!r} names no outcome and groups", f"write {example}")
    groups = tuple(_attribute(text.strip(), schema, example) for text in parted(parts[1], ":"))
    return Measure.of(parts[0], schema, formula=cut(formula)), Crossing(groups, schema)


def _attribute(text: str, schema: Any, example: str) -> Attribute:
    call = _CUT.fullmatch(text)
    if call is None:
        return Attribute.of(column_named(text, schema.names), schema)
    name, *points = parted(call.group(1), ",")
    try:
        return Attribute.cut(column_named(name.strip(), schema.names), [cut_point(point) for point in points], schema)
    except ValueError as error:
        if isinstance(error, PlanError) or not points:
            raise
        raise PlanError(
            f"{text!r} takes a column and numbers", f"write {example.replace('sex', 'cut(age, 40)')}"
        ) from None


def _by_group(formula: str, schema: Any, example: str) -> RankAbout:
    measure, crossing = _grouped(formula, schema, example)
    axes = tuple(range(len(crossing.attributes)))
    bins = Bins.graded(measure, BINS)
    titles = [own.name for own in crossing.attributes]
    names = tuple(
        ", ".join(f"{title}={label}" for title, label in zip(titles, labels, strict=True))
        for labels in crossing.labels(axes)
    )
    first = CumulativeRows(crossing, axes, measure, bins)
    return RankAbout(first, ScoreRows(crossing, axes, measure, bins, _count("add-remove")), names)


def _values(method: _Ranks, frame: Any) -> tuple[RankAbout, NDArray[np.int64], Array]:
    """The group, which is the number of groups for none, and the value of each test record."""
    practice = CodedFrame.checked(frame)
    about = method.about(practice.schema)
    rows = about.first
    place, coded = rows.coded(practice_codes(rows, practice))
    return about, place, rows.measure.term.grid.decode(coded)


def _ranked(values: Array) -> Array:
    """H at each value, ties in the middle."""
    _, at, times = np.unique(values, return_inverse=True, return_counts=True)
    upto = np.cumsum(times)
    return np.asarray(((upto - times / 2) / len(values))[at])


@dataclass(frozen=True)
class MannWhitney(_Ranks):
    """Test by ranks whether two groups differ, after Mann and Whitney.

    The estimand is P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2, of a value from each group.
    The test is of equal distributions.

    Parameters
    ----------
    formula : str
        Numeric column and two groups, such as ``"income ~ sex"`` or
        ``"income ~ cut(age, 40)"``.

    See Also
    --------
    Kruskal : Several groups.
    confide.tests.ttest_ind : The same question by means.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from two rounds of Gaussian noise on
    exact integer sums: cumulative counts by group at a fifth of the cost, and
    sums of scores. `confide.sums.distributions.cumulative` proves the
    sensitivities; rounds compose adaptively. Bounds ten times too wide cost little.

    References
    ----------
    Mann and Whitney (1947), On a test of whether one of two random variables is
    stochastically larger than the other, Ann. Math. Stat. 18.

    Brunner and Munzel (2000), The nonparametric Behrens-Fisher problem,
    Biometrical Journal 42.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5),
    ...                     "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tests.MannWhitney("income ~ sex")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> result = cf.infer(release)
    >>> list(result.params.index), 0 < result.pvalue <= 1
    (['P(sex=F > sex=M) - 1/2'], True)
    """

    name: ClassVar[str] = "mann_whitney"
    example: ClassVar[str] = '"income ~ sex"'
    source: ClassVar[str] = "Mann, Whitney 1947; Brunner, Munzel 2000; two rounds of noisy ranks"
    intervals: ClassVar[str] = "P(Y1 > Y2) + P(Y1 = Y2)/2 - 1/2; any laws; sampling and privacy noise"
    _example: ClassVar[str] = 'MannWhitney("income ~ sex")'
    _read = staticmethod(read_two)

    def about(self, schema: Any) -> RankAbout:
        """Both maps; `PlanError` unless there are two groups."""
        about = _by_group(self.formula, schema, self._example)
        if len(about.groups) != 2:
            raise PlanError(
                f"{cut(self.formula)!r} has {len(about.groups)} groups and this test compares two",
                f"write cf.tests.Kruskal({cut(self.formula)!r}), or keep two levels with where=",
            )
        return about

    def facts(self, about: RankAbout) -> Mapping[str, Any]:
        """Estimand and what intervals account for."""
        one, other = about.groups
        y = about.first.measure.name
        return {
            "target": f"P({y} of {one} > {y} of {other}), ties counted half, less 1/2; null hypothesis of the test: equal laws",
            "intervals_for": (
                "two independent groups of independent records, any laws, unequal sizes and spreads; sampling and privacy noise"
            ),
        }

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same number from all pairs of test data."""
        about, place, values = _values(self, frame)
        ranks = _ranked(np.concatenate([values[place == 0], values[place == 1]]))
        size = int((place == 0).sum())
        one, other = about.groups
        return {f"P({one} > {other}) - 1/2": float(ranks[:size].mean() - ranks[size:].mean())}


@dataclass(frozen=True)
class Kruskal(_Ranks):
    """Test by ranks whether several groups differ, after Kruskal and Wallis.

    The test is of equal distributions (F on mean scores). The table has the mean
    rank of each group.

    Parameters
    ----------
    formula : str
        Numeric column and groups, such as ``"income ~ region"``,
        ``"income ~ region:sex"`` or ``"income ~ cut(age, 30, 50)"``.

    See Also
    --------
    MannWhitney : Two groups.
    confide.tests.f_oneway : The same question by means.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from two rounds of Gaussian noise on
    exact integer sums: cumulative counts by group at a fifth of the cost, and
    sums of scores. `confide.sums.distributions.cumulative` proves the
    sensitivities; rounds compose adaptively. Bounds ten times too wide cost little.

    References
    ----------
    Kruskal and Wallis (1952), Use of ranks in one-criterion variance analysis,
    JASA 47.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5),
    ...                     "region": cf.Categorical(["N", "S", "W"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tests.Kruskal("income ~ region")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> result = cf.infer(release)
    >>> list(result.to_frame().index), 0 < result.pvalue <= 1
    (['region=N', 'region=S', 'region=W'], True)
    """

    name: ClassVar[str] = "kruskal"
    example: ClassVar[str] = '"income ~ region"'
    source: ClassVar[str] = "Kruskal, Wallis 1952; two rounds of noisy ranks"
    _example: ClassVar[str] = 'Kruskal("income ~ region")'
    _read = staticmethod(read_several)

    def about(self, schema: Any) -> RankAbout:
        """Both maps; `PlanError` for fewer than two groups."""
        return _by_group(self.formula, schema, self._example)

    def facts(self, about: RankAbout) -> Mapping[str, Any]:
        """Estimand and what intervals account for."""
        return {
            "target": f"mean rank of {about.first.measure.name} in {len(about.groups)} groups; null hypothesis of the test: equal laws",
            "intervals_for": (
                "the test: independent groups of independent records, any law; it is of equal laws, and also finds unequal spreads"
            ),
        }

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Mean ranks of the groups among all test data, between 0 and 1."""
        about, place, values = _values(self, frame)
        known = place < len(about.groups)
        ranks, place = _ranked(values[known]), place[known]
        return {name: float(ranks[place == k].mean()) for k, name in enumerate(about.groups)}


@dataclass(frozen=True)
class Wilcoxon(_Ranks):
    """Test by signed ranks whether a difference is centered at 0, after Wilcoxon.

    The estimand is P(d + d' > 0) - 1/2, of the differences of two records. The
    test is of symmetry about 0.

    Parameters
    ----------
    formula : str
        Difference of two columns, such as ``"after - before"``, or any numeric
        column or derived term. Zeros have rank 0.

    See Also
    --------
    confide.tests.ttest_rel : The same question by means.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from two rounds of Gaussian noise on
    exact integer sums: cumulative counts by sign at a fifth of the cost, and
    sums of scores. `confide.sums.distributions.cumulative` proves the
    sensitivities; rounds compose adaptively. Bounds ten times too wide cost little.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics
    Bulletin 1.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"before": cf.Numeric(0, 10), "after": cf.Numeric(0, 10)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tests.Wilcoxon("after - before")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> list(cf.infer(release).params.index)
    ["P(d + d' > 0) - 1/2"]
    """

    name: ClassVar[str] = "wilcoxon"
    example: ClassVar[str] = '"after - before"'
    source: ClassVar[str] = "Wilcoxon 1945; two rounds of noisy ranks"
    intervals: ClassVar[str] = "P(d + d' > 0) + P(d + d' = 0)/2 - 1/2; any law; sampling and privacy noise"
    _example: ClassVar[str] = 'Wilcoxon("after - before")'
    _read = staticmethod(read_one)

    def about(self, schema: Any) -> RankAbout:
        """Both maps; `PlanError` where the bounds leave no value on one side of 0."""
        measure, crossing = Measure.of(self.formula, schema), Crossing((), schema)
        if not measure.term.low < 0 < measure.term.high:
            raise PlanError(
                f"{measure.name!r} lies between {measure.term.low:g} and {measure.term.high:g}, so that 0 is not within its bounds",
                'write a difference, as in cf.tests.Wilcoxon("after - before")',
            )
        bins = Bins.signed(measure, BINS)
        first = SignedRows(crossing, (), measure, bins)
        return RankAbout(first, ScoreRows(crossing, (), measure, bins, _count("add-remove")), ("",))

    def facts(self, about: RankAbout) -> Mapping[str, Any]:
        """Estimand and what intervals account for."""
        return {
            "target": f"P(d + d' > 0) - 1/2 for two independent differences d = {about.first.measure.name}; null hypothesis of "
            "the test: a law that is symmetric about 0",
            "intervals_for": "independent records, any law; sampling and privacy noise",
        }

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same number from test data: the mean of sign(d) times the rank of |d|."""
        _, place, values = _values(self, frame)
        d = values[place == 0]
        return {"P(d + d' > 0) - 1/2": float((np.sign(d) * _ranked(np.abs(d))).mean())}
