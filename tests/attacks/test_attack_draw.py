"""What a draw may not do: write to its plan, or put other numbers in the place of what was drawn."""

from __future__ import annotations

import pytest

import confide as cf
from confide.errors import ReleaseError
from confide.noise import SimulatedNoise
from confide_lab.benchmarks.planted.curves import _KeepsZeros, _WritesToThePlan
from confide_lab.benchmarks.planted.toy import LINE_SCHEMA
from confide_lab.methods.wavelet import Wavelet


@pytest.mark.parametrize("kind", [_WritesToThePlan, _KeepsZeros])
def test_the_gate_releases_nothing_and_says_nothing_of_the_records(kind: type[Wavelet]) -> None:
    said = set()
    for n in (0, 30, 31):
        data = cf.read(LINE_SCHEMA.sample(n, 1), LINE_SCHEMA)
        with pytest.raises(ReleaseError) as caught:
            cf.release(kind("y ~ a", level=2), data, cf.GDP(1.0), ledger=None)
        said.add(str(caught.value))
    assert len(said) == 1


def test_the_plan_is_as_it_was_planned() -> None:
    method, data = Wavelet("y ~ a", level=2), cf.read(LINE_SCHEMA.sample(30, 1), LINE_SCHEMA)
    planned = cf.plan(method, LINE_SCHEMA, cf.GDP(1.0))
    done = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    assert done.plan.sha256 == planned.sha256 and "n" not in done.plan.constants


def test_what_was_drawn_cannot_be_overwritten() -> None:
    method, data = Wavelet("y ~ a", level=2), cf.read(LINE_SCHEMA.sample(30, 1), LINE_SCHEMA)
    done = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    with pytest.raises(ValueError, match="read-only"):
        done["cells"].values[0] = 0
