"""The one family of simulated datasets that obey a schema: forecasts, advice and margins are simulated on it. No record is read.

A scenario is a weighted set of records, of which rare ones have little weight. It is drawn as follows.

Numeric columns. 95% of a column's values lie in an interval: its typical spread where the schema states one. Otherwise it has 5% to
100% of the width of the column's bounds (uniform), anywhere inside them. Values are normal, or (half of the time) skewed away from the
nearer bound, as a shifted lognormal of log-SD 0.75. One column in six whose spread is not stated is even, as days of the week are. In
one scenario of three all columns that are not even have long tails: beyond the interval, values fall like those of a Pareto
distribution of index 1.5 to 4. Beyond the bounds they are clipped. A feature whose spread is not stated lies in less than 5% of its
bounds with a chance of 0.05 (0.02 for whole numbers). Then 95% of its values keep to 0.2% to 5% of their width, log-uniform. So do 14
of 242 numeric columns and 2 of 66 of whole numbers in the 38 tables of the benchmark (`CONFIDE_FORECASTS=bounds confide lab bench
forecasts_outcomes`).

Shares. A 0/1 column has a share of ones, and a factor a share of each level; both may be rare. They are the shares that the schema
states. Otherwise ones are log-uniform from 1% to 50%, and levels go with 1/rank^a with a from 0 to 2.5, in random order. Of a factor
whose shares are not stated each level beyond the second is close to empty with a chance of 0.1: a log-uniform share of 0.02% to 1%. So
are 8 levels of a hundred in the factors of 5 to 14 levels of adult's census records, and none would be among powers of the rank alone.

Dependence. Normal scores of all features share one factor, with loadings of any sign. A feature's own share of its variance is
1000^(-u^3), u uniform. A random linear function of these scores leaves 0.03 + 0.97 u^1.5 of the response's variance. That is about as
in 23 tables of statsmodels and scikit-learn: their variance inflation has median 2.6, and a tenth of the tables are above 18. The
variance left has median 0.32, and a tenth are below 0.03. Where the schema states a column's own share, that replaces it. What the
linear function leaves, and a stated share, refer to the values themselves: residuals are stretched until they agree.

Responses. A response of two values follows log-odds along a random linear function of the features' values, of SD 0.3 to 2. The share
of its second value is what the schema states, otherwise between 5% and 95%, evenly. A response that is analyzed as a count has events
in every second scenario, log-linear along a linear function of SD 0.1 to 0.8. Their mean is that of the typical values where the schema
states them, otherwise from a hundredth to half of the declared bound. Their variance is mean + a mean^2, that of Poisson counts of
which a/(1 + a) are zeros in excess: none, a third, two thirds, nine tenths. In the other scenarios it is a quantity of any spread, as
any number is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide._special import expit, ndtr
from confide.schema import Categorical, CodedFrame, Integer, Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


#: The family in words, for whoever prints a forecast.
FAMILY = (
    "features and response anywhere in 5% to 100% of their bounds where nothing is stated, even to long-tailed; 0/1 columns and levels "
    "as rare as 1% and below; one numeric feature in 20 in less than 5% of its bounds"
)

_SEED = 20261122
_NARROWEST = 0.05
# The chances of far bounds, and in how much of them at least a column then lies.
_FAR, _FAR_WHOLE, _FARTHEST = 0.05, 0.02, 0.002
# Drawn records of a scenario: so many, and for each term of a line at least so many.
_ROWS, _ROWS_OF_EACH = 400, 12
# this share of them is given to what is rare, at so many times the sd
_RARE, _WIDE = 0.3, 2.0
_RAREST = 0.01
_STEEPEST = 2.5
# The chance of a level beyond the second that it is next to empty, and between what shares it then lies.
_EMPTY, _SPARSE = 0.1, (0.0002, 0.01)
_SKEW = 0.75
# One scenario of so many has long tails, of indices from 1.5 to 4, outside the interval in which 95 % of the values lie.
_KINDS, _INDICES, _OUTSIDE = 3, (1.5, 4.0), 0.05
_LEAST_OWN, _LEAST_LEFT = 0.001, 0.03
# Of columns whose spread is not stated so many are even.
_EVEN = 1 / 6
# So many records of each level at least.
_FEW = 8
# the normal quantile of 97.5 %
_Z = 1.959963984540054
# Of a response of two values: between which its share lies where the schema does not state it, how rare it may be; the sd of log-odds.
_SHARES, _SUREST, _ODDS = (0.05, 0.95), 0.005, (0.3, 2.0)
# Of counts: between which mean counts over their declared bound lie, evenly in their logarithms, where the schema states no typical
# range: a bound is made for the largest; the sd of the logarithm of their means; their dispersions.
_MEAN_COUNTS, _RATES, _DISPERSIONS = (0.01, 0.5), (0.1, 0.8), (0.0, 0.5, 2.0, 9.0)
# The least mean, and how many counts each record stands for: a few large ones are what noise is in proportion to.
_FEWEST, _COUNTS = 0.01, 5
# Beyond so many sds of the features a line of log-odds or of rates goes on no further.
_STEEP = 8.0


@dataclass(frozen=True)
class Columns:
    """The columns of a schema that an analysis is about.

    outcome: how the response is analyzed, where the schema does not state it: as "two" values, as a "count", "" for what it is declared
    as.
    """

    features: tuple[str, ...]
    response: tuple[str, ...]
    outcome: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, features first, each once."""
        return tuple(dict.fromkeys((*self.features, *self.response)))


