"""What a status, a flag and a relation mean, in plain words.

The words are written once, so that the table, the notebook and the report say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, Any

from confide.errors import PrivacyError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.protocol.exact import clean
from confide.schema import Categorical, Design
from confide.schema.columns import Column
from confide.schema.formulas.term import Indicator, Value

if TYPE_CHECKING:
    from confide.results.pages.shown import Shown

__all__ = [
    "INTERCEPT",
    "LITERAL",
    "SIMULATED",
    "STATUS_WORDS",
    "WITHOUT_NUMBERS",
    "Flag",
    "approx_words",
    "base_words",
    "bias_words",
    "clean",
    "either",
    "flag_words",
    "level_words",
    "missing_rules",
    "missing_words",
    "notes",
    "relation_words",
    "several_rows",
    "short",
    "status_words",
    "thousands",
]

#: For text in a picture: a name with "$" is a name, not mathematics.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}

# A value that is put in for a missing one is shown as it was declared where the grid moves it by less than this part of the range.
_GRID = 1e-5

SIMULATED = "SIMULATED NOISE: protects nobody"

STATUS_WORDS = {
    "ok": "the intervals are valid under the assumptions stated here",
    "partial": "the intervals that are printed are valid under the assumptions stated here; the reason says what the others need",
    "weak": "the privacy noise is too large beside the signal for intervals; read the estimates as rough",
    "not_identified": "behind the privacy noise the data do not determine the estimates; do not interpret them",
    "no_reply": "the mechanism declined to answer: there are no estimates, and the release costs its guarantee all the same",
    "failed": "the question failed after its budget was charged: there are no estimates, and that it failed has no guarantee",
    "uninformative": "the privacy noise leaves every value possible; the result says nothing about the data",
}

_BIAS = (
    "what is cut or left out may move an estimate by up to a bound; by it the interval is wider at both ends, and t is the estimate moved "
    "towards zero, over the standard error"
)

_SHARE = (
    (
        "Noise share",
        "the part of the squared half-width of a 95 % interval that sampling alone would not give: privacy noise, and what is allowed for "
        "because of it, as far as noise tells",
    ),
)

#: The statuses at which an estimate means nothing: renderings show dashes in its place, and the plot says why.
WITHOUT_NUMBERS = ("not_identified", "no_reply", "uninformative", "failed")

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
    "unit_declared": "who a unit is and how many rows it has was declared, and nothing enforces it: a unit with more rows is protected "
    'less than stated; unit=cf.Unit("person_id") in the schema, with the id column of the data, enforces it',
    "rows_truncated": "a noticeable share of the rows is beyond what their units may count; the estimates weigh each unit as stated, not "
    "each row",
    "few_units": "the intervals rest on fewer than 40 independent units of equal weight, of which a sandwich covariance tells little; with "
    "several rows of each unit, rows=1 leaves more",
    "y_clipping": "a noticeable share of the values of the response lay outside its declared bounds and was moved to "
    "them; the estimates describe the clipped response",
    "clipping_unchecked": "it was not checked how many values of the response lay outside its declared bounds and were "
    "moved to them (clipping_check=False)",
    "few_records": "the noisy count of complete records does not stand above its noise; if there are more, look for what "
    "leaves them out: missing values, labels that are no levels, decimal commas, a column of another kind than declared",
    "upper_bound": "the noise of the robust covariance outweighs what it measures; each standard error is an upper bound "
    "(95 %), and the intervals are wider than they need to be",
    "no_interval": "this method gives point estimates alone; no interval is better than a wrong one",
    "conditional_on_reply": "a reply was less likely than 95 %; given that there was one, intervals miss at most 5 % over that "
    "probability",
    "blocks_failed": "most blocks failed or were late; the released values say nothing of the question",
    "subset_classical": "the smaller model's standard errors assume equal residual variances, because the released robust "
    "covariance belongs to the full model",
}


def status_words(result: Shown) -> str:
    """What a result's status means, as far as intervals go."""
    if not result.has_intervals and (
        result.status == "ok" or (result.status == "weak" and "no_interval" in result.flags)
    ):
        return "point estimates, without intervals"
    if result.status == "weak" and "subset_points" in result.flags:
        return "point estimates, without intervals: the released robust covariance belongs to the full model"
    if result.status == "weak" and result.has_intervals:
        return (
            "the privacy noise is too large beside the signal for normal intervals; read the estimates as rough, and the "
            "intervals with the assumption that they name"
        )
    if result.status == "ok" and result.family == "test":
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
            result.covers
            if result.has_intervals or result.status == "ok"
            else f"none at this status; at status ok they account for: {result.covers}",
        ),
        *bias_words(result),
        *(_SHARE if any(column.kind == "share" for column in result.columns(0.5)) else ()),
        *result.notes(),
        *result.legend,
        ("Release SHA", result.release_sha256),
    ]
    return tuple((label, clean(text)) for label, text in lines if text)


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


def missing_words(columns: Mapping[str, Column], design: Design) -> str:
    """The schema's rules for missing values of the columns that a design uses, which are public. Rules, and no word on records.

    A value that is put in for a missing one is the one that is used, on the column's grid.

    >>> from confide.schema import Design, Integer, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 99), "z": Integer(0, 1, on_missing="midpoint"), "y": Numeric(0, 1)})
    >>> missing_words(schema.columns, Design.of("y ~ age + z", schema))
    'a record with a missing age or y is left out; a missing z counts as 0'
    """
    derived = any(
        isinstance(part, Value) and part.name not in columns
        for term in (*design.terms, design.response)
        for part in term.parts
    )
    return missing_rules({name: columns[name] for name in design.columns}, derived=derived)


def missing_rules(used: Mapping[str, Column], *, derived: bool = False) -> str:
    """The same of columns by name. derived: whether a term of them may have no finite value."""
    dropped = [name for name, column in used.items() if column.on_missing == "drop"]
    parts = [f"a record with a missing {either(dropped)} is left out"] if dropped else []
    parts += [f"a missing {name} counts as {_put_in(used[name])}" for name in used if name not in dropped]
    if any(isinstance(column, Categorical) for column in used.values()):
        parts.append("a label that is not declared counts as missing")
    if derived:
        parts.append("a derived term without a finite value is treated as missing")
    return "; ".join(parts)


def base_words(columns: Mapping[str, Column], design: Design) -> str:
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


def _put_in(column: Column) -> str:
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
