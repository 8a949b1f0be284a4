"""Frames of every registered method have the columns of the glossary, in its order."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import confide as cf
from confide import registry
from confide._helpers import terms
from confide.errors import NoConversion, PrivacyError
from confide.noise import SimulatedNoise
from confide.results.base import BaseResult
from confide.results.pages.table import view
from confide_lab.benchmarks.audit_states import CASES

ORDER = (
    "term", "n", "estimate", "std_err", "statistic", "df", "p_value", "ci_low", "ci_high", "privacy_share", "cv", "flags"
)  # fmt: skip
#: All that the glossary prints above columns.
HEADS = {
    head
    for own in terms().values()
    if own["kind"] == "column"
    for head in (*own["head"].split(", "), *own.get("heads", ()))
}
#: Names of before, and others for the same numbers.
FORBIDDEN = {"name", "se", "low", "high", "p", "t", "flag", "records", "privacy", "overall", "row"}
_PRIVACY = (cf.GDP(4.0), cf.GDP(4.0, 1e-6), cf.ApproxDP(4.0, 1e-6), cf.PureDP(4.0))


def _result(name: str, settings: dict[str, Any], schema: cf.Schema) -> Any:
    """The result of simulated records, under the first guarantee that the method takes."""
    data = cf.read(schema.sample(1_500, seed=1), schema)
    for privacy in _PRIVACY:
        try:
            release = cf.release(registry.get(name)(**settings), data, privacy, ledger=None, noise=SimulatedNoise(1))
        except (NoConversion, PrivacyError):
            continue
        return cf.infer(release)
    raise AssertionError(f"{name} takes none of {_PRIVACY}")


#: One case of each method.
_ONE = {name: case for case, (name, _, _) in reversed(CASES.items())}


@pytest.mark.parametrize("case", _ONE.values(), ids=_ONE)
def test_columns_are_those_of_the_glossary_in_its_order(case: str) -> None:
    name, settings, schema = CASES[case]
    result = _result(name, dict(settings), schema)
    if isinstance(result, BaseResult):
        seen = view(result, 0.05)
        told = zip(seen.columns, seen.heads, strict=True)
        assert {head for one, head in told if one.kind not in ("text", "number", "interval")} <= HEADS
    frame = result.to_frame()
    if not isinstance(frame, pd.DataFrame) or name == "synthetic_table":
        return
    columns = list(map(str, frame.columns))
    own = [column for column in columns if column in ORDER]
    assert own == sorted(own, key=ORDER.index)
    assert frame.index.name in (None, "term", "analysis")
    assert not FORBIDDEN & (set(columns) - set(schema))
