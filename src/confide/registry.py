"""Registry of methods: those of confide and those of third parties, through the entry point group `confide.methods`.

A third party writes a frozen dataclass with plan, release and infer and names it in its package's entry points. It
then has the command line, the ledger, the report and `confide.testing.check_method`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, fields
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from confide._docs import parameters
from confide._helpers import near_match
from confide.core import Method, Plan, parameters_of
from confide.core.plan import check_read
from confide.core.units.contributions import with_contributions
from confide.errors import PlanError

_GROUP = "confide.methods"
#: Beside the first module of a package: the public facts of its methods by name.
INDEX = "methods.json"
_registered: dict[str, type[Any]] = {}


@dataclass(frozen=True)
class Family:
    """What a family of methods answers.

    name: the `family` of its methods; words: the questions; place: its name in `cf`; command: how the command line asks it.
    """

    name: str
    words: str
    place: str
    command: str


#: What may be asked, in the order in which people ask: `confide methods`, the studio and the front page of the guides list it so.
FAMILIES = (
    Family("tables", "Counts, shares, means, totals, medians, by group", "tables", "confide table"),
    Family("tests", "Tests: t, F, chi-square, ranks, correlation", "tests", "confide test"),
    Family("regression", "Regression: lines, odds, rates, curves", "regression", "confide regress"),
    Family(
        "classification", "Classes: means and shares of each, predicting the class", "classification", "confide plan"
    ),
    Family("publications", "Several questions on one budget", "Publication", "confide publish"),
    Family("synthesis", "A file of synthetic rows to share", "synthesis", "confide synthesize"),
    Family("local", "Records protected before anyone sees them", "local", "confide local protect"),
    Family("intervals", "One share, mean or slope with a posterior", "intervals", "confide interval"),
    Family("reduction", "Correlations and principal components", "reduction", "confide plan"),
    Family("voting", "Votes: which of several most records have; labels by teachers", "voting", "confide plan"),
    Family("selection", "The best of several methods or settings", "select", "confide plan"),
    Family("ptr", "Your own estimator", "ptr", "confide plan"),
)


def family(name: str) -> Family | None:
    """The family of a name; None for one that another package has defined."""
    return next((one for one in FAMILIES if one.name == name), None)


@dataclass(frozen=True)
class MethodInfo:
    """One row of `confide methods`.

    Parameters
    ----------
    name : str
        Name of the method.
    family : str
        Family that it belongs to.
    version : str
        Version of the method.
    native : str
        Kind of guarantee that it is proved for.
    relations : tuple of str
        Neighboring relations that it supports.
    parameters : tuple of str
        Names of its parameters.
    intervals : str
        What its intervals account for.
    source : str
        Where the method is described.
    package : str
        Package that it belongs to.
    """

    name: str
    family: str
    version: str
    native: str
    relations: tuple[str, ...]
    parameters: tuple[str, ...]
    intervals: str
    source: str
    package: str


def register(method: type[Any]) -> type[Any]:
    """Make a method class known to this process under its `name`.

    An entry point does so for every process. Usable as a decorator.

    Parameters
    ----------
    method : type
        Class with the class variables `name` and `family`.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    PlanError
        Another class has the name, or the class lacks a name or family.

    Examples
    --------
    >>> import confide as cf
    >>> cf.register(cf.tables.Counts).name
    'counts'
    """
    for fact in ("name", "family"):
        if not isinstance(getattr(method, fact, None), str):
            raise PlanError(f"{method.__name__} says no {fact}", f'write {fact}: ClassVar[str] = "..." in the class')
    if method.name in known() and _load(method.name) is not method:
        raise PlanError(f"a method named {method.name!r} exists already", "give yours another name")
    _registered[method.name] = method
    return method


@cache
def _installed() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name; read once, because it walks over every package."""
    return {point.name: point for point in entry_points(group=_GROUP)}


def known() -> list[str]:
    """The names of all registered methods."""
    return sorted({*_installed(), *_registered})


def _load(name: str) -> type[Any]:
    if name in _registered:
        return _registered[name]
    point = _installed()[name]
    try:
        found: type[Any] = point.load()
    except Exception as error:
        raise PlanError(
            f"the method {name!r} is installed ({point.value}) and cannot be loaded: {type(error).__name__}",
            "repair or remove the package that brings it",
        ) from error
    if getattr(found, "name", None) != name:
        raise PlanError(
            f"the entry point {name!r} leads to a method that calls itself otherwise", "give both the same name"
        )
    return found


def get(name: str) -> type[Any]:
    """The class of a method; `PlanError` names the near match.

    >>> get("ssp").family
    'regression'
    """
    names = known()
    if name not in names:
        near = get_close_matches(name, names, 1)
        raise PlanError(
            f"no method {name!r}"
            + (f"; did you mean {near[0]!r}?" if near else "")
            + f"; there are: {', '.join(names)}; a method of another package is there once that package is installed "
            "(confide-lab brings the baselines)"
        )
    return _load(name)


def named(kind: str) -> str | None:
    """The name of the method of a class, which is not loaded; None where there is none.

    >>> named("LeastSquares"), named("Nothing")
    ('least_squares', None)
    """
    own = (name for name, method in _registered.items() if method.__name__ == kind)
    return next(own, next((name for name, point in _installed().items() if point.attr == kind), None))


