"""The rounds behind Fisher scoring: a linear fit, steps, up to what length records have full weight, further steps, its meat.

Guarantee: mu-GDP, add-remove or substitute. Drawn are the count, the linear round (`linear_rows`), every step and the last
round (`fisher_rows`). So are the histograms of N^2, of counts and of outcomes (`sums`), the excess and the meat. Each is a Gaussian
mechanism on exact integers. They are adaptively composed: squares of mu add up, to the same sum in all branches, of which the estimated
number of records chooses one. Coordinates, lines, bounds and the limit of counts follow from what was drawn before. The meat's rows are
taken at the line after the last step with N, w and r all recomputed there. With the weights of one line and the residuals of another
they would be longer than D.

Scores of counts have more weight than their information for extreme records (`Family.score_part`). What A so lacks of the score's
derivative, sum (w - v) h u u', follows from made points (`draw`); what they get wrong moves the line by that part of the last step.
Sources: Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022, Theorem 2 and Corollary 2.

One round's sums as a release holds them: decoded, shrunken, solved; what a line is read from.

Where Fisher scoring starts: a fit to points that are made from noisy moments. All of it is post-processing.

Slopes of a least-squares line, scaled to log-odds, are not a safe start: Newton's steps run away from them on a rare level. So the
start is the family's own fit to made points. These are draws with the noisy means, variances and correlations of the features (a
Gaussian copula; two-valued terms at their values). Each has the linear prediction, clipped to what shares can be, as its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._special import ndtri
from confide.core import Allowance, Branches, Composed, Event, Gram, Meter, Noisy, Plan, Source, Statistic, Total
from confide.methods.regression.evidence.cells import distinct_rows
from confide.methods.regression.evidence.normal_equations import extent
from confide.methods.regression.glm.clipping import (
    Bound,
    CountCut,
    Sizes,
    chosen_kappa,
    lengths_at_ends,
    missed_at_ends,
    spacing,
)
from confide.methods.regression.glm.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.glm.fisher_rows import CROSS, FisherRows, FisherScores, InformationIndices
from confide.methods.regression.glm.noise_floor import UnidentifiedLevels, levels_of, settled
from confide.methods.regression.glm.sums import CountIndices, Excess, FisherSum, OutcomeCells, SumAndExcess
from confide.methods.regression.least_squares.sums import floored_moments
from confide.methods.regression.sums.linear_rows import (
    BlockGram,
    Present,
    multipliers,
    ranged,
)
from confide.methods.regression.sums.scores import UnitFisherScores
from confide.methods.regression.sums.whitened_rows import Frame, NoisySystem, Round, WhitenedRows, choose_prior, wiener
from confide.noise import keyed_generator
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.clusters.cluster_covariance import Counting, meat_of, ruler_of, scores_of, with_scores
from confide.sums.coding import BOUND, Box

# How the linear round splits between moments, products and square.
_SPLIT = (Fraction(40, 100), Fraction(59, 100), Fraction(1, 100))
# Steps are shrunken towards 0 and no longer than this, in coordinates where a record's features have variance 1.
_PRIORS = tuple(4.0**j for j in range(-8, 5))
_LONGEST = 1.5
# A line of log-odds beyond this is useless.
FAR = 1e6


def cap_of(design: ModelMatrix) -> float:
    """R2: what |z|^2 counts up to in the linear round."""
    return 1 + len(design.terms) / 3


@dataclass(frozen=True, eq=False)
class FisherRound:
    """One step's sums in units of u: A (k, k), g (k,), and the SDs of their noise (A's on the diagonal)."""

    gram: Array
    cross: Array
    sd_gram: float
    sd_cross: float

    @classmethod
    def decoded(cls, noisy: Noisy, rows: FisherRows) -> Self:
        """From integers in steps."""
        (a, b), values, sd = rows.steps, noisy.decode(), sqrt(noisy.variance)
        return cls(values[:-1, :-1] / a, values[:-1, -1] / (CROSS * b), sd / a, sd / (sqrt(2) * CROSS * b))

    @property
    def norm(self) -> float:
        """e: about the operator norm of the noise of A."""
        return self.sd_gram * sqrt(2 * len(self.cross))

    def within(self, basis: Array) -> Self:
        """The same in a space of fewer directions, of which `basis` (k, fewer) is an orthonormal basis: noise is as it was."""
        return replace(self, gram=basis.T @ self.gram @ basis, cross=basis.T @ self.cross)

    def shrunken(self, generator: np.random.Generator, scale: float = 1.0, sampled: float = 1.0) -> Array:
        """The correction with the noise filtered out. scale: R, of the family; sampled: the part of sampling variances that is noise."""
        system = NoisySystem(self.gram, self.cross, self.sd_gram, self.sd_cross, s2=sampled / scale)
        delta, _ = wiener(system, choose_prior(system, generator, _PRIORS))
        size = float(np.linalg.norm(delta))
        return np.asarray(delta * min(1.0, _LONGEST / size) if size > 0 else delta)

    @property
    def solved(self) -> Array:
        """A^-1 g, zeros where A has no inverse or the correction is useless."""
        try:
            delta = np.linalg.solve(self.gram, self.cross)
        except np.linalg.LinAlgError:
            return np.zeros(len(self.cross))
        return np.asarray(delta) if (np.abs(delta) <= FAR).all() else np.zeros(len(delta))


def scored(design: ModelMatrix, release: Any) -> FisherRound:
    """The last round of a release."""
    rows = FisherRows(design, alpha=float(release.public["alpha"][0]), bound=float(release.public["bound"][0]))
    name = "last" if "last" in release.statistics else "short last"
    return FisherRound.decoded(release[name], rows)


def linear_round(design: ModelMatrix, release: Any, box: Box) -> Round:
    """The linear round of a release, with features measured from `box`."""
    name = "linear" if "linear" in release.statistics else "short linear"
    return Round.decoded(release[name], linear_sums(design), Frame.start(box), cap_of(design))


def linear_sums(design: ModelMatrix) -> BlockGram:
    """The statistic of the linear round."""
    return BlockGram(WhitenedRows(design), multipliers(*_SPLIT))


_POINTS = 3_000
_START_STEPS = 25
# The fit's ridge, per point, and the least information that a point counts with.
_RIDGE, _LEAST = 1e-4, 0.02
# Predictions are cut to from this part of the rarer outcome's share on.
_CUT = 0.2
_RAREST = 1e-3
# No spread of a feature is below this in its half-widths.
_NARROWEST = 1e-3


def made_points(
    design: ModelMatrix, box: Box, moments: Array, generator: np.random.Generator, number: int = _POINTS
) -> Array:
    """z of made records, shape (number, p). moments: second moments of z per record, (p, p) with 1 in the corner."""
    mean = moments[0, 1:]
    covariance = moments[1:, 1:] - np.outer(mean, mean)
    sd = np.sqrt(np.maximum(np.diag(covariance), _NARROWEST**2))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = generator.standard_normal((number, len(mean))) @ root.T
    normal /= np.maximum(np.sqrt((root**2).sum(axis=1)), _NARROWEST)
    low, high = extent(design, box)
    points = np.ones((number, len(mean) + 1))
    wide = set(ranged(design))
    for j in range(len(mean)):
        if j in wide:
            points[:, 1 + j] = np.clip(mean[j] + sd[j] * normal[:, j], low[j], high[j])
        else:
            share = np.clip((mean[j] - low[j]) / (high[j] - low[j]), _RAREST, 1 - _RAREST)
            points[:, 1 + j] = np.where(normal[:, j] > -ndtri(share), high[j], low[j])
    return points


def started(points: Array, line: Array, share: float, family: Family = LOGIT) -> Array:
    """theta of the model that is likeliest where each point's outcome is its linear prediction, in units in which the largest one is 1.

    line: theta of the line that predicts 2 y - 1; share: the mean of y.
    """
    least = _CUT * min(share, 1 - share)
    target = np.clip((1 + points @ line) / 2, least, 1 - least)
    theta = np.zeros(points.shape[1])
    theta[0] = family.link(share)

    def loss(at: Array) -> float:
        return float(family.loss(points @ at, target).mean() + _RIDGE / 2 * (at @ at))

    now = loss(theta)
    for _ in range(_START_STEPS):
        pull, own = family.pull(points @ theta, target)
        slope = points.T @ pull / len(points) + _RIDGE * theta
        bend = (points.T * np.maximum(own, _LEAST)) @ points / len(points) + _RIDGE * np.eye(len(theta))
        step, size = np.linalg.solve(bend, slope), 1.0
        while (then := loss(theta - size * step)) > now and size > 1e-3:
            size /= 2
        if then >= now:
            break
        theta, now = theta - size * step, then
    return theta


_Map = TypeVar("_Map", FisherRows, InformationIndices, Excess)

#: Of the longest branch: count, linear fit, four steps, histogram, last step, meat.
PASSES = 9
# Shares of mu^2; each branch adds up to 1, as those of the rounds are scaled to what others leave.
_COMMON = {"count": 1, "leverage": 2, "excess": 5, "meat": 5}
# Of counts, for the histogram that says where they are cut.
_COUNTS = {"counts": 2}
# Of formulas with columns of few values alone, for the outcomes at each distinct row of the matrix (`noise_floor`).
_OUTCOMES = {"outcomes": 5}
_LINEAR, _STEPS, _LAST = 12, 22, 44
# From so many noise units for each coefficient on there are 2, 3 or 4 steps; below, one.
_ENOUGH = {4: 300, 3: 100, 2: 30}
# The linear round's residual variance, of an outcome of -1 or 1.
_RESIDUAL = 0.8
# kappa and D^2/k of the steps before the histogram.
_KAPPA, _ROOM = 3.0, 2.0
# Eigenvalues of the moments are floored at this part of their noise; records count at least this much in them.
_FLOORED, _LEAST_COUNT = 0.5, 0.2
# Eigenvalues below this part of the largest are none.
_NONE = 1e-9


def steps_of(statistics: Mapping[str, Any]) -> int:
    """K: how many steps a release took before the last."""
    return next((k for k in _ENOUGH if f"step 1 of {k}" in statistics), 1)


@dataclass(frozen=True)
class FisherWeights:
    """What is known of weights omega in [0, 1] before the rounds: their mean, and E omega^2/E omega. Without weights both are 1."""

    mean: float = 1.0
    heavy: float = 1.0


@dataclass(frozen=True, eq=False)
class AtLine:
    """Where a meat is taken: the frame after the last step, alpha, D, the family and its limit of counts.

    gram: A of the last round; records: the sum of the weights of records.
    """

    frame: Frame
    alpha: float
    bound: float
    family: Family
    gram: Array
    records: float


@dataclass(frozen=True)
class FisherRounds:
    """The plan and the draws of a design with an intercept and an outcome of two values, or of counts.

    counting: how rows of a unit count, where several do: then the meat is one of units.
    """

    design: ModelMatrix
    family: Family = LOGIT
    counting: Counting | None = None

    #: The part of the sampling variance that steps are shrunken by, beside privacy noise.
    sampled: ClassVar[float] = 1.0

    @property
    def _common(self) -> Mapping[str, int]:
        found = _COMMON | _COUNTS if isinstance(self.family, Counts) else _COMMON
        return found if distinct_rows(self.design) is None else found | _OUTCOMES

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(self, allowance: Allowance) -> tuple[Event, dict[str, Statistic]]:
        """The events and statistics, whose shares are exact in all branches."""
        statistics = self._statistics()
        rest = Fraction(100 - sum(self._common.values()), 100)
        rounds = Fraction(_LINEAR + _STEPS + _LAST, 100)

        def spent(scale: Fraction, shares: Mapping[str, Fraction | int]) -> tuple[Event, ...]:
            return tuple(
                allowance.spend(name, statistics[name], scale * Fraction(part) / 100) for name, part in shares.items()
            )

        scale = rest / rounds
        short = spent(scale, {"short linear": _LINEAR, "short step": _STEPS, "short last": _LAST})
        long = spent(scale, {"linear": _LINEAR, "last": _LAST})
        steps = tuple(
            Composed(spent(scale, {f"step {j + 1} of {k}": Fraction(_STEPS, k) for j in range(k)})) for k in _ENOUGH
        )
        common = spent(Fraction(1), self._common)
        return Composed((*common, Branches((Composed((*long, Branches(steps))), Composed(short))))), statistics

    def _statistics(self) -> dict[str, Statistic]:
        design, family = self.design, self.family
        made: dict[str, Statistic] = {"count": Total(Present(design), nonnegative=True)}
        if isinstance(self.family, Counts):
            made["counts"] = Histogram(CountIndices(design))
        rows = distinct_rows(design)
        if rows is not None:
            made["outcomes"] = Histogram(OutcomeCells(design, rows.columns, rows.sizes, tuple(rows.row_of.tolist())))
        made |= dict.fromkeys(("linear", "short linear"), linear_sums(design))
        steps = ["short step", *(f"step {j + 1} of {k}" for k in _ENOUGH for j in range(k))]
        made |= dict.fromkeys((*steps, "last", "short last"), FisherSum(FisherRows(design, family=family)))
        made["leverage"] = Histogram(InformationIndices(design, family=family))
        made["excess"] = Total(Excess(design, family=family), nonnegative=True)
        made["meat"] = self.meat
        return made

    @property
    def meat(self) -> Statistic:
        """The Gram matrix of scores, of records or of units whose rows count."""
        if self.counting is None:
            return Gram(FisherScores(self.design, family=self.family))
        scores = UnitFisherScores(self.design, family=self.family, counting=self.counting)
        return meat_of(scores, self.design.schema.cluster)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        """Noisy sums in the order of the plan; the estimated number of records chooses the branch. The public numbers between them, by
        name.
        """
        return drawn_rounds(self, source, plan, meter)

    def meat_at(self, planned: Statistic, at: AtLine) -> tuple[Statistic, dict[str, NDArray[Any]]]:
        """The meat at a line, and public numbers that it is read with."""
        scores = scores_of(planned)
        assert isinstance(scores, FisherScores)
        scores = replace(scores, family=at.family).at(at.frame, at.alpha, at.bound)
        statistic = with_scores(planned, scores, self.design.schema, at.records)
        return statistic, ruler_of(statistic)


def drawn_rounds(
    of: FisherRounds, source: Source, plan: Plan, meter: Meter, weighing: FisherWeights | None = None
) -> dict[str, NDArray[Any]]:
    """Draw through a branch; the public numbers by name."""
    return _Draw(of, of.family, source, plan, meter, weighing or FisherWeights()).run()


@dataclass(frozen=True, eq=False)
class _Draw:
    """One run through a branch. family: of counts with the declared bound for a cut, until the draws say where it is."""

    of: FisherRounds
    family: Family
    source: Source
    plan: Plan
    meter: Meter
    weighing: FisherWeights

    @property
    def design(self) -> ModelMatrix:
        return self.of.design

    @property
    def _k(self) -> int:
        return len(self.design.terms) + 1

    def run(self) -> dict[str, NDArray[Any]]:
        first = [name for name in ("count", "counts", "outcomes") if name in self.plan.statistics]
        asked = [self.plan.statistic(name) for name in first]
        if "counts" not in first:
            # sums of a fit that waits for no number of records: of either branch, in the pass that counts them
            first, asked = [*first, "linear"], [*asked, self._linear("linear")]
        sums = dict(zip(first, self.source.aggregate(*asked), strict=True))
        # by weight, where there are weights
        records = self.weighing.mean * max(float(self.meter.draw("count", sums["count"]).decode()[0]), 1.0)
        enough = records / sqrt(_COMMON["count"] / 100) / self._sd("count") / self._k
        steps = next((k for k, least in _ENOUGH.items() if enough >= least), 1)
        short = "short " if steps == 1 else ""
        if "outcomes" in sums:
            self.meter.draw("outcomes", sums["outcomes"])
        own = self if "counts" not in sums else replace(self, family=self._cut(sums["counts"], short + "last", records))
        begun = own._begun(short + "linear", records, sums.get("linear"))
        names = ["short step"] if short else [f"step {j + 1} of {steps}" for j in range(steps)]
        return own._scored(begun, names, short + "last", records)

    def _cut(self, counts: Any, last: str, records: float) -> Counts:
        """The family of counts, cut where none is seen beyond."""
        assert isinstance(self.family, Counts)
        noisy = self.meter.draw("counts", counts).decode()
        found = CountCut(
            noisy, self._sd("counts"), self.family.high, records, self._k, BOUND / self._sd(last), spacing(self.design)
        )
        return replace(self.family, cut=found.cut)

    def _sd(self, name: str) -> float:
        found = self.plan.spend(name).noise_sd
        assert found is not None
        return found

    def _linear(self, name: str) -> BlockGram:
        """The sums of the linear fit, where it stands."""
        planned = self.plan.statistic(name)
        assert isinstance(planned, BlockGram) and isinstance(planned.map, WhitenedRows)
        return replace(planned, map=planned.map.at(self._first(Box.of(self.design)), cap_of(self.design)))

    def _begun(self, name: str, records: float, total: Any = None) -> _Begun:
        """The linear fit, the coordinates that whiten its moments, and the line to start from. total: its sums, where they are known."""
        planned, box = self._linear(name), Box.of(self.design)
        frame, cap = self._first(box), cap_of(self.design)
        if total is None:
            (total,) = self.source.aggregate(planned)
        noisy = self.meter.draw(name, total)
        done = Round.decoded(noisy, planned, frame, cap)
        generator = keyed_generator("logistic start", noisy.sha256)
        system = done.system(_RESIDUAL, free=True)
        line, _ = wiener(system, choose_prior(system, generator))
        # records of long rows count less here; the weighted count puts the scale right
        count = max(done.count, _LEAST_COUNT * records)
        values, vectors = np.linalg.eigh((done.gram + done.gram.T) / 2 / count)
        floor = _FLOORED * done.gram_noise / count
        transform = vectors / np.sqrt(np.maximum(values, floor))
        moments = floored_moments(done.gram, np.eye(self._k), count, floor)
        share = float(np.clip((1 + done.cross[0] / done.count) / 2, 1e-3, 1 - 1e-3))
        points = made_points(self.design, box, moments, generator)
        theta = started(points, np.clip(line, -FAR, FAR), share, self.family)
        return _Begun(Frame.of(box, transform, theta, 1.0), moments, points, self.family)

    def _first(self, box: Box) -> Frame:
        """Where the linear fit stands: its residuals are 2 y - 1 of an outcome of 0 or 1, 2 min(y, c)/c - 1 of a count."""
        frame = Frame.start(box)
        if not isinstance(self.family, Counts):
            return frame
        rho = self.family.cut / self.family.high
        return replace(frame, theta=(rho - 1.0, *frame.theta[1:]), rho=rho)

    def _scored(self, begun: _Begun, steps: list[str], last: str, records: float) -> dict[str, NDArray[Any]]:
        """The steps, up to what length records have full weight, the last step and the meat."""
        k, frame = self._k, begun.frame
        alpha, bound = _KAPPA / sqrt(k), sqrt(_ROOM * k)
        gram = begun.information(records)
        less, wide, ends = 0.0, False, np.zeros(k - 1)
        # the last steps and the round after them have one bound, and so one line to settle at
        first_wide = steps[max(len(steps) - 2, min(1, len(steps) - 1))]
        for name in steps:
            if name == first_wide:
                mu = BOUND / self._sd(last)
                alpha = chosen_kappa(gram, mu) / sqrt(k)
                ends, sizes = self._ends(begun, frame, alpha)
                reached = (float(ends.max(initial=0.0)) ** 2, float(sizes.max(initial=0.0)) ** 2)
                found = self._bound(frame, alpha, gram, mu, records, reached)
                bound, less, wide = found.value, found.less, True
            # far from the line scores of far records lead astray, and count less with their information
            done, noisy = self._round(name, frame, alpha, bound, apart=wide)
            gram = done.gram
            if wide:
                done, *_ = self._weighed(begun, frame, alpha, bound, done, records)
            generator = keyed_generator("noise fission", noisy.sha256)
            delta = done.shrunken(generator, self.family.scale, self.of.sampled)
            frame = _moved(frame, delta)
        done, _ = self._round(last, frame, alpha, bound, excess=True)
        # along levels that noise hides there is no step
        levels = levels_of(self.design, frame.box)
        held = UnidentifiedLevels.of(done.gram, done.sd_gram, frame.matrix, begun.moments, levels)
        done, lacking, counts = self._weighed(begun, frame, alpha, bound, done, records)
        delta, change = self._settled(begun, frame, done, held.basis, counts)
        final = _moved(frame, delta)
        # N, w and r are those of the new line: only so are its rows no longer than D
        at = AtLine(final, alpha, bound, self.family, done.gram, records)
        meat, facts = self.of.meat_at(self.plan.statistic("meat"), at)
        (total,) = self.source.aggregate(meat)
        self.meter.draw("meat", total)
        mean, sd = begun.features
        return {
            "transform": frame.matrix,
            "start": begun.frame.line,
            "line": frame.line,
            "meat_line": final.line,
            "moments": begun.moments,
            "feature_mean": mean,
            "feature_sd": sd,
            "alpha": np.array([alpha]),
            "bound": np.array([bound]),
            "less": np.array([less]),
            "ends": ends,
            "change": change + lacking,
            **self._of_counts(begun, frame, alpha, bound),
            **facts,
        }

    def _weighed(
        self, begun: _Begun, frame: Frame, alpha: float, bound: float, done: FisherRound, records: float
    ) -> tuple[FisherRound, Array, Array]:
        """The sums with A as of the score's weights, what A has of it more, (k, k), and how many records each made point stands for there.

        The part sum (w - v) h u u' has of A is that of the made points, whose numbers of a rare level may be far from those of records.
        """
        v, w = self._at(FisherRows(self.design), frame, alpha, bound).of_points(begun.points)
        each = records / len(w)
        if not self.family.score_part:
            return done, np.zeros_like(done.gram), w * each
        u, h = begun.points @ frame.matrix, self.family.information(begun.points @ frame.line)
        own, more = ((u.T * (part * h)) @ u for part in (v, w - v))
        carried = _root(done.gram) @ _root(own, inverse=True)
        lacking = np.asarray(carried @ more @ carried.T)
        return replace(done, gram=done.gram + lacking), lacking, w * each

    def _settled(
        self, begun: _Begun, frame: Frame, done: FisherRound, basis: Array, counts: Array
    ) -> tuple[Array, NDArray[Any]]:
        """The last step (k,), in the space of `basis`, and the change of A on its way (k, k).

        Of the logit, too: where a level's outcome is rare the line before lags. A step in first order with the information there is
        then short and looks surer than it is. counts: how many records each made point stands for, with their weights.
        """
        own = done.within(basis)
        u = begun.points @ frame.matrix @ basis
        eta = begun.points @ frame.line
        delta, change = settled(own.gram, own.cross, own.solved, u, eta, counts, self.family)
        return basis @ delta, basis @ change @ basis.T

    def _at(self, rows: _Map, frame: Frame, alpha: float, bound: float) -> _Map:
        """The map at a line, of the family as it is cut by then."""
        return replace(rows, family=self.family).at(frame, alpha, bound)

    def _ends(self, begun: _Begun, frame: Frame, alpha: float) -> tuple[Array, Array]:
        """How long scores, and records, at the ends of each feature's bounds are there, (k - 1,) each."""
        rows = self._at(FisherRows(self.design), frame, alpha, 1.0)
        return lengths_at_ends(self.design, rows, *begun.features)

    def _of_counts(self, begun: _Begun, frame: Frame, alpha: float, bound: float) -> dict[str, NDArray[Any]]:
        """Public numbers of counts alone: where they are cut, and what scores at the ends of bounds miss in the last round."""
        if not isinstance(self.family, Counts):
            return {}
        rows = self._at(FisherRows(self.design), frame, alpha, bound)
        missed = missed_at_ends(self.design, rows, *begun.features, begun.moments)
        return {"cut": np.array([self.family.cut]), "missed": missed}

    def _bound(
        self, frame: Frame, alpha: float, gram: Array, mu: float, records: float, ends: tuple[float, float]
    ) -> Bound:
        planned = self.plan.statistic("leverage")
        assert isinstance(planned, Histogram) and isinstance(planned.map, InformationIndices)
        (cells,) = self.source.aggregate(replace(planned, map=self._at(planned.map, frame, alpha, 1.0)))
        # as many records by weight, as if weights did not hang together with features
        counts, own = self.meter.draw("leverage", cells).decode() * self.weighing.mean, self.weighing
        # means of counts grow so fast that far records miss them where the model is wrong: fewer count less, at up to 1.4 times the width
        near = 2.0 if isinstance(self.family, Counts) else 1.1
        return Sizes(
            counts,
            planned.map.edges,
            self._sd("leverage") * own.mean,
            gram,
            alpha,
            mu,
            records,
            self.family.scale / own.heavy,
            near,
            ends,
        ).bound()

    def _round(
        self, name: str, frame: Frame, alpha: float, bound: float, *, apart: bool = True, excess: bool = False
    ) -> tuple[FisherRound, Noisy]:
        """One step's sums, and in the same pass the excess."""
        planned = self.plan.statistic(name)
        assert isinstance(planned, FisherSum)
        sums = FisherSum(replace(self._at(planned.map, frame, alpha, bound), apart=apart))
        if excess:
            beyond = self.plan.statistic("excess")
            assert isinstance(beyond, Total) and isinstance(beyond.map, Excess)
            both = SumAndExcess(sums, self._at(beyond.map, frame, alpha, bound))
            (joint,) = self.source.aggregate(both)
            total, far = both.split(joint)
            noisy = self.meter.draw(name, total)
            self.meter.draw("excess", far)
        else:
            (total,) = self.source.aggregate(sums)
            noisy = self.meter.draw(name, total)
        return FisherRound.decoded(noisy, sums.map), noisy


