"""OpenDP: the independent oracle of the two discrete laws, and a backend that offers those two alone."""

from __future__ import annotations

import builtins
import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from tests.few import few
from tests.messages import refuses
from tests.noise.exact import LAWS, ks_p_value, parameter, pmf_p_value, take, two_sample_p_value

from confide.errors import PrivacyError
from confide.noise import SecureNoise
from confide.noise.sources import double_above

pytest.importorskip("opendp")

ALPHA = 1e-8  # not seeded: each test may fail once in 10^8 runs
DISCRETE = LAWS[2:]
discrete = pytest.mark.parametrize("law", DISCRETE)
SCALES = [Fraction(1, 2), Fraction(3), Fraction(10), Fraction(1000), Fraction(10) ** 9, Fraction(10) ** 15]


@discrete
# OpenDP takes most of the time; the test below has the other scales too
@pytest.mark.parametrize("scale", few([SCALES[k] for k in (0, 2, 5)], 1), ids=float)
def test_our_draws_and_those_of_opendp_have_one_law(law: str, scale: Fraction) -> None:
    ours, theirs = SecureNoise(), SecureNoise(backend="opendp")
    reference = take(theirs, law, scale, 30_000)
    assert two_sample_p_value(take(ours, law, scale, 300_000), reference) > ALPHA
    for wrong in (Fraction(10, 9), Fraction(9, 10)):
        assert two_sample_p_value(take(ours, law, scale * wrong, 300_000), reference) < ALPHA


@pytest.mark.long
@discrete
@pytest.mark.parametrize("scale", SCALES, ids=float)
def test_the_same_at_a_million_draws(law: str, scale: Fraction) -> None:
    ours, theirs = SecureNoise(), SecureNoise(backend="opendp")
    reference = take(theirs, law, scale, 1_000_000)
    assert two_sample_p_value(take(ours, law, scale, 4_000_000), reference) > ALPHA
    for wrong in (Fraction(103, 100), Fraction(100, 103)):
        assert two_sample_p_value(take(ours, law, scale * wrong, 4_000_000), reference) < ALPHA


@discrete
def test_the_backend_follows_the_exact_law(law: str) -> None:
    noise = SecureNoise(backend="opendp")
    assert noise.simulated is False
    draws = take(noise, law, Fraction(3), 20_000)
    assert draws.dtype == np.int64
    assert pmf_p_value(law, draws, 3.0) > ALPHA
    assert ks_p_value(law, take(noise, law, Fraction(10) ** 12, 20_000), 1e12) > ALPHA
    noise.rekey()
    each = getattr(noise, law)([parameter(law, s) for s in (Fraction(3), Fraction(40))] * 10_000, 20_000)
    assert pmf_p_value(law, each[::2], 3.0) > ALPHA
    assert pmf_p_value(law, each[1::2], 40.0) > ALPHA
    assert getattr(noise, law)(4, 0).shape == (0,)


@pytest.mark.parametrize(
    "call",
    [
        lambda noise: noise.grid_gaussian(1, 3),
        lambda noise: noise.grid_laplace(1, 3),
        lambda noise: noise.grid_laplace(1, 0),
        lambda noise: noise.bernoulli(0.5, 3),
        lambda noise: noise.uniform_integers(6, 3),
    ],
)
def test_the_backend_offers_the_discrete_laws_only(call: Callable[[SecureNoise], object]) -> None:
    with refuses(PrivacyError):
        call(SecureNoise(backend="opendp"))


@discrete
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, 4**57, None])
def test_the_backend_refuses_what_the_samplers_refuse(law: str, bad: object) -> None:
    with refuses(PrivacyError):
        getattr(SecureNoise(backend="opendp"), law)(bad, 3)
    with refuses(PrivacyError):
        getattr(SecureNoise(backend="opendp"), law)(1, -1)


@pytest.mark.parametrize("bad", ["OpenDP", "", None, 7])
def test_an_unknown_backend_is_refused(bad: object) -> None:
    with refuses(PrivacyError):
        SecureNoise(backend=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(2), Fraction(4), Fraction(1, 10**320), Fraction(10**30, 7), Fraction(2**114 - 1)]
)
def test_the_double_is_the_smallest_that_is_no_less(value: Fraction, squared: bool) -> None:
    found = Fraction(double_above(value, squared))
    less = Fraction(math.nextafter(float(found), 0))
    if squared:
        assert less**2 < value <= found**2
    else:
        assert less < value <= found


def test_it_is_imported_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, confide.noise; confide.noise.SecureNoise(); print('opendp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    right = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("opendp"):
            raise ImportError(name)
        return right(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with refuses(PrivacyError):
        SecureNoise(backend="opendp")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@discrete
def test_a_forked_child_of_the_backend_does_not_repeat_its_parent(law: str) -> None:
    noise = SecureNoise(backend="opendp")
    take(noise, law, Fraction(10) ** 12, 10)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, take(noise, law, Fraction(10) ** 12, 100).tobytes())
        finally:
            os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    with os.fdopen(receive, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), dtype=np.int64)
    assert len(drawn) == 100
    assert not set(drawn.tolist()) & set(take(noise, law, Fraction(10) ** 12, 100).tolist())
