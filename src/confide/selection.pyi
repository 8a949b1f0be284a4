"""Private selection: the best of several candidates, in one call. `Select` is the method."""

from collections.abc import Callable

from confide.ask.one_call import one_call
from confide.methods.selection.method import Select as Select, register_loss as register_loss
from confide.results import Estimates

select: Callable[..., Estimates] = one_call(Select, "cf.select", 2)