@dataclass(frozen=True, eq=False)
class Scenario:
    """One simulated dataset: codes of each column (rows,), and for how many records each row stands, on average 1; number: which one."""

    schema: Schema
    codes: Mapping[str, Array]
    weights: Array
    number: int = 0

    @classmethod
    def of_records(cls, frame: Any, schema: Schema, number: int = 0) -> Scenario:
        """Public rows, each as often as it stands there."""
        codes = CodedFrame.of(frame, schema).codes
        return cls(schema, codes, np.ones(len(next(iter(codes.values())))), number)

    def practice(self, rows: int) -> CodedFrame:
        """About so many records, each row as often as its weight states, for analyses without privacy."""
        ends = np.rint(np.cumsum(self.weights) * (rows / self.weights.sum())).astype(np.int64)
        each = np.diff(ends, prepend=0)
        return CodedFrame(self.schema, {name: codes.repeat(each) for name, codes in self.codes.items()})

    def frame(self, rows: int, generator: np.random.Generator) -> pd.DataFrame:
        """Records drawn from it, in the units of the columns."""
        chosen = generator.choice(len(self.weights), rows, p=self.weights / self.weights.sum())
        return pd.DataFrame({name: self.schema[name].decode(codes[chosen]) for name, codes in self.codes.items()})


def unstated(schema: Schema, names: Sequence[str]) -> list[str]:
    """Those of these columns that hold numbers and have no typical spread, columns of two values aside."""
    columns = {name: schema[name] for name in names}
    return [name for name, c in columns.items() if not isinstance(c, Categorical) and c.steps > 2 and c.spread is None]


def whole(schema: Schema, names: Sequence[str]) -> bool:
    """Whether each of these columns states all that it may: its own share beside its spread, or the shares of its levels."""
    columns = [schema[name] for name in names]
    return all(
        c.shares is not None if isinstance(c, Categorical) else c.steps == 2 or _own(c) is not None for c in columns
    )


@lru_cache(maxsize=8)
def scenarios(schema: Schema, columns: Columns, count: int) -> tuple[Scenario, ...]:
    """The first `count` scenarios; the same for the same schema and columns."""
    terms = sum(own.steps - 1 if isinstance(own, Categorical) else 1 for own in map(schema.__getitem__, columns.names))
    rows = max(_ROWS, _ROWS_OF_EACH * (terms + 1))
    return tuple(_scenario(schema, columns, rows, k, _RARE) for k in range(count))


