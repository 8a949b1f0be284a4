"""Planted faults of opaque releases: too little noise inside them, a certificate or a ridge left out, exact numbers beside them.

Their noise cannot be taken off, so that no exact difference shows these: the release is run on a bad pair
(`confide.audit.replay.opaque`), and whatever is not its own is replayed (`confide.audit.replay.replay`). `confide lab bench
audit_states` prints what each becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import confide as cf
from confide import engine
from confide.audit.replay.opaque import Setting, attack_opaque
from confide.audit.searches.neighbors import Domain
from confide.audit.verdict import Audit
from confide.core import Meter, OpaqueRelease, Plan, Source, leaves
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.ptr.safety_bounds import OrderStatistic
from confide.selection import Select
from confide_lab.benchmarks.planted.kinds import Fault, replayed
from confide_lab.methods import AdaOPS, AdaSSP, BinAgg, JohnsonLindenstrauss, PosteriorSampling, SmoothNaiveBayes
from confide_lab.methods.logistic.methods import LogisticObjective

__all__ = ["OPAQUE_FAULTS"]

RUNS = 600
#: That a clean twin is called violated by any of its rows.
FALSE_ALARMS = 1e-4


class Weak:
    """Noise of which additive draws are a part of what they should be; first: of the first request alone; sure: coins always fall well."""

    def __init__(self, inner: Any, part: Fraction, first: bool = False, sure: bool = False) -> None:
        self._inner, self._part, self._first, self._sure, self._asked = inner, part, first, sure, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not name.startswith(("grid_", "discrete_")):
            return found

        def drawn(scale: Any, size: int) -> Any:
            self._asked += 1
            whole = found(scale, size)
            weak = not self._first or self._asked == 1
            return np.array([int(v * self._part) for v in whole], dtype=object) if weak else whole

        return drawn

    def bernoulli(self, p: Any, size: int) -> Any:
        fallen = self._inner.bernoulli(p, size)
        return np.ones(size, dtype=bool) if self._sure else fallen


def weak(kind: type[Any], part: Fraction, *, first: bool = False, sure: bool = False) -> type[Any]:
    """The method with weak noise in its opaque releases."""

    @dataclass(frozen=True)
    class Faulty(kind):  # type: ignore[misc]
        def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
            whole = meter.noise
            meter.noise = lambda name: Weak(whole(name), part, first, sure)  # type: ignore[method-assign, assignment, return-value]
            return super().draw(source, plan, meter)

    return Faulty


def constant(kind: type[Any], name: str, factor: float) -> type[Any]:
    """The method with a constant of its plan that is wrong by a factor."""

    @dataclass(frozen=True)
    class Faulty(kind):  # type: ignore[misc]
        def plan(self, *given: Any, **more: Any) -> Plan:
            made = super().plan(*given, **more)
            return replace(made, constants={**made.constants, name: made.constants[name] * factor})

    return Faulty


@dataclass(frozen=True)
class Precise(PosteriorSampling):
    """gamma nine times as large as the certificates allow."""

    def _bounds(self, *given: Any, **more: Any) -> Any:
        lower, lam, log_residual = super()._bounds(*given, **more)
        return lower, lam, log_residual - np.log(3.0)


@dataclass(frozen=True)
class Counted(JohnsonLindenstrauss):
    """The exact sum of weights stands beside the sketch."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (gram,) = source.aggregate(plan.statistic("moments"))
        return {**super().draw(source, plan, meter), "weight": np.array([float(gram[0, 0])])}


@dataclass(frozen=True)
class Tripled(PosteriorSampling):
    """The eigenvalue's integer counts three times, under the noise of once."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        drawn = meter.draw
        meter.draw = lambda name, integers: drawn(name, integers * (3 if name == "eigenvalue" else 1))  # type: ignore[method-assign]
        return super().draw(source, plan, meter)


@dataclass(frozen=True)
class Cells(BinAgg):
    """The table after a private tree counts each record three times."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        drawn = meter.draw
        meter.draw = lambda name, integers: drawn(name, integers * (3 if name == "cells" else 1))  # type: ignore[method-assign]
        return super().draw(source, plan, meter)


@dataclass(frozen=True)
class Bare(Select):
    """The winner's exact sums leave beside its release."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (whole,) = source.aggregate(plan.statistic("records"))
        return {**super().draw(source, plan, meter), "public sums": np.array([float(v) for v in np.ravel(whole)])}


_LINE = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
_BINARY = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
_KINDS = cf.Schema({"k": cf.Categorical(["u", "v"]), "a": cf.Numeric(-1, 1)})
_ONE = cf.Schema({"a": cf.Numeric(0, 1, on_missing="midpoint")})

_MANY = [(x, t) for x in (-1.0, -0.5, 0.5, 1.0) for t in (-1.0, 1.0) for _ in range(100)]
_SPLIT = [(0.0,)] * 20 + [(1.0,)] * 20
_CLASS: list[Any] = [("u", -1.0)] * 40

Records = Sequence[Any]


def opaque(
    name: str,
    what: str,
    faulty: Any,
    clean: Any,
    schema: cf.Schema,
    privacy: Any,
    pairs: Sequence[tuple[Records, Records]],
    relation: str = "add-remove",
) -> Fault:
    """Record and replay, exact differences of spends, and the attack on each opaque release, on the pairs that are given."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method, domain = (faulty if wrong else clean), Domain.of(schema)
        asked = replace(privacy, relation=relation)
        plan = engine.plan(method, schema, asked, n=len(pairs[0][0]) if relation == "substitute" else None)
        rows = []
        for k, (one, other) in enumerate(pairs):
            rows += [*replayed(method, asked, schema, (domain.data(one), domain.data(other)), seed + k)]
        opaques = [leaf for leaf in leaves(plan.event) if isinstance(leaf, OpaqueRelease)]
        for leaf in opaques:
            setting = Setting(method, plan, leaf.name, domain, schema)
            sure = 1 - FALSE_ALARMS / len(opaques)
            rows += attack_opaque(
                setting, leaf, pairs, name=leaf.name, runs=min(runs, RUNS), confidence=sure, seed=seed
            )
        return Audit(tuple(rows))

    return Fault(name, what, "runs of an opaque release on a pair", build)


