"""A winner's release inside the release of its selection: as public arrays and back, and its table without intervals."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from confide.protocol import Noisy, Plan, Release, Spend, leaves
from confide.results import Estimates
from confide.results.pages.words import Flag

__all__ = ["SELECTED", "packed", "stripped", "unpacked"]

SELECTED = Flag(
    "selected",
    "chosen among several candidates by a private score; intervals would ignore the choice",
)


def packed(run: Release) -> dict[str, Any]:
    """A winner's numbers as public arrays: its statistics, the steps of those that no spend says, its own public numbers."""
    found: dict[str, Any] = {}
    spends = {leaf.name for leaf in leaves(run.plan.event) if isinstance(leaf, Spend)}
    for name, noisy in run.statistics.items():
        found[f"statistic {name}"] = noisy.values
        if name not in spends:
            found[f"step {name}"] = np.array([noisy.step.numerator, noisy.step.denominator], dtype=object)
    return {**found, **{f"public {name}": np.asarray(values) for name, values in run.public.items()}}


def unpacked(release: Release, inner: Plan) -> Release:
    """The winner's release from the public arrays, with the laws that its plan says."""
    spends = {leaf.name: leaf for leaf in leaves(inner.event) if isinstance(leaf, Spend)}
    statistics: dict[str, Noisy] = {}
    public: dict[str, Any] = {}
    for name, values in release.public.items():
        kind, _, own = name.partition(" ")
        if kind == "public":
            public[own] = values
        elif kind == "statistic" and own in spends:
            spend = spends[own]
            statistics[own] = Noisy(values, spend.step, spend.law, spend.scale, spend.norm)
        elif kind == "statistic":
            step = Fraction(*(int(v) for v in release.public[f"step {own}"]))
            statistics[own] = Noisy(values, step, "opaque", Fraction(0), "none")
    return Release(inner, "released", statistics, inner.guarantees, public, simulated=release.simulated)


#: Fields of tables in which intervals live, and what they become.
_BLANK: dict[str, Any] = {
    "joint": None,
    "loose": None,
    "tables": {},
    "rsquared_interval": (nan, nan),
    "df": nan,
}


def _bare(fact: tuple[str, str]) -> tuple[str, str]:
    """A line of the head without the interval in it."""
    label, value = fact
    return label, value.split(" [")[0].split(" ± ")[0]


def stripped(found: Estimates, release: Release, method: Any, facts: tuple[tuple[str, str], ...]) -> Estimates:
    """A winner's table without what an interval could be computed from."""
    p = len(found.names)
    known = {field.name for field in fields(found)}
    return replace(
        found,
        method=f"{method.name} {method.version}",
        covariance=np.full((p, p), nan),
        noise_variance=np.full(p, nan),
        flags=tuple(dict.fromkeys((*found.flags, "no_interval", SELECTED))),
        requested=release.plan.requested,
        guarantee=release.charged,
        covers=release.plan.covers,
        release_sha256=release.sha256,
        facts=(*facts, *map(_bare, found.facts)),
        **{name: value for name, value in _BLANK.items() if name in known},
    )
