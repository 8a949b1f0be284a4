"""The calls behind `cf.voting`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._lazy import later
from confide.errors import PlanError
from confide.faces.one_call import LEFT_OUT, answered, checked_ledger
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.ledger import Ledger
from confide.methods.voting.plurality import Plurality, PluralityVote
from confide.methods.voting.rules import RULES, vote_rule
from confide.methods.voting.winner import Vote, draw_errors
from confide.protocol import Noise, Source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["errors", "plot_errors", "plurality"]


def plurality(
    column: str,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    rule: str | None = None,
    where: str | None = None,
    noise: Noise | None = None,
    n: int | None = None,
) -> PluralityVote | Vote:
    """Plan, release and infer `Plurality(column, rule)` in one call: which of two or several levels most records have.

    privacy: any guarantee; between two levels PureDP and ApproxDP err least. privacy and ledger have no default. Raises `PlanError` for a
    column without levels.

    >>> import confide as cf
    >>> schema = cf.Schema({"vote": cf.Categorical(["a", "b", "c"])})
    >>> data = cf.read({"vote": ["b"] * 60 + ["a"] * 30 + ["c"] * 10}, schema)
    >>> cf.voting.plurality("vote", data, privacy=cf.GDP(1.0), ledger=None).winner
    'b'
    """
    checked_ledger(ledger)
    found: PluralityVote | Vote = answered(Plurality(column, rule, where=where), data, privacy, ledger, noise, n)
    return found


def errors(
    gaps: Iterable[int],
    *,
    privacy: PureDP | ApproxDP,
    rules: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Exact chances of a wrong answer and of none of a vote between two, by rule and gap: columns rule, gap, right, wrong, silent.

    gaps: numbers of votes between the two; rules: all that the guarantee allows when left out.

    >>> import confide as cf
    >>> found = errors([0, 5, 20], privacy=cf.ApproxDP(1.0, 1e-6), rules=["optimal", "noisy_max"])
    >>> found.wrong.round(5).tolist()
    [0.5, 0.00337, 0.0, 0.5, 0.01179, 0.0]
    """
    at = np.array([int(gap) for gap in gaps])
    if not isinstance(privacy, PureDP | ApproxDP):
        raise PlanError(f"chances are known at PureDP and ApproxDP, got {privacy}; write cf.ApproxDP(1.0, 1e-6)")
    frames = []
    for name in rules or (RULES if getattr(privacy, "delta", 0.0) else RULES[:2]):
        found = vote_rule(name, privacy, privacy.relation or "add-remove").chances(at)
        frames.append(
            pd.DataFrame({"rule": name, "gap": at, "right": found.right, "wrong": found.wrong, "silent": found.silent})
        )
    return pd.concat(frames, ignore_index=True)


def plot_errors(
    *, privacy: PureDP | ApproxDP, rules: Sequence[str] | None = None, farthest: int = 60, ax: Any = None
) -> Axes:
    """Error against gap, of several rules at one guarantee; returns the Axes.

    >>> import confide as cf
    >>> plot_errors(privacy=cf.ApproxDP(1.0, 1e-6)).get_xlabel()
    'votes between the two'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6.4, 4.4), layout="constrained").subplots()
    frame = errors(range(farthest + 1), privacy=privacy, rules=rules)
    lines = {
        name: tuple(own[key].to_numpy() for key in ("gap", "wrong", "silent"))
        for name, own in frame.groupby("rule", sort=False)
    }
    draw_errors(ax, lines)  # type: ignore[arg-type]
    return ax  # type: ignore[no-any-return]
