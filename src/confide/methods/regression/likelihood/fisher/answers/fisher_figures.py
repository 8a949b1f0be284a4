"""The figures of a release of Fisher scoring: its last round in units of the data, and what may move each coefficient unseen."""

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
from confide.aggregates.clusters.beyond import Beyond
from confide.aggregates.clusters.cluster_meat import independent_of
from confide.aggregates.lines.rows import BOUND
from confide.aggregates.lines.whitened_rows import Frame
from confide.aggregates.scores.fisher_families import LOGIT, Counts, Family
from confide.aggregates.scores.fisher_rows import FisherRows, FisherScores, InformationIndices
from confide.methods.regression.evidence.far_bounds import far
from confide.methods.regression.evidence.released_rounds import ReleasedRounds
from confide.methods.regression.likelihood.fisher.answers.fisher_sandwich import FisherSandwich
from confide.methods.regression.likelihood.fisher.fisher_bound import TAIL_RESIDUAL
from confide.methods.regression.likelihood.fisher.fisher_counts import TAIL_FEATURES, missing
from confide.methods.regression.likelihood.fisher.fisher_ends import AT_RISK, at_risk, beyond, reaches
from confide.methods.regression.likelihood.fisher.fisher_hidden import Held, levels_of
from confide.methods.regression.likelihood.fisher.fisher_round import FisherRound, linear_round, scored
from confide.methods.regression.likelihood.fisher.fisher_start import made_points
from confide.methods.regression.likelihood.logistic_design import log_odds
from confide.noise import keyed_generator

__all__ = ["AT_RISK", "FisherFigures"]


# The meat of units with many rows that hardly hang together may be a quarter of the model's.
_UNIT_LEAST = -0.75
# Made points that tell how many records lie where the line says more than this part of the largest count.
_MANY, _FULL = 12_000, 0.5
# The mean size of what is normal, in sds.
_MEAN_SIZE = sqrt(2 / pi)
# How far above its noisy number the excess may be.
_ONE_SIDED = 1.645


@dataclass(frozen=True, eq=False)
class FisherFigures(ReleasedRounds):
    """One release read with one question. levels: of the outcome, the base first; none of counts. weighted: whether the line is that of
    the weighted records, of which no bias is asked.
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
    def held(self) -> Held:
        """The levels that the last step could not tell."""
        levels = levels_of(self.design, self.box)
        return Held.of(self.last.gram, self.last.sd_gram, self._public("transform"), self._public("moments"), levels)

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
        units, beyond = self.units, Beyond.factor_of(self.release)
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

    @cached_property
    def reach(self) -> Mapping[int, tuple[float, float]]:
        """By place among the terms of more than two values: how far its public bounds lie from its private mean in private sds, and from
        the middle of its private range in half-widths of sqrt(3) sds; without ranges both are from the moments.
        """
        mean, sd = self._public("feature_mean"), self._public("feature_sd")
        return reaches(self.design, self.box, mean, sd, private="ranges" in self.release.statistics)

    @cached_property
    def far(self) -> tuple[int, ...]:
        """The places, among the terms, of features whose bounds lie too far out for what their histograms show."""
        # the weighted line is that of the records as they count
        if self.weighted:
            return ()
        # a record counts less from some length on, whatever its residual: no reach is safe for that
        return tuple(j for j, (sds, _) in self.reach.items() if far(sds, 0.0, self._short(j)))

    @cached_property
    def cut_bias(self) -> Array:
        """A bound on what counts above the cut may move each coefficient, (k,)."""
        own = self.scored_family
        share = missing(self.release, self.design, own, self._records) if isinstance(own, Counts) else 0.0
        return np.asarray(TAIL_FEATURES * share * self._lengths)

    @cached_property
    def full_bias(self) -> Array:
        """Counts: what records that count less move each coefficient where the line says more than half of the largest count, (k,).

        There a mean that stops growing, or grows faster, is off by as much as the residual can be, and far records are off in one
        direction. They are too few for any noisy count; how many there are is taken from made points of normal features.
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
        """A bound on the bias of each coefficient, (k,): from records that count less, and from levels held at the line before."""
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
        """About how many records the levels held have, and the sds of the noise in it, (levels,) each."""
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
        """A bound on what records that count less may move each coefficient, (k,)."""
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
        """The coefficients of features whose bounds reach far beyond where most records are, or to where scores count less, (k,)."""
        return self._far_out | (self._beyond > 0)

    @cached_property
    def _far_out(self) -> NDArray[np.bool_]:
        return np.array([False, *(at_risk(*self.reach.get(j, (0.0, 0.0))) for j in range(len(self.design.terms)))])

    @property
    def _counted(self) -> NDArray[np.bool_]:
        """Those of which all of the excess is in the interval, (k,). The far records of counts within other bounds are mostly the
        model's own, as means grow fast: what is seen beyond that is in the interval, and what noise hides at the ends of bounds; the table
        names what is assumed of the others and its price (`worst_bias`).
        """
        return self._far_out if isinstance(self.family, Counts) else self._at_risk

    @cached_property
    def _beyond(self) -> Array:
        """How many times the bound a record at the ends of a feature's bounds may miss of its score, (k,); 0 where that is not so, or the
        feature is at risk without it.
        """
        if isinstance(self.family, Counts):
            missed = self._public("missed")
        else:
            missed = beyond(self._public("ends"), float(self._public("bound")[0]))
        return np.concatenate([[0.0], missed])

    @cached_property
    def worst_bias(self) -> Array:
        """Counts: what records that count less would move each coefficient, were the residuals of as many as noise may hide all against the
        line in one direction, each missing what one at the ends of bounds does, (k,): the price of the assumption that they are not.
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
        """How many times the bound one record of counts misses at most: one at the ends of bounds, or one of the made points, which are
        beyond the bound, up to which a record is counted, only along features at risk.
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
        How much one misses is that of made points with normal features; how many count less is their number, or that of the noisy
        histogram, whichever is larger.
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
        """Half-widths of 95 % intervals before the bias, (k,)."""
        return np.asarray(-stdtrit(self._df, 0.025) * np.sqrt(np.maximum(np.diag(self.sandwich.covariance), 0.0)))
