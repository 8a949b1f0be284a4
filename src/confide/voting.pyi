"""`cf.voting`: which of two or several levels most records have, in one call; exact chances of error; PATE.

A lower-case name is the call (plan, release, infer), a class the method behind it.
"""

from collections.abc import Callable

from confide.ask.one_call import one_call
from confide.methods.voting.plurality import (
    Plurality as Plurality,
    PluralityVote,
    Vote,
    errors as errors,
    plot_errors as plot_errors,
)
from confide.methods.voting.teacher_labels import TeacherLabels as TeacherLabels
from confide.sklearn.classifier import Pate as Pate

plurality: Callable[..., PluralityVote | Vote] = one_call(Plurality, "cf.voting.plurality")
