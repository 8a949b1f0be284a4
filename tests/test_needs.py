"""A test that the machine cannot run is skipped, or fails where that was asked for."""

from __future__ import annotations

import pytest
from _pytest.outcomes import Failed, Skipped

from tests.needs import NEEDS, pytest_runtest_setup


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server, no programs, no packages."""
    monkeypatch.delenv("CONFIDE_POSTGRES", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("tests.needs.find_spec", lambda name: None)


@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.parametrize(("strict", "ends"), [("1", Failed), ("0", Skipped), (None, Skipped)])
def test_what_is_missing_skips_and_fails_where_strict(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    bare: None,
    name: str,
    strict: str | None,
    ends: type,
) -> None:
    monkeypatch.delenv("CONFIDE_STRICT", raising=False)
    if strict:
        monkeypatch.setenv("CONFIDE_STRICT", strict)
    request.node.add_marker(pytest.mark.needs(name))
    with pytest.raises(ends):
        pytest_runtest_setup(request.node)


def test_what_is_there_runs_where_strict(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFIDE_STRICT", "1")
    monkeypatch.setenv("CONFIDE_POSTGRES", "postgresql://confide@/postgres")
    request.node.add_marker(pytest.mark.needs("PostgreSQL"))
    pytest_runtest_setup(request.node)
