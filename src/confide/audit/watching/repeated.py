"""Attacks on opaque releases of which a method gives many at once: enough runs for a chance of one in a hundred to tell.

A method offers this by a verb `repeated(source, plan, noise)`: runs -> outcomes (runs, numbers), drawn by the code that `draw` itself takes
one from. What is done before the noise, such as a fit of teachers to blocks by a fresh key, is done once: on the pairs that are attacked
so the guarantee must hold for each key.

The pair on which fewer runs tell most is attacked with fresh ones, five times as many as of other rows: half of them teach, and what a
vote gives away lies in its rare answers. The lower bound is in the claim's own unit, and says little where it
is below two thirds of the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.searches.pairs import Record
from confide.audit.verdict import Finding
from confide.audit.watching.opaque import Setting, silent
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.noise import SimulatedNoise
from confide.protocol import Opaque

__all__ = ["attack_repeated"]

# Numbers that the runs on a pair may have: where a few pairs are chosen, of these the worst, and there; and runs at least.
_PILOT, _CHOICE, _NUMBERS, _LEAST = 20_000, 60_000, 3_000_000, 2_000
_KEPT, _TIMES = 4, 5
# Of the claim, below which a lower bound says too little.
_POWER = 2 / 3

Many = Callable[[int], NDArray[Any]]


def attack_repeated(
    setting: Setting,
    leaf: Opaque,
    pairs: Sequence[tuple[Sequence[Record], Sequence[Record]]],
    *,
    name: str,
    runs: int,
    confidence: float,
    seed: int = 0,
) -> list[Finding]:
    """A row on the worst of these pairs; none where the method offers no runs at once. runs: on each neighbour, at most."""
    claim = leaf.guarantee.resolve(setting.plan.relation)
    if not isinstance(claim, GDP | PureDP | ApproxDP):
        return []

    def sampler(records: Sequence[Record], own: int) -> Many | None:
        noise: Any = SimulatedNoise(own)
        wrapped = noise if setting.wrap is None else setting.wrap(noise)
        many = setting.method.repeated(setting.source(records), setting.plan, wrapped)
        return None if many is None else lambda count: np.asarray(many(count), dtype=np.float64)

    bound = mu_lower_bound if isinstance(claim, GDP) else epsilon_lower_bound
    # the same words on both: whatever `repeated` does once is done alike, and later runs are fresh ones
    made = []
    for k, pair in enumerate(pairs):
        both = [many for records in pair if (many := sampler(records, seed + k)) is not None]
        if not both:
            return []
        made.append(both)

    def told(k: int, numbers: int, level: float) -> Finding:
        count = min(_TIMES * runs, max(numbers // int(made[k][0](1).size), _LEAST))
        return bound(
            lambda which, size: made[k][which](size),
            0,
            1,
            runs=count,
            claim=claim,
            confidence=level,
            vectorised=True,
            name=name,
            relation=setting.plan.relation,
        )

    chosen = list(range(len(pairs)))
    for numbers, kept in ((_PILOT, _KEPT), (_CHOICE, 1)):
        scores = [told(k, numbers, 0.99).lower_bound for k in chosen]
        chosen = [chosen[i] for i in np.argsort(np.negative(scores), kind="stable")[:kept]]
    if not chosen:
        return [silent(name, setting.plan, claim, "there is no pair of neighbours")]
    worst = told(chosen[0], _NUMBERS, confidence)
    stated = claim.mu if isinstance(claim, GDP) else claim.epsilon
    said = (
        f"{worst.quantity} >= {worst.lower_bound:.2f} of {stated:.2f} shown on the worst of {len(pairs)} pairs by "
        f"{worst.draws // 2:,} runs each"
    )
    how = f"many runs, {worst.attack}"
    if worst.violated or worst.lower_bound >= _POWER * stated:
        return [replace(worst, attack=how, note=said)]
    why = f"{said}: a fault that spends half as much again would not show"
    return [replace(worst, verdict="untested", attack=how, note=why)]
