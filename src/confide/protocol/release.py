"""The release: noisy statistics with their guarantee. It is all that leaves the private wing, and it may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._text import as_html
from confide.errors import NoResult, PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.protocol.exact import Numbers, clean, digest
from confide.protocol.parts import names_of
from confide.protocol.plan import Plan
from confide.protocol.serialization.codec import SPARSE, decode, encode, register
from confide.protocol.serialization.files import read, text_of, written
from confide.protocol.spending.laws import law_named

__all__ = ["Noisy", "Release"]


@dataclass(frozen=True, eq=False)
class Noisy:
    """One noisy statistic: integers (Python integers in an object array) in steps, and the law of their noise.

    For norm "frobenius" the matrix is symmetric, its diagonal has variance `variance` and its off-diagonal entries half of
    it; otherwise every entry has `variance`.
    """

    values: Numbers
    step: Fraction
    law: str
    scale: Fraction
    norm: str

    def __post_init__(self) -> None:
        # what was drawn leaves as it is: no draw puts other numbers in its place
        self.values.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @cached_property
    def variance(self) -> float:
        """Noise variance of one entry in the statistic's own integers, rounding included; infinite for a choice, NaN for an opaque one."""
        if self.law == "opaque":
            return nan
        return law_named(self.law).variance(self.scale) * float(self.step**2)

    def decode(self) -> NDArray[np.float64]:
        """The values in the statistic's own integers, as floats."""
        return self._floats.copy()

    @cached_property
    def _floats(self) -> NDArray[np.float64]:
        # the step is a power of two, so scaling after the one rounding to a double is exact
        return np.array(list(map(float, self.values.ravel().tolist()))).reshape(self.shape) * float(self.step)

    @cached_property
    def _written(self) -> dict[str, Any]:
        return encode(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; lists of its own, so that what a caller writes into it changes no later one."""
        values = {name: own if isinstance(own, str) else list(own) for name, own in self._written["values"].items()}
        return {**self._written, "values": values}


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy statistics, the plan they came from, what was computed between rounds, digests of bulk outputs, guarantees.

    status: "released", or "no_reply" when the mechanism declined; `simulated` is True when a seed made the noise: such a
    release protects nobody and the gate will neither charge nor publish it. statuses: of a publication, by question: "released",
    "no_reply", or "failed" after the charge, which no guarantee covers.
    """

    plan: Plan
    status: str
    statistics: Mapping[str, Noisy]
    guarantees: tuple[Guarantee, ...]
    public: Mapping[str, Numbers] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    statuses: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)

    def __getitem__(self, name: str) -> Noisy:
        if name not in self.statistics:
            raise ReleaseError(
                f"the release holds no statistic {name!r}; it holds: {', '.join(sorted(self.statistics)) or 'none'}"
            )
        return self.statistics[name]

    def child(self, name: str) -> Release:
        """One question of a publication as a release of its own, which `confide.infer` reads; the receipt names the whole.

        Raises `PlanError` for a name that is not there, and `NoResult` for a question that failed after the charge.
        """
        if name not in self.plan.children:
            asked = ", ".join(map(repr, self.plan.children)) or "none: it is no publication"
            raise PlanError(f"the release has no question {name!r}; it has: {asked}")
        if self.statuses[name] == "failed":
            raise NoResult(
                f"the question {name!r} failed after the charge, and nothing of it was released; ask it again"
            )
        plan = self.plan.children[name]
        return Release(
            plan=plan,
            status=self.statuses[name],
            statistics=names_of(name, self.statistics),
            guarantees=plan.guarantees,
            public=names_of(name, self.public),
            simulated=self.simulated,
        )

    @property
    def charged(self) -> Guarantee:
        """The native guarantee of what was drawn."""
        return self.guarantees[0]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; nothing is lost and nothing private is in it."""
        return encode(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """The inverse of `to_dict`."""
        return decode(cls, data)

    @cached_property
    def sha256(self) -> str:
        """Digest of the whole release: what the receipt in the ledger names."""
        return digest(self.to_dict())

    @cached_property
    def drawn_sha256(self) -> str:
        """Digest of the drawn integers, their steps and their laws, and of no name: the key of every draw inside `infer`.

        Columns, levels and data sets may be renamed and a plan said otherwise: what was drawn is the same, and so is every number read
        from it.
        """
        return digest(sorted(digest(noisy.to_dict()) for noisy in self.statistics.values()))

    def to_json(self) -> str:
        """The publishable file, the same bits on every machine; `ReleaseError` for what no file of confide holds."""
        return written("release", self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read a release's file; `ReleaseError` when it is damaged, of another format, or anything that confide does not write."""
        return read("release", text, cls.from_dict)

    def save(self, path: str | Path) -> Path:
        """Write `to_json` to a file and return its path."""
        target = Path(path)
        target.write_text(self.to_json(), encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote."""
        return cls.from_json(text_of(path, "release"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __str__(self) -> str:
        kind = "simulated, protects nobody" if self.simulated else str(self.charged)
        return clean(
            f"Release of {self.plan.method.name}: {self.plan.target}; {self.status}; {kind}; sha256 {self.sha256}"
        )


register(Noisy, Noisy.to_dict, partial(decode, Noisy))
