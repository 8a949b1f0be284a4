"""Tables from a shared release: one for each response, and for several responses their joint table.

Coefficients of two responses have errors that are correlated through the noise of the Gram matrix that they share, Cov(N theta_j, N
theta_k) = (SA^2/2) (theta_j'theta_k I + theta_k theta_j'). They are also correlated through the sampling of records. The latter needs
the products of responses: with them the meat between j and k is rho_jk M_j^(1/2) M_k^(1/2), rho the correlation of residuals. Without
them tests that tie m responses use m M_1, ..., m M_m on the diagonal. This is an upper bound for any correlation, by Cauchy and
Schwarz: s s' <= m diag(s_1 s_1', ..., s_m s_m') for scores s = (s_1, ..., s_m).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Release, ResultOptions
from confide.methods.regression.evidence.nested_models import ModelSums
from confide.methods.regression.evidence.normal_equations import (
    Fit,
    Line,
    MiddleMatrix,
    NoisyMoments,
    coefficient_names,
    extent,
    fit,
    identified,
    line_of,
    noisy_middle_matrix,
    records_behind,
    to_units,
    trusted,
)
from confide.methods.regression.evidence.r_squared import ResidualVariance, explained, share_text
from confide.methods.regression.evidence.sample_size_advice import hidden_words
from confide.methods.regression.evidence.sparse_levels import totals_of_gram, unseen_levels
from confide.methods.regression.linear_estimates import SharedEstimates, kept, legend
from confide.methods.regression.ssp.draw import FAR_BRANCH, Layout, Moments, largest, reach, unanswered
from confide.results.inference.simulated_null import JointLaw
from confide.results.pages.content import ranges_told
from confide.results.pages.table import DASH, with_interval
from confide.sums.coding import Box

linalg = later("scipy.linalg")


_SUBSET_INTERVALS_FOR = (
    "population's {line} line on these columns; sampling of records and privacy noise, {assumed}, independent records"
)
_EQUAL = "equal residual variances in the smaller model assumed"
_UNRELATED = "unequal variances about the full model allowed; the excluded terms are assumed to vary as much at any values of these columns"


def read(method: Any, layout: Layout, release: Release, options: ResultOptions) -> SharedEstimates:
    """The table of a release: of one response, or the joint one with `tables`."""
    reading = _Reading.of(method, layout, release, options)
    fits = [reading.one(k) for k in range(layout.outcomes)]
    return fits[0].table if layout.outcomes == 1 else reading.joined(fits)


@dataclass(frozen=True, eq=False)
class _One:
    """One response's table, and from what it follows: the fit, the meat that intervals use and the meat as released (None: classical)."""

    table: SharedEstimates
    fitted: Fit | None
    shown: MiddleMatrix | None
    meat: MiddleMatrix | None


