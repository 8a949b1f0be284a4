"""The publication is a registered method, from its entry point or, in a checkout that was not installed anew, from here."""

from __future__ import annotations

import confide as cf
from confide import registry

if "publication" not in registry.known():
    registry.register(cf.Publication)
