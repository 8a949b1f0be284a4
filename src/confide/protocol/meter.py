"""The meter: the one choke point inside a release. Every noisy number leaves through it.

It knows the plan's events; it refuses a name that is not planned, a second use, a shape or statistic other than the planned
one; and at the end it asserts that what was drawn is one branch of what was charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from confide.errors import ReleaseError
from confide.protocol.events import Opaque, Spend, Test, hidden_tests, leaves, paths, threshold
from confide.protocol.laws import ADDITIVE
from confide.protocol.noise import Noise
from confide.protocol.plan import Plan
from confide.protocol.release import Noisy, Release

__all__ = ["Meter"]


class Meter:
    """Draws the noise of one plan: `with Meter(plan, noise) as meter: meter.draw("moments", total)`, then `meter.release()`.

    Raises `ReleaseError` on anything that the plan does not allow. Leaving the block checks that the draws are a branch of the
    plan; an exception inside the block passes through.
    """

    def __init__(self, plan: Plan, noise: Noise) -> None:
        self._plan = plan
        self._noise = noise
        self._spends = {leaf.name: leaf for leaf in leaves(plan.event)}
        self._tests = {test.on.name: test for test in hidden_tests(plan.event) if isinstance(test.on, Spend)}
        self._drawn: dict[str, Noisy] = {}
        self._failed: set[str] = set()
        self._closed = False
        noise.rekey()

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def draw(self, name: str, integers: NDArray[Any]) -> Noisy:
        """Add the planned noise to exact integers (the shape that the plan says) and return what may leave."""
        spend = self._planned(name, ADDITIVE)
        if name in self._tests:
            raise ReleaseError(f"{name!r} is a safety test, which is released only when it passes; call meter.test")
        if integers.shape != spend.shape:
            raise ReleaseError(
                f"{name!r} was planned with shape {spend.shape}, got another; draw the planned statistic"
            )
        fine = int(1 / spend.step)
        noise = self._symmetric(spend) if spend.norm == "frobenius" else self._independent(spend)
        values = np.array([int(v) * fine for v in integers.ravel()], dtype=object).reshape(spend.shape) + noise
        return self._leaves(name, spend, values)

    def choose(self, name: str, scores: NDArray[Any], lengths: NDArray[Any] | None = None) -> int:
        """The number of one candidate by the exponential mechanism: P(i) ~ lengths_i exp(-epsilon (max - score_i) / (2 D)).

        scores: integers, one per candidate, each moved by at most the planned sensitivity D by one unit. lengths: integers of a
        base measure that is public (left out: all 1).
        """
        spend = self._planned(name, ("exponential",))
        if scores.shape != spend.shape:
            raise ReleaseError(f"{name!r} was planned with {spend.shape[0]} candidates, got another number")
        winner = int(self._noise.exponential_mechanism(scores, spend.scale, spend.sensitivity, lengths))
        self._leaves(name, spend, np.array([winner], dtype=object))
        return winner

    def test(self, name: str, safety: NDArray[Any]) -> bool:
        """Whether a safety test passes (`allowance.test`); only then may what follows it in the plan be drawn.

        safety: the integer steps behind the test, shape (1,), at least 0 and moved by at most the planned sensitivity s by one record;
        above 0 only where what follows is protected on every neighbour. It passes where the safety is above 0 and
        max(safety - s, 0) plus noise reaches the threshold. The noisy number is then among the release's statistics. Noise is
        drawn in any case.

        A unit of k rows changes k of them: data are safe above (k - 1) s, and s becomes (2 k - 1) s, which is at most 0 less than
        the safety of a neighbour that is not.
        """
        if name not in self._tests:
            raise ReleaseError(f"the plan has no safety test {name!r}; it has: {', '.join(self._tests) or 'none'}")
        if np.shape(safety) != (1,):
            raise ReleaseError(f"the safety {name!r} must have shape (1,), got another")
        test: Test = self._tests[name]
        spend = self._planned(name, ADDITIVE)
        rows = int(self._plan.schema["rows_per_unit"])
        one = ceil(spend.sensitivity / rows)
        steps = int(safety[0]) * int(1 / spend.step)
        noise = int(self._independent(spend)[0])
        noisy = max(steps - (2 * rows - 1) * one, 0) + noise
        passed = steps > (rows - 1) * one and noisy >= threshold(spend, test.delta)
        if passed:
            self._leaves(name, spend, np.array([noisy], dtype=object))
        else:
            self._failed.add(name)
        return passed

    def drawn(self, name: str) -> Noisy:
        """What was drawn under a name, for numbers that follow from it between the rounds."""
        if name not in self._drawn:
            raise ReleaseError(f"{name!r} was not drawn yet; draw it first")
        return self._drawn[name]

    def opaque(self, name: str, value: NDArray[np.float64], step: Fraction) -> Noisy:
        """A noisy result that is proved elsewhere (`Opaque` in the plan), rounded to a public grid of that step, a power of two.

        value: drawn by the method itself, from this meter's noise; what is not finite becomes 0. Nothing is added here.
        """
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed; draw inside the with block")
        if not isinstance(self._spends.get(name), Opaque):
            known = ", ".join(leaf.name for leaf in self._spends.values() if isinstance(leaf, Opaque))
            raise ReleaseError(f"the plan has no opaque release {name!r}; it has: {known or 'none'}")
        if name in self._drawn:
            raise ReleaseError(f"{name!r} was drawn twice; the plan pays for one draw")
        flat = np.nan_to_num(np.asarray(value, dtype=np.float64).ravel(), nan=0.0, posinf=0.0, neginf=0.0)
        values = np.array([round(Fraction(float(v)) / step) for v in flat], dtype=object).reshape(np.shape(value))
        self._drawn[name] = Noisy(values, step, "opaque", Fraction(0), "none")
        return self._drawn[name]

    def inner(self, name: str) -> Noise:
        """Noise for releases that run inside the opaque release `name`, each with a meter of its own; that one's proof covers them."""
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed; draw inside the with block")
        if not isinstance(self._spends.get(name), Opaque) or name in self._drawn:
            raise ReleaseError(f"the plan has no opaque release {name!r} that is still to be drawn")
        return cast(Noise, _Inner(self, self._noise))

    def _leaves(self, name: str, spend: Spend, values: NDArray[Any]) -> Noisy:
        noisy = Noisy(values, spend.step, spend.law, spend.scale, spend.norm)
        self._drawn[name] = noisy
        return noisy

    def _planned(self, name: str, laws: tuple[str, ...]) -> Spend:
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after the meter was closed; draw inside the with block")
        spend = self._spends.get(name)
        if not isinstance(spend, Spend) or spend.law not in laws:
            known = ", ".join(
                leaf.name for leaf in self._spends.values() if isinstance(leaf, Spend) and leaf.law in laws
            )
            raise ReleaseError(f"the plan has no spend {name!r} of this kind; it has: {known or 'none'}")
        if name in self._drawn or name in self._failed:
            raise ReleaseError(f"{name!r} was drawn twice; the plan pays for one draw")
        return spend

    def _independent(self, spend: Spend) -> NDArray[Any]:
        """One independent draw of the planned law for each number."""
        sampler = getattr(self._noise, spend.law)
        return np.array(sampler(spend.scale, int(np.prod(spend.shape))).tolist(), dtype=object).reshape(spend.shape)

    def _symmetric(self, spend: Spend) -> NDArray[Any]:
        """Symmetric noise: variance sigma^2 on the diagonal, sigma^2/2 on each off-diagonal pair.

        In the Frobenius norm an off-diagonal pair counts twice, so these variances give |D|_F^2 / sigma^2 = mu^2 exactly.
        """
        p = spend.shape[0]
        noise = np.zeros((p, p), dtype=object)
        noise[np.diag_indices(p)] = self._noise.grid_gaussian(spend.scale, p).tolist()
        above = np.triu_indices(p, 1)
        noise[above] = self._noise.grid_gaussian(spend.scale * Fraction(1, 2), len(above[0])).tolist()
        noise.T[above] = noise[above]
        return noise

    def close(self) -> None:
        """Assert that what was drawn is one branch of what was charged."""
        self._closed = True
        if frozenset(self._drawn) not in paths(self._plan.event):
            raise ReleaseError(
                "what was drawn is no branch of the plan; a release draws every spend of one branch, once"
            )

    def release(
        self,
        *,
        public: Mapping[str, NDArray[Any]] | None = None,
        artifacts: Mapping[str, str] | None = None,
        status: str = "released",
    ) -> Release:
        """The release of what was drawn. `public`: numbers computed from earlier noisy outputs between the rounds.

        status: "no_reply" when the mechanism declined; what was drawn before stands in the release all the same.
        """
        if not self._closed:
            self.close()
        return Release(
            plan=self._plan,
            status=status,
            statistics=dict(self._drawn),
            guarantees=self._plan.guarantees,
            public=dict(public or {}),
            artifacts=dict(artifacts or {}),
            simulated=self._noise.simulated,
        )


class _Inner:
    """The noise of a meter, for meters inside it: it is keyed already, and of no use after the outer one is closed."""

    def __init__(self, outer: Meter, noise: Noise) -> None:
        self._outer, self._noise = outer, noise

    def rekey(self) -> None:
        if self._outer._closed:
            raise ReleaseError(
                "a release inside another one began after the outer one ended; run it inside the with block"
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)
