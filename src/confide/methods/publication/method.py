"""A publication: several analyses of one dataset; one plan of plans, one charge, one release file, one report.

Guarantee: mu-GDP for all analyses together, under either relation (the methods' own). Each analysis is a release of its method at a mu_k of
its share of the cost. It is the largest double with mu_k^2 <= share_k mu**2, exactly, in fractions that add up to 1. A method with a pure
guarantee gets the epsilon whose mu(epsilon) is at most mu_k. Composition is adaptive, and costs add up exactly: the event is the `Composed`
of the analyses' own. Ranges that analyses share are drawn first, at a share of mu**2; above, mu**2 is what they leave. Source:
Dong, Roth, Su 2022, Corollary 3.3; pure guarantees enter by `PureDP.to_gdp`.

The analyses are drawn in lock step: whatever they ask of the records at the same time is one pass (`core.meter`). An analysis that
fails after the charge leaves the others. That it failed may depend on the records and no guarantee includes it, as the release states.

A publication as a file is TOML: its analyses with the schema, the privacy and the wanted precision.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil, sqrt
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from confide import engine
from confide.core import (
    Allowance,
    Meter,
    Method,
    OpaqueRelease,
    Plan,
    Pool,
    Release,
    Result,
    ResultOptions,
    Source,
    statements_hold,
)
from confide.core.events import Composed, Event, exact_cost
from confide.core.lost_values import NAME as LOST, counted_together, shared_public
from confide.core.meter import in_rounds
from confide.core.plan import method_parameters
from confide.core.ranges import ColumnRange, in_ranges, spend_name, to_public
from confide.core.release import of_parts, prefixed, statistics_of
from confide.core.units.contributions import counted_once, shown
from confide.core.units.privacy_unit import protected
from confide.errors import ConfideError, FileError, PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.guarantees.validation import is_number, sqrt_down
from confide.margins import Targets, smallest
from confide.methods.publication.analyses import (
    EXAMPLE,
    faulty,
    methods_of,
    needs_its_own,
    pairs,
    request_of,
    stored,
    weights_of,
)
from confide.results.pages.publication import Report
from confide.schema import CodedFrame, Schema
from confide.schema.formulas.conditions import overlap, parse_predicate
from confide.sums.ranges import ColumnRanges, RangedMethod, Width, share_of

# What questions without an exact Gaussian cost leave of the level, so that their sum, rounded up in doubles, still fits: 2^-40 of mu.
_LEFT = 1 - 2.0**-40
_MOST = 1_000


@dataclass(frozen=True)
class Publication(Method):
    """Plan, charge and release several analyses together, in one file.

    The analyses share one privacy cost, one release file and one report. A
    subgroup is analyzed with `where` in its analysis.

    Parameters
    ----------
    analyses : mapping of str to Method
        Analyses by name.
    shares : mapping of str to float, optional
        Weight of each analysis in the cost, 1 by default. An analysis of weight 2
        gets twice the share of one of weight 1.
    pool : bool, default True
        Whether tables of the same records are released together where each gains.
        The plan states which.

    Raises
    ------
    PlanError
        An analysis, a name or a share is invalid.

    Notes
    -----
    Guarantee: mu-GDP for all analyses together, under either relation. Each
    analysis is a release of its method at its part mu_k. The squares of the parts
    add up to at most the square of mu, exactly. Composition is adaptive.
    A method with a pure guarantee gets an epsilon that implies at most mu_k.
    Where analyses share ranges of columns, these cost a tenth or a fifth first.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84,
    Corollary 3.3.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3),
    ...                     "z": cf.Categorical(["a", "b"])})
    >>> analyses = {"line": cf.regression.LeastSquares("y ~ x"),
    ...             "classes": cf.classification.ClassMeans("z ~ x")}
    >>> both = cf.Publication(analyses, shares={"line": 3})
    >>> plan = cf.plan(both, schema, cf.GDP(1.0))
    >>> [round(child.guarantee.mu, 4) for child in plan.children.values()]
    [0.8216, 0.4743]
    >>> plan.guarantee.mu
    1.0
    """

    analyses: Any
    shares: Mapping[str, Any] | None = None
    pool: bool = True

    name: ClassVar[str] = "publication"
    family: ClassVar[str] = "publications"
    source: ClassVar[str] = "exact composition of Gaussian releases (Dong, Roth, Su 2022, Corollary 3.3)"
    intervals: ClassVar[str] = "those of its analyses"
    # whether several rows of a unit are too many, and by which rule they count, is for each question to say
    unit_meat: ClassVar[bool] = True
    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    designs: ClassVar[bool] = True

    _made: Mapping[str, Method] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        given = self.analyses
        asked = tuple(stored(name, one) for name, one in pairs(given))
        names = [one["analysis"] for one in asked]
        if not 1 <= len(asked) <= _MOST:
            raise PlanError(f"a publication has 1 to {_MOST:,} analyses, got {len(asked)}", f"{EXAMPLE}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanError(f"a publication has each name once, got {twice!r} twice", "rename one of the analyses")
        made = methods_of(asked)
        for name, method in made.items():
            if method.bounds == "shared":
                raise PlanError(
                    f"analysis {name!r}: bounds must be 'auto', 'declared' or 'found', got 'shared'",
                    "write bounds='auto'",
                )
        # with all parameters, so that a question is the same however it was given
        put(self, "analyses", tuple(stored(name, method) for name, method in made.items()))
        put(self, "shares", weights_of(self.shares, names))
        put(self, "_made", made)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The analyses by name, in their order."""
        return self._made

    @property
    def fractions(self) -> dict[str, Fraction]:
        """The share of the cost that each analysis gets, exactly; they add up to 1."""
        given = self.shares or {}
        weights = {name: Fraction(given.get(name, 1)) for name in self._made}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    # plan -----------------------------------------------------------------------------------------------------------

    def about(self, schema: Any) -> Any:
        """The schema; `PlanError` for a subgroup of all analyses."""
        if self.where is not None:
            raise PlanError(
                f"a publication has subgroups in its analyses, got where={self.where!r}",
                f'write it in the methods, as in cf.regression.LeastSquares("y ~ x", where={self.where!r})',
            )
        return schema

    def _sharing(self, schema: Any) -> dict[str, RangedMethod]:
        """The analyses of all records whose columns have one range; none where fewer than two could share one."""
        apart: dict[str, RangedMethod] = {}
        columns: list[str] = []
        for name, (method, _) in self._parts(self._pooled(schema)[0]).items():
            if isinstance(method, RangedMethod) and method.where is None and method.bounds in ("auto", "found"):
                # one that cannot be planned says so with its name, as all of them do: in `plan`
                with suppress(ConfideError):
                    columns += method.to_find(schema)
                    apart[name] = method
        return apart if len(set(columns)) < len(columns) else {}

    def ranges(self, schema: Any) -> ColumnRanges | None:
        """Found once, for all analyses that share a column: the widest that one of them asks for."""
        sharing = self._sharing(schema)
        columns = {name: own for method in sharing.values() for name, own in method.to_find(schema).items()}
        if not columns:
            return None

        share = share_of(columns, of_means=any(method.of_means for method in sharing.values()))
        return ColumnRanges(columns, share, partial(_widths, sharing, schema))

    def _found(self, schema: Schema, plan: Plan, meter: Meter) -> dict[str, dict[str, ColumnRange]]:
        """The ranges of the columns of each analysis that shares them: one for all means and totals, one for all coefficients."""
        found: dict[str, dict[str, ColumnRange]] = {}
        sharing, step = self._sharing(schema), self.ranges(schema)
        if step is None:
            return found
        for kind in (True, False):
            alike = {name: method for name, method in sharing.items() if method.of_means is kind}
            keep = all(method.bounds == "auto" for method in alike.values())
            own = replace(step, widths=partial(_widths, alike, schema), keep=keep)
            columns = dict.fromkeys(name for method in alike.values() for name in method.to_find(schema))
            ranges = {name: own.found(name, meter.drawn(spend_name(name)), plan) for name in columns}
            found |= {name: {one: ranges[one] for one in method.to_find(schema)} for name, method in alike.items()}
        return found

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The plans of all analyses, as one. `PlanError` names every analysis that cannot be planned, with its reason."""
        self.about(schema)
        allowance = replace(_Whole.of(privacy, self, schema), weighted=False)
        level = allowance.level
        assert isinstance(level, GDP)
        whole = self._level(level.mu) * (1 if allowance.step is None else 1 - allowance.step.share)
        children, warnings = {}, []
        problems: list[tuple[str, ConfideError]] = []
        pooled, told = self._pooled(schema)
        for name, (method, share) in self._drawn(pooled, schema).items():
            request = request_of(method, sqrt_down(share * whole), allowance.relation)
            if isinstance(request, PureDP):
                warnings.append(
                    f"{name}: {method.name} has a pure guarantee and is paid as {request.to_gdp()}, which costs more than it gives"
                )
            try:
                children[name] = engine.plan(method, schema, request, n=n)
            except PrivacyError as error:
                problems.append((name, needs_its_own(error, request)))
            except ConfideError as error:
                problems.append((name, error))
        if problems:
            raise faulty(problems)
        children, counts, paid = counted_together(counted_once(children))
        event, statistics = of_parts(children), statistics_of(children)
        if counts is not None:
            assert isinstance(event, Composed)
            event = Composed((allowance.spend(LOST, counts, paid / allowance.amount), *event.parts))
            statistics = {LOST: counts, **statistics}
        return Plan.of(
            self,
            schema,
            _assuming(allowance, children.values()),
            event,
            statistics,
            n=n,
            passes=max(child.passes for child in children.values()),
            target=f"{len(self._made)} {'analysis' if len(self._made) == 1 else 'analyses'}: {', '.join(self._made)}",
            intervals_for="the target of each analysis, as its section states; intervals are for each analysis separately, not for all",
            warnings=tuple(warnings),
            children=children,
            notes=(
                *told,
                *self._overlaps(children, schema),
                *self._crossings(schema),
            ),
        )

    def _kins(self) -> list[dict[str, Method]]:
        """The analyses by name, those of a kin together."""
        found: dict[str, dict[str, Method]] = {}
        for name, method in self._made.items():
            if method.kin:
                found.setdefault(method.kin, {})[name] = method
        return list(found.values())

    def _pooled(self, schema: Any) -> tuple[tuple[Pool, ...], tuple[str, ...]]:
        """The analyses that are released as one, with notes; none of a kin of which one cannot be planned."""
        pools: list[Pool] = []
        notes: list[str] = []
        for analyses in self._kins() if self.pool else ():
            first = next(iter(analyses.values()))
            with suppress(ConfideError):
                found, told = first.pools(analyses, self.fractions, schema)
                pools += found
                notes += told
        return tuple(pools), tuple(notes)

    def _overlaps(self, plans: Mapping[str, Plan], schema: Any) -> Iterator[str]:
        """Notes on analyses that are drawn apart and need not be."""
        for analyses in self._kins():
            yield from next(iter(analyses.values())).overlaps(analyses, self.fractions, plans, schema)

    def _parts(self, pooled: Iterable[Pool]) -> dict[str, tuple[Method, Fraction]]:
        """What is drawn, with its share of the cost: the analyses, a pool at the place of its first one."""
        of = {name: pool for pool in pooled for name in pool.names}
        found: dict[str, tuple[Method, Fraction]] = {}
        for name, method in self._made.items():
            pool = of.get(name)
            if pool is None:
                found[name] = method, self.fractions[name]
            elif name == pool.names[0]:
                found[pool.name] = pool.method, sum((self.fractions[own] for own in pool.names), Fraction(0))
        return found

    def _drawn(self, pooled: Iterable[Pool], schema: Any) -> dict[str, tuple[Method, Fraction]]:
        """The same, those that share ranges as they are drawn."""
        sharing = self._sharing(schema)
        return {
            name: (replace(method, bounds="shared") if name in sharing else method, share)  # type: ignore[call-arg]
            for name, (method, share) in self._parts(pooled).items()
        }

    def _crossings(self, schema: Any) -> tuple[str, ...]:
        """Analyses that are one analysis of disjoint subgroups, and would cost once."""
        alike: dict[str, list[str]] = {}
        for one in self.analyses:
            own = {key: value for key, value in one["parameters"].items() if key != "where"}
            if one["parameters"].get("where") is not None:
                alike.setdefault(repr((one["method"], sorted(own.items(), key=repr))), []).append(one["analysis"])
        notes = []
        for names in alike.values():
            asked = [parse_predicate(str(self._made[name].where), schema) for name in names]
            found = overlap(asked) if len(names) > 1 else None
            if found is not None and found[0]:
                all_of = "all records" if found[1] else "records"
                notes.append(
                    f"{', '.join(names)} ask the same of subgroups that divide {all_of}: one crossing, not {len(names)} analyses. As one "
                    "analysis, with the column in its formula or table, they cost once, and each has the budget of all"
                )
        return tuple(notes)

    def sharpened(
        self, schema: Any, margin: Any, cv: Any, privacy: Any = None, *, n: int | None = None, ledger: Any = None
    ) -> tuple[Publication, GDP, tuple[str, ...]]:
        """The same analyses with the shares that reach a wanted precision at least cost.

        Parameters
        ----------
        schema : Schema
            Public description of the data.
        margin : mapping of str to mapping or float, or float
            Margins of error by name of the analysis. One number is for all.
        cv : mapping of str to mapping or float, or float
            Coefficients of variation by name of the analysis. One number is for all.
        privacy : Guarantee, optional
            Kind and neighboring relation of the guarantee.
        n : int, optional
            Number of records.
        ledger : Ledger, optional
            Ledger whose relation the plan is made for.

        Returns
        -------
        tuple of (Publication, GDP, tuple of str)
            The publication, the least guarantee, and notes for the reader.

        Raises
        ------
        PlanError
            An analysis has no target, or cannot be planned for it.
        """
        if self.shares is not None:
            raise PlanError("margin and shares both divide the budget", "give one of them")
        cv = dict.fromkeys(self._made, cv) if is_number(cv) else cv
        given = [{} if one is None else one for one in (margin, cv)]
        named = set().union(*given) if all(isinstance(one, Mapping) for one in given) else None
        if named != set(self._made):
            missing = [name for name in self._made if named is None or name not in named]
            which = f"{missing[0]!r} has none" if missing else "one of them is not an analysis"
            first = next(iter(self._made))
            raise PlanError(
                f"margin, or cv, must name each analysis, and {which}",
                f"write margin={{{first!r}: {{'all': 0.02}}, ...}}, n=5000",
            )
        relation = self.relations[0] if ledger is None else ledger.relation
        weights, notes, problems = {}, [], []
        for name, method in self._made.items():
            try:
                wanted = Targets.of(given[0].get(name), given[1].get(name), privacy, n)
                if method.native == "PureDP":
                    raise PlanError(f"{method.name} has a pure guarantee, and its margin is planned alone")
                at = partial(_planned_at, method, schema, relation, n)
                planned, told = smallest(at, wanted, method)
                own = planned.requested
                assert isinstance(own, GDP)
                # the first note is of n, and is the same for all
                notes += [told[0], *(f"{name}: {note}" for note in told[1:])]
                # rounded up in the sixth digit: exact shares that a file can show
                weights[name] = Fraction(ceil(own.mu**2 * 10**8) + 1, 10**8)
            except ConfideError as error:
                problems.append((name, error))
        if problems:
            raise faulty(problems)
        mu = sqrt(sum(weights.values())) * (1 + 1e-9)
        return replace(self, shares=weights), GDP(mu, relation=relation), tuple(dict.fromkeys(notes))

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """All analyses in lock step, each within its plan; the public numbers under the analyses' names."""
        schema = plan.declared
        parts, ranges = self._drawn(self._pooled(schema)[0], schema), self._found(schema, plan, meter)

        def own(name: str, method: Method, records: Source) -> Mapping[str, Any]:
            child, found = plan.children[name], ranges.get(name)
            if found is None or step is None:
                return meter.draw_part(method, name, child, records)
            records, child = in_ranges(method, step, records, child, found)
            return meter.draw_part(method, name, child, records) | to_public(found)

        step = self.ranges(schema)
        found = in_rounds(source, {name: partial(own, name, method) for name, (method, _) in parts.items()})
        public: dict[str, NDArray[Any]] = {}
        for name, outcome in found.items():
            if outcome.failed:
                meter.fail(name)
            else:
                public |= {prefixed(name, key): values for key, values in outcome.value.items()}
        lost = meter.all_drawn.get(LOST)
        if lost is not None:
            shared = shared_public(lost.decode(), sqrt(lost.variance), plan.children)
            public |= {prefixed(name, LOST): own for name, own in shared.items() if not found[name].failed}
        return public

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Report:
        """The results of all analyses. Options of one analysis are for its part: `cf.infer(release.child("model"), ...)`."""
        (options or ResultOptions()).only()
        schema = release.plan.asked
        pooled, _ = self._pooled(schema)
        self._check_children(release.plan, pooled)
        of = {name: pool for pool in pooled for name in pool.names}
        parts = {name: of[name].name if name in of else name for name in self._made}
        results: dict[str, Result] = {}
        for name, method in self._made.items():
            if release.statuses[parts[name]] == "failed":
                continue
            child = release.child(parts[name])
            if name in of:
                results[name] = shown(method.from_pool(of[name].method, child, child.plan.declared), child)
            else:
                results[name] = engine.infer(child)
        return Report.of(release, results, {name: float(share) for name, share in self.fractions.items()}, parts)

    def _check_children(self, plan: Plan, pooled: Iterable[Pool]) -> None:
        """Raise `ReleaseError` unless the parts of a plan are these analyses, each at its share of the level."""
        level, whose = plan.guarantee, protected(plan.schema)
        schema = plan.asked
        parts, step = self._drawn(pooled, schema), self.ranges(schema)
        asked = {name: (method.name, method_parameters(method)) for name, (method, _) in parts.items()}
        found = {name: (one.method.name, dict(one.method.parameters)) for name, one in plan.children.items()}
        whole = self._level(level.mu) if isinstance(level, GDP) else Fraction(0)
        whole *= 1 if step is None else 1 - step.share
        for name, (method, share) in parts.items():
            request = request_of(method, sqrt_down(share * whole), plan.relation)
            if asked != found or plan.children[name].requested != replace(request, unit=whose):
                raise ReleaseError(
                    "the analyses of the publication differ from its plan, or have other shares: the file was altered",
                    "ask for the original, and check it with confide.verify against the ledger",
                )

    def _level(self, mu: float) -> Fraction:
        """What all analyses may cost, as the square of mu."""
        pure = any(one.native == "PureDP" for one in self._made.values())
        return Fraction(mu * _LEFT if pure else mu) ** 2

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The analyses without privacy, named "model: age"."""
        read = CodedFrame.checked(frame)
        return {
            f"{name}: {key}": value
            for name, method in self._made.items()
            for key, value in method.reference(read.where(method.where)).items()
        }

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """The worst pairs of all analyses."""
        for method in self._made.values():
            yield from method.worst_pairs(schema)


@dataclass(frozen=True)
class _Whole(Allowance):
    """The allowance of all analyses: costs that are not Gaussian are added up as the Gaussian ones that they imply."""

    def guarantees(self, event: Event) -> tuple[Guarantee, ...]:
        exact = exact_cost(event)
        if exact is not None and exact.kind is type(self.level):
            return super().guarantees(event)
        # the statements of the level itself, which the questions must then be covered by
        stated = super().guarantees(OpaqueRelease("all questions", self.level, "the level"))
        if not statements_hold(event, stated):
            raise PlanError("the analyses spend more than the publication may; this is an error of confide")
        return stated


def _assuming(allowance: Allowance, children: Iterable[Plan]) -> Allowance:
    """The allowance with all that the analyses' guarantees rest on."""
    assumed = dict.fromkeys(allowance.level.assumptions)
    for child in children:
        assumed |= dict.fromkeys(child.guarantee.assumptions)
    return replace(allowance, level=replace(allowance.level, assumptions=tuple(assumed)))


