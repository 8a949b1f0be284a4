"""What a release leaves of a state: charged by what remains, not by a number of its own.

>>> from fractions import Fraction
>>> from confide.guarantees import PureDP
>>> state = converted(Fraction(8), Fraction(1, 10**5))
>>> after = remaining(PureDP(0.1), state.r2)
>>> round(float(state.r2 - after.r2), 6), holds(PureDP(0.1), state.r2, after)
(0.010002, True)
"""

from confide.guarantees.remainder.pair_state import Point, converted, pair_divergence, stays
from confide.guarantees.remainder.state import NothingRemains, Remainder, holds, remaining

__all__ = ["NothingRemains", "Point", "Remainder", "converted", "holds", "pair_divergence", "remaining", "stays"]
