"""What a method is: plan, release, infer. Ours and a stranger's alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from confide.guarantees import Guarantee
from confide.protocol.noise import Noise
from confide.protocol.plan import Plan
from confide.protocol.question import Question
from confide.protocol.release import Release
from confide.protocol.result import Result
from confide.protocol.source import Source

__all__ = ["Method"]


class Method(Protocol):
    """A frozen dataclass with these attributes and verbs; its fields are its parameters.

    name: as registered; family: "regression", "moments", ...; version: changes when numbers change; source: the reference;
    relations: those it has a guarantee under, its default first; native: the name of its guarantee's class; intervals: one line
    on what they cover; needs: any of "fixed_n", "positions", "public_table", "stream", "opaque".
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def relations(self) -> tuple[str, ...]: ...
    @property
    def native(self) -> str: ...
    @property
    def intervals(self) -> str: ...
    @property
    def needs(self) -> frozenset[str]: ...

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """From public facts alone: the tree of spends, the guarantee, the predicted standard errors."""
        ...

    def release(self, source: Source, plan: Plan, noise: Noise) -> Release:
        """From records: noisy statistics, through one meter."""
        ...

    def infer(self, release: Release, question: Question | None = None) -> Result:
        """From the release alone: estimates, intervals, tests; the same numbers each time."""
        ...

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Pairs of records (column -> value) that the audit should try: where one record moves the statistics most.

        schema: the bounds of the columns, when the records depend on them.
        """
        ...
