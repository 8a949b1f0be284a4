"""A release under watch: every request for noise, every pass over the records, every word it says; and one that is steered.

A steered release repeats the numbers of another one, its transcript. The noise of each budget item is chosen, when it
is drawn, so that the released number equals that of the transcript. An opaque release, whose noise nobody can solve
for, is run on its own noise and then replaced by the transcript's number. So whatever follows it is compared at the
same one. What it gave itself is kept.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from confide.core import Meter, Method, Noise, Noisy, Plan, Release, Source, Statistic, meter as metering, seal
from confide.core.statistic import WrappedSource
from confide.noise import SimulatedNoise

#: One list of integers for each request.
Answers: TypeAlias = list[list[int]]


@dataclass(frozen=True)
class Request:
    """One call for noise: the name it was asked for, law, exact scale, how many numbers, how many random words it took, what was given."""

    law: str
    scale: str
    size: int
    words: int
    values: tuple[int, ...] = field(repr=False, compare=False, default=())
    scores: tuple[int, ...] = field(repr=False, compare=False, default=())
    lengths: tuple[int, ...] = field(repr=False, default=())
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.law}({self.scale}) x {self.size}, {self.words} words"


# One scale for each number, which stands inside an opaque release alone: they may follow from records.
_OWN = "other scales"


class _Counted:
    """Words of a source, counted."""

    def __init__(self, words: Any) -> None:
        self._words, self.taken = words, 0

    def take(self, count: int) -> Any:
        self.taken += count
        return self._words.take(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)


class ReplayNoise(Noise):
    """Seeded noise that records every request and the name it is for; `forced` replaces the first answers. It protects no one.

    `forced`: one list of integers per request in their order (None leaves a request its own noise). `named`: the same
    for the requests of a name, before any others. `wrap`: puts a sampler under test instead of the seeded one.
    """

    simulated = True

    def __init__(
        self,
        seed: int,
        forced: Sequence[Sequence[int] | None] = (),
        wrap: Callable[[Any], Any] | None = None,
        named: Mapping[str, Answers] | None = None,
    ) -> None:
        source: Any = SimulatedNoise(seed)
        self._counted = _Counted(source._words)
        source._words = self._counted
        self._source: Any = source if wrap is None else wrap(source)
        self._forced = list(forced)
        self._named = {name: list(answers) for name, answers in (named or {}).items()}
        self._owner = ""
        self.requests: list[Request] = []
        self.zero = False

    def rekey(self) -> None:
        """Nothing: a new key would not repeat."""

    def mark(self, name: str) -> None:
        """The name that the next requests are for: the meter says it."""
        self._owner = name

    def force(self, name: str, answers: Answers) -> None:
        """What the next requests for a name are given."""
        self._named[name] = list(answers)

    def grid_gaussian(self, sigma2: Any, size: int) -> NDArray[Any]:
        return self._additive("grid_gaussian", sigma2, size)

    def discrete_gaussian(self, sigma2: Any, size: int) -> NDArray[Any]:
        return self._additive("discrete_gaussian", sigma2, size)

    def grid_laplace(self, scale: Any, size: int) -> NDArray[Any]:
        return self._additive("grid_laplace", scale, size)

    def discrete_laplace(self, scale: Any, size: int) -> NDArray[Any]:
        return self._additive("discrete_laplace", scale, size)

    def grid_cauchy(self, scale: Any, size: int) -> NDArray[Any]:
        """A Cauchy law stands inside an opaque release alone, where its scale follows from records; no statement is made of it here."""
        return self._additive("grid_cauchy", scale, size)

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any, lengths: Any = None) -> int:
        before = self._counted.taken
        drawn = int(self._source.exponential_mechanism(scores, epsilon, sensitivity, lengths))
        # how many words a choice takes may depend on the scores: they are no output, and timing is no claim of this law
        self._counted.taken = before
        forced = self._force(1)
        winner = drawn if forced is None else int(forced[0])
        self.requests.append(
            Request(
                "exponential",
                f"{_text(epsilon)} with sensitivity {_text(sensitivity)}",
                len(scores),
                0,
                (winner,),
                tuple(int(score) for score in np.asarray(scores, dtype=object).ravel()),
                () if lengths is None else tuple(int(one) for one in np.asarray(lengths, dtype=object).ravel()),
                self._owner,
            )
        )
        return winner

    def bernoulli(self, p: Any, size: int) -> NDArray[Any]:
        """Coins. Their probability is not an output and may differ between neighbors; how many words they take is not compared either."""
        before = self._counted.taken
        drawn = np.asarray(self._source.bernoulli(p, size))
        self._counted.taken = before
        values = tuple(int(v) for v in drawn)
        self.requests.append(Request("bernoulli", "a probability", int(size), 0, values, owner=self._owner))
        return drawn

    def _force(self, size: int) -> Sequence[int] | None:
        answers = self._named.get(self._owner)
        if answers and len(answers[0]) == size:
            return answers.pop(0)
        place = len(self.requests)
        forced = self._forced[place] if place < len(self._forced) else None
        return forced if forced is not None and len(forced) == size else None

    def _additive(self, law: str, scale: Any, size: int) -> NDArray[Any]:
        before = self._counted.taken
        drawn = getattr(self._source, law)(scale, size)
        forced = [0] * int(size) if self.zero else self._force(int(size))
        values = [int(v) for v in np.asarray(drawn, dtype=object).ravel()] if forced is None else list(forced)
        if _text(scale) == _OWN:
            self._counted.taken = before  # how many words it takes may follow from the scales
        taken = self._counted.taken - before
        self.requests.append(Request(law, _text(scale), int(size), taken, tuple(values), owner=self._owner))
        given = np.empty(len(values), dtype=object)
        given[:] = values
        return given


def _text(scale: Any) -> str:
    return _OWN if isinstance(scale, Sequence | np.ndarray) else str(Fraction(scale))


class _Watched(WrappedSource):
    """A source that notes what it was asked for."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.calls: list[str] = []

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        self.calls.append("pass: " + ", ".join(f"{one.map.digest[:12]} {one.shape}" for one in statistics))
        return self._source.aggregate(*statistics)

    def count(self) -> int:
        self.calls.append("the number of records")
        return self._source.count()

    def __getattr__(self, name: str) -> Any:
        # a method may reach for what no source has: that is seen, and not stopped, here
        return getattr(self._source, name)


