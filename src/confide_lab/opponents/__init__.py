"""Private methods that a method of the library was measured against and that lost: plain functions of arrays, for comparison only.

Each is called as f(x, y, rng, **settings) -> dict and carries `claim`, `guarantee` (None: nothing here is for releasing) and `errata` (why
it is no method of the library). What a run spends stands in its answer as `spends`, so that the comparison at equal mu can be checked.
"""
