"""Ways in which records may lie within a schema's bounds: what a forecast is simulated on. No record is read.

A shape is drawn from a stated family:

- 95 % of a column's values lie in an interval: its typical spread where the schema states one; else one of 5 % to 100 % of the width of its
  box (uniform), anywhere inside it. Between these two quantiles values are normal, or (half of the time) skewed away from the nearer
  bound, as a shifted lognormal of log-sd .75; beyond the bounds they are clipped.
- A 0/1 column has a share of ones, and a factor a share of each level, that may be rare: log-uniform from 1 % to 50 %, and 1/rank^a with a
  from 0 to 2.5, in random order, or the shares that the schema states.
- Normal scores of all features share one factor, with loadings of any sign; a feature's own share of its variance is 100^(-u^2), and a
  random line in these scores leaves .03 + .97 u^1.5 of the response's variance, u uniform: about as in 23 tables of statsmodels and
  scikit-learn (variance inflation: median 2.6, a tenth of the tables above 18; variance left: a tenth below .03, median .32). Where the
  schema states a column's own share, that takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.regression.normal_equations import Line
from confide.regression.scaling import line_of
from confide.schema import Categorical, Design, Integer, Numeric, Schema

__all__ = ["FAMILY", "Shape", "frame", "shapes", "stated"]

Array = NDArray[np.float64]

#: The family in words, for whoever prints a forecast.
FAMILY = "features and response anywhere in 5 % to 100 % of their bounds where nothing is stated"

_SEED = 20261122
_NARROWEST = 0.05
_ROWS = 300
_RAREST = 0.01
_STEEPEST = 2.5
_SKEW = 0.75
_LEAST_OWN, _LEAST_LEFT = 0.01, 0.03
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


def shapes(design: Design, schema: Schema, count: int) -> Iterator[Shape]:
    """The first `count` shapes; the same for the same schema and formula."""
    rows = max(_ROWS, 12 * (len(design.terms) + 1))
    line = line_of(design)
    features = [name for name in design.columns if name not in design.response.columns]
    for k in range(count):
        pairs = _records(schema, features, design.response.columns, rows, k)
        weights = np.prod([weights for _, weights in pairs.values()], axis=0)
        yield _shape(design, np.array([pairs[name][0] for name in design.columns]), weights, line, k)


def frame(schema: Schema, features: Sequence[str], response: str, rows: int, k: int) -> dict[str, Any]:
    """Records of shape k by column, to run a method on; other columns are even within their bounds."""
    pairs = _records(schema, list(features), (response,), rows, k)
    others = schema.sample(rows, seed=_SEED + k)
    made = {
        name: schema[name].decode(pairs[name][0]) if name in pairs else others[name].to_numpy() for name in schema.names
    }
    # rare levels were given a few records more; drawn again by weight they are as rare as they should be
    weights = np.prod([weights for _, weights in pairs.values()], axis=0)
    chosen = np.random.Generator(np.random.PCG64([_SEED, k, 1])).choice(rows, rows, p=weights / weights.sum())
    return {name: values[chosen] for name, values in made.items()}


def _records(
    schema: Schema, features: list[str], response: tuple[str, ...], rows: int, k: int
) -> dict[str, tuple[Array, Array]]:
    """Codes and weights of each column in records of shape k."""
    generator = np.random.Generator(np.random.PCG64([_SEED, k]))
    scores = _scores(generator, rows, [_own(schema[name]) for name in features])
    signal = scores @ generator.normal(size=len(features)) if features else np.zeros(rows)
    spread = float(signal.std())
    left = _LEAST_LEFT + (1 - _LEAST_LEFT) * generator.random() ** 1.5
    stated_left = _own(schema[response[0]])
    explained = 1 - (left if stated_left is None else stated_left) if spread > 0 else 0.0
    noise = generator.normal(size=rows)
    outcome = sqrt(explained) * (signal - signal.mean()) / (spread or 1.0) + sqrt(1 - explained) * noise
    given = dict(zip(features, scores.T, strict=True))
    names = dict.fromkeys((*features, *response))
    return {name: _codes(schema[name], given.get(name, outcome), generator) for name in names}


def _own(column: Numeric | Integer | Categorical) -> float | None:
    """The stated share of a column's variance that is its own."""
    return None if isinstance(column, Categorical) or column.spread is None else column.spread.own


