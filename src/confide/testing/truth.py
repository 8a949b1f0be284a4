"""Intervals against the truth: the method's own `reference` on a population of test data, never the method against itself.

Samples are drawn from a population whose columns are correlated, and released at a budget where the noise makes about
half of the variance. There an interval that forgets the noise, or the sampling, is visibly wrong. Judged are the
share of intervals that cover and the mean of z^2, z = 1.96 (estimate - truth) / margin of error at 95%. It is above 1
where intervals are too narrow and below 1/4 where they are more than twice as wide as the errors need. With a
covariance the errors of all names are judged at once, too.

False alarms: a method whose pivot is normal, or whose intervals are conservative, rarely fails: in at most one of
1,000 contracts (`ALARM`, shared by the looks, the kinds of test and the names by Bonferroni). A method is looked at
twice: what shows no sign of trouble in the first `replications` is through; else three times as many decide. Seeds
are fixed, so that a contract says the same each time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide import _special as special, engine
from confide._arrays import Array
from confide.core import Method, Release, Result, method_parameters
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.schema import Categorical, CodedFrame, Schema
from confide.sources import read
from confide.testing.checks import Case, _expect
from confide.testing.test_data import ZeroNoise

#: How often a valid method fails, at most: in one of 1,000 contracts.
ALARM = 0.001
#: Intervals may be this many times as wide as their errors ask for.
WIDEST = 2.0
#: Records of the population and of each sample.
_POPULATION, _SIZE = 100_000, 5_000
# The budget is moved by at most this factor, in rounds of so many runs with noise and without.
_FARTHEST, _ROUNDS, _FEWEST, _PILOT = 20.0, 2, 5, 8
# After the first look: coverage and mean z^2 at which nothing more is asked.
_FINE_COVERAGE, _FINE_SQUARE = 0.92, 1.1
_NORMAL = float(special.ndtri(0.975))


def coverage(case: Case, replications: int = 80) -> None:
    """Intervals cover the non-private reference, half of the variance from noise, and are at most twice as wide as needed."""
    people = population(case.schema)
    whole = case.method.infer(
        engine.release(case.method, read(people, case.schema), case.privacy, ledger=None, noise=ZeroNoise())
    )
    own = getattr(whole, "params", None)
    if own is None:
        return  # a table or an artifact, no estimate
    truth = truth_of(case.method, people, case.schema, own, points="no_interval" in whole.flags)
    if truth is None or "no_interval" in whole.flags:
        return  # point estimates state no level
    if _extensive(case):
        truth = truth * (_SIZE / _POPULATION)
    at = balanced(case, people, pilots=max(_FEWEST, min(_PILOT, replications // 5)))
    runs = Runs(truth, tuple(_judged(at, people, range(replications), truth)))
    _expect(
        2 * len(runs.found) >= replications,
        f"{len(runs.found)} of {replications} runs with {_SIZE:,} test records at {at.privacy} had status valid, too few to judge "
        "intervals; give a larger privacy= to check_method",
    )
    runs.check(looks=2)
    if not runs.fine:
        more = Runs(truth, (*runs.found, *_judged(at, people, range(replications, 3 * replications), truth)))
        more.check(looks=2)


def population(schema: Schema) -> pd.DataFrame:
    """Test data whose columns are correlated: each has the values of `schema.sample`, in an order that follows a common
    factor.

    Without this every slope would be 0, and a method that shrinks to 0 would be right.
    """
    frame = schema.sample(_POPULATION, 10)
    generator = np.random.Generator(np.random.PCG64(12))
    factor = generator.normal(size=_POPULATION)
    for name in schema.in_data:
        column = schema[name]
        values = frame[name]
        if isinstance(column, Categorical):
            values = pd.Series(pd.Categorical(values, categories=list(column.levels), ordered=True))
        places = np.argsort(np.argsort(factor + 1.2 * generator.normal(size=_POPULATION)))
        frame[name] = np.asarray(values.sort_values(), dtype=object if isinstance(column, Categorical) else None)[
            places
        ]
    return frame


def truth_of(
    method: Method, people: pd.DataFrame, schema: Schema, own: pd.Series[float], *, points: bool = False
) -> pd.Series[float] | None:
    """The reference on a population, for every name of the method's table.

    points: a method of point estimates may say that a release alone determines what it estimates (`PlanError`); then None.
    """
    _expect(
        type(method).reference is not Method.reference,
        "it has estimates and states no reference(frame): the same question without privacy, by the names of its table",
    )
    try:
        found = method.reference(CodedFrame.of(people, schema).where(method.where))
    except PlanError as error:
        _expect(points, f"it has intervals and no reference to hold them against: {error}")
        return None
    missing = [str(name) for name in own.index if name not in found]
    _expect(not missing, f"its reference has no {', '.join(missing[:3])}, which its table has")
    truth = pd.Series({name: float(found[name]) for name in own.index})
    _expect(bool(np.isfinite(truth).all()), "its reference is not finite on test data")
    return truth


# the budget -----------------------------------------------------------------------------------------------------------


def balanced(case: Case, people: pd.DataFrame, *, pilots: int = _PILOT) -> Case:
    """The case at a budget where the variance by noise is near that by sampling; nearer to the asked one where few runs would be ok."""
    factor, sampling = 1.0, _variance(_silent(case, people, range(2 * pilots)))
    for _ in range(_ROUNDS):
        noise = _variance(_runs(_scaled(case, factor), people, range(pilots), same=True))
        if noise is None or sampling is None:
            break
        with np.errstate(all="ignore"):
            ratio = float(np.nanmedian(noise / sampling))
        if not np.isfinite(ratio) or ratio <= 0:
            break
        factor = float(np.clip(factor * np.sqrt(ratio), 1 / _FARTHEST, _FARTHEST))
    for one in (factor, np.sqrt(factor), 1.0):
        at = _scaled(case, float(one))
        if sum(result.status == "valid" for result in _runs(at, people, range(pilots))) > pilots / 2:
            return at
    return case


def _scaled(case: Case, factor: float) -> Case:
    return dataclasses.replace(case, privacy=_priced(case.privacy, factor))


def _priced(privacy: Guarantee, factor: float) -> Guarantee:
    """A guarantee of noise that is `factor` times smaller, near enough."""
    if isinstance(privacy, GDP):
        return dataclasses.replace(privacy, mu=privacy.mu * factor)
    if isinstance(privacy, ZCDP):
        return dataclasses.replace(privacy, rho=privacy.rho * factor**2)
    if isinstance(privacy, PureDP | ApproxDP):
        return dataclasses.replace(privacy, epsilon=privacy.epsilon * factor)
    return privacy


def _runs(case: Case, people: pd.DataFrame, seeds: Sequence[int], *, same: bool = False) -> Iterator[Result]:
    """Results of samples from a population, one for each seed; same: of one sample, with other noise."""
    for seed in seeds:
        yield case.method.infer(_released(case, people, seed, same=same))


def _released(case: Case, people: pd.DataFrame, seed: int, *, same: bool = False) -> Release:
    return case.release(_sampled(case, people, 0 if same else seed), seed)


def _extensive(case: Case) -> bool:
    """Whether the method's numbers grow with the number of records, as counts and totals do: `extensive = True` in its class."""
    return bool(case.method.extensive)


