"""Features of a linear or logistic model, chosen by votes of blocks of records: generalized propose-test-release with a loss of 0.

The records are divided into B blocks by their positions in an order that the release draws without looking at them. Each block votes for
the k features that a greedy forward search takes. A block that has no choice does not vote. It has less than k + 2 records, which any
features fit, or k features or fewer vary in it, or its response does not vary. Otherwise it would vote for those that a formula names
first, and all of these blocks would agree. Equal gains are taken from another place of the formula in each block. Released is the set of
the k features with most votes, where a test finds it stable.

Guarantee: ApproxDP(epsilon, delta), substitution with a public number of records, of `GeneralizedRelease` with the whole epsilon for the
test. The statistic is the gap between the votes of the feature in place k and of that in place k + 1. One row of a table is in one block
and changes its votes alone. Each count moves by at most 1, and a gap of ordered counts by at most 2. Where the gap is above 2, every
neighbor has the same set. The mechanism, which is the set without noise, has the loss 0 there; elsewhere it is infinite. Nothing is
asserted here: both are proved for any search within a block. Source: Redberg, Zhu, Wang 2023, C.4, names it and prints no algorithm; votes
of blocks: Kifer, Smith, Thakurta 2012; stability of the winner: Vadhan 2017, section 3.

Interval: none. An estimate on the chosen features from the same records does not know of the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.errors import NoResult, PlanError
from confide.guarantees.validation import is_count

#: A gap of this size in votes is what one record may close.
MOVES = 2.0
_RIDGE = 1e-6
# What rounding alone makes of a gain or of a length, of 1.
_ALIKE = 1e-9


@dataclass(frozen=True)
class FeatureVotes:
    """The three functions of a release: `statistic`, `mechanism` and `loss`.

    features: their number, the columns of a table before the response, which is its last one.

    >>> x = np.random.default_rng(1).random((400, 3))
    >>> own = FeatureVotes(3, 1, 20)
    >>> table = np.column_stack([x, x[:, 1]])
    >>> own.statistic(table), own.mechanism(table, None).tolist(), own.loss(20.0), own.loss(2.0)
    (20.0, [1], 0.0, inf)
    """

    features: int
    chosen: int
    blocks: int

    def __post_init__(self) -> None:
        if not is_count(self.chosen, 1) or self.chosen >= self.features:
            raise PlanError(
                f"features to choose must be a whole number from 1 to {self.features - 1}, got {self.chosen!r}"
            )
        if not is_count(self.blocks, 2):
            raise PlanError(f"blocks must be a whole number of at least 2, got {self.blocks!r}", "write blocks=100")

    def check(self, n: int | None) -> None:
        """Raise `PlanError` where no block of so many records can vote."""
        if n is not None and n < self.blocks * self.least:
            raise PlanError(
                f"{self.blocks} blocks of {n} records have less than the {self.least} records that a vote for {self.chosen} features takes",
                f"write blocks={max(n // self.least, 2)} or fewer",
            )

    def votes(self, table: Array) -> NDArray[np.int64]:
        """How many blocks take each feature, (features,)."""
        found = np.zeros(self.features, dtype=np.int64)
        for first in range(self.blocks):
            found[forward(table[first :: self.blocks], self.chosen, first % self.features)] += 1
        return found

    @property
    def least(self) -> int:
        """How many records a block must have to vote."""
        return self.chosen + 2

    def statistic(self, table: Array) -> float:
        """The gap between the last feature that is chosen and the first that is not."""
        ordered = np.sort(self.votes(table))[::-1]
        return float(ordered[self.chosen - 1] - ordered[self.chosen])

    def mechanism(self, table: Array, noise: Any) -> NDArray[np.int64]:
        """The places of the features with most votes, in order."""
        return np.sort(np.argsort(-self.votes(table), kind="stable")[: self.chosen])

    def loss(self, gap: float) -> float:
        """0 where no record can change the set."""
        return 0.0 if gap > MOVES else inf


def forward(rows: Array, k: int, first: int = 0) -> NDArray[np.int64]:
    """The k features that a greedy forward search of least squares takes, in standard deviations of each; none where it has no choice.

    first: the feature that is taken before others of the same gain, then those after it. A search ends early where nothing is left to
    explain.

    >>> rows = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [2.0, 1.0, 2.1], [3.0, 0.0, 0.2]])
    >>> forward(rows, 1).tolist(), forward(rows[:2], 1).tolist()
    ([1], [])
    """
    none = np.zeros(0, dtype=np.int64)
    if len(rows) < k + 2:
        return none
    own = rows - rows.mean(axis=0)
    size = np.sqrt(np.square(own).sum(axis=0))
    varies = size > _ALIKE * np.sqrt(np.square(rows).sum(axis=0))
    if not varies[-1] or int(varies[:-1].sum()) <= k:
        return none
    own = np.where(varies, own / np.where(varies, size, 1.0), 0.0)
    x, left = own[:, :-1].copy(), own[:, -1].copy()
    taken: list[int] = []
    for _ in range(k):
        length = np.square(x).sum(axis=0)
        gain = np.where(length > _RIDGE, np.square(x.T @ left) / np.maximum(length, _RIDGE), 0.0)
        gain[taken] = 0.0
        most = float(gain.max())
        if most <= _ALIKE:
            break
        ahead = np.roll(gain >= most - _ALIKE, -first)
        best = (int(np.argmax(ahead)) + first) % len(gain)
        taken.append(best)
        axis = x[:, best] / np.sqrt(length[best])
        left = left - axis * (axis @ left)
        x = x - np.outer(axis, axis @ x)
    return np.array(taken, dtype=np.int64)


_DECLINED = (
    "the blocks did not agree enough, which is a result like any other; ask for a larger epsilon, another number of blocks, "
    "or another k"
)


@dataclass(frozen=True)
class SelectedFeatures:
    """The features that a test found stable, or none.

    Parameters
    ----------
    names : tuple of str
        Names of the features, in the order of the formula; empty where the
        release declined.
    response : str
        Name of the response.
    status : {"valid", "declined"}
        "declined" where the blocks did not agree enough.
    result : Estimates
        The release's own result, with its guarantee.

    Examples
    --------
    >>> SelectedFeatures(("a", "b"), "y", "valid", None).formula
    'y ~ a + b'
    """

    names: tuple[str, ...]
    response: str
    status: str
    result: Any

    @property
    def formula(self) -> str:
        """A formula of the chosen features. `NoResult` where there are none: the records did not choose the intercept alone."""
        if self.status != "valid":
            raise NoResult("no features were chosen, so there is no formula of them", self.reason)
        return f"{self.response} ~ {' + '.join(self.names)}"

    @property
    def reason(self) -> str:
        """Why nothing was chosen; empty where something was."""
        return "" if self.status == "valid" else _DECLINED

    @property
    def guarantee(self) -> Any:
        """What the release states."""
        return self.result.guarantee

    def __str__(self) -> str:
        said = ", ".join(self.names) or f"none: {self.reason}"
        return f"Features of {self.response}: {said}\n{self.guarantee}"
