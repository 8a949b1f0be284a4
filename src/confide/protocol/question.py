"""What an analyst asks of a release. Frozen and serialisable: the same release and question give the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from confide.errors import PlanError
from confide.protocol.exact import pack, unpack
from confide.protocol.serialization.codec import register

__all__ = ["NOTHING_ELSE", "Question"]


@dataclass(frozen=True)
class Question:
    """A question to a release; every field left at None keeps what the plan says.

    subset: names of coefficients to keep (the intercept stays); contrasts: name -> {coefficient: weight}; kind: the kind of
    answer where a method has several; quantiles, prior, formula and loss as the method's page describes them; covers: "population" or
    "dataset", what the intervals of a table are about.

    >>> Question(subset=("age", "educ")).to_dict()
    {'subset': ['age', 'educ']}
    """

    subset: tuple[str, ...] | None = None
    contrasts: Mapping[str, Mapping[str, float]] | None = None
    kind: str | None = None
    quantiles: tuple[float, ...] | None = None
    prior: str | None = None
    formula: str | None = None
    loss: str | None = None
    covers: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.subset, str):
            raise PlanError(
                f"subset must be a list of names, got the text {self.subset!r}; write subset=[{self.subset!r}]"
            )
        if self.subset is not None:
            object.__setattr__(self, "subset", tuple(self.subset))

    def to_dict(self) -> dict[str, Any]:
        """The fields that were set, JSON-safe."""
        return {f.name: pack(getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Question:
        """The inverse of `to_dict`."""
        return cls(**unpack(dict(data)))

    def only(self, *allowed: str) -> None:
        """Raise `PlanError` when a field outside `allowed` was set: a method calls it with the fields that it answers."""
        unknown = sorted(set(self.to_dict()) - set(allowed))
        if unknown:
            can = f"it answers: {', '.join(allowed)}" if allowed else "it takes no question: infer(release)"
            raise PlanError(f"this method does not answer {', '.join(unknown)}; {can}")


#: The question that keeps all that the plan says.
NOTHING_ELSE = Question()

register(Question, Question.to_dict, Question.from_dict)
