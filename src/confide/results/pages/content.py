"""What a result says of itself: the fields that all have, what a family gives, its columns; the renderers read this and nothing else.

What a status, a flag and a relation mean, in plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide import _docs
from confide._helpers import clean, is_flag, severity, status_severity
from confide.core import STATUSES, Release
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.schema import Categorical, ModelMatrix
from confide.schema.columns import Column as SchemaColumn
from confide.schema.formulas.terms import Indicator, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: What a column holds. "name": names of the rows, the index of the frame; "text": labels; "number": public numbers, such as points;
#: "estimate"; "std_err"; "interval": an end of one, infinite where it is open; "statistic"; "p"; "share": a part, printed in per cent.
KINDS = ("name", "text", "number", "estimate", "std_err", "interval", "statistic", "p", "share")

#: What intervals are about, in one line: a population that the records are a sample of, or these records.
INTERVALS_FOR = {
    "population": "the population: sampling error and privacy noise",
    "dataset": "exactly these records: privacy noise only, no sampling error",
}

# The statuses at which there are intervals.
ANSWERED = ("valid", "partial")


@dataclass(frozen=True)
class Column:
    """One column of a table: what it is called in the frame, its values, their kind (`KINDS`), its printed head.

    words: how to read it, for the page, where the kind does not say it all; printed: False for what stands in the frame alone; whole:
    whether an estimate and its interval are printed as whole numbers, as counts are. Standard errors and ends of intervals belong to the
    estimate before them and are printed with as many digits as its standard error deserves.
    """

    name: str
    values: Sequence[Any] | np.ndarray[Any, Any]
    kind: str = "estimate"
    head: str | None = None
    words: str = ""
    printed: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PlanError(f"the kind of column {self.name!r} must be one of {', '.join(KINDS)}, got {self.kind!r}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shown:
    """What every result says of itself.

    method: name and version; response: what the table is about ("" when nothing fits); status and reason ("" when ok); flags; the
    requested and the guarantee of the release, both with their relation; target: what is estimated; intervals_for: what the intervals account
    for; facts: further lines of the head; legend: what they mean, below the table; heading: what the title adds, where a line is not the
    usual one; kept: which rows of a unit are counted, where the others are left out, which every title says; simulated: whether a seed made
    the noise, which protects nobody; drawn_sha256: the key of the draws that its numbers may need.

    Raises `PlanError` when the parts do not fit each other.
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
    #: The columns of its frames and files, where columns of the records stand beside them by their own names (`check_names`).
    own_columns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = _docs.of_class(cls)

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
            "intervals_for": plan.intervals_for,
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
        what = f"{self.family[:1].upper()}{self.family[1:]}" + (f" of {self.response}" if self.response else "")
        return f"{what}: {self.heading}" if self.heading else what

    @property
    def published(self) -> str:
        """What may be done with it: the line below every title."""
        return SIMULATED if self.simulated else PUBLISHED

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
        return status_words(self)

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
            f"status must be one of {', '.join(STATUSES)}, got {result.status!r}; write status='valid' for valid estimates"
        )
    if bool(result.reason) == (result.status == "valid"):
        raise PlanError(
            f"status {result.status!r} came with the reason {result.reason!r}; write reason='' at status 'valid', "
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


#: For text in a picture: a name with "$" is a name, not mathematics.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}

# A value that is put in for a missing one is shown as it was declared where the grid moves it by less than this part of the range.
_GRID = 1e-5

PUBLISHED = "Differentially private, may be published"
SIMULATED = "SIMULATED NOISE: protects no one"

STATUS_WORDS = {
    "valid": "the intervals are valid under the assumptions stated here",
    "partial": "the intervals that are printed are valid under the assumptions stated here; the reason says what the others need",
    "imprecise": "the privacy noise is too large beside the signal for intervals; read the estimates as rough",
    "not_identified": "behind the privacy noise the data do not determine the estimates; do not interpret them",
    "declined": "the mechanism declined to answer: there are no estimates, and the release costs its guarantee all the same",
    "failed": "the question failed after its budget was charged: there are no estimates, and that it failed has no guarantee",
    "no_information": "the privacy noise leaves every value possible; the result says nothing about the data",
}

_BIAS = (
    "what is cut or left out may move an estimate by up to a bound; by it the interval is wider at both ends, and t is the estimate moved "
    "towards zero, over the standard error"
)

_SHARE = (
    (
        "Privacy share",
        "the part of the squared half-width of a 95 % interval that sampling alone would not give: privacy noise, and what is allowed for "
        "because of it, as far as noise tells",
    ),
)

#: The statuses at which an estimate means nothing: renderings show dashes in its place, and the plot says why.
WITHOUT_NUMBERS = ("not_identified", "declined", "no_information", "failed")

#: What a model calls its constant; no term of a formula may be called so.
INTERCEPT = "Intercept"


class Flag(str):
    """A flag of a result with what it means: equal to its short name, which is what is compared, printed and written.

    It stands with the method that raises it; those of several families are in `flag_words`.

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


# Of flags that several families raise.
_FLAG_WORDS = {
    "unit_not_enforced": "who a unit is and how many rows it has was declared, and nothing enforces it: a unit with more rows is protected "
    'less than stated; unit=cf.Unit("person_id") in the schema, with the id column of the data, enforces it',
    "contributions_truncated": "a noticeable share of the rows is beyond what their units may count; the "
    "estimates weigh each unit as stated, not "
    "each row",
    "few_independent_units": "the intervals rest on fewer than 40 independent units of equal weight, of "
    "which a sandwich covariance tells little; with "
    "several rows of each unit, rows=1 leaves more",
    "response_clipped": "a noticeable share of the values of the response lay outside its declared bounds and was moved to "
    "them; the estimates describe the clipped response",
    "clipping_not_checked": "it was not checked how many values of the response lay outside its declared bounds and were "
    "moved to them (clipping_check=False)",
    "few_complete_records": "the noisy count of complete records does not stand above its noise; if there are more, look for what "
    "leaves them out: missing values, labels that are no levels, decimal commas, a column of another kind than declared",
    "se_upper_bound": "the noise of the robust covariance outweighs what it measures; each standard error is an upper bound "
    "(95 %), and the intervals are wider than they need to be",
    "no_interval": "this method gives point estimates alone; no interval is better than a wrong one",
    "conditional_on_reply": "a reply was less likely than 95 %; given that there was one, intervals miss at most 5 % over that "
    "probability",
    "most_blocks_failed": "most blocks failed or were late; the released values say nothing of the question",
    "submodel_classical": "the smaller model's standard errors assume equal residual variances, because the released robust "
    "covariance belongs to the full model",
}


def status_words(result: Shown) -> str:
    """What a result's status means, as far as intervals go."""
    if not result.has_intervals and (
        result.status == "valid" or (result.status == "imprecise" and "no_interval" in result.flags)
    ):
        return "point estimates, without intervals"
    if result.status == "imprecise" and "submodel_points" in result.flags:
        return "point estimates, without intervals: the released robust covariance belongs to the full model"
    if result.status == "imprecise" and result.has_intervals:
        return (
            "the privacy noise is too large beside the signal for normal intervals; read the estimates as rough, and the "
            "intervals with the assumption that they name"
        )
    if result.status == "valid" and result.family == "test":
        return "p-values and intervals are valid under the assumptions stated here"
    return STATUS_WORDS[result.status]


def flag_words(flag: str) -> str:
    """A flag in words: its own, or those of flags that several families raise; another one is shown as it stands.

    >>> flag_words("small_blocks")
    'small blocks'
    """
    return flag.words if isinstance(flag, Flag) else _FLAG_WORDS.get(flag, flag.replace("_", " "))


def relation_words(guarantee: Guarantee) -> str:
    """What the neighbouring relation compares, for the unit that the guarantee protects.

    >>> from confide.guarantees import GDP
    >>> relation_words(GDP(1.0, relation="substitute"))
    'compared are data sets that differ in the values of one record; the number of records is public'
    """
    thing = "one unit with all its rows" if several_rows(guarantee) else f"one {guarantee.unit}"
    if guarantee.unit not in ("record", "attribute"):
        thing, counted = f"{thing} with all its rows", f"number of values of {guarantee.unit}"
        if guarantee.relation == "add-remove":
            return f"compared are data sets that differ by {thing} being there or not; the {counted} is protected too"
        return f"compared are data sets that differ in the rows of {thing}; the {counted} is public"
    if guarantee.relation == "add-remove":
        return (
            f"compared are data sets that differ by {thing} being there or not; the number of records is protected too"
        )
    return f"compared are data sets that differ in the values of {thing}; the number of records is public"


def several_rows(guarantee: Guarantee) -> bool:
    """Whether the guarantee protects all rows of a unit together; plans say so in the assumptions."""
    return any("rows per unit" in assumption for assumption in guarantee.assumptions)


def level_words(alpha: float) -> str:
    """The level of an interval as text.

    >>> level_words(0.05), level_words(0.001)
    ('95 %', '99.9 %')
    """
    return f"{100 * (1 - alpha):.6g} %"


def notes(result: Shown) -> tuple[tuple[str, str], ...]:
    """What stands under every table: status, flags, guarantee and relation, what the intervals cover, the release."""
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
            else f"none at this status; at status valid they account for: {result.intervals_for}",
        ),
        *bias_words(result),
        *(_SHARE if any(column.kind == "share" for column in result.columns(0.5)) else ()),
        *result.notes(),
        *result.legend,
        ("Release SHA", result.release_sha256),
    ]
    return tuple((label, clean(text)) for label, text in lines if text)


