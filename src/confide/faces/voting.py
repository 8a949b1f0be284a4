"""`cf.voting`: which of several levels most records have, in one call each; exact chances of error; PATE.

A lower-case name is the call (plan, release, infer), a class the method behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confide._lazy import names

if TYPE_CHECKING:
    from confide.faces.calls.vote_calls import errors, majority, plot_errors, plurality
    from confide.methods.voting.majority import Majority
    from confide.methods.voting.plurality import Plurality
    from confide.methods.voting.teacher_labels import TeacherLabels

    Pate: Any
else:
    _METHODS: Mapping[str, Any] = {
        "Majority": "confide.methods.voting.majority",
        "Plurality": "confide.methods.voting.plurality",
        "TeacherLabels": "confide.methods.voting.teacher_labels",
        "Pate": "confide.sklearn.pate",
    }
    __getattr__, __dir__ = names(
        __name__,
        {
            **dict.fromkeys(("errors", "majority", "plot_errors", "plurality"), "confide.faces.calls.vote_calls"),
            **_METHODS,
        },
    )

__all__ = ["Majority", "Pate", "Plurality", "TeacherLabels", "errors", "majority", "plot_errors", "plurality"]
