"""What the plan of a publication says of lines that share columns: gains that follow from the plans' own noise, and none elsewhere."""

from __future__ import annotations

import re
from math import sqrt
from typing import Any

import pytest

import confide as cf
from confide.core import Plan

pytestmark = pytest.mark.usefixtures("declared")

SSP, Default = cf.regression.SSP, cf.regression.LeastSquares
SCHEMA = cf.Schema({name: cf.Numeric(-1, 1) for name in ("a", "b", "c", "y1", "y2")})


def _plan(**questions: Any) -> Plan:
    return cf.plan(cf.Publication(questions), SCHEMA, cf.GDP(1.0))


def _ratios(note: str, names: str) -> list[float]:
    return [float(re.findall(rf"\b{name} (\d\.\d+)", note)[0]) for name in names]


def _noise(method: Any, mu: float) -> float:
    """Noise sd of the moments in units of a record's own, times what a coefficient makes of it."""
    layout = method._layout(SCHEMA)
    spend = cf.plan(method, SCHEMA, cf.GDP(mu)).spend("far moments" if layout.recentring else "moments")
    assert spend.noise_sd is not None
    bound = layout.cap + layout.g2
    return float(spend.noise_sd / float(spend.sensitivity) * bound * sqrt(1 / layout.g2 + 0.5))


def test_nested_models_of_one_matrix_have_the_noise_that_the_note_says() -> None:
    small, large = SSP("y1 ~ a", recenter=False), SSP("y1 ~ a + b + c", recenter=False)
    plan = _plan(p=small, q=large)
    (note,) = (note for note in plan.notes if "drawn separately" in note)
    assert "'y1 ~ a + b + c'" in note and "equal residual variances" in note
    whole = _noise(large, 1.0)
    apart = [_noise(one, sqrt(0.5)) for one in (small, large)]
    assert _ratios(note, "pq") == pytest.approx([(whole / one) ** 2 for one in apart], abs=0.006)
    assert Plan.from_json(plan.to_json()).sha256 == plan.sha256


def test_several_responses_are_one_question() -> None:
    (note,) = (note for note in _plan(p=SSP("y1 ~ a + b"), q=SSP("y2 ~ b + a")).notes if "drawn separately" in note)
    assert "'y1 + y2 ~ a + b'" in note
    one, both = (SSP(f"{left} ~ a + b")._layout(SCHEMA) for left in ("y1", "y1 + y2"))
    alone = 2 * (one.cap + one.g2) ** 2 * (1 / one.g2 + 0.5)
    joint = (both.cap**2 + 4 * both.g2 * both.cap + 2 * both.g2**2) * (1 / both.g2 + 0.5)
    assert _ratios(note, "pq") == pytest.approx([joint / alone] * 2, abs=0.006)


def test_the_default_says_what_its_terms_cost() -> None:
    """13% tell of the terms alone, so that two lines could gain 1 - sqrt(.87/.935), some four per cent."""
    (note,) = (
        note for note in _plan(p=Default("y1 ~ a + b"), q=Default("y2 ~ b + a")).notes if "drawn separately" in note
    )
    assert "Of the budget of each, 13% is for the terms alone" in note and "at most 4% off" in note


@pytest.mark.parametrize(
    "questions",
    [
        {"p": SSP("y1 ~ a"), "q": SSP("y2 ~ b + c")},
        {"p": SSP("y1 ~ a", where="b > 0"), "q": SSP("y2 ~ a")},
        {"p": SSP("y1 ~ a", cov="classical"), "q": SSP("y2 ~ a")},
        {"p": Default("y1 ~ a"), "q": Default("y2 ~ b")},
    ],
)
def test_others_are_left_alone(questions: dict[str, Any]) -> None:
    assert not [note for note in _plan(**questions).notes if "drawn separately" in note]