def _scores(generator: np.random.Generator, rows: int, stated: list[float | None]) -> Array:
    """Normal scores (rows, width) that share one factor, each with its own share of the variance."""
    drawn = _LEAST_OWN ** (generator.random(len(stated)) ** 2)
    own = np.array([mine if given is None else given for mine, given in zip(drawn, stated, strict=True)])
    signs = generator.choice([-1.0, 1.0], size=len(own))
    common = generator.normal(size=(rows, 1))
    return np.asarray(np.sqrt(1 - own) * common * signs + np.sqrt(own) * generator.normal(size=(rows, len(own))))


def _shape(design: Design, column_codes: Array, weights: Array, line: Line, number: int) -> Shape:
    """Records coded by the design itself, so that clipping, derived terms and missing values are as in a release."""
    codes, keep = design.codes(column_codes)
    used = codes if keep is None else codes[:, keep]
    steps = np.array([term.steps - 1.0 for term in (*design.terms, design.response)])
    places = 2 * used.T / steps - 1
    weights = weights if keep is None else weights[keep]
    return Shape(
        np.column_stack([np.ones(len(places)), places[:, :-1]]), places[:, -1], weights / weights.mean(), line, number
    )


def _codes(
    column: Numeric | Integer | Categorical, scores: Array, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Codes of a column whose order is that of normal scores, and weights."""
    if isinstance(column, Categorical):
        ranks = np.arange(1.0, column.steps + 1) ** -generator.uniform(0, _STEEPEST)
        drawn = generator.permutation(ranks / ranks.sum())
        return _levels(drawn if column.shares is None else np.array(column.shares.each), scores)
    if column.steps == 2:
        share = exp(generator.uniform(log(_RAREST), log(0.5)))
        return _levels(generator.permutation([share, 1 - share]), scores)
    return column.code(_values(column, scores, generator)), np.ones(len(scores))


def _levels(shares: Array, scores: Array) -> tuple[Array, Array]:
    """Positions of levels with given shares, in the order of the scores, at least a few of each; weights that undo the latter."""
    taken = np.maximum(shares, _FEW / len(scores))
    taken = taken / taken.sum()
    edges = np.quantile(scores, np.minimum(np.cumsum(taken)[:-1], 1.0))
    places = np.searchsorted(edges, scores)
    return places.astype(np.float64), (shares / taken)[places]


def _values(column: Numeric | Integer, scores: Array, generator: np.random.Generator) -> Array:
    low, high = _interval(column, generator)
    middle = (low + high) / 2
    if generator.random() < 0.5:
        return np.asarray(middle + (high - low) / 2 * scores / _Z)
    toward = 1.0 if middle - column.low <= column.high - middle else -1.0
    least, most = exp(-_SKEW * _Z), exp(_SKEW * _Z)
    place = (np.exp(_SKEW * toward * scores) - least) / (most - least)
    return np.asarray(low + (high - low) * place if toward > 0 else high - (high - low) * place)


def _interval(column: Numeric | Integer, generator: np.random.Generator) -> tuple[float, float]:
    """Where 95 % of the values lie."""
    # drawn in any case, so that what one column states changes no other column
    share, place = generator.uniform(_NARROWEST, 1.0), generator.random()
    if column.spread is not None:
        return column.spread.low, column.spread.high
    # a column of whole numbers has more than one of them
    width = max(share * (column.high - column.low), 2 * (column.high - column.low) / (column.steps - 1))
    low = column.low + place * (column.high - column.low - width)
    return low, low + width
