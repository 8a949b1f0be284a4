"""What a result says of itself: the fields that all have, what a family gives, its columns; the renderers read this and nothing else.

What a status, a flag and a relation mean, in plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide import _docs
from confide._helpers import clean, flag_definition, flag_letter, is_flag, severity, status_severity
from confide.core import STATUSES, Release
from confide.core.lost_values import HARDLY_READ
from confide.core.plan import INTERVALS_FOR
from confide.core.ranges import ColumnRange
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.conversion import implied_pair, kind_words
from confide.schema import Categorical, ModelMatrix
from confide.schema.columns import Column as SchemaColumn
from confide.schema.formulas.names import level_text
from confide.schema.formulas.terms import Indicator, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: What a column holds. "name": names of the rows, the index of the frame; "text": labels; "number": public numbers, such as points;
#: "estimate"; "std_err"; "interval": an end of one, infinite where it is open; "statistic"; "p"; "share": a part, printed in per cent.
KINDS = ("name", "text", "number", "estimate", "std_err", "interval", "statistic", "p", "share")

# The statuses at which there are intervals.
ANSWERED = ("valid", "partial")


@dataclass(frozen=True)
class Column:
    """One column of a table: what it is called in the frame, its values, their kind (`KINDS`), its printed head.

    words: how to read it, on the page, if the kind does not say it; printed: False for a column of the frame only; whole: whether an
    estimate and its interval are printed as whole numbers, as counts are. Standard errors and ends of intervals belong to the estimate
    before them, and are printed to two figures of its standard error. percent: whether they are printed as percentages, as shares are.
    """

    name: str
    values: Sequence[Any] | np.ndarray[Any, Any]
    kind: str = "estimate"
    head: str | None = None
    words: str = ""
    printed: bool = True
    whole: bool = False
    percent: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PlanError(f"the kind of column {self.name!r} must be one of {', '.join(KINDS)}, got {self.kind!r}")


@dataclass(frozen=True)
class Look:
    """What a reader wants of a picture. kind: one of the family's `pictures`, "" for the first; title and labels: in place of its own;
    edges: of the classes of a histogram; of: the variable that is drawn.
    """

    kind: str = ""
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    of: str | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shown:
    """What every result says of itself.

    method: name and version; response: what the table is about; status and its reason, "" if valid; flags; requested and guarantee: both
    with their relation; target: the estimand; intervals_for: the inference target in words. facts: further lines; legend: what they mean;
    heading: an addition to the title; kept: which rows of a unit count, if not all; simulated: whether the noise is simulated and protects
    no one; drawn_sha256: the key of further draws of the result. Raises `PlanError` when the parts do not agree.
    """

    method: str
    response: str = ""
    status: str = "valid"
    reason: str = ""
    flags: tuple[str, ...] = ()
    requested: Guarantee
    guarantee: Guarantee
    target: str
    intervals_for: str
    release_sha256: str
    drawn_sha256: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    heading: str = ""
    kept: str = ""
    simulated: bool = False
    ranges: Mapping[str, ColumnRange] = field(default_factory=dict)

    #: What the family is called, in the title and in JSON.
    family: ClassVar[str] = "estimates"
    #: The level of the intervals where the plan fixed it; a field in families that have one.
    level: ClassVar[float | None] = None
    #: What a row is, such as "quantile": on the axis of the picture, and where a family makes it the head of its names.
    rows_are: ClassVar[str] = ""
    #: What several of them are.
    rows_called: ClassVar[str] = "estimates"
    #: What its intervals are about, where that is all records of these two (`INTERVALS_FOR`); a field in families that are read both ways.
    inference: ClassVar[str] = ""
    #: The kinds of its picture, the usual one first.
    pictures: ClassVar[tuple[str, ...]] = ("forest",)
    #: What a reader wants of its picture; `plot` sets it on a copy.
    look: ClassVar[Look] = Look()
    #: The columns of its frames and files, where columns of the records stand beside them by their own names (`check_names`).
    own_columns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = _docs.of_class(cls)

    def __post_init__(self) -> None:
        self._put("flags", tuple(self.flags))
        for name in ("facts", "legend"):
            self._put(name, tuple((str(label), str(value)) for label, value in getattr(self, name)))
        _check_status(self)
        _check_guarantees(self)

    def withheld(self, status: str, reason: str) -> Self:
        """The result at a status without intervals. Override where its numbers must go with them."""
        return replace(self, status=status, reason=reason)

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
            "intervals_for": plan.intervals_for,
            "release_sha256": release.sha256,
            "drawn_sha256": release.drawn_sha256,
            "simulated": release.simulated,
            "ranges": release.ranges,
        }
        given = own | others
        given["target"] = plan.titled(given["target"])
        given["legend"] = (*given.get("legend", ()), *ranges_told(release))
        if plan.where is not None:
            given["facts"] = (*given.get("facts", ()), ("Subgroup", plan.where.strip()))
        if plan.asked.derive:
            given["facts"] = (*given.get("facts", ()), ("Derived", _definitions(plan)))
        return cls(**given)

    # what a family gives --------------------------------------------------------------------------------------------------

    def columns(self, alpha: float) -> Sequence[Column]:
        """The table, with intervals at level 1 - alpha."""
        raise NotImplementedError(f"{type(self).__name__} must give its columns; see confide.results.base")

    def printed(self, alpha: float) -> Sequence[Column]:
        """The columns that are printed, where a family prints others than its frame has."""
        return self.columns(alpha)

    def crossed(self, alpha: float) -> Sequence[Any] | None:
        """The printed columns of a table of two factors, crossed; None for one row for each number."""
        return None

    def line(self, alpha: float) -> str:
        """A sentence below the rows, such as a test's statistic with its p-value."""
        return ""

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        what = f"{self.family[:1].upper()}{self.family[1:]}" + (f" of {self.response}" if self.response else "")
        return f"{what}: {self.heading}" if self.heading else what

    @property
    def coded(self) -> str:
        """What follows the title where columns are clipped to ranges that were found."""
        return "".join(f", {name} {own.named}" for name, own in self.ranges.items() if own.clips)

    @property
    def published(self) -> str:
        """What may be done with it: the line below every title."""
        return SIMULATED if self.simulated else PUBLISHED

    def head(self) -> Sequence[tuple[str, str]]:
        """Facts above the table, between the status and `facts`."""
        return ()

    def notes(self) -> Sequence[tuple[str, str]]:
        """Lines below the table, after `legend`."""
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
    def axis(self) -> str:
        """What the estimates are, on the axis of the picture, such as "difference in income"."""
        return f"estimate, in units of {self.response}" if self.response else "estimate"

    @property
    def ratio_name(self) -> str:
        """What exp of an estimate is, such as "odds ratio", where the picture shows it; "" otherwise."""
        return ""

    @property
    def in_picture(self) -> Sequence[int] | None:
        """Positions of the rows that the picture shows; None for all but the intercept."""
        return None

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
    def picture_title(self) -> str:
        """The title of the picture."""
        return self.title

    @property
    def picture_size(self) -> tuple[float, float]:
        """Width and height of the family's own picture, in inches."""
        return 6.4, 4.4

    # what all results have ------------------------------------------------------------------------------------------------

    @property
    def relation(self) -> str:
        """The neighboring relation of the guarantee."""
        return str(self.guarantee.relation)

    @property
    def has_intervals(self) -> bool:
        """Whether there are intervals."""
        return self.status in ANSWERED and "no_interval" not in self.flags

    @property
    def partly_read(self) -> bool:
        """Whether it is imprecise because many cells were not read, and not because of noise."""
        return self.status == "imprecise" and HARDLY_READ in self.reason

    @property
    def status_said(self) -> str:
        """What the status means for the intervals."""
        return status_words(self)

    @property
    def _own_picture(self) -> bool:
        """Whether the family draws itself."""
        return type(self).draw is not Shown.draw


