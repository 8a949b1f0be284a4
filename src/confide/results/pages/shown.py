"""What a result says of itself: the fields that all have, what a family gives, its columns; the renderers read this and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.protocol import STATUSES, Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ANSWERED", "Column", "Shown", "check_alpha", "check_names", "level_heads"]

#: What a column holds. "name": names of the rows, the index of the frame; "text": labels; "number": public numbers, such as points;
#: "estimate"; "std_err"; "interval": an end of one, infinite where it is open; "statistic"; "p"; "share": a part, printed in per cent.
KINDS = ("name", "text", "number", "estimate", "std_err", "interval", "statistic", "p", "share")

# The statuses at which there are intervals.
ANSWERED = ("ok", "partial")


@dataclass(frozen=True)
class Column:
    """One column of a table: what it is called in the frame, its values, their kind (`KINDS`), its printed head.

    words: how to read it, for the page, where the kind does not say it all; printed: False for what stands in the frame alone. Standard
    errors and ends of intervals belong to the estimate before them and are printed with as many digits as its standard error deserves.
    """

    name: str
    values: Sequence[Any] | np.ndarray[Any, Any]
    kind: str = "estimate"
    head: str | None = None
    words: str = ""
    printed: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PlanError(f"the kind of column {self.name!r} must be one of {', '.join(KINDS)}, got {self.kind!r}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shown:
    """What every result says of itself.

    method: name and version; response: what the table is about ("" when nothing fits); status and reason ("" when ok); flags; the
    requested and the guarantee of the release, both with their relation; target: what is estimated; covers: what the intervals account
    for; facts: further lines of the head; legend: what they mean, below the table; heading: what the title adds, where a line is not the
    usual one; kept: which rows of a unit are counted, where the others are left out, which every title says; simulated: whether a seed made
    the noise, which protects nobody; drawn_sha256: the key of the draws that its numbers may need.

    Raises `PlanError` when the parts do not fit each other.
    """

    method: str
    response: str = ""
    status: str = "ok"
    reason: str = ""
    flags: tuple[str, ...] = ()
    requested: Guarantee
    guarantee: Guarantee
    target: str
    covers: str
    release_sha256: str
    drawn_sha256: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    heading: str = ""
    kept: str = ""
    simulated: bool = False

    #: What the family is called, in the title and in JSON.
    family: ClassVar[str] = "estimates"
    #: The level of the intervals where the plan fixed it; a field in families that have one.
    level: ClassVar[float | None] = None
    #: What a row is, such as "quantile": on the axis of the picture, and where a family makes it the head of its names.
    rows_are: ClassVar[str] = ""
    #: What several of them are.
    rows_called: ClassVar[str] = "estimates"
    #: The columns of its frames and files, where columns of the records stand beside them by their own names (`check_names`).
    own_columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self._put("flags", tuple(self.flags))
        for field in ("facts", "legend"):
            self._put(field, tuple((str(label), str(value)) for label, value in getattr(self, field)))
        _check_status(self)
        _check_guarantees(self)

    @property
    def biased(self) -> bool:
        """Whether an estimate has a bound on its bias that is not 0. Override in families that know of such bounds."""
        return False

    def _put(self, field: str, value: Any) -> None:
        """Set a field while the object is made; afterwards it is frozen."""
        object.__setattr__(self, field, value)

    @classmethod
    def of(cls, release: Release, /, **others: Any) -> Self:
        """A result whose method, guarantees, target, covers and digest are the release's own; `others` are further fields, or these."""
        plan = release.plan
        own: dict[str, Any] = {
            "method": f"{plan.method.name} {plan.method.version}",
            "requested": plan.requested,
            "guarantee": release.charged,
            "target": plan.target,
            "covers": plan.covers,
            "release_sha256": release.sha256,
            "drawn_sha256": release.drawn_sha256,
            "simulated": release.simulated,
        }
        given = own | others
        given["target"] = plan.titled(given["target"])
        if plan.where is not None:
            given["facts"] = (*given.get("facts", ()), ("Subgroup", plan.where.strip()))
        return cls(**given)

    # what a family gives --------------------------------------------------------------------------------------------------

    def columns(self, alpha: float) -> Sequence[Column]:
        """The table, with intervals at level 1 - alpha."""
        raise NotImplementedError(f"{type(self).__name__} must give its columns; see confide.results.base")

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        what = f"Private {self.family}" + (f" of {self.response}" if self.response else "")
        return f"{what}: {self.heading}" if self.heading else what

    def head(self) -> Sequence[tuple[str, str]]:
        """Facts above the table, between the status and `facts`."""
        return ()

    def notes(self) -> Sequence[tuple[str, str]]:
        """Lines below the table, before `legend`."""
        return ()

    def reported(self) -> Sequence[tuple[str, str, str]]:
        """Facts that the page alone has, with words on how to read them ("" for none): what takes a moment to compute, or is missed."""
        return ()

    @property
    def shown(self) -> Sequence[int] | None:
        """Positions of the rows that are printed; None for all of them."""
        return None

    def left_out(self, count: int, shown: int) -> str:
        """What is said where not all rows are printed."""
        return f"{shown:,} of {count:,} {self.rows_called}; all of them: to_frame()"

    def more(self, alpha: float) -> Mapping[str, Any]:
        """Further entries of the JSON: arrays, numbers, text, mappings, lists."""
        return {}

    @property
    def unit(self) -> str:
        """Follows "estimate" on the axis of the picture, such as " in units of income"."""
        return f" in units of {self.response}" if self.response else ""

    @property
    def zero_line(self) -> bool:
        """Whether the picture marks zero: where estimates are effects or differences, not where they are levels."""
        return True

    def draw(self, ax: Axes, alpha: float) -> None:
        """A picture of the family's own, on `ax`. Where it is not written, `plot` draws each row with its interval."""
        raise NotImplementedError

    def picture(self, alpha: float) -> str:
        """How to read the family's own picture, said below it on the page."""
        return ""

    @property
    def picture_size(self) -> tuple[float, float]:
        """Width and height of the family's own picture, in inches."""
        return 6.4, 4.4

    # what all results have ------------------------------------------------------------------------------------------------

    @property
    def relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return str(self.guarantee.relation)

    @property
    def has_intervals(self) -> bool:
        """Whether there are intervals."""
        return self.status in ANSWERED and "no_interval" not in self.flags

    @property
    def status_said(self) -> str:
        """What the status means, as far as intervals go."""
        raise NotImplementedError(f"{type(self).__name__} must be a BaseResult, which says it in words")

    @property
    def _own_picture(self) -> bool:
        """Whether the family draws itself."""
        return type(self).draw is not Shown.draw


