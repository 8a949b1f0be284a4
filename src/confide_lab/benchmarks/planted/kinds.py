"""Kinds of planted faults: each builds the audit of a mechanism with one fault, or of its clean twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import confide as cf
from confide import engine
from confide.audit.methods import audit
from confide.audit.replay.replay import replay
from confide.audit.runs.curve_band import noise_scale_test
from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.searches.safety import falsify_safety_bound
from confide.audit.searches.sensitivity import falsify_sensitivity
from confide.audit.verdict import Audit, Finding
from confide.guarantees import ApproxDP, PureDP
from confide.noise import SimulatedNoise
from confide.testing.checks import Case
from confide.testing.contract import tried
from confide_lab.benchmarks.planted.toy import SCHEMA

__all__ = [
    "Fault",
    "bounded",
    "contract",
    "law",
    "mechanism",
    "method",
    "neighbors",
    "query",
    "replayed",
    "safety",
    "sampler",
]


@dataclass(frozen=True)
class Fault:
    """One planted fault. build(faulty, runs, seed): the audit of the mechanism with the fault, or of its clean twin; of: the method."""

    name: str
    what: str
    attack: str
    build: Callable[[bool, int, int], Audit]
    of: str = ""

    def caught(self, runs: int, seed: int = 1) -> Audit:
        """The audit of the faulty one; it must find a violation."""
        return self.build(True, runs, seed)

    def passed(self, runs: int, seed: int = 2) -> Audit:
        """The audit of the clean twin; it must find none."""
        return self.build(False, runs, seed)


def replayed(method: Any, level: Any, schema: Any, pair: tuple[Any, Any], seed: int) -> Audit:
    """Record and replay on one pair of frames: a row for each statistic, over its sensitivity, and one for everything else."""
    plan = engine.plan(method, schema, level)
    found = replay(method, plan, cf.read(pair[0], schema), cf.read(pair[1], schema), seed=seed)
    rows = [
        Finding(
            name=name,
            quantity="ratio",
            claim=1.0,
            lower_bound=moved.ratio,
            verdict="holds" if moved.within else "violated",
            attack="exact difference",
            relation=plan.relation,
            note="",
        )
        for name, moved in found.moved.items()
    ]
    return Audit((*rows, found.finding("everything else", plan.relation)))


def bounded(name: str, claim: float, found: float, attack: str, relation: str = "add-remove") -> Finding:
    """A number that was found beside the most that it may be."""
    return Finding(
        name=name,
        quantity="ratio",
        claim=claim,
        lower_bound=found,
        verdict="violated" if found > claim else "holds",
        attack=attack,
        relation=relation,
    )


# families of faults ---------------------------------------------------------------------------------------------------


def query(
    name: str,
    what: str,
    faulty: Callable[[Any], Any],
    clean: Callable[[Any], Any],
    domain: Any,
    bound: float,
    *,
    right: float | None = None,
    **options: Any,
) -> Fault:
    """A query whose claimed sensitivity is wrong. right: the bound of the clean twin, when the bound is the fault."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        claimed = bound if wrong or right is None else right
        found = falsify_sensitivity(faulty if wrong else clean, domain, claimed, seed=seed, **options)
        return Audit((found.finding(),))

    return Fault(name, what, "falsify_sensitivity", build)


def mechanism(
    name: str,
    what: str,
    faulty: Callable[..., Any],
    clean: Callable[..., Any],
    claim: Any,
    *,
    data: Any = 0.0,
    neighbor: Any = 1.0,
) -> Fault:
    """A mechanism (generator, data, runs) -> outcomes, whose claim is wrong."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        generator = np.random.Generator(np.random.PCG64(seed))
        chosen = faulty if wrong else clean
        bound = epsilon_lower_bound if isinstance(claim, PureDP | ApproxDP) else mu_lower_bound
        found = bound(
            lambda x, k: chosen(generator, x, k),
            data,
            neighbor,
            runs=runs,
            claim=claim,
            vectorized=True,
            name=name,
            confidence=1 - 1e-6,
        )
        return Audit((found,))

    return Fault(name, what, "sampled lower bound", build)


def method(name: str, what: str, faulty: Any, clean: Any, schema: cf.Schema = SCHEMA) -> Fault:
    """A method with plan and release: exact differences, record and replay, the sampler."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        return _audited(faulty if wrong else clean, schema, runs if runs > 500_000 else 0, seed)

    return Fault(name, what, "audit of the method", build, _registered(clean))


@cache  # many faults share a clean twin, which is audited once
def _audited(method: Any, schema: cf.Schema, runs: int, seed: int) -> Audit:
    return audit(method, schema, relation="add-remove", runs=runs, seed=seed, confidence=1 - 1e-6)


def neighbors(
    name: str, what: str, faulty: Any, clean: Any, schema: cf.Schema, level: Any, *pairs: tuple[Any, Any]
) -> Fault:
    """A method on pairs of frames that were chosen for it: exact differences, record and replay."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        chosen = faulty if wrong else clean
        return Audit(tuple(one for pair in pairs for one in replayed(chosen, level, schema, pair, seed)))

    return Fault(name, what, "record and replay on the worst neighbors", build, _registered(clean))


def contract(
    name: str, what: str, check: Callable[[Case], None], faulty: Any, clean: Any, schema: cf.Schema, level: Any
) -> Fault:
    """A method that breaks one check of the executable contract (`confide.testing.check_method` runs all of them)."""
    title = (check.__doc__ or "").split(".")[0].split(":")[0]

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        problem = tried(check, Case(faulty if wrong else clean, schema, level))
        return Audit(
            (
                Finding(
                    name=title,
                    quantity="gap",
                    claim=0.0,
                    lower_bound=float(problem is not None),
                    verdict="holds" if problem is None else "violated",
                    attack=f"contract: {title}",
                    relation=level.relation,
                    note=problem or "",
                ),
            )
        )

    return Fault(name, what, f"contract: {title}", build, _registered(clean))


def _registered(method: Any) -> str:
    """The name of the method that a fault is planted in."""
    kinds = (kind for kind in type(method).__mro__ if not kind.__module__.startswith("confide_lab.benchmarks"))
    return next((str(vars(kind)["name"]) for kind in kinds if "name" in vars(kind)), "")


def sampler(
    name: str, what: str, faulty: Callable[[Any, int], Any], clean: Callable[[Any, int], Any], law: str, scale: Any
) -> Fault:
    """A sampler (source, size) -> draws that does not have its law."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        draws = (faulty if wrong else clean)(SimulatedNoise(seed), max(runs, 100_000))
        return Audit((noise_scale_test(draws, law, scale=scale, name=name),))

    return Fault(name, what, "law of the noise", build)


def law(
    name: str,
    what: str,
    faulty: Callable[[], Any],
    clean: Callable[[], Any],
    *,
    of: str = "",
    attack: str = "exact law",
) -> Fault:
    """A law whose claim is wrong, decided exactly."""
    return Fault(name, what, attack, lambda wrong, runs, seed: Audit(((faulty if wrong else clean)(),)), of)


def safety(name: str, what: str, faulty: dict[str, Any], clean: dict[str, Any], domain: Any, **options: Any) -> Fault:
    """A safety bound of propose-test-release that does not keep its contract."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        return falsify_safety_bound(**(faulty if wrong else clean), domain=domain, seed=seed, **options).findings()

    return Fault(name, what, "falsify_safety_bound", build)
