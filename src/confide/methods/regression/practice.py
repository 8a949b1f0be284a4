"""Ways in which records may lie within a schema's bounds: what a forecast is simulated on. No record is read.

A shape is drawn from a stated family:

- 95 % of a column's values lie in an interval: its typical spread where the schema states one; else one of 5 % to 100 % of the width of its
  box (uniform), anywhere inside it. Values are normal, or (half of the time) skewed away from the nearer bound, as a shifted lognormal of
  log-sd .75, or, of one column in six whose spread is not stated, even, as days of the week are. In one shape of three all columns that are
  not even have long tails: beyond the interval, values fall like those of a Pareto distribution of index 1.5 to 4. Beyond the bounds they
  are clipped.
- A 0/1 column has a share of ones, and a factor a share of each level, that may be rare: log-uniform from 1 % to 50 %, and 1/rank^a with a
  from 0 to 2.5, in random order, or the shares that the schema states. Of a factor whose shares are not stated each level beyond the
  second is next to empty with a chance of .1: a log-uniform share of .02 % to 1 %. So are 8 levels of a hundred in the factors of 5 to
  14 levels of adult's census records, and none would be among powers of the rank alone.
- Normal scores of all features share one factor, with loadings of any sign; a feature's own share of its variance is 1000^(-u^3), and a
  random line in these scores leaves .03 + .97 u^1.5 of the response's variance, u uniform: about as in 23 tables of statsmodels and
  scikit-learn (variance inflation: median 2.6, a tenth of the tables above 18; variance left: a tenth below .03, median .32). Where the
  schema states a column's own share, that takes their place. What the line leaves, and a stated share, is that of the values themselves:
  residuals are stretched until it is.

far: in addition a feature whose spread is not stated lies in less than 5 % of its bounds with a chance of .05 (.02 if it is of whole
numbers): 95 % of its values keep to .2 % to 5 % of their width, log-uniform. So do 14 of 242 columns of numbers and 2 of 66 of whole
numbers in the 38 tables that lines are measured on, .05 and .02 of a table's on average (`CONFIDE_FORECASTS=bounds confide lab bench
forecasts_outcomes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide._special import ndtr
from confide.methods.regression.evidence.normal_equations import Line
from confide.methods.regression.scaling import line_of
from confide.schema import Categorical, Design, Integer, Numeric, Schema

__all__ = ["FAMILY", "Shape", "frame", "shapes", "stated", "whole"]


#: The family in words, for whoever prints a forecast.
FAMILY = (
    "features and response anywhere in 5 % to 100 % of their bounds where nothing is stated, even to long-tailed; 0/1 columns and levels "
    "as rare as 1 % and below"
)

_SEED = 20261122
_NARROWEST = 0.05
# The chances of far bounds, and in how much of them at least a column then lies.
_FAR, _FAR_WHOLE, _FARTHEST = 0.05, 0.02, 0.002
_ROWS = 400
# this share of them is given to what is rare, at so many times the sd
_RARE, _WIDE = 0.3, 2.0
_RAREST = 0.01
_STEEPEST = 2.5
# The chance of a level beyond the second that it is next to empty, and between what shares it then lies.
_EMPTY, _SPARSE = 0.1, (0.0002, 0.01)
_SKEW = 0.75
# One shape of so many has long tails, of indices from 1.5 to 4, outside the interval in which 95 % of the values lie.
_KINDS, _INDICES, _OUTSIDE = 3, (1.5, 4.0), 0.05
_LEAST_OWN, _LEAST_LEFT = 0.001, 0.03
# Of columns whose spread is not stated so many are even.
_EVEN = 1 / 6
# So many practice records of each level at least.
_FEW = 8
# the normal quantile of 97.5 %
_Z = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Shape:
    """Practice records of one shape: z = (1, x~) in the public box (rows, terms + 1), the response t in half-ranges (rows,), for how many
    records each stands (rows,), on average 1, the lines that the formula allows, and the shape's number.

    Rare levels have more records of less weight.
    """

    scaled: Array
    response: Array
    weights: Array
    line: Line
    number: int = 0
    codes: Array | None = None

    @property
    def weighted(self) -> Array:
        """z, each row times its weight."""
        return np.asarray(self.scaled * self.weights[:, None])

    @cached_property
    def bread(self) -> Array:
        """The inverse of the second moments of z per record, on the lines that the formula allows."""
        basis = self.line.basis
        moments = basis.T @ (self.weighted.T @ self.scaled / len(self.scaled)) @ basis
        return np.asarray(basis @ np.linalg.pinv(moments) @ basis.T)

    @cached_property
    def theta(self) -> Array:
        """The least-squares line."""
        offset = self.line.offset
        return np.asarray(
            offset + self.bread @ (self.weighted.T @ (self.response - self.scaled @ offset)) / len(self.scaled)
        )

    @cached_property
    def residuals(self) -> Array:
        """Residuals (rows,), with the freedom that the line took given back."""
        rows, p = self.scaled.shape
        return np.asarray((self.response - self.scaled @ self.theta) * sqrt(rows / max(rows - p, 1)))

    @cached_property
    def sandwich(self) -> Array:
        """The covariance of the least-squares line from one record; unequal variances allowed."""
        scores = self.scaled * self.residuals[:, None]
        return np.asarray(self.bread @ ((scores * self.weights[:, None]).T @ scores / len(scores)) @ self.bread)

    @property
    def variance(self) -> float:
        """Of the residuals."""
        return float(self.weights @ self.residuals**2 / len(self.residuals))


def stated(design: Design, schema: Schema) -> bool:
    """Whether each column of numbers that the design needs has a typical spread, columns of two values aside."""
    columns = (schema[name] for name in design.columns)
    return all(isinstance(c, Categorical) or c.steps == 2 or c.spread is not None for c in columns)


def whole(design: Design, schema: Schema) -> bool:
    """Whether each column of the design states all that it may: its own share beside its spread, or the shares of its levels."""
    columns = [schema[name] for name in design.columns]
    return all(
        c.shares is not None if isinstance(c, Categorical) else c.steps == 2 or _own(c) is not None for c in columns
    )


def shapes(design: Design, schema: Schema, count: int, *, far: bool = False) -> Iterator[Shape]:
    """The first `count` shapes; the same for the same schema and formula. far: whether bounds of features may lie far out."""
    rows = max(_ROWS, 12 * (len(design.terms) + 1))
    line = line_of(design)
    features = [name for name in design.columns if name not in design.response.columns]
    for k in range(count):
        pairs, weights = _records(schema, features, design.response.columns, rows, k, rare=_RARE, far=far)
        yield _shape(design, np.array([pairs[name] for name in design.columns]), weights, line, k)


def frame(schema: Schema, features: Sequence[str], response: str, rows: int, k: int) -> dict[str, Any]:
    """Records of shape k by column, to run a method on; other columns are even within their bounds."""
    pairs, weights = _records(schema, list(features), (response,), rows, k)
    others = schema.sample(rows, seed=_SEED + k)
    made = {
        name: schema[name].decode(pairs[name]) if name in pairs else others[name].to_numpy() for name in schema.names
    }
    # rare levels were given a few records more; drawn again by weight they are as rare as they should be
    chosen = np.random.Generator(np.random.PCG64([_SEED, k, 1])).choice(rows, rows, p=weights / weights.sum())
    return {name: values[chosen] for name, values in made.items()}


def _records(
    schema: Schema,
    features: list[str],
    response: tuple[str, ...],
    rows: int,
    k: int,
    rare: float = 0.0,
    *,
    far: bool = False,
) -> tuple[dict[str, Array], Array]:
    """Codes of each column in records of shape k, and weights. rare: the share of records that are given to what is rare."""
    generator = np.random.Generator(np.random.PCG64([_SEED, k]))
    scores, noise, weights = _scores(generator, rows, [_own(schema[name]) for name in features], rare)
    signal = scores @ generator.normal(size=len(features)) if features else np.zeros(rows)
    signal = signal - weights @ signal / rows
    spread = sqrt(float(weights @ signal**2) / rows)
    left = _LEAST_LEFT + (1 - _LEAST_LEFT) * generator.random() ** 1.5
    stated_left = _own(schema[response[0]])
    explained = 1 - (left if stated_left is None else stated_left) if spread > 0 else 0.0
    outcome = sqrt(explained) * signal / (spread or 1.0) + sqrt(1 - explained) * noise
    given = dict(zip(features, scores.T, strict=True))
    made = {}
    # of its own, so that far bounds of one column change no other column
    bounds = np.random.Generator(np.random.PCG64([_SEED, k, 2]))
    lies = {name: _part(schema[name], bounds) for name in features} if far else {}
    for name in dict.fromkeys((*features, *response)):
        made[name], factor = _codes(
            schema[name], given.get(name, outcome), weights, generator,
            long=k % _KINDS == _KINDS - 1, part=lies.get(name),
        )  # fmt: skip
        weights = weights * factor
    shares = {name: _own(schema[name]) for name in features} | dict.fromkeys(response, 1 - explained)
    for name, share in shares.items():
        others = [other for other in features if other != name]
        if share is not None and share < 1 and schema[name].steps > 2 and others:
            made[name] = _leaving(share, made[name], _columns(schema, others, made), weights, schema[name].steps)
    return made, weights


def _columns(schema: Schema, features: list[str], made: dict[str, Array]) -> Array:
    """The features as a line takes them, (rows, k): levels one by one."""
    columns = [np.ones_like(made[features[0]])]
    for name in features:
        if isinstance(schema[name], Categorical):
            columns += [(made[name] == level).astype(np.float64) for level in range(1, schema[name].steps)]
        else:
            columns.append(made[name] / schema[name].steps)
    return np.column_stack(columns)


def _leaving(share: float, codes: Array, columns: Array, weights: Array, steps: int) -> Array:
    """The codes with residuals so stretched that a line in the columns leaves this share of the variance; 95 % lie where they did.

    Bent margins, rare levels and bounds leave more or less than the line in normal scores did.
    """
    weighted = columns * weights[:, None]
    fit = columns @ (np.linalg.pinv(weighted.T @ columns) @ (weighted.T @ codes))
    rest = codes - fit
    left, whole = float(weights @ rest**2), float(weights @ (fit - weights @ fit / weights.sum()) ** 2)
    if min(left, whole) <= 0 or share >= 1:
        return codes
    moved = fit + sqrt(share / (1 - share) * whole / left) * rest
    (low, high), (new, top) = (_quantiles(values, weights) for values in (moved, codes))
    if high <= low or top <= new:
        return codes
    return np.asarray(np.clip(np.rint(new + (moved - low) * (top - new) / (high - low)), 0, steps - 1))


def _quantiles(values: Array, weights: Array) -> Array:
    """Between which 95 % of the values lie."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return np.asarray(
        values[order][np.minimum(np.searchsorted(below, [_OUTSIDE / 2, 1 - _OUTSIDE / 2]), len(values) - 1)]
    )