#: Of the facts and notes that a family gives, those that stand below every table, and their labels there.
_BRIEF = {
    "Winner": "Winner",
    "P(another leads)": "P(another leads)",
    "Labelled": "Labelled",
    "Failed": "Failed",
    "Selected": "Selected",
    "Prior": "Prior",
    "Made": "Made",
    "Test": "Test",
    "P-value": "P-value",
    "Line": "Line",
    "Null distribution": "p-values",
    "Clipped responses": "Clipped",
    "Missing": "Missing",
    "Compared with": "Reference",
    "No protection at all": "Unprotected",
    "Levels": "Levels",
    "Cells": "Cells",
    "Subgroup": "Subgroup",
}
# Rules for missing values that say which records count; what else is said of missing values stands in the report.
_RULE = ("records with", "a missing", "a row with", "rows with")
_ASSUMED = re.compile(r"\bassumed(?: for [^:]+)?: .*", re.DOTALL)


def brief(result: Shown, *, alone: bool = True) -> tuple[tuple[str, str], ...]:
    """The few notes below a printed table: status, cautions and alarms, what intervals are about, privacy, missing values, release.

    alone: False for one of several tables, which share what is true of their release.
    """
    own = [(label, text) for label, text in (*result.head(), *result.facts, *result.notes(), *result.legend) if text]
    lines = [("Status", _status_line(result)), *_warnings(result, own)]
    if result.has_intervals:
        lines.append(("Intervals for", INTERVALS_FOR.get(result.inference, result.intervals_for)))
    elif result.status == "valid":  # what they are about says here why there is none
        lines.append(("Intervals", result.intervals_for))
    lines += [("Privacy", privacy_line(result))] if alone else []
    for label, text in own:
        if label in _BRIEF:
            parts = [part for part in text.split("; ") if part.startswith(_RULE)] if label == "Missing" else [text]
            lines.append((_BRIEF[label], "; ".join(parts)))
    lines += bias_words(result)
    if alone:
        lines.append(("Release ID", result.release_sha256[:8]))
    return tuple((label, clean(text)) for label, text in lines if text)


