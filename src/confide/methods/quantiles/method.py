"""Quantiles of a numeric column, by group, its distribution function with a band, and box plots, from one release.

The requested guarantee decides the noise.

Gaussian noise. Guarantee: mu-GDP, add-remove or substitution. A release of K h for each group, h the numbers of records in bins and K the
integer strategy of `confide.sums.distributions.cumulative`, where the sensitivity is proved. Groups are disjoint, so that any
number of them costs what one does. Without given bins, a first round for an eighth of the cost lays bins where the records are: it counts
all records in 64 public bins (`confide.methods.quantiles.fitted_bins`). The rounds are composed adaptively (Dong, Roth, Su 2022,
Corollary 2), and the records are read once. Everything else is computed from it and costs nothing. Intervals of quantiles in a GDP
ledger are at most a quarter as long as those of the exponential mechanism at the same charge (`confide lab run tables.distribution`).
Sources: McKenna, Miklau, Hay, Machanavajjhala 2018 for counts by least squares. Fichtenberger, Henzinger, Upadhyay 2023 for the square
root. Cornish, Fisher 1938. Kolmogorov 1933.

Geometric noise, of all records. Guarantee: PureDP(epsilon), add-remove or substitution. Round 1, for a fifth of epsilon, counts the records
in 256 public bins and in 16 nodes above them. Round 2, for the rest, counts in 256 bins and in 16 nodes. Its bins follow from round 1
alone and lie mostly where the quantiles may be (`confide.methods.quantiles.fitted_bins.about_quantiles`). One record moves 2 numbers of
a round by 1, or 4 under substitution, wherever the bins are (`sums`, proof): the epsilons add up. Two-sided geometric noise
(Ghosh, Roughgarden, Sundararajan 2012) is added to the whole numbers. A column of at most 256 values has a bin for each, and round 2
alone; of at most 16, no nodes. Any quantile is read off round 2; those that the plan names have the narrowest intervals. The noise, a sum
of dozens, is assumed to be normal. Given round 1 the bins are fixed, and round 2's noise is what it is for public ones. So the intervals
cover as they do there.

Estimand: quantiles and distribution function of the column as declared, clipped to its bounds. It is of the population that the records
are a sample of (sampling and privacy noise), or of exactly these records (noise alone, Gaussian). Intervals of quantiles are whole bins,
and hold for any distribution, atoms included (`confide.sums.distributions.cumulative`). Where noise may be all that lies beyond a
quantile, the end is the declared bound: it is flagged, and the status is "partial".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide import _special as special
from confide.core import Allowance, Composed, MenuEntry, Meter, Method, Plan, Release, ResultOptions, Source, Statistic
from confide.core.allowance import EITHER
from confide.core.plan import checked_inference
from confide.errors import PlanError
from confide.guarantees import Guarantee, PureDP
from confide.methods.quantiles.draw import FITTED, CumulativeRounds, TreeRounds
from confide.methods.quantiles.reading import QuantileGroup, rank_error
from confide.methods.quantiles.results import QuantileTable, checked_quantiles
from confide.methods.tables.layout import Layout
from confide.results.pages.content import check_names
from confide.schema import CodedFrame, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import sides
from confide.sums.coding import ends
from confide.sums.columns import practice_codes
from confide.sums.distributions.cumulative import MOST_BINS

_QUARTILES = (0.25, 0.5, 0.75)
_FEWEST_FITTED = 128
# Numbers that one release may hold.
_MOST_NUMBERS = 1 << 22
_Z = float(special.ndtri(0.975))
_SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Quantiles(Method):
    """Release quantiles and the distribution of a numeric column, by group.

    The estimand is the quantiles and the distribution function of the column,
    clipped to its declared bounds: in the population, or of exactly these
    records. The same release answers any other quantile, at no further cost.

    Parameters
    ----------
    formula : str
        Column and groups, such as ``"income ~ sex"`` or
        ``"log(income) ~ sex:cut(age, 18, 65)"``. ``"income"`` is of all records.
    bins : int or sequence of float, optional
        Number of even bins, from 2 to 1,024, or public edges. By default `fitted`
        bins are laid where the records are. An integer column has whole values.
    quantiles : float or sequence of float, default (0.25, 0.5, 0.75)
        Quantiles in the table.
    inference : {"population", "dataset"}, default "population"
        What the intervals are about: the population that the records are a sample
        of, or exactly these records. Required in a call of one step. One release
        answers both.
    fitted : int, default 384
        Number of bins that are laid where the records are, from 128 to 1,024.

    See Also
    --------
    Means : Means of the same column.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on cumulative
    counts of disjoint groups. The sensitivity is proved in
    `confide.sums.distributions.cumulative`. A first round at an eighth of the
    cost lays the bins, and rounds compose adaptively. Under pure DP the release
    is PureDP(epsilon), for all records in 256 bins near `quantiles`, with
    two-sided geometric noise, and intervals are of the population. One record
    moves two numbers of a round by 1, or four under substitution.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Fichtenberger, Henzinger and Upadhyay (2023), Constant matters: fine-grained
    error bound on differentially private continual observation, ICML.

    Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing
    privacy mechanisms, SIAM J. Comput. 41.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5),
    ...                     "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> release = cf.release(cf.tables.Quantiles("income ~ sex"), data, cf.GDP(1.0),
    ...                      ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> frame = cf.infer(release).quantile(0.9)
    >>> frame.index.tolist(), bool((frame.ci_low < frame.estimate).all())
    (['0.9', 'sex=F, 0.9', 'sex=M, 0.9'], True)
    """

    formula: str
    bins: int | Sequence[float] | None = None
    quantiles: float | Sequence[float] = _QUARTILES
    inference: str = "population"
    term_bounds: Mapping[str, Any] | None = None
    fitted: int = field(default=FITTED, kw_only=True)

    name: ClassVar[str] = "quantiles"
    numbers: ClassVar[Mapping[str, str]] = {"": "quantile"}
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A median by group",
        "{number} ~ {label} | {number}",
        "Medians and the distribution.",
        command='table "{}" --kind quantiles',
        name="medians",
        place=5,
    )
    example: ClassVar[str] = '"income ~ sex"'
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = (
        "cumulative counts by the square-root strategy from both ends, or a tree of counts (Hay et al. 2010), least squares; Dong, Roth, "
        "Su 2022"
    )
    native: ClassVar[str] = EITHER
    intervals: ClassVar[str] = (
        "quantiles of the clipped column, any distribution, at finite n; sampling and privacy noise"
    )
    asks: ClassVar[tuple[str, ...]] = ("quantiles", "inference")
    counts_lost: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or not self.formula.strip():
            raise PlanError(
                f"quantiles are of a column, got {self.formula!r}", 'write cf.tables.Quantiles("income ~ sex")'
            )
        if not isinstance(self.fitted, int) or not _FEWEST_FITTED <= self.fitted <= MOST_BINS:
            raise PlanError(
                f"fitted must be a number of bins from {_FEWEST_FITTED} to {MOST_BINS}, got {self.fitted!r}",
                f"leave it out for {FITTED}",
            )
        if self.bins is not None and not isinstance(self.bins, int):
            try:
                object.__setattr__(self, "bins", tuple(float(edge) for edge in self.bins))
            except (TypeError, ValueError, OverflowError):
                raise PlanError(
                    f"bins must be a number of bins or a list of public edges, got {self.bins!r}", "leave it out"
                ) from None
        checked_inference(self.inference, "cf.tables.Quantiles(...")
        object.__setattr__(self, "quantiles", checked_quantiles(self.quantiles))

    # plan -------------------------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> tuple[float, ...]:
        return checked_quantiles(self.quantiles)

    def about(self, schema: Any) -> CumulativeRounds:
        """The groups, the measure and its bins; `PlanError` or `SchemaError` for what cannot be planned from public facts."""
        formula = self.formula if _has_sides(self.formula) else f"{self.formula} ~ 1"
        layout = Layout.of(formula, schema, term_bounds=self.term_bounds)
        if len(layout.measures) != 1:
            raise PlanError(
                f"quantiles are of one column, {cut(self.formula)!r} names {len(layout.measures)}",
                f'plan one for each, as in Quantiles("{layout.measures[0].name} ~ ...")',
            )
        check_names(QuantileTable, (own.name for own in layout.crossing.attributes))
        if len(layout.maximal) != 1:
            raise PlanError(
                f"{cut(self.formula)!r} asks for groups that do not partition the records",
                'write "a:b" or "a * b", or plan one for each',
            )
        about = CumulativeRounds.of(layout, layout.measures[0], self.bins, fitted=self.fitted)
        rows = about.rows
        if rows.width > _MOST_NUMBERS:
            most = _MOST_NUMBERS // 3 // rows.cells
            raise PlanError(
                f"{rows.cells:,} groups of {rows.bins.size:,} bins are {rows.width:,} numbers, at most {_MOST_NUMBERS:,} are released; "
                f"write bins={most}" + ("" if most > 1 else " after crossing fewer columns")
            )
        return about

    def statistics(self, about: CumulativeRounds, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        """The strategy's integers, of all records where the bins are laid, and of every group."""
        return about.statistics()

    def unreleased(self, about: CumulativeRounds) -> Mapping[str, Statistic]:
        """The fine histograms, where the bins are laid."""
        return about.unreleased()

    def facts(self, about: CumulativeRounds) -> Mapping[str, Any]:
        """Estimand and what intervals account for."""
        by = about.layout.crossing.title(about.rows.axes)
        groups = "" if by == "total" else f" by {by}"
        return {
            "target": f"quantiles of {about.rows.measure.name}{groups}, clipped to its declared bounds",
            "intervals_for": "quantiles and distribution function, in whole bins; independent records, any distribution; sampling of "
            "records and privacy noise, or privacy noise alone where exactly these records are asked about",
        }

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One release, or two rounds. The forecast is of shares of records below quantiles; with n, a note has expected widths."""
        about = self.about(schema)
        if isinstance(privacy, PureDP):
            return self._pure_plan(self._trees(about), schema, privacy, n)
        rows, made = about.rows, Method.plan(_Gaussian(**vars(self)), schema, privacy, n=n, public=public)
        unit = (made.spend("cumulative").noise_sd or 0.0) ** 2 / 4.0**20
        part = 1.0 if self.inference == "population" else 0.0
        found: dict[str, Any] = {
            "assumes": "of the share of a group's records below the quantile, groups of equal size",
            "uneven": {},
        }
        for size in (n,) if n else _SIZES:
            key, each = str(size), size / rows.cells
            found[key], small = (
                {f"{q:g}": rank_error(q, own, unit, rows.bins.size, part) for q in self._shown}
                for own in (each, each / 4)
            )
            found["uneven"][key] = {
                name: (("a group with a quarter of those records", error, None),)
                for name, error in (small.items() if rows.cells > 1 else ())
            }
        made = replace(made, forecast=found)
        if not n:
            return made
        return self._reaching(made, f"{n:,} records in a group", lambda q: rank_error(q, n, unit, rows.bins.size, 1.0))

    def _pure_plan(self, trees: TreeRounds, schema: Any, privacy: Guarantee, n: int | None) -> Plan:
        """Noisy trees of all records."""
        allowance, planned = Allowance.of(privacy, self, schema), trees.statistics()
        spends = tuple(
            allowance.spend(name, one, share, law="discrete_laplace") for name, (one, share) in planned.items()
        )
        made = Plan.of(
            self,
            schema,
            allowance,
            spends[0] if len(spends) == 1 else Composed(spends),
            {**trees.unreleased(), **{name: one for name, (one, _) in planned.items()}},
            n=n,
            target=f"quantiles of {trees.measure.name}, clipped to its declared bounds",
            intervals_for=(
                "population quantiles, in whole bins; independent records, any distribution; sampling of records and privacy noise"
            ),
        )
        if not n:
            return made
        return self._reaching(made, f"{n:,} records", lambda q: trees.reach(q, n, spends[-1].noise_sd or 0.0))

    def _reaching(self, made: Plan, records: str, error: Callable[[float], float]) -> Plan:
        """With a note of how far intervals reach. error: the standard error of the share of records below a quantile."""
        ends = [(q, _Z * error(q)) for q in self._shown]
        reached = [f"{q:g} from {max(q - half, 0):.3g} to {min(q + half, 1):.3g}" for q, half in ends]
        said = f"with {records} the intervals reach about as far as these of its quantiles, and a bin: {', '.join(reached)}"
        return replace(made, notes=(*made.notes, said))

    def _trees(self, about: CumulativeRounds, inference: str | None = None) -> TreeRounds:
        """What pure DP counts; `PlanError` for what it does not."""
        measure = about.rows.measure
        if measure.term.plain is None or about.layout.crossing.attributes or self.bins is not None:
            raise PlanError(
                "under pure DP quantiles are of a column as it stands, of all records, in bins that are laid about them, got "
                f"{cut(self.formula)!r}" + ("" if self.bins is None else " and bins") + "; write "
                f"cf.tables.Quantiles({measure.columns[0]!r}), or ask for a Gaussian guarantee, such as cf.GDP(1.0)"
            )
        if (inference or self.inference) == "dataset":
            raise PlanError(
                "under pure DP quantiles are of the population that the records are a sample of",
                "write inference='population', or ask for a Gaussian guarantee, such as cf.GDP(1.0)",
            )
        return TreeRounds.of(measure)

    # release ----------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for the fine histograms, which stay here; round 1, the bins that follow from it, round 2."""
        about = self.about(plan.declared)
        if isinstance(plan.requested, PureDP):
            trees = self._trees(about)
            if not trees.outline:
                return super().draw(source, plan, meter)
            (counts,) = source.aggregate(plan.statistic("fine"))
            return trees.draw(counts, meter, self._shown)
        if about.first is None:
            return super().draw(source, plan, meter)
        (counts,) = source.aggregate(plan.statistic("histograms"))
        return about.draw(counts, meter)

    # infer ------------------------------------------------------------------------------------------------------------

    def table(self, release: Release, about: CumulativeRounds, options: ResultOptions) -> QuantileTable:
        """Quantiles of each group. options: `quantiles` instead of the plan's, and `inference`, "population" (the default) or "dataset"."""
        inference = checked_inference(options.inference or self.inference, "cf.infer(release")
        shown = self.quantiles if options.quantiles is None else options.quantiles
        if isinstance(release.plan.requested, PureDP):
            groups: Iterable[QuantileGroup] = (self._trees(about, inference).read(release),)
        else:
            groups = about.read(release, 0.0 if inference == "dataset" else 1.0, about.groups)
        return QuantileTable.read(
            release,
            tuple(groups),
            checked_quantiles(shown),
            inference,
            about.layout,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The quantiles of the clipped column: the least value that a share of at least q of a group's records does not exceed."""
        practice = CodedFrame.checked(frame)
        about = self.about(practice.schema)
        rows, layout = about.rows, about.layout
        codes = practice_codes(rows, practice)
        place, coded = rows.coded(codes)
        values = rows.measure.term.grid.decode(coded)
        found: dict[str, float] = {}
        q = self._shown
        for name, axes, cell in about.groups:
            own = layout.crossing.places(codes[: len(layout.crossing.columns)], axes) == cell
            own &= place < rows.cells
            if not own.any():
                raise PlanError(f"no test record is in the group {name or 'of all records'!r}", "give more records")
            quantiles = np.quantile(values[own], q, method="inverted_cdf")
            found |= {_row_name(name, one): float(value) for one, value in zip(q, quantiles, strict=True)}
        return found

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record at either end: no columns of the strategy are farther apart by much."""
        if isinstance(schema, Schema):
            yield from (ends(schema, (name,)) for name in self.about(schema).rows.measure.columns)


class _Gaussian(Quantiles):
    """The same of Gaussian noise alone, which also counts the rows of an enforced unit (`Allowance`)."""

    native: ClassVar[str] = "GDP"


def _has_sides(formula: str) -> bool:
    """Whether a formula says what the groups are."""
    return len(sides(formula)) > 1


def _row_name(group: str, q: float) -> str:
    return f"{group}, {q:g}" if group else f"{q:g}"