def _own(column: Numeric | Integer | Categorical) -> float | None:
    """The stated share of a column's variance that is its own."""
    return None if isinstance(column, Categorical) or column.spread is None else column.spread.own


def _scores(
    generator: np.random.Generator, rows: int, stated: list[float | None], rare: float
) -> tuple[Array, Array, Array]:
    """Normal scores (rows, width) that share one factor, each with its own share of the variance; noise (rows,); weights (rows,).

    Of a share of the records one of the normal numbers behind them is drawn with twice the sd: rare values are seen more often, with
    less weight.
    """
    drawn = _LEAST_OWN ** (generator.random(len(stated)) ** 3)
    own = np.array([mine if given is None else given for mine, given in zip(drawn, stated, strict=True)])
    signs = generator.choice([-1.0, 1.0], size=len(own))
    numbers = generator.normal(size=(rows, len(own) + 2))
    few = int(rare * rows)
    numbers[np.arange(few), np.arange(few) % numbers.shape[1]] *= _WIDE
    # the density of what was drawn over that of a normal distribution
    density = np.exp(numbers**2 * (1 - _WIDE**-2) / 2) / _WIDE
    weights = 1 / (1 - few / rows + few / rows * density.mean(axis=1))
    scores = np.sqrt(1 - own) * numbers[:, :1] * signs + np.sqrt(own) * numbers[:, 2:]
    return np.asarray(scores), numbers[:, 1], np.asarray(weights / weights.mean())


