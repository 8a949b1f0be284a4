"""From a release to a survey's table: marginals put together, meats in the units of the estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.core import Noisy, Release
from confide.methods.tables.draw import Margins
from confide.methods.tables.intervals import MeanSums
from confide.methods.tables.layout import Layout
from confide.methods.tables.reading import WeightedSums
from confide.methods.tables.survey.draw import KEPT, MEAT, WEIGHTS, SurveyPath, facts_of, pooled, squares_of
from confide.methods.tables.survey.estimand import Estimand, Sums
from confide.methods.tables.survey.results import Estimated, SurveyTable
from confide.results.pages.content import Flag
from confide.results.pages.table import sampling_alone
from confide.schema import Categorical
from confide.sums.cells.weighted_cells import DISTANCE, Cap, CappedWeight, ended_words
from confide.sums.clusters.cluster_covariance import TruncationBias, fewest
from confide.sums.coding import BITS

_CAPPED = Flag(
    "weights_trimmed",
    "weights above the threshold that the head states were set to it, which moves estimates a little; the intervals are wider for it",
)
# A cut that leaves out more of the squares than this is not made up for: the interval is flagged by its degrees of freedom anyway.
_MOST_LOST = 6.0
# Sds of noise that may hide how far values spread, an error of 5 %.
_LIKELY = 1.645
# Squares that counted are taken to be at least so many sds of their noise.
_UNSEEN = 1.5


def survey_table(path: SurveyPath, release: Release, inference: str) -> SurveyTable:
    """The table of a release."""
    return _Reading.of(path, release).table(inference)


@dataclass(frozen=True, eq=False)
class _Reading:
    path: SurveyPath
    release: Release
    layout: Layout
    margins: Margins
    cap: Cap
    persons: float

    @classmethod
    def of(cls, path: SurveyPath, release: Release) -> _Reading:
        cap = Cap(*(float(v) for v in release.public["cap"])) if "cap" in release.public else None
        layout = path.capped(None if cap is None else cap.weight)
        margins = path.margins(release.statistics, layout)
        own = cls(path, release, layout, margins, cap or Cap(layout.heaviest, 0.0, 0.0), 0.0)
        total = float(own.sums(Estimand(path.kind, layout, ())).persons[0])
        return replace(own, cap=cap or own.cap, persons=max(total if cap is None else cap.persons, 1.0))

    def sums(self, of: Estimand) -> Sums:
        return self.path.reading(of, self.margins, self.release.plan.relation)

    def table(self, inference: str) -> SurveyTable:
        estimands = self.path.estimands(self.layout)
        part = 0.0 if inference == "dataset" else 1.0
        found = {(of.axes, of.column): self._estimated(of, part) for of in estimands}
        rows = self.path.method.survey_rows(self.layout, self.release.plan.relation)
        flags: tuple[str, ...] = (_CAPPED,) if self.cap.lost > 0 else ()
        if self._ended:
            flags = (Flag("weight_bound_too_wide", self._ended), *flags)
        columns = tuple(dict.fromkeys(of.column for of in estimands))
        table = SurveyTable.read(
            self.release,
            self.layout,
            self.margins,
            inference,
            estimated=found,
            names_of=tuple(next(of.name for of in estimands if of.column == column) for column in columns),
            verb=self.path.kind,
            design=self.path.design,
            one=float(rows.count) if rows is not None else (1.0 if self.layout.weight is None else float(1 << BITS)),
            lost=self.cap.lost,
            persons=self.persons,
            alone=tuple(self._alone(column) for column in columns),
            shown_marginals=tuple(dict.fromkeys(of.axes for of in estimands)),
        )
        table._put("flags", (*table.flags, *flags))
        return table

    @property
    def _ended(self) -> str:
        weight = self.layout.weight
        if WEIGHTS not in self.release.statistics or not isinstance(weight, CappedWeight):
            return ""
        return ended_words(self.release[WEIGHTS], weight)

    def _estimated(self, of: Estimand, part: float) -> Estimated:
        sums, label = self.sums(of), self.path.label(of)
        facts = facts_of(self.release.public, label)
        noisy = self.release[f"{MEAT} {label}"]
        count, strata, factor, centred = self._independent(facts["limits"])
        units = facts["scales"] / self._steps(facts["steps"], len(facts["scales"]))
        scale = np.multiply.outer(units, units)
        width = len(units)
        sampling, error = noisy.decode()[:width, :width] * scale, sqrt(noisy.variance) * np.diag(scale)
        known = None if of.base is not None or centred else self._known(of)
        if known is not None:
            # sums of scores are the totals themselves: what is left is their spread over as many PSUs or persons as were sampled
            total = np.where(np.isfinite(sums.y), sums.y, 0.0)
            sampled, sd = known
            sampling = sampling - np.multiply.outer(total, total) / sampled
            error = np.hypot(error, total**2 * sd / sampled**2)
        design = self.path.design
        factor *= (design.deff or 1.0) * (1.0 - (design.fraction or 0.0))
        factor *= self._cut_back(of, sums, facts, label)
        beyond = self._beyond(label, noisy)
        factor *= 1.0 if beyond is None else beyond.factor
        bias, unsure = self._cut_away(of, sums)
        moments = self._moments(sums) if of.kind == "means" else None
        lost = max(self.cap.over, 0.0)
        return Estimated(
            sums,
            factor * sampling,
            factor * error,
            count,
            strata,
            self._most(of, sums, count - strata, centred=centred, around=of.dense or known is not None),
            part,
            bias,
            moments,
            unsure,
            lost,
            beyond,
            self._unallowed(of, sums, np.diag(factor * sampling), factor * error, apart=centred or strata == 1),
        )

    def _unallowed(self, of: Estimand, sums: Sums, robust: Array, error: Array, *, apart: bool) -> Array | None:
        """The sampling variance without what is allowed for because of noise.

        Where noise hides M, or took PSUs of all strata together, so that their differences count too, it is that of persons who are drawn
        individually. None of ratios, of which no sums tell that. apart: whether M is within strata.
        """
        if of.kind == "ratios":
            return None
        design = self.path.design
        classical = (design.deff or 1.0) * (1.0 - (design.fraction or 0.0)) * sums.one_by_one
        alone = sampling_alone(robust, error, classical)
        return alone if apart else np.asarray(np.minimum(alone, np.maximum(classical, 0.0)))

    def _most(self, of: Estimand, sums: Sums, every: float, *, centred: bool, around: bool) -> Array:
        """The degrees of freedom that the PSUs of each cell allow, by a lower bound of how many K they are; every: those of all PSUs.

        K - 1, as in a table of the cell alone. Let M be centered within strata of n_h PSUs, k_h of them in the cell with sums alike. A
        stratum adds k_h to the expectation of M and at most k_h n_h/(n_h - 1) to half its variance. So K^2/sum k_h n_h/(n_h - 1) are left
        (Satterthwaite), fewest where the smallest strata are full.

        around: deviations from what all records have, as of shares, are largest in PSUs of the smaller part. Of a cell with more than half
        of all records in those of the others, of which the one that is in most counts.
        """
        cells, design, listed = len(sums.y), self.path.design, self.path.listed
        if design.psu is None:
            return np.full(cells, max(every, 1.0))
        name, _ = self.path.contributing(of)
        noisy, caps = self.release[name], np.asarray(self.release.public[f"caps {name}"], dtype=np.float64)
        found = fewest(noisy.decode(), sqrt(noisy.variance), caps)
        if around and cells > 1:
            beside = sums.base_of[:, None] == sums.base_of
            others = beside & ~np.eye(cells, dtype=np.bool_)
            rest = np.where(others, found, -np.inf).max(axis=1)
            most_of_all = sums.persons > beside @ np.maximum(sums.persons, 0.0) / 2
            found = np.where(others.any(axis=1) & most_of_all, np.minimum(found, rest), found)
        most = np.minimum(found - 1.0, every)
        if centred and listed is not None:
            sizes = np.sort(np.array(listed.sizes, dtype=np.float64))
            filled = np.append(0.0, np.cumsum(sizes)), np.append(0.0, np.cumsum(sizes**2 / (sizes - 1)))
            inside = np.maximum(found, 1.0)
            most = np.minimum(most, inside**2 / np.maximum(np.interp(inside, *filled), 1.0))
        return np.asarray(most)

    def _beyond(self, label: str, noisy: Noisy) -> TruncationBias | None:
        """What the cut of PSU sums left out; None without PSUs."""
        ruler = self.release.public.get(f"beyond {label}")
        return None if ruler is None else TruncationBias.of(noisy, np.asarray(ruler, dtype=np.float64))

    def _cut_away(self, of: Estimand, sums: Sums) -> tuple[Array, Array]:
        """What the cut of weights moves each estimate by at most, noise and all, and the SD of that noise: all that is lost may be of one
        cell's persons.
        """
        none = np.zeros(len(sums.y))
        if not self.cap.lost or of.base is None:
            return none, none
        base = self.sums(replace(of, axes=of.base))
        whole = np.maximum(base.persons[sums.base_of], 1e-9) + max(self.cap.over, 0.0)
        distance = self._distance(of, sums)
        unsure = np.hypot(self.cap.error, self._drawn_beyond)
        return np.maximum(distance * self.cap.over / whole, -distance), distance * np.minimum(unsure / whole, 1.0)

    @property
    def _drawn_beyond(self) -> float:
        """The SD of what the cut leaves out, in units of W, as persons are sampled: of a variance of at most (b - W) times the loss.
        0 where it has no separate release.
        """
        weight = self.layout.weight
        if not isinstance(weight, CappedWeight) or self.path.split(self.release.statistics) == 0:
            return 0.0
        reach = float(weight.term.high) / self.cap.weight - 1.0
        return sqrt(max(reach, 0.0) * max(self.cap.over, 0.0))

    def _known(self, of: Estimand) -> tuple[float, float] | None:
        """(how many PSUs, or persons without, were sampled, the SD of its noise); None where nobody knows.

        A part of them will not do: T^2/C is near the whole of M, and C too small by a hundredth can leave nothing of it. Without C the
        number itself counts as random, and M as the variance, which is then no smaller than that of any fixed number.
        """
        design = self.path.design
        if design.psu is not None:
            return None if design.psu_count is None else (float(design.psu_count), 0.0)
        if self.path.method.where is not None:
            return None
        if WEIGHTS in self.release.statistics:
            noisy = self.release[WEIGHTS]
            return self.persons, sqrt(noisy.variance * noisy.decode().size)
        if self.layout.crossing.drops or any(own.drops for own in self.layout.measures):
            return None
        every = self.sums(Estimand(self.path.kind, self.layout, ()))
        variance = float(np.max(self.margins.variance(())))
        return self.persons, sqrt(variance) / (every.one if every.rows is None else every.rows.count)

    @staticmethod
    def _steps(longest: Array, cells: int) -> float:
        """What a score of one scale is coded as."""
        return float(longest[0]) - sqrt(cells) / 2 - 1

    def _independent(self, limits: Array) -> tuple[float, int, float, bool]:
        """(C, H, the factor of the meat, whether it is centered within strata)."""
        design, schema, listed = self.path.design, self.path.schema, self.path.listed
        strata = None if design.strata is None else schema[design.strata]
        levels = len(strata.levels) if isinstance(strata, Categorical) else 1
        if design.psu is None:
            count = max(self.persons, 2.0)
            return count, 1, count / (count - 1), False
        count = float(design.psu_count or max(self.persons / float(design.size or 1.0), 2.0))
        if listed is not None and limits[2]:
            return count, levels, 1.0, True
        return count, levels, count / (count - 1), False

    def _cut_back(self, of: Estimand, sums: Sums, facts: dict[str, Array], label: str) -> float:
        """What M grows by where scores were cut short: whole squares over those that counted, all cells together."""
        name = f"{KEPT} {label}"
        if name not in self.release.statistics or facts["limits"][3]:
            return 1.0
        noisy, scales = self.release[name], facts["scales"]
        kept = float((noisy.decode() / (1 << BITS)).sum())
        whole = float((squares_of(sums, facts["theta"]) / scales**2).sum())
        sd = sqrt(noisy.variance * noisy.decode().size) / (1 << BITS)
        # what is within its noise says little of how much is left
        kept = max(kept, _UNSEEN * sd)
        return float(np.clip(whole / kept, 1.0, _MOST_LOST))

    def _distance(self, of: Estimand, sums: Sums) -> Array:
        """Between an estimate and the mean of those whose weights were cut, at most, by cell; for indicators by their bounds.

        Of means by the SD of the cell, or of the whole table where noise hides whether the cell's is smaller.
        """
        if of.kind in ("shares", "counts"):
            p = np.clip(sums.y / np.maximum(sums.x, 1e-9), 0.0, 1.0)
            return np.asarray(np.maximum(p, 1.0 - p))
        if of.kind == "means":
            own, every = self._moments(sums), self._moments(self.sums(replace(of, axes=())))
            hidden = np.minimum(every.plain_variance[0], own.plain_variance + _LIKELY * np.sqrt(own.variance_noise))
            half = of.layout.measures[of.column].half
            return np.asarray(DISTANCE * half * np.sqrt(np.maximum(own.plain_variance, hidden)))
        return DISTANCE * self._sd(of, sums)

    def _sd(self, of: Estimand, sums: Sums) -> Array:
        """The SD of what is averaged, by cell, but of means."""
        if of.kind == "ratios":
            r = np.clip(sums.y / np.maximum(sums.x, 1e-9), -1e300, 1e300)
            scale = max(abs(pooled(sums, 1)[0]), 1e-9)
            return np.asarray(np.sqrt(pooled(sums)[1] + r**2 * pooled(sums, 1)[1]) / scale)
        mean, variance = pooled(sums)
        return np.full(len(sums.y), sqrt(mean**2 + variance))

    def _moments(self, sums: Sums) -> MeanSums:
        """The free moments of a column by cell."""
        rows, column, axes = sums.rows, sums.of.column, sums.of.axes
        assert rows is not None
        table = self.margins.table(axes)
        table = table.reshape(len(table), -1)
        start, variance = rows.starts[column], self.margins.variance(axes)
        n = sums.persons
        noises = np.full(len(n), variance / rows.count**2), np.full(len(n), variance / rows.steps**2)
        s, q, c, d = (table[start + k] / rows.steps for k in range(4))
        if self.layout.weight is None:
            return MeanSums(n, s, q, c, d, *noises)
        behind = table[rows.block :]
        count = behind[0] / rows.count
        if rows.counts_missing(column):
            count = count - behind[start + 4] / float(1 << 20)
        s2, q2, c2, d2 = (one - behind[start + k] / rows.steps for k, one in enumerate((s, q, c, d)))
        return WeightedSums(n, s, q, c, d, *noises, n - count, s2, q2, c2, d2)

    def _alone(self, column: int) -> float:
        """The variance of an overall mean or share of as many persons, drawn individually with equal weights; NaN elsewhere."""
        if self.path.kind != "means":
            return float("nan")
        sums = self.sums(Estimand(self.path.kind, self.layout, (), column))
        half = self.layout.measures[column].half
        return float(half**2 * self._moments(sums).plain_variance[0] / self.persons)
