"""The other trust: a table is protected before anyone sees it, and analysed from the protected records alone.

`cf.local` is this room: `protect` writes a table in which every row carries noise of its own, `fit` needs that table and nothing else.
The calls that read records stand in `confide.ask.local`, as those of every family do.
"""

from __future__ import annotations

from confide._helpers import names

_FACE = "confide.ask.local"

__getattr__, __dir__ = names(
    __name__,
    {
        "Noised": "confide.local.noise_levels",
        "OwnLoss": "confide.local.fits.losses",
        "Protection": "confide.local.noise_levels",
        "ProtectedEstimates": "confide.local.estimates",
        "Releaser": _FACE,
        "ProtectedShares": "confide.local.estimates",
        "Told": "confide.local.noise_levels",
        "fit": "confide.local.estimates",
        "mean": "confide.local.estimates",
        "plan": _FACE,
        "protect": _FACE,
        "read": "confide.local.files",
        "shares": "confide.local.estimates",
    },
)
