"""The release: noisy statistics with their guarantee. It is all that leaves the private wing, and it may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import NoResult, ReleaseError
from confide.guarantees import Guarantee, guarantee_from_dict
from confide.protocol.exact import array_from_dict, array_to_dict, clean, digest, fraction_from_text, fraction_to_text
from confide.protocol.files import FORMAT, read, text_of, to_file
from confide.protocol.laws import law_named
from confide.protocol.parts import names_of
from confide.protocol.plan import Plan

__all__ = ["Noisy", "Release"]


@dataclass(frozen=True, eq=False)
class Noisy:
    """One noisy statistic: integers (Python integers in an object array) in steps, and the law of their noise.

    For norm "frobenius" the matrix is symmetric, its diagonal has variance `variance` and its off-diagonal entries half of
    it; otherwise every entry has `variance`.
    """

    values: NDArray[Any]
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

    @property
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
        return array_to_dict(self.values)

    def to_dict(self) -> dict[str, Any]:
        # lists of its own: what a caller writes into it changes no later one
        values = {name: own if isinstance(own, str) else list(own) for name, own in self._written.items()}
        return {
            "values": values,
            "step": fraction_to_text(self.step),
            "law": self.law,
            "scale": fraction_to_text(self.scale),
            "norm": self.norm,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Noisy:
        return cls(
            array_from_dict(data["values"]),
            fraction_from_text(data["step"]),
            data["law"],
            fraction_from_text(data["scale"]),
            data["norm"],
        )


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
    public: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    format_version: str = FORMAT
    statuses: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Noisy:
        if name not in self.statistics:
            raise ReleaseError(
                f"the release holds no statistic {name!r}; it holds: {', '.join(sorted(self.statistics)) or 'none'}"
            )
        return self.statistics[name]

    def child(self, name: str) -> Release:
        """One question of a publication as a release of its own, which `confide.infer` reads; the receipt names the whole.

        Raises `ReleaseError` for a name that is not there, and `NoResult` for a question that failed after the charge.
        """
        if name not in self.plan.children:
            asked = ", ".join(map(repr, self.plan.children)) or "none: it is no publication"
            raise ReleaseError(f"the release has no question {name!r}; it has: {asked}")
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
        return {
            "plan": self.plan.to_dict(),
            "status": self.status,
            "statistics": {name: noisy.to_dict() for name, noisy in self.statistics.items()},
            "public": {name: array_to_dict(np.asarray(values)) for name, values in self.public.items()},
            "artifacts": dict(self.artifacts),
            "guarantees": [statement.to_dict() for statement in self.guarantees],
            "simulated": self.simulated,
            **({"statuses": dict(self.statuses)} if self.statuses else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """The inverse of `to_dict`."""
        return cls(
            plan=Plan.from_dict(data["plan"]),
            status=data["status"],
            statistics={name: Noisy.from_dict(noisy) for name, noisy in data["statistics"].items()},
            public={name: array_from_dict(values) for name, values in data["public"].items()},
            artifacts=dict(data["artifacts"]),
            guarantees=tuple(guarantee_from_dict(statement) for statement in data["guarantees"]),
            simulated=data["simulated"],
            statuses=dict(data.get("statuses", {})),
        )

    @cached_property
    def sha256(self) -> str:
        """Digest of the whole release: what the receipt in the ledger names."""
        return digest(self.to_dict())

    def to_json(self) -> str:
        """The publishable file, the same bits on every machine."""
        return to_file("release", self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read a release's file; `ReleaseError` when it is damaged, made by a newer version, or anything that confide does not write."""
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

    def __str__(self) -> str:
        kind = "simulated, protects nobody" if self.simulated else str(self.charged)
        return clean(
            f"Release of {self.plan.method.name}: {self.plan.target}; {self.status}; {kind}; sha256 {self.sha256}"
        )
