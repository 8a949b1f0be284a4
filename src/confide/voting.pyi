"""`cf.voting`: the level that most records have, in one call; exact probabilities of error; labels by teachers (PATE).

A lower-case name plans, releases and infers in one call. A class is the method.
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