def _shape(design: Design, column_codes: Array, weights: Array, line: Line, number: int) -> Shape:
    """Records coded by the design itself, so that clipping, derived terms and missing values are as in a release."""
    codes, keep = design.codes(column_codes)
    used = codes if keep is None else codes[:, keep]
    steps = np.array([term.steps - 1.0 for term in (*design.terms, design.response)])
    places = 2 * used.T / steps - 1
    weights = weights if keep is None else weights[keep]
    scaled = np.column_stack([np.ones(len(places)), places[:, :-1]])
    kept = column_codes if keep is None else column_codes[:, keep]
    return Shape(scaled, places[:, -1], weights / weights.mean(), line, number, kept)


def _codes(
    column: Numeric | Integer | Categorical,
    scores: Array,
    weights: Array,
    generator: np.random.Generator,
    *,
    long: bool,
    part: float | None,
) -> tuple[Array, Array]:
    """Codes of a column whose order is that of normal scores, and factors of the weights. part: of its bounds that it lies in, if drawn."""
    if isinstance(column, Categorical):
        ranks = np.arange(1.0, column.steps + 1) ** -generator.uniform(0, _STEEPEST)
        drawn = generator.permutation(_thinned(ranks / ranks.sum(), generator.spawn(1)[0]))
        return _levels(drawn if column.shares is None else np.array(column.shares.each), scores, weights)
    if column.steps == 2:
        share = exp(generator.uniform(log(_RAREST), log(0.5)))
        return _levels(generator.permutation([share, 1 - share]), scores, weights)
    return column.code(_values(column, scores, generator, long=long, part=part)), np.ones(len(scores))


