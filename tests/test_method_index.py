"""The index of methods: what it says is what the classes say, and nothing is loaded to list them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from confide import registry


@pytest.mark.parametrize("package", ["confide", "confide_lab"])
def test_the_index_says_what_the_classes_say(package: str) -> None:
    """With `CONFIDE_RECORD=1` it is written anew."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    place = Path(spec.origin).with_name(registry.INDEX)
    own = [name for name, point in registry._installed().items() if point.module.partition(".")[0] == package]
    facts = {name: registry.facts_of(registry.get(name)) for name in sorted(own)}
    text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("CONFIDE_RECORD"):
        place.write_text(text, encoding="utf-8")
    assert place.read_text(encoding="utf-8") == text


def test_listing_methods_loads_none() -> None:
    code = (
        "import sys; from confide import registry; found = registry.list_methods(); assert len(found) > 30; "
        "print([name for name in sys.modules if name.startswith(('confide.methods.', 'confide_lab'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
