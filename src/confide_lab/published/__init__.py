"""Published algorithms to the letter, errors included: plain functions of arrays, for comparison only.

Each is called as f(arrays, rng, **settings) -> dict and carries `claim` (what its authors say), `guarantee` (None: nothing here is for
releasing) and `errata` (what is wrong with the claim). They are no methods, so that no ledger can be charged for them.
"""
