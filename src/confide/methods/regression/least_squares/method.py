"""The default for one regression: the population's least-squares coefficients, from rounds of noisy moments of scores.

Estimates the population's least-squares coefficients of the response, each of the columns as declared (clipped to its public bounds).
The formula decides which way leads there. One factor, or factors alone, use exact sums by level (`FactorMeans`), where records, or kept
rows of units, are independent. Other formulas use rounds of noisy moments in whitened coordinates (`LeastSquaresRounds`). For releases
that answer many analyses there is `SSP`. Under the design of a survey the estimand is weighted (`SurveyLine`).

Guarantee: mu-GDP, add-remove or substitute. Each way states what is drawn, its sensitivity and its source.

What a way to a line must answer, so that one method may choose among several from public facts.

What the methods of one line share: from a formula to the way that leads to the line, and the three steps along it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from confide.core import (
    Allowance,
    BudgetItem,
    FormulaMethod,
    MenuEntry,
    Meter,
    Method,
    Plan,
    Release,
    ResultOptions,
    Source,
)
from confide.core.events import leaves
from confide.errors import PlanError
from confide.guarantees import GDP, Guarantee
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.factors.sums import FactorLevels
from confide.methods.regression.least_squares.rounds import LeastSquaresRounds
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.schema import CodedFrame, ModelMatrix, Schema, Unit
from confide.schema.formulas.formula import parse_formula
from confide.schema.formulas.names import parted, sides
from confide.sums.ranges import RangedMethod


class LinePath(Protocol):
    """A frozen value, made of public facts alone."""

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """Keywords of `Plan.of`: event, statistics, passes, constants, target, intervals_for, warnings."""
        ...

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy numbers in the order of the plan; returns public numbers that follow from them."""
        ...

    def table(self, release: Release, options: ResultOptions) -> SharedEstimates:
        """The regression table."""
        ...

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The coefficients of the line that the title names, without privacy."""
        ...

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records that the audit should try."""
        ...


class LineMethod(RangedMethod, FormulaMethod):
    """A method of one line: `_way` says how, from public facts; plan, draw, table and reference are the way's."""

    formula: str
    clipping_check: bool
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "regression"
    asks: ClassVar[tuple[str, ...]] = ("subset",)

    def __post_init__(self) -> None:
        if not isinstance(self.clipping_check, bool):
            raise PlanError(f"clipping_check must be True or False, got {self.clipping_check!r}")

    @abstractmethod
    def _way(self, schema: Schema, design: ModelMatrix, label: str) -> LinePath:
        """How the line is reached. label: name and version of the method."""

    def about(self, schema: Any) -> LinePath:
        """The way to the line, from public facts."""
        whole = Schema.of(schema)
        design = self._design(whole)
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        return self._way(whole, design, f"{self.name} {self.version}")

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends of all branches, and the guarantee, from public facts.

        Raises `PlanError` for a formula or setting that cannot work, `PrivacyError` for an impossible guarantee.
        """
        path = self.about(schema)
        allowance = Allowance.of(privacy, self, schema)
        facts = path.plan(allowance, n)
        event, statistics = facts.pop("event"), facts.pop("statistics")
        warnings = (*parse_formula(self.formula, schema).notes, *facts.pop("warnings", ()))
        return Plan.of(self, schema, allowance, event, statistics, n=n, warnings=warnings, **facts)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; earlier noisy numbers choose the branch."""
        return self.about(source.schema).draw(source, plan, meter)

    def infer(self, release: Release, options: ResultOptions | None = None) -> SharedEstimates:
        """The regression table. The options may name a subset of coefficients: `ResultOptions(subset=("age", "educ"))`.

        Raises `PlanError` for a name that is not a coefficient, and where the release cannot answer for a smaller model.
        """
        options = options or ResultOptions()
        options.only(*self.asks)
        return self.about(release.plan.declared).table(release, options)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same regression without privacy, on simulated records as the schema reads them; `PlanError` where only a release determines
        it.
        """
        return self.about(CodedFrame.checked(frame).schema).reference(frame)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records where one moves the statistics most; none without a schema."""
        return () if schema is None else self.about(schema).worst_pairs()


_LIMITS = ("auto", "none")


