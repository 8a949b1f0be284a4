"""What users look at: tables, intervals, tests, plots, the HTML report. Nothing here sees a record."""

from confide.results.contrasts import Combinations
from confide.results.curve import Curve
from confide.results.estimates import Estimates, check_alpha
from confide.results.intervals import Intervals
from confide.results.wald import WaldTest

__all__ = ["Combinations", "Curve", "Estimates", "Intervals", "WaldTest", "check_alpha"]