def check_names(result: type[Shown], names: Iterable[str]) -> None:
    """Refuse columns of the records that are called as the result's own are: in a frame one would stand in the place of the other.

    names: of the columns that stand in the frame by name. Called where plans are made. Raises `PlanError`.
    """
    for name in names:
        if name in result.own_columns:
            raise PlanError(
                f"the column {name!r} would stand beside the table's own column of this name; call it {f'{name}_'!r}, say, in the data and "
                f"the schema. Taken are: {', '.join(result.own_columns)}"
            )


def check_alpha(alpha: float) -> float:
    """alpha as a float between 0 and 1, or `PlanError`."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise PlanError(f"alpha must be a number between 0 and 1, got {alpha!r}; for 95 % intervals write alpha=0.05")
    return float(alpha)


def level_heads(alpha: float) -> tuple[str, str]:
    """The heads of an interval's ends, as in statsmodels.

    >>> level_heads(0.05)
    ('[0.025', '0.975]')
    """
    return f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]"


def _check_status(result: Shown) -> None:
    if result.status not in STATUSES:
        raise PlanError(
            f"status must be one of {', '.join(STATUSES)}, got {result.status!r}; write status='ok' for valid estimates"
        )
    if bool(result.reason) == (result.status == "ok"):
        raise PlanError(
            f"status {result.status!r} came with the reason {result.reason!r}; write reason='' at status 'ok', "
            "and a reason at every other status"
        )


def _check_guarantees(result: Shown) -> None:
    for field in ("requested", "guarantee"):
        statement = getattr(result, field)
        if not statement.complete:
            raise PlanError(
                f"{field} must have its relation, got {statement}; take it from the plan or the release, "
                "where it has one, or call .resolve('add-remove') on it"
            )
