"""What users look at: tables, intervals, tests, plots, the HTML report. Nothing here sees a record."""

from confide.ask.results_file import write_results as write_results
from confide.results.comparison import compare as compare
from confide.results.curve import Curve as Curve
from confide.results.estimates import Estimates as Estimates
from confide.results.inference.contrasts import Combinations as Combinations
from confide.results.inference.wald import WaldTest as WaldTest
from confide.results.pages.content import check_alpha as check_alpha
