"""The figures of a release of Fisher scoring: its last round in units of the data, and what may move each coefficient unseen.

A formula with an outcome of two values, and the way from the scaled units of the fit to log-odds in the data's units.

The covariance of a one-step estimate from released sums, and what is known of its noise.

theta = theta_K + T delta, delta = A^-1 g. With SDs sA (diagonal) and sg of the noise of A and g and sB of the meat's,

    G = (sg^2 + sA^2 |delta|^2/2) I + (sA^2/2) delta delta'          noise of g less that of A delta,

    V = (A - e/4)^-1 (M + G) (A - e/4)^-1,   e = sA sqrt(2 k)        a quarter of its noise's norm is taken off A for the covariance alone.

M is the meat where the data can tell it from A/R, the information, which it is where the model holds. Let W = R A^-1/2 B A^-1/2 and dev
= W - I, of which noise makes E2 = (R^2 sB^2/2) ((tr A^-1)^2 + tr A^-2) in the squared Frobenius norm. Eigenvalues of dev above 2
sqrt(E2/k) have full weight and others (1 - E2/|dev|^2)_+. Negative ones count as 0, so that noise never makes an interval shorter than
the model's. The variance of counts is often a multiple of the model's: theirs is told from max(tr W/k, 1) A/R in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._special import stdtrit
from confide.errors import PlanError
from confide.methods.regression.evidence.sandwich import ReleaseReader, correlations
from confide.methods.regression.glm.clipping import (
    AT_RISK,
    TAIL_FEATURES,
    TAIL_RESIDUAL,
    beyond,
    missing,
)
from confide.methods.regression.glm.draw import FisherRound, linear_round, made_points, scored
from confide.methods.regression.glm.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.glm.fisher_rows import FisherRows, FisherScores, InformationIndices
from confide.methods.regression.glm.noise_floor import UnidentifiedLevels, levels_of
from confide.methods.regression.sums.whitened_rows import Frame
from confide.noise import keyed_generator
from confide.results.pages.table import sampling_alone
from confide.schema import Categorical, Integer, ModelMatrix, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import column_named, sides
from confide.sums.clusters.cluster_covariance import TruncationBias, independent_of
from confide.sums.coding import BOUND, Box


def binary_design(
    formula: str, schema: Schema, term_bounds: Mapping[str, tuple[float, float]] | None = None
) -> tuple[ModelMatrix, tuple[str, str]]:
    """The design and the two levels of its outcome, the base first.

    The outcome is a categorical column of two levels, or a number between 0 and 1. Of a column the second level counts as 1 (the design
    then holds it as Integer(0, 1), which has the same codes). Of a number values from one half on count as 1. Raises `PlanError` for
    any other.
    """
    name = column_named(sides(formula)[0], schema.names) if isinstance(formula, str) else ""
    column = schema.columns.get(name)
    levels = ("0", "1")
    if isinstance(column, Categorical):
        if len(column.levels) != 2:
            raise PlanError(
                f"the outcome {name!r} of {cut(formula)!r} has {len(column.levels)} levels. A logistic regression needs two",
                "put a column "
                "into the data that says whether a record has the level, and declare it as cf.Integer(0, 1)",
            )
        levels = (column.levels[0], column.levels[1])
        columns = {key: Integer(0, 1) if key == name else own for key, own in schema.columns.items()}
        schema = schema.with_columns(columns)
    design = ModelMatrix.of(formula, schema, term_bounds=term_bounds)
    response = design.response
    if (response.low, response.high) != (0.0, 1.0):
        raise PlanError(
            f"the outcome {response.name!r} of {cut(formula)!r} lies between {response.low:g} and {response.high:g}. A logistic regression "
            "needs 0 and 1",
            "declare Integer(0, 1), or Categorical with the two labels as levels where the data "
            "hold labels. For a count ask for a Poisson regression, cf.poisson_regression. Of any other "
            "number put a 0/1 column into the data, for example whether it is above a limit",
        )
    if not design.names:
        raise PlanError(f"the formula {cut(formula)!r} has no coefficient", 'write "y ~ a", or "y ~ 1"')
    return design, levels


def log_odds(design: ModelMatrix, box: Box | None = None) -> Array:
    """J: coefficients in the data's units are J theta, in the order of `design.names`.

    box: where z was measured from, the public bounds when not given; the design has an intercept.
    """
    middle, half = (Box.of(design) if box is None else box).arrays
    matrix = np.diag(np.concatenate([[1.0], 1 / half]))
    matrix[0, 1:] = -middle / half
    return matrix


# Eigenvalues of the deviation are believed from so many sds of its noise on.
_BELIEVED = 2.0
# The part of the norm of A's noise that is taken off A for the covariance.
_LUCK = 0.25
# The noise of A may move a coefficient in second order by at most this part of what moves it in first order.
_USABLE = 0.33
# Of units with several rows: the least part of the model's meat, and Student's t below so many degrees of freedom.
_FLOOR, _LEAST_DF = 0.7, 3.0


@dataclass(frozen=True, eq=False)
class FisherSandwich:
    """The last round, the meat (k, k) with the SD of its noise on the diagonal, and rows C (k, k): coefficients are C delta + shift (k,).

    scale : float
        R of the family; where the model holds the meat is A/R.
    moved : array, optional
        delta where it is not A^-1 g, since A is the information at the new line (`noise_floor`).
    dispersed : bool
        Whether the meat is told from its mean size, tr W/k, instead.
    below : float
        How far below the model's the meat may be, -0.75 for a quarter: units whose rows are many and hardly correlated.
    units : int, optional
        How many the meat is a sum over where several rows of each count. The meat is then used as it is, at least 0.7 of the model's,
        and its noise is in the degrees of freedom.
    """

    last: FisherRound
    meat: Array
    sd_meat: float
    rows: Array
    shift: Array
    scale: float = 1.0
    moved: Array | None = None
    dispersed: bool = False
    below: float = 0.0
    units: float | None = None

    def within(self, basis: Array) -> FisherSandwich:
        """The same in a space of fewer directions, of which `basis` (k, fewer) is an orthonormal basis: noise is as it was."""
        moved = None if self.moved is None else basis.T @ self.moved
        meat = basis.T @ self.meat @ basis
        return replace(self, last=self.last.within(basis), meat=meat, rows=self.rows @ basis, moved=moved)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh((self.last.gram + self.last.gram.T) / 2)
        return values, vectors

    @property
    def least(self) -> float:
        """The least eigenvalue of A."""
        return float(self._eigen[0][0])

    @property
    def delta(self) -> Array:
        """The last step, (k,)."""
        return self.last.solved if self.moved is None else self.moved

    @property
    def estimates(self) -> Array:
        """C delta + shift, (k,)."""
        return self.rows @ self.delta + self.shift

    @property
    def bread(self) -> Array:
        """A^-1, (k, k)."""
        values, vectors = self._eigen
        return np.asarray((vectors / values) @ vectors.T)

    @cached_property
    def dispersion(self) -> float:
        """tr W/k, at least 1: how many times as large as the model's the meat is."""
        values, vectors = self._eigen
        if not len(values):
            return 1.0
        inverse = vectors / np.sqrt(values)
        return max(self.scale * float(np.einsum("ij,ik,kj->", inverse, self.meat, inverse)) / len(values), 1.0)

    @cached_property
    def middle(self) -> Array:
        """M, (k, k)."""
        values, vectors = self._eigen
        if not len(values):  # no direction is known well enough to be answered
            return np.zeros((len(vectors), len(vectors)))
        root, inverse = vectors * np.sqrt(values), vectors / np.sqrt(values)
        whole = self.scale * (inverse.T @ self.meat @ inverse)
        if self.units is not None:
            sizes, axes = np.linalg.eigh((whole + whole.T) / 2)
            return np.asarray(root @ (axes * np.maximum(sizes, _FLOOR)) @ axes.T @ root.T / self.scale)
        base = self.dispersion if self.dispersed else 1.0
        deviation = whole / base - np.eye(len(values))
        noise = (
            (self.scale * self.sd_meat / base) ** 2
            / 2
            * (float((1 / values).sum()) ** 2 + float((1 / values**2).sum()))
        )
        size = float((deviation**2).sum())
        known = max(1 - noise / size, 0.0) if size > 0 else 0.0
        found, axes = np.linalg.eigh((deviation + deviation.T) / 2)
        sd = np.sqrt(noise / len(found))
        found = np.where(found > _BELIEVED * sd, found, known * found)
        # below the model's only by what is beyond the noise
        found = np.where(found < 0, np.minimum(found + sd, 0.0), found)
        spread = base * (np.eye(len(found)) + (axes * np.maximum(found, self.below)) @ axes.T)
        return np.asarray(root @ spread @ root.T / self.scale)

    @property
    def noise(self) -> Array:
        """G, (k, k)."""
        half, delta = self.last.sd_gram**2 / 2, self.delta
        size = self.last.sd_cross**2 + half * float(delta @ delta)
        return np.asarray(size * np.eye(len(delta)) + half * np.outer(delta, delta))

    @property
    def _spread(self) -> Array:
        """C (A - e/4)^-1."""
        values, vectors = self._eigen
        return np.asarray(self.rows @ (vectors / (values - _LUCK * self.last.norm)) @ vectors.T)

    @property
    def covariance(self) -> Array:
        """Of the coefficients, (k, k): sampling and privacy noise."""
        whole = self._spread @ (self.middle + self.noise) @ self._spread.T
        return np.asarray((whole + whole.T) / 2)

    @property
    def noise_variance(self) -> Array:
        """The part of each variance that is privacy noise, (k,)."""
        return np.asarray(np.diag(self._spread @ self.noise @ self._spread.T))

    def alone(self, factor: float = 1.0, light: float = 1.0) -> Array:
        """The sampling part of each variance without anything that is allowed for because of noise, (k,).

        factor: of the meat; light: of the model's.
        """
        values, _ = self._eigen
        if not len(values):
            return np.zeros(len(self.rows))
        k, model = self.rows @ self.bread, light * (self.dispersion if self.dispersed else 1.0) / self.scale
        sums = self.meat, model * self.last.gram, self.middle
        robust, classical, most = (np.einsum("ij,jk,ik->i", k, each, k) for each in sums)
        alone = sampling_alone(factor * robust, factor * self.sd_meat * (k**2).sum(axis=1), classical)
        return np.asarray(np.minimum(alone, most))

    @property
    def sampling_df(self) -> float:
        """Degrees of freedom that sampling alone would leave: those of the units."""
        return max((self.units or 0.0) - 1.0, 1.0)

    @property
    def df(self) -> Array:
        """Degrees of freedom of each variance where the meat is used as it is, (k,): by its noise and its units (Satterthwaite 1946)."""
        spread = self._spread
        sampling = np.diag(spread @ self.middle @ spread.T)
        whole = (self.sd_meat * (spread**2).sum(axis=1)) ** 2 + 2 * sampling**2 / self.sampling_df
        return np.asarray(np.maximum(2 * np.diag(self.covariance) ** 2 / whole, _LEAST_DF))

    @property
    def travelled(self) -> float:
        """S = |delta| sqrt((delta' A delta - tr A^-1 (M + G))_+): how far beyond its noise the last step went, in units where about 4
        says that one step was not enough.
        """
        delta = self.delta
        own = float(delta @ self.last.gram @ delta) - float(np.trace(self.bread @ (self.middle + self.noise)))
        return float(np.linalg.norm(delta) * np.sqrt(self.scale * max(own, 0.0)))

    @property
    def demand(self) -> Array:
        """How many times as many records, or how much a mu, each coefficient needs: above 1 it cannot be had, (k,).

        By how much the noise of A moves it in second order, per first order, over what may be.
        """
        values, vectors = self._eigen
        u = self.rows @ (vectors / np.sqrt(values)) @ vectors.T
        u = u / np.maximum(np.linalg.norm(u, axis=1), 1e-300)[:, None]
        h = np.einsum("ij,jk,ik->i", u, self.bread, u)
        return np.asarray(self.last.sd_gram * np.sqrt(h * float((1 / values).sum()) / 2 + h**2 / 2) / _USABLE)

    def correlation(self) -> Array:
        """Correlations of the coefficients where the model holds, (k, k)."""
        return correlations(self.rows @ self.bread @ self.rows.T)


