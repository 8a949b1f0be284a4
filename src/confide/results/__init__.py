"""What users look at: tables, intervals, tests, plots, the HTML report. Nothing here sees a record."""

from confide.results.estimates import Estimates, check_alpha
from confide.results.intervals import Intervals
from confide.results.wald import WaldTest

__all__ = ["Estimates", "Intervals", "WaldTest", "check_alpha"]
