"""One replication of one cell of the truth table: a sample, a release with simulated noise, and whether its intervals hold the truth.

The sample depends on the case, n and the replication alone, so that every method, budget and relation meets the same records, and so does
the interval without privacy beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import nan
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

import confide as cf
from confide import engine
from confide.classification import ClassMeans, EfficientPTRBayes
from confide.core import Method, Plan, seal
from confide.curves import EfficientPTRKernel, Kernel
from confide.errors import PlanError
from confide.regression import SSP, EfficientPTR, LeastSquares, Logistic
from confide.schema import Categorical, CodedFrame, ModelMatrix, Schema
from confide_lab.benchmarks.outside_tables import OUTCOMES
from confide_lab.benchmarks.truth import domains as truth_domains
from confide_lab.benchmarks.truth.answers import ANSWERS
from confide_lab.benchmarks.truth.cases import formula_of, population
from confide_lab.benchmarks.truth.described import QUESTIONS
from confide_lab.benchmarks.truth.domains import ASKED, DOMAINS
from confide_lab.benchmarks.truth.files import FILES
from confide_lab.benchmarks.truth.models import MODELS, OUTSIDE
from confide_lab.benchmarks.truth.others import MORE
from confide_lab.benchmarks.truth.plain import plain_intervals
from confide_lab.benchmarks.truth.ridge import ridge_line
from confide_lab.fits import _epsilon
from confide_lab.methods import BinAgg, PosteriorSampling
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.quantile.ranks import Quantile

__all__ = ["LINES", "OTHERS", "Cell", "expected", "made", "refusal", "replicate"]

_DELTA = 1e-6
#: More points of a curve than this tell nothing new.
_POINTS = 12


class Cell(NamedTuple):
    """What is run. n: 0 stands for as many records as the population has; of `domains` the number of PSUs."""

    case: str
    method: str
    n: int
    mu: float
    relation: str

    def __str__(self) -> str:
        return f"{self.case} {self.method} n={self.n or 'whole'} mu={self.mu:g} {self.relation}"


#: Methods of lines by name: they take the formula of a case.
LINES: Mapping[str, Callable[[str], Method]] = {
    "least_squares": LeastSquares,
    "huber_line": HuberLine,
    "ssp": SSP,
    "binagg": BinAgg,
    "efficient_ptr": EfficientPTR,
}

#: Methods of other questions: (case, name) -> what is asked.
OTHERS: Mapping[tuple[str, str], Method] = {
    ("incomes", "quantile"): Quantile("income", q=(0.25, 0.5, 0.9)),
    ("zeros", "quantile"): Quantile("y", q=(0.5, 0.97, 0.99)),
    ("diamonds", "quantile"): Quantile("price", q=(0.25, 0.5, 0.9)),
    ("randhie", "quantile"): Quantile("mdvis", q=(0.25, 0.5, 0.9)),
    ("rare-outcome", "logistic"): Logistic("y ~ x"),
    ("hmda", "logistic"): Logistic("deny ~ pirat + lvrat + afam"),
    ("smokeban", "logistic"): Logistic("smoker ~ ban + age"),
    ("wells", "logistic"): Logistic("switch ~ arsenic + distance + education + association"),
    ("insurance", "logistic"): Logistic("insurance ~ education"),
    **{(case, "poisson" if case.startswith("counts") else "probit"): own for case, (_, own, _, _) in MODELS.items()},
    **OUTSIDE,
    ("plain", "kernel"): Kernel("y ~ a", bandwidth=0.2),
    ("cps1988", "kernel"): Kernel("wage ~ experience", bandwidth=4.0),
    ("bent", "efficient_ptr_kernel"): EfficientPTRKernel("y ~ x", points=(0.5, 1.0, 2.0), bandwidth=0.5, least=100.0),
    ("cps1988", "efficient_ptr_kernel"): EfficientPTRKernel(
        "wage ~ experience", points=(5.0, 15.0, 30.0), bandwidth=4.0, least=60.0
    ),
    ("incomes", "class_means"): ClassMeans("edu ~ age + income"),
    ("diamonds", "class_means"): ClassMeans("cut ~ carat + depth"),
    ("tumours", "class_means"): ClassMeans("diagnosis ~ area + texture"),
    ("incomes", "efficient_ptr_bayes"): EfficientPTRBayes("edu ~ age + income", c0=0.04),
    ("tumours", "efficient_ptr_bayes"): EfficientPTRBayes("diagnosis ~ area + texture", c0=0.15),
    **MORE,
    **ANSWERS,
    **FILES,
    **QUESTIONS,
    **{(case, asked): own for case in DOMAINS for asked, own in ASKED.items()},
}


def made(cell: Cell) -> Method:
    """The method of a cell."""
    if cell.method in LINES:
        return LINES[cell.method](formula_of(cell.case))
    if cell.method == "logistic" and cell.case in OUTCOMES:
        return Logistic(formula_of(cell.case))
    return OTHERS[cell.case, cell.method]


def asked(cell: Cell, method: Method) -> Any:
    """The request at mu: with delta 1e-6 where the method needs one, and (epsilon = mu, 0) where it is pure."""
    if method.native == "PureDP" or cell.method.endswith(", pure"):
        return cf.PureDP(cell.mu, relation=cell.relation)
    if method.native == "ApproxDP":
        return cf.ApproxDP(_epsilon(cell.mu, _DELTA), _DELTA, relation=cell.relation)
    delta = _DELTA if method.name.startswith(("efficient_ptr", "posterior")) else 0.0
    return cf.GDP(cell.mu, delta, relation=cell.relation)


def size(cell: Cell) -> int:
    """The number of records of a sample."""
    return cell.n or len(population(cell.case))


@cache
def schema_of(case: str, name: str) -> Schema:
    """The schema of a case; with a rule for missing values, of which there are none, for methods that take n as public."""
    if case in DOMAINS:
        return DOMAINS[case].schema
    schema = population(case).schema
    if "add-remove" in made(Cell(case, name, 0, 1.0, "")).relations or (case, name) not in ANSWERS:
        return schema
    columns = {
        name: replace(own, on_missing=own.levels[0] if isinstance(own, Categorical) else "midpoint")
        for name, own in schema.columns.items()
    }
    return Schema(columns)


@cache
def planned(cell: Cell) -> tuple[Method, Plan]:
    """Method and plan, made once for all replications. Raises what the plan raises."""
    method = made(cell)
    n = size(cell) if cell.relation == "substitute" else None
    return method, engine.plan(method, schema_of(cell.case, cell.method), asked(cell, method), n=n)


def expected(cell: Cell) -> float | None:
    """The share of simulated releases with status "valid" in a plan's forecast for so many records; None without a forecast."""
    plan = engine.plan(made(cell), population(cell.case).schema, asked(cell, made(cell)), n=size(cell))
    return plan.forecast["valid"].get(f"{size(cell):,}") if plan.forecast else None