def _status_line(result: Shown) -> str:
    """The status, with its reason, or with what is assumed and what intervals would be without it."""
    said = result.status.replace("_", " ")
    if result.reason:
        return f"{said}: {result.reason}"
    if not result.has_intervals:
        return f"{said}: {result.status_said}"
    assumed = _ASSUMED.search(result.intervals_for)
    return said if assumed is None else f"{said}; {assumed[0]}"


def _warnings(result: Shown, own: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Flags of the result and of its rows that are a caution or an alarm, in words."""
    found = [(flag, f"{flag.replace('_', ' ')}: {flag_words(flag)}") for flag in result.flags]
    marks = [str(mark).split() for one in result.columns(0.05) if one.name == "flags" for mark in one.values if mark]
    found += _of_rows(marks, own) if marks else []
    lines = [(severity(flag).capitalize(), words) for flag, words in found]
    return sorted((line for line in lines if line[0] != "Note"), key=lambda line: line[0] != "Alarm")


def _of_rows(marks: Sequence[Sequence[str]], own: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Flags of rows, with how many rows have them, in the words of a family's notes."""
    found = []
    for label, words in own:
        name = label.removeprefix("Flag ")
        rows = sum(name in mark for mark in marks)
        if is_flag(name) and rows:
            found.append((name, f"{name.replace('_', ' ')} ({rows} row{'' if rows == 1 else 's'}): {words}"))
    return found


def box(result: Shown) -> str:
    """How much care a result asks for: "good", "caution" or "alarm", by its status and its flags; notes ask for none."""
    grave = {severity(flag) for flag in result.flags} - {"note"}
    worst = status_severity(result.status)
    if worst == "alarm" or "alarm" in grave:
        return "alarm"
    return "caution" if worst == "caution" or grave else "good"


_KINDS_OF_DP: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (GDP, "Gaussian DP", ("mu",)),
    (PureDP, "pure DP", ("epsilon",)),
    (ZCDP, "zero-concentrated DP", ("rho",)),
    (ApproxDP, "approximate DP", ("epsilon", "delta")),
)


