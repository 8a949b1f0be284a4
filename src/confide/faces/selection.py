"""Private selection: the best of several candidates, in one call. `Select` is the method behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confide.faces.one_call import LEFT_OUT, checked_ledger
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.selection.candidates import register_loss
from confide.methods.selection.method import Select
from confide.protocol import Noise, Source
from confide.protocol.units.contributions import shown
from confide.results import Estimates

__all__ = ["Select", "register_loss", "select"]


def select(
    candidates: Sequence[Any],
    score: Any,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    runs: Any = None,
    clip: float | None = None,
    holdout: float = 0.25,
    n: int | None = None,
    noise: Noise | None = None,
) -> Estimates:
    """Plan, release and infer `Select(candidates, score, ...)` in one call; privacy and ledger have no default.

    The release itself is not kept: to publish it call `confide.release(Select(...), ...)`. Errors are those of both.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> tried = [cf.regression.SSP("y ~ x", leverage_cap=cap) for cap in (1.2, 1.4, 1.6, 2.0)]
    >>> best = select(tried, "squared_error", data, privacy=cf.ApproxDP(1.0, 1e-6), ledger=None)
    >>> {"no_interval", "selected"} <= set(best.flags)  # the noise may add others
    True
    """
    from confide import gate  # here, because the gate is slow to load and a plan does without it

    checked_ledger(ledger)
    method = Select(candidates, score, runs, clip, holdout)
    release = gate.release(method, data, privacy, ledger=ledger, n=n, noise=noise)
    return shown(method.infer(release), release)