def ranges_told(release: Release) -> tuple[tuple[str, str], ...]:
    """The facts of columns that are clipped to ranges that the release found."""
    clipped = {name: own for name, own in release.ranges.items() if own.clips}
    if not clipped:
        return ()
    told = "; ".join(f"{name} {own.named}, {own.share}" for name, own in clipped.items())
    return (
        ("Ranges", f"{told}. A value beyond counts as the nearest end; figures of the unclipped columns may differ"),
    )


def check_names(result: type[Shown], names: Iterable[str]) -> None:
    """Refuse columns of the records with the name of a column of the result, because a frame has each name once.

    names: of the columns of the records in the frame. Called when plans are made. Raises `PlanError`.
    """
    for name in names:
        if name in result.own_columns:
            raise PlanError(
                f"the column {name!r} has the name of a column of the table",
                f"call it {f'{name}_'!r}, say, in the data and the schema. Taken are: {', '.join(result.own_columns)}",
            )


def check_alpha(alpha: float) -> float:
    """Check that alpha is a number between 0 and 1.

    Parameters
    ----------
    alpha : float
        One minus the level of an interval.

    Returns
    -------
    float
        The same number.

    Raises
    ------
    PlanError
        It is not a number between 0 and 1.

    Examples
    --------
    >>> check_alpha(0.05)
    0.05
    """
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise PlanError(f"alpha must be a number between 0 and 1, got {alpha!r}; for 95% intervals write alpha=0.05")
    return float(alpha)


