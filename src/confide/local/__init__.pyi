"""The other trust: a table is protected before anyone sees it, and analysed from the protected records alone.

`cf.local` is this room: `protect` writes a table in which every row carries noise of its own, `fit` needs that table and nothing else.
The calls that read records stand in `confide.ask.local`, as those of every family do.
"""

from confide.ask.local import Releaser as Releaser, plan as plan, protect as protect
from confide.local.estimates import (
    ProtectedEstimates as ProtectedEstimates,
    ProtectedShares as ProtectedShares,
    fit as fit,
    mean as mean,
    shares as shares,
)
from confide.local.files import read as read
from confide.local.fits.losses import OwnLoss as OwnLoss
from confide.local.noise_levels import Noised as Noised, ProtectedColumn as ProtectedColumn, Protection as Protection
