"""The whole suite repeats: drawn examples come from a fixed seed, so that a run on another machine tries the same ones.

``CONFIDE_EXPLORE=1 pytest ...`` draws new examples each time, to look for failures that the fixed ones miss.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, print_blob=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile("explore" if os.environ.get("CONFIDE_EXPLORE") else "fixed")
