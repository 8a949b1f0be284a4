"""The distribution of a numeric column, by group: quantiles, its distribution function with a band, box plots, from one release.

Guarantee: mu-GDP, add-remove or substitute. A Gaussian release of K h for each group, h the numbers of records in bins and K the
integer strategy of `confide.aggregates.distributions.cumulative`, where the sensitivity is proved: groups are disjoint, so that any
number of them costs what one does. Bins that nobody gives are laid where the records are, by a first round for an eighth of mu^2 that
counts all records in 64 public bins (`confide.aggregates.distributions.fitted_bins`); the rounds are composed adaptively (Dong, Roth, Su
2022, Corollary 2), and the records are read once. Everything else is computed from it and costs nothing.
Estimand: quantiles and distribution function of the column as declared, clipped to its bounds, in the population that the records are a
sample of (sampling and privacy noise), or of these very records (noise alone). Intervals of quantiles are whole bins, and hold for any
distribution, atoms included (`distribution_reading`). Intervals of quantiles in a GDP ledger are at most a quarter as long as those
of the exponential mechanism at the same charge (`confide lab run tables.distribution`). Sources: McKenna, Miklau, Hay,
Machanavajjhala 2018 for counts by least squares; Fichtenberger, Henzinger, Upadhyay 2023 for the square root; Cornish, Fisher 1938;
Kolmogorov 1933.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from confide import _special as special
from confide.aggregates.column_codes import practice_codes
from confide.aggregates.distributions.cumulative import MOST_BINS
from confide.aggregates.distributions.cumulative_strategy import strategy
from confide.aggregates.lines.corners import ends
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.numbers import checked_reading
from confide.methods.tables.description.distribution_about import FITTED, DistributionAbout
from confide.methods.tables.description.distribution_result import DistributionResult, checked_quantiles
from confide.methods.tables.description.missing import missing_lines
from confide.protocol import Meter, Method, Plan, Question, Release, Source, Statistic
from confide.schema import Practice, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import sides

__all__ = ["Distribution", "DistributionAbout"]


_QUARTILES = (0.25, 0.5, 0.75)
_FEWEST_FITTED = 128
# Numbers that one release may hold.
_MOST_NUMBERS = 1 << 22
_Z = float(special.ndtri(0.975))
_SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Distribution(Method):
    """Quantiles and the distribution function of a numeric column, by group, from one Gaussian release of cumulative counts.

    formula: "income", "income ~ sex", "log(income) ~ sex:cut(age, 18, 65)", groups as in tables (`a * b` with the groups of a and b
    alone); bins: left out, `fitted` bins (128 to 1,024) laid where the records are; else how many even ones (2 to 1,024), or public edges;
    an integer column has whole values in its bins. quantiles: those that the table shows; any other one is read off the same release, by
    `result.quantile(...)`. covers: "population", of which the records are a sample, or "dataset", these very records; either is read off
    one release, by a question. term_bounds: of derived terms.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> release = cf.release(Distribution("income ~ sex"), data, cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> frame = cf.infer(release).quantile(0.9)
    >>> frame.index.tolist(), bool((frame.low < frame.estimate).all())
    (['0.9', 'sex=F, 0.9', 'sex=M, 0.9'], True)
    """

    formula: str
    bins: int | Sequence[float] | None = None
    quantiles: float | Sequence[float] = _QUARTILES
    covers: str = "population"
    term_bounds: Mapping[str, Any] | None = None
    fitted: int = field(default=FITTED, kw_only=True)

    name: ClassVar[str] = "distribution"
    # version 1 had 256 even bins where none were given, and its files say so
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = (
        "cumulative counts by the square-root strategy from both ends, least squares; Dong, Roth, Su 2022"
    )
    intervals: ClassVar[str] = (
        "quantiles of the clipped column, any distribution, at finite n; sampling and privacy noise"
    )
    asks: ClassVar[tuple[str, ...]] = ("quantiles", "covers")

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or not self.formula.strip():
            raise PlanError(
                f'a distribution is of a column, got {self.formula!r}; write cf.tables.Distribution("income ~ sex")'
            )
        if not isinstance(self.fitted, int) or not _FEWEST_FITTED <= self.fitted <= MOST_BINS:
            raise PlanError(
                f"fitted must be a number of bins from {_FEWEST_FITTED} to {MOST_BINS}, got {self.fitted!r}; leave it out for {FITTED}"
            )
        if self.bins is not None and not isinstance(self.bins, int):
            try:
                object.__setattr__(self, "bins", tuple(float(edge) for edge in self.bins))
            except (TypeError, ValueError, OverflowError):
                raise PlanError(
                    f"bins must be a number of bins or a list of public edges, got {self.bins!r}; leave it out"
                ) from None
        checked_reading(self.covers, "cf.tables.Distribution(...")
        object.__setattr__(self, "quantiles", checked_quantiles(self.quantiles))

    # plan -------------------------------------------------------------------------------------------------------------

    def about(self, schema: Any) -> DistributionAbout:
        """The groups, the measure and its bins; `PlanError` or `SchemaError` for what cannot be planned from public facts."""
        formula = self.formula if _has_sides(self.formula) else f"{self.formula} ~ 1"
        layout = Layout.of(formula, schema, term_bounds=self.term_bounds)
        if len(layout.measures) != 1:
            raise PlanError(
                f"a distribution is of one column, {cut(self.formula)!r} names {len(layout.measures)}; plan one for each, as in "
                f'Distribution("{layout.measures[0].name} ~ ...")'
            )
        if len(layout.maximal) != 1:
            raise PlanError(
                f'{cut(self.formula)!r} asks for groups that do not partition the records; write "a:b" or "a * b", or plan one for each'
            )
        about = DistributionAbout.of(layout, layout.measures[0], self.bins, fitted=self.fitted)
        rows = about.rows
        if rows.width > _MOST_NUMBERS:
            most = _MOST_NUMBERS // 3 // rows.cells
            raise PlanError(
                f"{rows.cells:,} groups of {rows.bins.size:,} bins are {rows.width:,} numbers, at most {_MOST_NUMBERS:,} are released; "
                f"write bins={most}" + ("" if most > 1 else " after crossing fewer columns")
            )
        return about

    def statistics(self, about: DistributionAbout, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        """The strategy's integers, of all records where the bins are laid, and of every group."""
        return about.statistics()

    def unreleased(self, about: DistributionAbout) -> Mapping[str, Statistic]:
        """The fine histograms, where the bins are laid."""
        return about.unreleased()

    def facts(self, about: DistributionAbout) -> Mapping[str, Any]:
        """Target and covers."""
        by = about.layout.crossing.title(about.rows.axes)
        groups = "" if by == "total" else f" by {by}"
        return {
            "target": f"distribution of {about.rows.measure.name}{groups}, clipped to its declared bounds",
            "covers": "quantiles and distribution function, in whole bins; independent records, any distribution; sampling of records and "
            "privacy noise, or privacy noise alone where these very records are asked about",
        }

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One Gaussian release, or two rounds; the forecast is of shares of records below quantiles; with n, a note says how far intervals
        reach."""
        about = self.about(schema)
        rows, made = about.rows, super().plan(schema, privacy, n=n, public=public)
        unit = (made.spend("cumulative").noise_sd or 0.0) ** 2 / 4.0**20
        part = 1.0 if self.covers == "population" else 0.0
        found: dict[str, Any] = {
            "assumes": "of the share of a group's records below the quantile, groups of equal size",
            "uneven": {},
        }
        for size in (n,) if n else _SIZES:
            key, each = str(size), size / rows.cells
            found[key], small = (
                {f"{q:g}": rank_error(q, own, unit, rows.bins.size, part) for q in checked_quantiles(self.quantiles)}
                for own in (each, each / 4)
            )
            found["uneven"][key] = {
                name: (("a group with a quarter of those records", error, None),)
                for name, error in (small.items() if rows.cells > 1 else ())
            }
        made = replace(made, forecast=found)
        if not n:
            return made
        reached = []
        for q in checked_quantiles(self.quantiles):
            half = _Z * rank_error(q, n, unit, rows.bins.size, 1.0)
            reached.append(f"{q:g} from {max(q - half, 0):.3g} to {min(q + half, 1):.3g}")
        said = f"with {n:,} records in a group the intervals reach about as far as these of its quantiles, and a bin: {', '.join(reached)}"
        return replace(made, notes=(*made.notes, said))

    # release ----------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the fine histograms, which stay here; round 1, the bins that follow from it, round 2."""
        about = self.about(Schema.from_dict(plan.schema))
        if about.first is None:
            return super().draw(source, plan, meter)
        (counts,) = source.aggregate(plan.statistic("histograms"))
        return about.draw(counts, meter)

    # infer ------------------------------------------------------------------------------------------------------------

    def table(self, release: Release, about: DistributionAbout, question: Question) -> DistributionResult:
        """Quantiles of each group. question: `quantiles` in place of the plan's, `covers` "population" (the default) or "dataset"."""
        covers = checked_reading(question.covers or self.covers, "cf.infer(release")
        shown = self.quantiles if question.quantiles is None else question.quantiles
        return DistributionResult.read(
            release,
            tuple(about.read(release, 0.0 if covers == "dataset" else 1.0, about.groups)),
            checked_quantiles(shown),
            covers,
            missing_lines(release, about.layout),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The quantiles of the clipped column: the least value that a share of at least q of a group's records does not exceed."""
        practice = Practice.checked(frame)
        about = self.about(practice.schema)
        rows, layout = about.rows, about.layout
        codes = practice_codes(rows, practice)
        place, coded = rows.coded(codes)
        values = rows.measure.term.grid.decode(coded)
        found: dict[str, float] = {}
        q = checked_quantiles(self.quantiles)
        for name, axes, cell in about.groups:
            own = layout.crossing.places(codes[: len(layout.crossing.columns)], axes) == cell
            own &= place < rows.cells
            if not own.any():
                raise PlanError(f"no practice record is in the group {name or 'of all records'!r}; give more records")
            quantiles = np.quantile(values[own], q, method="inverted_cdf")
            found |= {_row_name(name, one): float(value) for one, value in zip(q, quantiles, strict=True)}
        return found

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record at either end: no columns of the strategy are farther apart by much."""
        if isinstance(schema, Schema):
            yield from (ends(schema, (name,)) for name in self.about(schema).rows.measure.columns)


def rank_error(q: float, size: float, unit: float, bins: int, part: float) -> float:
    """The standard error of the share of `size` records below their quantile q; unit: the noise variance of the strategy's numbers."""
    middle = float(strategy(bins).centred(q)[min(int(q * bins), bins - 1)])
    return sqrt(part * size * q * (1 - q) + unit * middle) / size


def _has_sides(formula: str) -> bool:
    """Whether a formula says what the groups are."""
    return len(sides(formula)) > 1


def _row_name(group: str, q: float) -> str:
    return f"{group}, {q:g}" if group else f"{q:g}"
