"""Synthetic data: a file of rows on which least squares returns differentially private coefficients, with the release behind it.

Estimates the population's least-squares coefficients of a formula, as `LeastSquares` releases them, and how many records lie in which
part of the columns' ranges. A file of rows is made from both: features from noisy bins, and a response whose residuals are exactly
orthogonal to the model matrix of the file. So ordinary least squares on the rows returns the released coefficients and the released
residual SD. The rows are not records and carry no interval: the release has the intervals.

Guarantee: mu-GDP, add/remove or substitution. Half of squared mu pays for the regression (the draws of `LeastSquares` at that level,
with the proofs there), half for the bins (`bins`). Both are Gaussian mechanisms on exact integers, and the squares of mu add up (Dong,
Roth, Su 2022, Corollary 2). With generator="binagg" the bins get everything, sums of the response among them. Rows, their number and
everything in the file follow from the release and public facts.

Interval: none from the rows. The release holds the statistics of `LeastSquares` under their own names, so that its table of the release
is that of the regression (`confide.synthesis.refit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide.core import Allowance, Composed, Meter, Method, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.methods.regression.least_squares.method import LeastSquares
from confide.methods.synthesis.bins import draw_bins, plan_bins
from confide.methods.synthesis.files import SyntheticData
from confide.methods.synthesis.model import Options, build_rows, line_of_release, literal_rows
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import ends

_MOST_CELLS = 4096
_LARGE = 1e60
_NO_INTERVAL = "no interval: rows are noisy bin means, and values may leave their bounds"
_FROM_RELEASE = (
    "; from the release (refit), never from the rows, because an analysis that treats rows as records is too confident"
)


@dataclass(frozen=True)
class SyntheticTable(Method):
    """Synthetic data on a differentially private linear regression.

    Estimates the population's least-squares coefficients of a formula, and how
    many records lie in each bin of the columns' ranges. Rows are drawn from
    both.

    Parameters
    ----------
    formula : str
        Formula such as ``"y ~ a + b"``. The response is a column of the schema.
    generator : {"calibrated", "binagg"}, default "calibrated"
        With "calibrated", least squares on the file returns the released
        coefficients. "binagg" uses noisy means of bins, without a regression.
    cells : int, default 256
        Largest number of bins.

    Notes
    -----
    Guarantee: Gaussian DP with parameter mu, add/remove or substitution. With
    "calibrated" the regression and the bins each cost half of the budget
    (mu/sqrt(2) each); with "binagg" the bins cost all. Both are Gaussian
    mechanisms on exact integers. Rows follow from the release, so they cost
    nothing. They carry no interval.

    References
    ----------
    Lin, Slavković, Bhoomireddy 2025, Algorithm 3; Dong, Roth, Su 2022.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = SyntheticTable("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation
    (1.0, 'add-remove')
    """

    formula: str
    generator: str = "calibrated"
    cells: int = 256
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "synthetic_table"
    family: ClassVar[str] = "synthesis"
    source: ClassVar[str] = "noisy bins and a calibrated response; Lin, Slavković, Bhoomireddy 2025, Algorithm 3"
    intervals: ClassVar[str] = "none from the rows; those of the regression from the release (refit)"
    units: ClassVar[tuple[str, ...]] = LeastSquares.units

    def __post_init__(self) -> None:
        if self.generator not in ("calibrated", "binagg"):
            raise PlanError(
                f'generator must be "calibrated" or "binagg", got {self.generator!r}',
                'write cf.synthesis.SyntheticTable(formula, generator="calibrated")',
            )
        if not is_whole(self.cells, 2, _MOST_CELLS):
            raise PlanError(
                f"cells must be a whole number from 2 to {_MOST_CELLS}, got {self.cells!r}", "leave it out for 256"
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def rules(self, schema: Schema) -> tuple[str, ...]:
        """The rules of the regression, because its rows and those of the bins are the same."""
        return self.regression.rules(schema) if self.generator == "calibrated" else ("keep",)

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the budget items and the guarantee, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible guarantee.
        """
        design = self.design_of(schema)
        allowance = Allowance.of(privacy, self, schema)
        calibrated = self.generator == "calibrated"
        share = Fraction(1, 2) if calibrated else Fraction(1)
        bins, statistics = plan_bins(design, allowance, share, cells=self.cells, label=not calibrated)
        levels = sum(1 for name in statistics if name == "leaves" or name.startswith("bins "))
        event: Composed = Composed((bins,))
        facts: dict[str, Any] = {"passes": 0, "intervals_for": _NO_INTERVAL}
        if calibrated:
            facts = self.regression.about(schema).plan(replace(allowance, part=allowance.part * share), n)
            event, statistics = Composed((facts.pop("event"), bins)), {**facts.pop("statistics"), **statistics}
            facts["intervals_for"] += _FROM_RELEASE
        facts |= {
            "passes": facts["passes"] + levels,
            "constants": {**facts.get("constants", {}), "cells": self.cells},
            "target": f"a synthetic table for {design.response.name} on {', '.join(design.names)}",
            "warnings": (*parse_formula(self.formula, schema).notes, *facts.pop("warnings", ())),
        }
        return Plan.of(self, schema, allowance, event, statistics, n=n, **facts)

    @property
    def regression(self) -> LeastSquares:
        """The method of the regression: its draws, and its table of the release."""
        return LeastSquares(self.formula, term_bounds=self.term_bounds, bounds="declared")

    def design_of(self, schema: Any) -> ModelMatrix:
        """The model matrix of the formula over a schema; `PlanError` where the response is not a column."""
        whole = Schema.of(schema)
        design = ModelMatrix.of(self.formula, whole, term_bounds=self.term_bounds)
        if design.response.plain is None:
            raise PlanError(
                f"a file has columns of the schema, and the response {design.response.name!r} is not one",
                "declare it as a column in the schema and put it on the left of ~",
            )
        for term in (*design.terms, design.response):
            if max(abs(term.low), abs(term.high)) > _LARGE or term.high - term.low < 1 / _LARGE:
                raise PlanError(
                    f"the bounds of {term.name!r} are {term.low:g} and {term.high:g}; a variance in these units cannot be computed. "
                    "Declare the column in other units, with a size and a width between 1e-60 and 1e60"
                )
        return design

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The regression, then the bins, level by level."""
        public: Mapping[str, Any] = {}
        if self.generator == "calibrated":
            public = self.regression.draw(source, plan, meter)
        draw_bins(meter, source, plan)
        return public

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> SyntheticData:
        """The synthetic data of a release, as one file.

        Parameters
        ----------
        release : Release
            The release.
        options : ResultOptions, optional
            None, because there are no options.

        Returns
        -------
        SyntheticData
            As many rows as the estimated number of records.

        Raises
        ------
        PlanError
            An option is given.
        """
        (options or ResultOptions()).only()
        return self.build(release)

    def build(
        self, release: Release, *, rows: int | None = None, files: int = 1, bounded: bool = False
    ) -> SyntheticData:
        """Build the rows of a release; each call gives the same ones.

        Parameters
        ----------
        release : Release
            The release.
        rows : int, optional
            Number of rows. By default the estimated number of records.
        files : int, default 1
            Number of files. Several files have different coefficients, drawn
            from the normal distribution of the released ones, where the table
            answers for all coefficients.
        bounded : bool, default False
            Whether to clip the response to its bounds, and round it in an
            integer column. Least squares on the rows then no longer gives the
            released coefficients.

        Returns
        -------
        SyntheticData
            The rows, with the release behind them.

        Raises
        ------
        PlanError
            An option cannot work.
        """
        design = self.design_of(release.plan.declared)
        options = Options(rows, bounded)
        options.check(design)
        if isinstance(files, bool) or not isinstance(files, (int, np.integer)) or not 1 <= files <= 1_000:
            raise PlanError(f"files must be a whole number from 1 to 1000, got {files!r}", "write files=5")
        if self.generator == "binagg":
            made = [literal_rows(release, design, options, file) for file in range(1, files + 1)]
            return SyntheticData.from_rows(self, release, design, made, status="valid")
        line, status = line_of_release(release, self.regression)
        made = []
        for file in range(1, files + 1):
            drawn = line.drawn(keyed_line(release, file)) if files > 1 else line
            done = build_rows(release, design, drawn, options, file)
            facts = {
                **done.facts,
                "coefficients": dict(zip(design.names, drawn.coefficients.tolist(), strict=True)),
                "residual_sd": drawn.sigma,
                "drawn_line": files > 1 and line.covariance is not None,
            }
            made.append(replace(done, facts=facts))
        return SyntheticData.from_rows(self, release, design, made, status=status)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two records at opposite ends of every column, and those that move the regression most. None without a schema."""
        if schema is None:
            return ()
        line = self.regression.worst_pairs(schema) if self.generator == "calibrated" else ()
        return (ends(schema, self.design_of(schema).columns), *line)


def keyed_line(release: Release, file: int) -> np.random.Generator:
    """The generator that draws the coefficients of one of several files."""
    from confide.noise import keyed_generator

    return keyed_generator(release.sha256, "line", str(file))
