"""Common base of intervals for one parameter: a public number of records, Laplace or Gaussian noise, two kinds of answer from one release.

Guarantee: PureDP(epsilon) with Laplace noise where a pure guarantee is requested, else mu-GDP with Gaussian noise (and so zCDP). The
relation is substitution, where the number of records is public. The record maps (`rows`) give the sensitivities, jointly for all
numbers of a release. Everything after the noisy sums is computed from them. Credible intervals under any prior that the family knows,
confidence intervals, quantiles and draws are further readings of one release and cost nothing.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide.core import Allowance, Meter, Method, Plan, Release, ResultOptions, Source, Total
from confide.core.allowance import EITHER
from confide.core.method import Result
from confide.core.plan import NOTHING_ELSE
from confide.core.units.contributions import shown
from confide.errors import PlanError
from confide.guarantees import Guarantee, PureDP
from confide.methods.intervals.marginals import NoiseLaw
from confide.methods.intervals.sums import Records, Replaced, stood_in
from confide.results.pages.content import missing_rules
from confide.schema import Schema

KINDS = ("credible", "confidence")
_STOOD_IN = "the number of records is public: {}. Declare on_missing for another value"
_SUMS, _RECORDS = "sums", "records"
# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054
_CALL = re.compile(r"([a-z]+)\(([^()]*)\)")


class IntervalMethod(Method):
    """Base of methods of intervals. A subclass has its record map, its priors, and what `credible` and `confidence` read.

    Parameters
    ----------
    kind : {"credible", "confidence"}, default "credible"
        Kind of interval in the printed table. A release answers each kind:
        ``cf.infer(release, kind="confidence")``.
    prior : str, default ""
        Prior of the credible interval. Empty for the default of the family.
    """

    kind: str
    prior: str

    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = (
        "noise-aware posteriors and test inversion on sufficient statistics with joint sensitivities"
    )
    relations: ClassVar[tuple[str, ...]] = ("substitute",)
    native: ClassVar[str] = EITHER
    asks: ClassVar[tuple[str, ...]] = ("kind", "prior")
    needs: ClassVar[frozenset[str]] = frozenset({"fixed_n"})
    #: Whether counts leave as whole numbers with two-sided geometric noise under a pure guarantee.
    whole: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = KINDS

    def __post_init__(self) -> None:
        checked_kind(self.kind, self.kinds, self.name)
        self._prior(self.prior)

    # what a subclass gives --------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, schema: Schema, pure: bool) -> Any:
        """The record map, with `moved_l1` and `moved_l2_squared`."""

    @abstractmethod
    def credible(self, release: Release, rows: Any, n: int, prior: Any) -> Result:
        """The posterior."""

    @abstractmethod
    def confidence(self, release: Release, rows: Any, n: int) -> Result:
        """The confidence intervals."""

    @abstractmethod
    def _prior(self, text: str) -> Any:
        """A prior by its text; `PlanError` for one that is none."""

    # plan -------------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan one noisy sum. Raises `PlanError` for a column of another kind, or with too few records."""
        allowance = Allowance.of(privacy, self, schema)
        pure = isinstance(allowance.level, PureDP)
        rows, stand_ins = self._whole(schema, pure)
        self._enough(rows, n)
        sums, records = Replaced(rows), Total(Records(schema, rows.columns[0]), nonnegative=True)
        spend = allowance.spend(_SUMS, sums, Fraction(1), law="discrete_laplace" if pure and self.whole else "")
        facts = dict(self.facts(rows))
        if stand_ins:
            facts["warnings"] = (*facts.get("warnings", ()), _STOOD_IN.format(stand_ins))
        return Plan.of(self, schema, allowance, spend, {_SUMS: sums, _RECORDS: records}, n=n, **facts)

    def _enough(self, rows: Any, n: int | None) -> None:
        """`PlanError` where a public number of records is too small for the family."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy sums; the number of records, which is public under substitution, is counted in the same pass."""
        sums, records = source.aggregate(plan.statistic(_SUMS), plan.statistic(_RECORDS))
        meter.draw(_SUMS, sums)
        return {_RECORDS: [int(records[0])]}

    # infer ------------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Result:
        """The answer of a kind, under a prior; the same numbers each time for one release and its options."""
        asked = options or NOTHING_ELSE
        if options is not None:
            options.only(*self.asks)
        kind = checked_kind(asked.kind or self.kind, self.kinds, self.name)
        rows, stand_ins = self._whole(release.plan.declared, release[_SUMS].law.endswith("laplace"))
        n = int(release.public[_RECORDS][0])
        if kind == "confidence":
            found: Any = self.confidence(release, rows, n)
        else:
            found = self.credible(release, rows, n, self._prior(self.prior if asked.prior is None else asked.prior))
        told: Result = replace(found, facts=(*found.facts, ("Missing", stand_ins))) if stand_ins else found
        return shown(told, release)

    def _whole(self, schema: Schema, pure: bool) -> tuple[Any, str]:
        """The record map in which a missing value counts as a public one, so that no record is excluded, and what is said of that."""
        rows = self.rows(schema, pure)
        dropping = [name for name in rows.columns if schema[name].on_missing == "drop"]
        if not dropping:
            return rows, ""
        whole = stood_in(schema, rows.columns)
        return self.rows(whole, pure), missing_rules({name: whole[name] for name in dropping})

    def law(self, release: Release, unit: float = 1.0) -> NoiseLaw:
        """Of each released number; unit: how many of its integers make one unit."""
        return NoiseLaw.of(release[_SUMS], unit)

    def sums(self, release: Release) -> Any:
        """The released numbers, in the map's own integers."""
        return release[_SUMS].decode()


