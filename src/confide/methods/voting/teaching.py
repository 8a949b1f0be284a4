"""Teachers: any classifier with fit and predict, each on a block of its own records, and its votes on public records."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._arrays import Array
from confide.errors import PlanError
from confide.protocol.exact import digest, pack

__all__ = ["PublicRows", "Teaching", "checked_teacher", "pack_teacher"]


def checked_teacher(teacher: Any) -> Any:
    """A classifier, from itself or from what a file says of it; `PlanError` for anything else."""
    if isinstance(teacher, Mapping) and "teacher" in teacher:
        return dict(teacher)
    if isinstance(teacher, type) or not all(callable(getattr(teacher, verb, None)) for verb in ("fit", "predict")):
        raise PlanError(
            f"teacher must be a classifier with fit and predict, such as sklearn.linear_model.LogisticRegression(), got {teacher!r}"
        )
    return teacher


def pack_teacher(teacher: Any) -> dict[str, Any]:
    """Its class, and its parameters where they have a text form."""
    if isinstance(teacher, Mapping):
        return dict(teacher)
    where = f"{type(teacher).__module__}:{type(teacher).__qualname__}"
    given = teacher.get_params() if hasattr(teacher, "get_params") else {}
    try:
        pack(given)
    except TypeError:
        return {"teacher": where}
    return {"teacher": where, "settings": given}


def live_teacher(teacher: Any) -> Any:
    """A new classifier like this one; of a class that this process has loaded, where a file names it."""
    if not isinstance(teacher, Mapping):
        if hasattr(teacher, "get_params"):
            return type(teacher)(**teacher.get_params(deep=False))
        return teacher
    module, _, name = str(teacher["teacher"]).partition(":")
    if module not in sys.modules or "settings" not in teacher:
        raise PlanError(
            f"the plan was made with the teacher {teacher['teacher']}, which no file can hold; import it, or hand it over again: "
            "cf.voting.Pate(teacher=...)"
        )
    made: Any = reduce(getattr, name.split("."), sys.modules[module])
    return made(**teacher["settings"])


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
        except (TypeError, ValueError):
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
    matter.
    """

    teacher: Any
    public: Array
    classes: int

    def __call__(self, table: Array, generator: np.random.Generator) -> Array:
        x, y = table[:, :-1], np.rint(table[:, -1]).astype(np.int64)
        present = np.unique(y)
        if len(present) < 2:
            return np.full(len(self.public), float(present[0]) if len(present) else 0.0)
        model = live_teacher(self.teacher)
        if "random_state" in getattr(model, "get_params", dict)():
            model.set_params(random_state=int(generator.integers(1 << 31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            votes = model.fit(x, y).predict(self.public)
        return np.clip(np.asarray(votes, dtype=np.float64), 0, self.classes - 1)


def tallied(answers: Array, classes: int) -> NDArray[np.int64]:
    """Votes (queries, classes) from each teacher's labels (teachers, queries)."""
    votes = np.zeros((answers.shape[1], classes), dtype=np.int64)
    places = np.arange(answers.shape[1])
    for own in np.clip(np.rint(answers), 0, classes - 1).astype(np.int64):
        votes[places, own] += 1
    return votes
