"""The local model: each row gets noise before anyone sees it, and analyses use the protected rows alone.

`protect` writes a table of protected rows, and `fit` needs nothing but that table. The calls that read records are in `confide.ask.local`.
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