def privacy_line(result: Any) -> str:
    """The guarantee of a release in one line: its kind and numbers, what they imply, whom it protects from what, and what it assumes."""
    guarantee = result.guarantee
    if result.simulated:
        return f"none: the noise is simulated. With secure noise: {guarantee}"
    return _stated(guarantee, result.requested)


def _stated(guarantee: Guarantee, requested: Guarantee) -> str:
    """A guarantee in words: its kind, numbers rounded up, what they imply, one unit and its relation, assumptions."""
    said = str(guarantee)
    for kind, words, fields in _KINDS_OF_DP:
        if type(guarantee) is kind:
            # a bound on a risk is rounded up
            levels = [
                Context(3, ROUND_CEILING).create_decimal(Decimal(repr(getattr(guarantee, one)))) for one in fields
            ]
            said = ", ".join(
                [words, *(f"{one} = {float(level):.3g}" for one, level in zip(fields, levels, strict=True))]
            )
    implied = approx_words(guarantee, requested=requested).removeprefix(", at most (").removesuffix(")")
    if implied:
        epsilon, delta = implied.split(", ")
        said += f" (implies epsilon {float(epsilon):#.3g} at delta {delta})".replace(". at", " at")
    whole = " with all its rows" if guarantee.unit != "record" or several_rows(guarantee) else ""
    said += f", one {guarantee.unit}{whole} "
    said += "added or removed" if guarantee.relation == "add-remove" else "replaced, their number public"
    said += "" if guarantee.trust == "central" else f", {guarantee.trust}"
    return "; ".join([said, *(f"assumes {assumption}" for assumption in guarantee.assumptions)])


def bias_words(result: Shown) -> tuple[tuple[str, str], ...]:
    """What becomes of t and the interval where a bound on a bias is known; none where no estimate has one, or the family knows of none."""
    return (("Bias", _BIAS),) if result.biased and result.has_intervals else ()


def short(name: str, most: int = 28) -> str:
    """A name for an axis; a longer one is cut in the middle, where names of one family differ least."""
    name = clean(name)
    return name if len(name) <= most else f"{name[: most // 2 - 1]}...{name[-(most // 2 - 2) :]}"


def thousands(axis: Any) -> None:
    """Write the numbers of an axis with separators, as tables do."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.6g}")


def missing_words(columns: Mapping[str, SchemaColumn], design: ModelMatrix) -> str:
    """The schema's rules for missing values of the columns that a design uses, which are public. Rules, and no word on records.

    A value that is put in for a missing one is the one that is used, on the column's grid.

    >>> from confide.schema import Design, Integer, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 99), "z": Integer(0, 1, on_missing="midpoint"), "y": Numeric(0, 1)})
    >>> missing_words(schema.columns, Design.of("y ~ age + z", schema))
    'records with missing age or y are left out; a missing z counts as 0'
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
    parts = [f"records with missing {either(dropped)} are left out"] if dropped else []
    parts += [f"a missing {name} counts as {_put_in(used[name])}" for name in used if name not in dropped]
    if any(isinstance(column, Categorical) for column in used.values()):
        parts.append("a label that is not declared counts as missing")
    if derived:
        parts.append("a derived term without a finite value is treated as missing")
    return "; ".join(parts)


def base_words(columns: Mapping[str, SchemaColumn], design: ModelMatrix) -> str:
    """Which level of each categorical column the others are compared with: the one without a term of its own; "" where there is none.

    >>> from confide.schema import Categorical, Design, Numeric, Schema
    >>> schema = Schema({"region": Categorical(["N", "S"]), "y": Numeric(0, 1)})
    >>> base_words(schema.columns, Design.of("y ~ region", schema)), base_words(schema.columns, Design.of("y ~ region - 1", schema))
    ('region: N', '')
    """
    named: dict[str, set[int]] = {}
    for part in (part for term in design.terms for part in term.parts if isinstance(part, Indicator)):
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


def either(names: Sequence[str]) -> str:
    """Names joined by "or"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


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

    requested: what was asked for; where it is that very pair, it is not rounded up beyond it.

    >>> from confide.guarantees import GDP
    >>> approx_words(GDP(1.0))
    ', at most (4.89, 1e-6)'
    """
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return ""
    try:
        epsilon = guarantee.to_approx(delta=delta).epsilon
    except PrivacyError:
        return ""
    if isinstance(requested, ApproxDP) and requested.delta == delta and abs(epsilon / requested.epsilon - 1) < 1e-6:
        return f", at most ({requested.epsilon:g}, {delta:.0e})".replace("e-0", "e-")
    rounded = float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(repr(epsilon))))
    return f", at most ({rounded:.3g}, {delta:.0e})".replace("e-0", "e-")
