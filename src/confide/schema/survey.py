"""A survey's design: the weights, strata and primary sampling units (PSUs) of the records, as the codebook states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import SchemaError
from confide.schema.columns import Categorical, Column
from confide.schema.formulas.names import quoted, unknown_names
from confide.schema.settings import entries, is_number
from confide.schema.unit import Clusters

#: What the guarantee takes for granted of weights, for plans and results.
ASSUMPTION = (
    "each weight, stratum and PSU follows from the person's own record; weights that were raked or adjusted for non-response on this very "
    "sample depend on the records of others, and the guarantee then takes the weight column as given"
)
#: What intervals of a design leave out, in one line.
NOT_COVERED = "not covered: replicate weights, two-phase samples, non-response, finite-population corrections beyond a public fraction"
#: What a plan of a design does not say.
UNFORESEEN = (
    "standard errors under a design, or of clusters, are not forecast; a rehearsal on test data shows them: "
    "schema.sample(n, seed=1), then the release with noise=cf.noise.SimulatedNoise(1) and ledger=None"
)

_CAPS = ("auto", "full")
_LARGEST = 2.0
_CALL = 'write cf.SurveyDesign(weight="w", strata="region", psu="village", size=10)'
_LISTS = 'psus={"north": ["n1", "n2"], "south": ["s1", "s2"]}'

_Lists = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class SurveyDesign:
    """How a sample was drawn: weights, strata, PSUs, from public facts.

    Counts, means, totals, shares, ratios, linear and logistic regressions are
    then about the population.

    Parameters
    ----------
    weight : str, optional
        Numeric column of weights with public bounds from 0 up.
    strata : str, optional
        Categorical column of strata.
    psu : str, optional
        Primary sampling units: an id column of the data, which is not a column
        of the schema. If the sampled PSUs are public, a categorical column with
        `psus`.
    psus : mapping of str to list of str or int, optional
        Names of the sampled PSUs of each stratum, at least 2 each; without
        strata a list alone. Deviations are then taken within strata, and a
        record of another PSU is dropped. For an id column: the number of PSUs
        of each stratum.
    size : float, optional
        Mean number of persons of the sample in a PSU. Public.
    icc : float, default 0.2
        How alike persons of a PSU are, from 0 to 1 (intraclass correlation).
    largest : float, optional
        Number of persons in the largest PSUs. Left out: twice `size`. With
        `icc` it decides at which threshold the sum of a PSU is clipped; the
        bias is corrected.
    count : int, optional
        Number of PSUs, where it is public and no lists are given.
    deff : float, optional
        Declared design effect, instead of PSUs: the variance of independent
        persons is multiplied by it.
    cap : {"auto", "full"}, default "auto"
        Whether weights above a DP threshold are trimmed, with intervals that
        include the bias. "full" takes all weights as they are, with the noise
        of the largest weight that the bounds allow. Totals, and counts without
        `population`, always do the latter.
    population : int, optional
        Public number of persons in the population, for totals.
    fraction : float, optional
        Public share of the population's PSUs (without PSUs: persons) that was
        sampled. The sampling variance is multiplied by 1 - fraction.

    Raises
    ------
    SchemaError
        A fact is impossible, or does not go with any of the others.

    Examples
    --------
    >>> SurveyDesign(weight="w", strata="region", psu="village", size=10)
    SurveyDesign(weight='w', strata='region', psu='village', size=10)
    """

    weight: str | None = None
    strata: str | None = None
    psu: str | None = None
    psus: Any = None
    size: float | None = None
    icc: float = 0.2
    largest: float | None = None
    count: int | None = None
    deff: float | None = None
    cap: str = "auto"
    population: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "strata", "psu"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or not given.strip()):
                raise SchemaError(f"{name} must be the name of a column, got {given!r}", f"{_CALL}")
        if self.weight is None and self.psu is None and self.deff is None:
            raise SchemaError("a design has weights, PSUs or a declared design effect, got none of them", f"{_CALL}")
        if self.cap not in _CAPS:
            raise SchemaError(
                f'cap must be "auto" or "full", got {self.cap!r}; {_CALL}, or declare the largest weight in the schema'
            )
        self._check_numbers()
        object.__setattr__(self, "psus", _checked_lists(self.psus, self.strata))
        self._check_psus()

    def _check_numbers(self) -> None:
        ranges = {"size": (1.0, 1e6), "icc": (0.0, 1.0), "deff": (1.0, 1e4), "fraction": (0.0, 1.0)}
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is not None and (not is_number(value) or not low <= value <= high):
                raise SchemaError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}", f"{_CALL}")
        for name, least in (("count", 2), ("population", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and (not whole or not least <= value <= 1 << 50):
                raise SchemaError(
                    f"{name} must be a whole number of at least {least}, public, got {value!r}", f"{_CALL}"
                )
        if self.largest is not None and not (
            self.size is not None and is_number(self.largest) and self.size <= self.largest <= 1e9
        ):
            raise SchemaError(
                f"largest must be the number of persons in the largest PSUs, at least size={self.size!r}, got {self.largest!r}",
                f"{_CALL}",
            )

    def _check_psus(self) -> None:
        if self.psu is None:
            given = [name for name in ("psus", "size", "count") if getattr(self, name) is not None]
            if given:
                raise SchemaError(f"{given[0]} says something of PSUs, and psu, their column, was left out", f"{_CALL}")
            return
        if self.deff is not None:
            raise SchemaError(
                f"deff={self.deff!r} replaces PSUs, and psu={self.psu!r} names them", "leave one of the two out"
            )
        if self.size is None:
            raise SchemaError(
                f"psu={self.psu!r} needs size, the public number of persons in a PSU of the sample, on average",
                f"{_CALL}",
            )
        if self.psus is not None and self.count is not None:
            raise SchemaError(f"count={self.count} follows from psus", "leave count out")

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._facts().items() if name != "psus"}
        facts = [f"{name}={value!r}" for name, value in shown.items()]
        facts += [f"psus={{{self.psu_count} public}}"] if self.psus is not None else []
        return f"SurveyDesign({', '.join(facts)})"

    def _facts(self) -> dict[str, Any]:
        """The declared facts, without the others."""
        defaults = {"icc": 0.2, "cap": "auto"}
        names = (
            "weight",
            "strata",
            "psu",
            "size",
            "icc",
            "largest",
            "count",
            "deff",
            "cap",
            "population",
            "fraction",
            "psus",
        )
        return {name: value for name in names if (value := getattr(self, name)) != defaults.get(name)}

    @property
    def listed(self) -> _Lists | None:
        """The public PSUs by stratum, one stratum "" without strata; None where no lists are public."""
        return self.psus if self.psus is not None and not isinstance(self.psus[0][1], int) else None

    @property
    def psu_count(self) -> int | None:
        """How many PSUs were sampled, where that is public."""
        if self.psus is None:
            return self.count
        return sum(own if isinstance(own, int) else len(own) for _, own in self.psus)

    @property
    def most(self) -> float:
        """Persons in the largest PSUs that limits are made for."""
        assert self.size is not None
        return float(_LARGEST * self.size if self.largest is None else self.largest)

    @property
    def cluster(self) -> Clusters | None:
        """The PSUs of an id column as clusters, which every method knows; None for others."""
        if self.psu is None or self.listed is not None:
            return None
        assert self.size is not None
        return Clusters(self.psu, size=self.size, icc=self.icc, count=self.psu_count, largest=self.most)

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise `SchemaError` where the design names columns of a schema that are not there or of another kind."""
        if self.weight is not None:
            column = self._column("weight", self.weight, columns)
            if isinstance(column, Categorical) or not 0 <= column.low < column.high:
                raise SchemaError(
                    f"the weight {self.weight!r} must be numeric with public bounds from 0 up",
                    f"declare it as in {self.weight!r}: cf.Numeric(0, 20), where larger weights count as 20",
                )
        if self.strata is not None:
            column = self._column("strata", self.strata, columns)
            if not isinstance(column, Categorical):
                raise SchemaError(
                    f"the strata {self.strata!r} must be categorical",
                    f"declare their levels, {self.strata!r}: cf.Categorical([...])",
                )
            named = None if self.psus is None else tuple(stratum for stratum, _ in self.psus)
            if named is not None and set(named) != set(column.levels):
                odd = sorted(set(named) ^ set(column.levels))[0]
                raise SchemaError(
                    f"psus must name the strata's levels, {', '.join(map(repr, column.levels))}, and no other; {odd!r} stands on one "
                    "side alone",
                    f"write {_LISTS}",
                )
        if self.listed is not None:
            assert self.psu is not None
            if self.psu not in columns:
                raise SchemaError(
                    f"public PSUs are levels: declare them as a column of the schema, {self.psu!r}: cf.Categorical([...]), with the names "
                    "in psus. "
                    "Without lists it is an id column, and psus may give numbers"
                )
            column = self._column("psu", self.psu, columns)
            levels = set(column.levels) if isinstance(column, Categorical) else set()
            wrong = [name for _, names in self.listed for name in names if name not in levels]
            if not isinstance(column, Categorical) or wrong:
                first = f"; {wrong[0]!r} is none" if wrong and levels else ""
                raise SchemaError(
                    f"psus must name levels of the column with the public PSUs, {self.psu!r}: cf.Categorical([...]){first}"
                )
        elif self.psu is not None and self.psu in columns:
            raise SchemaError(
                f"{self.psu!r} is a column of the schema, and PSUs of an id column are never analyzed: take it out of the columns, or "
                f"write {_LISTS}, the public lists"
            )

    def _column(self, what: str, name: str, columns: Mapping[str, Column]) -> Column:
        if name not in columns:
            raise unknown_names(SchemaError, f"{what} of the design", quoted(name), columns)
        return columns[name]

    @property
    def words(self) -> str:
        """For titles: what the design does to the estimand and to intervals."""
        parts = [f"weighted by {self.weight}"] if self.weight is not None else []
        parts += [f"strata {self.strata}"] if self.strata is not None and self.listed is not None else []
        parts += [f"PSUs {self.psu}"] if self.psu is not None else []
        # one of 1 beside weights is what they say without it
        parts += (
            [f"declared design effect {self.deff:g}"] if self.deff is not None and (self.deff != 1 or not parts) else []
        )
        return ", ".join(parts)

    @property
    def plain(self) -> bool:
        """Whether persons count alike and are drawn individually, as those of a schema without a design."""
        return self.weight is None and self.psu is None and self.deff == 1

    @property
    def alike(self) -> str:
        """What PSUs are taken for, whose sums are cut beyond that."""
        return f"of at most about {self.most:,.6g} persons, alike by at most {self.icc:g}"

    def to_dict(self) -> dict[str, Any]:
        """Give what was declared as JSON types; numbers that may be fractions as
        `float.hex` texts.

        Returns
        -------
        dict
            What a schema's file holds.

        Examples
        --------
        >>> SurveyDesign(weight="w").to_dict()
        {'weight': 'w'}
        """
        facts = self._facts()
        for name in ("size", "icc", "largest", "deff", "fraction"):
            if name in facts:
                facts[name] = float(facts[name]).hex()
        if "psus" in facts:
            facts["psus"] = [[stratum, own if isinstance(own, int) else list(own)] for stratum, own in facts["psus"]]
        return facts

    def to_settings(self) -> dict[str, Any]:
        """The entries of its table in a TOML file."""
        facts = self._facts()
        if "psus" in facts:
            own = {stratum: names if isinstance(names, int) else list(names) for stratum, names in facts["psus"]}
            facts["psus"] = own[""] if list(own) == [""] and not isinstance(own[""], int) else own
        return facts


