"""What users look at: tables, intervals, tests, plots, the HTML report. Nothing here sees a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._helpers import names

if TYPE_CHECKING:
    from confide.results.curve import Curve
    from confide.results.estimates import Estimates
    from confide.results.inference.contrasts import Combinations
    from confide.results.inference.wald import WaldTest
    from confide.results.pages.content import check_alpha
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Combinations": "confide.results.inference.contrasts",
            "Curve": "confide.results.curve",
            "Estimates": "confide.results.estimates",
            "WaldTest": "confide.results.inference.wald",
            "check_alpha": "confide.results.pages.content",
        },
    )

__all__ = ["Combinations", "Curve", "Estimates", "WaldTest", "check_alpha"]