def check_simultaneous(simultaneous: object) -> bool:
    """Refuse what is not True or False: "no" is a text, and texts count as true.

    >>> check_simultaneous(True)
    True
    """
    if not isinstance(simultaneous, (bool, np.bool_)):
        raise PlanError(
            f"simultaneous must be True or False, got {simultaneous!r}", "write conf_int(simultaneous=True)"
        )
    return bool(simultaneous)


def _check_status(result: Shown) -> None:
    if result.status not in STATUSES:
        raise PlanError(
            f"status must be one of {', '.join(STATUSES)}, got {result.status!r}",
            "write status='valid' for valid estimates",
        )
    if bool(result.reason) == (result.status == "valid"):
        raise PlanError(
            f"status {result.status!r} came with the reason {result.reason!r}",
            "write reason='' at status 'valid', and a reason at every other status",
        )


def _check_guarantees(result: Shown) -> None:
    for name in ("requested", "guarantee"):
        statement = getattr(result, name)
        if not statement.complete:
            raise PlanError(
                f"{name} must have its relation, got {statement}",
                "take it from the plan or the release, where it has one, or call .resolve('add-remove') on it",
            )


#: For text in a picture: a name with "$" is a name, not mathematics.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}

# A value that replaces a missing one is shown as it was declared if the grid moves it by less than this part of the range.
_GRID = 1e-5

PUBLISHED = "Differentially private, may be published"
UNCHARGED = "Differentially private, charged to no ledger"
SIMULATED = "SIMULATED NOISE: protects no one"

_PARTLY = "any intervals are for the cells that were read"
STATUS_WORDS = {
    "valid": "the intervals are valid under the stated assumptions",
    "partial": "the printed intervals are valid under the stated assumptions; the reason says what the others need",
    "imprecise": "the privacy noise is too large for valid intervals; the estimates are rough figures",
    "not_identified": "the noisy statistics do not determine the estimates, which are withheld",
    "declined": "the mechanism declined to answer, as its guarantee allows; there are no estimates",
    "failed": "the computation failed; there are no estimates, and no guarantee covers the failure",
    "no_information": "after noise, every value within the bounds is possible; the result says nothing about the data",
}

_BIAS = "clipping and exclusions may bias estimates: intervals are wider by a bound, and t is the estimate less that bound, over std. err."

_SHARE = (
    (
        "Privacy share",
        "the part of the squared margin of error that is privacy noise, with the allowances that the noise makes necessary; the rest is "
        "sampling error",
    ),
)

#: The statuses at which an estimate means nothing: renderings show dashes in its place, and the plot says why.
WITHOUT_NUMBERS = ("not_identified", "declined", "no_information", "failed")

