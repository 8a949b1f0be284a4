from __future__ import annotations

import pytest
from tests.results.results_examples import Maker, build


@pytest.fixture
def make() -> Maker:
    return build
