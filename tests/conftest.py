"""The whole suite repeats: drawn examples come from a fixed seed, so that a run on another machine tries the same ones.

``CONFIDE_EXPLORE=1 pytest ...`` draws new examples each time, to look for failures that the fixed ones miss.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from confide import forecast
from confide.core.exact import digest
from confide.errors import ConfideError
from confide.sums.ranges import RangedMethod
from tests.advice import checked
from tests.few import pytest_itemcollected as pytest_itemcollected
from tests.in_place import blocks_in_place as blocks_in_place
from tests.messages import (
    pytest_collection_modifyitems as pytest_collection_modifyitems,
    pytest_runtest_call as pytest_runtest_call,
    pytest_sessionfinish as pytest_sessionfinish,
    pytest_testnodedown as pytest_testnodedown,
)
from tests.needs import pytest_runtest_setup as pytest_runtest_setup

# no clock: the first example of a process loads the libraries that it needs, and the machine may be busy
unhurried = settings(print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", unhurried, derandomize=True)
settings.register_profile("explore", unhurried)
settings.load_profile("explore" if os.environ.get("CONFIDE_EXPLORE") else "fixed")


@pytest.fixture(scope="session")
def refusals() -> Iterator[list[str]]:
    """Every message with which confide refuses while tests run, each once in a while: `advice_is_checked` takes them."""
    told: list[str] = []
    made = ConfideError.__init__

    @wraps(made)
    def noted(self: ConfideError, *words: str, **more: str) -> None:
        made(self, *words, **more)
        told.append(str(self))

    ConfideError.__init__ = noted  # type: ignore[method-assign]
    yield told
    ConfideError.__init__ = made  # type: ignore[method-assign]


_WHOLE = forecast.SCENARIOS, forecast._OF_THREE


def _scenarios(one: int, of_three: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast, "SCENARIOS", one)
        patch.setattr(forecast, "_OF_THREE", of_three)
        yield


@pytest.fixture(scope="module", autouse=True)
def few_scenarios() -> Iterator[None]:
    """Plans are forecast from few of their scenarios, but where a test asks for `whole_forecasts`."""
    yield from _scenarios(_WHOLE[0] // 4, _WHOLE[1] // 8)


_RUNS: dict[tuple[Any, ...], Any] = {}


@pytest.fixture(scope="module", autouse=True)
def forecasts_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pages and commands show the same few plans again and again, each of which is simulated once in a process."""
    if request.path.parent.name not in ("cli", "studio"):
        yield
        return
    simulate = forecast.Setting.runs

    def runs(self: forecast.Setting, n: int, count: int) -> tuple[forecast.Run, ...]:
        asked = type(self.method), self.plan(n).sha256, digest(self.schema.to_dict()), n, count
        if asked not in _RUNS:
            _RUNS[asked] = simulate(self, n, count)
        return _RUNS[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast.Setting, "runs", runs)
        yield


@pytest.fixture
def whole_forecasts() -> Iterator[None]:
    yield from _scenarios(*_WHOLE)


def _kinds(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)


@pytest.fixture
def declared() -> Iterator[None]:
    """Methods made in the test sum within the declared bounds, unless they say otherwise: what is tested comes after the ranges."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in _kinds(RangedMethod):
            patch.setitem(kind.__init__.__kwdefaults__, "bounds", "declared")  # type: ignore[misc]
        yield


_CHECKED: set[str] = set()


@pytest.fixture(autouse=True)
def advice_is_checked(refusals: list[str]) -> Iterator[None]:
    """No refusal that a test raises gives advice that cannot be followed: `tests.advice.checked`."""
    refusals.clear()
    yield
    for message in refusals:
        if message not in _CHECKED and "(" in message:
            _CHECKED.add(message)
            wrong = checked(message)
            assert not wrong, f"{message!r}: {wrong}"