@dataclass(frozen=True)
class LeastSquares(LineMethod):
    """Linear regression by least squares, with noise-aware intervals.

    The estimand is the least-squares coefficients in the population, of the
    response and the features clipped to their declared bounds.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"income ~ age + region"``.

    See Also
    --------
    confide.regression.LinearEstimates : The result.
    confide.regression.SSP : One release that answers smaller models, too.
    confide.within_regression : Fixed effects of each person.
    confide.logistic_regression : A binary response.

    Notes
    -----
    Guarantee: mu-GDP under add-remove or substitution. Noisy moments of scores
    in whitened coordinates are Gaussian mechanisms on exact integers, composed
    adaptively. Intervals are Student's t with a sandwich covariance of
    sampling and privacy noise.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang (2014), Analyze Gauss, STOC.
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = LeastSquares("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation, plan.passes
    (1.0, 'add-remove', 7)
    """

    formula: str
    limit: str = "auto"
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "least_squares"
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A regression line",
        "{number} ~ {other} | {number} ~ {label}",
        "The least-squares line.",
        command='regress "{}"',
        name="line",
        place=1,
    )
    task: ClassVar[str] = "linear_regression"
    kin: ClassVar[str] = "lines"
    source: ClassVar[str] = (
        "rounds of noisy moments in whitened coordinates (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    )
    intervals: ClassVar[str] = "the population's least-squares line; sampling, privacy noise, unequal variances"
    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    designs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.limit not in _LIMITS:
            raise PlanError(
                f"limit must be {' or '.join(map(repr, _LIMITS))}, got {self.limit!r}",
                "write cf.regression.LeastSquares(formula, limit='auto')",
            )
        super().__post_init__()

    def overlaps(
        self, questions: Mapping[str, Method], shares: Mapping[str, Fraction], plans: Mapping[str, Plan], schema: Any
    ) -> tuple[str, ...]:
        """Lines of several responses on the same terms."""
        same = [own for own in alike(questions, schema) if len({both_sides(one)[1] for one in own.values()}) == 1]
        return tuple(note for own in same for note in _one_line(list(own), plans))

    def rules(self, schema: Schema) -> tuple[str, ...]:
        """By weight where the line comes of scores; sums by level take one row of each unit, and so does a survey."""
        return self.units if isinstance(self.about(schema), LeastSquaresRounds) else ("keep",)

    def _way(self, schema: Schema, design: ModelMatrix, label: str) -> LinePath:
        # each way is loaded where it is taken: a plan must be quick
        if schema.design is not None:
            from confide.methods.regression.least_squares.survey import SurveyLine

            return SurveyLine(schema, design, self.limit)
        unit = schema.unit if isinstance(schema.unit, Unit) else None
        several = schema.cluster is not None or (unit is not None and (unit.rows > 1 or unit.rule == "weight"))
        # sums by level take records as independent
        apart = several and design.intercept and bool(design.terms)
        levels = None if apart else FactorLevels.of(design)
        if levels is None:
            return LeastSquaresRounds(schema, design, self.limit)
        from confide.methods.regression.factors.draw import FactorMeans

        return FactorMeans(label, schema, design, levels)


# several lines of a publication ----------------------------------------------------------------------------------------

# Of the spends of a line, those that no response takes part in.
_FEATURES = ("count", "leverage", "gram")


def alike(questions: Mapping[str, Any], schema: Any) -> list[dict[str, Any]]:
    """The questions that differ in their formulas alone, where there are several; under a design or in clusters none."""
    found: dict[Any, dict[str, Any]] = {}
    for name, one in questions.items() if schema.design is None and schema.cluster is None else ():
        found.setdefault((one.where, repr(replace(one, formula="y ~ x"))), {})[name] = one
    return [own for own in found.values() if len(own) > 1]


def both_sides(method: Any) -> tuple[str, str]:
    """The left side of its formula, and the terms of the right one in one order."""
    left, *right = sides(method.formula)
    return left, " + ".join(sorted(parted("~".join(right), "+")))


def _one_line(names: list[str], plans: Mapping[str, Plan]) -> Iterable[str]:
    """Several responses of the default on the same terms."""
    spends = [
        {
            one.name: float(one.sensitivity) ** 2 / float(one.scale)
            for one in leaves(plans[name].event)
            if isinstance(one, BudgetItem)
        }
        for name in names
    ]
    # sums by level have no such rounds
    if not all("gram" in own for own in spends):
        return
    levels = [plans[name].guarantee for name in names]
    whole = [one.mu**2 for one in levels if isinstance(one, GDP)]
    part = sum(sum(own.get(key, 0.0) for key in _FEATURES) / of for own, of in zip(spends, whole, strict=True)) / len(
        names
    )
    gain = 1 - ((1 - part) / (1 - part / len(names))) ** 0.5
    yield (
        f"{', '.join(names)} are regressions on the same terms, drawn separately. Of the budget of each, {part:.0%} is for the terms "
        f"alone. Drawing them together would take at most {gain:.0%} off the SD of the noise"
    )
