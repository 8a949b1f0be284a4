"""The plan: all that a release will do, from public facts alone, printable before anything is charged.

`ResultOptions` holds the options of a result. It is frozen and can be written to JSON: the same release and options
give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from math import prod
from textwrap import wrap
from typing import Any, get_args

from confide._helpers import as_html, clean
from confide.core.allowance import Allowance, Proved
from confide.core.codec import LIVE, decode, encode, register
from confide.core.events import (
    Branches,
    BudgetItem,
    Composed,
    Cost,
    Event,
    OpaqueRelease,
    Test,
    event_from_dict,
    event_to_dict,
    exact_cost,
    leaves,
)
from confide.core.exact import digest, pack, unpack
from confide.core.files import read, written
from confide.core.lost_values import NAME as LOST
from confide.core.ranges import check_bounds
from confide.core.statistic import Statistic
from confide.core.units.privacy_unit import RULE, WHOLE, check_rows, counted_words, kept_words, unit_words
from confide.core.units.subgroup import Subset, in_subgroup
from confide.errors import PlanError, ReleaseError, SchemaError
from confide.guarantees import GDP, ApproxDP, Guarantee
from confide.guarantees.conversion import kind_words
from confide.guarantees.validation import is_count
from confide.guarantees.values import weakness
from confide.schema import Schema
from confide.schema.formulas.names import level_name

#: What a table covers: the population that the records are a sample of, or these very records.
INFERENCE_TARGETS = ("population", "dataset")
#: What intervals are about, in one line: a population that the records are a sample of, or these records.
INTERVALS_FOR = {
    "population": "the population: sampling error and privacy noise",
    "dataset": "exactly these records: privacy noise only, no sampling error",
}
TARGETS_ALLOWED = "population  the records are a sample of it\ndataset     exactly these records"


def checked_inference(inference: Any, call: str) -> str:
    """`inference` when it is one of `INFERENCE_TARGETS`; `PlanError` with both calls otherwise.

    call: what was called, such as "cf.tables.Counts(...".
    """
    if inference not in INFERENCE_TARGETS:
        missing = inference is None
        raise PlanError(
            "inference "
            + ("is required: what are the intervals about?" if missing else f"is one of two, got {inference!r}"),
            f"write {call}, inference='population')",
            allowed=TARGETS_ALLOWED,
            name="inference_missing" if missing else "inference_unknown",
        )
    return str(inference)


@dataclass(frozen=True)
class ResultOptions:
    """Options of a result, for `confide.infer`; None keeps what the plan says.

    Parameters
    ----------
    subset : tuple of str, optional
        Coefficients to keep, by name or by factor; the intercept stays. Smaller
        models of a linear regression with numeric columns have no intervals,
        except with SSP.
    contrasts : mapping of str to mapping of str to float, optional
        Combinations of coefficients, such as ``{"gap": {"sex[T.male]": 1.0}}``.
    kind : {"credible", "confidence"}, optional
        Kind of an interval: of a posterior, or of confidence.
    quantiles : tuple of float, optional
        Other quantiles than those of the plan, such as ``(0.1, 0.9)``.
    prior : str, optional
        Another prior of a credible interval, such as ``"beta(2, 5)"``.
    formula : str, optional
        Another formula, for methods that answer several from one release.
    loss : str, optional
        Another loss, for methods that answer several from one release.
    inference : {"population", "dataset"}, optional
        What the intervals of a table are about, if not what the plan says.

    Examples
    --------
    >>> ResultOptions(subset=("age", "educ")).to_dict()
    {'subset': ['age', 'educ']}
    """

    subset: tuple[str, ...] | None = None
    contrasts: Mapping[str, Mapping[str, float]] | None = None
    kind: str | None = None
    quantiles: tuple[float, ...] | None = None
    prior: str | None = None
    formula: str | None = None
    loss: str | None = None
    inference: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.subset, str):
            raise PlanError(
                f"subset must be a list of names, got the text {self.subset!r}", f"write subset=[{self.subset!r}]"
            )
        if self.subset is not None:
            object.__setattr__(self, "subset", tuple(self.subset))

    def to_dict(self) -> dict[str, Any]:
        """The fields that were set, JSON-safe."""
        return {f.name: pack(getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ResultOptions:
        """The inverse of `to_dict`."""
        return cls(**unpack(dict(data)))

    def only(self, *allowed: str) -> None:
        """Raise `PlanError` when a field outside `allowed` was set: a method calls it with the fields that it answers."""
        unknown = sorted(set(self.to_dict()) - set(allowed))
        if unknown:
            can = f"it answers: {', '.join(allowed)}" if allowed else "it takes no question: infer(release)"
            raise PlanError(f"this method does not answer {', '.join(unknown)}", f"{can}")


#: The question that keeps all that the plan says.
NOTHING_ELSE = ResultOptions()

register(ResultOptions, ResultOptions.to_dict, ResultOptions.from_dict)


# columns on a screen
_WIDEST = 80

_UNCOUNTED = "clipped and unread values are not counted"
_RANGES = "the ranges of {} are found first, for {:0.0%} of the cost; a value beyond counts as the nearest end"
_DELTA = (
    "delta = {:.3g} is above 1/n = {:.2g}: with that probability a release may protect nobody, and publishing one record in full would "
    "meet it; ask for a delta far below"
)


@dataclass(frozen=True)
class MethodId:
    """Which method made a plan: registered name, version, and its constructor's parameters."""

    name: str
    version: str
    parameters: Mapping[str, Any]


