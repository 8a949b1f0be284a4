"""The tests of the adapter run in an environment of their own, beside the polars that `marginaleffects` works with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv-marginaleffects/bin/python"


@pytest.mark.long
@pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv-marginaleffects, which `make docs` makes")
def test_the_adapter_and_the_examples_of_the_package() -> None:
    files = ("tests/test_marginaleffects.py", "tests/test_marginaleffects_examples.py")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and " skipped" not in done.stdout, done.stdout + done.stderr