#: What a model calls its constant; no term of a formula may be called so.
INTERCEPT = "Intercept"


class Flag(str):
    """A flag of a result with what it means: equal to its short name, which is what is compared, printed and written.

    It is defined with the method that raises it; the glossary has the words of all others.

    >>> short = Flag("short", "fewer records than planned")
    >>> short in ("short",), flag_words(short)
    (True, 'fewer records than planned')
    """

    words: str

    def __new__(cls, name: str, words: str) -> Flag:
        made = super().__new__(cls, name)
        made.words = words
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.words


def status_words(result: Shown) -> str:
    """What a result's status means for its intervals."""
    if result.partly_read:
        return f"{_PARTLY}, and many were not"
    if not result.has_intervals and (
        result.status == "valid" or (result.status == "imprecise" and "no_interval" in result.flags)
    ):
        return "point estimates, without intervals"
    if result.status == "imprecise" and "submodel_points" in result.flags:
        return "point estimates, without intervals: the released robust covariance belongs to the full model"
    if result.status == "imprecise" and result.has_intervals:
        return (
            "the privacy noise is too large for normal intervals; the estimates are rough figures, and the intervals need the stated "
            "assumption"
        )
    if result.status == "valid" and result.family == "test":
        return "p-values and intervals are valid under the stated assumptions"
    return STATUS_WORDS[result.status]


def flag_words(flag: str) -> str:
    """The text of a flag: its own, else those of the glossary; of a flag that has none, its name.

    >>> flag_words("no_interval"), flag_words("small_blocks")
    ('The method gives estimates without intervals.', 'small blocks')
    """
    if isinstance(flag, Flag):
        return flag.words
    return flag_definition(flag) if is_flag(flag) else flag.replace("_", " ")


def relation_words(guarantee: Guarantee) -> str:
    """What the neighboring relation compares, for the unit that the guarantee protects.

    >>> from confide.guarantees import GDP
    >>> relation_words(GDP(1.0, relation="substitute"))
    'neighboring datasets differ in the values of one record; the number of records is public'
    """
    thing = "one unit with all its rows" if several_rows(guarantee) else f"one {guarantee.unit}"
    if guarantee.unit not in ("record", "attribute"):
        thing, counted = f"{thing} with all its rows", f"number of values of {guarantee.unit}"
        if guarantee.relation == "add-remove":
            return f"neighboring datasets differ by {thing}, added or removed; the {counted} is protected too"
        return f"neighboring datasets differ in the rows of {thing}; the {counted} is public"
    if guarantee.relation == "add-remove":
        return f"neighboring datasets differ by {thing}, added or removed; the number of records is protected too"
    return f"neighboring datasets differ in the values of {thing}; the number of records is public"


def several_rows(guarantee: Guarantee) -> bool:
    """Whether the guarantee protects all rows of a unit together; plans say so in the assumptions."""
    return any("rows per unit" in assumption for assumption in guarantee.assumptions)


def level_words(alpha: float) -> str:
    """The level of an interval as text.

    >>> level_words(0.05), level_words(0.001)
    ('95%', '99.9%')
    """
    return f"{100 * (1 - alpha):.6g}%"


def notes(result: Shown) -> tuple[tuple[str, str], ...]:
    """All notes of a result: status, flags, guarantee and relation, the inference target, the release."""
    status = f"{result.status}: {result.status_said}"
    lines = [("Status", status)]
    if result.reason:
        lines.append(("Reason", result.reason))
    lines += [("Flag", f"{flag}: {flag_words(flag)}") for flag in result.flags]
    lines += [
        ("Guarantee", _guarantee_words(result)),
        ("Relation", f"{result.relation}: {relation_words(result.guarantee)}"),
    ]
    if result.guarantee.assumptions:
        lines.append(("Assumes", "; ".join(result.guarantee.assumptions)))
    lines += [
        ("Estimated", result.target),
        (
            "Intervals",
            result.intervals_for
            if result.has_intervals or result.status == "valid"
            else f"{_PARTLY if result.partly_read else 'none at this status'}; at status valid they account for: {result.intervals_for}",
        ),
        *bias_words(result),
        *(_SHARE if any(column.kind == "share" for column in result.columns(0.5)) else ()),
        *result.notes(),
        *result.legend,
        ("Release SHA", result.release_sha256),
    ]
    return tuple((label, clean(level_text(text))) for label, text in lines if text)