@dataclass(frozen=True)
class Run:
    """Everything that one run of a release showed. own: what its opaque releases and hidden tests gave before a transcript replaced it."""

    release: Release | None
    requests: tuple[Request, ...]
    calls: tuple[str, ...]
    said: str
    error: str
    own: Mapping[str, Noisy] = field(default_factory=dict)


def steered(
    noise: ReplayNoise, transcript: Mapping[str, Noisy], own: dict[str, Noisy]
) -> Callable[[Plan, Noise], Meter]:
    """Makes a meter whose releases repeat those of a transcript, to its end.

    own: filled with what opaque releases and hidden tests gave themselves.
    """

    def make(plan: Plan, given: Noise) -> Meter:
        meter: Any = metering.Meter(plan, given)  # looked up when called, as the gate does

        # looked up when called: a planted fault may have given the meter another class by then
        def draw(name: str, integers: NDArray[Any]) -> Noisy:
            wanted = transcript.get(name)
            if wanted is not None and wanted.values.shape == np.shape(integers):
                noise.force(name, answers(wanted, wanted.values - integers * int(1 / wanted.step)))
            return cast(Noisy, type(meter).draw(meter, name, integers))

        def choose(name: str, scores: NDArray[Any], lengths: NDArray[Any] | None = None) -> int:
            if name in transcript:
                noise.force(name, [[int(transcript[name].values[0])]])
            return int(type(meter).choose(meter, name, scores, lengths))

        def test(name: str, safety: NDArray[Any]) -> bool:
            passed = bool(type(meter).test(meter, name, safety))
            if passed and name in transcript:
                own[name], meter._drawn[name] = meter._drawn[name], transcript[name]
            return passed

        def opaque(name: str, *value: Any, **more: Any) -> Noisy:
            own[name] = type(meter).opaque(meter, name, *value, **more)
            if name in transcript:
                meter._drawn[name] = transcript[name]
            return cast(Noisy, meter._drawn[name])

        for verb in (draw, choose, test, opaque):
            setattr(meter, verb.__name__, verb)
        return cast(Meter, meter)

    return make


def answers(noisy: Noisy, noise: NDArray[Any]) -> Answers:
    """The answers to the requests of one released number that give it this noise: a symmetric matrix asks twice."""
    if noisy.norm == "frobenius":
        return [[int(v) for v in np.diag(noise)], [int(v) for v in noise[np.triu_indices(len(noise), 1)]]]
    return [[int(v) for v in np.ravel(noise)]]


def run(
    method: Method, source: Source, plan: Plan, noise: ReplayNoise, transcript: Mapping[str, Noisy] | None = None
) -> Run:
    """Run a release under watch: noise, passes, printed text, warnings, log lines, the exception if there is one.

    transcript: numbers that it is steered to repeat.
    """
    watched, text, own = _Watched(source), io.StringIO(), dict[str, Noisy]()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    level, root_handlers = root.level, root.handlers
    root.handlers, error, release = [handler], "", None
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(text), redirect_stderr(text), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with np.errstate(all="ignore"):
                release = seal(method, watched, plan, noise, steered(noise, transcript or {}, own))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    finally:
        root.handlers = root_handlers
        root.setLevel(level)
    said = text.getvalue() + "".join(f"{one.category.__name__}: {one.message}\n" for one in caught)
    return Run(release, tuple(noise.requests), tuple(watched.calls), said, error, own)
