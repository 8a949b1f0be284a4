"""The share of records that have one level, or one value of a whole-number column.

Guarantee: PureDP(epsilon) or mu-GDP, substitute, n public. One count, which one replaced record moves by at most 1; two-sided geometric
noise on whole numbers (Ghosh, Roughgarden, Sundararajan 2012), or rounded Gaussian noise (Dong, Roth, Su 2022).

Credible interval: the exact posterior under a beta prior, Beta(1/2, 1/2) when left out (`counted.share_posterior`): under the prior it
covers at its level at any n and budget; at one fixed share it may cover less, .928 at least at n = 100 and epsilon = .5, as the tests sum
up. Confidence interval: equal tails of the exact distribution of the noisy count; it covers at least at its level, at every n, share and
budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np

from confide.errors import PlanError
from confide.methods.intervals.method import RARE, IntervalMethod, parsed_prior, share_error
from confide.methods.intervals.posteriors.counted import confidence_limits, share_posterior
from confide.methods.intervals.posteriors.laws import NoiseLaw
from confide.methods.intervals.posteriors.rows import LevelRows
from confide.methods.intervals.result import ConfidenceIntervals, Posterior
from confide.protocol import Release
from confide.schema import Categorical, Integer, Practice, Schema

__all__ = ["Proportion", "exact_shares", "level_code", "level_name"]

# Of a posterior, and of confidence limits.
_COVERS = (
    "population share; sampling and privacy noise; exact under the prior",
    "population share; sampling and privacy noise; at the level or above, at every share",
)
# Beta's a and b where nothing is asked for.
_DEFAULT = (0.5, 0.5)


def level_code(schema: Schema, column: str, level: Any) -> int:
    """The code of a level: a categorical's label, or a value of a whole-number column; the last one when left out of two.

    Raises `PlanError` for a column without levels, or with more than two and none named.
    """
    own = schema[column]
    if isinstance(own, Categorical):
        if level is None and own.steps == 2:
            return 1
        if level is None or own.index_of(level) < 0:
            raise PlanError(
                f"level must name one of {', '.join(own.levels)} of {column!r}, got {level!r}; write level={own.levels[-1]!r}"
            )
        return own.index_of(level)
    if not isinstance(own, Integer):
        raise PlanError(
            f"a share is of a level, and {column!r} has none; declare it as cf.Categorical([...]) or cf.Integer(0, 1)"
        )
    if level is None and own.steps == 2:
        return 1
    try:
        place = float(level) - own.low if level is not None else inf
    except (TypeError, ValueError):
        place = inf
    if not 0 <= place < own.steps or place != int(place):
        raise PlanError(
            f"level must be a whole number from {own.low:g} to {own.high:g} of {column!r}, got {level!r}; write level={own.high:g}"
        )
    return int(place)


def exact_shares(
    release: Release, column: str, names: Sequence[str], sums: Sequence[float], n: int, law: NoiseLaw, covers: str
) -> ConfidenceIntervals:
    """Exact confidence intervals of shares of n records, each from its own noisy count."""

    def limits(alpha: float) -> tuple[list[float], list[float]]:
        ends = [confidence_limits(float(y), n, law, alpha) for y in sums]
        return [low for low, _ in ends], [high for _, high in ends]

    return ConfidenceIntervals.read(
        release,
        covers=covers,
        effects=False,
        shares=True,
        response=column,
        names=tuple(names),
        limits=limits,
        bounds=[(0.0, 1.0)] * len(names),
        facts=(("Records", f"{n:,} (public)"), ("Noise", law.words())),
    )


def level_name(schema: Schema, column: str, code: int) -> str:
    """ "smoker=yes"."""
    own = schema[column]
    return f"{column}={own.levels[code]}" if isinstance(own, Categorical) else f"{column}={own.low + code:g}"


@dataclass(frozen=True)
class Proportion(IntervalMethod):
    """The share of records with a level of a column.

    column: categorical, or cf.Integer; level: which one counts, the last of two when left out; kind, prior ("beta(a, b)") as in
    `IntervalMethod`.

    >>> import confide as cf
    >>> schema = cf.Schema({"smoker": cf.Categorical(["no", "yes"], on_missing="no")})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(Proportion("smoker"), data, cf.PureDP(0.5), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> cf.infer(release).conf_int().round(2).to_numpy().tolist()
    [[0.47, 0.56]]
    >>> cf.infer(release, cf.Question(kind="confidence")).names
    ('smoker=yes',)
    """

    column: str
    level: str | float | None = None
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "proportion"
    intervals: ClassVar[str] = (
        "population share; sampling and privacy noise; exact under the prior, or exact confidence"
    )
    whole: ClassVar[bool] = True
    assumes: ClassVar[str] = "for shares of .02 to .5"

    def rows(self, schema: Schema, pure: bool) -> LevelRows:
        return LevelRows(schema, self.column, (level_code(schema, self.column, self.level),))

    def facts(self, about: LevelRows) -> Mapping[str, Any]:
        what = level_name(about.schema, self.column, about.levels[0])
        return {"target": f"share of records with {what}", "covers": self.intervals}

    def expected(self, rows: LevelRows, n: int, noise: float) -> Mapping[str, tuple[float, float]]:
        return {"share": (share_error(RARE, n, noise), share_error(0.5, n, noise))}

    def _prior(self, text: str) -> tuple[float, ...]:
        return parsed_prior(text, {"beta": 2}, "beta(0.5, 0.5)", self.name)[1]

    def credible(self, release: Release, rows: LevelRows, n: int, prior: tuple[float, ...]) -> Posterior:
        a, b = prior
        law = self.law(release)
        y = float(self.sums(release)[0])
        found = share_posterior(y, n, law, a, b)
        return Posterior.read(
            release,
            response=self.column,
            names=(level_name(rows.schema, self.column, rows.levels[0]),),
            marginals=(found,),
            bounds=((0.0, 1.0),),
            joint=lambda generator, size: found.draws(generator, size)[:, None],
            reached=lambda alpha: [law.allows(y, 0, n, alpha)],
            prior=f"Beta({a:g}, {b:g})",
            covers=_COVERS[0],
            middle=[share_posterior(n // 2, n, law, *_DEFAULT)],
            flat=(lambda: [share_posterior(y, n, law, 1.0, 1.0)]) if prior != _DEFAULT else None,
            facts=(("Records", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def confidence(self, release: Release, rows: LevelRows, n: int) -> ConfidenceIntervals:
        names = (level_name(rows.schema, self.column, rows.levels[0]),)
        return exact_shares(release, self.column, names, self.sums(release), n, self.law(release), _COVERS[1])

    def reference(self, frame: Any) -> Mapping[str, float]:
        practice = Practice.checked(frame)
        code = level_code(practice.schema, self.column, self.level)
        codes = practice.codes[self.column]
        return {level_name(practice.schema, self.column, code): float(np.mean(codes == code))}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A record with the level and one without."""
        if not isinstance(schema, Schema):
            return
        own, code = schema[self.column], level_code(schema, self.column, self.level)
        values = own.levels if isinstance(own, Categorical) else (own.low, own.low + 1)
        yield {self.column: values[code % len(values)]}, {self.column: values[(code + 1) % len(values)]}