def _definitions(plan: Any) -> str:
    """How the derived columns that a plan names follow from others; nothing where it names none."""
    from confide.schema.derive import named_in  # here, because schemas without derived columns need not load it

    found = named_in(plan.asked, (plan.method.parameters, plan.where))
    return "; ".join(f"{own.name} is {own.text}" for own in found)


#: Of the facts and notes that a family gives, those below every printed table, and their labels there.
_BRIEF = {
    "Winner": "Winner",
    "P(another leads)": "P(another leads)",
    "Labelled": "Labelled",
    "Failed": "Failed",
    "Selected": "Selected",
    "Prior": "Prior",
    "Made": "Made",
    "Line": "Line",
    "Clipped": "Clipped",
    "Unread values": "Unread values",
    "Every number": "Status",
    "Missing": "Missing",
    "n/a": "n/a",
    "Compared with": "Reference",
    "No protection at all": "Unprotected",
    "Levels": "Levels",
    "Cells": "Cells",
    "Ranges": "Ranges",
    "Subgroup": "Subgroup",
    "Derived": "Derived",
}
# Notes below a table, and characters of a note of two lines.
_MOST, _TWO_LINES = 6, 125
# Rules for missing values that say which records count; the report has the rest.
_RULE = ("records with", "a missing", "a row with", "rows with", "without a value")
_ASSUMED = re.compile(r"\bassumed(?: for [^:]+)?: .*", re.DOTALL)
_WITHOUT = re.compile(r"^assumed: ([^;]+); (without it, [^;]+)$")


def brief(result: Shown, *, alone: bool = True, whole: bool = False) -> tuple[tuple[str, str], ...]:
    """The few notes below a printed table: status, cautions and alarms, what intervals are about, privacy, missing values, release.

    Of more than six, flags of rows of one severity are joined, and the least severe notes are left to the long form. `alone`: False for one
    of several tables, which share what is true of their release and of most tables. `whole`: all of them, each in its own line.
    """
    lines = _lines(result, alone)
    if whole or len(lines) <= _MOST:
        return lines
    # shares that are not worth a flag are the first to go
    quiet = () if "values_clipped" in result.flags else ("Clipped",)
    if sum(label not in quiet for label, _ in lines) > _MOST:
        lines = _lines(result, alone, joined=True)
    # the levels that rows are compared with say more than a bound that is in the intervals
    order = (*quiet, "Missing", "Bias", "Reference", "Caution")
    spare = [line for label in order for line in reversed(lines) if line[0] == label]
    left = spare[: max(len(lines) - _MOST, 0)]
    *kept, (label, text) = (line for line in lines if line not in left)
    more = f" ({len(left)} more note{'s' * (len(left) > 1)}: summary(verbose=True))" if left else ""
    return (*kept, (label, text + more))