def name_of(kind: str) -> str:
    """The same of a class that has one.

    >>> name_of("Means")
    'means'
    """
    found = named(kind)
    if found is None:
        raise PlanError(f"no registered method has a class {kind!r}", "install confide again, with its entry points")
    return found


def make(name: str, **parameters: Any) -> Method:
    """A method from its name and parameters; `PlanError` when it does not have one of them."""
    cls = get(name)
    allowed = parameters_of(cls)
    unknown = [key for key in parameters if key not in allowed]
    if unknown:
        raise PlanError(
            f"method {name!r} has no parameter {unknown[0]!r}{near_match(unknown[0], allowed)}; it has: {', '.join(allowed)}"
        )
    try:
        made: Method = cls(**parameters)
    except TypeError:
        missing = [
            f.name
            for f in fields(cls)
            if f.init and f.default is MISSING and f.default_factory is MISSING and f.name not in parameters
        ]
        raise PlanError(f"method {name!r} needs more parameters; not given: {', '.join(missing)}") from None
    return made


def classes() -> list[type[Method]]:
    """All registered methods: ours by family, in the order of users' questions, then those of other packages."""
    return [get(info.name) for info in list_methods()]


def list_methods() -> tuple[MethodInfo, ...]:
    """List the registered methods with their public facts.

    A package may bring them in a file `methods.json`, as confide does, so that no method is loaded to list it.

    Returns
    -------
    tuple of MethodInfo
        Methods of confide by family, then those of other packages.

    Examples
    --------
    >>> import confide as cf
    >>> "counts" in [method.name for method in cf.list_methods()]
    True
    """
    found = [_indexed(name) or info_of(_load(name)) for name in known()]
    return tuple(sorted(found, key=_place))


def info_of(method: type[Any]) -> MethodInfo:
    """The public facts of a method, from its class."""
    return MethodInfo(
        method.name,
        method.family,
        method.version,
        method.native,
        tuple(method.relations),
        tuple(name for name in parameters_of(method) if name != "where"),  # which every method has
        method.intervals,
        method.source,
        method.__module__.partition(".")[0],
    )


class Setting(NamedTuple):
    """What the command line has to know of a field of a class in order to make an option of it.

    type: the annotation, as it is written; default: of a field of truth; required: whether it has none; form, text: of the docstring.
    """

    name: str
    type: str
    default: bool | None
    required: bool
    form: str
    text: str


def settings_of(kind: type[Any]) -> tuple[Setting, ...]:
    """The fields of a method, or of another dataclass that has options, in their order."""
    told, shown = parameters(kind.__doc__), parameters_of(kind)
    own = {one.name: one for one in fields(kind)}
    truths = {name: one.default for name, one in own.items() if isinstance(one.default, bool)}
    return tuple(
        Setting(
            name,
            str(own[name].type),
            truths.get(name),
            own[name].default is MISSING,
            *told.get(name, ("", "")),
        )
        for name in shown
    )


def settings_named(name: str) -> tuple[Setting, ...]:
    """The fields of a registered method, which is not loaded where its package has an index.

    >>> settings_named("within") == settings_of(get("within"))
    True
    """
    facts = _facts(name)
    return settings_of(get(name)) if facts is None else tuple(Setting(*one) for one in facts["settings"])


def facts_of(method: type[Any]) -> dict[str, Any]:
    """What the index of a package says of a method."""
    return {**asdict(info_of(method)), "settings": settings_of(method)}


def _facts(name: str) -> dict[str, Any] | None:
    if name in _registered or name not in _installed():
        return None
    found: dict[str, Any] | None = _index(_installed()[name].module.partition(".")[0]).get(name)
    return found


def _indexed(name: str) -> MethodInfo | None:
    """The same from the index of the method's package; None where it has none."""
    facts = _facts(name)
    if facts is None:
        return None
    read: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in facts.items() if key != "settings"
    }
    return MethodInfo(**read)


@cache
def _index(package: str) -> dict[str, Any]:
    """What `methods.json` of an installed package says, which is found without loading the package."""
    spec = find_spec(package)
    for place in (spec and spec.submodule_search_locations) or ():
        with suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads(Path(place, INDEX).read_bytes())
            return found
    return {}


def _place(method: MethodInfo) -> tuple[bool, int, str]:
    """Ours first, families in the order of users' questions, names."""
    found = family(method.family)
    order = len(FAMILIES) if found is None else FAMILIES.index(found)
    return method.package != "confide", order, method.name


def remake(plan: Plan, schema: Any) -> tuple[Method, Plan]:
    """The method of a plan from a file, and the plan made again from public facts.

    Nothing in a file is believed: sensitivities, scales and the guarantee are derived again, and the new plan must
    have the same digest. Raises `PlanError` when it has another, because the file was made by another version or was
    altered.
    """
    method = make(plan.method.name, **plan.method.parameters)
    again = with_contributions(method.plan(schema.bare, plan.requested, n=plan.n))
    check_read(again, method.where)
    if again.sha256 != plan.sha256:
        raise PlanError(
            f"the plan cannot be made again from its own method, schema and request. It was written by another version than "
            f"{plan.method.name} {method.version}, for another schema, or altered",
            "make a new one with `confide plan`",
        )
    return method, again
