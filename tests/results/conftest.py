from __future__ import annotations

import pytest
from results_examples import Maker, build


@pytest.fixture
def make() -> Maker:
    return build