@dataclass(frozen=True, eq=False)
class _Reading:
    method: Any
    layout: Layout
    release: Release
    options: ResultOptions
    keep: list[int]
    far: bool
    moments: Moments
    box: Box | None
    state: tuple[str, str]
    out: NDArray[np.bool_]

    @classmethod
    def of(cls, method: Any, layout: Layout, release: Release, options: ResultOptions) -> _Reading:
        design = layout.design
        keep = kept(design, options)
        far = any(name.startswith(FAR_BRANCH) for name in release.statistics)
        box = None
        if far:
            middle, half = np.asarray(release.public["box"], dtype=np.float64)
            box = Box(tuple(map(float, middle)), tuple(map(float, half)))
            layout = layout.far(float(release.public["cap"][0]) if "cap" in release.public else None)
        noisy = release[layout.names("moments", far=far)[0]]
        moments = layout.decoded(noisy.decode(), sqrt(noisy.variance))
        hides = hidden_words([term.name for term in design.terms], moments.each[0].gram) if design.terms else ""
        status, reason = identified(moments.each[0], line_of(design, keep, box), hides)
        totals = totals_of_gram(moments.each[0].gram, moments.each[0].sd_gram)
        unseen = unseen_levels(design, totals, box=box, keep=keep, counted="noisy weighted count")
        state = status, reason and reason + unseen
        out = _out_of_reach(layout, release, box)
        if status == "valid" and box is not None and out[keep].any():
            state = _partly(layout, box, keep, out)
        return cls(method, layout, release, options, keep, far, moments, box, state, out)

    @property
    def subset(self) -> bool:
        return len(self.keep) < len(self.layout.design.terms)

    @property
    def names(self) -> tuple[str, ...]:
        return coefficient_names(self.layout.design, self.keep)

    def one(self, k: int) -> _One:
        """The table of response k."""
        design, moments = self.layout.designs[k], self.moments.each[k]
        # units differ between responses, and so does the line through y = 0 of a formula without an intercept
        line = line_of(design, self.keep, self.box)
        matrix, shift = to_units(design, self.keep, self.box)
        meat = self._meat(k) if self.layout.robust else None
        names = self.names
        numbers: dict[str, Any] = {
            "estimates": np.full(len(names), nan),
            "covariance": np.full((len(names),) * 2, nan),
            "noise_variance": np.full(len(names), nan),
            "df": 1.0,
        }
        flags: tuple[str, ...] = ()
        fitted: Fit | None = None
        known = ResidualVariance()
        with suppress(np.linalg.LinAlgError):
            fitted = fit(moments, line)
        if self.subset:
            meat = None if meat is None or fitted is None else self._smaller(k, meat, fitted)
        shown = meat
        if fitted is not None:
            numbers["estimates"] = matrix @ fitted.theta + shift
            if self.state[0] in ("valid", "partial"):
                if meat is not None and not self.subset:
                    meat = self._unclipped(meat, fitted)
                shown, df = trusted(fitted, matrix, meat)
                numbers |= {
                    "covariance": (whole := matrix @ fitted.covariance(shown) @ matrix.T),
                    "joint": self._law((fitted,), (meat,), (matrix,)),
                    "noise_variance": np.maximum(np.diag(whole) - fitted.alone(matrix, meat), 0.0),
                    "df": df,
                    "sampling_df": fitted.df,
                    "rsquared": (known := self._explained(fitted, line, shown)).share,
                    "rsquared_interval": known.interval,
                }
                if self.state[0] == "valid" and not self.subset:
                    numbers["sums"] = partial(ModelSums.of_fit, fitted, matrix, numbers["estimates"])
                flags = ("se_upper_bound",) if shown is not meat else ()
                if self.state[0] == "partial":
                    _leave_out(numbers, np.array([*([True] if design.intercept else []), *self.out[self.keep]]))
        ok = self.state[0] in ("valid", "partial")
        table = SharedEstimates(
            method=f"{self.method.name} {self.method.version}",
            response=design.response.name,
            names=names,
            status=self.state[0],
            reason=self.state[1],
            flags=(*flags, *self._remarks(moments, meat)),
            requested=self.release.plan.requested,
            guarantee=self.release.charged,
            target=self.layout.title(design.response.name, names),
            intervals_for=self._intervals_for(meat),
            release_sha256=self.release.sha256,
            facts=(
                ("Cov. type", "classical" if meat is None else "robust"),
                self._count(moments),
                *_explained_facts(
                    known, float(design.response.high - design.response.low) / 2, self.layout.weighted, ok=ok
                ),
            ),
            legend=(*legend(self.layout.whole, self.release.plan.declared, names), *ranges_told(self.release)),
            ranges=self.release.ranges,
            simulated=self.release.simulated,
            design=design,
            nobs=moments.count,
            **numbers,
        )
        return _One(table, fitted, shown, meat)

    def _unclipped(self, meat: MiddleMatrix, fitted: Fit) -> MiddleMatrix:
        return meat.unclipped(fitted.weighted_residuals(self.layout.cap), weighted=self.layout.weighted)

    def _smaller(self, k: int, meat: MiddleMatrix, fitted: Fit) -> MiddleMatrix | None:
        """The meat of a smaller model: that of the full one, and for the terms without a place s2 A with the growth of the residual
        variance.

        None where the full model's fit, at which the meat was taken, is hidden by noise.
        """
        design, moments = self.layout.designs[k], self.moments.each[k]
        whole = line_of(design, list(range(len(design.terms))), self.box)
        if identified(moments, whole)[0] != "valid":
            return None
        full = fit(moments, whole)
        own = self._unclipped(meat, full)
        return replace(own, values=own.values + max(fitted.s2 - full.s2, 0.0) * _symmetric(moments.gram))

    def _intervals_for(self, meat: MiddleMatrix | None) -> str:
        if not self.subset:
            return self.release.plan.intervals_for
        return _SUBSET_INTERVALS_FOR.format(
            line="leverage-weighted" if self.layout.weighted else "least-squares",
            assumed=_EQUAL if meat is None else _UNRELATED,
        )

    def _explained(self, fitted: Fit, line: Line, meat: MiddleMatrix | None) -> ResidualVariance:
        """R squared and the residual standard deviation in half-ranges of the response."""
        design = self.layout.design
        return explained(fitted, line, fitted.covariance(meat), *extent(design, self.box), self.layout.cap)

    def _meat(self, k: int) -> MiddleMatrix:
        noisy = self.release[self.layout.names("meat", far=self.far)[k]]
        limit = float(self.release.public["limits"][k]) if "limits" in self.release.public else 1.0
        return self.layout.decoded_meat(noisy.decode(), sqrt(noisy.variance), limit)

    def _count(self, moments: NoisyMoments) -> tuple[str, str]:
        return "Weighted count (noisy)", f"{moments.count:,.0f} ± {special.ndtri(0.975) * moments.sd_gram:,.0f}"

    def _remarks(self, moments: NoisyMoments, meat: MiddleMatrix | None) -> tuple[str, ...]:
        """Flags that depend on the options and on noisy numbers: a count within three SDs of 0 hints at records that were all dropped."""
        few = moments.count < 3 * moments.sd_gram
        subset = self.layout.robust and meat is None
        return (*(("submodel_classical",) if subset else ()), *(("few_complete_records",) if few else ()))

    # several responses ------------------------------------------------------------------------------------------------

    def joined(self, parts: list[_One]) -> SharedEstimates:
        """The table of all coefficients, with their joint covariance."""
        tables = {part.table.response: part.table for part in parts}
        names = tuple(f"{response}: {name}" for response, table in tables.items() for name in table.names)
        first, q = parts[0].table, len(names)
        label = "R-squared (weighted)" if self.layout.weighted else "R-squared"
        numbers: dict[str, Any] = {
            "covariance": np.full((q, q), nan),
            "noise_variance": np.full(q, nan),
            "df": 1.0,
        }
        if first.status in ("valid", "partial") and all(part.fitted is not None for part in parts):
            covariance, law, loose = self._joint(parts)
            numbers = {
                "covariance": covariance,
                "noise_variance": np.concatenate([part.table.noise_variance for part in parts]),
                "df": min(part.table.df for part in parts),
                "joint": law,
                "loose": loose,
            }
        if first.status == "partial":
            out = np.concatenate([np.isnan(part.table.estimates) for part in parts])
            covariance = np.array(numbers["covariance"])
            covariance[out] = covariance[:, out] = nan
            numbers["covariance"] = covariance
        return replace(
            first,
            response=" + ".join(tables),
            names=names,
            estimates=np.concatenate([part.table.estimates for part in parts]),
            flags=tuple(dict.fromkeys(flag for part in parts for flag in part.table.flags)),
            target=self.layout.title(" and ".join(tables), self.names),
            facts=(
                *first.facts[:2],
                *((f"R-squared of {name}", dict(table.facts)[label]) for name, table in tables.items()),
            ),
            legend=(*first.legend, ("Across", _WITH if self.layout.products else _WITHOUT)),
            rsquared=nan,
            rsquared_interval=(nan, nan),
            tables=tables,
            sums=None,
            **{"joint": None, **numbers},
        )

    def _joint(self, parts: list[_One]) -> tuple[Array, JointLaw, Array | None]:
        """(covariance, law of joint tests, sampling part that counts once for each response that a single test ties)."""
        fits = tuple(part.fitted for part in parts if part.fitted is not None)
        matrices = tuple(to_units(design, self.keep, self.box)[0] for design in self.layout.designs)
        units = [matrix @ fitted.bread for matrix, fitted in zip(matrices, fits, strict=True)]
        shown = [_middle(fitted, part.shown) for fitted, part in zip(fits, parts, strict=True)]
        noise = self._noise(fits)
        correlation = self._correlation(list(fits)) if self.moments.products is not None else None
        known = np.eye(len(parts)) if correlation is None else correlation
        covariance = _symmetric(_stacked(units, _tied(shown, known)) + _stacked(units, noise))
        law = self._law(fits, tuple(part.meat for part in parts), matrices, correlation)
        loose = None if correlation is not None else _symmetric(_stacked(units, _tied(shown, known)))
        return covariance, law, loose

    def _law(
        self,
        fits: tuple[Fit, ...],
        meats: tuple[MiddleMatrix | None, ...],
        matrices: tuple[Array, ...],
        correlation: Array | None = None,
    ) -> JointLaw:
        """What the release says of the errors of all coefficients together."""
        cap = self.layout.cap
        return JointLaw(
            units=linalg.block_diag(*(matrix @ fitted.bread for matrix, fitted in zip(matrices, fits, strict=True))),
            noise=np.block(self._noise(fits)),
            meats=tuple(noisy_middle_matrix(fitted, meat, cap) for fitted, meat in zip(fits, meats, strict=True)),
            records=np.concatenate(
                [
                    records_behind(fitted, matrix, *extent(self.layout.design, self.box), cap)
                    for fitted, matrix in zip(fits, matrices, strict=True)
                ]
            ),
            key=(self.release.drawn_sha256,),
            correlation=correlation,
        )

    def _noise(self, fits: tuple[Fit, ...]) -> list[list[Array]]:
        """Covariances between the privacy noise in the estimating equations of two responses."""
        half = self.moments.each[0].sd_gram ** 2 / 2

        def between(one: Fit, other: Fit) -> Array:
            a, b = one.theta, other.theta
            return np.asarray(half * (float(a @ b) * np.eye(len(a)) + np.outer(b, a)))

        return [[one.noise if one is other else between(one, other) for other in fits] for one in fits]

    def _correlation(self, fits: list[Fit]) -> Array:
        """Correlations of the residuals of two responses, made positive semi-definite; (m, m)."""
        assert self.moments.products is not None
        m, moments = len(fits), self.moments.each
        gram, half = moments[0].gram, moments[0].sd_gram ** 2 / 2
        found = np.eye(m)
        for j in range(m):
            for k in range(j):
                one, other = fits[j].theta, fits[k].theta
                # a product is too small by what both lines share of the noise of A, as a sum of squares is (normal_equations.fit)
                shared = half * (float(one @ other) * np.eye(len(one)) + np.outer(one, other))
                total = self.moments.products[j, k] - one @ moments[k].cross - other @ moments[j].cross
                total += one @ gram @ other + np.trace(fits[j].bread @ shared)
                rho = float(total) / min(fits[j].df, fits[k].df) / sqrt(fits[j].s2 * fits[k].s2)
                found[j, k] = found[k, j] = float(np.clip(rho, -1.0, 1.0))
        values, vectors = np.linalg.eigh(found)
        found = (vectors * np.maximum(values, 0.0)) @ vectors.T
        size = np.sqrt(np.diag(found))
        return np.asarray(found / np.outer(size, size))


