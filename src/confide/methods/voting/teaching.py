"""Teachers: any classifier with fit and predict, each on a block of its own records, and its votes on public records."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._arrays import Array
from confide.aggregates.isolation.code_names import code_name
from confide.errors import PlanError
from confide.protocol.exact import digest, pack

__all__ = ["PublicRows", "Teaching", "checked_teacher", "new_classifier", "pack_teacher", "tallied"]


def checked_teacher(teacher: Any) -> Any:
    """A classifier, or what a file says of one, which no plan is made with; `PlanError` for anything else."""
    if isinstance(teacher, Mapping) and "live" in teacher:
        return dict(teacher)
    if isinstance(teacher, type) or not all(callable(getattr(teacher, verb, None)) for verb in ("fit", "predict")):
        raise PlanError(
            f"teacher must be a classifier with fit and predict, such as sklearn.linear_model.LogisticRegression(), got {teacher!r}"
        )
    return teacher


def pack_teacher(teacher: Any) -> dict[str, Any]:
    """The name of its class, and its parameters where they have a text form: for readers, as nothing is made from them."""
    live = {"live": code_name(teacher)}
    given = teacher.get_params() if hasattr(teacher, "get_params") else {}
    try:
        pack(given)
    except TypeError:
        return live
    return {**live, "settings": given}


def new_classifier(teacher: Any) -> Any:
    """A new classifier like this one, so that no block leaves anything in it for the next."""
    if hasattr(teacher, "get_params"):
        return type(teacher)(**deepcopy(teacher.get_params(deep=False)))
    return deepcopy(teacher)


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Public records that teachers vote on, (queries, features), in the order of the features; equal by content.

    >>> PublicRows.of([[0.0, 1.0]]).queries
    1
    """

    rows: Array | None
    queries: int
    digest: str

    @classmethod
    def of(cls, rows: ArrayLike | Mapping[str, Any] | PublicRows) -> PublicRows:
        """From rows, or from what a file says of them; `PlanError` for what is no finite table."""
        if isinstance(rows, PublicRows):
            return rows
        if isinstance(rows, Mapping) and set(rows) == {"queries", "digest"}:
            return cls(None, int(rows["queries"]), str(rows["digest"]))
        try:
            found = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise PlanError(
                "public records must be a table of numbers, (queries, features); encode labels as numbers"
            ) from None
        if found.ndim != 2 or not found.size:
            raise PlanError(
                f"public records must be a table (queries, features) with at least one row, got the shape {found.shape}"
            )
        if not np.isfinite(found).all():
            raise PlanError("public records must be finite numbers; drop or fill the rows with missing values")
        found.flags.writeable = False
        return cls(found, len(found), digest(["public rows", list(found.shape), found.tobytes().hex()]))

    def to_dict(self) -> dict[str, Any]:
        return {"queries": self.queries, "digest": self.digest}


@dataclass(frozen=True, eq=False)
class Teaching:
    """What is run on a block: fit the teacher to its records, vote on the public ones. Columns of a table: the features, then the label's
    code.

    A block without records or with one class alone votes for its class, the first one where it is empty; what raises is the runner's
    matter, and so is what is no class.
    """

    teacher: Any
    public: Array
    classes: int

    def __call__(self, table: Array, generator: np.random.Generator) -> Array:
        x, y = table[:, :-1], np.rint(table[:, -1]).astype(np.int64)
        present = np.unique(y)
        if len(present) < 2:
            return np.full(len(self.public), float(present[0]) if len(present) else 0.0)
        model = new_classifier(self.teacher)
        if "random_state" in getattr(model, "get_params", dict)():
            model.set_params(random_state=int(generator.integers(1 << 31)))
        votes = np.asarray(model.fit(x, y).predict(self.public), dtype=np.float64)
        if votes.shape != (len(self.public),) or not np.isin(votes, np.arange(self.classes)).all():
            raise ValueError(f"predict gave {np.array2string(votes, threshold=6)}")
        return votes

    def each_class(self, table: Array) -> Array:
        """The table with each class in turn, so that there is something to fit."""
        return np.column_stack([table[:, :-1], np.arange(len(table)) % self.classes])


def tallied(answers: Array, options: int) -> NDArray[np.int64]:
    """Votes (queries, options) from each teacher's ballots (teachers, queries): for a class, or for "failed", the last option."""
    votes = np.zeros((answers.shape[1], options), dtype=np.int64)
    places = np.arange(answers.shape[1])
    for own in np.clip(np.rint(answers), 0, options - 1).astype(np.int64):
        votes[places, own] += 1
    return votes