def scenario_frame(schema: Schema, columns: Columns, rows: int, k: int) -> pd.DataFrame:
    """Records of scenario k, to run a method on; other columns are even within their bounds."""
    generator = np.random.Generator(np.random.PCG64([_SEED, k, 1]))
    made = _scenario(schema, columns, rows, k, 0.0).frame(rows, generator)
    others = schema.sample(rows, seed=_SEED + k)
    return pd.DataFrame({name: made[name] if name in made else others[name] for name in schema.in_data})


def _scenario(schema: Schema, columns: Columns, rows: int, k: int, rare: float) -> Scenario:
    codes, weights = _records(schema, columns, rows, k, rare)
    for name in columns.response:
        kind = _kind(schema[name], columns.outcome, k)
        if kind is not None:
            codes, weights = kind(schema, columns, name, codes, weights, k)
    return Scenario(schema, codes, weights / weights.mean(), k)


Codes = dict[str, Array]
Outcome = Callable[[Schema, Columns, str, Codes, Array, int], tuple[Codes, Array]]


def _kind(column: Numeric | Integer | Categorical, outcome: str, k: int) -> Outcome | None:
    """How a response follows the features where that is not as a number does."""
    if column.steps == 2 or (outcome == "two" and not isinstance(column, Categorical)):
        return _two_values
    return _events if outcome == "count" and k % 2 == 0 and not isinstance(column, Categorical) else None


def _two_values(
    schema: Schema, columns: Columns, name: str, codes: Codes, weights: Array, k: int
) -> tuple[Codes, Array]:
    """Each record with either value, as often as its chance says."""
    column, generator = schema[name], np.random.Generator(np.random.PCG64([_SEED, k, 3]))
    share = generator.uniform(*_SHARES)
    if isinstance(column, Categorical) and column.shares is not None:
        share = column.shares.each[1]
    line = _line(schema, columns, name, codes, weights, generator, generator.uniform(*_ODDS))
    chance = expit(_intercept(expit, line, weights, float(np.clip(share, _SUREST, 1 - _SUREST))) + line)
    repeated = {key: np.tile(values, 2) for key, values in codes.items()}
    repeated[name] = np.repeat([0.0, column.steps - 1.0], len(weights))
    return repeated, np.concatenate([weights * (1 - chance), weights * chance])


