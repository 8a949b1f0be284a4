"""`cf.voting`: which of two or several levels most records have, in one call; exact chances of error; PATE.

A lower-case name is the call (plan, release, infer), a class the method behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confide._lazy import names

if TYPE_CHECKING:
    from confide.faces.calls.vote_calls import errors, plot_errors, plurality
    from confide.methods.voting.plurality import Plurality
    from confide.methods.voting.teacher_labels import TeacherLabels

    Pate: Any
else:
    _METHODS: Mapping[str, Any] = {
        "Plurality": "confide.methods.voting.plurality",
        "TeacherLabels": "confide.methods.voting.teacher_labels",
        "Pate": "confide.sklearn.pate",
    }
    __getattr__, __dir__ = names(
        __name__,
        {
            **dict.fromkeys(("errors", "plot_errors", "plurality"), "confide.faces.calls.vote_calls"),
            **_METHODS,
        },
    )

__all__ = ["Pate", "Plurality", "TeacherLabels", "errors", "plot_errors", "plurality"]