@dataclass(frozen=True, eq=False)
class _Begun:
    """The frame to start from, second moments of z per record (k, k), and made records (points, k)."""

    frame: Frame
    moments: Array
    points: Array
    family: Family

    @property
    def features(self) -> tuple[Array, Array]:
        """Means and SDs of the features, (k - 1,) each."""
        mean = self.moments[0, 1:]
        return mean, np.sqrt(np.maximum(np.diag(self.moments)[1:] - mean**2, 1e-12))

    def information(self, records: float) -> Array:
        """What A is expected to be at the start, from the made records."""
        u = self.points @ self.frame.matrix
        h = self.family.information(self.points @ self.frame.line)
        return np.asarray((u.T * h) @ u * (records / len(u)))


def _root(matrix: Array, *, inverse: bool = False) -> Array:
    """The symmetric root of a matrix (k, k), or of its inverse, without directions in which it is not positive."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    least = max(float(values[-1]), 0.0) * _NONE
    known = values > least
    size = np.sqrt(np.where(known, values, 1.0))
    return np.asarray((vectors * np.where(known, 1 / size if inverse else size, 0.0)) @ vectors.T)


def _moved(frame: Frame, delta: Array) -> Frame:
    """The frame at theta + T delta; as it was where that is beyond use."""
    theta = frame.line + frame.matrix @ delta
    return replace(frame, theta=tuple(map(float, theta))) if (np.abs(theta) <= FAR).all() else frame