def _sampled(case: Case, people: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A sample; of a random size for numbers that grow with it, whose intervals cover that, too."""
    generator = np.random.Generator(np.random.PCG64([11, seed]))
    size = int(generator.poisson(_SIZE)) if _extensive(case) else _SIZE
    return people.iloc[generator.integers(0, len(people), size)]


def _with_derived(people: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Test data with the derived columns too, whose ranges a release may have found."""
    coded = CodedFrame.of(people, schema)
    return people.assign(**{name: coded[name].to_numpy() for name in schema.derive})


def _own_truth(
    case: Case, people: pd.DataFrame, seed: int, truth: pd.Series[float], release: Release
) -> pd.Series[float]:
    """What the intervals of one run are about: the population, or, where a method says that it covers the dataset, its sample.

    Of columns as clipped to the ranges that the release found.
    """
    sampled = method_parameters(case.method).get("inference") == "dataset"
    if not sampled and not any(own.clips for own in release.ranges.values()):
        return truth
    whole = CodedFrame.of(
        _with_derived(_sampled(case, people, seed) if sampled else people, case.schema), release.plan.declared
    )
    found = case.method.reference(whole.where(case.method.where))
    part = _SIZE / _POPULATION if _extensive(case) and not sampled else 1.0
    return pd.Series({name: float(found[name]) * part for name in truth.index})


def _silent(case: Case, people: pd.DataFrame, seeds: Sequence[int]) -> Iterator[Result]:
    """Results of samples without noise: how far sampling alone moves an estimate."""
    for seed in seeds:
        source = read(_sampled(case, people, seed), case.schema)
        try:
            yield case.method.infer(engine.release(case.method, source, case.privacy, ledger=None, noise=ZeroNoise()))
        except ConfideError:
            return  # noise is a part of what it computes


def _variance(results: Iterator[Any]) -> Array | None:
    """The variance of each estimate over results, from the quartiles: one wild run in few must not decide."""
    found = [np.asarray(one.params, dtype=float) for one in results]
    if len(found) < _FEWEST:
        return None
    low, high = np.nanpercentile(np.array(found), (25, 75), axis=0)
    return np.asarray(((high - low) / 1.349) ** 2)


# the verdict ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """One judged result. inside: whether each interval covers; z: errors in units of a standard error that the interval implies.

    squared: the errors of all names at once, in units of the covariance, and how many dimensions it has; None without one.
    """

    inside: NDArray[np.bool_]
    z: Array
    squared: tuple[float, int] | None


def _judged(case: Case, people: pd.DataFrame, seeds: Sequence[int], truth: pd.Series[float]) -> Iterator[_Run]:
    found: Any
    population = truth
    for seed in seeds:
        release = _released(case, people, seed)
        found = case.method.infer(release)
        if found.status != "valid":
            continue
        truth = _own_truth(case, people, seed, population, release)
        interval = found.conf_int(alpha=0.05).to_numpy()
        error = np.asarray(found.params.to_numpy() - truth.to_numpy(), dtype=np.float64)
        with np.errstate(all="ignore"):
            z = _NORMAL * error / ((interval[:, 1] - interval[:, 0]) / 2)
        inside = (interval[:, 0] <= truth.to_numpy()) & (truth.to_numpy() <= interval[:, 1])
        yield _Run(inside, z, _at_once(error, getattr(found, "covariance", None)))


def _at_once(error: Array, covariance: Any) -> tuple[float, int] | None:
    if not isinstance(covariance, np.ndarray) or covariance.shape != (len(error),) * 2 or len(error) < 2:
        return None
    if not np.isfinite(covariance).all() or not np.isfinite(error).all():
        return None
    # names that follow from others, as shares that add up to 1, add no dimension
    values, vectors = np.linalg.eigh(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))))
    kept = values > 1e-6
    turned = vectors[:, kept].T @ (error / np.sqrt(np.diag(covariance)))
    return float((turned**2 / values[kept]).sum()), int(kept.sum())


@dataclass(frozen=True)
class Runs:
    """Judged runs of one method with the truth."""

    truth: pd.Series[float]
    found: tuple[_Run, ...]

    @property
    def hits(self) -> NDArray[np.int64]:
        """How many intervals of each name cover."""
        return np.asarray(np.sum([one.inside for one in self.found], axis=0))

    @property
    def squares(self) -> Array:
        """The mean of z^2 of each name; an interval without end is wider than any, and one that is not a number tells nothing."""
        return np.asarray(np.nanmean([one.z**2 for one in self.found], axis=0))

    @property
    def together(self) -> tuple[float, int]:
        """The errors of all names at once: their sum of squares and its degrees of freedom; (0, 0) without covariances."""
        parts = [one.squared for one in self.found if one.squared is not None]
        return sum(part for part, _ in parts), sum(size for _, size in parts)

    @property
    def fine(self) -> bool:
        """Whether nothing hints at trouble."""
        total, size = self.together
        return bool(
            (self.hits >= _FINE_COVERAGE * len(self.found)).all()
            and (self.squares <= _FINE_SQUARE).all()
            and (self.squares >= _FINE_SQUARE / WIDEST**2).all()
            and total <= _FINE_SQUARE * max(size, 1)
        )

    def check(self, *, looks: int) -> None:
        """Raise `ContractBroken` for intervals that miss, are too narrow or too wide; looks: how often runs are looked at."""
        runs, level = len(self.found), ALARM / looks / 4
        each = level / len(self.truth)
        for name, hit, square in zip(self.truth.index, self.hits, self.squares, strict=True):
            upper = special.betaincinv(hit + 1, runs - hit, 1 - each) if hit < runs else 1.0
            _expect(upper >= 0.95, f"{name}: {int(hit)} of {runs} intervals cover, too few for 95%")
            least = square * runs / special.chdtri(runs, each)
            _expect(
                least <= 1 or hit >= 0.95 * runs,
                f"{name}: errors are {np.sqrt(square):.2f} times the standard errors over {runs} runs, so intervals are too narrow",
            )
            most = square * runs / special.chdtri(runs, 1 - each)
            _expect(
                most >= 1 / WIDEST**2,
                f"{name}: intervals are {1 / np.sqrt(square) if square else np.inf:.1f} times as wide as errors ask for, at most "
                f"{WIDEST:g} times is allowed",
            )
        total, size = self.together
        _expect(
            size == 0 or total <= special.chdtri(size, level),
            f"errors of all names at once are {np.sqrt(total / max(size, 1)):.2f} times what the covariance says, so it is too small",
        )
