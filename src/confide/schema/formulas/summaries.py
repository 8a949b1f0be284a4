"""What a formula meant that asks for a summary by name, as `mean(income) ~ region`: a table's columns are what it sums up."""

from __future__ import annotations

import re

__all__ = ["summary_words"]

_MEANS, _TOTALS, _MEDIANS, _SPREADS = "means", "totals", "quantiles", "table_one"
_KINDS = {
    **dict.fromkeys(("mean", "avg", "average"), _MEANS),
    **dict.fromkeys(("sum", "total"), _TOTALS),
    **dict.fromkeys(("median", "quantile", "quantiles", "percentile"), _MEDIANS),
    **dict.fromkeys(("sd", "std", "stdev", "var", "variance"), _SPREADS),
    **dict.fromkeys(("count", "counts", "n", "nrow", "size", "len"), "counts"),
    **dict.fromkeys(("share", "prop", "proportion", "percent", "pct", "freq", "frequency"), "shares"),
}
_SAYS = {
    _MEANS: "the table of {!r} has the means",
    _TOTALS: "the table of {!r} has the totals",
    _MEDIANS: "the table of {!r} has median and quartiles",
    _SPREADS: "the table of {!r} has means with their standard deviations",
    "counts": "the table of {!r} has the numbers of records",
    "shares": "the table of {!r} has the shares",
}
_CALL = re.compile(r"(?:np\.|numpy\.)?(\w+)\s*\(\s*([^(),]*)(?:,[^()]*)?\)")


def summary_words(formula: str) -> str:
    """Why a formula is refused whose left side, or which as a whole, is the name of a summary, with the call that works; else nothing.

    >>> summary_words("mean(bmi) ~ sex")
    "mean is of many records and no function of one: the table of 'bmi ~ sex' has the means; write cf.tables.means('bmi ~ sex', ...)"
    >>> summary_words("prop(smoker) ~ sex").partition("write ")[2]
    "cf.tables.shares('sex * smoker', within='sex', ...)"
    >>> summary_words("count(ill == 'yes')").partition("cf.tables.")[2][:43]
    'person_counts has those with so many of the'
    >>> summary_words("y ~ mean(x)")
    ''
    """
    left, mark, right = (part.strip() for part in formula.partition("~"))
    found = _CALL.fullmatch(left)
    if found is None or found[1].lower() not in _KINDS:
        return ""
    if _KINDS[found[1].lower()] == "counts" and re.search("[=<>]", found[2]):
        wanted = f"number({found[2].strip()}, 1, 2, 5)"
        return (
            f"{found[1]} is of many records and no function of one: of persons with several rows cf.tables.person_counts has those with so "
            f"many of them, written {wanted}, and any({found[2].strip()}) for one at least; a table of the column has the numbers of "
            "records"
        )
    name, inner, groups = found[1], found[2].strip(), "" if right in ("", "1") else right
    kind, more = _KINDS[name.lower()], ""
    plain = f"{inner} ~ {right}" if mark else inner
    if kind == "counts":
        plain = groups or inner
    elif kind == "shares":
        plain, more = (f"{groups} * {inner}", f", within={groups!r}") if groups else (inner, "")
    if not plain:
        return ""
    words = _SAYS[kind].format(plain)
    return f"{name} is of many records and no function of one: {words}; write cf.tables.{kind}({plain!r}{more}, ...)"