def _events(schema: Schema, columns: Columns, name: str, codes: Codes, weights: Array, k: int) -> tuple[Codes, Array]:
    """Each record with several counts."""
    column, generator = schema[name], np.random.Generator(np.random.PCG64([_SEED, k, 3]))
    assert not isinstance(column, Categorical)
    mean = column.high * exp(generator.uniform(log(_MEAN_COUNTS[0]), log(_MEAN_COUNTS[1])))
    more = _DISPERSIONS[k // 2 % len(_DISPERSIONS)]
    if column.spread is not None:
        mean = float(weights @ column.decode(codes[name]) / weights.sum())
        more = min(more, max(((column.spread.high - mean) / 2) ** 2 - mean, 0.0) / mean**2)
    mean = min(max(mean, _FEWEST), (1 - _SUREST) * column.high)
    line = _line(schema, columns, name, codes, weights, generator, generator.uniform(*_RATES))

    def rate(predictor: Array) -> Array:
        return np.asarray(np.minimum(np.exp(np.minimum(predictor, log(column.high))), column.high))

    rates = np.tile(rate(_intercept(rate, line, weights, mean) + line), _COUNTS)
    if more:
        rates = rates * generator.gamma(1 / more, more, len(rates))
    repeated = {key: np.tile(values, _COUNTS) for key, values in codes.items()}
    repeated[name] = column.code(np.clip(generator.poisson(rates), column.low, column.high))
    return repeated, np.tile(weights, _COUNTS)


def _line(
    schema: Schema,
    columns: Columns,
    name: str,
    codes: Codes,
    weights: Array,
    generator: np.random.Generator,
    sd: float,
) -> Array:
    """A random line in the features' values, of mean 0 and this SD; levels of a factor count by their place."""
    total = np.zeros(len(weights))
    for feature in columns.features:
        slope = generator.normal()
        if feature != name:
            total += slope * _standard(codes[feature], weights)
    return np.clip(_standard(total, weights), -_STEEP, _STEEP) * sd


def _standard(values: Array, weights: Array) -> Array:
    centered = values - weights @ values / weights.sum()
    return np.asarray(centered / (sqrt(float(weights @ centered**2 / weights.sum())) or 1.0))


def _intercept(mean: Callable[[Array], Array], line: Array, weights: Array, wanted: float) -> float:
    """Where the mean of the response is as wanted."""
    low, high = -40.0 - float(line.max()), 40.0 - float(line.min())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if float(weights @ mean(middle + line)) > wanted * weights.sum() else (middle, high)
    return (low + high) / 2


def _records(schema: Schema, columns: Columns, rows: int, k: int, rare: float) -> tuple[Codes, Array]:
    """Codes of each column in records of scenario k, and weights. rare: the share of records that are given to what is rare."""
    features, response = columns.features, columns.response
    generator = np.random.Generator(np.random.PCG64([_SEED, k]))
    scores, noise, weights = _scores(generator, rows, [_own(schema[name]) for name in features], rare)
    signal = scores @ generator.normal(size=len(features)) if features else np.zeros(rows)
    signal = signal - weights @ signal / rows
    spread = sqrt(float(weights @ signal**2) / rows)
    left = _LEAST_LEFT + (1 - _LEAST_LEFT) * generator.random() ** 1.5
    stated_left = _own(schema[response[0]]) if response else None
    explained = 1 - (left if stated_left is None else stated_left) if spread > 0 else 0.0
    outcome = sqrt(explained) * signal / (spread or 1.0) + sqrt(1 - explained) * noise
    given = dict(zip(features, scores.T, strict=True))
    made: Codes = {}
    # of its own, so that far bounds of one column change no other column
    bounds = np.random.Generator(np.random.PCG64([_SEED, k, 2]))
    lies = {name: _part(schema[name], bounds) for name in features}
    for name in columns.names:
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


def _columns(schema: Schema, features: list[str], made: Codes) -> Array:
    """The features as a model matrix takes them, (rows, k): levels individually."""
    columns = [np.ones_like(made[features[0]])]
    for name in features:
        if isinstance(schema[name], Categorical):
            columns += [(made[name] == level).astype(np.float64) for level in range(1, schema[name].steps)]
        else:
            columns.append(made[name] / schema[name].steps)
    return np.column_stack(columns)


def _leaving(share: float, codes: Array, columns: Array, weights: Array, steps: int) -> Array:
    """The codes with residuals so stretched that a line in the columns leaves this share of the variance; 95% lie where they did.

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
    """Between which 95% of the values lie."""
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

    For a share of the records one of the normal numbers behind them is drawn with twice the SD: rare values occur more often, with less
    weight.
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
    """Decreasing shares of levels, some of the last ones close to empty. generator: separate, so that no other column changes."""
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
    """The share of its bounds in which a column lies; None for one whose bounds are not too wide."""
    drawn, part = generator.random(2)
    chance = _FAR_WHOLE if isinstance(column, Integer) else _FAR
    return float(_FARTHEST * (_NARROWEST / _FARTHEST) ** part) if drawn < chance else None


def _values(
    column: Numeric | Integer, scores: Array, generator: np.random.Generator, *, long: bool, part: float | None = None
) -> Array:
    """long: beyond the ends of the interval in which 95% lie, values fall like those of a Pareto distribution."""
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
    """Where 95% of the values lie."""
    # drawn in any case, so that what one column states changes no other column
    share, place = generator.uniform(_NARROWEST, 1.0), generator.random()
    if column.spread is not None:
        return column.spread.low, column.spread.high
    share = share if part is None else part
    # a column of whole numbers has more than one of them
    width = max(share * (column.high - column.low), 2 * (column.high - column.low) / (column.steps - 1))
    low = column.low + place * (column.high - column.low - width)
    return low, low + width
