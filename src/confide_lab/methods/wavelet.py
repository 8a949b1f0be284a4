"""Haar wavelet regression of one feature: sums of the response over the cells of a dyadic grid.

Estimates f at every x by the wavelet projection up to level L, which for Haar wavelets is closed: with 2^(L+1) cells, 2^(L+1)/n sum of y
over the records in the cell of x. That is an estimate of f times the density of x, relative to a uniform one (density="uniform", the
source's), or, divided by the cell's noisy count, of f for any design (density="private", the default). A rival of `Kernel`.

Guarantee: mu-GDP, add-remove or substitute. One record adds (1, v), |v| <= 1, to one cell: squared length 2 at most. Two records of one
cell differ by |v - v'| <= 2, of two cells by sqrt(2 + v^2 + v'^2) <= 2: counts ride along with the sums at no cost. Gaussian noise on exact
integers (Dong, Roth, Su 2022). All cells are released together, which costs what one cell costs.
Source: Cai, Chakraborty, Vuursteen 2024 (one point, uniform design, sensitivity 2 tau 2^(L+1)/n).

Interval: no interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log2, nan
from typing import Any, ClassVar

import numpy as np

from confide.core import Allowance, FormulaMethod, Plan, Release, ResultOptions
from confide.errors import PlanError, ReleaseError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.curves.kernel import Smooth, one_feature
from confide.methods.curves.sums import Axis, KernelRows, KernelSums
from confide.results.curve import Curve
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs

__all__ = ["Wavelet", "haar_level"]

_DENSITIES = ("private", "uniform")
_DEEPEST = 13
# n where it is no public fact
_USUAL = 1_000


def haar_level(n: int, mu: float, smoothness: float = 1.0) -> int:
    """L with 2^L near min((n mu)^(1/(s + 1)), n^(1/(2 s + 1))) for a curve of that smoothness s, from public facts.

    >>> haar_level(2000, 0.5), haar_level(2000, 0.01)
    (3, 2)
    """
    size = min((n * mu) ** (1 / (smoothness + 1)), n ** (1 / (2 * smoothness + 1)))
    return min(max(floor(log2(max(size, 1.0))), 0), _DEEPEST)


@dataclass(frozen=True)
class Wavelet(FormulaMethod):
    """Haar wavelet regression: one curve, constant on 2^(level + 1) cells, without intervals.

    formula: "y ~ x"; level: L (default: `haar_level` of a public n, under substitute, or of 1,000); density: "private" divides by the noisy
    counts, "uniform" by n over the number of cells, which needs the public n and is right for a uniform feature alone; term_bounds: as in
    `Kernel`. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})
    >>> Wavelet("y ~ x", level=3).plan(schema, cf.GDP(1.0)).spend("cells").shape
    (32,)
    """

    formula: str
    level: int | None = None
    density: str = "private"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "wavelet"
    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "kernel_regression"
    source: ClassVar[str] = "Haar wavelet regression (Cai, Chakraborty, Vuursteen 2024), all cells in one release"

    def __post_init__(self) -> None:
        level = self.level
        if level is not None and not is_whole(level, 0, _DEEPEST):
            raise PlanError(
                f"level must be a whole number from 0 to {_DEEPEST}, got {level!r}; leave it out for the default"
            )
        if self.density not in _DENSITIES:
            raise PlanError(f'density must be "private" or "uniform", got {self.density!r}')

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Sums and counts of all cells. Raises `PlanError` for a formula that cannot work, and for density="uniform" without a public n."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        known = n if allowance.relation == "substitute" else None
        if self.density == "uniform" and not known:
            raise PlanError(
                'density="uniform" divides by the number of records: give n= and relation="substitute", or write density="private"'
            )
        assert isinstance(allowance.level, GDP)
        level = haar_level(known or _USUAL, allowance.level.mu) if self.level is None else self.level
        axis = self._axis(design, level)
        cells = KernelSums(KernelRows(design, axis))
        return Plan.of(
            self,
            schema,
            allowance,
            allowance.spend("cells", cells, Fraction(1)),
            {"cells": cells},
            n=n,
            constants={"level": level},
            target=self._target(design),
            intervals_for="no interval: the bias of a curve that is constant on cells is not known",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _design(self, schema: Any) -> ModelMatrix:
        design = super()._design(schema)
        one_feature(design, self.name)
        return design

    @staticmethod
    def _axis(design: ModelMatrix, level: int) -> Axis:
        term = design.terms[0]
        low, high = float(term.low), float(term.high)
        if term.steps < 1 << (level + 1):
            raise PlanError(
                f"level {level} has {1 << (level + 1)} cells, {term.name!r} only {term.steps} values; give a lower level"
            )
        return Axis(low, high, term.steps, high - low, 1 << (level + 1), haar=True)

    def _target(self, design: ModelMatrix) -> str:
        what = f"regression of {design.response.name} on {design.terms[0].name}, mean of each cell"
        return what if self.density == "private" else f"{what}, for a uniform feature"

    def infer(self, release: Release, options: ResultOptions | None = None) -> Curve:
        """The curve, two points for each cell. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design, level = self._design(release.plan.declared), release.plan.constants["level"]
        if not isinstance(level, int) or not 0 <= level <= _DEEPEST:
            raise ReleaseError(f"a release of {self.name} has a level from 0 to {_DEEPEST}; ask for the original file")
        axis, response = self._axis(design, level), design.response
        smooth = Smooth.of(axis, release["cells"])
        below, above = smooth.sums
        counts = (
            np.maximum(below, 1.0)
            if self.density == "private"
            else np.full(len(below), (release.plan.n or 1) / axis.cells)
        )
        f = np.repeat(np.clip(above / counts, -1.0, 1.0), 2)
        edges = np.linspace(axis.low, axis.high, axis.cells + 1)
        x = np.stack([edges[:-1], np.nextafter(edges[1:], -np.inf)], axis=1).ravel()
        x[-1] = axis.high
        low, half = float(response.low), float(response.high - response.low) / 2
        empty = np.full(len(x), nan)
        return Curve.of(
            release,
            response=response.name,
            features=(design.terms[0].name,),
            points=x[:, None],
            estimates=low + half + half * f,
            sampling_variance=empty,
            noise_variance=empty,
            denominator_noise=empty,
            middle=low + half,
            bounds=(low, float(response.high)),
            flags=("no_interval",),
            target=self._target(design),
            facts=(("Cells", f"{axis.cells}"), ("Noise sd (records in a cell)", f"{smooth.sd:.4g}")),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None: a curve of cell means without intervals, beside which `Kernel.reference` is the curve to judge by."""
        raise PlanError(
            f"{self.name} prints no interval, so there is no reference to hold one against; use Kernel({self.formula!r})"
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners, and one cell with opposite responses: both attain the sensitivity. None with derived terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)
