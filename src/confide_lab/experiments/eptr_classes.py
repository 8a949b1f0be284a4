"""Classifiers of the experiments with classes: data in, shares and means out, and the errors of the classifier that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide.classification import ClassMeans, EfficientPTRBayes
from confide_lab.methods import NaiveBayes, SmoothNaiveBayes
from confide_lab.published.eptr_bayes import dpnb, dpnbss, eptr_bayes

__all__ = ["METHODS", "TITLES", "ClassCase", "Classified", "balanced_error", "classified"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class ClassCase:
    """Records of K classes in one unit for all features: x (n, p), y positions (n,), R the radius of the ball, c0, epsilon, delta."""

    x: Array
    y: Labels
    classes: int
    bound: float
    c0: float
    epsilon: float
    delta: float

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.x.shape[1])]

    @property
    def schema(self) -> cf.Schema:
        """Features from -R to R: the ball of radius 1 in half-widths is the ball of radius R."""
        columns: dict[str, Any] = {name: cf.Numeric(-self.bound, self.bound) for name in self.names}
        return cf.Schema({**columns, "kind": cf.Categorical([f"c{k}" for k in range(self.classes)])})

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.x, columns=self.names).assign(kind=[f"c{k}" for k in self.y])

    @property
    def formula(self) -> str:
        return "kind ~ " + " + ".join(self.names)


@dataclass(frozen=True)
class Classified:
    """shares (K,), means (K, p) and variances (K, p) of a classifier; replied: False for a fallback that is no estimate."""

    shares: Array
    means: Array
    variances: Array
    replied: bool = True

    def scores(self, x: Array) -> Array:
        """(n, K)."""
        found = np.log(self.shares)[None, :].repeat(len(x), axis=0)
        for k, (mean, variance) in enumerate(zip(self.means, self.variances, strict=True)):
            gap = x - mean
            found[:, k] -= (gap * gap / variance).sum(axis=1) / 2 + np.log(variance).sum() / 2
        return np.asarray(found)


def balanced_error(found: Classified, x: Array, y: Labels) -> float:
    """The mean over classes of the share that is classified wrongly; ties go to the first class."""
    guess = found.scores(x).argmax(axis=1)
    return float(np.mean([np.mean(guess[y == k] != k) for k in range(len(found.shares))]))


def classified(method: str, case: ClassCase, generator: np.random.Generator) -> Classified:
    """A classifier by a method of `METHODS`."""
    return METHODS[method](case, generator)


def _identity(shares: Array, means: Array, replied: bool = True) -> Classified:
    return Classified(shares, means, np.ones_like(means), replied)


def _constant(case: ClassCase, generator: np.random.Generator) -> Classified:
    """The first class for every record, from no data: also what a method that does not reply falls back on."""
    p = case.x.shape[1]
    shares = np.array([0.5, *np.full(case.classes - 1, 0.5 / (case.classes - 1))])
    shares[0] += 1e-9
    return _identity(shares / shares.sum(), np.zeros((case.classes, p)), False)


def _not_private(case: ClassCase, generator: np.random.Generator) -> Classified:
    lengths = np.linalg.norm(case.x, axis=1)
    x = case.x * np.minimum(1.0, case.bound / np.maximum(lengths, 1e-300))[:, None]
    members = (case.y[:, None] == np.arange(case.classes)).astype(np.float64)
    counts = np.maximum(members.sum(axis=0), 1.0)
    return _identity(counts / counts.sum(), (members.T @ x) / counts[:, None])


def _published(call: Any, **settings: Any) -> Callable[[ClassCase, np.random.Generator], Classified]:
    def fitter(case: ClassCase, generator: np.random.Generator) -> Classified:
        own = {name: getattr(case, name) for name in settings.get("also", ())}
        found = call(case.x, case.y, generator, classes=case.classes, epsilon=case.epsilon, bound=case.bound, **own)
        return _identity(found["shares"], found["means"], found.get("replied", True))

    return fitter


def _released(
    make: Callable[[ClassCase], Any], pure: bool = False
) -> Callable[[ClassCase, np.random.Generator], Classified]:
    def fitter(case: ClassCase, generator: np.random.Generator) -> Classified:
        method = make(case)
        noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
        asked: Any = cf.PureDP(case.epsilon) if pure else cf.ApproxDP(case.epsilon, case.delta)
        source = cf.read(case.frame, case.schema)
        request = asked.resolve("substitute")
        found = method.infer(cf.release(method, source, request, n=len(case.x), ledger=None, noise=noise))
        if found.status == "declined":
            return _constant(case, generator)
        return Classified(found.shares, found.centres, found.spreads)

    return fitter


METHODS: dict[str, Callable[[ClassCase, np.random.Generator], Classified]] = {
    "constant": _constant,
    "not_private": _not_private,
    "class_sums": _released(lambda case: ClassMeans(case.formula, variance="identity", radius=1.0)),
    "eptr": _released(lambda case: EfficientPTRBayes(case.formula, c0=case.c0, variance="identity", radius=1.0)),
    "naive_bayes": _released(lambda case: NaiveBayes(case.formula, variance="identity", radius=1.0), pure=True),
    "smooth": _released(lambda case: SmoothNaiveBayes(case.formula, variance="identity"), pure=True),
    "eptr_literal": _published(eptr_bayes, also=("delta", "c0")),
    "dpnb_literal": _published(dpnb),
    "dpnbss_literal": _published(dpnbss),
}

TITLES = {
    "constant": "constant (public)",
    "not_private": "naive Bayes (not private)",
    "class_sums": "ClassMeans",
    "eptr": "EfficientPTRBayes",
    "naive_bayes": "NaiveBayes (pure)",
    "smooth": "SmoothNaiveBayes (pure)",
    "eptr_literal": "ePTR, Algorithm 3",
    "dpnb_literal": "DPNB as compared (NOT private)",
    "dpnbss_literal": "DPNBSS as compared (NOT private)",
}