_WITH = (
    "covariances between responses hold the noise of the features that they share and the correlation of their residuals, which is assumed "
    "to be the same for all records"
)
_WITHOUT = (
    "covariances between responses hold the privacy noise alone, as the products of responses were not released. Tests across responses "
    "use an upper bound of the variance and reject less often than their level (products=True makes them sharp)"
)


def _out_of_reach(layout: Layout, release: Release, box: Box | None) -> NDArray[np.bool_]:
    """Which terms lie out of reach of DP counts, (terms,); none where no record can be weighed, or as the user says."""
    design = layout.design
    if box is None or "leverage" not in release.statistics or layout.cap >= largest(design, box):
        return np.zeros(len(design.terms), dtype=bool)
    return unanswered(design, box)


def _partly(layout: Layout, box: Box, keep: list[int], out: NDArray[np.bool_]) -> tuple[str, str]:
    """Status "partial", or "imprecise" where nothing is left, and why."""
    far, parts = reach(layout.design, box), []
    left = [j for j in keep if out[j]]
    for j in left:
        term, middle, sd = layout.design.terms[j], box.middle[j], box.half[j] / sqrt(3)
        low, high = max(middle - 10 * sd, float(term.low)), min(middle + 10 * sd, float(term.high))
        parts.append(
            f"the bounds of {term.name} reach {far[j]:.0f} standard deviations. A few records out there could move its coefficient and no "
            f"DP count can show them; declare it within about [{low:.3g}, {high:.3g}] (values beyond count at the bound)"
        )
    rest = "; the intercept depends on it; more records help, or leverage_cap=math.inf with wider intervals"
    return ("imprecise" if len(left) == len(keep) else "partial"), "; ".join(parts) + rest


