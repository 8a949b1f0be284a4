"""`cf.private_block_posterior`: intervals from any sampler in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

from confide.faces.calls.progress import progress_bar
from confide.faces.one_call import LEFT_OUT, answered, checked_ledger
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.intervals.block_posterior import BlockPosterior, Sampler
from confide.methods.intervals.result import ConfidenceIntervals
from confide.protocol import Noise, Source
from confide.protocol.spending.allowance import checked_privacy

__all__ = ["private_block_posterior"]


def private_block_posterior(
    sampler: Sampler,
    data: Source,
    *,
    parameters: Mapping[str, tuple[float, float]],
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    blocks: int = 50,
    columns: tuple[str, ...] | None = None,
    seconds: float = 60.0,
    memory: int = 1_024,
    jobs: int | None = None,
    allow_uninformative: bool = False,
    progress: bool = True,
    n: int | None = None,
    noise: Noise | None = None,
) -> ConfidenceIntervals:
    """Intervals for what any sampler estimates: PyMC, NumPyro, emcee, a bootstrap of scikit-learn, a function of yours.

    sampler: (table, generator) -> draws, run on each of `blocks` disjoint blocks of the records, in a process of its own; parameters: name
    -> (low, high), public bounds; privacy: PureDP(epsilon); seconds: of all blocks together, taken in full, as time must tell nothing;
    jobs: blocks side by side (left out: as many as there are processors); memory: MB of each block. Others: `BlockPosterior`.

    Raises `PrivacyError` for an array of draws, which no noise makes private, and what `confide.release` raises.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> def bootstrap(table, generator):
    ...     return [table[generator.integers(0, len(table), len(table)), 0].mean() for _ in range(50)]
    >>> result = private_block_posterior(bootstrap, data, parameters={"mean": (-4, 4)}, privacy=cf.PureDP(4.0), ledger=None, blocks=30,
    ...     seconds=4, noise=cf.noise.SimulatedNoise(1), n=5_000)
    >>> result.names, result.status
    (('mean',), 'ok')
    """
    beside = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    method = BlockPosterior(
        sampler, parameters, blocks, columns, seconds, memory, beside if jobs is None else jobs, allow_uninformative
    )
    checked_privacy(privacy)
    checked_ledger(ledger)
    with progress_bar("blocks") if progress else nullcontext(None) as told:
        tell = None if told is None else lambda done, of: told(done, of, f"{seconds * (1 - done / of):.0f} s left")
        found: ConfidenceIntervals = answered(replace(method, progress=tell), data, privacy, ledger, noise, n)
    return found
