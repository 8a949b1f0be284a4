"""The whole suite repeats: drawn examples come from a fixed seed, so that a run on another machine tries the same ones.

``CONFIDE_EXPLORE=1 pytest ...`` draws new examples each time, to look for failures that the fixed ones miss.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.in_place import blocks_in_place as blocks_in_place

# no clock: the first example of a process loads the libraries that it needs, and the machine may be busy
unhurried = settings(print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", unhurried, derandomize=True)
settings.register_profile("explore", unhurried)
settings.load_profile("explore" if os.environ.get("CONFIDE_EXPLORE") else "fixed")