def method_parameters(method: Any) -> dict[str, Any]:
    """The constructor's parameters of a method, which is a frozen dataclass that stores and never computes.

    All of them, also those at their defaults, but for a field that takes no part in comparisons: who is told of
    progress is not a fact.
    """
    if not is_dataclass(method):
        raise PlanError(
            f"a method must be a frozen dataclass, got {type(method).__name__}; decorate it with @dataclass(frozen=True)"
        )
    told = {f.name for f in fields(method) if not f.compare}
    return {name: getattr(method, name) for name in parameters_of(type(method)) if name not in told}


class Lazy(Mapping[str, Any]):
    """A forecast that is made when it is looked at, so that a release pays nothing for it. make: gives it."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self.make = make

    @cached_property
    def table(self) -> Mapping[str, Any]:
        return self.make()

    def __getitem__(self, key: str) -> Any:
        return self.table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return repr(self.table)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self.table),)


def check_n(n: Any) -> None:
    """Raise `PlanError` for a number of records that is not allowed. A method whose forecast needs n before `Plan.of` calls it first."""
    if n is not None and not is_count(n):
        raise PlanError(f"n must be a whole number of records, from 0 to 2^53, got {n!r}")


def parameters_of(kind: Any) -> tuple[str, ...]:
    """The names of the parameters that a method's constructor takes: in their order, those by name alone after the others, `where` last."""
    own = sorted((f for f in fields(kind) if f.init), key=lambda f: (f.kw_only, f.name == "where"))
    return tuple(f.name for f in own)