def _checked_lists(given: Any, strata: str | None) -> Any:
    """psus as ((stratum, names or number), ...), one stratum "" without strata."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        items = [(stratum, own) for stratum, own in given.items()]
    elif isinstance(given, (list, tuple)) and given and all(isinstance(one, (list, tuple)) for one in given):
        items = [tuple(one) for one in given]
        if any(len(one) != 2 for one in items):
            raise SchemaError(f"psus must be stratum -> its PSUs, got {given!r}", f"write {_LISTS}")
    else:
        items = [("", given)]
    whole = strata is None
    if whole != ([name for name, _ in items] == [""]):
        said = "no strata are named" if whole else f"strata={strata!r}"
        raise SchemaError(
            f"psus must be stratum -> its PSUs where there are strata, a list without ({said})", f"write {_LISTS}"
        )
    found: list[tuple[str, Any]] = []
    kinds = set()
    for stratum, own in items:
        number = isinstance(own, int) and not isinstance(own, bool)
        names = () if number or not isinstance(own, (list, tuple)) else tuple(own)
        texts = all(isinstance(one, str) and one for one in names) and len(set(names)) == len(names)
        if not isinstance(stratum, str) or not texts or (own if number else len(names)) < 2:
            raise SchemaError(
                f"psus of {stratum!r} must be at least 2 different names, or their number (got {own!r}). With one PSU in a stratum no "
                "variance can be told: join it with another stratum",
                f"write {_LISTS}",
            )
        kinds.add(number)
        found.append((stratum, own if number else names))
    if not found or len(kinds) > 1 or len({stratum for stratum, _ in found}) < len(found):
        raise SchemaError("psus must be lists for all strata, or numbers for all, each stratum once", f"write {_LISTS}")
    return tuple(found)


def survey_from_settings(settings: Mapping[Any, Any]) -> SurveyDesign:
    """A design from the entries of its table; `SchemaError` for one that is unknown or wrong.

    >>> survey_from_settings({"weight": "w", "cap": "full"})
    SurveyDesign(weight='w', cap='full')
    """
    return SurveyDesign(
        **entries(
            settings,
            of="a design",
            known=tuple(SurveyDesign.__dataclass_fields__),
            call=_CALL,
            numbers={"size": True, "largest": True, "deff": True, "icc": False, "fraction": False},
        )
    )
