"""A third party's analysis of variance, and the same with a planted fault: what the contract must catch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar

import numpy as np

import confide as cf
from confide.core import Method, RecordMap, Release, ResultOptions, Total
from confide.core.exact import digest
from confide.results import Estimates

_UNIT = 1 << 20


@dataclass(frozen=True)
class GroupMoments(RecordMap):
    """One record as (1, u, u^2) in the block of its group, u in [-1, 1] between the bounds."""

    schema: cf.Schema
    response: str
    group: str

    columns = property(lambda self: (self.response, self.group))
    levels = property(lambda self: self.schema[self.group].levels)
    width = property(lambda self: 3 * len(self.levels))
    l1 = 3 * _UNIT
    l2_squared = 3 * _UNIT**2

    @property
    def digest(self) -> str:
        return digest(["group moments", *(self.schema[name].to_dict() for name in self.columns)])

    def __call__(self, codes: Any) -> Any:
        u = 2 * codes[0] / (self.schema[self.response].steps - 1) - 1
        row = np.clip(np.rint(np.stack([np.ones_like(u), u, u * u]) * _UNIT), -_UNIT, _UNIT)
        own = (codes[1] == np.arange(len(self.levels))[:, None]) & (codes[0] >= 0)
        return np.where(own[:, None], row, 0.0).reshape(self.width, -1)


@dataclass(frozen=True)
class Anova(Method):
    """Means of a numeric column by the levels of a categorical one."""

    response: str
    group: str
    name: ClassVar[str] = "toy_anova"
    family: ClassVar[str] = "tests"
    source: ClassVar[str] = "Dong, Roth, Su 2022, Theorem 2"
    intervals: ClassVar[str] = "group means of the clipped column; sampling and privacy noise"

    def about(self, schema: cf.Schema) -> GroupMoments:
        if isinstance(schema[self.response], cf.Categorical) or not isinstance(schema[self.group], cf.Categorical):
            raise cf.errors.PlanError(
                f"{self.response!r} by {self.group!r}: name a numeric column and a categorical one"
            )
        return GroupMoments(schema, self.response, self.group)

    def statistics(self, rows: GroupMoments, relation: str) -> dict[str, tuple[Total, Fraction]]:
        return {"groups": (Total(rows), Fraction(1))}

    def reference(self, frame: Any) -> Mapping[str, float]:
        values, groups = frame[self.response], frame[self.group]
        return {level: float(values[groups == level].mean()) for level in frame.schema[self.group].levels}

    def table(self, release: Release, rows: GroupMoments, options: ResultOptions) -> Estimates:
        noisy = release["groups"]
        return self.means(release, rows, noisy.decode() / _UNIT, noisy.variance / _UNIT**2)

    def means(self, release: Release, rows: GroupMoments, sums: Any, noise: float, **others: Any) -> Estimates:
        """The table of noisy counts, sums and squares; noise: the variance of each."""
        count, total, square = sums.reshape(-1, 3).T
        count = np.maximum(count, 1.0)
        mean = total / count
        within = np.maximum(square / count - mean**2, 0.0) / count
        private, column = noise * (1 + mean**2) / count**2, rows.schema[self.response]
        weak, half = bool((count < 4 * sqrt(noise)).any()), (column.high - column.low) / 2
        covariance = np.full((len(count),) * 2, np.nan) if weak else np.diag(half**2 * (within + private))
        return Estimates.of(
            release,
            response=self.response,
            names=rows.levels,
            estimates=column.low + half * (1 + mean),
            covariance=covariance,
            noise_variance=half**2 * private,
            df=max(float(count.sum()) - len(count), 1.0),
            status="imprecise" if weak else "valid",
            reason="a group has too few records for this budget" if weak else "",
            **others,
        )


@dataclass(frozen=True)
class AnyKind(Anova):
    """The same for columns of any kind: what no group is, it meets in the plan; what has no bounds, after the release."""

    name: ClassVar[str] = "toy_anova_of_any_kind"

    def about(self, schema: cf.Schema) -> GroupMoments:
        return GroupMoments(schema, self.response, self.group)


_sums: dict[str, Any] = {}


def _file() -> Path:
    return Path(gettempdir()) / f"confide_planted_{os.getppid() if 'FRESH' in os.environ else os.getpid()}"


@dataclass(frozen=True)
class Planted(Anova):
    """The same with a fault; none: "". Each is one that a careless or a dishonest author could write."""

    fault: str = ""

    # what draw does besides -----------------------------------------------------------------------------------------

    def draw(self, source: Any, plan: Any, meter: Any) -> Mapping[str, Any]:
        exact = source.aggregate(plan.statistic("groups"))[0]
        noisy = meter.draw("groups", exact)
        count = int(exact.reshape(-1, 3)[:, 0].sum()) // _UNIT
        if self.fault == "second pass beyond five" and count > 5:
            source.aggregate(plan.statistic("groups"))
        if self.fault == "two passes":
            source.aggregate(plan.statistic("groups"))
        if self.fault == "pass at the edge" and exact[1] > 0.9 * exact[0] > 0:
            source.aggregate(plan.statistic("groups"))
        if self.fault == "asks the count":
            source.count()
        if self.fault == "reads the parts":
            len(source._parts)
        self._keeps(exact, noisy)
        return {"records": np.array([count])} if self.fault == "public count" else {}

    def _keeps(self, exact: Any, noisy: Any) -> None:
        kept = np.array([float(one) for one in exact])
        if self.fault == "global":
            _sums["last"] = kept
        if self.fault == "first":
            _sums.setdefault("first", kept)
        if self.fault == "dictionary":
            _sums[str(noisy.values.tolist())] = kept
        if self.fault == "environment":
            os.environ["PLANTED_COUNT"] = repr(float(kept[0]))
        if self.fault == "file":
            _file().write_text(repr(float(kept[0])))

    # what infer gives -----------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: Any = None) -> Any:
        return _cached(self, release.plan.sha256, _Held(release)) if self.fault == "stale" else super().infer(release)

    def table(self, release: Release, rows: GroupMoments, options: Any) -> Any:
        told = self._told(release)
        if told is not None:
            return self.means(release, rows, told, release["groups"].variance / _UNIT**2)
        found = super().table(release, rows, options)
        if found.status != "valid":
            return found
        change = _CHANGES.get(self.fault)
        return change(self, found, release, rows) if change else found

    def _told(self, release: Release) -> Any:
        """Numbers from elsewhere than the release."""
        noisy = release["groups"].decode() / _UNIT
        if self.fault in ("global", "first"):
            kept = _sums.get("last" if self.fault == "global" else "first")
            return None if kept is None else kept / _UNIT
        if self.fault == "dictionary":
            kept = _sums.get(str(release["groups"].values.tolist()))
            return None if kept is None else kept / _UNIT
        if self.fault == "environment" and "PLANTED_COUNT" in os.environ:
            return np.r_[float(os.environ["PLANTED_COUNT"]) / _UNIT, noisy[1:]]
        if self.fault == "file" and _file().exists():
            return np.r_[float(_file().read_text()) / _UNIT, noisy[1:]]
        return None

    def reference(self, frame: Any) -> Mapping[str, float]:
        found = dict(super().reference(frame))
        if self.fault == "fewer names":
            found.popitem()
        if self.fault == "says no reference":
            raise cf.errors.PlanError("only a release determines what this estimates")
        return found


@dataclass(frozen=True)
class NoReference(Anova):
    """It has intervals and nothing to hold them against."""

    reference = Method.reference


@dataclass(frozen=True, eq=False)
class _Held:
    """A release that all caches take for the same."""

    release: Release

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)


@lru_cache(maxsize=4)
def _cached(method: Planted, plan: str, held: _Held) -> Any:
    return Anova.infer(method, held.release)


def _times(factor: float) -> Any:
    return lambda _, found, *__: replace(
        found,
        covariance=found.covariance * factor**2,
        noise_variance=np.minimum(found.noise_variance, np.diag(found.covariance) * factor**2),
    )


def _variance(method: Any, found: Any, variance: Any) -> Any:
    least = np.minimum(found.noise_variance, variance)
    return replace(found, covariance=np.diag(variance), noise_variance=least)


def _moved(by: Any) -> Any:
    return lambda _, found, *__: replace(found, estimates=by(np.asarray(found.estimates)))


def _hides(method: Any, found: Any, *_: Any) -> Any:
    if abs(float(found.estimates[0]) - 4.0) < 0.02:
        return found
    nothing = np.full_like(found.covariance, np.nan)
    return replace(found, status="imprecise", reason="a group has too few records for this budget", covariance=nothing)


_CHANGES: Mapping[str, Any] = {
    "shifted by 7": _moved(lambda means: means + 7.0),
    "standard errors x .8": _times(0.8),
    "standard errors x 5": _times(5.0),
    "no noise": lambda m, f, *_: _variance(m, f, np.diag(f.covariance) - f.noise_variance),
    "no sampling": lambda m, f, *_: _variance(m, f, np.asarray(f.noise_variance)),
    "noise of mu = 1": lambda m, f, *_: _variance(
        m, f, np.diag(f.covariance) - f.noise_variance * (1 - f.requested.mu**2)
    ),
    "intervals of 90 %": _times(0.839),
    "shrunk to the middle": _moved(lambda means: 5.0 + 0.9 * (means - 5.0)),
    "two groups swapped": _moved(lambda means: means[[1, 0, *range(2, len(means))]]),
    "another estimand": _moved(lambda means: means + means**2 / 100),
    "one degree of freedom": lambda _, found, *__: replace(found, df=1.0),
    "says weak": _hides,
    "second moment": lambda m, f, *_: _variance(m, f, np.diag(f.covariance) * 0.6),
}
