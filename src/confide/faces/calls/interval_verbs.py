"""The verbs of `cf.intervals` and what each takes: what calls and the command line share without loading a method."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["VERBS"]

#: What each call takes besides data, column (a formula for slope and difference), privacy, ledger, noise, n, kind and where.
VERBS: Mapping[str, tuple[str, ...]] = {
    "proportion": ("level", "prior"),
    "mean": ("of", "prior"),
    "variance": ("of", "prior"),
    "slope": (),
    "quantile": ("q", "bins"),
    "difference": ("level", "prior"),
}
