"""What the methods of one line share: from a formula to the way that leads to the line, and the three steps along it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.regression.line_path import LinePath
from confide.methods.regression.scaling import to_units
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.protocol import Allowance, FormulaMethod, Meter, Plan, Question, Release, Source
from confide.schema import Design, Practice, Schema
from confide.schema.formulas.formula import parse_formula

__all__ = ["LineMethod"]


class LineMethod(FormulaMethod):
    """A method of one line: `_way` says how, from public facts; plan, draw, table and reference are the way's."""

    formula: str
    clipping_check: bool
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "regression"

    def __post_init__(self) -> None:
        if not isinstance(self.clipping_check, bool):
            raise PlanError(f"clipping_check must be True or False, got {self.clipping_check!r}")

    @abstractmethod
    def _way(self, schema: Schema, design: Design, label: str) -> LinePath:
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

    def infer(self, release: Release, question: Question | None = None) -> SharedEstimates:
        """The regression table. A question may name a subset of coefficients: `Question(subset=("age", "educ"))`.

        Raises `PlanError` for a name that is no coefficient, and where the release cannot answer for a smaller model.
        """
        question = question or Question()
        question.only("subset")
        return self.about(release.plan.declared).table(release, question)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same line without privacy, on practice records as the schema reads them; `PlanError` where only a release determines it."""
        return self.about(Practice.checked(frame).schema).reference(frame)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records where one moves the statistics most; none without a schema."""
        return () if schema is None else self.about(schema).worst_pairs()