def _lines(result: Shown, alone: bool, *, joined: bool = False) -> tuple[tuple[str, str], ...]:
    """All of these notes. joined: with flags of rows of one severity in one line, by their terms."""
    own = [(label, text) for label, text in (*result.head(), *result.facts, *result.legend, *result.notes()) if text]
    said = _status_line(result)
    lines = [("Status", said)] if alone or said != "valid" else []
    lines += _warnings(result, joined=joined)
    if result.has_intervals and (alone or result.inference != "population"):
        lines.append(("Intervals for", INTERVALS_FOR.get(result.inference, result.intervals_for)))
    elif not result.has_intervals and result.status == "valid":  # what they are about says here why there is none
        lines.append(("Intervals", result.intervals_for))
    lines += [("Privacy", privacy_line(result))] if alone else []
    for label, text in own:
        if label in _BRIEF and (alone or label != "Every number"):
            parts = [part for part in text.split("; ") if part.startswith(_RULE)] if label == "Missing" else [text]
            if label == "Derived" and len(text) > _TWO_LINES:
                names = [part.partition(" is ")[0] for part in text.split("; ") if " is " in part]
                parts = [f"{', '.join(names)} (how: summary(verbose=True))"]
            at = next((place for place, line in enumerate(lines) if line[0] == _BRIEF[label]), len(lines))
            lines[at : at + 1] = [(_BRIEF[label], "; ".join([*(text for _, text in lines[at : at + 1]), *parts]))]
    lines += bias_words(result)
    if alone:
        lines.append(("Release ID", result.release_sha256[:8]))
    return tuple((label, clean(level_text(text))) for label, text in lines if text)


def _status_line(result: Shown) -> str:
    """The status, with its reason, or with what is assumed and what intervals would be without it."""
    said = result.status.replace("_", " ")
    rough = result.status == "imprecise" and not result.partly_read
    if result.reason and rough and not result.has_intervals and result.family != "test":
        return f"{said}: {result.reason}. The estimates are rough figures, without intervals"
    if result.reason:
        return f"{said}: {result.reason}"
    if not result.has_intervals:
        return f"{said}: {result.status_said}"
    assumed = _ASSUMED.search(result.intervals_for)
    return said if assumed is None else f"{said}; " + _WITHOUT.sub(r"assumes that \1 (\2)", assumed[0])


def _warnings(result: Shown, *, joined: bool = False) -> list[tuple[str, str]]:
    """Flags of the result and of its rows that are a caution or an alarm, in words."""
    found = [(severity(flag), f"{flag.replace('_', ' ')}: {flag_words(flag)}") for flag in result.flags]
    found += row_flags(result, joined=joined)
    lines = [(grave.capitalize(), words) for grave, words in found]
    return sorted((line for line in lines if line[0] != "Note"), key=lambda line: line[0] != "Alarm")


def row_flags(result: Shown, *, joined: bool) -> list[tuple[str, str]]:
    """Flags of rows: their severities, and letter, name, number of rows and words; joined: those of one severity in one text, in short."""
    found: dict[tuple[str, str], str] = {}
    marks = next((one.values for one in result.columns(0.05) if one.name == "flags"), ("",))
    told = common(marks)
    for name in dict.fromkeys(name for mark in marks for name in str(mark).split()):
        rows, letter = sum(name in str(mark).split() for mark in marks), flag_letter(name)
        lead = name if letter == name or name in told else letter if joined else f"{letter}, {name}"
        lead += f" ({'all ' * (name in told and rows > 1)}{rows} row{'s' * (rows > 1)})"
        words = flag_words(name)
        if joined and (letter != name or severity(name) != "alarm"):
            words = words.partition(",")[0] if letter == name else name.replace("_", " ")
        while len(lead) + len(words) > _TWO_LINES and ". " in words:
            words = words.rpartition(". ")[0]
        words = words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"
        key = severity(name), "" if joined else name
        found[key] = "; ".join([*filter(None, [found.get(key)]), f"{lead}: {words.removesuffix('.')}"])
    return [(grave, words) for (grave, _), words in found.items()]