_CANDIDATES = [AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2)]
_RELEASED = cf.GDP(2.0, 0.05)
_LARGE = cf.ApproxDP(2.0, 0.1)
_ORDER: dict[str, Any] = {"mode": "exact", "gamma_plan": 6}

OPAQUE_FAULTS = [
    opaque(
        "posterior sample with a third of its noise",
        "the normal numbers of the sample are divided by three",
        weak(PosteriorSampling, Fraction(1, 3))("y ~ 0 + a"),
        PosteriorSampling("y ~ 0 + a"),
        _LINE,
        _RELEASED,
        [([], [(1.0, 1.0)]), (_MANY, [*_MANY, (1.0, 1.0)])],
    ),
    opaque(
        "precision nine times too large",
        "the certified residual is divided by three before gamma is computed",
        Precise("y ~ 0 + a"),
        PosteriorSampling("y ~ 0 + a"),
        _LINE,
        _RELEASED,
        [([], [(1.0, 1.0)]), (_MANY, [*_MANY, (1.0, 1.0)])],
    ),
    opaque(
        "adaptive posterior with a third of its noise",
        "the normal numbers of the sample are divided by three",
        weak(AdaOPS, Fraction(1, 3))("y ~ 0 + a"),
        AdaOPS("y ~ 0 + a"),
        _LINE,
        _RELEASED,
        [([], [(1.0, 1.0)]), (_MANY, [*_MANY, (1.0, 1.0)])],
    ),
    opaque(
        "eigenvalue counted thrice beside a sample",
        "an ordinary spend of an opaque method moves beyond its sensitivity",
        Tripled("y ~ 0 + a"),
        PosteriorSampling("y ~ 0 + a"),
        _LINE,
        _RELEASED,
        [(_MANY, [*_MANY, (1.0, 1.0)])],
    ),
    opaque(
        "sketch without its ridge",
        "w^2 is a millionth of what the calibration asks for",
        constant(JohnsonLindenstrauss, "ratio", 1e6)("y ~ a", rows=60),
        JohnsonLindenstrauss("y ~ a", rows=60),
        _LINE,
        _LARGE,
        [([], [(0.577, 1.0)])],
    ),
    opaque(
        "exact weight beside a sketch",
        "a public number is computed from the exact Gram matrix",
        Counted("y ~ a", rows=60),
        JohnsonLindenstrauss("y ~ a", rows=60),
        _LINE,
        _LARGE,
        [([], [(0.577, 1.0)])],
    ),
    opaque(
        "tilt at a tenth",
        "the tilt of the logistic objective is divided by ten",
        weak(LogisticObjective, Fraction(1, 10), first=True)("y ~ a"),
        LogisticObjective("y ~ a"),
        _BINARY,
        _LARGE,
        [([(1.0, 0.0)] * 200, [*[(1.0, 0.0)] * 200, (1.0, 1.0)])],
    ),
    opaque(
        "smooth sensitivity divided by 100",
        "the scale of the noise of class means is a hundredth",
        constant(SmoothNaiveBayes, "scale", 1 / 100)("k ~ a"),
        SmoothNaiveBayes("k ~ a"),
        _KINDS,
        cf.PureDP(2.0),
        [(_CLASS, [*_CLASS, ("u", 1.0)])],
    ),
    opaque(
        "private tree without noise",
        "the decisions of the tree are taken on exact counts",
        weak(BinAgg, Fraction(0))("y ~ a", tree="privtree", depth=4),
        BinAgg("y ~ a", tree="privtree", depth=4),
        _LINE,
        cf.GDP(2.0),
        [([(0.5, 0.5)] * k, [(0.5, 0.5)] * (k + 1)) for k in range(0, 40, 3)],
    ),
    opaque(
        "cells thrice after a private tree",
        "an ordinary spend after an opaque one moves by three times its sensitivity",
        Cells("y ~ a", tree="privtree", depth=4),
        BinAgg("y ~ a", tree="privtree", depth=4),
        _LINE,
        cf.GDP(2.0),
        [([], [(0.5, 1.0)])],
    ),
    opaque(
        "exact sums beside a selection",
        "sums of all records leave without noise beside the winner's numbers",
        Bare(_CANDIDATES, runs=3.0),
        Select(_CANDIDATES, runs=3.0),
        _LINE,
        _LARGE,
        [([], [(1.0, 1.0)])],
    ),
    opaque(
        "reply without a test",
        "the coin of the exact reply always falls well",
        weak(SafeRelease, Fraction(1), sure=True)(OrderStatistic(21, 0.0, 1.0, alpha=0.05), **_ORDER),
        SafeRelease(OrderStatistic(21, 0.0, 1.0, alpha=0.05), **_ORDER),
        _ONE,
        _LARGE,
        [([*_SPLIT, (0.0,)], [*_SPLIT, (1.0,)])],
        "substitute",
    ),
]
