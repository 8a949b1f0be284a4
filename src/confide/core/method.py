"""What a method is: plan, draw, infer. Ours and a third party's alike; a method states what differs, the base does the rest.

What infer gives: numbers for users, with what they cover and under which guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from confide import _docs
from confide.core.allowance import Allowance
from confide.core.events import Composed
from confide.core.meter import Meter
from confide.core.plan import NOTHING_ELSE, Plan, ResultOptions
from confide.core.ranges import RangeStep
from confide.core.release import Release
from confide.core.statistic import Source, Statistic
from confide.core.units.contributions import shown
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.schema import ModelMatrix, Schema

if TYPE_CHECKING:
    from confide.core.allowance import Noise


#: ok: intervals are valid as stated. weak, not_identified, uninformative: see the reason. no_reply: the mechanism declined.
#: failed: a question of a publication that failed after the charge, which no guarantee covers.
STATUSES = ("valid", "partial", "imprecise", "not_identified", "declined", "no_information", "failed")


@dataclass(frozen=True)
class MenuEntry:
    """How people ask for a method: its place in the studio's form and in `confide explore`, which list what the classes state.

    Parameters
    ----------
    words : str
        The question as people ask it: "A mean by group".
    pattern : str
        The first parameter of the method, with a role in braces for each column: "{number} ~ {label}". Roles are `number`, `other` (a
        second number), `below` (a number above 0), `label`, `second` (a second label), `pair` (a label of two levels), `outcome` (0 or 1),
        `count`, and `event` (a condition on a row, of persons with several rows). What follows " | " is for a schema with fewer columns.
    says : str
        What comes back.
    command : str
        How the command line asks it, {} being the formula; left out: `plan`, with the method's name.
    name : str
        One word for it, which forms and their addresses hold; left out: the method's name.
    place : int
        Entries of a family are listed by it, the least first: in the order in which people ask.
    """

    words: str
    pattern: str
    says: str
    command: str = ""
    name: str = ""
    place: int = 100


@dataclass(frozen=True)
class Pool:
    """Questions of a publication that are released as one.

    names: of the questions; method: whose release answers all of them.
    """

    names: tuple[str, ...]
    method: Method

    @property
    def name(self) -> str:
        """Of the part of the plan."""
        joined = " + ".join(self.names)
        return joined if len(joined) <= 60 else f"{self.names[0]} and {len(self.names) - 1} others"


@runtime_checkable
class Result(Protocol):
    """A result names its release, status, flags, guarantee, target (the estimand) and intervals_for (what the intervals account for)."""

    @property
    def release_sha256(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def flags(self) -> tuple[str, ...]: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def relation(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def intervals_for(self) -> str: ...
    def summary(self) -> str: ...
    def to_frame(self) -> Any: ...
    def to_json(self) -> str: ...
    def plot(self) -> Any: ...
    def report(self, path: str | Path) -> Path: ...
    def _repr_html_(self) -> str: ...


@dataclass(frozen=True)
class Method:
    """Base of methods, which are frozen dataclasses; their fields are their parameters, stored and never computed.

    `name`: as registered. `family`: "regression", "tables" and others. `version`: changes when numbers change, and
    releases of another version are refused. `source`: the reference. `relations`: those it has a guarantee under, its
    default first. `native`: the name of its guarantee's class. `intervals`: one line on what they account for.
    `needs`: any of "fixed_n", "positions", "public_table", "stream", "opaque". `asks`: the result options that its
    table takes. `units`: the rules by which rows of an enforced unit can be bounded for it. `unit_meat`: whether its
    intervals are valid where a unit counts several rows, which are not independent (without it the plan refuses more
    than one). `per_level`: whether they do where a unit counts once in each level of a column (`Unit(per=)`), and
    never rest on a public number of rows. `designs`: whether they hold under the weights, strata and PSUs of a
    survey, and in clusters. `outcome`: how its response is used, whatever the schema says of the column: as one of
    "two" values, as a "count", or "" as it is declared. Simulated records follow it. `least_rows`: of a unit, without
    which it says nothing. `extensive`: whether its numbers grow with the number of records, so that a sample's are
    compared with a population's scaled to it. `example`: of a call, what it is given before the data, as it is
    written. `numbers`: what the numbers of its forecast are by the ending of their names, "count", "share", "mean" or
    "quantile", {} without a name. `counts_lost`: whether it adds columns up, so that clipped and unread values of
    them are counted (`core.lost_values`). `menu`: how people ask for it, None where no form does. `task`: of `cf.advise`,
    which compares it with others of that task, "" for none. `targets`: settings with which its answer without any
    noise is what that task is about, None where another one's is. `kin`: methods of one kin release views on the same
    numbers, so that questions of a publication (`pools`, `overlaps`) and releases (`combine`) can be brought
    together, "" for none. A class that is derived from another one inherits neither its menu nor its kin, because it
    answers another question.

    `where`: the subgroup that is analyzed, as text ("age >= 65 & region == 'N'"), or None for all records. Every
    method has it by name, and none has to do anything about it: the plan is about the subgroup, and a draw is handed
    its records only.

    A method of one pass writes `statistics` and `table`, and what differs of `about` and `facts`; one of several rounds also
    `plan` and `draw`. It is handed its noise inside a meter, and it cannot make a release: the gate seals what the meter drew.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    source: ClassVar[str]
    version: ClassVar[str] = "1"
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "no interval"
    asks: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ("keep",)
    unit_meat: ClassVar[bool] = False
    per_level: ClassVar[bool] = False
    designs: ClassVar[bool] = False
    outcome: ClassVar[str] = ""
    least_rows: ClassVar[int] = 1
    extensive: ClassVar[bool] = False
    example: ClassVar[str] = '"y ~ x"'
    numbers: ClassVar[Mapping[str, str]] = {}
    counts_lost: ClassVar[bool] = False
    menu: ClassVar[MenuEntry | None] = None
    task: ClassVar[str] = ""
    targets: ClassVar[Mapping[str, Any] | None] = None
    kin: ClassVar[str] = ""

    #: To which bounds columns are clipped ("" for one whose columns have no ranges to be found). A field in methods that add numbers up.
    bounds = ""
    #: Whether what it counts of clipped and unread values is wanted. A field in methods of lines.
    clipping_check = True

    where: str | None = field(default=None, kw_only=True, repr=False)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.menu, cls.kin = vars(cls).get("menu"), vars(cls).get("kin", "")
        cls.__doc__ = _docs.of_class(cls)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks beyond exact sums; for some methods this follows from their parameters."""
        return frozenset()

    @property
    def least_records(self) -> int:
        """The least number of records that it plans for with these parameters: a method in blocks needs some for each."""
        return 1

    def rules(self, schema: Any) -> tuple[str, ...]:
        """The rules by which rows of an enforced unit can be bounded for it with these parameters: `units`, or fewer of them."""
        return self.units

    # what a method writes -------------------------------------------------------------------------------------------

    def about(self, schema: Any) -> Any:
        """What the rest is written in, from public facts: a design, a layout of cells, a column."""
        return schema

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        """name -> (statistic, its share of what may be spent), all drawn once, in one pass."""
        raise PlanError(f"{self.name} plans no statistics", "write statistics(about, relation), or plan and draw")

    def unreleased(self, about: Any) -> Mapping[str, Statistic]:
        """name -> what a draw aggregates and never releases, since what it releases follows from it: fine bins under coarse ones."""
        return {}

    def facts(self, about: Any) -> Mapping[str, Any]:
        """Fields of the plan that follow from public facts: target, intervals_for, constants, warnings."""
        return {"target": self.name, "intervals_for": self.intervals}

    def ranges(self, schema: Any) -> RangeStep | None:
        """The ranges of columns that are found before its sums, None for none. Override in methods that add numbers up."""
        return None

    def to_find(self, schema: Any) -> Mapping[str, Any]:
        """The columns and terms that have such ranges, by name. Override together with `ranges`."""
        return {}

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """From records: every noisy number through the meter. Returns public numbers, computed from noisy ones between the rounds.

        What is returned must be a function of what the meter gave back and of public facts: the audit compares it
        between neighbors under the same transcript. `meter.decline()` says that the mechanism declines.
        """
        names = tuple(plan.statistics)
        for name, total in zip(names, source.aggregate(*map(plan.statistic, names)), strict=True):
            meter.draw(name, total)
        return {}

    def table(self, release: Release, about: Any, options: ResultOptions) -> Result:
        """From the release alone: estimates, intervals, tests; the same numbers each time for one release and question."""
        raise PlanError(f"{self.name} reads no release", "write table(release, about, question), or infer")

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The same question without privacy, by the names of the table, on test data as the schema reads them. Never in a release.

        frame: a `confide.schema.CodedFrame`. `PlanError` where only a release determines the estimand.
        """
        raise PlanError(f"{self.name} states no non-private reference")

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Pairs of records (column -> value) that the audit should try: where one record moves the statistics most.

        schema: the bounds of the columns, when the records depend on them.
        """
        return ()

    # what few methods write -----------------------------------------------------------------------------------------

    def sharpened(
        self, schema: Any, margin: Any, cv: Any, privacy: Any = None, *, n: int | None = None, ledger: Any = None
    ) -> tuple[Method, Guarantee, tuple[str, ...]] | None:
        """What to plan where an accuracy is asked for: the method, its level, what a reader must know; None where one level decides alone.

        Override where a method divides its level among analyses of which each has its own margin of error.
        """
        return None

    def priced(self, schema: Any, relation: str, n: int | None = None) -> Guarantee | None:
        """What it costs, for anyone who plans without a privacy; None where a privacy must be given. n: of records, if it is public.

        Override where the parameters say how little noise is wanted.
        """
        return None

    def combine(self, releases: Sequence[Release], methods: Sequence[Method], options: ResultOptions | None) -> Result:
        """One result of several releases of one dataset, of which this method made the first and `methods` made each.

        Override where noise on the same numbers averages out. Raises `PlanError` for what is not combined.
        """
        names = ", ".join(method.name for method in methods)
        raise PlanError(f"counts and shares are combined, and means and totals of the same columns; got {names}")

    @classmethod
    def proposed(cls, formula: str, schema: Any, n: int, points: Sequence[float]) -> Mapping[str, Any]:
        """The settings with which `cf.advise` compares it, from public facts. `points`: where curves are compared, the
        middles of equal parts of the feature's range; () in tasks that are not of curves.

        Override where a parameter other than the formula has no default, or one that follows from n.
        """
        return {}

    def pools(
        self, questions: Mapping[str, Method], shares: Mapping[str, Fraction], schema: Any
    ) -> tuple[tuple[Pool, ...], tuple[str, ...]]:
        """Which questions of a publication gain by being one release, and what its plan says of them. Asked of the first of each kin.

        questions: those of its kin, by name; shares: of the publication's budget. Override where releases are views on the same sums.
        """
        return (), ()

    def from_pool(self, pool: Method, release: Release, schema: Any) -> Result:
        """Its result, from the release of the pool that answers it. Override together with `pools`."""
        raise PlanError(f"{self.name} is not answered by the release of another analysis", "release it separately")

    def overlaps(
        self, questions: Mapping[str, Method], shares: Mapping[str, Fraction], plans: Mapping[str, Plan], schema: Any
    ) -> tuple[str, ...]:
        """What the plan of a publication says of questions that are drawn apart and need not be. Asked of the first of each kin.

        questions, shares: as for `pools`; plans: of the parts of the publication. Override where one method can answer several questions.
        """
        return ()

    def worst_data(self, plan: Plan, schema: Any) -> Iterable[tuple[Any, Any]]:
        """Pairs of whole datasets, lists of records, that the audit should try.

        Override where the worst neighbors are more than a pair of records beside any others: close votes, blocks.
        """
        return ()

    def _design(self, schema: Any) -> Any:
        """The terms of its formula, by which a private choice scores its line; None where it has none. Override in methods of a line."""
        return None

    def repeated(self, source: Source, plan: Plan, noise: Noise) -> Callable[[int], NDArray[Any]] | None:
        """A function of a number of runs to so many outputs of its opaque release, (runs, numbers), drawn at once; None for none.

        Override where an audit that calls `draw` for each run would be too slow.
        """
        return None

    # what it gets ---------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """From public facts alone: the tree of budget items, the guarantee.

        n: the number of records, public under substitution; under "add-remove" a planning value that is published nowhere.
        """
        about, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        planned = self.statistics(about, allowance.relation)
        _check_statistics(self.name, planned)
        spends = tuple(allowance.spend(name, one, share) for name, (one, share) in planned.items())
        event = spends[0] if len(spends) == 1 else Composed(spends)
        live = {**self.unreleased(about), **{name: one for name, (one, _) in planned.items()}}
        return Plan.of(self, schema, allowance, event, live, n=n, **self.facts(about))

    def infer(self, release: Release, options: ResultOptions | None = None) -> Result:
        """`table`, of a question that the method answers; `PlanError` for any other."""
        if options is not None:
            options.only(*self.asks)
        found = self.table(release, self.about(release.plan.declared), options or NOTHING_ELSE)
        return shown(found, release)


def _check_statistics(name: str, planned: Any) -> None:
    """Refuse what is not a mapping of names to a statistic and its share of the cost."""
    for one in planned.values() if isinstance(planned, Mapping) else [planned]:
        if not (
            isinstance(one, tuple)
            and len(one) == 2
            and Statistic in type(one[0]).__mro__
            and isinstance(one[1], Fraction | int)
        ):
            raise PlanError(
                f"statistics of {name} must give names with a statistic and its share, a Fraction, of the cost",
                'write return {"sums": (Total(rows), Fraction(1))}',
            )


class FormulaMethod(Method):
    """Base of methods of a formula: what the rest is written in is its design. Fields: formula, term_bounds."""

    formula: str
    term_bounds: Mapping[str, tuple[float, float]] | None

    def about(self, schema: Any) -> Any:
        return self._design(schema)

    def _design(self, schema: Any) -> ModelMatrix:
        """The terms of the formula."""
        whole = Schema.of(schema)
        return ModelMatrix.of(self.formula, whole, term_bounds=self.term_bounds)