def _explained_facts(known: ResidualVariance, half: float, weighted: bool, *, ok: bool) -> tuple[tuple[str, str], ...]:
    """Lines of the head: R squared and the residual standard deviation in the units of the response (half: of its range)."""
    label = "R-squared (weighted)" if weighted else "R-squared"
    if not ok:
        return (label, DASH), ("Residual sd", DASH)
    (low, high), (least, most) = known.interval, known.sd_interval
    share = share_text(known.share, low, high)
    sd = with_interval(known.residual_sd * half, least * half, most * half)
    return (label, share), ("Residual sd", DASH + " (more records needed)" if np.isnan(known.residual_sd) else sd)


def _leave_out(numbers: dict[str, Any], out: Array) -> None:
    """Write NaN for estimates that are not answered, and for all that belongs to them."""
    covariance = np.array(numbers["covariance"])
    covariance[out] = covariance[:, out] = nan
    numbers |= {
        "estimates": np.where(out, nan, numbers["estimates"]),
        "covariance": covariance,
        "noise_variance": np.where(out, nan, numbers["noise_variance"]),
    }


def _middle(fitted: Fit, meat: MiddleMatrix | None) -> Array:
    """The sampling part of the covariance of a score."""
    return fitted.s2 * fitted.moments.gram if meat is None else meat.positive


def _tied(meats: list[Array], correlation: Array) -> list[list[Array]]:
    """Blocks rho_jk M_j^(1/2) M_k^(1/2): positive semi-definite as a whole."""
    roots = []
    for meat in meats:
        values, vectors = np.linalg.eigh(meat)
        roots.append((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
    return [
        [meats[j] if j == k else correlation[j, k] * roots[j] @ roots[k] for k in range(len(meats))]
        for j in range(len(meats))
    ]


def _stacked(units: list[Array], blocks: list[list[Array]]) -> Array:
    return np.block([[units[j] @ blocks[j][k] @ units[k].T for k in range(len(units))] for j in range(len(units))])


def _symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2)