def refusal(cell: Cell) -> str | None:
    """Why the method cannot be planned there, None when it can."""
    try:
        planned(cell)
    except cf.ConfideError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class _Truth:
    """Names and values on the whole population; titled: whether they are what the table's title names."""

    names: tuple[str, ...]
    values: np.ndarray[Any, np.dtype[np.float64]]
    titled: bool


@cache
def truth(case: str, name: str) -> _Truth:
    """What the table's title names, on the whole population; of a line without a reference the least-squares line, `titled` False.

    Of numbers that grow with the records, such as counts, per record.
    """
    if case in DOMAINS:
        own = truth_domains.values_of(case, name)
        return _Truth(tuple(own), np.array(list(own.values())), True)
    method = made(Cell(case, name, 0, 1.0, "add-remove"))
    whole = CodedFrame(schema_of(case, name), population(case).practice.codes)
    if isinstance(method, PosteriorSampling):  # the line of each sample at its released penalty, `ridge_line`
        names = ModelMatrix.of(method.formula, population(case).schema).names
        return _Truth(names, np.full(len(names), nan), True)
    titled = not isinstance(method, BinAgg)  # whose intervals no table prints
    try:
        found = method.reference(whole)
    except PlanError:
        if name not in LINES:
            raise
        titled, found = False, SSP(formula_of(case)).reference(whole)
    kept = [name for name, value in found.items() if value == value]
    kept = [kept[k] for k in np.unique(np.linspace(0, len(kept) - 1, min(len(kept), 10_000)).astype(int))]
    if name in ("kernel",):
        kept = kept[:: -(-len(kept) // _POINTS)]
    values = np.array([found[name] for name in kept])
    return _Truth(tuple(kept), values / len(whole) if extensive(method) else values, titled)


def extensive(method: Method) -> bool:
    """Whether its numbers grow with the number of records."""
    return bool(getattr(method, "extensive", False))


def rows_of(case: str, n: int, replication: int, *, any_size: bool = False) -> Any:
    """Which records a sample holds: n, or a Poisson number with this mean, which intervals of counts and totals answer for."""
    generator = np.random.default_rng([crc32(case.encode()), n, replication])
    return generator.integers(0, len(population(case)), int(generator.poisson(n)) if any_size else n)


@lru_cache(maxsize=4_096)
def _plain(case: str, question: str, n: int, replication: int) -> Mapping[str, tuple[float, float]]:
    """The intervals without privacy; `question` is a method that asks it."""
    if case in DOMAINS:
        return truth_domains.plain(question, truth_domains.drawn(case, n, replication))
    method = made(Cell(case, question, n, 1.0, "add-remove"))
    if isinstance(method, PosteriorSampling):  # without privacy its target is known
        return {}
    sample = population(case).sample(rows_of(case, n, replication, any_size=extensive(method)))[1]
    sample = CodedFrame(schema_of(case, question), sample.codes)
    return plain_intervals(method, sample, any_size=extensive(method))


def replicate(at: Mapping[str, Any], _: np.random.Generator) -> dict[str, Any]:
    """status; flags; and for each name of the truth, as JSON lists: hit and the plain interval's hit (1, 0, None where there is none), the
    width, the plain width, and the error.
    """
    cell, r = Cell(*at["cell"]), int(at["replication"])
    method, plan = planned(cell)
    records, practice = _sample(cell, r, any_size=extensive(method))
    noise = cf.noise.SimulatedNoise(crc32(f"{cell} {r}".encode()))
    release = seal(method, cf.read(records, schema_of(cell.case, cell.method)), plan, noise)
    result: Any = method.infer(release)
    own = truth(cell.case, cell.method)
    named = _in_ranges(cell, method, release, own)
    values, usual = (one * size(cell) if extensive(method) else one for one in (named, own.values))
    if isinstance(method, PosteriorSampling) and release.status == "released":
        values = usual = np.array(list(ridge_line(method, practice, float(release.public["penalty"][0])).values()))
    # all lines ask one question, but for the one that weighs records
    question = "ssp" if cell.method in LINES and cell.method != "efficient_ptr" else cell.method
    plain = _plain(cell.case, question, size(cell), r)
    low, high, found = _studied(method, release, own.names) if isinstance(method, BinAgg) else _read(result, own.names)
    ends = np.array([plain.get(name, (nan, nan)) for name in own.names])
    return {
        "status": result.status,
        "flags": ",".join(result.flags),
        "hits": _listed(_hits(low, high, values)),
        "plain": _listed(_hits(ends[:, 0], ends[:, 1], usual)),
        "widths": _listed(high - low),
        "plain_widths": _listed(ends[:, 1] - ends[:, 0]),
        "errors": _listed(found - values),
    }


def _in_ranges(cell: Cell, method: Method, release: Any, own: _Truth) -> Any:
    """The numbers that a release names: on the whole population, of columns clipped to the ranges that it found."""
    if cell.case in DOMAINS or not any(one.clips for one in release.ranges.values()):
        return own.values
    whole = population(cell.case)
    asks = method if own.titled else SSP(formula_of(cell.case))
    found = asks.reference(CodedFrame.of(whole.records.to_pandas(), release.plan.declared))
    values = np.array([found[name] for name in own.names])
    return values / len(whole) if extensive(method) else values


def _sample(cell: Cell, replication: int, *, any_size: bool) -> tuple[Any, Any]:
    """Records for a release, and the same as practice records where these are needed."""
    if cell.case in DOMAINS:
        return truth_domains.drawn(cell.case, cell.n, replication), None
    return population(cell.case).sample(rows_of(cell.case, size(cell), replication, any_size=any_size))


def _read(result: Any, names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """Low and high ends and estimates by name, NaN where the table prints none, or says that PSUs are too few for one."""
    if result.status not in ("valid", "partial") or "no_interval" in result.flags:
        nothing = np.full(len(names), nan)
        return nothing, nothing, nothing
    table = result.conf_int(alpha=0.05)
    if (marks := getattr(result, "marks", None)) is not None:
        table = table[["few_psus" not in text.split() for text in marks]]
    table = table.reindex(list(names))
    return table[0].to_numpy(), table[1].to_numpy(), result.params.reindex(list(names)).to_numpy()


def _studied(method: BinAgg, release: Any, names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """What the sandwich over bins would give, which no table prints."""
    found = method.sandwich(release)
    limits = pd.DataFrame(found.limits(), index=list(found.names)).reindex(list(names)).to_numpy()
    estimates = pd.Series(found.estimates, index=list(found.names)).reindex(list(names)).to_numpy()
    return limits[:, 0], limits[:, 1], estimates


def _hits(low: Any, high: Any, truth: Any) -> Any:
    """1 and 0, NaN where there is no interval. An end on the truth counts as holding it, up to the rounding of doubles."""
    slack = 1e-9 * (np.abs(truth) + np.where(np.isfinite(high - low), high - low, 0.0))
    inside = (low <= truth + slack) & (truth - slack <= high)
    return np.where(np.isnan(low) | np.isnan(high), nan, inside)


def _listed(values: Any) -> str:
    return json.dumps([None if value != value else float(f"{value:.6g}") for value in np.asarray(values).tolist()])
