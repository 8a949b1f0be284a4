"""The special functions that are used here, without the rest of `scipy.special`, which takes seven times as long to load.

They are SciPy's own compiled functions, the same objects. Where a version of SciPy keeps them elsewhere, they come from its front.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from confide._helpers import opened

if TYPE_CHECKING:
    from scipy.special import (
        bdtrc,
        betainc,
        betaincinv,
        chdtrc,
        chdtri,
        chndtr,
        chndtrinc,
        erfcx,
        erfinv,
        expit,
        fdtrc,
        gammainc,
        gammaincc,
        gammaincinv,
        gammaln,
        kolmogi,
        kve,
        log1p,
        log_expit,
        log_ndtr,
        ndtr,
        ndtri,
        ndtri_exp,
        stdtr,
        stdtrit,
        xlog1py,
        xlogy,
    )

__all__ = [
    "bdtrc",
    "betainc",
    "betaincinv",
    "chdtrc",
    "chdtri",
    "chndtr",
    "chndtrinc",
    "erfcx",
    "erfinv",
    "expit",
    "fdtrc",
    "gammainc",
    "gammaincc",
    "gammaincinv",
    "gammaln",
    "kolmogi",
    "kve",
    "log1p",
    "log_expit",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "stdtr",
    "stdtrit",
    "xlog1py",
    "xlogy",
]

if not TYPE_CHECKING:
    opened("scipy.special")
    try:
        # by its full name: `from scipy.special import` would ask the package for it, whose front then loads
        _ufuncs = import_module("scipy.special._ufuncs")
        _found = {name: getattr(_ufuncs, name) for name in __all__}
    except (ImportError, AttributeError):
        import scipy.special

        _found = {name: getattr(scipy.special, name) for name in __all__}
    globals().update(_found)
