"""Mean and variance of a numeric column, from one release of two sums.

Guarantee: PureDP(epsilon) or mu-GDP, substitute, n public. (sum z, w sum z^2), z in [-1, 1] by public bounds: one replaced record moves
both together by 2 in l1 (w = 1/2) and in l2 (w = 1.66508), which is what the first sum alone costs (`rows.MomentRows`).

Estimand: of="column" (default): mean and variance of the column as declared, its values moved into their bounds, whatever it is
distributed as; of="normal": of the normal before that, clipping modelled. Where the bounds are far and the column is normal the two agree.
Posterior on a grid in (mean, sd), the two sums normal (central limit theorem), noise exact (`normal_posterior`). Prior: uniform in (mean,
sd) over the bounds. The variance's interval reaches 0 where the release does not reject records that are all alike: equal tails would
leave out a variance far below what noise hides. The mean's interval needs no normal column; the variance's rests on the fourth moment of a
normal, and its table says so.
Confidence intervals: the shadow of a region that covers at its level or above (`confidence_region`), conservative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.methods.intervals.method import IntervalMethod
from confide.methods.intervals.posteriors.laws import NoiseLaw
from confide.methods.intervals.posteriors.marginals import Marginal
from confide.methods.intervals.posteriors.normal_posterior import (
    PRIORS,
    NormalGrid,
    NormalSums,
    confidence_region,
    normal_posterior,
)
from confide.methods.intervals.posteriors.rows import STEP, MomentRows, numeric
from confide.methods.intervals.result import BOX_ACTIVE, ConfidenceIntervals, Posterior
from confide.protocol import Release
from confide.schema import Practice, Schema, Typical

__all__ = ["MeanAndVariance"]

Array = NDArray[np.float64]

_SHOWN = ("mean", "variance")
_OF = ("column", "normal")
# Of the half-range: the smallest standard deviation in the box; the largest is the half-range, where a clipped normal is two atoms.
_LEAST_SD = 1e-3
# Standard deviations that a plan looks at, in half-ranges.
_SDS = (0.05, 0.5)


@dataclass(frozen=True)
class MeanAndVariance(IntervalMethod):
    """Mean and variance of a numeric column.

    column: numeric; show: ("mean", "variance") or one of them; of: "column" or "normal", what is estimated where values lie at the
    bounds; least_sd: the smallest standard deviation that is thought possible, in the column's units (a thousandth of the half-range when
    left out); prior: "uniform", "reference" (1/variance) or "jeffreys".

    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> data = cf.read({"x": np.random.default_rng(1).normal(size=1000)}, schema)
    >>> release = cf.release(MeanAndVariance("x"), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> result = cf.infer(release)
    >>> list(result.names), result.status
    (['mean of x', 'variance of x'], 'ok')
    """

    column: str
    show: tuple[str, ...] | str = _SHOWN
    of: str = "column"
    least_sd: float | None = None
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "mean_and_variance"
    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = (
        "1",
        "2",
        "3",
        "4",
    )  # their releases mean the same; infer computes more exactly from them
    intervals: ClassVar[str] = (
        "population mean and variance; sampling and privacy noise; the variance's for normal columns"
    )

    assumes: ClassVar[str] = (
        "for standard deviations of 5 % to 50 % of half the range, or what the schema says is typical; of the variance of a normal column "
        "about the middle"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        shown = (self.show,) if isinstance(self.show, str) else tuple(self.show)
        object.__setattr__(self, "show", shown)
        if not shown or any(one not in _SHOWN for one in shown):
            raise PlanError(f'show must be "mean", "variance" or both, got {self.show!r}')
        if self.of not in _OF:
            raise PlanError(
                f'of must be "column" (values moved into their bounds) or "normal" (before that), got {self.of!r}'
            )
        if self.least_sd is not None and not self.least_sd > 0:
            raise PlanError(
                f"least_sd must be above 0, in the units of the column, got {self.least_sd!r}; leave it out"
            )

    def rows(self, schema: Schema, pure: bool) -> MomentRows:
        own = numeric(schema, self.column, "a mean")
        if self.least_sd is not None and self.least_sd >= (own.high - own.low) / 2:
            raise PlanError(
                f"least_sd must be below half the range of {self.column!r}, got {self.least_sd!r}; leave it out"
            )
        return MomentRows(schema, self.column, pure)

    def facts(self, about: MomentRows) -> Mapping[str, Any]:
        what = " and ".join(self.show)
        moved = (
            "moved into its bounds"
            if self.of == "column"
            else "as a normal before its values are moved into their bounds"
        )
        rests = (
            "the interval of the variance assumes a normal column; for any column write cf.tables.means(...).sd()",
        )
        return {
            "target": f"{what} of {self.column}, {moved}",
            "covers": "population mean"
            + (" and variance" if "variance" in self.show else "")
            + "; sampling and privacy noise"
            + ("; the variance's assumes a normal column" if "variance" in self.show else ""),
            "warnings": rests if "variance" in self.show else (),
        }

    def expected(self, rows: MomentRows, n: int, noise: float) -> Mapping[str, tuple[float, float]]:
        typical, half = numeric(rows.schema, self.column, "a mean").typical, self._half(rows)
        # about 95 % lie within a typical spread: four standard deviations
        sds = 2 * ((typical.high - typical.low) / 4 / half,) if isinstance(typical, Typical) else _SDS
        unit = noise / STEP / n
        errors = {
            "mean": [half * sqrt(sd**2 / n + unit**2) for sd in sds],
            "variance": [half**2 * sqrt(2 * sd**4 / n + (unit / rows.weight) ** 2) for sd in sds],
        }
        return {name: (errors[name][0], errors[name][1]) for name in self.show}

    def _prior(self, text: str) -> str:
        prior = text or PRIORS[0]
        if prior not in PRIORS:
            raise PlanError(
                f"the prior of {self.name} must be one of {', '.join(PRIORS)}, got {text!r}; write prior='uniform'"
            )
        return prior

    def _sums(self, release: Release, rows: MomentRows, n: int) -> NormalSums:
        values = self.sums(release)
        low = _LEAST_SD if self.least_sd is None else self.least_sd / self._half(rows)
        return NormalSums(
            max(n, 1),
            float(values[0]) / STEP,
            float(values[1]) / STEP / rows.weight,
            self.law(release, STEP),
            self.law(release, STEP * rows.weight),
            low,
            1.0,
            self.of == "column",
        )

    def _half(self, rows: MomentRows) -> float:
        own = numeric(rows.schema, self.column, "a mean")
        return float(own.high - own.low) / 2

    def _middle(self, rows: MomentRows) -> float:
        own = numeric(rows.schema, self.column, "a mean")
        return float(own.low) + self._half(rows)

    def _named(self, rows: MomentRows) -> tuple[tuple[str, ...], list[tuple[float, float]]]:
        half, middle = self._half(rows), self._middle(rows)
        box = {"mean": (middle - half, middle + half), "variance": (0.0, half**2)}
        return tuple(f"{one} of {self.column}" for one in self.show), [box[one] for one in self.show]

    def credible(self, release: Release, rows: MomentRows, n: int, prior: str) -> Posterior:
        sums = self._sums(release, rows, n)
        grid = normal_posterior(sums, prior)
        half, middle = self._half(rows), self._middle(rows)
        names, bounds = self._named(rows)
        return Posterior.read(
            release,
            response=self.column,
            names=names,
            marginals=self._marginals(grid, half, middle),
            bounds=bounds,
            flat=(lambda: self._marginals(normal_posterior(sums, PRIORS[0]), half, middle))
            if prior != PRIORS[0]
            else None,
            flags=(BOX_ACTIVE,) if grid.edge else (),
            joint=lambda generator, size: self._draws(grid, generator, size, half, middle),
            reached=lambda alpha: self._reached(sums, alpha),
            prior={"uniform": "uniform in (mean, sd) over the bounds", "reference": "1/sd^2"}.get(
                prior, "Jeffreys of the release"
            ),
            facts=(("Records", f"{n:,} (public)"), ("Noise", f"of the sum, in half-ranges: {sums.law1.words()}")),
        )

    def _marginals(self, grid: NormalGrid, half: float, middle: float) -> list[Marginal]:
        """Of what is shown, in the column's units."""
        found: dict[str, Marginal] = {}
        if "mean" in self.show:
            found["mean"] = _moved(grid.of(lambda m, s: m, "m"), half, middle)
        if "variance" in self.show:
            found["variance"] = _moved(grid.of(lambda m, s: s * s, "s"), half**2, 0.0)
        return [found[one] for one in self.show]

    def _reached(self, sums: NormalSums, alpha: float) -> list[tuple[bool, bool]]:
        """The mean of a column is at a bound where every record is; the variance is 0 where all are alike."""
        whole = self.of == "column"
        mean = sums.law1.allows(sums.first, -sums.n, sums.n, alpha) if whole else (False, False)
        return [mean if one == "mean" else (sums.may_be_alike(alpha), False) for one in self.show]

    def _draws(self, grid: NormalGrid, generator: np.random.Generator, size: int, half: float, middle: float) -> Array:
        m, s = grid.draws(generator, size)
        column = {"mean": middle + half * m, "variance": half**2 * s * s}
        return np.column_stack([column[one] for one in self.show])

    def confidence(self, release: Release, rows: MomentRows, n: int) -> ConfidenceIntervals:
        sums = self._sums(release, rows, n)
        half, middle = self._half(rows), self._middle(rows)
        names, bounds = self._named(rows)

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            m, s, inside = confidence_region(sums, alpha)
            if not inside.any():
                return [low for low, _ in bounds], [high for _, high in bounds]
            at_m, at_s = np.nonzero(inside)
            mean, variance = m[at_m], s[at_s] ** 2
            ends = {
                "mean": (middle + half * mean.min(), middle + half * mean.max()),
                # smaller ones than the least in the box are not ruled out where that is not
                "variance": (
                    half**2 * variance.min() * bool(s[at_s].min() > sums.low * (1 + 1e-9)),
                    half**2 * variance.max(),
                ),
            }
            return [float(ends[one][0]) for one in self.show], [float(ends[one][1]) for one in self.show]

        return ConfidenceIntervals.read(
            release,
            effects=False,
            response=self.column,
            names=names,
            limits=limits,
            bounds=bounds,
            estimates=self._likeliest(sums, half, middle),
            facts=(("Records", f"{n:,} (public)"), ("Noise", f"of the sum, in half-ranges: {sums.law1.words()}")),
        )

    def _likeliest(self, sums: NormalSums, half: float, middle: float) -> list[float]:
        """The estimates of largest likelihood."""
        grid = normal_posterior(sums, "flat")
        at_m, at_s = np.unravel_index(int(np.argmax(grid.weights)), grid.weights.shape)
        m, s = grid.m[at_m], np.exp(grid.log_s[at_s])
        found = {"mean": middle + half * float(m), "variance": half**2 * float(s * s)}
        return [found[one] for one in self.show]

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Mean and variance of the clipped column; of the normal that has them after clipping, with of="normal"."""
        practice = Practice.checked(frame)
        values = practice.present(self.column)
        found = {"mean": float(values.mean()), "variance": float(values.var())}
        if self.of == "normal":
            found = self._unclipped(practice.schema, found)
        return {f"{one} of {self.column}": found[one] for one in self.show}

    def _unclipped(self, schema: Schema, found: Mapping[str, float]) -> dict[str, float]:
        rows = MomentRows(schema, self.column, False)
        half, middle = self._half(rows), self._middle(rows)
        m0 = (found["mean"] - middle) / half
        exact = NoiseLaw("normal", 1e-9)
        square = found["variance"] / half**2 + m0**2
        grid = normal_posterior(NormalSums(10**12, m0 * 1e12, square * 1e12, exact, exact, _LEAST_SD, 1.0))
        return {"mean": middle + half * grid.mean.mean, "variance": half**2 * grid.sd.mean**2}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite bounds, and a bound against the middle, where the square moves most."""
        if isinstance(schema, Schema):
            own = numeric(schema, self.column, "a mean")
            yield {self.column: own.low}, {self.column: own.high}
            yield {self.column: own.high}, {self.column: (own.low + own.high) / 2}


def _moved(marginal: Any, factor: float, shift: float) -> Marginal:
    """The distribution of shift + factor times the number."""
    return replace(marginal, points=shift + factor * marginal.points)  # type: ignore[no-any-return]