@dataclass(frozen=True, eq=False)
class Plan:
    """All public facts of a release; made by `confide.plan`.

    `sha256` is the plan ID. Two plans are equal when their IDs are.

    Parameters
    ----------
    method : MethodId
        Name, version and parameters of the method.
    schema : mapping
        The schema as a dict.
    requested : Guarantee
        Guarantee that was asked for.
    guarantees : tuple of Guarantee
        What the release states: first the native guarantee, then what follows
        from it.
    event : Event
        What is drawn: the tree of budget items.
    options : ResultOptions, optional
        Options of the result that the plan fixes.
    passes : int, default 1
        Passes over the records.
    n : int, optional
        Public number of records, under substitution only.
    public_inputs : mapping of str to str
        Digests of further public inputs.
    constants : mapping
        Public numbers that the method computed, by name.
    target : str, default ""
        The estimand, in words.
    intervals_for : str, default ""
        What the intervals account for.
    warnings : tuple of str, default ()
        What to know before the release.
    children : mapping of str to Plan
        In a publication: the plan of each analysis.
    statistics : mapping of str to Statistic
        The live record maps of a plan that was just made. A loaded plan has
        none.
    forecast : mapping
        Expected standard errors. Live: in no file, digest or release.
    notes : tuple of str, default ()
        Remarks on the forecast. Live, too.
    planned_n : int, optional
        Number of records of the forecast. Live, too, because it need not be
        public.
    made_for : Schema, optional
        The schema as the object that `schema` was written from.
    clipped : Schema, optional
        The schema with the ranges that a release found.

    Notes
    -----
    Before a loaded plan is charged, confide makes it again from its method,
    schema and request, and believes no number in the file.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> plan = cf.plan(cf.tables.Means("x", inference="population"), schema, cf.GDP(0.5))
    >>> cf.Plan.from_json(plan.to_json()) == plan
    True
    """

    method: MethodId
    schema: Mapping[str, Any]
    requested: Guarantee
    guarantees: tuple[Guarantee, ...]
    event: Event
    options: ResultOptions | None = None
    passes: int = 1
    n: int | None = None
    public_inputs: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    intervals_for: str = ""
    warnings: tuple[str, ...] = ()
    children: Mapping[str, Plan] = field(default_factory=dict, metadata=LIVE)  # written by hand, without the schema
    statistics: Mapping[str, Statistic] = field(default_factory=dict, repr=False, metadata=LIVE)
    forecast: Mapping[str, Any] = field(default_factory=dict, repr=False, metadata=LIVE)
    notes: tuple[str, ...] = field(default=(), repr=False, metadata=LIVE)
    planned_n: int | None = field(default=None, repr=False, metadata=LIVE)
    made_for: Schema | None = field(default=None, repr=False, metadata=LIVE)
    clipped: Schema | None = field(default=None, repr=False, metadata=LIVE)

    @classmethod
    def of(
        cls,
        method: Any,
        schema: Any,
        allowance: Allowance | Proved,
        event: Event,
        statistics: Mapping[str, Statistic],
        *,
        n: int | None = None,
        **facts: Any,
    ) -> Plan:
        """Make a plan for a method; for authors of methods.

        Parameters
        ----------
        method : Method
            The method.
        schema : Schema
            Public description of the data.
        allowance : Allowance or Proved
            What may be spent, and how it is proved.
        event : Event
            What is drawn.
        statistics : mapping of str to Statistic
            The record maps.
        n : int, optional
            Number of records; kept as a public fact under substitution alone.
            Otherwise it shows only in `forecast` and `notes`.
        **facts : object
            Further fields, such as `passes`, `constants`, `target`,
            `intervals_for`.

        Returns
        -------
        Plan
            The plan.
        """
        check_n(n)
        bare = schema.bare
        if not bare.plain:
            check_rows(method, bare)
        asked = allowance.requested
        if n and isinstance(asked, GDP | ApproxDP) and asked.delta > 1 / n:
            facts["notes"] = (*facts.get("notes", ()), _DELTA.format(asked.delta, 1 / n))
        parameters = method_parameters(method)
        step = allowance.step if isinstance(allowance, Allowance) else None
        check_bounds(method, bare, statistics, step)
        if isinstance(allowance, Allowance) and allowance.counts_lost:
            event, statistics, names = allowance.with_lost(event, statistics, bare, parameters)
            if names:
                facts["constants"] = {**facts.get("constants", {}), LOST: names}
        elif method.counts_lost:
            facts["warnings"] = (*facts.get("warnings", ()), _UNCOUNTED)
            facts["constants"] = {**facts.get("constants", {}), LOST: ()}
        if isinstance(allowance, Allowance) and step is not None:
            event, statistics = allowance.with_ranges(event, statistics)
            facts["passes"] = facts.get("passes", 1) + 1
            facts["notes"] = (*facts.get("notes", ()), _RANGES.format(", ".join(step.columns), float(step.share)))
        guarantees = allowance.guarantees(event)
        if isinstance(allowance, Allowance) and allowance.weighted:
            statistics = {name: allowance.bounded(one) for name, one in statistics.items()}
            facts["constants"] = {**facts.get("constants", {}), RULE: "weight"}
        if parameters.get("where") is not None:
            event, statistics = in_subgroup(method, schema, allowance.relation, event, statistics)
            facts["target"] = _of_subgroup(facts.get("target", ""), method.where)
        public = bare.to_dict()
        if not bare.plain:
            constants = facts.get("constants", {})
            facts["target"] = facts.get("target", "") + counted_words(
                public, constants.get(RULE), whole=WHOLE in constants
            )
        return cls(
            method=MethodId(method.name, method.version, parameters),
            schema=public,
            requested=allowance.requested,
            guarantees=guarantees,
            event=event,
            statistics=dict(statistics),
            n=None if allowance.relation == "add-remove" else n,
            planned_n=n,
            made_for=bare,
            **facts,
        )

    @property
    def declared(self) -> Schema:
        """The schema as an object, with the ranges that a release found."""
        return self.asked if self.clipped is None else self.clipped

    @cached_property
    def asked(self) -> Schema:
        """The schema as it was asked with; for a plan from a file it is read from the plan's facts. `ReleaseError` where they hold none."""
        if self.made_for is not None:
            return self.made_for
        try:
            return Schema.from_dict(self.schema)
        except SchemaError as error:
            raise ReleaseError(
                f"the schema of the plan in this file is damaged: {error.problem}", "ask for the original"
            ) from None

    @property
    def where(self) -> str | None:
        """The subgroup that the plan is about, as it was written; None for all records."""
        return self.method.parameters.get("where")

    @property
    def rule(self) -> str | None:
        """ "weight" where all rows of an enforced unit count by weight; None otherwise."""
        return self.constants.get(RULE)

    @property
    def kept(self) -> str:
        """Which rows of a unit count, where the others are truncated; "" where all count."""
        return kept_words(self.schema, self.rule, whole=WHOLE in self.constants)

    def titled(self, target: str) -> str:
        """The estimand, with its subgroup and with how units count in it, once."""
        counted = ""
        if not self.declared.plain:
            counted = counted_words(self.schema, self.rule, whole=WHOLE in self.constants)
        bare = target.replace(counted, "")
        return (bare if self.where is None else _of_subgroup(bare, self.where)) + counted

    @property
    def relation(self) -> str:
        """The neighboring relation of every statement in the plan."""
        relation = self.guarantees[0].relation
        assert relation is not None
        return relation

    @property
    def guarantee(self) -> Guarantee:
        """The native guarantee."""
        return self.guarantees[0]

    def spend(self, name: str) -> BudgetItem:
        """Give the budget item of a name."""
        for leaf in leaves(self.event):
            if isinstance(leaf, BudgetItem) and leaf.name == name:
                return leaf
        raise PlanError(
            f"the plan has no spend {name!r}; it has: {', '.join(leaf.name for leaf in leaves(self.event))}"
        )

    def statistic(self, name: str) -> Statistic:
        """Give the live statistic of a name; `PlanError` on a plan that was loaded from a file and not made again."""
        if name not in self.statistics:
            raise PlanError(
                f"the plan holds no statistic {name!r}; a plan from a file is made again by confide.release(plan, source, ...)"
            )
        return self.statistics[name]

    def to_dict(self) -> dict[str, Any]:
        """Give every public fact as JSON types.

        Returns
        -------
        dict
            What `from_dict` reads back.
        """
        children = [_child_to_dict(name, one) for name, one in self.children.items()]
        return {**encode(self), **({"children": children} if children else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` wrote, without live statistics.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Plan
            The plan.
        """
        children = {
            one["name"]: cls.from_dict({**one["plan"], "schema": data["schema"]}) for one in data.get("children", ())
        }
        return replace(decode(cls, data), children=children)

    @property
    def sha256(self) -> str:
        """Digest of every public fact."""
        return digest(self.to_dict())

    def to_json(self) -> str:
        """Give the plan as a file for the steward: `confide release plan.json
        data.parquet`.

        Returns
        -------
        str
            The JSON text.

        Raises
        ------
        PlanError
            No file can hold the plan.
        """
        try:
            return written("plan", self.to_dict())
        except ReleaseError as error:
            raise PlanError(
                f"the plan of {self.method.name!r} is beyond what a file of confide holds, so that its release could never be read: {error}"
            ) from None

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan's file.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        ReleaseError
            The file is damaged, of another format, or not one that confide
            writes.
        """
        return read("plan", text, cls.from_dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def summary(self, *, verbose: bool = False, budget: str = "") -> str:
        """Give the plan as text, at most 80 columns wide.

        It says what to expect, what it costs, whom it protects, and the
        expected standard errors.

        Parameters
        ----------
        verbose : bool, default False
            Whether to print every budget item, the simulation behind the
            forecast, all that the intervals account for, and the whole plan ID,
            too.

        Returns
        -------
        str
            The text.
        """
        facts = self._outlooks
        facts += [("Cost", text) for text in [budget, kind_words(self.requested)] if text]
        others = [one for one in self.guarantees if verbose and one != self.requested]
        facts += [("Implies", kind_words(one)) for one in others]
        protects = unit_words(self.schema, self.rule, whole=WHOLE in self.constants, relation=self.relation)
        facts += [("Protects", protects)]
        weak = [("Caution", text) for text in [weakness(self.requested)] if text]
        after = [*weak, *(("Caution", text) for text in self.warnings), *(("Note", text) for text in self.notes)]
        after += [("Intervals for", self.intervals_for if verbose else self._covered)]
        if verbose:
            after += [("Scenarios", self.forecast["assumes"])] if "note" in self.forecast else []
            after += [("Passes", f"{self.passes} over the records")]
        more = "" if verbose else f"{'(budget items, scenarios: summary(verbose=True))':>{_WIDEST - 19 - 4}}"
        after += [("Plan ID", self.sha256)] if verbose else []
        lines = [f"Plan: {self._title}", "", *_labelled(facts), *self._errors]
        for name, child in self.children.items():
            lines += ["", f"{name}: {child._title}", "", *_labelled([("Cost", kind_words(child.guarantee))])]
            lines += [*_labelled(child._outlooks), *child._errors]
            told = child.intervals_for if verbose else child._covered
            said = [("Intervals for", told), *(("Caution", text) for text in child.warnings)]
            lines += ["", *_labelled([*said, *(("Note", text) for text in child.notes)])]
        if verbose:
            head = f"{'budget item':<18}{'share':>8}{'cost':>22}{'noise SD / sensitivity':>23}{'numbers':>9}"
            lines += ["", head, "-" * len(head), *_event_lines(self.event, exact_cost(self.event))]
        ends = [*_labelled(after), *([] if verbose else [f"{'Plan ID':<11}{self.sha256[:8]}{more}"])]
        return "\n".join(clean(line) for text in [*lines, "", *ends] for line in _wrapped(text))

    def _repr_html_(self) -> str:
        return as_html(self.summary())

    def expects(self) -> str:
        """The chance of intervals and the expected standard errors, as `summary` has them; "" where nothing is predicted."""
        return "\n".join(clean(line) for line in [*(text for _, text in self._outlooks), *self._errors]).strip()

    @property
    def _outlooks(self) -> list[tuple[str, str]]:
        if not self.forecast:
            return []
        told = [("Forecast", text) for text in _outlooks(self.forecast, shares=self.where is not None)]
        needed = getattr(self.forecast, "needed", "")
        return [*told, ("Needed", needed)] if needed else told

    @property
    def _covered(self) -> str:
        """What the intervals are about: of a method that is told, what it was told."""
        return INTERVALS_FOR.get(str(self.method.parameters.get("inference")), self.intervals_for)

    @property
    def _title(self) -> str:
        """The title that results have, in running text; the estimand where none is known."""
        title = str(self.forecast.get("title", ""))
        if not title:
            return self.target
        name = title.partition(" ")[0] in self.declared.names or self.target[:1].isupper()
        return self.titled(title if name else f"{title[:1].lower()}{title[1:]}")

    @property
    def _errors(self) -> list[str]:
        if not self.forecast:
            return []
        # what the numbers are of, or why they are rough, is part of them; the family of scenarios is for verbose
        note = self.forecast.get("note", self.forecast["assumes"])
        told = [line for part in note.splitlines() for line in wrap(part, _WIDEST, break_long_words=False)]
        # what goes on in small letters says what the numbers above are of; a sentence stands apart
        return ["", *_error_lines(self.forecast), *([""] if note[:1].isupper() else []), *told]

    def published(self) -> Plan:
        """This plan without anything live, because a record map may hold more than the file says and a forecast a number
        that is not public.
        """
        children = {name: one.published() for name, one in self.children.items()}
        return replace(self, children=children, statistics={}, forecast={}, notes=(), planned_n=None)

    def outlook(self, other: Plan, n: int | None) -> Plan:
        """This plan with the forecast and notes of another, which was made for n records and typical spreads. No fact changes."""
        children = {name: one.outlook(other.children[name], n) for name, one in self.children.items()}
        return replace(self, children=children, forecast=other.forecast, notes=other.notes, planned_n=n)

    def __str__(self) -> str:
        return self.summary()


def _child_to_dict(name: str, child: Plan) -> dict[str, Any]:
    """An analysis of a publication, which is about the records of the whole, so only the whole holds the schema."""
    return {"name": name, "plan": {key: value for key, value in child.to_dict().items() if key != "schema"}}


def _of_subgroup(target: str, where: str) -> str:
    named = f", where {where.strip()}"
    return target if named in target else target + named


def _labelled(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Facts with their labels, in lines with a hanging indent."""
    lines: list[str] = []
    before = ""
    for label, text in facts:
        wide = max(11, len(label) + 2)
        lines += wrap(
            clean(text),
            _WIDEST,
            initial_indent=f"{'' if label == before else label:<{wide}}",
            subsequent_indent=" " * wide,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [label]
        before = label
    return lines


def _wrapped(line: str) -> list[str]:
    """A sentence in lines of at most `_WIDEST` columns, what follows the first one indented; a row of a table stays as it is."""
    if len(line) <= _WIDEST or "  " in line.strip():
        return [line]
    return wrap(line, _WIDEST, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _event_lines(event: Event, total: Cost | None, indent: str = "") -> list[str]:
    """The budget items in order; the branches of a choice one below the other, of which exactly one is drawn."""
    match event:
        case Branches(branches):
            lines = []
            for i, branch in enumerate(branches):
                lines.append(f"{indent}{'either' if i == 0 else 'or'} (by what came out before)")
                lines += _event_lines(branch, total, indent + "  ")
            return lines
        case Composed(parts):
            return [line for run in _runs(parts) for line in _run_lines(run, total, indent)]
        case Test(on, then, delta, shown):
            what = "which says whether and how to go on" if shown else "and if this test passes"
            failing = f" (may fail with probability {float(delta):.3g})" if delta else ""
            return [
                *_event_lines(on, total, indent),
                f"{indent}{what}{failing}",
                *_event_lines(then, total, indent + "  "),
            ]
    return _run_lines((event,), total, indent)


def _runs(parts: tuple[Event, ...]) -> list[tuple[Event, ...]]:
    """Budget items that differ only in the number that ends their name, together; anything else separately."""
    runs: list[tuple[Event, ...]] = []
    for part in parts:
        last = runs[-1][0] if runs else None
        if isinstance(part, BudgetItem) and isinstance(last, BudgetItem) and _unnumbered(part) == _unnumbered(last):
            runs[-1] = (*runs[-1], part)
        else:
            runs.append((part,))
    return runs


def _unnumbered(spend: BudgetItem) -> BudgetItem:
    return replace(spend, name=spend.name.rstrip("0123456789"))


def _run_lines(run: tuple[Event, ...], total: Cost | None, indent: str) -> list[str]:
    first, last = run[0], run[-1]
    if isinstance(first, BudgetItem) and isinstance(last, BudgetItem):
        name = first.name if len(run) == 1 else f"{first.name} to {last.name[len(_unnumbered(last).name) :]}"
        return _spend_lines(first, indent + name, len(run), total)
    if isinstance(first, OpaqueRelease):
        own = f"{indent + first.name:<18}{first.guarantee!s}"
        return [own] if first.hiding is None else [own, *_spend_lines(first.hiding, f"{indent}  hidden by", 1, total)]
    return (
        _event_lines(first, total, indent)
        if isinstance(first, (Branches, Composed, Test))
        else [line for leaf in leaves(first) for line in _run_lines((leaf,), total, indent)]
    )


def _spend_lines(spend: BudgetItem, name: str, times: int, total: Cost | None) -> list[str]:
    """A row of the budget; a name that leaves no room for its cost has a line above it."""
    cost = spend.exact_cost
    # a Gaussian spend inside a total in rho has no share that a reader could check; it is left out
    share = f"{float(times * cost.amount / total.amount):.1%}" if total is not None and total.kind is cost.kind else ""
    numbers = cost.guarantee("add-remove").numbers()
    level = getattr(cost.guarantee("add-remove"), numbers[0])
    size = prod(spend.shape)
    if spend.norm == "frobenius":
        size = spend.shape[0] * (spend.shape[0] + 1) // 2
    sd = spend.noise_sd
    ratio = "" if sd is None else f"{sd / float(spend.sensitivity * spend.step):.4g}"
    each = f"{numbers[0]} {level:.4g}{' each' if times > 1 else ''}"
    above = [name] if len(f"{name:<18}{share:>8} {each}") > 48 else []
    left = f"{'' if above else name:<18}{share:>8}"
    return [*above, f"{left}{each:>{48 - len(left)}}{ratio or 'a choice':>23}{1 if not ratio else size:>9}"]


#: What a forecast holds beside one table for each number of records. "value": the numbers themselves, where public facts tell them;
#: "uneven": what cells get that are not as large as the forecast has them; "note": how to read its numbers, where "assumes" is long;
#: "taken": what stands for spreads that the schema does not state; "title": of the results.
BESIDE = ("assumes", "taken", "note", "title", "of", "valid", "answered", "price", "between", "value", "uneven")


def _error_lines(forecast: Mapping[str, Any]) -> list[str]:
    """The table of expected standard errors."""
    counts = [key for key in forecast if key not in BESIDE]
    between = forecast.get("between", {})
    cells = {
        name: [_expected(forecast[key][name], between.get(key, {}).get(name)) for key in counts]
        for name in forecast[counts[0]]
    }
    width = max(*(len(level_name(name)) for name in cells), 4) + 2
    heads = [f"n = {_count(key)}" for key in counts]
    heads = [f"expected std. err., {heads[0]}"] if len(heads) == 1 else heads
    wide = 2 + max(len(cell) for row in [heads, *cells.values()] for cell in row)
    above = [] if len(counts) == 1 else ["expected std. err."]
    head = "term".ljust(width) + "".join(f"{one:>{wide}}" for one in heads)
    rows = [f"{level_name(name):<{width}}" + "".join(f"{cell:>{wide}}" for cell in row) for name, row in cells.items()]
    return [*above, head, "-" * len(head), *rows]


def _outlooks(forecast: Mapping[str, Any], *, shares: bool = False) -> list[str]:
    """What to expect at each number of records; shares: also which share of the variance is privacy noise."""
    told: list[str] = []
    counts = [key for key in forecast if key not in BESIDE]
    for key in counts:
        if key in forecast.get("valid", {}):
            part = forecast.get("answered", {}).get(key)
            whole, each = forecast.get("of", ("all coefficients", "coefficients"))
            price = forecast["price"].get(key)
            told.append(_outlook(forecast["valid"][key], whole) + (f", n = {_count(key)}" if len(counts) > 1 else ""))
            if part is not None and part > forecast["valid"][key] and forecast["valid"][key] < 0.9:
                told.append(f"{part:.0%} of the {each} have an interval, over all scenarios")
            if price is not None and forecast["valid"][key] > 0.2:
                times = "about those" if price < 1.05 else f"about {price:.2g} times those"
                told.append(f"Standard errors {times} without privacy")
            if shares and price is not None:
                told.append(f"Privacy share {1 - 1 / price**2:.0%}")
    return told


def _count(key: str) -> str:
    """A number of records, of which a forecast's keys may have commas."""
    return f"{int(key):,}" if key.isdecimal() else key


def _expected(cell: Any, between: tuple[float, float] | None = None) -> str:
    """A number and between which it lies, an interval, or none."""
    if cell is None:
        return "n/a"
    if between is not None:
        return f"{_figure(cell)} ({_expected(between)})"
    return f"{_figure(cell[0])} to {_figure(cell[1])}" if isinstance(cell, tuple) else _figure(cell)


def _figure(value: float) -> str:
    """Three figures, with commas and without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


def _outlook(chance: float, whole: str) -> str:
    """The chance of status "valid", in words. whole: what has an interval then, such as "all coefficients"."""
    words = "low" if chance < 0.5 else "medium" if chance < 0.9 else "high"
    return f"Valid intervals for {whole}: chance {words} ({chance:.0%} of scenarios)"


for _kind in (Event, *get_args(Event)):
    register(_kind, event_to_dict, event_from_dict)
register(Plan, Plan.to_dict, Plan.from_dict)


def check_read(made: Plan, where: str | None) -> None:
    """Raise `PlanError` for a plan that is about other records than its method asks for, as one is that was not made by `Plan.of`."""
    read = where is None or all(isinstance(one, Subset) or one.by_unit for one in made.statistics.values())
    if made.where != where or not read:
        raise PlanError(
            f"the plan of {made.method.name!r} is not about the subgroup where={where!r}: its record maps cannot exclude the "
            "others",
            "leave where out, or make the plan in the method with Plan.of",
        )