def _planned_at(method: Method, schema: Any, relation: str, n: int | None, level: float) -> Plan:
    return engine.plan(method, schema, GDP(level, relation=relation), n=n)


def _widths(of: Mapping[str, RangedMethod], schema: Schema, column: str, plan: Plan) -> tuple[Width, ...]:
    """What each analysis of a column asks of its range."""
    asking = ((name, method) for name, method in of.items() if column in method.to_find(schema))
    return tuple(replace(method, bounds="shared").width(plan.children[name], column) for name, method in asking)


_PRIVACY: Mapping[str, Any] = {"mu": GDP, "rho": ZCDP, "epsilon": PureDP}
_FILE = """write for example
schema = "schema.toml"
privacy = { mu = 0.5 }
[analyses.model]
method = "least_squares"
formula = "income ~ age"
share = 2"""


@dataclass(frozen=True)
class PublicationFile:
    """A publication's TOML file: the analyses, and the schema's path, the privacy and n where the file names them."""

    publication: Publication
    schema: Path | None
    privacy: Guarantee | None
    n: int | None
    margin: Mapping[str, Any] | None = None
    cv: Mapping[str, Any] | None = None

    @classmethod
    def from_toml(cls, path: str | Path) -> PublicationFile:
        """Read a publication's TOML file.

        A table `analyses.NAME` for each analysis has `method`, its parameters and `share`. Next to them are `schema` (a path, from the
        file's own folder), `privacy` (mu, rho or epsilon, and delta, relation) and `n`. Instead of privacy and shares each analysis may
        have a `margin`, as in { all = 0.02 }, margins of error at n records. It may also have a `cv`, as in 0.02 or { count = 0.02 },
        standard errors over the numbers.

        Raises `PlanError` for a file that cannot be read, an entry that is unknown, and what `Publication` refuses.
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(
                f"the publication {str(path)!r} cannot be read: {type(error).__name__}", "give a TOML file"
            ) from None
        except tomllib.TOMLDecodeError as error:
            raise PlanError(f"the publication {str(path)!r} is not TOML: {error}", f"{_FILE}") from None
        analyses = data.pop("analyses", None)
        unknown = sorted(set(data) - {"schema", "privacy", "n"})
        if unknown or not isinstance(analyses, dict) or not all(isinstance(one, dict) for one in analyses.values()):
            what = f"has the unknown entry {unknown[0]!r}" if unknown else "has no tables of analyses"
            raise PlanError(f"the publication {str(path)!r} {what}", f"{_FILE}")
        shares = {name: one.pop("share") for name, one in analyses.items() if "share" in one}
        margin, cv = (
            {name: one.pop(target) for name, one in analyses.items() if target in one} for target in ("margin", "cv")
        )
        for name, one in analyses.items():
            if not isinstance(one.get("method"), str):
                raise PlanError(f"the analysis {name!r} of {str(path)!r} names no method", f"{_FILE}")
        asked = {name: {"method": one.pop("method"), "parameters": _tuples(one)} for name, one in analyses.items()}
        schema = data.get("schema")
        if schema is not None and not isinstance(schema, str):
            raise PlanError(f"schema must be the path of a schema's file, got {schema!r}", f"{_FILE}")
        return cls(
            Publication(asked, shares or None),
            None if schema is None else Path(path).parent / schema,
            None if "privacy" not in data else _privacy(data["privacy"]),
            data.get("n"),
            margin or None,
            cv or None,
        )

    @property
    def priced(self) -> bool:
        """Whether the file fixes the cost, by a privacy or by targets of precision."""
        return self.privacy is not None or self.margin is not None or self.cv is not None

    def terms(self, privacy: Guarantee | None = None) -> dict[str, Any]:
        """Arguments of `engine.plan`: the file's privacy, another one, or the targets of precision.

        Raises `PlanError` where a budget is given together with targets, which it would leave unmet.
        """
        if self.margin is None and self.cv is None:
            return {"privacy": privacy or self.privacy}
        if privacy is not None or self.privacy is not None:
            name = next(iter(self.margin or self.cv or {}))
            raise PlanError(
                f"the analysis {name!r} has a target, margin or cv, and a privacy is given, too",
                "give one of them: leave the privacy out, or leave margin and cv out",
            )
        return {"margin": self.margin, "cv": self.cv}


def _tuples(value: Any) -> Any:
    """Lists as tuples, as they come back from a plan's file."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _privacy(given: Any) -> Guarantee:
    """A guarantee from { mu = 0.5 }, { rho = 0.1 }, { epsilon = 1, delta = 1e-6 }, with a relation or without."""
    levels = [name for name in _PRIVACY if isinstance(given, dict) and name in given]
    if len(levels) != 1 or not set(given) <= {levels[0], "delta", "relation"}:
        raise PlanError(
            f"privacy must be one of mu, rho and epsilon, with delta and relation where they belong, got {given!r}",
            f"{_FILE}",
        )
    (name,), others = levels, {key: value for key, value in given.items() if key == "delta"}
    kind = ApproxDP if name == "epsilon" and others else _PRIVACY[name]
    made: Guarantee = kind(given[name], **others, relation=given.get("relation"))
    return made
