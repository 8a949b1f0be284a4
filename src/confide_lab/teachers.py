"""Votes of teachers: simulated ones, and those of MNIST's digits from CONFIDE_DATA."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confide.methods.voting.teacher_labels import tallied
from confide_lab.datasets import ENVIRONMENT

__all__ = ["KINDS", "digits", "digits_missing", "digits_votes", "made_votes"]

Votes = NDArray[np.int64]

#: Simulated votes of 400 teachers for 10 classes: how the most frequent class's share is drawn.
KINDS = ("high", "mnist-like", "low")


def made_votes(kind: str, generator: np.random.Generator, queries: int = 200) -> Votes:
    """400 ballots for each of so many queries.

    high: top evenly in 151..400; mnist-like: Binomial(400, Beta(12, 1.5)) above 150; both with the rest by a Dirichlet law of 1/2, drawn
    again where another class leads; low: all by a Dirichlet law of 1, none with 150.

    >>> made_votes("low", np.random.default_rng(0), 2).sum(axis=1).tolist()
    [400, 400]
    """
    rows: list[NDArray[np.int64]] = []
    while len(rows) < queries:
        if kind == "low":
            row = generator.multinomial(400, generator.dirichlet(np.ones(10)))
            if row.max() < 150:
                rows.append(row)
            continue
        top = int(generator.integers(151, 401) if kind == "high" else generator.binomial(400, generator.beta(12, 1.5)))
        rest = generator.multinomial(400 - top, generator.dirichlet(np.full(9, 0.5)))
        if rest.max() < top and top > 150:
            rows.append(np.array([top, *rest]))
    return np.array(rows)


def digits_missing(_: str = "") -> str | None:
    """Why MNIST cannot be had here, or None."""
    folder = os.environ.get(ENVIRONMENT)
    if folder and (Path(folder) / "mnist.npz").exists():
        return None
    return f"set {ENVIRONMENT} to a folder that holds mnist.npz"


@cache
def digits() -> dict[str, NDArray[np.float64]]:
    """Private records x, y (the training images); public ones, queries in the order of a permutation; held, held_truth: public ones by
    which students are judged. Fifty components, fitted on the public images without labels."""
    from sklearn.decomposition import PCA

    with np.load(Path(os.environ[ENVIRONMENT]) / "mnist.npz") as file:
        train, labels, test, truth = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    public = test.reshape(len(test), -1) / 255.0
    turn = PCA(50, random_state=0).fit(public[:9_000])
    order = np.random.default_rng(3).permutation(9_000)
    scores = turn.transform(public)
    return {
        "x": turn.transform(train.reshape(len(train), -1) / 255.0),
        "y": labels.astype(np.float64),
        "public": scores[order],
        "truth": truth[order].astype(np.float64),
        "held": scores[9_000:],
        "held_truth": truth[9_000:].astype(np.float64),
    }


@cache
def digits_votes(teachers: int, queries: int) -> Votes:
    """Votes of support vector machines, one for each of equal blocks of a fixed permutation."""
    from sklearn.svm import SVC

    own = digits()
    parts = np.array_split(np.random.default_rng(0).permutation(len(own["y"])), teachers)
    said = [SVC(C=5).fit(own["x"][one], own["y"][one]).predict(own["public"][:queries]) for one in parts]
    return tallied(np.array(said), 10)