# The meat of units with many rows that hardly hang together may be a quarter of the model's.
_UNIT_LEAST = -0.75
# Made points that tell how many records lie where the line says more than this part of the largest count.
_MANY, _FULL = 12_000, 0.5
# The mean size of what is normal, in sds.
_MEAN_SIZE = sqrt(2 / pi)
# How far above its noisy number the excess may be.
_ONE_SIDED = 1.645


@dataclass(frozen=True, eq=False)
class FisherFigures(ReleaseReader):
    """One release read with one set of options. levels: of the outcome, the base first; none of counts.

    weighted: whether the estimand is that of the weighted records, of which no bias is asked.
    """

    levels: tuple[str, str] | None
    family: Family = LOGIT
    weighted: bool = False

    # what was released ------------------------------------------------------------------------------------------------

    @cached_property
    def units(self) -> Array:
        """J: coefficients in the data's units are J theta."""
        return log_odds(self.design, self.box)

    @cached_property
    def last(self) -> FisherRound:
        """The last round, in units of u."""
        return scored(self.design, self.release)

    @cached_property
    def held(self) -> UnidentifiedLevels:
        """The levels that the last step could not tell."""
        levels = levels_of(self.design, self.box)
        return UnidentifiedLevels.of(
            self.last.gram, self.last.sd_gram, self._public("transform"), self._public("moments"), levels
        )

    @cached_property
    def sandwich(self) -> FisherSandwich:
        """The sums in the directions that can be told, and the coefficients in units of the data."""
        return self._whole.within(self.held.basis)

    @cached_property
    def _whole(self) -> FisherSandwich:
        bound = float(self._public("bound")[0])
        rows, meat = FisherScores(self.design, bound=bound), self.release["meat"]
        # of units, in steps of as many times the bound as rows of each count
        most = 1.0 if self.counting is None else self.counting.spread
        units, beyond = self.units, TruncationBias.factor_of(self.release)
        last = replace(self.last, gram=self.last.gram + self._public("change"))
        step = np.linalg.solve(self._public("transform"), self._public("meat_line") - self._public("line"))
        moved = np.asarray(step, dtype=np.float64)
        return FisherSandwich(
            last=last,
            meat=meat.decode()[: len(last.gram), : len(last.gram)] * beyond * (most / rows.steps) ** 2,
            sd_meat=beyond * (most * bound) ** 2 * sqrt(meat.variance) / BOUND,
            rows=units @ self._public("transform"),
            shift=units @ self._public("line"),
            scale=self.scored_family.scale,
            moved=moved,
            dispersed=isinstance(self.family, Counts),
            below=_UNIT_LEAST if self.counting is not None and most == 1 else 0.0,
            units=self._independent if most > 1 or self.design.schema.cluster is not None else None,
        )

    @cached_property
    def scored_family(self) -> Family:
        """The family as it was scored: of counts with their cut."""
        return (
            replace(self.family, cut=float(self._public("cut")[0])) if isinstance(self.family, Counts) else self.family
        )

    @property
    def _records(self) -> float:
        return max(super()._records, 1.0)

    @property
    def _mass(self) -> float:
        """The sum of the weights of records: without a design as many as there are."""
        return self._records

    @property
    def _df(self) -> Any:
        if self.sandwich.units is not None:
            return self.sandwich.df
        return max(self._independent - len(self.design.names), 3.0)

    @property
    def _independent(self) -> float:
        """How many terms the meat is a sum of that may be taken as independent."""
        found = None if self.counting is None else independent_of(self.release, self._records)
        return self._records if found is None else found.units

    # which coefficients are answered ------------------------------------------------------------------------------------

    @property
    def far(self) -> list[int]:
        """The places, among the terms, of features whose bounds reach too far."""
        # the weighted line is that of the records as they count
        return [] if self.weighted else self._reaching

    @cached_property
    def cut_bias(self) -> Array:
        """A bound on what counts above the cut may move each coefficient, (k,)."""
        own = self.scored_family
        share = missing(self.release, self.design, own, self._records) if isinstance(own, Counts) else 0.0
        return np.asarray(TAIL_FEATURES * share * self._lengths)

    @cached_property
    def full_bias(self) -> Array:
        """Counts: what down-weighted records move each coefficient where the fit says more than half of the largest count, (k,).

        There a mean that stops growing, or grows faster, is off by as much as the residual can be, and extreme records are off in one
        direction. They are too few for any noisy number; how many there are comes from made points of normal features.
        """
        own = self.scored_family
        if self.weighted or not isinstance(own, Counts):
            return np.zeros(len(self._lengths))
        points, line, transform = self._simulated, self._public("meat_line"), self._public("transform")
        points = points[own.information(points @ line) > _FULL]
        _, w = self._rows_at(line).of_points(points)
        missed = ((1 - w) * own.most(points @ line)) @ (points @ transform) * (self._records / _MANY)
        return np.asarray(np.abs(self.sandwich.rows @ self.sandwich.bread @ self.held.basis.T @ missed))

    @cached_property
    def _simulated(self) -> Array:
        """Points with the noisy moments of the features, (points, k)."""
        generator = keyed_generator(self.release.drawn_sha256, "full counts")
        return made_points(self.design, self.box, self._public("moments"), generator, _MANY)

    def _rows_at(self, line: Array) -> FisherRows:
        """The map at a line, with the bound of the last round."""
        frame = Frame.of(self.box, self._public("transform"), line, 1.0)
        alpha, bound = (float(self._public(name)[0]) for name in ("alpha", "bound"))
        return replace(FisherRows(self.design), family=self.scored_family).at(frame, alpha, bound)

    @cached_property
    def bias(self) -> Array:
        """A bound on the bias of each coefficient, (k,): from down-weighted records, and from levels held at the line before."""
        return self._weighted + self._from_held

    @cached_property
    def _from_held(self) -> Array:
        """What records of levels that are held may move each coefficient, (k,)."""
        if not self.held.levels:
            return np.zeros(len(self.design.terms) + 1)
        counts, sds = self._held_counts
        weights = np.array([one.weights for one in self.held.levels])
        # moments whose small eigenvalues were raised above their noise hold more records of a rare level, and T is made of them
        counts = np.maximum(counts, weights @ self._public("moments")[0] * self._mass)
        return self.held.bias(self._lengths, counts, sds, span=self.family.span)

    @cached_property
    def _held_counts(self) -> tuple[Array, Array]:
        """About how many records the levels held have, and the SDs of the noise in it, (levels,) each."""
        if not self.held.levels:
            return np.empty(0), np.empty(0)
        return self._records_of(np.array([one.weights for one in self.held.levels]))

    def _records_of(self, weights: Array) -> tuple[Array, Array]:
        """The same of levels with these weights (levels, k)."""
        linear = linear_round(self.design, self.release, self.box)
        scale = self._mass / linear.count
        sds = linear.sd_gram * np.sqrt((weights[:, 0] ** 2 + (weights**2).sum(axis=1)) / 2) * scale
        return weights @ linear.gram[0] * scale, sds

    @property
    def _held_persons(self) -> tuple[Array, Array]:
        """The same in records of the mean weight."""
        counts, sds = self._held_counts
        each = self._mass / self._records
        return counts / each, sds / each

    @cached_property
    def _lengths(self) -> Array:
        """|C A^-1| of each coefficient, (k,): what a score of length one moves it by, at most."""
        return np.asarray(np.linalg.norm(self.sandwich.rows @ self.sandwich.bread, axis=1))

    @cached_property
    def _weighted(self) -> Array:
        """A bound on what down-weighted records may move each coefficient, (k,)."""
        if self.weighted:
            return np.zeros(len(self.design.terms) + 1)
        seen, hidden = self._excess
        each = float(self._public("bound")[0]) * self._lengths
        counted = np.where(self._counted, each * np.maximum(self._beyond, 1.0) * seen, 0.0)
        # others move with these as far as they hang together, by what was seen
        half = np.maximum(self._half, 1e-300)
        along = (np.abs(self.sandwich.correlation()) * counted / half).max(axis=1) * half
        # of counts that are at risk from the ends of bounds alone a record misses what is said, which may be less than the bound
        missed = np.where(self._counted, np.maximum(self._beyond, 1.0), self._beyond)
        odd = each * self.odd * max(self._most_missed, 1.0) if self.odd else 0.0 * each
        if self._far_out.any():
            # far records are mostly those of such features, and move slopes as they hang together with these
            odd[1:] = 0.0
        return np.where(self._counted, counted, along + odd) + each * missed * TAIL_RESIDUAL * hidden

    @cached_property
    def odd(self) -> float:
        """Counts: how far the excess is above that of records which the line predicts, and above what noise may add."""
        return max(self._unlike - self._excess[1], 0.0) if isinstance(self.family, Counts) else 0.0

    @property
    def _unlike(self) -> float:
        return max(self._excess[0] - self._own_excess, 0.0)

    @property
    def _excess(self) -> tuple[float, float]:
        """The noisy excess, and what its noise may hide."""
        excess = self.release["excess"]
        return max(float(excess.decode()[0]), 0.0) / BOUND, _ONE_SIDED * sqrt(excess.variance) / BOUND

    @cached_property
    def _at_risk(self) -> NDArray[np.bool_]:
        """The coefficients of features whose bounds reach far beyond most records, or to where scores are down-weighted, (k,)."""
        return self._far_out | (self._beyond > 0)

    @cached_property
    def _far_out(self) -> NDArray[np.bool_]:
        return np.array([False, *(self.reach.get(j, 0.0) > AT_RISK for j in range(len(self.design.terms)))])

    @property
    def _counted(self) -> NDArray[np.bool_]:
        """Those of which all of the excess is in the interval, (k,).

        The extreme records of counts within other bounds are mostly the model's, as means grow fast. What is seen beyond that is in the
        interval, and what noise hides at the ends of bounds. The table names what is assumed of the others and its price
        (`worst_bias`).
        """
        return self._far_out if isinstance(self.family, Counts) else self._at_risk

    @cached_property
    def _beyond(self) -> Array:
        """How many times the bound a record at the ends of a feature's bounds may miss of its score, (k,).

        0 where that is not so, or the feature is at risk without it.
        """
        if isinstance(self.family, Counts):
            missed = self._public("missed")
        else:
            missed = beyond(self._public("ends"), float(self._public("bound")[0]))
        return np.concatenate([[0.0], missed])

    @cached_property
    def worst_bias(self) -> Array:
        """Counts: the price of the assumption that residuals of down-weighted records are not all in one direction, (k,).

        It is what these records would move each coefficient, were the residuals of as many as noise may hide all against the fit in one
        direction. Each then misses what one at the ends of bounds does.
        """
        return self._one_sided(self._excess[0])

    @cached_property
    def odd_bias(self) -> Array:
        """The same of those that are more, or farther off, than the line says, and of as many as noise may hide, (k,)."""
        return self._one_sided(self._unlike)

    def _one_sided(self, seen: float) -> Array:
        own = self._lengths
        if self.weighted or not isinstance(self.family, Counts):
            return np.zeros(len(own))
        most = seen * max(self._most_missed, 1.0) + self._excess[1] * self._most_missed
        return np.where(self._far_out, 0.0, float(self._public("bound")[0]) * most * own)

    @cached_property
    def _most_missed(self) -> float:
        """How many times the bound one record of counts misses at most.

        It is one at the ends of bounds, or one of the made points. These are beyond the bound, up to which a record is counted, only
        along features at risk.
        """
        rows, (_, most, square) = self._made_sizes
        made = rows.missed(most, square)
        return max(float(self._beyond.max()), min(float(made.max()), 1.0))

    @cached_property
    def _made_sizes(self) -> tuple[FisherRows, tuple[Array, Array, Array]]:
        """The map of the last round, and N, m and |u|^2 of the made points there."""
        rows = self._rows_at(self._public("line"))
        return rows, rows.sizes_of(self._simulated)

    @cached_property
    def _own_excess(self) -> float:
        """About what the excess is of records whose variance is the mean times what the meat says, and of those that `full_bias` pays for.

        How much one misses is that of made points with normal features. How many are down-weighted is their number, or that of the
        noisy histogram, whichever is larger.
        """
        own, (rows, (size, most, square)) = self.scored_family, self._made_sizes
        missed = np.minimum((1 - rows.split(size, most, square)[1]) * most * np.sqrt(square) / rows.bound, 1.0)
        h = own.information(self._simulated @ self._public("line"))
        off = np.where(
            h > _FULL,
            1.0,
            np.minimum(_MEAN_SIZE * np.sqrt(self.sandwich.dispersion * h / own.scale) / most, 1.0),
        )
        each = self._records / _MANY
        cells, edges = self.release["leverage"].decode(), InformationIndices(self.design).edges
        far = float(cells[1 + int(np.searchsorted(edges, rows.bound**2 * (1 - 1e-9))) :].sum())
        return float(off @ missed) * each * max(far / max(float((size > rows.bound).sum()) * each, 1.0), 1.0)

    @cached_property
    def _half(self) -> Array:
        """Margins of error of 95% intervals before the bias, (k,)."""
        return np.asarray(-stdtrit(self._df, 0.025) * np.sqrt(np.maximum(np.diag(self.sandwich.covariance), 0.0)))
