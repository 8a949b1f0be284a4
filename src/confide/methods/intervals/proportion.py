"""The share of records that have one level of a column, or one value of a whole-number column; or the shares of all its levels.

Guarantee: PureDP(epsilon) or mu-GDP, substitution, with a public n. Of one level it is one count, which one replaced record moves by at
most 1. Of all levels it is the whole vector of counts. One replaced record moves one count down and one up, l1 = 2, l2 = sqrt 2 for all
levels at once. A share of the budget for each would cost J and sqrt(J). The noise is two-sided geometric on whole numbers (Ghosh,
Roughgarden, Sundararajan 2012), or rounded Gaussian (Dong, Roth, Su 2022). Of two levels one share gives both.

Credible interval of one level: the exact posterior under a beta prior, by default Beta(1/2, 1/2) (`count_posteriors.share_posterior`).
Under the prior it covers at its level at any n and budget. At one fixed share it may cover less, 0.928 at least at n = 100 and epsilon =
0.5, as the tests sum up. Of all levels it is the exact posterior of each share under Beta(1/2, 1/2), or Beta(a, b). It follows from the
level's noisy number and the sum of the others' (`count_posteriors.level_posterior`), however many levels there are. Under Dirichlet(a,
...), where that is requested, it is the exact joint posterior from all counts and the public sum (`count_posteriors.Cells`). With many
levels that prior says much of how large the largest can be. Draws of all shares together are of Dirichlet(a, ...), by default a = 1/2.
Confidence interval: of each level separately, equal tails of the exact distribution of its noisy number. It covers at least at its level,
at every n, share and budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np

from confide.core import Release
from confide.errors import PlanError
from confide.methods.intervals.count_posteriors import Cells, confidence_limits, level_posterior, share_posterior
from confide.methods.intervals.marginals import BetaMixture, NoiseLaw
from confide.methods.intervals.method import IntervalMethod, parsed_prior, share_alone
from confide.methods.intervals.results import ConfidenceIntervals, Posterior
from confide.methods.intervals.sums import LevelRows, whole_frame
from confide.schema import Categorical, Integer, Schema
from confide.sums.coding import ends

# Of a posterior, and of confidence limits; of one share, and of all.
_INTERVALS_FOR = (
    "population share; sampling and privacy noise; exact under the prior",
    "population share; sampling and privacy noise; at the level or above, at every share",
)
_INTERVALS_FOR_EACH = (
    "population shares, each separately; sampling and privacy noise; exact under the prior",
    "population shares, each separately; sampling and privacy noise; at the level or above, at every share",
)
# Beta's a and b, of one share and of each, where nothing is asked for.
_DEFAULT = (0.5, 0.5)
# Dirichlet's a for draws of all shares together, where each has a prior of its own.
_JOINT = 0.5
# Levels of a whole-number column that are still categories.
_MOST = 64


def asked_levels(schema: Schema, column: str, level: Any) -> tuple[int, ...]:
    """The codes of the wanted levels: the named one; without a name the last of two, or all of more.

    Raises `PlanError` for a column without levels, and for a level that it does not have.
    """
    own = schema[column]
    if (
        level is None
        and own.steps > 2
        and (isinstance(own, Categorical) or (isinstance(own, Integer) and own.steps <= _MOST))
    ):
        return tuple(range(own.steps))
    return (level_code(schema, column, level),)


def level_code(schema: Schema, column: str, level: Any) -> int:
    """The code of a level: a categorical's label, or a value of a whole-number column; by default the last one of two.

    Raises `PlanError` for a column without levels, or with more than two and none named.
    """
    own = schema[column]
    if isinstance(own, Categorical):
        if level is None and own.steps == 2:
            return 1
        if level is None or own.index_of(level) < 0:
            raise PlanError(
                f"level must name one of {', '.join(own.levels)} of {column!r}, got {level!r}",
                f"write level={own.levels[-1]!r}",
            )
        return own.index_of(level)
    if not isinstance(own, Integer):
        raise PlanError(
            f"a share is of a level, and {column!r} has none", "declare it as cf.Categorical([...]) or cf.Integer(0, 1)"
        )
    if level is None and own.steps == 2:
        return 1
    try:
        place = float(level) - own.low if level is not None else inf
    except (TypeError, ValueError):
        place = inf
    if not 0 <= place < own.steps or place != int(place):
        raise PlanError(
            f"level must be a whole number from {own.low:g} to {own.high:g} of {column!r}, got {level!r}",
            f"write level={own.high:g}",
        )
    return int(place)


def exact_shares(
    release: Release,
    column: str,
    names: Sequence[str],
    sums: Sequence[float],
    n: int,
    law: NoiseLaw,
    intervals_for: str,
) -> ConfidenceIntervals:
    """Exact confidence intervals of shares of n records, each from its own noisy number."""

    def limits(alpha: float) -> tuple[list[float], list[float]]:
        ends = [confidence_limits(float(y), n, law, alpha) for y in sums]
        return [low for low, _ in ends], [high for _, high in ends]

    return ConfidenceIntervals.read(
        release,
        intervals_for=intervals_for,
        effects=False,
        shares=True,
        response=column,
        names=tuple(names),
        limits=limits,
        bounds=[(0.0, 1.0)] * len(names),
        alone=share_alone(np.asarray(sums, dtype=np.float64) / max(n, 1), n),
        facts=(("n", f"{n:,} (public)"), ("Noise", law.words())),
    )


def level_name(schema: Schema, column: str, code: int) -> str:
    """ "smoker=yes"."""
    own = schema[column]
    return f"{column}={own.levels[code]}" if isinstance(own, Categorical) else f"{column}={own.low + code:g}"


@dataclass(frozen=True)
class Proportion(IntervalMethod):
    """Estimate the share of records with one level of a column, or of all levels.

    The estimand is the share in the population.

    Parameters
    ----------
    column : str
        Categorical column, or integer column of at most 64 values.
    level : str or float, optional
        Level whose share is wanted. By default the last of two levels; of more
        levels, all.
    prior : str, default ""
        Prior of each level, ``"beta(a, b)"``, or of all levels,
        ``"dirichlet(a)"``. Empty for ``"beta(0.5, 0.5)"``.

    See Also
    --------
    confide.tables.Shares : Shares by group, under either relation.

    Notes
    -----
    Guarantee: PureDP(epsilon) with two-sided geometric noise, or mu-GDP with
    rounded Gaussian noise, under substitution with a public n. One replaced record
    moves the count of one level by at most 1. It moves the counts of all levels by
    2 in l1 and root 2 in l2. Credible intervals are exact under the prior, and
    confidence intervals are exact at every share.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing
    privacy mechanisms, SIAM J. Comput. 41.

    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({
    ...     "smoker": cf.Categorical(["no", "yes"], on_missing="no"),
    ...     "g": cf.Categorical(["a", "b", "c"], on_missing="a")})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> method = cf.intervals.Proportion("smoker")
    >>> release = cf.release(method, data, cf.PureDP(0.5), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> cf.infer(release, kind="confidence").names
    ('smoker=yes',)
    >>> result = cf.infer(cf.release(
    ...     cf.intervals.Proportion("g"), data, cf.GDP(0.5), ledger=None,
    ...     noise=cf.noise.SimulatedNoise(1)))
    >>> list(result.names)
    ['g=a', 'g=b', 'g=c']
    >>> bool(abs(result.sample(2000).sum(axis=1) - 1).max() < 1e-12)
    True
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

    def rows(self, schema: Schema, pure: bool) -> LevelRows:
        rows = LevelRows(schema, self.column, asked_levels(schema, self.column, self.level))
        self._check_together(rows, self._prior(self.prior))
        return rows

    def _check_together(self, rows: LevelRows, prior: tuple[float, ...]) -> None:
        """`PlanError` for a prior of all levels where one is asked about."""
        if len(prior) == 1 and len(rows.levels) == 1:
            raise PlanError(
                f"a Dirichlet prior is of all levels, and the share is of {level_name(rows.schema, self.column, rows.levels[0])} alone",
                "write prior='beta(0.5, 0.5)'",
            )

    def facts(self, about: LevelRows) -> Mapping[str, Any]:
        if len(about.levels) > 1:
            return {"target": f"shares of the levels of {self.column}", "intervals_for": self.intervals}
        what = level_name(about.schema, self.column, about.levels[0])
        return {"target": f"share of records with {what}", "intervals_for": self.intervals}

    def _prior(self, text: str) -> tuple[float, ...]:
        """(a, b) of each level, or (a,) of all."""
        return parsed_prior(text, {"beta": 2, "dirichlet": 1}, "beta(0.5, 0.5)", self.name)[1]

    def _names(self, rows: LevelRows) -> tuple[str, ...]:
        return tuple(level_name(rows.schema, self.column, code) for code in rows.levels)

    def credible(self, release: Release, rows: LevelRows, n: int, prior: tuple[float, ...]) -> Posterior:
        self._check_together(rows, prior)
        return (self._of_one if len(rows.levels) == 1 else self._of_all)(release, rows, n, prior)

    def _of_one(self, release: Release, rows: LevelRows, n: int, prior: tuple[float, ...]) -> Posterior:
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
            alone=[share_alone(y / max(n, 1), n)],
            joint=lambda generator, size: found.draws(generator, size)[:, None],
            reached=lambda alpha: [law.allows(y, 0, n, alpha)],
            prior=f"Beta({a:g}, {b:g})",
            intervals_for=_INTERVALS_FOR[0],
            middle=[share_posterior(n // 2, n, law, *_DEFAULT)],
            flat=(lambda: [share_posterior(y, n, law, 1.0, 1.0)]) if prior != _DEFAULT else None,
            facts=(("n", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def _of_all(self, release: Release, rows: LevelRows, n: int, prior: tuple[float, ...]) -> Posterior:
        names, law = self._names(rows), self.law(release)
        sums = np.asarray(self.sums(release), dtype=np.float64)
        together = len(prior) == 1

        def cells() -> Cells:
            return Cells(sums, n, law, np.full(len(names), prior[0] if together else _JOINT))

        def marginals() -> list[BetaMixture]:
            if not together:
                return [level_posterior(sums, j, n, law, *prior) for j in range(len(names))]
            own = cells()
            return [own.marginal(j) for j in range(len(names))]

        return Posterior.read(
            release,
            response=self.column,
            intervals_for=_INTERVALS_FOR_EACH[0],
            names=names,
            marginals=marginals(),
            bounds=[(0.0, 1.0)] * len(names),
            alone=share_alone(sums / max(n, 1), n),
            joint=lambda generator, size: cells().draws(generator, size),
            reached=lambda alpha: [law.allows(float(y), 0, n, alpha) for y in sums],
            middle=[level_posterior(np.r_[n // 2, n - n // 2, np.zeros(len(names) - 2)], 0, n, law)],
            flat=None
            if prior == _DEFAULT
            else lambda: [level_posterior(sums, j, n, law, 1.0, 1.0) for j in range(len(names))],
            prior=f"Dirichlet({prior[0]:g}, ...)" if together else f"Beta({prior[0]:g}, {prior[1]:g}) of each",
            facts=(("n", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def confidence(self, release: Release, rows: LevelRows, n: int) -> ConfidenceIntervals:
        said = (_INTERVALS_FOR if len(rows.levels) == 1 else _INTERVALS_FOR_EACH)[1]
        return exact_shares(release, self.column, self._names(rows), self.sums(release), n, self.law(release), said)

    def reference(self, frame: Any) -> Mapping[str, float]:
        practice = whole_frame(frame, (self.column,))
        codes = practice.codes[self.column]
        asked = asked_levels(practice.schema, self.column, self.level)
        return {level_name(practice.schema, self.column, code): float(np.mean(codes == code)) for code in asked}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two levels: of one share a record with the level and one without."""
        if not isinstance(schema, Schema):
            return
        asked = asked_levels(schema, self.column, self.level)
        if len(asked) > 1:
            yield ends(schema, (self.column,))
            return
        own, (code,) = schema[self.column], asked
        values = own.levels if isinstance(own, Categorical) else (own.low, own.low + 1)
        yield {self.column: values[code % len(values)]}, {self.column: values[(code + 1) % len(values)]}