def _thinned(shares: Array, generator: np.random.Generator) -> Array:
    """Falling shares of levels, some of the last ones next to empty. generator: of its own, so that no other column is another one."""
    empty = int((generator.random(max(len(shares) - 2, 0)) < _EMPTY).sum())
    drawn = np.exp(generator.uniform(log(_SPARSE[0]), log(_SPARSE[1]), size=empty))
    kept = shares[: len(shares) - empty]
    thin = np.minimum(np.sort(drawn)[::-1], shares[len(shares) - empty :])
    return np.concatenate([kept * (1 - thin.sum()) / kept.sum(), thin])


def _levels(shares: Array, scores: Array, weights: Array) -> tuple[Array, Array]:
    """Positions of levels with given shares, in the order of the scores, at least a few of each; weights that undo the latter."""
    taken = np.maximum(shares, _FEW / len(scores))
    taken = taken / taken.sum()
    order = np.argsort(scores)
    below = np.empty(len(scores))
    below[order] = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    places = np.searchsorted(np.cumsum(taken)[:-1], below)
    return places.astype(np.float64), (shares / taken)[places]


def _part(column: Numeric | Integer | Categorical, generator: np.random.Generator) -> float | None:
    """In how much of its far bounds a column lies; None for one whose bounds are not far."""
    drawn, part = generator.random(2)
    chance = _FAR_WHOLE if isinstance(column, Integer) else _FAR
    return float(_FARTHEST * (_NARROWEST / _FARTHEST) ** part) if drawn < chance else None


def _values(
    column: Numeric | Integer, scores: Array, generator: np.random.Generator, *, long: bool, part: float | None = None
) -> Array:
    """long: beyond the ends of the interval in which 95 % lie, values fall like those of a Pareto distribution."""
    low, high = _interval(column, generator, part)
    form, index = generator.random(), generator.uniform(*_INDICES)
    skewed, middle = form < 0.5, (low + high) / 2
    if column.spread is None and form >= 1 - _EVEN:
        return np.asarray(middle + (high - low) * (ndtr(scores) - 0.5) / (1 - _OUTSIDE))
    toward = 1.0 if middle - column.low <= column.high - middle else -1.0
    beyond, within = np.ones(len(scores)), toward * scores
    if long:
        beyond = np.maximum(np.maximum(2 * ndtr(-np.abs(scores)) / _OUTSIDE, 1e-12) ** (-1 / index), 1.0)
        within = np.minimum(within, _Z)
    if not skewed:
        return np.asarray(middle + toward * (high - low) / 2 * np.maximum(within, -_Z if long else -inf) / _Z * beyond)
    least, most = exp(-_SKEW * _Z), exp(_SKEW * _Z)
    place = (np.exp(_SKEW * within) - least) / (most - least)
    place = np.where(place > 0.5, place * beyond, place)
    return np.asarray(low + (high - low) * place if toward > 0 else high - (high - low) * place)


def _interval(column: Numeric | Integer, generator: np.random.Generator, part: float | None) -> tuple[float, float]:
    """Where 95 % of the values lie."""
    # drawn in any case, so that what one column states changes no other column
    share, place = generator.uniform(_NARROWEST, 1.0), generator.random()
    if column.spread is not None:
        return column.spread.low, column.spread.high
    share = share if part is None else part
    # a column of whole numbers has more than one of them
    width = max(share * (column.high - column.low), 2 * (column.high - column.low) / (column.steps - 1))
    low = column.low + place * (column.high - column.low - width)
    return low, low + width
