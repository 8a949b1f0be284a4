"""A test of a table that was released, under its name in scipy.stats: a question to the release, which costs nothing more."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from confide.errors import PlanError
from confide.faces.tests import METHODS, asked_of
from confide.results.hypothesis import HypothesisTests
from confide.schema.formulas.names import column_named, parted, sides

__all__ = ["ask"]

# What `table.test` calls the tests of counts of one attribute, or of two.
_KINDS = {"chi2_contingency": "independence", "chisquare": "fit", "binomtest": "proportion", "trend": "trend"}


def ask(table: Any, name: str, formula: str, **given: Any) -> HypothesisTests:
    """The answer of a table of counts, shares or means to a test, of the columns that it holds.

    given: p, level, f_exp, as in the test's own call. Raises `PlanError` for a test that the table does not answer.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "wage": cf.Numeric(0, 90)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> table = cf.tables.means("wage ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> ask(table, "ttest_ind", "wage ~ sex").names
    ('wage by sex: f - m',)
    """
    holds = METHODS[name].name
    kind = "counts" if table.kind == "shares" else table.kind
    if holds != kind:
        other = f"of {holds}" if holds in ("means", "counts") else f"of its own, which confide test {name} asks for"
        raise PlanError(f"{name} is a question to a release {other}, and this is a table of {table.kind}")
    asked_of(name, formula, **given)  # refuses what is no formula of this test
    left, *rest = sides(formula)
    right = "~".join(rest)
    attributes = [own.name for own in table.layout.crossing.attributes]
    if name in ("ttest_ind", "f_oneway"):
        group = _known(re.sub(r"^0\s*\+", "", right), attributes)
        found = table.test("t" if name == "ttest_ind" else "f", group, of=_known(left, table.measured))
    elif name == "ttest_rel":
        found = table.test("mean", of=_known(formula, table.measured))
    else:
        named = [left, right] if right else parted(formula, "*:")
        own = {"expected": given.get("f_exp")} if name == "chisquare" else dict(given)
        own = {"p": 0.5, **own} if name == "binomtest" else own
        found = table.test(_KINDS[name], *(_known(one, attributes) for one in named), **own)
    answer: HypothesisTests = found
    return answer


def _known(text: str, names: Collection[str]) -> str:
    """The name that is meant, however it is spaced; the text itself where there is none, which the table then refuses."""
    if (named := column_named(text, tuple(names))) in names:
        return named
    plain = text.replace("`", "").replace(" ", "")
    return next((name for name in names if name.replace("`", "").replace(" ", "") == plain), text.strip())
