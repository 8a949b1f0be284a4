"""Every registered method gives the numbers that it gave: noisy integers, public numbers, estimates, covariances, plan costs."""

from __future__ import annotations

import json
import re
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest

import confide as cf
import confide_lab
from confide import registry
from confide.core import exact, files
from confide.core.exact import array_from_dict
from tests.golden.golden_cases import CASES, FILE, machine, record, schema_of

KNOWN = json.loads(FILE.read_text())

_MODULE = re.compile(r"\bconfide(?:_lab)?(?:\.\w+)+")
_OURS = {one.name for package in (cf, confide_lab) for one in walk_packages(package.__path__, f"{package.__name__}.")}


def _same(now: dict[str, Any], known: dict[str, Any], name: str = "") -> bool:
    """To the bit on the machine that recorded a case; elsewhere linear algebra may differ in its last bits between rounds."""
    if now == known or machine() == KNOWN.get(name, {}).get("machine", KNOWN["machine"]):
        return now == known
    a, b = (np.asarray(array_from_dict(one), dtype=float) for one in (now, known))
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=1e-6, atol=1e-6 * float(np.abs(b).max(initial=0)), equal_nan=True)
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_seeded_release_is_what_it_was(name: str) -> None:
    now, known = record(name), KNOWN[name]
    for part in ("statistics", "public", "result"):
        assert now[part].keys() == known[part].keys()
        wrong = [key for key in known[part] if not _same(now[part][key], known[part][key], name)]
        assert not wrong, f"{part} of {name} changed: {wrong}"
    for part in ("version", "event", "spends", "cost", "guarantees", "parameters", "status"):
        assert now[part] == known[part], f"{part} of {name} changed"


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_fact_names_a_file_of_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are moved, and what plans and digests say stays: no text that is hashed or written has the path of a module."""
    written: list[str] = []

    def told(value: Any, _whole: Any = exact.canonical_json) -> str:
        written.append(_whole(value))
        return written[-1]

    monkeypatch.setattr(exact, "canonical_json", told)
    monkeypatch.setattr(files, "canonical_json", told)
    method, privacy = CASES[name]
    cf.plan(method, schema_of(method), privacy, n=1500 if method.relations[0] == "substitute" else None).to_json()
    assert written and {path for text in written for path in _MODULE.findall(text) if path in _OURS} == set()


def test_another_thread_pool_is_no_other_machine() -> None:
    before = machine()
    import sklearn.cluster  # brings a pool of its own; the comparison to the bit must not end with it

    assert sklearn.cluster.__name__ and machine() == before


def test_one_step_of_one_noisy_integer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KNOWN, "machine", machine())
    known = KNOWN["ssp"]["statistics"]["re-centred moments"]
    assert _same(known, dict(known))
    assert not _same({**known, "data": [str(int(known["data"][0]) + 1), *known["data"][1:]]}, known)


def test_every_registered_method_has_a_golden_release() -> None:
    # contributions are counted under a schema with a unit: tests/test_unit.py has them
    others = {info.name for info in registry.list_methods()} - {"rows_per_unit_table"}
    assert others <= {name.split()[0] for name in CASES}