def share_alone(p: Any, size: Any) -> Any:
    """How wide the 95% interval of a share of so many records is by sampling alone (Wilson 1927).

    >>> round(float(share_alone(0.5, 100)), 3)
    0.192
    """
    p, size = np.clip(p, 0.0, 1.0), np.maximum(size, 1.0)
    return 2 * _Z * np.sqrt(p * (1 - p) / size + (_Z / size) ** 2 / 4) / (1 + _Z**2 / size)


def checked_kind(kind: Any, kinds: tuple[str, ...], who: str) -> str:
    """ "credible" or "confidence", where the method has it; `PlanError` otherwise."""
    if kind not in kinds:
        shown_kinds = " or ".join(f'"{one}"' for one in kinds)
        raise PlanError(f"the kind of {who} must be {shown_kinds}, got {kind!r}", f'write kind="{kinds[0]}"')
    return str(kind)


def parsed_prior(text: str, known: Mapping[str, int], default: str, who: str) -> tuple[str, tuple[float, ...]]:
    """("beta", (2.0, 5.0)) of "beta(2, 5)", ("uniform", ()) of "uniform"; known: name -> how many numbers above 0 it takes.

    >>> parsed_prior("beta(2, 5)", {"beta": 2}, "beta(0.5, 0.5)", "proportion")
    ('beta', (2.0, 5.0))
    """
    wanted = (text or default).strip().lower() if isinstance(text, (str, type(None))) else ""
    found = _CALL.fullmatch(wanted)
    name, inside = (found[1], found[2]) if found else (wanted, "")
    try:
        numbers = tuple(float(part) for part in inside.split(",")) if inside.strip() else ()
    except ValueError:
        numbers = (-1.0,)
    if name not in known or len(numbers) != known[name] or any(not 0 < v < 1e6 for v in numbers):
        shapes = ", ".join(f"{one}({', '.join('ab'[:k])})" if k else one for one, k in known.items())
        raise PlanError(
            f"the prior of {who} must be one of {shapes}, with numbers above 0, got {text!r}",
            f"write prior={default!r}",
        )
    return name, numbers