def flag_notes(marks: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    """Lines with the words of the flags that rows have."""
    return tuple((f"Flag {name}", flag_words(name)) for name in dict.fromkeys(" ".join(map(str, marks)).split()))


def common(marks: Iterable[Any]) -> set[str]:
    """Flags that every row has, which say nothing of one row.

    >>> common(["E noise_dominates", "noise_dominates"])
    {'noise_dominates'}
    """
    return set.intersection(*(set(str(mark).split()) for mark in marks))


def boxed(result: Shown) -> list[tuple[str, str]]:
    """What the box of a page says, in sentences with their labels: status, reason or assumption, cautions and alarms."""
    said = f"{result.status_said[:1].upper()}{result.status_said[1:]}"
    if result.status == "valid" and result.has_intervals and result.inference in INTERVALS_FOR:
        said = f"The intervals are for {INTERVALS_FOR[result.inference]}".replace(": samp", " and include samp")
    lines = [(result.status.replace("_", " ").upper(), said), ("Reason", result.reason)]
    assumed = _ASSUMED.search(result.intervals_for) if result.has_intervals else None
    lines += [] if assumed is None else [("Assumption", assumed[0].removeprefix("assumed: "))]
    lines += _warnings(result)
    return [(clean(label), clean(level_text(text)).removesuffix(".")) for label, text in lines if text]


def box(result: Shown) -> str:
    """How much care a result asks for: "good", "caution" or "alarm", by its status and its flags; notes ask for none."""
    grave, worst = {severity(flag) for flag in result.flags} - {"note"}, status_severity(result.status)
    if worst == "alarm" or "alarm" in grave:
        return "alarm"
    rows = {severity(flag) for mark in _marks(result) for flag in mark} - {"note"}
    return "caution" if worst == "caution" or grave or rows else "good"


def _marks(result: Shown) -> list[list[str]]:
    """The flags of each row that has some."""
    return [str(mark).split() for one in result.columns(0.05) if one.name == "flags" for mark in one.values if mark]


def privacy_line(result: Any) -> str:
    """The guarantee of a release in one line: its kind and numbers, what they imply, whom it protects from what, and what it assumes."""
    guarantee = result.guarantee
    if result.simulated:
        return f"none: the noise is simulated. With secure noise: {guarantee}"
    return _stated(guarantee, result.requested)


def _stated(guarantee: Guarantee, requested: Guarantee) -> str:
    """The words for a guarantee: its kind, numbers rounded up, what they imply, one unit and its relation, assumptions."""
    said = kind_words(guarantee, requested)
    whole = " with all its rows" if guarantee.unit != "record" or several_rows(guarantee) else ""
    said += f", one {guarantee.unit}{whole} "
    said += "added or removed" if guarantee.relation == "add-remove" else "replaced, their number public"
    said += "" if guarantee.trust == "central" else f", {guarantee.trust}"
    return "; ".join([said, *(f"assumes {assumption}" for assumption in guarantee.assumptions)])


def bias_words(result: Shown) -> tuple[tuple[str, str], ...]:
    """What a known bound on a bias does to t and the interval; none without such a bound."""
    return (("Bias", _BIAS),) if result.biased and result.has_intervals else ()


def folded(name: str, width: int = 28) -> str:
    """A name for a picture, over several lines where it is long: folded at words, then after signs, and cut nowhere.

    >>> folded("average income of a household", 16).splitlines()
    ['average income', 'of a household']
    >>> folded("income_of_the_household", 16).splitlines()
    ['income_of_the_', 'household']
    """
    words = [part for word in clean(name).split() for part in _parts(word, width)]
    lines = [""]
    for part, glued in words:
        if len(lines[-1]) + len(part) + (not glued and bool(lines[-1])) > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] += part if glued or not lines[-1] else f" {part}"
    return "\n".join(lines)


def _parts(word: str, width: int) -> list[tuple[str, bool]]:
    """A word in parts that fit a line, each with whether it follows the one before without a blank."""
    if len(word) <= width:
        return [(word, False)]
    parts = [part for one in re.findall(r"[^_.:*/,=-]*[_.:*/,=-]+|[^_.:*/,=-]+", word) for part in wrap(one, width)]
    return [(part, place > 0) for place, part in enumerate(parts)]


