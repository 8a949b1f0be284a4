"""The other trust: a table is protected before anyone sees it, and analysed from the protected records alone.

`cf.local` is this room: `protect` writes a table in which every row carries noise of its own, `fit` needs that table and nothing else.
The calls that read records stand in `confide.ask.local`, as those of every family do.
"""

from __future__ import annotations

from confide._lazy import names

_FACE = "confide.ask.local"

__getattr__, __dir__ = names(
    __name__,
    {
        "Noised": "confide.local.protection",
        "OwnLoss": "confide.local.fits.own_loss",
        "Protection": "confide.local.protection",
        "ProtectedEstimates": "confide.local.estimates",
        "Releaser": _FACE,
        "ProtectedShares": "confide.local.levels",
        "Told": "confide.local.protection",
        "fit": "confide.local.estimates",
        "mean": "confide.local.functionals",
        "plan": _FACE,
        "protect": _FACE,
        "read": "confide.local.table",
        "shares": "confide.local.levels",
    },
)