def thousands(axis: Any) -> None:
    """Write the numbers of an axis with separators, as tables do."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.6g}")


def missing_words(columns: Mapping[str, SchemaColumn], design: ModelMatrix) -> str:
    """The schema's rules for missing values of the columns that a design uses, which are public. Rules, and no word on records.

    A value that replaces a missing one is the one in use, on the column's grid.

    >>> from confide.schema import Integer, ModelMatrix, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 99), "z": Integer(0, 1, on_missing="midpoint"), "y": Numeric(0, 1)})
    >>> missing_words(schema.columns, ModelMatrix.of("y ~ age + z", schema))
    'records with missing age or y are excluded; a missing z counts as 0'
    """
    derived = any(
        isinstance(part, Value) and part.name not in columns
        for term in (*design.terms, design.response)
        for part in term.parts
    )
    return missing_rules({name: columns[name] for name in design.columns}, derived=derived)


def missing_rules(used: Mapping[str, SchemaColumn], *, derived: bool = False) -> str:
    """The same of columns by name. derived: whether a term of them may have no finite value."""
    dropped = [name for name, column in used.items() if column.on_missing == "drop"]
    parts = [f"records with missing {either(dropped)} are excluded"] if dropped else []
    parts += [f"a missing {name} counts as {_put_in(used[name])}" for name in used if name not in dropped]
    if any(isinstance(column, Categorical) for column in used.values()):
        parts.append("a label that is not declared counts as missing")
    if derived:
        parts.append("a derived term without a finite value is treated as missing")
    return "; ".join(parts)


def base_words(columns: Mapping[str, SchemaColumn], design: ModelMatrix, names: Sequence[str] | None = None) -> str:
    """The reference level of each categorical column: the one without a term; "" where there is none. names: of the terms in use.

    >>> from confide.schema import Categorical, ModelMatrix, Numeric, Schema
    >>> schema = Schema({"region": Categorical(["N", "S"]), "y": Numeric(0, 1)})
    >>> [base_words(schema.columns, ModelMatrix.of(formula, schema)) for formula in ("y ~ region", "y ~ region - 1")]
    ['region: N', '']
    """
    named: dict[str, set[int]] = {}
    terms = [term for term in design.terms if names is None or term.name in names]
    for part in (part for term in terms for part in term.parts if isinstance(part, Indicator)):
        named.setdefault(part.column, set()).add(part.position)
    found = []
    for name, positions in named.items():
        column = columns[name]
        if isinstance(column, Categorical) and 0 not in positions:
            found.append(f"{name}: {column.levels[0]}")
    return "; ".join(found)


def _put_in(column: SchemaColumn) -> str:
    """What a missing value counts as: a level, or the number on the grid."""
    if isinstance(column, Categorical):
        return f"the level {column.on_missing!r}"
    used = float(column.decode(column.missing_code))
    middle = (column.low + column.high) / 2
    wanted = middle if column.on_missing == "midpoint" else float(column.on_missing)
    if abs(used - wanted) > _GRID * (column.high - column.low):
        return f"{used:.12g}"
    return "the midpoint of its bounds" if column.on_missing == "midpoint" else f"{wanted:.12g}"


def either(names: Sequence[str], word: str = "or") -> str:
    """Names joined by "or", or by another word."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _guarantee_words(result: Shown) -> str:
    """What the release states of itself. Whether a ledger was charged for it, a release does not know: `verify` tells."""
    if result.simulated:
        return f"none. {SIMULATED}. With secure noise it would be {result.guarantee}"
    said = f"{result.guarantee}{approx_words(result.guarantee, requested=result.requested)}"
    # what a guarantee assumes stands in a line of its own; it makes no other statement of the same numbers
    if replace(result.requested, assumptions=()) == replace(result.guarantee, assumptions=()):
        return f"{said}; as requested"
    return f"{said}; requested was {result.requested}"


def approx_words(guarantee: Guarantee, delta: float = 1e-6, *, requested: Guarantee | None = None) -> str:
    """What follows as (epsilon, delta), for readers who know that currency; rounded up, empty where it is stated already.

    requested: what was asked for; if it is the same pair, it is not rounded up beyond it.

    >>> from confide.guarantees import GDP
    >>> approx_words(GDP(1.0))
    ', at most (4.89, 1e-6)'
    """
    pair = implied_pair(guarantee, delta, requested=requested)
    return "" if pair is None else f", at most ({pair[0]:g}, {pair[1]:.0e})".replace("e-0", "e-")
